"""`Operation`: all that the engine knows of what it runs. There is one road from an operation to its launches.

A row of the op table, a cast, an assignment, a gather and a range are operations. An operation decides dtypes from
dtypes (`typing`) and gives an expression for them (`expression`). It knows no shape: the planner adds the loop, and a
backend turns both into launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tilearray import dtypes
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.devices import Device
from tilearray.engine.expression import Expression
from tilearray.promotion.operands import ZeroDim
from tilearray.promotion.scalars import Number, ScalarClass, as_number
from tilearray.promotion.semantics import Semantics


@dataclass(frozen=True, slots=True, eq=False)
class TypedScalar:
    """A Python number that is taken as one dtype under all semantics. Interned by `typed_scalar`."""

    dtype: np.dtype


_TYPED = {dtype: TypedScalar(dtype) for dtype in dtypes.ALL}


def typed_scalar(dtype: np.dtype) -> TypedScalar:
    """Return the `TypedScalar` of a dtype."""
    return _TYPED[dtype]


OperandType = np.dtype | ZeroDim | ScalarClass | TypedScalar
"""What dtypes are decided from: an array's dtype, that of a 0-d array, or the class of a Python number."""


class Typing(Protocol):
    """The dtypes of one call."""

    @property
    def casts(self) -> tuple[tuple[np.dtype, ...], ...]:
        """For each operand the dtypes that it is cast to, in turn."""
        ...

    @property
    def result(self) -> np.dtype:
        """The dtype of a new result."""
        ...


class Operation(Protocol):
    """What the engine runs.

    Attributes
    ----------
    name : str
        The function that errors name.
    into : object
        The key of the plans that write to a target.
    passes_numbers : bool
        Whether a Python number of the right class may be passed on unchecked if it fits its dtype.
    """

    @property
    def name(self) -> str: ...
    @property
    def into(self) -> object: ...
    @property
    def passes_numbers(self) -> bool: ...

    def typing(self, semantics: Semantics, types: Sequence[OperandType], /) -> Typing:
        """Decide the dtypes of a call, or raise an error that says what to write."""
        ...

    def expression(self, semantics: Semantics, types: tuple[OperandType, ...], out: np.dtype | None, /) -> Expression:
        """Return what is computed for operands of these types and stored as `out`, if that is given."""
        ...

    def check_device(self, device: Device, /) -> None:
        """Raise DeviceError if a device cannot run the operation."""
        ...

    def number(self, position: int, number: Number, dtype: np.dtype, /) -> Number:
        """Return the Python number in the place of an operand as `dtype`, or raise if it does not fit."""
        ...


@dataclass(frozen=True, slots=True)
class FixedTyping:
    """The dtypes of an operation that casts no operand."""

    casts: tuple[tuple[np.dtype, ...], ...]
    result: np.dtype


@dataclass(frozen=True, eq=False)
class FixedOperation:
    """An operation with one expression for all calls: it promotes nothing. Keep it, since plans are found by identity.

    Attributes
    ----------
    name : str
        The function that errors name.
    graph : Expression
        What is computed.
    into : object
        The key of the plans that write to a target.
    """

    name: str
    graph: Expression
    into: object = field(default_factory=object, repr=False)
    passes_numbers = True

    def typing(self, semantics: Semantics, types: Sequence[OperandType], /) -> FixedTyping:
        """Return the dtypes of the expression."""
        del semantics, types
        return FixedTyping(tuple([() for _ in self.graph.inputs]), self.graph.result)

    def expression(self, semantics: Semantics, types: tuple[OperandType, ...], out: np.dtype | None, /) -> Expression:
        """Return the one expression."""
        del semantics, types, out
        return self.graph

    def check_device(self, device: Device, /) -> None:
        """Every device runs it."""

    def number(self, position: int, number: Number, dtype: np.dtype, /) -> Number:
        """Return a Python number as `dtype`, or raise if it does not fit."""
        del position
        return as_number(number, dtype, self.name)


EXPRESSIONS: TwoGenerations[Expression] = TwoGenerations(2048)


def expression_of(
    operation: Operation, semantics: Semantics, types: tuple[OperandType, ...], out: np.dtype | None
) -> Expression:
    """Return the expression of an operation for operands of `types`, the same object for equal expressions."""
    key = (operation, semantics.key, types, out)
    found = EXPRESSIONS.get(key)
    if found is None:
        made = operation.expression(semantics, types, out)
        same = (operation, made.inputs, made.nodes, made.outputs, made.output_dtypes)
        found = EXPRESSIONS.put(key, EXPRESSIONS.put(same, made))
    return found
