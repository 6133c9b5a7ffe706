"""Scan: tiles of ``ROWS`` rows by ``COLUMNS`` lanes, which walk along the scanned axis chunk by chunk.

A tile's rows lie along the fastest kept axis, its columns are the lanes of `tilearray.geometry.scan`.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.hardware import VECTOR, WORD
from tilearray_cuda.kernels.schedules.addressing import Arm
from tilearray_cuda.kernels.schedules.reduce import MOST_ROWS, NARROW, WARP_BYTES, Reduce
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec

ELEMENTS, NARROW_ELEMENTS = 128, 512
"""Elements of a tile of several lanes, and of one of narrow rows below 16 bytes an element. On an H100 rows of 100 and
128 float32 are scanned at 0.84 and 1.00 of a copy's rate so, and at 0.44 and 0.57 by one row a program."""
COLUMN_ROWS = 32
"""Rows of a tile of one lane."""
STAGE_BYTES = 256
"""The bytes of the rows of such a tile that is read by asynchronous copies, if they are more."""
UNROLL, COLUMN_UNROLL = 2, 32
"""The chunks that are read at once, while those before them are combined: of several lanes, and of one."""
STAGES, STAGE_UNROLL = 4, 16
"""The steps of a loop that are in flight, and the chunks of a step, of one lane. Asynchronous copies to shared memory
take words alone. On an H200 they read columns of float32 at 0.81 of a copy's rate, where registers reached 0.57."""


class Scan(Reduce):
    """Blocks of rows by lanes; there are no slower scanned axes.

    Attributes
    ----------
    unroll, stages : the chunks that are read at once; the steps in flight by asynchronous copies, or 0
    run, threads : the elements of a row that a thread reads as a vector, and the number of threads that have a row
    """

    cases = ("scan_rows", "scan_columns")

    def __init__(self, spec: KernelSpec, tile: Tile) -> None:
        super().__init__(spec, tile)
        self.stages = STAGES if tile.columns == 1 and _has_words(spec) else 0
        self.unroll = STAGE_UNROLL if self.stages else COLUMN_UNROLL if tile.columns == 1 else UNROLL
        self.run, self.threads = self.run_and_threads()

    def run_and_threads(self) -> tuple[int, int]:
        """Return the elements of a row that a thread reads as a vector, and the number of threads that have a row."""
        columns = self.tile.columns
        run = min(columns, max(1, VECTOR // _itemsize(self.spec)))
        return run, columns // run

    @staticmethod
    def facts(loop: Any) -> tuple[int, ...] | None:
        """The facts of `Reduce`: slower kept axes, lanes, whether there are segments, the most rows, and few chunks."""
        if loop.case == "scan_rows" and loop.segments.total > 1:
            return None
        rows = min(MOST_ROWS, 1 << (loop.shape[-2] - 1).bit_length())
        is_narrow = loop.shape[-1] <= NARROW * loop.lanes
        return len(loop.shape) - 2, loop.lanes, loop.segments.total > 1, rows, False, is_narrow

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule:
        """Every spec: tiles of which a warp has whole rows."""
        _, lanes, _, rows, _, is_narrow = facts
        if lanes == 1:
            rows = min(rows, max(COLUMN_ROWS, STAGE_BYTES // _itemsize(spec) if _has_words(spec) else 0))
            return cls(spec, Tile(rows, 1, max(1, rows // 32)))
        elements = NARROW_ELEMENTS if is_narrow and _itemsize(spec) < VECTOR else ELEMENTS
        rows = max(1, min(rows, elements // lanes))
        return cls(spec, Tile(rows, lanes, max(1, min(4, rows * lanes * _itemsize(spec) // WARP_BYTES))))

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the size of a tile, and the threads of a row."""
        return (*super().constants(), ("THREADS", self.threads))

    @property
    def stores_segments(self) -> bool:
        """Whether the kernel finds the totals of segments, which are those of columns."""
        return self.spec.has_node("total")

    def arms(self) -> list[Arm]:
        """One arm for whole tiles and those that reach beyond the last row: the text of a scan is long."""
        return super().arms()[-1:]


def _itemsize(spec: KernelSpec) -> int:
    """Return the bytes of an element that is scanned: the totals of segments come before it."""
    return spec.arrays[-1].itemsize


def _has_words(spec: KernelSpec) -> bool:
    """Whether elements are as large as asynchronous copies need them."""
    return _itemsize(spec) >= WORD
