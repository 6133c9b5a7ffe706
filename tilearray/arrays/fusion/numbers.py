"""Numbers as arguments of a traced function. A kernel takes their values at each call, and never contains them.

A `TracedNumber` computes with other numbers, and remembers how, so ``x * (1 - beta)`` multiplies by another number when
`beta` changes. Where Python or NumPy needs the value itself, as in ``if beta > 0``, ``range(n)`` or ``np.sqrt(beta)``,
the number tells the trace that it depends on the value: another value is then traced again, with the same kernels.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilearray.engine.signature import ArrayBase
from tilearray.promotion.scalars import Number, StandIn

Compute = Callable[[Sequence[Any]], Any]
"""Returns a number from the arguments of a call."""


class ChangedNumber(Exception):  # noqa: N818 - a signal
    """A number that is computed from arguments has another class now, so the dtypes may differ."""


class TracedNumber(StandIn):
    """A number that depends on arguments.

    Attributes
    ----------
    number : int, float or complex
        Its value in this trace.
    compute : callable
        ``compute(arguments)`` returns its value in another call.
    needed : callable
        Called without arguments when Python needs the value.
    """

    __slots__ = ("compute", "needed")
    __trunc__: Callable[[TracedNumber], TracedNumber]

    def __init__(self, number: Number, compute: Compute, needed: Callable[[], None]) -> None:
        super().__init__(number)
        self.compute = compute
        self.needed = needed

    def mapped(self, function: Callable[[Any], Any]) -> TracedNumber:
        """Return a function of the number, which is computed again in another call."""
        inner = self.compute
        return TracedNumber(function(self.number), lambda arguments: function(inner(arguments)), self.needed)

    def value(self) -> Any:
        """Return the value, on which the trace depends from now on."""
        self.needed()
        return self.number

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Leave a ufunc to the Array among its operands. Without one NumPy needs the value."""
        if any(isinstance(x, ArrayBase) for x in (*inputs, *kwargs.get("out", ()))):
            return NotImplemented
        return getattr(ufunc, method)(*map(_plain, inputs), **kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.value(), dtype, copy=copy)

    def __repr__(self) -> str:
        return repr(self.value())

    def __hash__(self) -> int:
        return hash(self.value())


def argument(number: Number, position: int, needed: Callable[[], None]) -> TracedNumber:
    """Return the number that is the argument at a position.

    Examples
    --------
    >>> beta = argument(0.5, 0, lambda: print("needed"))
    >>> (1 - beta).compute([0.25])
    0.75
    >>> beta > 0
    needed
    True
    """
    return TracedNumber(number, operator.itemgetter(position), needed)


def _unary(compute: Callable[[Any], Any]) -> Any:
    def method(self: TracedNumber) -> TracedNumber:
        return self.mapped(compute)

    return method


def _binary(compute: Callable[[Any, Any], Any], swapped: bool = False) -> Any:
    def method(self: TracedNumber, other: Any) -> Any:
        if isinstance(other, ArrayBase):
            return NotImplemented
        numbers: tuple[type, ...] = (TracedNumber, int, float, complex)
        if not isinstance(other, numbers) or isinstance(other, np.generic):  # a NumPy scalar has a dtype
            return compute(other, self.value()) if swapped else compute(self.value(), other)
        left, right = (other, self) if swapped else (self, other)
        return _combined(compute, left, right)

    return method


def _combined(compute: Callable[[Any, Any], Any], left: Any, right: Any) -> TracedNumber:
    numbers = [side.number if isinstance(side, TracedNumber) else side for side in (left, right)]
    first, second = [_compute_of(side) for side in (left, right)]
    parts = [side for side in (left, right) if isinstance(side, TracedNumber)]

    def needed() -> None:
        for part in parts:
            part.needed()

    return TracedNumber(compute(*numbers), lambda arguments: compute(first(arguments), second(arguments)), needed)


def _compute_of(side: Any) -> Compute:
    return side.compute if isinstance(side, TracedNumber) else lambda arguments: side


def _valued(compute: Callable[..., Any]) -> Any:
    """Return a method that needs the value."""

    def method(self: TracedNumber, *others: Any) -> Any:
        plain = [_plain(other) for other in others]
        if any(isinstance(other, ArrayBase) for other in plain):
            return NotImplemented
        return compute(self.value(), *plain)

    return method


def _plain(operand: Any) -> Any:
    """Return an operand with its value."""
    return operand.value() if isinstance(operand, TracedNumber) else operand


def _truncated(number: float) -> float:
    """Return a number without its fraction. One that is not finite stays a float, so its class says that it changed."""
    return math.trunc(number) if math.isfinite(number) else number


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    _compute = getattr(operator, f"__{_name}__")
    setattr(TracedNumber, f"__{_name}__", _binary(_compute))
    setattr(TracedNumber, f"__r{_name}__", _binary(_compute, swapped=True))
for _name in ("neg", "pos", "abs"):
    setattr(TracedNumber, f"__{_name}__", _unary(getattr(operator, f"__{_name}__")))
TracedNumber.__trunc__ = _unary(_truncated)
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "xor", "lshift", "rshift", "invert", "index"):
    setattr(TracedNumber, f"__{_name}__", _valued(getattr(operator, f"__{_name}__")))
for _name, _kind in (("bool", bool), ("int", int), ("float", float), ("complex", complex), ("str", str)):
    setattr(TracedNumber, f"__{_name}__", _valued(_kind))
for _name, _kind in (("round", round), ("format", format), ("divmod", divmod)):
    setattr(TracedNumber, f"__{_name}__", _valued(_kind))
