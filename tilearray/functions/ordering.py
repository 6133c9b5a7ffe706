"""Orders of elements on a device that sorts by expressions: stable, by the digits of keys that are unsigned integers.

The key of an integer is its distance from the least one. Keys of floats are those of their bits, turned so that they
are in order; both zeros have one key, and every NaN the last one. The complement of a key turns the order round, and
leaves equal elements as they are. `tilearray.geometry.sorting` says how rows are sorted.

Long rows of indices are sorted as words of 64 bits: 32 bits of a key, and below them the position. Keys of 64 bits are
sorted by their lower half first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.array_type import A
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation, Operation, typed_scalar
from tilearray.engine.plan import Key, Plan, make_plan
from tilearray.engine.signature import Signature, empty_array, signature_of
from tilearray.engine.watch import WATCH
from tilearray.errors import ShapeError
from tilearray.functions.indexing.take import take_along_axis
from tilearray.functions.manipulation import c_contiguous, moveaxis, new_like, reshape
from tilearray.functions.reduce import refuse
from tilearray.functions.scans import scan
from tilearray.geometry.layout import Layout
from tilearray.geometry.sorting import DIGIT, DIGITS, WHOLE, blocks_of, has_few_blocks
from tilearray.ops.execute import fill
from tilearray.ops.scan import scan_of

_INT32, _INT64, _UINT32, _UINT64 = dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64
_HALF = 32
"""The bits of a position, and those of a key that lie beside it in a word."""

Placing = Callable[[np.dtype, np.dtype, bool], FixedOperation]
"""Returns an operation for rows of a dtype and places of a dtype, and for counts that no scan adds."""


def sorted_along(x: A, axis: int, descending: bool) -> A:
    """Return a sorted copy in C order."""
    if x._signature.device.functions is not None:
        return take_along_axis(x, order_along(x, axis, descending), axis)
    return _along(x, axis, True, lambda rows: sorted_rows(rows, descending))


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
    moved = moveaxis(x, axis, -1)
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


def sorted_rows(x: A, descending: bool = False) -> A:
    """Return the rows of a dense array of two axes, each sorted."""
    bits = key_bits(x.dtype)
    flip = (1 << bits) - 1 if descending else 0
    if x.shape[1] <= WHOLE:
        return run_fixed(_sorting(x.dtype), [x, flip, bits], new_like(x, x.shape))
    for shift in range(0, bits, DIGIT):
        x = _partitioned(_moving, x, shift, flip)
    return x


def order_of_rows(x: Any, descending: bool = False, bits: int | None = None) -> Any:
    """Return the indices that sort each row of a dense array of two axes, as int64; equal elements keep their order.

    `bits` says that only the lowest bits of integers differ.
    """
    bits = key_bits(x.dtype) if bits is None else max(bits, 1)
    flip = (1 << bits) - 1 if descending else 0
    if x.shape[1] <= WHOLE:
        return run_fixed(_ordering(x.dtype), [x, flip, bits], new_like(x, x.shape, _INT64))
    if x.shape[1] >= 1 << _HALF:
        raise ShapeError(
            f"argsort: expected fewer than 2**{_HALF} elements along the axis on {x.device}, got {x.shape[1]}; "
            "sort parts of the axis"
        )
    if bits <= DIGIT:
        return _partitioned(_numbering, x, 0, flip, _INT64)
    words = _partitioned(_joining, x, 0, flip, _UINT64)
    order = _positions_in(words, DIGIT, min(bits, _HALF))
    if bits <= _HALF:
        return order
    rows = x._view(Layout(x.shape, (x.shape[1], 0)))
    words = run_fixed(_rejoining(x.dtype), [rows, order, flip], new_like(x, x.shape, _UINT64))
    return _positions_in(words, 0, bits - _HALF)


def words_in_order(places: Any, bits: int) -> Any:
    """Return sorted words of non-negative int64 of one axis, below ``2**bits``, and their positions, as uint64.

    There are more than `WHOLE` and less than 2**32 of them, and `bits` is 32 or less.
    """
    words = _partitioned(_joining, reshape(places, (1, places.size)), 0, 0, _UINT64)
    for shift in range(DIGIT, bits, DIGIT):
        words = _partitioned(_moving, words, _HALF + shift, 0)
    return reshape(words, -1)


def _positions_in(words: Any, start: int, bits: int) -> Any:
    """Return the positions of words in the order of the bits of their keys from a start on."""
    for shift in range(start, bits, DIGIT):
        is_last = shift + DIGIT >= bits
        operation, dtype = (_unjoining, _INT64) if is_last else (_moving, _UINT64)
        words = _partitioned(operation, words, _HALF + shift, 0, dtype)
    return words


def _partitioned(operation: Placing, x: Any, shift: int, flip: int, dtype: np.dtype | None = None) -> Any:
    """Return what an operation stores of the elements of rows in the order of one of their digits."""
    state = STATE.get()
    if state.recording is None and WATCH.plan is None and x._signature.device.recorder is None:
        key = operation, x._signature, dtype
        return (_PASSES.get(key) or _PASSES.put(key, _Pass(*key)))(state.stream, x, shift, flip)
    rows, extent = x.shape
    places, by_block = end_dtype(extent), has_few_blocks(rows, extent)
    counts = new_like(x, (rows, DIGITS * blocks_of(rows, extent)), _INT32)
    run_fixed(_counting(x.dtype, by_block), [x, shift, flip], counts)
    ends = counts if by_block else scan("sort", "add", counts, 1, places)
    memory = ends._view(Layout(x.shape, (0, 0)))
    return run_fixed(operation(x.dtype, places, by_block), [x, shift, flip, memory], new_like(x, x.shape, dtype))


class _Pass:
    """The plans of `_partitioned` for rows of one signature, found once: to find them takes longer than launches."""

    def __init__(self, operation: Placing, given: Signature, dtype: np.dtype | None) -> None:
        (rows, extent), device = given.layout.shape, given.device
        places, by_block, number = end_dtype(extent), has_few_blocks(rows, extent), typed_scalar(key_dtype(given.dtype))
        semantics = STATE.get().semantics  # which decide nothing about fixed operations

        def planned(operation: Operation, keys: Sequence[Key], out: Signature | None) -> Plan:
            return make_plan(operation, semantics, keys, out, refuse)

        self._counts = signature_of(Layout.of((rows, DIGITS * blocks_of(rows, extent))), _INT32, device)
        self._memory = signature_of(Layout((rows, extent), (0, 0)), places, device)
        self._result = signature_of(Layout.of((rows, extent)), dtype or given.dtype, device)
        self._count = planned(_counting(given.dtype, by_block), [given, number, number], self._counts).call
        scanning = scan_of("sort", "add", places, 1, False)
        self._scan = None if by_block else planned(scanning, [self._counts], None).call
        moving = operation(given.dtype, places, by_block)
        self._move = planned(moving, [given, number, number, self._memory], self._result).call

    def __call__(self, stream: Any, x: Any, shift: int, flip: int) -> Any:
        counts = self._count(stream, empty_array(x.__class__, self._counts, stream), x, shift, flip)
        ends = counts if self._scan is None else self._scan(stream, counts)
        memory = x._make(ends._buffer, 0, self._memory)
        return self._move(stream, empty_array(x.__class__, self._result, stream), x, shift, flip, memory)


_PASSES: TwoGenerations[_Pass] = TwoGenerations(128)


def end_dtype(extent: int) -> np.dtype:
    """Return the dtype of places in rows of so many elements.

    >>> end_dtype(2**31 - 1).name, end_dtype(2**31).name
    ('int32', 'int64')
    """
    return _INT32 if extent < 1 << 31 else _INT64


# --- keys -------------------------------------------------------------------------------------------------------------


def key_bits(dtype: np.dtype) -> int:
    """Return the number of bits of the key of a dtype.

    >>> key_bits(np.dtype("bool")), key_bits(np.dtype("float32"))
    (1, 32)
    """
    info = dtypes.info(dtype)
    return 1 if info.kind == "bool" else info.bits


def key_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the key of a dtype.

    >>> key_dtype(np.dtype("float64")).name, key_dtype(np.dtype("int8")).name
    ('uint64', 'uint32')
    """
    return _UINT64 if dtypes.info(dtype).bits > _HALF else _UINT32


