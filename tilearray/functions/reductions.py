"""Reductions: sums, products, means, extremes and tests of whole axes.

Each function checks its axes and dtypes, and runs a reduction (`tilearray.ops.reduction`), on the host as on a GPU.
float32 and float64 are accumulated in float64, narrower floats in float32, and the result is rounded once. The order
depends on shape, strides and dtype alone (`tilearray.geometry.reduction`): every device gives the same bits.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.dtypes import DTypeLike
from tilearray.engine.array_type import A
from tilearray.engine.context import STATE, State
from tilearray.engine.signature import ArrayBase, HostData
from tilearray.errors import DTypeError, OperandError, ShapeError, type_name
from tilearray.functions.arguments import INDEX, as_array, as_array_beside, check_kind, common_dtype
from tilearray.functions.conversion import astype
from tilearray.functions.flat_at_zero import flat_at_zero
from tilearray.functions.manipulation import new_like
from tilearray.functions.reduce import Words, again, again_where, is_empty, reduce, reduce_arrays, reduce_from
from tilearray.functions.reduction_options import finished, initial_number, mask_of, masked, of_some
from tilearray.geometry.shapes import broadcast_shapes, normalize_axes
from tilearray.ops.arithmetic import choose, divide, greater, subtract
from tilearray.ops.elementary import sqrt
from tilearray.ops.execute import fill
from tilearray.ops.options import checked_flag
from tilearray.ops.promotion_methods import REAL_PART
from tilearray.ops.row import ANY, REAL
from tilearray.ops.summation_order import SummationOrder, order_on
from tilearray.promotion.scalars import Number, classify, needed

Axis = int | Sequence[int] | None


def sum(
    x: A | HostData,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: A | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    *,
    order: SummationOrder = "fixed",
) -> A:
    """Return the sum of elements; the sum of no elements is 0.

    Parameters
    ----------
    x : Array
        Of any kind but the storage dtypes.
    axis : int or tuple of int, optional
        The axes to reduce; None reduces all.
    dtype : dtype or name, optional
        The dtype of the result; `x` is cast to it first. None keeps the dtype of `x`, except that bool and integers
        narrower than the default integer become the default integer, unsigned ones the unsigned integer of its width.
    out : Array, optional
        Takes the result, which it must have the shape of; it is returned.
    keepdims : bool
        Whether the result keeps the axes, with size 1.
    initial : number, optional
        Counts as one more element of every sum.
    where : bool Array, optional
        Which elements count; it broadcasts to the shape of `x`. None keeps all.
    order : {"fixed", "any"}
        "fixed": float32 and float64 are added in float64, in an order that shape, strides and dtype give, so every
        device gives the same bits. "any": the host adds as NumPy does, in the dtype of the result (narrower floats in
        float32), which is faster; a GPU takes the fixed order.

    Raises
    ------
    ShapeError
        If `x` has no such axis, or an axis occurs twice.
    OperandError
        If `order` is another word.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.sum(ta.asarray([[1, 2], [3, 4]], dtype="uint8"), axis=0)
    Array([4, 6], dtype=uint64, device='cpu')
    """
    is_usual = dtype is None and out is None and initial is None
    words = ("sum", axis, keepdims, order, State.changes) if is_usual else None
    known = again(words, x) if where is None else again_where(words, x, where)
    if known is not None:
        return known
    return folded("sum", 0, words, x, axis, dtype, out, keepdims, initial, where, order)


def prod(
    x: A | HostData,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: A | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    *,
    order: SummationOrder = "fixed",
) -> A:
    """Return the product of elements; the product of no elements is 1.

    Parameters, dtypes and errors are those of `sum`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.prod(ta.asarray([2.5, 2.0]))
    Array(5., dtype=float32, device='cpu')
    """
    is_usual = dtype is None and out is None and initial is None
    words = ("prod", axis, keepdims, order, State.changes) if is_usual else None
    known = again(words, x) if where is None else again_where(words, x, where)
    if known is not None:
        return known
    return folded("prod", 1, words, x, axis, dtype, out, keepdims, initial, where, order)


def max(
    x: A | HostData,
    /,
    axis: Axis = None,
    out: A | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> A:
    """Return the largest element; NaN if there is a NaN, and 0.0 of 0.0 and -0.0.

    Parameters
    ----------
    x : Array
        Of a real dtype or bool.
    axis : int or tuple of int, optional
        The axes to reduce; None reduces all.
    out : Array, optional
        Takes the result, which it must have the shape of; it is returned.
    keepdims : bool
        Whether the result keeps the axes, with size 1.
    initial : number, optional
        Counts as one more element of every choice.
    where : bool Array, optional
        Which elements count; it broadcasts to the shape of `x`. None keeps all. It needs `initial`.

    Raises
    ------
    ShapeError
        If `x` has no such axis, or there are no elements to choose from and no `initial`.
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.max(ta.asarray([[1, 5], [3, 4]]), axis=1)
    Array([5, 4], dtype=int64, device='cpu')
    """
    words = ("max", axis, keepdims) if out is None and initial is None and where is None else None
    known = again(words, x)
    if known is not None:
        return known
    return _chosen("max", words, x, axis, out, keepdims, initial, where)


def min(
    x: A | HostData,
    /,
    axis: Axis = None,
    out: A | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> A:
    """Return the smallest element; NaN if there is a NaN, and -0.0 of 0.0 and -0.0.

    Parameters and errors are those of `max`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.min(ta.asarray([[1, 5], [3, 4]]), axis=1, keepdims=True).tolist()
    [[1], [3]]
    """
    words = ("min", axis, keepdims) if out is None and initial is None and where is None else None
    known = again(words, x)
    if known is not None:
        return known
    return _chosen("min", words, x, axis, out, keepdims, initial, where)


def mean(
    x: A | HostData,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: A | None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
    order: SummationOrder = "fixed",
) -> A:
    """Return the arithmetic mean; the mean of no elements is NaN.

    Parameters
    ----------
    x : Array
        Of any kind. Bool and integers give the float of their true division.
    axis : int or tuple of int, optional
        The axes to reduce; None reduces all.
    dtype : dtype or name, optional
        The dtype of the result, a float or complex one.
    out : Array, optional
        Takes the result, which it must have the shape of; it is returned.
    keepdims : bool
        Whether the result keeps the axes, with size 1.
    where : bool Array, optional
        Which elements count; it broadcasts to the shape of `x`. None keeps all.
    order : {"fixed", "any"}
        The order of additions, as for `sum`.

    Raises
    ------
    ShapeError
        If `x` has no such axis, or an axis occurs twice.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.mean(ta.asarray([1, 2, 4, 8]))
    Array(3.75, dtype=float32, device='cpu')
    """
    words = ("mean", axis, keepdims, order, State.changes) if dtype is None and out is None else None
    known = again(words, x) if where is None else again_where(words, x, where)
    if known is not None:
        return known
    return averaged(words, x, axis, dtype, out, keepdims, where, order)


def var(
    x: A | HostData,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: A | None = None,
    ddof: float = 0.0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    where: Any = None,
    mean: Any = None,
    order: SummationOrder = "fixed",
) -> A:
    """Return the variance: the mean square of the distances from the mean.

    Parameters
    ----------
    x : Array
        Of any kind. Bool and integers give the float of their true division, complex numbers the float of
        their parts.
    axis : int or tuple of int, optional
        The axes to reduce; None reduces all.
    dtype : dtype or name, optional
        The dtype of the result, a float one.
    out : Array, optional
        Takes the result, which it must have the shape of; it is returned.
    ddof : int or float
        The divisor is the number of elements less this: 0 for a population, 1 for a sample (Bessel). If nothing is
        left, the result is NaN.
    keepdims : bool
        Whether the result keeps the axes, with size 1.
    correction : int or float, optional
        The same as `ddof`, by the name of the array API standard.
    where : bool Array, optional
        Which elements count; it broadcasts to the shape of `x`. None keeps all.
    mean : Array, optional
        The mean if it is known, of a shape that broadcasts to that of `x`, as with ``keepdims=True``. The result has
        the float of the common dtype.
    order : {"fixed", "any"}
        The order of additions, as for `sum`. "fixed": one pass adds up the distances from the first element, and their
        squares. "any": the host takes the mean first, and then adds up the squares of the distances from it, as NumPy.

    Raises
    ------
    ShapeError
        If `x` has no such axis, an axis occurs twice, or `mean` does not broadcast to `x`.
    DTypeError
        If `mean` is complex, and `x` is not.
    OperandError
        If `ddof` or `correction` is not a real number, or both are given.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.var(ta.asarray([1.0, 2.0, 3.0]), correction=1)
    Array(1., dtype=float32, device='cpu')
    """
    is_usual = dtype is None and out is None and correction is None and mean is None and is_zero(ddof)
    words = ("var", axis, keepdims, order, State.changes) if is_usual else None
    known = again(words, x) if where is None else again_where(words, x, where)
    if known is not None:
        return known
    return spread_out("var", words, x, axis, dtype, out, ddof, keepdims, correction, where, mean, order)


def std(
    x: A | HostData,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: A | None = None,
    ddof: float = 0.0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    where: Any = None,
    mean: Any = None,
    order: SummationOrder = "fixed",
) -> A:
    """Return the standard deviation, the square root of `var`. Parameters and errors are those of `var`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.std(ta.asarray([[1.0, 5.0], [2.0, 2.0]]), axis=1).tolist()
    [2.0, 0.0]
    """
    is_usual = dtype is None and out is None and correction is None and mean is None and is_zero(ddof)
    words = ("std", axis, keepdims, order, State.changes) if is_usual else None
    known = again(words, x) if where is None else again_where(words, x, where)
    if known is not None:
        return known
    return spread_out("std", words, x, axis, dtype, out, ddof, keepdims, correction, where, mean, order)


def all(x: A | HostData, /, axis: Axis = None, out: A | None = None, keepdims: bool = False, *, where: Any = None) -> A:
    """Return whether all elements are other than 0, which is true of no elements. NaN is other than 0.

    Parameters
    ----------
    x : Array
        Of any dtype.
    axis : int or tuple of int, optional
        The axes to reduce; None reduces all.
    out : Array, optional
        Takes the result, which it must have the shape of; it is returned.
    keepdims : bool
        Whether the result keeps the axes, with size 1.
    where : bool Array, optional
        Which elements count; it broadcasts to the shape of `x`. None keeps all.

    Raises
    ------
    ShapeError
        If `x` has no such axis, or an axis occurs twice.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.all(ta.asarray([[1, 0], [2, 3]]), axis=1)
    Array([False,  True], dtype=bool, device='cpu')
    """
    words = ("all", axis, keepdims) if out is None else None
    known = again(words, x) if where is None else again_where(words, x, where)
    if known is not None:
        return known
    return _truth("all", 1, words, x, axis, out, keepdims, where)


def any(x: A | HostData, /, axis: Axis = None, out: A | None = None, keepdims: bool = False, *, where: Any = None) -> A:
    """Return whether any element is other than 0, which is false of no elements.

    Parameters and errors are those of `all`.

    Examples
    --------
    >>> import tilearray as ta
    >>> bool(ta.any(ta.asarray([0.0, float("nan")])))
    True
    """
    words = ("any", axis, keepdims) if out is None else None
    known = again(words, x) if where is None else again_where(words, x, where)
    if known is not None:
        return known
    return _truth("any", 0, words, x, axis, out, keepdims, where)


def count_nonzero(x: A | HostData, /, axis: Axis = None, *, keepdims: bool = False) -> A:
    """Return how many elements are other than 0, as int64. `axis`, `keepdims` and errors are those of `all`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.count_nonzero(ta.asarray([[1, 0], [2, 3]]), axis=0).tolist()
    [2, 1]
    """
    words = ("count_nonzero", axis, keepdims)
    known = again(words, x)
    if known is not None:
        return known
    keepdims = checked_flag("count_nonzero", "keepdims", keepdims)
    x = as_array("count_nonzero", x)
    axes = reduced_axes("count_nonzero", x, axis)
    return reduce("count_nonzero", x, axes, INDEX, keepdims, words=words)


# --- calls that are not known yet: `words` names them once they are ---------------------------------------------------


def folded(
    name: str,
    nothing: int,
    words: Words | None,
    given: Any,
    axis: Any,
    dtype: Any,
    out: Any,
    keepdims: Any,
    initial: Any,
    where: Any,
    order: Any,
) -> Any:
    """Return a sum or a product. `nothing` stands for elements that do not count."""
    keepdims = checked_flag(name, "keepdims", keepdims)
    x = as_array(name, given)
    axes = reduced_axes(name, x, axis)
    target = sum_dtype(name, x, dtype)
    order = order_on(x.device, name, order)
    mask = mask_of(name, x, where)
    start = None if initial is None else initial_number(name, initial, target)
    if mask is None:
        return finished(name, _fold(x, None, start, name, nothing, axes, target, keepdims, order, words), out)
    options = (name, nothing, axes, target, keepdims, order)
    return finished(name, of_some(_fold, options, words, x, where, mask, start), out)


def _fold(
    x: Any,
    mask: Any,
    start: Number | None,
    name: str,
    nothing: int,
    axes: tuple[int, ...],
    target: np.dtype,
    keepdims: bool,
    order: SummationOrder,
    words: Words | None = None,
) -> Any:
    kept = masked(x, mask, nothing)
    if start is None:
        return reduce(name, kept, axes, target, keepdims, order=order, words=words)
    return reduce_from(name, kept, axes, target, keepdims, start, order)


def averaged(
    words: Words | None, given: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, where: Any, order: Any
) -> Any:
    """Return a mean."""
    keepdims = checked_flag("mean", "keepdims", keepdims)
    x = as_array("mean", given)
    axes = reduced_axes("mean", x, axis)
    target = _mean_dtype("mean", x, dtype)
    order = order_on(x.device, "mean", order)
    mask = mask_of("mean", x, where)
    if mask is None:
        found = reduce("mean", x, axes, target, keepdims, _count(x, axes), order=order, words=words)
    else:
        found = of_some(_mean_of_some, (axes, target, keepdims, order), words, x, where, mask)
    return finished("mean", found, out)


def _mean_of_some(
    x: Any, mask: Any, axes: tuple[int, ...], target: np.dtype, keepdims: bool, order: SummationOrder
) -> Any:
    return astype(_masked_mean(x, mask, axes, keepdims, order), target)


def _chosen(
    name: str, words: Words | None, given: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any
) -> Any:
    """The largest or the smallest element."""
    keepdims = checked_flag(name, "keepdims", keepdims)
    x = as_array(name, given)
    axes, start = _extreme(name, x, axis, initial)
    mask = _started(name, mask_of(name, x, where), start)
    if start is None:
        return finished(name, reduce(name, x, axes, x.dtype, keepdims, words=words), out)
    return finished(name, of_some(_extreme_from, (name, axes, keepdims), None, x, where, mask, start), out)


def _extreme_from(x: Any, mask: Any, start: Number, name: str, axes: tuple[int, ...], keepdims: bool) -> Any:
    kept = x if mask is None else choose(mask, x, start)
    return reduce_from(name, kept, axes, x.dtype, keepdims, start)


def spread_out(
    name: str,
    words: Words | None,
    given: Any,
    axis: Any,
    dtype: Any,
    out: Any,
    ddof: Any,
    keepdims: Any,
    correction: Any,
    where: Any,
    mean: Any,
    order: Any,
) -> Any:
    """Return the variance, or its square root."""
    keepdims = checked_flag(name, "keepdims", keepdims)
    x = as_array(name, given)
    middle = None if mean is None else _given_mean(name, x, mean)
    typed = (x,) if middle is None or classify(mean) is not None else (x, middle)
    axes, target, correction = _spread(name, typed, axis, dtype, ddof, correction)
    order = order_on(x.device, name, order)
    mask = mask_of(name, x, where)
    if mask is None and middle is None:
        found = reduce(name, x, axes, target, keepdims, *_divisors(x, axes, correction), order=order, words=words)
    else:
        options = (name, axes, target, correction, keepdims, order)
        found = of_some(_spread_about, options, words, x, where, mask, middle)
    return finished(name, found, out)


def is_zero(ddof: object) -> bool:
    """Whether `ddof` is 0, which has many words."""
    return ddof.__class__ in (int, float) and not ddof


def _truth(
    name: str, nothing: int, words: Words | None, given: Any, axis: Any, out: Any, keepdims: Any, where: Any
) -> Any:
    """Whether all elements are true, or any. `nothing` stands for elements that do not count."""
    keepdims = checked_flag(name, "keepdims", keepdims)
    x = as_array(name, given)
    axes = reduced_axes(name, x, axis)
    mask = mask_of(name, x, where)
    if mask is None:
        return finished(name, reduce(name, x, axes, dtypes.bool_, keepdims, words=words), out)
    return finished(name, of_some(_truth_of_some, (name, nothing, axes, keepdims), words, x, where, mask), out)


def _truth_of_some(x: Any, mask: Any, name: str, nothing: int, axes: tuple[int, ...], keepdims: bool) -> Any:
    return reduce(name, masked(x, mask, nothing), axes, dtypes.bool_, keepdims)


# --- shared parts ----------------------------------------------------------------------------------------------------


def reduced_axes(function: str, x: ArrayBase, axis: Any) -> tuple[int, ...]:
    """Return the axes that a reduction of `x` removes: all for None.

    Examples
    --------
    >>> import tilearray as ta
    >>> reduced_axes("sum", ta.zeros((2, 3)), None), reduced_axes("sum", ta.zeros((2, 3)), -1)
    ((0, 1), (1,))
    """
    return tuple(range(x.ndim)) if axis is None else normalize_axes(axis, x.ndim, function)


def _count(x: ArrayBase, axes: tuple[int, ...]) -> float:
    """The number of elements that make one result."""
    return float(math.prod([x.shape[axis] for axis in axes]))


def _divisors(x: ArrayBase, axes: tuple[int, ...], correction: float) -> tuple[float, float]:
    """The number of elements, and that less the correction; NaN if nothing is left."""
    count = _count(x, axes)
    rest = count - correction
    return count, float(rest) if rest > 0 else math.nan


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


def _extreme(function: str, x: ArrayBase, axis: Any, initial: Any) -> tuple[tuple[int, ...], Number | None]:
    """The axes that an extreme of `x` removes, and the initial value; without one there are elements."""
    axes = reduced_axes(function, x, axis)
    check_kind(function, x.dtype, REAL)
    if initial is not None:
        return axes, initial_number(function, initial, x.dtype)
    if is_empty(x, axes):
        raise ShapeError(
            f"{function}: expected at least one element to choose from, got shape {x.shape}; "
            f"write ta.{function}(x) only if x.size > 0"
        )
    return axes, None


def _started(function: str, mask: A | None, start: Number | None) -> A | None:
    """The mask of an extreme, which needs an initial value: the mask may leave out all elements."""
    if mask is not None and start is None:
        raise OperandError(
            f"{function}: expected initial= beside where=, for the case that no element is left; write initial=0"
        )
    return mask


def _float_of(dtype: np.dtype) -> np.dtype:
    return dtype if dtypes.info(dtype).kind in ("float", "complex") else STATE.get().semantics.true_division


def _mean_dtype(function: str, x: ArrayBase, dtype: Any) -> np.dtype:
    """The dtype of a mean: as asked, or the float of the elements."""
    check_kind(function, x.dtype, ANY)
    if dtype is None:
        return _float_of(x.dtype)
    chosen = dtypes.as_dtype(dtype, function)
    check_kind(function, chosen, ANY)
    kinds = ("complex",) if dtypes.info(x.dtype).kind == "complex" else ("float", "complex")
    if dtypes.info(chosen).kind not in kinds:
        raise DTypeError(
            f"{function}: expected a dtype of kind {' or '.join(kinds)} for the mean of {x.dtype.name}, "
            f"got {chosen.name}; write ta.{function}(x).astype({chosen.name!r})"
        )
    return chosen


def _wide(x: ArrayBase) -> np.dtype:
    return dtypes.complex128 if dtypes.info(x.dtype).kind == "complex" else dtypes.float64


def _masked_mean(x: ArrayBase, mask: ArrayBase, axes: tuple[int, ...], keepdims: bool, order: SummationOrder) -> Any:
    """The mean of the elements that a mask keeps, in float64 or complex128."""
    wide = _wide(x)
    total = sum(masked(x, mask, 0), axes, wide, keepdims=keepdims, order=order)
    return divide(total, astype(count_nonzero(mask, axes, keepdims=keepdims), wide))


def _given_mean(function: str, x: ArrayBase, mean: Any) -> Any:
    """A mean as an Array that broadcasts to the elements."""
    given: Any = as_array_beside(function, mean, x, "mean")
    check_kind(function, given.dtype, ANY)
    kinds = [dtypes.info(each.dtype).kind for each in (x, given)]
    if kinds[1] == "complex" != kinds[0]:
        raise DTypeError(
            f"{function}: expected a real mean for {x.dtype.name}, got {given.dtype.name}; write mean=ta.real(mean)"
        )
    if given.ndim > x.ndim or broadcast_shapes(given.shape, x.shape, function=function) != x.shape:
        raise ShapeError(
            f"{function}: expected mean of a shape that broadcasts to {x.shape}, got {given.shape}; "
            f"write mean=ta.mean(x, axis, keepdims=True)"
        )
    return given


def _spread_about(
    x: Any,
    mask: Any,
    middle: Any,
    name: str,
    axes: tuple[int, ...],
    target: np.dtype,
    correction: float,
    keepdims: bool,
    order: SummationOrder,
) -> Any:
    variance = _variance_about(x, mask, middle, axes, correction, keepdims, order)
    return astype(flat_at_zero(sqrt, variance) if name == "std" else variance, target)


def _variance_about(
    x: ArrayBase,
    mask: ArrayBase | None,
    middle: ArrayBase | None,
    axes: tuple[int, ...],
    correction: float,
    keepdims: bool,
    order: SummationOrder,
) -> Any:
    """The variance in float64 of the elements that a mask keeps, about a mean that may be given; None keeps all."""
    kept: Any = fill(new_like(x, (), dtypes.bool_), True, "var") if mask is None else mask
    about = _masked_mean(x, kept, axes, True, order) if middle is None else astype(middle, _wide(x), copy=False)
    total = reduce_arrays("squares", (x, kept, about), axes, dtypes.float64, keepdims, order)
    if mask is None:
        return divide(total, _divisors(x, axes, correction)[1])
    divisor = subtract(astype(count_nonzero(mask, axes, keepdims=keepdims), dtypes.float64), float(correction))
    return divide(total, masked(divisor, greater(divisor, 0.0), math.nan))


def _spread(
    function: str, typed: tuple[ArrayBase, ...], axis: Any, dtype: Any, ddof: Any, correction: Any
) -> tuple[tuple[int, ...], np.dtype, float]:
    """The axes of the variance of the first of two arrays, the dtype that follows from both, and the correction."""
    x = typed[0]
    axes = reduced_axes(function, x, axis)
    check_kind(function, x.dtype, ANY)
    if correction is not None and ddof:
        raise OperandError(f"{function}: expected ddof or correction, got both; they mean the same, write one of them")
    given, name = (needed(ddof), "ddof") if correction is None else (needed(correction), "correction")
    if not isinstance(given, numbers.Real):  # as are NumPy's scalars
        raise OperandError(f"{function}: expected {name} as a real number, got {type_name(given)}; write float({name})")
    less = float(given)
    if dtype is not None:
        chosen = dtypes.as_dtype(dtype, function)
        check_kind(function, chosen, ANY)
        if dtypes.info(chosen).kind != "float":
            raise DTypeError(
                f"{function}: expected a float dtype, got {chosen.name}; write ta.{function}(x).astype({chosen.name!r})"
            )
        return axes, chosen, less
    chosen = _float_of(x.dtype if len(typed) == 1 else common_dtype(function, [each.dtype for each in typed], ANY))
    return axes, REAL_PART.get(chosen, chosen), less
