"""Block and tile sizes, as data: what one program computes, by layout case, itemsize and architecture.

The figures for sm_90 were measured on an H200; other architectures use them until they have rows of their own.
"""

from __future__ import annotations

from typing import NamedTuple

from tilearray_cuda.dtypes import ITEMSIZE
from tilearray_cuda.spec import KernelSpec


class Tile(NamedTuple):
    """Elements of a program along the last two axes, and its warps; a flat block has one row."""

    rows: int
    columns: int
    warps: int


# case -> widest itemsize of an operand -> tile
_FLAT = {1: Tile(1, 4096, 4), 2: Tile(1, 2048, 4), 4: Tile(1, 1024, 4), 8: Tile(1, 1024, 4), 16: Tile(1, 512, 4)}
_LOOKUP = {1: Tile(1, 512, 4), 2: Tile(1, 512, 4), 4: Tile(1, 512, 4), 8: Tile(1, 512, 4), 16: Tile(1, 512, 4)}
_ROWS = {1: Tile(1, 2048, 4), 2: Tile(1, 1024, 4), 4: Tile(1, 1024, 4), 8: Tile(1, 512, 4), 16: Tile(1, 512, 4)}
_NARROW = {1: Tile(32, 32, 4), 2: Tile(32, 32, 4), 4: Tile(32, 32, 4), 8: Tile(32, 32, 4), 16: Tile(16, 32, 4)}
_TILE = {1: Tile(128, 128, 8), 2: Tile(128, 128, 16), 4: Tile(64, 64, 4), 8: Tile(32, 32, 4), 16: Tile(32, 32, 4)}
_ODD = {1: Tile(32, 32, 2), 2: Tile(32, 128, 4), 4: Tile(32, 32, 4), 8: Tile(32, 32, 4), 16: Tile(32, 32, 4)}

# first architecture -> tables
_BY_ARCHITECTURE = {80: {"flat": _FLAT, "strided": _FLAT, "lookup": _LOOKUP}}


def tile_of(spec: KernelSpec, arch: int) -> Tile:
    """Return the tile of a kernel on an architecture such as 90."""
    itemsize = max(ITEMSIZE[operand.dtype] for operand in spec.arrays)
    tables = _BY_ARCHITECTURE[max(first for first in _BY_ARCHITECTURE if first <= arch)]
    if spec.case in tables:
        return tables[spec.case][itemsize]
    if spec.case == "rows":
        return (_NARROW if spec.narrow else _ROWS)[itemsize]
    return (_TILE if spec.divisible else _ODD)[itemsize]
