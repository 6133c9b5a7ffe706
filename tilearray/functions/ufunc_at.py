"""The method ``at`` of rows: an op applied in place at indices, once more for every repetition of an index.

On the host NumPy's ufunc does it where it has the same bits, and else the row itself: first at the first occurrence of
each place, then at the second, and so on. So every step is rounded, in the order of the indices.

On a GPU an op of which the order does not matter is one atomic for each index. Dtypes narrower than 32 bits are
combined in 32 bits, in a copy of the target. For other ops indices are sorted, and the occurrences of each are taken in
their order (`tilearray.functions.indexing.fold`).
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE
from tilearray.engine.devices import Device, common_device
from tilearray.engine.signature import ArrayBase, check_array, overlap
from tilearray.errors import DeviceError, IndexingError, OperandError, shown
from tilearray.functions.arguments import as_array_beside, deepest
from tilearray.functions.conversion import astype, to_numpy
from tilearray.functions.indexing.assign import set as set_item
from tilearray.functions.indexing.assign import set_view, taken
from tilearray.functions.indexing.fold import fold
from tilearray.functions.indexing.keys import has_arrays, parts_of
from tilearray.functions.indexing.scatter import combine
from tilearray.functions.indexing.views import get
from tilearray.functions.manipulation import broadcast_to, reshape
from tilearray.ops.execute import check_target, copy_of, execute
from tilearray.ops.numbers import rounded_number
from tilearray.ops.op import Op
from tilearray.promotion.scalars import as_number, classify

Mode = Literal["ordered", "atomic"]
MODES = ("ordered", "atomic")


def at(op: Op, x: Any, indices: Any, values: Any, mode: Mode = "ordered") -> None:
    """Apply an op in place at indices. See `tilearray.ops.ufunc_methods.UfuncMethods.at`.

    Raises
    ------
    OperandError
        If `x` is not an Array, the number of operands is not that of the op, or `mode` is another word.
    IndexingError
        If the indices do not fit.
    DTypeError
        If the dtype of `x` cannot store the result.
    DeviceError
        If the arrays are on several devices, or the device lacks the op.
    """
    name = f"{op.name}.at"
    check_array(name, x)
    if op.arity > 2 or (values is None) != (op.arity == 1):
        raise OperandError(f"{name}: expected an op of one operand, or of two and values; write x[indices] = ...")
    if mode not in MODES:  # pyright: ignore[reportUnnecessaryContains]
        raise OperandError(f"{name}: expected a mode, got {shown(mode)}; write mode='ordered' or mode='atomic'")
    check_target(name, x)
    device = x._signature.device
    if isinstance(values, ArrayBase) and values._signature.device is not device:
        device = deepest([x, values])._signature.device
    if device.functions is not None:
        device.functions.at(op, x, indices, values, mode)
        return
    if x._signature.device.backend.computes_places:
        _at_on_device(op, x, indices, values, mode)
        return
    key, places = _places(name, x, indices)
    if values is not None and classify(values) is None:
        values = as_array_beside(name, values, x, "values")
        common_device(name, [x._signature, values._signature])
        values = broadcast_to(copy_of(values) if overlap(x, values) else values, places.shape)
    if not _at_with_numpy(op, x, key, values):
        _at_in_rounds(op, x, places.reshape(-1), values)


def at_sorted(op: Op, x: Any, places: Any, values: Any) -> None:
    """Apply an op in place at places of the first axis, which do not decrease, in their order.

    Parameters
    ----------
    op : Op
        It returns the dtype of `x`.
    x : Array
        In C order.
    places : Array
        int64, all inside the axis, and on the device of the memory of `x`.
    values : Array
        Of the dtype of `x`, with as many elements along the first axis as there are places; it shares no memory with
        `x`.
    """
    device = x._signature.device
    if device.functions is not None:
        device.functions.at(op, x, places, values, "ordered")
    elif not device.backend.computes_places:
        row = math.prod(x.shape[1:])  # in one axis, for which NumPy is faster
        each = to_numpy(places)
        each = each if row == 1 else (each[:, None] * row + np.arange(row)).reshape(-1)
        target, values = reshape(x, -1, copy=False), reshape(values, -1)
        if not _at_with_numpy(op, target, each, values):
            _at_in_rounds(op, target, each, values)
    else:
        way = _way(op, x, values, "ordered")
        if way.atomic is None:
            op.check_device(device)
            fold(op, x, places, values, inside=True, ascending=True)
        else:
            _combine(op, way.atomic, way.wide, x, places, values, inside=True)


# --- on the host ------------------------------------------------------------------------------------------------------

# Rows that NumPy's ufunc of the same name computes with the same bits in its own dtypes, by kind.
_AS_NUMPY = {
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), "biu"),
    **dict.fromkeys(("maximum", "minimum"), "biuf"),
    **dict.fromkeys(("add", "multiply"), "biufc"),
    "subtract": "iufc",
    "divide": "f",
}
_EXTREMES = ("maximum", "minimum")
"""Of two zeros, NumPy takes the first one in float16, whatever its sign."""


def _places(name: str, x: ArrayBase, indices: Any) -> tuple[Any, np.ndarray]:
    """The key for NumPy, and the position of every selected element in C order."""
    parts = [_host_key(name, part) for part in parts_of(indices)]
    key = tuple(parts) if isinstance(indices, tuple) else parts[0]
    check_on_host(name, x.device)
    try:
        return key, np.asarray(np.arange(x.size).reshape(x.shape)[key])
    except IndexError as error:
        raise IndexingError(f"{name}: {error}; write indices of x") from None


def check_on_host(name: str, device: Device) -> None:
    """Raise DeviceError if a device that does not compute places is not the host."""
    if not device.backend.on_host:
        raise DeviceError(
            f"{name}: expected an array on the host, got one on {device}, where tilearray has no {name} yet; "
            f"write ta.{name}(x.to_device('cpu'), ...)"
        )


def _host_key(name: str, part: Any) -> Any:
    if not isinstance(part, ArrayBase):
        return part
    if not part.device.backend.on_host:
        raise DeviceError(f"{name}: expected indices on the host, got {part.device}; write indices.to_device('cpu')")
    return to_numpy(part)


def _at_with_numpy(op: Op, x: Any, key: Any, values: Any) -> bool:
    """Apply the op by NumPy's ufunc, if that computes the same bits; return whether it did."""
    if x.dtype.kind not in _AS_NUMPY.get(op.name, "") or (x.dtype == dtypes.float16 and op.name in _EXTREMES):
        return False
    number = classify(values)
    given = values.dtype if number is None else number
    typing = op.typing(STATE.get().semantics, [x.dtype, given])
    if typing.result != x.dtype or typing.casts[1][0] != x.dtype:  # as torch takes numbers beside narrow floats
        return False
    if number is None:
        operand = to_numpy(astype(values, x.dtype, copy=False))
    else:  # in the dtype of x: beside a Python float NumPy computes in float64
        operand = rounded_number(as_number(values, x.dtype, op.name), x.dtype)
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


