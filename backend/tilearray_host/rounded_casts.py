"""Casts in every rounding mode, and casts that saturate. `tilearray_host.casts` has those to nearest even.

Every float that is cast is exact in float64. There it is a count of steps of the target at its own size (a step is the
power of two that its last bit stands for), and the count is rounded to an integer by the mode; both are exact. What is
past the largest value stays there where the mode points back to it, and becomes an infinity else, which the target's
format has or has not, as in any cast. float8_e8m0fnu has no values but powers of two, and none below the smallest:
that is what a smaller one becomes in every mode.

Modes are ``"rn"``, ``"rz"``, ``"rm"``, ``"rp"`` and ``"ra"``, the nearest with ties away from zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tilearray_host.casts import Array, Caster, caster

_FLOAT64, _FLOAT8_E8M0 = np.dtype(np.float64), np.dtype(ml_dtypes.float8_e8m0fnu)


def _away(x: Array) -> Array:
    size = np.abs(x)
    whole = np.floor(size)
    return np.copysign(whole + (size - whole >= 0.5), x)


INTEGERS: dict[str, Callable[[Array], Array]] = {
    "rn": np.rint, "rz": np.trunc, "rm": np.floor, "rp": np.ceil, "ra": _away,
}  # fmt: skip


def rounded_caster(source: np.dtype[Any], target: np.dtype[Any], mode: str, saturate: bool) -> Caster:
    """Return the function ``f(x, target, out) -> ndarray`` that casts this pair in a mode, and may saturate.

    Floating-point warnings are left to the caller, as by `casts.caster`.

    Examples
    --------
    >>> down = rounded_caster(np.dtype(np.float64), np.dtype(np.float16), "rm", False)
    >>> down(np.array([1.0001, -1.0001]), np.dtype(np.float16), None)
    array([ 1.   , -1.001], dtype=float16)
    """
    if target.kind in "iu":
        return _clamped(source, target) if saturate and source.kind in "iu" else caster(source, target)
    if target == _FLOAT64 and not saturate:
        return caster(source, target)
    widen, store = caster(source, _FLOAT64), caster(_FLOAT64, target)

    def convert(x: Array, target: np.dtype[Any], out: Array | None) -> Array:
        return store(round_to(widen(x, _FLOAT64, None), target, mode, saturate), target, out)

    return convert


def round_to(x: Array, target: np.dtype[Any], mode: str, saturate: bool) -> Array:
    """Round float64 to the values of a float, in float64.

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


def _clamped(source: np.dtype[Any], target: np.dtype[Any]) -> Caster:
    """Integers to integers, clamped to what the target holds."""
    before, after, convert = np.iinfo(source), np.iinfo(target), caster(source, target)
    low, high = max(before.min, after.min), min(before.max, after.max)

    def clamp(x: Array, target: np.dtype[Any], out: Array | None) -> Array:
        return convert(np.clip(x, source.type(low), source.type(high)), target, out)

    return clamp
