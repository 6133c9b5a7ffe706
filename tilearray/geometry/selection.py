"""The loop of a selection: all elements in C order, cut into segments.

A selection keeps the elements for which a condition holds, one after the other. A launch finds them, which takes a bit
for each element, and counts them in each segment, and before each chunk of it. A second one adds the counts before each
segment, and a third one stores the elements of each chunk from there on. So elements keep their order, on any number of
programs. Axes are neither sorted nor reversed; neighbours that every operand walks as one are merged. The loop is that
of a scan over all axes: its chunks have `lanes` elements, its segments some chunks.

>>> loop = make_selection((1000, 3000), [(0, 0)], [(3000, 1), (3000, 1)])
>>> loop.shape, loop.strides, loop.lanes, loop.segments
((3000000,), ((0,), (1,), (1,)), 4096, Segments(outer=1, inner=733, indices=1, chunks=1))
>>> make_selection((1000, 3000), [(0, 0)], [(3000, 1), (1, 1000)]).shape
(1000, 3000)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilearray.geometry.loop import LayoutCase, index_bits_of
from tilearray.geometry.reduction import ReductionLoop, Segments, merged
from tilearray.geometry.scan import ScanLoop

Ints = tuple[int, ...]

LANES = 4096
"""The elements of a chunk."""
SEGMENTS = 8192
"""The most segments: one program adds their counts at once."""
BIN_SEGMENTS = 528
"""The most segments of which each program adds a count for each bin to those of all: as many as an H100 runs at once.
"""
PAIRED_SEGMENTS, PAIRED_LANES = 132, 8192
"""The same of programs whose counters take most of a multiprocessor's shared memory, and the elements of a chunk."""


def make_selection(
    shape: Ints,
    outputs: Sequence[Ints],
    inputs: Sequence[Ints],
    *,
    merges: bool = True,
    most: int = SEGMENTS,
    lanes: int = LANES,
) -> ScanLoop:
    """Return the loop over a shape without empty axes.

    Parameters
    ----------
    shape : tuple of int
        The common shape of all inputs.
    outputs, inputs : sequence of tuple of int
        Strides along all axes; those of outputs, and of counts, are 0.
    merges : bool
        Whether axes are merged. If not, the loop has the axes of the shape, and at least one.
    most : int
        The most segments.
    lanes : int
        The elements of a chunk.
    """
    operands = [*outputs, *inputs]
    axes = [(*[strides[place] for strides in operands], extent) for place, extent in enumerate(shape)]
    if merges:
        axes = merged([axis for axis in axes if axis[-1] != 1])
    *strides, extents = zip(*axes or [(*[0] * len(operands), 1)], strict=True)
    chunks = -(-prod(extents) // lanes)
    each = -(-chunks // most)
    segments = Segments(1, -(-chunks // each), 1, each)
    shifts = (0,) * len(operands)
    return ScanLoop(
        extents, tuple(strides), shifts, LayoutCase.SELECTION, index_bits_of(extents, strides), lanes, segments
    )


def make_bins(shape: Ints, outputs: Sequence[Ints], inputs: Sequence[Ints], bits: int) -> ScanLoop:
    """Return the loop of programs that count elements in bins, by the bits of a counter: 32 or 16.

    >>> make_bins((2**25,), [(0,)], [(1,)], 16).segments
    Segments(outer=1, inner=128, indices=1, chunks=32)
    """
    most, lanes = (BIN_SEGMENTS, LANES) if bits == 32 else (PAIRED_SEGMENTS, PAIRED_LANES)
    return make_selection(shape, outputs, inputs, most=most, lanes=lanes)


def bytes_of_counts(loop: ReductionLoop | ScanLoop) -> int:
    """Return the bytes of the memory between the launches of a selection.

    They are a bit for each element of the chunks; an int64 and an int32 for each segment; and an int32 for each chunk,
    and for the end of each segment.

    >>> bytes_of_counts(make_selection((5000,), [(0,)], [(1,)]))
    1064
    """
    chunks, segments = -(-prod(loop.shape) // LANES), loop.segments.total
    return chunks * (LANES // 8) + 12 * segments + 4 * (chunks + segments)
