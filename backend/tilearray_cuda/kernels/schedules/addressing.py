"""Where the elements of a block lie, as text: the columns of tiles, and indices of operands."""

from __future__ import annotations

from typing import NamedTuple

from tilearray_cuda.kernels.spec import FLAT_CASES, TILE_CASES, VECTOR, WORD, KernelSpec, Operand
from tilearray_cuda.kernels.storage import ITEMSIZE


class Branch(NamedTuple):
    """One of the branches of a kernel, each of which has the body.

    Attributes
    ----------
    mask : what is inside, by name; "tile" for the masks of a tile; None where all is
    row, column, position : the names of the place; a flat kernel counts positions
    tag : what the names of values end in; two branches of one name must agree in type
    two_rows : whether the block reaches from one row into the next
    """

    mask: str | None
    row: str = "row"
    column: str = "column"
    position: str = "index"
    tag: str = ""
    two_rows: bool = False

    @property
    def everywhere(self) -> str | None:
        """The mask of a whole block, or None."""
        return "(in_rows & in_columns)" if self.mask == "tile" else self.mask


def columns_of(spec: KernelSpec, tag: str = "") -> list[str]:
    """Lines that name the columns of a tile. Those of a slanted one are the rows' own."""
    out, merged, last = spec.operands[0].name, spec.rank - 3, spec.rank - 1
    if spec.slanted:
        return [
            f"lead{tag} = lead_of({out} + row{tag} * {out}_s{spec.rank - 2} + first_column, {spec.slanted})",
            f"column{tag} = first_column - lead{tag} + tl.arange(0, COLUMNS)[None, :]",
        ]
    lines = ["column = (first_column + tl.arange(0, COLUMNS))[None, :]"]
    if any(is_turned(spec, operand) for operand in spec.arrays):
        lines.append("four = (first_column + 4 * tl.arange(0, COLUMNS // 4))[None, :]  # the first of 4 columns each")
    for name in ("column", "four")[: len(lines)] if spec.merged else ():
        lines += [f"{name}_i{merged} = {name} // n{last}", f"{name}_inner = {name} - {name}_i{merged} * n{last}"]
    return [*lines, *_rows_of_hanging(spec)] if spec.hanging else lines


def _rows_of_hanging(spec: KernelSpec) -> list[str]:
    """Lines that name by how many rows too early the columns of a hanging tile begin, and their rows.

    Along the last axis, a multiple of 16, columns begin alike.
    """
    row = f"tl.multiple_of(slot - rise, [{spec.rise_by}, 1])"
    lines = [f"rise = {_rise(spec, 'column')}", f"row = {f'tl.max_constancy({row}, [1, 16])' if spec.merged else row}"]
    if spec.operands[0].dtype != "complex128" or not spec.merged:
        return lines
    axis = spec.rank - 3
    return [
        *lines,
        "part = (2 * first_column + tl.arange(0, 2 * COLUMNS))[None, :]  # real and imaginary parts take turns",
        f"part_i{axis} = part // 2 // n{spec.rank - 1}",
        f"row_of_part = tl.max_constancy(slot - {_rise(spec, 'part')}, [1, 32])",
    ]


def _rise(spec: KernelSpec, column: str) -> str:
    """By how many rows a column begins too early: where a unit of what is read does."""
    turned, axis = spec.hung, spec.rank - 3
    is_pair = turned.dtype == "complex128"
    offset = f"{column}_i{axis} * {turned.name}_s{axis}"
    offset = f"2 * ({offset}).to(tl.int64)" if is_pair else offset
    rise = f"lead_of({turned.name}{f' + {offset}' if spec.merged else ''}, {spec.hanging})"
    return f"{rise} // 2" if is_pair else rise


def is_turned(spec: KernelSpec, operand: Operand) -> bool:
    """Whether an operand is bytes that lie along the other axis of a tile, and are read in words or vectors."""
    in_words = operand.aligned and spec.divisible % WORD == 0 and not spec.slanted
    return spec.case in TILE_CASES and operand.strides == (1, "other") and ITEMSIZE[operand.dtype] == 1 and in_words


def _flat_index(spec: KernelSpec, operand: Operand, branch: Branch) -> str:
    strides: tuple[int | str, ...] = operand.strides or (0, 0)
    if spec.case != "lookup":
        return term(branch.position, strides[0], f"{operand.name}_s0")
    if strides[0] == "extent":
        return branch.position
    row = term(branch.row, strides[0], f"{operand.name}_s0")
    return " + ".join(part for part in (row, term(branch.column, strides[1], f"{operand.name}_s1")) if part)


