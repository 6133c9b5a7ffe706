"""Run a row without shortcuts, for calls that have no plan yet or that a plan may not decide.

Operands are Arrays, Python numbers and NumPy scalars. This module checks the target, copies operands that share its
memory, and gives each number a key or replaces it by a 0-d array. Then the engine runs the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilearray.engine.array_type import A
from tilearray.engine.context import STATE
from tilearray.engine.execute import run
from tilearray.engine.operation import typed_scalar
from tilearray.engine.plan import Key
from tilearray.engine.signature import ArrayBase, overlap
from tilearray.errors import DTypeError, OperandError, ScalarOverflowError, WriteError, type_name
from tilearray.ops.moves import assign, storing
from tilearray.ops.numbers import as_operands, numbers_alone, of_numpy, scalar_key
from tilearray.ops.row import Row
from tilearray.promotion.scalars import Number, as_number


def execute(row: Row, operands: Sequence[Any], out: Any = None) -> Any:
    """Run a row on Arrays and numbers. Write to `out` if it is given, else make a new array."""
    if len(operands) == row.arity + 1 and out is None:  # NumPy takes the target by position
        *operands, out = operands
    if len(operands) != row.arity:
        names = ", ".join([f"x{place}" for place in range(1, row.arity + 1)])
        given = f"{row.name}: expected {row.arity} operands, got {len(operands)}"
        raise TypeError(f"{given}; write ta.{row.name}({names})")
    if out is not None:
        check_target(row.name, out)
        operands = [_unaliased(operand, out) for operand in operands]
    keys: list[Key] = []
    numbers = 0
    for operand in operands:
        if issubclass(type(operand), ArrayBase):
            keys.append(operand._signature)
            continue
        key = scalar_key(row, operand, operands)
        if key is None:
            known = of_numpy(row, operands)
            if known is not None:
                return run(row, *known, out, execute)
            return execute(row, as_operands(row, operands, out), out)
        keys.append(key)
        numbers += 1
    if numbers == row.arity and out is None:
        return execute(row, numbers_alone(row, operands), out)
    return run(row, keys, operands, out, execute)


def check_target(function: str, out: Any) -> None:
    """Raise an error if `out` is not an Array, is read-only, or has several elements in one place."""
    if not issubclass(type(out), ArrayBase):
        raise OperandError(
            f"{function}: expected a tilearray Array as out, got {type_name(out)}; write out=ta.empty(...)"
        )
    if not out._recorded and out._buffer.readonly:
        raise WriteError(f"{function}: the target is read-only; write to x.copy() instead")
    layout = out._signature.layout
    if layout.overlaps_itself:
        raise WriteError(
            f"{function}: the target has several elements in one place (shape {layout.shape}, strides "
            f"{layout.strides}); write to x.copy() instead"
        )


def _unaliased(operand: Any, out: ArrayBase) -> Any:
    """Return `operand`, or a copy of it if it shares memory with `out` and is not the same view."""
    if operand is out or not issubclass(type(operand), ArrayBase) or not overlap(operand, out):
        return operand
    mine, target = operand._signature, out._signature
    same_elements = mine.layout == target.layout and mine.itemsize == target.itemsize
    return operand if same_elements and operand._address == out._address else copy_of(operand)


# --- moving: the plan is looked up here, and nothing else is done if it is known ------------------------------------


def copy_of(x: A) -> A:
    """Return a dense copy of an array with the same order of strides."""
    signature = x._signature
    state = STATE.get()
    try:
        call = state.plans[assign][signature].call
    except KeyError:
        return run(assign, [signature], (x,), None, execute)
    return call(state.stream, x)


def stored_as(row: Row, x: A, dtype: np.dtype) -> A:
    """Return a new array of the values of `x` in another dtype, cast by `row`."""
    operation, signature = storing(row, dtype), x._signature
    state = STATE.get()
    try:
        call = state.plans[operation][signature].call
    except KeyError:
        return run(operation, [signature], (x,), None, execute)
    return call(state.stream, x)


def store(out: ArrayBase, value: ArrayBase, row: Row = assign) -> None:
    """Cast an array by a row, and write it to `out`, to whose shape it broadcasts."""
    state = STATE.get()
    try:
        call = state.plans[row.into][out._signature][value._signature].call
    except KeyError:
        execute(row, (value,), out)
        return
    call(state.stream, out, value)


def fill(out: A, number: Number, function: str) -> A:
    """Convert a Python number to the dtype of `out` and write it to every element."""
    signature = out._signature
    key, state = typed_scalar(signature.dtype), STATE.get()
    try:
        call = state.plans[assign.into][signature][key].call
    except KeyError:
        check_target(function, out)
        return run(assign, [key], (as_number(number, signature.dtype, function),), out, execute)
    try:
        return call(state.stream, out, number)
    except (DTypeError, ScalarOverflowError):
        as_number(number, signature.dtype, function)  # the same error, of this function
        raise
