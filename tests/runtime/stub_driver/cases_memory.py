"""The allocator: reuse of blocks, their return to the driver, and the order of uses."""

from __future__ import annotations

import gc
import weakref

import pytest
from support.threads import in_threads

from tilearray_cuda.errors import OutOfMemoryError
from tilearray_cuda.runtime.interop import borrow
from tilearray_cuda.runtime.memory.buffers import LARGE, Buffer, block_size

MIB = 1 << 20


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
    assert [call.name for call in stub.log()] == []


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
    assert [call.name for call in stub.log()] == ["cuMemFreeAsync", "cuMemAllocFromPoolAsync"]
    assert device.statistics().held == second.nbytes + 1024
    del second


def test_large_blocks_serve_sizes_that_are_a_little_smaller(device, stub):
    first = device.allocate(100 * MIB, 0)
    pointer = first.pointer
    del first
    stub.start_log()
    second = device.allocate(90 * MIB, 0)
    assert (second.pointer, stub.log(), device.statistics().live) == (pointer, [], 100 * MIB)
    del second
    assert device.allocate(88 * MIB, 0).pointer != pointer
    assert device.allocate(100 * MIB, 0).pointer == pointer


def test_large_blocks_stay_for_programs_that_alternate_sizes(device, stub):
    for _ in range(2):
        stub.start_log()
        for size in (50, 70, 100):
            device.allocate(size * MIB, 0)
    assert stub.log() == []
    assert device.statistics()[:3] == (0, 220 * MIB, 220 * MIB)


@pytest.mark.parametrize(
    ("free", "wanted", "limit"),
    [
        (170, 40, None),  # more than four times what is in use
        (120, 140, None),  # more than a quarter of the GPU
        (50, 70, 400 * MIB),  # more than a quarter of the limit
    ],
)
def test_large_blocks_that_stay_are_bounded(device, stub, free, wanted, limit):
    device.memory.set_limit(limit)
    device.allocate(free * MIB, 0)
    stub.start_log()
    device.allocate(wanted * MIB, 0)
    assert [call.name for call in stub.log()] == ["cuMemFreeAsync", "cuMemAllocFromPoolAsync"]
    assert device.statistics().held == wanted * MIB


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


# --- release --------------------------------------------------------------------------------------------------------


class Node:
    """An object with a finalizer in a cycle, which can still reach a buffer."""

    def __init__(self, buffer, seen):
        self.buffer = buffer
        self.seen = seen
        self.me = self

    def __del__(self):
        self.seen.append(self.buffer)


@pytest.fixture
def few_objects():
    """Nothing else for the collector to look at: each collection is quick."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("few_objects")
def test_the_collector_does_not_give_memory_back_too_early(device):
    """A finalizer in the same collection revives the buffer; no other array may get its memory."""
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
        assert len({one.pointer for one in again}) == 2, "the block was freed twice"
    assert early == 0


def test_a_naive_finalizer_does(device, monkeypatch):
    """Shows that the test above can fail."""
    monkeypatch.setattr(Buffer, "__del__", lambda self: self.free.append(self.pointer))
    seen = []
    Node(device.allocate(1000, 0), seen)
    gc.collect()
    assert device.allocate(1000, 0).pointer == seen[0].pointer
    monkeypatch.undo()


def test_a_revived_buffer_may_still_be_marked(device, side, stub):
    """Marks set after the collector ran the finalizer apply to the heir."""
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
    """No block has two users, and no block is lost."""
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

    assert in_threads(6, body) == [None] * 6
    assert clashes == []
    statistics = device.statistics()
    assert statistics.live == 0
    assert statistics.held == statistics.cached


# --- foreign memory -------------------------------------------------------------------------------------------------


class Owner:
    """The memory of another owner."""


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
    """The allocator also collects marked blocks if our own free blocks always suffice."""
    owners = []
    for _ in range(500):
        buffer, owner = foreign(device)
        device.join(buffer, side)
        owners.append(owner)
    assert sum(owner() is not None for owner in owners) < 50


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
    assert "cuCtxSynchronize" not in [call.name for call in stub.log()]
    stub.capture(side, 0)
