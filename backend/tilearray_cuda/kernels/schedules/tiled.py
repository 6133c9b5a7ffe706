"""Tiles over the last two axes: each program has ``ROWS`` by ``COLUMNS`` elements.

The axes further out are divided out of the program's number by scalar arithmetic. A tile inside both extents takes an
arm without masks. Programs go along the output's rows.
"""

from __future__ import annotations

from tilearray_cuda.kernels.hardware import VECTOR
from tilearray_cuda.kernels.schedules.addressing import Arm, Branch, added, divided_out, in_eighths, moved_along, term
from tilearray_cuda.kernels.schedules.schedule import Schedule
from tilearray_cuda.kernels.spec import KernelSpec, Operand

PARTS = {8: 2, 16: 8}
"""The number of parts of the rows from which tiles are taken in turn, by itemsize. Neighbouring rows of a transposed
array lie side by side: rows of 128 KiB were read at 0.92 to 0.96 of a copy's rate, depending on the array's address. In
parts they were read at 0.98."""


class Tiled(Schedule):
    """A schedule of tiles.

    Attributes
    ----------
    merged : whether the columns of tiles are the last axis and the last but two, as one
    rows_merged : whether the rows of tiles are two axes
    lead : columns before the first one that the first tile may have
    overlap : columns that a tile reads and the next one stores
    rise : rows before the first one that a column of the first tile may have
    """

    merged = False
    rows_merged = False
    lead = 0
    overlap = 0
    rise = 0

    @property
    def rows_extent(self) -> str:
        """The extent of a tile's rows, by name."""
        return f"n{self.spec.rank - 2}"

    @property
    def columns_extent(self) -> str:
        """The extent of a tile's columns, by name."""
        return "columns" if self.merged else f"n{self.spec.rank - 1}"

    @property
    def parts(self) -> int:
        """The number of parts that the rows are taken from in turn."""
        return PARTS.get(self.spec.widest, 1) if rows_are_aligned(self.spec) else 1

    def is_transposed_bytes(self, operand: Operand) -> bool:
        """Whether an array is bytes along the rows' axis that are read as words or vectors, and then transposed."""
        return False

    # ------------------------------------------------------------------ the kernel

    def programs(self) -> str:
        """Return the number of tiles."""
        *outer, rows, columns = (f"n{axis}" for axis in range(self.spec.rank))
        if self.merged:
            columns = f"({outer.pop()} * {columns})"
        tiles = [
            f"-(-({rows} + {self.rise}) // {self.tile.rows})",
            f"-(-({columns} + {self.lead}) // {self.tile.columns - self.overlap})",
        ]
        return " * ".join([*outer, *tiles])

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the size of a tile."""
        return ("ROWS", self.tile.rows), ("COLUMNS", self.tile.columns)

    def setup(self) -> list[str]:
        """Return the lines that find the tile of a program, and name its rows and columns."""
        return [*self._axes(), *self.rows(), *self.columns()]

    def _axes(self) -> list[str]:
        """Programs go along the output's rows; along the columns of what is transposed if those are two axes."""
        rank, outer = self.spec.rank, self.axes_further_out
        row, column, merged = rank - 2, rank - 1, rank - 3
        tiles = [
            ("column", f"{self.columns_extent} + {self.lead}" if self.lead else self.columns_extent, self.step),
            ("row", f"n{row} + {self.rise}" if self.rise else f"n{row}", "ROWS"),
        ]
        lines = [f"columns = n{merged} * n{column}  # as one axis"] if self.merged else []
        lines += [f"{name}_tiles = tl.cdiv({extent}, {step})" for name, extent, step in tiles]
        lines += [f"program = {self.program()}"]
        for name, _, step in reversed(tiles) if self.merged else tiles:
            tile = f"program % {name}_tiles"
            parts = self.parts if name == "row" else 1
            tile = f"tile_in_turn({tile}, {name}_tiles, {parts})" if parts > 1 else f"({tile})"
            lines += [f"first_{name} = {tile} * {step}", f"program = program // {name}_tiles"]
        return [*(lines if outer else lines[:-1]), *divided_out("program", outer), *self.further_out()]

    @property
    def axes_further_out(self) -> list[int]:
        """The axes that are divided out of a program's number."""
        return list(range(self.spec.rank - (3 if self.merged else 2)))

    def further_out(self) -> list[str]:
        """Return the lines that move arrays along these axes."""
        return moved_along(self.spec.arrays, self.axes_further_out)

    @property
    def step(self) -> str:
        """The column step between tiles."""
        return f"(COLUMNS - {self.overlap})" if self.overlap else "COLUMNS"

    def rows(self) -> list[str]:
        """Return the lines that name the rows of a tile."""
        return ["row = (first_row + tl.arange(0, ROWS))[:, None]"]

    def columns(self, tag: str = "") -> list[str]:
        """Return the lines that name the columns of a tile."""
        lines = ["column = (first_column + tl.arange(0, COLUMNS))[None, :]"]
        if any(map(self.is_transposed_bytes, self.spec.arrays)):
            four = "(first_column + 4 * tl.arange(0, COLUMNS // 4))[None, :]"
            lines.append(f"four = {four}  # the first of 4 columns each")
        outer, inner = f"i{self.spec.rank - 3}", f"n{self.spec.rank - 1}"
        for name in ("column", "four")[: len(lines)] if self.merged else ():
            lines += [f"{name}_{outer} = {name} // {inner}", f"{name}_inner = {name} - {name}_{outer} * {inner}"]
        return lines

    def arms(self) -> list[Arm]:
        """Whole tiles, and those at the edges."""
        return [Arm(self.inside(), Branch(None)), self.edge()]

    def inside(self) -> str:
        """Return the condition of a whole tile."""
        return f"(first_row + ROWS <= {self.rows_extent}) & (first_column + COLUMNS <= {self.columns_extent})"

    def edge(self) -> Arm:
        """Return the masked arm, in pieces if bytes are transposed; pairs of complex128 take a whole tile."""
        transposed = any(map(self.is_transposed_bytes, self.spec.arrays))
        in_columns = f"in_columns = column < {self.columns_extent}"
        if not transposed or any(operand.dtype == "complex128" for operand in self.spec.arrays):
            return Arm(None, Branch("tile"), (f"in_rows = {self.in_rows()}", in_columns))
        return Arm(
            None,
            Branch("tile", "row_of_piece", tag="_of_piece"),
            (in_columns,),
            in_eighths("ROWS"),
            (
                "row_of_piece = (first_row + piece + tl.arange(0, ROWS // 8))[:, None]",
                f"in_rows = row_of_piece < {self.rows_extent}",
            ),
        )

    def in_rows(self) -> str:
        """Return the mask of rows."""
        return f"row < {self.rows_extent}"

    # ------------------------------------------------------------------ where elements lie

    def index(self, operand: Operand, branch: Branch) -> str:
        """Return the row and the column times their strides."""
        return added(self.row_term(operand, branch), self.column_term(operand, branch))

    def row_term(self, operand: Operand, branch: Branch) -> str:
        """Return the distance of a row from the first one."""
        return term(branch.row, operand.last_two[0], f"{operand.name}_s{self.spec.rank - 2}")

    def column_term(self, operand: Operand, branch: Branch) -> str:
        """Return the distance of a column from the first one."""
        column, name, axis = operand.last_two[1], operand.name, self.spec.rank - 1
        if not self.merged or column == 1:
            return term(branch.column, column, f"{name}_s{axis}")
        outer = f"{branch.column}_i{axis - 2} * {name}_s{axis - 2}"
        return f"({added(outer, term(f'{branch.column}_inner', column, f'{name}_s{axis}'))})"

    def zeros(self, branch: Branch) -> str:
        """Return a zero for each row and column."""
        return f"{branch.row} * 0 + {branch.column} * 0"

    def guard(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return the masks of the axes along which elements differ."""
        mask = branch.everywhere
        if mask and not place:
            row, column = operand.last_two
            in_rows, in_columns = row != 0 or self.rows_merged, column != 0 or self.merged
            mask = " & ".join(["in_rows"] * in_rows + ["in_columns"] * in_columns)
        return f", mask={mask}" if mask else ""


def rows_are_aligned(spec: KernelSpec) -> bool:
    """Whether rows begin at multiples of 16 bytes, and of two elements, as far as strides say."""
    return spec.divisible > 1 and spec.divisible * spec.narrowest >= VECTOR
