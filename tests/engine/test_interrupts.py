"""What runs during an operation, what an interrupt leaves behind, and a fork: the caller's context, as it was."""

from __future__ import annotations

import contextvars
import os
import subprocess
import sys
from contextlib import ExitStack, nullcontext
from typing import Any

import numpy as np
import pytest
from support.interrupts import interrupted_everywhere

import tilearray as ta
from tilearray.arrays.fusion.tracing import open_trace, traced
from tilearray.engine.context import STATE
from tilearray.gradients import steps

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
        assert len(seen) >= 2  # a planned call enters a function of the backend, or NumPy alone
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


@pytest.mark.parametrize("again", [False, True])
def test_a_block_does_not_outlive_an_interrupt(again):
    block = ta.semantics("triton")

    def body() -> None:
        """Where a function begins Python looks at signals."""

    def work() -> None:
        with block:
            body()

    with ta.semantics("torch"), block if again else nullcontext():
        within = STATE.get()
        raised = 0
        for number, came_out in interrupted_everywhere(work):
            assert STATE.get() is within, f"after an interrupt at bytecode {number}"
            raised += came_out
        assert raised > 100


def test_a_block_does_not_outlive_an_interrupt_whose_traceback_is_kept():
    kept: list[KeyboardInterrupt] = []

    def work() -> None:
        try:
            with ta.semantics("triton"):
                pass  # no call: Python looks at signals when __exit__ begins
        except KeyboardInterrupt as error:
            kept.append(error)
            states.append(STATE.get())

    within = STATE.get()
    states: list[object] = []
    for _ in interrupted_everywhere(work):
        assert STATE.get() is within
    assert len(kept) > 100
    assert set(states) == {within}


def test_an_exit_stack_enters_and_leaves_blocks():
    with ExitStack() as stack:
        assert stack.enter_context(ta.semantics("triton")).name == "triton"
        assert ta.get_semantics().name == "triton"
    assert ta.get_semantics().name == "array-api"


def test_a_forked_child_enters_blocks_while_a_thread_of_the_parent_does():
    code = """
import os, signal, sys, threading, warnings
import tilearray as ta
from tilearray.engine.context import Block
class Slow(Block):
    _field = "stream"
    def _value(self):
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            forked.wait()
        return 16
inside, forked = threading.Event(), threading.Event()
def enter():
    for _ in range(3):  # once or more often within what must not be interrupted
        with Slow():
            pass
below = Slow()
below.__enter__()
thread = threading.Thread(target=enter)
thread.start()
inside.wait()
warnings.simplefilter("ignore", DeprecationWarning)
if child := os.fork():
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    forked.set()
    thread.join()
    sys.exit(status)
signal.alarm(30)  # ends a child that hangs
with ta.semantics("triton"), Slow():
    assert ta.get_semantics().name == "triton"
ta.set_semantics("torch")
assert ta.get_semantics().name == "torch"
below.__exit__(None, None, None)
assert ta.get_semantics().name == "torch"
os._exit(7)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (7, "")


def test_a_forked_child_compiles_while_a_thread_of_the_parent_does():
    code = """
import os, signal, sys, threading, types, warnings
from tilearray_cuda.kernels import compile
inside, forked = threading.Event(), threading.Event()
metadata = types.SimpleNamespace(global_scratch_size=0, name="k", num_warps=4, shared=0)
def made(*_):
    if threading.current_thread() is not threading.main_thread():
        inside.set()
        forked.wait()
    return types.SimpleNamespace(metadata=metadata, asm={"cubin": b"code", "ptx": ""})
compile._compile = made
source = types.SimpleNamespace(name="k", memory=0)
thread = threading.Thread(target=compile.compile_source, args=(source, 90))
thread.start()
inside.wait()
warnings.simplefilter("ignore", DeprecationWarning)
if child := os.fork():
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    forked.set()
    thread.join()
    sys.exit(status)
signal.alarm(30)  # ends a child that hangs
assert compile.compile_source(source, 90).cubin == b"code"
os._exit(7)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (7, "")


def _each(work: Any, holds: Any) -> list[tuple[int, bool]]:
    """Interrupt `work` everywhere, and look after each time whether `holds` still does."""
    done: list[tuple[int, bool]] = []
    for step in interrupted_everywhere(work):
        assert holds(), f"not after an interrupt at bytecode {step[0]}"
        done.append(step)
    return done


def test_no_trace_and_no_record_outlive_an_interrupt():
    """Later gradients would be arrays of the trace."""
    trace: Any = object()

    def work() -> None:
        traced(trace, list)
        steps.with_record(lambda record: None)

    def is_closed() -> bool:
        return open_trace() is None and not steps._OPEN.get()

    assert len(_each(work, is_closed)) > 30
