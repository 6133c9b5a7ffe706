"""The comparisons of the rounding tests on all devices: hard operands, the exact oracle, and the differences found.

Every function returns a list of differences, which must be empty. The counts are checked operations of a whole run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilearray as ta
from support import hard_to_round as hard
from support.oracles import rounding as exact
from support.oracles.formats import FORMATS, dtype_of

OPS = tuple(hard.ARITY)
WIDE, NARROW = ("float32", "float64"), ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
MODES, DIRECTED = ("rn", "rz", "rm", "rp"), ("rz", "rm", "rp")
CAST_MODES = (*MODES, "ra")
COMPUTED = (*WIDE, *NARROW)
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")

COUNT, NARROW_COUNT, CAST_COUNT = 16_000, 4_000, 3_000
CHECKED = len(OPS) * (len(WIDE) * len(MODES) * COUNT + len(MODES) * COUNT + len(NARROW) * len(DIRECTED) * NARROW_COUNT)

Values = NDArray[Any]


def shown(got: Values, want: Values, *operands: Values) -> list[str]:
    """The first differences between two arrays."""
    return [
        f"{[x[place] for x in operands]}: got {got[place]!r}, expected {want[place]!r}"
        for place in exact.differences(got, want)[:5]
    ]


def on(device: str, x: Values) -> ta.Array:
    return ta.asarray(x, device=device, copy=True)


def arithmetic(name: str, dtype: str, mode: str, flush: bool, count: int, device: str = "cpu") -> list[str]:
    """An operation of hard operands in a mode, against the oracle."""
    operands = hard.operands(name, dtype, count)
    options: dict[str, Any] = {"rounding": mode, **({"flush_to_zero": True} if flush else {})}
    result = ta.to_numpy(getattr(ta, name)(*(on(device, x) for x in operands), **options))
    assert (result.dtype, result.size) == (dtype_of(dtype), count)
    return shown(result, getattr(exact, name)(*operands, mode, flush), *operands)


def cast(source: str, target: str, mode: str | None, saturate: bool, count: int, device: str = "cpu") -> list[str]:
    """A cast of hard values in a mode, or in the one that is usual, against the oracle."""
    x = hard.sources(source, target, count)
    result = ta.to_numpy(on(device, x).astype(target, rounding=mode, saturate=saturate))
    assert (result.dtype, result.size) == (dtype_of(target), count)
    return shown(result, exact.cast(x, target, mode or "rn", saturate), x)


def selection(name: str, dtype: str, count: int, flush: bool = False, device: str = "cpu") -> list[str]:
    """``minimum`` or ``maximum`` of numbers, NaN being none, by Python's comparison."""
    x, y = hard.operands("add", dtype, count)
    result = getattr(ta, name)(
        on(device, x), on(device, y), propagate_nan=False, **({"flush_to_zero": True} if flush else {})
    )
    x, y = (exact.flushed(x), exact.flushed(y)) if flush else (x, y)
    with np.errstate(all="ignore"):  # signalling NaNs
        rows = zip(x.astype(np.float64).tolist(), y.astype(np.float64).tolist(), strict=True)
    want = np.array([_chosen(name, *row) for row in rows]).astype(dtype_of(dtype))
    return shown(ta.to_numpy(result), want, x, y)


def _chosen(name: str, x: float, y: float) -> float:
    if x != x or y != y:
        return y if x != x else x
    first, second = sorted((x, y), key=lambda value: (value, np.copysign(1, value)))
    return first if name == "minimum" else second


def casts() -> list[tuple[str, str]]:
    """Every pair of floats that is cast with a mode."""
    targets = (*FORMATS, exact.SCALE)
    return [(source, target) for source in COMPUTED for target in targets if source != target]
