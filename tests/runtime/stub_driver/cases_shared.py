"""Launches that need memory beside their operands, over the stub driver: each launch allocates and zeroes its own."""

from __future__ import annotations

import contextlib

import pytest

import tilearray as ta
from tilearray import cuda
from tilearray.engine import caches
from tilearray_cuda import kernel
from tilearray_cuda.kernels.cubin import Cubin


@pytest.fixture(autouse=True)
def kernels(monkeypatch, stub):
    """Machine code of no kernel."""
    caches.KERNELS.clear()

    def cubin_of(source, arch, contract):
        return Cubin(f"STUB {len(source.arguments) + 2}".encode(), source.name, source.tile.warps, 0)

    monkeypatch.setattr(kernel, "cubin_of", cubin_of)


def work(stub):
    return [call for call in stub.log() if call.name in ("cuLaunchKernel", "cuMemsetD32Async")]


def softmax(x):
    return ta.softmax(x, axis=0)


@ta.fuse
def centered(x):
    return x - ta.mean(x, axis=0, keepdims=True)


@pytest.mark.parametrize("function", [softmax, centered])
@pytest.mark.parametrize("on_a_stream", [False, True])
def test_counters_are_zeroed_before_each_launch(device, stub, function, on_a_stream):
    x = ta.ones((3000, 100), dtype="float32", device="cuda:0")
    function(x)
    stream = cuda.Stream()
    handle = stream.handle if on_a_stream else 0
    stub.start_log()
    with cuda.stream(stream) if on_a_stream else contextlib.nullcontext():
        results = [function(x) for _ in range(2)]
    calls = work(stub)
    assert [call.name for call in calls] == ["cuMemsetD32Async", "cuLaunchKernel"] * 2
    assert {call.stream or 0 for call in calls} == {handle}
    for zeroed, launched, found in zip(calls[::2], calls[1::2], results, strict=True):
        assert launched.arguments[:2] == (found._buffer.pointer, x._buffer.pointer)
        assert zeroed.object in launched.arguments[2:]
        assert zeroed.size % 128 == 0
        assert zeroed.size >= 4 * (1 + 2 * 100 // 32)  # programs that started, and those that arrived
    assert results[0]._buffer.pointer != results[1]._buffer.pointer


@pytest.mark.parametrize("function", [ta.softmax, ta.logsumexp, ta.fuse(lambda x, axis: x - ta.max(x, axis=axis))])
def test_a_walk_backwards_begins_at_the_last_element(device, stub, function):
    x = ta.ones((300, 20), dtype="float32", device="cuda:0")
    stub.start_log()
    found = function(x[:, ::-1], axis=0)
    (launched,) = [call for call in work(stub) if call.name == "cuLaunchKernel"]
    assert launched.arguments[:2] == (found._buffer.pointer + 19 * 4, x._buffer.pointer)


def test_a_graph_zeroes_its_counters_at_each_replay(device, stub):
    x = ta.ones((3000, 100), dtype="float32", device="cuda:0")
    softmax(x)
    stub.start_log()
    with cuda.graph() as graph:
        softmax(x)
    calls = work(stub)
    assert [call.name for call in calls] == ["cuMemsetD32Async", "cuLaunchKernel"]
    assert {call.stream for call in calls} == {graph.stream.handle}  # captured, in this order
