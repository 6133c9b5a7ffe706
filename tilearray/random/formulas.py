"""Formulas as expressions: values with operators, and the functions that distributions need.

A function here consists of sums, products, quotients, square roots and operations on bits, each correctly rounded on
every device, in one order. So its results have the same bits everywhere, which those of a device's own logarithm do
not. The polynomials are minimax approximations of relative error, found by Remez exchange with 40 digits and rounded to
the dtype; the numbers after their names are those errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.engine.expression import ExpressionBuilder

_INTEGER = {dtypes.float32: dtypes.int32, dtypes.float64: dtypes.int64}


class Value(NamedTuple):
    """A node of an expression and its dtype. Its operators add nodes; Python numbers become constants of its dtype.

    Examples
    --------
    >>> builder = ExpressionBuilder()
    >>> x = Value(builder, builder.array(np.dtype("float32")), np.dtype("float32"))
    >>> y = x * 2.0 + x
    >>> builder.build([y.node], [y.dtype]).nodes[-1][:3]
    ('call', 'add', (2, 0))
    """

    builder: ExpressionBuilder
    node: int
    dtype: np.dtype

    def __add__(self, other: Any) -> Value:  # type: ignore[override]
        return self._call("add", "{x} + {y}", other)

    def __sub__(self, other: Any) -> Value:
        return self._call("subtract", "{x} - {y}", other)

    def __mul__(self, other: Any) -> Value:  # type: ignore[override]
        return self._call("multiply", "{x} * {y}", other)

    def __truediv__(self, other: Any) -> Value:
        return self._call("divide", "tl.math.div_rn({x}, {y})" if self.dtype == dtypes.float32 else "{x} / {y}", other)

    def __and__(self, other: Any) -> Value:
        return self._call("bitwise_and", "{x} & {y}", other)

    def __or__(self, other: Any) -> Value:
        return self._call("bitwise_or", "{x} | {y}", other)

    def __xor__(self, other: Any) -> Value:
        return self._call("bitwise_xor", "{x} ^ {y}", other)

    def __lshift__(self, bits: int) -> Value:
        return self._call("bitwise_left_shift", "{x} << {y}", bits)

    def __rshift__(self, bits: int) -> Value:
        return self._call("bitwise_right_shift", "{x} >> {y}", bits)

    def __lt__(self, other: Any) -> Value:  # type: ignore[override]
        return self._call("less", "{x} < {y}", other, dtypes.bool_)

    def __le__(self, other: Any) -> Value:  # type: ignore[override]
        return self._call("less_equal", "{x} <= {y}", other, dtypes.bool_)

    def equals(self, other: Any) -> Value:
        """Return whether two values are equal."""
        return self._call("equal", "{x} == {y}", other, dtypes.bool_)

    def select(self, yes: Value, no: Any) -> Value:
        """Return `yes` where this truth holds, else `no`."""
        nodes = (self.node, yes.node, yes.of(no))
        node = self.builder.call("where", nodes, yes.dtype, "tl.where({x}, {y}, {z})")
        return Value(self.builder, node, yes.dtype)

    def sqrt(self) -> Value:
        """Return the square root, rounded once."""
        name = "tl.sqrt_rn" if self.dtype == dtypes.float32 else "tl.sqrt"
        return self.unary("sqrt", name + "({x})")

    def sqrt_of_normal(self) -> Value:
        """Return the square root, rounded once, of a number within [2**-100, 2**100]."""
        return self.unary("sqrt", "sqrt_of_normal({x})") if self.dtype == dtypes.float32 else self.sqrt()

    def at_least(self, least: float) -> Value:
        """Return the larger one of this number and a constant."""
        return self._call("maximum", "tl.maximum({x}, {y})", least)

    def floor(self) -> Value:
        """Return the largest integer that is not larger."""
        return self.unary("floor", "tl.math.floor({x})")

    def to(self, dtype: np.dtype) -> Value:
        """Return the value in another dtype; integers wrap, floats are rounded once."""
        return Value(self.builder, self.builder.cast(self.node, self.dtype, dtype), dtype)

    def bits(self, dtype: np.dtype) -> Value:
        """Return the bits as another dtype of the same size."""
        template = f"{{x}}.to(tl.{dtype.name}, bitcast=True)"
        return Value(self.builder, self.builder.call("bitcast", (self.node,), dtype, template), dtype)

    def with_sign_of(self, word: Value) -> Value:
        """Return the float, negated where the upper bit of a word of its size is set."""
        bits = self.bits(word.dtype) ^ (word & 2 ** (8 * word.dtype.itemsize - 1))
        return bits.bits(self.dtype)

    def unary(self, name: str, triton: str) -> Value:
        """Return a function of the value, in its dtype."""
        return Value(self.builder, self.builder.call(name, (self.node,), self.dtype, triton), self.dtype)

    def constant(self, number: float) -> Value:
        """Return a number of the dtype."""
        return Value(self.builder, self.builder.constant(number, self.dtype), self.dtype)

    def of(self, other: Any) -> int:
        """Return the node of a value, or of a number in this dtype."""
        return other.node if isinstance(other, Value) else self.builder.constant(other, self.dtype)

    def _call(self, name: str, triton: str, other: Any, dtype: np.dtype | None = None) -> Value:
        found = dtype or self.dtype
        return Value(self.builder, self.builder.call(name, (self.node, self.of(other)), found, triton), found)


class _Format(NamedTuple):
    """A float's bits below the exponent, and those of the square root of 1/2."""

    mantissa: int
    root_of_half: int


_FORMATS = {dtypes.float32: _Format(23, 0x3F3504F3), dtypes.float64: _Format(52, 0x3FE6A09E667F3BCD)}
_LN2 = 0.6931471805599453
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
"""ln 2 in two parts: the first one has 32 bits, so its products with exponents are exact in float64."""

