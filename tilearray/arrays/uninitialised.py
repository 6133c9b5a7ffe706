"""Arrays whose elements nothing has written yet, and what `Array` makes when it is called as NumPy's `ndarray`.

The module lies below `Array`, so its functions take the class.
"""

from __future__ import annotations

from operator import index
from typing import Any, cast

import numpy as np

from tilearray import dtypes
from tilearray.engine.context import STATE
from tilearray.engine.devices import as_device
from tilearray.engine.signature import (
    ArrayBase,
    B,
    check_alignment,
    dense_signature,
    from_host,
    new_array,
    signature_of,
)
from tilearray.errors import OperandError, ShapeError, shown, type_name
from tilearray.functions.conversion import to_numpy
from tilearray.functions.orders import Order, check_order, layout_in
from tilearray.geometry.layout import as_shape
from tilearray.geometry.shapes import as_int, check_extent


def dtype_or_default(dtype: Any, function: str) -> np.dtype:
    """Return the dtype that is named; None is the default float dtype of the active semantics."""
    return STATE.get().semantics.defaults["float"] if dtype is None else dtypes.as_dtype(dtype, function)


def uninitialised(
    cls: type[B], shape: Any, dtype: np.dtype, device: Any, function: str, order: Order | None = "C"
) -> B:
    """Return an uninitialised array on a device that is named, or on the default device."""
    target = as_device(device, function)
    sizes = as_shape(shape, function)
    if order == "C":
        return new_array(cls, dense_signature(sizes, dtype, target, function))
    check_extent(sizes, dtype.itemsize, function)
    return new_array(cls, signature_of(layout_in(function, order, sizes), dtype, target))


def ndarray(cls: type[B], shape: Any, dtype: Any, buffer: Any, offset: Any, strides: Any, order: Any) -> B:
    """Return an array as NumPy's class does: without values, or over a buffer. See `tilearray.arrays.array.Array`."""
    sizes = _sizes(shape)
    if strides is not None:
        raise OperandError(
            f"Array: expected no strides, which NumPy counts in bytes, got {shown(strides)}; "
            f"write ta.as_strided(x, shape, strides), which counts elements"
        )
    chosen = dtype_or_default(dtype, "Array")
    if buffer is None:
        return uninitialised(cls, sizes, chosen, None, "Array", order)
    check_extent(sizes, chosen.itemsize, "Array")
    fortran, first = check_order("Array", order) == "F", as_int(offset, "Array", "offset")
    if first < 0:  # NumPy would read before the buffer
        raise ShapeError(f"Array: expected offset >= 0, got {first}; write the number of bytes before element 0")
    try:
        memory = np.ndarray(sizes, chosen, _memory_of(buffer), first, order="F" if fortran else "C")
    except (BufferError, TypeError, ValueError) as error:
        raise OperandError(
            f"Array: {error}; write a buffer that has all elements after offset={first}, such as bytes, or "
            f"ta.asarray(data)"
        ) from error
    if memory.size:
        check_alignment(memory.ctypes.data, chosen.itemsize, "Array")
    return from_host(memory, cls)


def _sizes(shape: Any) -> tuple[int, ...]:
    """Return a shape that is an int or a tuple; values in a list or an array are not a shape."""
    if isinstance(shape, tuple):
        return as_shape(cast("tuple[Any, ...]", shape), "Array")
    try:
        size = index(shape)
    except TypeError:
        raise ShapeError(
            f"Array: expected shape as an int or a tuple of ints, got {type_name(shape)}; "
            f"write ta.asarray(data) for an array of values"
        ) from None
    return as_shape(size, "Array")


def _memory_of(buffer: Any) -> Any:
    """Return an object with a buffer: of an Array, the ndarray over its memory."""
    if not issubclass(type(buffer), ArrayBase):
        return buffer
    if not buffer.device.backend.on_host:
        raise OperandError(
            f"Array: expected a buffer on the host, got an Array on {buffer.device}; write ta.as_strided(x, shape, "
            f"strides), or x.view(dtype)"
        )
    return to_numpy(buffer)
