"""Products that are summed up: of matrices, vectors and tensors. `tensor_products` has those without a sum.

Operands are rounded to their common dtype first, as in elementwise operations; narrow floats are computed as float32,
and the result is rounded once. Integers wrap. Of bools a product is `and`, and a sum is `or`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from tilearray import dtypes
from tilearray.engine.array_type import A
from tilearray.engine.backend import LinearAlgebra
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE, State
from tilearray.engine.devices import common_device
from tilearray.engine.operation import Operation
from tilearray.engine.remembered import Words, again_of_arrays, remember
from tilearray.engine.signature import ArrayBase, HostData, check_array
from tilearray.errors import OperandError, ShapeError, shown
from tilearray.functions import device_einsum, device_products
from tilearray.functions.arguments import all_arrays, as_array, common_dtype, result
from tilearray.functions.conversion import to_numpy
from tilearray.functions.manipulation import broadcast_to, expand_dims, permute_dims, reshape, squeeze
from tilearray.functions.planned_products import again
from tilearray.functions.reduce import reduce_arrays, run_arrays
from tilearray.functions.reduction_options import finished
from tilearray.geometry.shapes import as_int, broadcast_shapes, check_axes, normalize_axes
from tilearray.ops.arithmetic import multiply
from tilearray.ops.execute import check_target, execute
from tilearray.ops.moves import assign
from tilearray.ops.number_parts import conj
from tilearray.ops.row import ANY
from tilearray.ops.summation_order import SummationOrder, order_on


def matmul(x1: A | HostData, x2: A | HostData, /, out: A | None = None) -> A:
    """Return the matrix product, as the operator ``@`` does.

    Parameters
    ----------
    x1 : Array
        Of shape (..., M, K), or (K,), which is read as one row.
    x2 : Array
        Of shape (..., K, N), or (K,), which is read as one column. The axes before the last two broadcast.
    out : Array, optional
        The array to write to, of the result's shape.

    Returns
    -------
    Array
        Of shape (..., M, N), less the axis that a 1-d operand lacks, and of the common dtype.

    Raises
    ------
    ShapeError
        If an operand is 0-d, the sizes K differ, or `out` has another shape.
    BroadcastError
        If the other axes do not broadcast.
    PromotionError
        If the dtypes have no common dtype.
    DeviceError
        If the arrays are on different devices.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.matmul(ta.asarray([[1, 2], [3, 4]]), ta.asarray([10, 1]))
    Array([12, 34], dtype=int64, device='cpu')
    """
    words = ("matmul", State.changes) if out is None else None
    known = again_of_arrays(words, x1, x2)
    if known is not None:
        return known
    x1, x2 = all_arrays("matmul", (x1, x2))
    return finished("matmul", _matmul("matmul", x1, x2, words), out)


_CHECKED: TwoGenerations[tuple[LinearAlgebra | None, np.dtype, Operation | None]] = TwoGenerations(2048)
"""For operands that `_checked` has seen: what it returned."""


def _matmul(function: str, x1: A, x2: A, words: Words | None = None) -> A:
    """The matrix product. `again_of_arrays` finds it under the words, if there are any."""
    key = (State.changes, STATE.get().semantics.key, x1._signature, x2._signature)
    known = _CHECKED.get(key) or _CHECKED.put(key, _checked(function, x1, x2))
    linear_algebra, dtype, whole = known
    if whole is not None:
        return run_arrays(whole, (x1, x2), words)
    if linear_algebra is None:
        return device_products.matmul(function, x1, x2, dtype)

    def multiplied(stream: Any, x1: A, x2: A) -> A:
        return result(linear_algebra.matmul(to_numpy(x1), to_numpy(x2), dtype), x1)

    if words is not None:
        remember(words, (x1, x2), multiplied)
    return multiplied(None, x1, x2)


def _checked(function: str, x1: A, x2: A) -> tuple[LinearAlgebra | None, np.dtype, Operation | None]:
    """Check the shapes. Return the linear algebra of the device, if it has its own, and the dtype of a matrix product.

    The third is the product as an operation, if a library of the device takes both operands as they lie.
    """
    linear_algebra, dtype = _asked(function, x1, x2)
    rows, columns = x1.shape, x2.shape
    if not rows or not columns:
        raise ShapeError(f"{function}: expected arrays with axes, got shapes {rows} and {columns}; write x1 * x2")
    if rows[-1] != columns[-2:][0]:
        raise ShapeError(
            f"{function}: expected the last axis of x1 and the last but one of x2 (or its only one) of equal sizes, "
            f"got shapes {rows} and {columns}; write x2.mT, or ta.vecdot to multiply row by row"
        )
    broadcast_shapes(rows[:-2], columns[:-2], function=function)
    whole = None if linear_algebra is not None else device_products.whole(function, x1, x2, dtype)
    return linear_algebra, dtype, whole


def matrix_transpose(x: A | HostData, /) -> A:
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
    x = as_array("matrix_transpose", x)
    ndim = x.ndim
    if ndim < 2:
        raise ShapeError(
            f"matrix_transpose: expected at least 2 axes, got shape {x.shape}; write ta.expand_dims(x, axis=0) first"
        )
    return permute_dims(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def vecdot(x1: A | HostData, x2: A | HostData, /, *, axis: int = -1, order: SummationOrder = "fixed") -> A:
    """Return the dot products of vectors: the sum of ``conj(x1) * x2`` along an axis.

    Parameters
    ----------
    x1, x2 : Array
        Of equal size along `axis`; all other axes broadcast.
    axis : int
        Counted from the last axis: from -N to -1, N the smaller number of axes.
    order : {"fixed", "any"}
        The order of additions, as for `sum`.

    Returns
    -------
    Array
        Of the common dtype, to which elements are rounded first. Products are added up as by `sum`.

    Raises
    ------
    ShapeError
        If an operand has no such axis, or the sizes along it differ.
    BroadcastError
        If the other axes do not broadcast.
    PromotionError
        If the dtypes have no common dtype.
    DeviceError
        If the arrays are on different devices.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.vecdot(ta.asarray([[1, 2], [3, 4]]), ta.asarray([10, 1]))
    Array([12, 34], dtype=int64, device='cpu')
    """
    words = ("vecdot", axis, order, State.changes) if axis.__class__ is int else None
    known = again_of_arrays(words, x1, x2)
    if known is not None:
        return known
    x1, x2 = all_arrays("vecdot", (x1, x2))
    dtype = _common("vecdot", x1, x2)
    order = order_on(x1.device, "vecdot", order)
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
    if shapes[0] != shapes[1]:
        shape = broadcast_shapes(*shapes, function="vecdot")
        x1, x2, words = broadcast_to(x1, shape), broadcast_to(x2, shape), None  # a plan takes the views
    return reduce_arrays("vecdot", (x1, x2), (x1.ndim + place,), dtype, False, order, words)


def matvec(x1: A | HostData, x2: A | HostData, /) -> A:
    """Return the product of matrices and vectors.

    Parameters
    ----------
    x1 : Array
        Of shape (..., M, N).
    x2 : Array
        Of shape (..., N). The axes before the matrix and the vector broadcast.

    Returns
    -------
    Array
        Of shape (..., M) and of the common dtype. Errors are those of `matmul`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.matvec(ta.asarray([[1, 2], [3, 4]]), ta.asarray([[1, 0], [0, 1]])).tolist()
    [[1, 3], [2, 4]]
    """
    x1, x2 = all_arrays("matvec", (x1, x2))
    _check_axes("matvec", (x1, 2), (x2, 1))
    return squeeze(_matmul("matvec", x1, expand_dims(x2, axis=-1)), axis=-1)


def vecmat(x1: A | HostData, x2: A | HostData, /) -> A:
    """Return the product of conjugated vectors and matrices.

    Parameters
    ----------
    x1 : Array
        Of shape (..., N).
    x2 : Array
        Of shape (..., N, M). The axes before the vector and the matrix broadcast.

    Returns
    -------
    Array
        Of shape (..., M) and of the common dtype. Errors are those of `matmul`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.vecmat(ta.asarray([1, 10]), ta.asarray([[1, 2], [3, 4]]))
    Array([31, 42], dtype=int64, device='cpu')
    """
    x1, x2 = all_arrays("vecmat", (x1, x2))
    _check_axes("vecmat", (x1, 1), (x2, 2))
    rows: Any = conj(x1) if dtypes.info(x1.dtype).kind == "complex" else x1
    return squeeze(_matmul("vecmat", expand_dims(rows, axis=-2), x2), axis=-2)


def dot(a: A, b: A, /, out: A | None = None) -> A:
    """Return the dot product as NumPy's `dot`: the sum over the last axis of `a` and the last but one of `b`.

    Parameters
    ----------
    a, b : Array
        Two vectors give their dot product, without conjugation; two matrices their matrix product. If `b` is 1-d, the
        sum is over its only axis. If one is 0-d, the result is ``a * b``. Other axes do not broadcast: the result has
        those of `a`, then those of `b`. Write `matmul` for stacks of matrices.
    out : Array, optional
        The array to write to, of the result's shape.

    Raises
    ------
    ShapeError
        If the sizes of the two axes differ, or `out` has another shape.
    PromotionError
        If the dtypes have no common dtype.
    DeviceError
        If the arrays are on different devices.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.dot(ta.asarray([1, 2, 3]), ta.asarray([10, 20, 30]))
    Array(140, dtype=int64, device='cpu')
    """
    return finished("dot", _contracted("dot", a, b, -2), out)


def inner(a: A, b: A, /) -> A:
    """Return the sum of products over the last axes, without conjugation.

    Parameters
    ----------
    a, b : Array
        With last axes of equal sizes. If one is 0-d, the result is ``a * b``. Other axes do not broadcast: the result
        has those of `a`, then those of `b`. Errors are those of `dot`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.inner(ta.asarray([[1, 2], [3, 4]]), ta.asarray([10, 1]))
    Array([12, 34], dtype=int64, device='cpu')
    """
    return _contracted("inner", a, b, -1)


def vdot(a: A | HostData, b: A | HostData, /) -> A:
    """Return the dot product of all elements in C order: the sum of ``conj(a) * b``, 0-d.

    Raises
    ------
    ShapeError
        If the arrays differ in their number of elements.
    PromotionError
        If the dtypes have no common dtype.
    DeviceError
        If the arrays are on different devices.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.vdot(ta.asarray([[1, 2], [3, 4]]), ta.asarray([[1, 10], [100, 1000]]))
    Array(4321, dtype=int64, device='cpu')
    """
    a, b = all_arrays("vdot", (a, b))
    dtype = _common("vdot", a, b)
    if a.size != b.size:
        raise ShapeError(
            f"vdot: expected arrays of equally many elements, got shapes {a.shape} and {b.shape}; "
            f"write ta.vecdot, which broadcasts"
        )
    return reduce_arrays("vecdot", (reshape(a, -1), reshape(b, -1)), (0,), dtype, False)


def tensordot(x1: A | HostData, x2: A | HostData, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> A:
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
        If the arrays are on different devices.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.tensordot(ta.ones((2, 3, 4)), ta.ones((4, 5)), axes=1).shape
    (2, 3, 5)
    """
    words = ("tensordot", axes, State.changes) if _is_plain(axes) else None
    if words is not None:
        known = again(words, (x1, x2))
        if known is not None:
            return known
    x1, x2 = all_arrays("tensordot", (x1, x2))
    linear_algebra, dtype = _asked("tensordot", x1, x2)
    first, second = _pairs(x1.ndim, x2.ndim, axes)
    if [x1.shape[axis] for axis in first] != [x2.shape[axis] for axis in second]:
        raise ShapeError(
            f"tensordot: expected equal sizes along axes {first} of x1 and {second} of x2, got shapes {x1.shape} and "
            f"{x2.shape}; write axes=((...), (...)) that fit"
        )
    check_axes(x1.ndim + x2.ndim - 2 * len(first), "tensordot")
    if linear_algebra is None:
        return device_products.tensordot("tensordot", x1, x2, (first, second), dtype, words)
    return result(linear_algebra.tensordot(to_numpy(x1), to_numpy(x2), (first, second), dtype), x1)


