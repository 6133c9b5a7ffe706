"""Calls on the host over several threads: the bits of one thread, errors that come out, and processes that fork."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support.interrupts import interrupted_everywhere
from support.processes import in_fresh_python
from support.threads import in_threads

import tilearray as ta
from tilearray_host import kernel, threads


@pytest.fixture
def helpers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Sets the number of threads of a call."""

    def use(count: int) -> None:
        monkeypatch.setenv(threads.ENVIRONMENT_VARIABLE, str(count))
        threads._HELPERS.dismiss()
        threads._HELPERS.start_over()

    yield use
    threads._HELPERS.dismiss()
    threads._HELPERS.start_over()


@pytest.mark.parametrize(("dtype", "expected"), [("float32", 1), ("float64", 4)])
def test_slow_functions_of_fewer_elements_run_in_several_threads(helpers, dtype, expected, monkeypatch):
    helpers(2)
    parts: list[int] = []

    def counted(run: Callable[[Any], None], given: Any, elements: int) -> None:
        given = list(given)
        parts.append(len(given) if elements >= threads.ELEMENTS else 1)
        for part in given:
            run(part)

    monkeypatch.setattr(kernel, "in_threads", counted)
    x = ta.asarray(np.linspace(0, 9, 110_000).astype(dtype), device="cpu")
    found = ta.fuse(lambda x: ta.sin(x) * ta.cos(x) + ta.exp(x) * ta.tan(x) + ta.cbrt(x))(x)
    assert (parts or [1]) == [expected]
    assert found.tolist() == (ta.sin(x) * ta.cos(x) + ta.exp(x) * ta.tan(x) + ta.cbrt(x)).tolist()


def programs() -> dict[str, Callable[[], Any]]:
    rng = np.random.default_rng(3)
    x = ta.asarray(rng.normal(size=(700, 1500)).astype("float32"))
    y = ta.asarray(rng.normal(size=(1500,)).astype("float32"))

    @ta.fuse
    def several(x: Any, y: Any) -> Any:
        z = x * y + ta.exp(-x)
        return z, z > 0, (z * 3).astype("bfloat16")

    def in_place() -> Any:
        z = x.copy()
        z *= 3
        ta.fuse(lambda z, y: z.__iadd__(ta.tanh(z) * y))(z, y)
        return z

    return {
        "fused": lambda: several(x, y),
        "in place": in_place,
        "rows": lambda: (ta.sum(x, axis=1), ta.var(x[:, 1:], axis=1), ta.max(x, axis=1)),
        "columns": lambda: (ta.sum(x, axis=0), ta.mean(x.T, axis=1), ta.prod(x[::2], axis=0)),
        "all": lambda: (ta.sum(x), ta.std(x), ta.argmin(x)),
        "softmax": lambda: (ta.softmax(x, axis=1), ta.softmax(x, axis=0)),
        "casts": lambda: (x.astype("bfloat16"), x.astype("int8"), x.astype("float8_e4m3fn")),
        "rounded": lambda: x.astype("bfloat16", rounding="rs", seed=7),
    }


@pytest.mark.parametrize("name", programs())
def test_results_have_the_bits_of_one_thread(helpers: Callable[[int], None], name: str) -> None:
    def bits() -> list[bytes]:
        found = programs()[name]()
        return [ta.to_numpy(each).tobytes() for each in (found if isinstance(found, tuple) else (found,))]

    helpers(1)
    expected = bits()
    for count in (2, 5):
        helpers(count)
        assert bits() == expected


def test_parts_run_in_several_threads(helpers: Callable[[int], None]) -> None:
    helpers(3)
    together = threading.Barrier(3, timeout=30)  # passes only if three threads wait
    threads.in_threads(lambda part: together.wait(), range(3), threads.ELEMENTS)


def test_few_elements_and_a_single_part_stay_in_the_thread(helpers: Callable[[int], None]) -> None:
    helpers(3)
    seen = set[int]()
    threads.in_threads(lambda part: seen.add(threading.get_ident()), range(50), threads.ELEMENTS - 1)
    threads.in_threads(lambda part: seen.add(threading.get_ident()), [0], threads.ELEMENTS)
    assert seen == {threading.get_ident()}
    assert threads._HELPERS._threads == []


@pytest.mark.parametrize("failing", ["caller", "helper"])
def test_an_error_of_a_part_comes_out_and_ends_the_others(helpers: Callable[[int], None], failing: str) -> None:
    helpers(2)
    both, begun = threading.Barrier(2, timeout=30), []

    def run(part: int) -> None:
        begun.append(part)
        if part < 2:
            both.wait()
            if (threading.current_thread() is threading.main_thread()) == (failing == "caller"):
                raise MemoryError(part)
            threading.Event().wait(0.05)

    with pytest.raises(MemoryError):
        threads.in_threads(run, range(1000), threads.ELEMENTS)
    assert len(begun) < 10


