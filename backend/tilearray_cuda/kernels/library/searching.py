"""Functions that generated kernels call, in Triton: binary search.

Read as text like numeric.py, which tells how. The number of steps is that of the sorted array's size, equal for all
elements of a block. Integers are never NaN, so the compiler drops the tests for it.
"""

from __future__ import annotations

# ruff: noqa: F821
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false


def search_left(pointer, count, value, zeros):
    """How many of the sorted elements lie before a value; NaN lies after all numbers."""
    place = zeros
    while count > 0:
        step = (count + 1) // 2
        found = tl.load(pointer + (place + (step - 1)))
        place += tl.where((found < value) | ((value != value) & (found == found)), step, 0)
        count -= step
    return place


def search_right(pointer, count, value, zeros):
    """How many of the sorted elements lie before a value or are equal to it; NaN lies after all numbers."""
    place = zeros
    while count > 0:
        step = (count + 1) // 2
        found = tl.load(pointer + (place + (step - 1)))
        place += tl.where((found <= value) | (value != value), step, 0)
        count -= step
    return place
