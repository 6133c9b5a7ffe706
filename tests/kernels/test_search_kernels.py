"""Binary search and histograms on an emulated GPU, against NumPy; and their kernels, which the compiler takes."""

from __future__ import annotations

import re

import pytest
from support.kernels import needs_triton

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("check_search", (1, 40, 60)),
        ("check_search", (2, 8, 3000)),
        ("check_buckets", (6, 25, 1200, 64, 99)),
        ("check_division", ()),
        ("check_last_bucket", ()),
        ("check_names", ()),
        ("check_counts", (3, 20, 200)),
        ("check_counts", (4, 4, 5000)),
        ("check_refusals", ()),
        ("check_bins", ()),
        ("check_known_edges", ()),
        ("check_many_bins", (1,)),
        ("check_many_bins", (3,)),
        ("check_gradients", ()),
        ("check_one_search", ()),
        ("check_known_calls", ()),
    ],
)
def test_on_the_device(process, name, arguments):
    process.pool.submit(_on_the_device, name, *arguments).result()


def _on_the_device(name: str, *arguments: int) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles import histograms

    getattr(histograms, name)(emulated_device(), *arguments)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_the_compiler_takes_searches(dtype, side):
    """A loop whose length is the same for all elements; its loads are not masked."""
    from support.kernels import kernel_for
    from support.oracles.formats import dtype_of

    from tilearray.functions.binary_search import searching
    from tilearray_cuda.kernels.compile import compile_source

    graph = searching(dtype_of(dtype), side).graph
    for shape, strides in (((5000,), [(1,), (0,), (1,)]), ((300, 70), [(70, 1), (0, 0), (1, 300)])):
        assert "ld.global" in compile_source(kernel_for(graph, shape, strides).source, 90).ptx


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64"])
def test_the_compiler_takes_searches_for_bins(dtype):
    """One launch; the last edge is read once more."""
    from support.kernels import kernel_for
    from support.oracles.formats import dtype_of

    from tilearray.functions.binary_search import _binning
    from tilearray_cuda.kernels.compile import compile_source

    compiled = compile_source(kernel_for(_binning(dtype_of(dtype)).graph, (5000,), [(1,), (0,), (1,)]).source, 90)
    assert "st.global" in compiled.ptx
    assert "st.local" not in compiled.ptx


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32", "float64"])
def test_the_compiler_takes_searches_in_buckets(dtype):
    """Nothing is spilled, whatever the layout of values."""
    from support.kernels import kernel_for
    from support.oracles.formats import dtype_of

    from tilearray.functions import binary_search
    from tilearray_cuda.kernels.compile import compile_source
    from tilearray_cuda.kernels.machine_code import read_machine_code

    given = dtype_of(dtype)
    starting = binary_search._starting(given).graph
    sources = [kernel_for(starting, ((1 << 20) + 1,), [(1,), (0,), (0,)]).source]
    for operation in (
        binary_search._searching_in_buckets(given, "right"),
        binary_search._containing_in_buckets(given),
    ):
        for shape, strides in (
            ((5000,), [(1,), (0,), (0,), (0,), (1,)]),
            ((300, 70), [(70, 1), (0, 0), (0, 0), (0, 0), (1, 300)]),
        ):
            sources.append(kernel_for(operation.graph, shape, strides).source)
    for source in sources:
        assert read_machine_code(compile_source(source, 90).cubin).spills == 0


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "uint64"])
@pytest.mark.parametrize("bins", [2048, 8192])
def test_the_compiler_takes_counts(dtype, bins):
    """Counts in shared memory, and one atomic for each bin of a program."""
    from support.oracles.formats import dtype_of

    from tilearray.geometry.selection import make_selection
    from tilearray.numpy_names.counting import _counting
    from tilearray_cuda.kernels.compile import compile_source
    from tilearray_cuda.kernels.machine_code import read_machine_code
    from tilearray_cuda.kernels.schedules.choose import loop_class, schedule_of
    from tilearray_cuda.kernels.source import source_of
    from tilearray_cuda.kernels.spec import make_spec

    graph = _counting(dtype_of(dtype), bins).graph
    for stride in (1, 3):
        loop = make_selection((300_000,), [(0,)], [(stride,)])
        source = source_of(schedule_of(make_spec(graph, loop_class(loop), (True, True)), 90))
        assert source.name == "bins_selection"
        compiled = compile_source(source, 90)
        assert re.search(r"red\.\S*shared", compiled.ptx)
        assert ("ld.global.v" in compiled.ptx) == (stride == 1)
        code = read_machine_code(compiled.cubin)
        assert code.spills == 0
        assert code.registers <= 64 or stride > 1, "four programs run at once"


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "uint64"])
@pytest.mark.parametrize("arch", [80, 90])
def test_the_compiler_takes_counters_of_16_bits(dtype, arch):
    """Vectors are read, no layout changes, and a program's memory is its counters and a few words of the compiler."""
    from support.oracles.formats import dtype_of

    from tilearray.geometry.selection import make_bins
    from tilearray.numpy_names.counting import _counting
    from tilearray_cuda.kernels.compile import compile_source
    from tilearray_cuda.kernels.machine_code import read_machine_code
    from tilearray_cuda.kernels.schedules.choose import loop_class, schedule_of
    from tilearray_cuda.kernels.source import source_of
    from tilearray_cuda.kernels.spec import make_spec

    for bins, first in ((16_384, 0), (65_536, 0), (65_536, 1)):
        graph = _counting(dtype_of(dtype), bins, first).graph
        loop = make_bins((300_000,), [(0,)], [(1,)], 16)
        source = source_of(schedule_of(make_spec(graph, loop_class(loop), (True, True)), arch))
        assert "BLOCK = 8192" in source.text
        assert len(re.findall(r"if block % 4 == 0:\n +tl.debug_barrier\(\).*\n +places_added", source.text)) == 2
        compiled = compile_source(source, arch)
        code = read_machine_code(compiled.cubin)
        assert code.spills == 0
        assert "ld.global.v" in compiled.ptx
        assert 2 * bins < compiled.shared <= 2 * bins + 256


