"""Casts between all dtypes of the table, each rounding once, to nearest even, from the exact value.

NumPy and ml_dtypes reach a narrow float by way of float32. Where the source has more than float32's 24 bits, that
rounds twice: float64 ``1 + 2**-8 + 2**-40`` lies above the midpoint of two bfloat16 neighbours, becomes float32's
``1 + 2**-8``, a tie, and falls to the wrong one. Such pairs go through float32 *rounded to odd* instead: an inexact
value takes the neighbour whose last bit is 1, which no narrower format can mistake for a tie or for an exact value
(Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).

===============================  ================================================================================
source to target                 how
===============================  ================================================================================
complex to real                  refused, except to bool
any float to an integer          toward zero; out of range saturates, NaN is 0
float64 to an ml_dtypes float    float32 rounded to odd, then ml_dtypes
32- or 64-bit integer to         float64 (rounded to odd, if it must round), then as above; the other narrow floats
  bfloat16                       overflow long before 2**24, so that ml_dtypes' own cast is exact enough
anything to float8_e8m0fnu       as above, then a correction: ml_dtypes rounds all between 2**-127 and 2**-126 up
float8_e8m0fnu to float8/4       through float32, exactly: ml_dtypes has no direct cast
everything else                  NumPy and ml_dtypes themselves; tests/host/test_casts.py holds them to it
===============================  ================================================================================

What a format does with a value that it cannot hold is what ml_dtypes does from float32: infinity, or NaN, or (in
float4_e2m1fn, which has neither) the largest value, and for NaN a zero. float8_e8m0fnu has no sign, zero or
mantissa: negative numbers and zeros become NaN, what is below its smallest value becomes that, and a tie goes up.

How a pair is cast is looked up, never decided per call: ``caster`` hands it to a plan, ``cast`` is lookup and call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Caster = Callable[[Array, np.dtype[Any], "Array | None"], Array]

_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_BFLOAT16, _FLOAT8_E8M0 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e8m0fnu)


def dtype_named(name: str) -> np.dtype[Any]:
    """Return the dtype of a name, NumPy's or ml_dtypes'.

    Examples
    --------
    >>> dtype_named("bfloat16").itemsize
    2
    """
    return np.dtype(getattr(ml_dtypes, name, name))


def cast(x: Array, dtype: np.dtype[Any], out: Array | None = None) -> Array:
    """Convert an array to another dtype, rounding once; see the module docstring for the rules.

    Parameters
    ----------
    x : ndarray
        Any strides, any number of dimensions.
    dtype : dtype
        The target, of NumPy or ml_dtypes.
    out : ndarray, optional
        Where to write, of dtype ``dtype``, to whose shape x broadcasts. It may not overlap x in part.

    Returns
    -------
    ndarray
        ``out``, or a new array in x's stride order. Never x itself.

    Raises
    ------
    TypeError
        x is complex and ``dtype`` is neither complex nor bool.

    Examples
    --------
    >>> cast(np.array([1e20, -1.5, np.nan]), np.dtype(np.int8))
    array([127,  -1,   0], dtype=int8)
    """
    return _SILENT[x.dtype, dtype](x, dtype, out)


def caster(source: np.dtype[Any], target: np.dtype[Any]) -> Caster:
    """Return the function ``f(x, target, out) -> ndarray`` that casts this pair, for callers that keep it.

    Unlike `cast` it leaves floating-point warnings to the caller's ``np.errstate``, which costs as much as a small
    cast itself and is better entered once per plan.

    Examples
    --------
    >>> widen = caster(np.dtype(np.float16), np.dtype(np.float32))
    >>> widen(np.array([1.5], np.float16), np.dtype(np.float32), None)
    array([1.5], dtype=float32)
    """
    return _CASTERS[source, target]


def scalar(value: bool | int | float | complex, dtype: np.dtype[Any]) -> Array:
    """Convert a Python number to a 0-d array, rounding once, whatever the size of an int.

    An int too large for a float becomes infinity (or what the format has instead); one that an integer dtype does
    not hold raises OverflowError.

    Examples
    --------
    >>> float(scalar(2**70 + 2**46 + 1, np.dtype(np.float32)) - np.float32(2**70)) == 2.0**47
    True
    """
    if dtype.char in "fd" and not isinstance(value, complex) and (not value or 2**-100 < abs(value) < 2**24):
        return np.array(value, dtype)  # the common number, which cannot warn
    if isinstance(value, bool) or not isinstance(value, int):
        return cast(np.asarray(value), dtype)
    if dtype.kind in "iu":
        return np.array(value, dtype)
    if dtype.kind == "c":
        return cast(scalar(value, np.dtype(f"f{dtype.itemsize // 2}")), dtype)
    wide = _nearest_float(value) if dtype == _FLOAT64 else _odd_float(value)
    return cast(np.array(wide), dtype)


# --- Python ints of any size -----------------------------------------------------------------------------------


def _nearest_float(value: int) -> float:
    """``float(value)``, which rounds to nearest even, and infinity where that overflows."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _odd_float(value: int) -> float:
    """The float64 nearest to zero or exact, with its last bit set if anything was lost: rounded to odd."""
    magnitude, lost = abs(value), value.bit_length() - 53
    if lost <= 0:
        return float(value)
    kept = magnitude >> lost
    try:
        rounded = math.ldexp(kept | (kept << lost != magnitude), lost)
    except OverflowError:
        rounded = math.inf
    return rounded if value > 0 else -rounded


