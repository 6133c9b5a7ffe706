"""Exponentials, logarithms, roots and trigonometry where NumPy lacks a function, or has other special cases.

The special values of complex functions are those of the array API standard, which follows C (ISO/IEC 9899, Annex G).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
"""An ndarray of any dtype: NumPy's stubs know parts of complex ones alone."""


def rsqrt(x: Array, *, out: Array) -> None:
    """``1 / sqrt(x)``.

    Examples
    --------
    >>> out = np.empty(2)
    >>> rsqrt(np.array([16.0, np.inf]), out=out)
    >>> out
    array([0.25, 0.  ])
    """
    np.reciprocal(np.sqrt(x), out=out)


def hypot(x: Array, y: Array, *, out: Array) -> None:
    """``sqrt(x**2 + y**2)``; a product makes signalling NaN quiet, beside which an infinity would give NaN.

    Examples
    --------
    >>> out = np.empty(2)
    >>> hypot(np.array([3.0, np.inf]), np.array([4.0, np.nan]), out=out)
    >>> out
    array([ 5., inf])
    """
    np.hypot(x * 1, y * 1, out=out)


def sinc(x: Array, *, out: Array) -> None:
    """``sin(pi x) / (pi x)``, 1 at 0: from the distance to the nearest integer, which is exact.

    Examples
    --------
    >>> out = np.empty(2)
    >>> sinc(np.array([0.5, 1e6]), out=out)
    >>> out
    array([0.63661977, 0.        ])
    """
    whole = np.rint(x)
    sine = np.sin(np.pi * (x - whole)) * np.where(np.fmod(whole, 2) == 0, 1, -1).astype(x.dtype)
    np.copyto(out, np.where(x == 0, 1, sine / (np.pi * x) + 0.0))


def expm1(x: Array, *, out: Array) -> None:
    """``exp(x) - 1``; complex where nothing cancels as just that, which has the special values of ``exp``.

    Examples
    --------
    >>> out = np.empty(1, complex)
    >>> expm1(np.array([complex(-np.inf, np.nan)]), out=out)
    >>> out
    array([-1.+0.j])
    """
    if x.dtype.kind != "c":
        np.expm1(x, out=out)
    else:
        found: Array = np.where(np.isfinite(x) & (x.real <= 2), np.expm1(x), np.exp(x) - 1)
        _store(out, found.real + 0.0, found.imag)  # the standard's real part at -0 is 0


def log1p(x: Array, *, out: Array) -> None:
    """``log(1 + x)``; complex near 0 from ``abs(1 + x)**2 - 1``, since ``1 + x`` has lost what x is made of.

    Where a part of a complex x is infinite the real part is, beside a signalling NaN too, for which NumPy gives NaN.

    Examples
    --------
    >>> out = np.empty(1, complex)
    >>> log1p(np.array([1e-20 + 1e-20j]), out=out)
    >>> out
    array([1.e-20+1.e-20j])
    """
    if x.dtype.kind != "c":
        np.log1p(x, out=out)
        return
    size_real, size_imag = np.abs(x.real), np.abs(x.imag)
    near = np.log1p(x.real * (2 + x.real) + x.imag * x.imag) / 2
    found: Array = np.log1p(x)
    real = np.where(np.maximum(size_real, size_imag) < 0.25, near, found.real)
    _store(out, np.where((size_real == np.inf) | (size_imag == np.inf), np.inf, real), found.imag)


def tan(x: Array, *, out: Array) -> None:
    """The tangent; complex where the imaginary part is infinite as `tanh` of the product with the imaginary unit.

    Examples
    --------
    >>> out = np.empty(1, complex)
    >>> tan(np.array([complex(2.0, np.inf)]), out=out)
    >>> out
    array([0.+1.j])
    """
    if x.dtype.kind != "c" or not np.any(beyond := np.isinf(x.imag)):
        np.tan(x, out=out)
    else:
        found: Array = np.tan(x)
        real = np.where(beyond, np.copysign(0, x.real), found.real)
        _store(out, real, np.where(beyond, np.copysign(1, x.imag), found.imag))


def tanh(x: Array, *, out: Array) -> None:
    """The hyperbolic tangent; complex at an infinite real part with the sign of the imaginary part, whatever its size.

    Examples
    --------
    >>> out = np.empty(1, complex)
    >>> tanh(np.array([complex(np.inf, 2.0)]), out=out)
    >>> out
    array([1.+0.j])
    """
    if x.dtype.kind != "c" or not np.any(beyond := np.isinf(x.real)):
        np.tanh(x, out=out)
    else:
        found: Array = np.tanh(x)
        real = np.where(beyond, np.copysign(1, x.real), found.real)
        _store(out, real, np.where(beyond, np.copysign(0, x.imag), found.imag))


def _store(out: Array, real: Array, imag: Array) -> None:
    out.real, out.imag = real, imag
