"""DLPack on the host, both ways, for every dtype of ours that it can name.

NumPy makes the capsules and consumes them: it owns the lifetimes, the flags and the deleters, and no deleter of ours
exists. What NumPy's DLPack does not know are ml_dtypes' dtypes. For these the data travels as the unsigned integer of
the same width, and the type code inside the capsule is overwritten: after NumPy has made it, or before NumPy
looks into it. An import checks the capsule first, because NumPy trusts what a producer wrote there.

The structures below are those of dlpack.h, major version 1, and of the unversioned protocol before it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from tilearray.dtypes import ALL, float4_e2m1fn, info
from tilearray.errors import DTypeError, InterchangeError
from tilearray.interchange.numpy import from_host_object, share_or_copy

_VERSION = (1, 0)
_CPU = (1, 0)
_UINT = 1
_MAX_NDIM = 64
_MOST_ELEMENTS = 2**63 // 32  # so that sizes and strides in bytes are int64, whatever the itemsize

_HOST_DEVICES = {1, 3}  # host memory, and host memory that CUDA has pinned
_DEVICE_NAMES = {2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 13: "cuda managed", 14: "oneapi"}
_CODE_NAMES = dict(enumerate(("int", "uint", "float", "handle", "bfloat", "complex", "bool"))) | {
    15: "float6_e2m3fn",
    16: "float6_e3m2fn",
    17: "float4_e2m1fn",
}
_DTYPES = {info(dtype).dlpack: dtype for dtype in ALL if dtype != float4_e2m1fn}
# ml_dtypes' dtypes, and the unsigned integer that each travels as.
_CARRIERS = {dtype: np.dtype(f"u{dtype.itemsize}") for dtype in ALL if dtype.type.__module__ != "numpy"}


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("manager_context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _ManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


# Prototypes of our own: ctypes.pythonapi's attributes are shared with every other user of ctypes.
_capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def to_capsule(
    view: np.ndarray,
    *,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
    stream: object,
) -> object:
    """Return a DLPack capsule of a host array: what its ``__dlpack__`` has to do.

    Parameters
    ----------
    view : numpy.ndarray
        The array. The capsule, and whoever consumes it, keeps it alive.
    max_version : tuple of int or None
        The newest protocol version that the consumer knows; from (1, 0) on the capsule is versioned.
    dl_device : tuple of int or None
        The device that the consumer wants the data on; the host is (1, 0).
    copy : bool or None
        True exports a copy; nothing else copies.
    stream : None
        There are no streams on the host.

    Returns
    -------
    PyCapsule
        Named "dltensor" or "dltensor_versioned".

    Raises
    ------
    InterchangeError
        If DLPack, the wanted version or device, or the consumer cannot represent the array.

    Examples
    --------
    >>> numbers = np.arange(3.0)
    >>> to_capsule(numbers, max_version=None, dl_device=None, copy=None, stream=None)  # doctest: +ELLIPSIS
    <capsule object "dltensor" at ...>
    """
    if stream is not None:
        raise InterchangeError(f"__dlpack__: expected stream=None for host memory, got {stream!r}")
    if dl_device is not None and tuple(dl_device) != _CPU:
        raise InterchangeError(
            f"__dlpack__: the array is on the host, DLPack device {_CPU}, and asked for on {tuple(dl_device)}; "
            f"write x.to_device(...) first"
        )
    if copy is not True:
        _check_shareable(view, max_version)
    carrier = _CARRIERS.get(view.dtype)
    if carrier is None:
        return _numpy_capsule(view, max_version, copy)
    if view.dtype == float4_e2m1fn:
        raise InterchangeError(
            "__dlpack__: float4_e2m1fn is stored here with one value a byte, DLPack packs two; "
            "write x.view('uint8') to export the bytes"
        )
    capsule = _numpy_capsule(view.view(carrier), max_version, copy)
    _open(capsule).dtype.code = info(view.dtype).dlpack[0]
    return capsule


def from_capsule_producer(producer: Any, *, copy: bool | None) -> np.ndarray:
    """Return an array of what an object with ``__dlpack__`` holds on the host.

    Parameters
    ----------
    producer : object
        With ``__dlpack__`` and ``__dlpack_device__``.
    copy : bool or None
        True always copies, False never, None only where the data are misaligned.

    Returns
    -------
    numpy.ndarray
        It keeps the producer's memory alive. Read-only where the producer says so, and where an old producer, of the
        unversioned protocol, cannot say.

    Raises
    ------
    DTypeError
        If the dtype is none of ours.
    InterchangeError
        If the object is no producer or refuses, if its data are not on the host, or if its capsule is malformed.
    LayoutError
        If the data are misaligned and ``copy=False``.

    Examples
    --------
    >>> numbers = np.arange(3.0)
    >>> from_capsule_producer(numbers, copy=None) is numbers
    True
    """
    if isinstance(producer, np.ndarray):  # spare the capsule, which could not hold ml_dtypes' dtypes
        array = from_host_object(cast(object, producer), copy=copy, function="from_dlpack")
        assert array is not None
        return array
    _check_device(producer)
    _check_torch(producer)
    capsule = _request(producer, copy)
    array = _consume(capsule)
    return array.copy(order="K") if copy else share_or_copy(array, copy, "from_dlpack")


class _Carrier:
    """A capsule as np.from_dlpack wants to meet it: behind an object that makes it."""

    __slots__ = ("capsule",)

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: object) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU


def _numpy_capsule(view: np.ndarray, max_version: tuple[int, int] | None, copy: bool | None) -> Any:
    return view.__dlpack__(max_version=max_version, copy=copy)


def _consume(capsule: object) -> np.ndarray:
    """Return the ndarray of a capsule, having checked it."""
    tensor = _open(capsule)
    _check_tensor(tensor)
    dtype = _dtype_of(tensor.dtype)
    if dtype not in _CARRIERS:
        return np.from_dlpack(_Carrier(capsule))
    code = tensor.dtype.code
    tensor.dtype.code = _UINT
    array = np.from_dlpack(_Carrier(capsule))
    tensor.dtype.code = code  # the producer's deleter finds what the producer wrote
    return array.view(dtype)


def _open(capsule: object) -> _Tensor:
    """Return the tensor inside a capsule, without taking it out."""
    try:
        name = _capsule_name(capsule)
    except ValueError:
        raise InterchangeError(
            f"from_dlpack: expected __dlpack__ to return a capsule, got a {type(capsule).__name__}"
        ) from None
    if name == b"dltensor":
        return _Managed.from_address(_capsule_pointer(capsule, name)).tensor
    if name == b"dltensor_versioned":
        managed = _ManagedVersioned.from_address(_capsule_pointer(capsule, name))
        if managed.major != _VERSION[0]:
            raise InterchangeError(
                f"from_dlpack: expected DLPack version 1, got a capsule of version {managed.major}.{managed.minor}"
            )
        return managed.tensor
    if name in (b"used_dltensor", b"used_dltensor_versioned"):
        raise InterchangeError("from_dlpack: the capsule is consumed already; call __dlpack__ again for another")
    raise InterchangeError(f"from_dlpack: expected a capsule named 'dltensor' or 'dltensor_versioned', got {name!r}")


def _request(producer: Any, copy: bool | None) -> object:
    """Return the producer's capsule, versioned if it can."""
    wishes: dict[str, Any] = {"max_version": _VERSION}
    if copy is False:
        wishes["copy"] = False
    try:
        try:
            return producer.__dlpack__(**wishes)
        except TypeError:  # the protocol before version 1 has no keywords
            return producer.__dlpack__()
    except Exception as error:
        raise InterchangeError(f"from_dlpack: {_name(producer)} refused to export its data: {error}") from error


