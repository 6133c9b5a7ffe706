"""The assembly that lists the chosen elements of a warp, run for all threads on NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.block_digits import assembly
from support.interpreter.threads_of_ptx import run_in_threads

from tilearray_cuda.kernels.block_lists import LISTED, list_functions


@given(st.sampled_from([0.0, 0.001, 0.01, 0.24, 0.26, 0.5, 0.99, 1.0]), st.integers(0, 2**32))
def test_lists_have_the_chosen_elements_in_order(share, seed):
    chosen = np.random.default_rng(seed).random(LISTED) < share
    words = np.packbits(chosen, bitorder="little").view(np.int32)
    (make, pack), (read, pack_of_places) = map(assembly, list_functions())
    assert pack == pack_of_places == 1
    total, listed = run_in_threads(make, 2, pack, [words, np.arange(32, dtype=np.int32)])
    assert (total == chosen.sum()).all()
    places = np.arange(256, dtype=np.int32)
    found = [run_in_threads(read, 1, pack, [places + k, places * 0 + listed[0]])[0] for k in range(0, LISTED, 256)]
    np.testing.assert_array_equal(np.concatenate(found)[: total[0]], np.flatnonzero(chosen))


def test_lists_of_other_distributions_stop_the_kernel():
    asm, pack = assembly(list_functions()[0])
    with pytest.raises(AssertionError, match="a trap"):
        run_in_threads(asm, 2, pack, [np.zeros(32, np.int32), np.arange(32, dtype=np.int32) ^ 1])
