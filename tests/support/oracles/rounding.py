"""Arithmetic and casts, exact and then rounded once: nearest even, toward zero, down, up, or nearest with ties away.

`rounded` is the definition, on one Fraction. The functions over arrays compute a result in ``longdouble`` together with
the sign of what that leaves out, found without error (Dekker, "A floating-point technique for extending the available
precision", 1971); since ``longdouble`` has two bits more than any format here, the pair decides every rounding. Where
it has no such bits, each element is a Fraction. tests/support/hard_to_round.py has the operands.

Modes are ``rn rz rm rp ra``; formats are those of tests/support/oracles/formats.py. A result beyond the largest value
is the infinity (or the format's substitute for it) or the largest value, by the mode; with `saturate` it is always the
largest value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from support.oracles.formats import FORMATS, dtype_of, kind_of, limits_of, width_of

Array = np.ndarray[Any, np.dtype[Any]]
Pair = Callable[..., tuple[Array, Array]]
Exact = Callable[..., "Fraction | float"]
MODES = ("rn", "rz", "rm", "rp", "ra")
ARITHMETIC_MODES = ("rn", "rz", "rm", "rp")
LONG = np.longdouble
WIDE = np.finfo(LONG).nmant >= 63
SCALE = "float8_e8m0fnu"


# --- one value ----------------------------------------------------------------------------------------------------


def rounded(value: Fraction | float, name: str, mode: str = "rn", saturate: bool = False) -> float:
    """A Fraction, or one of the floats inf, nan and -0.0, rounded to a format: the float of that value."""
    if name == SCALE:
        return _scale(value, mode, saturate)
    fmt = FORMATS[name]
    if isinstance(value, float) and (value == 0 or not math.isfinite(value)):
        if value != value:
            return 0.0 if fmt.beyond is None else math.nan
        if value == 0:
            return value if fmt.zeros == 2 else 0.0
        return _past(name, "rn", math.copysign(1, value), saturate)
    exact = Fraction(value)
    sign = -1 if exact < 0 else 1
    last = max(_exponent(abs(exact)) + 1 - fmt.precision, fmt.lowest) if exact else fmt.lowest
    steps = _whole(abs(exact) / Fraction(2) ** last, sign, mode) * Fraction(2) ** last
    if steps > Fraction(fmt.largest):
        return _past(name, mode, sign, saturate)
    return sign * float(steps) if steps or fmt.zeros == 2 else 0.0


def _whole(count: Fraction, sign: int, mode: str) -> int:
    """A count of steps as an integer."""
    if mode == "rn":
        return round(count)
    if mode == "ra":
        return math.floor(count + Fraction(1, 2))
    return math.ceil(count) if (mode, sign) in (("rm", -1), ("rp", 1)) else math.floor(count)


def _whole_number(value: float, mode: str) -> int:
    """A finite float as an integer."""
    sign = -1 if value < 0 else 1
    return sign * _whole(abs(Fraction(value)), sign, mode)


def _past(name: str, mode: str, sign: float, saturate: bool) -> float:
    """What a value past the largest becomes."""
    fmt = FORMATS[name]
    outward = mode in ("rn", "ra") or (mode, sign) in (("rm", -1), ("rp", 1))
    return math.copysign(fmt.largest if saturate or not outward or fmt.beyond is None else fmt.beyond, sign)


def _scale(value: Fraction | float, mode: str, saturate: bool) -> float:
    """float8_e8m0fnu: powers of two, 2**-127 to 2**127; no sign, no zero, nothing below the smallest; ties go up."""
    if value != value or value <= 0:
        return math.nan
    if value == math.inf:
        return 2.0**127 if saturate else math.nan
    exact = max(Fraction(value), Fraction(1, 2**127))
    exponent = _exponent(exact)
    up = {"rp": Fraction(2) ** exponent < exact, "rz": False, "rm": False}
    exponent += up.get(mode, exact >= Fraction(3, 2) * Fraction(2) ** exponent)
    largest = saturate or mode in ("rz", "rm")
    return 2.0**exponent if exponent <= 127 else 2.0**127 if largest else math.nan


def _exponent(value: Fraction) -> int:
    """The exponent of the power of two at or below a positive value."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent - (value < Fraction(2) ** exponent)


# --- arrays -------------------------------------------------------------------------------------------------------


def add(x: Array, y: Array, mode: str = "rn", flush_to_zero: bool = False) -> Array:
    return _computed(lambda x, y: _sum(x, y, mode), lambda x, y: Fraction(x) + Fraction(y), (x, y), mode, flush_to_zero)


def subtract(x: Array, y: Array, mode: str = "rn", flush_to_zero: bool = False) -> Array:
    return add(x, negated(y), mode, flush_to_zero)


