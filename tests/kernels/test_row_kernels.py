"""Softmax and sums of exponentials on an emulated GPU: one launch, with the bits of several and of the host."""

from __future__ import annotations

import pytest
from support.kernels import needs_triton

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize(("seed", "count", "elements"), [(1, 30, 60), (2, 10, 3000)])
def test_one_launch_gives_the_bits_of_several(process, seed, count, elements):
    process.pool.submit(_compare, seed, count, elements).result()


def _compare(seed: int, count: int, elements: int) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.rows import check_one_launch

    assert check_one_launch(emulated_device(), seed, count, elements) > count // 4


def test_rows_of_any_length_have_the_bits_of_the_host(process):
    process.pool.submit(_compare_lengths).result()


def _compare_lengths() -> None:
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.reductions import compare

    import tilearray as ta

    device, rng = emulated_device(), np.random.default_rng(3)
    functions = (ta.softmax, ta.log_softmax, ta.logsumexp)
    for length in (1, 2, 31, 128, 129, 1000, 1024, 2049, 4100, 9000):
        for dtype in ("bfloat16", "float32", "float64"):
            x = ta.asarray(rng.normal(size=(3, length)) * 3).astype(dtype)
            for function in functions:
                before = device.backend.launches
                found = function(x.to_device(device), axis=1)
                assert device.backend.launches == before + 1
                compare(function(x, axis=1), found, f"{function.__name__} {dtype} {length}")
    for values in ([np.inf, 1], [-np.inf] * 2, [np.nan, 1], [-np.inf, 0], [3e38, 3e38]):
        x = ta.asarray([values, [0.0, 1.0]], dtype="float32")
        for function in functions:
            compare(function(x, axis=1), function(x.to_device(device), axis=1), f"{function.__name__} {values}")


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
@pytest.mark.parametrize("length", [100, 4096, 16384])
def test_registers_hold_rows(dtype, length):
    from support.row_sources import source

    from tilearray_cuda.kernels.compile import cubin_of

    for name in ("softmax", "log_softmax", "logsumexp"):
        code = cubin_of(source(name, dtype, (1000, length)), 90).code
        assert 0 < len(code) < 2**18, name  # elements in local memory took 700 KB
