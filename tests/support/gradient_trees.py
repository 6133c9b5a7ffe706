"""Random programs with derivatives, for tilearray and for torch.

`grow` builds a program of steps over two or three arguments while it runs it with NumPy's shapes; `run` plays it with
either library. The loss is the sum of the last values, with weights. Values stay near 1, so that a comparison of
gradients has a tolerance. `exact` programs use only operations that are rounded the same way on every device.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tilearray as ta

Pair = tuple[Callable[..., Any], Callable[..., Any]]
"""An operation of tilearray, and of torch's tensors."""


def _torch(name: str, *args: Any, **kwargs: Any) -> Any:
    import torch

    return getattr(torch, name)(*args, **kwargs)


def _same(function: Callable[..., Any]) -> Pair:
    return function, function


ONE: dict[str, Pair] = {
    "tanh": (lambda x: ta.tanh(x), lambda x: x.tanh()),
    "sin": (lambda x: ta.sin(x), lambda x: x.sin()),
    "exp": (lambda x: ta.exp(ta.minimum(x, 1.0)), lambda x: x.clamp(max=1.0).exp()),
    "log": (lambda x: ta.log(x * x + 1), lambda x: (x * x + 1).log()),
    "sqrt": (lambda x: ta.sqrt(x * x + 0.5), lambda x: (x * x + 0.5).sqrt()),
    "atan": (lambda x: ta.atan(x), lambda x: x.atan()),
    "erf": (lambda x: ta.erf(x), lambda x: x.erf()),
    "expm1": (lambda x: ta.expm1(ta.minimum(x, 1.0)), lambda x: x.clamp(max=1.0).expm1()),
    "power": (lambda x: (x * x + 0.5) ** 1.5, lambda x: (x * x + 0.5) ** 1.5),
    "softmax": (lambda x: ta.softmax(x, axis=-1), lambda x: x.softmax(-1)),
    "logsumexp": (lambda x: ta.logsumexp(x, axis=0), lambda x: x.logsumexp(0)),
    "std": (lambda x: ta.std(x, axis=-1, keepdims=True), lambda x: x.std(-1, correction=0, keepdim=True)),
    "norm": (lambda x: ta.linalg.vector_norm(x, axis=-1), lambda x: x.norm(dim=-1)),
    "cumprod": (lambda x: ta.cumulative_prod(ta.sin(x), axis=-1), lambda x: x.sin().cumprod(-1)),
    "gram": (lambda x: ta.tanh(x @ ta.matrix_transpose(x)), lambda x: (x @ x.mT).tanh()),
}
EXACT_ONE: dict[str, Pair] = {
    "square": (lambda x: ta.square(ta.clip(x, -2.0, 2.0)), lambda x: x.clamp(-2.0, 2.0).square()),
    "half": _same(lambda x: x * 0.5),
    "minus": _same(lambda x: 1 - x),
    "abs": _same(lambda x: abs(x)),
    "clip": (lambda x: ta.clip(x, -0.75, 1.25), lambda x: x.clamp(-0.75, 1.25)),
    "inverse": _same(lambda x: 1 / (x * x + 1)),
    "single": (lambda x: x.astype("float32").astype(x.dtype), lambda x: x.float().to(x.dtype)),
    "T": _same(lambda x: x.mT),
    "tail": _same(lambda x: x[1:]),
    "last": _same(lambda x: x[..., 1:]),
    "even": _same(lambda x: x[..., ::2]),
    "row": _same(lambda x: x[:1] * 2),
    "column": _same(lambda x: x[..., :1] * 2),
    "flip": (lambda x: ta.flip(x, axis=-1), lambda x: x.flip(-1)),
    "turned": (lambda x: x[::-1] * 1.5, lambda x: x.flip(0) * 1.5),
    "new": _same(lambda x: x[:, None] * x[None]),
    "wide": (lambda x: ta.broadcast_to(x[:1], x.shape), lambda x: x[:1].expand(x.shape)),
    "diagonal": (lambda x: ta.diagonal(x)[None] * 2, lambda x: x.diagonal(dim1=0, dim2=1).movedim(-1, -1)[None] * 2),
    "flat": (lambda x: ta.reshape(x, (1, -1)), lambda x: x.reshape(1, -1)),
    "rows": (lambda x: x[[0, -1, 0]], lambda x: x[[0, -1, 0]]),
    "taken": (lambda x: ta.take(x, [0, 0, -1], axis=1), lambda x: x[:, [0, 0, -1]]),
    "sum": (lambda x: ta.sum(x, axis=0, keepdims=True) * 0.25, lambda x: x.sum(0, keepdim=True) * 0.25),
    "mean": (lambda x: ta.mean(x, axis=-1, keepdims=True), lambda x: x.mean(-1, keepdim=True)),
    "amax": (lambda x: ta.max(x, axis=0, keepdims=True), lambda x: x.amax(0, keepdim=True)),
    "amin": (lambda x: ta.min(x, axis=-1, keepdims=True), lambda x: x.amin(-1, keepdim=True)),
    "cumsum": (lambda x: ta.cumulative_sum(x, axis=0) * 0.5, lambda x: x.cumsum(0) * 0.5),
    "var": (lambda x: ta.var(x, axis=0, keepdims=True), lambda x: x.var(0, correction=0, keepdim=True)),
    "repeat": (lambda x: ta.concat([x, x * 0.5], axis=0), lambda x: _torch("cat", [x, x * 0.5], 0)),
    "stack": (lambda x: ta.reshape(ta.stack([x, -x], axis=1), (-1, x.shape[-1])),
              lambda x: _torch("stack", [x, -x], 1).reshape(-1, x.shape[-1])),
    "roll": (lambda x: ta.roll(x, 1, axis=0), lambda x: x.roll(1, 0)),
    "tril": (lambda x: ta.tril(x), lambda x: x.tril()),
}  # fmt: skip
TWO: dict[str, Pair] = {
    "hypot": (lambda x, y: ta.hypot(x, y * y + 1), lambda x, y: _torch("hypot", x, y * y + 1)),
    "atan2": (lambda x, y: ta.atan2(x, y * y + 1), lambda x, y: _torch("atan2", x, y * y + 1)),
    "logaddexp": (lambda x, y: ta.logaddexp(x, y), lambda x, y: _torch("logaddexp", x, y)),
    "gate": (lambda x, y: x * ta.tanh(y), lambda x, y: x * y.tanh()),
}
EXACT_TWO: dict[str, Pair] = {
    "add": _same(lambda x, y: (x + y) * 0.5),
    "subtract": _same(lambda x, y: x - y * 0.5),
    "multiply": (lambda x, y: ta.clip(x, -2, 2) * ta.clip(y, -2, 2), lambda x, y: x.clamp(-2, 2) * y.clamp(-2, 2)),
    "divide": _same(lambda x, y: x / (y * y + 1)),
    "where": (lambda x, y: ta.where(x > y, x, y * 0.5), lambda x, y: _torch("where", x > y, x, y * 0.5)),
    "maximum": (lambda x, y: ta.maximum(x, y * 0.75), lambda x, y: _torch("maximum", x, y * 0.75)),
    "minimum": (lambda x, y: ta.minimum(x, y * 0.75), lambda x, y: _torch("minimum", x, y * 0.75)),
}


