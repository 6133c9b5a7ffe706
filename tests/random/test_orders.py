"""Permutations, shuffles and choices: exact counts, shapes, and the shape of their distributions."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import tilearray as ta
from tilearray.errors import AxisError, DTypeError, OperandError, ParameterError, ShapeError, WriteError
from tilearray.random import default_rng

COUNT = 6000


def chi_square(counts: np.ndarray, expected: np.ndarray | float) -> float:
    """The statistic in standard deviations."""
    freedom = counts.size - 1
    return float((((counts - expected) ** 2 / expected).sum() - freedom) / np.sqrt(2 * freedom))


def test_all_orders_are_equally_probable():
    rng = default_rng(41)
    rows = rng.permuted(np.tile(np.arange(4), (COUNT, 1)), axis=1).tolist()
    places = {order: place for place, order in enumerate(permutations(range(4)))}
    counts = np.bincount([places[tuple(row)] for row in rows], minlength=24)
    assert abs(chi_square(counts, COUNT / 24)) < 4


def test_single_permutations_differ_and_are_permutations():
    rng = default_rng(42)
    found = [rng.permutation(50).tolist() for _ in range(20)]
    assert all(sorted(order) == list(range(50)) for order in found)
    assert len({tuple(order) for order in found}) == 20
    first = np.bincount([rng.permutation(5).tolist()[0] for _ in range(2000)], minlength=5)
    assert abs(chi_square(first, 400)) < 4


@pytest.mark.parametrize("count", [0, 1, 2])
def test_small_permutations(count):
    assert sorted(default_rng(1).permutation(count).tolist()) == list(range(count))
    assert default_rng(1).permutation(count).dtype == ta.int64


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_slices_stay_whole(axis):
    x = ta.reshape(ta.arange(60, dtype="bfloat16"), (6, 10))
    found = ta.to_numpy(default_rng(43).permutation(x, axis))
    moved, given = np.moveaxis(found, axis, 0), np.moveaxis(ta.to_numpy(x), axis, 0)
    assert moved.tolist() != given.tolist()
    assert sorted(moved.tolist()) == given.tolist()
    shuffled = x.copy()
    default_rng(43).shuffle(shuffled, axis)
    assert shuffled.tolist() == found.tolist()
    view = ta.zeros((10, 12), dtype="bfloat16")[:, ::2].T
    view[...] = x
    default_rng(43).shuffle(view, axis)
    assert view.tolist() == found.tolist()


def test_permuted_slices_have_orders_of_their_own():
    x = np.tile(np.arange(30), (8, 1))
    found = default_rng(44).permuted(x, axis=1)
    assert ta.sort(found, axis=1).tolist() == x.tolist()
    assert len({tuple(row) for row in found.tolist()}) == 8
    turned = default_rng(44).permuted(ta.asarray(x.T), axis=0)
    assert ta.sort(turned, axis=0).tolist() == x.T.tolist()
    whole = default_rng(44).permuted(x)
    assert ta.sort(whole, axis=None).tolist() == sorted(x.ravel().tolist())
    assert whole.shape == (8, 30)
    target = ta.asarray(x.copy())
    assert default_rng(44).permuted(target, axis=1, out=target) is target
    assert target.tolist() == found.tolist()


def test_choices_with_replacement_are_integers():
    assert default_rng(45).choice(7, (3, 4)).tolist() == default_rng(45).integers(7, size=(3, 4)).tolist()
    letters = ta.asarray([[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]])
    places = default_rng(45).integers(3, size=(2, 5))
    expected = ta.to_numpy(letters)[:, ta.to_numpy(places)]
    found = default_rng(45).choice(letters, (2, 5), axis=1)
    assert found.shape == (2, 2, 5)
    assert found.tolist() == expected.tolist()
    assert default_rng(45).choice([3, 4]).shape == ()


def test_probabilities_are_kept():
    p = np.array([0.1, 0, 0.6, 0.3])
    counts = np.bincount(ta.to_numpy(default_rng(46).choice(4, 20_000, p=p)), minlength=4)
    assert counts[1] == 0
    assert abs(chi_square(counts[p > 0], 20_000 * p[p > 0])) < 4


def test_choices_without_replacement_follow_one_another():
    found = default_rng(47).choice(100, (10, 10), replace=False)
    assert sorted(found.ravel().tolist()) == list(range(100))
    rng, p = default_rng(48), np.array([0.5, 0.3, 0.2, 0.0])
    pairs = [tuple(rng.choice(4, 2, replace=False, p=p).tolist()) for _ in range(COUNT)]
    expected = {(i, j): p[i] * p[j] / (1 - p[i]) for i in range(3) for j in range(3) if i != j}
    counts = np.array([pairs.count(pair) for pair in expected])
    assert counts.sum() == COUNT
    assert abs(chi_square(counts, COUNT * np.array(list(expected.values())))) < 4


NO_SORT = ta.zeros(0).device


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g: g.permutation(-1), ShapeError, "permutation: expected sizes >= 0"),
        (lambda g: g.permutation(1.5), ShapeError, "permutation: expected x as an int"),
        (lambda g: g.permutation([1, 2], axis=1), AxisError, "permutation"),
        (lambda g: g.shuffle([1, 2, 3]), OperandError, "^shuffle: expected a tilearray Array, got list; write x = rng"),
        (lambda g: g.shuffle(ta.asarray(1)), AxisError, "^shuffle: expected no axis"),
        (lambda g: g.shuffle(ta.broadcast_to(ta.zeros(1), (3,))), WriteError, "shuffle: the target"),
        (
            lambda g: g.permuted([1, 2], out=ta.zeros(3)),
            ShapeError,
            r"^permuted: expected out of shape \(2,\), got \(3,\)",
        ),
        (lambda g: g.permuted([1, 2], out=ta.zeros(2) > 0), DTypeError, "^permuted: expected out of a dtype that can"),
        (lambda g: g.permuted([1, 2], out=[1, 2]), OperandError, "^permuted: expected a tilearray Array as out"),
        (lambda g: g.choice(2, p=[1j, 1]), DTypeError, "^choice: expected real probabilities, got complex64; write p"),
        (lambda g: g.integers(2.5), ShapeError, "^integers: expected low as an int, got float"),
        (lambda g: g.integers(1, 2.5), ShapeError, "^integers: expected high as an int, got float"),
        (lambda g: g.choice(0), ParameterError, "expected at least one element to choose from, got 0; write size=0"),
        (
            lambda g: g.choice(3, 4, replace=False),
            ParameterError,
            r"size of at most 3 without replacement, got \(4,\); write",
        ),
        (lambda g: g.choice(3, 2, p=[0.5, 0.5]), ParameterError, r"expected p of the shape \(3,\), got \(2,\)"),
        (lambda g: g.choice(2, 2, p=[0.5, 0.6]), ParameterError, "got the sum 1.1"),
        (lambda g: g.choice(2, 2, p=[1.5, -0.5]), ParameterError, "expected probabilities >= 0"),
        (lambda g: g.choice(2, 2, False, p=[1, 0]), ParameterError, "expected 2 probabilities above 0, got fewer"),
    ],
)
def test_errors_say_what_to_write(call, error, message):
    with pytest.raises(error, match=message):
        call(default_rng(1))


def test_a_device_without_numpy_searches_sums_itself(monkeypatch):
    monkeypatch.setattr(type(NO_SORT.backend), "sorting", None)
    rng = default_rng(1)
    assert sorted(rng.permutation(5).tolist()) == [0, 1, 2, 3, 4]
    assert rng.choice(2, 9, p=[0, 1]).tolist() == [1] * 9
    assert rng.choice(5, 3).shape == (3,)
