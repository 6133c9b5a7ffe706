"""The CUDA Array Interface, version 3, both ways: GPU memory of CuPy, torch, numba and others without a copy.

It is a dictionary: a pointer, a shape, strides in bytes (None: C order), a typestr as NumPy writes them, a read-only
flag and the stream that orders the memory. It cannot name bfloat16 or the 8-bit floats, and masks are refused.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.errors import InterchangeError, LayoutError
from tilearray.geometry.layout import Layout
from tilearray.interchange.capsules import CARRIERS, problem_of_geometry
from tilearray.interchange.foreign_memory import Imported, foreign, imported

_LEGACY = 1
"""What the interface calls the legacy default stream; None says that nothing has to be waited for."""
_NEWEST = 3
_ADDRESSES = range(2**63)


class _Description(NamedTuple):
    """The dictionary, read; strides in bytes."""

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
        The function that was called, for error messages.
    stream : int
        The handle of the stream in force: what nobody has to wait for is taken to be its memory.

    Raises
    ------
    InterchangeError
        If the dictionary is malformed or has a mask, or if the pointer is in no GPU's memory.
    LayoutError
        If a stride or the address is no multiple of the itemsize.
    DTypeError
        If the dtype is none of tilearray's.
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
        raise InterchangeError(f"{function}: {name} has a mask; write ta.asarray of its data and of its mask")
    layout = _layout(found, what)
    if layout.size and not found.pointer:
        raise InterchangeError(f"{what} is malformed: no data for the shape {found.shape}")
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
    """Read the dictionary; anything of a wrong type or value raises one of Python's own errors."""
    version = operator.index(given["version"]) if "version" in given else 0
    if not 0 <= version <= _NEWEST:
        raise ValueError(f"expected version 0 to {_NEWEST}, got {version}")
    pointer, readonly = given["data"]
    pointer = 0 if pointer is None else operator.index(pointer)
    if pointer not in _ADDRESSES:
        raise ValueError(f"expected an address, got {pointer}")
    if not isinstance(given["typestr"], str):
        raise TypeError(f"expected a typestr, got {given['typestr']!r:.60}")
    strides = given.get("strides")
    stream: Any = given.get("stream")
    handle = None if stream is None else operator.index(stream)
    if isinstance(stream, bool) or (handle is not None and handle < 1):
        raise ValueError(f"expected a stream as None, 1, 2 or a handle, got {stream!r:.60}")
    if handle is None and version < _NEWEST:  # older ones cannot say it: the default stream is what they mean
        handle = _LEGACY
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
    """The layout in elements, if there can be one."""
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
    """The index of the GPU whose memory it is; of nothing, the first."""
    if not layout.size:
        return 0
    from tilearray_cuda.errors import CudaError, UnavailableError

    try:
        return foreign().device_of(found.pointer)
    except UnavailableError:
        return 0  # opening it says what is missing
    except CudaError as error:
        raise InterchangeError(f"{what}: the pointer {found.pointer:#x} is in no GPU's memory: {error}") from error


def describe(x: Any) -> dict[str, Any]:
    """Return the dictionary for an array on a GPU.

    Its memory is ordered by the legacy default stream, on which many consumers work without asking. While a stream of
    ours is captured into a CUDA graph nothing may wait for it, and the memory is described as that stream's.

    Raises
    ------
    AttributeError
        For an array on the host, and for a dtype that the interface cannot name: there is no such attribute then.
    """
    if x.device.type != "cuda":
        raise AttributeError("__cuda_array_interface__: the array is on the host; write np.asarray(x)")
    if x.dtype in CARRIERS:
        raise AttributeError(
            f"__cuda_array_interface__: the interface has no name for {x.dtype.name}; write x.view('uint8')"
        )
    layout = x._signature.layout
    return {
        "version": _NEWEST,
        "shape": layout.shape,
        "typestr": x.dtype.str,
        "data": (x._address if layout.size else 0, x._buffer.readonly or layout.overlaps_itself),
        "strides": None if layout.contiguous else tuple(stride * x.itemsize for stride in layout.strides),
        "stream": foreign().lend(x.device.backend, x._buffer, _LEGACY),
    }
