"""Scaled conversion by its definition, one block after the other, in Fractions; and the comparison of two devices."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import tilearray as ta
from support.oracles import rounding as exact
from support.oracles.formats import FORMATS, dtype_of

MX = "float8_e8m0fnu"
E4M3 = "float8_e4m3fn"


class Case(NamedTuple):
    """A conversion: the dtypes of values and scales, and the rounding of scales."""

    dtype: str
    scale: str = "float32"
    scale_rounding: str | None = None


CASES = (
    Case(E4M3),
    Case(E4M3, MX),
    Case(E4M3, MX, "rp"),
    Case("float8_e5m2", MX),
    Case("float8_e5m2", "float32", "rp"),
    Case("float4_e2m1fn", MX),
    Case("float4_e2m1fn", MX, "rp"),
    Case("float4_e2m1fn", E4M3),
    Case("float4_e2m1fn", E4M3, "rp"),
    Case("float4_e2m1fn"),
    Case("float8_e3m4"),
    Case("int8"),
    Case("int8", MX),
)


def largest_of(name: str) -> Fraction:
    return Fraction(127 if name == "int8" else FORMATS[name].largest)


def scale_of(amax: float, case: Case, total: Fraction | None) -> float:
    """The scale of a block, from its largest magnitude, in the formulas of the documentation."""
    largest = largest_of(case.dtype)
    if amax != amax:
        return math.nan
    if case.scale == MX:
        if math.isinf(amax):
            return math.nan
        return _power(Fraction(amax), largest, case.scale_rounding)
    mode = case.scale_rounding or "rn"
    if math.isinf(amax):
        return math.inf if case.scale == "float32" else FORMATS[E4M3].largest
    found = _rounded(Fraction(amax) / largest, "float32", mode)
    if total is None:
        return max(found, 2.0**-80)
    found = max(_rounded(Fraction(found) / total, "float32", mode), 2.0**-6)
    return FORMATS[E4M3].largest if math.isinf(found) else exact.rounded(Fraction(found), E4M3, mode, saturate=True)


def _power(amax: Fraction, largest: Fraction, mode: str | None) -> float:
    """The power of two of a block: OCP's, or the least one with which no value is too large."""
    if not amax:
        return 2.0**-127
    if mode == "rp":
        exponent = _floor_log2(amax / largest)
        exponent += Fraction(2) ** exponent < amax / largest
    else:
        exponent = _floor_log2(amax) - _floor_log2(largest)
    return math.nan if exponent > 127 else 2.0 ** max(exponent, -127)


def _floor_log2(value: Fraction) -> int:
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent - (value < Fraction(2) ** exponent)


def _rounded(value: Fraction, name: str, mode: str = "rn") -> float:
    return exact.rounded(value, name, mode) if value else 0.0


def value_of(x: float, scale: float, case: Case, mode: str, saturate: bool) -> float:
    """An element: the quotient, rounded to float32 and then to the dtype."""
    if math.isfinite(x) and math.isfinite(scale):
        quotient: Any = exact.rounded(Fraction(x) / Fraction(scale), "float32") if x else math.copysign(0.0, x)
    else:
        with np.errstate(all="ignore"):
            quotient = float(np.float64(x) / np.float64(scale))
    if case.dtype == "int8":
        return 0 if quotient != quotient else _integer(quotient, mode)
    finite = math.isfinite(quotient) and quotient != 0
    return exact.rounded(Fraction(quotient) if finite else quotient, case.dtype, mode, saturate)


def _integer(value: float, mode: str) -> int:
    whole = value if math.isinf(value) else exact._whole_number(value, mode)
    return int(min(max(whole, -128), 127))


