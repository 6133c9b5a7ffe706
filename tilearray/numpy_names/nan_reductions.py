"""Reductions that leave out NaN. They run where the reductions of `tilearray.functions` run.

A mean, a variance or a sum leaves NaN out by `where=`; an extreme is a reduction of its own, for which NaN never wins.
Integers and bools have no NaN, so their reductions are the plain ones.
"""

from __future__ import annotations

import math
from builtins import all as all_true
from functools import partial
from typing import Any

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.dtypes import DTypeLike
from tilearray.engine.context import State
from tilearray.engine.remembered import is_plain, remember
from tilearray.errors import OperandError, ShapeError
from tilearray.functions.arguments import as_array, check_kind
from tilearray.functions.manipulation import broadcast_to, reshape
from tilearray.functions.reduce import again, reduce
from tilearray.functions.reduction_options import Numbers, finished, mask_of, masked, numbers_in, of_some, typed
from tilearray.functions.reductions import all, any, averaged, folded, is_zero, max, min, reduced_axes, spread_out
from tilearray.functions.scans import cumulative_prod, cumulative_sum
from tilearray.functions.searching import argmax, argmin
from tilearray.numpy_names.numbers import fmax, fmin
from tilearray.numpy_names.quantiles import (
    hundredths,
    median_there,
    parts_of,
    quantile_by_numpy,
    quantile_there,
    runs_there,
)
from tilearray.numpy_names.through_numpy import by_numpy
from tilearray.ops.arithmetic import choose
from tilearray.ops.one_launch import in_one_launch
from tilearray.ops.options import checked_flag
from tilearray.ops.row import REAL
from tilearray.ops.summation_order import SummationOrder


def _numbers(function: str, x: Any, where: Any) -> tuple[Array, Any]:
    """The array, and `where=` for what counts of it."""
    array = as_array(function, x)
    if not _has_nan(array):
        return array, where
    if where is None or where is True:
        return array, Numbers()
    given = as_array(function, where, "where")
    if given.device is array.device and given.dtype == dtypes.bool_ and _broadcasts(given.shape, array.shape):
        return array, Numbers(broadcast_to(given, array.shape))
    return array, numbers_in(array, given)  # a larger shape is an error


def _has_nan(x: Array) -> bool:
    return dtypes.info(x.dtype).kind in ("float", "complex")


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    spare = len(to) - len(shape)
    return spare >= 0 and all_true(one in (1, other) for one, other in zip(shape, to[spare:], strict=True))


