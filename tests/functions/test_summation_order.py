"""``order="any"``: the values of the fixed order up to rounding, in every function, layout and dtype, on the host."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.oracles.reductions import DTYPES, compare_nearly, drawn_array, drawn_axis, drawn_shape, drawn_view

import tilearray as ta
from tilearray.errors import OperandError, TileArrayError
from tilearray.ops.reduction import reduction_of
from tilearray.promotion.systems import ARRAY_API

FUNCTIONS: dict[str, Any] = {
    "sum": ta.sum,
    "prod": ta.prod,
    "mean": ta.mean,
    "var": ta.var,
    "std": ta.std,
    "logsumexp": ta.logsumexp,
    "vector_norm": ta.linalg.vector_norm,
    "norm_of_sizes": lambda x, **options: ta.linalg.vector_norm(x, ord=1, **options),
    "norm_of_cubes": lambda x, **options: ta.linalg.vector_norm(x, ord=3, **options),
    "vecdot": lambda x, axis, **options: ta.vecdot(x, ta.flip(x), axis=axis, **options),
    "cumulative_sum": ta.cumulative_sum,
    "cumulative_prod": ta.cumulative_prod,
}
ALONG = ("vecdot", "cumulative_sum", "cumulative_prod")
"""The functions that take one axis."""
CALLS: dict[str, Any] = {
    **{name: lambda x, order, name=name: FUNCTIONS[name](x, order=order) for name in list(FUNCTIONS)[:7]},
    "vecdot": lambda x, order: ta.vecdot(x, x, order=order),
    "cumulative_sum": lambda x, order: ta.cumulative_sum(x, axis=0, order=order),
    "cumulative_prod": lambda x, order: ta.cumulative_prod(x, axis=-1, order=order),
    **{f"method {name}": lambda x, order, name=name: getattr(x, name)(order=order) for name in ("cumsum", "cumprod")},
    **{name: lambda x, order, name=name: getattr(ta, name)(x, 0, order=order) for name in ("cumsum", "cumprod")},
}


def drawn_call(rng: np.random.Generator) -> tuple[str, Any, dict[str, Any]]:
    """Return the name of a function, an array and options."""
    name = str(rng.choice(list(FUNCTIONS)))
    dtype = str(rng.choice(DTYPES))
    values = drawn_array(rng, dtype, drawn_shape(rng, int(rng.choice([30, 3000, 60_000]))))
    if "prod" in name and dtype.startswith(("float", "bfloat", "complex")):  # near 1: nothing overflows
        values = (1 + 0.01 * rng.normal(size=values.shape)).astype(values.dtype)
    x = drawn_view(rng, ta.asarray(values, device="cpu"))
    if name in ALONG:
        return name, x, {"axis": int(rng.integers(-x.ndim, 0))}
    options: dict[str, Any] = {"axis": drawn_axis(rng, x.ndim, single=False), "keepdims": bool(rng.integers(0, 2))}
    if name in ("var", "std"):
        options["correction"] = int(rng.integers(0, 3))
    if name in ("sum", "prod") and rng.random() < 0.3:
        options["initial"] = 2
    if name in ("sum", "prod", "mean", "var", "std") and rng.random() < 0.3:
        options["where"] = ta.asarray(rng.random(x.shape) < 0.7, device="cpu")
    return name, x, options


@given(st.integers(0, 2**32 - 1))
def test_any_order_gives_the_fixed_one_up_to_rounding(seed: int) -> None:
    name, x, options = drawn_call(np.random.default_rng(seed))
    told = f"{name} {x.dtype} {x.shape} {x.strides} {options}"
    try:
        expected = FUNCTIONS[name](x, **options)
    except TileArrayError as error:
        with pytest.raises(type(error)):
            FUNCTIONS[name](x, order="any", **options)
        return
    found = FUNCTIONS[name](x, order="any", **options)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), told
    if ta.isdtype(expected.dtype, ("bool", "integral")):
        assert ta.all(found == expected), told
    else:
        compare_nearly(name, x, expected, found, told)


@pytest.mark.parametrize("shape", [(70_001,), (300, 400), (3, 20_000), (20_000, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_host_adds_as_numpy_does(shape: tuple[int, ...], dtype: str) -> None:
    x = np.random.default_rng(1).normal(size=shape).astype(dtype)
    whole = ta.asarray(x, device="cpu")
    assert ta.sum(whole, order="any").item() == np.sum(x)
    assert np.array_equal(ta.to_numpy(ta.sum(whole, axis=0, order="any")), np.sum(x, axis=0))
    assert np.array_equal(ta.to_numpy(ta.cumulative_sum(whole, axis=-1, order="any")), np.cumsum(x, axis=-1))


def test_float32_is_added_in_float32() -> None:
    x = ta.asarray(np.full((3, 2), 2.0**127, "float32"), device="cpu")
    assert ta.sum(x, dtype="float32", initial=-(2.0**127)).item() == math.inf
    assert ta.mean(x).item() == 2.0**127
    assert ta.mean(x, order="any").item() == math.inf  # as NumPy's
    assert ta.mean(x, dtype="float64", order="any").item() == 2.0**127


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(1,), (2,), (1, 2), (2, 1), (2, 2), (3, 1, 2)])
def test_complex_products_start_with_one(shape: tuple[int, ...], dtype: str) -> None:
    """As in the fixed order: ``1 * (inf + 1j)`` is ``inf + nan * 1j``, and its square is NaN."""
    x = ta.asarray(np.full(shape, complex(math.inf, 1), dtype), device="cpu")
    for axis in (None, *range(len(shape))):
        found, expected = (ta.prod(x, axis=axis, order=order) for order in ("any", "fixed"))
        for part in (ta.real, ta.imag):
            assert np.array_equal(ta.to_numpy(part(found)), ta.to_numpy(part(expected)), equal_nan=True), axis


@pytest.mark.parametrize("size", [5, 100, 100_000])
@pytest.mark.parametrize(("dtype", "least", "most"), [("float32", 1e-44, 1e38), ("float64", 1e-320, 1e308)])
def test_norms_neither_overflow_nor_underflow(size: int, dtype: str, least: float, most: float) -> None:
    for value in (least, most / size, 0.0, 1.0):
        x = ta.asarray(np.full((2, size), value, dtype), device="cpu")
        for axis in (0, 1, None):
            found, expected = (ta.linalg.vector_norm(x, axis=axis, order=order) for order in ("any", "fixed"))
            assert np.allclose(ta.to_numpy(found), ta.to_numpy(expected), rtol=1e-6, atol=0)


def test_nothing_and_one_element() -> None:
    for shape in ((), (0,), (0, 3), (3, 0), (1,)):
        x = ta.ones(shape, device="cpu")
        for function in (ta.sum, ta.prod, ta.mean, ta.var, ta.std, ta.logsumexp, ta.linalg.vector_norm):
            found, expected = (ta.to_numpy(function(x, order=order)) for order in ("any", "fixed"))
            assert np.array_equal(found, expected, equal_nan=True), (shape, function)


def test_out_takes_the_result() -> None:
    x = ta.asarray(np.arange(12.0).reshape(3, 4), device="cpu")
    out = ta.zeros(4, dtype="float64", device="cpu")
    assert ta.sum(x, axis=0, out=out, order="any") is out
    assert out.tolist() == [12, 15, 18, 21]
    assert ta.cumulative_sum(x[0], out=out, order="any") is out
    assert out.tolist() == [0, 1, 3, 6]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("order", ["fast", "", None, 1, ["any"], b"any"])
def test_another_word_is_an_error(name: str, order: Any) -> None:
    with pytest.raises(OperandError, match=r"expected order as 'fixed' or 'any', got .*; write order='any'"):
        CALLS[name](ta.ones((3, 4), device="cpu"), order)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_in_one_order_does_not_answer_for_the_other(name: str) -> None:
    x = ta.asarray(1 + np.random.default_rng(2).normal(size=(64, 300)).astype("float32") * 0.1, device="cpu")
    found = [[ta.to_numpy(CALLS[name](x, order)) for order in ("any", "fixed", "any", "fixed")] for _ in range(2)]
    for calls in found:
        assert np.array_equal(calls[0], calls[2])
        assert np.array_equal(calls[1], calls[3])
        assert np.allclose(calls[0], calls[1], rtol=1e-4)
    assert np.array_equal(found[0][0], found[1][0])


@pytest.mark.parametrize("name", CALLS)
def test_in_a_fused_function(name: str) -> None:
    x = ta.asarray(1 + np.random.default_rng(3).normal(size=(128, 300)).astype("float32") * 0.01, device="cpu")
    for order in ("any", "fixed"):
        call = ta.fuse(lambda x, order=order: CALLS[name](x * 1.001, order)) if "cum" not in name else None
        if call is not None:
            assert np.allclose(ta.to_numpy(call(x)), ta.to_numpy(CALLS[name](x * 1.001, "fixed")), rtol=1e-4)


@pytest.mark.parametrize("name", CALLS)
def test_gradients_keep_the_order(name: str) -> None:
    x = ta.asarray(1 + np.random.default_rng(4).normal(size=(20, 30)) * 0.1, device="cpu")
    found, expected = (ta.grad(lambda x, o=o: ta.sum(CALLS[name](x, o) ** 2))(x) for o in ("any", "fixed"))
    assert np.allclose(ta.to_numpy(found), ta.to_numpy(expected), rtol=1e-9)


def test_explain_names_the_order() -> None:
    x = ta.ones((30, 40), device="cpu")
    assert "add_in_any_order over x0" in str(ta.explain(lambda x: ta.sum(x, order="any"), x))
    assert "any_order" not in str(ta.explain(lambda x: ta.sum(x), x))


def test_integers_have_no_order() -> None:
    """The expression is that of the fixed order, so there is one kernel."""
    orders = [reduction_of("sum", ta.int64, (0,), False, order) for order in ("any", "fixed")]
    one, other = (each.expression(None, (ta.int64,), None) for each in orders)  # type: ignore[arg-type]
    assert one.content == other.content


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("dtype", [ta.float16, ta.bfloat16])
def test_in_the_fixed_order_variances_of_narrow_floats_are_computed_in_float64(name, dtype):
    nodes = reduction_of(name, dtype, (0,), False).expression(ARRAY_API, (dtype, dtype), None).nodes
    assert {node[3] for node in nodes if node[0] == "call"} == {"float64"}
