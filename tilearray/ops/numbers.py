"""What may stand beside an Array: Python numbers, which have a key, and NumPy scalars, which become arrays.

A Python number's key is its value class, so that plans depend on the dtype that a value asks for and never on the
value. NumPy scalars are strongly typed: they promote like any 0-d array. Everything else is an error here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE
from tilearray.engine.devices import Device, default_device
from tilearray.engine.plan import Key, types_of
from tilearray.engine.signature import ArrayBase, signature_of
from tilearray.errors import OperandError, TileArrayError
from tilearray.geometry.layout import Layout
from tilearray.ops.typing import Body, Promotion, Type, body_of, check_exponent, check_mask, typed_scalar
from tilearray.promotion.scalars import Number, ScalarClass, as_number, classify

if TYPE_CHECKING:
    from tilearray.ops.op import Op
    from tilearray.promotion.semantics import Semantics


def scalar_key(op: Op, number: Any, operands: Sequence[Any]) -> Key | None:
    """Return the key of a Python number, or None for what must be replaced first (`as_operands`) or is none.

    The key is the number's value class, or the dtype in which a comparison of integers takes it. Such a comparison is
    exact, whatever the array's dtype holds: the number takes the first dtype of the ladder that holds it.
    """
    found = classify(number)
    if op.promotion is not Promotion.ALWAYS_BOOL or found not in INTEGER_LADDER:
        return found
    dtype = next((operand._signature.dtype for operand in operands if isinstance(operand, ArrayBase)), None)
    limits = INTEGER_LIMITS.get(dtype)
    if limits is None or limits[0] <= number <= limits[1]:
        return found
    rung = INTEGER_LADDER[found]
    return None if rung is None else typed_scalar(rung)


_RUNGS: dict[type, tuple[ScalarClass, ...]] = {
    bool: (ScalarClass.BOOL,),
    int: (ScalarClass.INT32, ScalarClass.UINT32, ScalarClass.INT64, ScalarClass.UINT64, ScalarClass.HUGE),
    float: (ScalarClass.FLOAT32, ScalarClass.FLOAT64),
    complex: (ScalarClass.COMPLEX,),
}
_CLASS_OF = {rung: kind for kind, rungs in _RUNGS.items() for rung in rungs}
_DECIDES: TwoGenerations[bool] = TwoGenerations(2048)


def class_that_decides(
    op: Op, semantics: Semantics, keys: tuple[Key, ...], out: np.dtype | None, body: Body
) -> type | None:
    """Return the class of the only Python number among operands, if every number of it asks for the same body.

    So it is in ``float32 * 2.5``, not in ``int8 * 2.5``. A plan is found by that class then, with no look at the value.
    """
    numbers = [key for key in keys if type(key) is ScalarClass]
    if len(numbers) != 1:
        return None
    (number,) = numbers
    kind = _CLASS_OF[number]
    types = types_of(keys, semantics)
    asked = (op, semantics, tuple([kind if key is number else key for key in types]), out)
    decides = _DECIDES.get(asked)
    if decides is None:
        others = [tuple([rung if key is number else key for key in types]) for rung in _RUNGS[kind]]
        decides = _DECIDES.put(asked, all(_asks_for(body, op, semantics, other, out) for other in others))
    return kind if decides else None


def _asks_for(body: Body, op: Op, semantics: Semantics, types: tuple[Type, ...], out: np.dtype | None) -> bool:
    try:
        return body_of(op, semantics, types, out) is body
    except TileArrayError:
        return False


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
INTEGER_LIMITS[dtypes.bool_] = (1, 0)  # no integer is a bool: it always takes a dtype of the ladder


def as_operands(op: Op, operands: Sequence[Any], out: ArrayBase | None) -> list[Any]:
    """Return operands that all have keys: NumPy scalars become 0-d arrays; everything unknown is an error.

    An integer beyond every dtype that is compared with integers only is as good as an infinity.
    """
    device = next((operand._signature.device for operand in (*operands, out) if isinstance(operand, ArrayBase)), None)
    known = [
        scalar_array(operand, device or default_device(), op.name) if isinstance(operand, np.generic) else operand
        for operand in operands
    ]
    integers = all(operand._signature.dtype in INTEGER_LIMITS for operand in known if isinstance(operand, ArrayBase))
    for position, operand in enumerate(known):
        if isinstance(operand, ArrayBase):
            continue
        found = classify(operand)
        if found is None:
            raise OperandError(
                f"{op.name}: expected tilearray Arrays or numbers, got {type_name(operand)} as operand "
                f"{position + 1}; write ta.asarray(x{position + 1})"
            )
        if found is ScalarClass.HUGE and op.promotion is Promotion.ALWAYS_BOOL and integers:
            known[position] = math.inf if operand > 0 else -math.inf
    return known


def numbers_alone(op: Op, numbers: Sequence[Any]) -> list[Any]:
    """Return 0-d arrays of Python numbers without an array: of the default dtype of their common type and values."""
    taken = _taken_alone(op, [class_of(number) for number in numbers])
    if op.refuse_scalar is not None:
        for position, number in enumerate(numbers):
            op.refuse_scalar(op, position, number, taken[position])
    return [
        scalar_array(host_number(number, dtype, op.name), default_device(), op.name)
        for number, dtype in zip(numbers, taken, strict=True)
    ]


def _taken_alone(op: Op, classes: list[ScalarClass]) -> list[np.dtype]:
    """The dtype that each of some Python numbers without an array is taken as."""
    if op.promotion is Promotion.TRUTH:
        return [dtypes.bool_] * op.arity
    end = op.arity - op.exponents
    common = STATE.get().semantics.result_type(classes[op.masks : end], op.name)
    return [
        *(check_mask(op, found) for found in classes[: op.masks]),
        *[common] * (end - op.masks),
        *(check_exponent(op, found) for found in classes[end:]),
    ]


def class_of(number: Any) -> ScalarClass:
    """Return the value class of what is known to be a Python number."""
    found = classify(number)
    assert found is not None
    return found


def host_number(number: Number, dtype: np.dtype, function: str) -> np.ndarray:
    """Return a Python number as a 0-d ndarray, checked against the dtype's range and rounded once."""
    from tilearray_host.casts import scalar

    return scalar(as_number(number, dtype, function), dtype)


def scalar_array(value: Any, device: Device, function: str) -> Any:
    """Return a 0-d Array of a NumPy scalar: strongly typed, like any array."""
    from tilearray.array import Array
    from tilearray.interchange.export import upload_stream

    array = np.asarray(value)
    dtype = dtypes.as_dtype(array.dtype, function)
    buffer, offset = device.backend.from_numpy(array, copy=True, stream=upload_stream(device))
    return Array._make(buffer, offset, signature_of(Layout.of(()), dtype, device))


def type_name(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
