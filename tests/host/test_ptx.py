"""What the compiler makes of the kernels, read in their PTX, with no GPU: for sm_80, sm_90 and sm_100.

Every layout case promises how memory is touched (whole vectors, scalar index arithmetic), and every operation how it
rounds. A sample of all operations and dtypes is compiled, too; ``TILEARRAY_COMPILE_ALL=1`` compiles all of them, for
all three architectures, in some minutes.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import pytest
from formats import ARITHMETIC, dtype_of
from kernels import Kernel, Strides, body_for, compiled, flat_kernel, kernel_for, needs_triton, operands_of
from rules import RULES, TRUNCATING
from strategies import accepted

from tilearray import ops
from tilearray.body import Body
from tilearray.errors import TileArrayError
from tilearray.gather import _gathering, _placing, _scattering
from tilearray.ramps import _spacing, _stepping
from tilearray_cuda import compile as compiling
from tilearray_cuda.dtypes import ITEMSIZE

pytestmark = needs_triton
NOT_ON_CUDA = {
    row.name
    for row in ops.PUBLIC.values()
    if "complex" in row.kinds and "complex" not in row.triton and "any" not in row.triton
}
"""Complex functions that the README lists as missing."""

ARCHITECTURES = [80, 90, 100]
ALL = bool(os.environ.get("TILEARRAY_COMPILE_ALL"))

# --- every architecture ---------------------------------------------------------------------------------------------

SQUARE, TRANSPOSED = (4096, 1), (1, 4096)
REPRESENTATIVE = {
    "add, flat": (("add", "float32", "float32"), (10_000,), [(1,)] * 3),
    "add, tile": (("add", "bfloat16", "bfloat16"), (4096, 4096), [SQUARE, SQUARE, TRANSPOSED]),
    "add of 8 bits, lookup": (("add", "float8_e4m3fn", "float8_e5m2"), (4096, 4096), [SQUARE, SQUARE, (0, 1)]),
    "complex quotient": (("divide", "complex64", "complex64"), (10_000,), [(1,)] * 3),
    "libdevice": (("tanh", "float32"), (10_000,), [(1,)] * 2),
    "integers": (("floor_divide", "int64", "int64"), (10_000,), [(1,)] * 3),
    "powers": (("pow", "int32", "int32"), (10_000,), [(1,)] * 3),
    "floats": (("remainder", "float64", "float64"), (10_000,), [(1,)] * 3),
    "selection": (("where", "bool", "complex128", "complex128"), (10_000,), [(1,)] * 4),
    "number": (("add", "float16", 1.5), (10_000,), [(1,)] * 2),
}


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", REPRESENTATIVE)
def test_cubin(name: str, arch: int) -> None:
    """An ELF for the architecture, whose entry takes the arguments of the source and two pointers that stay zero."""
    (op, *operands), shape, strides = REPRESENTATIVE[name]
    kernel = kernel_for(body_for(op, operands), shape, strides, arch=arch)
    code = compiled(kernel, arch)
    assert code.cubin[:4] == b"\x7fELF"
    assert f".target sm_{arch}" in code.ptx
    assert f".entry {kernel.source.name}(" in code.ptx
    assert code.ptx.count(".param ") == len(kernel.source.arguments) + 2
    assert code.warps == kernel.source.tile.warps
    assert f".reqntid {32 * code.warps}" in code.ptx


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("target", ["float8_e4m3fn", "float8_e5m2"])
def test_8_bit_floats_need_no_instructions_of_their_own(target: str, arch: int) -> None:
    """They are converted by integer arithmetic, the same everywhere: sm_80 has nothing else."""
    for operands, out in [(("float64",), target), ((target,), "bfloat16")]:
        code = compiled(flat_kernel("astype", *operands, out=out, arch=arch), arch)
        assert not code.count(r"cvt\S*\.e[45]m[32]\S*")


def test_compiling_twice_gives_the_same_code() -> None:
    """So that a cubin can be told from another by what it was made of."""
    kernel = flat_kernel("add", "float32", "float32")
    first, second = (compiling.compile_source(kernel.source, 90) for _ in range(2))
    assert first == second


# --- how memory is touched ------------------------------------------------------------------------------------------

# name -> shape, strides (of out, x and y), how many inputs are read in vectors, element by element, and once a branch
TOUCHES: dict[str, tuple[tuple[int, ...], list[Strides], int, int, int]] = {
    "flat": ((100_000,), [(1,), (1,), (1,)], 2, 0, 0),
    "flat, one element repeated": ((100_000,), [(1,), (1,), (0,)], 1, 0, 1),
    "strided": ((100_000,), [(1,), (2,), (-1,)], 0, 2, 0),
    "pitches of 4 axes": (
        *((4, 5, 6, 2048), [(61440, 12288, 2048, 1), (80000, 16000, 2064, 1), (61440, 12288, 2048, 1)], 2, 0, 0),
    ),
    "transposed": ((4096, 4096), [SQUARE, SQUARE, TRANSPOSED], 2, 0, 0),
    "transposed, one backwards": ((4096, 4096), [SQUARE, (-4096, -1), TRANSPOSED], 1, 1, 0),
    "reversed, of 4 axes": (
        *((16, 32, 64, 48), [(98304, 3072, 48, 1), (98304, 3072, 48, 1), (1, 16, 512, 32768)], 2, 0, 0),
    ),
    "three fastest axes": ((64, 64, 64), [(4096, 64, 1), (1, 64, 4096), (64, 1, 4096)], 1, 1, 0),
}  # fmt: skip
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
    shape, strides, *_ = NARROW_ROW if name == "narrow row" else (TOUCHES | LOOKS)[name]
    return kernel_for(body_for("add", [dtype, dtype]), shape, strides, **options)


def check_vectors(kernel: Kernel, arch: int, vectors: int, elements: int, once: int) -> None:
    """Without masks in vectors of 16 bytes, or of all that a thread has; with masks the same, element by element.

    Bytes that are turned are read in four parts of a tile, and with masks in a loop over eight.
    """
    code, tile = compiled(kernel, arch), kernel.source.tile
    size = ITEMSIZE[kernel.spec.operands[0].dtype]
    each = tile.rows * tile.columns // (32 * tile.warps)
    wide, turned = min(16, each * size), "load_turned(" in kernel.source.text
    read = Counter({wide: vectors * each * size // wide}) + Counter({size: elements * each + 2 * once})
    if turned:
        in_parts = min(16, each // 4)
        read += Counter({in_parts: each // in_parts})
        read -= Counter({wide: each // wide})
    assert code.accesses("ld", masked=False) == read
    assert code.accesses("st", masked=False) == {wide: each * size // wide}
    at_once = code.accesses("st", masked=True)[size]
    assert at_once in ((each // 8, each) if turned else (each,))  # a short loop may be unrolled
    assert code.accesses("st", masked=True) == {size: at_once}
    assert code.accesses("ld", masked=True) == +Counter({size: (vectors + elements) * at_once})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TOUCHES)
def test_loads_and_stores_are_vectors(name: str, dtype: str) -> None:
    kernel = touching(name, dtype)
    check_vectors(kernel, 90, *TOUCHES[name][2:])


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


@pytest.mark.parametrize("dtype", ["int8", "bool", "float16", "bfloat16"])
def test_misaligned_runs_of_small_elements_are_read_in_vectors(dtype: str) -> None:
    """In two for each of the result's, without shared memory; in a lookup where a block lies in one row."""
    name, size = "bitwise_or" if dtype == "bool" else "add", ITEMSIZE[dtype]
    flat = flat_kernel(name, dtype, dtype, aligned=(True, False, False))
    code, each = compiled(flat), flat.source.tile.of_a_thread
    assert code.accesses("ld", masked=False) == {16: 2 * 2 * each * size // 16}
    assert code.accesses("st", masked=False) == {16: each * size // 16}
    assert code.shared == 0
    rows = kernel_for(body_for(name, [dtype] * 2), (4096, 4095), [(4095, 1), (4096, 1), (0, 1)])
    code, each = compiled(rows), rows.source.tile.of_a_thread
    assert code.accesses("ld", masked=False) == {16: 2 * 2 * each * size // 16, size: 2 * each}
    assert code.accesses("ld", masked=True)[size] <= 2 * each
    assert code.shared == 0


@pytest.mark.parametrize("dtype", ["uint8", "float16"])
def test_blocks_of_a_misaligned_target_begin_where_its_vectors_do(dtype: str) -> None:
    kernel = flat_kernel("add", dtype, dtype, aligned=(False, True, False))
    code, vectors = compiled(kernel), kernel.source.tile.of_a_thread * ITEMSIZE[dtype] // 16
    assert kernel.spec.lead == 16 // ITEMSIZE[dtype] - 1
    assert code.accesses("st", masked=False) == {16: vectors}
    assert code.accesses("ld", masked=False) == {16: 2 * 2 * vectors}


def test_larger_elements_of_misaligned_rows_are_read_one_by_one() -> None:
    assert "load_run" not in flat_kernel("add", "float32", "float32", aligned=False).source.text


def test_bytes_are_turned_in_words() -> None:
    """Single bytes pass through shared memory in the masked branch alone, an eighth of a tile at a time."""
    kernel = touching("transposed", "int8")
    code, each = compiled(kernel), kernel.source.tile.of_a_thread
    assert code.count(r"st\.shared\S*32") >= each // 4
    assert code.count(r"(st|ld)\.shared\S*8") <= 2 * (each // 8)


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
    for name in ("transposed", "three fastest axes"):
        assert compiled(touching(name, dtype)).shared <= 48 * 1024


# --- index arithmetic -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*TOUCHES, *LOOKS, "narrow row"])
def test_int32_indices_are_never_divided_in_64_bits(name: str) -> None:
    """And a block divides once for each of its axes but the first; in narrow rows every element does."""
    kernel = touching(name, "float32")
    assert kernel.spec.index_bits == 32
    code = compiled(kernel)
    assert not code.count(r"(div|rem)\.[su]64")
    tile = kernel.source.tile
    elements = tile.columns // (32 * tile.warps) if name == "narrow row" else 0
    divisions = elements or {"flat": 0, "strided": 0, "lookup": 1}.get(kernel.spec.case, kernel.spec.rank)
    assert code.count(r"(div|rem)\.[su]32") <= divisions


def test_int64_indices_are() -> None:
    """What the test above looks for is there, where it is needed."""
    code = compiled(touching("transposed", "float32", index_bits=64))
    assert code.count(r"(div|rem)\.[su]64")


# --- rounding -------------------------------------------------------------------------------------------------------


def product_and_difference(dtype: str) -> Body:
    """``x * y - z``, which invites contraction."""
    inputs = tuple(("array", dtype) for _ in range(3))
    nodes = (
        *(("input", position) for position in range(3)),
        ("call", "multiply", (0, 1), dtype, "{x} * {y}"),
        ("call", "subtract", (3, 2), dtype, "{x} - {y}"),
    )
    return Body(inputs, nodes, (4,), (dtype,), (None,) * 3, dtype_of(dtype))


def test_nothing_is_contracted_between_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = [kernel_for(product_and_difference(dtype), (10_000,), [(1,)] * 4) for dtype in ("float32", "float64")]
    for kernel in kernels:
        assert not compiled(kernel).count(r"fma\S*")
    monkeypatch.setattr(compiling, "OPTIONS", (("enable_fp_fusion", True),))
    assert "fma.rn.f32" in compiling.compile_source(kernels[0].source, 90).ptx


EXACT = [
    ("add", 2),
    ("subtract", 2),
    ("multiply", 2),
    ("square", 1),
    ("negative", 1),
    ("abs", 1),
    ("floor", 1),
    ("maximum", 2),
]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_exact_operations_round_as_ieee_754_says(dtype: str) -> None:
    """No fma, no flushing of denormals, and no subtraction from zero, which would lose the sign of a zero."""
    for name, arity in EXACT:
        if dtype not in accepted(name) or (name, dtype) == ("abs", "complex64"):
            continue
        code = compiled(flat_kernel(name, *[dtype] * arity))
        assert not code.count(r"fma\S*"), name
        assert ".ftz" not in code.ptx, name
        assert ".approx" not in code.ptx, name
        if name == "negative":
            assert not code.count(r"sub\S*\.[bf]\d*")


@pytest.mark.parametrize(
    ("name", "operands", "instruction"),
    [
        ("divide", ("float32", "float32"), "div.rn.f32"),
        ("divide", ("float16", "float16"), "div.rn.f32"),
        ("divide", ("int64", "int8"), "div.rn.f32"),
        ("divide", ("float64", "float64"), "div.rn.f64"),
        ("sqrt", ("float32",), "sqrt.rn.f32"),
        ("sqrt", ("bfloat16",), "sqrt.rn.f32"),
        ("sqrt", ("float64",), "sqrt.rn.f64"),
        ("divide", ("complex64", "complex64"), "div.rn.f32"),
        ("divide", ("complex128", "complex128"), "div.rn.f64"),
    ],
)
def test_quotients_and_roots_are_correctly_rounded(name: str, operands: tuple[str, ...], instruction: str) -> None:
    code = compiled(flat_kernel(name, *operands))
    divisions = Counter(
        line.split()[0] for line in code.ptx.splitlines() if line.strip()[:4] in ("div.", "sqrt", "rcp.", "rsqr")
    )
    assert set(divisions) == {instruction}
    assert ".ftz" not in code.ptx
    assert ".approx" not in code.ptx
    assert not code.count(r"fma\S*")


@pytest.mark.parametrize(
    ("source", "target", "instructions"),
    [
        ("float32", "bfloat16", {"cvt.rn.bf16.f32", "cvt.rn.bf16x2.f32"}),
        ("float32", "float16", {"cvt.rn.f16.f32", "cvt.rn.f16x2.f32"}),
        ("int64", "float32", {"cvt.rn.f32.s64"}),
        ("uint64", "float64", {"cvt.rn.f64.u64"}),
        ("float64", "float32", {"cvt.rn.f32.f64"}),
        ("float32", "int32", {"cvt.rzi.s32.f32"}),
    ],
)
def test_conversions_round_to_nearest_or_toward_zero(source: str, target: str, instructions: set[str]) -> None:
    code = compiled(flat_kernel("astype", source, out=target))
    floats = {word for line in code.ptx.splitlines() if (word := (line.split() or [""])[0]).startswith("cvt.r")}
    assert floats == instructions


# --- all of them ----------------------------------------------------------------------------------------------------


def everything() -> list[tuple[str, str, str]]:
    """Every operation on every dtype, under both divisions of integers; and every cast, as ``dtype to dtype``."""
    found = [
        (name, dtype, semantics)
        for name in RULES
        for dtype in accepted(name)
        if dtype in ARITHMETIC
        for semantics in ("array-api", "triton")
        if semantics == "array-api" or name in TRUNCATING
    ]
    return found + [("astype", f"{source} to {target}", "array-api") for source in ARITHMETIC for target in ARITHMETIC]


def possible(name: str, dtype: str, semantics: str) -> Kernel | None:
    """The kernel, unless the library refuses the call, or says that it is not there yet."""
    try:
        if name == "astype":
            source, _, target = dtype.partition(" to ")
            return flat_kernel(name, source, out=target)
        return flat_kernel(name, *operands_of(name, dtype), semantics=semantics)
    except TileArrayError:
        return None
    except NotImplementedError:
        if not (dtype.startswith("complex") and name in NOT_ON_CUDA):
            raise
        return None


CHOSEN = everything() if ALL else random.Random(3).sample(everything(), 90)


@pytest.mark.parametrize(("name", "dtype", "semantics"), CHOSEN)
def test_compiles(name: str, dtype: str, semantics: str) -> None:
    for arch in ARCHITECTURES if ALL else [90]:
        kernel = possible(name, dtype, semantics)
        if kernel is None:
            continue
        code = compiled(kernel, arch)
        assert code.cubin[:4] == b"\x7fELF"


GATHERS = {
    "gather": (_gathering("float32", ("int64",), True), [(1,), (0,), (1,), (0,)]),
    "gather, two indices": (_gathering("complex128", ("uint8", "uint64"), False), [(1,), (0,), (1,), (1,)]),
    "gather rows": (_gathering("bfloat16", ("int32",), True), [(512, 1), (0, 1), (1, 0), (0, 0)]),
    "scatter rows": (_scattering("bool", False), [(0, 1), (512, 1), (1, 0)]),
    "scatter a number": (_scattering("float8_e4m3fn", True), [(0,), (1,)]),
    "positions": (_placing(("int16", "int64"), True), [(1,), (1,), (0,), (1,), (0,)]),
    "arange": (_stepping("int64", "bfloat16"), [(1,)]),
    "linspace": (_spacing("float16", False), [(1,)]),
}


@pytest.mark.parametrize("arch", [80, 90, 100])
@pytest.mark.parametrize("name", GATHERS)
def test_kernels_that_move_or_make_elements_compile(name, arch):
    body, strides = GATHERS[name]
    shape = (4096,) if len(strides[0]) == 1 else (600, 512)
    code = compiled(kernel_for(body, shape, strides, arch=arch), arch)
    assert code.cubin.startswith(b"\x7fELF")
    assert not code.count(r"div\.[su]64")
