"""Functions that generated kernels call, in Triton: exponentials, roots, trigonometry and their inverses, of pairs.

Read as text like numeric.py, which tells how. All compute in float64, also for complex64: its result is then rounded
once, and nothing overflows or cancels on the way. Each function first computes a result for finite operands, then puts
the special values of C (ISO/IEC 9899, Annex G) in the places of infinities and NaN. A product that is later corrected
is ``libdevice.mul_rn``, which no compiler contracts into fma.
"""

from __future__ import annotations

# ruff: noqa: F821
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false


def in_float64(a, b):
    """Both parts as float64."""
    return a.to(tl.float64), b.to(tl.float64)


def number_like(x, number):
    """A number, as a block of the dtype of x."""
    return zero_like(x) + number


def either_infinite(x, y):
    """Whether one of two values is an infinity, whatever the other is."""
    return is_infinite(x) | is_infinite(y)


# --- sums of two numbers ------------------------------------------------------------------------------------------


def sum_in_two(x, y):
    """x + y, and what it lacks."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def product_in_two(x, y):
    """x y, and what it lacks."""
    product = libdevice.mul_rn(x, y)
    return product, libdevice.fma(x, y, 0.0 - product)


def quotient_in_two(x, rest, y, lack):
    """(x + rest) / (y + lack) as a sum of two numbers."""
    share = libdevice.rcp_rn(y)
    quotient = x * share
    return quotient, (libdevice.fma(quotient * -1.0, y, x) + rest - quotient * lack) * share


# --- exponentials, sine and cosine ----------------------------------------------------------------------------------


def angle_parts(x, y):
    """cos(y) and sin(y), for a factor that grows with x: one that is infinite leaves one part of an unknown angle."""
    unknown = is_infinite(x) & ~is_finite(y)
    return tl.where(unknown, 1.0, libdevice.cos(y)), libdevice.sin(y)


def exp_of_parts(x, y, c, s):
    """exp(x) (c + i s), where c and s are cosine and sine of y. Beyond 709, exp(x) is a product of two factors."""
    beyond = x > 709.0
    size = libdevice.exp(tl.where(beyond, x - 709.0, x))
    more = tl.where(beyond, 8.218407461554972e307, number_like(x, 1.0))
    vanished = (x == float("-inf")) & ~is_finite(y)
    real = tl.where(vanished, 0.0, size * c * more)
    return real, tl.where(vanished, 0.0, tl.where(y == 0, y, size * s * more))


def complex_exp(a, b):
    """exp(x) (cos(y) + i sin(y))."""
    x, y = in_float64(a, b)
    c, s = angle_parts(x, y)
    real, imag = exp_of_parts(x, y, c, s)
    return real.to(a.dtype), imag.to(a.dtype)


def rotated(c, s, rest):
    """Cosine and sine of an angle and a rest, from those of the angle."""
    turn, back = libdevice.sin(rest), libdevice.sin(rest * 0.5)
    back = 2.0 * back * back
    usual = is_finite(s) & is_finite(rest)
    return tl.where(usual, c - (s * turn + c * back), c), tl.where(usual, s + (c * turn - s * back), s)


def complex_exp2(a, b):
    """2**x (cos(y log(2)) + i sin(y log(2))). The angle is a sum of two numbers."""
    x, y = in_float64(a, b)
    log2 = number_like(y, 0.6931471805599453)
    angle = libdevice.mul_rn(y, log2)
    rest = libdevice.fma(y, log2, 0.0 - angle) + y * 2.3190468138462996e-17
    c, s = angle_parts(x, angle)
    c, s = rotated(c, s, rest)
    beyond = x > 1023.0
    size = libdevice.exp2(tl.where(beyond, x - 1023.0, x))
    more = tl.where(beyond, 8.98846567431158e307, number_like(x, 1.0))
    vanished = (x == float("-inf")) & ~is_finite(y)
    real = tl.where(vanished, 0.0, size * c * more)
    imag = tl.where(vanished, 0.0, tl.where(y == 0, y, size * s * more))
    return real.to(a.dtype), imag.to(a.dtype)


def complex_expm1(a, b):
    """exp(x) - 1 as (exp(x) - 1) cos(y) - 2 sin(y / 2)**2, which does not cancel near 0."""
    x, y = in_float64(a, b)
    c, s = angle_parts(x, y)
    real, imag = exp_of_parts(x, y, c, s)
    half = libdevice.sin(y * 0.5)
    near = libdevice.expm1(x) * c - 2.0 * half * half
    real = tl.where((tl.abs(x) < 30.0) & is_finite(y), near, real - 1.0)
    return real.to(a.dtype) + 0.0, imag.to(a.dtype)


def hyperbolic_parts(x):
    """sinh(abs(x)) and cosh(abs(x)), and a factor that both lack, beyond 709."""
    size = tl.abs(x)
    beyond = size > 709.0
    less = libdevice.expm1(tl.where(beyond, size - 709.0, size))
    grown = less + 1.0
    shrunk = tl.where(beyond, 0.0, libdevice.rcp_rn(grown))
    sine = 0.5 * tl.where(beyond, grown, less + less * shrunk)
    cosine = 0.5 * (grown + shrunk)
    return sine, cosine, tl.where(beyond, 8.218407461554972e307, number_like(x, 1.0))


def sinh_of_parts(x, y):
    """sinh(x) cos(y), cosh(x) sin(y)."""
    sine, cosine, more = hyperbolic_parts(x)
    c, s = angle_parts(x, y)
    real = tl.where((x == 0) & ~is_finite(y), x, libdevice.copysign(sine, x) * c * more)
    return real, tl.where(y == 0, y, cosine * s * more)


def complex_sinh(a, b):
    """Hyperbolic sine."""
    x, y = in_float64(a, b)
    real, imag = sinh_of_parts(x, y)
    return real.to(a.dtype), imag.to(a.dtype)


def complex_sin(a, b):
    """-i sinh(i x)."""
    x, y = in_float64(a, b)
    imag, real = sinh_of_parts(y, x)
    return real.to(a.dtype), imag.to(a.dtype)


def cosh_of_parts(x, y):
    """cosh(x) cos(y), sinh(x) sin(y)."""
    sine, cosine, more = hyperbolic_parts(x)
    c, s = angle_parts(x, y)
    sine = libdevice.copysign(sine, x)
    real = cosine * c * more
    imag = tl.where(y == 0, libdevice.copysign(number_like(x, 1.0), x) * y, sine * s * more)
    return real, tl.where((x == 0) & ~is_finite(y), x, imag)


def complex_cosh(a, b):
    """Hyperbolic cosine."""
    x, y = in_float64(a, b)
    real, imag = cosh_of_parts(x, y)
    return real.to(a.dtype), imag.to(a.dtype)


def complex_cos(a, b):
    """cosh(i x)."""
    x, y = in_float64(a, b)
    real, imag = cosh_of_parts(y, x)
    return real.to(a.dtype), (imag * -1.0).to(a.dtype)


def tanh_of_parts(x, y):
    """With p = exp(2 abs(x)) - 1, (p (p + 2) + 4 i sin(y) cos(y) (p + 1)) / (p**2 + 4 cos(y)**2 (p + 1)).

    All but p, the sine and the cosine are sums of two numbers. Beyond 22 the real part is 1.
    """
    beyond = tl.abs(x) > 22.0
    grown = libdevice.expm1(2.0 * tl.abs(x))
    p = tl.where(beyond, 1.0, grown)
    c, s = libdevice.cos(y), libdevice.sin(y)
    more, more_rest = sum_in_two(p, number_like(x, 1.0))
    factor, factor_rest = product_in_two(4.0 * c, more)
    factor_rest += 4.0 * c * more_rest
    square, square_rest = product_in_two(p, p)
    above, above_rest = sum_in_two(square, 2.0 * p)
    turned, turned_rest = product_in_two(s, factor)
    scale, scale_rest = product_in_two(c, factor)
    scale, lost = sum_in_two(scale, square)
    scale_rest += lost + square_rest + c * factor_rest
    real, rest = quotient_in_two(above, above_rest + square_rest, scale, scale_rest)
    imag, lost = quotient_in_two(turned, turned_rest + s * factor_rest, scale, scale_rest)
    real, imag = tl.where(beyond, 1.0, real + rest), tl.where(beyond, libdevice.div_rn(4.0 * s * c, grown), imag + lost)
    real = tl.where(beyond & ~is_finite(y) & ~is_infinite(x), y - y, real)
    real = tl.where((x == 0) & ~is_finite(y), 0.0, real)
    imag = tl.where(is_infinite(x), libdevice.copysign(zero_like(y), y), imag)
    return libdevice.copysign(real, x), tl.where(y == 0, y, imag)


def complex_tanh(a, b):
    """Hyperbolic tangent."""
    x, y = in_float64(a, b)
    real, imag = tanh_of_parts(x, y)
    return real.to(a.dtype), imag.to(a.dtype)


def complex_tan(a, b):
    """-i tanh(i x)."""
    x, y = in_float64(a, b)
    imag, real = tanh_of_parts(y, x)
    return real.to(a.dtype), imag.to(a.dtype)


# --- logarithms and roots -------------------------------------------------------------------------------------------


def sum_of_squares(x, y):
    """x**2 + y**2 as a sum of two numbers."""
    first, second = libdevice.mul_rn(x, x), libdevice.mul_rn(y, y)
    total = first + second
    part = total - first
    lost = (first - (total - part)) + (second - part)
    return total, lost + (libdevice.fma(x, x, 0.0 - first) + libdevice.fma(y, y, 0.0 - second))


def square_with_scale(x, rest, y):
    """(x + rest)**2 + y**2 of scaled operands: a number, what it lacks, and the scale.

    The operands are multiplied by 2**-600, 1 or 2**600, so that no square overflows or vanishes: the scale is 1, 0 or
    -1.
    """
    size = greater(tl.abs(x), tl.abs(y))
    large, small = size > 3.273390607896142e150, size < 3.054936363499605e-151
    scale = tl.where(large, 2.409919865102884e-181, tl.where(small, 4.149515568880993e180, number_like(x, 1.0)))
    total, lost = sum_of_squares(x * scale, y * scale)
    lost += 2.0 * (x * scale) * (rest * scale)
    return total, lost, large.to(tl.float64) - small.to(tl.float64)


def square_for_log(a, x, y):
    """abs(z)**2, what it lacks relative to it, and the scale; squares of float32 are exact in float64, and in range."""
    if a.dtype == tl.float32:
        square, lost = sum_in_two(x * x, y * y)
        rest = tl.where(tl.abs(square - 1.0) < 0.5, lost * (2.0 - square), 0.0)
        turns = zero_like(x)
    else:
        square, lost, turns = square_with_scale(x, zero_like(x), y)
        rest = relative_rest(square, lost)
    return square, rest, turns


def relative_rest(square, lost):
    """What a square lacks, divided by it: what its logarithm lacks."""
    usual = (square > 0) & is_finite(square)
    return tl.where(usual, libdevice.div_rn(lost, tl.where(usual, square, 1.0)), 0.0)


def complex_log(a, b):
    """log(abs(x)) + i angle(x). Half the logarithm of the square, which is known to twice the digits."""
    x, y = in_float64(a, b)
    square, rest, turns = square_for_log(a, x, y)
    real = 0.5 * (libdevice.log(square) + rest) + turns * 415.88830833596717
    real = tl.where(either_infinite(x, y), float("inf"), real)
    return real.to(a.dtype), libdevice.atan2(y, x).to(a.dtype)


def complex_log2(a, b):
    """log(x) / log(2)."""
    x, y = in_float64(a, b)
    square, rest, turns = square_for_log(a, x, y)
    real = 0.5 * (libdevice.log2(square) + rest * 1.4426950408889634) + turns * 600.0
    real = tl.where(either_infinite(x, y), float("inf"), real)
    return real.to(a.dtype), (libdevice.atan2(y, x) * 1.4426950408889634).to(a.dtype)


def complex_log10(a, b):
    """log(x) / log(10)."""
    x, y = in_float64(a, b)
    square, rest, turns = square_for_log(a, x, y)
    real = 0.5 * (libdevice.log10(square) + rest * 0.4342944819032518) + turns * 180.61799739838872
    real = tl.where(either_infinite(x, y), float("inf"), real)
    return real.to(a.dtype), (libdevice.atan2(y, x) * 0.4342944819032518).to(a.dtype)


def complex_log1p(a, b):
    """log(1 + x), where 1 + x is a sum of two numbers."""
    x, y = in_float64(a, b)
    total = x + 1.0
    part = total - 1.0
    rest = (1.0 - (total - part)) + (x - part)
    square, lost, turns = square_with_scale(total, tl.where(is_finite(rest), rest, 0.0), y)
    real = 0.5 * (libdevice.log(square) + relative_rest(square, lost)) + turns * 415.88830833596717
    real = tl.where(either_infinite(x, y), float("inf"), real)
    return real.to(a.dtype), libdevice.atan2(y, total).to(a.dtype)


def root_of_parts(x, y):
    """The square root of finite numbers; the smaller part is the quotient that gives y / 2 as the product of both."""
    size = greater(tl.abs(x), tl.abs(y))
    large, small = size > 3.273390607896142e150, size < 3.2033329522929615e-145
    scale = tl.where(large, 2.409919865102884e-181, tl.where(small, 4.149515568880993e180, number_like(x, 1.0)))
    back = tl.where(large, 2.037035976334486e90, tl.where(small, 4.909093465297727e-91, number_like(x, 1.0)))
    u, v = tl.abs(x) * scale, tl.abs(y) * scale
    longer = tl.math.sqrt(0.5 * (tl.math.sqrt(u * u + v * v) + u))
    shorter = libdevice.div_rn(0.5 * v, tl.where(longer == 0, 1.0, longer))
    right = x >= 0
    real = tl.where(right, longer, shorter) * back
    return real, libdevice.copysign(tl.where(right, shorter, longer) * back, y)


def complex_sqrt(a, b):
    """Square root, with a real part that is not negative."""
    x, y = in_float64(a, b)
    real, imag = root_of_parts(x, y)
    flat = is_infinite(x)
    left = x < 0
    real = tl.where(flat, tl.where(left, tl.abs(y - y), tl.abs(x)), real)
    imag = tl.where(flat, tl.where(left, libdevice.copysign(x, y), libdevice.copysign(y - y, y)), imag)
    real = tl.where(is_infinite(y), float("inf"), real)
    return real.to(a.dtype), tl.where(is_infinite(y), y, imag).to(a.dtype)


# --- inverse functions ----------------------------------------------------------------------------------------------


def arc_of_parts(x, y):
    """abs(v), abs(R) and x, for asin(x + i y) = u + i v and tan(u) = x / R.

    sinh(v) + i cos(u) is a square root of abs(z)**2 - 1 + 2 i y, and R = cos(u) cosh(v). Large operands are scaled: v
    is log(2 abs(z)) there.
    """
    size = greater(tl.abs(x), tl.abs(y))
    large, huge = size > 3.273390607896142e150, size > 9.7453140114e288
    scale = tl.where(huge, 2.409919865102884e-181, tl.where(large, 3.2802129431479926e-142, number_like(x, 1.0)))
    shift = huge.to(tl.float64) * 415.88830833596717 + (large & ~huge).to(tl.float64) * 325.7791748631743
    u, v = tl.abs(x) * scale, tl.abs(y) * scale
    first, second = libdevice.mul_rn(u, u), libdevice.mul_rn(v, v)
    rest = libdevice.fma(u, u, 0.0 - first) + libdevice.fma(v, v, 0.0 - second)
    sine, cosine = root_of_parts(((first - 1.0) + second) + rest, 2.0 * v)
    square = sine * sine
    grown = tl.math.sqrt(1.0 + square)
    length = libdevice.log1p(sine + libdevice.div_rn(square, 1.0 + grown)) + shift
    unbounded = either_infinite(x, y)
    across = tl.where(unbounded, tl.abs(y), cosine * grown)
    return tl.where(unbounded, float("inf"), length), across, tl.where(unbounded, x, x * scale)


def asin_of_parts(x, y):
    """Both parts of the arc sine."""
    length, across, along = arc_of_parts(x, y)
    angle = tl.where((x == 0) & (y != y), x, libdevice.atan2(along, across))
    return angle, libdevice.copysign(length, y)


def complex_asin(a, b):
    """Arc sine."""
    x, y = in_float64(a, b)
    real, imag = asin_of_parts(x, y)
    return real.to(a.dtype), imag.to(a.dtype)


def complex_asinh(a, b):
    """-i asin(i x)."""
    x, y = in_float64(a, b)
    imag, real = asin_of_parts(y, x)
    return real.to(a.dtype), imag.to(a.dtype)


def acos_of_parts(x, y):
    """The real part of the arc cosine, and the size of the imaginary one."""
    length, across, along = arc_of_parts(x, y)
    right = number_like(x, 1.5707963267948966)
    return tl.where((x == 0) & (y != y), right, libdevice.atan2(across, along)), length


def complex_acos(a, b):
    """Arc cosine."""
    x, y = in_float64(a, b)
    angle, length = acos_of_parts(x, y)
    return angle.to(a.dtype), libdevice.copysign(length, y * -1.0).to(a.dtype)


def complex_acosh(a, b):
    """i acos(x), with a real part that is not negative."""
    x, y = in_float64(a, b)
    angle, length = acos_of_parts(x, y)
    return length.to(a.dtype), libdevice.copysign(angle, y).to(a.dtype)


def atanh_of_parts(x, y):
    """log1p(4 abs(x) / abs(1 - z)**2) / 4 with the sign of x, and half the angle of 1 - abs(z)**2 + 2 i y."""
    size, height = tl.abs(x), tl.abs(y)
    large = (size > 3.273390607896142e150) | (height > 3.273390607896142e150)
    scale = tl.where(large, 2.409919865102884e-181, number_like(x, 1.0))
    u, v = size * scale, height * scale
    near = tl.where(large, u, 1.0 - size)
    beside = (near == 0) & (height < 3.054936363499605e-151)
    above = tl.where(beside, 8.673617379884035e-19, 4.0 * u)
    below = tl.where(beside, height, near * near + v * v)
    real = libdevice.log1p(libdevice.div_rn(above, below) * scale)
    real = tl.where(beside, 0.5 * (real + 42.281978014156664), 0.25 * real)
    real = tl.where((x == 0) | either_infinite(x, y), 0.0, real)
    first, second = libdevice.mul_rn(size, size), libdevice.mul_rn(y, y)
    rest = libdevice.fma(size, size, 0.0 - first) + libdevice.fma(y, y, 0.0 - second)
    across = tl.where(large, 0.0 - (u + v), ((1.0 - first) - second) - rest)
    imag = 0.5 * libdevice.atan2(tl.where(large, libdevice.copysign(zero_like(y), y), 2.0 * y), across)
    right = libdevice.copysign(number_like(y, 1.5707963267948966), y)
    return libdevice.copysign(real, x), tl.where(is_infinite(y), right, imag)


def complex_atanh(a, b):
    """Inverse hyperbolic tangent."""
    x, y = in_float64(a, b)
    real, imag = atanh_of_parts(x, y)
    return real.to(a.dtype), imag.to(a.dtype)


def complex_atan(a, b):
    """-i atanh(i x)."""
    x, y = in_float64(a, b)
    imag, real = atanh_of_parts(y, x)
    return real.to(a.dtype), imag.to(a.dtype)


# --- powers: logarithms are sums of two numbers, because their errors become larger ones of the power --------------


def log_in_two(square, lost, turns):
    """log(square + lost) / 2 + 600 turns log(2).

    With s = (m - 1) / (m + 1) it is n log(2) / 2 + s + s**3 / 3 + s**5 / 5 + ..., where m is between sqrt(1/2) and
    sqrt(2).
    """
    bits = square.to(tl.int64, bitcast=True)
    power = (bits - 0x3FE6A09E667F3BCD) >> 52
    number = (bits - (power << 52)).to(tl.float64, bitcast=True)
    lost = lost * ((1023 - power) << 52).to(tl.float64, bitcast=True)
    above = number + 1.0
    s, t = quotient_in_two(number - 1.0, lost, above, (number - (above - 1.0)) + lost)
    square, square_rest = product_in_two(s, s)
    cube, cube_rest = product_in_two(square, s)
    cube_rest += (square_rest + 2.0 * s * t) * s + square * t
    term, term_rest = product_in_two(cube, number_like(s, 0.3333333333333333))
    term_rest += cube_rest * 0.3333333333333333 + cube * 1.850371707708594e-17
    tail = number_like(s, 0.04)
    for k in tl.static_range(10):
        tail = tail * square + 1.0 / (23 - 2 * k)
    count = power.to(tl.float64) + 1200.0 * turns
    total, rest = sum_in_two(count * 0.34657359027914935, s)
    total, more = sum_in_two(total, term)
    return sum_in_two(total, rest + more + (t + term_rest + cube * square * tail + count * 8.232974791448541e-13))


def angle_in_two(x, y):
    """The angle of a point other than 0: that of a multiple of 1/8 and an arc tangent of at most 1/16."""
    u, v = tl.abs(x), tl.abs(y)
    swaps, left = v > u, x < 0
    large, small = tl.where(swaps, v, u), tl.where(swaps, u, v)
    large = tl.where(large == 0, 1.0, large)
    eighths = libdevice.rint(8.0 * libdevice.div_rn(small, large))
    part, part_rest = product_in_two(eighths * 0.125, large)
    share, share_rest = product_in_two(eighths * 0.125, small)
    total, total_rest = sum_in_two(large, share)
    s, t = quotient_in_two(small - part, 0.0 - part_rest, total, total_rest + share_rest)
    square = s * s
    tail = number_like(s, 0.07692307692307693)
    tail = tail * square - 0.09090909090909091
    tail = tail * square + 0.1111111111111111
    tail = tail * square - 0.14285714285714285
    tail = tail * square + 0.2
    tail = tail * square - 0.3333333333333333
    rest = t + s * square * tail
    known, known_rest = arc_tangent_of_eighths(eighths)
    turned = tl.where(swaps != left, -1.0, 1.0)
    base = tl.where(swaps, 1.0, tl.where(left, 2.0, zero_like(x)))
    angle, more = sum_in_two(base * 1.5707963267948966, known * turned)
    angle, most = sum_in_two(angle, s * turned)
    angle, rest = sum_in_two(angle, base * 6.123233995736766e-17 + (most + (more + (known_rest + rest) * turned)))
    side = libdevice.copysign(number_like(y, 1.0), y)
    return angle * side, rest * side


def arc_tangent_of_eighths(n):
    """The arc tangent of n / 8, for n from 0 to 8."""
    x = tl.where(n == 1, 0.12435499454676144, tl.where(n == 2, 0.24497866312686414, 0.0 * n))
    y = tl.where(n == 1, -3.1253241424539383e-18, tl.where(n == 2, 1.0698755618734451e-17, 0.0 * n))
    x = tl.where(n == 3, 0.35877067027057225, tl.where(n == 4, 0.4636476090008061, x))
    y = tl.where(n == 3, -2.4623815582638635e-17, tl.where(n == 4, 2.2698777452961687e-17, y))
    x = tl.where(n == 5, 0.5585993153435624, tl.where(n == 6, 0.6435011087932844, x))
    y = tl.where(n == 5, -5.4556305485916264e-18, tl.where(n == 6, 1.5834785051444286e-17, y))
    x = tl.where(n == 7, 0.7188299996216245, tl.where(n == 8, 0.7853981633974483, x))
    y = tl.where(n == 7, -2.1478388444456983e-17, tl.where(n == 8, 3.061616997868383e-17, y))
    return x, y


def power_in_two(x, y, u, v):
    """exp(w log(z)), both parts of the exponent as sums of two numbers."""
    square, lost, turns = square_with_scale(x, zero_like(x), y)
    usual = is_finite(square) & (square > 0)
    size, size_rest = log_in_two(square, lost, turns)
    size = tl.where(usual, size, square)
    scale = tl.where(turns < 0, 4.149515568880993e180, number_like(x, 1.0))
    scale = tl.where(turns > 0, 2.409919865102884e-181, scale)
    unbounded = either_infinite(x, y)
    across = tl.where(unbounded, libdevice.copysign(is_infinite(x).to(tl.float64), x), x * scale)
    along = tl.where(unbounded, libdevice.copysign(is_infinite(y).to(tl.float64), y), y * scale)
    angle, angle_rest = angle_in_two(across, along)
    first, first_rest = product_in_two(u, size)
    second, second_rest = product_in_two(v, angle)
    grown, grown_rest = sum_in_two(first, second * -1.0)
    grown_rest += (first_rest - second_rest) + (u * size_rest - v * angle_rest)
    first, first_rest = product_in_two(v, size)
    second, second_rest = product_in_two(u, angle)
    turn, turn_rest = sum_in_two(first, second)
    turn_rest += (first_rest + second_rest) + (v * size_rest + u * angle_rest)
    more = tl.where(is_finite(grown_rest), grown_rest, 0.0)
    rest = tl.where(tl.abs(turn_rest) < 0.001, turn_rest, 0.0)
    back = 0.5 * rest * rest
    turned = rest - rest * back * 0.3333333333333333
    c, s = angle_parts(grown, turn)
    usual = is_finite(turn)
    real = tl.where(usual, c + (c * (more - back) - s * turned), c)
    imag = tl.where(usual, s + (s * (more - back) + c * turned), s)
    return exp_of_parts(grown, turn, real, imag)


def power_of_parts(x, y, u, v):
    """exp(w log(z)): for parts that were float32, float64 has digits enough."""
    size, angle = 0.5 * libdevice.log(x * x + y * y), libdevice.atan2(y, x)
    grown, turn = u * size - v * angle, v * size + u * angle
    c, s = angle_parts(grown, turn)
    return exp_of_parts(grown, turn, c, s)


def special_powers(x, y, u, v, real, imag):
    """A power, or its value where the exponent is 0, 1 or 2 or the base is 0: NaN, if the exponent is not positive."""
    plain = v == 0
    square_real, square_imag = complex_multiply(x, y, x, y)
    real, imag = complex_where(plain & (u == 2), square_real, square_imag, real, imag)
    real, imag = complex_where(plain & (u == 1), x, y, real, imag)
    zero = tl.where(u > 0, 0.0, number_like(x, float("nan")))
    real, imag = complex_where((x == 0) & (y == 0), zero, zero, real, imag)
    return complex_where(plain & (u == 0), number_like(x, 1.0), zero_like(x), real, imag)


def complex_pow_of_all(a, b, c, d):
    """Power."""
    x, y = in_float64(a, b)
    u, v = in_float64(c, d)
    if a.dtype == tl.float32:
        real, imag = power_of_parts(x, y, u, v)
    else:
        real, imag = power_in_two(x, y, u, v)
    real, imag = special_powers(x, y, u, v, real, imag)
    return real.to(a.dtype), imag.to(a.dtype)


def complex_pow(a, b, c, d):
    """Power; a number as exponent that is 2 costs one product."""
    if c.type.is_block():
        real, imag = complex_pow_of_all(a, b, c, d)
    elif (c == 2) & (d == 0):
        real, imag = complex_multiply(a, b, a, b)
    else:
        real, imag = complex_pow_of_all(a, b, c, d)
    return real, imag
