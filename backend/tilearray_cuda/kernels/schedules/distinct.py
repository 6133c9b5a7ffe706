"""Distinct: runs of elements whose keys differ in their lowest bits only, of which a program finds the distinct ones.

A launch counts those of each run, and another one stores them.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.block_assembly import WARP, with_decorator
from tilearray_cuda.kernels.block_bits import LISTED, THREADS, set_functions
from tilearray_cuda.kernels.schedules.addressing import Branch
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand

REGISTERS = 32
"""The most registers of a thread, so that a processor runs eight programs at once."""


class Distinct(Schedule):
    """A run for each program."""

    cases = ("runs",)
    serves_all = True

    @staticmethod
    def facts(loop: Any) -> int:
        """None beside those of every loop."""
        return 0

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule:
        """Every spec."""
        return cls(spec, Tile(1, LISTED, THREADS // WARP, 1, REGISTERS))

    @property
    def node(self) -> tuple[int, tuple[Any, ...]]:
        """The node that counts or lists, and its number."""
        return next(each for each in enumerate(self.spec.nodes) if each[1][0] in ("sizes", "distinct"))

    def pointer(self, position: int) -> str:
        """Return the name of an input."""
        return self.spec.operands[self.spec.outputs + position].name

    # ------------------------------------------------------------------ the kernel

    def programs(self) -> str:
        """Return the number of runs."""
        return "n0"

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the elements that a program reads or stores at once, and its threads."""
        return ("SIZE", self.tile.columns), ("THREADS", WARP * self.tile.warps)

    def functions(self) -> list[str]:
        """Return the functions of a set of integers."""
        return with_decorator(set_functions())

    def setup(self) -> list[str]:
        """Return the lines that find a program's run."""
        starts = self.pointer(self.node[1][2])
        return [
            f"program = {self.program()}",
            f"start = tl.load({starts} + program)",
            f"end = tl.load({starts} + (program + 1), mask=program + 1 < n0, other=n1)",
            "index = tl.arange(0, SIZE)",
            "thread = tl.arange(0, THREADS)",
        ]

    # ------------------------------------------------------------------ where elements lie

    def index(self, operand: Operand, branch: Branch) -> str:
        """Return the places of elements in the only axis."""
        return branch.position

    def zeros(self, branch: Branch) -> str:
        """Return a zero for each element of a block."""
        return "index * 0"

    def guard(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return the mask of the elements of the run."""
        return f", mask={branch.mask}"
