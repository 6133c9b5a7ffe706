"""Functions that generated kernels call, in Triton: on the bits of floats, and casts.

Read as text like numeric.py, which tells how.
"""

from __future__ import annotations

# ruff: noqa: F821
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

# --- the bits of floats, as integers of their size; `below` are the bits below the sign -----------------------------


def sign_bit(x, integer: tl.constexpr, below: tl.constexpr, greatest: tl.constexpr):
    """Whether the sign bit is set."""
    return x.to(integer, bitcast=True) < 0


def copy_sign(x, y, integer: tl.constexpr, below: tl.constexpr, greatest: tl.constexpr):
    """The magnitude of x with the sign of y."""
    magnitude = x.to(integer, bitcast=True) & below
    return (magnitude | (y.to(integer, bitcast=True) & (-below - 1))).to(x.dtype, bitcast=True)


def next_after(x, y, integer: tl.constexpr, below: tl.constexpr, greatest: tl.constexpr):
    """The float next to x toward y, whose code is one more or one less. Hardware compares the values."""
    from_bits, to_bits = x.to(integer, bitcast=True), y.to(integer, bitcast=True)
    start, end = in_float32(x), in_float32(y)
    step = tl.where((end > start) == (from_bits >= 0), 1, -1)
    moved = tl.where(start == 0, (to_bits & (-below - 1)) | 1, from_bits + step)
    found = tl.where((start < end) | (start > end), moved, tl.where(start != start, from_bits, to_bits))
    return found.to(integer).to(x.dtype, bitcast=True)


def in_float32(x):
    """A narrow float as float32, which hardware compares; wider ones as they are."""
    wide = x
    if x.dtype.primitive_bitwidth < 32:
        wide = x.to(tl.float32)
    return wide


def next_code(x, y, integer: tl.constexpr, below: tl.constexpr, greatest: tl.constexpr):
    """The code next to x toward y. As integers of sign and magnitude, floats are in order, and neighbours 1 apart."""
    from_bits, to_bits = x.to(integer, bitcast=True), y.to(integer, bitcast=True)
    from_size, to_size = from_bits & below, to_bits & below
    start = tl.where(from_bits < 0, 0 - from_size, from_size)
    end = tl.where(to_bits < 0, 0 - to_size, to_size)
    step = tl.where(end > start, start + 1, start - 1)
    negative = (step < 0) | ((step == 0) & (from_bits < 0))
    moved = tl.where(step < 0, 0 - step, step) | tl.where(negative, -below - 1, 0).to(integer)
    found = tl.where(start == end, to_bits, moved)
    found = tl.where(to_size > greatest, to_bits, found)
    found = tl.where(from_size > greatest, from_bits, found)
    return found.to(integer).to(x.dtype, bitcast=True)


# --- casts ----------------------------------------------------------------------------------------------------------


def float_to_int(x, low: tl.constexpr, high: tl.constexpr, least: tl.constexpr, end: tl.constexpr, dtype: tl.constexpr):
    """Truncate toward zero, saturate in ``[low, high]``; NaN becomes 0. As floats, `least` is low, `end` high + 1."""
    if x.dtype == tl.float32 and end <= 2147483648.0:
        result = libdevice.float2int_rz(x)  # it saturates at the bounds of int32, and takes NaN for 0
        if end < 2147483648.0:
            result = tl.minimum(tl.maximum(result, low), high)
        result = result.to(dtype)
    else:
        inside = (x < end) & (x > least)
        truncated = tl.where(inside, x, 0.0).to(dtype)
        outside = tl.where(x >= end, high, tl.where(x <= least, low, 0)).to(dtype)
        result = tl.where(inside, truncated, outside)
    return result


