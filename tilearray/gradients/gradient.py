"""The gradients of some operands of a function, as a function: what operators of other libraries run backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilearray.arrays.frameworks import array_agnostic
from tilearray.arrays.fusion.containers import leaves
from tilearray.arrays.fusion.fuse import Fused
from tilearray.errors import FusionError
from tilearray.gradients import parts as parts  # followed arrays run whole functions by it
from tilearray.gradients.runs import followed_run


class NoMemory:
    """The buffer of an array that is only traced."""

    __slots__ = ()
    pointer = nbytes = 0
    readonly = False
    stream = None


class Gradient:
    """A function of the operands of a function, and of the cotangents of its float results.

    Attributes
    ----------
    wanted : tuple of int
        The operands whose gradients it returns, as a list.
    fuses : bool
        Whether it is a fused function. Gradients that need memory of their own run step by step.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], count: int, wanted: tuple[int, ...], floats: Sequence[bool]
    ) -> None:
        self.__name__ = f"gradient of {name}"
        self._function = function
        self._count = count
        self._floats = floats
        self._fused = Fused(self._computed)
        self._step_by_step = array_agnostic(self._computed)
        self.wanted = wanted
        self.fuses = True

    def __call__(self, *given: Any) -> Any:
        """Return the gradients, given the operands and the cotangents."""
        return self._fused(*given) if self.fuses else self._step_by_step(*given)

    def results_like(self, arrays: Sequence[Any]) -> list[Any]:
        """Return arrays without memory of the shapes, strides and dtypes of the gradients.

        If the function does not fuse, the operands themselves stand for their gradients.
        """
        if self.fuses:
            try:
                return self._fused.traced_results(*arrays)
            except FusionError:
                self.fuses = False
        return [arrays[place] for place in self.wanted]

    def _computed(self, *given: Any) -> list[Any]:
        args, cotangents = given[: self._count], given[self._count :]
        run = followed_run(self._results, args, {}, set(self.wanted))
        return run.pulled(cotangents)

    def _results(self, *args: Any) -> list[Any]:
        found = leaves(self._function(*args))
        return [each for each, is_float in zip(found, self._floats, strict=True) if is_float]
