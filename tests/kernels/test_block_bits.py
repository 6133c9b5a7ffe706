"""The assembly of a set of integers of 16 bits, run for all threads on NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.block_digits import assembly
from support.interpreter.threads_of_ptx import run_in_threads

from tilearray_cuda.kernels.block_bits import LISTED, THREADS, set_functions

THREAD = np.arange(THREADS, dtype=np.int32)


def functions() -> dict[str, tuple[str, int]]:
    """The assembly of each function, and the elements of a thread."""
    return {re.match(r"def (\w+)", text)[1]: assembly(text) for text in set_functions()}  # type: ignore[index]


def called(name: str, *given: np.ndarray) -> list[np.ndarray]:
    """The results of a function."""
    asm, pack = functions()[name]
    return run_in_threads(asm, 1 + (name == "set_counted"), pack, given)


def joined(values: np.ndarray) -> None:
    """Values, in blocks whose other elements are none, which become a set."""
    blocks = np.full(max(1, -(-values.size // LISTED)) * LISTED, -1, np.int32)
    blocks[: values.size] = values
    called("set_begun", THREAD)
    for block in np.split(blocks, blocks.size // LISTED):
        called("set_joined", block)


def listed(count: int) -> np.ndarray:
    """The first integers of the list."""
    places = np.arange(LISTED, dtype=np.int32)
    return np.concatenate([called("listed_at", part)[0] for part in np.split(places, LISTED // THREADS)])[:count]


@settings(max_examples=30)
@given(st.sampled_from([0, 1, 40, 1500, LISTED]), st.sampled_from([1, 30, 1 << 16]), st.integers(0, 2**32))
def test_sets_have_each_value_once_in_order(count, most, seed):
    values = np.random.default_rng(seed).integers(0, most, count) + (1 << 16) - most
    joined(values)
    wanted = np.unique(values)
    total, rank = called("set_counted", THREAD)
    assert (total == wanted.size).all()
    np.testing.assert_array_equal(rank, np.searchsorted(wanted, np.arange(THREADS) * ((1 << 16) // THREADS)))
    called("set_listed", THREAD, rank, THREAD * 0)
    np.testing.assert_array_equal(listed(wanted.size), wanted)


@pytest.mark.parametrize("count", [1, 3000, 20_000, 1 << 16])
def test_sets_of_many_values_are_listed_in_parts(count):
    rng = np.random.default_rng(count)
    values = rng.permutation(1 << 16) if count == 1 << 16 else rng.integers(0, 1 << 16, count)
    joined(values)
    wanted = np.unique(values)
    total, rank = called("set_counted", THREAD)
    found = np.zeros(0, np.int32)
    for first in range(0, total[0], LISTED):
        called("set_listed", THREAD, rank, THREAD * 0 + first)
        found = np.concatenate([found, listed(min(LISTED, total[0] - first))])
    np.testing.assert_array_equal(found, wanted)


def test_sets_of_other_distributions_of_threads_stop_the_kernel():
    with pytest.raises(AssertionError, match="a trap"):
        called("set_begun", THREAD ^ 1)
