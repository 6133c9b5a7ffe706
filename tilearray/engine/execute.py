"""Run an operation: find its plan, or make one, and call it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from tilearray.engine.caches import PLANS, Nested, TwoGenerations, leaf_at, leaves
from tilearray.engine.call import Careful
from tilearray.engine.context import STATE, plans_of
from tilearray.engine.devices import Device
from tilearray.engine.expression import Expression
from tilearray.engine.operation import FixedOperation, OperandType, Operation, expression_of, typed_scalar
from tilearray.engine.plan import Key, Plan, make_plan, types_of
from tilearray.engine.signature import ArrayBase, Signature
from tilearray.engine.watch import WATCH
from tilearray.errors import TileArrayError, WriteError
from tilearray.promotion.scalars import ScalarClass
from tilearray.promotion.semantics import Semantics

Recorder = Callable[[Operation, Semantics, Sequence[Key], Sequence[Any], Any], Any]
"""``recorder(operation, semantics, keys, operands, out)`` records a call instead of planning it."""


def run(operation: Operation, keys: list[Key], operands: Sequence[Any], out: Any, careful: Careful) -> Any:
    """Run an operation on operands and their keys. Write to `out` if it is given, else make a new array.

    Parameters
    ----------
    operation : Operation
    keys : list of Key
        For each operand: the signature of an array, or the class or dtype of a Python number.
    operands : sequence
        Arrays and Python numbers.
    out : Array or None
        The target. It must be writable, and an operand that shares its memory must be the same view.
    careful : callable
        Later calls of the same plan go to this function if their target does not meet these conditions.
    """
    state = STATE.get()
    semantics = state.semantics
    if state.recording is not None:
        recorded = state.recording.call(operation, semantics, keys, operands, out)
        if recorded is not NotImplemented:
            return recorded
    root = semantics.plans or plans_of(semantics)  # another thread may change the semantics now
    path = (operation, *keys) if out is None else (operation.into, out._signature, *keys)
    plan: Any = root
    for key in path:
        plan = plan.get(key)
        if plan is None:
            recorder = recorder_of(keys, out)
            if recorder is not None:
                return recorder(operation, semantics, keys, operands, out)
            plan = PLANS.find_old(root, path)
            if plan is None:
                plan = make_plan(operation, semantics, keys, None if out is None else out._signature, careful)
                if WATCH.plan is not None:
                    WATCH.plan(plan, keys)
            PLANS.keep(root, path, plan)
            for key in keys:
                if key.__class__ is ScalarClass:
                    _keep_by_class(plan, semantics, root, path, keys, out)
                    break
            break
    return plan.call(state.stream, *operands) if out is None else plan.call(state.stream, out, *operands)


def plans_in_force() -> list[Plan]:
    """Return the plans of the active semantics, without the calls that `tilearray.engine.remembered` keeps."""
    return [leaf for leaf in leaves(STATE.get().plans) if isinstance(leaf, Plan)]


def recorder_of(keys: Sequence[Key], out: ArrayBase | None) -> Recorder | None:
    """Return what runs operations on a device whose operations are recorded, if an operand is on one.

    A device may record what another one then records: the deepest device is asked.
    """
    found = None if out is None or out._signature.device.recorder is None else out._signature.device
    for key in keys:
        if not isinstance(key, Signature) or key.device.recorder is None:
            continue
        if found is None or key.device.depth > found.depth:
            found = key.device
    return None if found is None else found.recorder


def is_recorded(device: Device) -> bool:
    """Return whether calls on a device are recorded now: by the device, or in a `lazy` block."""
    return device.recorder is not None or STATE.get().recording is not None


def _keep_by_class(
    plan: Plan, semantics: Semantics, root: Nested, path: tuple[Any, ...], keys: list[Key], out: ArrayBase | None
) -> None:
    """Keep a plan under the classes of its Python numbers, if it depends only on these."""
    target = None if out is None else out._signature.dtype
    if _classes_decide(plan.operation, semantics, tuple(keys), target, plan.expression):
        PLANS.keep(root, tuple([_CLASS_OF[key] if type(key) is ScalarClass else key for key in path]), plan)


def run_fixed(operation: FixedOperation, operands: Sequence[ArrayBase | int | float], out: Any) -> Any:
    """Run an operation with fixed dtypes. Write to a target that shares no memory with an operand, and return it.

    Each number is checked against the dtype of its input.
    """
    return run(operation, keys_of(operation, operands), operands, out, _refuse)


class FixedCall:
    """The calls of an operation with fixed dtypes whose operands and targets always have the same signatures.

    Its plan is the same in all semantics. It is kept here from the first call on, and later calls look nothing up,
    until `PLANS` is cleared.
    """

    __slots__ = ("_known", "_operation")

    def __init__(self, operation: FixedOperation) -> None:
        self._operation = operation
        self._known: tuple[int, Any] = (-1, None)  # the epoch of the plans, and the call: one object, read once

    def run(self, operands: Sequence[ArrayBase | int | float], out: Any) -> None:
        """Run the operation as `run_fixed` does."""
        state, (epoch, call) = STATE.get(), self._known
        if epoch == PLANS.epoch and state.recording is None:
            call(state.stream, out, *operands)
            return
        epoch = PLANS.epoch
        run_fixed(self._operation, operands, out)
        if state.recording is None:
            path = (self._operation.into, out._signature, *keys_of(self._operation, operands))
            plan = leaf_at(plans_of(state.semantics), path)
            if plan is not None:  # a device that records calls makes none; another thread may have evicted it
                self._known = epoch, plan.call


def keys_of(operation: FixedOperation, operands: Sequence[ArrayBase | int | float]) -> list[Key]:
    """Return the keys of operands: signatures, and the dtypes of numbers."""
    return [
        operand._signature if dtype is None else typed_scalar(dtype)  # type: ignore[union-attr]
        for operand, dtype in zip(operands, operation.graph.scalar_dtypes, strict=True)
    ]


def _refuse(operation: FixedOperation, operands: Sequence[Any], out: Any) -> Any:
    del operands, out
    raise WriteError(f"{operation.name}: the target is read-only, or shares memory with an operand; write to x.copy()")


# --- plans that depend only on the class of a number ---------------------------------------------------------------

_RUNGS: dict[type, tuple[ScalarClass, ...]] = {
    bool: (ScalarClass.BOOL,),
    int: (ScalarClass.INT32, ScalarClass.UINT32, ScalarClass.INT64, ScalarClass.UINT64, ScalarClass.HUGE),
    float: (ScalarClass.FLOAT32, ScalarClass.FLOAT64),
    complex: (ScalarClass.COMPLEX,),
}
_CLASS_OF = {rung: kind for kind, rungs in _RUNGS.items() for rung in rungs}
_DECIDES: TwoGenerations[bool] = TwoGenerations(2048)
MOST_NUMBERS = 2
"""The most Python numbers of a call whose classes may decide: two ints have 25 pairs of value classes."""


def _classes_decide(
    operation: Operation, semantics: Semantics, keys: tuple[Key, ...], out: np.dtype | None, expression: Expression
) -> bool:
    """Return whether all Python numbers of the classes of those among keys, one or two, give the same expression.

    ``float32 * 2.5`` has this property, ``int8 * 2.5`` does not. The plan is then found by the class, and no code looks
    at the value.
    """
    numbers = [key for key in keys if type(key) is ScalarClass]
    if len(numbers) > MOST_NUMBERS:
        return False
    classes = [_CLASS_OF[number] for number in numbers]
    types = types_of(keys, semantics)
    given = iter(classes)
    asked = (operation, semantics.key, tuple([next(given) if type(t) is ScalarClass else t for t in types]), out)
    decides = _DECIDES.get(asked)
    if decides is None:
        decides = True
        for rungs in product(*[_RUNGS[each] for each in classes]):
            rung = iter(rungs)
            other = tuple([next(rung) if type(t) is ScalarClass else t for t in types])
            decides = decides and _gives(expression, operation, semantics, other, out)
        _DECIDES.put(asked, decides)
    return decides


def _gives(
    expression: Expression,
    operation: Operation,
    semantics: Semantics,
    types: tuple[OperandType, ...],
    out: np.dtype | None,
) -> bool:
    try:
        found = expression_of(operation, semantics, types, out)
    except TileArrayError:
        return False
    return found is expression or found.content == expression.content  # the cache may have evicted the first one
