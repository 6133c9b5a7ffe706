"""Gradients of `linalg`: the differences of results, and those of torch, also of complex matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.oracles.derivatives import checked

import tilearray as ta
from tilearray import linalg

RNG = np.random.default_rng(23)
SQUARE, TALL = RNG.standard_normal((2, 3, 3)), RNG.standard_normal((4, 3))
IMAGINARY = RNG.standard_normal((2, 3, 3)), RNG.standard_normal((4, 3))
OPERANDS = {"square": SQUARE, "tall": TALL}
OPERANDS |= {f"complex {name}": x + 1j * part for (name, x), part in zip(OPERANDS.items(), IMAGINARY, strict=True)}


def adjoint(x: Any) -> Any:
    return ta.conj(x).mT if x.dtype.kind == "c" else x.mT


def hermitian(x: Any) -> Any:
    return x + adjoint(x)


def positive(x: Any) -> Any:
    return x @ adjoint(x) + ta.eye(x.shape[-2], dtype=x.dtype)


def exponential(x: Any) -> Any:
    values, vectors = linalg.eigh(hermitian(x))
    return (vectors * ta.exp(values)[..., None, :]) @ adjoint(vectors)


def rebuilt(x: Any) -> Any:
    u, s, vh = linalg.svd(x, full_matrices=x.shape[-1] == x.shape[-2])
    return (u * ta.sin(s)[..., None, :]) @ vh


def sizes(x: Any) -> Any:
    """Singular vectors without their phases."""
    u, s, vh = linalg.svd(x, full_matrices=False)
    return ta.abs(u) ** 2 * s[..., None, :] @ ta.abs(vh) ** 2


def cosine(x: Any) -> Any:
    values, vectors = linalg.eig(x)
    return ta.real((vectors * ta.cos(values)[..., None, :]) @ linalg.inv(vectors))


def lengths(x: Any) -> Any:
    values, vectors = linalg.eig(x)
    return ta.sum(ta.abs(vectors) ** 2 * ta.abs(values)[..., None, :], axis=-1)


OF_SQUARES: dict[str, Any] = {
    "inv": linalg.inv,
    "solve": lambda x: linalg.solve(x, x[..., :2] ** 2),
    "solve for one vector": lambda x: linalg.solve(x, x[0, 0]),
    "solve for several": lambda x: linalg.solve(x[0], x[:, :, :1]),
    "det": lambda x: linalg.det(x) ** 2,
    "slogdet": lambda x: linalg.slogdet(x).sign * linalg.slogdet(x).logabsdet,
    "cholesky": lambda x: linalg.cholesky(positive(x)),
    "upper cholesky": lambda x: linalg.cholesky(positive(x), upper=True),
    "eigh": exponential,
    "eigenvalues": lambda x: linalg.eigh(hermitian(x), "U").eigenvalues * linalg.eigvalsh(hermitian(x)),
    "eigvals": lambda x: ta.sum(ta.abs(linalg.eigvals(x)), axis=-1) + ta.sum(linalg.eigvals(x).real ** 2, axis=-1),
    "eig": cosine,
    "eigenvectors": lengths,
    "wide qr": lambda x: linalg.qr(x[..., :2, :]).R + linalg.qr(x[..., :2, :]).Q @ x[..., :2, :],
    "power": lambda x: linalg.matrix_power(x, 3) + linalg.matrix_power(x, 0),
    "negative power": lambda x: linalg.matrix_power(x, -2),
    "condition": lambda x: linalg.cond(x) + linalg.cond(x, 1) * linalg.cond(x, "fro"),
    "hermitian svd": lambda x: linalg.svd(hermitian(x), hermitian=True).S ** 2,
    "hermitian pinv": lambda x: linalg.pinv(hermitian(x), hermitian=True),
    "several factors": lambda x: linalg.multi_dot([x[0], x[1], x[0, 0]]),
    "tensorinv": lambda x: linalg.tensorinv(ta.reshape(positive(x[0, :2]), (2, 2, 1)), ind=1),
    "tensorsolve": lambda x: linalg.tensorsolve(ta.reshape(x[0], (3, 3, 1)), x[1, 0]),
}  # fmt: skip
OF_ALL: dict[str, Any] = {
    "qr": lambda x: linalg.qr(x).Q @ (linalg.qr(x, mode="r") ** 2),
    "svd": rebuilt,
    "svdvals": lambda x: linalg.svdvals(x) ** 2,
    "vectors": sizes,
    "wide vectors": lambda x: sizes(x.mT),
    "pinv": linalg.pinv,
    "wide pinv": lambda x: linalg.pinv(x.mT),
    "norms": lambda x: linalg.matrix_norm(x, ord="nuc") * linalg.matrix_norm(x, ord=2) + linalg.matrix_norm(x, ord=-2),
    "sums": lambda x: linalg.matrix_norm(x, ord=1, keepdims=True) * linalg.matrix_norm(x, ord=-np.inf, keepdims=True),
    "frobenius": lambda x: linalg.matrix_norm(x) * linalg.norm(x, axis=(-2, -1)),
}  # fmt: skip
OF_TALL: dict[str, Any] = {
    "lstsq": lambda x: linalg.lstsq(x, x[:, 0] ** 2 + 1).x,
    "residuals": lambda x: linalg.lstsq(x, x**2 + 1).residuals,
    "values of lstsq": lambda x: linalg.lstsq(x, x**2 + 1).s ** 2,
}  # fmt: skip
CASES = [
    *[(of, name) for name in OF_SQUARES | OF_ALL for of in ("square", "complex square")],
    *[(of, name) for name in OF_ALL | OF_TALL for of in ("tall", "complex tall")],
]
FUNCTIONS = OF_SQUARES | OF_ALL | OF_TALL


@pytest.mark.parametrize(("of", "name"), CASES)
def test_gradients_are_the_differences_of_results(of: str, name: str):
    checked(FUNCTIONS[name], OPERANDS[of])


SECOND = ("inv", "solve", "det", "slogdet", "cholesky", "eigh", "svd", "pinv", "qr", "eigvals")


@pytest.mark.parametrize("name", SECOND)
def test_gradients_of_gradients_are_the_differences_of_gradients(name: str):
    checked(lambda x: ta.grad(lambda x: ta.sum(ta.sin(FUNCTIONS[name](x))))(x), SQUARE[0] + 2 * np.eye(3))


IN_TORCH: dict[str, tuple[Any, Any]] = {
    "inv": (linalg.inv, lambda of, x: of.inv(x)),
    "solve": (lambda x: linalg.solve(x, x**2), lambda of, x: of.solve(x, x**2)),
    "det": (linalg.det, lambda of, x: of.det(x)),
    "slogdet": (lambda x: linalg.slogdet(x).logabsdet, lambda of, x: of.slogdet(x).logabsdet),
    "cholesky": (lambda x: linalg.cholesky(x @ adjoint(x)), lambda of, x: of.cholesky(x @ x.mH)),
    "eigvalsh": (lambda x: linalg.eigvalsh(x @ adjoint(x)), lambda of, x: of.eigvalsh(x @ x.mH)),
    "svdvals": (linalg.svdvals, lambda of, x: of.svdvals(x)),
    "vectors": (
        lambda x: ta.abs(linalg.svd(x, full_matrices=False).U),
        lambda of, x: of.svd(x, full_matrices=False).U.abs(),
    ),
    "pinv": (linalg.pinv, lambda of, x: of.pinv(x)),
    "qr": (lambda x: ta.abs(linalg.qr(x).Q), lambda of, x: of.qr(x).Q.abs()),
    "eigvals": (lambda x: ta.sum(ta.abs(linalg.eigvals(x)), axis=-1), lambda of, x: of.eigvals(x).abs().sum(-1)),
    "nuclear": (lambda x: linalg.matrix_norm(x, ord="nuc"), lambda of, x: of.matrix_norm(x, "nuc")),
    "condition": (linalg.cond, lambda of, x: of.cond(x)),
}  # fmt: skip


@pytest.mark.parametrize("of", ["square", "complex square"])
@pytest.mark.parametrize("name", IN_TORCH)
def test_gradients_are_those_of_torch(of: str, name: str):
    torch = pytest.importorskip("torch")
    mine, its = IN_TORCH[name]
    x = torch.from_numpy(OPERANDS[of]).requires_grad_()
    expected = its(torch.linalg, x)
    g = np.random.default_rng(2).standard_normal(expected.shape)
    g = g + 1j * g[::-1] if expected.is_complex() else g
    expected.backward(torch.from_numpy(np.asarray(g)))
    result, pull = ta.vjp(mine, ta.asarray(OPERANDS[of]))
    np.testing.assert_allclose(ta.to_numpy(result), expected.detach().numpy(), rtol=1e-8, atol=1e-10)
    (found,) = pull(ta.asarray(np.asarray(g)))
    np.testing.assert_allclose(ta.to_numpy(found), x.grad.numpy(), rtol=1e-7, atol=1e-9)


def test_the_gradient_of_a_hermitian_matrix_is_hermitian():
    x = ta.asarray([[2.0, 1.0], [1.0, 3.0]], dtype="float64")
    for function in (linalg.cholesky, linalg.eigvalsh, lambda x: linalg.eigh(x).eigenvectors):
        gradient = ta.to_numpy(ta.vjp(function, x)[1](ta.asarray(RNG.standard_normal(function(x).shape)))[0])
        np.testing.assert_allclose(gradient, gradient.T, rtol=1e-12)


def test_equal_values_have_gradients_and_their_vectors_have_none():
    x = ta.asarray(np.diag([2.0, 2.0, 0.0]))
    assert ta.to_numpy(ta.grad(lambda x: ta.sum(linalg.eigvalsh(x)))(x)) == pytest.approx(np.eye(3))
    assert ta.to_numpy(ta.grad(lambda x: ta.sum(linalg.svdvals(x)[:2]))(x)) == pytest.approx(np.diag([1.0, 1.0, 0.0]))
    assert ta.to_numpy(ta.grad(linalg.det)(x)) == pytest.approx(np.diag([0.0, 0.0, 4.0]))
    for function in (exponential, rebuilt):  # 0 / 0, which is not 0 here
        assert np.isnan(ta.to_numpy(ta.grad(lambda x, f=function: ta.sum(f(x)))(x))).any()


def test_narrow_floats_and_integers():
    x = ta.asarray([[2.0, 1.0], [1.0, 3.0]], dtype="bfloat16")
    gradient = ta.grad(lambda x: linalg.det(x))(x)
    assert gradient.dtype == ta.bfloat16
    assert gradient.tolist() == [[3.0, -1.0], [-1.0, 2.0]]
    b = ta.asarray([1.0, 2.0])
    assert ta.grad(lambda b: ta.sum(linalg.solve(ta.asarray([[2, 0], [0, 4]]), b)))(b).tolist() == [0.5, 0.25]
    assert linalg.matrix_rank(x).item() == ta.vjp(linalg.matrix_rank, x)[0].item() == 2


ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda x: linalg.qr(x[:, :1], mode="complete"), ta.GradientError, "linalg.qr has no derivative in the columns"),
    (lambda x: linalg.svd(x[:, :1]), ta.GradientError, "linalg.svd has no derivative in .*; write full_matrices=False"),
    (lambda x: linalg.inv(x * 0), ta.LinAlgError, "linalg.inv: expected invertible matrices, got a singular one"),
    (lambda x: linalg.inv(x[0]), ta.ShapeError, "linalg.inv: expected square matrices of shape"),
    (lambda x: linalg.cholesky(-x), ta.LinAlgError, "linalg.cholesky: expected positive-definite matrices"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "error", "message"), ERRORS)
def test_errors_are_those_of_the_function(function: Any, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        ta.vjp(function, ta.eye(2))
