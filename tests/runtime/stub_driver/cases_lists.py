"""`foreach` over the stub driver: launches, uploads of tables, streams, captures. Nothing is computed."""

from __future__ import annotations

import gc
import types

import numpy as np
import pytest

import tilearray as ta
from tilearray import cuda
from tilearray.engine import caches
from tilearray.explaining import debug
from tilearray_cuda import kernel, lists
from tilearray_cuda.kernels.cubin import Cubin
from tilearray_cuda.runtime.staging import host_bytes

SHAPES = [(3, 5), (7,), (), (0, 3), (2000,), (1024,)]
BLOCKS = [0, 1, 2, 3, 3, 4]  # the member of each program: arrays without elements have none


def step(p, g, rate):
    p -= rate * g


@pytest.fixture(autouse=True)
def kernels(monkeypatch, stub):
    """Machine code of no kernel."""
    caches.KERNELS.clear()

    def cubin_of(source, arch, contract):
        return Cubin(f"STUB {len(source.arguments) + 2}".encode(), source.name, source.tile.warps, 0)

    for module in (kernel, lists):
        monkeypatch.setattr(module, "cubin_of", cubin_of)


@pytest.fixture
def fused():
    return ta.fuse(step)


def vectors(count=2):
    return [[ta.empty(shape, device="cuda:0") for shape in SHAPES] for _ in range(count)]


def names(stub):
    return [call.name for call in stub.log() if call.name in ("cuLaunchKernel", "cuMemcpyHtoDAsync")]


def int64s(address, count):
    return host_bytes(address, 8 * count).view(np.int64).tolist()


def test_one_launch_with_tables_that_are_uploaded_once(stub, fused):
    p, g = vectors()
    ta.foreach(fused, p, g, 0.5)
    stub.start_log()
    for rate in (0.5, 0.25, 1.0):
        ta.foreach(fused, p, g, rate)
    assert names(stub) == ["cuLaunchKernel"] * 3
    g[1] = ta.empty(7, device="cuda:0")
    stub.start_log()
    ta.foreach(fused, p, g, 0.5)
    ta.foreach(fused, p, g, 0.5)
    assert names(stub) == ["cuMemcpyHtoDAsync", "cuLaunchKernel", "cuLaunchKernel"]


def test_a_thousand_arrays_are_one_launch(stub):
    p, g = ([ta.empty(size % 50, device="cuda:0") for size in range(1000)] for _ in range(2))
    stub.start_log()
    ta.foreach(step, p, g, 0.5)
    assert names(stub) == ["cuMemcpyHtoDAsync"] * 2 + ["cuLaunchKernel"]


