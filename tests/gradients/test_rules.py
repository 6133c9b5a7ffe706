"""Every rule of the op table: against differences of results in float64, and against torch's autograd."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from support.oracles.derivatives import of_elements

import tilearray as ta
from tilearray.gradients.rules import terms_of
from tilearray.ops import OPS, PUBLIC
from tilearray.ops.row import Row

SHAPES = {
    1: [((3, 4),), ((),)],
    2: [((3, 4), (3, 4)), ((1, 3), (2, 1)), ((4,), (3, 4)), ((), (5,))],
    3: [((3, 4), (4,), (3, 1))],
    4: [((3, 4), (), (4,), (3, 1))],
}
CALLS: dict[str, Any] = {
    "where": ta.where,
    "clip": ta.clip,
    "nan_to_num": lambda x, *instead: ta.nan_to_num(x, True, *instead),
    "round": ta.round,
    "frexp_mantissa": lambda x: ta.frexp(x)[0],
    "setitem": lambda x: x.copy(),
    "astype": lambda x: ta.astype(x, x.dtype),
}
DOMAINS = {"acosh": (1.5, 20.0), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atanh": (-0.9, 0.9), "erfinv": (-0.9, 0.9),
           "log": (0.1, 5.0), "log2": (0.1, 5.0), "log10": (0.1, 5.0), "rsqrt": (0.1, 5.0), "sqrt": (0.1, 5.0),
           "log1p": (-0.5, 5.0), "tan": (-1.2, 1.2), "pow": (0.2, 3.0), "float_power": (0.2, 3.0),
           "cbrt": (0.2, 5.0), "lgamma": (-5.9, 6.0),
           "gamma": (0.3, 4.0), "logit": (0.1, 0.9), "entr": (0.2, 3.0),
           "xlogy": (0.2, 3.0), "xlog1py": (-0.5, 3.0)}  # fmt: skip
DIFFERENTIABLE = [row for row in OPS if row.derivative]


def called(row: Row) -> Any:
    return CALLS[row.name] if row.name in CALLS else PUBLIC[row.name]


def drawn(row: Row, shapes: Any, dtype: str) -> list[np.ndarray]:
    """Operands in the domain of a row, away from the places where its derivative jumps."""
    rng = np.random.default_rng(zlib.crc32(f"{row.name} {shapes} {dtype}".encode()))
    low, high = DOMAINS.get(row.name, (-3.0, 3.0))
    found: list[np.ndarray] = []
    for place, shape in enumerate(shapes):
        if place < row.masks:
            found.append(rng.random(shape) < 0.5)
        elif place >= row.arity - row.exponents:
            found.append(rng.integers(-3, 4, shape))
        else:
            part = np.asarray(rng.uniform(low, high, shape))
            part = np.where(np.abs(part - np.round(part * 2) / 2) < 0.02, part + 0.05, part)
            found.append(part + 1j * rng.uniform(0.2, 1.0, shape) if dtype == "complex128" else part)
    return [np.asarray(part) for part in found]


def test_every_row_says_its_rules_or_that_it_has_none():
    assert [row.name for row in OPS if row.derivative is None] == []
    assert [row.name for row in OPS if row.derivative and len(row.derivative) != row.arity] == []
    assert len(DIFFERENTIABLE) == 75
    without = {row.name for row in OPS if not row.derivative}
    assert {"equal", "bitwise_and", "logical_not", "isnan", "signbit", "frexp_exponent", "nextafter"} <= without
    assert not {name for name in without if name in ("add", "exp", "where", "clip", "sinc")}


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=lambda row: row.name)
def test_the_rules_of_a_row_are_the_differences_of_its_results(row: Row):
    function = called(row)
    rng = np.random.default_rng(7)
    for dtype in ("float64", "complex128"):
        if dtype == "complex128" and ("complex" not in row.kinds or row.name == "round"):
            continue
        for shapes in SHAPES[row.arity]:
            args = drawn(row, shapes, dtype)
            result, pull = ta.vjp(function, *[ta.asarray(arg) for arg in args])
            g = np.asarray(rng.standard_normal(result.shape))
            g = g + 1j * rng.standard_normal(result.shape) if result.dtype.kind == "c" else g
            gradients = pull(ta.asarray(g))
            for place, arg in enumerate(args):
                if arg.dtype.kind not in "fc":
                    assert gradients[place] is None
                    continue
                found = ta.to_numpy(gradients[place])
                expected = of_elements(function, args, g, place)
                assert found.shape == arg.shape
                assert found.dtype == arg.dtype
                np.testing.assert_allclose(found, expected, rtol=2e-7, atol=2e-8, err_msg=f"{dtype} {shapes} {place}")


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=lambda row: row.name)
def test_gradients_have_the_dtypes_of_operands_in_every_layout(row: Row):
    function = called(row)
    for dtype, tolerance in (("float32", 2e-4), ("float16", 5e-2), ("bfloat16", 2e-1)):
        args = drawn(row, SHAPES[row.arity][0], "float64")
        wide = [ta.asarray(arg) for arg in args]
        given = [x if arg.dtype.kind != "f" else x.astype(dtype) for x, arg in zip(wide, args)]
        wide = [x if arg.dtype.kind != "f" else y.astype("float64") for x, y, arg in zip(wide, given, args)]
        strided = [ta.flip(ta.stack([x, x], axis=-1)[..., 1].T.copy().T, axis=0)[::-1] if x.ndim else x for x in given]
        exact, pull = ta.vjp(function, *wide)
        expected = pull(ta.ones_like(exact))
        result, pull = ta.vjp(function, *strided)
        found = pull(ta.ones_like(result))
        for mine, other, x in zip(found, expected, given, strict=True):
            assert (mine is None) == (other is None)
            if mine is not None:
                assert mine.dtype == x.dtype
                assert mine.shape == x.shape
                np.testing.assert_allclose(
                    ta.to_numpy(mine.astype("float64")), ta.to_numpy(other), rtol=tolerance, atol=tolerance
                )


def test_terms_read_only_what_they_name():
    both = terms_of(("g * conj(y)", "g * conj(x)"))
    assert [sorted(term.reads) for term in both if term] == [[1], [0]]
    (exp,) = terms_of(("g * conj(out)",))
    assert exp is not None
    assert sorted(exp.reads) == [4]
    assert not exp.calls
    assert terms_of(("", "0")) == (None, None)
    (power,) = terms_of(("g * log(y)",))
    assert power is not None
    assert sorted(power.calls) == [1]


# --- torch -----------------------------------------------------------------------------------------------------------

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, float("inf"), -float("inf"), float("nan"), 1e-300, -1e300]
SAME = [
    "add", "subtract", "multiply", "divide", "remainder", "fmod", "reciprocal", "negative", "positive", "abs",
    "square", "minimum", "maximum", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "logaddexp2",
    "sqrt", "rsqrt", "hypot", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh",
    "deg2rad", "rad2deg", "erf", "erfc", "erfinv", "lgamma", "floor", "ceil", "trunc", "copysign", "pow", "where",
    "clip", "ndtr", "expit", "logit", "entr", "xlogy", "xlog1py",
]  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_rules_are_torchs_at_the_edges(name: str):
    """At zeros, ties, infinities and NaN: where torch's gradient is finite ours equals it, and elsewhere it is not."""
    torch = pytest.importorskip("torch")
    function = getattr(ta, name)
    theirs = {"subtract": torch.sub, "multiply": torch.mul, "divide": torch.div, "clip": torch.clamp}
    other = theirs.get(name) or getattr(torch, name, None) or getattr(torch.special, name)
    arity = {"where": 3, "clip": 3}.get(name, PUBLIC[name].arity if name in PUBLIC else 2)
    grids = [np.asarray(grid).ravel() for grid in np.meshgrid(*[EDGES] * min(arity, 2), indexing="ij")]
    args = [*grids, *[np.full(len(grids[0]), 1.0)] * (arity - len(grids))]
    if name == "where":
        args = [args[0] > 0, args[0], args[1]]
    tensors = [torch.tensor(arg, requires_grad=arg.dtype == float) for arg in args]
    with np.errstate(all="ignore"):
        result, pull = ta.vjp(function, *[ta.asarray(arg) for arg in args])
        mine = pull(ta.ones_like(result))
    other(*tensors).sum().backward()
    for place, (found, tensor) in enumerate(zip(mine, tensors, strict=True)):
        if found is None:
            continue
        found, expected = ta.to_numpy(found), tensor.grad.numpy()
        finite = np.isfinite(expected)
        keep = np.ones(len(expected), bool) if name not in SKIPPED else ~SKIPPED[name](*args)
        np.testing.assert_allclose(found[finite & keep], expected[finite & keep], rtol=1e-6, err_msg=f"{place}")
        assert not np.isfinite(found[~finite & keep]).any(), (place, [arg[~finite & keep] for arg in args])


