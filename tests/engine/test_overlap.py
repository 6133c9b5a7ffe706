"""Operations that read and write the same memory: whatever overlaps, the result is what NumPy's would be.

The oracle computes from copies and then writes, so it can never see a half-written operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from support.views import pair

import tilearray as ta
from tilearray.errors import BroadcastError, DTypeError, PromotionError, ScalarOverflowError, WriteError


def test_a_square_added_to_its_transpose():
    source, x = pair((300, 300), "float32")
    wanted = source + source.T
    kept = x
    x += x.T
    assert x is kept
    assert np.array_equal(source, wanted)


@pytest.mark.parametrize("size", [2, 100, 300_000])
@pytest.mark.parametrize("dtype", ["int64", "float16", "bfloat16"])
def test_neighbours_added_in_place(size, dtype):
    """float16 goes through blocks: a block must not see what the one before wrote."""
    source = (np.arange(size) % 7).astype(dtype)
    x = ta.asarray(source, copy=False)
    wanted = source.copy()
    wanted[1:] = source[1:] + source[:-1]
    x[1:] += x[:-1]
    assert np.array_equal(source, wanted)


@pytest.mark.parametrize("view", [lambda a: a[::-1], lambda a: a[0:1], lambda a: a[-1], lambda a: a[:, ::-1]])
def test_an_array_times_a_part_of_itself(view):
    source, x = pair((4, 4), "int64")
    wanted = source * view(source)
    x *= view(x)
    assert source.tolist() == wanted.tolist()


@st.composite
def windows(draw: st.DrawFn, shape: tuple[int, ...], extents: list[int]) -> tuple[slice, ...]:
    """A view of the given extents: any start and step that stay within the shape."""
    key: list[slice] = []
    for size, extent in zip(shape, extents, strict=True):
        furthest = (size - 1) // (extent - 1) if extent > 1 else size
        step = draw(st.integers(1, furthest))
        start = draw(st.integers(0, size - 1 - (extent - 1) * step))
        places = range(size)[start::step][:extent]
        places = places[::-1] if draw(st.booleans()) else places
        key.append(slice(places.start, places.stop if places.stop >= 0 else None, places.step))
    return tuple(key)


@given(st.data())
def test_any_view_combined_with_any_other_into_any_third(data):
    shape = data.draw(array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=6))
    extents = [data.draw(st.integers(1, size)) for size in shape]
    source, x = pair(shape, "int32")
    first, second, third = [data.draw(windows(shape, extents)) for _ in range(3)]
    wanted = source.copy()
    wanted[third] = source[first] - source[second]
    assert ta.subtract(x[first], x[second], out=x[third]).tolist() == wanted[third].tolist()
    assert source.tolist() == wanted.tolist()


@given(st.permutations(range(3)), st.booleans())
def test_where_with_its_own_operands_as_target(order, transposed):
    condition, x, y = np.arange(9).reshape(3, 3) % 2 == 0, np.arange(9).reshape(3, 3), -np.arange(9).reshape(3, 3)
    wanted = np.where(condition, x, y.T if transposed else y)
    mine, yours = ta.asarray(x.copy()), ta.asarray(y.copy())
    target = (mine, yours, ta.zeros((3, 3), dtype="int64"))[order[0]]
    ta.where(ta.asarray(condition), mine, yours.T if transposed else yours, out=target)
    assert target.tolist() == wanted.tolist()


def test_a_condition_that_is_a_view_of_the_target():
    target = ta.asarray(np.array([1, 0, 1, 0], "int8"))
    ta.where(target.view("bool"), ta.full(4, 10, dtype="int8"), ta.full(4, 20, dtype="int8"), out=target)
    assert target.tolist() == [10, 20, 10, 20]


@pytest.mark.parametrize("position", [0, 1, 2])
def test_clip_with_a_bound_as_target(position):
    operands = [ta.asarray([1, 5, 9]), ta.asarray([2, 2, 2]), ta.asarray([6, 6, 6])]
    assert ta.clip(*operands, out=operands[position]).tolist() == [2, 5, 6]


TWINS: list[tuple[str, Callable[[ta.Array], ta.Array]]] = [
    ("float32", lambda x: x.view("int32")),
    ("float32", lambda x: x.view("int16")[::2]),
    ("float32", lambda x: x.view("float64")),
    ("float16", lambda x: x.view("float32")),
    ("int64", lambda x: x.view("float64")[::-1]),
    ("complex64", lambda x: x.imag),
]


@pytest.mark.parametrize(("dtype", "twin"), TWINS)
def test_a_target_of_another_dtype_over_the_operands_memory(dtype, twin):
    """The bytes are read as one dtype and written as another."""
    for size in (4, 140_000):
        x = ta.asarray((np.arange(size) % 100 + 1).astype(dtype))
        target = twin(x)
        operand = x[: target.shape[0]] if dtype != "complex64" else x.real
        expected = ta.empty_like(target)
        kind_cast = operand if ta.isdtype(target.dtype, "real floating") else ta.astype(operand, "int64")
        ta.add(kind_cast.copy(), kind_cast.copy(), out=expected)
        if kind_cast is operand:
            ta.add(operand, operand, out=target)
            assert target.tolist() == expected.tolist()


def test_a_cast_in_place_over_the_same_bytes():
    """int32 read, float32 written to the same four bytes, more than one block of them."""
    x = ta.asarray((np.arange(200_000) - 100_000).astype("int32"))
    expected = [float(value) for value in x.tolist()]
    assert ta.positive(x, out=x.view("float32")).tolist() == expected


@pytest.mark.parametrize("size", [9, 200_000])
def test_two_imports_of_one_allocation(size):
    """Two buffers, one memory: overlap is decided by address."""
    source = np.arange(size)
    wanted = source.copy()
    wanted[1:] += source[:-1]
    first, second = ta.asarray(source[1:]), ta.asarray(source)[:-1]
    assert first._buffer is not second._buffer
    first += second
    assert np.array_equal(source, wanted)
    ta.asarray(source[:-1])[...] = ta.from_dlpack(source)[1:]
    assert np.array_equal(source[:-1], wanted[1:])


@pytest.mark.parametrize("size", [9, 200_000])
def test_interleaved_and_separate_halves(size):
    source, x = pair((2 * size,), "int64")
    wanted = source.copy()
    wanted[::2] += source[1::2]
    x[::2] += x[1::2]
    assert np.array_equal(source, wanted)
    wanted[:size] -= wanted[size:]
    x[:size] -= x[size:]
    assert np.array_equal(source, wanted)


# --- what may not be written -------------------------------

IN_PLACE = [
    lambda x, y: x.__iadd__(y),
    lambda x, y: ta.add(x, y, out=x),
    lambda x, y: ta.add(y, y, out=x),
    lambda x, y: np.add(x, y, out=x),
    lambda x, y: x.__setitem__(..., y),
]


@pytest.mark.parametrize("write", IN_PLACE)
@pytest.mark.parametrize("other", [1, ta.asarray(1)], ids=repr)
def test_nothing_writes_through_repeated_elements(write, other):
    x = ta.arange(4)
    for view in (ta.broadcast_to(x, (3, 4)), ta.sliding_window_view(x, 2), ta.as_strided(x, (2, 2), (1, 1))):
        with pytest.raises(WriteError, match=r"the target has several elements in one place .*; write to x.copy\(\)"):
            write(view, other)
    assert x.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("write", IN_PLACE)
def test_nothing_writes_to_read_only_memory(write):
    frozen = np.arange(4)
    frozen.flags.writeable = False
    for x in (ta.asarray(frozen), ta.asarray(frozen)[1:].view("float64"), ta.from_dlpack(frozen).reshape(2, 2)):
        with pytest.raises(WriteError, match=r"the target is read-only; write to x.copy\(\) instead"):
            write(x, 1 if x.dtype.kind == "i" else 1.0)
    assert frozen.tolist() == [0, 1, 2, 3]


REFUSED = [
    (lambda x: x.__iadd__(1.5), DTypeError, r"add: expected a target that can store the float32 result, got int8"),
    (lambda x: x.__itruediv__(2), DTypeError, r"divide: expected a target that can store the float32 result, got int8"),
    (lambda x: x.__iadd__(300), ScalarOverflowError, r"add: 300 does not fit int8 \(-128 to 127\)"),
    (
        lambda x: x.__iadd__(ta.zeros((2, 3), dtype="int8")),
        BroadcastError,
        r"add: .*shape \(2, 3\).*the target's \(3,\)",
    ),
    (
        lambda x: x.__iadd__(ta.zeros(2, dtype="int8")),
        BroadcastError,
        r"add: expected equal sizes, or 1, along axis -1",
    ),
    (lambda x: x.__ipow__(-1), ValueError, r"pow: Integers to negative integer powers are not allowed, got -1"),
    (
        lambda x: x.__iadd__(1.5),
        DTypeError,
        r"the default float: see ta.semantics\('array-api', float=...\)$",
    ),
    (lambda x: x.__iadd__(ta.ones(3, dtype="float32")), DTypeError, r"target\[...\] = result.astype\('int8'\)$"),
    (lambda x: x.__imul__(1j), DTypeError, r"multiply: expected a target that can store the complex64 result"),
    (lambda x: x.__iadd__(ta.zeros(3, dtype="uint64")), PromotionError, r"no integer dtype holds both ranges"),
]


@pytest.mark.parametrize(("write", "error", "message"), REFUSED, ids=[message for *_, message in REFUSED])
def test_calls_are_refused_before_anything_is_written(write, error, message):
    x = ta.asarray([1, 2, 3], dtype="int8")
    with pytest.raises(error, match=message):
        write(x)
    assert x.tolist() == [1, 2, 3]


# --- out= -------------------------------


def test_out_is_returned_and_cast_within_its_kind():
    out = ta.empty((2, 3), dtype="float16")
    assert ta.add(ta.asarray([1, 2, 3]), 0.5, out=out) is out
    assert out.tolist() == [[1.5, 2.5, 3.5]] * 2
    narrow = ta.empty(3, dtype="int8")
    assert ta.add(ta.asarray([255, 256, 257]), 1, out=narrow).tolist() == [0, 1, 2]
    flags = ta.empty(3, dtype="float32")
    assert ta.less(ta.asarray([1, 2, 3]), 2, out=flags).tolist() == [1, 0, 0]
    with pytest.raises(DTypeError, match=r"sqrt: expected a target that can store the float32 result, got int64"):
        ta.sqrt(ta.asarray([4]), out=ta.empty(1, dtype="int64"))


@pytest.mark.parametrize("layout", [lambda a: a, lambda a: a.T, lambda a: a[::-1, ::2], lambda a: a[1:, None, :]])
def test_out_of_any_layout_is_written_where_it_lies(layout):
    room = np.full((4, 6), -1.0, "float32")
    target = layout(ta.asarray(room))
    operand = ta.reshape(ta.arange(math.prod(target.shape)), target.shape)
    ta.multiply(operand, 2, out=target)
    wanted = np.full((4, 6), -1.0, "float32")
    layout(wanted)[...] = np.arange(operand.size).reshape(operand.shape) * 2
    assert room.tolist() == wanted.tolist()


@pytest.mark.parametrize("shape", [(0,), (3, 0), (), (0, 0, 2)])
def test_empty_and_0_d_targets(shape):
    out = ta.ones(shape)
    assert ta.exp(out, out=out) is out
    out += out
    out[...] = 3
    assert out.tolist() == np.full(shape, 3.0).tolist()
    assert ta.add(2, 3, out=out) is out
    assert out.tolist() == np.full(shape, 5.0).tolist()
