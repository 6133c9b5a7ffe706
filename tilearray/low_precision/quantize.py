"""`quantize` and `dequantize`: blocks of an array in a narrow format, with a scale for each block.

The largest magnitude of a block, its scale and its values are one fused function, so one kernel reads a block once if
a program can hold it; larger blocks take one function for scales and one for values. The formulas, of which each step
is rounded once:

==================  ==================================================================================================
scales              formula; `largest` is the largest value of the dtype, `top` the power of two at or below it
==================  ==================================================================================================
float32             ``max(amax / largest, 2**-80)``
float8_e8m0fnu      "rz": the power of two at or below ``amax / top`` (OCP Microscaling Formats, 1.0, section 6.3);
                    "rp": the power of two at or above ``amax / largest``, so that no value is beyond the largest one
float8_e4m3fn       ``max(amax / largest / global_scale, 2**-6)``; the scale of a value is ``scale * global_scale``, and
                    ``global_scale = max(amax of all / (448 * largest), 2**-64)`` if it is not given
==================  ==================================================================================================

A value is ``x / scale``, in float32 (float64 for a float64 array), and then rounded to the dtype.
"""

from __future__ import annotations

from functools import cache
from math import frexp, prod
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.arrays.fills import empty, empty_like
from tilearray.arrays.fusion.fuse import Fused
from tilearray.arrays.fusion.tracing import Traced
from tilearray.dtypes import DTypeLike
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import HostData
from tilearray.errors import DTypeError, OperandError, ShapeError
from tilearray.functions.arguments import deepest
from tilearray.functions.conversion import astype
from tilearray.functions.manipulation import new_like
from tilearray.functions.reduce import reduce
from tilearray.functions.reductions import max as largest_of
from tilearray.low_precision.blocks import (
    Ints,
    block_sizes,
    regions,
    scales_shape,
    sizes_of_scales,
    sizes_within,
    split,
)
from tilearray.low_precision.packing import (
    check_even,
    half_of_word,
    packed_pairs,
    quotients_of_pairs,
    scaled_pairs,
    unpack_float4,
)
from tilearray.low_precision.scale_layouts import ScaleLayout, check_layout, linear, tiled
from tilearray.ops.arithmetic import abs, divide, maximum, minimum
from tilearray.ops.options import CAST_MODES, CastMode, NamedMode, checked_flag, mode_named
from tilearray.ops.seeds import Seed
from tilearray.ops.signatures import show

Block: TypeAlias = "int | tuple[int | None, ...] | None"
AxisOf: TypeAlias = "int | tuple[int, ...] | None"

SCALES = (dtypes.float32, dtypes.float8_e8m0fnu, dtypes.float8_e4m3fn)
_MODES = {"float32": ("rn", "rp"), "float8_e8m0fnu": ("rz", "rp"), "float8_e4m3fn": ("rn", "rp")}
"""The roundings of scales, the usual one first."""
_LEAST = {"float32": 2.0**-80, "float8_e8m0fnu": 2.0**-127, "float8_e4m3fn": 2.0**-6}
_LEAST_GLOBAL, _LARGEST_GLOBAL = 2.0**-64, 2.0**117
_E4M3_LARGEST = 448.0


HELD: Final = 2**15
"""The elements of the largest block that one kernel converts. A larger one would leave most of a GPU idle."""


class Quantized(NamedTuple):
    """An array in a narrow format: the values, the scales of their blocks, and a scale of all scales, or None."""

    values: Array
    scales: Array
    global_scale: Array | None = None


class _Recipe(NamedTuple):
    """What decides a fused function: dtypes, roundings, and the axes of a block in the view."""

    dtype: np.dtype
    scale: np.dtype
    scale_rounding: str
    rounding: str
    saturate: bool
    axes: Ints
    pairs: str = ""
    packed: bool = False


