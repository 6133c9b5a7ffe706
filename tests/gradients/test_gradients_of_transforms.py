"""Gradients of Fourier transforms: the differences of results, and those of torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.oracles.derivatives import checked

import tilearray as ta
from tilearray import fft

RNG = np.random.default_rng(29)
X = RNG.standard_normal((4, 3))
Z = X + 1j * RNG.standard_normal((4, 3))
OF_ALL: dict[str, Any] = {
    "fft": fft.fft,
    "padded": lambda x: fft.fft(x, 5) ** 2,
    "cut": lambda x: fft.fft(x, 2, axis=0, norm="ortho"),
    "ifft": lambda x: fft.ifft(x) * x,
    "fft2": lambda x: fft.fft2(x, norm="ortho") ** 2,
    "fftn": lambda x: fft.fftn(x, norm="forward") ** 2,
    "ifftn": lambda x: fft.ifftn(x, (2, 5), norm="forward"),
    "irfft": lambda x: fft.irfft(x) ** 2,
    "odd irfft": lambda x: fft.irfft(x, 5, axis=0),
    "irfftn": lambda x: fft.irfftn(x, (5, 4), norm="ortho") ** 2,
    "hfft": lambda x: fft.hfft(x, norm="ortho") ** 2,
    "odd hfft": lambda x: fft.hfft(x, 7),
}  # fmt: skip
OF_REAL: dict[str, Any] = {
    "rfft": fft.rfft,
    "padded rfft": lambda x: fft.rfft(x, 5) ** 2,
    "cut rfft": lambda x: fft.rfft(x, 2, axis=0),
    "rfftn": lambda x: fft.rfftn(x, (6, 3), norm="ortho") ** 2,
    "ihfft": lambda x: fft.ihfft(x, 4) ** 2,
    "spectrum": lambda x: ta.abs(fft.rfft2(x)) ** 2,
    "filtered": lambda x: fft.irfft(fft.rfft(x, axis=0) * ta.asarray([[1.0], [0.5], [0.0]]), 4, axis=0),
}  # fmt: skip


@pytest.mark.parametrize("name", [*OF_ALL, *OF_REAL])
def test_gradients_of_real_arrays_are_the_differences_of_results(name: str):
    checked((OF_ALL | OF_REAL)[name], X)


@pytest.mark.parametrize("name", OF_ALL)
def test_gradients_of_complex_arrays_are_the_differences_of_results(name: str):
    checked(OF_ALL[name], Z)


@pytest.mark.parametrize("name", ["spectrum", "filtered"])
def test_gradients_of_gradients_are_the_differences_of_gradients(name: str):
    checked(lambda x: ta.grad(lambda x: ta.sum(ta.sin(OF_REAL[name](x))))(x), X)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_gradients_are_those_of_torch(name: str, norm: Any):
    torch = pytest.importorskip("torch")
    x = X if name in ("rfft", "ihfft") else Z
    leaf = torch.from_numpy(x).requires_grad_()
    expected = getattr(torch.fft, name)(leaf, norm=norm)
    g = np.random.default_rng(2).standard_normal(expected.shape)
    g = g + 1j * g[::-1] if expected.is_complex() else g
    expected.backward(torch.from_numpy(g))
    _, pull = ta.vjp(lambda x: getattr(fft, name)(x, norm=norm), ta.asarray(x))
    np.testing.assert_allclose(
        ta.to_numpy(pull(ta.asarray(g))[0]), leaf.grad.resolve_conj().numpy(), rtol=1e-10, atol=1e-12
    )


def test_gradients_come_in_the_dtype_of_the_operand():
    x = ta.asarray([1.0, 2.0, 3.0, 4.0], dtype="float16")
    gradient = ta.grad(lambda x: ta.sum(ta.abs(fft.rfft(x)) ** 2))(x)
    assert gradient.dtype == ta.float16
    assert gradient.tolist() == [12.0, 20.0, 20.0, 28.0]


def test_errors_are_those_of_the_function():
    with pytest.raises(ta.DTypeError, match=r"fft.rfft: expected a real array, got complex128"):
        ta.vjp(fft.rfft, ta.asarray(Z))
    with pytest.raises(ta.ShapeError, match=r"fft.fft: expected norm as 'backward', 'ortho' or 'forward'"):
        ta.vjp(lambda x: fft.fft(x, norm="none"), ta.asarray(Z))
