"""Expressions and loops as lines of text.

>>> import numpy as np
>>> from tilearray.engine.expression import ExpressionBuilder
>>> builder = ExpressionBuilder()
>>> x, y = builder.array(np.dtype("uint8")), builder.array(np.dtype("float32"))
>>> add = builder.call("add", (builder.cast(x, np.dtype("uint8"), np.dtype("float32")), y), np.dtype("float32"), None)
>>> graph_text(builder.build([add], [np.dtype("float32")]))
'out0: float32 = add(float32(x0), x1)'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

from tilearray.engine.backend import AnyLoop
from tilearray.engine.expression import Expression
from tilearray.geometry.loop import Loop

NO_NAMES: Mapping[int, str] = {}


def operands_of(graph: Expression) -> list[tuple[str, str, bool]]:
    """Return the operands of a kernel, outputs first: name, dtype, and whether it is an array."""
    outputs = [(f"out{place}", dtype, True) for place, dtype in enumerate(graph.output_dtypes)]
    return [*outputs, *[(f"x{place}", dtype, kind == "array") for place, (kind, dtype) in enumerate(graph.inputs)]]


def inputs_text(graph: Expression) -> str:
    """Return the inputs of an expression with their dtypes."""
    return ", ".join(
        f"x{position}: {dtype}{' (a number)' if kind == 'scalar' else ''}"
        for position, (kind, dtype) in enumerate(graph.inputs)
    )


def graph_text(graph: Expression) -> str:
    """Return the outputs of an expression as calls of functions."""
    return "; ".join(
        f"out{position}: {dtype} = {node_text(graph, node)}"
        for position, (dtype, node) in enumerate(zip(graph.output_dtypes, graph.outputs, strict=True))
    )


def graph_lines(graph: Expression) -> list[str]:
    """Return the outputs of an expression as calls of functions. Values that are read several times come first.

    >>> import numpy as np
    >>> from tilearray.engine.expression import ExpressionBuilder
    >>> builder, double = ExpressionBuilder(), np.dtype("float64")
    >>> root = builder.call("sqrt", (builder.array(double),), double, None)
    >>> graph_lines(builder.build([builder.call("multiply", (root, root), double, None)], [double]))
    ['v1 = sqrt(x0)', 'out0: float64 = multiply(v1, v1)']
    """
    needed: list[int] = []
    waiting = list(graph.outputs)
    while waiting:
        position = waiting.pop()
        needed.append(position)
        if needed.count(position) == 1:
            waiting += _read_by(graph.nodes[position])
    uses = Counter(needed)
    names = {
        position: f"v{position}"
        for position in sorted(uses)
        if uses[position] > 1 and graph.nodes[position][0] in ("call", "cast", "gather", "guarded", "part")
    }
    lines = [f"{name} = {_node_text(graph, position, names)}" for position, name in names.items()]
    for number, (dtype, node) in enumerate(zip(graph.output_dtypes, graph.outputs, strict=True)):
        how = f"{graph.combines} " if graph.combines else ""
        lines.append(f"out{number}: {dtype} {how}= {node_text(graph, node, names)}")
    return lines


def _read_by(node: tuple[Any, ...]) -> Sequence[int]:
    """Return the nodes that a node reads."""
    if node[0] in _OF_ONE:
        return () if node[1] is None else (node[1],)
    if node[0] in ("sort", "argsort"):
        return cast(Sequence[int], node[1:])
    if node[0] in ("search", "bucketed", "start", "rule", "mended", "mended_order"):
        return (node[3],)
    if node[0] == "fold":
        return node[1:4]
    if node[0] in ("fold_words", "fold_places"):
        return (*node[1:4], node[5])
    if node[0] == "windows":
        return (node[1][-1], node[2][-1], *node[5:])
    if node[0] == "product":
        return cast(Sequence[int], node[1:3])
    if node[0] in ("gather", "guarded"):
        return (node[2],)
    return node[2] if node[0] in ("call", "reduce", "carry", "scan", "total") else ()


_OF_ONE = ("cast", "part", "slot", "count", "bins", "marks", "digits", "histograms", "rank", "sizes", "distinct")
"""Nodes that read one node, the first part."""
_WORDS = {
    "search": "place of {} in sorted {}",
    "bucketed": "place of {} in sorted {}, of which buckets are known",
    "start": "start of bucket {} in sorted {}",
    "rule": "width of {} buckets in sorted {}",
    "mended": "place of {} among near keys in {}",
    "mended_order": "place of {} among near words in {}",
    "bins": "how often each integer is {}",
    "marks": "a bit for each {}",
    "digits": "how often each digit is {}",
    "histograms": "how often each digit of {} is each integer",
    "rank": "place by digit {}",
    "sizes": "how many different {}",
    "distinct": "each {} once",
    "sort": "{} in order",
    "argsort": "order of {}",
    "fold": "{}, one after the other",
    "fold_words": "{}, one after the other",
    "fold_places": "{}, one after the other",
}
_VALUES = {
    "search": 2,
    "bucketed": 2,
    "start": 2,
    "rule": 2,
    "mended": 2,
    "mended_order": 2,
    "fold": 1,
    "fold_words": 1,
    "fold_places": 1,
}
"""The parts of these nodes that are values, where they are not the first."""


def node_text(graph: Expression, position: int, names: Mapping[int, str] = NO_NAMES) -> str:
    """Return a node with its operands as text. A cast reads as a call of the dtype, with its rounding mode.

    `names` has nodes that are written by their names.
    """
    return names.get(position) or _node_text(graph, position, names)


def _node_text(graph: Expression, position: int, names: Mapping[int, str]) -> str:
    kind, *rest = graph.nodes[position]
    if kind == "input":
        return f"x{rest[0]}"
    if kind in ("index", "position"):
        return kind
    if kind == "constant":
        return str(rest[0])
    if kind == "coordinate":
        return f"index along axis {rest[0]}"
    if kind == "starts":
        return f"sum of the counts of x{rest[0]}"
    if kind == "slot" and rest[0] is None:
        return f"slot by the bits of x{rest[1]}"
    if kind in ("slot", "count"):
        return f"{kind} of {node_text(graph, cast(int, rest[0]), names)}"
    if kind == "windows":
        long, short = (node_text(graph, cast("tuple[int, ...]", chain)[-1], names) for chain in rest[:2])
        return f"{rest[2]}(sum of {short} times {long} in windows)"
    words = _WORDS.get(str(kind))
    if words is not None:
        value = cast(int, rest[_VALUES.get(str(kind), 0)])
        return words.format(node_text(graph, value, names), f"x{rest[0]}")
    if kind == "part":
        _, how, nodes, _ = graph.nodes[cast(int, rest[0])]
        values = ", ".join(node_text(graph, node, names) for node in cast(Sequence[int], nodes))
        return f"{how} over {values}" if len(cast(Sequence[int], nodes)) == 1 else f"({how} over {values})[{rest[1]}]"
    if kind == "gather":
        return f"x{rest[0]}[{node_text(graph, cast(int, rest[1]), names)}]"
    if kind == "distance":
        return f"distance along x{rest[0]}"
    if kind == "guarded":
        return f"x{rest[0]} if {node_text(graph, cast(int, rest[1]), names)}"
    if kind == "cast":
        rounding = [str(rest[2]), *(["saturate"] if rest[3] else [])] if len(rest) > 2 else []
        return f"{rest[1]}({', '.join([node_text(graph, cast(int, rest[0]), names), *rounding])})"
    name, arguments = ("matmul", rest[:2]) if kind == "product" else rest[:2]
    arguments = cast(Sequence[int], arguments)
    return f"{name}({', '.join(node_text(graph, argument, names) for argument in arguments)})"


def loop_text(graph: Expression, loop: AnyLoop) -> str:
    """Return the extents of a collapsed loop, and the strides of its operands."""
    outputs = [f"out{position}" for position in range(len(graph.outputs))]
    arrays = [f"x{position}" for position, (kind, _) in enumerate(graph.inputs) if kind == "array"]
    strides = [f"{name} {given}" for name, given in zip([*outputs, *arrays], loop.strides)]
    return f"{' x '.join(map(str, loop.shape))}: {', '.join(strides)}"


def class_text(loop: AnyLoop) -> str:
    """Return the kind of a collapsed loop."""
    axes = f"{len(loop.shape)} ax{'i' if len(loop.shape) == 1 else 'e'}s"
    facts = [loop.case.value, axes, f"int{loop.index_bits} indices"]
    if not isinstance(loop, Loop):
        facts.append(f"{loop.lanes} lanes")
    return ", ".join(facts)
