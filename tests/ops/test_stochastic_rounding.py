"""Stochastic rounding on the host: its definition, seeds, layouts, and the mean of many draws."""

from __future__ import annotations

import numpy as np
import pytest
from support.oracles import rounding as exact
from support.oracles.formats import FORMATS, dtype_of, kind_of
from support.oracles.stochastic import (
    MORE_VALUES,
    SOURCES,
    TARGETS,
    VALUES,
    check_fused,
    mean_error,
    on_places,
    rounded,
)

import tilearray as ta


@pytest.mark.parametrize("target", TARGETS)
def test_by_its_definition(target: str) -> None:
    rng = np.random.default_rng(3)
    for source in SOURCES:
        x = on_places(rng, source, target, (20, 15))
        for seed, saturate in ((0, None), (2**70, None if kind_of(target) == "int" else True)):
            got = ta.to_numpy(ta.asarray(x).astype(target, rounding="rs", seed=seed, saturate=saturate))
            want = x if source == target and not saturate else rounded(x, target, seed, bool(saturate))
            wrong = exact.differences(got.ravel(), want.ravel())
            assert wrong.size == 0, (source, [(x.ravel()[k], got.ravel()[k], want.ravel()[k]) for k in wrong[:3]])


def test_a_value_that_the_target_holds_stays() -> None:
    for target in ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "bfloat16"):
        bits = np.arange(2 ** (8 * dtype_of(target).itemsize)).astype(f"u{dtype_of(target).itemsize}")
        x = ta.asarray(bits.view(dtype_of(target))).astype("float32")
        for seed in range(3):
            back = x.astype(target, rounding="rs", seed=seed)
            assert exact.differences(ta.to_numpy(back), ta.to_numpy(x.astype(target))).size == 0


def test_the_result_does_not_depend_on_the_layout() -> None:
    x = ta.asarray(np.random.default_rng(0).standard_normal((31, 70)))
    want = x.astype("float8_e4m3fn", rounding="rs", seed=5)
    wide = ta.zeros((70, 62), dtype="float64")
    wide[::-1, ::2] = x.T
    for view in (x.T.copy().T, wide[::-1, ::2].T):
        found = view.astype("float8_e4m3fn", rounding="rs", seed=5)
        assert found.tolist() == want.tolist()
        assert found.strides == (70, 1)


def test_in_a_fused_function_the_seed_may_be_an_argument() -> None:
    check_fused("cpu", 12)
    cast = ta.fuse(lambda x, seed: ta.quantize(x * 2, "e2m1", axis=-1, rounding="rs", seed=seed)[:2])
    x = ta.asarray(np.random.default_rng(0).standard_normal((5, 33)).astype(np.float32))
    for seed in (1, 2):
        want = ta.quantize(x * 2, "e2m1", axis=-1, rounding="rs", seed=seed)
        assert [each.tolist() for each in cast(x, seed)] == [want.values.tolist(), want.scales.tolist()]
    with pytest.raises(ta.errors.ParameterError, match=r"astype: expected seed >= 0, got -1; write an int >= 0"):
        cast(x, -1)


def test_seeds() -> None:
    x = ta.full(1000, 0.3)
    draws = {seed: x.astype("int8", rounding="rs", seed=seed).tolist() for seed in (0, 1, 2)}
    assert len({tuple(draw) for draw in draws.values()}) == 3
    for equal in (1, np.random.SeedSequence(1), np.int64(1)):
        assert x.astype("int8", rounding="rs", seed=equal).tolist() == draws[1]
    several = [x.astype("int8", rounding=mode, seed=[1, 2]).tolist() for mode in ("rs", "RS")]
    assert several[0] == several[1]
    assert ta.zeros((0, 3)).astype("int8", rounding="rs", seed=0).shape == (0, 3)
    assert ta.asarray(2.0).astype("int8", rounding="rs", seed=0).item() == 2


@pytest.mark.parametrize(("value", "target"), VALUES)
def test_the_mean_is_the_value(value: float, target: str) -> None:
    assert mean_error(value, target, 200_000, 11) < 4


@pytest.mark.slow
@pytest.mark.parametrize(("value", "target"), [*VALUES, *MORE_VALUES])
def test_the_mean_of_ten_million_draws_is_the_value(value: float, target: str) -> None:
    assert mean_error(value, target, 10_000_000, 12) < 4


@pytest.mark.slow
@pytest.mark.parametrize("source", ["float16", "bfloat16"])
def test_every_value_of_16_bits_becomes_a_neighbour(source: str) -> None:
    x = np.arange(65536).astype(np.uint16).view(dtype_of(source))
    for target in (name for name in FORMATS if dtype_of(name).itemsize <= 2 and name != source):
        down, up = (exact.cast(x, target, mode) for mode in ("rm", "rp"))
        for seed in range(4):
            found = ta.to_numpy(ta.asarray(x).astype(target, rounding="rs", seed=seed))
            with np.errstate(all="ignore"):
                got, low, high = (each.astype(np.float64) for each in (found, down, up))
            assert ((got == low) | (got == high) | (np.isnan(got) & (np.isnan(low) | np.isnan(high)))).all()
