"""Sorting, searching and sets by NumPy.

The order is NumPy's: ascending, NaN last. Descending is the same order reversed, so NaN comes first. Sorting is
stable: by an algorithm that is, or by NumPy's fastest where no result can show the difference. Floats of 16 bits are
sorted as integers, if equal ones have equal bits and no index is asked. Else float16 has NumPy's own order; bfloat16
and float8 are sorted as float32, which holds all of their values. Indices and counts are int64.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np

from tilearray_host.casts import computable, converted, dtype_named
from tilearray_host.parts import has_nan
from tilearray_host.stable_order import stable_order

DType = np.dtype[Any]
BLOCK = 2**16
"""The elements that are converted at a time."""

_INT64 = dtype_named("int64")


def nonzero(x: np.ndarray, /) -> tuple[np.ndarray, ...]:
    """Return the indices of all elements other than 0 along each axis, in C order."""
    return np.nonzero(x if _sorts(x.dtype) else converted(x, dtype_named("bool")))


def sort(x: np.ndarray, axis: int, descending: bool, /) -> np.ndarray:
    """Return a sorted copy in C order.

    >>> sort(np.array([2, 3, 1]), 0, True)
    array([3, 2, 1])
    """
    codes = codes_of(x)
    if codes is not None:
        codes.sort(axis, kind=_sort_kind(codes))
        if descending:
            _reverse(codes, axis)
        return from_codes(codes, x.dtype)
    source = np.flip(x, axis) if descending else x
    ordered = _copied(source)
    if ordered.dtype.kind != "f":
        ordered.sort(axis, kind=_sort_kind(ordered))
    elif ordered.size:
        # Before the sort: with AVX2, NumPy's sort may store 0.0 for -0.0.
        shows_order = _has_negative_zero(ordered)
        if not shows_order:
            ordered.sort(axis)
            shows_order = _ends_in_nan(ordered, axis)
        if shows_order:
            ordered = _copied(source)
            ordered = np.take_along_axis(ordered, stable_order(ordered, axis), axis)
    if descending:
        _reverse(ordered, axis)
    return converted(ordered, x.dtype)


def _copied(x: np.ndarray) -> np.ndarray:
    """A copy of an array in C order, in a dtype that NumPy orders."""
    return np.array(x, order="C") if _sorts(x.dtype) else _ordered(x)


def _ends_in_nan(ordered: np.ndarray, axis: int) -> bool:
    """Whether sorted floats hold a NaN, which is the last of its lane."""
    last = ordered[-1] if ordered.ndim == 1 else ordered.take(-1, axis)
    is_nan = last != last
    return bool(is_nan if ordered.ndim == 1 else is_nan.any())


def argsort(x: np.ndarray, axis: int, descending: bool, stable: bool, /) -> np.ndarray:
    """Return the indices that sort an array; equal elements keep their order if `stable` says so."""
    source = np.flip(x, axis) if descending else x
    order = stable_order(_ordered(source), axis) if stable else np.argsort(_ordered(source), axis)
    if descending:
        _reverse(order, axis)
        np.subtract(x.shape[axis] - 1, order, out=order)
    return order


def partition(x: np.ndarray, places: np.ndarray, axis: int, /) -> np.ndarray:
    """Return a copy in C order with the elements that a sort puts at some places there, and the lesser ones before.

    >>> partition(np.array([2, 3, 1]), np.array([0]), 0)[0]
    np.int64(1)
    """
    ordered = _ordered(x)
    if _has_unlike_equals(ordered):
        ordered = np.take_along_axis(ordered, np.argpartition(ordered, places, axis), axis)
    else:
        ordered = np.partition(ordered, places, axis)
    return np.ascontiguousarray(converted(ordered, x.dtype))


def argpartition(x: np.ndarray, places: np.ndarray, axis: int, /) -> np.ndarray:
    """Return the indices of an order that `partition` may return."""
    return np.ascontiguousarray(np.argpartition(_ordered(x), places, axis))


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
    codes = None if indices or inverse else codes_of(x)
    if codes is not None:
        found = unique(codes, False, False, counts)
        return found._replace(values=from_codes(found.values, x.dtype))
    flat = _ordered(x).reshape(-1)
    kind = _kind_for(flat)
    order = None
    if kind and flat.dtype.kind == "f":
        order = stable_order(flat)
    elif indices or inverse:
        order = np.argsort(flat, kind=kind)
    if order is None:
        ordered = flat.copy() if np.may_share_memory(flat, x) else flat
        ordered.sort(kind=_sort_kind(ordered) if ordered.dtype.kind in "iu" else kind)
    else:
        ordered = flat[order]
    is_first = _is_first(ordered)
    values = converted(ordered[is_first], x.dtype)
    del ordered, flat
    starts = np.flatnonzero(is_first) if counts or (indices and kind is None) else None
    firsts = None
    if order is not None and indices:
        firsts = order[is_first] if starts is None or kind else _first_places(order, starts)
    return Unique(
        values,
        firsts,
        _inverse(order, is_first, x.shape) if inverse and order is not None else None,
        _distances(starts, x.size) if counts and starts is not None else None,
    )


def _is_first(ordered: np.ndarray) -> np.ndarray:
    """Whether each element of a sorted array differs from the one before it."""
    is_first = np.empty(ordered.size, bool)
    is_first[:1] = True
    with np.errstate(all="ignore"):
        np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return is_first


def _first_places(order: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The least of the indices in each run of equal elements."""
    return np.minimum.reduceat(order, starts) if starts.size else order


