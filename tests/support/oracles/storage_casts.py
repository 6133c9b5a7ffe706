"""Casts of the floats that are for storage only: operands that are hard to round, and a comparison with the host.

The oracle is the host, whose casts tests/host/test_casts.py verifies.
"""

from __future__ import annotations

import numpy as np

import tilearray as ta
from support.oracles.formats import STORAGE, dtype_of, kind_of

SOURCES = ("bool", "int8", "uint8", "int32", "uint64", "float16", "bfloat16", "float8_e4m3fn")


def on_host(x: np.ndarray, target: str, **options: object) -> np.ndarray:
    """A cast by the host."""
    return ta.to_numpy(ta.asarray(x, device="cpu").astype(target, **options))  # type: ignore[arg-type]


def assert_same(got: np.ndarray, expected: np.ndarray, x: np.ndarray) -> None:
    """Check that all bits are the same; NaN has any code of NaN, and of float4, which has none, any zero."""
    assert got.dtype == expected.dtype
    with np.errstate(all="ignore"):
        values, wanted = got.astype(np.complex128), expected.astype(np.complex128)
        from_nan = np.isnan(x.astype(np.float64))
    bits = got.view(np.uint8).reshape(got.size, -1) == expected.view(np.uint8).reshape(got.size, -1)
    same = bits.all(1) | (np.isnan(values) & np.isnan(wanted)) | (from_nan & (values == 0) & (wanted == 0))
    assert same.all(), (x[~same][:5], got[~same][:5], expected[~same][:5])


def codes(name: str) -> np.ndarray:
    """All values of a format."""
    return np.arange(16 if name == "float4_e2m1fn" else 256, dtype=np.uint8).view(dtype_of(name))


def hard(name: str) -> np.ndarray:
    """float32: the values of a format and the middles between neighbours, a step beside each, and random bits."""
    assert name in STORAGE
    found = codes(name).astype(np.float64)
    found = np.unique(found[np.isfinite(found)])
    with np.errstate(all="ignore"):
        middles = np.concatenate([found, (found[1:] + found[:-1]) / 2, found * 1.5, found * 2]).astype(np.float32)
        beside = [np.nextafter(middles, np.float32(end)) for end in (-np.inf, np.inf)]
        some = np.concatenate([middles, *beside, np.array([np.inf, np.nan, 0.0], np.float32)])
    words = np.random.default_rng(0).integers(0, 2**32, 30_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    return np.concatenate([some, -some, words])


def wide(name: str) -> np.ndarray:
    """float64 beside the hard values, nearer than float32 can tell."""
    with np.errstate(all="ignore"):
        found = hard(name).astype(np.float64)
        return np.concatenate([found * (1 + 2.0**-40), found * (1 - 2.0**-40)])


def others(source: str) -> np.ndarray:
    """Values of another dtype, few and small."""
    few = np.arange(-128, 128) if kind_of(source) == "int" else np.arange(-64, 64) / 8
    return on_host(few, source)
