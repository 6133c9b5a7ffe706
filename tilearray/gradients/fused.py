"""The gradient of a fused function: one more fused function, which computes the intermediates again.

A call of a fused function with followed arrays is one step. Forward, the function runs as always, and stores nothing
more, unless that saves bytes or `keep` asks for it: see `tilearray.gradients.kept`. Backward, a fused function of the
arguments, what was kept and the cotangents runs the function again on traced arrays, follows it, and runs its steps
backward, all in the trace: what comes out are kernels without intermediates in memory, and reductions where an operand
was broadcast. A value that was kept takes the place of the one that is computed again, and what is not read any more
is not computed. If a derivative does not fuse, as that of `prod`, which has scans, the same steps run one by one. So do
those of a function that writes to its arguments: what it writes is no result of the step.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.arrays.asarray import asarray
from tilearray.arrays.frameworks import is_foreign
from tilearray.arrays.fusion.containers import leaves, mapped
from tilearray.arrays.fusion.fuse import Fused, Versions, key_of_call, stored
from tilearray.arrays.fusion.tracing import buffer_of, current_trace, open_trace
from tilearray.arrays.fusion.values import Use
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.signature import ArrayBase
from tilearray.errors import FusionError, GradientError
from tilearray.gradients.followed import FollowingDevice, followed, is_followed, lowered, memory_of, view_of
from tilearray.gradients.kept import Seen, choice, value_of
from tilearray.gradients.runs import Run, followed_run, without_gaps
from tilearray.gradients.steps import FLOATS, Step, current
from tilearray.ops.execute import copy_of


def is_active(leaf: Any, device: FollowingDevice) -> bool:
    """Whether an argument of the differentiated function reaches a value."""
    return is_followed(leaf, device) and memory_of(leaf).active and _has_gradient(leaf)


def _has_gradient(leaf: Any) -> bool:
    return isinstance(leaf, ArrayBase) and dtypes.info(leaf.dtype).kind in FLOATS


def follow(device: FollowingDevice, function: Fused, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a fused function on followed arrays, as one step; within another trace, as a part of the function there."""
    level = current(device.level)
    args, kwargs = mapped((args, kwargs), lambda leaf: _as_ours(leaf, device))
    if open_trace() is not None or _updates(function, args, kwargs):
        return function.inlined(args, kwargs)
    if "out" in kwargs and not function.has_out:
        targets = kwargs.pop("out")
        return stored(follow(device, function, args, kwargs), targets)
    given = list(leaves((args, kwargs)))
    places = tuple([place for place, leaf in enumerate(given) if is_active(leaf, device)])
    real_args, real_kwargs = mapped((args, kwargs), lambda leaf: lowered(leaf, device))
    if not places:
        return function(*real_args, **real_kwargs)
    backward = _backward_of(function, (args, kwargs), places)
    forward = backward.forward(real_args, real_kwargs)
    outputs = [_apart(leaf) for leaf in leaves(forward.results)]
    differentiable = [place for place, leaf in enumerate(outputs) if _has_gradient(leaf)]
    if not differentiable:
        return forward.results
    for leaf in given:
        if is_followed(leaf, device):
            memory_of(leaf).kept = True
    made = {place: followed(outputs[place], level.level, active=True) for place in differentiable}
    for place in made:
        memory_of(made[place]).kept = any(outputs[place] is each for each in forward.kept)

    def pull(cotangents: Sequence[Any], wanted: Sequence[bool]) -> Sequence[Any]:
        del wanted
        return backward(forward, without_gaps(cotangents, writes))

    reads = tuple([view_of(given[place]) for place in places])
    writes = tuple([view_of(made[place]) for place in differentiable])
    level.steps.append(Step(reads, writes, pull))
    numbered = iter(range(len(outputs)))

    def result(leaf: Any) -> Any:
        return made.get(next(numbered), leaf)

    return mapped(forward.results, result)


def _apart(leaf: Any) -> Any:
    """A result, copied if two of its elements share memory: a step's cotangent has memory for each element."""
    overlaps = isinstance(leaf, ArrayBase) and leaf._signature.layout.overlaps_itself
    return copy_of(leaf) if overlaps else leaf


