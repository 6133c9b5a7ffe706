"""Random words: Philox 4x32 with ten rounds, computed with NumPy.

A counter of 128 bits and a key of 64 bits give a block of four words of 32 bits (Salmon, Moraes, Dror and Shaw,
"Parallel random numbers: as easy as 1, 2, 3", 2011). The lower half of the counter is the number of the block, `first`
plus a position; `upper` is its upper half. All arguments are uint64. The positions of a call follow each other, so each
block is computed once, except in a draw of whole blocks and of words anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

ROUNDS = 10
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_LOW, _HALF = np.uint64(2**32 - 1), np.uint64(32)


def blocks(number: Array, upper: int, key: Any) -> Array:
    """Return the words of blocks, one row for each. `number` has the lower halves of their counters.

    The key is an int, or an array of uint64 with a key for each number.

    Examples
    --------
    >>> [f"{word:08x}" for word in blocks(np.zeros(1, np.uint64), 0, 0)[0].tolist()]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    if number.size == 1 and isinstance(key, int):
        return np.array([_block(int(number[0]) | upper << 64, key)], np.uint32)
    a, b = number & _LOW, number >> _HALF
    c, d = np.full_like(number, upper & 0xFFFFFFFF), np.full_like(number, upper >> 32)
    left, right = np.empty_like(number), np.empty_like(number)
    low, high = key & 0xFFFFFFFF, key >> 32
    for _ in range(ROUNDS):
        np.multiply(a, _MULTIPLIERS[0], out=left)
        np.multiply(c, _MULTIPLIERS[1], out=right)
        b ^= np.uint64(low)
        d ^= np.uint64(high)
        np.right_shift(right, _HALF, out=a)
        np.right_shift(left, _HALF, out=c)
        a ^= b
        c ^= d
        np.bitwise_and(right, _LOW, out=b)
        np.bitwise_and(left, _LOW, out=d)
        low, high = (low + _KEY_STEPS[0]) & 0xFFFFFFFF, (high + _KEY_STEPS[1]) & 0xFFFFFFFF
    table = np.empty((number.size, 4), np.uint32)
    for place, word in enumerate((a, b, c, d)):
        table[:, place] = word
    return table


def _block(counter: int, key: int) -> tuple[int, int, int, int]:
    """Return the words of one block, in a tenth of the time that arrays take."""
    first, second = int(_MULTIPLIERS[0]), int(_MULTIPLIERS[1])
    a, b, c, d = (counter >> bits & 0xFFFFFFFF for bits in (0, 32, 64, 96))
    low, high = key & 0xFFFFFFFF, key >> 32
    for _ in range(ROUNDS):
        left, right = a * first, c * second
        a, b = right >> 32 ^ b ^ low, right & 0xFFFFFFFF
        c, d = left >> 32 ^ d ^ high, left & 0xFFFFFFFF
        low, high = (low + _KEY_STEPS[0]) & 0xFFFFFFFF, (high + _KEY_STEPS[1]) & 0xFFFFFFFF
    return a, b, c, d


def philox_32(position: Array, first: Array, upper: Array, key: Array, *, out: Array) -> None:
    """Write the words of 32 bits at positions, of which a block has four.

    Examples
    --------
    >>> out = np.empty(5, np.uint32)
    >>> zero = np.uint64(0)
    >>> philox_32(np.arange(5, dtype=np.uint64), zero, zero, zero, out=out)
    >>> [f"{word:08x}" for word in out.tolist()]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8', 'f8e4cca4']
    """
    words, start = _words(position, first, upper, key, 4)
    out[...] = words.reshape(-1)[start : start + out.size].reshape(out.shape)


def philox_32_anywhere(position: Array, first: Array, upper: Array, key: Array, *, out: Array) -> None:
    """Write the words of 32 bits at positions in any order.

    Examples
    --------
    >>> out = np.empty(2, np.uint32)
    >>> zero = np.uint64(0)
    >>> philox_32_anywhere(np.uint64([4, 1]), zero, zero, zero, out=out)
    >>> [f"{word:08x}" for word in out.tolist()]
    ['f8e4cca4', 'e169c58d']
    """
    places = np.broadcast_to(position, out.shape).reshape(-1)
    one = [int(np.asarray(number).reshape(-1)[0]) for number in (first, upper, key)]
    table = blocks((places >> np.uint64(2)) + np.uint64(one[0]), *one[1:])
    out[...] = table[np.arange(places.size), (places & np.uint64(3)).astype(np.intp)].reshape(out.shape)


def philox_64(position: Array, first: Array, upper: Array, key: Array, *, out: Array) -> None:
    """Write the words of 64 bits at positions, of which a block has two: its first word is the low half.

    Examples
    --------
    >>> out = np.empty(2, np.uint64)
    >>> zero = np.uint64(0)
    >>> philox_64(np.arange(2, dtype=np.uint64), zero, zero, zero, out=out)
    >>> [f"{word:016x}" for word in out.tolist()]
    ['e169c58d6627e8d5', '9b00dbd8bc57ac4c']
    """
    words, start = _words(position, first, upper, key, 2)
    out[...] = _pairs(words).reshape(-1)[start : start + out.size].reshape(out.shape)


def of_pair(words: int, which: int) -> Callable[..., None]:
    """Return the function that writes the first (0) or the second (1) word of the pair at each position.

    Positions 0 and 1 are a pair, and each later even position with the next one. Words have 32 or 64 bits. For 128
    bits each position, in any order, has the two words of 64 bits of a block.

    Examples
    --------
    >>> out = np.empty(4, np.uint32)
    >>> zero = np.uint64(0)
    >>> of_pair(32, 1)(np.arange(4, dtype=np.uint64), zero, zero, zero, out=out)
    >>> [f"{word:08x}" for word in out.tolist()]
    ['e169c58d', 'e169c58d', '9b00dbd8', '9b00dbd8']
    """

    def compute(position: Array, first: Array, upper: Array, key: Array, *, out: Array) -> None:
        if words == 128:
            table = blocks(position.reshape(-1) + first, int(upper), int(key))
            out[...] = _pairs(table)[:, which].reshape(out.shape)
            return
        table, start = _words(position, first, upper, key, 128 // words)
        chosen = np.repeat((table.reshape(-1, 2) if words == 32 else _pairs(table))[:, which], 2)
        out[...] = chosen[start : start + out.size].reshape(out.shape)

    return compute


def _words(position: Array, first: Array, upper: Array, key: Array, share: int) -> tuple[Array, int]:
    """Return the blocks of positions, of which `share` have one, and the place of the first position in its block."""
    start, count = int(position.reshape(-1)[0]) if position.size else 0, position.size
    block, place = divmod(start, share)
    number = np.arange(-(-(place + count) // share), dtype=np.uint64) + np.uint64((block + int(first)) % 2**64)
    return blocks(number, int(upper), int(key)), place


def _pairs(words: Array) -> Array:
    """Return pairs of words as words of 64 bits."""
    return words[:, 0::2] | (words[:, 1::2].astype(np.uint64) << _HALF)


def bitcast(x: Array, *, out: Array) -> None:
    """Write the bits of x as another dtype of the same size.

    Examples
    --------
    >>> out = np.empty(1, np.int32)
    >>> bitcast(np.array([1.0], np.float32), out=out)
    >>> hex(out[0])
    '0x3f800000'
    """
    out[...] = x.view(out.dtype)


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
