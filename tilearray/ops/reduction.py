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
max, min, nanmax,      nothing                                     nothing
nanmin, argmax,
argmin, all, any
count_nonzero          int64                                       nothing
largest_of_pairs       nothing                                     nothing: the largest magnitude of bfloat16, two in
                                                                   a word of uint32, as float32
squares                distances from the second operand, and      nothing: the result is float64
                       their squares, in float64
vecdot                 as a sum, of products in the accumulator    each element to the dtype of the result before, and
                                                                   the result at the end
norm                   squares in float64; of float16 and float8   as vecdot
                       in float32
sizes                  absolute values, as a sum                   as vecdot
exponentials           as a sum, of exp(x - y) in float32 or       nothing: the result has the accumulator's dtype
                       float64
=====================  ==========================================  ===================================================

Of equal zeros, max takes 0.0 and min takes -0.0, as IEEE 754-2019 has it.

`norm` is the Euclidean norm, and `sizes` the sum of absolute values. The square of a float64 may be beyond float64: so
their norm adds up three sums of squares, of the numbers and of their multiples by 2**-600 and by 2**600.

With ``order="any"`` the accumulators are those of `tilearray.ops.summation_order`; var and std take the distances from
the mean, and the norm of float32 adds up squares in both dtypes and takes those of float64 where float32 does not do.

`tilearray.geometry.reduction` has the fixed order. In it a sum of n float32 or float64 numbers in float64 has an error
of at most ``(k + 2 * log2(n)) * 2**-53 * sum(abs(x))``, where a lane adds k numbers in a row, and is then rounded to
its dtype. A variance is ``(sum(d * d) - sum(d)**2 / n) / (n - correction)`` of the distances d from the first element:
one pass over memory, and without cancellation unless the first element lies many standard deviations from the mean.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeGuard

import numpy as np

from tilearray import dtypes
from tilearray.engine.expression import Expression, ExpressionBuilder
from tilearray.engine.operation import FixedResult, OperandType, Reduced
from tilearray.ops import arithmetic, elementary
from tilearray.ops.promotion_methods import REAL_PART
from tilearray.ops.row import Row, plain_dtype
from tilearray.ops.summation_order import SumBuilder, SummationOrder, accumulator
from tilearray.promotion.operands import ZeroDim
from tilearray.promotion.semantics import Semantics


@dataclass(frozen=True, eq=False)
class Reduction(FixedResult):
    """A reduction over some axes. `reduction_of` keeps them, so that plans are found by their identity.

    Attributes
    ----------
    name : str
        The name of the function.
    result : numpy.dtype
        The dtype of the result.
    reduced : Reduced
    order : {"fixed", "any"}
        The order in which elements are combined: see `tilearray.ops.summation_order`.
    """

    name: str
    result: np.dtype
    reduced: Reduced
    order: SummationOrder = "fixed"
    into: object = field(default_factory=object, repr=False)
    scanned = None
    selects = False

    def expression(self, semantics: Semantics, types: tuple[OperandType, ...], out: np.dtype | None, /) -> Expression:
        """Return the expression; the same object for all axes."""
        del semantics, out
        arrays = tuple([plain_dtype(given) for given in types if _is_array(given)])
        return _expression(self.name, arrays, self.result, self.order)


@functools.lru_cache(4096)
def reduction_of(
    name: str, result: np.dtype, axes: tuple[int, ...], keepdims: bool, order: SummationOrder = "fixed"
) -> Reduction:
    """Return the reduction of a name over axes, in an order.

    Examples
    --------
    >>> import tilearray as ta
    >>> reduction_of("sum", ta.float32, (0,), False) is reduction_of("sum", ta.float32, (0,), False)
    True
    """
    is_held = name.endswith("_of_exponentials")
    return Reduction(name, result, Reduced(axes, keepdims, name in ("argmax", "argmin"), is_held), order)


