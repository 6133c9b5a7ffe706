"""Values that repeat along an axis: fused expressions on the host compute them for one of its elements."""

from __future__ import annotations

import random

import numpy as np
import pytest
from support.trees import check, grow

import tilearray as ta
from tilearray.engine.caches import KERNELS
from tilearray_host import kernel


def test_random_programs_have_the_same_bits_where_operands_repeat(monkeypatch):
    """Loops of any size take this way here, in blocks that end within a row."""
    plain, met = kernel.repeats_of, []

    def repeats_of(expression, loop):
        met.append(plain(expression, loop))
        return met[-1]

    monkeypatch.setattr(kernel, "MANY", 1)
    monkeypatch.setattr(kernel, "BLOCK", 7)
    monkeypatch.setattr(kernel, "repeats_of", repeats_of)
    found = [
        check(grow(random.Random(seed), in_place=seed % 2 == 0, reductions=seed % 3 == 0))
        for seed in range(60_000, 60_250)
    ]
    assert found.count("equal") > 180
    assert len([repeats for repeats in met if repeats]) > 100


@pytest.mark.parametrize("shape", [(100, 1), (1, 100), (1, 1, 100), (5, 1, 100), (1, 1, 1)])
def test_a_function_of_a_repeated_operand_runs_once_for_each_of_its_elements(shape, monkeypatch):
    x = ta.asarray(np.linspace(0.0, 1.0, np.prod(shape)).reshape(shape), device="cpu")
    y = ta.asarray(np.ones((5, 100, 100)), device="cpu")
    counts, plain = [], kernel.function_named

    def counted(name, dtype):
        function = plain(name, dtype)
        if name != "sin":
            return function
        return lambda given, *, out: (counts.append(given.size), function(given, out=out))

    KERNELS.clear()  # a kernel looks its functions up once
    monkeypatch.setattr(kernel, "function_named", counted)
    found = ta.fuse(lambda x, y: ta.sin(x) * y + 1)(x, y)
    assert sum(counts) == x.size
    assert np.array_equal(np.asarray(found), np.sin(np.asarray(x)) * np.ones((5, 100, 100)) + 1)


def test_one_pass_over_all_elements_takes_no_blocks(monkeypatch):
    """Values in between that have one element for each row stay in the cache without blocks."""
    monkeypatch.setattr(kernel, "SMALL", 0)
    monkeypatch.setattr(kernel, "BLOCK", 7)
    monkeypatch.setattr(kernel, "CACHE", 0)
    cut, plain = [], kernel._in_blocks

    def in_blocks(written, *others):
        cut.append(written)
        return plain(written, *others)

    monkeypatch.setattr(kernel, "_in_blocks", in_blocks)
    x, row = np.linspace(0.5, 1.5, 8000).reshape(100, 80), np.linspace(1.0, 2.0, 100)[:, None]
    mine = ta.asarray(x, device="cpu"), ta.asarray(row, device="cpu")
    KERNELS.clear()
    found = ta.fuse(lambda x, row: x / ta.sqrt(row + 1))(*mine)
    assert np.array_equal(np.asarray(found), x / np.sqrt(row + 1))
    assert not cut
    found = ta.fuse(lambda x, row: x / ta.sqrt(row + 1) + 1)(*mine)
    assert np.array_equal(np.asarray(found), x / np.sqrt(row + 1) + 1)
    assert cut


def test_explain_shows_what_repeats():
    x, y = ta.ones((64, 1), device="cpu"), ta.ones((64, 4096), device="cpu")
    source = ta.explain(lambda x, y: ta.fuse(lambda x, y: ta.sqrt(x) / y)(x, y), x, y).launches[0].kernel.source
    assert "(shape[0], 1, )" in source
    assert "broadcast_to" not in source  # a ufunc repeats elements itself
    source = ta.explain(lambda x, y: ta.fuse(lambda x, y: ta.clip(y, ta.sqrt(x), 2))(x, y), x, y)
    assert "broadcast_to" in source.launches[0].kernel.source
