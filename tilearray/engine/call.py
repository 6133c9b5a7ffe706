"""A call: a function of a stream and operands that checks the operands, launches the kernel and returns the result.

A plan cannot know three facts: whether the target is writable, whether it shares memory with an operand, and whether a
Python number fits its dtype. A call checks them. A backend may write the whole call itself
(`tilearray.engine.backend.CallWriter`), which halves the host time of a small operation. `_call` does the same work for
a backend that only launches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from tilearray.engine.backend import AnyLoop, Backend, Call, Gap, Kernel, Launch
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.devices import Device
from tilearray.engine.expression import Expression
from tilearray.engine.operation import Operation
from tilearray.engine.signature import ArrayBase, Signature, dense_signature, empty_array
from tilearray.geometry.reduction import ReductionLoop
from tilearray.geometry.scan import ScanLoop
from tilearray.promotion.scalars import Number

Take = Callable[[Any], Number]
Careful = Callable[[Any, Sequence[Any], Any], Any]
"""``careful(operation, operands, out)`` runs an operation whose target is read-only or shares an operand's memory."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The common checks of all calls of an expression.

    Attributes
    ----------
    numbers : tuple
        For the output and each operand: a function that checks a Python number and converts it for the kernel, or None
        for an array.
    raw : bool
        Whether a call may skip this function for an int in an integer dtype and a float in a float dtype, if it fits.
    whole : callable
        ``whole(operands, out)`` runs the call without shortcuts: it checks the target, and copies operands that share
        its memory.
    """

    numbers: tuple[Take | None, ...]
    raw: bool
    whole: Callable[[Sequence[Any], Any], Any]


RULES: TwoGenerations[Rule] = TwoGenerations(2048)
BindNew = Callable[[Any, Signature], Call]


def rule_of(operation: Operation, expression: Expression, careful: Careful) -> Rule:
    """Return the rule of an expression. All of its calls share one object."""
    found = RULES.get(expression)
    if found is None:
        takes = [dtype and _take(operation, position, dtype) for position, dtype in enumerate(expression.scalar_dtypes)]
        rule = Rule((None, *takes), operation.passes_numbers, partial(careful, operation))
        found = RULES.put(expression, rule)
    return found


def call_of(rule: Rule, loop: AnyLoop, kernel: Kernel, keys: Sequence[Any], target: Signature, *, new: bool) -> Call:
    """Return the call of a kernel over a loop. Without a kernel, the call launches nothing."""
    signature = target if new else None
    if kernel is None:
        return _call(_nothing, rule, signature, (None,) * len(rule.numbers))
    gaps = () if new else (None, *[_gap(target, key) if isinstance(key, Signature) else None for key in keys])
    backend = target.device.backend
    if backend.call_writer is None:
        return _call(backend.bind(kernel, loop), rule, signature, gaps)
    return backend.call_writer.bind_call(kernel, loop, rule, signature, gaps)


class Stage(NamedTuple):
    """One launch of several.

    Attributes
    ----------
    expression, loop, kernel
        What is computed, the loop over it, and the backend's kernel.
    reads : tuple of int
        The operands of the call that it reads.
    """

    expression: Expression
    loop: ReductionLoop | ScanLoop
    kernel: Kernel
    reads: tuple[int, ...]


class Place(NamedTuple):
    """An array of a launch: an operand of the call, or a part of memory that the call allocates.

    Attributes
    ----------
    position : int
        That of the operand, or -1, -2, ... for the first memory, the second one, ...
    offset : int
        The bytes from the start of memory to the first element; 0 for an operand.
    """

    position: int
    offset: int = 0


class Step(NamedTuple):
    """One launch of a call of several, with all of its operands, the output first: places, and numbers as they are.

    Attributes
    ----------
    kernel, loop
    operands : tuple of Place, int or float
    """

    kernel: Kernel
    loop: AnyLoop
    operands: tuple[Place | int | float, ...]


def staged_call(
    rule: Rule, backend: Backend, signature: Signature, stages: tuple[Stage, Stage], scratch: tuple[Signature, ...]
) -> Call:
    """Return the call of two launches. The first one writes scratch memory, the second one reads it.

    Parameters
    ----------
    rule, backend
    signature : Signature
        The signature of the new result.
    stages : tuple of Stage
    scratch : tuple of Signature
        Those of the arrays that the first launch writes; the second one reads them first.
    """
    between = [Place(-2 - number) for number in range(len(scratch))]
    outputs = between, [Place(-1), *between]
    steps = [
        Step(stage.kernel, stage.loop, (*written, *[Place(place) for place in stage.reads]))
        for stage, written in zip(stages, outputs, strict=True)
    ]
    return steps_call(rule.numbers[1:], rule.raw, backend, steps, (signature, *scratch))


def steps_call(
    takes: Sequence[Take | None], raw: bool, backend: Backend, steps: Sequence[Step], memory: Sequence[Signature]
) -> Call:
    """Return the call of launches, one after the other.

    Parameters
    ----------
    takes : sequence of callable or None
        For each operand of the call: as `Rule.numbers`. One of them is an array.
    raw : bool
        As `Rule.raw`.
    backend
    steps : sequence of Step
    memory : sequence of Signature
        Those of the arrays that the call allocates, each before the first launch that uses it. The first one is the
        result.
    """
    writer = backend.call_writer
    written = None if writer is None else writer.bind_steps(steps, takes, raw, memory)
    if written is not None:
        return written
    launches = [(backend.bind(step.kernel, step.loop), step.operands) for step in steps]

    def call(stream: Any, *operands: Any) -> Any:
        given = _arguments(operands, takes)
        like = next(operand for operand, take in zip(operands, takes) if take is None)
        made: dict[int, ArrayBase] = {}
        for launch, used in launches:
            parts: list[Any] = []
            for operand in used:
                if not isinstance(operand, Place):
                    parts += (operand, 0)
                elif operand.position >= 0:
                    parts += given[operand.position]
                else:
                    if operand.position not in made:
                        made[operand.position] = empty_array(like.__class__, memory[~operand.position], stream)
                    parts += (made[operand.position]._buffer, operand.offset)
            launch(stream, *parts)
        return made[-1]

    return call


class Move(NamedTuple):
    """A copy of an array, to memory of one call or from there.

    Attributes
    ----------
    launch : Launch
    nbytes : int
        The bytes of that memory.
    """

    launch: Launch
    nbytes: int


def padded_call(backend: Backend, signature: Signature, product: Launch, moves: Sequence[Move | None]) -> Call:
    """Return the call of a product of copies of its operands.

    Parameters
    ----------
    backend
    signature : Signature
        The signature of the new result.
    product : Launch
    moves : sequence of Move or None
        Of the result, which is copied from what the product writes, and of each operand; None without a copy.
    """
    allocate, (back, *there) = backend.allocate, moves

    def place(stream: Any, x: Any, move: Move | None) -> tuple[Any, int]:
        if move is None:
            return x._buffer, x._offset
        memory = allocate(move.nbytes, stream)
        move.launch(stream, memory, 0, x._buffer, x._offset)
        return memory, 0

    def call(stream: Any, *operands: Any) -> Any:
        places = [part for x, move in zip(operands, there, strict=True) for part in place(stream, x, move)]
        cls = operands[0].__class__
        if back is None:
            out = empty_array(cls, signature, stream)
            product(stream, out._buffer, 0, *places)
            return out
        written = allocate(back.nbytes, stream)
        product(stream, written, 0, *places)
        places.clear()  # so that the result may have the memory of the copies
        out = empty_array(cls, signature, stream)
        back.launch(stream, out._buffer, 0, written, 0)
        return out

    return call


def selecting_call(device: Device, stages: tuple[Stage, ...], names: Sequence[np.dtype]) -> Call:
    """Return the call of a selection: it counts, waits for the number of elements, and stores as many.

    Parameters
    ----------
    device : Device
    stages : tuple of Stage
        A launch that counts in segments, one that adds these counts, and one that reads what the two stored. Without
        them nothing is selected.
    names : sequence of numpy.dtype
        The dtypes of the results.
    """
    from tilearray.geometry.selection import bytes_of_counts  # here: few programs need it

    backend: Any = device.backend
    launches = [backend.bind(stage.kernel, stage.loop) for stage in stages]
    nbytes = bytes_of_counts(stages[0].loop) if stages else 0
    counted, _, stored = [_parts_of(stage.reads) for stage in stages] or [_parts_of(())] * 3

    def call(stream: Any, *operands: Any) -> Any:
        given = [part for operand in operands for part in (operand._buffer, operand._offset)]
        total, memory = 0, None
        if launches:
            number = backend.numbers.take(stream)
            try:
                memory = backend.allocate(nbytes, stream)
                launches[0](stream, memory, 0, *counted(given))
                launches[1](stream, number, 0, memory, 0)
            except BaseException:
                backend.numbers.give_back(number, stream)
                raise
            total = backend.numbers.read(number, stream)
        written: list[Any] = []
        for dtype in names:
            written += (backend.allocate(total * dtype.itemsize, stream), 0)
        if total:  # before signatures are made: the GPU waits for this launch
            launches[2](stream, *written, memory, 0, *stored(given))
        make = operands[0].__class__._make
        found: list[Any] = []
        for buffer, dtype in zip(written[::2], names, strict=True):
            found.append(make(buffer, 0, dense_signature((total,), dtype, device)))
        return tuple(found)

    return call


def _parts_of(places: Sequence[int]) -> Callable[[list[Any]], tuple[Any, ...]]:
    """Return what takes the buffers and offsets of operands at places from those of all operands."""
    parts = [part for place in places for part in (2 * place, 2 * place + 1)]
    return itemgetter(*parts) if parts else lambda given: ()


def _arguments(operands: Sequence[Any], takes: Sequence[Take | None]) -> list[tuple[Any, int]]:
    """Return what a launch takes for each operand: its buffer and its offset, or a number and 0."""
    return [
        (operand._buffer, operand._offset) if take is None else (take(operand), 0)
        for operand, take in zip(operands, takes, strict=True)
    ]


def bind_new(backend: Backend, kernel: Kernel, rule: Rule) -> BindNew:
    """Return a function that makes a call from a loop and the signature of the result.

    The loop must start at the first elements of its operands.
    """
    if backend.call_writer is not None:
        return backend.call_writer.bind_new(kernel, rule)
    return lambda loop, signature: _call(backend.bind(kernel, loop), rule, signature, ())


def _take(operation: Operation, position: int, dtype: np.dtype) -> Take:
    return lambda number: operation.number(position, number, dtype)


def _gap(target: Signature, operand: Signature) -> Gap:
    """Return the distances at which an operand shares memory with the target."""
    mine, other = target.layout, operand.layout
    near = mine.low * target.itemsize - (other.high + 1) * operand.itemsize
    far = (mine.high + 1) * target.itemsize - other.low * operand.itemsize
    return near, far, mine == other and target.itemsize == operand.itemsize


def _nothing(stream: Any, *operands: Any) -> None:
    """Launch nothing: the loop is empty."""


def _call(launch: Launch, rule: Rule, signature: Signature | None, gaps: tuple[Gap | None, ...]) -> Call:
    """Return the call of a backend that only launches."""
    takes, whole = rule.numbers[1:], rule.whole

    def arguments(operands: Sequence[Any]) -> list[Any]:
        return [part for pair in _arguments(operands, takes) for part in pair]

    def new(stream: Any, *operands: Any) -> Any:
        assert signature is not None
        like = next(operand for operand, take in zip(operands, takes) if take is None)
        flat = arguments(operands)
        out = empty_array(like.__class__, signature, stream)
        launch(stream, out._buffer, 0, *flat)
        return out

    def new_of_two(stream: Any, x: ArrayBase, y: ArrayBase) -> Any:
        assert signature is not None
        out = empty_array(x.__class__, signature, stream)
        launch(stream, out._buffer, 0, x._buffer, x._offset, y._buffer, y._offset)
        return out

    def into(stream: Any, out: Any, *operands: Any) -> Any:
        if out._buffer.readonly:
            return whole(operands, out)
        for operand, gap in zip(operands, gaps[1:], strict=True):
            if gap is not None and operand is not out:
                distance = operand._address - out._address
                if gap[0] < distance < gap[1] and not (gap[2] and distance == 0):
                    return whole(operands, out)
        launch(stream, out._buffer, out._offset, *arguments(operands))
        return out

    if signature is None:
        return into
    return new_of_two if takes == (None, None) else new
