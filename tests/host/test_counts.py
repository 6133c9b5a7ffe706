"""Counts of whole arrays: NumPy counts, and makes no array of integers."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import tilearray as ta


@pytest.mark.parametrize("count", [ta.sum, ta.count_nonzero])
@pytest.mark.parametrize("key", [(slice(None),), (slice(None, None, -3),), (slice(0),)])
def test_bools_are_counted(count, key):
    values = np.random.default_rng(0).random(10_001) > 0.3
    assert int(count(ta.asarray(values, device="cpu")[key])) == int(values[key].sum())


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
def test_elements_other_than_zero_are_counted(dtype):
    values = np.random.default_rng(0).integers(-1, 2, (50, 70)).astype(dtype)
    values[3, 3] = {"f": np.nan, "c": 1j, "i": -128}[np.dtype(dtype).kind]
    x = ta.asarray(values, device="cpu")
    assert int(ta.count_nonzero(x)) == np.count_nonzero(values)
    assert int(ta.sum(ta.astype(x, "bool"))) == np.count_nonzero(values)
    assert np.array_equal(np.asarray(ta.count_nonzero(x, axis=0)), np.count_nonzero(values, axis=0))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_integers_have_the_sums_of_their_floats(dtype, axis):
    """Sums of small integers are exact, and those of long ones depend on the order."""
    limits = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    values = np.random.default_rng(0).integers(*limits, (300, 70), "uint64" if limits[0] == 0 else "int64", True)
    x = ta.asarray(values.astype(dtype), device="cpu")
    assert np.array_equal(ta.sum(x, axis=axis, dtype="float64"), ta.sum(ta.astype(x, "float64"), axis=axis))


def test_sums_in_narrow_dtypes_wrap():
    assert int(ta.sum(ta.ones(300, dtype="bool", device="cpu"), dtype="uint8")) == 300 % 256
    assert float(ta.sum(ta.ones(300, dtype="bool", device="cpu"), dtype="float32")) == 300


def test_a_count_of_bools_takes_no_memory():
    x = ta.ones(2**22, dtype="bool", device="cpu")
    ta.count_nonzero(x)
    tracemalloc.start()
    try:
        ta.count_nonzero(x)
        assert tracemalloc.get_traced_memory()[1] < 2**16
    finally:
        tracemalloc.stop()
