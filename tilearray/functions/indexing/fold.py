"""An op applied at indices in their order: a stable sort of the indices, and a fold of the runs of equal ones.

The fold walks each run of equal places with one thread, which takes time in proportion to the longest run. If there are
many more indices than elements of a target of one axis, each of its elements finds its run by a binary search. Many
elements read the values where they are; for few elements the values are put in order first, so that a run lies in one
piece, and can be read far ahead. Else a thread for each index finds out whether a run begins there.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE
from tilearray.engine.execute import FixedCall, run_fixed
from tilearray.engine.expression import Expression
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import ArrayBase, signature_of
from tilearray.engine.splice import Splicer
from tilearray.functions.indexing.gather import alone, distances, gather_selected, placed_at, walked
from tilearray.functions.indexing.keys import Selection, select
from tilearray.functions.manipulation import broadcast_to, dense, reshape
from tilearray.functions.ordering import order_of_rows, words_in_order
from tilearray.geometry.layout import Layout
from tilearray.geometry.strides import dense_strides
from tilearray.ops.op import Op
from tilearray.promotion.scalars import classify
from tilearray.promotion.semantics import Semantics

_INT64 = dtypes.int64
LEAST_PLACES = 1 << 12
"""The least elements that read values where they are; fewer threads wait longer for those than for order."""
MOST_WORDS = 1 << 32
"""From so many indices on, a position does not fit into half a word."""
SHORT_RUNS, LONG_RUNS = 8, 16
"""The elements of a run that a thread reads at once; the larger number if runs have as many on average, and each index
is that of one element."""
WHOLE_RUNS = 256
"""From so many indices for each element on, elements of a target of one axis find runs that lie in one piece."""
AHEAD, MOST_AHEAD = 384, 48
"""The bytes of values that are read ahead of those that are taken, and how many values at most. Of narrow values, whose
casts are long, there are `LONG_RUNS`."""


def fold(op: Op, x: Any, key: Any, values: Any, *, inside: bool = False, ascending: bool = False) -> None:
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
    ascending : bool
        Whether they are known not to decrease, so that nothing is sorted.
    """
    selection = select(x, key)
    selection = selection._replace(inside=True) if inside else selection
    view, axes, indices, _, place, _ = selection
    given = values._signature if isinstance(values, ArrayBase) else _kind_of(values)
    signatures = [index._signature for index in indices]
    rules = STATE.get().semantics
    asked = (op, rules.key, view._signature, axes, place, selection.inside, ascending, given, *signatures)
    known = _FOLDS.get(asked) or _FOLDS.put(asked, _Fold(op, rules, selection, values, ascending))
    if known.of_runs is not None:
        known.of_runs(op, rules, selection, values, inside, ascending)
    else:
        known.run(view, indices, values)


