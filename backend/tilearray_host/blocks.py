"""The values that a reduction combines, computed block after block in memory that stays in a processor's cache.

A block has some steps of some lanes. Its memory has the steps before the last two axes, or before the lanes if the
elements of each result lie in a line, so that operands are read in their order. It is viewed with the steps as the
first axis: ``ufunc.reduce`` along it combines one row of lanes after the other, as `tilearray.geometry.reduction` lays
down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from tilearray_host.reduction import Array, Arrays, Ints, Reduce

Call = tuple[Callable[..., Any], Sequence[int], Any]
"""A function, the nodes that it reads, and the memory of its result (None: the output)."""


class Nodes(Protocol):
    """The nodes of an expression with a reduction.

    Attributes
    ----------
    steps : list
        For each node that is computed: the function, the dtype, and the nodes that it reads.
    reduced : tuple of int
        The nodes that are reduced.
    reads : list of int
        The nodes before them that are inputs or positions.
    before, after : list of int
        The nodes that are computed before and after the reduction, in order.
    parts, numbers : dict
        The nodes that are values of the reduction, and their place; those that are inputs, and their position.
    stores : tuple of int
        The nodes that are stored.
    last : int
        The node that is the only output, if it is computed last; else -1.
    assigns : bool
        Whether the only output is a value of the reduction as NumPy assigns it.
    """

    steps: list[Any]
    reduced: Ints
    reads: list[int]
    before: list[int]
    after: list[int]
    parts: dict[int, int]
    numbers: dict[int, int]
    stores: Ints
    last: int
    assigns: bool


class View(NamedTuple):
    """What a part reads of an operand: shape, strides, and distance from the part's first element.

    Bytes are counted; of positions, for which `read` is a node without an input, elements.
    """

    read: int
    shape: Ints
    strides: Ints
    distance: int


class Computation(NamedTuple):
    """Calls that compute nodes. `reads` are the nodes that are given; `known` has the memory of the others."""

    reads: Sequence[int]
    calls: Sequence[Call]
    known: list[Any]

    def run(self, given: Sequence[Any], out: Any = None) -> list[Any]:
        """Return the values of all nodes."""
        values = self.known.copy()  # nothing that is kept refers to an operand
        for node, value in zip(self.reads, given):
            values[node] = value
        for function, arguments, target in self.calls:
            function(*[values[argument] for argument in arguments], out=out if target is None else target)
        return values


class Job(NamedTuple):
    """A block's work in a part.

    Attributes
    ----------
    place : tuple of slice
        Its lanes among those of the part.
    lanes : tuple of int
        Their shape.
    steps : tuple of int
        The extents of the steps: slower reduced axes, and chunks.
    continues : bool
        Whether these lanes have steps before these.
    chunks, size : int
        The whole chunks, and the elements of a last one that is shorter.
    flat : int
        The elements of each result, if the fastest axis is reduced and there are no slower ones; else 0.
    whole, rest : tuple of View
        What the block reads of whole chunks, and of the last one; if `flat`, the former has all.
    """

    place: tuple[Any, ...]
    lanes: Ints
    steps: Ints
    continues: bool
    chunks: int
    size: int
    flat: int
    whole: tuple[View, ...]
    rest: tuple[View, ...]


class Block:
    """Memory for the values of some steps of some lanes, and what computes them.

    Attributes
    ----------
    rows : list of ndarray
        The values, one array for each dtype. The first axis has a row for what the steps before gave if `before` is 1,
        and the steps; the second one has the values.
    tails : list of ndarray
        The values of a last chunk that is shorter, if `rows` does not have it: (values, lanes).
    pieces : list of Computation
        For the whole chunks, and for a last one that is shorter.
    """

    def __init__(self, nodes: Nodes, reduce: Reduce, axis: int, job: Job, before: int) -> None:
        lanes = job.lanes
        count = math.prod(job.steps)
        self.tails: list[Array] = []
        if job.flat and job.chunks and job.size and reduce.ufunc is not None and not before:
            self._in_lines(nodes, reduce, job)
            return
        axis_of_steps = -2 if job.flat else -3
        self.rows = [
            _in_rows((len(group), *lanes), axis_of_steps, count + before, reduce.dtypes[group[0]])
            for group in reduce.groups
        ]
        values = [(g, i) for g, group in enumerate(reduce.groups) for i, _ in enumerate(group)]
        targets = [self.rows[g][before:, i] for g, i in values]
        self.pieces: list[Computation] = []
        chunks = (slice(None),) * (len(job.steps) - 1)
        after = (slice(None),) * (-1 - axis)
        if job.flat:
            in_line = [np.moveaxis(x, 0, -2).reshape(1, *lanes[:-1], -1) for x in targets]
            self.pieces.append(_before(nodes, job.whole, [x[..., : job.flat] for x in in_line]))
            _fill([x[..., job.flat :] for x in in_line], reduce)
            return
        targets = [x.reshape((*job.steps, *lanes)) for x in targets]
        if job.whole:
            self.pieces.append(_before(nodes, job.whole, [x[(*chunks, slice(0, job.chunks))] for x in targets]))
        if job.rest:
            last = (*chunks, slice(job.chunks, None), ...)
            self.pieces.append(_before(nodes, job.rest, [x[(*last, slice(0, job.size), *after)] for x in targets]))
            _fill([x[(*last, slice(job.size, None), *after)] for x in targets], reduce)

    def _in_lines(self, nodes: Nodes, reduce: Reduce, job: Job) -> None:
        """Make memory without gaps: NumPy computes values that lie so in a third of the time."""
        *others, size = job.lanes
        lines = [np.empty((len(group), *others, job.flat), reduce.dtypes[group[0]]) for group in reduce.groups]
        whole = job.chunks * size
        self.rows = [np.moveaxis(x[..., :whole].reshape(*x.shape[:-1], job.chunks, size), -2, 0) for x in lines]
        self.tails = [x[..., whole:] for x in lines]
        targets = [x[i][None] for x, group in zip(lines, reduce.groups, strict=True) for i, _ in enumerate(group)]
        self.pieces = [_before(nodes, job.whole, targets)]

    @property
    def memory(self) -> Arrays:
        """Views of the memory of the values, and of what they are computed from."""
        return [*self.rows, *[x for piece in self.pieces for x in piece.known if x is not None]]

    def compute(self, views: Sequence[Any]) -> None:
        """Compute all values from views of the operands, those of the first piece first."""
        first = 0
        for piece in self.pieces:
            piece.run(views[first : (first := first + len(piece.reads))])


def _fill(gaps: Arrays, reduce: Reduce) -> None:
    """Fill memory after the last element, which no block writes."""
    for gap, identity in zip(gaps, reduce.identities, strict=True):
        gap[...] = identity


def _in_rows(shape: Ints, axis: int, count: int, dtype: np.dtype) -> Array:
    """Return memory for rows of a shape. The rows are the first axis, and an axis near the last one in memory."""
    return np.moveaxis(np.empty((*shape[: axis + 1], count, *shape[axis + 1 :]), dtype), axis, 0)


def _before(nodes: Nodes, views: Sequence[View], targets: Arrays) -> Computation:
    """Return the computation of the values that are reduced. A ufunc may write over its operands."""
    shapes = {node: view.shape for node, view in zip(nodes.reads, views, strict=True)}
    for node in nodes.before:
        shapes[node] = np.broadcast_shapes(*[shapes[argument] for argument in nodes.steps[node][2]])
    known: list[Any] = [None] * len(nodes.steps)
    for node, target in zip(nodes.reduced, targets, strict=True):
        if node in nodes.before and shapes[node] == target.shape:
            known[node] = target
    for node in reversed(nodes.before):
        if known[node] is None:
            known[node] = _memory(nodes, node, known, shapes[node], targets[0])
    calls: list[Call] = [(nodes.steps[node][0], nodes.steps[node][2], known[node]) for node in nodes.before]
    for node, target in zip(nodes.reduced, targets, strict=True):
        if known[node] is not target:
            calls.append((assign, (node,), target))
    return Computation(nodes.reads, calls, known)


def _memory(nodes: Nodes, node: int, known: list[Any], shape: Ints, like: Array) -> Array:
    """Return memory for a node.

    It is that of the only node that reads it, if that is a ufunc of the same shape and dtype, and reads it first.
    """
    dtype = nodes.steps[node][1]
    readers = [other for other in nodes.before if node in nodes.steps[other][2]]
    if len(readers) == 1 and node not in nodes.reduced:
        function, out_dtype, arguments = nodes.steps[readers[0]]
        out = known[readers[0]]
        first = next(argument for argument in arguments if argument in nodes.before)
        if isinstance(function, np.ufunc) and node == first and out_dtype == dtype and out.shape == shape:
            return out
    return np.empty_like(like, dtype) if shape == like.shape else np.empty(shape, dtype)


def assign(x: Array, *, out: Array) -> None:
    out[...] = x
