"""Buffers of the host backend: exact spans, views that come back, lifetimes and bounds."""

from __future__ import annotations

import gc
import itertools
import weakref

import numpy as np
import pytest

import tilearray as ta
from tilearray import dtypes
from tilearray_host import memory


def bits(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(np.uint8)


def address(x: np.ndarray) -> int:
    return x.__array_interface__["data"][0]


STEPS = (slice(None), slice(1, None, 2), slice(None, None, -1), slice(3, 0, -2), slice(1, 2), slice(2, 2), 1)


def _views() -> list[np.ndarray]:
    dense = np.arange(4 * 5 * 6, dtype=np.int32).reshape(4, 5, 6)
    sliced = [dense[(*key, ...)] for key in itertools.product(STEPS, STEPS, STEPS)]
    return [
        *sliced,
        *(view.T for view in sliced[::5]),
        *(np.broadcast_to(view[..., None], (*view.shape, 3)) for view in sliced[::7]),
        np.lib.stride_tricks.sliding_window_view(dense, (2, 3), (0, 2))[:, ::-1],
    ]


def test_buffers_span_exactly_the_reach_of_a_view():
    views = _views()
    assert len(views) > 450
    for view in views:
        buffer, offset = memory.byte_buffer(view)
        assert buffer.flags.c_contiguous
        assert buffer is not view  # whose shape its owner may change
        assert buffer.flags.writeable == view.flags.writeable
        reached = [sum(i * s for i, s in zip(index, view.strides)) for index in np.ndindex(view.shape)]
        if not reached:
            assert (buffer.nbytes, offset) == (0, 0)
            continue
        assert address(buffer) == address(view) + min(reached)
        assert buffer.nbytes == max(reached) - min(reached) + view.itemsize
        assert offset == -min(reached)


@pytest.mark.parametrize("copy", [False, True])
def test_a_view_comes_back_from_its_buffer(copy):
    for view in _views():
        buffer, offset = memory.from_numpy(view, copy=copy)
        strides = tuple(stride // view.itemsize for stride in view.strides)
        back = memory.to_numpy(buffer, offset, view.shape, strides, view.dtype)
        assert np.array_equal(back, view)
        assert back.shape == view.shape
        assert np.may_share_memory(back, view) == (not copy and view.size > 0)
        assert buffer.readonly == (not copy and not view.flags.writeable)
        assert back.flags.writeable != buffer.readonly
        if view.size:
            assert back.strides == view.strides
            assert buffer.pointer + offset == address(back)


@pytest.mark.parametrize("view", [lambda a: a, lambda a: a.T, lambda a: a[::2, ::-1]])
def test_a_buffer_keeps_its_owner_and_a_view_its_buffer(view):
    owner = np.arange(24).reshape(4, 6).astype(dtypes.bfloat16)
    expected = bits(view(owner)).copy()
    alive = weakref.ref(owner)
    given = view(owner)
    buffer, offset = memory.from_numpy(given, copy=False)
    strides = tuple(stride // given.itemsize for stride in given.strides)
    back = memory.to_numpy(buffer, offset, given.shape, strides, given.dtype)
    gone = weakref.ref(buffer)
    del owner, given, buffer
    gc.collect()
    assert alive() is not None
    assert np.array_equal(bits(back), expected)
    del back
    gc.collect()
    assert alive() is None
    assert gone() is None


def test_allocated_memory_is_writable_and_its_own():
    first, second = memory.allocate(100), memory.allocate(0)
    assert (first.nbytes, first.readonly, second.nbytes) == (100, False, 0)
    assert first.pointer == first.pointer == address(first.memory)
    assert first.pointer % 16 == 0
    view = memory.to_numpy(first, 4, (4, 6), (1, 4), dtypes.float32)
    view[...] = 3
    assert address(view) == first.pointer + 4
    assert first.memory[4:].view(np.float32).tolist() == [3] * 24


@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [(0, (26,), (1,)), (4, (25,), (1,)), (-4, (2,), (1,)), (0, (2,), (-1,)), (104, (), ()), (0, (2, 2), (24, 1))],
)
def test_no_view_leaves_its_buffer(offset, shape, strides):
    buffer = memory.allocate(100)
    if (offset, shape) == (0, (2, 2)):
        memory.to_numpy(buffer, 0, shape, (23, 1), dtypes.float32)  # just fits
    with pytest.raises(ValueError, match=r"buffer|offset"):
        memory.to_numpy(buffer, offset, shape, strides, dtypes.float32)


def test_a_view_without_elements_may_start_anywhere():
    buffer, _ = memory.from_numpy(np.ones(4, np.float32), copy=False)
    for offset in (0, 16, 400, -8):
        view = memory.to_numpy(buffer, offset, (2, 0), (-7, 1), dtypes.float32)
        assert (view.shape, view.dtype, view.flags.writeable) == ((2, 0), np.float32, True)


def links(array: np.ndarray) -> int:
    """The number of objects that hold one another, from an ndarray to the memory."""
    count, owner = 0, array
    while owner is not None:
        count += 1
        if isinstance(owner, ta.Array):
            owner = owner._buffer.memory
        elif isinstance(owner, memoryview):
            owner = owner.obj
        else:
            owner = getattr(owner, "base", None) if isinstance(owner, np.ndarray) else getattr(owner, "owner", None)
    return count


VIEWS = {
    "dense": lambda x: x,
    "part": lambda x: x[3:40],
    "reversed": lambda x: x[::-1],
    "gaps": lambda x: x[50:4:-3],
    "0-d": lambda x: x[7, ...],
}
ROUNDS = {
    "asarray": lambda x: ta.asarray(np.asarray(x)),
    "memoryview": lambda x: ta.asarray(memoryview(np.asarray(x))),
    "part of it": lambda x: ta.asarray(np.asarray(x)[...]),
}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("step", ROUNDS)
def test_chains_of_round_trips_do_not_grow(view, step, read_only):
    source = np.arange(60.0)
    source.flags.writeable = not read_only
    x = VIEWS[view](ta.asarray(source, device="cpu"))
    expected = VIEWS[view](source)
    lengths = []
    for _ in range(8):
        x = ROUNDS[step](x)
        lengths.append(links(np.asarray(x)))
        assert np.array_equal(np.asarray(x), expected)
        assert np.asarray(x).flags.writeable is not read_only
        assert np.shares_memory(np.asarray(x), source)
    assert len(set(lengths[2:])) == 1
    del source, expected
    assert ta.to_numpy(x).size == x.size  # the memory lives on


def test_a_protected_part_of_a_round_trip_stays_protected():
    x = ta.asarray(np.arange(6.0), device="cpu")
    part = np.asarray(x)[::2]
    part.flags.writeable = False
    for _ in range(3):
        kept = ta.asarray(part)
        assert not kept.flags.writeable
        part = np.asarray(kept)
    with pytest.raises(ta.WriteError):
        kept[0] = 1
    x[0] = 7
    assert kept.tolist() == [7, 2, 4]


def test_a_buffer_reaches_no_further_than_its_array():
    x = ta.asarray(np.arange(60.0), device="cpu")
    part = ta.asarray(np.asarray(x)[10:20])
    assert part._buffer.nbytes == 80
    with pytest.raises(ta.LayoutError):
        ta.as_strided(part, (11,), (1,))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2"])
def test_signalling_nans_become_numbers_without_a_warning(dtype):
    kind = ta.dtypes.as_dtype(dtype)
    bits = np.array([0x7F81, 0xFF81] if kind.itemsize == 2 else [0x7D, 0xFD], f"u{kind.itemsize}")
    x = ta.asarray(bits.view(kind), device="cpu")
    assert all(value != value for value in [*x.tolist(), x[0].item(), float(x[1])])
    with ta.printoptions(floatmode="fixed"):
        assert str(x) == "[nan nan]"


MADE = {
    "asarray": lambda x, y: x,
    "asarray of two axes": lambda x, y: ta.asarray(np.arange(12.0).reshape(3, 4), device="cpu"),
    "asarray in Fortran order": lambda x, y: ta.asarray(np.asfortranarray(np.arange(12.0).reshape(3, 4)), device="cpu"),
    "asarray of a list": lambda x, y: ta.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu"),
    "sum of vectors": lambda x, y: x + y,
    "sum of matrices": lambda x, y: x.reshape(3, 4) + y.reshape(3, 4),
    "sum of transposed matrices": lambda x, y: x.reshape(3, 4).T + y.reshape(3, 4).T,
    "sum in two orders": lambda x, y: x.reshape(3, 4) + y.reshape(4, 3).T,
    "sum of parts": lambda x, y: x[1:] + y[:-1],
    "sum of reversed": lambda x, y: x[::-1] + y[::-1],
    "sum with a row": lambda x, y: x.reshape(3, 4) + y[:4],
    "sum without axes": lambda x, y: (x[0] + y[0])[None],
    "cast": lambda x, y: x.astype("int8"),
    "copy": lambda x, y: x.reshape(3, 4)[:, ::-1].copy(),
    "gathered": lambda x, y: x[ta.asarray([2, 1, 1], device="cpu")],
    "nothing": lambda x, y: x[:0] + y[:0],
}
WITHOUT_GAPS = {"asarray", "asarray of two axes", "asarray of a list", "sum of vectors", "sum of matrices", "cast",
                "sum of transposed matrices", "sum of parts", "gathered"}  # fmt: skip


@pytest.mark.parametrize("how", MADE)
def test_a_buffer_that_names_a_signature_is_a_view_of_all_its_elements(how):
    x, y = (ta.asarray(np.arange(start, start + 12.0), device="cpu") for start in (0, 5))
    made = MADE[how](x, y)
    views = [made, made.T, made[..., ::-1], made[..., :1], made[..., None], made.view(f"uint{8 * made.itemsize}")]
    named = [view for view in views if view._buffer.flat_of is view._signature]
    assert (how not in WITHOUT_GAPS) or made in named
    for view in named:
        given = view._buffer.memory
        assert (given.shape, given.dtype) == ((view.size,), view.dtype)
        assert view._address == address(given)
        assert bits(np.asarray(view).ravel(order="K")).tobytes() == given.tobytes()
    for view in views:
        expected = np.asarray(view)
        assert np.array_equal(memory.elements(view), expected)
        assert np.array_equal(np.asarray(view + view), expected + expected)
        view *= 2
        assert np.array_equal(np.asarray(view), expected)
