"""Functions that generated kernels call, in Triton: binary search, of all elements or within buckets.

Read as text like numeric.py, which tells how. The number of steps is that of the sorted array's size, equal for all
elements of a block. Integers are never NaN, so the compiler drops the tests for it.

Keys are integers without a sign. The bucket of a key is the upper bits of its distance from the least key: as many
bits as give at most a number of buckets for all keys.
"""

from __future__ import annotations

# ruff: noqa: F821
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false


def search_left(pointer, count, value, zeros):
    """How many of the sorted elements lie before a value; NaN lies after all numbers."""
    place = zeros
    while count > 0:
        step = (count + 1) // 2
        found = tl.load(pointer + (place + (step - 1)))
        place += tl.where((found < value) | ((value != value) & (found == found)), step, 0)
        count -= step
    return place


def search_right(pointer, count, value, zeros):
    """How many of the sorted elements lie before a value or are equal to it; NaN lies after all numbers."""
    place = zeros
    while count > 0:
        step = (count + 1) // 2
        found = tl.load(pointer + (place + (step - 1)))
        place += tl.where((found <= value) | (value != value), step, 0)
        count -= step
    return place


def bits_below_buckets(first, last, buckets):
    """How many bits of the distances of keys are below the number of a bucket."""
    bits = tl.full([], 0, tl.int32)
    distance = (last - first).to(tl.uint64)
    for halvings in tl.static_range(6):
        half = 32 >> halvings
        bits += tl.where((distance >> (bits + (half - 1)).to(tl.uint64)) >= buckets.to(tl.uint64), half, 0)
    return bits


def start_of_bucket(pointer, count, bucket, buckets):
    """How many of the sorted keys lie before a bucket."""
    first, last = tl.load(pointer), tl.load(pointer + (count - 1))
    bits = bits_below_buckets(first, last, buckets).to(tl.uint64)
    is_known = bucket.to(tl.uint64) <= ((last - first).to(tl.uint64) >> bits)
    least = first + tl.where(is_known, bucket.to(tl.uint64) << bits, 0).to(first.dtype)
    return tl.where(is_known, search_left(pointer, count, least, bucket * 0), count)


def search_in_buckets(pointer, count, key, starts, buckets, is_left: tl.constexpr):
    """How many of the sorted keys lie before a key, or are equal to it unless `is_left`.

    Only those of its bucket are searched, in as many steps as the largest bucket of the block needs.
    """
    first, last = tl.load(pointer), tl.load(pointer + (count - 1))
    is_inside = (key >= first) & (key <= last)
    distance = tl.where(is_inside, key - first, 0)
    bucket = (distance >> bits_below_buckets(first, last, buckets).to(key.dtype)).to(tl.int64)
    place = tl.load(starts + bucket)
    left = tl.where(is_inside, tl.load(starts + (bucket + 1)) - place, 0)
    while tl.max(left) > 0:
        step = (left + 1) // 2
        found = tl.load(pointer + (place + (step - 1)), mask=left > 0, other=0)
        is_before = found < key if is_left else found <= key
        place += tl.where((left > 0) & is_before, step, 0)
        left -= step
    return tl.where(is_inside, place, tl.where(key < first, 0, count)).to(tl.int64)
