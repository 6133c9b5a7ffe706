"""Partition: blocks of rows, whose elements are counted by a digit, or stored in its order.

A program stores the elements of one block of `tilearray.geometry.sorting`, or counts those of some blocks. Neighbours
are read by neighbouring threads, so that elements that are neighbours in the order of digits are stored by neighbouring
threads as well.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.block_order import count_function, order_function, place_text, warps_of, with_decorator
from tilearray_cuda.kernels.schedules.addressing import Branch, added, term
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand

COUNTED = 8192
"""The elements that a program counts: of some blocks, whose counts of a digit are neighbours in memory."""
REGISTERS, REGISTERS_OF_MORE = 32, 40
"""The most registers of a thread that counts, so that a processor runs four programs at once; and with more than two
numbers of 64 bits, three. To store, more programs at once are slower: they write to more places.
"""


class Partition(Schedule):
    """Blocks of a row.

    Attributes
    ----------
    counts : whether digits are counted
    block : the elements of a block
    branch : the names of elements, all with one mask
    """

    cases = ("partition",)
    serves_all = True
    branch = Branch("inside", position="column")

    def __init__(self, spec: KernelSpec, tile: Tile) -> None:
        super().__init__(spec, tile)
        self.block: int = spec.facts[0]  # type: ignore[assignment]

    @staticmethod
    def facts(loop: Any) -> int:
        """The elements of a block."""
        return loop.lanes

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule:
        """Every spec."""
        if spec.has_node("digits"):
            numbers = sum(operand.strides is None and operand.itemsize == 8 for operand in spec.operands)
            return cls(spec, Tile(1, COUNTED, warps_of(COUNTED), 1, REGISTERS_OF_MORE if numbers > 2 else REGISTERS))
        return cls(spec, Tile(1, facts, warps_of(facts), 1))

    @property
    def counts(self) -> bool:
        return self.spec.has_node("digits")

    @property
    def parts(self) -> int:
        """The blocks of a program."""
        return self.tile.columns // self.block

    # ------------------------------------------------------------------ the kernel

    def programs(self) -> str:
        """Return the number of blocks, or of some together."""
        if self.counts:
            return f"loop.segments.outer * -(-loop.segments.inner // {self.parts})"
        return "loop.segments.total"

    def loop_arguments(self) -> tuple[tuple[str, str], ...]:
        """Return the blocks of a row."""
        return (("blocks", "segments.inner"),)

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the elements of a program."""
        return (("SIZE", self.tile.columns),)

    def functions(self) -> list[str]:
        """Return the function that counts digits, or finds their order."""
        size = self.tile.columns
        return with_decorator([count_function(size, self.parts) if self.counts else order_function(size)])

    def setup(self) -> list[str]:
        """Return the lines that name the elements of a program's block."""
        programs = f"(blocks + {self.parts - 1}) // {self.parts}" if self.counts else "blocks"
        return [
            f"program = {self.program()}",
            f"programs_of_row = {programs}",
            "row, block = program // programs_of_row, program % programs_of_row",
            "index = tl.arange(0, SIZE)",
            f"within = {'index' if self.counts else place_text(self.tile.columns)}",
            "column = tl.max_contiguous(block * SIZE + within, 1)",
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
        return f", mask={branch.mask}"


def indexed(operand: Operand, row: str, column: str) -> str:
    """Return the indices along two axes times the strides of an operand."""
    first, second = operand.last_two
    return added(term(row, first, f"{operand.name}_s0"), term(column, second, f"{operand.name}_s1"))
