"""Distributions that are functions of others: samples beside NumPy's, ends of parameters, dtypes, targets, errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tilearray as ta
from tilearray.errors import DTypeError, ParameterError, ShapeError
from tilearray.random import default_rng

CASES = {
    "beta": [{"a": 2.0, "b": 3.0}, {"a": 0.3, "b": 40}, {"a": 0.5, "b": 0.5}, {"a": 1, "b": 1e5}],
    "chisquare": [{"df": 0.4}, {"df": 3}],
    "dirichlet": [{"alpha": [0.5, 2.0, 1.0]}, {"alpha": [0.05, 0.1]}],
    "f": [{"dfnum": 4.0, "dfden": 7.0}, {"dfnum": 1, "dfden": 2}],
    "geometric": [{"p": 0.3}, {"p": 0.9}, {"p": 1e-4}],
    "gumbel": [{}, {"loc": 1.0, "scale": 2.0}],
    "hypergeometric": [
        *({"ngood": 15, "nbad": 10, "nsample": 5}, {"ngood": 2, "nbad": 1, "nsample": 1}),
        *({"ngood": 500, "nbad": 4000, "nsample": 3000}, {"ngood": 10**6, "nbad": 10**8, "nsample": 10**5}),
        *({"ngood": 30, "nbad": 20, "nsample": 50}, {"ngood": 0, "nbad": 3, "nsample": 2}),
    ],
    "laplace": [{}, {"loc": 1.0, "scale": 2.0}],
    "logistic": [{}, {"loc": 1.0, "scale": 2.0}],
    "logseries": [{"p": 0.6}, {"p": 0.05}, {"p": 0.9999}],
    "lognormal": [{}, {"mean": 0.5, "sigma": 0.7}],
    "multinomial": [{"n": 20, "pvals": [0.2, 0.5, 0.3]}, {"n": 5, "pvals": [0.0, 0.6, 0.0, 0.4]}],
    "multivariate_hypergeometric": [{"colors": [5, 9, 3], "nsample": 8}],
    "multivariate_normal": [{"mean": [1.0, -2.0], "cov": [[2.0, 0.5], [0.5, 1.0]]}],
    "negative_binomial": [{"n": 5, "p": 0.4}, {"n": 0.5, "p": 0.1}],
    "noncentral_chisquare": [{"df": 3, "nonc": 20}, {"df": 0.5, "nonc": 0.3}, {"df": 2, "nonc": 0}],
    "noncentral_f": [{"dfnum": 3, "dfden": 8, "nonc": 2.5}],
    "pareto": [{"a": 4.0}],
    "power": [{"a": 3.0}, {"a": 0.2}],
    "rayleigh": [{}, {"scale": 2.0}],
    "standard_cauchy": [{}],
    "standard_t": [{"df": 5.0}, {"df": 1}],
    "triangular": [{"left": -1, "mode": 0.5, "right": 2}, {"left": 0, "mode": 0, "right": 1}],
    "vonmises": [*({"mu": mu, "kappa": kappa} for mu, kappa in ((0.5, 2), (3, 0.3), (-2, 100), (1, 0), (0, 1e7)))],
    "wald": [{"mean": 3.0, "scale": 2.0}, {"mean": 1, "scale": 0.05}, {"mean": 1.0, "scale": 500.0}],
    "weibull": [{"a": 1.5}, {"a": 0.4}],
    "zipf": [{"a": 2.0}, {"a": 1.2}, {"a": 7}],
}
VECTORS = ("dirichlet", "multinomial", "multivariate_hypergeometric", "multivariate_normal")
COUNTS = (
    *("geometric", "hypergeometric", "logseries", "multinomial", "multivariate_hypergeometric", "negative_binomial"),
    "zipf",
)
SIZE = 20_000


def distance(first: np.ndarray, second: np.ndarray) -> float:
    """The largest distance of two samples' distribution functions: above 1.95 with probability 0.001 if they agree."""
    places = np.concatenate([first, second])
    shares = [np.searchsorted(np.sort(drawn), places, "right") / drawn.size for drawn in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max() / math.sqrt(2 / first.size))


@pytest.mark.parametrize(("name", "given"), [(name, given) for name in CASES for given in CASES[name]])
def test_samples_are_distributed_as_numpys(name, given):
    exact = getattr(np.random.default_rng(1), name)(**given, size=SIZE)
    for dtype in ("int64",) if name in COUNTS else ("float32", "float64"):
        ours = ta.to_numpy(getattr(default_rng(2), name)(**given, size=SIZE, dtype=dtype))
        theirs = exact.astype(dtype)
        assert ours.shape == theirs.shape
        assert ours.dtype == dtype
        assert np.isfinite(ours).all()
        for mine, other in zip(ours.reshape(SIZE, -1).T, theirs.reshape(SIZE, -1).T, strict=True):
            assert distance(mine, other) < 1.95
            if mine.size and other.std() and name not in ("standard_cauchy", "standard_t", "f", "power", "zipf"):
                assert abs(np.corrcoef(mine[1:], mine[:-1])[0, 1]) < 0.04


