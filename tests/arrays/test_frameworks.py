"""The way back to torch and JAX, and DLPack's C exchange API, on the host."""

from __future__ import annotations

import ctypes
import gc
import sys
import types

import numpy as np
import pytest
from support.capsules import new_capsule

import tilearray as ta
from tilearray import dtypes
from tilearray.interchange import c_exchange
from tilearray.interchange.capsules import ManagedVersioned
from tilearray.interchange.dlpack import take

torch = pytest.importorskip("torch")

VIEWS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T,
    "sliced": lambda x: x[1:, ::2],
    "0-d": lambda x: x[2, 3, ...],
    "size 0": lambda x: x[:, 2:2],
}
TORCH = [dtype for dtype in dtypes.ALL if hasattr(torch, dtype.name)]


def host(dtype="float32", shape=(4, 6)):
    numbers = np.arange(1, 1 + np.prod(shape), dtype=np.uint8).reshape(shape)
    kept = numbers.astype(bool) if dtype == dtypes.bool_ else numbers.astype(np.float32).astype(dtype)
    return ta.asarray(kept, device="cpu")


# --- out ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", TORCH, ids=str)
def test_torch_and_back(dtype, view):
    x = VIEWS[view](host(dtype))
    tensor = ta.to_torch(x)
    back = ta.asarray(tensor, device="cpu")
    assert tensor.dtype is getattr(torch, dtype.name)
    assert (back.shape, back.dtype) == (x.shape, x.dtype)
    assert tuple(tensor.shape) == x.shape
    if x.size:
        assert tensor.data_ptr() == x._address == back._address
        assert tensor.stride() == x.strides == back.strides
        wide = torch.complex128 if "complex" in dtype.name else torch.float64
        assert np.array_equal(tensor.to(wide).numpy(), ta.to_numpy(x).astype(str(wide)[6:]))


def test_torch_gets_copies_of_arrays_it_cannot_share():
    x = host()[::-1]
    tensor = ta.to_torch(x)
    assert tensor.tolist() == x.tolist()
    assert tensor.data_ptr() != x._address
    with pytest.raises(ta.LayoutError, match="to_torch: copy=False, but negative strides need a copy; write copy=None"):
        ta.to_torch(x, copy=False)
    kept = np.arange(3.0)
    kept.flags.writeable = False
    tensor = ta.to_torch(ta.asarray(kept, device="cpu"))
    tensor[0] = 7
    assert kept[0] == 0
    with pytest.raises(ta.LayoutError, match="read-only memory needs a copy"):
        ta.to_torch(ta.asarray(kept, device="cpu"), copy=False)
    x = host()
    assert ta.to_torch(x, copy=True).data_ptr() != x._address


@pytest.mark.parametrize("dtype", [dtypes.float4_e2m1fn, dtypes.float8_e3m4])
def test_dtypes_that_torch_has_not(dtype):
    with pytest.raises(ta.DTypeError, match=rf"to_torch: torch has no dtype {dtype.name}.*write x\.view\('uint8'\)"):
        ta.to_torch(host(dtype))


JAX = ["bool", "int8", "uint8", "int16", "int32", "float16", "bfloat16", "float32", "complex64", "float8_e4m3fn"]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", JAX)
def test_jax_and_back(name, view):
    pytest.importorskip("jax")
    x = VIEWS[view](host(dtypes.as_dtype(name)))
    array = ta.to_jax(x)
    assert (array.dtype, array.shape) == (x.dtype, x.shape)
    assert np.asarray(array).tobytes() == ta.to_numpy(x).tobytes()
    back = ta.asarray(array, device="cpu")
    assert (back.dtype, back.shape) == (x.dtype, x.shape)
    assert back.size == 0 or back._address == array.unsafe_buffer_pointer()
    assert back.size == 0 or back._buffer.readonly


def test_jax_gets_copies_of_arrays_it_cannot_share():
    pytest.importorskip("jax")
    x = host(dtypes.float32)
    for view in (x[::-1], x[:, ::2]):
        assert ta.to_jax(view).tolist() == view.tolist()
        with pytest.raises(ta.LayoutError, match="to_jax: copy=False, but these strides need a copy; write copy=None"):
            ta.to_jax(view, copy=False)


@pytest.mark.parametrize("name", ["int64", "uint64", "float64", "complex128"])
def test_jax_does_not_narrow(name):
    pytest.importorskip("jax")
    message = rf"JAX would narrow {name}; write jax\.config\.update\('jax_enable_x64', True\) first, or x\.astype"
    with pytest.raises(ta.DTypeError, match=message):
        ta.to_jax(host(dtypes.as_dtype(name)))


