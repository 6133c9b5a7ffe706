"""Reductions and scans by NumPy: integers exactly, floats accumulated in float64 and rounded once.

NumPy casts the elements to the accumulator in its own buffers, so that no copy of the operand is made. Where the
elements must be rounded or computed first, the operand is read in blocks. The order of accumulation depends on shape,
strides and dtype alone.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilearray_host.casts import accumulator, cast, computable, converted, is_narrow_float

Ints = tuple[int, ...]
DType = np.dtype[Any]
BLOCK = 2**16
"""The elements of a block: its copies stay in a processor's cache."""

_BOOL, _INT64, _FLOAT32, _FLOAT64 = (np.dtype(name) for name in ("bool", "int64", "float32", "float64"))


def sum(x: np.ndarray, axes: Ints, dtype: DType, keepdims: bool, /) -> np.ndarray:
    """Return the sum of elements, each rounded to a dtype first.

    >>> sum(np.array([200, 100], np.uint8), (0,), np.dtype(np.uint64), False)
    array(300, dtype=uint64)
    """
    return _folded(np.add, x, axes, dtype, keepdims)


def prod(x: np.ndarray, axes: Ints, dtype: DType, keepdims: bool, /) -> np.ndarray:
    """Return the product of elements, each rounded to a dtype first."""
    return _folded(np.multiply, x, axes, dtype, keepdims)


def max(x: np.ndarray, axes: Ints, keepdims: bool, /) -> np.ndarray:
    """Return the largest element; NaN if there is one."""
    return _extreme(np.maximum, x, axes, keepdims)


def min(x: np.ndarray, axes: Ints, keepdims: bool, /) -> np.ndarray:
    """Return the smallest element; NaN if there is one."""
    return _extreme(np.minimum, x, axes, keepdims)


def mean(x: np.ndarray, axes: Ints, dtype: DType, keepdims: bool, /) -> np.ndarray:
    """Return the mean, rounded to a dtype.

    >>> mean(np.array([1, 2, 4, 8]), (0,), np.dtype(np.float32), False)
    array(3.75, dtype=float32)
    """
    return converted(_mean(x, axes, keepdims), dtype)


def var(x: np.ndarray, axes: Ints, correction: float, dtype: DType, keepdims: bool, /) -> np.ndarray:
    """Return the variance, rounded to a real dtype; the divisor is the number of elements less `correction`."""
    return converted(_variance(x, axes, correction, keepdims), dtype)


def std(x: np.ndarray, axes: Ints, correction: float, dtype: DType, keepdims: bool, /) -> np.ndarray:
    """Return the square root of the variance, rounded once to a real dtype."""
    with np.errstate(all="ignore"):
        return converted(np.asarray(np.sqrt(_variance(x, axes, correction, keepdims))), dtype)


def all(x: np.ndarray, axes: Ints, keepdims: bool, /) -> np.ndarray:
    """Return whether all elements are other than 0; NaN is."""
    return _of_truths(np.logical_and, x, axes, _BOOL, keepdims)


def any(x: np.ndarray, axes: Ints, keepdims: bool, /) -> np.ndarray:
    """Return whether an element is other than 0; NaN is."""
    return _of_truths(np.logical_or, x, axes, _BOOL, keepdims)


def count_nonzero(x: np.ndarray, axes: Ints, keepdims: bool, /) -> np.ndarray:
    """Return how many elements are other than 0, as int64."""
    return _of_truths(np.add, x, axes, _INT64, keepdims)


def cumulative_sum(x: np.ndarray, axis: int, dtype: DType, include_initial: bool, /) -> np.ndarray:
    """Return the sums of all elements up to each one along an axis; the elements are rounded to a dtype first.

    >>> cumulative_sum(np.array([1, 2, 3], np.int8), 0, np.dtype(np.int64), True)
    array([0, 1, 3, 6])
    """
    return _scanned(np.add, x, axis, dtype, include_initial)


def cumulative_prod(x: np.ndarray, axis: int, dtype: DType, include_initial: bool, /) -> np.ndarray:
    """Return the products of all elements up to each one along an axis; the elements are rounded to a dtype first."""
    return _scanned(np.multiply, x, axis, dtype, include_initial)


