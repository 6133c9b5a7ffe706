"""Functions that generated kernels call, in Triton: keyed permutations of ``[0, count)``.

Read as text like numeric.py, which tells how. A position is cut into two halves; each round adds to one half a hash of
the other half and of a word of the key. Positions at `count` and above are sent on until they are below it.
"""

from __future__ import annotations

# ruff: noqa: F821
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false


def shuffled_index(index, count, bits, key):
    """Where the elements at indices below `count` go. All are uint64. Masked lanes take an index inside.

    A cycle of positions that are all at `count` and above has no end, and only an index below it avoids them.
    """
    place = shuffle_once(tl.where(index < count, index, count - 1), bits, key)
    while tl.max((place >= count).to(tl.int32)) > 0:
        place = tl.where(place >= count, shuffle_once(place, bits, key), place)
    return place


def shuffle_once(place, bits, key):
    """The positions after 16 rounds, whose words are the first four blocks of a stream of the key."""
    low = bits >> 1
    one = tl.full([], 1, tl.uint64)
    low_mask = ((one << low) - 1).to(tl.uint32)
    high_mask = ((one << (bits - low)) - 1).to(tl.uint32)
    right = place.to(tl.uint32) & low_mask
    left = (place >> low).to(tl.uint32)
    for number in tl.static_range(4):
        a, b, c, d = philox_block(tl.full([], number, tl.uint64), tl.full([], 0, tl.uint64), key)
        left = (left + hash_word(right ^ a)) & high_mask
        right = (right + hash_word(left ^ b)) & low_mask
        left = (left + hash_word(right ^ c)) & high_mask
        right = (right + hash_word(left ^ d)) & low_mask
    return (left.to(tl.uint64) << low) | right.to(tl.uint64)


def hash_word(word):
    """Words whose bits all depend on all bits: the last step of MurmurHash3 (Appleby)."""
    word = (word ^ (word >> 16)) * 0x85EBCA6B
    word = (word ^ (word >> 13)) * 0xC2B2AE35
    return word ^ (word >> 16)
