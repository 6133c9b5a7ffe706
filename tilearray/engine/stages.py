"""An expression with a reduction as two, for two launches with scratch memory between them.

A loop with several segments needs two launches. The first one stores what each segment gives, the second one reduces
that and computes the rest of the expression:

    mean of x: float32, in 7 segments
    launch 1   cast(x, float64) -> add                              writes 7 float64 for each result to scratch memory
    launch 2   add over the 7 -> divide by a number -> cast         writes the results

Both are ordinary expressions, whose kernels are found and compiled like all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from tilearray import dtypes
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.expression import Expression, Node

Ints = tuple[int, ...]
S = TypeVar("S")


class Split(NamedTuple):
    """An expression with a reduction as two.

    Attributes
    ----------
    first, second : Expression
        The first one stores what a segment gives. Its outputs are the first inputs of the second one.
    first_reads, second_reads : tuple of int
        The inputs of the whole expression that each one reads; for `second`, after its first inputs.
    between : Expression or None
        What adds the counts of a selection, between the two.
    """

    first: Expression
    second: Expression
    first_reads: Ints
    second_reads: Ints
    between: Expression | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The dtypes of what the first one stores."""
        return self.first.output_dtypes


class Walking(NamedTuple):
    """An expression that reduces rows and columns as three.

    Attributes
    ----------
    halves : Split
        The first one reduces rows, and stores what each program carried; the second one reads it from segments.
    lanes : Expression
        Combines what the lanes of a segment carried.
    rows, columns : tuple of int
        The outputs of the whole expression that the first one and the second one write.
    """

    halves: Split
    lanes: Expression
    rows: Ints
    columns: Ints


_SPLIT: TwoGenerations[Split] = TwoGenerations(512)
_WALKED: TwoGenerations[Walking] = TwoGenerations(512)


def _once(known: TwoGenerations[S], make: Callable[[Expression], S], expression: Expression) -> S:
    """Return the stages of an expression, which are made at its first use."""
    found = known.get(expression)
    return found if found is not None else known.put(expression, make(expression))


def split(expression: Expression) -> Split:
    """Return an expression as one that reduces segments, and one that reduces what they give.

    Equal arguments give the same objects, since kernels are found by an expression's identity.
    """
    return _once(_SPLIT, _split, expression)


def _split(expression: Expression) -> Split:
    parts = [position for position, node in enumerate(expression.nodes) if node[0] == "part"]
    beside = outputs_beside(expression)
    first, second = _Copy(expression), _Copy(expression)
    names = [first.dtype(part) for part in parts]
    elements = [first.copy(expression.outputs[place]) for place in beside]
    stored = first.build(
        [*[first.copy(part) for part in parts], *elements],
        [*names, *[expression.output_dtypes[place] for place in beside]],
    )
    states = iter([second.state(name) for name in names])
    for position, node in enumerate(expression.nodes):
        match node:
            case ("reduce", how, nodes, names):
                again = ("reduce", how, tuple([next(states) for _ in nodes]), names)  # type: ignore[attr-defined]
                second.place(position, again)
            case _:
                pass
    results = [place for place in range(len(expression.outputs)) if place not in beside]
    outputs = [second.copy(expression.outputs[place]) for place in results]
    rest = second.build(outputs, [expression.output_dtypes[place] for place in results])
    return Split(stored, rest, tuple(first.reads), tuple(second.reads[len(parts) :]))


def split_walked(expression: Expression) -> Walking:
    """Return an expression that reduces rows and carries reductions of columns as three.

    Equal arguments give the same objects.
    """
    return _once(_WALKED, _split_walked, expression)


def _split_walked(expression: Expression) -> Walking:
    nodes: tuple[Any, ...] = expression.nodes
    first, between, second = _Copy(expression), _Copy(expression), _Copy(expression)
    parts = [place for place, node in enumerate(nodes) if _is_carried(nodes, node)]
    names = [first.dtype(part) for part in parts]
    for stage in (between, second):
        states = [stage.state(name) for name in names]
        for part, state in zip(parts, states, strict=True):
            _, how, _, dtypes_of = nodes[nodes[part][1]]
            stage.place(nodes[part][1], ("reduce", how, (state,), dtypes_of))
    carried = [_reads_a_carry(expression, output) for output in expression.outputs]
    rows, columns = ([place for place, each in enumerate(carried) if each == kind] for kind in (False, True))
    stored = [*[first.copy(part) for part in parts], *[first.copy(expression.outputs[place]) for place in rows]]
    walk = first.build(stored, [*names, *[expression.output_dtypes[place] for place in rows]])
    lanes = between.build([between.copy(part) for part in parts], names)
    outputs = [second.copy(expression.outputs[place]) for place in columns]
    rest = second.build(outputs, [expression.output_dtypes[place] for place in columns])
    halves = Split(walk, rest, tuple(first.reads), tuple(second.reads[len(parts) :]))
    return Walking(halves, lanes, tuple(rows), tuple(columns))


