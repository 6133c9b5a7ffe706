"""The assembly that orders a block by digits, run for all threads on NumPy."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.block_digits import SIZES, assembly, digits
from support.interpreter.threads_of_ptx import run_in_threads

from tilearray_cuda.kernels.block_assembly import DIGITS, LEAST_WARPS, place_text, warps_of
from tilearray_cuda.kernels.block_order import AT_ONCE, OF_ALL, OF_BLOCK, move_function, order_function, sweep_functions

_ORDER = {size: order_function(size) for size in SIZES}


def place_of(size: int, warps: int = 0) -> np.ndarray:
    """The place of each index."""
    return eval(place_text(size, warps), {"index": np.arange(size)})


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


class Told:
    """Memory of what blocks tell, from address 0 on. Blocks before the last one tell their counts, one at each pause.

    Some know the sum of all before them. The first one is that of smaller digits.
    """

    def __init__(self, counts: np.ndarray, known: int) -> None:
        sums = np.cumsum(counts, 0)
        self.words = np.zeros((AT_ONCE + len(counts), DIGITS), np.int64)
        told = np.where((np.arange(len(counts)) <= known)[:, None], sums | OF_ALL, counts | OF_BLOCK)
        self._next = iter(zip(self.words[AT_ONCE - 1 :], told, strict=False))
        self.own = 4 * DIGITS * (AT_ONCE - 1 + len(counts))

    def pause(self) -> None:
        """Tell one more."""
        for words, told in itertools.islice(self._next, 1):
            words[:] = told

    def load(self, pointers: np.ndarray, mask: np.ndarray, other: np.ndarray, dtype: np.dtype) -> np.ndarray:
        return np.where(mask, self.words.reshape(-1)[np.where(mask, pointers // 4, 0)], other).astype(dtype)

    def store(self, pointers: np.ndarray, value: np.ndarray, mask: np.ndarray) -> None:
        self.words.reshape(-1)[pointers[mask] // 4] = value[mask].view(np.int32)


@given(digits(DIGITS), st.sampled_from([1, 2]), st.booleans(), st.integers(0, 2**32))
def test_a_sweep_moves_words_in_steps(digit, words, keeps, seed):
    size, rng = digit.size, np.random.default_rng(seed)
    blocks, known = rng.integers(0, 20, 2).tolist()
    words, keeps = (1, False) if size > 4096 else (words, keeps)  # the words of the block are its shared memory
    place, index = place_of(size, LEAST_WARPS), np.arange(size, dtype=np.int32)
    counts = rng.integers(0, 2**25, (1 + blocks, DIGITS))
    memory = Told(counts, known)
    told = np.full(size, memory.own, np.int64)
    elements = list(rng.integers(-(2**31), 2**31, (words, size)).astype(np.int32))
    steps = [assembly(text) for text in sweep_functions(size, LEAST_WARPS, words, keeps)]
    (counted,) = run_in_threads(steps[0][0], 1, steps[0][1], [digit[place], index, told], memory)
    found = np.bincount(digit, minlength=DIGITS)
    np.testing.assert_array_equal(counted[:DIGITS], found)
    np.testing.assert_array_equal(memory.words[-1], found | OF_BLOCK)
    assert not counted[DIGITS:].any()
    run_in_threads(steps[1][0], 1, steps[1][1], [digit[place], *[each[place] for each in elements]])
    moved = run_in_threads(steps[2][0], words + keeps, steps[2][1], [counted, told], memory)
    begin = counts.sum(0)
    np.testing.assert_array_equal(memory.words[-1], (begin + found) | OF_ALL)
    order = np.argsort(digit, kind="stable")
    if keeps:
        np.testing.assert_array_equal(moved.pop(), digit[order][place])
    (slot,) = run_in_threads(steps[3][0], 1, steps[3][1], [digit[order][place]])
    for one, element in zip(moved, elements, strict=True):
        np.testing.assert_array_equal(one, element[order][place])
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
        declared = [_declared(text) for text in sweep_functions(size, LEAST_WARPS, 2, True)]
        assert declared[0] < 48 << 10
        assert declared[1:] == [0, 0, 0]
    else:
        assert 4 * size < _declared(sweep_functions(size, LEAST_WARPS, 1, False)[0]) < 48 << 10
    assert size % (32 * warps_of(size)) == 0
