"""The assembly that counts the digits of a block, or of many, run for all threads on NumPy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.block_digits import assembly, digits
from support.interpreter.threads_of_ptx import run_in_threads

from tilearray_cuda.kernels.block_assembly import DIGITS
from tilearray_cuda.kernels.block_counts import (
    EMPTIED,
    bins_of,
    count_function,
    histogram_functions,
    paired_functions,
    place_functions,
)


@given(st.sampled_from([1, 2]), st.data())
def test_counts_leave_out_what_is_not_a_digit(parts, data):
    digit = data.draw(digits(parts * DIGITS + 3))
    asm, pack = assembly(count_function(digit.size, parts))
    (found,) = run_in_threads(asm, 1, pack, [digit, np.arange(digit.size, dtype=np.int32)])
    most = min(parts * DIGITS, digit.size)
    np.testing.assert_array_equal(found[:most], np.bincount(digit, minlength=most)[:most])
    assert not found[most:].any()


@given(st.integers(1, 8), st.integers(0, 2**32))
def test_histograms_count_all_digits_of_many_blocks(count, seed):
    size, rng = 4096, np.random.default_rng(seed)
    steps = [assembly(text) for text in histogram_functions(size, 16, count, -(-count // 4))]
    index = np.arange(size, dtype=np.int32)
    run_in_threads(steps[0][0], 1, steps[0][1], [index])
    wanted = np.zeros(size, np.int64)
    for _ in range(2):
        keys, inside = rng.integers(0, 2**63, size) >> rng.integers(0, 63), rng.random(size) < 0.7
        words = keys.view(np.int32).reshape(size, 2).T[: -(-count // 4)]
        run_in_threads(steps[1][0], 1, steps[1][1], [inside.astype(np.int32), *map(np.ascontiguousarray, words)])
        for digit in range(count):
            found = (keys[inside] >> (8 * digit)) & 255
            wanted[256 * digit : 256 * digit + 256] += np.bincount(found, minlength=256)
    bins = np.arange(bins_of(count), dtype=np.int32)
    (found,) = run_in_threads(steps[2][0], 1, steps[2][1], [np.tile(bins, -(-512 // bins.size))])
    np.testing.assert_array_equal(found[: 256 * count], wanted[: 256 * count])


@given(st.sampled_from([32, 2048]), st.sampled_from([4, 8]), st.integers(0, 2**32))
def test_places_are_counted_and_those_beyond_are_not(places, warps, seed):
    begun, added, found = [assembly(text)[0] for text in place_functions(places, warps)]
    run_in_threads(begun, 1, 1, [np.arange(32 * warps, dtype=np.int32)])
    rng, wanted = np.random.default_rng(seed), np.zeros(places, np.int64)
    for _ in range(2):
        place = rng.integers(0, places + 9, 1000).astype(np.int32)
        run_in_threads(added, 1, 1, [place])
        wanted += np.bincount(place, minlength=places)[:places]
    (counted,) = run_in_threads(found, 1, 1, [np.arange(places, dtype=np.int32)])
    np.testing.assert_array_equal(counted, wanted)


class Counts:
    """Counts in global memory, from the address 4096 on."""

    def __init__(self, places: int) -> None:
        self.counts, self.changes = np.zeros(places, np.uint64), 0

    def load(self, places, mask, other, dtype):
        return np.where(mask, self.counts[np.where(mask, places.astype(np.int64) - 4096, 0) // 8], other)

    def store(self, places, values, mask):
        self.counts[(places[mask].astype(np.int64) - 4096) // 8] = values[mask]
        self.changes += mask.sum()


def _count_in_pairs(places: int, warps: int, items: int, blocks: list[np.ndarray]) -> tuple[np.ndarray, Counts]:
    """The counters after some blocks, and the counts in memory."""
    begun, added, found = [assembly(text) for text in paired_functions(places, warps, items)]
    memory = Counts(places)
    run_in_threads(begun[0], 1, 1, [np.arange(32 * warps, dtype=np.int32)])
    for block in blocks:
        run_in_threads(added[0], 1, added[1], [block.astype(np.int32), np.full(block.size, 4096)], memory)
    (counted,) = run_in_threads(found[0], 1, 1, [np.arange(places, dtype=np.int32)])
    return counted, memory


@given(st.sampled_from([32, 8192]), st.sampled_from([1, 4]), st.integers(0, 2**32))
def test_counters_of_16_bits_are_emptied(places, items, seed):
    rng, warps = np.random.default_rng(seed), 16
    few = rng.integers(0, places + 1, rng.integers(1, 4))
    blocks = [rng.choice(few, 32 * warps * items) for _ in range(100_000 // (512 * items))]
    blocks += [rng.integers(0, places + 1, 32 * warps * items)]
    counted, memory = _count_in_pairs(places, warps, items, blocks)
    assert (counted < EMPTIED).all()
    wanted = np.bincount(np.concatenate(blocks), minlength=places + 1)[:places]
    np.testing.assert_array_equal(counted + memory.counts.astype(np.int64), wanted)
    assert memory.changes == (wanted // EMPTIED).sum()


@given(st.integers(0, 63))
def test_counters_of_16_bits_hold_what_comes_between_two_barriers(place):
    blocks = [np.full(EMPTIED, 64), np.full(EMPTIED, place), np.full(EMPTIED, place)]
    blocks[0][1:] = place  # 32,767 times, and then as often as may be before a barrier, all at once
    counted, memory = _count_in_pairs(64, 32, EMPTIED // 1024, blocks)
    wanted = np.where(np.arange(64) == place, 3 * EMPTIED - 1, 0)
    np.testing.assert_array_equal(counted, wanted % EMPTIED)
    np.testing.assert_array_equal(memory.counts, wanted // EMPTIED * EMPTIED)
