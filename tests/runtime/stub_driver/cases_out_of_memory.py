"""The allocator without free memory: the blocks that it frees first, and its error."""

from __future__ import annotations

import gc
import random

import pytest

from tilearray_cuda.errors import CudaError, OutOfMemoryError
from tilearray_cuda.runtime.memory.buffers import block_size

MIB = 1 << 20


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


def test_small_blocks_are_also_flushed(device, stub):
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


def test_out_of_memory_reports_the_memory(device, stub):
    live = device.allocate(600 * MIB, 0)
    cached = [device.allocate(20 * MIB, 0) for _ in range(5)]
    del cached
    with pytest.raises(OutOfMemoryError) as caught:
        device.allocate(600 * MIB + 5, 0)
    message = str(caught.value)
    assert "allocate: cuda:0 (Stub 0) cannot allocate 600.0 MiB: 42" in message
    assert "MiB of 1.0 GiB are free, arrays of this process hold 600.0 MiB, and 100.0 MiB of cache" in message
    assert "cuMemAllocFromPoolAsync: CUDA_ERROR_OUT_OF_MEMORY" in message
    assert "torch.cuda.empty_cache()" in message
    assert caught.value.name == "CUDA_ERROR_OUT_OF_MEMORY"
    assert isinstance(caught.value, MemoryError)
    assert device.statistics().retries == 1
    del live
    assert device.allocate(600 * MIB + 5, 0).nbytes == 600 * MIB + 5


def test_memory_taken_after_a_flush_on_a_side_stream_is_not_lost(device, stub, side):
    """The flush forgets streams without memory, except the stream of the request."""
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


# --- a limit of the user --------------------------------------------------------------------------------------------


def test_a_limit_counts_as_the_memory_of_the_gpu(device, stub):
    device.memory.set_limit(100 * MIB)
    held = [device.allocate(28 * MIB, 0) for _ in range(3)]
    stub.start_log()
    with pytest.raises(OutOfMemoryError) as caught:
        device.allocate(20 * MIB, 0)
    message = str(caught.value)
    assert "cannot allocate 20.0 MiB: " in message
    assert "hold 84.0 MiB, and 0 bytes of cache were freed" in message
    assert message.endswith("the limit is 100.0 MiB; write ta.cuda.set_memory_limit(None) for none")
    assert "cuMemAllocFromPoolAsync" not in [call.name for call in stub.log()]
    assert device.statistics().limit == 100 * MIB
    held.pop()
    again = device.allocate(20 * MIB, 0)  # the cached block of another size went back for it
    assert device.statistics().held == 76 * MIB
    del again
    device.memory.set_limit(None)
    assert device.allocate(800 * MIB, 0).nbytes == 800 * MIB


def test_a_lower_limit_frees_the_cache_and_keeps_arrays(device, stub, side):
    before = stub.used()
    kept, cached = device.allocate(10 * MIB, side), device.allocate(10 * MIB, 0)
    del cached
    device.memory.set_limit(15 * MIB)
    assert stub.used() == before + 10 * MIB
    device.memory.set_limit(5 * MIB)
    assert device.statistics()[:3] == (10 * MIB, 0, 10 * MIB)
    with pytest.raises(OutOfMemoryError, match=r"the limit is 5\.0 MiB"):
        device.allocate(1, 0)
    del kept
    assert device.allocate(10, 0).nbytes == 10
    device.memory.set_limit(None)
    assert device.allocate(10 * MIB, side).nbytes == 10 * MIB


def test_out_of_memory_at_random_limits_loses_nothing(device, stub, side):
    """Each allocation is given, or refused because the live blocks leave too little room; then all memory goes back."""
    rng, live, refused, before = random.Random(7), [], 0, stub.used()
    gc.freeze()  # each refusal collects garbage first: only that of this test
    for _ in range(1000):
        limit = rng.randrange(64) * MIB
        device.memory.set_limit(limit)
        nbytes = rng.choice([1, 3 * MIB, 10 * MIB, 33 * MIB])
        held = sum(block_size(each.nbytes) for each in live)
        try:
            live.append(device.allocate(nbytes, rng.choice([0, side])))
            assert held + block_size(nbytes) <= limit
        except OutOfMemoryError:
            refused += 1
            assert held + block_size(nbytes) > limit
        while live and rng.random() < 0.5:
            live.pop(rng.randrange(len(live)))
    assert refused > 150
    gc.unfreeze()
    live.clear()
    device.memory.set_limit(None)
    device.empty_cache()
    assert stub.used() == before
