"""Programs: what was traced, as launches of kernels over the memory of a call.

All results of one shape are one launch, whose expression is spliced from the recorded ones. Only what a result needs is
in it, and each common subexpression once. A view of a computed array becomes other strides of the arrays in memory, so
a stencil reads its input several times and stores no intermediate.

A launch may read and write one array in place only if each element depends on itself alone. Otherwise, as in
``x[1:] += x[:-1]``, it writes new memory, which is copied to the array after all launches.

A value that several walks visit, as the inner one of two stencils, is computed once for each walk. A GPU waits for
memory meanwhile, but a processor does not. So on the host a launch of its own stores such a value.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tilearray.arrays.fusion.containers import members, rebuilt
from tilearray.arrays.fusion.numbers import TracedNumber
from tilearray.arrays.fusion.tracing import Trace, Traced, buffer_of
from tilearray.arrays.fusion.values import Constant, Given, Load, Read, Use, Value, inner_walk
from tilearray.engine.context import RECORDINGS
from tilearray.engine.devices import Device
from tilearray.engine.plan import kernel_of
from tilearray.engine.signature import ArrayBase, Signature, before_access, empty_array, signature_of
from tilearray.engine.splice import Splicer
from tilearray.engine.watch import WATCH
from tilearray.errors import WriteError
from tilearray.geometry.layout import Layout
from tilearray.geometry.loop import LayoutCase, make_loop
from tilearray.geometry.walk import Walk, whole
from tilearray.ops.execute import store as store_to
from tilearray.promotion.scalars import ScalarClass, classify

Ints = tuple[int, ...]
Take = Callable[[Sequence[Any]], Any]
"""Takes a number for a kernel from the arguments of a call."""
Result = Callable[[Sequence[Any], list[ArrayBase]], Any]
"""Makes a result from the arguments of a call and all arrays in memory."""


class Leaf(NamedTuple):
    """An array that a launch reads or writes.

    Attributes
    ----------
    place : int
        Its memory: a source of the trace, or a new array.
    offset : int
        The bytes from the first element of that memory to where the loop begins.
    strides : tuple of int
        Along the axes of the result, in elements.
    dtype : numpy.dtype
    """

    place: int
    offset: int
    strides: Ints
    dtype: np.dtype

    def span(self, shape: Ints) -> tuple[int, int]:
        """Return the first byte and the end of the elements, from the first element of the memory."""
        layout = Layout(shape, self.strides)
        if not layout.size:
            return self.offset, self.offset
        return self.offset + layout.low * self.dtype.itemsize, self.offset + (layout.high + 1) * self.dtype.itemsize


class Store(NamedTuple):
    """A value that is stored: the elements that a walk visits, at the places of a leaf."""

    value: Value
    walk: Walk
    target: Leaf


class Spliced(NamedTuple):
    """One launch before it is planned: its shape, its stores, its expression and the nodes that it stores."""

    shape: Ints
    stores: list[Store]
    splicer: Splicer
    nodes: list[int]

    @property
    def leaves(self) -> list[Leaf]:
        """The arrays that it reads."""
        return [key for kind, key in self.splicer.keys if kind == "array"]


class Launch(NamedTuple):
    """A launch: the backend's function, and for each operand its place and offset, or the function of its number."""

    launch: Callable[..., None]
    operands: tuple[tuple[int, int, Take | None], ...]


class ChangedNumber(Exception):  # noqa: N818 - a signal
    """A number that is computed from arguments has another class now, so the dtypes may differ."""


