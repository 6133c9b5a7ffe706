"""The methods of rows, as NumPy's ufuncs have them: ``reduce``, ``accumulate``, ``outer`` and ``at``.

``add.reduce`` is `sum`, ``maximum.reduce`` is `max`, and so on. All other rows of two operands are applied step by step
with the row itself, so that its dtypes and its rounding hold in every step, on every device. Where the order cannot
matter, as in ``bitwise_or``, both halves of an axis are combined at once, in as many steps as the size of the axis has
bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.context import STATE
from tilearray.engine.devices import common_device
from tilearray.engine.signature import ArrayBase, check_array
from tilearray.errors import DeviceError, DTypeError, IndexingError, OperandError, ShapeError
from tilearray.functions import reductions, scans
from tilearray.functions.arguments import as_array, as_array_beside, as_arrays
from tilearray.functions.conversion import astype, to_numpy
from tilearray.functions.indexing.assign import set as set_item
from tilearray.functions.indexing.keys import parts_of
from tilearray.functions.indexing.views import get
from tilearray.functions.manipulation import broadcast_to, moveaxis, new_like, reshape
from tilearray.functions.reduction_options import finished, mask_of, typed
from tilearray.functions.ufunc_options import result_dtype
from tilearray.geometry.shapes import normalize_axes, normalize_axis, reduced_shape
from tilearray.ops.arithmetic import choose
from tilearray.ops.execute import check_target, copy_of, execute
from tilearray.ops.hooks import HOOKS
from tilearray.ops.moves import assign
from tilearray.ops.op import Op
from tilearray.ops.options import checked_flag
from tilearray.ops.promotion_methods import Promotion
from tilearray.promotion.scalars import as_number, classify

METHODS: dict[str, set[str]] = {
    "reduce": {"axis", "dtype", "keepdims", "initial", "where"},
    "accumulate": {"axis", "dtype"},
    "outer": {"dtype", "where"},
    "at": set(),
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

# Rows of which neither the order nor the grouping of operands matters, not even for the last bit.
_ANY_ORDER = {
    *("bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor", "maximum", "minimum"),
}
# The operand that changes nothing; the inexact ones always start with it, as in NumPy: hypot.reduce([-3.0]) is 3.
_INEXACT_IDENTITIES = {"hypot": 0, "logaddexp": -math.inf}
_IDENTITIES = {"bitwise_and": -1, "bitwise_or": 0, "bitwise_xor": 0, "logical_xor": 0} | _INEXACT_IDENTITIES
# Rows that NumPy's ufunc of the same name computes with the same bits in its own dtypes, by kind.
_INTEGERS = ("maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor")
_AS_NUMPY = dict.fromkeys(_INTEGERS, "biu") | {"add": "biufc", "subtract": "iufc", "multiply": "biufc"}

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
    name, chapter = _named(op, "reduce"), _REDUCTIONS.get(op.name)
    if chapter is not None:
        return _by_chapter(op, chapter, x, axis, dtype, out, keepdims, initial, where)
    x = _closed(op, name, x, dtype)
    axes = tuple(range(x.ndim)) if axis is None else normalize_axes(axis, x.ndim, name)
    if len(axes) > 1 and op.name not in _IDENTITIES:
        raise ShapeError(
            f"{name}: expected one axis, since the order of elements matters, got {axes}; "
            f"write {name}(ta.reshape(x, -1))"
        )
    mask = mask_of(name, x, where)
    needed = mask is not None or not x.size or op.name in _INEXACT_IDENTITIES
    start = _identity(op, x) if initial is None and needed else initial
    if mask is not None and start is None:
        raise OperandError(f"{name}: expected initial= beside where=, in case no element is left; write initial=...")
    lines = _lines(x, axes)
    found = _folded(op, name, lines, start) if mask is None else _folded_where(op, lines, _lines(mask, axes), start)
    shape = reduced_shape(x.shape, axes, checked_flag(f"{op.name}.reduce", "keepdims", keepdims))
    return finished(name, reshape(found, shape), out)


def _named(op: Op, method: str) -> str:
    """The name of a method of an op, which has two operands of one kind."""
    name = f"{op.name}.{method}"
    if op.arity != 2 or op.masks or op.exponents:
        raise OperandError(f"{name}: expected an op of two operands of one dtype; write ta.{op.name}(...)")
    return name


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


def _closed(op: Op, name: str, x: Any, dtype: Any) -> ArrayBase:
    """`x` in a dtype that the op returns for operands of it."""
    array = as_array(name, x)
    if dtype is not None:
        array = astype(array, dtype, copy=False)
    if op.promotion is Promotion.TRUTH:
        return astype(array, dtypes.bool_, copy=False)
    returned = result_dtype(op, array.dtype)
    if returned != array.dtype:
        if result_dtype(op, returned) != returned or returned == dtypes.bool_:
            raise DTypeError(
                f"{name}: expected an op that returns {array.dtype.name}, {op.name} returns {returned.name}; "
                f"write x.astype({returned.name!r}) first"
            )
        array = astype(array, returned)
    return array


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
    if op.name in _ANY_ORDER:
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
    name, scan = _named(op, "accumulate"), _SCANS.get(op.name)
    x = as_array(name, x) if scan is not None else _closed(op, name, x, dtype)
    place = normalize_axis(axis, x.ndim, name)
    if scan is not None:
        return scan(x, axis=place, dtype=dtype, out=out)
    if op.name in _EXTREMES:
        return finished(name, scans.scan(name, _EXTREMES[op.name], x, place, x.dtype), out)
    before, count = (slice(None),) * place, x.shape[place]
    found: Any = execute(assign, (x,), new_like(x, x.shape))
    if op.name in _ANY_ORDER:
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


# --- at --------------------------------------------------------------------------------------------------------------


def at(op: Op, x: Any, indices: Any, values: Any) -> None:
    """Apply an op in place at indices. See `tilearray.ops.ufunc_methods.UfuncMethods.at`.

    Raises
    ------
    OperandError
        If `x` is not an Array, or the number of operands is not that of the op.
    IndexingError
        If the indices do not fit.
    DTypeError
        If the dtype of `x` cannot store the result.
    DeviceError
        If an array is on a GPU.
    """
    name = f"{op.name}.at"
    check_array(name, x)
    if op.arity > 2 or (values is None) != (op.arity == 1):
        raise OperandError(f"{name}: expected an op of one operand, or of two and values; write x[indices] = ...")
    check_target(name, x)
    key, places = _places(name, x, indices)
    if values is not None and classify(values) is None:
        values = broadcast_to(as_array_beside(name, values, x, "values"), places.shape)
        common_device(name, [x._signature, values._signature])
    if not _at_with_numpy(op, x, key, values):
        _at_in_rounds(op, x, places.reshape(-1), values)


def _places(name: str, x: ArrayBase, indices: Any) -> tuple[Any, np.ndarray]:
    """The key for NumPy, and the position of every selected element in C order."""
    parts = [_host_key(name, part) for part in parts_of(indices)]
    key = tuple(parts) if isinstance(indices, tuple) else parts[0]
    if not x.device.backend.on_host:
        raise DeviceError(
            f"{name}: expected an array on the host, got one on {x.device}, where tilearray has no {name} yet; "
            f"write ta.{name}(x.to_device('cpu'), ...)"
        )
    try:
        return key, np.asarray(np.arange(x.size).reshape(x.shape)[key])
    except IndexError as error:
        raise IndexingError(f"{name}: {error}; write indices of x") from None


def _host_key(name: str, part: Any) -> Any:
    if not isinstance(part, ArrayBase):
        return part
    if not part.device.backend.on_host:
        raise DeviceError(f"{name}: expected indices on the host, got {part.device}; write indices.to_device('cpu')")
    return to_numpy(part)


def _at_with_numpy(op: Op, x: Any, key: Any, values: Any) -> bool:
    """Apply the op by NumPy's ufunc, if that computes the same bits; return whether it did."""
    if x.dtype.kind not in _AS_NUMPY.get(op.name, ""):
        return False
    number = classify(values)
    given = values.dtype if number is None else number
    typing = op.typing(STATE.get().semantics, [x.dtype, given])
    if typing.result != x.dtype:
        return False
    operand = as_number(values, x.dtype, op.name) if number else to_numpy(astype(values, x.dtype, copy=False))
    with np.errstate(all="ignore"):
        getattr(np, op.ufunc or op.name).at(to_numpy(x), key, operand)
    return True


