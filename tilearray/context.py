"""What is in force: semantics, stream and pool of the current thread or task, in one context variable.

An operation reads `STATE` once and finds everything there, the plans of its semantics included. A ``with`` block puts a
new `State` on top of the current one. A `contextvars.ContextVar` holds it, so threads start from the default and
asyncio tasks from what was in force where they were made, and none sees what another sets.

The states form a chain, and leaving a block takes *its own* state out of the current context's chain, wherever it is.
That is more than a token could do, which restores what it has seen: generators interleave blocks, and an outer one may
end before the inner one.
"""

from __future__ import annotations

import os
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final

import numpy as np

from tilearray.dtypes import as_dtype, dtype_of
from tilearray.errors import OperandError, PromotionError
from tilearray.promotion import SEMANTICS, Semantics, as_semantics
from tilearray.scalars import ScalarClass, classify

ENVIRONMENT_VARIABLE: Final = "TILEARRAY_SEMANTICS"

_PLANS: Final[dict[Semantics, dict[Any, Any]]] = {known: {} for known in SEMANTICS.values()}


def plans_of(semantics: Semantics) -> dict[Any, Any]:
    """Return the plans of a semantics: one dictionary for all states that use it."""
    return _PLANS.setdefault(semantics, {})


class State:
    """What an operation needs to know of its surroundings.

    Attributes
    ----------
    semantics : Semantics
        The rules in force.
    plans : dict
        The plans made under them. `set_semantics` may run in another thread between two reads: whoever makes a plan
        reads `semantics` once and keeps the plan in ``plans_of(semantics)``.
    stream, pool : object
        Where to launch and where to allocate; None for the device's own.
    """

    __slots__ = ("below", "owner", "plans", "pool", "semantics", "stream")

    def __init__(
        self, rules: Semantics, stream: Any = None, pool: Any = None, owner: object = None, below: State | None = None
    ) -> None:
        self.semantics = rules
        self.plans = plans_of(rules)
        self.stream = stream
        self.pool = pool
        self.owner = owner
        self.below = below


def _initial() -> Semantics:
    return as_semantics(os.environ.get(ENVIRONMENT_VARIABLE) or "array-api", ENVIRONMENT_VARIABLE)


_DEFAULT: Final = State(_initial())
STATE: Final[ContextVar[State]] = ContextVar("tilearray", default=_DEFAULT)


class semantics:  # noqa: N801 - called like a function
    """Put other semantics in force within a ``with`` block.

    Blocks nest, and one object may be entered several times, also at once. Threads and asyncio tasks do not see each
    other's blocks; a task starts with those in which it was made.

    Parameters
    ----------
    name : str or Semantics
        "array-api" or "triton".

    Raises
    ------
    SemanticsError
        If there is no such semantics.

    Examples
    --------
    >>> import tilearray as ta
    >>> with ta.semantics("triton"):
    ...     ta.promote_types("int8", "uint8")
    dtype('uint8')
    >>> ta.promote_types("int8", "uint8")
    dtype('int16')
    """

    __slots__ = ("_semantics",)

    def __init__(self, name: str | Semantics, /) -> None:
        self._semantics = as_semantics(name)

    def __enter__(self) -> Semantics:
        below = STATE.get()
        STATE.set(State(self._semantics, below.stream, below.pool, owner=self, below=below))
        return self._semantics

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        STATE.set(_without(STATE.get(), self))


def _without(state: State, owner: object) -> State:
    """Return a chain of states less the topmost one of `owner`; unchanged if it has none."""
    if state.below is None:
        return state
    if state.owner is owner:
        return state.below
    below = _without(state.below, owner)
    if below is state.below:
        return state
    return State(state.semantics, state.stream, state.pool, state.owner, below)


def get_semantics() -> Semantics:
    """Return the semantics in force.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.get_semantics().name
    'array-api'
    """
    return STATE.get().semantics


def set_semantics(name: str | Semantics, /) -> None:
    """Set the semantics that are in force, in every thread, outside of all ``with ta.semantics(...)`` blocks.

    Raises
    ------
    SemanticsError
        If there is no such semantics; nothing changes then.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.set_semantics("array-api")
    """
    rules = as_semantics(name, "set_semantics")
    _DEFAULT.semantics = rules
    _DEFAULT.plans = plans_of(rules)


def promote_types(a: Any, b: Any, /) -> np.dtype:
    """Return the common dtype of two dtypes under the semantics in force.

    Parameters
    ----------
    a, b : dtype
        Whatever `as_dtype` takes.

    Raises
    ------
    PromotionError
        If there is none; the message says which cast to write.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.promote_types(ta.float16, ta.bfloat16), ta.promote_types("uint8", "int8")
    (dtype('float32'), dtype('int16'))
    """
    dtypes = (as_dtype(a, "promote_types"), as_dtype(b, "promote_types"))
    return STATE.get().semantics.promote(dtypes, "promote_types")


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """Return the dtype of an operation's result under the semantics in force; the order of the operands is no matter.

    Parameters
    ----------
    *arrays_and_dtypes : array, dtype or number
        Arrays of any library and 0-d ones too, NumPy scalars and dtypes count by their dtype; Python numbers by value,
        and only where their kind is above that of the arrays.

    Raises
    ------
    PromotionError
        If there is no common dtype; the message says which cast to write.
    ScalarOverflowError
        If an integer that needs a dtype of its own is beyond 64 bits.

    Examples
    --------
    >>> import numpy as np
    >>> import tilearray as ta
    >>> ta.result_type(ta.float16, 2.5), ta.result_type(ta.int8, 2.5), ta.result_type(ta.int8, np.float64(2.5))
    (dtype('float16'), dtype('float32'), dtype('float64'))
    """
    if not arrays_and_dtypes:
        raise OperandError("result_type: expected at least one array, dtype or number, got none")
    operands = [_operand(operand) for operand in arrays_and_dtypes]
    return STATE.get().semantics.result_type(operands, "result_type")


def _operand(operand: object) -> np.dtype | ScalarClass:
    scalar = classify(operand)
    return dtype_of(operand, "result_type") if scalar is None else scalar


def can_cast(from_: Any, to: Any, /) -> bool:
    """Return whether promotion may turn one dtype into another under the semantics in force.

    Parameters
    ----------
    from_ : dtype or array
        What there is.
    to : dtype
        What is asked for: True if it is the common dtype of both.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.can_cast(ta.int8, ta.float16), ta.can_cast(ta.float32, ta.float16)
    (True, False)
    """
    source, target = dtype_of(from_, "can_cast"), as_dtype(to, "can_cast")
    try:
        return STATE.get().semantics.promote((source, target), "can_cast") == target
    except PromotionError:
        return False
