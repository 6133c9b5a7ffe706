"""Functions that generated kernels call, in Triton: what neither Triton nor libdevice has with the library's rules.

This file is read as text, never imported: `codegen` copies the functions that a kernel needs into its source, with
``@triton.jit`` above them, so that a kernel's source is complete, and so is the cache key made of it. ``tl`` and
``libdevice`` are what they are in a kernel. Arguments are blocks of one compute dtype, complex ones pairs of blocks.
"""

from __future__ import annotations

# ruff: noqa: F821
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


def power_int(x, y):
    """Integer power by squaring, wrapping; a negative exponent is exact for 1 and -1, and gives 0 else."""
    negative = y < 0
    base = x + y * 0  # a block, even where one operand is a number
    exponent = tl.where(negative, 0, y + x * 0)
    result = base * 0 + 1
    for _ in range(64):
        result = tl.where((exponent & 1) != 0, result * base, result).to(x.dtype)
        base = (base * base).to(x.dtype)
        exponent = exponent >> 1
    unit = tl.where(x == 1, 1, tl.where(x == -1, tl.where((y & 1) != 0, -1, 1), 0))
    return tl.where(negative, unit, result).to(x.dtype)


def power_uint(x, y):
    """Unsigned integer power by squaring, wrapping."""
    base = x + y * 0  # a block, even where one operand is a number
    exponent = y + x * 0
    result = base * 0 + 1
    for _ in range(64):
        result = tl.where((exponent & 1) != 0, result * base, result).to(x.dtype)
        base = (base * base).to(x.dtype)
        exponent = exponent >> 1
    return result.to(x.dtype)


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


def remainder_float(x, y):
    """Python's float ``%``: with the divisor's sign, and its zero where nothing is left."""
    rest = libdevice.fmod(x, y)
    other_sign = (rest != 0) & ((y < 0) != (rest < 0))
    rest = tl.where(other_sign, rest + y, rest)
    return tl.where(rest == 0, libdevice.copysign(rest * 0, y), rest)


def floor_divide_float(x, y):
    """Python's float ``//``; the IEEE quotient where `y` is zero."""
    quotient = libdevice.div_rn(x, y)
    rest = libdevice.fmod(x, y)
    whole = x - rest
    other_sign = (rest != 0) & ((y < 0) != (rest < 0))
    ratio = libdevice.div_rn(whole, y)
    ratio = tl.where(other_sign, ratio - 1, ratio)
    floored = libdevice.floor(ratio)
    floored = tl.where(ratio - floored > 0.5, floored + 1, floored)
    zero = libdevice.copysign(ratio * 0, quotient)
    return tl.where(y == 0, quotient, tl.where(ratio == 0, zero, floored))


def lesser(x, y):
    """The smaller; NaN where either is NaN."""
    return tl.where((x != x) | (x < y), x, y)


def greater(x, y):
    """The larger; NaN where either is NaN."""
    return tl.where((x != x) | (x > y), x, y)


# --- casts ----------------------------------------------------------------------------------------------------------


def float_to_int(x, low: tl.constexpr, high: tl.constexpr, least: tl.constexpr, end: tl.constexpr, dtype: tl.constexpr):
    """Truncate toward zero, saturate in ``[low, high]``; NaN becomes 0. As floats, `least` is low, `end` high + 1."""
    inside = (x < end) & (x > least)
    truncated = tl.where(inside, x, 0.0).to(dtype)
    outside = tl.where(x >= end, high, tl.where(x <= least, low, 0)).to(dtype)
    return tl.where(inside, truncated, outside)


def float_to_uint(x, high: tl.constexpr, end: tl.constexpr, dtype: tl.constexpr):
    """Truncate toward zero and saturate in ``[0, high]``. NaN becomes 0."""
    inside = (x < end) & (x > -1.0)
    truncated = tl.where(inside, x, 0.0).to(dtype)
    return tl.where(inside, truncated, tl.where(x >= end, high, 0).to(dtype))


def odd_float32(x):
    """float64 -> float32, rounded to odd: a further rounding to 22 bits or fewer is then the only one that counts."""
    near = x.to(tl.float32)
    back = near.to(tl.float64)
    bits = near.to(tl.int32, bitcast=True)
    beyond = tl.abs(back) > tl.abs(x)
    inexact = (back != x) & (x == x)
    truncated = tl.where(inexact & beyond, bits - 1, bits)
    return tl.where(inexact, truncated | 1, bits).to(tl.float32, bitcast=True)


def odd_float64_int(x):
    """int64 -> float64, rounded to odd."""
    low = x & 0x7FF
    kept = (x - low) | tl.where(low != 0, 0x800, 0).to(tl.int64)
    exact = tl.abs(x) < 0x20000000000000
    return tl.where(exact, x, kept).to(tl.float64)


def odd_float64_uint(x):
    """uint64 -> float64, rounded to odd."""
    low = x & 0x7FF
    kept = (x - low) | tl.where(low != 0, 0x800, 0).to(tl.uint64)
    exact = x < 0x20000000000000
    return tl.where(exact, x, kept).to(tl.float64)


