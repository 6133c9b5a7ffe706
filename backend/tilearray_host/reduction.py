"""Reductions, executed by NumPy in the order that `tilearray.geometry.reduction` lays down.

The steps of a reduction (indices of slower axes, then chunks) become the first axis of a block of new memory in C
order, its lanes the last one or the last but one. ``ufunc.reduce`` along the first axis of such a block combines one
row after the other, as a lane does. The halves of the lanes are then combined in turn. Where the order has no influence
(integers, extremes, truth values), one call of a ufunc reduces a whole view.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tilearray_host.casts import dtype_named

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = list[Array]
Ints = tuple[int, ...]
Evaluate = Callable[[Arrays], Arrays]
"""Computes the values that are reduced from views of the inputs: new memory in C order."""

BLOCK = 2**16
"""The elements of a block: its temporaries stay in a processor's cache."""
LANES_AT_ONCE = 2**16
"""The lanes that are reduced at once if no block is made."""
KEPT_LANES = 2**11
"""The most lanes whose memory is kept for the next call."""
KEPT_LISTS = 256
"""The most reductions that keep such memory: 4 MiB in all."""


class Combine(NamedTuple):
    """How two values become one.

    Attributes
    ----------
    rows : callable
        ``rows(values) -> values``: combines along the first axis, one row after the other.
    pair : callable
        ``pair(values, others) -> values``.
    identity : callable
        ``identity(dtype)``: the value without influence, for the first of the values.
    whole : numpy.ufunc or None
        The ufunc that gives the same in any order, for dtypes that `in_any_order` names.
    in_any_order : str
        The kinds of these dtypes.
    extreme : numpy.ufunc or None
        The ufunc that finds the best value, if the second value is its position.
    """

    rows: Callable[[Arrays], Arrays]
    pair: Callable[[Arrays, Arrays], Arrays]
    identity: Callable[[np.dtype], Any]
    whole: np.ufunc | None = None
    in_any_order: str = ""
    extreme: np.ufunc | None = None


def _lowest(dtype: np.dtype) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -math.inf


def _highest(dtype: np.dtype) -> Any:
    return np.iinfo(dtype).max if dtype.kind in "iu" else math.inf


def _by_ufunc(ufunc: np.ufunc, identity: Callable[[np.dtype], Any], in_any_order: str) -> Combine:
    def rows(values: Arrays) -> Arrays:
        return [ufunc.reduce(x, axis=0, dtype=x.dtype, initial=identity(x.dtype)) for x in values]

    def pair(values: Arrays, others: Arrays) -> Arrays:
        return [ufunc(x, y) for x, y in zip(values, others, strict=True)]

    return Combine(rows, pair, identity, ufunc, in_any_order)


def signed(ufunc: np.ufunc, found: Array, x: Array, scan: Callable[..., Any], **axes: Any) -> Array:
    """Return largest or smallest elements that are zeros with their sign: 0.0 is larger than -0.0.

    NumPy takes either zero, as processors differ. The bits of floats as integers have the order of 0.0 and of the
    negative floats, and of -0.0 and of the positive floats: so the integers' `ufunc` tells which zero occurs. `scan` is
    the method that found `found` in `x`, along `axes`.
    """
    zeros = found == 0
    if ufunc in EXTREMES and x.dtype.kind in "fV" and np.any(zeros):
        signs = scan(x.view(f"i{x.itemsize}"), **axes) < 0
        return np.where(zeros, np.where(signs, -0.0, 0.0).astype(found.dtype), found)
    return found


EXTREMES = (np.maximum, np.minimum)


def reduced(ufunc: np.ufunc, x: Array, axes: Any, dtype: np.dtype) -> Array:
    """Return the reduction of a whole array by a ufunc that gives the same in any order."""
    found = np.asarray(ufunc.reduce(x, axis=axes, dtype=dtype))
    return signed(ufunc, found, x, ufunc.reduce, axis=axes)


