"""Operations on Python's numbers: rounding, signs, parts, fused products, and special functions by mpmath.

Floats come and go as Python's float64, or as Fractions where no float64 holds the result. A function that works in the
dtype itself is given the dtype's name as its last argument.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from support.oracles.formats import FORMATS, nearest, step

# --- rounding and signs -------------------------------------------------------------------------------------------


def integral(function: Callable[[float], int]) -> Callable[[float], float]:
    """A rounding to integers that keeps infinities, NaN and the sign of zeros."""
    return lambda x: math.copysign(function(x), x) if math.isfinite(x) else x


def by_parts(function: Callable[..., float]) -> Callable[..., complex]:
    """A function of the first operand's parts, and of the real parts of all others."""
    return lambda x, *more: complex(*(function(part, *(y.real for y in more)) for part in (x.real, x.imag)))


def sign(x: float) -> float:
    return x if x != x else float((x > 0) - (x < 0))


def heaviside(x: float, y: float) -> float:
    return x if x != x else y if x == 0 else float(x > 0)


def next_after(x: float, y: float, name: str) -> float:
    """The next value of a format, by its last place; float64's is Python's."""
    if x != x or y != y or x == y or name == "float64":
        return math.nan if x != x or y != y else math.nextafter(x, y)
    largest = FORMATS[name].largest
    if x == 0:
        return math.copysign(2.0 ** FORMATS[name].lowest, y)
    if math.isinf(x):
        return math.copysign(largest, x)
    last = 2.0 ** int(step(np.float64(x), name))
    if (y > x) == (x > 0):
        return math.copysign(abs(x) + last if abs(x) < largest else math.inf, x)
    below = abs(x) - last / 2  # of a power of two the lower neighbour is half as far
    return math.copysign(below if nearest([below], name)[0] == below else abs(x) - last, x)


# --- significand and exponent -------------------------------------------------------------------------------------


def scaled(x: float, n: int) -> float:
    try:
        return math.ldexp(x, n)
    except OverflowError:
        return math.copysign(math.inf, x)


def exponent(x: float) -> int:
    return math.frexp(x)[1] if math.isfinite(x) else 0


# --- arithmetic ---------------------------------------------------------------------------------------------------


def fused(x: float, y: float, z: float) -> float | Fraction:
    """``x * y + z``, exactly."""
    if not (math.isfinite(x) and math.isfinite(y)):
        return x * y + z
    if not math.isfinite(z):
        return z
    return Fraction(x) * Fraction(y) + Fraction(z) or x * y + z


def left_toward_zero(x: float, y: float) -> float:
    return math.nan if y == 0 or math.isinf(x) or x != x or y != y else math.fmod(x, y)


def close(x: Any, y: Any, relative: Any, absolute: Any) -> bool:
    near = magnitude(x - y) <= absolute.real + relative.real * magnitude(y)
    return x == y or (near and magnitude(x) < math.inf and magnitude(y) < math.inf)


def at_the_limit(x: Any, y: Any, relative: Any, absolute: Any) -> bool:
    """Whether the difference is so near to the tolerance that its rounding decides; or it may overflow."""
    difference, limit = magnitude(x - y), absolute.real + relative.real * magnitude(y)
    if not (math.isfinite(difference) and math.isfinite(limit)):
        return all(magnitude(value) < math.inf for value in (x, y, relative, absolute))
    return abs(difference - limit) <= 1e-6 * (difference + abs(limit)) + 1e-44 or max(difference, limit) > 1e38


def magnitude(x: Any) -> Any:
    """The absolute value; of a complex number that is too large infinity, where Python has an error."""
    return math.hypot(x.real, x.imag) if isinstance(x, complex) else abs(x)


def replaced(x: float, nan: float, positive: float, negative: float) -> float:
    return nan if x != x else {math.inf: positive, -math.inf: negative}.get(x, x)


# --- special functions --------------------------------------------------------------------------------------------


@functools.cache
def mpmath() -> Any:
    """The module; where it is not installed, the test that asks for it is skipped."""
    return pytest.importorskip("mpmath", reason="mpmath is not installed: the extra `test` has it")


def by_mpmath(function: Callable[[Any], Any], at_zero: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    """A function in 100 bits, rounded to float64; it raises ValueError where there is no value. mpmath has no -0."""

    @functools.cache
    def one(text: str) -> float:  # a text, for 0.0 and -0.0 are equal
        x = float.fromhex(text)
        with mpmath().workprec(100):
            try:
                return float(function(mpmath().mpf(x))) if x and x == x else at_zero(x) if x == 0 else x
            except ValueError:
                return math.nan

    return lambda x: np.array([one(value.hex()) for value in x.astype(np.float64).tolist()])


def sinc(x: Any) -> Any:
    return mpmath().sinpi(x) / (mpmath().pi * x) if mpmath().isfinite(x) else math.nan


def erf(x: Any) -> Any:
    return mpmath().erf(x)


def erfc(x: Any) -> Any:
    return mpmath().erfc(x) if x < 100 else 0.0


def erfinv(x: Any) -> Any:
    return x * math.inf if abs(x) == 1 else mpmath().erfinv(x)


def lgamma(x: Any) -> Any:
    pole = x < 0 and mpmath().isint(x)
    return math.inf if pole or mpmath().isinf(x) else mpmath().re(mpmath().loggamma(x))


def gamma(x: Any) -> Any:
    return math.inf if x > 1e6 else mpmath().gamma(x) if x > -1e6 else math.nan


def ndtr(x: Any) -> Any:
    return mpmath().ncdf(x) if abs(x) < 100 else float(x > 0)


def expit(x: Any) -> Any:
    return 1 / (1 + mpmath().exp(-x)) if x > -1e4 else 0.0


def logit(x: Any) -> Any:
    if not 0 <= x <= 1:
        return math.nan
    return mpmath().log(x / (1 - x)) if x < 1 else math.inf


def entr(x: Any) -> Any:
    return -math.inf if x < 0 or x == math.inf else -x * mpmath().log(x)


def times(logarithm: Callable[..., Any]) -> Callable[..., Any]:
    """A product with a logarithm, in which 0 counts more than an infinity or the logarithm of a negative number."""
    return lambda x, y: np.where((x == 0) & ~np.isnan(y), x.dtype.type(0), x * logarithm(y))
