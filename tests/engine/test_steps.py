"""Steps that are noted once: they give what the function gives, as often as it would be called, and share memory."""

from __future__ import annotations

import types
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.threads import in_threads

import tilearray as ta
from tilearray.engine import call, steps
from tilearray.engine.caches import PLANS
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.remembered import again
from tilearray.engine.steps import Steps, run_in_steps
from tilearray.engine.watch import WATCH
from tilearray.functions.manipulation import new_like, reshape

_INT64 = np.dtype("int64")


def _added() -> FixedOperation:
    """Return the operation ``number x + y``."""
    builder = ExpressionBuilder()
    x, y, number = builder.array(_INT64), builder.array(_INT64), builder.number(_INT64)
    scaled = builder.call("multiply", (x, number), _INT64, "{x} * {y}")
    return FixedOperation("test", builder.build([builder.call("add", (scaled, y), _INT64, "{x} + {y}")], [_INT64]))


class Function:
    """A function of an array: launches on some results before them, each given by two positions and a number.

    If a fourth one is true, a launch and another one on its result write to parts of the same memory, and a third one
    reads both.

    Attributes
    ----------
    runs : int
        How often it ran.
    """

    def __init__(self, launches: list[tuple[int, int, int, bool]]) -> None:
        self.launches = launches
        self.operation = _added()
        self.words = ("test", self)
        self.runs = 0

    def __call__(self, x: ta.Array) -> ta.Array:
        return run_in_steps(self.words, x, lambda steps: self._run(steps, x))

    def _run(self, steps: Steps, x: ta.Array) -> ta.Array:
        self.runs += 1
        known = [x]
        for first, second, number, twice in self.launches:
            operands = [known[first % len(known)], known[second % len(known)], number]
            memory = new_like(x, (1 + twice, *x.shape))
            found = steps.run(self.operation, operands, memory[0])
            if twice:
                parts = [found, steps.run(self.operation, [found, *operands[1:]], memory[1])]
                found = steps.run(self.operation, [*parts, 7], new_like(x, x.shape))
            known.append(found)
        return known[-1]

    def expected(self, host: np.ndarray) -> np.ndarray:
        known = [host]
        for first, second, number, twice in self.launches:
            known.append(number * known[first % len(known)] + known[second % len(known)])
            if twice:
                known[-1] = (7 + number) * known[-1] + known[second % (len(known) - 1)]
        return known[-1]


@pytest.fixture
def doubled():
    return Function([(-1, -1, 2, False)] * 5)


LAUNCH = st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(-5, 5), st.booleans())


@given(st.lists(LAUNCH, min_size=1, max_size=12), st.lists(st.integers(-9, 9), max_size=5))
def test_steps_give_what_the_function_gives(launches, numbers):
    """Which results a launch reads, and which memory is free for others, is drawn."""
    function = Function([*launches, (-1, -2, 1, False)])
    for turn in range(3):
        host = np.array(numbers, "int64") + turn
        x = ta.asarray(host)
        np.testing.assert_array_equal(function(x), function.expected(host))
        np.testing.assert_array_equal(x, host)
    assert function.runs == (1 if numbers else 3)


def test_buffers_of_one_size_share_memory(doubled, monkeypatch):
    """Of five results in a row, two are in memory at a time."""
    made: list[Any] = []
    allocate = call.empty_array
    monkeypatch.setattr(call, "empty_array", lambda *given: made.append(given) or allocate(*given))
    for turn in range(3):
        host = np.arange(4) + turn
        np.testing.assert_array_equal(doubled(ta.asarray(host)), doubled.expected(host))
    assert len(made) == 2 * 2


def test_another_signature_and_other_words_are_other_steps(doubled):
    x = ta.arange(12)
    for shape in ((12,), (3, 4), (12,), (4, 3)):
        assert doubled(reshape(x, shape)).shape == shape
    assert doubled.runs == 3
    assert again(("test", None), x) is None


def test_views_are_read_where_they_begin(doubled):
    """An array begins anywhere in its buffer."""
    whole = ta.arange(10)
    for start in (0, 3, 6):
        np.testing.assert_array_equal(doubled(whole[start : start + 4]), doubled.expected(np.arange(start, start + 4)))
    assert doubled.runs == 1


def test_results_have_the_class_of_the_array(doubled):
    class Mine(ta.Array, public=False):
        __slots__ = ()

    x = ta.arange(3)
    mine = Mine._make(x._buffer, x._offset, x._signature)
    assert [type(doubled(each)) for each in (x, mine, x, mine)] == [ta.Array, Mine, ta.Array, Mine]


def test_steps_end_with_the_plans(doubled):
    x = ta.arange(3)
    for _ in range(3):
        PLANS.clear()
        for _ in range(2):
            np.testing.assert_array_equal(doubled(x), doubled.expected(np.arange(3)))
    assert doubled.runs == 3


def test_each_semantics_has_its_steps(doubled):
    x = ta.arange(3)
    for semantics in ("array-api", "numpy", "torch"):
        with ta.semantics(semantics):
            for _ in range(2):
                np.testing.assert_array_equal(doubled(x), doubled.expected(np.arange(3)))
    assert doubled.runs == 3


