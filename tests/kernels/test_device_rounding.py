"""Rounding modes on cuda, with no GPU: casts and selections in Triton's interpreter, instructions in the PTX.

The oracle is tests/support/oracles/rounding.py, on operands that are hard to round. The interpreter replaces
libdevice's directed roundings by the oracle, and PTX's approximations by NumPy. The instructions of each mode are read
in the PTX; their values are left to the tests on a GPU.
"""

from __future__ import annotations

import ast
import math
import re
from importlib.resources import files

import numpy as np
import pytest
from support import hard_to_round as hard
from support.interpreter.run import Interpreter
from support.kernels import needs_triton
from support.oracles import rounding as exact
from support.oracles.formats import ARITHMETIC, dtype_of, kind_of, limits_of
from support.raw_kernels import cast_source, interpret, raw_source

from tilearray_cuda.kernels.casts import UnsupportedCastError, cast_text
from tilearray_cuda.kernels.source import Source

pytestmark = [needs_triton, pytest.mark.slow]

FLOATS = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
ARCHITECTURES = (80, 90, 100)
SUFFIXES = {"rz": "rz", "rm": "rd", "rp": "ru"}
DIRECTED = {
    "add": "libdevice.add_{s}(x, y)",
    "subtract": "libdevice.add_{s}(x, y * -1.0)",
    "multiply": "libdevice.mul_{s}(x, y)",
    "divide": "libdevice.div_{s}(x, y)",
    "sqrt": "libdevice.sqrt_{s}(x)",
    "fma": "libdevice.fma_{s}(x, y, z)",
}
APPROXIMATE = {
    "divide_full(x, y)": (["div.full.f32"], lambda x, y: x / y),
    "divide_full_ftz(x, y)": (["div.full.ftz.f32"], lambda x, y: x / y),
    "divide_approx(x, y)": (["div.approx.f32"], lambda x, y: x / y),
    "divide_approx_ftz(x, y)": (["div.approx.ftz.f32"], lambda x, y: x / y),
    "reciprocal_approx(x)": (["rcp.approx.f32"], np.reciprocal),
    "sqrt_approx(x)": (["sqrt.approx.f32"], np.sqrt),
    "sqrt_approx_ftz(x)": (["sqrt.approx.ftz.f32"], np.sqrt),
    "exp_approx(x)": (["ex2.approx.f32", "mul.rn.f32"], np.exp),
    "tanh_approx(x)": (["tanh.approx.f32"], np.tanh),
}


def run(interpreter: Interpreter, source: Source, operands: list[np.ndarray], out: str) -> np.ndarray:
    source = source._replace(constants=(("BLOCK", 8192),))
    return interpreter.pool.submit(interpret, source, operands, dtype_of(out)).result()


# --- casts --------------------------------------------------------------------------------------------------------


def rounds(source: str, target: str, mode: str) -> bool:
    """Whether kernels have a cast."""
    return not (mode == "ra" and target == "float64" and source in ("int64", "uint64"))


@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, "bool"])
def test_casts_to_floats(source: str, target: str, interpreter: Interpreter) -> None:
    """In every mode, saturating and not, each rounding once."""
    x = hard.sources(source, target, 3000)
    for mode in exact.MODES if source != target else ():
        for saturate in (False, True) if rounds(source, target, mode) else ():
            got = run(interpreter, cast_source(source, target, mode, saturate), [x], target)
            wrong = exact.differences(got, exact.cast(x, target, mode, saturate))
            assert [(mode, saturate, x[k], got[k]) for k in wrong[:3]] == []


@pytest.mark.parametrize("target", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("source", ["float16", "bfloat16"])
def test_casts_of_all_patterns(source: str, target: str, interpreter: Interpreter) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype_of(source))
    for mode in exact.MODES if source != target else ():
        for saturate in (False, True):
            got = run(interpreter, cast_source(source, target, mode, saturate), [x], target)
            assert exact.differences(got, exact.cast(x, target, mode, saturate)).size == 0


@pytest.mark.parametrize("target", INTEGERS)
def test_casts_to_integers(target: str, interpreter: Interpreter) -> None:
    """Integers wrap, or saturate; floats saturate in any case."""
    for source in [*INTEGERS, *FLOATS, "bool"]:
        if source in INTEGERS:
            edges = {value + d for name in INTEGERS for value in limits_of(name) for d in (-1, 0, 1)}
            low, high = limits_of(source)
            x = np.array([value for value in edges if low <= value <= high], dtype_of(source))
        else:
            x = hard.sources(source, target, 500)
        for saturate in (False, True) if source != target else ():
            got = run(interpreter, cast_source(source, target, saturate=saturate), [x], target)
            np.testing.assert_array_equal(got, exact.cast(x, target, saturate=saturate))


def test_the_parts_of_complex_numbers_are_cast_alike() -> None:
    assert cast_text(("x", "y"), "complex128", "complex64", "rm", True) == (
        "libdevice.double2float_rd(clamp_float(x, 3.4028234663852886e+38))",
        "libdevice.double2float_rd(clamp_float(y, 3.4028234663852886e+38))",
    )
    assert cast_text(("x",), "float64", "complex64", "rz")[0] == "libdevice.double2float_rz(x)"