def float_to_uint(x, high: tl.constexpr, end: tl.constexpr, dtype: tl.constexpr):
    """Truncate toward zero and saturate in ``[0, high]``. NaN becomes 0."""
    if x.dtype == tl.float32 and end <= 4294967296.0:
        result = libdevice.float2uint_rz(x)  # as `float2int_rz`, at the bounds of uint32
        if end < 4294967296.0:
            result = tl.minimum(result.to(tl.uint32, bitcast=True), high)
        result = result.to(dtype)
    else:
        inside = (x < end) & (x > -1.0)
        truncated = tl.where(inside, x, 0.0).to(dtype)
        result = tl.where(inside, truncated, tl.where(x >= end, high, 0).to(dtype))
    return result


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
    moved = magnitude.to(tl.float32, bitcast=True) + tl.full([], shifter, tl.uint32).to(tl.float32, bitcast=True)
    small = moved.to(tl.uint32, bitcast=True) - shifter
    least: tl.constexpr = (127 - bias + 1) << 23
    code = tl.where(magnitude < least, small, normal)
    code = tl.where(code > largest, beyond, code)  # infinity's code is, too
    code = tl.where(magnitude > 0x7F800000, nan, code)
    return (sign | code).to(tl.uint8)


def converted_to_8_bits(x, instruction: tl.constexpr):
    """float32 -> bytes, by an instruction that converts two, four at a time.

    Triton's own cast takes the second byte of two by a shift of 16 bits. ptxas 12.8, which Triton 3.6 ships, moves that
    shift before the instruction where a thread has two elements, and the second one is then wrong. Where all four are
    one value, and `mov` puts the halves of the word together, ptxas makes one instruction of both, which merges its
    result with a register that holds something else.
    """
    if x.numel % 4 == 0:
        asm: tl.constexpr = (
            "{ .reg .b16 l, h; .reg .b32 a, b;\n" + instruction + " l, $2, $1;\n" + instruction + " h, $4, $3;\n"
            "cvt.u32.u16 a, l; cvt.u32.u16 b, h; shl.b32 b, b, 16; or.b32 $0, a, b; }"
        )
        code = tl.inline_asm_elementwise(asm, "=r,f,f,f,f", [x.to(tl.float32)], tl.uint8, is_pure=True, pack=4)
    else:
        one: tl.constexpr = "{ .reg .b16 h;\n" + instruction + " h, $1, $1;\ncvt.u32.u16 $0, h; }"
        word = tl.inline_asm_elementwise(one, "=r,f", [x.to(tl.float32)], tl.uint32, is_pure=True, pack=1)
        code = word.to(tl.uint8)
    return code


def float32_to_e4m3fn(x, saturate: tl.constexpr):
    """float32 -> the bits of float8_e4m3fn, by an instruction that saturates; 464 is a tie, and becomes 448."""
    code = converted_to_8_bits(x, "cvt.rn.satfinite.e4m3x2.f32")
    if not saturate:
        code = tl.where(tl.abs(x) > 464.0, code | 0x7F, code).to(tl.uint8)
    return code


def float32_to_e5m2(x, saturate: tl.constexpr):
    """float32 -> the bits of float8_e5m2, by an instruction that saturates; 61440 is a tie, and becomes infinity."""
    code = converted_to_8_bits(x, "cvt.rn.satfinite.e5m2x2.f32")
    if not saturate:
        code = tl.where(tl.abs(x) >= 61440.0, (code & 0x80) | 0x7C, code).to(tl.uint8)
    return code


def bits8_to_float32(code, mantissa: tl.constexpr, bias: tl.constexpr, largest: tl.constexpr, infinity: tl.constexpr):
    """The bits of an 8-bit float -> float32, exactly. Codes above `largest` are NaN, except `infinity` (0xFF: none)."""
    wide = code.to(tl.uint32)
    magnitude = wide & 0x7F
    sign = (wide & 0x80) << 24
    normal = (magnitude << (23 - mantissa)) + ((127 - bias) << 23)
    # A subnormal code is an integer times 2**(1 - bias - mantissa).
    scale: tl.constexpr = (127 + 1 - bias - mantissa) << 23
    small = magnitude.to(tl.float32) * tl.full([], scale, tl.uint32).to(tl.float32, bitcast=True)
    value = tl.where(magnitude < (1 << mantissa), small.to(tl.uint32, bitcast=True), normal)
    value = tl.where(magnitude > largest, 0x7FC00000, value)
    value = tl.where(magnitude == infinity, 0x7F800000, value)
    return (sign | value).to(tl.float32, bitcast=True)


