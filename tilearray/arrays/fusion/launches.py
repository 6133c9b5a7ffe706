"""Launches of a program: the arrays that they read and write, their expressions, and the function that runs all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tilearray.arrays.fusion.numbers import ChangedNumber
from tilearray.arrays.fusion.values import Given, Value
from tilearray.engine.backend import AnyLoop
from tilearray.engine.expression import Expression
from tilearray.engine.reducing import Reducing, ReductionPart
from tilearray.engine.signature import ArrayBase
from tilearray.engine.splice import Splicer
from tilearray.geometry.layout import Layout
from tilearray.geometry.reduction import ReductionLoop
from tilearray.geometry.walk import Walk
from tilearray.promotion.scalars import ScalarClass, classify

Ints = tuple[int, ...]
Take = Callable[[Sequence[Any]], Any]
"""Takes a number for a kernel from the arguments of a call."""


class Leaf(NamedTuple):
    """An array that a launch reads or writes.

    Attributes
    ----------
    place : int
        Its memory: a source of the trace, or a new array.
    offset : int
        The bytes from the first element of that memory to where the loop begins.
    strides : tuple of int
        Along the axes of the result, in elements.
    dtype : numpy.dtype
    """

    place: int
    offset: int
    strides: Ints
    dtype: np.dtype

    def span(self, shape: Ints) -> tuple[int, int]:
        """Return the first byte and the end of the elements, from the first element of the memory."""
        layout = Layout(shape, self.strides)
        if not layout.size:
            return self.offset, self.offset
        return self.offset + layout.low * self.dtype.itemsize, self.offset + (layout.high + 1) * self.dtype.itemsize


class Store(NamedTuple):
    """A value that is stored: the elements that a walk visits, at the places of a leaf."""

    value: Value
    walk: Walk
    target: Leaf


class Spliced(NamedTuple):
    """A launch before it is planned.

    Attributes
    ----------
    shape : tuple of int
        The shape of its loop.
    stores : list of Store
    splicer : Splicer
        Its expression.
    nodes : list of int
        The nodes that it stores.
    reducing : Reducing or None
        What it combines if it is a reduction.
    parts : list of ReductionPart
        Its launches if it is one.
    loop : ReductionLoop or None
        Its loop if it goes over rows for several reductions.
    """

    shape: Ints
    stores: list[Store]
    splicer: Splicer
    nodes: list[int]
    reducing: Reducing | None = None
    parts: Sequence[ReductionPart] = ()
    loop: ReductionLoop | None = None

    @property
    def leaves(self) -> list[Leaf]:
        """The arrays that it reads."""
        return [key for kind, key in self.splicer.keys if kind == "array"]


class Work(NamedTuple):
    """What a launch computes, by which launches of several calls are found equal.

    Attributes
    ----------
    expression : Expression
    loop : AnyLoop
    aligned : tuple of bool
    numbers : tuple
        For each number what decides its value beside the arguments of the call.
    """

    expression: Expression
    loop: AnyLoop
    aligned: tuple[bool, ...]
    numbers: tuple[Any, ...]


class Launch(NamedTuple):
    """A launch: the backend's function, and for each operand its place and offset, or the function of its number."""

    launch: Callable[..., None]
    operands: tuple[tuple[int, int, Take | None], ...]
    work: Work


def written_out(launches: Sequence[Launch]) -> Callable[[Any, Sequence[Any], list[ArrayBase]], None]:
    """Return a function of a stream, arguments and arrays in memory that runs launches, written out for its operands.

    One launch of three arrays is ``launch0(stream, m[2]._buffer, m[2]._offset, m[0]._buffer, m[0]._offset + 4, ...)``.
    All numbers are taken first: one that does not fit is an error before anything is written.
    """
    names: dict[str, Any] = {}
    numbers: list[str] = []
    lines: list[str] = []
    for turn, (launch, operands, _) in enumerate(launches):
        names[f"launch{turn}"] = launch
        parts = ["stream"]
        for position, (place, offset, take) in enumerate(operands):
            if take is None:
                parts.append(f"m[{place}]._buffer, m[{place}]._offset{f' + {offset}' if offset else ''}")
            else:
                name = f"{turn}_{position}"
                names[f"take{name}"] = take
                numbers.append(f"n{name} = take{name}(arguments)")
                parts.append(f"n{name}, 0")
        lines.append(f"launch{turn}({', '.join(parts)})")
    body = "\n    ".join([*numbers, *lines] or ["pass"])
    exec(compile(f"def run(stream, arguments, m):\n    {body}\n", "<tilearray fused program>", "exec"), names)
    return names["run"]


def clash(target: Leaf, shape: Ints, leaf: Leaf, other: Ints, same_launch: bool) -> bool:
    """Whether a launch over the shape `other` reads memory that a store writes, other than element by element."""
    if leaf.place != target.place or (same_launch and leaf == target):
        return False
    start, end = target.span(shape)
    first, last = leaf.span(other)
    return first < end and start < last


def source_of_number(key: Any) -> Any:
    """Return what decides the value of a number beside the arguments of the call."""
    if isinstance(key, Given):
        return id(key.number), key.operation, key.position, key.dtype
    number = key[-1].number
    return type(number), repr(number)


def taker(key: Any) -> Take:
    """Return the function that takes a number for a kernel from the arguments of a call."""
    if isinstance(key, Given):
        return partial(_checked, key, classify(key.number.number))
    number = key[-1].number
    return lambda arguments: number


def _checked(given: Given, expected: ScalarClass | None, arguments: Sequence[Any]) -> Any:
    number = given.number.compute(arguments)
    if classify(number) is not expected:
        raise ChangedNumber
    return given.operation.number(given.position, number, given.dtype)