class Program:
    """What a fused function does with arguments of these signatures.

    Attributes
    ----------
    launches : list of Launch
    written : set of int
        The sources that it writes.
    """

    def __init__(
        self, trace: Trace, results: Any, signatures: Sequence[Signature], *, wide: bool, contract: bool = False
    ) -> None:
        self._device: Device = trace.device.real
        self._wide = wide
        self._contract = contract
        self._signatures = list(signatures)
        self._outside = [real for _, real in trace.sources if real is not None]
        self._sources = len(trace.sources)
        self._new: list[Signature] = []
        self._copies: list[tuple[Leaf, Layout, int]] = []
        self._stores: dict[Ints, list[Store]] = {}
        self._kept: dict[tuple[Value, Walk, Ints], int] = {}
        self._apart: dict[Value, Leaf] = {}
        self._result = self._described(trace, results)
        self.written = self._add_targets(trace)
        spliced = [self._stored_apart(value) for value in self._values_apart()]
        spliced += [self._spliced(shape, stores) for shape, stores in self._stores.items()]
        self._separate(spliced)
        self.launches = [launch for each in spliced if (launch := self._launch(each)) is not None]
        self._launch_all = _written_out(self.launches)

    def run(self, stream: Any, arguments: Sequence[Any], arrays: Sequence[ArrayBase]) -> Any:
        """Run over the memory of `arrays`, and return the results. `arguments` also has the numbers of the call."""
        if self.written:
            self.check_targets(arrays)
        new = [empty_array(ArrayBase._public, signature, stream) for signature in self._new]
        memory = [*arrays, *self._outside, *new]
        self._launch_all(stream, arguments, memory)
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

    def _described(self, trace: Trace, results: Any) -> Result:
        """Return the function that makes the results of a call."""
        parts = members(results)
        if parts is not None:
            makers = [self._described(trace, part) for part in parts]
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
                return lambda arguments, memory: memory[place]
            shift = x._offset - source._offset
            return lambda arguments, memory: _view(memory[place], shift, layout, dtype)
        read = trace.read(x, "return")
        assert isinstance(read, Use)  # an array that the function makes is written by it
        is_whole = signature.nbytes == x._buffer.nbytes and layout.strides == layout.dense().strides
        place = self._kept_in(read.value, read.walk, layout if is_whole else layout.dense(), dtype)
        return lambda arguments, memory: memory[place]

    def _kept_in(self, value: Value, walk: Walk, layout: Layout, dtype: np.dtype) -> int:
        """Store a value in a new array, once, and return the place of the array."""
        found = self._kept.get((value, walk, layout.shape))
        if found is None:
            found = self._kept[value, walk, layout.shape] = self._allocated(layout, dtype)
            target = Leaf(found, 0, layout.strides, dtype)
            self._stores.setdefault(layout.shape, []).append(Store(value, walk, target))
        return found

    def _allocated(self, layout: Layout, dtype: np.dtype) -> int:
        self._new.append(signature_of(layout, dtype, self._device))
        return self._sources + len(self._new) - 1

    def _add_targets(self, trace: Trace) -> set[int]:
        """Store the values that arguments have at the end, and return the places of these arguments."""
        found: set[int] = set()
        for place, (source, _) in enumerate(trace.sources):
            for written, value in buffer_of(source).writes:
                layout = written._signature.layout
                leaf = Leaf(place, written._offset - source._offset, layout.strides, written._signature.dtype)
                self._stores.setdefault(layout.shape, []).append(Store(value, whole(layout.shape), leaf))
                found.add(place)
        return found

    # ------------------------------------------------------------------ values that the host stores

    def _values_apart(self) -> list[Value]:
        """Return the values that are stored apart, operands first.

        On the host these are the values that several walks visit. A number for all elements is also stored, since
        NumPy rounds some functions of an array and a number differently.
        """
        if not self._device.backend.on_host:
            return []
        walks: dict[Value, set[Walk]] = {}
        for stores in self._stores.values():
            for value, walk, _ in stores:
                walks.setdefault(value, set()).add(walk)
        waiting = [(-value.order, id(value), value) for value in walks]
        heapq.heapify(waiting)
        found: list[Value] = []
        while waiting:  # the last recorded value first: all that use a value come before it
            *_, value = heapq.heappop(waiting)
            visits = walks[value]
            if len(visits) > 1 or value.is_number:
                found.append(value)
                visits = {whole(value.shape)}
            for read in [read for read in value.operands if isinstance(read, Use)]:
                if read.value not in walks:
                    walks[read.value] = set()
                    heapq.heappush(waiting, (-read.value.order, id(read.value), read.value))
                walks[read.value].update([inner_walk(read, value, walk) for walk in visits])
        return found[::-1]

    def _stored_apart(self, value: Value) -> Spliced:
        """Store a value in new memory, from which later launches load it."""
        shape = () if value.is_number else value.shape
        layout = Layout.of(shape)
        leaf = Leaf(self._allocated(layout, value.dtype), 0, layout.strides, value.dtype)
        walk = Walk(whole(value.shape).start, whole(shape).steps)
        spliced = self._spliced(shape, [Store(value, walk, leaf)])
        self._apart[value] = leaf if shape == value.shape else leaf._replace(strides=(0,) * len(value.shape))
        return spliced

    # ------------------------------------------------------------------ launches

    def _spliced(self, shape: Ints, stores: list[Store]) -> Spliced:
        splicer = Splicer(self._wide)
        nodes: dict[tuple[Value, Walk], int] = {}
        return Spliced(shape, stores, splicer, [self._node(splicer, value, walk, nodes) for value, walk, _ in stores])

    def _node(self, splicer: Splicer, value: Value, walk: Walk, nodes: dict[tuple[Value, Walk], int]) -> int:
        """Splice a value and all that it reads, and return its node. `nodes` has those that are there already."""
        waiting = [(value, walk)]
        while waiting:
            asked = waiting[-1]
            if asked in nodes:
                waiting.pop()
                continue
            inner = [
                (read.value, inner_walk(read, *asked))
                for read in asked[0].operands
                if isinstance(read, Use) and read.value not in self._apart
            ]
            missing = [each for each in reversed(inner) if each not in nodes]
            if missing:
                waiting += missing
            else:
                operands = [self._operand(splicer, read, *asked, nodes) for read in asked[0].operands]
                nodes[asked] = splicer.splice(asked[0].expression, operands)
        return nodes[value, walk]

    def _operand(
        self, splicer: Splicer, read: Read, value: Value, walk: Walk, nodes: dict[tuple[Value, Walk], int]
    ) -> int:
        """Return the node of an operand; values are spliced already."""
        if isinstance(read, Constant):
            return splicer.number((type(read.number).__name__, repr(read.number), read.dtype, read), read.dtype)
        if isinstance(read, Given):
            return splicer.number(read, read.dtype)
        inner = inner_walk(read, value, walk)
        if isinstance(read, Load):
            return _loaded(splicer, Leaf(read.place, read.offset, read.strides, read.dtype), inner)
        apart = self._apart.get(read.value)
        if apart is not None:
            return _loaded(splicer, apart, inner)
        return nodes[read.value, inner]

    def _separate(self, launches: list[Spliced]) -> None:
        """Replace the target of a store by new memory if its launch or a later one reads the target's memory."""
        for turn, (shape, stores, splicer, _) in enumerate(launches):
            for position, (value, walk, target) in enumerate(stores):
                if target.place < self._sources and any(
                    _clash(target, shape, leaf, later.shape, later.splicer is splicer)
                    for later in launches[turn:]
                    for leaf in later.leaves
                ):
                    layout = Layout.of(shape)
                    place = self._allocated(layout, target.dtype)
                    stores[position] = Store(value, walk, Leaf(place, 0, layout.strides, target.dtype))
                    self._copies.append((target, Layout(shape, target.strides), place))

    def _launch(self, spliced: Spliced) -> Launch | None:
        """Return a launch, or None if there are no elements."""
        outputs = [target for _, _, target in spliced.stores]
        arrays = [*outputs, *spliced.leaves]
        loop = make_loop(spliced.shape, [leaf.strides for leaf in arrays])
        if loop.case is LayoutCase.EMPTY:
            return None
        dtypes = [output.dtype for output in outputs]
        expression = spliced.splicer.build(spliced.nodes, dtypes, contract=self._contract)
        aligned = tuple([self._aligned(leaf, shift) for leaf, shift in zip(arrays, loop.shifts, strict=True)])
        kernel = kernel_of(expression, loop, aligned, self._device)
        operands: list[tuple[int, int, Take | None]] = [(leaf.place, leaf.offset, None) for leaf in outputs]
        for kind, key in spliced.splicer.keys:
            operands.append((key.place, key.offset, None) if kind == "array" else (0, 0, _take(key)))
        launch = self._device.backend.bind(kernel, loop)
        if WATCH.launch is not None:
            launch = WATCH.launch(expression, loop, kernel, self._device, launch)
        return Launch(launch, tuple(operands))

    def _aligned(self, leaf: Leaf, shift: int) -> bool:
        """Whether the element at the start of the loop is 16-byte aligned."""
        if not self._device.wants_alignment:
            return True
        signatures = [*self._signatures, *[real._signature for real in self._outside]]
        starts_aligned = leaf.place >= self._sources or signatures[leaf.place].aligned
        return starts_aligned and (leaf.offset + shift * leaf.dtype.itemsize) % 16 == 0


