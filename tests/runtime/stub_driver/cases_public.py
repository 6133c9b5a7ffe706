"""The namespace ta.cuda, and expressions of tilearray over the stub, without compilation."""

from __future__ import annotations

import types
import weakref

import numpy as np
import pytest

import tilearray as ta
from tilearray import cuda
from tilearray.engine.context import STATE
from tilearray.engine.devices import as_device
from tilearray_cuda.device import open_device
from tilearray_cuda.errors import CudaError, DeferredIndexError


def in_force():
    return STATE.get().stream


class Speaks:
    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return 0, self.handle


def test_streams_of_every_library_are_accepted(stub):
    own = cuda.Stream("cuda:0")
    handle = own.handle
    described = types.SimpleNamespace(__cuda_stream__=(0, handle))  # a property in older versions of cuda.core
    torch, cupy = types.SimpleNamespace(cuda_stream=handle), types.SimpleNamespace(ptr=handle)
    for stream in (own, Speaks(handle), described, torch, cupy, handle):
        with cuda.stream(stream):
            assert in_force() == handle
            assert cuda.current_stream() == own
        assert in_force() == 0
    for stream in (None, 0, 1, Speaks(0), types.SimpleNamespace(ptr=0)):
        with cuda.stream(own), cuda.stream(stream):
            assert in_force() == 0
    assert own.__cuda_stream__() == (0, handle)
    assert repr(own) == f"<Stream {handle:#x} of cuda:0>"


@pytest.mark.parametrize("bad", ["0", 2.5, True, -1, object(), Speaks(None)])
def test_objects_that_are_not_streams_are_refused(bad):
    with pytest.raises(ta.OperandError, match=r"stream: expected a stream, got .*; write ta\.cuda\.Stream\(\)"):
        cuda.stream(bad)


def test_the_per_thread_stream_is_refused():
    with pytest.raises(ta.OperandError, match=r"got the per-thread default stream, .* different stream in each thread"):
        cuda.stream(Speaks(2))


def test_a_stream_in_a_block_is_kept_alive(stub):
    stub.start_log()
    with cuda.stream(cuda.Stream("cuda:0")) as handle:
        cuda.empty_cache("cuda:0")
        x = open_device(0).allocate(8, in_force())
    cuda.Stream("cuda:0")
    cuda.empty_cache("cuda:0")
    assert ("cuStreamDestroy", handle) not in [(call.name, call.stream) for call in stub.log()]
    del x
    cuda.empty_cache("cuda:0")
    assert ("cuStreamDestroy", handle) in [(call.name, call.stream) for call in stub.log()]


def test_no_weak_reference_leads_to_a_stream_of_others(stub):
    """torch's stream objects do not clear their weak references, which then read freed memory."""
    own = cuda.Stream("cuda:0")
    foreign = Speaks(own.handle)
    with cuda.stream(foreign):
        x = open_device(0).allocate(8, in_force())
        assert weakref.getweakrefcount(foreign) == 0
    kept = weakref.ref(foreign)
    del foreign
    assert kept() is not None  # while memory of the stream exists
    del x
    cuda.empty_cache("cuda:0")
    assert kept() is None


def test_events_and_waiting(stub):
    one, other = cuda.Stream("cuda:0"), cuda.Stream("cuda:0")
    assert one != other
    assert len({one, other, one}) == 2
    stub.start_log()
    event = one.record()
    other.wait(event)
    other.wait(one)
    names = [(call.name, call.stream) for call in stub.log()]
    assert names[:2] == [("cuEventRecord", one.handle), ("cuStreamWaitEvent", other.handle)]
    assert names[2:] == [("cuEventRecord", one.handle), ("cuStreamWaitEvent", other.handle)]
    stub.hold(one.handle, True)
    assert not event.is_done()
    stub.hold(one.handle, False)
    assert event.is_done()
    assert one.is_done()
    one.synchronize()
    event.synchronize()
    with pytest.raises(ta.OperandError, match=r"expected events with times; write ta\.cuda\.Event\(timing=True\)"):
        event.milliseconds_since(event)
    stream, timed = cuda.current_stream(), cuda.Event(timing=True)
    calls = {"record": stream.record, "wait": stream.wait, "milliseconds_since": timed.milliseconds_since}
    for name, call in calls.items():
        with pytest.raises(ta.OperandError, match=rf"{name}: expected an event of ta.cuda, got 3 of type int"):
            call(3)


