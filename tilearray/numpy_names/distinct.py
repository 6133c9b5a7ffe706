"""Distinct elements, sets, orders and places by NumPy's names. On the host NumPy computes what others do not.

On a GPU arrays are sorted there. Calls wait for the number of distinct elements, which is the size of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.fills import zeros
from tilearray.engine.context import semantics
from tilearray.engine.devices import common_device
from tilearray.errors import DTypeError, ShapeError, shown
from tilearray.functions.arguments import (
    all_arrays,
    as_array,
    as_array_beside,
    by_expressions,
    check_kind,
    is_differentiated,
    listed,
    result,
    sorting_of,
)
from tilearray.functions.conversion import astype, to_numpy
from tilearray.functions.distinct import Distinct, complex_keys, distinct, distinct_rows, order_by, sorted_all
from tilearray.functions.indexing.take import take, take_along_axis
from tilearray.functions.joining import concat
from tilearray.functions.manipulation import moveaxis, new_like, reshape, unstack
from tilearray.functions.reduction_options import typed
from tilearray.functions.scans import diff
from tilearray.functions.searching import argsort, sort
from tilearray.functions.sets import isin
from tilearray.geometry.shapes import normalize_axis
from tilearray.numpy_names.on_device import There, there
from tilearray.numpy_names.through_numpy import by_numpy, exact, on_host, rounded
from tilearray.ops.arithmetic import (
    bitwise_and,
    bitwise_invert,
    equal,
    not_equal,
    subtract,
)
from tilearray.ops.execute import fill
from tilearray.ops.options import checked_flag
from tilearray.ops.row import NUMERIC, REAL
from tilearray.promotion.scalars import classify
from tilearray.promotion.storing import can_cast_same_kind


@overload
def unique(ar: Any, *, axis: int | None = None, equal_nan: bool = True, sorted: bool = True) -> Array: ...
@overload
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any: ...
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """Return the sorted distinct elements; with an axis the distinct slices along it.

    Parameters
    ----------
    ar : Array
    return_index, return_inverse, return_counts : bool
        Whether to return as well the first place of each, the place of each element of `ar` among them, and how often
        each occurs.
    axis : int, optional
        On a GPU slices are sorted once for each of their elements.
    equal_nan : bool
        Whether all NaN count as one; for `unique_values` each is distinct. Slices with NaN are all distinct.
    sorted : bool
        Ignored: the elements are always sorted.

    Returns
    -------
    Array, or tuple of Array

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.unique([5, 3, 5])
    Array([3, 5], dtype=int64, device='cpu')
    >>> [part.tolist() for part in ta.unique([5, 3, 5], return_counts=True)]
    [[3, 5], [1, 2]]
    """
    del sorted
    x, equal_nan = as_array("unique", ar), checked_flag("unique", "equal_nan", equal_nan)
    if not by_expressions(x):
        asked = (return_index, return_inverse, return_counts)
        return by_numpy("unique", (ar,), *asked, axis, equal_nan=equal_nan, compares=True)
    dtypes.check_arithmetic("unique", x.dtype)
    asked = (return_index, return_inverse, return_counts)
    found = distinct(x, *asked, equal_nan=equal_nan) if axis is None else _slices(x, axis, asked)
    parts = tuple([part for part in found if part is not None])
    return parts if len(parts) > 1 else found.values


def _slices(x: Any, axis: Any, asked: tuple[bool, bool, bool]) -> Distinct:
    """The distinct slices along an axis."""
    first = moveaxis(x, normalize_axis(axis, x.ndim, "unique"), 0)
    size = first.shape[0]
    found = distinct_rows(reshape(first, (size, math.prod(first.shape[1:]))), *asked)
    slices = reshape(found.values, (found.values.shape[0], *first.shape[1:]))
    return found._replace(values=moveaxis(slices, 0, axis))


def union1d(ar1: Any, ar2: Any) -> Array:
    """Return the sorted distinct elements of two arrays.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.union1d([3, 1], [1, 2])
    Array([1, 2, 3], dtype=int64, device='cpu')
    """
    given = _both_there("union1d", ar1, ar2)
    if given is None:
        return by_numpy("union1d", (ar1, ar2), compares=True)
    return given.finished(unique(concat([reshape(x, -1) for x in given.arrays])))


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """Return the sorted distinct elements that two arrays have in common, and their first places if asked.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.intersect1d([3, 1], [1, 2])
    Array([1], dtype=int64, device='cpu')
    """
    given = _both_there("intersect1d", ar1, ar2)
    if given is None:
        return by_numpy("intersect1d", (ar1, ar2), assume_unique, return_indices, compares=True)
    if return_indices:
        found, *places = _shared(given.arrays, assume_unique)
        return (given.finished(found), *places)
    both, differ = _neighbours(given.arrays, assume_unique)
    return given.finished(both[:-1][bitwise_invert(differ)])


def _shared(arrays: list[Array], are_unique: bool) -> tuple[Any, Any, Any]:
    """The elements of both arrays, sorted, and their first places in each."""
    flat = [reshape(each, -1) for each in arrays]
    firsts = [None, None] if are_unique else [distinct(each, True, False, False, equal_nan=True) for each in flat]
    parts = [each if first is None else first.values for each, first in zip(flat, firsts)]
    both = concat(parts)
    is_complex = dtypes.info(both.dtype).kind == "complex"
    order = order_by(complex_keys(both)) if is_complex else argsort(both)
    ordered = take(both, order)
    alike = equal(ordered[1:], ordered[:-1])
    places = [order[:-1][alike], subtract(order[1:][alike], parts[0].size)]
    found = [place if first is None else take(first.indices, place) for place, first in zip(places, firsts)]
    return ordered[:-1][alike], found[0], found[1]


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Array:
    """Return the sorted distinct elements of the first array that are not in the second, in the dtype of the first.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.setdiff1d([3, 1], [1, 2])
    Array([3], dtype=int64, device='cpu')
    """
    given = there("setdiff1d", (ar1, ar2))
    target = all_arrays("setdiff1d", [ar1, ar2])[0].dtype
    if given is None:
        return by_numpy("setdiff1d", (ar1, ar2), assume_unique, compares=True, floats=target)
    first, second = (reshape(x, -1) if assume_unique else unique(x) for x in given.arrays)
    with semantics("numpy"):
        stays = isin(first, second, invert=True)
    return rounded(first[stays], target)


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Array:
    """Return the sorted distinct elements that are in one of two arrays only.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.setxor1d([3, 1], [1, 2])
    Array([2, 3], dtype=int64, device='cpu')
    """
    given = _both_there("setxor1d", ar1, ar2)
    if given is None:
        return by_numpy("setxor1d", (ar1, ar2), assume_unique, compares=True)
    both, differ = _neighbours(given.arrays, assume_unique)
    end = fill(new_like(differ, (1,)), True, "setxor1d")
    ends = concat([end, differ, end]) if both.size else concat([differ, end])
    return given.finished(both[bitwise_and(ends[1:], ends[:-1])])


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Array:
    """Return the differences of neighbours of all elements, with others joined to the ends.

    Parameters
    ----------
    ary : Array
    to_end, to_begin : number or Array, optional
        Of a dtype that the dtype of `ary` can store.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.ediff1d([1, 4, 9], to_end=0)
    Array([3, 5, 0], dtype=int64, device='cpu')
    """
    x = as_array("ediff1d", ary)
    check_kind("ediff1d", x.dtype, NUMERIC)
    flat, ends = x if x.ndim == 1 else reshape(x, -1), [each for each in (to_begin, to_end) if is_differentiated(each)]
    first, last = _end(flat, to_begin, "to_begin"), _end(flat, to_end, "to_end")
    if not by_expressions(x, *ends):
        return by_numpy("ediff1d", (flat,), exact("ediff1d", last), exact("ediff1d", first))
    parts = [part for part in (first, diff(flat), last) if part is not None]
    return parts[0] if len(parts) == 1 else concat(parts)


def _end(x: Array, given: Any, name: str) -> Array | None:
    """Elements to join to an array, in its dtype."""
    if given is None:
        return None
    found: Array = typed(x, given, "ediff1d") if classify(given) is not None else as_array_beside("ediff1d", given, x)
    if not can_cast_same_kind(found.dtype, x.dtype):
        raise DTypeError(
            f"ediff1d: expected {name} of a dtype that {x.dtype.name} can store, got {found.dtype.name}; "
            f"write {name}.astype({x.dtype.name!r})"
        )
    return astype(reshape(found, -1), x.dtype, copy=False)


def _both_there(function: str, first: Any, second: Any) -> There | None:
    """Two arrays on a device that runs expressions, in NumPy's common dtype; None if they are on the host."""
    given = there(function, (first, second))
    if given is None:
        return None
    common = np.result_type(*[x.dtype for x in given.arrays])
    return given._replace(arrays=[astype(x, common, copy=False) for x in given.arrays])


