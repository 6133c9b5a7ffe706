"""The loops of a sort: rows that one program sorts whole, and rows that are cut into blocks.

Arrays are dense, of shape (rows, n), and rows are sorted one by one. A row of up to `WHOLE` elements stays within one
program. Longer ones are sorted digit by digit, from the lowest: a launch counts the digits of each block, a scan adds
the counts, and a launch stores each element behind those of smaller digits, and behind those of its own digit that come
before it. So elements of equal keys keep their order. Of few blocks there is no scan: each program of the last launch
adds the counts. One long row is swept: a launch counts all digits at once, and then one launch for each digit counts
those of its blocks, tells other programs, and stores the elements. A program keeps a block in shared memory, which of
elements of up to 32 bits holds twice as many.

>>> make_rows(1000, 300, [(300, 1), (300, 1)])[:4]
((1000, 300), ((300, 1), (300, 1)), (0, 0), <LayoutCase.SORT: 'sort'>)
>>> make_partition(2, 10000, [(10000, 1), (10000, 1)]).segments
Segments(outer=2, inner=3, indices=1, chunks=1)
"""

from __future__ import annotations

from collections.abc import Sequence

from tilearray.geometry.loop import LayoutCase, Loop, index_bits_of
from tilearray.geometry.reduction import Segments
from tilearray.geometry.scan import ScanLoop

Ints = tuple[int, ...]

WHOLE = 4096
"""The most elements of a row that a program sorts."""
BLOCK = 4096
"""The elements of a block of a longer row, which has twice as many if only so there are few blocks."""
FEW_BLOCKS = 128
"""The most blocks whose counts need no scan. A GPU runs as many at once."""
FEW_DIGITS = 3
"""The digits of a row of few blocks above which it is swept."""
MOST_SWEPT = 1 << 30
"""The elements of a row from which it is not swept: counts share words of 32 bits with two others."""
DIGIT = 8
"""The bits of a digit."""
DIGITS = 1 << DIGIT
NARROW = 4
"""The most bytes of elements of which a block of a row that is swept has twice as many."""
BEFORE_COUNTS = 3 * DIGITS
"""The words before the counts that blocks tell each other: the first one has the turns, alone in a line of caches, and
the last ones are told as those of a block before the first.
"""
RUN_BITS = 16
"""The bits by which the keys of a run differ: it is not sorted, since the distinct ones are found as a set of these."""
LONGEST = 1 << 18
"""The most elements of a run, which one program reads: of all runs, a GPU reads some hundreds at once."""
OVERFULL = 1 << 40
"""The size of the set of a longer run, which is not made: no sum of sizes of others reaches it."""


def make_rows(rows: int, extent: int, operands: Sequence[Ints]) -> Loop:
    """Return the loop over rows that are sorted whole, for operands of strides along both axes; outputs come first."""
    shape, strides = (rows, extent), tuple(operands)
    return Loop(shape, strides, (0,) * len(strides), LayoutCase.SORT, index_bits_of(shape, strides))


def make_partition(rows: int, extent: int, operands: Sequence[Ints], block: int = 0) -> ScanLoop:
    """Return the loop over the blocks of rows, for operands of strides along both axes; outputs come first.

    Blocks have another number of elements if one is given.
    """
    shape, strides = (rows, extent), tuple(operands)
    lanes = block or _block_of(rows, extent)
    segments = Segments(rows, -(-extent // lanes), 1, 1)
    bits = index_bits_of(shape, strides)
    return ScanLoop(shape, strides, (0,) * len(strides), LayoutCase.PARTITION, bits, lanes, segments)


def make_runs(runs: int, extent: int, operands: Sequence[Ints]) -> Loop:
    """Return the loop over the runs of equal upper bits in one axis, for operands of strides; outputs come first.

    >>> make_runs(1 << 16, 100_000_000, [(1,), (1,), (0,)])[:3]
    ((65536, 100000000), ((0, 1), (0, 1), (0, 0)), (0, 0, 0))
    """
    assert extent < MOST_SWEPT
    strides = tuple([(0, *stride) for stride in operands])
    return Loop((runs, extent), strides, (0,) * len(strides), LayoutCase.RUNS, 32)


def blocks_of(rows: int, extent: int) -> int:
    """Return the number of blocks of each of some rows.

    >>> blocks_of(1, 4096), blocks_of(1, 4097), blocks_of(1, 1_000_000), blocks_of(1, 2_000_000)
    (1, 2, 123, 489)
    """
    return -(-extent // _block_of(rows, extent))


def has_few_blocks(rows: int, extent: int) -> bool:
    """Whether the counts of the blocks of rows need no scan.

    >>> has_few_blocks(1, 1_000_000), has_few_blocks(1, 2_000_000), has_few_blocks(2, 1_000_000)
    (True, False, False)
    """
    return rows * blocks_of(rows, extent) <= FEW_BLOCKS


def is_swept(rows: int, extent: int, digits: int) -> bool:
    """Whether a launch stores the elements of rows in the order of a digit while it counts those of blocks.

    That of few blocks is one launch instead of two as well, but another one counts all digits.

    >>> is_swept(1, 1_000_000, 2), is_swept(1, 2_000_000, 2), is_swept(2, 2_000_000, 2), is_swept(1, 2**30, 2)
    (False, True, False, False)
    >>> is_swept(1, 1_000_000, 4)
    True
    """
    return rows == 1 and extent < MOST_SWEPT and (digits > FEW_DIGITS or not has_few_blocks(rows, extent))


def swept_block(itemsize: int) -> int:
    """Return the elements of a block of a row that is swept, of which elements of so many bytes are stored.

    >>> swept_block(4), swept_block(8)
    (8192, 4096)
    """
    return BLOCK if itemsize > NARROW else 2 * BLOCK


def words_of_sweep(extent: int, itemsize: int) -> int:
    """Return the words of memory for the turns and the counts of the blocks of such a row.

    >>> words_of_sweep(2_000_000, 4), words_of_sweep(2_000_000, 8)
    (63488, 125952)
    """
    return BEFORE_COUNTS + DIGITS * -(-extent // swept_block(itemsize))


def _block_of(rows: int, extent: int) -> int:
    """Return the elements of a block."""
    is_large = rows * -(-extent // BLOCK) > FEW_BLOCKS >= rows * -(-extent // (2 * BLOCK))
    return 2 * BLOCK if is_large else BLOCK
