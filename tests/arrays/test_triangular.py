"""Triangles, diagonals and grids against NumPy: any views, all dtypes, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.drawing import shapes
from support.oracles.formats import ARITHMETIC, STORAGE, dtype_of
from support.pairs import Pair, assert_same, pairs

import tilearray as ta
from tilearray.errors import DTypeError, OperandError, ShapeError

DIAGONALS = st.one_of(st.integers(-12, 12), st.sampled_from([2**70, -(2**70), 2**31, -(2**63)]))
SIZES = st.integers(0, 7)
NAMES = [*ARITHMETIC, *STORAGE]


def number(value: float, name: str) -> np.ndarray:
    """0 or 1 of a dtype; float8_e8m0fnu has no zero, and its cast is NaN."""
    return np.array(value, np.float32).astype(dtype_of(name))


def clipped(k: int) -> int:
    return min(max(k, -1000), 1000)


@given(pairs().filter(lambda pair: pair.theirs.ndim >= 2), DIAGONALS)
def test_triangles_are_numpys(pair: Pair, k: int) -> None:
    mine, theirs = pair
    zero = number(0, theirs.dtype.name)
    lower, not_upper = (np.tri(*theirs.shape[-2:], clipped(k) - less, dtype=bool) for less in (0, 1))
    assert_same(ta.tril(mine, k=k), np.where(lower, theirs, zero), mine)
    assert_same(ta.triu(mine, k=k), np.where(not_upper, zero, theirs), mine)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(-7, 7))
def test_the_oracle_is_numpys_own(rows: int, columns: int, k: int) -> None:
    """float8_e8m0fnu is why the test above spells it out."""
    theirs = np.arange(1, rows * columns + 1).reshape(rows, columns)
    assert ta.tril(ta.asarray(theirs), k=k).tolist() == np.tril(theirs, k).tolist()
    assert ta.triu(ta.asarray(theirs), k=k).tolist() == np.triu(theirs, k).tolist()


def test_a_triangle_keeps_nan_infinities_and_signed_zeros():
    x = ta.asarray([[-0.0, float("nan")], [float("inf"), -0.0]])
    assert repr(ta.tril(x).tolist()) == "[[-0.0, 0.0], [inf, -0.0]]"
    assert repr(ta.triu(x).tolist()) == "[[-0.0, nan], [0.0, -0.0]]"
    assert ta.tril(ta.ones((2, 2), dtype="bool")).tolist() == [[True, False], [True, True]]


@pytest.mark.parametrize("semantics", ["array-api", "triton"])
@pytest.mark.parametrize("name", NAMES)
def test_a_triangle_keeps_the_dtype(name, semantics):
    with ta.semantics(semantics):
        assert ta.tril(ta.ones((2, 2), dtype=name)).dtype == ta.triu(ta.ones((2, 2), dtype=name)).dtype == name


@given(SIZES, st.none() | SIZES, DIAGONALS, st.sampled_from(NAMES))
@example(3, None, 0, "float8_e8m0fnu")
def test_eye_is_numpys(rows: int, columns: int | None, k: int, name: str) -> None:
    wanted = np.where(np.eye(rows, columns, clipped(k), dtype=bool), number(1, name), number(0, name))
    assert_same(ta.eye(rows, columns, k=k, dtype=name), wanted)


def test_eye_takes_numpys_names():
    np.testing.assert_array_equal(ta.to_numpy(ta.eye(N=2, M=3, k=1)), np.eye(N=2, M=3, k=1))


def test_eye_takes_the_default_dtype_and_device():
    assert ta.eye(2).dtype == ta.float32
    assert ta.eye(np.int64(2), k=np.int8(1), dtype=ta.bfloat16, device="cpu").tolist() == [[0, 1], [0, 0]]
    with ta.semantics("triton"):
        assert ta.eye(2).dtype == ta.float32


@given(st.data(), st.sampled_from(["xy", "ij"]))
def test_meshgrid_is_numpys(data, indexing):
    both = [data.draw(pairs((data.draw(st.integers(0, 4)),))) for _ in range(data.draw(st.integers(0, 4)))]
    found = ta.meshgrid(*[pair.mine for pair in both], indexing=indexing)
    wanted = np.meshgrid(*[pair.theirs for pair in both], indexing=indexing)
    assert isinstance(found, tuple)
    for mine, theirs in zip(found, wanted, strict=True):
        assert_same(mine, theirs, *[pair.mine for pair in both])


def test_a_grid_can_be_written_to():
    x = ta.arange(2)
    first, second = ta.meshgrid(x, x)
    first[0, 0] = 9
    assert (x.tolist(), first.tolist(), second.tolist()) == ([0, 1], [[9, 1], [0, 1]], [[0, 0], [1, 1]])


@given(shapes())
def test_grids_of_many_axes(shape: tuple[int, ...]) -> None:
    found = ta.meshgrid(*[ta.arange(size) for size in shape], indexing="ij")
    assert [grid.tolist() for grid in found] == np.indices(shape).tolist()


BAD = [
    (lambda x: ta.tril(x[0]), ShapeError, r"tril: expected at least 2 axes, got shape \(3,\); write ta.broadcast_to"),
    (lambda x: ta.triu(x[0, 0]), ShapeError, r"triu: expected at least 2 axes, got shape \(\)"),
    (lambda x: ta.tril(x, k=0.5), ShapeError, r"tril: expected k as an int, got float; write int\(k\)"),
    (lambda x: ta.triu(x, k=None), ShapeError, r"triu: expected k as an int, got NoneType"),
    (lambda x: ta.tril({1}), OperandError, r"tril: expected a tilearray Array, got set; write ta.asarray\(x\)"),
    (lambda x: ta.triu("ab"), OperandError, r"triu: expected a tilearray Array, got str"),
    (lambda x: ta.eye(-1), ShapeError, r"eye: expected sizes >= 0 in the shape, got \(-1, -1\)"),
    (lambda x: ta.eye(2, 1.5), ShapeError, r"eye: expected shape as .* ints, got \(2, 1.5\)"),
    (lambda x: ta.eye((2, 3)), ShapeError, r"eye: expected shape as .* ints"),
    (lambda x: ta.eye(2, k=1.5), ShapeError, r"eye: expected k as an int, got float"),
    (lambda x: ta.eye(2, dtype="int33"), DTypeError, r"eye: 'int33' is not a dtype"),
    (lambda x: ta.meshgrid(x), ShapeError, r"meshgrid: expected 1-d arrays, got shape \(2, 3\) for array 0; write"),
    (lambda x: ta.meshgrid(x[0], x[0, 0]), ShapeError, r"meshgrid: .* got shape \(\) for array 1; write ta.reshape"),
    (lambda x: ta.meshgrid(x[0], {1}), OperandError, r"meshgrid: expected a tilearray Array, got set"),
    (lambda x: ta.meshgrid(x[0], indexing="yx"), ShapeError, r"meshgrid: expected indexing as 'xy' or 'ij', got 'yx'"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[message for *_, message in BAD])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call(ta.zeros((2, 3)))
