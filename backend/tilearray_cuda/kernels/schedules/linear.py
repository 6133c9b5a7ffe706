"""Blocks that are a run of positions: each program has ``BLOCK`` elements, whatever their axes."""

from __future__ import annotations

from tilearray_cuda.kernels.schedules.addressing import Branch
from tilearray_cuda.kernels.schedules.schedule import Schedule
from tilearray_cuda.kernels.spec import Operand


class Linear(Schedule):
    """A schedule of blocks in the order of the output's elements."""

    lead = 0
    """Elements before the first one that the first block may have."""

    def programs(self) -> str:
        """Return the number of blocks."""
        size = " * ".join(f"n{axis}" for axis in range(self.spec.rank))
        return f"-(-({size} + {self.lead}) // {self.tile.columns})"

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the size of a block."""
        return (("BLOCK", self.tile.columns),)

    def zeros(self, branch: Branch) -> str:
        """Return a zero for each position."""
        return f"{branch.position} * 0"

    def guard(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return the mask; one element that is repeated needs none."""
        mask = branch.mask if place or any(operand.strides or ()) else None
        return f", mask={mask}" if mask else ""
