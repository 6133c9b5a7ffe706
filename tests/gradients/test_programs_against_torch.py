"""First and second derivatives of random programs of joins, indices, broadcasts, views and writes, against torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilearray as ta

torch: Any = pytest.importorskip("torch")
SHAPE = (3, 4)
WEIGHTS = np.random.default_rng(1).standard_normal(SHAPE)


def written(write: Callable[[Any, Any, Any], None]) -> Callable[[Any, Any], Any]:
    def step(xp: Any, x: Any) -> Any:
        out = x * 1
        write(xp, out, x)
        return out

    return step


def scaled_in_place(xp: Any, out: Any, x: Any) -> None:
    del xp
    row = out.T[1]
    row *= x[:, 0]
    out += x


def moved_in_itself(xp: Any, out: Any, x: Any) -> None:
    del xp, x
    tail = out[1:]
    tail += out[:-1] * 2


STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "repeated rows": lambda xp, x: x[np.array([2, 0, 2])],
    "repeated columns": lambda xp, x: x[:, np.array([3, 3, 0, -1])] * x,
    "repeated elements": lambda xp, x: x + x[np.array([[0], [2], [0]]), np.array([1, 1, 0, 2])],
    "mask": lambda xp, x: x * xp.sum(x[x > 0]),
    "no rows": lambda xp, x: xp.concat([x[1:], x[:0], x[:1]], axis=0) + xp.sum(x[:0], axis=0),
    "concat": lambda xp, x: xp.concat([x[:, 2:], x[:, :1], x[:, :1] * x[:, 1:2]], axis=1),
    "stack": lambda xp, x: xp.sum(xp.stack([x, xp.sin(x), x[:1] * x], axis=2) ** 2, axis=2),
    "broadcast": lambda xp, x: x * x[:, :1] + x[1] / (x[2:, 3:] ** 2 + 1),
    "broadcast_to": lambda xp, x: xp.sum(xp.broadcast_to(x, (2, *SHAPE)) * x[:2, None, :1], axis=0),
    "NaN that where leaves out": lambda xp, x: xp.where(x > 0, xp.log(x), x * 2),
    "tril": lambda xp, x: xp.tril(x) + xp.exp(x / 4),
    "matmul": lambda xp, x: (x @ x.T / 4) @ x,
    "amax": lambda xp, x: x - xp.amax(x, axis=1, keepdims=True) * xp.amin(x, axis=0),
    "prod": lambda xp, x: x + xp.prod(x, axis=1)[:, None] / 4,
    "cumprod": lambda xp, x: xp.cumprod(x, axis=1),
    "logsumexp": lambda xp, x: x + xp.logsumexp(x[:, ::2], 1)[:, None],
    "tanh": lambda xp, x: xp.tanh(x) * 3,
    "slices": written(lambda xp, out, x: out.__setitem__((slice(None), slice(0, None, 2)), x[:, 1::2] * x[:, :1])),
    "rows": written(lambda xp, out, x: out.__setitem__(np.array([0, 2]), x[np.array([1, 1])] * 3)),
    "number": written(lambda xp, out, x: out.__setitem__((1, slice(1, None)), x[0, 0] * x[2, 3])),
    "where": written(lambda xp, out, x: out.__setitem__(x > 0.5, 0.25)),
    "scaled": written(scaled_in_place),
    "moved": written(moved_in_itself),
}


def loss(xp: Any, steps: list[str], weights: Any, x: Any) -> Any:
    for step in steps:
        x = xp.tanh(STEPS[step](xp, x) / 2) * 2
    return xp.sum(x * weights)


def of_torch(steps: list[str], given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, weights = torch.tensor(given, requires_grad=True), torch.tensor(WEIGHTS)
    (first,) = torch.autograd.grad(loss(torch, steps, weights, x), x, create_graph=True)
    (second,) = torch.autograd.grad((torch.sin(first) * weights).sum(), x)
    return first.detach().numpy(), second.numpy()


def of_tilearray(steps: list[str], given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, weights = ta.asarray(given), ta.asarray(WEIGHTS)
    slopes = ta.grad(lambda x: loss(ta, steps, weights, x))
    curves = ta.grad(lambda x: ta.sum(ta.sin(slopes(x)) * weights))
    return ta.to_numpy(slopes(x)), ta.to_numpy(curves(x))


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int):
    rng = np.random.default_rng(seed)
    steps = [str(step) for step in rng.choice(list(STEPS), 4)]
    given = rng.standard_normal(SHAPE)
    for found, expected in zip(of_tilearray(steps, given), of_torch(steps, given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10, equal_nan=False, err_msg=", ".join(steps))


@pytest.mark.parametrize("step", STEPS)
def test_each_step(step: str):
    given = np.random.default_rng(5).standard_normal(SHAPE)
    for found, expected in zip(of_tilearray([step], given), of_torch([step], given), strict=True):
        assert found.any()
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12, equal_nan=False)