def _key_text(dtype: np.dtype) -> str:
    """Return the key of an element in Triton."""
    info = dtypes.info(dtype)
    if info.kind == "int":
        return "integer_key({x}, {width})"
    if info.kind != "float":
        return "{x}" if info.bits > _HALF else "{x}.to(tl.uint32)"
    form = info.format
    assert form is not None
    last = form.largest if form.infinity is None else form.infinity
    bits = "{x}" if info.bits == 8 else "{x}.to(tl.uint{width}, bitcast=True)"
    return f"float_key({bits}, {last}, {{width}})"


def key_of(builder: ExpressionBuilder, element: int, dtype: np.dtype) -> int:
    """Add the key of an element, and return its node."""
    return builder.call("key", (element,), key_dtype(dtype), _key_text(dtype))


def _key(builder: ExpressionBuilder, element: int, dtype: np.dtype, flip: int) -> int:
    """Add the key of an element, turned round by a number, and return its node."""
    return builder.call("turn", (key_of(builder, element, dtype), flip), key_dtype(dtype), "{x} ^ {y}")


class Keyed(ExpressionBuilder):
    """A builder with an element of rows, its key, and the number that turns the order round."""

    def __init__(self, dtype: np.dtype, takes_shift: bool) -> None:
        super().__init__()
        self.element = self.array(dtype)
        wide = self.key_dtype = key_dtype(dtype)
        self.shift = self.number(wide) if takes_shift else -1
        self.key = _key(self, self.element, dtype, self.number(wide))

    def digit(self) -> int:
        """Add the digit at the shift."""
        return self.call("digit", (self.key, self.shift), _INT32, f"(({{x}} >> {{y}}) & {DIGITS - 1}).to(tl.int32)")

    def placed(self, output: int, dtype: np.dtype, places: np.dtype, by_block: bool) -> FixedOperation:
        """Return the operation that stores a node in the order of the digit, with places of a dtype."""
        place = self.node("rank", self.digit(), self.memory(places), by_block)
        return FixedOperation("sort", self.build([output], [dtype], (place,)))


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
def _counting(dtype: np.dtype, by_block: bool) -> FixedOperation:
    """Return the operation that counts the digits of blocks: rows, a shift, the number that turns round."""
    builder = Keyed(dtype, True)
    return FixedOperation("sort", builder.build([builder.node("digits", builder.digit(), by_block)], [_INT32]))


