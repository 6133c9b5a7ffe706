"""Held lanes: rows that a program reads once and reduces several times, in the order of ordinary reductions.

A layer norm adds up a row, then the squares of distances, and then goes over the row again. A row stays in registers
meanwhile, as chunks of lanes. The lanes, their halves and the segments are those of `tilearray.geometry.reduction`.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.hardware import WORD
from tilearray_cuda.kernels.schedules.held import WARP, Held
from tilearray_cuda.kernels.schedules.reduce import MOST_ROWS, WARP_BYTES, Reduce, itemsize_of
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec

WORDS = 64
"""The words of a row that a thread holds at most, where there are enough lanes."""


class HeldLanes(Held):
    """Whole rows, as chunks of the lanes of a reduction.

    Attributes
    ----------
    segment : the chunks of a segment
    has_scalars : whether what a row has once is a scalar, which has no layout
    """

    def __init__(self, spec: KernelSpec, tile: Tile) -> None:
        super(Reduce, self).__init__(spec, tile)
        self.kept, _, self.chunks, self.is_whole, _, self.segment = spec.facts[2]  # type: ignore[misc]
        self.outer, self.is_cut, self.is_short = 0, False, False
        self.has_scalars = tile.rows == 1 < tile.columns and all(o.dtype != "complex128" for o in spec.operands)

    @staticmethod
    def facts(loop: Any) -> tuple[int, ...] | None:
        """The facts of `Held`, and the chunks of a segment."""
        if not loop.held or loop.neighbours or loop.again:
            return None
        rows, chunks = min(MOST_ROWS, 1 << (loop.shape[-2] - 1).bit_length()), -(-loop.shape[-1] // loop.lanes)
        return loop.kept, loop.lanes, chunks, loop.shape[-1] % loop.lanes == 0, rows, min(chunks, loop.segments.chunks)

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule:
        """Every spec: one row, or some short ones."""
        _, lanes, chunks, _, rows, _ = facts
        itemsize = itemsize_of(spec)
        if chunks > 1 or lanes * itemsize > WARP_BYTES:
            words = chunks * lanes * max(1, itemsize // WORD)
            warps = min(lanes // WARP, words // (WARP * WORDS), 8)
            return cls(spec, Tile(1, lanes, 1 << max(0, warps.bit_length() - 1)))
        rows = max(1, min(rows, 4 * WARP_BYTES // (lanes * itemsize)))
        return cls(spec, Tile(rows, lanes, max(1, rows * lanes * itemsize // WARP_BYTES)))

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the size of a tile."""
        return ("ROWS", self.tile.rows), ("COLUMNS", self.tile.columns)

    def rows(self) -> list[str]:
        """Return the lines that name the rows of a tile; the only one is a scalar, and a block for stores."""
        block = super().rows()
        return [*block, "rows = row", "row = first_row"] if self.has_scalars else block

    def setup(self) -> list[str]:
        """Return the lines that find a program's rows, and name the elements of each chunk."""
        return [*super(Held, self).setup(), *self.chunk_names()]
