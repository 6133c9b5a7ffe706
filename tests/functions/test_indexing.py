"""Basic indexing and assignment, against NumPy on the same memory: every view must be NumPy's view, byte for byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices
from support.views import SHAPES, assert_same_view, pair, part, views

import tilearray as ta
from tilearray.errors import BroadcastError, DTypeError, IndexingError, WriteError


@given(views())
def test_chains_of_views_are_numpys(both):
    assert_same_view(*both)


KEYS = [
    ...,
    None,
    (),
    slice(None),
    0,
    -1,
    (0, 0, 0),
    (-2, -3, -4),
    (slice(None, None, -1), ..., slice(None, None, -3)),
    (slice(5, 1),),
    (slice(-100, 100), 1),
    (..., 2, None),
    (None, slice(1, None), None, ..., None),
    slice(10**30, -(10**30), -(10**29)),
    (np.int8(1), np.uint64(2)),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_keys(key):
    source, x = pair((2, 3, 4))
    assert_same_view(x[key], part(source, key))


def test_zero_dimensional_arrays_are_indices():
    source, x = pair((5,))
    one, four = ta.asarray(1), ta.asarray(4, dtype="uint8")
    assert_same_view(x[one:four:one], source[1:4])
    assert x[four].item() == x[np.array(4)].item() == 4


INTEGERS = [int, np.int64, np.int8, np.array, ta.asarray]
"""What makes an index of an int: a number, NumPy's number, or an array without axes."""


@given(st.data())
def test_known_keys_take_any_integers(data):
    shape = data.draw(array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    plain = data.draw(basic_indices(shape, max_dims=6, allow_newaxis=True, allow_ellipsis=True))
    parts = plain if isinstance(plain, tuple) else (plain,)
    source, x = pair(shape)
    for _ in range(3):
        key = tuple([data.draw(st.sampled_from(INTEGERS))(each) if type(each) is int else each for each in parts])
        key = key if isinstance(plain, tuple) else key[0]
        assert_same_view(x[key], part(source, plain))
        source[plain] += 100
        x[key] += 10
        assert_same_view(x[key], part(source, plain))


@pytest.mark.parametrize("key", [(..., slice(5, None)), (slice(5, None), ...), (..., 5), (5, ..., None), (None, ...)])
def test_a_mask_behind_an_ellipsis_takes_several_axes(key):
    source, x = pair((10, 2, 3))
    mask = np.array([[True, False, True], [False, True, True]])
    for each in (mask, ta.asarray(mask), mask.tolist()):
        assert x[(*key, each)].tolist() == source[(*key, mask)].tolist()


def test_indexing_a_0_d_array():
    x = ta.asarray(5)
    assert x[()].item() == x[...].item() == 5
    assert x[None].shape == (1,)
    x[()] = 6
    x[...] += 1
    assert x.item() == 7


# --- assignment -------------------------------


@given(SHAPES.flatmap(lambda shape: st.tuples(st.just(shape), basic_indices(shape, allow_ellipsis=True))))
def test_assigning_a_number(case):
    shape, key = case
    source, x = pair(shape)
    wanted = source.copy()
    wanted[key] = 77
    x[key] = 77
    assert source.tolist() == wanted.tolist()


@given(st.data())
def test_assigning_an_array_broadcasts_as_numpy(data):
    shape = data.draw(SHAPES)
    key = data.draw(basic_indices(shape, max_dims=5, allow_newaxis=True, allow_ellipsis=True))
    source, x = pair(shape)
    target = np.shape(source[key])
    assume(isinstance(source[key], np.ndarray))
    kept = target[data.draw(st.integers(0, len(target))) :]
    value_shape = tuple(size if data.draw(st.booleans()) else 1 for size in kept)
    value_shape = (1,) * data.draw(st.integers(0, 2)) + value_shape  # NumPy drops leading ones, even beyond the target
    value = -1 - np.arange(np.prod(value_shape, dtype=int), dtype=np.int16).reshape(value_shape)
    wanted = source.copy()
    wanted[key] = value
    x[key] = ta.asarray(value)
    assert source.tolist() == wanted.tolist()


@given(st.data())
def test_assigning_a_view_of_the_same_memory_is_numpys(data):
    """Source and target overlap in any way."""
    shape = data.draw(array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5))
    source, x = pair(shape)
    mirrored = source.copy()
    into, of = data.draw(basic_indices(shape)), data.draw(basic_indices(shape))
    backwards = data.draw(st.booleans())
    part = mirrored[of]
    assume(isinstance(part, np.ndarray) and isinstance(mirrored[into], np.ndarray))
    taken, mine = (part.T, x[of].T) if backwards else (part, x[of])
    try:
        np.broadcast_to(taken, mirrored[into].shape)
    except ValueError:
        assume(False)
    mirrored[into] = taken.copy()  # without it NumPy 2.4 goes wrong on ``x[1, ::-1] = x[::-1, -1]``
    x[into] = mine
    assert source.tolist() == mirrored.tolist()


