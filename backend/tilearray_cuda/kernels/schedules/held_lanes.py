"""Held lanes: rows that a program reads once and reduces several times, in the order of ordinary reductions.

A layer norm adds up a row, then the squares of distances, and then goes over the row again. A row stays in registers
meanwhile, as chunks of lanes. The lanes and the segments are those of `tilearray.geometry.reduction`.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.hardware import VECTOR, WORD
from tilearray_cuda.kernels.schedules.addressing import Branch, added, term
from tilearray_cuda.kernels.schedules.held import Held, has_neighbours
from tilearray_cuda.kernels.schedules.reduce import MOST_ROWS, WARP, WARP_BYTES, Reduce, itemsize_of
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand

WORDS = 64
"""The words of rows that a thread holds at most, where there are enough lanes and not the most warps."""
MOST_WARPS = {1: 4, 2: 4, 4: 8, 8: 8, 16: 8}
"""The most warps of a row, by itemsize; measured on an H200."""


IN_ANY_ORDER = frozenset({"maximum", "minimum", "maximum_number", "minimum_number", "maximum_of_halves", "or", "and"})
"""Reductions of one value that give the same in any order, so the compiler may choose it: first within threads."""


class HeldLanes(Held):
    """Whole rows, as chunks of the lanes of a reduction.

    Attributes
    ----------
    segment : the chunks of a segment
    width : the columns of a block that is held as a row, or 0
    dense : whether rows are so short that their strides are not known to be multiples of a vector, and follow each
        other in memory
    has_scalars : whether what a row has once is a scalar, which has no layout
    """

    def __init__(self, spec: KernelSpec, tile: Tile) -> None:
        super(Reduce, self).__init__(spec, tile)
        self.kept, _, self.chunks, self.is_whole, _, self.segment, self.width, self.dense, _ = spec.facts[2]  # type: ignore[misc]
        self.lanes, self.outer, self.is_cut, self.is_short = tile.columns, 0, False, False
        self.has_neighbours = has_neighbours(spec, tile) and not (self.width or self.dense)
        self.has_scalars = tile.rows == 1 < tile.columns and all(o.dtype != "complex128" for o in spec.operands)

    @staticmethod
    def facts(loop: Any) -> tuple[int, ...] | None:
        """The facts of `Held`, the chunks of a segment, the columns of a block, whether short rows are dense, and the
        threads of a program that walks rows."""
        if not loop.family:
            return None
        extent, width = (loop.shape[-1] * loop.shape[-3], loop.shape[-1]) if loop.blocks else (loop.shape[-1], 0)
        rows, chunks = min(MOST_ROWS, 1 << (loop.shape[-2] - 1).bit_length()), -(-extent // loop.lanes)
        segment = min(chunks, loop.segments.chunks)
        dense = len(loop.shape) == 2 and extent == loop.lanes < VECTOR
        dense = dense and all(row == extent for row, column in loop.strides if column == 1)
        threads = loop.walked.threads if loop.walked else 0
        return loop.kept, loop.lanes, chunks, extent % loop.lanes == 0, rows, segment, width, dense, threads

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule | None:
        """Every spec: one row, or some short ones."""
        _, lanes, chunks, _, rows, *_ = facts
        itemsize = itemsize_of(spec)
        if chunks > 1 or lanes * itemsize > WARP_BYTES:
            words = chunks * lanes * max(1, itemsize // WORD) * arrays_of_rows(spec)
            warps = min(lanes // WARP, words // (WARP * WORDS), MOST_WARPS[itemsize])
            return cls(spec, Tile(1, lanes, 1 << max(0, warps.bit_length() - 1)))
        # Rows that only have a largest element take few registers. So each thread holds two vectors, or a row of four.
        in_any_order = all(node[1] in IN_ANY_ORDER for node in spec.nodes if node[0] == "reduce")
        row_of_four = lanes * itemsize == 4 * VECTOR and all(operand.aligned for operand in spec.arrays)
        warp = (4 if row_of_four else 2) * WARP_BYTES if in_any_order else WARP_BYTES
        rows = max(1, min(rows, 4 * warp // (lanes * itemsize)))
        return cls(spec, Tile(rows, lanes, max(1, rows * lanes * itemsize // warp)))

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

    def chunk_names(self) -> list[str]:
        """Return the lines that name the elements of each chunk; of a block, by their row and column in it."""
        lines = super().chunk_names()
        outer = f"i{self.spec.rank - 3}"
        for column in [f"column{chunk}" for chunk in range(self.chunks)] if self.width else ():
            lines += [f"{column}_{outer} = {column} // {self.width}", f"{column}_inner = {column} % {self.width}"]
        return lines

    def index(self, operand: Operand, branch: Branch) -> str:
        """Return the row and the column times their strides, which are numbers if rows are dense."""
        if self.dense and operand.last_two[1] == 1:
            return f"{branch.row} * COLUMNS + {branch.column}"
        return super().index(operand, branch)

    def column_term(self, operand: Operand, branch: Branch) -> str:
        """Return the distance of a column from the first one; of an element of a block, from the block's first one."""
        if not self.width or operand.last_two[1] == 0:
            return super().column_term(operand, branch)
        rank, column = self.spec.rank, operand.last_two[1]
        outer = f"{branch.column}_i{rank - 3} * {operand.name}_s{rank - 3}"
        return f"({added(outer, term(f'{branch.column}_inner', column, f'{operand.name}_s{rank - 1}'))})"


def arrays_of_rows(spec: KernelSpec) -> int:
    """Return how many arrays are read of which each row has elements of its own: a program holds them all."""
    return max(1, sum(0 not in operand.last_two for operand in spec.arrays[spec.outputs :]))
