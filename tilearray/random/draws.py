"""Draws as operations: expressions of the logical index, of a stream, and of parameters.

Element i of a draw that begins at a position of a stream reads the word at the position plus i. The position has two
parts. The number of its block is added to the number of the element's block. The rest, the words before it in its
block, is added to the index; without it, a GPU computes each block once for all of its words. For that a draw runs over
a dense array at an aligned address, whose blocks of positions begin at multiples of four.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tilearray import dtypes
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.random.formulas import Value, log, sine_and_cosine

UNIT = {dtypes.bfloat16: (1, 8), dtypes.float16: (1, 11), dtypes.float32: (1, 24), dtypes.float64: (2, 53)}
"""For each float dtype, the words of an element, and its random bits: all multiples of 2**-bits in [0, 1)."""

_U32, _U64 = dtypes.uint32, dtypes.uint64


def computed_in(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which a float is computed before it is rounded once."""
    return dtypes.float64 if dtype == dtypes.float64 else dtypes.float32


def words_of(dtype: np.dtype) -> int:
    """Return the words of 32 bits of an element of a float dtype."""
    return UNIT[dtype][0]


class Words:
    """The random words of an expression. Its first inputs are the numbers of a stream: see `numbers`.

    With `places`, an array of int64 is the next input, and has the logical indices of elements in any order.
    """

    def __init__(self, builder: ExpressionBuilder, shifted: bool, words: int, places: bool = False) -> None:
        self._builder = builder
        index = -1 if places else builder.cast(builder.node("index"), dtypes.int64, _U64)
        if shifted:
            index = builder.call("add", (index, builder.number(_U64)), _U64, "{x} + {y}")
        self._stream = tuple([builder.number(_U64) for _ in range(3)])
        self._words, self._how = words, "" if shifted else "_whole"
        if places:
            index = builder.cast(builder.array(dtypes.int64), dtypes.int64, _U64)
        self.index = Value(builder, index, _U64)

    def word(self) -> Value:
        """Return each element's word: uint32, or uint64 for an element of two words."""
        return self._call("", self._how)

    def pair(self) -> tuple[Value, Value]:
        """Return the two words of each element's pair: an element at an even position, and the next one."""
        return self._call("_first", self._how), self._call("_second", self._how)

    def halves(self) -> tuple[Value, Value]:
        """Return the upper and the lower 64 bits of each element of four words: a block."""
        return self._half("second", self.index), self._half("first", self.index)

    def quarters(self) -> tuple[Value, Value, Value, Value]:
        """Return the words of 32 bits of each element of four words, or those of 64 bits of each one of eight."""
        if self._words == 4:
            low, high = (self._half(which, self.index) for which in ("first", "second"))
            return low.to(_U32), (low >> 32).to(_U32), high.to(_U32), (high >> 32).to(_U32)
        even = self.index + self.index
        first, second = ((self._half("first", place), self._half("second", place)) for place in (even, even + 1))
        return *first, *second

    def number(self, dtype: np.dtype) -> Value:
        """Add a parameter that is a number."""
        return Value(self._builder, self._builder.number(dtype), dtype)

    def array(self, dtype: np.dtype) -> Value:
        """Add a parameter that is an array."""
        return Value(self._builder, self._builder.array(dtype), dtype)

    def constant(self, number: float, dtype: np.dtype) -> Value:
        """Return a number of the kernel."""
        return Value(self._builder, self._builder.constant(number, dtype), dtype)

    def operation(self, name: str, value: Value) -> FixedOperation:
        """Return the operation that stores a value."""
        return FixedOperation(name, self._builder.build([value.node], [value.dtype]))

    def _call(self, which: str, how: str) -> Value:
        name, dtype = ("philox_32" + which, _U32) if self._words == 1 else ("philox_64" + which, _U64)
        template = f"{name}{how}({{x}}, {{y}}, {{z}}, {{w}})"
        return Value(self._builder, self._builder.call(name, (self.index.node, *self._stream), dtype, template), dtype)

    def _half(self, which: str, place: Value) -> Value:
        template = f"philox_64_{which}({{x}} + {{x}}, {{y}}, {{z}}, {{w}})"
        node = self._builder.call(f"philox_128_{which}", (place.node, *self._stream), _U64, template)
        return Value(self._builder, node, _U64)


