"""Functions that generated kernels call, in Triton: keys of a sort.

Read as text like numeric.py, which tells how.
"""

from __future__ import annotations

# ruff: noqa: F821
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false


def integer_key(x, width: tl.constexpr):
    """Integers as unsigned integers of the same order, of 32 or 64 bits, of which the lowest `width` count."""
    wide = x.to(tl.uint64, bitcast=True) if width == 64 else x.to(tl.int32).to(tl.uint32, bitcast=True)
    sign = (tl.full([], 1, tl.uint64) << (width - 1)).to(wide.dtype)
    return (wide ^ sign) & (sign + (sign - 1))


def float_key(code, infinity, width: tl.constexpr):
    """The bits of floats as unsigned integers of the same order: both zeros have one key, and all NaNs the last one.

    `infinity` is the largest code of a positive float that is not NaN. Keys of 8 and 16 bits are those of 32.
    """
    wide = code if width >= 32 else code.to(tl.uint32)
    sign = (tl.full([], 1, tl.uint64) << (width - 1)).to(wide.dtype)
    magnitude = wide & (sign - 1)
    key = tl.where((wide & sign) != 0, sign - magnitude, sign + magnitude)
    return tl.where(magnitude > infinity, sign + sign - 1, key)