class _Fold:
    """All parts of a fold that follow from the op, the semantics, and the signatures of view, indices and values.

    Attributes
    ----------
    ascending : bool
        Whether places are in order.
    of_runs : callable or None
        The function to call if elements of the target find their runs; no other part is known then.
    places : Indices
        The indices in the loop over their common shape, for the places of elements.
    ranks : Indices or None
        The same for the positions by which places are sorted, from 0 on; None if these are the places.
    row, line : Signature
        Places in one row, and in one axis.
    bits : int
        How many bits positions have.
    origin, along : Signature
        The target and sorted places in the loop, in which they repeat.
    values : Signature or None
        Values in the loop, or with the axes of the indices first if that takes a copy; None for a number and for none.
    common : tuple of int
        The shape of the loop.
    fold : FixedCall
        Takes places, the target, and values.
    """

    __slots__ = (
        *("along", "ascending", "bits", "common", "fold", "line", "of_runs", "origin", "places", "ranks", "row"),
        "values",
    )

    def __init__(self, op: Op, rules: Semantics, selection: Selection, values: Any, ascending: bool) -> None:
        self.ascending = ascending
        view, shape, axes = selection.view, selection.result_shape, selection.axes
        layout, device = view._signature.layout, view.device
        sizes, count = tuple([layout.shape[axis] for axis in axes]), prod(selection.shape)
        moved = None
        if isinstance(values, ArrayBase):
            indexed = tuple(range(selection.place, selection.place + len(selection.shape)))
            moved = broadcast_to(values, shape)._signature.layout.moveaxis(indexed, tuple(range(len(indexed))))
        self.of_runs = _of_runs(prod(shape), layout.size, ascending) if layout.ndim == 1 else None
        if self.of_runs is not None:
            return
        rest = [axis for axis in range(layout.ndim) if axis not in axes]
        self.common = (count, *[layout.shape[axis] for axis in rest])
        self.places = alone(selection)
        at_once = LONG_RUNS if not rest and count >= LONG_RUNS * layout.size else SHORT_RUNS
        self.fold = FixedCall(_folding(op, rules, view.dtype, _kind_of(values), at_once))
        self.ranks = None
        if dense_strides(sizes) != tuple([layout.strides[axis] for axis in axes]):
            steps = dict(zip(axes, dense_strides(sizes), strict=True))
            inside = selection._replace(inside=True)
            self.ranks = alone(inside, tuple([steps.get(axis, 0) for axis in range(layout.ndim)]))
        self.bits = (prod(sizes) - 1).bit_length()
        self.row, self.line = (signature_of(Layout.of(shape), _INT64, device) for shape in ((1, count), (count,)))
        self.along = walked(self.line, self.common, (1, *(0,) * len(rest)))
        self.origin = walked(view._signature, self.common, (0, *[layout.strides[axis] for axis in rest]))
        self.values = None
        if moved is not None:
            lines = moved.reshape(self.common) or moved
            self.values = walked(values._signature, lines.shape, lines.strides)

    def run(self, view: Any, indices: tuple[Any, ...], values: Any) -> None:
        """Fold values, or a number, into the elements of a view at indices, all of known signatures."""
        make, parts, stream = view._make, self.places, STATE.get().stream
        places = distances(parts, indices, parts.mode, stream)
        if 0 in self.common:
            return
        order = None
        if self.common[0] > 1 and not self.ascending:
            ranks = places if self.ranks is None else distances(self.ranks, indices, self.ranks.mode, stream)
            order = order_of_rows(make(ranks._buffer, 0, self.row), bits=self.bits)
            order = make(order._buffer, order._offset, self.line)
        places = _taken(make(places._buffer, 0, self.line), order)
        target = make(view._buffer, view._offset, self.origin)
        operands = [make(places._buffer, 0, self.along), target]
        if self.values is not None:
            lines = make(values._buffer, values._offset, self.values)
            lines = lines if lines.shape == self.common else reshape(lines, self.common)
            operands.append(_taken(lines, order))
        elif values is not None:
            operands.append(values)
        self.fold.run(operands, target)


_FOLDS: TwoGenerations[_Fold] = TwoGenerations(512)


def _of_runs(count: int, size: int, ascending: bool) -> Any:
    """How elements of a target of one axis find their runs, if there are many more indices; else None."""
    if not ascending and size >= LEAST_PLACES and LONG_RUNS * size <= count < MOST_WORDS:
        return _fold_words
    return _fold_places if 0 < WHOLE_RUNS * size <= count else None


def _fold_words(op: Op, rules: Semantics, selection: Selection, values: Any, inside: bool, ascending: bool) -> None:
    """Apply an op at the indices of a selection to a view of one axis that is much shorter."""
    del ascending
    words = words_in_order(_places(selection, inside), _bits(selection))
    _fold_sorted(
        _folding_words(op, rules, selection.view.dtype, _kind_of(values)), selection, words, _line(selection, values)
    )


def _fold_places(op: Op, rules: Semantics, selection: Selection, values: Any, inside: bool, ascending: bool) -> None:
    """The same for a view of few elements, by sorted places and values in their order."""
    places, values = _places(selection, inside), _line(selection, values)
    if not ascending:
        order = reshape(order_of_rows(reshape(places, (1, -1)), bits=_bits(selection)), -1)
        places = _taken(places, order)
        values = _taken(values, order) if isinstance(values, ArrayBase) else values
    _fold_sorted(_folding_places(op, rules, selection.view.dtype, _kind_of(values)), selection, places, values)


