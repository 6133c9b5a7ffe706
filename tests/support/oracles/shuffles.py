"""Keyed permutations in Python's integers, one index at a time; comparisons of two devices."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilearray as ta
from support.oracles.random_words import LOW, block, target


def hashed(word: int) -> int:
    """The finalizer of MurmurHash3 for 32 bits."""
    word = (word ^ word >> 16) * 0x85EBCA6B & LOW
    word = (word ^ word >> 13) * 0xC2B2AE35 & LOW
    return word ^ word >> 16


def place_of(index: int, count: int, key: int) -> int:
    """Where a permutation of ``range(count)`` puts an index."""
    bits = max(6, (count - 1).bit_length())
    low, high = bits // 2, bits - bits // 2
    words = [word for number in range(4) for word in block(number, key)]
    place = index
    while True:
        left, right = place >> low, place % 2**low
        for first, second in zip(words[::2], words[1::2], strict=True):
            left = (left + hashed(right ^ first)) % 2**high
            right = (right + hashed(left ^ second)) % 2**low
        place = left << low | right
        if place < count:
            return place


def check_same_order(device: Any, seed: int, examples: int, elements: int) -> None:
    """Compare permutations and choices of a device with those of the host."""
    rng = np.random.default_rng(seed)
    for _ in range(examples):
        number = int(rng.integers(1000))
        host, there = (ta.random.default_rng(number, device=place) for place in ("cpu", device))
        rows, columns = (int(extent) for extent in rng.integers(1, 1 + round(elements**0.5), size=2))
        values = rng.integers(0, 100, (rows, columns)).astype(rng.choice(["int8", "float32", "int64"]))
        view = target(rng, (rows, columns), str(values.dtype), device)
        view[...] = ta.asarray(values, device=device)
        here = ta.asarray(values.copy(), device="cpu")
        axis = int(rng.integers(2))
        weights = rng.random(columns) + 0.01
        chances = weights / weights.sum()
        same(host.permutation(rows * columns), there.permutation(rows * columns))
        same(host.permutation(here, axis), there.permutation(view, axis))
        same(host.permuted(here, axis), there.permuted(view, axis))
        same(host.permuted(here), there.permuted(view))
        same(host.choice(10**12, columns, replace=False), there.choice(10**12, columns, replace=False))
        same(host.choice(here, (2, 3), axis=axis), there.choice(view, (2, 3), axis=axis))
        same(host.choice(here, 9, p=chances, axis=1), there.choice(view, 9, p=chances, axis=1))
        host.shuffle(here, axis)
        there.shuffle(view, axis)
        same(here, view)
        assert host.bit_generator.state == there.bit_generator.state


def same(first: ta.Array, second: ta.Array) -> None:
    """Compare two arrays of two devices."""
    assert ta.to_numpy(first.copy()).tobytes() == ta.to_numpy(second.copy()).tobytes()
