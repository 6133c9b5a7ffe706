"""How kernels touch memory, read in their PTX, with no GPU: in whole vectors, with scalar index arithmetic.

Every layout case has its promise; small elements keep it at any address, and so do bytes and pairs that are transposed.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from support.kernels import Kernel, Strides, body_for, compiled, flat_kernel, kernel_for, needs_triton

from tilearray_cuda.kernels.storage import ITEMSIZE

pytestmark = [needs_triton, pytest.mark.slow]
SQUARE, TRANSPOSED = (4096, 1), (1, 4096)

# --- how memory is touched ------------------------------------------------------------------------------------------

# name -> shape, strides (of out, x and y), how many inputs are read in vectors, element by element, and once a branch
TOUCHES: dict[str, tuple[tuple[int, ...], list[Strides], int, int, int]] = {
    "flat": ((100_000,), [(1,), (1,), (1,)], 2, 0, 0),
    "flat, one element repeated": ((100_000,), [(1,), (1,), (0,)], 1, 0, 1),
    "strided": ((100_000,), [(1,), (2,), (-2,)], 0, 2, 0),
    "pitches of 4 axes": (
        *((4, 5, 6, 2048), [(61440, 12288, 2048, 1), (80000, 16000, 2064, 1), (61440, 12288, 2048, 1)], 2, 0, 0),
    ),
    "transposed": ((4096, 4096), [SQUARE, SQUARE, TRANSPOSED], 2, 0, 0),
    "transposed, one backwards": ((4096, 4096), [SQUARE, (-4096, -1), TRANSPOSED], 1, 1, 0),
    "reversed, of 4 axes": (
        *((16, 32, 64, 48), [(98304, 3072, 48, 1), (98304, 3072, 48, 1), (1, 16, 512, 32768)], 2, 0, 0),
    ),
    "columns of two axes": (
        *((800, 400, 912), [(364800, 912, 1), (364800, 912, 1), (1, 832, 332800)], 2, 0, 0),
    ),
}  # fmt: skip
THREE_FASTEST_AXES = ((64, 64, 64), [(4096, 64, 1), (1, 64, 4096), (64, 1, 4096)])
DTYPES = ["float32", "int8", "bfloat16", "float64", "complex64"]

# name -> shape, strides, how many inputs are read in vectors, element by element, and as one element a row
LOOKS: dict[str, tuple[tuple[int, ...], list[Strides], int, int, int]] = {
    "row": ((4096, 4096), [SQUARE, SQUARE, (0, 1)], 2, 0, 0),
    "column": ((4096, 4096), [SQUARE, SQUARE, (1, 0)], 1, 0, 1),
    "row and column": ((4096, 4096), [SQUARE, (1, 0), (0, 1)], 1, 0, 1),
    "pitches": ((4096, 4096), [SQUARE, (5008, 1), (4112, 1)], 2, 0, 0),
    "pitch and gaps": ((4096, 4096), [SQUARE, (5008, 1), (8200, 2)], 1, 1, 0),
}
NARROW_ROW = ((4096, 40), [(40, 1), (40, 1), (0, 1)])


def touching(name: str, dtype: str, **options: Any) -> Kernel:
    apart = {"narrow row": NARROW_ROW, "three fastest axes": THREE_FASTEST_AXES}
    shape, strides, *_ = (apart | TOUCHES | LOOKS)[name]
    return kernel_for(body_for("add", [dtype, dtype]), shape, strides, **options)


def check_vectors(kernel: Kernel, arch: int, vectors: int, elements: int, once: int) -> None:
    """Without masks in vectors of 16 bytes, or of all that a thread has; with masks the same, element by element.

    Where extents are multiples of 4, so many elements have one mask. Bytes that are transposed are read in four parts
    of a tile, and with masks in a loop over eight.
    """
    code, tile = compiled(kernel, arch), kernel.source.tile
    size = ITEMSIZE[kernel.spec.operands[0].dtype]
    each = tile.rows * tile.columns // (32 * tile.warps)
    wide, transposed = min(16, each * size), "load_transposed(" in kernel.source.text
    read = Counter({wide: vectors * each * size // wide}) + Counter({size: elements * each + 2 * once})
    if transposed:
        in_parts = min(16, each // 4)
        read += Counter({in_parts: each // in_parts})
        read -= Counter({wide: each // wide})
    assert code.accesses("ld", masked=False) == read
    assert code.accesses("st", masked=False) == {wide: each * size // wide}
    in_masks = min(wide, 4 * size) if getattr(kernel.schedule, "fours", False) else size
    at_once = code.accesses("st", masked=True)[in_masks] * in_masks // size
    assert at_once in ((each // 8, each) if transposed else (each,))  # a short loop may be unrolled
    assert code.accesses("st", masked=True) == {in_masks: at_once * size // in_masks}
    read = Counter({in_masks: vectors * at_once * size // in_masks}) + Counter({size: elements * at_once})
    assert code.accesses("ld", masked=True) == read


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TOUCHES)
def test_loads_and_stores_are_vectors(name: str, dtype: str) -> None:
    kernel = touching(name, dtype)
    check_vectors(kernel, 90, *TOUCHES[name][2:])


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_three_orders_are_read_in_vectors(dtype: str) -> None:
    """Each along its own fastest axis, of which a thread has 16 bytes or 4 elements; with masks by elements."""
    kernel, size = touching("three fastest axes", dtype), ITEMSIZE[dtype]
    code, each = compiled(kernel), 32 * 16 * min(32, 128 // size) // 256
    reads, writes = code.accesses("ld", masked=False), code.accesses("st", masked=False)
    assert sum(width * count for width, count in reads.items()) == 2 * each * size
    assert min(reads) >= min(16, 4 * size)
    assert writes == {16: each * size // 16}
    assert code.accesses("ld", masked=True) == {size: 2 * each}
    assert code.accesses("st", masked=True) == {size: each}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", LOOKS)
def test_rows_are_looked_up_in_vectors(name: str, dtype: str) -> None:
    """In all three branches: within a row, over two rows, and with masks. A column is one element, or one of two."""
    kernel = touching(name, dtype)
    _, _, vectors, elements, columns = LOOKS[name]
    code, tile, size = compiled(kernel), kernel.source.tile, ITEMSIZE[dtype]
    each = tile.columns // (32 * tile.warps)
    count = each * size // 16
    assert code.accesses("ld", masked=False) == +Counter(
        {16: 2 * vectors * count, size: 2 * elements * each + 3 * columns}
    )
    assert code.accesses("ld", masked=True) == +Counter({16: vectors * count, size: elements * each + 2 * columns})
    assert code.accesses("st", masked=False) == {16: 2 * count}
    assert code.accesses("st", masked=True) == {16: count}


@pytest.mark.parametrize("arch", [80, 100])
@pytest.mark.parametrize("name", ["flat", "transposed"])
def test_loads_and_stores_are_vectors_on_other_architectures(name: str, arch: int) -> None:
    check_vectors(touching(name, "bfloat16", arch=arch), arch, *TOUCHES[name][2:])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["flat", "pitches", "transposed"])
def test_vectors_have_16_bytes(name: str, dtype: str) -> None:
    """A program has enough elements for that, of every size."""
    tile = touching(name, dtype).source.tile
    assert tile.rows * tile.columns * ITEMSIZE[dtype] // (32 * tile.warps) >= 16


def test_dtypes_of_two_widths() -> None:
    """The narrower operand is read in vectors as well."""
    code = compiled(flat_kernel("add", "float16", "float32"))
    assert set(code.accesses("ld", masked=False)) == {8, 16} or set(code.accesses("ld", masked=False)) == {16}
    assert set(code.accesses("st", masked=False)) == {16}


@pytest.mark.parametrize("name", ["flat", "transposed"])
def test_an_unaligned_operand_is_read_by_elements_alone(name: str) -> None:
    code = compiled(touching(name, "float32", aligned=(True, True, False)))
    aligned = compiled(touching(name, "float32"))
    wide = aligned.accesses("ld", masked=False)[16]
    assert code.accesses("ld", masked=False) == {16: wide // 2, 4: 2 * wide}
    assert code.accesses("st", masked=False) == aligned.accesses("st", masked=False)
    unaligned_out = compiled(touching(name, "float32", aligned=(False, True, True)))
    assert unaligned_out.accesses("ld", masked=False) == {16: wide}
    assert set(unaligned_out.accesses("st", masked=False)) == {4}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(100_000,), (4096, 4096)])
def test_many_unaligned_operands_are_read_in_turn_by_the_threads_of_a_warp(dtype: str, shape: tuple[int, ...]) -> None:
    """Of three runs between vectors all accesses are words, and threads have several; of two, stores are vectors."""
    body, size = body_for("fma", [dtype] * 3), ITEMSIZE[dtype]
    strides = [(1,)] * 4 if len(shape) == 1 else [(4096, 1), *[(4112, 1)] * 3]
    kernel = kernel_for(body, shape, strides, aligned=(True, False, False, False))
    code = compiled(kernel)
    assert {*code.accesses("ld", masked=False), *code.accesses("st", masked=False)} == {size}
    assert kernel.source.tile.of_a_thread >= 8
    two = compiled(kernel_for(body, shape, strides, aligned=(True, True, False, False)))
    assert set(two.accesses("st", masked=False)) == {16}


# name -> shape, strides, and how many inputs are runs
RUNS: dict[str, tuple[tuple[int, ...], list[Strides], int]] = {
    "flat": ((100_000,), [(1,), (1,), (1,)], 2),
    "backwards": ((100_000,), [(1,), (1,), (-1,)], 2),
    "rows": ((4096, 4095), [(4095, 1), (4096, 1), (0, 1)], 2),
    "rows backwards": ((4096, 4095), [(4095, 1), (-4095, -1), (0, -1)], 2),
    "outer": ((4096, 4095), [(4095, 1), (1, 0), (0, 1)], 1),
}


@pytest.mark.parametrize("dtype", ["int8", "bool", "float16", "bfloat16"])
@pytest.mark.parametrize("name", RUNS)
def test_misaligned_runs_of_small_elements_are_read_in_vectors(name: str, dtype: str) -> None:
    """In two for each of the result's, without shared memory; over the end of a row, too, but for one vector.

    What has an address and a mask of its own is the last block, and the 16 elements around the end of a row.
    """
    shape, strides, runs = RUNS[name]
    body = body_for("bitwise_or" if dtype == "bool" else "add", [dtype] * 2)
    kernel = kernel_for(body, shape, strides, aligned=(True, False, False))
    code, each, size, rows = compiled(kernel), kernel.source.tile.of_a_thread, ITEMSIZE[dtype], len(shape) - 1
    vectors, columns = each * size // 16, 2 - runs
    at_once = code.accesses("st", masked=True)[size]
    assert at_once - rows in (each // 8, each)
    assert code.accesses("ld", masked=False) == +Counter({16: (1 + rows) * 2 * vectors * runs, size: 3 * columns})
    assert code.accesses("ld", masked=True) == +Counter({size: at_once * runs + 2 * columns})
    assert code.accesses("st", masked=False) == {16: vectors}
    assert code.accesses("st", masked=True) == +Counter({16: rows * vectors, size: at_once})
    assert code.shared == 0


@pytest.mark.parametrize("dtype", ["int8", "float16"])
def test_dense_rows_are_read_in_vectors_beside_runs(dtype: str) -> None:
    """With a mask of vectors where a block goes on in the next row."""
    kernel = kernel_for(body_for("add", [dtype] * 2), (4096, 4095), [(4095, 1), (4095, 1), (0, 1)])
    code, vectors = compiled(kernel), kernel.source.tile.of_a_thread * ITEMSIZE[dtype] // 16
    assert code.accesses("ld", masked=False) == {16: vectors + 2 * 2 * vectors}
    assert code.accesses("ld", masked=True)[16] == vectors


@pytest.mark.parametrize(
    ("dtype", "columns", "passes"),
    [("uint8", 4096, True), ("uint8", 8191, True), ("float16", 4095, True), ("float32", 4096, False)],
)
def test_small_elements_of_an_outer_sum_pass_the_cache(dtype: str, columns: int, passes: bool) -> None:
    """All of them do; others that stay would be in their way. What is read as well makes programs large enough."""
    outer, row = (
        kernel_for(body_for("add", [dtype] * 2), (4096, columns), [(columns, 1), first, (0, 1)])
        for first in ((1, 0), (columns, 1))
    )
    stores = [line for line in compiled(outer).ptx.splitlines() if "st.global" in line]
    assert {".cs" in line for line in stores} == {passes}
    assert ".cs" not in compiled(row).ptx
    assert outer.source.tile.columns >= row.source.tile.columns
    assert (outer.source.tile.columns == 4096) == (dtype == "uint8")


@pytest.mark.parametrize("name", ["add", "subtract"])
def test_bytes_are_added_four_at_once(name: str) -> None:
    """In vectors and in runs, no byte by itself but where there are masks."""
    for aligned in (True, (True, False, False)):
        kernel = flat_kernel(name, "uint8", "uint8", aligned=aligned)
        code, words = compiled(kernel), kernel.source.tile.of_a_thread // 4
        at_once = code.accesses("st", masked=True)[1]
        assert 2 * words <= len(re.findall(r"lop3\.b32", code.ptx)) <= words + at_once // 2
        assert not code.count(r"(add|sub)\.s16|shr\.\S*")


@pytest.mark.parametrize("name", ["add", "subtract"])
def test_repeated_bytes_are_added(name: str) -> None:
    """Two repeated elements are a block of one each, which is no word."""
    body = body_for(name, ["uint8"] * 2)
    assert compiled(kernel_for(body, (100_000,), [(1,), (0,), (0,)])).accesses("ld", masked=False) == {1: 4}


@pytest.mark.parametrize("dtype", ["uint8", "float16"])
def test_blocks_of_a_misaligned_target_begin_where_its_vectors_do(dtype: str) -> None:
    kernel = flat_kernel("add", dtype, dtype, aligned=(False, True, False))
    code, vectors = compiled(kernel), kernel.source.tile.of_a_thread * ITEMSIZE[dtype] // 16
    assert kernel.schedule.lead == 16 // ITEMSIZE[dtype] - 1
    assert code.accesses("st", masked=False) == {16: vectors}
    assert code.accesses("ld", masked=False) == {16: 2 * 2 * vectors}


def test_larger_elements_of_misaligned_rows_are_read_one_by_one() -> None:
    assert "load_run" not in flat_kernel("add", "float32", "float32", aligned=False).source.text


def test_bytes_are_transposed_in_words() -> None:
    """Single bytes pass through shared memory in the masked branch alone, an eighth of a tile at a time."""
    kernel = touching("transposed", "int8")
    code, each = compiled(kernel), kernel.source.tile.of_a_thread
    assert code.count(r"st\.shared\S*32") >= each // 4
    assert code.count(r"(st|ld)\.shared\S*8") <= 2 * (each // 8)


@pytest.mark.parametrize("dtype", ["int8", "bool", "float16", "bfloat16"])
def test_small_elements_of_odd_pitches_are_transposed_in_words(dtype: str) -> None:
    """Five blocks of words for four, and each from two; of the other operand too; the result as one a word."""
    name, size = "bitwise_or" if dtype == "bool" else "add", ITEMSIZE[dtype]
    kernel = kernel_for(body_for(name, [dtype] * 2), (2047, 2049), [(2049, 1), (2049, 1), (1, 2047)])
    code, words = compiled(kernel), kernel.source.tile.of_a_thread * size // 4
    assert kernel.skewed_rows
    assert kernel.schedule.lead == 4 // size - 1
    assert code.accesses("ld", masked=False) == {4: words * 5 // 4 + words}
    assert code.accesses("ld", masked=True)[4] == words * 5 // 4 + words
    assert code.accesses("st", masked=False) == {4: words}
    assert code.count(r"st\.shared\S*v4\S*32") >= words // 4


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint32"])
@pytest.mark.parametrize("pitch", [2047, 2046])
def test_words_of_one_transposed_array_are_stored_in_sectors(dtype: str, pitch: int) -> None:
    """They pass through shared memory once, each by itself, if at the edges at all, and are stored in vectors."""
    kernel = kernel_for(body_for("add", [dtype, 1]), (pitch, 2049), [(pitch + 4, 1), (1, pitch)])
    code, each, pieces = compiled(kernel), kernel.source.tile.of_a_thread, kernel.source.tile.of_a_thread // 8
    assert (kernel.skewed_rows, kernel.schedule.lead, kernel.schedule.overlap) == (32, 7, 8)
    assert code.accesses("ld", masked=False) == {4: each}
    assert sum(code.accesses("st", masked=kind)[16] for kind in (False, True)) == each // 4
    assert each <= code.count(r"st\.shared\S*32") == code.count(r"ld\.shared\S*32") <= each + pieces


@pytest.mark.parametrize("columns", [800, 768])
@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "float64", "complex128"])
def test_columns_that_begin_where_bursts_do_are_read_and_stored_in_vectors(dtype: str, columns: int) -> None:
    """At the edges as well, as far as rows of 4 elements are vectors."""
    strides = [(400 * columns, columns, 1), (1, 900, 360_000)]
    kernel = kernel_for(body_for("identity", [dtype]), (900, 400, columns), strides)
    code, size = compiled(kernel), ITEMSIZE[dtype]
    vectors = kernel.source.tile.of_a_thread * size // 16
    assert (kernel.merged, kernel.skewed_columns) == (columns == 800, min(64 * size, 256))
    assert code.accesses("ld", masked=False) == code.accesses("st", masked=False) == {16: vectors}
    edge = min(4 * size, 16)
    assert code.accesses("ld", masked=True) == {edge: vectors * 16 // edge}
    assert {*code.accesses("st", masked=True)} <= {edge, 16}
    if columns == 800 and dtype != "complex128":
        both = kernel_for(body_for("add", [dtype] * 2), (900, 400, columns), [strides[0], *strides])
        assert both.skewed_columns == kernel.skewed_columns
        vectors_of_both = both.source.tile.of_a_thread * size // 16
        assert compiled(both).accesses("ld", masked=False) == {16: 2 * vectors_of_both}
        assert compiled(both).accesses("st", masked=False) == {16: vectors_of_both}
        assert compiled(both).ptx.count("evict_last.L2::cache_hint") == vectors_of_both * (16 // edge + 1)
    assert code.shared == kernel.source.tile.rows * kernel.source.tile.columns * size


def test_columns_begin_where_bursts_do_only_if_rows_do_not() -> None:
    """256 bytes are 32 float64, and 16 complex128; and the tiles of others are as they were."""
    dense = (320_000, 800, 1)
    for rows, units in ((900, (128, 256, 256, 256)), (912, (128, 256, 256, 0)), (928, (128, 256, 0, 0))):
        for dtype, unit in zip(("float16", "float32", "float64", "complex128"), units, strict=True):
            kernel = kernel_for(body_for("identity", [dtype]), (rows, 400, 800), [dense, (1, rows, 400 * rows)])
            assert kernel.skewed_columns == unit, (rows, dtype)
    for rows in (516, 592, 624):
        strides = [dense, (1, rows, 400 * rows)]
        kernels = [kernel_for(body_for("identity", ["uint8"]), (rows, 400, 800), strides)]
        kernels.append(kernel_for(body_for("identity", ["float16"]), (rows, 400, 800), strides, aligned=False))
        for kernel in kernels:
            assert kernel.skewed_columns == 0
            assert kernel.source.tile.rows <= 128
    half = [
        kernel_for(body_for(name, ["float16"]), (900, 400, 800), [dense, (1, 900, 360_000)])
        for name in ("identity", "sin")
    ]
    assert [kernel.source.tile.of_a_thread for kernel in half] == [128, 64], "what is computed needs registers"


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
def test_loads_of_one_transposed_array_are_kept_in_the_cache(dtype: str) -> None:
    """Not of arrays that the cache has room for, nor beside another one, nor where nothing is transposed."""
    n, body, sums = 16384, body_for("identity", [dtype]), body_for("add", [dtype] * 2)
    huge = kernel_for(body, (n, n), [(n, 1), (1, n)])
    loads = [line for line in compiled(huge).ptx.splitlines() if "ld.global" in line]
    assert any("L2::cache_hint" in line for line in loads)
    assert "evict_last" in compiled(huge).ptx
    others = [
        kernel_for(body, (4096, 4096), [SQUARE, TRANSPOSED]),
        kernel_for(sums, (n, n), [(n, 1), (n, 1), (1, n)]),
        kernel_for(body, (n, n), [(n, 1), (n + 16, 1)]),
    ]
    assert not any("evict_last" in compiled(other).ptx for other in others)


def test_pairs_are_read_along_the_axis_in_which_they_are_dense() -> None:
    """Every operand in its own layout, so that they meet in shared memory."""
    for name in ("transposed", "three fastest axes"):
        code = compiled(touching(name, "complex128"))
        assert set(code.accesses("ld", masked=False)) == {16}
        assert set(code.accesses("st", masked=False)) == {16}
        assert code.shared > 0


def test_odd_pitches_are_read_by_elements() -> None:
    """A vector would be misaligned in every other row, which is a fault."""
    odd = kernel_for(body_for("add", ["float32"] * 2), (4095, 4095), [(4095, 1), (4095, 1), (1, 4095)])
    windows = kernel_for(
        body_for("add", ["float32"] * 2), (16, 64, 2048), [(131072, 2048, 1), (1, 5008, 1), (131072, 2048, 1)]
    )
    for kernel in (odd, windows):
        assert set(compiled(kernel).accesses("ld", masked=False)) == {4}


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "complex64", "complex128"])
def test_tiles_fit_the_shared_memory_that_needs_no_asking(dtype: str) -> None:
    assert compiled(touching("transposed", dtype)).shared <= 48 * 1024


@pytest.mark.parametrize("dtype", DTYPES)
def test_boxes_fit_the_shared_memory_of_every_gpu(dtype: str) -> None:
    """A block may ask for 64 KiB of the smallest, an sm_75."""
    assert compiled(touching("three fastest axes", dtype)).shared <= 64 * 1024


# --- index arithmetic -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*TOUCHES, *LOOKS, "narrow row"])
def test_int32_indices_are_never_divided_in_64_bits(name: str) -> None:
    """And a block divides once for each of its axes but the first; in narrow rows every element does.

    So does every vector that is transposed, where columns or rows are of two axes.
    """
    kernel = touching(name, "float32")
    assert kernel.spec.index_bits == 32
    code = compiled(kernel)
    assert not code.count(r"(div|rem)\.[su]64")
    tile = kernel.source.tile
    elements = tile.of_a_thread if name == "narrow row" else 0
    vectors = tile.of_a_thread // 4 * (kernel.merged + getattr(kernel.schedule, "rows_merged", False))
    divisions = elements or vectors + {"flat": 0, "strided": 0, "lookup": 1}.get(kernel.schedule.case, kernel.spec.rank)
    assert code.count(r"(div|rem)\.[su]32") <= divisions


def test_int64_indices_are() -> None:
    """What the test above looks for is there, where it is needed."""
    code = compiled(touching("transposed", "float32", index_bits=64))
    assert code.count(r"(div|rem)\.[su]64")
