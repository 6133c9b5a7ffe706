"""The two caches of a call: plans by signature, kernels by layout class. Counted, bounded, and only ever a cost."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilearray as ta
from tilearray.engine import caches, execute, operation, plan, signature
from tilearray.engine.caches import PlanTree, TwoGenerations
from tilearray.engine.devices import CPU
from tilearray.engine.expression import ExpressionBuilder
from tilearray.promotion.systems import SEMANTICS


class Counter:
    """Counts the calls of a function."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> None:
        self.calls = 0
        self._function = getattr(owner, name)
        monkeypatch.setattr(owner, name, self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return self._function(*args, **kwargs)


@pytest.fixture
def plans(monkeypatch) -> Counter:
    return Counter(monkeypatch, execute, "make_plan")


@pytest.fixture
def kernels(monkeypatch) -> Counter:
    return Counter(monkeypatch, CPU.backend, "compile")


@pytest.fixture(autouse=True)
def empty_caches() -> Iterator[None]:
    caches.PLANS.clear()
    caches.RECIPES.clear()
    caches.KERNELS.clear()
    yield
    caches.PLANS.clear()


CALLS = [
    lambda x, y: x + y,
    lambda x, y: x + 2,
    lambda x, y: 2 + x,
    lambda x, y: -x,
    lambda x, y: x.__iadd__(y),
    lambda x, y: x.__iadd__(2),
    lambda x, y: ta.add(x, y, out=y),
    lambda x, y: ta.where(x > y, x, y),
    lambda x, y: x.copy(),
    lambda x, y: x.astype("int8"),
    lambda x, y: x.__setitem__(..., y),
    lambda x, y: x.__setitem__(..., 5),
    lambda x, y: x.T * y,
    lambda x, y: x[::-1] - y[:, ::2][:, :1],
    lambda x, y: np.float32(2) * x,
]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_planned_once(plans, kernels, call):
    """New memory and new numbers of the same class find the plan."""
    for repetition in range(3):
        x, y = ta.ones((3, 3)), ta.full((3, 3), repetition + 0.5)
        call(x, y)
        if repetition == 0:
            first = plans.calls, kernels.calls
    assert first[0] >= 1
    assert (plans.calls, kernels.calls) == first


def fixed_sum() -> execute.FixedCall:
    """Return the calls that add an int to int64."""
    int64 = np.dtype("int64")
    builder = ExpressionBuilder()
    total = builder.call("add", (builder.array(int64), builder.number(int64)), int64, "{x} + {y}")
    return execute.FixedCall(operation.FixedOperation("test", builder.build([total], [int64])))


def test_a_fixed_call_keeps_its_plan_in_all_semantics_until_plans_are_cleared(plans):
    """In a `lazy` block it is recorded."""
    call = fixed_sum()
    x, out = ta.arange(3), ta.zeros(3, dtype="int64")
    plans.calls = 0
    for number, semantics in enumerate(("array-api", "numpy", "array-api")):
        with ta.semantics(semantics):
            call.run([x, number], out)
        assert out.tolist() == [number, number + 1, number + 2]
    assert plans.calls == 1
    caches.PLANS.clear()
    for number in (5, 6):
        call.run([x, number], out)
    assert plans.calls == 2
    with ta.lazy():
        call.run([x + 10, 1], out)
    assert out.tolist() == [11, 12, 13]


def test_a_fixed_call_keeps_no_plan_that_is_evicted_while_it_runs(plans, monkeypatch):
    """As another thread may do."""
    run_fixed = execute.run_fixed

    def run_and_evict(*arguments: Any) -> None:
        run_fixed(*arguments)
        caches.PLANS._age()

    monkeypatch.setattr(execute, "run_fixed", run_and_evict)
    call, x, out = fixed_sum(), ta.arange(3), ta.zeros(3, dtype="int64")
    for number in range(3):
        call.run([x, number], out)
        assert out.tolist() == [number, number + 1, number + 2]


def test_a_fixed_call_keeps_nothing_where_no_plan_is_made():
    """The device of an explanation records calls, and the plans of these semantics are empty before and after."""
    x, rows = ta.asarray([1.0, 2.0, 3.0]), ta.asarray([2, 0])
    caches.PLANS.clear()
    explained = ta.explain(lambda x, rows: x[rows] + x[rows], x, rows, arch=90)
    assert len(explained.launches) == 3


def test_numbers_of_one_class_share_a_plan(plans):
    x = ta.arange(3)
    plans.calls = 0  # that of the range
    for number in (1, -7, 2**31 - 1):
        assert (x + number).tolist() == [number, number + 1, number + 2]
    assert plans.calls == 1
    assert (x + 2**40).tolist() == [2**40, 2**40 + 1, 2**40 + 2]
    assert plans.calls == 1, "every int asks for the dtype of the array"
    assert [(x * number).dtype.name for number in (2.5, -1e30, 1e300)] == ["float32", "float32", "float64"]
    assert plans.calls == 3, "the value of a float beside integers decides the dtype"


def test_numbers_of_one_class_share_a_plan_when_expressions_are_evicted(plans, monkeypatch):
    """The classes give equal expressions, which need not be the same object."""
    x = ta.arange(3)
    monkeypatch.setattr(operation, "EXPRESSIONS", TwoGenerations(1))
    execute._DECIDES.clear()
    plans.calls = 0
    for number in (1, 2**40):
        assert (x + number).tolist() == [number, number + 1, number + 2]
    assert plans.calls == 1


FAMILIES = [
    ("contiguous", lambda n: (n,), lambda x, y: x + y),
    ("merged axes", lambda n: (n, 3, n + 1), lambda x, y: x + y),
    ("number", lambda n: (n,), lambda x, y: x * 2.5),
    ("transposed", lambda n: (n, n), lambda x, y: x + y.T),
    ("strided", lambda n: (4 * n,), lambda x, y: x[::4] + y[::2][::2]),
    ("row", lambda n: (n, n + 3), lambda x, y: x + y[0]),
    ("column", lambda n: (n, n + 3), lambda x, y: x + y[:, :1]),
    ("windows", lambda n: (n + 4, n + 5), lambda x, y: x[1:-1, 1:-2] + y[:-2, 3:]),
    ("permuted", lambda n: (n, 3, n + 2), lambda x, y: x.permute_dims(2, 0, 1) + y.permute_dims(2, 0, 1).copy()),
    ("mirrored", lambda n: (n, n + 1), lambda x, y: x[::-1] + y[:, ::-1]),
    ("in place", lambda n: (n,), lambda x, y: x.__iadd__(y)),
    ("cast", lambda n: (n,), lambda x, y: x.astype("float16")),
    ("fill", lambda n: (n,), lambda x, y: x.__setitem__(..., 1)),
]
KNOWN, NEW = range(2, 35), range(35, 81)


@pytest.mark.parametrize(("shape_of", "call"), [case[1:] for case in FAMILIES], ids=[case[0] for case in FAMILIES])
def test_new_shapes_of_a_known_layout_class_compile_nothing(plans, kernels, shape_of, call):
    """The known ones meet every class: narrow and wide rows, strides that 16 divides and others."""
    for sizes in (KNOWN, NEW):
        before, planned = kernels.calls, plans.calls
        for size in sizes:
            x = ta.ones(shape_of(size))
            call(x, x.copy())
        if sizes is KNOWN:
            assert 0 < kernels.calls < len(KNOWN) / 2
        else:
            assert kernels.calls == before
            assert plans.calls >= planned + len(NEW)


def test_all_shapes_together_need_few_kernels(kernels):
    for rank, seed in itertools.product(range(1, 5), range(40)):
        rng = np.random.default_rng((rank, seed))
        x = ta.asarray(np.zeros(rng.integers(2, 6, rank), "float32"))
        y = x.copy().permute_dims(rng.permutation(rank).tolist()).copy()
        ta.exp(x.permute_dims(rng.permutation(rank).tolist()))
        ta.exp(y[tuple(slice(None, None, int(step)) for step in rng.choice([1, -1, 2], rank))])
    assert kernels.calls <= 40


def test_semantics_have_plans_of_their_own(plans):
    x, y = ta.asarray([1], dtype="uint8"), ta.asarray([1], dtype="int8")
    dtypes = []
    for name in ("array-api", "triton", "array-api", "triton"):
        with ta.semantics(name):
            dtypes.append((x + y).dtype.name)
    assert dtypes == ["int16", "uint8"] * 2
    assert plans.calls == 2


def test_eviction_costs_only_a_miss(monkeypatch, plans):
    """Every cache holds next to nothing: the results stay, the plans are made again."""
    monkeypatch.setattr(execute, "PLANS", PlanTree(2))
    monkeypatch.setattr(signature, "SIGNATURES", TwoGenerations(1))
    monkeypatch.setattr(operation, "EXPRESSIONS", TwoGenerations(1))
    monkeypatch.setattr(plan, "KERNELS", TwoGenerations(1))
    caches.PLANS.clear()
    arrays = [ta.asarray(np.arange(n)) for n in range(1, 12)]
    for _ in range(3):
        for n, x in enumerate(arrays, 1):
            y = ta.asarray(np.arange(n))
            assert (x + y).tolist() == list(range(0, 2 * n, 2))
            assert (x.astype("float16") * 2).tolist() == list(range(0, 2 * n, 2))
            assert x[::-1].tolist() == list(range(n))[::-1]
            x += 0
            x[...] = x
    assert plans.calls >= 3 * 11
    assert len(execute.PLANS) <= 2


def test_a_plan_of_the_old_generation_is_found_again(monkeypatch, plans):
    monkeypatch.setattr(execute, "PLANS", PlanTree(3))
    arrays = [ta.asarray(np.arange(n)) for n in range(1, 7)]
    for x in arrays[:4]:  # the fourth makes the first three old
        x + x
    assert plans.calls == 4
    for x in arrays[2:4] + arrays[:1]:
        x + x
    assert plans.calls == 4
    for x in arrays[4:]:  # now the second, never asked for again, is dropped
        x + x
    arrays[1] + arrays[1]
    assert plans.calls == 7


def test_an_equal_signature_made_after_an_eviction_is_as_good(monkeypatch):
    x, y = ta.arange(4), ta.arange(4)
    monkeypatch.setattr(signature, "SIGNATURES", TwoGenerations(8))
    monkeypatch.setattr(signature, "_KNOWN", {})
    z = ta.arange(4)
    assert z._signature is not x._signature
    assert (x + z).tolist() == (z + y).tolist() == [0, 2, 4, 6]
    x[1:] += z[:-1]
    x[...] = x[...]
    assert x.tolist() == [0, 1, 3, 5]


def leaves(node: Any) -> int:
    return sum(map(leaves, node.values())) if isinstance(node, dict) else 1


def test_the_plan_cache_is_bounded(monkeypatch):
    tree = PlanTree(8)
    monkeypatch.setattr(execute, "PLANS", tree)
    roots = [execute.plans_of(rules) for rules in SEMANTICS.values()]
    for size in range(1, 60):
        for name in ("array-api", "triton"):
            with ta.semantics(name):
                x = ta.ones(size)
                ta.exp(x + x)
        assert len(tree) <= 8
        assert sum(map(leaves, roots)) <= 8
        assert leaves(tree._old) <= 8
    tree.clear()
    assert len(tree) == sum(map(leaves, roots)) == leaves(tree._old) == 0


def test_the_real_caches_are_bounded():
    assert caches.PLANS.capacity <= 10_000
    for cache in (caches.KERNELS, caches.RECIPES, signature.SIGNATURES, operation.EXPRESSIONS):
        assert 0 < cache.capacity <= 10_000


# --- the containers, against a dictionary -------------------------------


@given(st.integers(1, 5), st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=60))
def test_two_generations_only_ever_forget(capacity, steps):
    cache: TwoGenerations[str] = TwoGenerations(capacity)
    kept: dict[int, str] = {}
    recent: list[int] = []
    for writes, key in steps:
        if writes:
            kept[key] = cache.put(key, kept.get(key, f"value of {key}") if cache.get(key) else f"value of {key}")
        found = cache.get(key)
        assert found is None or found == kept[key]
        if writes:
            assert found is not None
        recent = [key, *[other for other in recent if other != key]] if found is not None else recent
        assert len(cache) <= 2 * capacity
        for used in recent[:1]:
            assert cache.get(used) is not None
    cache.clear()
    assert len(cache) == 0
    assert all(cache.get(key) is None for key in kept)


