"""Triangles, diagonals and grids: functions of positions.

No indices are enumerated. The diagonal of an element depends on ``column - row`` only, so the mask of a triangle is a
view with strides (-1, 1) of one bool for each diagonal::

    4 x 3, k = 0     bools, lowest left to highest right     row i, column j is bool number 3 - i + j
                     T T T T F F                             tril: those up to the diagonal k are true

The mask takes the memory of a vector, and nothing moves between devices. A GPU computes the places of dense elements
instead, in one launch.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.fills import empty, numpy_makes
from tilearray.arrays.uninitialised import dtype_or_default, uninitialised
from tilearray.dtypes import DTypeLike
from tilearray.engine.devices import CPU, Device, DeviceLike, as_device, common_device
from tilearray.engine.execute import is_recorded, run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.remembered import Words, again, remember_launch
from tilearray.engine.signature import HostData, dense_signature, over
from tilearray.errors import ShapeError, shown
from tilearray.functions.arguments import all_arrays, as_array
from tilearray.functions.manipulation import broadcast_to, diagonal
from tilearray.functions.orders import Order
from tilearray.geometry.layout import Layout, as_shape
from tilearray.geometry.shapes import as_int, as_ints
from tilearray.ops.arithmetic import choose
from tilearray.ops.execute import execute, fill
from tilearray.ops.moves import assign
from tilearray.ops.reduction import call_row
from tilearray.ops.row import ANY

MOST = 2**31 - 1
"""The most elements of a triangle whose places a kernel computes, in 32 bits. Then there is one launch, without a mask.

