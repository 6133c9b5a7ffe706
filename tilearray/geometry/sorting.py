"""The loops of a sort: rows that one program sorts whole, and rows that are cut into blocks.

Arrays are dense, of shape (rows, n), and rows are sorted one by one. A row of up to `WHOLE` elements stays within one
program. Longer ones are sorted digit by digit, from the lowest: a launch counts the digits of each block, a scan adds
the counts, and a launch stores each element behind those of smaller digits, and behind those of its own digit that come
before it. So elements of equal keys keep their order.

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
"""The elements of a block of a longer row."""
DIGIT = 8
"""The bits of a digit."""
DIGITS = 1 << DIGIT


def make_rows(rows: int, extent: int, operands: Sequence[Ints]) -> Loop:
    """Return the loop over rows that are sorted whole, for operands of strides along both axes; outputs come first."""
    shape, strides = (rows, extent), tuple(operands)
    return Loop(shape, strides, (0,) * len(strides), LayoutCase.SORT, index_bits_of(shape, strides))


def make_partition(rows: int, extent: int, operands: Sequence[Ints]) -> ScanLoop:
    """Return the loop over the blocks of rows, for operands of strides along both axes; outputs come first."""
    shape, strides = (rows, extent), tuple(operands)
    segments = Segments(rows, blocks_of(extent), 1, 1)
    bits = index_bits_of(shape, strides)
    return ScanLoop(shape, strides, (0,) * len(strides), LayoutCase.PARTITION, bits, BLOCK, segments)


def blocks_of(extent: int) -> int:
    """Return the number of blocks of a row.

    >>> blocks_of(4096), blocks_of(4097)
    (1, 2)
    """
    return -(-extent // BLOCK)
