"""Random programs: fused, recorded, with reductions and over rows, against the same operations one by one.

A case is a program of up to 40 operations over arrays of mixed dtypes and layouts. Its results must be those of the
operations, bit for bit. On a GPU each program that ends "equal" compiled at least one kernel of its own.
"""

from __future__ import annotations

import random
import traceback
import warnings

import numpy as np

from support.attacks.outcome import Outcome
from support.reduced_trees import check_reduced
from support.trees import check, check_recorded, grow


def one(rng: random.Random, device: str) -> str:
    """Check one program, and return its kind and how it ended."""
    kind = rng.choice(["fused", "fused", "in place", "recorded", "reduction"])
    if kind == "reduction":
        return f"{kind} {check_reduced(rng.randrange(2**32), device)}"
    tree = grow(rng, rng.randint(1, 40), in_place=kind != "fused", reductions=rng.random() < 0.2)
    found = check_recorded(tree, rng, device) if kind == "recorded" else check(tree, device)
    return f"{kind} {found.partition(':')[0]}"


def run(cases: int, seed: int = 0, device: str = "cpu") -> Outcome:
    """Check random programs."""
    outcome = Outcome("fused programs", device)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for number in outcome.numbers(cases):
            try:
                outcome.count(one(random.Random(seed * 10**9 + number), device), cases)
            except Exception as error:
                outcome.count("differ", cases)
                place = traceback.extract_tb(error.__traceback__)[-1]
                outcome.fail(f"#{number} of seed {seed}: {type(error).__name__} in {place.name}: {error}"[:300])
    return outcome
