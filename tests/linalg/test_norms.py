"""Norms against their definitions over Python numbers, and against NumPy in float64."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.oracles.axes import axes_of
from support.oracles.formats import ARITHMETIC
from support.oracles.matrices import check, float_name, near, real_name, tame, wide

import tilearray as ta
from tilearray.engine.caches import KERNELS, PLANS
from tilearray.errors import ShapeError
from tilearray_host.reduction_functions import OF_REDUCTIONS

NAMES = st.sampled_from(list(ARITHMETIC))
VECTOR_ORDERS = [0, 1, 2, 3, 0.5, -1, -2, math.inf, -math.inf, 2.5]
MATRIX_ORDERS = ["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf]


def vector(values: list[Any], ord: float) -> float:
    sizes = [abs(value) for value in values]
    if ord in (math.inf, -math.inf):
        return max(sizes, default=0) if ord > 0 else min(sizes)
    if ord == 0:
        return sum(size != 0 for size in sizes)
    if ord < 0 and 0 in sizes:
        return 0.0
    total = math.fsum(size**ord for size in sizes)
    return total ** (1 / ord) if total or ord > 0 else math.inf


def lines(x: np.ndarray, axis: Any) -> tuple[tuple[int, ...], list[list[Any]]]:
    """The shape of a result, and the numbers of each element."""
    axes = range(x.ndim) if axis is None else [a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))]
    kept = [a for a in range(x.ndim) if a not in axes]
    moved = np.transpose(x, [*kept, *axes])
    shape = moved.shape[: len(kept)]
    return shape, [moved[place].ravel().tolist() for place in np.ndindex(shape)]


def agrees(found: ta.Array, want: np.ndarray, name: str) -> None:
    """Equal to a rounding, relative to the result."""
    eps = max(float(ta.finfo(name).eps), 2.0**-50)
    got = check(found, want.shape, name)
    with np.errstate(invalid="ignore", over="ignore"):
        close = np.abs(got - want) <= 2 * eps * np.abs(want) + 1e-30
    largest = float(ta.finfo(name).max)
    assert np.all(close | (got == want) | ((np.abs(want) > largest * 0.9) & ~(np.abs(got) < largest * 0.9)))


@given(st.data(), NAMES, st.sampled_from([(), (3,), (0,), (2, 3), (2, 0), (2, 3, 2)]), st.sampled_from(VECTOR_ORDERS))
def test_vector_norms(data, name, shape, ord):
    pair = data.draw(tame(name, shape))
    axis, keepdims = data.draw(axes_of(len(shape))), data.draw(st.booleans())
    kept, numbers = lines(wide(pair.theirs), axis)
    if ord == -math.inf and any(not one for one in numbers):
        return
    want = np.array([vector(one, ord) for one in numbers]).reshape(kept)
    found = ta.linalg.vector_norm(pair.mine, axis=axis, keepdims=keepdims, ord=ord)
    if keepdims:
        assert found.shape == np.sum(np.zeros(shape), axis=axis, keepdims=True).shape
        found = ta.reshape(found, kept)
    agrees(found, want, real_name(name))
    if isinstance(axis, int) or (axis is None and len(shape) == 1):
        assert repr(ta.linalg.norm(pair.mine, ord, axis).tolist()) == repr(found.tolist())  # also NaN


def matrix(x: np.ndarray, ord: Any) -> float:
    if ord == "fro":
        return vector(x.ravel().tolist(), 2)
    if ord in ("nuc", 2, -2):
        values = np.sqrt(
            np.maximum(np.linalg.eigvalsh(x @ np.conj(x).T if x.shape[0] < x.shape[1] else np.conj(x).T @ x), 0)
        )
        return {"nuc": sum, 2: max, -2: min}[ord](values)
    sums = [math.fsum(map(abs, one)) for one in (x.T if abs(ord) == 1 else x).tolist()]
    return max(sums) if ord > 0 else min(sums)


@given(
    st.data(), NAMES, st.sampled_from([(2, 3), (3, 2), (1, 1), (2, 3, 3), (0, 2, 2)]), st.sampled_from(MATRIX_ORDERS)
)
def test_matrix_norms(data, name, shape, ord):
    pair, keepdims = data.draw(tame(name, shape)), data.draw(st.booleans())
    found = ta.linalg.matrix_norm(pair.mine, keepdims=keepdims, ord=ord)
    x = wide(pair.theirs)
    want = np.array([matrix(x[place], ord) for place in np.ndindex(shape[:-2])]).reshape(shape[:-2])
    if keepdims:
        assert found.shape == (*shape[:-2], 1, 1)
        found = ta.reshape(found, shape[:-2])
    if ord in ("nuc", 2, -2):
        near(
            check(found, want.shape, real_name(name)),
            want,
            real_name(name),
            10 if real_name(name) != "float64" else 1e8,
        )
    else:
        agrees(found, want, real_name(name))
    for axes in itertools.permutations(range(len(shape)), 2):
        turned = ta.moveaxis(pair.mine, (-2, -1), axes)
        again = ta.linalg.norm(turned, ord, axes, keepdims)
        assert again.shape == (np.sum(wide(turned), axis=axes, keepdims=keepdims)).shape
        assert ta.reshape(again, shape[:-2]).tolist() == found.tolist()
    if len(shape) == 2:
        assert ta.linalg.norm(pair.mine, ord).tolist() == found.tolist()


@pytest.mark.parametrize("x", [[3.0, 4.0], [[3.0, 0.0], [0.0, 4.0]], [[[3.0], [4.0]]], [3 + 4j], 5.0])
def test_the_norm_of_all_elements(x):
    assert ta.linalg.norm(ta.asarray(x)).item() == ta.linalg.vector_norm(ta.asarray(x)).item() == 5
    assert ta.linalg.norm(ta.asarray(x), keepdims=True).shape == (1,) * np.ndim(x)


def test_no_elements():
    for shape in ((0,), (0, 2), (2, 0)):
        x = ta.zeros(shape)
        assert ta.linalg.norm(x).item() == ta.linalg.vector_norm(x, ord=math.inf).item() == 0
    for ord in ("fro", "nuc", 1, 2, math.inf):
        for shape in ((0, 2), (2, 0), (0, 0)):
            assert ta.linalg.matrix_norm(ta.zeros(shape), ord=ord).item() == 0
    assert ta.linalg.matrix_norm(ta.zeros((0, 2, 2)), ord=-2).shape == (0,)
    for ord, shape in ((-1, (2, 0, 3)), (-math.inf, (2, 3, 0))):  # columns and rows exist, and their sums are 0
        assert ta.linalg.matrix_norm(ta.zeros(shape), ord=ord).tolist() == [0, 0]
        assert ta.linalg.norm(ta.zeros(shape), ord, (1, 2), keepdims=True).tolist() == [[[0]], [[0]]]
        with pytest.raises(ShapeError, match=r"^linalg.matrix_norm: expected at least one element"):
            ta.linalg.matrix_norm(ta.zeros(shape).mT, ord=ord)


@pytest.mark.parametrize("name", ["float64", "complex128"])
def test_squares_neither_overflow_nor_underflow(name):
    for scale in (2.0**700, 2.0**-700, 2.0**1022, 5e-324 * 2**10):
        x = ta.asarray([[3.0 * scale / 8, 4.0 * scale / 8], [0.0, 0.0]], dtype=name)
        assert ta.linalg.norm(x).item() == ta.linalg.matrix_norm(x).item() == 5 * scale / 8
        assert ta.linalg.norm(x, axis=1).tolist() == [5 * scale / 8, 0]
        assert ta.linalg.vector_norm(x, axis=(0, 1), keepdims=True).tolist() == [[5 * scale / 8]]
    big = ta.asarray([1e30, 1e30], dtype="complex64" if name == "complex128" else "float32")
    assert abs(ta.linalg.norm(big).item() / (math.sqrt(2) * 1e30) - 1) < 1e-6
    assert ta.linalg.norm(ta.asarray([math.inf, 1.0], dtype=name)).item() == math.inf
    assert math.isnan(ta.linalg.norm(ta.asarray([math.nan, math.inf], dtype=name)).item())
    assert math.isnan(ta.linalg.norm(ta.asarray([math.nan, 1e300], dtype=name)).item())


def test_narrow_and_many_elements_are_added_up_wide():
    assert ta.linalg.norm(ta.ones(1 << 16, dtype="bfloat16")).item() == 256
    assert ta.linalg.vector_norm(ta.ones(5000, dtype="float16"), ord=1).item() == 5000
    assert ta.linalg.matrix_norm(ta.full((1, 3000), 100.0, dtype="float16"), ord=1).item() == 100


@given(st.data(), NAMES, st.sampled_from([None, *MATRIX_ORDERS]))
def test_condition_numbers(data, name, p):
    square = data.draw(tame(name, (2, 3, 3))).theirs
    x = ta.asarray(wide(square) + 12 * np.eye(3)).astype("float64" if name == "bool" else name)
    name = x.dtype.name
    with np.errstate(all="ignore"):
        want = np.linalg.cond(wide(x), p)
    found = check(ta.linalg.cond(x, p), (2,), real_name(name))
    assert np.all(np.abs(found - want) <= 200 * float(ta.finfo(float_name(name)).eps) * want + 1e-12)


def test_singular_matrices_have_infinite_condition():
    for p in (None, 1, "fro"):
        assert ta.linalg.cond(ta.zeros((2, 2)), p).item() == math.inf
    assert ta.linalg.cond(ta.asarray([[1.0, 2.0, 2.0], [0.0, 0.0, 1.0]])).item() > 1


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(2, 70000), (70000, 3), (40, 1000)])
def test_a_power_of_two_changes_no_other_bits(shape: tuple[int, int], dtype: str) -> None:
    rng = np.random.default_rng(2)
    x = (rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype == "complex128" else 0)).astype(dtype)
    rows = np.where(np.arange(shape[0]) == 1, 2.0**600, 1.0)
    for power, order in itertools.product((2.0**505, 2.0**520, 2.0**-600, 2.0**800, rows), "CF"):
        given = np.array(x, order=order), np.array(x * np.reshape(power, (-1, 1)), order=order)
        norms, found = (ta.to_numpy(ta.linalg.vector_norm(ta.asarray(each), axis=1)) for each in given)
        assert found.tobytes() == (norms * power).tobytes()


@pytest.mark.parametrize("size", [1e300, 1e200, 3.0, 1e-200, 5e-324, 0.0, math.inf, math.nan])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_one_norm_has_the_bits_of_one_of_many(size, dtype):
    x = ta.asarray(np.array([0.75, -1, 0.5]) * size).astype(dtype)
    one, many = ta.linalg.vector_norm(x), ta.linalg.vector_norm(ta.stack([x, ta.ones_like(x)]), axis=1)
    assert ta.to_numpy(one).tobytes() == ta.to_numpy(many)[:1].tobytes()
    with np.errstate(all="ignore"):
        expected = math.hypot(*(0.75 * size, -size, 0.5 * size))
    np.testing.assert_allclose(one.item(), expected, rtol=1e-15, atol=0)


def test_only_squares_that_are_out_of_range_are_scaled(monkeypatch):
    """The norm of other numbers on the host adds up one square of each."""
    counts, scaled = [], OF_REDUCTIONS["square_of_large"]
    monkeypatch.setitem(OF_REDUCTIONS, "square_of_large", lambda x, *, out: (counts.append(x.size), scaled(x, out=out)))
    KERNELS.clear()
    PLANS.clear()
    try:
        for numbers, expected in (([3.0, 4.0], 0), ([3e200, 4e200], 2), ([3e-200, 4e-200], 2), ([0.0, 0.0], 2)):
            counts.clear()
            found = ta.linalg.vector_norm(ta.asarray(numbers, dtype="float64", device="cpu")).item()
            assert (found, sum(counts)) == (math.hypot(*numbers), expected)
        rows = ta.asarray([[3.0, 4.0], [3e200, 4e200]], dtype="float64", device="cpu")
        assert ta.linalg.vector_norm(rows, axis=1).tolist() == [5.0, math.hypot(3e200, 4e200)]
    finally:
        KERNELS.clear()
        PLANS.clear()
