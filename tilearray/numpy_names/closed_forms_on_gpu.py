"""Functions of `scipy.special` with a closed form of ours, for Arrays on a GPU, as in `special_on_gpu`."""

from __future__ import annotations

import math
from typing import Any

from tilearray.arrays.fills import ones_like
from tilearray.arrays.fusion.fuse import fuse
from tilearray.functions.searching import where
from tilearray.numpy_names.special_on_gpu import zeta
from tilearray.ops.arithmetic import abs, divide
from tilearray.ops.elementary import cos, erfc, exp, expm1, gamma, lgamma, log, log1p, sin, sqrt
from tilearray.ops.number_parts import copysign, floor, isnan, sign

_LARGEST = math.log(1.7976931348623157e308)
_MOST_DEGREES = 1e14
"""SciPy's functions of degrees are 0 beyond."""

# --- angles in degrees -----------------------------------------------------------------------------------------------


@fuse
def sindg(x: Any) -> Any:
    """The sine of degrees."""
    return _of_degrees(x, 0)


@fuse
def cosdg(x: Any) -> Any:
    """The cosine of degrees."""
    return _of_degrees(x, 1)


@fuse
def tandg(x: Any) -> Any:
    """The tangent of degrees."""
    return where(abs(x) > _MOST_DEGREES, 0.0, _quotient(_of_degrees(x, 0), _of_degrees(x, 1)))


@fuse
def cotdg(x: Any) -> Any:
    """The cotangent of degrees."""
    return where(abs(x) > _MOST_DEGREES, 0.0, _quotient(_of_degrees(x, 1), _of_degrees(x, 0)))


def _of_degrees(x: Any, quarter: int) -> Any:
    """The sine, some quarters of a turn on. What is left of a quarter is exact."""
    turns = floor(x / 90 + 0.5)
    rest = (x - turns * 90) * (math.pi / 180)
    place = turns + quarter
    place = place - 4 * floor(place / 4)
    found = where((place == 1) | (place == 3), cos(rest), sin(rest))
    return where(abs(x) > _MOST_DEGREES, 0.0, where(place >= 2, 0 - found, found))


def _quotient(over: Any, under: Any) -> Any:
    return where(under == 0, math.inf, divide(over, where(under == 0, 1.0, under)))


@fuse
def radian(d: Any, m: Any, s: Any) -> Any:
    """The radians of degrees, minutes and seconds."""
    return ((d * 60 + m) * 60 + s) * (math.pi / 648000)


# --- exponentials and powers -----------------------------------------------------------------------------------------


@fuse
def exp10(x: Any) -> Any:
    """Ten to the power of x."""
    return 10.0**x


@fuse
def exprel(x: Any) -> Any:
    """(exp(x) - 1) / x."""
    tiny = abs(x) < 1e-16
    return where(tiny, 1.0, where(x == math.inf, x, expm1(x) / where(tiny, 1.0, x)))


@fuse
def cosm1(x: Any) -> Any:
    """cos(x) - 1."""
    half = sin(x / 2)
    return -2 * half * half


@fuse
def boxcox(x: Any, power: Any) -> Any:
    """(x**power - 1) / power, or the logarithm if the power is 0."""
    return _power(log(x), power, abs(power) < 1e-19)


@fuse
def boxcox1p(x: Any, power: Any) -> Any:
    """`boxcox` of 1 + x."""
    logarithm = log1p(x)
    return _power(logarithm, power, (abs(power) < 1e-19) | ((abs(logarithm) < 1e-289) & (abs(power) < 1e273)))


def _power(logarithm: Any, power: Any, is_limit: Any) -> Any:
    some = where(is_limit, 1.0, power)
    exponent = some * logarithm
    large = sign(some) * exp(exponent - log(abs(some))) - 1 / some
    return where(is_limit, logarithm, where(exponent < _LARGEST, expm1(exponent) / some, large))


@fuse
def inv_boxcox(x: Any, power: Any) -> Any:
    """The number whose `boxcox` is x."""
    return where(power == 0, exp(x), exp(_root(x, power)))


@fuse
def inv_boxcox1p(x: Any, power: Any) -> Any:
    """The number whose `boxcox1p` is x."""
    found = where(abs(power * x) < 1e-154, x, expm1(_root(x, power)))
    return where(power == 0, expm1(x), found)


