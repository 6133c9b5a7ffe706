"""Histograms by weights: the gradient by the weights is that of the sums; elements have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilearray as ta

Histogram = Callable[[Any], Any]


def drawn(seed: int) -> tuple[dict[str, Histogram], np.ndarray]:
    """Histograms of random elements as functions of their weights, and weights."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 60))
    dtype = rng.choice(["float64", "float64", "float32", "int32", "float16"])
    points = [ta.asarray((rng.standard_normal(size) * 3).round(int(rng.integers(3))).astype(dtype)) for _ in range(3)]
    bins: Any = rng.choice([1, 3, 8]) if rng.random() < 0.5 else np.sort(rng.standard_normal(5) * 2)
    span = (-2.0, 3.0) if np.ndim(bins) == 0 and rng.random() < 0.5 else None
    density = bool(rng.random() < 0.5)
    bins = int(bins) if np.ndim(bins) == 0 else bins
    spans = [None if span is None else [span] * count for count in (2, 3)]
    functions: dict[str, Histogram] = {
        "histogram": lambda w: ta.histogram(points[0], bins, span, density, w)[0],
        "histogram2d": lambda w: ta.histogram2d(points[0], points[1], bins, spans[0], density, w)[0],
        "histogramdd": lambda w: ta.histogramdd(ta.stack(points, axis=1), [bins] * 3, spans[1], density, w)[0],
    }
    return functions, rng.uniform(0.5, 2, size).astype(rng.choice(["float64", "float64", "float32"]))


def test_sums_of_weights_are_those_without_a_gradient():
    for seed in range(60):
        functions, weights = drawn(seed)
        w = ta.asarray(weights)
        for name, function in functions.items():
            with np.errstate(all="ignore"):
                plain, (found, _) = function(w), ta.vjp(function, w)
            assert (found.dtype, found.shape) == (plain.dtype, plain.shape)
            tolerance = 1e-12 if plain.dtype == w.dtype == "float64" else 1e-5
            np.testing.assert_allclose(ta.to_numpy(found), ta.to_numpy(plain), tolerance, 1e-12, err_msg=name)


def test_gradients_are_those_of_central_differences():
    checked = 0
    for seed in range(60):
        functions, weights = drawn(seed)
        rng = np.random.default_rng(seed)
        direction = rng.standard_normal(weights.shape)
        for name, function in functions.items():
            with np.errstate(all="ignore"):
                result, pull = ta.vjp(function, ta.asarray(weights))
            if result.dtype != "float64" or weights.dtype != np.float64 or not bool(ta.all(ta.isfinite(result))):
                continue
            g = rng.standard_normal(result.shape)
            steps = [ta.to_numpy(function(ta.asarray(weights + step * direction))) for step in (1e-6, -1e-6)]
            expected = float(((steps[0] - steps[1]) * g).sum() / 2e-6)
            found = float((ta.to_numpy(pull(ta.asarray(g))[0]) * direction).sum())
            assert found == pytest.approx(expected, rel=1e-6, abs=1e-7), (seed, name)
            checked += 1
    assert checked > 30


def test_gradients_are_those_of_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    places, weights, g = rng.integers(0, 7, 40), rng.standard_normal(40), rng.standard_normal(7)
    theirs = torch.tensor(weights, requires_grad=True)
    torch.zeros(7, dtype=torch.float64).index_add(0, torch.tensor(places), theirs).backward(torch.tensor(g))
    for function in (
        lambda w: ta.bincount(ta.asarray(places), w, 7),
        lambda w: ta.histogram(ta.asarray(places), 7, (-0.5, 6.5), weights=w)[0],
    ):
        _, pull = ta.vjp(function, ta.asarray(weights))
        np.testing.assert_array_equal(ta.to_numpy(pull(ta.asarray(g))[0]), theirs.grad.numpy())


def test_second_derivatives_of_a_density():
    points = ta.asarray([0.1, 0.5, 0.6, 0.9], dtype="float64")
    weights = ta.asarray([1.0, 2.0, 3.0, 4.0], dtype="float64")

    def total(w: Any) -> Any:
        return ta.sum(ta.histogram(points, 2, (0.0, 1.0), True, w)[0] ** 2)

    def squared(w: Any) -> Any:
        return ta.sum(ta.grad(total)(w) ** 2)

    found, step = ta.to_numpy(ta.grad(squared)(weights)), 1e-6
    for place in range(4):
        moved = [np.array([1.0, 2.0, 3.0, 4.0]) for _ in range(2)]
        moved[0][place] += step
        moved[1][place] -= step
        high, low = (squared(ta.asarray(each)).item() for each in moved)
        assert found[place] == pytest.approx((high - low) / (2 * step), rel=1e-5)


def test_complex_weights_and_elements_beyond_the_edges():
    points, weights = ta.asarray([0.1, 0.5, 0.6, 0.9, 3.0]), ta.asarray([1.0, 2j, 3.0, 4.0, 1j], dtype="complex128")
    found, pull = ta.vjp(lambda w: ta.histogram(points, [0.0, 0.55, 1.0], weights=w)[0], weights)
    assert found.tolist() == [1 + 2j, 7]
    assert pull(ta.asarray([1.0, 2.0], dtype="complex128"))[0].tolist() == [1, 1, 2, 2, 0]


def test_elements_have_no_gradient():
    weights = ta.ones(4)
    for function in (
        lambda x: ta.histogram(x)[0],
        lambda x: ta.histogram(x, weights=weights)[0],
        lambda x: ta.histogram(x, weights=x)[0],
        lambda x: ta.histogram2d(x, x, weights=x)[0],
        lambda x: ta.histogramdd(x[:, None], weights=x)[0],
    ):
        with pytest.raises(ta.GradientError, match=r"got one that (counts|reads the values)"):
            ta.vjp(function, ta.asarray([0.1, 0.4, 0.5, 0.8]))


def test_weights_of_other_shapes_are_errors():
    for function in (
        lambda w: ta.histogram(ta.ones(3), weights=w),
        lambda w: ta.histogram2d(ta.ones(3), ta.ones(3), weights=w),
        lambda w: ta.histogramdd(ta.ones((3, 2)), weights=w),
    ):
        with pytest.raises(ta.ShapeError, match="weights"):
            ta.vjp(function, ta.ones(4))
