"""Distributions that only NumPy has: an error gives an expression that draws from the same distribution."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import tilearray as ta
from tilearray.random.missing_distributions import BY_FORMULA, BY_NUMPY, INSTEAD

PARAMETERS = {
    "beta": {"a": 2.0, "b": 3.0},
    "chisquare": {"df": 3.0},
    "dirichlet": {"alpha": [0.5, 2.0, 1.0]},
    "f": {"dfnum": 4.0, "dfden": 7.0},
    "geometric": {"p": 0.3},
    "gumbel": {"loc": 1.0, "scale": 2.0},
    "laplace": {"loc": 1.0, "scale": 2.0},
    "logistic": {"loc": 1.0, "scale": 2.0},
    "lognormal": {"mean": 0.5, "sigma": 0.7},
    "multivariate_normal": {"mean": [1.0, -2.0], "cov": [[2.0, 0.5], [0.5, 1.0]]},
    "negative_binomial": {"n": 5, "p": 0.4},
    "pareto": {"a": 4.0},
    "power": {"a": 3.0},
    "rayleigh": {"scale": 2.0},
    "standard_cauchy": {},
    "standard_t": {"df": 5.0},
    "weibull": {"a": 1.5},
}
SIZE = 20_000


@pytest.mark.parametrize("name", INSTEAD)
def test_a_missing_distribution_says_what_to_write(name):
    rng = ta.random.default_rng(0)
    with pytest.raises(AttributeError, match=f"^Generator has no attribute '{name}'; {re.escape(INSTEAD[name])}$"):
        getattr(rng, name)
    assert not hasattr(rng, name)
    assert name not in dir(rng)
    with pytest.raises(AttributeError, match=f"module 'tilearray.random' has no attribute '{name}'; write "):
        getattr(ta.random, name)


@pytest.mark.parametrize("name", BY_FORMULA)
def test_the_expression_draws_from_the_distribution(name):
    """Two samples of one distribution: the largest distance of their distribution functions (Kolmogorov, Smirnov)."""
    given = PARAMETERS[name]
    theirs = getattr(np.random.default_rng(1), name)(**given, size=SIZE)
    arrays = {key: ta.asarray(value) if isinstance(value, list) else value for key, value in given.items()}
    names = {"ta": ta, "math": math, "rng": ta.random.default_rng(2), "size": SIZE, **arrays}
    ours = ta.to_numpy(eval(BY_FORMULA[name], names))
    assert ours.shape == theirs.shape
    for mine, other in zip(ours.reshape(SIZE, -1).T, theirs.reshape(SIZE, -1).T):
        places = np.concatenate([mine, other])
        shares = [np.searchsorted(np.sort(drawn), places, "right") / SIZE for drawn in (mine, other)]
        assert np.abs(shares[0] - shares[1]).max() < 1.95 * math.sqrt(2 / SIZE)  # chance: 0.001
    if name == "multivariate_normal":
        assert np.allclose(np.cov(ours.T), given["cov"], atol=0.1)


def test_every_method_of_numpys_generator_is_here_or_says_what_to_write():
    assert all(hasattr(np.random.Generator, name) for name in BY_NUMPY)
    theirs = {name for name in dir(np.random.Generator) if not name.startswith("_")}
    assert not theirs - set(dir(ta.random.Generator)) - INSTEAD.keys()