def test_vectors_depend_on_each_other_as_they_should():
    x = ta.to_numpy(default_rng(3).multivariate_normal([1, 2, 3], COVARIANCES, SIZE, dtype="float64"))
    np.testing.assert_allclose(np.cov(x.T), COVARIANCES, atol=0.15)
    np.testing.assert_allclose(x.mean(axis=0), [1, 2, 3], atol=0.1)
    assert (
        ta.sum(default_rng(3).multinomial([[3], [10**6]], [0.3, 0.1, 0.6], (2, 50)), axis=-1) == [[3], [10**6]]
    ).all()
    sums = ta.to_numpy(ta.sum(default_rng(3).dirichlet([1e-3, 1e-3, 5.0], 1000, dtype="float64"), axis=-1))
    np.testing.assert_allclose(sums, 1, rtol=1e-14)


COVARIANCES = [[4.0, 2.0, 0.0], [2.0, 3.0, -1.0], [0.0, -1.0, 2.0]]


@pytest.mark.parametrize("method", ["svd", "eigh", "cholesky"])
def test_each_method_gives_the_covariances(method):
    x = ta.to_numpy(default_rng(4).multivariate_normal([0] * 3, COVARIANCES, SIZE, method=method, dtype="float64"))
    np.testing.assert_allclose(np.cov(x.T), COVARIANCES, atol=0.15)


def test_covariances_are_checked():
    wrong = [[1.0, 2.0], [2.0, 1.0]]
    with pytest.warns(RuntimeWarning, match="expected cov to be symmetric without a negative eigenvalue"):
        default_rng(5).multivariate_normal([0, 0], wrong)
    with pytest.raises(ParameterError, match=r"multivariate_normal: expected cov to be symmetric .*; write \(cov"):
        default_rng(5).multivariate_normal([0, 0], wrong, check_valid="raise", method="eigh")
    assert default_rng(5).multivariate_normal([0, 0], wrong, check_valid="ignore").shape == (2,)
    singular = default_rng(5).multivariate_normal([0, 0], [[1, 1], [1, 1]], 9, dtype="float64")
    np.testing.assert_allclose(ta.to_numpy(singular[:, 0]), ta.to_numpy(singular[:, 1]), atol=1e-14)


def test_the_ends_of_parameters():
    rng = default_rng(6)
    assert rng.geometric(1.0, 50).tolist() == [1] * 50
    assert rng.geometric([1.0, 1.0]).tolist() == [1, 1]
    assert rng.geometric(1e-30, 3).tolist() == [2**63 - 1] * 3
    assert rng.negative_binomial(3, 1.0, 5).tolist() == [0] * 5
    assert rng.laplace(2, 0, 4).tolist() == rng.gumbel(2, 0, 4).tolist() == rng.logistic(2, 0, 4).tolist() == [2] * 4
    assert rng.lognormal(0, 0, 4).tolist() == [1] * 4
    tiny = ta.to_numpy(rng.beta(1e-4, 3e-4, 4000))
    assert ((tiny >= 0) & (tiny <= 1)).all()
    assert abs((tiny > 0.5).mean() - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 4000)
    assert rng.multinomial(7, [1.0]).tolist() == [7]
    assert rng.multinomial(0, [0.5, 0.5]).tolist() == [0, 0]
    assert rng.multinomial(9, [0.5, 0.5, 0.7])[2].item() == 0
    assert rng.standard_cauchy((0, 3)).shape == rng.zipf(2, (0, 3)).shape == (0, 3)
    assert rng.hypergeometric([0, 7], [0, 0], [0, 3]).tolist() == [0, 3]
    assert rng.logseries(0, 4).tolist() == rng.zipf(1e300, 4).tolist() == [1] * 4
    assert ta.max(rng.zipf(1 + 1e-9, 50)).item() <= 2**62
    assert rng.multivariate_hypergeometric([3, 0, 4], 7).tolist() == [3, 0, 4]


