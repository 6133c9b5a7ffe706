"""Sort: rows that a program reads, sorts by all digits of their keys, and stores.

A program has one row, or several short ones, each of as many elements as the next power of two: elements that are not
there come last.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.block_assembly import place_text, warps_of, with_decorator
from tilearray_cuda.kernels.block_order import order_function
from tilearray_cuda.kernels.schedules.addressing import Branch
from tilearray_cuda.kernels.schedules.partition import indexed
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand

ELEMENTS = 2048
"""The elements of several short rows."""
LEAST = 8
"""The least elements of a row, so that rows of a program are fewer than digits."""


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
        return max(LEAST, 1 << (loop.shape[1] - 1).bit_length())

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule:
        """Every spec."""
        return cls(spec, Tile(max(1, ELEMENTS // facts), facts, warps_of(max(ELEMENTS, facts)), 1))

    # ------------------------------------------------------------------ the kernel

    def programs(self) -> str:
        """Return the number of tiles."""
        return f"-(-n0 // {self.tile.rows})"

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the rows of a program, and the elements of a row."""
        return ("ROWS", self.tile.rows), ("COLUMNS", self.tile.columns)

    def functions(self) -> list[str]:
        """Return the function that finds the order of digits."""
        return with_decorator([order_function(self.tile.rows * self.tile.columns)])

    def setup(self) -> list[str]:
        """Return the lines that name the elements of a program's rows."""
        return [
            "index = tl.arange(0, ROWS * COLUMNS)",
            f"within = {place_text(self.tile.rows * self.tile.columns)}",
            f"row = {self.program()} * ROWS + within // COLUMNS",
            "column = tl.max_contiguous(within % COLUMNS, 1)",
            "inside = (row < n0) & (column < n1)",
        ]

    # ------------------------------------------------------------------ where elements lie

    def index(self, operand: Operand, branch: Branch) -> str:
        """Return the indices along both axes times their strides."""
        return indexed(operand, branch.row, branch.column) or self.zeros(branch)

    def zeros(self, branch: Branch) -> str:
        """Return a zero for each element of a tile."""
        return "index * 0"

    def guard(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return the mask of the elements within the rows."""
        return f", mask={branch.mask}"
