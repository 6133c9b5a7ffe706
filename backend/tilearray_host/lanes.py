"""The lanes of a reduction, part after part.

`tilearray.geometry.reduction` lays down the order. A part is some segments of some results: its lanes are reduced,
their halves are combined, and the results are stored. There are three ways to the lanes of a part:

- If one ufunc reduces elements as they are, or widened, it reads a view of the operand. If chunks of rows are short, a
  call combines one chunk of many rows.
- If chunks of rows are shorter than `SHORT`, or few, such elements are copied first: a chunk of many rows becomes one
  row. NumPy reads whole rows of the operand then, and combines without a beginning for each chunk.
- Else `tilearray_host.blocks` computes the values of some elements first, block after block.

A loop has many parts of few shapes. What depends on the shape alone is a `Part`, and its `Memory` is kept for the next
part or call.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast

import numpy as np

from tilearray_host.blocks import (
    Block,
    Computation,
    Job,
    Nodes,
    Piece,
    Reduction,
    View,
    assign,
    pieces,
    reductions_of_line,
    uncast,
)
from tilearray_host.reduction import Array, Ints, Reduce, Walk, empty_lanes, slices

Fold = tuple[Any, Any, Any]
"""Lower and upper half of some lanes, and what they become."""
BLOCK = 2**15
"""The elements of a block, or two or four times as many if its temporaries are fewer or smaller: they stay in a
processor's cache."""
SHORT = 64
"""The most lanes that are laid out in rows of many chunks and then combined, or twice as many if they are cast: NumPy
begins a chunk where it lies in the time of some 60 additions."""
LINE = 256
"""The most lanes of values that are computed in lines, if no cast comes last."""
LINES = 1024
"""The lanes of several lines that are combined at once, at least, if there are as many."""
STEPS = 16
"""The steps of a block, at least, if there are as many."""
LANES = 2**15
"""The values of the lanes of a part, or twice as many if each is one element: they stay in the cache with a block."""
WHOLE = 2**18
"""The same if that makes columns whole rows: memory is read in half the time."""
KEPT_BYTES = 2**25
"""The most memory that all reductions keep for the next calls: a few functions of several reductions each take turns in
it. The system clears every page of new memory, which doubles the time of a call."""
NOTES = 2**12
"""The most pieces of that memory: the objects around a small one take more bytes than it has."""


class Extents(NamedTuple):
    """The shape of a part.

    Attributes
    ----------
    kept : tuple of int
        The extents of the slower kept axes, of the segments, and of the fastest kept axis.
    outer : tuple of int
        Those of the slower reduced axes.
    last : tuple of two int, or ()
        The whole chunks of the last segment, and the elements after them; () if it is as long as the others.
    """

    kept: Ints
    outer: Ints
    last: tuple[int, int] | tuple[()]


class Place(NamedTuple):
    """Where a part begins: for each operand that is read the distance from its first element, and the output's key."""

    part: Part
    distances: list[int]
    key: tuple[slice, ...]


