"""The nodes of one launch: values and all that they read, spliced into one expression."""

from __future__ import annotations

from collections.abc import Mapping

from tilearray.arrays.fusion.launches import Leaf
from tilearray.arrays.fusion.splitting import check_row
from tilearray.arrays.fusion.values import Constant, Given, Load, Read, Use, Value, inner_walk
from tilearray.engine.splice import Splicer, memory_of
from tilearray.geometry.walk import Walk, whole


class Nodes:
    """Splices values as loops visit them. Each is there once for each walk.

    Parameters
    ----------
    apart : mapping of Value to Leaf
        Values that are loaded from memory.
    wide : bool
        Whether narrow floats stay in the dtype of the computation.
    inline : set of Value
        Reductions that are a part of the launch. All walks over them are of loops over their rows.
    carried : set of Value
        Those among them that programs carry along while they walk rows of the others.

    Attributes
    ----------
    splicer : Splicer
    """

    def __init__(
        self,
        apart: Mapping[Value, Leaf],
        wide: bool,
        inline: frozenset[Value] = frozenset(),
        carried: frozenset[Value] = frozenset(),
    ) -> None:
        self.splicer = Splicer(wide)
        self._apart = apart
        self._inline = inline
        self._carried = carried
        self._nodes: dict[tuple[Value, Walk], int] = {}

    def add(self, value: Value, walk: Walk) -> int:
        """Splice a value and all that it reads, and return its node."""
        if self._is_loaded(value):
            return self._loaded(self._apart[value], walk)
        waiting = [(value, walk)]
        while waiting:
            asked = waiting[-1]
            if asked in self._nodes:
                waiting.pop()
                continue
            each, over = asked[0], self._over_operands(*asked)
            uses = [read for read in each.operands if isinstance(read, Use) and not self._is_loaded(read.value)]
            inner = [(read.value, inner_walk(read, each, over)) for read in uses]
            missing = [pair for pair in reversed(inner) if pair not in self._nodes]
            if missing:
                waiting += missing
            else:
                memory = memory_of(each.expression)
                operands = [
                    self._operand(read, each, over, place in memory) for place, read in enumerate(each.operands)
                ]
                self._nodes[asked] = self.splicer.splice(each.expression, operands, carried=each in self._carried)
        return self._nodes[value, walk]

    def _is_loaded(self, value: Value) -> bool:
        return value in self._apart and value not in self._inline

    def _over_operands(self, value: Value, walk: Walk) -> Walk:
        """Return the walk over the space of a value of a walk over it."""
        if value.reducing is None:
            return walk
        assert value in self._inline  # all other reductions are stored before
        check_row(value, walk)
        return whole(value.space)

    def _operand(self, read: Read, value: Value, walk: Walk, is_memory: bool) -> int:
        """Return the node of an operand, or its position if it is memory; values are spliced already."""
        if isinstance(read, Constant):
            return self.splicer.number((type(read.number).__name__, repr(read.number), read.dtype, read), read.dtype)
        if isinstance(read, Given):
            return self.splicer.number(read, read.dtype)
        inner = inner_walk(read, value, walk)
        if isinstance(read, Load):
            return self._loaded(Leaf(read.place, read.offset, read.strides, read.dtype), inner, is_memory)
        if self._is_loaded(read.value):
            return self._loaded(self._apart[read.value], inner)
        return self._nodes[read.value, inner]

    def _loaded(self, leaf: Leaf, walk: Walk, is_memory: bool = False) -> int:
        """Return the node of an element of an array in memory that a walk visits, or the position of the array."""
        shift, strides = walk.strided(leaf.strides)
        moved = Leaf(leaf.place, leaf.offset + shift * leaf.dtype.itemsize, strides, leaf.dtype)
        return (self.splicer.memory if is_memory else self.splicer.array)(moved, leaf.dtype)