def quantize(
    x: Array | HostData,
    dtype: DTypeLike,
    /,
    *,
    block: Block = None,
    axis: AxisOf = None,
    scale: DTypeLike = "float32",
    scale_rounding: str | None = None,
    global_scale: Array | float | None = None,
    rounding: CastMode | NamedMode | None = None,
    saturate: bool = True,
    seed: Seed = None,
    layout: ScaleLayout = "linear",
    packed: bool = False,
) -> Quantized:
    """Return an array in a narrow format, with a scale for each block of it.

    Parameters
    ----------
    x : Array
        Of floats or integers, of any layout.
    dtype : dtype
        The dtype of the values: a float of 8 bits or fewer with a sign, or int8.
    block : int or tuple of int, optional
        The size of a block along each of `axis`; None there, or without it, is the whole axis. The last block along an
        axis may be smaller.
    axis : int or tuple of int, optional
        The axes of blocks: the last ones if there is a `block`, else all, so that the array has one scale. ``axis=-1``
        alone gives each row a scale.
    scale : dtype
        The dtype of scales: float32, float8_e8m0fnu (powers of two), or float8_e4m3fn with a global scale.
    scale_rounding : str, optional
        "rn" or "rp" for float32 and float8_e4m3fn, "rz" (of the OCP specification) or "rp" for float8_e8m0fnu; the
        first one is the default. With "rp" the largest element of a block never saturates.
    global_scale : float or Array of one element, optional
        For scales of float8_e4m3fn; by default it is found by a first pass over `x`. It is limited to [2**-64, 2**117].
    rounding : str, optional
        The rounding of values, as in `astype`: "rn" is the default, "rs" takes a `seed`.
    saturate : bool
        Whether a value beyond the largest one becomes it.
    seed : int, sequence of int or numpy.random.SeedSequence, optional
        For ``rounding="rs"``.
    layout : str
        The order of scales: "linear", or "128x4" for cublasLt; see docs/low_precision.md.
    packed : bool
        Whether values of float4_e2m1fn are packed, two in a byte, in the dtype float4_e2m1fn_x2, as by `pack_float4`.

    Returns
    -------
    Quantized
        ``values``, ``scales`` and ``global_scale``. The scales have an element for each block.

    Raises
    ------
    DTypeError
        If a dtype is none of these.
    OperandError, ShapeError
        If an option does not exist or does not fit, or the blocks do not fit the shape.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.asarray([[1.0, -3.0, 0.5, 0.25], [100.0, 7.0, 0.0, 0.0]])
    >>> q = ta.quantize(x, "float8_e4m3fn", block=2, scale="float8_e8m0fnu")
    >>> q.scales.tolist()
    [[0.0078125, 0.001953125], [0.25, 5.877471754111438e-39]]
    >>> ta.dequantize(*q).tolist()
    [[1.0, -3.0, 0.5, 0.25], [96.0, 7.0, 0.0, 0.0]]
    """
    given, recipe = asarray(x), _recipe(dtype, scale, scale_rounding, rounding, saturate, packed)
    kind = dtypes.info(given.dtype).kind
    if kind not in ("float", "int", "uint"):
        instead = "x.real" if kind == "complex" else "x.astype('float32')"
        raise DTypeError(f"quantize: expected an array of real numbers, got {given.dtype.name}; write {instead}")
    if (recipe.rounding == "rs") != (seed is not None):
        raise OperandError("quantize: expected both rounding='rs' and a seed, or none of them; write seed=0")
    check_layout(layout, "quantize")
    if packed:
        check_even("quantize", given.shape)
    sizes = block_sizes(given.shape, axis, block, "quantize")
    total = _global_scale(given, recipe, global_scale)
    values, scales = _converted(given, sizes, recipe, total)
    if recipe.rounding == "rs":
        values = astype(values, recipe.dtype, rounding="rs", saturate=saturate, seed=seed)
        values = packed_pairs(values[..., 0::2], values[..., 1::2]) if packed else values
    return Quantized(values, tiled(scales, "quantize") if layout == "128x4" else scales, total)