@given(st.integers(1, 4), st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 3)), max_size=50))
def test_a_plan_tree_finds_what_is_there_or_nothing(capacity, paths):
    tree = PlanTree(capacity)
    roots: list[dict[Any, Any]] = [{}, {}]
    for which, first, second in paths:
        path = (first, second)
        root = roots[which]
        young = root.get(first, {}).get(second)
        found = young or tree.find_old(root, path)
        assert found in (None, (which, *path))
        if young is None:
            tree.keep(root, path, (which, *path))
        assert root[first][second] == (which, *path)
        assert sum(map(leaves, roots)) == len(tree) <= capacity


# --- while a generation ends ----------------------------------------------------------------------------------------


class Finalized:
    """Runs a function when it is forgotten."""

    def __init__(self, function: Callable[[], object]) -> None:
        self.function = function

    def __del__(self) -> None:
        self.function()


def within(seconds: float, function: Callable[[], object]) -> bool:
    """Whether a function, run in a thread of its own, has returned in time."""
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


def test_finalizers_of_dropped_entries_may_make_plans():
    """Its finalizer runs while the generation ends, in the thread that ends it."""
    tree, root, numbers = PlanTree(2), {}, itertools.count()

    def keep(leaf):
        tree.keep(root, ("op", next(numbers)), leaf)

    def fill():
        for _ in range(8):
            keep(Finalized(lambda: keep(None)))

    assert within(10, fill)
    assert next(numbers) > 8
    assert len(tree) <= 2
    tree.clear()


