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

UNIT = {dtypes.bfloat16: (1, 8), dtypes.float16: (1, 11), dtypes.float32: (1, 24), dtypes.float64: (2, 53)}
"""For each float dtype, the words of an element, and its random bits: all multiples of 2**-bits in [0, 1)."""

_U64 = dtypes.uint64


def computed_in(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which a float is computed before it is rounded once."""
    return dtypes.float64 if dtype == dtypes.float64 else dtypes.float32


class Words:
    """The random words of an expression. Its first inputs are the numbers of a stream: see `numbers`."""

    def __init__(self, builder: ExpressionBuilder, shifted: bool, words: int) -> None:
        self._builder = builder
        index = builder.cast(builder.node("index"), dtypes.int64, _U64)
        if shifted:
            index = builder.call("add", (index, builder.number(_U64)), _U64, "{x} + {y}")
        self._stream = tuple([builder.number(_U64) for _ in range(3)])
        self._index, self._words, self._shifted = index, words, shifted

    def word(self) -> tuple[int, np.dtype]:
        """Return the node of each element's word of 32 or 64 bits, and its dtype."""
        name, dtype = ("philox_32", dtypes.uint32) if self._words == 1 else ("philox_64", _U64)
        return self._call(name, self._index, dtype, "" if self._shifted else "_whole"), dtype

    def halves(self) -> tuple[int, int]:
        """Return the nodes of the upper and the lower 64 bits of each element's four words."""
        builder = self._builder
        low = builder.call("add", (self._index, self._index), _U64, "{x} + {y}")
        high = builder.call("add", (low, builder.constant(1, _U64)), _U64, "{x} + {y}")
        return self._call("philox_64", high, _U64), self._call("philox_64", low, _U64)

    def _call(self, name: str, place: int, dtype: np.dtype, how: str = "") -> int:
        return self._builder.call(name, (place, *self._stream), dtype, f"{name}{how}({{x}}, {{y}}, {{z}}, {{w}})")


def numbers(key: int, jumps: int, position: int, words: int) -> tuple[bool, list[int]]:
    """Return whether a draw begins within a block, and the numbers that an expression of its words reads first."""
    block, rest = divmod(position, 4)
    stream = [block, jumps << 32, key]
    return rest > 0, [rest // words, *stream] if rest else stream


@cache
def raw(dtype: np.dtype, shifted: bool) -> FixedOperation:
    """Return the draw of words as they are: uint32."""
    builder = ExpressionBuilder()
    word, held = Words(builder, shifted, 1).word()
    assert held == dtype
    return FixedOperation("bytes", builder.build([word], [held]))


@cache
def unit(dtype: np.dtype, shifted: bool, scaled: bool) -> FixedOperation:
    """Return the draw of floats in [0, 1); if `scaled`, those of the computation, times a number, plus another one."""
    builder = ExpressionBuilder()
    wide = computed_in(dtype)
    words, bits = UNIT[wide if scaled else dtype]
    word, held = Words(builder, shifted, words).word()
    unused = builder.constant(8 * held.itemsize - bits, held)
    whole = builder.cast(builder.call("bitwise_right_shift", (word, unused), held, "{x} >> {y}"), held, wide)
    value = builder.call("multiply", (whole, builder.constant(0.5**bits, wide)), wide, "{x} * {y}")
    if scaled:
        value = builder.call("multiply", (value, builder.number(wide)), wide, "{x} * {y}")
        value = builder.call("add", (value, builder.number(wide)), wide, "{x} + {y}")
    return FixedOperation("random", builder.build([builder.cast(value, wide, dtype)], [dtype]))


@cache
def bounded(dtype: np.dtype, shifted: bool, wide: bool, arrays: bool) -> FixedOperation:
    """Return the draw of integers: ``low + (word * count >> 64)``; if `wide`, with words of 128 bits.

    `count` and `low` are numbers, or arrays. All arithmetic is modulo 2**64. A count of 0 stands for 2**64.
    """
    builder = ExpressionBuilder()
    source = Words(builder, shifted, 4 if wide else 2)
    upper, lower = source.halves() if wide else (source.word()[0], -1)
    count, low = (builder.array(_U64) if arrays else builder.number(_U64) for _ in range(2))
    value = builder.call("multiply_high", (upper, count), _U64, "tl.umulhi({x}, {y})")
    if wide:
        middle = builder.call("multiply", (upper, count), _U64, "{x} * {y}")
        carried = builder.call("multiply_high", (lower, count), _U64, "tl.umulhi({x}, {y})")
        total = builder.call("add", (middle, carried), _U64, "{x} + {y}")
        carry = builder.call("less", (total, middle), dtypes.bool_, "{x} < {y}")
        value = builder.call("add", (value, builder.cast(carry, dtypes.bool_, _U64)), _U64, "{x} + {y}")
        all_words = builder.call("equal", (count, builder.constant(0, _U64)), dtypes.bool_, "{x} == {y}")
        value = builder.call("where", (all_words, upper, value), _U64, "tl.where({x}, {y}, {z})")
    value = builder.call("add", (value, low), _U64, "{x} + {y}")
    carrier = dtype if dtype.kind in "ub" else dtypes.int64
    value = builder.cast(value, _U64, carrier)
    return FixedOperation("integers", builder.build([builder.cast(value, carrier, dtype)], [dtype]))
