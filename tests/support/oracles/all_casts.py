"""Every cast from numbers of 16 bits or fewer: all values, modes and saturations, on any device."""

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
INTEGERS = tuple(f"{kind}{bits}" for bits in (8, 16, 32, 64) for kind in ("int", "uint"))
COMPARED = ("uint8", "int16", "uint64")
"""The integers whose casts are computed exactly, one by one, which takes long."""
SMALL_INTEGERS = INTEGERS[:4]
PLAIN = (*FLOATS, "float32", "float64", "bool", *INTEGERS)
TARGETS = (*PLAIN, *INTEGERS)
"""The targets of integers: without options, and clamped."""


def all_values(name: str) -> np.ndarray:
    """Every code of a format; of 4 bits, the 16 of them."""
    dtype = dtype_of(name)
    count = 16 if name == "float4_e2m1fn" else 2 ** (8 * dtype.itemsize)
    return np.arange(count).astype(f"u{dtype.itemsize}").view(dtype)


def casts_of(x: ta.Array, mode: str, saturate: bool) -> Iterator[tuple[str, ta.Array]]:
    """Yield the casts to all formats, and to integers, computed by one kernel; integers are always clamped."""
    targets = [name for name in (*FLOATS, "float32", "float64") if dtype_of(name) != x.dtype]
    options: Any = {"rounding": mode, "saturate": saturate}
    integers = () if saturate else INTEGERS
    results = ta.fuse(
        lambda x: (
            *[x.astype(target, **options) for target in targets],
            *[x.astype(target, rounding=mode) for target in integers],
        )
    )(x)
    return zip([*targets, *integers], results, strict=True)


def casts_of_integers(x: ta.Array) -> Iterator[tuple[str, ta.Array]]:
    """Yield the casts of integers to all formats, to integers, and to integers that are clamped."""
    yield from ((target, x.astype(target)) for target in PLAIN)
    yield from ((target, x.astype(target, saturate=True)) for target in INTEGERS)


def wrong_on_host(source: str, mode: str, saturate: bool) -> list[str]:
    """The differences of the host from exact arithmetic."""
    x = all_values(source)
    targets = [target for target in (*FLOATS, "float32", "float64") if target != source]
    wanted = [(target, exact.cast(x, target, mode, saturate)) for target in targets]
    if not saturate:
        wanted += [(target, exact.cast(x, target, f"{mode}i")) for target in COMPARED]
    found = dict(casts_of(ta.asarray(x, device="cpu"), mode, saturate))
    return differences(x, [(target, found[target]) for target, _ in wanted], wanted)


def wrong_integers_on_host(source: str) -> list[str]:
    """The differences of the host from exact arithmetic, of casts from integers."""
    x = all_values(source)
    wanted = [(target, exact.cast(x, target, "rn", place >= len(PLAIN))) for place, target in enumerate(TARGETS)]
    return differences(x, casts_of_integers(ta.asarray(x, device="cpu")), wanted)


def wrong_on_device(device: Any, source: str, mode: str, saturate: bool) -> list[str]:
    """The differences of a device from the host."""
    x = all_values(source)
    return differences(
        x, *(casts_of(ta.asarray(x, device=each, copy=True), mode, saturate) for each in ("cpu", device))
    )


def wrong_integers_on_device(device: Any, source: str) -> list[str]:
    """The differences of a device from the host, of casts from integers."""
    x = all_values(source)
    return differences(x, *(casts_of_integers(ta.asarray(x, device=each, copy=True)) for each in ("cpu", device)))


def differences(x: np.ndarray, here: Any, there: Any) -> list[str]:
    """The places where casts differ."""
    return [
        f"{target}: {x[place]!r} {got[place]!r} {want[place]!r}"
        for (target, *both) in ((target, got, want) for (target, got), (_, want) in zip(here, there, strict=True))
        for got, want in [[ta.to_numpy(each) if isinstance(each, ta.Array) else each for each in both]]
        for place in exact.differences(got, want)[:2]
    ]
