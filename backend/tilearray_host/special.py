"""Special functions of the table.

The error and gamma functions are SciPy's, which their first call imports; logistic functions and entropies need NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from tilearray_host import transcendental
from tilearray_host.exact_fma import two_product

Array = np.ndarray[Any, np.dtype[Any]]


def _scipy(name: str) -> Any:
    """Import `scipy.special`, or raise an ImportError that says how to install it."""
    try:
        return import_module("scipy.special")
    except ImportError as error:
        raise ImportError(
            f"{name}: this function needs SciPy on the host; write pip install scipy, "
            "or compute it on the GPU with x.to_device('cuda')"
        ) from error


def erf(x: Array, *, out: Array) -> None:
    """Compute the error function.

    Examples
    --------
    >>> out = np.empty(1)
    >>> erf(np.array([np.inf]), out=out)
    >>> out
    array([1.])
    """
    _scipy("erf").erf(x, out=out)


def erfc(x: Array, *, out: Array) -> None:
    """Compute ``1 - erf(x)``. float64 beyond 1 corrects ``exp(-x**2)`` for the rounding of the square, unlike SciPy.

    Examples
    --------
    >>> out = np.empty(2)
    >>> erfc(np.array([0.0, 5.0]), out=out)
    >>> out
    array([1.00000000e+00, 1.53745979e-12])
    """
    scipy = _scipy("erfc")
    if x.dtype.itemsize < 8 or not np.any(far := (x > 1) & (x < 30)):
        scipy.erfc(x, out=out)
    else:
        square, error = two_product(x, x)
        root = np.exp(square / -2)
        np.copyto(out, np.where(far, scipy.erfcx(x) * (1 - error) * root * root, scipy.erfc(x)))


def erfinv(x: Array, *, out: Array) -> None:
    """Compute the inverse of the error function, with the sign of x (SciPy loses the sign of -0.0).

    Examples
    --------
    >>> out = np.empty(1)
    >>> erfinv(np.array([1.0]), out=out)
    >>> out
    array([inf])
    """
    np.copysign(_scipy("erfinv").erfinv(x), x, out=out)


def lgamma(x: Array, *, out: Array) -> None:
    """Compute ``log(abs(gamma(x)))``. It is infinite at -inf, as in C, and finite near 0, where SciPy overflows.

    Examples
    --------
    >>> out = np.empty(2)
    >>> lgamma(np.array([3.0, 1e-320]), out=out)
    >>> out
    array([6.93147181e-01, 7.36827241e+02])
    """
    size = np.abs(x)
    found = _scipy("lgamma").gammaln(np.where(size == np.inf, size, x))
    np.copyto(out, np.where(size < 2.0**-60, -np.log(size), found))


def gamma(x: Array, *, out: Array) -> None:
    """Compute the gamma function; NaN at the negative integers.

    Examples
    --------
    >>> out = np.empty(2)
    >>> gamma(np.array([5.0, -1.0]), out=out)
    >>> out
    array([24., nan])
    """
    _scipy("gamma").gamma(x, out=out)


def ndtr(x: Array, *, out: Array) -> None:
    """Compute the distribution function of the standard normal distribution.

    It is half of ``erfc(-x / sqrt(2))``. The quotient is rounded, which matters for small results: SciPy's float64 is
    1900 units in the last place off at -35.6. Here its derivative corrects it.

    Examples
    --------
    >>> out = np.empty(3)
    >>> with np.errstate(all="ignore"):
    ...     ndtr(np.array([0.0, np.inf, -5.0]), out=out)
    >>> out
    array([5.00000000e-01, 1.00000000e+00, 2.86651572e-07])
    """
    if x.dtype.itemsize < 8:
        _scipy("ndtr").ndtr(x, out=out)
        return
    quotient, error = two_product(x, np.asarray(-_ROOT_OF_HALF))
    lost = np.where((quotient > 1) & (quotient < 30), error - x * _ROOT_OF_HALF_ERROR, 0)
    erfc(quotient, out=out)
    out *= 0.5 - quotient.clip(0, 30) * lost


_ROOT_OF_HALF, _ROOT_OF_HALF_ERROR = 0.7071067811865476, -4.833646656726457e-17
"""The square root of 0.5, rounded, and the rest of it."""


def expit(x: Array, *, out: Array) -> None:
    """Compute ``1 / (1 + exp(-x))`` by the exponential that is at most 1.

    Examples
    --------
    >>> out = np.empty(3)
    >>> expit(np.array([0.0, -1000.0, np.inf]), out=out)
    >>> out
    array([0.5, 0. , 1. ])
    """
    small = np.exp(-np.abs(x))
    np.divide(np.where(x < 0, small, x.dtype.type(1)), small + 1, out=out)


def logit(x: Array, *, out: Array) -> None:
    """Compute ``log(x / (1 - x))``; near 0.5 it is log1p of ``(2 x - 1) / (1 - x)``, whose numerator is exact.

    Examples
    --------
    >>> out = np.empty(3)
    >>> with np.errstate(all="ignore"):
    ...     logit(np.array([0.5, 1.0, 0.75]), out=out)
    >>> out
    array([0.        ,        inf, 1.09861229])
    """
    rest, middle = 1 - x, (x >= 0.25) & (x <= 0.75)
    np.copyto(out, np.where(middle, np.log1p((x - 0.5) * 2 / rest), np.log(x / rest)))


def entr(x: Array, *, out: Array) -> None:
    """Compute ``-x * log(x)``; 0 at 0, -infinity below.

    Examples
    --------
    >>> out = np.empty(3)
    >>> with np.errstate(all="ignore"):
    ...     entr(np.array([0.0, -1.0, 1.0]), out=out)
    >>> out
    array([  0., -inf,   0.])
    """
    found = 0 - x * np.log(x)
    np.copyto(out, np.where(x == 0, 0, np.where(x < 0, -np.inf, found)), casting="same_kind")


def xlogy(x: Array, y: Array, *, out: Array) -> None:
    """Compute ``x * log(y)``; 0 where x is 0 and y is a number.

    Examples
    --------
    >>> out = np.empty(2)
    >>> with np.errstate(all="ignore"):
    ...     xlogy(np.array([0.0, 2.0]), np.array([0.0, 1.0]), out=out)
    >>> out
    array([0., 0.])
    """
    _times_log(x, y, np.log(y), out)


def xlog1py(x: Array, y: Array, *, out: Array) -> None:
    """Compute ``x * log(1 + y)``; 0 where x is 0 and y is a number.

    Examples
    --------
    >>> out = np.empty(2)
    >>> with np.errstate(all="ignore"):
    ...     xlog1py(np.array([0.0, 2.0]), np.array([-1.0, 0.0]), out=out)
    >>> out
    array([0., 0.])
    """
    logarithm = np.empty(y.shape, y.dtype)
    transcendental.log1p(y, out=logarithm)
    _times_log(x, y, logarithm, out)


def _times_log(x: Array, y: Array, logarithm: Array, out: Array) -> None:
    np.copyto(out, np.where((x == 0) & (y == y), x.dtype.type(0), x * logarithm))