# --- on a GPU ---------------------------------------------------------------------------------------------------------

_COMBINED = {
    "add": "add",
    "maximum": "maximum",
    "minimum": "minimum",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
}
"""The atomics of integers."""
_OF_BOOLS = {
    **dict.fromkeys(("add", "maximum", "logical_or", "bitwise_or"), "or"),
    **dict.fromkeys(("multiply", "minimum", "logical_and", "bitwise_and"), "and"),
    **dict.fromkeys(("logical_xor", "bitwise_xor"), "xor"),
}
_MODULAR = ("add", "bitwise_and", "bitwise_or", "bitwise_xor")
"""Rows of which the low bits of integers depend on no others: operands may be wrapped first."""
_INTEGER_KINDS = ("int", "uint")


def _at_on_device(op: Op, x: Any, key: Any, values: Any, mode: Mode) -> None:
    """Apply the op by atomics, or on a view if the key has no arrays, so that no index occurs twice."""
    given: Any = values if values is None or isinstance(values, ArrayBase) else taken(x, values)
    if isinstance(given, ArrayBase):
        common_device(f"{op.name}.at", [x._signature, given._signature])
        given = copy_of(given) if overlap(x, given) else given
    if not has_arrays(key):
        view = get(x, key)
        if isinstance(given, ArrayBase):
            given = broadcast_to(given, view.shape)
        execute(op, (view,) if given is None else (view, given), view)
        return
    way = None if given is None else _way(op, x, given, mode)
    if way is None or way.atomic is None:
        op.check_device(x.device)
        fold(op, x, key, given)
        return
    _combine(op, way.atomic, way.wide, x, key, given)


class _Way(NamedTuple):
    """How values are applied at indices; it follows from the semantics, op, mode and dtypes.

    Attributes
    ----------
    atomic : str or None
        How `combine` does it for integers, or for floats of any order, in one step; None if the order matters.
    wide : numpy.dtype or None
        The dtype of the copy in which elements narrower than 32 bits are combined.
    """

    atomic: str | None
    wide: np.dtype | None


_WAYS: TwoGenerations[_Way] = TwoGenerations(512)


def _way(op: Op, x: Any, values: Any, mode: Mode) -> _Way:
    """Return how an array or a number is applied to elements of `x`, decided at most once."""
    rules, dtype = STATE.get().semantics, x._signature.dtype
    given: Any = values._signature.dtype if isinstance(values, ArrayBase) else classify(values)
    key = (op, rules.key, dtype, given, mode)
    found = _WAYS.get(key)
    if found is None:
        info = dtypes.info(dtype)
        atomic = _atomic(op, dtype, op.typing(rules, [dtype, given]).result, mode)
        narrow = info.kind != "complex" and info.bits < 32
        wide = None if not narrow else dtypes.float32 if info.kind == "float" else dtypes.int32
        found = _WAYS.put(key, _Way(atomic, wide))
    return found


def _atomic(op: Op, dtype: np.dtype, result: np.dtype, mode: Mode) -> str | None:
    """How a GPU combines elements of a dtype in one step, if the op has results of another; None if it does not."""
    kind = dtypes.info(dtype).kind
    if kind == "bool":
        how = _OF_BOOLS.get(op.name)
    elif kind in _INTEGER_KINDS:
        how = _COMBINED.get(op.name)
    else:
        in_any_order = ("add",) * (mode == "atomic") + ("maximum", "minimum") * (kind == "float")
        how = op.name if op.name in in_any_order else None
    wraps = op.name in _MODULAR and kind in _INTEGER_KINDS and dtypes.info(result).kind in _INTEGER_KINDS
    return how if result == dtype or wraps else None


def _combine(op: Op, how: str, wide: np.dtype | None, x: Any, key: Any, values: Any, *, inside: bool = False) -> None:
    """Combine an array or a number with elements of the target: in 32 bits if these are narrower."""
    dtype = x._signature.dtype
    is_array = isinstance(values, ArrayBase)
    given: Any = astype(values, dtype, copy=False) if is_array else as_number(values, dtype, op.name)
    if dtype.kind == "c":
        combine(how, x.real, key, given.real, inside=inside)
        combine(how, x.imag, key, given.imag, inside=inside)
    elif wide is None:
        combine(how, x, key, given, inside=inside)
    else:
        target = astype(x, wide)
        given = astype(given, wide) if is_array else rounded_number(given, dtype).astype(wide).item()
        combine(how, target, key, given, inside=inside)
        set_view(x, astype(target, dtype))
