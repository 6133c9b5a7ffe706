"""`OneLaunch` and `in_one_launch`: functions of arrays that call several operations, and are one launch on a GPU.

One after the other, such operations write and read memory, and each is a call. The host runs them so. On a GPU `fuse`
traces them once, and what follows on operands of the same layouts is a launch, or as few as `fuse` can make. A trace
takes milliseconds, and the operations some microseconds: so layouts are traced when they come for the second time, and
those of large arrays at once. A program in which each call has another shape traces nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any

from tilearray.engine.backend import Call
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE
from tilearray.engine.execute import is_recorded
from tilearray.engine.signature import ArrayBase
from tilearray.errors import TileArrayError
from tilearray.ops.hooks import HOOKS

_NUMBERS = frozenset((int, float, complex))
LARGE = 2**28
"""The bytes of an array from which a function is traced at once: intermediates would take as much memory."""
_SEEN: TwoGenerations[bool] = TwoGenerations(4096)
"""The functions and layouts that came before."""


class OneLaunch:
    """A function that runs fused on arrays on a GPU, and as it is on all other operands, with the same bits.

    On the host a launch costs nothing, and a call with a new shape takes less time as it is. What differentiates or
    traces the function sees its operations.

    Parameters
    ----------
    function : callable
        It takes arrays and numbers, and returns an array or a tuple of arrays. It calls what fuses in one launch.
    """

    __slots__ = ("_function", "_fused")

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._fused: Callable[..., Any] | None = None

    def __call__(self, *operands: Any) -> Any:
        """Run the function."""
        if are_on_gpu(operands) and is_traced(self, operands):
            if self._fused is None:
                self._fused = HOOKS.fuse(self._function)
            try:
                return self._fused(*operands)
            except TileArrayError:  # the operation that refuses the operands says so
                pass
        return self._function(*operands)


def are_on_gpu(operands: tuple[Any, ...]) -> bool:
    """Return whether operands are arrays on a GPU, which no derivative or trace follows, and Python numbers.

    A fused function of no elements does not look at numbers, so it would take what the operations refuse.
    """
    found = False
    for x in operands:
        kind = x.__class__
        if kind is ArrayBase._public:
            signature = x._signature
            device = signature.device
            if device.functions is not None or device.backend.on_host or not signature.nbytes:
                return False
            found = True
        elif kind not in _NUMBERS:
            return False
    return found


def is_traced(function: Hashable, operands: Sequence[Any]) -> bool:
    """Return whether a function of arrays and numbers is traced: of large ones, or of layouts that came before."""
    layouts = [x._signature if isinstance(x, ArrayBase) else x.__class__ for x in operands]
    key = (function, *layouts)
    if _SEEN.get(key) is not None:
        return True
    _SEEN.put(key, True)
    return any(isinstance(x, ArrayBase) and x._signature.nbytes >= LARGE for x in operands)


def in_one_launch(
    function: Callable[..., Any],
    options: tuple[Hashable, ...],
    operands: Sequence[Any],
    keep: Callable[[Call], None] | None = None,
) -> Any:
    """Return ``function(*operands, *options)``, on a GPU from kernels that store no intermediates.

    Parameters
    ----------
    function : callable
        A function of a module, which calls functions of arrays that `fuse` takes.
    options : tuple
        Constants, each of one class or one meaning for all that are equal to it.
    operands : sequence of Array, number or None
        An array, and others on the same device, or None where one is missing.
    keep : callable, optional
        Receives the call of arrays of these signatures, if there are no numbers, and if later calls may run it.

    Examples
    --------
    >>> import tilearray as ta
    >>> in_one_launch(lambda x, y, axis: ta.sum(x * y, axis), (0,), (ta.asarray([1, 2]), ta.asarray([3, 4])))
    Array(11, dtype=int64, device='cpu')
    """
    given = tuple([operand for operand in operands if operand is not None])
    if not are_on_gpu(given) or STATE.get().recording is not None:
        return function(*operands, *options)
    arrays, missing = _parted(operands)
    if not is_traced((function, options, missing), given):
        return function(*operands, *options)
    fused = _fused(function, options, missing)
    found = fused(*given)
    if keep is not None and len(arrays) == len(given) and not is_recorded(arrays[0]._signature.device):
        plan = fused.plan_of(*arrays)
        if plan is not None:
            keep(_call_of(plan.program.direct))
    return found


def _parted(operands: Sequence[Any]) -> tuple[list[ArrayBase], tuple[bool, ...]]:
    """Return the arrays among operands, and which operands are missing."""
    return [x for x in operands if isinstance(x, ArrayBase)], tuple([x is None for x in operands])


@lru_cache(1024)
def _fused(function: Callable[..., Any], options: tuple[Hashable, ...], missing: tuple[bool, ...]) -> Any:
    """Return the fused function of the operands that are given."""

    def of_given(*given: Any) -> Any:
        operands = iter(given)
        return function(*[None if each else next(operands) for each in missing], *options)

    of_given.__name__ = function.__name__
    return HOOKS.fuse(of_given)


def _call_of(run: Callable[..., Any]) -> Call:
    def call(stream: Any, *arrays: Any) -> Any:
        return run(stream, arrays, arrays)

    return call
