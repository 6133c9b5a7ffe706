"""Partition: blocks of rows, whose elements are counted by a digit, or stored in its order.

A program stores the elements of one block of `tilearray.geometry.sorting`, or counts those of some blocks. Neighbours
are read by neighbouring threads, so that elements that are neighbours in the order of digits are stored by neighbouring
threads as well.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.block_assembly import BITS, LEAST_WARPS, items_of, place_text, warps_of, with_decorator
from tilearray_cuda.kernels.block_counts import count_function, histogram_functions
from tilearray_cuda.kernels.block_order import move_function, sweep_functions
from tilearray_cuda.kernels.schedules.addressing import Branch, added, term
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand
from tilearray_cuda.kernels.storage import ITEMSIZE

HISTOGRAM, HISTOGRAM_WARPS = 4096, 16
"""The elements and the warps of a program that counts all their digits, one block after the other."""
COUNTING, MOST_COUNTED = 264, 1 << 18
"""The programs that count all digits, two for each processor of an H100, and the most elements of one, so that none of
its counters overflows.
"""
COUNTED = 8192
"""The elements that a program counts: of some blocks, whose counts of a digit are neighbours in memory."""
REGISTERS, REGISTERS_OF_MORE = 32, 40
"""The most registers of a thread that counts, so that a processor runs four programs at once; and with more than two
numbers of 64 bits, three. To store, more programs at once are slower: they write to more places.
"""
REGISTERS_OF_SWEEP = {16: 80, 32: 128}
"""The most registers of a thread of a sweep, by its elements: a processor runs three programs at once, or two."""


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
        if spec.has_node("histograms"):
            return cls(spec, Tile(1, HISTOGRAM, HISTOGRAM_WARPS))
        if spec.has_node("digits"):
            numbers = sum(operand.strides is None and operand.itemsize == 8 for operand in spec.operands)
            return cls(spec, Tile(1, COUNTED, warps_of(COUNTED), 1, REGISTERS_OF_MORE if numbers > 2 else REGISTERS))
        if any(node[0] == "rank" and node[3] == "swept" for node in spec.nodes):
            registers = REGISTERS_OF_SWEEP[items_of(facts, LEAST_WARPS)]
            return cls(spec, Tile(1, facts, LEAST_WARPS, registers=registers))
        return cls(spec, Tile(1, facts, warps_of(facts)))

    @property
    def counts(self) -> bool:
        return self.spec.has_node("digits")

    @property
    def histograms(self) -> tuple[int, int] | None:
        """The digits that a program counts of each element, and the words of an element."""
        found = [node[2] for node in self.spec.nodes if node[0] == "histograms"]
        return (found[0], -(-found[0] * BITS // 32)) if found else None

    @property
    def waits(self) -> bool:
        """Whether programs wait for those of earlier blocks."""
        return self.turns is not None

    @property
    def turns(self) -> str | None:
        """The memory of the programs' turns, and of the counts that they tell each other."""
        for node in self.spec.nodes:
            if node[0] == "rank" and node[3] == "swept":
                return self.spec.operands[self.spec.outputs + node[4]].name
        return None

    @property
    def keeps_digits(self) -> bool:
        """Whether digits are kept beside the words that are moved: those of other words than elements are not known."""
        return any(self.spec.nodes[node][0] != "input" for node in self.spec.stores)

    @property
    def parts(self) -> int:
        """The blocks of a program."""
        return self.tile.columns // self.block

    @property
    def words(self) -> int:
        """The words of an element that are moved: those it is stored as, and its digit, if places have 64 bits."""
        operands = self.spec.operands
        ends = next(operands[self.spec.outputs + node[2]] for node in self.spec.nodes if node[0] == "rank")
        sizes = [max(4, ITEMSIZE[operand.dtype]) for operand in operands[: self.spec.outputs]]
        return sum(sizes) // 4 + (ends.dtype == "int64")

    # ------------------------------------------------------------------ the kernel

    def programs(self) -> str:
        """Return the number of blocks, or of some together."""
        if self.histograms:
            return f"max(min(-(-n1 // {self.tile.columns}), {COUNTING}), -(-n1 // {MOST_COUNTED}))"
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
        """Return the functions that count digits, or find their order."""
        size = self.tile.columns
        if self.histograms:
            return with_decorator(histogram_functions(size, self.tile.warps, *self.histograms))
        if self.waits:
            return with_decorator(sweep_functions(size, self.tile.warps, self.words, self.keeps_digits))
        return with_decorator([count_function(size, self.parts) if self.counts else move_function(size, self.words)])

    def setup(self) -> list[str]:
        """Return the lines that name the elements of a program's block."""
        if self.histograms:
            return [f"program = {self.program()}", "index = tl.arange(0, SIZE)", "row = 0 * n1", "i0 = row"]
        programs = f"(blocks + {self.parts - 1}) // {self.parts}" if self.counts else "blocks"
        return [
            f"program = take_turn({self.turns})" if self.waits else f"program = {self.program()}",
            f"programs_of_row = {programs}",
            "row, block = program // programs_of_row, program % programs_of_row",
            "index = tl.arange(0, SIZE)",
            f"within = {'index' if self.counts else place_text(self.tile.columns, self.tile.warps)}",
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
        return f", mask={branch.mask}" if branch.mask else ""


def indexed(operand: Operand, row: str, column: str) -> str:
    """Return the indices along two axes times the strides of an operand."""
    first, second = operand.last_two
    return added(term(row, first, f"{operand.name}_s0"), term(column, second, f"{operand.name}_s1"))
