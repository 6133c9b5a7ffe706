"""Blocks that are a run of positions: each program has ``BLOCK`` elements, whatever their axes.

A thread takes a vector of neighbours, which is best if they lie in one piece in memory. Of a run that begins between
two vectors it reads them one by one, and a warp touches four times the memory of one instruction. With many such runs,
as in stencils, the threads of a warp take elements in turn instead: words, not vectors, and more of them.
"""

from __future__ import annotations

from tilearray_cuda.kernels.hardware import SMALL
from tilearray_cuda.kernels.schedules.addressing import Branch
from tilearray_cuda.kernels.schedules.schedule import Schedule, Sizes, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand

RUNS = 3
"""Runs between two vectors from which words are faster, on an H200: of two float32 runs vectors reached 3750 GB/s and
words 3710, of three 3480 and 3660, of a stencil's four 2750 and 3330."""


def reads_runs(spec: KernelSpec) -> bool:
    """Whether a kernel reads so many unaligned runs of large elements that it takes them by words."""
    return spec.narrowest > SMALL and not spec.places and spec.runs >= RUNS


def by_words(sizes: Sizes) -> Sizes:
    """Return the tiles of kernels that take elements in turn."""
    return {**sizes, 4: Tile(1, 4096, 8), 8: Tile(1, 1024, 4)}


def heavy(sizes: Sizes) -> Sizes:
    """Return the tiles of kernels that compute for long: each thread has fewer elements, in fewer registers."""
    return {**sizes, 4: Tile(1, 1024, 8), 16: Tile(1, 256, 4)}


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
