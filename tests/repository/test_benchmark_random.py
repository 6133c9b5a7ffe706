"""The benchmark of random numbers: its draws run, and its comparison with the host finds wrong numbers."""

from __future__ import annotations

import pytest

import tilearray as ta
from benchmarks import random


def library(seed: int = 7) -> random.Library:
    return random.Library("tilearray", ta, ta.random.default_rng(seed, device="cpu"))


@pytest.mark.parametrize("row", random.ROWS, ids=lambda row: row.name)
def test_a_draw_is_compared_with_the_host_at_both_ends(row):
    ours = library()
    state = ours.generator.bit_generator.state
    drawn = ours.run(row, 3001)
    assert drawn.nbytes == 3001 * random.itemsize(row)
    assert random.same_ends(ours, row, drawn, state)
    for place in (0,) if row.permutes else (0, -1):
        wrong = drawn.copy()
        wrong[place] = wrong[place] + 1
        assert not random.same_ends(ours, row, wrong, state)
