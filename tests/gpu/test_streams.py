"""Streams on a GPU: memory is never read, overwritten or reused too early; graphs of torch; streams of others.

Work makes the slow stream slow: several passes over an array of a gigabyte take milliseconds, in which an access
without a wait would fail. Each rule has two tests: with the rule all results are right; without it some are wrong.
"""

from __future__ import annotations

import gc
import subprocess
import sys

import numpy as np
import pytest

import tilearray as ta
from tilearray import cuda

pytest.importorskip("tilearray_cuda.runtime.driver", reason="cuda-python is not installed")

from tilearray_cuda.errors import CaptureError, CudaError
from tilearray_cuda.runtime import gpu, streams

COUNT = 1 << 20


@pytest.fixture(autouse=True)
def _quiet():
    yield
    cuda.synchronize("cuda:0")
    gc.collect()
    cuda.empty_cache("cuda:0")


@pytest.fixture(scope="module")
def ballast():
    """The work that keeps a stream busy."""
    array = ta.ones(1 << 28, dtype="float32", device="cuda:0")
    yield array
    del array


def keep_busy(ballast, times=10):
    """Start some milliseconds of work on the active stream."""
    for _ in range(times):
        ballast.__imul__(1.0)


def ints(value):
    return ta.full(COUNT, value, dtype="int64", device="cuda:0")


def all_equal(x, value):
    return bool((ta.to_numpy(x) == value).all())


def reuse(side, ballast):
    """Free a block on the default stream before a side stream reads it, then allocate it again."""
    ints(1) + 1  # compiles, so that the next calls take less time on the host than the ballast takes on the GPU
    x = ints(1)
    pointer = x._buffer.pointer
    with cuda.stream(side):
        keep_busy(ballast, 400)
        y = x + 1  # runs when the ballast is done
    del x
    others = [ints(100 + step) for step in range(8)]  # would get the block of x
    reused = pointer in [other._buffer.pointer for other in others]
    cuda.synchronize("cuda:0")
    return all_equal(y, 2), reused


def test_memory_freed_while_another_stream_reads_is_not_reused_early(ballast):
    for _ in range(5):
        right, reused = reuse(cuda.Stream("cuda:0"), ballast)
        assert right
        assert not reused


def test_without_the_events_memory_is_reused_early(ballast, monkeypatch):
    """Shows that the test above can fail."""
    monkeypatch.setattr(streams.Shared, "append", lambda self, pointer: self.free.append(pointer))
    outcomes = [reuse(cuda.Stream("cuda:0"), ballast) for _ in range(5)]
    assert any(reused for _, reused in outcomes)
    assert not all(right for right, _ in outcomes)


def test_memory_is_reused_when_the_other_stream_is_done(ballast):
    side = cuda.Stream("cuda:0")
    x = ints(1)
    pointer = x._buffer.pointer
    with cuda.stream(side):
        y = x + 1
    del x
    side.synchronize()
    others = [ints(3) for _ in range(8)]
    assert pointer in [other._buffer.pointer for other in others]
    assert all_equal(y, 2)


def read_after_write(side, ballast):
    """The default stream writes late, and a side stream reads at once."""
    x = ints(1)
    keep_busy(ballast)
    x += 1
    with cuda.stream(side):
        y = x + 1
    cuda.synchronize("cuda:0")
    return all_equal(y, 3)


def write_after_read(side, ballast):
    """A side stream reads late, and the default stream overwrites at once."""
    x = ints(1)
    with cuda.stream(side):
        keep_busy(ballast)
        y = x + 1
    x += 100
    cuda.synchronize("cuda:0")
    return all_equal(y, 2) and all_equal(x, 101)


@pytest.mark.parametrize("hazard", [read_after_write, write_after_read])
def test_streams_wait_for_each_other(hazard, ballast):
    assert all(hazard(cuda.Stream("cuda:0"), ballast) for _ in range(5))


@pytest.mark.parametrize("hazard", [read_after_write, write_after_read])
def test_streams_do_not_wait_without_the_events(hazard, ballast, monkeypatch):
    """Shows that the test above can fail."""
    monkeypatch.setattr(gpu.Events, "wait", lambda self, stream, other: None)
    assert not all(hazard(cuda.Stream("cuda:0"), ballast) for _ in range(5))


def test_memory_of_a_side_stream_comes_to_the_host_in_order(ballast):
    with cuda.stream(cuda.Stream("cuda:0")):
        keep_busy(ballast)
        x = ints(1) + 1
    assert all_equal(x, 2)


