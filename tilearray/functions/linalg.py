"""Matrix and tensor products.

Operands are rounded to their common dtype first, as in elementwise operations; narrow floats are computed as float32,
and the result is rounded once. Integers wrap. Of bools a product is `and`, and a sum is `or`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from tilearray.engine.backend import LinearAlgebra
from tilearray.engine.devices import common_device
from tilearray.engine.signature import A, ArrayBase, check_array
from tilearray.errors import ShapeError
from tilearray.functions.arguments import common_dtype, linear_algebra_of, result
from tilearray.functions.conversion import to_numpy
from tilearray.functions.manipulation import permute_dims
from tilearray.geometry.shapes import as_int, broadcast_shapes, normalize_axes
from tilearray.ops.execute import check_target, execute
from tilearray.ops.moves import assign
from tilearray.ops.row import ANY


def matmul(x1: A, x2: A, /) -> A:
    """Return the matrix product, as the operator ``@`` does.

    Parameters
    ----------
    x1 : Array
        Of shape (..., M, K), or (K,), which is read as one row.
    x2 : Array
        Of shape (..., K, N), or (K,), which is read as one column. The axes before the last two broadcast.

    Returns
    -------
    Array
        Of shape (..., M, N), less the axis that a 1-d operand lacks, and of the common dtype.

    Raises
    ------
    ShapeError
        If an operand is 0-d, or the sizes K differ.
    BroadcastError
        If the other axes do not broadcast.
    PromotionError
        If the dtypes have no common dtype.
    DeviceError
        If an array is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.matmul(ta.asarray([[1, 2], [3, 4]]), ta.asarray([10, 1]))
    Array([12, 34], dtype=int64, device='cpu')
    """
    linear_algebra, dtype = _asked("matmul", x1, x2)
    rows, columns = x1.shape, x2.shape
    if not rows or not columns:
        raise ShapeError(f"matmul: expected arrays with axes, got shapes {rows} and {columns}; write x1 * x2")
    if rows[-1] != columns[-2:][0]:
        raise ShapeError(
            f"matmul: expected the last axis of x1 and the last but one of x2 (or its only one) of equal sizes, "
            f"got shapes {rows} and {columns}; write x2.mT, or ta.vecdot to multiply row by row"
        )
    broadcast_shapes(rows[:-2], columns[:-2], function="matmul")
    return result(linear_algebra.matmul(to_numpy(x1), to_numpy(x2), dtype), x1)


def matrix_transpose(x: A, /) -> A:
    """Return the view with the last two axes exchanged: ``x.mT``.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.matrix_transpose(ta.zeros((2, 3, 4))).shape
    (2, 4, 3)
    """
    check_array("matrix_transpose", x)
    ndim = x.ndim
    if ndim < 2:
        raise ShapeError(
            f"matrix_transpose: expected at least 2 axes, got shape {x.shape}; write ta.expand_dims(x, axis=0) first"
        )
    return permute_dims(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def vecdot(x1: A, x2: A, /, *, axis: int = -1) -> A:
    """Return the dot products of vectors: the sum of ``conj(x1) * x2`` along an axis.

    Parameters
    ----------
    x1, x2 : Array
        Of equal size along `axis`; all other axes broadcast.
    axis : int
        Counted from the last axis: from -N to -1, N the smaller number of axes.

    Raises
    ------
    ShapeError
        If an operand has no such axis, or the sizes along it differ.
    BroadcastError
        If the other axes do not broadcast.
    PromotionError
        If the dtypes have no common dtype.
    DeviceError
        If an array is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.vecdot(ta.asarray([[1, 2], [3, 4]]), ta.asarray([10, 1]))
    Array([12, 34], dtype=int64, device='cpu')
    """
    linear_algebra, dtype = _asked("vecdot", x1, x2)
    shapes = x1.shape, x2.shape
    place = as_int(axis, "vecdot", "axis")
    ndim = min(len(shape) for shape in shapes)
    if not -ndim <= place < 0:
        raise ShapeError(
            f"vecdot: expected {-ndim} <= axis < 0 for shapes {shapes[0]} and {shapes[1]}, got {place}; "
            f"write axis counted from the last one"
        )
    if shapes[0][place] != shapes[1][place]:
        raise ShapeError(
            f"vecdot: expected equal sizes along axis {place}, got shapes {shapes[0]} and {shapes[1]}; "
            f"write ta.broadcast_to for a vector of one element"
        )
    broadcast_shapes(*shapes, function="vecdot")
    return result(linear_algebra.vecdot(to_numpy(x1), to_numpy(x2), place, dtype), x1)


def tensordot(x1: A, x2: A, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> A:
    """Return the sum of products over pairs of axes; nothing broadcasts.

    Parameters
    ----------
    x1, x2 : Array
    axes : int or two tuples of int
        An int N pairs the last N axes of `x1` with the first N of `x2`; two tuples name the axes of each, in order.

    Returns
    -------
    Array
        The remaining axes of `x1`, then those of `x2`; of the common dtype.

    Raises
    ------
    ShapeError
        If an operand has no such axes, their numbers differ, or their sizes differ.
    PromotionError
        If the dtypes have no common dtype.
    DeviceError
        If an array is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.tensordot(ta.ones((2, 3, 4)), ta.ones((4, 5)), axes=1).shape
    (2, 3, 5)
    """
    linear_algebra, dtype = _asked("tensordot", x1, x2)
    first, second = _pairs(x1.ndim, x2.ndim, axes)
    if [x1.shape[axis] for axis in first] != [x2.shape[axis] for axis in second]:
        raise ShapeError(
            f"tensordot: expected equal sizes along axes {first} of x1 and {second} of x2, got shapes {x1.shape} and "
            f"{x2.shape}; write axes=((...), (...)) that fit"
        )
    return result(linear_algebra.tensordot(to_numpy(x1), to_numpy(x2), (first, second), dtype), x1)


def _pairs(ndim1: int, ndim2: int, axes: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The contracted axes of both operands."""
    if isinstance(axes, (tuple, list)):
        given = cast("Sequence[Any]", axes)
        first, second = (
            [normalize_axes(one, ndim, "tensordot") for one, ndim in zip(given, (ndim1, ndim2), strict=False)]
            if len(given) == 2
            else ((0,), ())
        )
        if len(first) == len(second):
            return first, second
        raise ShapeError(f"tensordot: expected as many axes of x1 as of x2, got axes {axes}; write ((...), (...))")
    count = as_int(axes, "tensordot", "axes")
    if not 0 <= count <= min(ndim1, ndim2):
        raise ShapeError(
            f"tensordot: expected 0 <= axes <= {min(ndim1, ndim2)} for arrays of {ndim1} and {ndim2} axes, "
            f"got {count}; write axes=0 for the outer product"
        )
    return tuple(range(ndim1 - count, ndim1)), tuple(range(count))


