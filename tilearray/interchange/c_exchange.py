"""DLPack's C exchange API, as a consumer: a capsule with functions, an attribute of the producer's class.

The functions do not wait and take no stream. The consumer asks for the producer's current stream. The structures are
those of dlpack.h 1.3.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

from tilearray.engine.streams import LEGACY_STREAM
from tilearray.errors import InterchangeError
from tilearray.interchange.capsules import (
    MAJOR,
    VERSIONED,
    ManagedVersioned,
    Taken,
    capsule_name,
    capsule_pointer,
    new_capsule,
    take_out,
)

_ATTRIBUTE = "__dlpack_c_exchange_api__"
_NAME = b"dlpack_exchange_api"


class _Header(ctypes.Structure):
    _fields_ = (("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p))


class _Functions(ctypes.Structure):
    _fields_ = (
        ("header", _Header),
        ("allocate", ctypes.c_void_p),
        ("from_object", ctypes.c_void_p),
        ("to_object", ctypes.c_void_p),
        ("look_at_object", ctypes.c_void_p),
        ("current_stream", ctypes.c_void_p),
    )


# They run with the GIL. ctypes raises the Python exception that they set.
_FromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
_CurrentStream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
_Deleter = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


class ExchangeApi:
    """The functions of one producer's class."""

    __slots__ = ("_current_stream", "_from_object")

    def __init__(self, functions: _Functions) -> None:
        self._from_object = _FromObject(functions.from_object)
        self._current_stream = _CurrentStream(functions.current_stream)

    def take(self, producer: Any) -> Taken:
        """Take the memory of an object."""
        managed = ctypes.c_void_p()
        try:
            status = self._from_object(producer, ctypes.byref(managed))
        except Exception as error:
            raise _refusal(producer, str(error)) from error
        if status or not managed.value:
            raise _refusal(producer, f"status {status}")
        try:
            return take_out(new_capsule(managed.value, VERSIONED, None))
        except Exception:
            deleter = ManagedVersioned.from_address(managed.value).deleter
            if deleter:
                _Deleter(deleter)(managed.value)
            raise

    def current_stream(self, kind: int, index: int) -> int:
        """Return the handle of the producer's current stream."""
        stream = ctypes.c_void_p()
        if self._current_stream(kind, index, ctypes.byref(stream)):
            raise InterchangeError("from_dlpack: expected the producer's current stream, got an error from it")
        return stream.value or LEGACY_STREAM


_APIS: weakref.WeakKeyDictionary[type, ExchangeApi | None] = weakref.WeakKeyDictionary()


def api_of(producer: type) -> ExchangeApi | None:
    """Return the C exchange API of a class, in a version that we support, or None."""
    capsule: object = getattr(producer, _ATTRIBUTE, None)
    if capsule is None:
        return None
    try:
        return _APIS[producer]
    except KeyError:
        found = _APIS[producer] = _api_in(capsule)
        return found


def _api_in(capsule: object) -> ExchangeApi | None:
    try:
        if capsule_name(capsule) != _NAME:
            return None
    except ValueError:  # not a capsule
        return None
    address: int | None = capsule_pointer(capsule, _NAME)
    while address:
        functions = _Functions.from_address(address)
        if functions.header.major == MAJOR:
            return ExchangeApi(functions) if functions.from_object and functions.current_stream else None
        address = functions.header.previous
    return None


def _refusal(producer: object, why: str) -> InterchangeError:
    kind = type(producer)
    return InterchangeError(f"from_dlpack: {kind.__module__}.{kind.__qualname__} refused to export its data: {why}")