def e4m3fn_scale(code, arch: tl.constexpr):
    """The bits of float8_e4m3fn -> float32, by an instruction that converts two to float16, if there is one."""
    asm: tl.constexpr = (
        "{ .reg .b16 h, z; .reg .b32 t; cvt.u16.u32 h, $1; cvt.rn.f16x2.e4m3x2 t, h; mov.b32 {h, z}, t; "
        "cvt.f32.f16 $0, h; }"
    )
    if arch >= 89:
        value = tl.inline_asm_elementwise(asm, "=f,r", [code.to(tl.uint32)], tl.float32, is_pure=True, pack=1)
    else:
        value = bits8_to_float32(code, 3, 7, 0x7E, 0xFF)
    return value


# --- formats that are for storage only --------------------------------------------------------------------------------


def bits8_of_one_zero(code, x):
    """The code of a format in which -0 would be NaN: a number that becomes zero has no sign."""
    return tl.where((code == 0x80) & (tl.abs(x) < 1.0), 0, code).to(tl.uint8)


def nan_of_negative_zero(x):
    """x, or NaN where it is -0."""
    return tl.where(x.to(tl.uint32, bitcast=True) == 0x80000000, float("nan"), x)


def float32_to_e2m1fn(x):
    """float32 -> the bits of float4_e2m1fn, which saturates; NaN becomes a zero.

    The steps are 1/2 up to 2, 1 up to 4 and 2 up to 6. So the code is the least of three integers: the value in each of
    these steps, rounded to nearest even, and the codes below. Floats from 2**23 on are integers, so a sum rounds.
    """
    size = tl.abs(x)
    halves, ones, twos = (size + size) + 8388608.0, size + 8388610.0, size * 0.5 + 8388612.0
    code = tl.minimum(tl.minimum(halves, ones), twos)
    code = tl.minimum(tl.maximum(code, 8388608.0), 8388615.0)
    return ((code.to(tl.uint32, bitcast=True) & 7) | ((x.to(tl.uint32, bitcast=True) >> 28) & 8)).to(tl.uint8)


def sizes_of_pairs(words):
    """Pairs of bfloat16 in words, without signs: an instruction for floats, since those for integers are the fewest."""
    return tl.inline_asm_elementwise("abs.bf16x2 $0, $1;", "=r,r", [words], tl.uint32, is_pure=True, pack=1)


def larger_halves(x, y):
    """Words with the larger one of the lower bfloat16 of two words, and of the upper ones; NaN is larger than all."""
    return tl.inline_asm_elementwise("max.NaN.bf16x2 $0, $1, $2;", "=r,r,r", [x, y], tl.uint32, is_pure=True, pack=1)


def larger_half(words):
    """The larger magnitude of the two bfloat16 in a word without signs, as float32; NaN is larger than all."""
    return (larger_halves(words, words << 16) & 0xFFFF0000).to(tl.float32, bitcast=True)


