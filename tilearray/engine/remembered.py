"""Calls that are found again by their words, the function and its arguments, and the signatures of their arrays.

`roll` reads and checks its arguments, and finds an operation, a target and numbers before it launches. All of this
follows from the words of the call and the signature of the array. So the launch is kept under both, beside the plans of
the semantics, and a call in the same words does two lookups before it. What drops the plans drops these calls.

If the dtypes of a call depend on the semantics, `State.changes` is among its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilearray.engine.backend import Backend, Call, Launch
from tilearray.engine.caches import PLANS, leaf_at
from tilearray.engine.context import NO_PLANS, STATE
from tilearray.engine.execute import is_recorded, keys_of
from tilearray.engine.operation import FixedOperation, Operation
from tilearray.engine.plan import Plan
from tilearray.engine.signature import ArrayBase, empty_array
from tilearray.engine.watch import WATCH

Words = tuple[Any, ...]
"""A function and its arguments: hashable, and no two of them equal and read differently."""

INT_OR_NONE, _INT = frozenset({int, type(None)}), frozenset({int})


def is_plain(argument: Any) -> bool:
    """Return whether an argument is an int, None or a tuple of ints: True and 1.0 equal 1, and are read differently."""
    kind = argument.__class__
    return kind in INT_OR_NONE or (kind is tuple and _INT.issuperset(map(type, argument)))


def again(words: Words | None, x: Any) -> Any:
    """Make a call that is remembered for the signature of an array; None if there is none."""
    if words is None:
        return None
    state = STATE.get()
    try:
        call = state.plans[words][x._signature]
    except (KeyError, AttributeError, TypeError):  # not remembered, not an Array, or a word is not hashable
        return None
    return call(state.stream, x)


def again_of_arrays(words: Words | None, *arrays: Any) -> Any:
    """As `again`, for several arrays: their signatures follow the words."""
    if words is None:
        return None
    state = STATE.get()
    try:
        call: Any = state.plans[words]
        for x in arrays:
            call = call[x._signature]
    except (KeyError, AttributeError, TypeError):
        return None
    return call(state.stream, *arrays)


def remember(words: Words, arrays: Sequence[ArrayBase], call: Call) -> None:
    """Keep the call of arrays of these signatures under its words. In a `lazy` block none is kept."""
    root = STATE.get().plans
    if root is not NO_PLANS:
        PLANS.keep(root, (words, *[x._signature for x in arrays]), call)


def remember_launch(
    words: Words | None,
    x: ArrayBase,
    operation: Operation,
    operands: Sequence[Any],
    result: ArrayBase,
    out: ArrayBase | None = None,
) -> None:
    """Keep the launch of an operation that was run as the whole call of an array, if there are words.

    Parameters
    ----------
    words : Words or None
    x : Array
        The array of the call.
    operation, operands, result, out
        As `launch_making` takes them. Numbers are the same in each call, and arrays are views of `x`.
    """
    if words is None or is_recorded(x._signature.device):
        return
    places = [place for place, operand in enumerate(operands) if isinstance(operand, ArrayBase)]
    shifts = [operands[place]._offset - x._offset for place in places]
    if any(operands[place]._buffer is not x._buffer for place in places):
        return
    if any(shifts) and not x._signature.aligned:  # the views of another array may be aligned otherwise
        return
    launch = launch_making(operation, operands, result, out, places)
    if launch is not None:
        remember(words, (x,), _reading(launch, shifts))


def launch_making(
    operation: Operation, operands: Sequence[Any], result: ArrayBase, out: ArrayBase | None, given: Sequence[int]
) -> Call | None:
    """Return the launch of an operation that was run as a function that makes the result, and returns it.

    It takes a stream and, for the operands at some places, a buffer and an offset, or a number and 0. The result is
    None if the operation launched nothing, or several times, or if calls are recorded or watched.

    Parameters
    ----------
    operation : Operation
    operands : sequence of Array or number
    result : Array
        A new array.
    out : Array or None
        The target that the operation wrote, if it had one: all memory of the result, in any shape.
    given : sequence of int
        Places of operands, with those of all arrays.
    """
    if WATCH.plan is not None:
        return None
    if isinstance(operation, FixedOperation):
        keys: list[Any] = keys_of(operation, operands)
    else:
        keys = [x._signature for x in operands]
    path = (operation, *keys) if out is None else (operation.into, out._signature, *keys)
    plan: Plan | None = leaf_at(STATE.get().plans, path)
    if plan is None or plan.kernel is None or plan.stages:
        return None
    numbers = {
        place: operation.number(place, operand, dtype)
        for place, (operand, dtype) in enumerate(zip(operands, plan.expression.scalar_dtypes, strict=True))
        if dtype is not None and place not in given
    }
    signature, cls = result._signature, result.__class__
    backend: Backend = signature.device.backend
    writer = backend.call_writer
    constants = {1 + place: number for place, number in numbers.items()}
    made = None if writer is None else writer.bind_fused(plan.kernel, plan.loop, (signature,), constants, cls)
    return made or _general(backend.bind(plan.kernel, plan.loop), result, numbers, len(operands))


def _general(bound: Launch, result: ArrayBase, numbers: dict[int, Any], count: int) -> Call:
    """Return what `launch_making` does on a device that writes no launches."""
    signature, cls = result._signature, result.__class__

    def launch(stream: Any, *parts: Any) -> Any:
        out, given = empty_array(cls, signature, stream), iter(parts)
        operands = [(numbers[place], 0) if place in numbers else (next(given), next(given)) for place in range(count)]
        bound(stream, out._buffer, 0, *[part for operand in operands for part in operand])
        return out

    return launch


def _reading(launch: Call, shifts: Sequence[int]) -> Call:
    """Return the call of an array that launches over views of it, which begin some bytes further."""

    def of_views(stream: Any, x: Any) -> Any:
        buffer, offset = x._buffer, x._offset
        return launch(stream, *[part for shift in shifts for part in (buffer, offset + shift)])

    def of_array(stream: Any, x: Any) -> Any:
        return launch(stream, x._buffer, x._offset)

    return of_views if len(shifts) > 1 or any(shifts) else of_array
