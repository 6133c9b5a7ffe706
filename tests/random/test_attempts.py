"""Gamma, Poisson and binomial numbers: their distributions, and that elements do not depend on one another."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tilearray as ta
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.errors import BroadcastError, DTypeError, OperandError, ParameterError
from tilearray.random import default_rng, formulas, rejection

mpmath = pytest.importorskip("mpmath")

COUNT = 40_000


def drawn(array: ta.Array) -> np.ndarray:
    return ta.to_numpy(array).astype(np.float64)


def distance(x: np.ndarray, distribution) -> float:
    """Kolmogorov and Smirnov's distance, times the root of the count: above 2 with probability 0.0007."""
    expected = np.array([float(distribution(value)) for value in np.sort(x).tolist()])
    steps = np.arange(x.size + 1) / x.size
    return float(max((steps[1:] - expected).max(), (expected - steps[:-1]).max()) * math.sqrt(x.size))


def chi_square(x: np.ndarray, probability) -> float:
    """The statistic over all integers with an expected count above 8, and the rest; in standard deviations."""
    low, high = int(x.min()), int(x.max())
    expected = np.array([x.size * float(probability(k)) for k in range(low, high + 1)])
    counts = np.bincount((x - low).astype(int), minlength=high - low + 1)
    often = expected > 8
    expected = np.append(expected[often], x.size - expected[often].sum())
    counts = np.append(counts[often], x.size - counts[often].sum())
    if expected[-1] < 1:
        expected, counts = expected[:-1], counts[:-1]
    return float((((counts - expected) ** 2 / expected).sum() - expected.size) / math.sqrt(2 * expected.size))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [0.3, 1, 1.7, 40])
def test_gamma_numbers(shape, dtype):
    x = drawn(default_rng(51).standard_gamma(shape, COUNT, dtype=dtype))
    assert (x >= 0).all()
    assert abs(x.mean() - shape) < 5 * math.sqrt(shape / COUNT)
    assert distance(x[:2000], lambda value: mpmath.gammainc(shape, 0, value, regularized=True)) < 2


def poisson_probability(mean: float):
    return lambda k: math.exp(k * math.log(mean) - mean - math.lgamma(k + 1))


def binomial_probability(n: int, p: float):
    return lambda k: math.exp(
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p) + (n - k) * math.log1p(-p)
    )


@pytest.mark.parametrize("mean", [0.02, 1, 9.99, 10, 11, 35, 4000])
def test_poisson_numbers(mean):
    x = drawn(default_rng(52).poisson(mean, COUNT))
    assert chi_square(x, poisson_probability(mean)) < 4
    assert abs(x.mean() - mean) < 5 * math.sqrt(mean / COUNT)
    assert abs(x.var() / mean - 1) < 5 * math.sqrt((2 + 1 / mean) / COUNT)


@pytest.mark.parametrize("mean", [1e9, 1e15, 2.0**62])
def test_large_means(mean):
    x = (drawn(default_rng(53).poisson(mean, COUNT)) - mean) / math.sqrt(mean)
    assert distance(x[:5000], lambda value: math.erfc(-value / math.sqrt(2)) / 2) < 2


@pytest.mark.parametrize(
    ("n", "p"), [(1, 0.5), (7, 0.9), (20, 0.5), (21, 0.49), (30, 0.4), (1000, 0.001), (1000, 0.93), (10**5, 0.5)]
)
def test_binomial_numbers(n, p):
    x = drawn(default_rng(54).binomial(n, p, COUNT))
    assert 0 <= x.min() <= x.max() <= n
    assert chi_square(x, binomial_probability(n, p)) < 4
    assert abs(x.mean() - n * p) < 5 * math.sqrt(n * p * (1 - p) / COUNT)


def test_the_ends_of_parameters():
    rng = default_rng(55)
    assert rng.poisson(0, 3).tolist() == [0] * 3
    assert rng.standard_gamma(0, 3).tolist() == [0] * 3
    assert rng.binomial(0, 0.5, 3).tolist() == [0] * 3
    assert rng.binomial([9, 10**6], 0).tolist() == [0, 0]
    assert rng.binomial([9, 10**6], 1.0).tolist() == [9, 10**6]
    assert rng.poisson(5, (0, 3)).shape == (0, 3)
    assert rng.poisson().shape == ()
    assert (drawn(rng.standard_gamma(1e-30, 5)) == 0).all()
    assert rng.poisson(1000, 9, dtype="int8").tolist() == [127] * 9


CALLS = {
    "standard_gamma": ((0.4, 8.0), {"dtype": "float32"}),
    "gamma": ((0.4, 8.0), {"dtype": "float64"}),
    "poisson": ((4.0, 50.0), {}),
    "binomial": ((5, 700), {"p": 0.3}),
}


