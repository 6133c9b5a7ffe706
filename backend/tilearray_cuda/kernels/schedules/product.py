"""Product: matrix products. A program has a block of the result and walks along the summed axis, block after block.

Blocks that share rows or columns run at about the same time, so that they find them in the L2 cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tilearray_cuda.kernels.schedules.addressing import Arm, Branch, added, term
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand

GROUP = 8
"""Blocks along the rows of the result that run at about the same time."""
LEAST = 16
"""The least rows, columns and depth of a block: those of a tensor core's operands."""
MOST = 256
DEEPEST = 128
"""The deepest step of a block."""


class Block(NamedTuple):
    """The rows and columns of the result that a program has, the depth of its steps, its warps, the steps in flight."""

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int


# the dtype that is multiplied -> blocks of large results; measured on an H200 (sm_90), but for wide integers, whose
# blocks are the largest that need no spilled registers
BLOCKS = {
    "int8": Block(128, 128, 128, 8, 3),
    "int32": Block(16, 32, 16, 4, 2),
    "int64": Block(16, 32, 16, 4, 2),
    "float16": Block(128, 256, 64, 8, 4),
    "bfloat16": Block(128, 256, 64, 8, 4),
    "float32": Block(64, 64, 16, 4, 4),
    "float64": Block(64, 128, 16, 4, 3),
}
UPRIGHT = Block(256, 128, 64, 8, 4)
"""The block of two-byte elements if x2 is dense along the summed axis; measured on an H200 (sm_90)."""
FEW = 132
"""With fewer blocks than a GPU has multiprocessors, blocks are smaller."""


class ProductFacts(NamedTuple):
    """What the code of a product depends on.

    Attributes
    ----------
    strides : for the result, x1 and x2 the strides along the two axes of their matrices, 1 or "other"
    divisible : 16, 8, 4, 2 or 1: what divides all other strides, also those of stacks
    rows, columns : the powers of two that hold the matrix's rows and columns, from `LEAST` to `MOST`
    whole : whether these divide the rows and the columns, and `DEEPEST` the summed axis
    few : whether blocks of 128 by 128 are fewer than multiprocessors
    """

    strides: tuple[tuple[int | str, int | str], ...]
    divisible: int
    rows: int
    columns: int
    whole: tuple[bool, bool, bool]
    few: bool


