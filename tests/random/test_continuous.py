"""Normal and exponential numbers: against exact formulas over the words, and the shape of their distributions."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from support.oracles.random_words import words

import tilearray as ta
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.errors import DTypeError, ParameterError
from tilearray.random import default_rng
from tilearray.random.formulas import Value, log

mpmath = pytest.importorskip("mpmath")

COUNT = 200_000
EPSILON = {"float32": 2.0**-24, "float64": 2.0**-53}


def drawn(array: ta.Array) -> np.ndarray:
    return ta.to_numpy(array).astype(np.float64)


def distance(x: np.ndarray, distribution) -> float:
    """Kolmogorov and Smirnov's distance, times the root of the count: above 2 with probability 0.0007."""
    expected = np.array([distribution(value) for value in np.sort(x)])
    steps = np.arange(x.size + 1) / x.size
    return float(max((steps[1:] - expected).max(), (expected - steps[:-1]).max()) * math.sqrt(x.size))


DISTRIBUTIONS = {
    "standard_normal": (NormalDist().cdf, [0, 1, 0, 3]),
    "standard_exponential": (lambda x: 1 - math.exp(-x), [1, 1, 2, 9]),
}
"""The distribution function, the mean and the central moments."""


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_distribution(name, dtype):
    function, (mean, *moments) = DISTRIBUTIONS[name]
    x = drawn(getattr(default_rng(31), name)(COUNT, dtype=dtype))
    assert distance(x[:50_000], function) < 2
    assert abs(x.mean() - mean) < 5 / math.sqrt(COUNT)
    for power, moment in zip((2, 3, 4), moments, strict=True):
        spread = np.std((x - mean) ** power)
        assert abs(((x - mean) ** power).mean() - moment) < 5 * spread / math.sqrt(COUNT)


def test_the_tails_have_their_shares():
    x = np.abs(drawn(default_rng(32).standard_normal(4_000_000, dtype="float32")))
    for bound in (3, 4, 4.5):
        expected = x.size * 2 * NormalDist().cdf(-bound)
        assert abs((x > bound).sum() - expected) < 5 * math.sqrt(expected)


@pytest.mark.parametrize("lag", [1, 2, 3, 4, 1024])
def test_neighbours_are_independent(lag):
    x = drawn(default_rng(33).standard_normal(COUNT))
    for first, second in ((x, x), (x * x - 1, x * x - 1), (x, x * x - 1)):
        products = first[:-lag] * second[lag:]
        assert abs(products.mean()) < 5 * products.std() / math.sqrt(products.size)


