"""Large products of integers of 16, 32 and 64 bits as products of bytes, for which a GPU has tensor cores.

An integer of n bytes is a sum of digits ``d[i] * 256**i`` from -128 to 127, if multiples of 256**n do not count: they
are the bytes of ``x + 0x80...80``, each less 128. The product of two such sums has a term for each pair of digits whose
places add up to less than n: 3, 10 or 36 products of bytes instead of one of wide integers.

The digits of a row of `x1` lie one after the other, and those of a column of `x2` in the opposite order. So all terms
of one power of 256 are one product: that of the first digits of `x1` and the last ones of `x2`, as one long row and
column. Its sums are int32, which wrap where the result does; for 64 bits they must not, which bounds the summed size.

>>> digits = [3, 1]  # of 259: 3 + 1 * 256
>>> (((259 + 0x8080) & 0xFF) - 128, ((259 + 0x8080) >> 8) - 128) == tuple(digits)
True
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.context import semantics, unrecorded
from tilearray.engine.execute import run, run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import new_array, signature_of
from tilearray.functions.conversion import astype
from tilearray.functions.manipulation import flip, permute_dims, reshape, view
from tilearray.functions.reduce import refuse
from tilearray.geometry.layout import Layout
from tilearray.ops.arithmetic import add, bitwise_xor
from tilearray.ops.execute import execute, fill
from tilearray.ops.moves import assign
from tilearray.ops.product import product_of

UNIT = 16
"""What the summed size of a digit is a multiple of: the bytes that a kernel reads at once."""
DEEPEST = 2**31 // (8 * 128 * 128) - UNIT
"""The largest size along which eight products of digits stay below 2**31."""
_SIGNED = {2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}


def multiplied(function: str, x1: Any, x2: Any, dtype: np.dtype) -> Any:
    """Return the product of stacks of matrices that fit, of a dtype of integers, which wraps."""
    with unrecorded(), semantics("array-api"):
        depth = x1.shape[-1]
        if dtype.itemsize < 8 or depth <= DEEPEST:
            return _multiplied(function, x1, x2, dtype)
        found = _multiplied(function, x1[..., :DEEPEST], x2[..., :DEEPEST, :], dtype)
        for start in range(DEEPEST, depth, DEEPEST):
            stop = start + DEEPEST
            add(found, _multiplied(function, x1[..., start:stop], x2[..., start:stop, :], dtype), out=found)
        return found


def _multiplied(function: str, x1: Any, x2: Any, dtype: np.dtype) -> Any:
    count = dtype.itemsize
    left, right = _digits(x1, dtype), _digits(x2, dtype, turned=True)
    product = product_of(function, dtypes.int32, dtypes.int8)
    terms: list[Any] = []
    for power in range(count):
        first, last = _joined(left, 0, power + 1), _joined(right, count - 1 - power, count)
        last = permute_dims(last, (*range(last.ndim - 2), last.ndim - 1, last.ndim - 2))
        terms.append(run(product, [first._signature, last._signature], (first, last), None, refuse))
    return run_fixed(_total(dtype), terms, None)


def _digits(x: Any, dtype: np.dtype, turned: bool = False) -> Any:
    """Return the digits of matrices: of shape (..., rows, digits, columns), or turned, (..., columns, digits, rows).

    The last axis is filled up with zeros to a multiple of `UNIT`. Turned digits begin with that of the highest power.
    """
    signed = _SIGNED[dtype.itemsize]
    x = view(astype(x, dtype, copy=False), signed)
    middle = -int("7f" * (dtype.itemsize - 1) + "80", 16)  # the integer of which each byte is 0x80
    moved = add(x, middle, out=new_array(x.__class__, signature_of(Layout.of(x.shape), signed, x.device)))
    bitwise_xor(moved, middle, out=moved)
    *stacks, rows, columns = x.shape
    given = reshape(view(moved, dtypes.int8), (*stacks, rows, columns, dtype.itemsize))
    first, second, last = (len(stacks) + place for place in range(3))
    given = permute_dims(given, (*range(first), *((second, last, first) if turned else (first, last, second))))
    if turned:
        given = flip(given, axis=-2)
    size = given.shape[-1]
    shape = (*given.shape[:-1], -(-size // UNIT) * UNIT)
    found = new_array(x.__class__, signature_of(Layout.of(shape), dtypes.int8, x.device))
    if shape[-1] != size:
        fill(found, 0, "matmul")
    execute(assign, (given,), found._view(Layout(given.shape, found._signature.layout.strides)))
    return found


def _joined(digits: Any, start: int, stop: int) -> Any:
    """Return some of the digits of each row as one longer row."""
    part = digits[..., start:stop, :]
    *outer, _, size = part.shape
    layout = part._signature.layout
    return part._view(Layout((*outer, (stop - start) * size), (*layout.strides[:-2], 1)))


@cache
def _total(dtype: np.dtype) -> FixedOperation:
    """Return the operation that adds up the products of each power of 256, the lowest first."""
    builder = ExpressionBuilder()
    wide = dtypes.int64 if dtype.itemsize == 8 else dtypes.int32
    terms = [builder.cast(builder.array(dtypes.int32), dtypes.int32, wide) for _ in range(dtype.itemsize)]
    base = builder.constant(256, wide)
    total = terms[-1]
    for term in reversed(terms[:-1]):
        total = builder.call("multiply", (total, base), wide, "{x} * {y}")
        total = builder.call("add", (total, term), wide, "{x} + {y}")
    return FixedOperation("matmul", builder.build([builder.cast(total, wide, dtype)], [dtype]))