@cache
def _moving(dtype: np.dtype, places: np.dtype, by_block: bool) -> FixedOperation:
    """Return the operation that stores elements in the order of a digit."""
    builder = Keyed(dtype, True)
    return builder.placed(builder.element, dtype, places, by_block)


@cache
def _joining(dtype: np.dtype, places: np.dtype, by_block: bool) -> FixedOperation:
    """Return the operation that stores words of the lower half of keys and positions in the order of a digit."""
    builder = Keyed(dtype, True)
    position = builder.cast(builder.node("coordinate", 1), _INT64, _UINT32)
    word = builder.call("join", (builder.key, position), _UINT64, f"({{x}}.to(tl.uint64) << {_HALF}) | {{y}}")
    return builder.placed(word, _UINT64, places, by_block)


@cache
def _numbering(dtype: np.dtype, places: np.dtype, by_block: bool) -> FixedOperation:
    """Return the operation that stores positions in the order of a digit."""
    builder = Keyed(dtype, True)
    return builder.placed(builder.node("coordinate", 1), _INT64, places, by_block)


@cache
def _unjoining(dtype: np.dtype, places: np.dtype, by_block: bool) -> FixedOperation:
    """Return the operation that stores the positions of words in the order of a digit."""
    builder = Keyed(dtype, True)
    position = builder.call("position", (builder.element,), _INT64, "{x}.to(tl.uint32).to(tl.int64)")
    return builder.placed(position, _INT64, places, by_block)


@cache
def _rejoining(dtype: np.dtype) -> FixedOperation:
    """Return the operation that makes words of the upper half of the keys at positions, and the positions."""
    builder = ExpressionBuilder()
    rows, position = builder.memory(dtype), builder.array(_INT64)
    key = _key(builder, builder.node("gather", rows, position), dtype, builder.number(_UINT64))
    upper = f"(({{x}} >> {_HALF}) << {_HALF}) | {{y}}"
    word = builder.call("join", (key, builder.cast(position, _INT64, _UINT32)), _UINT64, upper)
    return FixedOperation("argsort", builder.build([word], [_UINT64]))
