"""The loop of a reduction: which elements make one result, and in which order they are combined.

The order is a contract: it depends on shape, strides and dtype alone, so every device and every run gives the same
bits. `make_reduction` drops axes of size 1, sorts kept and reduced axes apart by the strides of the first input, and
merges neighbours. The elements of one result are then combined in this order:

1. **Lanes.** The fastest reduced axis is cut into chunks of `lanes` elements, a power of two. Lane ``j`` combines
   element ``j`` of all chunks, one after the other: chunks in their order, for each index of the other reduced axes.
   There are more lanes for few results, and for so many that each is one program, if its row has more than 32 chunks.
   (Not where positions are counted.)
2. **Neighbours.** If the fastest axis is reduced, neighbours among the lanes are combined until one value is left: lane
   1 with 0, lane 3 with 2; then each pair with the next one; and so on. If it is kept, each lane of the lower half is
   combined with its lane of the upper half, and so on.
   If an operation such as a softmax goes over a row several times, and a GPU holds the row meanwhile, it has one
   segment and as many lanes as an eighth of it (`held_lanes`). If it goes over a column, it has 16 lanes, and segments
   of at most 512 elements, up to 64 segments.
3. **Segments.** A long reduction is cut into segments, so that a GPU has enough programs. Each is reduced alone, and a
   second loop reduces the results of the segments by the same rules.

The rows of a C-order (1000, 3000) array of 4-byte elements are reduced by 128 lanes, in 3 segments of 8 chunks. For its
columns the kept axis is the fastest: 16 lanes take the rows 0, 16, 32, ..., the rows 1, 17, 33, ..., and so on.

>>> rows = make_reduction((1000, 3000), (1,), [(1,)], [(3000, 1)], 4)
>>> rows.case.value, rows.shape, rows.lanes, rows.segments
('reduce_rows', (1000, 3000), 128, Segments(outer=1, inner=3, indices=1, chunks=8))
>>> columns = make_reduction((1000, 3000), (0,), [(1,)], [(3000, 1)], 4)
>>> columns.case.value, columns.shape, columns.strides, columns.lanes, columns.segments.total
('reduce_columns', (3000, 1000), ((1, 0), (1, 3000)), 16, 7)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from tilearray.geometry.layout import Layout
from tilearray.geometry.loop import LayoutCase, index_bits_of
from tilearray.geometry.result import row_result_layout
from tilearray.geometry.strides import dense_strides

Ints = tuple[int, ...]

LANES = {1: 512, 2: 512, 4: 2048, 8: 1024, 16: 512}
"""The most lanes along the fastest axis of memory, by itemsize, for one result."""
FEW_OF_SEVERAL = 4
"""What the most lanes are divided by if each one has several values, as those of a variance; positions do not count."""
FEWEST = {1: 512, 2: 256, 4: 128, 8: 64, 16: 32}
"""The most lanes for many results: 512 bytes."""
SHARED_LANES = 16
"""The most lanes across the fastest axis, if several programs share a column and hold their segments."""
COLUMN_LANES = {1: 8, 2: 8, 4: 16, 8: 16, 16: 16}
"""The most lanes across the fastest axis."""
ROW_PROGRAMS = {1: 4096, 2: 4096, 4: 2112, 8: 2112, 16: 2112}
ORDERED_PROGRAMS = ROW_PROGRAMS | {2: 8192}
"""The number of results times segments from which reductions along the fastest axis are not cut further; the same if
positions count. On an H200 4096 rows of 32768 bfloat16 are summed in 63 us, and in twice as many segments in 68; the
positions of their largest elements are found in 148 and 121 us."""
COLUMN_PROGRAMS = {1: 1056, 2: 2048, 4: 2048, 8: 2048, 16: 2048}
COLUMN_WIDTH = 128
"""The same across it, for each COLUMN_WIDTH results."""
LEAST_CHUNKS, LEAST_ORDERED = 8, 16
"""The least chunks of a segment; the same if positions count."""
HELD_CHUNKS = 8
"""The chunks of a row that is held as a whole."""
MOST_HELD_CHUNKS = 32
"""The most chunks of a row that is held for several reductions, in their own order: each one is text of the kernel.
Long rows have as many lanes as that takes, if there are enough rows for a program each."""
SHARED_COLUMN = 512
"""The most elements of a segment of a column, if several programs share it and hold their segments."""
MOST_SHARED = 64
"""The number of segments from which columns are not cut further for that."""
WALKED_PROGRAMS = 256
"""The least programs that walk held rows."""
WALKED_WORDS, WALKED_THREADS = 192, 256
"""The most words that a thread of such a program has, of elements and of sums of columns; and the most threads."""
WALKED_GAIN = 2
"""The least bytes that need not be read again, for each byte of the sums that such programs store."""
HELD = 2**14
"""The most elements of such a row, rounded up to a power of two."""


class Segments(NamedTuple):
    """How a reduction is cut: `outer` runs of `indices` indices of the first of the other reduced axes, times `inner`
    runs of `chunks` chunks of the fastest one. Segment ``s`` is run ``s // inner`` of the former and ``s % inner`` of
    the latter; the last runs may be shorter."""

    outer: int
    inner: int
    indices: int
    chunks: int

    @property
    def total(self) -> int:
        """The number of segments."""
        return self.outer * self.inner

    def joined(self) -> Segments:
        """Return all segments of one reduced axis as one."""
        return Segments(1, 1, self.indices, self.inner * self.chunks)


class Walked(NamedTuple):
    """How programs walk rows that they hold, for sums of columns: a lane of a segment of columns is a program.

    It goes over the rows that such a lane combines, in their order: `chunks` at most. It has `threads`.
    """

    lanes: int
    chunks: int
    programs: int
    threads: int


class ReductionLoop(NamedTuple):
    """The loop of a reduction. Strides and shifts count elements, as in `tilearray.geometry.loop.Loop`.

    Attributes
    ----------
    shape : tuple of int
        Extents: the slower kept axes, the slower reduced axes, the fastest kept axis, the fastest reduced axis.
    strides, shifts : tuple
        For each operand, outputs first. Outputs have a stride of 0 along reduced axes. If there are several segments,
        the result of segment ``s`` lies ``s`` elements further.
    case : LayoutCase
        REDUCE_ROWS if the fastest axis is reduced, REDUCE_COLUMNS if it is kept.
    index_bits : int
        32 or 64.
    kept : int
        The number of slower kept axes.
    lanes : int
    segments : Segments
    held : bool
        Whether a program goes over its elements more than once, and so holds them.
    family : bool
        Whether it holds them for several reductions, in the order that each of them has alone.
    blocks : bool
        Whether such a row is the elements of a block: of the slower reduced axis, which is one, and the fastest one.
    walked : Walked or None
        How programs walk rows that they hold, if they also reduce columns.
    """

    shape: Ints
    strides: tuple[Ints, ...]
    shifts: Ints
    case: LayoutCase
    index_bits: int
    kept: int
    lanes: int
    segments: Segments
    held: bool = False
    family: bool = False
    blocks: bool = False
    walked: Walked | None = None

    @property
    def outer(self) -> int:
        """The number of slower reduced axes."""
        return len(self.shape) - 2 - self.kept

    @property
    def neighbours(self) -> bool:
        """Whether neighbours among the lanes are combined, and not halves."""
        return self.case is LayoutCase.REDUCE_ROWS

    @property
    def elements(self) -> int:
        """The most elements that a segment combines for one result."""
        others = prod(self.shape[self.kept + 1 : -2])
        return self.segments.indices * others * self.segments.chunks * self.lanes


def make_reduction(
    shape: Ints,
    axes: Sequence[int],
    outputs: Sequence[Ints],
    inputs: Sequence[Ints],
    itemsize: int,
    *,
    values: int = 1,
    ordered: bool = False,
    whole: bool = False,
    held: bool = False,
    spread: bool = False,
) -> ReductionLoop:
    """Return the loop that reduces `axes` of a shape without empty axes.

    Parameters
    ----------
    shape : tuple of int
        The common shape of the inputs.
    axes : sequence of int
        The axes to reduce, not negative, each once.
    outputs : sequence of tuple of int
        Strides of the outputs along the axes that are kept, or along all axes if they are `spread`.
    inputs : sequence of tuple of int
        Strides of the inputs along all axes; the first one decides the order.
    itemsize : int
        Bytes of an element of the first input.
    values : int
        The number of values that each lane combines, which a device keeps in registers.
    ordered : bool
        Whether reduced axes keep C order and direction, so that positions can be counted.
    whole : bool
        Whether there is one segment.
    held : bool
        Whether rows that `held_lanes` takes are combined in its order.
    spread : bool
        Whether the outputs have all axes: a program stores a row of them.
    """
    kept, reduced = _axes(shape, axes, outputs, inputs, spread)
    count, first = len(outputs) + len(inputs), len(outputs)
    shifts = [0] * count
    kept = merged(sorted_axes(forwards(kept, first, shifts), first))
    reduced = merged(reduced if ordered else sorted_axes(forwards(reduced, first, shifts), first))
    *slow_kept, last_kept = kept or [(*[0] * count, 1)]
    *slow_reduced, last_reduced = reduced or [(*[0] * count, 1)]
    is_columns = 0 < abs(last_kept[first]) < abs(last_reduced[first])
    rounded = 1 << (last_reduced[-1] - 1).bit_length()
    is_shared = held and is_columns and not slow_reduced
    if is_columns:
        most = max(COLUMN_LANES[itemsize], SHARED_LANES) if is_shared else COLUMN_LANES[itemsize]
    else:
        most = row_lanes(last_kept[-1], rounded, itemsize, values, ordered)
    lanes = min(most, rounded)
    is_held = held and not is_columns and not slow_reduced and last_reduced[-1] <= HELD
    if is_held:
        lanes = held_lanes(last_reduced[-1], itemsize)
    case = LayoutCase.REDUCE_COLUMNS if is_columns else LayoutCase.REDUCE_ROWS
    *strides, extents = zip(*slow_kept, *slow_reduced, last_kept, last_reduced, strict=True)
    results = prod([axis[-1] for axis in slow_kept])
    if is_columns:
        wanted = -(-COLUMN_PROGRAMS[itemsize] // (results * -(-last_kept[-1] // COLUMN_WIDTH)))
        if is_shared:
            wanted = max(min(wanted, MOST_SHARED), min(-(-last_reduced[-1] // SHARED_COLUMN), MOST_SHARED))
    else:
        wanted = -(-(ORDERED_PROGRAMS if ordered else ROW_PROGRAMS)[itemsize] // (results * last_kept[-1]))
    least = LEAST_ORDERED if ordered and not is_columns else LEAST_CHUNKS
    segments = _segments(slow_reduced, last_reduced[-1], lanes, 1 if whole or is_held else wanted, least)
    bits = index_bits_of(extents, strides)
    return ReductionLoop(extents, tuple(strides), tuple(shifts), case, bits, len(slow_kept), lanes, segments)


def make_reduction_like(
    order: Sequence[Ints], shape: Ints, axes: Sequence[int], outputs: Sequence[Ints], inputs: Sequence[Ints], **how: Any
) -> ReductionLoop | None:
    """Return the loop over `inputs` that combines elements in the order of the loop over arrays of other strides.

    A fused kernel reduces what it computes from its inputs, in the order in which an array in memory would be reduced
    to a new array. The result is None if there is no such loop: an axis that the array merges is several axes of the
    inputs, or of an output that has all axes.

    Parameters
    ----------
    order : sequence of tuple of int
        Strides of the arrays in memory.
    how
        The itemsize of the first one of them, and options of `make_reduction`.

    Examples
    --------
    >>> options = {"axes": (1,), "outputs": [(1,)], "itemsize": 4}
    >>> loop = make_reduction_like([(3000, 1)], (1000, 3000), inputs=[(3000, 1), (1, 1000)], **options)
    >>> loop.strides, loop.lanes == make_reduction((1000, 3000), inputs=[(3000, 1)], **options).lanes
    (((1, 0), (3000, 1), (1, 1000)), True)
    >>> total = {"axes": (0, 1), "outputs": [()], "itemsize": 4}
    >>> make_reduction_like([(3000, 1)], (1000, 3000), inputs=[(0, 1)], **total) is None
    True
    """
    model = make_reduction(shape, axes, [_new_strides(shape, axes, how.get("spread", False))], order, **how)
    loop = make_reduction(shape, axes, outputs, [*order, *inputs], **how)
    if model.shape[model.kept : -2] != loop.shape[loop.kept : -2] or model.shape[-1] != loop.shape[-1]:
        return None
    first, last = len(outputs), len(outputs) + len(order)
    return loop._replace(
        strides=(*loop.strides[:first], *loop.strides[last:]),
        shifts=(*loop.shifts[:first], *loop.shifts[last:]),
        lanes=model.lanes,
        segments=model.segments,
    )


def _new_strides(shape: Ints, axes: Sequence[int], spread: bool) -> Ints:
    """Return the strides of a new array of results along the kept axes, or along all axes if they are `spread`."""
    strides = iter(dense_strides(tuple([extent for axis, extent in enumerate(shape) if axis not in axes])))
    return tuple([0 if axis in axes else next(strides) for axis in range(len(shape)) if spread or axis not in axes])


def row_lanes(results: int, extent: int, itemsize: int, values: int, ordered: bool) -> int:
    """Return the most lanes of `results` rows of an extent, rounded up to a power of two."""
    alone = LANES[itemsize] // (FEW_OF_SEVERAL if values > 1 and not ordered else 1)
    most = max(FEWEST[itemsize], alone >> (results - 1).bit_length())
    if results >= ROW_PROGRAMS[itemsize] and not ordered:
        most = max(most, min(alone, extent // MOST_HELD_CHUNKS))
    return most


def held_lanes(extent: int, itemsize: int) -> int:
    """Return the lanes of a row that is held as a whole.

    >>> held_lanes(16384, 4), held_lanes(1000, 4), held_lanes(5, 4)
    (2048, 128, 8)
    """
    rounded = 1 << (extent - 1).bit_length()
    return min(rounded, max(FEWEST[itemsize], rounded // HELD_CHUNKS))


def holds(loop: ReductionLoop, members: int) -> bool:
    """Return whether one launch goes over the rows or the columns of a loop, whose lanes are those of a reduction.

    A program holds a row, and as many programs as a column has segments, at most `members`, share a column.
    """
    if loop.case is LayoutCase.REDUCE_COLUMNS:
        return not loop.outer and loop.segments.total <= members
    extent = loop.shape[-1] * (loop.shape[-3] if loop.blocks else 1)
    is_rows = loop.case is LayoutCase.REDUCE_ROWS and (loop.blocks or not loop.outer)
    return is_rows and extent <= HELD and -(-extent // loop.lanes) <= MOST_HELD_CHUNKS


def walking(rows: ReductionLoop, columns: ReductionLoop, read: Sequence[int], states: Sequence[int]) -> Walked | None:
    """Return how a loop over held rows also reduces columns, in the order of a loop over columns.

    The result is None if both do not walk the same arrays alike, or where it takes longer than a launch for columns. So
    it is where several results are as large as the arrays: their kernels have too few registers.

    Parameters
    ----------
    rows, columns : ReductionLoop
        The last strides are those of the arrays that are read.
    read, states : sequence of int
        The itemsizes of these arrays, and of the values that a column has.
    """
    plain = rows.kept == rows.outer == columns.kept == columns.outer == 0 and not rows.blocks
    cases = (rows.case, columns.case) == (LayoutCase.REDUCE_ROWS, LayoutCase.REDUCE_COLUMNS)
    if not (plain and cases and rows.shape == columns.shape[::-1]):
        return None
    count = len(read)
    if sum(all(strides) for strides in rows.strides[:-count]) > 1:
        return None
    alike = all(one == other[::-1] for one, other in zip(rows.strides[-count:], columns.strides[-count:], strict=True))
    if not alike or rows.shifts[-count:] != columns.shifts[-count:]:
        return None
    lanes, chunks = columns.lanes, columns.segments.chunks
    again = [size for size, strides in zip(read, rows.strides[-count:], strict=True) if all(strides)]
    words = -(-rows.shape[-1] // rows.lanes) * rows.lanes * sum([-(-size // 4) for size in (*again, *states)])
    threads = 1 << (-(-words // WALKED_WORDS) - 1).bit_length()
    walked = Walked(lanes, chunks, lanes * columns.segments.total, max(32, threads))
    gains = chunks * sum(again) >= WALKED_GAIN * 2 * sum(states)  # which are stored, and read
    fits = threads <= min(rows.lanes, WALKED_THREADS) and walked.programs >= WALKED_PROGRAMS
    return walked if gains and fits else None


def as_blocks(loop: ReductionLoop, itemsize: int) -> ReductionLoop | None:
    """Return a loop along two reduced axes as one over blocks that are held as rows, for reductions without an order.

    The result is None if an extent is not a power of two, so that a lane would be empty, or if an operand repeats
    elements along the fastest axis alone.

    Examples
    --------
    >>> blocks = [(262144, 2048, 128, 1)]
    >>> loop = make_reduction((8, 128, 16, 128), (1, 3), blocks, blocks, 2, spread=True)
    >>> found = as_blocks(loop, 2)
    >>> found.shape, found.lanes, found.segments.total
    ((8, 128, 16, 128), 2048, 1)
    """
    rows, columns = loop.shape[loop.kept], loop.shape[-1]
    if loop.outer != 1 or loop.case is not LayoutCase.REDUCE_ROWS or rows & (rows - 1) or columns & (columns - 1):
        return None
    if any(strides[loop.kept] and not strides[-1] for strides in loop.strides):
        return None
    lanes = max(columns, held_lanes(rows * columns, itemsize))
    return loop._replace(lanes=lanes, segments=Segments(1, 1, 1, rows * columns // lanes), blocks=True)


def is_held(layout: Layout, axes: Sequence[int], itemsize: int, members: int) -> bool:
    """Whether one launch goes over the rows or columns of an array several times, as `holds` tells.

    The results are as large as the array, and in the same order.
    """
    written = row_result_layout(layout, axes).strides
    loop = make_reduction(layout.shape, axes, [written], [layout.strides], itemsize, held=True, spread=True)
    return holds(loop, members)


def _axes(
    shape: Ints, axes: Sequence[int], outputs: Sequence[Ints], inputs: Sequence[Ints], spread: bool
) -> tuple[list[Ints], list[Ints]]:
    """Return the kept and the reduced axes, each as its strides and its extent; without axes of size 1."""
    kept: list[Ints] = []
    reduced: list[Ints] = []
    place = 0
    for axis, extent in enumerate(shape):
        steps = [strides[axis] for strides in inputs]
        if axis in axes:
            found, written = reduced, [strides[axis] if spread else 0 for strides in outputs]
        else:
            found, written = kept, [strides[axis if spread else place] for strides in outputs]
            place += 1
        if extent != 1:
            found.append((*written, *steps, extent))
    return kept, reduced


def forwards(axes: list[Ints], first: int, shifts: list[int]) -> list[Ints]:
    """Reverse the axes that the first input walks backwards; `shifts` counts how far origins move.

    An axis is its stride in each operand, and its extent. `first` is the position of the first input.
    """
    found: list[Ints] = []
    for axis in axes:
        *strides, extent = axis
        if strides[first] < 0:
            for operand, stride in enumerate(strides):
                shifts[operand] += (extent - 1) * stride
            axis = (*[-stride for stride in strides], extent)
        found.append(axis)
    return found


def sorted_axes(axes: list[Ints], first: int) -> list[Ints]:
    """Sort axes by the strides of the inputs, the slowest first. An axis that the first input repeats is slow."""
    return sorted(axes, key=lambda axis: (not axis[first], *map(abs, axis[first:-1])), reverse=True)


def merged(axes: list[Ints]) -> list[Ints]:
    """Merge each axis into its slower neighbour if every operand walks the two as one."""
    found: list[Ints] = []
    for inner in axes:
        extent = inner[-1]
        if found and found[-1][:-1] == tuple([stride * extent for stride in inner[:-1]]):
            found[-1] = (*inner[:-1], found[-1][-1] * extent)
        else:
            found.append(inner)
    return found


def _segments(slow: list[Ints], extent: int, lanes: int, wanted: int, least: int) -> Segments:
    """Cut a reduction into about as many segments as wanted, first along the first of its slower axes.

    A segment has `least` chunks, unless all are fewer.
    """
    first, others = (slow[0][-1], prod([axis[-1] for axis in slow[1:]])) if slow else (1, 1)
    chunks = -(-extent // lanes)
    wanted = min(wanted, first * others * chunks // least)
    if wanted <= 1:
        return Segments(1, 1, first, chunks)
    indices = -(-first // min(first, wanted))
    outer = -(-first // indices)
    runs = max(1, min(-(-wanted // outer), chunks * indices * others // least, chunks))
    each = -(-chunks // runs)
    return Segments(outer, -(-chunks // each), indices, each)
