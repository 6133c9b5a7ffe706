"""DLPack as in dlpack.h: its constants and structures, the contents of capsules, and producers of every kind."""

from __future__ import annotations

import ctypes

import numpy as np

from tilearray import dtypes
from tilearray.interchange.dlpack import to_capsule

# --- dlpack.h -------------------------------------------------------------------------------------------------------

DLPACK = {  # (code, bits) as dlpack.h 1.1 numbers them
    "bool": (6, 8),
    "int8": (0, 8),
    "int16": (0, 16),
    "int32": (0, 32),
    "int64": (0, 64),
    "uint8": (1, 8),
    "uint16": (1, 16),
    "uint32": (1, 32),
    "uint64": (1, 64),
    "float16": (2, 16),
    "float32": (2, 32),
    "float64": (2, 64),
    "bfloat16": (4, 16),
    "complex64": (5, 64),
    "complex128": (5, 128),
    "float8_e3m4": (7, 8),
    "float8_e4m3": (8, 8),
    "float8_e4m3b11fnuz": (9, 8),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
}
SHARED = {name: dtypes.as_dtype(name) for name in DLPACK}


class DLTensor(ctypes.Structure):
    """An array without an owner."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class DLManagedTensor(ctypes.Structure):
    """What a capsule named "dltensor" points to."""

    _fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class DLManagedTensorVersioned(ctypes.Structure):
    """What a capsule named "dltensor_versioned" points to."""

    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


# --- capsules -------------------------------------------------------------------------------------------------------

TENSOR_AT = {b"dltensor": DLManagedTensor.tensor.offset, b"dltensor_versioned": DLManagedTensorVersioned.tensor.offset}
capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)


def field(capsule: object, name: str) -> ctypes._SimpleCData:
    """A field of a capsule's DLTensor, to read and to write."""
    found = capsule_name(capsule)
    kind, offset = dict(DLTensor._fields_)[name], getattr(DLTensor, name).offset
    return kind.from_address(capsule_pointer(capsule, found) + TENSOR_AT[found] + offset)


def flags_of(capsule: object) -> int:
    return DLManagedTensorVersioned.from_address(capsule_pointer(capsule, b"dltensor_versioned")).flags


# --- arrays and their producers -------------------------------------------------------------------------------------

LAYOUTS = {
    "contiguous": lambda a: a,
    "transposed": lambda a: a.T,
    "sliced": lambda a: a[1:, ::2],
    "negative": lambda a: a[::-1, ::-2],
    "broadcast": lambda a: np.ndarray(a.shape, a.dtype, a, 0, (a.strides[0], 0)),
    "0-d": lambda a: a[2, 3, ...],
    "size 0": lambda a: a[:, 2:2],
    "offset": lambda a: a[2],
}


def sample(dtype: np.dtype, shape: tuple[int, ...] = (4, 6)) -> np.ndarray:
    """Different values, all of them finite in every dtype."""
    numbers = np.arange(1, 1 + np.prod(shape), dtype=np.uint8).reshape(shape)
    return numbers.astype(bool) if dtype.kind == "b" else numbers.astype(np.float32).astype(dtype)


def bits(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(np.uint8)


def address(x: np.ndarray) -> int:
    return x.__array_interface__["data"][0]


class Exporter:
    """The least that an array has to be to export through `to_capsule`."""

    def __init__(self, view: np.ndarray) -> None:
        self.view = view

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return to_capsule(self.view, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self):
        return (1, 0)


class Producer:
    """A foreign producer whose two methods are given."""

    def __init__(self, export, device=lambda: (1, 0)) -> None:
        self.export = export
        self.device = device

    def __dlpack__(self, **keywords):
        return self.export(**keywords)

    def __dlpack_device__(self):
        return self.device()


def export(view: np.ndarray, max_version=(1, 0), dl_device=None, copy=None, stream=None) -> object:
    return to_capsule(view, max_version=max_version, dl_device=dl_device, copy=copy, stream=stream)


class RawProducer:
    """Has nothing in common with NumPy: exports `words` as bfloat16, without strides; notes what its deleter finds."""

    def __init__(self, words: np.ndarray, count: int, byte_offset: int = 0, code: int = 4, bits: int = 16) -> None:
        self.words = words
        self.deleted = []
        self.deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.delete)
        self.shape = (ctypes.c_int64 * 1)(count)
        self.managed = DLManagedTensor(
            DLTensor(address(words), 1, 0, 1, code, bits, 1, ctypes.addressof(self.shape), None, byte_offset),
            None,
            ctypes.cast(self.deleter, ctypes.c_void_p),
        )

    def delete(self, at: int) -> None:
        assert at == ctypes.addressof(self.managed)
        self.deleted.append(self.managed.tensor.code)

    def __dlpack__(self, **_):
        return new_capsule(ctypes.addressof(self.managed), b"dltensor", None)

    def __dlpack_device__(self):
        return (1, 0)
