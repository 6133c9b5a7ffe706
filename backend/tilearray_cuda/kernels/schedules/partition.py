"""Partition: blocks of rows, whose elements are counted by a digit, or stored in its order.

A program has one block of `tilearray.geometry.sorting`, of which each thread takes a vector of neighbours.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.schedules.addressing import Branch, added, term
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand

DIGIT = 5
"""The bits of a digit."""
DIGITS = 1 << DIGIT
RUN = 32
"""The elements of which the digits are compared in one word."""
OF_A_THREAD = 8
"""Elements that a thread takes."""


class Partition(Schedule):
    """Blocks of a row.

    Attributes
    ----------
    whole, tail : the names of the elements of a whole block, and of one that reaches beyond its row
    """

    cases = ("partition",)
    serves_all = True
    whole = Branch(None, position="column")
    tail = Branch("inside", position="column")

    @staticmethod
    def facts(loop: Any) -> int:
        """The elements of a block."""
        return loop.lanes

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule:
        """Every spec."""
        return cls(spec, Tile(1, facts, facts // (32 * OF_A_THREAD), 1))

    # ------------------------------------------------------------------ the kernel

    def programs(self) -> str:
        """Return the number of blocks."""
        return "loop.segments.total"

    def loop_arguments(self) -> tuple[tuple[str, str], ...]:
        """Return the blocks of a row."""
        return (("blocks", "segments.inner"),)

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the size of a block, and the number of its runs."""
        return ("BLOCK", self.tile.columns), ("RUNS", self.tile.columns // RUN)

    def setup(self) -> list[str]:
        """Return the lines that name the elements of a program's block."""
        return [
            f"program = {self.program()}",
            "row, block = program // blocks, program % blocks",
            "column = block * BLOCK + tl.arange(0, BLOCK)",
            "inside = column < n1",
            "i0, i1 = row, column",
        ]

    # ------------------------------------------------------------------ where elements lie

    def index(self, operand: Operand, branch: Branch) -> str:
        """Return the indices along both axes times their strides."""
        return indexed(operand, "row", "column") or self.zeros(branch)

    def zeros(self, branch: Branch) -> str:
        """Return a zero for each element of a block."""
        return "column * 0"

    def placed_index(self, operand: Operand, branch: Branch, place: str) -> str:
        """Return the slot of an element that is stored, or the index of one that is read."""
        return indexed(operand, "row", place) if place else self.index(operand, branch)

    def guard(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return the mask of the elements within the row."""
        return f", mask={branch.mask}" if branch.mask else ""


def indexed(operand: Operand, row: str, column: str) -> str:
    """Return the indices along two axes times the strides of an operand."""
    first, second = operand.last_two
    return added(term(row, first, f"{operand.name}_s0"), term(column, second, f"{operand.name}_s1"))
