"""Random programs of up to 40 operations: fused, they have the bits of the program itself, and its errors."""

from __future__ import annotations

import os
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.trees import bits, check, grow

import tilearray as ta
from tilearray.ops import PUBLIC

PROGRAMS = int(os.environ.get("TILEARRAY_EXAMPLES", "250"))
"""The number of programs of each slow test."""


def outcomes(seeds, in_place, reductions=False):
    trees = [grow(random.Random(seed), in_place=in_place, reductions=reductions) for seed in seeds]
    return Counter(check(tree).split(":")[0] for tree in trees)


def judge(found):
    """Nearly all programs run fused; the rest are errors in both forms, or views that are refused."""
    count = found.total()
    assert found["equal"] > 0.75 * count
    assert found["refused"] < 0.15 * count


def test_random_programs_have_the_same_bits():
    judge(outcomes(range(200), in_place=False))


def test_random_programs_with_in_place_operations_have_the_same_bits():
    judge(outcomes(range(10_000, 10_100), in_place=True))


def test_random_programs_with_reductions_have_the_same_bits():
    judge(outcomes(range(40_000, 40_060), in_place=True, reductions=True))


@pytest.mark.slow
@pytest.mark.parametrize("in_place", [False, True])
def test_many_random_programs_with_reductions_have_the_same_bits(in_place):
    judge(outcomes(range(50_000, 50_000 + PROGRAMS), in_place, reductions=True))


@pytest.mark.slow
@pytest.mark.parametrize("in_place", [False, True])
def test_many_random_programs_have_the_same_bits(in_place):
    judge(outcomes(range(20_000, 20_000 + PROGRAMS), in_place))


@pytest.mark.parametrize("name", ["triton", "torch", "numpy", "cutile"])
def test_random_programs_have_the_same_bits_under_all_semantics(name):
    with ta.semantics(name):
        found = outcomes(range(30_000, 30_040), in_place=True)
    assert found["equal"] > 20


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.booleans())
def test_programs_that_hypothesis_draws_have_the_same_bits(rng, in_place):
    check(grow(rng, 12, in_place=in_place))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_one_element_has_the_same_bits_in_memory_that_is_used_again(dtype):
    """For one element NumPy runs another loop if `out` is an operand, whose last bits may differ."""
    rng = np.random.default_rng(0)
    drawn = [np.stack([np.repeat(np.arange(1, 12), 7), np.tile(np.arange(-3, 4), 11)]), rng.normal(size=(2, 60)) * 3]
    pairs = [[ta.asarray([number]).astype(dtype) for number in pair] for pair in np.concatenate(drawn, 1).T.tolist()]
    kind = "complex" if dtype == "complex64" else "float"
    rows = [row for row in PUBLIC.values() if row.arity < 3 and kind in row.kinds and row.name != "ldexp"]
    assert len(rows) > 25
    for row in rows:

        def call(x, y, row=row):
            return x + y, row(x * 1, y * 1) if row.arity == 2 else row(x * 1)

        fused = ta.fuse(call)
        for x, y in pairs:
            assert bits(fused(x, y)[1]) == bits(call(x, y)[1]), (row.name, x, y)
