"""Tile space on a GPU: tiles, their stack, elements at indices, against NumPy."""

from __future__ import annotations

from support.oracles.tiles import check_gather, check_scatter, check_tiles

import tilearray as ta


def test_tiles_are_those_of_numpy():
    check_tiles(150, 11, "cuda:0")


def test_elements_are_those_of_a_loop():
    check_gather(150, 12, "cuda:0")
    check_scatter(150, 13, "cuda:0")


def test_a_mapped_grid_is_one_launch():
    x = ta.ones((1000, 2001), device="cuda:0")
    function = ta.fuse(lambda tile: ta.abs(tile) * 2 + 1)
    assert len(ta.explain(lambda x: x.tiles((64, 32)).map(function), x).launches) == 1
    assert ta.all(x.tiles((64, 32)).map(function) == 3)
