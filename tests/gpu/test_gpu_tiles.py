"""Tile space on a GPU: tiles, their stack, elements at indices, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from support.oracles.tiles import check_gather, check_scatter, check_tiles

import tilearray as ta


@pytest.mark.parametrize("shard", range(10))
def test_tiles_are_those_of_numpy(shard):
    check_tiles(15, 11 + 100 * shard, "cuda:0")
    check_tiles(2, 15 + 100 * shard, "cuda:0", wide=True)


def test_elements_are_those_of_a_loop():
    check_gather(150, 12, "cuda:0")
    check_scatter(150, 13, "cuda:0")


def test_a_mapped_grid_is_one_launch():
    x = ta.ones((1000, 2001), device="cuda:0")
    function = ta.fuse(lambda tile: ta.abs(tile) * 2 + 1)
    assert len(ta.explain(lambda x: x.tiles((64, 32)).map(function), x).launches) == 1
    assert ta.all(x.tiles((64, 32)).map(function) == 3)


def test_a_reduced_grid_is_one_launch_beside_the_same_on_the_host():
    values = np.random.default_rng(14).standard_normal((6399, 3203))
    for name in ("float32", "bfloat16", "complex64", "complex128", "int8", "bool"):
        host = ta.asarray(values, device="cpu").astype(name if name[0] != "b" else "float32").astype(name)
        x = host.to_device("cuda:0")
        for tile in ((64, 32), (17, 48)):
            for function in (ta.sum, ta.var) if name in ("float32", "bfloat16") else (ta.sum,):
                reduced = lambda x: x.tiles(tile, padding=1).reduce(function)  # noqa: B023, E731
                assert len(ta.explain(reduced, x).launches) == 1
                assert ta.to_numpy(reduced(x)).tobytes() == ta.to_numpy(reduced(host)).tobytes()
