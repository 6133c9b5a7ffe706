"""The lanes of a reduction, part after part.

`tilearray.geometry.reduction` lays down the order. A part is some segments of some results: its lanes are reduced,
their halves are combined, and the results are stored. There are two ways to the lanes of a part:

- If one ufunc reduces elements as they are, or widened, it reads a view of the operand.
- Else `tilearray_host.blocks` computes the values of some elements first, block after block.

A loop has many parts of few shapes. What depends on the shape alone is a `Part`, and its `Memory` is kept for the next
part or call.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from tilearray_host.blocks import Block, Computation, Job, Nodes, View, assign
from tilearray_host.reduction import Array, Ints, Reduce, Walk, slices

Fold = tuple[Array, Array, Array]
"""Lower and upper half of some lanes, and what they become."""
TURNED = 16
"""The most lanes that are the slowest axis of their memory."""
BLOCK = 2**16
"""The elements of a block: its temporaries stay in a processor's cache."""
STEPS = 16
"""The steps of a block, at least, if there are as many."""
LANES = 2**15
"""The values of the lanes of a part."""
KEPT_BYTES = 2**23
"""The most memory that all reductions keep for the next calls."""


class Extents(NamedTuple):
    """The shape of a part.

    Attributes
    ----------
    kept : tuple of int
        The extents of the slower kept axes, of the segments, and of the fastest kept axis.
    outer : tuple of int
        Those of the slower reduced axes.
    apart : int
        The chunks from one segment to the next.
    whole, rest : int
        The whole chunks of each segment, and the elements after them.
    """

    kept: Ints
    outer: Ints
    apart: int
    whole: int
    rest: int


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
    """

    def __init__(self, nodes: Nodes, reduce: Reduce, walk: Walk, strides: list[Ints | None], as_it_is: bool) -> None:
        self.nodes, self.reduce, self.walk, self.strides = nodes, reduce, walk, strides
        self.as_it_is = as_it_is and not walk.outer
        self._parts: dict[Extents, Part] = {}

    def places(self) -> Iterator[Place]:
        """Yield the parts in order."""
        walk = self.walk
        for runs in walk.runs():
            shape = (*walk.slow_kept, runs.length, walk.fast)
            whole, rest = walk.chunks_of(runs)
            outer = (runs.indices.stop - runs.indices.start, *walk.outer[1:]) if walk.outer else ()
            for key in slices(shape, max(1, LANES // (walk.lanes * len(self.reduce.dtypes)))):
                extents = Extents(tuple([each.stop - each.start for each in key]), outer, runs.chunks, whole, rest)
                part = self._parts.get(extents)
                if part is None:
                    part = self._parts[extents] = Part(self, extents)
                *slow, segments, fast = key
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
        self.bound = bound
        self.lanes = bound.walk.with_lanes(extents.kept)
        self.jobs = [self._whole(extents)] if bound.as_it_is else list(self._blocks(extents))
        self.views = [view for job in self.jobs for view in (*job.whole, *job.rest)]
        self.spare: list[Memory] = []

    def _whole(self, extents: Extents) -> Job:
        """Return the only job of a part whose elements are reduced as they are."""
        kept, _, apart, whole, rest = extents
        key = tuple([slice(0, size) for size in kept])
        views = [
            self._views(key, first, apart, count, size, squeezed=False)
            for first, count, size in ((0, whole, self.bound.walk.lanes), (whole, 1, rest))
        ]
        return Job((), self.lanes, (), False, whole, rest, 0, *views)

    def _blocks(self, extents: Extents) -> Iterator[Job]:
        """Yield the blocks of a part: for some lanes at a time, one after the other along the steps."""
        walk, (kept, outer, apart, whole, rest) = self.bound.walk, extents
        steps = (*outer, whole + (1 if rest else 0))
        is_line = not outer and math.prod(kept) == 1 and walk.lane_axis == -1
        for part in slices(kept, max(1, BLOCK // (walk.lanes * min(math.prod(steps), STEPS)))):
            sizes = tuple([each.stop - each.start for each in part])
            continues = False
            for *at, along in slices(steps, max(STEPS, BLOCK // (walk.lanes * math.prod(sizes)))):
                key = (*part[:-2], *at, *part[-2:])
                first, count = along.start, min(along.stop, whole) - along.start
                size = rest if along.stop > whole else 0
                flat = count * walk.lanes + size if is_line else 0
                yield Job(
                    walk.with_lanes(part, slice(None)),
                    walk.with_lanes(sizes),
                    tuple([each.stop - each.start for each in (*at, along)]),
                    continues,
                    count,
                    size,
                    flat,
                    self._views(key, first, apart, *((1, flat) if flat else (count, walk.lanes))),
                    () if flat else self._views(key, first + count, apart, 1, size),
                )
                continues = True

    def _views(
        self, key: tuple[slice, ...], first: int, apart: int, count: int, size: int, squeezed: bool = True
    ) -> tuple[View, ...]:
        """Return what a block reads of each operand: axes that repeat an element have one, if they are `squeezed`."""
        found: list[View] = []
        for read, strides in enumerate(self.bound.strides if count and size else ()):
            if strides is None:
                found.append(View(read, (), (), 0))
            else:
                shape, steps, distance = self.bound.walk.geometry(strides, key, first, apart, count, size)
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
        self.spare.append(memory)


class Memory:
    """The memory of a part. It serves one call at a time.

    Attributes
    ----------
    lanes : list of ndarray
        The lanes, one array for each dtype; the first axis has the values.
    """

    def __init__(self, part: Part) -> None:
        nodes, reduce, walk = part.bound.nodes, part.bound.reduce, part.bound.walk
        self._reduce = reduce
        self._identities = [reduce.identities[group[0]] for group in reduce.groups]
        self._dtypes = [reduce.dtypes[group[0]] for group in reduce.groups]
        self.lanes = [
            np.full((len(group), *part.lanes), identity, dtype)
            for group, identity, dtype in zip(reduce.groups, self._identities, self._dtypes, strict=True)
        ]
        folds = [_folds(lanes, walk) for lanes in self.lanes]
        firsts = [first for _, first in folds]
        self._folds = [fold for each, _ in folds for fold in each] if reduce.ufunc else []
        self._pairs = [] if reduce.ufunc else list(zip(*[each for each, _ in folds], strict=True))
        results = [first[i] for first, group in zip(firsts, reduce.groups, strict=True) for i, _ in enumerate(group)]
        self._after, self._stores = _after(nodes, results), () if nodes.last >= 0 else nodes.stores
        self._result = results[0] if nodes.assigns else None
        self._views = len(part.views)
        self._whole = part.jobs[0] if part.bound.as_it_is else None
        (lanes, *_), size, after = self.lanes, part.jobs[0].size, (slice(None),) * (-1 - walk.lane_axis)
        self._first, self._rest = lanes[0], lanes[(0, ..., slice(0, size), *after)]
        self._work: list[Callable[[Sequence[Any]], None]] = []
        blocks: dict[Any, Block] = {}
        read = 0
        for job in [] if self._whole else part.jobs:
            views = slice(read, read := read + len(job.whole) + len(job.rest))
            shape = (*job[1:3], *job[4:7], tuple([view.shape for view in (*job.whole, *job.rest)]))
            if shape not in blocks:
                blocks[shape] = Block(nodes, reduce, walk.lane_axis, job)
            self._work.append(self._block(job, blocks[shape], views))
        own = [*self.lanes, *[fold for each, _ in folds for _, _, fold in each]]
        self.nbytes = sum([x.nbytes for x in own]) + sum([block.nbytes for block in blocks.values()])

    def run(self, given: Sequence[Any], out: Any) -> None:
        """As `Part.run`."""
        ufunc: Any = self._reduce.ufunc
        job = self._whole
        if job is None:
            for work in self._work:
                work(given)
        elif job.whole:  # NumPy would begin with 0.0, and lose -0.0
            ufunc.reduce(given[0], 0, self._dtypes[0], self._first, False, self._identities[0])
            if job.rest:
                ufunc(self._rest, given[1][0], self._rest)
        else:  # the other lanes hold the identity, which nothing overwrites
            self._rest[...] = given[0][0]
        for low, high, fold in self._folds:
            ufunc(low, high, fold)
        for pairs in self._pairs:
            found = self._reduce.combine.pair([low for low, _, _ in pairs], [high for _, high, _ in pairs])
            for (_, _, fold), new in zip(pairs, found, strict=True):
                fold[...] = new
        if self._result is not None:
            out[...] = self._result
            return
        values = self._after.run(given[self._views :], out)
        for each, store in zip((out,) if isinstance(out, np.ndarray) else out, self._stores):
            each[...] = values[store]

    def _block(self, job: Job, block: Block, views: slice) -> Callable[[Sequence[Any]], None]:
        """Return the work of one block: it computes values, and combines them after those of the blocks before."""
        reduce, start = self._reduce, self._reduce.start
        targets = [lanes[(slice(None), *job.place)] for lanes in self.lanes]
        begins = job.continues or start is not None
        rows = block.rows if begins else [x[1:] for x in block.rows]
        firsts = [x[0] for x in block.rows] if begins else []
        before = targets if job.continues else [start] * len(firsts)
        combine: Any = reduce.ufunc

        def work(given: Sequence[Any]) -> None:
            block.compute(given[views])
            for first, value in zip(firsts, before):
                first[...] = value
            if combine is not None:
                for x, target, dtype, identity in zip(rows, targets, self._dtypes, self._identities):
                    combine.reduce(x, 0, dtype, target, False, identity)
            else:
                for target, found in zip(targets, reduce.combine.rows(rows), strict=True):
                    target[...] = found

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


def _folds(lanes: Array, walk: Walk) -> tuple[list[Fold], Array]:
    """Return the calls that combine the lanes of an array, and the view of the results.

    Each call writes to memory of its own: NumPy copies operands that may share memory with the output. Arrays of few
    lanes have the lanes as their slowest axis, so that halves lie without gaps: this is four times as fast.
    """
    along, found = lanes.swapaxes(-1, walk.lane_axis), list[Fold]()
    while along.shape[-1] > 1:
        low, high = _halves(along, walk.neighbours)
        count = low.shape[-1]
        if walk.lane_axis == -1 and count <= TURNED:
            along = np.moveaxis(np.empty((count, *low.shape[:-1]), lanes.dtype), 0, -1)
        else:
            along = np.empty_like(low)
        found.append((low, high, along))
    return found, along[..., 0]


def _halves(along: Array, neighbours: bool) -> tuple[Array, Array]:
    """Return the lower and the upper half of the last axis. If neighbours are combined, a half has every second one."""
    if neighbours:
        return along[..., ::2], along[..., 1::2]
    count = along.shape[-1] // 2
    return along[..., :count], along[..., count:]


_KEEPERS: deque[tuple[list[Memory], int]] = deque()


def _noted() -> int:
    """The bytes of all notes. Other threads may add notes meanwhile: then it begins again."""
    while True:
        with suppress(RuntimeError):
            return sum([size for _, size in tuple(_KEEPERS)])


def _will_keep(spare: list[Memory], nbytes: int) -> None:
    """Note that a list will keep memory. The lists that were noted first give theirs up, if all have too much."""
    _KEEPERS.append((spare, nbytes))
    while len(_KEEPERS) > 1 and _noted() > KEPT_BYTES:
        with suppress(IndexError):  # they took the last ones
            _KEEPERS.popleft()[0].clear()
