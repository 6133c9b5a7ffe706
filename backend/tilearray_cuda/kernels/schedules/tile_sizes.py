"""Block and tile sizes, as data: what one program computes, by layout case, itemsize and architecture.

The figures for sm_90 were measured on an H200 (`benchmarks/tune.py`); other architectures use them until they have rows
of their own. The cost model is short: a program moves enough bytes to hide their latency, a thread reads and writes
vectors of 16 bytes, and the last block reaches beyond the end of an axis by no more than an eighth of the axis, tiles
by a seventh, and those of 256 rows by a thirty-second (`fits`, a part of the layout class): in such, bytes were copied
at 0.97 of a copy's rate, and at 0.62 where half of the last one lay outside.
"""

from __future__ import annotations

from typing import NamedTuple

from tilearray_cuda.kernels.spec import RUN_CASES, VECTOR, KernelSpec
from tilearray_cuda.kernels.storage import ITEMSIZE


class Tile(NamedTuple):
    """Elements of a program along the last two axes, and its warps; a flat block has one row."""

    rows: int
    columns: int
    warps: int

    @property
    def of_a_thread(self) -> int:
        """Elements that a thread computes."""
        return self.rows * self.columns // (32 * self.warps)


# case -> widest itemsize of an operand -> tile
_FLAT = {1: Tile(1, 2048, 4), 2: Tile(1, 1024, 4), 4: Tile(1, 1024, 4), 8: Tile(1, 1024, 4), 16: Tile(1, 1024, 2)}
_FLAT_COPIED = _FLAT | {1: Tile(1, 4096, 4), 8: Tile(1, 512, 4), 16: Tile(1, 256, 4)}
_LOOKUP = {1: Tile(1, 2048, 4), 2: Tile(1, 2048, 4), 4: Tile(1, 1024, 4), 8: Tile(1, 512, 4), 16: Tile(1, 256, 4)}
_OUTER = _LOOKUP | {1: Tile(1, 4096, 2)}
_ROWS = {1: Tile(1, 2048, 4), 2: Tile(1, 1024, 4), 4: Tile(1, 1024, 4), 8: Tile(1, 512, 4), 16: Tile(1, 512, 4)}
_TILE = {1: Tile(128, 128, 8), 2: Tile(128, 64, 16), 4: Tile(64, 128, 8), 8: Tile(32, 64, 16), 16: Tile(32, 32, 16)}
_ODD = {1: Tile(64, 256, 16), 2: Tile(128, 128, 16), 4: Tile(64, 128, 16), 8: Tile(64, 64, 8), 16: Tile(32, 32, 8)}
_MERGED = _TILE | {1: Tile(128, 256, 16), 2: Tile(128, 128, 16), 4: Tile(128, 128, 16)}
_TILE_COPIED = _TILE | {1: Tile(256, 128, 16), 2: Tile(128, 128, 16), 4: Tile(64, 64, 16), 8: Tile(64, 32, 16)}
_ODD_COPIED = _ODD | {4: Tile(64, 256, 16), 8: Tile(64, 128, 16), 16: Tile(32, 128, 16)}
_MERGED_COPIED = _TILE | {1: Tile(128, 256, 16), 2: Tile(128, 128, 8), 4: Tile(128, 64, 16), 8: Tile(64, 32, 16)}
_HANGING = {2: Tile(256, 128, 8), 4: Tile(64, 64, 16), 8: Tile(64, 32, 16), 16: Tile(32, 32, 16)}
_SLANTED = {1: Tile(128, 64, 4), 2: Tile(64, 64, 8), 4: Tile(64, 128, 8), 8: Tile(64, 64, 8), 16: Tile(32, 64, 8)}

