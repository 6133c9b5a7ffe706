"""Select: blocks of positions in C order, which a program visits one after the other.

A program has a segment of `tilearray.geometry.selection`. It finds the elements for which a condition holds, or counts
all of them by their value, or marks their values. One program adds the counts of all segments. A program that stores
has one block, so the programs that run at once read neighbouring blocks, and write neighbouring results. It makes a
list of the chosen elements in shared memory, and then has work for these only, some at once: neighbouring threads store
neighbours, from the start of a line of the cache on. If most sectors of an array have chosen elements, and it is only
copied, a program reads all of its block in vectors, and packs the chosen elements in shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilearray_cuda.kernels.block_assembly import with_decorator
from tilearray_cuda.kernels.block_counts import PAIRED_BITS, bytes_of_pairs, paired_functions, place_functions
from tilearray_cuda.kernels.block_lists import LISTED, list_functions
from tilearray_cuda.kernels.hardware import LINE, WORD
from tilearray_cuda.kernels.schedules.addressing import Arm, Branch, added, term
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand
from tilearray_cuda.kernels.storage import ITEMSIZE

WARPS = 4
"""The warps of a program that counts or stores."""
PLACED = 512
"""The chosen elements that are stored at once."""
COUNTED = LISTED * WARPS
"""The elements of a block that is counted, and of one whose chosen elements are stored."""
ADDED = Tile(256, 32, 8)
"""The counts of segments that are added at once. On an H100 8192 take 3.6 us so, and 7.3 as one row of 16 warps."""
CHOSEN = (
    "rank = start + place",
    "chosen = (rank >= 0) & (rank < count)",
    "within = chosen_at(tl.where(chosen, rank, 0))",
    "index = block * BLOCK + within",
    "slot = before + rank",
)
"""The lines that find some elements of a list, and their places in the result."""
PACKED = {1: 4, 2: 4, 4: 4, 8: 6}
"""For each itemsize how many sixteenths of a block are chosen at least if it is packed. Below a quarter, or 3/8 of
8 bytes, the sectors that a list leaves out save more time."""
PAIRED = Tile(1, 8192, 16)
"""The elements of a block whose counters share words, and the warps of a program: a multiprocessor runs one."""
PAIRED_AT_ONCE = 4
"""The elements of a thread that are counted before one of their atomics is awaited."""
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
        is_wide = len(loop.shape) > 1 and loop.shape[-1] >= loop.lanes
        return loop.lanes, is_wide, tuple([strides == tuple(in_order) for strides in loop.strides])

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule:
        """Every spec."""
        if spec.has_node("bins"):
            return cls(spec, PAIRED if _places_and_bits(spec)[1] == PAIRED_BITS else Tile(1, COUNTED, 8))
        if spec.has_node("marks"):
            return cls(spec, Tile(1, MARKED, 4))
        if cls.counts(spec):
            return cls(spec, Tile(1, COUNTED, WARPS))
        if spec.has_node("starts"):
            return cls(spec, ADDED)
        return cls(spec, Tile(1, COUNTED, WARPS))

    @staticmethod
    def counts(spec: KernelSpec) -> bool:
        """Whether the kernel counts, and stores no elements."""
        return spec.has_node("count", "bins", "marks")

    @property
    def adds(self) -> bool:
        """Whether the kernel adds the counts of segments."""
        return self.spec.has_node("starts")

    @property
    def bins(self) -> tuple[int, int]:
        """The places that the kernel counts, and the bits of a counter; zeros if it counts no places."""
        return _places_and_bits(self.spec)

    @property
    def memory(self) -> int:
        """The bytes of the counters that share words."""
        bins, bits = self.bins
        return bytes_of_pairs(bins) if bits == PAIRED_BITS else 0

    @property
    def packed(self) -> Operand | None:
        """The array whose elements are stored as they are, if they lie in C order, and are words or less, or two."""
        spec = self.spec
        if spec.outputs > 1 or spec.nodes[spec.stores[0]][0] != "input":
            return None
        operand = spec.operands[spec.outputs + spec.nodes[spec.stores[0]][1]]
        return operand if self.dense[operand.name] and operand.itemsize <= 2 * WORD else None

    # ------------------------------------------------------------------ the kernel

    def programs(self) -> str:
        """Return the number of segments, or one program that adds their counts, or the number of blocks."""
        if self.counts(self.spec):
            return "loop.segments.total"
        return "1" if self.adds else f"-(-({self._size()}) // {self.tile.columns})"

    def _size(self) -> str:
        """Return the number of elements."""
        return " * ".join(f"n{axis}" for axis in range(self.spec.rank))

    def loop_arguments(self) -> tuple[tuple[str, str], ...]:
        """Return the chunks of a segment."""
        return (("segments_chunks", "segments.chunks"),)

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the size of a block, or of the tile of counts that are added."""
        if self.adds:
            return (("ROWS", self.tile.rows), ("COLUMNS", self.tile.columns))
        return (("BLOCK", self.tile.columns),)

    def functions(self) -> list[str]:
        """Return the functions that list the chosen elements of a block, or count places."""
        bins, bits = self.bins
        if bits == PAIRED_BITS:
            return with_decorator(paired_functions(bins, self.tile.warps, PAIRED_AT_ONCE))
        if bins:
            return with_decorator(place_functions(bins, self.tile.warps))
        if self.adds or self.counts(self.spec):
            return []
        return with_decorator(list_functions(self.tile.warps, self.packed.itemsize if self.packed else 0))

    def setup(self) -> list[str]:
        """Return the lines that find a program's block, or the blocks of its segment."""
        size = f"size = {self._size()}"
        if self.adds:
            return [size]
        if not self.counts(self.spec):
            return [f"block = {self.program()}", size]
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
            pieces = f"for start in range(-(before % {self.of_a_line}), count, {PLACED}):"
            return [Arm(None, Branch("chosen"), tuple(of_block), pieces, (*CHOSEN, *of_elements))]
        places = "tl.arange(0, BLOCK)"
        lines = [f"index = block * BLOCK + {places}"]
        if self.spec.has_node("marks"):  # neighbouring threads read neighbours, without an exchange of layouts
            lines = [f"index = tl.max_contiguous(block * BLOCK + {places}, 1)"]
        tail = Branch("inside", tag="_of_tail")
        return [
            self._arm(Branch(None), lines, places),
            self._arm(tail, [*lines, "inside = index < size"], places),
        ]

    @property
    def of_a_line(self) -> int:
        """The elements of the first result in a line of the cache."""
        return max(1, LINE // ITEMSIZE[self.spec.operands[0].dtype])

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

    def store(self, operand: Operand, value: str, branch: Branch, place: str = "") -> str:
        """Return a store that does not take the place of bits that are read."""
        return f'{super().store(operand, value, branch, place)[:-1]}, eviction_policy="evict_first")'

    def guard(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return the mask of the elements that are read or stored."""
        return f", mask={branch.mask}" if branch.mask else ""


def _places_and_bits(spec: KernelSpec) -> tuple[int, int]:
    """Return the places that a kernel counts, and the bits of a counter."""
    return next((node[2:] for node in spec.nodes if node[0] == "bins"), (0, 0))
