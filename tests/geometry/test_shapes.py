"""What a user writes for shapes, axes and indices: what is accepted, and what each refusal says."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilearray.errors import AxisError, BroadcastError, IndexingError, LayoutError, ShapeError
from tilearray.geometry.layout import Layout, as_shape, broadcast_shapes, normalize_axes, normalize_axis, resolve_shape


@given(st.lists(st.lists(st.sampled_from([0, 1, 1, 2, 3]), max_size=4).map(tuple), max_size=4))
def test_broadcast_shapes(shapes):
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        for function in (None, "add"):
            with pytest.raises(BroadcastError, match=f"^{function or 'broadcast_shapes'}: expected equal sizes, or 1"):
                broadcast_shapes(*shapes, function=function)
    else:
        assert broadcast_shapes(*shapes) == broadcast_shapes(*shapes, function="add") == expected
        assert broadcast_shapes(*map(list, shapes)) == expected


@pytest.mark.parametrize(
    ("a", "b", "axis", "m", "n"),
    [
        ((4, 3), (4, 2), -1, 3, 2),
        ((4, 3), (5, 1), -2, 4, 5),
        ((3,), (7, 1, 0), -1, 0, 3),
        ((2, 1, 1), (3, 4, 5), -3, 2, 3),
    ],
)
def test_broadcast_error_names_axis_sizes_and_shapes(a, b, axis, m, n):
    with pytest.raises(BroadcastError) as error:
        broadcast_shapes(a, b, (1,), function="add")
    assert str(error.value) == (
        f"add: expected equal sizes, or 1, along axis {axis} (-1 is the last), got {m} and {n}: the operands "
        f"could not be broadcast together with shapes {a} {b} (1,); write expand_dims or reshape to align the axes"
    )


def test_shapes_and_axes_as_written():
    assert as_shape(3, "f") == as_shape([3], "f") == as_shape(np.int64(3), "f") == as_shape((np.uint8(3),), "f") == (3,)
    assert type(as_shape(np.array([3]), "f")[0]) is int
    assert resolve_shape([2, -1], 6) == (2, 3)
    assert resolve_shape(-1, 0) == (0,)
    assert resolve_shape((), 1) == ()
    assert [normalize_axis(axis, 2, "f") for axis in (-2, -1, 0, np.int8(1))] == [0, 1, 0, 1]
    assert normalize_axes(-1, 2, "f") == normalize_axes([1], 2, "f") == (1,)
    assert normalize_axes((), 0, "f") == ()


X = Layout.of((4, 3))
ERRORS = {
    ShapeError: [
        (
            lambda: as_shape((2, -1), "f"),
            "f: expected sizes >= 0 in the shape, got (2, -1): negative dimensions are not allowed; write",
        ),
        (
            lambda: as_shape((2, 1.0), "f"),
            "f: expected shape as an int or a tuple of ints, got (2, 1.0); write sizes as",
        ),
        (lambda: as_shape(True, "f"), "f: expected shape as an int or a tuple of ints, got True; write sizes as ints"),
        (lambda: as_shape("ab", "f"), "f: expected shape as an int or a tuple of ints, got 'ab'; write sizes as ints"),
        (lambda: broadcast_shapes((-1,), (1,)), "broadcast_shapes: expected sizes >= 0 in the shape, got (-1,)"),
        (
            lambda: resolve_shape((5, -1), 12),
            "reshape: expected a shape of 12 elements, got (5, -1): cannot reshape array of size 12 into shape (5, -1)",
        ),
        (
            lambda: resolve_shape((-1, -1), 4),
            "reshape: expected a shape of 4 elements, got (-1, -1): cannot reshape array of size 4 into shape (-1, -1)",
        ),
        (
            lambda: resolve_shape((0, -1), 0),
            "reshape: expected a shape of 0 elements, got (0, -1): cannot reshape array of size 0 into shape (0, -1);",
        ),
        (
            lambda: resolve_shape((-2, -3), 6),
            "reshape: expected a shape of 6 elements, got (-2, -3): cannot reshape array of size 6 into shape (-2, -3)",
        ),
        (lambda: resolve_shape((-2, -3, -1), 6), "reshape: expected a shape of 6 elements, got (-2, -3, -1)"),
        (
            lambda: X.reshape((5, 2)),
            "reshape: expected a shape of 12 elements, got (5, 2): cannot reshape array of size 12 into shape (5, 2);",
        ),
        (
            lambda: normalize_axis(1.0, 2, "f"),
            "f: expected axis as an int or a tuple of ints, got (1.0,); write axes as",
        ),
        (
            lambda: normalize_axes((0, -2), 2, "f"),
            "f: expected distinct axes, got (0, -2) for 2 axes: repeated axis; write each axis",
        ),
        (lambda: X.permute((0,)), "permute_dims: expected all 2 axes, got (0,); write every axis once"),
        (
            lambda: X.moveaxis((0, 1), 0),
            "moveaxis: expected as many destinations as sources, got (0,) for (0, 1); write",
        ),
        (
            lambda: X.squeeze(1),
            "squeeze: expected size 1 along axis 1, got 3 in shape (4, 3); write an index such as 0",
        ),
        (lambda: X.diagonal(0, 1, -1), "diagonal: expected distinct axes, got (1, -1)"),
        (lambda: X.sliding_window(2), "sliding_window_view: expected a window of 2 sizes for axes (0, 1), got (2,)"),
        (
            lambda: X.sliding_window(4, 1),
            "sliding_window_view: expected a window of at most 3 along axis 1 of shape (4, 3), got 4; write a smaller",
        ),
    ],
    AxisError: [
        (
            lambda: normalize_axis(2, 2, "f"),
            "f: expected -2 <= axis < 2, got axis 2: axis 2 is out of bounds for array of dimension 2; write",
        ),
        (lambda: normalize_axis(-3, 2, "f"), "f: expected -2 <= axis < 2, got axis -3"),
        (lambda: normalize_axis(0, 0, "f"), "f: expected no axis (the array is 0-d), got axis 0"),
        (lambda: X.expand_dims(3), "expand_dims: expected -3 <= axis < 3, got axis 3"),
    ],
    BroadcastError: [
        (
            lambda: X.broadcast_to((4, 5)),
            "broadcast_to: expected size 3 along axis -1 (-1 is the last), got 5: shape (4, 3) could not be broadcast",
        ),
        (
            lambda: X.broadcast_to(3, "f"),
            "f: expected at least the 2 axes of shape (4, 3), got shape (3,), to which it could not be broadcast; writ",
        ),
    ],
    LayoutError: [
        (
            lambda: Layout.as_strided((2, 2), (1,), 0, 0, 9),
            "as_strided: expected one stride for each of 2 axes, got (1,) for shape (2, 2); write 0 for an axis that",
        ),
        (
            lambda: Layout.as_strided(2, 8, 0, 0, 7),
            "as_strided: expected elements 0 to 7, got 0 to 8 from shape (2,), strides (8,), offset 0; write smaller",
        ),
    ],
    IndexingError: [
        (
            lambda: X.index(4),
            "indexing: expected -4 <= index < 4 for axis 0 of size 4, got 4: index 4 is out of bounds for axis 0 with",
        ),
        (lambda: X.index((..., -4)), "indexing: expected -3 <= index < 3 for axis 1 of size 3, got -4"),
        (lambda: Layout.of(0).index(0), "indexing: expected no index at all for axis 0 of size 0, got 0"),
        (
            lambda: X.index((0, 0, 0)),
            "indexing: expected at most 2 indices for shape (4, 3), got 3: too many indices for array; write None for",
        ),
        (lambda: X.index((0, ..., 0, 0)), "indexing: expected at most 2 indices for shape (4, 3), got 3"),
        (lambda: X.index((..., ...)), "indexing: expected at most one ... in an index, got 2; write : for each"),
        (
            lambda: X.index(1.0),
            "indexing: expected an int, a slice, ... or None for axis 0, got 1.0 (float); write int(",
        ),
        (
            lambda: X.index((0, True)),
            "or None for axis 1, got True (bool); write 1 for the index, or an array of dtype",
        ),
        (lambda: X.index(np.True_), "indexing: expected an int, a slice, ... or None for axis 0, got np.True_"),
        (lambda: X.index("a"), "for axis 0, got 'a' (str); write an integer array to select several elements"),
        (lambda: X.index([0]), "for axis 0, got [0] (list); write an integer array to select several elements"),
        (
            lambda: X.index(slice(0, 2, 0)),
            "indexing: expected a slice of integers with a step other than 0 for axis 0, got slice(0, 2, 0); write int",
        ),
        (lambda: X.index(slice(0.0, 2)), "indexing: expected a slice of integers"),
    ],
}


def name(value):
    return value[:40] if isinstance(value, str) else value.__name__


@pytest.mark.parametrize(
    ("kind", "call", "message"), [(kind, *row) for kind, rows in ERRORS.items() for row in rows], ids=name
)
def test_error_messages(kind, call, message):
    with pytest.raises(kind, match=re.escape(message)) as error:
        call()
    assert type(error.value) is kind


def test_an_error_of_an_axis_is_numpys_too():
    with pytest.raises(np.exceptions.AxisError, match="axis 5 is out of bounds for array of dimension 2") as caught:
        normalize_axis(5, 2, "f")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (AxisError, str(caught.value))
    assert isinstance(again, ValueError)
    assert isinstance(again, IndexError)


def test_an_error_of_an_axis_survives_the_pickles_of_dasks_workers():
    support = pytest.importorskip("tblib.pickling_support")
    error = AxisError("f: axis 5 is out of bounds")
    make, given, *_ = support.pickle_exception(error)
    again = make(*given)
    assert (type(again), str(again)) == (AxisError, str(error))
