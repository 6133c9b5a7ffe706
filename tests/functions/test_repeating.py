"""Repeating against NumPy: any views, all dtypes, bit by bit; counts as numbers, lists and Arrays."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.pairs import assert_same, pairs

import tilearray as ta
from tilearray.errors import DTypeError, OperandError, ShapeError
from tilearray.functions import repeating


@given(pairs(), st.integers(0, 3), st.data())
def test_repeat_is_numpys(pair, count, data):
    axis = data.draw(st.sampled_from([None, *range(-pair.theirs.ndim, pair.theirs.ndim)]))
    assert_same(ta.repeat(pair.mine, count, axis=axis), np.repeat(pair.theirs, count, axis=axis), pair.mine)


@given(pairs(), st.data(), st.booleans())
def test_repeat_by_a_count_for_each_element_is_numpys(pair, data, as_array):
    axis = data.draw(st.sampled_from([None, *range(-pair.theirs.ndim, pair.theirs.ndim)]))
    size = pair.theirs.size if axis is None else pair.theirs.shape[axis]
    counts = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    given_counts = ta.asarray(counts, dtype="int8") if as_array else counts
    found = ta.repeat(pair.mine, given_counts, axis=axis)
    wanted = np.repeat(pair.theirs, np.array(counts, int), axis=axis)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    assert ta.to_numpy(found).tobytes() == wanted.tobytes()
    assert found._buffer is not pair.mine._buffer


@given(pairs(), st.lists(st.integers(0, 3), max_size=6))
def test_tile_is_numpys(pair, counts):
    assume(math.prod(counts) * pair.theirs.size < 10_000)
    assert_same(ta.tile(pair.mine, tuple(counts)), np.tile(pair.theirs, counts), pair.mine)


def test_counts_are_any_integers():
    x = ta.arange(2)
    assert ta.tile(x, 2).tolist() == ta.tile(x, [np.int8(2)]).tolist() == [0, 1, 0, 1]
    assert ta.tile(x, np.array(2)).tolist() == ta.tile(x, ta.asarray(2)).tolist() == [0, 1, 0, 1]
    assert ta.repeat(x, np.int64(2)).tolist() == ta.repeat(x, ta.asarray(2)).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("count", [2**62, 10**20])
def test_no_elements_are_repeated_any_number_of_times(count):
    x = ta.zeros((3, 0))
    assert ta.repeat(x, count).shape == (0,)
    assert ta.repeat(x, count, axis=1).shape == (3, 0)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("key", [np.s_[:], np.s_[::-1, 1:], np.s_[::2], np.s_[:0]])
def test_repeat_where_numpy_does_not_reach_is_numpys(key, axis, elsewhere):
    host = np.arange(12.0).reshape(4, 3)
    x = ta.asarray(host, device=elsewhere)[key]
    for count in (0, 1, 3):
        for mine, theirs in ((x, host[key]), (x.T, host[key].T)):
            found = ta.repeat(mine, count, axis=axis)
            assert found.device is elsewhere
            assert np.array_equal(ta.to_numpy(found), np.repeat(theirs, count, axis))


LAUNCHES = [
    lambda x: ta.repeat(x, 5, axis=1),
    lambda x: ta.repeat(x.T, 5),
    lambda x: ta.tile(x, (2, 3, 4)),
]


@pytest.mark.parametrize("call", LAUNCHES)
def test_one_launch(call, monkeypatch, elsewhere):
    seen = []
    run = repeating.store
    monkeypatch.setattr(repeating, "store", lambda *given: seen.append(1) or run(*given))
    assert call(ta.zeros((4, 3), device=elsewhere)).device is elsewhere
    assert len(seen) == 1


# --- bad input -------------------------------

BAD = [
    (lambda x: ta.repeat(x, -1), ShapeError, r"repeat: expected repeats >= 0, got -1; write 0"),
    (lambda x: ta.repeat(x, 1.5), ShapeError, r"repeat: expected repeats as an int, got float; write int\(repeats\)"),
    (lambda x: ta.repeat(x, True), ShapeError, r"repeat: expected repeats as an int, got bool"),
    (
        lambda x: ta.repeat(x, [1, 2], axis=1),
        ShapeError,
        r"repeat: expected one count or 3, got counts of shape \(2,\)",
    ),
    (lambda x: ta.repeat(x, [1, 2, 3]), ShapeError, r"repeat: expected one count or 6, .* write one for each element"),
    (lambda x: ta.repeat(x, [[1, 2, 3]], axis=1), ShapeError, r"repeat: .* got counts of shape \(1, 3\)"),
    (lambda x: ta.repeat(x, [1, -2, 3], axis=1), ShapeError, r"repeat: expected counts >= 0, got -2; write 0"),
    (
        lambda x: ta.repeat(x, [1.0, 2, 3], axis=1),
        DTypeError,
        r"repeat: expected integers as counts, got float32",
    ),
    (lambda x: ta.repeat(x, np.ones(3, bool), axis=1), DTypeError, r"repeat: expected integers as counts, got bool"),
    (lambda x: ta.repeat(x, 2, axis=2), ShapeError, r"repeat: expected -2 <= axis < 2, got axis 2"),
    (lambda x: ta.repeat(x[0, 0], 2, axis=0), ShapeError, r"repeat: expected no axis \(the array is 0-d\)"),
    (lambda x: ta.tile(x, reps=(2, -1)), ShapeError, r"tile: expected reps >= 0, got \(2, -1\)"),
    (lambda x: ta.tile(x, 1.5), ShapeError, r"tile: expected reps as an int or a tuple of ints, got 1.5"),
    (lambda x: ta.repeat({1}, 2), OperandError, r"repeat: expected a tilearray Array, got set"),
    (lambda x: ta.tile("a", 2), OperandError, r"tile: expected a tilearray Array, got str"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[message for *_, message in BAD])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call(ta.zeros((2, 3)))
