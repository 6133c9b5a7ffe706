"""Launches that hold one row: results of rows in every kind of dtype, compiled and on an emulated GPU."""

from __future__ import annotations

import re

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


def test_a_thread_computes_once_what_follows_from_a_reduction():
    """Each element of a vector, and each of eight chunks, had a logarithm of its own."""
    (launch,) = ta.explain(lambda x: ta.log_softmax(x, axis=1), ta.empty((1000, 1000)), arch=90).launches
    assert launch.kernel.schedule == "held"
    (argument,) = re.findall(r"libdevice\.log\((\w+)\)", launch.kernel.source)
    assert re.search(rf"\b{argument}_other = tl.gather\({argument}, ", launch.kernel.source)  # a cell


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


def test_long_rows_are_one_launch_without_spills():
    def norm(x):
        distance = x - ta.mean(x, axis=-1, keepdims=True)
        return distance / ta.sqrt(ta.mean(distance * distance, axis=-1, keepdims=True) + 1)

    for dtype in ("float32", "bfloat16"):
        (launch,) = ta.explain(ta.fuse(norm), ta.empty((10_000, 16384), dtype=dtype), arch=90).launches
        assert launch.kernel.schedule == "held_lanes"
        assert launch.kernel.code.spills == 0


def test_blocks_have_the_bits_of_the_host(process):
    process.pool.submit(_blocks).result()


def _blocks() -> None:
    """Blocks of two axes beside operands that differ along all axes, some, none of a block, or its rows alone."""
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.reductions import compare

    def spread(x, *others):
        x = sum(others, start=x)
        least, most = (function(x, axis=(1, 3), keepdims=True) for function in (ta.min, ta.max))
        return (x - least) / (most - least), least, most

    device, rng = emulated_device(), np.random.default_rng(3)
    fused = ta.fuse(spread)
    for a, n, b, m in [(3, 16, 2, 32), (2, 4, 3, 4), (2, 64, 2, 64), (2, 3, 2, 8), (2, 8, 2, 6)]:
        are_held = n & (n - 1) == m & (m - 1) == 0  # powers of two
        for others in ((), ((a, n, b, m),), ((a, 1, b, 1),), ((b, m),), ((n, 1, 1),), ((a, n, b, m), (a, n, 1, 1))):
            by_rows = any(other in ((n, 1, 1), (a, n, 1, 1)) for other in others)
            for step in (1, -1):
                whole, *rest = [
                    ta.asarray(rng.normal(size=each)).astype("float32") for each in ((a * n, b * m), *others)
                ]
                given = [ta.reshape(whole[::step, ::step], (a, n, b, m)), *rest]
                there = [ta.reshape(whole.to_device(device)[::step, ::step], (a, n, b, m))]
                there += [each.to_device(device) for each in rest]
                before = device.backend.launches
                found = fused(*there)
                told = f"{(a, n, b, m)} {others} {step}"
                assert (device.backend.launches == before + 1) == (are_held and not by_rows), told
                for one, other in zip(spread(*given), found, strict=True):
                    compare(one, other, told)
