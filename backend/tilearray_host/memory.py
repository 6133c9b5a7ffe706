"""Host memory: buffers, each one contiguous range of bytes, and strided NumPy views of them.

A buffer is a contiguous ndarray, of which NumPy reads the bytes. So NumPy handles allocation, lifetime, the read-only
flag, and the bounds of every view. A view keeps the bytes alive, and the bytes keep their owner alive. Offsets count
bytes from the start of the buffer. Strides count elements.

Most arrays fill their buffer without gaps. A new view of all elements takes 0.15 us, a third of a small call; the
buffer's own ndarray is such a view already, if it has one axis and the dtype of the array. `Buffer.flat_of` names the
array's signature then, so a call compares two pointers and makes no view.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

BYTE = np.dtype(np.uint8)


class Buffer:
    """A contiguous range of bytes on the host.

    Attributes
    ----------
    memory : numpy.ndarray
        The bytes: contiguous in C order, of any dtype.
    readonly : bool
        Whether writes are an error, as for imported read-only memory.
    flat_of : object
        The signature of the arrays whose elements are all of `memory`, which has one axis and their dtype, in the order
        in which they lie there. None if there is no such signature, or nobody asked.
    """

    __slots__ = ("__weakref__", "_pointer", "flat_of", "memory", "readonly")

    def __init__(self, memory: np.ndarray, readonly: bool, flat_of: Any = None) -> None:
        self.memory = memory
        self.readonly = readonly
        self.flat_of = flat_of

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.memory.nbytes

    @property
    def pointer(self) -> int:
        """The address of the first byte."""
        try:
            return self._pointer
        except AttributeError:
            self._pointer: int = self.memory.ctypes.data
            return self._pointer


class _Span:
    """Bytes at an address, as NumPy's array interface. An ndarray made from it keeps it and thus the owner alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: np.ndarray, address: int, nbytes: int) -> None:
        self.owner = owner
        self.__array_interface__: dict[str, Any] = {
            "version": 3,
            "typestr": "|u1",
            "shape": (nbytes,),
            "data": (address, not owner.flags.writeable),
        }


def allocate(nbytes: int, stream: Any = None, /) -> Buffer:
    """Return a buffer of `nbytes` uninitialised bytes, aligned for every dtype. The host has no streams.

    Examples
    --------
    >>> allocate(24).nbytes
    24
    """
    return Buffer(np.empty(nbytes, BYTE), False)


def byte_buffer(array: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the memory that an array reaches, and the byte offset of its element 0 in that memory.

    Nothing is copied: the result is a view of one axis with the array's writability, and it keeps the array alive. It
    has the array's dtype if the elements lie without gaps in C or Fortran order, else it is the range of bytes, which
    includes gaps between elements. Any strides are accepted; negative strides make the offset positive.

    Examples
    --------
    >>> import numpy as np
    >>> memory, offset = byte_buffer(np.arange(10, dtype=np.int16)[8:2:-2])
    >>> memory.size, offset  # from element 4 to element 8, which comes first
    (10, 8)
    """
    flags = array.flags
    if flags.c_contiguous:  # size 0 always is
        return array.ravel(), 0
    if flags.f_contiguous:
        return array.T.ravel(), 0
    low = high = 0  # as `tilearray.geometry.strides.extent`; a backend imports nothing of the library
    for extent, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            low += (extent - 1) * stride
        else:
            high += (extent - 1) * stride
    return _range(array, low, high - low + array.itemsize), -low


def _range(array: np.ndarray, low: int, nbytes: int) -> np.ndarray:
    """Return the bytes from `low` on, counted from element 0. If the array's base consists of bytes, it is their base.

    NumPy shortens chains of bases, but only of ndarrays: a `_Span` would add a link for each exchange with NumPy.
    """
    base, first = array.base, array.ctypes.data + low
    if type(base) is np.ndarray and base.dtype is BYTE and base.flags.c_contiguous:
        memory = np.ndarray((nbytes,), BYTE, base, first - base.ctypes.data)
        if memory.flags.writeable is array.flags.writeable:
            return memory
    return np.asarray(_Span(array, first, nbytes))


def from_numpy(array: np.ndarray, /, *, copy: bool, stream: Any = None) -> tuple[Buffer, int]:
    """Return a buffer with an array's elements at the array's own strides, and the byte offset of element 0.

    Parameters
    ----------
    array : numpy.ndarray
        An array whose data pointer and strides are multiples of its itemsize.
    copy : bool
        False shares the array's memory, with its writability. True copies it, including gaps, to writable memory.
    stream : None
        Ignored, because the host has no streams.

    Examples
    --------
    >>> import numpy as np
    >>> numbers = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> buffer, offset = from_numpy(numbers.T, copy=False)
    >>> to_numpy(buffer, offset, (3, 2), (1, 3), numbers.dtype)[2, 1] == numbers[1, 2]
    np.True_
    """
    memory, offset = byte_buffer(array)
    if copy:
        memory = memory.copy()
    return Buffer(memory, not memory.flags.writeable), offset


def to_numpy(
    buffer: Buffer, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype, /
) -> np.ndarray:
    """Return a strided view of a buffer. It is read-only if the buffer is.

    Parameters
    ----------
    buffer : Buffer
        The memory. The view keeps it alive.
    offset : int
        The offset of element 0 from the start of the buffer, in bytes.
    shape, strides : tuple of int
        Strides count elements and may be negative or zero.
    dtype : numpy.dtype
        The dtype of the view.

    Raises
    ------
    ValueError
        If the view would extend beyond the buffer.
    """
    try:
        return np.ndarray(shape, dtype, buffer.memory, offset, _in_bytes(strides, dtype.itemsize))
    except ValueError:
        if 0 not in shape:
            raise
        # The origin of an empty slice can be anywhere, but NumPy requires an origin inside the buffer.
        return np.ndarray(shape, dtype, buffer.memory)


def elements(x: Any, /) -> np.ndarray:
    """Return the elements of an array, to be read or written at once; the caller neither keeps nor changes the ndarray.

    Examples
    --------
    >>> import tilearray as ta
    >>> elements(ta.asarray([1, 2, 3], device="cpu")[::2])
    array([1, 3])
    """
    buffer = x._buffer
    signature = x._signature
    layout = signature.layout
    if buffer.flat_of is signature and layout.contiguous:
        return buffer.memory if len(layout.shape) == 1 else buffer.memory.reshape(layout.shape)
    try:
        return np.ndarray(layout.shape, signature.dtype, buffer.memory, x._offset, signature.byte_strides)
    except ValueError:
        return to_numpy(buffer, x._offset, layout.shape, layout.strides, signature.dtype)


@lru_cache(4096)
def _in_bytes(strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    return tuple([stride * itemsize for stride in strides])