def test_callbacks_of_a_drop_may_add_entries():
    def dropped(number):
        if number < 10:
            cache.put(number + 100, number + 100)
            cache.put(number + 200, number + 200)

    cache = TwoGenerations(2, dropped)
    assert within(10, lambda: [cache.put(number, number) for number in range(10)])
    assert len(cache) <= 4


def test_semantics_that_are_new_while_a_generation_ends():
    """Threads that put their first plan under new semantics, while others end the generation."""
    tree, errors = PlanTree(2), []

    def work():
        try:
            for root in [{} for _ in range(600)]:
                tree.keep(root, ("op", 1), 1)
        except RuntimeError as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []


FORKED = """
import os, sys, threading
from tilearray.engine.caches import TwoGenerations

busy, go = threading.Event(), threading.Event()
cache = TwoGenerations(1, lambda value: (busy.set(), go.wait()))
thread = threading.Thread(target=lambda: [cache.put(number, number) for number in range(3)])
thread.start()
busy.wait()  # a thread ends a generation
if child := os.fork():
    go.set()
    thread.join()
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
cache._dropped = None
for number in range(5):
    cache.put(number, number)
os._exit(len(cache) > 2)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_that_is_forked_while_a_generation_ends():
    """It has the caches, and not the thread that was at it."""
    assert subprocess.run([sys.executable, "-c", FORKED], timeout=60, check=False).returncode == 0
