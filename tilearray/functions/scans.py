"""Functions along one axis, on every device: running sums and products, and differences of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilearray.dtypes import DTypeLike, bool_
from tilearray.engine import remembered
from tilearray.engine.array_type import A
from tilearray.engine.context import State
from tilearray.engine.execute import run
from tilearray.engine.operation import Operation
from tilearray.engine.plan import Key
from tilearray.engine.remembered import Words, remember_launch
from tilearray.engine.signature import ArrayBase, HostData
from tilearray.errors import ShapeError, WriteError
from tilearray.functions.arguments import as_array, as_array_beside, check_kind
from tilearray.functions.indexing.views import get
from tilearray.functions.joining import concat
from tilearray.functions.manipulation import broadcast_to
from tilearray.functions.reduce import again, remember_plan
from tilearray.functions.reduction_options import finished, typed
from tilearray.functions.reductions import sum_dtype
from tilearray.geometry.shapes import as_int, normalize_axis, without_axis
from tilearray.ops.arithmetic import not_equal, subtract
from tilearray.ops.execute import fill
from tilearray.ops.options import checked_flag
from tilearray.ops.row import ANY
from tilearray.ops.scan import scan_of
from tilearray.ops.summation_order import SummationOrder, order_on
from tilearray.promotion.scalars import Number, classify


def cumulative_sum(
    x: A | HostData,
    /,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: A | None = None,
    *,
    include_initial: bool = False,
    order: SummationOrder = "fixed",
) -> A:
    """Return the sums of all elements up to each one along an axis.

    Parameters
    ----------
    x : Array
        Of any kind but the storage dtypes. float32 and float64 are accumulated in float64, narrower floats in float32,
        and each result is rounded once. `tilearray.geometry.scan` has the fixed order, which is that of all devices.
    axis : int, optional
        Needed unless `x` is 1-d.
    dtype : dtype or name, optional
        The dtype of the result, as for `sum`.
    out : Array, optional
        Takes the result, which it must have the shape of; it is returned.
    include_initial : bool
        Whether the result starts with a 0; the axis is then longer by 1.
    order : {"fixed", "any"}
        The order of additions, as for `sum`: with "any" the host adds one element after the other, as NumPy does.

    Raises
    ------
    ShapeError
        If `x` has no such axis, or `axis` is missing and `x` is not 1-d.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.cumulative_sum(ta.asarray([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int64, device='cpu')
    """
    is_usual = dtype is None and out is None and include_initial is False
    words = ("cumulative_sum", axis, False, order, State.changes) if is_usual else None
    known = again(words, x)
    if known is not None:
        return known
    return _accumulated("cumulative_sum", "add", words, x, axis, dtype, out, include_initial, order)


def cumulative_prod(
    x: A | HostData,
    /,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: A | None = None,
    *,
    include_initial: bool = False,
    order: SummationOrder = "fixed",
) -> A:
    """Return the products of all elements up to each one along an axis; the initial value is 1.

    Parameters and errors are those of `cumulative_sum`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.cumulative_prod(ta.asarray([[1, 2], [3, 4]]), axis=0).tolist()
    [[1, 2], [3, 8]]
    """
    is_usual = dtype is None and out is None and include_initial is False
    words = ("cumulative_prod", axis, False, order, State.changes) if is_usual else None
    known = again(words, x)
    if known is not None:
        return known
    return _accumulated("cumulative_prod", "multiply", words, x, axis, dtype, out, include_initial, order)


def _accumulated(
    function: str,
    how: str,
    words: Words | None,
    given: Any,
    axis: Any,
    dtype: Any,
    out: Any,
    include_initial: Any,
    order: Any,
) -> Any:
    """The running sums or products."""
    include_initial = checked_flag(function, "include_initial", include_initial)
    x = as_array(function, given)
    axis = _scanned_axis(function, x, axis)
    wanted, initial = sum_dtype(function, x, dtype), int(how == "multiply") if include_initial else None
    found = scan(function, how, x, axis, wanted, initial, order_on(x.device, function, order), words)
    return finished(function, found, out)


def scan(
    function: str,
    how: str,
    x: A,
    axis: int,
    dtype: np.dtype,
    initial: Number | None = None,
    order: SummationOrder = "fixed",
    words: Words | None = None,
) -> A:
    """Return a scan of `x` along an axis, as a new array of a dtype.

    Parameters
    ----------
    function : str
        The function that was called, for error messages.
    how : {"add", "multiply", "maximum", "minimum"}
    x : Array
        Of a dtype that the scan takes.
    axis : int
        Not negative.
    dtype : numpy.dtype
        The dtype of the result.
    initial : number, optional
        The first element of the result, which is then longer by 1. It changes no other element.
    order : {"fixed", "any"}
        As the device has it (`tilearray.ops.summation_order`).
    words : Words, optional
        `tilearray.functions.reduce.again` finds the plan under these words.

    Examples
    --------
    >>> import tilearray as ta
    >>> scan("cumsum", "add", ta.asarray([1, 2, 3]), 0, ta.int64, 0)
    Array([0, 1, 3, 6], dtype=int64, device='cpu')
    """
    operation = scan_of(function, how, dtype, axis, initial is not None, order)
    keys: list[Key] = [x._signature]
    found = run(operation, keys, (x,), None, _refuse)
    if words is not None:
        remember_plan(words, (x,), operation, keys)
    if initial is not None and found.size:
        first = (*[slice(None)] * axis, slice(0, 1))
        fill(get(found, first), initial, function)
    return found


def _refuse(operation: Operation, operands: Any, out: ArrayBase) -> Any:
    del operands, out
    raise WriteError(f"{operation.name}: a scan makes a new array")


def _scanned_axis(function: str, x: ArrayBase, axis: Any) -> int:
    if axis is None and x.ndim != 1:
        raise ShapeError(
            f"{function}: expected axis= for an array of {x.ndim} axes, got none; "
            f"write axis=-1, or ta.reshape(x, -1) for all elements"
        )
    return normalize_axis(0 if axis is None else axis, x.ndim, function)


def diff(x: A | HostData, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> A:
    """Return the n-th differences of neighbours along an axis: ``x[i + 1] - x[i]``, applied `n` times.

    Parameters
    ----------
    x : Array
        On any device. The differences of bool are bool, as NumPy's: whether neighbours differ.
    n : int
        How often, at least 0. The axis becomes shorter by `n`, down to 0. If it is 0, the result is `x`, as NumPy's.
    axis : int
    prepend, append : Array or number, optional
        Arrays to join to `x` along the axis first; they have the sizes of `x` along all other axes. A number or a 0-d
        array stands for one of size 1 along the axis; a number takes the dtype of `x`.

    Raises
    ------
    ShapeError
        If `x` has no such axis, `n` is negative or not an integer, or an array to join does not fit.
    DTypeError
        If the dtype is only for views, copies and casts.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.diff(ta.asarray([1, 4, 9, 16]), n=2)
    Array([2, 2], dtype=int64, device='cpu')
    """
    is_usual = prepend is None and append is None and n.__class__ is axis.__class__ is int and n == 1
    words = ("diff", axis, State.changes) if is_usual else None
    known = remembered.again(words, x)
    if known is not None:
        return known
    x = as_array("diff", x)
    place = normalize_axis(axis, x.ndim, "diff")
    times = as_int(n, "diff", "n")
    if times < 0:
        raise ShapeError(f"diff: expected n >= 0, got {times}; write n=1 for the differences of neighbours")
    prepend, append = _end(x, place, prepend, "prepend"), _end(x, place, append, "append")
    for part in (prepend, append):
        if part is None:
            continue
        if part.ndim != x.ndim or without_axis(part.shape, place) != without_axis(x.shape, place):
            raise ShapeError(
                f"diff: expected prepend and append of the sizes of {x.shape} along all axes but {place}, "
                f"got {part.shape}; write ta.expand_dims or ta.broadcast_to first"
            )
    parts: list[A] = [part for part in (prepend, x, append) if part is not None]
    joined: Any = concat(parts, axis=place) if len(parts) > 1 else x
    check_kind("diff", joined.dtype, ANY)
    difference = not_equal if joined.dtype == bool_ else subtract
    if not times:
        return x
    before = (slice(None),) * place
    for _ in range(min(times, joined.shape[place] + 1)):  # once more than there are elements: the result has a dtype
        operands = get(joined, (*before, slice(1, None))), get(joined, (*before, slice(-1)))
        joined = difference(*operands)
        remember_launch(words, x, difference, operands, joined)
    return joined


def _end(x: ArrayBase, axis: int, part: Any, name: str) -> Any:
    """Data to join to `x`: a number or a 0-d array stands for an array of size 1 along the axis."""
    if part is None:
        return None
    part = as_array_beside("diff", part, x, name) if classify(part) is None else typed(x, part, "diff")
    return part if part.ndim else broadcast_to(part, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
