"""Large arrays of narrow floats are looked up in tables: with the bits of small ones, which are computed."""

from __future__ import annotations

import random
import tracemalloc

import ml_dtypes
import numpy as np
import pytest
from support.trees import check, grow

import tilearray as ta
from tilearray_host import tabled
from tilearray_host.threads import most_threads

DTYPES = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
FUNCTIONS = {
    "silu": lambda x: x / (1 + ta.exp(-x)),
    "gelu": lambda x: 0.5 * x * (1 + ta.tanh(0.79788456 * (x + 0.044715 * x * x * x))),
    "arc": lambda x: ta.astype(ta.atan2(ta.sin(x) * 3, ta.cos(x) - 0.25), "float64"),
    "is_small": lambda x: ta.abs(x) * 2 + 1 < 1.5,
}


def every(dtype, repeats):
    """All values of a dtype, several times, in an order that is not that of their bits."""
    source = np.dtype(getattr(ml_dtypes, dtype, dtype))
    codes = np.random.default_rng(3).permutation(repeats * 2 ** (8 * source.itemsize))
    return ta.asarray((codes % 2 ** (8 * source.itemsize)).astype(f"u{source.itemsize}").view(source), device="cpu")


def same_bits(found, expected):
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    wide = [
        np.asarray(each) if each.dtype.itemsize > 2 else np.asarray(ta.astype(each, "float64"))
        for each in (found, expected)
    ]
    nan = (wide[0] != wide[0]) & (wide[1] != wide[1])
    assert (nan | (wide[0] == wide[1]) & (np.signbit(wide[0]) == np.signbit(wide[1]))).all()


@pytest.fixture
def tables(monkeypatch):
    """The tables that are made."""
    made, plain = [], tabled._table.__wrapped__

    def table(*arguments):
        made.append(arguments[-1])
        return plain(*arguments)

    monkeypatch.setattr(tabled, "_table", table)
    return made


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_values_have_the_bits_of_small_arrays(name, dtype, tables):
    x = every(dtype, 4 if dtype in DTYPES[:2] else 1024)
    fused = ta.fuse(FUNCTIONS[name])
    found = fused(x)
    assert tables
    tables.clear()
    for start in range(0, x.size, 2**16):
        part = slice(start, start + 2**16)
        same_bits(found[part], fused(x[part]))
    assert not tables


def test_functions_without_numbers_use_a_table_from_fewer_elements(tables):
    x = every("float16", 1)
    for function in (ta.exp, ta.sin, ta.isfinite):
        found = function(x)
        assert tables
        tables.clear()
        for start in range(0, x.size, 2**15):
            same_bits(found[start : start + 2**15], function(x[start : start + 2**15]))
        x * 1.5
        assert not tables


def scaled(x, number):
    return ta.astype(ta.astype(x, "float32") * number, "float16")


def test_views_targets_and_numbers(tables):
    x = ta.reshape(every("float16", 16), (1024, 1024))
    for view in (x[:, ::2], x.T, x[::-1, 1:], x[:600]):
        same_bits(view * 1.5, scaled(view, 1.5))
    fused = ta.fuse(lambda x, k: x * k + 1)
    for number in (2.0, 0.0, -1.0):
        same_bits(fused(x, number), ta.astype(ta.astype(scaled(x, number), "float32") + 1, "float16"))
    dense = ta.copy(x)
    dense *= 0.5
    same_bits(dense, scaled(x, 0.5))
    target = ta.zeros((1024, 2048), dtype="float16", device="cpu")
    ta.multiply(x, 0.5, out=target[:, ::2])
    same_bits(target[:, ::2], dense)
    assert not ta.any(target[:, 1::2])
    assert len({numbers[0][1] for numbers in tables if numbers}) >= 4


def test_random_programs_have_the_same_bits(monkeypatch, tables):
    monkeypatch.setattr(tabled, "LEAST", 1)
    monkeypatch.setattr(tabled, "CALLS", {})
    found = [check(grow(random.Random(seed), in_place=seed % 2 == 0)) for seed in range(70_000, 70_400)]
    assert found.count("equal") > 280
    assert len(tables) > 60


def test_a_lookup_takes_no_memory_but_that_of_a_block():
    x = every("float16", 32)
    ta.tanh(x)
    tracemalloc.start()
    try:
        found = ta.tanh(x)
        indices = 2**20 * most_threads()  # `take` makes int64 of the codes of a block
        assert tracemalloc.get_traced_memory()[1] < found.nbytes + indices + 2**16
    finally:
        tracemalloc.stop()