On an H100 `tril` of 2000 x 2000 float32 takes 20 us so, 70 with a mask, and 13 in torch; of 8192 x 8192 183, 192, 184.
"""


def tril(x: Array | HostData, /, k: int = 0) -> Array:
    """Return the lower triangle of matrices: a copy with zeros above a diagonal.

    Parameters
    ----------
    x : Array
        Of shape (..., M, N).
    k : int
        The last diagonal to keep: 0 is the main one, higher ones are above it.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes, or `k` is not an integer.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.tril(ta.asarray([[1, 2, 3], [4, 5, 6]]))
    Array([[1, 0, 0],
           [4, 5, 0]], dtype=int64, device='cpu')
    """
    words = ("tril", k) if k.__class__ is int else None
    known = again(words, x)
    return _triangle(x, k, "tril", words) if known is None else known


def triu(x: Array | HostData, /, k: int = 0) -> Array:
    """Return the upper triangle of matrices: a copy with zeros below a diagonal.

    Parameters
    ----------
    x : Array
        Of shape (..., M, N).
    k : int
        The first diagonal to keep: 0 is the main one, higher ones are above it.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes, or `k` is not an integer.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.triu(ta.asarray([[1, 2, 3], [4, 5, 6]]), k=1)
    Array([[0, 2, 3],
           [0, 0, 6]], dtype=int64, device='cpu')
    """
    words = ("triu", k) if k.__class__ is int else None
    known = again(words, x)
    return _triangle(x, k, "triu", words) if known is None else known


def _triangle(x: Array | HostData, k: Any, function: str, words: Words | None) -> Array:
    x = as_array(function, x)
    shape = x.shape
    k = as_int(k, function, "k")
    if len(shape) < 2:
        raise ShapeError(
            f"{function}: expected at least 2 axes, got shape {shape}; write ta.broadcast_to(x, (rows, columns)) first"
        )
    result = empty(shape, dtype=x.dtype, device=x.device)
    if not x.size:
        return result
    if _counts_places(x):
        rows, columns = shape[-2:]
        is_stack = len(shape) > 2
        numbers = [columns, *[rows] * is_stack, max(-rows, min(k, columns))]
        operation, operands = _kept(function, x.dtype, is_stack), [x, *numbers]
        run_fixed(operation, operands, result)
        remember_launch(words, x, operation, operands, result, result)
        return result
    zero = False if x.dtype == dtypes.bool_ else 0
    return execute(choose, (_mask(shape[-2], shape[-1], k, function == "tril", x.device), x, zero), result)


def _counts_places(x: Array) -> bool:
    """Return whether elements are dense, on a GPU, in places of 32 bits, and neither recorded nor followed."""
    device, layout = x._signature.device, x._signature.layout
    if layout.size > MOST or not layout.contiguous or is_recorded(device):
        return False
    return not device.backend.on_host and dtypes.info(x.dtype).kind in ANY


@cache
def _kept(function: str, dtype: np.dtype, is_stack: bool) -> FixedOperation:
    """Return the operation that keeps elements up to a diagonal, or from one on: of what `_diagonals` takes."""
    builder = ExpressionBuilder()
    element = builder.array(dtype)
    diagonal, k = _diagonals(builder, is_stack)
    name, sign = ("less_equal", "<=") if function == "tril" else ("greater_equal", ">=")
    is_kept = builder.call(name, (diagonal, k), dtypes.bool_, f"{{x}} {sign} {{y}}")
    zero = builder.cast(builder.constant(False, dtypes.bool_), dtypes.bool_, dtype)
    found = call_row(builder, choose, is_kept, element, zero, dtype=dtype)
    return FixedOperation(function, builder.build([found], [dtype]))


@cache
def _eye(dtype: np.dtype) -> FixedOperation:
    """Return the operation that writes ones on one diagonal of a matrix: of what `_diagonals` takes."""
    builder = ExpressionBuilder()
    is_one = builder.call("equal", _diagonals(builder, False), dtypes.bool_, "{x} == {y}")
    return FixedOperation("eye", builder.build([builder.cast(is_one, dtypes.bool_, dtype)], [dtype]))


def _diagonals(builder: ExpressionBuilder, is_stack: bool) -> tuple[int, int]:
    """Return the diagonal of each element of dense matrices, and the number of a diagonal, as int32.

    Numbers are given for the columns, for the rows of a stack of matrices, and for the diagonal. Unsigned division is
    faster.
    """
    place = builder.cast(builder.node("index"), dtypes.int64, dtypes.uint32)

    def divided(name: str, sign: str, x: int, y: int) -> int:
        return builder.call(name, (x, y), dtypes.uint32, f"{{x}} {sign} {{y}}")

    columns = builder.number(dtypes.uint32)
    column, row = divided("remainder", "%", place, columns), divided("floor_divide", "//", place, columns)
    if is_stack:
        row = divided("remainder", "%", row, builder.number(dtypes.uint32))
    column, row = (builder.cast(each, dtypes.uint32, dtypes.int32) for each in (column, row))
    return builder.call("subtract", (column, row), dtypes.int32, "{x} - {y}"), builder.number(dtypes.int32)


def _mask(rows: int, columns: int, k: int, lower: bool, device: Device) -> Array:
    """True on the diagonals up to `k`, or from `k` on. Diagonal d is bool number ``d + rows - 1``."""
    count = rows + columns - 1
    edge = min(max(k + rows if lower else k + rows - 1, 0), count)
    diagonals = empty(count, dtype=dtypes.bool_, device=device)
    fill(diagonals[:edge], lower, "fill")
    fill(diagonals[edge:], not lower, "fill")
    return diagonals._view(Layout((rows, columns), (-1, 1)), rows - 1)


def eye(
    N: int,  # noqa: N803 - NumPy's names
    M: int | None = None,  # noqa: N803
    k: int = 0,
    dtype: DTypeLike | None = None,
    order: Order = "C",
    *,
    device: DeviceLike | None = None,
) -> Array:
    """Return a matrix with ones on one diagonal and zeros elsewhere.

    Parameters
    ----------
    N : int
        The number of rows.
    M : int, optional
        The number of columns; None is `N`.
    k : int
        Which diagonal: 0 is the main one, higher ones are above it. It may lie outside the matrix.
    dtype : dtype or name, optional
        None is the default float dtype of the active semantics.
    order : {"C", "F"}
        "F" makes the first axis the dense one.
    device : Device or str, optional

    Raises
    ------
    ShapeError
        If a size is negative, or a size or `k` is not an integer.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.eye(2, 3, k=1, dtype="int8")
    Array([[0, 1, 0],
           [0, 0, 1]], dtype=int8, device='cpu')
    """
    given = as_ints((N,) if M is None else (N, M), "eye", "shape", "sizes")
    sizes = as_shape(given * 2 if M is None else given, "eye")
    k = as_int(k, "eye", "k")
    chosen, target = dtype_or_default(dtype, "eye"), as_device(device, "eye").of_constants
    if numpy_makes(chosen, target, order):
        signature = dense_signature(sizes, chosen, CPU, "eye")
        rows, columns = sizes
        return over(np.eye(rows, columns, max(-rows, min(k, columns)), chosen).ravel(), signature, Array)
    result = uninitialised(Array, sizes, chosen, target, "eye", order)
    if result.size and _counts_places(result):
        return run_fixed(_eye(chosen), [sizes[1], max(-sizes[0], min(k, sizes[1]))], result)
    fill(result, 0, "eye")
    fill(diagonal(result, offset=k), 1, "eye")
    return result


def meshgrid(
    *arrays: Array | HostData, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Array, ...]:
    """Return, for each of several coordinate axes, the coordinate of every point of the grid that they span.

    Parameters
    ----------
    *arrays : Array
        The coordinates along each axis, 1-d, on one device. Each keeps its dtype.
    copy : bool
        False returns views, which repeat the coordinates with stride 0 and cannot be written to.
    sparse : bool
        Whether to return the coordinates along their own axes only, to be broadcast.
    indexing : {"xy", "ij"}
        "ij": axis i of the grid is that of array i. "xy" exchanges the first two axes, so that a grid of columns and
        rows is indexed as ``[row, column]``.

    Returns
    -------
    tuple of Array
        New arrays in C order, all of the grid's shape; or as `copy` and `sparse` say.

    Raises
    ------
    ShapeError
        If an array is not 1-d, or `indexing` is another word.
    DeviceError
        If the arrays are on different devices.

    Examples
    --------
    >>> import tilearray as ta
    >>> columns, rows = ta.meshgrid(ta.arange(3), ta.arange(2))
    >>> columns.tolist(), rows.tolist()
    ([[0, 1, 2], [0, 1, 2]], [[0, 0, 0], [1, 1, 1]])
    """
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"meshgrid: expected indexing as 'xy' or 'ij', got {shown(indexing)}; write one of the two")
    arrays = tuple(all_arrays("meshgrid", arrays))
    for position, x in enumerate(arrays):
        if x.ndim != 1:
            raise ShapeError(
                f"meshgrid: expected 1-d arrays, got shape {x.shape} for array {position}; write ta.reshape(x, -1)"
            )
    if not arrays:
        return ()
    device = common_device("meshgrid", [x._signature for x in arrays])
    axes = list(range(len(arrays)))
    if indexing == "xy":
        axes[:2] = axes[:2][::-1]
    shape = tuple([arrays[axis].size for axis in axes])  # the exchange is its own inverse
    if sparse or not copy:
        spread = [_spread(x, axis, len(shape)) for x, axis in zip(arrays, axes)]
        return tuple([(x.copy() if copy else x) if sparse else broadcast_to(x, shape) for x in spread])
    return tuple([_along(x, axis, shape, device) for x, axis in zip(arrays, axes)])


def _spread(x: Array, axis: int, ndim: int) -> Array:
    """Coordinates along one axis, with size 1 along all others."""
    return x[(*(None,) * axis, slice(None), *(None,) * (ndim - 1 - axis))]


def _along(x: Array, axis: int, shape: tuple[int, ...], device: Device) -> Array:
    """Coordinates along one axis, repeated along all others."""
    spread = _spread(x, axis, len(shape))
    return execute(assign, (spread,), empty(shape, dtype=x.dtype, device=device))
