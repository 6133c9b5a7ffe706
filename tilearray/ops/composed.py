"""Public functions that combine rows of the op table: optional operands, two results, or a second name."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING

from tilearray import dtypes
from tilearray.engine.signature import ArrayBase
from tilearray.errors import OperandError
from tilearray.geometry.shapes import as_int
from tilearray.ops.arithmetic import (
    bitwise_left_shift,
    bitwise_right_shift,
    clamp,
    close,
    divide,
    floor_divide,
    logical_and,
    logical_or,
    maximum,
    minimum,
    multiply,
    positive,
    pow,
    remainder,
    replace_nan,
)
from tilearray.ops.elementary import rad2deg
from tilearray.ops.execute import execute, stored_as
from tilearray.ops.moves import assign, convert
from tilearray.ops.number_parts import argument, frexp_exponent, frexp_mantissa, isnan, nearest
from tilearray.ops.one_launch import OneLaunch
from tilearray.ops.options import checked_flag

if TYPE_CHECKING:
    from tilearray.engine.array_type import Array
    from tilearray.engine.signature import Operand

left_shift, right_shift = bitwise_left_shift, bitwise_right_shift
power, mod, true_divide = pow, remainder, divide


def angle(x: Operand, /, deg: bool = False, *, out: ArrayBase | None = None) -> Array:
    """Return the angles of complex numbers: 0 for positive real numbers, and half a turn for negative ones.

    Parameters
    ----------
    x : Array or number
    deg : bool
        Whether to return degrees instead of radians.
    out : Array, optional
        The target of the result.

    Returns
    -------
    Array
        Floats of the width of the parts, from -pi to pi, or from -180 to 180; the default float for integers.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.angle(ta.asarray([1j])), ta.angle(ta.asarray([1j]), deg=True)
    (Array([1.5707964], dtype=float32, device='cpu'), Array([90.], dtype=float32, device='cpu'))
    """
    if not checked_flag("angle", "deg", deg):
        return argument(x, out=out)
    return rad2deg(argument(x), out=out)


def clip(
    x: Operand,
    /,
    min: Operand | None = None,
    max: Operand | None = None,
    out: ArrayBase | None = None,
    *,
    a_min: Operand | None = None,
    a_max: Operand | None = None,
) -> Array:
    """Return for each element the nearest value within ``[min, max]``.

    Parameters
    ----------
    x : Array or number
    min, max : Array, number or None
        The bounds. They broadcast against `x`; None means no bound on that side.
    out : Array, optional
        The target of the result.
    a_min, a_max : Array, number or None
        The bounds by NumPy's other names.

    Returns
    -------
    Array
        Its dtype is the common dtype. An element is NaN if any of its operands is NaN.

    Raises
    ------
    ScalarOverflowError
        If a bound does not fit an integer `x`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.clip(ta.asarray([1, 5, 9]), None, 6)
    Array([1, 5, 6], dtype=int64, device='cpu')
    """
    if a_min is not None:
        min = a_min
    if a_max is not None:
        max = a_max
    if max is None:
        return positive(x, out=out) if min is None else maximum(x, min, out=out)
    return minimum(x, max, out=out) if min is None else clamp(x, min, max, out=out)


def isclose(
    x1: Operand,
    x2: Operand,
    /,
    rtol: Operand = 1e-5,
    atol: Operand = 1e-8,
    *,
    equal_nan: bool = False,
    out: ArrayBase | None = None,
) -> Array:
    """Return whether elements are equal, or both finite and within ``atol + rtol * abs(x2)`` of each other.

    An infinity is close only to itself, as in `math.isclose`. In `numpy.isclose` it is close to every number if the
    tolerance overflows.

    Parameters
    ----------
    x1, x2 : Array or number
        The elements to compare. The comparison is not symmetric: `x2` is the reference.
    rtol, atol : Array or number
        The relative and the absolute tolerance. Like all operands, they are rounded to the common dtype: in float16 the
        default `atol` is 0.
    equal_nan : bool
        Whether NaN is close to NaN.
    out : Array, optional
        The target of the result.

    Returns
    -------
    Array
        Its dtype is bool. Integers are compared as the default float.

    Raises
    ------
    PromotionError
        If the operands have no common dtype.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.asarray([1.0, ta.nan])
    >>> ta.isclose(x, x + 1e-7), ta.isclose(x, x, equal_nan=True)
    (Array([ True, False], dtype=bool, device='cpu'), Array([ True,  True], dtype=bool, device='cpu'))
    """
    if not checked_flag("isclose", "equal_nan", equal_nan):
        return close(x1, x2, rtol, atol, out=out)
    return logical_or(close(x1, x2, rtol, atol), logical_and(isnan(x1), isnan(x2)), out=out)


def nan_to_num(
    x: Operand,
    /,
    copy: bool = True,
    nan: Operand = 0.0,
    posinf: Operand | None = None,
    neginf: Operand | None = None,
    *,
    out: ArrayBase | None = None,
) -> Array:
    """Return `x` with NaN and infinities replaced by numbers, in complex numbers part by part.

    Parameters
    ----------
    x : Array or number
        Integers and bools are always finite; the function copies them.
    copy : bool
        False writes the result to `x`, if it is an Array, and returns it.
    nan, posinf, neginf : Array or number
        The replacements of NaN, infinity and -infinity. None is the largest or the smallest finite value of the dtype.
    out : Array, optional
        The target of the result.

    Returns
    -------
    Array
        Its dtype is the common dtype.

    Raises
    ------
    OperandError
        If `copy` is not a flag, or there are two targets, `x` and `out`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.nan_to_num(ta.asarray([ta.nan, ta.inf, 1.0]), nan=-1.0, posinf=9.0)
    Array([-1.,  9.,  1.], dtype=float32, device='cpu')
    """
    if not checked_flag("nan_to_num", "copy", copy) and isinstance(x, ArrayBase):
        if out is not None:
            raise OperandError("nan_to_num: expected one target, got copy=False and out; leave one of them out")
        out = x
    array = x if isinstance(x, ArrayBase) else positive(x)
    dtype = array._signature.dtype
    if dtypes.info(dtype).kind not in ("float", "complex"):
        return execute(assign, (array,), out)
    largest = dtypes.finfo(dtype).max
    return replace_nan(
        array, nan, largest if posinf is None else posinf, -largest if neginf is None else neginf, out=out
    )


def round(x: Operand, /, decimals: int = 0, out: ArrayBase | None = None) -> Array:
    """Return the nearest numbers with a given number of decimals; of two that are equally near, the even one.

    Parameters
    ----------
    x : Array or number
    decimals : int
        0 rounds to integers, in the dtype of `x`. Others round ``x * 10**decimals``, computed in the dtype of `x`, and
        divide by the power again, as NumPy does. A negative number rounds to tens, hundreds and so on.
    out : Array, optional
        The target of the result.

    Returns
    -------
    Array
        Of the dtype of `x`. Complex numbers are rounded part by part.

    Raises
    ------
    DTypeError
        If `x` is bool.
    ShapeError
        If `decimals` is not an integer.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.round(ta.asarray([0.5, 1.5]))
    Array([0., 2.], dtype=float32, device='cpu')
    >>> ta.round(ta.asarray([3.14159, 2.71828]), 2).tolist() == ta.asarray([3.14, 2.72]).tolist()
    True
    """
    if decimals.__class__ is int and decimals == 0:
        return nearest(x, out=out)
    places = as_int(decimals, "round", "decimals")
    array = x if isinstance(x, ArrayBase) else positive(x)
    if dtypes.info(array.dtype).kind in ("int", "uint"):
        if places >= 0:
            return nearest(array, out=out)
        rounded = _integers_to_tens(array, _power(-places))
        return rounded if out is None else execute(assign, (rounded,), out)
    power = _power(builtins.abs(places))
    if out is None:
        return _to_decimals(array, power) if places > 0 else _to_tens(array, power)
    if places > 0:
        return divide(nearest(multiply(array, power)), power, out=out)
    return multiply(nearest(divide(array, power)), power, out=out)


@OneLaunch
def _to_decimals(x: Array, power: float) -> Array:
    return divide(nearest(multiply(x, power)), power)


@OneLaunch
def _to_tens(x: Array, power: float) -> Array:
    return multiply(nearest(divide(x, power)), power)


@OneLaunch
def _integers_to_tens(x: Array, power: float) -> Array:
    tens = multiply(nearest(divide(stored_as(convert, x, dtypes.float64), power)), power)
    return stored_as(convert, tens, x.dtype)


def _power(places: int) -> float:
    """A power of 10, or infinity."""
    return 10.0**places if places <= 308 else math.inf


def divmod(x1: Operand, x2: Operand, /) -> tuple[Array, Array]:
    """Return ``x1 // x2`` and ``x1 % x2``.

    Parameters
    ----------
    x1, x2 : Array or number
        Dividend and divisor. They broadcast against each other.

    Returns
    -------
    tuple of two Arrays
        The results of `floor_divide` and `remainder`.

    Raises
    ------
    PromotionError, DTypeError, BroadcastError
        In the same cases as `floor_divide`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.divmod(ta.asarray([7, -7]), 2)
    (Array([ 3, -4], dtype=int64, device='cpu'), Array([1, 1], dtype=int64, device='cpu'))
    """
    return _divided(x1, x2)


@OneLaunch
def _divided(x1: Operand, x2: Operand) -> tuple[Array, Array]:
    return floor_divide(x1, x2), remainder(x1, x2)


def frexp(x: Operand, /) -> tuple[Array, Array]:
    """Return mantissa and exponent: ``x == mantissa * 2**exponent``.

    Parameters
    ----------
    x : Array or number
        Real numbers; integers become the default float.

    Returns
    -------
    tuple of two Arrays
        The mantissa in the dtype of `x`, with an absolute value in [0.5, 1), and the exponent as int32. If `x` is 0,
        infinite or NaN, the mantissa is `x` and the exponent is 0.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.frexp(ta.asarray([12.0, -0.1]))
    (Array([ 0.75, -0.8 ], dtype=float32, device='cpu'), Array([ 4, -3], dtype=int32, device='cpu'))
    """
    return _parts(x)


@OneLaunch
def _parts(x: Operand) -> tuple[Array, Array]:
    return frexp_mantissa(x), frexp_exponent(x)
