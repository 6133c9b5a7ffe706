"""Keyed permutations of ``[0, count)``, computed with NumPy: where the element at an index goes.

A position of `bits` bits is cut into two halves. Each of 16 rounds adds to one half a hash of the other half and of a
word of the key, so that a round can be undone, and all rounds together permute the positions below ``2**bits``.
Positions at `count` and above are sent on until they are below it ("cycle walking"). Each element is computed alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilearray_host.philox import blocks

Array = np.ndarray[Any, np.dtype[Any]]

ROUNDS = 16


def shuffled_index(index: Array, count: Any, bits: Any, key: Any, *, out: Array) -> None:
    """Write where the elements at indices below `count` go. All arguments are uint64; the key may be an array.

    Examples
    --------
    >>> out = np.empty(6, np.uint64)
    >>> shuffled_index(np.arange(6, dtype=np.uint64), np.uint64(6), np.uint64(6), np.uint64(7), out=out)
    >>> sorted(out.tolist())
    [0, 1, 2, 3, 4, 5]
    """
    if not out.size:
        return
    places = np.broadcast_to(index, out.shape).flatten()
    different, of_place = np.unique(np.asarray(key, np.uint64), return_inverse=True)
    words = round_keys(different)
    rows = np.broadcast_to(of_place.reshape(np.shape(key)), out.shape).ravel() if different.size > 1 else None
    table = None
    if rows is None and 2 ** int(bits) <= max(64, 2 * out.size):
        table = _moved(np.arange(2 ** int(bits), dtype=np.uint64), int(bits), words)
    waiting = np.arange(out.size)
    while waiting.size:
        moved = places[waiting]
        if table is not None:
            moved = table[moved]
        else:
            moved = _moved(moved, int(bits), words if rows is None else words[:, rows[waiting]])
        places[waiting] = moved
        waiting = waiting[moved >= count]
    out[...] = places.reshape(out.shape)


def round_keys(keys: Array) -> Array:
    """Return the words of rounds, a column for each key: the first blocks of a stream of the key."""
    count = ROUNDS // 4
    numbers = np.tile(np.arange(count, dtype=np.uint64), keys.size)
    return blocks(numbers, 0, np.repeat(keys, count)).reshape(keys.size, ROUNDS).T


def _moved(places: Array, bits: int, words: Array) -> Array:
    low, high = bits // 2, bits - bits // 2
    low_mask, high_mask = np.uint32(2**low - 1), np.uint32(2**high - 1)
    right = places.astype(np.uint32) & low_mask
    left = (places >> np.uint64(low)).astype(np.uint32)
    for number in range(0, ROUNDS, 2):
        left += _hash(right ^ words[number])
        left &= high_mask
        right += _hash(left ^ words[number + 1])
        right &= low_mask
    return (left.astype(np.uint64) << np.uint64(low)) | right


def _hash(word: Array) -> Array:
    """Return words whose bits all depend on all bits: the last step of MurmurHash3 (Appleby)."""
    word ^= word >> np.uint32(16)
    word *= np.uint32(0x85EBCA6B)
    word ^= word >> np.uint32(13)
    word *= np.uint32(0xC2B2AE35)
    word ^= word >> np.uint32(16)
    return word
