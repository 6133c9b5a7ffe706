"""Selections as operations: the elements for which a condition holds, and their indices.

A condition is true where it is not 0. Results have one axis and C order (`tilearray.geometry.selection`); their size is
known only after a launch has counted, so a call waits for the device once.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tilearray import dtypes
from tilearray.engine.expression import Expression, ExpressionBuilder
from tilearray.engine.operation import AsGiven, FixedTyping, OperandType
from tilearray.ops.row import plain_dtype
from tilearray.promotion.scalars import ScalarClass
from tilearray.promotion.semantics import Semantics


@dataclass(frozen=True, eq=False)
class Selection(AsGiven):
    """The elements of one array where another one is true, or indices along some axes.

    Attributes
    ----------
    name : str
        The name of the function in error messages.
    axes : int or None
        The number of axes whose indices are the results; None to select elements.
    """

    name: str
    axes: int | None
    into: object = field(default_factory=object, repr=False)
    reduced = scanned = None
    selects = True

    def typing(self, semantics: Semantics, types: Sequence[OperandType], /) -> FixedTyping:
        """Return the dtypes: operands as they are, and the result."""
        del semantics
        return FixedTyping(tuple([() for _ in types]), dtypes.int64 if self.axes is not None else _dtype(types[1]))

    def expression(self, semantics: Semantics, types: tuple[OperandType, ...], out: np.dtype | None, /) -> Expression:
        """Return the expression, which stores each element at its slot."""
        del semantics, out
        return _expression(tuple([_dtype(given) for given in types]), self.axes)


@dataclass(frozen=True, eq=False)
class FirstOfRuns(Selection):
    """The elements of an array of one axis that differ from the one before them: the array, and its memory.

    Attributes
    ----------
    equal_nan : bool
        Whether a NaN after a NaN is left out.
    """

    equal_nan: bool = False

    def expression(self, semantics: Semantics, types: tuple[OperandType, ...], out: np.dtype | None, /) -> Expression:
        """Return the expression, which reads the element before each one."""
        del semantics, out
        return _first_of_runs(_dtype(types[0]), self.equal_nan)


first_of_runs = {equal_nan: FirstOfRuns("unique", None, equal_nan=equal_nan) for equal_nan in (False, True)}

elements = Selection("indexing", None)
"""The elements where a condition is true: the condition, and the array."""


@functools.lru_cache(128)
def positions(axes: int) -> Selection:
    """Return the selection of the indices of an array's true elements: one result for each axis.

    Examples
    --------
    >>> positions(2) is positions(2)
    True
    """
    return Selection("nonzero", axes)


def _dtype(given: OperandType) -> np.dtype:
    assert not isinstance(given, ScalarClass)
    return plain_dtype(given)


@functools.lru_cache(512)
def _expression(given: tuple[np.dtype, ...], axes: int | None) -> Expression:
    builder = ExpressionBuilder()
    condition = builder.cast(builder.array(given[0]), given[0], dtypes.bool_)
    slot = builder.node("slot", condition)
    if axes is None:
        outputs, names = [builder.array(given[1])], [given[1]]
    else:
        outputs = [builder.node("coordinate", axis) for axis in range(axes)]
        names = [dtypes.int64] * axes
    return builder.build(outputs, names, (slot,) * len(outputs))


@functools.lru_cache(64)
def _first_of_runs(dtype: np.dtype, equal_nan: bool) -> Expression:
    builder = ExpressionBuilder()
    element, memory, index = builder.array(dtype), builder.memory(dtype), builder.node("index")
    before = builder.node("gather", memory, builder.call("before", (index,), dtypes.int64, "tl.maximum({x} - 1, 0)"))
    differs = "({x} == 0) | (({y} != {z}) & ({z} == {z}))" if equal_nan else "({x} == 0) | ({y} != {z})"
    slot = builder.node("slot", builder.call("differs", (index, element, before), dtypes.bool_, differs))
    return builder.build([element], [dtype], (slot,))
