"""Host objects as ndarrays: NumPy's own, its array protocols, and Python's buffer protocol.

The result shares memory if possible. It always has one of our dtypes, in native byte order. Its data pointer and its
byte strides are multiples of the itemsize, because we count strides in elements, and because a misaligned element would
make a GPU's context unusable. Other memory is copied if the caller allows a copy, and refused if not.

This module does not read an object with DLPack or the CUDA Array Interface, even if the object also has ``__array__``:
those protocols state the data's device, but ``__array__`` may silently move the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilearray.dtypes import ALL, DESCRIPTORS, PACKED, as_dtype
from tilearray.errors import DTypeError, InterchangeError, LayoutError

_OURS = {dtype: dtype for dtype in (*ALL, *PACKED)} | {descriptor: dtype for dtype, descriptor in DESCRIPTORS.items()}
_ALIGNED = {dtype: dtype for dtype in (*ALL, *PACKED) if dtype.alignment == dtype.itemsize}
"""The dtypes that NumPy aligns to the itemsize: for them it has checked the pointer and every stride in use."""
_DEVICE_PROTOCOLS = ("__dlpack__", "__cuda_array_interface__")
_ARRAY_PROTOCOLS = ("__array_interface__", "__array_struct__", "__array__")

# The remedy for an array x, by the kind of its dtype.
_REMEDIES = {
    "O": "x.astype('float64')",
    "S": "x.astype('float64'), or x.view('uint8') for the bytes",
    "U": "x.astype('float64')",
    "T": "x.astype('float64')",
    "M": "x.view('int64')",
    "m": "x.view('int64')",
    "f": "x.astype('float64')",
    "c": "x.astype('complex128')",
}


def from_host_object(obj: object, *, copy: bool | None, function: str) -> np.ndarray | None:
    """Return the ndarray that a host object is or describes; None for other objects.

    Parameters
    ----------
    obj : object
        An ndarray or NumPy scalar, an object with ``__array_interface__``, ``__array_struct__`` or ``__array__``, or
        an object with the buffer protocol (memoryview, array.array, bytes, bytearray, mmap, ctypes arrays).
    copy : bool or None
        True always copies, False never copies, None copies if the memory cannot be shared.
    function : str
        The name of the caller's function, for error messages.

    Returns
    -------
    numpy.ndarray or None
        An array of class ndarray itself, with one of the dtypes of `tilearray.dtypes`; read-only if the object is. None
        for lists, numbers, and objects with a device protocol.

    Raises
    ------
    DTypeError
        If tilearray does not have the dtype.
    LayoutError
        If ``copy=False`` and the memory cannot be shared.
    InterchangeError
        If the array is masked.

    Examples
    --------
    >>> import array
    >>> from_host_object(array.array("h", [1, 2]), copy=False, function="asarray")
    array([1, 2], dtype=int16)
    >>> from_host_object([1, 2], copy=None, function="asarray") is None
    True
    """
    if type(obj) is np.ndarray and copy is not True:
        array, dtype = obj, obj.dtype
        if _ALIGNED.get(dtype) is dtype and array.flags.aligned:
            return array
    else:
        source = _array_source(obj, function)
        if source is None:
            return None
        array = _read(source, copy, function)
    return share_or_copy(_with_our_dtype(array, function), copy, function)


def share_or_copy(array: np.ndarray, copy: bool | None, function: str) -> np.ndarray:
    """Return the array if it is aligned to its itemsize, else a copy; raise LayoutError if ``copy=False``."""
    if _is_aligned(array):
        return array
    if copy is False:
        raise LayoutError(
            f"{function}: expected an address and strides that are multiples of the itemsize {array.itemsize}, got "
            f"an address {array.ctypes.data % array.itemsize} bytes past one and strides {array.strides} in bytes, "
            f"which needs a copy; write copy=None, or x.copy() first"
        )
    return array.copy(order="K")


def _array_source(obj: object, function: str) -> Any:
    """Return the object, or a memoryview of it, if NumPy can read it; else None."""
    if isinstance(obj, np.ma.MaskedArray):
        raise InterchangeError(
            f"{function}: expected an array without a mask, got a masked array; write x.filled(value)"
        )
    if isinstance(obj, np.ndarray | np.generic):
        return obj  # pyright: ignore[reportUnknownVariableType]
    if isinstance(obj, type) or any(_offers(obj, name) for name in _DEVICE_PROTOCOLS):
        return None
    if any(_offers(obj, name) for name in _ARRAY_PROTOCOLS):
        return obj
    try:
        return memoryview(obj)  # type: ignore[arg-type]  # np.array reads bytes as text
    except TypeError:
        return None


def _offers(obj: object, name: str) -> bool:
    """Return whether an object has an attribute. The class is first: Pillow copies the image in such a property."""
    return hasattr(type(obj), name) or hasattr(obj, name)


def _read(source: Any, copy: bool | None, function: str) -> np.ndarray:
    try:
        return np.array(source, copy=copy)
    except ValueError as error:
        if isinstance(source, memoryview):
            raise DTypeError(
                f"{function}: NumPy cannot read a buffer of format {source.format!r}; write bytes(x) for its bytes"
            ) from error
        if copy is not False:
            raise
        raise LayoutError(
            f"{function}: copy=False, but a {type(source).__name__} does not share its memory with NumPy; "
            f"write copy=None"
        ) from error


def _with_our_dtype(array: np.ndarray, function: str) -> np.ndarray:
    """Return the array with the table's own dtype object; NumPy has others that are equal (longlong, metadata)."""
    dtype = array.dtype
    ours = _OURS.get(dtype)
    if ours is dtype:
        return array
    if ours is not None:
        return array.view(ours)
    try:
        as_dtype(dtype, function)
    except DTypeError as error:
        remedy = f"x[{dtype.names[0]!r}]" if dtype.names else _REMEDIES.get(dtype.kind)
        if remedy is None or not dtype.isnative:
            raise
        raise DTypeError(f"{error}: {remedy} in NumPy") from None
    raise AssertionError(f"{dtype!r} has a row in the dtype table but is not in it")  # pragma: no cover


def _is_aligned(array: np.ndarray) -> bool:
    """Return whether all elements are at multiples of the itemsize, as devices and strides in elements require."""
    dtype = array.dtype
    if dtype in _ALIGNED:
        return array.flags.aligned
    if array.size == 0:
        return True
    steps = (stride for extent, stride in zip(array.shape, array.strides, strict=True) if extent > 1)
    return array.ctypes.data % dtype.itemsize == 0 and not any(step % dtype.itemsize for step in steps)
