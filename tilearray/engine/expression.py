"""Bodies that no row of the table makes: written by hand, run on memory.

An operation that moves elements (`tilearray.functions.indexing.gather`) or makes them from their position (`tilearray.functions.ranges`) is a body
like any other: it is planned for a loop, compiled for its layout class, and launched. It has no promotion and no
semantics, so its plan is kept under the body and the loop alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tilearray.engine.caches import TwoGenerations
from tilearray.engine.devices import Device, Launch, Stream
from tilearray.engine.plan import kernel_of
from tilearray.engine.signature import ArrayBase
from tilearray.geometry.loop import LayoutCase, Loop, make_loop
from tilearray.ops.typing import Body, Node

Ints = tuple[int, ...]

LAUNCHES: TwoGenerations[Launch] = TwoGenerations(2048)


class Operand(NamedTuple):
    """Memory with strides of its own along the axes of a loop, in elements; 0 where it stands still."""

    buffer: Any
    offset: int
    strides: Ints
    itemsize: int

    @classmethod
    def of(cls, x: ArrayBase, strides: Ints) -> Operand:
        """The memory of an array, walked by other strides."""
        return cls(x._buffer, x._offset, strides, x._signature.itemsize)


class BodyMaker:
    """Collects the inputs and nodes of a body.

    Examples
    --------
    >>> maker = BodyMaker()
    >>> maker.cast(maker.array("int32"), "int32", "int64")
    1
    >>> maker.body((1,), ("int64",)).nodes
    (('input', 0), ('cast', 0, 'int64'))
    """

    def __init__(self) -> None:
        self.inputs: list[tuple[str, str]] = []
        self.nodes: list[Node] = []

    def _input(self, kind: str, dtype: str) -> int:
        self.inputs.append((kind, dtype))
        return len(self.inputs) - 1

    def node(self, *node: object) -> int:
        """Add a node; return its position."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def memory(self, dtype: str) -> int:
        """Add an array that is not read at its own place; return its position among the inputs."""
        return self._input("array", dtype)

    def array(self, dtype: str) -> int:
        """Add an array; return the node of its elements."""
        return self.node("input", self._input("array", dtype))

    def number(self, dtype: str) -> int:
        """Add a number; return its node."""
        return self.node("input", self._input("scalar", dtype))

    def cast(self, node: int, source: str, target: str) -> int:
        """Add a cast where there is anything to cast."""
        return node if source == target else self.node("cast", node, target)

    def call(self, name: str, arguments: tuple[int, ...], dtype: str, triton: str) -> int:
        """Add a call of an expression over ``{x} {y} {z}``."""
        return self.node("call", name, arguments, dtype, triton)

    def body(self, outputs: Ints, dtypes: tuple[str, ...], places: Ints = ()) -> Body:
        """Return the body; keep it, since kernels are found by its identity."""
        return Body(
            tuple(self.inputs), tuple(self.nodes), outputs, dtypes, (None,) * len(self.inputs), np.dtype(bool), places
        )


def run(body: Body, shape: Ints, operands: Sequence[Operand | int | float], device: Device, stream: Stream) -> None:
    """Run a body over a shape; memory and numbers stand in the order of its outputs and inputs."""
    memory = [operand for operand in operands if isinstance(operand, Operand)]
    loop = make_loop(shape, [operand.strides for operand in memory])
    if loop.case is LayoutCase.EMPTY:
        return
    aligned = tuple(
        [
            (operand.buffer.pointer + operand.offset + shift * operand.itemsize) % 16 == 0
            for operand, shift in zip(memory, loop.shifts, strict=True)
        ]
    )
    arguments: list[Any] = [stream]
    for operand in operands:
        arguments += operand[:2] if isinstance(operand, Operand) else (operand, 0)
    _launch_of(body, loop, aligned, device)(*arguments)


def _launch_of(body: Body, loop: Loop, aligned: tuple[bool, ...], device: Device) -> Launch:
    key = (body, loop, aligned, device.name)
    found = LAUNCHES.get(key)
    if found is not None:
        return found
    return LAUNCHES.put(key, device.backend.bind(kernel_of(body, loop, aligned, device), loop))
