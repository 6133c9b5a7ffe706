"""The method ``reduceat`` of rows: an op applied along each segment of an axis.

A segment is combined from its first element on, one element after the other, so that the bits do not depend on the
device. Sums and products have the dtypes and the accumulators of `sum` and `prod`.

On the host NumPy's own ``reduceat`` does it where it has these bits. Else the elements are applied by `op.at` to one
result for each segment: on a GPU by atomics where no order changes a bit, as of integers and extremes, and by a thread
for each segment otherwise. If no order changes a bit and all segments have the same length, it is one reduction.

The segments are planned on the host. So indices on a GPU are read, which is the only wait of a call.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.engine.devices import Device, common_device
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import ArrayBase, from_host
from tilearray.errors import DTypeError, GradientError, IndexingError, ShapeError
from tilearray.functions.arguments import INDEX, as_array, as_array_beside, check_kind, result, without_derivative
from tilearray.functions.conversion import astype, to_device, to_numpy
from tilearray.functions.indexing.gather import gather_selected
from tilearray.functions.indexing.keys import Selection, host_index
from tilearray.functions.indexing.take import take
from tilearray.functions.indexing.views import get
from tilearray.functions.joining import concat
from tilearray.functions.manipulation import dense, moveaxis, new_like, reshape
from tilearray.functions.reduction_options import finished
from tilearray.functions.reductions import sum_dtype
from tilearray.functions.repeating import owners_of
from tilearray.functions.ufunc_at import at_sorted, check_on_host
from tilearray.functions.ufunc_options import ANY_ORDER, closed, named
from tilearray.geometry.layout import Layout
from tilearray.geometry.shapes import normalize_axis
from tilearray.ops.execute import fill
from tilearray.ops.op import Op
from tilearray.ops.row import REAL
from tilearray.ops.summation_order import accumulator

_SUMS = ("add", "multiply")
_EXTREMES = ("maximum", "minimum")
_DIFFERENTIABLE = ("add", "subtract")
LEAST_AT_ONCE = 1 << 16
"""The elements of segments that are gathered at once, if the axis does not have more."""


class Segments(NamedTuple):
    """Segments of an axis: where each starts, and how many elements it has, as int64."""

    starts: np.ndarray
    counts: np.ndarray

    @property
    def in_a_row(self) -> bool:
        """Whether each starts where the one before ends."""
        return bool(np.all(self.starts[1:] == (self.starts + self.counts)[:-1]))

    @property
    def length(self) -> int:
        """The length of all, which are in a row; 0 if lengths differ."""
        first = int(self.counts[0])
        return first if self.in_a_row and bool(np.all(self.counts == first)) else 0


def reduceat(op: Op, x: Any, indices: Any, axis: Any, dtype: Any, out: Any) -> Any:
    """Return ``op.reduceat(x, indices, ...)``. See `tilearray.ops.ufunc_methods.UfuncMethods.reduceat`.

    Raises
    ------
    OperandError
        If the op does not have two operands of one kind.
    ShapeError
        If `x` has no such axis, or the indices do not have one axis.
    IndexingError
        If an index is outside the axis.
    DTypeError
        If the indices are not integers, or the op does not return the dtype of its operands.
    DeviceError
        If the indices are on another GPU than `x`, or on a GPU and `x` is on the host, or the device lacks the op.
    GradientError
        If the op is differentiated, and is neither `add` nor `subtract`.
    """
    name = named(op, "reduceat")
    x = as_array_beside(name, x, indices) if isinstance(indices, ArrayBase) else as_array(name, x)
    place = normalize_axis(axis, x.ndim, name)
    memory = _memory_of(x)
    on_host = not memory.backend.computes_places
    if on_host:
        check_on_host(name, memory)
    x, wide = _typed(op, name, x, dtype)
    segments = _segments(name, x, indices, place)
    shape = (*x.shape[:place], segments.starts.size, *x.shape[place + 1 :])
    x = _differentiated(op, name, x)
    if 0 in shape:
        found = new_like(x, shape)
    elif on_host and x.device.functions is None and _has_bits_of_numpy(op, wide):
        found = astype(_by_numpy(op, x, wide, segments, place), x.dtype, copy=False)
    else:
        lines = moveaxis(x, place, 0)
        any_order = op.name in ANY_ORDER or (op.name in _SUMS and wide.kind in "biu")
        if any_order and segments.length:
            rows = reshape(get(lines, slice(int(segments.starts[0]), None)), (-1, segments.length, *lines.shape[1:]))
            results = op.reduce(rows, 1, x.dtype)
        else:
            results = astype(_results(op, astype(lines, wide, copy=False), segments), x.dtype, copy=False)
        moved = moveaxis(results, 0, place)
        found = dense(moved)
    return finished(name, found, out)


def _typed(op: Op, name: str, x: Any, dtype: Any) -> tuple[Any, np.dtype]:
    """`x` in the dtype of the result, and the dtype in which elements are combined."""
    if op.name in _SUMS:
        wanted = sum_dtype(name, x, dtype)
        return astype(x, wanted, copy=False), accumulator(wanted)
    if op.name not in _EXTREMES:
        x = closed(op, name, x, dtype)
        return x, x.dtype
    x = x if dtype is None else astype(x, dtype, copy=False)
    check_kind(name, x.dtype, REAL)
    return x, accumulator(x.dtype) if dtypes.info(x.dtype).bits < 32 else x.dtype


def _segments(name: str, x: Any, indices: Any, axis: int) -> Segments:
    """The segments that begin at indices; the last one ends where the axis does."""
    size = x.shape[axis]
    numbers = _read(name, x, indices)
    if numbers.ndim != 1:
        raise ShapeError(f"{name}: expected indices of one axis, got shape {numbers.shape}; write a list of integers")
    if numbers.dtype.kind not in "iu":
        raise DTypeError(f"{name}: expected integers as indices, got {numbers.dtype}; write indices.astype('int64')")
    outside = (numbers < 0) | (numbers >= size)
    if np.any(outside):
        raise IndexingError(
            f"{name}: expected indices in 0 <= i < {size}, the size of axis {axis}, got {numbers[outside][0]}; "
            f"write where segments start"
        )
    starts = numbers.astype(np.int64)
    return Segments(starts, np.maximum(np.diff(starts, append=size), 1))


def _read(name: str, x: Any, indices: Any) -> np.ndarray:
    """Indices as an ndarray; those on a GPU are read from the device of `x`."""
    if not isinstance(indices, ArrayBase):
        return host_index(indices, name)
    indices = without_derivative(indices)
    if not indices.device.backend.on_host:
        common_device(name, [without_derivative(x)._signature, indices._signature])
    return to_numpy(indices)


def _differentiated(op: Op, name: str, x: Any) -> Any:
    """An array as it is, or the values of a differentiated one if the result has no derivative."""
    if x.device.functions is None or dtypes.info(x.dtype).kind not in ("float", "complex"):
        return without_derivative(x)
    if op.name not in _DIFFERENTIABLE:
        raise GradientError(
            f"vjp: {name} has no derivative; write ta.{op.name}.reduce(x[start:stop]) for each segment, or "
            f"ta.add.reduceat"
        )
    return x


# --- by NumPy, on the host -------------------------------------------------------------------------------------------

# Rows that NumPy's ``reduceat`` combines in the order of elements and rounds in each step, by kind. It does not round
# float16, and products of complex numbers depend on the processor. Sums have an order of their own.
_IN_ORDER = {"multiply": "f", "subtract": "iufc", "divide": "f"}


def _has_bits_of_numpy(op: Op, wide: np.dtype) -> bool:
    """Whether `_by_numpy` computes the bits of a fold of elements of a dtype."""
    if op.name == "add":
        return wide.kind in "biufc"
    if op.name in ANY_ORDER or (op.name == "multiply" and wide.kind in "biu"):
        return True
    return wide.kind in _IN_ORDER.get(op.name, "") and wide != dtypes.float16


def _by_numpy(op: Op, x: Any, wide: np.dtype, segments: Segments, axis: int) -> Any:
    """The segments of an array on the host, combined in a dtype by NumPy. Of zeros, 0.0 is larger than -0.0."""
    is_sum = op.name == "add" and wide.kind in "fc"
    values: np.ndarray = to_numpy(x if is_sum and x.dtype.kind in "fc" else astype(x, wide, copy=False))
    ufunc, starts = getattr(np, op.ufunc or op.name), segments.starts
    with np.errstate(all="ignore"):
        if is_sum:
            return result(_added(values, wide, segments, axis), x)
        found = ufunc.reduceat(values, starts, axis, wide)
    zeros = found == 0 if op.name in _EXTREMES and wide.kind == "f" else np.False_
    if np.any(zeros):
        which = np.logical_and if op.name == "maximum" else np.logical_or
        signs = np.where(which.reduceat(np.signbit(values), starts, axis), -1, 1)
        found = np.where(zeros, np.copysign(found, signs), found)
    return result(np.ascontiguousarray(found), x)


def _added(values: np.ndarray, wide: np.dtype, segments: Segments, axis: int) -> np.ndarray:
    """The sums of segments in a dtype, in the order of elements, as the first one minus the negative others.

    NumPy adds halves of a segment, but subtracts one element after the other; and ``x - (-y)`` is ``x + y``.
    """
    if wide.kind == "c":
        pairs = np.ascontiguousarray(values)[..., None].view(np.dtype(f"f{values.itemsize // 2}"))
        return _added(pairs, np.dtype(f"f{wide.itemsize // 2}"), segments, axis).view(wide)[..., 0]
    if not segments.in_a_row:
        parts = _parts(segments, max(values.shape[axis], LEAST_AT_ONCE))
        rows = (_in_a_row(values, part, axis) for part in parts)  # one at a time
        return np.concatenate([_added(copied, wide, row, axis) for copied, row in rows], axis)
    firsts = values.take(segments.starts, axis)
    negative = np.negative(values, order="C", dtype=wide)
    negative[(slice(None),) * axis + (segments.starts,)] = firsts
    return np.ascontiguousarray(np.subtract.reduceat(negative, segments.starts, axis))


def _in_a_row(values: np.ndarray, segments: Segments, axis: int) -> tuple[np.ndarray, Segments]:
    """Copies of the elements of segments, one segment behind the other."""
    starts, counts = segments
    behind = np.cumsum(counts) - counts
    positions: Any = np.repeat(starts - behind, counts) + np.arange(int(counts.sum()))
    return values.take(positions, axis), Segments(behind, counts)


# --- by op.at --------------------------------------------------------------------------------------------------------


def _results(op: Op, lines: Any, segments: Segments) -> Any:
    """The segments of the first axis, each combined from its first element on."""
    parts = _parts(segments, max(lines.shape[0], LEAST_AT_ONCE))
    found = [_results_at_once(op, lines, part) for part in parts]
    return found[0] if len(found) == 1 else concat(found, axis=0)


def _parts(segments: Segments, most: int) -> list[Segments]:
    """Segments in parts of fewer than twice as many elements as `most`, if none has more: they may overlap.

    >>> [part.counts.tolist() for part in _parts(Segments(np.array([0, 4, 0, 4, 0]), np.array([9, 1, 9, 1, 9])), 10)]
    [[9, 1], [9, 1], [9]]
    """
    starts, counts = segments
    cuts = np.flatnonzero(np.diff((np.cumsum(counts) - 1) // most)) + 1
    return [Segments(*part) for part in zip(np.split(starts, cuts), np.split(counts, cuts))]


def _results_at_once(op: Op, lines: Any, segments: Segments) -> Any:
    """The same, with memory for the owner of each element, and for the elements if segments are not in a row."""
    begin = _begin(op, lines)
    starts, counts = segments
    if begin is None:
        found, starts, counts = _taken(lines, _there(starts, lines)), starts + 1, counts - 1
    else:
        found = fill(new_like(lines, (starts.size, *lines.shape[1:])), begin, op.name)
    if counts.any():
        owners = _owners(counts, lines)
        if begin is not None and segments.in_a_row:
            values = get(lines, slice(int(starts[0]), int(starts[-1] + counts[-1])))
        else:
            values = _taken(lines, _positions(starts, counts, owners))
        at_sorted(op, found, owners, values)
    return found


def _begin(op: Op, lines: Any) -> Any:
    """The number that changes no bit of an element, as -0.0 in a sum; None for the first element of each segment.

    Derivatives need that one, and a product of complex numbers has no such number: ``(1 + 0j) * inf`` is not ``inf``.
    """
    if op.name not in _SUMS or lines.device.functions is not None:
        return None
    kind = dtypes.info(lines.dtype).kind
    if op.name == "add":
        return {"bool": False, "float": -0.0, "complex": complex(-0.0, -0.0)}.get(kind, 0)
    return {"bool": True, "complex": None}.get(kind, 1)


# --- where the elements of segments are ------------------------------------------------------------------------------


def _memory_of(x: Any) -> Device:
    """The device of an array's memory, also of a differentiated one."""
    return x.device if x.device.functions is None else x.device.functions.place


