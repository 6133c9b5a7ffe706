"""`ta.fft` on the GPU through cuFFT, against NumPy."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from support.oracles.transforms import check_transforms

import tilearray as ta

pytestmark = pytest.mark.skipif(importlib.util.find_spec("nvmath") is None, reason="nvmath-python is not installed")


@pytest.mark.parametrize("seed", range(8))
def test_all_transforms(seed):
    """More layouts than plans are kept."""
    check_transforms("cuda", 100 + seed, 100)


@pytest.mark.parametrize("size", [1000, 1009, 4096, 65537, 2**20])
def test_long_transforms(size):
    """Also of primes."""
    rng = np.random.default_rng(size)
    values = rng.normal(size=size) + 1j * rng.normal(size=size)
    for name, eps in (("complex64", 2e-6), ("complex128", 2e-15)):
        x = ta.astype(ta.asarray(values, device="cuda"), name)
        exact = ta.to_numpy(ta.astype(x, "complex128"))
        wanted = np.fft.fft(exact)
        bound = eps * np.linalg.norm(wanted)
        assert np.abs(ta.to_numpy(ta.fft.fft(x)) - wanted).max() < bound
        assert np.abs(ta.to_numpy(ta.fft.ifft(ta.fft.fft(x))) - exact).max() < 20 * eps
        real = ta.fft.rfft(x.real)
        assert np.abs(ta.to_numpy(real) - np.fft.rfft(exact.real)).max() < bound
        assert np.abs(ta.to_numpy(ta.fft.irfft(real, n=size)) - exact.real).max() < 20 * eps


def test_batches_and_several_axes():
    rng = np.random.default_rng(4)
    values = rng.normal(size=(5, 64, 96)) + 1j * rng.normal(size=(5, 64, 96))
    x = ta.asarray(values, device="cuda")
    for axes in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (2, 0), (0, 1, 2)):
        wanted = np.fft.fftn(values, axes=axes)
        assert np.abs(ta.to_numpy(ta.fft.fftn(x, axes=axes)) - wanted).max() < 1e-11, axes
        wanted = np.fft.irfftn(values, axes=axes)
        assert np.abs(ta.to_numpy(ta.fft.irfftn(x, axes=axes)) - wanted).max() < 1e-11, axes
        wanted = np.fft.rfftn(values.real, axes=axes)
        assert np.abs(ta.to_numpy(ta.fft.rfftn(x.real, axes=axes)) - wanted).max() < 1e-11, axes


@pytest.mark.parametrize("shape", [(6, 10), (257, 129), (1000, 1024), (1024, 2049), (2048, 2048), (2100, 2100)])
def test_real_planes_of_both_layouts(shape):
    """One transform, or one for each axis, or a copy before; each call twice, as the second one is planned."""
    rng = np.random.default_rng(5)
    values = rng.normal(size=shape).astype("float32")
    halves = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype("complex64")
    for function, host in ((ta.fft.rfft2, values), (ta.fft.irfft2, halves)):
        wanted = getattr(np.fft, function.__name__)(host)
        x = ta.asarray(host, device="cuda")
        for given in (x, ta.asarray(np.ascontiguousarray(host.T), device="cuda").T):
            for _ in range(2):
                found = ta.to_numpy(function(given))
                assert np.abs(found - wanted).max() < 1e-5 * np.abs(wanted).max()
            np.testing.assert_array_equal(ta.to_numpy(given), host)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((16384, 33), 0), ((9000, 64), 0), ((3, 10007, 8), 1), ((16384, 2, 3), 0), ((4096, 33), 0), ((1000, 70), 0),
        ((2000, 33), 0), ((3000, 2, 3), 0), ((40, 256, 30), 1), ((3, 2048, 5), 1),
    ],
)  # fmt: skip
def test_axes_that_are_not_the_fastest(shape, axis):
    """Each call twice, as the second one is planned, and then in a graph."""
    rng = np.random.default_rng(8)
    values = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    for name, real, eps in (("complex64", "float32", 1e-5), ("complex128", "float64", 1e-13)):
        for function, dtype in (("fft", name), ("ifft", name), ("rfft", real), ("irfft", name)):
            host = (values if dtype == name else values.real).astype(dtype)
            x, wanted = ta.asarray(host, device="cuda"), getattr(np.fft, function)(host, axis=axis)
            transform = getattr(ta.fft, function)
            for _ in range(2):
                found = transform(x, axis=axis)
                assert np.abs(ta.to_numpy(found) - wanted).max() < eps * np.abs(wanted).max()
            np.testing.assert_array_equal(ta.to_numpy(x), host)
            with ta.cuda.graph() as g:
                captured = transform(x, axis=axis)
            x[...] = x * 2.0
            g.replay()
            assert np.abs(ta.to_numpy(captured) - 2 * wanted).max() < 2 * eps * np.abs(wanted).max()


def test_misaligned_real_operands():
    x = ta.asarray(np.arange(65.0, dtype="float32"), device="cuda")
    for start in range(4):
        wanted = np.fft.rfft(np.arange(start, 65.0))
        assert np.abs(ta.to_numpy(ta.fft.rfft(x[start:])) - wanted).max() < 1e-2


def test_streams_and_graphs():
    x = ta.ones((8, 256), dtype="complex64", device="cuda")
    for stream in [ta.cuda.Stream() for _ in range(3)]:
        with ta.cuda.stream(stream):
            assert ta.all(ta.fft.fft(x)[:, 0] == 256)
    with ta.cuda.graph() as g:
        y = ta.fft.ifft(ta.fft.fft(x))
    for value in (2.0, 3.0):
        x[...] = value
        g.replay()
        assert ta.all(ta.abs(y - value) < 1e-5)


def test_nan_stays_in_its_row():
    x = np.ones((3, 8))
    x[1, 2] = np.nan
    found = np.isnan(ta.to_numpy(ta.fft.fft(ta.asarray(x, device="cuda"))))
    assert found.tolist() == [[False] * 8, [True] * 8, [False] * 8]
