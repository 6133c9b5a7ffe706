"""Uniform floats and integers: exact against words, and the shape of their distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.oracles.random_words import words

import tilearray as ta
from tilearray.engine.caches import PLANS
from tilearray.engine.context import STATE
from tilearray.errors import (
    BroadcastError,
    DeviceError,
    DTypeError,
    OperandError,
    ParameterError,
    ShapeError,
    WriteError,
)
from tilearray.random import default_rng

COUNT = 200_000


def chi_square(counts: np.ndarray, expected: np.ndarray | float) -> float:
    """The statistic in standard deviations: about normal for many degrees of freedom."""
    freedom = counts.size - 1
    return float((((counts - expected) ** 2 / expected).sum() - freedom) / np.sqrt(2 * freedom))


def drawn(array: ta.Array) -> np.ndarray:
    return ta.to_numpy(array).astype(np.float64)


@pytest.mark.parametrize(
    ("dtype", "bins"), [("bfloat16", 256), ("float16", 2048), ("float32", 1000), ("float64", 1000)]
)
def test_floats_are_uniform(dtype, bins):
    x = drawn(default_rng(11).random(COUNT, dtype=dtype))
    assert x.min() >= 0
    assert x.max() < 1
    assert abs(chi_square(np.bincount((x * bins).astype(int), minlength=bins), COUNT / bins)) < 4


@pytest.mark.parametrize("bit", range(0, 32, 5))
def test_single_bits_are_fair_and_runs_have_their_lengths(bit):
    x = ta.to_numpy(default_rng(12).integers(2**32, size=COUNT, dtype="uint32")) >> bit & 1
    assert abs(int(x.sum()) - COUNT / 2) < 4 * np.sqrt(COUNT) / 2
    gaps = np.diff(np.flatnonzero(x))
    counts = np.bincount(np.minimum(gaps, 12), minlength=13)[1:]
    shares = np.array([0.5**length for length in range(1, 12)] + [0.5**11])
    assert abs(chi_square(counts, shares * gaps.size)) < 4


@pytest.mark.parametrize("lag", [1, 2, 3, 4, 5, 64, 1024])
def test_pairs_at_a_distance_are_independent(lag):
    x = default_rng(13).random(COUNT, dtype="float64")
    cells = (drawn(x) * 20).astype(int)
    pairs = np.bincount(cells[:-lag] * 20 + cells[lag:], minlength=400)
    assert abs(chi_square(pairs, (COUNT - lag) / 400)) < 4


def test_two_streams_are_independent():
    first, second = (drawn(child.random(COUNT)) for child in default_rng(14).spawn(2))
    pairs = np.bincount((first * 20).astype(int) * 20 + (second * 20).astype(int), minlength=400)
    assert abs(chi_square(pairs, COUNT / 400)) < 4


RANGES = [(0, 1), (0, 2), (0, 10), (-7, 100), (-128, 128), (0, 2**31), (0, 2**32), (3, 2**32 + 3), (0, 2**32 + 1)]
WIDE = [(-(2**40), 2**62), (-(2**63), 2**63), (2**63 - 2, 2**63)]


def dtypes_of(low: int, high: int) -> list[str]:
    names = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
    return [name for name in names if ta.iinfo(name).min <= low and high - 1 <= ta.iinfo(name).max]


@pytest.mark.parametrize(("low", "high"), [*RANGES, *WIDE, (0, 2**64), (5, 2**64)])
@pytest.mark.parametrize("position", [0, 1, 6])
def test_integers_are_multiples_of_words(low, high, position):
    for dtype in dtypes_of(low, high):
        rng = default_rng(21)
        rng.bit_generator.advance(position)
        width = 2 if high - low <= 2**32 else 4
        expected = [low + (word * (high - low) >> 32 * width) for word in words(rng.bit_generator.state, 9, width)]
        assert rng.integers(low, high, 9, dtype=dtype).tolist() == expected
        rng.bit_generator.advance(-9 * width)
        assert rng.integers(low, high - 1, 9, dtype=dtype, endpoint=True).tolist() == expected


def test_known_integers_do_not_answer_for_others():
    """``True == 1 == 1.0`` as keys of a dictionary; each call is to do what a generator without known calls does."""
    sizes = (None, 1, (1,), True, (True,), 1.0, (1, 1), -1, [1])
    calls = [(high, size, dtype, end) for high in (1, True, 1.0, 0, 300) for size in sizes
             for dtype in (None, "uint8", ta.bool, "float32") for end in (False, True, 0, 1)]  # fmt: skip

    def outcome(rng: ta.random.Generator, high: Any, size: Any, dtype: Any, end: Any) -> Any:
        try:
            found = rng.integers(high, size=size, dtype=dtype, endpoint=end)
        except (ta.TileArrayError, TypeError) as error:
            return type(error), str(error)
        return found.tolist(), found.dtype

    fresh = []
    rng = default_rng(31)
    for call in calls:
        PLANS.clear()
        fresh.append(outcome(rng, *call))
    rng = default_rng(31)
    assert [outcome(rng, *call) for call in calls] == fresh
    assert any(words[0] == "below" for words in STATE.get().plans if words.__class__ is tuple)
    rng.bit_generator.advance(-rng.bit_generator.state["position"])
    assert [outcome(rng, *call) for call in calls] == fresh


def test_integers_are_uniform():
    counts = np.bincount(ta.to_numpy(default_rng(15).integers(1, 1001, COUNT)), minlength=1001)
    assert counts[0] == 0
    assert abs(chi_square(counts[1:], COUNT / 1000)) < 4
    counts = np.bincount(ta.to_numpy(default_rng(16).integers(0, 7 * 2**60, COUNT)) // 2**60, minlength=7)
    assert counts.size == 7
    assert abs(chi_square(counts, COUNT / 7)) < 4


def test_bools_and_defaults():
    rng = default_rng(3)
    assert rng.integers(2, dtype=bool).dtype == ta.bool
    assert sorted(set(rng.integers(2, size=99, dtype="bool").tolist())) == [False, True]
    assert rng.integers(5).dtype == ta.int64
    assert rng.integers(5).shape == ()
    assert rng.random().shape == ()
    assert rng.random(0).shape == (0,)
    assert rng.random((3, 0, 2)).shape == (3, 0, 2)
    with ta.semantics("numpy"):
        assert rng.random().dtype == ta.float64


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "uint64"])
def test_arrays_of_bounds_broadcast(dtype):
    low, high = np.array([[0], [5]], dtype), np.array([1, 10, 120], dtype)
    rng = default_rng(22)
    width = 4 if dtype.endswith("64") else 2
    counts, firsts = np.broadcast_arrays(np.array([[1, 10, 120], [1, 5, 115]], object), np.array([[0], [5]], object))
    high[0] = 6
    counts = np.array([[6, 10, 120], [1, 5, 115]], object)
    drawn_words = words(rng.bit_generator.state, 6, width)
    expected = [
        first + (word * count >> 32 * width)
        for word, count, first in zip(drawn_words, counts.ravel(), firsts.ravel(), strict=True)
    ]
    assert rng.integers(low, ta.asarray(high), dtype=dtype).ravel().tolist() == expected
    rng.bit_generator.state |= {"position": 0}
    assert rng.integers(low, high - 1, (2, 3), dtype, endpoint=True).ravel().tolist() == expected


def test_arrays_of_bounds_reach_the_ends_of_dtypes():
    rng = default_rng(23)
    whole = rng.integers(np.array([-(2**63)]), np.array([2**63 - 1]), (1000,), endpoint=True)
    assert rng.integers(np.array([0], np.uint64), 2**64, 3, dtype="uint64").dtype == ta.uint64
    assert (drawn(whole) < 0).any()
    assert (drawn(whole) > 2**62).any()
    assert rng.integers([-128], 128, 100, dtype="int8").dtype == ta.int8


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_uniform_is_scaled_in_the_dtype_of_the_computation(dtype):
    wide = np.float64 if dtype == "float64" else np.float32
    unit = ta.to_numpy(default_rng(6).random(50, dtype=np.dtype(wide)))
    rng = default_rng(6)
    expected = unit * wide(7.5) + wide(-2)
    if dtype != "bfloat16":
        assert rng.uniform(-2, 5.5, 50, dtype=dtype).tolist() == expected.tolist()
        rng.bit_generator.state |= {"position": 0}
        low, high = ta.asarray([-2.0], dtype=dtype), ta.asarray(np.full((5, 10), 5.5), dtype=dtype)
        assert rng.uniform(low, high, dtype=dtype).ravel().tolist() == expected.tolist()
    else:
        x = drawn(rng.uniform(-2, 5.5, 1000, dtype=dtype))
        assert -2 <= x.min() < -1.9
        assert 5.4 < x.max() <= 5.5


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_targets_of_any_layout_take_the_numbers_of_their_indices(dtype):
    expected = default_rng(5).random((4, 6), dtype=dtype).tolist()
    memory = ta.zeros((12, 24), dtype=dtype)
    views = [memory[:4, :6], memory[:6, :4].T, memory[3::-1, 11::-2], memory.ravel()[1:25].reshape(4, 6)]
    for view in views:
        assert default_rng(5).random(out=view) is view
        assert view.tolist() == expected
        assert default_rng(5).random((4, 6), dtype, view).tolist() == expected
        default_rng(5).uniform(out=view)
        assert view.tolist() == default_rng(5).uniform(size=(4, 6), dtype=dtype).tolist()
        default_rng(5).uniform(ta.asarray([0.0]), 1, out=view)
        assert view.tolist() == default_rng(5).uniform(size=(4, 6), dtype=dtype).tolist()
    numbers = ta.zeros((6, 4), dtype="int16").T
    default_rng(5).integers(100, out=numbers)
    assert numbers.tolist() == default_rng(5).integers(100, size=(4, 6)).tolist()


def test_bytes_are_the_words_in_little_endian_order():
    rng = default_rng(8)
    expected = b"".join(word.to_bytes(4, "little") for word in words(rng.bit_generator.state, 4))
    assert rng.bytes(13) == expected[:13]
    assert rng.bytes(0) == b""


READ_ONLY = np.zeros(3, np.float32)
READ_ONLY.setflags(write=False)
OVERLAPS = ta.as_strided(ta.zeros(3), (3,), (0,))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g: g.random(3, "int8"), DTypeError, "random: expected one of bfloat16.*got int8; write .astype"),
        (lambda g: g.random(3, "float8_e5m2"), DTypeError, "got float8_e5m2"),
        (lambda g: g.random(-1), ShapeError, "random: expected sizes >= 0"),
        (lambda g: g.random(1.5), ShapeError, "random: expected shape"),
        (lambda g: g.random(3, out=ta.zeros(4)), ShapeError, r"out has shape \(4,\), and size is \(3,\)"),
        (lambda g: g.random(dtype="float64", out=ta.zeros(4, dtype="float32")), DTypeError, "out has dtype float32"),
        (lambda g: g.random(out=np.zeros(3)), OperandError, "random: expected a tilearray Array as out, got .*ndarray"),
        (lambda g: g.random(out=ta.asarray(READ_ONLY)), WriteError, "random: the target is read-only"),
        (lambda g: g.random(out=OVERLAPS), WriteError, "random: the target has several elements in one place"),
        (lambda g: g.random(3, device="mars"), DeviceError, "'mars' is not a device"),
        (lambda g: g.uniform(1, 0), ParameterError, "expected finite bounds with low <= high, got low=1 and high=0"),
        (lambda g: g.uniform(0, float("inf")), ParameterError, "expected finite bounds"),
        (lambda g: g.uniform(float("nan")), ParameterError, "expected finite bounds"),
        (lambda g: g.uniform(-3e38, 3e38, dtype="float32"), ParameterError, "whose difference float32 holds"),
        (lambda g: g.uniform(0, 10**400), ParameterError, "expected finite bounds"),
        (lambda g: g.random(2**62), ShapeError, r"random: expected at most 2\*\*63 - 1 bytes"),
        (lambda g: g.uniform("0"), OperandError, "expected low as a real number or an array, got '0'"),
        (lambda g: g.uniform(1j), OperandError, "expected low as a real number"),
        (lambda g: g.uniform([0, 1], [1, 2, 3]), BroadcastError, "uniform"),
        (lambda g: g.uniform([0, 1], 2, size=3), BroadcastError, "uniform"),
        (lambda g: g.uniform([[0, 1]], 2, size=2), ShapeError, r"parameters that broadcast to \(2,\)"),
        (lambda g: g.integers(5, 5), ParameterError, "expected low < high, got low=5 and high=5"),
        (lambda g: g.integers(6, 5, endpoint=True), ParameterError, "expected low <= high"),
        (lambda g: g.integers(0), ParameterError, "expected low < high, got low=0 and high=0"),
        (lambda g: g.integers(300, dtype="uint8"), ParameterError, r"within \[0, 255\], the numbers of uint8"),
        (lambda g: g.integers(-1, 3, dtype="uint8"), ParameterError, r"within \[0, 255\]"),
        (lambda g: g.integers(2**64), ParameterError, "the numbers of int64; write dtype"),
        (lambda g: g.integers(1.5), ShapeError, "integers: expected low as an int, got float"),
        (lambda g: g.integers(5, dtype="float32"), DTypeError, "integers: expected one of bool"),
        (lambda g: g.integers([1, 0]), ParameterError, "expected low < high"),
        (lambda g: g.integers([0, 3], [3, 3]), ParameterError, "expected low < high"),
        (lambda g: g.integers([0, 300], dtype="uint8"), ParameterError, "expected low < high"),
        (lambda g: g.integers([1, 300], dtype="uint8"), ParameterError, "the numbers of uint8"),
        (lambda g: g.integers([-1, 3], 4, dtype="uint8"), ParameterError, "the numbers of uint8"),
        (lambda g: g.integers([0.5]), DTypeError, "integers"),
        (lambda g: g.bytes(-1), ParameterError, "expected length >= 0, got -1; write bytes"),
    ],
)
def test_errors_say_what_to_write(call, error, message):
    rng = default_rng(1)
    with pytest.raises(error, match=message):
        call(rng)
    assert rng.bit_generator.state["position"] == 0
