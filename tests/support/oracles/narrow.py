"""Functions of bfloat16, computed in float64 and rounded; and how far results are from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 0.5, -2.0, np.inf, -np.inf, np.nan, 127.5, 255.0, 256.0, -258.0], BFLOAT16
)
"""Exponents and coordinates with rules of their own."""


def _rounded(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    def exact(*given: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return function(*[x.astype(np.float64) for x in given]).astype(BFLOAT16)

    return exact


EXACT = {name: _rounded(getattr(np, ufunc)) for name, ufunc in
         {"asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2", "power": "power"}.items()}  # fmt: skip
"""The functions by name."""


def patterns(step: int) -> np.ndarray:
    """Every `step`-th bfloat16, NaN among them."""
    return np.arange(0, 1 << 16, step, dtype=np.uint16).view(BFLOAT16)


def apart(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """The distances in ulp; that of a NaN from a number, and of two zeros of other signs, is 65536."""
    codes = [np.where(c < 0, -(c & 0x7FFF), c) for c in (x.view(np.int16).astype(np.int32) for x in (found, expected))]
    nan = np.isnan(found.astype(np.float32)), np.isnan(expected.astype(np.float32))
    other_zero = (codes[0] == 0) & (codes[1] == 0) & (found.view(np.int16) != expected.view(np.int16))
    distance = np.where(other_zero, 65536, np.abs(codes[0] - codes[1]))
    return np.where(nan[0] != nan[1], 65536, np.where(nan[0], 0, distance))
