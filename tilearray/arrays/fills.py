"""Creation: arrays from nothing and from ranges; `tilearray.arrays.asarray` makes them from data.

Python numbers take the default dtypes of the active semantics, or a wider dtype if a value needs it. New arrays are on
the default device unless ``device=`` names another.
"""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

from tilearray import dtypes
from tilearray.arrays import ranges
from tilearray.arrays.array import Array
from tilearray.arrays.uninitialised import dtype_or_default, uninitialised
from tilearray.dtypes import DTypeLike
from tilearray.engine.common_dtype import common_dtype_of
from tilearray.engine.context import operand_of
from tilearray.engine.devices import CPU, Device, DeviceLike, as_device
from tilearray.engine.signature import (
    ArrayBase,
    Operand,
    Signature,
    dense_signature,
    new_array,
    over,
    signature_of,
)
from tilearray.errors import OperandError, ShapeError, shown, type_name
from tilearray.functions.arguments import all_arrays, as_array, as_array_beside, is_differentiated, number_of
from tilearray.functions.manipulation import moveaxis, reshape
from tilearray.functions.orders import Order, layout_like
from tilearray.functions.python_data import number_dtype
from tilearray.geometry.layout import as_shape
from tilearray.geometry.shapes import check_extent
from tilearray.ops.execute import execute, fill
from tilearray.ops.moves import convert
from tilearray.ops.number_parts import floor
from tilearray.ops.options import checked_flag
from tilearray.promotion.scalars import Number, ScalarClass, as_number, classify, needed


def numpy_makes(dtype: np.dtype, device: Device, order: Order) -> bool:
    """Return whether new arrays of zeros and ones are NumPy's: on the host, in C order, of a dtype that has a zero."""
    return device.backend.on_host and order == "C" and dtype is not dtypes.float8_e8m0fnu


def empty(shape: Any, dtype: DTypeLike | None = None, order: Order = "C", *, device: DeviceLike | None = None) -> Array:
    """Return an uninitialised array.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : dtype or name, optional
        None is the default float dtype of the active semantics.
    order : {"C", "F"}
        "F" makes the first axis the dense one.
    device : Device or str, optional

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.empty((2, 3), dtype="int8").strides
    (3, 1)
    """
    return uninitialised(Array, shape, dtype_or_default(dtype, "empty"), device, "empty", order)


def full(
    shape: Any, fill_value: Any, dtype: DTypeLike | None = None, order: Order = "C", *, device: DeviceLike | None = None
) -> Array:
    """Return an array with every element equal to one value.

    Parameters
    ----------
    shape : int or tuple of int
    fill_value : number or Array
        An array broadcasts to the shape.
    dtype : dtype or name, optional
        The dtype of the value if None; for a Python number the default of its kind, or the wider dtype that holds it.
    order : {"C", "F"}
        "F" makes the first axis the dense one.
    device : Device or str, optional

    Raises
    ------
    ScalarOverflowError
        If the dtype cannot hold an integer value.
    DTypeError
        If it is an integer dtype and the value is not integer.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.full(2, 7, dtype="int8")
    Array([7, 7], dtype=int8, device='cpu')
    """
    if _has_axes(fill_value):
        values = as_array("full", fill_value)
        chosen = values.dtype if dtype is None else dtypes.as_dtype(dtype, "full")
        made = uninitialised(Array, shape, chosen, values.device if device is None else device, "full", order)
        return _filled(made, values, "full")
    value, typed = _number(fill_value, "full")
    if dtype is not None or typed is not None:
        chosen = dtypes.as_dtype(typed if dtype is None else dtype, "full")
    else:
        chosen = number_dtype(value, value, "full")
    return fill(uninitialised(Array, shape, chosen, device, "full", order), value, "full")


def zeros(shape: Any, dtype: DTypeLike | None = None, order: Order = "C", *, device: DeviceLike | None = None) -> Array:
    """Return an array of zeros. The parameters are those of `empty`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.zeros(2)
    Array([0., 0.], dtype=float32, device='cpu')
    """
    chosen, target = dtype_or_default(dtype, "zeros"), as_device(device, "zeros")
    if numpy_makes(chosen, target, order):
        signature = dense_signature(as_shape(shape, "zeros"), chosen, CPU, "zeros")
        return over(np.zeros(signature.layout.size, chosen), signature, Array)
    return fill(uninitialised(Array, shape, chosen, target, "zeros", order), 0, "zeros")


