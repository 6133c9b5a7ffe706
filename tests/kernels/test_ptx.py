"""What the compiler makes of the kernels, read in their PTX, with no GPU: for sm_80, sm_90 and sm_100.

Every operation promises how it rounds; how memory is touched is in test_ptx_memory.py. A sample of all operations and
dtypes is compiled, too; ``TILEARRAY_COMPILE_ALL=1`` compiles all of them, for all three architectures, in some minutes.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import replace

import pytest
from support.drawing import accepted
from support.kernels import Kernel, body_for, compiled, flat_kernel, kernel_for, needs_triton, operands_of
from support.oracles.formats import ARITHMETIC, dtype_of
from support.oracles.rules import RULES, TRUNCATING
from support.processes import in_fresh_python

from tilearray.arrays.ranges import spacing, stepping
from tilearray.engine.expression import Expression
from tilearray.errors import TileArrayError
from tilearray.functions.indexing.gather import gathering, placing
from tilearray.functions.indexing.scatter import scattering
from tilearray_cuda.kernels import compile as compiling

pytestmark = [needs_triton, pytest.mark.slow]
ARCHITECTURES = [80, 90, 100]
ALL = bool(os.environ.get("TILEARRAY_COMPILE_ALL"))

# --- every architecture ---------------------------------------------------------------------------------------------

SQUARE, TRANSPOSED = (4096, 1), (1, 4096)
REPRESENTATIVE = {
    "add, flat": (("add", "float32", "float32"), (10_000,), [(1,)] * 3),
    "add, tile": (("add", "bfloat16", "bfloat16"), (4096, 4096), [SQUARE, SQUARE, TRANSPOSED]),
    "add of 8 bits, lookup": (("add", "float8_e4m3fn", "float8_e5m2"), (4096, 4096), [SQUARE, SQUARE, (0, 1)]),
    "bytes over rows": (("subtract", "uint8", "uint8"), (4096, 4095), [(4095, 1), (4095, -1), (0, 1)]),
    "bytes over short rows": (("add", "uint8", "uint8"), (500, 521), [(521, 1), (521, 1), (1, 0)]),
    "bytes over rows, of 64 bits": (("identity", "uint8"), (2**20, 2049), [(2049, 1), (0, 1)]),
    "skewed rows": (("add", "float16", "float16"), (4097, 4095), [(4095, 1), (4095, 1), (1, 4097)]),
    "skewed rows, of sectors": (("identity", "float32"), (4097, 4095), [(4095, 1), (1, 4097)]),
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


AS_NUMPY = [
    ("floor_divide", "float16", "float16"),
    ("floor_divide", "float64", "float64"),
    ("reciprocal", "int8"),
    ("reciprocal", "uint64"),
    ("abs", "bool"),
    ("clip", "bool", "bool", "bool"),
    ("pow", "bool", "bool"),
    ("atan2", "uint8", "int8"),
]


@pytest.mark.parametrize("call", AS_NUMPY, ids=" ".join)
def test_variants_of_the_semantics_of_numpy_compile(call: tuple[str, ...]) -> None:
    assert compiled(flat_kernel(*call, semantics="numpy")).cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("target", ["float8_e4m3fn", "float8_e5m2"])
def test_8_bit_floats_are_made_by_an_instruction_where_there_is_one(target: str, arch: int) -> None:
    """Else by integer arithmetic, which always reads them: sm_80 has nothing else."""
    for operands, out in [(("float64",), target), ((target,), "bfloat16")]:
        code = compiled(flat_kernel("astype", *operands, out=out, arch=arch), arch)
        assert bool(code.count(r"cvt\S*\.e[45]m[32]\S*")) == (out == target and arch >= 89)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_a_number_stays_a_number_when_it_is_decoded(dtype: str) -> None:
    """Triton 3.6 takes no block of one element as a condition."""
    kernel = flat_kernel("pow", dtype, 0, semantics="triton")
    condition = "    if y == 2:"
    assert kernel.source.text.count(condition) == 1
    text = kernel.source.text.replace(condition, f'    tl.static_assert(len(y.shape) == 0, "a block")\n{condition}')
    code = compiled(kernel._replace(source=kernel.source._replace(text=text)))
    assert code.cubin[:4] == b"\x7fELF"


def test_triton_does_not_hash_its_library_for_our_kernels() -> None:
    """Which takes two thirds of the first compilation; for others' kernels it does, and all its names are its own."""
    code = f"""
import triton
from triton.runtime import cache

def key():
    raise RuntimeError("hashed")

cache.triton_key = key
own = dict(vars(cache)), dict(vars(triton.compiler.compiler))
from tilearray_cuda.kernels.source import generate
from tilearray_cuda.kernels.compile import compile_source
from tilearray_cuda.kernels.spec import KernelSpec, Operand
print(compile_source(generate({flat_kernel("add", "float32", "float32").spec!r}, 90), 90).name)
try:
    cache.get_cache_key(None, None, None, None)
except RuntimeError as error:
    print(error)
print(own == (dict(vars(cache)), dict(vars(triton.compiler.compiler))))
"""
    assert in_fresh_python(code).split() == ["add_flat", "hashed", "True"]


