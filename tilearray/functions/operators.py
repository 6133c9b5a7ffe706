"""The methods behind Python's operators, made from rows of the op table.

The method of an operator *is* the hit of the plan cache: one dictionary lookup for each operand, and the call of the
plan. A Python number is looked up by its class. On a miss `tilearray.ops.execute` makes the plan. An operand of an
unknown type gives ``NotImplemented``, so that Python tries the operand's reflected operator; a tensor of a known
library is an error that says what to write. Lists and ndarrays are operands: see `tilearray.functions.arguments`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tilearray.engine.context import STATE
from tilearray.engine.signature import ArrayBase
from tilearray.errors import OperandError, ScalarOverflowError, type_name
from tilearray.functions import products
from tilearray.functions.arguments import is_host_data, is_tensor
from tilearray.ops.execute import execute
from tilearray.ops.op import Op
from tilearray.promotion.scalars import classify

if TYPE_CHECKING:
    from tilearray.engine.array_type import Array
    from tilearray.engine.signature import Operand

BinaryMethod: TypeAlias = "Callable[[Array, Operand], Array]"
UnaryMethod: TypeAlias = "Callable[[Array], Array]"

_NUMBERS = frozenset({bool, int, float, complex})


def operator_of(op: Op) -> BinaryMethod:
    """Return the method of a binary operator."""
    state_in_force = STATE.get

    def method(self: Any, other: Any, /) -> Any:
        kind = other.__class__
        state = state_in_force()
        try:
            plan = state.plans[op][self._signature][other._signature if kind is self.__class__ else kind]
        except KeyError:
            plan = None
        if plan is not None:
            try:
                return plan.call(state.stream, self, other)
            except ScalarOverflowError:  # the number fits another dtype, or is an error
                plan = None
        return execute(op, (self, other)) if takes(op, other) else NotImplemented

    return method


def reflected_operator_of(op: Op) -> BinaryMethod:
    """Return the method of a binary operator whose first operand does not know Arrays."""
    state_in_force = STATE.get

    def method(self: Any, other: Any, /) -> Any:
        state = state_in_force()
        try:
            plan = state.plans[op][other.__class__][self._signature]
        except KeyError:
            plan = None
        if plan is not None:
            try:
                return plan.call(state.stream, other, self)
            except ScalarOverflowError:
                plan = None
        return execute(op, (other, self)) if takes(op, other) else NotImplemented

    return method


def in_place_operator_of(op: Op) -> BinaryMethod:
    """Return the method of an in-place operator: the result is written to `self`, whose dtype does not change."""
    state_in_force, into = STATE.get, op.into

    def method(self: Any, other: Any, /) -> Any:
        kind = other.__class__
        state = state_in_force()
        signature = self._signature
        try:
            plan = state.plans[into][signature][signature][other._signature if kind is self.__class__ else kind]
        except KeyError:
            plan = None
        if plan is not None:
            try:
                return plan.call(state.stream, self, self, other)
            except ScalarOverflowError:
                plan = None
        return execute(op, (self, other), self) if takes(op, other) else NotImplemented

    return method


def unary_operator_of(op: Op) -> UnaryMethod:
    """Return the method of a unary operator."""
    state_in_force = STATE.get

    def method(self: Any, /) -> Any:
        state = state_in_force()
        try:
            plan = state.plans[op][self._signature]
        except KeyError:
            plan = None
        return execute(op, (self,)) if plan is None else plan.call(state.stream, self)

    return method


def name_methods(cls: type[Any]) -> None:
    """Give the methods that rows made the names that they have in a class, for tracebacks and Python's own errors."""
    for name, method in vars(cls).items():
        if isinstance(method, FunctionType) and "<locals>" in method.__qualname__:
            method.__name__, method.__qualname__ = name, f"{cls.__name__}.{name}"
            method.__code__ = method.__code__.replace(co_name=name, co_qualname=method.__qualname__)


def matrix_operators() -> tuple[BinaryMethod, BinaryMethod, BinaryMethod]:
    """Return the methods of ``@``: the operator, its reflected form and its in-place form."""

    def operator(self: Any, other: Any, /) -> Any:
        return products.matmul(self, other) if _is_matrix(other) else NotImplemented

    def reflected(self: Any, other: Any, /) -> Any:
        return products.matmul(other, self) if _is_matrix(other) else NotImplemented

    def in_place(self: Any, other: Any, /) -> Any:
        return products.multiply_into(self, other) if _is_matrix(other) else NotImplemented

    return operator, reflected, in_place


def _is_matrix(other: object) -> bool:
    """Whether ``@`` takes `other`; a number or a tensor of a known library is an error that says what to write."""
    if issubclass(type(other), ArrayBase) or is_host_data(other):
        return True
    if classify(other) is not None or issubclass(type(other), np.generic):
        raise OperandError(f"matmul: expected an Array beside '@', got {type_name(other)}; write x * y")
    _refuse_known("matmul", "@", other)
    return False


def takes(op: Op, other: object) -> bool:
    """Whether an operator takes `other`; a tensor of a known library is an error that says what to write."""
    if type(other) in _NUMBERS or isinstance(other, (ArrayBase, np.generic)) or classify(other) is not None:
        return True
    if is_host_data(other):
        return True
    _refuse_known(op.name, op.operator, other)
    return False


def _refuse_known(name: str, symbol: str, other: object) -> None:
    """Raise OperandError for an array of a library whose own operators would move data or drop the dtype."""
    if is_tensor(other):
        raise OperandError(
            f"{name}: the operands of {symbol!r} are a tilearray Array and {type_name(other)}; "
            f"write ta.asarray(y) for the latter"
        )
