"""DLPack capsules: the only module that looks into one.

NumPy makes every capsule and consumes every capsule, of memory on a GPU too: it owns the lifetimes, the flags and the
deleters, which are right across threads, in any order of collection and at exit, and no deleter of ours exists. It
never touches the memory itself. What NumPy does not know is overwritten, after it has made a capsule or before it looks
into one: ml_dtypes' dtypes travel as the unsigned integer of the same width, and memory on a GPU as memory of the host.
An ndarray made from a capsule exports the device that stands in it, so that this is done once for an array.

NumPy trusts what a producer wrote; an import checks it first. Before it looks into a capsule it renames it, as a
consumer does, so that of several that were handed the same one a single consumer reads it; NumPy then gets another
capsule of the same memory. The structures are those of dlpack.h, major version 1,
and of the unversioned protocol before it.
"""

from __future__ import annotations

import ctypes
from functools import partial
from operator import call
from typing import Any, NamedTuple

import numpy as np

from tilearray.dtypes import ALL, float4_e2m1fn, info
from tilearray.errors import DTypeError, InterchangeError

HOST = (1, 0)
CUDA = 2
READ_ONLY, COPIED, PADDED = 1, 2, 4
PADDED_SINCE = (1, 1)
"""The version of DLPack that has types below a byte, and a flag for one value in a byte."""

HOST_KINDS = frozenset((1, 3))
"""Host memory, and host memory that CUDA has pinned."""
CUDA_KINDS = frozenset((2, 13))
"""A GPU's memory, and memory that CUDA moves between host and GPU."""

MAJOR = 1
_UINT = 1
_MAX_NDIM = 64
_MOST_ELEMENTS = 2**63 // 32  # so that sizes and strides in bytes are int64, whatever the itemsize
_DEVICE_NAMES = {2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 13: "cuda managed", 14: "oneapi"}
_CODE_NAMES = dict(enumerate(("int", "uint", "float", "handle", "bfloat", "complex", "bool"))) | {
    15: "float6_e2m3fn",
    16: "float6_e3m2fn",
    17: "float4_e2m1fn",
}
_DTYPES = {info(dtype).dlpack: dtype for dtype in ALL}
CARRIERS = {dtype: np.dtype(f"u{dtype.itemsize}") for dtype in ALL if dtype.type.__module__ != "numpy"}
"""ml_dtypes' dtypes, and the unsigned integer that each travels as."""


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


# Prototypes of our own: ctypes.pythonapi's attributes are shared with every other user of ctypes.
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
    """A capsule as np.from_dlpack wants to meet it: behind an object that makes it."""

    __slots__ = ("capsule",)

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: object) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return HOST


class _Described:
    """Memory at an address, in NumPy's own terms; the ndarray that is made of it keeps it, and so the owner."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: object, interface: dict[str, Any]) -> None:
        self.owner = owner
        self.__array_interface__ = interface


class Opened(NamedTuple):
    """A look into a capsule, which stays as it is."""

    tensor: Tensor
    versioned: ManagedVersioned | None

    @property
    def flags(self) -> int:
        """What a versioned capsule says of its memory."""
        return self.versioned.flags if self.versioned is not None else 0


class Taken(NamedTuple):
    """What a capsule held.

    Attributes
    ----------
    array : numpy.ndarray
        Over the memory, which it keeps alive. Of a GPU's memory only its address, shape, strides and flags are of use.
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
    """Return an ndarray whose capsules are those of memory on another device; it is for nothing else.

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
    """Write into a capsule of NumPy's what NumPy could not: the dtype, flags, no address for size 0 on a GPU."""
    opened = open_capsule(capsule)
    opened.tensor.dtype.code, opened.tensor.dtype.bits = info(dtype).dlpack
    if opened.tensor.device_type == CUDA and 0 in opened.tensor.shape[: opened.tensor.ndim]:
        opened.tensor.data = None
    if opened.versioned is not None:
        opened.versioned.flags |= flags
        if flags & PADDED:
            opened.versioned.minor = PADDED_SINCE[1]


# ---------------------------------------------------------------------- in


def open_capsule(capsule: object) -> Opened:
    """Return what is inside a capsule, without taking it out."""
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
    """Take out what is inside a capsule, having checked it; a capsule that is refused is left as it was.

    Of several threads that consume one capsule at once, one takes it, and the others get an error.
    """
    name = _claim(capsule)
    ours = new_capsule(capsule_pointer(capsule, _USED[name]), name, None)
    try:
        return take_out(ours)
    except BaseException:
        if capsule_name(ours) == name:  # it was not taken
            _rename(capsule, name)
        raise


