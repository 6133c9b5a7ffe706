"""Pinned arrays of the host, and copies that nobody waits for."""

from __future__ import annotations

import gc
from collections import deque

import numpy as np
import pytest

import tilearray as ta
from tilearray import cuda
from tilearray.errors import DeviceError, DTypeError, LayoutError, OperandError, ShapeError, WriteError
from tilearray_cuda.device import open_device
from tilearray_cuda.errors import CaptureError, CudaError

VALUES = np.arange(24, dtype="float32").reshape(4, 6)
WAITS = {"cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize"}


@pytest.fixture(autouse=True)
def _empty(stub):
    cuda.empty_cache("cuda:0")
    yield
    stub.reset()
    gc.collect()
    cuda.empty_cache("cuda:0")


def names(stub):
    return [call.name for call in stub.log()]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "complex128", "float4_e2m1fn"])
def test_copies_both_ways_without_a_wait(stub, dtype):
    x = ta.astype(ta.asarray(VALUES % 2, device="cpu"), dtype)
    host, back = cuda.pinned_like(x), cuda.pinned_like(x)
    assert (host.shape, host.dtype, str(host.device), host.strides) == ((4, 6), x.dtype, "cpu", (6, 1))
    host[...] = x
    there = ta.empty_like(x, device="cuda:0")
    stub.start_log()
    events = [cuda.copy_async(host, there), cuda.copy_async(there, out=back)]
    assert not WAITS & set(names(stub))
    assert [name for name in names(stub) if name.startswith("cuMemcpy")] == ["cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync"]
    assert "cuMemHostAlloc" not in names(stub)
    for event in events:
        event.synchronize()
    assert np.array_equal(ta.to_numpy(back), ta.to_numpy(x))


def test_parts_are_copied():
    x = ta.asarray(VALUES, device="cuda:0")
    host = cuda.pinned_like(x)
    host[...] = -1
    cuda.copy_async(x[2:3], host[1:2]).synchronize()
    assert host.tolist() == [[-1] * 6, VALUES[2].tolist(), [-1] * 6, [-1] * 6]
    cuda.copy_async(x[:0], host[:0]).synchronize()
    cuda.copy_async(x[1, 3], out=host[0, 0]).synchronize()
    assert host[0, 0].item() == VALUES[1, 3]


def test_the_copy_runs_on_the_current_stream_and_waits_for_others(stub):
    x, side = ta.asarray(VALUES, device="cuda:0"), cuda.Stream("cuda:0")
    host = cuda.pinned_like(x)
    stub.start_log()
    with cuda.stream(side):
        cuda.copy_async(x, host)
    calls = stub.log()
    (copy,) = [call for call in calls if call.name == "cuMemcpyDtoHAsync"]
    assert copy.stream == side.handle
    assert "cuStreamWaitEvent" in [call.name for call in calls[: calls.index(copy)]]


def test_memory_in_flight_is_not_used_again(stub):
    """A deleted array of the host keeps its memory until the copy is done, here: until the stream goes on."""
    x, side = ta.asarray(VALUES, device="cuda:0"), cuda.Stream("cuda:0")
    host = cuda.pinned_like(x)
    pointer = ta.to_numpy(host).ctypes.data
    stub.hold(side.handle, True)
    with cuda.stream(side):
        cuda.copy_async(x, host)
    del host
    assert ta.to_numpy(cuda.pinned_like(x)).ctypes.data != pointer
    stub.hold(side.handle, False)
    cuda.copy_async(x, cuda.pinned_like(x))  # looks at what is done
    found = [cuda.pinned_like(x) for _ in range(3)]
    assert pointer in [ta.to_numpy(each).ctypes.data for each in found]


def test_pinned_memory_is_reused_and_given_back(stub):
    x = ta.empty(5000, dtype="int8", device="cuda:0")
    pointers = {ta.to_numpy(cuda.pinned_like(x)).ctypes.data for _ in range(10)}
    assert len(pointers) == 1
    kept, view = cuda.pinned_like(x), cuda.pinned_like(x)[100:]
    stub.start_log()
    cuda.empty_cache("cuda:0")
    assert "cuMemFreeHost" not in names(stub)
    del kept, view
    cuda.empty_cache("cuda:0")
    assert names(stub).count("cuMemFreeHost") == 2


def test_a_copy_whose_memory_nothing_keeps_is_waited_for(stub):
    """As where an interrupt arrives behind the copy, before its event."""
    x = ta.asarray(VALUES, device="cuda:0")
    host = cuda.pinned_like(x)
    stub.start_log()
    stub.fail("cuEventRecord", 1)
    with pytest.raises(CudaError, match="cuEventRecord"):
        cuda.copy_async(x, host)
    assert names(stub) == ["cuMemcpyDtoHAsync", "cuStreamSynchronize"]


class TakenByOthers(deque):
    """A free list while another thread takes the last memory behind the question whether there is any."""

    def __bool__(self):
        return True


def test_pinned_memory_is_freed_while_another_thread_takes_the_last(stub):
    pinned = open_device(0).pinned
    pinned.empty(5000)
    (size,) = [size for size, free in pinned._free.items() if free]
    pinned._free[size] = TakenByOthers(pinned._free[size])
    stub.start_log()
    cuda.empty_cache("cuda:0")
    assert names(stub).count("cuMemFreeHost") == 1
    del pinned._free[size]


def test_what_cannot_be_copied_is_refused(stub):
    x = ta.asarray(VALUES, device="cuda:0")
    host = cuda.pinned_like(x)
    for wrong, error, told in (
        (lambda: cuda.copy_async(x, ta.empty_like(x, device="cpu")), LayoutError, "not pinned; write ta.cuda.pinned_l"),
        (lambda: cuda.copy_async(x, x.copy()), DeviceError, "one array on a GPU and one on the host, got cuda:0 and c"),
        (lambda: cuda.copy_async(host, host), DeviceError, "got cpu and cpu; write"),
        (lambda: cuda.copy_async(x, host[:2]), ShapeError, r"expected out of shape \(4, 6\), got \(2, 6\)"),
        (lambda: cuda.copy_async(x[:, ::2], host[:, ::2]), LayoutError, r"in C order without gaps, got strides \(6, 2"),
        (lambda: cuda.copy_async(x.view("int32"), host), DTypeError, "expected out of dtype int32, got float32"),
        (
            lambda: cuda.copy_async(VALUES, host),
            OperandError,
            "copy_async: expected a tilearray Array, got numpy.ndarray",
        ),
        (lambda: cuda.copy_async(x, VALUES), OperandError, "expected a tilearray Array as out"),
        (lambda: cuda.copy_async(x, ta.broadcast_to(host[:1], (4, 6))), WriteError, "several elements in one place"),
        (lambda: cuda.pinned_like(VALUES), OperandError, "pinned_like: expected a tilearray Array, got numpy.ndarray"),
    ):
        with pytest.raises(error, match=told):
            wrong()
    side = cuda.Stream("cuda:0")
    stub.capture(side.handle, 7)
    with cuda.stream(side), pytest.raises(CaptureError, match="copy_async: a CUDA graph captures stream"):
        cuda.copy_async(x, host)
    stub.capture(side.handle, 0)


def test_pinned_memory_of_another_library_is_taken():
    x = ta.asarray(VALUES, device="cuda:0")
    memory = open_device(0).pinned.empty(96).view("float32").reshape(4, 6)
    cuda.copy_async(x, ta.asarray(memory, device="cpu")).synchronize()
    assert memory.tolist() == VALUES.tolist()
