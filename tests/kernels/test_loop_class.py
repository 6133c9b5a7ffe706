"""The class of a loop: which facts kernels depend on, and that it depends on no size beside them."""

from __future__ import annotations

from typing import Any

import pytest
from support.kernels import body_for, kernel_for

from tilearray.geometry.layout import Layout
from tilearray.geometry.loop import Loop, make_loop
from tilearray.geometry.result import geometry_of
from tilearray_cuda.kernels.schedules import choose
from tilearray_cuda.kernels.schedules.rows import Rows
from tilearray_cuda.kernels.schedules.skewed_columns import SkewedColumns
from tilearray_cuda.kernels.schedules.tile import TileFacts, Tiles
from tilearray_cuda.kernels.spec import LoopClass

Ints = tuple[int, ...]


def class_of(loop: Loop) -> LoopClass:
    return LoopClass(*choose.loop_class(loop))


def sum_over(*layouts: Layout) -> Loop:
    """The loop of a sum, as the planner makes it."""
    return geometry_of("add", layouts, None)[1]


def test_a_loop_class_depends_on_no_size() -> None:
    small, large = (sum_over(Layout.of(shape), Layout.of(shape[1])) for shape in ((6, 8), (60, 800)))
    assert class_of(small) == class_of(large)._replace(divisible=4, facts=((1, (True, True, False)),))
    assert class_of(large)[:4] == ("broadcast", 2, (("other", 1), ("other", 1), (0, 1)), 32)
    assert class_of(large).divisible == 16, "a pitch of 800"
    assert class_of(sum_over(Layout.of((60, 81)), Layout.of(81))).divisible == 1
    assert class_of(sum_over(Layout.of(()))) == class_of(sum_over(Layout.of(48)))
    assert len({class_of(make_loop((9,), [(1,), (s,)])) for s in range(-20, 20)}) == 4
    steps = class_of(make_loop((9,), [(1,), (-1,), (0,), (5,), (-5,)])).strides
    assert steps == ((1,), (-1,), (0,), ("other",), ("other",))
    assert class_of(make_loop((2**31,), [(1,)])) != class_of(make_loop((2**31 - 1,), [(1,)]))


@pytest.mark.parametrize(("shape", "longest"), [((4, 511), 1), ((4, 512), 512), ((400, 5000), 4096), ((9, 5000), 512)])
def test_blocks_of_a_lookup_are_no_longer_than_a_row(shape: Ints, longest: int) -> None:
    dense = (True, True, False)
    assert class_of(sum_over(Layout.of(shape), Layout.of(shape[1]))).facts == ((longest, dense),)


def test_rows_are_looked_up_if_the_output_is_dense_and_they_are_not_narrow() -> None:
    """Then no other schedule is asked; rows of another output, or narrow ones, are for `Rows`."""

    def facts(columns: int, out: int, rows: int = 90) -> tuple[Any, ...]:
        return class_of(make_loop((rows, columns), [(out, 1), (columns + 6, 1)])).facts

    assert facts(600, 600) == ((512, (True, False)),)
    assert facts(500, 500) == (None, None, (32,) * 5)
    assert facts(600, 603) == (None, None, (512,) * 5)
    *_, most = facts(600, 603, rows=9000)
    assert most == Rows.facts(make_loop((9000, 600), [(603, 1), (606, 1)])) == (128, 256, 256, 256, 256)


