"""Skewed rows: tiles whose rows begin at columns of their own, where units of the output do.

If rows may begin anywhere, small elements are read and written as words, and one transposed array of words is written
in whole sectors. The first tile and the last of a row are masked, so this needs large tiles. Transposed elements must
not be larger than the output's. Tiles of sectors overlap: a tile reads columns of a sector that the next one stores.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.hardware import SECTOR, SMALL, VECTOR, WORD
from tilearray_cuda.kernels.schedules.addressing import Arm, Branch, added, in_eighths, term
from tilearray_cuda.kernels.schedules.schedule import Schedule, Sizes, Tile, tile_for
from tilearray_cuda.kernels.schedules.tile import TileFacts, Tiles, cut, may_merge
from tilearray_cuda.kernels.spec import KernelSpec, Operand

_SIZES: Sizes = {1: Tile(128, 64, 4), 2: Tile(64, 64, 8), 4: Tile(64, 128, 8), 8: Tile(64, 64, 8), 16: Tile(32, 64, 8)}

# first architecture -> kind -> tiles, measured on an H200 (sm_90); registers are the limit
SIZES = {
    80: {
        "skewed rows": _SIZES,
        "skewed rows copied": {**_SIZES, 1: Tile(64, 256, 4), 2: Tile(64, 128, 4), 4: Tile(128, 64, 8)},
    }
}


class SkewedRows(Tiles):
    """Tiles whose rows begin at words or sectors of the output."""

    serves_all = False

    def __init__(self, spec: KernelSpec, tile: Tile, facts: TileFacts, unit: int) -> None:
        super().__init__(spec, tile, facts)
        self.unit = unit
        self.lead = unit // spec.operands[0].itemsize - 1
        self.overlap = SECTOR // WORD if unit == SECTOR else 0

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule | None:
        """Specs of one dense result, in large tiles, if rows may begin between units."""
        unit = 0 if may_merge(spec, facts) or not min(facts.fits) >= 64 < max(facts.fits) else _unit(spec)
        if not unit:
            return None
        tile = tile_for(SIZES, arch, "skewed rows copied" if spec.copies else "skewed rows", spec.widest)
        return cls(spec, cut(tile, *facts.fits), facts, unit)

    @property
    def parts(self) -> int:
        """Rows are taken in order."""
        return 1

    def is_transposed_bytes(self, operand: Operand) -> bool:
        """Bytes are read in words of another kind."""
        return False

    def dense_axis(self, operand: Operand) -> int | None:
        """Pairs have an address each."""
        return None

    def columns(self, tag: str = "") -> list[str]:
        """Each row has columns of its own."""
        out = self.spec.operands[0].name
        return [
            f"lead{tag} = lead_of({out} + row{tag} * {out}_s{self.spec.rank - 2} + first_column, {self.unit})",
            f"column{tag} = first_column - lead{tag} + tl.arange(0, COLUMNS)[None, :]",
        ]

    def inside(self) -> str:
        """Not the first tile of a row."""
        return f"(first_column > 0) & {super().inside()}"

    def edge(self) -> Arm:
        """The masked arm in pieces; a tile stores no column of the next one."""
        own = f" & (column_of_piece < first_column - lead_of_piece + {self.step})" if self.overlap else ""
        return Arm(
            None,
            Branch("tile", "row_of_piece", "column_of_piece", tag="_of_piece"),
            pieces=in_eighths("ROWS"),
            each=(
                "row_of_piece = (first_row + piece + tl.arange(0, ROWS // 8))[:, None]",
                *self.columns("_of_piece"),
                f"in_rows = row_of_piece < {self.rows_extent}",
                f"in_columns = (column_of_piece >= 0) & (column_of_piece < {self.columns_extent}){own}",
            ),
        )

    def load(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Runs of a row, or of a column, which are transposed, are read in words."""
        words = None if place or branch.mask is not None else self._words(operand)
        return words or super().load(operand, branch, place)

    def _words(self, operand: Operand) -> str | None:
        name, out = operand.name, self.spec.operands[0].name
        transposed = f"{name} + first_row, first_column, {name}_s{self.spec.rank - 1}"
        if self.unit == SECTOR:
            return f"load_in_banks({transposed}, lead, ROWS, COLUMNS, {self.policy})"
        if operand.itemsize > SMALL:
            return None
        row, column = operand.last_two
        if column == 1:
            rows = term("row", row, f"{name}_s{self.spec.rank - 2}")
            return f"load_runs({added(name, rows, '(first_column - lead)')}, COLUMNS)"
        if not operand.is_transposed:
            return None
        pitch = f"{out}_s{self.spec.rank - 2}"
        return f"load_skewed({transposed}, {out} + first_row * {pitch} + first_column, {pitch}, ROWS, COLUMNS)"

    def store(self, operand: Operand, value: str, branch: Branch, place: str = "") -> str:
        """Whole tiles are stored in words or sectors."""
        if branch.mask is not None:
            return super().store(operand, value, branch, place)
        first = f"{operand.name} + row * {operand.name}_s{self.spec.rank - 2} + (first_column - lead)"
        return f"store_{'sectors' if self.overlap else 'runs'}({first}, {value}, COLUMNS)"


def _unit(spec: KernelSpec) -> int:
    """Return the bytes of the units of the output at which rows begin; 0 if they need not be skewed."""
    out = spec.operands[0]
    if out.strides != ("other", 1) or not spec.has_one_result:
        return 0
    anywhere = not all(operand.aligned for operand in spec.arrays)
    transposed = [operand.itemsize for operand in spec.arrays if operand.is_transposed]
    if spec.copies and [out.itemsize, *transposed] == [WORD, WORD]:
        return SECTOR if anywhere or spec.divisible * WORD < VECTOR else 0
    return WORD if (anywhere or spec.divisible == 1) and max([*transposed, 1]) <= out.itemsize <= SMALL else 0
