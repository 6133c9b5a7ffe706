"""Arrays from data, by NumPy's names: `array` copies, `frombuffer` shares, the others are `asarray` with an order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.arrays.fills import empty, linspace
from tilearray.arrays.triangular import eye
from tilearray.arrays.uninitialised import dtype_or_default
from tilearray.dtypes import DTypeLike
from tilearray.engine.context import STATE
from tilearray.engine.devices import DeviceLike
from tilearray.errors import InterchangeError, OperandError, ShapeError
from tilearray.functions.arguments import as_array
from tilearray.functions.conversion import astype, to_device
from tilearray.functions.manipulation import reshape
from tilearray.functions.orders import Order, copied, in_order
from tilearray.geometry.shapes import as_int
from tilearray.numpy_names.grids import indices
from tilearray.ops.arithmetic import pow


def array(
    obj: Any,
    /,
    dtype: DTypeLike | None = None,
    *,
    copy: bool | None = True,
    order: Order = "K",
    subok: bool = False,
    ndmin: int = 0,
    device: DeviceLike | None = None,
) -> Array:
    """Return a new Array of `obj`, which is copied unless `copy` is None; `asarray` shares its memory if it can.

    Parameters
    ----------
    obj : array of any library, buffer, number, or nested lists of numbers
        As in `asarray`.
    dtype : dtype or name, optional
        The dtype of the data if None.
    copy : bool, optional
        True always copies, False raises if a copy is needed, None copies only then.
    order : {"K", "C", "F", "A"}
        "K" keeps the order of the axes in memory.
    subok : bool
        Ignored: there are no subclasses.
    ndmin : int
        The least number of axes; new ones come first.
    device : Device or str, optional

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.array([1, 2], ndmin=2)
    Array([[1, 2]], dtype=int64, device='cpu')
    """
    del subok
    fresh = copy is True and isinstance(obj, (list, tuple, range, int, float, complex))  # made of Python data
    found = asarray(obj, dtype, None if order == "K" else order, device=device, copy=None if fresh else copy)
    least = as_int(ndmin, "array", "ndmin")
    return found if found.ndim >= least else reshape(found, (1,) * (least - found.ndim) + found.shape)


def asanyarray(
    obj: Any,
    /,
    dtype: DTypeLike | None = None,
    order: Order | None = None,
    *,
    device: DeviceLike | None = None,
    copy: bool | None = None,
) -> Array:
    """Return an Array of `obj`, which shares its memory if possible: `asarray`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.asanyarray([1, 2])
    Array([1, 2], dtype=int64, device='cpu')
    """
    return asarray(obj, dtype, order, device=device, copy=copy)


def ascontiguousarray(obj: Any, /, dtype: DTypeLike | None = None) -> Array:
    """Return an array in C order with at least one axis: itself, or a copy.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.ascontiguousarray(ta.zeros((2, 3)).T).strides
    (2, 1)
    """
    found = asarray(obj, dtype, "C")
    return found if found.ndim else reshape(found, 1)


def asfortranarray(obj: Any, /, dtype: DTypeLike | None = None) -> Array:
    """Return an array in Fortran order: itself, or a copy.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.asfortranarray(ta.zeros((2, 3))).strides
    (1, 2)
    """
    return in_order("asfortranarray", asarray(obj, dtype), "F")


def copy(a: Any, order: Order = "K", subok: bool = False) -> Array:
    """Return a copy of an array.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.copy([1, 2])
    Array([1, 2], dtype=int64, device='cpu')
    """
    del subok
    return copied("copy", as_array("copy", a), order)


def frombuffer(buffer: Any, dtype: DTypeLike | None = None, count: int = -1, offset: int = 0) -> Array:
    """Return a 1-d array over the memory of a buffer on the host, such as bytes; that of bytes cannot be written to.

    Parameters
    ----------
    buffer : object with a buffer
    dtype : dtype or name, optional
        None is the default float dtype of the active semantics.
    count : int
        The number of elements; -1 takes all.
    offset : int
        Where to begin, in bytes.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.frombuffer(b"abc", dtype="uint8")
    Array([97, 98, 99], dtype=uint8, device='cpu')
    """
    chosen = dtype_or_default(dtype, "frombuffer")
    try:
        memory = np.frombuffer(buffer, chosen, count, offset)
    except BufferError as error:
        raise InterchangeError(f"frombuffer: {error}; write bytes(buffer), which has no gaps") from error
    except TypeError as error:
        raise OperandError(f"frombuffer: {error}; write an object with a buffer, such as bytes, and ints") from error
    except ValueError as error:
        raise ShapeError(f"frombuffer: {error}; write count=-1 and offset=0 for the whole buffer") from error
    return asarray(memory, device="cpu")


def fromiter(iterable: Iterable[Any], dtype: Any, count: int = -1) -> Array:
    """Return a 1-d array of the numbers that an iterable gives.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fromiter((n * n for n in range(4)), "int16")
    Array([0, 1, 4, 9], dtype=int16, device='cpu')
    """
    chosen = dtypes.as_dtype(dtype, "fromiter")
    values = list(iterable) if count < 0 else [value for _, value in zip(range(count), iterable)]
    if len(values) < count:
        raise OperandError(f"fromiter: expected {count} numbers, got {len(values)}; write count=-1 for all")
    return asarray(values, chosen) if values else empty(0, chosen)


def identity(n: int, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None) -> Array:
    """Return the identity matrix. See `eye`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.identity(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return eye(n, dtype=dtype, device=device)


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
) -> Array:
    """Return numbers from ``base ** start`` to ``base ** stop`` whose logarithms are evenly spaced.

    They are computed in float64 and rounded once, by default to the dtype of `linspace`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32, device='cpu')
    """
    powers = linspace(start, stop, num, endpoint, dtype=dtypes.float64, device=device)
    return astype(pow(float(base), powers), linspace(start, stop, 0).dtype if dtype is None else dtype)


def geomspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
) -> Array:
    """Return numbers from `start` to `stop` in a geometric progression, computed by NumPy in float64 and rounded once.

    Raises
    ------
    ShapeError
        If one of them is 0, or `num` is negative.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.geomspace(1, 8, 4)
    Array([1., 2., 4., 8.], dtype=float32, device='cpu')
    """
    try:
        values = asarray(np.geomspace(start, stop, num, endpoint), device="cpu")
    except ValueError as error:
        raise ShapeError(f"geomspace: {error}; write a start and a stop other than 0, and num >= 0") from error
    is_complex = dtype is None and dtypes.info(values.dtype).kind == "complex"
    default = STATE.get().semantics.defaults["complex"]
    found = astype(values, default if is_complex else dtype_or_default(dtype, "geomspace"))
    return to_device(found, empty(0, device=device).device)


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: DTypeLike | None = None, **kwargs: Any) -> Any:
    """Return what a function computes of the indices along each axis, one array for each.

    Parameters
    ----------
    function : callable
    shape : int or tuple of int
    dtype : dtype or name, optional
        The dtype of the indices; None is the default float dtype of the active semantics.
    **kwargs
        Passed to the function.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fromfunction(lambda i, j: i + 10 * j, (2, 2), dtype=int).tolist()
    [[0, 10], [1, 11]]
    """
    return function(*indices(shape, dtype_or_default(dtype, "fromfunction")), **kwargs)
