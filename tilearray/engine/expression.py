"""`Expression`: what a backend computes for one element of the output, as plain data.

An expression is a graph. It has typed inputs, nodes in order, and for each output the node that it stores. No shape
enters. ``float16 + float32`` under ``array-api``, for example, is::

    inputs   ("array", "float16"), ("array", "float32")
    nodes    0: ("input", 0)   1: ("cast", 0, "float32")   2: ("input", 1)   3: ("call", "add", (1, 2), "float32")
    outputs  (3,)

Nodes are:

=================================================  ==================================================================
``("input", position)``                            an element of an input
``("cast", node, dtype)``                          rounded once, to nearest even
``("cast", node, dtype, mode, saturate)``          rounded in a mode of `tilearray.ops.options`, or saturated
``("call", name, nodes, dtype, triton)``           a function of the backends, and its expression in Triton
``("index",)``                                     the position of the element in a dense output, an int64
``("gather", input, node)``                        the element of an input that lies `node` elements further on
``("report", condition, value, input)``            writes `value` to the first word of an input where `condition` is true
=================================================  ==================================================================

The last three are for operations that move elements. Only the CUDA backend knows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Node = tuple[object, ...]
Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A graph over typed inputs. It is hashed by identity: keep it in the cache that made it.

    Attributes
    ----------
    inputs : tuple of (str, str)
        "array" or "scalar" (a Python number), and the name of the dtype.
    nodes : tuple
        The graph; a node refers to nodes before it.
    outputs, output_dtypes : tuple
        For each output the node that it stores, and the name of its dtype.
    scalar_dtypes : tuple
        For each input the dtype of a Python number; None for an array.
    result : numpy.dtype
        The dtype of the first output.
    places : tuple of int
        For each output the node that says how many elements from its own place an element is stored; () if all are
        stored in their own place.
    """

    inputs: tuple[tuple[str, str], ...]
    nodes: tuple[Node, ...]
    outputs: Ints
    output_dtypes: tuple[str, ...]
    scalar_dtypes: tuple[np.dtype | None, ...]
    result: np.dtype
    places: Ints = ()


class ExpressionBuilder:
    """Collects the inputs and nodes of an expression.

    Examples
    --------
    >>> builder = ExpressionBuilder()
    >>> x = builder.array(np.dtype("int32"))
    >>> builder.cast(x, np.dtype("int32"), np.dtype("int64"))
    1
    >>> builder.build([1], [np.dtype("int64")]).nodes
    (('input', 0), ('cast', 0, 'int64'))
    """

    def __init__(self) -> None:
        self._inputs: list[tuple[str, str]] = []
        self._scalars: list[np.dtype | None] = []
        self._nodes: list[Node] = []

    def _input(self, kind: str, dtype: np.dtype) -> int:
        self._inputs.append((kind, dtype.name))
        self._scalars.append(dtype if kind == "scalar" else None)
        return len(self._inputs) - 1

    def node(self, *node: object) -> int:
        """Add a node; return its position."""
        self._nodes.append(node)
        return len(self._nodes) - 1

    def memory(self, dtype: np.dtype) -> int:
        """Add an array that is not read at its own place; return its position among the inputs."""
        return self._input("array", dtype)

    def array(self, dtype: np.dtype) -> int:
        """Add an array; return the node of its elements."""
        return self.node("input", self._input("array", dtype))

    def number(self, dtype: np.dtype) -> int:
        """Add a Python number; return its node."""
        return self.node("input", self._input("scalar", dtype))

    def cast(self, node: int, source: np.dtype, target: np.dtype) -> int:
        """Add a cast, unless the two dtypes are the same."""
        return node if source == target else self.node("cast", node, target.name)

    def call(self, name: str, arguments: Ints, dtype: np.dtype, triton: str | None) -> int:
        """Add a call; `triton` is its expression over ``{x} {y} {z} {w}``."""
        return self.node("call", name, arguments, dtype.name, triton)

    def build(self, outputs: Sequence[int], dtypes: Sequence[np.dtype], places: Ints = ()) -> Expression:
        """Return the expression that stores these nodes."""
        return Expression(
            tuple(self._inputs),
            tuple(self._nodes),
            tuple(outputs),
            tuple([dtype.name for dtype in dtypes]),
            tuple(self._scalars),
            dtypes[0],
            places,
        )
