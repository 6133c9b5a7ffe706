"""Temporaries of fused expressions: where they are, and that calls share no memory."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from support.trees import check, grow

import tilearray as ta
from tilearray_host import kernel, scratch


def adam(p: Any, g: Any, mean: Any, square: Any) -> Any:
    mean = 0.9 * mean + 0.1 * g
    square = 0.999 * square + 0.001 * (g * g)
    return p - 0.001 * mean / (ta.sqrt(square) + 1e-8), mean, square


def test_new_outputs_hold_values_on_the_way_to_results():
    arrays = [ta.ones(100_000, device="cpu") for _ in range(4)]
    source = ta.explain(ta.fuse(adam), *arrays).launches[0].kernel.source
    assert source.count("empty(") == 1  # of values that live at the same time, three are in outputs
    assert "[...] =" not in source


def test_random_programs_have_the_same_bits_in_blocks_of_few_elements(monkeypatch):
    monkeypatch.setattr(kernel, "BLOCK", 7)
    monkeypatch.setattr(kernel, "CACHE", 0)
    found = [check(grow(random.Random(seed), in_place=seed % 2 == 0)) for seed in range(70_000, 70_200)]
    assert found.count("equal") > 150


@pytest.mark.parametrize("elements", [20_000, 200_000, 1_000_000])
def test_a_call_takes_the_memory_of_the_call_before(elements, monkeypatch):
    taken: list[np.ndarray] = []  # kept, so that no new piece has the identity of an earlier one
    monkeypatch.setattr(scratch, "_PIECES", [])
    monkeypatch.setattr(kernel, "take", lambda nbytes: taken.append(piece := scratch.take(nbytes)) or piece)
    x = ta.asarray(np.linspace(0, 1, elements))
    fused = ta.fuse(lambda x: (x + 1) * (x - 1) / (x * x + 2))
    expected = ta.to_numpy((x + 1) * (x - 1) / (x * x + 2))
    calls = 3 * scratch.PIECES
    for _ in range(calls):
        assert np.array_equal(ta.to_numpy(fused(x)), expected)
    assert len(taken) >= calls
    assert len(set(map(id, taken))) <= scratch.PIECES


def test_a_piece_serves_one_call_at_a_time():
    first = scratch.take(1000)
    scratch.give_back(first)
    again, other = scratch.take(1000), scratch.take(1000)
    assert again is first
    assert other is not first
    large = np.empty(scratch.KEPT_BYTES + 1, np.uint8)
    scratch.give_back(large)
    assert scratch.take(1) is not large