def _dtype_of(given: _DataType) -> np.dtype:
    code, bits, lanes = given.code, given.bits, given.lanes
    dtype = _DTYPES.get((code, bits)) if lanes == 1 else None
    if dtype is not None:
        return dtype
    name = f"{_CODE_NAMES.get(code, 'no known kind')}, {bits} bits, {lanes} lanes (DLPack type code {code})"
    if code == info(float4_e2m1fn).dlpack[0]:
        raise DTypeError(
            f"from_dlpack: got {name}: DLPack packs it, float4_e2m1fn is stored here with one value a byte; "
            f"export the bytes, as uint8"
        )
    raise DTypeError(f"from_dlpack: got {name}, which is no dtype here; convert the array in its own library first")


# --- what must hold before data are shared --------------------------------------------------------------------------


def _check_shareable(view: np.ndarray, max_version: tuple[int, int] | None) -> None:
    if not view.flags.writeable and (max_version is None or max_version[0] < 1):
        raise InterchangeError(
            "__dlpack__: the array is read-only, which a consumer learns from DLPack 1.0 on, and this one asked for "
            "an older version; write x.copy(), or ask with max_version=(1, 0)"
        )
    if any(stride < 0 for stride in view.strides) and _consumer_module().partition(".")[0] == "torch":
        raise InterchangeError(
            f"__dlpack__: torch has no negative strides and would end the process; got strides {view.strides} in "
            f"bytes; write x.copy()"
        )


