"""Flat: one axis. Contiguous arrays of any shape, and arrays with one other stride.

Programs read and write whole vectors. Small elements make more of an effort: a run that begins between two vectors is
read in vectors and shifted, and if the output is unaligned, its blocks are peeled: the first one begins up to a vector
early, so that all stores are vectors. The last block is masked, in pieces if it has many elements.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tilearray_cuda.kernels.hardware import SMALL, VECTOR
from tilearray_cuda.kernels.schedules.addressing import Arm, Branch, in_eighths, term
from tilearray_cuda.kernels.schedules.linear import Linear, by_words, heavy, reads_runs
from tilearray_cuda.kernels.schedules.schedule import PIECE, Schedule, Sizes, Tile, tile_for
from tilearray_cuda.kernels.spec import KernelSpec, Operand

_SIZES: Sizes = {
    1: Tile(1, 2048, 4),
    2: Tile(1, 1024, 4),
    4: Tile(1, 1024, 4),
    8: Tile(1, 1024, 4),
    16: Tile(1, 1024, 2),
}
_COPIED: Sizes = {**_SIZES, 1: Tile(1, 4096, 4), 8: Tile(1, 512, 4), 16: Tile(1, 256, 4)}

_RANDOM: Sizes = dict.fromkeys((1, 2, 4), Tile(1, 4096, 8))
"""Draws of words of 32 bits: a thread computes the key of each round once for 16 numbers. On an H100 2**28 normal ones
of float32 take 0.466 ms so, and 0.489 in blocks of 1024; exponential ones 0.424 and 0.459; uniform ones of bfloat16
0.238 and 0.272."""

MENDED = Tile(1, 256, 2)
"""Elements that move in short runs: a program goes on until its longest run ends. Measured on an H100."""

# first architecture -> kind -> tiles, measured on an H200 (sm_90). "copied": one array is read alone; reads and writes
# take turns at memory, and shorter turns are faster, down to blocks of 4096 bytes
SIZES = {
    80: {
        "flat": _SIZES,
        "flat copied": _COPIED,
        "flat heavy": heavy(_SIZES),
        "flat by words": by_words(_SIZES),
        "flat random": {**heavy(_SIZES), **_RANDOM},
        "strided": _SIZES,
        "strided copied": _SIZES,
        "strided heavy": heavy(_SIZES),
    }
}

LONG, LONG_BLOCK = 144, 256
"""The nodes of an expression above which blocks of 8-byte elements have this many: a thread then has two elements, and
their values are in registers. With eight elements, a step of the incomplete gamma function (161 nodes, nine arrays) has
3,158 instructions that move registers to memory and back, and none with two. Normal numbers of float64 have up to 143
nodes and none: 2**28 of them took an H200 1.44 ms in short blocks, and 1.19 in blocks of 1024 elements."""


class Flat(Linear):
    """Blocks along one axis."""

    cases = ("flat", "strided")
    serves_all = True

    def __init__(self, spec: KernelSpec, tile: Tile) -> None:
        super().__init__(spec, tile)
        out = spec.operands[0]
        small = spec.has_one_result and out.itemsize <= SMALL
        is_peeled = out.strides == (1,) and small and not out.aligned
        self.lead = VECTOR // out.itemsize - 1 if is_peeled else 0

    @staticmethod
    def facts(loop: Any) -> Hashable:
        """No fact beside the strides."""
        return ()

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule:
        """Every spec of one axis."""
        if spec.case == "flat" and reads_runs(spec):
            return cls(spec.by_words(), tile_for(SIZES, arch, "flat by words", spec.widest))
        if spec.has_node("mended", "mended_order"):
            return cls(spec, MENDED)
        kind = " heavy" if spec.is_heavy else " copied" if spec.copies else ""
        if spec.case == "flat" and spec.draws:
            kind = " random"
        tile = tile_for(SIZES, arch, spec.case + kind, spec.widest)
        if spec.widest == 8 and len(spec.nodes) > LONG:
            tile = tile._replace(columns=min(tile.columns, LONG_BLOCK))
        return cls(spec, tile)

    def setup(self) -> list[str]:
        """Return the lines that find the block's positions."""
        start = [f"start = {self.program()} * BLOCK"]
        if self.lead:
            out = self.spec.operands[0]
            start = [
                f"lead = (({out.name}.to(tl.int64) & {VECTOR - 1}) // {out.itemsize}).to(tl.int32)",
                f"start = {self.program()} * BLOCK - lead  # where a vector of {out.name} begins",
            ]
        return [*start, "index = start + tl.arange(0, BLOCK)"]

    def arms(self) -> list[Arm]:
        """Whole blocks, and the first and the last one."""
        whole = "start <= n0 - BLOCK"  # start + BLOCK may be 2**31, which no int32 holds
        return [Arm(f"(start >= 0) & ({whole})" if self.lead else whole, Branch(None)), self._end()]

    def _end(self) -> Arm:
        inside = "({0} >= 0) & ({0} < n0)" if self.lead else "{0} < n0"
        if not self.spec.unaligned or self.tile.of_a_thread <= PIECE:
            return Arm(None, Branch("inside"), (f"inside = {inside.format('index')}",))
        return Arm(
            None,
            Branch("inside", position="index_of_piece", tag="_of_piece"),
            pieces=in_eighths("BLOCK"),
            each=(
                "index_of_piece = start + piece + tl.arange(0, BLOCK // 8)",
                f"inside = {inside.format('index_of_piece')}",
            ),
        )

    def index(self, operand: Operand, branch: Branch) -> str:
        """Return the position times the stride."""
        return term(branch.position, (operand.strides or (0,))[0], f"{operand.name}_s0")

    def load(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Small elements of an unaligned or reversed run are read in vectors."""
        step = (operand.strides or (0,))[0]
        is_run = not place and branch.mask is None and step in (1, -1) and operand.itemsize <= SMALL
        if not is_run or (operand.aligned and not self.lead and step == 1):
            return super().load(operand, branch, place)
        return f"load_run({operand.name} {'+' if step == 1 else '-'} start, {step}, BLOCK)"

    def store(self, operand: Operand, value: str, branch: Branch, place: str = "") -> str:
        """A peeled block begins at a vector."""
        if not self.lead or branch.mask is not None:
            return super().store(operand, value, branch, place)
        address = f"tl.multiple_of({operand.name} + start, {VECTOR}) + tl.arange(0, BLOCK)"
        return f"tl.store({address}, {value})"
