"""`Operation`: the interface between the engine and the operations that it runs.

A row of the op table, a cast, an assignment, a gather and a range are operations. All of them run in the same way: an
operation decides dtypes from dtypes (`typing`) and returns an expression for them (`expression`). It does not depend on
shapes. The planner adds the loop, and a backend turns both into launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from tilearray import dtypes
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.devices import Device
from tilearray.engine.expression import Expression
from tilearray.promotion.operands import ZeroDim, zero_dim
from tilearray.promotion.scalars import Number, ScalarClass, as_number
from tilearray.promotion.semantics import Semantics


@dataclass(frozen=True, slots=True, eq=False)
class TypedScalar:
    """A Python number that has one dtype under all semantics. `typed_scalar` returns the only object of each dtype.

    It promotes like an array, or like a 0-d array if it was a NumPy scalar.
    """

    dtype: np.dtype
    promotes_as: np.dtype | ZeroDim


_TYPED = {dtype: TypedScalar(dtype, dtype) for dtype in (*dtypes.ALL, *dtypes.PACKED)}
_OF_NUMPY = {dtype: TypedScalar(dtype, zero_dim(dtype)) for dtype in dtypes.ALL}


def typed_scalar(dtype: np.dtype, *, of_numpy: bool = False) -> TypedScalar:
    """Return the `TypedScalar` of a dtype, or that of NumPy scalars."""
    return (_OF_NUMPY if of_numpy else _TYPED)[dtype]


OperandType = np.dtype | ZeroDim | ScalarClass | TypedScalar
"""The type of an operand: the dtype of an array, the dtype of a 0-d array, or the class or dtype of a Python number."""


class Typing(Protocol):
    """The dtypes of one call."""

    @property
    def casts(self) -> tuple[tuple[np.dtype, ...], ...]:
        """For each operand, its casts in order."""
        ...

    @property
    def result(self) -> np.dtype:
        """The dtype of a new result."""
        ...


class Reduced(NamedTuple):
    """The axes that an operation reduces.

    Attributes
    ----------
    axes : tuple of int
        Not negative, each once.
    keepdims : bool
        Whether the result keeps them, with size 1.
    ordered : bool
        Whether the expression counts positions, so that reduced axes keep C order.
    held : bool
        Whether rows are combined in the order of rows that a program holds as a whole.
    spread : bool
        Whether the result has a value for each element, and so the shape of the operand.
    multiplies : bool
        Whether it is a matrix product: the last axis of one operand is summed with the last but one of the other.
    """

    axes: tuple[int, ...]
    keepdims: bool
    ordered: bool = False
    held: bool = False
    spread: bool = False
    multiplies: bool = False


class Scanned(NamedTuple):
    """The axis that an operation scans.

    Attributes
    ----------
    axis : int
        Not negative.
    initial : bool
        Whether the result has one more element along the axis, the first one, which the operation does not write.
    """

    axis: int
    initial: bool


class Operation(Protocol):
    """One operation, as the engine sees it.

    Attributes
    ----------
    name : str
        The name of the function in error messages.
    into : object
        The key of the plans that write to a target.
    passes_numbers : bool
        Whether a call may pass a Python number to the kernel without `number`, if its class matches and it fits.
    reduced : Reduced or None
        The axes that it reduces, or None.
    scanned : Scanned or None
        The axis that it scans, or None.
    selects : bool
        Whether it keeps the elements for which a condition holds: the size of its results depends on values.
    """

    @property
    def name(self) -> str: ...
    @property
    def into(self) -> object: ...
    @property
    def reduced(self) -> Reduced | None: ...
    @property
    def scanned(self) -> Scanned | None: ...
    @property
    def selects(self) -> bool: ...
    @property
    def passes_numbers(self) -> bool: ...

    def typing(self, semantics: Semantics, types: Sequence[OperandType], /) -> Typing:
        """Decide the dtypes of a call. If it is invalid, raise an error that says what to write."""
        ...

    def expression(self, semantics: Semantics, types: tuple[OperandType, ...], out: np.dtype | None, /) -> Expression:
        """Return the expression for operands of these types. `out` is the dtype of the target, or None."""
        ...

    def check_device(self, device: Device, /) -> None:
        """Raise DeviceError if the device cannot run the operation."""
        ...

    def number(self, position: int, number: Number, dtype: np.dtype, /) -> Number:
        """Return a Python number that is the operand at `position` as `dtype`. Raise an error if it does not fit."""
        ...


@dataclass(frozen=True, slots=True)
class FixedTyping:
    """The dtypes of an operation without casts."""

    casts: tuple[tuple[np.dtype, ...], ...]
    result: np.dtype


class AsGiven:
    """The part of an operation that takes its operands as they are, on every device, and numbers that fit."""

    name: str
    passes_numbers = True

    def check_device(self, device: Device, /) -> None:
        """Accept every device."""

    def number(self, position: int, number: Number, dtype: np.dtype, /) -> Number:
        """Return a Python number as `dtype`. Raise an error if it does not fit."""
        del position
        return as_number(number, dtype, self.name)


class FixedResult(AsGiven):
    """The part of an operation that is made for one dtype of its result."""

    result: np.dtype

    def typing(self, semantics: Semantics, types: Sequence[OperandType], /) -> FixedTyping:
        """Return the dtypes: each operand as it is, and the result."""
        del semantics
        return FixedTyping(tuple([() for _ in types]), self.result)


@dataclass(frozen=True, eq=False)
class FixedOperation(AsGiven):
    """An operation with one expression for all calls, without promotion. Keep it: plans are found by its identity.

    Attributes
    ----------
    name : str
        The name of the function in error messages.
    graph : Expression
        The expression of all calls.
    into : object
        The key of the plans that write to a target.
    """

    name: str
    graph: Expression
    into: object = field(default_factory=object, repr=False)
    reduced = scanned = None
    selects = False

    def typing(self, semantics: Semantics, types: Sequence[OperandType], /) -> FixedTyping:
        """Return the dtypes: each operand as it is, and the result of the expression."""
        del semantics
        return FixedTyping(tuple([() for _ in types]), self.graph.result)

    def expression(self, semantics: Semantics, types: tuple[OperandType, ...], out: np.dtype | None, /) -> Expression:
        """Return the expression."""
        del semantics, types, out
        return self.graph


EXPRESSIONS: TwoGenerations[Expression] = TwoGenerations(2048)


def expression_of(
    operation: Operation, semantics: Semantics, types: tuple[OperandType, ...], out: np.dtype | None
) -> Expression:
    """Return the expression of an operation for operands of `types`. Equal expressions are the same object."""
    key = (operation, semantics.key, types, out)
    found = EXPRESSIONS.get(key)
    if found is None:
        made = operation.expression(semantics, types, out)
        same = (operation, made.content)
        found = EXPRESSIONS.put(key, EXPRESSIONS.put(same, made))
    return found
