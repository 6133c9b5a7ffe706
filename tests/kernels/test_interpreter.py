"""The CUDA kernels, run by Triton's interpreter on NumPy memory: every layout case.

Values are compared bit for bit with NumPy's. tests/support/interpreter/run.py checks every address that is read or
written.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.drawing import shapes, views
from support.interpreter.mended import FaultError
from support.interpreter.run import Interpreter, planned, programs_of, view
from support.kernels import ELEMENTWISE, Strides, body_for, kernel_for, needs_triton
from support.oracles.formats import dtype_of

from tilearray_cuda.kernels.schedules import extents

pytestmark = [needs_triton, pytest.mark.slow]


def quarters(dtype: str, size: int, seed: int) -> np.ndarray:
    """Values of both signs, many of them rounded when they are added."""
    drawn = np.random.default_rng(seed).integers(-40, 40, size) / 4
    return (drawn > 0) if dtype == "bool" else drawn.astype(dtype_of(dtype))


# --- layout cases ---------------------------------------------------------------------------------------------------

# name -> case, shape, strides of x, of y, and of out if they are not the library's
LAYOUTS: dict[str, tuple[str, tuple[int, ...], Strides, Strides, Strides | None]] = {
    "contiguous": ("flat", (9001,), (1,), (1,), None),
    "contiguous, of 4 axes": ("flat", (5, 6, 7, 40), (1680, 280, 40, 1), (1680, 280, 40, 1), None),
    "transposed alike": ("flat", (70, 130), (1, 70), (1, 70), None),
    "all backwards": ("flat", (5000,), (-1,), (-1,), (-1,)),
    "one element repeated": ("flat", (5000,), (1,), (0,), None),
    "every second and third": ("strided", (5000,), (2,), (3,), None),
    "one backwards": ("strided", (5000,), (1,), (-1,), None),
    "a target with gaps": ("strided", (5000,), (1,), (0,), (2,)),
    "row": ("lookup", (15, 600), (600, 1), (0, 1), None),
    "column": ("lookup", (15, 600), (600, 1), (1, 0), None),
    "row and column": ("lookup", (15, 600), (0, 1), (1, 0), None),
    "row backwards, column with gaps": ("lookup", (15, 600), (0, -1), (3, 0), None),
    "row and one element": ("lookup", (15, 600), (0, 1), (0, 0), None),
    "narrow row": ("lookup", (400, 30), (30, 1), (0, 1), None),
    "narrow row and column": ("lookup", (400, 7), (0, 2), (-1, 0), None),
    "row of 4 axes": ("lookup", (4, 5, 6, 100), (3000, 600, 100, 1), (0, 0, 100, 1), None),
    "row of whole vectors beside an odd pitch": ("lookup", (15, 656), (657, 1), (0, 1), None),
    "pitches": ("lookup", (7, 2100), (2200, 1), (2160, 1), None),
    "pitches of 3 axes": ("rows", (3, 5, 1100), (16000, 1200, 1), (0, 1, 0), None),
    "pitches of 4 axes": ("rows", (2, 3, 4, 1100), (30000, 9000, 1200, 1), (1, 5000, 0, 1), None),
    "narrow pitches": ("rows", (70, 40), (48, 1), (64, 1), None),
    "pitches, one backwards": ("lookup", (7, 1100), (1200, -1), (-1104, 1), None),
    "transposed": ("tile", (70, 150), (150, 1), (1, 70), None),
    "transposed, into rows": ("tile", (70, 150), (1, 70), (1, 72), (150, 1)),
    "transposed backwards": ("tile", (70, 150), (160, 1), (-1, -72), None),
    "transposed and row": ("tile", (70, 150), (0, 1), (1, 70), (150, 1)),
    "two axes swapped of 3": ("tile", (5, 40, 70), (2800, 70, 1), (2800, 1, 40), None),
    "first and last swapped of 3": ("tile", (40, 5, 70), (350, 70, 1), (1, 40, 200), None),
    "reversed, of 4 axes": ("tile", (3, 2, 12, 70), (1680, 840, 70, 1), (1, 3, 6, 72), None),
    "three fastest axes": ("mixed", (5, 34, 35), (1, 35 * 5, 5), (34, 1, 34 * 5), (34 * 35, 35, 1)),
    "three fastest of 4 axes": ("mixed", (3, 2, 34, 35), (1, 3, 6, 204), (34, 102, 1, 204), (2380, 1190, 35, 1)),
    "three long axes": ("mixed", (33, 34, 36), (1, 33 * 36, 33), (34, 1, 34 * 33), (34 * 36, 36, 1)),
    "three long axes in fours": ("mixed", (32, 36, 40), (1, 32 * 40, 32), (36, 1, 36 * 32), (36 * 40, 40, 1)),
    "three long axes of 4": (
        "mixed", (2, 33, 34, 35), (39270, 1, 33 * 35, 33), (39270, 34, 1, 34 * 33), (39270, 34 * 35, 35, 1)
    ),
}  # fmt: skip
SMALL = {"BLOCK": 256, "ROWS": 16, "COLUMNS": 64, "DEPTH": 16}
SMALLER = {"BLOCK": 16, "ROWS": 8, "COLUMNS": 8, "DEPTH": 4}
ADDED = [
    "float32",
    "int8",
    "bfloat16",
    "complex128",
    "float16",
    "bool",
    "complex64",
    "float8_e4m3fn",
    "uint64",
    "float64",
]


def strided(dtype: str, shape: tuple[int, ...], strides: Strides, seed: int) -> np.ndarray:
    """A view of these strides in a flat buffer of its own."""
    reach = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    low, high = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
    return view(quarters(dtype, high - low + 1, seed), strides, shape, -low)


def test_the_layouts_are_what_they_are_called() -> None:
    """Each kernel has the case that is written beside it, and there is one for every case and rank."""
    found = set()
    for name, (case, shape, x, y, out) in LAYOUTS.items():
        target = None if out is None else strided("float32", shape, out, 0)
        call = planned("add", strided("float32", shape, x, 1), strided("float32", shape, y, 2), out=target)
        assert call.kernel.schedule.case == case, name
        found.add((case, call.kernel.spec.rank))
    assert {case for case, _ in found} == ELEMENTWISE - {"empty", "broadcast"} | {"lookup"}
    assert {(case, rank) for case, rank in found if rank > 2} == {
        *(("rows", 3), ("rows", 4), ("tile", 3), ("tile", 4), ("mixed", 3), ("mixed", 4))
    }


# strides of x and of y over (96, 160): bytes that are transposed in words, pairs that are read as they lie
TURNED: dict[str, tuple[Strides, Strides]] = {
    "transposed": ((160, 1), (1, 96)),
    "transposed, wide pitches": ((176, 1), (1, 112)),
    "transposed, the other one backwards": ((-160, -1), (1, 96)),
    "transposed, and a row": ((0, 1), (1, 96)),
    "transposed, and a column": ((1, 0), (1, 96)),
    "both transposed": ((1, 96), (1, 128)),
}


@pytest.mark.parametrize("dtype", ["int8", "bool", "float8_e4m3fn", "complex128"])
@pytest.mark.parametrize("name", TURNED)
def test_transposed_operands(name: str, dtype: str, interpreter: Interpreter) -> None:
    """In whole tiles, and at the edges of both axes; the index types take turns over the tiles."""
    first = list(TURNED).index(name)
    shape, op = (96, 160), "bitwise_or" if dtype == "bool" else "equal" if "float8" in dtype else "add"
    x, y = (strided(dtype, shape, strides, seed) for seed, strides in enumerate(TURNED[name]))
    out = np.empty(shape, "bool" if op == "equal" else dtype)
    call = planned(op, x, y, out=out)
    assert call.kernel.spec.case == "tile"
    assert ("load_transposed(" in call.kernel.source.text) == (dtype != "complex128")
    assert ("load_pairs_masked(" in call.kernel.source.text) == (dtype == "complex128")
    expected = getattr(np, op)(x, y)
    for turn, tile in enumerate((None, {"ROWS": 32, "COLUMNS": 64}, {"ROWS": 64, "COLUMNS": 64}), first):
        found = interpreter.call(op, x, y, out=out, index_bits=64 if turn % 2 else 32, tile=tile)
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "complex128"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_condition_is_transposed_beside_any_dtype(dtype: str, order: str, interpreter: Interpreter) -> None:
    """In whole tiles, and at the edges of both axes: those are masked, and bytes that are transposed come in pieces."""
    x, y = (np.array(strided(dtype, (112, 144), (144, 1), seed), order=order) for seed in range(2))
    condition = strided("bool", x.shape, (1, 112), 2)
    call = planned("where", condition, x, y, out=np.empty(x.shape, x.dtype))
    assert "load_transposed(" in call.kernel.source.text
    for tile in (None, {"ROWS": 32, "COLUMNS": 32}):
        assert interpreter.run(call, tile).tobytes() == np.where(condition, x, y).tobytes()


# shape, strides of x, of y and of the result: small elements whose rows begin anywhere
SKEWED_ROWS: dict[str, tuple[tuple[int, ...], Strides, Strides, Strides]] = {
    "odd": ((255, 381), (381, 1), (1, 255), (381, 1)),
    "every pitch another": ((250, 255), (257, 1), (1, 251), (258, 1)),
    "even, and of whole words": ((251, 254), (254, 1), (1, 252), (256, 1)),
    "to the end of memory": ((256, 256), (257, 1), (1, 256), (257, 1)),
    "a row": ((255, 251), (0, 1), (1, 255), (251, 1)),
    "a column": ((255, 251), (1, 0), (1, 257), (251, 1)),
    "windows": ((250, 255), (1, 1), (1, 251), (255, 1)),
    "backwards": ((255, 251), (-251, -1), (1, 255), (251, 1)),
    "one element": ((255, 251), (0, 0), (1, 255), (251, 1)),
    "of 3 axes": ((3, 251, 253), (63503, 253, 1), (63504, 1, 251), (63503, 253, 1)),
}


@pytest.mark.parametrize("name", SKEWED_ROWS)
def test_skewed_rows(name: str, interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in large loops; every word that is read has an element, and every element is written once."""
    monkeypatch.setattr(extents, "LARGE", 1)
    shape, x_strides, y_strides, out_strides = SKEWED_ROWS[name]
    first = list(SKEWED_ROWS).index(name)
    for dtype in (("uint8", "bfloat16"), ("float16", "bool"), ("int8", "float16"), ("float8_e4m3fn", "int16"))[
        first % 4
    ]:
        op = "bitwise_or" if dtype == "bool" else "equal" if "float8" in dtype else "add"
        x, y = strided(dtype, shape, x_strides, 1), strided(dtype, shape, y_strides, 2)
        out = strided("bool" if op == "equal" else dtype, shape, out_strides, 0)
        call = planned(op, x, y, out=out, index_bits=64 if name == "odd" else 32)
        assert call.kernel.skewed_rows
        assert call.kernel.source.text.count("load_skewed(") == 2
        assert "store_runs(" in call.kernel.source.text
        tiles = (None, {"ROWS": 32, "COLUMNS": 64})
        for tile in tiles if len(shape) == 2 else tiles[:1]:
            assert interpreter.run(call, tile).tobytes() == getattr(np, op)(x, y).tobytes()


