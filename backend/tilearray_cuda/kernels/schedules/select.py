"""Select: blocks of positions in C order, which a program visits one after the other.

A program has a segment of `tilearray.geometry.selection`. It finds the elements for which a condition holds, or counts
all of them by their value, or marks their values, or stores the chosen ones one after the other. A program that stores
is one warp. It makes a list of the chosen elements of a block in shared memory, and then has work for these only, some
at once: neighbouring threads store neighbours. One program adds the counts of all segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilearray_cuda.kernels.block_assembly import WARP, with_decorator
from tilearray_cuda.kernels.block_counts import place_functions
from tilearray_cuda.kernels.block_lists import LISTED, list_functions
from tilearray_cuda.kernels.schedules.addressing import Arm, Branch, added, term
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand

PLACED = 256
"""The chosen elements that are stored at once."""
COUNTED = 4096
"""The elements of a block that is counted."""
ADDED = 8192
"""The counts of segments that are added at once."""
LIST = (
    f"following = tl.load(words + tl.minimum(block + 1, last_block - 1) * {WARP} + lane)",
    "count, listed = list_of_chosen(word, lane)",
    "count, listed, word = tl.max(count, 0), tl.max(listed, 0), following",
)
"""The lines that list the chosen elements of a block, and read the bits of the next one."""
CHOSEN = (
    "rank = start + place",
    "chosen = rank < count",
    "within = chosen_at(rank, listed)",
    "index = block * BLOCK + within",
    "slot = before + rank",
)
"""The lines that find some elements of a list, and their places in the result."""
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
        if spec.has_node("bins"):
            return cls(spec, Tile(1, COUNTED, 8))
        if spec.has_node("marks"):
            return cls(spec, Tile(1, MARKED, 4))
        if cls.counts(spec):
            return cls(spec, Tile(1, COUNTED, 4))
        if spec.has_node("starts"):
            return cls(spec, Tile(1, ADDED, 16))
        return cls(spec, Tile(1, LISTED, 1))

    @staticmethod
    def counts(spec: KernelSpec) -> bool:
        """Whether the kernel counts, and stores no elements."""
        return spec.has_node("count", "bins", "marks")

    @property
    def adds(self) -> bool:
        """Whether the kernel adds the counts of segments."""
        return self.spec.has_node("starts")

    # ------------------------------------------------------------------ the kernel

    def programs(self) -> str:
        """Return the number of segments, or one program that adds their counts."""
        return "1" if self.adds else "loop.segments.total"

    def loop_arguments(self) -> tuple[tuple[str, str], ...]:
        """Return the chunks of a segment, or the number of segments."""
        return (("segments", "segments.total"),) if self.adds else (("segments_chunks", "segments.chunks"),)

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the size of a block."""
        return (("BLOCK", self.tile.columns),)

    def functions(self) -> list[str]:
        """Return the functions that list the chosen elements of a block, or count places."""
        bins = [node[2] for node in self.spec.nodes if node[0] == "bins"]
        if bins:
            return with_decorator(place_functions(bins[0], self.tile.warps))
        return [] if self.adds or self.counts(self.spec) else with_decorator(list_functions())

    def setup(self) -> list[str]:
        """Return the lines that find the blocks of a program's segment."""
        size = f"size = {' * '.join(f'n{axis}' for axis in range(self.spec.rank))}"
        if self.adds:
            return [size]
        return [
            f"program = {self.program()}",
            size,
            f"blocks_of_segment = segments_chunks * ({self.lanes} // BLOCK)",
            "first_block = program * blocks_of_segment",
            "last_block = tl.minimum(first_block + blocks_of_segment, (size - 1) // BLOCK + 1)",
            "whole_blocks = tl.minimum(size // BLOCK, last_block)",
        ]

    def arms(self) -> list[Arm]:
        """Whole blocks, and the last one; of chosen elements, all blocks."""
        if not self.counts(self.spec):
            of_block, of_elements = self._indices("", "within")
            pieces = f"for start in range(0, count, {PLACED}):"
            return [Arm(None, Branch("chosen"), (*LIST, *of_block), pieces, (*CHOSEN, *of_elements))]
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
        of_block, of_elements = self._indices(branch.tag, within)
        return Arm(None, branch, (*of_block, *lines, *of_elements))

    def _indices(self, tag: str, within: str) -> tuple[list[str], list[str]]:
        """Return the lines that name indices along each axis: those of a block, and those of elements in it."""
        if self.is_wide:
            return self._rows(tag), self._in_rows(tag, within)
        rest = "index"
        lines: list[str] = []
        for axis in range(self.spec.rank - 1, 0, -1):
            lines += [f"i{axis}{tag} = {rest} % n{axis}", f"rest{tag} = {rest} // n{axis}"]
            rest = f"rest{tag}"
        return [], [*lines, f"i0{tag} = {rest}"]

    def _rows(self, tag: str) -> list[str]:
        """Return the lines that divide out the indices of the block's first row and of the next one."""
        last = self.spec.rank - 1
        lines = [
            f"this{tag} = block * BLOCK // n{last}",
            f"next{tag} = this{tag} + 1",
            f"begin{tag} = block * BLOCK - this{tag} * n{last}",
        ]
        for axis in range(last - 1, 0, -1):
            lines += [f"{name}{axis}{tag} = {name}{tag} % n{axis}" for name in ("this", "next")]
            lines += [f"{name}{tag} = {name}{tag} // n{axis}" for name in ("this", "next")]
        return lines

    def _in_rows(self, tag: str, within: str) -> list[str]:
        """Return the lines that find an element in one of these two rows."""
        last = self.spec.rank - 1
        lines = [
            f"column{tag} = {within} + begin{tag}",
            f"wraps{tag} = column{tag} >= n{last}",
            f"i{last}{tag} = tl.where(wraps{tag}, column{tag} - n{last}, column{tag})",
        ]
        lines += [
            f"i{axis}{tag} = tl.where(wraps{tag}, next{axis}{tag}, this{axis}{tag})" for axis in range(last - 1, 0, -1)
        ]
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
