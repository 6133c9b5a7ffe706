"""Random grids of tiles beside NumPy's `pad` and slices: tiles, stacks, maps, reductions, writes, gathers, scatters.

Views have up to four axes, any dtype, strides and order of axes; tiles overlap, touch, or lie apart.
"""

from __future__ import annotations

import traceback
import warnings

import numpy as np

from support.attacks.outcome import Outcome
from support.oracles.tiles import Case, check_gathered, check_grid, check_scattered, drawn


def run(cases: int, seed: int = 0, device: str = "cpu") -> Outcome:
    """Check random grids."""
    outcome = Outcome("tiles beside NumPy's", device)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for number in outcome.numbers(cases):
            rng = np.random.default_rng([seed, number])
            case = drawn(rng, wide=True)
            try:
                for check in (check_grid, check_gathered, check_scattered):
                    check(rng, case, device)
                outcome.count(f"equal with tiles that {neighbours(case)}", cases)
            except Exception as error:
                outcome.count("differ", cases)
                place = traceback.extract_tb(error.__traceback__)[-1]
                outcome.fail(f"#{number} of seed {seed}: {type(error).__name__} in {place.name}: {error}"[:300])
    return outcome


def neighbours(case: Case) -> str:
    """How neighbours of a grid lie."""
    distances = [by - size for by, size in zip(case.step or case.tile, case.tile, strict=True)]
    return "overlap" if any(by < 0 for by in distances) else "lie apart" if any(distances) else "touch"
