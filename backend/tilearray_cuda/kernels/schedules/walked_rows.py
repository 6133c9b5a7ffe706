"""Walked rows: programs that go over rows which they hold, and carry reductions of columns along.

The gradients of a layer norm are a result for each element, which needs sums over its row, and sums of columns, which
need what the row gives. A program takes the rows that one lane of a segment of columns combines, in their order, as
`tilearray.geometry.reduction` has them. What it carries lies in registers beside the row, and is stored at the end.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.schedules.addressing import Branch
from tilearray_cuda.kernels.schedules.held_lanes import HeldLanes
from tilearray_cuda.kernels.schedules.reduce import WARP
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand


class WalkedRows(HeldLanes):
    """One row after the other.

    Attributes
    ----------
    carried : the outputs that store what a program carried, by name
    """

    def __init__(self, spec: KernelSpec, tile: Tile) -> None:
        super().__init__(spec, tile)
        self.carried = frozenset([spec.operands[place].name for place in spec.carried])

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule | None:
        """Those that carry reductions: as few warps as have registers for a row and what is carried."""
        _, lanes, *_, threads = facts
        return cls(spec, Tile(1, lanes, threads // WARP)) if threads else None

    def programs(self) -> str:
        """Return the number of lanes of all segments of columns."""
        return "loop.walked.programs"

    def loop_arguments(self) -> tuple[tuple[str, str], ...]:
        """Return the lanes of a segment of columns, and its chunks."""
        return ("walked_lanes", "walked.lanes"), ("walked_chunks", "walked.chunks")

    def setup(self) -> list[str]:
        """Return the lines that find a program's rows, and name the elements of each chunk."""
        return [
            f"program = {self.program()}",
            "segment = program // walked_lanes",
            "first = segment * walked_chunks * walked_lanes + program % walked_lanes",
            f"last = tl.minimum((segment + 1) * walked_chunks * walked_lanes, {self.rows_extent})",
            *[f"{name} += program * n{self.spec.rank - 1}" for name in sorted(self.carried)],
            *self.chunk_names(),
        ]

    def index(self, operand: Operand, branch: Branch) -> str:
        """Return the column alone for what a program carried."""
        return self.column_term(operand, branch) if operand.name in self.carried else super().index(operand, branch)