def nansum(
    a: Any,
    axis: Any = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Return the sum of the elements that are not NaN; 0 if there are none.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.nansum([1.0, ta.nan, 2.0])
    Array(3., dtype=float32, device='cpu')
    """
    is_usual = dtype is None and out is None and initial is None and where is None
    words = ("nansum", axis, keepdims, State.changes) if is_usual else None
    known = again(words, a)
    if known is not None:
        return known
    x, numbers = _numbers("nansum", a, where)
    return folded("sum", 0, words, x, axis, dtype, out, keepdims, initial, numbers, "fixed")


def nanprod(
    a: Any,
    axis: Any = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Return the product of the elements that are not NaN; 1 if there are none.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.nanprod([3.0, ta.nan, 2.0])
    Array(6., dtype=float32, device='cpu')
    """
    is_usual = dtype is None and out is None and initial is None and where is None
    words = ("nanprod", axis, keepdims, State.changes) if is_usual else None
    known = again(words, a)
    if known is not None:
        return known
    x, numbers = _numbers("nanprod", a, where)
    return folded("prod", 1, words, x, axis, dtype, out, keepdims, initial, numbers, "fixed")


def nanmean(
    a: Any,
    axis: Any = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Array:
    """Return the mean of the elements that are not NaN; NaN if there are none.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.nanmean([1.0, ta.nan, 2.0])
    Array(1.5, dtype=float32, device='cpu')
    """
    is_usual = dtype is None and out is None and where is None
    words = ("nanmean", axis, keepdims, State.changes) if is_usual else None
    known = again(words, a)
    if known is not None:
        return known
    x, numbers = _numbers("nanmean", a, where)
    return averaged(words, x, axis, dtype, out, keepdims, numbers, "fixed")


def nanvar(
    a: Any,
    axis: Any = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    where: Any = None,
    mean: Any = None,
) -> Array:
    """Return the variance of the elements that are not NaN; NaN if `ddof` leaves none.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.nanvar([1.0, ta.nan, 3.0])
    Array(1., dtype=float32, device='cpu')
    """
    is_usual = dtype is None and out is None and correction is None and where is None and mean is None
    words = ("nanvar", axis, keepdims, State.changes) if is_usual and is_zero(ddof) else None
    known = again(words, a)
    if known is not None:
        return known
    x, numbers = _numbers("nanvar", a, where)
    return spread_out("var", words, x, axis, dtype, out, ddof, keepdims, correction, numbers, mean, "fixed")


def nanstd(
    a: Any,
    axis: Any = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    where: Any = None,
    mean: Any = None,
) -> Array:
    """Return the standard deviation of the elements that are not NaN; NaN if `ddof` leaves none.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.nanstd([1.0, ta.nan, 3.0])
    Array(1., dtype=float32, device='cpu')
    """
    is_usual = dtype is None and out is None and correction is None and where is None and mean is None
    words = ("nanstd", axis, keepdims, State.changes) if is_usual and is_zero(ddof) else None
    known = again(words, a)
    if known is not None:
        return known
    x, numbers = _numbers("nanstd", a, where)
    return spread_out("std", words, x, axis, dtype, out, ddof, keepdims, correction, numbers, mean, "fixed")


def nanmax(
    a: Any,
    axis: Any = None,
    out: Array | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Return the largest element that is not NaN; NaN if there are only NaN.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.nanmax([1.0, ta.nan, 2.0])
    Array(2., dtype=float32, device='cpu')
    """
    return _extreme(max, a, axis, out, keepdims, initial, where, fmax)


def nanmin(
    a: Any,
    axis: Any = None,
    out: Array | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Return the smallest element that is not NaN; NaN if there are only NaN.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.nanmin([1.0, ta.nan, 2.0])
    Array(1., dtype=float32, device='cpu')
    """
    return _extreme(min, a, axis, out, keepdims, initial, where, fmin)


def _extreme(function: Any, a: Any, axis: Any, out: Any, keepdims: bool, initial: Any, where: Any, pick: Any) -> Array:
    name = f"nan{function.__name__}"
    words = (name, axis, keepdims) if out is None and initial is None and where is None else None
    known = again(words, a)
    if known is not None:
        return known
    x = as_array(name, a)
    check_kind(name, x.dtype, REAL)
    if dtypes.info(x.dtype).kind != "float":
        return function(x, axis, out, keepdims, initial, where)
    flag, axes = checked_flag(name, "keepdims", keepdims), reduced_axes(name, x, axis)
    mask = mask_of(name, x, where)
    if initial is None and mask is not None:
        raise OperandError(
            f"{name}: expected initial= beside where=, for the case that no element is left; write initial=0"
        )
    if initial is None and not math.prod([x.shape[place] for place in axes]):
        raise ShapeError(
            f"{name}: expected at least one element to choose from, got shape {x.shape}; "
            f"write ta.{name}(x) only if x.size > 0"
        )
    if mask is None:
        found = reduce(name, x, axes, x.dtype, flag, words=words)
    else:
        found = of_some(_extreme_of_some, (name, axes, flag), None, x, where, mask)
    if initial is not None:
        found = pick(found, typed(x, initial, name))
    return finished(name, found, out)


def _extreme_of_some(x: Any, mask: Any, name: str, axes: tuple[int, ...], keepdims: bool) -> Any:
    return reduce(name, masked(x, mask, math.nan), axes, x.dtype, keepdims)


def _without_nan(x: Array, numbers: Array, instead: float) -> Array:
    """NaN replaced by an infinity, or by the largest value of a dtype that has none."""
    layout = dtypes.info(x.dtype).format
    if layout is not None and layout.infinity is None:
        limits = dtypes.finfo(x.dtype)
        instead = float(limits.max if instead > 0 else limits.min)
    return choose(numbers, x, instead)


def nanargmax(a: Any, axis: int | None = None, out: Array | None = None, *, keepdims: bool = False) -> Array:
    """Return the index of the first largest element that is not NaN, as int64.

    Raises
    ------
    ShapeError
        If there are only NaN to choose from.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.nanargmax([1.0, ta.nan, 2.0])
    Array(2, dtype=int64, device='cpu')
    """
    return _searched("nanargmax", argmax, a, axis, out, keepdims, float("-inf"))


def nanargmin(a: Any, axis: int | None = None, out: Array | None = None, *, keepdims: bool = False) -> Array:
    """Return the index of the first smallest element that is not NaN, as int64. Errors are those of `nanargmax`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.nanargmin([1.0, ta.nan, 2.0])
    Array(0, dtype=int64, device='cpu')
    """
    return _searched("nanargmin", argmin, a, axis, out, keepdims, float("inf"))


def _searched(function: str, search: Any, a: Any, axis: Any, out: Any, keepdims: Any, loses: float) -> Array:
    words = (function, axis, keepdims)
    known = again(words, a)
    if known is None:
        x = as_array(function, a)
        check_kind(function, x.dtype, REAL)
        if not _has_nan(x):
            return search(x, axis, out, keepdims=keepdims)
        keep = partial(remember, words, (x,)) if is_plain(axis) else None
        options = (search, axis, checked_flag(function, "keepdims", keepdims), loses)
        known = in_one_launch(_places, options, (x,), keep)
    places, has_numbers = known
    if not bool(has_numbers):
        raise ShapeError(f"{function}: expected a number to choose in every slice, got a slice of NaN; drop it first")
    return finished(function, places, out)


def _places(x: Any, search: Any, axis: Any, keepdims: bool, loses: float) -> tuple[Any, Any]:
    """Where the extremes of numbers are, and whether all slices have numbers."""
    numbers = numbers_in(x)
    has_numbers = any(numbers, axis)
    places = search(_without_nan(x, numbers, loses), axis, keepdims=keepdims)
    return places, all(has_numbers) if has_numbers.ndim else has_numbers


def nancumsum(a: Any, axis: int | None = None, dtype: DTypeLike | None = None, out: Array | None = None) -> Array:
    """Return the sums of all elements up to each one, with 0 for NaN; without an axis of all elements, as one axis.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.nancumsum([1.0, ta.nan, 2.0])
    Array([1., 1., 3.], dtype=float32, device='cpu')
    """
    return cumsum(_filled("nancumsum", a, 0), axis, dtype, out)


def nancumprod(a: Any, axis: int | None = None, dtype: DTypeLike | None = None, out: Array | None = None) -> Array:
    """Return the products of all elements up to each one, with 1 for NaN; without an axis of all, as one axis.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.nancumprod([3.0, ta.nan, 2.0])
    Array([3., 3., 6.], dtype=float32, device='cpu')
    """
    return cumprod(_filled("nancumprod", a, 1), axis, dtype, out)


def _filled(function: str, a: Any, neutral: int) -> Array:
    x = as_array(function, a)
    return choose(numbers_in(x), x, neutral) if _has_nan(x) else x


def cumsum(
    a: Any,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    *,
    order: SummationOrder = "fixed",
) -> Array:
    """Return the sums of all elements up to each one; without an axis of all elements, as one axis.

    `cumulative_sum` is the array API standard's name, which needs an axis unless the array is 1-d. `order` is that
    of `cumulative_sum`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.cumsum([[1, 2], [3, 4]])
    Array([ 1,  3,  6, 10], dtype=int64, device='cpu')
    """
    x = as_array("cumsum", a)
    return cumulative_sum(reshape(x, -1) if axis is None and x.ndim != 1 else x, axis, dtype, out, order=order)


def cumprod(
    a: Any,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    *,
    order: SummationOrder = "fixed",
) -> Array:
    """Return the products of all elements up to each one; without an axis of all elements, as one axis.

    `order` is that of `cumulative_prod`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.cumprod([[1, 2], [3, 4]], 1).tolist()
    [[1, 2], [3, 12]]
    """
    x = as_array("cumprod", a)
    return cumulative_prod(reshape(x, -1) if axis is None and x.ndim != 1 else x, axis, dtype, out, order=order)


def nanmedian(
    a: Any, axis: Any = None, out: Array | None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """Return the median of the elements that are not NaN. See `median`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.nanmedian([1.0, ta.nan, 2.0])
    Array(1.5, dtype=float32, device='cpu')
    """
    del overwrite_input
    x = as_array("nanmedian", a)
    if runs_there("nanmedian", x):
        return median_there("nanmedian", x, axis, out, keepdims, skips_nan=True)
    return by_numpy("nanmedian", (a,), axis=axis, keepdims=keepdims, out=out)


def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Array:
    """Return quantiles of the elements that are not NaN. See `quantile`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.nanquantile([1.0, ta.nan, 2.0], 0.5)
    Array(1.5, dtype=float32, device='cpu')
    """
    del overwrite_input
    x = as_array("nanquantile", a)
    if runs_there("nanquantile", x, method, weights, skips_nan=True):
        return quantile_there("nanquantile", x, parts_of("nanquantile", x, q), axis, out, keepdims, skips_nan=True)
    return quantile_by_numpy("nanquantile", a, q, axis, out, method, keepdims, weights)


def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Array:
    """Return percentiles of the elements that are not NaN. See `percentile`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.nanpercentile([1.0, ta.nan, 2.0], 50)
    Array(1.5, dtype=float32, device='cpu')
    """
    del overwrite_input
    x = as_array("nanpercentile", a)
    if runs_there("nanpercentile", x, method, weights, skips_nan=True):
        parts = hundredths(parts_of("nanpercentile", x, q))
        return quantile_there("nanpercentile", x, parts, axis, out, keepdims, skips_nan=True)
    return quantile_by_numpy("nanpercentile", a, q, axis, out, method, keepdims, weights)
