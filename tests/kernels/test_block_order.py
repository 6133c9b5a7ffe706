"""The assembly that orders a block by digits, run for all threads on NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.block_digits import SIZES, assembly, digits
from support.interpreter.threads_of_ptx import run_in_threads

from tilearray_cuda.kernels.block_assembly import DIGITS, place_text, warps_of
from tilearray_cuda.kernels.block_order import move_function, order_function, sweep_functions

_ORDER = {size: order_function(size) for size in SIZES}


def place_of(size: int) -> np.ndarray:
    """The place of each index."""
    return eval(place_text(size), {"index": np.arange(size)})


@given(digits(DIGITS), st.integers(0, 2**32))
def test_orders_are_stable(digit, seed):
    size = digit.size
    begin = np.zeros(size, np.int32)
    begin[:DIGITS] = np.random.default_rng(seed).integers(-(2**31), 2**31, DIGITS)
    asm, pack = assembly(_ORDER[size])
    index = np.arange(size, dtype=np.int32)
    slot, source = run_in_threads(asm, 2, pack, [digit[place_of(size)], index, begin])
    order = np.argsort(digit, kind="stable")
    place = place_of(size)
    given = np.empty_like(order)
    given[place] = np.arange(size)  # the index that has a place
    np.testing.assert_array_equal(source, given[order][place])
    np.testing.assert_array_equal(slot, _slots(digit[order], begin)[place])


def test_other_distributions_of_a_block_stop_the_kernel():
    asm, pack = assembly(_ORDER[512])
    index = np.arange(512, dtype=np.int32)
    with pytest.raises(AssertionError, match="a trap"):
        run_in_threads(asm, 2, pack, [index % 7, index ^ 1, index])


@given(digits(DIGITS).filter(lambda digit: digit.size <= 4096), st.sampled_from([1, 2]), st.integers(0, 2**32))
def test_a_sweep_moves_words_in_steps(digit, words, seed):
    size, rng = digit.size, np.random.default_rng(seed)
    place, index = place_of(size), np.arange(size, dtype=np.int32)
    begin = np.zeros(size, np.int32)
    begin[:DIGITS] = rng.integers(-(2**30), 2**30, DIGITS)
    elements = list(rng.integers(-(2**31), 2**31, (words, size)).astype(np.int32))
    steps = [assembly(text) for text in sweep_functions(size, words)]
    (counted,) = run_in_threads(steps[0][0], 1, steps[0][1], [digit[place], index])
    np.testing.assert_array_equal(counted[:DIGITS], np.bincount(digit, minlength=DIGITS))
    assert not counted[DIGITS:].any()
    run_in_threads(steps[1][0], 1, steps[1][1], [digit[place], *[each[place] for each in elements]])
    slot, *moved = run_in_threads(steps[2][0], 1 + words, steps[2][1], [begin])
    order = np.argsort(digit, kind="stable")
    for found, element in zip(moved, elements, strict=True):
        np.testing.assert_array_equal(found, element[order][place])
    np.testing.assert_array_equal(slot, _slots(digit[order], begin)[place])


def _slots(ordered: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """Where elements go whose digits are in order."""
    first = np.searchsorted(ordered, np.arange(DIGITS))
    return (begin[ordered].astype(np.int64) + np.arange(ordered.size) - first[ordered]).astype(np.int32)


def _declared(text: str) -> int:
    return sum(map(int, re.findall(r"\.b8 \w+\[(\d+)\]", text)))


@pytest.mark.parametrize("size", SIZES)
def test_shared_memory_is_less_than_a_block_has_without_asking(size):
    assert 4 * size < _declared(_ORDER[size]) < 48 << 10
    for words in (1, 2, 3):
        assert 4 * size < _declared(move_function(size, words)) < 48 << 10
    if size <= 4096:
        assert [_declared(text) > 0 for text in sweep_functions(size, 2)] == [True, False, False]
        assert _declared(sweep_functions(size, 2)[0]) < 48 << 10
    assert size % (32 * warps_of(size)) == 0
