"""Expressions with a scan, executed by NumPy in the order that `tilearray.geometry.scan` lays down.

The scanned axis is read in blocks of chunks. A block is new memory with the axes: lanes of a chunk, chunks, kept axes.
So each step combines whole rows of memory. Where any order will do (integers, extremes, truth values, "any"), a chunk
is one element, and ``ufunc.accumulate`` does the work.

The time of a scan of few elements is that of the calls to NumPy. `ShortScan` keeps memory and views for them, and makes
one call for each step of the order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tilearray_host import reduction
from tilearray_host.casts import dtype_named
from tilearray_host.float_errors import quiet, quietly
from tilearray_host.memory import allocate
from tilearray_host.reduction_kernel import Part, needed, slots_of, steps_of
from tilearray_host.scratch import give_back, take

Array = np.ndarray[Any, np.dtype[Any]]
Launch = Callable[..., None]
Ints = tuple[int, ...]
Empty = Callable[[Ints, np.dtype[Any]], Array]
"""What makes memory of a shape and dtype."""
BLOCK = 2**16
"""The elements of a block: its temporaries stay in a processor's cache."""
AT_ONCE = 2**20
"""The bytes of whole blocks that are scanned at once: longer rows take less time than a nearer cache saves."""
STEPS = 16
"""The least elements along the scanned axis of a block, if there are as many."""
WIDE = 64
"""The elements of a row from which one call for each row is faster than ``ufunc.accumulate`` across rows."""
GAP = 64
"""The bytes between the lanes of a result. Lanes that are a power of two of bytes apart share few lines of a cache, and
to write them to rows of memory takes five times as long."""
SHORT = 2**13
"""The most elements of a short scan."""
SHORT_WIDE = 8
"""The elements of a row from which the rows of a short scan are whole in memory."""


class Order(NamedTuple):
    """The elements of a chunk and of a segment, and the segments of a block."""

    lanes: int
    segment: int
    members: int