def multiply(x: Array, y: Array, mode: str = "rn", flush_to_zero: bool = False) -> Array:
    return _computed(_product, lambda x, y: Fraction(x) * Fraction(y), (x, y), mode, flush_to_zero)


def divide(x: Array, y: Array, mode: str = "rn", flush_to_zero: bool = False) -> Array:
    return _computed(_quotient, lambda x, y: Fraction(x) / Fraction(y), (x, y), mode, flush_to_zero)


def sqrt(x: Array, mode: str = "rn", flush_to_zero: bool = False) -> Array:
    return _computed(_root, _exact_root, (x,), mode, flush_to_zero)


def fma(x: Array, y: Array, z: Array, mode: str = "rn", flush_to_zero: bool = False) -> Array:
    def fused(x: Array, y: Array, z: Array) -> tuple[Array, Array]:
        product, rest = _product(x, y)
        return _sum(product, z, mode, rest)

    return _computed(fused, _exact_fma, (x, y, z), mode, flush_to_zero)


def cast(x: Array, target: str, mode: str = "rn", saturate: bool = False) -> Array:
    """Any real dtype to any other. Integers wrap, or saturate.

    A float becomes an integer, clamped, in the modes "rni", "rmi", "rpi" and "rai", and in all others toward zero.
    """
    source = x.dtype.name
    if source == target:
        return x
    with np.errstate(all="ignore"):  # signalling NaNs
        exact = x if kind_of(source) != "float" else x.astype(np.float64)
    if target == "bool":
        return exact != 0
    if kind_of(target) == "int":
        return _integers(exact, target, saturate, mode[:2] if mode.endswith("i") else "rz")
    if target == SCALE or not WIDE:
        values = [value if isinstance(value, float) else Fraction(value) for value in exact.tolist()]
        return _stored(np.array([rounded(value, target, mode, saturate) for value in values], np.float64), target)
    with np.errstate(all="ignore"):
        return _round(exact.astype(LONG), np.zeros(1), target, mode, saturate)


def flushed(x: Array) -> Array:
    """Float32 with its denormals as zeros of their sign."""
    if x.dtype != np.float32:
        raise TypeError(f"float32 is flushed to zero, {x.dtype} is not")
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x)


def negated(x: Array) -> Array:
    """The same magnitudes with the other sign; of NaN and zero, too."""
    bits = x.view(f"u{x.itemsize}")
    return (bits ^ bits.dtype.type(1 << (8 * x.itemsize - 1))).view(x.dtype)


def differences(got: Array, want: Array) -> Array:
    """The positions where two arrays do not have the same bits; payloads of NaN, and float4's signs of zero, aside."""
    assert got.dtype == want.dtype
    bits = f"u{got.itemsize}"
    other = got.view(bits) != want.view(bits)
    if kind_of(got.dtype.name) == "float":
        with np.errstate(all="ignore"):  # signalling NaNs
            x, y = got.astype(np.float64), want.astype(np.float64)
        other &= ~(np.isnan(x) & np.isnan(y))
        if got.dtype.name == "float4_e2m1fn":  # where NaN becomes a zero of either sign
            other &= x != y
    return np.flatnonzero(other)


def _integers(x: Array, target: str, saturate: bool, mode: str) -> Array:
    low, high = limits_of(target)
    if x.dtype == np.float64:
        values = [0 if value != value else value for value in x.tolist()]
        found = [min(max(_whole_number(v, mode) if math.isfinite(v) else v, low), high) for v in values]
    elif saturate:
        found = [min(max(int(value), low), high) for value in x.tolist()]
    else:
        found = [(int(value) - low) % 2 ** width_of(target) + low for value in x.tolist()]
    return np.array([int(value) for value in found], dtype_of(target))


def _computed(pair: Pair, exact: Exact, operands: tuple[Array, ...], mode: str, flush_to_zero: bool) -> Array:
    name = operands[0].dtype.name
    operands = tuple(np.broadcast_arrays(*(flushed(x) if flush_to_zero else x for x in operands)))
    with np.errstate(all="ignore"):
        if WIDE:
            wide = [(x if name == "float64" else x.astype(np.float64)).astype(LONG) for x in operands]
            near, rest = pair(*wide)
            bounded = np.isfinite(near) & np.logical_and.reduce([np.isfinite(x) for x in wide])
            result = _round(near, np.where(bounded, np.sign(rest), 0), name, mode, False)
        else:
            rows = zip(*(x.astype(np.float64).tolist() for x in operands), strict=True)
            result = _stored(np.array([_by_fractions(exact, pair, row, name, mode) for row in rows]), name)
    return flushed(result) if flush_to_zero else result


def _by_fractions(exact: Exact, pair: Pair, row: tuple[float, ...], name: str, mode: str) -> float:
    """One result, which is left to IEEE arithmetic where it is zero, or where operands or it are no numbers."""
    try:
        value = exact(*row)
    except (ValueError, OverflowError, ZeroDivisionError):  # NaN, infinity; division by zero
        value = 0
    return rounded(value, name, mode) if value else float(pair(*map(np.float64, row))[0])


