"""What runs during an operation, and what an interrupt leaves behind: the caller's context, as it was."""

from __future__ import annotations

import contextvars
import os
import subprocess
import sys
from typing import Any

import numpy as np
from support.interrupts import interrupted_everywhere

import tilearray as ta

REQUEST: contextvars.ContextVar[Any] = contextvars.ContextVar("request", default=None)


def test_an_operation_keeps_no_context_alive():
    """In a process of its own: contexts were kept of the first operations."""
    code = """
import contextvars, weakref
import tilearray as ta
request = contextvars.ContextVar("request")
def handle():
    request.set(type("Request", (), {})())
    x = ta.ones(10, device="cpu")
    assert (x * x + ta.astype(x, "float64")).tolist() == [2.0] * 10
    return weakref.ref(request.get())
held = [contextvars.Context().run(handle) for _ in range(3)]
import gc
gc.collect()
print([one() for one in held])
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert (done.stdout, done.stderr) == ("[None, None, None]\n", "")


def test_what_runs_during_an_operation_sees_the_callers_context():
    """A profile function stands for signal handlers and finalizers: it runs whenever a function is entered."""
    x, y = ta.ones(10, device="cpu"), ta.ones(10, dtype="float64", device="cpu")
    seen: list[Any] = []

    def profile(frame: Any, event: str, _: object) -> None:
        if "tilearray_host" in frame.f_code.co_filename:
            seen.append((REQUEST.get(), ta.get_semantics().name))
            REQUEST.set(REQUEST.get() + 1)

    def work(start: int) -> None:
        seen.clear()
        REQUEST.set(start)
        with ta.semantics("numpy"):
            sys.setprofile(profile)
            try:
                x + y
                x + x
            finally:
                sys.setprofile(None)
        assert len(seen) > 4
        assert seen == [(start + step, "numpy") for step in range(len(seen))]
        assert REQUEST.get() == start + len(seen)

    for start in (0, 1000):
        contextvars.Context().run(work, start)


def test_an_operation_leaves_numpys_error_state_as_it_was():
    x = ta.asarray([0.0, 1.0], device="cpu")
    with np.errstate(divide="raise", invalid="warn", over="print"):
        before = np.geterr()
        interrupts = sum(raised for _, raised in _each(lambda: x / x, lambda: np.geterr() == before))
        assert interrupts > 10


def _each(work: Any, holds: Any) -> list[tuple[int, bool]]:
    """Interrupt `work` everywhere, and look after each time whether `holds` still does."""
    done: list[tuple[int, bool]] = []
    for step in interrupted_everywhere(work):
        assert holds(), f"not after an interrupt at bytecode {step[0]}"
        done.append(step)
    return done
