"""Every library, both ways, every common dtype, every layout: the same memory and the same values."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilearray as ta
from tilearray import dtypes

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # by default, JAX takes most of the GPU's memory

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T,
    "sliced": lambda x: x[1:, ::2],
    "0-d": lambda x: x[2, 3, ...],
    "size 0": lambda x: x[:, 2:2],
    "offset": lambda x: x[1:],
    "reversed": lambda x: x[::-1, ::-2],
}
FORWARD = [layout for layout in LAYOUTS if layout != "reversed"]
PLAIN = ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]
UNSIGNED = ["uint16", "uint32", "uint64"]
FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]
TORCH = [*PLAIN, *UNSIGNED, "bfloat16", *FLOAT8]
CUPY = [*PLAIN, *UNSIGNED]
JAX = [*(set(PLAIN) - {"int64", "float64", "complex128"}), "uint16", "uint32", "bfloat16", *FLOAT8[:2]]
JAX.sort()


def host(name: str) -> np.ndarray:
    """Return different values that are finite in every dtype."""
    numbers = np.arange(1, 25, dtype=np.uint8).reshape(4, 6)
    return numbers.astype(bool) if name == "bool" else numbers.astype(np.float32).astype(dtypes.as_dtype(name))


def ours(name: str, layout: str) -> tuple[Any, np.ndarray]:
    """Return an array on the GPU in a layout, and its values."""
    return LAYOUTS[layout](ta.asarray(host(name), device="cuda:0")), LAYOUTS[layout](host(name))


def check(x: Any, wanted: np.ndarray, pointer: int, strides: tuple[int, ...] | None) -> None:
    """Check an import: on the GPU, the same memory, values, shape and strides in elements."""
    assert (x.device, x.dtype, x.shape) == ("cuda:0", wanted.dtype, wanted.shape)
    assert ta.to_numpy(x).tobytes() == wanted.tobytes()
    if wanted.size:
        assert x._address == pointer
        assert strides is None or x.strides == strides


class SpeaksInterface:
    """An object with only the CUDA Array Interface of another object."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = owner.__cuda_array_interface__


