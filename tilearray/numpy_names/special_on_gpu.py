"""Functions of `scipy.special` that are no ops, for Arrays on a GPU: float64 from operations of ours, then rounded.

Each formula holds to about 1e-11 of its result, and a small share of a gamma function to 1e-15 of the whole. Constants
are Wichura's for `ndtri` (AS 241), Bernoulli's numbers for `zeta`, and Temme's series for incomplete gamma functions of
large parameters (DLMF 8.12). Sums without a fixed number of terms run until no element changes, and the host waits for
that answer once in 32 steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilearray.arrays.fills import arange, ones_like
from tilearray.arrays.fusion.fuse import fuse
from tilearray.functions.digamma import digamma
from tilearray.functions.manipulation import expand_dims
from tilearray.functions.reductions import any as any_of
from tilearray.functions.reductions import sum as sum_of
from tilearray.functions.searching import where
from tilearray.ops.arithmetic import abs, divide, less
from tilearray.ops.elementary import erfc, exp, gamma, lgamma, log, log1p, ndtr, sin, sqrt
from tilearray.ops.number_parts import floor, isfinite, isnan, sign


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """c0 + c1 x + c2 x**2 + ..."""
    found: Any = coefficients[-1]
    for factor in reversed(coefficients[:-1]):
        found = found * x + factor
    return found


# --- the normal distribution -----------------------------------------------------------------------------------------

_NEAR = (
    (*(3.387132872796366608, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125),
     *(45921.953931549871457, 67265.770927008700853, 33430.575583588128105, 2509.0809287301226727)),
    (*(1.0, 42.313330701600911252, 687.1870074920579083, 5394.1960214247511077, 21213.794301586595867),
     *(39307.89580009271061, 28729.085735721942674, 5226.495278852854561)),
)  # fmt: skip
_TAIL = (
    (*(1.42343711074968357734, 4.6303378461565452959, 5.7694972214606914055, 3.64784832476320460504),
     *(1.27045825245236838258, 0.24178072517745061177, 0.0227238449892691845833, 7.7454501427834140764e-4)),
    (*(1.0, 2.05319162663775882187, 1.6763848301838038494, 0.68976733498510000455, 0.14810397642748007459),
     *(0.0151986665636164571966, 5.475938084995344946e-4, 1.05075007164441684324e-9)),
)  # fmt: skip
_FAR = (
    (*(6.6579046435011037772, 5.4637849111641143699, 1.7848265399172913358, 0.29656057182850489123),
     *(0.026532189526576123093, 0.0012426609473880784386, 2.71155556874348757815e-5, 2.01033439929228813265e-7)),
    (*(1.0, 0.59983220655588793769, 0.13692988092273580531, 0.0148753612908506148525, 7.868691311456132591e-4),
     *(1.8463183175100546818e-5, 1.4215117583164458887e-7, 2.04426310338993978564e-15)),
)  # fmt: skip


@fuse
def ndtri(p: Any) -> Any:
    """The x whose `ndtr` is p."""

    def ratio(x: Any, both: Any) -> Any:
        return polynomial(x, both[0]) / polynomial(x, both[1])

    centred = p - 0.5
    less_likely = where(less(centred, 0), p, 1 - p)
    depth = sqrt(-log(less_likely))
    tail = where(depth <= 5, ratio(depth - 1.6, _TAIL), ratio(depth - 5, _FAR)) * sign(centred)
    found = where(abs(centred) <= 0.425, centred * ratio(0.180625 - centred * centred, _NEAR), tail)
    return where(p == 0, -math.inf, where(p == 1, math.inf, found))


@fuse
def log_ndtr(x: Any) -> Any:
    """The logarithm of `ndtr`; below -20 by its asymptotic series."""
    square = divide(1, x * x)
    series: Any = 0
    for k in range(19, 0, -2):
        series = (series + 1) * square * -k
    far = x * (x / -2) - log(-x) - 0.5 * math.log(2 * math.pi) + log1p(series)
    return where(x < -20, far, where(x < 0, log(ndtr(x)), log1p(-ndtr(-x))))


# --- modified Bessel functions ---------------------------------------------------------------------------------------


def _bessel(x: Any, order: int) -> Any:
    """exp(-abs(x)) times the function of an order: its power series, beyond 30 the asymptotic one."""
    size = abs(x)
    small = where(size <= 30, size, 1.0)
    quarter, near = small * small / 4, 1.0
    for k in range(70, 0, -1):
        near = 1 + near * quarter * (1 / (k * (k + order)))
    near = near * exp(-small) * (small / 2 if order else 1)
    large = where(size <= 30, 30.0, size)
    far: Any = 1.0
    for k in range(25, 0, -1):
        far = 1 - far * (4 * order * order - (2 * k - 1) ** 2) / (8 * k) / large
    found = where(size <= 30, near, far / sqrt(2 * math.pi * large))
    found = where(isnan(x), x, found)
    return found * sign(x) if order else found


@fuse
def i0e(x: Any) -> Any:
    """exp(-abs(x)) `i0`."""
    return _bessel(x, 0)


@fuse
def i1e(x: Any) -> Any:
    """exp(-abs(x)) `i1`."""
    return _bessel(x, 1)


@fuse
def i0(x: Any) -> Any:
    """The modified Bessel function of order 0."""
    half = exp(abs(x) / 2)
    return where(half == math.inf, math.inf, i0e(x) * half * half)


@fuse
def i1(x: Any) -> Any:
    """The modified Bessel function of order 1."""
    half = exp(abs(x) / 2)
    return where(half == math.inf, math.inf * sign(x), i1e(x) * half * half)


# --- gamma and zeta --------------------------------------------------------------------------------------------------

_TERMS = 12
_MIRRORED = -0.5
"""Below this, Riemann's function is found from its mirrored value; closer to 0, 1 - x would round."""
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


