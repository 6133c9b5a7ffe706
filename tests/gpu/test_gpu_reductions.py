"""Reductions on the GPU: the bits of the host on drawn arrays, and sums of many elements beside exact ones."""

from __future__ import annotations

import os

import numpy as np
import pytest
from support.oracles.reductions import check_same_bits

import tilearray as ta

EXAMPLES, SHARDS = int(os.environ.get("TILEARRAY_EXAMPLES", "400")), 4
KINDS = int(os.environ.get("TILEARRAY_KINDS", "40"))


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize(
    ("seed", "elements", "share"), [(11, 60, 1), (12, 3000, 1), (13, 200_000, 2), (14, 4_000_000, 16)]
)
def test_a_gpu_gives_the_bits_of_the_host(seed, elements, share, shard):
    check_same_bits("cuda:0", seed + 100 * shard, max(1, EXAMPLES // share // SHARDS), elements, KINDS)


@pytest.mark.whole_gpu
def test_a_billion_elements_add_up_to_1e_7():
    x = ta.full(10**9, 0.1, dtype="float32", device="cuda:0")
    exact = 10**9 * float(np.float32(0.1))
    assert abs(ta.sum(x).item() / exact - 1) < 1e-7
    assert abs(ta.mean(x).item() / float(np.float32(0.1)) - 1) < 1e-7
    assert ta.var(x).item() == 0


@pytest.mark.whole_gpu
def test_more_than_2_to_the_31_elements():
    count = 2**31 + 5
    x = ta.ones(count, dtype="uint8", device="cuda:0")
    assert ta.sum(x).item() == ta.count_nonzero(x).item() == count
    x[count - 2] = 7
    assert ta.argmax(x).item() == count - 2
    rows = ta.reshape(x[: 2**31], (2**30, 2))
    assert ta.sum(rows, axis=0).tolist() == [2**30, 2**30]
    assert ta.sum(ta.sum(rows, axis=1)).item() == 2**31
    kept = ta.sum(ta.broadcast_to(x, (2, count)), axis=0, dtype="uint8")  # as many results
    assert kept.shape == (count,)
    assert [kept[place].item() for place in (0, 2**31 - 1, 2**31, count - 2, count - 1)] == [2, 2, 2, 14, 2]
    assert ta.sum(kept).item() == 2 * count + 12


def test_a_reduction_compiles_no_more_kernels_than_layouts_met():
    from tilearray.engine.caches import KERNELS

    rng = np.random.default_rng(0)

    def some(count):
        for _ in range(count):
            ta.sum(ta.ones(tuple(int(size) for size in rng.integers(1000, 2000, 2)), device="cuda:0"), axis=1)

    some(30)
    before = len(KERNELS)
    some(200)
    assert len(KERNELS) == before
