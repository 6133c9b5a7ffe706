"""Permutations and choices: exact against Python's integers, and as often as each should occur."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.oracles.random_words import words
from support.oracles.shuffles import place_of

import tilearray as ta
from tilearray.random import default_rng
from tilearray.random.shuffles import reached
from tilearray_host.shuffles import shuffled_index


def deviation(counts: np.ndarray, expected: np.ndarray | float) -> float:
    """The statistic of a chi-square test in standard deviations."""
    freedom = counts.size - 1
    return float((((counts - expected) ** 2 / expected).sum() - freedom) / np.sqrt(2 * freedom))


def many(count: int, size: int, keys: int, seed: int) -> np.ndarray:
    """The first numbers of permutations with random keys, one a row."""
    found = np.empty((keys, size), np.uint64)
    key = np.random.default_rng(seed).integers(2**64, size=(keys, 1), dtype=np.uint64)
    bits = np.uint64(max(6, (count - 1).bit_length()))
    shuffled_index(np.arange(size, dtype=np.uint64), np.uint64(count), bits, key, out=found)
    return found.astype(np.int64)


@pytest.mark.parametrize("count", [1, 2, 3, 63, 64, 65, 127, 1000, 4096, 5000, 70_000])
def test_a_permutation_has_each_number_once_at_the_place_of_the_rule(count):
    rng = default_rng(31)
    (key,) = words(rng.bit_generator.state, 1, 2)
    found = ta.to_numpy(rng.permutation(count))
    assert np.array_equal(np.sort(found), np.arange(count))
    assert found.dtype == np.int64
    some = range(0, count, max(1, count // 40))
    assert [int(found[index]) for index in some] == [place_of(index, count, key) for index in some]


@pytest.mark.parametrize("count", [2**32, 2**32 + 1, 10**12, 2**63 - 1])
def test_few_of_very_many_are_chosen_in_the_time_of_few(count):
    rng = default_rng(32)
    (key,) = words(rng.bit_generator.state, 1, 2)
    found = rng.choice(count, 12, replace=False).tolist()
    assert found == [place_of(index, count, key) for index in range(12)]
    assert len(set(found)) == 12
    assert default_rng(32).choice(count, (3, 4), replace=False).ravel().tolist() == found


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_all_permutations_of_few_occur_equally_often(count):
    keys = 40_000
    found = many(count, count, keys, 100 + count)
    codes = found @ (count ** np.arange(count))
    counts = np.unique(codes, return_counts=True)[1]
    assert counts.size == math.factorial(count)
    assert abs(deviation(counts, keys / counts.size)) < 4


@pytest.mark.parametrize("count", [8, 9, 16, 64, 100])
def test_places_and_pairs_of_places_are_uniform(count):
    keys = 20_000
    found = many(count, 3, keys, 200 + count)
    for column in range(3):
        assert abs(deviation(np.bincount(found[:, column], minlength=count), keys / count)) < 4
    cells = np.minimum(count, 8)
    for first, second in ((0, 1), (1, 2), (0, 2)):
        distance = (found[:, second] - found[:, first]) % count
        assert distance.min() > 0
        bins = (distance - 1) * cells // (count - 1)
        sizes = np.bincount((np.arange(1, count) - 1) * cells // (count - 1))
        assert abs(deviation(np.bincount(bins), keys * sizes / (count - 1))) < 4


@pytest.mark.parametrize("count", [16, 24, 64])
def test_even_and_odd_permutations_occur_equally_often(count):
    keys = 4000
    found = many(count, count, keys, 300 + count)
    inversions = sum(
        (found[:, earlier] > found[:, later]).astype(int) for later in range(count) for earlier in range(later)
    )
    odd = int((np.asarray(inversions) % 2).sum())
    assert abs(odd - keys / 2) < 4 * math.sqrt(keys) / 2


def test_long_permutations_have_neither_runs_nor_fixed_points_too_often():
    found = ta.to_numpy(default_rng(33).permutation(200_000))
    assert (found == np.arange(found.size)).sum() < 8
    assert (np.diff(found) == 1).sum() < 8
    rises = int((np.diff(found) > 0).sum())
    assert abs(rises - found.size / 2) < 4 * math.sqrt(found.size / 12)
    cells = np.bincount(np.arange(found.size) * 20 // found.size * 20 + found * 20 // found.size, minlength=400)
    assert abs(deviation(cells, found.size / 400)) < 4


def test_rows_are_the_permutations_of_their_keys():
    rng = default_rng(36)
    keys = words(rng.bit_generator.state, 3, 2)
    found = rng.permuted(ta.asarray(np.tile(np.arange(9), (3, 1))), 1)
    assert found.tolist() == [[place_of(index, 9, key) for index in range(9)] for key in keys]


def test_choices_follow_their_probabilities():
    chances = np.array([0.1, 0, 0.3, 0.25, 0.35, 0])
    found = ta.to_numpy(default_rng(37).choice(6, 40_000, p=chances))
    counts = np.bincount(found, minlength=6)
    assert counts[[1, 5]].tolist() == [0, 0]
    assert abs(deviation(counts[chances > 0], chances[chances > 0] * found.size)) < 4
    numbers = ta.to_numpy(default_rng(37).random(40_000, dtype="float64"))
    sums = np.cumsum(chances) / chances.sum()
    assert np.array_equal(found, np.searchsorted(sums, numbers, side="right"))
    assert np.array_equal(found, ta.to_numpy(reached(ta.asarray(sums), ta.asarray(numbers))))


def test_nothing_to_permute():
    rng = default_rng(40)
    assert rng.permutation(0).shape == (0,)
    assert rng.permutation(ta.zeros((0, 3))).shape == (0, 3)
    assert rng.permuted(ta.zeros((3, 0)), 1).shape == (3, 0)
    rng.shuffle(ta.zeros((3, 0)))
    x = ta.asarray([5])
    rng.shuffle(x)
    assert x.tolist() == [5]
