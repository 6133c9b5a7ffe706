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
from tilearray.engine.context import STATE
from tilearray.engine.execute import is_recorded, run, run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation, typed_scalar
from tilearray.engine.remembered import Words
from tilearray.engine.steps import Steps, run_in_steps
from tilearray.errors import ShapeError
from tilearray.functions.conversion import to_numpy
from tilearray.functions.indexing.take import take_along_axis
from tilearray.functions.indexing.views import get
from tilearray.functions.manipulation import c_contiguous, dense, moveaxis, new_like, reshape
from tilearray.functions.reduce import refuse
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
from tilearray.ops.moves import assign
from tilearray.ops.scan import scan_of

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
    if not x.size or x.shape[axis] == 1:
        return c_contiguous(x)
    return _along(x, axis, lambda rows: sorted_rows(rows, descending, sample))


def order_along(x: A, axis: int, descending: bool) -> A:
    """Return the indices that sort an array, as int64 in C order; equal elements keep their order."""
    functions = x._signature.device.functions
    if functions is not None:
        return functions.order_along(x, axis, descending)
    if not x.size or x.shape[axis] == 1:
        return fill(new_like(x, x.shape, _INT64), 0, "argsort")
    return _along(x, axis, lambda rows: order_of_rows(rows, descending))


def _along(x: Any, axis: int, ordered: Callable[[Any], Any]) -> Any:
    """Return the result of a function of dense rows, in the places of an axis."""
    if axis == x.ndim - 1:
        return ordered(dense(x))
    return dense(moveaxis(ordered(dense(moveaxis(x, axis, -1))), -1, axis))


# --- rows -------------------------------------------------------------------------------------------------------------


def sorted_rows(x: A, descending: bool = False, sample: Sample | None = None) -> A:
    """Return the rows of a dense array, each sorted. They lie along its last axis, and have elements."""
    turned = turned_by(x.dtype, descending)
    if not _is_looked_at(x):
        return _remembered(("sort", descending), x, lambda steps, rows: _sorted(steps, rows, turned))
    rows = _rows_of(x)
    turned, few = _looked_at(rows, turned, sample)
    if not turned.bits:
        return c_contiguous(x)
    found = by_digits(rows, turned, turned.bits - DIGIT * few) if few else None
    found = None if found is None else _mended(found, turned, few)
    return reshape(by_digits(rows, turned.exact(), 0) if found is None else found, x.shape)


def _remembered(words: Words, x: A, function: Callable[[Steps, A], A]) -> A:
    """Return the result of a function of dense rows, or make the call that is remembered for it."""
    return run_in_steps(words, x, lambda steps: reshape(function(steps, _rows_of(x)), x.shape))


def _rows_of(x: A) -> A:
    """Return the rows of a dense array as an array of two axes."""
    return reshape(x, (-1, x.shape[-1]))


def _sorted(steps: Steps, x: Any, turned: Turned) -> Any:
    """Return rows, each sorted by all bits of its keys."""
    if x.shape[1] <= WHOLE:
        return steps.run(_sorting(x.dtype), [x, turned.flip, turned.bits], new_like(x, x.shape))
    return _by_digits(steps, x, turned, 0)


def by_digits(x: Any, turned: Turned, start: int) -> Any:
    """Return rows in the order of the bits of keys from a start on."""
    return _by_digits(Steps(None), x, turned, start)


def _by_digits(steps: Steps, x: Any, turned: Turned, start: int) -> Any:
    sweeps = _sweeps_of(steps, x, turned, start, turned.bits, x.dtype)
    for shift, sweep in zip(range(start, turned.bits, DIGIT), sweeps, strict=True):
        x = _partitioned(steps, _moving, x, shift, turned, sweep=sweep)
    return x