def test_an_interrupt_between_two_parts_ends_the_helpers(helpers: Callable[[int], None]) -> None:
    helpers(2)
    both, begun = threading.Barrier(2, timeout=30), []

    class Parts:
        """An iterator that goes on after it was interrupted, which a generator does not."""

        def __init__(self) -> None:
            self.numbers = iter(range(1000))

        def __iter__(self) -> Iterator[int]:
            return self

        def __next__(self) -> int:
            number = next(self.numbers)
            if number > 1 and threading.current_thread() is threading.main_thread():
                raise KeyboardInterrupt
            return number

    def run(part: int) -> None:
        begun.append(part)
        if part < 2:
            both.wait()
        else:
            threading.Event().wait(0.002)

    with pytest.raises(KeyboardInterrupt):
        threads.in_threads(run, Parts(), threads.ELEMENTS)
    assert len(begun) < 200


def test_an_interrupt_while_helpers_are_asked_ends_them(
    helpers: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    helpers(2)
    ask, begun, working = threads._HELPERS.ask, [], threading.Event()

    def interrupted(job: Callable[[], None]) -> None:
        ask(job)
        working.wait(30)
        raise KeyboardInterrupt

    def run(part: int) -> None:
        begun.append(part)
        working.set()
        threading.Event().wait(0.002)

    monkeypatch.setattr(threads._HELPERS, "ask", interrupted)
    with pytest.raises(KeyboardInterrupt):
        threads.in_threads(run, range(1000), threads.ELEMENTS)
    found = len(begun)
    threads._HELPERS.dismiss()  # waits for all that they do
    assert len(begun) == found < 200


def test_an_interrupt_anywhere_leaves_the_helpers_to_others(helpers: Callable[[int], None]) -> None:
    """No lock stays locked, for which later calls would wait for good."""
    helpers(2)

    def call(count: int = 3) -> list[int]:
        done: list[int] = []
        threads.in_threads(done.append, range(count), threads.ELEMENTS)
        return sorted(done)

    everywhere = 0
    for _ in interrupted_everywhere(call):
        everywhere += 1
        assert in_threads(1, lambda _: call(20)) == [[*range(20)]]
    assert everywhere > 50


def test_a_finalizer_may_call_the_library_while_helpers_are_asked(
    helpers: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    helpers(2)
    found = []

    class Helper(threads._Helper):
        def start(self) -> None:
            if not found:  # as a finalizer that runs here would
                found.append(None)
                threads.in_threads(found.append, range(3), threads.ELEMENTS)
                threads._HELPERS.dismiss()
            super().start()

    monkeypatch.setattr(threads, "_Helper", Helper)
    done: list[int] = []
    threads.in_threads(done.append, range(3), threads.ELEMENTS)
    assert (sorted(done), len(found)) == ([0, 1, 2], 4)


def test_busy_helpers_keep_no_memory_of_calls_that_ended(helpers: Callable[[int], None]) -> None:
    helpers(2)
    begun, ends = threading.Barrier(3, timeout=30), threading.Event()

    def waits(_: int) -> None:
        begun.wait()
        ends.wait(30)

    busy = threading.Thread(target=threads.in_threads, args=(waits, range(2), threads.ELEMENTS))
    busy.start()
    begun.wait()
    try:
        memory = np.zeros(3)
        kept = weakref.ref(memory)
        threads.in_threads(memory.fill, range(3), threads.ELEMENTS)
        del memory
        assert kept() is None
    finally:
        ends.set()
        busy.join()


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5"])
def test_a_wrong_number_of_threads_is_an_error(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("TILEARRAY_THREADS", text)
    with pytest.raises(ValueError, match=rf"TILEARRAY_THREADS: expected a number .*, got {text!r}; write 1 or 4"):
        threads.most_threads()


def test_there_are_not_more_threads_than_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEARRAY_THREADS", raising=False)
    assert 1 <= threads.most_threads() <= min(threads.MOST, os.cpu_count() or 1)


FORKS = """
import os, threading, warnings
warnings.simplefilter("error")  # Python 3.12 warns if a process with threads forks
import tilearray as ta
x = ta.ones((1000, 1000), device="cpu")
def work():
    return int(ta.sum(ta.sum(x + 1, axis=1))), int(ta.sum(x.astype("int8"), axis=0)[5])
assert work() == (2_000_000, 1000)
assert threading.active_count() > 1
child = os.fork()
if child == 0:
    os._exit(0 if work() == (2_000_000, 1000) and threading.active_count() > 1 else 1)
assert os.waitpid(child, 0)[1] == 0
assert work() == (2_000_000, 1000)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason=f"{sys.platform} cannot fork")
def test_a_forked_process_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEARRAY_THREADS", "3")
    in_fresh_python(FORKS)