# --- the ways to cast -------------------------------------------------------------------------------------------


def _native(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """NumPy's or ml_dtypes' own cast."""
    if out is None:
        return x.astype(dtype)
    np.copyto(out, x, casting="unsafe")
    return out


def _refuse(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    raise TypeError(
        f"cast: expected a real array for {dtype.name}, got {x.dtype.name}, whose imaginary part would be lost: "
        "write x.real to drop it"
    )


def _through_odd(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """Anything to a narrow float."""
    return _native(_odd_float32(x), dtype, out)


def _to_scale(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """Anything to float8_e8m0fnu; below the middle of its two smallest values the smallest, 0, is the nearest."""
    near = _odd_float32(x)
    result = _native(near, dtype, out)
    np.copyto(result.view(np.uint8), 0, where=(near > 0) & (near < 1.5 * 2.0**-127))
    return result


def _odd_float64(x: Array) -> Array:
    """64-bit integers as float64; beyond 53 bits the last 11 collapse into one that says whether any was set."""
    odd = (x >> 11 | ((x & 2047) != 0)) << 11
    return np.where((x >= -(2**53)) & (x <= 2**53), x, odd).astype(_FLOAT64)


def _odd_float32(x: Array) -> Array:
    """As float32 rounded to odd: the nearest, stepped back toward zero if it went past, last bit set if inexact."""
    if x.dtype == _FLOAT32 or x.dtype.itemsize <= 2:
        return x.astype(_FLOAT32, copy=False)
    wide = _odd_float64(x) if x.dtype.kind in "iu" and x.dtype.itemsize == 8 else x.astype(_FLOAT64, copy=False)
    near = wide.astype(_FLOAT32)
    back, bits = near.astype(_FLOAT64), near.view(np.uint32)
    np.subtract(bits, np.abs(back) > np.abs(wide), out=bits)
    np.bitwise_or(bits, back != wide, out=bits)
    return near


def _to_integer(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """Clip, then truncate. Where the float has no room for the largest integer, the power of two above stands in."""
    wide = x if x.dtype.itemsize >= 4 else x.astype(_FLOAT32)
    bits, signed = dtype.itemsize * 8, dtype.kind == "i"
    low, above = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
    exact = bits <= (16 if wide.dtype == _FLOAT32 else 32)
    clipped = np.maximum(wide, float(low), out=np.empty_like(wide))
    np.minimum(clipped, float(above - exact), out=clipped)
    result = _native(clipped, dtype, out)
    if (nan := np.isnan(clipped)).any():
        np.copyto(result, 0, where=nan)
    if not exact and (beyond := clipped == above).any():
        np.copyto(result, above - 1, where=beyond)
    return result


# --- which pair goes which way ----------------------------------------------------------------------------------


def _kind(dtype: np.dtype[Any]) -> str:
    """NumPy's kind letter, with ml_dtypes' floats (kind V or f) counted as floats."""
    return dtype.kind if dtype.kind in "biuc" else "f"


def _is_ml(dtype: np.dtype[Any]) -> bool:
    return dtype.type.__module__.startswith("ml_dtypes")


def _choose(source: np.dtype[Any], target: np.dtype[Any]) -> Caster:
    kinds = _kind(source) + _kind(target)
    if source == target or kinds[1] == "b":
        return _native
    if kinds[0] == "c" and kinds[1] != "c":
        return _refuse
    if kinds in ("fi", "fu"):
        return _to_integer
    if target == _FLOAT8_E8M0:
        return _to_scale
    if _is_ml(target) and source in (_FLOAT64, _FLOAT8_E8M0):
        return _through_odd
    if target == _BFLOAT16 and kinds[0] in "iu" and source.itemsize >= 4:
        return _through_odd
    return _native


def _never_warns(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether the pair raises no floating-point flag for any value, a signalling NaN included."""
    if source == target:
        return True
    if _kind(source) in "biu":
        return target != np.float16
    return source.itemsize <= 2 and target == _FLOAT32


class _Casters(dict[tuple[np.dtype[Any], np.dtype[Any]], Caster]):
    """Pair -> function, chosen at first use."""

    def __missing__(self, pair: tuple[np.dtype[Any], np.dtype[Any]]) -> Caster:
        return self.setdefault(pair, _choose(*pair))


class _SilentCasters(_Casters):
    """The same, with ``np.errstate`` around those that may warn."""

    def __missing__(self, pair: tuple[np.dtype[Any], np.dtype[Any]]) -> Caster:
        found = _CASTERS[pair]
        return self.setdefault(pair, found if _never_warns(*pair) else np.errstate(all="ignore")(found))


_CASTERS, _SILENT = _Casters(), _SilentCasters()
