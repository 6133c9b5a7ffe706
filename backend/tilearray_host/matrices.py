"""Decompositions, inverses, determinants and norms of matrices by NumPy's LAPACK.

Operands are rounded to one dtype. float32 and wider go to NumPy as they are, narrower floats as float32; each result is
rounded once. Norms add up in float64, as sums do. NumPy's own LinAlgError says that a decomposition does not exist.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilearray_host.casts import computable, converted
from tilearray_host.float_errors import quiet

DType = np.dtype[Any]
Ints = tuple[int, ...]
Array = np.ndarray[Any, Any]

_COMPLEX64, _COMPLEX128, _FLOAT64 = np.dtype(np.complex64), np.dtype(np.complex128), np.dtype(np.float64)
_BLOCK = 8192
"""Elements that are cast to float64 at a time: 64 KiB, and so few that OpenBLAS multiplies them in one thread."""


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
    """Return the inverses."""
    return _rounded(np.linalg.inv(computable(x, dtype)), dtype)


@quiet
def solve(x1: Array, x2: Array, dtype: DType, /) -> Array:
    """Return the solutions of ``x1 @ x = x2`` for stacks of matrices `x2`."""
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
def vector_norm(x: Array, axes: Ints, ord: float, keepdims: bool, dtype: DType, /) -> Array:
    """Return the norms of the vectors that lie along axes.

    >>> vector_norm(np.array([3.0, 4.0]) * 2.0**900, (0,), 2, False, np.dtype(np.float64)) == 5 * 2.0**900
    np.True_
    """
    return _rounded(_norm(computable(x, dtype), axes, ord, keepdims), _real(dtype))


@quiet
def matrix_norm(x: Array, ord: Any, keepdims: bool, dtype: DType, /) -> Array:
    """Return the norms of matrices: "fro", "nuc", or 1, 2 and infinity of either sign."""
    if ord == "fro":
        return _rounded(_norm(computable(x, dtype), (-2, -1), 2, keepdims), _real(dtype))
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


def _norm(x: Array, axes: Ints, ord: float, keepdims: bool) -> Array:
    options: dict[str, Any] = {"axis": axes, "keepdims": keepdims}
    if ord == 2:
        return _euclidean(x, axes, keepdims)
    if ord == 0:
        return np.asarray(np.count_nonzero(x, **options))
    sizes = _sizes(x)
    if ord == math.inf:
        return np.asarray(sizes.max(**options, initial=0))
    if ord == -math.inf:
        return np.asarray(sizes.min(**options))
    if ord == 1:
        return np.asarray(sizes.sum(**options, dtype=np.float64))
    return np.asarray((converted(sizes, _FLOAT64) ** ord).sum(**options) ** (1 / ord))


# --- the Euclidean norm -----------------------------------------------------------------------------------------------


def _euclidean(x: Array, axes: Ints, keepdims: bool) -> Array:
    """The square root of the sum of squares in float64, of rescaled numbers where their squares leave its range."""
    kept = [axis for axis in range(x.ndim) if axis not in {axis % x.ndim for axis in axes}]
    shape = tuple([n if axis in kept else 1 for axis, n in enumerate(x.shape)])
    rows = _as_rows(x, kept)
    found = np.sqrt(_sums_of_squares(rows))
    if x.dtype.itemsize == (16 if x.dtype.kind == "c" else 8) and rows.size:
        beyond = ~((found > 1e-150) & (found < np.inf))
        if beyond.any():
            found[beyond] = _scaled(_sizes(rows[beyond]))
    return found.reshape(shape) if keepdims else found.reshape([x.shape[axis] for axis in kept])


def _as_rows(x: Array, kept: list[int]) -> Array:
    """A matrix with a row for each vector. Memory without gaps is read in its order if there is one vector."""
    if not kept:
        return x.ravel("K")[None]
    turned = np.moveaxis(x, kept, range(len(kept)))
    count = math.prod(turned.shape[: len(kept)])
    return turned.reshape(count, math.prod(turned.shape[len(kept) :]))


def _sums_of_squares(rows: Array) -> Array:
    """The sum of the squares of each row, in blocks that are cast to float64 in the cache."""
    if rows.dtype.kind == "c":
        return _sums_of_squares(rows.real) + _sums_of_squares(rows.imag)
    count, length = rows.shape
    found = np.zeros(count)
    step, width = max(1, _BLOCK // max(length, 1)), min(max(length, 1), _BLOCK)
    for first in range(0, count, step):
        for column in range(0, length, width):
            block = converted(rows[first : first + step, column : column + width], _FLOAT64)
            found[first : first + step] += np.vecdot(block, block)
    return found


def _scaled(sizes: Array) -> Array:
    """The Euclidean norms of rows that are divided by a power of 2, near their largest element, first."""
    largest = sizes.max(axis=1, keepdims=True, initial=0)
    usable = (largest > 0) & (largest < np.inf)
    scale = np.where(usable, np.ldexp(1.0, np.frexp(largest)[1] - 1), 1)
    return (np.sqrt(np.square(sizes / scale).sum(axis=1, keepdims=True)) * scale)[:, 0]