@pytest.mark.parametrize(
    ("into", "of"),
    [
        (slice(1, None), slice(None, -1)),
        (slice(None, -1), slice(1, None)),
        (slice(None), slice(None, None, -1)),
        (slice(None, None, 2), slice(1, None, 2)),
        (slice(4, None), slice(0, -4)),
    ],
)
@pytest.mark.parametrize("size", [10, 300_000])
def test_assigning_shifted_and_mirrored_memory(into, of, size):
    """Long enough for several blocks, too."""
    source, x = pair((size,), "int64")
    wanted = source.copy()
    wanted[into] = wanted[of].copy()
    x[into] = x[of]
    assert np.array_equal(source, wanted)


def test_assignment_casts_within_the_kind_only():
    x = ta.zeros(2, dtype="float32")
    x[...] = ta.asarray([1, 2])
    assert x.tolist() == [1, 2]
    counts = ta.zeros(2, dtype="int8")
    counts[0] = ta.asarray(257)  # integers wrap in narrower ones
    assert counts.tolist() == [1, 0]
    with pytest.raises(DTypeError, match=r"expected a target that can store the float32 result, got int8"):
        counts[...] = x
    assert counts.tolist() == [1, 0]


def test_assignment_takes_numpy_scalars():
    x = ta.zeros(2, dtype="float32")
    x[0] = np.float64(1.5)
    x[1] = np.int8(3)
    assert x.tolist() == [1.5, 3]


def test_a_view_that_repeats_elements_is_not_assigned_to():
    x = ta.arange(3)
    for view in (ta.broadcast_to(x, (2, 3)), ta.sliding_window_view(x, 2), ta.as_strided(x, (2,), (0,))):
        with pytest.raises(WriteError, match=r"setitem: the target has several elements in one place"):
            view[...] = 0
        with pytest.raises(WriteError, match=r"several elements in one place"):
            view[...] = view
    assert x.tolist() == [0, 1, 2]
    ta.broadcast_to(x, (2, 3))[0] = 7  # one row of it does not repeat
    assert x.tolist() == [7, 7, 7]


def test_read_only_memory_is_not_assigned_to():
    x = ta.asarray(b"abc")
    for value in (1, ta.asarray(1, dtype="uint8"), x):
        with pytest.raises(WriteError, match=r"setitem: the target is read-only; write to x.copy\(\) instead"):
            x[...] = value
    assert bytes(x.tolist()) == b"abc"
    copied = x.copy()
    copied[0] = 0
    assert copied.tolist() == [0, 98, 99]


def test_a_value_of_another_shape_is_refused():
    with pytest.raises(BroadcastError, match=r"axis -1 .*, got 2 and 3|axis -1 .*, got 3 and 2"):
        ta.zeros((2, 3))[...] = ta.zeros(2)
    with pytest.raises(BroadcastError, match=r"broadcast to shape \(2, 3\), which does not fit the target's \(3,\)"):
        ta.zeros(3)[...] = ta.zeros((2, 3))
    with pytest.raises(BroadcastError, match=r"target"):
        ta.zeros(1)[...] = ta.zeros(3)


# --- bad keys -------------------------------

BAD_KEYS = [
    (3, r"expected -3 <= index < 3 for axis 0 of size 3, got 3"),
    (-4, r"expected -3 <= index < 3 for axis 0 of size 3, got -4"),
    ((0, 4), r"axis 1 of size 4, got 4"),
    ((0, 0, 0), r"expected at most 2 indices for shape \(3, 4\), got 3"),
    ((..., ...), r"at most one \.\.\."),
    (1.0, r"got 1.0 \(float\); write int\(1.0\)"),
    ("a", r"got 'a' \(str\)"),
    (slice(None, None, 0), r"a step other than 0"),
    (slice(1.0), r"slice of integers"),
    ([0, 3], r"index 3 is out of bounds for axis 0 with size 3"),
    (np.array([0.5]), r"expected arrays of integers or bools as indices, got float64; write index.astype"),
    (np.array([True]), r"boolean index did not match"),
]


@pytest.mark.parametrize(("key", "message"), BAD_KEYS, ids=[str(key) for key, _ in BAD_KEYS])
def test_a_bad_key_is_named(key, message):
    x = ta.zeros((3, 4))
    with pytest.raises(IndexingError, match=message):
        x[key]
    with pytest.raises(IndexingError, match=message):
        x[key] = 1