class ScanKernel:
    """An expression with a scan, with its functions looked up."""

    def __init__(self, expression: Any) -> None:
        kinds = [("array", name) for name in expression.output_dtypes] + list(expression.inputs)
        self.operands = [(kind, dtype_named(name)) for kind, name in kinds]
        self.steps = steps_of(expression)
        node = next(place for place, step in enumerate(self.steps) if isinstance(step, reduction.Reduce))
        (self.value,) = expression.nodes[node][2]
        (self.store,) = expression.outputs
        self.before = needed(self.steps, (self.value,))
        self.after = range(node + 1, len(self.steps))
        self.scan = _Scan(self.steps[node])
        self.whole: Callable[[Array, Array], None] | None = None
        if _is_at_once(expression, self.value, self.store, self.scan):
            self.whole = self.scan.at_once if self.operands[0][1].kind in "iu" else quiet(self.scan.at_once)

    def bind(self, loop: Any) -> Launch:
        """Return the launch of this kernel over a loop: a function of the operands' memory."""
        shape = _scanned_first(loop.shape)
        slots = [
            (dtype, shift, _scanned_first(strides or ())) for dtype, shift, strides in slots_of(self.operands, loop)
        ]
        order = Order(loop.lanes, loop.segments.chunks * loop.lanes, loop.members)
        if self.scan.in_any_order:
            order = Order(1, loop.shape[-1], 1)
        along = self.scan.in_any_order and loop.case == "scan_rows"
        short = self._short(loop, order)

        def launch(stream: Any, *operands: Any) -> None:
            pairs = zip(slots, zip(*[iter(operands)] * 2, strict=True), strict=True)
            arrays = [
                np.ndarray(shape, dtype, buffer.memory, offset + shift, strides)
                for (dtype, shift, strides), (buffer, offset) in pairs
            ]
            if self.whole is not None:
                self.whole(arrays[1], arrays[0])
            elif short is not None:
                quietly(self._run_short, short, *arrays)
            else:
                quietly(self._run, order, along, *arrays)

        return launch

    def bind_call(self, loop: Any, rule: Any, signature: Any, gaps: Any) -> Launch:
        """Return the call of this kernel over a loop: a function of a stream and an array that returns a new array."""
        del rule, gaps
        launch = self.bind(loop)

        def call(stream: Any, x: Any) -> Any:
            buffer = allocate(signature.nbytes, stream)
            launch(stream, buffer, 0, x._buffer, x._offset)
            return x.__class__._make(buffer, 0, signature)

        return call

    def _short(self, loop: Any, order: Order) -> tuple[Any, ...] | None:
        """Return what `short_scans` takes if few elements are scanned in one segment, else None."""
        *kept, extent = loop.shape
        if not self.scan.is_ufunc or extent > order.segment or math.prod(loop.shape) > SHORT:
            return None
        return extent, tuple(kept), order.lanes, self.scan.dtype

    def _run_short(self, which: tuple[Any, ...], out: Array, x: Array) -> None:
        """Scan the first axis, a few elements in one segment."""
        spare = short_scans(*which)
        try:
            short = spare.pop()  # no other thread has it until it comes back
        except IndexError:
            short = ShortScan(*which)
        values = self._values(x, short.values, np.empty)
        self.scan.short(short)
        self._store(out, values, short.values, np.empty)
        spare.append(short)

    def _run(self, order: Order, along: bool, out: Array, x: Array) -> None:
        """Scan the first axis, segment after segment, for some of the other axes at a time.

        If the order has no influence and `along`, the scanned axis is the last one of a block in memory, as of `x`.
        """
        length, *kept = x.shape
        lanes, segment, members = order
        most = AT_ONCE // self.scan.dtype.itemsize
        for part in reduction.slices(tuple(kept), max(1, BLOCK // max(lanes, min(length, STEPS)))):
            at_once = most // (segment * members * math.prod([each.stop - each.start for each in part]))
            block: Array | None = None  # what the blocks before are combined to
            member: Array | None = None  # the same of the segments before in the block
            first = number = 0  # the first element that is not scanned, and its segment
            while first < length:
                whole = min(at_once, (length - first) // (segment * members))
                if at_once and not whole and members > 1:
                    self._last_block(order, out[(slice(first, None), *part)], x[(slice(first, None), *part)], block)
                    break
                count = whole * members if number % members == 0 and whole else 1
                place = (slice(first, first + count * segment), *part)
                if count > 1:
                    target, source = (_segments(array[place], order) for array in (out, x))
                    block = self._at_once(target, source, block)
                else:
                    last = self._segment(lanes, along, out[place], x[place], (member, block))
                    member = self.scan.after(member, last)
                first, number = first + count * segment, number + count
                if count == 1 and number % members == 0:
                    assert member is not None
                    block, member = self.scan.after(block, member), None

    def _at_once(self, out: Array, x: Array, block: Array | None) -> Array:
        """Scan some whole blocks, which are the fourth axis; return what the blocks are combined to up to the last."""
        dtype = self.scan.dtype
        nbytes = math.prod(x.shape) * dtype.itemsize
        piece = take(2 * nbytes + len(x) * GAP)
        found = _in_segments(x.shape, dtype, piece)
        values = self._values(x, found, _in_segments)
        totals = self.scan.joined(found, 2, self.scan.chunks(found, None), None)[-1]
        result = _in_segments(x.shape, dtype, piece[nbytes:], GAP)
        totals = self.scan.joined(found, 3, totals.copy(), block, result)
        self._store(out, values, result, _in_segments)
        give_back(piece)
        return totals[-1]

    def _last_block(self, order: Order, out: Array, x: Array, block: Array | None) -> None:
        """Scan the last block, which is shorter, with elements after it that have no influence."""
        length, *kept = x.shape
        members = -(-length // order.segment)
        values = np.zeros((members * order.segment, *kept), x.dtype)
        values[:length] = x
        found = np.empty(values.shape, out.dtype)
        order = order._replace(members=members)
        self._at_once(_segments(found, order), _segments(values, order), block)
        out[...] = found[:length]

    def _segment(self, lanes: int, along: bool, out: Array, x: Array, before: tuple[Array | None, ...]) -> Array:
        """Scan a segment, some chunks at a time; return its total. `before` is what its elements are combined with."""
        step = max(1, BLOCK // math.prod(x.shape[1:]) // lanes) * lanes
        last = None
        for first in range(0, len(x), step):
            block = slice(first, first + step)
            for target, source in zip(_chunks(out[block], lanes), _chunks(x[block], lanes), strict=True):
                last = self._chunks(target, source, last, before, along)
        assert last is not None
        return last

    def _chunks(self, out: Array, x: Array, last: Array | None, before: tuple[Array | None, ...], along: bool) -> Array:
        """Scan some chunks, and return what their last elements became in the segment."""
        empty: Empty = _along if along else np.empty
        found = empty(x.shape, self.scan.dtype)
        values = self._values(x, found, empty)
        last = self.scan.chunks(found, last)
        for total in before:
            if total is not None:
                self.scan.into(total, found)
        self._store(out, values, found, empty)
        return last

    def _values(self, x: Array, found: Array, empty: Empty) -> dict[int, Array]:
        """Compute the nodes before the scan, and write the values to scan to `found`; return what the nodes give."""
        values: dict[int, Array] = {}
        for place in self.before:
            if isinstance(self.steps[place], int):
                values[place] = x
            elif place == self.value:
                self._into(place, values, found)
            else:
                values[place] = self._computed(place, values, x.shape, empty)
        if self.value in values:
            found[...] = values[self.value]
        return values

    def _store(self, out: Array, values: dict[int, Array], found: Array, empty: Empty) -> None:
        """Compute the nodes after the scan, and store the result."""
        for place in self.after:
            is_part = isinstance(self.steps[place], Part)
            if not is_part and place == self.store:
                self._into(place, values, out)
                return
            values[place] = found if is_part else self._computed(place, values, found.shape, empty)
        out[...] = values[self.store]

    def _computed(self, place: int, values: dict[int, Array], shape: Ints, empty: Empty) -> Array:
        out = empty(shape, self.steps[place][1])
        self._into(place, values, out)
        return out

    def _into(self, place: int, values: dict[int, Array], out: Array) -> None:
        function, _, arguments = self.steps[place]
        function(*[values[argument] for argument in arguments], out=out)


def _scanned_first(values: Ints) -> Ints:
    """Return the values of the axes of a loop with that of the scanned axis, the last one, first."""
    return (*values[-1:], *values[:-1])


def _is_at_once(expression: Any, value: int, store: int, scan: _Scan) -> bool:
    """Whether one call scans numbers in any order as they are, or cast to the dtype of the result.

    They are integers, bools that become integers, or floats of the dtype of the result.
    """
    nodes = expression.nodes
    source = nodes[value][1] if nodes[value][0] == "cast" else value
    if nodes[source][0] != "input" or nodes[store][0] != "part" or not scan.in_any_order:
        return False
    given, found = [dtype_named(name).kind for name in (expression.inputs[0][1], expression.output_dtypes[0])]
    return (given in "biu" and found in "iu") or (source == value and found in "fc")


def _along(shape: Ints, dtype: np.dtype[Any]) -> Array:
    """Return memory of a block with the axis of chunks as its last one."""
    return np.moveaxis(np.empty((shape[0], *shape[2:], shape[1]), dtype), -1, 1)


def _in_segments(shape: Ints, dtype: np.dtype[Any], memory: Array | None = None, gap: int = 0) -> Array:
    """Return memory of whole blocks, whose chunks follow each other in it as in the operand, new or part of another.

    After each lane is a gap of some bytes. Kept axes are slower than the chunks of an operand that is scanned along its
    rows, and faster than chunks of one element.
    """
    kept = range(4, len(shape))
    strides, step = [0] * len(shape), dtype.itemsize
    for axis in (1, 2, 3, *reversed(kept)) if shape[0] > 1 else (*reversed(kept), 1, 2, 3):
        strides[axis] = step
        step *= shape[axis]
    strides[0] = step + gap
    return np.ndarray(shape, dtype, memory, 0, strides)


def _segments(x: Array, order: Order) -> Array:
    """Return the view of whole blocks of the first axis with the axes: lanes, chunks, segments, blocks, the others."""
    length, *kept = x.shape
    lanes, segment, members = order
    parts = x.reshape(length // (segment * members), members, segment // lanes, lanes, *kept)
    return parts.swapaxes(0, 3).swapaxes(1, 2)


def _chunks(x: Array, lanes: int) -> Iterator[Array]:
    """Yield the whole chunks of the first axis, and then the last one if it is shorter: lanes first, then chunks."""
    length, *kept = x.shape
    whole = length // lanes
    for first, count, size in ((0, whole, lanes), (whole * lanes, 1, length - whole * lanes)):
        if count and size:
            yield x[first : first + count * size].reshape(count, size, *kept).swapaxes(0, 1)


class ShortScan:
    """Memory for a scan of few elements in one segment, and its views.

    The memory holds whole chunks. What the last elements of it are has no influence on those before.

    Attributes
    ----------
    values : ndarray
        The elements, with the scanned axis first.
    halves : list of pair of ndarray
        The operands of each step: the last lane of each lower half, and the lanes of each upper half.
    totals : ndarray
        The last lane of each chunk.
    before, others : ndarray
        The last lanes of all chunks but the last one, and the other lanes of the chunks after them.
    """

    def __init__(self, extent: int, kept: Ints, lanes: int, dtype: np.dtype[Any]) -> None:
        count = -(-extent // lanes)
        is_wide = math.prod(kept) >= SHORT_WIDE
        memory = np.zeros((count * lanes, *kept) if is_wide else (*kept, count * lanes), dtype)
        memory = memory if is_wide else np.moveaxis(memory, -1, 0)
        self.values = memory[:extent]
        self.halves: list[tuple[Array, Array]] = []
        for half in [1 << level for level in range(lanes.bit_length() - 1)]:
            pairs = memory.reshape(-1, 2, half, *kept)
            if half == 2:  # two long loops of NumPy instead of many short ones
                self.halves += [(pairs[:, 0, 1], pairs[:, 1, lane]) for lane in range(2)]
            else:
                self.halves.append((pairs[:, 0, -1:], pairs[:, 1]))
        chunks = memory.reshape(count, lanes, *kept)
        self.totals = chunks[:, -1]
        self.before, self.others = chunks[:-1, -1:], chunks[1:, :-1]


@functools.lru_cache(64)
def short_scans(extent: int, kept: Ints, lanes: int, dtype: np.dtype[Any]) -> list[ShortScan]:
    """Return the short scans of some sizes which no thread uses now."""
    del extent, kept, lanes, dtype
    return []


class _Scan:
    """How values are combined.

    Attributes
    ----------
    in_any_order : bool
        Whether every order gives the same, or may be taken.
    is_extreme : bool
        Whether the largest or smallest value is taken.
    is_ufunc : bool
        Whether a ufunc alone combines two values.
    """

    def __init__(self, node: reduction.Reduce) -> None:
        (dtype,), self._combine = node.dtypes, node.combine
        ufunc = node.combine.whole
        assert ufunc is not None
        self._ufunc = ufunc
        self.in_any_order = dtype.kind in node.combine.in_any_order
        self.is_extreme = ufunc in reduction.EXTREMES
        self._by_parts = dtype.kind == "c" and ufunc is np.multiply
        self.dtype, self.is_ufunc = dtype, not (self._by_parts or self.is_extreme)
        self._identity = self._combine.identity(dtype) if self.is_ufunc else None

    def at_once(self, x: Array, out: Array) -> None:
        """Scan the first axis in any order."""
        if len(x) and x[0].size >= WIDE and x.dtype == out.dtype and x.strides[0] != x.itemsize:
            out[0] = x[0]
            for row in range(1, len(x)):
                self._ufunc(out[row - 1], x[row], out=out[row])
        else:
            self._ufunc.accumulate(x, axis=0, dtype=out.dtype, out=out)
        self._sign(out, x)

    def chunks(self, x: Array, last: Array | None) -> Array:
        """Scan lanes and chunks, the first two axes, in place; return the last element of the last chunk."""
        self._lanes(x)
        if len(x) > 1:
            x[-1] = self.joined(x[:-1], 1, x[-1].copy(), last)
        else:
            self._run(x[0], last)
        return x[-1, -1].copy()

    def short(self, given: ShortScan) -> None:
        """Scan a few elements in place."""
        ufunc = self._ufunc
        for x, y in given.halves:
            ufunc(x, y, y)
        if len(given.totals) > 1:
            self._run(given.totals, None)
            if given.others.size:
                ufunc(given.before, given.others, given.others)

    def joined(self, x: Array, axis: int, totals: Array, last: Array | None, out: Array | None = None) -> Array:
        """Combine each part along an axis with all parts before it, in place or to `out`; x may change then.

        `totals` are copies of the last elements of the parts, along its first axis, and `last` is that of what comes
        before the first part. Return what the totals become.
        """
        run, ahead = totals, (slice(None),) * axis
        self._run(run, last)
        if self._identity is not None:
            repeated = 1 if len(x) > 1 else axis  # axes that `before` lacks: one long row adds faster than many
            before = np.empty_like(x[(0,) * repeated])  # in the order of memory of x
            before[(*ahead[repeated:], 0)] = self._identity if last is None else last
            before[(*ahead[repeated:], slice(1, None))] = run[:-1]
            self._ufunc(before, x, out=x if out is None else out)
            return run
        if last is not None:
            self.into(last, x[(*ahead, 0)])
        self.into(run[:-1], x[(*ahead, slice(1, None))])
        if out is not None:
            out[...] = x
        return run

    def _lanes(self, x: Array) -> None:
        """Combine halves of 1, 2, 4, ... lanes: the upper one with the last lane of the lower one."""
        count, half = len(x), 1
        while half < count:
            whole = count // (2 * half)
            pairs = x[: whole * 2 * half].reshape(whole, 2, half, *x.shape[1:])
            self.into(pairs[:, 0, -1:], pairs[:, 1])
            middle = whole * 2 * half + half
            if middle < count:
                self.into(x[middle - 1 : middle], x[middle:])
            half *= 2

    def after(self, x: Array | None, y: Array) -> Array:
        """Combine x, if there is one, with y; return the result, which is stored in y."""
        if x is not None:
            self.into(x, y)
        return y

    def into(self, x: Array, y: Array) -> None:
        """Combine x with y, and store the result in y."""
        if self._by_parts or self.is_extreme:
            (y[...],) = self._combine.pair([x], [y])
        else:
            self._ufunc(x, y, out=y)

    def _run(self, x: Array, last: Array | None) -> None:
        """Combine the rows of x one after the other, in place, after what comes before them."""
        if last is not None:
            self.into(last, x[0])
        if self._by_parts:
            for row in range(1, len(x)):
                self.into(x[row - 1], x[row])
            return
        values = x.copy() if self.is_extreme else x
        if x[0].size < WIDE or x.strides[0] == x.itemsize:
            self._ufunc.accumulate(x, axis=0, dtype=x.dtype, out=x)
        else:
            for row in range(1, len(x)):
                self._ufunc(x[row - 1], x[row], out=x[row])
        self._sign(x, values)

    def _sign(self, found: Array, values: Array) -> None:
        """Give zeros among extremes of floats their sign."""
        if self.is_extreme and found.dtype.kind == "f" and not found.all():
            found[...] = reduction.signed(self._ufunc, found, values, "accumulate", axis=0)
