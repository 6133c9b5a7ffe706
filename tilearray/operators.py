"""The methods behind Python's operators, made from rows of the op table.

The method of a binary operator *is* the plan-cache hit: three dictionary lookups, one buffer, one launch. Everything
else goes the whole way through `tilearray.elementwise`. An operand of an unknown type gets ``NotImplemented``, so that
its own reflected operator has its turn; an array of a library that we know is an error that says what to write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilearray import products
from tilearray.base import A, ArrayBase, empty_array
from tilearray.context import STATE
from tilearray.elementwise import Op, execute
from tilearray.errors import OperandError
from tilearray.operands import type_name
from tilearray.scalars import classify

_NUMBERS = frozenset({bool, int, float, complex})
_KNOWN_ELSEWHERE = ("numpy", "torch", "cupy", "jax", "jaxlib", "numba", "pandas")


def operator_of(op: Op, *, reflected: bool = False) -> Callable[[Any, Any], Any]:
    """Return the method of a binary operator: the plan-cache hit for two arrays, else the whole way."""

    def method(self: Any, other: Any, /) -> Any:
        if other.__class__ is self.__class__:
            x, y = (other, self) if reflected else (self, other)
            state = STATE.get()
            try:
                plan = state.plans[op][x._signature][y._signature]
            except KeyError:
                plan = None
            if plan is None:
                return execute(op, (x, y))
            stream = state.stream
            out = empty_array(self.__class__, plan.signature, stream)
            plan.launch(stream, out._buffer, 0, x._buffer, x._offset, y._buffer, y._offset)
            return out
        if not takes(op, other):
            return NotImplemented
        return execute(op, (other, self) if reflected else (self, other))

    return method


def in_place_operator_of(op: Op) -> Callable[[A, Any], A]:
    """Return the method of an in-place operator: the result is written where `self` lies, its dtype unchanged."""

    def method(self: A, other: Any, /) -> A:
        if not takes(op, other):
            return NotImplemented
        return execute(op, (self, other), self)

    return method


def unary_operator_of(op: Op) -> Callable[[A], A]:
    """Return the method of a unary operator."""

    def method(self: A, /) -> A:
        return execute(op, (self,))

    return method


def matrix_operators() -> tuple[Callable[[Any, Any], Any], ...]:
    """Return the methods of ``@``: the operator, its reflected form and its in-place form."""

    def operator(self: Any, other: Any, /) -> Any:
        return products.matmul(self, other) if _is_matrix(other) else NotImplemented

    def reflected(self: Any, other: Any, /) -> Any:
        return products.matmul(other, self) if _is_matrix(other) else NotImplemented

    def in_place(self: Any, other: Any, /) -> Any:
        return products.multiply_into(self, other) if _is_matrix(other) else NotImplemented

    return operator, reflected, in_place


def _is_matrix(other: object) -> bool:
    """Whether ``@`` takes `other`; a number or an array of another library is an error that says what to write."""
    if isinstance(other, ArrayBase):
        return True
    if classify(other) is not None or issubclass(type(other), np.generic):
        raise OperandError(f"matmul: expected an Array beside '@', got {type_name(other)}; write x * y")
    _refuse_known("matmul", "@", other)
    return False


def takes(op: Op, other: object) -> bool:
    """Whether an operator takes `other`; an array of another library is an error that says what to write."""
    if other.__class__ in _NUMBERS or isinstance(other, (ArrayBase, np.generic)) or classify(other) is not None:
        return True
    _refuse_known(op.name, op.operator, other)
    return False


def _refuse_known(name: str, symbol: str, other: object) -> None:
    """Raise OperandError for a sequence, or an array of a library that we know."""
    if issubclass(type(other), (list, tuple)) or type(other).__module__.partition(".")[0] in _KNOWN_ELSEWHERE:
        raise OperandError(
            f"{name}: the operands of {symbol!r} are a tilearray Array and {type_name(other)}; "
            f"write ta.asarray(y) for the latter"
        )
