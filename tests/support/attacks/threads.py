"""Threads that run the same random calls at once, on arrays of their own and on shared ones: results as of one thread.

asyncio tasks and generators suspend within blocks of `semantics`, and are resumed and ended in any order.
"""

from __future__ import annotations

import asyncio
import random
import warnings
from collections.abc import Generator
from functools import partial
from typing import Any

import numpy as np

import tilearray as ta
from support.attacks.differential import CALLS, Case, answer
from support.attacks.outcome import Outcome
from support.threads import in_threads

THREADS = 16
STEPS, STEPS_OF_A_GPU = 60, 240
"""How many calls a thread makes of sixty that were drawn; more on a GPU, where each of them has to be compiled."""
NAMES = ("array-api", "numpy", "triton", "torch")


class Work:
    """One call on arrays that all threads share, and its result in one thread."""

    def __init__(self, rng: random.Random, device: str) -> None:
        self.name = rng.choice([name for name in CALLS if "in place" not in name])
        self.call, dtypes, count, _ = CALLS[self.name]
        self.semantics = rng.choice(("array-api", "numpy"))
        case = Case(rng, device)
        self.arrays = [case.pair(dtypes)[0] for _ in range(count)]
        self.device, self.shape, self.seed = device, case.shape, case.seed
        self.expected = self.run(self.arrays)

    def run(self, arrays: list[Any]) -> Any:
        """The bits of the result, or the class of the error."""
        case = Case.of(self.shape, self.seed, self.device)
        with ta.semantics(self.semantics):
            found, error = answer(case, self.call, ta, arrays)
        if error is not None:
            return type(error)
        host = ta.to_numpy(ta.asarray(found).to_device("cpu"))
        return host.dtype, host.shape, host.tobytes()


def run(cases: int, seed: int = 0, device: str = "cpu") -> Outcome:
    """Run calls in threads that switch nearly every bytecode."""
    outcome, rng = Outcome(f"calls in {THREADS} threads", device), random.Random(seed)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        while outcome.wants(cases):
            steps = min(STEPS if device == "cpu" else STEPS_OF_A_GPU, max(1, cases // THREADS))
            work = partial(_thread, [Work(rng, device) for _ in range(60)], seed, steps)
            for result in in_threads(THREADS, work, interval=1e-5):
                if isinstance(result, BaseException):
                    outcome.fail(f"a thread ended with {result!r}")
                    continue
                for told in result:
                    outcome.count("other results" if told else "results as of one thread", cases)
                    if told:
                        outcome.fail(told)
    return outcome


def _thread(works: list[Work], seed: int, steps: int, number: int) -> list[str]:
    """Run calls in an order of this thread, half of them on copies."""
    rng, found = random.Random(f"{seed} {number}"), list[str]()
    for work in rng.choices(works, k=steps):
        arrays = [x.copy() for x in work.arrays] if rng.random() < 0.5 else work.arrays
        result = work.run(arrays)
        same = result == work.expected or (arrays is not work.arrays and _alike(result, work.expected))
        told = f"{work.name} under {work.semantics}: {result} in thread {number}, expected {work.expected}"
        found.append("" if same else told)
    return found


def _alike(found: Any, expected: Any) -> bool:
    """Whether results are equal up to the order of accumulation, which depends on the layout of the operands."""
    if not isinstance(found, tuple) or not isinstance(expected, tuple) or found[:2] != expected[:2]:
        return False
    one, other = (np.frombuffer(bits, dtype).astype("complex128") for dtype, _, bits in (found, expected))
    return bool(np.all(np.isclose(one, other, rtol=1e-2, atol=1e-2, equal_nan=True) | (one == other)))


# --- tasks and generators ---------------------------------------------------------------------------------------------


def suspended(rng: random.Random, device: str, wrong: list[str]) -> Generator[None, None, None]:
    """Enter blocks in each other, and look at the semantics after each time that others ran."""
    name = rng.choice(NAMES)
    with ta.semantics(name):
        for _ in range(rng.randint(1, 4)):
            yield
            if ta.get_semantics().name != name:
                wrong.append(f"a generator within {name!r} found {ta.get_semantics().name!r}")
            x = ta.asarray([200], dtype="uint8", device=device) + ta.asarray([1], dtype="int8", device=device)
            if x.dtype != {"triton": "uint8"}.get(name, "int16"):
                wrong.append(f"a generator within {name!r} computed {x.dtype}")
            if rng.random() < 0.3:
                yield from suspended(rng, device, wrong)


async def _task(rng: random.Random, device: str, wrong: list[str]) -> None:
    for _ in suspended(rng, device, wrong):
        await asyncio.sleep(0)


async def _together(rng: random.Random, count: int, device: str, wrong: list[str]) -> None:
    await asyncio.gather(*[_task(random.Random(rng.random()), device, wrong) for _ in range(count)])


def run_tasks(cases: int, seed: int = 0, device: str = "cpu") -> Outcome:
    """Run tasks that suspend within blocks, fifty at a time."""
    outcome, rng = Outcome("tasks that suspend within blocks", device), random.Random(seed)
    before = ta.get_semantics()
    while outcome.wants(cases):
        wrong: list[str] = []
        asyncio.run(_together(rng, 50, device, wrong))
        for _ in range(50):
            outcome.count("ended", cases)
        if ta.get_semantics() is not before:
            wrong.append("semantics are in force after the last task")
            ta.set_semantics(before)
        outcome.wrong += wrong
    return outcome
