"""Packed float4: two values of float4_e2m1fn in a byte, the first one in the lower four bits.

An Array of float4_e2m1fn has one value in a byte, so that every element has an address. Packed values are an Array of
float4_e2m1fn_x2, whose last axis is half as long: an element is a byte with two values, as in PyTorch. So views begin
at even values, and no others can be written.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.arrays.fills import empty
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import HostData
from tilearray.errors import DTypeError, ShapeError
from tilearray.ops.signatures import show

_FLOAT4, _PACKED = dtypes.float4_e2m1fn, dtypes.float4_e2m1fn_x2


def pack_float4(x: Array | HostData, /) -> Array:
    """Return the values of a float4_e2m1fn array, two in a byte.

    Parameters
    ----------
    x : Array
        Of dtype float4_e2m1fn; its last axis has an even extent.

    Returns
    -------
    Array
        float4_e2m1fn_x2, with half the extent along the last axis. Element 2 i is in the lower four bits of byte i.

    Raises
    ------
    DTypeError
        If `x` has another dtype.
    ShapeError
        If the last axis has an odd extent, or there is none.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.asarray([0.5, 1.0, -6.0, 0.0]).astype("float4_e2m1fn")
    >>> packed = ta.pack_float4(x)
    >>> packed.tolist(), packed.view("uint8").tolist(), ta.unpack_float4(packed[1:]).tolist()
    ([(0.5, 1.0), (-6.0, 0.0)], [33, 15], [-6.0, 0.0])
    """
    given = asarray(x)
    if given.dtype != _FLOAT4:
        raise DTypeError(
            f"pack_float4: expected float4_e2m1fn, got {given.dtype.name}; write x.astype('float4_e2m1fn') first"
        )
    check_even("pack_float4", given.shape)
    return packed_pairs(given[..., 0::2], given[..., 1::2])


def check_even(function: str, shape: tuple[int, ...]) -> None:
    """Raise ShapeError if a shape has no last axis, or one of an odd extent."""
    if not shape or shape[-1] % 2:
        raise ShapeError(
            f"{function}: expected an even extent along the last axis, of which two values share a byte, got shape "
            f"{shape}; write ta.pad(x, ...) first"
        )


def packed_pairs(first: Array, second: Array) -> Array:
    """Return packed values, of which `first` are the ones at even places, and `second` those at odd ones."""
    return run_fixed(_pack(), (first, second), None)


def unpack_float4(x: Array | HostData, /) -> Array:
    """Return an array of float4_e2m1fn with one value in a byte, from packed ones: the inverse of `pack_float4`.

    Parameters
    ----------
    x : Array
        Of dtype float4_e2m1fn_x2, or uint8.

    Returns
    -------
    Array
        float4_e2m1fn, with twice the extent along the last axis.

    Raises
    ------
    DTypeError
        If `x` has another dtype.
    ShapeError
        If it has no axis.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.unpack_float4(ta.asarray([33], dtype="uint8")).tolist()
    [0.5, 1.0]
    """
    given = asarray(x)
    if given.dtype == dtypes.uint8:
        given = given.view(_PACKED)
    if given.dtype != _PACKED:
        raise DTypeError(
            f"unpack_float4: expected float4_e2m1fn_x2, got {given.dtype.name}; write x.view('float4_e2m1fn_x2') of "
            f"bytes"
        )
    if not given.ndim:
        raise ShapeError("unpack_float4: expected one axis or more, got shape (); write x.reshape(1)")
    out = empty((*given.shape[:-1], 2 * given.shape[-1]), _FLOAT4, device=given.device)
    for place in range(2):
        run_fixed(_unpack(place), (given,), out[..., place::2])
    return out


@cache
def _pack() -> FixedOperation:
    builder = ExpressionBuilder()
    pair = builder.array(_FLOAT4), builder.array(_FLOAT4)
    node = builder.call("pack_float4", pair, _PACKED, "(({x} & 15) | ({y} << 4))")
    return FixedOperation("pack_float4", builder.build([node], [_PACKED]))


@cache
def _unpack(place: int) -> FixedOperation:
    builder = ExpressionBuilder()
    template = "({x} >> 4)" if place else "({x} & 15)"
    node = builder.call(f"unpack_float4_{place}", (builder.array(_PACKED),), _FLOAT4, template)
    return FixedOperation("unpack_float4", builder.build([node], [_FLOAT4]))


@cache
def half_of_word(dtype: np.dtype, place: int) -> FixedOperation:
    """Return the operation that takes one (0: the first one in memory) of the two floats in a word of twice their size.

    Examples
    --------
    >>> import tilearray as ta
    >>> words = ta.asarray([1.5, 2.0], dtype="bfloat16").view("uint32")
    >>> run_fixed(half_of_word(dtypes.bfloat16, 1), (words,), None).tolist()
    [2.0]
    """
    bits = 8 * dtype.itemsize
    word, half = np.dtype(f"u{2 * dtype.itemsize}"), np.dtype(f"u{dtype.itemsize}")
    builder = ExpressionBuilder()
    template = f"({{x}} >> {place * bits}).to(tl.{half.name}).to(tl.{dtype.name}, bitcast=True)"
    node = builder.call(f"half_of_word_{place}", (builder.array(word),), dtype, template)
    return FixedOperation("quantize", builder.build([node], [dtype]))


@cache
def quotients_of_pairs() -> FixedOperation:
    """Return the operation that makes packed float4 of pairs of bfloat16 in words, divided by a float32, in one step.

    Examples
    --------
    >>> import tilearray as ta
    >>> words = ta.asarray([1.0, 2.0], dtype="bfloat16").view("uint32")
    >>> found = run_fixed(quotients_of_pairs(), (words, ta.asarray([0.5])), None)
    >>> ta.unpack_float4(found).tolist()
    [2.0, 4.0]
    """
    builder = ExpressionBuilder()
    operands = builder.array(np.dtype("u4")), builder.array(np.dtype("f4"))
    node = builder.call("quotients_of_pairs", operands, _PACKED, "bfloat16_quotients_to_e2m1fn({x}, {y}, {arch})")
    return FixedOperation("quantize", builder.build([node], [_PACKED]))


@cache
def scaled_pairs() -> FixedOperation:
    """Return the operation that makes packed float4 of pairs of bfloat16 in words and a power of two, in one step.

    Examples
    --------
    >>> import tilearray as ta
    >>> words = ta.asarray([1.0, 2.0], dtype="bfloat16").view("uint32")
    >>> found = run_fixed(scaled_pairs(), (words, ta.asarray([0.5])), None)
    >>> ta.unpack_float4(found).tolist()
    [0.5, 1.0]
    """
    builder = ExpressionBuilder()
    operands = builder.array(np.dtype("u4")), builder.array(np.dtype("f4"))
    node = builder.call("scaled_pairs", operands, _PACKED, "bfloat16_pairs_to_e2m1fn({x}, {y})")
    return FixedOperation("quantize", builder.build([node], [_PACKED]))


show([pack_float4, unpack_float4])
