"""Held: rows that a program reads once, and goes over several times.

A softmax needs the largest element of a row before it adds up, and the sum before it divides. A row of
`tilearray.geometry.reduction.HELD` elements stays in a program's registers meanwhile.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.hardware import VECTOR, WORD
from tilearray_cuda.kernels.schedules.addressing import Arm, Branch
from tilearray_cuda.kernels.schedules.reduce import MOST_ROWS, WARP, WARP_BYTES, Reduce, itemsize_of
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec

ROW_BYTES = 2048
"""The bytes of a chunk, in registers, that a warp holds: four vectors for each thread."""


class Held(Reduce):
    """Whole rows, as some chunks of lanes.

    Attributes
    ----------
    chunks : the number of chunks
    is_whole : whether the last one is full
    run, threads : the elements of a row that a thread reads as a vector, and the number of threads that have a row
    """

    cases = ("reduce_rows",)

    def __init__(self, spec: KernelSpec, tile: Tile) -> None:
        super(Reduce, self).__init__(spec, tile)
        self.kept, _, self.chunks, self.is_whole, _ = spec.facts[1]  # type: ignore[misc]
        self.lanes, self.outer, self.is_cut, self.is_short = tile.columns, 0, False, False
        self.run = min(tile.columns, max(1, VECTOR // itemsize_of(spec)))
        self.threads = tile.columns // self.run
        self.has_neighbours = has_neighbours(spec, tile)

    @staticmethod
    def facts(loop: Any) -> tuple[int, ...] | None:
        """The slower kept axes, the lanes, the chunks, whether the last one is full, and the most rows of a tile."""
        if not loop.held or loop.family:
            return None
        rows = min(MOST_ROWS, 1 << (loop.shape[-2] - 1).bit_length())
        return loop.kept, loop.lanes, -(-loop.shape[-1] // loop.lanes), loop.shape[-1] % loop.lanes == 0, rows

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule | None:
        """Every spec: one row of several warps, or four warps of short rows; measured on an H200."""
        _, lanes, _, _, rows = facts
        if lanes * itemsize_of(spec) > WARP_BYTES:
            return cls(spec, Tile(1, lanes, max(1, lanes * max(WORD, itemsize_of(spec)) // ROW_BYTES)))
        rows = max(1, min(rows, 4 * WARP_BYTES // (lanes * itemsize_of(spec))))
        return cls(spec, Tile(rows, lanes, max(1, rows * lanes * itemsize_of(spec) // WARP_BYTES)))

    def arms(self) -> list[Arm]:
        """One arm for whole tiles and those that reach beyond the last row: the text is long."""
        return super().arms()[-1:]

    def setup(self) -> list[str]:
        """Return the lines that find a program's rows, and name the elements of each chunk."""
        lane = f"lane = tl.broadcast_to(tl.arange(0, {self.cells[-1]})[None, :], ({', '.join(self.cells)}))"
        return [*super().setup(), *self.chunk_names(), lane]

    def chunk_names(self) -> list[str]:
        """Return the lines that name the elements of each chunk."""
        lanes = "tl.arange(0, COLUMNS)[None, :]"
        names = [f"column{chunk} = {chunk} * COLUMNS + {lanes}" for chunk in range(self.chunks)]
        return [*names, *[f"in_columns = column{self.chunks - 1} < n{self.spec.rank - 1}"] * (not self.is_whole)]

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the size of a tile, and the threads of a row or the warps of a row."""
        more = ("THREADS", self.threads) if self.threads <= WARP else ("WARPS", self.threads // WARP)
        return (*super().constants(), more)

    @property
    def cells(self) -> tuple[str, str]:
        """The shape of a cell: rows by threads, or the warps of a row by their threads."""
        return ("ROWS", "THREADS") if self.threads <= WARP else ("WARPS", str(WARP))

    def chunk_range(self) -> list[str]:
        """Return no lines: the chunks are known."""
        return []

    def first_of_chunk(self, branch: Branch) -> str:
        """Return the first column of a chunk."""
        return f"{branch.tag.removeprefix('_of_')} * COLUMNS"


def has_neighbours(spec: KernelSpec, tile: Tile) -> bool:
    """Whether a program has several rows of small elements, along which all arrays lie.

    On an H200 layer norms of 16 million float32 in rows of 65 take 84 us so, and 174 as the compiler distributes them;
    of bfloat16 60 and 153. Those of rows of 9 float64 take 167 and 122.
    """
    along_rows = all(operand.last_two[1] in (0, 1) for operand in spec.arrays)
    return tile.rows > 1 and along_rows and itemsize_of(spec) <= WORD
