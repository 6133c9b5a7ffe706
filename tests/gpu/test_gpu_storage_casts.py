"""Casts of the floats that are for storage only, on the GPU: every code, and values hard to round."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.oracles.formats import ARITHMETIC, STORAGE
from support.oracles.storage_casts import SOURCES, assert_same, codes, hard, on_host, others, wide

import tilearray as ta


def on_gpu(x, target, **options):
    return ta.to_numpy(ta.asarray(x, device="cuda").astype(target, **options))


@pytest.mark.parametrize("source", STORAGE)
def test_every_code_becomes_every_dtype(source):
    x = codes(source)
    for target in (*ARITHMETIC, *STORAGE):
        if target != source:
            assert_same(on_gpu(x, target), on_host(x, target), x)


@pytest.mark.parametrize("target", STORAGE)
def test_values_become_codes(target):
    halves = np.arange(65536).astype(np.uint16).view(np.float16)
    for x in (halves, hard(target), wide(target), *map(others, SOURCES)):
        assert_same(on_gpu(x, target), on_host(x, target), x)


@pytest.mark.parametrize("target", STORAGE)
def test_values_become_codes_in_every_mode(target):
    x = hard(target)
    for mode, saturate in itertools.product(("rn", "rz", "rm", "rp", "ra"), (False, True)):
        options = {"rounding": mode, "saturate": saturate}
        assert_same(on_gpu(x, target, **options), on_host(x, target, **options), x)


def test_stored_and_viewed():
    """An assignment casts, also into a transposed view; a bool says whether a value is not zero."""
    x = ta.asarray(np.arange(-32, 32, dtype=np.float32).reshape(8, 8) / 8, device="cuda")
    for target in STORAGE:
        y = ta.zeros((8, 8), device="cuda").astype(target)
        y.T[:, ::-1] = x
        expected = on_host(ta.to_numpy(x), target)
        assert_same(ta.to_numpy(y).T[:, ::-1].ravel(), expected.ravel(), ta.to_numpy(x).ravel())
