"""The CUDA Array Interface, version 3, both ways: GPU memory of CuPy, torch, numba and others without a copy.

It is a dictionary: a pointer, a shape, strides in bytes (None: C order), a typestr as NumPy writes them, a read-only
flag and the stream that orders the memory. It cannot name bfloat16 or the 8-bit floats, and masks are refused.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from tilearray import dtypes
from tilearray.errors import InterchangeError, LayoutError
from tilearray.layout import Layout

if TYPE_CHECKING:
    from tilearray.devices import Buffer

_LEGACY = 1
"""What the interface calls the legacy default stream; None says that nothing has to be waited for."""


class Imported(NamedTuple):
    """Memory of another library: which GPU, its buffer, where element 0 is in it, and how it is laid out."""

    device_index: int
    buffer: Buffer
    offset: int
    layout: Layout
    dtype: np.dtype


def import_from(producer: Any, function: str) -> Imported:
    """Return the memory that an object's ``__cuda_array_interface__`` describes.

    Raises
    ------
    InterchangeError
        If the dictionary is malformed, or has a mask.
    LayoutError
        If a stride or the address is no multiple of the itemsize.
    DTypeError
        If the dtype is none of tilearray's.
    """
    described: Any = producer.__cuda_array_interface__
    name = type(producer).__name__
    try:
        shape = tuple(int(size) for size in described["shape"])
        pointer, readonly = described["data"]
        dtype = dtypes.as_dtype(np.dtype(described["typestr"]), function)
        strides = described.get("strides")
        stream = described.get("stream") or _LEGACY
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InterchangeError(f"{function}: the __cuda_array_interface__ of {name} is malformed: {error!r}") from error
    if described.get("mask") is not None:
        raise InterchangeError(f"{function}: {name} has a mask; write ta.asarray of its data and of its mask")
    if any(size < 0 for size in shape):
        raise InterchangeError(f"{function}: the __cuda_array_interface__ of {name} has a negative size: {shape}")
    layout = Layout.of(shape) if strides is None else _in_elements(shape, strides, dtype, function)
    size = dtype.itemsize
    if layout.size and (not pointer or pointer % size):
        raise LayoutError(
            f"{function}: the data of {name} is at {pointer:#x}, not at a multiple of the itemsize {size}"
        )
    first = int(pointer or 0) + layout.low * size
    nbytes = (layout.high - layout.low + 1) * size if layout.size else 0
    handle = 0 if stream == _LEGACY else int(stream)
    foreign = importlib.import_module("tilearray_cuda.foreign")
    index, buffer = foreign.borrow(first, nbytes, producer, bool(readonly), handle)
    return Imported(index, cast("Buffer", buffer), -layout.low * size, layout, dtype)


def _in_elements(shape: tuple[int, ...], strides: Any, dtype: np.dtype, function: str) -> Layout:
    if len(strides) != len(shape):
        raise InterchangeError(f"{function}: expected one stride for each of {len(shape)} axes, got {tuple(strides)}")
    if any(stride % dtype.itemsize for stride in strides):
        raise LayoutError(
            f"{function}: expected strides that are multiples of the itemsize {dtype.itemsize}, got {tuple(strides)} "
            f"bytes; write a dense copy in the library that made the array"
        )
    return Layout(shape, tuple(int(stride) // dtype.itemsize for stride in strides))


def describe(x: Any) -> dict[str, Any]:
    """Return the dictionary for an array on a GPU, its memory ordered by the legacy default stream.

    Raises
    ------
    AttributeError
        For an array on the host, and for a dtype that the interface cannot name: there is no such attribute then.
    """
    if x.device.type != "cuda":
        raise AttributeError("__cuda_array_interface__: the array is on the host; write np.asarray(x)")
    if x.dtype.kind not in "biufc":
        raise AttributeError(
            f"__cuda_array_interface__: the interface has no name for {x.dtype.name}; write x.view('uint8')"
        )
    x.device.backend.join(x._buffer, 0)
    layout = x._signature.layout
    return {
        "version": 3,
        "shape": layout.shape,
        "typestr": x.dtype.str,
        "data": (x._address if layout.size else 0, x._buffer.readonly),
        "strides": None if layout.contiguous else tuple(stride * x.itemsize for stride in layout.strides),
        "stream": _LEGACY,
    }