def bfloat16_pairs_to_e2m1fn(words, factor):
    """Pairs of bfloat16 in words, times a power of two of each word's block -> pairs of float4_e2m1fn in bytes.

    The steps are those of `float32_to_e2m1fn`, for two at once: bfloat16 from 128 up to 256 are integers. The products
    are exact, or so small that they become zeros. Registers collect the codes of two words, in bits 4-7 and 12-15 of
    each half, and the bits of 128 beside them, which are taken away at once; then four words become four bytes.
    """
    power = factor.to(tl.bfloat16).to(tl.uint16, bitcast=True).to(tl.uint32) * 0x10001
    keep = tl.where(factor == factor, 0xFFFFFFFF, 0).to(tl.uint32)
    head: tl.constexpr = (
        "{ .reg .b32 a, b, c, d, h, i, j, k, m, n, s, v, x, y, z;\nmov.b32 h, 0x40004000; mov.b32 i, 0x3F003F00; "
        "mov.b32 j, 0x43004300; mov.b32 k, 0x43024302; mov.b32 m, 0x43044304; mov.b32 n, 0x43074307;\n"
    )
    code: tl.constexpr = (
        "mov.b32 a, 0x80008000; fma.rn.bf16x2 v, v, b, a; fma.rn.bf16x2 x, v, h, j; mov.b32 a, 0x3F803F80; "
        "fma.rn.bf16x2 y, v, a, k; fma.rn.bf16x2 z, v, i, m;\n"
        "min.bf16x2 x, x, y; min.bf16x2 x, x, z; min.bf16x2 x, x, n;\n"
    )
    first: tl.constexpr = code + "mad.lo.u32 c, x, 16, 0xCBCBD000; "
    second: tl.constexpr = code + "mad.lo.u32 c, x, 4096, c; shr.u32 s, s, 8; lop3.b32 c, s, 0x00800080, c, 0xEA;\n"
    asm: tl.constexpr = (
        head
        + "mov.b32 v, $5; mov.b32 b, $9; "
        + first
        + "mov.b32 v, $6; mov.b32 b, $10; mov.b32 s, $1; "
        + second
        + "lop3.b32 d, $2, 0x80008000, c, 0xEA;\n"
        "mov.b32 v, $7; mov.b32 b, $11; "
        + first
        + "mov.b32 v, $8; mov.b32 b, $12; mov.b32 s, $3; "
        + second
        + "lop3.b32 c, $4, 0x80008000, c, 0xEA;\n"
        "prmt.b32 a, d, c, 0x5410; prmt.b32 b, d, c, 0x7632; shr.u32 a, a, 4; lop3.b32 $0, a, b, $13, 0xA8; }"
    )
    constraints: tl.constexpr = "=r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r"
    given = [words, sizes_of_pairs(words), power, keep]
    return tl.inline_asm_elementwise(asm, constraints, given, tl.uint8, is_pure=True, pack=4)


def bfloat16_bound(factor, middle: tl.constexpr, half: tl.constexpr):
    """The largest bfloat16 whose quotient by a factor is rounded down at a middle of float4_e2m1fn, twice in a word.

    A quotient is rounded to float32 first. So it is beyond the middle if it is beyond ``middle + half``, where `half`
    is half a last place of float32; it is negative where the tie goes up. No quotient of a bfloat16 is just there. So
    the product of that and the factor, which a fma rounds toward zero, is cut off to bfloat16.
    """
    part = factor * half
    bits = libdevice.fma_rz(factor, tl.full([], middle, tl.float32), part).to(tl.uint32, bitcast=True)
    return tl.inline_asm_elementwise("prmt.b32 $0, $1, $1, 0x3232;", "=r,r", [bits], tl.uint32, is_pure=True, pack=1)


def doubled_pairs(words):
    """Twice the bfloat16 in words."""
    asm: tl.constexpr = "{ .reg .b32 c, z; mov.b32 c, 0x40004000; mov.b32 z, 0x80008000; fma.rn.bf16x2 $0, $1, c, z; }"
    return tl.inline_asm_elementwise(asm, "=r,r", [words], tl.uint32, is_pure=True, pack=1)


