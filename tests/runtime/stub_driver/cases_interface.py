"""The CUDA Array Interface over the stub, copies between devices, and the streams of uploads."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from exchanging import VIEWS, on_gpu, waits

import tilearray as ta
from tilearray import cuda
from tilearray_cuda.device import open_device

# --- the CUDA Array Interface ---------------------------------------------------------------------------------------


class Described:
    def __init__(self, **described):
        self.__cuda_array_interface__ = described


def described(x, **changes):
    return Described(**{**x.__cuda_array_interface__, **changes})


@pytest.mark.parametrize("view", VIEWS)
def test_the_interface_makes_a_round_trip(view):
    x = VIEWS[view](on_gpu(np.arange(24, dtype=np.int16).reshape(4, 6)))
    back = ta.asarray(described(x))
    assert (back.shape, back.dtype) == (x.shape, x.dtype)
    if x.size:
        assert (back._address, back.strides, back.device) == (x._address, x.strides, x.device)
    assert x.__cuda_array_interface__["stream"] == 1
    assert not ta.asarray(described(x))._buffer.readonly
    assert ta.asarray(described(x, data=(x._address, True)))._buffer.readonly


def test_the_interface_finds_the_gpu():
    assert ta.asarray(described(on_gpu(np.arange(3.0), "cuda:1"))).device == "cuda:1"


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn])
def test_the_interface_has_no_name_for_some_dtypes(dtype):
    with pytest.raises(AttributeError, match=r"cannot name .*; write x\.view\('uint8'\)"):
        on_gpu(np.zeros(3, dtype)).__cuda_array_interface__  # noqa: B018


def test_streams_of_the_interface(stub):
    side, own = cuda.Stream("cuda:0"), cuda.Stream("cuda:0")
    x = on_gpu(np.arange(3.0))
    for given, version, home in [
        (side.handle, 3, side.handle),
        (1, 3, 0),
        (2, 3, 0),
        (None, 3, own.handle),  # no stream has to wait
        (None, 2, 0),
    ]:
        with cuda.stream(own):
            y = ta.asarray(described(x, stream=given, version=version))
        assert y._buffer.stream == home
    stub.start_log()
    y = ta.asarray(described(x, stream=side.handle))
    assert waits(stub) == []
    open_device(0).join(y._buffer, 0)
    assert waits(stub) == [("cuEventRecord", side.handle), ("cuStreamWaitEvent", 0)]


class Cursor:
    """An index with one value at the first read, and another value later."""

    def __init__(self, first: int, later: int) -> None:
        self.readings = [first]
        self.later = later

    def __index__(self) -> int:
        return self.readings.pop() if self.readings else self.later


def test_a_dictionary_that_changes_gives_no_other_memory():
    x = on_gpu(np.arange(100.0))
    assert ta.asarray(described(x, stream=Cursor(1, 0xBAD)))._buffer.stream == 0
    x[Cursor(50, 0) :]
    view = x[50:]
    assert (view.shape, view._address) == ((50,), x._address + 400)
    assert ta.as_strided(x, (3,), (1,), Cursor(0, 2**40))._address == x._address


# --- between devices, and uploads -----------------------------------------------------------------------------------


def test_from_one_gpu_to_another(stub):
    values = np.arange(40.0).reshape(5, 8)
    x = on_gpu(values)
    stub.start_log()
    for view, wanted in ((x, values), (x.T, values.T), (x[2], values[2]), (x[1:4], values[1:4]), (x[2:2], values[2:2])):
        moved = view.to_device("cuda:1")
        assert (moved.device, moved._buffer.nbytes) == ("cuda:1", wanted.nbytes)
        assert moved.strides == view.strides
        assert np.array_equal(ta.to_numpy(moved), wanted)
    copies = [call.name for call in stub.log() if call.name.startswith("cuMemcpyPeer")]
    assert len(copies) == 4
    assert x.to_device("cuda:0") is x


def test_a_stream_for_a_copy_to_another_gpu(stub):
    here, there = cuda.Stream("cuda:0"), cuda.Stream("cuda:1")
    x = on_gpu(np.arange(3.0))
    with cuda.stream(here):
        assert x.to_device("cuda:1")._buffer.stream == 0  # the stream of the other GPU
    with cuda.stream(there):
        assert x.to_device("cuda:1")._buffer.stream == there.handle
    assert x.to_device("cuda:1", stream=there)._buffer.stream == there.handle
    host = ta.asarray([1, 2], device="cpu")
    assert host.to_device("cuda:0", stream=here)._buffer.stream == here.handle
    with pytest.raises(ta.OperandError, match="to_device: expected no stream for a copy to the host"):
        x.to_device("cpu", stream=here)
    with pytest.raises(ta.OperandError, match="to_device: expected a stream, got 'no'"):
        x.to_device("cuda:1", stream="no")
    for device in ("cuda:0", "cuda:1"):
        cuda.empty_cache(device)  # while the streams of the freed memory exist


def test_memory_of_a_stream_that_is_an_argument_keeps_the_stream(stub):
    stub.start_log()
    stream = cuda.Stream("cuda:0")
    handle = stream.handle
    KEPT.append(ta.asarray([1, 2], device="cpu").to_device("cuda:0", stream=stream))
    del stream
    cuda.empty_cache("cuda:0")  # destroys streams without an owner
    assert ("cuStreamDestroy", handle) not in [(call.name, call.stream) for call in stub.log()]


KEPT: list[ta.Array] = []
"""Arrays that are never freed: their memory must not be cached for a stream that is gone."""


def test_uploads_run_on_the_stream_in_force(stub):
    side = cuda.Stream("cuda:0")
    stub.start_log()
    with cuda.stream(side):
        arrays = [
            ta.asarray(np.arange(3.0), device="cuda:0"),
            ta.asarray([1, 2], device="cuda:0"),
            ta.ops.numbers.scalar_array(np.float32(2), ta.asarray([1], device="cuda:0").device, "add"),
        ]
    assert {x._buffer.stream for x in arrays} == {side.handle}
    copies = [call for call in stub.log() if call.name == "cuMemcpyHtoDAsync"]
    assert len(copies) == 4
    assert {call.stream for call in copies} == {side.handle}
