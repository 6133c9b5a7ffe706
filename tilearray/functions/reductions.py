"""Reductions: sums, products, means, extremes and tests of whole axes.

Each function checks its axes and dtypes, asks the backend for its reductions, and wraps the result. Floats are
accumulated in float64 and rounded once, so the sum of bfloat16 numbers loses nothing on its way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.context import STATE
from tilearray.engine.signature import A, ArrayBase, check_array
from tilearray.errors import DTypeError, OperandError, ShapeError, type_name
from tilearray.functions.arguments import check_kind, reductions_of, result
from tilearray.functions.conversion import to_numpy
from tilearray.geometry.shapes import normalize_axes
from tilearray.ops.promotion_methods import REAL_PART
from tilearray.ops.row import ANY, REAL

Axis = int | Sequence[int] | None


def sum(x: A, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> A:
    """Return the sum of elements; the sum of no elements is 0.

    Parameters
    ----------
    x : Array
        Of any kind but the storage dtypes, on the host.
    axis : int or tuple of int, optional
        The axes to reduce; None reduces all.
    dtype : dtype or name, optional
        The dtype of the result; `x` is cast to it first. None keeps the dtype of `x`, except that bool and integers
        narrower than the default integer become the default integer, unsigned ones the unsigned integer of its width.
    keepdims : bool
        Whether the result keeps the axes, with size 1.

    Raises
    ------
    ShapeError
        If `x` has no such axis, or an axis occurs twice.
    DeviceError
        If `x` is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.sum(ta.asarray([[1, 2], [3, 4]], dtype="uint8"), axis=0)
    Array([4, 6], dtype=uint64, device='cpu')
    """
    axes, reductions = _reduced("sum", x, axis), reductions_of("sum", x)
    return result(reductions.sum(to_numpy(x), axes, sum_dtype("sum", x, dtype), bool(keepdims)), x)


def prod(x: A, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> A:
    """Return the product of elements; the product of no elements is 1.

    Parameters, dtypes and errors are those of `sum`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.prod(ta.asarray([2.5, 2.0]))
    Array(5., dtype=float32, device='cpu')
    """
    axes, reductions = _reduced("prod", x, axis), reductions_of("prod", x)
    return result(reductions.prod(to_numpy(x), axes, sum_dtype("prod", x, dtype), bool(keepdims)), x)


def max(x: A, /, *, axis: Axis = None, keepdims: bool = False) -> A:
    """Return the largest element; NaN if there is a NaN.

    Parameters
    ----------
    x : Array
        Of a real dtype or bool, on the host.
    axis : int or tuple of int, optional
        The axes to reduce; None reduces all.
    keepdims : bool
        Whether the result keeps the axes, with size 1.

    Raises
    ------
    ShapeError
        If `x` has no such axis, or there are no elements to choose from.
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
    axes = _nonempty("max", x, axis)
    return result(reductions_of("max", x).max(to_numpy(x), axes, bool(keepdims)), x)


def min(x: A, /, *, axis: Axis = None, keepdims: bool = False) -> A:
    """Return the smallest element; NaN if there is a NaN. Parameters and errors are those of `max`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.min(ta.asarray([[1, 5], [3, 4]]), axis=1, keepdims=True).tolist()
    [[1], [3]]
    """
    axes = _nonempty("min", x, axis)
    return result(reductions_of("min", x).min(to_numpy(x), axes, bool(keepdims)), x)


def mean(x: A, /, *, axis: Axis = None, keepdims: bool = False) -> A:
    """Return the arithmetic mean; the mean of no elements is NaN.

    Parameters
    ----------
    x : Array
        Of any kind, on the host. Bool and integers give the float of their true division.
    axis : int or tuple of int, optional
        The axes to reduce; None reduces all.
    keepdims : bool
        Whether the result keeps the axes, with size 1.

    Raises
    ------
    ShapeError
        If `x` has no such axis, or an axis occurs twice.
    DeviceError
        If `x` is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.mean(ta.asarray([1, 2, 4, 8]))
    Array(3.75, dtype=float32, device='cpu')
    """
    axes = _reduced("mean", x, axis)
    check_kind("mean", x.dtype, ANY)
    return result(reductions_of("mean", x).mean(to_numpy(x), axes, _float_of(x.dtype), bool(keepdims)), x)


