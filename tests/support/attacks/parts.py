"""The attacks by name, and their cases in parts, which processes of their own run."""

from __future__ import annotations

import math
import multiprocessing
import platform
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import NamedTuple

import numpy as np

import tilearray as ta
from support.attacks import (
    api,
    caches,
    children,
    differential,
    files,
    interrupts,
    memory,
    programs,
    texts,
    threads,
    tiles,
    walks,
)
from support.attacks.outcome import Outcome


class Attack(NamedTuple):
    """What runs an attack, its cases for each case of `--cases`, and its part of the time on a GPU."""

    run: Callable[[int, int, str], Outcome]
    cases: float
    time: float = 1


ATTACKS = {
    "api": Attack(api.run, 1.0, 8),
    "differential": Attack(differential.run, 1.0, 8),
    "threads": Attack(threads.run, 0.8, 5),
    "tasks": Attack(threads.run_tasks, 0.05),
    "texts": Attack(texts.run, 0.2),
    "files": Attack(files.run, 0.1, 2),
    "programs": Attack(programs.run, 0.05, 12),
    "tiles": Attack(tiles.run, 0.05, 5),
    "reductions": Attack(walks.run_reductions, 0.05, 4),
    "scans": Attack(walks.run_scans, 0.01, 4),
    "selections": Attack(walks.run_selections, 0.01, 4),
    "interrupts": Attack(interrupts.run, 0.05, 4),
    "memory": Attack(memory.run, 0.05, 4),
    "children": Attack(children.run, 0.00006, 2),
    "exits": Attack(children.run_exits, 0.0002, 2),
    "caches": Attack(caches.run, 0.1, 2),
}
Part = tuple[str, int, int, str]
CASES, PART = 200_000, 1_000
"""The value of `--cases`, and how many of them are one part with `--jobs` on the host."""
PATIENCE = 80
"""Seconds after `--seconds` in which the last case of each process must end."""


def outcomes(
    names: list[str], cases: int, seed: int, device: str, jobs: int = 1, seconds: float | None = None
) -> Iterator[Outcome]:
    """Yield the outcome of each attack, or with several jobs of each part of it, as they end.

    Attacks run one after the other. After `seconds`, no further case begins: each attack has its part of the time that
    is left when it begins, so one that ends early leaves more to those after it.
    """
    end = math.inf if seconds is None else time.time() + seconds
    pool: ProcessPoolExecutor | None = None
    try:
        for place, name in enumerate(names):
            share = ATTACKS[name].time / sum(ATTACKS[each].time for each in names[place:])
            now = time.time()
            deadline = math.inf if end == math.inf else now + (end - now) * share
            if jobs == 1:
                yield one(name, max(1, round(cases * ATTACKS[name].cases)), seed, device, deadline)
                continue
            pool = pool or ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"))
            whole = yield from _of_processes(pool, parts(name, cases, seed, device, jobs), deadline)
            if not whole:
                pool.shutdown(cancel_futures=True)
                pool = None
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _of_processes(
    pool: ProcessPoolExecutor, parts_of_one: list[Part], deadline: float
) -> Generator[Outcome, None, bool]:
    """Yield the outcome of each part of an attack as it ends; return whether the processes still serve."""
    seconds = max(0.0, min(1e6, deadline - time.time()))
    running = {pool.submit(one, *part, deadline): part for part in parts_of_one}
    timer = threading.Timer(seconds, lambda: [future.cancel() for future in running])
    timer.daemon = True
    timer.start()
    try:
        for future in as_completed(running, seconds + PATIENCE):
            if future.cancelled():
                continue
            name, _, part_seed, device = running[future]
            if (error := future.exception()) is not None:
                told = f"the process of seed {part_seed} ended: {error!r}"
                yield Outcome(name, device, seed=part_seed, wrong=[told])
                return False
            yield future.result()
    except TimeoutError:
        for name, _, part_seed, device in [part for future, part in running.items() if not future.done()]:
            yield Outcome(name, device, seed=part_seed, wrong=[f"the part of seed {part_seed} never ended"])
        for process in list(pool._processes.values()):
            process.kill()
        return False
    finally:
        timer.cancel()
    return True


def parts(name: str, cases: int, seed: int, device: str, jobs: int) -> list[Part]:
    """Divide the cases of an attack: its name, the cases, the seed and the device of each part.

    A process that meets a GPU for the first time needs seconds, so on a GPU each process has one part.
    """
    share = ATTACKS[name].cases
    size = PART if device == "cpu" else max(PART, -(-cases // jobs))
    found: list[Part] = []
    for number in range(-(-cases // size)):
        before, after = (round(min(cases, n * size) * share) for n in (number, number + 1))
        if after > before or (number == 0 and round(cases * share) == 0):
            found.append((name, max(1, after - before), seed + number, device))
    return found


def one(name: str, cases: int, seed: int, device: str, deadline: float = math.inf) -> Outcome:
    """Run one attack in this process, and begin no case after a deadline."""
    Outcome.deadline = deadline
    outcome = ATTACKS[name].run(cases, seed, device)
    outcome.seed, outcome.place = seed, place(outcome.device)
    return outcome


def place(device: str) -> str:
    """The versions of Python and NumPy here, and the GPU's name."""
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    return versions if device == "cpu" else f"{ta.zeros(0, device=device).device.backend.name}, {versions}"
