"""Programs: what was traced, as launches of kernels over the memory of a call.

All results of one shape are one launch, whose expression is spliced from the recorded ones. Only what a result needs is
in it, and each common subexpression once. A view of a computed array becomes other strides of the arrays in memory, so
a stencil reads its input several times and stores no intermediate.

A reduction is a launch of its own, with all that it reads computed before it. Its result is in memory, and later
launches load it.

A launch may read and write one array in place only if each element depends on itself alone. Otherwise, as in
``x[1:] += x[:-1]``, it writes new memory, which is copied to the array after all launches.

A value that several walks visit, as the inner one of two stencils, is computed once for each walk. A GPU waits for
memory meanwhile, but a processor does not. So on the host a launch of its own stores such a value.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any, cast

import numpy as np

from tilearray.arrays.fusion.containers import members, rebuilt
from tilearray.arrays.fusion.launches import (
    Fixed,
    Launch,
    Leaf,
    Run,
    Spliced,
    Store,
    Take,
    Whole,
    Wholes,
    Work,
    clash,
    source_of_number,
    taker,
    written_out,
)
from tilearray.arrays.fusion.nodes import Nodes
from tilearray.arrays.fusion.numbers import TracedNumber
from tilearray.arrays.fusion.splitting import NotHeldError, Splitter, Unit, store_of_rows
from tilearray.arrays.fusion.tracing import Trace, Traced, buffer_of
from tilearray.arrays.fusion.values import Load, Read, Use, Value, inner_walk
from tilearray.dtypes import as_dtype
from tilearray.engine.backend import AnyLoop
from tilearray.engine.context import RECORDINGS
from tilearray.engine.devices import Device
from tilearray.engine.expression import Expression
from tilearray.engine.plan import kernel_of
from tilearray.engine.reducing import Reducing, ReductionPart, held_loop, joined_parts, walked_parts
from tilearray.engine.signature import ArrayBase, Signature, before_access, empty_array, signature_of
from tilearray.engine.watch import WATCH
from tilearray.errors import WriteError
from tilearray.geometry.layout import Layout
from tilearray.geometry.loop import make_loop
from tilearray.geometry.walk import Walk, whole
from tilearray.ops.execute import store as store_to

Ints = tuple[int, ...]
Result = Callable[[Sequence[Any], list[ArrayBase]], Any]
"""Makes a result from the arguments of a call and all arrays in memory."""


class Program:
    """What a fused function does with arguments of these signatures.

    Attributes
    ----------
    launches : list of Launch
    written : set of int
        The sources that it writes.
    outside : list of ArrayBase
        The sources that are not arguments, in the places after these.
    direct : callable
        `run`, without a frame of its own if there is nothing to check.
    """

    def __init__(
        self, trace: Trace, results: Any, signatures: Sequence[Signature], *, wide: bool, contract: bool = False
    ) -> None:
        self._device: Device = trace.device.real
        self._wide = wide
        self._contract = contract
        self._signatures = list(signatures)
        self.outside = [real for _, real in trace.sources if real is not None]
        self._sources = len(trace.sources)
        self._apart_targets = set[tuple[int, int]]()
        self._own = set[int]()
        spliced = self._all_spliced(trace, results)
        while clashing := self._clashing(spliced):
            self._apart_targets |= clashing
            spliced = self._all_spliced(trace, results)
        self.launches = [launch for each in spliced for launch in self._launches(each)]
        finish = self.finish if self._copies else self._result
        self._run = written_out(self.launches, self.outside, self._sources, self._new, finish)
        self.direct: Run = self.run if self.written else self._run

    def run(self, stream: Any, arguments: Sequence[Any], arrays: Sequence[ArrayBase]) -> Any:
        """Run over the memory of `arrays`, and return the results. `arguments` also has the numbers of the call."""
        if self.written:
            self.check_targets(arrays)
        return self._run(stream, arguments, arrays)

    def memory(self, stream: Any, arrays: Sequence[ArrayBase]) -> list[ArrayBase]:
        """Return the arrays at all places: those given, those from outside of the function, and new ones."""
        new = [empty_array(ArrayBase._public, signature, stream) for signature in self._new]
        return [*arrays, *self.outside, *new]

    def finish(self, arguments: Sequence[Any], memory: list[ArrayBase]) -> Any:
        """Copy to the arguments what the launches could not write there, and return the results."""
        for target, layout, place in self._copies:
            store_to(_view(memory[target.place], target.offset, layout, target.dtype), memory[place])
        return self._result(arguments, memory)

    def check_targets(self, arrays: Sequence[ArrayBase]) -> None:
        """Raise WriteError if an argument that is written is read-only."""
        for place in self.written:
            if RECORDINGS:
                before_access(arrays[place])
            if arrays[place]._buffer.readonly:
                raise WriteError("fuse: an argument that the function writes is read-only; write x.copy() instead")

    # ------------------------------------------------------------------ results and targets

    def _all_spliced(self, trace: Trace, results: Any) -> list[Spliced]:
        """Return all launches. The targets in `_apart_targets` are written after them, from new memory."""
        self._new: list[Signature] = []
        self._copies: list[tuple[Leaf, Layout, int]] = []
        self._stores: dict[Ints, list[Store]] = {}
        self._kept: dict[tuple[Value, Walk, Ints], int] = {}
        self._apart: dict[Value, Leaf] = {}
        self._returned: list[Value] = []
        self._joined = set[int]()
        self._result = self._described(trace, results)
        self.written = self._add_targets(trace)
        found = self._all_apart()
        return found + [self._spliced(shape, stores) for shape, stores in self._stores.items() if stores]

    def _described(self, trace: Trace, results: Any) -> Result:
        """Return the function that makes the results of a call."""
        parts = members(results)
        if parts is not None:
            makers = [self._described(trace, part) for part in parts]
            if type(results) is tuple and makers and all(isinstance(make, Whole) for make in makers):
                return Wholes(cast("list[Whole]", makers))
            return lambda arguments, memory: rebuilt(results, [make(arguments, memory) for make in makers])
        if isinstance(results, Traced):
            return self._made(trace, results)
        if isinstance(results, TracedNumber):
            compute = results.compute
            return lambda arguments, memory: compute(arguments)
        return lambda arguments, memory: results

    def _made(self, trace: Trace, x: Traced) -> Result:
        """Return the function that makes one array: an argument, a view of it, or a new array."""
        place, signature = buffer_of(x).place, x._signature
        layout, dtype = signature.layout, signature.dtype
        if place >= 0:
            source = trace.sources[place][0]
            if source._offset == x._offset and source._signature is signature:
                return Whole(place)
            shift = x._offset - source._offset
            return lambda arguments, memory: _view(memory[place], shift, layout, dtype)
        read = trace.read(x, "return")
        assert isinstance(read, Use)  # an array that the function makes is written by it
        if read.value.parts:
            self._returned.append(read.value)
            joined = self._home(read.value).place
            return lambda arguments, memory: _view(memory[joined], x._offset, layout, dtype)
        is_whole = signature.nbytes == x._buffer.nbytes and layout.strides == layout.dense().strides
        return Whole(self._kept_in(read.value, read.walk, layout if is_whole else layout.dense(), dtype))

    def _kept_in(self, value: Value, walk: Walk, layout: Layout, dtype: np.dtype) -> int:
        """Store a value in a new array, once, and return the place of the array."""
        found = self._kept.get((value, walk, layout.shape))
        is_all = layout.shape == value.shape and walk == whole(value.shape)
        if found is None and value.reducing is not None and is_all:
            self._returned.append(value)
            return self._kept.setdefault((value, walk, layout.shape), self._home(value).place)
        if found is None:
            found = self._kept[value, walk, layout.shape] = self._allocated(layout, dtype)
            target = Leaf(found, 0, layout.strides, dtype)
            self._stores.setdefault(layout.shape, []).append(Store(value, walk, target))
        return found

    def _allocated(self, layout: Layout, dtype: np.dtype) -> int:
        self._new.append(signature_of(layout, dtype, self._device))
        return self._sources + len(self._new) - 1

    def _home(self, value: Value) -> Leaf:
        """Return the new array in which a reduction, or an array that is joined, is stored."""
        found = self._apart.get(value)
        if found is None:
            place = self._allocated(value.layout, value.dtype)
            found = self._apart[value] = Leaf(place, 0, value.layout.strides, value.dtype)
        return found

    def _add_targets(self, trace: Trace) -> set[int]:
        """Store the values that arguments have at the end, and return the places of these arguments."""
        found: set[int] = set()
        for place, (source, _) in enumerate(trace.sources):
            for written, value in buffer_of(source).writes:
                layout = written._signature.layout
                leaf = Leaf(place, written._offset - source._offset, layout.strides, written._signature.dtype)
                if (place, leaf.offset) in self._apart_targets:
                    new = layout.dense()
                    self._copies.append((leaf, layout, self._allocated(new, leaf.dtype)))
                    leaf = Leaf(self._copies[-1][-1], 0, new.strides, leaf.dtype)
                self._stores.setdefault(layout.shape, []).append(Store(value, whole(layout.shape), leaf))
                found.add(place)
        return found

    # ------------------------------------------------------------------ values that are stored apart

    def _values_apart(self) -> list[Value]:
        """Return the values that are stored apart, operands first: all reductions.

        On the host also the values that several walks visit, and those that a reduction and another launch need. A
        number for all elements is also stored there, since NumPy rounds some functions of an array and a number
        differently.

        Arrays that are joined are also stored apart if another value reads them, and else as other results are.
        """
        on_host = self._device.backend.on_host
        visits: dict[Value, set[tuple[Walk, Value | Ints]]] = {value: set() for value in self._returned}
        for shape, stores in self._stores.items():
            for value, walk, _ in stores:
                visits.setdefault(value, set()).add((walk, shape))
        waiting = [(-value.order, id(value), value) for value in visits]
        heapq.heapify(waiting)
        found: list[Value] = []
        while waiting:  # the last recorded value first: all that use a value come before it
            *_, value = heapq.heappop(waiting)
            mine = visits[value]
            if value.parts and not mine:
                self._store_parts(value, self._stores)
            elif value.parts or value.reducing is not None or (on_host and _is_stored_on_host(value, mine)):
                found.append(value)
                mine = {(whole(value.space), value)}
            for read in [read for read in value.operands if isinstance(read, Use)]:
                if read.value not in visits:
                    visits[read.value] = set()
                    heapq.heappush(waiting, (-read.value.order, id(read.value), read.value))
                if value.parts:
                    visits[read.value].add((read.walk, value if mine else read.shape))
                else:
                    visits[read.value].update([(inner_walk(read, value, walk), launch) for walk, launch in mine])
        return found[::-1]

    def _store_parts(self, value: Value, stores: dict[Ints, list[Store]]) -> None:
        """Add the stores of the parts of an array that is joined."""
        home = self._home(value)
        self._joined.add(home.place)
        for read, (first, strides) in zip(value.operands, value.parts, strict=True):
            assert isinstance(read, Use)
            target = home._replace(offset=first * value.dtype.itemsize, strides=strides)
            stores.setdefault(read.shape, []).append(Store(read.value, read.walk, target))

    def _all_apart(self) -> list[Spliced]:
        """Store all values apart, in the launches that `splitting` finds. It may add stores of other shapes to them."""
        splitter = Splitter(self._values_apart())
        families = splitter.families(self._stores) if self._device.backend.holds_rows else []
        found: list[Spliced] = []
        waiting = splitter.in_order(families, self._stores)
        while waiting:
            unit = waiting.pop(0)
            held = None
            if unit in families:
                held = self._walked(unit, waiting, splitter) or self._family(unit, splitter)
            if held is not None:
                found.append(held)
                continue
            found += self._in_parts(unit, splitter)
        return found

    def _in_parts(self, unit: Unit, splitter: Splitter) -> list[Spliced]:
        """Store the members of a unit that is not one launch: one by one, or in families that do not go back."""
        apart = splitter.taken_apart(unit, self._stores)
        if not unit.goes_back:
            return [each for one in apart for each in self._stored_apart(one.members[0])]
        found: list[Spliced] = []
        for level in splitter.levels(apart, self._stores):
            joined = self._family(level, splitter)
            found += self._in_parts(level, splitter) if joined is None else [joined]
        return found

    def _walked(self, unit: Unit, waiting: list[Unit], splitter: Splitter) -> Spliced | None:
        """Splice a family that goes over rows with one of columns, which no longer waits; None if none fits."""
        for columns in splitter.families_beside(unit, waiting):
            found = self._walked_with(unit, columns, splitter)
            if found is not None:
                waiting.remove(columns)
                return found
        return None

    def _walked_with(self, unit: Unit, columns: Unit, splitter: Splitter) -> Spliced | None:
        if not prod(unit.reducing.shape):
            return None
        both = Unit([*unit.members, *columns.members], unit.stores, beside=unit.beside)
        stores = self._stores_of(both, splitter)
        try:
            spliced = self._spliced(unit.reducing.shape, stores, frozenset(both.members), frozenset(columns.members))
        except NotHeldError:
            return None
        outputs, inputs = [target.strides for _, _, target in stores], [leaf.strides for leaf in spliced.leaves]
        rows, sums = _reductions_of(unit), _reductions_of(columns)
        parts = walked_parts(self._expression(spliced), rows, sums, outputs, inputs)
        return None if parts is None else spliced._replace(reducing=columns.reducing, parts=parts)

    def _stores_of(self, unit: Unit, splitter: Splitter) -> list[Store]:
        """Return all stores of a family: those that belong to it, and of its members that others need."""
        members = set(unit.members)
        used = splitter.used_outside(unit, self._stores) | (members & set(self._returned))
        kept = [store_of_rows(value, self._home(value)) for value in unit.members if value in used]
        return [*unit.stores, *kept, *unit.beside]

    def _family(self, unit: Unit, splitter: Splitter) -> Spliced | None:
        """Splice a family of reductions and its stores; None if they do not fit into one launch."""
        found = self._family_with(unit, splitter)
        if found is None and unit.beside:
            splitter.without_beside(unit, self._stores)
            found = self._family_with(unit, splitter)
        return found

    def _family_with(self, unit: Unit, splitter: Splitter) -> Spliced | None:
        reducing = unit.reducing
        if not prod(reducing.shape):
            return None
        stores = self._stores_of(unit, splitter)
        try:
            spliced = self._spliced(reducing.shape, stores, frozenset(unit.members))
        except NotHeldError:
            return None
        reductions = _reductions_of(unit)
        outputs, inputs = [target.strides for _, _, target in stores], [leaf.strides for leaf in spliced.leaves]
        if unit.goes_back:
            loop = held_loop(reductions, outputs, inputs, self._device.backend.most_members)
            return None if loop is None else spliced._replace(loop=loop)
        parts = joined_parts(self._expression(spliced), reductions, outputs, inputs)
        return None if parts is None else spliced._replace(reducing=reducing, parts=parts)

    def _stored_apart(self, value: Value) -> list[Spliced]:
        """Store a value in new memory, from which later launches load it."""
        if value.reducing is not None:
            return self._stored_reduction(value, value.reducing)
        if value.parts:
            stores: dict[Ints, list[Store]] = {}
            self._store_parts(value, stores)
            return [self._spliced(shape, each) for shape, each in stores.items()]
        if not value.is_number:
            return [self._stored_whole(value)]
        leaf = Leaf(self._allocated(Layout.of(()), value.dtype), 0, (), value.dtype)
        spliced = self._spliced((), [Store(value, Walk(whole(value.shape).start, ()), leaf)])
        self._apart[value] = leaf._replace(strides=(0,) * len(value.shape))
        return [spliced]

    def _stored_whole(self, value: Value) -> Spliced:
        """Store all elements of a value."""
        layout = value.layout.dense()
        leaf = Leaf(self._allocated(layout, value.dtype), 0, layout.strides, value.dtype)
        spliced = self._spliced(value.shape, [Store(value, whole(value.shape), leaf)])
        self._apart[value] = leaf
        return spliced

    def _stored_reduction(self, value: Value, reducing: Reducing) -> list[Spliced]:
        """Store a reduction. If its operands cannot be read in its order, copy them before."""
        copies: list[Spliced] = []
        spliced = self._reduced(value, reducing)
        parts = self._parts(spliced)
        if parts is None:
            copied = replace(value, operands=tuple([self._copied(read, reducing, copies) for read in value.operands]))
            self._apart[copied] = self._home(value)
            spliced = self._reduced(copied, reducing)
            parts = self._parts(spliced)
            assert parts is not None
        return [*copies, spliced._replace(parts=parts)]

    def _copied(self, read: Read, reducing: Reducing, copies: list[Spliced]) -> Read:
        """Return the copy of a computed operand of a reduction, and add the launch that makes it."""
        if not isinstance(read, Use):
            return read
        dtype = read.value.dtype
        first, strides = reducing.layout_of_copy(read.shape)
        leaf = Leaf(self._allocated(Layout.of(read.shape), dtype), first * dtype.itemsize, strides, dtype)
        copies.append(self._spliced(read.shape, [Store(read.value, read.walk, leaf)]))
        return Load(leaf.place, leaf.offset, read.shape, strides, dtype)

    def _reduced(self, value: Value, reducing: Reducing) -> Spliced:
        """Splice a reduction and all that it reads."""
        store = store_of_rows(value, self._home(value))
        return self._spliced(reducing.shape, [store], frozenset([value]))._replace(reducing=reducing)

    # ------------------------------------------------------------------ launches

    def _spliced(
        self,
        shape: Ints,
        stores: list[Store],
        inline: frozenset[Value] = frozenset(),
        carried: frozenset[Value] = frozenset(),
    ) -> Spliced:
        nodes = Nodes(self._apart, self._wide, inline, carried)
        found = [nodes.add(value, walk) for value, walk, _ in stores]
        return Spliced(shape, stores, nodes.splicer, found)

    def _clashing(self, launches: list[Spliced]) -> set[tuple[int, int]]:
        """Return the place and the offset of each target whose memory its launch or a later one reads."""
        return {
            (target.place, target.offset)
            for turn, each in enumerate(launches)
            for _, _, target in each.stores
            if target.place < self._sources
            and any(
                clash(target, each.shape, leaf, later.shape, later.splicer is each.splicer)
                for later in launches[turn:]
                for leaf in later.leaves
            )
        }

    def _launches(self, spliced: Spliced) -> list[Launch]:
        """Return the launches of an expression: none if there are no elements."""
        outputs = [target for _, _, target in spliced.stores]
        if not prod(spliced.shape):
            return []
        if spliced.reducing is not None:
            return self._launches_of_reduction(spliced)
        loop = spliced.loop or make_loop(spliced.shape, [leaf.strides for leaf in (*outputs, *spliced.leaves)])
        expression = self._expression(spliced)
        return [self._launch(expression, loop, outputs, spliced.splicer.keys)]

    def _launches_of_reduction(self, spliced: Spliced) -> list[Launch]:
        keys, written = spliced.splicer.keys, [target for _, _, target in spliced.stores]
        launches: list[Launch] = []
        scratch: list[tuple[str, Leaf]] = []
        for expression, loop, reads, writes, room in spliced.parts:
            states = expression.output_dtypes[: len(expression.output_dtypes) - len(writes)]
            between = [self._scratch(room, as_dtype(name)) for name in states]
            outputs = [*between, *[written[place] for place in writes]]
            launches.append(self._launch(expression, loop, outputs, [*scratch, *[keys[place] for place in reads]]))
            scratch = [("array", leaf) for leaf in between]
        return launches

    def _scratch(self, count: int, dtype: np.dtype) -> Leaf:
        layout = Layout.of((count,))
        return Leaf(self._allocated(layout, dtype), 0, layout.strides, dtype)

    def _parts(self, spliced: Spliced) -> list[ReductionPart] | None:
        """Return the launches of a reduction, or None if its operands cannot be read in its order."""
        assert spliced.reducing is not None
        if not prod(spliced.shape):
            return []
        expression = self._expression(spliced)
        strides = [leaf.strides for leaf in spliced.leaves]
        return spliced.reducing.parts(expression, whole=not self._device.backend.cuts(expression), inputs=strides)

    def _expression(self, spliced: Spliced) -> Expression:
        dtypes = [target.dtype for _, _, target in spliced.stores]
        return spliced.splicer.build(spliced.nodes, dtypes, contract=self._contract)

    def _launch(
        self, expression: Expression, loop: AnyLoop, outputs: Sequence[Leaf], inputs: Sequence[tuple[str, Any]]
    ) -> Launch:
        """Return a launch. Inputs are arrays, or the keys of numbers."""
        arrays = [*outputs, *[leaf for kind, leaf in inputs if kind == "array"]]
        aligned = tuple([self._aligned(leaf, shift) for leaf, shift in zip(arrays, loop.shifts, strict=True)])
        kernel = kernel_of(expression, loop, aligned, self._device)
        operands: list[tuple[int, int, Take | None]] = [(leaf.place, leaf.offset, None) for leaf in outputs]
        for kind, key in inputs:
            operands.append((key.place, key.offset, None) if kind == "array" else (0, 0, taker(key)))
        numbers = tuple([source_of_number(key) for kind, key in inputs if kind != "array"])
        work = Work(expression, loop, aligned, numbers)
        if WATCH.launch is None:
            making = self._making(kernel, loop, outputs, operands)
            if making is not None:
                return Launch(making[0], tuple(operands), work, making[1])
        launch = self._device.backend.bind(kernel, loop)
        if WATCH.launch is not None:
            launch = WATCH.launch(expression, loop, kernel, self._device, launch)
        return Launch(launch, tuple(operands), work)

    def _making(
        self, kernel: Any, loop: AnyLoop, outputs: Sequence[Leaf], operands: Sequence[tuple[int, int, Take | None]]
    ) -> tuple[Callable[..., Any], Ints] | None:
        """Return a launch that makes the new arrays which it writes first, and their places; None if it cannot."""
        writer = self._device.backend.call_writer
        if writer is None:
            return None
        own = self._own | self._joined
        new = [
            leaf.place >= self._sources and leaf.place not in own and not leaf.offset and not shift
            for leaf, shift in zip(outputs, loop.shifts, strict=False)
        ]
        signatures = [
            self._new[leaf.place - self._sources] if made else None for leaf, made in zip(outputs, new, strict=True)
        ]
        constants = {place: take.number for place, (*_, take) in enumerate(operands) if isinstance(take, Fixed)}
        launch = writer.bind_fused(kernel, loop, signatures, constants, ArrayBase._public)
        if launch is None:
            return None
        places = tuple([leaf.place for leaf, made in zip(outputs, new, strict=True) if made])
        self._own.update(places)
        return launch, places

    def _aligned(self, leaf: Leaf, shift: int) -> bool:
        """Whether the element at the start of the loop is 16-byte aligned."""
        if not self._device.wants_alignment:
            return True
        signatures = [*self._signatures, *[real._signature for real in self.outside]]
        starts_aligned = leaf.place >= self._sources or signatures[leaf.place].aligned
        return starts_aligned and (leaf.offset + shift * leaf.dtype.itemsize) % 16 == 0


def _reductions_of(unit: Unit) -> list[tuple[Expression, Reducing]]:
    return [(value.expression, value.reducing) for value in unit.members if value.reducing is not None]


def _is_stored_on_host(value: Value, visits: set[tuple[Walk, Value | Ints]]) -> bool:
    """Whether the host stores a value, of which each visit is a walk and a launch: a value apart, or a shape."""
    launches = {launch for _, launch in visits}
    reduces = any(isinstance(launch, Value) and launch.reducing is not None for launch in launches)
    return value.is_number or len({walk for walk, _ in visits}) > 1 or (reduces and len(launches) > 1)


def _view(x: ArrayBase, offset: int, layout: Layout, dtype: np.dtype) -> ArrayBase:
    """Return a view of an array that starts at a distance in bytes."""
    moved = x._make(x._buffer, x._offset + offset, x._signature)
    return moved._view(layout, 0, dtype)
