"""Windows: sums of products of the windows of an array and a shorter one, at neighbouring places.

A thread has some neighbouring places. Their windows overlap, so an element that it reads is multiplied for all of them.
Along the last axis, if there is one, programs take parts of the shorter array.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.schedules.addressing import Arm, Branch
from tilearray_cuda.kernels.schedules.fold import Fold
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec

PLACES = 8
"""The neighbouring places of a thread, and the elements of the shorter array that it takes in one step."""
LANES = 32
"""The threads of a program: one warp."""


class Windows(Fold):
    """Blocks of places, and parts of the shorter array."""

    serves_all = False

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule | None:
        """Every spec of sums over windows."""
        return cls(spec, Tile(1, LANES * PLACES, LANES // 32)) if spec.has_node("windows") else None

    def node(self) -> tuple[int, Any]:
        """Return the number of the node of the sums, and the node."""
        return next((number, node) for number, node in enumerate(self.spec.nodes) if node[0] == "windows")

    def programs(self) -> str:
        """Return the number of blocks of places, for each part."""
        blocks = f"-(-n0 // {self.tile.columns})"
        return f"({blocks}) * n1" if self.spec.rank > 1 else blocks

    def setup(self) -> list[str]:
        """Return the lines that find the first place of each thread, and the part."""
        parts = ["i1 = block % n1", "block = block // n1"] if self.spec.rank > 1 else []
        return [
            f"block = {self.program()}",
            *parts,
            "start = block.to(tl.int64) * BLOCK",
            f"lane = start + tl.arange(0, BLOCK // {PLACES}) * {PLACES}",
            "index = start + tl.arange(0, BLOCK)",
            "inside = index < n0",
        ]

    def arms(self) -> list[Arm]:
        """One arm for all blocks."""
        return [Arm(None, Branch("inside", "index"))]
