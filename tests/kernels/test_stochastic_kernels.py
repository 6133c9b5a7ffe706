"""Stochastic rounding on an emulated GPU: the bits of the host; and its kernels, compiled."""

from __future__ import annotations

import pytest
from support.kernels import compiled, needs_triton
from support.random_sources import draw_kernel

from tilearray import dtypes
from tilearray.ops import stochastic

pytestmark = needs_triton


@pytest.mark.slow
def test_the_emulated_gpu_gives_the_bits_of_the_host(process):
    process.pool.submit(_compare, 1, 60, 2000).result()


def test_a_few_casts_on_the_emulated_gpu(process):
    process.pool.submit(_compare, 2, 10, 600).result()


def test_casts_in_fused_functions_on_the_emulated_gpu(process):
    process.pool.submit(_compare_fused).result()


def _compare_fused() -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.stochastic import check_fused

    check_fused(emulated_device(), 3)


def _compare(seed: int, count: int, elements: int) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.stochastic import check_same_bits

    check_same_bits(emulated_device(), seed, count, elements)


@pytest.mark.parametrize(
    ("source", "target"),
    [("float32", "float8_e4m3fn"), ("bfloat16", "float4_e2m1fn"), ("float64", "float8_e8m0fnu"), ("float32", "int8")],
)
def test_kernels_compile(source, target):
    operation = stochastic._cast(dtypes.as_dtype(source), dtypes.as_dtype(target), True)
    assert compiled(draw_kernel(operation)).cubin.startswith(b"\x7fELF")
