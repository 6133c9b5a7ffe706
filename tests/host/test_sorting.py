"""Sorting and distinct elements by NumPy's fastest algorithms have the bits of a stable sort."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tilearray_host import sorting

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
