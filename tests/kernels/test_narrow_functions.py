"""Functions of bfloat16 by approximations of float32: within an ulp, if these are as far off as they may be.

tests/gpu/test_gpu_narrow.py compares the results of hardware.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.interpreter.run import Interpreter
from support.kernels import needs_triton
from support.oracles.narrow import EXACT, SPECIAL, apart, patterns

import tilearray as ta
from tilearray_cuda.kernels.source import _called, _device_functions

WIDE = np.float32


def _off(error: float) -> dict[str, Callable[[Any], Any]]:
    """The approximations of hardware, each off by a multiple of its bound."""

    def log2(x: Any) -> Any:
        exact = np.log2(np.asarray(x, np.float64))
        return WIDE(np.where((x >= 0.5) & (x <= 2), exact + error * 2.0**-22, exact * (1 + error * 2.0**-22)))

    def relative(function: Callable[[Any], Any], bound: float) -> Callable[[Any], Any]:
        return lambda x: WIDE(function(np.asarray(x, np.float64)) * (1 + error * bound))

    root, reciprocal = relative(np.sqrt, 2.0**-23), relative(np.reciprocal, 2.0**-23)
    return {
        "log2_approx": log2,
        "log2_approx_ftz": log2,
        "exp2_approx": relative(np.exp2, 2.0**-22),
        "sqrt_approx_ftz": root,
        "reciprocal_approx": reciprocal,
        "reciprocal_approx_ftz": reciprocal,
    }


def narrow(name: str, error: float) -> Callable[..., Any]:
    """A function of the library as one of NumPy's float32."""
    tl = SimpleNamespace(
        abs=np.abs,
        where=lambda where, x, y: np.where(where, WIDE(x), WIDE(y)),
        minimum=lambda x, y, propagate_nan=None: (np.minimum if propagate_nan else np.fmin)(WIDE(x), WIDE(y)),
        maximum=lambda x, y, propagate_nan=None: (np.maximum if propagate_nan else np.fmax)(WIDE(x), WIDE(y)),
        PropagateNan=SimpleNamespace(ALL=True),
        constexpr=int,
        int32=np.int32,
        int64=np.int64,
        float64=np.float64,
    )
    libdevice = SimpleNamespace(fma=lambda x, y, z: WIDE(np.float64(x) * np.float64(y) + np.float64(z)))
    names: dict[str, Any] = {"tl": tl, "libdevice": libdevice, **_off(error)}
    texts, wanted = _device_functions(), [name]
    while wanted:
        text = texts[wanted.pop()].removeprefix("@triton.jit\n")
        exec(text.replace(".to(integer, bitcast=True)", ".view(integer)"), names)
        wanted += [called for called in _called(text) if called in texts and called not in names]
    return names[name]


@pytest.mark.parametrize("error", [-1.0, 1.0])
@pytest.mark.parametrize("name", ["asinh", "atan"])
def test_functions_of_one_number_are_within_an_ulp(name: str, error: float) -> None:
    """All bfloat16."""
    x = patterns(1)
    with np.errstate(all="ignore"):
        found = narrow(f"{name}_bfloat16", error)(x.astype(WIDE)).astype(x.dtype)
    assert apart(found, EXACT[name](x)).max() <= 1


@pytest.mark.parametrize("error", [-1.0, 1.0])
@pytest.mark.parametrize("name", ["power", "atan2"])
@pytest.mark.parametrize("step", [257, pytest.param(61, marks=pytest.mark.slow)])
def test_functions_of_two_numbers_are_within_an_ulp(name: str, error: float, step: int) -> None:
    """All bfloat16, each with some others."""
    function, x = narrow(f"{name}_bfloat16", error), patterns(1)
    with np.errstate(all="ignore"):
        for y in np.concatenate([SPECIAL, patterns(step)]):
            found = function(x.astype(WIDE), np.full_like(x, y, WIDE)).astype(x.dtype)
            wrong = apart(found, EXACT[name](x, np.full_like(x, y)))
            assert wrong.max() <= 1, (x[wrong.argmax()], y, found[wrong.argmax()])


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("name", ["asinh", "atan", "atan2", "pow"])
def test_kernels_of_bfloat16_are_within_an_ulp(name: str, interpreter: Interpreter) -> None:
    x = patterns(7)
    if name in ("asinh", "atan"):
        assert apart(interpreter.call(name, x), EXACT[name](x)).max() <= 1
        return
    x, y = (each.ravel() for each in np.meshgrid(patterns(97), SPECIAL))
    exact = EXACT["power" if name == "pow" else name]
    assert apart(interpreter.call(name, x, y), exact(x, y)).max() <= 1
    for number in (-2.0, 0.0, 0.5, 1.0, 2.0, 3.0, 5.0):
        assert apart(interpreter.call(name, x, number), exact(x, np.full_like(x, number))).max() <= 1


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_cube_is_two_products(dtype: str, interpreter: Interpreter) -> None:
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e4]
    x = np.concatenate([np.random.default_rng(1).normal(size=1000), special]).astype(dtype)
    with np.errstate(all="ignore"):
        wide = x.astype(np.promote_types(dtype, np.float32))
        np.testing.assert_array_equal(interpreter.call("pow", x, 3), (wide * wide * wide).astype(dtype))


@needs_triton
def test_only_results_that_are_rounded_are_narrow() -> None:
    x = ta.empty(1 << 20, dtype="bfloat16", device="cpu")

    def function(x: Any, y: Any) -> Any:
        return ta.asinh(x) * ta.atan2(x, y) + x**y

    for rounded in (True, False):
        fused = ta.fuse(function) if rounded else ta.fuse(function, intermediates="compute")
        (launch,) = ta.explain(fused, x, x, arch=90).launches
        for called in ("asinh_bfloat16(", "atan2_bfloat16(", "power_bfloat16("):
            assert (called in launch.kernel.source) is rounded
    assert "asinh_bfloat16(" not in ta.explain(ta.asinh, x.astype("float16"), arch=90).launches[0].kernel.source
    assert ml_dtypes.bfloat16 is x.dtype.type


@needs_triton
def test_exponents_that_are_arrays_are_powers_in_all_loops() -> None:
    """Also one that is repeated, which other loops read as a block, and one that a fused function does not store."""

    def text(function: Callable[..., Any], *given: Any) -> str:
        return ta.explain(function, *given, arch=90).launches[0].kernel.source.rpartition("\ndef ")[2]

    x = ta.empty((64, 64), device="cpu")
    for y in (ta.empty((1, 1), device="cpu"), ta.empty((64, 1), device="cpu")):
        assert "libdevice.pow(" in text(ta.pow, x, y)
    assert "libdevice.pow(" in text(ta.fuse(lambda x: x ** ta.full_like(x, 3)), x)
    for function in (lambda x: x**3, ta.fuse(lambda x: x**3), ta.fuse(lambda x: ta.float_power(x, 3))):
        assert "power_by_number(" in text(function, x)
    assert "power_by_number(" in text(ta.fuse(lambda x, n: x**n), x, 3.0)
