"""Softmax and sums of exponentials on the GPU: one launch gives the bits of several."""

from __future__ import annotations

import os

import pytest
from support.oracles.rows import check_one_launch

import tilearray as ta

EXAMPLES, SHARDS = int(os.environ.get("TILEARRAY_EXAMPLES", "400")), 4
KINDS = int(os.environ.get("TILEARRAY_KINDS", "20"))


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize(("seed", "elements", "share"), [(31, 60, 2), (32, 5000, 2), (33, 500_000, 4)])
def test_one_launch_gives_the_bits_of_several(seed, elements, share, shard):
    check_one_launch(ta.devices()[0], seed + 100 * shard, max(1, EXAMPLES // share // SHARDS), elements, KINDS)
