"""Functions that generated kernels call, in Triton: rounding modes, approximations, flushing, minima without NaN.

Read as text like numeric.py, which tells how. Directed roundings of + * / sqrt and fma are libdevice's
``add_rz``, ``mul_rd`` and so on; PTX's rz rm rp are its rz rd ru, and ``x - y`` is ``add(x, y * -1.0)``.
"""

from __future__ import annotations

# ruff: noqa: F821
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

# --- operands and results of float32 ----------------------------------------------------------------------------------


def flush_f32(x):
    """float32, its denormals as zeros of their sign.

    Of a result this is not quite PTX's ``.ftz``, which flushes what is denormal before it is rounded: a product that
    rounds up to 2**-126 stays here.
    """
    bits = x.to(tl.int32, bitcast=True)
    magnitude = bits & 0x7FFFFFFF
    return tl.where(magnitude < 0x00800000, bits ^ magnitude, bits).to(tl.float32, bitcast=True)


# --- approximations of float32: errors by the PTX manual, of ``exp_approx`` by the CUDA programming guide -------------


def divide_full(x, y):
    """The quotient within 2 ulp of the correctly rounded one."""
    return tl.inline_asm_elementwise("div.full.f32 $0, $1, $2;", "=f,f,f", [x, y], tl.float32, is_pure=True, pack=1)


def divide_full_ftz(x, y):
    """As `divide_full`; denormals are zeros."""
    return tl.inline_asm_elementwise("div.full.ftz.f32 $0, $1, $2;", "=f,f,f", [x, y], tl.float32, is_pure=True, pack=1)


def divide_approx(x, y):
    """The quotient within 2 ulp for y in 2**-126 to 2**126; beyond that 0, or NaN for an infinite x."""
    return tl.inline_asm_elementwise("div.approx.f32 $0, $1, $2;", "=f,f,f", [x, y], tl.float32, is_pure=True, pack=1)


def divide_approx_ftz(x, y):
    """As `divide_approx`; denormals are zeros."""
    return tl.inline_asm_elementwise(
        "div.approx.ftz.f32 $0, $1, $2;", "=f,f,f", [x, y], tl.float32, is_pure=True, pack=1
    )


def reciprocal_approx(x):
    """1 / x within a relative error of 2**-23."""
    return tl.inline_asm_elementwise("rcp.approx.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)


def reciprocal_approx_ftz(x):
    """As `reciprocal_approx`; denormals are zeros."""
    return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)


