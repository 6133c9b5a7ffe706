"""Reductions on an emulated GPU: the same bits as on the host, on any layout."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
import pytest
from support.kernels import needs_triton
from support.rows_on_device import crossed

import tilearray as ta

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize(("seed", "count", "elements"), [(1, 60, 60), (2, 15, 2000)])
def test_the_emulated_gpu_gives_the_bits_of_the_host(process, seed, count, elements):
    process.pool.submit(_compare, seed, count, elements).result()


def _compare(seed: int, count: int, elements: int) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.reductions import check_same_bits

    device = emulated_device()
    before = device.backend.launches
    check_same_bits(device, seed, count, elements)
    assert device.backend.launches > before + count // 2


@pytest.mark.parametrize("case", ["bytes", "zeros", "products", "signs"])
def test_the_emulated_gpu_gives_the_bits_of_the_host_for_hard_values(process, case):
    process.pool.submit(_compare_hard, case).result()


@pytest.mark.parametrize("shape", [(2**31 - 1,), (2**31 - 1, 1), (2**16, 2**15 - 1)])
def test_the_number_of_chunks_is_computed_in_32_bits(shape):
    from support.reduction_sources import sources

    for source in sources("sum", "uint8", shape, (0,)):
        assert "tl.cdiv" not in source.text  # it adds COLUMNS - 1 to the extent: more than 2**31 - 1


@pytest.mark.parametrize("missing", [1, 100, 1023])
def test_the_last_tile_of_the_most_results_of_int32_is_not_whole(missing):
    """The end of that tile is 2**31, which is negative in int32: it would be read without masks."""
    from support.reduction_sources import sources

    size = 2**31 - missing
    (source,) = sources("max", "int8", (size, 1), (1,))
    (condition,) = re.findall(r"^ *if (first_row .*):$", source.text, re.MULTILINE)
    rows = dict(source.constants)["ROWS"]
    known = {"ROWS": np.int32(rows), "n0": np.int32(size)}
    last = (size - 1) // rows * rows
    with np.errstate(over="ignore"):
        assert not eval(condition, {}, {**known, "first_row": np.int32(last)})
        assert eval(condition, {}, {**known, "first_row": np.int32(last - rows)})


def _compare_hard(case: str) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.reductions import compare

    import tilearray as ta

    device = emulated_device()
    if case == "bytes":  # a negative byte as uint64 does not fit into a register of 32 bits
        x = ta.asarray([-1, -2], dtype="int8")
        found = ta.sum(x.to_device(device), dtype="uint64")
        assert found.item() == 2**64 - 3
        compare(ta.sum(x, dtype="uint64"), found, case)
        return
    if case == "signs":
        _compare_zeros(device)
        return
    for count in (1, 2, 3, 5, 300):
        values = np.ones(count, np.complex64)
        values[0] = complex(-0.0, -0.0)
        if case == "zeros":
            values[:] = values[0]
        function = ta.sum if case == "zeros" else ta.prod
        for first in (values[0], complex(np.inf, 1)):
            values[0] = first
            x = ta.asarray(values)
            expected, found = function(x), function(x.to_device(device))
            compare(expected.real, found.real, f"{case}: {count} real parts")
            compare(expected.imag, found.imag, f"{case}: {count} imaginary parts")


@pytest.mark.parametrize("seed", [3, 4])
def test_functions_of_several_reductions_run_on_the_emulated_gpu(process, seed):
    process.pool.submit(_compare_composed, seed).result()


def _compare_composed(seed: int) -> None:
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.reductions import compare, drawn_array, drawn_shape, drawn_view

    import tilearray as ta

    norm, device, rng = ta.linalg.vector_norm, emulated_device(), np.random.default_rng(seed)
    functions = {
        "softmax": ta.softmax,
        "log_softmax": ta.log_softmax,
        "logsumexp": ta.logsumexp,
        **{f"norm {ord}": lambda x, axis, ord=ord: norm(x, axis=axis, ord=ord) for ord in (0, 1, 5, np.inf, -np.inf)},
        "sum_to_shape": lambda x, axis: ta.sum_to_shape(x, (1,) * x.ndim),
        "max with initial": lambda x, axis: ta.max(x, axis=axis, initial=1),
        "add.reduce": lambda x, axis: ta.add.reduce(x, axis=axis, initial=2),
    }
    for name, function in functions.items():
        for dtype in ("uint8", "float16", "bfloat16", "float32", "float64"):
            values = drawn_array(rng, dtype, drawn_shape(rng, 200))
            state = rng.bit_generator.state
            mine = drawn_view(rng, ta.asarray(values, device="cpu"))
            rng.bit_generator.state = state
            other = drawn_view(rng, ta.asarray(values, device=device))
            axis = int(rng.integers(-mine.ndim, mine.ndim))
            before = device.backend.launches
            expected, found = function(mine, axis=axis), function(other, axis=axis)
            assert device.backend.launches > before or name == "sum_to_shape"
            compare(expected, found, f"{name} {dtype} {mine.shape} {mine.strides} axis={axis}")


def _compare_zeros(device: Any) -> None:
    """The largest and smallest of zeros of both signs, and an initial zero, along both axes."""
    import numpy as np
    from support.oracles.reductions import compare

    import tilearray as ta

    rng = np.random.default_rng(5)
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        for shape in ((40, 3), (3, 40), (7, 1), (600, 2)):
            x = ta.asarray(rng.choice([0.0, -0.0, -0.0], shape)).astype(dtype)
            there = x.to_device(device)
            for function in (ta.max, ta.min):
                for axis in (None, 0, 1):
                    for initial in (None, 0.0, -0.0):
                        expected = function(x, axis=axis, initial=initial)
                        compare(expected, function(there, axis=axis, initial=initial), f"{dtype} {shape} {axis}")


def test_groups_of_lanes_have_the_bits_of_the_host(process):
    x, y = ta.empty((5, 1100), dtype="float32", device="cpu"), ta.empty((1100, 5), dtype="float32", device="cpu")
    launches = ta.explain(ta.fuse(partial(crossed, ta.sum)), x, y, arch=90).launches
    assert "GROUPS = 2, 16 warps" in launches[0].kernel.source
    process.pool.submit(_compare_groups).result()


def test_crossed_words_are_read_by_asynchronous_copies(process):
    """Of two aligned arrays of 4-byte elements, on GPUs with enough shared memory."""
    x = ta.empty((16384, 16384), dtype="float32", device="cpu")
    for arch, dtype in ((90, "float32"), (80, "float32"), (90, "float64")):
        y = ta.empty((16384, 16384), dtype=dtype, device="cpu")
        (launch,) = ta.explain(ta.fuse(partial(crossed, ta.sum)), x, y, arch=arch).launches
        copied = arch == 90 and dtype == "float32"
        assert ("num_stages=5" in launch.kernel.source) is copied
        assert launch.kernel.code.spills == 0
        assert (launch.kernel.code.shared == 128 * 1024) is copied
    process.pool.submit(_compare_copied).result()


@pytest.mark.parametrize(
    ("name", "dtype", "length", "warps"),
    [
        ("sum", "bfloat16", 16384, 4),
        ("var", "float32", 16384, 4),
        ("sum", "float32", 16384, 8),
        ("max", "int32", 16384, 8),
        ("sum", "float64", 16384, 8),
        ("sum", "complex64", 16384, 8),
        ("sum", "uint8", 16384, 1),
        ("var", "float32", 4096, 1),
        ("sum", "float32", 4096, 1),
    ],
)
def test_several_warps_share_long_rows(name, dtype, length, warps):
    x = ta.empty((16384, length), dtype=dtype, device="cpu")
    (launch,) = ta.explain(partial(getattr(ta, name), axis=1), x, arch=90).launches
    assert launch.kernel.warps == warps
    assert launch.kernel.code.spills == 0


@pytest.mark.parametrize(("name", "dtype"), [("sum", "bfloat16"), ("max", "float16")])
def test_several_warps_share_segments_of_two_bytes(name, dtype):
    x = ta.empty((16384, 16384), dtype=dtype, device="cpu")
    first = ta.explain(getattr(ta, name), x, arch=90).launches[0]
    assert (first.kernel.tile[1], first.kernel.warps) == (512, 4)
    assert first.kernel.code.spills == 0


@pytest.mark.parametrize(("name", "dtype"), [("sum", "float64"), ("min", "int64"), ("prod", "complex64")])
def test_sixteen_warps_share_segments_of_all_elements_of_8_bytes(process, name, dtype):
    x = ta.empty((2**27,), dtype=dtype, device="cpu")
    first, last = ta.explain(getattr(ta, name), x, arch=90).launches
    assert [(each.kernel.tile[1], each.kernel.warps >= 16) for each in (first, last)] == [(1024, True), (1024, False)]
    assert first.kernel.code.spills == 0
    process.pool.submit(_compare_segments, name, dtype).result()


def _compare_segments(name: str, dtype: str) -> None:
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.trees import bits

    x = ta.asarray(np.random.default_rng(3).normal(size=20_000) * 50).astype(dtype)
    assert bits(getattr(ta, name)(x.to_device(emulated_device()))) == bits(getattr(ta, name)(x))


def _compare_copied() -> None:
    """Few rows, which tiles of fewer results read by copies."""
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.trees import bits

    from tilearray_cuda.kernels.schedules import reduce
    from tilearray_cuda.kernels.schedules.schedule import Tile

    device, rng, answers = emulated_device(), np.random.default_rng(2), list[bool]()
    before = reduce.COPIED_TILE, reduce._copies_ahead
    reduce.COPIED_TILE = Tile(8, 64, 8, 5)
    reduce._copies_ahead = lambda *given: answers.append(before[1](*given)) or answers[-1]
    try:
        for dtype, length in (("float32", 1104), ("int32", 2100)):
            x, y = (ta.asarray(rng.normal(size=shape) * 50).astype(dtype) for shape in ((8, length), (length, 8)))
            found = ta.fuse(partial(crossed, ta.sum))(x.to_device(device), y.to_device(device))
            assert bits(found) == bits(crossed(ta.sum, x, y)), dtype
        assert answers == [True, True]
    finally:
        reduce.COPIED_TILE, reduce._copies_ahead = before


def _compare_groups() -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.rows_on_device import check_groups

    check_groups(emulated_device())
