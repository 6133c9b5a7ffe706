"""Streams of random words: the published answers, Python's integers, states, jumps and spawned streams."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
from support.oracles.random_words import block, units, words

import tilearray as ta
from tilearray.errors import OperandError, ParameterError, ShapeError
from tilearray.random import Generator, Philox4x32, default_rng
from tilearray_host import philox

PI = 0x03707344_13198A2E_85A308D3_243F6A88, 0x299F31D0_A4093822
ANSWERS = [
    (0, 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    (2**128 - 1, 2**64 - 1, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (*PI, "d16cfe09 94fdcceb 5001e420 24126ea1"),
]
"""Known answers of philox4x32-10 that Random123 publishes: counter, key, words."""


def shown(found) -> str:
    return " ".join(f"{int(word):08x}" for word in found)


@pytest.mark.parametrize(("counter", "key", "answer"), ANSWERS)
def test_the_published_answers(counter, key, answer):
    assert shown(block(counter, key)) == answer
    for count in (1, 2):  # one block is computed with Python's integers
        numbers = np.full(count, counter % 2**64, np.uint64)
        assert [shown(row) for row in philox.blocks(numbers, counter >> 64, key)] == [answer] * count


@pytest.mark.parametrize("position", [0, 1, 2, 3, 4, 5, 2**34 - 3, 2**62 + 1, 2**66 - 6])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_floats_are_the_upper_bits_of_words(position, dtype):
    rng = default_rng(5)
    rng.bit_generator.state |= {"position": position, "jumps": 3}
    state = rng.bit_generator.state
    assert state["position"] == position
    assert state["jumps"] == 3
    found = rng.random(9, dtype=dtype).astype("float64").tolist()
    assert found == [float(unit) for unit in units(state, 9, dtype)]


def test_elements_of_two_words_begin_at_even_positions():
    rng = default_rng(1)
    rng.random(3, dtype="float32")
    rng.random(1, dtype="float64")
    assert rng.bit_generator.state["position"] == 6
    rng.integers(2**40, size=1)
    assert rng.bit_generator.state["position"] == 12


def test_positions_wrap_at_the_end_of_a_stream():
    stream = Philox4x32(0).advance(-1)
    assert stream.state["position"] == 2**66 - 1
    assert Generator(stream).random(2, dtype="float32").tolist()[1] == default_rng(0).random(dtype="float32").item()


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
@pytest.mark.parametrize("pieces", [[6, 6], [1, 2, 3, 4, 2], [0, 12], [12]])
def test_pieces_are_the_whole(pieces, dtype):
    rng, whole = default_rng(9), default_rng(9).random((3, 4), dtype=dtype)
    found = ta.concat([rng.random(piece, dtype=dtype) for piece in pieces])
    assert found.tolist() == whole.ravel().tolist()


def test_long_draws_are_their_blocks():
    whole, rng = default_rng(2).random(200_001), default_rng(2)
    assert ta.concat([rng.random(65_537), rng.random(134_464)]).tolist() == whole.tolist()


@pytest.mark.parametrize("seed", [0, 7, 2**200, [1, 2, 3], np.int64(4), np.random.SeedSequence(3)])
def test_equal_seeds_give_equal_numbers(seed):
    assert default_rng(seed).random(5).tolist() == default_rng(seed).random(5).tolist()
    expected = np.random.SeedSequence(seed) if not isinstance(seed, np.random.SeedSequence) else seed
    assert Philox4x32(seed).key == int(expected.generate_state(1, np.uint64)[0])


def test_no_seed_gives_other_numbers_each_time():
    assert default_rng().random(4, dtype="float64").tolist() != default_rng().random(4, dtype="float64").tolist()


def test_generators_and_streams_are_seeds():
    rng = default_rng(1)
    assert default_rng(rng) is rng
    assert default_rng(rng.bit_generator).bit_generator is rng.bit_generator


def test_a_state_continues_at_its_place():
    rng = default_rng(4)
    rng.random(7)
    state = rng.bit_generator.state
    expected = rng.random(5).tolist()
    other = default_rng(0)
    other.bit_generator.state = state
    assert other.random(5).tolist() == expected


def test_pickles_continue_at_their_place():
    rng = default_rng(4, device="cpu")
    rng.random(7)
    copy = pickle.loads(pickle.dumps(rng))
    assert copy.random(5).tolist() == rng.random(5).tolist()
    assert copy.spawn(1)[0].random(5).tolist() == rng.spawn(1)[0].random(5).tolist()
    assert repr(copy) == repr(rng)


def test_jumped_streams_read_other_words():
    stream = Philox4x32(4)
    found = [Generator(stream.jumped(jumps)).random(50).tolist() for jumps in range(4)]
    assert len({number for numbers in found for number in numbers}) > 195
    assert found[0] == Generator(stream).random(50).tolist()
    assert found[3] == Generator(stream.jumped().jumped(2)).random(50).tolist()
    assert stream.jumped(2**32).state == stream.state | {"position": 0}


def test_spawned_streams_have_keys_of_their_own():
    rng = default_rng(4)
    children = [*rng.spawn(3), *rng.spawn(2), *rng.spawn(1)[0].spawn(2)]
    assert len({child.bit_generator.key for child in [rng, *children]}) == 8
    again = default_rng(4).spawn(2)
    assert again[1].random(3).tolist() == default_rng(4).spawn(2)[1].random(3).tolist()


def test_threads_take_different_words():
    rng, found = default_rng(3), []
    threads = [threading.Thread(target=lambda: found.append(rng.random(1000, dtype="float64"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ta.concat(found).tolist()) == sorted(default_rng(3).random(8000, dtype="float64").tolist())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: default_rng("seven"), OperandError, "Philox4x32: expected seed as an int.*'seven'; write an int >= 0"),
        (lambda: default_rng(1.5), OperandError, "expected seed as an int"),
        (lambda: default_rng(-1), ParameterError, "expected seed >= 0, got -1"),
        (lambda: Generator(7), OperandError, "expected a Philox4x32, got 7; write ta.random.default_rng"),
        (lambda: Philox4x32(0).jumped(0.5), ShapeError, "expected jumps as an int"),
        (lambda: Philox4x32(0).spawn(-1), ParameterError, "expected n_children >= 0, got -1; write spawn"),
        (lambda: setattr(Philox4x32(0), "state", {}), OperandError, "expected a dict with 'bit_generator'"),
        (lambda: setattr(Philox4x32(0), "state", None), OperandError, "expected a dict with 'bit_generator'"),
        (
            lambda: setattr(Philox4x32(0), "state", Philox4x32(0).state | {"bit_generator": "PCG64"}),
            ParameterError,
            "expected the state of a Philox4x32, got that of 'PCG64'",
        ),
        (
            lambda: setattr(Philox4x32(0), "state", Philox4x32(0).state | {"position": 2**66}),
            ParameterError,
            "expected 0 <= position < 73786976294838206464, got 73786976294838206464; write a state",
        ),
        (lambda: ta.random.normall, AttributeError, "random"),
    ],
)
def test_errors_say_what_to_write(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_oracle_reads_words_of_several_widths():
    state = Philox4x32(1).state
    single = words(state, 8)
    assert words(state, 4, 2) == [low | high << 32 for low, high in zip(single[::2], single[1::2], strict=True)]
