"""Functions that generated kernels call, in Triton: keys of a sort, and where elements go in the order of a digit.

Read as text like numeric.py, which tells how. Elements are taken in runs of 32. Five words hold the bits of a run's
digits, bit by bit: from them follow, for each element, those of the run with the same digit as 32 bits, and for each
digit the elements that have it. The counts of earlier runs are a table of 32 digits for each run.
"""

from __future__ import annotations

# ruff: noqa: F821, N803
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


def ranked_digits(digit, ROWS: tl.constexpr, RUNS: tl.constexpr):
    """Digits in their runs, how many before each in its run are the same, and how often each run has each digit."""
    digit = tl.reshape(digit, (ROWS, RUNS, 32))
    lane = tl.arange(0, 32)[None, None, :]
    same = tl.full((ROWS, RUNS, 32), -1, tl.int32)
    having = tl.full((ROWS, RUNS, 32), -1, tl.int32)
    for bit in tl.static_range(5):
        own = (digit >> bit) & 1
        word = tl.sum(own << lane, 2)[:, :, None]
        same &= word ^ (own - 1)
        having &= word ^ (((lane >> bit) & 1) - 1)
    return digit, libdevice.popc(same & ((1 << lane) - 1)), libdevice.popc(having)


def slots_from(digit, rank, counts, starts, ROWS: tl.constexpr, RUNS: tl.constexpr):
    """Where elements go if the first one of each digit goes to its start."""
    before = tl.cumsum(counts, 1) - counts + starts[:, None, :]
    return tl.reshape(rank + tl.gather(before, digit, 2), (ROWS, RUNS * 32))


def slots_in_rows(digit, ROWS: tl.constexpr, RUNS: tl.constexpr):
    """Where each element of a row goes in the order of its digit; equal ones keep their order."""
    digit, rank, counts = ranked_digits(digit, ROWS, RUNS)
    totals = tl.sum(counts, 1)
    starts = tl.cumsum(totals, 1) - totals
    return slots_from(digit, rank, counts, starts, ROWS, RUNS)


def slots_behind(digit, starts, RUNS: tl.constexpr):
    """Where each element of a block goes, if the block's first one of each digit goes to its start."""
    digit, rank, counts = ranked_digits(digit, 1, RUNS)
    return tl.reshape(slots_from(digit, rank, counts, starts[None, :], 1, RUNS), (RUNS * 32,))
