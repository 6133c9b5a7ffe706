"""Random fused reductions of arrays that are large enough for many lanes and several segments."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import tilearray as ta
from support.trees import bits, outcome

SHAPES = [(3, 5000), (5000, 3), (70, 130), (1, 9000), (600, 40), (2, 3, 700), (40, 9, 11), (6000,), (300, 128), (17, 1)]
DTYPES = ["float32", "float32", "float64", "float16", "bfloat16", "int32", "uint8", "complex64", "bool"]
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda x: x,
    "transposed": lambda x: x.T.copy().T,
    "back": lambda x: x[..., ::-1],
    "turned": lambda x: x[::-1],
    "gaps": lambda x: ta.concat([x, x], axis=-1)[..., : 2 * x.shape[-1] : 2],
    "row": lambda x: x[:1],
    "column": lambda x: x[..., :1],
}
JOIN: list[Callable[..., Any]] = [
    lambda x, y: x * y,
    lambda x, y: x + y,
    lambda x, y: ta.where(ta.astype(x, "bool"), x, y),
    lambda x, y: (x + 1) * y,
    lambda x, y: ta.abs(x * 0.5),
    lambda x, y: (x + y)[..., ::-1],
    lambda x, y: (x * y)[::-1],
    lambda x, y: (x + y).T,
    lambda x, y: ta.exp(ta.real(x)) * 2.5,
]
NAMES = ["sum", "sum", "mean", "prod", "max", "min", "any", "all", "count_nonzero", "var", "std", "argmax"]
AFTER: list[Callable[..., Any]] = [
    lambda r, x: r,
    lambda r, x: (r, r * 2),
    lambda r, x: ta.sqrt(ta.abs(r)) + 1,
    lambda r, x: (x, r),
]
ROWS: list[Callable[..., Any]] = [
    lambda x: (x - ta.mean(x, axis=-1, keepdims=True)) / ta.sqrt(ta.var(x, axis=-1, keepdims=True) + 1e-5),
    lambda x: x * (1 / ta.sqrt(ta.mean(x * x, axis=-1, keepdims=True) + 1e-6)),
    lambda x: (
        ta.astype(ta.round(x / ta.max(ta.abs(x), axis=-1, keepdims=True) * 127), "int8"),
        ta.max(ta.abs(x), axis=-1),
    ),
    lambda x: ta.softmax(x * 0.5, axis=-1),
    lambda x: ta.log_softmax(x, axis=-1) + 1,
    lambda x: ta.softmax(x, axis=0),
    lambda x: x - ta.sum(x, axis=0),
    lambda x: ta.sum(ta.abs(x - ta.mean(x)), axis=-1),
    lambda x: (ta.sum(x, axis=-1), ta.max(x, axis=-1), x * 2),
    lambda x: x / ta.sum(x, axis=-1)[..., None],
    lambda x: ta.logsumexp(x * 3, axis=-1, keepdims=True) - x,
]


def program(rng: random.Random) -> tuple[Callable[..., Any], list[Any]]:
    """Return a function of two arrays with a reduction, and the two arrays as (values, layout)."""
    shape = rng.choice(SHAPES)
    arrays = [_array(rng, shape, rng.choice(["plain", "plain", *LAYOUTS])) for _ in range(2)]
    if rng.random() < 0.4:
        function = rng.choice(ROWS)
        values = arrays[0][0]
        arrays[0] = (values if values.dtype.kind == "f" else values.real.astype("f4"), arrays[0][1])
        return (lambda x, y: function(x)), arrays
    join, name, after = rng.choice(JOIN), rng.choice(NAMES), rng.choice(AFTER)
    axes = [None, 0, -1, -1] + [(0, -1)] * (len(shape) > 1 and name != "argmax")
    options = {"axis": rng.choice(axes), "keepdims": rng.random() < 0.5}

    def run(x: Any, y: Any) -> Any:
        joined = join(x, y)
        return after(getattr(ta, name)(joined, **options), joined)

    return run, arrays


def _array(rng: random.Random, shape: tuple[int, ...], layout: str) -> tuple[np.ndarray, str]:
    dtype = rng.choice(DTYPES)
    values = np.random.default_rng(rng.randrange(1 << 30)).normal(size=shape) * rng.choice([1, 1, 100])
    values = values + 1j * values[..., ::-1] if dtype == "complex64" else values
    with np.errstate(all="ignore"):
        found = ta.to_numpy(ta.asarray(np.abs(values) if dtype == "uint8" else values).astype(dtype))
    return found, layout


def check_reduced(seed: int, device: Any = "cpu", eagerly_on: Any = None) -> str:
    """Compare a random fused reduction with the same function without fusion, on another device where one is given."""
    function, arrays = program(random.Random(seed))
    eager, given = (
        [LAYOUTS[layout](ta.asarray(values, device=each)) for values, layout in arrays]
        for each in (device if eagerly_on is None else eagerly_on, device)
    )
    expected, found = outcome(lambda: function(*eager)), outcome(lambda: ta.fuse(function)(*given))
    if isinstance(expected, Exception) or isinstance(found, Exception):
        assert type(found) is type(expected), (seed, expected, found)
        return "error"
    for one, other in zip(*[each if isinstance(each, tuple) else (each,) for each in (expected, found)], strict=True):
        assert bits(one) == bits(other), (seed, one, other)
    return "equal"


# --- reductions of numbers ------------------------------------------------------------------------------------------

OF_NUMBERS: list[Callable[[Any], Any]] = [
    lambda x: ta.any(ta.zeros_like(x), axis=-1),
    lambda x: ta.sum(ta.ones_like(x) * 2.5, axis=0),
    lambda x: ta.sum(ta.full_like(x, 3)),
    lambda x: ta.var(ta.full_like(x, 3), axis=-1, keepdims=True) + x,
    lambda x: ta.softmax(ta.zeros_like(x), axis=-1),
    lambda x: ta.zeros_like(x) - ta.max(ta.zeros_like(x), axis=0),
    lambda x: ta.argmax(ta.zeros_like(x), axis=-1),
]
"""Functions that reduce elements which are one number, so most of them read no array."""


def check_numbers(device: Any) -> None:
    """Compare fused reductions of a number with those of the host."""
    for shape in ((3, 5), (40, 300), (2, 3, 4000)):
        x = ta.ones(shape, device="cpu")
        for place, function in enumerate(OF_NUMBERS):
            assert bits(ta.fuse(function)(x.to_device(device))) == bits(function(x)), (place, shape)


# --- functions of rows -----------------------------------------------------------------------------------------------

ROW_SHAPES = [(5, 70), (70, 5), (3, 300), (2, 3, 40), (1, 9), (40, 1), (3, 2000)]
ROW_DTYPES = ["float32", "float32", "float64", "bfloat16"]


def rows_program(rng: random.Random) -> Callable[..., Any]:
    """Return a function of an array and a row, with several reductions along the same axes, most of them."""
    axes = rng.choice([-1, -1, -1, 0])
    kinds = [rng.choice(["sum", "mean", "max", "min", "var", "std", "any"]) for _ in range(rng.randint(1, 4))]
    steps = [(rng.randrange(8), kind, rng.random() < 0.9, rng.random() < 0.3) for kind in kinds]
    ends = rng.sample(range(5), rng.randint(1, 3))

    def run(x: Any, row: Any) -> Any:
        values, found = [x], []
        for choice, kind, usual, returned in steps:
            last = values[-1]
            before = [last, x * row, ta.abs(last), last - x, x[..., ::-1] * 2, last * last, ta.exp(-ta.abs(last)), x][
                choice
            ]
            of_rows = getattr(ta, kind)(before, axis=axes if usual else None, keepdims=True)
            found += [of_rows] * returned
            values.append(ta.where(of_rows > 0, before, before - of_rows) * 0.5)
        last = values[-1]
        whole = [
            lambda: last,
            lambda: ta.astype(last * 10, "int8"),
            lambda: ta.sum(last, axis=axes),
            lambda: ta.sqrt(ta.abs(ta.sum(values[0] + last, axis=axes))) + 1,
            lambda: x * 2,
        ]
        return (*found, *[whole[end]() for end in ends])

    return run


def check_rows(seed: int, device: Any) -> str:
    """Compare a random function of rows with itself without fusion, and say how many launches it took."""
    rng = random.Random(seed)
    function, shape, dtype = rows_program(rng), rng.choice(ROW_SHAPES), rng.choice(ROW_DTYPES)
    values = np.random.default_rng(seed)
    x = LAYOUTS[rng.choice(["plain", "plain", "transposed", "back", "turned", "gaps"])](
        ta.asarray(values.normal(size=shape)).astype(dtype).to_device(device)
    )
    row = ta.asarray(values.normal(size=x.shape[-1])).astype(dtype).to_device(device)
    expected = function(x, row)
    before = device.backend.launches
    found = ta.fuse(function)(x, row)
    launches = device.backend.launches - before
    for one, other in zip(expected, found, strict=True):
        assert bits(one) == bits(other), (seed, shape, dtype, one, other)
        assert one.strides == other.strides, seed
    return "one launch" if launches == 1 else "several launches"