def _root(x: Any, power: Any) -> Any:
    some = where(power == 0, 1.0, power)
    scaled = some * x
    large = log(sign(some) * (x + 1 / some)) + log(abs(some))
    return where(scaled < math.inf, log1p(scaled), large) / some


# --- losses and entropies --------------------------------------------------------------------------------------------


@fuse
def huber(delta: Any, r: Any) -> Any:
    """Half the square of r up to delta, and a line beyond."""
    size = abs(r)
    return where(delta < 0, math.inf, where(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta)))


@fuse
def pseudo_huber(delta: Any, r: Any) -> Any:
    """A smooth `huber`."""
    none = (delta == 0) | (r == 0)
    ratio = where(none, 0.0, r) / where(none, 1.0, delta)
    found = where(abs(ratio) > 1e8, delta * (abs(r) - delta), r * r / (1 + sqrt(1 + ratio * ratio)))
    return where(delta < 0, math.inf, where(none, 0.0, found))


@fuse
def rel_entr(x: Any, y: Any) -> Any:
    """x log(x / y)."""
    return _entropy(x, y, False)


@fuse
def kl_div(x: Any, y: Any) -> Any:
    """x log(x / y) - x + y."""
    return _entropy(x, y, True)


def _entropy(x: Any, y: Any, less: bool) -> Any:
    inside = (x > 0) & (y > 0)
    over, under = where(inside, x, 1.0), where(inside, y, 1.0)
    ratio = over / under
    logarithm = where((ratio > 1e-300) & (ratio < math.inf), log(ratio), log(over) - log(under))
    found = x * where((ratio > 0.5) & (ratio < 2), log1p((over - under) / under), logarithm)
    found = where(inside, found - x + y if less else found, math.inf)
    none = (x == 0) & (y >= 0)
    return where(isnan(x) | isnan(y), math.nan, where(none, y if less else 0.0, found))


# --- functions of gamma, zeta and the error function -----------------------------------------------------------------


@fuse
def gammasgn(x: Any) -> Any:
    """The sign of gamma(x)."""
    whole = floor(x)
    found = where((whole == x) | isnan(x), math.nan, where(whole - 2 * floor(whole / 2) == 1, -1.0, 1.0))
    return where(x > 0, 1.0, where(x == 0, copysign(1.0, x), found))


@fuse
def rgamma(x: Any) -> Any:
    """1 / gamma(x), which is 0 at the poles."""
    pole = (x <= 0) & (floor(x) == x)
    return where(pole, 0.0, divide(1, gamma(where(pole, 1.0, x))))


@fuse
def loggamma(x: Any) -> Any:
    """The logarithm of gamma(x), which is real from 0 on."""
    return where(x < 0, math.nan, lgamma(x))


def zetac(x: Any) -> Any:
    """Riemann's zeta function less 1: from 1 on the sum without its first term."""
    beyond = x > 1
    found = where(beyond, zeta(where(beyond, x, 2.0), 2 * ones_like(x)), zeta(where(beyond, 2.0, x)) - 1)
    return where(x == -math.inf, math.nan, found)


@fuse
def erfcx(x: Any) -> Any:
    """exp(x**2) erfc(x); beyond 25 its asymptotic series."""
    square = 1 / (2 * x * x)
    series: Any = 1.0
    for k in range(15, 0, -2):
        series = 1 - series * square * k
    return where(x > 25, series / (x * math.sqrt(math.pi)), exp(x * x) * erfc(x))


# --- elliptic integrals ----------------------------------------------------------------------------------------------


@fuse
def ellipk(m: Any) -> Any:
    """The complete elliptic integral of the first kind."""
    return _by_means(1 - m)


@fuse
def ellipkm1(p: Any) -> Any:
    """`ellipk` of 1 - p."""
    return _by_means(p)


def _by_means(p: Any) -> Any:
    """Gauss's arithmetic-geometric mean; 12 steps are enough for any p."""
    usual = (p > 0) & (p < math.inf)
    first, second = 1.0 + 0 * p, sqrt(where(usual, p, 1.0))
    for _ in range(12):
        first, second = (first + second) / 2, sqrt(first * second)
    ends = where(p == 0, math.inf, where(p == math.inf, 0.0, math.nan))
    return where(usual, math.pi / 2 / first, ends)
