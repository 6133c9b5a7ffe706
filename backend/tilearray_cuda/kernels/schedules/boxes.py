"""Boxes: arrays with three different fastest axes, as in ``a.permute(2, 0, 1) + b.permute(1, 2, 0)``.

A program has a box over the last three axes. Each array is read along its own fastest axis, and changes its layout in
shared memory. A tile of two axes would read one of them element by element, 32 bytes each.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.schedules.addressing import Arm, Branch, added, divided_out, term
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand

SIDE = 32
"""The least extent of an axis of a box."""
DEPTH = {1: 32, 2: 32, 4: 32, 8: 16}
"""Elements of a box along the first of its axes, by itemsize."""
ROWS, COLUMNS, WARPS = 16, 32, 8
"""Elements along the other two, and warps."""
NODES = ("input", "cast", "call", "constant")
"""The nodes of elementwise expressions that depend on no position."""


class Boxes(Schedule):
    """Blocks of the last three axes.

    Attributes
    ----------
    deep : for each array in memory whether it is dense along the first axis of a box
    pitch : 4 if the other strides of such arrays are multiples of it, or 1
    """

    cases = ("mixed",)

    def __init__(self, spec: KernelSpec, tile: Tile) -> None:
        super().__init__(spec, tile)
        deep, self.pitch = spec.facts[0]  # type: ignore[misc]
        self.deep = dict(zip([operand.name for operand in spec.arrays], deep, strict=True))

    @staticmethod
    def facts(loop: Any) -> tuple[tuple[bool, ...], int] | None:
        """`deep` and `pitch`, if some array is, and every array has all three axes, which are long."""
        if len(loop.shape) < 3 or min(loop.shape[-3:]) < SIDE or any(0 in each[-3:] for each in loop.strides):
            return None
        deep = tuple([each[-3] == 1 for each in loop.strides])
        if not any(deep):
            return None
        pitches = [stride for each in loop.strides if each[-3] == 1 for stride in (*each[:-3], *each[-2:])]
        return deep, 1 if any(stride % 4 for stride in pitches) else 4

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule | None:
        """Every elementwise spec of elements below 16 bytes."""
        if spec.widest not in DEPTH or spec.places or spec.combines or any(node[0] not in NODES for node in spec.nodes):
            return None
        return cls(spec, Tile(ROWS, COLUMNS, WARPS))

    @property
    def depth(self) -> int:
        """Elements along the first axis of a box."""
        return DEPTH[self.spec.widest]

    # ------------------------------------------------------------------ the kernel

    def programs(self) -> str:
        """Return the number of boxes."""
        sizes = (self.depth, self.tile.rows, self.tile.columns)
        first = self.spec.rank - 3
        return " * ".join(
            [*[f"n{axis}" for axis in range(first)], *[f"-(-n{first + k} // {size})" for k, size in enumerate(sizes)]]
        )

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the size of a box."""
        return ("DEPTH", self.depth), ("ROWS", self.tile.rows), ("COLUMNS", self.tile.columns)

    def setup(self) -> list[str]:
        """Return the lines that find the box of a program, and name its elements."""
        first = self.spec.rank - 3
        lines = [f"program = {self.program()}"]
        for axis, size in ((first + 2, "COLUMNS"), (first + 1, "ROWS"), (first, "DEPTH")):
            count = f"tl.cdiv(n{axis}, {size})"
            lines += [f"first_{size.lower()} = program % {count} * {size}", f"program = program // {count}"]
        lines += divided_out("program", range(first))
        for operand in self.spec.arrays if first else ():
            terms = [f"i{axis} * {operand.name}_s{axis}" for axis in range(first)]
            lines.append(f"{operand.name} += {' + '.join(terms)}")
        return [
            *lines,
            "deep = (first_depth + tl.arange(0, DEPTH))[:, None, None]",
            "row = (first_rows + tl.arange(0, ROWS))[None, :, None]",
            "column = (first_columns + tl.arange(0, COLUMNS))[None, None, :]",
            f"inside = (deep < n{first}) & (row < n{first + 1}) & (column < n{first + 2})",
        ]

    def arms(self) -> list[Arm]:
        """Whole boxes, and those at the edges."""
        names = zip(("depth", "rows", "columns"), ("DEPTH", "ROWS", "COLUMNS"), strict=True)
        first = self.spec.rank - 3
        whole = [f"(first_{name} + {size} <= n{first + k})" for k, (name, size) in enumerate(names)]
        return [Arm(" & ".join(whole), Branch(None)), Arm(None, Branch("inside"))]

    def open_strides(self) -> list[tuple[str, int, int]]:
        """Return the strides that are arguments, without those that are known to be 1."""
        first, arrays = self.spec.rank - 3, self.spec.arrays
        return [each for each in super().open_strides() if each[2] != first or not self.deep[arrays[each[1]].name]]

    def stride_divisor(self, operand: Operand) -> int:
        """Strides of arrays that are dense along the first axis of a box may be multiples of 4."""
        return self.pitch if self.deep[operand.name] else super().stride_divisor(operand)

    def known_strides(self) -> list[str]:
        """Name the arrays that are dense along the first axis of a box, and their other strides."""
        deep = " ".join(name for name, is_deep in self.deep.items() if is_deep)
        return [*super().known_strides(), f"{deep} dense along the last axis but two, others multiples of {self.pitch}"]

    # ------------------------------------------------------------------ where elements lie

    def index(self, operand: Operand, branch: Branch) -> str:
        """Return the indices along the three axes times their strides."""
        axis, (row, column) = self.spec.rank - 3, operand.last_two
        deep = term("deep", 1 if self.deep[operand.name] else "other", f"{operand.name}_s{axis}")
        rows = term(branch.row, row, f"{operand.name}_s{axis + 1}")
        return added(deep, rows, term(branch.column, column, f"{operand.name}_s{axis + 2}"))

    def zeros(self, branch: Branch) -> str:
        """Return a zero for each element of a box."""
        return "deep * 0 + row * 0 + column * 0"

    def guard(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return the mask of a box."""
        return f", mask={branch.mask}" if branch.mask else ""