def _there(numbers: np.ndarray, x: Any) -> Any:
    """Integers of the host as an Array on the device of another one's memory."""
    return to_device(from_host(numbers, ArrayBase._public), _memory_of(x))


def _owners(counts: np.ndarray, lines: Any) -> Any:
    """The number of the segment of each element, for segments that follow each other."""
    if _memory_of(lines).backend.on_host:
        return _there(np.repeat(np.arange(counts.size), counts), lines)
    ends = np.cumsum(counts)
    return owners_of(_there(ends, lines), int(ends[-1]))


def _positions(starts: np.ndarray, counts: np.ndarray, owners: Any) -> Any:
    """The position of each element of segments: its place among all of them, shifted as the segment is."""
    shifts = starts - np.cumsum(counts) + counts
    if owners.device.backend.on_host:
        numbers: np.ndarray = to_numpy(owners)
        return _there(shifts[numbers] + np.arange(numbers.size), owners)
    everywhere = _there(shifts, owners)._view(Layout(owners.shape, (0,)))
    return run_fixed(_shifting(), [everywhere, owners], new_like(owners, owners.shape))


@cache
def _shifting() -> FixedOperation:
    """Return the operation that adds to the position of each place the shift of its owner."""
    builder = ExpressionBuilder()
    shift = builder.node("gather", builder.memory(INDEX), builder.array(INDEX))
    found = builder.call("add", (builder.node("index"), shift), INDEX, "{x} + {y}")
    return FixedOperation("reduceat", builder.build([found], [INDEX]))


def _taken(lines: Any, places: Any) -> Any:
    """The elements at places of the first axis, all of which are inside."""
    if _memory_of(lines).backend.indexing is not None:
        return take(lines, places, axis=0)
    return gather_selected(Selection(lines, (0,), (places,), places.shape, 0, True))
