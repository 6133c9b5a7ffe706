"""Reread: rows that are too long to hold, which a program reads again for each reduction and for the results.

A program takes rows in turn. There are as many programs as rows that fit into the second-level cache together, so only
the first reading of a row goes to memory. The lanes, their halves and the segments are those of
`tilearray.geometry.reduction`; all segments of a row are reduced at once, side by side.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.hardware import VECTOR, WORD
from tilearray_cuda.kernels.schedules.addressing import Arm, Branch
from tilearray_cuda.kernels.schedules.held import WARP
from tilearray_cuda.kernels.schedules.reduce import Reduce, itemsize_of
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec

PROGRAMS = 1056
"""The most programs: eight for each multiprocessor of an H200."""
WORDS = 8
"""The words that a thread reads before it waits for them."""
MOST_WARPS = 8
WIDE = 2
"""The vectors of a thread in a step of the last walk, which stores."""


class Reread(Reduce):
    """Whole rows, in steps of one chunk of each segment.

    Attributes
    ----------
    segments : the segments of a row, rounded up to a power of two
    lanes : the lanes of a segment
    has_scalars : whether what a row has once is a scalar, which has no layout
    """

    cases = ("reduce_rows",)

    def __init__(self, spec: KernelSpec, tile: Tile) -> None:
        super(Reduce, self).__init__(spec, tile)
        self.kept, self.lanes, self.segments = spec.facts[3]  # type: ignore[misc]
        self.outer, self.is_cut, self.is_short, self.neighbours = 0, False, False, False
        self.has_scalars = all(operand.dtype != "complex128" for operand in spec.operands)

    @staticmethod
    def facts(loop: Any) -> tuple[int, ...] | None:
        """The slower kept axes, the lanes, and the segments, rounded up to a power of two."""
        if not loop.again:
            return None
        return loop.kept, loop.lanes, 1 << (loop.segments.total - 1).bit_length()

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule:
        """Every spec: a word for each thread, as far as there are lanes."""
        _, lanes, segments = facts
        warps = min(MOST_WARPS, lanes * segments * itemsize_of(spec) // (WORD * WARP))
        return cls(spec, Tile(1, lanes * segments, max(1, warps)))

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the lanes of a row, those of a segment, the segments, and the elements of a step that stores."""
        itemsize = itemsize_of(self.spec)
        wide = max(self.tile.columns, WIDE * VECTOR // itemsize * WARP * self.tile.warps)
        size = ("ROWS", 1), ("COLUMNS", self.tile.columns), ("LANES", self.lanes), ("SEGMENTS", self.segments)
        return (*size, ("WIDE", wide))

    @property
    def unrolled(self) -> int:
        """The steps of a walk that are in flight."""
        threads = WARP * self.tile.warps
        return max(1, WORDS * WORD * threads // (self.tile.columns * max(WORD, itemsize_of(self.spec))))

    def _tiles(self) -> list[str]:
        return [f"n{axis}" for axis in (*range(self.kept), self.spec.rank - 2)]

    def programs(self) -> str:
        """Return the number of rows, or the most programs."""
        return f"min({PROGRAMS}, {' * '.join(self._tiles())})"

    def loop_arguments(self) -> tuple[tuple[str, str], ...]:
        """Return the chunks of a segment."""
        return (("segments_chunks", "segments.chunks"),)

    def program(self) -> str:
        """Return the number of the row."""
        return "tile"

    def setup(self) -> list[str]:
        """Return the lines before the loop over rows: the lanes, and where arrays begin."""
        column = f"n{self.spec.rank - 1}"
        lines = [
            "lanes = tl.arange(0, COLUMNS)",
            "first_column = (lanes // LANES * segments_chunks * LANES + lanes % LANES)[None, :]",
            f"whole_chunks = tl.maximum({column} // LANES - (SEGMENTS - 1) * segments_chunks, 0)",
        ]
        return [*lines, *[f"{x.name}_base = {x.name}" for x in self.spec.arrays if self.kept]]

    def rows_loop(self) -> str:
        """Return the line of the loop over the rows of a program."""
        tiles = f"{super().program()}, {' * '.join(self._tiles())}, tl.num_programs(0)"
        return f"for tile in range({tiles}):"

    def row_setup(self) -> list[str]:
        """Return the lines that find a row."""
        bases = [f"{x.name} = {x.name}_base" for x in self.spec.arrays if self.kept]
        return [*bases, *super().setup()]

    def rows(self) -> list[str]:
        """Return the lines that name the row: a scalar, and a block for stores."""
        return [*super().rows(), *["rows = row", "row = first_row"] * self.has_scalars]

    def chunk_range(self) -> list[str]:
        """Return no lines: every row has the same chunks."""
        return []

    def arms(self) -> list[Arm]:
        """One arm."""
        return [Arm(None, Branch(None))]
