"""Selections on an emulated GPU, against NumPy; and their kernels, which the compiler takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.kernels import needs_triton

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize(("seed", "count", "elements"), [(1, 50, 60), (2, 15, 20_000)])
def test_selections_are_numpys(process, seed, count, elements):
    process.pool.submit(_compare, seed, count, elements).result()


def _compare(seed: int, count: int, elements: int) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.selection import check_selections

    check_selections(emulated_device(), seed, count, elements)


@pytest.mark.parametrize("name", ["check_keys", "check_refusals", "check_names"])
def test_on_the_device(process, name):
    process.pool.submit(_on_the_device, name).result()


def _on_the_device(name: str) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles import selection

    getattr(selection, name)(emulated_device())


def test_launches_and_plans(process):
    process.pool.submit(_count).result()


def _count() -> None:
    """A selection is three launches, of which two count; if nothing is chosen, two."""
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device = emulated_device()
    x = ta.arange(10, device=device)
    for act, launches in [
        (lambda: x[x > 4], 4),
        (lambda: ta.nonzero(x), 3),
        (lambda: x[x > 40], 3),
        (lambda: x[np.arange(10) > 4], 1),
    ]:
        for _ in range(2):
            before = device.backend.launches
            act()
            assert device.backend.launches - before == launches


def _sources(operation: Any, given: tuple[str, ...], shape: tuple[int, ...], strides: Any = None) -> list[Any]:
    """The sources of a selection from aligned arrays."""
    from support.oracles.formats import dtype_of

    from tilearray.engine.stages import split_selection
    from tilearray.geometry.selection import make_selection
    from tilearray.geometry.strides import dense_strides
    from tilearray.promotion.systems import ARRAY_API
    from tilearray_cuda.kernels.schedules import choose
    from tilearray_cuda.kernels.source import source_of
    from tilearray_cuda.kernels.spec import make_spec

    whole = operation.expression(ARRAY_API, tuple(map(dtype_of, given)), None)
    halves, nowhere = split_selection(whole), (0,) * len(shape)
    walked = strides or [dense_strides(shape)] * len(given)
    merges = operation.axes is None
    loops = [
        make_selection(shape, [nowhere], [walked[place] for place in halves.first_reads]),
        make_selection(shape, [nowhere], [nowhere]),
        make_selection(
            shape, [nowhere] * (len(whole.outputs) + 1), [walked[place] for place in halves.second_reads], merges=merges
        ),
    ]
    return [
        source_of(choose.schedule_of(make_spec(half, choose.loop_class(loop), (True,) * len(loop.strides)), 90))
        for half, loop in zip((halves.first, halves.between, halves.second), loops, strict=True)
    ]


@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "float32", "float8_e5m2", "complex128"])
@pytest.mark.parametrize("shape", [(300, 200), (70_000, 70_000)])
def test_the_compiler_takes_selections(dtype, shape):
    from tilearray.ops.selection import elements, positions
    from tilearray_cuda.kernels.compile import cubin_of

    for operation, given in ((elements, ("bool", dtype)), (positions(2), (dtype,))):
        assert all(cubin_of(source, 90).code for source in _sources(operation, given, shape))


@pytest.mark.parametrize("shape", [(300, 200), (300, 5000)])
def test_threads_keep_their_elements(shape):
    """A condition is read once, in vectors; from its bits a warp makes a list, in memory that assembly declares."""
    from tilearray.ops.selection import positions
    from tilearray_cuda.kernels.compile import compile_source

    counts, starts, stores = _sources(positions(2), ("float32",), shape)
    assert ("i0 = rest" in stores.text) == (shape == (300, 200))  # in long rows, indices of a block are two rows'
    assert ("i0 = tl.where(wraps, next, this)" in stores.text) == (shape == (300, 5000))
    assert compile_source(stores, 90).shared == 0
    assert "ld.global.v4" in compile_source(counts, 90).ptx
    assert [source.label for source in (counts, starts, stores)] == [
        "count_selection float32 -> int32",
        "starts_selection int32 -> int64",
        "store_selection int32 -> int64 int64",
    ]


def test_long_rows_are_numpys(process):
    process.pool.submit(_compare_long_rows).result()


def _compare_long_rows() -> None:
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device, rng = emulated_device(), np.random.default_rng(2)
    for shape, share in (((3, 4100), 0.5), ((2, 3, 4099), 0.01)):
        mask, host = rng.random(shape) < share, rng.normal(size=shape)
        condition, x = ta.asarray(mask).to_device(device), ta.asarray(host).to_device(device)
        for found, wanted in zip(ta.nonzero(condition), np.nonzero(mask), strict=True):
            assert ta.to_numpy(found).tolist() == wanted.tolist()
        assert ta.to_numpy(x[condition]).tolist() == host[mask].tolist()
        assert ta.to_numpy(x[..., 1:][condition[..., 1:]]).tolist() == host[..., 1:][mask[..., 1:]].tolist()
        assert ta.count_nonzero(condition[..., 1:]).item() == mask[..., 1:].sum()


@pytest.mark.parametrize("dtype", ["bool", "float8_e5m2", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_elements_of_dense_and_sparse_blocks(process, dtype):
    process.pool.submit(_compare_shares, dtype).result()


def _compare_shares(dtype: str) -> None:
    """Blocks of which most elements are chosen are packed, others are read by a list, and so is the last one."""
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.formats import dtype_of

    import tilearray as ta

    device, rng, size = emulated_device(), np.random.default_rng(8), 3 * 4096 + 1000
    shares = np.repeat([0.6, 0.01, 1.0, 0.9], 4096)[:size]
    mask, numpy_dtype = rng.random(size) < shares, dtype_of(dtype)
    nbytes = rng.integers(0, 2 if dtype == "bool" else 256, size * numpy_dtype.itemsize).astype(np.uint8)
    x, condition = (ta.asarray(each).to_device(device) for each in (nbytes.view(numpy_dtype), mask))
    wanted = nbytes.view(f"V{numpy_dtype.itemsize}")[mask]
    assert ta.to_numpy(x[condition]).tobytes() == wanted.tobytes()
    wanted = nbytes.view(f"V{numpy_dtype.itemsize}")[3:][mask[3:]]
    assert ta.to_numpy(x[3:][condition[3:]]).tobytes() == wanted.tobytes()


@pytest.mark.parametrize(("size", "most"), [(5 * 4096 + 7, 3), (4 * 4096, 2), (7 * 4096 + 1, 1)])
def test_segments_of_several_blocks(process, size, most):
    process.pool.submit(_compare_segments, size, most).result()


def _compare_segments(size: int, most: int) -> None:
    from unittest import mock

    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta
    from tilearray.engine import caches
    from tilearray.geometry.selection import make_selection

    device, rng = emulated_device(), np.random.default_rng(size)
    mask, host = rng.random(size) < 0.3, rng.integers(0, 100, size).astype(np.int16)
    mask[4096:9000] = False
    mask[9000:12_500] = True
    condition, x = (ta.asarray(each).to_device(device) for each in (mask, host))
    caches.PLANS.clear()
    with mock.patch.dict(make_selection.__kwdefaults__, most=most):
        assert make_selection((size,), [], [(1,)]).segments.total == most
        np.testing.assert_array_equal(ta.to_numpy(x[condition]), host[mask])
        np.testing.assert_array_equal(ta.to_numpy(ta.nonzero(condition)[0]), np.nonzero(mask)[0])
    caches.PLANS.clear()


def test_sizes_do_not_change_the_kernels():
    from tilearray.ops.selection import elements

    given, strides = ("bool", "float32"), [(300, 1), (1, 400)]
    for shapes in ([(n,) for n in (5, 5000, 3_000_001)], [(400, n) for n in (7, 299)]):
        rows = strides if len(shapes[0]) > 1 else None
        texts = {tuple(source.text for source in _sources(elements, given, shape, rows)) for shape in shapes}
        assert len(texts) == 1