def ones(shape: Any, dtype: DTypeLike | None = None, order: Order = "C", *, device: DeviceLike | None = None) -> Array:
    """Return an array of ones. The parameters are those of `empty`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.ones(2, dtype="bool")
    Array([ True,  True], dtype=bool, device='cpu')
    """
    return fill(uninitialised(Array, shape, dtype_or_default(dtype, "ones"), device, "ones", order), 1, "ones")


def _like(x: Any, dtype: Any, order: Any, shape: Any, device: Any, function: str) -> Array:
    """An uninitialised array of the shape and axis order of `x`, or of others."""
    x = as_array(function, x)
    signature: Signature = x._signature
    target: Device = signature.device if device is None else as_device(device, function)
    chosen = signature.dtype if dtype is None else dtypes.as_dtype(dtype, function)
    if order == "K" and shape is None:
        layout = signature.layout if signature.layout.canonical else signature.layout.dense()
    else:
        layout = layout_like(function, order, signature.layout, None if shape is None else as_shape(shape, function))
    return new_array(Array, signature_of(layout, chosen, target))


def empty_like(
    x: Operand,
    /,
    dtype: DTypeLike | None = None,
    order: Order = "K",
    *,
    shape: Any = None,
    device: DeviceLike | None = None,
) -> Array:
    """Return an uninitialised array of the shape, axis order, dtype and device of `x`.

    Parameters
    ----------
    x : Array
    dtype : dtype or name, optional
    order : {"K", "C", "F", "A"}
        "K" keeps the order of the axes in memory; "A" is "F" if `x` is in that order, else "C".
    shape : int or tuple of int, optional
        Another shape; it is in C order unless `order` is "F".
    device : Device or str, optional

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.empty_like(ta.zeros((2, 3)).T).strides
    (1, 3)
    """
    return _like(x, dtype, order, shape, device, "empty_like")


def zeros_like(
    x: Operand,
    /,
    dtype: DTypeLike | None = None,
    order: Order = "K",
    *,
    shape: Any = None,
    device: DeviceLike | None = None,
) -> Array:
    """Return zeros of the shape, axis order, dtype and device of `x`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.zeros_like(ta.asarray([1, 2]))
    Array([0, 0], dtype=int64, device='cpu')
    """
    return fill(_like(x, dtype, order, shape, device, "zeros_like"), 0, "zeros_like")


def ones_like(
    x: Operand,
    /,
    dtype: DTypeLike | None = None,
    order: Order = "K",
    *,
    shape: Any = None,
    device: DeviceLike | None = None,
) -> Array:
    """Return ones of the shape, axis order, dtype and device of `x`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.ones_like(ta.asarray([1, 2]), dtype="float16")
    Array([1., 1.], dtype=float16, device='cpu')
    """
    return fill(_like(x, dtype, order, shape, device, "ones_like"), 1, "ones_like")


def full_like(
    x: Operand,
    /,
    fill_value: Any,
    dtype: DTypeLike | None = None,
    order: Order = "K",
    *,
    shape: Any = None,
    device: DeviceLike | None = None,
) -> Array:
    """Return an array with every element equal to one value, of the shape, axis order, dtype and device of `x`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.full_like(ta.asarray([1, 2]), 9)
    Array([9, 9], dtype=int64, device='cpu')
    """
    if _has_axes(fill_value):
        place = fill_value.device if device is None and is_differentiated(fill_value) else device
        return _filled(_like(x, dtype, order, shape, place, "full_like"), fill_value, "full_like")
    value, _ = _number(fill_value, "full_like")
    return fill(_like(x, dtype, order, shape, device, "full_like"), value, "full_like")


_NUMBERS = frozenset({bool, int, float, complex})
"""The classes of Python numbers, without their subclasses."""


