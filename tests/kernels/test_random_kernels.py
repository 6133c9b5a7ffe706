"""Draws on an emulated GPU: the bits of the host; and their kernels, compiled."""

from __future__ import annotations

import pytest
from support.kernels import compiled, needs_triton
from support.random_sources import draw_kernel

from tilearray import dtypes
from tilearray.random import draws, rejection

pytestmark = needs_triton


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "count", "elements"), [(1, 60, 100), (2, 15, 3000)])
def test_the_emulated_gpu_gives_the_bits_of_the_host(process, seed, count, elements):
    process.pool.submit(_compare, seed, count, elements).result()


def test_a_few_draws_on_the_emulated_gpu(process):
    process.pool.submit(_compare, 3, 24, 300).result()


def _compare(seed: int, count: int, elements: int) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.random_words import check_same_bits

    device = emulated_device()
    before = device.backend.launches
    check_same_bits(device, seed, count, elements)
    assert device.backend.launches > before + count // 2


DRAWS = {
    "bfloat16": draws.unit(dtypes.bfloat16, False, False),
    "float32 within a block": draws.unit(dtypes.float32, True, True),
    "normal float32": draws.normal(dtypes.float32, False, True),
    "normal float64 within a block": draws.normal(dtypes.float64, True, False),
    "exponential float64": draws.exponential(dtypes.float64, False, True),
    "gamma float32 again": rejection.gamma(dtypes.float32, True, True),
    "gamma float64": rejection.gamma(dtypes.float64, False, False),
    "poisson": rejection.poisson(False, True, "both"),
    "binomial again": rejection.binomial(True, False, "large"),
    "int8": draws.bounded(dtypes.int8, False, False, False),
    "uint64 of arrays": draws.bounded(dtypes.uint64, True, True, True),
}


@pytest.mark.parametrize(
    "arch", [pytest.param(80, marks=pytest.mark.slow), 90, pytest.param(100, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", DRAWS)
def test_kernels_of_draws_compile(name, arch):
    assert compiled(draw_kernel(DRAWS[name], arch), arch).cubin.startswith(b"\x7fELF")


@pytest.mark.parametrize("make", [draws.unit, draws.normal, draws.exponential])
@pytest.mark.parametrize(("dtype", "words"), [("bfloat16", 1), ("float32", 1), ("float64", 2)])
def test_a_thread_computes_each_block_once(make, dtype, words):
    kernel = draw_kernel(make(dtypes.as_dtype(dtype), False, False))
    code, elements = compiled(kernel, 90), kernel.source.tile.of_a_thread
    branches = 2  # with and without masks
    blocks = branches * elements * words // 4
    assert code.count(r"mul\.(?:wide|hi)\.u32") <= 20 * blocks
    if make is draws.normal:  # and each radius
        assert code.count(r"r?sqrt\.(?:rn|approx\.ftz)\.f\d\d") == branches * elements // 2
    if dtype != "bfloat16":  # vectors of 16 bytes hold the words of two blocks, which change places in shared memory
        assert code.shared == 0
