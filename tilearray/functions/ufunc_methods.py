"""The methods of rows, as NumPy's ufuncs have them: ``reduce``, ``accumulate``, ``outer``, ``at``, ``reduceat``.

``add.reduce`` is `sum`, ``maximum.reduce`` is `max`, and so on. All other rows of two operands are applied step by step
with the row itself, so that its dtypes and its rounding hold in every step, on every device. Where the order cannot
matter, as in ``bitwise_or``, both halves of an axis are combined at once, in as many steps as the size of the axis has
bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from tilearray.engine.signature import ArrayBase
from tilearray.errors import OperandError, ShapeError
from tilearray.functions import reductions, scans
from tilearray.functions.arguments import as_array, as_arrays
from tilearray.functions.conversion import astype
from tilearray.functions.indexing.views import get
from tilearray.functions.manipulation import broadcast_to, moveaxis, new_like, reshape
from tilearray.functions.reduction_options import finished, mask_of, typed
from tilearray.functions.ufunc_options import ANY_ORDER, closed, named
from tilearray.geometry.shapes import normalize_axes, normalize_axis, reduced_shape
from tilearray.ops.arithmetic import choose
from tilearray.ops.execute import copy_of, execute
from tilearray.ops.hooks import HOOKS
from tilearray.ops.moves import assign
from tilearray.ops.op import Op
from tilearray.ops.options import checked_flag
from tilearray.ops.promotion_methods import Promotion

METHODS: dict[str, set[str]] = {
    "reduce": {"axis", "dtype", "keepdims", "initial", "where"},
    "accumulate": {"axis", "dtype"},
    "outer": {"dtype", "where"},
    "at": set(),
    "reduceat": {"axis", "dtype"},
}
"""The methods, and their keywords besides ``out``."""

_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "add": reductions.sum,
    "multiply": reductions.prod,
    "maximum": reductions.max,
    "minimum": reductions.min,
    "logical_and": reductions.all,
    "logical_or": reductions.any,
}
_SCANS: dict[str, Callable[..., Any]] = {"add": scans.cumulative_sum, "multiply": scans.cumulative_prod}

_EXTREMES = {"maximum": "maximum", "minimum": "minimum", "logical_or": "maximum", "logical_and": "minimum"}
"""The scans of one dtype: of truth values the largest is `or`."""

# The operand that changes nothing; some rows always start with it, as in NumPy: hypot.reduce([-3.0]) is 3.
_STARTS = {"gcd": 0, "hypot": 0, "logaddexp": -math.inf, "logaddexp2": -math.inf}
_IDENTITIES = {"bitwise_and": -1, "bitwise_or": 0, "bitwise_xor": 0, "logical_xor": 0} | _STARTS

# --- reduce ----------------------------------------------------------------------------------------------------------


def reduce(op: Op, x: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    """Return ``op.reduce(x, ...)``. See `tilearray.ops.ufunc_methods.UfuncMethods.reduce`.

    Raises
    ------
    OperandError
        If the op does not have two operands of one kind, or `where` needs an initial value.
    ShapeError
        If `x` has no such axis, the order of several axes matters, or there are no elements and no initial value.
    DTypeError
        If the op does not return the dtype of its operands.
    """
    name, chapter = named(op, "reduce"), _REDUCTIONS.get(op.name)
    if chapter is not None:
        return _by_chapter(op, chapter, x, axis, dtype, out, keepdims, initial, where)
    x = closed(op, name, x, dtype)
    axes = tuple(range(x.ndim)) if axis is None else normalize_axes(axis, x.ndim, name)
    if len(axes) > 1 and op.name not in _IDENTITIES:
        raise ShapeError(
            f"{name}: expected one axis, since the order of elements matters, got {axes}; "
            f"write {name}(ta.reshape(x, -1))"
        )
    mask = mask_of(name, x, where)
    needed = mask is not None or not x.size or op.name in _STARTS
    start = _identity(op, x) if initial is None and needed else initial
    if mask is not None and start is None:
        raise OperandError(f"{name}: expected initial= beside where=, in case no element is left; write initial=...")
    lines = _lines(x, axes)
    found = _folded(op, name, lines, start) if mask is None else _folded_where(op, lines, _lines(mask, axes), start)
    shape = reduced_shape(x.shape, axes, checked_flag(f"{op.name}.reduce", "keepdims", keepdims))
    return finished(name, reshape(found, shape), out)


def _by_chapter(
    op: Op,
    chapter: Callable[..., Any],
    x: Any,
    axis: Any,
    dtype: Any,
    out: Any,
    keepdims: bool,
    initial: Any,
    where: Any,
) -> Any:
    """A reduction that is a function of its own: `sum` for ``add.reduce``."""
    options = {"axis": axis, "out": out, "keepdims": keepdims, "where": None if where is True else where}
    if op.promotion is not Promotion.TRUTH:
        options["initial"] = initial
    if op.name in _SCANS:
        return chapter(x, dtype=dtype, **options)
    return chapter(x if dtype is None else astype(as_array(f"{op.name}.reduce", x), dtype, copy=False), **options)


def _identity(op: Op, x: ArrayBase) -> Any:
    """The operand that changes nothing, in the dtype of `x`; None if there is none."""
    value = _IDENTITIES.get(op.name)
    return value if value is None or x.dtype.kind != "b" else bool(value)


def _lines(x: ArrayBase, axes: tuple[int, ...]) -> ArrayBase:
    """`x` with the elements along axes in one axis, the first."""
    moved = moveaxis(x, axes, tuple(range(len(axes))))
    rest = moved.shape[len(axes) :]
    return reshape(moved, (math.prod(moved.shape[: len(axes)]), *rest))


def _folded(op: Op, name: str, lines: ArrayBase, start: Any) -> ArrayBase:
    """The op applied along the first axis, and to a number before it."""
    count = lines.shape[0]
    first = None if start is None else typed(lines, start, name)
    if not count:
        if first is None:
            raise ShapeError(f"{name}: expected at least one element, got shape {lines.shape}; write initial=...")
        return copy_of(broadcast_to(first, lines.shape[1:]))
    if op.name in ANY_ORDER:
        found = _halved(op, lines)
        return found if first is None else op(first, found)
    found = copy_of(get(lines, 0)) if first is None else op(first, get(lines, 0))
    for place in range(1, count):
        found = op(found, get(lines, place))
    return found


def _halved(op: Op, lines: Any) -> Any:
    """The op applied along the first axis in any order: both halves at once."""
    lines, left = copy_of(lines) if lines.shape[0] == 1 else lines, None
    while lines.shape[0] > 1:
        half, odd = divmod(lines.shape[0], 2)
        if odd:
            last = get(lines, -1)
            left = last if left is None else op(left, last)
        lines = op(get(lines, slice(half)), get(lines, slice(half, 2 * half)))
    return get(lines, 0) if left is None else op(get(lines, 0), left)


def _folded_where(op: Op, lines: ArrayBase, mask: ArrayBase, start: Any) -> Any:
    """The op applied along the first axis to the elements of a mask, and to a number before them."""
    found: Any = copy_of(broadcast_to(typed(lines, start, op.name), lines.shape[1:]))
    for place in range(lines.shape[0]):
        found = choose(get(mask, place), op(found, get(lines, place)), found)
    return found


# --- accumulate and outer --------------------------------------------------------------------------------------------


def accumulate(op: Op, x: Any, axis: Any, dtype: Any, out: Any) -> Any:
    """Return ``op.accumulate(x, ...)``. See `tilearray.ops.ufunc_methods.UfuncMethods.accumulate`.

    Raises
    ------
    OperandError
        If the op does not have two operands of one kind.
    ShapeError
        If `x` has no such axis.
    DTypeError
        If the op does not return the dtype of its operands.
    """
    name, scan = named(op, "accumulate"), _SCANS.get(op.name)
    x = as_array(name, x) if scan is not None else closed(op, name, x, dtype)
    place = normalize_axis(axis, x.ndim, name)
    if scan is not None:
        return scan(x, axis=place, dtype=dtype, out=out)
    if op.name in _EXTREMES:
        return finished(name, scans.scan(name, _EXTREMES[op.name], x, place, x.dtype), out)
    before, count = (slice(None),) * place, x.shape[place]
    found: Any = execute(assign, (x,), new_like(x, x.shape))
    if op.name in ANY_ORDER:
        distance = 1
        while distance < count:  # after each step an element stands for twice as many
            head, tail = get(found, (*before, slice(-distance))), get(found, (*before, slice(distance, None)))
            execute(op, (head, tail), tail)
            distance *= 2
    else:
        for step in range(1, count):
            here = get(found, (*before, step))
            execute(op, (get(found, (*before, step - 1)), here), here)
    return finished(name, found, out)


def outer(op: Op, x1: Any, x2: Any, options: dict[str, Any]) -> Any:
    """Return ``op.outer(x1, x2)``. See `tilearray.ops.ufunc_methods.UfuncMethods.outer`.

    Raises
    ------
    OperandError
        If the op does not have two operands.
    """
    if op.arity != 2:
        raise OperandError(f"{op.name}.outer: expected an op of two operands; write ta.{op.name}(...)")
    x1, x2 = as_arrays(f"{op.name}.outer", (x1, x2))
    if isinstance(x1, ArrayBase) and isinstance(x2, ArrayBase):
        x1 = get(x1, (..., *(None,) * x2.ndim))
    return op(x1, x2, **options)


# --- at and reduceat -------------------------------------------------------------------------------------------------


def at(op: Op, x: Any, indices: Any, values: Any, mode: Any) -> None:
    """Apply an op in place at indices. See `tilearray.functions.ufunc_at.at`."""
    _ufunc_at().at(op, x, indices, values, mode)


@cache
def _ufunc_at() -> Any:
    """Return a module that few programs need; an import statement would take longer at each call."""
    from tilearray.functions import ufunc_at

    return ufunc_at


def reduceat(op: Op, x: Any, indices: Any, axis: Any, dtype: Any, out: Any) -> Any:
    """Apply an op along segments of an axis. See `tilearray.functions.ufunc_reduceat.reduceat`."""
    return _ufunc_reduceat().reduceat(op, x, indices, axis, dtype, out)


@cache
def _ufunc_reduceat() -> Any:
    """Return a module that few programs need, as `_ufunc_at` does."""
    from tilearray.functions import ufunc_reduceat

    return ufunc_reduceat


HOOKS.reduce, HOOKS.accumulate, HOOKS.outer, HOOKS.at, HOOKS.reduceat = reduce, accumulate, outer, at, reduceat