def _extremes(ufunc: np.ufunc, identity: Callable[[np.dtype], Any]) -> Combine:
    """The largest or smallest value; NaN if there is one."""

    def rows(values: Arrays) -> Arrays:
        return [reduced(ufunc, x, 0, x.dtype) for x in values]

    def pair(values: Arrays, others: Arrays) -> Arrays:
        (x,), (y,) = values, others
        found = np.asarray(ufunc(x, y))
        if x.dtype.kind != "f":
            return [found]
        which = np.logical_and if ufunc is np.maximum else np.logical_or
        negative = which(np.signbit(x), np.signbit(y))
        return [np.where((x == 0) & (y == 0), np.copysign(found, np.where(negative, -1.0, 1.0)), found)]

    return Combine(rows, pair, identity, ufunc, "biuf")


def _multiply() -> Combine:
    """Products; complex ones by parts, since NumPy's own depend on the processor."""
    plain = _by_ufunc(np.multiply, lambda _: 1, "biu")

    def pair(values: Arrays, others: Arrays) -> Arrays:
        x: Any = values[0]
        y: Any = others[0]
        if x.dtype.kind != "c":
            return [x * y]
        found = np.empty(np.broadcast_shapes(x.shape, y.shape), x.dtype)
        found.real = x.real * y.real - x.imag * y.imag
        found.imag = x.real * y.imag + x.imag * y.real
        return [found]

    def rows(values: Arrays) -> Arrays:
        (x,) = values
        if x.dtype.kind != "c":
            return plain.rows(values)
        found = [x[0]]
        for row in x[1:]:
            found = pair(found, [row])
        return found

    return plain._replace(rows=rows, pair=pair)


def _search(better: np.ufunc, extreme: np.ufunc, identity: Callable[[np.dtype], Any]) -> Combine:
    """The best value and the least of its positions; NaN is better than all."""

    def pair(values: Arrays, others: Arrays) -> Arrays:
        (x, at), (y, other) = values, others
        nan_x, nan_y = x != x, y != y
        take = better(y, x) | (nan_y & ~nan_x) | (((x == y) | (nan_x & nan_y)) & (other < at))
        return [np.where(take, y, x), np.where(take, other, at)]

    def rows(values: Arrays) -> Arrays:
        x, at = values
        best = extreme.reduce(x, axis=0)
        is_best = (x == best) | ((x != x) & (best != best))
        return [best, np.min(np.where(is_best, at, NOWHERE), axis=0)]

    return Combine(rows, pair, identity, extreme=extreme)


NOWHERE = np.iinfo(np.int64).max
COMBINE: dict[str, Combine] = {
    "add": _by_ufunc(np.add, lambda dtype: {"f": -0.0, "c": complex(-0.0, -0.0)}.get(dtype.kind, 0), "biu"),
    "multiply": _multiply(),
    "maximum": _extremes(np.maximum, _lowest),
    "minimum": _extremes(np.minimum, _highest),
    "or": _by_ufunc(np.logical_or, lambda _: False, "b"),
    "and": _by_ufunc(np.logical_and, lambda _: True, "b"),
    "argmax": _search(np.greater, np.maximum, _lowest),
    "argmin": _search(np.less, np.minimum, _highest),
}


def has_an_order(node: Any) -> bool:
    """Return whether the order in which a node of an expression combines values has an influence on the result.

    >>> has_an_order(("reduce", "add", (0,), ("float32",))), has_an_order(("reduce", "add", (0,), ("int64",)))
    (True, False)
    """
    _, how, _, names = node
    combine = COMBINE[how]
    return combine.extreme is None and dtype_named(names[0]).kind not in combine.in_any_order


class Reduce(NamedTuple):
    """A node that reduces.

    Attributes
    ----------
    combine : Combine
    dtypes : tuple of numpy.dtype
        The dtypes of its values.
    """

    combine: Combine
    dtypes: tuple[np.dtype, ...]

    @classmethod
    def of(cls, how: str, names: Sequence[str]) -> Reduce:
        """Return the node of a name in `COMBINE`."""
        return cls(COMBINE[how], tuple([dtype_named(name) for name in names]))

    @property
    def identities(self) -> list[Any]:
        """The values without influence."""
        first, *others = [self.combine.identity(dtype) for dtype in self.dtypes]
        return [first, *others] if self.combine.extreme is None else [first, NOWHERE]

    @property
    def start(self) -> Arrays | None:
        """What a lane combines with its first value, where that has an influence: ``1 * inf`` is ``inf + nan * 1j``."""
        is_complex_product = self.combine is COMBINE["multiply"] and self.dtypes[0].kind == "c"
        return [np.ones((), self.dtypes[0])] if is_complex_product else None


