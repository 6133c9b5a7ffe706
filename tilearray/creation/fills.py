"""Creation: arrays from nothing and from ranges; `tilearray.creation.asarray` makes them from data.

Python numbers take the default dtypes of the active semantics, or a wider dtype if a value needs it. New arrays are on
the default device unless ``device=`` names another.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.array import Array
from tilearray.creation import ranges
from tilearray.engine.context import STATE
from tilearray.engine.devices import Device, as_device
from tilearray.engine.signature import ArrayBase, Signature, check_array, new_array, signature_of
from tilearray.errors import OperandError, ShapeError, type_name
from tilearray.functions.python_data import number_dtype
from tilearray.geometry.layout import Layout, as_shape
from tilearray.ops.execute import fill
from tilearray.promotion.scalars import Number, as_number, classify


def uninitialised(shape: Any, dtype: np.dtype, device: Any, function: str) -> Array:
    """Return an uninitialised array in C order on a device that is named, or on the default device."""
    target = as_device(device, function)
    return new_array(Array, signature_of(Layout.of(as_shape(shape, function)), dtype, target))


def dtype_or_default(dtype: Any, function: str) -> np.dtype:
    """Return the dtype that is named; None is the default float dtype of the active semantics."""
    return STATE.get().semantics.defaults["float"] if dtype is None else dtypes.as_dtype(dtype, function)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Return an uninitialised array in C order.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.empty((2, 3), dtype="int8").strides
    (3, 1)
    """
    return uninitialised(shape, dtype_or_default(dtype, "empty"), device, "empty")


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Return an array with every element equal to one value.

    Parameters
    ----------
    shape : int or tuple of int
    fill_value : number or 0-d array
    dtype : dtype or name, optional
        The dtype of the value if None; for a Python number the default of its kind, or the wider dtype that holds it.
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
    value, typed = _number(fill_value, "full")
    if dtype is not None or typed is not None:
        chosen = dtypes.as_dtype(typed if dtype is None else dtype, "full")
    else:
        chosen = number_dtype(value, value, "full")
    return fill(uninitialised(shape, chosen, device, "full"), value, "full")


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Return an array of zeros.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.zeros(2)
    Array([0., 0.], dtype=float32, device='cpu')
    """
    return fill(uninitialised(shape, dtype_or_default(dtype, "zeros"), device, "zeros"), 0, "zeros")


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Return an array of ones.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.ones(2, dtype="bool")
    Array([ True,  True], dtype=bool, device='cpu')
    """
    return fill(uninitialised(shape, dtype_or_default(dtype, "ones"), device, "ones"), 1, "ones")


def _like(x: Any, dtype: Any, device: Any, function: str) -> Array:
    """An uninitialised array of the shape and axis order of `x`."""
    check_array(function, x)
    signature: Signature = x._signature
    target: Device = signature.device if device is None else as_device(device, function)
    chosen = signature.dtype if dtype is None else dtypes.as_dtype(dtype, function)
    return new_array(Array, signature_of(signature.layout.dense(), chosen, target))


def empty_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Return an uninitialised array of the shape, axis order, dtype and device of `x`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.empty_like(ta.zeros((2, 3)).T).strides
    (1, 3)
    """
    return _like(x, dtype, device, "empty_like")


def zeros_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Return zeros of the shape, axis order, dtype and device of `x`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.zeros_like(ta.asarray([1, 2]))
    Array([0, 0], dtype=int64, device='cpu')
    """
    return fill(_like(x, dtype, device, "zeros_like"), 0, "zeros_like")


def ones_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Return ones of the shape, axis order, dtype and device of `x`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.ones_like(ta.asarray([1, 2]), dtype="float16")
    Array([1., 1.], dtype=float16, device='cpu')
    """
    return fill(_like(x, dtype, device, "ones_like"), 1, "ones_like")


def full_like(x: Array, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Return an array with every element equal to one value, of the shape, axis order, dtype and device of `x`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.full_like(ta.asarray([1, 2]), 9)
    Array([9, 9], dtype=int64, device='cpu')
    """
    value, _ = _number(fill_value, "full_like")
    return fill(_like(x, dtype, device, "full_like"), value, "full_like")