def _has_axes(value: Any) -> bool:
    """Whether a value is operand of operations: an array with axes, or one with derivatives."""
    if type(value) in _NUMBERS:
        return False
    if isinstance(value, (list, tuple)) or is_differentiated(value):
        return True
    return issubclass(type(value), _TYPED) and value.ndim > 0


def _filled(target: Array, values: Any, function: str) -> Array:
    """An array filled with others, broadcast and cast as `astype` casts."""
    return execute(convert, (as_array_beside(function, values, target, "fill_value"),), target)


_TYPED: tuple[type[Any], ...] = (ArrayBase, np.ndarray, np.generic)


def _number(value: Any, function: str) -> tuple[Number, np.dtype | None]:
    """The value of a number, a NumPy scalar or a 0-d array as a Python number, and the dtype of the last two."""
    if type(value) in _NUMBERS:
        return value, None
    typed: np.dtype | None = None
    number = value
    if isinstance(value, _TYPED) and value.shape == ():
        typed, number = value.dtype, number_of(function, value)
    if classify(number) is None:
        raise OperandError(f"{function}: expected a number or a 0-d array, got {type_name(value)}; write float(value)")
    return number, typed


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None
) -> Array:
    """Return evenly spaced values of the half-open interval ``[start, stop)``; ``[0, start)`` if `stop` is None.

    Integers are exact. Floats are ``start + i * step``, computed in float64 and rounded once.

    Parameters
    ----------
    start, stop, step : real number
    dtype : dtype or name, optional
        None is the default of the numbers' kind, or the wider dtype that holds the values. Floats of a 0-d array or a
        NumPy scalar keep a wider dtype that they have.
    device : Device or str, optional

    Raises
    ------
    ShapeError
        If `step` is 0, or the interval is not finite.
    ScalarOverflowError
        If `dtype` does not hold an integer value.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.arange(5, 0, -2)
    Array([5, 3, 1], dtype=int64, device='cpu')
    """
    if stop is None:
        start, stop = 0, start
    target = None if dtype is None else dtypes.as_dtype(dtype, "arange")
    where = as_device(device, "arange").of_constants
    known = ranges.of_small_numbers(start, stop, step, target, where)
    if known is not None:
        return known
    numbers, typed = zip(*[_number(needed(given), "arange") for given in (start, stop, step)], strict=True)
    first, last, stride = numbers
    if isinstance(first, complex) or isinstance(last, complex) or isinstance(stride, complex):
        raise OperandError(f"arange: expected real numbers as start, stop and step, got {numbers}; write x.real")
    if stride == 0:
        raise ShapeError("arange: expected a step other than 0, got 0; write a step from start toward stop")
    if isinstance(first, float) or isinstance(last, float) or isinstance(stride, float):
        count = _count(first, last, stride)
        first, last = float(first), float(last)
        if target is None:
            floats = [dtype for dtype in typed if dtype is not None and dtypes.info(dtype).kind == "float"]
            target = common_dtype_of((number_dtype(first, last, "arange"), *floats), "arange")
        return ranges.floats(first, float(stride), count, target, where)
    return _integers(range(first, last, stride), target, where)


def _integers(values: range, dtype: np.dtype | None, device: Device) -> Array:
    """The integers of a range, which an integer dtype must hold."""
    first, last = (values[0], values[-1]) if values else (0, 0)
    if dtype is not None and dtypes.info(dtype).kind in ("int", "uint"):
        for extreme in (first, last):
            as_number(extreme, dtype, "arange")
        return ranges.integers(values, dtype, device)
    if dtype is None:
        dtype = number_dtype(first, last, "arange") if first <= last else number_dtype(last, first, "arange")
    return ranges.integers(values, dtype, device)


def _count(first: float, last: float, step: float) -> int:
    try:
        return max(0, math.ceil((last - first) / step))
    except (ValueError, OverflowError):
        raise ShapeError(
            f"arange: expected finite numbers, got {first} to {last} in steps of {step}; write finite limits"
        ) from None


