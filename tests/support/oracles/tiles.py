"""Tile space from NumPy alone: `np.pad` and slices for tiles, and a loop for elements at indices; on any device."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import tilearray as ta

VALUES = {"zero": 0.0, "neg_zero": -0.0, "nan": np.nan, "pos_inf": np.inf, "neg_inf": -np.inf, 7: 7.0}
KINDS = ("int64", "int32", "int8", "uint8", "uint64")
Index = tuple[int, ...]


class Case(NamedTuple):
    """A view of a dense array, with strides of any kind, and the arguments of `tiles`."""

    dense: np.ndarray
    axes: Index
    steps: tuple[slice, ...]
    repeats: bool
    tile: Index
    step: Index | None
    order: Any
    padding: Any

    def view(self, library: Any, dense: Any) -> Any:
        """The view of a dense array by NumPy, or by tilearray."""
        found = library.permute_dims(dense, self.axes)[(..., *self.steps)]
        return library.broadcast_to(found[:1], found.shape) if self.repeats and found.shape[0] else found

    @property
    def turned(self) -> np.ndarray:
        """The view with the axes of tile space."""
        ndim = self.dense.ndim
        axes = {"C": tuple(range(ndim)), "F": tuple(range(ndim))[::-1]}.get(self.order, self.order)
        return self.view(np, self.dense).transpose(axes)

    def grid(self, device: Any) -> tuple[Any, Any]:
        """The dense array in memory of its own on a device, and the grid of its view."""
        dense = ta.asarray(self.dense.copy(), device=device)
        options: Any = {"order": self.order, "padding": self.padding, "step": self.step}
        return dense, self.view(ta, dense).tiles(self.tile, **options)


def drawn(rng: np.random.Generator) -> Case:
    ndim = int(rng.integers(0, 4))
    dense = np.asarray(rng.standard_normal(tuple(rng.integers(0, 8, ndim)))).astype(rng.choice(["float32", "float64"]))
    return Case(
        dense=dense,
        axes=tuple(map(int, rng.permutation(ndim))),
        steps=tuple([slice(None, None, int(rng.choice([1, -1, 2]))) for _ in range(ndim)]),
        repeats=bool(ndim and rng.random() < 0.1),
        tile=tuple(map(int, rng.integers(1, 5, ndim))),
        step=None if rng.random() < 0.5 else tuple(map(int, rng.integers(1, 5, ndim))),
        order=["C", "F", tuple(map(int, rng.permutation(ndim)))][rng.integers(3)],
        padding=list(VALUES)[rng.integers(len(VALUES))],
    )


def same(found: Any, want: np.ndarray) -> bool:
    """Whether an array has the shape, the dtype and the bits of an ndarray."""
    got = ta.to_numpy(found)
    return (got.shape, got.dtype, got.tobytes()) == (want.shape, want.dtype, want.tobytes())


# --- tiles -----------------------------------------------------------------------------------------------------------


def check_tiles(cases: int, seed: int, device: Any) -> None:
    """The grid, each tile, the stack, functions over the grid, and one tile that is written."""
    rng = np.random.default_rng(seed)
    for _ in range(cases):
        case = drawn(rng)
        shape, tiles = expected(case)
        dense, grid = case.grid(device)
        assert grid.shape == shape, case
        stack = ta.to_numpy(grid.stack())
        assert stack.shape == shape + case.tile, case
        for (index, want), part in zip(tiles.items(), grid, strict=True):
            assert same(part, want), case
            assert stack[index].tobytes() == want.tobytes(), case
        check_functions(case, grid, shape, tiles)
        if tiles and not case.repeats:
            check_written(rng, case, dense, grid, list(tiles))


def check_functions(case: Case, grid: Any, shape: Index, tiles: dict[Index, np.ndarray]) -> None:
    """A mapped grid; the largest element and the sum of each tile, which have the bits of reductions of the stack."""
    assert same(grid.map(ta.abs), np.abs(case.view(np, case.dense))), case
    axes = tuple(range(-len(shape), 0))
    values = np.array([tiles[index] for index in np.ndindex(shape)], case.dense.dtype).reshape(shape + case.tile)
    with np.errstate(invalid="ignore"):
        sums = values.sum(axes, np.float64)
    for function, want, near in ((ta.max, values.max(axes), 0.0), (ta.sum, sums, 1e-5)):
        found = grid.reduce(function)
        assert same(found, ta.to_numpy(function(grid.stack(), axis=axes))), case
        np.testing.assert_allclose(ta.to_numpy(found), want, near, near, err_msg=str(case))


def expected(case: Case) -> tuple[Index, dict[Index, np.ndarray]]:
    """The shape of the grid, and each tile by its index."""
    turned, tile = case.turned, case.tile
    padding = [(0, size) for size in tile]
    wide = np.pad(turned, padding, constant_values=VALUES[case.padding]) if turned.ndim else turned
    starts = [range(0, size, by) for size, by in zip(turned.shape, case.step or tile, strict=True)]
    tiles = {
        index: wide[tuple(slice(s[i], s[i] + n) for s, i, n in zip(starts, index, tile, strict=True))]
        for index in itertools.product(*[range(len(s)) for s in starts])
    }
    return tuple(map(len, starts)), tiles


def check_written(rng: np.random.Generator, case: Case, dense: Any, grid: Any, indices: list[Index]) -> None:
    """A tile is written in its part inside, and no other element changes."""
    index = indices[rng.integers(len(indices))]
    value = rng.standard_normal(case.tile).astype(case.dense.dtype)
    want = case._replace(dense=case.dense.copy())
    start = [i * s for i, s in zip(index, case.step or case.tile, strict=True)]
    turned, inside = want.turned, tuple([slice(s, s + n) for s, n in zip(start, case.tile, strict=True)])
    turned[inside] = value[tuple(slice(0, n) for n in np.shape(turned[inside]))]
    grid[tuple(i - n for i, n in zip(index, grid.shape, strict=True))] = ta.asarray(value, device=dense.device)
    assert same(dense, want.dense), case


# --- elements at indices ---------------------------------------------------------------------------------------------


def drawn_indices(rng: np.random.Generator, shape: Index) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Index arrays of shapes that broadcast to one, of which some elements lie outside; and a mask."""
    common = tuple(map(int, rng.integers(0, 5, rng.integers(0, 4))))
    if common and rng.random() < 0.8:
        common = tuple(max(1, size) for size in common)

    def part() -> Index:
        axes = common[rng.integers(0, len(common) + 1) :]
        return tuple(1 if rng.random() < 0.2 else size for size in axes)

    def index(size: int) -> np.ndarray:
        kind = rng.choice(KINDS)
        return np.asarray(rng.integers(-2 if kind[0] == "i" else 0, size + 3, part())).astype(kind)

    return tuple([index(size) for size in shape]), np.asarray(rng.random(part()) < 0.7)


