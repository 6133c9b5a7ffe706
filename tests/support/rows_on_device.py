"""Rows on a device, emulated or real, whose results have the bits of the host: quotients, and lanes in groups."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

import tilearray as ta
from support.trees import bits


def divided(x: Any, y: Any) -> Any:
    """Divide each row by a number."""
    return x / ta.max(y, axis=1)[:, None]


def largest_of_divided(x: Any, y: Any) -> Any:
    """Divide each row by a number, and reduce the columns."""
    return ta.max(ta.abs(x / y[:, None]), axis=0)


def check_quotients(device: Any) -> None:
    """Rows of dividends, each by its own divisor; half of the quotients of float32 lie between two denormals."""
    rng = np.random.default_rng(3)
    for dtype in ("float32", "bfloat16", "float16"):
        narrow = np.dtype(getattr(ml_dtypes, dtype, dtype))
        word = np.dtype(f"u{narrow.itemsize}")
        shape = (40, 600)
        x = rng.integers(0, np.iinfo(word).max, shape, word).view(narrow)
        divisors = rng.integers(0, np.iinfo(word).max, shape[0], word).view(narrow)
        divisors[:5] = 0, np.inf, -np.inf, np.nan, np.finfo(np.float32).smallest_subnormal
        if dtype == "float32":
            divisors[20:] = rng.integers(1, 1 << 10, 20) * 2.0 ** rng.integers(-90, 90, 20)
            halves = (2 * rng.integers(0, 1 << 13, (20, 600)) + 1) * 2.0**-150
            x[20:] = halves * divisors[20:, None].astype(np.float64)
        y = np.broadcast_to(divisors[:, None], shape)
        mine, others = ta.asarray(x, device="cpu"), ta.asarray(y.copy(), device="cpu")
        found = ta.fuse(divided)(mine.to_device(device), others.to_device(device))
        assert bits(found) == bits(divided(mine, others)), dtype
        both = mine[5:], others[5:, 0].copy()
        found = ta.fuse(largest_of_divided)(*[each.copy().to_device(device) for each in both])
        assert bits(found) == bits(largest_of_divided(*both)), dtype


def crossed(function: Any, x: Any, y: Any) -> Any:
    """Reduce the rows of two arrays, of which one is dense across them."""
    order = tuple(range(len(x.shape)))[::-1]
    return function(x * ta.permute_dims(y, order), axis=-1)


def check_groups(device: Any) -> None:
    """Few long rows, with an operand that is dense across them: the lanes of a row are several groups."""
    rng = np.random.default_rng(2)
    shapes = (("float32", (5, 1100)), ("bfloat16", (2, 1030)), ("int16", (3, 2, 700)), ("complex64", (70, 600)))
    for dtype, shape in shapes:
        x = ta.asarray(rng.normal(size=shape) * 50, device="cpu").astype(dtype)
        y = ta.asarray(rng.normal(size=shape[::-1]) * 50, device="cpu").astype(dtype)
        for function in (ta.sum, ta.var) if dtype != "int16" else (ta.sum, ta.max):
            found = ta.fuse(partial(crossed, function))(x.to_device(device), y.to_device(device))
            assert bits(found) == bits(crossed(function, x, y)), (dtype, shape)