def test_plain_casts_call_no_functions_of_rounding_modes() -> None:
    """So that the kernels of casts without a mode, and what is cached of them, stay as they are."""
    for source in ARITHMETIC:
        for target in ARITHMETIC:
            if kind_of(source) == "complex" and kind_of(target) not in ("complex", "bool"):
                continue
            value = ("x", "y") if kind_of(source) == "complex" else ("x",)
            called = set(re.findall(r"\w+(?=\()", " ".join(cast_text(value, source, target))))
            assert called.isdisjoint(device_functions())
            assert not called & {"double2float_rz", "ll2double_rz"}


@pytest.mark.parametrize(
    ("source", "target", "mode", "message"),
    [
        ("float32", "int8", "rm", "float32 becomes int8 in modes rzi, rni, rmi, rpi, rai, not in 'rm'"),
        ("float64", "float32", "full", "float64 becomes float32 in modes rn, rz, rm, rp, ra, not in 'full'"),
        ("float64", "float16", "rzi", "float64 becomes float16 in modes rn, rz, rm, rp, ra, not in 'rzi'"),
        ("uint64", "float64", "ra", "uint64 becomes float64 in modes rn, rz, rm, rp, not in 'ra'"),
    ],
)
def test_casts_that_kernels_do_not_have(source: str, target: str, mode: str, message: str) -> None:
    with pytest.raises(UnsupportedCastError, match=re.escape(message)):
        cast_text(("x",), source, target, mode)


def test_a_float_becomes_an_integer_toward_zero_by_all_its_names() -> None:
    assert len({cast_text(("x",), "float32", "int8", mode) for mode in ("rn", "rz", "rzi")}) == 1


# --- flushing, selection, expressions -----------------------------------------------------------------------------


def test_flushing(interpreter: Interpreter) -> None:
    x = np.concatenate([hard.operands("add", "float32", 8000)[0], hard.special("float32")])
    got = run(interpreter, raw_source("flush_f32(x)", ["float32"], "float32"), [x], "float32")
    assert exact.differences(got, exact.flushed(x)).size == 0


def order(x: float, y: float) -> float:
    """The smaller number, by Python: zeros by their sign, and NaN only where there is no number."""
    if x != x or y != y:
        return y if x != x else x
    return min(x, y, key=lambda value: (value, math.copysign(1, value)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["minimum_number", "maximum_number"])
def test_selections_ignore_nan_and_tell_zeros_apart(name: str, dtype: str, interpreter: Interpreter) -> None:
    special = hard.special(dtype)
    pairs = np.repeat(special, special.size), np.tile(special, special.size)
    x, y = (np.concatenate(parts) for parts in zip(pairs, hard.operands("add", dtype, 4000), strict=True))
    got = run(interpreter, raw_source(f"{name}(x, y)", [dtype] * 2, dtype), [x, y], dtype)
    sign = 1 if name == "minimum_number" else -1
    with np.errstate(all="ignore"):  # signalling NaNs
        rows = zip(x.astype(np.float64).tolist(), y.astype(np.float64).tolist(), strict=True)
        want = np.array([sign * order(sign * a, sign * b) for a, b in rows]).astype(dtype)
    assert exact.differences(got, want).size == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", DIRECTED)
def test_expressions_of_operations(op: str, dtype: str, interpreter: Interpreter) -> None:
    """The operands are in their places, and a difference is the sum with what is negated, of zeros too."""
    operands = hard.operands(op, dtype, 4000)
    for mode, suffix in SUFFIXES.items():
        source = raw_source(DIRECTED[op].format(s=suffix), [dtype] * len(operands), dtype)
        got = run(interpreter, source, list(operands), dtype)
        assert exact.differences(got, getattr(exact, op)(*operands, mode)).size == 0


@pytest.mark.parametrize("call", APPROXIMATE)
def test_approximations_are_of_the_right_function(call: str, interpreter: Interpreter) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(0.1, 3, 1000).astype(np.float32) for _ in range(2))
    operands = [x, y] if "y" in call else [x]
    got = run(interpreter, raw_source(call, ["float32"] * len(operands), "float32"), operands, "float32")
    np.testing.assert_allclose(got, APPROXIMATE[call][1](*operands), rtol=1e-6)
    tiny = [np.full(1, 2.0**-127, np.float32), np.full(1, 2.0**-130, np.float32)][: len(operands)]
    flushes = {"divide_full": np.nan, "divide_approx": np.nan, "sqrt_approx": 0.0}
    if "_ftz" in call:
        got = run(interpreter, raw_source(call, ["float32"] * len(operands), "float32"), tiny, "float32")
        np.testing.assert_array_equal(got, flushes[call.partition("_ftz")[0]])