# shape, strides of x and of the result: words of one array, whose rows begin anywhere
ONE_TURNED: dict[str, tuple[tuple[int, ...], Strides, Strides]] = {
    "odd": ((300, 255), (1, 300), (255, 1)),
    "every pitch another": ((250, 253), (1, 261), (257, 1)),
    "even": ((254, 250), (1, 254), (250, 1)),
    "rows that begin alike": ((251, 253), (1, 259), (264, 1)),
    "to the end of memory": ((256, 256), (1, 257), (257, 1)),
    "one tile and its next": ((256, 121), (1, 259), (123, 1)),
    "of 3 axes": ((3, 251, 253), (63504, 1, 251), (63503, 253, 1)),
}


@pytest.mark.parametrize("name", ONE_TURNED)
def test_words_of_one_array_are_stored_in_sectors(
    name: str, interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in large loops; nothing else is read, and every element is written once. The dtypes take turns."""
    monkeypatch.setattr(extents, "LARGE", 1)
    shape, strides, out_strides = ONE_TURNED[name]
    first = list(ONE_TURNED).index(name)
    dtype = ("float32", "int32", "uint32")[first % 3]
    x, out = strided(dtype, shape, strides, 1), strided(dtype, shape, out_strides, 0)
    for index_bits in (32, 64):
        call = planned("negative", x, out=out, index_bits=index_bits)
        assert call.kernel.skewed_rows == 32
        assert "load_in_banks(" in call.kernel.source.text
        tiles = (None, {"ROWS": 32, "COLUMNS": 64}, {"ROWS": 64, "COLUMNS": 16})
        for tile in tiles if index_bits == 32 else tiles[first % 3 :][:1]:
            assert interpreter.run(call, tile).tobytes() == np.negative(x).tobytes()


# shape, strides of the operand, which is transposed, and of the output; where rows begin differs along axes further out
SKEWED_COLUMNS: dict[str, tuple[tuple[int, ...], Strides, Strides]] = {
    "columns of two axes": ((516, 3, 48), (1, 516, 1600), (144, 48, 1)),
    "columns of one axis": ((516, 3, 64), (1, 516, 1600), (192, 64, 1)),
    "odd": ((515, 2, 48), (1, 515, 1088), (96, 48, 1)),
    "pitches": ((513, 2, 32), (1, 521, 1088), (112, 48, 1)),
    "of 4 axes": ((2, 516, 3, 16), (26052, 1, 516, 1600), (24768, 48, 16, 1)),
    "backwards": ((516, 3, 48), (1, -516, -1600), (144, 48, 1)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "float64", "complex128"])
@pytest.mark.parametrize("name", SKEWED_COLUMNS)
def test_columns_begin_where_bursts_of_memory_do(
    name: str, dtype: str, interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in huge loops; that they do is said to the compiler, which the interpreter checks. Alone, or beside others.

    The tiles take turns over the index types, from one dtype to the next.
    """
    monkeypatch.setattr(extents, "LARGE", 1)
    monkeypatch.setattr(extents, "HUGE", 1)
    shape, strides, out_strides = SKEWED_COLUMNS[name]
    x, out = strided(dtype, shape, strides, 1), strided(dtype, shape, out_strides, 0)
    tiles = (None, {"ROWS": 32, "COLUMNS": 64}, {"ROWS": 128, "COLUMNS": 16})
    first = list(SKEWED_COLUMNS).index(name) + x.itemsize.bit_length()
    for turn, index_bits in enumerate((32, 64), first):
        call = planned("negative", x, out=out, index_bits=index_bits)
        unit = min(64 * x.itemsize, 256)
        assert call.kernel.skewed_columns == unit
        if dtype != "complex128":
            assert f"[{unit}, {unit}]) + slot" in call.kernel.source.text
        assert interpreter.run(call, tiles[turn % 3]).tobytes() == np.negative(x).tobytes()
        y = strided(dtype, shape, (0,) * (len(shape) - 1) + (1,) if name == "pitches" else out_strides, 2)
        call = planned("add", y, x, out=out, index_bits=index_bits)
        assert call.kernel.skewed_columns == unit * (dtype != "complex128" or not call.kernel.merged)
        assert interpreter.run(call, tiles[turn % 2 * 2]).tobytes() == (y + x).tobytes()


@pytest.mark.parametrize("dtype", ["uint8", "bool"])
@pytest.mark.parametrize("pitches", [(512, 256), (528, 272)])
def test_bytes_are_transposed_in_tiles_of_256_rows(
    pitches: tuple[int, int], dtype: str, interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extents, "LARGE", 1)
    x, out = strided(dtype, (512, 256), (1, pitches[0]), 1), strided(dtype, (512, 256), (pitches[1], 1), 0)
    for index_bits in (32, 64):
        call = planned("bitwise_invert", x, out=out, index_bits=index_bits)
        assert call.kernel.source.tile[:3] == (256, 128, 16)
        assert interpreter.run(call).tobytes() == np.invert(x).tobytes()


# shape, strides of x and of y; the result is in C order, its columns and the axis before them are one
MERGED: dict[str, tuple[tuple[int, ...], Strides, Strides]] = {
    "first and last swapped of 3": ((70, 5, 90), (450, 90, 1), (1, 70, 350)),
    "odd": ((67, 7, 93), (651, 93, 1), (1, 67, 469)),
    "columns that fill no block": ((40, 33, 3), (99, 3, 1), (1, 40, 1320)),
    "repeated in the rows": ((70, 5, 90), (0, 90, 1), (1, 70, 350)),
    "repeated in an axis of the columns": ((70, 5, 90), (450, 90, 1), (1, 0, 70)),
    "repeated in the columns": ((70, 5, 90), (5, 1, 0), (1, 70, 350)),
    "one element": ((70, 5, 90), (0, 0, 0), (1, 70, 350)),
    "backwards": ((70, 5, 90), (-450, -90, -1), (1, -70, -350)),
    "pitches": ((70, 5, 90), (512, 90, 1), (1, 80, 480)),
    "of 4 axes": ((3, 40, 5, 90), (18000, 450, 90, 1), (18000, 1, 40, 200)),
    "three fastest axes": ((70, 5, 90), (1, 70, 350), (5, 1, 350)),
}  # fmt: skip
APART: dict[str, tuple[tuple[int, ...], Strides, Strides]] = {
    "a row": ((70, 5, 90), (0, 0, 1), (1, 70, 350)),
    "a pitch before the columns": ((70, 5, 90), (480, 96, 1), (1, 70, 350)),
    "columns that fill blocks": ((70, 5, 256), (1280, 256, 1), (1, 70, 350)),
}  # fmt: skip


@pytest.mark.parametrize("name", MERGED | APART)
def test_columns_of_two_axes(name: str, interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in large loops; bytes have columns of one axis. Dtypes, and whole or small tiles, take turns."""
    monkeypatch.setattr(extents, "LARGE", 1)
    shape, *strides = (MERGED | APART)[name]
    first = list(MERGED | APART).index(name)
    for turn, dtype in enumerate(("float32", "bfloat16", "complex64", "complex128", "uint8"), first):
        x, y = (strided(dtype, shape, each, seed) for seed, each in enumerate(strides))
        options = {"out": np.empty(shape, dtype_of(dtype)), "index_bits": 64 if turn % 2 else 32}
        call = planned("add", x, y, **options)
        assert call.kernel.spec.case in ("tile", "mixed")
        assert call.kernel.merged == (name in MERGED and dtype != "uint8")
        assert interpreter.run(call, SMALL if turn % 3 else None).tobytes() == (x + y).tobytes()


@pytest.mark.parametrize(("rows", "of_a_tile"), [(39, 16), (40, 64), (48, 16), (50, 16), (56, 64)])
def test_short_rows_of_a_copy_are_one_tile(
    rows: int, of_a_tile: int, interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of columns of two axes; 48 rows are three tiles that fill them, 50 are read one by one."""
    monkeypatch.setattr(extents, "LARGE", 1)
    x = np.random.default_rng(1).random((16, 32, rows), np.float32).transpose(1, 2, 0)
    out = np.empty((rows, 32, 16), np.float32).transpose(1, 0, 2)
    call = planned("identity", x, out=out)
    assert call.kernel.merged
    assert call.kernel.schedule.tile.rows == of_a_tile
    assert interpreter.run(call, None).tobytes() == x.tobytes()


@pytest.mark.parametrize("form", ["int32", "int64", "small blocks"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_layout(name: str, form: str, interpreter: Interpreter) -> None:
    """Sums of three dtypes, a selection and a comparison; the dtypes take turns over the layouts."""
    _, shape, x_strides, y_strides, out_strides = LAYOUTS[name]
    turn = list(LAYOUTS).index(name) + ["int32", "int64", "small blocks"].index(form) * 3
    options = {"index_bits": 64 if form == "int64" else None}
    tile = SMALL if form == "small blocks" else None

    def run(op: str, *operands: np.ndarray, out: str) -> np.ndarray:
        target = out if out_strides is None else strided(out, shape, out_strides, 0)
        return interpreter.call(op, *operands, out=target, tile=tile, **options)

    for dtype in [ADDED[(turn + k) % len(ADDED)] for k in range(3)]:
        x, y = strided(dtype, shape, x_strides, 1), strided(dtype, shape, y_strides, 2)
        assert run("add", x, y, out=dtype).tobytes() == (x + y).tobytes()
        condition = strided("bool", shape, x_strides, 3)
        assert run("where", condition, x, y, out=dtype).tobytes() == np.where(condition, x, y).tobytes()
    assert run("equal", x, y, out="bool").tobytes() == (x == y).tobytes()


@settings(max_examples=250, database=None, phases=[Phase.generate, Phase.shrink], derandomize=True,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(st.data())
def test_any_layout(interpreter: Interpreter, data: st.DataObject) -> None:
    """Views of every kind, into results of the library's layout and into targets of any."""
    shape = data.draw(shapes().filter(lambda shape: 0 not in shape))
    flat = quarters("int16", 4000, 4)
    x, y = (data.draw(views(shape)).of_numpy(flat) for _ in range(2))
    out = data.draw(st.none() | views(shape, writable=True))
    target = None if out is None else out.of_numpy(np.zeros(4000, np.int16))
    index_bits = data.draw(st.sampled_from([32, 64]))
    assert (interpreter.call("add", x, y, out=target, index_bits=index_bits, tile=SMALLER) == x + y).all()


# --- the ends of the index types ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2**31 - 1, 2**31 - 1023, 2**31 - 1024, 2**31, 2**31 + 5, 2**33 + 1])
def test_flat_blocks_at_the_end_of_int32(size: int, interpreter: Interpreter) -> None:
    """``start + BLOCK`` may reach 2**31, which is negative as an int32."""
    kernel = kernel_for(body_for("add", ["int8", "int8"]), (size,), [(1,), (1,), (1,)])
    assert kernel.spec.index_bits == (32 if size < 2**31 else 64)
    block, last = kernel.source.tile.columns, programs_of(kernel) - 1
    expected = [*range(block), *range(last * block, size)]
    assert interpreter.trace(kernel, [0, last]) == [expected] * 3


@pytest.mark.parametrize(
    ("rows", "columns"), [(2, 2**30 - 1), (65535, 32768), (2**16, 2**15), (3, 2**30), (2**22, 511)]
)
def test_lookup_at_the_end_of_int32(rows: int, columns: int, interpreter: Interpreter) -> None:
    kernel = kernel_for(body_for("add", ["int8", "int8"]), (rows, columns), [(columns, 1), (0, 1), (1, 0)])
    assert kernel.schedule.case == "lookup"
    block, last = kernel.source.tile.columns, programs_of(kernel) - 1
    out, row, column = interpreter.trace(kernel, [last])
    places = range(last * block, rows * columns)
    assert out == list(places)
    assert row == sorted({place % columns for place in places})
    assert column == sorted({place // columns for place in places})


@pytest.mark.parametrize("stride", [1, 2**30 - 1, 2**30, -(2**30), 2**31 - 1, 2**31, -(2**32) - 1])
@pytest.mark.parametrize("dtype", ["int8", "complex64", "complex128"])
def test_strides_at_the_end_of_int32(stride: int, dtype: str, interpreter: Interpreter) -> None:
    """A complex128 lies at twice its index in units of float64, which an int32 may not hold."""
    positive = body_for("positive", [dtype])
    one_axis = kernel_for(positive, (2,), [(1,), (stride,)])
    assert interpreter.trace(one_axis, [0]) == [[0, 1], sorted([0, stride])]
    tile = kernel_for(positive, (2, 40), [(40, 1), (stride, 41)])
    expected = sorted(stride * row + 41 * column for row in range(2) for column in range(40))
    assert interpreter.trace(tile, range(programs_of(tile)))[1] == expected
    tiles = kernel_for(positive, (2, 3, 5), [(15, 5, 1), (stride, 1, 3)])
    expected = sorted({stride * i + j + 3 * k for i in range(2) for j in range(3) for k in range(5)})
    assert interpreter.trace(tiles, range(programs_of(tiles)))[1] == expected


# --- that a wrong kernel is seen ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        (", mask=inside", "", "reads where no element is"),
        ("index < n0", "index < n0 - 1", "does not write each element once"),
        ("tl.program_id(0) * BLOCK", "tl.program_id(0) * (BLOCK - 1)", "does not write each element once"),
        ("x1 + index", "x1 + index * 2", "reads where no element is"),
    ],
)
def test_a_wrong_kernel_is_seen(right: str, wrong: str, message: str, interpreter: Interpreter) -> None:
    x = quarters("float32", 5000, 0)
    call = planned("add", x, x)
    source = call.kernel.source
    assert right in source.text
    broken = source._replace(text=source.text.replace(right, wrong))
    with pytest.raises(FaultError, match=message):
        interpreter.run(call._replace(kernel=call.kernel._replace(source=broken)))
