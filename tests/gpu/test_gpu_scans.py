"""Scans on the GPU: the bits of the host on drawn arrays."""

from __future__ import annotations

import os

import numpy as np
import pytest
from support.oracles.reductions import compare
from support.oracles.scans import check_same_bits

import tilearray as ta

EXAMPLES, SHARDS = int(os.environ.get("TILEARRAY_EXAMPLES", "400")), 4
KINDS = int(os.environ.get("TILEARRAY_KINDS", "40"))


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize(("seed", "elements", "share"), [(21, 60, 1), (22, 3000, 1), (23, 200_000, 4)])
def test_a_gpu_gives_the_bits_of_the_host(seed, elements, share, shard):
    check_same_bits("cuda:0", seed + 100 * shard, max(1, EXAMPLES // share // SHARDS), elements, KINDS)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64", "complex128", "bfloat16"])
def test_columns_have_the_bits_of_the_host(dtype):
    x = ta.asarray(np.random.default_rng(3).normal(size=(2001, 1003)) * 3, device="cpu").astype(dtype)
    for given in (x, x[1:, 2:-1]):
        compare(ta.cumulative_sum(given, axis=0), ta.cumulative_sum(given.to_device("cuda:0"), axis=0), dtype)


@pytest.mark.whole_gpu
def test_more_than_2_to_the_31_elements():
    count = 2**31 + 5
    x = ta.ones(count, dtype="uint8", device="cuda:0")
    x[7] = 3
    places = [0, 7, 2**20, 2**31 - 1, 2**31, count - 1]
    flat = ta.cumulative_sum(x)
    assert [flat[place].item() for place in places] == [place + 1 + 2 * (place >= 7) for place in places]
    backwards = ta.cumulative_sum(x[::-1], include_initial=True)
    assert [backwards[place].item() for place in (0, 2**31, count - 7, count)] == [0, 2**31 + 2, count - 5, count + 2]
    del flat, backwards
    largest = ta.maximum.accumulate(x)
    assert [largest[place].item() for place in (6, 7, 2**31, count - 1)] == [1, 3, 3, 3]
    del largest
    rows = ta.reshape(x[: 2**31], (2, 2**30))
    for axis in (0, 1):
        found = ta.cumulative_sum(rows, axis=axis, dtype="uint8")
        assert found[1, 7].item() == (4 if axis == 0 else 8)
        assert found[0, 2**30 - 1].item() == (1 if axis == 0 else 2)
        del found


def test_a_graph_replays_a_long_scan():
    x = ta.arange(1_000_003, dtype="int64", device="cuda:0")
    ta.cumulative_sum(x)
    with ta.cuda.graph() as graph:
        found = ta.cumulative_sum(x)
    for factor in (1, 2, 3):
        x[...] = ta.arange(1_000_003, dtype="int64", device="cuda:0") * factor
        graph.replay()
        assert found[-1].item() == factor * 1_000_002 * 1_000_003 // 2
        assert found[500_000].item() == factor * 500_000 * 500_001 // 2


def test_scans_on_other_streams_at_once():
    streams = [ta.cuda.Stream("cuda:0") for _ in range(4)]
    x = ta.ones(30_000_001, dtype="float32", device="cuda:0")
    found = []
    for turn in range(12):
        with ta.cuda.stream(streams[turn % 4]):
            found.append(ta.cumulative_sum(x)[-1:])
    assert [each.item() for each in found] == [float(np.float32(30_000_001))] * 12
