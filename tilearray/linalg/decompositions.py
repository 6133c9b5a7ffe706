"""Factors of matrices: Cholesky, QR, singular values, eigenvalues."""

from __future__ import annotations

from typing import Any, Generic, Literal, NamedTuple, overload

from tilearray.engine.array_type import A
from tilearray.engine.signature import HostData
from tilearray.errors import ShapeError, shown
from tilearray.functions.arguments import as_array
from tilearray.linalg.operands import check_matrices, check_square, computed, computed_of_square, float_dtype, matrices
from tilearray.ops.options import checked_flag


class EigResult(NamedTuple, Generic[A]):
    """The result of `eig`."""

    eigenvalues: A
    eigenvectors: A


class EighResult(NamedTuple, Generic[A]):
    """The result of `eigh`."""

    eigenvalues: A
    eigenvectors: A


class QRResult(NamedTuple, Generic[A]):
    """The result of `qr`."""

    Q: A
    R: A


class SVDResult(NamedTuple, Generic[A]):
    """The result of `svd`."""

    U: A
    S: A
    Vh: A


def cholesky(x: A | HostData, /, *, upper: bool = False) -> A:
    """Return the Cholesky factor L of positive-definite matrices: ``x = L @ conj(L).mT``.

    Parameters
    ----------
    x : Array
        Of shape (..., M, M). Only one triangle is read, the lower one unless `upper` is true.
    upper : bool
        Whether to return the upper triangular factor U, with ``x = conj(U).mT @ U``.

    Returns
    -------
    Array
        Of the shape of `x`.

    Raises
    ------
    LinAlgError
        If a matrix is not positive definite.
    ShapeError
        If the matrices are not square.
    ImportError
        If `x` is on a GPU, and tilearray[linalg] is not installed.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.cholesky(ta.asarray([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    return computed_of_square("cholesky", x, checked_flag("linalg.cholesky", "upper", upper))


@overload
def qr(x: A, /, mode: Literal["reduced", "complete"] = "reduced") -> QRResult[A]: ...
@overload
def qr(x: A, /, mode: Literal["r"]) -> A: ...
def qr(x: A | HostData, /, mode: str = "reduced") -> QRResult[A] | A:
    """Return the factors of ``x = Q @ R``: Q has orthonormal columns, R is upper triangular.

    Parameters
    ----------
    x : Array
        Of shape (..., M, N).
    mode : {"reduced", "complete", "r"}
        "reduced": Q has min(M, N) columns. "complete": Q has M columns. "r": the result is R of "reduced" alone.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes, or the mode does not exist.
    ImportError
        If `x` is on a GPU, and tilearray[linalg] is not installed.

    Examples
    --------
    >>> import tilearray as ta
    >>> q, r = ta.linalg.qr(ta.asarray([[3.0, 1.0], [4.0, 2.0]]))
    >>> bool(ta.all(ta.isclose(ta.abs(r), ta.asarray([[5.0, 2.2], [0.0, 0.4]]))))
    True
    """
    name = "linalg.qr"
    x = as_array(name, x)
    part = matrices(name, x)
    check_matrices(name, x)
    if mode not in ("reduced", "complete", "r"):
        raise ShapeError(f"{name}: expected mode as 'reduced', 'complete' or 'r', got {shown(mode)}; write one of them")
    dtype = float_dtype(name, x)
    q, r = computed(name, part, "qr", x, "reduced" if mode == "r" else mode, dtype)
    return r if mode == "r" else QRResult(q, r)


@overload
def svd(
    x: A, /, full_matrices: bool = True, compute_uv: Literal[True] = True, hermitian: bool = False
) -> SVDResult[A]: ...
@overload
def svd(
    x: A | HostData, /, full_matrices: bool = True, *, compute_uv: Literal[False], hermitian: bool = False
) -> A: ...
@overload
def svd(x: A | HostData, /, full_matrices: bool, compute_uv: Literal[False], hermitian: bool = False) -> A: ...
def svd(
    x: A | HostData, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> SVDResult[A] | A:
    """Return the singular value decomposition ``x = U @ diag(S) @ Vh``.

    Parameters
    ----------
    x : Array
        Of shape (..., M, N).
    full_matrices : bool
        Whether U and Vh are square. If not, they have min(M, N) columns and rows.
    compute_uv : bool
        Whether to compute U and Vh. If not, the result is `svdvals`.
    hermitian : bool
        Whether the matrices are Hermitian, which allows a faster method; only the lower triangle is read.

    Returns
    -------
    U : Array
        Of shape (..., M, M) or (..., M, K), with K = min(M, N): the left singular vectors, as columns.
    S : Array
        Of shape (..., K), of the real dtype: the singular values in descending order.
    Vh : Array
        Of shape (..., N, N) or (..., K, N): the right singular vectors, conjugated, as rows.

    Raises
    ------
    LinAlgError
        If the iteration does not converge, as for NaN.
    ShapeError
        If `x` has fewer than two axes, or `hermitian` matrices are not square.
    ImportError
        If `x` is on a GPU, and tilearray[linalg] is not installed.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.svd(ta.asarray([[0.0, 2.0], [3.0, 0.0]])).S.tolist()
    [3.0, 2.0]
    """
    name = "linalg.svd"
    x = as_array(name, x)
    part = matrices(name, x)
    hermitian = checked_flag(name, "hermitian", hermitian)
    _check_hermitian(name, x, hermitian)
    dtype = float_dtype(name, x)
    if not checked_flag(name, "compute_uv", compute_uv):
        return computed(name, part, "svdvals", x, hermitian, dtype)
    full_matrices = checked_flag(name, "full_matrices", full_matrices)
    found = computed(name, part, "svd", x, full_matrices, hermitian, dtype)
    return SVDResult(*found)


def svdvals(x: A | HostData, /) -> A:
    """Return the singular values of matrices in descending order, of the real dtype. Errors are those of `svd`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.svdvals(ta.asarray([[0.0, 2.0], [3.0, 0.0]]))
    Array([3., 2.], dtype=float32, device='cpu')
    """
    name = "linalg.svdvals"
    x = as_array(name, x)
    part = matrices(name, x)
    check_matrices(name, x)
    return computed(name, part, "svdvals", x, False, float_dtype(name, x))


def _check_hermitian(function: str, x: Any, hermitian: bool) -> None:
    """Check the shape of matrices that are Hermitian or not."""
    if hermitian:
        check_square(function, x, instead="hermitian=False")
    else:
        check_matrices(function, x)


def eig(x: A | HostData, /) -> EigResult[A]:
    """Return the eigenvalues and the eigenvectors of any square matrices, always complex.

    Parameters
    ----------
    x : Array
        Of shape (..., M, M). Write `eigh` for Hermitian matrices.

    Returns
    -------
    eigenvalues : Array
        Of shape (..., M), in no particular order. Complex of the precision of `x`, at least complex64; NumPy's `eig`
        gives a real dtype if all imaginary parts are 0.
    eigenvectors : Array
        Of shape (..., M, M), of the same dtype. Column i belongs to eigenvalue i.

    Raises
    ------
    LinAlgError
        If an element is not finite, or the iteration does not converge.
    ShapeError
        If the matrices are not square.
    ImportError
        If `x` is on a GPU, and tilearray[linalg] is not installed.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.eig(ta.asarray([[0.0, -1.0], [1.0, 0.0]])).eigenvalues.tolist()
    [1j, -1j]
    """
    values, vectors = computed_of_square("eig", x, instead="ta.linalg.svd(x)")
    return EigResult(values, vectors)


def eigvals(x: A | HostData, /) -> A:
    """Return the eigenvalues of any square matrices, always complex, of shape (..., M). Errors are those of `eig`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.eigvals(ta.asarray([[0.0, -1.0], [1.0, 0.0]])).tolist()
    [1j, -1j]
    """
    return computed_of_square("eigvals", x, instead="ta.linalg.svdvals(x)")


def eigh(x: A | HostData, /, UPLO: Literal["L", "U"] = "L") -> EighResult[A]:  # noqa: N803 (NumPy's name)
    """Return the eigenvalues and the eigenvectors of Hermitian matrices.

    Parameters
    ----------
    x : Array
        Of shape (..., M, M). Only one triangle is read.
    UPLO : {"L", "U"}
        The lower triangle or the upper one.

    Returns
    -------
    eigenvalues : Array
        Of shape (..., M), of the real dtype, ascending.
    eigenvectors : Array
        Of shape (..., M, M), of the dtype of `x`, orthonormal. Column i belongs to eigenvalue i.

    Raises
    ------
    LinAlgError
        If the iteration does not converge, as for NaN.
    ShapeError
        If the matrices are not square, or `UPLO` is another word.
    ImportError
        If `x` is on a GPU, and tilearray[linalg] is not installed.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.eigh(ta.asarray([[0.0, 1.0], [1.0, 0.0]], dtype="float64")).eigenvalues.tolist()
    [-1.0, 1.0]
    """
    values, vectors = computed_of_square("eigh", x, _is_lower("linalg.eigh", UPLO), instead="ta.linalg.svd(x)")
    return EighResult(values, vectors)


def eigvalsh(x: A | HostData, /, UPLO: Literal["L", "U"] = "L") -> A:  # noqa: N803 (NumPy's name)
    """Return the eigenvalues of Hermitian matrices, ascending, of shape (..., M). Errors are those of `eigh`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.eigvalsh(ta.asarray([[2.0, 1.0], [1.0, 2.0]], dtype="float64")).tolist()
    [1.0, 3.0]
    """
    return computed_of_square("eigvalsh", x, _is_lower("linalg.eigvalsh", UPLO), instead="ta.linalg.svdvals(x)")


def _is_lower(function: str, triangle: Any) -> bool:
    if triangle in ("L", "U", "l", "u"):
        return triangle in ("L", "l")
    raise ShapeError(f"{function}: expected UPLO as 'L' or 'U', got {shown(triangle)}; write one of the two")