LOG_32 = (
    *(0.3333379030227661, -0.250017374753952, 0.19967976212501526, -0.1656617969274521),
    *(0.1485057771205902, -0.14342448115348816, 0.0898665189743042),
)
"""(ln(1 + f) - f + f * f / 2) / f**3 for 1 + f within [sqrt(1/2), sqrt(2)]: 5e-8 of the logarithm."""
LOG_64 = (
    *(0.6666666666666734, 0.3999999999941449, 0.28571428742422034, 0.2222219857019954),
    *(0.18183564460722826, 0.1531404750811025, 0.14795977001843855),
)
"""(2 atanh(s) - 2 s) / s**3 in s**2, with s = f / (2 + f): 3e-18."""
SINE = {
    dtypes.float32: (1.5707963705062866, -0.6459634900093079, 0.07968022674322128, -0.0046021766029298306),
    dtypes.float64: (
        *(1.5707963267948966, -0.6459640975062443, 0.07969262624604308, -0.004681754132342277),
        *(0.0001604411507521794, -3.598643388370852e-06, 5.6339384857538825e-08),
    ),
}
"""sin(pi / 2 * t) / t in t**2, for t within [-1/2, 1/2]: 5e-9, 5e-18."""
COSINE = {
    dtypes.float32: (1.0, -1.2336976528167725, 0.2536032199859619, -0.020417282357811928),
    dtypes.float64: (
        *(1.0, -1.2337005501361697, 0.2536695079010467, -0.020863480763311227, 0.0009192602741833652),
        *(-2.520203677169169e-05, 4.710609762656704e-07, -6.321260979616036e-09),
    ),
}
"""cos(pi / 2 * t) in t**2, for t within [-1/2, 1/2]: 4e-8, 3e-20."""


_LN2_HIGH_PART = {dtypes.float32: 0.693145751953125, dtypes.float64: _LN2_HIGH}
_EXP = {
    dtypes.float32: (
        -110.0,
        _LN2 - 0.693145751953125,
        (0.5, 0.16666576266288757, 0.04166637361049652, 0.008363175205886364, 0.001394110033288598),
    ),
    dtypes.float64: (
        -760.0,
        _LN2_LOW,
        (
            *(0.5, 0.1666666666666667, 0.041666666666666685, 0.008333333333326141, 0.0013888888888874444),
            *(0.00019841269874801024, 2.480158734724121e-05, 2.7557255424913014e-06, 2.755725299978983e-07),
            *(2.510520675685458e-08, 2.0921562384336724e-09),
        ),
    ),
}
"""For exp: the least argument, the rest of ln 2, and (exp(r) - 1 - r) / r**2 for r within ln 2 / 2: 7e-9, 2e-19."""


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """Return ``c[0] + x * (c[1] + x * ...)``."""
    *others, last = coefficients
    found = x * last + others.pop()
    while others:
        found = found * x + others.pop()
    return found


def log(x: Value, times: float = 1.0, shift: int = 0) -> Value:
    """Return the natural logarithm of ``x * 2**shift``, times a power of two, for a normal number x above 0.

    x is 2**e times a mantissa within [sqrt(1/2), sqrt(2)]. Near 1 the result is as accurate as elsewhere.
    """
    mantissa, root = _FORMATS[x.dtype]
    above = x.bits(_INTEGER[x.dtype]) - (root - (shift << mantissa))
    e = (above >> mantissa).to(x.dtype)
    f = ((above & (1 << mantissa) - 1) + root).bits(x.dtype) - 1.0
    if x.dtype == dtypes.float32:
        return f * polynomial(f, [times * number for number in (1.0, -0.5, *LOG_32)]) + e * (_LN2 * times)
    s = f / (f + 2.0)
    square, half = s * s, f * f * 0.5
    rest = s * (half + square * polynomial(square, LOG_64))  # f - half + rest is the logarithm: 2 s = f - s f
    return (e * _LN2_HIGH - ((half - (rest + e * _LN2_LOW)) - f)) * times


def exp(x: Value) -> Value:
    """Return the exponential of a number below the logarithm of the largest one; 0 if it is below all of them.

    x is e * ln 2 plus a rest within ln 2 / 2 of 0. A result below the normal numbers is rounded twice.
    """
    mantissa, _ = _FORMATS[x.dtype]
    integer, (least, low, coefficients) = _INTEGER[x.dtype], _EXP[x.dtype]
    x = (x < least).select(x.constant(least), x)
    e = (x * (1 / _LN2) + 0.5).floor()
    rest = x - e * _LN2_HIGH_PART[x.dtype] - e * low
    found = polynomial(rest, coefficients) * rest * rest + rest + 1.0
    bias = (1 << x.dtype.itemsize * 8 - 2 - mantissa) - 1
    half = e.to(integer) >> 1
    for part in (half, e.to(integer) - half):
        found = found * ((part + bias) << mantissa).bits(x.dtype)
    return found


def log1p(x: Value) -> Value:
    """Return the logarithm of 1 + x, for x above -1, as accurate near 0 as elsewhere."""
    sum_ = x + 1.0
    rounded = sum_ - 1.0
    ratio = x / rounded.equals(0.0).select(x.constant(1.0), rounded)
    return rounded.equals(0.0).select(x, log(sum_) * ratio)


def sine_and_cosine(rest: Value) -> tuple[Value, Value]:
    """Return the sine and the cosine of an angle within an eighth of a turn, given in quarters of a turn."""
    square = rest * rest
    return rest * polynomial(square, SINE[rest.dtype]), polynomial(square, COSINE[rest.dtype])
