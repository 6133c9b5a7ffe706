"""Rounding, classes, signs and exponents of numbers: functions of the op table that NumPy lacks or gets wrong.

As in `tilearray_host.functions`, every function writes to ``out``, which may be one of its operands. Functions of the
bits (`signbit`, `copysign` and `nextafter`) accept floats of any dtype of 8 bits and more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = Any
"""An ndarray of any dtype. NumPy's stubs declare ``real`` and ``imag`` for complex arrays only."""
SIGN_BITS = {1: np.uint8(0x80), 2: np.uint16(0x8000)}
"""The sign bit of the narrow floats, by itemsize."""


def round(x: Array, *, out: Array) -> None:
    """Round to the nearest integer, half to even. Integers are unchanged; ``np.rint`` would make them floats.

    Examples
    --------
    >>> out = np.empty(2)
    >>> round(np.array([0.5, 1.5]), out=out)
    >>> out
    array([0., 2.])
    """
    if x.dtype.kind in "iu":
        np.copyto(out, x)
    else:
        np.rint(x, out=out)


def has_nan(x: Array) -> bool:
    """Whether a float array holds a NaN: its maximum is one, which needs no memory, and is fast.

    Examples
    --------
    >>> has_nan(np.array([1.0, np.nan])), has_nan(np.array([1.0, np.inf])), has_nan(np.empty(0))
    (True, False, False)
    """
    greatest = np.maximum.reduce(x, axis=None, initial=-np.inf)
    return bool(greatest != greatest)


def absolute_of_bits(x: Array, *, out: Array) -> None:
    """Clear the sign bit of floats, that of NaN too.

    Examples
    --------
    >>> out = np.empty(2, np.float16)
    >>> absolute_of_bits(np.array([-1.5, -np.inf], np.float16), out=out)
    >>> out
    array([1.5, inf], dtype=float16)
    """
    sign = SIGN_BITS[x.itemsize]
    np.bitwise_and(x.view(sign.dtype), ~sign, out=out.view(sign.dtype))


def negative_of_bits(x: Array, *, out: Array) -> None:
    """Invert the sign bit of floats, that of NaN too.

    Examples
    --------
    >>> out = np.empty(2, np.float16)
    >>> negative_of_bits(np.array([0.0, -np.inf], np.float16), out=out)
    >>> out
    array([-0., inf], dtype=float16)
    """
    sign = SIGN_BITS[x.itemsize]
    np.bitwise_xor(x.view(sign.dtype), sign, out=out.view(sign.dtype))


def absolute(x: Array, *, out: Array) -> None:
    """The absolute value; complex infinite where a part is, beside a signalling NaN too, as not all NumPy's loops say.

    Examples
    --------
    >>> out = np.empty(2)
    >>> absolute(np.array([3 + 4j, complex(np.nan, -np.inf)]), out=out)
    >>> out
    array([ 5., inf])
    """
    np.absolute(x, out=out)
    if x.dtype.kind == "c" and has_nan(out):
        np.copyto(out, np.inf, where=(np.abs(x.real) == np.inf) | (np.abs(x.imag) == np.inf))


def isfinite(x: Array, *, out: Array) -> None:
    """Compute ``abs(x) < inf``. ``np.isfinite`` writes wrong values to strided outputs (NumPy 2.4.6, AVX-512).

    Examples
    --------
    >>> out = np.empty(3, bool)
    >>> isfinite(np.array([1.0, np.inf, np.nan]), out=out)
    >>> out
    array([ True, False, False])
    """
    if x.dtype.kind == "c":
        np.logical_and(np.abs(x.real) < np.inf, np.abs(x.imag) < np.inf, out=out)
    elif x.dtype.kind == "f" and x.flags.c_contiguous and out.flags.c_contiguous:
        np.isfinite(x, out=out)
    elif x.dtype.kind == "f":
        np.less(np.abs(x), np.inf, out=out)
    else:
        np.copyto(out, True)


def isinf(x: Array, *, out: Array) -> None:
    """Compute ``abs(x) == inf``. ``np.isinf`` has the same fault as ``np.isfinite``.

    Examples
    --------
    >>> out = np.empty(3, bool)
    >>> isinf(np.array([1.0, -np.inf, np.nan]), out=out)
    >>> out
    array([False,  True, False])
    """
    if x.dtype.kind == "c":
        np.logical_or(np.abs(x.real) == np.inf, np.abs(x.imag) == np.inf, out=out)
    elif x.dtype.kind == "f" and x.flags.c_contiguous and out.flags.c_contiguous:
        np.isinf(x, out=out)
    elif x.dtype.kind == "f":
        np.equal(np.abs(x), np.inf, out=out)
    else:
        np.copyto(out, False)


def signbit(x: Array, *, out: Array) -> None:
    """Whether the sign bit is set. A float's sign bit is that of the signed integer with the same bits.

    Examples
    --------
    >>> out = np.empty(2, bool)
    >>> signbit(np.array([-0.0, 0.0]), out=out)
    >>> out
    array([ True, False])
    """
    np.less(x if x.dtype.kind in "iu" else x.view(f"i{x.itemsize}"), 0, out=out)


