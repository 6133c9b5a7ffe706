"""An op applied at indices in their order: a stable sort of the indices, and a fold of the runs of equal ones.

The fold walks each run of equal places with one thread, which takes time in proportion to the longest run. If there are
many more indices than elements of a target of one axis, each of its elements finds its run by a binary search, and
reads the values where they are. Else a thread for each index finds out whether a run begins there.
"""

from __future__ import annotations

from collections.abc import Callable
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
from tilearray.functions.ordering import dense, order_of_rows, words_in_order
from tilearray.geometry.layout import Layout
from tilearray.geometry.strides import dense_strides
from tilearray.ops.op import Op
from tilearray.promotion.scalars import classify

_INT64 = dtypes.int64
LEAST_PLACES = 1 << 12
"""The least elements that find their runs; fewer threads wait longer for values in random places than for order."""
MOST_WORDS = 1 << 32
"""From so many indices on, a position does not fit into half a word."""
SHORT_RUNS, LONG_RUNS = 8, 16
"""The elements of a run that a thread reads at once; the larger number if runs have as many on average, and each index
is that of one element."""


def fold(op: Op, x: Any, key: Any, values: Any, *, inside: bool = False) -> None:
    """Apply an op at the indices of a key with arrays, in their order: the first axis of the indices is the slowest.

    Parameters
    ----------
    op : Op
        With as many operands as there are, `x` among them.
    x : Array
    key : key
    values : Array, number or None
        Arrays share no memory with `x`.
    inside : bool
        Whether the indices are known to be inside, and not negative. Else they are checked.
    """
    selection = select(x, key)
    selection = selection._replace(inside=True) if inside else selection
    shape, view = selection.result_shape, selection.view
    if isinstance(values, ArrayBase):
        values = broadcast_to(values, shape)
    if len(view.shape) == 1 and _finds_runs(prod(shape), view.size):
        _fold_words(op, selection, values, inside)
        return
    places = placed_at(selection, view.strides)
    count, is_alone = places.size, len(selection.axes) == len(view.shape)
    at_once = LONG_RUNS if is_alone and count >= LONG_RUNS * prod(view.shape) else SHORT_RUNS
    operation = _folding(op, x.dtype, _kind_of(values), at_once)
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


def _finds_runs(count: int, size: int) -> bool:
    """Whether elements of a target find their runs: there are enough of them, and many more indices."""
    return size >= LEAST_PLACES and LONG_RUNS * size <= count < MOST_WORDS


def _fold_words(op: Op, selection: Selection, values: Any, inside: bool) -> None:
    """Apply an op at the indices of a selection to a view of one axis that is much shorter."""
    view, (index,) = selection.view, selection.indices
    places = index if inside and index.dtype == _INT64 else placed_at(selection, (1,))
    words = words_in_order(dense(reshape(places, -1)), max((view.size - 1).bit_length(), 1))
    everywhere = Layout(view.shape, (0,))
    operands = [view, words._view(everywhere), words.size]
    if isinstance(values, ArrayBase):
        operands.append(dense(reshape(values, -1))._view(everywhere))
    elif values is not None:
        operands.append(values)
    run_fixed(_folding_words(op, view.dtype, _kind_of(values)), operands, view)


def _kind_of(values: Any) -> Any:
    """The dtype of values, the class of a number, or None."""
    return None if values is None else classify(values) or values.dtype


def _taken(x: Any, order: Any) -> Any:
    """The elements of an array along its first axis, in an order; the array itself if there is one."""
    return x if order is None else gather_selected(Selection(x, (0,), (order,), order.shape, 0, True))


def _over(places: Any, shape: tuple[int, ...]) -> Any:
    """Places with the axes of a loop, along which they repeat."""
    return places._view(Layout(shape, (1, *(0,) * (len(shape) - 1))))


_FOLDS: TwoGenerations[FixedOperation] = TwoGenerations(512)


def _folding(op: Op, dtype: np.dtype, value: Any, at_once: int = SHORT_RUNS) -> FixedOperation:
    """Return the operation that folds values of a dtype, or numbers of a class, by an op into elements of a dtype."""
    return _found(op, dtype, value, at_once, lambda step: _graph(step, dtype, value, at_once))


def _folding_words(op: Op, dtype: np.dtype, value: Any) -> FixedOperation:
    """Return the operation that does the same by sorted words: the target, the words, how many, and values."""
    return _found(op, dtype, value, "words", lambda step: _graph_of_words(step, dtype, value))


def _found(op: Op, dtype: np.dtype, value: Any, how: Any, graph: Callable[[Expression], Expression]) -> FixedOperation:
    """Return the operation of a graph that is made of the op's expression, at most once."""
    semantics = STATE.get().semantics
    key = (op, semantics.key, dtype, value, how)
    found = _FOLDS.get(key)
    if found is None:
        types = (dtype,) if value is None else (dtype, value)
        op.typing(semantics, types)
        made = graph(op.expression(semantics, types, dtype))
        found = _FOLDS.put(key, FixedOperation(f"{op.name}.at", made))
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


def _graph_of_words(step: Expression, dtype: np.dtype, value: Any) -> Expression:
    """The same of words, whose lower half is the position of a value."""
    splicer = Splicer()
    held = splicer.array("target", dtype)
    words, size = splicer.memory("words", dtypes.uint64), splicer.number("size", _INT64)
    position = splicer.node("position")
    arguments = [held]
    for given in step.scalar_dtypes[1:]:
        if given is None:
            arguments.append(splicer.node("gather", splicer.memory("values", value), position))
        else:
            arguments.append(splicer.number("values", given))
    result = splicer.splice(step, arguments)
    return splicer.build([splicer.node("fold_words", held, result, position, words, size, LONG_RUNS)], [dtype])


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