def dequantize(
    values: Array | HostData,
    scales: Array | HostData,
    global_scale: Array | float | None = None,
    /,
    *,
    block: Block = None,
    axis: AxisOf = None,
    dtype: DTypeLike = "float32",
    layout: ScaleLayout = "linear",
    packed: bool = False,
) -> Array:
    """Return the products of values and the scales of their blocks: the inverse of `quantize`.

    Parameters
    ----------
    values, scales, global_scale : Array
        The results of `quantize`.
    block, axis, layout, packed
        As in `quantize`. The blocks follow from the shapes if they divide the values and `layout` is "linear". Values
        of float4_e2m1fn_x2 are packed; with ``packed=True`` so are bytes.
    dtype : dtype
        The dtype of the result; the product is computed in float32, or in float64 for a float64 result.

    Returns
    -------
    Array

    Raises
    ------
    ShapeError
        If the blocks do not fit the shapes.
    DTypeError
        If the result is not a float.

    Examples
    --------
    >>> import tilearray as ta
    >>> q = ta.quantize(ta.asarray([[2.0, 3.0]]), "int8", axis=-1)
    >>> q.values.tolist(), ta.dequantize(*q, dtype="bfloat16").tolist()
    ([[85, 127]], [[2.015625, 3.0]])
    """
    check_layout(layout, "dequantize")
    given, factors = asarray(values), asarray(scales)
    if packed or given.dtype == dtypes.float4_e2m1fn_x2:
        given = unpack_float4(given)
    target = dtypes.as_dtype(dtype, "dequantize")
    if dtypes.info(target).kind != "float":
        raise DTypeError(f"dequantize: expected a float dtype, got {target.name}; write dtype='float32'")
    if block is None and axis is None and layout == "linear":
        sizes = sizes_of_scales(given.shape, factors.shape, "dequantize")
    else:
        sizes = block_sizes(given.shape, axis, block, "dequantize")
    wanted = scales_shape(given.shape, sizes)
    if layout == "128x4":
        factors = linear(factors, wanted, "dequantize")
    if factors.shape != wanted:
        raise ShapeError(
            f"dequantize: expected scales of shape {wanted} for these blocks, got {factors.shape}; write the block= "
            f"and axis= of quantize"
        )
    out = new_like(deepest([given, factors]), given.shape, target)
    total = None if global_scale is None else _one_scale(global_scale, given, "dequantize")
    for places, of_scales in regions(given.shape, sizes):
        part = given[places]
        view = split(part.shape, sizes_within(part.shape, sizes))
        operands = [part.reshape(view.shape), factors[of_scales].reshape(view.scales)]
        _products(target)(*operands, *([] if total is None else [total]), out=out[places].reshape(view.shape))
    return out


# --- options ----------------------------------------------------------------------------------------------------------


def _recipe(
    dtype: DTypeLike, scale: DTypeLike, scale_rounding: str | None, rounding: Any, saturate: bool, packed: bool
) -> _Recipe:
    """Return the checked options of a call."""
    target, factor = dtypes.as_dtype(dtype, "quantize"), dtypes.as_dtype(scale, "quantize")
    info = dtypes.info(target)
    if target != dtypes.int8 and (info.kind != "float" or info.bits > 8 or target == dtypes.float8_e8m0fnu):
        raise DTypeError(
            f"quantize: expected a signed float of 8 bits or fewer, or int8, got {info.name}; write "
            f"'float8_e4m3fn', or x.astype({info.name!r}) without scales"
        )
    if factor not in SCALES:
        names = ", ".join(repr(each.name) for each in SCALES)
        raise DTypeError(f"quantize: expected scale as one of {names}, got {factor.name!r}; write scale='float32'")
    if checked_flag("quantize", "packed", packed) and target != dtypes.float4_e2m1fn:
        raise DTypeError(f"quantize: packed=True takes float4_e2m1fn, got {target.name}; leave it out")
    modes = _MODES[factor.name]
    of_scales = mode_named(scale_rounding, "quantize: scale_rounding", modes) or modes[0]
    mode = mode_named(rounding, "quantize", (*CAST_MODES, "rs")) or "rn"
    return _Recipe(target, factor, of_scales, mode, checked_flag("quantize", "saturate", saturate), (), packed=packed)


def _largest(dtype: np.dtype) -> float:
    return 127.0 if dtype == dtypes.int8 else float(dtypes.finfo(dtype).max)


