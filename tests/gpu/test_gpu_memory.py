"""Device memory on a GPU: reuse, statistics, out of memory, copies, and other libraries' allocators."""

from __future__ import annotations

import gc
import re

import numpy as np
import pytest
from support.attacks import memory as attack

import tilearray as ta
from tilearray import cuda

pytest.importorskip("tilearray_cuda.runtime.driver", reason="cuda-python is not installed")

from tilearray_cuda.device import open_device
from tilearray_cuda.errors import OutOfMemoryError
from tilearray_cuda.runtime import staging

MIB = 1 << 20


@pytest.fixture(autouse=True)
def _empty():
    gc.collect()
    cuda.empty_cache("cuda:0")
    yield
    cuda.set_allocator(None)
    gc.collect()
    cuda.empty_cache("cuda:0")


def test_an_expression_in_a_loop_takes_no_new_memory():
    x = ta.ones(10000, device="cuda:0")
    y = x
    for _ in range(10):
        y = x * 2 + y
    before = cuda.memory_statistics("cuda:0")
    for _ in range(1000):
        y = x * 2 + y
    after = cuda.memory_statistics("cuda:0")
    assert after.allocations == before.allocations
    assert after.held == before.held
    assert ta.to_numpy(y)[0] == 1 + 2 * 1010


@pytest.mark.whole_gpu
def test_statistics_agree_with_the_driver():
    before = cuda.memory_statistics("cuda:0")
    x = ta.empty(1 << 30, dtype="int8", device="cuda:0")
    during = cuda.memory_statistics("cuda:0")
    assert during.live - before.live == 1 << 30
    assert 0.9 * (1 << 30) <= before.device_free - during.device_free <= 1.2 * (1 << 30)
    del x
    assert cuda.memory_statistics("cuda:0").cached >= 1 << 30
    cuda.empty_cache("cuda:0")
    after = cuda.memory_statistics("cuda:0")
    assert after.cached == 0
    assert abs(after.device_free - before.device_free) < 64 * MIB


