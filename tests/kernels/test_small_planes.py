"""Stacks of small planes: a program has many of them, and finds each element's indices by divisions."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import needs_triton

import tilearray as ta

pytestmark = needs_triton

STACKS = {
    "outer products": (lambda x, y: x[..., None] * y[..., None, :], (2100, 3), (2100, 4)),
    "transposed": (lambda x, y: x + y.mT, (2100, 3, 4), (2100, 4, 3)),
    "rows of each plane": (lambda x, y: x - y[:, None], (2100, 5, 3), (2100, 3)),
    "inner slices": (lambda x, y: x[:, 1:-1, 1:-1] + y[:, :-2, 2:], (2100, 5, 6), (2100, 5, 6)),
    "reversed": (lambda x, y: x[::-1, ::-1, ::-1] * y[:, ::-1, :], (2100, 3, 3), (2100, 3, 3)),
    "two stacks": (lambda x, y: x[:, None, :, None] * y[None, :, None, :], (50, 3), (60, 4)),
    "pairs": (lambda x, y: x[:, None] * y[None], (60, 3), (70, 3)),
    "columns": (lambda x, y: x[:, :4] * y[:, 1:], (2100, 6), (2100, 5)),
    "reversed columns": (lambda x, y: x[:, ::-1] * y[::-1], (2100, 3), (2100, 3)),
    "rows across": (lambda x, y: x.T * y, (3, 2100), (2100, 3)),
    "repeated": (lambda x, y: x.repeat(4, axis=0) + y[0, 0], (2100, 10), (1, 1)),
}
"""A function, and the shapes of its two arrays."""


@pytest.mark.parametrize("case", STACKS)
def test_results_are_numpys(process, case):
    process.pool.submit(_compare, case).result()


def _compare(case: str) -> None:
    from support.interpreter.emulated_gpu import emulated_device

    from tilearray_cuda.kernels.schedules import small_planes

    function, *shapes = STACKS[case]
    rng, device, chosen = np.random.default_rng(8), emulated_device(), list[str]()
    fits = small_planes.SmallPlanes.fits
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_planes, "MANY_ROWS", 1024)
        patch.setattr(small_planes.SmallPlanes, "fits", lambda *given: chosen.append(case) or fits(*given))
        for dtype in ("bool", "int8", "float16", "float32", "float64", "complex64", "complex128"):
            hosts = [(rng.normal(size=shape) * 9).astype(dtype) for shape in shapes]
            if dtype == "bool" and case == "rows of each plane":  # NumPy has no difference of truth values
                continue
            arrays = [ta.asarray(host, device=device) for host in hosts]
            views = [host.swapaxes(-1, -2) if case == "transposed" and k else host for k, host in enumerate(hosts)]
            plain = (lambda x, y: x + y) if case == "transposed" else function
            found = ta.to_numpy(function(*arrays))
            np.testing.assert_array_equal(found, plain(*views).astype(found.dtype))
    assert chosen


def test_programs_have_many_planes():
    """Other stacks have a program for each plane, or rows and columns that are looked up."""
    for shapes, schedule, programs in (
        (((10**6, 3, 1), (10**6, 1, 3)), "small_planes", 17579),
        (((10**5, 12, 1), (10**5, 1, 10)), "small_planes", 23438),
        (((10**5, 30, 1), (10**5, 1, 30)), "rows", 10**5),
        (((100, 3, 1), (100, 1, 3)), "rows", 100),
        (((10**6, 3, 3), (3, 3)), "lookup", 8790),
        (((2000, 1, 3), (1, 2000, 3)), "small_planes", 23438),
        (((2000, 1, 8), (1, 2000, 8)), "rows", 64000),
    ):
        arrays = [ta.empty(shape, dtype="float32", device="cpu") for shape in shapes]
        (launch,) = ta.explain(lambda x, y: x * y, *arrays, arch=90).launches
        assert (launch.kernel.schedule, launch.kernel.programs) == (schedule, programs), shapes


@pytest.mark.slow
@pytest.mark.parametrize("arch", [80, 90, 100])
def test_indices_of_64_bits_compile(arch):
    """More than 2**31 elements."""
    x, y = (ta.broadcast_to(ta.empty(shape, device="cpu"), whole) for shape, whole in (
        ((2**28, 3, 1), (2**28, 3, 3)), ((2**28, 1, 3), (2**28, 3, 3)),
    ))  # fmt: skip
    (launch,) = ta.explain(lambda x, y: x * y, x, y, arch=arch).launches
    assert launch.kernel.schedule == "small_planes"
    assert "tl.uint64" in launch.kernel.source
    assert launch.kernel.code.loads
