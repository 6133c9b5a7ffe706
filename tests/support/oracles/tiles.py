"""Tile space from NumPy alone: `np.pad` and slices for tiles, and a loop for elements at indices; on any device."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import tilearray as ta
from support.oracles.formats import dtype_of

VALUES = {"zero": 0.0, "neg_zero": -0.0, "nan": np.nan, "pos_inf": np.inf, "neg_inf": -np.inf, 7: 7.0}
KINDS = ("int64", "int32", "int8", "uint8", "uint64")
FLOATS = ("float32", "float64")
DTYPES = (*FLOATS, "float16", "bfloat16", "float8_e5m2", "complex64", "complex128", *KINDS, "bool")
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
    def permuted(self) -> np.ndarray:
        """The view with the axes of tile space."""
        ndim = self.dense.ndim
        axes = {"C": tuple(range(ndim)), "F": tuple(range(ndim))[::-1]}.get(self.order, self.order)
        return self.view(np, self.dense).transpose(axes)

    def grid(self, device: Any) -> tuple[Any, Any]:
        """The dense array in memory of its own on a device, and the grid of its view."""
        dense = ta.asarray(self.dense.copy(), device=device)
        options: Any = {"order": self.order, "padding": self.padding, "step": self.step}
        return dense, self.view(ta, dense).tiles(self.tile, **options)


def drawn(rng: np.random.Generator, *, wide: bool = False) -> Case:
    """Draw a case; a wide one has any dtype, up to four axes, and views that start inside."""
    ndim = int(rng.integers(0, 5 if wide else 4))
    shape = tuple(map(int, rng.integers(0, 8 if ndim < 4 else 4, ndim)))
    name = str(rng.choice(DTYPES if wide else FLOATS))
    steps = [slice(None, None, int(rng.choice([1, -1, 2]))) for _ in range(ndim)]
    if wide:
        steps = [slice(*[(None, None, each.step), (1, None, 3), (None, -1, 1)][rng.integers(3)]) for each in steps]
    return Case(
        dense=elements(rng, shape, name),
        axes=tuple(map(int, rng.permutation(ndim))),
        steps=tuple(steps),
        repeats=bool(ndim and rng.random() < 0.1),
        tile=tuple(map(int, rng.integers(1, 5, ndim))),
        step=None if rng.random() < 0.5 else tuple(map(int, rng.integers(1, 5, ndim))),
        order=["C", "F", tuple(map(int, rng.permutation(ndim)))][rng.integers(3)],
        padding=padding_of(rng, name, wide=wide),
    )


def elements(rng: np.random.Generator, shape: Index, name: str) -> np.ndarray:
    """Draw the elements of an array, small ones for integers."""
    values = np.asarray(rng.standard_normal(shape))
    if name == "bool":
        return np.asarray(values > 0)
    if name.startswith("complex"):
        return np.asarray(values + 1j * rng.standard_normal(shape)).astype(name)
    integers = np.abs(values * 5) if name.startswith("uint") else values * 5
    return np.asarray(integers if "int" in name else values).astype(dtype_of(name))


def padding_of(rng: np.random.Generator, name: str, *, wide: bool) -> Any:
    """Draw a padding that the dtype holds; only wide cases leave it undetermined."""
    names: list[Any] = list(VALUES) if "float" in name or "complex" in name else ["zero", 1 if name == "bool" else 7]
    return (names + ["undetermined"] * wide)[rng.integers(len(names) + wide)]


def padding_value(case: Case) -> np.ndarray:
    """The padding in the array's dtype; nothing in particular if it is undetermined."""
    return np.asarray(VALUES.get(case.padding, case.padding != "undetermined"), case.dense.dtype)


def same(found: Any, want: np.ndarray, also: bool = True) -> bool:
    """Whether an array has the shape, the dtype and the bits of an ndarray."""
    got = ta.to_numpy(found)
    return also and (got.shape, got.dtype, bits(got)) == (want.shape, want.dtype, bits(want))


def bits(x: np.ndarray) -> bytes:
    """The bits of an ndarray, all NaNs alike: a GPU converts the number NaN to other bits of bfloat16 than the host."""
    if x.dtype.kind not in "fV" or x.dtype.itemsize == 1:
        return x.tobytes()
    return np.where(x == x, x, x.dtype.type(np.nan)).astype(x.dtype).tobytes()


