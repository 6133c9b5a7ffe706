"""Sums of exponentials, and shares of them: `logsumexp`, `softmax` and `log_softmax`, on every device.

Each one subtracts the largest element first, so that nothing overflows: it is a `max`, a reduction of exponentials, and
an elementwise operation for the rest. Exponentials are computed in float32 or float64 and added up as by `sum`; the
result is rounded once. Infinities give what they give in `scipy.special`: the logarithms subtract the largest finite
number in place of an infinity.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.dtypes import finfo
from tilearray.engine.array_type import A
from tilearray.engine.context import STATE
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import HostData
from tilearray.functions.arguments import as_array, check_kind
from tilearray.functions.conversion import astype
from tilearray.functions.manipulation import new_like, squeeze
from tilearray.functions.reduce import reduce, reduce_arrays
from tilearray.functions.reductions import Axis, reduced_axes
from tilearray.geometry.shapes import reduced_shape
from tilearray.ops import arithmetic
from tilearray.ops.arithmetic import clamp
from tilearray.ops.elementary import log
from tilearray.ops.execute import fill
from tilearray.ops.reduction import accumulator, call_row, computed_in, exponential
from tilearray.ops.row import REAL


def logsumexp(x: A | HostData, /, axis: Axis = None, keepdims: bool = False) -> A:
    """Return the logarithm of the sum of exponentials, without overflow; of no elements it is -infinity.

    Parameters
    ----------
    x : Array
        Of a real dtype. Bool and integers give the float of their true division.
    axis : int or tuple of int, optional
        The axes to reduce; None reduces all.
    keepdims : bool
        Whether the result keeps the axes, with size 1.

    Returns
    -------
    Array
        NaN if there is a NaN, else infinity if there is one.

    Raises
    ------
    ShapeError
        If `x` has no such axis, or an axis occurs twice.
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.logsumexp(ta.asarray([1000.0, -1000.0]))
    Array(1000., dtype=float32, device='cpu')
    """
    given, axes = _floats("logsumexp", x, axis)
    if given.size:
        largest = _finite(given, axes)
        found = run_fixed(_rest("logsumexp", given.dtype), (_total(given, largest, axes), largest), None)
    else:
        found = fill(new_like(given, reduced_shape(given.shape, axes, True)), -math.inf, "logsumexp")
    return found if keepdims else squeeze(found, axis=axes)


def softmax(x: A | HostData, /, axis: Axis = -1) -> A:
    """Return exponentials divided by their sum along axes: ``exp(x) / sum(exp(x))``, without overflow.

    Parameters
    ----------
    x : Array
        Of a real dtype. Bool and integers give the float of their true division.
    axis : int or tuple of int, optional
        The axes along which results add up to 1; None is all.

    Returns
    -------
    Array
        Of the shape of `x`. All NaN along axes with a NaN, with an infinity, or with elements of -infinity alone.

    Raises
    ------
    ShapeError
        If `x` has no such axis, or an axis occurs twice.
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.softmax(ta.asarray([[0.0, 0.0], [1000.0, 0.0]])).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    return _shares("softmax", x, axis)


def log_softmax(x: A | HostData, /, axis: Axis = -1) -> A:
    """Return the logarithm of `softmax`, more exactly than ``log(softmax(x))``. Parameters and errors are its own.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.log_softmax(ta.asarray([1000.0, 0.0])).tolist()
    [0.0, -1000.0]
    """
    return _shares("log_softmax", x, axis)


def _shares(function: str, x: Any, axis: Axis) -> Any:
    x, axes = _floats(function, x, axis)
    if not x.size:
        return new_like(x, x.shape)
    largest = _largest(x, axes) if function == "softmax" else _finite(x, axes)
    return run_fixed(_rest(function, x.dtype), (x, largest, _total(x, largest, axes)), None)


def _floats(function: str, x: Any, axis: Axis) -> tuple[Any, tuple[int, ...]]:
    """The operand as floats, and the axes."""
    x = as_array(function, x)
    axes = reduced_axes(function, x, axis)
    check_kind(function, x.dtype, REAL)
    is_float = dtypes.info(x.dtype).kind == "float"
    return x if is_float else astype(x, STATE.get().semantics.true_division), axes


def _largest(x: Any, axes: tuple[int, ...]) -> Any:
    return reduce("max", x, axes, x.dtype, True)


def _finite(x: Any, axes: tuple[int, ...]) -> Any:
    """The largest elements, as finite numbers or NaN."""
    most = finfo(x.dtype).max
    return clamp(_largest(x, axes), -most, most)


def _total(x: Any, largest: Any, axes: tuple[int, ...]) -> Any:
    """The sums of exp(x - largest), in the dtype in which they are added up."""
    return reduce_arrays("exponentials", (x, largest), axes, accumulator(x.dtype), True)


# --- what is left after the reductions -------------------------------------------------------------------------------


@cache
def _rest(function: str, dtype: np.dtype) -> FixedOperation:
    """The elementwise operation that makes results of a dtype from the largest elements and the sums."""
    builder = ExpressionBuilder()
    node = {"logsumexp": _logarithm, "softmax": _quotient, "log_softmax": _difference}[function](builder, dtype)
    return FixedOperation(function, builder.build([builder.cast(node, accumulator(dtype), dtype)], [dtype]))


def _logarithm(builder: ExpressionBuilder, dtype: np.dtype) -> int:
    """log(total) + largest."""
    wide = accumulator(dtype)
    total, largest = builder.array(wide), builder.cast(builder.array(dtype), dtype, wide)
    return call_row(builder, arithmetic.add, call_row(builder, log, total, dtype=wide), largest, dtype=wide)


def _quotient(builder: ExpressionBuilder, dtype: np.dtype) -> int:
    """exp(x - largest) / total."""
    narrow, wide = computed_in(dtype), accumulator(dtype)
    x, largest = (builder.cast(builder.array(dtype), dtype, narrow) for _ in range(2))
    power = builder.cast(exponential(builder, x, largest, narrow), narrow, wide)
    return call_row(builder, arithmetic.divide, power, builder.array(wide), dtype=wide)


def _difference(builder: ExpressionBuilder, dtype: np.dtype) -> int:
    """x - largest - log(total)."""
    wide = accumulator(dtype)
    x, largest = (builder.cast(builder.array(dtype), dtype, wide) for _ in range(2))
    distance = call_row(builder, arithmetic.subtract, x, largest, dtype=wide)
    return call_row(
        builder, arithmetic.subtract, distance, call_row(builder, log, builder.array(wide), dtype=wide), dtype=wide
    )
