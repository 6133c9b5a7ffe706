"""Arithmetic in every rounding mode, and with denormals flushed: the variants of functions of the op table.

Each function computes the result rounded to nearest, and the sign of the remainder to the exact result. If the mode
requires the other neighbour, the result moves by one step. The remainder is exact. For a sum it comes from T. Dekker's
fast two-sum. For float32 products, quotients and roots it is computed in float64, which holds the products. For
float64 it comes from Dekker's product of significands, without exponents, so that nothing overflows or underflows. The
functions do not change the processor's rounding mode, because it would affect all other code of the thread.

Modes are ``"rz"``, ``"rm"`` and ``"rp"``: toward zero, -infinity and +infinity. Casts are in
`tilearray_host.rounded_casts`. The caller enters ``np.errstate``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from tilearray_host import exact_fma

Array = np.ndarray[Any, np.dtype[Any]]
Function = Callable[..., Any]

MODES = ("rz", "rm", "rp")


def stepped(nearest: Array, remainder: Array, mode: str) -> Array:
    """Return the result in a mode: `nearest` or its neighbour. `remainder` has the sign of the exact value - `nearest`.

    Examples
    --------
    >>> bool(stepped(np.array([1.0]), np.array([-1e-30]), "rm")[0] == 1 - 2**-53)
    True
    """
    if mode == "rm":
        return np.where(remainder < 0, np.nextafter(nearest, -np.inf), nearest)
    if mode == "rp":
        return np.where(remainder > 0, np.nextafter(nearest, np.inf), nearest)
    beyond = np.where(nearest < 0, remainder > 0, (nearest > 0) & (remainder < 0))
    return np.where(beyond, np.nextafter(nearest, 0), nearest)


def _signed_zero(total: Array, x: Array, y: Array, mode: str) -> Array:
    """Return a sum whose exact zeros have the mode's sign: -0.0 toward -infinity, unless both operands are +0.0."""
    if mode != "rm":
        return total
    return np.where((total == 0) & (np.signbit(x) | np.signbit(y)), total.dtype.type(-0.0), total)


def add(x: Array, y: Array, mode: str) -> Array:
    total = np.asarray(x + y)
    swapped = np.abs(x) < np.abs(y)
    large, small = np.where(swapped, y, x), np.where(swapped, x, y)
    return stepped(_signed_zero(total, x, y, mode), small - (total - large), mode)


def subtract(x: Array, y: Array, mode: str) -> Array:
    return add(x, np.negative(y), mode)


def multiply(x: Array, y: Array, mode: str) -> Array:
    if x.dtype.itemsize == 4:
        return _narrowed(np.multiply(x, y, dtype=np.float64), mode)
    nearest = np.asarray(x * y)
    (x, x_exponent), (y, y_exponent) = np.frexp(x), np.frexp(y)
    product, error = exact_fma.two_product(x, y)
    return stepped(nearest, (product - np.ldexp(nearest, -(x_exponent + y_exponent))) + error, mode)


def _narrowed(wide: Array, mode: str) -> Array:
    """Round float64 to float32."""
    nearest = np.asarray(wide).astype(np.float32)
    return stepped(nearest, wide - nearest, mode)


def divide(x: Array, y: Array, mode: str) -> Array:
    nearest = np.asarray(x / y)
    overflown = np.isinf(nearest) & np.isfinite(x) & (y != 0)
    return stepped(nearest, np.where(overflown, -nearest, _remainder_of_quotient(x, y, nearest)), mode)


def _remainder_of_quotient(x: Array, y: Array, nearest: Array) -> Array:
    """Return a number with the sign of ``x / y - nearest``, computed as ``(x - nearest * y) / y``."""
    if x.dtype.itemsize == 4:
        return (x - np.multiply(nearest, y, dtype=np.float64)) * np.sign(y)
    sign = np.sign(y)
    (x, x_exponent), (y, y_exponent), (nearest, exponent) = np.frexp(x), np.frexp(y), np.frexp(nearest)
    product, error = exact_fma.two_product(nearest, y)
    scaled = np.ldexp(x, np.maximum(x_exponent - y_exponent - exponent, -1000))  # any, if the quotient underflowed
    return ((scaled - product) - error) * sign