def _reads_a_carry(expression: Expression, output: int) -> bool:
    return any(_is_carried(expression.nodes, node) for node in _reached(expression, [output]))


def _is_carried(nodes: tuple[Any, ...], node: Any) -> bool:
    return node[0] == "part" and nodes[node[1]][0] == "carry"


def split_scan(expression: Expression) -> Split:
    """Return an expression with a scan as one that gives the totals of segments, and one that reads them.

    Equal arguments give the same objects.
    """
    return _once(_SPLIT, _split_scan, expression)


def _split_scan(expression: Expression) -> Split:
    nodes: tuple[Any, ...] = expression.nodes
    place = next(position for position, node in enumerate(nodes) if node[0] == "scan")
    _, how, (value,), names = nodes[place]
    first, second = _Copy(expression), _Copy(expression)
    total = first.place(place, ("total", how, (first.copy(value),), names))
    stored = first.build([first.place(-place - 1, ("part", total, 0))], names)
    state = second.state(names[0])
    second.place(place, ("scan", how, (second.copy(value), state), names))
    outputs = [second.copy(output) for output in expression.outputs]
    rest = second.build(outputs, expression.output_dtypes)
    return Split(stored, rest, tuple(first.reads), tuple(second.reads[1:]))


def values_of(expression: Expression) -> int:
    """Return the number of values that a reduction combines.

    Examples
    --------
    >>> from tilearray import float32
    >>> from tilearray.ops.reduction import reduction_of
    >>> [
    ...     values_of(reduction_of(name, float32, (0,), False).expression(None, (float32,) * count, None))
    ...     for name, count in (("sum", 1), ("var", 2))
    ... ]
    [1, 2]
    """
    nodes: tuple[Any, ...] = expression.nodes
    return next(len(node[2]) for node in nodes if node[0] == "reduce")


def reductions_of(expression: Expression) -> int:
    """Return the number of reductions in an expression."""
    return sum(node[0] == "reduce" for node in expression.nodes)


def has_an_order(expression: Expression) -> bool:
    """Return whether the order in which an expression combines values has an influence on the result.

    Examples
    --------
    >>> from tilearray import float32, int64
    >>> from tilearray.ops.reduction import reduction_of
    >>> [
    ...     has_an_order(reduction_of("sum", dtype, (0,), False).expression(None, (dtype,), None))
    ...     for dtype in (float32, int64)
    ... ]
    [True, False]
    """
    return any(
        node[1] in ("add", "multiply") and dtypes.info(dtypes.as_dtype(name)).kind in ("float", "complex")
        for node in _reductions(expression)
        for name in node[3]
    )


def can_be_held(expression: Expression) -> bool:
    """Return whether a program can reduce a row that it holds: all but positions, and products of complex numbers."""
    nodes = _reductions(expression)
    complex_product = any(node[1] == "multiply" and node[3][0].startswith("complex") for node in nodes)
    return not complex_product and not any(node[0] == "position" for node in expression.nodes)


def _reductions(expression: Expression) -> list[Any]:
    return [node for node in expression.nodes if node[0] == "reduce"]


class Around(NamedTuple):
    """What an expression has around its reductions.

    Attributes
    ----------
    beside : tuple of int
        The outputs that no reduction reaches: elements of the loop. A launch that reduces stores them as it goes over
        the elements.
    reads : bool
        Whether what is computed of the results of reductions reads arrays.
    """

    beside: Ints
    reads: bool


_AROUND: TwoGenerations[Around] = TwoGenerations(512)


def reads_after(expression: Expression) -> bool:
    """Return whether what an expression computes of the results of reductions reads arrays."""
    return _once(_AROUND, _around, expression).reads


def outputs_beside(expression: Expression) -> Ints:
    """Return the outputs of an expression with reductions that none of them reaches."""
    return _once(_AROUND, _around, expression).beside


def _around(expression: Expression) -> Around:
    beside = _outputs_beside(expression)
    return Around(beside, _reads_after(expression, beside))


def _reads_after(expression: Expression, beside: Ints) -> bool:
    results = [output for place, output in enumerate(expression.outputs) if place not in beside]
    for node in _reached(expression, results):
        match node:
            case ("input", position) if expression.inputs[position][0] == "array":
                return True
            case _:
                pass
    return False


def _outputs_beside(expression: Expression) -> Ints:
    found: list[int] = []
    for place, output in enumerate(expression.outputs):
        if all(node[0] != "part" for node in _reached(expression, [output])):
            found.append(place)
    return tuple(found)


