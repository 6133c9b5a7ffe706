"""Import and export of GPU memory: capsules, streams and lifetimes over the stub, whose memory a test can read."""

from __future__ import annotations

import ctypes
import gc
import types
import weakref

import numpy as np
import pytest
from exchanging import VIEWS, on_gpu, waits
from support.capsules import sample
from support.threads import in_threads

import tilearray as ta
from tilearray import cuda, dtypes
from tilearray.interchange import capsules
from tilearray_cuda.device import open_device


def opened(capsule):
    found = capsules.open_capsule(capsule)
    for part in found:
        if part is not None:
            part.kept = capsule
    return found


class Forwards:
    """A producer on a GPU that is not an Array, so that the import uses a capsule."""

    def __init__(self, array, **changes):
        self.array = array
        self.asked = []
        self.changes = changes

    def __dlpack__(self, **wishes):
        self.asked.append(wishes)
        return self.array.__dlpack__(**{**wishes, **self.changes})

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


# --- DLPack out -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_version", [None, (1, 0), (1, 3)])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", [one for one in dtypes.ALL if one != dtypes.float4_e2m1fn], ids=str)
def test_a_capsule_describes_the_array(dtype, view, max_version):
    x = VIEWS[view](on_gpu(sample(dtype), "cuda:1"))
    for _ in range(2):  # a new one, then one from the cache
        found = opened(x.__dlpack__(max_version=max_version))
        tensor = found.tensor
        assert (found.versioned is None) == (max_version is None)
        assert found.flags == 0
        assert (tensor.device_type, tensor.device_id) == (2, 1) == x.__dlpack_device__()
        assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (*dtypes.info(dtype).dlpack, 1)
        assert tuple(tensor.shape[: tensor.ndim]) == x.shape
        if x.size:
            assert tensor.data + tensor.byte_offset == x._address
            assert tuple(tensor.strides[: tensor.ndim]) == x.strides
        else:
            assert tensor.data is None


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_a_round_trip_is_the_same_memory(dtype, view):
    x = VIEWS[view](on_gpu(sample(dtype)))
    back = ta.from_dlpack(Forwards(x))
    assert (back.shape, back.dtype, back.device) == (x.shape, x.dtype, x.device)
    if x.size:
        assert (back._address, back.strides) == (x._address, x.strides)
        if view not in ("sliced", "negative"):  # a kernel makes these dense first, and the stub cannot run it
            assert ta.to_numpy(back).tobytes() == ta.to_numpy(x).tobytes()
    assert not back._buffer.readonly


def test_read_only_memory_is_exported_only_where_the_consumer_learns_it():
    x = ta.broadcast_to(on_gpu(np.arange(3.0)), (2, 3))
    assert opened(x.__dlpack__(max_version=(1, 0))).flags == capsules.READ_ONLY
    assert ta.from_dlpack(Forwards(x))._buffer.readonly
    with pytest.raises(ta.InterchangeError, match=r"read-only, which needs DLPack 1\.0 or later"):
        x.__dlpack__()


def test_read_only_memory_is_not_lent_to_torch():
    torch_asks = eval("lambda x: x.__dlpack__(max_version=(1, 0))", {"__name__": "torch.utils.dlpack"})
    x = on_gpu(np.arange(3.0))
    fixed = ta.from_dlpack(Forwards(x, max_version=None))
    with pytest.raises(ta.InterchangeError, match=r"read-only, but torch would still write.*write ta\.to_torch\(x\)"):
        torch_asks(fixed)
    torch_asks(x)
    torch_asks(ta.broadcast_to(x, (2, 3)))


def test_an_unversioned_import_is_read_only():
    back = ta.from_dlpack(Forwards(on_gpu(np.arange(3.0)), max_version=None))
    assert back._buffer.readonly
    with pytest.raises(ta.WriteError, match="read-only"):
        back[0] = 1


