"""Scans on an emulated GPU: the same bits as on the host, on any layout."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.kernels import needs_triton
from support.scan_sources import sources

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize(("seed", "count", "elements"), [(1, 50, 60), (2, 15, 2000)])
def test_the_emulated_gpu_gives_the_bits_of_the_host(process, seed, count, elements):
    process.pool.submit(_compare, seed, count, elements).result()


def _compare(seed: int, count: int, elements: int) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.scans import check_same_bits

    device = emulated_device()
    before = device.backend.launches
    check_same_bits(device, seed, count, elements)
    assert device.backend.launches > before + count // 2


def test_long_rows_and_signs_of_zeros_have_the_bits_of_the_host(process):
    process.pool.submit(_compare_hard).result()


def _compare_hard() -> None:
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.reductions import compare

    import tilearray as ta

    device, rng = emulated_device(), np.random.default_rng(7)
    for length in (255, 257, 1281):
        for dtype in ("float16", "float32", "float64", "complex64"):
            x = ta.asarray(rng.normal(size=(3, length))).astype(dtype)
            for function in (ta.cumulative_sum, ta.cumulative_prod):
                compare(function(x, axis=1), function(x.to_device(device), axis=1), f"{function.__name__} {length}")
    for dtype, length in (("int8", 17_000), ("float16", 17_000), ("float32", 17_000), ("complex128", 4500)):
        long = ta.asarray(rng.normal(size=(2, length))).astype(dtype)  # in two blocks
        for x, axis in ((long[0], 0), (ta.flip(long, axis=1), 1), (long.T[:, :1], 0)):
            for function in (ta.cumulative_sum, ta.cumulative_prod):
                there = x.to_device(device)
                before = device.backend.launches
                found = function(there, axis=axis, include_initial=True)
                assert device.backend.launches == before + 2  # one is for the initial value
                told = f"{function.__name__} {dtype} {x.shape} {x.strides}"
                compare(function(x, axis=axis, include_initial=True), found, told)
    for shape, dtype in (((4100, 2), "float32"), ((100, 130), "float32"), ((49, 40), "complex128")):
        columns = ta.asarray(rng.normal(size=shape)).astype(dtype)
        for function in (ta.cumulative_sum, ta.cumulative_prod):
            compare(function(columns, axis=0), function(columns.to_device(device), axis=0), f"columns {shape}")
    for dtype in ("float16", "float32", "float64"):
        zeros = ta.asarray(rng.choice([0.0, -0.0, -0.0], (5, 300))).astype(dtype)
        for function in (ta.maximum, ta.minimum):
            for axis in (0, 1):
                found = function.accumulate(zeros.to_device(device), axis)
                compare(function.accumulate(zeros, axis), found, f"{function.name} of zeros")
        negative = -ta.zeros((2, 3), dtype=dtype)
        compare(ta.cumulative_sum(negative, axis=1), ta.cumulative_sum(negative.to_device(device), axis=1), "-0.0")
    x = ta.asarray(rng.normal(size=(4, 50)))
    compare(ta.diff(x, n=2, axis=0), ta.diff(x.to_device(device), n=2, axis=0), "diff")


def test_sums_of_the_largest_small_integers_fit(process):
    process.pool.submit(_sum_largest).result()


def _sum_largest() -> None:
    """Sums within a block have 32 bits; the largest ones fit, also those of blocks before."""
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device = emulated_device()
    for dtype in ("bool", "uint8", "int8", "uint16", "int16"):
        info = None if dtype == "bool" else np.iinfo(dtype)
        for value in (True,) if info is None else (info.max, info.min):
            host = np.full(33_001, value, dtype)  # two blocks
            found = ta.cumulative_sum(ta.asarray(host, device=device)).to_device("cpu")
            np.testing.assert_array_equal(np.from_dlpack(found), np.cumsum(host), err_msg=dtype)


def test_many_blocks_have_the_bits_of_the_host(process):
    process.pool.submit(_compare_blocks).result()


def _compare_blocks() -> None:
    """Blocks of two short segments: more than the program of the totals reads at once; the last one is shorter."""
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.reductions import compare

    import tilearray as ta
    from tilearray.engine import caches
    from tilearray.geometry import scan

    device, rng = emulated_device(), np.random.default_rng(5)
    whole = ta.cumulative_sum(ta.asarray(rng.normal(size=9001))).tolist()
    before = scan.CHUNKS, scan.MEMBERS
    _clear(caches)
    scan.CHUNKS, scan.MEMBERS = 4, 2
    try:
        for dtype, function in (
            ("float32", ta.cumulative_sum),
            ("float64", ta.cumulative_sum),  # two rows of totals at once
            ("float32", ta.maximum.accumulate),
            ("complex64", ta.cumulative_prod),
            ("int32", ta.cumulative_sum),
            ("int32", ta.maximum.accumulate),
        ):
            size = 34_001 // (1 + (dtype not in ("float32", "float64")))
            x = ta.asarray(rng.normal(size=(2, size)) * 3 + 1).astype(dtype)
            for given in (x, x[0, 1:]):
                axis = given.ndim - 1
                found = function(given.to_device(device), axis=axis)
                compare(function(given, axis=axis), found, f"{function.__name__} {dtype} {given.shape}")
        x = ta.asarray(rng.normal(size=(3, 32 * 1024)).astype("float32"))  # what is combined at once is a row
        compare(ta.cumulative_sum(x, axis=1), ta.cumulative_sum(x.to_device(device), axis=1), "whole rows")
        assert ta.cumulative_sum(ta.asarray(np.random.default_rng(5).normal(size=9001))).tolist() != whole
    finally:
        scan.CHUNKS, scan.MEMBERS = before
        _clear(caches)


def test_two_programs_at_once_are_enough(process):
    process.pool.submit(_few_at_once).result()


def _few_at_once() -> None:
    import numpy as np
    import pytest
    from support.interpreter import run
    from support.interpreter.emulated_gpu import emulated_device
    from support.interpreter.mended import FaultError
    from support.interpreter.together import Together
    from support.oracles.reductions import compare

    import tilearray as ta

    x = ta.asarray(np.random.default_rng(8).normal(size=40_000))  # five blocks
    there = x.to_device(emulated_device())
    try:
        run.Together = lambda run, programs, _: Together(run, programs, 2)
        compare(ta.cumulative_sum(x), ta.cumulative_sum(there), "two at once")
        run.Together = lambda run, programs, _: Together(run, programs, 1)
        with pytest.raises(FaultError, match="wait for each other"):
            ta.cumulative_sum(there)
    finally:
        run.Together = Together


def _clear(caches) -> None:
    for cache in (caches.PLANS, caches.RECIPES, caches.KERNELS):
        cache.clear()


@pytest.mark.parametrize(("how", "dtype"), [("add", "float32"), ("multiply", "complex64"), ("maximum", "bfloat16")])
@pytest.mark.parametrize(("shape", "axis"), [((1000, 300), 0), ((1000, 300), 1), ((100_000,), 0), ((100_000, 30), 0)])
def test_the_compiler_takes_scans(how, dtype, shape, axis):

    from tilearray_cuda.kernels.compile import cubin_of

    found = sources(how, dtype, shape, axis)
    assert len(found) == 1 + (shape == (100_000, 30))
    assert all(cubin_of(source, 90).code for source in found)
    assert not any(", -0.0," in source.text for source in found)  # Triton 3.6 makes 0.0 of that


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int64", "float64", "complex64"])
def test_three_programs_that_scan_blocks_run_at_once(dtype):
    from tilearray_cuda.kernels.compile import cubin_of
    from tilearray_cuda.kernels.machine_code import read_machine_code

    (source,) = sources("add", dtype, (3_000_000,), 0)
    code = read_machine_code(cubin_of(source, 90).code)
    assert source.tile.warps == 8
    assert code.registers <= 80
    assert code.spills <= 8


def test_sizes_beyond_a_chunk_do_not_change_the_kernel():

    assert len({sources("add", "float32", (1000, length), 1)[0].text for length in range(261, 401, 2)}) == 1


@pytest.mark.parametrize("missing", [1, 100, 16000])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_the_last_block_of_the_longest_rows_of_int32_is_not_whole(dtype, missing):
    """The end of that block is 2**31, which is negative in int32: it would be read and written without masks."""
    size = 2**31 - missing
    (source,) = sources("add", dtype, (size,), 0)
    (condition,) = re.findall(r"^ *is_whole = (.*)$", source.text, re.MULTILINE)
    known = {name: np.int32(value) for name, value in source.constants} | {"n1": np.int32(size)}
    last = (size - 1) // (int(known["ROWS"]) * int(known["CHUNKS"]) * int(known["COLUMNS"]))
    with np.errstate(over="ignore"):
        assert not eval(condition, {}, {**known, "block": np.int32(last)})
        assert eval(condition, {}, {**known, "block": np.int32(last - 1)})
