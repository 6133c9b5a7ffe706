"""Searching and sorting against Python's own `sorted`, `bisect` and `enumerate`; any views and dtypes."""

from __future__ import annotations

import bisect
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.oracles.axes import NAMES, REAL_NAMES, bits, expand, flat, groups, pairs, python

import tilearray as ta
from tilearray.errors import AxisError, DTypeError, IndexingError, OperandError, ShapeError


def key(value: Any) -> tuple[bool, Any]:
    """NaN behind everything else, and all of them alike."""
    return (True, 0) if value != value else (False, value)


def place_of(data: st.DataObject, ndim: int) -> int:
    assume(ndim)
    return data.draw(st.integers(-ndim, ndim - 1))


@given(pairs(REAL_NAMES), st.data(), st.booleans(), st.booleans())
def test_sorting_is_pythons(pair, data, descending, stable):
    axis = place_of(data, pair.theirs.ndim)
    found = ta.sort(pair.mine, axis=axis, descending=descending, stable=stable)
    order = ta.argsort(pair.mine, axis=axis, descending=descending, stable=stable)

    def positions(row: list[Any]) -> list[int]:
        return sorted(range(len(row)), key=lambda place: key(row[place]), reverse=descending)

    want = expand(positions, pair.theirs, axis).astype(np.int64).reshape(pair.theirs.shape)
    assert (order.dtype, order.shape) == (ta.int64, pair.mine.shape)
    if stable:
        assert flat(order) == list(want.ravel())
    else:  # any order of equal elements, and every index once
        places = ta.to_numpy(order)
        mine, theirs = (python(np.take_along_axis(pair.theirs, some, axis)).ravel() for some in (places, want))
        assert list(map(key, mine)) == list(map(key, theirs))
        assert np.array_equal(np.sort(places, axis), np.sort(want, axis))
    assert (found.dtype, found.shape) == (pair.mine.dtype, pair.mine.shape)
    in_order = np.take_along_axis(pair.theirs, want, axis)
    not_nan = np.asarray([value == value for value in python(in_order).ravel()], bool)  # a NaN may lose its payload
    assert bits(ta.to_numpy(found).ravel()[not_nan]) == bits(in_order.ravel()[not_nan])
    assert all(value != value for value in python(ta.to_numpy(found)).ravel()[~not_nan])
    assert found._buffer is not pair.mine._buffer


@given(pairs(REAL_NAMES), st.data(), st.booleans())
def test_positions_of_extremes_are_the_first(pair, data, keepdims):
    axis = data.draw(st.sampled_from([None, *range(-pair.theirs.ndim, pair.theirs.ndim)]))
    shape, parts = groups(pair.theirs, axis, keepdims)
    for mine, choose in ((ta.argmax, max), (ta.argmin, min)):
        if not (pair.theirs.size if axis is None else pair.theirs.shape[axis]):
            with pytest.raises(ShapeError, match=f"{mine.__name__}: expected at least one element to choose from"):
                mine(pair.mine, axis=axis, keepdims=keepdims)
            continue
        found = mine(pair.mine, axis=axis, keepdims=keepdims)
        assert (found.shape, found.dtype) == (shape, ta.int64)
        for got, part in zip(flat(found), parts, strict=True):
            nans = [place for place, value in enumerate(part) if value != value]
            assert got == (nans[0] if nans else part.index(choose(part)))


@given(pairs(NAMES))
def test_nonzero_is_pythons(pair):
    if not pair.theirs.ndim:
        with pytest.raises(ShapeError, match=r"nonzero: expected an array with axes, got a 0-d one; write ta.reshape"):
            ta.nonzero(pair.mine)
        return
    numbers = python(pair.theirs)
    want = [place for place in np.ndindex(numbers.shape) if numbers[place]]
    found = ta.nonzero(pair.mine)
    assert [axis.dtype for axis in found] == [ta.int64] * pair.theirs.ndim
    assert list(zip(*[axis.tolist() for axis in found], strict=True)) == want