def test_events_with_times():
    start, end = cuda.Event(timing=True, device="cuda:0"), cuda.Event(timing=True, device="cuda:0")
    stream = cuda.Stream("cuda:0")
    assert stream.record(start) is start
    stream.record(end)
    assert end.milliseconds_since(start) == 1.5


def test_synchronize_and_devices(stub):
    assert cuda.device_count() == 2
    stub.start_log()
    cuda.synchronize("cuda:1")
    assert [(call.name, call.object) for call in stub.log()] == [("cuCtxSynchronize", int(open_device(1).context))]
    cuda.synchronize()
    assert len(stub.log()) == 3
    for function in (cuda.synchronize, cuda.empty_cache, cuda.memory_statistics, cuda.Stream):
        with pytest.raises(ta.DeviceError, match="expected a cuda device, got 'cpu'; write 'cuda:0'"):
            function("cpu")
        with pytest.raises(ta.DeviceUnavailableError, match="cuda:9"):
            function("cuda:9")


def test_streams_belong_to_devices():
    stream = cuda.Stream("cuda:1")
    assert str(stream.device) == "cuda:1"
    with cuda.stream(stream):
        assert str(cuda.current_stream().device) == "cuda:1"
        with pytest.raises(CudaError, match=r"belongs to cuda:1 .*; write with ta\.cuda\.stream\(s\)"):
            open_device(0).allocate(8, in_force())


def test_an_allocator_is_set_for_all_devices():
    pointers = iter(range(1 << 40, 1 << 41, 1 << 20))
    released = []
    cuda.set_allocator(lambda nbytes, stream: next(pointers), lambda *block: released.append(block))
    try:
        buffers = [open_device(index).allocate(100, 0) for index in (0, 1)]
        assert [buffer.pointer for buffer in buffers] == [1 << 40, (1 << 40) + (1 << 20)]
        buffers.clear()
    finally:
        cuda.set_allocator(None)
    assert sorted(released) == [(1 << 40, 512, 0), ((1 << 40) + (1 << 20), 512, 0)]
    with pytest.raises(ta.OperandError, match="set_allocator: expected functions"):
        cuda.set_allocator(3)


def test_memory_statistics():
    buffer = open_device(0).allocate(1000, 0)
    statistics = cuda.memory_statistics("cuda:0")
    assert statistics.live >= 1024
    assert statistics.held == statistics.live + statistics.cached <= statistics.peak
    del buffer


@pytest.mark.parametrize("wait", [lambda stream: stream.synchronize(), lambda stream: cuda.synchronize("cuda:0")])
def test_a_wait_raises_the_error_of_a_deferred_check(wait):
    stream = cuda.Stream("cuda:0")
    wait(stream)
    (word,) = open_device(0).index_errors.deferred(1, stream.handle)
    wait(stream)
    word.cell.value = 77  # as a kernel would write it
    with pytest.raises(DeferredIndexError, match="an index array held"):
        wait(stream)
    wait(stream)  # reported once


def test_stochastic_rounding_in_a_fused_function_and_packed_float4():
    """The ranges of positions are copied on the stream of the call; pairs are moved as bytes."""
    cast = ta.fuse(lambda x, seed: ta.astype(x, "int8", rounding="rs", seed=seed))
    stream = cuda.Stream("cuda:0")
    with cuda.stream(stream):
        assert cast(ta.ones((3, 5), device="cuda"), 3).dtype == ta.int8
    x = ta.zeros((4, 12), dtype="float4_e2m1fn_x2", device="cuda")
    for found in (x.T.copy(), ta.concat([x, x[:1]]), x[1:, ::-3].copy(), ta.pack_float4(ta.unpack_float4(x))):
        assert found.dtype == x.dtype
    x[:, 1:3] = x[:, 5:7].copy()
    assert isinstance(x[0, 1].item(), tuple)
    assert ta.from_dlpack(x).dtype == x.dtype


