"""The allocator without free memory: the blocks that it frees first, and its error."""

from __future__ import annotations

import gc

import pytest

from tilearray_cuda.errors import CudaError, OutOfMemoryError

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
