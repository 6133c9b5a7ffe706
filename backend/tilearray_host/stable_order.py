"""The stable order of elements, by sorts that need not be stable.

NumPy's stable `argsort` merges, at 70 ns for an element of a large array; its sorts of 64-bit integers take a tenth of
that where the processor has vector instructions for them. So an element of 32 bits or fewer becomes an integer of 64:
above, one whose order is that of the values; below, its index. So do integers of 64 bits whose range has 32. Others of
64 bits are sorted with any order of equal elements, and then the indices of each run of equal ones are. Integers of 8
and 16 bits stay with NumPy's radix sort.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilearray_host.reduction import slices

Array = np.ndarray[Any, np.dtype[Any]]

FEW = 1024
"""The elements up to which NumPy's stable sort takes less time."""
BLOCK = 2**15
"""The elements whose bits are ordered at a time."""
_INDEX = 32
"""The bits of an index beside the bits of a value."""


def stable_order(x: Array, axis: int = -1) -> Array:
    """Return the indices that sort an array along an axis; equal elements keep their order. NaNs are equal, and last.

    The dtype is one that NumPy orders. The result is int64.

    Examples
    --------
    >>> stable_order(np.array([2.0, -0.0, 0.0, 1.0])).tolist()
    [1, 2, 3, 0]
    """
    axis %= x.ndim
    count, kind = x.shape[axis], x.dtype.kind
    if x.size <= FEW or x.size >= 2**31 or kind not in "iuf" or (kind != "f" and x.itemsize <= 2):
        return np.argsort(x, axis, "stable")
    with np.errstate(all="ignore"):  # signalling NaNs
        if x.ndim == 1 and bool((x[1:] >= x[:-1]).all()):  # never beside NaN
            return np.arange(count)
        if x.itemsize <= 4:
            return _of_words(x, axis)
        if kind != "f" and int(x.max()) - int(least := x.min()) < 2**32:
            return _of_words((x - least).astype(np.uint32), axis)
        rows = np.moveaxis(x, axis, -1)
        return np.moveaxis(_of_runs(rows.reshape(-1, count)).reshape(rows.shape), -1, axis)


def _of_words(x: Array, axis: int) -> Array:
    """Return the stable order of elements of 32 bits or fewer."""
    pairs = np.empty(x.shape, np.int64)
    low, high = np.moveaxis(pairs.view(np.int32).reshape(*x.shape, 2), -1, 0)
    if x.dtype.kind == "f":
        np.add(x, 0, out=high.view(np.float32))  # -0.0 equals 0.0
        words = pairs.view(np.int32).reshape(-1)[1::2]
        for start in range(0, words.size, BLOCK):
            _order_bits(words[start : start + BLOCK])
    elif x.dtype.kind == "i":
        high[...] = x
    else:
        np.bitwise_xor(x, 2**31, out=high.view(np.uint32))
    low[...] = np.arange(x.shape[axis], dtype=np.int32).reshape([-1 if each == axis else 1 for each in range(x.ndim)])
    pairs.sort(axis)
    pairs &= 2**_INDEX - 1
    return pairs


_INFINITY = 0x7F800000
"""The bits of infinity; those of -inf become the least integer of a number, the one after those of negative NaNs."""


def _order_bits(words: Array) -> None:
    """Turn the bits of float32 into integers that have the order of the values; NaNs become the largest one."""
    words ^= (words >> 31) & 0x7FFFFFFF  # the bits of negative floats have the reversed order
    nan = (words > _INFINITY) | (words < ~_INFINITY)
    if nan.any():
        words[nan] = 0x7FFFFFFF


def _of_runs(rows: Array) -> Array:
    """Return the stable order of each row, from any order in which it is sorted."""
    order = np.argsort(rows)
    repeats = _repeats(rows, order)
    count = np.count_nonzero(repeats)
    if count > order.size // 8:
        _number_runs(order.reshape(-1), ~repeats.reshape(-1))
        order.sort()
        order &= 2**_INDEX - 1
    elif count:
        in_runs = repeats.copy()
        in_runs[:, :-1] |= repeats[:, 1:]
        pairs = order[in_runs]
        _number_runs(pairs, ~repeats[in_runs])
        pairs.sort()
        pairs &= 2**_INDEX - 1
        order[in_runs] = pairs
    return order


def _repeats(rows: Array, order: Array) -> Array:
    """Return whether each element equals the one before it in the order of its row."""
    repeats = np.zeros(order.shape, bool)
    starts = np.arange(0, rows.size, rows.shape[1]).reshape(-1, 1)
    flat = rows.reshape(-1)
    for row, column in slices(order.shape, BLOCK):
        first = max(column.start - 1, 0)
        ordered = flat.take(starts[row] + order[row, first : column.stop])
        x, y = ordered[:, 1:], ordered[:, :-1]
        here = repeats[row, first + 1 : column.stop]
        np.equal(x, y, out=here)
        if np.any(x[:, -1:] != x[:, -1:]):  # NaNs are last
            here |= (x != x) & (y != y)
    return repeats


def _number_runs(order: Array, starts: Array) -> None:
    """Write the number of the run above each index. `starts` says which of them begin a run."""
    number = 0
    for start in range(0, order.size, BLOCK):
        numbers = np.cumsum(starts[start : start + BLOCK])
        numbers += number
        number = numbers[-1]
        numbers <<= _INDEX
        order[start : start + BLOCK] |= numbers
