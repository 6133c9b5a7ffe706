"""Scans on the GPU: the bits of the host on drawn arrays."""

from __future__ import annotations

import os

import numpy as np
import pytest
from support.oracles.reductions import compare
from support.oracles.scans import check_same_bits

import tilearray as ta

EXAMPLES, SHARDS = int(os.environ.get("TILEARRAY_EXAMPLES", "400")), 4


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize(("seed", "elements", "share"), [(21, 60, 1), (22, 3000, 1), (23, 200_000, 4)])
def test_a_gpu_gives_the_bits_of_the_host(seed, elements, share, shard):
    check_same_bits("cuda:0", seed + 100 * shard, max(1, EXAMPLES // share // SHARDS), elements)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64", "complex128", "bfloat16"])
def test_columns_have_the_bits_of_the_host(dtype):
    x = ta.asarray(np.random.default_rng(3).normal(size=(2001, 1003)) * 3, device="cpu").astype(dtype)
    for given in (x, x[1:, 2:-1]):
        compare(ta.cumulative_sum(given, axis=0), ta.cumulative_sum(given.to_device("cuda:0"), axis=0), dtype)
