"""The functions of `ta.linalg` on any device, against NumPy in double precision: drawn shapes, dtypes and layouts."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilearray as ta

DTYPES = ("float32", "float64", "complex64", "complex128", "float16", "bfloat16")
EPS = {"float32": 2.0**-23, "complex64": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def kinds(name: str) -> tuple[str, str]:
    """The real and the complex dtype of results."""
    real = {"complex64": "float32", "complex128": "float64"}.get(name, name)
    return real, "complex128" if name in ("float64", "complex128") else "complex64"


class Draw:
    """Matrices of a dtype: exact on the host, and on the device in some layout."""

    def __init__(self, seed: int, name: str, device: object) -> None:
        self.rng = random.Random(f"{seed} {name}")
        self.values = np.random.default_rng([seed, DTYPES.index(name)])
        self.name = name
        self.device = device
        self.eps = EPS.get(name, 2.0**-52)

    def given(self, values: np.ndarray) -> tuple[np.ndarray, Any]:
        """Values, rounded to the dtype, and an array of them: dense, transposed, sliced or reversed."""
        dense = ta.astype(ta.asarray(np.ascontiguousarray(values), device=self.device), self.name)
        exact = ta.to_numpy(ta.astype(dense, "complex128" if "complex" in self.name else "float64"))
        how = self.rng.randrange(4) if dense.ndim > 1 and dense.size else 0
        if how == 1:
            return exact, ta.asarray(dense.mT, copy=True).mT
        if how == 2:
            wide = ta.zeros((*dense.shape[:-1], 2 * dense.shape[-1]), dtype=dense.dtype, device=self.device)
            wide[..., ::2] = dense
            return exact, wide[..., ::2]
        if how == 3:
            return exact, ta.asarray(dense[..., ::-1, :], copy=True)[..., ::-1, :]
        return exact, dense

    def normal(self, *shape: int) -> np.ndarray:
        """Normal numbers."""
        found = self.values.normal(size=shape)
        return found + 1j * self.values.normal(size=shape) if "complex" in self.name else found

    def stack(self) -> tuple[int, ...]:
        """The sizes of the axes before the matrices."""
        return self.rng.choice([(), (), (3,), (2, 2), (0,)])

    def size(self) -> int:
        """The size of an axis."""
        return self.rng.choice([1, 2, 3, 5, 9, 17, 33])

    def positive(self, *stack: int, n: int) -> np.ndarray:
        """Positive-definite matrices of moderate condition."""
        x = self.normal(*stack, n, n)
        return x @ adjoint(x) / max(n, 1) + 2 * np.eye(n)

    def invertible(self, *stack: int, n: int) -> np.ndarray:
        """Matrices of moderate condition, with pivots that are not on the diagonal."""
        order = self.values.permutation(n)
        return self.normal(*stack, n, n) / max(4 * n, 1) + 2 * np.eye(n)[order]


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def wide(x: Any) -> np.ndarray:
    """An array of a device in double precision."""
    return ta.to_numpy(ta.astype(x, "complex128" if "complex" in x.dtype.name else "float64"))


def near(found: Any, wanted: Any, eps: float, dtype: str, scale: Any = None) -> None:
    """Within `eps` of the largest value, or of a scale."""
    wanted = np.asarray(wanted)
    assert found.dtype.name == dtype
    assert found.shape == wanted.shape
    if wanted.size:
        size = np.max(np.abs(wanted)) + 1 if scale is None else scale
        np.testing.assert_array_less(np.abs(wide(found) - wanted), eps * size + 1e-300)


def cholesky(draw: Draw) -> None:
    n = draw.size()
    exact, x = draw.given(draw.positive(*draw.stack(), n=n))
    upper = draw.rng.random() < 0.5
    near(ta.linalg.cholesky(x, upper=upper), np.linalg.cholesky(exact, upper=upper), 40 * n * draw.eps, draw.name)


def qr(draw: Draw) -> None:
    m, n = draw.size(), draw.size()
    exact, x = draw.given(draw.normal(*draw.stack(), m, n))
    mode = draw.rng.choice(["reduced", "complete"])
    q, r = ta.linalg.qr(x, mode=mode)
    width = m if mode == "complete" else min(m, n)
    assert q.shape == (*exact.shape[:-1], width)
    assert r.shape == (*exact.shape[:-2], width, n)
    eps = 40 * max(m, n) * draw.eps
    near(q, wide(q), 1, draw.name)
    assert np.abs(wide(q) @ wide(r) - exact).max(initial=0) <= eps * (np.abs(exact).max(initial=0) + 1)
    assert np.abs(adjoint(wide(q)) @ wide(q) - np.eye(width)).max(initial=0) <= eps
    assert (np.tril(wide(r), -1) == 0).all()
    near(ta.linalg.qr(x, mode="r"), wide(r)[..., : min(m, n), :], 1e-30 + eps, draw.name)


def svd(draw: Draw) -> None:
    m, n = draw.size(), draw.size()
    exact, x = draw.given(draw.normal(*draw.stack(), m, n))
    full = draw.rng.random() < 0.5
    real, _ = kinds(draw.name)
    eps = 60 * max(m, n) * draw.eps
    wanted = np.linalg.svd(exact, compute_uv=False)
    u, s, vh = ta.linalg.svd(x, full_matrices=full)
    k = min(m, n)
    assert u.shape[-2:] == ((m, m) if full else (m, k))
    assert vh.shape[-2:] == ((n, n) if full else (k, n))
    near(s, wanted, eps, real)
    near(ta.linalg.svdvals(x), wanted, eps, real)
    near(u, wide(u), 1, draw.name)
    near(vh, wide(vh), 1, draw.name)
    product = (wide(u)[..., :k] * wide(s)[..., None, :]) @ wide(vh)[..., :k, :]
    assert np.abs(product - exact).max(initial=0) <= eps * (np.abs(exact).max(initial=0) + 1)
    for each in (adjoint(wide(u)) @ wide(u), wide(vh) @ adjoint(wide(vh))):
        assert np.abs(each - np.eye(each.shape[-1])).max(initial=0) <= eps


def svd_kinds(rng: np.random.Generator, shape: tuple[int, int], name: str) -> np.ndarray:
    """Ten matrices: normal, of extreme sizes, of rank 0 and 1, with equal, exact and very different singular values."""
    limits, (m, n) = np.finfo(name), shape
    values = rng.normal(size=(10, m, n))
    values = values + 1j * rng.normal(size=values.shape) if "complex" in name else values
    k = min(shape)
    u, _, vh = np.linalg.svd(values[0], full_matrices=False)
    exponents = np.arange(k) * min(30, -int(limits.minexp)) / k
    special = [
        values[0],
        values[1] * limits.tiny,
        values[2] * limits.tiny * 4 * limits.eps,  # denormal
        values[3] * (float(limits.max) / 2000),
        0 * values[4],
        values[5, :, :1] @ values[5, :1],
        7 * u @ vh,
        np.eye(m, n) * (1 + np.arange(n)),
        (u * 0.5**exponents) @ vh,
        np.where(np.arange(n) % 2, values[9], 0),
    ]
    return np.stack(special).astype(name)


def check_svd(x: Any) -> None:
    """The factors of matrices in a dtype of the library, with all columns and without, and the values alone."""
    exact = ta.to_numpy(x).astype("complex128")
    limits = np.finfo(x.dtype)
    m, n = x.shape[-2:]
    k, eps = min(m, n), 20 * max(m, n, 5) * limits.eps
    wanted = np.linalg.svd(exact, compute_uv=False)
    error = eps * wanted[..., :1] + m * n * limits.smallest_subnormal
    for full in (True, False):
        u, s, vh = ta.linalg.svd(x, full_matrices=full)
        assert (u.dtype, s.dtype.name, vh.dtype) == (x.dtype, kinds(x.dtype.name)[0], x.dtype)
        left, values, right = ta.to_numpy(u).astype(exact.dtype), wide(s), ta.to_numpy(vh).astype(exact.dtype)
        assert left.shape == (*x.shape[:-2], m, m if full else k)
        assert right.shape == (*x.shape[:-2], n if full else k, n)
        assert (np.abs(values - wanted) <= error).all()
        assert (np.diff(values) <= 0).all()
        assert (values >= 0).all()
        product = (left[..., :k] * values[..., None, :]) @ right[..., :k, :]
        assert (np.abs(product - exact) <= 2 * error[..., None]).all()
        for each in (adjoint(left) @ left, right @ adjoint(right)):
            assert np.abs(each - np.eye(each.shape[-1])).max(initial=0) <= eps
    assert (np.abs(wide(ta.linalg.svdvals(x)) - wanted) <= error).all()


def hermitian(draw: Draw) -> None:
    n, lower = draw.size(), draw.rng.random() < 0.5
    values = draw.normal(*draw.stack(), n, n)
    exact, x = draw.given(values + (0 if draw.rng.random() < 0.5 else adjoint(values)))
    half = np.tril(exact, -1) if lower else np.triu(exact, 1)
    whole = half + adjoint(half) + np.eye(n) * np.real(np.diagonal(exact, 0, -2, -1))[..., None, :]
    real, _ = kinds(draw.name)
    eps = 60 * n * draw.eps
    size = np.abs(whole).max(initial=0) * n + 1
    w, v = ta.linalg.eigh(x, UPLO="L" if lower else "U")
    near(w, np.linalg.eigvalsh(whole), eps, real, size)
    near(ta.linalg.eigvalsh(x, UPLO="L" if lower else "U"), np.linalg.eigvalsh(whole), eps, real, size)
    near(v, wide(v), 1, draw.name)
    assert np.abs(whole @ wide(v) - wide(v) * wide(w)[..., None, :]).max(initial=0) <= eps * size
    assert np.abs(adjoint(wide(v)) @ wide(v) - np.eye(n)).max(initial=0) <= eps
    if lower:
        found = ta.linalg.svd(x, compute_uv=False, hermitian=True)
        near(found, np.linalg.svd(whole, compute_uv=False), eps, real, size)


def eig(draw: Draw) -> None:
    n = draw.rng.choice([1, 2, 3, 6, 12])
    exact, x = draw.given(draw.normal(*draw.stack(), n, n))
    _, name = kinds(draw.name)
    w, v = ta.linalg.eig(x)
    eps = 200 * n * EPS.get(name, 2.0**-52)
    assert (w.dtype.name, v.dtype.name) == (name, name)
    assert np.abs(exact @ wide(v) - wide(v) * wide(w)[..., None, :]).max(initial=0) <= eps * (n + 1)
    traces = np.trace(exact, axis1=-2, axis2=-1)
    assert np.abs(wide(w).sum(-1) - traces).max(initial=0) <= eps * n * 4
    assert np.abs(wide(ta.linalg.eigvals(x)).sum(-1) - traces).max(initial=0) <= eps * n * 4


def equations(draw: Draw) -> None:
    n, columns, stack = draw.size(), draw.rng.choice([0, 1, 2, 7]), draw.stack()
    exact, x = draw.given(draw.invertible(*stack, n=n))
    others = draw.rng.choice([stack, (1,) * len(stack), (), (2, *[1] * len(stack))])
    eps = 200 * n * draw.eps
    right, b = draw.given(draw.normal(*others, n, columns))
    near(ta.linalg.solve(x, b), np.linalg.solve(exact, right), eps, draw.name)
    vector, b = draw.given(draw.normal(n))
    near(ta.linalg.solve(x, b), np.linalg.solve(exact, vector[:, None])[..., 0], eps, draw.name)
    near(ta.linalg.inv(x), np.linalg.inv(exact), eps, draw.name)


def determinants(draw: Draw) -> None:
    n = draw.rng.choice([0, 1, 2, 3, 5, 8])
    values = draw.invertible(*draw.stack(), n=n) if n else draw.normal(*draw.stack(), 0, 0)
    if n > 1 and draw.rng.random() < 0.2:
        values[..., 0, :] = values[..., 1, :] = 0
    exact, x = draw.given(values)
    real, _ = kinds(draw.name)
    eps = 300 * (n + 1) * draw.eps
    near(ta.linalg.det(x), np.linalg.det(exact), eps, draw.name)
    sign, logabsdet = ta.linalg.slogdet(x)
    wanted = np.linalg.slogdet(exact)
    near(sign, wanted.sign, eps, draw.name)
    lowest = np.isneginf(wanted.logabsdet)
    assert (np.isneginf(wide(logabsdet)) == lowest).all()
    near(ta.where(ta.asarray(lowest, device=x.device), 0, logabsdet), np.where(lowest, 0, wanted.logabsdet), eps, real)


def ranks(draw: Draw) -> None:
    m, n, k = draw.size(), draw.size(), draw.rng.choice([1, 2, 3])
    integers = draw.values.integers(-3, 4, (*draw.stack(), m, k)).astype("float64")
    exact, x = draw.given(integers @ draw.values.integers(-3, 4, (k, n)).astype("float64"))
    eps = EPS["float32"] if draw.name in ("float16", "bfloat16") else draw.eps
    if draw.name in ("float16", "bfloat16") and (exact != np.rint(exact)).any():
        return
    rank = np.linalg.matrix_rank(exact)
    assert ta.to_numpy(ta.linalg.matrix_rank(x)).tolist() == np.asarray(rank).tolist()
    near(ta.linalg.pinv(x), np.linalg.pinv(exact, rcond=max(m, n) * eps), 3e3 * max(m, n) * draw.eps, draw.name, 1)
    if exact.ndim == 2:
        right, b = draw.given(draw.normal(m, 3))
        found = ta.linalg.lstsq(x, b)
        wanted = np.linalg.lstsq(exact, right, rcond=max(m, n) * eps)
        near(found.x, wanted[0], 3e3 * max(m, n) * draw.eps, draw.name)
        assert found.rank.item() == wanted[2]
        assert found.residuals.shape == wanted[1].shape


def norms(draw: Draw) -> None:
    m, n = draw.size(), draw.size()
    exact, x = draw.given(draw.normal(*draw.stack(), m, n))
    real, _ = kinds(draw.name)
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        wanted = np.linalg.norm(exact, order, axis=(-2, -1), keepdims=order == 1)
        near(ta.linalg.matrix_norm(x, ord=order, keepdims=order == 1), wanted, 40 * m * n * draw.eps, real)
    exact, x = draw.given(draw.invertible(*draw.stack(), n=n))
    for order in (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"):
        wanted = np.linalg.cond(exact, order)
        near(ta.linalg.cond(x, order), wanted, 500 * n * n * draw.eps, real)


def powers(draw: Draw) -> None:
    n = draw.rng.choice([1, 2, 3, 7])
    exact, x = draw.given(draw.invertible(*draw.stack(), n=n))
    for power in (-2, -1, 0, 1, 3, 6):
        wanted = np.linalg.matrix_power(exact, power)
        near(ta.linalg.matrix_power(x, power), wanted, 500 * n * draw.eps, draw.name)
    sizes = [draw.size() for _ in range(4)]
    pairs = [draw.given(draw.normal(*shape)) for shape in itertools.pairwise(sizes)]
    vectors = [draw.given(draw.normal(sizes[0])), draw.given(draw.normal(sizes[-1]))]
    chain = [*vectors[: draw.rng.randrange(2)], *pairs, *vectors[1 : 1 + draw.rng.randrange(2)]]
    chain = chain if len(chain) > 1 else [*chain, vectors[1]]
    exacts = [exact for exact, _ in chain]
    wanted = np.linalg.multi_dot(exacts) if len(exacts) > 1 else exacts[0]
    near(ta.linalg.multi_dot([x for _, x in chain]), wanted, 100 * draw.eps, draw.name, 40.0 * max(sizes) ** 1.5)


CHECKS: tuple[Callable[[Draw], None], ...] = (
    cholesky, qr, svd, hermitian, eig, equations, determinants, ranks, norms, powers,
)  # fmt: skip


def check_functions(device: object, name: str, seed: int, count: int) -> None:
    """All functions, each for some draws of a dtype."""
    for case in range(count):
        for check in CHECKS:
            draw = Draw(1000 * seed + case, name, device)
            try:
                check(draw)
            except AssertionError as error:
                raise AssertionError(f"{check.__name__}, {name}, draw {case}: {error}") from error


def check_errors(device: object) -> None:
    """Matrices without the factors, inf and NaN, empty ones."""
    ones = ta.ones((3, 3), device=device)
    stack = ta.asarray(np.stack([np.eye(3), np.ones((3, 3))]), device=device)
    for call, message in (
        (lambda: ta.linalg.inv(ones), "linalg.inv: expected invertible"),
        (lambda: ta.linalg.solve(stack, ta.ones(3, device=device)), "linalg.solve: expected invertible"),
        (lambda: ta.linalg.cholesky(-stack), "linalg.cholesky: expected positive-definite"),
        (lambda: ta.linalg.svd(ones * float("nan")), "linalg.svd: the iteration does not converge"),
        (lambda: ta.linalg.eigh(ones * float("inf")), "linalg.eigh: the iteration does not converge"),
        (lambda: ta.linalg.eig(ones * float("inf")), "linalg.eig: expected finite elements"),
    ):
        with pytest.raises(ta.linalg.LinAlgError, match=message):
            call()
    assert ta.linalg.cond(ones, 1).item() == np.inf
    assert ta.linalg.cond(ta.zeros((2, 2), device=device)).item() == np.inf
    assert np.isnan(ta.linalg.cond(ones * float("nan"), 1).item())
    nothing = ta.zeros((2, 0, 0), device=device)
    assert ta.linalg.inv(nothing).shape == ta.linalg.cholesky(nothing).shape == (2, 0, 0)
    assert ta.linalg.det(nothing).tolist() == [1, 1]
    flat = ta.zeros((2, 3, 0), device=device)
    u, s, vh = ta.linalg.svd(flat)
    assert (u.tolist(), s.shape, vh.shape) == ([np.eye(3).tolist()] * 2, (2, 0), (2, 0, 0))
    q, r = ta.linalg.qr(flat, mode="complete")
    assert (q.tolist(), r.shape) == ([np.eye(3).tolist()] * 2, (2, 3, 0))
    assert ta.linalg.pinv(flat).shape == (2, 0, 3)
    assert ta.linalg.matrix_rank(flat).tolist() == [0, 0]
