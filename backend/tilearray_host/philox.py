"""Random words: Philox 4x32 with ten rounds, computed with NumPy.

A counter of 128 bits and a key of 64 bits give a block of four words of 32 bits (Salmon, Moraes, Dror and Shaw,
"Parallel random numbers: as easy as 1, 2, 3", 2011). The lower half of the counter is the number of the block, `first`
plus a position; `upper` is its upper half. All arguments are uint64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

ROUNDS = 10
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_LOW, _HALF = np.uint64(2**32 - 1), np.uint64(32)


def blocks(first: Any, upper: Any, key: int) -> tuple[Array, Array, Array, Array]:
    """Return the four words of blocks, each as an array of uint64.

    Examples
    --------
    >>> [f"{int(word[0]):08x}" for word in blocks(np.zeros(1, np.uint64), np.uint64(0), 0)]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    first = np.asarray(first, np.uint64)
    upper = np.asarray(upper, np.uint64)
    a, b = first & _LOW, first >> _HALF
    c, d = np.broadcast_to(upper & _LOW, first.shape), np.broadcast_to(upper >> _HALF, first.shape)
    keys = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(ROUNDS):
        left, right = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a = right >> _HALF
        a ^= b
        a ^= np.uint64(keys[0])
        c = left >> _HALF
        c ^= d
        c ^= np.uint64(keys[1])
        right &= _LOW
        left &= _LOW
        b, d = right, left
        keys = [(word + step) & 0xFFFFFFFF for word, step in zip(keys, _KEY_STEPS, strict=True)]
    return a, b, c, d


def philox_32(position: Array, first: Array, upper: Array, key: Array, *, out: Array) -> None:
    """Write the words of 32 bits at some positions, of which a block has four.

    Examples
    --------
    >>> out = np.empty(5, np.uint32)
    >>> zero = np.uint64(0)
    >>> philox_32(np.arange(5, dtype=np.uint64), zero, zero, zero, out=out)
    >>> [f"{word:08x}" for word in out.tolist()]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8', 'f8e4cca4']
    """
    _write(position, first, upper, key, out, np.uint64(2))


def philox_64(position: Array, first: Array, upper: Array, key: Array, *, out: Array) -> None:
    """Write the words of 64 bits at some positions, of which a block has two: its first word is the low half.

    Examples
    --------
    >>> out = np.empty(2, np.uint64)
    >>> zero = np.uint64(0)
    >>> philox_64(np.arange(2, dtype=np.uint64), zero, zero, zero, out=out)
    >>> [f"{word:016x}" for word in out.tolist()]
    ['e169c58d6627e8d5', '9b00dbd8bc57ac4c']
    """
    _write(position, first, upper, key, out, np.uint64(1))


def _write(position: Array, first: Array, upper: Array, key: Array, out: Array, shift: np.uint64) -> None:
    """Compute each block once if positions lie close together, else one block for each position."""
    if not out.size:
        return
    place = position >> shift
    lowest, highest = place.min(), place.max()
    count = int(highest) - int(lowest) + 1
    is_dense = np.ndim(upper) == np.ndim(first) == 0 and count <= out.size
    numbers = np.arange(count, dtype=np.uint64) + lowest if is_dense else place
    words = blocks(numbers + first, upper, int(key))
    table = np.empty((*numbers.shape, 4), np.uint32)
    for word in range(4):
        table[..., word] = words[word]
    flat = table.reshape(-1) if shift == 2 else _pairs(table)
    if is_dense:
        np.take(flat, (position - (lowest << shift)).astype(np.intp), out=out, mode="clip")
    else:
        of_block = (position & np.uint64((1 << int(shift)) - 1)).astype(np.intp)
        wide = flat.reshape(*numbers.shape, 1 << int(shift))
        out[...] = np.take_along_axis(wide, of_block[..., None], -1)[..., 0]


def _pairs(table: Array) -> Array:
    """Return pairs of words as words of 64 bits."""
    return (table[..., 0::2] | (table[..., 1::2].astype(np.uint64) << _HALF)).reshape(-1)


def multiply_high(x: Array, y: Array, *, out: Array) -> None:
    """Write the upper 64 bits of products of 128 bits.

    Examples
    --------
    >>> out = np.empty(1, np.uint64)
    >>> multiply_high(np.array([2**64 - 1], np.uint64), np.array(2**63 + 5, np.uint64), out=out)
    >>> int(out[0]) == (2**64 - 1) * (2**63 + 5) >> 64
    True
    """
    low, high = x & _LOW, x >> _HALF
    other_low, other_high = y & _LOW, y >> _HALF
    middle = high * other_low + ((low * other_low) >> _HALF)
    carry = (middle & _LOW) + low * other_high
    np.add(high * other_high, (middle >> _HALF) + (carry >> _HALF), out=out)
