"""Every cast between floats of 16 bits or fewer, and stochastic rounding, on the GPU: the bits of the host."""

from __future__ import annotations

import pytest
from support.oracles.all_casts import FLOATS, WAYS, wrong_on_device
from support.oracles.stochastic import check_same_bits


@pytest.mark.parametrize("source", FLOATS)
def test_every_value(source):
    assert [row for way in WAYS for row in wrong_on_device("cuda", source, *way)] == []


@pytest.mark.parametrize("seed", range(5))
def test_stochastic_rounding(seed):
    check_same_bits("cuda", seed, 20, 3000)
