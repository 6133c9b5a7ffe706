"""Arrays in dask.distributed's messages: every dtype and layout, without a copy, on the receiver's device."""

from __future__ import annotations

import importlib
import pickle

import numpy as np
import pytest
from support.processes import in_fresh_python

import tilearray as ta
from tilearray import dtypes
from tilearray.dask.serialize import from_device_frame, to_device_frame

protocol = pytest.importorskip("distributed.protocol")

LAYOUTS = {
    "C": lambda x: x,
    "transposed": lambda x: x.T,
    "permuted": lambda x: x.transpose(1, 2, 0),
    "sliced": lambda x: x[:, ::2, 1:],
    "reversed": lambda x: x[::-1],
    "one element": lambda x: x[1, 2, 3],
    "broadcast": lambda x: ta.broadcast_to(x[:1], (5, 2, 3, 4)),
    "no element": lambda x: x[:, :0],
    "axes of size 1": lambda x: x[:1, :, None, :1],
}
SHARED = ("C", "transposed", "permuted", "one element", "broadcast")


def sample(name: str = "float32") -> ta.Array:
    return ta.asarray(np.arange(24.0).reshape(2, 3, 4) % 2, device="cpu").astype(name)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_messages_hold_every_layout(layout):
    x = LAYOUTS[layout](sample())
    header, frames = protocol.serialize(x)
    assert header["serializer"] == "dask"
    assert sum(memoryview(frame).nbytes for frame in frames) == (48 if layout == "broadcast" else x.nbytes)
    back = protocol.deserialize(header, frames)
    assert (back.shape, back.dtype, back.tolist()) == (x.shape, x.dtype, x.tolist())
    assert np.shares_memory(ta.to_numpy(back), ta.to_numpy(x)) == (layout in SHARED)


@pytest.mark.parametrize("name", [dtype.name for dtype in dtypes.ALL])
def test_messages_hold_every_dtype(name):
    x = sample(name)
    back = protocol.deserialize_bytes(protocol.serialize_bytes(x))
    assert back.dtype == x.dtype
    assert ta.to_numpy(back).tobytes() == ta.to_numpy(x).tobytes()


def test_read_only_and_unaligned_frames_are_copied():
    x = sample("complex128")
    header, (frame,) = protocol.serialize(x)
    content = memoryview(frame).tobytes()
    for given in (content, memoryview(bytearray(b"." * 9 + content))[9:]):
        back = protocol.deserialize(header, [given])
        back[0] = 7
        assert back[1].tolist() == x[1].tolist()
    fixed = ta.asarray(b"abc")
    header, frames = protocol.serialize(fixed)
    with pytest.raises(ValueError, match="read-only"):
        protocol.deserialize(header, [memoryview(frames[0]).tobytes()])[0] = 1


def test_device_arrays_arrive_on_the_device_of_the_receiver(elsewhere):
    x = sample("bfloat16").T.to_device(elsewhere)
    header, frames = protocol.serialize(x)
    on_host = protocol.deserialize(header, frames)
    ta.set_default_device(elsewhere)
    try:
        on_device = protocol.deserialize(header, frames)
        still_on_host = protocol.deserialize(*protocol.serialize(sample()))
    finally:
        ta.set_default_device("cpu")
    assert [str(one.device) for one in (on_host, on_device, still_on_host)] == ["cpu", str(elsewhere), "cpu"]
    assert on_host.tolist() == on_device.to_device("cpu").tolist() == sample("bfloat16").T.tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_family_cuda_sends_memory_of_the_device(layout, elsewhere):
    x = LAYOUTS[layout](sample().to_device(elsewhere))
    header, (frame,) = protocol.serialize(x, serializers=["cuda"])
    assert header["serializer"] == "cuda"
    assert (frame.device, frame.dtype, frame.ndim) == (elsewhere, np.dtype("uint8"), 1)
    assert (frame._buffer is x._buffer) == (layout in SHARED or not x.size)
    back = protocol.deserialize(header, [frame])
    assert (back.device, back.shape) == (elsewhere, x.shape)
    assert back.to_device("cpu").tolist() == x.to_device("cpu").tolist()


def test_host_arrays_are_not_of_the_family_cuda():
    with pytest.raises(NotImplementedError, match="cuda_serialize: the array is on the host"):
        to_device_frame(sample())
    header, _ = protocol.serialize(sample(), serializers=["cuda", "dask"])
    assert header["serializer"] == "dask"
    assert from_device_frame(header["sub-header"], [ta.zeros(96, dtype="uint8")]).shape == (2, 3, 4)


@pytest.mark.slow  # a process that imports distributed
def test_a_process_that_has_not_imported_tilearray_reads_a_message(tmp_path):
    header, frames = protocol.serialize(sample())
    message = pickle.dumps((header, [memoryview(frame).tobytes() for frame in frames]))
    (tmp_path / "message").write_bytes(message)
    code = f"""
import pickle, sys, distributed.protocol
header, frames = pickle.load(open({str(tmp_path / "message")!r}, "rb"))
assert "tilearray" not in sys.modules
print(distributed.protocol.deserialize(header, frames).sum().item())
"""
    assert in_fresh_python(code).split() == ["12.0"]


def test_chunks_over_the_limit_of_memory_go_to_disk_and_come_back(tmp_path, elsewhere):
    buffer = pytest.importorskip("distributed.spill").SpillBuffer(str(tmp_path), target=3000)
    arrays = {str(place): ta.full((16, 16), place, dtype="float32") for place in range(4)}
    arrays["device"] = ta.full((16, 16), 4.0, dtype="float32", device=elsewhere)
    for key, array in arrays.items():
        buffer[key] = array
    assert len(buffer.slow) == 3  # two of 1024 bytes remain
    assert {key: buffer[key].to_device("cpu").tolist()[0][0] for key in arrays} == dict(zip(arrays, range(5)))


def test_registration_is_distributeds():
    cuda = importlib.import_module("distributed.protocol.cuda")
    assert cuda.cuda_serialize.dispatch(ta.Array) is to_device_frame
