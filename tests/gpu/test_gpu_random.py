"""Draws on the GPU: the bits of the host on drawn arrays, and in 1e8 numbers."""

from __future__ import annotations

import os

import numpy as np
import pytest
from support.oracles.random_words import check_same_bits

import tilearray as ta

EXAMPLES, SHARDS = int(os.environ.get("TILEARRAY_EXAMPLES", "400")), 4


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize(("seed", "elements", "share"), [(31, 100, 1), (32, 5000, 1), (33, 400_000, 4)])
def test_a_gpu_gives_the_bits_of_the_host(seed, elements, share, shard):
    check_same_bits("cuda:0", seed + 100 * shard, max(1, EXAMPLES // share // SHARDS), elements)


def same_in(count: int, name: str, *arguments, **options) -> None:
    """Compare the whole draw on a GPU with pieces on the host."""
    whole = getattr(ta.random.default_rng(1, device="cuda:0"), name)(*arguments, size=count, **options)
    host = ta.random.default_rng(1, device="cpu")
    for low in range(0, count, 10**7 + 1):
        piece = ta.to_numpy(whole[low : low + 10**7 + 1])
        expected = ta.to_numpy(getattr(host, name)(*arguments, size=piece.size, **options))
        assert np.array_equal(piece.view(np.uint8), expected.view(np.uint8)), (name, low)


@pytest.mark.parametrize("name", ["random", "standard_normal", "standard_exponential"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_a_hundred_million_floats_have_the_bits_of_the_host(name, dtype):
    same_in(10**8, name, dtype=dtype)


def test_a_hundred_million_integers_have_the_bits_of_the_host():
    same_in(10**8, "integers", -3, 10**6)
