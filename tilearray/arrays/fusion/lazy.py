"""`lazy`: a block whose elementwise operations are recorded, and run together when a value is needed.

A recorded call checks dtypes, shapes and numbers at its line, and returns a `Pending` array (the module `pending`). At
the end of a recording, a `Program` computes all results that are still referenced; it is found again by the recorded
calls, the signatures of the arrays, and which results are referenced. Then everything is as without the block.

Arrays in memory are never out of date: a call that writes to one runs at once, in one kernel with the recorded calls
that it needs. These calls stay recorded, because nobody can tell whether their results are needed again. They run twice
at most: before another write would compute them again, the recording ends. It also ends if the write changes memory
that it reads.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from tilearray.arrays.fusion.numbers import argument
from tilearray.arrays.fusion.pending import Node, Pending, node_of
from tilearray.arrays.fusion.tracing import Trace, Traced, buffer_of, record, traced, tracing_device
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import RECORDINGS, STATE, Block
from tilearray.engine.devices import Device, common_device
from tilearray.engine.expression import Expression
from tilearray.engine.locks import Lock
from tilearray.engine.operation import Operation, expression_of
from tilearray.engine.plan import Key, types_of
from tilearray.engine.signature import ArrayBase, Signature, overlap, signature_of
from tilearray.engine.splice import is_elementwise
from tilearray.errors import OperandError, shown
from tilearray.geometry.result import geometry_of
from tilearray.geometry.walk import walk_of_view
from tilearray.ops.signatures import show
from tilearray.promotion.scalars import classify
from tilearray.promotion.semantics import Semantics

if TYPE_CHECKING:
    from tilearray.arrays.fusion.program import Program

MOST_OPERATIONS = 64
MOST_BYTES = 1 << 30


# --- calls -----------------------------------------------------------------------------------------------------------


class _Typing(NamedTuple):
    """What a call of an elementwise operation gives: its signature, and the dtypes of the operands that are numbers."""

    signature: Signature
    numbers: tuple[np.dtype | None, ...]


TRACED = _Typing(cast(Signature, None), ())
"""The typing of a call in a function that is traced, which is not for a recording."""

_TYPINGS: TwoGenerations[_Typing | bool] = TwoGenerations(2048)


def _typing_of(
    operation: Operation, semantics: Semantics, keys: Sequence[Key], out: ArrayBase | None
) -> _Typing | None:
    """Return the typing of a call that can be recorded, or None. Raise the errors of the call."""
    target = None if out is None else out._signature
    key = (operation, semantics.key, target, *keys)
    found = _TYPINGS.get(key)
    if found is None:
        found = _TYPINGS.put(key, _new_typing(operation, semantics, keys, target) or False)
    return found or None  # type: ignore[return-value]


def _new_typing(
    operation: Operation, semantics: Semantics, keys: Sequence[Key], target: Signature | None
) -> _Typing | None:
    arrays = [key for key in keys if isinstance(key, Signature)]
    placed = arrays if target is None else [*arrays, target]
    if any(array.device.recorder is not None for array in placed):
        return TRACED
    if operation.reduced is not None or operation.scanned is not None or not placed:
        return None
    device = common_device(operation.name, placed)
    types = types_of(tuple(keys), semantics)
    expression = expression_of(operation, semantics, types, None if target is None else target.dtype)
    if not is_elementwise(expression) or not (device.backend.on_host or _has_code(expression)):
        return None
    operation.check_device(device)
    layouts = [array.layout for array in arrays]
    layout, _ = geometry_of(operation.name, layouts, None if target is None else target.layout)
    if not layout.size:
        return None
    return _Typing(target or signature_of(layout, expression.result, device), expression.scalar_dtypes)


def _has_code(expression: Expression) -> bool:
    """Whether a GPU has all functions of an expression. A call of another one runs now, and is an error at its line."""
    return all(node[0] != "call" or node[4] is not None for node in cast("tuple[Any, ...]", expression.nodes))


Step = tuple[Operation, Any, tuple[Key, ...], tuple[tuple[Any, ...], ...], tuple[str, int] | None]
"""A recorded call, with all that its part of the program depends on: the operation, the key of the semantics, the keys
of the operands; for each operand ("source", place), ("result", place, offset), ("number", position, class) or
("constant", value); and the source or the result to which it writes, or None for a new result."""

PROGRAMS: TwoGenerations[Program] = TwoGenerations(256)
"""Programs by the steps of a recording, the results that are referenced, and the signatures of the sources."""


class Recording:
    """The recorded calls of a block, which have not run yet.

    Attributes
    ----------
    most_operations, most_bytes : int
        The number of operations, and of bytes of the arrays that it reads and makes, after which it ends.
    """

    def __init__(self, most_operations: int, most_bytes: int) -> None:
        self.most_operations = most_operations
        self.most_bytes = most_bytes
        self._lock = Lock()  # a copy of the context may run in another thread
        self._running = False
        self._clear()

    def __del__(self) -> None:
        RECORDINGS.discard(id(self))

    def _clear(self) -> None:
        RECORDINGS.discard(id(self))
        self._steps: list[tuple[Step, Semantics]] = []
        self._sources: list[ArrayBase] = []
        self._places: dict[Any, int] = {}
        self._numbers: list[Any] = []
        self._nodes: dict[int, weakref.ref[Node]] = {}  # by the place of the step
        self._repeated: set[int] = set()  # results that a write has computed without storing them
        self._nbytes = 0
        self._stream: Any = None
        self._device: Device | None = None

    # ------------------------------------------------------------------ what the engine calls

    def call(
        self, operation: Operation, semantics: Semantics, keys: Sequence[Key], operands: Sequence[Any], out: Any
    ) -> Any:
        """Record a call and return its result, or return NotImplemented for a call that must run now."""
        with self._lock:
            if self._running:
                return NotImplemented
            if self._repeated and not self._referenced():
                self._clear()  # only writes needed what was recorded
            if len(self._steps) >= self.most_operations or self._nbytes > self.most_bytes:
                self.end()
            typing = _typing_of(operation, semantics, keys, out)
            if typing is TRACED:
                return NotImplemented
            nodes = [self._node(operand) if operand.__class__ is Pending else None for operand in operands]
            if typing is not None and self._steps and self._must_end(typing, operands, nodes, out):
                self.end()
                nodes = [None] * len(nodes)
            if typing is None or (out is not None and not any(nodes) and self._node(out) is None):
                self._end_before(any(nodes), out)
                return NotImplemented
            return self._recorded(operation, semantics, tuple(keys), operands, nodes, out, typing)

    def end_for(self, x: ArrayBase) -> None:
        """End the recording if it reads the memory of an array, which may change from now on."""
        with self._lock:
            if any(overlap(source, x) for source in self._sources):
                self.end()

    def end(self) -> None:
        """Run the recorded calls. If that fails, they stay recorded."""
        with self._lock:
            if self._running or not self._steps:
                return
            self._running = True
            try:
                nodes = self._referenced()
                if nodes:
                    self._run(self._steps, nodes)
                self._clear()
            finally:
                self._running = False

    # ------------------------------------------------------------------ when a recording ends

    def _node(self, x: Any) -> Node | None:
        """Return the node of a result of this recording, or of a view of one."""
        node = node_of(x)
        return node if node is not None and node.recording is self else None

    def _end_before(self, reads: bool, out: ArrayBase | None) -> None:
        """End the recording if a call that runs now reads its results, or writes memory that it reads."""
        if reads or (out is not None and self._node(out) is not None):
            self.end()
        elif out is not None:
            self.end_for(out)

    def _must_end(
        self, typing: _Typing, operands: Sequence[Any], nodes: Sequence[Node | None], out: ArrayBase | None
    ) -> bool:
        """Whether a call cannot be in one program with the calls before it."""
        if typing.signature.device is not self._device or STATE.get().stream != self._stream:
            return True
        for node, operand in zip(nodes, operands, strict=True):
            if node is not None and not (operand._signature is node.signature or _is_walk(node, operand)):
                return True
        if out is None:
            return False
        target = self._node(out)
        if target is not None:
            return not _is_whole(target, out)
        arrays = [operand for operand in operands if isinstance(operand, ArrayBase)]
        return any(node is not None and node.place in self._repeated for node in nodes) or any(
            overlap(source, out) and not _same_view(source, out) for source in (*self._sources, *arrays)
        )

    # ------------------------------------------------------------------ recording

    def _recorded(
        self,
        operation: Operation,
        semantics: Semantics,
        keys: tuple[Key, ...],
        operands: Sequence[Any],
        nodes: Sequence[Node | None],
        out: ArrayBase | None,
        typing: _Typing,
    ) -> Any:
        """Add a step, and return its result. A step that writes to memory runs now."""
        before = len(self._sources)
        given: list[tuple[Any, ...]] = []
        for position, (operand, node, dtype) in enumerate(zip(operands, nodes, typing.numbers, strict=True)):
            if dtype is not None:
                operation.number(position, operand, dtype)  # raises the error of a number that does not fit
                given.append(self._number(operand))
            elif node is not None:
                given.append(("result", node.place, operand._offset))
            else:
                given.append(("source", self._source(operand)))
        target = None if out is None else self._target(out)
        if not self._steps:
            RECORDINGS.add(id(self))
            self._device, self._stream = typing.signature.device, STATE.get().stream
        call = (operation, semantics.key, keys, tuple(given), target), semantics
        if out is not None and target is not None and target[0] == "source":
            self._write(call, any(overlap(source, out) for source in self._sources[:before]))
            return out
        made = None
        if out is None:
            made = Node(self, len(self._steps), typing.signature)
            self._nbytes += typing.signature.nbytes
            out = made.array(0, typing.signature)
            target = "result", made.place
        if target is not None and any(node is not None and node.place in self._repeated for node in nodes):
            self._repeated.add(target[1])
        self._steps.append(call)
        if made is not None:  # after its step: an interrupt between both leaves no result that nothing computes
            self._nodes[made.place] = weakref.ref(made)
        return out

    def _write(self, call: tuple[Step, Semantics], changes_source: bool) -> None:
        """Run a write to memory. All results are stored with it if it changes memory that they read."""
        self._running = True
        try:
            self._run([*self._steps, call], self._referenced() if changes_source else [])
        finally:
            self._running = False
        if changes_source:
            self._clear()
        else:
            self._repeated.update(self._nodes)

    def _number(self, number: Any) -> tuple[Any, ...]:
        """Return what a step says of a number."""
        if isinstance(number, bool):
            return "constant", number
        self._numbers.append(number)
        return "number", len(self._numbers) - 1, classify(number)

    def _target(self, out: ArrayBase) -> tuple[str, int]:
        """Return what a step says of its target."""
        node = self._node(out)
        return ("source", self._source(out)) if node is None else ("result", node.place)

    def _source(self, x: ArrayBase) -> int:
        """Return the place of an array in memory among the sources. Equal views are one source."""
        buffer, signature = x._buffer, x._signature  # the memory of a result of another recording exists from now on
        key = (id(buffer), x._offset, signature)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self._sources)
            self._sources.append(ArrayBase._public._make(buffer, x._offset, signature))
            self._nbytes += signature.nbytes
            if hasattr(x, "_export"):
                del x._export  # so that the next export is seen
        return place

    # ------------------------------------------------------------------ running

    def _referenced(self) -> list[Node]:
        """Return the nodes of the results that are still referenced."""
        return [node for reference in self._nodes.values() if (node := reference()) is not None]

    def _run(self, calls: Sequence[tuple[Step, Semantics]], nodes: Sequence[Node]) -> None:
        """Run calls, and put some of their results into memory."""
        places = tuple([node.place for node in nodes])
        key = (tuple([step for step, _ in calls]), places, tuple([source._signature for source in self._sources]))
        program = PROGRAMS.get(key) or PROGRAMS.put(key, self._program(calls, places))
        results = program.run(self._stream, self._numbers, self._sources)
        for node, result in zip(nodes, results, strict=True):
            node.settle(result._buffer)

    def _program(self, calls: Sequence[tuple[Step, Semantics]], places: Sequence[int]) -> Program:
        """Return the program of calls that gives the results at these places."""
        from tilearray.arrays.fusion.program import Program  # here: few programs need it

        assert self._device is not None
        trace = Trace(tracing_device(self._device))
        sources = [trace.source(source) for source in self._sources]
        signatures = [source._signature for source in self._sources]

        def traced_program() -> Program:
            made = self._replayed(trace, calls, sources)
            return Program(trace, [made[place] for place in places], signatures, wide=False)

        return traced(trace, traced_program)

    def _replayed(
        self, trace: Trace, calls: Sequence[tuple[Step, Semantics]], sources: list[Traced]
    ) -> dict[int, Traced]:
        """Repeat calls in a trace, and return their results by the place of the call."""
        made: dict[int, Traced] = {}

        def again(what: tuple[Any, ...], key: Any) -> Any:
            kind, value = what[:2]
            if kind == "source":
                return sources[int(value)]
            if kind == "result":
                signature = signature_of(key.layout, key.dtype, trace.device)
                return Traced._make(buffer_of(made[int(value)]), what[2], signature)
            return argument(self._numbers[value], value, _nothing) if kind == "number" else value

        for turn, ((operation, _, keys, given, target), semantics) in enumerate(calls):
            operands = [again(what, key) for what, key in zip(given, keys, strict=True)]
            out: Traced | None = None
            if target is not None:
                kind, place = target
                out = sources[place] if kind == "source" else made[place]
            result = record(operation, semantics, keys, operands, out)
            if out is None:
                made[turn] = cast(Traced, result)
        return made


def _nothing() -> None:
    """Take note that a number is needed: all numbers of a program are arguments."""


def _is_whole(node: Node, x: ArrayBase) -> bool:
    return x._offset == 0 and x._signature.layout == node.signature.layout


def _is_walk(node: Node, x: ArrayBase) -> bool:
    """Whether a view of a result is a walk over its elements."""
    signature = x._signature
    return walk_of_view(node.signature.layout, signature.layout, x._offset // signature.itemsize) is not None


def _same_view(x: ArrayBase, y: ArrayBase) -> bool:
    return x._buffer is y._buffer and x._offset == y._offset and x._signature is y._signature


# --- the block -------------------------------------------------------------------------------------------------------


class lazy(Block):  # noqa: N801 - called like a function
    """Record the elementwise operations of a ``with`` block, and run them together when a value is needed.

    Results are arrays whose memory does not exist yet. Dtypes and shapes are checked at once. All recorded operations
    run as one kernel for each shape, and only the results that are still referenced are written: when a value is read,
    printed, or exported, when an operation that is not elementwise needs it, when memory is written, and at the end of
    the block, also if an error ends it. The results have the same bits as without the block.

    Blocks apply to one thread or task, and nest with blocks of `semantics` and streams.

    Parameters
    ----------
    operations : int, optional
        The number of operations after which a recording runs.
    nbytes : int, optional
        The number of bytes of all arrays that a recording reads and makes, after which it runs. Until then it keeps
        these arrays alive.

    Raises
    ------
    OperandError
        If a limit is not a positive int.

    Notes
    -----
    Memory that another library or another thread writes during the block must not be an operand in it.

    Examples
    --------
    >>> import tilearray as ta
    >>> a, b = ta.asarray([1.0, 2.0]), ta.asarray([3.0, 4.0])
    >>> with ta.lazy():
    ...     y = a * b + a * 2 - b
    >>> y
    Array([2., 8.], dtype=float32, device='cpu')
    """

    __slots__ = ("_recording",)
    _field = "recording"

    def __init__(self, *, operations: int = MOST_OPERATIONS, nbytes: int = MOST_BYTES) -> None:
        for name, limit in (("operations", operations), ("nbytes", nbytes)):
            if type(limit) is not int or limit < 1:
                raise OperandError(
                    f"lazy: expected a positive int as {name}, got {shown(limit)}; write ta.lazy({name}=64)"
                )
        self._recording = Recording(operations, nbytes)

    def _value(self) -> Recording:
        return self._recording

    def __enter__(self) -> None:
        outer = STATE.get().recording
        if outer is not None:
            outer.end()
        super().__enter__()

    def _ended(self) -> None:
        self._recording.end()


show([lazy])
