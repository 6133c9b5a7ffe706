"""Sort: rows that a program reads, sorts by all digits of their keys, and stores.

A program has one row, or several short ones.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.schedules.addressing import Branch
from tilearray_cuda.kernels.schedules.partition import RUN, indexed
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand

ELEMENTS = 1024
"""The elements of several short rows."""
WARPS = 4
"""The least warps of a program."""
OF_A_THREAD = 8
"""The most elements that a thread takes."""


class Sort(Schedule):
    """Whole rows.

    Attributes
    ----------
    branch : the names of elements, all with one mask
    """

    cases = ("sort",)
    serves_all = True
    branch = Branch("inside")

    @staticmethod
    def facts(loop: Any) -> int:
        """The least power of two that holds a row."""
        return max(RUN, 1 << (loop.shape[1] - 1).bit_length())

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule:
        """Every spec."""
        return cls(spec, Tile(max(1, ELEMENTS // facts), facts, max(WARPS, facts // (32 * OF_A_THREAD)), 1))

    # ------------------------------------------------------------------ the kernel

    def programs(self) -> str:
        """Return the number of tiles."""
        return f"-(-n0 // {self.tile.rows})"

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the size of a tile, and the number of a row's runs."""
        return ("ROWS", self.tile.rows), ("COLUMNS", self.tile.columns), ("RUNS", self.tile.columns // RUN)

    def setup(self) -> list[str]:
        """Return the lines that name the elements of a program's rows."""
        return [
            f"row = {self.program()} * ROWS + tl.arange(0, ROWS)[:, None]",
            "column = tl.arange(0, COLUMNS)[None, :]",
            "inside = (row < n0) & (column < n1)",
        ]

    # ------------------------------------------------------------------ where elements lie

    def index(self, operand: Operand, branch: Branch) -> str:
        """Return the indices along both axes times their strides."""
        return indexed(operand, branch.row, branch.column) or self.zeros(branch)

    def zeros(self, branch: Branch) -> str:
        """Return a zero for each element of a tile."""
        return "row * 0 + column * 0"

    def guard(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return the mask of the elements within the rows."""
        return f", mask={branch.mask}"
