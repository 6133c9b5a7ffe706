"""Tiles: arrays with two different fastest axes or more, as in ``a + b.T``.

An array that is dense along a tile's rows is read along them, and changes its layout in shared memory. Bytes are read
as words or vectors and transposed by fours. If the last extent fills whole tiles badly, and the result goes on in the
last axis but two, both axes are one: merged columns.

Unless rows are few, the last tile reaches beyond an axis by a seventh of it at most, and a tile of 256 rows by a
thirty-second: in such tiles bytes were copied at 0.97 of a copy's rate, and at 0.62 if half of the last tile lay
outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

from tilearray_cuda.kernels.hardware import SECTOR, WORD
from tilearray_cuda.kernels.schedules import extents
from tilearray_cuda.kernels.schedules.addressing import Branch, term
from tilearray_cuda.kernels.schedules.schedule import Schedule, Sizes, Tile, masked, tile_for
from tilearray_cuda.kernels.schedules.tiled import Tiled, rows_are_aligned
from tilearray_cuda.kernels.spec import KernelSpec, Operand

Ints = tuple[int, ...]

_TILE: Sizes = {
    1: Tile(128, 128, 8),
    2: Tile(128, 64, 16),
    4: Tile(64, 128, 8),
    8: Tile(32, 64, 16),
    16: Tile(32, 32, 16),
}
_ODD: Sizes = {
    1: Tile(64, 256, 16),
    2: Tile(128, 128, 16),
    4: Tile(64, 128, 16),
    8: Tile(64, 64, 8),
    16: Tile(32, 32, 8),
}

# first architecture -> kind -> tiles, measured on an H200 (sm_90). "odd": rows begin at no multiples of 16 bytes, or of
# two elements; "merged": columns of two axes; "copied": one array is read alone; reads and writes take turns at memory,
# and shorter turns are faster, down to tiles of 4096 bytes
SIZES = {
    80: {
        "tile": _TILE,
        "odd": _ODD,
        "merged": {**_TILE, 1: Tile(128, 256, 16), 2: Tile(128, 128, 16), 4: Tile(128, 128, 16)},
        "tile copied": {
            **_TILE, 1: Tile(256, 128, 16), 2: Tile(128, 128, 16), 4: Tile(64, 64, 16), 8: Tile(64, 32, 16)
        },
        "odd copied": {**_ODD, 4: Tile(64, 256, 16), 8: Tile(64, 128, 16), 16: Tile(32, 128, 16)},
        "merged copied": {
            **_TILE, 1: Tile(128, 256, 16), 2: Tile(128, 128, 8), 4: Tile(128, 64, 16), 8: Tile(64, 32, 16)
        },
    }
}  # fmt: skip


WHOLE: dict[int, dict[int, Tile]] = {
    1: {32: Tile(32, 256, 8), 64: Tile(64, 256, 8), 128: Tile(128, 128, 8)},
    2: {32: Tile(32, 128, 8), 64: Tile(64, 64, 8), 128: Tile(128, 128, 16)},
    4: {32: Tile(32, 64, 8), 64: Tile(64, 64, 8), 128: Tile(128, 64, 16), 256: Tile(256, 32, 16)},
    8: {32: Tile(32, 64, 16), 64: Tile(64, 64, 16), 128: Tile(128, 64, 16)},
}
"""Tiles of all rows, by itemsize and rows, for copies of arrays whose rows fill only smaller tiles, which read short
pieces. Transposed, they are tiles of all columns, which only elements of 2 and 4 bytes need. On an H100 transposed
matrices of float32 of 20, 36, 100, 130 and 200 columns are copied at 0.91, 0.89, 0.88, 0.90 and 0.87 of a copy's rate
so, and at 0.67, 0.62, 0.63, 0.64 and 0.79 in tiles that they fill; of 36 columns of bfloat16 at 0.84 and 0.47, and of
float64 at 0.94 and 0.79. Bytes, and words beside merged columns, have such tiles if both extents are multiples of 4:
others are read one by one, as fast in small tiles."""
FULL = 64
"""The least rows of a tile that reads long pieces; half as many columns do."""
SECTOR_WORDS = SECTOR // WORD
"""The words of a sector."""


class TileFacts(NamedTuple):
    """The facts of a loop that is run in tiles.

    Attributes
    ----------
    fits : rows and columns of a tile that the last two axes fill well
    merges : whether the last axis and the last but two may be the columns, as one; the last alone fills tiles badly
    fours : whether tiles reach beyond the last two axes in whole vectors of 4, since both extents are multiples of 4
    huge : whether one array is transposed into another, and no cache has room for either
    whole : rows and columns of a tile of `WHOLE` that has all of an axis, where smaller ones would be many; or 0
    further : if rows fill tiles badly, the slower axis in which those of transposed arrays go on, the rows of a tile
        that both axes fill, and whether merged columns begin between sectors; () if other pitches are no multiples of 4
    """

    fits: Ints
    merges: bool
    fours: bool
    huge: bool
    whole: Ints
    further: Ints = ()


SMALL_LOOP = TileFacts((64, 64), False, False, False, (0, 0))


class Tiles(Tiled):
    """Tiles of rows and columns.

    Attributes
    ----------
    fours : whether the last two extents are multiples of 4, so masks are alike in vectors
    evicts_last : whether the array that is read stays in the L2 cache longer than the one that is written: memory
        writes the latter more steadily then; of smaller arrays, the next operation finds the result in the cache
    """

    cases = ("tile", "mixed")
    serves_all = True

    first_of_pairs = "first_row"
    """The first row of pairs that are read along columns."""

    def __init__(self, spec: KernelSpec, tile: Tile, facts: TileFacts) -> None:
        super().__init__(spec, tile)
        self.merged = may_merge(spec, facts)
        self.fours = facts.fours
        self.evicts_last = facts.huge and spec.copies

    @staticmethod
    def facts(loop: Any) -> TileFacts:
        """Tiles that the extents fill, in large loops."""
        shape = loop.shape
        if prod(shape) < extents.LARGE:
            return SMALL_LOOP
        fits = _fits(shape)
        merges = len(shape) > 2 and _merges(shape[-1], loop.strides)
        huge = prod(shape) >= extents.HUGE and loop.case == "tile" and len(loop.strides) == 2
        whole = _whole(shape[-2], fits[0], FULL), _whole(shape[-1], fits[1], FULL // 2)
        further = () if fits[0] >= FULL else _further(shape, loop.strides, merges)
        return TileFacts(fits, merges, _ends_in_fours(shape[-2:], fits), huge, whole, further)

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule | None:
        """Every spec."""
        merged = may_merge(spec, facts)
        kind = "merged" if merged else "tile" if rows_are_aligned(spec) else "odd"
        tile = tile_for(SIZES, arch, kind + (" copied" if spec.copies else ""), spec.widest)
        rows, columns = facts.fits
        if spec.copies and (facts.fours and spec.widest == WORD if merged else facts.fours or spec.widest > 1):
            whole = facts.whole[0], 0 if merged or spec.widest not in (2, WORD) else facts.whole[1]
            tile, rows, columns = _whole_tile(WHOLE.get(spec.widest, {}), whole, tile, facts.fits)
        return cls(spec, cut(tile, rows, tile.columns if merged else columns), facts)

    @property
    def parts(self) -> int:
        """The number of parts that the rows are taken from in turn; columns of two axes are not."""
        return 1 if self.merged else super().parts

    def is_transposed_bytes(self, operand: Operand) -> bool:
        """Bytes along the rows' axis, if columns begin at words."""
        in_words = operand.aligned and self.spec.divisible % WORD == 0
        return operand.is_transposed and operand.itemsize == 1 and in_words

    # ------------------------------------------------------------------ what is known of arguments

    def extent_divisor(self, axis: int) -> int:
        """The last two extents may be multiples of 4."""
        return 4 if self.fours and axis >= self.spec.rank - 2 else 1

    def known_extents(self) -> list[str]:
        """The last two extents may be multiples of 4."""
        return ["the last extents are multiples of 4"] if self.fours else []

    # ------------------------------------------------------------------ loads and stores

    @property
    def policy(self) -> str:
        """The eviction policy of device functions that load."""
        return '"evict_last"' if self.evicts_last else '""'

    def stays(self, operand: Operand) -> bool:
        """Whether an array that is read stays in the L2 cache."""
        return self.evicts_last

    def load(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Bytes that are transposed are read in words."""
        if not place and branch.mask is None and self.is_transposed_bytes(operand):
            at = f"{operand.name} + row + {self.column_term(operand, branch._replace(column='four'))}"
            return f"load_transposed({at}, {operand.name}_s{self.spec.rank - 1}, ROWS, COLUMNS, {self.policy})"
        policy = ', eviction_policy="evict_last"' if self.stays(operand) else ""
        return f"tl.load({self.address(operand, branch, place)}{self.guard(operand, branch, place)}{policy})"

    def load_pair(self, operand: Operand, branch: Branch, place: str = "") -> tuple[str, bool]:
        """Pairs are read along the axis in which they are dense."""
        axis = None if place else self.dense_axis(operand)
        if axis is None:
            return super().load_pair(operand, branch, place)
        guard = self.guard(operand, branch)
        policy = "" if guard else f", {self.policy}"
        return f"load_pairs{masked(guard)}({self.dense_pairs(operand, branch, axis)}{policy})", axis == 0

    def store_pair(self, operand: Operand, parts: tuple[str, ...], branch: Branch, place: str = "") -> str:
        """Pairs are stored along rows in which they are dense."""
        if place or self.dense_axis(operand) != 1:
            return super().store_pair(operand, parts, branch, place)
        suffix = masked(self.guard(operand, branch))
        return f"store_pairs{suffix}({self.dense_pairs(operand, branch, 1)}, {', '.join(parts)})"

    def dense_axis(self, operand: Operand) -> int | None:
        """Return the axis of a tile in which an array's elements are neighbours, if it has two axes of its own."""
        strides = operand.last_two
        if 0 in strides or 1 not in strides:
            return None
        return 1 if strides[1] == 1 else 0

    def dense_pairs(self, operand: Operand, branch: Branch, axis: int) -> str:
        """Return the arguments of functions on neighbouring pairs: rows, or columns that become rows."""
        if axis:
            offset = term("row", operand.last_two[0], f"{operand.name}_s{self.spec.rank - 2}")
            masks = f", in_rows, {self.columns_extent}" if branch.mask else ""
            return f"{operand.name}, {offset}, first_column, COLUMNS{masks}"
        offset = f"tl.trans({self.column_term(operand, branch)})"
        masks = f", tl.trans(in_columns), {self.rows_extent}" if branch.mask else ""
        return f"{operand.name}, {offset}, {self.first_of_pairs}, ROWS{masks}"


def cut(tile: Tile, rows: int, columns: int) -> Tile:
    """Return the tile cut to the sizes that both axes fill, with warps in proportion.

    >>> cut(Tile(128, 64, 16), 64, 256)
    Tile(rows=64, columns=64, warps=8, stages=0, registers=0)
    """
    rows, columns = min(tile.rows, rows), min(tile.columns, columns)
    left = rows * columns * tile.warps // (tile.rows * tile.columns)
    return Tile(rows, columns, max(left, 1))


def may_merge(spec: KernelSpec, facts: TileFacts) -> bool:
    """Whether columns are of two axes: bytes, which are transposed by fours, need extents that are multiples of 4."""
    return facts.merges and (facts.fours or min(operand.itemsize for operand in spec.operands) > 1)


def _fits(shape: Ints) -> Ints:
    """Return rows and columns of a tile that the last two extents fill.

    >>> _fits((800, 900)), _fits((900, 4096)), _fits((8000, 4096))
    ((128, 256), (128, 256), (256, 256))
    """
    rows, columns = shape[-2:]
    return 256 if -rows % 256 * 32 <= rows else extents.filled(rows, 128, 7), extents.filled(columns, 256, 7)


def _whole(extent: int, fits: int, full: int) -> int:
    """Return the size of a tile that has all of an axis, if only one that is less than full is filled; or 0.

    >>> [_whole(extent, fits, 64) for extent, fits in ((20, 16), (28, 32), (36, 16), (60, 64), (100, 16), (130, 16))]
    [32, 0, 64, 0, 128, 256]
    """
    whole = max(32, 1 << (extent - 1).bit_length())
    return whole if extent > 16 and fits < min(whole, full) and whole <= 256 else 0


def _whole_tile(tiles: Mapping[int, Tile], whole: Ints, tile: Tile, fits: Ints) -> tuple[Tile, int, int]:
    """Return the tile that has all rows, or all columns, or another one; and the rows and columns that are filled.

    >>> _whole_tile({64: Tile(64, 32, 8)}, (0, 64), Tile(16, 16, 1), (256, 16))
    (Tile(rows=32, columns=64, warps=8, stages=0, registers=0), 256, 64)
    """
    rows, columns = [size if size in tiles else 0 for size in whole]
    if rows:
        tile = tiles[rows]
    elif columns:
        transposed = tiles[columns]
        tile = Tile(transposed.columns, transposed.rows, transposed.warps)
    return tile, rows or fits[0], columns or fits[1]


def _ends_in_fours(shape: Ints, blocks: Ints) -> bool:
    """Whether blocks reach beyond extents that are all multiples of 4.

    >>> _ends_in_fours((800, 900), (128, 256)), _ends_in_fours((800, 901), (128, 256)), _ends_in_fours((64,), (32,))
    (True, False, False)
    """
    return not any([n % 4 for n in shape]) and any([n % block for n, block in zip(shape, blocks, strict=True)])  # noqa: C419


def _further(shape: Ints, strides: tuple[Ints, ...], merges: bool) -> Ints:
    """Return what `TileFacts` has of the slower axis in which rows of transposed arrays go on; or ().

    >>> _further((48, 24, 32, 40, 16), ((12288, 512, 16, 589824, 1), (40, 1920, 46080, 1, 1474560)), True)
    (0, 128, False)
    """
    for axis in range(len(shape) - (3 if merges else 2)):
        if all(each[axis] == shape[-2] for each in strides if each[-2] == 1):
            rows = extents.filled(shape[axis] * shape[-2], 128, 7)
            between = merges and shape[-1] * shape[-3] % SECTOR_WORDS > 0
            return (axis, rows, between) if rows >= FULL and _pitches_in_fours(strides, axis, merges) else ()
    return ()


def _pitches_in_fours(strides: tuple[Ints, ...], slow: int, merges: bool) -> bool:
    """Whether the pitches of dense arrays are multiples of 4, but for those of the axes that are merged.

    >>> _pitches_in_fours(((18000, 90, 648000, 1), (30, 1440, 1, 288000)), 0, True)
    True
    """
    rank, pitches = len(strides[0]), 0
    columns = (rank - 1, rank - 3) if merges else (rank - 1,)
    for each in strides:
        if 1 in each[-2:]:
            known = (rank - 2, slow) if each[-2] == 1 else columns
            for axis in set(range(rank)).difference(known):
                pitches |= each[axis]
    return pitches % 4 == 0


def _merges(columns: int, strides: tuple[Ints, ...]) -> bool:
    """Whether the columns fill no whole blocks of 64, and the result's go on in the last axis but two.

    So must those of each array that is dense in them; of other arrays, tiles look both indices up.

    >>> _merges(900, ((900, 360000, 1), (800, 1, 320000)))
    True
    """
    if columns % 64 == 0 or columns >= 1024 or strides[0][-1] != 1:
        return False
    return all(each[-3] == columns for each in strides if each[-1] == 1)
