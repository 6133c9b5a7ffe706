"""Scans of drawn arrays: the same bits on every device."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilearray as ta
from support.oracles.reductions import (
    DTYPES,
    drawn_array,
    drawn_on_both,
    drawn_shape,
    picks,
    same_end,
    varied_shape,
)

SCANS: dict[str, Any] = {
    "cumulative_sum": ta.cumulative_sum,
    "cumulative_prod": ta.cumulative_prod,
    "maximum": ta.maximum.accumulate,
    "minimum": ta.minimum.accumulate,
}


SCANS_OF_REAL = ("maximum", "minimum")


def check_same_bits(device: Any, seed: int, count: int, elements: int, kinds: int = 0) -> None:
    """Compare scans on a device with those on the host: dtype, shape and every bit, except those of NaN."""
    rng = np.random.default_rng(seed)
    for number, pick in picks(rng, seed, count, kinds):
        check_one(device, rng, pick, elements, f"#{number}")


def check_one(
    device: Any,
    rng: np.random.Generator,
    pick: np.random.Generator,
    elements: int,
    told: str,
    vary: bool = False,
) -> str:
    """Compare one scan on a device with that on the host, as `support.oracles.reductions.check_one` does."""
    dtype = str(pick.choice(DTYPES))
    name = str(pick.choice([each for each in SCANS if not (dtype.startswith("complex") and each in SCANS_OF_REAL)]))
    shape = drawn_shape(pick, elements)
    shape = varied_shape(rng, shape, least_axes=1) if vary else shape
    mine, other = drawn_on_both(device, pick, drawn_array(rng, dtype, shape))
    axis = int(pick.integers(-mine.ndim, mine.ndim))
    options = {} if name in SCANS_OF_REAL else {"include_initial": bool(pick.integers(0, 2))}
    told = f"{told} {name} {dtype} {mine.shape} {mine.strides} axis={axis} {options}"
    return same_end(lambda x: SCANS[name](x, axis=axis, **options), mine, other, told)
