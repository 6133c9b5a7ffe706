"""Functions that generated kernels call, in Triton: keys of a sort.

Read as text like numeric.py, which tells how.
"""

from __future__ import annotations

# ruff: noqa: F821
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false


def integer_key(x, width: tl.constexpr):
    """Integers as unsigned integers of the same order, of 32 or 64 bits, of which the lowest `width` count."""
    wide = x.to(tl.uint64, bitcast=True) if width == 64 else x.to(tl.int32).to(tl.uint32, bitcast=True)
    sign = (tl.full([], 1, tl.uint64) << (width - 1)).to(wide.dtype)
    return (wide ^ sign) & (sign + (sign - 1))


def float_key(code, infinity, width: tl.constexpr):
    """The bits of floats as unsigned integers of the same order: both zeros have one key, and all NaNs the last one.

    `infinity` is the largest code of a positive float that is not NaN. Keys of 8 and 16 bits are those of 32.
    """
    wide = code if width >= 32 else code.to(tl.uint32)
    sign = (tl.full([], 1, tl.uint64) << (width - 1)).to(wide.dtype)
    magnitude = wide & (sign - 1)
    key = tl.where((wide & sign) != 0, sign - magnitude, sign + magnitude)
    return tl.where(magnitude > infinity, sign + sign - 1, key)


def narrowed_key(x, flip, base, infinity: tl.constexpr):
    """The key of elements of 64 bits: its bits are flipped for a descending order, and it counts from a base.

    `infinity` is 1 for integers with a sign, and 0 for those without.
    """
    if infinity > 1:
        key = float_key(x.to(tl.uint64, bitcast=True), infinity, 64)
    elif infinity == 1:
        key = integer_key(x, 64)
    else:
        key = x
    return (key ^ flip) - base


def linear_key(x, center, scale):
    """Floats of 64 bits as integers below 2**32 of the same order, if none is further than 2**31 / scale from a center.

    The sum with 2**52 + 2**31 is rounded to an integer, which is the lower half of its bits. Rounding keeps the order.
    """
    code = libdevice.fma(x - center, scale, tl.full([], 4503601774854144.0, tl.float64)).to(tl.uint64, bitcast=True)
    return code & 0xFFFFFFFF


def run_of(x, key, start, center, scale, is_linear: tl.constexpr):
    """The upper bits of a key, or a linear key."""
    if is_linear:
        return linear_key(x, center, scale)
    return key >> start


def place_in_run(
    pointer, place, count, key, run, flip, base, start, center, scale,
    infinity: tl.constexpr, near: tl.constexpr, is_linear: tl.constexpr,
):  # fmt: skip
    """How far each element moves in its run, where `run_of` is the same for all, times 2.

    Elements before it with larger keys and those after it with smaller ones count, among the `near` nearest on each
    side. 1 is added if there are some, and its run goes on further: a longer run that is not in order has such a one.
    """
    smaller, larger = (place * 0).to(tl.int32), (place * 0).to(tl.int32)
    is_cut = smaller != 0
    step = tl.full([], 1, tl.int32)
    left = tl.full([], 1, tl.int32)
    while left > 0:
        is_after, is_before = place + step < count, (place >= step) & (place < count)
        after = tl.load(pointer + (place + step), mask=is_after, other=0)
        before = tl.load(pointer + (place - step), mask=is_before, other=0)
        later, earlier = narrowed_key(after, flip, base, infinity), narrowed_key(before, flip, base, infinity)
        is_after &= run_of(after, later, start, center, scale, is_linear) == run
        is_before &= run_of(before, earlier, start, center, scale, is_linear) == run
        smaller += (is_after & (later < key)).to(tl.int32)
        larger += (is_before & (earlier > key)).to(tl.int32)
        is_cut = is_after | is_before
        left = tl.where(step < near, tl.max(is_cut.to(tl.int32)), 0)
        step += 1
    return moved_in_run(smaller, larger, is_cut)


def place_of_word_in_run(
    pointer, place, count, word, rows, flip, base, start, infinity: tl.constexpr, near: tl.constexpr
):
    """The same for words of upper bits of keys and positions: keys of equal words are those of elements of `rows`."""
    run = word >> start
    is_after, is_before = place + 1 < count, (place >= 1) & (place < count)
    later = tl.load(pointer + (place + 1), mask=is_after, other=0)
    earlier = tl.load(pointer + (place - 1), mask=is_before, other=0)
    is_cut = (is_after & ((later >> start) == run)) | (is_before & ((earlier >> start) == run))
    key = key_at(rows, word, is_cut, flip, base, infinity)
    smaller, larger = (place * 0).to(tl.int32), (place * 0).to(tl.int32)
    step = tl.full([], 1, tl.int32)
    left = tl.max(is_cut.to(tl.int32))
    while left > 0:
        is_after, is_before = place + step < count, (place >= step) & (place < count)
        later = tl.load(pointer + (place + step), mask=is_after, other=0)
        earlier = tl.load(pointer + (place - step), mask=is_before, other=0)
        is_after &= (later >> start) == run
        is_before &= (earlier >> start) == run
        smaller += (is_after & (key_at(rows, later, is_after, flip, base, infinity) < key)).to(tl.int32)
        larger += (is_before & (key_at(rows, earlier, is_before, flip, base, infinity) > key)).to(tl.int32)
        is_cut = is_after | is_before
        left = tl.where(step < near, tl.max(is_cut.to(tl.int32)), 0)
        step += 1
    return moved_in_run(smaller, larger, is_cut)


def key_at(rows, word, is_read, flip, base, infinity: tl.constexpr):
    """The keys of the elements of `rows` at the positions in the lower halves of words."""
    position = (word & 0xFFFFFFFF).to(tl.int64)
    return narrowed_key(tl.load(rows + position, mask=is_read, other=0), flip, base, infinity)


def moved_in_run(smaller, larger, is_cut):
    """The result of both."""
    return ((smaller - larger) * 2 + (is_cut & (smaller + larger > 0)).to(tl.int32)).to(tl.int64)


def mark(words, value, is_inside):
    """Set the bits of values in words of 32 bits. Bits that are set already are only read."""
    word = words + (value >> 5)
    bit = tl.full([], 1, tl.int32) << (value & 31).to(tl.int32)
    found = tl.load(word, mask=is_inside, other=-1)
    tl.atomic_or(word, bit, mask=is_inside & ((found & bit) == 0), sem="relaxed")
