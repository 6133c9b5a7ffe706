"""Copies between host and device: every layout and dtype, sizes near the chunks, several devices."""

from __future__ import annotations

import itertools
from collections import deque

import ml_dtypes
import numpy as np
import pytest
from support.threads import in_threads

from tilearray_cuda.device import CudaDevice
from tilearray_cuda.errors import CaptureError, CudaError, NeedsDense, OutOfMemoryError
from tilearray_cuda.runtime import driver, staging
from tilearray_cuda.runtime.memory import allocators
from tilearray_cuda.runtime.streams import Stream


def round_trip(device, array, stream=0):
    buffer, offset = device.from_numpy(array, stream=stream)
    strides = tuple(stride // max(array.itemsize, 1) for stride in array.strides)
    return device.to_numpy(buffer, offset, array.shape, strides, array.dtype)


def same(x, y):
    return x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes()


STEPS = (slice(None), slice(1, None, 2), slice(None, None, -1), slice(2, 0, -1), slice(2, 2), 1)


def test_every_layout_comes_back(device):
    dense = np.arange(4 * 5 * 6, dtype=np.int32).reshape(4, 5, 6)
    refused = 0
    for key in itertools.product(STEPS, repeat=3):
        for view in (dense[key], np.asarray(dense[key]).T):
            try:
                back = round_trip(device, np.asarray(view))
            except NeedsDense:
                refused += 1
                continue
            assert same(back, np.asarray(view))
            assert back.flags.writeable
    assert 50 < refused < 120  # of 432


DTYPES = ["bool", "int8", "uint64", "float16", "complex128", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_comes_back(device, dtype):
    array = np.arange(24).reshape(4, 6).astype(dtype)
    for view in (array, array.T, array[::-1, 1:], array[2], array[1, 1]):
        assert same(round_trip(device, np.asarray(view)), np.asarray(view))


def test_permuted_memory_is_copied_in_memory_order(device, stub):
    array = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)[:, ::-1]
    buffer, offset = device.from_numpy(array)
    stub.start_log()
    back = device.to_numpy(buffer, offset, array.shape, tuple(s // 8 for s in array.strides), array.dtype)
    assert back.strides == array.strides
    assert [call.size for call in stub.log() if "Memcpy" in call.name] == [192]


def test_broadcast_memory_is_copied_once(device):
    array = np.broadcast_to(np.arange(3.0), (1000, 3))
    buffer, _ = device.from_numpy(array)
    assert buffer.nbytes == 24
    back = round_trip(device, array)
    assert same(back, array)
    back[0, 0] = 7
    assert back[1, 0] == 0


def test_a_sparse_view_is_left_to_the_caller(device):
    buffer = device.allocate(8000, 0)
    with pytest.raises(NeedsDense, match=r"to_numpy: expected .* 4 times the 10 elements .*, got 91; make a dense"):
        device.to_numpy(buffer, 0, (10,), (10,), np.dtype("int64"))
    assert device.to_numpy(buffer, 0, (10,), (4,), np.dtype("int64")).shape == (10,)
    assert device.to_numpy(buffer, 72, (10,), (-1,), np.dtype("int64")).shape == (10,)


def test_nothing_is_copied_without_elements(device, stub):
    stub.start_log()
    assert round_trip(device, np.empty((3, 0, 2), np.int16)).shape == (3, 0, 2)
    assert [call.name for call in stub.log() if "Memcpy" in call.name] == []


AROUND = [1, staging.SMALL - 1, staging.SMALL, staging.SMALL + 1, staging.DIRECT + 1]
AROUND += [staging.CHUNK - 1, staging.CHUNK, staging.CHUNK + 1, 2 * staging.CHUNK, 5 * staging.CHUNK + 3]


@pytest.mark.parametrize("nbytes", AROUND)
def test_sizes_around_the_chunks(device, nbytes):
    array = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    assert same(round_trip(device, array), array)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "int32", "float64", "complex128"])
def test_one_element(device, stub, dtype):
    """The result is memory of its own, that may be written."""
    array = np.arange(10).astype(dtype)
    buffer, _ = device.from_numpy(array)

    def read(place):
        return device.to_numpy(buffer, place * array.itemsize, (), (), array.dtype)

    stub.start_log()
    found = read(3)
    names = [call.name for call in stub.log() if call.name != "cuEventQuery"]
    assert names == ["cuMemcpyDtoHAsync", "cuStreamSynchronize"]
    assert all(same(read(place), array[place, ...]) for place in (0, 9))
    assert same(found, array[3, ...])
    found[...] = 0


def test_the_host_array_may_change_at_once(device, stub):
    array = np.arange(100)
    buffer, _ = device.from_numpy(array)
    array[:] = 0
    assert device.to_numpy(buffer, 0, (100,), (1,), array.dtype).tolist() == list(range(100))


def test_chunks_are_reused_and_waited_for(device, stub):
    """With more active copies than chunks, a copy waits for the oldest, and no new memory is pinned."""
    array = np.arange(100)
    stub.hold(0, True)  # no event passes, so every chunk stays busy
    buffers = [device.from_numpy(array + i)[0] for i in range(3 * staging.KEPT[staging.SMALL])]
    chunks = device.staging._chunks[staging.SMALL]
    assert len(chunks) == staging.KEPT[staging.SMALL]
    stub.start_log()
    device.from_numpy(array)
    assert stub.log()[-3].name == "cuEventSynchronize"
    stub.hold(0, False)
    for i, buffer in enumerate(buffers):
        assert device.to_numpy(buffer, 0, (100,), (1,), array.dtype)[0] == i
    device.empty_cache()
    assert not chunks


def test_a_chunk_whose_copy_is_done_is_not_waited_for(device, stub):
    for _ in range(2):
        device.from_numpy(np.arange(100))
    stub.start_log()
    device.from_numpy(np.arange(100))
    names = [call.name for call in stub.log()]
    assert "cuEventQuery" in names
    assert "cuEventSynchronize" not in names


def test_threads_do_not_share_chunks(device):
    wrong = []

    def body(seed):
        array = np.full(3 * staging.CHUNK // 8 + seed, seed, np.int64)
        for _ in range(3):
            if not same(round_trip(device, array), array):
                wrong.append(seed)

    assert in_threads(4, body) == [None] * 4
    assert wrong == []
    assert len(device.staging._chunks[staging.CHUNK]) <= staging.KEPT[staging.CHUNK]


def test_a_copy_that_fails_gives_its_chunks_back(device, stub):
    stub.fail("cuMemcpyHtoDAsync", 700)
    with pytest.raises(CudaError, match="cuMemcpyHtoDAsync: CUDA_ERROR_ILLEGAL_ADDRESS"):
        device.from_numpy(np.arange(10))
    assert len(device.staging._chunks[staging.SMALL]) == 1


def read(device, buffer):
    return device.to_numpy(buffer, 0, (10,), (1,), np.dtype("int64"))


@pytest.mark.parametrize("fails", ["the copy", "what follows"])
@pytest.mark.parametrize("to_device", [True, False])
def test_no_copy_that_failed_uses_its_chunk_any_more(device, stub, fails, to_device):
    """The copy may have begun, as if an interrupt arrives behind it: its stream is done before the chunk goes back."""
    buffer, _ = device.from_numpy(np.arange(10))
    names = ("cuMemcpyHtoDAsync", "cuEventRecord") if to_device else ("cuMemcpyDtoHAsync", "cuStreamSynchronize")
    name = names[fails == "what follows"]
    stub.start_log()
    stub.fail(name, 1)
    copy = (lambda: device.from_numpy(np.arange(10))) if to_device else (lambda: read(device, buffer))
    with pytest.raises(CudaError, match=name):
        copy()
    assert stub.log()[-1].name == "cuStreamSynchronize"
    assert not device.staging._chunks[staging.SMALL][-1].busy


def test_a_fetch_waits_for_its_copy_alone(device, stub):
    """Later work of the stream may be on its way, and may overwrite the memory."""
    buffer, _ = device.from_numpy(np.arange(10))
    chunks = device.staging._chunks[staging.SMALL]
    stub.start_log()
    found = device.staging.fetch(buffer.pointer, 80, 0)
    other = Stream(device)
    device.staging.upload(buffer.pointer, np.zeros(80, np.uint8), 0)
    assert not [call for call in stub.log() if call.name == "cuEventSynchronize"]
    assert found().view(np.int64).tolist() == list(range(10))
    names = [call.name for call in stub.log()]
    assert "cuStreamSynchronize" not in names
    taken = len(chunks)
    del found, other
    assert len(chunks) == taken + 1


@pytest.mark.parametrize("nbytes", [0, 8, staging.SMALL, staging.SMALL + 8])
def test_sizes_of_fetches(device, nbytes):
    array = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    buffer, _ = device.from_numpy(array)
    assert same(device.staging.fetch(buffer.pointer, nbytes, 0)(), array)


def test_a_fetch_that_nobody_reads_gives_its_chunk_back(device, stub):
    buffer, _ = device.from_numpy(np.arange(10))
    stub.hold(0, True)
    for _ in range(2 * staging.KEPT[staging.SMALL]):
        device.staging.fetch(buffer.pointer, 80, 0)
    stub.hold(0, False)
    assert len(device.staging._chunks[staging.SMALL]) == staging.KEPT[staging.SMALL]
    stub.fail("cuMemcpyDtoHAsync", 1)
    with pytest.raises(CudaError, match="cuMemcpyDtoHAsync"):
        device.staging.fetch(buffer.pointer, 80, 0)
    assert len(device.staging._chunks[staging.SMALL]) == staging.KEPT[staging.SMALL]


def test_an_error_of_a_copy_comes_out_where_no_stream_works_any_more(device, stub):
    buffer = device.allocate(80, 0)
    stub.fail("cuMemcpyDtoHAsync", 700)
    stub.fail("cuStreamSynchronize", 700)
    with pytest.raises(CudaError, match="cuMemcpyDtoHAsync: CUDA_ERROR_ILLEGAL_ADDRESS"):
        device.to_numpy(buffer, 0, (10,), (1,), np.dtype("int64"))


def test_a_copy_for_which_no_second_chunk_can_be_pinned_gives_the_first_back(device, stub, monkeypatch):
    array, destroyed = np.zeros(staging.CHUNK + 1, np.uint8), []
    monkeypatch.setattr(staging.api, "cuEventDestroy", lambda event: destroyed.append(event) or (driver.SUCCESS,))
    for skip in (1, 0):  # the second chunk, while there is none, and then beside the first
        stub.fail("cuMemHostAlloc", 2, skip=skip)
        with pytest.raises(OutOfMemoryError, match="cuMemHostAlloc"):
            device.from_numpy(array)
        assert len(device.staging._chunks[staging.CHUNK]) == 1
    assert len(destroyed) == 2


class TakenByOthers(deque):
    """The list of chunks while another thread takes the last one behind the question whether there is one."""

    def __bool__(self):
        return True


def test_chunks_are_freed_while_another_thread_takes_the_last_one(device):
    device.from_numpy(np.arange(10))
    chunks = device.staging._chunks[staging.SMALL] = TakenByOthers(device.staging._chunks[staging.SMALL])
    device.empty_cache()
    assert len(chunks) == 0


def test_copies_run_on_the_home_stream(device, stub):
    stream = Stream(device).handle
    stub.start_log()
    buffer, _ = device.from_numpy(np.arange(10), stream=stream)
    device.to_numpy(buffer, 0, (10,), (1,), np.dtype("int64"))
    copies = [call for call in stub.log() if "Memcpy" in call.name]
    assert [call.stream for call in copies] == [stream, stream]
    device.to_numpy(buffer, 0, (10,), (1,), np.dtype("int64"), stream=0)
    names = [call.name for call in stub.log()]
    assert names[-3:] == ["cuStreamWaitEvent", "cuMemcpyDtoHAsync", "cuStreamSynchronize"]


@pytest.mark.parametrize("nbytes", AROUND)
def test_no_copy_to_ordinary_memory_waits_for_kernels(device, stub, nbytes):
    """The driver lets no other thread launch while such a copy waits, so the stream is done before."""
    buffer = device.allocate(nbytes, 0)
    stub.start_log()
    device.to_numpy(buffer, 0, (nbytes,), (1,), np.dtype("uint8"))
    names = [call.name for call in stub.log()]
    ordinary = staging.SMALL < nbytes <= staging.DIRECT
    assert (names[0] == "cuStreamSynchronize") == ordinary
    assert ("cuEventSynchronize" in names) == (nbytes > staging.DIRECT)


def test_copies_are_refused_in_a_capture(device, stub):
    stream = Stream(device).handle
    buffer = device.allocate(80, stream)
    stub.capture(stream, 5)
    with pytest.raises(CaptureError, match=r"to_numpy: a CUDA graph captures stream .*; make the copy before"):
        device.to_numpy(buffer, 0, (10,), (1,), np.dtype("int64"))
    with pytest.raises(CaptureError, match="from_numpy: a CUDA graph captures stream"):
        device.from_numpy(np.arange(10), stream=stream)
    stub.capture(stream, 0)


@pytest.fixture
def peers(stub, monkeypatch):
    """Two GPUs that no copy has connected; return the function that chooses their hardware."""
    monkeypatch.setattr("tilearray_cuda.runtime.peers._connected", {})
    monkeypatch.setattr("tilearray_cuda.runtime.memory.allocators._peers", {})
    stub.allow_peers(True)
    yield stub.allow_peers
    stub.allow_peers(True)


def test_between_devices(device, stub, peers):
    other = CudaDevice(1)
    array = np.arange(1000)
    source = Stream(device).handle
    buffer, _ = device.from_numpy(array, stream=source)
    stub.start_log()
    copy = other.from_device(device, buffer)
    names = ("cuEventRecord", "cuStreamWaitEvent", "cuMemcpyPeerAsync")
    calls = [(call.name, call.stream) for call in stub.log() if call.name in names]
    assert calls == [
        ("cuEventRecord", source),
        ("cuStreamWaitEvent", 0),
        ("cuMemcpyPeerAsync", 0),
        ("cuEventRecord", 0),
        ("cuStreamWaitEvent", source),
    ]
    assert copy.device_index == 1
    assert same(other.to_numpy(copy, 0, (1000,), (1,), array.dtype), array)


def test_a_copy_between_gpus_takes_few_calls_of_the_driver(device, stub, peers):
    """Five for the copy and its order, two to ask for the current context, and two for each change of it."""
    other = CudaDevice(1)
    first, _ = device.from_numpy(np.arange(10))
    second = other.from_device(device, first)  # connects the GPUs
    with driver.Current(device.context):
        for source, target, memory, most in ((device, other, first, 9), (other, device, second, 11)):
            target.from_device(source, memory)  # its memory is free for the next one
            before = stub.calls()
            target.from_device(source, memory)
            assert stub.calls() - before <= most


def is_direct(stub):
    """Whether the last copy between GPUs was one between peers: both contexts and both pools allow it."""
    return [call.arguments[1] for call in stub.log() if call.name == "cuMemcpyPeerAsync"][-1] == 1


def test_the_first_copy_between_two_gpus_connects_them_in_both_directions(device, stub, peers):
    other = CudaDevice(1)
    buffer, _ = device.from_numpy(np.arange(1000))
    stub.start_log()
    back = device.from_device(other, other.from_device(device, buffer))
    assert is_direct(stub)
    asked = [call.name for call in stub.log() if call.name in ("cuCtxEnablePeerAccess", "cuMemPoolSetAccess")]
    assert asked == 2 * ["cuCtxEnablePeerAccess"] + 2 * ["cuMemPoolSetAccess"]  # once, for all copies
    assert same(device.to_numpy(back, 0, (1000,), (1,), np.dtype("int64")), np.arange(1000))
    assert [one.transfers.statistics()[2:] for one in (device, other)] == [(8000, 0), (8000, 0)]
    assert device.transfers.statistics()[:2] == (8000, 8000)


def test_another_library_may_have_enabled_the_access(device, stub, peers):
    other = CudaDevice(1)
    with driver.Current(device.context):
        driver.call(driver.api.cuCtxEnablePeerAccess, other.context, 0)
    buffer, _ = device.from_numpy(np.arange(10))
    stub.start_log()
    other.from_device(device, buffer)
    assert is_direct(stub)


@pytest.mark.parametrize("refusal", ["hardware", "too many peers"])
def test_without_peer_access_copies_go_through_the_host_and_are_counted(device, stub, peers, refusal):
    if refusal == "hardware":
        peers(False)
    else:
        stub.fail("cuCtxEnablePeerAccess", 711)
    other = CudaDevice(1)
    buffer, _ = device.from_numpy(np.arange(10))
    stub.start_log()
    copy = other.from_device(device, buffer)
    assert not is_direct(stub)
    assert other.transfers.statistics()[2:] == (0, 80)
    assert same(other.to_numpy(copy, 0, (10,), (1,), np.dtype("int64")), np.arange(10))


def test_a_context_that_cannot_be_connected_is_an_error(device, stub, peers):
    other = CudaDevice(1)
    buffer, _ = device.from_numpy(np.arange(10))
    stub.fail("cuCtxEnablePeerAccess", 700)
    with pytest.raises(CudaError, match="cuCtxEnablePeerAccess: CUDA_ERROR_ILLEGAL_ADDRESS"):
        other.from_device(device, buffer)
    stub.start_log()
    other.from_device(device, buffer)  # the next copy asks again
    assert is_direct(stub)


def test_a_pool_that_is_made_later_is_shared(stub, peers, monkeypatch):
    monkeypatch.setattr("tilearray_cuda.runtime.memory.allocators._driver_sources", {})
    allocators.share(0, 1)
    stub.start_log()
    first, second = allocators.driver_source(0), allocators.driver_source(0)
    assert first is second
    assert [(call.object, call.size) for call in stub.log() if call.name == "cuMemPoolSetAccess"] == [(0, 1)]
