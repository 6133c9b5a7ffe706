"""Ops that are applied at indices on an emulated GPU, against NumPy; and their kernels, which the compiler takes."""

from __future__ import annotations

import re

import pytest
from support.kernels import needs_triton

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize(("seed", "count", "elements"), [(1, 150, 60), (2, 30, 3000)])
def test_ops_at_indices_are_numpys(process, seed, count, elements):
    process.pool.submit(_on_the_device, "check_at", seed, count, elements).result()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("check_wraps_and_kinds", ()), ("check_errors_of_at", ()), ("check_atomic", (300,)), ("check_wide_rows_at", ())],
)
def test_on_the_device(process, name, arguments):
    process.pool.submit(_on_the_device, name, *arguments).result()


def _on_the_device(name: str, *arguments: int) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles import scatter

    getattr(scatter, name)(emulated_device(), *arguments)


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("dtype", ["int32", "uint64", "float32", "float64"])
def test_the_compiler_takes_atomics(dtype, arch):
    """One atomic for each element, without its result; floats are compared as integers, and added as floats."""
    from support.kernels import kernel_for
    from support.oracles.formats import dtype_of

    from tilearray.functions.indexing.gather import scattering
    from tilearray_cuda.kernels.compile import compile_source

    is_float = dtype.startswith("float")
    hows = ("add", "maximum", "minimum") if is_float else ("add", "maximum", "minimum", "and", "or", "xor")
    for how in hows:
        for shape, strides in (((5000,), [(0,), (1,), (1,)]), ((300, 70), [(0, 1), (70, 1), (1, 0)])):
            graph = scattering(dtype_of(dtype), False, how).graph
            ptx = compile_source(kernel_for(graph, shape, strides, arch=arch).source, arch).ptx
            kinds = set(re.findall(r"(?:red|atom)\.\S*global\S*", ptx))
            assert kinds, (how, shape)
            assert all(("f" in kind.rpartition(".")[2]) == (is_float and how == "add") for kind in kinds), kinds