def _at_in_rounds(op: Op, x: Any, places: np.ndarray, values: Any) -> None:
    """Apply the op by itself: first at the first occurrence of each place, then at the second, and so on."""
    flat = values if values is None or classify(values) is not None else reshape(values, -1)
    target = x if x.ndim else reshape(x, (1,), copy=False)
    for chosen in _rounds(places):
        key = tuple(np.unravel_index(places[chosen], target.shape))
        now = get(target, key)
        operands = (now,) if values is None else (now, get(flat, chosen) if isinstance(flat, ArrayBase) else flat)
        execute(op, operands, now)
        set_item(target, key, now)


def _rounds(places: np.ndarray) -> list[np.ndarray]:
    """The indices into `places` by rounds: no place occurs twice in a round, and its occurrences keep their order.

    >>> [chosen.tolist() for chosen in _rounds(np.array([5, 3, 5, 5]))]
    [[1, 0], [2], [3]]
    """
    order = np.argsort(places, kind="stable")
    _, starts, counts = np.unique(places[order], return_index=True, return_counts=True)
    rank = np.arange(places.size) - np.repeat(starts, counts)
    by_rank = order[np.argsort(rank, kind="stable")]
    return np.split(by_rank, np.cumsum(np.bincount(rank))[:-1]) if places.size else []


HOOKS.reduce, HOOKS.accumulate, HOOKS.outer, HOOKS.at = reduce, accumulate, outer, at
