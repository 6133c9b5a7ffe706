"""Scans by NumPy: integers exactly, floats accumulated in float64 and rounded once.

The operand is read in blocks along the axis, whose elements are rounded to the dtype of the result first.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from tilearray_host.casts import accumulator, cast, converted

DType = np.dtype[Any]
BLOCK = 2**16
"""The elements of a block: its copies stay in a processor's cache."""


def cumulative_sum(x: np.ndarray, axis: int, dtype: DType, include_initial: bool, /) -> np.ndarray:
    """Return the sums of all elements up to each one along an axis; the elements are rounded to a dtype first.

    >>> cumulative_sum(np.array([1, 2, 3], np.int8), 0, np.dtype(np.int64), True)
    array([0, 1, 3, 6])
    """
    return _scanned(np.add, x, axis, dtype, include_initial)


def cumulative_prod(x: np.ndarray, axis: int, dtype: DType, include_initial: bool, /) -> np.ndarray:
    """Return the products of all elements up to each one along an axis; the elements are rounded to a dtype first."""
    return _scanned(np.multiply, x, axis, dtype, include_initial)


def _scanned(ufunc: np.ufunc, x: np.ndarray, axis: int, dtype: DType, include_initial: bool) -> np.ndarray:
    """A running sum or product in the accumulator of its dtype: block after block along the axis."""
    wide, length = accumulator(dtype), x.shape[axis]
    first = int(include_initial)
    result = np.empty((*x.shape[:axis], length + first, *x.shape[axis + 1 :]), dtype)
    source, target = np.moveaxis(x, axis, 0), np.moveaxis(result, axis, 0)
    if include_initial:
        target[0] = ufunc.identity
    step = builtins.max(1, BLOCK * length // builtins.max(x.size, 1))
    with np.errstate(all="ignore"):
        last = None
        for start in range(0, length, step):
            block = cast(converted(source[start : start + step], dtype), wide)
            if last is not None:
                ufunc(last, block[0], out=block[:1])
            scanned = ufunc.accumulate(block, axis=0, dtype=wide)
            last = scanned[-1]
            cast(scanned, dtype, target[start + first : start + first + step])
    return result
