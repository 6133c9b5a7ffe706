"""Sorting and distinct elements by NumPy's fastest algorithms have the bits of a stable sort."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tilearray_host import sorting
from tilearray_host.casts import dtype_named
from tilearray_host.stable_order import stable_order

SPECIAL = {
    "none": [1.5, -2.0, 3.0],
    "zeros": [0.0, -0.0, 1.0],
    "nans": [np.nan, 2.0, -1.0],
    "infinities": [np.inf, -np.inf, 0.0],
    "positive zeros": [0.0, 5.0],
}


def drawn(special: str, dtype: str, size: int) -> np.ndarray:
    """Many equal elements; the NaNs have different bits."""
    rng = np.random.default_rng(size)
    if dtype in ("bool", "int8", "int64", "uint16"):
        return rng.integers(0, 2 if dtype == "bool" else 40, size).astype(dtype)
    x = rng.choice(SPECIAL[special] + list(range(2, 9)), size).astype(dtype)
    bits = x.view(f"u{x.itemsize}")
    bits[np.isnan(x)] |= rng.integers(0, 64, size).astype(bits.dtype)[np.isnan(x)]
    return x


def bits(x: np.ndarray) -> bytes:
    return np.ascontiguousarray(x).tobytes()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64"])
def test_the_bits_are_those_of_a_stable_sort(dtype: str) -> None:
    for special, size in itertools.product(SPECIAL, (0, 1, 2, 33, 1000, 5000)):
        x = drawn(special, dtype, size)
        order = np.argsort(x, kind="stable")
        assert bits(sorting.sort(x, 0, False)) == bits(x[order])
        assert bits(sorting.argsort(x, 0, False, True)) == bits(order)
        backward = size - 1 - np.argsort(x[::-1], kind="stable")[::-1]
        assert bits(sorting.sort(x, 0, True)) == bits(x[backward])
        free = sorting.argsort(x, 0, False, False)
        assert np.array_equal(np.sort(free), np.arange(size))
        assert np.array_equal(x[free], x[order], equal_nan=x.dtype.kind == "f")
        matrix = x.reshape(-1, 5).T if size % 5 == 0 else x[:, None]
        assert bits(sorting.sort(matrix, 0, False)) == bits(np.sort(matrix, 0, kind="stable"))


@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int16"])
def test_elements_of_16_bits_are_sorted(dtype: str, vectorized: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's sort of float16 may leave infinities in the middle."""
    monkeypatch.setattr(sorting, "_are_shorts_vectorized", lambda: vectorized)
    rng = np.random.default_rng(3)
    for size in range(1000, 20_000, 300):
        x = rng.standard_normal(size) * 100
        if dtype != "int16":
            x[rng.random(size) < 0.3] = np.inf
            x *= rng.choice([-1, 1], size)
        x = x.astype(dtype_named(dtype))
        wide = np.sort(x.astype(np.float64))
        assert np.array_equal(sorting.sort(x, 0, False).astype(np.float64), wide)
        assert np.array_equal(sorting.sort(x, 0, True).astype(np.float64), wide[::-1])
        values, counts = np.unique(wide, return_counts=True)
        found = sorting.unique(x, False, False, True)
        assert np.array_equal(found.values.astype(np.float64), values)
        assert np.array_equal(found.counts, counts)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64"])
def test_a_partition_has_the_elements_of_a_sort(dtype: str) -> None:
    for special, size in itertools.product(SPECIAL, (1, 2, 33, 1000, 5000)):
        x = drawn(special, dtype, size)
        ordered = np.sort(x)
        for places in (np.array(size // 3), np.array([size - 1, size // 2])):
            found, order = sorting.partition(x, places, 0), sorting.argpartition(x, places, 0)
            numbers = f"u{x.itemsize}"
            assert np.array_equal(np.sort(found.view(numbers)), np.sort(x.view(numbers)))
            assert np.array_equal(np.sort(order), np.arange(size))
            for each in (found, x[order]):
                for place in places.reshape(-1):
                    for part in (slice(place), slice(place, place + 1), slice(place, None)):
                        assert np.array_equal(np.sort(each[part]), ordered[part], equal_nan=x.dtype.kind == "f")


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "complex64"])
def test_the_stable_order_is_numpys(dtype: str) -> None:
    rng = np.random.default_rng(5)
    for special, size in itertools.product(SPECIAL, (1024, 1025, 6000)):
        if dtype.startswith(("int", "uint")):
            limits = np.iinfo(dtype)
            ends = np.array([limits.min, limits.min + 1, 0, 5, limits.max - 1, limits.max], dtype)
            x = rng.choice(np.concatenate([ends, np.arange(20, 20 + size // 9, dtype=dtype)]), size)
        else:
            x = np.where(rng.random(size) < 0.5, drawn(special, "float64", size), rng.normal(size=size)).astype(dtype)
        wide = np.broadcast_to(x, (3, size))
        for each in (x, x[::-2], np.sort(x), np.sort(x)[::-1], np.ones_like(x)):
            assert bits(stable_order(each)) == bits(np.argsort(each, kind="stable"))
        for each, axis in ((wide, 1), (x.reshape(-1, 2 if size % 2 == 0 else 5), 0), (wide.T, 0), (wide, -2)):
            assert bits(stable_order(each, axis)) == bits(np.argsort(each, axis, kind="stable"))


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize("extent", [0, 2**32 - 1, 2**32])
def test_the_stable_order_of_integers_in_a_range_is_numpys(dtype: str, extent: int) -> None:
    limits = np.iinfo(dtype)
    for least in (limits.min, -5 if limits.min else 7, limits.max - extent):
        ends = np.array([least, least + extent // 3, least + extent], dtype)
        x = np.random.default_rng(7).choice(ends, (3, 900))
        for axis in (0, 1):
            assert bits(stable_order(x, axis)) == bits(np.argsort(x, axis, kind="stable"))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64"])
def test_distinct_elements_are_those_of_a_stable_sort(dtype: str) -> None:
    for special, size in itertools.product(SPECIAL, (0, 1, 33, 1000, 5000)):
        x = drawn(special, dtype, size)
        order = np.argsort(x, kind="stable")
        is_first = np.ones(size, bool)
        is_first[1:] = x[order][1:] != x[order][:-1]
        values, firsts, numbers = x[order][is_first], order[is_first], np.cumsum(is_first) - 1
        inverse = np.empty(size, np.int64)
        inverse[order] = numbers
        counts = np.bincount(numbers, minlength=len(values))
        for asked in itertools.product((False, True), repeat=3):
            found = sorting.unique(x, *asked)
            assert bits(found.values) == bits(values)
            want: list[Any] = [firsts, inverse, counts]
            for got, part, wanted in zip(found[1:], want, asked, strict=True):
                assert (got is not None) == wanted
                assert got is None or (got.dtype == np.int64 and np.array_equal(got, part))