def test_the_tables_of_a_launch(stub, fused):
    """The stub's memory is the host's."""
    p, g = vectors()
    stub.start_log()
    ta.foreach(fused, p, g, 0.5)
    (launch,) = [call for call in stub.log() if call.name == "cuLaunchKernel"]
    members, facts, addresses, _ = launch.arguments
    assert members % 16 == facts % 16 == addresses % 16 == 0
    some = [place for place, shape in enumerate(SHAPES) if 0 not in shape]
    sizes = [int(np.prod(SHAPES[place])) for place in some]
    first = [0, 1, 2, 3, 5]
    assert int64s(facts, 10) == [part for pair in zip(first, sizes, strict=True) for part in pair]
    assert np.frombuffer(np.array(int64s(members, 3)).tobytes(), np.int32).tolist() == BLOCKS
    assert len(BLOCKS) == sum(-(-size // 1024) for size in sizes)
    expected = [[p[place]._buffer.pointer, g[place]._buffer.pointer] for place in some]
    rows = np.array(int64s(addresses, 15)).reshape(5, 3).tolist()
    assert [sorted({*row}) for row in rows] == [sorted(row) for row in expected]
    assert [row[0] for row in rows] == [row[0] for row in expected]


def test_other_streams_wait_for_the_memory_and_the_tables(stub, fused):
    p, g = vectors()
    ta.foreach(fused, p, g, 0.5)
    stream = cuda.Stream("cuda:0")
    stub.start_log()
    with cuda.stream(stream):
        ta.foreach(fused, p, g, 0.5)
    calls = [call for call in stub.log() if call.name in ("cuStreamWaitEvent", "cuLaunchKernel", "cuMemcpyHtoDAsync")]
    assert [call.stream for call in calls] == [stream.handle] * len(calls)
    assert calls[-1].name == "cuLaunchKernel"
    assert [call.name for call in calls].count("cuLaunchKernel") == 1
    assert len(calls) >= 2 * len(SHAPES)  # each array, and both tables
    assert all(x._buffer.stream == stream.handle for x in p if x.size)
    stub.start_log()
    ta.foreach(fused, p, g, 0.5)  # back on the default stream, which waits for the other one
    calls = [call for call in stub.log() if call.name in ("cuStreamWaitEvent", "cuLaunchKernel")]
    assert len(calls) > len(SHAPES) / 2
    assert calls[-1].name == "cuLaunchKernel"


def test_a_capture_has_a_launch_for_each_array(stub, fused):
    p, g = vectors()
    g_only = [x for x in p if x.size]
    ta.foreach(fused, p, g, 0.5)
    graph = cuda.graph()
    stub.start_log()
    with graph:
        ta.foreach(fused, p, g, 0.5)
    assert names(stub) == ["cuLaunchKernel"] * len(g_only)


def test_a_launch_over_a_list_prints_that_it_runs(stub, capsys):
    p, g = vectors()
    debug.start("1")
    try:
        ta.foreach(ta.fuse(step), p, g, 0.5)
    finally:
        debug.start("0")
    printed = capsys.readouterr().err.splitlines()
    assert printed[-1] == "tilearray runs fused(float32, float32, float32) -> float32 over a list of 5 on cuda:0"


def test_no_launch_if_a_target_is_read_only_or_a_number_does_not_fit(stub, fused):
    p, g = vectors()
    ta.foreach(fused, p, g, 0.5)
    p[4]._buffer = types.SimpleNamespace(pointer=p[4]._buffer.pointer, readonly=True, stream=0)
    stub.start_log()
    with pytest.raises(ta.WriteError, match="read-only"):
        ta.foreach(fused, p, g, 0.5)
    p, g = ([ta.empty(3, dtype="int8", device="cuda:0") for _ in range(2)] for _ in range(2))
    with pytest.raises(OverflowError):
        ta.foreach(fused, p, g, 300)
    assert names(stub) == []


def test_arrays_that_share_memory_are_launched_one_after_the_other(stub, fused):
    p, g = vectors()
    ta.foreach(fused, p, g, 0.5)
    stub.start_log()
    ta.foreach(fused, [*p[:2], p[0]], [*g[:2], g[0]], 0.5)
    assert names(stub) == ["cuLaunchKernel"] * 3
    stub.start_log()
    ta.foreach(fused, p[:2], [g[0], ta.reshape(p[0], (15,))[:7]], 0.5)
    assert names(stub) == ["cuLaunchKernel"] * 2


def test_tables_are_freed_with_the_function(device, stub):
    p, g = vectors()
    opened = p[0].device.backend
    gc.collect()
    before = opened.statistics().live
    fused = ta.fuse(step)
    ta.foreach(fused, p, g, 0.5)
    assert opened.statistics().live > before
    del fused
    gc.collect()
    assert opened.statistics().live == before


def test_calls_that_run_one_by_one_return_the_arrays_that_their_launches_make():
    """Because their numbers differ, or since each has a reduction."""
    x = [ta.ones((size,), dtype="float32", device="cuda:0") for size in (8, 16, 24)]
    found = ta.foreach(lambda x, k: (x * k, x + 1), x, [1.0, 2.0, 3.0])
    assert [[each.shape for each in pair] for pair in found] == [[each.shape] * 2 for each in x]
    y = [ta.ones((size, size), dtype="float32", device="cuda:0") for size in (8, 16, 24)]
    found = ta.foreach(lambda y: y - ta.sum(y, axis=0), y)
    assert [each.shape for each in found] == [each.shape for each in y]