class Program(NamedTuple):
    """A program: its arguments, its steps (a name, and the places of one or two values), and weights of the results."""

    arguments: list[np.ndarray]
    steps: list[tuple[str, tuple[int, ...]]]
    weights: list[np.ndarray]

    def loss(self, library: int, *arguments: Any) -> Any:
        """Run the program, with tilearray (0) or torch (1), and return its loss."""
        values = self.values(library, arguments)[-len(self.weights) :]
        total: Any = 0.0
        for value, weights in zip(values, self.weights, strict=True):
            w = ta.asarray(weights, device=place_of(value)) if library == 0 else _torch("as_tensor", weights).to(value)
            total = total + (value * w.astype(value.dtype) if library == 0 else value * w).sum()
        return total

    def values(self, library: int, arguments: Any) -> list[Any]:
        """Return the arguments and the result of each step."""
        values = list(arguments)
        for name, places in self.steps:
            table = ALL[name]
            values.append(table[library](*[values[place] for place in places]))
        return values


def place_of(x: Any) -> Any:
    """The device of an array, below the levels at which it is differentiated."""
    device = x.device
    return device if device.functions is None else device.functions.place


ALL: dict[str, Pair] = {**ONE, **EXACT_ONE, **TWO, **EXACT_TWO}
SHAPES: list[list[tuple[int, ...]]] = [
    [(3, 4), (3, 4), (4,)],
    [(4, 1), (1, 3), (4, 3)],
    [(2, 5), (5,), ()],
    [(6, 2), (1, 2), (6, 1)],
]
"""Those of the arguments."""
MOST = 200
"""The most elements of a value."""


def grow(seed: int, *, exact: bool = False, steps: int = 8) -> Program:
    """Return a random program, the same for the same seed."""
    choice = random.Random(seed)
    rng = np.random.default_rng(seed)
    shapes = choice.choice(SHAPES)
    arguments = [np.asarray(rng.uniform(-1.5, 1.5, shape)) for shape in shapes]
    ones = [*EXACT_ONE] if exact else [*ONE, *EXACT_ONE]
    twos = [*EXACT_TWO] if exact else [*TWO, *EXACT_TWO]
    program = Program(arguments, [], [])
    values = [ta.asarray(x) for x in arguments]
    while len(program.steps) < steps:
        two = choice.random() < 0.5
        name = choice.choice(twos if two else ones)
        near = [choice.randrange(max(0, len(values) - 4), len(values)) for _ in range(1 + two)]
        if any(values[place].ndim < 2 for place in near[: 1 - two]):
            continue
        try:
            value = ALL[name][0](*[values[place] for place in near])
        except (ValueError, IndexError):
            continue
        if not 0 < value.size <= MOST or not bool(ta.all(ta.isfinite(value))) or float(ta.max(ta.abs(value))) > 50:
            continue
        program.steps.append((name, tuple(near)))
        values.append(value)
    for value in values[-3:]:
        program.weights.append(np.asarray(rng.uniform(-1, 1, value.shape)))
    return program
