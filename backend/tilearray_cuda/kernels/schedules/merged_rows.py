"""Merged rows: tiles whose rows are two axes as one, where one of them fills tiles badly.

In ``a.permute_dims(4, 3, 2, 1, 0)`` of 40 columns, tiles of 64 rows would be masked, and smaller ones read short runs.
The transposed array goes on in another axis, so a tile has 64 of its neighbours. Other arrays look both indices up.
Programs go along the columns, then along the axes further out, then along the rows.

No array has an argument for a stride that it has only if its elements do not go on, so that one need not be even: on
an H100 four axes of 90, 200, 36 and 40 are reversed at 0.86 of a copy's rate, and at 0.75 in tiles of other rows.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.hardware import VECTOR, WORD
from tilearray_cuda.kernels.schedules.addressing import Branch, added, term
from tilearray_cuda.kernels.schedules.schedule import Schedule, Sizes, Tile
from tilearray_cuda.kernels.schedules.tile import TileFacts, Tiles, cut, may_merge
from tilearray_cuda.kernels.spec import KernelSpec, Operand

TILES: Sizes = {2: Tile(128, 128, 8), 4: Tile(64, 64, 4), 8: Tile(64, 32, 16)}
"""Measured on an H100. Bytes are transposed by fours, and parts of complex128 have rows of their own."""
BETWEEN = Tile(64, 128, 8)
"""The tile of 4-byte elements whose merged columns begin between sectors: on an H100 five axes of 18, 30, 26, 44 and 42
are reversed at 0.81 of a copy's rate so, and at 0.77 in tiles of 64 columns."""
NODES = ("coordinate", "gather", "guarded", "report")
"""The nodes that name indices, or elements that lie elsewhere."""


class MergedRows(Tiles):
    """Tiles whose rows are the last axis but one and a slower axis.

    Attributes
    ----------
    slow : the slower axis
    """

    serves_all = False
    rows_merged = True

    def __init__(self, spec: KernelSpec, tile: Tile, facts: TileFacts) -> None:
        super().__init__(spec, tile, facts)
        self.slow = facts.further[0]

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule | None:
        """Elementwise specs, if rows of transposed arrays go on in a slower axis."""
        if not facts.further or spec.places or spec.combines or spec.has_node(*NODES):
            return None
        if spec.narrowest not in TILES or spec.widest not in TILES or may_merge(spec, facts) != facts.merges:
            return None
        _, rows, begins_between = facts.further
        tile = BETWEEN if begins_between and spec.widest == WORD else TILES[spec.widest]
        columns = tile.columns if facts.merges else facts.fits[1]
        divisible = max(spec.divisible, min(4, VECTOR // spec.narrowest))
        return cls(spec._replace(divisible=divisible), cut(tile, rows, columns), facts)

    def open_strides(self) -> list[tuple[str, int, int]]:
        """Arrays that go on in a slower axis have no stride of it."""
        arrays = self.spec.arrays
        return [each for each in super().open_strides() if each[2] != self._goes_on_in(arrays[each[1]])]

    def _goes_on_in(self, operand: Operand) -> int | None:
        """Return the slower axis in which an array that is dense in rows or columns goes on."""
        row, column = operand.last_two
        return self.slow if row == 1 else self.spec.rank - 3 if column == 1 and self.merged else None

    @property
    def rows_extent(self) -> str:
        """The extent of both axes."""
        return "rows"

    @property
    def axes_further_out(self) -> list[int]:
        """The axes but those of rows and columns."""
        return [axis for axis in super().axes_further_out if axis != self.slow]

    def programs(self) -> str:
        """Return the number of tiles."""
        row, column = self.spec.rank - 2, self.spec.rank - 1
        columns = f"n{row - 1} * n{column}" if self.merged else f"n{column}"
        tiles = [f"-(-(n{self.slow} * n{row}) // {self.tile.rows})", f"-(-({columns}) // {self.tile.columns})"]
        return " * ".join([*[f"n{axis}" for axis in self.axes_further_out], *tiles])

    def setup(self) -> list[str]:
        """Return the lines that find the tile of a program, and name its rows and columns."""
        row, column = self.spec.rank - 2, self.spec.rank - 1
        return [
            f"rows = n{self.slow} * n{row}  # as one axis",
            *[f"columns = n{row - 1} * n{column}  # as one axis"] * self.merged,
            f"column_tiles = tl.cdiv({self.columns_extent}, COLUMNS)",
            f"program = {self.program()}",
            "first_column = (program % column_tiles) * COLUMNS",
            "program = program // column_tiles",
            *[line for axis in reversed(self.axes_further_out) for line in _taken(axis)],
            "first_row = program * ROWS",
            *self.further_out(),
            *self.rows(),
            *self.columns(),
        ]

    def rows(self) -> list[str]:
        """Return the lines that name the rows of a tile, and their indices."""
        outer, inner = f"row_i{self.slow}", f"n{self.spec.rank - 2}"
        return [*super().rows(), f"{outer} = row // {inner}", f"row_inner = row - {outer} * {inner}"]

    # ------------------------------------------------------------------ where elements lie

    def row_term(self, operand: Operand, branch: Branch) -> str:
        """Arrays that are dense along the rows go on; of others both indices are looked up."""
        stride, name = operand.last_two[0], operand.name
        if stride == 1:
            return super().row_term(operand, branch)
        inner = term("row_inner", stride, f"{name}_s{self.spec.rank - 2}")
        return f"({added(f'row_i{self.slow} * {name}_s{self.slow}', inner)})"


def _taken(axis: int) -> list[str]:
    """Return the lines that take an index from the number of a program."""
    return [f"i{axis} = program % n{axis}", f"program = program // n{axis}"]
