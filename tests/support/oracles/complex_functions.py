"""Complex functions: operands that hurt, their values by mpmath or in long doubles, and errors in ulps of the modulus.

A result is near if its distance from the exact one is a few ulps of the exact one's modulus: `ulps` counts them. The
special values are those of the array API standard, which the host follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

NAMES = [
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
]
ALONG_IMAG = ("exp", "exp2", "expm1", "sinh", "cosh", "tanh")
"""Functions that turn with the imaginary part; sine, cosine and tangent turn with the real one."""

# --- operands -----------------------------------------------------------------------------------------------------


def drawn(name: str, count: int, dtype: str, seed: int = 0) -> np.ndarray:
    """Operands: moderate, of all sizes, near the unit circle and near points where a function is 0 or infinite."""
    rng = np.random.default_rng([seed, *name.encode()])
    part = np.float32 if dtype == "complex64" else np.float64
    least, most = (-149, 127) if dtype == "complex64" else (-1074, 1023)

    def scaled(low: float, high: float, size: int) -> np.ndarray:
        return rng.choice([-1.0, 1.0], size) * np.exp2(rng.uniform(low, high, size))

    n = -(-count // 8)
    points = np.array([0, 1, -1, 1j, -1j, np.pi / 2, 1j * np.pi / 2, 2j * np.pi, np.pi])[rng.integers(0, 9, n)]
    circle = np.exp(1j * rng.uniform(-np.pi, np.pi, n))
    real, imag = np.hstack([
        rng.normal(size=(2, 2 * n)),
        [scaled(-10, 8, n), scaled(-10, 8, n)],
        [scaled(-60, 49, n), scaled(-60, 49, n)],
        [scaled(least, most, n), scaled(least, most, n)],
        [circle.real, circle.imag],
        [circle.real * (1 + scaled(-50, -1, n)), circle.imag],
        [points.real + scaled(-50, 0, n), points.imag + scaled(-50, 0, n)],
    ])[:, :count]  # fmt: skip
    turning = imag if name in ALONG_IMAG else real if name in ("sin", "cos", "tan") else np.zeros(count)
    limit = 2.0**8 if name == "exp2" else 2.0**40  # a multiple of log(2) loses digits in long doubles
    turning[:] = np.where(np.abs(turning) < limit, turning, rng.uniform(-8, 8, count))
    found = np.empty(count, dtype)
    found.real, found.imag = real.astype(part), imag.astype(part)
    return found


def drawn_powers(count: int, dtype: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Bases and exponents; the power's logarithm is below 1000, so that most powers are in range."""
    rng = np.random.default_rng(seed)
    base = drawn("pow", count, dtype, seed)
    with np.errstate(all="ignore"):
        size = np.abs(np.log(base.astype(np.complex128))) + 1e-3
    turn = np.exp(1j * rng.uniform(-np.pi, np.pi, count)) * np.exp2(rng.uniform(-8, 6 if dtype == "complex64" else 9))
    exponent = np.where(rng.random(count) < 0.2, rng.integers(-9, 9, count), turn / size)
    with np.errstate(all="ignore"):
        return base, exponent.astype(dtype)


def special() -> np.ndarray:
    """Zeros, numbers, infinities and NaN in both parts."""
    parts = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 1e-30, 30.0, -30.0, np.inf, -np.inf, np.nan]
    return np.array([complex(real, imag) for real in parts for imag in parts])


# --- values -------------------------------------------------------------------------------------------------------


def by_mpmath(name: str, *columns: np.ndarray) -> list[Any]:
    """The values of a function, to more digits than any operand needs."""
    mp = pytest.importorskip("mpmath")
    values = []
    for row in zip(*[column.tolist() for column in columns], strict=True):
        sizes = [abs(np.frexp(part)[1]) for z in row for part in (z.real, z.imag)]
        with mp.workprec(200 + (2 * max(sizes) if max(sizes) > 60 else 120)):
            values.append(_exact(mp, name, *map(mp.mpc, row)))
    return values


def _exact(mp: Any, name: str, z: Any, w: Any = 0) -> Any:
    match name:
        case "pow":
            return mp.exp(w * mp.log(z)) if z else mp.mpc(0)
        case "exp2":
            return mp.exp(z * mp.log(2))
        case "expm1":
            return mp.exp(z) - 1
        case "log1p":
            return mp.log(1 + z)
        case "log2" | "log10":
            return mp.log(z) / mp.log(int(name[3:]))
        case _:
            return getattr(mp, name)(z)


