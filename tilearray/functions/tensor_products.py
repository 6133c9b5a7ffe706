"""Products without a sum, or with a sum of two: of elementwise operations on views, so on any device."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.array_type import A
from tilearray.engine.execute import is_recorded, run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import ArrayBase, HostData
from tilearray.errors import ShapeError
from tilearray.functions.arguments import all_arrays, common_dtype
from tilearray.functions.conversion import astype
from tilearray.functions.joining import stack
from tilearray.functions.manipulation import moveaxis, new_like, reshape, unstack
from tilearray.geometry.layout import Layout
from tilearray.geometry.shapes import broadcast_shapes, normalize_axis
from tilearray.ops.arithmetic import multiply, subtract
from tilearray.ops.promotion_methods import opmath
from tilearray.ops.reduction import call_row
from tilearray.ops.row import NUMERIC


def outer(a: A | HostData, b: A | HostData, /, out: A | None = None) -> A:
    """Return the products of all elements of `a` with all elements of `b`.

    Parameters
    ----------
    a, b : Array
        Of any shape, read in C order, on one device.
    out : Array, optional
        The array to write to.

    Returns
    -------
    Array
        Of shape (a.size, b.size), and of the common dtype.

    Raises
    ------
    PromotionError
        If the dtypes have no common dtype.
    DeviceError
        If the arrays are on different devices.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.outer(ta.asarray([1, 2]), ta.asarray([1, 10, 100])).tolist()
    [[1, 10, 100], [2, 20, 200]]
    """
    a, b = all_arrays("outer", (a, b))
    found: Any = multiply(reshape(a, (a.size, 1)), reshape(b, (1, b.size)), out=out)
    return found


def kron(a: A | HostData, b: A | HostData, /) -> A:
    """Return the Kronecker product: `b` times each element of `a`, laid out as blocks.

    Parameters
    ----------
    a, b : Array
        On one device. The one with fewer axes gets axes of size 1 in front.

    Returns
    -------
    Array
        Each size is the product of the operands' sizes; of the common dtype.

    Raises
    ------
    PromotionError
        If the dtypes have no common dtype.
    DeviceError
        If the arrays are on different devices.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.kron(ta.asarray([1, 10]), ta.asarray([1, 2, 3]))
    Array([ 1,  2,  3, 10, 20, 30], dtype=int64, device='cpu')
    """
    a, b = all_arrays("kron", (a, b))
    ndim = max(a.ndim, b.ndim)
    first, second = ((1,) * (ndim - x.ndim) + x.shape for x in (a, b))
    blocks = reshape(a, tuple([size for n in first for size in (n, 1)]))
    inside = reshape(b, tuple([size for n in second for size in (1, n)]))
    found: Any = multiply(blocks, inside)
    return reshape(found, tuple([n * m for n, m in zip(first, second)]))


def cross(x1: A, x2: A, /, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> A:
    """Return the cross products of vectors of three elements.

    Parameters
    ----------
    x1, x2 : Array
        Of a numeric dtype, on one device. All axes but those of the vectors broadcast. Narrow floats are computed as
        float32 and rounded once.
    axisa, axisb, axisc : int
        The axis of the vectors of `x1`, of `x2` and of the result.
    axis : int, optional
        All three.

    Raises
    ------
    ShapeError
        If an operand has no such axis, or its size is not 3.
    BroadcastError
        If the other axes do not broadcast.
    DTypeError
        If the common dtype is bool.
    DeviceError
        If the arrays are on different devices.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.cross(ta.asarray([1, 0, 0]), ta.asarray([0, 1, 0]))
    Array([0, 0, 1], dtype=int64, device='cpu')
    """
    places = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
    return cross_along("cross", x1, x2, *places)


def cross_along(function: str, x1: A | HostData, x2: A | HostData, axisa: Any, axisb: Any, axisc: Any) -> A:
    """The cross products of the vectors along one axis of each operand, along one axis of the result."""
    x1, x2 = all_arrays(function, (x1, x2))
    dtype = common_dtype(function, [x1.dtype, x2.dtype], NUMERIC)
    wide = opmath(dtype)
    if axisa == axisb == axisc == -1 and x1.shape == x2.shape and x1.shape[-1:] == (3,) and _are_dense(dtype, x1, x2):
        memories = [x._view(Layout(x.shape, (0,) * x.ndim)) for x in (x1, x2)]
        return run_fixed(_crossed(dtype, wide), memories, new_like(x1, x1.shape))
    first, second = _components(function, x1, axisa, wide), _components(function, x2, axisb, wide)
    shape = broadcast_shapes(first[0].shape, second[0].shape, function=function)
    place = normalize_axis(axisc, len(shape) + 1, function)
    turns = ((1, 2), (2, 0), (0, 1))
    found: Any = [subtract(multiply(first[i], second[j]), multiply(first[j], second[i])) for i, j in turns]
    return astype(stack(found, axis=place), dtype, copy=False)


def _are_dense(dtype: np.dtype, *arrays: ArrayBase) -> bool:
    """Return whether arrays of a float or complex dtype lie in C order on a GPU, and nobody follows or records them."""
    device = arrays[0]._signature.device
    if is_recorded(device) or not device.backend.computes_places:
        return False
    if dtypes.info(dtype).kind not in ("float", "complex") or not arrays[0].size:
        return False
    return all(x._signature.device is device and x.dtype == dtype and x._signature.layout.contiguous for x in arrays)


@cache
def _crossed(dtype: np.dtype, wide: np.dtype) -> FixedOperation:
    """Return the operation that multiplies dense vectors of three elements, of which it gets the memory."""
    builder, integer = ExpressionBuilder(), dtypes.int64
    memories = builder.memory(dtype), builder.memory(dtype)
    place = builder.node("index")
    turn = builder.call("remainder", (place, builder.constant(3, integer)), integer, "{x} % {y}")
    after = builder.call("after", (place, turn), integer, "{x} + tl.where({y} == 2, -2, 1)")
    before = builder.call("before", (place, turn), integer, "{x} + tl.where({y} == 0, 2, -1)")
    a, b, c, d = [
        builder.cast(builder.node("gather", memory, where), dtype, wide)
        for memory, where in zip(memories * 2, (after, before, before, after))
    ]
    products = [call_row(builder, multiply, *pair, dtype=wide) for pair in ((a, b), (c, d))]
    found = call_row(builder, subtract, *products, dtype=wide)
    return FixedOperation("cross", builder.build([builder.cast(found, wide, dtype)], [dtype]))


def _components(function: str, x: A, axis: Any, dtype: Any) -> tuple[A, ...]:
    """The three components of vectors along an axis, as views."""
    place = normalize_axis(axis, x.ndim, function)
    if x.shape[place] != 3:
        raise ShapeError(
            f"{function}: expected vectors of 3 elements along axis {axis}, got shape {x.shape}; "
            f"write ta.concat to append a 0 to vectors of 2"
        )
    return unstack(moveaxis(astype(x, dtype, copy=False), place, -1), axis=-1)
