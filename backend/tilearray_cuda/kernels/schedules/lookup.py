"""Lookup: two axes and a dense output. Blocks are flat over the output; rows and columns of the others are looked up.

If rows are narrow, each element's row and column come from one division. Else a block is no longer than a row. Within a
row it reads a column once and a row in vectors. Over the end of a row it reads two rows; of small unaligned elements,
the one vector that has elements of both rows is a piece of its own. The last block is masked.

If all that is read is repeated (an outer sum), a kernel writes much more than it reads: small elements are written by
streaming stores, which leave the L2 cache alone, and byte blocks are larger, because an H200 starts a program each
0.6 ns and writes 2048 bytes in that time.
"""

from __future__ import annotations

from math import prod
from typing import Any

from tilearray_cuda.kernels.hardware import SMALL, VECTOR
from tilearray_cuda.kernels.schedules import extents
from tilearray_cuda.kernels.schedules.addressing import Arm, Branch, added, in_eighths, term
from tilearray_cuda.kernels.schedules.linear import Linear, by_words, heavy, reads_runs
from tilearray_cuda.kernels.schedules.schedule import PIECE, Schedule, Sizes, Tile, tile_for
from tilearray_cuda.kernels.spec import KernelSpec, Operand

_SIZES: Sizes = {1: Tile(1, 2048, 4), 2: Tile(1, 2048, 4), 4: Tile(1, 1024, 4), 8: Tile(1, 512, 4), 16: Tile(1, 256, 4)}

# first architecture -> kind -> tiles, measured on an H200 (sm_90)
SIZES = {
    80: {
        "lookup": _SIZES,
        "outer": {**_SIZES, 1: Tile(1, 4096, 2)},
        "lookup heavy": heavy(_SIZES),
        "lookup by words": by_words(_SIZES),
        "gathered rows": {**_SIZES, 2: Tile(1, 1024, 4)},
    }
}

STRADDLED = "in_one_row"
"""The mask of the elements of a block of two rows that are stored as vectors: not the vector with elements of both."""


LookupFacts = tuple[int, tuple[bool, ...]]
"""The longest block within a row, 1 if rows are narrow; and for each array, whether it is dense like the output."""


