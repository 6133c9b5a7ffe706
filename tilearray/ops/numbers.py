"""Operands that are not Arrays: Python numbers and NumPy scalars.

Both get a key, and a kernel takes them as arguments. The key of a Python number is its value class, so a plan depends
on the dtype that a value needs and never on the value. NumPy scalars are strongly typed: they promote like 0-d arrays,
which they become in calls without Arrays. `tilearray.functions.arguments` makes Arrays of ndarrays
and sequences. All other operands are errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.context import STATE
from tilearray.engine.devices import Device, default_device
from tilearray.engine.operation import typed_scalar
from tilearray.engine.plan import Key
from tilearray.engine.signature import ArrayBase, signature_of
from tilearray.errors import OperandError, type_name
from tilearray.geometry.layout import Layout
from tilearray.ops.hooks import HOOKS
from tilearray.ops.promotion_methods import Promotion, check_exponent
from tilearray.ops.row import Row
from tilearray.promotion.scalars import Number, ScalarClass, as_number, classify


def scalar_key(row: Row, number: Any, operands: Sequence[Any]) -> Key | None:
    """Return the key of a Python number, or None if `as_operands` must replace or reject the operand.

    The key is the value class of the number. In a comparison of integers, an out-of-range number gets the first dtype
    of `INTEGER_LADDER` that holds it, because such comparisons are exact.
    """
    found = classify(number)
    if row.promotion is not Promotion.ALWAYS_BOOL or found not in INTEGER_LADDER:
        return found
    dtype = next((operand._signature.dtype for operand in operands if issubclass(type(operand), ArrayBase)), None)
    limits = INTEGER_LIMITS.get(dtype)
    if limits is None or limits[0] <= number <= limits[1]:
        return found
    rung = INTEGER_LADDER[found]
    return None if rung is None else typed_scalar(rung)


INTEGER_LADDER = {
    ScalarClass.INT32: dtypes.int32,
    ScalarClass.UINT32: dtypes.uint32,
    ScalarClass.INT64: dtypes.int64,
    ScalarClass.UINT64: dtypes.uint64,
    ScalarClass.HUGE: None,
}
INTEGER_LIMITS: dict[np.dtype | None, tuple[int, int]] = {
    dtype: (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) for dtype in dtypes.ALL if dtype.kind in "iu"
}
INTEGER_LIMITS[dtypes.bool_] = (1, 0)  # an empty range: beside bool, an integer always gets a dtype of the ladder


OF_NUMPY = {dtype.type: typed_scalar(dtype, of_numpy=True) for dtype in dtypes.ALL if dtype.kind in "biufc"}
"""The keys of NumPy's scalars, by class."""


def of_numpy(row: Row, operands: Sequence[Any]) -> tuple[list[Key], Sequence[Any]] | None:
    """Return keys and operands where each NumPy scalar is a Python number.

    None if other operands have no key, no operand is an Array, or the row refuses some Python numbers.
    """
    if row.refuse_scalar is not None:
        return None
    keys: list[Key] = []
    found: list[Any] = []
    arrays = 0
    for operand in operands:
        if issubclass(type(operand), ArrayBase):
            keys.append(operand._signature)
            arrays += 1
        elif type(operand) in OF_NUMPY:
            keys.append(OF_NUMPY[type(operand)])
            operand = operand.item()
        else:
            key = scalar_key(row, operand, operands)
            if key is None:
                return None
            keys.append(key)
        found.append(operand)
    return (keys, found) if arrays else None


def as_operands(row: Row, operands: Sequence[Any], out: ArrayBase | None) -> list[Any]:
    """Return operands that all have keys. NumPy's scalars, ndarrays and sequences become Arrays.

    Unknown objects raise OperandError. In a comparison with integers, an integer beyond 64 bits acts as infinity.
    """
    device = next((operand._signature.device for operand in (*operands, out) if isinstance(operand, ArrayBase)), None)
    known = [
        scalar_array(operand, device or default_device(), row.name) if isinstance(operand, np.generic) else operand
        for operand in HOOKS.as_arrays(row.name, operands, out)
    ]
    integers = all(operand._signature.dtype in INTEGER_LIMITS for operand in known if isinstance(operand, ArrayBase))
    for position, operand in enumerate(known):
        if issubclass(type(operand), ArrayBase):
            continue
        found = classify(operand)
        if found is None:
            made = "float" if isinstance(operand, str) else "ta.asarray"
            raise OperandError(
                f"{row.name}: expected tilearray Arrays or numbers, got {type_name(operand)} as operand "
                f"{position + 1}; write {made}(x{position + 1})"
            )
        if found is ScalarClass.HUGE and row.promotion is Promotion.ALWAYS_BOOL and integers:
            known[position] = math.inf if operand > 0 else -math.inf
    return known


def numbers_alone(row: Row, numbers: Sequence[Any]) -> list[Any]:
    """Return 0-d arrays of Python numbers, for a call without arrays. Their common kind and values decide the dtype."""
    taken = _taken_alone(row, [class_of(number) for number in numbers])
    numbers = [*[number != 0 for number in numbers[: row.masks]], *numbers[row.masks :]]
    if row.refuse_scalar is not None:
        for position, number in enumerate(numbers):
            row.refuse_scalar(row, position, number, taken[position])
    return [
        scalar_array(host_number(number, dtype, row.name), default_device(), row.name)
        for number, dtype in zip(numbers, taken, strict=True)
    ]


def _taken_alone(row: Row, classes: list[ScalarClass]) -> list[np.dtype]:
    """Return the dtype of each number of a call without arrays."""
    if row.promotion is Promotion.TRUTH:
        return [dtypes.bool_] * row.arity
    end = row.arity - row.exponents
    common = STATE.get().semantics.result_type(classes[row.masks : end], row.name)
    return [
        *(dtypes.bool_ for _ in classes[: row.masks]),
        *[common] * (end - row.masks),
        *(check_exponent(row.name, found) for found in classes[end:]),
    ]


def class_of(number: Any) -> ScalarClass:
    """Return the value class of a Python number. Other objects are not allowed."""
    found = classify(number)
    assert found is not None
    return found


def host_number(number: Number, dtype: np.dtype, function: str) -> np.ndarray:
    """Return a Python number as a 0-d ndarray. Check that it fits the dtype, and round it once."""
    return _host_scalar()(as_number(number, dtype, function), dtype)


def rounded_number(number: Number, dtype: np.dtype) -> np.ndarray:
    """Return a number that `as_number` gave for a dtype as a 0-d ndarray, rounded once."""
    return _host_scalar()(number, dtype)


@cache
def _host_scalar() -> Callable[[Number, np.dtype], np.ndarray]:
    """The host's function; an import statement in a function takes longer than its call."""
    from tilearray_host.casts import scalar

    return scalar


def scalar_array(value: Any, device: Device, function: str) -> Any:
    """Return a NumPy scalar as a 0-d Array, which is strongly typed."""
    array = np.asarray(value)
    dtype = dtypes.as_dtype(array.dtype, function)
    backend = device.backend
    buffer, offset = backend.from_numpy(array, copy=True, stream=backend.own_stream(STATE.get().stream))
    return ArrayBase._public._make(buffer, offset, signature_of(Layout.of(()), dtype, device))
