"""DLPack capsules: the only module that reads and writes the inside of a capsule.

NumPy makes and consumes every capsule, also for memory on a GPU. It manages lifetimes, flags and deleters, correctly
across threads, in any order of collection and at exit. We have no deleter. NumPy never reads the memory itself. We
overwrite the fields that NumPy does not support, after it makes a capsule or before it reads one: a dtype of ml_dtypes
travels as the unsigned integer of the same width, and memory on a GPU as memory of the host. An ndarray made from a
capsule exports the device in the capsule's fields, so we overwrite them once per array.

NumPy trusts the producer; an import checks the capsule first. Before it reads a capsule, it renames the capsule, as a
consumer does. So if several consumers get one capsule, only one of them reads it. NumPy then gets another capsule of
the same memory. The structures are those of dlpack.h, major version 1, and of the older unversioned protocol.
"""

from __future__ import annotations

import ctypes
from functools import partial
from operator import call
from typing import Any, NamedTuple

import numpy as np

from tilearray.dtypes import ALL, PACKED, float4_e2m1fn, float4_e2m1fn_x2, info
from tilearray.errors import DTypeError, InterchangeError
from tilearray.geometry.strides import dense_strides, extent

HOST = (1, 0)
CUDA = 2
READ_ONLY, COPIED, PADDED = 1, 2, 4
PADDED_SINCE = (1, 1)
"""The first version of DLPack with types smaller than a byte, and with a flag for one value per byte."""

HOST_KINDS = frozenset((1, 3))
"""Host memory, and host memory pinned by CUDA."""
CUDA_KINDS = frozenset((2, 13))
"""Memory of a GPU, and memory that CUDA moves between host and GPU."""

MAJOR = 1
_UINT = 1
_MAX_NDIM = 64
_MOST_ELEMENTS = 2**63 // 32  # so that sizes and strides in bytes are int64 for each itemsize
_DEVICE_NAMES = {2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 13: "cuda managed", 14: "oneapi"}
_CODE_NAMES = dict(enumerate(("int", "uint", "float", "handle", "bfloat", "complex", "bool"))) | {
    15: "float6_e2m3fn",
    16: "float6_e3m2fn",
    17: "float4_e2m1fn",
}
_DTYPES = {info(dtype).dlpack: dtype for dtype in ALL}
CARRIERS = {
    dtype: np.dtype(f"u{dtype.itemsize}")
    for dtype in (*ALL, *PACKED)
    if dtype.type.__module__ != "numpy" or dtype in PACKED
}
"""The unsigned integer as which each dtype of ml_dtypes travels, and each pair."""


class DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("manager_context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class ManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


# Our own prototypes, because all users of ctypes share the attributes of ctypes.pythonapi.
capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
_keep = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))

VERSIONED = b"dltensor_versioned"
_USED = {b"dltensor": b"used_dltensor", VERSIONED: b"used_dltensor_versioned"}
_NAMES = {name: name for name in (*_USED, *_USED.values())}
for _name in _NAMES:
    _keep(_name)  # a capsule borrows its name, and may outlive this module


class Carrier:
    """A capsule in the form that np.from_dlpack takes: an object with ``__dlpack__``."""

    __slots__ = ("capsule",)

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: object) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return HOST


