"""Rounding modes, flushing and NaN on the GPU: bit for bit, with the operands and the oracle of the host's tests.

Results of the instructions for "full" and "approx" are within the documented bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import hard_to_round as hard
from support.oracles import rounding as exact
from support.oracles.formats import dtype_of
from support.rounding_cases import (
    CAST_COUNT,
    CAST_MODES,
    CHECKED,
    COMPUTED,
    COUNT,
    DIRECTED,
    INTEGERS,
    MODES,
    NARROW,
    NARROW_COUNT,
    OPS,
    WIDE,
    arithmetic,
    cast,
    selection,
    shown,
)

import tilearray as ta
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.random.formulas import Value

RANDOM = 60_000
"""Random operands of an operation, beside the hard ones."""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("name", OPS)
def test_arithmetic(name: str, dtype: str, mode: str) -> None:
    assert arithmetic(name, dtype, mode, False, COUNT, "cuda") == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OPS)
def test_flushed_arithmetic(name: str, mode: str) -> None:
    assert arithmetic(name, "float32", mode, True, COUNT, "cuda") == []


@pytest.mark.parametrize("mode", DIRECTED)
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", OPS)
def test_narrow_floats(name: str, dtype: str, mode: str) -> None:
    assert arithmetic(name, dtype, mode, False, NARROW_COUNT, "cuda") == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("name", OPS)
def test_the_host_and_the_gpu_agree_on_random_operands(name: str, dtype: str, mode: str) -> None:
    rng = np.random.default_rng([*name.encode(), *dtype.encode(), *mode.encode()])
    half = RANDOM // 2
    columns = []
    for _ in range(hard.ARITY[name]):
        near = rng.normal(size=half).astype(dtype)
        columns.append(np.concatenate([hard.patterns(dtype, half, rng), near]))
    function: Any = getattr(ta, name)
    results = [
        ta.to_numpy(function(*(ta.asarray(x, device=device, copy=True) for x in columns), rounding=mode))
        for device in ("cuda", "cpu")
    ]
    assert shown(*results, *columns) == []


def test_millions_of_operations_are_checked() -> None:
    assert CHECKED >= 1_000_000
    assert len(OPS) * len(WIDE) * len(MODES) * RANDOM >= 2_000_000


@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_nan_is_ignored(name: str) -> None:
    for dtype in COMPUTED:
        assert selection(name, dtype, 4000, device="cuda") == []
    assert selection(name, "float32", 4000, flush=True, device="cuda") == []


@pytest.mark.parametrize("name", ["rsqrt", "exp2"])
def test_functions_flush_operands_and_results(name: str) -> None:
    x = hard.special("float32")
    function: Any = getattr(ta, name)
    got = ta.to_numpy(function(ta.asarray(x, device="cuda", copy=True), flush_to_zero=True))
    plain = ta.to_numpy(function(ta.asarray(exact.flushed(x), device="cuda", copy=True)))
    assert shown(got, exact.flushed(plain), x) == []


@pytest.mark.parametrize("source", COMPUTED)
@pytest.mark.parametrize("target", COMPUTED)
def test_casts(source: str, target: str) -> None:
    for mode in CAST_MODES if source != target else ():
        assert cast(source, target, mode, False, CAST_COUNT, "cuda") == []
        if mode in ("rn", "rp"):
            assert cast(source, target, mode, True, 1000, "cuda") == []


@pytest.mark.parametrize("target", INTEGERS)
def test_integers_that_saturate(target: str) -> None:
    for source in ("int64", "uint64", "int16", "uint8", "bool", "float32"):
        if source != target:
            assert cast(source, target, None, True, 1000, "cuda") == []


# --- within their bounds ----------------------------------------------------------------------------------------------


def on_gpu(name: str, mode: str, operands: list[np.ndarray], **options: Any) -> np.ndarray:
    function: Any = getattr(ta, name)
    return ta.to_numpy(function(*(ta.asarray(x, device="cuda", copy=True) for x in operands), rounding=mode, **options))


def in_ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return the distance to the correctly rounded result in float32, the ulp of the CUDA and PTX documentation."""
    want = exact.astype(np.float32)
    assert (np.signbit(got) == np.signbit(want)).all()
    return np.abs(got.view(np.int32).astype(np.int64) - want.view(np.int32))


