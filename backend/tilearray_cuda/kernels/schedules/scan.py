"""Scan: tiles of ``ROWS`` rows by ``COLUMNS`` lanes, which walk along the scanned axis chunk by chunk.

A tile's rows lie along the fastest kept axis, its columns are the lanes of `tilearray.geometry.scan`.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.schedules.addressing import Arm
from tilearray_cuda.kernels.schedules.reduce import MOST_ROWS, Reduce
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec

ELEMENTS = 1024
"""Elements of a tile of several lanes."""
COLUMN_ROWS = 128
"""Rows of a tile of one lane."""


class Scan(Reduce):
    """Blocks of rows by lanes; there are no slower scanned axes."""

    cases = ("scan_rows", "scan_columns")

    @staticmethod
    def facts(loop: Any) -> tuple[int, int, bool, int, bool]:
        """The facts of `Reduce`: slower kept axes, lanes, whether there are segments, the most rows of a tile."""
        rows = min(MOST_ROWS, 1 << (loop.shape[-2] - 1).bit_length())
        return len(loop.shape) - 2, loop.lanes, loop.segments.total > 1, rows, False

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule:
        """Every spec."""
        _, lanes, _, rows, _ = facts
        most = COLUMN_ROWS if lanes == 1 else ELEMENTS // lanes
        return cls(spec, Tile(max(1, min(rows, most)), lanes, 4))

    @property
    def stores_segments(self) -> bool:
        """Whether the kernel finds the totals of segments."""
        return self.spec.has_node("total")

    def arms(self) -> list[Arm]:
        """One arm for whole tiles and those that reach beyond the last row: the text of a scan is long."""
        return super().arms()[-1:]
