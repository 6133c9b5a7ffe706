"""Factors of matrices against what defines them: they multiply to the matrix, are triangular, orthonormal, sorted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.oracles.formats import ARITHMETIC
from support.oracles.matrices import adjoint, check, complex_name, float_name, near, real_name, tame, wide

import tilearray as ta

NAMES = st.sampled_from(list(ARITHMETIC))
SIZES = st.integers(0, 4)
STACKS = st.sampled_from([(), (), (2,), (0,), (1, 3)])


def is_orthonormal(columns: np.ndarray, name: str) -> None:
    count = columns.shape[-1]
    near(adjoint(columns) @ columns, np.broadcast_to(np.eye(count), (*columns.shape[:-2], count, count)), name)


@given(st.data(), NAMES, STACKS, SIZES, SIZES, st.sampled_from(["reduced", "complete"]))
def test_qr(data, name, stack, m, n, mode):
    pair = data.draw(tame(name, (*stack, m, n)))
    found = ta.linalg.qr(pair.mine, mode=mode)
    assert type(found).__name__ == "QRResult"
    k = m if mode == "complete" else min(m, n)
    q, r = check(found.Q, (*stack, m, k), float_name(name)), check(found.R, (*stack, k, n), float_name(name))
    near(q @ r, wide(pair.theirs), float_name(name), 30)
    is_orthonormal(q, float_name(name))
    assert not np.any(np.tril(r, -1))
    assert ta.linalg.qr(pair.mine, "r").tolist() == ta.linalg.qr(pair.mine).R.tolist()


@given(st.data(), NAMES, STACKS, SIZES, SIZES, st.booleans())
def test_svd(data, name, stack, m, n, full):
    pair = data.draw(tame(name, (*stack, m, n)))
    u, s, vh = ta.linalg.svd(pair.mine, full_matrices=full)
    k = min(m, n)
    left = check(u, (*stack, m, m if full else k), float_name(name))
    values = check(s, (*stack, k), real_name(name))
    right = check(vh, (*stack, n if full else k, n), float_name(name))
    near((left[..., :k] * values[..., None, :]) @ right[..., :k, :], wide(pair.theirs), float_name(name), 30)
    is_orthonormal(left, float_name(name))
    is_orthonormal(adjoint(right), float_name(name))
    assert np.all(values >= 0)
    assert np.all(np.diff(values) <= 0)
    for other in (ta.linalg.svdvals(pair.mine), ta.linalg.svd(pair.mine, full, False)):
        near(check(other, (*stack, k), real_name(name)), values, real_name(name), 20)


@given(st.data(), NAMES, STACKS, SIZES, st.booleans())
def test_eigh_reads_one_triangle(data, name, stack, m, lower):
    pair = data.draw(tame(name, (*stack, m, m)))
    inside = np.tril(wide(pair.theirs), -1) if lower else np.triu(wide(pair.theirs), 1)
    hermitian = inside + adjoint(inside) + np.eye(m) * wide(pair.theirs).real
    found = ta.linalg.eigh(pair.mine, "L" if lower else "U")
    assert type(found).__name__ == "EighResult"
    values = check(found.eigenvalues, (*stack, m), real_name(name))
    vectors = check(found.eigenvectors, (*stack, m, m), float_name(name))
    near(hermitian @ vectors, vectors * values[..., None, :], float_name(name), 30)
    is_orthonormal(vectors, float_name(name))
    assert np.all(np.diff(values) >= 0)
    near(
        check(ta.linalg.eigvalsh(pair.mine, "L" if lower else "U"), (*stack, m), real_name(name)),
        values,
        real_name(name),
        20,
    )
    near(np.sum(values, -1), np.trace(hermitian, axis1=-2, axis2=-1).real, real_name(name), 30)


@given(st.data(), NAMES, STACKS, SIZES)
def test_eig_is_complex(data, name, stack, m):
    pair = data.draw(tame(name, (*stack, m, m)))
    found = ta.linalg.eig(pair.mine)
    assert type(found).__name__ == "EigResult"
    values = check(found.eigenvalues, (*stack, m), complex_name(name))
    vectors = check(found.eigenvectors, (*stack, m, m), complex_name(name))
    near(wide(pair.theirs) @ vectors, vectors * values[..., None, :], complex_name(name), 30)
    near(np.linalg.norm(vectors, axis=-2), np.ones((*stack, m)), complex_name(name))
    others = check(ta.linalg.eigvals(pair.mine), (*stack, m), complex_name(name))
    for one in (values, others):
        near(np.sum(one, -1), np.trace(wide(pair.theirs), axis1=-2, axis2=-1), complex_name(name), 30)


@given(st.data(), NAMES.filter(lambda name: name != "bool"), STACKS, SIZES, st.booleans())
def test_cholesky_reads_one_triangle(data, name, stack, m, upper):
    inside = np.triu(wide(data.draw(tame(name, (*stack, m, m))).theirs), 1)
    x = ta.asarray(inside + 40 * np.eye(m)).astype(name)
    hermitian = wide(x) + adjoint(np.triu(wide(x), 1))
    given_matrix = x if upper else ta.asarray(adjoint(wide(x))).astype(name)
    factor = check(ta.linalg.cholesky(given_matrix, upper=upper), (*stack, m, m), float_name(name))
    product = adjoint(factor) @ factor if upper else factor @ adjoint(factor)
    near(product, hermitian, float_name(name), 200)
    assert not np.any(np.tril(factor, -1) if upper else np.triu(factor, 1))
    assert np.all(np.diagonal(factor, axis1=-2, axis2=-1).real > 0)


NARROW = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
ROUNDED = [
    "cholesky",
    "qr",
    "svd",
    "svdvals",
    "eigh",
    "eigvalsh",
    "inv",
    "pinv",
    "det",
    "slogdet",
    "matrix_norm",
    "cond",
]


@pytest.mark.parametrize("function", ROUNDED)
def test_narrow_floats_are_computed_as_float32_and_rounded_once(function):
    call = getattr(ta.linalg, function)
    for name in NARROW:
        x = ta.asarray([[5.0, 1.0, -0.5], [1.0, 3.0, 0.75], [-0.5, 0.75, 4.0]], dtype=name)
        found, want = call(x), call(x.astype("float32"))
        for one, other in zip(found, want) if isinstance(found, tuple) else [(found, want)]:
            assert one.dtype.name == name
            assert one.tolist() == other.astype(name).tolist()


def test_hermitian_matrices_take_the_other_method():
    rng = np.random.default_rng(3)
    a = rng.standard_normal((2, 4, 4)) + 1j * rng.standard_normal((2, 4, 4))
    x = ta.asarray(a + adjoint(a))
    near(wide(ta.linalg.svd(x, hermitian=True).S), wide(ta.linalg.svd(x).S), "complex128", 20)
    near(wide(ta.linalg.pinv(x, hermitian=True)), wide(ta.linalg.inv(x)), "complex128", 200)
    assert ta.linalg.matrix_rank(x, hermitian=True).tolist() == [4, 4]
    lower = ta.asarray(np.tril(a + adjoint(a)))  # only the lower triangle is read
    near(wide(ta.linalg.svd(lower, hermitian=True).S), wide(ta.linalg.svd(x).S), "complex128", 20)
