"""Tile space against np.pad, slices and loops."""

from __future__ import annotations

import numpy as np
import pytest
from support.oracles.tiles import check_tiles

import tilearray as ta
from tilearray.tile_space.grid import PADDINGS


def test_tiles_are_those_of_numpy():
    """`scripts/reliability tiles` draws ten thousand."""
    check_tiles(300, 1, "cpu", wide=True)


def test_a_tile_inside_shares_memory_and_one_at_the_edge_does_not():
    x = np.zeros((5, 4), np.float32)
    grid = ta.tiles(ta.asarray(x, device="cpu"), (2, 2))
    grid[0, 0][...] = 1
    grid[2, 0][...] = 2
    assert x[:2, :2].all()
    assert x.sum() == 4
    assert np.shares_memory(ta.to_numpy(ta.tiles(ta.asarray(x[:4], device="cpu"), (2, 2)).stack()), x)


def test_functions_of_the_grid():
    x = np.arange(-10.0, 10.0, dtype=np.float32).reshape(4, 5)
    grid = ta.tiles(ta.asarray(x, device="cpu"), (2, 2), padding="neg_inf")
    wide = np.pad(x, [(0, 0), (0, 1)], constant_values=-np.inf).reshape(2, 2, 3, 2)
    assert ta.to_numpy(grid.reduce(ta.max)).tolist() == wide.max((1, 3)).tolist()
    assert grid.reduce(ta.max, keepdims=True).shape == (2, 3, 1, 1)
    assert ta.to_numpy(grid.map(ta.abs)).tolist() == np.abs(x).tolist()
    assert ta.to_numpy(grid.reduce(ta.median)).tolist() == np.median(wide, (1, 3)).tolist()
    with pytest.raises(ta.ShapeError, match=r"write tiles\.reduce"):
        grid.map(ta.sum)


def test_scales_of_tiles_are_those_of_blocks():
    x = ta.asarray(np.random.default_rng(0).standard_normal((8, 12)), dtype="float32", device="cpu")
    tiles, blocks = ta.quantize(x.tiles((4, 3)).stack(), "int8", axis=(2, 3)), ta.quantize(x, "int8", block=(4, 3))
    assert tiles.scales.reshape(2, 4).tolist() == blocks.scales.tolist()
    assert tiles.values[1, 2].tolist() == blocks.values[4:, 6:9].tolist()


def test_errors_say_what_to_write():
    x = ta.zeros((3, 4), device="cpu")
    for call, error, text in [
        (lambda: ta.tiles(x, (2, 2))[2, 0], ta.IndexingError, "index 2 is out of bounds for axis 0 with size 2"),
        (lambda: ta.tiles(x, (2, 2))[0], ta.IndexingError, "expected 2 indices"),
        (lambda: ta.tiles(x, 2), ta.ShapeError, "each of 2 axes as tile_shape"),
        (lambda: ta.tiles(x, (2, 0)), ta.OperandError, "1 or more as tile_shape"),
        (lambda: ta.tiles(x, (2, 2), padding="one"), ta.OperandError, "got 'one'"),
        (lambda: ta.tiles(x, (2, 2), order=(0,)), ta.ShapeError, "as order"),
        (lambda: ta.tiles(x, (2, 2)).__setitem__((1, 0), ta.ones((3,), device="cpu")), ta.ShapeError, "broadcasts"),
        (lambda: len(ta.tiles(1.0, ())), ta.OperandError, "a grid with axes"),
    ]:
        with pytest.raises(error, match=text):
            call()


def test_a_fused_function_of_the_grid_is_one_launch():
    x = ta.empty((100, 201), dtype="float32", device="cpu")
    function = ta.fuse(lambda tile: ta.abs(tile) * 2 + 1)
    (launch,) = ta.explain(lambda x: ta.tiles(x, (64, 32)).map(function), x, arch=90).launches
    assert launch.kernel.schedule == "flat"


@pytest.mark.parametrize("shape", [(6400, 3200), (6399, 3203), (3203, 6399)])
def test_a_reduction_of_the_grid_is_one_launch(shape):
    x = ta.empty(shape, dtype="float32", device="cpu")
    squares = ta.fuse(lambda tiles, axis: ta.sqrt(ta.sum(tiles * tiles, axis=axis)))
    for function in (ta.sum, ta.var, squares):
        for order in ("C", "F"):
            found = ta.explain(lambda x: ta.tiles(x, (64, 32), order=order).reduce(function), x, arch=90)  # noqa: B023
            (launch,) = found.launches
            assert launch.kernel.schedule == "reduce"
            assert launch.bytes_read < 1.02 * x.nbytes  # the array itself, and nothing twice


def test_few_tiles_are_cut_into_segments_and_sorts_read_the_stack():
    x = ta.empty((100, 201), dtype="float32", device="cpu")
    for function, launches in ((ta.sum, 2), (lambda tiles, axis: ta.sum(tiles, axis=axis), 4)):
        assert len(ta.explain(lambda x: ta.tiles(x, (64, 32)).reduce(function), x, arch=90).launches) == launches  # noqa: B023


def test_paddings_have_the_names_of_cutile():
    tile = pytest.importorskip("cuda.tile", reason="cuda-tile is made for Linux only: the extra `semantics` has it")
    assert list(PADDINGS) == [mode.value for mode in tile.PaddingMode]
    assert list(PADDINGS) == [mode.name.lower() for mode in tile.PaddingMode]
