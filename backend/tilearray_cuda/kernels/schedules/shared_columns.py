"""Shared columns: columns that a group of programs goes over several times, in one launch.

A softmax along columns needs the largest element of a column before it adds up, and the sum before it divides. The
programs of one strip of columns are a group: each one walks its segment, stores what it gives, and waits for the
others. Then it has the result of the whole column, and walks its segment again, which lies in the L2 cache.

Programs take numbers in the order in which they start, and the members of a group have neighbouring numbers. So all
members of the first unfinished group run if a GPU runs as many programs at once as a group has members.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.hardware import LINE, SECTOR, WORD
from tilearray_cuda.kernels.schedules.addressing import Arm, Branch, divided_out, moved_along
from tilearray_cuda.kernels.schedules.held_lanes import arrays_of_rows
from tilearray_cuda.kernels.schedules.reduce import MOST_ROWS, Reduce, blocks, itemsize_of
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand
from tilearray_cuda.kernels.storage import STORAGE

SLOT = 8
"""Bytes of a value that programs exchange; slots share no line of the caches with counters."""
THREADS = 256
"""The threads of a program, each of which holds an element of each chunk. More threads wait longer for each other.
Measured on an H100."""
CHUNKS = (1, 2, 4, 8, 16, 24, 32, 48, 64)
"""The numbers of chunks that a kernel holds: each one is text of its own. Fewer chunks are masked."""
WORDS = 64
"""The most words that a thread holds."""
PAIRS = 32
"""The columns of a strip of which each thread holds pairs of 2-byte elements."""
TILES = {1: 1024, 2: 1024, 4: 1024, 8: 512, 16: 256}
"""Elements of a tile of chunks that are not held, by itemsize."""
WARPS, UNROLL = 8, 4
"""The warps of such a tile, and the chunks that are loaded at once."""


class SharedColumns(Reduce):
    """Strips of columns by lanes.

    Attributes
    ----------
    members : the programs of a group, rounded up to a power of two
    chunks : the chunks that a program holds, or 0 if it reads them again
    is_whole : whether no chunk reaches beyond the columns
    fills : whether no strip reaches beyond the last column, so that neighbours are read and stored without masks
    halves : whether threads hold pairs of 2-byte elements in words, and compute what follows from them for each walk
    policy : what loads that are repeated say of the L2 cache
    """

    cases = ("reduce_columns",)
    serves_all = False
    has_scratch = True
    unroll = UNROLL
    policy = "evict_last"

    def __init__(self, spec: KernelSpec, tile: Tile, chunks: int) -> None:
        super(Reduce, self).__init__(spec, tile)
        self.kept, self.lanes, self.members, _, self.is_whole, _, in_pairs = spec.facts[1]  # type: ignore[misc]
        self.fills = in_pairs and PAIRS % tile.rows == 0
        self.halves = chunks > 0 and tile.rows * tile.columns == 64 * tile.warps and _holds_halves(spec)
        self.outer, self.is_cut, self.is_short, self.chunks = 0, self.members > 1, False, chunks

    @staticmethod
    def facts(loop: Any) -> tuple[int, ...] | None:
        """The slower kept axes, the lanes, the members of a group, the chunks, `is_whole`, the most columns of a strip,
        and whether strips of `PAIRS` fill all columns."""
        if not loop.held:
            return None
        rows = min(MOST_ROWS, 1 << (loop.shape[-2] - 1).bit_length())
        members = 1 << (loop.segments.total - 1).bit_length()
        chunks = next((each for each in CHUNKS if each >= loop.segments.chunks), 0)
        is_whole = chunks == loop.segments.chunks and loop.shape[-1] % (chunks * loop.lanes) == 0
        return loop.kept, loop.lanes, members, chunks, is_whole, rows, loop.shape[-2] % PAIRS == 0

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule:
        """Every spec: chunks that threads hold, or longer segments, which they read again."""
        _, lanes, _, chunks, _, rows, in_pairs = facts
        itemsize = itemsize_of(spec)
        words = chunks * max(1, itemsize // WORD) * arrays_of_rows(spec)
        if words > WORDS or not chunks:
            rows = max(1, min(rows, TILES[itemsize] // lanes))
            return cls(spec, Tile(rows, lanes, max(1, min(WARPS, rows * lanes // 32))), 0)
        if in_pairs and lanes * PAIRS == 2 * THREADS and _holds_halves(spec):
            return cls(spec, Tile(PAIRS, lanes, THREADS // 32), chunks)
        rows = max(1, min(rows, max(THREADS // lanes, SECTOR // spec.narrowest)))  # a sector is stored at once
        return cls(spec, Tile(rows, lanes, max(1, rows * lanes // 32)), chunks)

    # ------------------------------------------------------------------ the kernel

    def arms(self) -> list[Arm]:
        """Return the arms of `Reduce`, the last one of which no tile takes if strips fill all columns."""
        arms = super().arms()
        return [*arms[:-2], arms[-2]._replace(condition=None)] if self.fills and self.tile.rows > 1 else arms

    @property
    def phases(self) -> int:
        """How often the members of a group meet."""
        return sum(node[0] == "reduce" for node in self.spec.nodes)

    @property
    def stores_segments(self) -> bool:
        """No: a group stores the results of its columns once."""
        return False

    @property
    def total(self) -> str:
        """The number of members, by name."""
        return "segments_total" if self.is_cut else "1"

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the size of a tile, and the members of a group."""
        return (*super().constants(), ("MEMBERS", self.members))

    @property
    def exchanged(self) -> int:
        """The number of values that programs exchange for each column."""
        reductions = [node[3] for node in self.spec.nodes if node[0] == "reduce"]
        return sum(1 + (STORAGE[dtype].kind == "complex") for dtypes in reductions for dtype in dtypes)

    def scratch(self, loop: Any) -> tuple[int, int]:
        """Return the bytes that a launch needs beside its operands, and how many of them must be 0 before it.

        They are the numbers of programs that started and that arrived, and two slots for each column of each program
        and each of the values that are exchanged.
        """
        strips = -(-loop.shape[-2] // self.tile.rows)
        for extent in loop.shape[: self.kept]:
            strips *= extent
        counters = -(-4 * (strips * self.phases + 1) // LINE) * LINE
        return counters + 2 * SLOT * self.exchanged * strips * loop.segments.total * self.tile.rows, counters

    def setup(self) -> list[str]:
        """Return the lines that find a program's columns and its segment, and the slots of its group."""
        row = self.spec.rank - 2
        number = "take_turn(counters)" + ".to(tl.int64)" * (self.spec.index_bits == 64)
        lines = ["counters = scratch.to(tl.pointer_type(tl.int32), bitcast=True)", f"program = {number}"]
        lines += (
            ["segment = program % segments_total", "strip = program // segments_total"]
            if self.is_cut
            else ["strip = program"]
        )
        lines += [f"row_tiles = {blocks(row, 'ROWS')}", "first_row = (strip % row_tiles) * ROWS"]
        strips = " * ".join(["row_tiles", *[f"n{axis}" for axis in range(self.kept)]])
        lines += [f"strips = {strips}", f"slots = (strips * {self.phases} + {LINE // 4}) // {LINE // 4} * {LINE}"]
        lines += ["rest = strip // row_tiles"] if self.kept else []
        lines += [*divided_out("rest", range(self.kept)), *moved_along(self.spec.arrays, range(self.kept))]
        lines += [*self.rows(), *[f"in_rows = {self.in_rows()}"] * (self.tile.rows > 1)]
        lines += ["lane = tl.broadcast_to(tl.arange(0, COLUMNS)[None, :], (ROWS, COLUMNS))"]
        lines += ["member = tl.broadcast_to(tl.arange(0, MEMBERS)[None, :], (ROWS, MEMBERS))"] * self.is_cut
        lines += self.chunk_range()
        if self.chunks:
            return [*lines, f"end = tl.minimum(last_chunk * COLUMNS, n{row + 1})"]
        whole = f"whole_blocks = first_chunk + (whole_chunks - first_chunk) // {self.unroll} * {self.unroll}"
        return [*lines, whole]

    # ------------------------------------------------------------------ loads and stores

    def load(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return a load that says whether the elements are read again."""
        found = super().load(operand, branch, place)
        again = not self.chunks and 0 not in operand.last_two
        return f'{found[:-1]}, eviction_policy="{self.policy}")' if again else found

    def store(self, operand: Operand, value: str, branch: Branch, place: str = "") -> str:
        """Return a store that does not take the place of elements that are read again."""
        found = super().store(operand, value, branch, place)
        again = not self.chunks and 0 not in operand.last_two
        return f'{found[:-1]}, cache_modifier=".cs")' if again else found


def _holds_halves(spec: KernelSpec) -> bool:
    """Whether all elements that threads hold have 2 bytes, and what follows from them takes few instructions.

    On an H100, 16384 x 16384 bfloat16, a softmax takes 0.70 ms with pairs and 0.76 ms without, its logarithm 0.63 and
    0.77 ms. Four elements for each thread take 0.90 and 0.59 ms.
    """
    held = [operand for operand in spec.arrays[spec.outputs :] if 0 not in operand.last_two]
    return not spec.is_heavy and all(operand.itemsize == 2 for operand in held)
