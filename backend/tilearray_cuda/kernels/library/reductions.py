"""Functions that generated kernels call, in Triton: comparisons that remember positions, and complex numbers.

Read as text like numeric.py, which tells how.
"""

from __future__ import annotations

# ruff: noqa: F821
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false


def first_of_largest(x, at, y, other):
    """The larger of two values and its position; of equals the first position; NaN is larger than all."""
    take = (y > x) | ((y != y) & (x == x)) | (((y == x) | ((y != y) & (x != x))) & (other < at))
    return tl.where(take, y, x), tl.where(take, other, at)


def first_of_smallest(x, at, y, other):
    """The smaller of two values and its position; of equals the first position; NaN is smaller than all."""
    take = (y < x) | ((y != y) & (x == x)) | (((y == x) | ((y != y) & (x != x))) & (other < at))
    return tl.where(take, y, x), tl.where(take, other, at)


def larger(x, y):
    """The larger of two floats; NaN where either is NaN; 0.0 is larger than -0.0 (IEEE 754-2019, maximum)."""
    if x.dtype == tl.float64:  # PTX has no such instruction
        same = (x.to(tl.int64, bitcast=True) & y.to(tl.int64, bitcast=True)).to(tl.float64, bitcast=True)
        return tl.where(x == y, same, greater(x, y))
    return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)


def smaller(x, y):
    """The smaller of two floats; NaN where either is NaN; -0.0 is smaller than 0.0 (IEEE 754-2019, minimum)."""
    if x.dtype == tl.float64:  # PTX has no such instruction
        same = (x.to(tl.int64, bitcast=True) | y.to(tl.int64, bitcast=True)).to(tl.float64, bitcast=True)
        return tl.where(x == y, same, lesser(x, y))
    return tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)


def larger_number(x, y):
    """The larger of two floats; the other one where one is NaN (IEEE 754-2019, maximumNumber)."""
    return tl.where(x != x, y, tl.where(y != y, x, larger(x, y)))


def smaller_number(x, y):
    """The smaller of two floats; the other one where one is NaN (IEEE 754-2019, minimumNumber)."""
    return tl.where(x != x, y, tl.where(y != y, x, smaller(x, y)))


def float_at(x, at):
    """The float of each row for which `at` is true: a sum of bits, since a sum of floats may change zeros."""
    integer: tl.constexpr = tl.int64 if x.dtype == tl.float64 else tl.int32
    bits = tl.where(at, x.to(integer, bitcast=True), 0)
    return tl.sum(bits, 1)[:, None].to(integer).to(x.dtype, bitcast=True)


def integer_at(x, at):
    """The integer of each row for which `at` is true."""
    return tl.sum(tl.where(at, x, 0), 1)[:, None].to(x.dtype)


def divide_parts(a, b, n):
    """A complex number over a real one, part by part."""
    return a / n, b / n


def squared_length(a, b):
    """The square of the absolute value of a complex number."""
    return a * a + b * b


def conjugate_product(a, b, c, d):
    """The product of the conjugate of a complex number with another one."""
    return a * c + b * d, a * d - b * c


def scaled_square(a, b, factor):
    """The square of the absolute value of a complex number times a factor."""
    return (a * factor) * (a * factor) + (b * factor) * (b * factor)


def usable_sum(squares, large, small):
    """The one of three sums of squares that neither overflowed (2**1020) nor underflowed (2**-900)."""
    other = tl.where(squares < 1.1830521861667747e-271, small, squares)
    return tl.where(squares > 1.1235582092889474e307, large, other)


def usable_scale(squares, large, small):
    """The factor that takes the root of `usable_sum` back to the scale of the numbers: 2**600, 2**-600 or 1."""
    other = tl.where(squares < 1.1830521861667747e-271, 2.409919865102884e-181, 1.0)
    return tl.where(squares > 1.1235582092889474e307, 4.149515568880993e180, other).to(squares.dtype)
