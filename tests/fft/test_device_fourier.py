"""`ta.fft` on a device with transforms: a stand-in of cuFFT in NumPy checks the arguments and the layouts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.oracles.transforms import check_transforms

import tilearray as ta

pytest.importorskip("tilearray_cuda.runtime.driver", reason="cuda-python is not installed")

from support.fake_cublas import FakeGpu
from support.fake_cufft import FakeTransforms

from tilearray_cuda.libraries import cufft, strides


@pytest.fixture
def gpu(elsewhere):
    elsewhere.backend = FakeGpu()
    elsewhere.backend.transforms = FakeTransforms(elsewhere.backend)
    return elsewhere


@pytest.mark.parametrize("seed", range(3))
def test_all_transforms(gpu, seed, monkeypatch):
    monkeypatch.setattr(cufft, "call", lambda *arguments: None)
    check_transforms(gpu, seed, 200)
    library = gpu.backend.transforms.library
    assert library.runs > 200
    assert len(library.plans) <= cufft.PLANS_KEPT < library.made


def test_dense_operands_are_not_copied(gpu):
    """One transform and nothing else, along any axes of one or two neighbours."""
    x = ta.asarray(np.ones((4, 6, 8), "complex64"), device=gpu)
    y = ta.asarray(np.ones((4, 6, 8), "float32"), device=gpu)
    library, launches = gpu.backend.transforms.library, []
    bound = gpu.backend.bind

    def bind(*given):
        launches.append(given)
        return bound(*given)

    gpu.backend.bind = bind
    for call in (
        lambda: ta.fft.fft(x),
        lambda: ta.fft.fft(x, axis=0),
        lambda: ta.fft.fft(x, axis=1),
        lambda: ta.fft.fft2(x),
        lambda: ta.fft.fftn(x),
        lambda: ta.fft.fftn(x, axes=(0, 1)),
        lambda: ta.fft.fft2(ta.permute_dims(x, (2, 1, 0))),
        lambda: ta.fft.rfft(y),
        lambda: ta.fft.rfftn(y),
        lambda: ta.fft.fft(x[:, ::2]),
    ):
        call()
    assert launches == []
    assert library.runs == 10 + 3  # along axis 1 a call for each of the four planes


def test_recordings_end_before_a_library_reads(gpu):
    x = ta.asarray(np.ones(4, "complex64"), device=gpu)
    with ta.lazy():
        found = ta.fft.fft(x * 2.0) + 1.0
        copied = ta.fft.fft((x * 2.0)[::-1])  # which the library does not read as it lies
    assert found.tolist() == [9, 1, 1, 1]
    assert copied.tolist() == [8, 0, 0, 0]


def test_plans_are_kept(gpu):
    x = ta.asarray(np.ones((4, 8), "complex64"), device=gpu)
    for _ in range(3):
        ta.fft.fft(x)
        ta.fft.ifft(x)
    assert gpu.backend.transforms.library.made == 1


def test_empty_operands(gpu):
    x = ta.zeros((0, 4), dtype="complex64", device=gpu)
    assert ta.fft.fft(x).shape == (0, 4)
    assert ta.fft.irfft(x).shape == (0, 6)
    assert ta.fft.fft(x, n=3, axis=0).tolist() == [[0] * 4] * 3
    assert gpu.backend.transforms.library.runs == 1


@pytest.mark.parametrize("semantics", ["array-api", "triton", "cutile", "torch", "numpy"])
def test_every_semantics_computes(gpu, semantics):
    x = ta.asarray(np.ones((4, 4), "float32"), device=gpu)
    with ta.semantics(semantics):
        assert ta.fft.irfft(ta.fft.rfft(x, norm="ortho"), norm="ortho").dtype.name == "float32"


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.lists(st.integers(-3, 9), min_size=3, max_size=3))
def test_boxes_describe_strides(sizes, factors):
    """Each index of a box is at the place that the strides say, for strides that nest; others are refused."""
    steps = []
    for factor in reversed(factors[: len(sizes)]):
        steps.append(factor * (steps[-1] if steps else 1))
    steps = tuple(reversed(steps))
    found = strides.box(tuple(sizes), steps)
    nests = all(
        outer >= size * inner
        for size, outer, inner, wide in zip(sizes[1:], steps, steps[1:], sizes)
        if size > 1 and wide > 1
    )
    if found is None:
        assert not nests or any(step <= 0 for step, size in zip(steps, sizes) if size > 1) or 1 in sizes
        return
    embed, step = found
    for index in np.ndindex(*sizes):
        place = 0
        for at, size in zip(index, (1, *embed[1:])):
            place = place * size + at
        assert place * step == sum(i * s for i, s in zip(index, steps))
