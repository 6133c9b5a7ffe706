"""Following: a function runs as always, and the operations that its arguments reach are recorded beside it.

`tilearray.engine.execute.run` hands each operation on followed arrays to `record`, which runs it on the arrays below,
and adds a `Step`: which views it read and wrote, and how a cotangent of the result goes back to the operands. Nothing
is recorded, or kept, of a call that no vjp follows.

What an operation reads is kept only if its rule reads it again. A write to memory that is kept goes to a copy, so
functions may write to the arrays that they make.

An operation runs at the deepest level of its operands, and then below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

from tilearray import dtypes
from tilearray.engine.execute import run
from tilearray.engine.operation import Operation
from tilearray.engine.plan import Key
from tilearray.engine.signature import ArrayBase, placed
from tilearray.errors import GradientError, WriteError
from tilearray.functions.manipulation import new_like
from tilearray.functions.products import matmul
from tilearray.functions.softmax import log_softmax, logsumexp, softmax
from tilearray.geometry.layout import Layout
from tilearray.geometry.strides import rows_along
from tilearray.gradients.followed import FollowingDevice, Memory, followed, is_followed, lowered, memory_of, view_of
from tilearray.gradients.pullbacks import Pullback, pullback_of
from tilearray.gradients.steps import FLOATS, Record, Step, current
from tilearray.gradients.views import View
from tilearray.ops.execute import copy_of, execute
from tilearray.ops.moves import Storing
from tilearray.ops.row import Row
from tilearray.ops.softmax import RowFunction
from tilearray.promotion.semantics import Semantics


def record(
    operation: Operation, semantics: Semantics, keys: Sequence[Key], operands: Sequence[Any], out: ArrayBase | None
) -> Any:
    """Run a call on the arrays below, add it to the record of its level, and return its result."""
    device = _deepest(operands, out)
    level = current(device.level)
    active = [is_followed(each, device) and memory_of(each).active for each in operands]
    if out is not None:
        return _written(level, device, operation, semantics, keys, operands, out, active)
    given = [lowered(each, device) for each in operands]
    found = _run(operation, keys, given, None)
    if level.through is not None:
        found = level.through(operation.name, found)
    if not any(active) or dtypes.info(found._signature.dtype).kind not in FLOATS:
        return found
    pull, kept, keeps_result = pullback_of(operation, given, found, active)
    _keep(operands, kept, device)
    made = followed(found, level.level, active=True)
    memory_of(made).kept = keeps_result
    level.steps.append(Step(_reads(operands, active), (view_of(made),), pull))
    return made


def recorded(device: FollowingDevice, found: Any, operands: Sequence[Any], pull: Pullback) -> Any:
    """Add a call that ran below, with all operands and the result kept, and return its followed result."""
    return recorded_all(device, (found,), operands, pull)[0]


def recorded_all(
    device: FollowingDevice, results: Sequence[Any], operands: Sequence[Any], pull: Pullback
) -> tuple[Any, ...]:
    """Add a call with several results. Only floats among them have cotangents."""
    active = [is_followed(each, device) and memory_of(each).active for each in operands]
    level = current(device.level)
    floats = [isinstance(each, ArrayBase) and dtypes.info(each.dtype).kind in FLOATS for each in results]
    if not any(active) or not any(floats):
        return tuple(results)
    _keep(operands, range(len(operands)), device)
    made = [
        followed(each, level.level, active=True) if flag else each for each, flag in zip(results, floats, strict=True)
    ]
    written = [each for each, flag in zip(made, floats, strict=True) if flag]
    for each in written:
        memory_of(each).kept = True
    level.steps.append(Step(_reads(operands, active), tuple([view_of(each) for each in written]), pull))
    return tuple(made)


def _reads(operands: Sequence[Any], active: Sequence[bool]) -> tuple[View | None, ...]:
    return tuple([view_of(each) if flag else None for each, flag in zip(operands, active, strict=True)])


def _keep(operands: Sequence[Any], places: Sequence[int], device: FollowingDevice) -> None:
    for place in places:
        if is_followed(operands[place], device):
            memory_of(operands[place]).kept = True


def _deepest(operands: Sequence[Any], out: Any) -> FollowingDevice:
    arrays = [each._signature.device for each in (*operands, out) if isinstance(each, ArrayBase)]
    return cast(FollowingDevice, max(arrays, key=lambda device: device.depth))


def _run(operation: Operation, keys: Sequence[Key], operands: list[Any], out: Any) -> Any:
    """Run a call on arrays of the level below."""
    if operation.reduced is not None and out is None:
        if operation.reduced.multiplies:
            return matmul(*operands)
        if isinstance(operation, RowFunction):
            axes, keepdims = operation.reduced.axes, operation.reduced.keepdims
            if operation.name == "logsumexp":
                return logsumexp(operands[0], axes, keepdims, order=operation.order)
            return (softmax if operation.name == "softmax" else log_softmax)(operands[0], axes)
    mine: list[Key] = [
        each._signature if isinstance(each, ArrayBase) else key for each, key in zip(operands, keys, strict=True)
    ]
    careful = execute if isinstance(operation, Row | Storing) else _refuse
    return run(operation, mine, operands, out, careful)


def _refuse(operation: Operation, operands: Any, out: ArrayBase) -> Any:
    del operands, out
    raise WriteError(f"{operation.name}: the target shares memory with an operand; write to x.copy()")


# --- writing ---------------------------------------------------------------------------------------------------------


def _written(
    level: Record,
    device: FollowingDevice,
    operation: Operation,
    semantics: Semantics,
    keys: Sequence[Key],
    operands: Sequence[Any],
    out: ArrayBase,
    active: list[bool],
) -> Any:
    """Run a call that writes to an array."""
    del semantics
    if not is_followed(out, device):
        if any(active):
            raise GradientError(
                f"vjp: {operation.name} writes a differentiated value to an array from outside, or to a constant of "
                f"the function; write to ta.zeros_like(x) of an argument x, in place from the start"
            )
        return _run(operation, keys, [lowered(each, device) for each in operands], out)
    memory = memory_of(out)
    given = [lowered(each, device) for each in operands]
    pull: Pullback | None = None
    keeps_result = False
    if any(active):
        like = lowered(out)
        pull, kept, keeps_result = pullback_of(operation, given, like, active)
        _keep(operands, kept, device)
    whole = _is_whole(out, memory)
    if memory.kept:
        _renew(out, memory, whole)
    target = lowered(out)
    if keeps_result:  # the rule reads the array that is written now
        pull, _, _ = pullback_of(operation, given, target, active)
    _run(operation, keys, given, target)
    was_active = memory.active
    memory.active = any(active) or (was_active and not whole)
    memory.kept = keeps_result
    if any(active) or was_active:
        level.steps.append(Step(_reads(operands, active), (view_of(out),), pull))
    return out


def _is_whole(x: ArrayBase, memory: Memory) -> bool:
    signature = x._signature
    layout = signature.layout
    dense = layout.size == layout.high - layout.low + 1 and not layout.overlaps_itself
    return dense and signature.nbytes >= memory.nbytes


def _renew(out: Any, memory: Memory, whole: bool) -> None:
    """Give memory that is read again later to the steps that read it, and go on in other memory."""
    below = lowered(out)
    device = below._signature.device
    if whole:
        memory.real = _allocated(below, memory.nbytes)
        return
    count, layout = memory.nbytes // below._signature.itemsize, below._signature.layout
    strides = rows_along(layout.shape, layout.strides)
    strides = (1,) if count % strides[0] else strides
    dense = Layout.of((count // strides[0], *[stride // inner for stride, inner in pairwise(strides)]))
    array = below._make(memory.real, 0, placed(memory.real, 0, dense, below._signature.dtype, device))
    copy = copy_of(array)
    if is_followed(array) and not is_followed(copy, device):  # a constant of the level below
        copy = followed(copy, device.level, active=False)
    memory.real = copy._buffer


def _allocated(like: Any, nbytes: int) -> Any:
    return new_like(like, (nbytes // like._signature.itemsize,))._buffer
