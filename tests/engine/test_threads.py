"""Sixteen threads on the same plans, signatures and caches: every result is right, every time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.threads import in_threads

import tilearray as ta
from tilearray.engine import caches, operation, signature
from tilearray.engine.caches import PlanTree, TwoGenerations
from tilearray_host import lanes

THREADS = 16


def together(work: Callable[[int], None]) -> None:
    """Run ``work(number)`` in threads that start together and switch nearly every bytecode; raise their errors."""
    for error in in_threads(THREADS, work, interval=1e-6):
        if error is not None:
            raise error


@pytest.mark.parametrize("size", [3, 5000])
def test_one_plan(size):
    """The same signatures everywhere, different memory and different numbers in every thread."""

    def work(number: int) -> None:
        source = np.arange(size, dtype="float32") + 1000 * number
        x, y = ta.asarray(source), ta.asarray(source[::-1].copy())
        halves = ta.asarray(source % 7).astype("float16")
        for step in range(100):
            assert (x + y).tolist()[0] == source[0] + source[-1]
            assert (x * step)[1].item() == source[1] * np.float32(step)
            assert np.array_equal(ta.to_numpy(halves + number), (source % 7 + number).astype("float16"))
            into = ta.empty(size)
            ta.subtract(x, number, out=into)
            assert into[0].item() == 999 * number

    together(work)


def test_one_array_read_by_all():
    x = ta.asarray(np.arange(100_000, dtype="float32"))
    wanted = float(np.sqrt(np.float32(99_999)))

    def work(number: int) -> None:
        for _ in range(10):
            assert ta.sqrt(x + 0)[-1].item() == wanted
            assert x[number::1000].tolist()[0] == number

    together(work)


def test_plans_and_signatures_that_are_evicted_all_the_time(monkeypatch):
    """Caches of four entries, shared by threads that each bring forty shapes: every call misses, none is wrong."""
    plans = PlanTree(4)
    monkeypatch.setattr("tilearray.engine.execute.PLANS", plans)
    monkeypatch.setattr(signature, "SIGNATURES", TwoGenerations(4))
    monkeypatch.setattr(operation, "EXPRESSIONS", TwoGenerations(4))
    monkeypatch.setattr("tilearray.engine.plan.KERNELS", TwoGenerations(4))
    caches.PLANS.clear()

    def work(number: int) -> None:
        for size in range(1, 40):
            source = np.arange(size * 2, dtype="int64").reshape(2, size) + number
            x = ta.asarray(source, copy=True)
            assert (x + x.copy()).tolist() == (2 * source).tolist()
            assert (x.T * number).tolist() == (source.T * number).tolist()
            x[:, 1:] += x[:, :-1]
            assert x[1, -1].item() == (source[1, -1] + source[1, -2] if size > 1 else source[1, -1])

    together(work)
    plans.clear()


def test_semantics_are_each_threads_own():
    x, y = ta.asarray([200], dtype="uint8"), ta.asarray([-7], dtype="int8")

    def work(number: int) -> None:
        name, dtype = ("triton", "uint8") if number % 2 else ("array-api", "int16")
        for _ in range(50):
            with ta.semantics(name):
                assert (x + y).dtype == dtype
                assert (y // 2).item() == (-3 if number % 2 else -4)
            assert (x + y).dtype == "int16"

    together(work)


def test_the_default_semantics_change_while_others_calculate():
    """`set_semantics` is for all threads: a result follows the old rules or the new ones, never a mixture."""
    x, y = ta.asarray([200], dtype="uint8"), ta.asarray([-7], dtype="int8")
    valid = {("int16", 193): 0, ("uint8", 193): 0}

    def work(number: int) -> None:
        for step in range(50):
            if number == 0:
                ta.set_semantics("triton" if step % 2 else "array-api")
                caches.PLANS.clear()
            found = x + y
            assert (found.dtype.name, found.item()) in valid

    try:
        together(work)
    finally:
        ta.set_semantics("array-api")
    assert (x + y).dtype == "int16"
    with ta.semantics("triton"):
        assert (x + y).dtype == "uint8"


def test_reductions_note_the_memory_that_they_keep():
    """More than all reductions may keep, from all threads at once: the notes of others change meanwhile."""

    def work(number: int) -> None:
        for step in range(300):
            lanes._will_keep(lanes.Spare(), (number + step) * 2**10)

    together(work)
    assert sum([size for _, size in lanes._KEEPERS]) <= max(lanes.KEPT_BYTES, (THREADS + 300) * 2**10)