@pytest.mark.parametrize("columns", [17, 20, 33, 48, 65, 80, 100, 127, 136, 200, 260, 500, 511])
@pytest.mark.parametrize("pitch", [0, 3])
def test_blocks_cover_little_more_than_narrow_rows(columns: int, pitch: int) -> None:
    """Less than twice their columns; less than four times if the output has gaps, which larger elements skip."""
    most = Rows.facts(make_loop((2**21 // columns, columns), [(columns + pitch, 1), (columns + 7, 1)]))
    assert sorted(most) == list(most)
    for itemsize, block in zip((1, 2, 4, 8), most, strict=False):
        assert -(-columns // block) * block < columns * (4 if pitch and itemsize > 2 else 2)


@pytest.mark.parametrize(
    ("rows", "columns", "fours"),
    [
        (1100, 1300, True),
        (1101, 1300, False),
        (1100, 1302, False),
        (2048, 1024, False),
        (1152, 1028, True),
        (40, 40, False),
    ],
)
def test_tiles_that_end_in_vectors_of_4(rows: int, columns: int, fours: bool) -> None:
    """If tiles reach beyond the extents, in large loops; in others it is not asked, and kernels are the same."""
    found = make_loop((rows, columns), [(columns, 1), (1, rows)])
    assert class_of(found).case == "tile"
    assert Tiles.facts(found).fours is fours
    assert class_of(found).facts[-1] == Tiles.facts(found)


@pytest.mark.parametrize(
    ("columns", "merges"),
    [(900, True), (901, True), (300, True), (48, True), (4, True), (1023, True), (1024, False), (1025, False),
     (960, False), (448, False), (64, False)],
)  # fmt: skip
def test_columns_merge_where_they_fill_no_whole_tiles(columns: int, merges: bool) -> None:
    """And where every operand that is dense in them goes on in the axis before, as the result does."""
    shape, turned = (400, 800, columns), (800, 1, 320_000)

    def found(*operands: Ints, shape: Ints = shape) -> TileFacts:
        return Tiles.facts(make_loop(shape, operands))

    dense = (columns, 400 * columns, 1)
    assert found(dense, dense, turned).merges is merges
    assert found(dense, (columns, 0, 1), turned).merges is merges
    assert found(dense, (1, 0, 0), turned).merges is merges
    assert found(dense, dense, turned, shape=(2, 3, columns)).merges is False, "small"
    for apart in ((0, 0, 1), (0, 400 * columns, 1), (columns + 4, 400 * columns, 1)):
        assert found(dense, apart, turned).merges is False
    spaced = tuple(2 * stride for stride in dense)
    assert found(spaced, turned).merges is False
    assert found((800 * columns, columns, 1), (800 * columns, 1, 800)).merges is False, "rows come before the columns"


@pytest.mark.parametrize(
    ("rows", "columns", "itemsize", "tile"),
    [
        (40, 600_000, 4, (64, 64, 8)),
        (50, 500_000, 4, (64, 64, 8)),
        (50, 500_000, 8, (64, 64, 16)),
        (50, 500_000, 2, (64, 64, 8)),
        (50, 500_000, 1, (16, 256, 4)),
        (36, 500_000, 1, (64, 256, 8)),
        (500_000, 36, 1, (64, 16, 1)),
        (600_000, 36, 8, (64, 16, 8)),
        (48, 600_000, 4, (64, 64, 8)),
        (39, 600_000, 4, (64, 64, 8)),
        (20, 600_000, 4, (32, 64, 8)),
        (28, 600_000, 4, (32, 64, 8)),
        (100, 600_000, 4, (128, 64, 16)),
        (130, 600_000, 4, (256, 32, 16)),
        (176, 600_000, 4, (64, 64, 16)),
        (600_000, 20, 4, (64, 32, 8)),
        (600_000, 36, 4, (64, 64, 8)),
        (600_000, 100, 4, (64, 128, 16)),
        (50, 21_000, 4, (64, 64, 8)),
        (50, 2**15, 4, (64, 64, 8)),
    ],
)
def test_short_axes_are_transposed_in_tiles_of_all_of_them(rows: int, columns: int, itemsize: int, tile: Ints) -> None:
    dtype = {1: "uint8", 2: "float16", 4: "float32", 8: "float64"}[itemsize]
    found = kernel_for(body_for("identity", [dtype]), (rows, columns), [(columns, 1), (1, rows)])
    assert found.schedule.tile[:3] == tile


@pytest.mark.parametrize(
    ("rows", "columns", "steady"),
    [(900, 800, (64, 1, 256)), (901, 800, (16, 1, 256)), (900, 16, ()), (900, 804, ()), (960, 800, ()), (511, 800, ()),
     (512, 800, ()), (515, 800, (16, 1, 64)), (516, 800, (64, 1, 128)), (912, 800, (64, 16, 256)),
     (928, 800, (64, 32, 256)), (970, 800, (32, 1, 256))],
)  # fmt: skip
def test_rows_that_begin_anywhere_along_axes_further_out(rows: int, columns: int, steady: Ints) -> None:
    """In huge loops, if the transposed array's other pitches, and all others' pitches, are even, and rows not short."""
    axes = (rows, 400, columns)
    dense, turned = (400 * columns, columns, 1), (1, rows, 400 * rows)

    def found(*operands: Ints, shape: Ints = axes) -> Ints:
        skew = SkewedColumns.facts(make_loop(shape, operands))
        return () if skew is None else skew[1:]

    assert found(dense, turned) == steady
    assert found(dense, turned, dense) == steady
    assert found(dense, turned, (0, 0, 1)) == steady, "a row"
    assert found(dense, turned, (400 * columns + 4, columns, 1)) == (), "another whose rows begin anywhere"
    assert found(dense, turned, turned) == (), "two that are turned"
    assert found(dense, turned, (1, 0, 0)) == (), "a column"
    assert found(dense, (1, 0, 400 * rows)) == (), "repeated"
    assert found(dense, turned, shape=(rows, 2, columns)) == (), "not huge"
    assert found((16384, 1), (1, 16384), shape=(16384, 16384)) == ()


@pytest.mark.parametrize(
    ("rows", "block"), [(16384, 256), (1024, 256), (8000, 256), (896, 128), (1100, 128), (900, 128), (768, 256)]
)
def test_tiles_of_256_rows_are_well_filled(rows: int, block: int) -> None:
    assert Tiles.facts(make_loop((rows, 4096), [(4096, 1), (1, rows)])).fits[0] == block


def test_tiles_do_not_depend_on_how_rows_begin() -> None:
    """Except skewed ones, and bytes are never skewed."""
    for rows, fits in ((900, (128, 128)), (960, (128, 128)), (516, (64, 128))):
        assert Tiles.facts(make_loop((rows, 400, 800), [(320_000, 800, 1), (1, rows, 400 * rows)])).fits == fits
