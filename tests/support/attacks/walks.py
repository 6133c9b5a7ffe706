"""Random reductions and scans beside the host's, and random selections beside NumPy's, on a GPU.

A case is of a kind: function, dtype, axes, the view, and the powers of two between which its extents lie. Each case
has other extents and values. Cases of a kind mostly have the same kernels, so a compiler has little to do: there are as
many kinds as `KINDS` says, the same for every seed.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable

import numpy as np

from support.attacks.outcome import Outcome
from support.oracles import reductions, scans, selection

Check = Callable[..., str]

KINDS = {"reductions": 300, "scans": 120, "selections": 60}
"""A kind has about four kernels."""
ELEMENTS = (60, 60, 3000, 3000, 3000, 60_000, 60_000, 1_000_000)
"""About how many elements an array has; large ones are reduced and scanned in segments."""


def run_reductions(cases: int, seed: int = 0, device: str = "cpu") -> Outcome:
    """Compare reductions with the host's, bit for bit. The host has no cases."""
    found = Outcome("reductions beside the host's", device)
    return found if device == "cpu" else _checked(found, reductions.check_one, "reductions", cases, seed)


def run_scans(cases: int, seed: int = 0, device: str = "cpu") -> Outcome:
    """Compare scans with the host's, bit for bit. The host has no cases."""
    found = Outcome("scans beside the host's", device)
    return found if device == "cpu" else _checked(found, scans.check_one, "scans", cases, seed)


def run_selections(cases: int, seed: int = 0, device: str = "cpu") -> Outcome:
    """Compare selections, assignments to them and places of elements with NumPy's, bit for bit."""
    return _checked(Outcome("selections beside NumPy's", device), selection.check_one, "selections", cases, seed)


def _checked(outcome: Outcome, check: Check, name: str, cases: int, seed: int) -> Outcome:
    """Check cases; kinds go on from those of the seed before."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for number in outcome.numbers(cases):
            rng = np.random.default_rng([seed, number])
            pick = np.random.default_rng((seed * cases + number) % KINDS[name])
            told = f"#{number} of seed {seed}"
            try:
                end = check(outcome.device, rng, pick, int(pick.choice(ELEMENTS)), told, vary=True)
                outcome.count(end, cases)
            except Exception as error:
                outcome.count("differ", cases)
                place = traceback.extract_tb(error.__traceback__)[-1]
                outcome.fail(f"{told}: {type(error).__name__} in {place.name}: {error}"[:400])
    return outcome
