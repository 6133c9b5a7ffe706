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


def divide_parts(a, b, n):
    """A complex number over a real one, part by part."""
    return a / n, b / n


def squared_length(a, b):
    """The square of the absolute value of a complex number."""
    return a * a + b * b
