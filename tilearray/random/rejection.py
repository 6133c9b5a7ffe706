"""Distributions that reject: expressions of one attempt.

An attempt of an element reads the words of its logical index and of the number of the attempt, which is a part of the
counter. It gives a number, or -1 if it rejects. Attempts are repeated for the elements that were rejected, so a result
does not depend on how many elements a draw has, nor on the device.

`gamma` follows Marsaglia and Tsang ("A simple method for generating gamma variables", 2000). `poisson` and `binomial`
invert their distribution functions if the mean is below 10, else they follow Hörmann's PTRS and BTRS ("The transformed
rejection method for generating Poisson random variables", "The generation of binomial random variates", 1993). They
compare with logarithms of probabilities in Loader's form ("Fast and accurate computation of binomial probabilities",
2000), which loses no digits if parameters are large.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from tilearray import dtypes
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.random.draws import Words, log_of_word, normal_of
from tilearray.random.formulas import Value, exp, log, log1p, polynomial

REJECTED = -1.0
SMALL = 10.0
"""The mean below which discrete distributions are inverted."""
STEPS = 64
"""The largest number that an inversion gives: a mean of 10 exceeds it with a probability below 1e-29."""

_F64 = dtypes.float64

# ln k! - k ln k + k for k < 10; Stirling's series is accurate from there on
_SMALL_FACTORIALS = (
    *(0.0, 1.0, 1.3068528194400546, 1.4959226032237258, 1.6328763858683832),
    *(1.7403021806115442, 1.828694396641771, 1.9037903176782212, 1.9690705693065629, 2.0268062840554952),
)
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
_TWO_PI = 6.283185307179586


@cache
def gamma(dtype: np.dtype, places: bool, arrays: bool) -> FixedOperation:
    """Return an attempt of standard gamma numbers in float32 or float64. Its parameter is the shape."""
    words = Words(ExpressionBuilder(), False, 4 if dtype == dtypes.float32 else 8, places)
    (shape,) = _parameters(words, 1, dtype, arrays)
    first, second, third, fourth = words.quarters()
    is_low = shape < 1.0
    d = is_low.select(shape + 1.0, shape) - 1 / 3
    x = normal_of(first, second, words.constant(1, second.dtype), dtype)
    root = x / (d * 9.0).sqrt() + 1.0
    v = root * root * root
    inside = (v.constant(0.0) < v).select(v, v.constant(1.0))
    accepts = log_of_word(third, dtype) < x * x * 0.5 + d - d * inside + d * log(inside)
    power = log_of_word(fourth, dtype) / is_low.select(shape, shape.constant(1.0))
    value = d * v * is_low.select(exp(power), power.constant(1.0))
    value = ((root.constant(0.0) < root) & accepts).select(value, REJECTED)
    return words.operation("gamma", shape.equals(0.0).select(shape, value))


@cache
def poisson(places: bool, arrays: bool, branches: str) -> FixedOperation:
    """Return an attempt of Poisson numbers in float64. Its parameter is the mean.

    `branches` is "small" or "large" if all means are below `SMALL` or none is, else "both".
    """
    words = Words(ExpressionBuilder(), False, 4, places)
    (mean,) = _parameters(words, 1, _F64, arrays)
    u, v = (_open(word) for word in reversed(words.halves()))
    value = _chosen(branches, mean < SMALL, lambda: _small_poisson(mean, u), lambda: _large_poisson(mean, u, v))
    return words.operation("poisson", value)


def _chosen(branches: str, is_small: Value, small: Callable[[], Value], large: Callable[[], Value]) -> Value:
    if branches == "both":
        return is_small.select(small(), large())
    return small() if branches == "small" else large()


def _small_poisson(mean: Value, u: Value) -> Value:
    mean = (mean < SMALL).select(mean, mean.constant(SMALL))
    return _inverted(u, exp(mean * -1.0), lambda k: mean * (1 / k))


def _large_poisson(mean: Value, u: Value, v: Value) -> Value:
    mean = (mean < SMALL).select(mean.constant(SMALL), mean)
    b = mean.sqrt() * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    shift = u - 0.5
    us = shift.constant(0.5) - abs_of(shift)
    k = ((a * 2.0 / us + b) * shift + mean + 0.43).floor()
    fits = b.constant(0.0) <= k
    number = fits.select(k, k.constant(0.0))
    bound = (deviance(number, mean) + stirling(number)) * -1.0
    inverse = b.constant(1.1328) / (b - 3.4) + 1.1239
    slow = log(v) + log(inverse) - log(a / (us * us) + b) <= bound
    quick = (us.constant(0.07) <= us) & (v <= v.constant(0.9277) - v.constant(3.6224) / (b - 2.0))
    return (fits & (quick | slow)).select(k, REJECTED)


@cache
def binomial(places: bool, arrays: bool, branches: str) -> FixedOperation:
    """Return an attempt of binomial numbers in float64. Its parameters are the number of trials and a probability.

    `branches` is as for `poisson`, with the mean of the less probable outcome.
    """
    words = Words(ExpressionBuilder(), False, 4, places)
    n, p = _parameters(words, 2, _F64, arrays)
    u, v = (_open(word) for word in reversed(words.halves()))
    flips = p.constant(0.5) < p
    p = flips.select(p.constant(1.0) - p, p)
    value = _chosen(branches, n * p < SMALL, lambda: _small_binomial(n, p, u), lambda: _large_binomial(n, p, u, v))
    flipped = value.equals(REJECTED).select(value, n - value)
    return words.operation("binomial", flips.select(flipped, value))


def _small_binomial(n: Value, p: Value, u: Value) -> Value:
    is_small = n * p < SMALL
    n = is_small.select(n, n.constant(1.0))
    odds = p / (p.constant(1.0) - p)
    found = _inverted(u, exp(n * log1p(p * -1.0)), lambda k: (n - (k - 1.0)) * odds * (1 / k))
    return (n < found).select(n, found)


def _large_binomial(n: Value, p: Value, u: Value, v: Value) -> Value:
    is_small = n * p < SMALL
    n, p = is_small.select(n.constant(40.0), n), is_small.select(p.constant(0.5), p)
    q = p.constant(1.0) - p
    spread = (n * p * q).sqrt()
    b = spread * 2.53 + 1.15
    a = b * 0.0248 + p * 0.01 - 0.0873
    shift = u - 0.5
    us = shift.constant(0.5) - abs_of(shift)
    k = ((a * 2.0 / us + b) * shift + n * p + 0.5).floor()
    fits = (k.constant(0.0) <= k) & (k <= n)
    number = fits.select(k, n.constant(0.0))
    mode = ((n + 1.0) * p).floor()
    alpha = (b.constant(5.1) / b + 2.83) * spread
    slow = log(v * alpha / (a / (us * us) + b)) <= _chance(number, n, p, q) - _chance(mode, n, p, q)
    quick = (us.constant(0.07) <= us) & (v <= v.constant(0.92) - v.constant(4.2) / b)
    return (fits & (quick | slow)).select(k, REJECTED)


def _chance(k: Value, n: Value, p: Value, q: Value) -> Value:
    """Return the logarithm of a binomial probability, but for a part that depends on n alone."""
    rest = n - k
    return (deviance(k, n * p) + deviance(rest, n * q) + stirling(k) + stirling(rest)) * -1.0


def deviance(k: Value, mean: Value) -> Value:
    """Return ``k * log(k / mean) + mean - k``; for k = 0 the mean."""
    is_zero = k.equals(0.0)
    safe = is_zero.select(mean, k)
    distance = safe - mean
    return is_zero.select(mean, safe * log1p(distance / mean) - distance)


def stirling(k: Value) -> Value:
    """Return ``log(k!) - k * log(k) + k`` of whole numbers."""
    is_small = k < 10.0
    large = is_small.select(k.constant(10.0), k)
    inverse = large.constant(1.0) / large
    found = log(large * _TWO_PI) * 0.5 + polynomial(inverse * inverse, _STIRLING) * inverse
    for number, exact in enumerate(_SMALL_FACTORIALS):
        found = k.equals(float(number)).select(k.constant(exact), found)
    return found


def abs_of(x: Value) -> Value:
    """Return the absolute value."""
    return (x < 0.0).select(x * -1.0, x)


def _inverted(u: Value, first: Value, ratio: Callable[[float], Value]) -> Value:
    """Return the first number whose distribution function exceeds `u`, from P(0) and P(k) / P(k - 1)."""
    chance, below, found = first, first, u.constant(0.0)
    for k in range(1, STEPS + 1):
        found = (below < u).select(found.constant(float(k)), found)
        chance = chance * ratio(float(k))
        below = below + chance
    return found


def _parameters(words: Words, count: int, dtype: np.dtype, arrays: bool) -> list[Value]:
    return [words.array(dtype) if arrays else words.number(dtype) for _ in range(count)]


def _open(word: Value) -> Value:
    """Return a word of 64 bits as a float64 in (0, 1): the middle of one of 2**52 intervals."""
    return ((word >> 12).to(_F64) + 0.5) * 0.5**52