class Lookup(Linear):
    """Blocks of a dense output, with a row and a column for each element."""

    cases = ("broadcast", "rows")
    serves_all = True

    def __init__(self, spec: KernelSpec, tile: Tile, longest: int) -> None:
        super().__init__(spec, tile)
        self.longest = longest

    @staticmethod
    def facts(loop: Any) -> LookupFacts | None:
        """Loops that broadcast rows and columns, and others whose output is dense and whose rows are not narrow.

        >>> from types import SimpleNamespace
        >>> Lookup.facts(SimpleNamespace(shape=(900, 1500), strides=((1500, 1), (1504, 1))))
        (1024, (True, False))
        """
        shape, strides = loop.shape, loop.strides
        columns = shape[-1]
        dense = (columns, 1)
        if strides[0] != dense or (columns < extents.NARROW and loop.case != "broadcast"):
            return None
        longest = 1
        if columns >= extents.NARROW:
            longest = min(1 << (columns.bit_length() - 1), 8192) if prod(shape) >= extents.LARGE else extents.NARROW
        return longest, tuple([each == dense for each in strides])

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule:
        """Every spec; blocks are no longer than a row, unless rows are narrow."""
        longest, dense = facts
        spec = _with_extents(spec, dense)
        kind = "outer" if _repeats(spec) else "lookup heavy" if spec.is_heavy else "lookup"
        itemsize = spec.widest
        if longest > 1 and _gathers_rows(spec):
            kind, itemsize = "gathered rows", spec.operands[0].itemsize
        elif longest > 1 and reads_runs(spec):
            spec, kind = spec.by_words(), "lookup by words"
        tile = tile_for(SIZES, arch, kind, itemsize)
        if longest > 1:
            tile = tile._replace(columns=min(tile.columns, longest))
        return cls(spec, tile, longest)

    @property
    def case(self) -> str:
        """Kernels of both cases look up their rows."""
        return "lookup"

    @property
    def streams(self) -> bool:
        """Whether stored elements need not stay in the L2 cache: small ones, written and hardly read."""
        return _repeats(self.spec) and self.spec.operands[0].itemsize <= SMALL

    def extent_divisor(self, axis: int) -> int:
        """The extent of a dense output's rows is its pitch."""
        return self.spec.divisible if axis == 1 else 1

    # ------------------------------------------------------------------ the kernel

    def setup(self) -> list[str]:
        """Return the lines that find a block's row and column. Loads wait for them: unsigned division is faster."""
        lines = ["size = n0 * n1", f"start = {self.program()} * BLOCK", "index = start + tl.arange(0, BLOCK)"]
        if self.longest == 1:
            return [*lines, "row = index // n1", "column = index - row * n1"]
        bits = self.spec.index_bits
        return [
            *lines,
            f"first_row = (start.to(tl.uint{bits}) // n1.to(tl.uint{bits})).to(tl.int{bits})",
            "first_column = start - first_row * n1",
        ]

    def arms(self) -> list[Arm]:
        """Blocks in one row, in two rows, and the last one."""
        whole = "start <= size - BLOCK"
        if self.longest == 1:
            return [Arm(whole, Branch(None)), Arm(None, Branch("inside"), ("inside = index < size",))]
        in_row = ("in_row = first_column + tl.arange(0, BLOCK)",)
        return [
            Arm("first_column <= n1 - BLOCK", Branch(None, "first_row", "in_row", tag="_of_row"), in_row),
            self._over_rows(whole),
            self._end(),
        ]

    def _over_rows(self, condition: str) -> Arm:
        """A block that reaches into the next row.

        Vectors of small elements that lie in one row are read and stored as such; the one that lies in both rows is
        read and stored in a piece.
        """
        if not self.spec.unaligned or self.spec.operands[0].itemsize > SMALL:
            return Arm(condition, Branch(None, two_rows=True), tuple(_two_rows()))
        lines = (
            f"vector = first_column + tl.arange(0, BLOCK) // {VECTOR} * {VECTOR}",
            f"wraps = vector > n1 - {VECTOR}",
            f"{STRADDLED} = (vector >= n1) | (vector <= n1 - {VECTOR})",
            "row = first_row + wraps",
            "column = first_column + tl.arange(0, BLOCK)",
            "column = tl.where(wraps, tl.maximum(column - n1, 0), column)",
        )
        first = f"straddling = (n1 - first_column) // {VECTOR} * {VECTOR}"
        branch, each = _piece("straddling", str(VECTOR), "first_column + straddling < n1")
        return Arm(condition, Branch(STRADDLED, two_rows=True), lines, between=Arm(None, branch, (first, *each)))

    def _end(self) -> Arm:
        """The masked arm, in pieces if a thread has many elements."""
        if not self.spec.unaligned or self.tile.of_a_thread <= PIECE:
            return Arm(None, Branch("inside", two_rows=True), ("inside = index < size", *_two_rows()))
        branch, each = _piece("piece", "BLOCK // 8", "index_of_piece < size")
        return Arm(None, branch, pieces=in_eighths("BLOCK"), each=each)

    # ------------------------------------------------------------------ loads and stores

    def index(self, operand: Operand, branch: Branch) -> str:
        """Return the position in a dense array, else the row and the column times their strides."""
        row, column = operand.last_two
        if row == "extent":
            return branch.position
        return added(term(branch.row, row, f"{operand.name}_s0"), term(branch.column, column, f"{operand.name}_s1"))

    def pair(self, operand: Operand, branch: Branch, place: str) -> str:
        """Return the index of a block, also if the block has one element of a column."""
        index = self.placed_index(operand, branch, place)
        scalar = "index" not in index and branch.column not in index
        return f"{index} + {self.zeros(branch)}" if index and scalar else index or self.zeros(branch)

    def load(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """A column of two rows is two elements; small elements of unaligned rows are read in vectors."""
        if not place and branch.two_rows and operand.last_two[1] == 0 != operand.last_two[0]:
            return _column(operand, branch)
        run = None if place else self._run(operand, branch)
        return run or super().load(operand, branch, place)

    def _run(self, operand: Operand, branch: Branch) -> str | None:
        """Return the load of small elements that lie in a run at an unaligned address, maybe reversed; else None.

        Where only the elements of one row are stored, a run goes on in the next row.
        """
        row, step = operand.last_two
        known = branch.mask in (None, STRADDLED) and self.longest > 1
        if not known or step not in (1, -1) or operand.itemsize > SMALL:
            return None
        name, sign, in_vectors = operand.name, "+" if step == 1 else "-", operand.aligned and step == 1
        if row == "extent":
            return None if in_vectors else f"load_run({name} {sign} start, {step}, BLOCK)"
        if (in_vectors and self.spec.divisible > 1) or (branch.two_rows and branch.mask is None):
            return None
        first, second = (added(name, term(each, row, f"{name}_s0")) for each in ("first_row", "(first_row + 1)"))
        if branch.two_rows:
            return f"load_rows({first}, {second}, first_column, n1, {step}, BLOCK)"
        return f"load_run({first} {sign} first_column, {step}, BLOCK)"

    def store(self, operand: Operand, value: str, branch: Branch, place: str = "") -> str:
        """Elements that need not stay in the L2 cache are stored past it."""
        streamed = ', cache_modifier=".cs"' if self.streams else ""
        return (
            f"tl.store({self.address(operand, branch, place)}, {value}{self.guard(operand, branch, place)}{streamed})"
        )


def _with_extents(spec: KernelSpec, dense: tuple[bool, ...]) -> KernelSpec:
    """Name the rows of arrays that are dense like the output by the extent, which is no argument of its own."""
    is_dense = iter(dense)
    operands = [
        operand._replace(strides=("extent", 1)) if operand.strides is not None and next(is_dense) else operand
        for operand in spec.operands
    ]
    return spec._replace(operands=tuple(operands))


def _gathers_rows(spec: KernelSpec) -> bool:
    """Whether a kernel gathers, and arrays of wider elements than the result, as indices, have one for each row."""
    itemsize = spec.operands[0].itemsize
    return spec.has_node("gather") and all(
        operand.last_two[1] == 0 for operand in spec.arrays if operand.itemsize > itemsize
    )


def _repeats(spec: KernelSpec) -> bool:
    """Whether a kernel reads nothing but rows, columns and elements that are repeated: it writes much more."""
    repeated = all(0 in (operand.strides or ()) for operand in spec.arrays[spec.outputs :])
    return repeated and not spec.places and not spec.has_node("gather", "guarded")


def _two_rows(tag: str = "", elements: str = "tl.arange(0, BLOCK)") -> list[str]:
    row, column, wraps = f"row{tag}", f"column{tag}", f"wraps{tag}"
    return [
        f"{column} = first_column + {elements}",
        f"{wraps} = {column} >= n1  # a block is no longer than a row, so it reaches into the next one at most",
        f"{row} = first_row + {wraps}",
        f"{column} = tl.where({wraps}, {column} - n1, {column})",
    ]


def _piece(first: str, count: str, inside: str) -> tuple[Branch, tuple[str, ...]]:
    """Return a masked branch for `count` elements from the one named `first`, which ends all names; and its lines."""
    mask, tag = f"in_{first}", f"_of_{first}"
    branch = Branch(mask, f"row{tag}", f"column{tag}", f"index{tag}", tag, two_rows=True)
    return branch, (
        f"index{tag} = start + {first} + tl.arange(0, {count})",
        f"{mask} = {inside}",
        *_two_rows(tag, f"{first} + tl.arange(0, {count})"),
    )


def _column(operand: Operand, branch: Branch) -> str:
    """Return an element for each of the two rows of a block, if there is a second."""
    first, second = (term(row, operand.last_two[0], f"{operand.name}_s0") for row in ("first_row", "(first_row + 1)"))
    other = f"tl.load({operand.name} + {second}, mask=first_row + 1 < n0)"
    return f"tl.where(wraps{branch.tag}, {other}, tl.load({operand.name} + {first}))"
