"""Fold: blocks of elements, of which those that begin a run of equal places walk it.

Elements along the last axis are neighbours in a block, so rows of a target are read and written in one piece. Elements
that begin no run do nothing, and a block without a first one ends at once. An element of few, whose run is long, is a
block of its own: its reads are those of one thread.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tilearray_cuda.kernels.schedules.addressing import Arm, Branch, added, term
from tilearray_cuda.kernels.schedules.linear import Linear
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand

BLOCK = 128
"""One element for each thread: runs have different lengths, and those of a warp wait for the longest."""
LONG = 16
"""So many elements that are read at once are those of a long run. Then a block is a warp: most of its threads wait for
one, and a multiprocessor has more warps."""


class Fold(Linear):
    """Blocks of elements."""

    cases = ("fold",)
    serves_all = True

    @staticmethod
    def facts(loop: Any) -> Hashable:
        """No fact beside the strides."""
        return ()

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule | None:
        """Every spec."""
        found = cls(spec, Tile(1, BLOCK, BLOCK // 32))
        _, (kind, *_, at_once) = found.node()
        if kind == "fold_places":
            return found.resized(Tile(1, 1, 1))
        return found.resized(Tile(1, 32, 1)) if at_once >= LONG else found

    def node(self) -> tuple[int, Any]:
        """Return the number of the node that folds, and the node."""
        kinds = ("fold", "fold_words", "fold_places")
        return next((number, node) for number, node in enumerate(self.spec.nodes) if node[0] in kinds)

    def setup(self) -> list[str]:
        """Return the lines that find the index of each element along each axis."""
        spec, rest = self.spec, "index"
        size = " * ".join(f"n{axis}" for axis in range(spec.rank))
        lines = [f"index = {self.program()} * BLOCK + tl.arange(0, BLOCK)", f"inside = index < {size}"]
        for axis in range(spec.rank - 1, 0, -1):
            lines += [f"i{axis} = {rest} % n{axis}", f"rest = {rest} // n{axis}"]
            rest = "rest"
        return [*lines, f"i0 = {rest}"]

    def arms(self) -> list[Arm]:
        """One arm for all blocks."""
        return [Arm(None, Branch("first", "i0"))]

    def index(self, operand: Operand, branch: Branch) -> str:
        """Return the indices along all axes times their strides; along the first one the branch names the index."""
        known, rank = operand.strides or (), self.spec.rank
        strides = [*["other"] * (rank - len(known)), *known]
        names = [branch.row, *[f"i{axis}" for axis in range(1, rank)]]
        pairs = enumerate(zip(names, strides, strict=True))
        terms = [term(name, stride, f"{operand.name}_s{axis}") for axis, (name, stride) in pairs]
        return added(*terms) or self.zeros(branch)

    def guard(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return the mask: every access may lie beyond a run, unless the branch has none."""
        return f", mask={branch.mask}" if branch.mask else ""