def einsum(subscripts: str, /, *operands: A) -> A:
    """Return the sum of products that a subscript string describes, as `numpy.einsum` reads it.

    Parameters
    ----------
    subscripts : str
        A letter for each axis of each operand, and after ``->`` those of the result.
    *operands : Array
        On the host.

    Returns
    -------
    Array
        Of the common dtype.

    Raises
    ------
    ShapeError
        If the subscripts do not fit the operands.
    PromotionError
        If the dtypes have no common dtype.
    DeviceError
        If an array is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.einsum("ij,j->i", ta.asarray([[1, 2], [3, 4]]), ta.asarray([10, 1]))
    Array([12, 34], dtype=int64, device='cpu')
    """
    if not operands:
        raise ShapeError(
            "einsum: expected at least one array after the subscripts, got none; write einsum('ij->ji', x)"
        )
    linear_algebra, dtype = _asked("einsum", *operands)
    try:
        found = linear_algebra.einsum(subscripts, tuple([to_numpy(x) for x in operands]), dtype)
    except ValueError as error:
        shapes = " and ".join([str(x.shape) for x in operands])
        raise ShapeError(
            f"einsum: {subscripts!r:.100} does not fit shapes {shapes}: {error}; "
            f"write a letter for each axis, such as 'ij,jk->ik'"
        ) from None
    return result(found, operands[0])


def _asked(function: str, *operands: ArrayBase) -> tuple[LinearAlgebra, np.dtype]:
    """The linear algebra of the operands' device, and their common dtype."""
    found = [linear_algebra_of(function, x) for x in operands]
    common_device(function, [x._signature for x in operands])
    return found[0], common_dtype(function, [x.dtype for x in operands], ANY)


def multiply_into(x1: A, x2: A) -> A:
    """Write the matrix product to `x1`: ``x1 @= x2``.

    Raises
    ------
    ShapeError
        If the product has another shape.
    """
    product = matmul(x1, x2)
    check_target("matmul", x1)
    if product.shape != x1.shape:
        raise ShapeError(
            f"matmul: expected a product of shape {x1.shape} to write in place, got {product.shape}; write x = x @ y"
        )
    return execute(assign, (product,), x1)