def quotient_by(x: Array, y: Array, reciprocal: Array, *, out: Array) -> None:
    """Write ``x / y``; only GPUs need the reciprocal."""
    del reciprocal
    np.divide(x, y, out=out)


def sqrt(x: Array, mode: str) -> Array:
    nearest = np.asarray(np.sqrt(x))
    if x.dtype.itemsize == 4:
        return stepped(nearest, x - np.multiply(nearest, nearest, dtype=np.float64), mode)
    x, exponent = np.frexp(x)
    odd = exponent & 1
    root = np.ldexp(nearest, -((exponent - odd) >> 1))
    square, error = exact_fma.two_product(root, root)
    return stepped(nearest, (np.ldexp(x, odd) - square) - error, mode)


def fma(x: Array, y: Array, z: Array, mode: str) -> Array:
    """Return ``x * y + z``, rounded once."""
    if x.dtype.itemsize == 8:
        return exact_fma.fma64(x, y, z, partial(add, mode=mode), partial(_step_of_number, mode=mode))
    product = np.multiply(x, y, dtype=np.float64)
    total = exact_fma.add_to_odd(product, z.astype(np.float64))
    return _narrowed(_signed_zero(total, product, z, mode), mode)


def _step_of_number(nearest: float, remainder: int, mode: str) -> float:
    return float(stepped(np.float64(nearest), np.float64(remainder), mode))  # type: ignore[arg-type]


def flush(x: Array) -> Array:
    """Replace denormal float32 by zeros of the same sign.

    Examples
    --------
    >>> flush(np.array([1e-40, -1e-40, 1.0], np.float32))
    array([ 0., -0.,  1.], dtype=float32)
    """
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)


def minimum_number(x: Array, y: Array, *, out: Array) -> None:
    """Compute the smaller operand, or the other one if one is NaN; -0.0 is smaller than 0.0."""
    if x.dtype.kind == "f":
        _extreme_number(np.minimum, -0.0, x, y, out)
    else:
        np.minimum(x, y, out=out)


def maximum_number(x: Array, y: Array, *, out: Array) -> None:
    """Compute the larger operand, or the other one if one is NaN; 0.0 is larger than -0.0."""
    if x.dtype.kind == "f":
        _extreme_number(np.maximum, 0.0, x, y, out)
    else:
        np.maximum(x, y, out=out)


def _extreme_number(ufunc: np.ufunc, zero: float, x: Array, y: Array, out: Array) -> None:
    """Compute an extreme, but the other operand of NaN, and `zero` of zeros of both signs.

    Not by np.fmin and np.fmax, which do not treat every signalling NaN as NaN. NumPy copies fast by sparse masks.
    """
    found = np.asarray(ufunc(x, y))
    if not np.all(np.abs(found) > 0):  # zeros and NaN
        np.copyto(found, zero, where=(x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y)))
        np.copyto(found, y, where=x != x)
        np.copyto(found, x, where=y != y)
    out[...] = found


# --- the variants, by name ------------------------------------------------------------------------------------------

ROUNDED: dict[str, Function] = {
    "add": add, "subtract": subtract, "multiply": multiply, "divide": divide, "sqrt": sqrt, "fma": fma,
}  # fmt: skip
FLUSHED = (*ROUNDED, "rsqrt", "exp2", "minimum", "maximum")


def variants(functions: Mapping[str, Function]) -> dict[str, Function]:
    """Return all variants of functions of the op table by name: ``add_rz``, ``minimum_number``, ``add_rz_ftz``, ..."""
    found: dict[str, Function] = {"minimum_number": minimum_number, "maximum_number": maximum_number}
    found |= {
        f"{name}_{mode}": partial(_rounded, function, mode) for name, function in ROUNDED.items() for mode in MODES
    }
    plain = found | {name: functions[name] for name in FLUSHED}
    return found | {f"{name}_ftz": partial(_flushed, function) for name, function in plain.items()}


def _rounded(function: Function, mode: str, *operands: Array, out: Array) -> None:
    np.copyto(out, function(*operands, mode))


def _flushed(function: Function, *operands: Array, out: Array) -> None:
    function(*map(flush, operands), out=out)
    np.copyto(out, flush(out))
