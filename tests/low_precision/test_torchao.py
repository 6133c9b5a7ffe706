"""`quantize` beside torchao, whose results `torchao_results.py` wrote: equal, or the difference is explained here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilearray as ta

RESULTS = np.load(Path(__file__).with_name("torchao_results.npz"))
BLOCKS: dict[str, Any] = {"rows": 128, "blocks": 64, "tiles": (4, 64)}
FORMATS = sorted({name.split("/", 1)[1].rsplit("/", 1)[0] for name in RESULTS if name.endswith("/values")})
ORDINARY = ["normal", "wide", "sparse", "exact", "normal_bfloat16", "wide_bfloat16", "exact_bfloat16"]


def given(name: str) -> np.ndarray:
    raw = RESULTS[f"{name}/input"]
    return raw.view(np.float32 if raw.itemsize == 4 else ml_dtypes.bfloat16)


def ours(name: str, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of the scales and of the values, a row for each row of the array or of blocks."""
    x = ta.asarray(given(name))
    match kind.split("/"):
        case ["mx", dtype, mode]:
            packed = dtype == "e2m1"
            scales = {"scale": "float8_e8m0fnu", "scale_rounding": mode}
            found = ta.quantize(x, dtype, block=32, packed=packed, **scales)  # type: ignore[arg-type]
        case ["nv"]:
            found = ta.quantize(x, "e2m1", block=16, scale="float8_e4m3fn", global_scale=0.001, packed=True)
        case [_, label]:
            found = ta.quantize(x, "e4m3", block=BLOCKS[label])
        case _:
            raise AssertionError(kind)
    return ta.to_numpy(found.scales).view(np.uint8), ta.to_numpy(found.values).view(np.uint8)


def theirs(name: str, kind: str, like: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    scales, values = RESULTS[f"{name}/{kind}/scales"], RESULTS[f"{name}/{kind}/values"]
    return scales.reshape(like[0].shape), values.reshape(like[1].shape)


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name in ORDINARY for kind in FORMATS if f"{name}/{kind}/values" in RESULTS]
)
def test_ordinary_values_are_torchaos(name: str, kind: str) -> None:
    found = ours(name, kind)
    scales, values = theirs(name, kind, found)
    zero = np.zeros(1, np.uint8)
    if name == "sparse" and kind.startswith("float8"):  # torchao's scale of a block of zeros is 0, and its values NaN
        zero = np.all(scales.reshape(len(scales), -1, 4) == 0, axis=-1)
        per_row = [len(values) // len(zero), values.shape[1] // zero.shape[1]]
        zero = np.kron(zero, np.ones(per_row, bool))
        assert np.all(values[zero] & 0x7F == 0x7F)
        assert np.all(found[1][zero] == 0)
    else:
        assert np.array_equal(scales, found[0])
    assert np.array_equal(np.where(zero, 0, values), np.where(zero, 0, found[1]))


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind.startswith("mx")])
def test_at_scale_code_0_ours_is_the_power_that_the_code_means(kind: str) -> None:
    """torchao divides by 2**-126 there, but the code means 2**-127: its values are half of what they stand for."""
    found = ours("tiny", kind)
    scales, values = theirs("tiny", kind, found)
    assert np.array_equal(scales, found[0])
    lowest = np.repeat(scales == 0, values.shape[1] // scales.shape[1], axis=1)
    assert 0 < lowest.sum() < lowest.size
    assert np.array_equal(values[~lowest], found[1][~lowest])
    x, dtype = given("tiny").astype(np.float64), kind.split("/")[1]
    stored = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m1": np.uint8}[dtype]
    errors: list[float] = []
    for each in (values, found[1]):
        given_scales = ta.asarray(scales.view(ml_dtypes.float8_e8m0fnu))
        stands_for = ta.dequantize(
            ta.asarray(each.view(stored)), given_scales, block=32, packed=dtype == "e2m1", dtype="float64"
        )
        errors.append(np.abs(ta.to_numpy(stands_for) - x)[np.repeat(scales == 0, 32, axis=1)].sum())
    assert errors[1] < 0.6 * errors[0]


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if not kind.startswith("float8")])
def test_a_block_with_an_infinity_has_a_scale_that_is_nan(kind: str) -> None:
    """torchao gives the largest scale, and finite values: ours shows that something is wrong. NaN is NaN in both."""
    found = ours("infinite", kind)
    scales, values = theirs("infinite", kind, found)
    width = given("infinite").shape[1] // scales.shape[1]
    bad = ~np.isfinite(given("infinite").reshape(8, -1, width)).all(axis=2)
    assert np.array_equal(scales[~bad], found[0][~bad])
    share = np.repeat(bad, values.shape[1] // scales.shape[1], axis=1)
    assert np.array_equal(values[~share], found[1][~share])
    if kind.startswith("mx"):
        assert np.all(found[0][bad] == 255)
