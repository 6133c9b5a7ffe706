"""Scans of drawn arrays: the same bits on every device."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilearray as ta
from support.oracles.reductions import DTYPES, compare, drawn_array, drawn_view, picks

SCANS: dict[str, Any] = {
    "cumulative_sum": ta.cumulative_sum,
    "cumulative_prod": ta.cumulative_prod,
    "maximum": ta.maximum.accumulate,
    "minimum": ta.minimum.accumulate,
}


def check_same_bits(device: Any, seed: int, count: int, elements: int, kinds: int = 0) -> None:
    """Compare scans on a device with those on the host: dtype, shape and every bit, except those of NaN."""
    rng = np.random.default_rng(seed)
    for number, pick in picks(rng, seed, count, kinds):
        dtype = str(pick.choice(DTYPES))
        name = str(pick.choice([each for each in SCANS if not (dtype.startswith("complex") and each in SCANS_OF_REAL)]))
        values = drawn_array(rng, dtype, elements, pick)
        state = pick.bit_generator.state
        mine = drawn_view(pick, ta.asarray(values, device="cpu"))
        pick.bit_generator.state = state
        other = drawn_view(pick, ta.asarray(values, device=device))
        axis = int(pick.integers(-mine.ndim, mine.ndim))
        options = {} if name in SCANS_OF_REAL else {"include_initial": bool(pick.integers(0, 2))}
        told = f"#{number} {name} {dtype} {mine.shape} {mine.strides} axis={axis} {options}"
        compare(SCANS[name](mine, axis=axis, **options), SCANS[name](other, axis=axis, **options), told)


SCANS_OF_REAL = ("maximum", "minimum")