def var(x: A, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> A:
    """Return the variance: the mean square of the distances from the mean.

    Parameters
    ----------
    x : Array
        Of any kind, on the host. Bool and integers give the float of their true division, complex numbers the float of
        their parts.
    axis : int or tuple of int, optional
        The axes to reduce; None reduces all.
    correction : int or float
        The divisor is the number of elements less this: 0 for a population, 1 for a sample (Bessel). If nothing is
        left, the result is NaN.
    keepdims : bool
        Whether the result keeps the axes, with size 1.

    Raises
    ------
    ShapeError
        If `x` has no such axis, or an axis occurs twice.
    OperandError
        If `correction` is not a real number.
    DeviceError
        If `x` is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.var(ta.asarray([1.0, 2.0, 3.0]), correction=1)
    Array(1., dtype=float32, device='cpu')
    """
    axes, dtype = _spread("var", x, axis, correction)
    return result(reductions_of("var", x).var(to_numpy(x), axes, correction, dtype, bool(keepdims)), x)


def std(x: A, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> A:
    """Return the standard deviation, the square root of `var`. Parameters and errors are those of `var`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.std(ta.asarray([[1.0, 5.0], [2.0, 2.0]]), axis=1).tolist()
    [2.0, 0.0]
    """
    axes, dtype = _spread("std", x, axis, correction)
    return result(reductions_of("std", x).std(to_numpy(x), axes, correction, dtype, bool(keepdims)), x)


def all(x: A, /, *, axis: Axis = None, keepdims: bool = False) -> A:
    """Return whether all elements are other than 0, which is true of no elements. NaN is other than 0.

    Parameters
    ----------
    x : Array
        Of any dtype, on the host.
    axis : int or tuple of int, optional
        The axes to reduce; None reduces all.
    keepdims : bool
        Whether the result keeps the axes, with size 1.

    Raises
    ------
    ShapeError
        If `x` has no such axis, or an axis occurs twice.
    DeviceError
        If `x` is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.all(ta.asarray([[1, 0], [2, 3]]), axis=1)
    Array([False,  True], dtype=bool, device='cpu')
    """
    axes = _reduced("all", x, axis)
    return result(reductions_of("all", x).all(to_numpy(x), axes, bool(keepdims)), x)


def any(x: A, /, *, axis: Axis = None, keepdims: bool = False) -> A:
    """Return whether any element is other than 0, which is false of no elements.

    Parameters and errors are those of `all`.

    Examples
    --------
    >>> import tilearray as ta
    >>> bool(ta.any(ta.asarray([0.0, float("nan")])))
    True
    """
    axes = _reduced("any", x, axis)
    return result(reductions_of("any", x).any(to_numpy(x), axes, bool(keepdims)), x)


def count_nonzero(x: A, /, *, axis: Axis = None, keepdims: bool = False) -> A:
    """Return how many elements are other than 0, as int64. Parameters and errors are those of `all`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.count_nonzero(ta.asarray([[1, 0], [2, 3]]), axis=0).tolist()
    [2, 1]
    """
    axes = _reduced("count_nonzero", x, axis)
    return result(reductions_of("count_nonzero", x).count_nonzero(to_numpy(x), axes, bool(keepdims)), x)


# --- shared parts ----------------------------------------------------------------------------------------------------


def _reduced(function: str, x: ArrayBase, axis: Any) -> tuple[int, ...]:
    """The axes that a reduction of `x` removes."""
    check_array(function, x)
    return tuple(range(x.ndim)) if axis is None else normalize_axes(axis, x.ndim, function)


def sum_dtype(function: str, x: ArrayBase, dtype: Any) -> np.dtype:
    """Return the dtype of a sum: as asked, or wide enough for integers, as the array API standard has it."""
    chosen = x.dtype if dtype is None else dtypes.as_dtype(dtype, function)
    check_kind(function, x.dtype, ANY)
    check_kind(function, chosen, ANY)
    row, default = dtypes.info(chosen), STATE.get().semantics.defaults["int"]
    if dtypes.info(x.dtype).kind == "complex" and row.kind not in ("complex", "bool"):
        raise DTypeError(
            f"{function}: {x.dtype.name} does not become {row.name}: the imaginary part would be lost; "
            f"write ta.{function}(x.real, dtype={row.name!r})"
        )
    if dtype is not None or row.kind in ("float", "complex"):
        return chosen
    if row.kind == "bool":
        return default
    if row.bits >= dtypes.info(default).bits:
        return chosen
    return default if row.kind == "int" else np.dtype(f"u{default.itemsize}")


def _nonempty(function: str, x: ArrayBase, axis: Any) -> tuple[int, ...]:
    """The axes that an extreme of `x` removes; they have elements."""
    axes = _reduced(function, x, axis)
    check_kind(function, x.dtype, REAL)
    if not math.prod([x.shape[place] for place in axes]):
        raise ShapeError(
            f"{function}: expected at least one element to choose from, got shape {x.shape}; "
            f"write ta.{function}(x) only if x.size > 0"
        )
    return axes


def _float_of(dtype: np.dtype) -> np.dtype:
    return dtype if dtypes.info(dtype).kind in ("float", "complex") else STATE.get().semantics.true_division


def _spread(function: str, x: ArrayBase, axis: Any, correction: Any) -> tuple[tuple[int, ...], np.dtype]:
    """The axes of a variance, and its dtype."""
    axes = _reduced(function, x, axis)
    check_kind(function, x.dtype, ANY)
    if not isinstance(correction, (int, float)):
        raise OperandError(
            f"{function}: expected correction as a real number, got {type_name(correction)}; write float(correction)"
        )
    dtype = _float_of(x.dtype)
    return axes, REAL_PART.get(dtype, dtype)