def test_few_programs_count(process):
    process.pool.submit(_few_programs).result()


def _few_programs() -> None:
    """Five chunks in two segments: programs of three blocks and of two, the last of which is not whole."""
    import numpy as np
    from support.interpreter import emulated_gpu

    import tilearray as ta
    from tilearray.engine import caches
    from tilearray.geometry import selection

    device, before, programs = emulated_gpu.emulated_device(), emulated_gpu.programs_of, list[int]()
    given = np.random.default_rng(2).integers(0, 70, 17_000)
    caches.PLANS.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "BIN_SEGMENTS", 2)
        patch.setattr(emulated_gpu, "programs_of", lambda kernel: programs.append(before(kernel)) or programs[-1])
        found = ta.bincount(ta.asarray(given, device=device))
    caches.PLANS.clear()
    assert programs[-1] == 2
    np.testing.assert_array_equal(np.from_dlpack(found.to_device("cpu")), np.bincount(given))


def test_the_largest_integer_is_found_with_the_counts(process):
    process.pool.submit(_largest_of_counts).result()


def _largest_of_counts() -> None:
    """Integers below and beyond the bins that are counted at once; in one launch if all are below."""
    import numpy as np
    from support.interpreter import emulated_gpu

    import tilearray as ta
    from tilearray.numpy_names.counting import BINS, MOST_BINS

    device, rng = emulated_gpu.emulated_device(), np.random.default_rng(6)
    for dtype in ("int8", "uint8", "int16", "uint32", "int64", "uint64"):
        most = min(np.iinfo(dtype).max, 3 * MOST_BINS)
        for last in (0, 100, BINS - 1, BINS, MOST_BINS - 1, MOST_BINS, most):
            host = rng.integers(0, min(last, most), 5000, endpoint=True).astype(dtype)
            host[4321] = min(last, most)
            for given in (host, host[::3], host[:1], host[4097:]):
                for least in (0, 60, BINS + 1):
                    before = device.backend.launches
                    found = ta.bincount(ta.asarray(given, device=device), minlength=least)
                    used = device.backend.launches - before
                    wanted = np.bincount(given.astype(np.int64), minlength=least)
                    np.testing.assert_array_equal(np.from_dlpack(found.to_device("cpu")), wanted)
                    is_known = wanted.size <= BINS or (wanted.size == least)
                    assert used == 2 or not is_known, (dtype, last, least, used)
    for dtype in ("int8", "int32", "int64"):
        with pytest.raises(ta.ShapeError, match="expected no negative integers, got -3;"):
            ta.bincount(ta.asarray(np.array([2, -3, 1], dtype), device=device))
