"""Joining and rolling: new arrays in C order, filled piece by piece through views.

Every function allocates its result and assigns to views of it: `concat` to one slice for each array, `roll` to the two
parts of each rolled axis that change places. No elements are computed, so these functions run on every device. On a GPU
few elements are gathered in one launch instead.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, cast

import numpy as np

from tilearray import dtypes
from tilearray.dtypes import DTypeLike
from tilearray.engine.array_type import A
from tilearray.engine.backend import Call
from tilearray.engine.caches import PLANS, TwoGenerations
from tilearray.engine.common_dtype import common_dtype_of
from tilearray.engine.context import STATE, State
from tilearray.engine.devices import CPU, common_device
from tilearray.engine.execute import is_recorded, run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.remembered import Words, again, is_plain, launch_making, remember_launch
from tilearray.engine.signature import ArrayBase, HostData, Signature, empty_array, over, signature_of
from tilearray.errors import DTypeError, OperandError, ShapeError
from tilearray.functions.arguments import all_arrays, as_array, deepest, listed
from tilearray.functions.indexing.views import get
from tilearray.functions.manipulation import c_contiguous, new_like, reshape
from tilearray.functions.reduction_options import finished
from tilearray.geometry.layout import Layout
from tilearray.geometry.shapes import as_int, normalize_axis, without_axis
from tilearray.ops.arithmetic import choose
from tilearray.ops.execute import check_target, store
from tilearray.ops.moves import convert
from tilearray.ops.reduction import call_row
from tilearray.ops.row import ANY
from tilearray.promotion.storing import Casting, allows_cast

FEW = 2**24
"""The most elements that a roll on a GPU gathers in one launch: to compute more places takes longer than to copy. On an
H100 4096 x 4096 float32 are rolled along an axis in 50 us so and along two in 59, and by copies in 53 and 78; 8192 x
8192 along two in 225, and in 197."""
FEW_JOINED = 2**22
"""The most elements that arrays are joined to in one launch, which reads an element of each array for each of them. On
an H200 eight arrays of 2**19 elements are joined in 21 us so, and in 49 us by a copy of each."""
MOST_JOINED = 8
"""The most arrays that are joined in one launch."""

# --- joining -------------------------------------------------------------------------------------------------------


def concat(
    arrays: Sequence[A | HostData],
    /,
    axis: int | None = 0,
    out: A | None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: Casting = "same_kind",
) -> A:
    """Return arrays one after the other along an existing axis.

    Parameters
    ----------
    arrays : sequence of Array, ndarray or list
        Of equal shapes except along `axis`, and on one device. The result has their common dtype.
    axis : int or None
        None joins the elements of all arrays, each in C order; the shapes may differ then.
    out : Array, optional
        Takes the result, which it must have the shape of; it is returned.
    dtype : dtype or name, optional
        The dtype of the result. None is the common dtype of the arrays.
    casting : {"same_kind", "no", "equiv", "safe", "unsafe"}
        NumPy's rule by which the dtypes of the arrays become that of the result, or of `out`. "same_kind" allows no
        dtype of a lower kind.

    Raises
    ------
    ShapeError
        If there are no arrays or no such axis, or the shapes do not fit.
    PromotionError
        If the dtypes have no common dtype.
    DTypeError
        If `casting` does not allow a dtype to become that of the result.
    OperandError
        If there is no such rule.
    DeviceError
        If the arrays are on different devices.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.concat([ta.asarray([1, 2]), ta.asarray([0.5])])
    Array([1. , 2. , 0.5], dtype=float32, device='cpu')
    >>> ta.concat([ta.zeros((2, 3)), ta.zeros((2, 1))], axis=1).shape
    (2, 4)
    """
    usual = out is None and dtype is None and casting == "same_kind"
    words = "concat", axis, State.changes
    known = _again(words, arrays) if usual else None
    if known is not None:
        return known
    chosen = _Chosen.of("concat", dtype, casting, out)
    parts = _members(arrays, axis, "concat")
    if axis is None:
        return finished("concat", _flattened(parts, chosen), out)
    shape = parts[0].shape
    if not shape:
        raise ShapeError(
            "concat: expected arrays with an axis to join along, got a 0-d array; write axis=None or stack"
        )
    axis = normalize_axis(axis, len(shape), "concat")
    check_sizes("concat", [part.shape for part in parts], axis)
    total = sum([part.shape[axis] for part in parts])
    result = _result(parts, (*shape[:axis], total, *shape[axis + 1 :]), "concat", chosen)
    places = [*_places(result, parts, axis)]
    together = _joined(parts, result, places, axis)
    if usual and result.__class__ is parts[0].__class__:
        _remember(words, parts, result, places, together, axis)
    return finished("concat", result, out)


class Joining(NamedTuple):
    """A known concat or stack: the signature of its result, and for each array the offset and signature of its place.

    If no array of a concat needs a cast, and the backend has `indexing`, `join` joins all of them at once, along the
    axis. `together` is that of `_together_of`.
    """

    signature: Signature
    places: tuple[tuple[int, Signature], ...]
    axis: int | None
    join: Callable[[Sequence[np.ndarray], Any], np.ndarray] | None
    together: _Together | None


class _Together:
    """A join in one launch, of dense arrays of known signatures and of one dtype.

    The result is rows of equally many elements, and each row has some of each array. Elements are read as words.
    There are kernels for 2, 4 and 8 arrays. If there are fewer arrays, the last one is given again, without elements.

    Attributes
    ----------
    operation : FixedOperation
    memory, whole : Signature
        Those of the memory of an array, of which the alignment makes no other kernel, and of the result.
    ends : list of int
        How many elements of a row come before the end of each array's.
    spare : int
        How often the last array is given again.
    launch : (int, callable or None)
        The epoch of the plans, and the launch that makes a result.
    """

    __slots__ = ("ends", "launch", "memory", "operation", "spare", "whole")

    def __init__(self, parts: Sequence[A], result: A, rows: int) -> None:
        word, count = _WORDS[result.itemsize], 1 << (len(parts) - 1).bit_length()
        self.operation = _joining(word, count, rows > 1)
        self.launch: tuple[int, Call | None] = (-1, None)
        sizes, device = (result.size,), result._signature.device
        self.memory = signature_of(Layout(sizes, (0,)), word, device, aligned=False)
        self.whole = signature_of(Layout.of(sizes), word, device)
        self.spare = count - len(parts)
        self.ends = list(itertools.accumulate([*[part.size // rows for part in parts], *[0] * self.spare]))

    def run(self, arrays: Sequence[A], result: A) -> None:
        """Write the elements of arrays to the result, which is new."""
        make, memory, epoch = result._make, self.memory, PLANS.epoch
        given = [make(x._buffer, x._offset, memory) for x in arrays]
        operands = [*given, *given[-1:] * self.spare, *self.ends]
        out = make(result._buffer, 0, self.whole)
        run_fixed(self.operation, operands, out)
        if self.launch[0] != epoch:
            places = range(len(arrays) + self.spare)
            self.launch = epoch, launch_making(self.operation, operands, result, out, places)

    def again(self, arrays: Sequence[A], stream: Any) -> Any:
        """Return a new result for arrays; None if there is no launch that makes it."""
        epoch, launch = self.launch
        if launch is None or epoch != PLANS.epoch:
            return None
        parts = [part for x in arrays for part in (x._buffer, x._offset)]
        return launch(stream, *parts, *parts[-2:] * self.spare)


_WORDS = {dtype.itemsize: dtype for dtype in (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)}


def _together_of(parts: Sequence[A], result: A, axis: int) -> _Together | None:
    """Return how arrays are joined along an axis in one launch; None if they are not: they are copied one by one."""
    signature = result._signature
    device, count = signature.device, signature.layout.size
    if device.recorder is not None or not device.backend.computes_places or signature.itemsize not in _WORDS:
        return None
    if not 1 < len(parts) <= MOST_JOINED or count > FEW_JOINED:
        return None
    for part in parts:
        mine = part._signature
        if mine.dtype != signature.dtype or not mine.layout.contiguous or not mine.layout.size:
            return None
    return _Together(parts, result, math.prod(result.shape[:axis]))


@cache
def _joining(word: np.dtype, count: int, in_rows: bool) -> FixedOperation:
    """Return the operation that joins words from the memory of some arrays; `in_rows` if to more than one row.

    After the memory it gets the ends of each array in a row.
    """
    builder, int32 = ExpressionBuilder(), dtypes.int32
    memories = [builder.memory(word) for _ in range(count)]
    start, *ends = builder.constant(0, int32), *[builder.number(int32) for _ in range(count)]
    place = builder.cast(builder.node("index"), dtypes.int64, int32)
    row = builder.call("row", (place, ends[-1]), int32, "{x} // {y}") if in_rows else start
    column = builder.call("column", (place, ends[-1]), int32, "{x} % {y}") if in_rows else place
    found: int | None = None
    for memory, first, end in reversed(list(zip(memories, (start, *ends), ends))):
        inside = "tl.where(({x} >= {y}) & ({x} < {z}), {x} - {y} + {w} * ({z} - {y}), 0)"
        at = builder.call("at", (column, first, end, row), int32, inside)
        element = builder.node("gather", memory, builder.cast(at, int32, dtypes.int64))
        here = builder.call("here", (column, end), dtypes.bool_, "{x} < {y}")
        found = element if found is None else call_row(builder, choose, here, element, found, dtype=word)
    assert found is not None
    return FixedOperation("concat", builder.build([found], [word]))


_JOININGS: TwoGenerations[Joining] = TwoGenerations(512)
_signature_of = attrgetter("_signature")


def _again(words: Words, arrays: Any) -> Any:
    """Join arrays of signatures that a call in the same words joined before; None if there was none.

    Words are the function, the axis, and `State.changes`.
    """
    if words[1].__class__ is not int or (arrays.__class__ is not list and arrays.__class__ is not tuple):
        return None
    state = STATE.get()
    try:
        known = _JOININGS.get((words, state.semantics.key, *map(_signature_of, arrays)))
    except AttributeError:  # not an Array
        return None
    if known is None:
        return None
    signature, places, joined_axis, join, together = known
    if join is not None:
        joined = join([*map(CPU.backend.elements, arrays)], joined_axis)
        return over(joined.ravel(), signature, arrays[0].__class__)
    joins = together if state.recording is None else None
    made = None if joins is None else joins.again(arrays, state.stream)
    if made is not None:
        return made
    result = empty_array(arrays[0].__class__, signature, state.stream)
    if joins is not None:
        joins.run(arrays, result)
        return result
    make, buffer = result._make, result._buffer
    for x, (offset, place) in zip(arrays, places):
        store(make(buffer, offset, place), x, convert)
    return result


def _remember(
    words: Words,
    parts: Sequence[A],
    joined: A,
    views: Sequence[A],
    together: _Together | None,
    axis: int | None = None,
) -> None:
    """Keep the places of arrays in their concat along an axis, or in their stack."""
    if words[1].__class__ is not int:  # 1 also equals True and 1.0, which are read differently
        return
    places = tuple([(view._offset, view._signature) for view in views])
    signature = joined._signature
    indexing = signature.device.backend.indexing
    at_once = axis is not None and all(part.dtype == signature.dtype for part in parts)
    join = indexing.join if indexing is not None and at_once else None
    key = (words, STATE.get().semantics.key, *map(_signature_of, parts))
    _JOININGS.put(key, Joining(signature, places, axis, join, together))


def stack(
    arrays: Sequence[A | HostData],
    /,
    axis: int = 0,
    out: A | None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: Casting = "same_kind",
) -> A:
    """Return arrays of one shape side by side along a new axis.

    Parameters
    ----------
    arrays : sequence of Array, ndarray or list
        Of equal shapes, and on one device. The result has their common dtype.
    axis : int
        The position of the new axis in the result.
    out : Array, optional
        Takes the result, which it must have the shape of; it is returned.
    dtype : dtype or name, optional
        The dtype of the result. None is the common dtype of the arrays.
    casting : {"same_kind", "no", "equiv", "safe", "unsafe"}
        NumPy's rule by which the dtypes of the arrays become that of the result, or of `out`. "same_kind" allows no
        dtype of a lower kind.

    Raises
    ------
    ShapeError
        If there are no arrays, the shapes differ, or the result has no such axis.
    PromotionError
        If the dtypes have no common dtype.
    DTypeError
        If `casting` does not allow a dtype to become that of the result.
    OperandError
        If there is no such rule.
    DeviceError
        If the arrays are on different devices.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.stack([ta.asarray([1, 2]), ta.asarray([3, 4])], axis=-1)
    Array([[1, 3],
           [2, 4]], dtype=int64, device='cpu')
    """
    usual = out is None and dtype is None and casting == "same_kind"
    words = "stack", axis, State.changes
    known = _again(words, arrays) if usual else None
    if known is not None:
        return known
    chosen = _Chosen.of("stack", dtype, casting, out)
    parts = _members(arrays, axis, "stack")
    shape = parts[0].shape
    axis = normalize_axis(axis, len(shape) + 1, "stack")
    for position, part in enumerate(parts):
        if part.shape != shape:
            raise ShapeError(
                f"stack: expected arrays of one shape, got {shape} for array 0 and {part.shape} for array {position}; "
                f"write concat to join along an axis that they have"
            )
    result = _result(parts, (*shape[:axis], len(parts), *shape[axis:]), "stack", chosen)
    places = [get(result, (*_all(axis), position) if axis else position) for position in range(len(parts))]
    together = _joined(parts, result, places, axis)
    if usual and result.__class__ is parts[0].__class__:
        _remember(words, parts, result, places, together)
    return finished("stack", result, out)


def _members(arrays: Sequence[A | HostData], axis: Any, function: str) -> list[A]:
    """The arrays of a sequence of at least one; an axis that is an array too many is an error."""
    if isinstance(axis, list) or getattr(axis, "ndim", 0):
        raise OperandError(f"{function}: expected one list of arrays, got several arrays; write ta.{function}([x, y])")
    members = listed(function, arrays)
    if not members:
        raise ShapeError(f"{function}: expected at least one array, got none; write ta.empty(shape) for no elements")
    return all_arrays(function, members, "arrays[{0}]")


def check_sizes(function: str, shapes: Sequence[tuple[int, ...]], axis: int) -> None:
    """Raise ShapeError unless shapes are those of the first one, except along an axis."""
    shape = shapes[0]
    for position, other in enumerate(shapes):
        if other != shape and (len(other) != len(shape) or without_axis(other, axis) != without_axis(shape, axis)):
            raise ShapeError(
                f"{function}: expected the sizes of {shape} along all axes but {axis}, got {other} for array "
                f"{position}; {_advice(shape, other, axis)}"
            )


def _advice(shape: tuple[int, ...], other: tuple[int, ...], axis: int) -> str:
    """The advice for shapes that do not fit; it names the first axis that differs."""
    if len(other) != len(shape):
        return "write expand_dims or reshape to give all arrays the same number of axes"
    axes = range(len(shape))
    wrong = next(place for place in axes if place != axis and shape[place] != other[place])
    return f"axis {wrong} has {shape[wrong]} and {other[wrong]}: slice it, or write axis={wrong} to join along it"


class _Chosen(NamedTuple):
    """The dtype that a caller chose for a result, None for the common dtype, and the rule by which arrays become it."""

    dtype: np.dtype | None
    casting: Casting

    @classmethod
    def of(cls, function: str, dtype: Any, casting: Casting, out: Any) -> _Chosen:
        """Return what a call chooses; beside a rule that is not the usual one, `out` decides the dtype."""
        if dtype is None and out is not None and casting != "same_kind":
            check_target(function, out)
            return cls(out.dtype, casting)
        return cls(None if dtype is None else dtypes.as_dtype(dtype, function), casting)


def _result(parts: Sequence[A], shape: tuple[int, ...], function: str, chosen: _Chosen) -> A:
    """Memory for all parts: of their common dtype or the one that is asked for, on their one device."""
    common_device(function, [part._signature for part in parts])
    like, dtype = deepest(parts), chosen.dtype
    if dtype is None:
        dtype = common_dtype_of(tuple([part._signature.dtype for part in parts]), function)
        if chosen.casting == "same_kind":  # by which every dtype becomes the common one
            return new_like(like, shape, dtype)
    for part in parts:
        if not allows_cast(chosen.casting, part.dtype, dtype, function):
            raise DTypeError(
                f"{function}: expected a dtype that can store {part.dtype.name} by casting={chosen.casting!r}, got "
                f"{dtype.name}; write casting='unsafe', or x.astype({dtype.name!r}) for the array"
            )
    return new_like(like, shape, dtype)


def _joined(parts: Sequence[A], result: A, places: Sequence[A], axis: int) -> _Together | None:
    """Write parts that fit to a result, in one launch or each cast to its place; return that launch.

    `assign` may refuse the common dtype: int8 with uint8 is uint8 in the semantics `triton`.
    """
    together = _together_of(parts, result, axis)
    if together is not None and STATE.get().recording is None:
        together.run(parts, result)
    else:
        for place, part in zip(places, parts):
            store(place, part, convert)
    return together


def placed(function: str, parts: Sequence[A], starts: Sequence[Sequence[int]], shape: tuple[int, ...]) -> A:
    """Return an array of a shape that parts fill, each from its start along every axis."""
    result = _result(parts, shape, function, _Chosen(None, "same_kind"))
    for part, start in zip(parts, starts):
        place = [slice(first, first + size) for first, size in zip(start, part.shape)]
        store(get(result, tuple(place)), part, convert)
    return result


def _places(result: A, parts: Sequence[A], axis: int) -> Iterator[A]:
    """The slice of a result for each part."""
    for part, stop in zip(parts, itertools.accumulate([part.shape[axis] for part in parts])):
        place = slice(stop - part.shape[axis], stop)
        yield get(result, (*_all(axis), place) if axis else place)


def _flattened(parts: Sequence[A], chosen: _Chosen) -> A:
    """All elements in one axis; slices of it take the shapes of the parts, which need no copy for that."""
    sizes = [part.size for part in parts]
    result = _result(parts, (sum(sizes),), "concat", chosen)
    for part, stop in zip(parts, itertools.accumulate(sizes)):
        store(reshape(get(result, slice(stop - part.size, stop)), part.shape, copy=False), part, convert)
    return result


def _all(axes: int) -> tuple[slice, ...]:
    return (slice(None),) * axes


# --- rolling -------------------------------------------------------------------------------------------------------


def roll(x: A | HostData, /, shift: int | tuple[int, ...], axis: int | tuple[int, ...] | None = None) -> A:
    """Return an array with its elements moved along axes; those that leave at the end enter at the start.

    Parameters
    ----------
    x : Array
    shift : int or tuple of int
        The number of places toward higher indices; a tuple has one for each axis of `axis`.
    axis : int or tuple of int or None
        One shift applies to all axes; the shifts of an axis that occurs twice add up. None moves the elements in C
        order, as one axis.

    Raises
    ------
    ShapeError
        If `x` has no such axis, or there are not as many shifts as axes.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.roll(ta.asarray([1, 2, 3, 4]), 1)
    Array([4, 1, 2, 3], dtype=int64, device='cpu')
    >>> ta.roll(ta.asarray([[1, 2], [3, 4]]), (1, 1), axis=(0, 1)).tolist()
    [[4, 3], [2, 1]]
    """
    words = ("roll", shift, axis) if is_plain(shift) and is_plain(axis) else None
    known = again(words, x)
    if known is not None:
        return known
    x = as_array("roll", x)
    shape = x.shape
    if axis is not None:
        return _rolled(x, _shifts(shift, axis, len(shape)), words)
    if isinstance(shift, (tuple, list)):
        raise ShapeError(f"roll: expected one shift if axis is None, got {shift}; write axis= with one for each shift")
    step = as_int(shift, "roll", "shift")
    if len(shape) == 1:
        return _rolled(x, [step], words)
    if _gathers(x) and step % x.size:
        return _gathered(x, [(1, x.size, -step % x.size)], words)
    return reshape(_rolled(reshape(x, -1), [step]), shape)


def _shifts(shift: Any, axis: Any, ndim: int) -> list[int]:
    """The shift of every axis."""
    places = [normalize_axis(place, ndim, "roll") for place in _each(axis)]
    steps = [as_int(step, "roll", "shift") for step in _each(shift)]
    if not isinstance(shift, (tuple, list)):
        steps *= len(places)
    if len(steps) != len(places):
        raise ShapeError(
            f"roll: expected a shift for each of the axes {tuple(places)}, got {tuple(steps)}; "
            f"write one shift for all axes, or as many as axes"
        )
    total = [0] * ndim
    for place, step in zip(places, steps):
        total[place] += step
    return total


def _each(given: Any) -> list[Any]:
    """One thing, or several in a tuple or list, as a list."""
    return list(cast("list[Any]", given)) if isinstance(given, (tuple, list)) else [given]


def _rolled(x: A, shifts: Sequence[int], words: Words | None = None) -> A:
    """Every combination of the parts of all axes, assigned to its place: 2**k of them for k axes that roll.

    On a GPU few dense elements are gathered at once.
    """
    steps = [step % size if size else 0 for step, size in zip(shifts, x.shape)]
    if not any(steps):
        return c_contiguous(x)
    if _gathers(x):
        axes = zip(x.strides, x.shape, steps)
        return _gathered(x, [(stride, size, size - step) for stride, size, step in axes if step], words)
    result = new_like(x, x.shape)
    for parts in itertools.product(*[_parts(size, step) for size, step in zip(x.shape, steps)]):
        source, target = (tuple(side) for side in zip(*parts))
        store(get(result, target), get(x, source))
    return result


def _gathers(x: ArrayBase) -> bool:
    """Return whether a roll gathers the elements of an array: few dense ones that nobody follows or records."""
    device, layout = x._signature.device, x._signature.layout
    if not 0 < layout.size <= FEW or not layout.contiguous or is_recorded(device):
        return False
    return device.backend.computes_places and dtypes.info(x.dtype).kind in ANY


def _gathered(x: A, axes: Sequence[tuple[int, int, int]], words: Words | None) -> A:
    """Roll a dense array along axes, of each of which `_rolling` takes three numbers, in one launch."""
    layout, result = x._signature.layout, new_like(x, x.shape)
    operation, memory = _rolling(x.dtype, len(axes)), x._view(Layout(layout.shape, (0,) * layout.ndim))
    operands = [memory, *itertools.chain.from_iterable(axes)]
    run_fixed(operation, operands, result)
    remember_launch(words, x, operation, operands, result, result)
    return result


@lru_cache(256)
def _rolling(dtype: np.dtype, axes: int) -> FixedOperation:
    """Return the operation that rolls a dense array, of which it gets the memory, along a number of axes.

    Of each axis it gets the stride, the size, and how many places further along the axis an element comes from.
    """
    builder, int32 = ExpressionBuilder(), dtypes.int32
    memory = builder.memory(dtype)
    place = source = builder.cast(builder.node("index"), dtypes.int64, int32)
    for _ in range(axes):
        stride, size, further = (builder.number(int32) for _ in range(3))
        at = builder.call("at", (place, stride, size), int32, "({x} // {y}) % {z}")
        moved = builder.call("moved", (at, further, size), int32, "({x} + {y}) % {z} - {x}")
        source = builder.call("source", (source, moved, stride), int32, "{x} + {y} * {z}")
    found = builder.node("gather", memory, builder.cast(source, int32, dtypes.int64))
    return FixedOperation("roll", builder.build([found], [dtype]))


def _parts(size: int, step: int) -> list[tuple[slice, slice]]:
    """The parts of an axis before and after a roll by ``0 <= step < size``."""
    if not step:
        return [(slice(None), slice(None))]
    return [(slice(size - step), slice(step, None)), (slice(size - step, None), slice(step))]