def test_arrays_move_between_gpus_and_are_counted(stub, monkeypatch):
    monkeypatch.setattr("tilearray_cuda.runtime.peers._connected", {})
    before = [cuda.transfer_statistics(f"cuda:{index}") for index in (0, 1)]
    x = ta.asarray([[1, 2, 3], [4, 5, 6]], dtype="int64", device="cuda:0")
    assert cuda.peer_access("cuda:0", "cuda:1") is cuda.peer_access("cuda:1", "cuda:0") is True
    assert cuda.peer_access("cuda:0", "cuda:0")
    there = x.T.to_device("cuda:1")
    assert (str(there.device), there.tolist()) == ("cuda:1", [[1, 4], [2, 5], [3, 6]])
    after = [cuda.transfer_statistics(f"cuda:{index}") for index in (0, 1)]
    assert [tuple(b - a for a, b in zip(*pair)) for pair in zip(before, after)] == [(0, 48, 0, 0), (48, 0, 48, 0)]


def test_workers_have_a_gpu_each_and_see_the_others_behind_it(stub, monkeypatch):
    workers = pytest.importorskip("tilearray.dask.workers")
    calls = stub.calls()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert workers.environment_of(as_device("cuda:1")) == {
        "TILEARRAY_DEVICE": "cuda:0",
        "CUDA_VISIBLE_DEVICES": "1,0",
    }
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
    assert workers.environment_of(as_device("cuda:1"))["CUDA_VISIBLE_DEVICES"] == "GPU-b,GPU-a"
    assert workers._all_gpus() == ["cuda:0", "cuda:1"]
    assert workers._limit_of(as_device("cuda:1"), None, 2) == 1 << 30
    assert workers._limit_of(as_device("cuda:1"), "1GB", 2) == "1GB"
    assert stub.calls() - calls < 10  # no context is made


def test_without_peer_access_the_library_says_so(stub, monkeypatch):
    monkeypatch.setattr("tilearray_cuda.runtime.peers._connected", {})
    stub.allow_peers(False)
    try:
        before = cuda.transfer_statistics("cuda:1")
        x = ta.asarray([1, 2, 3], dtype="int64", device="cuda:0").to_device("cuda:1")
        assert not cuda.peer_access("cuda:0", "cuda:1")
        assert x.tolist() == [1, 2, 3]
        assert cuda.transfer_statistics("cuda:1").through_host - before.through_host == 24
    finally:
        stub.allow_peers(True)
    with pytest.raises(ta.DeviceError, match=r"peer_access: expected a cuda device, got 'cpu'; write 'cuda:0'"):
        cuda.peer_access("cpu", "cuda:0")


@pytest.mark.parametrize("dtype", ["float32", "float8_e5m2", "float4_e2m1fn", "float4_e2m1fn_x2", "complex128"])
def test_arrays_of_a_gpu_share_memory_as_numpys_do(stub, dtype):
    """Addresses, shapes and strides decide: the driver is not called."""
    keys = (
        *(np.s_[:], np.s_[:, ::2], np.s_[:, 1::2], np.s_[::-1, ::3], np.s_[1:3, 4:], np.s_[:1, :4]),
        *(np.s_[2, 5, ...], np.s_[:0], np.s_[..., None, ::-2], np.s_[3:, ::-1]),
    )
    ours, others = (ta.empty((4, 6), dtype=dtype, device="cuda:0") for _ in range(2))
    theirs = np.zeros((4, 6), f"V{ours.itemsize}")
    second = ta.empty((4, 6), dtype=dtype, device="cuda:1")
    stub.start_log()
    for one in keys:
        for two in keys:
            assert ta.shares_memory(ours[one], ours[two]) == np.shares_memory(theirs[one], theirs[two])
            assert ta.may_share_memory(ours[one], ours[two]) == np.may_share_memory(theirs[one], theirs[two])
        for elsewhere in (others, second, ta.zeros(3), np.zeros(3)):
            assert not ta.shares_memory(ours[one], elsewhere)
            assert not ta.may_share_memory(ours[one], elsewhere)
    assert stub.log() == []