@overload
def linspace(
    start: Any,
    stop: Any,
    /,
    num: Any = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: DeviceLike | None = None,
) -> Array: ...
@overload
def linspace(
    start: Any,
    stop: Any,
    /,
    num: Any = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: DeviceLike | None = None,
) -> tuple[Array, Any]: ...
def linspace(
    start: Any,
    stop: Any,
    /,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: DeviceLike | None = None,
) -> Array | tuple[Array, Any]:
    """Return `num` evenly spaced values from `start` to `stop`, computed in float64 and rounded once.

    Parameters
    ----------
    start, stop : number or Array
        Arrays broadcast against each other; each pair of elements gives a line of values.
    num : int
    endpoint : bool
        False leaves `stop` out.
    retstep : bool
        Whether to return the distance of neighbours as well, as a Python number or an Array; NaN if there are none.
    dtype : dtype or name, optional
        None is the common dtype of the limits and a Python float if one is an array or a NumPy scalar, else the default
        of floats or complex numbers, or the wider dtype that holds them. Values of an integer dtype are rounded down,
        as in NumPy.
    axis : int
        The axis of the values in the result, if a limit is an array.
    device : Device or str, optional

    Raises
    ------
    ShapeError
        If `num` is negative or not an integer.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32, device='cpu')
    """
    count, _ = _number(needed(num), "linspace")
    if not isinstance(count, int) or count < 0:
        raise ShapeError(f"linspace: expected num as an integer >= 0, got {shown(num)}; write int(num)")
    check_extent((count,), 8, "linspace")
    endpoint = checked_flag("linspace", "endpoint", endpoint)
    if _has_axes(start) or _has_axes(stop):
        lines, steps = _lines(start, stop, count, endpoint, dtype)
        lines = moveaxis(lines, 0, axis)
        return (lines, steps) if retstep else lines
    limits = [_number(needed(given), "linspace")[0] for given in (start, stop)]
    carrier = dtypes.complex128 if any(isinstance(limit, complex) for limit in limits) else dtypes.float64
    first, last = [as_number(limit, carrier, "linspace") for limit in limits]
    if dtype is not None:
        wanted = dtypes.as_dtype(dtype, "linspace")
    else:
        wanted = _dtype_of_limits(start, stop) or number_dtype(first, last, "linspace")
    values = ranges.spaced(first, last, count, endpoint, wanted, as_device(device, "linspace").of_constants)
    if not retstep:
        return values
    gaps = count - endpoint
    return values, (last - first) / gaps if gaps > 0 else math.nan


def _dtype_of_limits(*limits: Any) -> np.dtype | None:
    """The common dtype of limits and a Python float, in which Python numbers are weak; None if all of them are."""
    typed = [operand_of(limit, "linspace") for limit in limits if isinstance(limit, _TYPED)]
    number = ScalarClass.COMPLEX if any(isinstance(limit, complex) for limit in limits) else ScalarClass.FLOAT32
    return common_dtype_of((*typed, number), "linspace") if typed else None


def _lines(start: Any, stop: Any, count: int, endpoint: bool, dtype: Any) -> tuple[Array, Array]:
    """Evenly spaced values between arrays, along the first axis, and their distances."""
    first, last = all_arrays("linspace", [start, stop])
    given = [limit if classify(limit) is not None else array for limit, array in ((start, first), (stop, last))]
    common = _dtype_of_limits(*given)
    assert common is not None  # one of them has axes
    wide = dtypes.complex128 if dtypes.info(common).kind == "complex" else dtypes.float64
    first, last = first.astype(wide), last.astype(wide)
    gaps = count - endpoint
    steps = (last - first) / (gaps if gaps > 0 else math.nan)
    places = arange(count, dtype=dtypes.float64, device=first.device)
    lines = reshape(places, (count, *(1,) * steps.ndim)) * (steps if gaps > 0 else last - first) + first
    if endpoint and count > 1:
        lines[-1] = last
    wanted = common if dtype is None else dtypes.as_dtype(dtype, "linspace")
    if dtypes.info(wanted).kind in ("int", "uint"):
        return floor(lines).astype(wanted), steps
    return lines.astype(wanted, copy=False), steps.astype(wanted, copy=False)
