"""Binary search in a sorted array, on a device that runs it as an expression: one launch for all values.

Both sides are compared in one dtype. Floats of 8 and 16 bits become float32, and bools uint8: all of their values are
there, in the same order. NaN is the last of all, as in sorting.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.context import STATE
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import empty_array, signature_of
from tilearray.functions.conversion import astype
from tilearray.geometry.layout import Layout
from tilearray.ops.execute import fill, store


def search(x: Any, values: Any, dtype: np.dtype, side: str) -> Any:
    """Return where values belong in a sorted array of one axis, as int64.

    Parameters
    ----------
    x : Array
        In the order of `sort`.
    values : Array
        On the same device.
    dtype : numpy.dtype
        Both are rounded to it before they are compared.
    side : {"left", "right"}
        Whether equal elements of `x` lie after the place, or before it.
    """
    layout, device = values._signature.layout, values._signature.device
    out = empty_array(values.__class__, signature_of(Layout.of(layout.shape), dtypes.int64, device), STATE.get().stream)
    if not x.size:
        return fill(out, 0, "searchsorted")
    ordered, wanted = _comparable(x, dtype), _comparable(values, dtype)
    if ordered._signature.layout.strides != (1,):
        dense = empty_array(x.__class__, signature_of(Layout.of(x.shape), ordered.dtype, device), STATE.get().stream)
        store(dense, ordered)
        ordered = dense
    memory = ordered._view(Layout(layout.shape, (0,) * layout.ndim))
    return run_fixed(searching(wanted.dtype, side), [memory, x.size, wanted], out)


def contained(x: Any, values: Any, dtype: np.dtype) -> Any:
    """Return whether values are among the elements of a sorted array, which has some: one of them is at their place.

    Parameters are those of `search`.
    """
    ordered, wanted = _comparable(x, dtype), _comparable(values, dtype)
    layout = wanted._signature.layout
    memory = ordered._view(Layout(layout.shape, (0,) * layout.ndim))
    return run_fixed(_containing(wanted.dtype), [memory, x.size, wanted], None)


def _comparable(x: Any, dtype: np.dtype) -> Any:
    """An array in a dtype, or in one that kernels compare as it."""
    info = dtypes.info(dtype)
    found = astype(x, dtype, copy=False)
    if info.kind == "float" and info.bits < 32:
        return astype(found, dtypes.float32)
    return astype(found, dtypes.uint8) if info.kind == "bool" else found


@cache
def _containing(dtype: np.dtype) -> FixedOperation:
    """Return the operation that compares values with the elements at their places in a sorted array."""
    builder = ExpressionBuilder()
    memory, count, value = builder.memory(dtype), builder.number(dtypes.int64), builder.array(dtype)
    place = builder.node("search", memory, count, value, "left")
    place = builder.call("inside", (place, count), dtypes.int64, "tl.minimum({x}, {y} - 1)")
    found = builder.node("gather", memory, place)
    same = builder.call("equal", (found, value), dtypes.bool_, "{x} == {y}")
    return FixedOperation("isin", builder.build([same], [dtypes.bool_]))


@cache
def searching(dtype: np.dtype, side: str) -> FixedOperation:
    """Return the operation that finds the places of values in a sorted array of as many elements as a number says."""
    builder = ExpressionBuilder()
    memory, count, value = builder.memory(dtype), builder.number(dtypes.int64), builder.array(dtype)
    place = builder.node("search", memory, count, value, side)
    return FixedOperation("searchsorted", builder.build([place], [dtypes.int64]))