def quantized(
    x: np.ndarray, sizes: tuple[int, ...], case: Case, mode: str = "rn", saturate: bool = True, total: Any = None
) -> tuple[np.ndarray, np.ndarray, Fraction | None]:
    """Values, scales and the global scale of an array of float32 values."""
    magnitudes = np.abs(x.astype(np.float64))
    if case.scale == E4M3 and total is None:
        whole = _rounded(Fraction(magnitudes.max()) / (448 * largest_of(case.dtype)), "float32")
        total = Fraction(max(whole, 2.0**-64))
    grid = tuple(-(-extent // size) for extent, size in zip(x.shape, sizes, strict=True))
    values, scales = np.zeros(x.shape, np.float64), np.zeros(grid, np.float64)
    for place in itertools.product(*map(range, grid)):
        block = tuple(slice(at * size, (at + 1) * size) for at, size in zip(place, sizes, strict=True))
        scale = scale_of(float(magnitudes[block].max()), case, total)
        scales[place] = scale
        factor = scale if total is None or not math.isfinite(scale) else _rounded(Fraction(scale) * total, "float32")
        some = [value_of(float(each), factor, case, mode, saturate) for each in x[block].astype(np.float64).ravel()]
        values[block] = np.array(some, np.float64).reshape(x[block].shape)
    with np.errstate(all="ignore"):
        return values.astype(dtype_of(case.dtype)), scales.astype(dtype_of(case.scale)), total


def drawn(rng: np.random.Generator, shape: tuple[int, ...], source: str) -> np.ndarray:
    """Values of which blocks differ in magnitude by powers of two, some of them zero, tiny, huge or not finite."""
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-8, 9, (*shape[:-1], 1))
    kind = rng.integers(6)
    if kind == 0:
        x *= 2.0 ** rng.choice([-120, -140, 100])
    if kind == 1:
        x *= rng.integers(2, size=shape)
    if kind == 2 and x.size:
        x.ravel()[rng.integers(x.size)] = rng.choice([np.inf, -np.inf, np.nan, 0.0])
    if kind == 3:
        x = np.round(x)
    with np.errstate(all="ignore"):
        return exact.cast(x, source)


SHAPES: tuple[tuple[tuple[int, ...], dict[str, Any], tuple[int, ...]], ...] = (
    ((5, 64), {"block": 32}, (1, 32)),
    ((3, 48), {"block": 16}, (1, 16)),
    ((64, 6), {"block": 32, "axis": 0}, (32, 1)),
    ((7, 40), {"axis": -1}, (1, 40)),
    ((40, 7), {"axis": 0}, (40, 1)),
    ((9, 14), {}, (9, 14)),
    ((32, 24), {"block": (16, 8)}, (16, 8)),
    ((6, 70), {"block": 32}, (1, 32)),
    ((20, 21), {"block": (8, 16)}, (8, 16)),
    ((2, 3, 32), {"block": (None, 16), "axis": (1, 2)}, (1, 3, 16)),
    ((64,), {"block": 32}, (32,)),
)


def check_same_bits(device: Any, seed: int, examples: int) -> None:
    """Compare conversions of a device with those of the host: any layout, any blocks, any formats."""
    rng = np.random.default_rng(seed)
    for _ in range(examples):
        case, (shape, options, _) = CASES[rng.integers(len(CASES))], SHAPES[rng.integers(len(SHAPES))]
        x = drawn(rng, shape, str(rng.choice(["float32", "bfloat16", "float16", "float64"])))
        more: dict[str, Any] = {"scale": case.scale, "scale_rounding": case.scale_rounding, **options}
        if rng.integers(4) == 0:
            more |= {"rounding": "rs", "seed": int(rng.integers(5))}
        if case.dtype == "float4_e2m1fn" and shape[-1] % 2 == 0 and shape != (6, 70):
            more["packed"] = bool(rng.integers(2))
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        order = int(rng.integers(3))
        here, there = (ta.asarray(wide if order == 1 else x, device=each, copy=True) for each in ("cpu", device))
        if order:
            here, there = ((y[..., ::2] if order == 1 else y.T.copy().T) for y in (here, there))
        results = [ta.quantize(y, case.dtype, **more) for y in (here, there)]
        for want, got in zip(*results, strict=True):
            assert (want is None) == (got is None)
            if want is not None:
                packed = more.get("packed") and want is results[0].values  # of NaN, the sign of a zero is open
                first, second = (ta.to_numpy(ta.unpack_float4(y) if packed else y).copy() for y in (want, got))
                assert exact.differences(second.ravel(), first.ravel()).size == 0, (case, more, x.dtype, order)
        plain = {key: options[key] for key in options} | {"packed": more.get("packed", False)}
        back = [ta.to_numpy(ta.dequantize(*each, **plain)).copy() for each in results]
        assert exact.differences(back[1].ravel(), back[0].ravel()).size == 0, (case, more)