_TYPED: tuple[type[Any], ...] = (ArrayBase, np.ndarray, np.generic)


def _number(value: Any, function: str) -> tuple[Number, np.dtype | None]:
    """The value of a number, a NumPy scalar or a 0-d array as a Python number, and the dtype of the last two."""
    typed: np.dtype | None = None
    number = value
    if isinstance(value, _TYPED) and value.shape == ():
        typed, number = value.dtype, value.item()
    if classify(number) is None:
        raise OperandError(f"{function}: expected a number or a 0-d array, got {type_name(value)}")
    return number, typed


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Array:
    """Return evenly spaced values of the half-open interval ``[start, stop)``; ``[0, start)`` if `stop` is None.

    Integers are exact. Floats are ``start + i * step``, computed in float64 and rounded once.

    Parameters
    ----------
    start, stop, step : real number
    dtype : dtype or name, optional
        None is the default of the numbers' kind, or the wider dtype that holds the values.
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
    limits = (0, start) if stop is None else (start, stop)
    numbers = [_number(given, "arange")[0] for given in (*limits, step)]
    target = None if dtype is None else dtypes.as_dtype(dtype, "arange")
    where = as_device(device, "arange")
    if any(isinstance(number, complex) for number in numbers):
        raise OperandError(f"arange: expected real numbers as start, stop and step, got {tuple(numbers)}")
    if numbers[2] == 0:
        raise ShapeError("arange: expected a step other than 0, got 0; write a step from start toward stop")
    if any(isinstance(number, float) for number in numbers):
        count = _count(*numbers)  # type: ignore[arg-type]
        first, last, stride = [float(number) for number in numbers]  # type: ignore[arg-type]
        return ranges.floats(first, stride, count, target or number_dtype(first, last, "arange"), where)
    values = range(*numbers)  # type: ignore[arg-type]
    natural = _integer_dtype(values, target)
    return ranges.integers(values, target or natural, where)


def _integer_dtype(values: range, dtype: np.dtype | None) -> np.dtype:
    """The dtype that holds the integers of a range; checked against `dtype` where that is an integer one."""
    least, most = sorted((values[0], values[-1])) if values else (0, 0)
    if dtype is None or dtypes.info(dtype).kind not in ("int", "uint"):
        dtype = number_dtype(least, most, "arange")
    for extreme in (least, most):
        as_number(extreme, dtype, "arange")
    return dtype


def _count(first: float, last: float, step: float) -> int:
    try:
        return max(0, math.ceil((last - first) / step))
    except (ValueError, OverflowError):
        raise ShapeError(
            f"arange: expected finite numbers, got {first} to {last} in steps of {step}; write finite limits"
        ) from None


def linspace(
    start: Any, stop: Any, /, num: Any, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Array:
    """Return `num` evenly spaced values from `start` to `stop`, computed in float64 and rounded once.

    Parameters
    ----------
    start, stop : number
    num : int
    dtype : dtype or name, optional
        None is the default of floats or complex numbers, or the wider dtype that holds the limits. Values of an integer
        dtype are rounded down, as in NumPy.
    device : Device or str, optional
    endpoint : bool
        False leaves `stop` out.

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
    count, _ = _number(num, "linspace")
    if not isinstance(count, int) or count < 0:
        raise ShapeError(f"linspace: expected num as an integer >= 0, got {num!r}; write int(num)")
    limits = [_number(given, "linspace")[0] for given in (start, stop)]
    carrier = dtypes.complex128 if any(isinstance(limit, complex) for limit in limits) else dtypes.float64
    first, last = [as_number(limit, carrier, "linspace") for limit in limits]
    wanted = number_dtype(first, last, "linspace") if dtype is None else dtypes.as_dtype(dtype, "linspace")
    return ranges.spaced(first, last, count, endpoint, wanted, as_device(device, "linspace"))