def _neighbours(arrays: list[Array], are_unique: bool) -> tuple[Any, Any]:
    """The distinct elements of both arrays, sorted, and whether neighbours differ."""
    both = sorted_all(concat([reshape(each, -1) if are_unique else unique(each) for each in arrays]))
    return both, not_equal(both[1:], both[:-1])


# --- orders and places ---------------------------------------------------------------------------------------------


def lexsort(keys: Any, axis: int = -1) -> Array:
    """Return the indices that sort by several keys, the last one first.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.lexsort([[1, 2, 0], [5, 4, 5]])
    Array([1, 2, 0], dtype=int64, device='cpu')
    """
    several: Sequence[Any] = (
        unstack(keys) if isinstance(keys, Array) else all_arrays("lexsort", listed("lexsort", keys))
    )
    if several and by_expressions(*several):
        common_device("lexsort", [each._signature for each in several])
        return _order_there(several, axis)
    hosts = [on_host("lexsort", key) for key in all_arrays("lexsort", several)]
    return by_numpy("lexsort", (), hosts, axis)


def _order_there(keys: Sequence[Array], axis: int) -> Array:
    """The order of rows by several keys on a device that sorts by expressions."""
    if not keys[0].ndim:  # one element, along any axis
        return zeros((), dtype=dtypes.int64, device=keys[0].device)
    place = normalize_axis(axis, keys[0].ndim, "lexsort")
    first, *others = [real for key in keys for real in (complex_keys(key) if key.dtype.kind == "c" else [key])]
    order = argsort(first, place)
    for key in others:
        order = take_along_axis(order, argsort(take_along_axis(key, order, place), place), place)
    return order


