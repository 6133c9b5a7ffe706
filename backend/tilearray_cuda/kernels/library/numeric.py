"""Functions that generated kernels call, in Triton: what neither Triton nor libdevice has with the library's rules.

This file is read as text, never imported: `source.py` copies the functions that a kernel needs into its source, with
``@triton.jit`` above them, so that a kernel's source is complete, and so is the cache key made of it. ``tl`` and
``libdevice`` are what they are in a kernel. Arguments are blocks of one compute dtype, complex ones pairs of blocks.
"""

from __future__ import annotations

# ruff: noqa: F821, N803, N806
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

# --- integers -------------------------------------------------------------------------------------------------------


def floor_divide_int(x, y):
    """Floor division: ``x // 0`` is 0, and ``INT_MIN // -1`` wraps to INT_MIN."""
    whole = (y == 0) | (y == -1)
    quotient = x // tl.where(whole, 1, y)
    rest = x - quotient * tl.where(whole, 1, y)
    floored = quotient - ((rest != 0) & ((rest < 0) != (y < 0))).to(x.dtype)
    return tl.where(y == 0, 0, tl.where(y == -1, 0 - x, floored)).to(x.dtype)


def truncate_divide_int(x, y):
    """Division toward zero: ``x // 0`` is 0, and ``INT_MIN // -1`` wraps to INT_MIN."""
    whole = (y == 0) | (y == -1)
    return tl.where(y == 0, 0, tl.where(y == -1, 0 - x, x // tl.where(whole, 1, y))).to(x.dtype)


def divide_uint(x, y):
    """Division: ``x // 0`` is 0."""
    return tl.where(y == 0, 0, x // tl.where(y == 0, 1, y)).to(x.dtype)


def remainder_int(x, y):
    """What floor division leaves: ``x % 0`` is 0."""
    whole = (y == 0) | (y == -1)
    divisor = tl.where(whole, 1, y)
    rest = x % divisor
    return tl.where(whole, 0, tl.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)).to(x.dtype)


def truncate_remainder_int(x, y):
    """What division toward zero leaves: ``x % 0`` is 0."""
    whole = (y == 0) | (y == -1)
    return tl.where(whole, 0, x % tl.where(whole, 1, y)).to(x.dtype)


def remainder_uint(x, y):
    """What division leaves: ``x % 0`` is 0."""
    return tl.where(y == 0, 0, x % tl.where(y == 0, 1, y)).to(x.dtype)


def power_by_number(x, y):
    """Power; the exponents 2 and 3 cost one or two products, each of which is rounded."""
    if y == 2:
        result = x * x
    elif y == 3:
        result = x * x * x
    else:
        result = libdevice.pow(x, y)
    return result


def power_int(x, y):
    """Integer power by squaring, wrapping; a negative exponent is exact for 1 and -1, and gives 0 else."""
    negative = y < 0
    result = power_uint(x, tl.where(negative, 0, y))
    unit = tl.where(x == 1, 1, tl.where(x == -1, tl.where((y & 1) != 0, -1, 1), 0))
    return tl.where(negative, unit, result).to(x.dtype)


def power_uint(x, y):
    """Power by squaring, wrapping, of an exponent that is not negative. A number has as many rounds as it has bits."""
    base = x + y * 0  # a block, even where one operand is a number
    result = base * 0 + 1
    exponent = y
    if y.type.is_block():
        for _ in range(64):
            result = tl.where((exponent & 1) != 0, result * base, result).to(x.dtype)
            base = (base * base).to(x.dtype)
            exponent = exponent >> 1
    elif y == 2:
        result = base * base
    else:
        while exponent != 0:
            result = tl.where((exponent & 1) != 0, result * base, result).to(x.dtype)
            base = (base * base).to(x.dtype)
            exponent = exponent >> 1
    return result.to(x.dtype)


def common_divisor(x, y):
    """Greatest common divisor of integers, not negative; that of x and 0 is the size of x."""
    first, second = magnitude(x + y * 0), magnitude(y + x * 0)  # blocks, even where one operand is a number
    if x.dtype.primitive_bitwidth < 32:
        divisor = divisor_by_floats(first, second, tl.float32)
    else:
        divisor = divisor_of_words(first, second)
    return divisor.to(x.dtype)


def divisor_of_words(x, y):
    """Greatest common divisor of unsigned integers of 32 or 64 bits, by floats from where they hold the integers on."""
    if largest_of(tl.maximum(x, y)) < 16777216:
        divisor = divisor_by_floats(x, y, tl.float32)
    elif x.dtype.primitive_bitwidth == 32:
        divisor = divisor_by_floats(x, y, tl.float64)
    else:
        while largest_of(tl.where(y == 0, 0, tl.maximum(x, y))) >= 9007199254740992:
            left = x % tl.where(y == 0, 1, y)
            x = tl.where(y == 0, x, y)
            y = tl.where(y == 0, 0, left)
        divisor = tl.where(y == 0, x, divisor_by_floats(tl.where(y == 0, 0, x), y, tl.float64))
    return divisor


def magnitude(x):
    """The size of an integer, without a sign and of at least 32 bits."""
    wide: tl.constexpr = 64 if x.dtype.primitive_bitwidth == 64 else 32
    if x.dtype.is_int_signed():
        x = tl.abs(x.to(tl.int64 if wide == 64 else tl.int32))
    return x.to(tl.uint64 if wide == 64 else tl.uint32)


def divisor_by_floats(x, y, dtype: tl.constexpr):
    """Greatest common divisor of unsigned integers that a float holds, by Euclid's algorithm.

    Each step takes a multiple of one integer from the other one, exactly. It computes their quotient to 20 bits and
    rounds it to an integer: of a large quotient later steps take the rest. All elements of a program take the same
    steps, until the last of them has its divisor.
    """
    first, second = x.to(dtype), y.to(dtype)
    to_integer = tl.full((), 12582912.0 if dtype == tl.float32 else 6755399441055744.0, dtype)
    while largest_of(second) > 0:
        inverse = reciprocal_approx_ftz(second) if dtype == tl.float32 else libdevice.rcp64h(second)
        quotient = libdevice.fma(first, inverse, to_integer) - to_integer
        left = tl.abs(libdevice.fma(quotient * -1.0, second, first))
        first = tl.where(second == 0, first, second)
        second = tl.where(second == 0, 0.0, left)
    return first.to(x.dtype)


def largest_of(x):
    """The largest element of a block; a number as it is."""
    if x.type.is_block():
        x = tl.max(x)
    return x


def common_multiple(x, y):
    """Least common multiple of integers, not negative, wrapping; 0 if one of them is 0."""
    divisor = magnitude(common_divisor(x, y))
    return (magnitude(x + y * 0) // tl.where(divisor == 0, 1, divisor) * magnitude(y + x * 0)).to(x.dtype)


def shift_left(x, count, width: tl.constexpr):
    """Bits moved up; a count outside ``[0, width)`` leaves 0."""
    inside = (count >= 0) & (count < width)
    return tl.where(inside, x << tl.where(inside, count, 0), 0).to(x.dtype)


def shift_right_int(x, count, width: tl.constexpr):
    """Bits moved down with the sign; a count outside ``[0, width)`` leaves the sign alone."""
    inside = (count >= 0) & (count < width)
    return x >> tl.where(inside, count, width - 1).to(x.dtype)


def shift_right_uint(x, count, width: tl.constexpr):
    """Bits moved down; a count outside ``[0, width)`` leaves 0."""
    inside = (count >= 0) & (count < width)
    return tl.where(inside, x >> tl.where(inside, count, 0), 0).to(x.dtype)


def order_signed_unsigned(x, y):
    """-1, 0 or 1 as the int64 `x` is below, equal to or above the uint64 `y`."""
    above = (x >= 0) & (x.to(tl.uint64) > y)
    below = (x < 0) | (x.to(tl.uint64) < y)
    return tl.where(above, 1, tl.where(below, -1, 0))


# --- floats ---------------------------------------------------------------------------------------------------------


def floored(x, y):
    """The quotient, the largest integer below it, what that leaves, and whether some of them need more digits.

    A quotient may be rounded up to an integer; the sign of what is left says so. Below the limit the integer is exact,
    and so is what it leaves, up to one addition.
    """
    quotient = libdevice.div_rn(x, y)
    whole = libdevice.floor(quotient)
    rest = libdevice.fma(whole * -1.0, y, x)
    above = tl.where(y < 0, rest > 0, rest < 0)
    usual = tl.abs(quotient) < (4194304.0 if x.dtype == tl.float32 else 2251799813685248.0)
    usual = usual & (tl.abs(y) < float("inf"))
    unusual = tl.where(usual, 0, 1)
    if unusual.type.is_block():
        unusual = tl.max(unusual)
    return quotient, tl.where(above, whole - 1.0, whole), tl.where(above, rest + y, rest), unusual


def remainder_float(x, y):
    """Python's float ``%``: with the divisor's sign, and its zero where nothing is left."""
    _quotient, _whole, rest, unusual = floored(x, y)
    if unusual != 0:
        rest = libdevice.fmod(x, y)
        rest = tl.where((rest != 0) & ((y < 0) != (rest < 0)), rest + y, rest)
    return tl.where(rest == 0, libdevice.copysign(rest * 0, y), rest)


def floor_divide_float(x, y):
    """Python's float ``//``; the IEEE quotient where `y` is zero or an operand is infinite."""
    quotient, whole, _rest, unusual = floored(x, y)
    if unusual != 0:
        whole = floor_of_quotient(x, y, quotient)
    return whole


def floor_of_quotient(x, y, quotient):
    """Python's float ``//`` of numbers of any size: it floors the quotient of what is left without the remainder."""
    rest = libdevice.fmod(x, y)
    whole = x - rest
    other_sign = (rest != 0) & ((y < 0) != (rest < 0))
    ratio = libdevice.div_rn(whole, y)
    ratio = tl.where(other_sign, ratio - 1, ratio)
    floored = libdevice.floor(ratio)
    floored = tl.where(ratio - floored > 0.5, floored + 1, floored)
    zero = libdevice.copysign(ratio * 0, quotient)
    beyond = (y == 0) | is_infinite(x) | is_infinite(y)
    return tl.where(beyond, quotient, tl.where(ratio == 0, zero, floored))


def quotient_float32(x, y):
    """x / y as a product with the reciprocal of y, which is one number for many x.

    float64 is exact enough: the quotient of two float32 is at least 2**-49 of it away from where its rounding changes.
    Only the quotient of a denormal may lie there, halfway between two. Divided by 2**896, denormals of float32 are
    those of float64, whose last bit drops the error of the reciprocal.
    """
    reciprocal = 1.0 / y.to(tl.float64)
    return (x.to(tl.float64) * 1.8928834978668395e-270 * reciprocal * 5.282945311356653e269).to(tl.float32)


def quotient_float16(x, y):
    """x / y of float16 in float32, as a product with the reciprocal of y; right if it is rounded to float16.

    The quotient is more than 2**-23 of it away from where that rounding changes. Divided by 2**112, denormals of
    float16 are those of float32, as in `quotient_float32`.
    """
    return x * 1.925929944387236e-34 * tl.math.div_rn(1.0, y) * 5.192296858534828e33


def lesser(x, y):
    """The smaller; NaN where either is NaN."""
    return tl.where((x != x) | (x < y), x, y)


def greater(x, y):
    """The larger; NaN where either is NaN."""
    return tl.where((x != x) | (x > y), x, y)


def zero_like(x):
    """0, whatever x is."""
    return (x < x).to(x.dtype)


def is_infinite(x):
    """Whether x is an infinity."""
    return tl.abs(x) == float("inf")


def is_finite(x):
    """Whether x is neither infinite nor NaN."""
    return tl.abs(x) < float("inf")


def sign_float(x):
    """-1, 0 or 1; NaN for NaN."""
    return tl.where(x != x, x, (x > 0).to(x.dtype) - (x < 0).to(x.dtype))


def sign_int(x):
    """-1, 0 or 1."""
    return tl.where(x > 0, 1, tl.where(x == 0, 0, -1)).to(x.dtype)


def heaviside(x, y):
    """0 below 0, 1 above, y at 0 itself."""
    return tl.where(x != x, x, tl.where(x == 0, y, (x > 0).to(x.dtype)))


def log_add_exp(x, y):
    """log(exp(x) + exp(y)); where the two are equal, infinities too, one and log(2)."""
    rest = log1p_of_share(libdevice.exp(0 - tl.abs(x - y)))
    return tl.where(x == y, x + 0.6931471805599453, greater(x, y) + rest)


def log_add_exp2(x, y):
    """log2(2**x + 2**y); where the two are equal, infinities too, one and 1."""
    rest = log1p_of_share(libdevice.exp2(0 - tl.abs(x - y))) * 1.4426950408889634
    return tl.where(x == y, x + 1.0, greater(x, y) + rest)


def log1p_of_share(x):
    """log(1 + x) of a number from 0 to 1."""
    return log1p_of_share_float64(x) if x.dtype == tl.float64 else libdevice.log1p(x)


def log1p_of_share_float64(x):
    """log(1 + x) of float64 from 0 to 1, to 2 ulp: it has no special cases, and half of the instructions of `log1p`.

    Above ``sqrt(2) - 1`` it is log(2) and the logarithm of ``(1 + x) / 2``. The logarithm of 1 + f is ``2 atanh(s)``
    of ``s = f / (2 + f)``, which is below 0.172, and a polynomial of FreeBSD's ``e_log.c``.
    """
    above = x > 0.41421356237309503
    numerator, divisor = tl.where(above, x - 1.0, x), tl.where(above, x + 3.0, x + 2.0)
    s = quotient_of_moderate(numerator, divisor)
    square = s * s
    tail = libdevice.fma(square, as_float64(1.479819860511658591e-01), as_float64(1.531383769920937332e-01))
    tail = libdevice.fma(square, tail, as_float64(1.818357216161805012e-01))
    tail = libdevice.fma(square, tail, as_float64(2.222219843214978396e-01))
    tail = libdevice.fma(square, tail, as_float64(2.857142874366239149e-01))
    tail = libdevice.fma(square, tail, as_float64(3.999999999940941908e-01))
    tail = libdevice.fma(square, tail, as_float64(6.666666666666735130e-01))
    found = libdevice.fma(s * square, tail, s + s)
    return tl.where(above, found + 0.6931471805599453, found)


def quotient_of_moderate(x, y):
    """x / y of float64 to an ulp, where y and its reciprocal are far from overflow: Newton's steps from 20 bits."""
    one, negative = as_float64(1.0), y * -1.0
    inverse = libdevice.rcp64h(y)
    inverse = libdevice.fma(inverse, libdevice.fma(negative, inverse, one), inverse)
    inverse = libdevice.fma(inverse, libdevice.fma(negative, inverse, one), inverse)
    quotient = x * inverse
    return libdevice.fma(libdevice.fma(negative, quotient, x), inverse, quotient)


def as_float64(value: tl.constexpr):
    """A number in float64: libdevice takes plain numbers as float32."""
    return tl.full((), value, tl.float64)


def sinc(x):
    """sin(pi x) / (pi x)."""
    return tl.where(x == 0, 1.0, libdevice.div_rn(libdevice.sinpi(x), x * 3.141592653589793))


def expit(x):
    """1 / (1 + exp(-x)), by the exponential that is at most 1."""
    small = libdevice.exp(0 - tl.abs(x))
    return libdevice.div_rn(tl.where(x < 0, small, 1.0), small + 1.0)


def logit(x):
    """log(x / (1 - x)); between 0.25 and 0.75 by log1p of ``(2 x - 1) / (1 - x)``, whose numerator is exact."""
    rest = 1.0 - x
    near = libdevice.log1p(libdevice.div_rn((x - 0.5) * 2, rest))
    return tl.where((x >= 0.25) & (x <= 0.75), near, libdevice.log(libdevice.div_rn(x, rest)))


def entr(x):
    """-x log(x); 0 at 0, -infinity below."""
    found = 0 - x * libdevice.log(x)
    return tl.where(x == 0, 0.0, tl.where(x < 0, float("-inf"), found))


def times_log(x, y, log):
    """x times a logarithm of y; 0 where x is 0 and y is a number."""
    return tl.where((x == 0) & (y == y), 0.0, x * log)


def close(x, y, relative, absolute):
    """Whether x is y, or both are finite and near."""
    near = tl.abs(x - y) <= absolute + relative * tl.abs(y)
    return (x == y) | (near & is_finite(x) & is_finite(y))


def replace_nan(x, nan, positive, negative):
    """Numbers in the place of NaN and the infinities."""
    finite = tl.where(x == float("inf"), positive, tl.where(x == float("-inf"), negative, x))
    return tl.where(x != x, nan, finite)


def exponent_int32(n):
    """An int64 exponent as int32; beyond 5000 any float has overflowed or vanished."""
    return tl.where(n > 5000, 5000, tl.where(n < -5000, -5000, n)).to(tl.int32)


def frexp_exponent(x):
    """The exponent for which the mantissa is in [0.5, 1)."""
    usual = is_finite(x) & (x != 0)
    return tl.where(usual, libdevice.ilogb(tl.where(usual, x, 1.0)) + 1, 0)


def frexp_mantissa(x):
    """The mantissa, in [0.5, 1)."""
    return libdevice.ldexp(x, 0 - frexp_exponent(x))


# --- pairs of float64 in memory -------------------------------------------------------------------------------------


def pair_of(place, index):
    """The addresses of both parts of complex128; an int32 index may have no room for twice its value."""
    return place + tl.expand_dims(2 * index.to(tl.int64), -1) + tl.arange(0, 2)


def load_pair(place, index):
    """Real and imaginary parts."""
    return tl.split(tl.load(pair_of(place, index)))


def load_pair_masked(place, index, mask):
    """Real and imaginary parts where a mask is true."""
    return tl.split(tl.load(pair_of(place, index), mask=tl.expand_dims(mask, -1)))


def zeros_of(x):
    """A zero for each element; of one number, one zero."""
    return tl.where(x == x, 0.0, 0.0).to(x.dtype)


def store_pair(place, index, real, imag):
    """Write real and imaginary parts."""
    tl.store(pair_of(place, index), tl.join(real, imag))


def store_pair_masked(place, index, real, imag, mask):
    """Write real and imaginary parts where a mask is true."""
    tl.store(pair_of(place, index), tl.join(real, imag), mask=tl.expand_dims(mask, -1))


def pairs_at(place, row, first, COUNT: tl.constexpr):
    """The addresses of both parts of complex128 that are neighbours in each row, from the first, or its own, on."""
    return place + (2 * row.to(tl.int64) + (2 * first.to(tl.int64) + tl.expand_dims(tl.arange(0, 2 * COUNT), 0)))


def pairs_inside(mask, first, COUNT: tl.constexpr, end):
    """Which of both parts are to be read or written: rows by a mask, and in a row those from its first to an end."""
    place = first + tl.expand_dims(tl.arange(0, 2 * COUNT) // 2, 0)
    return mask & (place >= 0) & (place < end)


def load_pairs(place, row, first, COUNT: tl.constexpr, POLICY: tl.constexpr):
    """Real and imaginary parts of a tile, whose rows are dense."""
    pairs = tl.load(pairs_at(place, row, first, COUNT), eviction_policy=POLICY)
    return tl.split(tl.reshape(pairs, (pairs.shape[0], COUNT, 2)))


def load_pairs_masked(place, row, first, COUNT: tl.constexpr, mask, end):
    """Real and imaginary parts of what lies inside of a tile, whose rows are dense."""
    pairs = tl.load(pairs_at(place, row, first, COUNT), mask=pairs_inside(mask, first, COUNT, end))
    return tl.split(tl.reshape(pairs, (pairs.shape[0], COUNT, 2)))


def pairs_of(row, COUNT: tl.constexpr, real, imag):
    """Parts of a tile, alternating in its rows."""
    ROWS: tl.constexpr = row.shape[0]
    real, imag = tl.broadcast_to(real, (ROWS, COUNT)), tl.broadcast_to(imag, (ROWS, COUNT))
    return tl.reshape(tl.join(real, imag), (ROWS, 2 * COUNT))


def store_pairs(place, row, first, COUNT: tl.constexpr, real, imag):
    """Write a tile, whose rows are dense."""
    tl.store(pairs_at(place, row, first, COUNT), pairs_of(row, COUNT, real, imag))


def store_pairs_masked(place, row, first, COUNT: tl.constexpr, mask, end, real, imag):
    """Write what lies inside of a tile, whose rows are dense."""
    inside = pairs_inside(mask, first, COUNT, end)
    tl.store(pairs_at(place, row, first, COUNT), pairs_of(row, COUNT, real, imag), mask=inside)


def store_parts(place, offset, COUNT: tl.constexpr, real, imag):
    """Write a tile with rows of its own for every 16 columns."""
    tl.store(parts_at(place, offset), pairs_of(offset, COUNT, real, imag))


def store_parts_masked(place, offset, COUNT: tl.constexpr, mask, real, imag):
    """Write what lies inside of a tile with rows of its own for every 16 columns."""
    tl.store(parts_at(place, offset), pairs_of(offset, COUNT, real, imag), mask=mask)


def parts_at(place, offset):
    """The addresses of both parts of complex128, of which those of 16 columns are neighbours."""
    return tl.max_contiguous(tl.multiple_of(place + offset, [8, 16]), [1, 32])


# --- positions ------------------------------------------------------------------------------------------------------


def tile_in_turn(number, count, PARTS: tl.constexpr):
    """The tile with a number where one of each part is taken in turn; the first parts may have one more."""
    part = number % PARTS
    return part * (count // PARTS) + tl.minimum(part, count % PARTS) + number // PARTS


def wrapped_index(index, size):
    """An index that is counted from the front; negative ones count from the end."""
    return tl.where(index < 0, index + size, index)


def is_outside(index, size):
    """Whether a wrapped index is no element."""
    return (index < 0) | (index >= size)


def clamped_index(index, size):
    """The nearest index that is an element."""
    return tl.minimum(tl.maximum(index, 0), size - 1)


def report(place, condition, value):
    """Leave one of the values for which a condition is true."""
    block = tl.where(condition, value, 0)
    tl.store(place + block * 0, block, mask=condition != 0)


# --- rows that begin between vectors ----------------------------------------------------------------------------------


def load_neighbours(place, first, end, mask, COUNT: tl.constexpr, RUN: tl.constexpr):
    """Neighbours in each row, from a first column on: all, or where a mask of rows is true, and up to an end.

    A thread has runs of 2, 4 or 8 of them, as if it read a vector, though it reads them one by one.
    """
    at = first + RUN * tl.expand_dims(tl.arange(0, COUNT // RUN), 0)
    if RUN == 2:
        found = load_2(place, at, end, mask, 1)
    else:
        found = load_4(place, at, end, mask, 1) if RUN == 4 else load_8(place, at, end, mask, 1)
    return tl.reshape(found, (place.shape[0], COUNT))


def load_8(place, at, end, mask, STEP: tl.constexpr):
    """Eight elements a step apart, from each column on, along three axes."""
    return tl.join(load_4(place, at, end, mask, 2 * STEP), load_4(place, at + STEP, end, mask, 2 * STEP))


def load_4(place, at, end, mask, STEP: tl.constexpr):
    """Four elements likewise, along two axes."""
    return tl.join(load_2(place, at, end, mask, 2 * STEP), load_2(place, at + STEP, end, mask, 2 * STEP))


def load_2(place, at, end, mask, STEP: tl.constexpr):
    """Two elements likewise, along one axis."""
    return tl.join(load_1(place, at, end, mask), load_1(place, at + STEP, end, mask))


def load_1(place, at, end, mask):
    """One element of each row and column."""
    return tl.load(place + at) if end is None else tl.load(place + at, mask=mask & (at < end))
