"""Stochastic rounding: floats to one of the two neighbours in another format, chosen by random words.

The result is a value of the format without its limits, as float32 or float64. The fraction of a step that a value lies
beyond its neighbour toward zero is truncated to 32 bits; with a word it must reach 2**32 to be rounded away from zero.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Rounder = Callable[..., None]


def round_at_random(x: Array, word: Array, precision: int, lowest: int, *, out: Array) -> None:
    """Round to `precision` bits, or to multiples of ``2**lowest`` where these are wider steps.

    Examples
    --------
    >>> x, out = np.array([1.25, 1.25, -1.25, 3.0]), np.empty(4)
    >>> words = np.array([0, 2**32 - 2**30, 2**32 - 2**30 - 1, 2**32 - 1], np.uint32)
    >>> round_at_random(x, words, 64, 0, out=out)
    >>> out
    array([ 1.,  2., -1.,  3.])
    """
    size = np.abs(x.astype(np.float64))
    last = np.maximum(np.frexp(size)[1] - precision, lowest)
    steps = np.ldexp(size, -last)
    whole = np.floor(steps)
    fraction = np.floor((steps - whole) * 2.0**32)
    near = np.copysign(np.ldexp(whole + (fraction + word >= 2.0**32), last), x)
    if (precision, lowest) == (1, -127):  # float8_e8m0fnu has no zero
        near = np.where(x > 0, np.maximum(near, 2.0**-127), near)
    out[...] = np.where(np.isfinite(x), near, x)


def key_of_parts(x: Array, y: Array, z: Array, *, out: Array) -> None:
    """Write the key of a stream, from its bits 0 to 20, 21 to 41, and the rest."""
    out[...] = x | y << np.uint64(21) | z << np.uint64(42)


def rounders() -> dict[str, Rounder]:
    """Return the functions by name: ``round_at_random_bfloat16(x, word, out=out)``, ``round_at_random_int8``, ..."""
    floats = [
        *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"),
        *("float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "bfloat16", "float16", "float32"),
    ]
    found: dict[str, Rounder] = {}
    for name in floats:
        limits: Any = ml_dtypes.finfo(np.dtype(getattr(ml_dtypes, name, name)))
        steps = {"precision": int(limits.nmant) + 1, "lowest": int(limits.minexp) - int(limits.nmant)}
        found[f"round_at_random_{name}"] = partial(round_at_random, **steps)
    for bits in (8, 16, 32, 64):
        whole = partial(round_at_random, precision=64, lowest=0)
        found |= {f"round_at_random_{kind}{bits}": whole for kind in ("int", "uint")}
    return found
