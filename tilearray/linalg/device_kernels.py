"""Kernels that run beside a library of factors: they write what it reads, and finish what it has written.

Matrices lie in columns there. Kernels that write matrices of eigenvalues and singular values report inf and NaN in a
word, because the library gives no error for them.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np

from tilearray import dtypes
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.ops.arithmetic import add, choose, divide, maximum, multiply, negative, subtract
from tilearray.ops.number_parts import frexp_mantissa, isfinite
from tilearray.ops.reduction import call_row

_SMALLEST: Final = float(np.finfo(np.float64).tiny)


@cache
def identity(dtype: np.dtype) -> FixedOperation:
    """Return the operation that writes identity matrices of n * n elements each, from that and from n + 1."""
    builder, integer = ExpressionBuilder(), dtypes.int64
    place, size, step = builder.node("index"), builder.number(integer), builder.number(integer)
    place = builder.call("remainder", (place, size), integer, "{x} % {y}")
    place = builder.call("remainder", (place, step), integer, "{x} % {y}")
    found = builder.call("equal", (place, builder.constant(0, integer)), dtypes.bool_, "{x} == {y}")
    return FixedOperation("inv", builder.build([builder.cast(found, dtypes.bool_, dtype)], [dtype]))


@cache
def addresses() -> FixedOperation:
    """Return the operation that writes addresses of matrices: of `count` of them, and then of those of another stack.

    Its operands are `count`, and of each stack the first address and the bytes of a matrix.
    """
    builder, integer = ExpressionBuilder(), dtypes.int64
    place, (count, first, step, second, distance) = builder.node("index"), [builder.number(integer) for _ in range(5)]

    def called(row: Any, *nodes: int) -> int:
        return call_row(builder, row, *nodes, dtype=integer)

    near = called(add, first, called(multiply, place, step))
    far = called(add, second, called(multiply, called(subtract, place, count), distance))
    is_near = builder.call("less", (place, count), dtypes.bool_, "{x} < {y}")
    found = call_row(builder, choose, is_near, near, far, dtype=integer)
    return FixedOperation("linalg", builder.build([found], [integer]))


@cache
def scaled(given: np.dtype, dtype: np.dtype) -> FixedOperation:
    """Return the operation that writes columns of matrices divided by the powers of 2 that are next to their norms.

    Matrices of zeros, and those with inf or NaN, become matrices of ones, as not every iteration takes them. The
    operands are those of `_columns_read`, the norms, and a word in which a norm that is not finite is reported.
    """
    builder = ExpressionBuilder()
    element, matrix, _, _ = _columns_read(builder, given)
    size = builder.node("gather", builder.memory(dtypes.float64), matrix)
    is_finite = _is_finite(builder, size, dtypes.float64)
    _report(builder, builder.call("logical_not", (is_finite,), dtypes.bool_, "~{x}"))
    middle = dtypes.complex128 if dtypes.info(dtype).kind == "complex" else dtypes.float64
    is_usual, power = _power(builder, size)
    factor = call_row(builder, divide, builder.constant(1.0, dtypes.float64), power)
    factor = builder.cast(factor, dtypes.float64, middle)
    found = call_row(builder, multiply, builder.cast(element, given, middle), factor, dtype=middle)
    one = builder.cast(builder.constant(True, dtypes.bool_), dtypes.bool_, middle)
    found = call_row(builder, choose, is_usual, found, one, dtype=middle)
    return FixedOperation("svd", builder.build([builder.cast(found, middle, dtype)], [dtype]))


@cache
def restored(dtype: np.dtype) -> FixedOperation:
    """Return the operation that multiplies singular values by what `scaled` divides by; those of zeros are 0."""
    builder = ExpressionBuilder()
    value, size = builder.array(dtype), builder.array(dtypes.float64)
    is_usual, power = _power(builder, size)
    factor = call_row(builder, choose, is_usual, power, size)
    found = call_row(builder, multiply, builder.cast(value, dtype, dtypes.float64), factor)
    return FixedOperation("svd", builder.build([builder.cast(found, dtypes.float64, dtype)], [dtype]))


@cache
def inverses(dtype: np.dtype) -> FixedOperation:
    """Return the operation that writes the inverses of values above a limit, and 0 for the others."""
    builder = ExpressionBuilder()
    value, limit = builder.array(dtype), builder.array(dtype)
    counts = builder.call("greater", (value, limit), dtypes.bool_, "{x} > {y}")
    one, zero = builder.constant(1.0, dtype), builder.constant(0.0, dtype)
    inverse = call_row(builder, divide, one, call_row(builder, choose, counts, value, one, dtype=dtype), dtype=dtype)
    return FixedOperation(
        "pinv", builder.build([call_row(builder, choose, counts, inverse, zero, dtype=dtype)], [dtype])
    )


def _power(builder: ExpressionBuilder, size: int) -> tuple[int, int]:
    """Add whether a norm is finite and not 0, and the largest normal power of 2 that is not above it."""
    double = dtypes.float64
    is_finite = _is_finite(builder, size, double)
    is_positive = builder.call("greater", (size, builder.constant(0.0, double)), dtypes.bool_, "{x} > {y}")
    is_usual = builder.call("logical_and", (is_finite, is_positive), dtypes.bool_, "{x} & {y}")
    one = builder.constant(1.0, double)
    size = call_row(builder, choose, is_usual, size, one)
    half = call_row(builder, frexp_mantissa, size)
    power = call_row(builder, divide, size, call_row(builder, add, half, half))
    return is_usual, call_row(builder, maximum, power, builder.constant(_SMALLEST, double))


@cache
def triangles(given: np.dtype, dtype: np.dtype) -> FixedOperation:
    """Return the operation that copies one triangle of matrices into columns, and reports inf and NaN in it.

    The operands are those of `_columns_read`, 1 for the lower triangle or -1 for the upper one, and a word for the
    report. What is reported becomes 0, like the other triangle.
    """
    builder, integer = ExpressionBuilder(), dtypes.int64
    element, _, row, column = _columns_read(builder, given)
    element = builder.cast(element, given, dtype)
    below = call_row(builder, subtract, row, column, dtype=integer)
    below = call_row(builder, multiply, below, builder.number(integer), dtype=integer)
    is_read = builder.call("greater_equal", (below, builder.constant(0, integer)), dtypes.bool_, "{x} >= {y}")
    return FixedOperation("linalg", builder.build([_kept(builder, element, is_read, dtype)], [dtype]))


@cache
def finite(given: np.dtype, dtype: np.dtype) -> FixedOperation:
    """Return the operation that copies matrices into columns, and reports inf and NaN in a word; these become 0."""
    builder = ExpressionBuilder()
    element = builder.cast(_columns_read(builder, given)[0], given, dtype)
    every = builder.constant(True, dtypes.bool_)
    return FixedOperation("linalg", builder.build([_kept(builder, element, every, dtype)], [dtype]))


def _columns_read(builder: ExpressionBuilder, given: np.dtype) -> tuple[int, int, int, int]:
    """Add the element at each place of columns, one after the other; also the number of its matrix, row and column.

    The operands are the memory of matrices; their rows and columns; and the elements from one matrix, row and column to
    the next. Elements are gathered, so that a program has many small matrices: a tile would be of one matrix.
    """
    memory, place = builder.memory(given), builder.node("index")
    m, n, *steps = [builder.number(dtypes.int64) for _ in range(5)]

    def called(name: str, sign: str, x: int, y: int) -> int:
        return builder.call(name, (x, y), dtypes.int64, f"{{x}} {sign} {{y}}")

    row, line = called("remainder", "%", place, m), called("floor_divide", "//", place, m)
    column, matrix = called("remainder", "%", line, n), called("floor_divide", "//", line, n)
    parts = [called("multiply", "*", *pair) for pair in zip((matrix, row, column), steps, strict=True)]
    distance = called("add", "+", called("add", "+", parts[0], parts[1]), parts[2])
    return builder.node("gather", memory, distance), matrix, row, column


def _kept(builder: ExpressionBuilder, element: int, is_read: int, dtype: np.dtype) -> int:
    """Add elements that are read and finite, and 0 for others. Those that are read and not finite are reported."""
    is_finite = _is_finite(builder, element, dtype)
    is_kept = builder.call("logical_and", (is_finite, is_read), dtypes.bool_, "{x} & {y}")
    _report(builder, builder.call("not_equal", (is_kept, is_read), dtypes.bool_, "{x} != {y}"))
    zero = builder.cast(builder.constant(False, dtypes.bool_), dtypes.bool_, dtype)
    return call_row(builder, choose, is_kept, element, zero, dtype=dtype)


def _is_finite(builder: ExpressionBuilder, element: int, dtype: np.dtype) -> int:
    """Add whether an element is finite."""
    return builder.call("isfinite", (element,), dtypes.bool_, isfinite.triton[dtypes.info(dtype).kind])


def _report(builder: ExpressionBuilder, condition: int) -> None:
    """Add a word as the next operand, in which elements with a condition are reported."""
    builder.node("report", condition, builder.constant(1, dtypes.int64), builder.memory(dtypes.int64))


@cache
def exchanged(dtype: np.dtype, pivot: np.dtype) -> FixedOperation:
    """Return the operation that negates elements whose pivot is another row than theirs."""
    builder = ExpressionBuilder()
    element, *rows = builder.array(dtype), builder.array(pivot), builder.array(pivot)
    moved = builder.call("not_equal", tuple(rows), dtypes.bool_, "{x} != {y}")
    opposite = call_row(builder, negative, element, dtype=dtype)
    found = call_row(builder, choose, moved, opposite, element, dtype=dtype)
    return FixedOperation("det", builder.build([found], [dtype]))
