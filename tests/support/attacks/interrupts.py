"""Ctrl-C at random moments: nothing but a KeyboardInterrupt comes out, and everything is as before.

`tests/engine/test_interrupts.py` interrupts a few operations at every bytecode; here the moment is a timer's.
"""

from __future__ import annotations

import random
import signal
import sys
import warnings
from typing import Any

import numpy as np

import tilearray as ta
from support.attacks.outcome import Outcome
from support.attacks.threads import Work

TIMES, TIMES_ON_A_GPU = 100, 300
"""How often calls that were drawn are interrupted; more often on a GPU, where each of them has to be compiled."""


def run(cases: int, seed: int = 0, device: str = "cpu") -> Outcome:
    """Interrupt random calls by a timer, and run them again."""
    outcome, rng = Outcome("interrupts at random moments", device), random.Random(seed)
    if not hasattr(signal, "setitimer"):
        return outcome
    swallowed: list[Any] = []
    hook, sys.unraisablehook = sys.unraisablehook, swallowed.append
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    semantics = ta.get_semantics()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            while outcome.wants(cases):
                works = [Work(rng, device) for _ in range(20)]
                for _ in range(TIMES if device == "cpu" else TIMES_ON_A_GPU):
                    end, wrong = _interrupted(rng.choices(works, k=50), rng.uniform(2e-5, 3e-3))
                    outcome.count(end, cases)
                    if ta.get_semantics() is not semantics:
                        wrong += " semantics are left in force"
                        ta.set_semantics(semantics)
                    if wrong:
                        outcome.fail(wrong)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        sys.unraisablehook = hook
    if any(not isinstance(each.exc_value, KeyboardInterrupt) for each in swallowed):
        outcome.fail("an error in a finalizer that is not an interrupt")
    return outcome


def _interrupted(works: list[Work], delay: float) -> tuple[str, str]:
    """Run calls until a timer interrupts them; then run the last one again."""
    work = works[0]
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        for work in works:
            work.run(work.arrays)
        signal.setitimer(signal.ITIMER_REAL, 0)
        end = "not interrupted"
    except KeyboardInterrupt:
        end = "interrupted"
    except Exception as error:
        return "other errors", f"{work.name}: an interrupt came out as {error!r}"
    signal.setitimer(signal.ITIMER_REAL, 0)
    if work.run(work.arrays) != work.expected:
        return end, f"{work.name}: another result after an interrupt"
    return end, ""