def measured_in(dtype: np.dtype, result: np.dtype, order: SummationOrder) -> np.dtype:
    """Return the dtype in which numbers of a dtype are added up for a mean of another one.

    Examples
    --------
    >>> import tilearray as ta
    >>> [measured_in(dtype, ta.float32, "any").name for dtype in (ta.int8, ta.float32, ta.complex64)]
    ['float64', 'float32', 'complex64']
    """
    if dtypes.info(dtype).kind not in ("float", "complex"):
        return dtypes.float64
    narrow = accumulator(dtype, order)
    is_wider = dtypes.info(result).kind == dtypes.info(dtype).kind and result.itemsize > narrow.itemsize
    return result if is_wider else narrow


# --- expressions -----------------------------------------------------------------------------------------------------

Build = Callable[..., int]
"""Adds the nodes of a reduction of arrays of some dtypes to a result of a dtype: ``build(builder, *arrays, result)``.
Returns the node of the result."""


def _is_array(given: OperandType) -> TypeGuard[np.dtype | ZeroDim]:
    return isinstance(given, (np.dtype, ZeroDim))


@functools.lru_cache(1024)
def _expression(name: str, arrays: tuple[np.dtype, ...], result: np.dtype, order: SummationOrder) -> Expression:
    builder = SumBuilder(order)
    return builder.build([_BUILD[name](builder, *arrays, result)], [result])


def _folded(row: Row, *, starts: bool = False) -> Build:
    """A sum or product: elements are rounded to the dtype of the result, and widened to its accumulator.

    If it `starts`, the second operand is a number that counts as one more element.
    """

    def build(builder: SumBuilder, dtype: np.dtype, result: np.dtype) -> int:
        wide = builder.accumulator(result)
        total = _total(builder, row.name, _rounded(builder, dtype, result, wide), wide)
        if starts:
            start = builder.cast(builder.number(result), result, wide)
            total = call_row(builder, row, total, start, dtype=wide)
        return builder.cast(total, wide, result)

    return build


def _rounded(builder: ExpressionBuilder, dtype: np.dtype, near: np.dtype, wide: np.dtype) -> int:
    """The elements of an array, rounded to one dtype and widened to another one."""
    return builder.cast(builder.cast(builder.array(dtype), dtype, near), near, wide)


def _total(builder: SumBuilder, how: str, element: int, wide: np.dtype) -> int:
    """The sum or product of elements; of truth values it is `or` or `and`."""
    combine = {"add": "or", "multiply": "and"}[how] if wide == dtypes.bool_ else how
    (total,) = builder.reduce(combine, (element,), [wide])
    return total


def _extreme_number(how: str) -> Build:
    """A largest or smallest element of a float array that is not NaN."""

    def build(builder: SumBuilder, dtype: np.dtype, result: np.dtype) -> int:
        wide = builder.accumulator(dtype) if dtypes.info(dtype).bits < 32 else dtype
        (found,) = builder.reduce(how, (builder.cast(builder.array(dtype), dtype, wide),), [wide])
        return builder.cast(found, wide, result)

    return build


def _extreme(row: Row, of_floats: str, *, starts: bool = False) -> Build:
    """A largest or smallest element. `of_floats` is the function of two floats, which tells 0.0 from -0.0.

    If it `starts`, the second operand is a number that counts as one more element.
    """

    def build(builder: SumBuilder, dtype: np.dtype, result: np.dtype) -> int:
        wide = builder.accumulator(dtype) if dtypes.info(dtype).bits < 32 else dtype
        element = builder.cast(builder.array(dtype), dtype, wide)
        combine = {"maximum": "or", "minimum": "and"}[row.name] if dtype == dtypes.bool_ else row.name
        (found,) = builder.reduce(combine, (element,), [wide])
        if starts:
            start = builder.cast(builder.number(result), result, wide)
            if dtypes.info(wide).kind == "float":
                found = builder.call(of_floats, (found, start), wide, of_floats + "({x}, {y})")
            else:
                found = call_row(builder, row, found, start, dtype=wide)
        return builder.cast(found, wide, result)

    return build