def _places(selection: Selection, inside: bool) -> Any:
    """The places of a selection of one axis, dense and in one axis."""
    (index,) = selection.indices
    return dense(reshape(index if inside and index.dtype == _INT64 else placed_at(selection, (1,)), -1))


def _bits(selection: Selection) -> int:
    """How many bits the places of a selection of one axis have."""
    return max((selection.view.size - 1).bit_length(), 1)


def _line(selection: Selection, values: Any) -> Any:
    """A value for each place, dense and in one axis; a number, or None."""
    return dense(reshape(broadcast_to(values, selection.shape), -1)) if isinstance(values, ArrayBase) else values


def _fold_sorted(operation: FixedOperation, selection: Selection, keys: Any, values: Any) -> None:
    """Run an operation on the elements of a view of one axis, all sorted keys, how many, and all values."""
    view, everywhere = selection.view, Layout(selection.view.shape, (0,))
    operands = [view, keys._view(everywhere), keys.size]
    if values is not None:
        operands.append(values._view(everywhere) if isinstance(values, ArrayBase) else values)
    run_fixed(operation, operands, view)


def _kind_of(values: Any) -> Any:
    """The dtype of values, the class of a number, or None."""
    return None if values is None else classify(values) or values.dtype


def _taken(x: Any, order: Any) -> Any:
    """The elements of an array along its first axis, in an order; the array itself if there is one."""
    return x if order is None else gather_selected(Selection(x, (0,), (order,), order.shape, 0, True))


_FOLDING: TwoGenerations[FixedOperation] = TwoGenerations(512)


def _folding(op: Op, rules: Semantics, dtype: np.dtype, value: Any, at_once: int = SHORT_RUNS) -> FixedOperation:
    """Return the operation that folds values of a dtype, or numbers of a class, by an op into elements of a dtype."""
    return _found(op, rules, dtype, value, at_once, lambda step: _graph(step, dtype, value, at_once))


def _folding_words(op: Op, rules: Semantics, dtype: np.dtype, value: Any) -> FixedOperation:
    """Return the operation that does the same by sorted words: the target, the words, how many, and values."""
    return _found(op, rules, dtype, value, "words", lambda step: _graph_of_runs(step, dtype, value, "fold_words"))


def _folding_places(op: Op, rules: Semantics, dtype: np.dtype, value: Any) -> FixedOperation:
    """Return the operation that does the same by sorted places, and values in their order."""
    return _found(op, rules, dtype, value, "places", lambda step: _graph_of_runs(step, dtype, value, "fold_places"))


def _found(
    op: Op, rules: Semantics, dtype: np.dtype, value: Any, how: Any, graph: Callable[[Expression], Expression]
) -> FixedOperation:
    """Return the operation of a graph that is made of the op's expression, at most once."""
    key = (op, rules.key, dtype, value, how)
    found = _FOLDING.get(key)
    if found is None:
        types = (dtype,) if value is None else (dtype, value)
        op.typing(rules, types)
        made = graph(op.expression(rules, types, dtype))
        found = _FOLDING.put(key, FixedOperation(f"{op.name}.at", made))
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


def _ahead(value: Any) -> int:
    """How many values of a dtype, or numbers, are read ahead."""
    itemsize = value.itemsize if isinstance(value, np.dtype) else 8
    return LONG_RUNS if itemsize < 4 else min(MOST_AHEAD, AHEAD // itemsize)


def _graph_of_runs(step: Expression, dtype: np.dtype, value: Any, kind: str) -> Expression:
    """The same of words, whose lower half is the position of a value, or of places in whose order values lie."""
    splicer = Splicer()
    held = splicer.array("target", dtype)
    by_words = kind == "fold_words"
    keys, size = splicer.memory("keys", dtypes.uint64 if by_words else _INT64), splicer.number("size", _INT64)
    position = splicer.node("position")
    arguments = [held]
    for given in step.scalar_dtypes[1:]:
        if given is None:
            arguments.append(splicer.node("gather", splicer.memory("values", value), position))
        else:
            arguments.append(splicer.number("values", given))
    result = splicer.splice(step, arguments)
    at_once = LONG_RUNS if by_words else _ahead(value)
    return splicer.build([splicer.node(kind, held, result, position, keys, size, at_once)], [dtype])
