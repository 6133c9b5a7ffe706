"""How cotangents go back through one operation: rows by their rules, reductions, scans and products by theirs.

`pullback_of` returns for a call the function from the cotangent of its result to those of its operands, and says which
operands, and whether the result, it reads again. Rules call public functions only, so that they run on arrays of every
kind, and can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilearray.engine.operation import FixedOperation, Operation
from tilearray.errors import GradientError
from tilearray.functions.conversion import astype
from tilearray.functions.indexing.views import get
from tilearray.functions.joining import concat
from tilearray.functions.manipulation import broadcast_to, expand_dims, flip, permute_dims, reshape, squeeze
from tilearray.functions.products import matmul, matrix_transpose
from tilearray.functions.reductions import mean, sum
from tilearray.functions.scans import cumulative_prod, cumulative_sum
from tilearray.functions.searching import where
from tilearray.gradients.rules import OUT, is_real, terms_of, value_of
from tilearray.ops.elementary import exp
from tilearray.ops.moves import Storing
from tilearray.ops.number_parts import conj, isnan, sign
from tilearray.ops.row import Row
from tilearray.ops.summation_order import SummationOrder

Pullback = Callable[[Sequence[Any], Sequence[bool]], Sequence[Any]]
"""``pull(cotangents of the results, which operands are wanted)``: for each operand an array, or a number for 0.

Of several results, those on which nothing depends have None as their cotangent.
"""


class Call:
    """One call, as rules see it.

    Attributes
    ----------
    operation : Operation
    operands : sequence
        Arrays and numbers, without those that the rules do not read.
    out : Array or None
        The result, if the rules read it.
    active : sequence of bool
        Which operands arguments reach.
    """

    __slots__ = ("active", "operands", "operation", "out")

    def __init__(self, operation: Any, operands: Sequence[Any], out: Any, active: Sequence[bool]) -> None:
        self.operation = operation
        self.operands = operands
        self.out = out
        self.active = active

    @property
    def order(self) -> SummationOrder:
        """The order in which the reduction or the scan combines elements."""
        return self.operation.order

    @property
    def axes(self) -> tuple[int, ...]:
        """The reduced axes."""
        return self.operation.reduced.axes

    def over(self, reduced: Any) -> Any:
        """A result or its cotangent with the reduced axes, of size 1."""
        kept = self.operation.reduced.keepdims or self.operation.reduced.spread
        return reduced if kept or not self.axes else expand_dims(reduced, axis=self.axes)

    def wide(self, reduced: Any) -> Any:
        """The same, repeated to the shape of the first operand."""
        return broadcast_to(self.over(reduced), self.operands[0].shape)

    def total(self, x: Any) -> Any:
        """Sums over the reduced axes, in the dtype of `x`."""
        return sum(x, axis=self.axes, keepdims=True, dtype=x.dtype)


def pullback_of(
    operation: Operation, operands: Sequence[Any], out: Any, active: Sequence[bool]
) -> tuple[Pullback, list[int], bool]:
    """Return how cotangents go back through a call, which operands that reads, and whether it reads the result.

    Raises
    ------
    GradientError
        If the operation has no derivative.
    """
    row = operation.row if isinstance(operation, Storing) else operation
    if isinstance(row, Row):
        return _of_row(row, operands, out, active)
    rule = _RULES.get(_kind(operation))
    if rule is None:
        raise GradientError(
            f"vjp: {operation.name} has no derivative; write it outside of the function, or of its values only"
        )
    pull, reads, reads_result = rule
    kept = [operand if place in reads else _Shape.of(operand) for place, operand in enumerate(operands)]
    call = Call(operation, kept, out if reads_result else None, active)
    return (lambda cotangents, wanted: pull(call, cotangents[0])), list(reads), reads_result


def _kind(operation: Operation) -> str:
    """The name of a reduction, or what else an operation does."""
    if operation.scanned is not None:
        return "scan"
    if operation.reduced is not None:
        return "product" if operation.reduced.multiplies else operation.name
    return "repeat" if isinstance(operation, FixedOperation) and _only_casts(operation) else ""


def _only_casts(operation: FixedOperation) -> bool:
    """Whether an operation stores its first operand, and takes the others for their shape."""
    first, *casts = operation.graph.nodes
    return first == ("input", 0) and all(node[:2] == ("cast", place) for place, node in enumerate(casts))


class _Shape:
    """What is left of an array that no rule reads."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape = shape
        self.dtype = dtype

    @classmethod
    def of(cls, operand: Any) -> Any:
        signature = getattr(operand, "_signature", None)
        return operand if signature is None else cls(signature.layout.shape, signature.dtype)


# --- rows ------------------------------------------------------------------------------------------------------------


