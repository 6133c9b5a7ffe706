"""Functions of `scipy.special` from the incomplete beta function, for Arrays on a GPU, as in `special_on_gpu`.

The share below x is a continued fraction (DLMF 8.17.22), whose steps grow as the root of the smaller parameter. Beyond
1e6 it is the complementary error function with one correction (DLMF 8.18.9), and NaN if the ratio of both parameters is
more than about 1e280.
"""

from __future__ import annotations

import math
from typing import Any

from tilearray.arrays.fills import ones_like
from tilearray.arrays.fusion.fuse import fuse
from tilearray.functions.reductions import any as any_of
from tilearray.functions.searching import where
from tilearray.numpy_names.special_on_gpu import FEWEST, MOST, ROUNDS, STEPS, correction, excess
from tilearray.ops.arithmetic import abs
from tilearray.ops.elementary import erfc, exp, lgamma, log, log1p, ndtr, sqrt
from tilearray.ops.number_parts import isfinite, isnan, sign

_LARGE = 1e6
"""From here on, for both parameters, one correction of the error function is enough."""


def betainc(a: Any, b: Any, x: Any) -> Any:
    """The share of the beta function of a and b that lies below x."""
    return _shares(a, b, x, 1 - x)[0]


def betaincc(a: Any, b: Any, x: Any) -> Any:
    """The share of the beta function of a and b that lies above x."""
    return _shares(a, b, x, 1 - x)[1]


