"""Skewed columns: tiles whose columns begin at rows of their own, where bursts of the transposed array do.

In huge loops over one transposed array whose pitches are not multiples of a burst. Along the last axis columns begin
alike, so a vector of another array, which is read or stored along it, is of one row. If all columns of the transposed
array begin at such units, nothing is gained.
"""

from __future__ import annotations

from math import gcd, prod
from typing import Any, NamedTuple

from tilearray_cuda.kernels.hardware import BURST, LINE, VECTOR
from tilearray_cuda.kernels.schedules import extents
from tilearray_cuda.kernels.schedules.addressing import Branch
from tilearray_cuda.kernels.schedules.schedule import Schedule, Sizes, Tile, masked, tile_for
from tilearray_cuda.kernels.schedules.tile import TileFacts, Tiles, cut, may_merge
from tilearray_cuda.kernels.spec import KernelSpec, Operand

Ints = tuple[int, ...]

_SIZES: Sizes = {2: Tile(256, 128, 8), 4: Tile(64, 64, 16), 8: Tile(64, 32, 16), 16: Tile(32, 32, 16)}

# first architecture -> kind -> tiles, measured on an H200 (sm_90); what is computed needs registers
SIZES = {80: {"skewed columns": {**_SIZES, 2: Tile(128, 128, 8)}, "skewed columns copied": _SIZES}}

LONG = 512
"""Rows of this number of elements may be read from a little before them."""


class SkewFacts(NamedTuple):
    """The facts of a loop whose columns may be skewed.

    Attributes
    ----------
    tile : the facts of its tiles
    pitch : 16, 32 or 64 elements, which divide the transposed array's pitch along the columns but not all further out
    further : 32, 16 or 1 elements, which divide those as well
    rows : rows of a tile that fill well if columns begin early
    """

    tile: TileFacts
    pitch: int
    further: int
    rows: int