def ulps(got: np.ndarray, values: list[Any]) -> np.ndarray:
    """Distances in ulps of the modulus; 0 where a part of the value is beyond the dtype."""
    mp = pytest.importorskip("mpmath")
    info = np.finfo(got.dtype)
    found = np.zeros(got.size)
    with mp.workprec(200):
        for position, (ours, value) in enumerate(zip(got.tolist(), values, strict=True)):
            if max(abs(value.real), abs(value.imag)) < mp.mpf(float(info.max)):
                size = abs(value)
                exponent = int(mp.floor(mp.log(size, 2))) if size else info.minexp
                step = mp.mpf(2) ** (max(exponent, info.minexp) - info.nmant)
                found[position] = float(abs(mp.mpc(ours) - value) / step) if np.isfinite(ours) else np.inf
    return found


def in_long_double(name: str, *columns: np.ndarray) -> np.ndarray:
    """The values of a function with 11 more bits than complex128: quick, for many operands that are not extreme."""
    z, *more = (column.astype(np.clongdouble) for column in columns)
    x, y = z.real, z.imag
    with np.errstate(all="ignore"):
        match name:
            case "exp2":
                return np.exp(x * np.log(np.longdouble(2))) * _turned(y * np.log(np.longdouble(2)))
            case "expm1":
                real = np.expm1(x) * np.cos(y) - 2 * np.sin(y / 2) ** 2
                return real + 1j * (np.exp(x) * np.sin(y))
            case "log1p":
                near = np.log1p(x * (2 + x) + y * y) / 2
                return np.where(np.abs(z) < 0.25, near + 1j * np.arctan2(y, 1 + x), np.log(1 + z))
            case "log2" | "log10":
                return np.log(z) / np.log(np.longdouble(name[3:]))
            case "pow":
                return np.power(z, *more)
            case _:
                return getattr(np, name)(z)


def _turned(angle: np.ndarray) -> np.ndarray:
    return np.cos(angle) + 1j * np.sin(angle)


def wide_ulps(got: np.ndarray, wide: np.ndarray) -> np.ndarray:
    """Distances in ulps of the modulus; 0 where a part of the value is beyond the dtype."""
    info = np.finfo(got.dtype)
    largest = np.maximum(np.abs(wide.real), np.abs(wide.imag))
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(np.abs(wide))[1] - 1, info.minexp)
        found = np.abs(got.astype(np.clongdouble) - wide) / np.ldexp(np.longdouble(1), exponent - info.nmant)
    return np.where(largest < info.max, np.where(np.isfinite(got), found, np.inf), 0).astype(np.float64)


# --- special values -----------------------------------------------------------------------------------------------


def differences(function: Callable[..., np.ndarray], name: str, dtype: str) -> list[tuple[complex, complex, complex]]:
    """Operand, result and the host's result, where they differ in more than rounding.

    The standard leaves signs open where an operand has a NaN or two infinities.
    """
    import tilearray as ta

    z = special().astype(dtype)
    got = function(z)
    expected = ta.to_numpy(getattr(ta, name)(ta.asarray(z, device="cpu")))
    bits = 2.0 ** (8 - np.finfo(dtype).nmant)
    found = []
    for row in zip(z.tolist(), got.tolist(), expected.tolist(), strict=True):
        operand, ours, theirs = row
        parts = np.array([[ours.real, ours.imag], [theirs.real, theirs.imag]])
        is_open = np.isnan([operand.real, operand.imag]).any() or np.isinf([operand.real, operand.imag]).all()
        if is_open or np.isnan(parts).any():
            parts = np.abs(parts)
        size = np.max(np.abs(parts[1]), where=np.isfinite(parts[1]), initial=0)
        same = (parts[0] == parts[1]) | (np.isnan(parts[0]) & np.isnan(parts[1]))
        with np.errstate(all="ignore"):
            near = (np.abs(parts[0] - parts[1]) <= bits * size) & np.isfinite(parts).all(0)
        signs = np.isnan(parts[1]) | (parts[1] != 0) | (np.signbit(parts[0]) == np.signbit(parts[1]))
        if not ((same | near) & signs).all():
            found.append(row)
    return found
