"""Sums of exponentials, and shares of them: the formulas, and the operations that go over rows in one launch.

The largest element is subtracted first, so that nothing overflows. Exponentials are computed in float32 or float64 and
added up as by `sum`. `softmax` multiplies by the inverse of the sum in the dtype of the exponentials. The logarithms
are rounded once, and subtract the largest finite number in place of an infinity.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from tilearray import dtypes
from tilearray.engine.expression import Expression, ExpressionBuilder
from tilearray.engine.operation import FixedOperation, OperandType, Reduced
from tilearray.ops import arithmetic, elementary
from tilearray.ops.reduction import Reduction, call_row, computed_in, exponential
from tilearray.ops.row import plain_dtype
from tilearray.ops.summation_order import SumBuilder, SummationOrder, accumulator
from tilearray.promotion.scalars import ScalarClass
from tilearray.promotion.semantics import Semantics


@dataclass(frozen=True, eq=False)
class RowFunction(Reduction):
    """A function that goes over rows several times. `row_function_of` keeps it."""

    def expression(self, semantics: Semantics, types: tuple[OperandType, ...], out: np.dtype | None, /) -> Expression:
        """Return the expression; the same object for all axes."""
        del semantics, out
        (given,) = types
        assert not isinstance(given, ScalarClass)
        return _whole(self.name, plain_dtype(given), self.order)


@functools.lru_cache(1024)
def row_function_of(
    name: str, dtype: np.dtype, axes: tuple[int, ...], keepdims: bool, order: SummationOrder = "fixed"
) -> RowFunction:
    """Return the operation of "softmax", "log_softmax" or "logsumexp" over axes of an array of floats."""
    return RowFunction(name, dtype, Reduced(axes, keepdims, held=True, spread=name != "logsumexp"), order)


@functools.lru_cache(256)
def _whole(name: str, dtype: np.dtype, order: SummationOrder) -> Expression:
    """The function of the elements: the largest one, the sum of exponentials, and the rest."""
    builder = SumBuilder(order)
    narrow, wide = computed_in(dtype), builder.accumulator(dtype)
    element = builder.cast(builder.array(dtype), dtype, narrow)
    (largest,) = builder.reduce("maximum", (element,), [narrow])
    if name != "softmax":
        most = repr(float(dtypes.finfo(dtype).max))
        largest = builder.call(f"finite_{dtype.name}", (largest,), narrow, f"lesser(greater({{x}}, -{most}), {most})")
    exponent = exponential(builder, element, largest, narrow)
    (total,) = builder.reduce("add", (builder.cast(exponent, narrow, wide),), [wide])
    if name == "softmax":
        inverse = call_row(builder, arithmetic.reciprocal, total, dtype=wide)
        found = share(builder, exponent, builder.cast(inverse, wide, narrow), narrow)
        return builder.build([builder.cast(found, narrow, dtype)], [dtype])
    near, log = builder.cast(largest, narrow, wide), call_row(builder, elementary.log, total, dtype=wide)
    if name == "logsumexp":
        found = logarithm(builder, near, log, wide)
    else:
        found = difference(builder, builder.cast(element, narrow, wide), near, log, wide)
    return builder.build([builder.cast(found, wide, dtype)], [dtype])


@functools.lru_cache(64)
def finite_of(dtype: np.dtype) -> FixedOperation:
    """Return the elementwise operation that puts numbers between two others, and keeps NaN."""
    builder = ExpressionBuilder()
    narrow = computed_in(dtype)
    x = builder.cast(builder.array(dtype), dtype, narrow)
    found = call_row(builder, arithmetic.clamp, x, builder.number(narrow), builder.number(narrow), dtype=narrow)
    return FixedOperation("finite", builder.build([builder.cast(found, narrow, dtype)], [dtype]))


@functools.lru_cache(256)
def rest_of(name: str, dtype: np.dtype, order: SummationOrder = "fixed") -> FixedOperation:
    """Return the elementwise operation after two reductions: of `x` if it is not "logsumexp", the largest elements, and
    the inverse or the logarithm of the sums."""
    builder = ExpressionBuilder()
    narrow, wide = computed_in(dtype), accumulator(dtype, order)
    if name == "softmax":
        x, largest = (builder.cast(builder.array(dtype), dtype, narrow) for _ in range(2))
        inverse = builder.cast(builder.array(wide), wide, narrow)
        found = share(builder, exponential(builder, x, largest, narrow), inverse, narrow)
        return FixedOperation(name, builder.build([builder.cast(found, narrow, dtype)], [dtype]))
    if name == "logsumexp":
        near = builder.cast(builder.array(dtype), dtype, wide)
        found = logarithm(builder, near, builder.array(wide), wide)
    else:
        x, near = (builder.cast(builder.array(dtype), dtype, wide) for _ in range(2))
        found = difference(builder, x, near, builder.array(wide), wide)
    return FixedOperation(name, builder.build([builder.cast(found, wide, dtype)], [dtype]))


def share(builder: ExpressionBuilder, power: int, inverse: int, narrow: np.dtype) -> int:
    """Add an exponential over the sum, and return its node."""
    return call_row(builder, arithmetic.multiply, power, inverse, dtype=narrow)


def logarithm(builder: ExpressionBuilder, largest: int, log: int, wide: np.dtype) -> int:
    """Add the logarithm of the sum plus the largest element, and return its node."""
    return call_row(builder, arithmetic.add, log, largest, dtype=wide)


def difference(builder: ExpressionBuilder, x: int, largest: int, log: int, wide: np.dtype) -> int:
    """Add ``x - largest - log``, and return its node."""
    distance = call_row(builder, arithmetic.subtract, x, largest, dtype=wide)
    return call_row(builder, arithmetic.subtract, distance, log, dtype=wide)
