"""Reductions, executed by NumPy in the order that `tilearray.geometry.reduction` lays down.

This module has how two values become one, and the walk over the elements: segments, chunks and lanes, as views of the
operands. `tilearray_host.lanes` reduces them. Where the order has no influence (integers, extremes, truth values), or
may be any, one call of a ufunc reduces a whole view.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tilearray_host.casts import dtype_named

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = list[Array]
Ints = tuple[int, ...]


class Combine(NamedTuple):
    """How two values become one.

    Attributes
    ----------
    rows : callable
        ``rows(values) -> values``: combines along the first axis, one row after the other.
    pair : callable
        ``pair(values, others) -> values``.
    identity : callable
        ``identity(dtype)``: the value without influence, for the first of the values.
    whole : numpy.ufunc or None
        The ufunc that combines a whole array, for dtypes that `in_any_order` names.
    in_any_order : str
        The kinds of the dtypes for which every order gives the same, or which may be combined in any order.
    extreme : numpy.ufunc or None
        The ufunc that finds the best value, if the second value is its position.
    """

    rows: Callable[[Arrays], Arrays]
    pair: Callable[[Arrays, Arrays], Arrays]
    identity: Callable[[np.dtype], Any]
    whole: np.ufunc | None = None
    in_any_order: str = ""
    extreme: np.ufunc | None = None


def _lowest(dtype: np.dtype) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -math.inf


def _highest(dtype: np.dtype) -> Any:
    return np.iinfo(dtype).max if dtype.kind in "iu" else math.inf


def _by_ufunc(ufunc: np.ufunc, identity: Callable[[np.dtype], Any], in_any_order: str) -> Combine:
    def rows(values: Arrays) -> Arrays:
        return [ufunc.reduce(x, axis=0, dtype=x.dtype, initial=identity(x.dtype)) for x in values]

    def pair(values: Arrays, others: Arrays) -> Arrays:
        return [ufunc(x, y) for x, y in zip(values, others, strict=True)]

    return Combine(rows, pair, identity, ufunc, in_any_order)


def signed(ufunc: np.ufunc, found: Array, x: Array, method: str, **axes: Any) -> Array:
    """Return largest or smallest elements that are zeros with their sign: 0.0 is larger than -0.0.

    NumPy takes either zero, as processors differ. The bits of 0.0 are the least unsigned integer, and those of -0.0 the
    least signed one: so the least integer tells whether the zero occurs that wins. `method` is the method of `ufunc`
    that found `found` in `x`, along `axes`.
    """
    zeros = found == 0
    if ufunc in EXTREMES and x.dtype.kind in "fV" and np.any(zeros):
        word = np.dtype(f"{'u' if ufunc in LARGEST else 'i'}{x.itemsize}")
        wins = getattr(np.minimum, method)(x.view(word), **axes) == np.iinfo(word).min
        signs = ~wins if ufunc in LARGEST else wins
        return np.where(zeros, np.where(signs, -0.0, 0.0).astype(found.dtype), found)
    return found


LARGEST = (np.maximum, np.fmax)
EXTREMES = (*LARGEST, np.minimum, np.fmin)


def reduced(ufunc: np.ufunc, x: Array, axes: Any, dtype: np.dtype) -> Array:
    """Return the reduction of a whole array by a ufunc that gives the same in any order."""
    found = np.asarray(ufunc.reduce(x, axis=axes, dtype=dtype))
    return found if np.count_nonzero(found) == found.size else signed(ufunc, found, x, "reduce", axis=axes)


def _extremes(ufunc: np.ufunc, identity: Callable[[np.dtype], Any]) -> Combine:
    """The largest or smallest value; NaN if there is one, or if there is nothing else, as `ufunc` has it."""

    def rows(values: Arrays) -> Arrays:
        return [reduced(ufunc, x, 0, x.dtype) for x in values]

    def pair(values: Arrays, others: Arrays) -> Arrays:
        (x,), (y,) = values, others
        found = np.asarray(ufunc(x, y))
        if x.dtype.kind != "f" or np.count_nonzero(found) == found.size:
            return [found]
        which = np.logical_and if ufunc in LARGEST else np.logical_or
        negative = which(np.signbit(x), np.signbit(y))
        return [np.where((x == 0) & (y == 0), np.copysign(found, np.where(negative, -1.0, 1.0)), found)]

    return Combine(rows, pair, identity, ufunc, "biuf")


def _multiply() -> Combine:
    """Products; complex ones by parts, since NumPy's own depend on the processor."""
    plain = _by_ufunc(np.multiply, lambda _: 1, "biu")

    def pair(values: Arrays, others: Arrays) -> Arrays:
        x: Any = values[0]
        y: Any = others[0]
        if x.dtype.kind != "c":
            return [x * y]
        found = np.empty(np.broadcast_shapes(x.shape, y.shape), x.dtype)
        found.real = x.real * y.real - x.imag * y.imag
        found.imag = x.real * y.imag + x.imag * y.real
        return [found]

    def rows(values: Arrays) -> Arrays:
        (x,) = values
        if x.dtype.kind != "c":
            return plain.rows(values)
        found = [x[0]]
        for row in x[1:]:
            found = pair(found, [row])
        return found

    return plain._replace(rows=rows, pair=pair)


