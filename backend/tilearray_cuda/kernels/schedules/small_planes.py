"""Small planes: three axes or more, of which the last two have few elements, as in stacks of 3 x 3 matrices.

Blocks are flat over all axes, and each element's indices come from divisions. A program of tiles would have one plane:
an H100 starts a program each 0.3 to 0.6 ns, so stacks of a million planes would take that many times as long.
"""

from __future__ import annotations

from math import prod
from typing import Any

from tilearray_cuda.kernels.schedules.addressing import Arm, Branch, added, term
from tilearray_cuda.kernels.schedules.boxes import NODES
from tilearray_cuda.kernels.schedules.linear import Linear
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand

SMALL_PLANE, MANY = 512, 2048
"""The most elements of a small plane, and the fewest planes.

On an H100 slices of 16 x 16 float32 are added at 2978 GB/s so, and at 1696 by a plane a program; of 20 x 24 at 2790 and
1510, and of 32 x 32 at 2776 and 2872.
"""
BLOCK = Tile(1, 512, 4)
"""Outer products of (3, 1) and (1, 3) are written at 2356 GB/s in such blocks, and at 1461 in blocks of 1024."""


class SmallPlanes(Linear):
    """Blocks in the order of the loop's elements, whose indices along each axis are divided out."""

    cases = ("rows", "tile")

    @staticmethod
    def facts(loop: Any) -> bool | None:
        """Whether there are many planes of few elements; nothing else depends on it.

        >>> from types import SimpleNamespace
        >>> [SmallPlanes.facts(SimpleNamespace(shape=shape)) for shape in ((9000, 3, 4), (9000, 30, 40), (9000, 3))]
        [True, None, None]
        """
        shape = loop.shape
        if len(shape) < 3 or shape[-1] * shape[-2] > SMALL_PLANE or prod(shape[:-2]) < MANY:
            return None
        return True

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule | None:
        """Every elementwise spec that depends on no position."""
        del facts, arch
        if spec.places or spec.combines or any(node[0] not in NODES for node in spec.nodes):
            return None
        return cls(spec, BLOCK)

    @property
    def case(self) -> str:
        """Kernels of both cases divide indices out."""
        return "small_planes"

    # ------------------------------------------------------------------ the kernel

    def setup(self) -> list[str]:
        """Return the lines that find the indices of each element; unsigned division is faster."""
        rank, bits = self.spec.rank, self.spec.index_bits
        size = " * ".join(f"n{axis}" for axis in range(rank))
        lines = [f"size = {size}", f"start = {self.program()} * BLOCK", "index = start + tl.arange(0, BLOCK)"]
        lines.append(f"rest0 = index.to(tl.uint{bits})")
        for step, axis in enumerate(range(rank - 1, 0, -1)):
            extent = f"n{axis}.to(tl.uint{bits})"
            lines.append(f"rest{step + 1} = rest{step} // {extent}")
            lines.append(f"i{axis} = (rest{step} - rest{step + 1} * {extent}).to(tl.int{bits})")
        return [*lines, f"i0 = rest{rank - 1}.to(tl.int{bits})"]

    def arms(self) -> list[Arm]:
        """Whole blocks, and the last one."""
        return [
            Arm("start <= size - BLOCK", Branch(None)),
            Arm(None, Branch("inside"), ("inside = index < size",)),
        ]

    def index(self, operand: Operand, branch: Branch) -> str:
        """Return the indices times the strides."""
        rank, names = self.spec.rank, [f"{operand.name}_s{axis}" for axis in range(self.spec.rank)]
        outer = [f"i{axis} * {names[axis]}" for axis in range(rank - 2)]
        last = [term(f"i{axis}", stride, names[axis]) for axis, stride in zip((rank - 2, rank - 1), operand.last_two)]
        return added(*outer, *last)

    def guard(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return the mask: each element has an index along the axes further out."""
        return f", mask={branch.mask}" if branch.mask else ""
