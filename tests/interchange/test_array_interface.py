"""NumPy's array interface and Python's buffers: who reads our host memory, with which strides, and for how long."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest
from hypothesis import given
from support.views import views

import tilearray as ta
from tilearray import dtypes
from tilearray.errors import DeviceError, InterchangeError


class Reader:
    """A consumer's source that has the array interface only."""

    def __init__(self, x: ta.Array) -> None:
        self.__array_interface__ = x.__array_interface__
        self.kept = x


@given(views())
def test_the_interface_describes_the_view(both) -> None:
    mine, theirs = both
    found = np.asarray(Reader(mine))
    assert (found.shape, found.dtype, found.tolist()) == (theirs.shape, theirs.dtype, theirs.tolist())
    assert not theirs.size or found.ctypes.data == theirs.ctypes.data
    assert mine.__array_interface__["strides"] == tuple(2 * stride for stride in mine.strides)
    assert found.flags.writeable is mine.flags.writeable
    if sys.version_info >= (3, 12):
        assert memoryview(mine).tolist() == theirs.tolist()


def test_only_the_dtypes_of_numpy_have_an_interface() -> None:
    for dtype in dtypes.ALL:
        x = ta.zeros((2, 3), dtype=dtype)
        own = dtype.type.__module__ == "numpy"
        assert hasattr(x, "__array_interface__") is own
        assert np.asarray(x).dtype == np.array(x).dtype == dtype  # through __array__ where there is no interface
        if own:
            assert np.dtype(x.__array_interface__["typestr"]) == dtype
            assert x.data.itemsize == dtype.itemsize
            continue
        with pytest.raises(AttributeError, match=f"NumPy has no {dtype.name} of its own; write np.asarray"):
            x.__array_interface__  # noqa: B018
        with pytest.raises(
            InterchangeError, match=rf"have no {dtype.name}; write x.view\('uint{8 * dtype.itemsize}'\)"
        ):
            x.data  # noqa: B018
        assert x.tobytes() == ta.to_numpy(x).tobytes()


def test_memory_lives_as_long_as_its_readers() -> None:
    x = ta.asarray(np.arange(1000))
    array, view = np.asarray(x), x[500:].data
    del x
    gc.collect()
    assert [bytes(1000) for _ in range(50)]
    assert array.tolist() == list(range(1000))
    assert view.tolist() == list(range(500, 1000))
    array[999] = -1
    assert view[499] == -1


def test_read_only_memory_stays_read_only() -> None:
    fixed = ta.asarray(b"abc")
    repeated = ta.broadcast_to(ta.asarray([1]), (3,))
    for x in (fixed, repeated):
        assert x.__array_interface__["data"][1] is True
        assert not np.asarray(x).flags.writeable
        assert x.data.readonly
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(x)[0] = 1
    with pytest.raises(InterchangeError, match=r"buffer: the array is read-only; write x.copy\(\)"):
        fixed.__buffer__(1)
    assert not ta.zeros(3).__buffer__(1).readonly


def test_a_gpu_has_neither_interface_nor_buffer(elsewhere) -> None:
    x = ta.zeros((2, 3), device=elsewhere)
    assert not hasattr(x, "__array_interface__")
    assert not hasattr(x, "data")
    with pytest.raises(AttributeError, match=rf"data: the array is on {elsewhere}; write ta.to_numpy\(x\).data"):
        x.data  # noqa: B018
    with pytest.raises(InterchangeError, match=r"write memoryview\(ta.to_numpy\(x\)\)"):
        x.__buffer__(0)
    with pytest.raises(TypeError, match="__array__: the array is on"):
        np.asarray(x)
    assert (x.tobytes(), bytes(x)) == (bytes(24), bytes(24))
    assert (x.flags.c_contiguous, x.flags.writeable, x.base, x.ravel().shape) == (True, True, None, (6,))
    x.fill(2.0)
    x.shape = 6
    assert x.tolist() == [2.0] * 6
    assert [x[True].tolist(), x[False].shape] == [[[2.0] * 6], (0, 6)]
    x[False] = 5
    x[True] = x * 1
    assert x.tolist() == [2.0] * 6
    x.shape = 2, 3
    for act in (x.argsort, x.sort, lambda: x.ravel().searchsorted(x[0])):
        with pytest.raises(DeviceError, match=r"expected an array on the host, got one on cuda:\d+, .*; write ta"):
            act()
    for found, wanted in (
        (x.sum(0), [4.0] * 3),
        (x.max(), 2.0),
        (x.mean(1), [2.0] * 2),
        (x.trace(), 4.0),
    ):
        assert (found.device, found.tolist()) == (elsewhere, wanted)


def test_pil_reads_images() -> None:
    image = pytest.importorskip("PIL.Image")
    source = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)
    for key in (..., np.s_[::-1], np.s_[..., 1], np.s_[1:, ::2], np.s_[:, :, ::-1]):
        assert np.array_equal(np.asarray(image.fromarray(ta.asarray(source)[key])), source[key])
    assert np.array_equal(np.asarray(image.fromarray(ta.asarray(source).swapaxes(0, 1))), source.swapaxes(0, 1))