@pytest.mark.parametrize("name", CASES)
def test_shapes_parameters_and_targets(name):
    given, counts = CASES[name][0], name in COUNTS
    vector = name in VECTORS
    draw = getattr(default_rng(7), name)(**given, size=(2, 3))
    tail = draw.shape[2:]
    assert draw.shape == (2, 3, *tail)
    assert len(tail) == vector
    assert draw.dtype == ("int64" if counts else "float32")
    assert getattr(default_rng(7), name)(**given).shape == tail
    assert getattr(default_rng(7), name)(**given, size=(2, 3)).tolist() == draw.tolist()
    target = ta.zeros((*tail, 3, 2), dtype=draw.dtype).mT if not tail else ta.zeros((3, 2, *tail), dtype=draw.dtype)
    target = target if not tail else ta.permute_dims(target, (1, 0, 2))
    assert getattr(default_rng(7), name)(**given, out=target) is target
    assert target.tolist() == draw.tolist()
    narrow = getattr(default_rng(7), name)(**given, size=(2, 3), dtype="int16" if counts else "bfloat16")
    assert narrow.tolist() == draw.astype(narrow.dtype).tolist()
    if given and not vector:
        arrays = {key: np.full((2, 1), value) for key, value in given.items()}
        broadcast = ta.to_numpy(getattr(default_rng(7), name)(**arrays, size=(2, 3)))
        np.testing.assert_allclose(broadcast, ta.to_numpy(draw), rtol=1e-5)
    with pytest.raises(DTypeError, match=f"{name}: expected one of .*, got complex64"):
        getattr(default_rng(7), name)(**given, dtype="complex64")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g: g.beta(0, 1), ParameterError, "beta: expected a > 0, got 0.0; write a number above 0"),
        (lambda g: g.beta(1, math.nan), ParameterError, "beta: expected b > 0, got nan"),
        (lambda g: g.chisquare(-1), ParameterError, "chisquare: expected df > 0, got -1.0"),
        (lambda g: g.standard_t([-1.0, 1]), ParameterError, r"standard_t: expected 0 <= shape <= .*got Array\("),
        (lambda g: g.geometric(0), ParameterError, "geometric: expected 0 < p <= 1, got 0.0"),
        (lambda g: g.geometric(1.5), ParameterError, "geometric: expected 0 < p <= 1, got 1.5"),
        (lambda g: g.negative_binomial(1, 0), ParameterError, "negative_binomial: expected 0 < p <= 1, got 0.0"),
        (lambda g: g.laplace(0, -1), ParameterError, "laplace: expected scale >= 0, got -1.0"),
        (lambda g: g.noncentral_chisquare(1, -1), ParameterError, "noncentral_chisquare: expected nonc >= 0, got -1.0"),
        (lambda g: g.noncentral_f(1, 1, -1), ParameterError, "noncentral_f: expected nonc >= 0, got -1.0"),
        (lambda g: g.triangular(1, 0, 2), ParameterError, "triangular: expected left <= mode <= right and left < ri"),
        (lambda g: g.triangular(1, 1, 1), ParameterError, "triangular: expected left <= mode <= right and left < ri"),
        (lambda g: g.dirichlet([[1.0]]), ShapeError, r"dirichlet: expected alpha of one axis, got shape \(1, 1\)"),
        (lambda g: g.dirichlet([1.0, -1]), ParameterError, "dirichlet: expected alpha >= 0"),
        (lambda g: g.multinomial(3, [0.9, 0.9, 0.1]), ParameterError, "multinomial: expected pvals >= 0 with a sum of"),
        (lambda g: g.multinomial(3, [-0.1, 0.9]), ParameterError, "multinomial: expected pvals >= 0 with a sum of"),
        (lambda g: g.multinomial(3, 0.5), ShapeError, r"multinomial: expected pvals of shape \(..., k\), got \(\)"),
        (lambda g: g.zipf([2.0, 1.0]), ParameterError, "zipf: expected a > 1, got "),
        (lambda g: g.logseries(1), ParameterError, "logseries: expected 0 <= p < 1, got 1"),
        (lambda g: g.vonmises(0, -1), ParameterError, "vonmises: expected 0 <= kappa < inf, got -1"),
        (lambda g: g.vonmises(0, [math.nan]), ParameterError, "vonmises: expected 0 <= kappa < inf"),
        (lambda g: g.hypergeometric(3, 4, 8), ParameterError, "hypergeometric: expected ngood and nbad within"),
        (lambda g: g.hypergeometric(3.0, 4, 2), DTypeError, r"expected ngood as integers, got 3.0; write int\(ngood\)"),
        (
            lambda g: g.multivariate_hypergeometric([3], 4),
            ParameterError,
            "multivariate_hypergeometric: expected colors >=",
        ),
        (lambda g: g.multivariate_hypergeometric([-3, 9], 4), ParameterError, "expected colors >= 0, and nsample from"),
        (lambda g: g.multivariate_hypergeometric(3, 4), ShapeError, r"expected colors of shape \(k,\), got \(\)"),
        (lambda g: g.multivariate_normal([0], [1.0]), ShapeError, r"expected mean of shape \(k,\) and cov of shape"),
        (
            lambda g: g.multivariate_normal([0], [[1.0]], method="qr"),
            ParameterError,
            r"expected method in \('svd', 'eigh', 'cholesky'\), got 'qr'; write method='svd'",
        ),
    ],
)
def test_wrong_parameters(call, error, message):
    with pytest.raises(error, match=message):
        call(default_rng(8))
