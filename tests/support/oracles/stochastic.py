"""Stochastic rounding by its definition, in Python's integers and Fractions; and the comparison of two devices."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

import tilearray as ta
from support.oracles import rounding as exact
from support.oracles.formats import FORMATS, dtype_of, kind_of, limits_of
from support.oracles.random_words import words

TARGETS = (*(name for name in FORMATS if name != "float64"), exact.SCALE, "int8", "uint16", "int64")
SOURCES = ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float4_e2m1fn")


def neighbour(value: float, name: str, word: int) -> float:
    """A finite value of any magnitude, as the multiple of the last place that a word of 32 bits chooses."""
    size = abs(Fraction(value))
    last = _last_place(size, name)
    whole = size // Fraction(2) ** last
    fraction = size / Fraction(2) ** last - whole
    away = math.floor(fraction * 2**32) + word >= 2**32
    return math.copysign(float((whole + away) * Fraction(2) ** last), value)


def _last_place(size: Fraction, name: str) -> int:
    if kind_of(name) == "int":
        return 0
    precision, lowest = (1, -127) if name == exact.SCALE else FORMATS[name][:2]
    if not size:
        return lowest
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    return max(exponent + 1 - precision, lowest)


def rounded(x: np.ndarray, target: str, seed: int, saturate: bool = False) -> np.ndarray:
    """The cast of an array: element i in C order takes word i of the seed's stream."""
    with np.errstate(all="ignore"):
        values = x.astype(np.float64).ravel().tolist()
    state = ta.random.Philox4x32(seed).state
    found = [
        neighbour(value, target, word) if math.isfinite(value) else value
        for value, word in zip(values, words(state, len(values)), strict=True)
    ]
    if target == exact.SCALE:
        found = [max(near, 2.0**-127) if value > 0 else near for near, value in zip(found, values, strict=True)]
    if kind_of(target) == "int":
        low, high = limits_of(target)
        whole = [0 if value != value else min(max(value, low), high) for value in found]
        return np.array([int(value) for value in whole], dtype_of(target)).reshape(x.shape)
    near = [value if isinstance(value, float) else float(value) for value in found]
    return exact.cast(np.array(near), target, "rn", saturate).reshape(x.shape)


def check_same_bits(device: Any, seed: int, examples: int, elements: int) -> None:
    """Compare casts of a device with those of the host: any pair, any layout, any seed."""
    rng = np.random.default_rng(seed)
    for _ in range(examples):
        source, target = str(rng.choice(SOURCES)), str(rng.choice(TARGETS))
        shape = tuple(int(extent) for extent in rng.integers(0, 2 + round(elements ** (1 / 2)), size=2))
        x = on_places(rng, source, target, shape)
        there = ta.asarray(x, device=device, copy=True)
        here = ta.asarray(x, device="cpu")
        if rng.integers(2):
            there, here = there.T[::-1], here.T[::-1]
        options: Any = {"rounding": "rs", "seed": int(rng.integers(9)), "saturate": bool(rng.integers(2))}
        if kind_of(target) == "int":
            del options["saturate"]
        got, want = (ta.to_numpy(each.astype(target, **options)) for each in (there, here))
        wrong = exact.differences(got.ravel(), want.ravel())
        assert wrong.size == 0, (source, target, options, [(got.ravel()[k], want.ravel()[k]) for k in wrong[:3]])


def check_fused(device: Any, examples: int) -> None:
    """Compare casts in fused functions, of several layouts and with the seed as an argument, with plain ones."""
    rng = np.random.default_rng(6)
    for _ in range(examples):
        source, target = str(rng.choice(["float32", "bfloat16", "float64"])), str(rng.choice(TARGETS))
        x = ta.asarray(on_places(rng, source, target, (3, 5, 34)), device="cpu")
        views: list[Any] = [
            x,
            x.T,
            x[1:, ::-1, ::2],
            x[0, :, :1],
            x[0, 0, 0],
            x[:1, 0],
            ta.broadcast_to(x[:, :1], x.shape),
        ]

        @ta.fuse
        def cast(x: Any, seed: Any, target: str = target) -> tuple[Any, Any]:
            found = ta.astype(-x, target, rounding="rs", seed=seed)
            return found, found.astype("float32").astype("bfloat16", rounding="rs", seed=[3, 4])

        for seed in (3, 2**40, 4):
            view = views[rng.integers(len(views))]
            want = ta.astype(-view, target, rounding="rs", seed=seed)
            second = want.astype("float32").astype("bfloat16", rounding="rs", seed=[3, 4])
            for one, other in zip(cast(view.to_device(device), seed), (want, second), strict=True):
                wrong = exact.differences(ta.to_numpy(one).ravel(), ta.to_numpy(other).ravel())
                assert wrong.size == 0, (source, target, view.shape, seed)


def on_places(rng: np.random.Generator, source: str, target: str, shape: tuple[int, ...]) -> np.ndarray:
    """Values beside those of the target, of every magnitude, and special ones."""
    size = math.prod(shape)
    with np.errstate(all="ignore"):
        exponents = rng.integers(-160, 135, size) if rng.integers(3) == 0 else rng.integers(-18, 18, size)
        found = np.ldexp(rng.uniform(1, 2, size), exponents) * rng.choice([-1, 1], size)
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 6.0, 448.0, 2.0**-127, 1.5 * 2.0**-127])
        found = np.where(rng.integers(8, size=size) == 0, rng.choice(special, size), found)
        return exact.cast(found, source).reshape(shape)


VALUES = [(0.3, "int8"), (-1.7, "float4_e2m1fn"), (3.14159, "float8_e4m3fn"), (1e-3, "float8_e5m2"), (0.1, "bfloat16")]
MORE_VALUES = [(1e-6, "float8_e4m3fn"), (5.0, exact.SCALE), (60.1, "float16")]


def mean_error(value: float, target: str, count: int, seed: int, device: Any = "cpu") -> float:
    """How many standard deviations the mean of many draws lies beside a value."""
    x = ta.full(count, value, dtype="float32", device=device)
    found = x.astype(target, rounding="rs", seed=seed).astype("float64")
    low, high = float(ta.min(found)), float(ta.max(found))
    up = (float(x[0]) - low) / (high - low)
    deviation = (high - low) * (up * (1 - up) / count) ** 0.5
    return abs(float(ta.mean(found)) - float(x[0])) / deviation