def test_steps_are_recorded_in_a_lazy_block(doubled):
    """The function runs each time, known or not, and nothing is noted of what it records."""
    x = ta.arange(3)
    for runs in (1, 2):
        with ta.lazy():
            found = doubled(x + 1)
        np.testing.assert_array_equal(found, doubled.expected(np.arange(3) + 1))
        assert doubled.runs == runs
    doubled(x)
    doubled(x)
    assert doubled.runs == 3
    with ta.lazy():
        found = doubled(x + 1)
    np.testing.assert_array_equal(found, doubled.expected(np.arange(3) + 1))
    assert doubled.runs == 4


def test_nothing_is_noted_of_calls_that_are_watched(doubled, monkeypatch):
    monkeypatch.setattr(WATCH, "plan", lambda plan, keys: None)
    for _ in range(2):
        np.testing.assert_array_equal(doubled(ta.arange(3)), doubled.expected(np.arange(3)))
    assert doubled.runs == 2


def test_the_first_call_keeps_no_memory(doubled, monkeypatch):
    """Each result is gone when the next but one is made, as without steps."""
    made, most = weakref.WeakSet[Any](), [0]

    def making(x: Any, shape: tuple[int, ...]) -> Any:
        found = new_like(x, shape)
        made.add(found._buffer)
        most.append(len(made))
        return found

    def run(steps: Steps, x: Any) -> Any:
        for _ in range(5):
            x = steps.run(doubled.operation, [x, x, 1], making(x, x.shape))
        return x

    for turn in range(2):
        x = ta.arange(3) + turn
        np.testing.assert_array_equal(run_in_steps(("test", run), x, lambda steps, x=x: run(steps, x)), 32 * x)
    assert max(most) == 2
    assert len(most) == 1 + 5


def test_steps_that_the_call_cannot_repeat_are_not_kept():
    """They read memory of somebody else, write to the array, or return what they did not write, or parts of it."""
    operation, other = _added(), ta.asarray([5, 6, 7])

    def of_another(steps: Steps, x: Any) -> Any:
        return steps.run(operation, [x, other, 0], new_like(x, x.shape))

    def to_the_array(steps: Steps, x: Any) -> Any:
        found = steps.run(operation, [x, x, 0], new_like(x, x.shape))
        steps.run(operation, [found, found, 0], x)
        return steps.run(operation, [x, x, 0], new_like(x, x.shape))

    def elsewhere(steps: Steps, x: Any) -> Any:
        steps.run(operation, [x, x, 0], new_like(x, x.shape))
        return new_like(x, x.shape)

    def a_part(steps: Steps, x: Any) -> Any:
        return steps.run(operation, [x, x, 0], new_like(x, x.shape))[1:]

    def another_part(steps: Steps, x: Any) -> Any:
        return steps.run(operation, [x, x, 0], new_like(x, x.shape))[:2]

    def transposed(steps: Steps, x: Any) -> Any:
        found = new_like(x, (2, 3))
        for row in (0, 1):
            steps.run(operation, [x, x, row], found[row])
        return found.T

    def given(steps: Steps, x: Any) -> Any:
        steps.run(operation, [x, x, 0], new_like(x, x.shape))
        return x

    def shifted(steps: Steps, x: Any) -> Any:
        return steps.run(operation, [x[1:], x[1:], 0], new_like(x, (2,)))

    for function in (of_another, to_the_array, elsewhere, a_part, another_part, transposed, given, shifted):
        words = ("test", function)
        for _ in range(2):
            x = ta.arange(3)
            run_in_steps(words, x, lambda steps, f=function, x=x: f(steps, x))
        assert again(words, x) is None, function.__name__


def test_an_operation_of_several_launches_is_not_noted(doubled, monkeypatch):
    plan = types.SimpleNamespace(kernel=object(), stages=(object(), object()))
    monkeypatch.setattr(steps, "leaf_at", lambda plans, path: plan)
    for _ in range(2):
        np.testing.assert_array_equal(doubled(ta.arange(3)), doubled.expected(np.arange(3)))
    assert doubled.runs == 2


def test_an_eviction_while_steps_are_noted_keeps_none(doubled, monkeypatch):
    """As another thread may do."""
    run = steps.run_fixed

    def run_and_evict(*given: Any) -> Any:
        PLANS._age()
        found = run(*given)
        PLANS._age()
        return found

    monkeypatch.setattr(steps, "run_fixed", run_and_evict)
    for _ in range(2):
        np.testing.assert_array_equal(doubled(ta.arange(3)), doubled.expected(np.arange(3)))
    assert doubled.runs == 2


def test_threads_share_steps_and_not_memory(doubled):
    def run(number: int) -> None:
        for turn in range(50):
            host = np.arange(100) * number + turn
            np.testing.assert_array_equal(doubled(ta.asarray(host)), doubled.expected(host))

    assert in_threads(4, run) == [None] * 4
