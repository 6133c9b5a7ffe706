"""The assembly that lists the chosen elements of a block, run for all threads on NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.block_digits import assembly
from support.interpreter.threads_of_ptx import run_in_threads

from tilearray_cuda.kernels.block_lists import LISTED, list_functions, packed_at_once

SHARES = [0.0, 0.001, 0.01, 0.24, 0.26, 0.5, 0.99, 1.0]


def _begun(warps: int, share: float, seed: int, itemsize: int = 0) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Which elements are chosen, the indices of threads, and the assembly to run after their words are counted."""
    chosen = np.random.default_rng(seed).random(LISTED * warps) < share
    words, thread = np.packbits(chosen, bitorder="little").view(np.int32), np.arange(32 * warps, dtype=np.int32)
    memory, begin, *rest = [assembly(text) for text in list_functions(warps, itemsize)]
    assert all(pack == 1 for _, pack in (memory, begin, *rest))
    run_in_threads(memory[0], 1, 1, [thread])
    run_in_threads(begin[0], 1, 1, [words, thread])
    return chosen, thread, [asm for asm, _ in rest]


@given(st.sampled_from(SHARES), st.sampled_from([1, 2, 4, 8]), st.integers(0, 2**32))
def test_lists_have_the_chosen_elements_in_order(share, warps, seed):
    chosen, thread, (make, read) = _begun(warps, share, seed)
    run_in_threads(make, 1, 1, [thread])
    found = [run_in_threads(read, 1, 1, [thread + k])[0] for k in range(0, LISTED * warps, 32 * warps)]
    np.testing.assert_array_equal(np.concatenate(found)[: chosen.sum()], np.flatnonzero(chosen))


@given(st.sampled_from(SHARES), st.sampled_from([1, 4]), st.sampled_from([1, 2, 4, 8]), st.integers(0, 2**32))
def test_the_chosen_elements_are_packed_in_order(share, warps, itemsize, seed):
    chosen, thread, (_, _, pack, wait, read, begin) = _begun(warps, share, seed, itemsize)
    rng, parts = np.random.default_rng(seed + 1), max(1, itemsize // 4)
    words = rng.integers(0, 1 << min(31, 8 * itemsize), (parts, chosen.size), dtype=np.int32)
    at_once = packed_at_once(warps, itemsize)
    for start in range(0, chosen.size, at_once):
        order = start + rng.permutation(at_once).astype(np.int32)  # elements of any threads
        run_in_threads(pack, 1, 1, [*words[:, order], order])
        run_in_threads(wait, 1, 1, [thread])
        first, count = chosen[:start].sum(), chosen[start : start + at_once].sum()
        assert run_in_threads(begin, 1, 1, [thread * 0 + start // 32])[0][0] == first
        places = first + np.arange(at_once, dtype=np.int32)
        found = run_in_threads(read, parts, 1, [places.astype(np.int32)])
        wanted = words[:, start : start + at_once][:, chosen[start : start + at_once]]
        np.testing.assert_array_equal(np.stack(found)[:, :count], wanted)


@pytest.mark.parametrize("function", [1, 2])
def test_threads_in_another_order_stop_the_kernel(function):
    asm, _ = assembly(list_functions(1)[function])
    given = [np.zeros(32, np.int32), np.arange(32, dtype=np.int32) ^ 1]
    with pytest.raises(AssertionError, match="a trap"):
        run_in_threads(asm, 1, 1, given[function - 1 :])