def test_random_work_on_four_streams():
    """Each value equals the value on one stream."""
    draw = np.random.default_rng(0)
    streams = [None, *(cuda.Stream("cuda:0") for _ in range(3))]
    live = [(ints(i), i) for i in range(4)]
    for step in range(2000):
        (x, a), (y, b) = (live[i] for i in draw.integers(0, len(live), 2))
        with cuda.stream(streams[draw.integers(0, 4)]):
            if draw.random() < 0.8:
                live.append((x - y + step, a - b + step))
            else:
                x += 1
                live = [(one, value + 1) if one is x else (one, value) for one, value in live]
        while len(live) > 6:
            del live[draw.integers(0, len(live))]
    for x, value in live:
        assert all_equal(x, value)


# --- streams of others ----------------------------------------------------------------------------------------------


def test_streams_of_torch():
    torch = pytest.importorskip("torch")
    theirs = torch.cuda.Stream()
    with cuda.stream(theirs):
        assert cuda.current_stream().handle == theirs.cuda_stream
        x = ints(1) + 1
    assert x._buffer.stream == theirs.cuda_stream
    assert all_equal(x, 2)
    with cuda.stream(torch.cuda.current_stream()):
        assert cuda.current_stream().handle == 0


def test_streams_of_cupy():
    cupy = pytest.importorskip("cupy")
    theirs = cupy.cuda.Stream(non_blocking=True)
    with cuda.stream(theirs):
        assert cuda.current_stream().handle == theirs.ptr
        x = ints(1) + 1
    assert all_equal(x, 2)
    with cuda.stream(cupy.cuda.Stream.null):
        assert cuda.current_stream().handle == 0
    with pytest.raises(ta.OperandError, match="per-thread default stream"):
        cuda.stream(cupy.cuda.Stream.ptds)


def test_streams_of_cuda_core():
    core = pytest.importorskip("cuda.core")
    device = core.Device(0)
    device.set_current()
    theirs = device.create_stream()
    with cuda.stream(theirs):
        x = ints(1) + 1
    assert all_equal(x, 2)


def test_ours_is_taken_by_others():
    torch = pytest.importorskip("torch")
    ours = cuda.Stream("cuda:0")
    with torch.cuda.stream(torch.cuda.ExternalStream(ours.handle)):
        assert torch.cuda.current_stream().cuda_stream == ours.handle


@pytest.mark.skipif("cuda.device_count() < 2", reason="needs two GPUs")
def test_a_stream_of_another_device():
    with cuda.stream(cuda.Stream("cuda:1")):
        x = ta.ones(10, device="cuda:1") + 1
        with pytest.raises(CudaError, match=r"belongs to cuda:1 and cannot order memory of cuda:0"):
            ta.ones(10, device="cuda:0")
    assert ta.to_numpy(x).tolist() == [2] * 10


def test_events_measure_time(ballast):
    start, end = cuda.Event(timing=True, device="cuda:0"), cuda.Event(timing=True, device="cuda:0")
    side = cuda.Stream("cuda:0")
    with cuda.stream(side):
        side.record(start)
        keep_busy(ballast)
        side.record(end)
    assert not side.is_done()
    end.synchronize()
    assert side.is_done()
    assert 1 < end.milliseconds_since(start) < 10_000


# --- CUDA graphs of torch -------------------------------------------------------------------------------------------


def test_a_graph_of_torch_on_its_stream():
    torch = pytest.importorskip("torch")
    x, out = ints(1), ints(0)
    out + x * 2 + x  # compiled before the capture
    out.__iadd__(x * 2 + x)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph), cuda.stream(torch.cuda.current_stream()):
        y = x * 2 + x
        for _ in range(3):
            y = y + 0  # the capture reuses its blocks
        out += y
    assert all_equal(out, 3)  # nothing ran
    x += 1
    cuda.synchronize("cuda:0")
    for replay in range(3):
        graph.replay()
        torch.cuda.synchronize()
        assert all_equal(out, 3 + 6 * (replay + 1))
    eager = [ints(7) for _ in range(20)]  # memory that is not the graph's
    graph.replay()
    torch.cuda.synchronize()
    assert all(all_equal(one, 7) for one in eager)
    assert all_equal(out, 27)


def test_a_launch_outside_of_a_graph_of_torch_is_refused():
    torch = pytest.importorskip("torch")
    x = ints(1)
    x + x
    graph = torch.cuda.CUDAGraph()
    scratch = torch.zeros(10, device="cuda")
    with torch.cuda.graph(graph):
        scratch += 1
        with pytest.raises(CaptureError, match=r"write with ta\.cuda\.stream\(torch\.cuda\.current_stream\(\)\)"):
            x + x
        with (
            cuda.stream(torch.cuda.current_stream()),
            pytest.raises(CaptureError, match="a CUDA graph captures stream"),
        ):
            ta.to_numpy(x)
    graph.replay()
    torch.cuda.synchronize()
    assert all_equal(x + x, 2)


def test_a_process_that_used_streams_of_torch_ends_well():
    """No weak reference to a stream object of torch stays, because it would read freed memory at exit."""
    pytest.importorskip("torch")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:benchmark", __file__]
    command += ["-k", "torch and not process"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
