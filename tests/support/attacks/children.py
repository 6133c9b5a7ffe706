"""Processes: children of programs with threads, programs that end with everything alive, caches that several share."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from support.attacks.outcome import Outcome

CHILD = """
import multiprocessing, random, signal, sys, threading, warnings
import numpy as np
import tilearray as ta

def work(seed):
    rng, device = np.random.default_rng(seed), device_here()
    for name in ("array-api", "numpy", "triton"):
        with ta.semantics(name):
            x = rng.integers(-9, 9, (5, 7)).astype("float64")
            y = ta.asarray(x, device=device)
            assert (y.T * 2 + y[0, 0]).tolist() == (x.T * 2 + x[0, 0]).tolist()
            assert ta.sum(y).item() == x.sum()
    return seed

def device_here():
    if sys.argv[3] == "cpu" or sys.argv[1] != "fork" or multiprocessing.parent_process() is None:
        return sys.argv[3]
    try:
        ta.zeros(1, device=sys.argv[3])
    except RuntimeError as error:
        assert "when this process was forked" in str(error), error
        return "cpu"  # a forked child has no GPU
    raise AssertionError("a forked child used the GPU of its parent")

if __name__ == "__main__":
    signal.alarm(100)  # ends a program that hangs
    warnings.simplefilter("ignore", DeprecationWarning)
    stop = threading.Event()

    def busy(number):
        while not stop.is_set():
            work(number)

    threads = [threading.Thread(target=busy, args=(number,), daemon=True) for number in range(3)]
    context = multiprocessing.get_context(sys.argv[1])
    if sys.argv[1] != "spawn":
        for thread in threads:
            thread.start()
    work(0)
    with context.Pool(2) as pool:
        assert pool.map(work, range(int(sys.argv[2]))) == list(range(int(sys.argv[2])))
    stop.set()
    print("done")
"""
EXIT = """
import gc, sys, threading, weakref
import numpy as np
import tilearray as ta
rng = np.random.default_rng(int(sys.argv[1]))
x = ta.asarray(rng.normal(size=(30, 40)), device=sys.argv[2])
alive = [x, x.T, x[::2], x + 1, ta.semantics("numpy"), weakref.ref(x), ta.sum(x), ta.random.default_rng(1)]
if sys.argv[2] == "cpu":
    alive += [np.asarray(x), x.__dlpack__(), x.data, np.from_dlpack(x)]
else:
    side = ta.cuda.Stream(sys.argv[2])
    with ta.cuda.stream(side):
        alive.append(x * 3)
    alive += [side, side.record(ta.cuda.Event(timing=True, device=sys.argv[2])), x.__dlpack__(), ta.cuda.pinned_like(x)]
    graph = ta.cuda.graph(sys.argv[2])
    with graph:
        alive += [graph, x * 4]
class Late:
    def __del__(self):
        x + 1
alive.append(Late())
def generator():
    with ta.semantics("triton"):
        yield x * 2
waiting = generator()
alive.append(next(waiting))
cycle = [x]
cycle.append(cycle)
block = ta.semantics("torch")
block.__enter__()
x + 1  # planned: NumPy cannot import what a new plan needs when Python ends
if rng.random() < 0.5:
    def busy():
        while True:
            x * 2
    threading.Thread(target=busy, daemon=True).start()
if rng.random() < 0.3:
    gc.disable()
if rng.random() < 0.3:
    sys.exit(0)
"""


def program(code: str, *arguments: str, flags: tuple[str, ...] = ()) -> tuple[int, str]:
    """Run a program of its own file; return its status and what it wrote to standard error."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "attack.py"
        path.write_text(code, encoding="utf-8")
        command = [sys.executable, *flags, str(path), *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
        except subprocess.TimeoutExpired:
            return -1, "no end within 120 s"
        return done.returncode, done.stderr


def run(cases: int, seed: int = 0, device: str = "cpu") -> Outcome:
    """Fork, spawn and start by a server, beside threads at work; each child computes.

    With a GPU, children compute there; those of `fork` are refused, and compute on the host.
    """
    outcome = Outcome("children of a process with threads", device)
    methods = ("fork", "spawn", "forkserver") if hasattr(os, "fork") else ("spawn",)
    for number in outcome.numbers(cases):
        method = methods[(number + seed) % len(methods)]
        status, told = program(CHILD, method, "6", device)
        outcome.count(method, cases)
        if status or told:
            outcome.fail(f"{method}: status {status}: {told[-300:]}")
    return outcome


def run_exits(cases: int, seed: int = 0, device: str = "cpu") -> Outcome:
    """End processes with live arrays, capsules, blocks, generators and threads: silently, with status 0."""
    outcome, rng = Outcome("ends with everything alive", device), random.Random(seed)
    for _ in outcome.numbers(cases):
        status, told = program(EXIT, str(rng.randrange(2**31)), device, flags=rng.choice([(), ("-X", "dev")]))
        outcome.count("ended", cases)
        if status or told:
            outcome.fail(f"status {status}: {told[-300:]}")
    return outcome
