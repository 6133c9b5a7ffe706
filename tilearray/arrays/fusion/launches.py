"""Launches of a program: the arrays that they read and write, their expressions, and the function that runs all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tilearray.arrays.fusion.numbers import ChangedNumber
from tilearray.arrays.fusion.values import Given, Value
from tilearray.engine.backend import AnyLoop
from tilearray.engine.devices import CPU
from tilearray.engine.expression import Expression
from tilearray.engine.reducing import Reducing, ReductionPart
from tilearray.engine.signature import ArrayBase, Signature, empty_array
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


class Fixed(NamedTuple):
    """Takes a number that is part of the function."""

    number: Any

    def __call__(self, arguments: Sequence[Any]) -> Any:
        return self.number


class Launch(NamedTuple):
    """A launch.

    Attributes
    ----------
    launch : callable
        The backend's function.
    operands : tuple of (int, int, callable or None)
        For each operand its place and offset, or the function of its number.
    work : Work
    made : tuple of int
        The places of the arrays that the launch makes. They, and numbers that are `Fixed`, are none of its arguments.
    """

    launch: Callable[..., Any]
    operands: tuple[tuple[int, int, Take | None], ...]
    work: Work
    made: Ints | None = None


class Whole(NamedTuple):
    """A result that is a whole array in memory, at a place."""

    place: int

    def __call__(self, arguments: Sequence[Any], memory: list[ArrayBase]) -> ArrayBase:
        return memory[self.place]


class Wholes(tuple[Whole, ...]):
    """A result that is a tuple of whole arrays in memory."""

    def __call__(self, arguments: Sequence[Any], memory: list[ArrayBase]) -> tuple[ArrayBase, ...]:
        return tuple([memory[each.place] for each in self])


Run = Callable[[Any, Sequence[Any], Sequence[ArrayBase]], Any]
Finish = Callable[[Sequence[Any], list[ArrayBase]], Any]


def written_out(
    launches: Sequence[Launch], outside: Sequence[ArrayBase], given: int, new: Sequence[Signature], finish: Finish
) -> Run:
    """Return a function of a stream, arguments and their arrays that runs launches, written out for its operands.

    One launch of two arrays that makes a third one is

        a2 = make(allocate(4000, stream), 0, signature2)
        launch0(stream, a2._buffer, 0, m[0]._buffer, m[0]._offset, m[1]._buffer, m[1]._offset + 4)
        return a2

    or, if the launch makes its results,

        a2 = launch0(stream, m[0]._buffer, m[0]._offset, m[1]._buffer, m[1]._offset + 4)
        return a2

    All numbers are taken first: one that does not fit is an error before anything is written.

    Parameters
    ----------
    launches : sequence of Launch
    outside : sequence of Array
        The arrays in memory that come after those of the arguments.
    given : int
        The number of both.
    new : sequence of Signature
        Of the arrays that come after these, which a call allocates.
    finish : callable
        Makes the results from the arguments and all arrays; a `Whole`, or some, are read without a call.
    """
    names: dict[str, Any] = {"public": ArrayBase._public, "make": ArrayBase._public._make, "finish": finish}
    arrays = [f"m[{place}]" for place in range(given - len(outside))]
    for place, array in enumerate(outside, len(arrays)):
        names[f"outside{place}"] = array
        arrays.append(f"outside{place}")
    numbers: list[str] = []
    lines: list[str] = []
    made = {place for launch in launches for place in launch.made or ()}
    for place, signature in enumerate(new, given):
        arrays.append(f"a{place}")
        if place in made:
            continue
        names[f"signature{place}"] = signature
        if signature.device is CPU:
            names["empty_array"] = empty_array
            lines.append(f"a{place} = empty_array(public, signature{place}, stream)")
        else:
            names["allocate"] = signature.device.backend.allocate
            lines.append(f"a{place} = make(allocate({signature.nbytes}, stream), 0, signature{place})")
    for turn, (launch, operands, _, makes) in enumerate(launches):
        names[f"launch{turn}"] = launch
        parts = ["stream"]
        for position, (place, offset, take) in enumerate(operands):
            if makes is not None and (isinstance(take, Fixed) or (take is None and place in makes)):
                continue
            if take is None:
                name = arrays[place]
                parts.append(f"{name}._buffer, {name}._offset{f' + {offset}' if offset else ''}")
            else:
                name = f"{turn}_{position}"
                names[f"take{name}"] = take
                numbers.append(f"n{name} = take{name}(arguments)")
                parts.append(f"n{name}, 0")
        results = f"{', '.join([arrays[place] for place in makes])} = " if makes else ""
        lines.append(f"{results}launch{turn}({', '.join(parts)})")
    if isinstance(finish, Whole):
        lines.append(f"return {arrays[finish.place]}")
    elif isinstance(finish, Wholes):
        lines.append(f"return {' '.join([f'{arrays[each.place]},' for each in finish])}")
    else:
        lines.append(f"return finish(arguments, [{', '.join(arrays)}])")
    body = "\n    ".join([*numbers, *lines])
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
    return Fixed(key[-1].number)


def _checked(given: Given, expected: ScalarClass | None, arguments: Sequence[Any]) -> Any:
    number = given.number.compute(arguments)
    if classify(number) is not expected:
        raise ChangedNumber
    return given.operation.number(given.position, number, given.dtype)
