"""Kernels of rounding modes, flushing and NaN: run by Triton's interpreter, and read in the compiler's PTX.

The interpreter takes libdevice's directed roundings from tests/support/oracles/rounding.py. These tests show that every
mode calls the right one, on the right operands and with the right casts; the tests on a GPU show what it computes.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from support.interpreter.run import Interpreter
from support.kernels import Kernel, compiled, kernel_for, needs_triton
from support.oracles import rounding as exact
from support.oracles.formats import dtype_of
from support.rounding_cases import COMPUTED, DIRECTED, MODES, NARROW, OPS, WIDE, arithmetic, cast, selection, shown

import tilearray as ta
from tilearray.engine.operation import expression_of
from tilearray.ops.moves import convert
from tilearray.ops.options import Choice
from tilearray.ops.variants import derived, variant
from tilearray.promotion.systems import ARRAY_API

pytestmark = [needs_triton, pytest.mark.slow]
CUDA_NAMES = {"rz": "rz", "rm": "rm", "rp": "rp"}
ARCHITECTURES = [80, 90, 100]


# --- interpreted ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPS)
def test_arithmetic(process: Interpreter, name: str) -> None:
    assert process.pool.submit(_arithmetic, name).result() == []


@pytest.mark.parametrize("check", ["_selection", "_casts", "_integers", "_targets", "_approximations"])
def test_on_the_device(process: Interpreter, check: str) -> None:
    assert process.pool.submit(globals()[check]).result() == []


def _device() -> str:
    from support.interpreter.emulated_gpu import emulated_device

    return emulated_device().name


def _arithmetic(name: str) -> list[str]:
    device = _device()
    wide = [(dtype, mode, flush) for dtype in WIDE for mode in MODES for flush in (False, dtype == "float32")]
    narrow = [(dtype, mode, False) for dtype in NARROW for mode in DIRECTED]
    return [row for given in [*wide, *narrow] for row in arithmetic(name, *given, 500, device)]


def _selection() -> list[str]:
    device, names = _device(), ("minimum", "maximum")
    flushed = [row for name in names for row in selection(name, "float32", 500, True, device)]
    wide = [row for name in names for dtype in COMPUTED for row in selection(name, dtype, 500, device=device)]
    return flushed + wide + _selected_of_numbers(device)


def _selected_of_numbers(device: str) -> list[str]:
    """A number and a 0-d array are no blocks in a kernel."""
    wrong = []
    x = [1.0, -1.0, 0.0, -0.0, ta.nan]
    for number in (0.0, -0.0, ta.nan, 0.5):
        for name in ("minimum", "maximum"):
            function = getattr(ta, name)
            array, point = ta.asarray(x, device=device), ta.asarray(number, device=device)
            want = repr(function(ta.asarray(x, device="cpu"), number, propagate_nan=False).tolist())
            found = [
                function(*given, propagate_nan=False) for given in ((array, number), (number, array), (array, point))
            ]
            wrong += [f"{name} {number}" for result in found if repr(result.tolist()) != want]
    return wrong


def _casts() -> list[str]:
    device = _device()
    pairs = [(source, target) for source in COMPUTED for target in COMPUTED if source != target]
    ways = [(mode, saturate) for mode in (None, *MODES, "ra") for saturate in (False, True)]
    x = ta.asarray([ta.inf, -ta.inf, ta.nan, 1.0, -0.0], device="cpu")
    wrong = []
    for own in (x.astype(dtype) for dtype in COMPUTED):
        found, want = (array.astype(own.dtype, saturate=True) for array in (own.to_device(device), own))
        wrong += [f"{own.dtype} to itself"] if repr(found.tolist()) != repr(want.tolist()) else []
    return wrong + [row for pair in pairs for way in ways for row in cast(*pair, *way, 200, device)]


def _integers() -> list[str]:
    device = _device()
    pairs = [("int64", "int8"), ("int32", "uint32"), ("uint64", "int16"), ("uint8", "int8"), ("float32", "int16")]
    wrong = [row for pair in pairs for row in cast(*pair, None, True, 500, device)]
    x = np.concatenate([np.arange(-600, 600) / 4, [np.inf, -np.inf, np.nan, 1e30, 0.49999997, 8388609.0]])
    for source, target in product(COMPUTED, ("int8", "uint16", "int32", "uint64")):
        given = ta.asarray(exact.cast(x, source), device="cpu")
        for mode in (*MODES, "ra"):
            found = given.to_device(device).astype(target, rounding=mode)
            wrong += shown(ta.to_numpy(found), exact.cast(ta.to_numpy(given), target, f"{mode}i"), x)
    return wrong


def _targets() -> list[str]:
    """A narrower target is rounded to in the mode; a mode is no other's kernel."""
    device, wrong = _device(), []
    x = ta.asarray([1.0, -1.0], device=device)
    for mode in MODES:
        out = ta.empty(2, dtype="float16", device=device)
        ta.divide(x, 3, rounding=mode, out=out)
        host = ta.empty(2, dtype="float16", device="cpu")
        ta.divide(ta.asarray([1.0, -1.0], device="cpu"), 3, rounding=mode, out=host)
        wrong += [mode] if out.tolist() != host.tolist() else []
    return wrong


