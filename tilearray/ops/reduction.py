"""Reductions as operations: the dtypes and the expression of a sum, a mean, a largest element and the rest.

=====================  ==========================================  ===================================================
reduction              accumulates                                 rounds
=====================  ==========================================  ===================================================
sum, prod              integers in the dtype of the result;        each element to the dtype of the result before, and
                       float32, float64 in float64; complex in     the result at the end
                       complex128; narrower floats in float32
mean                   as a sum; integers in float64               the quotient in float64, then to the result
var, std               distances from the first element, and       once, at the end
                       their squares, in float64
max, min, argmax,      nothing                                     nothing
argmin, all, any
count_nonzero          int64                                       nothing
=====================  ==========================================  ===================================================

`tilearray.geometry.reduction` says in which order. A sum of n float32 or float64 numbers in float64 has an error of at
most ``(k + 2 * log2(n)) * 2**-53 * sum(abs(x))``, where a lane adds k numbers in a row, and is then rounded to its
dtype. A variance is ``(sum(d * d) - sum(d)**2 / n) / (n - correction)`` of the distances d from the first element: one
pass over memory, and without cancellation unless the first element lies many standard deviations from the mean.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilearray import dtypes
from tilearray.engine.devices import Device
from tilearray.engine.expression import Expression, ExpressionBuilder
from tilearray.engine.operation import FixedTyping, OperandType, Reduced
from tilearray.ops import arithmetic, elementary
from tilearray.ops.row import Row, plain_dtype
from tilearray.promotion.scalars import Number, ScalarClass, as_number
from tilearray.promotion.semantics import Semantics


@dataclass(frozen=True, eq=False)
class Reduction:
    """A reduction over some axes. `reduction_of` keeps them, so that plans are found by their identity.

    Attributes
    ----------
    name : str
        The name of the function.
    result : numpy.dtype
        The dtype of the result.
    reduced : Reduced
    """

    name: str
    result: np.dtype
    reduced: Reduced
    into: object = field(default_factory=object, repr=False)
    passes_numbers = True

    def typing(self, semantics: Semantics, types: Sequence[OperandType], /) -> FixedTyping:
        """Return the dtypes: each operand as it is, and the result."""
        del semantics
        return FixedTyping(tuple([() for _ in types]), self.result)

    def expression(self, semantics: Semantics, types: tuple[OperandType, ...], out: np.dtype | None, /) -> Expression:
        """Return the expression; the same object for all axes."""
        del semantics, out
        (given, *_) = types
        assert not isinstance(given, ScalarClass)
        return _expression(self.name, plain_dtype(given), self.result)

    def check_device(self, device: Device, /) -> None:
        """Accept every device."""

    def number(self, position: int, number: Number, dtype: np.dtype, /) -> Number:
        """Return a Python number as `dtype`."""
        del position
        return as_number(number, dtype, self.name)


@functools.lru_cache(4096)
def reduction_of(name: str, result: np.dtype, axes: tuple[int, ...], keepdims: bool) -> Reduction:
    """Return the reduction of a name over axes.

    Examples
    --------
    >>> import tilearray as ta
    >>> reduction_of("sum", ta.float32, (0,), False) is reduction_of("sum", ta.float32, (0,), False)
    True
    """
    return Reduction(name, result, Reduced(axes, keepdims, name in ("argmax", "argmin")))


def accumulator(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which numbers of a dtype are added up.

    Examples
    --------
    >>> import tilearray as ta
    >>> [accumulator(dtype).name for dtype in (ta.int8, ta.bfloat16, ta.float32, ta.complex64)]
    ['int8', 'float32', 'float64', 'complex128']
    """
    row = dtypes.info(dtype)
    if row.kind == "float":
        return dtypes.float32 if row.bits < 32 else dtypes.float64
    return dtypes.complex128 if row.kind == "complex" else dtype


# --- expressions -----------------------------------------------------------------------------------------------------

Build = Callable[[ExpressionBuilder, np.dtype, np.dtype], int]
"""Adds the nodes of a reduction of elements of a dtype to a result of a dtype, and returns the node of the result."""


@functools.lru_cache(1024)
def _expression(name: str, dtype: np.dtype, result: np.dtype) -> Expression:
    builder = ExpressionBuilder()
    return builder.build([_BUILD[name](builder, dtype, result)], [result])


def _folded(how: str) -> Build:
    """A sum or product: elements are rounded to the dtype of the result, and widened to its accumulator."""

    def build(builder: ExpressionBuilder, dtype: np.dtype, result: np.dtype) -> int:
        wide = accumulator(result)
        element = builder.cast(builder.array(dtype), dtype, result)
        combine = {"add": "or", "multiply": "and"}[how] if result == dtypes.bool_ else how
        (total,) = builder.reduce(combine, (builder.cast(element, result, wide),), [wide])
        return builder.cast(total, wide, result)

    return build


