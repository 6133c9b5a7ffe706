"""The active semantics and the active stream of the current thread or task, in one context variable.

An operation reads `STATE` once. The state holds the semantics, the stream and the plans of the semantics. A ``with``
block puts a new `State` on top of the current one. `STATE` is a `contextvars.ContextVar`: a thread starts with the
default state, an asyncio task starts with the state of the code that made it, and neither sees the blocks of another.

The states form a chain. Each state is a copy of the state below with one field replaced by its block. At its end, a
block removes *its own* state from the chain of the current context, at any position, and the states above it are made
again. A token of the context variable could not do this, because it restores an earlier chain: generators interleave
blocks, and an outer block may end before the inner one.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

import numpy as np

from tilearray.dtypes import DTypeLike, HasDType, as_dtype, dtype_of
from tilearray.engine.caches import PLANS
from tilearray.engine.locks import Lock
from tilearray.errors import OperandError, PromotionError, SemanticsError
from tilearray.promotion.operands import Operand, zero_dim
from tilearray.promotion.scalars import classify
from tilearray.promotion.semantics import Semantics, SemanticsName
from tilearray.promotion.storing import Casting, allows_cast
from tilearray.promotion.systems import as_semantics

ENVIRONMENT_VARIABLE: Final = "TILEARRAY_SEMANTICS"
_WRITTEN: Final = os.environ.get(ENVIRONMENT_VARIABLE) or "array-api"


_followers: weakref.WeakSet[State] = weakref.WeakSet()
"""The states with the semantics of the default state, because no block below them sets others."""
_following = Lock()


def plans_of(semantics: Semantics) -> dict[Any, Any]:
    """Return the plans of a semantics: one dictionary for all of its states, with the lifetime of the semantics."""
    plans = semantics.plans
    if plans is None:
        with _following:
            if semantics.plans is None:
                plans_made: dict[Any, Any] = {}
                object.__setattr__(semantics, "plans", plans_made)
                weakref.finalize(semantics, PLANS.forget, plans_made).atexit = False
            plans = semantics.plans
    assert plans is not None
    return plans


class Recording(Protocol):
    """Records operations instead of running them; `tilearray.arrays.fusion.lazy` makes one for each block."""

    def call(self, operation: Any, semantics: Semantics, keys: Any, operands: Any, out: Any, /) -> Any:
        """Record a call and return its result, or return NotImplemented for a call that must run now."""
        ...

    def end_for(self, x: Any, /) -> None:
        """End the recording if it reads the memory of an array, which may change from now on."""
        ...

    def end(self) -> None:
        """Run what is recorded."""
        ...


RECORDINGS: Final[set[int]] = set()
"""The recordings of all threads that have calls to run, by id. While there is none, code may use memory unasked."""

NO_PLANS: Final[Any] = MappingProxyType[Any, Any]({})
"""The plans of a state with a recording. No call finds a plan, so each one reaches `tilearray.engine.execute.run`."""


class State:
    """The settings that an operation reads.

    Attributes
    ----------
    semantics : Semantics
        The active rules.
    plans : dict
        The plans of these rules. `set_semantics` may run in another thread between two reads. Therefore code that
        makes a plan reads `semantics` once, and keeps the plan in ``plans_of(semantics)``.
    stream : int
        The handle of the stream for launches and allocations on GPUs; 0 is the default stream.
    recording : Recording or None
        Takes the calls of a ``lazy`` block. `plans` is empty then.
    changes : int
        Of the class: how often `set_semantics` has begun or ended. A call that is remembered has this among its words,
        from before it reads the semantics. So no later call finds what it found while they changed.
    """

    changes: ClassVar[int] = 0

    __slots__ = ("__weakref__", "below", "owner", "plans", "recording", "semantics", "stream")

    def __init__(
        self,
        rules: Semantics,
        stream: Any = 0,
        owner: Block | None = None,
        below: State | None = None,
        recording: Recording | None = None,
    ) -> None:
        self.stream = stream
        self.recording = recording
        self.use(rules)
        self.owner = owner
        self.below = below

    def use(self, rules: Semantics) -> None:
        """Put semantics in force."""
        self.semantics = rules
        self.plans = plans_of(rules) if self.recording is None else NO_PLANS


class _Undecided(State):
    """The default state until its first use, which reads and checks the semantics of the environment.

    Then it becomes a `State`: a class with ``__getattr__`` would make every read of an attribute slower.
    """

    __slots__ = ()

    def __init__(self) -> None:
        self.stream = 0
        self.owner = self.below = self.recording = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name not in ("semantics", "plans"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            _put_in_force(as_semantics(_WRITTEN, ENVIRONMENT_VARIABLE))
            return getattr(self, name)


_DEFAULT: Final[State] = _Undecided()
STATE: Final[ContextVar[State]] = ContextVar("tilearray", default=_DEFAULT)


def _put_in_force(rules: Semantics) -> None:
    for state in (_DEFAULT, *_followers):
        state.use(rules)
    _DEFAULT.__class__ = State  # pyright: ignore[reportAttributeAccessIssue]


def _renew_followers() -> None:
    """Make a new lock and a new set after a fork, and complete an interrupted `set_semantics`.

    A thread that no longer exists may hold the old lock, or may have been iterating over the old set. During an
    iteration a weak set delays its removals, and after the fork the old set would delay them forever.
    """
    global _followers, _following
    _following = Lock()
    _followers = _followers.copy()
    try:
        rules = _DEFAULT.semantics
    except SemanticsError:  # those of the environment, as every use will say
        return
    _put_in_force(rules)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_renew_followers)


class _Exit:
    """The method ``__exit__`` of a block. A ``with`` statement looks it up before it enters the block."""

    def __get__(self, block: Block | None, owner: type[Block]) -> Callable[..., None]:
        return _exit if block is None else _Leaving(_left, block, STATE.get())


def _exit(
    block: Block, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
) -> None:
    """Leave a block. `contextlib.ExitStack` finds this function in the class."""
    _left(block, None, kind, error, at)


class Block:
    """A ``with`` block that sets one field of the state.

    Blocks nest. The same object may be entered again, also while it is active. Threads and asyncio tasks do not see
    each other's blocks. A task starts inside the blocks of the code that made it.
    """

    __slots__ = ()
    _field: ClassVar[str]

    def _value(self) -> Any:
        """Return the value that the block sets."""
        raise NotImplementedError

    def _ended(self) -> None:
        """Do what is left to do after the end of the block."""

    def __enter__(self) -> Any:
        below, value = STATE.get(), self._value()
        state = _stacked(self, below, below, self._field)
        try:
            STATE.set(state)
        except BaseException:  # an interrupt: Python does not call __exit__ now
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
    """Leave a block. Only `_Leaving` uses `before`."""
    state = None
    try:
        state = STATE.get()
        STATE.set(_without(state, block))
    except BaseException:  # an interrupt: there is no second call
        STATE.set(_without(state or STATE.get(), block))
        raise
    block._ended()


class _Leaving(partial[None]):
    """The function that a ``with`` statement holds during the block and calls at its end.

    Python checks for signals at the start of a function, before its first bytecode. Therefore an interrupt during a
    long operation at the end of a block may end `_left` before it does anything. The statement then drops this object,
    no traceback holds it, and its finalizer leaves the block.
    """

    def __del__(self) -> None:
        block, before = self.args
        state = STATE.get()
        if state is not before and state.owner is block and state.below is before:
            STATE.set(before)


def _stacked(block: Block, below: State, like: State, field: str) -> State:
    """Return the state of a block above `below`: a copy of `like` with one field replaced.

    The new value of `field` is the value of the block if it sets this field, else the value of `below`.
    """
    with _following:  # the default must not change before the state is a follower
        state = State(like.semantics, like.stream, block, below, like.recording)
        value = block._value() if block._field == field else getattr(below, field)
        setattr(state, field, value)
        if block._field != "semantics" and (below is _DEFAULT or below in _followers):
            state.semantics = below.semantics
            _followers.add(state)
        state.use(state.semantics)
    return state


def _without(state: State, owner: Block) -> State:
    """Return a chain of states without the topmost state of `owner`, or the same chain if `owner` has no state."""
    above: list[State] = []
    found = state
    while found.below is not None and found.owner is not None and found.owner is not owner:
        above.append(found)
        found = found.below
    if found.below is None or found.owner is None:
        return state
    found = found.below
    for again in reversed(above):
        assert again.owner is not None
        found = _stacked(again.owner, found, again, owner._field)
    return found


class semantics(Block):  # noqa: N801 - called like a function
    """Activate other semantics within a ``with`` block.

    Blocks nest. The same object may be entered again, also while it is active. Threads and asyncio tasks do not see
    each other's blocks. A task starts inside the blocks of the code that made it.

    Parameters
    ----------
    name : str or Semantics
        "array-api", "triton", "cutile", "torch", "numpy", or a result of `Semantics.derive`. Defaults may stand behind
        a name: "array-api,float=float64".
    int, float, complex : dtype, optional
        The default dtype of a kind: int32 or int64; float16, bfloat16, float32 or float64; complex64 or complex128.
        It is the dtype of new arrays and of Python numbers, and the default float also the dtype of integer division,
        of functions of integers and of Python floats beside integer arrays. The default complex dtype follows the
        default float unless it is given.

    Raises
    ------
    SemanticsError
        If the semantics do not exist, or a kind cannot have the dtype as its default. Semantics "numpy" have fixed
        defaults.

    Examples
    --------
    >>> import tilearray as ta
    >>> with ta.semantics("triton"):
    ...     ta.promote_types("int8", "uint8")
    dtype('uint8')
    >>> ta.promote_types("int8", "uint8")
    dtype('int16')
    >>> with ta.semantics("array-api", float="float64"):
    ...     ta.zeros(3).dtype, (ta.asarray([1]) / 2).dtype, (ta.asarray([1]) + 0.5).dtype, ta.asarray(1j).dtype
    (dtype('float64'), dtype('float64'), dtype('float64'), dtype('complex128'))
    """

    __slots__ = ("_semantics",)
    _field = "semantics"

    def __init__(
        self,
        name: SemanticsName | Semantics,
        /,
        *,
        int: DTypeLike | None = None,
        float: DTypeLike | None = None,
        complex: DTypeLike | None = None,
    ) -> None:
        self._semantics = as_semantics(name, int=int, float=float, complex=complex)

    def _value(self) -> Semantics:
        return self._semantics


class unrecorded(Block):  # noqa: N801 - called like a function
    """Run operations at once within a ``with`` block, also in a `lazy` block, whose recording ends first.

    So memory may be given to a library whose calls no recording sees.
    """

    __slots__ = ()
    _field = "recording"

    def _value(self) -> None:
        recording = STATE.get().recording
        if recording is not None:
            recording.end()


def decided(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a call whose dtypes are decided: run at once, and with the semantics "array-api"."""
    state = STATE.get()
    if state.recording is None and state.semantics is as_semantics("array-api"):
        return function(*arguments)
    with unrecorded(), semantics("array-api"):
        return function(*arguments)


