"""Reduce: tiles of ``ROWS`` results by ``COLUMNS`` lanes, which walk along the reduced axes.

A tile's rows lie along the fastest kept axis, its columns are the lanes of `tilearray.geometry.reduction`, along the
fastest reduced axis. A program visits all chunks of its segment, for all indices of the slower reduced axes.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.hardware import VECTOR, WORD
from tilearray_cuda.kernels.schedules.addressing import Arm, Branch, added, divided_out, moved, moved_along, term
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.schedules.tiled import Tiled
from tilearray_cuda.kernels.spec import KernelSpec, Operand

WARP = 32
"""Threads of a warp."""
WARP_BYTES = 512
"""One vector for each thread of a warp: a row of a tile, where rows are as long."""
COLUMN_TILES = {1: 1024, 2: 2048, 4: 2048, 8: 1024, 16: 512}
"""Elements of a tile across the fastest axis, by itemsize; measured on an H200."""
CROSSED_LANES = 128
"""The most lanes of a tile, if another operand is dense across the fastest axis: both are read in lines."""
CROSSED_TILE = 4096
"""Elements of such a tile if it has all lanes."""
CROSSED_ROWS = {1: 64, 2: 64, 4: 64, 8: 16, 16: 16}
"""Results of such a tile if it has a group of the lanes, by itemsize."""
COPIED_TILE, COPIED_ARRAYS, COPIED_ARCHS = Tile(64, 64, 8, 5), 2, (9, 10)
"""Such a tile of two arrays of 4-byte elements, of which asynchronous copies read four steps ahead: 128 KiB of shared
memory, which these architectures have. On an H100 it reads at 0.98 of a copy's rate, and at 0.95 without the copies."""
LONG_LANES = 512
"""Lanes of long rows, which several warps share. Fewer rows are read at once then: on an H100 sums of bfloat16 read at
1.02 of a copy's rate and at 0.97 with one warp, variances of float32 at 1.03 and 0.96, and sums of float32 by eight
warps at 1.03 and at 1.01 by one."""
LONG_WARPS = {(2, 1): 4, (2, 2): 4, (4, 1): 8, (4, 2): 4, (8, 1): 8}
"""The warps of long rows by itemsize and by the values of a lane, of which 2 are several; others have one."""
LONG_WARPS_OF_SEGMENTS = {(2, 1): 4}
"""The same of rows that are cut: sums of all bfloat16 read at 0.97 of a copy's rate, and at 0.94 by one warp."""
WHOLE_LANES, WHOLE_WARPS = 1024, {(8, 1): 16}
"""The lanes of all elements of 8 bytes, which are cut, and their warps: on an H100 sums of all float64, int64 and
complex64 read at 1.01 of a copy's rate, and at 0.98, 0.94 and 0.99 by two warps."""
ONE_RESULT_WARPS = 4
"""The warps of the one program of a single result in these lanes: it waits for memory chunk after chunk. On an H100 all
2**28 bfloat16 are summed in 181 us so, and in 186 by one warp; 8192 float32 in 5.9 and 5.7."""
NARROW, NARROW_ROWS, NARROW_WARPS = 4, {1: 4, 2: 8, 4: 8, 8: 8, 16: 4}, 4
"""The most chunks of narrow rows, of which a program has several, by itemsize, and its warps.

On an H100 sums of rows of 100, 200 and 500 float32 read at 0.89, 0.99 and 1.01 of a copy's rate so, and at 0.22, 0.44
and 0.98 by one row a program; of 64 float64 at 1.01 and 0.29, of 256 bfloat16 at 1.03 and 0.28.
"""
IN_RUNS, IN_VECTORS = (2, 4, 8), 4
"""The itemsizes of narrow rows that threads read as they would read vectors, and what divides the strides of others.

On an H100 sums of rows of 65, 101 and 201 float32 read at 1523, 2088 and 2812 GB/s so, and at 803, 1219 and 1936 as
the compiler distributes them; of 129 and 501 bfloat16 at 1732 and 2511, and at 704 and 2033. More elements of 2 bytes
are read as fast in vectors of 8. Of 16 million elements, variances of rows of 10, 33 and 201 float32 take 55, 52 and 43
us so, and 140, 185 and 77; of 33 bfloat16 48 and 281; maxima of rows of 33 float64 84 and 129.
"""
FEWEST, MOST_ROWS = 8, 1024
"""The least results that have narrow rows, and the most of a tile."""
SHORT = 2**23


