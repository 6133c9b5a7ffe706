"""Random functions that reduce the rows and the columns of arrays, as norms and their gradients do."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import tilearray as ta
from tilearray.engine import reducing
from tilearray.geometry import reduction

SHAPES = [(600, 40), (515, 130), (2, 300, 33), (700, 3), (640, 1), (400, 128), (0, 40), (1, 300), (900, 17), (5, 0)]
DTYPES = ["float32", "float32", "bfloat16", "float16", "float64", "int32"]
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda x: x,
    "back": lambda x: x[..., ::-1],
    "turned": lambda x: x[::-1],
    "gaps": lambda x: ta.concat([x, x], axis=-1)[..., : 2 * x.shape[-1] : 2],
    "fastest first": lambda x: ta.permute_dims(x.copy(), tuple(reversed(range(x.ndim)))),
    "row": lambda x: ta.broadcast_to(x[:1], x.shape),
    "column": lambda x: ta.broadcast_to(x[..., :1], x.shape),
}
ELEMENTS: list[Callable[..., Any]] = [
    lambda x, g, scale, row, mask: x,
    lambda x, g, scale, row, mask: x * g,
    lambda x, g, scale, row, mask: g * scale + row,
    lambda x, g, scale, row, mask: ta.where(mask, x, g),
    lambda x, g, scale, row, mask: x[..., ::-1] - g,
    lambda x, g, scale, row, mask: x[::-1] * scale,
    lambda x, g, scale, row, mask: ta.maximum(x, scale) * row,
    lambda x, g, scale, row, mask: x.astype("float32") + g,
    lambda x, g, scale, row, mask: ta.astype(x.astype("float32"), "bfloat16", rounding="rs", seed=7) * g,
]
OF_ROWS: list[Callable[..., Any]] = [
    lambda e, mask, axis: ta.sum(e, axis=axis, keepdims=True),
    lambda e, mask, axis: ta.mean(e, axis=axis, keepdims=True),
    lambda e, mask, axis: ta.max(e, axis=axis, keepdims=True) if e.shape[axis] else ta.sum(e, axis=axis, keepdims=True),
    lambda e, mask, axis: ta.sum(e * mask, axis=axis, keepdims=True),
    lambda e, mask, axis: ta.sqrt(ta.abs(ta.sum(e * e, axis=axis, keepdims=True))) + 1,
    lambda e, mask, axis: ta.argmax(e, axis=axis, keepdims=True) if e.shape[axis] else mask[..., :1] * 0,
]
RANGES = {"float32": 40, "bfloat16": 20, "float16": 14, "float64": 50, "int32": 20}
"""The logarithm of the largest values of an array, whose sums cancel."""
OF_COLUMNS: list[Callable[..., Any]] = [
    lambda e, axis: ta.sum(e, axis=axis),
    lambda e, axis: ta.sum(e, axis=axis, keepdims=True),
    lambda e, axis: ta.max(e, axis=axis) if e.size else ta.sum(e, axis=axis),
    lambda e, axis: ta.prod(e, axis=axis),
    lambda e, axis: ta.any(e > 1, axis=axis),
    lambda e, axis: ta.sum(e, axis=axis) * 2 + 1,
    lambda e, axis: ta.sum(e, axis=axis, dtype="float64"),
    lambda e, axis: ta.argmax(e, axis=axis[0]) if e.size and len(axis) == 1 else ta.sum(e, axis=axis),
]


def factors(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays. Large products cancel in each column, so the order in which they are added changes the sum."""
    columns, rows = shape[-1], int(np.prod(shape[:-1]))
    x, g = (rng.uniform(0.25, 1, (rows, columns)) * rng.choice([-1, 1], (rows, columns)) for _ in range(2))
    first = rng.permutation(rows)[: rows // 2]
    second = np.setdiff1d(np.arange(rows), first)[: rows // 2]
    g[first] *= 2.0 ** (RANGES[dtype] * rng.integers(0, 2, (len(first), columns)))
    x[second], g[second] = x[first], -g[first] * rng.choice([1, 1, 1 + 2.0 ** -RANGES[dtype]], (len(first), columns))
    return x.reshape(shape), g.reshape(shape)


def drawn(rng: random.Random) -> tuple[Callable[..., Any], Callable[[Any], list[Any]], str]:
    """Return a function, what makes its arguments on a device, and words for both."""
    shape, dtype, layout = rng.choice(SHAPES[:5] + SHAPES), rng.choice(DTYPES), rng.choice(["plain"] * 7 + [*LAYOUTS])
    target, kept = rng.choice(["", "", "", "x", "g", "scale", "out"]), rng.random() < 0.4
    is_transposed, overlaps = layout == "fastest first", not target and rng.random() < 0.2
    along, others = (0, (*range(1, len(shape)),)) if is_transposed else (-1, (*range(len(shape) - 1),))
    elements, statistics = rng.choices(ELEMENTS, k=3), rng.choices(OF_ROWS[:5] * 3 + OF_ROWS, k=2)
    columns = rng.choices(OF_COLUMNS[:2] * 5 + OF_COLUMNS, k=rng.choice([1, 2, 2]))
    reduced = rng.choices(range(4), k=len(columns))
    seed, is_nested = rng.getrandbits(32), rng.random() < 0.5

    def function(x: Any, g: Any, scale: Any, row: Any, mask: Any) -> Any:
        first, second, third = (element(x, g, scale, row, mask) for element in elements)
        statistic = statistics[0](first, mask, along)
        centred = second - statistic
        if is_nested:
            centred = centred * statistics[1](centred * third, mask, along)
        values = centred * first, third, g, x * g
        found = [reduce(values[place], others) for reduce, place in zip(columns, reduced, strict=True)]
        if target == "out":
            ta.multiply(centred.astype(x.dtype), 2, out=x)
        elif target in ("x", "g"):
            (x if target == "x" else g)[...] = centred.astype(x.dtype)
        elif target == "scale":
            scale -= ta.reshape(ta.astype(found[0], scale.dtype), scale.shape)
        return (centred, statistic, *found) if kept else (centred, *found)

    def arguments(device: Any) -> list[Any]:
        values = np.random.default_rng(seed)

        def array(given: Any) -> Any:
            return ta.astype(ta.asarray(given), dtype).to_device(device)

        x, g = map(array, factors(values, (shape[0] + overlaps, *shape[1:]), dtype))
        x, g = (g[1:], g[:-1]) if overlaps else (x, g)
        x, g = LAYOUTS[layout](x), LAYOUTS["plain" if layout in ("row", "column") else layout](g)
        x = x.copy() if target and layout in ("row", "column") else x
        mask = ta.asarray(values.random(shape) < 0.7).to_device(device)
        mask = ta.permute_dims(mask, tuple(reversed(range(x.ndim)))) if is_transposed else mask
        scale = [size if axis == along % x.ndim else 1 for axis, size in enumerate(x.shape)]
        row = [1 if axis == along % x.ndim else size for axis, size in enumerate(x.shape)]
        zeros = [-0.0, 0.5, 1.0, -3.0]
        return [x, g, array(values.choice(zeros, scale)), array(values.choice(zeros, row)), mask]

    told = f"{shape} {dtype} {layout} target={target} overlaps={overlaps} nested={is_nested}"
    return function, arguments, told


class Counted:
    """Counts the programs that walk rows, which small arrays also do meanwhile."""

    def __init__(self) -> None:
        self.count = 0
        self._plain = reducing.walking
        self._limits = reduction.WALKED_PROGRAMS, reduction.WALKED_GAIN

    def _walking(self, *arguments: Any) -> Any:
        found = self._plain(*arguments)
        self.count += found is not None
        return found

    def __enter__(self) -> Counted:
        reducing.walking = self._walking
        reduction.WALKED_PROGRAMS, reduction.WALKED_GAIN = 1, 0
        return self

    def __exit__(self, *error: object) -> None:
        reducing.walking = self._plain
        reduction.WALKED_PROGRAMS, reduction.WALKED_GAIN = self._limits
