"""16 threads launch one plan on their own arrays, 100,000 times each; a shared argument block fails this test."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from support.threads import in_threads

import tilearray as ta
from tilearray import cuda

launch = pytest.importorskip("tilearray_cuda.runtime.launch", reason="cuda-python is not installed")

THREADS = 16
LAUNCHES = int(os.environ.get("TILEARRAY_TEST_LAUNCHES", "100000"))


class OneFrame(list):
    """A wrong implementation of frames: all threads share one."""

    def pop(self):
        return self[0]

    def append(self, frame):
        pass


def wrong_threads(size, launches):
    """Return the number of threads with a wrong sum; each adds its own number to its own array."""
    arrays = [ta.zeros(size, dtype="int64", device="cuda:0") for _ in range(THREADS)]
    steps = [ta.full(size, seed + 1, dtype="int64", device="cuda:0") for seed in range(THREADS)]

    def body(seed):
        x, y = arrays[seed], steps[seed]
        for _ in range(launches):
            x += y

    assert in_threads(THREADS, body, interval=1e-4, patience=600) == [None] * THREADS
    return sum((ta.to_numpy(x) != launches * (seed + 1)).any() for seed, x in enumerate(arrays))


def test_threads_launch_the_same_plan():
    assert wrong_threads(64, LAUNCHES) == 0


def test_threads_make_results():
    """The same, with new memory from one free list for each result."""
    wrong = []

    def body(seed):
        x = ta.full(64, seed, dtype="int64", device="cuda:0")
        for step in range(2000):
            y = x + x
            if step % 100 == 0 and (ta.to_numpy(y) != 2 * seed).any():
                wrong.append(seed)

    assert in_threads(THREADS, body) == [None] * THREADS
    assert wrong == []


def test_threads_on_streams_of_their_own():
    wrong = []
    shared = ta.full(64, 3, dtype="int64", device="cuda:0")

    def body(seed):
        with cuda.stream(cuda.Stream("cuda:0")):
            x = ta.full(64, seed, dtype="int64", device="cuda:0")
            for _ in range(2000):
                x = x + shared
            if (ta.to_numpy(x) != seed + 6000).any():
                wrong.append(seed)

    assert in_threads(THREADS, body) == [None] * THREADS
    assert wrong == []


def test_one_shared_argument_block_gives_wrong_results():
    """In a separate process: partly written arguments may make the GPU fault, which ends its context."""
    import subprocess

    code = """
import pytest, sys
sys.path[:0] = ["tests/gpu", "tests"]
import test_launch_threads as tests
original = tests.launch.Arguments.__init__
def shared(self, *arguments):
    original(self, *arguments)
    self.frames = tests.OneFrame([self.frame()])
tests.launch.Arguments.__init__ = shared
try:
    print("wrong", sum(tests.wrong_threads(63, 20000) for _ in range(3)))
except BaseException as error:
    print("wrong", 1, type(error).__name__, error)
sys.stdout.flush()
import os; os._exit(0)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=root, capture_output=True, text=True, timeout=600
    )
    assert done.stdout.startswith("wrong "), done.stdout + done.stderr
    assert int(done.stdout.split()[1]) > 0, "a shared block does no harm: the test above shows nothing"


def test_numbers_of_threads_do_not_mix():
    """The number is also part of the argument block."""
    x = ta.zeros(64, dtype="float64", device="cuda:0")

    def body(seed):
        for _ in range(3000):
            y = x + float(seed)
        return ta.to_numpy(y)

    results = in_threads(8, body)
    assert all(np.array_equal(result, np.full(64, float(seed))) for seed, result in enumerate(results))