def _global_scale(x: Array, recipe: _Recipe, given: Array | float | None) -> Array | None:
    """Return the global scale of scales of float8_e4m3fn, and None for others."""
    if recipe.scale != dtypes.float8_e4m3fn:
        if given is not None:
            raise OperandError(
                f"quantize: global_scale= applies only to scale='float8_e4m3fn', got scale={recipe.scale.name!r}; "
                f"leave it out"
            )
        return None
    if isinstance(given, int | float):
        given = min(max(given, _LEAST_GLOBAL), _LARGEST_GLOBAL)
        return asarray(given, dtype=dtypes.float32, device=x.device)
    if given is not None:
        found = _one_scale(given, x, "quantize")
        return minimum(maximum(found, _LEAST_GLOBAL), _LARGEST_GLOBAL)
    if not x.size:
        return asarray(_LEAST_GLOBAL, dtype=dtypes.float32, device=x.device)
    return _whole_scale(_E4M3_LARGEST * _largest(recipe.dtype))(x)


def _one_scale(given: Any, x: Array, function: str) -> Array:
    """Return a global scale as a 0-d array of float32 on the device of `x`."""
    found = asarray(given, dtype=dtypes.float32, device=x.device)
    if found.size != 1:
        raise ShapeError(f"{function}: expected one global scale, got shape {found.shape}; write a number")
    return found.reshape(())


# --- fused functions --------------------------------------------------------------------------------------------------