def _search(better: np.ufunc, extreme: np.ufunc, identity: Callable[[np.dtype], Any]) -> Combine:
    """The best value and the least of its positions; NaN is better than all."""

    def pair(values: Arrays, others: Arrays) -> Arrays:
        (x, at), (y, other) = values, others
        nan_x, nan_y = x != x, y != y
        take = better(y, x) | (nan_y & ~nan_x) | (((x == y) | (nan_x & nan_y)) & (other < at))
        return [np.where(take, y, x), np.where(take, other, at)]

    def rows(values: Arrays) -> Arrays:
        x, at = values
        best = extreme.reduce(x, axis=0)
        is_best = (x == best) | ((x != x) & (best != best))
        return [best, np.min(np.where(is_best, at, NOWHERE), axis=0)]

    return Combine(rows, pair, identity, extreme=extreme)


def _larger_halves() -> Combine:
    """The larger one of the lower halves of words, and of the upper halves."""

    def joined(upper: Array, lower: Array) -> Arrays:
        return [np.asarray(upper << np.uint32(16) | lower)]

    def pair(values: Arrays, others: Arrays) -> Arrays:
        (x,), (y,) = values, others
        return joined(np.maximum(x >> 16, y >> 16), np.maximum(x & 0xFFFF, y & 0xFFFF))

    def rows(values: Arrays) -> Arrays:
        (x,) = values
        return joined((x >> 16).max(axis=0, initial=0), (x & 0xFFFF).max(axis=0, initial=0))

    return Combine(rows, pair, lambda _: 0)


NOWHERE = np.iinfo(np.int64).max
_ADD = _by_ufunc(np.add, lambda dtype: {"f": -0.0, "c": complex(-0.0, -0.0)}.get(dtype.kind, 0), "biu")
_MULTIPLY = _multiply()
COMBINE: dict[str, Combine] = {
    "add": _ADD,
    "multiply": _MULTIPLY,
    "add_in_any_order": _ADD._replace(in_any_order="biufc"),
    "multiply_in_any_order": _MULTIPLY._replace(in_any_order="biufc"),
    "maximum": _extremes(np.maximum, _lowest),
    "minimum": _extremes(np.minimum, _highest),
    "maximum_number": _extremes(np.fmax, lambda _: math.nan),
    "minimum_number": _extremes(np.fmin, lambda _: math.nan),
    "maximum_of_halves": _larger_halves(),
    "or": _by_ufunc(np.logical_or, lambda _: False, "b"),
    "and": _by_ufunc(np.logical_and, lambda _: True, "b"),
    "argmax": _search(np.greater, np.maximum, _lowest),
    "argmin": _search(np.less, np.minimum, _highest),
}


def has_an_order(node: Any) -> bool:
    """Return whether a node of an expression combines values in an order that has an influence on the result.

    >>> has_an_order(("reduce", "add", (0,), ("float32",))), has_an_order(("reduce", "add", (0,), ("int64",)))
    (True, False)
    """
    _, how, _, names = node
    combine = COMBINE[how]
    return combine.extreme is None and dtype_named(names[0]).kind not in combine.in_any_order


class Reduce(NamedTuple):
    """A node that reduces.

    Attributes
    ----------
    combine : Combine
    dtypes : tuple of numpy.dtype
        The dtypes of its values.
    """

    combine: Combine
    dtypes: tuple[np.dtype, ...]

    @classmethod
    def of(cls, how: str, names: Sequence[str]) -> Reduce:
        """Return the node of a name in `COMBINE`."""
        return cls(COMBINE[how], tuple([dtype_named(name) for name in names]))

    @property
    def identities(self) -> list[Any]:
        """The values without influence."""
        first, *others = [self.combine.identity(dtype) for dtype in self.dtypes]
        return [first, *others] if self.combine.extreme is None else [first, NOWHERE]

    @property
    def ufunc(self) -> np.ufunc | None:
        """The ufunc that combines two values alone; None if it takes more."""
        whole = self.combine.whole
        return None if whole in EXTREMES or self.is_complex_product else whole

    @property
    def is_complex_product(self) -> bool:
        """Whether it multiplies complex numbers, which it does by parts."""
        return self.combine.whole is np.multiply and self.dtypes[0].kind == "c"

    @property
    def groups(self) -> list[list[int]]:
        """The places of the values that one ufunc combines at once: those of one dtype."""
        if self.ufunc is None:
            return [[place] for place in range(len(self.dtypes))]
        places = range(len(self.dtypes))
        return [list(group) for _, group in itertools.groupby(places, key=self.dtypes.__getitem__)]

    @property
    def start(self) -> Arrays | None:
        """What a lane combines with its first value, where that has an influence: ``1 * inf`` is ``inf + nan * 1j``."""
        return [np.ones((), self.dtypes[0])] if self.is_complex_product else None


