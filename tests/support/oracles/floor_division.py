"""Operands of float ``//`` and ``%`` whose quotients are integers, or beside one; NumPy follows Python bit for bit."""

from __future__ import annotations

import numpy as np


def near_integers(dtype: str, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Dividends and divisors of all signs and sizes; the quotients are below 2**22, for float64 below 2**51."""
    rng = np.random.default_rng(seed)
    bits, least, most = (21.9, -120, 100) if dtype == "float32" else (50.9, -1000, 900)
    y = (rng.choice([-1, 1], count) * rng.uniform(1, 2, count)).astype(dtype)
    y = np.ldexp(y, rng.integers(least, most, count).astype(np.int32))
    whole = np.floor(np.exp2(rng.uniform(0, bits, count))) * rng.choice([-1, 1], count)
    x = (whole.astype(dtype) * y).astype(dtype)
    beside = [np.nextafter(x, np.array(end, dtype)) for end in (-np.inf, np.inf)]
    small = (y * rng.uniform(-2, 2, count)).astype(dtype)
    choice = rng.integers(0, 5, count)
    return np.select([choice == k for k in range(4)], [x, *beside, small], np.copysign(np.array(0, dtype), x)), y


def expected(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """NumPy's result, which is Python's."""
    return np.floor_divide(x, y) if name == "floor_divide" else np.remainder(x, y)


def assert_same_bits(got: np.ndarray, wanted: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """Check that all bits are the same."""
    differ = np.flatnonzero(got.view(f"u{got.itemsize}") != wanted.view(f"u{got.itemsize}"))
    assert differ.size == 0, [(x[k], y[k], got[k], wanted[k]) for k in differ[:5]]
