"""Diagonals of matrices: their sums, and matrices made of them. `manipulation` has the view of a diagonal."""

from __future__ import annotations

from tilearray.dtypes import DTypeLike
from tilearray.engine.array_type import A
from tilearray.engine.signature import HostData
from tilearray.errors import ShapeError
from tilearray.functions.arguments import as_array
from tilearray.functions.manipulation import diagonal, new_like
from tilearray.functions.reductions import sum
from tilearray.geometry.shapes import as_int
from tilearray.ops.execute import execute, fill
from tilearray.ops.moves import assign


def diag(v: A | HostData, /, k: int = 0) -> A:
    """Return a matrix with a vector on a diagonal, or the diagonal of a matrix.

    Parameters
    ----------
    v : Array
        1-d: the result is a new matrix, 0 except on the diagonal. 2-d: the result is the view of its diagonal.
    k : int
        Which diagonal: 0 is the main one, higher ones are above it.

    Raises
    ------
    ShapeError
        If `v` is neither 1-d nor 2-d, or `k` is not an integer.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.diag(ta.asarray([1, 2]), k=1).tolist()
    [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    >>> ta.diag(ta.asarray([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int64, device='cpu')
    """
    v = as_array("diag", v, "v")
    k = as_int(k, "diag", "k")
    if v.ndim not in (1, 2):
        raise ShapeError(
            f"diag: expected a vector or a matrix, got shape {v.shape}; "
            f"write ta.diagonal(x, axis1=-2, axis2=-1) for stacks of matrices"
        )
    if v.ndim == 2:
        return diagonal(v, offset=k)
    size = v.size + abs(k)
    matrix = fill(new_like(v, (size, size)), 0, "diag")
    execute(assign, (v,), diagonal(matrix, offset=k))
    return matrix


def trace(
    x: A, /, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: A | None = None
) -> A:
    """Return the sum of a diagonal of two axes, as NumPy's `trace`.

    Parameters
    ----------
    x : Array
        With at least two axes, on any device.
    offset : int
        Which diagonal: 0 is the main one, higher ones are above it.
    axis1, axis2 : int
        The rows and the columns. `tilearray.linalg.trace` takes the last two.
    dtype : dtype or name, optional
        The dtype of the result, as for `sum`.
    out : Array, optional
        The array to write to.

    Raises
    ------
    ShapeError
        If `x` has no such axes.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.trace(ta.asarray([[1, 2], [3, 4]]))
    Array(5, dtype=int64, device='cpu')
    """
    return sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype, out=out)
