"""The allocator: what is reused, what goes back, who may use what when, and what happens when there is no more."""

from __future__ import annotations

import gc
import threading
import types
import weakref

import pytest

from tilearray_cuda import device as devices
from tilearray_cuda import sources
from tilearray_cuda.blocks import LARGE, Buffer, block_size
from tilearray_cuda.errors import CudaError, OutOfMemoryError
from tilearray_cuda.foreign import borrow
from tilearray_cuda.stream import Stream

MIB = 1 << 20


def names(stub):
    return [call.name for call in stub.log()]


@pytest.fixture
def side(device):
    stream = Stream(device)
    yield stream.handle
    del stream


def test_block_sizes_waste_little_and_grow():
    sizes = [*range(1, 70000), *(LARGE + step for step in range(-3, 4)), 10**9, 10**11]
    blocks = [block_size(size) for size in sizes]
    assert blocks == sorted(blocks)
    for size, block in zip(sizes, blocks):
        assert size <= block
        assert block % 512 == 0
        assert size <= 2048 or block - size < size / 4
        assert block_size(block) == block
    assert len(set(blocks[:69999])) < 40
    assert block_size(0) == 512


def test_memory_is_reused_without_the_driver(device, stub):
    first = device.allocate(4000, 0)
    assert (first.nbytes, first.stream, first.readonly, first.device_index) == (4000, 0, False, 0)
    assert first.pointer % 256 == 0
    pointer = first.pointer
    second = device.allocate(4000, 0)
    assert second.pointer != pointer
    del first
    third = device.allocate(3800, 0)  # of the same block size
    assert third.pointer == pointer
    del third
    stub.start_log()
    for _ in range(100):
        assert device.allocate(4000, 0).pointer == pointer
    assert names(stub) == []


def test_streams_do_not_share_free_blocks(device, side):
    pointer = device.allocate(1000, 0).pointer
    other = device.allocate(1000, side)
    assert other.pointer != pointer
    assert other.stream == side
    assert device.allocate(1000, 0).pointer == pointer


def test_many_sizes_do_not_fill_the_table(device):
    for nbytes in range(1, 10000):
        device.allocate(nbytes, 0)
    assert len(device.memory._by_nbytes[0]) <= 4096
    assert device.statistics().allocations < 40


def test_large_blocks_of_other_sizes_go_back(device, stub):
    first = device.allocate(100 * MIB, 0)
    pointer = first.pointer
    del first
    assert device.allocate(100 * MIB, 0).pointer == pointer
    small = device.allocate(1000, 0)
    del small
    stub.start_log()
    second = device.allocate(200 * MIB, 0)
    assert names(stub) == ["cuMemFreeAsync", "cuMemAllocFromPoolAsync"]
    assert device.statistics().held == second.nbytes + 1024
    del second


def test_statistics(device):
    empty = device.statistics()
    assert empty[:4] == (0, 0, 0, 0)
    first, second = device.allocate(1000, 0), device.allocate(10 * MIB, 0)
    del second
    statistics = device.statistics()
    assert statistics.live == 1024
    assert statistics.cached == 10 * MIB
    assert statistics.held == statistics.peak == 1024 + 10 * MIB
    assert statistics.device_total == 1 << 30
    assert statistics.device_free == (1 << 30) - statistics.held - (empty.device_total - empty.device_free)
    assert (statistics.allocations, statistics.retries) == (2, 0)
    device.empty_cache()
    statistics = device.statistics()
    assert (statistics.live, statistics.cached, statistics.peak) == (1024, 0, 1024 + 10 * MIB)
    del first
    assert device.statistics().cached == 1024


def test_empty_cache_gives_everything_back(device, stub, side):
    before = stub.used()
    kept = [device.allocate(5000, 0), device.allocate(5000, side)]
    for size in (10, 1000, 10**6, 10**8):
        for stream in (0, side):
            device.allocate(size, stream)
    device.empty_cache()
    assert stub.used() == before + 2 * block_size(5000)
    kept.clear()
    device.empty_cache()
    assert stub.used() == before
    assert list(device.memory._pools) == [0]


# --- coming back ----------------------------------------------------------------------------------------------------


class Node:
    """Something with a finalizer in a cycle, from which a buffer can still be reached."""

    def __init__(self, buffer, seen):
        self.buffer = buffer
        self.seen = seen
        self.me = self

    def __del__(self):
        self.seen.append(self.buffer)


def test_the_collector_does_not_give_memory_back_too_early(device):
    """A finalizer that the collector runs with ours revives the buffer; its memory must not be handed out."""
    early = 0
    for _ in range(200):
        seen = []
        Node(device.allocate(1000, 0), seen)
        gc.collect()
        (buffer,) = seen
        taken = device.allocate(1000, 0)
        early += taken.pointer == buffer.pointer
        pointer = buffer.pointer
        del taken, buffer
        seen.clear()
        gc.collect()
        again = [device.allocate(1000, 0), device.allocate(1000, 0)]
        assert pointer in [one.pointer for one in again], "the block is lost"
        assert len({one.pointer for one in again}) == 2, "the block was given back twice"
    assert early == 0


