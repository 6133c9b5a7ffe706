"""Selection by a condition, on a device that has kernels for it: elements, and their indices.

The size of the result depends on values. Two launches count, the host waits for the number of elements and allocates,
and a third launch stores: one wait for each call. They read the operands in C order, so an array whose last axis is not
its fastest one is copied first, which reads it along its fastest axis.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tilearray.engine.array_type import A
from tilearray.engine.backend import Call
from tilearray.engine.caches import leaf_at
from tilearray.engine.context import STATE
from tilearray.engine.execute import run
from tilearray.engine.operation import Operation
from tilearray.engine.remembered import again, remember
from tilearray.engine.signature import ArrayBase, Signature, new_array, signature_of
from tilearray.errors import WriteError
from tilearray.geometry.layout import Layout
from tilearray.ops.execute import store


def compressed(x: A, condition: ArrayBase) -> A:
    """Return the elements of an array where a condition of the same shape is true, in C order."""
    return _selected(_operations().elements, _in_order(condition), _in_order(x))[0]


def without_repeats(x: A, equal_nan: bool) -> A:
    """Return the elements of a dense array of one axis that differ from the one before them."""
    words = "without_repeats", equal_nan
    known = again(words, x)
    if known is not None:
        return known
    operation, memory = _operations().first_of_runs[equal_nan], x._view(Layout(x.shape, (0,)))
    (found,) = _selected(operation, x, memory)
    plan = leaf_at(STATE.get().plans, (operation, x._signature, memory._signature))
    if plan is not None:
        remember(words, (x,), _of_one_array(plan.call, memory._signature))
    return found


def _of_one_array(call: Call, everywhere: Signature) -> Call:
    """Return the call of an array whose second operand is the array itself, as memory."""

    def of_array(stream: Any, x: Any) -> Any:
        return call(stream, x, x._make(x._buffer, x._offset, everywhere))[0]

    return of_array


def places_of(condition: A) -> tuple[A, ...]:
    """Return the indices of the true elements of an array with axes, in C order: an int64 array for each axis."""
    condition = _in_order(condition)
    return _selected(_operations().positions(len(condition._signature.layout.shape)), condition)


@cache
def _operations() -> Any:
    """The operations of selections, which few programs need."""
    from tilearray.ops import selection

    return selection


def _selected(operation: Operation, *operands: Any) -> Any:
    """Return the results of a selection. Its plan is looked up here, and nothing else is done if it is known."""
    state = STATE.get()
    try:
        plan = state.plans[operation]
        for x in operands:
            plan = plan[x._signature]
        call = plan.call
    except KeyError:
        return run(operation, [x._signature for x in operands], operands, None, _refuse)
    return call(state.stream, *operands)


def _in_order(x: Any) -> Any:
    """Return an array whose last axis is its fastest one: the array itself, or a copy."""
    layout = x._signature.layout
    if layout.contiguous:
        return x
    strides = [abs(stride) for size, stride in zip(layout.shape, layout.strides, strict=True) if size > 1]
    if not strides or not layout.size or strides[-1] <= min([stride for stride in strides if stride], default=0):
        return x
    dense = new_array(x.__class__, signature_of(Layout.of(layout.shape), x.dtype, x.device))
    store(dense, x)
    return dense


def _refuse(operation: Operation, operands: Any, out: ArrayBase) -> Any:
    del operands, out
    raise WriteError(f"{operation.name}: a selection makes a new array")
