"""The error function, its inverse, and the logarithm of the gamma function: SciPy's, imported when first called."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def _scipy(name: str) -> Any:
    """`scipy.special`, or an ImportError that names the extra which brings it."""
    try:
        return import_module("scipy.special")
    except ImportError as error:
        raise ImportError(
            f"{name}: on the host this needs SciPy; write pip install 'tilearray[special]', "
            "or compute it on the GPU, x.to_device('cuda')"
        ) from error


def erf(x: Array, *, out: Array) -> None:
    """The error function.

    Examples
    --------
    >>> out = np.empty(1)
    >>> erf(np.array([np.inf]), out=out)
    >>> out
    array([1.])
    """
    _scipy("erf").erf(x, out=out)


def erfc(x: Array, *, out: Array) -> None:
    """``1 - erf(x)``.

    Examples
    --------
    >>> out = np.empty(1)
    >>> erfc(np.array([np.inf]), out=out)
    >>> out
    array([0.])
    """
    _scipy("erfc").erfc(x, out=out)


def erfinv(x: Array, *, out: Array) -> None:
    """The number whose error function is x.

    Examples
    --------
    >>> out = np.empty(1)
    >>> erfinv(np.array([1.0]), out=out)
    >>> out
    array([inf])
    """
    _scipy("erfinv").erfinv(x, out=out)


def lgamma(x: Array, *, out: Array) -> None:
    """``log(abs(gamma(x)))``; infinite at both infinities, as in C (SciPy gives -inf at -inf).

    Examples
    --------
    >>> out = np.empty(2)
    >>> lgamma(np.array([-np.inf, -1.0]), out=out)
    >>> out
    array([inf, inf])
    """
    _scipy("lgamma").gammaln(np.where(x == -np.inf, np.inf, x), out=out)
