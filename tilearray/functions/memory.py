"""Access to the memory of an array: its bytes, its view for Python, and all memory of a view.

`host_bytes` and `to_file` copy from a GPU, as `to_numpy` does: their names say that the result is on the host. A view
for Python never copies.
"""

from __future__ import annotations

import os
from typing import Any

from tilearray.engine.signature import ArrayBase, placed
from tilearray.errors import InterchangeError, LayoutError, OperandError, WriteError, type_name
from tilearray.functions.conversion import to_numpy
from tilearray.functions.manipulation import reshape
from tilearray.functions.orders import check_order
from tilearray.geometry.layout import Layout


def host_bytes(x: ArrayBase, order: Any) -> bytes:
    """Return the bytes of the elements in an order; "K" and "A" are Fortran order only for an array in that order.

    Examples
    --------
    >>> import tilearray as ta
    >>> host_bytes(ta.asarray([1, 256], dtype="int16"), "C")
    b'\\x01\\x00\\x00\\x01'
    """
    return to_numpy(x).tobytes(check_order("tobytes", order))  # type: ignore[arg-type]


_PATHS: tuple[Any, ...] = (str, bytes, os.PathLike)


def to_file(x: ArrayBase, file: Any, separator: str, form: str) -> None:
    """Write the elements to a file or to the file of a name, as ``numpy.ndarray.tofile`` does."""
    if not (issubclass(type(file), _PATHS) or callable(getattr(file, "fileno", None))):
        raise OperandError(f"tofile: expected a path or an open file, got {type_name(file)}; write open(path, 'wb')")
    to_numpy(x).tofile(file, separator, form)


def view_of(x: ArrayBase) -> memoryview:
    """Return a memoryview of an array on the host.

    Raises
    ------
    AttributeError
        If the array is on a GPU.
    InterchangeError
        If Python's buffers do not have its dtype.

    Examples
    --------
    >>> import tilearray as ta
    >>> view_of(ta.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 2], [3, 4]]
    """
    if not x.device.backend.on_host:
        raise AttributeError(f"data: the array is on {x.device}; write ta.to_numpy(x).data")
    return buffer_of(x)


def ctypes_of(x: ArrayBase) -> Any:
    """Return NumPy's object for `ctypes` of an array on the host.

    Raises
    ------
    AttributeError
        If the array is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.zeros((2, 3))
    >>> ctypes_of(x[1]).data - ctypes_of(x).data
    12
    """
    if not x.device.backend.on_host:
        raise AttributeError(f"ctypes: the array is on {x.device}; write x.__cuda_array_interface__ for its address")
    return to_numpy(x).ctypes


def buffer_of(x: ArrayBase, flags: int = 0) -> memoryview:
    """Return the buffer of an array on the host for ``memoryview(x)``; `flags` are Python's wishes for it.

    Examples
    --------
    >>> import tilearray as ta
    >>> buffer_of(ta.zeros(3)).format
    'f'
    """
    if not x.device.backend.on_host:
        raise InterchangeError(f"buffer: the array is on {x.device}; write memoryview(ta.to_numpy(x))")
    if x.dtype.isbuiltin != 1:
        raise InterchangeError(f"buffer: Python's buffers have no {x.dtype.name}; write x.view('uint{8 * x.itemsize}')")
    if flags & _WRITABLE and x._buffer.readonly:
        raise InterchangeError("buffer: the array is read-only; write x.copy()")
    return memoryview(to_numpy(x))  # type: ignore[arg-type]


_WRITABLE = 1
"""The bit of ``inspect.BufferFlags`` that asks for memory to write to."""


def base_of(x: ArrayBase) -> ArrayBase | None:
    """Return all memory of a view as a 1-d array, or None for an array that fills its memory in C order.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.arange(4)
    >>> base_of(x), base_of(x[1:])
    (None, Array([0, 1, 2, 3], dtype=int64, device='cpu'))
    """
    buffer, signature = x._buffer, x._signature
    if x._offset == 0 and signature.layout.contiguous and signature.nbytes == buffer.nbytes:
        return None
    layout = Layout.of((buffer.nbytes // signature.itemsize,))
    return x._make(buffer, 0, placed(buffer, 0, layout, signature.dtype, signature.device))


def set_shape(x: ArrayBase, shape: Any) -> None:
    """Give an array another shape over the same elements; other arrays of the same memory keep theirs.

    Raises
    ------
    AttributeError
        If the strides do not allow it without a copy.
    ShapeError
        If the shape has another number of elements.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.arange(6)
    >>> x.shape = 2, -1
    >>> x.shape
    (2, 3)
    """
    try:
        view = reshape(x, shape, copy=False)
    except LayoutError:
        raise AttributeError(
            f"shape: strides {x.strides} of shape {x.shape} do not allow shape {shape} without a copy; "
            f"write x = x.reshape({shape})"
        ) from None
    if hasattr(x, "_export"):
        del x._export  # it describes the shape before
    x._signature = view._signature


def set_writeable(x: ArrayBase, writeable: bool) -> None:
    """Protect the elements of an array on the host from assignment, or allow it again.

    Arrays that exist already keep their access to the same memory; views that are made later are as `x`.

    Raises
    ------
    WriteError
        If the memory cannot be written to, several elements are in one place, or the array is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.zeros(2)
    >>> set_writeable(x, False)
    >>> x.flags.writeable
    False
    """
    if not x.device.backend.on_host:
        raise WriteError(f"flags: only an array on the host can be protected, got one on {x.device}; write x.copy()")
    host = to_numpy(x)
    if writeable and x._signature.layout.overlaps_itself:
        raise WriteError("flags: the array has several elements in one place; write x.copy()")
    try:
        host.flags.writeable = bool(writeable)
    except ValueError:
        raise WriteError("flags: the memory of the array cannot be written to; write x.copy()") from None
    if hasattr(x, "_export"):
        del x._export  # it describes the access before
    x._buffer, x._offset = x.device.backend.from_numpy(host, copy=False)
