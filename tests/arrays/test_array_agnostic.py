"""`array_agnostic`: what a function is handed, in which containers, and what its caller gets."""

from __future__ import annotations

import asyncio
import collections
import inspect
import os
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilearray as ta

torch = pytest.importorskip("torch")


class Pair(NamedTuple):
    first: Any
    second: Any


@ta.array_agnostic
def combined(x, y=1, *, more=(), **named):
    """Multiply, and say what came."""
    kinds = [type(value).__name__ for value in (x, *more, *named.values())]
    return {"product": x * y, "pair": Pair(x, [y, "text"]), "kinds": kinds}


HOLDINGS = {
    "numpy": (lambda: np.arange(3.0), np.ndarray),
    "torch": (lambda: torch.arange(3.0), torch.Tensor),
    "tilearray": (lambda: ta.asarray(np.arange(3.0), device="cpu"), ta.Array),
}


@pytest.mark.parametrize("library", HOLDINGS)
def test_a_function_takes_and_returns_what_its_caller_holds(library):
    make, kind = HOLDINGS[library]
    x = make()
    found = combined(x, 2, more=[make(), 3], other=make())
    assert found["kinds"] == ["Array", "Array", "int", "Array"]
    assert type(found["product"]) is kind
    assert type(found["pair"]) is Pair
    assert type(found["pair"].first) is kind
    assert found["pair"].second == [2, "text"]
    assert found["product"].tolist() == [0, 2, 4]
    found["pair"].first[0] = 9  # the same memory
    assert float(x[0]) == 9


def test_a_function_of_jax_arrays():
    jax = pytest.importorskip("jax")
    found = combined(jax.numpy.arange(3, dtype="float32"), 2)
    assert isinstance(found["product"], jax.Array)
    assert found["product"].tolist() == [0, 2, 4]


class Ordered(dict):
    """A dict of its own."""


class Listed(list):
    """A list of its own."""


class Sub(Pair):
    """A named tuple with a constructor of its own."""

    def __new__(cls, both):
        return super().__new__(cls, both, both)


@ta.array_agnostic
def handed(x, *others, **named):
    """Add to whatever is a list or dict, and hand on what came."""
    for other in (*others, *named.values()):
        if isinstance(other, list):
            other.append("seen")
        elif isinstance(other, dict):
            other["seen"] = 1
    return x, others, named


@pytest.mark.parametrize(
    "make",
    [
        *(list, dict, Listed, Ordered, set, collections.OrderedDict, collections.Counter),
        *(lambda: [1, [2, (3,)]], lambda: {"a": {"b": []}}, lambda: collections.defaultdict(list, a=1)),
        *(lambda: Sub(3), lambda: sys.version_info, lambda: os.stat(__file__), lambda: Pair(1, [2])),
        *(lambda: iter([1]), lambda: "text", lambda: range(3), object, lambda: Listed([np.ones(2)])),
    ],
)
def test_what_holds_no_arrays_passes_as_it_is(make):
    given, named = make(), make()
    x, (found,), more = handed(np.arange(3.0), given, named=named)
    assert type(x) is np.ndarray
    assert found is given
    assert more["named"] is named
    if isinstance(given, (list, dict)):
        assert [list(one)[-1] for one in (given, named)] == ["seen", "seen"]


def test_containers_with_arrays_are_new_ones_of_their_types():
    log: list[str] = []
    a = np.arange(3.0)
    factory = collections.defaultdict(list, a=a, log=log)
    ordered = collections.OrderedDict([("z", [a]), ("a", (a, log))])
    given = [[a, log], (a, log), Sub(a), {"a": a, "log": log}, ordered, factory, (log,)]
    before = [type(one) for one in given]
    inside: list[object] = []

    @ta.array_agnostic
    def function(held):
        inside.extend(held)
        held[0].append("new")
        held[0][1].append("log")
        return held

    found = function(given)
    assert [type(one) for one in inside] == [type(one) for one in found[: len(before)]] == before
    assert [type(one) for one in (inside[0][0], inside[1][0], inside[2].first, inside[3]["a"])] == [ta.Array] * 4
    assert [type(one) for one in (inside[4]["z"][0], inside[4]["a"][0], inside[5]["a"])] == [ta.Array] * 3
    assert list(inside[4]) == ["z", "a"]
    assert (inside[5].default_factory, found[5].default_factory) == (list, list)
    assert inside[6] is given[6]
    for one in (inside[0][1], inside[1][1], inside[3]["log"], inside[4]["a"][1], inside[5]["log"], found[0][1]):
        assert one is log
    assert log == ["log"]
    assert len(given[0]) == 2
    assert given[0][0] is given[2].first is given[3]["a"] is a
    assert type(found[0][0]) is type(found[2].second) is type(found[4]["z"][0]) is np.ndarray


