"""The results of a pointwise function: its operands cast to a compute dtype, its results to the dtypes of the outputs.

For example, ``(0, 1, "int_to_float")`` on int8 and float16 has the common dtype float16 and the compute dtype float32::

    x: int8 -> float16 -> float32     f(x, y): float32 -> float16
    y: float16 -> float32

Outputs whose operands have the same casts share one run of the function. Operands that no promotion names keep their
dtype, and numbers stay Python numbers, which take the dtype of the operand beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from tilearray.arrays.fusion.containers import members
from tilearray.arrays.fusion.schema import NumberType, Schema
from tilearray.arrays.fusion.tracing import current_trace
from tilearray.engine.context import STATE
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation, TypedScalar, typed_scalar
from tilearray.engine.plan import Key, types_of
from tilearray.engine.signature import ArrayBase
from tilearray.errors import DTypeError, FusionError, OperandError, ShapeError, type_name
from tilearray.geometry.shapes import broadcast_shapes
from tilearray.ops.promotion_methods import NEVER_WIDER, computed_as, opmath, returned_as
from tilearray.promotion.scalars import classify
from tilearray.promotion.semantics import Semantics

if TYPE_CHECKING:
    from tilearray.arrays.fusion.jitted import Jitted

Casts = tuple[tuple[np.dtype, ...], ...]


@dataclass(frozen=True, eq=False, slots=True)
class Stored:
    """The dtypes of the targets of a call, or None for an output without a target."""

    dtypes: tuple[np.dtype | None, ...]


@cache
def stored(*dtypes: np.dtype | None) -> Stored:
    """Return the only `Stored` of these dtypes: a constant argument of the fused function."""
    return Stored(dtypes)


class _Typing(NamedTuple):
    """The dtypes of one output: for each operand its casts in order, and the result; None if the function decides."""

    casts: Casts
    result: np.dtype | None


def results_of(function: Callable[..., Any] | Jitted, schema: Schema, /, *given: Any) -> Any:
    """Return the results of a function for traced operands. If there are targets, the last argument is a `Stored`."""
    count = len(schema.names)
    operands, targets = given[:count], given[count:] or (stored(*(None,) * schema.outputs),)
    semantics = STATE.get().semantics
    runs: dict[Casts, list[Any]] = {}
    results: list[Any] = []
    for output, target in enumerate(targets[0].dtypes):
        typing = _typing(schema, semantics, operands, output)
        if typing.casts not in runs:
            run = _run if callable(function) else _run_jitted
            runs[typing.casts] = run(cast(Any, function), schema, typing.casts, operands)
        result = _of_all(schema.name, runs[typing.casts][output], typing.result, operands)
        if typing.result is not None:
            result = _cast(result, (typing.result,))
        if target is not None:
            _check_stores(schema.name, output, semantics, result._signature.dtype, target)
            result = _cast(result, (target,))
        results.append(result)
    return tuple(results) if len(results) > 1 else results[0]


def _run(function: Callable[..., Any], schema: Schema, casts: Casts, operands: Sequence[Any]) -> list[Any]:
    """Run the function on operands with these casts, and return its results."""
    trace = current_trace()
    sources = trace.sources
    known, before = len(sources), trace.elementwise
    trace.elementwise = True
    try:
        returned = function(*[_cast(operand, steps) for operand, steps in zip(operands, casts, strict=True)])
    finally:
        trace.elementwise = before
    for _, outside in sources[known:]:
        if outside is not None and outside._signature.layout.ndim:
            raise FusionError(
                f"{schema.name}: expected a function of its arguments, got one that reads an array of shape "
                f"{outside._signature.layout.shape} from outside; write the array as an argument"
            )
    results = members(returned) if isinstance(cast(object, returned), tuple | list) else [returned]
    assert results is not None
    if len(results) != schema.outputs:
        raise FusionError(
            f"{schema.name}: expected {schema.outputs} results, got {len(results)}; write num_outputs={len(results)}"
        )
    return results


def _run_jitted(function: Jitted, schema: Schema, casts: Casts, operands: Sequence[Any]) -> list[Any]:
    """Run a function that is written for Triton on operands with these casts."""
    casted = [_cast(operand, steps) for operand, steps in zip(operands, casts, strict=True)]
    positions = [place for place, steps in enumerate(casts) if steps]
    return function.results(schema, casts[positions[0]][-1], casted, positions)


def _cast(operand: Any, steps: Sequence[np.dtype]) -> Any:
    """Return an operand after its casts, as a new array that the function may write. Numbers have no casts."""
    if not isinstance(operand, ArrayBase):
        return operand
    array: Any = operand
    for dtype in steps or (operand._signature.dtype,):
        array = array.astype(dtype)
    return array


# --- dtypes ----------------------------------------------------------------------------------------------------------


def _typing(schema: Schema, semantics: Semantics, operands: Sequence[Any], output: int) -> _Typing:
    """Decide the dtypes of one output."""
    if not schema.promotion:
        return _Typing(((),) * len(operands), None)
    positions, method = schema.promotion[output]
    keys = tuple([_key(operands[position], schema.number_types[position]) for position in positions])
    types = [given.promotes_as if isinstance(given, TypedScalar) else given for given in types_of(keys, semantics)]
    common = computed_as(method, semantics, semantics.decide(types, schema.name, []))
    compute = common if method in NEVER_WIDER else opmath(common)
    casts = [(common, compute) if place in positions else () for place in range(len(operands))]
    return _Typing(tuple(casts), returned_as(method, common))


def _key(operand: Any, kind: NumberType | None) -> Key:
    """Return how an operand counts: a number of a declared dtype counts as that dtype."""
    if isinstance(operand, ArrayBase):
        return operand._signature
    found = classify(operand)
    assert found is not None  # the call has checked it
    return typed_scalar(kind) if isinstance(kind, np.dtype) else found


def _check_stores(function: str, output: int, semantics: Semantics, result: np.dtype, target: np.dtype) -> None:
    if not semantics.stores(result, target):
        raise DTypeError(
            f"{function}: expected a target out{output} that can store the {result.name} result, got {target.name}; "
            f"write a target of dtype {result.name}"
        )


# --- the shape of all operands -----------------------------------------------------------------------------------


def _of_all(function: str, result: Any, dtype: np.dtype | None, operands: Sequence[Any]) -> ArrayBase:
    """Return a result with the shape of all operands: the function may use some of them only, or return a number."""
    arrays = [operand for operand in operands if isinstance(operand, ArrayBase)]
    if not isinstance(result, ArrayBase):
        number = classify(result)
        if number is None:
            raise OperandError(
                f"{function}: expected results that are computed from the arguments, got {type_name(result)}; write "
                f"return with an expression of the arguments"
            )
        dtype = dtype or STATE.get().semantics.decide([number], function, [])
    is_number = not isinstance(result, ArrayBase)
    own = dtype if not isinstance(result, ArrayBase) else result._signature.dtype
    assert own is not None
    operation = _shaped(function, is_number, own, tuple([array._signature.dtype for array in arrays]))
    found = run_fixed(operation, [result, *arrays], None)
    shape = broadcast_shapes(*[array._signature.layout.shape for array in arrays], function=function)
    if found._signature.layout.shape != shape:
        raise ShapeError(
            f"{function}: expected one element for each of shape {shape}, got shape {found._signature.layout.shape}; "
            f"write a function of scalars, or use ta.fuse"
        )
    return found


@lru_cache(1024)
def _shaped(function: str, is_number: bool, dtype: np.dtype, shapes: tuple[np.dtype, ...]) -> FixedOperation:
    """Return the operation that gives its first operand the shape of all operands. It does not read the others."""
    builder = ExpressionBuilder()
    node = builder.number(dtype) if is_number else builder.array(dtype)
    for other in shapes:
        builder.memory(other)
    return FixedOperation(function, builder.build([node], [dtype]))
