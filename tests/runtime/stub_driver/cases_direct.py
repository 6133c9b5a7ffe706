"""Arrays of torch and CuPy read through their attributes, with stand-ins of these libraries over the stub."""

from __future__ import annotations

import gc
import sys
import types
import weakref

import numpy as np
import pytest

import tilearray as ta
from tilearray import cuda
from tilearray.arrays import asarray, torch_cupy
from tilearray_cuda.device import open_device


class Storage:
    """The owner of a tensor's memory."""

    def __init__(self, buffer):
        self.buffer = buffer


class TorchDType:
    """A dtype of torch, with its text only."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"torch.{self.name}"


TorchDType.__module__ = "torch"
FLOAT32, COMPLEX64, QINT8 = TorchDType("float32"), TorchDType("complex64"), TorchDType("qint8")


class Tensor:
    """The attributes that the reader reads, and the protocols that report faults."""

    is_cuda, layout, is_nested, is_quantized = True, "torch.strided", False, False

    def __init__(self, shape=(4, 6), dtype=FLOAT32, index=0, strides=None, shift=0, **state):
        self.shape, self.dtype, self.index, self.shift = shape, dtype, index, shift
        self.strides = strides or tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))
        self.storage = Storage(open_device(index).allocate(1024, 0))
        self.requires_grad = state.get("requires_grad", False)
        self.state = state

    def data_ptr(self):
        if "sparse" in self.state:
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
        return self.storage.buffer.pointer + self.shift

    def numpy(self):
        raise TypeError("can't convert device tensor to numpy")

    def stride(self):
        return self.strides

    def get_device(self):
        return self.index

    def is_neg(self):
        return self.state.get("neg", False)

    def is_conj(self):
        return self.state.get("conj", False)

    def untyped_storage(self):
        return self.storage

    def __dlpack_device__(self):
        return 2, self.index

    def __dlpack__(self, **_):
        raise BufferError("not this way")


class SubTensor(Tensor):
    pass


@pytest.fixture
def torch(monkeypatch):
    """Return a module of this name; a test can set its current stream."""
    fake = types.ModuleType("torch")
    fake.Tensor = Tensor
    fake.stream = 0
    fake._C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda index: fake.stream)
    fake.cuda = types.SimpleNamespace(is_initialized=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setattr(torch_cupy, "READERS", {})
    monkeypatch.setattr(asarray, "_READERS", torch_cupy.READERS)
    return fake


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(
    "made",
    [
        {},
        {"shape": ()},
        {"shape": (0, 3)},
        {"shape": (6, 4), "strides": (1, 6)},
        {"shape": (3, 2), "strides": (0, 4)},
        {"shift": 4, "shape": (5,)},
        {"dtype": COMPLEX64, "shift": 8},
        {"index": 1},
    ],
    ids=str,
)
def test_a_tensor_is_imported_without_a_copy(torch, stub, made, times):
    stub.start_log()
    for _ in range(times):
        tensor = Tensor(**made)
        x = ta.asarray(tensor)
        assert (x.shape, x.strides, str(x.device)) == (tensor.shape, tensor.strides, f"cuda:{tensor.index}")
        assert f"torch.{x.dtype.name}" == str(tensor.dtype)
        assert x._address == tensor.data_ptr()
        assert not x._buffer.readonly
        assert x._signature.aligned == (tensor.data_ptr() % 16 == 0)
    assert [call.name for call in stub.log() if "Event" in call.name or "Synchronize" in call.name] == []
    assert [*torch_cupy.READERS] == [Tensor]


def test_the_memory_lives_as_long_as_the_array_even_if_the_tensor_gets_another(torch):
    tensor = Tensor()
    alive, storage = weakref.ref(tensor), weakref.ref(tensor.storage)
    x = ta.asarray(tensor)
    tensor.storage = Storage(open_device(0).allocate(1024, 0))  # tensor.data = other
    part = x[1:]
    del x, tensor
    assert alive() is None
    assert storage() is not None
    del part
    assert storage() is None


def test_torchs_current_stream_orders_the_memory(torch, stub):
    side = cuda.Stream("cuda:0")
    for handle, home in ((0, 0), (1, 0), (2, 0), (side.handle, side.handle)):
        torch.stream = handle
        assert ta.asarray(Tensor())._buffer.stream == home
    tensor = Tensor()
    storage = weakref.ref(tensor.storage)
    stub.start_log()
    x = ta.asarray(tensor)
    assert stub.log() == []
    open_device(0).join(x._buffer, 0)
    assert [(call.name, call.stream) for call in stub.log() if "Event" in call.name] == [
        ("cuEventRecord", side.handle),
        ("cuStreamWaitEvent", 0),
    ]
    open_device(0).join(x._buffer, side.handle, True)  # torch's own stream writes
    del tensor
    stub.hold(0, True)  # the reader on the default stream is slow
    open_device(0).join(x._buffer, 0)
    del x
    open_device(0).memory.collect()
    assert storage() is not None
    stub.hold(0, False)
    open_device(0).memory.collect()
    gc.collect()
    assert storage() is None


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"requires_grad": True}, r"requires grad.*write x\.detach\(\) first"),
        ({"neg": True}, r"lazy negative.*write x\.resolve_neg\(\) first"),
        ({"dtype": COMPLEX64, "conj": True}, r"lazy conjugate.*write x\.resolve_conj\(\) first"),
    ],
)
def test_tensors_that_are_more_than_their_memory_are_refused(torch, state, message):
    ta.asarray(Tensor(dtype=state.get("dtype", FLOAT32)))  # the layout is known
    with pytest.raises(ta.InterchangeError, match=message):
        ta.asarray(Tensor(**state))


@pytest.mark.parametrize("made", [{"sparse": True}, {"dtype": QINT8}, {"shift": 1}])
def test_other_tensors_are_left_to_the_protocols(torch, made):
    with pytest.raises(ta.InterchangeError, match="not this way"):
        ta.asarray(Tensor(**made))


def test_other_classes_and_devices_are_left_to_the_protocols(torch, monkeypatch):
    with pytest.raises(ta.InterchangeError, match="not this way"):
        ta.asarray(SubTensor())
    monkeypatch.setattr(Tensor, "is_cuda", False)
    with pytest.raises(ta.InterchangeError, match="not this way"):
        ta.asarray(Tensor(shape=(7, 7)))


def test_arguments_of_asarray_are_obeyed_on_the_fast_path(torch):
    tensor = Tensor()
    assert ta.asarray(tensor, copy=False)._address == tensor.data_ptr()
    assert ta.asarray(tensor, device="cuda:0", dtype="float32")._address == tensor.data_ptr()
    assert ta.from_dlpack(tensor)._address == tensor.data_ptr()
    assert ta.asarray(tensor, device="cuda:1").device == "cuda:1"
    with pytest.raises(ta.LayoutError, match="copy=False, but float32 on cuda:0 becomes float32 on cuda:1"):
        ta.asarray(tensor, device="cuda:1", copy=False)


def test_layouts_are_not_remembered_without_end(torch, monkeypatch):
    monkeypatch.setattr(torch_cupy, "KNOWN_LAYOUTS", 10)
    for size in range(1, 50):
        assert ta.asarray(Tensor(shape=(size,))).shape == (size,)


# --- CuPy -----------------------------------------------------------------------------------------------------------


class CuPyArray:
    def __init__(self, array, index=0):
        self.buffer = open_device(index).allocate(1024, 0)
        low = min(0, *(s * (n - 1) for s, n in zip(array.strides, array.shape, strict=True)), 0)
        self.dtype, self.shape, self.strides = array.dtype, array.shape, array.strides
        self.data = types.SimpleNamespace(ptr=self.buffer.pointer - low, device_id=index)


@pytest.fixture
def cupy(monkeypatch):
    fake = types.ModuleType("cupy")
    fake.ndarray = CuPyArray
    fake.stream = 0
    fake.cuda = types.SimpleNamespace(get_current_stream=lambda index: types.SimpleNamespace(ptr=fake.stream))
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setattr(torch_cupy, "READERS", {})
    monkeypatch.setattr(asarray, "_READERS", torch_cupy.READERS)
    return fake


@pytest.mark.parametrize(
    "view", [lambda x: x, lambda x: x.T, lambda x: x[1:, ::2], lambda x: x[::-1, ::-2], lambda x: x[:0]]
)
def test_an_array_of_cupy_is_imported_without_a_copy(cupy, view):
    side = cuda.Stream("cuda:1")
    cupy.stream = side.handle
    for _ in range(2):
        array = CuPyArray(view(np.zeros((4, 6), np.float32)), 1)
        x = ta.asarray(array)
        assert (x.shape, x.dtype, x.device) == (array.shape, array.dtype, "cuda:1")
        assert tuple(4 * stride for stride in x.strides) == array.strides
        assert x._address == array.data.ptr
        low, high = x._span()
        assert low >= x._buffer.pointer
        assert high <= x._buffer.pointer + x._buffer.nbytes
        assert x._buffer.stream == side.handle