def take_out(capsule: object) -> Taken:
    """Take out what is inside a capsule that nobody else has, having checked it."""
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
        tensor.dtype.code, tensor.dtype.bits = _UINT, 8 * dtype.itemsize
    tensor.device_type, tensor.device_id = HOST
    try:
        array = np.from_dlpack(Carrier(capsule))
    finally:  # the producer's deleter finds what the producer wrote
        tensor.dtype = DataType.from_buffer_copy(given)
        tensor.device_type, tensor.device_id = device
    return Taken(array.view(dtype) if dtype in CARRIERS else array, device)


def _name_of(capsule: object) -> bytes:
    """The name of a capsule that is there to be consumed; it lasts, as a name that a capsule borrows has to."""
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
    """Rename a capsule to one that is consumed, and return its name, which no other thread has found then."""
    name = _name_of(capsule)
    # One call that reads and renames, in which Python switches to no other thread: who reads the old name has it.
    before, _ = tuple(map(call, (partial(capsule_name, capsule), partial(_rename, capsule, _USED[name]))))
    if before != name:
        raise _consumed()
    return name


def _consumed() -> InterchangeError:
    return InterchangeError("from_dlpack: the capsule is consumed already; call __dlpack__ again for another")


def check_kind(kind: int) -> None:
    """Raise unless memory of a DLPack device type can be used here."""
    if kind not in HOST_KINDS and kind not in CUDA_KINDS:
        raise InterchangeError(
            f"from_dlpack: expected memory of the host or of a CUDA device, got memory on "
            f"{_DEVICE_NAMES.get(kind, 'an unknown device')} (DLPack device type {kind}): no backend for it exists; "
            f"copy it to the host in its own library first"
        )


def _dtype_of(given: DataType, flags: int) -> np.dtype:
    code, bits, lanes = given.code, given.bits, given.lanes
    dtype = _DTYPES.get((code, bits)) if lanes == 1 else None
    if dtype is not None and (dtype != float4_e2m1fn or flags & PADDED):
        return dtype
    name = f"{_CODE_NAMES.get(code, 'no known kind')}, {bits} bits, {lanes} lanes (DLPack type code {code})"
    if code == info(float4_e2m1fn).dlpack[0]:
        raise DTypeError(
            f"from_dlpack: got {name}: DLPack packs it, float4_e2m1fn is stored here with one value a byte; "
            f"export the bytes, as uint8"
        )
    raise DTypeError(f"from_dlpack: got {name}, which is no dtype here; convert the array in its own library first")


def _problem_of(tensor: Tensor) -> str | None:
    """What no producer may write, so that nothing reads through a bad pointer."""
    ndim = tensor.ndim
    if not 0 <= ndim <= _MAX_NDIM:
        return f"expected 0 to {_MAX_NDIM} dimensions, got {ndim}"
    if ndim and not tensor.shape:
        return f"{ndim} dimensions, but no shape"
    shape: list[int] = tensor.shape[:ndim] if ndim else []
    strides: list[int] = tensor.strides[:ndim] if ndim and tensor.strides else []
    address = (tensor.data or 0) + tensor.byte_offset
    return problem_of_geometry(shape, strides, address, max(tensor.dtype.bits // 8, 1)) or (
        f"no data for the shape {shape}" if not tensor.data and 0 not in shape else None
    )


def problem_of_geometry(shape: list[int], strides: list[int], address: int, itemsize: int) -> str | None:
    """Return what is wrong with an address, sizes, and strides in elements, if anything; strides may be left out."""
    if len(shape) > _MAX_NDIM:
        return f"expected 0 to {_MAX_NDIM} dimensions, got {len(shape)}"
    count, low, high = 1, 0, 0
    for axis, extent in enumerate(shape):
        if extent < 0:
            return f"negative extents in the shape {shape}"
        count *= extent or 1
        reach = strides[axis] * max(extent - 1, 0) if strides else 0
        low, high = low + min(reach, 0), high + max(reach, 0)
    high = max(high, count - 1) if not strides else high
    beyond = 0 not in shape and (address + low * itemsize < 0 or address + (high + 1) * itemsize > 2**63)
    if beyond or max(count, high - low, *map(abs, strides), 1) > _MOST_ELEMENTS:
        return f"the shape {shape} with strides {strides} at {address:#x} exceeds any address space"
    return None
