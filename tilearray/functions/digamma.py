"""The derivative of `lgamma`, composed of rows, for gradients and for `scipy.special.psi` on a GPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilearray.functions.searching import where
from tilearray.ops.arithmetic import divide, equal, less, logical_and, multiply, subtract
from tilearray.ops.elementary import log, tan
from tilearray.ops.number_parts import floor

_SHIFTS = 8
_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
"""Of 1 / x**2, 1 / x**4, ...: Bernoulli's numbers B(2n) over 2n (Abramowitz and Stegun, 6.3.18)."""


def digamma(x: Any) -> Any:
    """Return the derivative of the logarithm of the gamma function, composed of rows.

    ``psi(x) = psi(x + 1) - 1 / x`` moves the argument up to where the asymptotic series is exact to float64, and
    ``psi(1 - x) - pi / tan(pi x)`` is used below 0 (Abramowitz and Stegun, 6.3.5, 6.3.7 and 6.3.18).

    Examples
    --------
    >>> import tilearray as ta
    >>> digamma(ta.asarray([1.0], dtype="float64")).item()
    -0.5772156649015...
    """
    below = less(x, 0)
    turned = where(below, subtract(1, x), x)
    shifted: Any = 0
    for shift in range(_SHIFTS):
        shifted = shifted + divide(1, turned + shift)
    far = turned + _SHIFTS
    square = divide(1, multiply(far, far))
    series: Any = 0
    for factor in reversed(_SERIES):
        series = (series + factor) * square
    found = log(far) - 0.5 / far - series - shifted
    nearest = floor(x + 0.5)
    angle = where(below, x - nearest, 0.25)
    found = where(below, found - np.pi / tan(np.pi * angle), found)
    return where(logical_and(below, equal(x, floor(x))), math.nan, found)