def get_semantics() -> Semantics:
    """Return the active semantics.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.get_semantics().name
    'array-api'
    """
    return STATE.get().semantics


def set_semantics(
    name: SemanticsName | Semantics,
    /,
    *,
    int: DTypeLike | None = None,
    float: DTypeLike | None = None,
    complex: DTypeLike | None = None,
) -> None:
    """Set the semantics of the whole process: of all threads, outside of ``with ta.semantics(...)`` blocks.

    The environment variable ``TILEARRAY_SEMANTICS`` does the same at import, for example with the value
    ``array-api,float=float64``.

    Parameters
    ----------
    name : str or Semantics
        As in `semantics`.
    int, float, complex : dtype, optional
        The default dtype of a kind, as in `semantics`.

    Raises
    ------
    SemanticsError
        If the semantics do not exist, or a kind cannot have the dtype as its default. Nothing changes then.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.set_semantics("array-api")
    >>> ta.get_semantics()
    <Semantics 'array-api', defaults int64, float32, complex64>
    """
    rules = as_semantics(name, "set_semantics", int=int, float=float, complex=complex)
    with _following:
        State.changes += 1
        _put_in_force(rules)
        State.changes += 1


def promote_types(a: DTypeLike, b: DTypeLike, /) -> np.dtype:
    """Return the common dtype of two dtypes under the active semantics.

    Parameters
    ----------
    a, b : dtype
        Dtypes, or their names.

    Raises
    ------
    PromotionError
        If the dtypes have no common dtype. The message says which cast to write.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.promote_types(ta.float16, ta.bfloat16), ta.promote_types("uint8", "int8")
    (dtype('float32'), dtype('int16'))
    """
    dtypes = (as_dtype(a, "promote_types"), as_dtype(b, "promote_types"))
    return STATE.get().semantics.promote(dtypes, "promote_types")


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """Return the result dtype of an operation under the active semantics. The order of the operands does not matter.

    Parameters
    ----------
    *arrays_and_dtypes : array, dtype or number
        Arrays of any library (also 0-d arrays), NumPy scalars and dtypes count by their dtype. Python numbers count by
        their value, and only if their kind is higher than the kind of the arrays. Under semantics "torch", arrays with
        dimensions have priority over 0-d arrays and NumPy scalars, and a dtype counts as an array with dimensions.

    Raises
    ------
    PromotionError
        If the operands have no common dtype. The message says which cast to write.
    ScalarOverflowError
        If an integer that decides the dtype does not fit 64 bits.

    Examples
    --------
    >>> import numpy as np
    >>> import tilearray as ta
    >>> ta.result_type(ta.float16, 2.5), ta.result_type(ta.int8, 2.5), ta.result_type(ta.int8, np.float64(2.5))
    (dtype('float16'), dtype('float32'), dtype('float64'))
    """
    if not arrays_and_dtypes:
        raise OperandError("result_type: expected at least one array, dtype or number, got none; write result_type(x)")
    operands = [operand_of(operand, "result_type") for operand in arrays_and_dtypes]
    return STATE.get().semantics.result_type(operands, "result_type")


