"""Calls that are remembered by their words and the signatures of their arrays."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from support.oracles.remembered import FUNCTIONS, check_draws, check_takes, check_words

import tilearray as ta
from tilearray.commands.explain_plan import planned
from tilearray.engine.caches import PLANS
from tilearray.engine.context import STATE
from tilearray.explaining import debug


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_known_call_does_not_answer_for_other_words(name: str) -> None:
    check_words(name, "cpu")


def test_a_known_draw_does_not_answer_for_other_words() -> None:
    check_draws("cpu")


def test_known_takes() -> None:
    check_takes("cpu")


def test_known_draws_are_recorded_and_dropped() -> None:
    def drawn(rng: ta.random.Generator) -> list[Any]:
        return [rng.random(5), rng.standard_normal(4), rng.integers(9, size=3)]

    rng = ta.random.default_rng(2, device="cpu")
    drawn(rng)
    assert any(words[0] == "standard_normal" for words in STATE.get().plans if words.__class__ is tuple)
    wanted = [ta.to_numpy(each).tolist() for each in drawn(ta.random.default_rng(1, device="cpu"))]
    with ta.lazy():
        found = drawn(ta.random.default_rng(1, device="cpu"))
        doubled = found[0] * 2
    assert [each.tolist() for each in found] == wanted
    assert np.array_equal(doubled, np.asarray(wanted[0], "float32") * 2)
    with ta.semantics("numpy"):
        assert ta.random.default_rng(1, device="cpu").random(5).dtype == ta.float64
    PLANS.clear()
    assert not STATE.get().plans
    assert [each.tolist() for each in drawn(ta.random.default_rng(1, device="cpu"))] == wanted


def test_threads_draw_in_the_words_of_each_other() -> None:
    def drawn(seed: int) -> list[Any]:
        rng = ta.random.default_rng(seed, device="cpu")
        return [rng.random(size).tolist() for size in (3, 4, 5) * 20]

    wanted = [drawn(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(drawn, range(8))) == wanted


def _tiled(x: Any) -> Any:
    return ta.tile(x, (2, 3))


@pytest.fixture
def x() -> Any:
    x = ta.asarray(np.arange(4.0, dtype="float32"), device="cpu")
    PLANS.clear()
    for _ in range(2):
        assert _tiled(x).shape == (2, 12)
    assert ("tile", (2, 3)) in STATE.get().plans
    return x


def test_plans_that_are_dropped_take_the_calls_with_them(x: Any) -> None:
    PLANS.clear()
    assert ("tile", (2, 3)) not in STATE.get().plans


def test_no_call_is_remembered_for_other_semantics(x: Any) -> None:
    with ta.semantics("numpy"):
        assert ("tile", (2, 3)) not in STATE.get().plans
        assert np.array_equal(_tiled(x), np.tile(ta.to_numpy(x), (2, 3)))


def test_a_known_call_is_one_plan(x: Any) -> None:
    _, plans = planned(lambda: [_tiled(x) for _ in range(3)])
    assert [plan.operation.name for plan in plans] == ["setitem"]


@pytest.mark.parametrize("others_first", [False, True])
def test_known_calls_are_recorded_and_traced(x: Any, others_first: bool) -> None:
    """After a call that is remembered, and before it: what is recorded is not remembered."""
    if others_first:
        PLANS.clear()
    wanted = np.tile(ta.to_numpy(x), (2, 3))
    for _ in range(2):
        with ta.lazy():
            found = _tiled(x) * 2
        assert np.array_equal(found, wanted * 2)
        assert np.array_equal(ta.fuse(_tiled)(x), wanted)
        gradient = ta.grad(lambda x: ta.sum(_tiled(x) * _tiled(x)))(x)
        assert np.array_equal(gradient, 12 * ta.to_numpy(x))
        assert len(ta.explain(_tiled, x).launches) == 1
        assert np.array_equal(_tiled(x), wanted)


def test_known_calls_are_printed(x: Any, capsys: pytest.CaptureFixture[str]) -> None:
    PLANS.clear()
    debug.start("1")
    try:
        for _ in range(3):
            _tiled(x)
    finally:
        debug.start("0")
        PLANS.clear()
    assert capsys.readouterr().err.count("setitem") == 3


def test_threads_make_known_calls_at_once() -> None:
    arrays = [ta.asarray(np.full(5, number, "float32"), device="cpu") for number in range(8)]

    def tiled(turn: int) -> bool:
        if turn % 5 == 0:
            PLANS.clear()
        return all(_tiled(each).tolist() == np.tile(ta.to_numpy(each), (2, 3)).tolist() for each in arrays)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(tiled, range(40)))


NUMBERS = [0, 1, True, 1.0, -0.0, 300, 2**31, 2**63, 2**70, 1e300, float("nan"), -1, 1j]


@pytest.mark.parametrize("semantics", ["array-api", "triton", "cutile", "torch", "numpy"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "complex64"])
def test_a_call_with_two_numbers_does_not_answer_for_others(dtype: str, semantics: Any) -> None:
    """Whose plan is found by the classes of the numbers, if these decide it."""
    x = ta.asarray(np.arange(3), device="cpu").astype(dtype)
    condition = ta.asarray([True, False, True], device="cpu")
    calls = [lambda low, high: ta.clip(x, low, high), lambda low, high: ta.where(condition, low, high) + x]

    def outcome(call: Any, *numbers: Any) -> Any:
        try:
            found = call(*numbers)
        except (ta.TileArrayError, TypeError) as error:
            return type(error), str(error)
        return found.dtype.name, ta.to_numpy(found).tobytes()

    given = [(low, high) for low in NUMBERS for high in NUMBERS[::2]]
    with ta.semantics(semantics):
        for call in calls:
            fresh = []
            for numbers in given:
                PLANS.clear()
                fresh.append(outcome(call, *numbers))
            for _ in range(2):
                assert [outcome(call, *numbers) for numbers in given] == fresh