def _distances(starts: np.ndarray, end: int) -> np.ndarray:
    """The lengths of runs that start at these places."""
    lengths = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    lengths[-1:] = end - starts[-1:]
    return lengths


def isin(x: np.ndarray, others: np.ndarray, dtype: DType | None, invert: bool, /) -> np.ndarray:
    """Return for each element whether it is among others, compared in a dtype, or as integers if it is None."""
    with np.errstate(all="ignore"):
        if dtype is not None:
            return np.isin(_ordered(converted(x, dtype)), _ordered(converted(others, dtype)), invert=invert)
        limits, own = np.iinfo(x.dtype), np.iinfo(others.dtype)
        low, high = max(limits.min, own.min), min(limits.max, own.max)  # beyond `own`, NumPy 2.1 ends the process
        fitting = others[(others >= low) & (others <= high)]
        return np.isin(x, fitting.astype(x.dtype, copy=False), invert=invert)


# --- shared parts ----------------------------------------------------------------------------------------------------


def _sorts(dtype: DType) -> bool:
    """Whether NumPy itself orders a dtype, and finds its zeros."""
    return dtype.isbuiltin == 1


_RADIX = 2
"""The most bytes of integers whose stable sort is a radix sort."""


def _kind_for(x: np.ndarray) -> Literal["stable"] | None:
    """The algorithm whose result is that of a stable sort: NumPy's default (None), if equal elements have equal bits.

    Its stable sort of integers of few bytes is a radix sort: faster by a factor of 10 than its default without AVX-512.
    Zeros of both signs are equal, and so are NaNs of different bits. Complex numbers have several of each.
    """
    if x.dtype.kind in "biu":
        return "stable" if x.dtype.itemsize <= _RADIX else None
    if not x.size:
        return None
    return "stable" if x.dtype.kind != "f" or _has_unlike_equals(x) else None


def _sort_kind(x: np.ndarray) -> Literal["stable"] | None:
    """The faster algorithm for a sort of integers without indices: for 16 bits NumPy's default, if it is vectorized."""
    return None if x.dtype.itemsize == 2 and _are_shorts_vectorized() else _kind_for(x)


@cache
def _are_shorts_vectorized() -> bool:
    """Whether NumPy sorts 16 bits by vectors on this processor: else its default takes 20 times as long."""
    config: Any = np.show_config(mode="dicts")
    return "AVX512_ICL" in config.get("SIMD Extensions", {}).get("found", [])


def codes_of(x: np.ndarray) -> np.ndarray | None:
    """A copy in C order of 16-bit floats as int16 in their order: the bits, those below the sign reversed by it.

    None for other dtypes, and if equals may have other bits: a zero that is negative, or a NaN.

    >>> codes_of(np.float16([1.0, -1.0, 2.0])).tolist()
    [15360, -15361, 16384]
    """
    if x.dtype not in _INFINITY or not x.size:
        return None
    codes = np.array(x, order="C").view(np.int16)
    low, high = np.minimum.reduce(codes, None), np.maximum.reduce(codes, None)
    infinity = _INFINITY[x.dtype]
    if low == -(2**15) or high > infinity:
        return None
    if low < 0:
        _reverse_negative(codes)
        if np.minimum.reduce(codes, None) < ~infinity:
            return None
    return codes


def from_codes(codes: np.ndarray, dtype: DType) -> np.ndarray:
    """The floats of codes, in their memory."""
    _reverse_negative(codes)
    return codes.view(dtype)


def _reverse_negative(codes: np.ndarray) -> None:
    """Reverse the bits of negative codes below the sign, in place."""
    signs = codes >> 15
    signs &= 2**15 - 1
    codes ^= signs


_INFINITY = {dtype_named("float16"): 0x7C00, dtype_named("bfloat16"): 0x7F80}


def _has_unlike_equals(x: np.ndarray) -> bool:
    """Whether an array holds floats whose equals may have other bits, which NumPy's vectorized sorts may store."""
    return x.dtype.kind == "f" and x.size > 0 and (has_nan(x) or _has_negative_zero(x))


def _has_negative_zero(x: np.ndarray) -> bool:
    """Whether an array of floats, of at least one element, holds -0.0: the least integer in its bits."""
    codes, negative_zero = _NEGATIVE_ZERO[x.itemsize]
    return bool(np.minimum.reduce(x.view(codes), None) == negative_zero)


_NEGATIVE_ZERO = {size: (np.dtype(f"i{size}"), np.iinfo(f"i{size}").min) for size in (2, 4, 8)}
"""For each itemsize of floats: the integers of their bits, and those of -0.0."""


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
