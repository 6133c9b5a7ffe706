"""Led rows: long rows of one array that begin at no vector, as in ``sum(a[:, 1:], axis=1)``.

A program reads its row in vectors, from the line of memory on in which the row begins. So lanes hold their elements
`lead` places further, and are rotated back before they are combined: the order stays.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.hardware import LINE, VECTOR
from tilearray_cuda.kernels.schedules.addressing import Branch, added, term
from tilearray_cuda.kernels.schedules.reduce import WARP, WARP_BYTES, Reduce, blocks, values_of
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.spec import KernelSpec, Operand
from tilearray_cuda.kernels.storage import STORAGE

FEWEST_WARPS, THREAD = 4, 8
"""The least warps of a row if each thread has a vector, and the most elements of a thread that are no vector: more
would fill the registers."""
MEASURED = {
    ("bfloat16", 1, 512): (4, 0),
    ("float32", 1, 2048): (4, 4),
    ("float32", 2, 512): (8, 0),
    ("complex64", 1, 1024): (4, 3),
}
"""Other warps, and the steps in flight by asynchronous copies, by dtype, by the values of a lane, of which 2 are
several, and by columns. On an H100 sums of rows of 16385 bfloat16 read at 0.995 of a copy's rate so instead of 0.933,
of as many complex64 at 0.996 instead of 0.874, of all float32 but the first at 0.983 instead of 0.973, and variances of
those at 0.981 instead of 0.956."""
EXTREMES = {("float32", 1, 2048): (8, 3)}
"""The same of extremes, if they differ: on an H100 the largest of all float32 but the first is found at 0.989 of a
copy's rate so, and at 0.959 by the warps and steps of sums."""
BETWEEN = (1, 2, 8)
"""The itemsizes of arrays at vectors whose rows may begin between them; words are read as fast one by one."""
NODES = ("gather", "guarded", "report", "distance")
"""The nodes whose elements lie elsewhere."""


class LedRows(Reduce):
    """A row a program, read in vectors.

    Attributes
    ----------
    led : the array that is read
    """

    cases = ("reduce_rows",)
    serves_all = False
    has_head = True

    def __init__(self, spec: KernelSpec, tile: Tile) -> None:
        super().__init__(spec, tile)
        self.led = _along(spec)[0]

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule | None:
        """Specs of one array along the rows, and long rows without slower reduced axes."""
        along = _along(spec)
        if len(along) != 1 or not _is_led(spec, along[0]) or spec.outputs_beside or spec.has_node(*NODES):
            return None
        if _multiplies_complex(spec):
            return None
        found = Reduce.fits(spec, facts, arch)
        assert isinstance(found, Reduce)
        columns, itemsize, dtype = found.tile.columns, along[0].itemsize, along[0].dtype
        if found.groups > 1 or found.outer or columns * itemsize < WARP_BYTES or found.tile.rows > 1:
            return None
        vectors, most = columns * itemsize // WARP_BYTES, max(THREAD, VECTOR // itemsize)
        fewest = max(min(FEWEST_WARPS, vectors), columns // (most * WARP))
        key = dtype, min(values_of(spec), 2), columns
        measured = EXTREMES if key in EXTREMES and _finds_extremes(spec) else MEASURED
        warps, stages = measured.get(key, (fewest, 0))
        return cls(spec, Tile(1, columns, warps, stages))

    # ------------------------------------------------------------------ the kernel

    def chunk_range(self) -> list[str]:
        """Also where the row begins: chunks are counted from there on."""
        name, (row, _), axis = self.led.name, self.led.last_two, self.spec.rank - 1
        first = term("first_row", row, f"{name}_s{axis - 1}")
        rest = "(last_chunk - first_chunk) * COLUMNS"
        return [
            *super().chunk_range(),
            "start = first_chunk * COLUMNS",
            f"{name} += {added(first, 'start')}",
            f"lead = lead_of({name}, {LINE})",
            f"{name} = tl.multiple_of({name} - lead, {LINE})",
            f"length = tl.where(last_chunk == {blocks(axis, 'COLUMNS')}, n{axis} - start, {rest}) + lead",
            f"first_chunk = 0 * n{axis}",
            "last_chunk = (length - 1) // COLUMNS + 1",
            "whole_chunks = tl.maximum(length // COLUMNS, 1)",
        ]

    def columns_of_chunk(self) -> list[str]:
        """Columns lie `lead` places before those that are read."""
        return ["led = chunk * COLUMNS + tl.arange(0, COLUMNS)[None, :]", "column = led + (start - lead)"]

    def in_columns(self) -> str:
        """The columns of the segment."""
        return "(led >= lead) & (led < length)"

    def ordered(self, names: list[str]) -> list[str]:
        """Lanes are rotated by `lead` within groups, one for each warp; the last lanes are the next group's first."""
        groups = self.tile.warps
        width = self.tile.columns // groups
        lines = [
            f"group = tl.expand_dims(tl.arange(0, {groups}), 1)",
            f"lane = tl.expand_dims(tl.arange(0, {width}), 0) + group * 0",
            f"group = (group + 1 + lane * 0) & {groups - 1}",
        ]
        for name in names:
            lines += [
                f"{name} = tl.gather(tl.reshape({name}, ({groups}, {width})), (lane + lead) & {width - 1}, 1)",
                f"{name} = tl.where(lane < {width} - lead, {name}, tl.gather({name}, group, 0))",
                f"{name} = tl.reshape({name}, (ROWS, COLUMNS))",
            ]
        return lines

    def index(self, operand: Operand, branch: Branch) -> str:
        """The array begins at its row already."""
        return "led" if operand is self.led else super().index(operand, branch)


def _along(spec: KernelSpec) -> list[Operand]:
    """Return the arrays that differ along the rows."""
    return [operand for operand in spec.operands[spec.outputs :] if operand.last_two[1] != 0]


def _multiplies_complex(spec: KernelSpec) -> bool:
    """Whether complex numbers are multiplied: a lane without an element by 1, which may change the sign of a zero."""
    reductions = [node for node in spec.nodes if node[0] == "reduce"]
    return any(how == "multiply" and STORAGE[dtypes[0]].kind == "complex" for _, how, _, dtypes in reductions)


def _finds_extremes(spec: KernelSpec) -> bool:
    """Whether all that is reduced is a largest or a smallest element."""
    return all(node[1] in ("maximum", "minimum") for node in spec.nodes if node[0] == "reduce")


def _is_led(spec: KernelSpec, operand: Operand) -> bool:
    """Whether an array is dense along its rows, and they begin at no multiple of a vector."""
    if operand.last_two[1] != 1 or operand.itemsize >= VECTOR:
        return False
    return not operand.aligned or (operand.itemsize in BETWEEN and spec.divisible * operand.itemsize < VECTOR)