class SkewedColumns(Tiles):
    """Tiles whose columns begin at bursts of the transposed array.

    Attributes
    ----------
    transposed : the transposed array
    unit : bytes of the units at which its columns begin
    rise_by : what divides the numbers of elements by which columns begin early
    """

    serves_all = False

    def __init__(self, spec: KernelSpec, tile: Tile, facts: TileFacts, transposed: Operand, unit: int) -> None:
        super().__init__(spec, tile, facts)
        self.transposed = transposed
        self.unit = unit
        self.rise_by = min(spec.divisible, VECTOR // transposed.itemsize)
        self.rise = unit // transposed.itemsize - self.rise_by
        if self.merged:
            self.first_of_pairs = "(first_row - tl.trans(rise))"
        else:
            self.first_of_pairs = "(first_row - rise)"

    @staticmethod
    def facts(loop: Any) -> SkewFacts | None:  # type: ignore[override]
        """Huge loops over one array that is transposed, with even pitches of all others."""
        if prod(loop.shape) < extents.HUGE or loop.case != "tile":
            return None
        steady = _steady(loop.shape, loop.strides)
        return SkewFacts(Tiles.facts(loop), *steady) if steady else None

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule | None:
        """Aligned arrays and one result, if bursts are gained."""
        merged = may_merge(spec, facts.tile)
        if not (spec.has_one_result and all(operand.aligned for operand in spec.arrays)):
            return None
        if spec.has_node("gather", "guarded", "report") or _has_parts_to_read(spec, merged):
            return None
        transposed = next(operand for operand in spec.arrays if operand.is_transposed)
        unit = min(facts.pitch * transposed.itemsize, BURST)
        if unit < LINE or unit <= facts.further * transposed.itemsize:
            return None
        kind = "skewed columns copied" if spec.copies and not spec.has_node("call") else "skewed columns"
        tile = tile_for(SIZES, arch, kind, spec.widest)
        columns = tile.columns if merged else facts.tile.fits[1]
        return cls(spec, cut(tile, facts.rows, columns), facts.tile, transposed, unit)

    @property
    def parts(self) -> int:
        """Rows are taken in order."""
        return 1

    # ------------------------------------------------------------------ what is known of arguments

    def extent_divisor(self, axis: int) -> int:
        """Merged columns go on in another axis, so their extent is a pitch; pitches are multiples of 16."""
        if self.merged and axis == self.spec.rank - 1:
            return VECTOR
        return super().extent_divisor(axis)

    def stride_divisor(self, operand: Operand) -> int:
        """All pitches but the transposed array's are multiples of 16."""
        return self.spec.divisible if operand is self.transposed else VECTOR

    def known_strides(self) -> list[str]:
        """All pitches but the transposed array's are multiples of 16."""
        return [*super().known_strides(), f"all but those of {self.transposed.name} of {VECTOR}"]

    # ------------------------------------------------------------------ the kernel

    def rows(self) -> list[str]:
        """Slots of a tile, which are rows but for the rise of a column."""
        return ["slot = (first_row + tl.arange(0, ROWS))[:, None]"]

    def columns(self, tag: str = "") -> list[str]:
        """Also by how many rows each column begins early, and its rows.

        Along the last axis, a multiple of 16, columns begin alike.
        """
        row = f"tl.multiple_of(slot - rise, [{self.rise_by}, 1])"
        row = f"tl.max_constancy({row}, [1, 16])" if self.merged else row
        lines = [*super().columns(), f"rise = {self._rise('column')}", f"row = {row}"]
        if self.spec.operands[0].dtype != "complex128" or not self.merged:
            return lines
        return [
            *lines,
            "part = (2 * first_column + tl.arange(0, 2 * COLUMNS))[None, :]  # real and imaginary parts take turns",
            f"part_i{self.spec.rank - 3} = part // 2 // n{self.spec.rank - 1}",
            f"row_of_part = tl.max_constancy(slot - {self._rise('part')}, [1, 32])",
        ]

    def _rise(self, column: str) -> str:
        """Return by how many rows a column begins early: where a unit of the transposed array does."""
        name, axis = self.transposed.name, self.spec.rank - 3
        is_pair = self.transposed.dtype == "complex128"
        offset = f"{column}_i{axis} * {name}_s{axis}"
        offset = f"2 * ({offset}).to(tl.int64)" if is_pair else offset
        rise = f"lead_of({f'{name} + {offset}' if self.merged else name}, {self.unit})"
        return f"{rise} // 2" if is_pair else rise

    def inside(self) -> str:
        """Not the first tile of a column."""
        return f"(first_row >= {self.rise}) & {super().inside()}"

    def in_rows(self) -> str:
        """Columns may begin before the first row."""
        return f"(row >= 0) & ({super().in_rows()})"

    # ------------------------------------------------------------------ loads and stores

    def stays(self, operand: Operand) -> bool:
        """The transposed array stays in the L2 cache."""
        return self.evicts_last or operand is self.transposed

    def address(self, operand: Operand, branch: Branch, place: str) -> str:
        """Columns that begin at units, and vectors of a row."""
        if operand is self.transposed:
            column = f"{operand.name} + ({self.column_term(operand, branch)} - rise)"
            return f"tl.multiple_of({column}, [{self.unit}, {self.unit}]) + slot"
        alike = f"[1, {VECTOR // operand.itemsize}]"
        index = self.placed_index(operand, branch, place)
        return f"{operand.name} + tl.max_contiguous(tl.multiple_of({index}, {alike}), {alike})"

    def store_pair(self, operand: Operand, parts: tuple[str, ...], branch: Branch, place: str = "") -> str:
        """Parts of merged columns have rows of their own."""
        if not self.merged:
            return super().store_pair(operand, parts, branch, place)
        offset = f"2 * (row_of_part * {operand.name}_s{self.spec.rank - 2}).to(tl.int64) + part, COLUMNS"
        inside = f"(row_of_part >= 0) & (row_of_part < {self.rows_extent}) & (part < 2 * columns)"
        arguments = f"{offset}, {inside}" if branch.mask else offset
        suffix = masked(self.guard(operand, branch, place))
        return f"store_parts{suffix}({operand.name}, {arguments}, {', '.join(parts)})"


def _has_parts_to_read(spec: KernelSpec, merged: bool) -> bool:
    """Whether complex128 lie beside the transposed array in merged columns: parts have rows in stores alone."""
    return merged and not spec.copies and any(operand.dtype == "complex128" for operand in spec.arrays)


def _steady(shape: Ints, strides: tuple[Ints, ...]) -> Ints:
    """Return `pitch`, `further` and `rows` of `SkewFacts`; () if other pitches are not multiples of 16, or rows short.

    >>> [_steady((400, n, 800), ((800, 320000, 1), (n, 1, 400 * n))) for n in (900, 901, 928, 960, 500)]
    [(64, 1, 256), (16, 1, 256), (64, 32, 256), (), ()]
    """
    uneven = [each for each in strides if each[-1] != 1 or any([pitch % 16 for pitch in each[:-1]])]  # noqa: C419
    if len(uneven) != 1 or strides[0] in uneven or shape[-2] < LONG:
        return ()
    *outer, along_rows, pitch = uneven[0]
    unit, further = min(pitch & -pitch, 64), gcd(64, *outer)
    if along_rows != 1 or unit < 16 or further >= unit:
        return ()
    return unit, further if further >= 16 else 1, extents.filled(shape[-2] + unit - 1, 256, 7)