def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Array:
    """Return a copy with the element at `kth` in its sorted place, no greater one before it and no smaller one after.

    On the host the order of the others is NumPy's. On a GPU the copy is sorted.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.partition([3, 1, 2], 1)
    Array([1, 2, 3], dtype=int64, device='cpu')
    """
    del kind
    return _partitioned("partition", a, kth, axis, sort)


def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Array:
    """Return the indices of an order that `partition` may return.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.argpartition([3, 1, 2], 1)
    Array([1, 2, 0], dtype=int64, device='cpu')
    """
    del kind
    return _partitioned("argpartition", a, kth, axis, argsort)


def _partitioned(function: str, a: Any, kth: Any, axis: int | None, ordered: Callable[..., Array]) -> Array:
    """Return what NumPy's function of this name returns, or `ordered(a, axis)` where NumPy does not compute."""
    x = as_array(function, a)
    _check_places(function, x, kth, axis)
    sorting = sorting_of(function, x)
    if sorting is None or not x.size:
        return ordered(x, axis)
    check_kind(function, x.dtype, REAL)
    places = np.asarray(exact(function, kth))
    rows, place = (reshape(x, -1), 0) if axis is None else (x, normalize_axis(axis, x.ndim, function))
    return result(getattr(sorting, function)(to_numpy(rows), places, place), rows)


def _check_places(function: str, x: Array, kth: Any, axis: Any) -> None:
    """Raise ShapeError if a place lies outside the axis. The values of an Array on a GPU are not read."""
    if not x.size or (isinstance(kth, Array) and not kth.device.backend.on_host):
        return
    size = x.size if axis is None else x.shape[normalize_axis(axis, x.ndim, function)]
    places = np.asarray(exact(function, kth))
    if places.dtype.kind not in "iu" or places.ndim > 1 or not ((-size <= places) & (places < size)).all():
        raise ShapeError(
            f"{function}: expected kth as integers from {-size} to {size - 1}, got {shown(kth)}; write kth={size // 2}"
        )