# --- a result and the sign of the rest ----------------------------------------------------------------------------


def _two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """The sum and what it leaves out (Knuth)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _two_product(x: Array, y: Array) -> tuple[Array, Array]:
    """The product and what it leaves out (Dekker, Veltkamp)."""
    product = x * y
    (x_high, x_low), (y_high, y_low) = _halves(x), _halves(y)
    return product, ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


def _halves(x: Array) -> tuple[Array, Array]:
    scaled = x * LONG(2 ** ((np.finfo(LONG).nmant + 2) // 2) + 1)
    high = scaled - (scaled - x)
    return high, x - high


def _sum(x: Array, y: Array, mode: str, rest: Array | None = None) -> tuple[Array, Array]:
    """``x + y``, and `rest` far below x, if there is one. Unlike zeros and what cancels make -0.0 when rounded down."""
    total, error = _two_sum(x, y)
    if rest is not None:
        total, error = _two_sum(total, error + np.where(np.isfinite(rest), rest, 0))
        total = np.where(np.isfinite(x + y), total, x + y)
    cancels = (total == 0) & (error == 0)
    zero = np.where(np.signbit(x) == np.signbit(y), np.copysign(LONG(0), x), LONG(-0.0 if mode == "rm" else 0.0))
    return np.where(cancels, zero, total), error


def _product(x: Array, y: Array) -> tuple[Array, Array]:
    return _two_product(x, y)


def _quotient(x: Array, y: Array) -> tuple[Array, Array]:
    quotient = x / y
    product, error = _two_product(quotient, y)
    return quotient, ((x - product) - error) * np.sign(y)


def _root(x: Array) -> tuple[Array, Array]:
    root = np.sqrt(x)
    square, error = _two_product(root, root)
    return root, (x - square) - error


def _round(near: Array, rest: Array, name: str, mode: str, saturate: bool) -> Array:
    """`near` and a trifle of the sign of `rest`, rounded to a format."""
    fmt, negative = FORMATS[name], np.signbit(near)
    trifle = np.where(negative, -rest, rest)
    fraction, exponent = np.frexp(np.where(np.isfinite(near), np.abs(near), 0))
    exponent = np.where((fraction == 0.5) & (trifle < 0), exponent - 1, exponent)  # just below a power of two
    last = np.where(fraction == 0, fmt.lowest, np.maximum(exponent - fmt.precision, fmt.lowest)).astype(np.int32)
    count = np.ldexp(np.where(np.isfinite(near), np.abs(near), 0), -last)
    whole = np.floor(count)
    part = count - whole
    borrow = (part == 0) & (trifle < 0)
    whole, part = np.where(borrow, whole - 1, whole), np.where(borrow, LONG(0.75), part)
    to_half = np.where(part == 0.5, np.where(borrow, 1, trifle), np.sign(part - LONG(0.5)))
    inexact = (part != 0) | (trifle != 0)
    outward = {"rm": negative, "rp": ~negative}.get(mode, np.zeros(1, np.bool_))
    up = {
        "rn": (to_half > 0) | ((to_half == 0) & (np.fmod(whole, 2) == 1)),
        "ra": to_half >= 0,
    }.get(mode, inexact & outward)
    size = np.ldexp(whole + up, last)
    beyond = LONG(fmt.largest if saturate or fmt.beyond is None else fmt.beyond)
    past = np.where((mode in ("rn", "ra")) | outward, beyond, LONG(fmt.largest))
    size = np.where(size > fmt.largest, past, size)
    size = np.where(np.isinf(near), beyond, np.where(np.isnan(near), LONG(0 if fmt.beyond is None else np.nan), size))
    found = np.copysign(size, near)
    return _stored((np.where(found == 0, 0, found) if fmt.zeros == 1 else found).astype(np.float64), name)


def _stored(values: Array, name: str) -> Array:
    """Values that a format holds, in its dtype."""
    with np.errstate(all="ignore"):
        return values.astype(dtype_of(name))


# --- results as Fractions -----------------------------------------------------------------------------------------


def _exact_fma(x: float, y: float, z: float) -> Fraction | float:
    if math.isfinite(x) and math.isfinite(y) and not math.isfinite(z):
        return z
    return Fraction(x) * Fraction(y) + Fraction(z)


def _exact_root(x: float) -> Fraction | float:
    """A root to far more bits than any format has, and one bit more that says whether it is exact."""
    value = Fraction(x)
    if value <= 0:
        return x if x == 0 else math.nan
    shift = 2 * (600 + value.denominator.bit_length())
    square = (value.numerator << shift) // value.denominator
    root = math.isqrt(square)
    return Fraction(2 * root + (root * root != square), 2 << (shift // 2))