class Bound:
    """A reduction bound to a loop.

    Parameters
    ----------
    nodes : Nodes
        The nodes of the expression.
    reduce : Reduce
        The node that reduces.
    walk : Walk
    strides : list
        For each of `nodes.reads` the strides in bytes; None for a number.
    as_it_is : bool
        Whether one ufunc reduces the elements of the only operand as they are, or widened.

    Attributes
    ----------
    as_it_is : bool
        Whether it reduces them where they are.
    is_short : bool
        Whether chunks are short.
    by_chunks : bool
        Whether it adds one chunk of many results after the other, since those are short.
    are_copied : bool
        Whether it reduces a copy of them, whose rows are the chunks of many results, since those are shorter, or few.
    in_lines : bool
        Whether values are computed, or copied, for whole lines.
    """

    def __init__(self, nodes: Nodes, reduce: Reduce, walk: Walk, strides: list[Ints | None], as_it_is: bool) -> None:
        self.nodes, self.reduce, self.walk, self.strides = nodes, reduce, walk, strides
        is_one_chunk = len(walk.outer) == 1 and walk.extent <= walk.lanes
        casts_last = all(uncast(nodes, node) != node for node in nodes.reduced)
        self.in_lines = walk.neighbours and not walk.outer and reduce.ufunc is not None
        self.in_lines = self.in_lines and (casts_last or walk.lanes <= LINE)
        self.is_short = walk.lanes <= (2 * SHORT if casts_last else SHORT)
        chunks = walk.segments.chunks if walk.segments.inner > 1 else walk.last[0]
        self.by_chunks = as_it_is and self.in_lines and self.is_short and walk.lanes >= SHORT and chunks > 1
        self.are_copied = as_it_is and self.in_lines and self.is_short and not self.by_chunks
        self.as_it_is = as_it_is and not self.are_copied and (not walk.outer or is_one_chunk)
        is_long = walk.neighbours and walk.lanes > LINE
        is_light = casts_last or self.are_copied or is_long
        self.block = BLOCK * (4 if casts_last and is_long else 2 if is_light else 1)
        self._parts: dict[Extents, Part] = {}

    def places(self) -> Iterator[Place]:
        """Yield the parts in order."""
        walk = self.walk
        chunks, last = walk.segments.chunks, walk.last
        values = LANES if walk.outer or chunks > 1 else 2 * LANES
        if self.as_it_is and not walk.neighbours:
            values = max(values, min(walk.lanes * walk.fast, WHOLE))
        for runs in walk.runs():
            shape = (*walk.slow_kept, walk.segments.inner, walk.fast)
            outer = (runs.indices.stop - runs.indices.start, *walk.outer[1:]) if walk.outer else ()
            for key in walk.parts(shape, max(1, values // (walk.lanes * len(self.reduce.dtypes)))):
                *slow, segments, fast = key
                is_last = segments.stop == walk.segments.inner and last != (chunks, 0)
                extents = Extents(tuple([each.stop - each.start for each in key]), outer, last if is_last else ())
                part = self._parts.get(extents)
                if part is None:
                    part = self._parts[extents] = Part(self, extents)
                distances = [0 if given is None else walk.distance(given, runs, key) for given in self.strides]
                stored = slice(runs.number + segments.start, runs.number + segments.stop)
                yield Place(part, distances, (*slow, stored, fast))


class Part:
    """All parts of one shape: their work, and the memory that waits for the next one.

    Attributes
    ----------
    views : list of View
        What a part reads, in the order in which `run` takes it.
    """

    def __init__(self, bound: Bound, extents: Extents) -> None:
        self.bound, walk = bound, bound.walk
        kept = tuple([slice(0, size) for size in extents.kept])
        *slow, segments, fast = kept
        others = slice(0, segments.stop - 1) if extents.last else segments
        runs: list[tuple[tuple[slice, ...], int, int]] = []
        """Segments of one length: their key, whole chunks, and the elements of a chunk that is shorter."""
        if others.stop:
            runs.append(((*slow, others, fast), walk.segments.chunks, 0))
        if extents.last:
            runs.append(((*slow, slice(others.stop, segments.stop), fast), *extents.last))
        only_rest = bound.reduce.ufunc is not None and len(runs) == 1 and not runs[0][1]
        self.used = _used(runs[0][2], walk) if only_rest else walk.lanes
        self.lanes = walk.with_lanes(extents.kept, self.used)
        if bound.in_lines and not bound.as_it_is:
            self.jobs = list(self._lines(extents))
        else:
            make = self._whole if bound.as_it_is else self._blocks
            self.jobs = [job for run in runs for job in make(extents.outer, *run)]
        self.views = [view for job in self.jobs for view in (*job.whole, *job.rest)]
        self.spare = Spare()

    def _whole(self, outer: Ints, key: tuple[slice, ...], whole: int, rest: int) -> Iterator[Job]:
        """Yield the only job of some segments whose elements are reduced as they are. Views have one axis of steps."""
        walk = self.bound.walk
        within = (*key[:-2], *[slice(0, size) for size in outer], *key[-2:])
        views = [
            self._views(within, first, count, size, squeezed=False)
            for first, count, size in ((0, whole, walk.lanes), (whole, 1, rest))
        ]
        if outer:
            views = [
                tuple(
                    [View(read, (shape[0], *shape[2:]), (steps[0], *steps[2:]), at) for read, shape, steps, at in each]
                )
                for each in views
            ]
        yield Job(walk.with_lanes(key, slice(None)), self.lanes, (), False, whole, rest, 0, *views)

    def _blocks(self, outer: Ints, kept: tuple[slice, ...], whole: int, rest: int) -> Iterator[Job]:
        """Yield the blocks of some segments: for some lanes at a time, one after the other along the steps."""
        walk, lanes, block = self.bound.walk, self.used, self.bound.block
        steps = (*outer, whole + (1 if rest else 0))
        extents = tuple([each.stop - each.start for each in kept])
        is_line = not outer and walk.lane_axis == -1 and self.bound.reduce.ufunc is None
        for within in slices(extents, max(1, block // (lanes * min(math.prod(steps), STEPS)))):
            part = tuple([slice(each.start + at.start, each.start + at.stop) for each, at in zip(kept, within)])
            sizes = tuple([each.stop - each.start for each in part])
            continues = False
            for *at, along in slices(steps, max(STEPS, block // (lanes * math.prod(sizes)))):
                key = (*part[:-2], *at, *part[-2:])
                first, count = along.start, min(along.stop, whole) - along.start
                size = rest if along.stop > whole else 0
                flat = count * walk.lanes + size if is_line else 0
                yield Job(
                    walk.with_lanes(part, slice(None)),
                    walk.with_lanes(sizes, lanes),
                    tuple([each.stop - each.start for each in (*at, along)]),
                    continues,
                    count,
                    size,
                    flat,
                    self._views(key, first, *((1, flat) if flat else (count, walk.lanes))),
                    () if flat else self._views(key, first + count, 1, size),
                )
                continues = True

    def _lines(self, extents: Extents) -> Iterator[Job]:
        """Yield the blocks of rows: of some of them, of some segments of one, or of some steps of a segment of some."""
        walk, lanes, block = self.bound.walk, self.used, self.bound.block
        *slow, segments, fast = extents.kept
        chunks = walk.segments.chunks
        whole, rest = extents.last or (chunks, 0)
        size, last = chunks * walk.lanes, whole * walk.lanes + rest
        """The elements of a segment, and of the last one."""
        if segments == 1:
            chunks = whole + (1 if rest else 0)
        if chunks == 1 or chunks * max(lanes, LINES) <= block:
            each = 2 * LANES if chunks == 1 else block // (lanes * chunks)  # the values of one chunk are the lanes
            for key in walk.parts(extents.kept, max(1, each)):
                at = key[-2]
                flat = (at.stop - at.start - 1) * size + (last if at.stop == segments else size)
                yield self._line(key, 0, chunks, flat, False)
            return
        rows = max(1, LINES // lanes)
        most = max(1, block // (rows * lanes))
        for segment in range(segments):
            elements = last if segment == segments - 1 else size
            steps = -(-elements // lanes)
            for *slower, fastest in slices((*slow, fast), rows):
                key = (*slower, slice(segment, segment + 1), fastest)
                for first in range(0, steps, most):
                    count = min(most, steps - first)
                    yield self._line(key, first, count, min(count * lanes, elements - first * lanes), first > 0)

    def _line(self, key: tuple[slice, ...], first: int, chunks: int, flat: int, continues: bool) -> Job:
        """Return a block of lines: of so many chunks of the segments, and with so many elements in all segments."""
        walk, segments = self.bound.walk, key[-2]
        lanes = walk.with_lanes([each.stop - each.start for each in key], self.used)
        if self.bound.are_copied:
            views = tuple([self._piece(key, first, piece) for piece in pieces(lanes, chunks, flat)])
        else:
            views = self._views((*key[:-2], slice(segments.start, segments.start + 1), key[-1]), first, 1, flat)
        place = walk.with_lanes(key, slice(None))
        return Job(place, lanes, (chunks,), continues, chunks, 0, flat, views, ())

    def _piece(self, key: tuple[slice, ...], first: int, piece: Piece) -> View:
        """Return what a block reads of the only operand for a piece of its lines."""
        start = key[-2].start
        segments = slice(start + piece.segments.start, start + piece.segments.stop)
        count = piece.chunks.stop - piece.chunks.start
        (view,) = self._views((*key[:-2], segments, key[-1]), first + piece.chunks.start, count, piece.size, False)
        return view

    def _views(
        self, key: tuple[slice, ...], first: int, count: int, size: int, squeezed: bool = True
    ) -> tuple[View, ...]:
        """Return what a block reads of each operand: axes that repeat an element have one, if they are `squeezed`."""
        found: list[View] = []
        for read, strides in enumerate(self.bound.strides if count and size else ()):
            if strides is None:
                found.append(View(read, (), (), 0))
            else:
                shape, steps, distance = self.bound.walk.geometry(strides, key, first, count, size)
                shape = [size if step or not squeezed else 1 for size, step in zip(shape, steps, strict=True)]
                found.append(View(read, tuple(shape), tuple(steps), distance))
        return tuple(found)

    def run(self, *given: Any, out: Any) -> None:
        """Reduce the elements of views, and store the results: in `out`, or in several arrays.

        After the views `given` has the numbers that come after. Threads do not share memory: it is popped.
        """
        try:
            memory = self.spare.pop()
        except IndexError:
            memory = Memory(self)
            _will_keep(self.spare, memory.nbytes)
        memory.run(given, out)
        if len(self.spare) < self.spare.notes:
            self.spare.append(memory)


class Spare(list["Memory"]):
    """Memory of a part that no call uses.

    Attributes
    ----------
    notes : int
        How many may be kept: each has a note, and gives it up where all parts have too much.
    """

    def __init__(self) -> None:
        super().__init__()
        self.notes = 0


class Memory:
    """The memory of a part. It serves one call at a time.

    Attributes
    ----------
    lanes : list of ndarray
        The lanes, one array for each dtype; the first axis has the values.
    """

    def __init__(self, part: Part) -> None:
        bound = part.bound
        nodes, reduce, walk = bound.nodes, bound.reduce, bound.walk
        self._reduce, self._ufunc = reduce, cast("Any", reduce.ufunc)
        self._identities = [reduce.identities[group[0]] for group in reduce.groups]
        self._dtypes = [reduce.dtypes[group[0]] for group in reduce.groups]
        self._work: list[Callable[[Sequence[Any]], None]] = []
        blocks: dict[Any, Block] = {}
        only = part.jobs[0]
        if bound.as_it_is or len(part.jobs) > 1 or math.prod(only.steps) > 1 or reduce.start is not None:
            shapes = [(len(group), *part.lanes) for group in reduce.groups]
            empty = empty_lanes if walk.neighbours and not bound.by_chunks else np.empty
            self.lanes = [empty(shape, dtype) for shape, dtype in zip(shapes, self._dtypes, strict=True)]
        else:  # the values of the only step are the lanes
            block = Block(nodes, reduce, walk.lane_axis, only, 0, bound.is_short, bound.are_copied)
            blocks[()] = block
            self.lanes = [x[0] for x in block.rows]
            compute, reads = block.compute, len(part.views)
            self._work.append(lambda given: compute(given[:reads]) if len(given) > reads else compute(given))
        read = 0
        for job in () if self._work else part.jobs:
            views = slice(read, read := read + len(job.whole) + len(job.rest))
            if bound.as_it_is:
                self._work.append(self._as_it_is(job, read - 1, walk, bound.by_chunks))
                continue
            before = 1 if job.continues or reduce.start is not None else 0
            shape = (before, *job[1:3], *job[4:7], tuple([view.shape for view in (*job.whole, *job.rest)]))
            if shape not in blocks:
                blocks[shape] = Block(nodes, reduce, walk.lane_axis, job, before, bound.is_short, bound.are_copied)
            self._work.append(self._block(job, blocks[shape], views))
        folds = [_folds(lanes, walk, identity) for lanes, identity in zip(self.lanes, self._identities, strict=True)]
        firsts = [first for _, first in folds]
        self._folds = [fold for each, _ in folds for fold in each] if reduce.ufunc else []
        self._pairs = [] if reduce.ufunc else list(zip(*[each for each, _ in folds], strict=True))
        results = [first[i] for first, group in zip(firsts, reduce.groups, strict=True) for i, _ in enumerate(group)]
        after = _after(nodes, results)
        self._after = after.written_out() if nodes.last >= 0 else after.run
        self._stores = () if nodes.last >= 0 else nodes.stores
        self._result = results[0] if nodes.assigns else None
        self._views = len(part.views)
        own = [*self.lanes, *[fold for each, _ in folds for _, _, fold in each]]
        self.nbytes = _nbytes([*own, *[x for block in blocks.values() for x in block.memory]])

    def run(self, given: Sequence[Any], out: Any) -> None:
        """As `Part.run`."""
        ufunc = self._ufunc
        for work in self._work:
            work(given)
        for low, high, fold in self._folds:
            ufunc(low, high, fold)
        for pairs in self._pairs:
            found = self._reduce.combine.pair([low for low, _, _ in pairs], [high for _, high, _ in pairs])
            for (_, _, fold), new in zip(pairs, found, strict=True):
                fold[...] = new
        if self._result is not None:
            out[...] = self._result
            return
        values: Any = self._after(given[self._views :], out)  # None where the last node writes to the output
        for each, store in zip((out,) if isinstance(out, np.ndarray) else out, self._stores):
            each[...] = values[store]

    def _as_it_is(self, job: Job, last: int, walk: Walk, by_chunks: bool) -> Callable[[Sequence[Any]], None]:
        """Return the work of some segments whose elements are reduced as they are. `last` is their last view."""
        ufunc = self._ufunc
        (lanes,), (dtype,), (identity,) = self.lanes, self._dtypes, self._identities
        target, after = lanes[(0, *job.place)], (slice(None),) * (-1 - walk.lane_axis)
        rest, others = target[(..., slice(0, job.size), *after)], target[(..., slice(job.size, None), *after)]
        reduce = ufunc.reduce

        def at_once(x: Any) -> None:  # NumPy would begin with 0.0, and lose -0.0; it casts a first chunk twice
            reduce(x, 0, dtype, target, False, None if x.dtype == dtype else identity)

        def by_chunk(x: Any) -> None:
            ufunc(x[0], x[1], target, dtype=dtype)
            for chunk in x[2:]:
                ufunc(target, chunk, target)

        combine = by_chunk if by_chunks and job.whole and job.whole[0].shape[0] > 1 else at_once

        def chunks(given: Sequence[Any]) -> None:
            combine(given[last])

        def chunks_and_rest(given: Sequence[Any]) -> None:
            combine(given[last - 1])
            ufunc(rest, given[last][0], rest)

        def only_rest(given: Sequence[Any]) -> None:
            rest[...] = given[last][0]

        def rest_of_several(given: Sequence[Any]) -> None:
            reduce(given[last], 0, dtype, rest, False, identity)

        def filled(given: Sequence[Any]) -> None:
            others[...] = identity
            alone(given)

        if job.whole:
            return chunks_and_rest if job.rest else chunks
        alone = rest_of_several if walk.outer else only_rest
        others[...] = identity  # folds of neighbours leave it there
        return alone if walk.neighbours or not others.size else filled

    def _reductions(self, job: Job, block: Block, targets: list[Array]) -> list[Reduction]:
        """Return the calls that combine the values of lines, each to its lanes."""
        lines = iter(block.lines)
        return [
            call
            for target, group, identity in zip(targets, self._reduce.groups, self._identities, strict=True)
            for place, _ in enumerate(group)
            for call in reductions_of_line(next(lines), target[place], identity, self._ufunc, job)
        ]

    def _block(self, job: Job, block: Block, views: slice) -> Callable[[Sequence[Any]], None]:
        """Return the work of one block: it computes values, and combines them after those of the blocks before."""
        reduce, start = self._reduce, self._reduce.start
        targets = [lanes[(slice(None), *job.place)] for lanes in self.lanes]
        rows, compute = block.rows, block.compute
        firsts = [x[0] for x in rows] if job.continues or start is not None else []
        before = targets if job.continues else [start] * len(firsts)
        combine: Any = reduce.ufunc
        if block.lines:
            return _in_lines(block, views, self._reductions(job, block, targets))
        results = block.results_of(targets) if combine is not None else []
        calls = list(zip(rows, results, self._dtypes, self._identities)) if combine else []
        copies = [pair for pair in zip(targets, results) if pair[0] is not pair[1]]

        def work(given: Sequence[Any]) -> None:
            compute(given[views])
            for first, value in zip(firsts, before):
                first[...] = value
            if combine is not None:
                for x, result, dtype, identity in calls:
                    combine.reduce(x, 0, dtype, result, False, identity)
                for target, result in copies:
                    target[...] = result
            else:
                for target, found in zip(targets, reduce.combine.rows(rows), strict=True):
                    target[...] = found

        return work


def _in_lines(block: Block, views: slice, reductions: list[Reduction]) -> Callable[[Sequence[Any]], None]:
    """Return the work of a block whose values are combined where they are computed."""
    compute = block.compute

    def work(given: Sequence[Any]) -> None:
        compute(given[views])
        for function, arguments in reductions:
            function(*arguments)

    return work


def _after(nodes: Nodes, results: list[Array]) -> Computation:
    """Return the computation of the nodes after a reduction. The last one writes to the output, if it is the only."""
    known: list[Any] = [None] * len(nodes.steps)
    for node, place in nodes.parts.items():
        known[node] = results[place]
    calls: list[Any] = []
    for node in nodes.after:
        function, dtype, arguments = nodes.steps[node]
        if node != nodes.last:
            shapes = [() if known[argument] is None else known[argument].shape for argument in arguments]  # numbers
            known[node] = np.empty(np.broadcast_shapes(*shapes), dtype)
        calls.append((function, arguments, known[node]))
    if nodes.last in nodes.parts:
        calls.append((assign, (nodes.last,), None))
    return Computation(list(nodes.numbers), calls, known)


def finish(nodes: Nodes, results: list[Array], numbers: Sequence[Any], outs: Sequence[Array]) -> None:
    """Compute the nodes after a reduction from its results and numbers, and store the outputs."""
    values = _after(nodes, results).run(numbers, outs[0])
    if nodes.last < 0:
        for out, store in zip(outs, nodes.stores, strict=True):
            out[...] = values[store]


def _nbytes(views: Sequence[Array]) -> int:
    """Return the bytes of the memory of some views, each piece once."""
    pieces: dict[int, int] = {}
    for view in views:
        while isinstance(view.base, np.ndarray):
            view = view.base
        pieces[id(view)] = view.nbytes
    return sum(pieces.values())


def _used(elements: int, walk: Walk) -> int:
    """Return how many lanes hold some elements of one chunk: of neighbours so many that halves need little filling."""
    if not walk.neighbours:
        return elements
    most = 1 << (elements - 1).bit_length()
    return most // 4 * 3 if elements <= most // 4 * 3 else most


def _folds(lanes: Array, walk: Walk, identity: Any) -> tuple[list[Fold], Array]:
    """Return the calls that combine the lanes of an array, and the view of the results.

    Without gaps in memory, all halves are views of one axis: NumPy begins a call of those in a third of the time. An
    odd number of neighbours is filled up to a power of two, once, with the identity. Halves are combined in place.
    """
    found: list[Fold] = []
    memory: list[Array] = []
    is_swapped = walk.neighbours and not lanes.flags.c_contiguous
    along = lanes.swapaxes(-3, -2) if is_swapped else lanes if walk.neighbours else lanes.swapaxes(-1, -2)
    while (count := along.shape[-1]) > 1 and not walk.neighbours:
        half = (1 << (count - 1).bit_length()) // 2
        low = along[..., : count - half]
        found.append((low, along[..., half:], low))
        along = along[..., :half]
    while (count := along.shape[-1]) > 1:
        half = count // 2
        if count % 2:
            filled = np.full((*along.shape[:-1], 1 << half.bit_length()), identity, along.dtype)
            found.append((along[..., : count - 1 : 2], along[..., 1:count:2], filled[..., :half]))
            found.append((along[..., count - 1], np.array(identity, along.dtype), filled[..., half]))
            along = filled
        elif along.flags.c_contiguous:
            in_line = along.reshape(-1)
            size = in_line.size // 2
            halves = memory[-2][:size] if len(memory) > 1 else np.empty(size, along.dtype)
            memory.append(halves)
            found.append((in_line[::2], in_line[1::2], halves))
            along = halves.reshape(*along.shape[:-1], half)
        else:
            halves = np.empty((*along.shape[:-1], half), along.dtype)
            found.append((along[..., ::2], along[..., 1::2], halves))
            along = halves
    results = along[..., 0]
    return found, results.swapaxes(-2, -1) if is_swapped else results


_KEEPERS: deque[tuple[Spare, int]] = deque()


def _noted() -> int:
    """The bytes of all notes. Other threads may add notes meanwhile: then it begins again."""
    while True:
        with suppress(RuntimeError):
            return sum([size for _, size in tuple(_KEEPERS)])


def _will_keep(spare: Spare, nbytes: int) -> None:
    """Note that a list will keep memory. The lists that were noted first give theirs up, if all have too much."""
    spare.notes += 1
    _KEEPERS.append((spare, nbytes))
    noted = _noted()
    while len(_KEEPERS) > 1 and (noted > KEPT_BYTES or len(_KEEPERS) > NOTES):
        with suppress(IndexError):  # they took the last ones
            first, size = _KEEPERS.popleft()
            noted -= size
            first.notes -= 1
            first.clear()