@fuse
def psi(x: Any) -> Any:
    """The derivative of `gammaln`."""
    return where(x == 0, divide(-1, x), where(x == math.inf, x, digamma(x)))


def zeta(x: Any, q: Any = None) -> Any:
    """The sum of ``(k + q) ** -x`` over k; without q that of Riemann, which goes on below 1."""
    if q is None:
        above = where(x < _MIRRORED, 1 - x, x)
        return _mirrored(x, _of_positive(above, ones_like(x)))
    below = q < 0
    found = _of_positive(x, where(below, q - floor(q), q))
    mirrored, beyond = _of_positive(x, where(below, -q - floor(-q), 1.0)), _of_positive(x, where(below, 1 - q, 2.0))
    return _at_limits(x, q, found, mirrored, beyond)


def _of_positive(x: Any, q: Any) -> Any:
    """The sum for q from 0 on."""
    return _rest(x, q, _first_terms(x, q))


def _first_terms(x: Any, q: Any) -> Any:
    terms = arange(_TERMS, dtype=x.dtype, device=x.device)
    return sum_of((expand_dims(q, axis=-1) + terms) ** -expand_dims(x, axis=-1), axis=-1)


@fuse
def _rest(x: Any, q: Any, found: Any) -> Any:
    """Euler's and Maclaurin's sum after its first terms."""
    last = q + float(_TERMS)
    power = last**-x
    found = found + last ** (1 - x) / (x - 1) + power / 2
    square = 1 / (last * last)
    factor = x * power / last
    for k, number in enumerate(_BERNOULLI, 1):
        found = found + factor * (number / math.factorial(2 * k))
        factor = factor * (x + 2 * k - 1) * (x + 2 * k) * square
    return found


@fuse
def _mirrored(x: Any, found: Any) -> Any:
    """Riemann's function from its value at x, or below `_MIRRORED` at 1 - x."""
    mirrored = 1 - x
    root = exp((lgamma(mirrored) - mirrored * math.log(2 * math.pi)) / 2)
    half = floor(x / 2 + 0.5)  # the nearest zero is 2 half
    sine = sin(math.pi / 2 * (x - 2 * half))
    below = 2 * root * where(floor(half / 2) * 2 == half, sine, -sine) * found * root
    found = where(x < _MIRRORED, where(floor(x / 2) * 2 == x, 0.0, below), found)
    return where(x == 1, math.inf, where(x == math.inf, 1.0, found))


