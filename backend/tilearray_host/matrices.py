"""Decompositions, inverses, determinants and norms of matrices by NumPy's LAPACK; large inverses by SciPy's.

Operands are rounded to one dtype. float32 and wider go to NumPy as they are, narrower floats as float32; each result is
rounded once. Norms add up in float64, as sums do. NumPy's own LinAlgError says that a decomposition does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from tilearray_host.casts import computable, converted
from tilearray_host.float_errors import quiet

DType = np.dtype[Any]
Ints = tuple[int, ...]
Array = np.ndarray[Any, Any]

_COMPLEX64, _COMPLEX128, _FLOAT64 = np.dtype(np.complex64), np.dtype(np.complex128), np.dtype(np.float64)
INVERTED = 32
"""The rows of matrices from which SciPy inverts them: it takes one matrix a call, at 2 us."""


def _real(dtype: DType) -> DType:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def _complex(dtype: DType) -> DType:
    return _COMPLEX128 if dtype in (_FLOAT64, _COMPLEX128) else _COMPLEX64


def _rounded(found: Any, dtype: DType) -> Array:
    return converted(np.asarray(found), dtype)


# --- decompositions ---------------------------------------------------------------------------------------------------


@quiet
def cholesky(x: Array, upper: bool, dtype: DType, /) -> Array:
    """Return the triangular factor of positive-definite matrices.

    >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]), False, np.dtype(np.float64)).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    return _rounded(np.linalg.cholesky(computable(x, dtype), upper=upper), dtype)


@quiet
def qr(x: Array, mode: Any, dtype: DType, /) -> tuple[Array, Array]:
    """Return the orthogonal and the triangular factor; `mode` is "reduced" or "complete"."""
    q, r = np.linalg.qr(computable(x, dtype), mode)
    return _rounded(q, dtype), _rounded(r, dtype)


@quiet
def svd(x: Array, full_matrices: bool, hermitian: bool, dtype: DType, /) -> tuple[Array, Array, Array]:
    """Return the left singular vectors, the singular values and the adjoint of the right singular vectors."""
    u, s, vh = np.linalg.svd(computable(x, dtype), full_matrices, hermitian=hermitian)
    return _rounded(u, dtype), _rounded(s, _real(dtype)), _rounded(vh, dtype)


@quiet
def svdvals(x: Array, hermitian: bool, dtype: DType, /) -> Array:
    """Return the singular values in descending order."""
    return _rounded(_singular_values(x, hermitian, dtype), _real(dtype))


def _singular_values(x: Array, hermitian: bool, dtype: DType) -> Array:
    return np.linalg.svd(computable(x, dtype), compute_uv=False, hermitian=hermitian)


@quiet
def eig(x: Array, dtype: DType, /) -> tuple[Array, Array]:
    """Return the eigenvalues and eigenvectors, always complex."""
    values, vectors = np.linalg.eig(computable(x, dtype))
    return _rounded(values, _complex(dtype)), _rounded(vectors, _complex(dtype))


@quiet
def eigvals(x: Array, dtype: DType, /) -> Array:
    """Return the eigenvalues, always complex."""
    return _rounded(np.linalg.eigvals(computable(x, dtype)), _complex(dtype))


@quiet
def eigh(x: Array, lower: bool, dtype: DType, /) -> tuple[Array, Array]:
    """Return the real eigenvalues, ascending, and the eigenvectors of the matrices that one triangle describes."""
    values, vectors = np.linalg.eigh(computable(x, dtype), "L" if lower else "U")
    return _rounded(values, _real(dtype)), _rounded(vectors, dtype)


@quiet
def eigvalsh(x: Array, lower: bool, dtype: DType, /) -> Array:
    """Return the real eigenvalues, ascending, of the matrices that one triangle describes."""
    return _rounded(np.linalg.eigvalsh(computable(x, dtype), "L" if lower else "U"), _real(dtype))


# --- equations --------------------------------------------------------------------------------------------------------


@quiet
def inv(x: Array, dtype: DType, /) -> Array:
    """Return the inverses, by SciPy's LAPACK from `INVERTED` rows on where SciPy is installed, else by NumPy's.

    SciPy has the routine that inverts factors; NumPy solves equations with the identity, in 4/3 of the operations.

    >>> inv(np.diag([2.0, 4.0]), np.dtype(np.float64)).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    wide = computable(x, dtype)
    routines = _inverting(wide.dtype.char) if wide.shape[-1] >= INVERTED else None
    if routines is None:
        return _rounded(np.linalg.inv(wide), dtype)
    if wide.ndim == 2:
        return _rounded(_inverse(wide, *routines), dtype)
    found = np.empty(wide.shape, wide.dtype)
    for index in np.ndindex(wide.shape[:-2]):
        found[index] = _inverse(wide[index], *routines)
    return _rounded(found, dtype)


@cache
def _inverting(char: str) -> tuple[Any, Any, Any] | None:
    """Return SciPy's routines for the factors, the inverse and its memory; None if SciPy is not installed."""
    try:
        lapack: Any = import_module("scipy.linalg.lapack")
    except ImportError:
        return None
    kind = {"f": "s", "d": "d", "F": "c", "D": "z"}[char]
    factors, inverse, memory = [getattr(lapack, kind + name) for name in ("getrf", "getri", "getri_lwork")]
    return factors, inverse, memory


