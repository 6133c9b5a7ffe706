"""Rows: two axes or more, and all arrays are dense, strided or repeated along the last one.

Slices and broadcast inner axes. A block is a part of a row, or covers several rows if those are short.
"""

from __future__ import annotations

from math import prod
from typing import Any

from tilearray_cuda.kernels.schedules import extents
from tilearray_cuda.kernels.schedules.schedule import Schedule, Sizes, Tile, tile_for
from tilearray_cuda.kernels.schedules.tiled import Tiled
from tilearray_cuda.kernels.spec import KernelSpec

_SIZES: Sizes = {1: Tile(1, 2048, 4), 2: Tile(1, 1024, 4), 4: Tile(1, 1024, 4), 8: Tile(1, 512, 4), 16: Tile(1, 512, 4)}

# first architecture -> tiles of one row, measured on an H200 (sm_90)
SIZES = {80: {"rows": _SIZES}}


class Rows(Tiled):
    """Blocks along rows."""

    cases = ("rows",)
    serves_all = True

    @staticmethod
    def facts(loop: Any) -> int:
        """The most columns of a block, which reaches beyond a long row by an eighth of it at most.

        >>> from types import SimpleNamespace
        >>> [Rows.facts(SimpleNamespace(shape=shape)) for shape in ((9, 100), (9, 640), (9000, 640))]
        [32, 512, 128]
        """
        shape = loop.shape
        if prod(shape) >= extents.LARGE:
            return extents.filled(shape[-1], 2048, 8)
        return extents.NARROW if shape[-1] >= extents.NARROW else 32

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule:
        """Every spec; the elements of a block cover several rows if rows are short."""
        tile = tile_for(SIZES, arch, "rows", spec.widest)
        columns = min(tile.columns, facts)
        return cls(spec, Tile(tile.columns // columns, columns, tile.warps))
