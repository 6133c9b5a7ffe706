"""`ta.linalg` on the GPU through cuSOLVER, against NumPy."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from support.oracles.factors import CHECKS, DTYPES, Draw, check_errors, check_functions

import tilearray as ta

pytestmark = pytest.mark.skipif(importlib.util.find_spec("nvmath") is None, reason="nvmath-python is not installed")


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_functions(check, name):
    for case in range(4):
        check(Draw(500 + case, name, "cuda"))


@pytest.mark.parametrize("name", ["float32", "complex128"])
def test_drawn_functions(name):
    check_functions("cuda", name, 3, 4)


def test_errors_and_empty_matrices():
    check_errors("cuda")


def test_larger_matrices():
    """Where the library works in blocks."""
    rng = np.random.default_rng(3)
    for name, eps in (("float32", 2e-3), ("float64", 1e-9), ("complex64", 2e-3)):
        n = 700
        values = rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if name == "complex64" else 0)
        x = ta.astype(ta.asarray(values, device="cuda"), name)
        exact = ta.to_numpy(ta.astype(x, "complex128" if name == "complex64" else "float64"))
        identity = ta.to_numpy(ta.linalg.solve(x, x))
        assert np.abs(identity - np.eye(n)).max() < eps
        q, r = ta.linalg.qr(x)
        assert np.abs(ta.to_numpy(q @ r) - exact).max() < eps
        u, s, vh = ta.linalg.svd(x)
        assert np.abs(ta.to_numpy((u * s) @ vh) - exact).max() < eps
        whole = x + ta.conj(x).mT
        w, v = ta.linalg.eigh(whole)
        assert np.abs(ta.to_numpy(whole @ v - v * w)).max() < 10 * eps
        lower = ta.linalg.cholesky(x @ ta.conj(x).mT + 10 * n * ta.eye(n, dtype=name, device="cuda"))
        assert np.abs(ta.to_numpy(lower @ ta.conj(lower).mT - x @ ta.conj(x).mT)).max() < 10 * n + 100 * n * eps


def test_stacks():
    """Many small matrices in one call, and some larger ones in a loop."""
    rng = np.random.default_rng(6)
    for count, n in ((1000, 8), (50, 100), (3, 300)):
        values = rng.normal(size=(count, n, n)) + 3 * n**0.5 * np.eye(n)
        x: Any = ta.asarray(values, device="cuda")
        for name in ("float64", "float32"):
            y, eps = ta.astype(x, name), 1e-10 if name == "float64" else 1e-3
            assert np.abs(ta.to_numpy(ta.linalg.solve(y, y)) - np.eye(n)).max() < eps
            np.testing.assert_allclose(
                ta.to_numpy(ta.linalg.slogdet(y).logabsdet), np.linalg.slogdet(values)[1], rtol=eps, atol=n * eps
            )
            whole = y @ y.mT
            factor = ta.linalg.cholesky(whole)
            assert np.abs(ta.to_numpy(factor @ factor.mT - whole)).max() < 40 * n * eps
            w, v = ta.linalg.eigh(whole)
            assert np.abs(ta.to_numpy(whole @ v - v * w[:, None, :])).max() < 200 * n * eps
    singular = ta.asarray(np.stack([np.eye(4)] * 9 + [np.zeros((4, 4))]), device="cuda")
    with pytest.raises(ta.linalg.LinAlgError, match="invertible"):
        ta.linalg.inv(singular)
    assert ta.linalg.det(singular).tolist() == [1] * 9 + [0]


def test_streams():
    rng = np.random.default_rng(3)
    x: Any = ta.asarray(rng.normal(size=(5, 40, 40)) + 9 * np.eye(40), device="cuda")
    wanted = np.linalg.inv(ta.to_numpy(x))
    for stream in [ta.cuda.Stream() for _ in range(3)]:
        with ta.cuda.stream(stream):
            np.testing.assert_allclose(ta.to_numpy(ta.linalg.inv(x)), wanted, atol=1e-12)