@fuse
def _at_limits(x: Any, q: Any, found: Any, mirrored: Any, beyond: Any) -> Any:
    """Add the terms of negative numbers, which are those of positive ones up to some with the sign of an odd x.

    Beside a half the large terms cancel, so that those beyond are added last.
    """
    found = where(q < 0, where(floor(x / 2) * 2 == x, found + mirrored - beyond, found - mirrored + beyond), found)
    found = where(x == math.inf, q**-x, where(q == math.inf, 0.0, found))
    found = where((x > 1) & ((q > 0) | (floor(x) == x)), found, math.nan)
    poles = (q <= 0) & (floor(q) == q)
    return where(isnan(x) | isnan(q), math.nan, where((x == 1) | (poles & (x > 1)), math.inf, found))


def polygamma(n: Any, x: Any) -> Any:
    """The derivative of `psi` of an order n."""
    odd = n - 2 * floor(n / 2)
    return where(n == 0, psi(x), (2 * odd - 1) * gamma(n + 1) * zeta(n + 1, x))


# --- incomplete gamma functions --------------------------------------------------------------------------------------

STEPS, ROUNDS, MOST = 8, 4, 64
"""Steps of a kernel; kernels between two looks at the result; looks at most."""
_LARGE = 1e4
"""From here on Temme's series has enough terms."""
FEWEST = 10.0
"""From here on Stirling's formula has enough terms."""
_TINY = 1e-300
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_LOGARITHM = [1 / 2, -1 / 3, 1 / 4, -1 / 5, 1 / 6, -1 / 7, 1 / 8, -1 / 9]
_TEMME = (
    (*(-0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073, 0.0003527336860670194),
     *(-0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06, -1.85406221071516e-06),
     *(8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09, 1.0261809784240308e-08)),
    (*(-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596),
     *(0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06),
     *(-1.6120900894563446e-06, 4.647127802807434e-09, 1.378633446915721e-07)),
)  # fmt: skip


def gammainc(a: Any, x: Any) -> Any:
    """The share of the gamma function of a that lies below x."""
    return _shares(a, x)[0]


def gammaincc(a: Any, x: Any) -> Any:
    """The share of the gamma function of a that lies above x."""
    return _shares(a, x)[1]


def chdtr(v: Any, x: Any) -> Any:
    """The share of the chi-square distribution of v degrees of freedom that lies below x."""
    return gammainc(v / 2, x / 2)


def chdtrc(v: Any, x: Any) -> Any:
    """The share of the chi-square distribution of v degrees of freedom that lies above x."""
    return gammaincc(v / 2, x / 2)


def gdtr(a: Any, b: Any, x: Any) -> Any:
    """The share of the gamma distribution of rate a and shape b that lies below x."""
    return where(x < 0, math.nan, gammainc(b, a * x))


def gdtrc(a: Any, b: Any, x: Any) -> Any:
    """The share of the gamma distribution of rate a and shape b that lies above x."""
    return where(x < 0, math.nan, gammaincc(b, a * x))


def pdtr(k: Any, m: Any) -> Any:
    """The probability of up to k events of a Poisson distribution of mean m."""
    usual = (k >= 0) & (m >= 0)
    return where(usual, where(m == 0, 1.0, gammaincc(floor(k) + 1, m)), math.nan)


def pdtrc(k: Any, m: Any) -> Any:
    """The probability of more than k events of a Poisson distribution of mean m."""
    usual = (k >= 0) & (m >= 0)
    return where(usual, where(m == 0, 0.0, gammainc(floor(k) + 1, m)), math.nan)