def relative(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    return np.abs(got.astype(np.float64) - exact) / np.abs(exact)


def floats(rng: np.random.Generator, exponents: int) -> np.ndarray:
    size = 200_000
    significands = rng.uniform(1, 2, size) * rng.choice([-1.0, 1.0], size)
    return np.ldexp(significands, rng.integers(-exponents, exponents, size)).astype(np.float32)


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize("mode", ["full", "approx"])
def test_divide(mode: str, flush: bool) -> None:
    rng = np.random.default_rng(1)
    x, y = floats(rng, 60), floats(rng, 60)
    ulps = in_ulps(on_gpu("divide", mode, [x, y], flush_to_zero=flush), x.astype(np.float64) / y)
    assert 0 < ulps.max() <= 2  # and the instruction is not the exact one


@pytest.mark.parametrize("flush", [False, True])
def test_sqrt(flush: bool) -> None:
    x = np.abs(floats(np.random.default_rng(2), 126))
    got = on_gpu("sqrt", "approx", [x], flush_to_zero=flush)
    assert relative(got, np.sqrt(x.astype(np.float64))).max() <= 2.0**-23


def test_roots_of_all_normal_numbers_between_limits_are_rounded_once() -> None:
    builder, kind = ExpressionBuilder(), np.dtype("float32")
    root = Value(builder, builder.array(kind), kind).sqrt_of_normal()
    operation = FixedOperation("root", builder.build([root.node], [kind]))
    found, bits = ta.empty(2**23, dtype=kind, device="cuda"), ta.arange(2**23, dtype="int32", device="cuda")
    for exponent in range(27, 227):
        x = (bits + (exponent << 23)).view("float32")
        run_fixed(operation, [x], found)
        assert ta.all(found == ta.sqrt(x)), exponent


@pytest.mark.parametrize("mode", ["full", "approx"])
def test_exp(mode: str) -> None:
    x = np.random.default_rng(3).uniform(-80, 80, 400_000).astype(np.float32)
    ulps = in_ulps(on_gpu("exp", mode, [x]), np.exp(x.astype(np.float64)))
    worst = np.argmax(ulps - np.floor(np.abs(1.173 * x)))
    bound = np.full(x.size, 2) if mode == "full" else 2 + np.floor(np.abs(1.173 * x))
    assert (ulps <= bound).all(), (x[worst], ulps[worst], bound[worst], np.count_nonzero(ulps > bound))


@pytest.mark.parametrize("mode", ["full", "approx"])
def test_tanh(mode: str) -> None:
    x = np.concatenate([np.random.default_rng(4).uniform(-10, 10, 400_000), floats(np.random.default_rng(5), 30)])
    x = x.astype(np.float32)
    want, got = np.tanh(x.astype(np.float64)), on_gpu("tanh", mode, [x])
    if mode == "full":
        assert in_ulps(got, want).max() <= 2
    else:
        assert relative(got, want).max() <= 2.0**-10.987


def test_a_mode_of_the_gpu_alone_takes_every_layout_and_a_target() -> None:
    x = ta.asarray(floats(np.random.default_rng(6), 9), device="cuda", copy=True)[:9000].reshape(90, 100)
    out = ta.empty((100, 90), device="cuda", dtype="float32")
    assert ta.divide(x.T[::-1], 3, rounding="approx", out=out) is out
    np.testing.assert_allclose(ta.to_numpy(out), ta.to_numpy(x).T[::-1] / 3, rtol=1e-6)
    assert dtype_of("float32") == out.dtype