def operand_of(operand: object, function: str) -> Operand:
    """Return the operand for promotion: the class of a number, a dtype, or the dtype of a 0-d array."""
    scalar = classify(operand)
    if scalar is not None:
        return scalar
    dtype = dtype_of(operand, function)
    is_array = not isinstance(operand, np.dtype | str | type)
    return zero_dim(dtype) if is_array and getattr(operand, "shape", None) == () else dtype


def can_cast(from_: DTypeLike | HasDType, /, to: DTypeLike, casting: Casting = "safe") -> bool:
    """Return whether one dtype may become another: by the promotion of the active semantics, or by a rule of NumPy.

    Parameters
    ----------
    from_ : dtype or array
        The source.
    to : dtype
        The target.
    casting : {"safe", "no", "equiv", "same_kind", "unsafe"}
        "safe" is promotion: `to` is the common dtype of both. "no" and "equiv" allow equal dtypes only, "same_kind"
        also all of the same kind or a higher one, "unsafe" every cast of numbers.

    Raises
    ------
    OperandError
        If there is no such rule.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.can_cast(ta.int8, ta.float16), ta.can_cast(ta.float32, ta.float16)
    (True, False)
    >>> ta.can_cast("float32", "float16", casting="same_kind")
    True
    """
    source, target = dtype_of(from_, "can_cast"), as_dtype(to, "can_cast")
    if casting != "safe":
        return allows_cast(casting, source, target, "can_cast")
    try:
        return STATE.get().semantics.promote((source, target), "can_cast") == target
    except PromotionError:
        return False
