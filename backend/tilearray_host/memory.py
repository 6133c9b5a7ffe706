"""Host memory: one run of bytes a buffer, and strided NumPy views of it.

A buffer is a 1-D uint8 ndarray, so NumPy does everything that has to be right about memory: allocation, lifetime, the
read-only flag, and the bounds of every view. A view keeps the bytes alive, the bytes keep alive the object that they
were taken from. Offsets are in bytes and count from the start of the buffer; strides are in elements.

`to_numpy` runs for every operand of every operation and `allocate` for every result, so they do one NumPy call each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_BYTE = np.dtype(np.uint8)


class Buffer:
    """A run of bytes on the host.

    Attributes
    ----------
    memory : numpy.ndarray
        The bytes, 1-D uint8 and contiguous.
    nbytes : int
        How many they are.
    readonly : bool
        Whether writing is refused, as it is for imported read-only memory.
    """

    __slots__ = ("__weakref__", "_pointer", "memory", "nbytes", "readonly")

    def __init__(self, memory: np.ndarray, nbytes: int, readonly: bool) -> None:
        self.memory = memory
        self.nbytes = nbytes
        self.readonly = readonly
        self._pointer: int | None = None

    @property
    def pointer(self) -> int:
        """The address of the first byte."""
        pointer = self._pointer
        if pointer is None:
            pointer = self._pointer = self.memory.ctypes.data
        return pointer


class _Span:
    """Bytes at an address, described in NumPy's own terms; the ndarray made of it keeps it, and so the owner."""

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
    return Buffer(np.empty(nbytes, _BYTE), nbytes, False)


def byte_buffer(array: np.ndarray) -> tuple[np.ndarray, int]:
    """Return exactly the bytes that an array reaches, and the byte offset of its element 0 in them.

    Nothing is copied: the result is a 1-D uint8 view with the array's writability, which keeps the array alive.
    Gaps between elements are part of it. Any strides are accepted; negative ones make the offset positive.

    Examples
    --------
    >>> import numpy as np
    >>> memory, offset = byte_buffer(np.arange(10, dtype=np.int16)[8:2:-2])
    >>> memory.size, offset  # from element 4 to element 8, which comes first
    (10, 8)
    """
    if array.flags.forc:  # contiguous in C or Fortran order; size 0 always is
        return np.ndarray((array.nbytes,), _BYTE, array), 0
    low = high = 0
    for extent, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            low += (extent - 1) * stride
        else:
            high += (extent - 1) * stride
    span = _Span(array, array.ctypes.data + low, high - low + array.itemsize)
    return np.asarray(span), -low


def from_numpy(array: np.ndarray, /, *, copy: bool, stream: Any = None) -> tuple[Buffer, int]:
    """Return a buffer that holds an array's elements at the array's own strides, and the byte offset of element 0.

    Parameters
    ----------
    array : numpy.ndarray
        An array whose data pointer and strides are multiples of its itemsize.
    copy : bool
        False shares the array's memory, with its writability. True copies it, gaps included, into writable memory.
    stream : None
        The host has none.

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
    return Buffer(memory, memory.nbytes, not memory.flags.writeable), offset


def to_numpy(
    buffer: Buffer, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype, /
) -> np.ndarray:
    """Return a strided view of a buffer, read-only where the buffer is.

    Parameters
    ----------
    buffer : Buffer
        The memory, which the view keeps alive.
    offset : int
        Of element 0 from the start of the buffer, in bytes.
    shape, strides : tuple of int
        Strides are in elements and may be negative or zero.
    dtype : numpy.dtype
        How the bytes are read.

    Raises
    ------
    ValueError
        If the view would leave the buffer.
    """
    itemsize = dtype.itemsize
    try:
        return np.ndarray(shape, dtype, buffer.memory, offset, [stride * itemsize for stride in strides])
    except ValueError:
        if 0 not in shape:
            raise
        # Slicing can leave a view without elements anywhere; NumPy wants its origin inside the buffer.
        return np.ndarray(shape, dtype, buffer.memory)