def order_of_rows(x: Any, descending: bool = False, bits: int | None = None) -> Any:
    """Return the indices that sort each row of a dense array, as int64; equal elements keep their order.

    `bits` says that only the lowest bits of integers differ. Rows lie along the last axis, and have elements.
    """
    turned = turned_by(x.dtype, descending, bits)
    if x.shape[-1] >= 1 << HALF:
        raise ShapeError(
            f"argsort: expected fewer than 2**{HALF} elements along the axis on {x.device}, got {x.shape[-1]}; "
            "sort parts of the axis"
        )
    if turned.bits <= HALF or not _is_looked_at(x):
        return _remembered(("argsort", descending, bits), x, lambda steps, rows: _ordered(steps, rows, turned))
    rows = _rows_of(x)
    turned, few = _looked_at(rows, turned)
    is_mended = 0 < few <= HALF // DIGIT and (turned.bits > HALF or turned.form == "linear")
    found = _order_mended(rows, turned, few) if is_mended else None
    return reshape(_ordered(Steps(None), rows, turned.exact()) if found is None else found, x.shape)


def _ordered(steps: Steps, x: Any, turned: Turned) -> Any:
    """Return the indices that sort rows by all bits of their keys."""
    if x.shape[1] <= WHOLE:
        return steps.run(_ordering(x.dtype), [x, turned.flip, turned.bits], new_like(x, x.shape, _INT64))
    if turned.bits <= DIGIT:
        return _partitioned(steps, _numbering, x, 0, turned, _INT64)
    return _order_by_words(steps, x, turned)


def _order_by_words(steps: Steps, x: Any, turned: Turned) -> Any:
    """Return the indices that sort rows by keys of more than a digit."""
    sweeps = _sweeps_of(steps, x, turned, 0, min(turned.bits, HALF), _UINT64)
    words = _partitioned(steps, _joining, x, 0, turned, _UINT64, sweep=sweeps[0])
    order = _positions_in(steps, words, DIGIT, min(turned.bits, HALF), sweeps)
    if turned.bits <= HALF:
        return order
    rows = x._view(Layout(x.shape, (x.shape[1], 0)))
    words = new_like(x, x.shape, _UINT64)
    steps.run(_rejoining(x.dtype), [rows, order, turned.flip, turned.base], words)
    sweeps = _sweeps_of(steps, words, _AS_IT_IS, HALF, turned.bits, _UINT64)
    return _positions_in(steps, words, 0, turned.bits - HALF, sweeps)


def words_in_order(places: Any, bits: int) -> Any:
    """Return sorted words of non-negative int64 of one axis, below ``2**bits``, and their positions, as uint64.

    There are more than `WHOLE` and less than 2**32 of them, and `bits` is 32 or less.
    """
    return _remembered(("words", bits), places, lambda steps, row: _words_in_order(steps, row, bits))


def _words_in_order(steps: Steps, row: Any, bits: int) -> Any:
    first, *others = _sweeps_of(steps, row, _AS_IT_IS, 0, bits, _UINT64)
    words = _partitioned(steps, _joining, row, 0, _AS_IT_IS, _UINT64, sweep=first)
    for shift, sweep in zip(range(DIGIT, bits, DIGIT), others, strict=True):
        words = _partitioned(steps, _moving, words, HALF + shift, _AS_IT_IS, sweep=sweep)
    return words


