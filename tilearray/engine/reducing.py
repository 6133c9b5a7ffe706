"""A reduction as launches: one, or two with scratch memory between them if its loop has several segments.

The order in which elements are combined is that of arrays in memory. A fused kernel, which computes the elements from
other arrays, keeps the order of the array that it does not store.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from tilearray.dtypes import as_dtype
from tilearray.engine.expression import Expression
from tilearray.engine.operation import Reduced
from tilearray.engine.stages import has_an_order, outputs_beside, reads_after, split, split_walked, values_of
from tilearray.geometry.layout import Layout
from tilearray.geometry.loop import LayoutCase
from tilearray.geometry.reduction import (
    ReductionLoop,
    Walked,
    as_blocks,
    holds,
    make_reduction,
    make_reduction_like,
    walking,
)
from tilearray.geometry.shapes import reduced_shape
from tilearray.geometry.strides import dense_strides

Ints = tuple[int, ...]


class ReductionPart(NamedTuple):
    """One launch of a reduction.

    Attributes
    ----------
    expression : Expression
    loop : ReductionLoop
    reads : tuple of int
        The inputs of the whole expression that it reads. The first inputs of a second launch are the scratch memory.
    writes : tuple of int
        The outputs of the whole expression that it writes, after the scratch memory of the next launch.
    room : int
        The elements of each array of that scratch memory.
    """

    expression: Expression
    loop: ReductionLoop
    reads: Ints
    writes: Ints
    room: int = 0


class Reducing(NamedTuple):
    """What a reduction combines: its axes, the shape of its operands, their strides in memory, and an itemsize.

    Attributes
    ----------
    axes : Reduced
    shape : tuple of int
        Without empty axes.
    strides : tuple of tuple of int
        Of the operands that are arrays, along all axes.
    itemsize : int
        Of the first one.
    """

    axes: Reduced
    shape: Ints
    strides: tuple[Ints, ...]
    itemsize: int

    @property
    def kept(self) -> Ints:
        """The shape of the result without the reduced axes."""
        return reduced_shape(self.shape, self.axes.axes, False)

    def parts(
        self,
        expression: Expression,
        *,
        whole: bool,
        inputs: Sequence[Ints] | None = None,
        outputs: Sequence[Ints] | None = None,
        like: Expression | None = None,
    ) -> list[ReductionPart] | None:
        """Return the launches; None if `inputs` cannot be read in the order of the operands.

        Parameters
        ----------
        expression : Expression
            With reductions that combine in the same order.
        whole : bool
            Whether one launch does, since the order has no influence.
        inputs : sequence of tuple of int, optional
            The strides of the arrays that `expression` reads, if these are not the operands.
        outputs : sequence of tuple of int, optional
            The strides of its outputs along all axes, if they are not one new array: those of results are 0 along
            reduced axes, and elements are stored beside them.
        like : Expression, optional
            The reduction alone, if the expression has more.
        """
        like = like or expression
        given = [self.results_along()] if outputs is None else outputs
        loop = self._loop(like, given, inputs, whole)
        reads_later = reads_after(expression)
        if loop is None or (reads_later and (loop.outer or loop.segments.total > 1)):
            return None
        count = loop.segments.total
        if count == 1:
            return [ReductionPart(expression, loop, tuple(range(len(expression.inputs))), tuple(range(len(given))))]
        halves, beside = split(expression), outputs_beside(expression)
        states = len(halves.first.output_dtypes) - len(beside)
        partial = Layout.of((*self.kept, count))
        stored = [self._along(partial.strides[:-1])] * states + [given[place] for place in beside]
        first = self._loop(like, stored, inputs, False)
        if first is None:
            return None
        first = _reading(first, len(stored), expression, halves.first_reads)
        results = tuple([place for place in range(len(given)) if place not in beside])
        second = self.of_segments(states, count, [given[place] for place in results])
        return [
            ReductionPart(halves.first, first, halves.first_reads, beside, partial.size),
            ReductionPart(halves.second, second, halves.second_reads, results),
        ]

    def of_segments(self, states: int, count: int, outputs: Sequence[Ints]) -> ReductionLoop:
        """Return the loop over what segments gave, side by side for each result."""
        partial = Layout.of((*self.kept, count))
        read, axis = [partial.strides] * states, len(self.kept)
        written = [self._along_kept(strides) for strides in outputs]
        loop = make_reduction_like(read, partial.shape, (axis,), written, read, itemsize=8, whole=True)
        assert loop is not None  # one axis is reduced
        return loop

    def results_along(self) -> Ints:
        """Return the strides of a new array of results along all axes."""
        return self._along(dense_strides(self.kept))

    def columns(self, expression: Expression, inputs: Sequence[Ints]) -> ReductionLoop | None:
        """Return the loop over `inputs` that combines them in the order of this reduction, to a new array."""
        return self._loop(expression, [self.results_along()], inputs, False)

    def _along(self, strides: Ints) -> Ints:
        """Return strides along the kept axes as strides along all axes."""
        kept = iter(strides)
        return tuple([0 if axis in self.axes.axes else next(kept) for axis in range(len(self.shape))])

    def _along_kept(self, strides: Ints) -> Ints:
        """Return strides along all axes as strides along the kept axes."""
        return tuple([stride for axis, stride in enumerate(strides) if axis not in self.axes.axes])

    def layout_of_copy(self, shape: Ints) -> tuple[int, Ints]:
        """Return the first element and the strides of a dense copy of an operand that `parts` can always read.

        Reduced axes are the fastest. They have the order and the directions in which the operands are combined, so
        axes that these merge are merged in the copy.
        """
        rank, reduced = len(self.shape), self.axes.axes
        along = list(zip(*self.strides, strict=True))
        kept = [axis for axis in range(rank) if axis not in reduced]
        turned = () if self.axes.ordered else [axis for axis in reduced if along[axis][0] < 0]
        if not self.axes.ordered:
            reduced = sorted(reduced, key=lambda axis: (not along[axis][0], *map(abs, along[axis])), reverse=True)
        first, distance, strides = 0, 1, [0] * rank
        spare = rank - len(shape)
        for axis in reversed([axis for axis in (*kept, *reduced) if axis >= spare]):
            extent = shape[axis - spare]
            if axis in turned:
                first += (extent - 1) * distance
            if extent > 1:
                strides[axis] = -distance if axis in turned else distance
            distance *= extent
        return first, tuple(strides[spare:])

    def order(self, expression: Expression) -> tuple[object, ...]:
        """Return all that the order of a reduction depends on."""
        loop = self._loop(expression, [self.results_along()], None, False)
        assert loop is not None
        return loop.lanes, loop.segments, loop.case, loop.shape[loop.kept : -2], loop.shape[-1], self.strides

    def rows(self, expression: Expression, outputs: Sequence[Ints], inputs: Sequence[Ints]) -> ReductionLoop | None:
        """Return the loop over held rows that combines them in the order of this reduction."""
        model = self._loop(expression, [self.results_along()], None, False)
        assert model is not None
        loop = make_reduction_like(
            self.strides, self.shape, self.axes.axes, outputs, inputs, itemsize=self.itemsize, spread=True
        )
        if loop is None or model.shape[-1] != loop.shape[-1]:
            return None
        if loop.outer or model.outer:
            blocks = None if has_an_order(expression) else as_blocks(loop, self.itemsize)
            return None if blocks is None else blocks._replace(held=True, family=True)
        return loop._replace(lanes=model.lanes, segments=model.segments, held=True, family=True)

    def _loop(
        self, expression: Expression, outputs: Sequence[Ints], inputs: Sequence[Ints] | None, whole: bool
    ) -> ReductionLoop | None:
        how: dict[str, Any] = {
            "itemsize": self.itemsize,
            "values": values_of(expression),
            "ordered": self.axes.ordered,
            "held": self.axes.held,
            "whole": whole,
            "spread": True,
        }
        if inputs is None:
            return make_reduction(self.shape, self.axes.axes, outputs, self.strides, **how)
        return make_reduction_like(self.strides, self.shape, self.axes.axes, outputs, inputs, **how)


def _reading(loop: ReductionLoop, outputs: int, expression: Expression, reads: Ints) -> ReductionLoop:
    """Return a loop over the arrays among these inputs of an expression, in their order, instead of over all."""
    arrays = [place for place, (kind, _) in enumerate(expression.inputs) if kind == "array"]
    places = [*range(outputs), *[outputs + arrays.index(read) for read in reads if read in arrays]]
    return loop._replace(
        strides=tuple([loop.strides[place] for place in places]), shifts=tuple([loop.shifts[place] for place in places])
    )


def held_loop(
    reductions: Sequence[tuple[Expression, Reducing]], outputs: Sequence[Ints], inputs: Sequence[Ints], members: int
) -> ReductionLoop | None:
    """Return the loop of a launch that goes over rows for several reductions of one shape along the same axes.

    The result is None if a launch can neither hold rows nor share columns (see `tilearray.geometry.reduction.holds`),
    or if the reductions combine them in different orders.

    Parameters
    ----------
    reductions : sequence of (Expression, Reducing)
    outputs, inputs : sequence of tuple of int
        The strides of the arrays that the launch writes and reads, along all axes.
    members : int
        The most programs that may share a column.
    """
    ordered = [each for each in reductions if has_an_order(each[0])]
    found: set[ReductionLoop] = set()
    for expression, reducing in ordered or reductions[:1]:
        loop = reducing.rows(expression, outputs, inputs)
        if loop is None:
            return None
        fixed = ordered or loop.blocks or loop.case is LayoutCase.REDUCE_COLUMNS
        found.add(loop if fixed else loop._replace(segments=loop.segments.joined()))
    if len(found) > 1:
        return None
    (loop,) = found
    return loop if holds(loop, members) else None


def joined_parts(
    expression: Expression,
    reductions: Sequence[tuple[Expression, Reducing]],
    outputs: Sequence[Ints],
    inputs: Sequence[Ints],
) -> list[ReductionPart] | None:
    """Return the launches of several reductions of one shape along the same axes, and of what follows on their results.

    The result is None if they combine elements in different orders, or the inputs cannot be read in it.

    Parameters
    ----------
    expression : Expression
        All that is computed.
    reductions : sequence of (Expression, Reducing)
    outputs, inputs : sequence of tuple of int
        The strides of the arrays that are written and read, along all axes.
    """
    found = _alike(reductions)
    if found is None:
        return None
    like, reducing = found
    return reducing.parts(expression, whole=False, inputs=inputs, outputs=outputs, like=like)


def _alike(reductions: Sequence[tuple[Expression, Reducing]]) -> tuple[Expression, Reducing] | None:
    """Return a reduction whose order all have that have one; None if they combine elements in different orders.

    A search has the order of positions.
    """
    ordered = [each for each in reductions if has_an_order(each[0]) or each[1].axes.ordered] or reductions[:1]
    orders = {reducing.order(like) for like, reducing in ordered}
    return ordered[0] if len(orders) == 1 else None


def walked_parts(
    expression: Expression,
    rows: Sequence[tuple[Expression, Reducing]],
    columns: Sequence[tuple[Expression, Reducing]],
    outputs: Sequence[Ints],
    inputs: Sequence[Ints],
) -> list[ReductionPart] | None:
    """Return the launches of programs that walk rows and carry reductions of columns, of their lanes, and of segments.

    The result is None if they combine elements in different orders, if rows cannot be held, or where that would take
    longer than launches of their own for columns.

    Parameters
    ----------
    expression : Expression
        All that is computed. The reductions of columns are carried.
    rows, columns : sequence of (Expression, Reducing)
    outputs, inputs : sequence of tuple of int
        The strides of the arrays that are written and read, along all axes.
    """
    found = _alike(columns)
    if found is None or any(values_of(each) != 1 for each, _ in columns):
        return None
    (like, reducing), walk = found, split_walked(expression)
    names = walk.lanes.output_dtypes
    later = [expression.inputs[place][0] for place in walk.halves.second_reads]
    if "array" in later or any(name.startswith("complex") for name in names):
        return None
    stored = [reducing.results_along()] * len(names)
    over_rows = held_loop(rows, [*stored, *[outputs[place] for place in walk.rows]], inputs, 0)
    over_columns = reducing.columns(like, inputs)
    if over_rows is None or over_columns is None:
        return None
    read = [as_dtype(dtype).itemsize for kind, dtype in expression.inputs if kind == "array"]
    walked = walking(over_rows, over_columns, read, [as_dtype(name).itemsize for name in names])
    if walked is None:
        return None
    loop = _reading(over_rows, len(stored) + len(walk.rows), expression, walk.halves.first_reads)
    loop = loop._replace(walked=walked)
    segments, results = over_columns.segments.total, prod(reducing.kept)
    return [
        ReductionPart(walk.halves.first, loop, walk.halves.first_reads, walk.rows, walked.programs * results),
        ReductionPart(walk.lanes, _of_lanes(walked, segments, results, len(names)), (), (), segments * results),
        ReductionPart(
            walk.halves.second,
            reducing.of_segments(len(names), segments, [outputs[place] for place in walk.columns]),
            walk.halves.second_reads,
            walk.columns,
        ),
    ]


def _of_lanes(walked: Walked, segments: int, results: int, states: int) -> ReductionLoop:
    """Return the loop over what programs that walk rows gave: for each segment, its lanes are combined by halves."""
    read = (1, walked.lanes * results, results)
    shape = (results, segments, walked.lanes)
    return make_reduction(shape, (2,), [(segments, 1)] * states, [read] * states, 8, whole=True)