def test_compiling_twice_gives_the_same_code() -> None:
    """So that a cubin can be told from another by what it was made of."""
    kernel = flat_kernel("add", "float32", "float32")
    first, second = (compiling.compile_source(kernel.source, 90) for _ in range(2))
    assert first == second


# --- rounding -------------------------------------------------------------------------------------------------------


def product_and_difference(dtype: str) -> Expression:
    """``x * y - z``, which invites contraction."""
    inputs = tuple(("array", dtype) for _ in range(3))
    nodes = (
        *(("input", position) for position in range(3)),
        ("call", "multiply", (0, 1), dtype, "{x} * {y}"),
        ("call", "subtract", (3, 2), dtype, "{x} - {y}"),
    )
    return Expression(inputs, nodes, (4,), (dtype,), (None,) * 3, dtype_of(dtype))


def test_nothing_is_contracted_between_operations_unless_the_expression_allows_it() -> None:
    kernels = [kernel_for(product_and_difference(dtype), (10_000,), [(1,)] * 4) for dtype in ("float32", "float64")]
    for kernel in kernels:
        assert not compiled(kernel).count(r"fma\S*")
        body = replace(product_and_difference(kernel.spec.operands[0].dtype), contract=True)
        allowed = kernel_for(body, (10_000,), [(1,)] * 4)
        assert allowed.spec.contract
        assert not kernel.spec.contract
        assert compiled(allowed).count(r"fma\.rn\.f(32|64)") == compiled(kernel).count(r"mul\S*\.f(32|64)") > 0
        assert not compiled(allowed).count(r"(mul|sub)\S*\.f(32|64)")
        assert compiling.identity_of(kernel.source, True) != compiling.identity_of(kernel.source)


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
    """The kernel, unless the library refuses the call."""
    try:
        if name == "astype":
            source, _, target = dtype.partition(" to ")
            return flat_kernel(name, source, out=target)
        return flat_kernel(name, *operands_of(name, dtype), semantics=semantics)
    except TileArrayError:
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
    "gather": (gathering(dtype_of("float32"), (dtype_of("int64"),), True).graph, [(1,), (0,), (1,), (0,)]),
    "gather, two indices": (
        gathering(dtype_of("complex128"), (dtype_of("uint8"), dtype_of("uint64")), False).graph,
        [(1,), (0,), (1,), (1,)],
    ),
    "gather rows": (
        gathering(dtype_of("bfloat16"), (dtype_of("int32"),), True).graph,
        [(512, 1), (0, 1), (1, 0), (0, 0)],
    ),
    "scatter rows": (scattering(dtype_of("bool"), False).graph, [(0, 1), (512, 1), (1, 0)]),
    "scatter a number": (scattering(dtype_of("float8_e4m3fn"), True).graph, [(0,), (1,)]),
    "scatter at indices": (
        scattering(
            dtype_of("complex128"), False, "", dtype_of("int64"), (dtype_of("uint8"), dtype_of("uint64")), True
        ).graph,
        [(0,), (1,), (1,), (0,), (1,), (0,)],
    ),
    "scatter rows at indices": (
        scattering(dtype_of("int16"), True, "", dtype_of("int32"), (dtype_of("int64"),), False).graph,
        [(0, 1), (1, 0)],
    ),
    "positions": (
        placing(dtype_of("int32"), (dtype_of("int16"), dtype_of("int64")), True).graph,
        [(1,), (1,), (0,), (1,), (0,)],
    ),
    "arange": (stepping(dtype_of("int64"), dtype_of("bfloat16")).graph, [(1,)]),
    "linspace": (spacing(dtype_of("float16"), False).graph, [(1,)]),
}


@pytest.mark.parametrize("arch", [80, 90, 100])
@pytest.mark.parametrize("name", GATHERS)
def test_kernels_that_move_or_make_elements_compile(name, arch):
    body, strides = GATHERS[name]
    shape = (4096,) if len(strides[0]) == 1 else (600, 512)
    code = compiled(kernel_for(body, shape, strides, arch=arch), arch)
    assert code.cubin.startswith(b"\x7fELF")
    assert not code.count(r"div\.[su]64")
