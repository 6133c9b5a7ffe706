"""Permutations without a sort, and a search without branches: both are elementwise, so they run on every device.

A permutation of ``range(n)`` is a function of a key of 64 bits and of the index: 16 rounds of a keyed network over the
least power of two that holds all indices (64 at least), repeated until the result is an index ("cycle walking"). So an
element is computed alone: the first k elements take the time of k, whatever n is.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.engine.devices import Device
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import dense_signature, new_array
from tilearray.functions.conversion import astype
from tilearray.functions.indexing.take import take
from tilearray.functions.searching import where
from tilearray.geometry.shapes import Shape

LEAST_BITS = 6
"""Of the positions of a permutation: networks over fewer bits do not give all permutations equally often."""

_U64 = dtypes.uint64


@cache
def shuffled(arrays: bool) -> FixedOperation:
    """Return the operation that gives the places of indices: of an array with an array of keys, or of its own."""
    builder = ExpressionBuilder()
    node = builder.array(dtypes.int64) if arrays else builder.node("index")
    index = builder.cast(node, dtypes.int64, _U64)
    count, bits = builder.number(_U64), builder.number(_U64)
    key = builder.array(_U64) if arrays else builder.number(_U64)
    text = "shuffled_index({x}, {y}, {z}, {w})"
    place = builder.call("shuffled_index", (index, count, bits, key), _U64, text)
    return FixedOperation("permutation", builder.build([builder.cast(place, _U64, dtypes.int64)], [dtypes.int64]))


def first_of_permutation(key: int, count: int, size: int, device: Device) -> Array:
    """Return the first `size` elements of the permutation of ``range(count)`` that a key gives."""
    out = new_array(Array, dense_signature((size,), dtypes.int64, device, "permutation"))
    return run_fixed(shuffled(False), [count, _bits(count), key], out)


def orders_of_rows(keys: Array, shape: Shape) -> Array:
    """Return a permutation of the last axis for each row of a shape. The last axis of the keys has size 1."""
    count = shape[-1]
    index = asarray(np.arange(count), device=keys.device)
    out = new_array(Array, dense_signature(shape, dtypes.int64, keys.device, "permuted"))
    return run_fixed(shuffled(True), [index, count, _bits(count), keys], out)


def _bits(count: int) -> int:
    return max(LEAST_BITS, (count - 1).bit_length())


def reached(sums: Array, numbers: Array) -> Array:
    """Return for each number how many of some sorted sums are not above it, by halving steps."""
    place = astype(numbers * 0, dtypes.int64)
    step = 1 << (sums.size.bit_length() - 1)
    while step:
        further = place + step
        inside = (take(sums, further - 1, mode="clip") <= numbers) & (further <= sums.size)
        place = where(inside, further, place)
        step >>= 1
    return place