# first architecture -> case -> tiles; "outer" lookups read rows and columns alone, and their programs write more than
# the 2048 bytes of the 0.6 ns in which an H200 starts another; "odd" tiles: rows begin at no multiples of 16 bytes, or
# of two elements; "merged" ones: their columns are of two axes; "slanted" ones: small elements whose tile rows begin
# where words of the output do, with their registers as the limit, or words and sectors; "hanging" ones: their columns
# begin where bursts of what is read do; "copied": one array is read alone, and what is read and what is written take
# turns at memory, the shorter the better: in 4096 bytes of a block
_BY_ARCHITECTURE = {
    80: {
        "flat": _FLAT,
        "flat copied": _FLAT_COPIED,
        "strided": _FLAT,
        "strided copied": _FLAT,
        "lookup": _LOOKUP,
        "outer": _OUTER,
        "rows": _ROWS,
        "tile": _TILE,
        "odd": _ODD,
        "merged": _MERGED,
        "slanted": _SLANTED,
        "tile copied": _TILE_COPIED,
        "odd copied": _ODD_COPIED,
        "merged copied": _MERGED_COPIED,
        "hanging": _HANGING | {2: Tile(128, 128, 8)},
        "hanging copied": _HANGING,
        "slanted copied": _SLANTED | {1: Tile(64, 256, 4), 2: Tile(64, 128, 4), 4: Tile(128, 64, 8)},
    },
}


def tile_of(spec: KernelSpec, arch: int) -> Tile:
    """Return the tile of a kernel on an architecture such as 90."""
    itemsize = _widest(spec)
    tables = _BY_ARCHITECTURE[max(first for first in _BY_ARCHITECTURE if first <= arch)]
    copied = " copied" if spec.alone else ""
    if spec.case in RUN_CASES:
        return tables[spec.case + copied][itemsize]
    if spec.case == "lookup":
        return _looked_up(tables["outer" if spec.repeats else "lookup"][itemsize], spec.fits[0])
    if spec.case == "rows":
        return _in_rows(tables["rows"][itemsize], spec.fits[0])
    if spec.hanging and any(node[0] == "call" for node in spec.nodes):
        copied = ""  # what is computed needs registers
    tile = tables[_kind(spec) + copied][itemsize]
    rows, columns = spec.fits
    return _over_axes(tile, (spec.steady[2] if spec.hanging else rows, tile.columns if spec.merged else columns))


_PARTS = {8: 2, 16: 8}
"""Into how many parts the rows of aligned tiles go, by itemsize. In a turned array the next rows lie side by side: of
rows of 128 KiB such were read at 0.92 to 0.96 of a copy's rate, by where the array lay; at so many places, at 0.98."""


def parts_of(spec: KernelSpec) -> int:
    """Return of how many parts of the rows programs take the next tiles in turn."""
    return _PARTS.get(_widest(spec), 1) if _kind(spec) == "tile" else 1


def _widest(spec: KernelSpec) -> int:
    """The itemsize of the largest elements."""
    return max(ITEMSIZE[operand.dtype] for operand in spec.arrays)


def _kind(spec: KernelSpec) -> str:
    """The name of a tile's table, but for what is copied."""
    if spec.hanging:
        return "hanging"
    if spec.merged:
        return "merged"
    if spec.slanted:
        return "slanted"
    least = min(ITEMSIZE[operand.dtype] for operand in spec.arrays)
    return "tile" if spec.divisible > 1 and spec.divisible * least >= VECTOR else "odd"


def _looked_up(tile: Tile, row: int) -> Tile:
    """A block is no longer than a row, unless rows are narrow."""
    return tile if row == 1 else tile._replace(columns=min(tile.columns, row))


def _in_rows(tile: Tile, columns: int) -> Tile:
    """As many elements over several rows, where rows are short."""
    columns = min(tile.columns, columns)
    return Tile(tile.columns // columns, columns, tile.warps)


def _over_axes(tile: Tile, fits: tuple[int, ...]) -> Tile:
    """The tile cut to what both axes fill, with warps for what is left."""
    rows, columns = min(tile.rows, fits[0]), min(tile.columns, fits[1])
    left = rows * columns * tile.warps // (tile.rows * tile.columns)
    return Tile(rows, columns, max(left, 1))