def numbers(key: int, jumps: int, position: int, words: int) -> tuple[bool, list[int]]:
    """Return whether a draw begins within a block, and the numbers that an expression of its words reads first."""
    block, rest = divmod(position, 4)
    stream = [block, jumps << 32, key]
    return rest > 0, [rest // words, *stream] if rest else stream


@cache
def raw(dtype: np.dtype, shifted: bool) -> FixedOperation:
    """Return the draw of words as they are: uint32 or uint64."""
    words = Words(ExpressionBuilder(), shifted, dtype.itemsize // 4)
    return words.operation("words", words.word())


@cache
def unit(dtype: np.dtype, shifted: bool, scaled: bool) -> FixedOperation:
    """Return the draw of floats in [0, 1); if `scaled`, those of the computation, times a number, plus another one."""
    wide = computed_in(dtype)
    size, bits = UNIT[wide if scaled else dtype]
    words = Words(ExpressionBuilder(), shifted, size)
    value = (words.word() >> 32 * size - bits).to(wide) * 0.5**bits
    if scaled:
        value = value * words.number(wide) + words.number(wide)
    return words.operation("random", value.to(dtype))


@cache
def normal(dtype: np.dtype, shifted: bool, scaled: bool) -> FixedOperation:
    """Return the draw of normal numbers: Box and Muller's, of pairs; if `scaled`, times a number, plus another one.

    The first word of a pair gives the radius of a point in the plane, the second one its angle. The element at the even
    position is its cosine, the other one its sine. The bits of an angle are its quarter turns and the rest.
    """
    wide = computed_in(dtype)
    size = words_of(dtype)
    words = Words(ExpressionBuilder(), shifted, size)
    first, second = words.pair()
    is_even = (words.index & 1) ^ 1  # cos x = sin(x + a quarter turn)
    value = normal_of(first, second, is_even.to(second.dtype), wide)
    if scaled:
        value = value * words.number(wide) + words.number(wide)
    return words.operation("normal", value.to(dtype))


@cache
def exponential(dtype: np.dtype, shifted: bool, scaled: bool) -> FixedOperation:
    """Return the draw of exponential numbers, by inversion; if `scaled`, times a number."""
    wide = computed_in(dtype)
    words = Words(ExpressionBuilder(), shifted, words_of(dtype))
    value = log_of_word(words.word(), wide, -1.0)
    if scaled:
        value = value * words.number(wide)
    return words.operation("exponential", value.to(dtype))


def normal_of(first: Value, second: Value, quarters: Value, dtype: np.dtype) -> Value:
    """Return the sine of a point in the plane that two words give, turned by some quarters of a turn.

    The second word is the angle, as a fraction of a turn. Its lower bits are the rest, within an eighth of a turn, and
    the two upper bits after rounding are the quarter: the second one of them swaps sine and cosine, the first one is
    the sign.
    """
    bits = 8 * second.dtype.itemsize
    signed = dtypes.int32 if bits == 32 else dtypes.int64
    sine, cosine = sine_and_cosine((second << 2).bits(signed).to(dtype) * 0.5**bits)
    quarter = second + 2 ** (bits - 3)
    is_odd = (quarter & 2 ** (bits - 2)).equals(0) ^ (quarters & 1).equals(0)
    found = is_odd.select(cosine, sine)
    square = log_of_word(first, dtype, -2.0).at_least(float(np.finfo(dtype).epsneg))  # 0 for a word that rounds to 1
    return square.sqrt_of_normal() * found.with_sign_of(quarter + (quarters << bits - 2))


def log_of_word(word: Value, dtype: np.dtype, times: float = 1.0) -> Value:
    """Return the logarithm of a word as a fraction, times a power of two: of the middle of its interval, rounded."""
    return log(word.to(dtype) + 0.5, times, -8 * word.dtype.itemsize)


@cache
def bounded(dtype: np.dtype, shifted: bool, wide: bool, arrays: bool) -> FixedOperation:
    """Return the draw of integers: ``low + (word * count >> 64)``; if `wide`, with words of 128 bits.

    `count` and `low` are numbers, or arrays. All arithmetic is modulo 2**64. A count of 0 stands for 2**64.
    """
    words = Words(ExpressionBuilder(), shifted, 4 if wide else 2)
    upper, lower = words.halves() if wide else (words.word(), None)
    count, low = (words.array(_U64) if arrays else words.number(_U64) for _ in range(2))
    value = _high(upper, count)
    if lower is not None:
        middle = upper * count
        carry = middle + _high(lower, count) < middle
        value = count.equals(0).select(upper, value + carry.to(_U64))
    carrier = dtype if dtype.kind in "ub" else dtypes.int64
    return words.operation("integers", (value + low).to(carrier).to(dtype))


def _high(x: Value, y: Value) -> Value:
    """Return the upper 64 bits of a product of 128 bits."""
    return Value(x.builder, x.builder.call("multiply_high", (x.node, y.node), _U64, "tl.umulhi({x}, {y})"), _U64)
