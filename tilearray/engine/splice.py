"""Several expressions as one: each reads what another one stores, and memory is neither written nor read between them.

A node that is there already is not added again, so a common subexpression is computed once. Casts to the dtype that an
expression stores stay, so every intermediate is rounded as if it were stored. For example, ``x * y + x`` of float16::

    multiply   inputs a, b   cast(a) cast(b) multiply cast -> float16
    add        inputs p, q   cast(p) cast(q) add cast -> float16
    spliced    inputs x, y   cast(x) cast(y) multiply cast cast  add cast -> float16

``add`` reads the last cast of ``multiply``, and finds ``cast(x)``.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, cast

import numpy as np

from tilearray import dtypes
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.expression import Expression, Node

SPLICED: TwoGenerations[Expression] = TwoGenerations(1024)
"""Expressions by their content: kernels are found by the identity of an expression."""

ELEMENTWISE = frozenset({"input", "cast", "call"})
"""The kinds of nodes that can be spliced."""


def memory_of(expression: Expression) -> frozenset[int]:
    """Return the inputs that are memory for guarded elements and distances."""
    found: list[object] = []
    for node in expression.nodes:
        found += node[1:] if node[0] == "distance" else node[1:2] if node[0] == "guarded" else ()
    return frozenset(cast("list[int]", found))


def is_elementwise(expression: Expression) -> bool:
    """Return whether each element of the only output depends on one element of each input, and not on its place."""
    plain = len(expression.outputs) == 1 and not expression.places
    return plain and all(node[0] in ELEMENTWISE for node in expression.nodes)


class Splicer:
    """Collects the nodes of expressions.

    Attributes
    ----------
    keys : list of (str, key)
        For each input "array" or "scalar", and the key that it was added with.

    Examples
    --------
    >>> from tilearray.engine.expression import ExpressionBuilder
    >>> builder = ExpressionBuilder()
    >>> half = builder.cast(builder.array(np.dtype("float32")), np.dtype("float32"), np.dtype("float16"))
    >>> halved = builder.build([half], [np.dtype("float16")])
    >>> splicer = Splicer()
    >>> x = splicer.array("x", np.dtype("float32"))
    >>> splicer.splice(halved, [x]) == splicer.splice(halved, [x])
    True
    >>> splicer.build([1], [np.dtype("float16")]).nodes
    (('input', 0), ('cast', 0, 'float16'))
    """

    def __init__(self, wide: bool = False) -> None:
        self._nodes: list[Node] = []
        self._places: dict[Node, int] = {}
        self._inputs: dict[Any, tuple[int, str, np.dtype]] = {}
        self._wide = wide  # whether narrow floats stay in the dtype of the computation between two expressions

    @property
    def keys(self) -> list[tuple[str, Any]]:
        """The keys of the inputs in their order."""
        return list(self._inputs)

    def array(self, key: Hashable, dtype: np.dtype) -> int:
        """Return the node of an array's element. Equal keys are one input."""
        return self._input(("array", key), "array", dtype)

    def number(self, key: Hashable, dtype: np.dtype) -> int:
        """Return the node of a Python number. Equal keys are one input."""
        return self._input(("scalar", key), "scalar", dtype)

    def memory(self, key: Hashable, dtype: np.dtype) -> int:
        """Return the position of an input whose elements other nodes read."""
        self._inputs.setdefault(("array", key), (len(self._inputs), "array", dtype))
        return self._inputs["array", key][0]

    def node(self, *node: object) -> int:
        """Return the place of a node that is not elementwise."""
        return self._node(node)

    def _input(self, key: Hashable, kind: str, dtype: np.dtype) -> int:
        if key not in self._inputs:
            self._inputs[key] = (len(self._inputs), kind, dtype)
        return self._node(("input", self._inputs[key][0]))

    def _node(self, node: Node) -> int:
        """Return the place of a node, which is added unless it is there."""
        place = self._places.setdefault(node, len(self._nodes))
        if place == len(self._nodes):
            self._nodes.append(node)
        return place

    def splice(self, expression: Expression, arguments: Sequence[int], *, carried: bool = False) -> int:
        """Add an elementwise expression or a reduction that reads these nodes, and return the node that it stores.

        A reduction may be `carried` along, by programs that walk rows.

        An input of which `memory_of` says that other nodes read it has its position as the argument.
        """
        places: list[int] = []
        for node in expression.nodes:
            parts = cast(Any, node)
            if parts[0] == "input":
                places.append(arguments[int(parts[1])])
            elif parts[0] == "cast":
                places.append(self._cast(places[int(parts[1])], *parts[2:]))
            elif parts[0] == "call":
                given = tuple([places[int(argument)] for argument in parts[2]])
                places.append(self._node(("call", parts[1], given, *parts[3:])))
            elif parts[0] == "distance":
                places.append(self._node(("distance", *[arguments[int(part)] for part in parts[1:]])))
            elif parts[0] == "guarded":
                places.append(self._node(("guarded", arguments[int(parts[1])], places[int(parts[2])])))
            elif parts[0] == "reduce":
                given = tuple([places[int(argument)] for argument in parts[2]])
                places.append(self._node(("carry" if carried else "reduce", parts[1], given, parts[3])))
            elif parts[0] == "part":
                places.append(self._node(("part", places[int(parts[1])], parts[2])))
            elif parts[0] == "position":
                places.append(self._node(node))
            else:
                raise NotImplementedError(f"{parts[0]}: only elementwise expressions and reductions can be spliced")
        return places[expression.outputs[0]]

    def _cast(self, argument: int, *rest: Any) -> int:
        exact = self._exact(argument)
        if exact != argument and rest == ("float32",):
            return exact
        argument = exact
        if self._wide and len(rest) == 1:
            wide = self._before_rounding(argument, rest[0])
            if wide is not None:
                return wide
        return self._node(("cast", argument, *rest))

    def _exact(self, argument: int) -> int:
        """Return the float32 that a node holds as a narrow float, if that rounds nothing; else the node."""
        match self._nodes[argument]:
            case ("cast", int() as wide, str() as dtype) if dtype in _HALVES and self._is_exact(wide, dtype):
                return wide
            case _:
                return argument

    def _is_exact(self, number: int, dtype: str) -> bool:
        """Whether a node computes float32 from operands of a narrow dtype, of which this dtype holds the results."""
        node = cast(Any, self._nodes[number])
        if node[0] != "call" or node[1] not in _EXACT or node[3] != "float32":
            return False
        casts = [cast(Any, self._nodes[each]) for each in node[2]]
        return all(each[0] == "cast" and self._dtype(each[1]) == dtype for each in casts)

    def _dtype(self, number: int) -> str:
        """Return the dtype of an input or a cast; "" for other nodes."""
        match self._nodes[number]:
            case ("input", position):
                return next(dtypes.info(dtype).name for place, _, dtype in self._inputs.values() if place == position)
            case ("cast", _, str() as dtype, *_):
                return dtype
            case _:
                return ""

    def _before_rounding(self, argument: int, target: str) -> int | None:
        """Return the float32 that a node rounds to a narrow float, if `target` is float32 again."""
        before = cast(Any, self._nodes[argument])
        if target != "float32" or before[0] != "cast" or len(before) != 3 or before[2] not in _NARROW:
            return None
        source = cast(Any, self._nodes[before[1]])
        return before[1] if source[0] == "call" and source[3] == target else None

    def build(
        self,
        outputs: Sequence[int],
        output_dtypes: Sequence[np.dtype],
        places: tuple[int, ...] = (),
        *,
        contract: bool = False,
    ) -> Expression:
        """Return the expression that stores these nodes. Equal expressions are the same object."""
        inputs = list(self._inputs.values())
        made = Expression(
            tuple([(kind, dtypes.info(dtype).name) for _, kind, dtype in inputs]),
            tuple(self._nodes),
            tuple(outputs),
            tuple([dtypes.info(dtype).name for dtype in output_dtypes]),
            tuple([dtype if kind == "scalar" else None for _, kind, dtype in inputs]),
            output_dtypes[0],
            places,
            contract=contract,
        )
        return SPLICED.get(made.content) or SPLICED.put(made.content, made)


_HALVES = frozenset(("bfloat16", "float16"))
_EXACT = frozenset(("abs", "negative", "round", "floor", "ceil", "trunc", "maximum", "minimum"))
"""The operations whose results have no more bits than their operands."""
_NARROW = frozenset(row.name for row in dtypes.ALL if dtypes.info(row).kind == "float" and dtypes.info(row).bits < 32)
