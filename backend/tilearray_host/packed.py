"""Two values in a word: float4 in bytes, and floats in words of twice their size; the first one in the lower bits."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tilearray_host.casts import cast

Array = np.ndarray[Any, np.dtype[Any]]
_FLOAT4 = np.dtype(ml_dtypes.float4_e2m1fn)


def pack_float4(first: Array, second: Array, *, out: Array) -> None:
    """Write bytes with two values; the upper four bits of a value's own byte do not count."""
    np.bitwise_or(first.view(np.uint8) & np.uint8(15), second.view(np.uint8) << np.uint8(4), out=out.view(np.uint8))


def quotients_of_pairs(words: Array, factor: Array, *, out: Array) -> None:
    """Write bytes with two float4 of the two bfloat16 in each word, divided by a factor."""
    halves = (words << np.uint32(16), words & np.uint32(0xFFFF0000))
    pack_float4(*[cast(half.view(np.float32) / factor, _FLOAT4) for half in halves], out=out)


def scaled_pairs(words: Array, factor: Array, *, out: Array) -> None:
    """Write bytes with two float4 of the two bfloat16 in each word, times a factor."""
    halves = (words << np.uint32(16), words & np.uint32(0xFFFF0000))
    pack_float4(*[cast(half.view(np.float32) * factor, _FLOAT4) for half in halves], out=out)


def e4m3fn_scale(x: Array, *, out: Array) -> None:
    """Write scales of float8_e4m3fn as float32."""
    out[...] = x.astype(np.float32)


def without_signs(words: Array, *, out: Array) -> None:
    """Write the magnitudes of the two floats in each word."""
    np.bitwise_and(words, np.uint32(0x7FFF7FFF), out=out)


def larger_half(words: Array, *, out: Array) -> None:
    """Write the larger one of the two bfloat16 without a sign in each word, as float32."""
    out.view(np.uint32)[...] = np.maximum(words >> 16, words & np.uint32(0xFFFF)) << np.uint32(16)


def unpack_first(x: Array, *, out: Array) -> None:
    """Write the values in the lower four bits."""
    np.bitwise_and(x.view(np.uint8), np.uint8(15), out=out.view(np.uint8))


def unpack_second(x: Array, *, out: Array) -> None:
    """Write the values in the upper four bits."""
    np.right_shift(x.view(np.uint8), np.uint8(4), out=out.view(np.uint8))


def first_half(x: Array, *, out: Array) -> None:
    """Write the floats in the lower half of each word."""
    out.view(f"u{out.itemsize}")[...] = x


def second_half(x: Array, *, out: Array) -> None:
    """Write the floats in the upper half of each word."""
    out.view(f"u{out.itemsize}")[...] = x >> x.dtype.type(8 * out.itemsize)
