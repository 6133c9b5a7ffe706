"""Rows: two axes or more, and all arrays are dense, strided or repeated along the last one.

Slices and broadcast inner axes. A block is a part of a row, or covers several rows if those are short.
"""

from __future__ import annotations

from math import prod
from typing import Any

from tilearray_cuda.kernels.schedules import extents
from tilearray_cuda.kernels.schedules.extents import NARROW
from tilearray_cuda.kernels.schedules.schedule import Schedule, Sizes, Tile, tile_for
from tilearray_cuda.kernels.schedules.tiled import Tiled
from tilearray_cuda.kernels.spec import KernelSpec

_SIZES: Sizes = {1: Tile(1, 2048, 4), 2: Tile(1, 1024, 4), 4: Tile(1, 1024, 4), 8: Tile(1, 512, 4), 16: Tile(1, 512, 4)}

# first architecture -> tiles of one row, measured on an H200 (sm_90)
SIZES = {80: {"rows": _SIZES}}


ITEMSIZES = 1, 2, 4, 8, 16
DENSE = {32: (16, 32, 32, 32, 64), 64: (16, 32, 32, 64, 64), 128: (32, 32, 64, 64, 128), 256: (32, 64, 64, 64, 256)} | {
    NARROW: (32, 64, 128, 128, 256)
}
"""The columns of blocks for each itemsize, by the most columns of rows that are dense in the output.

Blocks without masks are best for small elements. Else long runs count for more than full blocks: on an H100, of 16
million float32, 700 x 700 rows of 33 columns are differences of others in 37 us so, and in 51 us in blocks of 16
columns; 33 of 36 columns of complex128 are added in 50 and 108 us.
"""
STRIDED = {32: (16, 32, 64, 64, 128), 64: (16, 64, 64, 128, 128), 128: (32, 128, 128, 128, 256)} | dict.fromkeys(
    (256, NARROW), (32, 256, 256, 256, 256)
)
"""The same if there is memory between the output's rows: 136 of 139 columns are written in 63 us, and in 89."""


_SAME = {1 << bits: (1 << bits,) * len(ITEMSIZES) for bits in range(12)}


class Rows(Tiled):
    """Blocks along rows."""

    cases = ("rows",)
    serves_all = True

    @staticmethod
    def facts(loop: Any) -> tuple[int, ...]:
        """The most columns of a block, for each itemsize.

        >>> from types import SimpleNamespace
        >>> def of(*shape):
        ...     return Rows.facts(SimpleNamespace(shape=shape, strides=[(shape[-1], 1)]))
        >>> of(9, 100), of(9000, 640)
        ((32, 32, 32, 32, 32), (128, 128, 128, 128, 128))
        >>> of(90000, 100), of(90000, 48)
        ((32, 32, 64, 64, 128), (16, 16, 16, 64, 64))
        """
        *_, columns = shape = loop.shape
        if prod(shape) < extents.LARGE:
            return _SAME[NARROW if columns >= NARROW else 32]
        block = extents.filled(columns, 2048, 8)
        if columns <= 16 or columns & (columns - 1) == 0:
            return _SAME[block]
        is_dense = loop.strides[0][-2:] == (columns, 1)
        if columns > NARROW:
            return _SAME[block] if is_dense else (block, *[max(block, 256)] * 4)
        found = (DENSE if is_dense else STRIDED)[1 << (columns - 1).bit_length()]
        if is_dense and columns % block == 0:  # no block has a mask
            kept = 2 if columns > 64 else 3
            return (*[block] * kept, *found[kept:])
        return found

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule:
        """Every spec; the elements of a block cover several rows if rows are short."""
        tile = tile_for(SIZES, arch, "rows", spec.widest)
        columns = min(tile.columns, facts[ITEMSIZES.index(spec.widest)])
        return cls(spec, Tile(tile.columns // columns, columns, tile.warps))
