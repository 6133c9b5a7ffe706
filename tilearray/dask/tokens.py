"""The fingerprint by which dask names an array: ``__dask_tokenize__``.

It depends on the values, dtype, shape and device alone, and is the same in every process. On a GPU it is computed
there: one kernel reads the elements, mixes each one's bits with its place, and sums each row of them twice. Of these
sums 16 bytes come to the host.
"""

from __future__ import annotations

import hashlib
from functools import cache

import numpy as np

from tilearray.arrays.array import Array
from tilearray.arrays.fills import arange
from tilearray.arrays.fusion.fuse import Fused
from tilearray.engine.context import semantics
from tilearray.functions.pickling import carried
from tilearray.functions.reductions import sum as sum_of

_SPREAD, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""Odd numbers of 64 bits: those of the generator SplitMix64."""
WIDTH = 2**16
"""The elements in a row of the kernel: an element's place is that of its row plus that in its row."""


def fingerprint(x: Array) -> tuple[str, str, tuple[int, ...], str, str]:
    """Return a deterministic token of an array.

    Examples
    --------
    >>> import tilearray as ta
    >>> fingerprint(ta.asarray([1, 2])) == fingerprint(ta.asarray([2, 1])[::-1])
    True
    >>> fingerprint(ta.asarray([1, 2])) == fingerprint(ta.asarray([1, 2], dtype="int32"))
    False
    """
    values = hash_on_host(x) if x.device.backend.on_host else hash_on_device(x)
    return "tilearray.Array", x.dtype.name, x.shape, str(x.device), values


def hash_on_host(x: Array) -> str:
    """Return the SHA-1 of the elements' bytes in C order, in hexadecimal."""
    dense = np.ascontiguousarray(carried(x)).reshape(-1)
    return hashlib.sha1(dense.view(np.uint8).data, usedforsecurity=False).hexdigest()


def hash_on_device(x: Array) -> str:
    """Return two sums over all elements, 128 bits in hexadecimal; only the sums come to the host."""
    dense = x.copy("C").reshape(-1)
    bits = dense.view(np.dtype(f"u{min(dense.dtype.itemsize, 8)}"))
    whole = bits.size - bits.size % WIDTH
    rows = (bits[:whole].reshape(-1, WIDTH), bits[whole:].reshape(1, -1))
    first = second = 0
    with semantics("array-api"):
        for start, part in zip((0, whole), rows):
            if part.size:
                begins = arange(start, start + part.size, part.shape[1], dtype="uint64", device=x.device)
                steps = arange(part.shape[1], dtype="uint64", device=x.device)
                once, again = _fused()(part, begins[:, None], steps)
                first, second = first + sum_of(once).item(), second + sum_of(again).item()
    return f"{first % 2**64:016x}{second % 2**64:016x}"


@cache
def _fused() -> Fused:
    return Fused(sums)


def sums(bits: Array, begins: Array, steps: Array) -> tuple[Array, Array]:
    """Mix each element with its place, and return two sums of each row modulo 2**64, the second of one more round."""
    mixed = bits.astype("uint64") ^ ((begins + steps) * _SPREAD)
    mixed = (mixed ^ (mixed >> 30)) * _FIRST
    mixed = (mixed ^ (mixed >> 27)) * _SECOND
    mixed = mixed ^ (mixed >> 31)
    again = (mixed ^ (mixed >> 29)) * _FIRST
    return sum_of(mixed, axis=1), sum_of(again ^ (again >> 32), axis=1)