@given(pairs(REAL_NAMES), st.data(), st.sampled_from(["left", "right"]), st.booleans())
def test_searchsorted_is_bisection(pair, data, side, sorting):
    name = pair.theirs.dtype.name
    other = data.draw(pairs(st.just(name)))
    x1 = ta.asarray(np.ascontiguousarray(pair.theirs).ravel().copy())
    row = sorted([key(value) for value in python(ta.to_numpy(x1))])
    find = bisect.bisect_left if side == "left" else bisect.bisect_right
    found = (
        ta.searchsorted(x1, other.mine, side=side, sorter=ta.argsort(x1))
        if sorting
        else ta.searchsorted(ta.sort(x1), other.mine, side=side)
    )
    assert (found.shape, found.dtype) == (other.mine.shape, ta.int64)
    assert flat(found) == [find(row, key(value)) for value in python(other.theirs).ravel()]


def test_searchsorted_of_numbers_and_in_the_common_dtype():
    x = ta.asarray([1, 2, 2, 3], dtype="int8")
    assert ta.searchsorted(x, 2).shape == ()
    assert [ta.searchsorted(x, value).item() for value in (0, 2, 2.5, 4)] == [0, 1, 3, 4]
    assert ta.searchsorted(x, ta.asarray([[1.5], [2.0]]), side="right").tolist() == [[1], [3]]
    assert ta.searchsorted(x, ta.asarray(1000)).item() == 4
    assert ta.searchsorted(ta.asarray([0.5, 1.5], dtype="bfloat16"), 1).item() == 1
    assert ta.searchsorted(ta.asarray([], dtype="float32"), 1.0).item() == 0
    assert ta.searchsorted(ta.asarray([1.0, math.nan]), math.nan).item() == 1
    with pytest.raises(ta.ScalarOverflowError):
        ta.searchsorted(x, 1000)


X = ta.asarray([[1.0, 2.0], [3.0, 4.0]])
ERRORS = [
    (lambda: ta.sort({1}), OperandError, r"sort: expected a tilearray Array, got set"),
    (lambda: ta.sort(X, axis=2), AxisError, r"sort: expected -2 <= axis < 2, got axis 2"),
    (lambda: ta.argsort(ta.asarray(1)), AxisError, r"argsort: expected no axis \(the array is 0-d\)"),
    (lambda: ta.sort(X.astype("complex64")), DTypeError, r"sort: expected dtypes .* got complex64; write x.real"),
    (lambda: ta.argmax(X, axis=(0, 1)), ShapeError, r"argmax: expected axis as an int"),
    (lambda: ta.argmin(X.astype("complex64")), DTypeError, r"argmin: .* got complex64"),
    (lambda: ta.argsort(X.astype("float8_e3m4")), DTypeError, r"argsort: float8_e3m4 is a storage dtype"),
    (lambda: ta.searchsorted(X, X), ShapeError, r"searchsorted: expected a 1-d array, got shape \(2, 2\)"),
    (lambda: ta.searchsorted(X[0], X, side="middle"), ShapeError, r"searchsorted: expected side .* got 'middle'"),
    (lambda: ta.searchsorted(X[0], {1}), OperandError, r"searchsorted: expected a tilearray Array, got set"),
    (lambda: ta.searchsorted(X[0], 1j), DTypeError, r"searchsorted: .* got complex64"),
    (
        lambda: ta.searchsorted(X[0], 1, sorter={0, 1}),
        OperandError,
        r"searchsorted: .*, got set; write ta.asarray\(sorter",
    ),
    (lambda: ta.searchsorted(X[0], 1, sorter=X[0]), DTypeError, r"searchsorted: expected integers in sorter, got floa"),
    (lambda: ta.searchsorted(X[0], 1, sorter=ta.arange(3)), ShapeError, r"searchsorted: expected sorter of shape \(2,"),
    (lambda: ta.searchsorted(X[0], 1, sorter=ta.asarray([0, 2])), IndexingError, r"indices from 0 to 1 .* got 0 to 2"),
    (lambda: ta.searchsorted(X[0], 1, sorter=ta.asarray([-1, 0])), IndexingError, r"sorter, got -1 to 0"),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS, ids=[message for *_, message in ERRORS])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert type(caught.value) is error