def _consumer_module() -> str:
    """Return the module that called ``__dlpack__``: the first on the stack that is no part of the export."""
    frame = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        module: str = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name != "__dlpack__" and module.partition(".")[0] != "tilearray":
            return module
        frame = frame.f_back
    return ""


def _check_device(producer: Any) -> None:
    if not (hasattr(producer, "__dlpack__") and hasattr(producer, "__dlpack_device__")):
        raise InterchangeError(
            f"from_dlpack: expected an object with __dlpack__ and __dlpack_device__, got {_name(producer)}; "
            f"write asarray(x) for lists, numbers and buffers, and pass the array itself where you have a capsule"
        )
    try:
        kind, _ = map(int, producer.__dlpack_device__())
    except Exception as error:
        raise InterchangeError(f"from_dlpack: {_name(producer)} does not say where its data are: {error}") from error
    _check_host(kind)


def _check_host(kind: int) -> None:
    if kind not in _HOST_DEVICES:
        need = "it needs the CUDA backend, or a copy" if kind in (2, 13) else "no backend for it exists; copy it"
        raise InterchangeError(
            f"from_dlpack: expected host memory, got memory on {_DEVICE_NAMES.get(kind, 'an unknown device')} "
            f"(DLPack device type {kind}): {need} to the host in its own library first"
        )


def _check_tensor(tensor: _Tensor) -> None:
    """Refuse what no producer may write, so that NumPy never reads through a bad pointer."""
    problem = _problem_of(tensor)
    if problem is not None:
        raise InterchangeError(f"from_dlpack: the capsule is malformed: {problem}")
    _check_host(tensor.device_type)


def _problem_of(tensor: _Tensor) -> str | None:
    ndim = tensor.ndim
    if not 0 <= ndim <= _MAX_NDIM:
        return f"expected 0 to {_MAX_NDIM} dimensions, got {ndim}"
    if ndim and not tensor.shape:
        return f"{ndim} dimensions, but no shape"
    shape: list[int] = tensor.shape[:ndim] if ndim else []
    strides: list[int] = tensor.strides[:ndim] if ndim and tensor.strides else []
    count = 1
    for extent in shape:
        if extent < 0:
            return f"negative extents in the shape {shape}"
        count *= extent or 1
    if max(count, *map(abs, strides), 1) > _MOST_ELEMENTS:
        return f"the shape {shape} with strides {strides} exceeds any address space"
    if not tensor.data and 0 not in shape:
        return f"no data for the shape {shape}"
    return None


# What torch loses or garbles in an export: a predicate, what the tensor is, and what to write instead.
_TORCH_OBSTACLES: tuple[tuple[Callable[[Any], bool], str, str], ...] = (
    (lambda x: str(x.layout) != "torch.strided", "is not strided but {x.layout}", "x.to_dense()"),
    (lambda x: x.is_quantized, "is quantized", "x.dequantize(), or x.int_repr()"),
    (lambda x: x.requires_grad, "requires grad, which would be lost", "x.detach()"),
    (lambda x: x.is_conj(), "is a lazy conjugate, so its memory holds other values", "x.resolve_conj()"),
    (lambda x: x.is_neg(), "is a lazy negative, so its memory holds other values", "x.resolve_neg()"),
)


def _check_torch(producer: Any) -> None:
    """Refuse tensors of torch that are more than their memory. torch is not imported: who has a tensor has torch."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(producer, torch.Tensor):
        return
    for applies, what, instead in _TORCH_OBSTACLES:
        if applies(producer):
            raise InterchangeError(f"from_dlpack: the torch tensor {what.format(x=producer)}; write {instead} first")


def _name(obj: object) -> str:
    kind = type(obj)
    return f"{kind.__module__}.{kind.__qualname__}"
