"""What distributions share that are functions of others: their parameters, and draws of the others in their shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.fills import full
from tilearray.errors import ParameterError, shown
from tilearray.functions.manipulation import reshape
from tilearray.ops.elementary import log
from tilearray.random import draws
from tilearray.random.attempts import COUNTS, Attempts, again
from tilearray.random.continuous import Continuous
from tilearray.random.parameters import dense, in_dtype, parameters_of
from tilearray.random.targets import FLOATS, Target, target_of


class Prepared(NamedTuple):
    """The target of a draw, the memory in which it is computed, and the parameters in the dtype of that memory."""

    target: Target
    wide: Target
    values: list[Any]


class Derived(Attempts, Continuous):
    """A generator whose distributions may draw from others first."""

    __slots__ = ()

    def _prepared(
        self,
        function: str,
        parameters: dict[str, Any],
        size: Any,
        dtype: Any,
        out: Any,
        device: Any,
        counts: bool = False,
    ) -> Prepared:
        """Prepare a draw of floats, which are computed in float32 or float64, or of counts, computed in float64."""
        given = parameters_of(function, parameters, device or self._device, out)
        kinds, default = (COUNTS, dtypes.int64) if counts else (FLOATS, None)
        target = target_of(function, size, dtype, given.device, out, kinds, default, given.shape)
        computed = dtypes.float64 if counts else draws.computed_in(target.dtype)
        wide = target._replace(dtype=computed, out=None)
        return Prepared(target, wide, [in_dtype(computed, value) for value in given.values])

    def _normal(self, wide: Target) -> Array:
        return self._floats(wide, draws.normal)

    def _uniform(self, wide: Target) -> Array:
        return self._floats(wide, draws.unit)

    def _exponential(self, wide: Target) -> Array:
        return self._floats(wide, draws.exponential)

    def _gamma_of(self, wide: Target, shape: Any) -> Array:
        """Gamma numbers of scale 1."""
        return self._gamma(wide.function, shape, None, wide.shape, wide.dtype, None, wide.device)

    def _repeated(self, wide: Target, values: list[Any], attempt: Callable[..., Array]) -> Array:
        """Call ``attempt(target, *values)`` for all elements, then for rejected ones, which are negative."""
        line = wide._replace(shape=(wide.size,))
        given = [
            reshape(dense(value, wide.dtype, wide.shape, wide.device), (-1,))
            if isinstance(value, Array)
            else full((), value, wide.dtype, device=wide.device)
            for value in values
        ]
        found = attempt(line, *given)
        again(found, given, lambda _, places, chosen: attempt(line._replace(shape=places.shape), *chosen))
        return reshape(found, wide.shape)

    def _log_gamma_of(self, wide: Target, shape: Any) -> Array:
        """Logarithms of gamma numbers, where those of a small shape would be 0.

        A gamma number of shape a is one of a + 1 times ``u**(1 / a)``, with a uniform u.
        """
        return log(self._gamma_of(wide, shape + 1)) - self._exponential(wide) / shape


def check_above_zero(function: str, **parameters: Any) -> None:
    """Raise ParameterError if a parameter is a number that is not above 0. Arrays are not checked."""
    for name, value in parameters.items():
        if not isinstance(value, Array) and not value > 0:
            raise ParameterError(f"{function}: expected {name} > 0, got {shown(value)}; write a number above 0")


def check_chance(function: str, name: str, value: Any) -> None:
    """Raise ParameterError if a parameter is a number that is not within (0, 1]. Arrays are not checked."""
    if not isinstance(value, Array) and not 0 < value <= 1:
        raise ParameterError(f"{function}: expected 0 < {name} <= 1, got {shown(value)}; write a probability above 0")
