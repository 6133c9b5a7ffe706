"""The loop of a scan: which elements a program combines, and in which order.

The order is a contract: it depends on shape, strides and dtype alone, so every device and every run gives the same
bits. `make_scan` drops kept axes of size 1, sorts them by the strides of the input, and merges neighbours. The elements
along the scanned axis are then combined in this order:

1. **Halves.** The axis is cut into chunks of `lanes` elements, a power of two. In a chunk, neighbours are combined:
   element 1 with 0, element 3 with 2. Then each pair: elements 2 and 3 with the new element 1. Then each four: elements
   4 to 7 with element 3. So on, until the chunk is one (J. Sklansky, "Conditional-sum addition logic", 1960).
2. **Chunks.** All elements of a chunk are combined with the last element of the chunk before, chunk after chunk.
3. **Segments.** A long axis is cut into segments of some chunks, so that a GPU has enough programs. Each is scanned
   alone. Some segments are a block: all elements of a segment are combined with the last element of the segment before
   in the block, segment after segment.
4. **Blocks.** All elements of a block are combined with the last element of the block before, block after block.

If the input walks memory fastest along a kept axis, a chunk is one element: elements are combined one after the other.

Each operation has the earlier elements on its left. No result depends on later elements, and running sums
of numbers that are not negative never decrease.

>>> rows = make_scan((1000, 3000), 1, [(3000, 1)], [(3000, 1)], 4)
>>> rows.case.value, rows.shape, rows.lanes, rows.segments.total
('scan_rows', (1000, 3000), 128, 1)
>>> flat = make_scan((1_000_000,), 0, [(1,)], [(1,)], 4)
>>> flat.segments, flat.members
(Segments(outer=1, inner=489, indices=1, chunks=16), 8)
>>> columns = make_scan((1000, 3000), 0, [(3000, 1)], [(3000, 1)], 4)
>>> columns.case.value, columns.shape, columns.strides, columns.lanes
('scan_columns', (3000, 1000), ((1, 3000), (1, 3000)), 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from tilearray.geometry.loop import LayoutCase, index_bits_of
from tilearray.geometry.reduction import Segments, forwards, merged, sorted_axes

Ints = tuple[int, ...]

LANES = {1: 256, 2: 256, 4: 128, 8: 64, 16: 32}
"""The most elements of a chunk, by itemsize: 512 bytes of most dtypes."""
PROGRAMS = 2048
"""The number of rows, or of COLUMN_WIDTH columns each, from which they are not cut."""
CHUNKS, MEMBERS = 16, 8
"""The chunks of a segment of a row, and the segments of a block, which a program of a GPU has."""
LEAST_CHUNKS = 64
"""The least chunks of a row that is cut."""
COLUMN_WIDTH = 8
MOST_SEGMENTS = 2048
"""The most segments of columns, each of which is a block."""
LEAST_ELEMENTS = 2048
"""The least elements of a segment of columns."""


class ScanLoop(NamedTuple):
    """The loop of a scan. Strides and shifts count elements, as in `tilearray.geometry.loop.Loop`.

    Attributes
    ----------
    shape : tuple of int
        Extents: the slower kept axes, the fastest kept axis, the scanned axis.
    strides, shifts : tuple
        For each operand, outputs first.
    case : LayoutCase
        SCAN_ROWS if the fastest axis is scanned, SCAN_COLUMNS if it is kept.
    index_bits : int
        32 or 64.
    lanes : int
        The elements of a chunk.
    segments : Segments
        How the axis is cut: `inner` segments of `chunks` chunks, the last of which may be shorter.
    members : int
        The segments of a block.
    """

    shape: Ints
    strides: tuple[Ints, ...]
    shifts: Ints
    case: LayoutCase
    index_bits: int
    lanes: int
    segments: Segments
    members: int = 1


def make_scan(
    shape: Ints, axis: int, outputs: Sequence[Ints], inputs: Sequence[Ints], itemsize: int, *, leading: int = 0
) -> ScanLoop:
    """Return the loop that scans an axis of a shape without empty axes.

    Parameters
    ----------
    shape : tuple of int
        The common shape of all operands.
    axis : int
        The axis to scan, not negative.
    outputs, inputs : sequence of tuple of int
        Strides along all axes.
    itemsize : int
        Bytes of an element of the input that is scanned.
    leading : int
        The position of the input that decides the order.
    """
    operands, first = [*outputs, *inputs], len(outputs) + leading
    axes = [(*[strides[place] for strides in operands], extent) for place, extent in enumerate(shape)]
    scanned = axes.pop(axis)
    shifts = [0] * len(operands)
    kept = forwards([each for each in axes if each[-1] != 1], first, shifts)
    *slow, fast = merged(sorted_axes(kept, first)) or [(*[0] * len(operands), 1)]
    is_columns = 0 < abs(fast[first]) < abs(scanned[first])
    lanes = 1 if is_columns else min(LANES[itemsize], 1 << (scanned[-1] - 1).bit_length())
    case = LayoutCase.SCAN_COLUMNS if is_columns else LayoutCase.SCAN_ROWS
    *strides, extents = zip(*slow, fast, scanned, strict=True)
    bits = index_bits_of(extents, strides)
    rows, extent = prod(extents[:-2]), scanned[-1]
    if is_columns:
        segments = _segments(rows * -(-fast[-1] // COLUMN_WIDTH), extent)
        return ScanLoop(extents, tuple(strides), tuple(shifts), case, bits, lanes, segments)
    chunks = -(-extent // lanes)
    each = chunks if rows * fast[-1] >= PROGRAMS or chunks < LEAST_CHUNKS else CHUNKS
    segments = Segments(1, -(-chunks // each), 1, each)
    return ScanLoop(extents, tuple(strides), tuple(shifts), case, bits, lanes, segments, MEMBERS)


def _segments(programs: int, extent: int) -> Segments:
    """Cut columns into segments, so that there are about PROGRAMS programs in all."""
    wanted = min(-(-PROGRAMS // programs), MOST_SEGMENTS, max(1, extent // LEAST_ELEMENTS))
    each = -(-extent // wanted)
    return Segments(1, -(-extent // each), 1, each)
