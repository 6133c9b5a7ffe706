"""An array with padding around it, as a value of a trace: it is read where it has elements, and nothing is copied.

The kernel counts, for each axis with padding, how far an element lies from the first one. Where that is inside the
array, it reads the element; elsewhere the element is the padding.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.fusion.tracing import Traced, TracedBuffer, Write, current_trace
from tilearray.arrays.fusion.values import Constant, Load, Read, Value
from tilearray.engine.expression import Expression, ExpressionBuilder
from tilearray.engine.signature import signature_of
from tilearray.geometry.layout import Layout

Ints = tuple[int, ...]

BOOL = np.dtype(np.bool_)


def padded(x: Traced, layout: Layout, padding: Any) -> Traced:
    """Return an array of at least the extents of `x`, with `padding` after its elements.

    Parameters
    ----------
    x : Traced
        An argument of the trace, or a view of one.
    layout : Layout
        That of the array which would be made without fusion: reductions add up in its order.
    padding : bool, int, float, complex or None
        A number that the dtype holds; None for elements of any value.
    """
    trace, dtype = current_trace(), x._signature.dtype
    read = trace.read(x, "tiles")
    assert isinstance(read, Load)
    trace.generic = False
    axes = [axis for axis, extent in enumerate(layout.shape) if extent != read.shape[axis]]
    units = [tuple([int(axis == other) for other in range(layout.ndim)]) for axis in axes]
    counted = np.dtype(f"{'u' if dtype.kind == 'i' else 'i'}{min(dtype.itemsize, 8)}")  # as wide, and another operand
    operands: list[Read] = [read._replace(shape=layout.shape)]
    for strides in (*units, (0,) * layout.ndim):
        operands.append(Load(read.place, read.offset, layout.shape, strides, counted))
    operands += [Constant(read.shape[axis], dtypes.int64) for axis in axes]
    operands += [] if padding is None else [Constant(padding, dtype)]
    expression = _expression(dtype, counted, len(axes), padding is not None)
    value = Value(expression, tuple(operands), layout, dtype, len(trace.steps))
    buffer = TracedBuffer(trace, (layout.high + 1) * dtype.itemsize)
    made = Traced._make(buffer, 0, signature_of(layout, dtype, trace.device))
    buffer.writes = [Write(made, value)]
    return made


def _expression(dtype: np.dtype, counted: np.dtype, count: int, pads: bool) -> Expression:
    """Return the expression.

    Its operands are an array, the places along each of `count` axes, the first place, their extents, and the padding.
    """
    builder = ExpressionBuilder()
    memory, places = builder.memory(dtype), [builder.memory(counted) for _ in range(count)]
    origin = builder.memory(counted)
    distances = [builder.node("distance", place, origin) for place in places]
    extents = [builder.number(dtypes.int64) for _ in range(count)]
    inside = [
        builder.call("less", (distance, extent), BOOL, "{x} < {y}")
        for distance, extent in zip(distances, extents, strict=True)
    ]
    condition = reduce(lambda x, y: builder.call("bitwise_and", (x, y), BOOL, "{x} & {y}"), inside)
    element = builder.node("guarded", memory, condition)
    if pads:
        choose = "complex_where({x}, {y}, {z})" if dtype.kind == "c" else "tl.where({x}, {y}, {z})"
        element = builder.call("where", (condition, element, builder.number(dtype)), dtype, choose)
    return builder.build([element], [dtype])