class Reduce(Tiled):
    """Blocks of results by lanes.

    Attributes
    ----------
    kept, outer : the number of slower kept axes, and of slower reduced axes
    lanes : the lanes of a reduction
    is_cut : whether there are several segments
    is_short : whether 32 bits hold the sum of as many bytes as a segment has elements
    beside : the outputs that have an element for each one that is reduced, by name
    """

    cases = ("reduce_rows", "reduce_columns")
    serves_all = True
    beside: frozenset[str] = frozenset()
    has_head = False
    """Whether the first chunk is masked as well."""
    has_neighbours = False
    """Whether a program has several narrow rows, along which all arrays lie."""

    def __init__(self, spec: KernelSpec, tile: Tile) -> None:
        super().__init__(spec, tile)
        self.beside = frozenset([spec.operands[place].name for place in spec.outputs_beside])
        self.kept, self.lanes, self.is_cut, _, self.is_short, is_narrow = spec.facts[0]  # type: ignore[misc]
        self.outer = spec.rank - 2 - self.kept
        along_rows = spec.case == "reduce_rows" and all(operand.last_two[1] in (0, 1) for operand in spec.arrays)
        self.has_neighbours = along_rows and is_narrow and tile.rows > 1 and not (self.beside or self.outer)

    @staticmethod
    def facts(loop: Any) -> tuple[int, ...] | None:
        """The slower kept axes, the lanes, `is_cut`, the most results of a tile, `is_short`, and whether a row of many
        has few chunks."""
        if loop.held:
            return None
        rows = min(MOST_ROWS, 1 << (loop.shape[-2] - 1).bit_length())
        is_cut = loop.segments.total > 1
        is_narrow = (
            loop.case == "reduce_rows" and rows >= FEWEST and not is_cut and loop.elements <= NARROW * loop.lanes
        )
        return loop.kept, loop.lanes, is_cut, rows, loop.elements <= SHORT, is_narrow

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule | None:
        """Every spec: as many results as a tile of the lanes has elements for."""
        _, lanes, is_cut, rows, _, is_narrow = facts
        tile = _tile_of(spec, lanes, rows, arch, is_cut, is_narrow)
        if spec.outputs_beside:  # one thread loads an element, or another warp might have stored it there before
            tile = tile._replace(warps=min(tile.warps, max(1, tile.rows * tile.columns // WARP)))
        return cls(spec, tile)

    # ------------------------------------------------------------------ the kernel

    @property
    def groups(self) -> int:
        """The groups of lanes that a program takes one after the other."""
        return self.lanes // self.tile.columns

    @property
    def chunk(self) -> str:
        """The name of the elements of a chunk."""
        return "LANES" if self.groups > 1 else "COLUMNS"

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the size of a tile, and the lanes if they are several groups."""
        return (*super().constants(), *[("LANES", self.lanes), ("GROUPS", self.groups)] * (self.groups > 1))

    @property
    def stores_segments(self) -> bool:
        """Whether each segment stores results of its own, side by side."""
        return bool(self.is_cut)

    def programs(self) -> str:
        """Return the number of tiles of results, times the number of segments."""
        tiles = [*[f"n{axis}" for axis in range(self.kept)], f"-(-{self.rows_extent} // {self.tile.rows})"]
        return " * ".join([*tiles, *["loop.segments.total"] * self.is_cut])

    def loop_arguments(self) -> tuple[tuple[str, str], ...]:
        """Return the sizes of segments."""
        names = ("total", "inner", "indices", "chunks") if self.is_cut else ()
        return tuple([(f"segments_{name}", f"segments.{name}") for name in names])

    def setup(self) -> list[str]:
        """Return the lines that find a program's results and its segment."""
        row = self.spec.rank - 2
        lines = [f"program = {self.program()}"]
        first_row = [
            f"row_tiles = {blocks(row, 'ROWS')}",
            "first_row = (program % row_tiles) * ROWS",
            "program = program // row_tiles",
        ]
        if not self.kept and not self.is_cut:
            first_row = ["first_row = program * ROWS"]  # without two divisions
        segment = ["segment = program % segments_total", "program = program // segments_total"] if self.is_cut else []
        lines += [*segment, *first_row] if self.spec.case == "reduce_rows" else [*first_row, *segment]
        lines += [*divided_out("program", range(self.kept)), *moved_along(self.spec.arrays, range(self.kept))]
        if self.stores_segments:
            states = [each for each in self.spec.operands[: self.spec.outputs] if each.name not in self.beside]
            lines += [moved(operand, ["segment"]) for operand in states]
        rows = [*self.rows(), *[f"in_rows = {self.in_rows()}"] * (self.tile.rows > 1)]
        return [*lines, *rows, *self.chunk_range()]

    def chunk_range(self) -> list[str]:
        """Return the lines that find the chunks of a segment, and its indices of the slower reduced axes."""
        column, first = self.spec.rank - 1, self.kept
        chunks = blocks(column, self.chunk)
        lines = [f"whole_chunks = n{column} // {self.chunk}"]
        inner = " * ".join(f"n{axis}" for axis in range(first + 1, first + self.outer))
        if not self.is_cut:
            lines += [f"first_chunk = 0 * n{column}", f"last_chunk = {chunks}"]
            if self.outer:
                lines += [f"first_index = 0 * n{column}", f"last_index = {added(f'n{first}')}"]
        else:
            lines += [
                "first_chunk = (segment % segments_inner) * segments_chunks",
                f"last_chunk = tl.minimum(first_chunk + segments_chunks, {chunks})",
            ]
            if self.outer:
                lines += [
                    "first_index = (segment // segments_inner) * segments_indices",
                    f"last_index = tl.minimum(first_index + segments_indices, n{first})",
                ]
        if inner:
            lines += [f"first_index = first_index * ({inner})", f"last_index = last_index * ({inner})"]
        return [*lines, "whole_chunks = tl.minimum(whole_chunks, last_chunk)"]

    def columns_of_chunk(self) -> list[str]:
        """Return the lines that name the columns of a chunk."""
        first = " + group * COLUMNS" if self.groups > 1 else ""
        return [f"column = chunk * {self.chunk}{first} + tl.arange(0, COLUMNS)[None, :]"]

    def in_columns(self) -> str:
        """Return the mask of columns."""
        return f"column < n{self.spec.rank - 1}"

    def ordered(self, names: list[str]) -> list[str]:
        """Return the lines that put lanes of accumulators into their order."""
        return []

    def indices(self) -> list[str]:
        """Return the lines that find where an index of the slower reduced axes lies, for each input."""
        axes = range(self.kept, self.kept + self.outer)
        lines = ["rest = outer", *divided_out("rest", axes)] if self.outer > 1 else divided_out("outer", axes)
        for operand in self.elements:
            terms = [f"i{axis} * {operand.name}_s{axis}" for axis in axes]
            lines.append(f"{operand.name}_outer = {' + '.join(terms)}")
        return lines

    @property
    def elements(self) -> list[Operand]:
        """The arrays that are read, and those that have as many elements."""
        outputs = self.spec.outputs
        return [
            operand
            for place, operand in enumerate(self.spec.operands)
            if operand.name in self.beside or (place >= outputs and operand.strides is not None)
        ]

    def arms(self) -> list[Arm]:
        """Whole tiles, and those that reach beyond the last result. Guarded elements that are all read come first."""
        whole = f"first_row <= {self.rows_extent} - ROWS"  # the end of a tile may be 2**31, which no int32 holds
        last = [Arm(None, Branch(None))]
        if self.tile.rows > 1:
            last = [Arm(whole, Branch(None)), Arm(None, Branch("in_rows"))]
        limits = self.limits()
        if not limits:
            return last
        inside = " & ".join([f"({condition})" for condition in (*[whole] * (self.tile.rows > 1), *limits)])
        return [Arm(inside, Branch(None, inside=True)), *last]

    def limits(self) -> list[str]:
        """Return the conditions under which the distances of all elements of a program are below their limits."""
        spec = self.spec
        inputs, nodes = spec.operands[spec.outputs :], spec.nodes
        found: list[str] = []
        for node in nodes:
            if node[0] == "call" and node[1] == "less" and nodes[node[2][0]][0] == "distance":
                distance, limit = (nodes[argument] for argument in node[2])
                found.append(f"{self.farthest(inputs[distance[1]])} < {inputs[limit[1]].name}")
        return found

    def farthest(self, operand: Operand) -> str:
        """Return a bound of the distances of a program."""
        name, rank = operand.name, self.spec.rank
        outer = [f"(n{axis} - 1) * {name}_s{axis}" for axis in range(self.kept, self.kept + self.outer)]
        row = term("(first_row + ROWS - 1)", operand.last_two[0], f"{name}_s{rank - 2}")
        column = term(f"(n{rank - 1} - 1)", operand.last_two[1], f"{name}_s{rank - 1}")
        return added(name, *[f"tl.maximum({part}, 0)" for part in (*outer, row, column) if part])

    def open_strides(self) -> list[tuple[str, int, int]]:
        """Return the strides that are arguments; outputs have none along reduced axes."""
        reduced = range(self.kept, self.kept + self.outer)
        operands = self.spec.operands
        results = {place for place in range(self.spec.outputs) if operands[place].name not in self.beside}
        return [each for each in super().open_strides() if not (each[1] in results and each[2] in reduced)]

    # ------------------------------------------------------------------ where elements lie

    def index(self, operand: Operand, branch: Branch) -> str:
        """Return the row and the lane times their strides, and the place along slower reduced axes."""
        is_output = operand.name.startswith("out") and operand.name not in self.beside
        outer = f"{operand.name}_outer" if self.outer and not is_output else ""
        found = added(outer, super().index(operand, branch))
        first = f"{branch.row} * 0"
        return f"{found} + {first}" if is_output and operand.last_two[0] == 0 and found else found or first

    def load(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return a load; of narrow rows that begin between vectors, a thread reads what it would have of a vector.

        So neighbours are combined within threads.
        """
        if place or not self._begins_between(operand):
            return super().load(operand, branch, place)
        row = term(branch.row, operand.last_two[0], f"{operand.name}_s{self.spec.rank - 2}")
        limits = f"n{self.spec.rank - 1}, in_rows" if branch.mask else "None, None"
        run = VECTOR // operand.itemsize
        return f"load_neighbours({operand.name} + {row}, {self.first_of_chunk(branch)}, {limits}, COLUMNS, {run})"

    def first_of_chunk(self, branch: Branch) -> str:
        """Return the first column of a chunk."""
        return "chunk * COLUMNS"

    def _begins_between(self, operand: Operand) -> bool:
        """Whether a tile has narrow rows of elements of an itemsize in `IN_RUNS`, which begin at no vector."""
        spec, itemsize = self.spec, operand.itemsize
        if not self.has_neighbours or itemsize not in IN_RUNS or self.tile.columns * itemsize < 2 * VECTOR:
            return False
        is_read = not operand.name.startswith("out") and operand.last_two == ("other", 1)
        is_between = spec.divisible < min(IN_VECTORS, VECTOR // itemsize)
        return is_read and (is_between or (itemsize == WORD and not operand.aligned))

    def guard(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return the masks of the axes along which elements differ."""
        row, column = operand.last_two
        masks = [
            mask
            for mask, stride in (("in_rows", row), ("in_columns", column))
            if branch.mask in (mask, "tile") and stride != 0
        ]
        return f", mask={' & '.join(masks)}" if masks else ""


def _tile_of(spec: KernelSpec, lanes: int, rows: int, arch: int, is_cut: bool, is_narrow: bool) -> Tile:
    """Return a tile of at most `rows` results."""
    itemsize = itemsize_of(spec)
    if spec.case == "reduce_columns":
        tile = COLUMN_TILES[itemsize] // lanes
        if spec.outputs_beside and itemsize > 2:  # more arrays in registers; measured on an H100
            return Tile(max(1, min(rows, tile // 2)), lanes, 4)
        return Tile(max(1, min(rows, tile)), lanes, 2)
    elements = WARP_BYTES // itemsize
    if any(operand.last_two[0] == 1 and operand.last_two[1] not in (0, 1) for operand in spec.arrays[1:]):
        if lanes > CROSSED_LANES and arch // 10 in COPIED_ARCHS and _copies_ahead(spec, rows):
            return COPIED_TILE
        if lanes > CROSSED_LANES:
            return Tile(min(rows, CROSSED_ROWS[itemsize]), CROSSED_LANES, 16)
        return Tile(max(1, min(rows, CROSSED_TILE // lanes)), lanes, 8)
    if lanes == WHOLE_LANES and rows == 1 and not is_cut:
        return Tile(1, lanes, ONE_RESULT_WARPS)
    if lanes < elements and rows >= FEWEST and not is_narrow:  # segments of a few results
        return Tile(1, lanes, 1)
    if lanes < elements:  # short rows
        return Tile(max(1, min(rows, 4 * elements // lanes)), lanes, 2)
    if is_narrow:
        of_several = 4 if values_of(spec) > 1 or spec.has_node("position") else MOST_ROWS
        return Tile(min(NARROW_ROWS[itemsize], of_several), lanes, NARROW_WARPS)
    if spec.has_node("position"):  # two values for each lane
        return Tile(1, lanes, max(2, min(4, lanes // (4 * elements))))
    if spec.arrays[-1].dtype == "bool":  # compared byte by byte
        return Tile(min(rows, 2), lanes, 4)
    fewest = 1 if all(operand.aligned for operand in spec.arrays) else min(4, lanes // elements)
    shared: dict[tuple[int, int], int] = {}
    if lanes == LONG_LANES:
        shared = LONG_WARPS_OF_SEGMENTS if is_cut else LONG_WARPS
    elif lanes == WHOLE_LANES and is_cut:
        shared = WHOLE_WARPS
    fewest = max(fewest, shared.get((itemsize, min(values_of(spec), 2)), 1))
    return Tile(1, lanes, max(fewest, min(4, lanes // (8 * elements))))


def blocks(axis: int, size: str) -> str:
    """Return the number of blocks along an axis, without a sum that exceeds 32 bits where the extent does not."""
    return f"(n{axis} - 1) // {size} + 1"


def itemsize_of(spec: KernelSpec) -> int:
    """Return the bytes of an element of the first array that is read, or of a result if all elements are a number."""
    read = [operand for operand in spec.operands[spec.outputs :] if operand.strides is not None]
    return (read or spec.arrays)[0].itemsize


def _copies_ahead(spec: KernelSpec, rows: int) -> bool:
    """Whether two arrays of 4-byte elements in aligned rows are read for one sum, and a tile has all its rows."""
    arrays = spec.arrays[spec.outputs :]
    words = [operand.itemsize for operand in arrays] == [WORD] * COPIED_ARRAYS
    return (
        words and values_of(spec) == 1 and rows >= COPIED_TILE.rows and not spec.unaligned and not spec.outputs_beside
    )


def values_of(spec: KernelSpec) -> int:
    """Return the number of values that each lane has."""
    return sum(len(node[3]) for node in spec.nodes if node[0] == "reduce")