def test_a_naive_finalizer_does(device, monkeypatch):
    """The test above can fail."""
    monkeypatch.setattr(Buffer, "__del__", lambda self: self.free.append(self.pointer))
    seen = []
    Node(device.allocate(1000, 0), seen)
    gc.collect()
    assert device.allocate(1000, 0).pointer == seen[0].pointer
    monkeypatch.undo()


def test_a_revived_buffer_may_still_be_marked(device, side, stub):
    """What it learns after the collector ran its finalizer holds for its heir."""
    seen = []
    Node(device.allocate(1000, 0), seen)
    gc.collect()
    device.join(seen[0], side)
    stub.hold(side, True)
    pointer = seen[0].pointer
    seen.clear()
    assert device.allocate(1000, 0).pointer != pointer
    stub.hold(side, False)


def test_buffers_take_weak_references(device):
    buffer = device.allocate(10, 0)
    reference = weakref.ref(buffer)
    del buffer
    assert reference() is None


def test_threads_allocate_and_free(device, side):
    """No block is in two hands, and none is lost."""
    live, clashes = set(), []

    def body(seed):
        mine = []
        for step in range(3000):
            buffer = device.allocate(500 * (1 + (seed + step) % 7), (0, side)[step % 2])
            if buffer.pointer in live:
                clashes.append(buffer.pointer)
            live.add(buffer.pointer)
            mine.append(buffer)
            del buffer
            if len(mine) > 20:
                live.discard(mine[step % 20].pointer)
                del mine[step % 20]
        for buffer in mine:
            live.discard(buffer.pointer)

    threads = [threading.Thread(target=body, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clashes == []
    statistics = device.statistics()
    assert statistics.live == 0
    assert statistics.held == statistics.cached


# --- foreign memory -------------------------------------------------------------------------------------------------


class Owner:
    """Somebody else's memory."""


def foreign(device, readonly=False):
    owner = Owner()
    return borrow(device.index, 0x1000, 64, owner, readonly, 1), weakref.ref(owner)


def test_foreign_memory_lives_as_long_as_its_buffer(device):
    buffer, owner = foreign(device, readonly=True)
    assert (buffer.pointer, buffer.nbytes, buffer.readonly) == (4096, 64, True)
    assert (buffer.stream, buffer.device_index) == (0, 0)
    assert owner() is not None
    del buffer
    assert owner() is None
    assert device.statistics().cached == 0


@pytest.mark.parametrize("writes", [False, True])
def test_foreign_memory_lives_until_other_streams_are_done(device, side, stub, writes):
    buffer, owner = foreign(device)
    device.join(buffer, side, writes)
    stub.hold(side, True)
    del buffer
    device.statistics()
    assert owner() is not None
    stub.hold(side, False)
    device.statistics()
    assert owner() is None


def test_foreign_owners_do_not_pile_up(device, side):
    """Where memory of our own is always at hand, nothing else looks at what came back."""
    owners = []
    for _ in range(500):
        buffer, owner = foreign(device)
        device.join(buffer, side)
        owners.append(owner)
    assert sum(owner() is not None for owner in owners) < 50


# --- out of memory --------------------------------------------------------------------------------------------------


def test_out_of_memory_flushes_and_tries_again(device, stub, side):
    held = [device.allocate(300 * MIB, stream) for stream in (0, side)]
    marked = device.allocate(200 * MIB, 0)
    device.join(marked, side)
    del held, marked
    assert stub.used() >= 800 * MIB
    big = device.allocate(1000 * MIB, 0)
    assert device.statistics()[:3] == (1000 * MIB, 0, 1000 * MIB)
    assert device.statistics().retries in (0, 1)
    del big


def test_small_blocks_are_flushed_too(device, stub):
    small = [device.allocate(30 * MIB, 0) for _ in range(30)]
    del small
    assert device.allocate(900 * MIB, 0).nbytes == 900 * MIB
    assert device.statistics().retries == 1


def test_cyclic_garbage_is_collected_before_giving_up(device):
    cycle = [device.allocate(900 * MIB, 0)]
    cycle.append(cycle)
    gc.disable()
    try:
        del cycle
        assert device.allocate(800 * MIB, 0).nbytes == 800 * MIB
    finally:
        gc.enable()


def test_out_of_memory_says_how_much_there_is(device, stub):
    live = device.allocate(600 * MIB, 0)
    cached = [device.allocate(20 * MIB, 0) for _ in range(5)]
    del cached
    with pytest.raises(OutOfMemoryError) as caught:
        device.allocate(600 * MIB + 5, 0)
    message = str(caught.value)
    assert "allocate: cuda:0 (Stub 0) has no 600.0 MiB left: 42" in message
    assert "MiB of 1.0 GiB are free, arrays of this process hold 600.0 MiB, and 100.0 MiB that were cached" in message
    assert "cuMemAllocFromPoolAsync: CUDA_ERROR_OUT_OF_MEMORY" in message
    assert "torch.cuda.empty_cache()" in message
    assert caught.value.name == "CUDA_ERROR_OUT_OF_MEMORY"
    assert isinstance(caught.value, MemoryError)
    assert device.statistics().retries == 1
    del live
    assert device.allocate(600 * MIB + 5, 0).nbytes == 600 * MIB + 5


def test_memory_taken_after_a_flush_on_a_side_stream_is_not_lost(device, stub, side):
    """The flush forgets streams that order no memory, but not the one that asks."""
    before = stub.used()
    cached = [device.allocate(500 * MIB, 0), device.allocate(200 * MIB, 0)]
    del cached
    big = device.allocate(900 * MIB, side)
    assert device.statistics().retries == 0  # other large blocks went back before
    del big
    device.empty_cache()
    small = [device.allocate(30 * MIB, 0) for _ in range(30)]
    del small
    big = device.allocate(850 * MIB, side)
    assert device.statistics().retries == 1
    pointer = big.pointer
    del big
    assert device.allocate(850 * MIB, side).pointer == pointer
    device.empty_cache()
    assert stub.used() == before


def test_other_errors_are_not_retried(device, stub):
    stub.fail("cuMemAllocFromPoolAsync", 700)
    with pytest.raises(CudaError, match="cuMemAllocFromPoolAsync: CUDA_ERROR_ILLEGAL_ADDRESS"):
        device.allocate(12345, 0)
    assert device.statistics().retries == 0
    device.allocate(12345, 0)


# --- captures -------------------------------------------------------------------------------------------------------


def test_a_capture_does_not_touch_the_free_lists(device, stub, side):
    free = device.allocate(1000, side).pointer
    stub.capture(side, 7)
    first = device.allocate(1000, side)
    assert first.pointer != free
    pointer = first.pointer
    del first
    again = device.allocate(1000, side)
    assert again.pointer == pointer  # within one capture, the stream runs in order
    del again
    stub.capture(side, 8)
    assert device.allocate(1000, side).pointer not in (free, pointer)
    stub.capture(side, 0)
    eager = [device.allocate(1000, side) for _ in range(3)]
    assert free in [one.pointer for one in eager]
    assert pointer not in [one.pointer for one in eager]


def test_memory_of_a_capture_is_never_given_back(device, stub, side):
    stub.capture(side, 7)
    buffer = device.allocate(1000, side)
    stub.capture(side, 0)
    device.join(buffer, 0, True)
    pointer = buffer.pointer
    stub.start_log()
    del buffer
    device.empty_cache()
    assert pointer not in [call.object for call in stub.log() if call.name == "cuMemFreeAsync"]
    assert device.allocate(1000, 0).pointer != pointer


def test_out_of_memory_in_a_capture_does_not_synchronize(device, stub, side):
    stub.capture(side, 7)
    stub.start_log()
    with pytest.raises(OutOfMemoryError):
        device.allocate(2000 * MIB, side)
    assert "cuCtxSynchronize" not in names(stub)
    stub.capture(side, 0)


# --- other libraries' allocators ------------------------------------------------------------------------------------


class Counting:
    """An allocator with its books."""

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
    sources.choose(allocator)
    device.memory.use(sources.current(device))


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
    assert device.allocate(1000, side).pointer == pointer  # kept for the very next one
    second = device.allocate(5000, 0)
    assert counting.held == {second.pointer: block_size(5000)}  # the first went back
    stub.start_log()
    del before
    device.allocate(20000, 0)
    assert "cuMemFreeAsync" in names(stub)  # to where it came from
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


def test_out_of_memory_of_an_allocator_that_is_set(device):
    class OutOfMemoryError(RuntimeError):  # as torch's and CuPy's
        pass

    calls = []

    def allocate(nbytes, stream):
        calls.append(nbytes)
        raise OutOfMemoryError("no more")

    with_source(device, (allocate, lambda pointer, nbytes, stream: None))
    with pytest.raises(MemoryError, match="the driver says: the allocator that was set: OutOfMemoryError: no more"):
        device.allocate(1000, 0)
    assert calls == [1024, 1024]


def test_an_allocator_that_returns_no_address(device):
    with_source(device, (lambda nbytes, stream: 1001, lambda pointer, nbytes, stream: None))
    with pytest.raises(CudaError, match=r"set_allocator: allocate\(1024, 0\) returned 0x3e9; expected an address"):
        device.allocate(1000, 0)


@pytest.mark.parametrize("bad", [3, "torch", (len,), (len, 3), object(), types.SimpleNamespace(allocate=len)])
def test_something_that_is_no_allocator(device, bad):
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