def _converted(x: Array, sizes: Ints, recipe: _Recipe, total: Array | None) -> tuple[Array, Array]:
    """Return values and scales; values in the dtype of the computation if they are rounded at random."""
    grid = scales_shape(x.shape, sizes)
    parts = list(regions(x.shape, sizes))
    if len(parts) == 1:
        values, scales = _of_region(x, sizes, recipe, total)
        return values, scales.reshape(grid)
    random = recipe.rounding == "rs"
    packed = recipe.packed and not random
    if packed and x.shape[-1] // sizes[-1] * sizes[-1] % 2:  # the values of a pair are in two regions
        values, scales = _converted(x, sizes, recipe._replace(packed=False), total)
        return packed_pairs(values[..., 0::2], values[..., 1::2]), scales
    dtype = _wide(x.dtype) if random else dtypes.float4_e2m1fn_x2 if packed else recipe.dtype
    shape = (*x.shape[:-1], x.shape[-1] // 2) if packed else x.shape
    values, scales = empty(shape, dtype, device=x.device), empty(grid, recipe.scale, device=x.device)
    for places, of_scales in parts:
        part, found = _of_region(x[places], sizes, recipe._replace(packed=False), total)
        if packed:
            last = places[-1]
            places = (*places[:-1], slice(last.start // 2, last.stop // 2))
            part = packed_pairs(part[..., 0::2], part[..., 1::2])
        values[places] = part
        scales[of_scales] = found.reshape(scales[of_scales].shape)
    return values, scales


def _of_region(x: Array, sizes: Ints, recipe: _Recipe, total: Array | None) -> tuple[Array, Array]:
    """Return values of the shape of `x`, or packed ones, and scales, of blocks that divide it."""
    within = sizes_within(x.shape, sizes)
    view = split(x.shape, within)
    packed = recipe.packed and recipe.rounding != "rs"
    if packed and (within[-1] == 1 or view.axes[-1] != len(view.shape) - 1 or view.shape[-1] % 2):
        values, scales = _of_region(x, sizes, recipe._replace(packed=False), total)
        return packed_pairs(values[..., 0::2], values[..., 1::2]), scales
    made = recipe._replace(axes=view.axes, packed=packed)
    blocks = x.reshape(view.shape)
    if not packed:
        operands: list[Array] = [blocks]
    elif (words := _words(blocks)) is not None:
        operands, made = [words], made._replace(pairs=x.dtype.name)
    else:
        operands, made = [blocks[..., 0::2], blocks[..., 1::2]], made._replace(pairs="views")
    given = [*([] if total is None else [total]), *operands]
    target = None
    if not (packed or made.rounding == "rs" or isinstance(x, Traced) or x.flags.c_contiguous):
        target = empty_like(x, dtype=made.dtype).reshape(view.shape)  # in the order of x, so that no copy follows
    if prod([view.shape[axis] for axis in view.axes]) <= HELD:
        values, scales = _function(made, total is not None)(*given, out=(target, None))
    else:
        scales = _function(made, total is not None, "scales")(*given)
        values = _function(made, total is not None, "values")(*given, scales, out=target)
    shape = (*x.shape[:-1], x.shape[-1] // 2) if packed else x.shape
    return values.reshape(shape), scales


def _words(x: Array) -> Array | None:
    """Return pairs of neighbours as words, or None if they are not neighbours at an even place, or not in memory."""
    if isinstance(x, Traced):
        return None
    if x.dtype not in (dtypes.bfloat16, dtypes.float16, dtypes.float32) or x.strides[-1] != 1:
        return None
    size = 2 * x.itemsize
    if x._address % size or any(stride % 2 for stride in x.strides[:-1]):  # pyright: ignore[reportPrivateUsage]
        return None
    return x.view(np.dtype(f"u{size}"))


def _wide(dtype: np.dtype) -> np.dtype:
    return dtypes.float64 if dtype == dtypes.float64 else dtypes.float32


@cache
def _function(recipe: _Recipe, with_total: bool, which: Literal["both", "scales", "values"] = "both") -> Fused:
    """Return the fused function of a recipe: of a global scale, if there is one, and of blocks or their halves.

    It returns values and scales, or scales alone, or values for scales that are its last operand.
    """

    def convert(*operands: Array) -> Any:
        total, given = (operands[0], operands[1:]) if with_total else (None, operands)
        given, scales = (given[:-1], given[-1]) if which == "values" else (given, None)
        if scales is None:
            scales = _scales(recipe, _amax(recipe, given), total)
        if which == "scales":
            return scales
        if recipe.pairs == "bfloat16" and recipe.rounding == "rn":
            factor, is_power = _factor(scales, total, dtypes.float32), recipe.scale == dtypes.float8_e8m0fnu
            found = (
                run_fixed(scaled_pairs(), (given[0], divide(1.0, factor)), None)
                if is_power
                else run_fixed(quotients_of_pairs(), (given[0], factor), None)
            )
        else:
            values = [_values(recipe, part, scales, total) for part in _parts(recipe, given)]
            found = packed_pairs(*values) if recipe.packed else values[0]
        return found if which == "values" else (found, scales)

    return Fused(convert)


def _amax(recipe: _Recipe, given: tuple[Array, ...]) -> Array:
    """Return the largest magnitudes of blocks."""
    if recipe.pairs == "bfloat16":
        return reduce("largest_of_pairs", given[0], recipe.axes, dtypes.float32, True)
    parts = _parts(recipe, given)
    if not recipe.axes:
        return abs(parts[0])
    first, *others = [largest_of(abs(part), axis=recipe.axes, keepdims=True) for part in parts]
    for other in others:
        first = maximum(first, other)
    return first


def _parts(recipe: _Recipe, given: tuple[Array, ...]) -> list[Array]:
    """Return the blocks, or the first and the second elements of their pairs, in the dtype of the computation."""
    if recipe.pairs not in ("", "views"):
        dtype = dtypes.as_dtype(recipe.pairs)
        given = tuple([run_fixed(half_of_word(dtype, place), given, None) for place in range(2)])
    return [astype(part, _wide(part.dtype), copy=False) for part in given]


def _scales(recipe: _Recipe, amax: Array, total: Array | None) -> Array:
    """Return the scales of blocks from their largest magnitudes."""
    largest, mode = _largest(recipe.dtype), recipe.scale_rounding
    least = _LEAST[recipe.scale.name]
    up = "rp" if mode == "rp" else None
    if recipe.scale == dtypes.float8_e8m0fnu:
        top = 2.0 ** (frexp(largest)[1] - 1)
        found = divide(amax, largest, rounding=up) if up else amax * (1 / top)
        return astype(_at_least(found, least), recipe.scale, rounding="rp" if up else "rz", saturate=False)
    if up or amax.dtype != dtypes.float32:
        found = divide(amax, largest, rounding=up)
    else:
        reciprocal = float(np.float32(1) / np.float32(largest))
        found = run_fixed(_quotient(bounded=False, by_number=True), (amax, largest, reciprocal), None)
    if total is not None:
        found = divide(found, total, rounding=up)
    return astype(_at_least(found, least), recipe.scale, rounding=up, saturate=total is not None)


def _values(recipe: _Recipe, part: Array, scales: Array, total: Array | None) -> Array:
    """Return the values of a block, or their quotients if they are rounded at random."""
    factor = _factor(scales, total, part.dtype)
    if recipe.scale == dtypes.float8_e8m0fnu:
        found = part * divide(1.0, factor)  # exact: both are powers of two
    elif part.dtype == dtypes.float32 and recipe.rounding == "rn":
        found = run_fixed(_quotient(total is None), (part, factor, divide(1.0, factor)), None)
    else:
        found = divide(part, factor)
    if recipe.rounding == "rs":
        return found
    options: Any = {"rounding": recipe.rounding, "saturate": None if recipe.dtype == dtypes.int8 else recipe.saturate}
    return astype(found, recipe.dtype, **options)


def _factor(scales: Array, total: Array | None, dtype: np.dtype) -> Array:
    """Return the number by which the elements of a block are divided."""
    if scales.dtype == dtypes.float8_e4m3fn and dtype == dtypes.float32:
        factor = run_fixed(_scale(), (scales,), None)
    else:
        factor = astype(scales, dtype, copy=False)
    return factor if total is None else factor * astype(total, dtype, copy=False)


@cache
def _scale() -> FixedOperation:
    """Return the cast of a scale of float8_e4m3fn to float32; on a GPU it is an instruction, unlike other casts."""
    builder = ExpressionBuilder()
    operand = builder.array(dtypes.float8_e4m3fn)
    node = builder.call("e4m3fn_scale", (operand,), dtypes.float32, "e4m3fn_scale({x}, {arch})")
    return FixedOperation("quantize", builder.build([node], [dtypes.float32]))


def _at_least(x: Array, number: float) -> Array:
    """Return `maximum`; an instruction of GPUs does this for floats that are not negative."""
    return run_fixed(_larger(x.dtype), (x, number), None)


@cache
def _larger(dtype: np.dtype) -> FixedOperation:
    builder = ExpressionBuilder()
    operands = builder.array(dtype), builder.number(dtype)
    return FixedOperation(
        "quantize", builder.build([builder.call("maximum", operands, dtype, "larger({x}, {y})")], [dtype])
    )


@cache
def _quotient(bounded: bool, by_number: bool = False) -> FixedOperation:
    """Return the division of float32 by a divisor whose reciprocal is given, for quotients that are then rounded.

    Its smallest results, below 2**-23, may differ in the last place. They are `bounded` if no quotient exceeds float32.
    Quotients by a number of 8 bits or fewer are rounded correctly, if they are 2**-80 or more: the middle of two floats
    times the divisor is no float, and no multiple of it is close to one.
    """
    builder = ExpressionBuilder()
    divisor = builder.number if by_number else builder.array
    operands = builder.array(dtypes.float32), divisor(dtypes.float32), divisor(dtypes.float32)
    node = builder.call("quotient_by", operands, dtypes.float32, f"quotient_by({{x}}, {{y}}, {{z}}, {bounded})")
    return FixedOperation("quantize", builder.build([node], [dtypes.float32]))


@cache
def _whole_scale(divisor: float) -> Fused:
    """Return the fused function that finds the global scale of an array."""

    def find(x: Array) -> Array:
        wide = astype(x, dtypes.float32, copy=False)
        return maximum(largest_of(abs(wide)) / divisor, _LEAST_GLOBAL)

    return Fused(find)


@cache
def _products(target: np.dtype) -> Fused:
    """Return the fused function of values, scales and a global scale, if there is one."""
    wide = _wide(target)

    def multiply(values: Array, scales: Array, *total: Array) -> Array:
        factor = astype(scales, wide, copy=False)
        for one in total:
            factor = factor * astype(one, wide, copy=False)
        return astype(astype(values, wide, copy=False) * factor, target, copy=False)

    return Fused(multiply)


show([quantize, dequantize])
