"""Gradients of reductions and scans where they are special: ties, zeros, infinities, one element; against torch."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import tilearray as ta

torch: Any = pytest.importorskip("torch")
INF = float("inf")
ROWS = [
    [1.0, 3.0, 3.0, -1.0],
    [2.0, 2.0, 2.0, 2.0],
    [0.0, -2.0, 5.0, 1.0],
    [0.0, 0.0, 4.0, 1.0],
    [0.0, 0.0, 0.0, -0.0],
    [-1.0, INF, 2.0, INF],
    [-INF, 1.0, -1.0, 2.0],
    [1e308, -1e308, 1.0, 0.5],
]
BOTH: dict[str, tuple[Any, Any]] = {
    "sum": (lambda x: ta.sum(x, axis=1), lambda x: x.sum(1)),
    "mean": (lambda x: ta.mean(x, axis=1), lambda x: x.mean(1)),
    "prod": (lambda x: ta.prod(x, axis=1), lambda x: x.prod(1)),
    "max": (lambda x: ta.max(x, axis=1), lambda x: x.amax(1)),
    "min": (lambda x: ta.min(x, axis=1), lambda x: x.amin(1)),
    "max of all": (lambda x: ta.max(x), lambda x: x.amax()),
    "std": (lambda x: ta.std(x, axis=1), lambda x: x.std(1, correction=0)),
    "var": (lambda x: ta.var(x, axis=1, correction=1), lambda x: x.var(1)),
    "norm": (lambda x: ta.linalg.vector_norm(x, axis=1), lambda x: torch.linalg.vector_norm(x, dim=1)),
    "norm 1": (lambda x: ta.linalg.vector_norm(x, axis=1, ord=1), lambda x: torch.linalg.vector_norm(x, 1, dim=1)),
    "logsumexp": (lambda x: ta.logsumexp(x, axis=1), lambda x: x.logsumexp(1)),
    "softmax": (lambda x: ta.softmax(x, axis=1)[:, 1], lambda x: x.softmax(1)[:, 1]),
    "log_softmax": (lambda x: ta.log_softmax(x, axis=1)[:, 1], lambda x: x.log_softmax(1)[:, 1]),
    "cumsum": (lambda x: ta.cumulative_sum(x, axis=1), lambda x: x.cumsum(1)),
    "cumprod": (lambda x: ta.cumulative_prod(x, axis=1), lambda x: x.cumprod(1)),
    "sqrt": (lambda x: ta.sqrt(x), lambda x: x.sqrt()),
    "one element": (lambda x: ta.max(x[:, :1], axis=1) * ta.prod(x[:, :1], axis=1), lambda x: x[:, 0] * x[:, 0]),
}


@pytest.mark.parametrize("name", BOTH)
def test_gradients_are_torchs_where_torchs_are_finite(name: str):
    mine, theirs = BOTH[name]
    for row in ROWS[:-1] if name in ("std", "var", "norm") else ROWS:  # torch squares 1e308
        x = np.array([row])
        tensor = torch.tensor(x, requires_grad=True)
        theirs(tensor).sum().backward()
        expected = tensor.grad.numpy()
        with np.errstate(all="ignore"):
            found = ta.to_numpy(ta.grad(lambda x: ta.sum(mine(x)))(ta.asarray(x)))
        finite = np.isfinite(expected)
        np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-12, atol=1e-300, err_msg=f"{row}")


def test_elements_that_share_an_extreme_share_its_gradient():
    x = ta.asarray([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    found = ta.to_numpy(ta.grad(lambda x: ta.sum(ta.max(x, axis=1)))(x))
    np.testing.assert_allclose(found, [[0.0, 0.5, 0.5], [1 / 3] * 3], rtol=1e-6)
    first, second = ta.vjp(ta.maximum, x[0], ta.asarray([1.0, 2.0, 4.0]))[1](ta.ones(3))
    assert first.tolist() == [0.5, 1.0, 0.0]
    assert second.tolist() == [0.5, 0.0, 1.0]


def test_arrays_without_elements():
    for function in (
        ta.sum,
        ta.prod,
        lambda x: ta.sum(ta.cumulative_sum(x, axis=1)),
        lambda x: ta.sum(x * x, axis=None),
    ):
        for shape in ((0, 3), (3, 0)):
            found = ta.grad(function)(ta.zeros(shape))
            assert found.shape == shape
    assert ta.grad(lambda x: ta.sum(ta.concat([x, x[:0]]) ** 2))(ta.ones(3)).tolist() == [2.0] * 3
    result, pull = ta.vjp(lambda x: ta.sum(x, axis=0), ta.zeros((0, 3)))
    assert result.tolist() == [0.0] * 3
    assert pull(ta.ones(3))[0].shape == (0, 3)


@pytest.mark.parametrize("function", [ta.std, ta.linalg.vector_norm])
def test_second_derivatives_are_0_where_the_result_is_0(function: Any):
    def slopes(x: Any) -> Any:
        return ta.grad(lambda x: ta.sum(ta.sin(function(x, axis=1)) * x[:, 0]))(x)

    def twice(rows: Any) -> np.ndarray:
        return ta.to_numpy(ta.grad(lambda x: ta.sum(slopes(x) ** 2))(ta.asarray(np.array(rows))))

    found = twice([[0.0, 0.0, 0.0], [1.0, 2.0, 4.0]])
    assert found[0].tolist() == [0.0] * 3
    np.testing.assert_array_equal(found[1:], twice([[1.0, 2.0, 4.0]]))
    assert found[1].all()


@pytest.mark.parametrize("order", [0.5, 0.99, 1.5, 3, -1])
def test_norms_are_flat_at_zeros(order: float):
    norm = partial(ta.linalg.vector_norm, ord=order)
    for row in ([0.0, 0.0, 0.0], [0.0, 1.0, -2.0], [1.0, 2.0, 3.0]):
        x = np.array(row)
        tensor = torch.tensor(x, requires_grad=True)
        torch.linalg.vector_norm(tensor, order).backward()
        value, found = ta.value_and_grad(norm)(ta.asarray(x))
        np.testing.assert_allclose(ta.to_numpy(found), tensor.grad.numpy(), rtol=1e-12)
        assert value.item() == norm(ta.asarray(x)).item()
        twice = ta.grad(lambda x: ta.sum(ta.grad(norm)(x) ** 2))(ta.asarray(x))
        assert ta.all(ta.isfinite(twice))


def test_a_deviation_of_a_part_is_flat_where_it_is_0():
    x, lower = ta.asarray([[1.0, 2.0], [1.0, 4.0]]), ta.asarray([[True, False], [True, True]])
    for function in (partial(ta.std, where=lower), lambda x, axis: ta.nanstd(ta.where(lower, x, ta.nan), axis)):
        slopes = ta.grad(lambda x, function=function: ta.sum(function(x, axis=0)))
        assert slopes(x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
        assert slopes(ta.asarray([[1.0, 2.0], [3.0, 4.0]])).tolist() == [[-0.5, 0.0], [0.5, 0.0]]


@pytest.mark.parametrize("function", [ta.max, ta.min, ta.maximum.reduce, ta.amin, ta.ptp])
def test_the_gradient_of_an_extreme_that_is_nan_is_nan(function: Any):
    rows = ta.asarray([[1.0, np.nan, 3.0], [1.0, 2.0, 3.0]])
    first, second = ta.to_numpy(ta.grad(lambda x: ta.sum(function(x, axis=1)))(rows))
    assert np.isnan(first).all()
    assert not np.isnan(second).any()
    assert not ta.any(ta.grad(lambda x: ta.max(x, initial=9))(rows[1:]))


def test_extremes_that_ignore_nan_have_the_gradient_of_the_other_operand():
    x, y = ta.asarray([np.nan, 1.0, 1.0, 2.0, 2.0]), ta.asarray([1.0, np.nan, 2.0, 1.0, 2.0])
    for function, larger in ((ta.fmax, 1.0), (ta.fmin, 0.0)):
        first, second = ta.vjp(function, x, y)[1](1)
        assert first.tolist() == [0.0, 1.0, 1.0 - larger, larger, 0.5]
        assert second.tolist() == [1.0, 0.0, larger, 1.0 - larger, 0.5]
    assert ta.grad(lambda x: ta.sum(ta.fmax(x, 1.5)))(x).tolist() == [0.0, 0.0, 0.0, 1.0, 1.0]
    found = ta.grad(lambda x: ta.sum(ta.nanmax(x, axis=1)))(ta.asarray([[np.nan, 1.0, 2.0], [np.nan] * 3]))
    assert found.tolist() == [[0.0, 0.0, 1.0], [0.0] * 3]
