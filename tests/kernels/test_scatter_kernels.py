"""Ops that are applied at indices on an emulated GPU, against NumPy; and their kernels, which the compiler takes."""

from __future__ import annotations

import re

import pytest
from support.kernels import needs_triton

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("check_at", (1, 50, 60)),
        ("check_at", (2, 10, 3000)),
        ("check_wraps_and_kinds", ()),
        ("check_errors_of_at", ()),
        ("check_atomic", (100,)),
        ("check_wide_rows_at", ()),
        ("check_ordered", (3, 20, 60)),
        ("check_ordered", (4, 4, 3000)),
        ("check_order", ()),
        ("check_many_at_few", ()),
        ("check_long_runs", ()),
        ("check_known_calls", ()),
        ("check_atomic_weights", ()),
    ],
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

    from tilearray.functions.indexing.scatter import scattering
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


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "bfloat16", "float32", "float8_e5m2", "complex64"])
def test_the_compiler_takes_folds(dtype):
    """Loops whose values keep their types, also those of an op that is computed in a wider dtype."""
    from support.oracles.formats import dtype_of

    import tilearray as ta
    from tilearray.functions.indexing.fold import _folding, _folding_places, _folding_words
    from tilearray_cuda.kernels.compile import cubin_of

    for name in {"bool": ("logical_xor",)}.get(dtype, ("subtract", "multiply")):
        folded = getattr(ta, name), ta.get_semantics(), dtype_of(dtype), dtype_of(dtype)
        graph = _folding(*folded, 16 if dtype == "float32" else 8).graph
        for shape, strides in (((5000,), [(0,), (1,), (0,), (1,)]), ((300, 70), [(0, 1), (1, 0), (0, 1), (70, 1)])):
            source = _source_of_fold(graph, shape, strides)
            assert source.name == f"{name}_fold"
            assert cubin_of(source, 90).code
        by_places = [_folding_places(*folded).graph] if name == "subtract" and dtype in ("float32", "complex64") else []
        for graph in (_folding_words(*folded).graph, *by_places):
            source = _source_of_fold(graph, (300,), [(1,), (1,), (0,), (0,)])
            assert source.name == f"{name}_fold"
            assert cubin_of(source, 90).code


def _source_of_fold(graph, shape, strides):
    from tilearray.geometry.fold import make_fold
    from tilearray_cuda.kernels.schedules.choose import loop_class, schedule_of
    from tilearray_cuda.kernels.source import source_of
    from tilearray_cuda.kernels.spec import make_spec

    return source_of(schedule_of(make_spec(graph, loop_class(make_fold(shape, strides)), (True,) * len(strides)), 90))


@pytest.mark.parametrize("missing", [1, 5])
def test_runs_that_end_at_the_end_of_int32_are_not_read_further(missing):
    """``row + 1`` is then 2**31, which is negative in int32, and so below the number of elements."""
    import numpy as np
    from support.oracles.formats import dtype_of

    import tilearray as ta
    from tilearray.functions.indexing.fold import _folding

    size, at_once = 2**31 - missing, 8
    graph = _folding(ta.subtract, ta.get_semantics(), dtype_of("int8"), dtype_of("int8"), at_once).graph
    text = _source_of_fold(graph, (size,), [(0,), (1,), (0,), (1,)]).text
    conditions = re.findall(r"^ *inside\d = walks\d* & \((.*)\)$", text, re.MULTILINE)
    row = np.int32(size - 1)
    with np.errstate(over="ignore"):
        known = {"row": row, "n0": np.int32(size), **{f"row{step}": row + np.int32(step) for step in range(at_once)}}
        assert [bool(eval(each, {}, known)) for each in conditions] == [step == 0 for step in range(at_once)]
