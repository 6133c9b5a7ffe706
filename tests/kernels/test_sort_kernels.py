"""Sorts on an emulated GPU, against NumPy; and their kernels, which the compiler takes."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import needs_triton

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("check_sorts", (1, 20, 60)),
        ("check_sorts", (2, 5, 3000)),
        ("check_lengths", ((1, 2, 32, 33),)),
        ("check_lengths", ((4096,), ("int8",))),
        ("check_lengths", ((4097,), ("bool", "uint8", "float16", "float32", "int64"))),
        ("check_lengths", ((20_001,), ("bfloat16", "uint32"))),
        ("check_lengths", ((530_000,), ("uint8", "float16"))),
        ("check_scanned_lengths", ((4099,), ("uint8", "float32", "uint64"))),
        ("check_scanned_lengths", ((20_003,), ("bfloat16", "int64"))),
        ("check_sorts_again", ((64,), ("bool", "float32"))),
        ("check_sorts_again", ((2, 4112), ("float32", "int64"))),
        ("check_sorts_again", ((8_208,), ("uint8", "bfloat16", "uint64"))),
        ("check_sweeps", (16_387,)),
        *[
            ("check_wide_short", (kind,))
            for kind in ("few", "unsigned", "special", "clusters", "hidden", "linear", "hidden linear")
        ],
        ("check_linear", ()),
        ("check_few_near_integers", ()),
        ("check_far_integers", (4500,)),
        ("check_integers_in_runs", (9000, 18)),
        ("check_sets", (5, 12, 40)),
        ("check_sets", (6, 2, 5000)),
        ("check_sets_again", ((16,), ("uint8", "float32", "float64"))),
        ("check_sets_again", ((2, 4112), ("int32", "float32"))),
        ("check_names", (7, 4, 40)),
        ("check_complex_medians", ()),
        ("check_tops_are_not_waited_for", ()),
        ("check_tops_of_rows", (11, 25, 300)),
        ("check_tops", (8, 15, 60)),
        ("check_tops", (9, 4, 9000)),
        ("check_tops", (10, 3, 80_000)),
    ],
)
def test_on_the_device(process, name, arguments):
    process.pool.submit(_on_the_device, name, *arguments).result()


def _on_the_device(name: str, *arguments: int) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles import sorting

    getattr(sorting, name)(emulated_device(), *arguments)


@pytest.mark.parametrize("dtype", ["bool", "float8_e5m2", "bfloat16", "int64"])
def test_the_compiler_takes_sorts(dtype):
    """Rows of one program stay in registers, whatever their number and size; the threads wait for each other."""
    from support.sort_sources import rows_sources

    from tilearray_cuda.kernels.compile import compile_source
    from tilearray_cuda.kernels.machine_code import read_machine_code

    for rows, extent in ((5000, 30), (1, 4096)) if dtype == "int64" else ((100, 1000),):
        sources = list(rows_sources(dtype, rows, extent))
        assert [source.name for source in sources] == ["sort_sort", "argsort_sort"]
        for source in sources:
            made = compile_source(source, 90)
            assert "bar.sync" in made.ptx
            assert read_machine_code(made.cubin).spills == 0


@pytest.mark.parametrize(
    ("dtype", "extent", "form"),
    [
        ("bool", 300_000, ""),
        ("float16", 5_000_000, ""),
        ("float32", 3_000_000_000, ""),
        ("uint64", 300_000, ""),
        ("uint64", 300_000, "base"),
    ],
)
def test_the_compiler_takes_partitions(dtype, extent, form):
    """Neighbours are read by neighbouring threads, without an exchange of layouts.

    Nothing is spilled, though the registers of counts are limited.
    """
    from support.sort_sources import partition_sources

    from tilearray_cuda.kernels.compile import compile_source
    from tilearray_cuda.kernels.machine_code import read_machine_code

    for number, source in enumerate(partition_sources(dtype, extent, form=form)):
        assert source.name == ("digits_partition", "rank_partition")[number > 0]
        made = compile_source(source, 90)
        assert "ld.global.v" not in made.ptx
        assert made.shared < 1024
        code = read_machine_code(made.cubin)
        assert code.spills == 0
        assert (source.tile.registers > 0) == (number == 0)
        assert code.registers <= (source.tile.registers or 255)


@pytest.mark.parametrize(("dtype", "form"), [("float16", ""), ("int32", ""), ("int64", "base"), ("float64", "linear")])
def test_the_compiler_takes_sweeps(dtype, form):
    """Counts are told before elements are ordered, and all digits are counted of vectors.

    Little is spilled, though registers are limited. Programs run at once as many as registers and shared memory allow.
    """
    from support.sort_sources import sweep_sources

    from tilearray_cuda.kernels.compile import compile_source
    from tilearray_cuda.kernels.machine_code import read_machine_code

    for number, source in enumerate(sweep_sources(dtype, 5_000_000, form=form)):
        assert source.name == ("histograms_partition", "rank_partition")[number > 0]
        made = compile_source(source, 90)
        assert made.shared < 1024
        code = read_machine_code(made.cubin)
        if number:
            assert source.tile.columns == (8192 if number == 1 and dtype in ("float16", "int32") else 4096)
            assert code.registers <= source.tile.registers
            assert code.spills < 32
            told, ordered = made.ptx.index("st.relaxed.gpu.global"), made.ptx.index("vote.sync.ballot")
            assert told < ordered < made.ptx.index("ld.relaxed.gpu.global")
        else:
            assert (code.loads[0][0], code.spills) == (16, 0)
            assert code.registers <= 64


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_the_compiler_takes_sorts_of_short_runs(dtype):
    """Their launches read and store vectors, and spill nothing."""
    from support.sort_sources import mending_sources

    from tilearray_cuda.kernels.compile import compile_source
    from tilearray_cuda.kernels.machine_code import read_machine_code

    for name, source in zip(("mended_flat", "mended_order_flat"), mending_sources(dtype, 20_000_000), strict=True):
        assert source.name == name
        code = read_machine_code(compile_source(source, 90).cubin)
        assert (code.loads[0][0], code.spills) == (16, 0)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64"])
def test_the_compiler_takes_marks(dtype):
    """Each bit is read before it is set, without an exchange of layouts."""
    from support.sort_sources import mark_sources

    from tilearray_cuda.kernels.compile import compile_source

    made = compile_source(next(mark_sources(dtype)), 90)
    assert "red.global.gpu.relaxed.or.b32" in made.ptx
    assert made.shared == 0


@pytest.mark.parametrize("dtype", ["int32", "uint64"])
def test_the_compiler_takes_sets_of_runs(dtype):
    """Nothing is spilled, and lists are made for what is stored only."""
    from support.sort_sources import run_sources

    from tilearray_cuda.kernels.compile import compile_source
    from tilearray_cuda.kernels.machine_code import read_machine_code

    sources = list(run_sources(dtype))
    assert [source.name for source in sources] == ["least_search_flat", "sizes_runs", "distinct_runs"]
    for source in sources:
        made = compile_source(source, 90)
        assert made.shared < 1024
        assert ("bfind.shiftamt.u32" in made.ptx) == source.name.startswith("distinct")
        assert read_machine_code(made.cubin).spills == 0


def test_distinct_words_are_numpys(process):
    process.pool.submit(_distinct_words).result()


def _distinct_words() -> None:
    """Neighbours of 64 bits without a sign stand beside places, which have one."""
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    for host in (np.array([3, 2**64 - 1, 3, 0, 2**63], "uint64"), np.array(7, "uint64")):
        found = ta.unique_values(ta.asarray(host, device=emulated_device()))
        np.testing.assert_array_equal(ta.to_numpy(found), np.unique(host))


def test_a_sweep_compiles_only_what_it_launches(process):
    process.pool.submit(_compiled_by_a_sweep).result()


def _compiled_by_a_sweep() -> None:
    """Counts of all digits, and a pass: no counts of blocks, and no scan of these."""
    from unittest import mock

    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta
    from tilearray.engine import caches

    device = emulated_device()
    host = np.random.default_rng(8).permutation(5011).astype("int32")
    x = ta.asarray(host, device=device)
    ta.sort(x)
    caches.PLANS.clear()  # a sort keeps no plans of its own
    caches.KERNELS.clear()
    with mock.patch.object(device.backend, "compile", wraps=device.backend.compile) as compiling:
        found = ta.sort(x)
    kinds = {"digits", "histograms", "rank", "scan"}
    made = [node[0] for call in compiling.call_args_list for node in call.args[0].nodes if node[0] in kinds]
    assert made == ["histograms", "rank"]
    np.testing.assert_array_equal(ta.to_numpy(found), np.sort(host))


def test_sorted_words_are_numpys(process):
    process.pool.submit(_sort_words).result()


def _sort_words() -> None:
    """Words of four digits are swept: one launch makes memory, one counts all digits, and one stores each."""
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta
    from tilearray.functions.ordering import words_in_order

    device, rng = emulated_device(), np.random.default_rng(9)
    for bits, launches in ((1, 2), (9, 4), (32, 6)):
        host = rng.integers(0, 2**bits, 9001)
        places = ta.asarray(host, device=device)
        before = device.backend.launches
        found = words_in_order(places, bits)
        assert device.backend.launches - before == launches
        order = np.argsort(host, kind="stable")
        np.testing.assert_array_equal(ta.to_numpy(found), (host[order] << 32 | order).astype("uint64"))