def _updates(function: Fused, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a fused function writes to its arguments."""
    return function.updates(*mapped((args, kwargs), _in_memory))


def _in_memory(leaf: Any) -> Any:
    """The array in memory below all levels."""
    while is_followed(leaf):
        leaf = lowered(leaf)
    return leaf


def _as_ours(leaf: Any, device: FollowingDevice) -> Any:
    """An array of another library or a NumPy scalar as an Array: without it, the results would be of that library."""
    if isinstance(leaf, np.generic):
        return asarray(leaf, device=device.functions.place)
    return asarray(leaf) if is_foreign(leaf) else leaf


class _Forward(NamedTuple):
    """What a call returned, and what its gradient reads.

    Attributes
    ----------
    results : any
    active, others : list
        The arguments that have gradients, and the others.
    choice : tuple of int
        The numbers of the operations whose values are kept.
    kept : list of Array
        Their values.
    """

    results: Any
    active: list[Any]
    others: list[Any]
    choice: tuple[int, ...]
    kept: list[Any]


class _Choice(NamedTuple):
    """The operations whose values are kept, each with the place of the result that has its value, or None."""

    operations: tuple[int, ...]
    results: tuple[int | None, ...]


_NOTHING = _Choice((), ())


class _Backward:
    """The fused gradient of a fused function, for arguments of one structure."""

    def __init__(self, function: Fused, like: Any, places: tuple[int, ...]) -> None:
        self._function = function
        self._like = mapped(like, lambda leaf: None)
        self._places = places
        self._fuses = True
        self._choices: TwoGenerations[Versions[_Choice]] = TwoGenerations(256)
        self._fused: dict[Any, Fused] = {}

    # ------------------------------------------------------------------ forward

    def forward(self, args: Any, kwargs: Any) -> _Forward:
        """Run the function, and keep what its gradient reads beside the arguments."""
        plain = list(leaves((args, kwargs)))
        active = [plain[place] for place in self._places]
        others = [leaf for place, leaf in enumerate(plain) if place not in self._places]
        operations, places = self._chosen(active, others)
        stored = tuple([number for number, place in zip(operations, places, strict=True) if place is None])
        values: list[Any] = []
        if stored:
            run = self._as_fused(self._with_values, stored, "forward of")
            results, values = run(active, others)
        else:
            results = self._function(*args, **kwargs)
        outputs, waiting = list(leaves(results)), iter(values)
        kept = [next(waiting) if place is None else outputs[place] for place in places]
        return _Forward(results, active, others, operations, kept)

    def _chosen(self, active: list[Any], others: list[Any]) -> _Choice:
        """Return what is kept for these arguments; nothing if the gradient does not fuse."""
        if self._function.keep == () or (self._function.keep == "bytes" and self._function.intermediates == "compute"):
            return _NOTHING
        given = tuple([[_in_memory(leaf) for leaf in part] for part in (active, others)])
        arguments: list[Any] = []
        key = key_of_call(given, {}, arguments)
        versions = self._choices.get(key)
        found = None if versions is None else versions.find(arguments)
        if found is None:
            found, needed = self._choice(*given)
            versions = self._choices.get(key) or self._choices.put(key, Versions())
            versions.add(needed, arguments, found)
        return found

    def _choice(self, active: list[Any], others: list[Any]) -> tuple[_Choice, set[int]]:
        """Trace the gradient, and choose. Also return the positions of the numbers on whose values that depends."""
        found: list[_Choice] = []
        needed = set[int]()
        holds_rows = active[0]._signature.device.backend.holds_rows

        def looked(active: list[Any], others: list[Any]) -> Any:
            nonlocal needed
            trace = current_trace()
            needed = trace.needed
            seen: list[Seen] = []

            def see(name: str, x: Any) -> Any:
                seen.append(Seen(name, value_of(trace, x)))
                return x

            run = self._followed(active, others, see)
            outputs = list(leaves(run.results))
            values = [value_of(trace, leaf) if isinstance(leaf, ArrayBase) else None for leaf in outputs]
            cotangents = [trace.source(leaf) if _has_gradient(leaf) else None for leaf in outputs]
            gradients = run.pulled(cotangents)
            chosen = choice(
                [read.value for read in (trace.read(g, "vjp") for g in gradients) if isinstance(read, Use)],
                {buffer_of(each).place for each in cotangents if each is not None},
                seen,
                values,
                self._function.keep,
                holds_rows,
            )
            places = [values.index(seen[number].value) if seen[number].value in values else None for number in chosen]
            found.append(_Choice(chosen, tuple(places)))
            self._check_names(seen)
            return gradients

        try:
            Fused(looked, self._function.intermediates).traced_results(active, others)
        except _NameError:
            raise
        except (FusionError, GradientError):
            return _NOTHING, needed
        return found[0], needed

    def _check_names(self, seen: Sequence[Seen]) -> None:
        """Raise an error if `keep` names an operation that the function does not have."""
        keep, names = self._function.keep, dict.fromkeys(name for name, _ in seen)
        for name in keep if isinstance(keep, tuple) else ():
            if name not in names:
                raise _NameError(
                    f"{self._function.__name__}: expected keep as names of operations on differentiated values, got "
                    f"{name!r}; write one of {', '.join(map(repr, names))}"
                )

    # ------------------------------------------------------------------ backward

    def __call__(self, forward: _Forward, cotangents: list[Any]) -> list[Any]:
        given = (forward.active, forward.others, forward.kept, cotangents)
        if self._fuses:
            try:
                return self._as_fused(self._gradients, forward.choice, "gradient of")(*given)
            except FusionError:
                self._fuses = False
        return self._gradients(forward.choice, *given)

    # ------------------------------------------------------------------ functions that are fused

    def _as_fused(self, function: Callable[..., Any], choice: tuple[int, ...], what: str) -> Fused:
        """Return a method of a choice as a fused function, always the same one."""
        found = self._fused.get((what, choice))
        if found is None:
            made = functools.partial(function, choice)
            found = self._fused[what, choice] = Fused(
                made, self._function.intermediates, contract=self._function.contract
            )
            found.__name__ = f"{what} {self._function.__name__}"
        return found

    def _with_values(self, choice: tuple[int, ...], active: list[Any], others: list[Any]) -> tuple[Any, list[Any]]:
        """Return the results of the function, and the values of some operations."""
        numbers, found = itertools.count(), dict[int, Any]()

        def keep(name: str, x: Any) -> Any:
            del name
            number = next(numbers)
            if number in choice:
                found[number] = copy_of(x)  # the function may write to it later
            return x

        results = self._followed(active, others, keep).results
        return results, [found[number] for number in choice]

    def _gradients(
        self, choice: tuple[int, ...], active: list[Any], others: list[Any], kept: list[Any], cotangents: list[Any]
    ) -> list[Any]:
        """Return the gradients, given the values of some operations."""
        numbers, given = itertools.count(), dict(zip(choice, kept, strict=True))

        def put(name: str, x: Any) -> Any:
            del name
            number = next(numbers)
            return copy_of(given[number]) if number in given else x

        run = self._followed(active, others, put)
        waiting = iter(cotangents)
        return run.pulled([next(waiting) if _has_gradient(leaf) else None for leaf in leaves(run.results)])

    def _followed(self, active: Sequence[Any], others: Sequence[Any], through: Callable[[str, Any], Any]) -> Run:
        """Run the function on followed arrays."""

        def run(*arrays: Any) -> Any:
            first, second = iter(arrays), iter(others)
            numbered = iter(range(len(arrays) + len(others)))
            args, kwargs = mapped(self._like, lambda _: next(first if next(numbered) in self._places else second))
            return self._function.inlined(args, kwargs)

        return followed_run(run, active, {}, None, through)


class _NameError(GradientError):
    """A name in `keep` that no operation has."""


def _backward_of(function: Fused, given: Any, places: tuple[int, ...]) -> _Backward:
    key = (_shape_of(given), places)
    found = function.gradients.get(key)
    if found is None:
        found = function.gradients[key] = _Backward(function, given, places)
    return found


def _shape_of(value: Any) -> str:
    return repr(mapped(value, lambda leaf: 0))
