"""Sorting, searching and sets by NumPy.

The order is NumPy's: ascending, NaN last. Descending is the same order reversed, so NaN comes first. Sorting is
stable. float16 has NumPy's own order; bfloat16 and float8 are sorted as float32, which holds all of their values.
Indices and counts are int64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tilearray_host.casts import computable, converted, dtype_named

DType = np.dtype[Any]
BLOCK = 2**16
"""The elements that are converted at a time."""

_FLOAT16, _INT64 = dtype_named("float16"), dtype_named("int64")


def argmax(x: np.ndarray, axis: int | None, keepdims: bool, /) -> np.ndarray:
    """Return the index of the first largest element, or of the first NaN; without an axis in C order.

    >>> argmax(np.array([[1, 5], [4, 3]]), 1, False)
    array([1, 0])
    """
    return _position(np.argmax, np.greater, x, axis, keepdims)


def argmin(x: np.ndarray, axis: int | None, keepdims: bool, /) -> np.ndarray:
    """Return the index of the first smallest element, or of the first NaN; without an axis in C order."""
    return _position(np.argmin, np.less, x, axis, keepdims)


def nonzero(x: np.ndarray, /) -> tuple[np.ndarray, ...]:
    """Return the indices of all elements other than 0 along each axis, in C order."""
    return np.nonzero(x if _sorts(x.dtype) else converted(x, dtype_named("bool")))


def sort(x: np.ndarray, axis: int, descending: bool, /) -> np.ndarray:
    """Return a sorted copy in C order.

    >>> sort(np.array([2, 3, 1]), 0, True)
    array([3, 2, 1])
    """
    source = np.flip(x, axis) if descending else x
    ordered = np.array(source, order="C") if _sorts(x.dtype) else _ordered(source)
    ordered.sort(axis, kind="stable")
    if descending:
        _reverse(ordered, axis)
    return converted(ordered, x.dtype)


def argsort(x: np.ndarray, axis: int, descending: bool, /) -> np.ndarray:
    """Return the indices that sort an array."""
    source = np.flip(x, axis) if descending else x
    order = np.argsort(_ordered(source), axis, "stable")
    if descending:
        _reverse(order, axis)
        np.subtract(x.shape[axis] - 1, order, out=order)
    return order


def searchsorted(x: np.ndarray, values: np.ndarray, dtype: DType, side: str, order: np.ndarray | None, /) -> np.ndarray:
    """Return where values belong in a sorted 1-d array; all are rounded to one dtype, and `order` sorts the array."""
    row, wanted = _ordered(converted(x, dtype)), _ordered(converted(values, dtype))
    row = row if order is None else row[order]
    return np.asarray(np.searchsorted(row, wanted, side="left" if side == "left" else "right"))


class Unique(NamedTuple):
    """The distinct elements, and all that was asked for about them."""

    values: np.ndarray
    indices: np.ndarray | None
    inverse: np.ndarray | None
    counts: np.ndarray | None


def unique(x: np.ndarray, indices: bool, inverse: bool, counts: bool, /) -> Unique:
    """Return the distinct elements in ascending order. Every NaN is distinct; of equal elements the first counts.

    Parameters
    ----------
    x : ndarray
    indices, inverse, counts : bool
        Whether to return where each comes first, which of them each element of x is, and how often each comes.

    >>> unique(np.array([5, 3, 5]), False, False, True)
    Unique(values=array([3, 5]), indices=None, inverse=None, counts=array([1, 2]))
    """
    flat = _ordered(x).reshape(-1)
    order = np.argsort(flat, kind="stable") if indices or inverse else None
    if order is None:
        ordered = flat.copy() if np.may_share_memory(flat, x) else flat
        ordered.sort(kind="stable")
    else:
        ordered = flat[order]
    is_first = np.empty(flat.size, bool)
    is_first[:1] = True
    with np.errstate(all="ignore"):
        np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    values = converted(ordered[is_first], x.dtype)
    del ordered, flat
    times = np.diff(np.flatnonzero(is_first), append=x.size) if counts else None
    firsts = None if order is None or not indices else order[is_first]
    return Unique(values, firsts, _inverse(order, is_first, x.shape) if inverse and order is not None else None, times)


def isin(x: np.ndarray, others: np.ndarray, dtype: DType | None, invert: bool, /) -> np.ndarray:
    """Return for each element whether it is among others, compared in a dtype, or as integers if it is None."""
    with np.errstate(all="ignore"):
        if dtype is not None:
            return np.isin(_ordered(converted(x, dtype)), _ordered(converted(others, dtype)), invert=invert)
        limits = np.iinfo(x.dtype)
        fitting = others[(others >= limits.min) & (others <= limits.max)]  # NumPy compares integers as numbers
        return np.isin(x, fitting.astype(x.dtype, copy=False), invert=invert)


# --- shared parts ----------------------------------------------------------------------------------------------------


def _sorts(dtype: DType) -> bool:
    """Whether NumPy itself orders a dtype, and finds its zeros."""
    return dtype.isbuiltin == 1


def _ordered(x: np.ndarray) -> np.ndarray:
    """The same values in a dtype that NumPy orders: x itself, or a copy."""
    return x if _sorts(x.dtype) else computable(x)


def _reverse(x: np.ndarray, axis: int) -> None:
    """Reverse an array along an axis in place; half of it is copied."""
    lanes = np.moveaxis(x, axis, 0)
    half = len(lanes) // 2
    front = lanes[:half].copy()
    lanes[:half] = lanes[: len(lanes) - half - 1 : -1]
    lanes[len(lanes) - half :] = front[::-1]


def _inverse(order: np.ndarray, is_first: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The number of each element among the distinct ones, in the places of the elements."""
    numbers = np.cumsum(is_first, dtype=_INT64)
    numbers -= 1
    inverse = np.empty(order.size, _INT64)
    inverse[order] = numbers
    return inverse.reshape(shape)


def _position(
    search: Callable[..., Any], beats: np.ufunc, x: np.ndarray, axis: int | None, keepdims: bool
) -> np.ndarray:
    if _sorts(x.dtype):
        return np.asarray(search(x, axis=axis, keepdims=keepdims))
    if axis is None:
        found = _position_in_blocks(search, beats, x.reshape(-1), 0)
        return found.reshape((1,) * x.ndim) if keepdims else found.reshape(())
    found = _position_in_blocks(search, beats, x, axis)
    return found if keepdims else found.squeeze(axis)


def _position_in_blocks(search: Callable[..., Any], beats: np.ufunc, x: np.ndarray, axis: int) -> np.ndarray:
    """The first best index along an axis, which stays with size 1; blocks along the axis become float32."""
    lanes = np.moveaxis(x, axis, 0)
    step = max(1, BLOCK * len(lanes) // max(x.size, 1))
    best: Any = None
    place: Any = None
    for start in range(0, len(lanes), step):
        block = computable(lanes[start : start + step])
        found = search(block, axis=0, keepdims=True)
        value = np.take_along_axis(block, found, 0)
        if best is None:
            best, place = value, found
            continue
        with np.errstate(all="ignore"):
            better = (beats(value, best) | np.isnan(value)) & ~np.isnan(best)
        np.copyto(best, value, where=better)
        np.copyto(place, found + start, where=better)
    return np.moveaxis(place, 0, axis)