class Runs(NamedTuple):
    """The segments along the fastest reduced axis for some indices of the first slower one.

    Attributes
    ----------
    number : int
        The number of the first one.
    indices : slice
        Their indices of the first slower axis.
    """

    number: int
    indices: slice


class Walk:
    """The loop of a reduction, on arrays of its shape: slower kept, slower reduced, fastest kept, fastest reduced axis.

    A block has the axes: slower reduced axes, chunks; slower kept axes, segments; lanes and the fastest kept axis. The
    latter two change places if lanes lie side by side in memory. The first group are the steps of a lane.
    """

    def __init__(self, loop: Any) -> None:
        self.kept: int = loop.kept
        self.lanes: int = loop.lanes
        self.segments = loop.segments
        self.extent: int = loop.shape[-1]
        self.slow_kept: Ints = loop.shape[: self.kept]
        self.outer: Ints = loop.shape[self.kept : -2]
        self.fast: int = loop.shape[-2]
        self.neighbours: bool = loop.neighbours
        self.lane_axis = -2 if loop.case == "reduce_columns" else -1

    def output(
        self, slot: tuple[np.dtype, int, Ints | None], key: Sequence[slice] | None = None
    ) -> tuple[np.dtype, int, Ints, Ints]:
        """Return dtype, byte offset, strides and shape of an output, or of a part: `key` selects of its axes.

        The axes are the slower kept axes, the segments, and the fastest kept axis.
        """
        dtype, shift, strides = slot
        assert strides is not None  # only a number has none
        shape, strides = self.output_geometry(strides, dtype.itemsize)
        if key is not None:
            shape = tuple([each.stop - each.start for each in key])
            shift += sum([each.start * stride for each, stride in zip(key, strides)])
        return dtype, shift, strides, shape

    def output_geometry(self, strides: Ints, *segments: int) -> tuple[Ints, Ints]:
        """Return the shape and strides of an output; with the stride of its axis of segments, if that is given."""
        total = (self.segments.total,) if segments else ()
        return (*self.slow_kept, *total, self.fast), (*strides[: self.kept], *segments, strides[-2])

    def runs(self) -> Iterator[Runs]:
        """Yield the segments for some indices of the first slower reduced axis; all have the same shape."""
        outer, inner, indices, _ = self.segments
        for i in range(outer):
            yield Runs(i * inner, slice(i * indices, min((i + 1) * indices, self.outer[0] if self.outer else 1)))

    @property
    def last(self) -> tuple[int, int]:
        """The whole chunks of the last segment along the fastest axis, and the elements after them."""
        return divmod(self.extent - (self.segments.inner - 1) * self.segments.chunks * self.lanes, self.lanes)

    def with_lanes(self, kept: Sequence[Any], lanes: Any = None) -> tuple[Any, ...]:
        """Return extents or a key of slower kept axes, segments and the fastest kept axis with those of the lanes."""
        found = [*kept, self.lanes if lanes is None else lanes]
        if self.lane_axis == -2:
            found[-2:] = found[:-3:-1]
        return tuple(found)

    def parts(self, kept: Ints, elements: int) -> Iterator[tuple[slice, ...]]:
        """Yield parts of slower kept axes, segments and the fastest kept axis, each of about a number of elements.

        They are long in memory: the segments of a row follow each other there.
        """
        if not self.neighbours:
            yield from slices(kept, elements)
            return
        *slow, segments, fast = kept
        for *slower, fastest, along in slices((*slow, fast, segments), elements):
            yield (*slower, along, fastest)

    def positions(self) -> Ints:
        """Return the strides of the positions of elements, which count along the reduced axes in C order."""
        outer = range(1, len(self.outer) + 1)
        return (*[0] * self.kept, *[math.prod(self.outer[axis:]) * self.extent for axis in outer], 0, 1)

    def distance(self, strides: Sequence[int], runs: Runs, key: Sequence[slice]) -> int:
        """Return where a part begins: `key` selects of slower kept axes, segments of `runs`, the fastest kept axis."""
        *slow, segments, fast = key
        found = segments.start * self.segments.chunks * self.lanes * strides[-1] + fast.start * strides[-2]
        found += sum([each.start * stride for each, stride in zip(slow, strides)])
        return found + runs.indices.start * strides[self.kept] if self.outer else found

    def geometry(
        self, strides: Sequence[int], key: tuple[slice, ...], first: int, count: int, size: int
    ) -> tuple[list[int], list[int], int]:
        """Return the shape of a part, its strides, and the distance of its first element, in units of `strides`.

        `key` selects of slower kept and reduced axes, segments and the fastest kept axis; `first` is the first chunk of
        the first segment; `count` chunks of `size` lanes are taken.
        """
        kept, outer, apart = self.kept, len(self.outer), self.segments.chunks
        *slow, fast, lane = strides
        start = (first + key[-2].start * apart) * self.lanes
        shape = [*[part.stop - part.start for part in key], count, size]
        steps = [*slow, apart * self.lanes * lane, fast, self.lanes * lane, lane]
        distance = start * lane + key[-1].start * fast
        distance += sum([part.start * stride for part, stride in zip(key[: kept + outer], slow)])
        order = [*range(kept, kept + outer), kept + outer + 2, *range(kept), kept + outer]
        order += [kept + outer + 3, kept + outer + 1] if self.lane_axis == -2 else [kept + outer + 1, kept + outer + 3]
        return [shape[axis] for axis in order], [steps[axis] for axis in order], distance