def _positions_in(steps: Steps, words: Any, start: int, bits: int, sweeps: Sequence[Sweep | None]) -> Any:
    """Return the positions of words in the order of the bits of their keys from a start on."""
    for shift in range(start, bits, DIGIT):
        is_last = shift + DIGIT >= bits
        operation, dtype = (_unjoining, _INT64) if is_last else (_moving, _UINT64)
        words = _partitioned(steps, operation, words, HALF + shift, _AS_IT_IS, dtype, sweep=sweeps[shift // DIGIT])
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
    return x.size == x.shape[-1] >= MENDED


def _is_looked_at(x: Any) -> bool:
    """Whether some elements of rows are looked at before these are sorted: keys are wide and many.

    Keys of floats fill all digits but rarely.
    """
    is_float = dtypes.info(x.dtype).kind == "float"
    return is_wide(x.dtype) and x.shape[-1] > WHOLE and (_is_long(x) or (x.size >= NARROWED and not is_float))


def _looked_at(x: Any, turned: Turned, sample: Sample | None = None) -> tuple[Turned, int]:
    """Return how keys of rows are narrowed, and how many upper digits are worth a sort before short runs are, or 0.

    The call waits for the device, if it may.
    """
    if is_recorded(x.device) or x.device.backend.is_captured(STATE.get().stream):
        return turned, 0
    is_long = _is_long(x)
    keys = _some_keys(x) if sample is None else sample.keys
    gap = least_gap(sorted_rows(keys)) if is_long else None
    sample = sample or _told(keys)
    if -(-sample.bits // DIGIT) < turned.digits:
        turned = narrowed(x, turned, sample.middle)
    few = 0 if gap is None or turned.digits < 4 else digits_enough(int(to_numpy(gap)), turned.bits)
    if dtypes.info(x.dtype).kind == "float" and few > LINEAR:
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
    steps = Steps(None)
    first, *others = _sweeps_of(steps, x, turned, start, turned.bits, _UINT64)
    words = _partitioned(steps, _joining_upper, x, start, turned, _UINT64, (turned.bits - HALF,), first)
    for shift, sweep in zip(range(HALF - DIGIT * (few - 1), HALF, DIGIT), others, strict=True):
        words = _partitioned(steps, _moving, words, HALF + shift, _AS_IT_IS, sweep=sweep)
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


def _sweeps_of(steps: Steps, x: Any, turned: Turned, start: int, end: int, dtype: np.dtype) -> list[Sweep | None]:
    """Return the sweeps by the digits between two bits, which store a dtype; None for each if rows are not swept.

    One launch fills the memory of all sweeps, and one counts all digits.
    """
    digits = -(-(end - start) // DIGIT)
    rows, extent = x.shape
    if not is_swept(rows, extent, digits):
        return [None] * digits
    words = words_of_sweep(extent, dtype.itemsize)
    memory = _filled(steps, new_like(x, (digits * (DIGITS + words),), _INT32))
    counts = memory._view(Layout.of((digits, DIGITS)))
    steps.run(_counting_all(x.dtype, digits, turned.form), [x, start, *turned.numbers], counts)
    nowhere = Layout(x.shape, (0, 0))
    return [
        Sweep(memory._view(nowhere, DIGITS * k), memory._view(nowhere, DIGITS * digits + words * k))
        for k in range(digits)
    ]


def _filled(steps: Steps, memory: Any) -> Any:
    """Fill memory with zeros, and return it."""
    fill(memory, 0, "sort")
    return steps.note((assign.into, memory._signature, typed_scalar(memory.dtype)), (0,), memory)


# --- a digit ----------------------------------------------------------------------------------------------------------


def _partitioned(
    steps: Steps,
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
    places, numbers = end_dtype(x.shape[1]), (shift, *turned.numbers)
    if sweep is not None:
        found_from, memory = "swept", [*sweep]
    else:
        found_from, counts = _counted(steps, x, numbers, turned.form)
        memory = [counts]
    moving = operation(x.dtype, places, found_from, turned.form)
    return steps.run(moving, [x, *numbers, *further, *memory], new_like(x, x.shape, dtype or x.dtype))


def _counted(steps: Steps, x: Any, numbers: tuple[float, ...], form: str) -> tuple[str, Any]:
    """Return from what places are found, as of the node "rank": counts of blocks or running sums; and these."""
    rows, extent = x.shape
    by_block, nowhere = has_few_blocks(rows, extent), Layout(x.shape, (0, 0))
    counts = new_like(x, (rows, DIGITS * blocks_of(rows, extent)), _INT32)
    steps.run(_counting(x.dtype, by_block, form), [x, *numbers], counts)
    if by_block:
        return "counts", counts._view(nowhere)
    adding = scan_of("sort", "add", end_dtype(extent), 1, False)
    sums = run(adding, [counts._signature], (counts,), None, refuse)
    steps.note((adding, counts._signature), (counts,), sums)
    return "sums", sums._view(nowhere)


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
