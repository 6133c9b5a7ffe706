"""Select: blocks of positions in C order, which a program visits one after the other.

A program has a segment of `tilearray.geometry.selection`. It finds the elements for which a condition holds, or counts
all of them by their value, or marks their values, or stores the chosen ones one after the other. A program that stores
is one warp, whose threads have neighbouring elements: so they store neighbours as well, and a word of bits tells all of
them their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilearray_cuda.kernels.block_order import WARP, rank_function, with_decorator
from tilearray_cuda.kernels.schedules.addressing import Arm, Branch, added, term
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand

PLACED, WIDE_PLACED = 256, 512
"""The elements of a block that is stored; where an element has WIDE bytes or more in all results."""
WIDE = 8
COUNTED = 4096
"""The elements of a block that is counted."""
CHOSEN = (
    f"word = tl.load(words + (block * (BLOCK // {WARP}) + place // {WARP}))",
    f"chosen = ((word >> (place % {WARP})) & 1) != 0",
    "rank, total = rank_of_chosen(word, place)",
    "index = tl.max_contiguous(block * BLOCK + place, 1)",
    "slot = before + rank",
    "before += total",
)
"""The lines that find the chosen elements of a block, and their places in the result."""
MARKED = 2048
"""The elements of a block that is marked."""


class Select(Schedule):
    """Blocks of positions.

    Attributes
    ----------
    lanes : the number of elements of a loop's chunk, a multiple of a block's
    is_wide : whether a block reaches at most into the next row
    dense : for each array in memory whether its elements lie in C order, without gaps
    """

    cases = ("selection",)
    serves_all = True

    def __init__(self, spec: KernelSpec, tile: Tile) -> None:
        super().__init__(spec, tile)
        self.lanes, self.is_wide, dense = spec.facts[0]  # type: ignore[misc]
        self.dense = dict(zip([operand.name for operand in spec.arrays], dense, strict=True))

    @staticmethod
    def facts(loop: Any) -> tuple[int, bool, tuple[bool, ...]]:
        """The elements of a chunk, `is_wide`, and `dense`."""
        in_order = [1]
        for extent in loop.shape[:0:-1]:
            in_order.insert(0, in_order[0] * extent)
        is_wide = len(loop.shape) > 1 and loop.shape[-1] >= COUNTED
        return loop.lanes, is_wide, tuple([strides == tuple(in_order) for strides in loop.strides])

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule:
        """Every spec."""
        if spec.has_node("marks"):
            return cls(spec, Tile(1, MARKED, 4))
        if cls.counts(spec):
            return cls(spec, Tile(1, COUNTED, 4))
        stored = sum(operand.itemsize for operand in spec.operands[: spec.outputs])
        return cls(spec, Tile(1, WIDE_PLACED if stored >= WIDE else PLACED, 1))

    @staticmethod
    def counts(spec: KernelSpec) -> bool:
        """Whether the kernel counts, and stores no elements."""
        return spec.has_node("count", "bins", "marks")

    # ------------------------------------------------------------------ the kernel

    def programs(self) -> str:
        """Return the number of segments."""
        return "loop.segments.total"

    def loop_arguments(self) -> tuple[tuple[str, str], ...]:
        """Return the chunks of a segment."""
        return (("segments_chunks", "segments.chunks"),)

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the size of a block."""
        return (("BLOCK", self.tile.columns),)

    def functions(self) -> list[str]:
        """Return the function that finds the places of a block."""
        return [] if self.counts(self.spec) else with_decorator([rank_function(self.tile.columns)])

    def setup(self) -> list[str]:
        """Return the lines that find the blocks of a program's segment."""
        size = " * ".join(f"n{axis}" for axis in range(self.spec.rank))
        return [
            f"program = {self.program()}",
            f"size = {size}",
            f"blocks_of_segment = segments_chunks * ({self.lanes} // BLOCK)",
            "first_block = program * blocks_of_segment",
            "last_block = tl.minimum(first_block + blocks_of_segment, (size - 1) // BLOCK + 1)",
            "whole_blocks = tl.minimum(size // BLOCK, last_block)",
        ]

    def arms(self) -> list[Arm]:
        """Whole blocks, and the last one; of chosen elements, all blocks."""
        if not self.counts(self.spec):
            return [self._arm(Branch("chosen"), CHOSEN, "place")] * 2
        places = "tl.arange(0, BLOCK)"
        lines = [f"index = block * BLOCK + {places}"]
        if self.spec.has_node("marks"):  # neighbouring threads read neighbours, without an exchange of layouts
            lines = [f"index = tl.max_contiguous(block * BLOCK + {places}, 1)"]
        tail = Branch("inside", tag="_of_tail")
        return [
            self._arm(Branch(None), lines, places),
            self._arm(tail, [*lines, "inside = index < size"], places),
        ]

    def _arm(self, branch: Branch, lines: Sequence[str], within: str) -> Arm:
        """Return an arm after lines that name the index of elements: the index along each axis as well."""
        tag, rest, last = branch.tag, "index", self.spec.rank - 1
        if self.is_wide:
            return Arm(None, branch, (*lines, *self._wide(tag, within)))
        named = [*lines]
        for axis in range(last, 0, -1):
            named += [f"i{axis}{tag} = {rest} % n{axis}", f"rest{tag} = {rest} // n{axis}"]
            rest = f"rest{tag}"
        return Arm(None, branch, (*named, f"i0{tag} = {rest}"))

    def _wide(self, tag: str, within: str) -> list[str]:
        """Return the lines that name indices, which are divided out for the block's first row and the next one."""
        last = self.spec.rank - 1
        lines = [
            f"this{tag} = block * BLOCK // n{last}",
            f"next{tag} = this{tag} + 1",
            f"column{tag} = {within} + (block * BLOCK - this{tag} * n{last})",
            f"wraps{tag} = column{tag} >= n{last}",
            f"i{last}{tag} = tl.where(wraps{tag}, column{tag} - n{last}, column{tag})",
        ]
        for axis in range(last - 1, 0, -1):
            lines.append(f"i{axis}{tag} = tl.where(wraps{tag}, next{tag} % n{axis}, this{tag} % n{axis})")
            lines += [f"{name}{tag} = {name}{tag} // n{axis}" for name in ("this", "next")]
        return [*lines, f"i0{tag} = tl.where(wraps{tag}, next{tag}, this{tag})"]

    # ------------------------------------------------------------------ where elements lie

    def index(self, operand: Operand, branch: Branch) -> str:
        """Return the indices along all axes times their strides."""
        if self.dense[operand.name]:
            return branch.position
        known, rank = operand.strides or (), self.spec.rank
        strides = [*["other"] * (rank - len(known)), *known]
        terms = [term(f"i{axis}{branch.tag}", stride, f"{operand.name}_s{axis}") for axis, stride in enumerate(strides)]
        return added(*terms) or self.zeros(branch)

    def zeros(self, branch: Branch) -> str:
        """Return a zero for each position."""
        return f"{branch.position} * 0"

    def placed_index(self, operand: Operand, branch: Branch, place: str) -> str:
        """Return the slot of an element that is stored, or the index of one that is read."""
        return place or self.index(operand, branch)

    def load(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return the expression of elements, of which each program reads those of its positions."""
        return f"tl.load({self.address(operand, branch, place)}{self.guard(operand, branch)})"

    def guard(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return the mask of the elements that are read or stored."""
        return f", mask={branch.mask}" if branch.mask else ""