def log2_approx(x):
    """log2 within 2**-22 for x in [0.5, 2], and within a relative error of 2**-22 beyond."""
    return tl.inline_asm_elementwise("lg2.approx.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)


def log2_approx_ftz(x):
    """As `log2_approx`; denormals are zeros."""
    return tl.inline_asm_elementwise("lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)


def exp2_approx(x):
    """2 to the power of x within a relative error of 2**-22."""
    return tl.inline_asm_elementwise("ex2.approx.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)


def sqrt_approx(x):
    """The root within a relative error of 2**-23."""
    return tl.inline_asm_elementwise("sqrt.approx.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)


def sqrt_approx_ftz(x):
    """As `sqrt_approx`; denormals are zeros."""
    return tl.inline_asm_elementwise("sqrt.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)


def sqrt_of_normal(x):
    """The root, rounded once, for x in 2**-100 to 2**100: what `tl.sqrt_rn` computes there, without its branches."""
    inverse = tl.inline_asm_elementwise("rsqrt.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)
    root = x * inverse
    return libdevice.fma(libdevice.fma(-root, root, x), inverse * 0.5, root)


def exp_approx(x):
    """exp, as a power of 2, within 2 + floor(abs(1.173 * x)) ulp of the correctly rounded one."""
    return exp2_approx(x * 1.4426950408889634)


def tanh_approx(x):
    """tanh within a relative error of about 2**-11."""
    return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)


# --- minima and maxima that ignore NaN (IEEE 754-2019, 9.6), of float32 and float64 -----------------------------------


def is_negative(x):
    """Whether the sign bit is set."""
    integer: tl.constexpr = tl.int64 if x.dtype == tl.float64 else tl.int32
    return x.to(integer, bitcast=True) < 0


def minimum_number(x, y):
    """The smaller, -0.0 being below 0.0; the other one of a NaN, and NaN where both are."""
    return tl.where((x < y) | (y != y) | ((x == y) & is_negative(x)), x, y)


def maximum_number(x, y):
    """The larger, 0.0 being above -0.0; the other one of a NaN, and NaN where both are."""
    return tl.where((x > y) | (y != y) | ((x == y) & is_negative(y)), x, y)


# --- casts ------------------------------------------------------------------------------------------------------------


def clamp_int(x, low: tl.constexpr, high: tl.constexpr):
    """The nearest integer in ``[low, high]``, which the dtype of x holds."""
    return tl.where(x < low, low, tl.where(x > high, high, x)).to(x.dtype)


def clamp_float(x, largest: tl.constexpr):
    """The nearest number within a magnitude; NaN stays."""
    return tl.where(x > largest, largest, tl.where(x < -largest, -largest, x)).to(x.dtype)


def round_away(x):
    """The nearest integral float, ties away from zero."""
    whole = libdevice.trunc(x)
    rest = tl.abs(x - whole)
    return tl.where(rest >= 0.5, whole + tl.where(x < 0, -1.0, 1.0).to(x.dtype), whole)


def float64_to_float32_away(x):
    """float64 -> float32, rounded to nearest, ties away from zero: a tie that went toward zero moves on by one step."""
    near = x.to(tl.float32)
    bits = near.to(tl.int32, bitcast=True)
    further = (bits + 1).to(tl.float32, bitcast=True).to(tl.float64)
    short = tl.abs(x) - tl.abs(near.to(tl.float64))
    return tl.where(short == tl.abs(further) - tl.abs(x), bits + 1, bits).to(tl.float32, bitcast=True)


def float32_to_float16(x, mode: tl.constexpr):
    """float32 -> float16 in a mode that PTX has: "rz", "rm" or "rp"."""
    asm: tl.constexpr = "{ .reg .b16 h; cvt." + mode + ".f16.f32 h, $1; cvt.u32.u16 $0, h; }"
    bits = tl.inline_asm_elementwise(asm, "=r,f", [x], tl.uint32, is_pure=True, pack=1)
    return bits.to(tl.uint16).to(tl.float16, bitcast=True)


def float32_to_bits(
    x,
    mode: tl.constexpr,
    width: tl.constexpr,
    mantissa: tl.constexpr,
    bias: tl.constexpr,
    largest: tl.constexpr,
    beyond: tl.constexpr,
    nan: tl.constexpr,
):
    """float32 -> the bits of a narrower float of some width, rounded once: toward zero, down, up, or ties away.

    `mode` is "rz", "rm", "rp" or "ra"; `largest` is the greatest finite magnitude's code, `beyond` what overflows and
    infinity become where they do not become `largest`, `nan` what NaN becomes.
    """
    bits = x.to(tl.int32, bitcast=True)
    negative = bits < 0
    magnitude = bits & 0x7FFFFFFF
    if bias == 127:  # the exponents are those of float32, and so are the places of the bits
        lost = 23 - mantissa
        code = magnitude >> lost
        rest = magnitude - (code << lost)
    else:
        # Below the least normal result one more bit is lost with each power of two: 25 are all, and more than half.
        level = tl.maximum(magnitude >> 23, 1) - (127 - bias)
        lost = tl.minimum(23 - mantissa + tl.maximum(1 - level, 0), 25)
        significand = (magnitude & 0x7FFFFF) | tl.where(magnitude >= 0x800000, 0x800000, 0)
        kept = significand >> lost
        rest = significand - (kept << lost)
        code = kept + ((tl.maximum(level, 1) - 1) << mantissa)
    if mode == "ra":
        code += ((rest << 1) >> lost != 0).to(tl.int32)
        past = beyond
    elif mode == "rz":
        past = largest
    else:
        outward = negative if mode == "rm" else bits >= 0
        code += ((rest != 0) & outward).to(tl.int32)
        past = tl.where(outward, beyond, largest)
    code = tl.where(code > largest, past, code)
    code = tl.where(magnitude == 0x7F800000, beyond, code)
    code = tl.where(magnitude > 0x7F800000, nan, code)
    return code | tl.where(negative, 1 << (width - 1), 0)


# --- quotients by one divisor -----------------------------------------------------------------------------------------


def quotient_by(x, y, reciprocal, bounded: tl.constexpr):
    """x / y of float32 from the rounded reciprocal of y, for y within [2**-80, 2**126] and infinity.

    The product is within 2 units in the last place. So its remainder is exact, and the sum of the product and the
    remainder times the reciprocal is rounded as the quotient is, unless the quotient lies within 2**-23 units of the
    middle of two floats. `tests/kernels/test_quantize_kernels.py` finds all divisors that have such quotients next to a
    number of 8 bits or fewer, and shows that none of them matters: a format of 8 bits rounds the result as it rounds
    the quotient. Magnitudes below 2**-23 may differ in the last place.

    Of an infinite y the quotients are zeros. A quotient beyond float32, or of an infinite x by a finite y, needs
    ``bounded=False``.
    """
    product = x * reciprocal
    rest = libdevice.fma(product, tl.where(y == float("inf"), 0.0, y), x * -1.0)
    near = libdevice.fma(rest, reciprocal * -1.0, product)
    if not bounded:
        near = tl.where(tl.abs(rest) < float("inf"), near, product)
    return near


# --- stochastic rounding ----------------------------------------------------------------------------------------------


def round_at_random_32(x, word, precision: tl.constexpr, lowest: tl.constexpr):
    """float32 -> a multiple of its last place among `precision` bits, or of ``2**lowest``, chosen by a random word.

    Bits are lost up to that place. The word's upper ones are added to them, and a carry moves on to the next multiple.
    If all bits are lost, the result is zero or ``2**lowest``.
    """
    bits = x.to(tl.uint32, bitcast=True)
    sign = bits & 0x80000000
    magnitude = bits ^ sign
    level = (magnitude >> 23).to(tl.int32)
    last = tl.where(level == 0, lowest, tl.maximum(level - (126 + precision), lowest))
    lost = tl.minimum(tl.maximum(last + 150 - tl.maximum(level, 1), 0), 56)
    kept = tl.minimum(lost, 23)
    added = (word >> 1) >> (31 - kept).to(tl.uint32)
    moved = ((magnitude + added) >> kept.to(tl.uint32)) << kept.to(tl.uint32)
    significand = (magnitude & 0x7FFFFF) | tl.where(level == 0, 0, 0x800000).to(tl.uint32)
    above = tl.where(lost < 32, 32 - lost, 0).to(tl.uint32)
    below = tl.where(lost > 32, lost - 32, 0).to(tl.uint32)
    fraction = (significand << tl.minimum(above, 8)) >> below
    least: tl.constexpr = (lowest + 127) << 23 if lowest >= -126 else 1 << (lowest + 149)
    small = tl.where((fraction + word).to(tl.uint32) < fraction, least, 0).to(tl.uint32)
    near = tl.where(lost > 23, small, moved)
    if precision == 1:  # a format without zero
        near = tl.where((near < least) & (magnitude != 0) & (sign == 0), least, near).to(tl.uint32)
    near = tl.where(magnitude >= 0x7F800000, magnitude, near)
    return (near | sign).to(tl.float32, bitcast=True)


def round_at_random_64(x, word, precision: tl.constexpr, lowest: tl.constexpr):
    """The same of float64."""
    bits = x.to(tl.int64, bitcast=True)
    magnitude = bits & 0x7FFFFFFFFFFFFFFF
    level = (magnitude >> 52).to(tl.int32)
    last = tl.where(level == 0, lowest, tl.maximum(level - (1022 + precision), lowest))
    lost = tl.minimum(tl.maximum(last + 1075 - tl.maximum(level, 1), 0), 85).to(tl.int64)
    kept = tl.minimum(lost, 52)
    wide = word.to(tl.int64)
    added = tl.where(kept > 32, wide << tl.maximum(kept - 32, 0), wide >> tl.maximum(32 - kept, 0))
    moved = ((magnitude + added) >> kept) << kept
    significand = (magnitude & 0xFFFFFFFFFFFFF) | tl.where(level == 0, 0, 0x10000000000000).to(tl.int64)
    fraction = significand >> tl.maximum(lost - 32, 0)
    least: tl.constexpr = (lowest + 1023) << 52
    small = tl.where(fraction + wide >= 0x100000000, least, 0).to(tl.int64)
    near = tl.where(lost > 52, small, moved)
    if precision == 1:
        near = tl.where((near < least) & (magnitude != 0) & (bits >= 0), least, near).to(tl.int64)
    near = tl.where(magnitude >= 0x7FF0000000000000, magnitude, near)
    return (near | (bits ^ magnitude)).to(tl.float64, bitcast=True)
