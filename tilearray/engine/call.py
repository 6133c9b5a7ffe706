"""Plans -> calls: a function of a stream and operands that checks what depends on memory, launches, returns the result.

Whether a target may be written and whether it shares memory with an operand, and whether a Python number fits, is all
that a plan cannot know. A backend may write the whole call out (`bind_call`; `bind_new`, for any loop of a kernel),
which saves half the host time of a small operation; `_through` does the same for one that only launches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilearray.engine.caches import TwoGenerations
from tilearray.engine.devices import Launch
from tilearray.engine.signature import ArrayBase, Signature, empty_array
from tilearray.promotion.scalars import Number, as_number

if TYPE_CHECKING:
    from tilearray.geometry.loop import Loop
    from tilearray.ops.op import Op
    from tilearray.ops.typing import Body

Call = Callable[..., Any]
Take = Callable[[Any], Number]
Gap = tuple[int, int, bool]
"""An operand shares memory with the target if its address is between two distances from the target's, in bytes; and
whether it is the same view if the distance is 0."""


class Rule(NamedTuple):
    """What all calls of a body have in common.

    Attributes
    ----------
    numbers : tuple
        For the output and each operand None, or what checks a Python number and returns what is passed for it.
    raw : bool
        Whether an int for an integer dtype, and a float for a float, may be passed without that, if it fits.
    whole : callable
        ``whole(operands, out)`` goes the whole way: checks the target, copies operands that it shares memory with.
    """

    numbers: tuple[Take | None, ...]
    raw: bool
    whole: Callable[[Sequence[Any], Any], Any]


RULES: TwoGenerations[Rule] = TwoGenerations(2048)
BindNew = Callable[[Any, Signature], Call]


def rule_of(op: Op, body: Body) -> Rule:
    """Return the rule of a body, the same object for all of its calls."""
    found = RULES.get(body)
    if found is None:
        takes = [dtype and _take(op, position, dtype) for position, dtype in enumerate(body.scalar_dtypes)]
        found = RULES.put(body, Rule((None, *takes), op.refuse_scalar is None, op.execute))
    return found


def call_of(rule: Rule, loop: Loop, kernel: Any, keys: Sequence[Any], target: Signature, *, new: bool) -> Call:
    """Return the call of a kernel over a loop; without a kernel there is nothing to launch."""
    signature = target if new else None
    if kernel is None:
        return _through(_nothing, rule, signature, (None,) * len(rule.numbers))
    gaps = () if new else (None, *[_gap(target, key) if isinstance(key, Signature) else None for key in keys])
    backend = target.device.backend
    bind_call = getattr(backend, "bind_call", None)
    if bind_call is None:
        return _through(backend.bind(kernel, loop), rule, signature, gaps)
    return bind_call(kernel, loop, rule, signature, gaps)


def bind_new(backend: Any, kernel: Any, rule: Rule) -> BindNew:
    """Return what makes a call of a kernel, a loop that begins where its operands do, and the signature to make."""
    written_out = getattr(backend, "bind_new", None)
    if written_out is not None:
        return written_out(kernel, rule)
    return lambda loop, signature: _through(backend.bind(kernel, loop), rule, signature, ())


def _take(op: Op, position: int, dtype: np.dtype) -> Take:
    """What checks a Python number in place of an operand."""

    def take(number: Number) -> Number:
        checked = as_number(number, dtype, op.name)
        if op.refuse_scalar is not None:
            op.refuse_scalar(op, position, checked, dtype)
        return checked

    return take


def _gap(target: Signature, operand: Signature) -> Gap:
    """When an operand shares memory with the target."""
    mine, other = target.layout, operand.layout
    near = mine.low * target.itemsize - (other.high + 1) * operand.itemsize
    far = (mine.high + 1) * target.itemsize - other.low * operand.itemsize
    return near, far, mine == other and target.itemsize == operand.itemsize


def _nothing(stream: Any, *operands: Any) -> None:
    """The launch of an empty loop."""


def _through(launch: Launch, rule: Rule, signature: Signature | None, gaps: tuple[Gap | None, ...]) -> Call:
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
