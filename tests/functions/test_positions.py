"""NumPy's positions and options of functions that rearrange, create, sort and scan, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilearray as ta
from tilearray.errors import DTypeError, LayoutError, OperandError, ShapeError

X = np.random.default_rng(1).permutation(60).astype(np.int32).reshape(3, 4, 5)
VIEWS = {"dense": X, "transposed": X.T, "reversed": X[::-1, :, ::-2], "no elements": X[:, :0], "Fortran": X.copy("F")}

# Each line is a call that means the same in both libraries.
CALLS = """
    flip(x, 1)
    flip(x, (0, 2))
    roll(x, 2, 1)
    roll(x, (1, 2), (0, 2))
    repeat(x, 2, 1)
    repeat(x, repeats=2)
    take(x, [0, 0], 0)
    take_along_axis(x, argsort(x, 1), 1)
    sort(x, 0)
    sort(x, None)
    sort(x, 1, "stable")
    argsort(x, 0)
    argsort(x, None, "stable")
    concat([x, x], 1)
    concat([x, x], None)
    concat([x, x], 0, None, dtype="float64")
    stack([x, x], 2)
    stack([x, x], dtype="float64")
    diff(x, 2)
    diff(x, 1, 0)
    astype(diff(x, prepend=0), "int64")
    astype(diff(x, 1, 1, 7, 8), "int64")
    tril(x, 1)
    triu(x, -1)
    tensordot(x, x.T, 1)
    unstack(x, axis=1)[0] if x.shape[1] else x
    reshape(x, (6, -1), "F") if x.size else x
    reshape(x, (6, -1), "A") if x.size else x
    reshape(x, -1, "F")
    searchsorted(sort(x, None), x, "right")
    eye(3, 4, 1, "int8")
    eye(3, 4, 1, "int8", "F")
    zeros((2, 3), "int8")
    ones((2, 3), "float64", "F")
    full((2, 3), 7, "int16", "F")
    arange(1, 9, 2, "float64")
    linspace(0, 1, 5, False, dtype="float64")
    linspace(0, 1, 5, retstep=True, dtype="float64")[0]
    asarray(linspace(0, 1, 5, retstep=True, dtype="float64")[1], "float64")
    asarray(linspace(3, 4, 1, retstep=True, dtype="float64")[1], "float64")
    zeros_like(x, "float64")
    ones_like(x, "float64", "F")
    full_like(x, 3, None, "C")
    zeros_like(x, shape=(2, 2))
    ones_like(x, shape=(2, 2), order="F")
    zeros_like(x, order="A")
    linspace(x, x + 9, 4, dtype="float64")
    linspace(x, x + 7, 5, False, dtype="float64", axis=-1)
    linspace(x, x.T[:1, :1, :1], 3, dtype="int64", axis=1)
    linspace(x, 9, 1, True, True, "float64")[0]
    linspace([0, 1], [[5], [6]], 0, dtype="float64")
    full((2, *x.shape), x)
    full(x.shape, x[:1], "float64", "F")
    full_like(x, x[:1], "float64")
    full(3, [1, 2, 3])
    clip(x, 3, 9)
    clip(x, a_min=3, a_max=9)
    clip(x, a_max=9, a_min=None)
    take(x, [[0, 3], [-1, 2]])
    take(x, 3)
    take(x, [7, -9, 100], 1, None, "clip")
    take(x, [7, -9, 100], 1, mode="wrap")
    meshgrid(x[0, 0], x[:, 0, 0], sparse=True)[0]
    meshgrid(x[0, 0], x[:, 0, 0], sparse=True, indexing="ij")[1]
    meshgrid(x[0, 0], x[:, 0, 0], copy=False)[1]
    zeros(asarray(3), "int8")
    asarray(x, "float64")
    asarray(x, "float64", "F")
    asarray(x, order="C")
    asarray(x, order="F")
    asarray(x, None, "A")
    asarray(x, order="K")
