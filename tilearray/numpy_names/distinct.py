"""Distinct elements, sets and orders by NumPy's names. On the host NumPy computes what `unique_all` and `sort` do not.

On a GPU arrays of one dtype are sorted there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from tilearray.arrays.array import Array
from tilearray.functions.arguments import as_array, by_expressions
from tilearray.functions.distinct import distinct
from tilearray.functions.indexing.take import take_along_axis
from tilearray.functions.joining import concat, stack
from tilearray.functions.manipulation import new_like, reshape, unstack
from tilearray.functions.searching import argsort, nonzero, sort
from tilearray.functions.sets import isin
from tilearray.numpy_names.through_numpy import by_numpy, exact
from tilearray.ops.arithmetic import bitwise_and, bitwise_invert, not_equal
from tilearray.ops.execute import fill


@overload
def unique(ar: Any, *, axis: int | None = None, equal_nan: bool = True) -> Array: ...
@overload
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Any: ...
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Any:
    """Return the sorted distinct elements; on the host with an axis the distinct slices along it.

    Parameters
    ----------
    ar : Array
    return_index, return_inverse, return_counts : bool
        Whether to return as well the first place of each, the place of each element of `ar` among them, and how often
        each occurs.
    axis : int, optional
    equal_nan : bool
        Whether all NaN count as one; for `unique_values` each is distinct.

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
    if axis is None and _are_there(ar):
        found = distinct(as_array("unique", ar), return_index, return_inverse, return_counts, equal_nan=equal_nan)
        parts = tuple([part for part in found if part is not None])
        return parts if len(parts) > 1 else found.values
    return by_numpy("unique", (ar,), return_index, return_inverse, return_counts, axis, equal_nan=equal_nan)


def union1d(ar1: Any, ar2: Any) -> Array:
    """Return the sorted distinct elements of two arrays.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.union1d([3, 1], [1, 2])
    Array([1, 2, 3], dtype=int64, device='cpu')
    """
    if _are_there(ar1, ar2):
        return unique(concat([reshape(ar1, -1), reshape(ar2, -1)]))
    return by_numpy("union1d", (ar1, ar2))


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """Return the sorted distinct elements that two arrays have in common; on the host with their places if asked.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.intersect1d([3, 1], [1, 2])
    Array([1], dtype=int64, device='cpu')
    """
    if _are_there(ar1, ar2) and not return_indices:
        both, differ = _neighbours(ar1, ar2, assume_unique)
        return both[:-1][bitwise_invert(differ)]
    return by_numpy("intersect1d", (ar1, ar2), assume_unique, return_indices)


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Array:
    """Return the sorted distinct elements of the first array that are not in the second.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.setdiff1d([3, 1], [1, 2])
    Array([3], dtype=int64, device='cpu')
    """
    if _are_there(ar1, ar2):
        first = reshape(ar1, -1) if assume_unique else unique(ar1)
        return first[isin(first, ar2 if assume_unique else unique(ar2), invert=True)]
    return by_numpy("setdiff1d", (ar1, ar2), assume_unique)


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Array:
    """Return the sorted distinct elements that are in one of two arrays only.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.setxor1d([3, 1], [1, 2])
    Array([2, 3], dtype=int64, device='cpu')
    """
    if _are_there(ar1, ar2):
        both, differ = _neighbours(ar1, ar2, assume_unique)
        end = fill(new_like(differ, (1,)), True, "setxor1d")
        ends = concat([end, differ, end]) if both.size else concat([differ, end])
        return both[bitwise_and(ends[1:], ends[:-1])]
    return by_numpy("setxor1d", (ar1, ar2), assume_unique)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Array:
    """Return the differences of neighbours of all elements, with others joined to the ends, on the host.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.ediff1d([1, 4, 9], to_end=0)
    Array([3, 5, 0], dtype=int64, device='cpu')
    """
    return by_numpy("ediff1d", (ary,), exact(to_end), exact(to_begin))


def _are_there(first: Any, *others: Any) -> bool:
    """Whether all are arrays of one dtype on a device that sorts by expressions."""
    if not (isinstance(first, Array) and by_expressions(first)):
        return False
    return all(isinstance(x, Array) and x.device is first.device and x.dtype == first.dtype for x in others)


def _neighbours(x: Any, y: Any, are_unique: bool) -> tuple[Any, Any]:
    """The distinct elements of both arrays, sorted, and whether neighbours differ."""
    both = sort(concat([reshape(each, -1) if are_unique else unique(each) for each in (x, y)]))
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
    several: Sequence[Any] = unstack(keys) if isinstance(keys, Array) else keys
    if several and _are_there(several[0]) and all(isinstance(each, Array) for each in several):
        return _order_there(several, axis)
    arrays = keys if isinstance(keys, Array) else stack([as_array("lexsort", key) for key in keys])
    return by_numpy("lexsort", (arrays,), axis)


def _order_there(keys: Sequence[Array], axis: int) -> Array:
    """The order of rows by several keys on a device that sorts by expressions."""
    order = argsort(keys[0], axis)
    for key in keys[1:]:
        order = take_along_axis(order, argsort(take_along_axis(key, order, axis), axis), axis)
    return order


def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Array:
    """Return a copy with the element at `kth` in its sorted place, no greater one before it and no smaller one after.

    The copy is sorted, which is one such order.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.partition([3, 1, 2], 1)
    Array([1, 2, 3], dtype=int64, device='cpu')
    """
    del kth, kind
    return sort(as_array("partition", a), axis)


def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Array:
    """Return the indices of the order that `partition` returns.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.argpartition([3, 1, 2], 1)
    Array([1, 2, 0], dtype=int64, device='cpu')
    """
    del kth, kind
    return argsort(as_array("argpartition", a), axis)


def flatnonzero(a: Any) -> Array:
    """Return the places of the elements other than 0 among all elements in C order.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.flatnonzero([[0, 7], [8, 0]])
    Array([1, 2], dtype=int64, device='cpu')
    """
    return nonzero(reshape(as_array("flatnonzero", a), -1))[0]


def argwhere(a: Any) -> Array:
    """Return the indices of the elements other than 0: a row for each.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.argwhere([[0, 7], [8, 0]]).tolist()
    [[0, 1], [1, 0]]
    """
    x = as_array("argwhere", a)
    if not x.ndim:
        return reshape(nonzero(reshape(x, 1))[0], (-1, 1))[:, :0]
    return stack(nonzero(x), 1)


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Any, ...]:
    """Return the indices along each axis of places among all elements, on the host; of a Python int, Python ints.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.unravel_index(5, (2, 3))
    (1, 2)
    """
    if isinstance(indices, int):
        return tuple([int(one) for one in np.unravel_index(indices, shape, order)])  # type: ignore[arg-type]
    return by_numpy("unravel_index", (indices,), shape, order)


def ravel_multi_index(multi_index: Sequence[Any], dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    """Return the places among all elements of indices along each axis, on the host; of Python ints, a Python int.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.ravel_multi_index((1, 2), (2, 3))
    5
    """
    if all(isinstance(one, int) for one in multi_index):
        return int(np.ravel_multi_index(tuple(multi_index), dims, mode, order))  # type: ignore[arg-type]
    along = tuple([exact(as_array("ravel_multi_index", one)) for one in multi_index])
    return as_array("ravel_multi_index", np.ravel_multi_index(along, dims, mode, order))  # type: ignore[arg-type]
