"""Python numbers as operands: their class, which decides dtypes, and their value, which must fit a dtype.

A Python number has no dtype. Beside an array of its kind or a higher kind, it takes the array's dtype. Beside an array
of a lower kind, it needs its own dtype: the first of a ladder whose *range* holds the value: int32 < uint32 < int64 <
uint64, or float32 < float64. So a value can decide the result dtype, but a plan must not depend on values.
`ScalarClass` solves this: it is the rung of the ladder, found once per call, and small enough for a plan's key.

NumPy scalars are not Python numbers: they carry a dtype and promote like 0-d arrays. ``np.float64`` is a subclass of
``float``, and ``np.complex128`` a subclass of ``complex``, so NumPy scalars are tested for first.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tilearray.dtypes import ALL, IInfo, iinfo, info
from tilearray.errors import DTypeError, ScalarOverflowError

Number = bool | int | float | complex


class ScalarClass(enum.Enum):
    """The rung of a Python number."""

    BOOL = "bool"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    UINT64 = "uint64"
    HUGE = "an integer beyond 64 bits"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    COMPLEX = "complex"

    __hash__ = object.__hash__  # Enum's own is a slow Python function; members are singletons, so identity is enough


_FLOAT32_MAX: Final = float(np.finfo(np.float32).max)
_FLOAT64_DIGITS: Final = 53
_FLOAT64_EXACT: Final = 2**_FLOAT64_DIGITS  # float64 holds every integer up to this one

_INTEGER_LIMITS: Final = {dtype: iinfo(dtype) for dtype in ALL if info(dtype).kind in ("int", "uint")}
_FLOATS: Final = {dtype: dtype.itemsize < 8 for dtype in ALL if info(dtype).kind == "float"}  # True: below float64
# The dtypes that an error recommends if the array's dtype does not hold an integer, narrowest first.
_CREATORS: Final = frozenset({"arange", "asarray", "full", "full_like"})  # they have dtype=, and no array to cast
_WIDER: Final = tuple(iinfo(name) for name in ("int16", "int32", "int64", "uint64"))


class StandIn:
    """Stands for a Python number, so that its uses are seen: an argument of a function that `tilearray.fuse` traces.

    Attributes
    ----------
    number : bool, int, float or complex
        Its value in this trace.
    """

    __slots__ = ("number",)

    def __init__(self, number: Number) -> None:
        self.number = number

    def mapped(self, function: Callable[[Any], Any]) -> StandIn:
        """Return what stands for a function of the number."""
        return StandIn(function(self.number))

    def value(self) -> Any:
        """Return the value, where a function cannot do without it."""
        return self.number


def needed(value: Any) -> Any:
    """Return a number itself, for a function that cannot do without its value; any other object as it is.

    Examples
    --------
    >>> needed(StandIn(2)), needed(3)
    (2, 3)
    """
    return value.value() if isinstance(value, StandIn) else value


def classify(value: object, /) -> ScalarClass | None:
    """Return the class of a Python number, or None for any other object.

    Examples
    --------
    >>> from tilearray.promotion.scalars import classify
    >>> classify(3), classify(-(2**40)), classify(1e300), classify("3")
    (<ScalarClass.INT32: 'int32'>, <ScalarClass.INT64: 'int64'>, <ScalarClass.FLOAT64: 'float64'>, None)
    """
    kind = type(value)  # not `__class__`: an object that lies about its class is not a number
    if kind is int:
        return _classify_int(value)  # type: ignore[arg-type]
    if kind is float:
        return _classify_float(value)  # type: ignore[arg-type]
    if kind is bool:
        return ScalarClass.BOOL
    if kind is complex:
        return ScalarClass.COMPLEX
    return _classify_subclass(value)


def _classify_int(value: int) -> ScalarClass:
    if -0x8000_0000 <= value <= 0x7FFF_FFFF:
        return ScalarClass.INT32
    if 0 <= value <= 0xFFFF_FFFF:
        return ScalarClass.UINT32
    if -0x8000_0000_0000_0000 <= value <= 0x7FFF_FFFF_FFFF_FFFF:
        return ScalarClass.INT64
    if 0 <= value <= 0xFFFF_FFFF_FFFF_FFFF:
        return ScalarClass.UINT64
    return ScalarClass.HUGE


def _classify_float(value: float) -> ScalarClass:
    if -_FLOAT32_MAX <= value <= _FLOAT32_MAX or not math.isfinite(value):
        return ScalarClass.FLOAT32
    return ScalarClass.FLOAT64


def _classify_subclass(value: object) -> ScalarClass | None:
    kind = type(value)
    if issubclass(kind, np.generic):
        return None
    if isinstance(value, StandIn):
        return classify(value.number)
    if issubclass(kind, int):
        return _classify_int(value)  # type: ignore[arg-type]
    if issubclass(kind, float):
        return _classify_float(value)  # type: ignore[arg-type]
    return ScalarClass.COMPLEX if issubclass(kind, complex) else None


def as_number(value: Number, dtype: np.dtype, function: str = "") -> Number:
    """Return a Python number as the kind of number that `dtype` holds, after a check of its range.

    The caller that stores the number rounds it to a narrower format. That is the only rounding that counts: if float64
    cannot hold an integer and `dtype` is narrower than float64, the integer is rounded to odd, not to nearest. A number
    of 53 bits that was rounded to odd rounds to any format of up to 51 bits as the exact integer does (S. Boldo and G.
    Melquiond, "Emulation of a FMA and correctly rounded sums", IEEE Trans. Computers 57(4), 2008).

    Parameters
    ----------
    value : bool, int, float or complex
        The number.
    dtype : numpy.dtype
        The dtype of the array that stores it.
    function : str
        The function that was called, for the error message.

    Returns
    -------
    bool, int, float or complex
        A bool for bool, an int for an integer dtype, a float for a floating-point dtype (infinity if an integer is
        beyond float64), a complex for a complex dtype.

    Raises
    ------
    ScalarOverflowError
        If `dtype` is an integer dtype that does not hold the integer.
    DTypeError
        If `dtype` is an integer or floating-point dtype and `value` is of a higher kind.

    Examples
    --------
    >>> import numpy as np
    >>> from tilearray.promotion.scalars import as_number
    >>> as_number(3, np.dtype("float32")), as_number(True, np.dtype("int8"))
    (3.0, 1)
    """
    if isinstance(value, StandIn):
        as_number(value.number, dtype, function)
        return value
    limits = _INTEGER_LIMITS.get(dtype)
    if limits is not None and isinstance(value, int):
        if limits.min <= value <= limits.max:
            return int(value)
        raise _overflow(value, limits, function)
    narrow = _FLOATS.get(dtype)
    if narrow is not None and not isinstance(value, complex):
        return _as_float(value, narrow)
    kind = info(dtype).kind
    if kind == "bool":
        return bool(value)
    if kind == "pair" and value == 0:
        return 0
    if kind == "complex":
        return value if isinstance(value, complex) else complex(_as_float(value, dtype.itemsize < 16))
    raise _wrong_kind(value, dtype, function)


def _as_float(value: float, narrow: bool) -> float:
    if isinstance(value, float) or -_FLOAT64_EXACT <= value <= _FLOAT64_EXACT:
        return float(value)
    if narrow:
        value = _round_to_odd(value)
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _round_to_odd(value: int) -> int:
    """Return the integer's leading 53 bits, with the last bit set if any bit that is lost was set."""
    magnitude = abs(value)
    cut = magnitude.bit_length() - _FLOAT64_DIGITS
    head = magnitude >> cut
    if head << cut != magnitude:
        head |= 1
    return (head << cut) if value > 0 else -(head << cut)


