"""`OneLaunch`: a function of several operations that is one launch on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilearray.engine.signature import ArrayBase
from tilearray.errors import TileArrayError
from tilearray.ops.hooks import HOOKS

_NUMBERS = frozenset((int, float, complex))


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
        if _are_on_gpu(operands):
            if self._fused is None:
                self._fused = HOOKS.fuse(self._function)
            try:
                return self._fused(*operands)
            except TileArrayError:  # the operation that refuses the operands says so
                pass
        return self._function(*operands)


def _are_on_gpu(operands: tuple[Any, ...]) -> bool:
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