def _shares(a: Any, x: Any) -> tuple[Any, Any]:
    usual = (a > 0) & (x > 0) & isfinite(a) & isfinite(x)
    a_, x_ = where(usual, a, 1.0), where(usual, x, 1.0)
    large, before = a_ >= _LARGE, x_ < a_ + 1
    below, above = _temme(where(large, a_, _LARGE), where(large, x_, _LARGE))
    sums = _series(where(large | ~before, 1.0, a_), where(large | ~before, 1.0, x_))
    rest = _fraction(where(large | before, 1.0, a_), where(large | before, 3.0, x_))
    sums, rest = where(sums > 1, 1.0, sums), where(rest > 1, 1.0, rest)  # rounded, they may be a little more
    below = where(large, below, where(before, sums, 1 - rest))
    above = where(large, above, where(before, 1 - sums, rest))
    whole = (a == 0) & (x > 0) | (x == math.inf) & (a >= 0) & isfinite(a)
    none = (x == 0) & (a > 0) | (a == math.inf) & (x >= 0) & isfinite(x)
    return (
        where(usual, below, where(whole, 1.0, where(none, 0.0, math.nan))),
        where(usual, above, where(whole, 0.0, where(none, 1.0, math.nan))),
    )


@fuse
def _density(a: Any, x: Any) -> Any:
    """x**a exp(-x) / gamma(a + 1)."""
    enough = where(a < FEWEST, FEWEST, a)
    far = exp(-enough * excess(enough, x) - correction(enough)) / sqrt(2 * math.pi * enough)
    return where(a < FEWEST, exp(a * log(x) - x - lgamma(a + 1)), far)


def correction(a: Any) -> Any:
    """What Stirling's formula for the logarithm of gamma(a) leaves, for a of `FEWEST` and more."""
    return polynomial(1 / (a * a), _STIRLING) / a


def excess(a: Any, x: Any) -> Any:
    """m - log(1 + m) of m = x / a - 1."""
    m = (x - a) / a
    found = m - where(m < -0.5, log(x / a), log1p(m))
    return where(abs(m) < 0.01, m * m * polynomial(m, _LOGARITHM), found)


@fuse
def _temme(a: Any, x: Any) -> tuple[Any, Any]:
    """Both shares for large a (DLMF 8.12.3)."""
    m = (x - a) / a
    depth = excess(a, x)
    eta = sqrt(2 * depth) * sign(m)
    near = abs(eta) < 0.3
    m_, eta_ = where(near, 1.0, m), where(near, 1.0, eta)
    first = where(near, polynomial(eta, _TEMME[0]), 1 / m_ - 1 / eta_)
    second = 1 / (eta_ * eta_ * eta_) - (1 / m_ + 1) / (m_ * m_) - 1 / (12 * m_)
    second = where(near, polynomial(eta, _TEMME[1]), second)
    rest = exp(-a * depth) / sqrt(2 * math.pi * a) * (first + second / a)
    root = eta * sqrt(a / 2)
    return erfc(-root) / 2 - rest, erfc(root) / 2 + rest


def _series(a: Any, x: Any) -> Any:
    """The lower share by its power series, for x < a + 1."""
    term, total = a / a, a / a
    for step in range(0, STEPS * ROUNDS * MOST, STEPS):
        term, total = _more_terms(a, x, term, total, float(step))
        if step % (STEPS * ROUNDS) == 0 and not any_of(term > total * 1e-17):
            break
    return _density(a, x) * total


@fuse
def _more_terms(a: Any, x: Any, term: Any, total: Any, step: float) -> tuple[Any, Any]:
    for n in range(1, STEPS + 1):
        term = term * x / (a + (step + n))
        total = total + term
    return term, total


def _fraction(a: Any, x: Any) -> Any:
    """The upper share by its continued fraction, for x >= a + 1 (the method of Lentz)."""
    above, below = a / _TINY, 1 / (x + 1 - a)
    found = below
    for step in range(0, STEPS * ROUNDS * MOST, STEPS):
        above, below, found, change = _more_fractions(a, x, above, below, found, float(step))
        if step % (STEPS * ROUNDS) == 0 and not any_of(abs(change - 1) > 1e-15):
            break
    return _density(a, x) * a * found


@fuse
def _more_fractions(a: Any, x: Any, above: Any, below: Any, found: Any, step: float) -> tuple[Any, Any, Any, Any]:
    change: Any = 1.0
    for n in range(1, STEPS + 1):
        count = step + n
        factor = (a - count) * count
        base = x + 1 - a + 2 * count
        below = factor * below + base
        below = 1 / where(abs(below) < _TINY, _TINY, below)
        above = base + factor / above
        above = where(abs(above) < _TINY, _TINY, above)
        change = below * above
        found = found * change
    return above, below, found, change
