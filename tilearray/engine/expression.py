"""`Expression`: the computation of one element of the output, as plain data for a backend.

An expression is a graph: typed inputs, ordered nodes, and for each output the node that it stores. It contains no
shapes. For example, ``float16 + float32`` under ``array-api`` is::

    inputs   ("array", "float16"), ("array", "float32")
    nodes    0: ("input", 0)   1: ("cast", 0, "float32")   2: ("input", 1)   3: ("call", "add", (1, 2), "float32")
    outputs  (3,)

The nodes are:

=================================================  ==================================================================
``("input", position)``                            the element of an input
``("cast", node, dtype)``                          a cast that rounds once, to nearest even
``("cast", node, dtype, mode, saturate)``          a cast with a mode of `tilearray.ops.options`, or saturation
``("call", name, nodes, dtype, triton)``           a call of a backend's function, and its expression in Triton
``("constant", number, dtype)``                    a number that is part of the kernel
``("index",)``                                     the position of the element in a dense output, an int64
``("gather", input, node)``                        the element of an input at a distance of `node` elements
``("distance", input, origin)``                    how many elements an input is further than another one
``("guarded", input, node)``                       the element of an input if `node` is true, else any value
``("search", input, size, node, side)``           where the value of a node belongs in an input that is sorted, an int64
``("bucketed", input, size, node, side, starts,    the same among sorted keys, integers without a sign, if an input
rule, of_floats)``                                 ``starts`` has the place of each bucket, and the end of the last one
``("start", input, size, node, rule, of_floats)``  where the bucket with a number starts among sorted keys, an int64
``("rule", input, size, buckets, of_floats)``      how sorted keys are divided into so many buckets at most, a float64
``("mended", input, size, key, run, flip, base,    how far an element moves in its run of equal upper bits of keys,
start, center, scale, infinity, near, is_linear)`` doubled, and odd if the run is too long: `library/radix.py` says how
``("mended_order", input, size, word, rows, flip,  the same for words of upper bits and positions in an input
base, start, infinity, near)``
``("report", condition, value, input)``            writes `value` to the first word of an input if `condition` is true
``("reduce", how, nodes, dtypes)``                 the elements of a loop's reduced axes, combined: see below
``("carry", how, nodes, dtypes)``                  the same of the slower axis, in a loop whose programs walk held rows
``("scan", how, (node,), (dtype,))``               the elements of a loop's scanned axis up to each one, combined
``("scan", how, (node, total), (dtype,))``         the same, combined with an array of the totals of all segments
``("total", how, (node,), (dtype,))``              the last result of a scan of a segment
``("part", node, position)``                       one of the values of a reduce node, or the value of a scan node
``("product", node, node, dtype)``                 the sum of products of the rows and columns of two matrices
``("position",)``                                  the position among the reduced elements in C order, an int64
``("slot", node)``                                 how many elements before it, in C order, have a true `node`
``("slot", None, input)``                          the same, from memory that the next two nodes have stored
``("count", node)``                                a bit for each element, whether `node` is true; behind these bits,
                                                   how many are 1 in each segment, and in it before each chunk
``("starts", input)``                              how many bits are 1 in all, from memory that "count" has stored, in
                                                   which it stores how many are 1 before each segment
``("bins", node, size, bits)``                     for each integer below `size`, a power of two, how many elements of a
                                                   segment have it as `node`, a uint: added to the first elements of
                                                   the output. Behind them it has the largest `node`, as a uint64. A
                                                   counter of a program has 32 bits, or 16
``("marks", node)``                                sets the bit of each `node`, an int64 that is not negative, in the
                                                   words of 32 bits of the output
``("digits", node, by_block)``                     how often each integer below 256 is `node` in each block of rows;
                                                   integer by integer, or block by block
``("histograms", node, size)``                     the same of so many digits of `node`, the lowest first, in a row:
                                                   added to the first elements of the output
``("rank", node, input, given)``                   how many elements of its row come before it in the order of `node`,
                                                   an integer below 256, from an array of running sums of counts, if
                                                   `given` is "sums", or of the counts block by block, if "counts"
``("rank", node, input, "swept", turns, first)``   the same of one row, from an array of the counts of all its digits,
                                                   and an input of zeros: the first one counts programs, which tell the
                                                   counts of their blocks from the place `first` on
``("sort", node, key, bits)``                      the element of a row at this place in the order of keys, of which so
                                                   many bits count
``("argsort", node, key, bits)``                   its index before the sort, an int64
``("sizes", node, starts, longest, overfull)``     how many integers `node` is in each run of equal upper bits, or
                                                   `overfull` in a run of more than `longest` elements: an int64. They
                                                   are sorted but for the lowest 16 bits of `node`. An input has the
                                                   place where each run starts, from upper bits of 0 on
``("distinct", node, starts, ends, overfull)``     each integer that is `node` of some elements, once, as an int64: from
                                                   the running sums of these sizes, up to the first run of `overfull`
``("coordinate", axis)``                           the index of the element along an axis of a selection, an int64
``("fold", node, result, place, at_once)``         `result` of all elements of a run of equal places, each computed with
                                                   the one before it as `node`, which is first what is in memory; so
                                                   many are read at once
``("fold_words", node, result, position, input,    the same of all words of an input, of which so many are sorted, whose
size, at_once)``                                   upper half is the place of the element; the lower half is `position`
``("fold_places", node, result, position, input,   the same of all elements of an input, of which so many are sorted,
size, ahead)``                                     equal to the place of the element; `position` is where one lies. That
                                                   many values are read ahead of those that are taken
``("windows", chain, other, dtype, conjugated,     the sum, in a dtype, of products of a shorter array with a window of
size, count, before, step)``                       a longer one, which begins `before` places before the element;
                                                   `size` and `count` are their sizes. A chain is the node of a place
                                                   in an array, and those of the element that lies there
=================================================  ==================================================================

Gathers, searches and reports access memory at computed places, a distance reads no memory, and a guarded element none
where its condition is false; only the CUDA backend supports them. A reduction
combines "add", "multiply", "add_in_any_order", "multiply_in_any_order" (on the host),
"maximum", "minimum", "or", "and" (one value), "maximum_number" and "minimum_number" (one
value, and NaN only if there is nothing else), "maximum_of_halves" (a word of the larger magnitudes of two bfloat16
without signs), or "argmax" and "argmin" (a value and its position). The nodes before it are computed for each element,
the nodes after it for each result. A scan combines one value; it has a result for each
element. A selection stores elements at their slots, and only those whose node is true.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilearray.dtypes import info

Node = tuple[object, ...]
Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A graph over typed inputs. Its hash is its identity, so a cache must keep it.

    Attributes
    ----------
    inputs : tuple of (str, str)
        "array" or "scalar" (a Python number), and the name of the dtype.
    nodes : tuple
        The graph. A node refers only to earlier nodes.
    outputs, output_dtypes : tuple
        For each output, the node that it stores and the name of its dtype.
    scalar_dtypes : tuple
        For each input, the dtype of a Python number, or None for an array.
    result : numpy.dtype
        The dtype of the first output.
    places : tuple of int
        For each output, the node that holds the distance in elements from the element's own place to the place where
        it is stored. () if each element is stored in its own place.
    contract : bool
        Whether a compiler may compute a product and a sum in one rounding, as fma. The host does not.
    combines : str
        How a result is combined with the element in its place, in one atomic step: "add", "maximum", "minimum", "and",
        "or" or "xor", or "count", which adds 1. "" replaces the element. Only the CUDA backend combines, in 32 and 64
        bits.
    """

    inputs: tuple[tuple[str, str], ...]
    nodes: tuple[Node, ...]
    outputs: Ints
    output_dtypes: tuple[str, ...]
    scalar_dtypes: tuple[np.dtype | None, ...]
    result: np.dtype
    places: Ints = ()
    contract: bool = False
    combines: str = ""

    @property
    def content(self) -> tuple[object, ...]:
        """All that is computed and stored; expressions of equal content are interchangeable."""
        return self.inputs, self.nodes, self.outputs, self.output_dtypes, self.places, self.contract, self.combines


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
        self._inputs.append((kind, info(dtype).name))
        self._scalars.append(dtype if kind == "scalar" else None)
        return len(self._inputs) - 1

    def node(self, *node: object) -> int:
        """Add a node and return its position."""
        self._nodes.append(node)
        return len(self._nodes) - 1

    def memory(self, dtype: np.dtype) -> int:
        """Add an array for gather or report nodes and return its position among the inputs."""
        return self._input("array", dtype)

    def array(self, dtype: np.dtype) -> int:
        """Add an array and return the node of its element."""
        return self.node("input", self._input("array", dtype))

    def number(self, dtype: np.dtype) -> int:
        """Add a Python number and return its node."""
        return self.node("input", self._input("scalar", dtype))

    def constant(self, number: float, dtype: np.dtype) -> int:
        """Add a number that is part of the kernel, and return its node."""
        return self.node("constant", number, info(dtype).name)

    def reduce(self, how: str, nodes: Ints, dtypes: Sequence[np.dtype]) -> list[int]:
        """Add a reduction of values of some dtypes, and return the nodes of its results."""
        node = self.node("reduce", how, nodes, tuple([info(dtype).name for dtype in dtypes]))
        return [self.node("part", node, position) for position in range(len(nodes))]

    def scan(self, how: str, node: int, dtype: np.dtype) -> int:
        """Add a scan of values of a dtype, and return the node of its results."""
        return self.node("part", self.node("scan", how, (node,), (info(dtype).name,)), 0)

    def cast(self, node: int, source: np.dtype, target: np.dtype) -> int:
        """Add a cast and return its node. If both dtypes are the same, return `node`."""
        return node if source == target else self.node("cast", node, info(target).name)

    def call(self, name: str, arguments: Ints, dtype: np.dtype, triton: str | None) -> int:
        """Add a call and return its node. `triton` is its expression over ``{x} {y} {z} {w}``."""
        return self.node("call", name, arguments, info(dtype).name, triton)

    def build(
        self, outputs: Sequence[int], dtypes: Sequence[np.dtype], places: Ints = (), *, combines: str = ""
    ) -> Expression:
        """Return the expression that stores these nodes, or combines them with what is in their places."""
        return Expression(
            tuple(self._inputs),
            tuple(self._nodes),
            tuple(outputs),
            tuple([info(dtype).name for dtype in dtypes]),
            tuple(self._scalars),
            dtypes[0],
            places,
            combines=combines,
        )


@lru_cache(64)
def copying(dtype: np.dtype) -> Expression:
    """Return the expression that copies elements of a dtype."""
    builder = ExpressionBuilder()
    return builder.build([builder.array(dtype)], [dtype])