class Place(NamedTuple):
    """An operand: its memory, the byte offset of the loop's first element, its dtype, and its strides in bytes."""

    memory: Any
    offset: int
    dtype: np.dtype
    strides: Ints


Places = Sequence[Place | None]


class Runs(NamedTuple):
    """Segments of equal length along the fastest reduced axis, which are reduced together.

    Attributes
    ----------
    number : int
        The number of the first one.
    indices : slice
        Their indices of the first slower axis.
    first, chunks : int
        The first chunk of the first one, and the chunks of each.
    length : int
        How many there are.
    """

    number: int
    indices: slice
    first: int
    chunks: int
    length: int


class Walk:
    """The loop of a reduction, on arrays of its shape: slower kept, slower reduced, fastest kept, fastest reduced axis.

    A block has the axes: slower reduced axes, chunks; slower kept axes, segments; lanes and the fastest kept axis. The
    latter two change places if lanes lie side by side in memory. The first group are the steps of a lane.
    """

    def __init__(self, loop: Any) -> None:
        self.kept: int = loop.kept
        self.lanes: int = loop.lanes
        self.segments = loop.segments
        self.extent: int = loop.shape[-1]
        self.slow_kept: Ints = loop.shape[: self.kept]
        self.outer: Ints = loop.shape[self.kept : -2]
        self.fast: int = loop.shape[-2]
        self.neighbours: bool = loop.neighbours
        self.lane_axis = -2 if loop.case == "reduce_columns" else -1

    def output(self, place: Place) -> Array:
        """Return the view of an output with the axes: slower kept axes, segments, fastest kept axis."""
        shape, strides = self.output_geometry(place.strides, place.dtype.itemsize)
        return np.ndarray(shape, place.dtype, place.memory, place.offset, strides)

    def output_geometry(self, strides: Ints, *segments: int) -> tuple[Ints, Ints]:
        """Return the shape and strides of an output; with the stride of its axis of segments, if that is given."""
        total = (self.segments.total,) if segments else ()
        return (*self.slow_kept, *total, self.fast), (*strides[: self.kept], *segments, strides[-2])

    def runs(self) -> Iterator[Runs]:
        """Yield the segments: those of whole chunks together, a last one with fewer or part of a chunk alone."""
        outer, inner, indices, chunks = self.segments
        last = -(-self.extent // self.lanes)
        whole = min(inner, self.extent // (self.lanes * chunks)) if inner > 1 else 0
        for i in range(outer):
            part = slice(i * indices, min((i + 1) * indices, self.outer[0] if self.outer else 1))
            if whole:
                yield Runs(i * inner, part, 0, chunks, whole)
            if whole < inner:
                yield Runs(i * inner + whole, part, whole * chunks, last - whole * chunks, 1)

    def view(self, place: Place | None, key: tuple[slice, ...], first: int, apart: int, count: int, size: int) -> Array:
        """Return a part of an operand with the axes of a block; the positions of its elements if `place` is None."""
        if place is None:
            outer = range(1, len(self.outer) + 1)
            steps = [0] * self.kept + [math.prod(self.outer[axis:]) * self.extent for axis in outer]
            return _positions(*self.geometry([*steps, 0, 1], key, first, apart, count, size))
        shape, strides, offset = self.geometry(place.strides, key, first, apart, count, size)
        return np.ndarray(shape, place.dtype, place.memory, place.offset + offset, strides)

    def geometry(
        self, strides: Sequence[int], key: tuple[slice, ...], first: int, apart: int, count: int, size: int
    ) -> tuple[list[int], list[int], int]:
        """Return the shape of a part, its strides, and the distance of its first element, in units of `strides`.

        `key` selects of slower kept and reduced axes, segments and the fastest kept axis; `first` is the first chunk of
        the first segment, `apart` the chunks from one segment to the next; `count` chunks of `size` lanes are taken.
        """
        kept, outer = self.kept, len(self.outer)
        *slow, fast, lane = strides
        start = (first + key[-2].start * apart) * self.lanes
        shape = [*[part.stop - part.start for part in key], count, size]
        steps = [*slow, apart * self.lanes * lane, fast, self.lanes * lane, lane]
        distance = start * lane + key[-1].start * fast
        distance += sum([part.start * stride for part, stride in zip(key[: kept + outer], slow)])
        order = [*range(kept, kept + outer), kept + outer + 2, *range(kept), kept + outer]
        order += [kept + outer + 3, kept + outer + 1] if self.lane_axis == -2 else [kept + outer + 1, kept + outer + 3]
        return [shape[axis] for axis in order], [steps[axis] for axis in order], distance


def _positions(shape: Sequence[int], steps: Sequence[int], lowest: int) -> Array:
    """Return ``lowest`` plus the sum of indices times steps; axes without a step have one element."""
    found: Any = np.int64(lowest)
    for axis, (size, step) in enumerate(zip(shape, steps, strict=True)):
        if step:
            along = np.arange(0, size * step, step)
            found = found + along.reshape((-1,) + (1,) * (len(shape) - axis - 1))
    return np.asarray(found)


def reduce_all(walk: Walk, node: Reduce, inputs: Places, evaluate: Evaluate, results: Arrays) -> None:
    """Reduce the values that `evaluate` makes of inputs, and store the parts of every segment.

    Parameters
    ----------
    walk : Walk
    node : Reduce
    inputs : sequence of Place or None
        The operands; None for the positions of the elements.
    evaluate : callable
        Computes the values that are reduced from parts of the inputs.
    results : list of ndarray
        For each value, an array of the shape of `Walk.output`.
    """
    for runs in walk.runs():
        steps = runs.chunks * math.prod((runs.indices.stop - runs.indices.start, *walk.outer[1:]))
        shape = (*walk.slow_kept, runs.length, walk.fast)
        for kept in slices(shape, max(1, BLOCK // (walk.lanes * min(steps, 8)))):
            values = _halved(walk, node.combine, _lanes(walk, node, inputs, evaluate, kept, runs))
            *slow, segments, fast = kept
            place = slice(runs.number + segments.start, runs.number + segments.stop)
            for result, value in zip(results, values, strict=True):
                result[(*slow, place, fast)] = value


class Part(NamedTuple):
    """Lanes that are reduced at once: some segments of some results.

    Attributes
    ----------
    whole, rest : tuple or None
        The shapes, strides and byte offsets of the views of whole chunks, and of the last one if it is shorter.
    lanes : tuple of int
        The shape of the lanes.
    tail : tuple
        The lanes of `rest`.
    key : tuple of slice
        Where the results lie in an array of the shape of `Walk.output`.
    """

    whole: tuple[Any, ...] | None
    rest: tuple[Any, ...] | None
    lanes: Ints
    tail: tuple[Any, ...]
    key: tuple[slice, ...]


def parts_of(walk: Walk, strides: Ints) -> Iterator[Part]:
    """Yield the parts of a reduction with one reduced axis, whose operand has some strides in bytes."""
    axis = walk.lane_axis
    for runs in walk.runs():
        shape = (*walk.slow_kept, runs.length, walk.fast)
        whole = runs.chunks if runs.length > 1 else min(runs.chunks, walk.extent // walk.lanes - runs.first)
        rest = walk.extent - (runs.first + whole) * walk.lanes if whole < runs.chunks else 0
        for kept in slices(shape, max(1, LANES_AT_ONCE // walk.lanes)):
            sizes = [part.stop - part.start for part in kept]
            sizes.insert(len(sizes) + 1 + axis, walk.lanes)
            *slow, segments, fast = kept
            yield Part(
                walk.geometry(strides, kept, runs.first, runs.chunks, whole, walk.lanes) if whole > 0 else None,
                walk.geometry(strides, kept, runs.first + whole, runs.chunks, 1, rest) if rest else None,
                tuple(sizes),
                (..., slice(0, rest), *(slice(None),) * (-1 - axis)),
                (*slow, slice(runs.number + segments.start, runs.number + segments.stop), fast),
            )


def reduce_views(walk: Walk, node: Reduce, parts: Iterable[Part], place: Place, result: Array) -> None:
    """Reduce the elements of one operand without a copy, if there is one reduced axis and one value.

    ``ufunc.reduce`` along the chunks widens each row of lanes and combines it with those before.
    """
    ufunc, dtype = node.combine.whole, node.dtypes[0]
    assert ufunc is not None
    for part in parts:
        if part.whole is not None:
            shape, strides, offset = part.whole
            view = np.ndarray(shape, place.dtype, place.memory, place.offset + offset, strides)
            lanes = ufunc.reduce(view, axis=0, dtype=dtype, initial=node.identities[0])
        else:
            lanes = np.full(part.lanes, node.identities[0], dtype)
        if part.rest is not None:
            shape, strides, offset = part.rest
            tail = np.ndarray(shape, place.dtype, place.memory, place.offset + offset, strides)
            some = lanes[part.tail]
            ufunc(some, tail[0], out=some)
        for low, high in _halves(lanes, walk):
            ufunc(low, high, out=low)
        result[part.key] = lanes.swapaxes(-1, walk.lane_axis)[..., 0]


class Lanes:
    """Memory for the lanes of a part, with the views of it that a reduction needs. It serves one call at a time.

    Attributes
    ----------
    all, rest : ndarray
        The lanes, and those of the last chunk if it is shorter. The others hold the identity if there is no whole
        chunk, and nothing overwrites them.
    halves : list of tuple of ndarray
        The lower and the upper half, of all lanes and then of each lower half.
    result : ndarray
        The first lanes.
    """

    __slots__ = ("all", "halves", "rest", "result")

    def __init__(self, part: Part, walk: Walk, node: Reduce) -> None:
        self.all = np.full(part.lanes, node.identities[0], node.dtypes[0])
        self.rest = self.all[part.tail]
        self.halves = list(_halves(self.all, walk))
        self.result = self.all.swapaxes(-1, walk.lane_axis)[..., 0]


_KEEPERS: deque[list[Lanes]] = deque()


def _will_keep(spare: list[Lanes]) -> None:
    """Note that a list will keep memory. The list that was noted first among many gives its memory up."""
    _KEEPERS.append(spare)
    if len(_KEEPERS) > KEPT_LISTS:
        _KEEPERS.popleft().clear()


def in_lanes(walk: Walk, node: Reduce, part: Part) -> Callable[..., None]:
    """Return ``run(finish, views, *further)``, which calls ``finish(results, *further)``.

    As `reduce_views`, with memory that is kept between calls: it is popped, so that threads do not share it.
    """
    ufunc, dtype = node.combine.whole, node.dtypes[0]
    assert ufunc is not None
    reduce: Any = ufunc.reduce
    identity = node.identities[0]
    has_whole, has_rest = part.whole is not None, part.rest is not None
    spare: list[Lanes] = []

    def run(finish: Callable[..., None], views: Sequence[Array], *further: Any) -> None:
        try:
            lanes = spare.pop()
        except IndexError:
            lanes = Lanes(part, walk, node)
            _will_keep(spare)
        if has_whole:
            reduce(views[0], 0, dtype, lanes.all, False, identity)  # NumPy would begin with 0.0, and lose -0.0
            if has_rest:
                ufunc(lanes.rest, views[1][0], lanes.rest)
        else:
            lanes.rest[...] = views[0][0]
        for low, high in lanes.halves:
            ufunc(low, high, low)
        finish(lanes.result, *further)
        spare.append(lanes)

    return run


def _halves(lanes: Array, walk: Walk) -> Iterator[tuple[Array, Array]]:
    """Yield the lower and the upper half of the lanes, and then of each lower half, until one is left.

    If neighbours are combined, a half has every second lane.
    """
    along = lanes.swapaxes(-1, walk.lane_axis)
    while (count := along.shape[-1] // 2) > 0:
        if walk.neighbours:
            along, high = along[..., ::2], along[..., 1::2]
        else:
            along, high = along[..., :count], along[..., count : 2 * count]
        yield along, high


def slices(shape: Ints, elements: int) -> Iterator[tuple[slice, ...]]:
    """Yield parts of a shape in C order, each of about a number of elements.

    >>> list(slices((2, 3), 2))
    [(slice(0, 1, None), slice(0, 2, None)), (slice(0, 1, None), slice(2, 3, None)), \
(slice(1, 2, None), slice(0, 2, None)), (slice(1, 2, None), slice(2, 3, None))]
    """
    inner, axis = 1, len(shape) - 1
    while axis > 0 and inner * shape[axis] <= elements:
        inner *= shape[axis]
        axis -= 1
    step = max(1, elements // inner)
    rest = [slice(0, size) for size in shape[axis + 1 :]]
    for outer in np.ndindex(shape[:axis]):
        for low in range(0, shape[axis], step):
            yield (*[slice(i, i + 1) for i in outer], slice(low, min(low + step, shape[axis])), *rest)


def _lanes(walk: Walk, node: Reduce, inputs: Places, evaluate: Evaluate, kept: tuple[slice, ...], runs: Runs) -> Arrays:
    """Return the lanes of some segments and results, block after block of steps."""
    *slow, segments, fast = kept
    found = node.start
    width = math.prod([part.stop - part.start for part in kept])
    outer = (runs.indices.stop - runs.indices.start, *walk.outer[1:]) if walk.outer else ()
    for *at, chunks in slices((*outer, runs.chunks), max(1, BLOCK // (walk.lanes * width))):
        if at:
            at[0] = slice(runs.indices.start + at[0].start, runs.indices.start + at[0].stop)
        values = _block(walk, node, inputs, evaluate, (*slow, *at, segments, fast), runs, chunks)
        if found is not None:
            for value, first in zip(values, node.combine.pair(found, [value[0] for value in values]), strict=True):
                value[0] = first
        found = node.combine.rows(values)
    assert found is not None
    return found


def _block(
    walk: Walk,
    node: Reduce,
    inputs: Places,
    evaluate: Evaluate,
    key: tuple[slice, ...],
    runs: Runs,
    chunks: slice,
) -> Arrays:
    """Return the values of some steps in new memory in C order, with the steps as one axis.

    The last chunk may have fewer elements than lanes: the identity stands for the others.
    """
    low, high = runs.first + chunks.start, runs.first + chunks.stop
    whole = max(low, min(high, walk.extent // walk.lanes)) if runs.length == 1 else high
    pieces = [(low, whole - low, walk.lanes)] if whole > low else []
    if high > whole:
        pieces.append((whole, 1, walk.extent - whole * walk.lanes))
    made = [
        evaluate([walk.view(place, key, first, runs.chunks, count, size) for place in inputs])
        for first, count, size in pieces
    ]
    outer = len(walk.outer)
    if len(pieces) > 1 or pieces[0][2] < walk.lanes:
        made = [_padded(walk, node, pieces, made, high - low)]
    return [value.reshape((math.prod(value.shape[: outer + 1]), *value.shape[outer + 1 :])) for value in made[0]]


def _padded(walk: Walk, node: Reduce, pieces: list[tuple[int, int, int]], made: list[Arrays], chunks: int) -> Arrays:
    """Join the values of whole chunks and of the last one."""
    outer, axis = len(walk.outer), walk.lane_axis
    found: Arrays = []
    for position, (identity, dtype) in enumerate(zip(node.identities, node.dtypes, strict=True)):
        shape = list(made[0][position].shape)
        shape[outer], shape[axis] = chunks, walk.lanes
        joined = np.full(shape, identity, dtype)
        first = 0
        for (_, count, size), values in zip(pieces, made, strict=True):
            place: list[slice] = [slice(None)] * len(shape)
            place[outer], place[axis] = slice(first, first + count), slice(0, size)
            joined[tuple(place)] = values[position]
            first += count
        found.append(joined)
    return found


def _halved(walk: Walk, combine: Combine, values: Arrays) -> Arrays:
    """Combine the halves of the lanes until one is left."""
    pairs = [list(_halves(value, walk)) for value in values]
    for each in zip(*pairs, strict=True):
        found = combine.pair([low for low, _ in each], [high for _, high in each])
        for (low, _), new in zip(each, found, strict=True):
            low[...] = new
    return [value.swapaxes(-1, walk.lane_axis)[..., 0] for value in values]
