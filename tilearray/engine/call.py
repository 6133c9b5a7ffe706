"""Plans -> calls: a function of a stream and operands that checks what depends on memory, launches, returns the result.

A plan cannot know three things: whether a target may be written, whether it shares memory with an operand, and whether a
Python number fits. A backend may write the whole call (`tilearray.engine.backend.CallWriter`), which saves half the host
time of a small operation; `_call` does the same for a backend that only launches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tilearray.engine.backend import Backend, Call, Gap, Kernel, Launch
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.expression import Expression
from tilearray.engine.operation import Operation
from tilearray.engine.signature import ArrayBase, Signature, empty_array
from tilearray.geometry.loop import Loop
from tilearray.promotion.scalars import Number

Take = Callable[[Any], Number]
Careful = Callable[[Any, Sequence[Any], Any], Any]
"""``careful(operation, operands, out)`` runs an operation on a target that must be checked, or that shares memory."""


class Rule(NamedTuple):
    """What all calls of an expression have in common.

    Attributes
    ----------
    numbers : tuple
        For the output and each operand None, or what checks a Python number and returns what is passed for it.
    raw : bool
        Whether an int for an integer dtype, and a float for a float, may be passed without that check, if it fits.
    whole : callable
        ``whole(operands, out)`` goes the whole way: checks the target, copies operands that share its memory.
    """

    numbers: tuple[Take | None, ...]
    raw: bool
    whole: Callable[[Sequence[Any], Any], Any]


RULES: TwoGenerations[Rule] = TwoGenerations(2048)
BindNew = Callable[[Any, Signature], Call]


def rule_of(operation: Operation, expression: Expression, careful: Careful) -> Rule:
    """Return the rule of an expression, the same object for all of its calls."""
    found = RULES.get(expression)
    if found is None:
        takes = [dtype and _take(operation, position, dtype) for position, dtype in enumerate(expression.scalar_dtypes)]
        rule = Rule((None, *takes), operation.passes_numbers, partial(careful, operation))
        found = RULES.put(expression, rule)
    return found


def call_of(rule: Rule, loop: Loop, kernel: Kernel, keys: Sequence[Any], target: Signature, *, new: bool) -> Call:
    """Return the call of a kernel over a loop; without a kernel there is nothing to launch."""
    signature = target if new else None
    if kernel is None:
        return _call(_nothing, rule, signature, (None,) * len(rule.numbers))
    gaps = () if new else (None, *[_gap(target, key) if isinstance(key, Signature) else None for key in keys])
    backend = target.device.backend
    if backend.call_writer is None:
        return _call(backend.bind(kernel, loop), rule, signature, gaps)
    return backend.call_writer.bind_call(kernel, loop, rule, signature, gaps)


def bind_new(backend: Backend, kernel: Kernel, rule: Rule) -> BindNew:
    """Return what makes a call of a kernel from a loop that starts at its operands, and the signature to make."""
    if backend.call_writer is not None:
        return backend.call_writer.bind_new(kernel, rule)
    return lambda loop, signature: _call(backend.bind(kernel, loop), rule, signature, ())


def _take(operation: Operation, position: int, dtype: np.dtype) -> Take:
    """What checks a Python number in place of an operand."""
    return lambda number: operation.number(position, number, dtype)


def _gap(target: Signature, operand: Signature) -> Gap:
    """When an operand shares memory with the target."""
    mine, other = target.layout, operand.layout
    near = mine.low * target.itemsize - (other.high + 1) * operand.itemsize
    far = (mine.high + 1) * target.itemsize - other.low * operand.itemsize
    return near, far, mine == other and target.itemsize == operand.itemsize


def _nothing(stream: Any, *operands: Any) -> None:
    """The launch of an empty loop."""


def _call(launch: Launch, rule: Rule, signature: Signature | None, gaps: tuple[Gap | None, ...]) -> Call:
    """The call of a backend that only launches."""
    takes, whole = rule.numbers[1:], rule.whole

    def arguments(operands: Sequence[Any]) -> list[Any]:
        flat: list[Any] = []
        for operand, take in zip(operands, takes, strict=True):
            flat += (operand._buffer, operand._offset) if take is None else (take(operand), 0)
        return flat

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