@pytest.mark.parametrize("position", [0, 1, 2, 3, 7])
@pytest.mark.parametrize(("dtype", "width"), [("float32", 1), ("float64", 2)])
def test_normal_numbers_are_points_of_pairs(dtype, width, position):
    rng = default_rng(34)
    rng.bit_generator.advance(position)
    start = -(-position // width)
    first = start // 2 * 2
    state = rng.bit_generator.state | {"position": first * width}
    given = words(state, 14, width)
    bits = 32 * width
    expected = []
    with mpmath.workdps(30):
        for radius_word, angle_word in zip(given[::2], given[1::2], strict=True):
            radius = mpmath.sqrt(-2 * mpmath.log((radius_word + mpmath.mpf(0.5)) / 2**bits))
            angle = 2 * mpmath.pi * angle_word / 2**bits
            expected += [radius * mpmath.cos(angle), radius * mpmath.sin(angle)]
    found = rng.standard_normal(10, dtype=dtype).astype("float64").tolist()
    for value, exact in zip(found, expected[start - first :], strict=False):
        assert abs(value - exact) <= 8 * EPSILON[dtype] * max(1, abs(exact))


@pytest.mark.parametrize(("dtype", "width"), [("float32", 1), ("float64", 2)])
def test_exponential_numbers_are_logarithms(dtype, width):
    rng = default_rng(35)
    given = words(rng.bit_generator.state, 200, width)
    for value, word in zip(rng.standard_exponential(200, dtype=dtype).tolist(), given, strict=True):
        with mpmath.workdps(30):
            exact = -mpmath.log((word + mpmath.mpf(0.5)) / 2 ** (32 * width))
        assert abs(value - exact) <= 4 * EPSILON[dtype] * max(1, exact)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logarithms_are_accurate_everywhere(dtype):
    builder, kind = ExpressionBuilder(), np.dtype(dtype)
    node = log(Value(builder, builder.array(kind), kind)).node
    operation = FixedOperation("log", builder.build([node], [kind]))
    rng = np.random.default_rng(3)
    near_one = 1 - rng.random(500) * 2.0 ** -rng.integers(1, 23, 500)
    x = np.concatenate([rng.random(500), near_one, 2.0 ** -rng.integers(0, 66, 500), [1.0]]).astype(dtype)
    found = ta.empty(x.size, dtype=dtype)
    run_fixed(operation, [ta.asarray(x)], found)
    with mpmath.workdps(30):
        for value, given in zip(found.tolist(), x.tolist(), strict=True):
            exact = mpmath.log(given)
            assert abs(value - exact) <= 2.5 * EPSILON[dtype] * abs(exact)


@pytest.mark.parametrize("name", ["standard_normal", "standard_exponential"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_floats_are_those_of_float32_rounded(name, dtype):
    found = getattr(default_rng(36), name)(1000, dtype=dtype)
    assert found.tolist() == getattr(default_rng(36), name)(1000, dtype="float32").astype(dtype).tolist()


@pytest.mark.parametrize("name", ["normal", "standard_normal", "exponential", "standard_exponential"])
def test_pieces_are_the_whole(name):
    rng, whole = default_rng(9), getattr(default_rng(9), name)(size=(3, 5))
    found = ta.concat([getattr(rng, name)(size=piece) for piece in (1, 2, 5, 7)])
    assert found.tolist() == whole.ravel().tolist()


def test_parameters_scale_and_broadcast():
    unit = ta.to_numpy(default_rng(37).standard_normal((2, 3)))
    expected = unit * np.float32(2.5) + np.float32(-1)
    assert default_rng(37).normal(-1, 2.5, (2, 3)).tolist() == expected.tolist()
    assert default_rng(37).normal([[-1], [-1]], np.full(3, 2.5)).tolist() == expected.tolist()
    assert default_rng(37).normal(ta.asarray(-1), 2.5, (2, 3)).tolist() == expected.tolist()
    target = ta.zeros((3, 2)).T
    assert default_rng(37).normal(-1, [2.5, 2.5, 2.5], out=target) is target
    assert target.tolist() == expected.tolist()
    unit = ta.to_numpy(default_rng(37).standard_exponential((2, 3)))
    assert default_rng(37).exponential(4, (2, 3)).tolist() == (unit * 4).tolist()
    assert default_rng(37).exponential([[4.0], [4.0]], (2, 3)).tolist() == (unit * 4).tolist()
    assert default_rng(37).standard_exponential((2, 3), method="zig").tolist() == unit.tolist()
    assert default_rng(37).normal(5, 0, 4).tolist() == [5] * 4
    assert default_rng(37).normal(10**400, 1, 2).tolist() == [math.inf] * 2


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda g: g.normal(ta.asarray([1j])),
            DTypeError,
            "normal: expected real parameters, got complex64",
        ),
        (lambda g: g.normal(0, -1), ParameterError, "normal: expected scale >= 0, got -1"),
        (lambda g: g.normal(0, float("nan")), ParameterError, "expected scale >= 0, got nan; write max"),
        (lambda g: g.exponential(-0.5), ParameterError, "exponential: expected scale >= 0, got -0.5"),
        (
            lambda g: g.standard_exponential(method="box"),
            ParameterError,
            "expected method 'inv' or 'zig', got 'box'; write method='inv'",
        ),
        (lambda g: g.standard_normal(3, "int64"), DTypeError, "standard_normal: expected one of bfloat16"),
    ],
)
def test_errors_say_what_to_write(call, error, message):
    rng = default_rng(1)
    with pytest.raises(error, match=message):
        call(rng)
    assert rng.bit_generator.state["position"] == 0
