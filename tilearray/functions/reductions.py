"""Reductions: sums, products, means, extremes and tests of whole axes, on the host through NumPy.

Each function says which values go in, which NumPy reduction runs, and which dtype comes out; what the functions share
stands at the end. Floats are accumulated in float64 and rounded once, so a bfloat16 sum loses nothing on its way.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.context import STATE
from tilearray.engine.signature import A, ArrayBase
from tilearray.errors import OperandError, ShapeError, type_name
from tilearray.functions.on_host import ANY, INDEX, REAL, accumulator, array_of, check_kind, on_host, truth, values
from tilearray.geometry.shapes import normalize_axes
from tilearray.ops.promotion_methods import REAL_PART

Axis = int | Sequence[int] | None


def sum(x: A, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> A:
    """Return the sum of elements; 0 where there are none.

    Parameters
    ----------
    x : Array
        Of any kind, on the host.
    axis : int or tuple of int, optional
        Along which axes; None takes all.
    dtype : dtype or name, optional
        Of the result; `x` is cast to it first. None keeps the dtype of `x`, but bool and integers narrower than the
        default integer become the default integer, unsigned ones the unsigned integer of its width.
    keepdims : bool
        Whether the axes stay, with size 1.

    Raises
    ------
    ShapeError
        If there is no such axis, or it comes twice.
    DeviceError
        If `x` is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.sum(ta.asarray([[1, 2], [3, 4]], dtype="uint8"), axis=0)
    Array([4, 6], dtype=uint64, device='cpu')
    """
    return _folded("sum", np.add, x, axis, dtype, keepdims)


def prod(x: A, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> A:
    """Return the product of elements; 1 where there are none. Parameters, dtypes and errors are those of `sum`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.prod(ta.asarray([2.5, 2.0]))
    Array(5., dtype=float32, device='cpu')
    """
    return _folded("prod", np.multiply, x, axis, dtype, keepdims)


def max(x: A, /, *, axis: Axis = None, keepdims: bool = False) -> A:
    """Return the largest element; NaN where there is one.

    Parameters
    ----------
    x : Array
        Of a real dtype or bool, on the host.
    axis : int or tuple of int, optional
        Along which axes; None takes all.
    keepdims : bool
        Whether the axes stay, with size 1.

    Raises
    ------
    ShapeError
        If there is no such axis, or there are no elements to choose from.
    DTypeError
        If `x` is complex.
    DeviceError
        If `x` is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.max(ta.asarray([[1, 5], [3, 4]]), axis=1)
    Array([5, 4], dtype=int64, device='cpu')
    """
    return _extreme("max", np.maximum, x, axis, keepdims)


def min(x: A, /, *, axis: Axis = None, keepdims: bool = False) -> A:
    """Return the smallest element; NaN where there is one. Parameters and errors are those of `max`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.min(ta.asarray([[1, 5], [3, 4]]), axis=1, keepdims=True).tolist()
    [[1], [3]]
    """
    return _extreme("min", np.minimum, x, axis, keepdims)


def mean(x: A, /, *, axis: Axis = None, keepdims: bool = False) -> A:
    """Return the arithmetic mean; NaN of no elements.

    Parameters
    ----------
    x : Array
        Of any kind, on the host. Bool and integers give the float that their true division gives.
    axis : int or tuple of int, optional
        Along which axes; None takes all.
    keepdims : bool
        Whether the axes stay, with size 1.

    Raises
    ------
    ShapeError
        If there is no such axis, or it comes twice.
    DeviceError
        If `x` is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.mean(ta.asarray([1, 2, 4, 8]))
    Array(3.75, dtype=float32, device='cpu')
    """
    axes = _reduced(x, axis, "mean")
    check_kind("mean", x.dtype, ANY)
    return array_of(_mean(values(x), axes, keepdims), _float_of(x.dtype), x)


def var(x: A, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> A:
    """Return the variance: the mean square of the distances from the mean.

    Parameters
    ----------
    x : Array
        Of any kind, on the host. Bool and integers give the float that their true division gives, complex numbers the
        float of their parts.
    axis : int or tuple of int, optional
        Along which axes; None takes all.
    correction : int or float
        What is subtracted from the number of elements in the divisor: 0 for a population, 1 for a sample (Bessel).
        NaN comes out where nothing is left.
    keepdims : bool
        Whether the axes stay, with size 1.

    Raises
    ------
    ShapeError
        If there is no such axis, or it comes twice.
    OperandError
        If `correction` is no real number.
    DeviceError
        If `x` is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.var(ta.asarray([1.0, 2.0, 3.0]), correction=1)
    Array(1., dtype=float32, device='cpu')
    """
    spread, dtype = _variance("var", x, axis, correction, keepdims)
    return array_of(spread, dtype, x)


def std(x: A, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> A:
    """Return the standard deviation: the root of `var`, with its parameters and errors.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.std(ta.asarray([[1.0, 5.0], [2.0, 2.0]]), axis=1).tolist()
    [2.0, 0.0]
    """
    spread, dtype = _variance("std", x, axis, correction, keepdims)
    return array_of(np.sqrt(spread), dtype, x)


def all(x: A, /, *, axis: Axis = None, keepdims: bool = False) -> A:
    """Return whether all elements are other than 0; true of no elements. NaN is other than 0.

    Parameters
    ----------
    x : Array
        Of any dtype, on the host.
    axis : int or tuple of int, optional
        Along which axes; None takes all.
    keepdims : bool
        Whether the axes stay, with size 1.

    Raises
    ------
    ShapeError
        If there is no such axis, or it comes twice.
    DeviceError
        If `x` is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.all(ta.asarray([[1, 0], [2, 3]]), axis=1)
    Array([False,  True], dtype=bool, device='cpu')
    """
    axes = _reduced(x, axis, "all")
    return array_of(np.logical_and.reduce(truth(x), axis=axes, keepdims=keepdims), dtypes.bool_, x)


def any(x: A, /, *, axis: Axis = None, keepdims: bool = False) -> A:
    """Return whether any element is other than 0; false of no elements. Parameters and errors are those of `all`.

    Examples
    --------
    >>> import tilearray as ta
    >>> bool(ta.any(ta.asarray([0.0, float("nan")])))
    True
    """
    axes = _reduced(x, axis, "any")
    return array_of(np.logical_or.reduce(truth(x), axis=axes, keepdims=keepdims), dtypes.bool_, x)


def count_nonzero(x: A, /, *, axis: Axis = None, keepdims: bool = False) -> A:
    """Return how many elements are other than 0, as int64. Parameters and errors are those of `all`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.count_nonzero(ta.asarray([[1, 0], [2, 3]]), axis=0).tolist()
    [2, 1]
    """
    axes = _reduced(x, axis, "count_nonzero")
    return array_of(np.add.reduce(truth(x), axis=axes, dtype=INDEX, keepdims=keepdims), INDEX, x)


# --- what they share -----------------------------------------------------------------------------------------------


def _reduced(x: Any, axis: Any, function: str) -> tuple[int, ...]:
    """The axes that a reduction of `x` takes away."""
    ndim = on_host(function, x).ndim
    return tuple(range(ndim)) if axis is None else normalize_axes(axis, ndim, function)


def sum_dtype(function: str, x: ArrayBase, dtype: Any) -> np.dtype:
    """Return the dtype of a sum: as asked, or wide enough for integers, as the array API standard has it."""
    chosen = x.dtype if dtype is None else dtypes.as_dtype(dtype, function)
    check_kind(function, x.dtype, ANY)
    check_kind(function, chosen, ANY)
    row, default = dtypes.info(chosen), STATE.get().semantics.defaults["int"]
    if dtype is not None or row.kind in ("float", "complex"):
        return chosen
    if row.kind == "bool":
        return default
    if row.bits >= dtypes.info(default).bits:
        return chosen
    return default if row.kind == "int" else np.dtype(f"u{default.itemsize}")


def _folded(function: str, ufunc: np.ufunc, x: A, axis: Any, dtype: Any, keepdims: bool) -> A:
    """A sum or product in the accumulator of its dtype."""
    axes = _reduced(x, axis, function)
    result = sum_dtype(function, x, dtype)
    with np.errstate(all="ignore"):
        folded = ufunc.reduce(values(x, result), axis=axes, dtype=accumulator(result), keepdims=keepdims)
    return array_of(folded, result, x)


def _extreme(function: str, ufunc: np.ufunc, x: A, axis: Any, keepdims: bool) -> A:
    axes = _reduced(x, axis, function)
    check_kind(function, x.dtype, REAL)
    if not _count(x.shape, axes):
        raise ShapeError(
            f"{function}: expected at least one element to choose from, got shape {x.shape}; "
            f"write ta.{function}(x) only where x.size > 0"
        )
    with np.errstate(all="ignore"):
        return array_of(ufunc.reduce(values(x), axis=axes, keepdims=keepdims), x.dtype, x)


def _count(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """How many elements make one element of the result."""
    return math.prod([shape[axis] for axis in axes])


def _float_of(dtype: np.dtype) -> np.dtype:
    return dtype if dtypes.info(dtype).kind in ("float", "complex") else STATE.get().semantics.true_division


def _mean(host: np.ndarray, axes: tuple[int, ...], keepdims: bool) -> np.ndarray:
    """The mean in float64 or complex128; the parts of complex numbers apart, so that a NaN stays in its own."""
    dtype = np.complex128 if host.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        total = np.asarray(np.add.reduce(host, axis=axes, dtype=dtype, keepdims=keepdims), order="C")
        parts = total.view(np.float64) if total.ndim else total.reshape(1).view(np.float64)
        parts /= _count(host.shape, axes)
    return total


def _variance(function: str, x: ArrayBase, axis: Any, correction: Any, keepdims: bool) -> tuple[np.ndarray, np.dtype]:
    """The variance in float64, and the dtype to round it to."""
    axes = _reduced(x, axis, function)
    check_kind(function, x.dtype, ANY)
    if not isinstance(correction, (int, float)):
        raise OperandError(
            f"{function}: expected correction as a real number, got {type_name(correction)}; write float(correction)"
        )
    host = values(x)
    result = _float_of(x.dtype)
    with np.errstate(all="ignore"):
        distance: Any = host - _mean(host, axes, keepdims=True)
        squares = distance.real**2 + distance.imag**2 if host.dtype.kind == "c" else distance * distance
        total = np.add.reduce(squares, axis=axes, keepdims=keepdims)
        divisor = builtins.max(_count(host.shape, axes) - correction, 0)
        spread = np.asarray(total / divisor if divisor else total * math.nan)
    return spread, REAL_PART.get(result, result)
