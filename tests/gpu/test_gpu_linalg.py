"""`ta.linalg` on the GPU through cuSOLVER, against NumPy."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from support.oracles.factors import CHECKS, DTYPES, Draw, check_errors, check_functions, check_svd, svd_kinds

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
    for count, n in ((1000, 8), (50, 100), (3, 300), (5, 400)):
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
    for n in (4, 32, 33, 100):
        singular = ta.asarray(np.stack([np.eye(n)] * 9 + [np.zeros((n, n))]), device="cuda")
        for call in (ta.linalg.inv, lambda x: ta.linalg.solve(x, x)):
            with pytest.raises(ta.linalg.LinAlgError, match="invertible"):
                call(singular)
        with pytest.raises(ta.linalg.LinAlgError, match="invertible"):
            ta.linalg.inv(singular[9])
        assert ta.linalg.det(singular).tolist() == [1] * 9 + [0]


SIZES = [1, 2, 3, 4, 7, 16, 31, 32, 33]


@pytest.mark.parametrize("name", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("m", SIZES)
def test_singular_values(name, m):
    """By all methods: of stacks and of single matrices, in several layouts."""
    for n in SIZES:
        kinds = svd_kinds(np.random.default_rng([m, n]), (m, n), name)
        x: Any = ta.asarray(kinds, device="cuda")
        check_svd(x)
        check_svd(x.mT)
        check_svd(ta.reshape(x, (2, 5, m, n))[::-1, ::2, ::-1])
        if m in (1, 3, 32, 33):
            for i in range(10):
                check_svd(x[i])
                check_svd(x[i : i + 1, :, ::-1])


@pytest.mark.parametrize("name", ["float32", "complex128"])
@pytest.mark.parametrize("shape", [(64, 64), (100, 3), (3, 100), (40, 200), (511, 512), (600, 20), (520, 520)])
def test_singular_values_of_larger_matrices(name, shape):
    check_svd(ta.asarray(svd_kinds(np.random.default_rng(5), shape, name), device="cuda"))


def test_singular_values_of_very_many_matrices():
    rng = np.random.default_rng(6)
    for shape in ((300000, 2, 2), (70000, 3, 1), (20000, 32, 32)):
        check_svd(ta.asarray(rng.normal(size=shape).astype("float32"), device="cuda"))


@pytest.mark.parametrize("shape", [(0, 3, 2), (4, 0, 3), (4, 3, 0), (0, 0), (2, 0, 0)])
def test_singular_values_of_nothing(shape):
    for full in (True, False):
        found = ta.linalg.svd(ta.zeros(shape, device="cuda"), full_matrices=full)
        wanted = np.linalg.svd(np.zeros(shape), full_matrices=full)
        assert [each.shape for each in found] == [each.shape for each in wanted]


def test_nonfinite_matrices_of_a_stack():
    for shape in ((50, 4, 4), (50, 40, 40), (1, 4, 4), (4, 600, 600)):
        for bad in (np.inf, np.nan):
            values = np.ones(shape)
            values[-1, 1, 2] = bad
            for call in (ta.linalg.svd, ta.linalg.svdvals, ta.linalg.pinv):
                with pytest.raises(ta.linalg.LinAlgError, match="does not converge"):
                    call(ta.asarray(values, device="cuda"))


@pytest.mark.parametrize("bad", [np.inf, np.nan])
@pytest.mark.parametrize("shape", [(3, 3), (50, 4, 4), (5000, 3, 3), (2, 3, 40, 40), (300, 300)])
def test_nonfinite_elements_count_where_they_are_read(shape, bad):
    values = np.broadcast_to(np.eye(shape[-1]), shape).copy()
    np.reshape(values, (-1, *shape[-2:]))[-1, 2, 1] = bad
    for name in ("float16", "float32", "float64", "complex64", "complex128"):
        x = ta.asarray(values.astype(name), device="cuda")
        for given, good in ((x, "U"), (x.mT, "L"), (x[..., ::-1, ::-1], "L")):
            w, v = ta.linalg.eigh(given, UPLO=good)
            np.testing.assert_allclose(ta.to_numpy(w), np.ones(shape[:-1]), rtol=1e-3)
            assert np.isfinite(ta.to_numpy(v)).all()
            for call in (ta.linalg.eigh, ta.linalg.eigvalsh):
                with pytest.raises(ta.linalg.LinAlgError, match="does not converge"):
                    call(given, UPLO="LU"[good == "L"])
        for call in (ta.linalg.eig, ta.linalg.eigvals):
            with pytest.raises(ta.linalg.LinAlgError, match="got inf or NaN"):
                call(x[-2:] if x.ndim > 2 else x)


@pytest.mark.parametrize("name", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(
    "shape", [(10000, 3, 3), (1000, 8, 8), (3, 2, 33, 33), (50, 65, 65), (257, 257), (2, 300, 300)]
)
def test_eigenvalues_of_stacks(name, shape):
    rng = np.random.default_rng(4)
    host = (rng.normal(size=shape) + (1j * rng.normal(size=shape) if name[0] == "c" else 0)).astype(name)
    near = 300 * shape[-1] * np.finfo(name).eps
    for view in (lambda x: x, lambda x: x.swapaxes(-1, -2), lambda x: x[..., ::-1, ::-1]):
        x, exact = view(ta.asarray(host, device="cuda")), view(host.astype("complex128"))
        for side, kept in (("L", np.tril), ("U", np.triu)):
            half = kept(exact, -1 if side == "L" else 1)
            whole = half + np.conj(half.swapaxes(-1, -2)) + np.eye(shape[-1]) * exact.real
            w, v = (ta.to_numpy(each) for each in ta.linalg.eigh(x, UPLO=side))
            np.testing.assert_allclose(w, np.linalg.eigvalsh(whole), rtol=0, atol=near)
            assert np.abs(whole @ v - v * w[..., None, :]).max() <= near
            assert np.abs(np.conj(v.swapaxes(-1, -2)) @ v - np.eye(shape[-1])).max() <= near
            np.testing.assert_allclose(ta.to_numpy(ta.linalg.eigvalsh(x, UPLO=side)), w, rtol=0, atol=near)


@pytest.mark.parametrize("name", ["float32", "float64", "complex64", "complex128", "float16"])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 31, 32, 33, 64, 100, 256])
@pytest.mark.parametrize("stack", [(), (1,), (300,)])
def test_inverses(name, n, stack):
    """In one call, by factors of stacks, and of one matrix; with pivots off the diagonal, and in several layouts."""
    rng = np.random.default_rng([n, len(stack)])
    values = rng.normal(size=(*stack, n, n)) + 3 * n**0.5 * np.eye(n)
    values = values + (1j * rng.normal(size=values.shape) if "complex" in name else 0)
    values = np.ascontiguousarray(values[..., rng.permutation(n), :])
    x: Any = ta.astype(ta.asarray(values, device="cuda"), name)
    exact = ta.to_numpy(x).astype("complex128")
    eps = {"float64": 1e-12, "complex128": 1e-12, "float16": 2e-3}.get(name, 2e-5)
    for each, given in ((x, exact), (x.mT, np.swapaxes(exact, -1, -2)), (x[..., ::-1], exact[..., ::-1])):
        found = ta.linalg.inv(each)
        wanted = np.linalg.inv(given)
        assert np.abs(ta.to_numpy(found) - wanted).max() <= eps * np.abs(wanted).max()
        np.testing.assert_array_equal(ta.to_numpy(x), exact)
    assert ta.linalg.inv(x).strides == x.strides


def test_an_inverse_is_launched_before_the_wait():
    """Its memory may be used at once, also by another stream, and may be freed."""
    rng = np.random.default_rng(4)
    values = rng.normal(size=(64, 48, 48)) + 9 * np.eye(48)
    wanted = np.linalg.inv(values)
    x: Any = ta.asarray(values, device="cuda")
    for _ in range(30):
        with ta.cuda.stream(ta.cuda.Stream()):
            found = ta.linalg.inv(x)
        with ta.cuda.stream(ta.cuda.Stream()):
            np.testing.assert_allclose(ta.to_numpy(found + 0.0), wanted, atol=1e-12)


def test_streams():
    rng = np.random.default_rng(3)
    x: Any = ta.asarray(rng.normal(size=(5, 40, 40)) + 9 * np.eye(40), device="cuda")
    wanted = np.linalg.inv(ta.to_numpy(x))
    for stream in [ta.cuda.Stream() for _ in range(3)]:
        with ta.cuda.stream(stream):
            np.testing.assert_allclose(ta.to_numpy(ta.linalg.inv(x)), wanted, atol=1e-12)


@pytest.mark.parametrize("name", ["float32", "complex128"])
def test_singular_values_of_few_columns_of_more_than_2_to_the_20_rows(name):
    rng = np.random.default_rng(11)
    values = rng.normal(size=(2**20 + 5, 3)) + (1j * rng.normal(size=(2**20 + 5, 3)) if name == "complex128" else 0)
    x, exact = ta.astype(ta.asarray(values, device="cuda"), name), values.astype(name)
    wanted = np.linalg.svd(exact.astype(np.result_type(name, "float64")), compute_uv=False)
    near = 1e-5 if name == "float32" else 1e-12
    np.testing.assert_allclose(ta.to_numpy(ta.linalg.svdvals(x)), wanted, near)
    u, s, vh = ta.linalg.svd(x, full_matrices=False)
    np.testing.assert_allclose(ta.to_numpy((u * s) @ vh), exact, atol=20 * near)
    found = ta.linalg.lstsq(x, x @ ta.asarray([1, 2, 3], device="cuda", dtype=name)).x
    np.testing.assert_allclose(ta.to_numpy(found), [1, 2, 3], 20 * near)
