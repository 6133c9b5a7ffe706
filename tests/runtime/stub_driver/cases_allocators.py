"""Memory from other libraries' allocators: their calls, and their faults."""

from __future__ import annotations

import types

import pytest

from tilearray_cuda import device as devices
from tilearray_cuda.errors import CudaError
from tilearray_cuda.runtime.memory import allocators
from tilearray_cuda.runtime.memory.allocators import ExternalSource
from tilearray_cuda.runtime.memory.buffers import LARGE, block_size


class Counting:
    """An allocator that records its calls."""

    def __init__(self):
        self.next = 1 << 40
        self.held = {}
        self.streams = []

    def allocate(self, nbytes, stream):
        self.next += 1 << 32
        self.held[self.next] = nbytes
        self.streams.append(stream)
        return self.next

    def release(self, pointer, nbytes, stream):
        assert self.held.pop(pointer) == nbytes


@pytest.fixture(autouse=True)
def _driver_again():
    yield
    devices.set_allocator(None)


def with_source(device, allocator):
    allocators.choose(allocator)
    device.memory.use(allocators.current(device.index))


@pytest.mark.parametrize("form", ["object", "functions", "deallocate"])
def test_an_allocator_that_is_set(device, side, stub, form):
    counting = Counting()
    before = device.allocate(1000, 0)
    with_source(
        device,
        {
            "object": counting,
            "functions": (counting.allocate, counting.release),
            "deallocate": types.SimpleNamespace(allocate=counting.allocate, deallocate=counting.release),
        }[form],
    )
    first = device.allocate(1000, side)
    assert counting.held == {first.pointer: 1024}
    assert counting.streams == [side]
    pointer = first.pointer
    del first
    assert device.allocate(1000, side).pointer == pointer  # kept for the next allocation
    second = device.allocate(5000, 0)
    assert counting.held == {second.pointer: block_size(5000)}  # the first block went back
    stub.start_log()
    del before
    device.allocate(20000, 0)
    assert "cuMemFreeAsync" in [call.name for call in stub.log()]  # to its source
    with_source(device, None)
    assert list(counting.held) == [second.pointer]
    device.join(second, side, True)
    stub.hold(side, True)
    del second
    device.allocate(777, 0)
    assert len(counting.held) == 1
    stub.hold(side, False)
    device.allocate(7777, 0)
    device.empty_cache()
    assert counting.held == {}
    assert device.statistics().live == 0


def test_memory_of_before_goes_back_where_the_same_allocator_is_set_again(device, stub):
    """A block that is in use during both changes belongs to a pool that serves no array any more."""
    own, other = device.memory.source, ExternalSource(lambda nbytes, stream: 1 << 20, lambda *block: None)
    x = device.allocate(1000, 0)
    device.memory.use(other)
    device.memory.use(own)
    del x
    device.allocate(2 * LARGE, 0)  # returns free memory that nothing can take again
    assert device.statistics()[:3] == (0, 2 * LARGE, 2 * LARGE)
    device.empty_cache()
    assert device.statistics()[:3] == (0, 0, 0)
    assert stub.used() == 0


def test_a_block_that_comes_back_while_the_cache_is_emptied_is_not_lost(device, side, monkeypatch):
    """Another thread may delete an array after the free list of its size was emptied."""
    held, release = [device.allocate(1000, side)], device.memory.source.release
    device.allocate(5000, side)

    def release_and_delete(*block):
        held.clear()
        release(*block)

    monkeypatch.setattr(device.memory.source, "release", release_and_delete)
    device.empty_cache()
    assert device.statistics()[:3] == (0, 1024, 1024)
    device.empty_cache()
    assert device.statistics()[:3] == (0, 0, 0)


def test_out_of_memory_of_an_allocator_that_is_set(device):
    class OutOfMemoryError(RuntimeError):  # as the classes of torch and CuPy
        pass

    calls = []

    def allocate(nbytes, stream):
        calls.append(nbytes)
        raise OutOfMemoryError("no more")

    with_source(device, (allocate, lambda pointer, nbytes, stream: None))
    with pytest.raises(MemoryError, match="driver reports: set_allocator: allocate raised OutOfMemoryError: no more"):
        device.allocate(1000, 0)
    assert calls == [1024, 1024]


def test_an_allocator_that_returns_no_address(device):
    with_source(device, (lambda nbytes, stream: 1001, lambda pointer, nbytes, stream: None))
    with pytest.raises(CudaError, match=r"set_allocator: allocate\(1024, 0\) returned 0x3e9; expected an address"):
        device.allocate(1000, 0)


@pytest.mark.parametrize("bad", [3, "torch", (len,), (len, 3), object(), types.SimpleNamespace(allocate=len)])
def test_an_object_that_is_not_an_allocator_is_refused(device, bad):
    with pytest.raises(TypeError, match=r"set_allocator: expected functions allocate\(nbytes, stream\)"):
        devices.set_allocator(bad)


def test_torchs_allocator(device, side):
    calls = []
    cuda = types.SimpleNamespace(
        caching_allocator_alloc=lambda size, index, stream: calls.append((size, index, stream)) or 1 << 40,
        caching_allocator_delete=calls.append,
    )
    with_source(device, types.SimpleNamespace(cuda=cuda))
    device.allocate(1000, side)
    device.empty_cache()
    assert calls == [(1024, 0, side), 1 << 40]
