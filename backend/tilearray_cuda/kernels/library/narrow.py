"""Functions that generated kernels call, in Triton: of bfloat16 in float32, for results that are rounded to bfloat16.

Read as text like numeric.py, which tells how. Operands are float32 that bfloat16 holds. The approximations of hardware
have a relative error of about 2**-22, and polynomials of 2**-20 or less; half an ulp of bfloat16 is 2**-9 to 2**-8.
Signs are factors: the compiler would move an exchange of sign bits behind the rounding, where it takes more
instructions.
"""

from __future__ import annotations

# ruff: noqa: F821
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false


def quotient_bfloat16(x, y):
    """x / y of bfloat16 in float32, as a product with the reciprocal of y; right if it is rounded to bfloat16.

    The quotient is at least 2**-17 of it away from where that rounding changes. Denormals are as in `quotient_float32`.
    The factor keeps the reciprocal normal.
    """
    size = tl.abs(y)
    factor = tl.where(
        size < 1.1754943508222875e-38,
        4294967296.0,
        tl.where(size < 18446744073709551616.0, 1.0, 2.3283064365386963e-10),
    )
    return x * factor * reciprocal_approx(y * factor)


def power_by_number_bfloat16(x, y):
    """x ** y; the exponents 2 and 3 cost one or two products."""
    if y == 2:
        result = x * x
    elif y == 3:
        result = x * x * x
    else:
        result = power_bfloat16(x, y)
    return result


def power_bfloat16(x, y):
    """2 ** (y log2(abs(x))), with the sign of an odd power; NaN for other powers of a negative number.

    `rest` is how far y is from an even number: 0 or 1 if it is an integer. From 256 on all bfloat16 are even.
    """
    size = tl.abs(x)
    power = tl.where((size == 1.0) | (y == 0.0), 0.0, y * log2_approx(size))
    most = tl.minimum(tl.abs(y), 256.0, propagate_nan=tl.PropagateNan.ALL)
    rest = tl.abs(most - ((most + 16777216.0) - 16777216.0))
    other = tl.where(tl.abs(power) < float("inf"), float("nan"), 1.0)
    sign = tl.where(rest == 0.0, 1.0, tl.where(rest == 1.0, -1.0, other))
    return exp2_approx(power) * tl.where(is_negative(x), sign, 1.0)


def asinh_bfloat16(x):
    """log(abs(x) + sqrt(x * x + 1)) with the sign of x, and a polynomial below 0.25.

    Half of the sum is taken, which no float32 exceeds. The root is at most abs(x) + 1, also where x * x is infinite.
    """
    size, square = tl.abs(x), x * x
    root = tl.minimum(sqrt_approx_ftz(libdevice.fma(square, 0.25, 0.25)), libdevice.fma(size, 0.5, 0.5))
    unit = tl.where(x < 0.0, -0.6931471805599453, 0.6931471805599453)
    far = libdevice.fma(log2_approx_ftz(libdevice.fma(size, 0.5, root)), unit, unit)
    near = libdevice.fma(square, 0.07101602107286453, -0.16657494008541107)
    near = libdevice.fma(square, near, 0.9999997019767761)
    return tl.where(size < 0.25, x * near, far)


def atan_bfloat16(x):
    """The angle whose tangent is x: a polynomial of x or of 1 / x."""
    size = tl.abs(x)
    angle = atan_of_fraction(tl.where(size > 1.0, reciprocal_approx_ftz(size), size))
    angle = tl.where(size > 1.0, 1.5707963267948966 - angle, angle)
    return angle * tl.where(is_negative(x), -1.0, 1.0)


def atan2_bfloat16(y, x):
    """The angle of the point (x, y): a polynomial of the smaller part over the larger one."""
    across, up = tl.abs(x), tl.abs(y)
    more = tl.maximum(across, up, propagate_nan=tl.PropagateNan.ALL)
    less = tl.minimum(across, up)
    fraction = quotient_bfloat16(less, more)
    fraction = tl.where(less == more, tl.where(more == 0.0, 0.0, 1.0), fraction)  # also of two zeros or infinities
    angle = atan_of_fraction(fraction)
    angle = tl.where(up > across, 1.5707963267948966 - angle, angle)
    angle = tl.where(is_negative(x), 3.141592653589793 - angle, angle)
    return angle * tl.where(is_negative(y), -1.0, 1.0)


def atan_of_fraction(x):
    """The arc tangent in [0, 1], with a relative error of 2**-20.5."""
    square = x * x
    found = libdevice.fma(square, 0.00786327850073576, -0.03701270744204521)
    found = libdevice.fma(square, found, 0.08387085795402527)
    found = libdevice.fma(square, found, -0.1348717361688614)
    found = libdevice.fma(square, found, 0.1988147795200348)
    found = libdevice.fma(square, found, -0.33326515555381775)
    found = libdevice.fma(square, found, 0.9999993443489075)
    return x * found
