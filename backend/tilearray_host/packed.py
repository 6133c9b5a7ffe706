"""Two values in a word: float4 in bytes, and floats in words of twice their size; the first one in the lower bits."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def pack_float4(first: Array, second: Array, *, out: Array) -> None:
    """Write bytes with two values; the upper four bits of a value's own byte do not count."""
    np.bitwise_or(first.view(np.uint8) & np.uint8(15), second.view(np.uint8) << np.uint8(4), out=out)


def unpack_first(x: Array, *, out: Array) -> None:
    """Write the values in the lower four bits."""
    np.bitwise_and(x, np.uint8(15), out=out.view(np.uint8))


def unpack_second(x: Array, *, out: Array) -> None:
    """Write the values in the upper four bits."""
    np.right_shift(x, np.uint8(4), out=out.view(np.uint8))


def first_half(x: Array, *, out: Array) -> None:
    """Write the floats in the lower half of each word."""
    out.view(f"u{out.itemsize}")[...] = x


def second_half(x: Array, *, out: Array) -> None:
    """Write the floats in the upper half of each word."""
    out.view(f"u{out.itemsize}")[...] = x >> x.dtype.type(8 * out.itemsize)