class Product(Schedule):
    """Blocks of the result.

    Attributes
    ----------
    block : the sizes
    """

    cases = ("product",)
    serves_all = True

    def __init__(self, spec: KernelSpec, block: Block) -> None:
        super().__init__(spec, Tile(block.rows, block.columns, block.warps, block.stages))
        self.block = block
        facts: Any = spec.facts[0]
        self.facts_of_loop = ProductFacts(*facts)
        self.stacks = spec.rank - 3

    @staticmethod
    def facts(loop: Any) -> tuple[Any, ...]:
        """The strides of the matrices, what divides the others, and the sizes of small matrices."""
        *stacks, rows, columns, depth = loop.shape
        classes: list[tuple[int | str, int | str]] = []
        others = 0
        for axes, steps in zip(_AXES, loop.strides, strict=True):
            classes.append(tuple(["other" if steps[axis] != 1 else 1 for axis in axes]))  # type: ignore[arg-type]
            for step in steps[: len(stacks)]:
                others |= step
            for axis in axes:
                others |= steps[axis] if steps[axis] != 1 else 0
        divisible = next(power for power in (16, 8, 4, 2, 1) if not others % power)
        powers = [max(LEAST, min(MOST, 1 << (extent - 1).bit_length())) for extent in (rows, columns)]
        whole = (rows % powers[0] == 0, columns % powers[1] == 0, depth % DEEPEST == 0)
        blocks = -(-rows // 128) * -(-columns // 128)
        for extent in stacks:
            blocks *= extent
        return ProductFacts(tuple(classes), divisible, powers[0], powers[1], whole, blocks < FEW)

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule:
        """Every spec; blocks are no larger than small matrices, and small where there are few."""
        del arch
        known = ProductFacts(*facts)
        dtype = multiplied(spec)
        is_upright = known.strides[2][0] == 1 and known.strides[2][1] != 1
        block = UPRIGHT if is_upright and dtype in ("float16", "bfloat16") else BLOCKS[dtype]
        if known.few:
            block = block._replace(rows=min(block.rows, 64), columns=min(block.columns, 64), warps=4)
        block = block._replace(rows=min(block.rows, known.rows), columns=min(block.columns, known.columns))
        if block.rows * block.columns <= 32 * 64:
            block = block._replace(warps=min(block.warps, 4))
        return cls(spec, block)

    def resized(self, tile: Tile) -> Schedule:
        """Return the same schedule with another tile, and the same depth."""
        return Product(self.spec, Block(tile.rows, tile.columns, self.block.depth, tile.warps, tile.stages))

    # ------------------------------------------------------------------ the kernel

    def programs(self) -> str:
        """Return the number of blocks."""
        rows, columns, _ = self.extents
        stacks = "".join(f" * n{axis}" for axis in range(self.stacks))
        return f"-(-{rows} // {self.block.rows}) * -(-{columns} // {self.block.columns}){stacks}"

    @property
    def has_units(self) -> bool:
        """Whether the hardware multiplies blocks: of floats and bytes."""
        return multiplied(self.spec) not in ("int32", "int64")

    @property
    def extents(self) -> list[str]:
        """The names of the rows, the columns and the size of the summed axis."""
        return [f"n{self.stacks + axis}" for axis in range(3)]

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the sizes of a block."""
        return ("ROWS", self.block.rows), ("COLUMNS", self.block.columns), ("DEPTH", self.block.depth)

    def setup(self) -> list[str]:
        """Return the lines that find a program's matrices, and its block of the result."""
        rows, columns, _ = self.extents
        lines = [
            f"program = {self.program()}",
            f"high = ({rows} + ROWS - 1) // ROWS",
            f"wide = ({columns} + COLUMNS - 1) // COLUMNS",
            "place = program % (high * wide)",
            f"first = place // ({GROUP} * wide) * {GROUP}",
            f"group = tl.minimum(high - first, {GROUP})",
            f"row = (first + place % ({GROUP} * wide) % group) * ROWS + tl.arange(0, ROWS)",
            f"column = place % ({GROUP} * wide) // group * COLUMNS + tl.arange(0, COLUMNS)",
        ]
        if self.stacks:
            lines.append("stack = program // (high * wide)")
        for axis in reversed(range(self.stacks)):
            lines += [f"i{axis} = stack % n{axis}", f"stack = stack // n{axis}"]
        for operand in self.spec.operands:
            steps = [f"i{axis} * {operand.name}_s{axis}" for axis in range(self.stacks)]
            lines.append(f"{operand.name}_at = {added(operand.name, *steps)}")
        return lines

    def arms(self) -> list[Arm]:
        """One arm: masks are part of it where sizes are not known to be whole."""
        return [Arm(None, Branch("inside"))]

    def open_strides(self) -> list[tuple[str, int, int]]:
        """Return the strides of stacks, and those of matrices that are not 1."""
        found: list[tuple[str, int, int]] = []
        for position, operand in enumerate(self.spec.operands):
            found += [(f"{operand.name}_s{axis}", position, axis) for axis in range(self.stacks)]
            for place, axis in enumerate(_AXES[position]):
                if self.facts_of_loop.strides[position][place] != 1:
                    found.append((f"{operand.name}_s{self.stacks + 3 + axis}", position, self.stacks + 3 + axis))
        return found

    def stride_divisor(self, operand: Operand) -> int:
        """Return what divides the strides that are arguments."""
        del operand
        return self.facts_of_loop.divisible

    def known_strides(self) -> list[str]:
        """Return the heading's words on `stride_divisor`."""
        return [f"strides that are arguments are multiples of {self.facts_of_loop.divisible}"]

    # ------------------------------------------------------------------ loads and stores

    def index(self, operand: Operand, branch: Branch) -> str:
        """Return the place of elements in an array's matrix."""
        del branch
        position = self.spec.operands.index(operand)
        names = (("row[:, None]", "column[None, :]"), ("row[:, None]", "depth[None, :]"))[position == 1]
        if position == 2:
            names = ("depth[:, None]", "column[None, :]")
        steps = zip(names, self.facts_of_loop.strides[position], _AXES[position], strict=True)
        return added(*[term(name, step, f"{operand.name}_s{self.stacks + 3 + axis}") for name, step, axis in steps])

    def address(self, operand: Operand, branch: Branch, place: str) -> str:
        """Return the addresses of elements: in the matrix of the program's stack."""
        del place
        return f"{operand.name}_at + {self.index(operand, branch)}"

    def guard(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return the mask of what may reach beyond a matrix; what is read there is 0."""
        del branch, place
        rows, columns, depth = self.extents
        row, column, step = self.facts_of_loop.whole
        parts = {
            "row": "" if row else f"(row < {rows})[:, None]",
            "column": "" if column else f"(column < {columns})[None, :]",
        }
        position = self.spec.operands.index(operand)
        along = f"(depth < {depth})" + ("[None, :]" if position == 1 else "[:, None]")
        masks = [parts["row"] if position < 2 else "", parts["column"] if position != 1 else ""]
        mask = " & ".join(part for part in [*masks, "" if step or not position else along] if part)
        return (f", mask={mask}" + (", other=0" if position else "")) if mask else ""


_AXES = ((-3, -2), (-3, -1), (-1, -2))
"""The axes of a loop that are rows and columns of the result's matrix, and of both operands'."""


def multiplied(spec: KernelSpec) -> str:
    """Return the dtype of the elements that are multiplied."""
    nodes: tuple[Any, ...] = spec.nodes
    (left, *_) = next(node[1:] for node in nodes if node[0] == "product")
    kind, argument, *names = nodes[left]
    return names[0] if kind == "cast" else spec.operands[spec.outputs + argument].dtype
