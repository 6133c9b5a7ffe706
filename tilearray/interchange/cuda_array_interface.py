"""The CUDA Array Interface, version 3, both ways: GPU memory of CuPy, torch, numba and others without a copy.

It is a dictionary: a pointer, a shape, strides in bytes (None: C order), a typestr in NumPy's format, a read-only flag
and the stream that orders the memory. It cannot name bfloat16 or the 8-bit floats. We refuse masks.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.engine.context import RECORDINGS
from tilearray.engine.signature import before_access
from tilearray.engine.streams import LEGACY_ALIAS
from tilearray.errors import InterchangeError, LayoutError, shown
from tilearray.geometry.layout import Layout
from tilearray.interchange.capsules import CARRIERS, problem_of_geometry
from tilearray.interchange.foreign_memory import Imported, foreign, imported

_NEWEST = 3
_ADDRESSES = range(2**63)


class _Description(NamedTuple):
    """The contents of the dictionary; strides in bytes. The stream None asks for no wait."""

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: np.dtype
    pointer: int
    readonly: bool
    stream: int | None
    has_mask: bool


def import_from(producer: Any, function: str, stream: int = 0) -> Imported:
    """Return the memory that an object's ``__cuda_array_interface__`` describes.

    Parameters
    ----------
    producer : object
    function : str
        The name of the caller's function, for error messages.
    stream : int
        The handle of the active stream. Memory that needs no wait counts as this stream's memory.

    Raises
    ------
    InterchangeError
        If the dictionary is malformed or has a mask, or if the pointer is not in the memory of a GPU.
    LayoutError
        If a stride or the address is not a multiple of the itemsize.
    DTypeError
        If tilearray does not have the dtype.
    """
    given: Any = producer.__cuda_array_interface__
    name = type(producer).__name__
    what = f"{function}: the __cuda_array_interface__ of {name}"
    try:
        found = _read(given, function)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, dtypes.DTypeError):
            raise
        raise InterchangeError(f"{what} is malformed: {type(error).__name__}: {error}") from error
    if found.has_mask:
        raise InterchangeError(f"{function}: {name} has a mask; write ta.asarray for its data, and again for its mask")
    layout = _layout(found, what)
    if layout.size and not found.pointer:
        raise InterchangeError(f"{what} is malformed: expected data for the shape {found.shape}, got a null pointer")
    return imported(
        _device_index(found, layout, what),
        found.pointer,
        layout,
        found.dtype,
        owner=producer,
        readonly=found.readonly,
        stream=stream if found.stream is None else found.stream,
        what=f"{function}: the data of {name}",
    )


def _read(given: Any, function: str) -> _Description:
    """Read the dictionary; a wrong type or value raises one of Python's own errors."""
    version = operator.index(given["version"]) if "version" in given else 0
    if not 0 <= version <= _NEWEST:
        raise ValueError(f"expected version 0 to {_NEWEST}, got {version}")
    pointer, readonly = given["data"]
    pointer = 0 if pointer is None else operator.index(pointer)
    if pointer not in _ADDRESSES:
        raise ValueError(f"expected an address, got {pointer}")
    if not isinstance(given["typestr"], str):
        raise TypeError(f"expected a typestr, got {shown(given['typestr'])}")
    strides = given.get("strides")
    stream: Any = given.get("stream")
    handle = None if stream is None else operator.index(stream)
    if isinstance(stream, bool) or (handle is not None and handle < 1):
        raise ValueError(f"expected a stream as None, 1, 2 or a handle, got {shown(stream)}")
    if handle is None and version < _NEWEST:  # older versions have no stream; they mean the default stream
        handle = LEGACY_ALIAS
    return _Description(
        tuple([operator.index(size) for size in given["shape"]]),
        None if strides is None else tuple([operator.index(stride) for stride in strides]),
        dtypes.as_dtype(np.dtype(given["typestr"]), function),
        pointer,
        bool(readonly),
        handle,
        given.get("mask") is not None,
    )


def _layout(found: _Description, what: str) -> Layout:
    """Return the layout in elements; raise if the dictionary describes no valid layout."""
    shape, byte_strides, size = found.shape, found.strides, found.dtype.itemsize
    strides: list[int] = []
    if byte_strides is not None:
        if len(byte_strides) != len(shape):
            raise InterchangeError(
                f"{what} is malformed: expected one stride for each of {len(shape)} axes, got {byte_strides}"
            )
        if any(stride % size for stride in byte_strides):
            raise LayoutError(
                f"{what}: expected strides that are multiples of the itemsize {size}, got {byte_strides} bytes; "
                f"write a dense copy in the library that made the array"
            )
        strides = [stride // size for stride in byte_strides]
    problem = problem_of_geometry(list(shape), strides, found.pointer, size)
    if problem is not None:
        raise InterchangeError(f"{what} is malformed: {problem}")
    return Layout.of(shape) if byte_strides is None else Layout(shape, tuple(strides))


def _device_index(found: _Description, layout: Layout, what: str) -> int:
    """Return the index of the memory's GPU; 0 for an array without elements."""
    if not layout.size:
        return 0
    from tilearray_cuda.errors import CudaError, UnavailableError

    try:
        return foreign().device_of(found.pointer)
    except UnavailableError:
        return 0  # the caller opens cuda:0, and the error states what is missing
    except CudaError as error:
        raise InterchangeError(
            f"{what}: the pointer {found.pointer:#x} is not in the memory of a GPU: {error}"
        ) from error


def describe(x: Any) -> dict[str, Any]:
    """Return the dictionary for an array on a GPU.

    The legacy default stream orders the memory, because many consumers work there without a check. While a CUDA graph
    captures a stream of ours, no stream may wait for it, and the dictionary names that stream.

    Raises
    ------
    AttributeError
        For an array on the host, and for a dtype that the interface cannot name. The attribute then does not exist.
    """
    if x.device.type != "cuda":
        raise AttributeError("__cuda_array_interface__: the array is on the host; write np.asarray(x)")
    if x.dtype in CARRIERS:
        raise AttributeError(
            f"__cuda_array_interface__: the interface cannot name {x.dtype.name}; write x.view('uint8')"
        )
    if RECORDINGS:
        before_access(x)
    layout = x._signature.layout
    return {
        "version": _NEWEST,
        "shape": layout.shape,
        "typestr": x.dtype.str,
        "data": (x._address if layout.size else 0, x._buffer.readonly or layout.overlaps_itself),
        "strides": None if layout.contiguous else tuple(stride * x.itemsize for stride in layout.strides),
        "stream": foreign().lend(x.device.backend, x._buffer, LEGACY_ALIAS),
    }