def test_a_root_of_a_normal_number_is_rounded_once(interpreter: Interpreter) -> None:
    rng = np.random.default_rng(1)
    bits = rng.integers(27 << 23, 227 << 23, 8000, dtype=np.int32)
    x = np.concatenate([bits.view(np.float32), np.float32([2.0**-100, 2.0**100, 1, 4, np.nextafter(np.float32(1), 2)])])
    got = run(interpreter, raw_source("sqrt_of_normal(x)", ["float32"], "float32"), [x], "float32")
    np.testing.assert_array_equal(got, np.sqrt(x))


# --- what the compiler makes of them ------------------------------------------------------------------------------


def instructions(source: Source, arch: int) -> list[str]:
    """The floating-point instructions of the PTX, each once."""
    from tilearray_cuda.kernels.compile import compile_source

    made = compile_source(source, arch)
    assert made.cubin[:4] == b"\x7fELF"
    found = re.findall(r"^\s*(?:@!?%p\d+ )?(?:\{ \.reg \.b16 h; )?(\w+\.\S*\bb?f(?:16|32|64)\S*)\s", made.ptx, re.M)
    return sorted({name for name in found if not name.startswith(("ld.", "st.", "mov.", "setp.", "abs.", "selp."))})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", DIRECTED)
def test_an_operation_in_a_mode_is_one_instruction(op: str, dtype: str) -> None:
    """The architectures take turns: each has every mode, and every operation each of them."""
    first = list(DIRECTED).index(op) + (dtype == "float64")
    for turn, (mode, suffix) in enumerate(SUFFIXES.items(), first):
        arch = ARCHITECTURES[turn % 3]
        source = raw_source(DIRECTED[op].format(s=suffix), [dtype] * hard.ARITY[op], dtype)
        names = {"subtract": ["add", "sub"], "multiply": ["mul"], "divide": ["div"]}.get(op, [op])  # x + -y
        (found,) = instructions(source, arch)
        assert found in [f"{name}.{mode}.f{dtype[5:]}" for name in names]


def test_directed_operations_are_not_contracted() -> None:
    source = raw_source("libdevice.add_rz(libdevice.mul_rz(x, y), z)", ["float32"] * 3, "float32")
    assert instructions(source, 90) == ["add.rz.f32", "mul.rz.f32"]


@pytest.mark.parametrize("call", APPROXIMATE)
def test_an_approximation_is_one_instruction(call: str) -> None:
    """The architectures take turns over the calls: no instruction here is new after sm_80."""
    arch = ARCHITECTURES[list(APPROXIMATE).index(call) % 3]
    source = raw_source(call, ["float32"] * (1 + ("y" in call)), "float32")
    assert instructions(source, arch) == APPROXIMATE[call][0]


def test_a_root_of_a_normal_number_has_no_branch() -> None:
    source = raw_source("sqrt_of_normal(x)", ["float32"], "float32")
    assert instructions(source, 90) == ["fma.rn.f32", "mul.rn.f32", "neg.f32", "rsqrt.approx.ftz.f32"]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_flushing_and_selection_are_integers_and_comparisons(arch: int) -> None:
    """None of them can be flushed, or lose a sign, or quieten a NaN on its way."""
    assert instructions(raw_source("flush_f32(x)", ["float32"], "float32"), arch) == []
    for name in ("minimum_number", "maximum_number"):
        for dtype in ("float32", "float64"):
            assert instructions(raw_source(f"{name}(x, y)", [dtype] * 2, dtype), arch) == []


CASTS = {
    ("float64", "float32", "rm"): ["cvt.rm.f32.f64"],
    ("float64", "float32", "rz"): ["cvt.rz.f32.f64"],
    ("float64", "float32", "ra"): ["cvt.f64.f32", "cvt.rn.f32.f64", "sub.rn.f64"],
    ("float32", "float16", "rp"): ["cvt.rp.f16.f32"],
    ("float32", "float16", "ra"): [],
    ("float32", "bfloat16", "rz"): [],
    ("float32", "float8_e4m3fn", "rm"): [],
    ("bfloat16", "float8_e5m2", "ra"): ["cvt.f32.bf16"],
    ("float64", "float8_e5m2", "rp"): ["cvt.f64.f32", "cvt.rn.f32.f64"],
    ("int64", "float32", "rz"): ["cvt.rz.f32.f64", "cvt.rz.f64.s64"],
    ("uint64", "float64", "rp"): ["cvt.rp.f64.u64"],
    ("uint32", "float32", "rm"): ["cvt.rm.f32.f64", "cvt.rn.f64.u32"],
}


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("cast", CASTS, ids=" ".join)
def test_casts_compile_for_every_architecture(cast: tuple[str, str, str], arch: int) -> None:
    """To integer arithmetic where PTX has no instruction for the mode, or not on sm_80."""
    source, target, mode = cast
    saturate = bool((list(CASTS).index(cast) + ARCHITECTURES.index(arch)) % 2)  # by turns
    assert instructions(cast_source(source, target, mode, saturate), arch) == CASTS[cast]


def device_functions() -> set[str]:
    tree = ast.parse((files("tilearray_cuda.kernels.library") / "rounding.py").read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
