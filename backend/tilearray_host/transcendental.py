"""Exponentials, logarithms, roots and trigonometric functions that NumPy lacks or has with other special values.

Complex functions have the special values of the array API standard, which follows C (ISO/IEC 9899, Annex G).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
"""An ndarray of any dtype. NumPy's stubs declare ``real`` and ``imag`` for complex arrays only."""


def rsqrt(x: Array, *, out: Array) -> None:
    """Compute ``1 / sqrt(x)``.

    Examples
    --------
    >>> out = np.empty(2)
    >>> rsqrt(np.array([16.0, np.inf]), out=out)
    >>> out
    array([0.25, 0.  ])
    """
    np.reciprocal(np.sqrt(x), out=out)


def hypot(x: Array, y: Array, *, out: Array) -> None:
    """Compute ``sqrt(x**2 + y**2)``. Multiplication by 1 makes signalling NaN quiet; infinity with one would give NaN.

    Examples
    --------
    >>> out = np.empty(2)
    >>> hypot(np.array([3.0, np.inf]), np.array([4.0, np.nan]), out=out)
    >>> out
    array([ 5., inf])
    """
    np.hypot(x * 1, y * 1, out=out)


def sinc(x: Array, *, out: Array) -> None:
    """Compute ``sin(pi x) / (pi x)``, and 1 at 0. The sine uses the distance to the nearest integer, which is exact.

    Examples
    --------
    >>> out = np.empty(2)
    >>> sinc(np.array([0.5, 1e6]), out=out)
    >>> out
    array([0.63661977, 0.        ])
    """
    found = np.empty_like(x) if np.may_share_memory(out, x) else out
    whole = np.rint(x, out=np.empty_like(x))
    np.subtract(x, whole, out=found)
    found *= np.pi
    np.sin(found, out=found)
    whole *= 0.5
    whole -= np.rint(whole)  # 0 for even integers, a half of either sign for odd ones
    np.abs(whole, out=whole)
    whole *= -4
    whole += 1
    found *= whole
    np.multiply(x, np.pi, out=whole)
    found /= whole
    found += 0.0
    np.copyto(found, 1, where=x == 0)
    if found is not out:
        np.copyto(out, found)


def expm1(x: Array, *, out: Array) -> None:
    """Compute ``exp(x) - 1``. Complex numbers without cancellation use that formula, for the special values of ``exp``.

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
    """Compute ``log(1 + x)``. Complex numbers near 0 use ``abs(1 + x)**2 - 1``, because ``1 + x`` loses digits of x.

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
    """Compute the tangent. A complex number with infinite imaginary part takes its value from `tanh` of ``1j * x``.

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
    """Compute the hyperbolic tangent. At an infinite real part, the imaginary part becomes a zero of its own sign.

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