@pytest.mark.whole_gpu
def test_memory_that_is_cached_is_found_when_it_is_needed():
    """Most of the memory, or of the limit in force, is cached in small blocks, and one large block needs it."""
    before = cuda.memory_statistics("cuda:0")
    free = min(before.device_free, (before.limit or before.device_total) - before.held)
    piece = 31 * MIB
    pieces = [open_device(0).allocate(piece, 0) for _ in range(int(0.8 * free) // piece)]
    del pieces
    x = ta.empty(int(0.7 * free), dtype="int8", device="cuda:0")
    assert x.size == int(0.7 * free)
    assert cuda.memory_statistics("cuda:0").retries > before.retries


def test_out_of_memory_reports_the_memory():
    statistics = cuda.memory_statistics("cuda:0")
    with pytest.raises(OutOfMemoryError) as caught:
        ta.empty(2 * statistics.device_total, dtype="int8", device="cuda:0")
    assert re.search(r"cannot allocate [\d.]+ GiB: .*iB of [\d.]+ GiB are free, arrays of this", str(caught.value))
    assert isinstance(caught.value, MemoryError)
    assert ta.to_numpy(ta.ones(10, device="cuda:0") + 1).tolist() == [2] * 10


AROUND = [1, staging.SMALL, staging.SMALL + 1, staging.DIRECT, staging.DIRECT + 1]
AROUND += [staging.CHUNK, staging.CHUNK + 1, 2 * staging.CHUNK, 5 * staging.CHUNK + 3]


@pytest.mark.parametrize("nbytes", AROUND)
def test_copies_of_all_sizes(nbytes):
    array = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    x = ta.asarray(array, device="cuda:0")
    array2 = array.copy()
    array[:] = 0  # asarray read it before it returned
    assert np.array_equal(ta.to_numpy(x), array2)
    assert np.array_equal(ta.to_numpy(x[::-1]), array2[::-1])


def test_many_small_copies_in_flight():
    """More copies than pinned chunks, each from the same host array with new contents."""
    array = np.empty(100, np.int64)
    arrays = []
    for i in range(500):
        array[:] = i
        arrays.append(ta.asarray(array, device="cuda:0"))
    assert [int(ta.to_numpy(x)[-1]) for x in arrays] == list(range(500))


def test_sparse_views_come_to_the_host():
    x = ta.asarray(np.arange(100_000).reshape(100, 1000), device="cuda:0")
    assert ta.to_numpy(x[:, 7]).tolist() == list(range(7, 100_000, 1000))
    assert ta.to_numpy(x[::50, ::-333]).tolist() == np.arange(100_000).reshape(100, 1000)[::50, ::-333].tolist()


def test_memory_of_torchs_allocator():
    torch = pytest.importorskip("torch")
    torch.cuda.init()
    before = torch.cuda.memory_allocated(0)
    cuda.set_allocator(torch)
    x = ta.ones(100 * MIB, dtype="int8", device="cuda:0") + 1
    assert torch.cuda.memory_allocated(0) - before >= 100 * MIB
    assert int(ta.to_numpy(x)[-1]) == 2
    del x
    cuda.set_allocator(None)
    assert torch.cuda.memory_allocated(0) == before


def test_memory_of_cupys_pool():
    cupy = pytest.importorskip("cupy")
    pool = cupy.cuda.MemoryPool()
    cuda.set_allocator(pool)
    stream = cuda.Stream("cuda:0")
    for on in (None, stream):
        with cuda.stream(on):
            x = ta.ones(10 * MIB, dtype="int8", device="cuda:0") + 1
            assert pool.used_bytes() >= 10 * MIB
            assert int(ta.to_numpy(x)[-1]) == 2
            del x
    cuda.set_allocator(None)
    assert pool.used_bytes() == 0


# --- limits and hooks -------------------------------------------------------------------------------------------------


def test_out_of_memory_at_random_limits_does_no_harm():
    """`scripts/reliability memory --device cuda` runs ten thousand."""
    outcome = attack.run(200, 3, "cuda:0")
    assert outcome.wrong == []
    assert outcome.ends["out of memory"] == 200
    assert outcome.ends["right"] > 20


def test_wrong_results_under_a_limit_are_seen(monkeypatch):
    count = iter(range(10**6))
    wrong = {"expression": lambda x: x + next(count)}
    monkeypatch.setattr(attack, "CALLS", wrong)
    assert any("another result" in told for told in attack.run(30, 3, "cuda:0").wrong)


def test_hooks_hear_of_each_array():
    x = ta.ones(1000, dtype="float32", device="cuda:0")
    taken = []
    with cuda.memory_hook(lambda event: taken.append(event.nbytes) if event.kind == "take" else None):
        y = x * 2 + 1
    assert taken == [4000, 4000]
    assert ta.to_numpy(y)[0] == 3


# --- pinned memory ----------------------------------------------------------------------------------------------------


def test_copies_without_a_wait_both_ways():
    values = np.random.default_rng(3).integers(0, 2**31, 25 * MIB // 4).astype("int32")
    x = ta.asarray(values, device="cuda:0")
    host, there, side = cuda.pinned_like(x), ta.empty_like(x), cuda.Stream("cuda:0")
    with cuda.stream(side):
        event = cuda.copy_async(x + 1, host)
    event.synchronize()
    assert np.array_equal(ta.to_numpy(host), values + 1)
    host *= 2
    with cuda.stream(side):
        cuda.copy_async(host, there)
    assert np.array_equal(ta.to_numpy(there - 1), 2 * values + 1)  # waits for the side stream


def test_a_copy_returns_before_it_is_done():
    """A copy behind much work: the event has not passed when the call returns."""
    x, host = ta.ones(1 << 28, dtype="float32", device="cuda:0"), None
    host = cuda.pinned_like(x[:10])
    for _ in range(20):
        x *= 1
    event = cuda.copy_async(x[:10], host)
    assert not event.is_done()
    event.synchronize()
    assert host.tolist() == [1] * 10


def test_pinned_memory_of_torch():
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(1000, dtype=torch.float32).pin_memory()
    cuda.copy_async(ta.full(1000, 3, dtype="float32", device="cuda:0"), ta.asarray(tensor, device="cpu")).synchronize()
    assert tensor.tolist() == [3] * 1000