# --- tiles -----------------------------------------------------------------------------------------------------------


def check_tiles(cases: int, seed: int, device: Any, *, wide: bool = False) -> None:
    """The grid, each tile, the stack, functions over the grid, and one tile that is written."""
    rng = np.random.default_rng(seed)
    for _ in range(cases):
        check_grid(rng, drawn(rng, wide=wide), device)


def check_grid(rng: np.random.Generator, case: Case, device: Any) -> None:
    """One case of `check_tiles`."""
    shape, tiles = expected(case)
    dense, grid = case.grid(device)
    assert grid.shape == shape, case
    stack = ta.to_numpy(grid.stack())
    assert stack.shape == shape + case.tile, case
    for (index, want), part in zip(tiles.items(), grid, strict=True):
        inside = inside_of(case, index) if case.padding == "undetermined" else ...
        assert same(part[inside], want[inside], part.shape == want.shape), case
        assert bits(stack[index][inside]) == bits(want[inside]), case
    check_maps(case, grid)
    if case.padding != "undetermined":
        check_reductions(case, grid, shape, tiles)
    if tiles and not case.repeats:
        check_written(rng, case, dense, grid, list(tiles))


def check_maps(case: Case, grid: Any) -> None:
    """Elementwise functions: one of the library, one of the caller, and a fused one; operations round one by one."""
    x = case.view(np, case.dense)
    if x.dtype == bool:
        assert same(grid.map(ta.logical_not), ~x), case
        return
    with np.errstate(over="ignore"):
        squares = np.asarray(np.multiply(x, x) + x.dtype.type(1), x.dtype)
    for function, want in ((ta.abs, np.abs(x)), (shifted_square, squares), (FUSED, squares)):
        found = grid.map(function)
        if x.dtype.kind == "c":  # NumPy's last bits depend on strides
            np.testing.assert_allclose(ta.to_numpy(found), want, 1e-6, err_msg=str((function, case)))
        else:
            assert same(found, want), (function, case)


def shifted_square(x: Any) -> Any:
    """An elementwise function of two operations."""
    return x * x + 1


FUSED = ta.fuse(shifted_square)


def check_reductions(case: Case, grid: Any, shape: Index, tiles: dict[Index, np.ndarray]) -> None:
    """Reductions of each tile, which have the bits of reductions of the stack."""
    axes = tuple(range(-len(shape), 0))
    values = np.array([tiles[index] for index in np.ndindex(shape)], case.dense.dtype).reshape(shape + case.tile)
    for function, want, near in reduced(values, axes):
        found = grid.reduce(function)
        assert same(found, ta.to_numpy(function(grid.stack(), axis=axes))), (function, case)
        got = ta.to_numpy(found)
        got = got.astype(want.dtype) if want.dtype.kind in "fc" else got
        for one, right in ((got.real, want.real), (got.imag, want.imag)):  # an infinite part leaves the other as it is
            np.testing.assert_allclose(one, right, near, near, err_msg=str((function, case)))


def reduced(values: np.ndarray, axes: Index) -> Iterator[tuple[Any, np.ndarray, float]]:
    """Functions, their values in wide dtypes by NumPy, and how near results must be."""
    kind = {**dict.fromkeys("bui", "i"), "c": "c"}.get(values.dtype.kind, "f")  # the kind of bfloat16 is V
    whole = values.astype(
        {"i": "uint64" if values.dtype.kind == "u" else "int64", "c": "complex128", "f": "float64"}[kind]
    )
    near = {"float32": 1e-5, "float64": 1e-5, "complex64": 1e-5, "complex128": 1e-5, "float16": 2e-3}
    close = 0.0 if kind == "i" else near.get(values.dtype.name, 0.25 if values.dtype.itemsize == 1 else 2e-2)
    with np.errstate(invalid="ignore", over="ignore"):
        if kind != "c":
            yield ta.max, whole.max(axes), 0.0
            yield ta.min, whole.min(axes), 0.0
        yield ta.sum, whole.sum(axes), close
        yield ta.count_nonzero, np.count_nonzero(whole, axes), 0.0
        yield ta.all, whole.all(axes), 0.0


