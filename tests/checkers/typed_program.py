"""A program with full annotations. `test_checkers.py` runs pyright and mypy over it, both strict, and runs it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import tilearray as ta
from tilearray.typing import DeviceLike, DTypeLike, Operand, SemanticsName


@dataclass
class Layer:
    """A linear layer: its weights and its bias."""

    weights: ta.Array
    bias: ta.Array

    def __call__(self, x: ta.Array) -> ta.Array:
        return x @ self.weights + self.bias


def softmax(x: ta.Array, axis: int = -1) -> ta.Array:
    powers = ta.exp(x - ta.max(x, axis=axis, keepdims=True))
    return powers / ta.sum(powers, axis=axis, keepdims=True)


def relu(x: ta.Array, slope: float = 0.0) -> ta.Array:
    return ta.where(x > 0, x, slope * x)


def clipped(x: ta.Array, low: Operand, high: Operand) -> ta.Array:
    return ta.minimum(ta.maximum(x, low), high, propagate_nan=False)


def spread(x: ta.Array) -> tuple[ta.Array, ta.Array]:
    centred = x - x.mean()
    return centred, (centred**2).sum() / x.size


def rounded(x: ta.Array, dtype: DTypeLike = "bfloat16") -> ta.Array:
    return x.astype(dtype, rounding="rz")


def parts(x: ta.Array) -> list[ta.Array]:
    mantissa, exponent = ta.frexp(x)
    quotient, rest = divmod(x, 2)
    return [mantissa, exponent, quotient, rest, -x, abs(x), +x, x.T, x[0], x[..., None], x.real]


def bits(x: ta.Array) -> ta.Array:
    return (x & 1) | (x << 2) ^ (~x >> 1)


def compared(x: ta.Array) -> ta.Array:
    same = (x == 1) | (x != 2)
    return same & (x < 3) & (x >= 0) & (x >= 0) & ~(x > 5)


def stepped(x: ta.Array, rate: float, steps: int) -> ta.Array:
    for _ in range(steps):
        x -= rate * (2 * x)
        x *= 1
    return x


def made(shape: tuple[int, ...], device: DeviceLike = "cpu") -> ta.Array:
    return ta.zeros(shape, dtype=ta.float32, device=device) + ta.full(shape, 1.5, dtype="float32", device="cpu")


def under(semantics: SemanticsName, x: ta.Array) -> ta.Array:
    with ta.semantics(semantics):
        return ta.divide(x, 3, rounding="rn") + ta.add(x, 1)


@ta.array_agnostic
def doubled(x: ta.Array) -> ta.Array:
    return 2 * x


def main() -> str:
    x: ta.Array = ta.asarray(np.arange(6.0).reshape(2, 3), device="cpu")
    layer = Layer(ta.ones((3, 2), dtype=np.float64, device="cpu"), ta.asarray([0.5, 1.0], dtype=float, device="cpu"))
    centred, variance = spread(softmax(relu(layer(x))))
    whole = ta.asarray([1, 2, 3], dtype="int32", device="cpu")
    found = [clipped(centred, 0, 1.0), rounded(variance), bits(whole), compared(whole), *parts(x)]
    found += [stepped(x.copy(), 0.1, 2), made((2, 2)), under("torch", x), 1 - x, 2.0 / (x + 1), x**2, 2**whole, x // 2]
    found += [x.sum(0, keepdims=True), x.max(axis=1), x.reshape(3, 2).ravel(), ta.concat([x, x]), ta.logical_not(x)]
    assert isinstance(doubled(np.ones(3)), np.ndarray)
    number: float = float(x[0, 0])
    return f"{len(found)} arrays, {sum(array.size for array in found)} elements, {number}"


if __name__ == "__main__":
    print(main())