@pytest.mark.parametrize("name", CALLS)
def test_pieces_and_arrays_of_parameters_are_the_whole(name):
    (small, large), options = CALLS[name]
    for parameter in (small, large):
        whole = getattr(default_rng(56), name)(parameter, size=(30, 40), **options)
        rng = default_rng(56)
        pieces = [getattr(rng, name)(parameter, size=piece, **options) for piece in (1, 399, 800)]
        assert ta.concat(pieces).tolist() == whole.ravel().tolist()
        array = getattr(default_rng(56), name)(np.full((30, 1), parameter), size=(30, 40), **options)
        assert array.tolist() == whole.tolist()
        target = ta.zeros((40, 30), dtype=whole.dtype).T
        assert getattr(default_rng(56), name)(parameter, out=target, **options | {"dtype": None}) is target
        assert target.tolist() == whole.tolist()
    both = getattr(default_rng(56), name)(np.array([[small], [large]]), size=(2, 500), **options).tolist()
    assert both[0] == getattr(default_rng(56), name)(small, size=500, **options).tolist()
    second = default_rng(56)
    getattr(second, name)(small, size=500, **options)
    assert both[1] == getattr(second, name)(large, size=500, **options).tolist()


def test_attempts_read_other_blocks():
    """An element that is rejected must not read a word that another element reads."""
    rng = default_rng(57)
    x = drawn(rng.standard_gamma(1.0, COUNT, dtype="float64"))
    assert np.unique(x).size == COUNT
    assert rng.bit_generator.state["position"] == 8 * COUNT
    assert np.unique(np.append(x, drawn(rng.standard_gamma(1.0, COUNT, dtype="float64")))).size == 2 * COUNT


def test_scales_multiply():
    unit = ta.to_numpy(default_rng(58).standard_gamma(2, (2, 3)))
    assert default_rng(58).gamma(2, 3, (2, 3)).tolist() == (unit * 3).tolist()
    scales = np.array([1.0, 2.0, 4.0], np.float32)
    assert default_rng(58).gamma(2, scales, (2, 3)).tolist() == (unit * scales).tolist()


FUNCTIONS = {
    "exp": (formulas.exp, mpmath.exp, np.linspace(-80, 20, 997), 3),
    "log1p": (formulas.log1p, mpmath.log1p, np.concatenate([np.linspace(-0.99, 5, 500), 2.0 ** -np.arange(60)]), 4),
    "stirling": (
        rejection.stirling,
        lambda k: mpmath.loggamma(k + 1) - (k * mpmath.log(k) if k else 0) + k,
        np.concatenate([np.arange(30.0), 10.0 ** np.arange(2, 15)]),
        8,
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_are_accurate(name, dtype):
    function, exact, arguments, bound = FUNCTIONS[name]
    builder, kind = ExpressionBuilder(), np.dtype(dtype)
    node = function(formulas.Value(builder, builder.array(kind), kind)).node
    operation = FixedOperation(name, builder.build([node], [kind]))
    x = arguments.astype(dtype)
    found = ta.empty(x.size, dtype=dtype)
    run_fixed(operation, [ta.asarray(x)], found)
    with mpmath.workdps(40):
        for value, given in zip(found.tolist(), x.tolist(), strict=True):
            expected = exact(mpmath.mpf(given))
            assert abs(value - expected) <= bound * np.finfo(kind).eps / 2 * abs(expected)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g: g.standard_gamma(-1), ParameterError, "standard_gamma: expected 0 <= shape <= 1.2.*, got -1"),
        (lambda g: g.gamma([1, float("nan")]), ParameterError, "gamma: expected 0 <= shape <="),
        (lambda g: g.gamma(float("inf"), 3), ParameterError, "gamma: expected 0 <= shape <= .*, got inf"),
        (lambda g: g.gamma([1, float("inf")]), ParameterError, "gamma: expected 0 <= shape <="),
        (lambda g: g.gamma(10**400), ParameterError, "gamma: expected 0 <= shape <="),
        (lambda g: g.poisson([1j]), DTypeError, "poisson: expected real parameters, got complex64; write x.real"),
        (lambda g: g.gamma(1, -1), ParameterError, "gamma: expected scale >= 0, got -1"),
        (lambda g: g.poisson(-0.5), ParameterError, "poisson: expected 0 <= lam <= .*, got -0.5"),
        (lambda g: g.poisson([1, -1]), ParameterError, "poisson: expected 0 <= lam"),
        (lambda g: g.poisson(1e19), ParameterError, "poisson: expected 0 <= lam"),
        (lambda g: g.poisson(float("nan")), ParameterError, "got nan; write ta.clip\\(lam, 0, "),
        (lambda g: g.poisson("1"), OperandError, "expected lam as a real number or an array"),
        (lambda g: g.poisson(1, dtype="float32"), DTypeError, "poisson: expected one of int16"),
        (lambda g: g.binomial(-1, 0.5), ParameterError, "binomial: expected 0 <= n <= 9007199254740992, got -1"),
        (lambda g: g.binomial(3, 1.5), ParameterError, "binomial: expected 0 <= p <= 1, got 1.5"),
        (lambda g: g.binomial(3, [0.5, -0.5]), ParameterError, "binomial: expected 0 <= p <= 1"),
        (lambda g: g.binomial(3.5, 0.5), DTypeError, "binomial: expected n as integers, got 3.5; write int"),
        (lambda g: g.binomial([3, 4], [0.1, 0.2, 0.3]), BroadcastError, "binomial"),
    ],
)
def test_errors_say_what_to_write(call, error, message):
    rng = default_rng(1)
    with pytest.raises(error, match=message):
        call(rng)
    assert rng.bit_generator.state["position"] == 0
