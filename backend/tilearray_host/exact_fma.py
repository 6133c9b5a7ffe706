"""``fma``: the product and the sum, rounded once.

A float32 product is exact in float64. The sum is rounded to odd in float64, so the later rounding to float32 is the
only one with an effect. Where the rounded sum is not on a tie of float32, it rounds to the same float32, and takes less
time: so that is computed first. A float64 product is split into a pair of float64 (T. Dekker, "A floating-point
technique for extending the available precision", Numerische Mathematik 18, 1971). That pair and the third operand are
added, and the tail of the sum is rounded to odd (S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded
sums: proved algorithms using rounding to odd", IEEE Transactions on Computers 57, 2008). If exponents are so extreme
that a part could overflow or underflow, those elements are computed one by one in exact fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_SPLITTER = 2.0**27 + 1
_LEAST, _GREATEST = 2.0**-900, 2.0**900


def fma(x: Array, y: Array, z: Array, *, out: Array) -> None:
    """Compute ``x * y + z``, rounded once; integers wrap.

    Examples
    --------
    >>> out = np.empty(1)
    >>> fma(np.array([1 + 2.0**-30]), np.array([1 - 2.0**-30]), np.array([-1.0]), out=out)
    >>> bool(out[0] == -(2.0**-60))
    True
    """
    if x.dtype.kind != "f":
        np.add(x * y, z, out=out)
    elif x.dtype.itemsize == 4:
        out[...] = _fma32(x, y, z)
    else:
        np.copyto(out, fma64(x, y, z))


def _fma32(x: Array, y: Array, z: Array) -> Array:
    """Return ``x * y + z`` of float32."""
    product = np.multiply(x, y, dtype=np.float64)
    total = np.asarray(np.add(product, z, dtype=np.float64))
    near = total.astype(np.float32)
    odd = _may_be_tie(total)
    if odd.any():
        product, z = (np.broadcast_to(part, total.shape)[odd] for part in (product, z))
        near[odd] = add_to_odd(product, z.astype(np.float64))
    return near


_TIE, _BELOW = np.int64(2**28), 2.0**-126


def _may_be_tie(total: Array) -> Array:
    """Whether a float64 is half-way between two float32, as its last 29 bits say, or is subnormal as a float32."""
    return ((total.view(np.int64) & np.int64(2**29 - 1)) == _TIE) | ((np.abs(total) < _BELOW) & (total != 0))


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded sum and its error (D. Knuth)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded product and its error (T. Dekker)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _split(a: Array) -> tuple[Array, Array]:
    """Return the two halves of a significand."""
    scaled = a * _SPLITTER
    high = scaled - (scaled - a)
    return high, a - high


def add_to_odd(a: Array, b: Array) -> Array:
    """Return the sum rounded to odd: of the two neighbours of an inexact sum, the one whose last bit is set."""
    total, error = _two_sum(a, b)
    bits = total.view(np.int64)
    inexact = (error != 0) & np.isfinite(total) & ((bits & 1) == 0)
    toward = np.where((error > 0) == (total > 0), 1, -1)  # away from zero, or toward it
    return np.where(inexact, bits + toward, bits).view(np.float64)


def fma64(
    x: Array,
    y: Array,
    z: Array,
    add: Callable[[Array, Array], Array] = np.add,
    step: Callable[[float, int], float] = lambda nearest, left: nearest,
) -> Array:
    """Return ``x * y + z`` of float64.

    The result is rounded as `add` rounds sums. `step` rounds a single number: it takes the nearest value and the sign
    of the remainder.
    """
    product, error = two_product(x, y)
    total, tail = _two_sum(z, error)
    result, rest = _two_sum(product, total)
    result = np.asarray(add(result, add_to_odd(tail, rest)))
    naive = add(x * y, z)
    # An exact zero keeps the sign of the naive sum, as IEEE 754 requires. If only z is infinite, the result is z.
    result = np.where((result == 0) & (naive == 0), naive, result)
    finite = np.isfinite(x) & np.isfinite(y)
    result = np.where(finite & np.isfinite(z), result, np.where(finite, z, naive))
    far = finite & np.isfinite(z) & ~(_near(product, (x == 0) | (y == 0)) & _near(z, z == 0) & _near(x) & _near(y))
    if not far.any():
        return result
    far = np.broadcast_to(far, result.shape)
    columns = (np.broadcast_to(operand, result.shape)[far].tolist() for operand in (x, y, z, naive))
    result[far] = [step(*fma_exactly(*row)) for row in zip(*columns)]
    return result


def _near(x: Array, zero: Any = True) -> Array:
    """Whether no part of a value can overflow or underflow. A zero qualifies if it is known to be exact."""
    size = np.abs(x)
    return ((size >= _LEAST) & (size <= _GREATEST)) | ((size == 0) & zero)


def fma_exactly(x: float, y: float, z: float, zero: float = 0.0) -> tuple[float, int]:
    """Return ``x * y + z`` of finite numbers, rounded to nearest, and the sign of the remainder. Computes in fractions.

    An exact zero becomes the given `zero`.

    Examples
    --------
    >>> fma_exactly(1e300, 1e10, -1e308), fma_exactly(5e-324, 0.5, 0.0), fma_exactly(1.0, 2.0, 0.5)
    ((inf, -1), (0.0, 1), (2.5, 0))
    """
    from fractions import Fraction  # rarely needed, and slow to import because it imports decimal

    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if not exact:
        return zero, 0
    sign = 1 if exact > 0 else -1
    try:
        nearest = exact.numerator / exact.denominator
    except OverflowError:
        return sign * math.inf, -sign
    return nearest or sign * 0.0, (exact > Fraction(nearest)) - (exact < Fraction(nearest))
