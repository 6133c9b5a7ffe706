"""The elements of two arrays by a mask, to other memory.

NumPy branches at each element. A processor that guesses a branch wrong loses the time of many elements: with a random
mask that is each second one. So where a mask changes often, the bits of both operands are combined instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilearray_host.scratch import give_back, take

Array = np.ndarray[Any, np.dtype[Any]]

MANY = 4096
"""Elements of a mask from which they are counted: a count takes a microsecond."""
LINE = 8192
"""Elements from which bits are combined: a processor learns fewer branches by heart."""
BLOCK = 2**17
"""The bytes of a block of elements: its temporaries stay in a cache."""
CHANGES = {1: 0, 2: 64, 4: 32, 8: 12}
"""By itemsize, of how many elements of a mask one changes where bits are combined in less time; 0: always."""


def where_elsewhere(condition: Array, x: Array, y: Array, *, out: Array) -> None:
    """Select ``x`` where the condition is true, else ``y``, to memory that the operands do not have.

    Examples
    --------
    >>> out = np.empty(2)
    >>> where_elsewhere(np.array([True, False]), np.array(1.0), np.array([2.0, 3.0]), out=out)
    >>> out
    array([1., 3.])
    """
    if not _are_lines(condition, x, y, out) or not _changes_often(condition.reshape(-1), out.itemsize):
        _copy(condition, x, y, out)
        return
    lines = [each.reshape(-1) for each in (condition, x, y, out)]
    step = BLOCK // out.itemsize
    spare = take(BLOCK + step)
    for first in range(0, out.size, step):
        block = slice(first, first + step)
        _combine_bits([each if each.size == 1 else each[block] for each in lines], spare)
    give_back(spare)


def _are_lines(condition: Array, x: Array, y: Array, out: Array) -> bool:
    """Whether there are many elements that all follow each other in memory in one order, or are one number."""
    arrays = [each for each in (x, y) if each.size > 1]
    return (
        condition.size >= LINE
        and condition.dtype == np.bool_
        and out.itemsize in CHANGES
        and x.dtype == y.dtype == out.dtype
        and all(each.shape == out.shape and each.flags.c_contiguous for each in (condition, out, *arrays))
    )


def _changes_often(mask: Array, itemsize: int) -> bool:
    """Whether a mask changes so often from one element to the next one that bits are combined in less time."""
    often = CHANGES[itemsize]
    return not often or bool(np.count_nonzero(mask[1:] != mask[:-1]) * often > mask.size)


def _copy(condition: Array, x: Array, y: Array, out: Array) -> None:
    """Select by copies. NumPy copies fast where a mask is false."""
    if condition.size >= MANY and condition.flags.forc and 2 * np.count_nonzero(condition) > condition.size:
        condition, x, y = ~condition, y, x
    out[...] = y
    np.copyto(out, x, where=condition)


def _combine_bits(lines: Sequence[Array], spare: Array) -> None:
    """Select the bits of y, changed to those of x where a mask is true: lines of mask, x, y and the result."""
    mask, *values = lines
    word = np.dtype(f"i{values[-1].itemsize}")
    x, y, out = [each.view(word) for each in values]
    bits, ones = np.ndarray(mask.size, word, spare), np.ndarray(mask.size, np.int8, spare, BLOCK)
    np.not_equal(mask.view(np.int8), 0, out=ones.view(np.bool_))
    np.negative(ones, out=ones)
    np.bitwise_xor(x, y, out=bits)
    np.bitwise_and(bits, ones, out=bits)
    np.bitwise_xor(bits, y, out=out)