def sign(x: Array, *, out: Array) -> None:
    """Compute the sign. It is complex NaN if a part is NaN; ``np.sign`` ignores NaN if the other part is infinite.

    Examples
    --------
    >>> out = np.empty(2, complex)
    >>> sign(np.array([3 + 4j, complex(np.inf, np.nan)]), out=out)
    >>> out
    array([0.6+0.8j, nan+nanj])
    """
    if x.dtype.kind == "c":
        np.copyto(out, np.where(x != x, x.dtype.type(complex(np.nan, np.nan)), np.sign(x)))
    else:
        np.sign(x, out=out)


def ldexp(x: Array, y: Array, *, out: Array) -> None:
    """Compute ``x * 2**y``. NumPy takes an eighth of the time for int32, which has all exponents that differ.

    Examples
    --------
    >>> out = np.empty(2)
    >>> ldexp(np.array([0.75, 1.0]), np.array([4, -(2**40)]), out=out)
    >>> out
    array([12.,  0.])
    """
    np.ldexp(x, y.clip(-_EXPONENTS, _EXPONENTS).astype(np.int32) if y.dtype == np.int64 else y, out=out)


_EXPONENTS = 2200
"""More than lie between the least and the largest float64."""


def frexp_mantissa(x: Array, *, out: Array) -> None:
    """Compute the mantissa of ``frexp``.

    Examples
    --------
    >>> out = np.empty(2)
    >>> frexp_mantissa(np.array([12.0, np.inf]), out=out)
    >>> out
    array([0.75,  inf])
    """
    np.frexp(x, out, None)


def frexp_exponent(x: Array, *, out: Array) -> None:
    """Compute the exponent of ``frexp``. It is 0 for NaN and infinities, for which C does not define it.

    Examples
    --------
    >>> out = np.empty(2, np.int32)
    >>> frexp_exponent(np.array([12.0, np.inf]), out=out)
    >>> out
    array([4, 0], dtype=int32)
    """
    is_finite = np.isfinite(x)
    np.frexp(x, None, out)
    out *= is_finite


def real(x: Array, *, out: Array) -> None:
    """The real part.

    Examples
    --------
    >>> out = np.empty(1)
    >>> real(np.array([3 + 4j]), out=out)
    >>> out
    array([3.])
    """
    np.copyto(out, x.real)


def imag(x: Array, *, out: Array) -> None:
    """The imaginary part.

    Examples
    --------
    >>> out = np.empty(1)
    >>> imag(np.array([3 + 4j]), out=out)
    >>> out
    array([4.])
    """
    np.copyto(out, x.imag)


def angle(x: Array, *, out: Array) -> None:
    """The angle in the complex plane.

    Examples
    --------
    >>> out = np.empty(2)
    >>> angle(np.array([1j, 1]), out=out)
    >>> out
    array([1.57079633, 0.        ])
    """
    np.arctan2(x.imag, x.real, out=out)


def isclose(x: Array, y: Array, relative: Array, absolute: Array, *, out: Array) -> None:
    """Whether x is y, or both are finite and x is within ``absolute + relative * abs(y)`` of y.

    Examples
    --------
    >>> out = np.empty(2, bool)
    >>> isclose(np.array([1.0, 2.0]), np.array([1.001, 3.0]), np.array(0.01), np.array(0.0), out=out)
    >>> out
    array([ True, False])
    """
    near = np.abs(x - y) <= absolute.real + relative.real * np.abs(y)
    np.logical_or(x == y, near & np.isfinite(x) & np.isfinite(y), out=out)


def nan_to_num(x: Array, nan: Array, positive: Array, negative: Array, *, out: Array) -> None:
    """Replace NaN and the infinities by numbers, in each part of complex numbers.

    Examples
    --------
    >>> out = np.empty(3)
    >>> nan_to_num(np.array([np.nan, np.inf, 2.0]), np.array(0.0), np.array(9.0), np.array(-9.0), out=out)
    >>> out
    array([0., 9., 2.])
    """
    numbers = [each.copy() if np.may_share_memory(each, out) else each for each in (nan, positive, negative)]
    if x.dtype.kind == "c":
        _replace(x.real, [number.real for number in numbers], out.real)
        _replace(x.imag, [number.real for number in numbers], out.imag)
    elif x.dtype.kind == "f":
        _replace(x, numbers, out)
    else:
        np.copyto(out, x)


def _replace(x: Array, numbers: Sequence[Array], out: Array) -> None:
    """Copy real floats, with numbers for NaN, infinity and -infinity. `out` may be the memory of x."""
    masks = (x != x, x == np.inf, x == -np.inf)
    out[...] = x
    for mask, number in zip(masks, numbers, strict=True):
        np.copyto(out, number, where=mask)
