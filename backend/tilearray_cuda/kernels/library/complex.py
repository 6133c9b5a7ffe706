"""Functions that generated kernels call, in Triton: on complex numbers, as pairs.

Read as text like numeric.py, which tells how.
"""

from __future__ import annotations

# ruff: noqa: F821
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false


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


def complex_scaled(a, b, scale):
    """Product with a real number."""
    return a * scale, b * scale


def hermitian_mean(a, b, c, d, scale):
    """Scaled means of numbers and the conjugates of others."""
    return (a * 0.5 + c * 0.5) * scale, (b * 0.5 - d * 0.5) * scale


def hermitian_part(a, b, c, d, is_edge, is_alone, scale):
    """Scaled numbers, or at an edge the scaled means of numbers and the conjugates of others; those alone are real."""
    real, imaginary = hermitian_mean(a, b, c, d, scale)
    real, imaginary = tl.where(is_edge, real, a * scale), tl.where(is_edge, imaginary, b * scale)
    return real, tl.where(is_edge & is_alone, 0.0, imaginary)


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


def complex_isinf(a, b):
    """Whether a part is infinite."""
    return is_infinite(a) | is_infinite(b)


def complex_isfinite(a, b):
    """Whether both parts are finite."""
    return is_finite(a) & is_finite(b)


def complex_reciprocal(a, b):
    """1 / x."""
    return complex_divide(zero_like(a) + 1, zero_like(b), a, b)


def complex_real(a, b):
    """The real part."""
    return a


def complex_imag(a, b):
    """The imaginary part."""
    return b


def complex_conj(a, b):
    """The conjugate."""
    return a, b * -1.0


def complex_angle(a, b):
    """The angle of the point (a, b)."""
    return libdevice.atan2(b, a)


def complex_round(a, b):
    """The nearest integers."""
    return libdevice.rint(a), libdevice.rint(b)


def complex_sign(a, b):
    """x / abs(x), scaled so that nothing overflows or vanishes; of one infinite part the unit on its axis."""
    size = greater(tl.abs(a), tl.abs(b))
    unbounded = is_infinite(size)
    scale = tl.where(size == 0, 1.0, size)
    u = tl.where(unbounded, tl.where(is_infinite(a), sign_float(a), 0.0), libdevice.div_rn(a, scale))
    v = tl.where(unbounded, tl.where(is_infinite(b), sign_float(b), 0.0), libdevice.div_rn(b, scale))
    length = tl.where(is_infinite(a) & is_infinite(b), float("nan"), libdevice.hypot(u, v))
    zero = size == 0
    length = tl.where(zero, 1.0, length)
    return tl.where(zero, 0.0, libdevice.div_rn(u, length)), tl.where(zero, 0.0, libdevice.div_rn(v, length))


def complex_close(a, b, c, d, relative, unused, absolute, ignored):
    """Whether x is y, or both are finite and near; of the tolerances the real parts count."""
    near = libdevice.hypot(a - c, b - d) <= absolute + relative * libdevice.hypot(c, d)
    finite = is_finite(a) & is_finite(b) & is_finite(c) & is_finite(d)
    return complex_equal(a, b, c, d) | (near & finite)


def complex_replace_nan(a, b, nan, unused, positive, ignored, negative, dropped):
    """Numbers in the place of NaN and the infinities, in each part."""
    return replace_nan(a, nan, positive, negative), replace_nan(b, nan, positive, negative)