def _approximations() -> list[str]:
    device = _device()
    x = ta.asarray([0.5, 2.0, 1e-40], device=device)
    wrong = []
    for name, modes in (("exp", ("full", "approx")), ("tanh", ("full", "approx")), ("sqrt", ("approx",))):
        function = getattr(ta, name)
        exact = function(x).tolist()
        wrong += [name for mode in modes if function(x, rounding=mode).tolist() != pytest.approx(exact, rel=1e-6)]
    for mode in ("full", "approx"):
        for flush in (False, True):
            expected = [0.5, 2.0, 0.0 if flush else 1e-40]
            found = ta.divide(x, 1.0, rounding=mode, flush_to_zero=flush).tolist()
            wrong += ["divide"] if found != pytest.approx(expected, rel=1e-4, abs=0) else []
    return wrong


# --- compiled -------------------------------------------------------------------------------------------------------


def kernel_of(name: str, dtype: str, arch: int = 90, **options: object) -> Kernel:
    op = variant(getattr(ta, name), **options)  # type: ignore[arg-type]
    body = expression_of(op, ARRAY_API, (dtype_of(dtype),) * op.arity, None)
    return kernel_for(body, (100_000,), [(1,)] * (op.arity + 1), arch=arch)


INSTRUCTIONS = {"add": "add", "subtract": "add", "multiply": "mul", "divide": "div", "sqrt": "sqrt", "fma": "fma"}


@pytest.mark.parametrize("mode", DIRECTED)
@pytest.mark.parametrize("dtype", WIDE)
def test_every_mode_is_one_instruction(dtype: str, mode: str) -> None:
    """For the architecture of the tests; the others have the same PTX."""
    for name in OPS if mode == "rm" else ("divide", "subtract"):
        code = compiled(kernel_of(name, dtype, rounding=mode))
        bits = dtype.removeprefix("float")
        assert code.count(rf"{INSTRUCTIONS[name]}\.{mode}\.f{bits}") > 0
        assert not code.count(r"(add|mul|div|sqrt|fma)\.(rn\.)?(ftz\.)?f\d\d")


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    ("name", "dtype", "options"),
    [
        ("divide", "float16", {"rounding": "rp"}),
        ("fma", "float32", {"rounding": "rm", "flush_to_zero": True}),
        ("add", "float8_e4m3fn", {"rounding": "rz"}),
        ("divide", "float32", {"rounding": "approx", "flush_to_zero": True}),
        ("tanh", "float32", {"rounding": "approx"}),
        ("minimum", "float64", {"propagate_nan": False}),
    ],
)
def test_kernels_compile_for_every_architecture(name: str, dtype: str, options: dict[str, object], arch: int) -> None:
    assert compiled(kernel_of(name, dtype, arch, **options), arch).cubin.startswith(b"\x7fELF")


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(("source", "target"), [("float64", "bfloat16"), ("float32", "float8_e5m2")])
def test_casts_compile_for_every_architecture(source: str, target: str, arch: int) -> None:
    row = derived(convert, Choice("ra", saturate=True))
    body = expression_of(row, ARRAY_API, (dtype_of(source),), dtype_of(target))
    assert compiled(kernel_for(body, (100_000,), [(1,)] * 2, arch=arch), arch).cubin.startswith(b"\x7fELF")


def test_the_source_of_each_variant_is_another() -> None:
    """Compiled kernels are kept by their source."""
    modes = (*MODES, "full", "approx")
    ways = [{"rounding": mode, "flush_to_zero": flush} for mode in modes for flush in (False, True)]
    texts = {kernel_of("divide", "float32", **way).source.text for way in ways}
    assert len(texts) == len(ways)
    narrow = {kernel_of("divide", "float16", rounding=mode).source.text for mode in MODES}
    assert len(narrow) == len(MODES)