def _tile_index(spec: KernelSpec, operand: Operand, branch: Branch) -> str:
    terms = [
        term(branch.row, last_two(operand)[0], f"{operand.name}_s{spec.rank - 2}"),
        column_term(spec, operand, branch),
    ]
    return " + ".join(term for term in terms if term)


def column_term(spec: KernelSpec, operand: Operand, branch: Branch) -> str:
    """How far a column of a tile lies from the first."""
    column, name, axis = last_two(operand)[1], operand.name, spec.rank - 1
    if not spec.merged or column == 1:
        return term(branch.column, column, f"{name}_s{axis}")
    inner = term(f"{branch.column}_inner", column, f"{name}_s{axis}")
    return f"({branch.column}_i{axis - 2} * {name}_s{axis - 2}{f' + {inner}' if inner else ''})"


def last_two(operand: Operand) -> tuple[int | str, int | str]:
    row, column = operand.strides or (0, 0)
    return row, column


def _tile_mask(spec: KernelSpec, operand: Operand) -> str | None:
    row, column = last_two(operand)
    parts = (["in_rows"] if row != 0 else []) + (["in_columns"] if column != 0 or spec.merged else [])
    return " & ".join(parts) or None


def term(index: str, stride: int | str, name: str) -> str:
    """``index * stride``, or nothing."""
    return {0: "", 1: index, -1: f"(0 - {index})"}.get(stride, f"{index} * {name}")  # type: ignore[arg-type]


def index_of(spec: KernelSpec, operand: Operand, branch: Branch, place: str) -> str:
    """How many elements further than its first one an operand's elements lie; nothing where all lie there.

    Where a value says how far from its place an element lies, there is one index for each element of the block.
    """
    index = _flat_index(spec, operand, branch) if spec.case in FLAT_CASES else _tile_index(spec, operand, branch)
    return " + ".join(part for part in (index, place, block_of(spec, branch)) if part) if place else index


def block_of(spec: KernelSpec, branch: Branch) -> str:
    """A zero for each element of a block."""
    return f"{branch.position} * 0" if spec.case in FLAT_CASES else f"{branch.row} * 0 + {branch.column} * 0"


def address_of(spec: KernelSpec, operand: Operand, branch: Branch, place: str) -> str:
    """The addresses of an operand's elements."""
    index = index_of(spec, operand, branch, place)
    if spec.hanging:
        return _hanging_address(spec, operand, branch, index)
    return f"{operand.name} + {index}" if index else operand.name


def _hanging_address(spec: KernelSpec, operand: Operand, branch: Branch, index: str) -> str:
    """Columns that begin where units do, and vectors of a row."""
    if operand is spec.hung:
        column = f"{operand.name} + ({column_term(spec, operand, branch)} - rise)"
        return f"tl.multiple_of({column}, [{spec.hanging}, {spec.hanging}]) + slot"
    alike = f"[1, {VECTOR // ITEMSIZE[operand.dtype]}]"
    return f"{operand.name} + tl.max_contiguous(tl.multiple_of({index}, {alike}), {alike})"


def arguments_of_parts(spec: KernelSpec, operand: Operand, branch: Branch) -> str:
    """Arguments of the functions that write parts of complex128 where columns begin at rows of their own."""
    offset = f"2 * (row_of_part * {operand.name}_s{spec.rank - 2}).to(tl.int64) + part, COLUMNS"
    inside = f"(row_of_part >= 0) & (row_of_part < n{spec.rank - 2}) & (part < 2 * columns)"
    return f"{offset}, {inside}" if branch.mask else offset


def pair_of(spec: KernelSpec, operand: Operand, branch: Branch, place: str) -> str:
    """The index of a complex128, of a block in every case: two float64 in memory, read and written as one vector."""
    index = index_of(spec, operand, branch, place)
    scalar = spec.case == "lookup" and "index" not in index and branch.column not in index
    return f"{index} + {block_of(spec, branch)}" if index and scalar else index or block_of(spec, branch)


def guard_of(spec: KernelSpec, operand: Operand, branch: Branch, place: str = "") -> str:
    if place:
        mask = branch.everywhere
    elif branch.mask == "tile":
        mask = _tile_mask(spec, operand)
    else:
        mask = branch.mask if any(operand.strides or ()) else None
    return f", mask={mask}" if mask else ""
