"""Searching and sorting: where elements are, and their order.

The order is NumPy's: ascending, with NaN after all numbers. Descending is the same order reversed, so NaN comes first.
Sorting is stable. ``stable=False`` lets `argsort` put equal elements into any order, which takes less time on the
host; the result of `sort` is the same.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tilearray.engine import remembered
from tilearray.engine.array_type import A
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE, State
from tilearray.engine.devices import common_device
from tilearray.engine.signature import ArrayBase, HostData, check_array
from tilearray.errors import DTypeError, IndexingError, OperandError, ShapeError, shown
from tilearray.functions.arguments import (
    INDEX,
    as_array,
    as_array_beside,
    as_arrays,
    check_kind,
    common_dtype,
    result,
    sorting_of,
    without_derivative,
)
from tilearray.functions.conversion import single, to_numpy
from tilearray.functions.indexing.gather import gather, late_masks
from tilearray.functions.manipulation import reshape
from tilearray.functions.reduce import Words, again, reduce
from tilearray.functions.reduction_options import finished
from tilearray.functions.reductions import max, min
from tilearray.geometry.shapes import normalize_axis
from tilearray.ops.arithmetic import choose
from tilearray.ops.numbers import class_of, host_number, scalar_array
from tilearray.ops.options import checked_flag
from tilearray.ops.row import REAL
from tilearray.promotion.scalars import classify

if TYPE_CHECKING:
    from tilearray.engine.array_type import Array
    from tilearray.engine.signature import Operand


@cache
def _binary_search() -> Any:
    """Return a module that few programs need, as `late_masks`."""
    from tilearray.functions import binary_search

    return binary_search


def argmax(x: A | HostData, /, axis: int | None = None, out: A | None = None, *, keepdims: bool = False) -> A:
    """Return the index of the first largest element, or of the first NaN, as int64.

    Parameters
    ----------
    x : Array
        Of a real dtype or bool.
    axis : int, optional
        The axis to search; None counts through all elements in C order.
    out : Array, optional
        Takes the result, which it must have the shape of; it is returned.
    keepdims : bool
        Whether the result keeps the axis, or all axes, with size 1.

    Raises
    ------
    ShapeError
        If `x` has no such axis, or there are no elements to choose from.
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.argmax(ta.asarray([[1, 5], [4, 3]]), axis=1)
    Array([1, 0], dtype=int64, device='cpu')
    """
    words = ("argmax", axis, keepdims) if out is None else None
    known = again(words, x)
    if known is not None:
        return known
    keepdims = checked_flag("argmax", "keepdims", keepdims)
    x = as_array("argmax", x)
    place = _searched_axis("argmax", x, axis)
    return finished("argmax", _position("argmax", x, place, keepdims, words), out)


def argmin(x: A | HostData, /, axis: int | None = None, out: A | None = None, *, keepdims: bool = False) -> A:
    """Return the index of the first smallest element, or of the first NaN, as int64.

    Parameters and errors are those of `argmax`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.argmin(ta.asarray([[1, 5], [4, 0]])).item()
    3
    """
    words = ("argmin", axis, keepdims) if out is None else None
    known = again(words, x)
    if known is not None:
        return known
    keepdims = checked_flag("argmin", "keepdims", keepdims)
    x = as_array("argmin", x)
    place = _searched_axis("argmin", x, axis)
    return finished("argmin", _position("argmin", x, place, keepdims, words), out)


def _position(function: str, x: A, place: int | None, keepdims: bool, words: Words | None) -> A:
    axes = tuple(range(x.ndim)) if place is None else (place,)
    return reduce(function, x, axes, INDEX, keepdims, words=words)


def _searched_axis(function: str, x: ArrayBase, axis: Any) -> int | None:
    """The axis to search, which has elements; None means all of them."""
    check_kind(function, x.dtype, REAL)
    place = None if axis is None else normalize_axis(axis, x.ndim, function)
    if not (x.size if place is None else x.shape[place]):
        raise ShapeError(
            f"{function}: expected at least one element to choose from, got shape {x.shape}; "
            f"write ta.{function}(x) only if x.size > 0"
        )
    return place


def nonzero(x: A | HostData, /) -> tuple[A, ...]:
    """Return the indices of all elements other than 0, in C order: an int64 array for each axis.

    Raises
    ------
    ShapeError
        If `x` is 0-d.

    Notes
    -----
    On a GPU the call waits once for the number of elements.

    Examples
    --------
    >>> import tilearray as ta
    >>> [axis.tolist() for axis in ta.nonzero(ta.asarray([[0, 7], [8, 0]]))]
    [[0, 1], [1, 0]]
    """
    x = as_array("nonzero", x)
    if not x.ndim:
        raise ShapeError("nonzero: expected an array with axes, got a 0-d one; write ta.reshape(x, 1)")
    x = without_derivative(x)
    sorting = x.device.backend.sorting
    if sorting is None:
        return late_masks().places_of(x)
    return tuple([result(places, x) for places in sorting.nonzero(to_numpy(x))])


@overload
def where(condition: A, /) -> tuple[A, ...]: ...
@overload
def where(condition: Operand, x1: Operand, x2: Operand, /, *, out: ArrayBase | None = None) -> Array: ...
def where(
    condition: Any, x1: Any = None, x2: Any = None, /, *, out: ArrayBase | None = None
) -> Array | tuple[Any, ...]:
    """Return elements of `x1` where a condition holds, else of `x2`; without both, the indices where it holds.

    Parameters
    ----------
    condition : Array or bool
        Elements other than 0 are true, NaN among them.
    x1, x2 : Array or number, optional
        They broadcast against the condition. Without them the result is that of `nonzero`.
    out : Array, optional
        The target of the result.

    Returns
    -------
    Array, or tuple of Array
        Of the common dtype of `x1` and `x2`; or an int64 array of indices for each axis.

    Raises
    ------
    OperandError
        If only one of `x1` and `x2` is given.
    PromotionError, BroadcastError
        If the operands have no common dtype or shape.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.where(ta.asarray([True, False]), 1, ta.asarray([10, 20]))
    Array([ 1, 20], dtype=int64, device='cpu')
    >>> ta.where(ta.asarray([3, 0, 5]))
    (Array([0, 2], dtype=int64, device='cpu'),)
    """
    if x2 is not None and x1 is not None:
        return choose(condition, x1, x2) if out is None else choose(condition, x1, x2, out=out)
    if x1 is not None or x2 is not None or out is not None:
        raise OperandError(
            "where: expected a condition and two operands, or a condition alone; write ta.where(condition, x1, x2)"
        )
    return nonzero(condition)


def searchsorted(x1: A, /, v: Any, side: str = "left", sorter: A | None = None) -> A:
    """Return the indices at which to insert values into a sorted array so that it stays sorted.

    Parameters
    ----------
    x1 : Array
        Of shape (M,) and a real dtype; in the order of `sort`, or of any order with a `sorter`.
    v : Array or number
        The values to search for, compared in the common dtype. NaN is the last in the order.
    side : {"left", "right"}
        Whether to insert before or after equal elements.
    sorter : Array, optional
        Indices of shape (M,), as `argsort` returns them.

    Returns
    -------
    Array
        Of the shape of `v`, int64, from 0 to M.

    Raises
    ------
    ShapeError
        If `x1` is not 1-d, `sorter` has another shape, or `side` is another word.
    IndexingError
        If an index of `sorter` is out of bounds.
    DTypeError
        If a dtype is complex, or that of `sorter` is not an integer.
    DeviceError
        If the arrays are on several devices.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.searchsorted(ta.asarray([10, 20, 30]), ta.asarray([20, 35]))
    Array([1, 3], dtype=int64, device='cpu')
    """
    words = side, STATE.get().semantics.key, State.changes
    known = _searched_again(words, x1, v) if sorter is None and side.__class__ is str else None
    if known is not None:
        return known
    x1, x2 = as_arrays("searchsorted", (x1, v))
    check_array("searchsorted", x1)
    x1 = without_derivative(x1)
    sorting = sorting_of("searchsorted", x1)
    if x1.ndim != 1:
        raise ShapeError(f"searchsorted: expected a 1-d array, got shape {x1.shape}; write ta.reshape(x1, -1)")
    if side not in ("left", "right"):
        raise ShapeError(f"searchsorted: expected side as 'left' or 'right', got {shown(side)}; write one of the two")
    order = None if sorter is None else _order(as_array_beside("searchsorted", sorter, x1, "sorter"), x1)
    is_number = classify(x2) is not None
    if not is_number:
        check_array("searchsorted", x2)
        x2 = without_derivative(x2)
        common_device("searchsorted", [x1._signature, x2._signature])
    dtype = common_dtype("searchsorted", [x1.dtype, class_of(x2) if is_number else x2.dtype], REAL)
    if sorting is None:
        values = scalar_array(host_number(x2, dtype, "searchsorted"), x1.device, "searchsorted") if is_number else x2
        if order is None and values is v:
            _SEARCHED.put((x1._signature, values._signature, *words), dtype)
        return _binary_search().search(x1 if order is None else gather(x1, order), values, dtype, side)
    wanted = host_number(x2, dtype, "searchsorted") if is_number else to_numpy(x2)
    given = None if order is None else to_numpy(order)
    return result(sorting.searchsorted(to_numpy(x1), wanted, dtype, side, given), x1)


_SEARCHED: TwoGenerations[np.dtype] = TwoGenerations(512)
"""The common dtype of arrays that passed all checks, by their signatures and the words of the call."""


def _searched_again(words: tuple[Any, ...], x: Any, values: Any) -> Any:
    """Return the places of values if arrays of these signatures were searched before; None if they were not."""
    if not issubclass(type(x), ArrayBase) or not issubclass(type(values), ArrayBase):
        return None
    dtype = _SEARCHED.get((x._signature, values._signature, *words))
    if dtype is None:
        return None
    return _binary_search().search(x, values, dtype, words[0])


def _order(sorter: Any, x: ArrayBase) -> Any:
    """The indices of a sorter of `x`, checked."""
    size = x.size
    common_device("searchsorted", [x._signature, sorter._signature])
    if sorter.dtype.kind not in "iu":
        raise DTypeError(
            f"searchsorted: expected integers in sorter, got {sorter.dtype.name}; write sorter=ta.argsort(x1)"
        )
    if sorter.shape != (size,):
        raise ShapeError(
            f"searchsorted: expected sorter of shape {(size,)}, got {sorter.shape}; write sorter=ta.argsort(x1)"
        )
    if size:
        low, high = single(min(sorter), "searchsorted"), single(max(sorter), "searchsorted")
        if not 0 <= low <= high < size:
            raise IndexingError(
                f"searchsorted: expected indices from 0 to {size - 1} in sorter, got {low} to {high}; "
                f"write sorter=ta.argsort(x1)"
            )
    return sorter


def sort(
    x: A | HostData,
    /,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
) -> A:
    """Return a sorted copy.

    Parameters
    ----------
    x : Array
        Of a real dtype or bool.
    axis : int or None
        The axis to sort along; None sorts all elements, as one axis.
    kind : str, optional
        Ignored: NumPy's names of algorithms.
    descending : bool
        Whether the largest element comes first, after NaN; else NaN comes last.
    stable : bool
        False allows `argsort` to put equal elements into any order; it makes no difference to `sort`.

    Raises
    ------
    ShapeError
        If `x` has no such axis.
    DTypeError
        If `x` is complex.

    Notes
    -----
    Elements that are equal, zeros of both signs and NaNs of different bits among them, keep their order. A GPU sorts
    rows of up to 4096 elements in one launch, and longer ones in some launches for eight bits (`docs/gpu.md`). Of 2**23
    integers of 64 bits, or 2**24 float64 in one row, or more, it looks at some first, and the call waits for them.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.sort(ta.asarray([2, 3, 1]), descending=True)
    Array([3, 2, 1], dtype=int64, device='cpu')
    """
    descending = checked_flag("sort", "descending", descending)
    x = as_array("sort", x)
    del kind, stable
    known = _known_rows(("sort", descending), x, axis)
    if known is not None:
        return known
    x, place = _sorted_axis("sort", x, axis)
    sorting = sorting_of("sort", x)
    if sorting is None:
        from tilearray.functions.ordering import sorted_along  # here: few programs need it

        return sorted_along(x, place, descending)
    return result(sorting.sort(to_numpy(x), place, descending), x)


def argsort(
    x: A | HostData,
    /,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
) -> A:
    """Return the indices that sort an array, as int64. Parameters and errors are those of `sort`.

    Notes
    -----
    A GPU looks at some elements of 64 bits first, and the call waits for them, as for `sort`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.argsort(ta.asarray([2, 3, 2, 1]), descending=True)
    Array([1, 0, 2, 3], dtype=int64, device='cpu')
    """
    descending = checked_flag("argsort", "descending", descending)
    stable = stable is None or checked_flag("argsort", "stable", stable)
    x = as_array("argsort", x)
    del kind
    known = _known_rows(("argsort", descending, None), x, axis)
    if known is not None:
        return known
    x, place = _sorted_axis("argsort", x, axis)
    sorting = sorting_of("argsort", x)
    if sorting is None:
        from tilearray.functions.ordering import order_along  # here: few programs need it

        return order_along(x, place, descending)
    return result(sorting.argsort(to_numpy(x), place, descending, stable), x)


def _known_rows(words: Words, x: ArrayBase, axis: Any) -> Any:
    """Make the call that `ordering` remembers for rows along the last axis of an array; None if there is none."""
    is_known = x._signature.device.backend.sorting is None and axis.__class__ is int and axis in (-1, x.ndim - 1)
    return remembered.again(words, x) if is_known else None


def _sorted_axis(function: str, x: A, axis: Any) -> tuple[A, int]:
    """The array to sort, and its axis: all elements in one axis if none is named."""
    check_kind(function, x.dtype, REAL)
    return (reshape(x, -1), 0) if axis is None else (x, normalize_axis(axis, x.ndim, function))