def _largest_of_pairs(builder: SumBuilder, dtype: np.dtype, result: np.dtype) -> int:
    sizes = builder.call("without_signs", (builder.array(dtype),), dtype, "sizes_of_pairs({x})")
    (found,) = builder.reduce("maximum_of_halves", (sizes,), [dtype])
    return builder.call("larger_half", (found,), result, "larger_half({x})")


def _truths(how: str, wide: np.dtype) -> Build:
    def build(builder: SumBuilder, dtype: np.dtype, result: np.dtype) -> int:
        truth = builder.cast(builder.array(dtype), dtype, dtypes.bool_)
        (found,) = builder.reduce(how, (builder.cast(truth, dtypes.bool_, wide),), [wide])
        return builder.cast(found, wide, result)

    return build


def _searched(how: str) -> Build:
    def build(builder: SumBuilder, dtype: np.dtype, result: np.dtype) -> int:
        wide = builder.accumulator(dtype) if dtypes.info(dtype).bits < 32 else dtype
        wide = dtypes.int8 if dtype == dtypes.bool_ else wide
        element = builder.cast(builder.array(dtype), dtype, wide)
        _, position = builder.reduce(how, (element, builder.node("position")), [wide, dtypes.int64])
        return builder.cast(position, dtypes.int64, result)

    return build


def _mean(builder: SumBuilder, dtype: np.dtype, result: np.dtype) -> int:
    """The sum over the number of elements, which is the second operand."""
    wide = measured_in(dtype, result, builder.order)
    (total,) = builder.reduce("add", (builder.cast(builder.array(dtype), dtype, wide),), [wide])
    count = builder.number(dtypes.float64)
    if dtypes.info(wide).kind == "complex":  # by parts: a NaN stays in its own part
        return builder.cast(builder.call("divide_parts", (total, count), wide, "divide_parts({x}, {y})"), wide, result)
    near = wide if builder.order == "any" else dtypes.float64
    total, count = builder.cast(total, wide, near), builder.cast(count, dtypes.float64, near)
    return builder.cast(call_row(builder, arithmetic.divide, total, count, dtype=near), near, result)


def _variance(builder: SumBuilder, dtype: np.dtype, near: np.dtype, wide: np.dtype) -> int:
    """The variance of x, a number near each, the number of elements, and that less the correction.

    In the fixed order the number is the first element, and the result is float64; in any order it is the mean.
    """
    is_complex, real = dtypes.info(wide).kind == "complex", REAL_PART.get(wide, wide)
    x, first = (builder.cast(builder.array(given), given, wide) for given in (dtype, near))
    count, divisor = builder.number(dtypes.float64), builder.number(dtypes.float64)
    distance = call_row(builder, arithmetic.subtract, x, first, dtype=wide)
    square = _squared(builder, distance, is_complex, real)
    if builder.order == "any":
        (squares,) = builder.reduce("add", (square,), [real])
        return call_row(builder, arithmetic.divide, squares, builder.cast(divisor, dtypes.float64, real), dtype=real)
    total, squares = builder.reduce("add", (distance, square), [wide, dtypes.float64])
    middle = call_row(builder, arithmetic.divide, _squared(builder, total, is_complex), count)
    rest = call_row(builder, arithmetic.subtract, squares, middle)
    zero = call_row(builder, arithmetic.subtract, count, count)
    return call_row(builder, arithmetic.divide, call_row(builder, arithmetic.maximum, rest, zero), divisor)


