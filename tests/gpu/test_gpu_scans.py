"""Scans on the GPU: the bits of the host on drawn arrays."""

from __future__ import annotations

import os

import pytest
from support.oracles.scans import check_same_bits

EXAMPLES, SHARDS = int(os.environ.get("TILEARRAY_EXAMPLES", "400")), 4


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize(("seed", "elements", "share"), [(21, 60, 1), (22, 3000, 1), (23, 200_000, 4)])
def test_a_gpu_gives_the_bits_of_the_host(seed, elements, share, shard):
    check_same_bits("cuda:0", seed + 100 * shard, max(1, EXAMPLES // share // SHARDS), elements)
