"""`where` on the host: by copies, and by bits where a mask changes often. Values keep all of their bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilearray as ta
from tilearray_host import selecting
from tilearray_host.casts import dtype_named

SIZE = selecting.LINE + 3 * selecting.BLOCK // 2
RNG = np.random.default_rng(5)
MASKS: dict[str, Callable[[int], Any]] = {
    "random": lambda size: RNG.random(size) < 0.5,
    "mostly true": lambda size: RNG.random(size) < 0.9,
    "half": lambda size: np.arange(size) < size // 2,
    "none": lambda size: np.zeros(size, bool),
}


def drawn(dtype: str, size: int) -> np.ndarray:
    """Numbers of any bits: NaNs with payloads, and zeros of both signs."""
    if dtype == "bool":
        return RNG.random(size) < 0.5
    dtyped = dtype_named(dtype)
    return RNG.integers(0, 256, size * dtyped.itemsize, np.uint8).view(dtyped)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", ["bool", "float8_e4m3fn", "int16", "bfloat16", "float32", "complex64", "complex128"])
def test_where_selects_all_bits(dtype: str, mask: str) -> None:
    condition, x, y = MASKS[mask](SIZE), drawn(dtype, SIZE), drawn(dtype, SIZE)
    want = [x.view(np.uint8).reshape(SIZE, -1), y.view(np.uint8).reshape(SIZE, -1)]
    a, b, c = (ta.asarray(each, device="cpu") for each in (x, y, condition))
    for place in (slice(None), slice(None, None, 3), slice(None, None, -1), slice(0, selecting.LINE + 1)):
        found = ta.to_numpy(ta.where(c[place], a[place], b[place])).view(np.uint8).reshape(condition[place].size, -1)
        assert np.array_equal(found, np.where(condition[place, None], want[0][place], want[1][place]))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
def test_where_takes_numbers_rows_and_its_own_operands(dtype: str) -> None:
    x = RNG.integers(0, 100, (300, 400)).astype(dtype)
    condition = RNG.random(x.shape) < 0.5
    a, c = ta.asarray(x, device="cpu"), ta.asarray(condition, device="cpu")
    assert np.array_equal(ta.where(c, a, 1), np.where(condition, x, x.dtype.type(1)))
    assert np.array_equal(ta.where(c, 1, a), np.where(condition, x.dtype.type(1), x))
    assert np.array_equal(ta.where(c, a, a[0]), np.where(condition, x, x[0]))
    assert np.array_equal(ta.where(c.T, a.T, 1), np.where(condition.T, x.T, x.dtype.type(1)))
    assert np.array_equal(ta.where(c, a + 1, a * 2), np.where(condition, x + 1, x * 2))


def test_a_mask_of_other_bytes_than_0_and_1_is_true_where_one_is_not_0() -> None:
    condition = RNG.integers(0, 3, SIZE).astype(np.uint8)
    out = np.empty(SIZE, np.uint8)
    x, y = RNG.integers(0, 256, SIZE).astype(np.uint8), np.zeros(1, np.uint8)
    selecting.where_elsewhere(condition.view(bool), x, y, out=out)
    assert np.array_equal(out, np.where(condition != 0, x, 0))