def _is_plain(axes: Any) -> bool:
    """Whether axes equal only axes that are read alike: 1 also equals True and 1.0."""
    if axes.__class__ is tuple:
        return all(each.__class__ is tuple and all(axis.__class__ is int for axis in each) for each in axes)
    return axes.__class__ is int


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


def einsum(subscripts: str, /, *operands: A | HostData, out: A | None = None, optimize: Any = None) -> A:
    """Return the sum of products that a subscript string describes, as `numpy.einsum` reads it.

    Parameters
    ----------
    subscripts : str
        A letter for each axis of each operand, and after ``->`` those of the result.
    *operands : Array
        On one device.
    out : Array, optional
        The array to write to, of the result's shape.
    optimize : optional
        Without effect: the order of the sums is always chosen. NumPy has this argument.

    Returns
    -------
    Array
        Of the common dtype.

    Raises
    ------
    OperandError
        If `subscripts` is not a str. NumPy's form with a list of axes after each operand is not supported.
    ShapeError
        If the subscripts do not fit the operands, or `out` has another shape.
    PromotionError
        If the dtypes have no common dtype.
    DeviceError
        If the arrays are on different devices.

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
    kind: Any = type(subscripts)
    if not issubclass(kind, str):
        raise OperandError(
            f"einsum: expected subscripts as a str, got {shown(subscripts)} of type {kind.__name__}; write "
            f"letters, such as einsum('ij,jk->ik', a, b)"
        )
    del optimize
    words = ("einsum", subscripts, State.changes) if subscripts.__class__ is str and len(operands) <= 2 else None
    if words is not None:
        known = again(words, operands)
        if known is not None:
            return finished("einsum", known, out)
    subscripts = str.__str__(subscripts)  # not the methods of a subclass
    operands = tuple(all_arrays("einsum", operands))
    linear_algebra, dtype = _asked("einsum", *operands)
    try:
        if linear_algebra is None:
            return finished("einsum", device_einsum.einsum(subscripts, operands, dtype, words), out)
        found = linear_algebra.einsum(subscripts, tuple([to_numpy(x) for x in operands]), dtype)
    except ValueError as error:
        shapes = " and ".join([str(x.shape) for x in operands])
        raise ShapeError(
            f"einsum: {shown(subscripts)} does not fit shapes {shapes}: {error}; "
            f"write a letter for each axis, such as 'ij,jk->ik'"
        ) from None
    return finished("einsum", result(found, operands[0]), out)


def _contracted(function: str, a: A | HostData, b: A | HostData, axis: int) -> A:
    """The sum of products over the last axis of `a` and one axis of `b`, or its only one."""
    of_vectors = (function, State.changes)
    known = again_of_arrays(of_vectors, a, b)
    if known is not None:
        return known
    words = ("contracted", *of_vectors)
    known = again(words, (a, b))
    if known is not None:
        return known
    a, b = all_arrays(function, (a, b))
    if not a.ndim or not b.ndim:
        product: Any = multiply(a, b)
        return product
    if a.ndim == b.ndim == 1 and a.shape == b.shape:
        return _matmul(function, a, b, of_vectors)
    linear_algebra, dtype = _asked(function, a, b)
    place = max(axis, -b.ndim)
    if a.shape[-1] != b.shape[place]:
        raise ShapeError(
            f"{function}: expected the last axis of a and axis {place} of b of equal sizes, got shapes {a.shape} and "
            f"{b.shape}; write b.mT, or ta.tensordot to name the axes"
        )
    if linear_algebra is None:
        return device_products.tensordot(function, a, b, ((a.ndim - 1,), (b.ndim + place,)), dtype, words)
    if a.ndim <= 2 and b.ndim <= 2 and (axis == -2 or b.ndim == 1):
        return result(linear_algebra.matmul(to_numpy(a), to_numpy(b), dtype), a)
    axes = ((a.ndim - 1,), (b.ndim + place,))
    return result(linear_algebra.tensordot(to_numpy(a), to_numpy(b), axes, dtype), a)


def _check_axes(function: str, *given: tuple[ArrayBase, int]) -> None:
    """Raise ShapeError if an operand has fewer axes than it needs."""
    for position, (x, least) in enumerate(given, 1):
        if x.ndim < least:
            raise ShapeError(
                f"{function}: expected at least {least} axes for x{position}, got shape {x.shape}; "
                f"write ta.expand_dims or ta.matmul"
            )


def _asked(function: str, *operands: ArrayBase) -> tuple[LinearAlgebra | None, np.dtype]:
    """The linear algebra of the operands' device, None if it runs products as kernels, and their common dtype."""
    check_array(function, operands[0])
    device = common_device(function, [x._signature for x in operands])
    return device.backend.linear_algebra, _common(function, *operands)


def _common(function: str, *operands: ArrayBase) -> np.dtype:
    """The common dtype of operands on one device."""
    signatures = [x._signature for x in operands]
    common_device(function, signatures)
    return common_dtype(function, [signature.dtype for signature in signatures], ANY)


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
