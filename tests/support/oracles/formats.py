"""Dtypes by their names, and every rounding and cast, from the formats' published parameters.

Values are lists of Python numbers: integers are exact, a float of any format is the Python float of the same value.
NumPy serves as a vector of float64 only. Of the conversions of NumPy and ml_dtypes only the widening in `exact` is
used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

Number = bool | int | float | complex
Values = list[Any]

# --- dtypes by name -----------------------------------------------------------------------------------------------

KINDS = ("bool", "int", "float", "complex")
ARITHMETIC = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"),
)
STORAGE = (
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fnuz"),
    *("float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"),
)


def dtype_of(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


def kind_of(name: str) -> str:
    return next(kind for kind in KINDS if kind in name)


def width_of(name: str) -> int:
    return int(re.search(r"\d+", name)[0]) if name != "bool" else 1  # type: ignore[index]


def limits_of(name: str) -> tuple[int, int]:
    bits = width_of(name)
    return (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


class Format(NamedTuple):
    """A binary floating-point format: bits of a significand, exponent of the smallest step, range, what lies beyond."""

    precision: int
    lowest: int
    largest: float
    beyond: float | None  # None: the largest value itself
    zeros: int = 2


FORMATS = {
    "float64": Format(53, -1074, float(np.finfo(np.float64).max), math.inf),
    "float32": Format(24, -149, 2.0**128 - 2.0**104, math.inf),
    "bfloat16": Format(8, -133, 2.0**128 - 2.0**120, math.inf),
    "float16": Format(11, -24, 65504.0, math.inf),
    "float8_e5m2": Format(3, -16, 57344.0, math.inf),
    "float8_e4m3fn": Format(4, -9, 448.0, math.nan),
    "float8_e3m4": Format(5, -6, 15.5, math.inf),
    "float8_e4m3": Format(4, -9, 240.0, math.inf),
    "float8_e4m3b11fnuz": Format(4, -13, 30.0, math.nan, zeros=1),
    "float8_e4m3fnuz": Format(4, -10, 240.0, math.nan, zeros=1),
    "float8_e5m2fnuz": Format(3, -17, 57344.0, math.nan, zeros=1),
    "float4_e2m1fn": Format(2, -1, 6.0, None),
}
PART = {"complex64": "float32", "complex128": "float64"}


# --- rounding -----------------------------------------------------------------------------------------------------


def step(x: np.ndarray, name: str) -> np.ndarray:
    """The exponent of the last place that a format has at x."""
    fmt = FORMATS[name]
    with np.errstate(invalid="ignore"):  # which a signalling NaN raises, and only on some processors
        return np.maximum(np.frexp(x)[1] - fmt.precision, fmt.lowest)


def nearest(values: Sequence[float], name: str) -> list[float]:
    """Floats rounded to a format, half to even, by counting steps of its last place: exact in float64."""
    x = np.array(values, np.float64)
    if name == "float8_e8m0fnu":
        return [scale(value) for value in x.tolist()]
    fmt, last = FORMATS[name], step(x, name)
    with np.errstate(all="ignore"):  # flags, of signalling NaNs and past the largest float64
        result = x if name == "float64" else np.ldexp(np.rint(np.ldexp(x, -last)), last)
    if name == "float4_e2m1fn":
        result = np.clip(result, -fmt.largest, fmt.largest)  # NaN stands for a zero of either sign
    elif fmt.beyond is not None:
        result = np.where(np.abs(result) > fmt.largest, np.copysign(fmt.beyond, result), result)
    return (np.where(result == 0, 0.0, result) if fmt.zeros == 1 else result).tolist()


def scale(value: float) -> float:
    """float8_e8m0fnu: powers of two only, ties up, nothing below the smallest; no sign, no zero, no infinity."""
    if not 0 < value < math.inf:
        return math.nan
    mantissa, exponent = math.frexp(max(value, 2.0**-127))
    exponent -= mantissa < 0.75
    return 2.0**exponent if exponent <= 127 else math.nan


def integer_to_float(value: int, name: str) -> float:
    """An integer with no more bits than the format's significand, half to even; the range is left to `nearest`."""
    cut = max(abs(value).bit_length() - FORMATS[name].precision, 0) if name != "float8_e8m0fnu" else 0
    try:
        return float(round(Fraction(value, 2**cut)) * 2**cut)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def rounded_fraction(value: Fraction, name: str) -> float:
    """A Fraction as float64; to be rounded to a narrower format, rounded to odd, so that this is the only rounding."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    if name == "float64" or Fraction(near) == value or math.frexp(near)[0] * 2**53 % 2:
        return near
    return math.nextafter(near, math.inf if value > near else -math.inf)


def cast(values: Values, source: str, target: str) -> Values:
    """Every cast rounds once; float to integer truncates and saturates, NaN is 0; integers wrap."""
    if source == target:
        return values
    kind = kind_of(target)
    if kind == "bool":
        return [value != 0 for value in values]
    if kind == "complex":
        part = PART[target]
        real = cast([value.real for value in values], PART.get(source, source), part)
        imag = cast([value.imag for value in values], PART.get(source, source), part)
        return [complex(re, im) for re, im in zip(real, imag, strict=True)]
    if kind == "int":
        return [to_integer(value, target) for value in values]
    if kind_of(source) != "float":
        values = [integer_to_float(int(value), target) for value in values]
    return nearest(values, target)


def to_integer(value: Any, target: str) -> int:
    low, high = limits_of(target)
    if not isinstance(value, float):
        return (int(value) - low) % (high - low + 1) + low
    if value != value:
        return 0
    return int(value) if low <= value <= high else high if value > 0 else low


def exact(array: np.ndarray) -> Values:
    """The elements as Python numbers, in C order. Signalling NaNs are quiet then, on every processor: by a product."""
    kind = kind_of(array.dtype.name)
    wide = {"float": np.float64, "complex": np.complex128}.get(kind)
    if wide is None:
        return array.flatten().tolist()
    with np.errstate(invalid="ignore"):
        return (array.astype(wide).flatten().view(np.float64) * 1.0).view(wide).tolist()
