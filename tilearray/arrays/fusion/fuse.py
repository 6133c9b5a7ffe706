"""`fuse`: a function of arrays as one kernel for each shape of its results.

The first call traces the function (the module `tracing`) and makes a program (the module `program`). Later calls find
the program by the signatures of arrays, the classes of numbers and the values of all other arguments. For
arrays of other shapes the recorded steps are repeated, without the function, unless the function looked at a shape.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, ParamSpec, TypeVar, cast, overload

import numpy as np

from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.arrays.frameworks import called, is_foreign
from tilearray.arrays.fusion.containers import leaves, mapped, members, names, rebuilt
from tilearray.arrays.fusion.numbers import ChangedNumber, TracedNumber, argument
from tilearray.arrays.fusion.sameness import Incomparable, Lasting, content, is_named
from tilearray.arrays.fusion.tracing import Trace, Traced, record, traced, tracing_device, viewed
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE, State
from tilearray.engine.devices import common_device
from tilearray.engine.signature import ArrayBase, Signature
from tilearray.errors import FusionError, OperandError, shown, type_name
from tilearray.ops.execute import copy_of, execute, fill
from tilearray.ops.hooks import HOOKS
from tilearray.ops.moves import assign
from tilearray.ops.signatures import show
from tilearray.promotion.scalars import classify

if TYPE_CHECKING:
    from tilearray.arrays.fusion.program import Program

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")
Ints = tuple[int, ...]
_NUMBERS = frozenset((int, float, complex))


class _Inline(Exception):  # noqa: N818 - a signal
    """An argument belongs to the trace of another function, of which this function becomes a part."""


class _Foreign(Exception):  # noqa: N818 - a signal
    """An argument is an array of another library, or a NumPy scalar."""


class Versions(dict[tuple[str, ...], T]):
    """What was made for arguments of one key, by the values of the numbers on which it depends.

    Attributes
    ----------
    positions : tuple of int
        The positions of these numbers among the arguments.
    """

    positions: tuple[int, ...] = ()

    def find(self, arguments: Sequence[Any]) -> T | None:
        """Return the entry for these arguments."""
        return self.get(tuple([repr(arguments[position]) for position in self.positions]))

    def add(self, positions: set[int], arguments: Sequence[Any], entry: T) -> T:
        """Add an entry that depends on the numbers at these positions."""
        if not positions <= set(self.positions):
            self.clear()
            self.positions = tuple(sorted(positions | set(self.positions)))
        if len(self) >= VERSIONS:
            self.clear()
        self[tuple([repr(arguments[position]) for position in self.positions])] = entry
        return entry


VERSIONS = 64
"""The number of entries for arguments that differ in such numbers only."""


class _Recorded(NamedTuple):
    """A trace and what the function returned."""

    trace: Trace
    results: Any


class CallPlan(NamedTuple):
    """A program, and the arguments that it takes.

    Attributes
    ----------
    program : Program
    positions : tuple of int
        For each source of the trace that is an argument, its position.
    signatures : tuple of Signature
        Those of these arguments.
    written, updated : set of int
        The arguments that are written, and those that the function itself writes.
    gaps : tuple of (int, int, int, int)
        Two arguments of which one is written: they share memory if the distance of their addresses lies between two
        numbers.
    """

    program: Program
    positions: tuple[int, ...]
    signatures: tuple[Signature, ...]
    written: set[int]
    updated: set[int]
    gaps: tuple[tuple[int, int, int, int], ...]

    def run(self, arguments: Sequence[Any]) -> Any:
        """Run the program on the active stream."""
        return self.program.run(STATE.get().stream, arguments, [arguments[position] for position in self.positions])

    def shares_memory(self, arguments: Sequence[Any]) -> bool:
        """Whether an argument shares memory with another one that is written."""
        for first, second, near, far in self.gaps:
            if near < arguments[second]._address - arguments[first]._address < far:
                return True
        return False


class Fused(Lasting):
    """A function that runs as one kernel for each shape of its results. `fuse` makes it.

    Attributes
    ----------
    function : callable
        The function itself.
    intermediates, contract, keep
        The options of `fuse`.
    traces : int
        How often the function was traced.
    has_out : bool
        Whether the function itself has a parameter `out`.
    gradients : dict
        Its gradients by the arguments that have one; `tilearray.gradients.fused` keeps them here.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        intermediates: str = "each",
        *,
        contract: bool = False,
        keep: str | tuple[str, ...] = "bytes",
    ) -> None:
        functools.update_wrapper(self, function)
        self.__name__: str = getattr(function, "__name__", repr(function))
        self.function = function
        self.traces = 0
        self.intermediates = intermediates
        self.contract = contract
        self.keep = keep
        self.gradients: dict[Any, Any] = {}
        self._wide = intermediates == "compute"
        code = getattr(function, "__code__", None)
        self.has_out = code is not None and "out" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self._direct: TwoGenerations[CallPlan] = TwoGenerations(1024)
        """The plans of calls with different arrays and numbers alone: found without a look into containers."""
        self._plans: TwoGenerations[Versions[CallPlan]] = TwoGenerations(1024)
        self._recorded: TwoGenerations[Versions[_Recorded]] = TwoGenerations(256)
        self.together: TwoGenerations[Any] = TwoGenerations(4)  # plans of several calls: see `together`

    def __repr__(self) -> str:
        return f"<fused function {getattr(self, '__qualname__', self.function)}>"

    def __reduce__(self) -> Any:
        """Return the name if the module has the function by it, else the parts, of which `read` makes one function."""
        if is_named(self):
            return str(getattr(self, "__qualname__", self.__name__))
        return read, (self.function, self.intermediates, self.contract, self.keep)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function on arrays of any library."""
        changes, state = State.changes, STATE.get()
        if not kwargs:
            known: list[Any] = [changes, state.semantics.key]
            arrays: list[Array] = []
            for each in args:
                if each.__class__ is Array:
                    known.append(each._signature)
                    arrays.append(each)
                elif each.__class__ in _NUMBERS:
                    known.append(classify(each))
                else:
                    break
            else:
                plan = self._direct.get(tuple(known))
                if plan is not None and not (plan.gaps and plan.shares_memory(args)):
                    try:
                        return plan.program.direct(state.stream, args, arrays)
                    except ChangedNumber:
                        pass  # the plan of its value is found below
        arguments: list[Any] = []
        try:
            key = key_of_call(args, kwargs, arguments)
        except _Inline:
            calls = _calls_of((args, kwargs))
            return self.inlined(args, kwargs) if calls is None else calls.fused(self, args, kwargs)
        except _Foreign:
            for each in args:
                if isinstance(each, ArrayBase) and each._signature.device.functions is not None:
                    return _calls_of(args).fused(self, args, kwargs)
            return called(self._on_scalars, args, kwargs)
        plan = self._found(key, (), args, kwargs, arguments)
        if plan.gaps and plan.shares_memory(arguments):
            return self._run_shared(key, args, kwargs, arguments)
        if not kwargs:
            self._keep_direct(key, plan, args, arguments)
        return self._run(plan, args, kwargs, arguments)

    def _keep_direct(self, key: Any, plan: CallPlan, args: tuple[Any, ...], arguments: list[Any]) -> None:
        """Keep a plan for calls with different arrays and numbers alone, if it does not depend on a number's value."""
        versions, arrays = self._plans.get(key), [place for place, each in enumerate(args) if each.__class__ is Array]
        same = len(args) == len(arguments) and all(one is other for one, other in zip(args, arguments, strict=True))
        if same and versions is not None and not versions.positions and plan.positions == tuple(arrays):
            self._direct.put((*key[0], *key[1]), plan)

    def plan_of(self, *args: Any) -> CallPlan | None:
        """Return the plan of a call with Arrays, numbers and constants; None if it depends on the value of a number.

        The caller finds out whether arguments share memory.
        """
        arguments: list[Any] = []
        key = key_of_call(args, {}, arguments)
        plan = self._found(key, (), args, {}, arguments)
        versions = self._plans.get(key)
        return None if versions is None or versions.positions else plan

    def planned(self, *args: Any) -> Callable[[], Any]:
        """Check a call with Arrays, numbers and constants, and return what runs it."""
        arguments: list[Any] = []
        try:
            key = key_of_call(args, {}, arguments)
        except (_Inline, _Foreign):
            return functools.partial(self, *args)
        plan = self._found(key, (), args, {}, arguments)
        plan.program.check_targets([arguments[position] for position in plan.positions])
        if plan.gaps and plan.shares_memory(arguments):
            self._shared(key, args, {}, arguments)
            return functools.partial(self, *args)
        return functools.partial(self._run, plan, args, {}, arguments)

    def updates(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the function writes to its arguments. They are Arrays, numbers and constants."""
        arguments: list[Any] = []
        key = key_of_call(args, kwargs, arguments)
        return bool(self._found(key, (), args, kwargs, arguments).updated)

    def traced_results(self, *args: Any) -> Any:
        """Return the results of a call as arrays without memory: of their shapes, strides and dtypes."""
        arguments: list[Any] = []
        for each in args:
            _key(each, arguments)
        return self._traced((), args, {}, arguments, set()).results

    @functools.cached_property
    def torch(self) -> Any:
        """The function as an operator of torch, with autograd: see docs/gradients.md."""
        return HOOKS.operator("torch", self)

    @functools.cached_property
    def jax(self) -> Any:
        """The function as a function of JAX, with a derivative: see docs/gradients.md."""
        return HOOKS.operator("jax", self)

    # ------------------------------------------------------------------ arguments

    def inlined(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function as a part of the function that is traced now."""
        out = None if self.has_out else kwargs.pop("out", None)
        result = self.function(*args, **kwargs)
        return result if out is None else stored(result, out)

    def _run_traced(self, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function on arrays of a trace, and store its results in the targets."""
        out = None if self.has_out else kwargs.pop("out", None)
        result = self.function(*args, **kwargs)
        trace.updated = trace.written()
        return result if out is None else stored(result, out)

    def _on_scalars(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function with NumPy scalars as 0-d arrays beside the arrays."""
        if not kwargs and all(each.__class__ is Array or each.__class__ in _NUMBERS for each in args):
            return self(*args)
        device = next((leaf.device for leaf in leaves((args, kwargs)) if isinstance(leaf, ArrayBase)), None)

        def as_array(value: Any) -> Any:
            return asarray(value, device=device) if isinstance(value, np.generic) else value

        args, kwargs = mapped((args, kwargs), as_array)
        return self(*args, **kwargs)

    def _run(
        self, plan: CallPlan, args: tuple[Any, ...], kwargs: dict[str, Any], arguments: list[Any], same: Ints = ()
    ) -> Any:
        """Run a plan, or that of the values of the numbers if one that is computed has another class now."""
        try:
            return plan.run(arguments)
        except ChangedNumber:
            return self._plan_of_numbers(same, args, kwargs, arguments).run(arguments)

    def _run_shared(self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any], arguments: list[Any]) -> Any:
        """Run on arguments that share memory. Copies may have other strides, so they go to a new call."""
        plan, copied, same = self._shared(key, args, kwargs, arguments)
        if copied is None:
            return self._run(plan, args, kwargs, arguments, same)
        waiting = iter(copied)
        args, kwargs = mapped((args, kwargs), lambda leaf: next(waiting) if _is_array_or_number(leaf) else leaf)
        return self(*args, **kwargs)

    def _shared(
        self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any], arguments: list[Any]
    ) -> tuple[CallPlan, list[Any] | None, Ints]:
        """Plan a call whose arguments share memory: identical views are one array of the trace, others are copied.

        It returns the arguments with the copies, or None if there are none.
        """
        same = _identical(arguments)
        plan = self._found((key, same), same, args, kwargs, arguments)
        return plan, _without_overlap(plan, arguments) if plan.shares_memory(arguments) else None, same

    # ------------------------------------------------------------------ plans

    def _found(
        self, key: Any, same: tuple[int, ...], args: tuple[Any, ...], kwargs: dict[str, Any], arguments: list[Any]
    ) -> CallPlan:
        """Return the plan of a call. `same` has the positions of arguments that are one array; () if none are."""
        versions = self._plans.get(key)
        plan = None if versions is None else versions.find(arguments)
        if plan is not None:
            return plan
        recorded = self._recorded_for(key, same, arguments)
        if recorded is None:
            recorded = self._traced(same, args, kwargs, arguments, set())
            if recorded.trace.generic:
                general = _general(key)
                kept = self._recorded.get(general) or self._recorded.put(general, Versions())
                kept.add(recorded.trace.needed, arguments, recorded)
        plans = self._plans.get(key) or self._plans.put(key, Versions())
        return plans.add(recorded.trace.needed, arguments, self._plan(recorded, same, arguments))

    def _recorded_for(self, key: Any, same: tuple[int, ...], arguments: list[Any]) -> _Recorded | None:
        """Return what was recorded for other shapes, on these arguments."""
        versions = self._recorded.get(_general(key))
        known = None if versions is None else versions.find(arguments)
        return known and _repeated(known, [arguments[position] for position in _sources(same, arguments)])

    def _traced(
        self,
        same: tuple[int, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        arguments: list[Any],
        fixed: set[int],
    ) -> _Recorded:
        """Run the function on arrays without memory. The numbers at the positions `fixed` are constants."""
        arrays = [each for each in arguments if isinstance(each, ArrayBase)]
        if not arrays:
            raise OperandError(f"{self.__name__}: expected at least one array, got none; write ta.asarray(x)")
        trace = Trace(tracing_device(common_device(self.__name__, arrays)))
        stands: list[Any] = []
        for position, value in enumerate(arguments):
            first = same[position] if same else position
            if first != position:
                stands.append(stands[first])
            elif isinstance(value, ArrayBase):
                stands.append(trace.source(value))
            elif position in fixed:
                stands.append(value)
            else:
                stands.append(argument(value, position, functools.partial(trace.needed.add, position)))
        waiting = iter(stands)
        args, kwargs = mapped((args, kwargs), lambda leaf: next(waiting) if _is_array_or_number(leaf) else leaf)
        results = traced(trace, lambda: self._run_traced(trace, args, kwargs))
        self.traces += 1
        return _Recorded(trace, mapped(results, functools.partial(_result, self.__name__, trace)))

    def _plan_of_numbers(
        self, same: tuple[int, ...], args: tuple[Any, ...], kwargs: dict[str, Any], arguments: list[Any]
    ) -> CallPlan:
        """Return the plan of one call, in which its numbers are constants."""
        fixed = {place for place, each in enumerate(arguments) if not isinstance(each, ArrayBase)}
        return self._plan(self._traced(same, args, kwargs, arguments, fixed), same, arguments)

    def _plan(self, recorded: _Recorded, same: tuple[int, ...], arguments: list[Any]) -> CallPlan:
        from tilearray.arrays.fusion.program import Program  # here: few programs need it

        positions = _sources(same, arguments)
        signatures = [arguments[position]._signature for position in positions]
        trace, results = recorded
        program = traced(trace, lambda: Program(trace, results, signatures, wide=self._wide, contract=self.contract))
        written, updated = [{positions[place] for place in places} for places in (program.written, trace.updated)]
        gaps = _gaps(written, positions, arguments)
        return CallPlan(program, tuple(positions), tuple(signatures), written, updated, gaps)


_READ: TwoGenerations[Fused] = TwoGenerations(128)
"""The functions that this process has read from pickles, by their contents."""


def read(function: Callable[..., Any], intermediates: str, contract: bool, keep: str | tuple[str, ...]) -> Fused:
    """Return the fused function of a pickle: the same one for each pickle with the same function."""
    try:
        key = content(function), intermediates, contract, keep
        return _READ.get(key) or _READ.put(key, Fused(function, intermediates, contract=contract, keep=keep))
    except (Incomparable, TypeError):  # something without a hash
        return Fused(function, intermediates, contract=contract, keep=keep)


def _result(function: str, trace: Trace, result: Any) -> Any:
    """Return a result as an array of the trace. Raise FusionError if a kernel cannot return it."""
    if not isinstance(result, ArrayBase):
        return result
    if result._signature.device is not trace.device:
        raise FusionError(
            f"{function}: expected results that are computed from the arguments, got another array; write it outside "
            f"of the fused function"
        )
    trace.generic = trace.generic and hasattr(result, "_how")
    return result if isinstance(result, Traced) else Traced._make(result._buffer, result._offset, result._signature)


def key_of_call(args: tuple[Any, ...], kwargs: dict[str, Any], arguments: list[Any]) -> Any:
    """Return the key of a call, and add its arrays and numbers to `arguments`."""
    rules = State.changes, STATE.get().semantics.key
    key = (rules, tuple([_key(each, arguments) for each in args]))
    return (*key, *[(name, _key(each, arguments)) for name, each in kwargs.items()]) if kwargs else key


def _key(value: Any, arguments: list[Any]) -> Any:
    """Return the key of an argument, and add its arrays and numbers to `arguments`."""
    kind = value.__class__
    if kind is Array:
        arguments.append(value)
        return value._signature
    if kind in _NUMBERS:
        arguments.append(value)
        return classify(value)
    parts = members(value)
    if parts is not None:
        return names(value), *[_key(part, arguments) for part in parts]
    if kind is Traced or kind is TracedNumber:
        raise _Inline
    if isinstance(value, ArrayBase):  # a recorded result, whose memory does not exist yet
        if value._signature.device.functions is not None:
            raise _Inline
        arguments.append(value)
        return value._signature
    if isinstance(value, np.generic) or is_foreign(value):
        raise _Foreign
    if value.__hash__ is None:
        raise OperandError(
            f"fuse: expected arrays, numbers, or arguments with a hash, got {type_name(value)}; write its parts as "
            f"arguments"
        )
    return kind, value


def _calls_of(values: Any) -> Any:
    """Return what runs a fused function on a device that records more than operations; None if no array is on one."""
    devices = [leaf._signature.device for leaf in leaves(values) if isinstance(leaf, ArrayBase)]
    return max(devices, key=lambda device: device.depth).functions if devices else None


def _general(key: Any) -> Any:
    """Return a key without the shapes of its arrays."""
    if isinstance(key, Signature):
        return key.traits, key.layout.ndim
    return tuple([_general(each) for each in cast("tuple[Any, ...]", key)]) if isinstance(key, tuple) else key


def _is_array_or_number(value: Any) -> bool:
    return isinstance(value, ArrayBase) or value.__class__ in _NUMBERS


def _sources(same: tuple[int, ...], arguments: Sequence[Any]) -> list[int]:
    """Return the positions of the arrays among the arguments, each array once."""
    return [
        position
        for position, value in enumerate(arguments)
        if isinstance(value, ArrayBase) and (not same or same[position] == position)
    ]


def stored(result: Any, out: Any) -> Any:
    """Write results to the targets that are given, and return the targets and the other results."""
    if out is None or result is out:
        return result
    if isinstance(out, ArrayBase):
        if members(result) is None:
            return execute(assign, (result,), out) if isinstance(result, ArrayBase) else fill(out, result, "fuse")
    elif members(out) is not None and members(result) is not None and names(out) == names(result):
        return rebuilt(result, [stored(*pair) for pair in zip(members(result) or (), members(out) or ())])
    raise OperandError(
        f"fuse: expected out with the structure of the results, {_structure(result)}, got {_structure(out)}; write "
        f"None for a result without a target"
    )


def _structure(value: Any) -> str:
    parts = members(value)
    if parts is None:
        return "an array" if isinstance(value, ArrayBase) else type_name(value)
    return f"{type_name(value)} of {len(parts)}"


# --- arguments that share memory -------------------------------------------------------------------------------------


def _gaps(
    written: set[int], positions: Sequence[int], arguments: Sequence[Any]
) -> tuple[tuple[int, int, int, int], ...]:
    """Return the distances at which an argument shares memory with one that is written."""
    found: list[tuple[int, int, int, int]] = []
    for target in written:
        for other in positions:
            if other == target or (other in written and other < target):
                continue
            mine, theirs = arguments[target]._signature, arguments[other]._signature
            if mine.layout.size and theirs.layout.size:
                near = mine.layout.low * mine.itemsize - (theirs.layout.high + 1) * theirs.itemsize
                far = (mine.layout.high + 1) * mine.itemsize - theirs.layout.low * theirs.itemsize
                found.append((target, other, near, far))
    return tuple(found)


def _identical(arguments: Sequence[Any]) -> tuple[int, ...]:
    """Return for each argument the position of the first one that is the same view."""
    first: dict[Any, int] = {}
    return tuple(
        [
            first.setdefault((each._signature, each._address) if isinstance(each, ArrayBase) else position, position)
            for position, each in enumerate(arguments)
        ]
    )


def _without_overlap(plan: CallPlan, arguments: list[Any]) -> list[Any]:
    """Return arguments of which those are copied that share memory with a target of ``out=`` in part.

    The function reads them before the target is written. If the function itself writes to the memory, the order of its
    writes matters, and no copy helps.
    """
    found = list(arguments)
    for first, second, near, far in plan.gaps:
        if near < arguments[second]._address - arguments[first]._address < far:
            if {first, second} & plan.updated or {first, second} <= plan.written:
                raise FusionError(
                    f"fuse: arguments {first + 1} and {second + 1} share a part of their memory, and the function "
                    f"writes to it; write x.copy() for one of them"
                )
            reader = second if first in plan.written else first
            found[reader] = copy_of(arguments[reader])
    return found


# --- other shapes ----------------------------------------------------------------------------------------------------


def _repeated(known: _Recorded, arrays: Sequence[ArrayBase]) -> _Recorded | None:
    """Return the recorded steps on arrays of other shapes, or None if they fail: the function then says where."""
    trace = Trace(known.trace.device)
    trace.needed, trace.updated = known.trace.needed, known.trace.updated
    given = iter(arrays)
    for _, real in known.trace.sources:
        trace.source(next(given) if real is None else real, outside=real is not None)
    try:
        return _Recorded(trace, traced(trace, lambda: _again(known, trace)))
    except (ValueError, IndexError):
        return None


def _again(known: _Recorded, trace: Trace) -> Any:
    """Repeat the steps of a trace in another one, and return the results."""
    made: list[ArrayBase] = []

    def again(x: Any) -> Any:
        if not isinstance(x, Traced):
            return x
        kind, what, *key = x._how
        if kind == "view":
            source, arguments = key
            return viewed(what, again(source), *arguments)
        place = int(what)
        return trace.sources[place][0] if kind == "source" else made[place]

    for operation, semantics, keys, operands, out in known.trace.steps:
        made.append(record(operation, semantics, keys, [again(operand) for operand in operands], again(out)))
    return mapped(known.results, again)


# --- the decorator ---------------------------------------------------------------------------------------------------


@overload
def fuse(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def fuse(
    *,
    intermediates: Literal["each", "compute"] = "each",
    contract: bool = False,
    keep: Literal["bytes"] | Sequence[str] = "bytes",
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def fuse(
    function: Any = None,
    /,
    *,
    intermediates: Literal["each", "compute"] = "each",
    contract: bool = False,
    keep: Literal["bytes"] | Sequence[str] = "bytes",
) -> Any:
    """Run a function of arrays as one kernel for each shape of its results, and one for each reduction.

    The first call runs the function on arrays without values, and records its operations. Later calls with arrays of
    the same dtypes and ranks, and numbers of the same kind, run the recorded operations as one kernel, which stores no
    intermediate. The results have the same bits as without `fuse`.

    Parameters
    ----------
    function : callable
        It takes and returns arrays, numbers, and tuples, lists and dicts of them. It may use operators, the functions
        of the table of operations, casts, views, and reductions. Arrays of torch, CuPy, JAX and NumPy become Arrays,
        and then the results are arrays of that library. Numbers are never compiled in. All other arguments, and
        everything that the function reads from outside, count as constants; arrays from outside are read at each call.
    intermediates : str
        "each" rounds every intermediate as if it were stored; "compute" keeps those of 8- and 16-bit floats in float32.
    contract : bool
        Whether a GPU may compute a product and a sum in one rounding, as fma. Results may then differ from those of the
        function. The host computes as without it.
    keep : "bytes" or sequence of str
        What a gradient reads again, beside the arguments: "bytes" chooses results, and intermediates that are stored
        for it, where fewer bytes move than if all is computed again. Names of operations, such as ["tanh"], keep their
        values instead, and [] keeps nothing. See docs/gradients.md.

    Returns
    -------
    callable
        The function. It also takes ``out=``, arrays for the results in the structure of the results, or None for one
        that is new. In-place operators of the function write to its arguments.

    Raises
    ------
    FusionError
        At the call, if the function needs the values of an array, or an operation is neither elementwise nor a
        reduction. The message says what to write instead.

    Examples
    --------
    >>> import tilearray as ta
    >>> @ta.fuse
    ... def gelu(x):
    ...     return 0.5 * x * (1 + ta.tanh(0.7978845608 * (x + 0.044715 * x**3)))
    >>> gelu(ta.asarray([-1.0, 0.0, 1.0]))
    Array([-0.158808,  0.      ,  0.841192], dtype=float32, device='cpu')
    """
    if intermediates not in ("each", "compute"):
        raise OperandError(f"fuse: expected intermediates 'each' or 'compute', got {intermediates!r}; write 'each'")
    check_contract("fuse", contract)
    kept = _checked_keep(keep)
    if function is None:
        return functools.partial(Fused, intermediates=intermediates, contract=contract, keep=kept)
    if not callable(function):
        raise OperandError(f"fuse: expected a function, got {type_name(function)}; write @ta.fuse before a function")
    return Fused(function, intermediates, contract=contract, keep=kept)


def _checked_keep(keep: Any) -> str | tuple[str, ...]:
    """Return "bytes", or the names of operations."""
    if isinstance(keep, str) and keep == "bytes":
        return "bytes"
    if not isinstance(keep, list | tuple) or not all(type(name) is str for name in cast("list[Any]", keep)):
        raise OperandError(
            f"fuse: expected keep as 'bytes' or a list of names of operations, got {shown(keep)}; write keep=['tanh']"
        )
    return tuple(cast("list[str]", keep))


def check_contract(function: str, contract: object) -> None:
    """Raise OperandError if `contract` is not a bool."""
    if type(contract) is not bool:
        raise OperandError(f"{function}: expected contract True or False, got {shown(contract)}; write contract=True")


show([fuse])