class _Described:
    """Memory at an address, in NumPy's own terms. The ndarray made from it keeps it alive, and so the owner."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: object, interface: dict[str, Any]) -> None:
        self.owner = owner
        self.__array_interface__ = interface


class Opened(NamedTuple):
    """The inside of a capsule, which is not consumed."""

    tensor: Tensor
    versioned: ManagedVersioned | None

    @property
    def flags(self) -> int:
        """The flags of a versioned capsule, or 0."""
        return self.versioned.flags if self.versioned is not None else 0


class Taken(NamedTuple):
    """The memory of a consumed capsule.

    Attributes
    ----------
    array : numpy.ndarray
        An array over the memory, which it keeps alive. For memory on a GPU, use only its address, shape, strides and
        flags.
    device : tuple of int
        DLPack's device type and index.
    """

    array: np.ndarray
    device: tuple[int, int]


# ---------------------------------------------------------------------- out


def stand_in(
    address: int,
    shape: tuple[int, ...],
    byte_strides: tuple[int, ...],
    dtype: np.dtype,
    *,
    readonly: bool,
    owner: object,
    device: tuple[int, int],
) -> np.ndarray:
    """Return an ndarray whose capsules describe memory on another device. Use it only to make capsules.

    Examples
    --------
    >>> stand_in(4096, (3,), (4,), np.dtype("f4"), readonly=False, owner=None, device=(2, 1)).__dlpack_device__()
    (2, 1)
    """
    carrier = CARRIERS.get(dtype, dtype)
    interface = {
        "version": 3,
        "shape": shape,
        "typestr": carrier.str,
        "data": (address or carrier.itemsize, readonly),
        "strides": byte_strides,
    }
    capsule = np.asarray(_Described(owner, interface)).__dlpack__(max_version=(MAJOR, 0))
    array = np.from_dlpack(Carrier(capsule))
    tensor = ManagedVersioned.from_address(capsule_pointer(capsule, b"used_dltensor_versioned")).tensor
    tensor.device_type, tensor.device_id = device
    return array


def amend(capsule: object, dtype: np.dtype, flags: int = 0) -> None:
    """Write the fields that NumPy cannot: the dtype, flags, and a null address for size 0 on a GPU."""
    opened = open_capsule(capsule)
    opened.tensor.dtype.code, opened.tensor.dtype.bits = info(dtype).dlpack
    opened.tensor.dtype.lanes = 1 + (dtype == float4_e2m1fn_x2)
    if opened.tensor.device_type == CUDA and 0 in opened.tensor.shape[: opened.tensor.ndim]:
        opened.tensor.data = None
    if opened.versioned is not None:
        opened.versioned.flags |= flags
        if flags & PADDED:
            opened.versioned.minor = PADDED_SINCE[1]


# ---------------------------------------------------------------------- in


def open_capsule(capsule: object) -> Opened:
    """Return the inside of a capsule, without consuming the capsule."""
    name = _name_of(capsule)
    address: Any = capsule_pointer(capsule, name)
    if name != VERSIONED:
        return Opened(Managed.from_address(address).tensor, None)
    managed = ManagedVersioned.from_address(address)
    if managed.major != MAJOR:
        raise InterchangeError(
            f"from_dlpack: expected DLPack version 1, got a capsule of version {managed.major}.{managed.minor}"
        )
    return Opened(managed.tensor, managed)


def consume(capsule: object) -> Taken:
    """Check a capsule, and take its memory. A capsule that fails the check keeps its name and its memory.

    If several threads consume one capsule at once, one thread takes it, and the others get an error.
    """
    name = _claim(capsule)
    ours = new_capsule(capsule_pointer(capsule, _USED[name]), name, None)
    try:
        return take_out(ours)
    except BaseException:
        if capsule_name(ours) == name:  # NumPy did not consume it
            _rename(capsule, name)
        raise


def take_out(capsule: object) -> Taken:
    """Check a capsule that no other thread can reach, and take its memory."""
    opened = open_capsule(capsule)
    tensor = opened.tensor
    problem = _problem_of(tensor)
    if problem is not None:
        raise InterchangeError(f"from_dlpack: the capsule is malformed: {problem}")
    check_kind(tensor.device_type)
    dtype = _dtype_of(tensor.dtype, opened.flags)
    device = tensor.device_type, tensor.device_id
    given = bytes(tensor.dtype)
    if dtype in CARRIERS:
        tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes = _UINT, 8 * dtype.itemsize, 1
    tensor.device_type, tensor.device_id = HOST
    try:
        array = np.from_dlpack(Carrier(capsule))
    finally:  # the producer's deleter reads its own fields
        tensor.dtype = DataType.from_buffer_copy(given)
        tensor.device_type, tensor.device_id = device
    return Taken(array.view(dtype) if dtype in CARRIERS else array, device)


def _name_of(capsule: object) -> bytes:
    """Return the name of a capsule that is not consumed, as an object that lives as long as the process."""
    try:
        name: bytes | None = capsule_name(capsule)
    except ValueError:
        raise InterchangeError(
            f"from_dlpack: expected __dlpack__ to return a capsule, got a {type(capsule).__name__}"
        ) from None
    if name in _USED:
        return _NAMES[name]
    if name in _NAMES:
        raise _consumed()
    raise InterchangeError(f"from_dlpack: expected a capsule named 'dltensor' or 'dltensor_versioned', got {name!r}")


def _claim(capsule: object) -> bytes:
    """Give a capsule the name of a consumed one; return its old name. Only one thread gets the old name."""
    name = _name_of(capsule)
    # One call reads and renames. Python switches to no other thread during the call, so one thread reads the old name.
    before, _ = tuple(map(call, (partial(capsule_name, capsule), partial(_rename, capsule, _USED[name]))))
    if before != name:
        raise _consumed()
    return name


def _consumed() -> InterchangeError:
    return InterchangeError("from_dlpack: the capsule is already consumed; call __dlpack__ again for a new capsule")


def check_kind(kind: int) -> None:
    """Raise InterchangeError if a DLPack device type is not supported."""
    if kind not in HOST_KINDS and kind not in CUDA_KINDS:
        raise InterchangeError(
            f"from_dlpack: expected memory of the host or of a CUDA device, got memory on "
            f"{_DEVICE_NAMES.get(kind, 'an unknown device')} (DLPack device type {kind}), which has no backend here; "
            f"copy it to the host in its own library first"
        )


def _dtype_of(given: DataType, flags: int) -> np.dtype:
    code, bits, lanes = given.code, given.bits, given.lanes
    dtype = _DTYPES.get((code, bits)) if lanes == 1 else None
    if lanes == 2 and (code, bits) == info(float4_e2m1fn_x2).dlpack:
        return float4_e2m1fn_x2
    if dtype is not None and (dtype != float4_e2m1fn or flags & PADDED):
        return dtype
    name = f"{_CODE_NAMES.get(code, 'an unknown kind')}, {bits} bits, {lanes} lanes (DLPack type code {code})"
    if code == info(float4_e2m1fn).dlpack[0]:
        raise DTypeError(
            f"from_dlpack: expected float4_e2m1fn with two lanes, or with one value per byte, got {name}, packed; "
            f"export the bytes as uint8, and write x.view('float4_e2m1fn_x2')"
        )
    raise DTypeError(f"from_dlpack: expected a supported dtype, got {name}; convert the array in its own library first")


def _problem_of(tensor: Tensor) -> str | None:
    """Return the fault of a malformed tensor, or None, so that no one reads through a bad pointer."""
    ndim = tensor.ndim
    if not 0 <= ndim <= _MAX_NDIM:
        return f"expected 0 to {_MAX_NDIM} dimensions, got {ndim}"
    if ndim and not tensor.shape:
        return f"expected a shape for {ndim} dimensions, got a null pointer"
    shape: list[int] = tensor.shape[:ndim] if ndim else []
    strides: list[int] = tensor.strides[:ndim] if ndim and tensor.strides else []
    address = (tensor.data or 0) + tensor.byte_offset
    return problem_of_geometry(shape, strides, address, max(tensor.dtype.bits // 8, 1)) or (
        f"expected data for the shape {shape}, got a null pointer" if not tensor.data and 0 not in shape else None
    )


def problem_of_geometry(shape: list[int], strides: list[int], address: int, itemsize: int) -> str | None:
    """Return the fault of an address, sizes and strides in elements, or None. Without strides, the order is C."""
    if len(shape) > _MAX_NDIM:
        return f"expected 0 to {_MAX_NDIM} dimensions, got {len(shape)}"
    if any(size < 0 for size in shape):
        return f"expected sizes >= 0, got the shape {shape}"
    sizes = tuple([size or 1 for size in shape])
    count, low, high, _, _ = extent(sizes, tuple(strides) or dense_strides(sizes))
    beyond = 0 not in shape and (address + low * itemsize < 0 or address + (high + 1) * itemsize > 2**63)
    if beyond or max(count, high - low, *map(abs, strides), 1) > _MOST_ELEMENTS:
        return f"the shape {shape} with strides {strides} at {address:#x} exceeds any address space"
    return None
