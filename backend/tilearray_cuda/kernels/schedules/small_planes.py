"""Small planes: many planes or rows of few elements, as in stacks of 3 x 3 matrices and in pairs of points.

Blocks are flat over all axes, and each element's indices come from divisions. A program of tiles would have one plane,
or few elements of a tile's columns: an H100 starts a program each 0.3 to 0.6 ns, so stacks of a million planes would
take that many times as long.
"""

from __future__ import annotations

from math import prod
from typing import Any

from tilearray_cuda.kernels.schedules.addressing import Arm, Branch, added, term
from tilearray_cuda.kernels.schedules.boxes import NODES
from tilearray_cuda.kernels.schedules.linear import Linear
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand

SMALL_PLANE, NEAR_PLANE, MANY = 128, 512, 2048
"""The most elements of a small plane, also where neighbours in memory are near each other in the loop; and the fewest
planes.

On an H100 slices of 16 x 16 float32 are added at 2978 GB/s so, and at 1696 by a plane a program; of 20 x 24 at 2790 and
1510, and of 32 x 32 at 2776 and 2872.
"""
SHORT_ROW, SHORT_ROW_OF_BYTES, MANY_ROWS = 4, 16, 2**16
"""The most elements of a row, and of one of bytes, and the fewest rows.

On an H100 the differences of all pairs of 2000 points of 3 float32 take 33 us so, and 77 in tiles, of 4 43 and 56, of 8
48 and 33; sums of 16 million bytes in rows of 8 of 9 25 and 50, in rows of 32 of 33 24 and 19.
"""
NEAR, RUN = 128, 16
"""Of elements that lie within a run of so many in the memory of an operand, the most that lie between two neighbours in
the loop: a block has several of them then, and else one."""
BLOCK = Tile(1, 512, 4)
"""Outer products of (3, 1) and (1, 3) are written at 2356 GB/s in such blocks, and at 1461 in blocks of 1024."""


def _is_near(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether elements that are neighbours in the memory of an operand are near each other in the loop.

    >>> several = (400, 20, 1), (400, 1, 20), (1, 9000, 180000), (1, 0, 0)
    >>> [_is_near((9000, 20, 20), strides) for strides in several]
    [True, True, False, True]
    >>> _is_near((32, 32, 64, 64, 4), (8192, 256, 4, 262144, 1))
    False
    """
    inner, axes = 1, list[tuple[int, int, int]]()
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if stride:
            axes.append((abs(stride), inner, extent))
            inner *= extent
    for step, between, extent in sorted(axes):
        if between > NEAR:
            return False
        if step * extent >= RUN:
            break
    return True


class SmallPlanes(Linear):
    """Blocks in the order of the loop's elements, whose indices along each axis are divided out."""

    cases = ("rows", "tile")

    @staticmethod
    def facts(loop: Any) -> int | None:
        """The most bytes of an element of which there are many small planes or short rows; None if there are none.

        >>> from types import SimpleNamespace
        >>> shapes = (9000, 3, 4), (9000, 30, 40), (90000, 3), (90000, 10)
        >>> [SmallPlanes.facts(SimpleNamespace(shape=shape, strides=())) for shape in shapes]
        [16, None, 16, 1]
        >>> SmallPlanes.facts(SimpleNamespace(shape=(9000, 20, 20), strides=((400, 20, 1), (1, 9000, 180000))))
        """
        *slower, rows, columns = loop.shape
        outer = prod(slower)
        if outer >= MANY and rows * columns <= SMALL_PLANE:
            return 16
        if outer >= MANY and rows * columns <= NEAR_PLANE:
            most = 16
        elif columns <= SHORT_ROW_OF_BYTES and outer * rows >= MANY_ROWS:
            most = 16 if columns <= SHORT_ROW else 1
        else:
            return None
        return most if all(_is_near(loop.shape, strides) for strides in loop.strides) else None

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule | None:
        """Every elementwise spec that depends on no position."""
        del arch
        if max(operand.itemsize for operand in spec.arrays) > facts:
            return None
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