def _extreme(how: str) -> Build:
    def build(builder: ExpressionBuilder, dtype: np.dtype, result: np.dtype) -> int:
        wide = accumulator(dtype) if dtypes.info(dtype).bits < 32 else dtype
        element = builder.cast(builder.array(dtype), dtype, wide)
        combine = {"maximum": "or", "minimum": "and"}[how] if dtype == dtypes.bool_ else how
        (found,) = builder.reduce(combine, (element,), [wide])
        return builder.cast(found, wide, result)

    return build


def _truths(how: str, wide: np.dtype) -> Build:
    def build(builder: ExpressionBuilder, dtype: np.dtype, result: np.dtype) -> int:
        truth = builder.cast(builder.array(dtype), dtype, dtypes.bool_)
        (found,) = builder.reduce(how, (builder.cast(truth, dtypes.bool_, wide),), [wide])
        return builder.cast(found, wide, result)

    return build


def _searched(how: str) -> Build:
    def build(builder: ExpressionBuilder, dtype: np.dtype, result: np.dtype) -> int:
        wide = accumulator(dtype) if dtypes.info(dtype).bits < 32 else dtype
        wide = dtypes.int8 if dtype == dtypes.bool_ else wide
        element = builder.cast(builder.array(dtype), dtype, wide)
        _, position = builder.reduce(how, (element, builder.node("position")), [wide, dtypes.int64])
        return builder.cast(position, dtypes.int64, result)

    return build


def _mean(builder: ExpressionBuilder, dtype: np.dtype, result: np.dtype) -> int:
    """The sum over the number of elements, which is the second operand."""
    wide = accumulator(dtype) if dtypes.info(dtype).kind in ("float", "complex") else dtypes.float64
    (total,) = builder.reduce("add", (builder.cast(builder.array(dtype), dtype, wide),), [wide])
    count = builder.number(dtypes.float64)
    if wide == dtypes.complex128:  # by parts: a NaN stays in its own part
        return builder.cast(builder.call("divide_parts", (total, count), wide, "divide_parts({x}, {y})"), wide, result)
    total = builder.cast(total, wide, dtypes.float64)
    return builder.cast(_call(builder, arithmetic.divide, total, count), dtypes.float64, result)


def _variance(builder: ExpressionBuilder, dtype: np.dtype) -> int:
    """The variance in float64 of x, its first elements, the number of elements, and that less the correction."""
    is_complex = dtypes.info(dtype).kind == "complex"
    wide = dtypes.complex128 if is_complex else dtypes.float64
    x, first = (builder.cast(builder.array(dtype), dtype, wide) for _ in range(2))
    count, divisor = builder.number(dtypes.float64), builder.number(dtypes.float64)
    distance = _call(builder, arithmetic.subtract, x, first, dtype=wide)
    square = _squared(builder, distance, is_complex)
    total, squares = builder.reduce("add", (distance, square), [wide, dtypes.float64])
    middle = _call(builder, arithmetic.divide, _squared(builder, total, is_complex), count)
    rest = _call(builder, arithmetic.subtract, squares, middle)
    zero = _call(builder, arithmetic.subtract, count, count)
    return _call(builder, arithmetic.divide, _call(builder, arithmetic.maximum, rest, zero), divisor)


def _squared(builder: ExpressionBuilder, node: int, is_complex: bool) -> int:
    """The square of a number's absolute value."""
    if is_complex:
        return builder.call("squared_length", (node,), dtypes.float64, "squared_length({x})")
    return _call(builder, arithmetic.multiply, node, node)


def _spread(root: bool) -> Build:
    def build(builder: ExpressionBuilder, dtype: np.dtype, result: np.dtype) -> int:
        found = _variance(builder, dtype)
        found = _call(builder, elementary.sqrt, found) if root else found
        return builder.cast(found, dtypes.float64, result)

    return build


def _call(builder: ExpressionBuilder, row: Row, *arguments: int, dtype: np.dtype = dtypes.float64) -> int:
    """A call of a row on numbers of its own dtype."""
    kind = dtypes.info(dtype).kind
    text = next(row.triton[name] for name in (dtype.name, kind, "any") if name in row.triton)
    return builder.call(row.function or row.name, arguments, dtype, text)


_BUILD: dict[str, Build] = {
    "sum": _folded("add"),
    "prod": _folded("multiply"),
    "max": _extreme("maximum"),
    "min": _extreme("minimum"),
    "argmax": _searched("argmax"),
    "argmin": _searched("argmin"),
    "all": _truths("and", dtypes.bool_),
    "any": _truths("or", dtypes.bool_),
    "count_nonzero": _truths("add", dtypes.int64),
    "mean": _mean,
    "var": _spread(root=False),
    "std": _spread(root=True),
}