def test_an_export_for_the_host_is_a_copy_and_asked_for():
    x = on_gpu(np.arange(3.0))
    found = opened(x.__dlpack__(max_version=(1, 0), dl_device=(1, 0)))
    assert (found.tensor.device_type, found.flags) == (1, capsules.COPIED)
    assert np.from_dlpack(x, device="cpu").tolist() == [0, 1, 2]
    with pytest.raises(ta.InterchangeError, match=r"expected dl_device=\(2, 0\), .*, got \(1, 0\); write x.to_d"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(ta.InterchangeError, match=r"got \(2, 1\)"):
        x.__dlpack__(dl_device=(2, 1))
    assert opened(x.__dlpack__(dl_device=(2, 0))).tensor.device_type == 2


# --- DLPack out: streams --------------------------------------------------------------------------------------------


def test_a_consumer_on_our_stream_waits_for_nothing(stub):
    side = cuda.Stream("cuda:0")
    x = on_gpu(np.arange(3.0))
    with cuda.stream(side):
        y = on_gpu(np.arange(3.0))
    stub.start_log()
    for stream in (None, 1, -1):
        x.__dlpack__(stream=stream)
    for stream in (side.handle, -1):
        y.__dlpack__(stream=stream)
    assert waits(stub) == []


def test_a_consumer_on_another_stream_waits_once(stub):
    side, other = cuda.Stream("cuda:0"), cuda.Stream("cuda:0")
    with cuda.stream(side):
        x = on_gpu(np.arange(3.0))
    stub.start_log()
    for _ in range(3):
        x.__dlpack__(stream=other.handle)
    assert waits(stub) == [("cuEventRecord", side.handle), ("cuStreamWaitEvent", other.handle)]
    for _ in range(3):
        x.__dlpack__()
    assert waits(stub)[2:] == [("cuEventRecord", side.handle), ("cuStreamWaitEvent", 0)]


def test_the_per_thread_stream_waits_itself(stub):
    side = cuda.Stream("cuda:0")
    with cuda.stream(side):
        x = on_gpu(np.arange(3.0))
    stub.start_log()
    x.__dlpack__(stream=2)
    assert ("cuStreamWaitEvent", 0) in waits(stub)
    assert ("cuStreamWaitEvent", 2) in waits(stub)


@pytest.mark.parametrize("bad", [0, -2, True, "1", 1.0])
def test_objects_that_are_not_streams_are_refused(bad):
    with pytest.raises(ta.InterchangeError, match=r"expected a DLPack stream number, got .*; write None or 1"):
        on_gpu(np.arange(3.0)).__dlpack__(stream=bad)


def test_memory_is_not_reused_before_the_consumer_is_done(stub):
    side = cuda.Stream("cuda:0")
    x = on_gpu(np.arange(100.0))
    pointer = x._address
    capsule = x.__dlpack__(stream=side.handle)
    stub.hold(side.handle, True)  # the consumer works
    del x
    assert pointer not in [on_gpu(np.arange(100.0))._address for _ in range(3)]  # the capsule holds it
    del capsule
    others = [on_gpu(np.arange(100.0)) for _ in range(3)]
    assert pointer not in [other._address for other in others]  # the consumer's stream holds it
    stub.hold(side.handle, False)
    open_device(0).memory.collect()
    others += [on_gpu(np.arange(100.0)) for _ in range(3)]
    assert pointer in [other._address for other in others]


def test_nothing_waits_in_a_capture(stub):
    side, other = cuda.Stream("cuda:0"), cuda.Stream("cuda:0")
    x = on_gpu(np.arange(3.0))
    x.__dlpack__()
    with cuda.stream(side):
        y = on_gpu(np.arange(3.0))
    stub.capture(side.handle, 7)
    try:
        stub.start_log()
        x.__dlpack__(stream=side.handle)
        y.__dlpack__(stream=side.handle)
        y.__dlpack__()
        y.__dlpack__(stream=other.handle)
        assert y.__cuda_array_interface__["stream"] == side.handle
        assert waits(stub) == []
    finally:
        stub.capture(side.handle, 0)


# --- DLPack out: lifetimes ------------------------------------------------------------------------------------------


def test_memory_lives_as_long_as_a_capsule_or_its_consumer():
    x = on_gpu(np.arange(5.0))
    alive = weakref.ref(x._buffer)
    unconsumed, back = x.__dlpack__(), ta.from_dlpack(Forwards(x[1:]))
    del x
    gc.collect()
    assert alive() is not None
    part = back[1:]
    del unconsumed, back
    gc.collect()
    assert ta.to_numpy(part).tolist() == [2, 3, 4]
    del part
    assert alive() is None


def test_an_array_that_was_exported_is_freed_without_the_collector():
    gc.disable()
    try:
        x = on_gpu(np.arange(5.0))
        alive = weakref.ref(x._buffer)
        x.__dlpack__()
        del x
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_a_capsule_is_consumed_once(max_version):
    capsule = on_gpu(np.arange(3.0)).__dlpack__(max_version=max_version)
    producer = types.SimpleNamespace(__dlpack__=lambda **_: capsule, __dlpack_device__=lambda: (2, 0))
    kept = ta.from_dlpack(producer)
    with pytest.raises(ta.InterchangeError, match="already consumed"):
        ta.from_dlpack(producer)
    assert ta.to_numpy(kept).tolist() == [0, 1, 2]


def test_round_trips_leave_no_memory_behind(stub):
    x = on_gpu(np.arange(10.0))

    def work(_):
        for step in range(2500):
            if step % 2:
                ta.from_dlpack(Forwards(x))
            else:
                x[step % 3 :].__dlpack__(max_version=(1, 0) if step % 4 else None)

    work(0)
    gc.collect()
    objects, used = len(gc.get_objects()), stub.used()
    assert in_threads(4, work) == [None] * 4
    gc.collect()
    assert stub.used() == used
    assert len(gc.get_objects()) < objects + 200


# --- DLPack in ------------------------------------------------------------------------------------------------------


def test_a_producer_is_told_our_stream():
    source = on_gpu(np.arange(3.0))
    side = cuda.Stream("cuda:0")
    producer = Forwards(source)
    ta.asarray(producer)
    with cuda.stream(side):
        x = ta.from_dlpack(producer, copy=False)
    assert producer.asked == [
        {"max_version": (1, 1), "stream": 1},
        {"max_version": (1, 1), "stream": side.handle, "copy": False},
    ]
    assert x._buffer.stream == side.handle


def test_an_old_producer_is_told_the_stream_alone():
    class Old(Forwards):
        def __dlpack__(self, stream=None):
            self.asked.append(stream)
            return self.array.__dlpack__(stream=stream)

    producer = Old(on_gpu(np.arange(3.0)))
    assert ta.to_numpy(ta.from_dlpack(producer)).tolist() == [0, 1, 2]
    assert producer.asked == [1]


def test_memory_on_a_gpu_that_is_not_there():
    source = on_gpu(np.arange(3.0))

    def altered(**wishes):
        capsule = source.__dlpack__(**wishes)
        opened(capsule).tensor.device_id = 77
        return capsule

    producer = types.SimpleNamespace(__dlpack__=altered, __dlpack_device__=lambda: (2, 77))
    with pytest.raises(ta.DeviceUnavailableError, match="from_dlpack: cuda:77"):
        ta.from_dlpack(producer)


def test_our_own_array_comes_back_as_a_view():
    x = on_gpu(np.arange(3.0))
    y = ta.from_dlpack(x)
    assert y is not x
    assert y._buffer is x._buffer


# --- the bytes of a capsule -------------------------------------------------------------------------------------------


def test_capsules_are_read_as_dlpack_h_lays_them_out():
    """The structures above are the library's; this test reads a capsule by offsets."""
    x = on_gpu(np.arange(3, dtype=np.int32), "cuda:1")
    capsule = x.__dlpack__()
    at = capsules.capsule_pointer(capsule, b"dltensor")
    assert ctypes.c_uint64.from_address(at).value == x._address
    assert (ctypes.c_int32.from_address(at + 8).value, ctypes.c_int32.from_address(at + 12).value) == (2, 1)


FUNCTIONS = [ta.fuse(lambda x: x + 1), ta.pointwise(lambda x: x + 1), ta.array_agnostic(lambda x: x + 1)]


@pytest.fixture
def gpu_is_default():
    default = ta.default_device()
    ta.set_default_device("cuda:0")
    yield
    ta.set_default_device(default)


@pytest.mark.usefixtures("gpu_is_default")
def test_functions_of_ndarrays_run_on_the_host():
    """The stub runs no kernels: a result of it would be another."""
    for function in FUNCTIONS:
        found = function(np.ones(3))
        assert type(found) is np.ndarray
        assert found.tolist() == [2, 2, 2]


@pytest.mark.usefixtures("gpu_is_default")
def test_functions_of_tensors_on_the_host_run_there():
    torch = pytest.importorskip("torch")
    x = torch.ones(3, requires_grad=True)
    assert [function(x.detach()).tolist() for function in FUNCTIONS] == [[2, 2, 2]] * 3
    ta.fuse(lambda x: x * x * x).torch(x).backward(torch.ones(3))
    assert x.grad.tolist() == [3, 3, 3]
