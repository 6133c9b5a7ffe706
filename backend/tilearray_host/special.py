"""The error function, its inverse, and the logarithm of the gamma function. The first call imports SciPy."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

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