def _squares(builder: SumBuilder, dtype: np.dtype, mask: np.dtype, middle: np.dtype, result: np.dtype) -> int:
    """The sum of squared distances of x from the third operand, where a mask is true."""
    is_complex = dtypes.info(dtype).kind == "complex"
    wide = dtypes.complex128 if is_complex else dtypes.float64
    x, kept = builder.cast(builder.array(dtype), dtype, wide), builder.array(mask)
    distance = call_row(builder, arithmetic.subtract, x, builder.cast(builder.array(middle), middle, wide), dtype=wide)
    zero = builder.cast(kept, mask, result)  # it is, where the mask is false
    square = call_row(builder, arithmetic.choose, kept, _squared(builder, distance, is_complex), zero)
    return _total(builder, "add", square, result)


def _squared(builder: ExpressionBuilder, node: int, is_complex: bool, dtype: np.dtype = dtypes.float64) -> int:
    """The square of a number's absolute value, in a dtype of its own or of its parts."""
    if is_complex:
        return builder.call("squared_length", (node,), dtype, "squared_length({x})")
    return call_row(builder, arithmetic.multiply, node, node, dtype=dtype)


def _spread(root: bool) -> Build:
    def build(builder: SumBuilder, dtype: np.dtype, first: np.dtype, result: np.dtype) -> int:
        wide = dtypes.complex128 if dtypes.info(dtype).kind == "complex" else dtypes.float64
        wide = measured_in(dtype, result, "any") if builder.order == "any" else wide
        found, real = _variance(builder, dtype, first, wide), REAL_PART.get(wide, wide)
        found = call_row(builder, elementary.sqrt, found, dtype=real) if root else found
        return builder.cast(found, real, result)

    return build


def _dot(builder: SumBuilder, first: np.dtype, second: np.dtype, result: np.dtype) -> int:
    """The sum of conj(x) * y; of truth values, whether both are true anywhere."""
    wide = builder.accumulator(result)
    x, y = (_rounded(builder, dtype, result, wide) for dtype in (first, second))
    if dtypes.info(wide).kind == "complex":
        product = builder.call("conjugate_product", (x, y), wide, "conjugate_product({x}, {y})")
    else:
        product = call_row(builder, arithmetic.multiply, x, y, dtype=wide)
    return builder.cast(_total(builder, "add", product, wide), wide, result)


def _norm(builder: SumBuilder, dtype: np.dtype, result: np.dtype) -> int:
    """The Euclidean norm of numbers that are rounded to the dtype of the result, or to the complex one of its parts."""
    is_complex = dtypes.info(dtype).kind == "complex"
    near = dtype if is_complex else result
    squares = dtypes.float32 if dtypes.finfo(result).max < 2.0**60 else dtypes.float64
    wide = dtypes.complex128 if is_complex else squares
    rounded = builder.cast(builder.array(dtype), dtype, near)
    x = builder.cast(rounded, near, wide)
    square = _squared(builder, x, is_complex, squares)
    if result == dtypes.float32 and builder.order == "any":
        narrow = _squared(builder, rounded, is_complex, result)
        sums = builder.reduce("add", (narrow, square), [result, squares])
        total = _chosen(builder, "usable_of_float32", *sums)
        return builder.cast(call_row(builder, elementary.sqrt, total), squares, result)
    if result != dtypes.float64:
        total = _total(builder, "add", square, squares)
        return builder.cast(call_row(builder, elementary.sqrt, total, dtype=squares), squares, result)
    scaled = [_scaled_square(builder, x, is_complex, factor) for factor in (DOWN, UP)]
    sums = builder.reduce("add", (square, *scaled), [squares] * 3)
    root = call_row(builder, elementary.sqrt, _chosen(builder, "usable_sum", *sums))
    return call_row(builder, arithmetic.multiply, root, _chosen(builder, "usable_scale", *sums))


DOWN, UP = 2.0**-600, 2.0**600
"""The factors of numbers whose squares leave the range of float64."""


