"""Philox 4x32-10 in Python's integers, and the draws that are defined by its words; comparisons of two devices."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

import tilearray as ta

LOW = 2**32 - 1


def block(counter: int, key: int) -> list[int]:
    """The four words at a counter of 128 bits: one round a line, as the paper of Random123 gives them."""
    a, b, c, d = (counter >> 32 * place & LOW for place in range(4))
    low, high = key & LOW, key >> 32
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (second >> 32) ^ b ^ low, second & LOW, (first >> 32) ^ d ^ high, first & LOW
        low, high = (low + 0x9E3779B9) & LOW, (high + 0xBB67AE85) & LOW
    return [a, b, c, d]


def words(state: dict[str, Any], count: int, width: int = 1) -> list[int]:
    """The next `count` elements of `width` words of 32 bits from a state."""
    start = -(-state["position"] // width)
    found: list[int] = []
    for place in range(start * width, (start + count) * width, width):
        parts = [
            block((state["jumps"] << 96) + (word >> 2) % 2**64, state["key"])[word & 3]
            for word in place_of(place, width)
        ]
        found.append(sum(part << 32 * number for number, part in enumerate(parts)))
    return found


def place_of(place: int, width: int) -> range:
    return range(place, place + width)


def units(state: dict[str, Any], count: int, dtype: str) -> list[Fraction]:
    """The floats in [0, 1) that a state gives: the upper bits of each word."""
    width, bits = {"bfloat16": (1, 8), "float16": (1, 11), "float32": (1, 24), "float64": (2, 53)}[dtype]
    return [Fraction(word >> (32 * width - bits), 2**bits) for word in words(state, count, width)]


def check_same_bits(device: Any, seed: int, examples: int, elements: int) -> None:
    """Compare draws of a device with those of the host: any dtype, any place of a stream, any layout."""
    rng = np.random.default_rng(seed)
    for _ in range(examples):
        host = ta.random.default_rng(int(rng.integers(1000)), device="cpu").spawn(1)[0]
        host.bit_generator.advance(int(rng.choice([0, 0, 1, 2, 3, 5, 2**65 + 1])))
        there = ta.random.Generator(ta.random.Philox4x32(), device=device)
        there.bit_generator.state = host.bit_generator.state
        name, arguments, dtypes = DRAWS[rng.integers(len(DRAWS))]
        dtype = str(rng.choice(dtypes))
        shape = tuple(int(extent) for extent in rng.integers(0, 1 + round(elements ** (1 / 2)), size=2))
        draw = getattr(there, name)
        out = None if rng.random() < 0.5 else target(rng, shape, dtype, device)
        found = draw(*arguments, size=shape, dtype=dtype, **({} if out is None else {"out": out}))
        expected = getattr(host, name)(*arguments, size=shape, dtype=dtype)
        assert found.device == ta.zeros(0, device=device).device
        assert out is None or found is out
        first, second = ta.to_numpy(expected.copy()), ta.to_numpy(found.copy())
        assert first.tobytes() == second.tobytes(), f"{name}{arguments} {dtype} {shape} from {host!r}"
        assert host.bit_generator.state == there.bit_generator.state


def target(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, device: Any) -> ta.Array:
    """Memory of any layout: transposed, reversed, with gaps, or at an odd address."""
    rows, columns = shape
    layout = rng.integers(4)
    if layout == 0:
        return ta.zeros((columns, rows), dtype=dtype, device=device).T
    if layout == 1:
        return ta.zeros((rows, columns), dtype=dtype, device=device)[::-1, ::-1]
    if layout == 2:
        return ta.zeros((rows, 3 * columns), dtype=dtype, device=device)[:, 1::3]
    return ta.zeros(rows * columns + 1, dtype=dtype, device=device)[1:].reshape(shape)


FLOATS = ["bfloat16", "float16", "float32", "float64"]
DRAWS: list[tuple[str, tuple[Any, ...], list[str]]] = [
    ("random", (), FLOATS),
    ("uniform", (-3, 5.5), FLOATS),
    ("standard_normal", (), FLOATS),
    ("normal", (1, 2.5), FLOATS),
    ("standard_exponential", (), FLOATS),
    ("exponential", (3,), FLOATS),
    ("standard_gamma", (0.4,), FLOATS),
    ("gamma", (7.5, 2), FLOATS),
    ("poisson", (3.5,), ["int32", "int64"]),
    ("poisson", (1e5,), ["int64"]),
    ("binomial", (20, 0.7), ["int8", "int64"]),
    ("binomial", (10**6, 0.3), ["int64"]),
    ("chisquare", (0.7,), FLOATS),
    ("noncentral_chisquare", (3, 2.5), FLOATS),
    ("f", (4, 7), FLOATS),
    ("noncentral_f", (4, 7, 20), FLOATS),
    ("standard_t", (5,), FLOATS),
    ("standard_cauchy", (), FLOATS),
    ("laplace", (1, 2), FLOATS),
    ("rayleigh", (2.5,), FLOATS),
    ("triangular", (-1, 0.5, 2), FLOATS),
    ("wald", (3, 2), FLOATS),
    ("geometric", (0.3,), ["int8", "int64"]),
    ("negative_binomial", (5, 0.4), ["int64"]),
    ("integers", (0, 2), ["bool", "int8", "uint8", "int64"]),
    ("integers", (-7, 100), ["int8", "int16", "int32", "int64"]),
    ("integers", (0, 2**32), ["uint32", "int64", "uint64"]),
    ("integers", (-(2**40), 2**62), ["int64"]),
    ("integers", (-(2**63), 2**63), ["int64"]),
    ("integers", (5, 2**64), ["uint64"]),
    ("integers", (0, 2**64), ["uint64"]),
]
"""Draws: the name of the method, its first arguments, and dtypes."""