def _written_out(launches: Sequence[Launch]) -> Callable[[Any, Sequence[Any], list[ArrayBase]], None]:
    """Return a function of a stream, arguments and arrays in memory that runs launches, written out for its operands.

    One launch of three arrays is ``launch0(stream, m[2]._buffer, m[2]._offset, m[0]._buffer, m[0]._offset + 4, ...)``.
    All numbers are taken first: one that does not fit is an error before anything is written.
    """
    names: dict[str, Any] = {}
    numbers: list[str] = []
    lines: list[str] = []
    for turn, (launch, operands) in enumerate(launches):
        names[f"launch{turn}"] = launch
        parts = ["stream"]
        for position, (place, offset, take) in enumerate(operands):
            if take is None:
                parts.append(f"m[{place}]._buffer, m[{place}]._offset{f' + {offset}' if offset else ''}")
            else:
                name = f"{turn}_{position}"
                names[f"take{name}"] = take
                numbers.append(f"n{name} = take{name}(arguments)")
                parts.append(f"n{name}, 0")
        lines.append(f"launch{turn}({', '.join(parts)})")
    body = "\n    ".join([*numbers, *lines] or ["pass"])
    exec(compile(f"def run(stream, arguments, m):\n    {body}\n", "<tilearray fused program>", "exec"), names)
    return names["run"]


