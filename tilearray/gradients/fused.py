"""The gradient of a fused function: one more fused function, which computes the intermediates again.

A call of a fused function with followed arrays is one step. Forward, the function runs as always, and stores nothing
more. Backward, a fused function of the arguments and the cotangents runs the function again on traced arrays, follows
it, and runs its steps backward, all in the trace: what comes out are kernels without intermediates in memory, and
reductions where an operand was broadcast. If a derivative needs memory of its own, as that of a slice does, the same
steps run one by one. So do those of a function that writes to its arguments: what it writes is no result of the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.asarray import asarray
from tilearray.arrays.frameworks import is_foreign
from tilearray.arrays.fusion.containers import leaves, mapped
from tilearray.arrays.fusion.fuse import Fused, stored
from tilearray.arrays.fusion.tracing import open_trace
from tilearray.engine.signature import ArrayBase
from tilearray.errors import FusionError
from tilearray.gradients.followed import FollowingDevice, followed, is_followed, lowered, memory_of, view_of
from tilearray.gradients.runs import followed_run, without_gaps
from tilearray.gradients.steps import FLOATS, Step, current


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
    results = function(*real_args, **real_kwargs)
    outputs = list(leaves(results))
    differentiable = tuple([place for place, leaf in enumerate(outputs) if _has_gradient(leaf)])
    if not places or not differentiable:
        return results
    for leaf in given:
        if is_followed(leaf, device):
            memory_of(leaf).kept = True
    made = {place: followed(outputs[place], level.level, active=True) for place in differentiable}
    backward = _backward_of(function, (args, kwargs), places, differentiable)
    plain = list(leaves((real_args, real_kwargs)))

    def pull(cotangents: Sequence[Any], wanted: Sequence[bool]) -> Sequence[Any]:
        del wanted
        active = [plain[place] for place in places]
        others = [leaf for place, leaf in enumerate(plain) if place not in places]
        return backward(active, others, without_gaps(cotangents, writes))

    reads = tuple([view_of(given[place]) for place in places])
    writes = tuple([view_of(made[place]) for place in differentiable])
    level.steps.append(Step(reads, writes, pull))
    numbered = iter(range(len(outputs)))

    def result(leaf: Any) -> Any:
        return made.get(next(numbered), leaf)

    return mapped(results, result)


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


class _Backward:
    """The fused gradient of a fused function, for arguments of one structure."""

    def __init__(self, function: Fused, like: Any, places: tuple[int, ...], outputs: tuple[int, ...]) -> None:
        self._function = function
        self._like = mapped(like, lambda leaf: None)
        self._places = places
        self._outputs = outputs
        self._fuses = True
        self.__name__ = f"gradient of {function.__name__}"
        self._fused = Fused(self._gradients, function.intermediates, contract=function.contract)
        self._fused.__name__ = self.__name__

    def __call__(self, active: list[Any], others: list[Any], cotangents: list[Any]) -> list[Any]:
        if self._fuses:
            try:
                return self._fused(active, others, cotangents)
            except FusionError:
                self._fuses = False
        return self._gradients(active, others, cotangents)

    def _gradients(self, active: list[Any], others: list[Any], cotangents: list[Any]) -> list[Any]:
        run = followed_run(lambda *arrays: self._run(arrays, others), active, {}, None)
        return run.pulled(cotangents)

    def _run(self, active: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        """Run the function, and return its results that have gradients."""
        first, second = iter(active), iter(others)
        numbered = iter(range(len(active) + len(others)))
        args, kwargs = mapped(self._like, lambda _: next(first if next(numbered) in self._places else second))
        results = list(leaves(self._function.inlined(args, kwargs)))
        return [results[place] for place in self._outputs]


def _backward_of(function: Fused, given: Any, places: tuple[int, ...], outputs: tuple[int, ...]) -> _Backward:
    key = (_shape_of(given), places, outputs)
    found = function.gradients.get(key)
    if found is None:
        found = function.gradients[key] = _Backward(function, given, places, outputs)
    return found


def _shape_of(value: Any) -> str:
    return repr(mapped(value, lambda leaf: 0))
