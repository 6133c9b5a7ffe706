"""What is in force: semantics and stream of the current thread or task, in one context variable.

An operation reads `STATE` once and finds everything there, the plans of its semantics included. A ``with`` block puts a
new `State` on top of the current one. A `contextvars.ContextVar` holds it, so threads start from the default and
asyncio tasks from what was in force where they were made, and none sees what another sets.

The states form a chain: each is the one below, but for the one field that its block sets. Leaving a block takes *its
own* state out of the current context's chain, wherever it is, and those above it get that field anew. That is more than
a token could do, which restores what it has seen: generators interleave blocks, and an outer one may end before the
inner one.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from tilearray.dtypes import as_dtype, dtype_of
from tilearray.engine.caches import PLANS
from tilearray.errors import OperandError, PromotionError
from tilearray.promotion.operands import Operand, zero_dim
from tilearray.promotion.scalars import classify
from tilearray.promotion.semantics import Semantics
from tilearray.promotion.systems import as_semantics

ENVIRONMENT_VARIABLE: Final = "TILEARRAY_SEMANTICS"


_followers: weakref.WeakSet[State] = weakref.WeakSet()
"""The states in force somewhere that have the default's semantics, because no block under them sets others."""
_following = threading.RLock()


def plans_of(semantics: Semantics) -> dict[Any, Any]:
    """Return the plans of a semantics: one dictionary for all states that use it, for as long as it lives."""
    plans = semantics.plans
    if plans is None:
        with _following:
            if semantics.plans is None:
                object.__setattr__(semantics, "plans", {})
                weakref.finalize(semantics, PLANS.forget, semantics.plans).atexit = False
            plans = semantics.plans
    assert plans is not None
    return plans


class State:
    """What an operation needs to know of its surroundings.

    Attributes
    ----------
    semantics : Semantics
        The rules in force.
    plans : dict
        The plans made under them. `set_semantics` may run in another thread between two reads: whoever makes a plan
        reads `semantics` once and keeps the plan in ``plans_of(semantics)``.
    stream : int
        The handle of the stream on which GPUs launch and allocate; 0 for their default stream.
    """

    __slots__ = ("__weakref__", "below", "owner", "plans", "semantics", "stream")

    def __init__(
        self,
        rules: Semantics,
        stream: Any = 0,
        owner: Block | None = None,
        below: State | None = None,
    ) -> None:
        self.semantics = rules
        self.plans = plans_of(rules)
        self.stream = stream
        self.owner = owner
        self.below = below


def _initial() -> Semantics:
    return as_semantics(os.environ.get(ENVIRONMENT_VARIABLE) or "array-api", ENVIRONMENT_VARIABLE)


_DEFAULT: Final = State(_initial())
STATE: Final[ContextVar[State]] = ContextVar("tilearray", default=_DEFAULT)


def _put_in_force(rules: Semantics) -> None:
    for state in (_DEFAULT, *_followers):
        state.semantics = rules
        state.plans = plans_of(rules)


def _renew_followers() -> None:
    """In a forked child, a thread that holds the lock and goes through the set may not be there.

    A set that is gone through keeps what is to be removed until then, so the set is another one, too. What such a
    thread has begun is brought to an end.
    """
    global _followers, _following
    _following = threading.RLock()
    _followers = _followers.copy()
    _put_in_force(_DEFAULT.semantics)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_renew_followers)


class _Exit:
    """The method ``__exit__`` of a block: what a ``with`` statement looks up before it enters the block."""

    def __get__(self, block: Block | None, owner: type[Block]) -> Callable[..., None]:
        return _exit if block is None else _Leaving(_left, block, STATE.get())


def _exit(
    block: Block, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
) -> None:
    """What `contextlib.ExitStack` takes from the class."""
    _left(block, None, kind, error, at)


class Block:
    """A ``with`` block that sets one field of the state.

    Blocks nest, and one object may be entered several times, also at once. Threads and asyncio tasks do not see each
    other's blocks; a task starts with those in which it was made.
    """

    __slots__ = ()
    _field: ClassVar[str]

    def _value(self) -> Any:
        """What the block sets its field to."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        below, value = STATE.get(), self._value()
        state = _stacked(self, below, below, self._field)
        try:
            STATE.set(state)
        except BaseException:  # an interrupt: __exit__ is not called then
            STATE.set(below)
            raise
        return value

    if TYPE_CHECKING:

        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
        ) -> None: ...
    else:
        __exit__ = _Exit()


def _left(
    block: Block,
    before: State | None,
    kind: type[BaseException] | None,
    error: BaseException | None,
    at: TracebackType | None,
) -> None:
    """Leave a block; `before` is for `_Leaving`."""
    state = None
    try:
        state = STATE.get()
        STATE.set(_without(state, block))
    except BaseException:  # an interrupt: nobody calls again
        STATE.set(_without(state or STATE.get(), block))
        raise


class _Leaving(partial[None]):
    """What a ``with`` statement calls at its end, and holds until then.

    Python looks at signals where a function begins, before any of its bytecodes: an interrupt that arrives during a
    long operation at the end of a block may come out of `_left` with nothing done. The statement then lets go of this
    object, no traceback holds it, and its finalizer leaves the block.
    """

    def __del__(self) -> None:
        block, before = self.args
        state = STATE.get()
        if state is not before and state.owner is block and state.below is before:
            STATE.set(before)


def _stacked(block: Block, below: State, like: State, field: str) -> State:
    """Return the state of a block above `below`, as `like` but for a field, which is the block's or that of `below`."""
    with _following:  # until the state is among the followers, the default must not change
        state = State(like.semantics, like.stream, block, below)
        value = block._value() if block._field == field else getattr(below, field)
        setattr(state, field, value)
        if block._field != "semantics" and (below is _DEFAULT or below in _followers):
            state.semantics = below.semantics
            _followers.add(state)
        state.plans = plans_of(state.semantics)
    return state


def _without(state: State, owner: Block) -> State:
    """Return a chain of states less the topmost one of `owner`; unchanged if it has none."""
    if state.below is None or state.owner is None:
        return state
    if state.owner is owner:
        return state.below
    below = _without(state.below, owner)
    return state if below is state.below else _stacked(state.owner, below, state, owner._field)


class semantics(Block):  # noqa: N801 - called like a function
    """Put other semantics in force within a ``with`` block.

    Blocks nest, and one object may be entered several times, also at once. Threads and asyncio tasks do not see each
    other's blocks; a task starts with those in which it was made.

    Parameters
    ----------
    name : str or Semantics
        "array-api", "triton", "cutile", "torch", "numpy", or what `Semantics.derive` made.

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
    _field = "semantics"

    def __init__(self, name: str | Semantics, /) -> None:
        self._semantics = as_semantics(name)

    def _value(self) -> Semantics:
        return self._semantics


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
    with _following:
        _put_in_force(rules)


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
        and only where their kind is above that of the arrays. Under semantics "torch" 0-d arrays and NumPy scalars
        count for less than arrays with dimensions, and dtypes stand for the latter.

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
    operands = [operand_of(operand, "result_type") for operand in arrays_and_dtypes]
    return STATE.get().semantics.result_type(operands, "result_type")


def operand_of(operand: object, function: str) -> Operand:
    """Return what decides of an operand: a number's class, a dtype, or that it is one of a 0-d array."""
    scalar = classify(operand)
    if scalar is not None:
        return scalar
    dtype = dtype_of(operand, function)
    is_array = not isinstance(operand, np.dtype | str | type)
    return zero_dim(dtype) if is_array and getattr(operand, "shape", None) == () else dtype


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