def _reached(expression: Expression, wanted: Sequence[int]) -> list[Any]:
    """Return the nodes that some nodes need, up to reductions."""
    nodes = cast("tuple[Any, ...]", expression.nodes)
    waiting, found = list(wanted), set[int]()
    while waiting:
        number = waiting.pop()
        if number in found:
            continue
        found.add(number)
        match nodes[number]:
            case ("cast", argument, *_):
                waiting.append(argument)
            case ("call", _, arguments, *_):
                waiting += arguments
            case ("gather", _, place):
                waiting.append(place)
            case _:
                pass
    return [nodes[number] for number in found]


def split_selection(expression: Expression) -> Split:
    """Return an expression with slots as one that counts in segments, one that adds the counts, and one that stores.

    Equal arguments give the same objects.
    """
    return _once(_SPLIT, _split_selection, expression)


def _split_selection(expression: Expression) -> Split:
    nodes: tuple[Any, ...] = expression.nodes
    place = expression.places[0]
    condition = nodes[place][1]
    first, between, second = [_Copy(expression) for _ in range(3)]
    counted = first.build([first.place(place, ("count", first.copy(condition)))], [_BITS])
    added = between.build([between.place(place, ("starts", between.memory(_BITS)))], ["int64"])
    slot = second.place(place, ("slot", None, second.memory(_BITS)))
    outputs = [second.copy(output) for output in expression.outputs]
    rest = second.build(outputs, expression.output_dtypes, (slot,) * len(outputs))
    return Split(counted, rest, tuple(first.reads), tuple(second.reads[1:]), added)


_BITS = "int32"
"""The dtype of the words of bits, in whose memory the counts of segments stand as well."""


class _Copy:
    """Copies nodes of an expression into a new one, together with the inputs that they read.

    Attributes
    ----------
    reads : list of int
        For each input of the copy, the input of the source; -1 for a state.
    """

    def __init__(self, source: Expression) -> None:
        self._source = source
        self._inputs: list[tuple[str, str]] = []
        self._nodes: list[Node] = []
        self._places: dict[int, int] = {}
        self.reads: list[int] = []

    def place(self, position: int, node: Node) -> int:
        """Add a node that stands for one of the source, and return its position."""
        self._nodes.append(node)
        self._places[position] = len(self._nodes) - 1
        return self._places[position]

    def state(self, dtype: str) -> int:
        """Add an array of what segments gave, and return the node of its element."""
        return self._read(-1, ("array", dtype), -1 - len(self._inputs))

    def memory(self, dtype: str) -> int:
        """Add an array of what segments gave, and return its position among the inputs."""
        self._inputs.append(("array", dtype))
        self.reads.append(-1)
        return len(self._inputs) - 1

    def _memory_of(self, given: int) -> int:
        """Add an input whose elements other nodes read, and return its position."""
        if given not in self.reads:
            self._inputs.append(self._source.inputs[given])
            self.reads.append(given)
        return self.reads.index(given)

    def _read(self, given: int, kind: tuple[str, str], position: int) -> int:
        self._inputs.append(kind)
        self.reads.append(given)
        return self.place(position, ("input", len(self._inputs) - 1))

    def copy(self, position: int) -> int:
        """Copy a node and all that it needs, and return its position in the copy."""
        found = self._places.get(position)
        if found is not None:
            return found
        node = self._source.nodes[position]
        parts: tuple[Any, ...] = node
        match parts:
            case ("input", given):
                number = int(given)
                return self._read(number, self._source.inputs[number], position)
            case ("part" | "cast", argument, *rest):
                node = (parts[0], self.copy(argument), *rest)
            case ("reduce" | "carry" | "call", name, arguments, *rest):
                node = (parts[0], name, tuple([self.copy(argument) for argument in arguments]), *rest)
            case ("position",) | ("index",) | ("coordinate", _):
                pass
            case ("gather" | "guarded", given, place):
                node = (parts[0], self._memory_of(int(given)), self.copy(int(place)))
            case ("distance", given, origin):
                node = ("distance", self._memory_of(int(given)), self._memory_of(int(origin)))
            case _:
                raise NotImplementedError(f"{parts[0]} before or after a reduction")
        return self.place(position, node)

    def dtype(self, part: int) -> str:
        """Return the dtype of a part of a reduction."""
        nodes: tuple[Any, ...] = self._source.nodes
        _, reduction, position = nodes[part]
        return str(nodes[reduction][3][position])

    def build(self, outputs: list[int], names: Any, places: Ints = ()) -> Expression:
        """Return the copy, which stores these nodes."""
        scalars = tuple([dtypes.as_dtype(name) if kind == "scalar" else None for kind, name in self._inputs])
        found = [dtypes.as_dtype(name) for name in names]
        return Expression(
            tuple(self._inputs),
            tuple(self._nodes),
            tuple(outputs),
            tuple(names),
            scalars,
            np.dtype(found[0]),
            places,
            self._source.contract,
        )
