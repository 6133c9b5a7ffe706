"""Every cast from floats of 16 bits or fewer to such floats: all values, modes and saturations, on any device."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

import tilearray as ta
from support.oracles import rounding as exact
from support.oracles.formats import FORMATS, dtype_of

FLOATS = (*(name for name in FORMATS if dtype_of(name).itemsize <= 2), exact.SCALE)
WAYS = tuple(product(exact.MODES, (False, True)))


def all_values(name: str) -> np.ndarray:
    """Every code of a format; of 4 bits, the 16 of them."""
    dtype = dtype_of(name)
    count = 16 if name == "float4_e2m1fn" else 2 ** (8 * dtype.itemsize)
    return np.arange(count).astype(f"u{dtype.itemsize}").view(dtype)


def casts_of(x: ta.Array, mode: str, saturate: bool) -> Iterator[tuple[str, ta.Array]]:
    """Yield the casts to all formats, computed by one kernel."""
    targets = [name for name in FLOATS if dtype_of(name) != x.dtype]
    options: Any = {"rounding": mode, "saturate": saturate}
    results = ta.fuse(lambda x: tuple(x.astype(target, **options) for target in targets))(x)
    return zip(targets, results, strict=True)


def wrong_on_host(source: str, mode: str, saturate: bool) -> list[str]:
    """The differences of the host from exact arithmetic."""
    x = all_values(source)
    return [
        f"{target}: {x[place]!r} {got[place]!r} {want[place]!r}"
        for target in FLOATS
        if target != source
        for got in [ta.to_numpy(ta.asarray(x, device="cpu").astype(target, rounding=mode, saturate=saturate))]
        for want in [exact.cast(x, target, mode, saturate)]
        for place in exact.differences(got, want)[:2]
    ]


def wrong_on_device(device: Any, source: str, mode: str, saturate: bool) -> list[str]:
    """The differences of a device from the host."""
    x = all_values(source)
    here, there = (casts_of(ta.asarray(x, device=each, copy=True), mode, saturate) for each in ("cpu", device))
    return [
        f"{target}: {x[place]!r} {ta.to_numpy(got)[place]!r} {ta.to_numpy(want)[place]!r}"
        for (target, got), (_, want) in zip(there, here, strict=True)
        for place in exact.differences(ta.to_numpy(got), ta.to_numpy(want))[:2]
    ]