def _of_row(row: Row, operands: Sequence[Any], out: Any, active: Sequence[bool]) -> tuple[Pullback, list[int], bool]:
    rules = row.derivative
    if not rules:
        raise GradientError(
            f"vjp: {row.name} has no derivative; write it outside of the function, or of its values only"
        )
    terms = terms_of(rules)
    used = [term for term, flag in zip(terms, active, strict=True) if flag and term is not None]
    reads = {place for term in used for place in term.reads}
    values = [operand if place in reads else None for place, operand in enumerate(operands)]
    values.append(out if OUT in reads else None)

    def pull(cotangents: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
        return [
            value_of(term, cotangents[0], values, row.exponents) if flag and term is not None else 0
            for term, flag in zip(terms, wanted, strict=True)
        ]

    return pull, sorted(reads - {OUT}), OUT in reads


# --- reductions ------------------------------------------------------------------------------------------------------


def _sum(call: Call, g: Any) -> list[Any]:
    return [call.wide(_cast(g, call.operands[0].dtype))]


def _cast(g: Any, dtype: Any) -> Any:
    return g if g.dtype == dtype or not is_real(g) else astype(g, dtype)


def _mean(call: Call, g: Any) -> list[Any]:
    return [call.wide(_cast(g / call.operands[1], call.operands[0].dtype))]


def _product(call: Call, g: Any) -> list[Any]:
    """The product of all other elements: no division, so that zeros are exact."""
    x = call.operands[0]
    rest = tuple([axis for axis in range(x.ndim) if axis not in call.axes])
    order = (*rest, *call.axes)
    kept = tuple([x.shape[axis] for axis in rest])
    rows = reshape(permute_dims(x, order), (*kept, -1))
    others = _before(rows, call.order) * _before(rows, call.order, turned=True)
    back = tuple([order.index(axis) for axis in range(x.ndim)])
    spread = permute_dims(reshape(others, tuple([x.shape[axis] for axis in order])), back)
    g = g * call.operands[1] if call.operation.name == "prod_from" else g
    return [call.over(g) * _conj(spread)]


def _before(rows: Any, order: SummationOrder, turned: bool = False) -> Any:
    """For each element the product of those before it along the last axis, or of those after it."""
    if turned:
        return flip(_before(flip(rows, axis=-1), order), axis=-1)
    products = cumulative_prod(rows, axis=-1, dtype=rows.dtype, include_initial=True, order=order)
    return get(products, (..., slice(None, -1)))


def _conj(x: Any) -> Any:
    return x if is_real(x) else conj(x)


def _variance(call: Call, g: Any) -> list[Any]:
    x, _, _, divisor = call.operands
    distance = x - mean(x, axis=call.axes, keepdims=True, order=call.order)
    return [call.over(g) * (2.0 / divisor) * distance, 0]


def _deviation(call: Call, g: Any) -> list[Any]:
    x, _, _, divisor = call.operands
    out = call.out
    slope = _over(g, out * divisor)
    return [call.over(slope) * (x - mean(x, axis=call.axes, keepdims=True, order=call.order)), 0]


def _squares(call: Call, g: Any) -> list[Any]:
    """The middle's part is a sum of distances from a mean: 0, except for its own derivative."""
    x, mask, middle = call.operands
    slope = call.over(g) * where(mask, 2 * (x - middle), 0)
    return [_cast(slope, x.dtype), 0, -slope]


def _over(g: Any, x: Any) -> Any:
    """The quotient, and 0 where x is 0; so is its derivative there, since nothing is divided by 0."""
    is_zero = x == 0
    return where(is_zero, 0, g / where(is_zero, 1, x))


def _extreme(call: Call, g: Any) -> list[Any]:
    """Elements that are equal to the result share the cotangent. If it is NaN, so are the gradients of all elements."""
    out = call.over(call.out)
    return [_shared(call, g, where(isnan(out), out, 0))]


def _extreme_number(call: Call, g: Any) -> list[Any]:
    """The same, without elements that are NaN."""
    return [_shared(call, g, 0)]


def _shared(call: Call, g: Any, rest: Any) -> Any:
    """The cotangent, in equal parts for elements that are equal to the result; the others have `rest`."""
    g = call.over(g)
    ties = astype(call.operands[0] == call.over(call.out), g.dtype)
    return where(ties != 0, g / call.total(ties), rest)


def _dot(call: Call, g: Any) -> list[Any]:
    first, second = call.operands
    g = call.over(g)
    return [
        _conj(g) * second if call.active[0] else 0,
        g * first if call.active[1] else 0,
    ]


def _norm(call: Call, g: Any) -> list[Any]:
    out = call.out
    return [call.over(_over(g, out)) * call.operands[0]]


def _sizes(call: Call, g: Any) -> list[Any]:
    return [call.over(g) * sign(call.operands[0])]


def _softmax(call: Call, g: Any) -> list[Any]:
    out = call.out
    return [out * (g - call.total(g * out))]


def _log_softmax(call: Call, g: Any) -> list[Any]:
    return [g - exp(call.out) * call.total(g)]


def _logsumexp(call: Call, g: Any) -> list[Any]:
    return [call.over(g) * exp(call.operands[0] - call.over(call.out))]


# --- scans -----------------------------------------------------------------------------------------------------------


def _scan(call: Call, g: Any) -> list[Any]:
    operation, x = call.operation, call.operands[0]
    axis = operation.scanned.axis
    if operation.scanned.initial:
        g = get(g, (*[slice(None)] * axis, slice(1, None)))
    if operation.how == "add":
        return [_summed_from(g, axis, call.order)]
    if operation.how != "multiply":
        raise GradientError(
            f"vjp: {operation.name} has no derivative; write it outside of the function, or of its values only"
        )
    products = cumulative_prod(x, axis=axis, dtype=x.dtype, include_initial=True, order=call.order)
    before = get(products, (*[slice(None)] * axis, slice(None, -1)))
    return [_conj(before) * _recurrence(g, _conj(x), axis)]


def _summed_from(g: Any, axis: int, order: SummationOrder) -> Any:
    """For each element the sum of those from it to the end."""
    return flip(cumulative_sum(flip(g, axis=axis), axis=axis, dtype=g.dtype, order=order), axis=axis)


def _recurrence(g: Any, x: Any, axis: int) -> Any:
    """The solution of ``r[i] = g[i] + x[i + 1] * r[i + 1]``, in as many steps as the size has bits.

    After each step ``r[i] = total[i] + factor[i] * r[i + distance]``, for twice the distance.
    """
    size = x.shape[axis]
    before = (slice(None),) * axis
    total, distance = g, 1
    factor = get(x, (*before, slice(1, None)))
    while distance < size:
        near = get(total, (*before, slice(None, -distance)))
        far, end = (get(total, (*before, part)) for part in (slice(distance, None), slice(-distance, None)))
        total = concat([near + factor * far, end], axis=axis)
        factor = get(factor, (*before, slice(None, -distance))) * get(factor, (*before, slice(distance, None)))
        distance *= 2
    return total


# --- products of matrices --------------------------------------------------------------------------------------------


def _matmul(call: Call, g: Any) -> list[Any]:
    """A 1-d operand is one row or one column, and so is its part of the cotangent."""
    first, second = call.operands
    rows, columns = first.ndim > 1, second.ndim > 1
    left, right = first if rows else expand_dims(first, axis=0), second if columns else expand_dims(second, axis=1)
    g = g if columns else expand_dims(g, axis=-1)
    g = g if rows else expand_dims(g, axis=-2)
    found: list[Any] = [0, 0]
    if call.active[0]:
        one = matmul(g, _conj(matrix_transpose(right)))
        found[0] = one if rows else squeeze(one, axis=-2)
    if call.active[1]:
        one = matmul(_conj(matrix_transpose(left)), g)
        found[1] = one if columns else squeeze(one, axis=-1)
    return found


_RULES: dict[str, tuple[Callable[[Call, Any], list[Any]], tuple[int, ...], bool]] = {
    "sum": (_sum, (), False),
    "sum_from": (lambda call, g: [*_sum(call, g), 0], (), False),
    "prod": (_product, (0,), False),
    "prod_from": (lambda call, g: [*_product(call, g), 0], (0,), False),
    "mean": (lambda call, g: [*_mean(call, g), 0], (), False),
    "var": (lambda call, g: [*_variance(call, g), 0, 0], (0,), False),
    "std": (lambda call, g: [*_deviation(call, g), 0, 0], (0,), True),
    "max": (_extreme, (0,), True),
    "min": (_extreme, (0,), True),
    "max_from": (lambda call, g: [*_extreme(call, g), 0], (0,), True),
    "min_from": (lambda call, g: [*_extreme(call, g), 0], (0,), True),
    "nanmax": (_extreme_number, (0,), True),
    "nanmin": (_extreme_number, (0,), True),
    "squares": (_squares, (0, 1, 2), False),
    "vecdot": (_dot, (0, 1), False),
    "norm": (_norm, (0,), True),
    "sizes": (_sizes, (0,), False),
    "softmax": (_softmax, (), True),
    "log_softmax": (_log_softmax, (), True),
    "logsumexp": (_logsumexp, (0,), True),
    "repeat": (lambda call, g: [g, *[0] * (len(call.operands) - 1)], (), False),
    "scan": (_scan, (0,), False),
    "product": (_matmul, (0, 1), False),
}
"""By the name of a reduction, or the kind of another operation: its rule, the operands that it reads, and whether it
reads the result."""
