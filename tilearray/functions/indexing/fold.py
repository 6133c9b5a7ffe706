"""An op applied at indices in their order: a stable sort of the indices, and a fold of the runs of equal ones.

The fold walks each run of equal places with one thread, which takes time in proportion to the longest run.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import Expression
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import ArrayBase
from tilearray.engine.splice import Splicer
from tilearray.functions.indexing.gather import gather_selected, placed_at
from tilearray.functions.indexing.keys import Selection, select
from tilearray.functions.manipulation import broadcast_to, moveaxis, reshape
from tilearray.functions.ordering import order_of_rows
from tilearray.geometry.layout import Layout
from tilearray.geometry.strides import dense_strides
from tilearray.ops.op import Op
from tilearray.promotion.scalars import classify

_INT64 = dtypes.int64
SHORT_RUNS, LONG_RUNS = 8, 16
"""The elements of a run that a thread reads at once; the larger number if runs have as many on average, and each index
is that of one element."""


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
    places = placed_at(selection, view.strides)
    count, is_alone = places.size, len(selection.axes) == len(view.shape)
    at_once = LONG_RUNS if is_alone and count >= LONG_RUNS * prod(view.shape) else SHORT_RUNS
    operation = _folding(op, x.dtype, None if values is None else classify(values) or values.dtype, at_once)
    if 0 in shape:
        return
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


def _folding(op: Op, dtype: np.dtype, value: Any, at_once: int = SHORT_RUNS) -> FixedOperation:
    """Return the operation that folds values of a dtype, or numbers of a class, by an op into elements of a dtype."""
    semantics = STATE.get().semantics
    key = (op, semantics.key, dtype, value, at_once)
    found = _FOLDS.get(key)
    if found is None:
        types = (dtype,) if value is None else (dtype, value)
        op.typing(semantics, types)
        graph = _graph(op.expression(semantics, types, dtype), dtype, value, at_once)
        found = _FOLDS.put(key, FixedOperation(f"{op.name}.at", graph))
    return found


def _graph(step: Expression, dtype: np.dtype, value: Any, at_once: int) -> Expression:
    """The expression of a fold whose steps are an elementwise expression."""
    splicer = Splicer()
    place = splicer.array("places", _INT64)
    held = splicer.node("gather", splicer.memory("target", dtype), place)
    arguments = [held]
    for given in step.scalar_dtypes[1:]:
        arguments.append(splicer.array("values", value) if given is None else splicer.number("values", given))
    result = splicer.splice(step, arguments)
    return splicer.build([splicer.node("fold", held, result, place, at_once)], [dtype], (place,))


def _stable_order(selection: Selection, count: int) -> Any:
    """The indices that sort the places of a selection, equal ones in their order; None if there is only one index."""
    if count == 1:
        return None
    sizes = tuple([selection.view.shape[axis] for axis in selection.axes])
    strides = [0] * len(selection.view.shape)
    for axis, stride in zip(selection.axes, dense_strides(sizes), strict=True):
        strides[axis] = stride
    places = placed_at(selection._replace(inside=True), tuple(strides))
    return reshape(order_of_rows(reshape(places, (1, count)), bits=(prod(sizes) - 1).bit_length()), -1)