def test_containers_that_hold_themselves():
    plain: list[object] = [1]
    plain.append((plain, {"self": plain}))
    assert handed(np.ones(1), plain)[1][0] is plain
    a = np.arange(3.0)
    looped: list[object] = [a]
    looped.append((looped, a))
    table: dict[str, object] = {"list": looped}
    table["self"] = table

    @ta.array_agnostic
    def function(x, y):
        assert x[1][0] is x
        assert y["self"] is y
        assert y["list"] is x
        assert type(x[0]) is type(x[1][1]) is ta.Array
        return x, y

    x, y = function(looped, table)
    assert x is not looped
    assert x[1][0] is x is y["list"]
    assert y["self"] is y
    assert type(x[0]) is type(x[1][1]) is np.ndarray
    deep: list[object] = []
    for _ in range(10**4):
        deep = [deep]
    assert handed(a, deep)[1][0] is deep


def test_what_coroutines_and_generators_hand_out():
    @ta.array_agnostic
    async def later(x):
        assert type(x) is ta.Array
        return {"twice": x * 2}

    @ta.array_agnostic
    def parts(x):
        sent = yield x * 2
        try:
            yield [sent, x]
        except KeyError as error:
            yield x, error.args
        return x * 3

    @ta.array_agnostic
    async def parts_later(x):
        sent = yield x * 2
        try:
            yield [sent, x]
        except KeyError as error:
            yield x, error.args

    a = np.arange(3.0)
    assert inspect.iscoroutinefunction(later)
    assert later.__name__ == "later"
    found = asyncio.run(later(a))
    assert type(found["twice"]) is np.ndarray
    assert type(asyncio.run(later(ta.asarray(a)))["twice"]) is ta.Array

    running = parts(a)
    assert type(next(running)) is np.ndarray
    sent, x = running.send("sent")
    assert (sent, type(x)) == ("sent", np.ndarray)
    x, arguments = running.throw(KeyError("thrown"))
    assert (type(x), arguments) == (np.ndarray, ("thrown",))
    with pytest.raises(StopIteration) as stopped:
        next(running)
    assert type(stopped.value.value) is np.ndarray
    assert stopped.value.value.tolist() == [0, 3, 6]
    assert [type(x) for x in (next(iter(parts(a))), next(parts(ta.asarray(a))))] == [np.ndarray, ta.Array]

    async def drive() -> None:
        running = parts_later(a)
        assert type(await anext(running)) is np.ndarray
        sent, x = await running.asend("sent")
        assert (sent, type(x)) == ("sent", np.ndarray)
        x, arguments = await running.athrow(KeyError("thrown"))
        assert (type(x), arguments) == (np.ndarray, ("thrown",))
        with pytest.raises(StopAsyncIteration):
            await anext(running)
        async for x in parts_later(a):
            assert type(x) is np.ndarray
            break
        closed = parts_later(a)
        await anext(closed)
        await closed.aclose()

    asyncio.run(drive())


def test_a_generator_is_closed_with_what_it_was_wrapped_in():
    closed: list[object] = []

    @ta.array_agnostic
    def parts(x):
        try:
            yield x
        finally:
            closed.append(x)

    running = parts(np.arange(3.0))
    next(running)
    running.close()
    assert len(closed) == 1


def test_arrays_of_two_libraries_are_refused():
    message = r"combined: expected arrays of one library, got arrays of numpy and torch; write ta\.asarray\(x\)"
    with pytest.raises(ta.OperandError, match=message):
        combined(np.arange(3.0), torch.arange(3.0))
    assert type(combined(torch.arange(3.0), ta.asarray(2.0, device="cpu"))["product"]) is torch.Tensor


def test_the_function_keeps_its_name():
    assert (combined.__name__, combined.__doc__) == ("combined", "Multiply, and say what came.")


def test_no_arrays_at_all():
    assert ta.array_agnostic(lambda x: x + 1)(2) == 3


@pytest.mark.parametrize(("library", "bound"), [("numpy", 56), ("torch", 64)])
def test_a_fused_function_of_another_librarys_arrays_enters_few_functions(library, bound):
    """The adoption of two arrays, and the export of one: nothing is searched for arrays, and no module is imported."""
    x = pytest.importorskip(library).ones(10)
    fused = ta.fuse(lambda x, y: x * y + 1)
    for _ in range(2):
        fused(x, x)
    calls = []
    for _ in range(3):  # the fewest of three: a full cache may be emptied between, or garbage collected
        entered = []
        sys.setprofile(lambda frame, event, _, to=entered: to.append(frame.f_code.co_name) if event == "call" else None)
        try:
            found = fused(x, x)
        finally:
            sys.setprofile(None)
        assert type(found) is type(x)
        calls.append(entered)
    fewest = min(calls, key=len)
    assert len(fewest) <= bound, fewest


def test_containers_and_plain_arguments_are_adopted_alike():
    def both(*values):
        return [ta.sum(leaf) * 1 for value in values for leaf in (value if isinstance(value, list) else [value])]

    x, y = np.ones(3), np.arange(3.0)
    plain = ta.array_agnostic(both)(x, y)
    held = ta.array_agnostic(both)([x, y])
    assert [type(each) for each in plain] == [type(each) for each in held] == [np.ndarray] * 2
    assert [float(each) for each in plain] == [float(each) for each in held] == [3, 3]
    with pytest.raises(ta.OperandError, match="arrays of one library, got arrays of numpy and torch"):
        ta.array_agnostic(both)(x, pytest.importorskip("torch").ones(3))
