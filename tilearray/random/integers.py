"""The bounds of integers: checked, and as the number of integers in a range and its first one, modulo 2**64."""

from __future__ import annotations

from typing import Any, NamedTuple

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.errors import DTypeError, ParameterError, shown
from tilearray.functions.reductions import all as all_true
from tilearray.geometry.shapes import Shape, as_int
from tilearray.random.parameters import dense, parameters_of
from tilearray.random.targets import Target

NARROW = 2**32
"""The largest range that words of 64 bits serve."""


class Bounds(NamedTuple):
    """The bounds of ranges as a caller gave them, numbers or Arrays; the other fields are those of `Parameters`."""

    low: Any
    high: Any
    endpoint: bool
    arrays: bool
    shape: Shape
    device: Any

    def ranges(self, target: Target) -> tuple[Any, Any, bool]:
        """Return the first integer, how many there are, and whether words of 128 bits are needed.

        Raises
        ------
        ParameterError
            If a range is empty, or the dtype does not hold it.
        """
        if self.arrays:
            return self._arrays(target)
        least, greatest = _limits(target)
        low, high = as_int(self.low, "integers", "low"), as_int(self.high, "integers", "high") - (not self.endpoint)
        if low > high:
            raise _empty(low, self.high, self.endpoint)
        if low < least or high > greatest:
            raise _beyond(target)
        count = high - low + 1
        return low % 2**64, count % 2**64, count > NARROW

    def _arrays(self, target: Target) -> tuple[Array, Array, bool]:
        low, high = self.low, self.high
        for bound in (low, high):
            if isinstance(bound, Array):
                _check_integers(bound)
            else:
                as_int(bound, "integers", "low and high")
        least, greatest = _limits(target)
        if not _holds(low <= high if self.endpoint else low < high):
            raise _empty(low, high, self.endpoint)
        inside = high <= greatest if self.endpoint or not isinstance(high, int) else high - 1 <= greatest
        if not self.endpoint and isinstance(high, Array) and greatest < 2**63:
            inside = high <= greatest + 1
        if not (_holds(low >= least) and _holds(inside)):
            raise _beyond(target)
        first, last = (_words(bound, target) for bound in (low, high))
        count = last - first
        wide = target.dtype.itemsize == 8
        return first, count + 1 if self.endpoint else count, wide


def bounds_of(low: Any, high: Any, endpoint: bool, device: Any, out: Array | None) -> Bounds:
    """Return the bounds of a call of `integers`."""
    given = parameters_of("integers", {"low": low} if high is None else {"low": low, "high": high}, device, out)
    first, last = (0, given.values[0]) if high is None else given.values
    if high is None and not given.arrays:
        as_int(last, "integers", "low")  # which is the name that the caller knows it by
    return Bounds(first, last, bool(endpoint), given.arrays, given.shape, given.device)


def _check_integers(bound: Array) -> None:
    if dtypes.info(bound.dtype).kind not in ("bool", "int", "uint"):
        raise DTypeError(
            f"integers: expected bounds of an integer dtype, got {bound.dtype.name}; write x.astype('int64')"
        )


def _words(bound: Any, target: Target) -> Array:
    value = bound if isinstance(bound, Array) else bound % 2**64
    return dense(value, dtypes.uint64, target.shape, target.device)


def _limits(target: Target) -> tuple[int, int]:
    if target.dtype == dtypes.bool_:
        return 0, 1
    info = dtypes.iinfo(target.dtype)
    return int(info.min), int(info.max)


def _holds(condition: Any) -> bool:
    return bool(all_true(condition)) if isinstance(condition, Array) else bool(condition)


def _empty(low: Any, high: Any, endpoint: bool) -> ParameterError:
    sign = "<=" if endpoint else "<"
    return ParameterError(
        f"integers: expected low {sign} high, got low={shown(low)} and high={shown(high)}; "
        "write integers(low, high), or integers(high) for the range from 0"
    )


def _beyond(target: Target) -> ParameterError:
    least, greatest = _limits(target)
    return ParameterError(
        f"integers: expected a range within [{least}, {greatest}], the numbers of {target.dtype.name}; "
        "write dtype='int64' or another dtype that holds it"
    )