def places(
    shape: Index, indices: tuple[np.ndarray, ...], mask: np.ndarray
) -> Iterator[tuple[Index, tuple[int, ...] | None]]:
    """For each place in C order: its position, and the element's index, or None if it is outside."""
    *each, mask = np.broadcast_arrays(*indices, mask)
    for place in np.ndindex(mask.shape):
        index = tuple([int(one[place]) for one in each])
        inside = all(0 <= at < size for at, size in zip(index, shape, strict=True))
        yield place, index if inside and mask[place] else None


def check_gather(cases: int, seed: int, device: Any) -> None:
    """Elements at indices, and padding for those outside."""
    rng = np.random.default_rng(seed)
    for _ in range(cases):
        case = drawn(rng)
        turned = case.turned
        indices, mask = drawn_indices(rng, turned.shape)
        given = None if rng.random() < 0.3 else mask
        holds = np.True_ if given is None else given
        want = np.empty(np.broadcast_shapes(*[index.shape for index in indices], holds.shape), turned.dtype)
        for place, index in places(turned.shape, indices, np.asarray(holds)):
            want[place] = VALUES[case.padding] if index is None else turned[index]
        _, grid = case.grid(device)
        assert same(grid.gather(indices, mask=given), want), (case, indices, given)


def check_scatter(cases: int, seed: int, device: Any) -> None:
    """Elements that are written at indices: on the host the last value for one element stays, on a GPU any of them."""
    rng = np.random.default_rng(seed)
    for _ in range(cases):
        case = drawn(rng)
        indices, mask = drawn_indices(rng, case.turned.shape)
        if case.repeats:
            continue
        shape = np.broadcast_shapes(*[index.shape for index in indices], mask.shape)
        value = np.asarray(rng.standard_normal(shape[rng.integers(0, len(shape) + 1) :])).astype(case.dense.dtype)
        want, values = case._replace(dense=case.dense.copy()), np.broadcast_to(value, shape)
        inside = [each for each in places(case.turned.shape, indices, mask) if each[1] is not None]
        if str(device) != "cpu" and len({index for _, index in inside}) < len(inside):
            continue
        for place, index in inside:
            want.turned[index] = values[place]
        dense, grid = case.grid(device)
        grid.scatter(indices, float(value) if not value.ndim and rng.random() < 0.5 else value, mask=mask)
        assert same(dense, want.dense), (case, indices, mask)