def _shares(a: Any, b: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """The shares below and above x, where x + y is 1."""
    usual = (a > 0) & (b > 0) & (x > 0) & (y > 0) & isfinite(a) & isfinite(b)
    a_, b_ = where(usual, a, 1.0), where(usual, b, 1.0)
    x_, y_ = where(usual, x, 0.5), where(usual, y, 0.5)
    large = (a_ > _LARGE) & (b_ > _LARGE)
    before = x_ < (a_ + 1) / (a_ + b_ + 2)
    below, above = _normal(
        where(large, a_, _LARGE), where(large, b_, _LARGE), where(large, x_, 0.5), where(large, y_, 0.5)
    )
    share = _fraction(
        where(large, 1.0, where(before, a_, b_)),
        where(large, 1.0, where(before, b_, a_)),
        where(large, 0.5, where(before, x_, y_)),
        where(large, 0.5, where(before, y_, x_)),
    )
    share = where(share > 1, 1.0, share)  # rounded, it may be a little more
    below = where(large, below, where(before, share, 1 - share))
    above = where(large, above, where(before, 1 - share, share))
    return _with_limits(a, b, x, y, below), _with_limits(b, a, y, x, above)


@fuse
def _with_limits(a: Any, b: Any, x: Any, y: Any, found: Any) -> Any:
    """The share where a parameter or x is at an end of its range."""
    found = where((a == 0) | (b == math.inf), 1.0, where((b == 0) | (a == math.inf), 0.0, found))
    found = where(x == 0, 0.0, where(y == 0, 1.0, found))
    inside = (a >= 0) & (b >= 0) & (x >= 0) & (y >= 0)
    undefined = ((a == 0) & (b == 0)) | ((a == math.inf) & (b == math.inf))
    return where(inside & ~undefined, found, math.nan)


@fuse
def _density(a: Any, b: Any, x: Any, y: Any) -> Any:
    """x**a y**b over the beta function, where x + y is 1."""
    less, more = where(a < b, a, b), where(a < b, b, a)
    enough, least = where(more < FEWEST, FEWEST, more), where(less < FEWEST, FEWEST, less)
    both, whole = enough + least, a + b
    far = where(less < FEWEST, 0.0, a * excess(a, whole * x) + b * excess(b, whole * y))
    far = exp(correction(both) - correction(enough) - correction(least) - far) * sqrt(least / both * enough)
    powers = a * where(x < 0.5, log(x), log1p(-y)) + b * where(y < 0.5, log(y), log1p(-x))
    longer = enough + less
    ratio = (longer - 0.5) * log1p(less / enough) + less * (log(enough) - 1) + correction(longer) - correction(enough)
    ratio = where(
        more < FEWEST, lgamma(whole + 1) - lgamma(more + 1), ratio
    )  # of gamma functions, near 0 of a + b and more
    near = exp(powers + ratio - lgamma(less + 1)) * less * where(more < FEWEST, more / whole, 1.0)
    return where(less < FEWEST, near, far / math.sqrt(2 * math.pi))


@fuse
def _normal(a: Any, b: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Both shares for two large parameters."""
    whole = a + b
    middle, rest = a / whole, b / whole
    root = sqrt(middle * rest)
    size = a * excess(a, whole * x) + b * excess(b, whole * y)
    offset = where(x < y, x - middle, rest - y) / root
    eta = sqrt(2 * size / whole) * sign(offset)
    near = abs(offset) < 1e-3 * root
    skew = (middle - rest) / root
    square = 1 / (root * root)
    first, second, third = skew * (2 / 3), square / 2 - 1.5, skew * (square - 2) * 0.4
    series = (first * second * 0.75 - third / 2 - first * first * first * (5 / 16)) * offset
    series = (series + first * first * 0.375 - second / 2) * offset - first / 2  # of 1 / eta - 1 / offset
    difference = where(near, series, 1 / where(near, 1.0, eta) - 1 / where(near, 1.0, offset))
    part = exp(-size) / sqrt(2 * math.pi * whole) * difference
    scaled = eta * sqrt(whole / 2)
    return erfc(-scaled) / 2 + part, erfc(scaled) / 2 - part


def _fraction(a: Any, b: Any, x: Any, y: Any) -> Any:
    """The share below x for x up to the mean (the method of Lentz)."""
    found = _first_fraction(a, b, x, y)
    above, below = found, 0 * found
    for step in range(0, STEPS * ROUNDS * MOST, STEPS):
        above, below, found, change = _more_fractions(a, b, x, y, above, below, found, float(step))
        if step % (STEPS * ROUNDS) == 0 and not any_of(abs(change - 1) > 1e-15):
            break
    density = _density(a, b, x, y)
    return where(density == 0, 0.0, density / found)  # where the fraction is beyond all numbers


@fuse
def _first_fraction(a: Any, b: Any, x: Any, y: Any) -> Any:
    return a * (a * y - b * x + 1) / (a + 1)


@fuse
def _more_fractions(
    a: Any, b: Any, x: Any, y: Any, above: Any, below: Any, found: Any, step: float
) -> tuple[Any, Any, Any, Any]:
    """More steps of the even part of the fraction, whose terms keep their digits for x near 1."""
    change: Any = 1.0
    for n in range(1, STEPS + 1):
        m = step + n
        scale = a + (2 * m - 1)
        weight = m * x * ((b - m) / scale)
        factor = (a + (m - 1)) / scale * (a + b + (m - 1)) * x * weight
        base = m + weight + (a + m) / (scale + 2) * (a * y - b * x + 1 + m * (1 + y))
        below = 1 / (base + factor * below)
        above = base + factor / above
        change = above * below
        found = found * change
    return above, below, found, change


# --- distributions ---------------------------------------------------------------------------------------------------


def stdtr(df: Any, t: Any) -> Any:
    """The share of Student's distribution of df degrees of freedom that lies below t."""
    square = t * t / where(isfinite(df), df, 1.0)
    tail = _shares(0.5 * ones_like(square), 0.5 * df * ones_like(t), 1 / (1 + 1 / square), 1 / (1 + square))[1] / 2
    return _of_tail(df, t, tail)


@fuse
def _of_tail(df: Any, t: Any, tail: Any) -> Any:
    found = where(df == math.inf, ndtr(t), where(t < 0, tail, 1 - tail))
    return where((df > 0) & ~isnan(t), found, math.nan)


def fdtr(dfn: Any, dfd: Any, x: Any) -> Any:
    """The share of the F distribution that lies below x."""
    return _f_shares(dfn, dfd, x)[0]


def fdtrc(dfn: Any, dfd: Any, x: Any) -> Any:
    """The share of the F distribution that lies above x."""
    return _f_shares(dfn, dfd, x)[1]


def _f_shares(dfn: Any, dfd: Any, x: Any) -> tuple[Any, Any]:
    ratio = dfn * x / dfd
    usual = (dfn > 0) & isfinite(dfn) & (dfd > 0) & isfinite(dfd) & (x >= 0)
    shares = _shares(dfn / 2, dfd / 2, 1 / (1 + 1 / ratio), 1 / (1 + ratio))
    return where(usual, shares[0], math.nan), where(usual, shares[1], math.nan)
