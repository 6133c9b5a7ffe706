"""Draws on an emulated GPU: the bits of the host; and their kernels, compiled."""

from __future__ import annotations

import re

import pytest
from support.kernels import compiled, kernel_for, needs_triton

from tilearray import dtypes
from tilearray.random import draws

pytestmark = needs_triton


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "count", "elements"), [(1, 150, 100), (2, 40, 3000)])
def test_the_emulated_gpu_gives_the_bits_of_the_host(process, seed, count, elements):
    process.pool.submit(_compare, seed, count, elements).result()


def test_a_few_draws_on_the_emulated_gpu(process):
    process.pool.submit(_compare, 3, 12, 300).result()


def _compare(seed: int, count: int, elements: int) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.random_words import check_same_bits

    device = emulated_device()
    before = device.backend.launches
    check_same_bits(device, seed, count, elements)
    assert device.backend.launches > before + count // 2


GRAPHS = {
    "bfloat16": draws.unit(dtypes.bfloat16, False, False),
    "float32 within a block": draws.unit(dtypes.float32, True, True),
    "float64": draws.unit(dtypes.float64, False, True),
    "int8": draws.bounded(dtypes.int8, False, False, False),
    "uint64 of arrays": draws.bounded(dtypes.uint64, True, True, True),
}


@pytest.mark.parametrize("arch", [80, 90, 100])
@pytest.mark.parametrize("name", GRAPHS)
def test_kernels_of_draws_compile(name, arch):
    graph = GRAPHS[name].graph
    arrays = 1 + sum(kind == "array" for kind, _ in graph.inputs)
    assert compiled(kernel_for(graph, (4096,), [(1,)] * arrays, arch=arch), arch).cubin.startswith(b"\x7fELF")


@pytest.mark.parametrize(("dtype", "words"), [("bfloat16", 1), ("float32", 1), ("float64", 2)])
def test_a_thread_computes_each_block_once(dtype, words):
    graph = draws.unit(dtypes.as_dtype(dtype), False, False).graph
    kernel = kernel_for(graph, (4096,), [(1,)], arch=90)
    code = compiled(kernel, 90)
    branches = 2  # with and without masks
    blocks = branches * 1024 // (32 * 4) * words // 4  # of 1024 elements and 4 warps
    products = len(re.findall(r"mul\.(?:wide|hi)\.u32", code.ptx))
    assert products <= 20 * blocks
    if dtype != "bfloat16":  # vectors of 16 bytes hold the words of two blocks, which change places in shared memory
        assert code.shared == 0
