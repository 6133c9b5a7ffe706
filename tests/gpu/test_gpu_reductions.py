"""Reductions on the GPU: the bits of the host on drawn arrays, and sums of many elements beside exact ones."""

from __future__ import annotations

import os

import numpy as np
import pytest
from support.oracles import some_elements
from support.oracles.reductions import check_same_bits

import tilearray as ta
from tilearray.engine.caches import KERNELS

EXAMPLES, SHARDS = int(os.environ.get("TILEARRAY_EXAMPLES", "400")), 4
KINDS = int(os.environ.get("TILEARRAY_KINDS", "40"))


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize(
    ("seed", "elements", "share"), [(11, 60, 1), (12, 3000, 1), (13, 200_000, 2), (14, 4_000_000, 16)]
)
def test_a_gpu_gives_the_bits_of_the_host(seed, elements, share, shard):
    check_same_bits("cuda:0", seed + 100 * shard, max(1, EXAMPLES // share // SHARDS), elements, KINDS)


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize(("seed", "elements", "share"), [(15, 60, 2), (16, 3000, 2), (17, 200_000, 4)])
def test_reductions_of_some_elements_give_the_bits_of_the_host(seed, elements, share, shard):
    some_elements.check_same_bits("cuda:0", seed + 100 * shard, max(1, EXAMPLES // share // SHARDS), elements, KINDS)


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


@pytest.mark.whole_gpu
def test_more_than_2_to_the_31_elements_of_views():
    count = 2**31 + 5
    x = ta.zeros(2 * count, dtype="int8", device="cuda:0")
    x[2 * count - 2] = 3
    x[2 * (2**31) + 2] = -4
    view = x[::2]
    assert (ta.sum(view).item(), ta.max(view).item(), ta.min(view).item()) == (-1, 3, -4)
    assert (ta.argmax(view).item(), ta.argmin(view).item()) == (count - 1, 2**31 + 1)
    assert (ta.argmax(view[::-1]).item(), ta.argmin(view[::-1]).item()) == (0, 3)
    assert (ta.any(view).item(), ta.all(view).item()) == (True, False)
    assert ta.count_nonzero(view).item() == 2
    assert abs(ta.mean(ta.astype(view, "float32")).item() * count + 1) < 1e-5
    assert abs(ta.var(ta.astype(view, "float32")).item() / (25 / count) - 1) < 1e-4
    x[2**31 + 1], x[2**32 - 1] = 2, 5
    matrix = ta.reshape(x[: 2**32], (2**16, 2**16))
    for each, axis in ((matrix, 1), (matrix.T, 0)):  # whose index does not fit into 31 bits
        rows = ta.sum(each, axis=axis)
        assert [rows[place].item() for place in (2**15 - 1, 2**15, 2**16 - 1)] == [0, 2, 5]
        assert ta.count_nonzero(rows).item() == 2
    columns = ta.max(matrix[:, 1:], axis=0)
    assert [columns[place].item() for place in (0, 1, 2**16 - 2)] == [2, 0, 5]
    assert ta.count_nonzero(columns).item() == 2


def test_1000_shapes_of_a_reduction_compile_a_kernel_a_loop_class():
    rng = np.random.default_rng(0)
    KERNELS.clear()
    for _ in range(1000):
        ta.sum(ta.ones(tuple(int(size) for size in rng.integers(1000, 2000, 2)), device="cuda:0"), axis=1)
    sums = [key for key in [*KERNELS._young, *KERNELS._old] if any(node[0] == "reduce" for node in key[0].nodes)]
    assert len(sums) == len({key[:3] for key in sums}) < 30
