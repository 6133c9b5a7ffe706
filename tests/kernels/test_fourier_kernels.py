"""Transforms that launch kernels of ours, on an emulated GPU whose cuFFT is NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import needs_triton

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize("name", ["complex64", "complex128"])
@pytest.mark.parametrize("apart", [0, 40 * 64])
def test_inverse_real_transforms_are_a_launch_and_a_pass_or_two(process, name, apart):
    process.pool.submit(_transform, name, apart).result()


def _transform(name: str, apart: int) -> None:
    """They ignore the imaginary parts that do not count, and leave their operand as it is."""
    from unittest import mock

    from tilearray.engine.caches import TwoGenerations
    from tilearray.fft import device_fourier, transforms

    known = TwoGenerations(64)
    with mock.patch.object(device_fourier, "APART", apart), mock.patch.object(transforms, "_KNOWN", known):
        _transform_some(name, apart > 0)


def _transform_some(name: str, is_apart: bool) -> None:
    from support.fake_cufft import FakeTransforms
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device = emulated_device()
    device.backend.transforms = FakeTransforms(device.backend)
    rng = np.random.default_rng(2)
    for shape, last in (((6, 5), 8), ((6, 5), 9), ((3, 4, 5), 8), ((1, 1), 1), ((5, 2), 2), ((40, 33), 64)):
        host = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(name)
        x = ta.asarray(host, device=device)
        turned = ta.asarray(np.ascontiguousarray(host.T), device=device).T  # as large transforms of real numbers lie
        wide = ta.asarray(np.repeat(host, 2, -1), device=device)[..., ::2]
        for norm in ("backward", "ortho", "forward"):
            for transform, size in ((ta.fft.irfft2, (shape[-2], last)), (ta.fft.irfft, last)):
                wanted = getattr(np.fft, transform.__name__)(host, size, norm=norm)
                both = len(shape) == 2 and transform is ta.fft.irfft2
                for given in (x, turned, wide) if both else (x,):
                    launches, runs = device.backend.launches, device.backend.transforms.library.runs
                    found = transform(given, size, norm=norm)
                    are_apart = is_apart and not given._signature.layout.contiguous
                    assert device.backend.transforms.library.runs - runs == 1 + are_apart
                    assert device.backend.launches - launches <= (1 if given is x or is_apart else 3)
                    np.testing.assert_allclose(ta.to_numpy(found), wanted, atol=2e-5 if name == "complex64" else 1e-13)
        np.testing.assert_array_equal(ta.to_numpy(x), host)
    endless = ta.asarray(np.array([complex(3, np.inf), 0, 0], name), device=device)
    np.testing.assert_allclose(ta.to_numpy(ta.fft.irfft(endless)), 0.75)


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_long_axes_are_a_copy_and_a_pass(process, name):
    process.pool.submit(_transform_long, name).result()


def _transform_long(name: str) -> None:
    """The copy of tiles also scales complex numbers, and takes inf as it is."""
    from unittest import mock

    from support.fake_cufft import FakeTransforms
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta
    from tilearray.engine.caches import TwoGenerations
    from tilearray.fft import device_fourier, transforms

    device = emulated_device()
    device.backend.transforms = FakeTransforms(device.backend)
    rng = np.random.default_rng(2)
    with (
        mock.patch.object(device_fourier, "STEPPED", dict.fromkeys(device_fourier.STEPPED, (32, 32))),
        mock.patch.object(device_fourier, "_is_one_call", return_value=False),
        mock.patch.object(device_fourier, "REAL_BYTES", 0),
        mock.patch.object(transforms, "_KNOWN", TwoGenerations(64)),
    ):
        for shape, axis in (((70, 33), 0), ((2, 64, 40), 1), ((45, 2, 3), 0)):
            host = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(name)
            x, real = ta.asarray(host, device=device), ta.asarray(host.real.copy(), device=device)
            for norm in ("backward", "ortho"):
                for function, given in ((ta.fft.fft, x), (ta.fft.ifft, x), (ta.fft.rfft, real)):
                    wanted = getattr(np.fft, function.__name__)(ta.to_numpy(given), axis=axis, norm=norm)
                    for _ in range(2):
                        launches = device.backend.launches
                        found = function(given, axis=axis, norm=norm)
                        assert device.backend.launches - launches == 1 + (given is real and norm == "ortho")
                        assert found._signature.layout.strides[axis] == 1
                        near = 2e-5 if name == "complex64" else 1e-13
                        np.testing.assert_allclose(ta.to_numpy(found), wanted, rtol=near, atol=near)
        endless = np.zeros((64, 2), name)
        endless[0, 0] = complex(3, np.inf)
        found = ta.to_numpy(ta.fft.ifft(ta.asarray(endless, device=device), axis=0))
        np.testing.assert_array_equal(np.isnan(found), np.isnan(np.fft.fft(endless, axis=0)))
