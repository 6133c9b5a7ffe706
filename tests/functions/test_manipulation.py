"""Shape manipulation: views of the same memory with NumPy's strides, a copy only where NumPy copies, or an error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from numpy.lib import stride_tricks
from support.views import SHAPES, assert_same_view, flipped, pair, views

import tilearray as ta
from tilearray.errors import BroadcastError, DTypeError, LayoutError, OperandError, ShapeError, WriteError


@given(views(), st.data())
def test_axes_are_rearranged_as_by_numpy(both, data):
    mine, theirs = both
    order = data.draw(st.permutations(range(theirs.ndim)))
    signed = [axis - theirs.ndim if data.draw(st.booleans()) else axis for axis in order]
    assert_same_view(ta.permute_dims(mine, signed), theirs.transpose(order))
    assert_same_view(mine.transpose(*signed) if signed else mine.transpose(), theirs.transpose(order))
    assert_same_view(ta.transpose(mine), theirs.T)
    assert_same_view(mine.T, theirs.T)
    if theirs.ndim >= 2:
        assert_same_view(mine.mT, theirs.mT)
    places = data.draw(st.permutations(range(theirs.ndim)))[: data.draw(st.integers(0, theirs.ndim))]
    assert_same_view(ta.moveaxis(mine, order[: len(places)], places), np.moveaxis(theirs, order[: len(places)], places))


@given(views(), st.data())
def test_axes_come_and_go_as_in_numpy(both, data):
    mine, theirs = both
    count = data.draw(st.integers(1, 3))
    bound = theirs.ndim + count
    axes = tuple(data.draw(st.permutations(range(bound)))[:count])
    assert_same_view(ta.expand_dims(mine, axis=axes), np.expand_dims(theirs, axes))
    assert_same_view(ta.squeeze(mine), theirs.squeeze())
    ones = tuple(axis for axis, size in enumerate(theirs.shape) if size == 1)
    assert_same_view(mine.squeeze(ones), theirs.squeeze(ones))


@given(views(), st.data())
def test_broadcasting_is_numpys(both, data):
    mine, theirs = both
    shape = tuple(data.draw(st.integers(0, 3)) if size == 1 else size for size in theirs.shape)
    shape = (*data.draw(st.lists(st.integers(0, 2), max_size=1)), *shape)
    assert_same_view(ta.broadcast_to(mine, shape), np.broadcast_to(theirs, shape))
    new = len(shape) - theirs.ndim
    kept = [*shape[:new], *(-1 if size == theirs.shape[axis] else size for axis, size in enumerate(shape[new:]))]
    assert_same_view(mine.expand(*kept) if kept else mine.expand(()), np.broadcast_to(theirs, shape))
    other = np.zeros([data.draw(st.sampled_from([1, size])) for size in shape])
    found = ta.broadcast_arrays(mine, ta.asarray(other))
    for view, wanted in zip(found, np.broadcast_arrays(theirs, other), strict=True):
        assert_same_view(view, wanted)


@st.composite
def factorisations(draw: st.DrawFn, size: int) -> tuple[int, ...]:
    """A shape of so many elements."""
    shape: list[int] = []
    left = size
    for _ in range(draw(st.integers(0, 4))):
        shape.append(draw(st.sampled_from([n for n in range(1, left + 1) if left % n == 0] or [0, 1])))
        left = left // shape[-1] if shape[-1] else 0
    return (*shape, left) if left != 1 or not shape else tuple(shape)


@given(views(), st.data())
def test_reshape_is_a_view_where_numpys_is(both, data):
    mine, theirs = both
    assume(theirs.size <= 200)
    shape = data.draw(factorisations(theirs.size))
    assume(math.prod(shape) == theirs.size)
    wanted = theirs.reshape(shape)
    found = mine.reshape(shape)
    assert found.tolist() == wanted.tolist()
    shared = theirs.size > 0 and np.shares_memory(wanted, theirs)
    if shared:
        assert_same_view(found, wanted)
        assert_same_view(ta.reshape(mine, shape, copy=False), wanted)
    elif theirs.size:
        assert found._buffer is not mine._buffer
        with pytest.raises(LayoutError, match=r"reshape: .* has no view of shape"):
            ta.reshape(mine, shape, copy=False)
    copied = ta.reshape(mine, shape, copy=True)
    assert copied._buffer is not mine._buffer
    assert copied.tolist() == wanted.tolist()
    assert ta.to_numpy(copied).flags.c_contiguous


def test_reshape_infers_one_size():
    x = ta.arange(12)
    assert x.reshape(3, -1).shape == x.reshape((3, -1)).shape == x.reshape([-1, 4]).shape == (3, 4)
    assert x.reshape(-1).shape == (12,)
    assert ta.asarray(5).reshape().shape == ()
    assert ta.zeros((0, 3)).reshape(3, -1).shape == (3, 0)
    for bad in [(5,), (5, -1), (-1, -1), (-2, 6), ()]:
        with pytest.raises(ShapeError, match=r"reshape: expected a shape of 12 elements"):
            x.reshape(bad)
    with pytest.raises(ShapeError, match="reshape"):
        ta.zeros((0, 3)).reshape(0, -1)


@given(views(), st.data())
def test_flip_and_diagonal_are_numpys(both, data):
    mine, theirs = both
    assert_same_view(ta.flip(mine), flipped(theirs, None))
    assume(theirs.ndim >= 1)
    axis = data.draw(st.integers(-theirs.ndim, theirs.ndim - 1))
    assert_same_view(ta.flip(mine, axis=axis), np.flip(theirs, axis))
    assume(theirs.ndim >= 2)
    first, second = data.draw(st.permutations(range(-theirs.ndim, 0)))[:2]
    offset = data.draw(st.integers(-5, 5))
    wanted = np.diagonal(theirs, offset, first, second)
    assert_same_view(ta.diagonal(mine, offset=offset, axis1=first, axis2=second), wanted)


@given(views(), st.data())
def test_windows_are_numpys(both, data):
    mine, theirs = both
    assume(theirs.size <= 300 and theirs.ndim <= 4)
    axes = data.draw(st.permutations(range(theirs.ndim)))[: data.draw(st.integers(0, theirs.ndim))]
    window = tuple(data.draw(st.integers(0, theirs.shape[axis])) for axis in axes)
    wanted = stride_tricks.sliding_window_view(theirs, window, tuple(axes))
    assert_same_view(ta.sliding_window_view(mine, window, axis=tuple(axes)), wanted)


@given(st.data())
def test_as_strided_is_numpys_within_the_buffer(data):
    source = np.arange(24, dtype=np.int32)
    x = ta.asarray(source)[data.draw(st.integers(0, 23)) :][:: data.draw(st.sampled_from([1, 2, -1]))]
    shape = data.draw(array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    strides = tuple(data.draw(st.integers(-6, 6)) for _ in shape)
    offset = data.draw(st.integers(-10, 10))
    origin = (x._address - source.ctypes.data) // 4 + offset
    reached = {origin + sum(np.multiply(index, strides)) for index in np.ndindex(shape)}
    if all(0 <= place < 24 for place in reached | ({origin} if not reached else set())):
        found = ta.as_strided(x, shape, strides, offset)
        expected = stride_tricks.as_strided(source[origin:], shape, [4 * step for step in strides]) if reached else None
        assert found.tolist() == (np.empty(shape).tolist() if expected is None else expected.tolist())
        assert found._buffer is x._buffer
    elif reached:
        with pytest.raises(LayoutError, match=r"as_strided: expected elements -?\d+ to -?\d+, got -?\d+ to -?\d+"):
            ta.as_strided(x, shape, strides, offset)


def test_as_strided_takes_ints_and_numpy_integers():
    x = ta.as_strided(ta.arange(5), 2, 2, np.int64(1))
    assert x.tolist() == [1, 3]
    assert type(x.offset) is int
    with pytest.raises(LayoutError, match=r"one stride for each of 2 axes"):
        ta.as_strided(x, (2, 2), (1,))
    with pytest.raises(ShapeError, match=r"as_strided"):
        ta.as_strided(x, (2,), (1.5,))
    with pytest.raises(ShapeError, match=r"as_strided: expected sizes >= 0"):
        ta.as_strided(x, (-1,), (1,))


# --- other dtypes of the same bytes -------------------------------

NAMES = [
    "bool",
    "int8",
    "uint8",
    "float16",
    "uint16",
    "int32",
    "float32",
    "int64",
    "float64",
    "complex64",
    "complex128",
]


@given(SHAPES, st.sampled_from(NAMES[1:]), st.sampled_from(NAMES[1:]), st.booleans(), st.booleans())
def test_a_dtype_view_is_numpys_or_refused_as_numpys(shape, old, new, transposed, stepped):
    source = np.arange(math.prod(shape) * np.dtype(old).itemsize).astype(np.uint8).view(old).reshape(shape)
    mine = ta.asarray(source)
    if transposed:
        mine, source = mine.T, source.T
    if stepped and shape:
        mine, source = mine[..., ::2], source[..., ::2]
    try:
        wanted = source.view(new)
    except ValueError:
        with pytest.raises((LayoutError, ShapeError), match=r"view: "):
            mine.view(new)
        return
    if wanted.size and wanted.ctypes.data % wanted.itemsize:  # NumPy lets it be
        with pytest.raises(LayoutError, match=r"view: the data starts at an address"):
            mine.view(new)
        return
    if wanted.size and any(
        step % wanted.itemsize for step, size in zip(wanted.strides, wanted.shape, strict=True) if size > 1
    ):
        with pytest.raises(LayoutError, match=r"view: .*multiple of"):
            mine.view(new)
        return
    found = mine.view(new)
    assert found.shape == wanted.shape
    assert ta.to_numpy(found).tobytes() == wanted.tobytes()
    assert found._buffer is mine._buffer


def test_a_dtype_view_of_a_wrong_address_is_refused():
    octets = ta.zeros(17, dtype="uint8")
    message = r"view: the data starts at an address that is {} bytes past a multiple of the itemsize {}; write x.copy"
    with pytest.raises(LayoutError, match=message.format(1, 2)):
        octets[1:].view("float16")
    with pytest.raises(LayoutError, match=message.format(4, 8)):
        octets[4:12].view("int64")
    with pytest.raises(LayoutError, match=message.format(8, 16)):
        ta.zeros(4, dtype="float64")[1:3].view("complex128")
    assert octets[16:][:0].view("int64").shape == (0,)
    assert octets[8:16].view("int64").tolist() == [0]


def test_a_dtype_view_needs_a_dense_last_axis():
    x = ta.zeros((2, 4), dtype="int16")
    with pytest.raises(LayoutError, match=r"from int16 to int32 the last axis must be dense.*write x.copy\('C'\).view"):
        x.T.view("int32")
    with pytest.raises(LayoutError, match=r"last axis must be dense, got shape \(\).*write ta.reshape\(x, 1\).view"):
        x[0, 0].view("int8")
    with pytest.raises(ShapeError, match=r"6 bytes along the last axis are not a multiple of 4; slice the axis first"):
        x[:, :3].view("int32")
    with pytest.raises(LayoutError, match=r"row pitch is not a multiple of 4 bytes"):
        ta.zeros((2, 5), dtype="int16")[:, :4].view("int32")
    assert x.T.copy().T.view("int32").shape == (2, 2)
    with pytest.raises(DTypeError, match=r"view: 'float33' is not a dtype"):
        x.view("float33")


def test_writes_through_a_dtype_view_show():
    x = ta.zeros(2, dtype="float32")
    x.view("int32")[0] = 0x3F800000
    x.view("bfloat16")[3] = 2
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_real_and_imag_are_views(dtype):
    source = (np.arange(6) + 10j * np.arange(6)).astype(dtype).reshape(2, 3)
    x = ta.asarray(source)
    for mine, theirs in [(x, source), (x.T, source.T), (x[:, ::-2], source[:, ::-2]), (x[1:1], source[1:1])]:
        assert_same_view(mine.real, theirs.real)
        assert_same_view(mine.imag, theirs.imag)
    x[1].imag[...] = 5
    assert source[1].tolist() == [3 + 5j, 4 + 5j, 5 + 5j]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "bfloat16", "float8_e4m3fn"])
def test_the_imaginary_part_of_real_numbers_is_zeros_that_cannot_be_written(dtype):
    for shape in ((), (3,), (2, 0), (2, 3)):
        x = ta.ones(shape, dtype=dtype)
        assert x.real is x
        assert (x.imag.shape, x.imag.dtype) == (shape, x.dtype)
        assert not np.asarray(x.imag).astype(np.float64).any()
    assert hasattr(x, "imag")  # Python 3.11's isinstance of a runtime protocol asks so
    with pytest.raises(WriteError, match="several elements"):
        x.imag[...] = 1


# --- bad input -------------------------------


@given(views(), st.data())
def test_unstack_gives_the_views_along_an_axis(both, data):
    mine, theirs = both
    assume(theirs.ndim >= 1)
    axis = data.draw(st.integers(-theirs.ndim, theirs.ndim - 1))
    found = ta.unstack(mine, axis=axis)
    assert isinstance(found, tuple)
    for one, wanted in zip(found, np.moveaxis(theirs, axis, 0), strict=True):
        assert one._buffer is mine._buffer
        assert ta.to_numpy(one).tobytes() == np.asarray(wanted).tobytes()


BAD = [
    (lambda x: ta.permute_dims(x, (0,)), ShapeError, r"permute_dims: expected all 2 axes"),
    (lambda x: ta.permute_dims(x, (0, 0)), ShapeError, r"permute_dims: expected distinct axes"),
    (lambda x: ta.permute_dims(x, (0, 2)), ShapeError, r"expected -2 <= axis < 2, got axis 2"),
    (lambda x: x[0].mT, ShapeError, r"matrix_transpose: expected at least 2 axes, got shape \(3,\)"),
    (lambda x: ta.squeeze(x, 0), ShapeError, r"squeeze: expected size 1 along axis 0, got 2"),
    (lambda x: ta.expand_dims(x, 4), ShapeError, r"expand_dims: expected -3 <= axis < 3"),
    (lambda x: ta.unstack(x, axis=2), ShapeError, r"unstack: expected -2 <= axis < 2, got axis 2"),
    (lambda x: ta.unstack(x[0, 0]), ShapeError, r"unstack: expected no axis"),
    (lambda x: ta.flip(x, axis=2), ShapeError, r"flip: expected -2 <= axis < 2, got axis 2"),
    (lambda x: ta.flip(x, axis=0.5), ShapeError, r"flip: expected axis as an int"),
    (lambda x: ta.moveaxis(x, (0, 1), 0), ShapeError, r"moveaxis: expected as many destinations as sources"),
    (lambda x: ta.broadcast_to(x, (3, 3)), BroadcastError, r"broadcast_to: expected size 2 along axis -2 .*, got 3"),
    (lambda x: ta.broadcast_to(x, 3), BroadcastError, r"expected at least the 2 axes of shape \(2, 3\)"),
    (lambda x: ta.broadcast_to(x, (2, -3)), ShapeError, r"broadcast_to: expected sizes >= 0"),
    (lambda x: ta.expand(x, -1), ShapeError, r"expand: .*at least 2 sizes for shape \(2, 3\), got \(-1,\)"),
    (lambda x: ta.expand(x, -1, 2, 3), ShapeError, r"expand: expected a size for each new axis"),
    (lambda x: ta.expand(x, 4.0, 2, 3), ShapeError, r"expand: expected shape as an int"),
    (lambda x: ta.broadcast_arrays(x, ta.zeros(2)), BroadcastError, r"broadcast_arrays: .* axis -1 .*, got 3 and 2"),
    (lambda x: ta.diagonal(x[0]), ShapeError, r"diagonal: expected -1 <= axis < 1"),
    (lambda x: ta.sliding_window_view(x, 4, axis=1), ShapeError, r"window of at most 3 along axis 1"),
    (lambda x: ta.sliding_window_view(x, 2), ShapeError, r"a window of 2 sizes"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[message for *_, message in BAD])
def test_bad_axes_and_shapes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call(ta.zeros((2, 3)))


FUNCTIONS = [
    lambda x: ta.permute_dims(x, (0,)),
    ta.transpose,
    lambda x: ta.moveaxis(x, 0, 0),
    ta.expand_dims,
    ta.squeeze,
    lambda x: ta.reshape(x, -1),
    lambda x: ta.broadcast_to(x, 2),
    lambda x: ta.expand(x, 2),
    ta.broadcast_arrays,
    ta.flip,
    ta.diagonal,
    lambda x: ta.sliding_window_view(x, 1),
    lambda x: ta.as_strided(x, 1, 1),
    lambda x: ta.view(x, "int8"),
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("value", ["ab", {1, 2}, None])
def test_only_arrays_are_manipulated(function, value):
    with pytest.raises(OperandError, match=r"\w+: expected a tilearray Array, got [\w.]+; write [\w.]+\(x1?\)"):
        function(value)


def test_pairs_share_their_memory():
    """The oracle of this file: what one writes, the other sees."""
    source, x = pair((3,))
    x[0] = 9
    assert source[0] == 9


def test_a_known_reshape_is_of_the_array_that_asks_and_of_ints_only() -> None:
    """The view of a shape is cached by the layout: the memory, the offset and the checks are of each call."""
    host = np.arange(24)
    x = ta.asarray(host, device="cpu")
    for _ in range(2):
        for part in (slice(0, 12), slice(12, 24)):
            view = ta.reshape(x[part], (3, 4))
            assert np.shares_memory(np.asarray(view), host)
            assert np.array_equal(np.asarray(view), host[part].reshape(3, 4))
        assert ta.reshape(x[:12], (3, 4), copy=True)._buffer is not x._buffer
        assert ta.reshape(x[::2].reshape(3, 4).T, (2, 6)).tolist() == host[::2].reshape(3, 4).T.reshape(2, 6).tolist()
        assert ta.reshape(x[:1], (1, 1)).shape == (1, 1)
        for wrong in ((True, True), (1.0, 1), (2, 1), (-1, -1)):
            with pytest.raises(ta.ShapeError, match="reshape: expected"):
                ta.reshape(x[:1], wrong)