def _scaled_square(builder: ExpressionBuilder, node: int, is_complex: bool, factor: float) -> int:
    """The square of the absolute value of a number times a factor."""
    name = "square_of_large" if factor == DOWN else "square_of_small"
    given = "{x}" if is_complex else "{x}, 0.0"
    return builder.call(name, (node,), dtypes.float64, f"scaled_square({given}, {factor!r})")


def _chosen(builder: ExpressionBuilder, name: str, *sums: int) -> int:
    """The one of some sums of squares that neither overflowed nor underflowed, or the root of its scale."""
    return builder.call(name, sums, dtypes.float64, name + "({x}, {y}, {z})")


def _sizes(builder: SumBuilder, dtype: np.dtype, result: np.dtype) -> int:
    """The sum of absolute values."""
    is_complex = dtypes.info(dtype).kind == "complex"
    wide = builder.accumulator(result)
    x = _rounded(builder, dtype, dtype if is_complex else result, dtypes.complex128 if is_complex else wide)
    if is_complex:
        size = builder.call(arithmetic.abs.name, (x,), wide, arithmetic.abs.triton["complex"])
    else:
        size = call_row(builder, arithmetic.abs, x, dtype=wide)
    return builder.cast(_total(builder, "add", size, wide), wide, result)


def _exponentials(row: Row) -> Build:
    """A function of the sum of exp(x - y); y is the same for all elements of a result."""

    def build(builder: SumBuilder, dtype: np.dtype, shift: np.dtype, result: np.dtype) -> int:
        x, y = (builder.cast(builder.array(given), given, computed_in(given)) for given in (dtype, shift))
        power = builder.cast(exponential(builder, x, y, computed_in(dtype)), computed_in(dtype), result)
        return call_row(builder, row, _total(builder, "add", power, result), dtype=result)

    return build


def computed_in(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which exponentials of floats are computed: float32 for narrow ones."""
    return dtypes.float32 if dtypes.info(dtype).bits < 32 else dtype


def exponential(builder: ExpressionBuilder, x: int, y: int, dtype: np.dtype) -> int:
    """Add ``exp(x - y)`` of two nodes of a dtype, and return its node."""
    distance = call_row(builder, arithmetic.subtract, x, y, dtype=dtype)
    return call_row(builder, elementary.exp, distance, dtype=dtype)


def call_row(builder: ExpressionBuilder, row: Row, *arguments: int, dtype: np.dtype = dtypes.float64) -> int:
    """Add a call of a row on numbers of one dtype, which is also that of its result, and return its node."""
    kind = dtypes.info(dtype).kind
    text = next(row.triton[name] for name in (dtype.name, kind, "any") if name in row.triton)
    return builder.call(row.function or row.name, arguments, dtype, text)


_BUILD: dict[str, Build] = {
    "sum": _folded(arithmetic.add),
    "prod": _folded(arithmetic.multiply),
    "sum_from": _folded(arithmetic.add, starts=True),
    "prod_from": _folded(arithmetic.multiply, starts=True),
    "max": _extreme(arithmetic.maximum, "larger"),
    "min": _extreme(arithmetic.minimum, "smaller"),
    "max_from": _extreme(arithmetic.maximum, "larger", starts=True),
    "min_from": _extreme(arithmetic.minimum, "smaller", starts=True),
    "nanmax": _extreme_number("maximum_number"),
    "nanmin": _extreme_number("minimum_number"),
    "argmax": _searched("argmax"),
    "argmin": _searched("argmin"),
    "largest_of_pairs": _largest_of_pairs,
    "all": _truths("and", dtypes.bool_),
    "any": _truths("or", dtypes.bool_),
    "count_nonzero": _truths("add", dtypes.int64),
    "mean": _mean,
    "var": _spread(root=False),
    "std": _spread(root=True),
    "squares": _squares,
    "vecdot": _dot,
    "norm": _norm,
    "sizes": _sizes,
    "inverse_of_exponentials": _exponentials(arithmetic.reciprocal),
    "log_of_exponentials": _exponentials(elementary.log),
}