def empty_lanes(shape: Ints, dtype: np.dtype) -> Array:
    """Return memory for lanes of rows, whose axes come last: the segments of a row follow each other in it."""
    *others, segments, fast, size = shape
    return np.empty((*others, fast, segments, size), dtype).swapaxes(-3, -2)


def batches(loop: Any, outputs: int) -> list[Any]:
    """Return loops that do the work of one whose segments are cut along a slower reduced axis: that axis is kept then.

    So many segments are reduced at once. The last one is a loop of its own if it is shorter. A loop without such
    segments is returned as it is; the first operands are `outputs`.
    """
    outer, inner, indices, _ = loop.segments
    if outer == 1:
        return [loop]
    kept, extent = loop.kept, loop.shape[loop.kept]

    def cut(first: int, count: int, each: int) -> Any:
        """Return the loop over some segments of as many indices."""
        alone = each == 1
        strides: list[Ints] = []
        shifts: list[int] = []
        for operand, (steps, shift) in enumerate(zip(loop.strides, loop.shifts, strict=True)):
            apart = inner if operand < outputs else indices * steps[kept]
            strides.append((*steps[:kept], apart, *steps[kept + alone :]))
            shifts.append(shift + first * apart)
        shape = (*loop.shape[:kept], count, *(() if alone else (each,)), *loop.shape[kept + 1 :])
        slower = shape[kept + 1] if len(shape) > kept + 3 else 1
        segments = loop.segments._replace(outer=1, indices=slower)
        return loop._replace(
            shape=shape, strides=tuple(strides), shifts=tuple(shifts), kept=kept + 1, segments=segments
        )

    whole = extent // indices
    found = [cut(0, whole, indices)] if whole else []
    return [*found, cut(whole, 1, extent % indices)] if extent % indices else found


def positions(shape: Sequence[int], steps: Sequence[int], lowest: int) -> Array:
    """Return ``lowest`` plus the sum of indices times steps; axes without a step have one element."""
    found: Any = np.int64(lowest)
    for axis, (size, step) in enumerate(zip(shape, steps, strict=True)):
        if step:
            along = np.arange(0, size * step, step)
            found = found + along.reshape((-1,) + (1,) * (len(shape) - axis - 1))
    return np.asarray(found)


def slices(shape: Ints, elements: int) -> Iterator[tuple[slice, ...]]:
    """Yield parts of a shape in C order, each of about a number of elements.

    >>> list(slices((2, 3), 2))
    [(slice(0, 1, None), slice(0, 2, None)), (slice(0, 1, None), slice(2, 3, None)), \
(slice(1, 2, None), slice(0, 2, None)), (slice(1, 2, None), slice(2, 3, None))]
    """
    inner, axis = 1, len(shape) - 1
    while axis > 0 and inner * shape[axis] <= elements:
        inner *= shape[axis]
        axis -= 1
    step = max(1, elements // inner)
    rest = [slice(0, size) for size in shape[axis + 1 :]]
    for outer in np.ndindex(shape[:axis]):
        for low in range(0, shape[axis], step):
            yield (*[slice(i, i + 1) for i in outer], slice(low, min(low + step, shape[axis])), *rest)