# --- shared parts ----------------------------------------------------------------------------------------------------


def _folded(ufunc: np.ufunc, x: np.ndarray, axes: Ints, dtype: DType, keepdims: bool) -> np.ndarray:
    """A sum or product in the accumulator of its dtype."""
    wide = accumulator(dtype)
    with np.errstate(all="ignore"):
        if x.dtype == dtype or (x.dtype.kind in "biu" and dtype.kind in "iu"):  # the accumulator holds the elements
            folded = ufunc.reduce(x, axis=axes, dtype=wide, keepdims=keepdims)
        else:
            folded = _in_blocks(ufunc, x.shape, axes, wide, keepdims, lambda part: computable(x[part], dtype))
    return converted(np.asarray(folded), dtype)


def _extreme(ufunc: np.ufunc, x: np.ndarray, axes: Ints, keepdims: bool) -> np.ndarray:
    wide = _FLOAT32 if is_narrow_float(x.dtype) else x.dtype
    with np.errstate(all="ignore"):
        return converted(np.asarray(ufunc.reduce(x, axis=axes, dtype=wide, keepdims=keepdims)), x.dtype)


def _mean(x: np.ndarray, axes: Ints, keepdims: bool) -> np.ndarray:
    """The mean in float64 or complex128. Complex numbers divide by parts: a NaN stays in its own part."""
    wide = accumulator(x.dtype) if x.dtype.kind not in "biu" else _FLOAT64
    with np.errstate(all="ignore"):
        total = np.asarray(np.add.reduce(x, axis=axes, dtype=wide, keepdims=keepdims), order="C")
        parts = total.view(_FLOAT64) if total.ndim else total.reshape(1).view(_FLOAT64)
        parts /= _count(x.shape, axes)
    return total


def _variance(x: np.ndarray, axes: Ints, correction: float, keepdims: bool) -> np.ndarray:
    """The variance in float64."""
    middle = _mean(x, axes, True)

    def squares(part: tuple[slice, ...]) -> np.ndarray:
        kept = tuple([slice(None) if size == 1 else along for along, size in zip(part, middle.shape, strict=True)])
        distance = computable(x[part]) - middle[kept]
        return np.real(distance) ** 2 + np.imag(distance) ** 2 if distance.dtype.kind == "c" else distance * distance

    with np.errstate(all="ignore"):
        total = _in_blocks(np.add, x.shape, axes, _FLOAT64, keepdims, squares)
        divisor = builtins.max(_count(x.shape, axes) - correction, 0)
        return np.asarray(total / divisor if divisor else total * math.nan)


def _of_truths(ufunc: np.ufunc, x: np.ndarray, axes: Ints, dtype: DType, keepdims: bool) -> np.ndarray:
    return _in_blocks(ufunc, x.shape, axes, dtype, keepdims, lambda part: converted(x[part], _BOOL))


def _count(shape: Ints, axes: Ints) -> int:
    """How many elements make one element of the result."""
    return math.prod([shape[axis] for axis in axes])


def _in_blocks(
    ufunc: np.ufunc,
    shape: Ints,
    axes: Ints,
    dtype: DType,
    keepdims: bool,
    block_of: Callable[[tuple[slice, ...]], np.ndarray],
) -> np.ndarray:
    """Reduce an array that `block_of` makes block by block, each a slice of the longest axis."""
    total = np.empty([1 if axis in axes else size for axis, size in enumerate(shape)], dtype)
    axis = int(np.argmax(shape)) if shape else 0
    length = shape[axis] if shape else 1
    step = builtins.max(1, BLOCK * length // builtins.max(math.prod(shape), 1))
    for start in range(0, builtins.max(length, 1), step):
        part = tuple([slice(start, start + step) if place == axis else slice(None) for place in range(len(shape))])
        found = ufunc.reduce(block_of(part), axis=axes, dtype=dtype, keepdims=True)
        if axis not in axes:
            total[part] = found
        elif start:
            ufunc(total, found, out=total)
        else:
            total[...] = found
    return total if keepdims else total.squeeze(axes)


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
