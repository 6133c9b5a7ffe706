"""Every cast from numbers of 16 bits or fewer, and stochastic rounding, on the GPU: the bits of the host."""

from __future__ import annotations

import pytest
from support.oracles.all_casts import FLOATS, SMALL_INTEGERS, WAYS, wrong_integers_on_device, wrong_on_device
from support.oracles.stochastic import MORE_VALUES, VALUES, check_fused, check_same_bits, mean_error

import tilearray as ta


@pytest.mark.parametrize("source", FLOATS)
def test_every_value(source):
    assert [row for way in WAYS for row in wrong_on_device("cuda", source, *way)] == []


@pytest.mark.parametrize("source", SMALL_INTEGERS)
def test_every_integer(source):
    assert wrong_integers_on_device("cuda", source) == []


@pytest.mark.parametrize("seed", range(5))
def test_stochastic_rounding(seed):
    check_same_bits("cuda", seed, 20, 3000)


def test_stochastic_rounding_in_fused_functions():
    check_fused("cuda", 8)


@pytest.mark.parametrize(("value", "target"), [*VALUES, *MORE_VALUES])
def test_the_mean_of_ten_million_draws_is_the_value(value, target):
    assert mean_error(value, target, 10_000_000, 12, "cuda") < 4
    x = ta.full(10_000_000, value, dtype="float32", device="cuda")
    bits = f"uint{8 * ta.dtypes.as_dtype(target).itemsize}"
    first, second = (x.astype(target, rounding="rs", seed=12).view(bits) for _ in range(2))
    assert ta.all(first == second).item()