def float32_to_bits8(
    x, mantissa: tl.constexpr, bias: tl.constexpr, largest: tl.constexpr, beyond: tl.constexpr, nan: tl.constexpr
):
    """float32 -> the bits of an 8-bit float, rounded once to nearest even.

    `largest` is the greatest finite magnitude's code, `beyond` what overflow becomes, `nan` what NaN becomes.
    """
    bits = x.to(tl.uint32, bitcast=True)
    sign = ((bits >> 24) & 0x80).to(tl.uint32)
    magnitude = bits & 0x7FFFFFFF
    # Normal results: drop 23 - mantissa bits with round to nearest even, after moving the bias.
    cut: tl.constexpr = 23 - mantissa
    rounded = magnitude + ((1 << (cut - 1)) - 1) + ((magnitude >> cut) & 1)
    normal = (rounded >> cut) - ((127 - bias) << mantissa)
    # Results below the least normal number: adding 2**k leaves the rounded significand in the low bits.
    shifter: tl.constexpr = (127 + 23 - mantissa - bias + 1) << 23
    moved = magnitude.to(tl.float32, bitcast=True) + tl.full([1], shifter, tl.uint32).to(tl.float32, bitcast=True)
    small = moved.to(tl.uint32, bitcast=True) - shifter
    least: tl.constexpr = (127 - bias + 1) << 23
    code = tl.where(magnitude < least, small, normal)
    code = tl.where(code > largest, beyond, code)  # infinity's code is, too
    code = tl.where(magnitude > 0x7F800000, nan, code)
    return (sign | code).to(tl.uint8)


def bits8_to_float32(code, mantissa: tl.constexpr, bias: tl.constexpr, largest: tl.constexpr, infinity: tl.constexpr):
    """The bits of an 8-bit float -> float32, exactly. Codes above `largest` are NaN, except `infinity` (0xFF: none)."""
    wide = code.to(tl.uint32)
    magnitude = wide & 0x7F
    sign = (wide & 0x80) << 24
    normal = (magnitude << (23 - mantissa)) + ((127 - bias) << 23)
    # A subnormal code is an integer times 2**(1 - bias - mantissa).
    scale: tl.constexpr = (127 + 1 - bias - mantissa) << 23
    small = magnitude.to(tl.float32) * tl.full([1], scale, tl.uint32).to(tl.float32, bitcast=True)
    value = tl.where(magnitude < (1 << mantissa), small.to(tl.uint32, bitcast=True), normal)
    value = tl.where(magnitude > largest, 0x7FC00000, value)
    value = tl.where(magnitude == infinity, 0x7F800000, value)
    return (sign | value).to(tl.float32, bitcast=True)


# --- complex numbers, as pairs --------------------------------------------------------------------------------------


def complex_add(a, b, c, d):
    """Sum."""
    return a + c, b + d


def complex_subtract(a, b, c, d):
    """Difference."""
    return a - c, b - d


def complex_multiply(a, b, c, d):
    """Product."""
    return a * c - b * d, a * d + b * c


def complex_divide(a, b, c, d):
    """Quotient by Smith's method: the divisor's larger part is divided by first."""
    swap = tl.abs(c) < tl.abs(d)
    large = tl.where(swap, d, c)
    ratio = libdevice.div_rn(tl.where(swap, c, d), tl.where(large == 0, 1, large))
    scale = large + tl.where(swap, c, d) * ratio
    real = tl.where(swap, a * ratio + b, a + b * ratio)
    imaginary = tl.where(swap, b * ratio - a, b - a * ratio)
    zero = (c == 0) & (d == 0)
    real = tl.where(zero, a, real)
    imaginary = tl.where(zero, b, imaginary)
    scale = tl.where(zero, tl.abs(c), scale)
    return libdevice.div_rn(real, scale), libdevice.div_rn(imaginary, scale)


def complex_negative(a, b):
    """Negation."""
    return a * -1.0, b * -1.0


def complex_square(a, b):
    """Product with itself."""
    return (a - b) * (a + b), a * b + b * a


def complex_abs(a, b):
    """Modulus."""
    return libdevice.hypot(a, b)


def complex_equal(a, b, c, d):
    """Equality."""
    return (a == c) & (b == d)


def complex_not_equal(a, b, c, d):
    """Inequality."""
    return (a != c) | (b != d)


def complex_isnan(a, b):
    """Whether a part is NaN."""
    return (a != a) | (b != b)


def complex_where(condition, a, b, c, d):
    """The first number where the condition holds, else the second."""
    return tl.where(condition, a, c), tl.where(condition, b, d)


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


def joined(real, imag):
    """Both parts as one block; the imaginary one may be a constant."""
    return tl.join(real, tl.where(real == real, imag, imag).to(real.dtype))


def store_pair(place, index, real, imag):
    """Write real and imaginary parts."""
    tl.store(pair_of(place, index), joined(real, imag))


def store_pair_masked(place, index, real, imag, mask):
    """Write real and imaginary parts where a mask is true."""
    tl.store(pair_of(place, index), joined(real, imag), mask=tl.expand_dims(mask, -1))


# --- positions ------------------------------------------------------------------------------------------------------


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
    tl.store(place + block * 0, block, mask=condition)