def bfloat16_quotients_to_e2m1fn(words, factor, arch: tl.constexpr):
    """Quotients of pairs of bfloat16 in words by a float32 of each word's block -> pairs of float4_e2m1fn in bytes.

    The factor is 2**-80 or more. A code is the number of bounds that a magnitude exceeds. Three comparisons find it,
    for both halves of a word at once, and four words become four bytes. A comparison gives -1 in each half that is
    true. So products with it add the lower code to the lower half, and the difference of the codes to the upper one.
    Registers collect two words, in bits 4-7 and 12-15 of each half.
    """
    t1, t2 = bfloat16_bound(factor, 0.25, 2.0**-26), bfloat16_bound(factor, 0.75, -(2.0**-25))
    t3, t4 = bfloat16_bound(factor, 1.25, 2.0**-24), bfloat16_bound(factor, 1.75, -(2.0**-24))
    t5, t6, t7 = doubled_pairs(t3), doubled_pairs(t4), bfloat16_bound(factor, 5.0, 2.0**-22)
    if arch >= 90:
        above: tl.constexpr = "set.gt.u32.bf16x2 p, v, t; "
    else:
        above: tl.constexpr = "add.u32 p, v, 0x7FFF7FFF; sub.u32 p, p, t; prmt.b32 p, p, 0, 0xBB99; "
    code: tl.constexpr = (
        "mov.b32 t, h; " + above + "mov.b32 m, p; lop3.b32 t, m, j, f, 0xCA; " + above + "mov.b32 n, p;\n"
        "lop3.b32 a, m, k, g, 0xCA; lop3.b32 b, m, i, e, 0xCA; lop3.b32 t, n, a, b, 0xCA; " + above
    )
    first: tl.constexpr = code + "mul.lo.u32 c, m, -64; mad.lo.u32 c, n, -32, c; mad.lo.u32 c, p, -16, c;\n"
    second: tl.constexpr = (
        code + "mad.lo.u32 c, m, -16384, c; mad.lo.u32 c, n, -8192, c; mad.lo.u32 c, p, -4096, c;\n"
        "mad.lo.u32 c, c, 65536, c; shr.u32 s, s, 8; lop3.b32 c, s, 0x00800080, c, 0xEA; "
    )
    asm: tl.constexpr = (
        "{ .reg .b32 a, b, c, d, e, f, g, h, i, j, k, m, n, p, s, t, v;\n"
        "mov.b32 v, $5; mov.b32 e, $9; mov.b32 f, $13; mov.b32 g, $17; mov.b32 h, $21; mov.b32 i, $25; mov.b32 j, $29; "
        "mov.b32 k, $33; "
        + first
        + "mov.b32 v, $6; mov.b32 e, $10; mov.b32 f, $14; mov.b32 g, $18; mov.b32 h, $22; mov.b32 i, $26; "
        "mov.b32 j, $30; mov.b32 k, $34; mov.b32 s, $1; " + second + "lop3.b32 d, $2, 0x80008000, c, 0xEA;\n"
        "mov.b32 v, $7; mov.b32 e, $11; mov.b32 f, $15; mov.b32 g, $19; mov.b32 h, $23; mov.b32 i, $27; "
        "mov.b32 j, $31; mov.b32 k, $35; "
        + first
        + "mov.b32 v, $8; mov.b32 e, $12; mov.b32 f, $16; mov.b32 g, $20; mov.b32 h, $24; mov.b32 i, $28; "
        "mov.b32 j, $32; mov.b32 k, $36; mov.b32 s, $3; " + second + "lop3.b32 c, $4, 0x80008000, c, 0xEA;\n"
        "prmt.b32 a, d, c, 0x5410; prmt.b32 b, d, c, 0x7632; shr.u32 a, a, 4; or.b32 $0, a, b; }"
    )
    constraints: tl.constexpr = "=r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r"
    given = [words, sizes_of_pairs(words), t1, t2, t3, t4, t5, t6, t7]
    return tl.inline_asm_elementwise(asm, constraints, given, tl.uint8, is_pure=True, pack=4)


def bits4_of_bits8(code):
    """The sign in bit 3."""
    return ((code >> 4) & 8) | (code & 7)


def bits8_of_bits4(code):
    """The sign in bit 7; the upper four bits do not count."""
    return ((code & 8) << 4) | (code & 7)


def float32_to_scale(x, mode: tl.constexpr):
    """float32 -> the exponent of a power of two and 127; NaN, 255, for what is not positive or beyond.

    To nearest, a tie goes up, and so does one away from zero. What is smaller than the smallest power becomes it.
    """
    bits = x.to(tl.int32, bitcast=True)
    if mode == "rz" or mode == "rm":
        more, least = 0, 0x800000
    elif mode == "rp":
        more, least = 0x7FFFFF, 0x400001
    else:
        more, least = 0x400000, 0x600000
    code = tl.where(bits < 0x800000, (bits >= least).to(tl.int32), (tl.where(bits > 0x7F800000, 0, bits) + more) >> 23)
    return tl.where((bits <= 0) | (bits > 0x7F800000), 0xFF, code).to(tl.uint8)


def scale_to_float32(code):
    """The exponent of a power of two and 127 -> float32; 255 is NaN."""
    wide = code.to(tl.uint32)
    bits = tl.where(wide == 0, 0x400000, wide << 23)
    return tl.where(wide == 0xFF, 0x7FC00000, bits).to(tl.uint32).to(tl.float32, bitcast=True)
