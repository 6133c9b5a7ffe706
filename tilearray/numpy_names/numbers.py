"""Functions of elements that NumPy names, and that are combinations of operations here.

`fabs`, `rint`, `fmax` and `fmin` have the options of operations: `where`, `dtype` and `casting`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.arrays.fills import arange, ones
from tilearray.arrays.uninitialised import dtype_or_default
from tilearray.dtypes import DTypeLike
from tilearray.engine.context import STATE, semantics
from tilearray.engine.devices import DeviceLike
from tilearray.errors import OperandError, shown
from tilearray.functions.arguments import as_array
from tilearray.functions.conversion import astype
from tilearray.ops.arithmetic import abs, choose, less_equal, maximum, minimum, subtract
from tilearray.ops.elementary import cos
from tilearray.ops.number_parts import copysign, isinf, nearest, trunc
from tilearray.ops.one_launch import OneLaunch
from tilearray.ops.promotion_methods import Promotion, computed_as
from tilearray.ops.variants import variant
from tilearray.promotion.storing import Casting

_LARGER, _SMALLER = [variant(row, propagate_nan=False) for row in (maximum, minimum)]


def _as_float(function: str, x: Any, dtype: DTypeLike | None = None) -> Array:
    """An array of floats or complex numbers; integers and bools become a dtype, or the float that `ta.sqrt` gives."""
    array = as_array(function, x)
    if dtypes.info(array.dtype).kind in ("float", "complex"):
        return array
    return astype(
        array, computed_as(Promotion.INT_TO_FLOAT, STATE.get().semantics, array.dtype) if dtype is None else dtype
    )


def _are_usual(where: Any, dtype: DTypeLike | None, casting: Any) -> bool:
    """Return whether a call has no options: then the plan of the operation is looked up at once."""
    return where is True and dtype is None and casting == "same_kind"


def fabs(
    x: Any,
    /,
    out: Array | None = None,
    *,
    where: Any = True,
    dtype: DTypeLike | None = None,
    casting: Casting = "same_kind",
) -> Array:
    """Return absolute values as floats: integers become the default float.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fabs([-1, 2])
    Array([1., 2.], dtype=float32, device='cpu')
    """
    floats = _as_float("fabs", x, dtype)
    if _are_usual(where, dtype, casting):
        return abs(floats, out=out)
    return abs(floats, out, where=where, dtype=dtype, casting=casting)


def rint(
    x: Any,
    /,
    out: Array | None = None,
    *,
    where: Any = True,
    dtype: DTypeLike | None = None,
    casting: Casting = "same_kind",
) -> Array:
    """Return the nearest integers as floats, ties to even: integers become the default float.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.rint([0.5, 1.5, 2])
    Array([0., 2., 2.], dtype=float32, device='cpu')
    """
    floats = _as_float("rint", x, dtype)
    if _are_usual(where, dtype, casting):
        return nearest(floats, out=out)
    return nearest(floats, out, where=where, dtype=dtype, casting=casting)


def fmax(
    x1: Any,
    x2: Any,
    /,
    out: Array | None = None,
    *,
    where: Any = True,
    dtype: DTypeLike | None = None,
    casting: Casting = "same_kind",
) -> Array:
    """Return the larger operand; if one is NaN, the other one.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fmax([1.0, ta.nan], 0.5)
    Array([1. , 0.5], dtype=float32, device='cpu')
    """
    if _are_usual(where, dtype, casting):
        return _LARGER(x1, x2, out=out)
    return maximum(x1, x2, out, where=where, dtype=dtype, casting=casting, propagate_nan=False)


def fmin(
    x1: Any,
    x2: Any,
    /,
    out: Array | None = None,
    *,
    where: Any = True,
    dtype: DTypeLike | None = None,
    casting: Casting = "same_kind",
) -> Array:
    """Return the smaller operand; if one is NaN, the other one.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fmin([1.0, ta.nan], 0.5)
    Array([0.5, 0.5], dtype=float32, device='cpu')
    """
    if _are_usual(where, dtype, casting):
        return _SMALLER(x1, x2, out=out)
    return minimum(x1, x2, out, where=where, dtype=dtype, casting=casting, propagate_nan=False)


def modf(x: Any, /) -> tuple[Array, Array]:
    """Return the fractional and the integral parts of numbers, both with the sign of the number.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.modf([1.5, -2.25])
    (Array([ 0.5 , -0.25], dtype=float32, device='cpu'), Array([ 1., -2.], dtype=float32, device='cpu'))
    """
    return _parts(as_array("modf", x))


@OneLaunch
def _parts(x: Array) -> tuple[Array, Array]:
    x = _as_float("modf", x)
    whole = trunc(x)
    return copysign(choose(isinf(x), 0.0, subtract(x, whole)), x), whole


# --- windows -------------------------------------------------------------------------------------------------------


def _window(
    name: str, points: Any, device: DeviceLike | None, formula: Callable[..., Array], *constants: float
) -> Array:
    """Return ``formula(n, M - 1, *constants)`` of ``n = 1 - M, 3 - M, ..., M - 1``, as NumPy has it.

    It is computed in float64 and rounded once.
    """
    try:
        count = float(points)
    except (TypeError, ValueError, OverflowError) as error:
        raise OperandError(f"{name}: expected a number, got {shown(points)}: {error}; write {name}(5)") from error
    if not math.isfinite(count):
        raise OperandError(f"{name}: expected a finite number, got {count}; write {name}(5)")
    dtype = dtype_or_default(None, name)
    if count <= 1:
        return ones(int(count == 1), dtype=dtype, device=device)
    with semantics("numpy"):
        found = formula(arange(1 - count, count, 2.0, dtype=dtypes.float64, device=device), count - 1, *constants)
    return astype(found, dtype)


@OneLaunch
def _triangle(n: Array, end: float) -> Array:
    return choose(less_equal(n, 0.0), 1.0 + n / end, 1.0 - n / end)


@OneLaunch
def _of_cosine(n: Array, end: float, mean: float, part: float) -> Array:
    return mean + part * cos(math.pi * n / end)


@OneLaunch
def _of_cosines(n: Array, end: float) -> Array:
    return 0.42 + 0.5 * cos(math.pi * n / end) + 0.08 * cos(2.0 * math.pi * n / end)


def bartlett(M: int, *, device: DeviceLike | None = None) -> Array:  # noqa: N803 - NumPy's name
    """Return the Bartlett window with `M` points, in the default float.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.bartlett(3).tolist()
    [0.0, 1.0, 0.0]
    """
    return _window("bartlett", M, device, _triangle)


def blackman(M: int, *, device: DeviceLike | None = None) -> Array:  # noqa: N803 - NumPy's name
    """Return the Blackman window with `M` points, in the default float.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.round(ta.blackman(3), 3).tolist()[1]
    1.0
    """
    return _window("blackman", M, device, _of_cosines)


def hamming(M: int, *, device: DeviceLike | None = None) -> Array:  # noqa: N803 - NumPy's name
    """Return the Hamming window with `M` points, in the default float.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.hamming(3).tolist()[1]
    1.0
    """
    return _window("hamming", M, device, _of_cosine, 0.54, 0.46)


def hanning(M: int, *, device: DeviceLike | None = None) -> Array:  # noqa: N803 - NumPy's name
    """Return the Hann window with `M` points, in the default float.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.hanning(3).tolist()
    [0.0, 1.0, 0.0]
    """
    return _window("hanning", M, device, _of_cosine, 0.5, 0.5)


def kaiser(M: int, beta: float, *, device: DeviceLike | None = None) -> Array:  # noqa: N803 - NumPy's name
    """Return the Kaiser window with `M` points, in the default float. NumPy computes it.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.kaiser(3, 0.0).tolist()
    [1.0, 1.0, 1.0]
    """
    try:
        found = np.kaiser(M, beta)
    except (TypeError, ValueError) as error:
        raise OperandError(
            f"kaiser: expected numbers, got {shown((M, beta))}: {error}; write kaiser(5, 3.5)"
        ) from error
    return astype(asarray(found, device=device), dtype_or_default(None, "kaiser"))
