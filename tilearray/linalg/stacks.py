"""Functions that the main namespace also has, as the standard defines them here: on the last two axes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tilearray.dtypes import DTypeLike
from tilearray.engine.array_type import A
from tilearray.engine.signature import HostData
from tilearray.errors import ShapeError
from tilearray.functions import manipulation, tensor_products
from tilearray.functions.arguments import all_arrays, as_array, common_dtype, listed
from tilearray.functions.reduction_options import finished
from tilearray.functions.reductions import sum
from tilearray.geometry.shapes import as_int
from tilearray.linalg.operands import check_matrices, check_square, computed, float_dtype, matrices
from tilearray.ops.row import ANY


def diagonal(x: A | HostData, /, *, offset: int = 0) -> A:
    """Return the view of the diagonals of matrices; `tilearray.diagonal` takes the first two axes.

    Parameters
    ----------
    x : Array
        Of shape (..., M, N), on any device.
    offset : int
        Which diagonal: 0 is the main one, higher ones are above it. It may lie outside the matrix.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes, or `offset` is not an integer.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.diagonal(ta.reshape(ta.arange(8), (2, 2, 2))).tolist()
    [[0, 3], [4, 7]]
    """
    x = as_array("linalg.diagonal", x)
    check_matrices("linalg.diagonal", x)
    return manipulation.diagonal(x, offset, -2, -1)


def trace(x: A | HostData, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> A:
    """Return the sums of the diagonals of matrices; `tilearray.trace` takes the first two axes.

    Parameters
    ----------
    x : Array
        Of shape (..., M, N), on any device.
    offset : int
        Which diagonal: 0 is the main one, higher ones are above it.
    dtype : dtype or name, optional
        The dtype of the result, as for `sum`.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.trace(ta.reshape(ta.arange(8), (2, 2, 2)))
    Array([ 3, 11], dtype=int64, device='cpu')
    """
    x = as_array("linalg.trace", x)
    check_matrices("linalg.trace", x)
    return sum(manipulation.diagonal(x, offset, -2, -1), axis=-1, dtype=dtype)


def outer(x1: A | HostData, x2: A | HostData, /) -> A:
    """Return the products of all elements of two vectors, on any device.

    Parameters
    ----------
    x1, x2 : Array
        1-d. `tilearray.outer` takes any shapes.

    Raises
    ------
    ShapeError
        If an array is not 1-d.
    PromotionError
        If the dtypes have no common dtype.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.outer(ta.asarray([1, 2]), ta.asarray([1, 10])).tolist()
    [[1, 10], [2, 20]]
    """
    x1, x2 = all_arrays("linalg.outer", (x1, x2))
    for name, x in (("x1", x1), ("x2", x2)):
        if x.ndim != 1:
            raise ShapeError(f"linalg.outer: expected 1-d {name}, got shape {x.shape}; write ta.outer, which flattens")
    return tensor_products.outer(x1, x2)


def cross(x1: A, x2: A, /, *, axis: int = -1) -> A:
    """Return the cross products of vectors of three elements. See `tilearray.cross`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.cross(ta.asarray([1, 0, 0]), ta.asarray([0, 1, 0]))
    Array([0, 0, 1], dtype=int64, device='cpu')
    """
    return tensor_products.cross_along("linalg.cross", x1, x2, axis, axis, axis)


def matrix_power(x: A | HostData, n: int, /) -> A:
    """Return the n-th power of square matrices: n products, the identity for 0, and of the inverse for negative n.

    Parameters
    ----------
    x : Array
        Of shape (..., M, M). Integers wrap, and become floats for negative n.
    n : int

    Raises
    ------
    LinAlgError
        If n is negative and a matrix is singular.
    ShapeError
        If the matrices are not square, or n is not an integer.
    ImportError
        If `x` is on a GPU, n is negative, and tilearray[linalg] is not installed.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.matrix_power(ta.asarray([[1, 1], [1, 0]]), 10).tolist()
    [[89, 55], [55, 34]]
    """
    name = "linalg.matrix_power"
    x = as_array(name, x)
    part = matrices(name, x)
    check_square(name, x)
    times = as_int(n, name, "n")
    dtype = float_dtype(name, x) if times < 0 else common_dtype(name, [x.dtype], ANY)
    return computed(name, part, "matrix_power", x, times, dtype)


def multi_dot(arrays: Sequence[A | HostData], *, out: A | None = None) -> A:
    """Return the product of several matrices, multiplied in the order that takes the fewest operations.

    Parameters
    ----------
    arrays : sequence of Array
        At least two matrices, whose sizes fit. The first and the last may be vectors: a row and a column.
    out : Array, optional
        The array to write to.

    Raises
    ------
    ShapeError
        If there are fewer than two arrays, or their shapes do not fit.
    PromotionError
        If the dtypes have no common dtype.
    DeviceError
        If the arrays are on different devices.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.multi_dot([ta.ones((2, 9)), ta.ones((9, 3)), ta.ones(3)]).tolist()
    [27.0, 27.0]
    """
    name = "linalg.multi_dot"
    given = all_arrays(name, listed(name, arrays), "arrays[{}]")
    if len(given) < 2:
        raise ShapeError(f"{name}: expected at least two arrays, got {len(given)}; write ta.linalg.multi_dot([a, b])")
    part = matrices(name, *given)
    shapes = [x.shape for x in given]
    inner = all(len(shape) == 2 for shape in shapes[1:-1])
    outer = all(len(shape) in (1, 2) for shape in (shapes[0], shapes[-1]))
    if not inner or not outer or any(left[-1] != right[-2:][0] for left, right in pairwise(shapes)):
        raise ShapeError(
            f"{name}: expected matrices whose rows fit the columns before, and vectors only as the first and the last, "
            f"got shapes {', '.join(map(str, shapes))}; write ta.matmul for stacks of matrices"
        )
    dtype = common_dtype(name, [x.dtype for x in given], ANY)
    found = computed(name, part, "multi_dot", given, dtype)
    return finished(name, found, out)
