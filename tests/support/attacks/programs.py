"""Random programs: fused, recorded, with reductions and over rows, against the same operations one by one.

A case is a program of up to 40 operations over arrays of mixed dtypes and layouts. Its results must be those of the
operations, bit for bit. On a GPU each program that ends "equal" compiled at least one kernel of its own. There the host
runs the operations one by one, whose kernels would take most of the time. Exact operations have the same results on
both. A program whose results differ from the host's is run one by one on the GPU.
"""

from __future__ import annotations

import random
import traceback
import warnings
from collections.abc import Callable

import numpy as np

from support.attacks.outcome import Outcome
from support.reduced_trees import check_reduced
from support.trees import check, check_recorded, grow

Check = Callable[[str], str]
"""Compare a program with its operations one by one on a device, and return the kind of the outcome."""


def drawn(rng: random.Random, device: str) -> tuple[str, Check]:
    """Return the kind of a new program, and what checks it."""
    kind = rng.choice(["fused", "fused", "in place", "recorded", "reduction"])
    seed = rng.randrange(2**32)
    if kind == "reduction":
        return kind, lambda eagerly_on: check_reduced(seed, device, eagerly_on)
    exact = device != "cpu" and rng.random() < 0.85
    tree = grow(rng, rng.randint(1, 40), in_place=kind != "fused", reductions=rng.random() < 0.2, exact=exact)
    if kind == "recorded":
        limits = (1, 2, 5, 64) if device == "cpu" else (5, 64)
        return kind, lambda eagerly_on: check_recorded(tree, random.Random(seed), device, eagerly_on, limits)
    return kind, lambda eagerly_on: check(tree, device, eagerly_on)


def one(rng: random.Random, device: str) -> str:
    """Check one program, and return its kind and how it ended."""
    kind, checked = drawn(rng, device)
    try:
        found = checked("cpu")
    except AssertionError:
        if device == "cpu":
            raise
        found = checked(device)
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