def _inverse(x: Array, factors: Any, inverse: Any, memory: Any) -> Array:
    """Return the inverse of one matrix: LAPACK reads columns, so it gets the transpose, and returns that of ours."""
    lu, pivots, info = factors(x.T)
    if info == 0:
        found, info = inverse(lu, pivots, lwork=int(memory(len(x))[0].real), overwrite_lu=True)
        if info == 0:
            return found.T
    raise np.linalg.LinAlgError("Singular matrix")


@quiet
def solve(x1: Array, x2: Array, dtype: DType, /) -> Array:
    """Return the solutions of ``x1 @ x = x2`` for stacks of matrices `x2`, or for one vector."""
    return _rounded(np.linalg.solve(computable(x1, dtype), computable(x2, dtype)), dtype)


@quiet
def lstsq(a: Array, b: Array, rcond: float | None, dtype: DType, /) -> tuple[Array, Array, int, Array]:
    """Return the least-squares solution of one system, its residuals, the rank and the singular values."""
    x, residuals, rank, s = np.linalg.lstsq(computable(a, dtype), computable(b, dtype), rcond)
    return _rounded(x, dtype), _rounded(residuals, _real(dtype)), int(rank), _rounded(s, _real(dtype))


@quiet
def pinv(x: Array, rtol: Array | None, hermitian: bool, dtype: DType, /) -> Array:
    """Return the pseudo-inverses. Singular values up to `rtol` times the largest one count as 0."""
    wide = computable(x, dtype)
    limit = _default_rtol(wide) if rtol is None else rtol
    return _rounded(np.linalg.pinv(wide, limit, hermitian), dtype)


def _default_rtol(x: Array) -> float:
    return max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)


@quiet
def matrix_power(x: Array, n: int, dtype: DType, /) -> Array:
    """Return the n-th powers; the inverses take part for negative n."""
    return _rounded(np.linalg.matrix_power(computable(x, dtype), n), dtype)


@quiet
def multi_dot(arrays: Sequence[Array], dtype: DType, /) -> Array:
    """Return the product of matrices in the cheapest order; the first and the last may be vectors."""
    return _rounded(np.linalg.multi_dot([computable(x, dtype) for x in arrays]), dtype)


# --- numbers of a matrix ----------------------------------------------------------------------------------------------


@quiet
def det(x: Array, dtype: DType, /) -> Array:
    """Return the determinants."""
    return _rounded(np.linalg.det(computable(x, dtype)), dtype)


@quiet
def slogdet(x: Array, dtype: DType, /) -> tuple[Array, Array]:
    """Return the signs and the logarithms of the absolute values of the determinants."""
    sign, logabsdet = np.linalg.slogdet(computable(x, dtype))
    return _rounded(sign, dtype), _rounded(logabsdet, _real(dtype))


@quiet
def matrix_rank(x: Array, tol: Array | None, rtol: Array | None, hermitian: bool, dtype: DType, /) -> Array:
    """Return how many singular values are above `tol`, or above `rtol` times the largest one, as int64."""
    wide = computable(x, dtype)
    values = np.linalg.svd(wide, compute_uv=False, hermitian=hermitian)
    if tol is None:
        share = _default_rtol(wide) if rtol is None else rtol[..., None]
        limit = values.max(-1, keepdims=True, initial=0) * share
    else:
        limit = tol[..., None]
    return np.asarray(np.count_nonzero(values > limit, axis=-1))


@quiet
def cond(x: Array, ord: Any, dtype: DType, /) -> Array:
    """Return the condition numbers in a norm."""
    return _rounded(np.linalg.cond(computable(x, dtype), ord), _real(dtype))


@quiet
def matrix_norm(x: Array, ord: Any, keepdims: bool, dtype: DType, /) -> Array:
    """Return the norms of matrices: "nuc", or 1, 2 and infinity of either sign."""
    if ord == "nuc" or abs(ord) == 2:
        found = _spectral(_singular_values(x, False, dtype), ord)
    else:
        columns = _sizes(computable(x, dtype)).sum(-2 if abs(ord) == 1 else -1, dtype=np.float64)
        found = columns.max(-1, initial=0) if ord > 0 else columns.min(-1)
    return _rounded(np.asarray(found)[..., None, None] if keepdims else found, _real(dtype))


def _spectral(values: Array, ord: Any) -> Array:
    if ord == "nuc":
        return values.sum(-1, dtype=np.float64)
    return values.max(-1, initial=0) if ord == 2 else values.min(-1)


def _sizes(x: Array) -> Array:
    """The absolute values; those of complex numbers in float64."""
    return np.abs(converted(x, _COMPLEX128) if x.dtype.kind == "c" else x)
