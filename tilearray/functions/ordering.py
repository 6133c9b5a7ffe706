"""Orders of elements on a device that sorts by expressions: stable, by the digits of keys that are unsigned integers.

`tilearray.functions.sort_keys` has the keys, and `tilearray.geometry.sorting` says how rows are sorted.

Long rows of indices are sorted as words of 64 bits: 32 bits of a key, and below them the position. Keys of 64 bits are
sorted by their lower half first.

Many elements of 64 bits are looked at first, and the call waits for the device: keys are narrowed to the bits that
differ. If few upper digits tell most elements of a row apart, only these are sorted by. A last launch compares each
element with near ones whose digits are equal. It reports a run that is too long, and then all digits are sorted by.
Floats that need many upper digits may have linear keys, which need four: see `sort_keys.linear`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.engine.array_type import A
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE
from tilearray.engine.execute import FixedCall, is_recorded, run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import Signature, new_array, signature_of
from tilearray.errors import ShapeError
from tilearray.functions.conversion import to_numpy
from tilearray.functions.indexing.take import take_along_axis
from tilearray.functions.indexing.views import get
from tilearray.functions.manipulation import c_contiguous, moveaxis, new_like, reshape
from tilearray.functions.scans import scan
from tilearray.functions.sort_keys import (
    SAMPLES,
    Keyed,
    Turned,
    digits_enough,
    is_wide,
    least_gap,
    linear,
    mending,
    mending_order,
    narrowed,
    range_of,
    sampled,
    turned_by,
    turned_key,
)
from tilearray.geometry.layout import Layout
from tilearray.geometry.sorting import DIGIT, DIGITS, WHOLE, blocks_of, has_few_blocks, is_swept, words_of_sweep
from tilearray.ops.execute import fill

_INT32, _INT64, _UINT32, _UINT64 = dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64
HALF = 32
"""The bits of a position, and those of a key that lie beside it in a word."""
NARROWED = 1 << 23
"""The elements from which integers of 64 bits are looked at: passes over fewer take less time than to wait."""
MENDED = 1 << 24
"""The elements of a row from which short runs are sorted at last."""
LINEAR = 4
"""The upper digits of floats above which linear keys are looked at, which have four."""
_AS_IT_IS = Turned(0, 0, 2 * HALF)

Placing = Callable[[np.dtype, np.dtype, str, str], FixedOperation]
"""Returns an operation for rows of a dtype, places of a dtype, what these are found from, and keys of a form."""


def sorted_along(x: A, axis: int, descending: bool, sample: Sample | None = None) -> A:
    """Return a sorted copy in C order. A sample of elements that lie in one row is not taken again."""
    if x._signature.device.functions is not None:
        return take_along_axis(x, order_along(x, axis, descending), axis)
    return _along(x, axis, True, lambda rows: sorted_rows(rows, descending, sample))


def order_along(x: A, axis: int, descending: bool) -> A:
    """Return the indices that sort an array, as int64 in C order; equal elements keep their order."""
    functions = x._signature.device.functions
    if functions is not None:
        return functions.order_along(x, axis, descending)
    return _along(x, axis, False, lambda rows: order_of_rows(rows, descending))


def _along(x: Any, axis: int, copies: bool, ordered: Callable[[Any], Any]) -> Any:
    """Return the result of a function of the dense rows along an axis, in the places of the axis.

    If nothing is to be sorted, the result is a copy, or indices.
    """
    extent = x.shape[axis]
    moved = x if axis == x.ndim - 1 else moveaxis(x, axis, -1)
    if x.size and extent > 1:
        found = reshape(ordered(dense(reshape(moved, (x.size // extent, extent)))), moved.shape)
        return found if axis == x.ndim - 1 else dense(moveaxis(found, -1, axis))
    if copies:
        return c_contiguous(x)
    return fill(new_like(x, x.shape, _INT64), 0, "argsort")


def dense(x: A) -> A:
    """Return an array in C order: the array itself, or a copy."""
    return x if x._signature.layout.contiguous else c_contiguous(x)


# --- rows -------------------------------------------------------------------------------------------------------------


def sorted_rows(x: A, descending: bool = False, sample: Sample | None = None) -> A:
    """Return the rows of a dense array of two axes, each sorted."""
    turned = turned_by(x.dtype, descending)
    if x.shape[1] <= WHOLE:
        return _in_programs(_sorting, x, turned, x._signature.dtype)
    turned, few = _looked_at(x, turned, sample)
    if not turned.bits:
        return c_contiguous(x)
    found = _mended(by_digits(x, turned, turned.bits - DIGIT * few), turned, few) if few else None
    return by_digits(x, turned.exact(), 0) if found is None else found


def _in_programs(operation: Callable[[np.dtype], FixedOperation], x: Any, turned: Turned, dtype: np.dtype) -> Any:
    """Return what an operation stores of rows that programs sort whole."""
    key = operation, x._signature
    known = _WHOLE.get(key) or _WHOLE.put(key, _Whole(operation, x._signature, dtype))
    found = new_array(x.__class__, known.result)
    known.call.run([x, turned.flip, turned.bits], found)
    return found


class _Whole:
    """All that `_in_programs` needs for rows of one signature: that of the result, and the call."""

    __slots__ = ("call", "result")

    def __init__(self, operation: Callable[[np.dtype], FixedOperation], given: Signature, dtype: np.dtype) -> None:
        self.result = signature_of(Layout.of(given.layout.shape), dtype, given.device)
        self.call = FixedCall(operation(given.dtype))


_WHOLE: TwoGenerations[_Whole] = TwoGenerations(512)


def by_digits(x: Any, turned: Turned, start: int) -> Any:
    """Return rows in the order of the bits of keys from a start on."""
    sweeps = _sweeps_of(x, turned, start, turned.bits, x.dtype)
    for shift, sweep in zip(range(start, turned.bits, DIGIT), sweeps, strict=True):
        x = _partitioned(_moving, x, shift, turned, sweep=sweep)
    return x


def order_of_rows(x: Any, descending: bool = False, bits: int | None = None) -> Any:
    """Return the indices that sort each row of a dense array of two axes, as int64; equal elements keep their order.

    `bits` says that only the lowest bits of integers differ.
    """
    turned = turned_by(x.dtype, descending, bits)
    if x.shape[1] <= WHOLE:
        return _in_programs(_ordering, x, turned, _INT64)
    if x.shape[1] >= 1 << HALF:
        raise ShapeError(
            f"argsort: expected fewer than 2**{HALF} elements along the axis on {x.device}, got {x.shape[1]}; "
            "sort parts of the axis"
        )
    turned, few = _looked_at(x, turned) if turned.bits > HALF else (turned, 0)
    if turned.bits <= DIGIT:
        return _partitioned(_numbering, x, 0, turned, _INT64)
    is_mended = 0 < few <= HALF // DIGIT and (turned.bits > HALF or turned.form == "linear")
    found = _order_mended(x, turned, few) if is_mended else None
    return _order_by_words(x, turned.exact()) if found is None else found


def _order_by_words(x: Any, turned: Turned) -> Any:
    """Return the indices that sort rows by keys of more than a digit."""
    sweeps = _sweeps_of(x, turned, 0, min(turned.bits, HALF), _UINT64)
    words = _partitioned(_joining, x, 0, turned, _UINT64, sweep=sweeps[0])
    order = _positions_in(words, DIGIT, min(turned.bits, HALF), sweeps)
    if turned.bits <= HALF:
        return order
    rows = x._view(Layout(x.shape, (x.shape[1], 0)))
    words = run_fixed(_rejoining(x.dtype), [rows, order, turned.flip, turned.base], new_like(x, x.shape, _UINT64))
    sweeps = _sweeps_of(words, _AS_IT_IS, HALF, turned.bits, _UINT64)
    return _positions_in(words, 0, turned.bits - HALF, sweeps)


def words_in_order(places: Any, bits: int) -> Any:
    """Return sorted words of non-negative int64 of one axis, below ``2**bits``, and their positions, as uint64.

    There are more than `WHOLE` and less than 2**32 of them, and `bits` is 32 or less.
    """
    row = reshape(places, (1, places.size))
    first, *others = _sweeps_of(row, _AS_IT_IS, 0, bits, _UINT64)
    words = _partitioned(_joining, row, 0, _AS_IT_IS, _UINT64, sweep=first)
    for shift, sweep in zip(range(DIGIT, bits, DIGIT), others, strict=True):
        words = _partitioned(_moving, words, HALF + shift, _AS_IT_IS, sweep=sweep)
    return reshape(words, -1)


def _positions_in(words: Any, start: int, bits: int, sweeps: Sequence[Sweep | None]) -> Any:
    """Return the positions of words in the order of the bits of their keys from a start on."""
    for shift in range(start, bits, DIGIT):
        is_last = shift + DIGIT >= bits
        operation, dtype = (_unjoining, _INT64) if is_last else (_moving, _UINT64)
        words = _partitioned(operation, words, HALF + shift, _AS_IT_IS, dtype, sweep=sweeps[shift // DIGIT])
    return words


# --- long rows of wide keys -------------------------------------------------------------------------------------------


class Sample(NamedTuple):
    """What is known of the keys of rows before they are sorted.

    Attributes
    ----------
    keys : Array
        Those of some elements, in rows: several of one long row, else one.
    first : numpy.ndarray
        Those of the first row.
    middle, bits : int
        A key in the middle of those in the first row, and the bits of their range.
    """

    keys: Any
    first: np.ndarray
    middle: int
    bits: int


def sample_of(x: Any) -> Sample:
    """Return a sample of a dense array of two axes. The call waits for the device."""
    return _told(_some_keys(x))


def _some_keys(x: Any) -> Any:
    return sampled(x, SAMPLES if _is_long(x) else 1)


def _told(keys: Any) -> Sample:
    first = to_numpy(get(keys, 0))
    return Sample(keys, first, *range_of(first))


def _is_long(x: Any) -> bool:
    """Whether the short runs of one row may be sorted at last."""
    return x.shape[0] == 1 and x.size >= MENDED


def _looked_at(x: Any, turned: Turned, sample: Sample | None = None) -> tuple[Turned, int]:
    """Return how keys of rows are narrowed, and how many upper digits are worth a sort before short runs are, or 0.

    The call waits for the device, if it may: keys are wide and many. Keys of floats fill all digits but rarely.
    """
    is_float, is_long = dtypes.info(x.dtype).kind == "float", _is_long(x)
    if not is_wide(x.dtype) or not (is_long or (x.size >= NARROWED and not is_float)) or is_recorded(x.device):
        return turned, 0
    if x.device.backend.is_captured(STATE.get().stream):
        return turned, 0
    keys = _some_keys(x) if sample is None else sample.keys
    gap = least_gap(sorted_rows(keys)) if is_long else None
    sample = sample or _told(keys)
    if -(-sample.bits // DIGIT) < turned.digits:
        turned = narrowed(x, turned, sample.middle)
    few = 0 if gap is None or turned.digits < 4 else digits_enough(int(to_numpy(gap)), turned.bits)
    if is_float and few > LINEAR:
        line = linear(x, turned, to_numpy(get(keys, 0)))
        if line is not None:
            return line, HALF // DIGIT
    return turned, few if few + 1 < turned.digits else 0


def _mended(x: Any, turned: Turned, few: int) -> Any:
    """Return a row sorted, which is sorted by few upper digits of keys; None if it has long runs."""
    start = turned.bits - DIGIT * few
    memory, is_linear = x._view(Layout(x.shape, (0, 0))), turned.form == "linear"
    line = [turned.center, turned.scale] if is_linear else []
    given = [x, memory, x.size, turned.flip, turned.base, start, *line]
    return _unless_cut(mending(x.dtype, is_linear), given, new_like(x, x.shape))


def _order_mended(x: Any, turned: Turned, few: int) -> Any:
    """Return the indices that sort a row, which few upper digits of keys nearly do; None if they leave long runs."""
    start = turned.bits - DIGIT * few
    first, *others = _sweeps_of(x, turned, start, turned.bits, _UINT64)
    words = _partitioned(_joining_upper, x, start, turned, _UINT64, (turned.bits - HALF,), first)
    for shift, sweep in zip(range(HALF - DIGIT * (few - 1), HALF, DIGIT), others, strict=True):
        words = _partitioned(_moving, words, HALF + shift, _AS_IT_IS, sweep=sweep)
    memory, rows = (given._view(Layout(x.shape, (0, 0))) for given in (words, x))
    given = [words, memory, x.size, rows, turned.flip, turned.base, 2 * HALF - DIGIT * few]
    return _unless_cut(mending_order(x.dtype), given, new_like(x, x.shape, _INT64))


def _unless_cut(operation: FixedOperation, operands: list[Any], out: Any) -> Any:
    """Return the result of an operation that sorts short runs; None if it reports a long one. The call waits for it."""
    word = fill(new_like(out, (1,), _INT64), 0, "sort")
    run_fixed(operation, [*operands, word._view(Layout(out.shape, (0, 0)))], out)
    return None if to_numpy(word)[0] else out


# --- one sweep --------------------------------------------------------------------------------------------------------


class Sweep(NamedTuple):
    """The memory of a sweep, as views of the shape of the row without strides.

    Attributes
    ----------
    counts : Array
        How often each digit comes in the row.
    turns : Array
        Zeros, as of the node "rank".
    """

    counts: Any
    turns: Any


def _sweeps_of(x: Any, turned: Turned, start: int, end: int, dtype: np.dtype) -> list[Sweep | None]:
    """Return the sweeps by the digits between two bits, which store a dtype; None for each if rows are not swept.

    One launch fills the memory of all sweeps, and one counts all digits.
    """
    digits = -(-(end - start) // DIGIT)
    rows, extent = x.shape
    if not is_swept(rows, extent, digits):
        return [None] * digits
    key = x._signature, digits, turned.form, dtype.itemsize
    known = _BEGINNINGS.get(key) or _BEGINNINGS.put(key, _Beginning(*key))
    return known(x, (start, *turned.numbers))


class _Beginning:
    """All that `_sweeps_of` needs for rows of one signature: to find it takes longer than launches."""

    def __init__(self, given: Signature, digits: int, form: str, itemsize: int) -> None:
        shape, device, size = given.layout.shape, given.device, _INT32.itemsize
        words = words_of_sweep(shape[1], itemsize)
        self._memory = signature_of(Layout.of((digits * (DIGITS + words),)), _INT32, device)
        self._counts = signature_of(Layout.of((digits, DIGITS)), _INT32, device)
        self._nowhere = signature_of(Layout(shape, (0, 0)), _INT32, device)
        self._count = FixedCall(_counting_all(given.dtype, digits, form))
        self._places = [(size * DIGITS * k, size * (DIGITS * digits + words * k)) for k in range(digits)]

    def __call__(self, x: Any, numbers: tuple[float, ...]) -> list[Sweep | None]:
        memory = fill(new_array(x.__class__, self._memory), 0, "sort")
        make, buffer, nowhere = x._make, memory._buffer, self._nowhere
        self._count.run([x, *numbers], make(buffer, 0, self._counts))
        return [Sweep(make(buffer, counts, nowhere), make(buffer, turns, nowhere)) for counts, turns in self._places]


_BEGINNINGS: TwoGenerations[_Beginning] = TwoGenerations(128)


# --- a digit ----------------------------------------------------------------------------------------------------------


def _partitioned(
    operation: Placing,
    x: Any,
    shift: int,
    turned: Turned,
    dtype: np.dtype | None = None,
    further: tuple[int, ...] = (),
    sweep: Sweep | None = None,
) -> Any:
    """Return what an operation stores of the elements of rows in the order of one of their digits.

    The operation takes the numbers of the keys, and `further` ones.
    """
    key = operation, x._signature, dtype, turned.form, sweep is not None
    known = _PASSES.get(key) or _PASSES.put(key, _Pass(*key))
    return known(x, (shift, *turned.numbers), further, sweep)


class _Pass:
    """All that `_partitioned` needs for rows of one signature, as `_Beginning`."""

    def __init__(self, operation: Placing, given: Signature, dtype: np.dtype | None, form: str, is_swept: bool) -> None:
        (rows, extent), device = given.layout.shape, given.device
        places, self._by_block = end_dtype(extent), has_few_blocks(rows, extent)
        # what places are found from, as of the node "rank"
        found_from = "swept" if is_swept else "counts" if self._by_block else "sums"
        self._counts = signature_of(Layout.of((rows, DIGITS * blocks_of(rows, extent))), _INT32, device)
        self._memory = signature_of(Layout((rows, extent), (0, 0)), places, device)
        self._result = signature_of(Layout.of((rows, extent)), dtype or given.dtype, device)
        self._count = FixedCall(_counting(given.dtype, self._by_block, form))
        self._move = FixedCall(operation(given.dtype, places, found_from, form))

    def __call__(self, x: Any, numbers: tuple[float, ...], further: tuple[int, ...], sweep: Sweep | None) -> Any:
        memory = sweep or (self._counted(x, numbers),)
        found = new_array(x.__class__, self._result)
        self._move.run([x, *numbers, *further, *memory], found)
        return found

    def _counted(self, x: Any, numbers: tuple[float, ...]) -> Any:
        """Return the counts of blocks, or their running sums, as memory."""
        found = new_array(x.__class__, self._counts)
        self._count.run([x, *numbers], found)
        found = found if self._by_block else scan("sort", "add", found, 1, self._memory.dtype)
        return x._make(found._buffer, found._offset, self._memory)


_PASSES: TwoGenerations[_Pass] = TwoGenerations(128)


def end_dtype(extent: int) -> np.dtype:
    """Return the dtype of places in rows of so many elements.

    >>> end_dtype(2**31 - 1).name, end_dtype(2**31).name
    ('int32', 'int64')
    """
    return _INT32 if extent < 1 << 31 else _INT64


# --- operations ------------------------------------------------------------------------------------------------------


@cache
def _sorting(dtype: np.dtype) -> FixedOperation:
    """Return the operation that sorts rows within programs: rows, the number that turns round, the bits of keys."""
    builder = Keyed(dtype, False)
    found = builder.node("sort", builder.element, builder.key, builder.number(_INT32))
    return FixedOperation("sort", builder.build([found], [dtype]))


@cache
def _ordering(dtype: np.dtype) -> FixedOperation:
    """Return the operation that finds the order of rows within programs."""
    builder = Keyed(dtype, False)
    found = builder.node("argsort", builder.element, builder.key, builder.number(_INT32))
    return FixedOperation("argsort", builder.build([found], [_INT64]))


@cache
def _counting(dtype: np.dtype, by_block: bool, form: str) -> FixedOperation:
    """Return the operation that counts the digits of blocks: rows, a shift, the numbers of the keys."""
    builder = Keyed(dtype, True, form)
    return FixedOperation("sort", builder.build([builder.node("digits", builder.digit(), by_block)], [_INT32]))


@cache
def _counting_all(dtype: np.dtype, digits: int, form: str) -> FixedOperation:
    """Return the operation that counts several digits of a row: a row, a shift, the numbers of the keys."""
    builder = Keyed(dtype, True, form)
    return FixedOperation("sort", builder.build([builder.node("histograms", builder.shifted(), digits)], [_INT32]))


@cache
def _moving(dtype: np.dtype, places: np.dtype, given: str, form: str) -> FixedOperation:
    """Return the operation that stores elements in the order of a digit."""
    builder = Keyed(dtype, True, form)
    return builder.placed(builder.element, dtype, places, given)


@cache
def _joining(dtype: np.dtype, places: np.dtype, given: str, form: str) -> FixedOperation:
    """Return the operation that stores words of the lower half of keys and positions in the order of a digit."""
    builder = Keyed(dtype, True, form)
    return builder.placed(_word(builder, builder.key, builder.key_dtype), _UINT64, places, given)


@cache
def _joining_upper(dtype: np.dtype, places: np.dtype, given: str, form: str) -> FixedOperation:
    """Return the operation that stores words of the bits of keys from a number on in the order of a digit."""
    builder = Keyed(dtype, True, form)
    upper = builder.call("upper", (builder.key, builder.number(_UINT64)), _UINT64, "{x} >> {y}")
    return builder.placed(_word(builder, upper, _UINT64), _UINT64, places, given)


def _word(builder: ExpressionBuilder, key: int, dtype: np.dtype) -> int:
    """Add a word of the lower half of a key and a position."""
    position = builder.cast(builder.node("coordinate", 1), _INT64, _UINT32)
    return builder.call("join", (key, position), _UINT64, f"({{x}}.to(tl.uint64) << {HALF}) | {{y}}")


@cache
def _numbering(dtype: np.dtype, places: np.dtype, given: str, form: str) -> FixedOperation:
    """Return the operation that stores positions in the order of a digit."""
    builder = Keyed(dtype, True, form)
    return builder.placed(builder.node("coordinate", 1), _INT64, places, given)


@cache
def _unjoining(dtype: np.dtype, places: np.dtype, given: str, form: str) -> FixedOperation:
    """Return the operation that stores the positions of words in the order of a digit."""
    builder = Keyed(dtype, True, form)
    position = builder.call("position", (builder.element,), _INT64, "{x}.to(tl.uint32).to(tl.int64)")
    return builder.placed(position, _INT64, places, given)


@cache
def _rejoining(dtype: np.dtype) -> FixedOperation:
    """Return the operation that makes words of the upper half of the keys at positions, and the positions."""
    builder = ExpressionBuilder()
    rows, position = builder.memory(dtype), builder.array(_INT64)
    flip, base = builder.number(_UINT64), builder.number(_UINT64)
    key = turned_key(builder, builder.node("gather", rows, position), dtype, flip, base)
    upper = f"(({{x}} >> {HALF}) << {HALF}) | {{y}}"
    word = builder.call("join", (key, builder.cast(position, _INT64, _UINT32)), _UINT64, upper)
    return FixedOperation("argsort", builder.build([word], [_UINT64]))
