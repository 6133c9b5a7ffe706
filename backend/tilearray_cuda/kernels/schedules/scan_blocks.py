"""Scan in blocks: a program has a block of a long row, and waits for what the blocks before it are combined to.

A tile's rows are the segments of a block, its columns are the lanes of `tilearray.geometry.scan`. A program finds the
total of its block, and tells it. The first program combines all totals one after the other, and tells each program what
is before its block. Meanwhile that program reads its first elements again, which lie in the L2 cache, and combines
them; each of its warps waits by itself, and stores the results. On an H100 flat sums of float32 are scanned at 0.92 of
a copy's rate so.

Programs take numbers in the order in which they start. The first one is that of the totals. It waits for the next total
only, and another program waits for the totals before its own. So all of them go on if a GPU runs two programs at once.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.hardware import LINE, WORD
from tilearray_cuda.kernels.schedules.addressing import Arm, Branch, divided_out, moved_along
from tilearray_cuda.kernels.schedules.reduce import WARP, Reduce
from tilearray_cuda.kernels.schedules.scan import Scan
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand
from tilearray_cuda.kernels.storage import STORAGE

WORDS = 16
"""Bytes of the two words of a value."""
AT_ONCE, MOST_AT_ONCE, VALUES = 4, 8, 32
"""The chunks of a segment that are read at once: as many as fill so many registers of a thread."""
RUN = 8
"""The most elements that a thread reads as a vector: a warp has the lanes of a chunk, or of two."""


class ScanBlocks(Scan):
    """Blocks of segments by lanes.

    Attributes
    ----------
    chunks : the chunks of a segment
    policy : what loads say of the L2 cache: first that elements are read again, then that they are not
    """

    cases = ("scan_rows",)
    has_scratch = True
    policy = "evict_last"

    def __init__(self, spec: KernelSpec, tile: Tile) -> None:
        super(Reduce, self).__init__(spec, tile)
        self.kept, self.lanes, _, self.chunks = spec.facts[1]  # type: ignore[misc]
        self.run, self.threads = self.run_and_threads()
        self.outer, self.is_cut, self.is_short = 0, True, False
        self.unroll = min(self.chunks, self._at_once())

    @staticmethod
    def facts(loop: Any) -> tuple[int, ...] | None:
        """The slower kept axes, the lanes, the segments of a block, and the chunks of a segment."""
        if loop.segments.total == 1:
            return None
        return len(loop.shape) - 2, loop.lanes, loop.members, loop.segments.chunks

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule:
        """Every spec: a warp, or half of one, has a segment."""
        _, lanes, members, *_ = facts
        found = cls(spec, Tile(members, lanes, 1))
        return found.resized(Tile(members, lanes, max(1, members * found.threads // WARP)))

    @property
    def scanned(self) -> tuple[str, str]:
        """How elements are combined, and the dtype in which they are."""
        _, how, _, (dtype,) = next(node for node in self.spec.nodes if node[0] == "scan")
        return how, dtype

    @property
    def sums_integers(self) -> bool:
        """Whether integers of 64 bits are summed."""
        return self.scanned in (("add", "int64"), ("add", "uint64"))

    def _at_once(self) -> int:
        """Return the chunks that are read at once."""
        words = -(-STORAGE[self.scanned[1]].itemsize // WORD)
        few = self.run > 1 and self.run * words * MOST_AT_ONCE <= VALUES and not self.sums_integers
        return MOST_AT_ONCE if few else AT_ONCE

    def run_and_threads(self) -> tuple[int, int]:
        """Return the elements of a segment that a thread reads as a vector, and the number of threads that have one."""
        run, threads = super().run_and_threads()
        return (run, threads) if run <= RUN else (RUN, self.tile.columns // RUN)

    # ------------------------------------------------------------------ the kernel

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the size of a tile, the threads of a segment, and its chunks."""
        return (*super().constants(), ("CHUNKS", self.chunks))

    def programs(self) -> str:
        """Return the number of rows times the number of their blocks, and one for the totals."""
        rows = [f"n{axis}" for axis in range(self.spec.rank - 1)]
        return " * ".join([*rows, f"-(-loop.segments.total // {self.tile.rows})"]) + " + 1"

    def loop_arguments(self) -> tuple[tuple[str, str], ...]:
        """Return the number of segments."""
        return (("segments_total", "segments.total"),)

    def scratch(self, loop: Any) -> tuple[int, int]:
        """Return the bytes that a launch needs beside its operands, and how many of them must be 0 before it: all.

        They are the number of programs that started, and words: two for each part of a total, and of what is before it.
        """
        rows = 1
        for extent in loop.shape[:-1]:
            rows *= extent
        blocks = rows * -(-loop.segments.total // self.tile.rows)
        _, dtype = self.scanned
        nbytes = LINE + 2 * WORDS * (1 + (STORAGE[dtype].kind == "complex")) * blocks
        return nbytes, nbytes

    def setup(self) -> list[str]:
        """Return the lines that find a program's row and block, and where totals are told."""
        row, wide = self.spec.rank - 2, ".to(tl.int64)" * (self.spec.index_bits == 64)
        lines = [
            "counters = scratch.to(tl.pointer_type(tl.int32), bitcast=True)",
            f"program = take_turn(counters){wide} - 1",
            "blocks = (segments_total - 1) // ROWS + 1",
            f"count = {' * '.join(f'n{axis}' for axis in range(row + 1))} * blocks",
            f"words = scratch.to(tl.pointer_type(tl.int64), bitcast=True) + {LINE // 8}",
            "own = program",
            "block = program % blocks",
            "program = program // blocks",
            f"row = program % n{row}",
            f"program = program // n{row}",
        ]
        return [
            *lines,
            *divided_out("program", range(self.kept)),
            *moved_along(self.spec.arrays, range(self.kept)),
            "member = tl.arange(0, ROWS)[:, None]",
            "first_chunk = (block * ROWS + member) * CHUNKS",
            # the end of a block may be 2**31, which no int32 holds
            f"is_whole = block * (ROWS * CHUNKS * COLUMNS) <= n{row + 1} - ROWS * CHUNKS * COLUMNS",
        ]

    def arms(self) -> list[Arm]:
        """Whole blocks, and the last one of a row."""
        return [Arm("is_whole", Branch(None)), Arm(None, Branch("in_columns"))]

    # ------------------------------------------------------------------ loads and stores

    def load(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return a load that says whether the elements are read again."""
        return f'{super().load(operand, branch, place)[:-1]}, eviction_policy="{self.policy}")'

    def load_pair(self, operand: Operand, branch: Branch, place: str = "") -> tuple[str, bool]:
        """Return a load of both parts of the elements of a chunk as one row, where they are neighbours.

        Triton 3.6 gives neighbours to different warps if each element has an index of its own.
        """
        if not self._is_dense(operand, branch, place):
            return super().load_pair(operand, branch, place)
        return f'load_pairs({operand.name}, {branch.column}_first, block * 0, COLUMNS, "{self.policy}")', False

    def store_pair(self, operand: Operand, parts: tuple[str, ...], branch: Branch, place: str = "") -> str:
        """Return a store of such a row."""
        if not self._is_dense(operand, branch, place):
            return super().store_pair(operand, parts, branch, place)
        return f"store_pairs({operand.name}, {branch.column}_first, block * 0, COLUMNS, {', '.join(parts)})"

    def _is_dense(self, operand: Operand, branch: Branch, place: str) -> bool:
        """Whether the elements of a whole chunk are neighbours."""
        return operand.last_two == (0, 1) and not branch.mask and not place

    def store(self, operand: Operand, value: str, branch: Branch, place: str = "") -> str:
        """Return a store that does not take the place of elements that are read again."""
        return f'{super().store(operand, value, branch, place)[:-1]}, cache_modifier=".cs")'
