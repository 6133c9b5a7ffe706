"""Launches that hold one row: results of rows in every kind of dtype, compiled and on an emulated GPU."""

from __future__ import annotations

import pytest
from support.kernels import needs_triton

import tilearray as ta

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float8_e4m3fn", "float8_e5m2", "float16", "complex64"])
def test_results_of_one_row_are_stored(dtype):
    def sums(x):
        total = ta.sum(x, axis=1, keepdims=True)
        return ta.astype(total, dtype), ta.astype(x - total, dtype)

    given = dtype if dtype not in ("bool", "uint8") else "int32"
    (launch,) = ta.explain(ta.fuse(sums), ta.empty((10_000, 1000), dtype=given), arch=90).launches
    assert launch.kernel.schedule == "held_lanes"
    assert launch.kernel.tile[0] == 1
    assert launch.kernel.code.spills == 0


def test_results_of_one_row_have_the_bits_of_the_function(process):
    process.pool.submit(_single_rows).result()


def _single_rows() -> None:
    """Rows that a program has one of, with results for each row in many dtypes, and as few as one row."""
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.trees import bits

    import tilearray as ta

    device, rng = emulated_device(), np.random.default_rng(4)
    for dtype in ("float8_e4m3fn", "float16", "float64", "int32", "complex64"):
        for shape in ((1, 600), (3, 600), (2, 3, 600)):

            def sums(x):
                total = ta.sum(x, axis=-1, keepdims=True)
                return total, x - total, ta.astype(total == 0, "bool"), ta.sum(x * 2, axis=-1) + 1

            values = rng.normal(size=shape) * (20 if dtype == "int32" else 1)
            x = ta.asarray(values).astype(dtype).to_device(device)
            before = device.backend.launches
            found = ta.fuse(sums)(x)
            assert device.backend.launches == before + 1, (dtype, shape)
            for ours, other in zip(found, sums(x), strict=True):
                assert bits(ours) == bits(other), (dtype, shape)


def test_long_rows_are_read_again_with_the_bits_of_the_function(process):
    process.pool.submit(_long_rows).result()


def _long_rows() -> None:
    """Rows of many segments, that fill their last chunk or not, with results for elements and rows."""
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.trees import bits

    import tilearray as ta
    from tilearray.geometry import reduction

    reduction.MOST_SEGMENTS = 64  # few rows have many segments, and are interpreted in less time

    def norm(x):
        distance = x - ta.mean(x, axis=-1, keepdims=True)
        return distance / ta.sqrt(ta.mean(distance * distance, axis=-1, keepdims=True) + 1)

    def quantised(x):
        size = ta.max(ta.abs(x), axis=-1, keepdims=True)
        return ta.astype(ta.round(x / size * 127), "int8"), size

    def sums(x):
        total = ta.sum(x, axis=-1)
        return total, x - total[..., None], ta.mean(x, axis=-1) * 2

    device, rng = emulated_device(), np.random.default_rng(4)
    for dtype, shape, functions in (
        ("float64", (36, 2100), (norm, quantised)),
        ("float64", (36, 4096), (sums,)),
        ("float32", (5, 8, 4300), (quantised,)),
        ("complex64", (36, 2100), (sums,)),
        ("complex128", (36, 1030), (sums,)),
    ):
        values = rng.normal(size=shape)
        values[3, ..., 5], values[4, ..., -1] = np.nan, -np.inf
        x = ta.asarray(values).astype(dtype)
        for function in functions:
            before = device.backend.launches
            found = ta.fuse(function)(x.to_device(device))
            assert device.backend.launches == before + 1, (dtype, shape, function)
            expected = function(x)
            for ours, other in zip(*[e if isinstance(e, tuple) else (e,) for e in (found, expected)], strict=True):
                assert bits(ours) == bits(other), (dtype, shape, function)


def test_long_rows_are_one_launch_without_spills():
    def norm(x):
        distance = x - ta.mean(x, axis=-1, keepdims=True)
        return distance / ta.sqrt(ta.mean(distance * distance, axis=-1, keepdims=True) + 1)

    for dtype in ("float32", "bfloat16"):
        for rows, schedule in ((300, "reread"), (10_000, "held_lanes")):
            (launch,) = ta.explain(ta.fuse(norm), ta.empty((rows, 16384), dtype=dtype), arch=90).launches
            assert launch.kernel.schedule == schedule
            assert launch.kernel.code.spills == 0
