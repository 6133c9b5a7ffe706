"""Pointwise functions that are written for Triton, and what NumPy computes for them."""

from __future__ import annotations

import math

import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.libdevice import tanh

import tilearray as ta

SCALE = tl.constexpr(0.75)
INFINITE = tl.constexpr(float("inf"))


@ta.pointwise(promotion=[(0, "int_to_float")])
@triton.jit
def gelu(x):
    """It calls functions that are defined after it."""
    # 0.75 is not the constant of gelu, but exact
    return 0.5 * x * (1 + tanh(SCALE * (x + 0.0625 * power(x))))


@triton.jit
def power(x, count: tl.constexpr = 3):
    y = x
    for _ in range(count - 1):
        y = y * x
    return y


def gelu_of_numpy(x):
    x = x if x.dtype.kind == "f" else x.astype(np.float32)
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    half, one, scale, small = (wide.dtype.type(each) for each in (0.5, 1, 0.75, 0.0625))
    return (half * wide * (one + np.tanh(scale * (wide + small * (wide * wide * wide))))).astype(x.dtype)


@ta.pointwise(is_tensor=[True, True, False], promotion=[(0, 1, "default"), (0, 1, "always_bool")])
@triton.jit
def step(x, y, rate):
    return x - rate * y, tl.abs(y) > 1


def step_of_numpy(x, y, rate):
    return x - np.float32(rate) * y, np.abs(y) > 1


@ta.pointwise(promotion=[(1, 2, "no_opmath"), (1, "default")], dtypes=[None, None, None, "int64"])
@triton.jit
def chosen(mask, x, y, k):
    found = tl.where(mask, x, y) if SCALE > 0.5 else y
    return found, (x.to(tl.int64) + k).to(x.dtype)


def chosen_of_numpy(mask, x, y, k):
    return np.where(mask, x, y), (x.astype(np.int64) + k).astype(x.dtype)


@ta.pointwise(promotion=[(0, 1, 2, 3, 4, 5, "default")])
@triton.jit
def six(a, b, c, d, e, f):
    largest = tl.minimum(tl.maximum(a, tl.maximum(b, c)), INFINITE)
    return largest + triton.language.abs(d) * math.tau - libdevice.floor(e / f)


def six_of_numpy(a, b, c, d, e, f):
    return np.maximum(a, np.maximum(b, c)) + np.abs(d) * np.float32(math.tau) - np.floor(e / f)


CASES = [
    (gelu, gelu_of_numpy, ["float32"]),
    (gelu, gelu_of_numpy, ["float64"]),
    (gelu, gelu_of_numpy, ["float16"]),
    (gelu, gelu_of_numpy, ["int16"]),
    (step, step_of_numpy, ["float32", "float32", 0.5]),
    (chosen, chosen_of_numpy, ["bool", "int32", "int32", 7]),
    (chosen, chosen_of_numpy, ["bool", "float64", "float64", -3]),
    (six, six_of_numpy, ["float32"] * 6),
]
"""A function, that of NumPy, and the dtypes of its arrays, or its numbers."""


def draw(rng, kinds, shape):
    """Arrays of NumPy and numbers: arrays of one shape, of which every second one is a view, and the last a row."""
    found = []
    for place, kind in enumerate(kinds):
        if not isinstance(kind, str):
            found.append(kind)
            continue
        is_row = len(shape) > 1 and place and place == len(kinds) - 1
        given = rng.normal(size=shape[-1:] if is_row else shape) * 4
        given = given > 0 if kind == "bool" else np.round(given) if "int" in kind else given
        given = np.asarray(given.astype(kind))
        found.append(given[..., ::-1] if place % 2 and given.ndim else given)
    return found


def check(device, shapes=((), (7,), (0, 3), (5, 33), (2, 3, 1500)), seed=0):
    """Run all cases on a device, and compare their results with NumPy's."""
    rng = np.random.default_rng(seed)
    for function, expected, kinds in CASES:
        for shape in shapes:
            given = draw(rng, kinds, shape)
            ours = [ta.asarray(each, device=device) if isinstance(each, np.ndarray) else each for each in given]
            found, wanted = function(*ours), expected(*given)
            for one, other in zip(*[each if isinstance(each, tuple) else (each,) for each in (found, wanted)]):
                got = ta.to_numpy(one)
                assert (got.dtype, got.shape) == (other.dtype, np.broadcast_shapes(shape, other.shape)), function
                ulp = np.finfo(got.dtype).eps if got.dtype.kind == "f" else 0
                near = np.isclose(got.astype("f8"), other.astype("f8"), rtol=4 * float(ulp), atol=4 * float(ulp))
                assert near.all(), (function, kinds, shape)
