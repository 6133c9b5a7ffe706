"""Gradients of functions that sort or search: elements take their cotangents with them, and places have none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.oracles.derivatives import checked

import tilearray as ta

RNG = np.random.default_rng(17)
X = RNG.standard_normal((4, 5))
PLACES, VALUES = np.array([-1.5, -0.5, 0.25, 1.0]), RNG.standard_normal(4)
HOLES = np.where(RNG.random((4, 5)) < 0.2, np.nan, 0.0)


def holed(x: Any) -> Any:
    return x + ta.asarray(HOLES)


FUNCTIONS: dict[str, Any] = {
    "sort": lambda x: ta.sort(x) * ta.arange(5),
    "sort of columns": lambda x: ta.sort(x, axis=0, descending=True) ** 2,
    "sort of all": lambda x: ta.sort(x, axis=None) * ta.arange(20),
    "sorted method": lambda x: ta.sort(x * x).T @ x,
    "partition": lambda x: ta.partition(x, 2, axis=1)[:, :2] ** 2,
    "top_k": lambda x: ta.top_k(x, 3, axis=1).values * ta.arange(3) + ta.top_k(x, 1, largest=False).values,
    "median": lambda x: ta.median(x, axis=1) * ta.median(x) + ta.median(x, axis=0, keepdims=True)[0, 0],
    "quantile": lambda x: ta.quantile(x, [0.1, 0.35, 1.0], axis=1) ** 2 + ta.quantile(x, 0.5, axis=0)[:4],
    "quantile methods": lambda x: ta.stack([ta.quantile(x, 0.3, axis=0, method=name) for name in METHODS]) ** 2,
    "percentile": lambda x: ta.percentile(x, 30, axis=0) ** 2,
    "nanmedian": lambda x: ta.nanmedian(holed(x), axis=1) ** 2,
    "nanquantile": lambda x: ta.nanquantile(holed(x), [0.2, 0.75], axis=0) * ta.nanpercentile(holed(x), 40),
    "nansum": lambda x: ta.nansum(holed(x), axis=0) * ta.nanmax(holed(x)) + ta.nanvar(holed(x), axis=0),
    "argsort": lambda x: x * ta.argsort(x, axis=0) + ta.take_along_axis(x, ta.argsort(x), axis=1),
    "searchsorted": lambda x: x * ta.searchsorted(ta.asarray(PLACES), x) + ta.searchsorted(x[0], 0.5),
    "digitized": lambda x: x * ta.isin(x, x[0]) + ta.sum(x[ta.nonzero(x > 0)]),
    "argmax": lambda x: x[ta.arange(4), ta.argmax(x, axis=1)] * x[ta.argmin(x, axis=0)[0]][:4],
    "covariance": lambda x: ta.cov(x) @ ta.cov(x, bias=True, aweights=[1, 2, 3, 4, 5]),
    "correlations": lambda x: ta.corrcoef(x) * ta.arange(4),
    "interp at": lambda x: ta.interp(x, PLACES, VALUES) * x,
    "interp beyond": lambda x: ta.interp(x, PLACES, VALUES, left=3, right=-2) * x,
    "interp of": lambda x: ta.interp([-2.0, -0.75, 0.1, 0.3, 2.0], PLACES, x[:, 1]) ** 2,
    "interp between": lambda x: ta.interp([0.1, 0.6], ta.cumulative_sum(x[0] ** 2), x[1]) ** 2,
    "interp around": lambda x: ta.interp(x, PLACES, x[:, 2], period=3.5) ** 2,
    "convolve": lambda x: ta.convolve(x[0], x[1, :3]) ** 2,
    "convolutions": lambda x: ta.convolve(x[0], x[1, :3], "valid") * ta.convolve(x[2, :3], x[3, :2], "same"),
    "correlate": lambda x: ta.correlate(x[0], x[1, :3], "full") * ta.correlate(x[2, :3], x[0], "full"),
    "gradient": lambda x: ta.gradient(x, axis=1) ** 2 + ta.gradient(x, 0.5, axis=0, edge_order=2),
    "gradient at": lambda x: ta.gradient(x, np.array([0.0, 1.0, 3.0, 4.0, 4.5]), axis=1) ** 2,
    "unwrap": lambda x: ta.unwrap(x * 5, axis=1) ** 2,
    "ediff1d": lambda x: ta.ediff1d(x, to_end=3.0) ** 2,
    "insert": lambda x: ta.insert(x, 1, x[:, 2], axis=1) ** 2,
    "delete": lambda x: ta.delete(x, [0, 2], axis=1) ** 2,
}  # fmt: skip
METHODS = ("linear", "lower", "higher", "nearest", "hazen", "weibull", "median_unbiased", "inverted_cdf")
OF_COMPLEX: dict[str, Any] = {
    "convolve": lambda z: ta.convolve(z[0], z[1, :3]) ** 2,
    "correlate": lambda z: ta.correlate(z[0], z[1, :3], "same") * ta.correlate(z[2, :3], z[0], "same"),
    "covariance": lambda z: ta.cov(z) ** 2,
    "interp of": lambda z: ta.interp([-2.0, -0.75, 0.1, 0.3, 2.0], PLACES, z[:, 1]) ** 2,
    "gradient": lambda z: ta.gradient(z, axis=1) ** 2,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_the_differences_of_results(name: str):
    checked(FUNCTIONS[name], X)


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_gradients_of_complex_arrays_are_those_of_real_and_imaginary_parts(name: str):
    checked(OF_COMPLEX[name], X + 1j * RNG.standard_normal(X.shape))


@pytest.mark.parametrize("name", ["sort", "median", "quantile", "interp at", "interp of", "convolve", "covariance"])
def test_gradients_of_gradients_are_the_differences_of_gradients(name: str):
    checked(lambda x: ta.grad(lambda x: ta.sum(ta.sin(FUNCTIONS[name](x))))(x), X)


def test_equal_elements_keep_their_order():
    x = ta.asarray([2.0, 1.0, 2.0, 1.0])
    for descending, expected in ((False, [2.0, 0.0, 3.0, 1.0]), (True, [0.0, 2.0, 1.0, 3.0])):
        gradient = ta.grad(lambda x, down=descending: ta.sum(ta.sort(x, descending=down) * ta.arange(4)))(x)
        assert gradient.tolist() == expected
    assert ta.grad(lambda x: ta.median(x))(x).tolist() == [0.5, 0.0, 0.0, 0.5]


def test_nan_has_its_cotangent_in_the_last_place():
    x = ta.asarray([np.nan, 2.0, 1.0])
    assert ta.grad(lambda x: ta.sum(ta.sort(x)[:2] * ta.asarray([3.0, 5.0])))(x).tolist() == [0.0, 5.0, 3.0]


def test_long_rows_and_other_dtypes():
    x = RNG.permutation(100_000).astype(np.float32)
    found = ta.grad(lambda x: ta.sum(ta.top_k(x, 3).values * ta.asarray([1.0, 2.0, 4.0])))(ta.asarray(x))
    assert ta.to_numpy(found)[np.argsort(-x)[:4]].tolist() == [1.0, 2.0, 4.0, 0.0]
    assert ta.sum(found).item() == 7.0
    half = ta.asarray([3.0, 1.0, 2.0], dtype="bfloat16")
    found = ta.grad(lambda x: ta.sum(ta.sort(x) * ta.arange(3)))(half)
    assert found.dtype == ta.bfloat16
    assert found.tolist() == [2.0, 0.0, 1.0]