"""
MAKERS = ("eye", "zeros", "ones", "full")


@pytest.mark.parametrize("call", [line.strip() for line in CALLS.strip().splitlines()])
def test_a_call_by_position_gives_numpys_result(call: str):
    for x in VIEWS.values():
        if not x.size and call.startswith(("take", "mesh")):
            continue
        ours = eval(call, vars(ta) | {"x": ta.asarray(x)})
        theirs = eval(call, vars(np) | {"x": x})
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ta.to_numpy(ours), theirs)
        if call.startswith(MAKERS):
            matters = [(mine, its) for size, mine, its in zip(ours.shape, ours.strides, theirs.strides) if size > 1]
            assert not ours.size or all(mine * ours.itemsize == its for mine, its in matters)
        elif call.startswith("asarray(x, order"):
            host = ta.to_numpy(ours)
            assert not ours.size or host.flags.f_contiguous >= theirs.flags.f_contiguous
            assert not ours.size or host.flags.c_contiguous >= theirs.flags.c_contiguous


def test_results_are_written_to_out():
    x = ta.asarray(X)
    for call, theirs in (
        (lambda out: ta.concat([x, x], 1, out), np.concatenate([X, X], 1)),
        (lambda out: ta.concat([x, x], None, out), np.concatenate([X, X], None)),
        (lambda out: ta.stack([x, x], 1, out), np.stack([X, X], 1)),
        (lambda out: ta.argmax(x, 1, out), X.argmax(1)),
        (lambda out: ta.take(x, [0, 2], 1, out), X.take([0, 2], 1)),
        (lambda out: ta.clip(x, 3, 9, out), X.clip(3, 9)),
        (lambda out: ta.argmin(x, None, out), X.argmin()),
        (lambda out: ta.cumulative_sum(x, 1, None, out), X.cumsum(1)),
        (lambda out: ta.cumulative_prod(x, 1, None, out), X.cumprod(1)),
    ):
        out = ta.zeros(theirs.shape, "int64")
        assert call(out) is out
        np.testing.assert_array_equal(ta.to_numpy(out), theirs)


ERRORS: list[tuple[Any, type[Exception], str]] = [
    (
        lambda x: ta.zeros(3, order="G"),
        LayoutError,
        "^zeros: expected order as one of C, F, A, K, got 'G'; write ",
    ),
    (lambda x: ta.zeros_like(x, order=3), LayoutError, "^zeros_like: expected order as one of C, F, A, K, got 3"),
    (lambda x: ta.reshape(x, -1, "K"), LayoutError, "^reshape: expected order as one of C, F, A, got 'K'"),
    (
        lambda x: ta.asarray(x, order="F", copy=False),
        LayoutError,
        r"^asarray: copy=False, but strides \(3, 1\) of shape",
    ),
    (
        lambda x: ta.concat([x, x], dtype="int8"),
        DTypeError,
        "^concat: expected a dtype that can store float32",
    ),
    (lambda x: ta.stack([x, x], out=ta.zeros(3)), ShapeError, r"^stack: expected out of shape \(2, 2, 3\), got \(3,\)"),
    (lambda x: ta.argmax(x, out=3), OperandError, "^argmax: expected a tilearray Array as out, got int"),
    (lambda x: ta.diff(x, prepend=ta.zeros(5)), ShapeError, "^diff: expected prepend and append of the sizes"),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Any, error: type[Exception], text: str):
    with pytest.raises(error, match=text):
        call(ta.ones((2, 3)))


# --- where and round ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", "float32", "float16", "bfloat16", "complex64", "float8_e5m2"]
)
def test_where_takes_a_condition_of_any_dtype(dtype: str):
    numbers = [0.0, 1.0, -0.0, 2.0] if dtype in ("bool", "int8", "uint64") else [0.0, -0.0, np.nan, 0.5]
    condition = ta.asarray(numbers).astype(dtype)
    holds = [bool(number) for number in numbers]
    x, y = ta.asarray([1, 2, 3, 4]), ta.asarray([[-1.0], [-2.0]])
    expected = np.where(holds, [1, 2, 3, 4], [[-1.0], [-2.0]])
    np.testing.assert_array_equal(ta.to_numpy(ta.where(condition, x, y)), expected)
    np.testing.assert_array_equal(ta.to_numpy(ta.where(condition[::-1], 7, y)), np.where(holds[::-1], 7, [[-1], [-2]]))
    out = ta.zeros((2, 4), "float64")
    assert ta.where(condition, x, y, out=out) is out
    np.testing.assert_array_equal(ta.to_numpy(out), expected)


def test_where_alone_is_nonzero():
    for x in VIEWS.values():
        for ours, theirs in zip(ta.where(ta.asarray(x) % 2), np.where(x % 2), strict=True):
            assert ours.dtype == ta.int64
            np.testing.assert_array_equal(ta.to_numpy(ours), theirs)
    with pytest.raises(OperandError, match=r"^where: expected a condition and two operands, or a condition alone"):
        ta.where(ta.ones(2), 1)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "uint8", "complex128"])
@pytest.mark.parametrize("decimals", [-3, -1, 0, 1, 2, 5])
def test_round_to_decimals(dtype: str, decimals: int):
    values = np.random.default_rng(4).uniform(-300, 300, 500)
    x = np.concatenate([values, [0.5, 1.5, 2.5, -0.5, 25, 35, 0.0, -0.0, 250, 50]])
    x = np.minimum(np.abs(x), 244).astype(dtype) if dtype == "uint8" else x.astype(dtype)
    theirs, ours = np.round(x, decimals), ta.round(ta.asarray(x), decimals)
    assert ours.dtype == dtype
    if dtype == "complex128":  # NumPy divides part by part
        np.testing.assert_allclose(ta.to_numpy(ours), theirs, rtol=1e-15)
    else:
        np.testing.assert_array_equal(ta.to_numpy(ours), theirs)
    out = ta.zeros(x.shape, dtype)
    assert ta.round(ta.asarray(x), decimals, out) is out
    assert out.tolist() == ours.tolist()


def test_round_keeps_large_integers():
    numbers = [2**60 + 1, -(2**62) - 1, 7]
    for decimals in (0, 1, 4):
        assert ta.round(ta.asarray(numbers), decimals).tolist() == numbers


def test_linspace_of_arrays_ends_at_its_limits():
    first, last = np.random.default_rng(8).uniform(-1, 1, (2, 200))
    for count in (2, 7, 50):
        ours = ta.linspace(ta.asarray(first), ta.asarray(last), count)
        np.testing.assert_array_equal(ta.to_numpy(ours)[[0, -1]], [first, last])
        np.testing.assert_allclose(ta.to_numpy(ours), np.linspace(first, last, count), rtol=1e-12, atol=1e-15)
