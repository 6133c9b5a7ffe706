"""Determinants and ranks."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple

from tilearray.engine.array_type import A
from tilearray.engine.context import STATE
from tilearray.engine.signature import HostData
from tilearray.errors import OperandError
from tilearray.functions.arguments import as_array
from tilearray.functions.conversion import astype
from tilearray.functions.manipulation import reshape
from tilearray.linalg.operands import check_square, computed, computed_of_square, float_dtype, matrices, tolerances
from tilearray.ops.options import checked_flag


class SlogdetResult(NamedTuple, Generic[A]):
    """The result of `slogdet`."""

    sign: A
    logabsdet: A


def det(x: A | HostData, /) -> A:
    """Return the determinants of matrices.

    Parameters
    ----------
    x : Array
        Of shape (..., M, M).

    Returns
    -------
    Array
        Of shape (...). `slogdet` neither overflows nor underflows.

    Raises
    ------
    ShapeError
        If the matrices are not square.
    ImportError
        If `x` is on a GPU, and tilearray[linalg] is not installed.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.det(ta.asarray([[2.0, 0.0], [0.0, 3.0]]))
    Array(6., dtype=float32, device='cpu')
    """
    return computed_of_square("det", x)


def slogdet(x: A | HostData, /) -> SlogdetResult[A]:
    """Return the sign and the logarithm of the absolute value of determinants: ``det = sign * exp(logabsdet)``.

    Parameters and errors are those of `det`.

    Returns
    -------
    sign : Array
        Of shape (...), of the dtype of `x`: 1, -1, a complex number of size 1, or 0 for a singular matrix.
    logabsdet : Array
        Of shape (...), of the real dtype; -infinity for a singular matrix.

    Examples
    --------
    >>> import tilearray as ta
    >>> found = ta.linalg.slogdet(ta.asarray([[0.0, 1.0], [1.0, 0.0]]))
    >>> found.sign.item(), found.logabsdet.item()
    (-1.0, 0.0)
    """
    sign, logabsdet = computed_of_square("slogdet", x)
    return SlogdetResult(sign, logabsdet)


def matrix_rank(x: A | HostData, /, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> A:
    """Return the ranks of matrices: how many singular values count as other than 0.

    Parameters
    ----------
    x : Array
        Of shape (..., M, N). A vector is one row.
    tol : float or Array, optional
        Singular values up to this count as 0; an Array has one for each matrix.
    hermitian : bool
        Whether the matrices are Hermitian, which allows a faster method.
    rtol : float or Array, optional
        The same, relative to the largest singular value. The default is ``max(M, N) * eps``, with eps of the dtype that
        computes: that of float32 for narrower floats.

    Returns
    -------
    Array
        Of shape (...), of the default integer dtype.

    Raises
    ------
    LinAlgError
        If the iteration does not converge, as for NaN.
    OperandError
        If `tol` and `rtol` are both given, or are not real.
    ImportError
        If `x` is on a GPU, and tilearray[linalg] is not installed.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.matrix_rank(ta.ones((2, 3, 3)))
    Array([1, 1], dtype=int64, device='cpu')
    """
    name = "linalg.matrix_rank"
    x = as_array(name, x)
    part = matrices(name, x)
    if tol is not None and rtol is not None:
        raise OperandError(f"{name}: expected tol or rtol, got both; write rtol=1e-6 alone")
    x = x if x.ndim >= 2 else reshape(x, (1, x.size))
    if checked_flag(name, "hermitian", hermitian):
        check_square(name, x, instead="hermitian=False")
    bounds = tolerances(name, "tol", tol, x), tolerances(name, "rtol", rtol, x)
    found = computed(name, part, "matrix_rank", x, *bounds, bool(hermitian), float_dtype(name, x))
    return astype(found, STATE.get().semantics.defaults["int"], copy=False)
