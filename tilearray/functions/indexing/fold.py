"""An op applied at indices in their order: a stable sort of the indices, and a fold of the runs of equal ones.

The sort takes one bit of the places at a time, from the lowest: a scan counts the ones before each element, and an
element goes behind those of its kind that come before it. So it takes as many rounds as the number of places has bits,
each of five launches, and reads and writes 30 to 60 bytes an index. The fold then walks each run of equal places with
one thread, which takes time in proportion to the longest run.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import Expression, ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import ArrayBase, empty_array, signature_of
from tilearray.engine.splice import Splicer
from tilearray.functions.conversion import astype
from tilearray.functions.indexing.gather import gather_selected, placed_at
from tilearray.functions.indexing.keys import Selection, select
from tilearray.functions.manipulation import broadcast_to, moveaxis, reshape
from tilearray.functions.scans import scan
from tilearray.geometry.layout import Layout
from tilearray.geometry.strides import dense_strides
from tilearray.ops.op import Op
from tilearray.promotion.scalars import classify

_INT32, _INT64 = dtypes.int32, dtypes.int64


def fold(op: Op, x: Any, key: Any, values: Any) -> None:
    """Apply an op at the indices of a key with arrays, in their order: the first axis of the indices is the slowest.

    Parameters
    ----------
    op : Op
        With as many operands as there are, `x` among them.
    x : Array
    key : key
    values : Array, number or None
        Arrays share no memory with `x`.
    """
    selection = select(x, key)
    shape, view = selection.result_shape, selection.view
    if isinstance(values, ArrayBase):
        values = broadcast_to(values, shape)
    operation = _folding(op, x.dtype, None if values is None else classify(values) or values.dtype)
    places = placed_at(selection, view.strides)
    if 0 in shape:
        return
    count = places.size
    rest = [axis for axis in range(len(view.shape)) if axis not in selection.axes]
    common = (count, *[view.shape[axis] for axis in rest])
    order = _stable_order(selection, count)
    operands: list[Any] = [_over(_taken(reshape(places, -1), order), common)]
    origin = Layout(common, (0, *[view.strides[axis] for axis in rest]))
    operands.append(view._view(origin))
    if isinstance(values, ArrayBase):
        indexed = tuple(range(selection.place, selection.place + len(selection.shape)))
        lines = reshape(moveaxis(values, indexed, tuple(range(len(indexed)))), common)
        operands.append(_taken(lines, order))
    elif values is not None:
        operands.append(values)
    run_fixed(operation, operands, operands[1])


def _taken(x: Any, order: Any) -> Any:
    """The elements of an array along its first axis, in an order; the array itself if there is one."""
    return x if order is None else gather_selected(Selection(x, (0,), (order,), order.shape, 0, True))


def _over(places: Any, shape: tuple[int, ...]) -> Any:
    """Places with the axes of a loop, along which they repeat."""
    return places._view(Layout(shape, (1, *(0,) * (len(shape) - 1))))


_FOLDS: TwoGenerations[FixedOperation] = TwoGenerations(512)


def _folding(op: Op, dtype: np.dtype, value: Any) -> FixedOperation:
    """Return the operation that folds values of a dtype, or numbers of a class, by an op into elements of a dtype."""
    semantics = STATE.get().semantics
    key = (op, semantics.key, dtype, value)
    found = _FOLDS.get(key)
    if found is None:
        types = (dtype,) if value is None else (dtype, value)
        op.typing(semantics, types)
        graph = _graph(op.expression(semantics, types, dtype), dtype, value)
        found = _FOLDS.put(key, FixedOperation(f"{op.name}.at", graph))
    return found


def _graph(step: Expression, dtype: np.dtype, value: Any) -> Expression:
    """The expression of a fold whose steps are an elementwise expression."""
    splicer = Splicer()
    place = splicer.array("places", _INT64)
    held = splicer.node("gather", splicer.memory("target", dtype), place)
    arguments = [held]
    for given in step.scalar_dtypes[1:]:
        arguments.append(splicer.array("values", value) if given is None else splicer.number("values", given))
    result = splicer.splice(step, arguments)
    return splicer.build([splicer.node("fold", held, result, place)], [dtype], (place,))


# --- the sort ---------------------------------------------------------------------------------------------------------


def _stable_order(selection: Selection, count: int) -> Any:
    """The indices that sort the places of a selection, equal ones in their order; None if there is only one index."""
    sizes = [selection.view.shape[axis] for axis in selection.axes]
    if count == 1:
        return None
    strides = [0] * len(selection.view.shape)
    for axis, stride in zip(selection.axes, dense_strides(tuple(sizes)), strict=True):
        strides[axis] = stride
    width = _INT32 if max(count, prod(sizes)) < 2**31 else _INT64
    keys = astype(reshape(placed_at(selection._replace(inside=True), tuple(strides)), -1), width)
    order = None
    for bit in range((prod(sizes) - 1).bit_length()):
        ones = scan("at", "add", run_fixed(_bit_of(width), [keys, bit], None), 0, width)
        order = _split(ones, count, keys, bit, order)
        keys = _split(ones, count, keys, bit, keys)
    return order


def _split(ones: Any, count: int, keys: Any, bit: int, x: Any) -> Any:
    """The elements of `x`, or their positions if it is None: those with a zero bit in `keys` first, in their order."""
    dtype = keys.dtype
    out = empty_array(keys.__class__, signature_of(Layout.of((count,)), dtype, keys.device), STATE.get().stream)
    target = out._view(Layout((count,), (0,)))
    last = ones._view(Layout((count,), (0,)), count - 1)
    operands = [last, ones, keys, bit, count, *[x] * (x is not None and x is not keys)]
    run_fixed(_splitting(dtype, "positions" if x is None else "keys" if x is keys else "others"), operands, target)
    return out


@cache
def _bit_of(dtype: np.dtype) -> FixedOperation:
    """Return the operation that takes one bit of integers."""
    builder = ExpressionBuilder()
    keys, bit = builder.array(dtype), builder.number(dtype)
    return FixedOperation("at", builder.build([builder.call("bit", (keys, bit), dtype, "({x} >> {y}) & 1")], [dtype]))


@cache
def _splitting(dtype: np.dtype, what: str) -> FixedOperation:
    """Return the operation that stores positions, keys or other elements where a bit of the keys puts them."""
    builder = ExpressionBuilder()
    last, ones, keys = builder.array(dtype), builder.array(dtype), builder.array(dtype)
    bit, count = builder.number(dtype), builder.number(dtype)
    index = builder.cast(builder.node("index"), _INT64, dtype)
    one = builder.call("bit", (keys, bit), dtype, "({x} >> {y}) & 1")
    zeros_before = builder.call("subtract", (index, ones), dtype, "{x} - {y}")
    zeros = builder.call("subtract", (count, last), dtype, "{x} - {y}")
    behind = builder.call("add", (zeros, ones), dtype, "{x} + {y} - 1")
    place = builder.call("place", (one, behind, zeros_before), dtype, "tl.where({x} != 0, {y}, {z})")
    value = index if what == "positions" else keys if what == "keys" else builder.array(dtype)
    return FixedOperation("at", builder.build([value], [dtype], (builder.cast(place, dtype, _INT64),)))