def test_angles_have_gradients_at_the_origin_and_without_overflow():
    x, y = (
        ta.asarray(part, dtype="float64") for part in ([0.0, -0.0, 3e-200, 3e200, 1.0], [0.0, 0.0, 4e-200, 4e200, 0.0])
    )
    _, pull = ta.vjp(ta.atan2, x, y)
    of_x, of_y = (ta.to_numpy(part) for part in pull(1.0))
    np.testing.assert_allclose(of_x, [0, 0, 0.16e200, 0.16e-200, 0], rtol=1e-14)
    np.testing.assert_allclose(of_y, [0, 0, -0.12e200, -0.12e-200, -1], rtol=1e-14)


def test_the_quotient_of_fmod_is_that_of_its_remainder():
    """1 / 0.1 rounds to 10, but fmod(1, 0.1) is 1 - 9 * 0.1."""
    x, y = ta.asarray([1.0, -1.0, 1.0, 7.0], dtype="float64"), ta.asarray([0.1, 0.1, -0.1, 2.0], dtype="float64")
    _, pull = ta.vjp(ta.fmod, x, y)
    assert pull(1.0)[1].tolist() == [-9, 9, 9, -3]
    assert ta.grad(lambda y: ta.sum(ta.vjp(ta.fmod, x, y)[1](1.0)[1]))(y).tolist() == [0, 0, 0, 0]


SKIPPED: dict[str, Any] = {
    "abs": lambda x: np.isnan(x),  # torch gives 0
    "copysign": lambda x, y: ~np.isfinite(x) | np.isnan(y),  # torch divides infinities
    "remainder": lambda x, y: np.isinf(y),  # the quotient of other signs is -1 in torch, and rounds from -0.0 here
}
"""Elements at which the gradients differ."""