def _clash(target: Leaf, shape: Ints, leaf: Leaf, other: Ints, same_launch: bool) -> bool:
    """Whether a launch over the shape `other` reads memory that a store writes, other than element by element."""
    if leaf.place != target.place or (same_launch and leaf == target):
        return False
    start, end = target.span(shape)
    first, last = leaf.span(other)
    return first < end and start < last


def _loaded(splicer: Splicer, leaf: Leaf, walk: Walk) -> int:
    """Return the node of an element of an array in memory that a walk visits."""
    shift, strides = walk.strided(leaf.strides)
    return splicer.array(Leaf(leaf.place, leaf.offset + shift * leaf.dtype.itemsize, strides, leaf.dtype), leaf.dtype)


def _take(key: Any) -> Take:
    """Return the function that takes a number for a kernel from the arguments of a call."""
    if isinstance(key, Given):
        return partial(_checked, key, classify(key.number.number))
    number = key[-1].number
    return lambda arguments: number


def _checked(given: Given, expected: ScalarClass | None, arguments: Sequence[Any]) -> Any:
    number = given.number.compute(arguments)
    if classify(number) is not expected:
        raise ChangedNumber
    return given.operation.number(given.position, number, given.dtype)


def _view(x: ArrayBase, offset: int, layout: Layout, dtype: np.dtype) -> ArrayBase:
    """Return a view of an array that starts at a distance in bytes."""
    moved = x._make(x._buffer, x._offset + offset, x._signature)
    return moved._view(layout, 0, dtype)