def expected(case: Case) -> tuple[Index, dict[Index, np.ndarray]]:
    """The shape of the grid, and each tile by its index."""
    permuted, tile = case.permuted, case.tile
    padding = [(0, size) for size in tile]
    wide = np.pad(permuted, padding, constant_values=padding_value(case)) if permuted.ndim else permuted
    starts = [range(0, size, by) for size, by in zip(permuted.shape, case.step or tile, strict=True)]
    tiles = {
        index: wide[tuple(slice(s[i], s[i] + n) for s, i, n in zip(starts, index, tile, strict=True))]
        for index in itertools.product(*[range(len(s)) for s in starts])
    }
    return tuple(map(len, starts)), tiles


def inside_of(case: Case, index: Index) -> tuple[slice, ...]:
    """The part of a tile that lies inside the array."""
    starts = [i * s for i, s in zip(index, case.step or case.tile, strict=True)]
    ends = zip(starts, case.tile, case.permuted.shape, strict=True)
    return tuple([slice(0, min(tile, size - start)) for start, tile, size in ends])


def check_written(rng: np.random.Generator, case: Case, dense: Any, grid: Any, indices: list[Index]) -> None:
    """A tile is written in its part inside by a value that broadcasts, and no other element changes."""
    index = indices[rng.integers(len(indices))]
    axes = case.tile[rng.integers(0, len(case.tile) + 1) :]
    value = elements(rng, tuple([1 if rng.random() < 0.2 else size for size in axes]), case.dense.dtype.name)
    want, inside = case._replace(dense=case.dense.copy()), inside_of(case, index)
    starts = [i * s for i, s in zip(index, case.step or case.tile, strict=True)]
    place = tuple([slice(start, start + part.stop) for start, part in zip(starts, inside, strict=True)])
    want.permuted[place] = np.broadcast_to(value, case.tile)[inside]
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


def check_gather(cases: int, seed: int, device: Any, *, wide: bool = False) -> None:
    """Elements at indices, and padding for those outside."""
    rng = np.random.default_rng(seed)
    for _ in range(cases):
        check_gathered(rng, drawn(rng, wide=wide), device)


def check_gathered(rng: np.random.Generator, case: Case, device: Any) -> None:
    """One case of `check_gather`; with padding that is undetermined, elements outside have any value."""
    permuted = case.permuted
    indices, mask = drawn_indices(rng, permuted.shape)
    given = None if rng.random() < 0.3 else mask
    holds = np.True_ if given is None else given
    want = np.zeros(np.broadcast_shapes(*[index.shape for index in indices], holds.shape), permuted.dtype)
    known = np.ones(want.shape, bool)
    for place, index in places(permuted.shape, indices, np.asarray(holds)):
        want[place] = padding_value(case) if index is None else permuted[index]
        known[place] = index is not None or case.padding != "undetermined"
    _, grid = case.grid(device)
    found = ta.to_numpy(grid.gather(indices, mask=given))
    assert (found.shape, found.dtype) == (want.shape, want.dtype), (case, indices, given)
    assert found[known].tobytes() == want[known].tobytes(), (case, indices, given)


def check_scatter(cases: int, seed: int, device: Any, *, wide: bool = False) -> None:
    """Elements that are written at indices: on the host the last value for one element stays, on a GPU any of them."""
    rng = np.random.default_rng(seed)
    for _ in range(cases):
        check_scattered(rng, drawn(rng, wide=wide), device)


def check_scattered(rng: np.random.Generator, case: Case, device: Any) -> None:
    """One case of `check_scatter`."""
    indices, mask = drawn_indices(rng, case.permuted.shape)
    if case.repeats:
        return
    shape = np.broadcast_shapes(*[index.shape for index in indices], mask.shape)
    value = elements(rng, shape[rng.integers(0, len(shape) + 1) :], case.dense.dtype.name)
    want, values = case._replace(dense=case.dense.copy()), np.broadcast_to(value, shape)
    inside = [each for each in places(case.permuted.shape, indices, mask) if each[1] is not None]
    if str(device) != "cpu" and len({index for _, index in inside}) < len(inside):
        return
    permuted = want.permuted
    for place, index in inside:
        permuted[index] = values[place]
    dense, grid = case.grid(device)
    grid.scatter(indices, value.item() if not value.ndim and rng.random() < 0.5 else value, mask=mask)
    assert same(dense, want.dense), (case, indices, mask)
