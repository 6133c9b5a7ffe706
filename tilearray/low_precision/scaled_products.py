"""`scaled_matmul`: the product of two quantized matrices, of their values as they are in memory and of their scales.

The products of values are exact in float32, where they are added up, or in int32. Where a matrix has one scale, or one
for each row of `x1` and each column of `x2`, a sum is multiplied by both scales, in float32, and then rounded. Scales
of blocks along the summed axis belong to the values: these are dequantized to float32 before.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any, Final

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.dtypes import DTypeLike
from tilearray.engine.backend import ScaledProducts
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE, semantics, unrecorded
from tilearray.engine.devices import common_device
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import HostData, Signature, new_array, signature_of
from tilearray.errors import DTypeError, GradientError, ShapeError
from tilearray.functions.conversion import astype
from tilearray.functions.device_products import sums
from tilearray.functions.manipulation import broadcast_to, new_like, permute_dims, reshape
from tilearray.functions.products import matmul
from tilearray.functions.reduction_options import finished
from tilearray.geometry.layout import Layout
from tilearray.low_precision.quantize import dequantize
from tilearray.ops.execute import execute
from tilearray.ops.moves import assign
from tilearray.ops.signatures import show

VALUES: Final = (dtypes.float8_e4m3fn, dtypes.float8_e5m2, dtypes.int8)
UNIT: Final = 16
"""What the summed size and the columns must be multiples of, for a library."""
_FLOAT32: Final = dtypes.float32


def scaled_matmul(
    x1: Array | HostData,
    x2: Array | HostData,
    /,
    scale1: Array | HostData | float,
    scale2: Array | HostData | float,
    *,
    dtype: DTypeLike = "float32",
    out: Array | None = None,
) -> Array:
    """Return the matrix product of values with scales, as `quantize` returns them.

    Parameters
    ----------
    x1, x2 : Array
        Of shapes (M, K) and (K, N), both of int8, or each of float8_e4m3fn or float8_e5m2.
    scale1, scale2 : Array or number
        One scale for a matrix, or one for each block of it: ``quantize(x1, dtype, axis=-1)`` has one for each row, of
        shape (M, 1), and ``quantize(x2, dtype, axis=0)`` one for each column, of shape (1, N).
    dtype : dtype
        The dtype of the result: float16, bfloat16, float32 or float64.
    out : Array, optional
        The array to write to, of the result's shape.

    Returns
    -------
    Array
        Of shape (M, N): sums in float32, times both scales, rounded to `dtype`.

    Raises
    ------
    DTypeError
        If the values are of other dtypes, or the result is not such a float.
    ShapeError
        If the shapes do not fit.
    DeviceError
        If the arrays are on different devices.

    Notes
    -----
    On a GPU since sm_89 with the extra `linalg`, cuBLASLt multiplies float8 values where K and N are multiples of 16.
    Its tensor cores add up some products with fewer bits before they are added up as float32.

    Examples
    --------
    >>> import tilearray as ta
    >>> q1 = ta.quantize(ta.asarray([[1.0, -2.0], [30.0, 4.0]]), "float8_e4m3fn", axis=-1)
    >>> q2 = ta.quantize(ta.asarray([[0.5, 2.0], [0.25, 8.0]]), "float8_e4m3fn", axis=0)
    >>> ta.scaled_matmul(q1.values, q2.values, q1.scales, q2.scales, dtype="bfloat16").tolist()
    [[0.0, -14.0], [16.0, 92.0]]
    """
    operands: tuple[Any, ...] = x1, x2, scale1, scale2
    if out is None:
        ready = _READY.get((*[getattr(x, "_signature", None) for x in operands], dtype))
        if ready is not None and STATE.get().recording is None:
            return ready(*operands)
    left, right = asarray(x1), asarray(x2)
    target = _checked(left, right, dtype)
    factors = [_scales(scale, x) for scale, x in ((scale1, left), (scale2, right))]
    common_device("scaled_matmul", [x._signature for x in (left, right, *factors)])
    if any(x._signature.device.functions is not None for x in (left, right, *factors)):
        raise GradientError("vjp: scaled_matmul has no derivative; write ta.dequantize(...) @ ta.dequantize(...)")
    with unrecorded(), semantics("array-api"):
        found = finished("scaled_matmul", _product(left, right, factors[0], factors[1], target), out)
    if out is None and all(x.__class__ is Array for x in operands):
        _keep(operands, dtype, target)
    return found


class _Ready:
    """A product of one library call, found once: of arrays of some signatures with one scale each."""

    def __init__(self, products: ScaledProducts, planned: Any, signature: Signature) -> None:
        self._run, self._planned, self._signature = products.run, planned, signature

    def __call__(self, *operands: Any) -> Any:
        out = new_array(Array, self._signature)
        places = [(x._buffer, x._offset) for x in (out, *operands)]
        self._run(STATE.get().stream, self._planned, *places)
        return out


_READY: TwoGenerations[_Ready] = TwoGenerations(256)


def _keep(operands: Sequence[Any], dtype: DTypeLike, target: np.dtype) -> None:
    """Keep the product for later calls if it is one call of a library, without copies."""
    x1, x2, scale1, scale2 = operands
    products = x1._signature.device.backend.products
    is_whole = all(scale.size == 1 and scale.dtype == _FLOAT32 for scale in (scale1, scale2))
    if products is None or not is_whole or _read_along(x1, 1) is not x1 or _read_along(x2, 0) is not x2:
        return
    planned = _planned(products.scaled, x1, x2, target, False)
    if planned is not None:
        out = signature_of(Layout.of((x1.shape[0], x2.shape[1])), target, x1.device)
        key = (*[x._signature for x in operands], dtype)
        _READY.put(key, _Ready(products.scaled, planned, out))


def _checked(x1: Array, x2: Array, dtype: DTypeLike) -> np.dtype:
    """Check the values, and return the dtype of the result."""
    both = x1.dtype, x2.dtype
    if not all(one in VALUES for one in both) or (dtypes.int8 in both and both[0] != both[1]):
        raise DTypeError(
            f"scaled_matmul: expected values of float8_e4m3fn or float8_e5m2, or of int8 alone, got {both[0].name} and "
            f"{both[1].name}; write ta.quantize(x, 'float8_e4m3fn')"
        )
    if x1.ndim != 2 or x2.ndim != 2 or x1.shape[1] != x2.shape[0]:
        raise ShapeError(
            f"scaled_matmul: expected shapes (M, K) and (K, N), got {x1.shape} and {x2.shape}; write x2.mT, or a loop "
            f"over stacks of matrices"
        )
    target = dtypes.as_dtype(dtype, "scaled_matmul")
    info = dtypes.info(target)
    if info.kind != "float" or info.bits < 16:
        raise DTypeError(
            f"scaled_matmul: expected a float dtype of 16 bits or more for the result, got {target.name}; write "
            f"dtype='bfloat16', and quantize the result"
        )
    return target


def _scales(given: Any, x: Array) -> Array:
    """Return scales with two axes, whose extents divide those of the values."""
    scales = asarray(given, dtype=_FLOAT32, device=x.device) if isinstance(given, int | float) else asarray(given)
    if dtypes.info(scales.dtype).kind != "float":
        raise DTypeError(
            f"scaled_matmul: expected scales of a float dtype, got {scales.dtype.name}; write scales.astype('float32')"
        )
    if scales.size == 1:
        return reshape(scales, (1, 1))
    fits = scales.ndim == 2 and all((few and not many % few) or many == few for many, few in zip(x.shape, scales.shape))
    if not fits:
        raise ShapeError(
            f"scaled_matmul: expected one scale, or scales whose extents divide those of values of shape {x.shape}, "
            f"got shape {scales.shape}; write scales[:, None] for rows, and scales[None, :] for columns"
        )
    return scales


def _product(x1: Any, x2: Any, scale1: Any, scale2: Any, target: np.dtype) -> Any:
    """Return the product of values that fit."""
    if scale1.shape[1] > 1 or scale2.shape[0] > 1:  # scales of blocks along the summed axis
        product = matmul(dequantize(x1, scale1), dequantize(x2, scale2))
        return astype(product, target, copy=False)
    scale1, scale2 = (astype(scale, _FLOAT32, copy=False) for scale in (scale1, scale2))
    scale1, scale2 = _for_each(scale1, 0, x1.shape[0]), _for_each(scale2, 1, x2.shape[1])
    found = _by_library(x1, x2, (scale1, scale2), target)
    if found is not None:
        return found
    total = _by_library(x1, x2, (None, None), _FLOAT32)
    if total is None:
        total = _sums(x1, x2)
    return run_fixed(_scaling(total.dtype, target), [total, scale1, scale2], None)


@cache
def _scaling(source: np.dtype, target: np.dtype) -> FixedOperation:
    """Return the operation that multiplies sums by both scales in float32, and rounds."""
    builder = ExpressionBuilder()
    total = builder.cast(builder.array(source), source, _FLOAT32)
    both = builder.array(_FLOAT32), builder.array(_FLOAT32)
    factor = builder.call("multiply", both, _FLOAT32, "{x} * {y}")
    found = builder.call("multiply", (total, factor), _FLOAT32, "{x} * {y}")
    return FixedOperation("scaled_matmul", builder.build([builder.cast(found, _FLOAT32, target)], [target]))


def _for_each(scales: Any, axis: int, extent: int) -> Any:
    """Return one scale, or one for each row or column: each of several is repeated along its block."""
    count = scales.shape[axis]
    if count in (1, extent):
        return scales
    within = extent // count
    shape = (count, within) if axis == 0 else (1, count, within)
    repeated = broadcast_to(reshape(scales, (*scales.shape[: axis + 1], 1)[: len(shape)]), shape)
    return reshape(repeated, (extent, 1) if axis == 0 else (1, extent))


def _sums(x1: Any, x2: Any) -> Any:
    """Return the sums of products as float32, or of integers as int32 or float64."""
    is_integer = x1.dtype == dtypes.int8
    if x1._signature.device.backend.linear_algebra is not None or not (x1.size and x2.size):
        wide = dtypes.float64 if is_integer else _FLOAT32  # which holds sums of products of bytes
        return matmul(astype(x1, wide), astype(x2, wide))
    common = dtypes.int8 if is_integer else dtypes.float16  # which holds both floats of 8 bits
    return sums("scaled_matmul", x1, x2, common, dtypes.int32 if is_integer else _FLOAT32)


def _by_library(x1: Any, x2: Any, scales: tuple[Any, Any], target: np.dtype) -> Any:
    """Return the product through a library of the device, times the scales if there are some; None if it has none."""
    products = x1._signature.device.backend.products
    if products is None or x1.dtype == dtypes.int8 or not (x1.size and x2.size):
        return None
    vectors = any(scale is not None and scale.size > 1 for scale in scales)
    if x1.shape[1] % UNIT or x2.shape[1] % UNIT:
        return None
    x1, x2 = _read_along(x1, 1), _read_along(x2, 0)
    planned = _planned(products.scaled, x1, x2, target, vectors)
    if planned is None:
        return None
    shape = x1.shape[0], x2.shape[1]
    extents = ((shape[0], 1), (1, shape[1])) if vectors else ((1, 1), (1, 1))
    factors = [None if scale is None else _dense(broadcast_to(scale, each)) for scale, each in zip(scales, extents)]
    out: Any = new_like(x1, shape, target)
    places = [None if x is None else (x._buffer, x._offset) for x in (out, x1, x2, *factors)]
    products.scaled.run(STATE.get().stream, planned, *places)
    return out


def _planned(products: ScaledProducts, x1: Any, x2: Any, target: np.dtype, vectors: bool) -> Any:
    """Return what the library runs for matrices that it reads as they lie, or None."""
    names = x1.dtype.name, x2.dtype.name, target.name
    sizes, layouts = (*x1.shape, x2.shape[1]), (x1._signature.layout, x2._signature.layout)
    pitches = layouts[0].strides[0], layouts[1].strides[1]
    return products.planned(STATE.get().stream, names, sizes, pitches, vectors)


def _read_along(x: Any, axis: int) -> Any:
    """Return a matrix that is dense along an axis and aligned, or such a copy of it."""
    layout, other = x._signature.layout, 1 - axis
    if layout.strides[axis] == 1 and layout.strides[other] >= layout.shape[axis] and x._signature.aligned:
        return x
    given = x if axis else permute_dims(x, (1, 0))
    copy = execute(assign, (given,), new_like(x, given.shape))
    return copy if axis else permute_dims(copy, (1, 0))


def _dense(scales: Any) -> Any:
    """Return scales one after the other, aligned."""
    layout = scales._signature.layout
    if scales._signature.aligned and (layout.contiguous or prod(layout.shape) == 1):
        return scales
    return execute(assign, (scales,), new_like(scales, scales.shape, _FLOAT32))


show([scaled_matmul])
