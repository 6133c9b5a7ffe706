"""The attacks by name, and their cases in parts, which processes of their own run."""

from __future__ import annotations

import math
import multiprocessing
import platform
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np

import tilearray as ta
from support.attacks import api, caches, children, differential, interrupts, memory, programs, texts, threads, tiles, walks
from support.attacks.outcome import Outcome

ATTACKS: dict[str, tuple[Callable[[int, int, str], Outcome], float]] = {
    "api": (api.run, 1.0),
    "differential": (differential.run, 1.0),
    "threads": (threads.run, 0.8),
    "tasks": (threads.run_tasks, 0.05),
    "texts": (texts.run, 0.2),
    "programs": (programs.run, 0.05),
    "tiles": (tiles.run, 0.05),
    "reductions": (walks.run_reductions, 0.05),
    "scans": (walks.run_scans, 0.01),
    "selections": (walks.run_selections, 0.01),
    "interrupts": (interrupts.run, 0.05),
    "memory": (memory.run, 0.05),
    "children": (children.run, 0.00006),
    "exits": (children.run_exits, 0.0002),
    "caches": (caches.run, 0.1),
}
"""For each attack what runs it, and its cases for each case of `--cases`."""
CASES, PART = 200_000, 1_000
"""The value of `--cases`, and how many of them are one part with `--jobs`."""
PATIENCE = 80
"""Seconds after `--seconds` in which the last case of each process must end."""


def outcomes(
    names: list[str], cases: int, seed: int, device: str, jobs: int = 1, seconds: float | None = None
) -> Iterator[Outcome]:
    """Yield the outcome of each attack, or with several jobs of each part of it, as they end.

    After `seconds`, no further case begins.
    """
    deadline = math.inf if seconds is None else time.time() + seconds
    if jobs == 1:
        for name in names:
            yield one(name, max(1, round(cases * ATTACKS[name][1])), seed, device, deadline)
        return
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"))
    timer = threading.Timer(seconds or 1e6, lambda: [future.cancel() for future in running])
    timer.daemon = True
    try:
        running = {pool.submit(one, *part, deadline): part for part in parts(names, cases, seed, device)}
        timer.start()
        for future in as_completed(running, (seconds or 1e6) + PATIENCE):
            if future.cancelled():
                continue
            name, _, part_seed, _ = running[future]
            if (error := future.exception()) is None:
                yield future.result()
            else:
                told = f"the process of seed {part_seed} ended: {error!r}"
                yield Outcome(name, device, seed=part_seed, wrong=[told])
                return
    except TimeoutError:
        for name, _, part_seed, _ in [part for future, part in running.items() if not future.done()]:
            yield Outcome(name, device, seed=part_seed, wrong=[f"the part of seed {part_seed} never ended"])
        for process in list(pool._processes.values()):
            process.kill()
    finally:
        timer.cancel()
        pool.shutdown(cancel_futures=True)


def parts(names: list[str], cases: int, seed: int, device: str) -> list[tuple[str, int, int, str]]:
    """Divide the cases of attacks: the attack, its cases, its seed and the device of each part; all attacks in turn."""
    found: list[tuple[str, int, int, str]] = []
    for number in range(-(-cases // PART)):
        for name in names:
            share = ATTACKS[name][1]
            before, after = (round(min(cases, n * PART) * share) for n in (number, number + 1))
            if after > before or (number == 0 and round(cases * share) == 0):
                found.append((name, max(1, after - before), seed + number, device))
    return found


def one(name: str, cases: int, seed: int, device: str, deadline: float = math.inf) -> Outcome:
    """Run one attack in this process, and begin no case after a deadline."""
    Outcome.deadline = deadline
    outcome = ATTACKS[name][0](cases, seed, device)
    outcome.seed, outcome.place = seed, place(outcome.device)
    return outcome


def place(device: str) -> str:
    """The versions of Python and NumPy here, and the GPU's name."""
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    return versions if device == "cpu" else f"{ta.zeros(0, device=device).device.backend.name}, {versions}"
