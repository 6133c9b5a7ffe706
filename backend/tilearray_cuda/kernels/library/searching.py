"""Functions that generated kernels call, in Triton: binary search, of all elements or within buckets.

Read as text like numeric.py, which tells how. The number of steps is that of the sorted array's size, equal for all
elements of a block. Integers are never NaN, so the compiler drops the tests for it.

Keys are integers without a sign. The bucket of a key is the upper bits of its distance from the least key: as many
bits as give at most a number of buckets for all keys. Keys of floats may be in buckets of equal width instead: half of
the numbers that are spread evenly from 0 on have one exponent, and so few buckets by their upper bits.
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


def float_of_key(key):
    """The float of a key of `float_key`."""
    sign = (tl.full([], 1, tl.uint64) << (key.dtype.primitive_bitwidth - 1)).to(key.dtype)
    code = tl.where(key < sign, 0 - key, key - sign)
    return code.to(tl.float32 if key.dtype == tl.uint32 else tl.float64, bitcast=True)


def least_quarter(first, quarter, half, three_quarters, last):
    """The least distance between neighbours of five sorted numbers, as a fraction of that of the first and the last."""
    least = tl.minimum(
        tl.minimum(quarter - first, half - quarter), tl.minimum(three_quarters - half, last - three_quarters)
    )
    return libdevice.div_rn(least.to(tl.float64), (last - first).to(tl.float64))


def rule_of_buckets(pointer, count, buckets, of_floats: tl.constexpr):
    """How sorted keys are divided into buckets: their width as its inverse, or minus the bits below a bucket.

    Floats are in buckets of equal width if their quartiles are then further apart than by the upper bits of their keys.
    They are in one bucket less than there may be, since the last float may be rounded up into the next bucket: float32
    has no numbers between those of 2**24 buckets.
    """
    first, last = tl.load(pointer), tl.load(pointer + (count - 1))
    bits = bits_below_buckets(first, last, buckets)
    rule = (0 - bits).to(tl.float64)
    if of_floats:
        quarter, half = tl.load(pointer + count // 4), tl.load(pointer + count // 2)
        three_quarters = tl.load(pointer + count // 4 * 3)
        by_bits = least_quarter(first, quarter, half, three_quarters, last)
        low, high = float_of_key(first), float_of_key(last)
        by_value = least_quarter(low, float_of_key(quarter), float_of_key(half), float_of_key(three_quarters), high)
        inverse = libdevice.div_rn((buckets - 2).to(low.dtype), high - low)  # 0 or NaN if one is not finite
        rule = tl.where((by_value > by_bits) & (inverse < float("inf")), inverse.to(tl.float64), rule)
    return rule


def bucket_by_bits(key, first, rule):
    """The upper bits of the distance of a key from the first one."""
    return ((key - first) >> (0 - rule).to(key.dtype)).to(tl.int32)


def bucket_of(key, first, rule, of_floats: tl.constexpr):
    """The bucket of a key that is not less than the first one."""
    if of_floats:
        if rule > 0:
            low = float_of_key(first)
            bucket = ((float_of_key(key) - low) * rule.to(low.dtype)).to(tl.int32)
        else:
            bucket = bucket_by_bits(key, first, rule)
    else:
        bucket = bucket_by_bits(key, first, rule)
    return bucket


def start_of_bucket(pointer, count, bucket, rules, of_floats: tl.constexpr):
    """How many of the sorted keys lie before a bucket."""
    first, rule = tl.load(pointer), tl.load(rules)
    place = bucket * 0
    while count > 0:
        step = (count + 1) // 2
        found = tl.load(pointer + (place + (step - 1)))
        place += tl.where(bucket_of(found, first, rule, of_floats) < bucket, step, 0)
        count -= step
    return place


def search_in_buckets(pointer, count, key, starts, rules, is_left: tl.constexpr, of_floats: tl.constexpr):
    """How many of the sorted keys lie before a key, or are equal to it unless `is_left`.

    Only those of its bucket are searched, in as many steps as the largest bucket of the block needs.
    """
    first, last = tl.load(pointer), tl.load(pointer + (count - 1))
    is_inside = (key >= first) & (key <= last)
    bucket = bucket_of(tl.where(is_inside, key, first), first, tl.load(rules), of_floats)
    place = tl.load(starts + bucket)
    left = tl.where(is_inside, tl.load(starts + (bucket + 1)) - place, 0)
    while tl.max(left) > 0:
        step = (left + 1) // 2
        found = tl.load(pointer + (place + (step - 1)), mask=left > 0, other=0)
        is_before = found < key if is_left else found <= key
        place += tl.where((left > 0) & is_before, step, 0)
        left -= step
    return tl.where(is_inside, place, tl.where(key < first, 0, count)).to(tl.int64)