class SpeaksDLPack:
    """An object with only the DLPack methods of another object."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __dlpack__(self, **wishes: Any) -> Any:
        return self.owner.__dlpack__(**wishes)

    def __dlpack_device__(self) -> Any:
        return self.owner.__dlpack_device__()


# --- torch ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="torch is not installed")


def torch_values(torch: Any, tensor: Any, wanted: np.ndarray) -> bool:
    """Return whether a tensor equals an ndarray, both widened: torch cannot view the bytes of a 0-d tensor."""
    wide = "complex128" if wanted.dtype.kind == "c" else "float64"
    return np.array_equal(tensor.cpu().to(getattr(torch, wide)).numpy(), wanted.astype(wide))


@pytest.mark.parametrize("layout", FORWARD)
@pytest.mark.parametrize("name", TORCH)
def test_to_torch(torch, name, layout):
    x, wanted = ours(name, layout)
    for tensor in (torch.from_dlpack(x), ta.to_torch(x, copy=False)):
        assert tensor.dtype is getattr(torch, name)
        assert (tuple(tensor.shape), tensor.device) == (wanted.shape, torch.device("cuda:0"))
        assert torch_values(torch, tensor, wanted)
        if wanted.size:
            assert (tensor.data_ptr(), tensor.stride()) == (x._address, x.strides)
    if x.size and name in PLAIN:
        tensor.fill_(1)
        assert (ta.to_numpy(x) == 1).all()


@pytest.mark.parametrize("layout", FORWARD)
@pytest.mark.parametrize("name", TORCH)
def test_from_torch(torch, name, layout):
    wide = torch.complex64 if "complex" in name else torch.float32
    source = LAYOUTS[layout](torch.arange(1, 25, device="cuda").reshape(4, 6).to(wide).to(getattr(torch, name)))
    wanted = LAYOUTS[layout](host(name))
    for x in (ta.asarray(source), ta.from_dlpack(source), ta.asarray(SpeaksDLPack(source))):
        check(x, wanted, source.data_ptr(), source.stride())
        assert not x._buffer.readonly


@pytest.mark.parametrize("name", ["float32", "int8", "bfloat16", "complex64"])
def test_torch_sees_our_writes(torch, name):
    source = torch.zeros(4, 6, device="cuda", dtype=getattr(torch, name))
    ta.asarray(source)[...] = 1
    ta.asarray(source.T)[2:4] = 3
    assert bool((source[:, 2:4] == 3).all())
    assert bool((source[:, :2] == 1).all())


def test_torch_has_no_negative_strides(torch):
    x, wanted = ours("float32", "reversed")
    with pytest.raises(ta.InterchangeError, match="torch ends the process at negative strides"):
        torch.from_dlpack(x)
    assert torch_values(torch, ta.to_torch(x), wanted)


@pytest.mark.filterwarnings("ignore")
def test_tensors_that_are_refused(torch):
    z = torch.ones(2, device="cuda", dtype=torch.complex64)
    for tensor, message in [
        (torch.ones(2, device="cuda", requires_grad=True), r"requires grad.*write x\.detach\(\)"),
        (z.conj(), r"lazy conjugate.*resolve_conj"),
        (z.conj().imag, r"lazy negative.*resolve_neg"),
        (torch.eye(2, device="cuda").to_sparse(), r"sparse_coo.*to_dense"),
        (torch.quantize_per_tensor(torch.ones(2, device="cuda"), 0.5, 0, torch.qint8), r"quantized.*dequantize"),
    ]:
        with pytest.raises(ta.InterchangeError, match=message):
            ta.asarray(tensor)
    with pytest.raises(ta.DTypeError, match="complex, 32 bits"):
        ta.asarray(torch.zeros(2, device="cuda", dtype=torch.complex32))


def test_a_parameter_comes_by_the_exchange_api(torch):
    parameter = torch.nn.Parameter(torch.arange(6.0, device="cuda").reshape(2, 3), requires_grad=False)
    check(ta.asarray(parameter), np.arange(6, dtype=np.float32).reshape(2, 3), parameter.data_ptr(), (3, 1))


# --- CuPy -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cupy() -> Any:
    return pytest.importorskip("cupy", reason="CuPy is not installed")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CUPY)
def test_to_cupy(cupy, name, layout):
    x, wanted = ours(name, layout)
    for array in (ta.to_cupy(x), cupy.asarray(x)):
        assert (array.dtype, array.shape) == (wanted.dtype, wanted.shape)
        assert np.array_equal(array.get(), wanted)
        if wanted.size:
            assert array.data.ptr == x._address
    if wanted.size:
        array[...] = 1
        assert (ta.to_numpy(x) == 1).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CUPY)
def test_from_cupy(cupy, name, layout):
    source = LAYOUTS[layout](cupy.asarray(host(name)))
    wanted = LAYOUTS[layout](host(name))
    strides = tuple(stride // source.itemsize for stride in source.strides)
    for x in (ta.asarray(source), ta.asarray(SpeaksInterface(source))):
        check(x, wanted, source.data.ptr, strides)
    if source.size and min(source.strides, default=0) < 0 and source.itemsize > 1:
        with pytest.raises(ta.InterchangeError, match="exceeds any address space"):  # CuPy divides strides unsigned
            ta.asarray(SpeaksDLPack(source))
    else:
        check(ta.asarray(SpeaksDLPack(source)), wanted, source.data.ptr, strides)


@pytest.mark.parametrize("name", ["float32", "int8", "complex64"])
def test_cupy_sees_our_writes(cupy, name):
    source = cupy.zeros((4, 6), name)
    ta.asarray(source[::-1])[0] = 3
    assert bool((source[3] == 3).all())
    assert not bool(source[:3].any())


# --- JAX ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def jax() -> Any:
    found = pytest.importorskip("jax", reason="JAX is not installed")
    try:
        found.devices("gpu")
    except RuntimeError:
        pytest.skip("JAX has no GPU here")
    return found


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "0-d", "size 0", "offset", "sliced", "reversed"])
@pytest.mark.parametrize("name", JAX)
def test_to_jax(jax, name, layout):
    x, wanted = ours(name, layout)
    array = ta.to_jax(x)
    assert (array.dtype, array.shape) == (wanted.dtype, wanted.shape)
    assert {device.platform for device in array.devices()} == {"gpu"}
    assert np.asarray(array).tobytes() == wanted.tobytes()
    if layout == "contiguous":
        assert array.unsafe_buffer_pointer() == x._address


@pytest.mark.parametrize("shape", [(4, 6), (), (0, 3)])
@pytest.mark.parametrize("name", JAX)
def test_from_jax(jax, name, shape):
    wanted = np.resize(host(name), shape).astype(host(name).dtype)
    source = jax.device_put(wanted, jax.devices("gpu")[0])
    x = ta.asarray(source)
    check(x, wanted, source.unsafe_buffer_pointer() if wanted.size else 0, None)
    if wanted.size:
        assert x._buffer.readonly
        with pytest.raises(ta.WriteError, match="read-only"):
            x[...] = 1


def test_functions_of_jaxs_host_arrays_run_on_the_host(jax):
    x = jax.device_put(np.ones(3, np.float32), jax.devices("cpu")[0])
    for function in (ta.fuse(lambda x: x + 1), ta.array_agnostic(lambda x: x + 1)):
        found = function(x)
        assert {device.platform for device in found.devices()} == {"cpu"}
        assert found.tolist() == [2, 2, 2]


# --- NumPy and numba ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_numpy(dtype, layout):
    wanted = LAYOUTS[layout](host(dtype.name))
    x = ta.asarray(wanted, device="cuda:0")
    back = ta.to_numpy(x)
    assert (back.dtype, back.shape) == (wanted.dtype, wanted.shape)
    assert back.tobytes() == wanted.tobytes()
    if dtype.name in CUPY and layout == "contiguous":
        assert np.array_equal(np.from_dlpack(x, device="cpu"), wanted)
    with pytest.raises(ta.ImplicitTransferError):
        np.asarray(x)


NUMBA = ["int8", "uint8", "int32", "int64", "float32", "float64", "complex64"]


@pytest.fixture(scope="module")
def numba_cuda() -> Any:
    found = pytest.importorskip("numba.cuda", reason="numba is not installed")
    if not found.is_available():
        pytest.skip("numba has no GPU here")
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced", "size 0"])
@pytest.mark.parametrize("name", NUMBA)
def test_numba(numba_cuda, name, layout):
    x, wanted = ours(name, layout)
    array = numba_cuda.as_cuda_array(x)
    assert (array.dtype, array.shape) == (wanted.dtype, wanted.shape)
    if wanted.size:
        assert array.device_ctypes_pointer.value == x._address
    source = numba_cuda.to_device(host(name))
    check(ta.asarray(source), host(name), source.device_ctypes_pointer.value, (6, 1))


@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_a_function_takes_and_returns_arrays_of_its_callers_library(name):
    library = pytest.importorskip(name)
    held = library.ones(5, dtype=library.float32, device="cuda") if name == "torch" else library.ones(5, "float32")
    result = ta.array_agnostic(lambda x: x * 2 + 1)(held)
    assert type(result) is type(held)
    assert result.tolist() == [3.0] * 5
