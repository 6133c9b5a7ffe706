"""Casts in every rounding mode, and casts that saturate. `tilearray_host.casts` has the casts to nearest even.

float64 holds every source float exactly. A value is divided by the target's step at its magnitude (the power of two of
the last bit there). The mode rounds the quotient to an integer, and the integer is multiplied by the step. Division
and multiplication are exact. A value beyond the largest becomes the largest value if the mode rounds toward it, else
infinity, which the target's format handles as in any cast. float8_e8m0fnu has only powers of two: a value below its
smallest becomes the smallest in every mode.

The modes are ``"rn"``, ``"rz"``, ``"rm"``, ``"rp"`` and ``"ra"`` (to nearest, with ties away from zero). Floats become
integers in ``"rni"``, ``"rmi"``, ``"rpi"`` and ``"rai"``: an integral float first, which is then clamped.

A cast to 8 bits or fewer takes the results from a table: see `tilearray_host.casts`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tilearray_host.casts import Array, Caster, Table, TableOfOdd, caster, is_small_float, is_tabled, odd_float32

_FLOAT32, _BFLOAT16 = np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)
_FLOAT64, _FLOAT8_E8M0 = np.dtype(np.float64), np.dtype(ml_dtypes.float8_e8m0fnu)


def _away(x: Array) -> Array:
    size = np.abs(x)
    whole = np.floor(size)
    return np.copysign(whole + (size - whole >= 0.5), x)


INTEGERS: dict[str, Callable[[Array], Array]] = {
    "rn": np.rint, "rz": np.trunc, "rm": np.floor, "rp": np.ceil, "ra": _away,
}  # fmt: skip


def rounded_caster(source: np.dtype[Any], target: np.dtype[Any], mode: str, saturate: bool) -> Caster:
    """Return the function ``f(x, target, out) -> ndarray`` that casts this pair in a rounding mode and may saturate.

    The caller handles floating-point warnings, as with `casts.caster`.

    Examples
    --------
    >>> down = rounded_caster(np.dtype(np.float64), np.dtype(np.float16), "rm", False)
    >>> down(np.array([1.0001, -1.0001]), np.dtype(np.float16), None)
    array([ 1.   , -1.001], dtype=float16)
    """
    if target.kind in "iu":
        if mode.endswith("i") and mode != "rzi":
            return _rounded_to_integers(source, target, mode.removesuffix("i"))
        return _clamped(source, target) if saturate and source.kind in "iu" else caster(source, target)
    if target == _FLOAT64 and not saturate:
        return caster(source, target)
    if is_small_float(target):
        return _by_table(source, target, mode, saturate)
    return _by_steps(source, target, mode, saturate)


def _by_table(source: np.dtype[Any], target: np.dtype[Any], mode: str, saturate: bool) -> Caster:
    """Return a cast to a float of 8 bits or fewer."""
    if is_tabled(source, target) or source == target:
        return Table(source, target, _by_steps(source, target, mode, saturate))
    if source not in (_FLOAT32, _FLOAT64):
        return _by_steps(source, target, mode, saturate)
    of_odd = TableOfOdd(target, *(_by_steps(each, target, mode, saturate) for each in (_BFLOAT16, _FLOAT32)))
    if source == _FLOAT32:
        return of_odd

    def convert(x: Array, target: np.dtype[Any], out: Array | None) -> Array:
        return of_odd(odd_float32(x), target, out)

    return convert


def _by_steps(source: np.dtype[Any], target: np.dtype[Any], mode: str, saturate: bool) -> Caster:
    """Return a cast to a float that counts the target's steps."""
    widen, store = caster(source, _FLOAT64), caster(_FLOAT64, target)

    def convert(x: Array, target: np.dtype[Any], out: Array | None) -> Array:
        return store(round_to(widen(x, _FLOAT64, None), target, mode, saturate), target, out)

    return convert


def round_to(x: Array, target: np.dtype[Any], mode: str, saturate: bool) -> Array:
    """Round float64 to the values of a floating-point dtype. The result is float64.

    Examples
    --------
    >>> round_to(np.array([1e6, -1e6, 0.3]), np.dtype(np.float16), "rp", False)
    array([            inf, -6.55040000e+04,  3.00048828e-01])
    """
    limits: Any = ml_dtypes.finfo(target)
    largest, steps = float(limits.max), -int(limits.nmant)
    _, exponent = np.frexp(x)
    step = np.ldexp(1.0, np.maximum(exponent - 1, int(limits.minexp)) + steps)
    near = np.asarray(INTEGERS[mode](x / step) * step)
    if target == _FLOAT8_E8M0:
        near = np.where(x > 0, np.maximum(near, float(limits.tiny)), near)
    if saturate:
        return np.clip(near, -largest, largest)
    outward = {"rz": False, "rm": near < 0, "rp": near > 0}.get(mode, True)
    beyond = np.where(outward, np.inf, largest)
    return np.where((np.abs(near) > largest) & np.isfinite(x), np.copysign(beyond, near), near)


def _rounded_to_integers(source: np.dtype[Any], target: np.dtype[Any], mode: str) -> Caster:
    """Return a cast from a float to integers in a mode of floats."""
    wide = source if source.itemsize >= 4 else _FLOAT32
    widen, truncate = caster(source, wide), caster(wide, target)

    def convert(x: Array, target: np.dtype[Any], out: Array | None) -> Array:
        return truncate(np.asarray(INTEGERS[mode](widen(x, wide, None))), target, out)

    return convert


def _clamped(source: np.dtype[Any], target: np.dtype[Any]) -> Caster:
    """Return a cast from integers to integers that clamps to the target's range."""
    before, after, convert = np.iinfo(source), np.iinfo(target), caster(source, target)
    low, high = max(before.min, after.min), min(before.max, after.max)

    def clamp(x: Array, target: np.dtype[Any], out: Array | None) -> Array:
        return convert(np.clip(x, source.type(low), source.type(high)), target, out)

    return clamp