def _overflow(value: int, limits: IInfo, function: str) -> ScalarOverflowError:
    shown = str(value) if value.bit_length() <= 128 else f"an integer of {value.bit_length()} bits"
    wider = _wider(value, limits)
    cast = f"write dtype={wider!r}" if function in _CREATORS else f"write x.astype({wider!r}) for the array"
    instead = cast if wider else "no integer dtype holds it: write it as a float"
    return ScalarOverflowError(
        f"{_prefix(function)}{shown} does not fit {limits.dtype.name} ({limits.min} to {limits.max}); {instead}"
    )


def _wider(value: int, limits: IInfo) -> str | None:
    """Return the narrowest dtype that holds the value and the array's elements, else one that holds the value."""
    for low, high in ((min(value, limits.min), max(value, limits.max)), (value, value)):
        for other in _WIDER:
            if other.bits >= limits.bits and other.min <= low and high <= other.max:
                return other.dtype.name
    return None


def _wrong_kind(value: Number, dtype: np.dtype, function: str) -> DTypeError:
    if info(dtype).kind == "pair":
        return DTypeError(
            f"{_prefix(function)}an element of {info(dtype).name} is two numbers, got {value!r}; write "
            f"ta.pack_float4(x) of an array x of float4_e2m1fn"
        )
    instead, lost = ("value.real", "imaginary part") if isinstance(value, complex) else ("int(value)", "fraction")
    return DTypeError(f"{_prefix(function)}{dtype.name} cannot hold {value!r}; write {instead} to drop the {lost}")


def _prefix(function: str) -> str:
    return f"{function}: " if function else ""
