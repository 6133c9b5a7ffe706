"""What a traced function computes, as plain data: expressions, and where each of their operands is.

An operand is a `Load` of memory, a `Use` of another value, or a number. A value has no memory, so a view of it is a
walk over its indices (`tilearray.geometry.walk`), and a reshaped value is a value of reshaped operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tilearray.arrays.fusion.numbers import TracedNumber
from tilearray.engine.expression import Expression, ExpressionBuilder
from tilearray.engine.operation import Operation
from tilearray.geometry.layout import Layout
from tilearray.geometry.walk import Walk, walk_of_view, whole
from tilearray.promotion.scalars import Number

if TYPE_CHECKING:
    from tilearray.engine.reducing import Reducing

Ints = tuple[int, ...]


class Load(NamedTuple):
    """Elements in memory: those of a view of a source of the trace.

    Attributes
    ----------
    place : int
        The source: an argument, or an array from outside of the function.
    offset : int
        The bytes from its first element to that of the view.
    shape, strides : tuple of int
    dtype : numpy.dtype
    """

    place: int
    offset: int
    shape: Ints
    strides: Ints
    dtype: np.dtype


class Use(NamedTuple):
    """Elements of a value, as a view of `shape` visits them."""

    value: Value
    shape: Ints
    walk: Walk


class Constant(NamedTuple):
    """A number that does not depend on arguments."""

    number: Number
    dtype: np.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """A number that depends on arguments, and the operation that checks it at each call."""

    number: TracedNumber
    operation: Operation
    position: int
    dtype: np.dtype


Read = Load | Use | Constant | Given


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A computed array that has no memory.

    Attributes
    ----------
    expression : Expression
    operands : tuple of Read
        Its inputs; they broadcast to the space.
    layout : Layout
        That of the array which the function makes without fusion.
    dtype : numpy.dtype
    order : float
        Its place among the recorded calls: operands come earlier.
    reducing : Reducing or None
        What it combines if it is a reduction.
    parts : tuple of (int, tuple of int)
        Of an array that is joined, where the elements of each operand lie in it: the first one, and their strides.
    """

    expression: Expression
    operands: tuple[Read, ...]
    layout: Layout
    dtype: np.dtype
    order: float
    reducing: Reducing | None = None
    parts: tuple[tuple[int, Ints], ...] = ()

    @property
    def shape(self) -> Ints:
        """The shape of the array."""
        return self.layout.shape

    @property
    def space(self) -> Ints:
        """The shape of the loop over its operands: that of the array, or that before a reduction."""
        return self.layout.shape if self.reducing is None else self.reducing.shape

    @property
    def is_number(self) -> bool:
        """Whether all elements are one number."""
        return all(isinstance(read, Constant | Given) for read in self.operands)


def joined(parts: Sequence[tuple[Value, int, Ints]], size: int) -> Value:
    """Return an array of one axis that has the elements of values at some places, each from a first one on."""
    reads = tuple([all_of(value) for value, _, _ in parts])
    dtype, places = reads[0].value.dtype, tuple([(first, strides) for _, first, strides in parts])
    order = 0.5 + max(read.value.order for read in reads)
    return Value(_copying(dtype), reads, Layout.of((size,)), dtype, order, None, places)


def copied(read: Load | Use, order: float) -> Value:
    """Return elements of memory or of a value as a value of its own."""
    dtype = read.dtype if isinstance(read, Load) else read.value.dtype
    return Value(_copying(dtype), (read,), Layout.of(read.shape), dtype, order)


@cache
def _copying(dtype: np.dtype) -> Expression:
    builder = ExpressionBuilder()
    return builder.build([builder.array(dtype)], [dtype])


def all_of(value: Value) -> Use:
    """Return the use of a value as it is."""
    return Use(value, value.shape, whole(value.shape))


def view_of(value: Value, base: Layout, view: Layout, shift: int) -> Use | None:
    """Return the elements of a value in a view that starts `shift` elements after those of an array of layout `base`.

    The result is None if the view needs another order of the elements, and an operand cannot be reshaped to it.
    """
    walk = walk_of_view(base, view, shift)
    if walk is not None:
        return Use(value, view.shape, walk)
    if base.contiguous and view.canonical and shift == 0 and base.size == view.size:
        reshaped = _reshaped(value, view.shape)
        return None if reshaped is None else all_of(reshaped)
    return None


def inner_walk(read: Load | Use, value: Value, walk: Walk) -> Walk:
    """Return the walk over what an operand reads, of a walk over the value's space."""
    inner = walk if read.shape == value.space else walk.broadcast(value.space, read.shape)
    return inner if isinstance(read, Load) or read.walk is whole(read.shape) else inner.then(read.walk)


def _reshaped(value: Value, shape: Ints) -> Value | None:
    """Return a value whose elements have another shape: its operands are reshaped instead. None for a reduction."""
    if value.reducing is not None:
        return None
    operands: list[Read] = []
    for read in value.operands:
        found = _reshaped_read(read, value.shape, shape)
        if found is None:
            return None
        operands.append(found)
    return Value(value.expression, tuple(operands), Layout.of(shape), value.dtype, value.order)


def _reshaped_read(read: Read, old: Ints, shape: Ints) -> Read | None:
    if isinstance(read, Constant | Given):
        return read
    if isinstance(read, Load):
        layout = Layout(read.shape, read.strides).broadcast_to(old).reshape(shape)
        return None if layout is None else read._replace(shape=shape, strides=layout.strides)
    if read.shape == old and read.walk == whole(old) and read.value.shape == old:
        reshaped = _reshaped(read.value, shape)
        return None if reshaped is None else all_of(reshaped)
    if all(size == 1 for size in read.shape):
        still = (0,) * len(read.walk.start)
        return Use(read.value, (1,) * len(shape), Walk(read.walk.start, (still,) * len(shape)))
    return None
