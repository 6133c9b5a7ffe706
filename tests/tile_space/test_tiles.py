"""Tile space against np.pad, slices and loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tilearray as ta
from tilearray.tile_space.grid import PADDINGS

VALUES = {"zero": 0.0, "neg_zero": -0.0, "nan": np.nan, "pos_inf": np.inf, "neg_inf": -np.inf, 7: 7.0}


def drawn(rng):
    """An array with strides of all kinds, and the arguments of `tiles`."""
    ndim = int(rng.integers(0, 4))
    base = np.asarray(rng.standard_normal(tuple(rng.integers(0, 8, ndim)))).astype(rng.choice(["float32", "float64"]))
    steps = [slice(None, None, rng.choice([1, -1, 2])) for _ in range(ndim)]
    base = np.asarray(base).transpose(rng.permutation(ndim))[(..., *steps)]
    if ndim and rng.random() < 0.1:
        base = np.broadcast_to(base[:1], base.shape) if base.shape[0] else base
    tile = tuple(map(int, rng.integers(1, 5, ndim)))
    step = None if rng.random() < 0.5 else tuple(map(int, rng.integers(1, 5, ndim)))
    order = ["C", "F", tuple(map(int, rng.permutation(ndim)))][rng.integers(3)]
    return base, tile, step, order, list(VALUES)[rng.integers(len(VALUES))]


def expected(base, tile, step, order, padding):
    """The grid, and each tile by its index."""
    axes = {"C": tuple(range(base.ndim)), "F": tuple(range(base.ndim))[::-1]}.get(order, order)
    turned = base.transpose(axes)
    wide = np.pad(turned, [(0, size) for size in tile], constant_values=VALUES[padding]) if base.ndim else turned
    starts = [range(0, size, by) for size, by in zip(turned.shape, step or tile, strict=True)]
    tiles = {
        index: wide[tuple(slice(s[i], s[i] + n) for s, i, n in zip(starts, index, tile, strict=True))]
        for index in itertools.product(*[range(len(s)) for s in starts])
    }
    return turned, tuple(map(len, starts)), tiles


def check(cases, seed):
    rng = np.random.default_rng(seed)
    for _ in range(cases):
        base, tile, step, order, padding = given = drawn(rng)
        turned, shape, tiles = expected(*given)
        found = ta.tiles(ta.asarray(base, device="cpu"), tile, order=order, padding=padding, step=step)
        assert found.shape == shape, given
        stack = ta.to_numpy(found.stack())
        assert stack.shape == shape + tile, given
        for (index, want), part in zip(tiles.items(), found, strict=True):
            got = ta.to_numpy(part)
            assert got.tobytes() == want.tobytes() == stack[index].tobytes(), given
        if tiles and 0 not in base.strides:
            write_one(rng, base, found, turned, tiles, tile, step)


def write_one(rng, base, found, turned, tiles, tile, step):
    """A tile is written in its part inside, and no other element changes."""
    index = list(tiles)[rng.integers(len(tiles))]
    value = rng.standard_normal(tile).astype(base.dtype)
    want, start = turned.copy(), [i * s for i, s in zip(index, step or tile, strict=True)]
    inside = tuple(slice(s, s + n) for s, n in zip(start, tile, strict=True))
    want[inside] = value[tuple(slice(0, n) for n in want[inside].shape)]
    found[tuple(i - n for i, n in zip(index, found.shape, strict=True))] = ta.asarray(value, device="cpu")
    assert np.array_equal(turned, want)


def test_tiles_are_those_of_numpy():
    check(500, 1)


@pytest.mark.slow
def test_ten_thousand_grids_are_those_of_numpy():
    check(10_000, 2)


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
    with pytest.raises(ta.ShapeError, match=r"write tiles\.reduce"):
        grid.map(ta.sum)


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


def test_paddings_have_the_names_of_cutile():
    tile = pytest.importorskip("cuda.tile", reason="cuda-tile is made for Linux only: the extra `semantics` has it")
    assert list(PADDINGS) == [mode.value for mode in tile.PaddingMode]
    assert list(PADDINGS) == [mode.name.lower() for mode in tile.PaddingMode]
