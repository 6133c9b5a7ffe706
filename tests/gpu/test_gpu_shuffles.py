"""Permutations on the GPU: the order of the host, for many shapes and for ten million numbers."""

from __future__ import annotations

import numpy as np
import pytest
from support.oracles.shuffles import check_same_order, same

import tilearray as ta


@pytest.mark.parametrize(("seed", "examples", "elements"), [(41, 30, 100), (42, 15, 5000), (43, 4, 400_000)])
def test_a_gpu_gives_the_order_of_the_host(seed, examples, elements):
    check_same_order("cuda:0", seed, examples, elements)


@pytest.mark.parametrize("count", [2**22, 2**22 + 1, 10**7])
def test_long_permutations_have_the_order_of_the_host(count):
    found = ta.random.default_rng(5, device="cuda:0").permutation(count)
    same(ta.random.default_rng(5, device="cpu").permutation(count), found)
    assert np.array_equal(np.sort(ta.to_numpy(found)), np.arange(count))