def test_cupy_is_for_gpus(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", types.ModuleType("cupy"))
    with pytest.raises(ta.DeviceError, match=r"to_cupy: expected an array on a GPU.*write x\.to_device\('cuda'\)"):
        ta.to_cupy(host())


@pytest.mark.parametrize("function", [ta.to_torch, ta.to_cupy, ta.to_jax])
def test_missing_packages_and_objects_that_are_not_arrays_are_named(function, monkeypatch):
    name = function.__name__.removeprefix("to_")
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, f"{name}.dlpack", None)
    package = "cupy-cuda13x" if name == "cupy" else name
    with pytest.raises(
        ImportError, match=rf"{function.__name__}: {name} is not installed; write pip install {package}, or "
    ):
        function(host())
    fake = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, fake)
    monkeypatch.setitem(sys.modules, f"{name}.dlpack", fake)
    with pytest.raises(
        ta.OperandError, match=rf"{function.__name__}: expected a tilearray Array, got list; write ta.as"
    ):
        function([1, 2])


# --- the C exchange API ---------------------------------------------------------------------------------------------


def test_torchs_exchange_api_is_used(monkeypatch):
    assert c_exchange.api_of(torch.Tensor) is not None
    monkeypatch.setattr(torch.Tensor, "__dlpack__", None)  # not called
    tensor = torch.arange(24.0).reshape(4, 6)[1:, ::2]
    taken = take(tensor, copy=None)
    assert taken.on_host
    assert taken.array.tolist() == tensor.tolist()
    assert taken.array.__array_interface__["data"][0] == tensor.data_ptr()


def test_memory_taken_by_the_exchange_api_lives():
    tensor = torch.arange(1000.0)
    taken = take(tensor, copy=None)
    del tensor
    gc.collect()
    others = [torch.zeros(1000) for _ in range(20)]
    assert taken.array[999] == 999
    assert len(others) == 20


class Functions(ctypes.Structure):
    """DLPackExchangeAPI as dlpack.h 1.3 lays it out."""

    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("previous", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in ("allocate", "from_object", "to_object", "look", "stream")),
    )


FROM_OBJECT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
STREAM = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
NAMES = [b"dlpack_exchange_api", b"something_else"]


def producer(functions, name=NAMES[0]):
    """A class that offers functions, and a capsule beside them."""
    array = np.arange(3.0)
    capsule = new_capsule(ctypes.addressof(functions), name, None)

    class Producer:
        __dlpack_c_exchange_api__ = capsule

        def __dlpack__(self, **wishes):
            return array.__dlpack__(max_version=(1, 0))

        def __dlpack_device__(self):
            return 1, 0

    return Producer()


def offered(version, previous=None):
    functions = Functions()
    functions.version[:] = version
    functions.previous = previous and ctypes.addressof(previous)
    functions.previous_kept = previous
    functions.kept = [FROM_OBJECT(lambda obj, out: 5), STREAM(lambda kind, index, out: 0)]
    functions.from_object, functions.stream = [ctypes.cast(kept, ctypes.c_void_p).value for kept in functions.kept]
    return functions


def test_an_exchange_api_that_we_do_not_know_is_left_alone():
    incomplete = offered((1, 3))
    incomplete.from_object = None
    for functions, name in [(offered((2, 0)), NAMES[0]), (offered((1, 3)), NAMES[1]), (incomplete, NAMES[0])]:
        assert take(producer(functions, name), copy=None).array.tolist() == [0, 1, 2]
    functions = offered((1, 3))
    no_capsule = producer(functions)
    type(no_capsule).__dlpack_c_exchange_api__ = 3
    assert take(no_capsule, copy=None).array.tolist() == [0, 1, 2]


@pytest.mark.parametrize("functions", [offered((1, 3)), offered((2, 0), offered((1, 9)))], ids=["same", "older"])
def test_an_exchange_api_that_fails(functions):
    with pytest.raises(ta.InterchangeError, match=r"Producer refused to export its data: status 5"):
        take(producer(functions), copy=None)


def test_refused_tensors_of_the_exchange_api_are_released():
    deleted = []
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleted.append)
    managed = ManagedVersioned(1, 3, None, ctypes.cast(deleter, ctypes.c_void_p).value, 0)
    managed.tensor.dtype.lanes = 2

    def give(obj, out):
        out[0] = ctypes.addressof(managed)
        return 0

    kept = FROM_OBJECT(give)
    functions = offered((1, 3))
    functions.from_object = ctypes.cast(kept, ctypes.c_void_p).value
    managed.tensor.device_type, managed.tensor.data = 1, 4096
    with pytest.raises(ta.DTypeError, match="2 lanes"):
        take(producer(functions), copy=None)
    assert deleted == [ctypes.addressof(managed)]
