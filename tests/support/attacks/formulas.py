"""Random calls that NumPy has under no name, each with a formula of NumPy: one more table for `differential`.

Blocks and scales, packed float4, tiles, selection, programs that are fused or recorded, lists, and gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

import tilearray as ta
from support.oracles import quantization

if TYPE_CHECKING:
    from support.attacks.differential import Call, Case

WHOLE = ("int8", "uint8", "int16", "int32", "uint32", "int64")
FLOATS = ("float16", "float32", "float64")
REAL = ("bool", *WHOLE, *FLOATS)
SIGNED = ("bool", "int32", "int64", *FLOATS)
"""Programs negate, and floats that a common dtype makes of wrapped integers differ."""
MOVED = (*REAL, "complex64")


def _flat(xp: Any, found: list[Any]) -> Any:
    """The elements of several results as one array."""
    return xp.concat([xp.reshape(each, (-1,)) for each in found])


# --- selection --------------------------------------------------------------------------------------------------------


def _along(case: Case, xp: Any, arrays: list[Any]) -> Any:
    x, axis = arrays[0], case.axis()
    size = x.shape[axis] if x.ndim else 1
    shape = list(x.shape)
    shape[axis : axis + 1 or None] = [case.pick(1, 2, 4)]
    places = np.array([case.pick(*range(-size, size)) if size else 0 for _ in range(int(np.prod(shape)))], "int64")
    places = places.reshape(shape)
    return xp.take_along_axis(x, places if xp is np else ta.asarray(places, device=case.device), axis)


def _top(case: Case, xp: Any, arrays: list[Any]) -> Any:
    x, axis, largest, values = arrays[0], case.axis(), case.pick(True, False), case.pick(True, False)
    size = x.shape[axis] if x.ndim else 0
    count = case.pick(*range(size + 1))
    if xp is ta:
        return ta.top_k(x, count, axis, largest=largest)[0 if values else 1]
    order = np.argsort(x, axis=axis, kind="stable")
    if largest:
        order = np.flip(size - 1 - np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    order = np.take(order, range(count), axis)
    return np.take_along_axis(x, order, axis) if values else order


def _kth(case: Case, xp: Any, arrays: list[Any]) -> Any:
    axis = case.axis()
    size = arrays[0].shape[axis] if arrays[0].ndim else 1
    place = case.pick(*range(size)) if size else 0
    return xp.take(xp.partition(arrays[0], place, axis=axis), xp.asarray([place]), axis=axis)


def _places(case: Case, xp: Any, arrays: list[Any]) -> Any:
    return xp.searchsorted(xp.sort(xp.reshape(arrays[0], (-1,))), arrays[1], side=case.pick("left", "right"))


def _histogram(case: Case, xp: Any, arrays: list[Any]) -> Any:
    bins = case.pick(1, 3, 8, [0, 1, 2], [-1.0, 0.5, 0.75, 4.0])
    limits = case.pick(None, None, (0, 2), (-1.5, 1.5))
    weights = arrays[1] if case.pick(0, 0, 1) and arrays[0].shape == arrays[1].shape else None
    part = case.pick(0, 1) if isinstance(bins, int) else 0  # edges come back in the dtype of the elements
    if xp is np and case.device != "cpu" and weights is not None and not np.isfinite(weights).all():
        raise ValueError("differences of running sums, which a GPU does not take")
    return xp.histogram(arrays[0], bins, limits, density=case.pick(False, False, True), weights=weights)[part]


def _counted(case: Case, xp: Any, arrays: list[Any]) -> Any:
    x = xp.reshape(arrays[0], (-1,))
    return xp.bincount(x, minlength=case.pick(0, 3, 9))


# --- layouts ----------------------------------------------------------------------------------------------------------


def _padded(case: Case, xp: Any, arrays: list[Any]) -> Any:
    widths = [(case.pick(0, 1, 2), case.pick(0, 3)) for _ in range(arrays[0].ndim)]
    mode = case.pick("constant", "edge", "reflect", "symmetric", "wrap", "maximum", "minimum", "odd")
    options = {"constant_values": case.pick(0, 1)} if mode == "constant" else {}
    if mode == "odd":
        mode, options = "reflect", {"reflect_type": "odd"}
    return xp.pad(arrays[0], widths, mode, **options)


def _tiled(case: Case, xp: Any, arrays: list[Any]) -> Any:
    x = arrays[0]
    tile = tuple([case.pick(1, 2, 3) for _ in x.shape])
    what = case.pick("stack", "map", "reduce")
    if xp is ta:
        grid = ta.tiles(x, tile)
        return grid.stack() if what == "stack" else grid.map(ta.square) if what == "map" else grid.reduce(ta.sum)
    if what == "map":
        return np.square(x)
    counts = [-(-n // size) for n, size in zip(x.shape, tile, strict=True)]
    wide = np.pad(x, [(0, c * size - n) for n, c, size in zip(x.shape, counts, tile, strict=True)])
    pairs = [size for pair in zip(counts, tile, strict=True) for size in pair]
    stack = wide.reshape(pairs).transpose(*range(0, 2 * x.ndim, 2), *range(1, 2 * x.ndim, 2))
    return stack if what == "stack" else np.sum(stack, axis=tuple(range(-x.ndim, 0)))


SUBSCRIPTS = {
    0: ("->", ",->"),
    1: ("i->", "i,i->", "i,i->i", "i,j->ji"),
    2: ("ij->ji", "ij->j", "ij,ij->i", "ij,kj->ik", "ij,ij,ij->", "...j->..."),
    3: ("ijk->kij", "ijk,ijk->k", "ijk,ljk->il", "i...->...i", "ijk,imk->ijm"),
}


def _einsum(case: Case, xp: Any, arrays: list[Any]) -> Any:
    text = case.pick(*SUBSCRIPTS[arrays[0].ndim])
    return xp.einsum(text, *[arrays[0]] * (1 + text.count(",")))


# --- blocks and scales ------------------------------------------------------------------------------------------------


def _quantized(case: Case, xp: Any, arrays: list[Any]) -> Any:
    x = arrays[0]
    kind, mode = case.pick(*quantization.CASES), case.pick("rn", "rz")
    options, sizes = case.pick(*_blocks(x.shape))
    what = case.pick("values", "scales", "dequantized")
    packed = kind.dtype == "float4_e2m1fn" and bool(x.shape[-1:]) and x.shape[-1] % 2 == 0 and case.pick(True, False)
    if xp is ta:
        found = ta.quantize(
            x, kind.dtype, scale=kind.scale, scale_rounding=kind.scale_rounding, rounding=mode, packed=packed, **options
        )
        if what == "dequantized":
            return ta.dequantize(*found, packed=packed, **options)
        values = ta.unpack_float4(found.values) if packed else found.values
        return ta.astype(values if what == "values" else found.scales, "float32")
    if not x.size or not np.isfinite(x).all():
        raise ValueError("the formula takes finite numbers")
    values, scales, total = quantization.quantized(x.astype("float32"), sizes, kind, mode)
    values, scales = values.astype("float32"), scales.astype("float32")
    if what != "dequantized":
        return values if what == "values" else scales
    factors = scales if total is None else scales * np.float32(float(total))
    for axis, size in enumerate(sizes):
        factors = np.repeat(factors, size, axis)
    return values * factors[tuple(map(slice, x.shape))]


def _blocks(shape: tuple[int, ...]) -> list[tuple[dict[str, Any], tuple[int, ...]]]:
    """Options of `quantize`, and the sizes of a block along all axes."""
    if not shape or 0 in shape:
        return [({}, shape)]
    ones = (1,) * (len(shape) - 1)
    return [({}, shape), ({"axis": -1}, (*ones, shape[-1])), ({"block": 2}, (*ones, 2)), ({"block": 1}, (*ones, 1))]


def _unpacked(case: Case, xp: Any, arrays: list[Any]) -> Any:
    codes = arrays[0] * 37 + case.pick(0, 11, 90)
    if case.pick(0, 1):
        codes = codes[..., ::-1]
    if xp is ta:
        return ta.astype(ta.unpack_float4(ta.astype(codes, "uint8").view(ta.float4_e2m1fn_x2)), "float32")
    both = np.stack([codes & 15, codes >> 4 & 15], -1).astype("uint8").view(ml_dtypes.float4_e2m1fn)
    return both.astype("float32").reshape(*codes.shape[:-1], -1)


# --- programs ---------------------------------------------------------------------------------------------------------

PROGRAMS: tuple[Callable[..., Any], ...] = (
    lambda xp, x, y: xp.where(x > y, x * 2, y),
    lambda xp, x, y: xp.maximum(x, y) * 2 + xp.minimum(x, y),
    lambda xp, x, y: xp.sum(x + y, axis=-1) if x.ndim or y.ndim else x,
    lambda xp, x, y: xp.max(x * 1, axis=-1, keepdims=True) + y if x.ndim and x.shape[-1] else x,
    lambda xp, x, y: xp.sqrt(x * x * 4) * y,  # exact in every dtype
    lambda xp, x, y: x.astype("float32") * 0.5 + y[..., ::-1] if y.ndim else x,
    lambda xp, x, y: xp.logical_and(x > 0, xp.isfinite(y)) | (x == y),
    lambda xp, x, y: -(x + 1) * (y + 2) - x,
    lambda xp, x, y: xp.reshape(x.T, (-1,)) * 2 if x.ndim else x + y,
)


def _program(case: Case, xp: Any) -> Callable[[Any, Any], Any]:
    return partial(case.pick(*PROGRAMS), xp)


def _fused(case: Case, xp: Any, arrays: list[Any]) -> Any:
    program = _program(case, xp)
    return (ta.fuse(program) if xp is ta else program)(*arrays)


def _recorded(case: Case, xp: Any, arrays: list[Any]) -> Any:
    program = _program(case, xp)
    if xp is np:
        return program(*arrays)
    with ta.lazy(operations=case.pick(1, 3, 64)):
        return program(*arrays)


def _of_lists(case: Case, xp: Any, arrays: list[Any]) -> Any:
    x, y = arrays
    program = _program(case, xp)
    first, second = [x, y, x], [y, x, y]
    found = ta.foreach(program, first, second) if xp is ta else list(map(program, first, second))
    return _flat(xp, found)


# --- gradients --------------------------------------------------------------------------------------------------------


def _summed_to(gradient: np.ndarray, like: np.ndarray) -> np.ndarray:
    """A gradient summed over the axes along which an operand was repeated, in its dtype."""
    gradient = gradient.sum(tuple(range(gradient.ndim - like.ndim)), "float64")
    ones = tuple([axis for axis, size in enumerate(like.shape) if size == 1 != gradient.shape[axis]])
    return gradient.sum(ones, "float64", keepdims=True).astype(like.dtype)


def _of_two(case: Case, xp: Any, arrays: list[Any]) -> Any:
    kind, wanted = case.pick("product", "where", "maximum", "sum"), case.pick(0, 1)
    if xp is ta:
        losses: dict[str, Callable[..., Any]] = {
            "product": lambda x, y: ta.sum(x * y),
            "where": lambda x, y: ta.sum(ta.where(x > 0, x * 3, y)),
            "maximum": lambda x, y: ta.sum(ta.maximum(x, y + 0.25)),
            "sum": lambda x, y: ta.sum(ta.sum(x * 2 - y, axis=-1) * 0.5) if arrays[0].ndim else ta.sum(x - y),
        }
        if case.pick(0, 1):
            return ta.grad(ta.fuse(losses[kind]), wanted)(*arrays)
        return ta.grad(losses[kind], wanted)(*arrays)
    x, y = np.broadcast_arrays(*arrays)
    ones, other = np.ones(x.shape), y.astype("float64") + 0.25
    share = ((x > other) + (x >= other).astype("float64")) / 2  # infinities may be equal
    if kind == "maximum" and np.isnan(x + y).any():
        raise ValueError("the formula takes no NaN")
    slopes = {
        "product": (y, x),
        "where": (np.where(x > 0, 3, 0), np.where(x > 0, 0, 1)),
        "maximum": (share, 1 - share),
        "sum": (ones, -ones / 2) if arrays[0].ndim else (ones, -ones),
    }
    return _summed_to(slopes[kind][wanted].astype("float64"), arrays[wanted])


def _of_one(case: Case, xp: Any, arrays: list[Any]) -> Any:
    x, kind, axis = arrays[0], case.pick("sort", "cumsum", "take", "diff", "square"), case.axis()
    size = x.shape[axis] if x.ndim else 0
    if not size:
        raise ValueError("the formula takes an axis with elements") if xp is np else ta.ShapeError("no axis")
    weights = np.arange(1.0, size + 1).reshape([-1 if each == axis % x.ndim else 1 for each in range(x.ndim)])
    places = [case.pick(*range(-size, size)) for _ in range(3)]
    if xp is ta:
        w = ta.asarray(weights, dtype=x.dtype, device=case.device)
        losses: dict[str, Callable[[Any], Any]] = {
            "sort": lambda x: ta.sum(ta.sort(x, axis=axis) * w),
            "cumsum": lambda x: ta.sum(ta.cumulative_sum(x, axis=axis)),
            "take": lambda x: ta.sum(ta.take(x, ta.asarray(places, device=case.device), axis=axis) * 2),
            "diff": lambda x: ta.sum(ta.diff(x, axis=axis)),
            "square": lambda x: ta.sum(ta.square(x) * w),
        }
        return ta.grad(losses[kind])(x)
    slopes = np.zeros(x.shape)
    along = np.moveaxis(slopes, axis, 0)
    if kind == "sort":
        np.put_along_axis(slopes, np.argsort(x, axis=axis, kind="stable"), np.broadcast_to(weights, x.shape), axis)
    elif kind == "cumsum":
        slopes += np.flip(weights, axis)
    elif kind == "take":
        np.add.at(along, places, 2)
    elif kind == "diff" and size > 1:
        along[0], along[-1] = -1, 1
    elif kind == "square":
        slopes = 2 * x.astype("float64") * weights
    return slopes.astype(x.dtype)


CALLS: dict[str, tuple[Call, tuple[str, ...], int, bool]] = {
    "take_along_axis": (_along, MOVED, 1, True),
    "top_k": (_top, REAL, 1, True),
    "partition": (_kth, REAL, 1, True),
    "searchsorted of two": (_places, REAL, 2, True),
    "histogram": (_histogram, (*WHOLE, *FLOATS[1:]), 2, False),
    "bincount": (_counted, ("int8", "uint8", "int32", "int64"), 1, True),
    "pad of modes": (_padded, REAL[1:], 1, True),
    "tiles": (_tiled, REAL, 1, True),
    "einsum": (_einsum, (*WHOLE, *FLOATS), 1, True),
    "quantize": (_quantized, ("float16", "float32"), 1, True),
    "unpack_float4": (_unpacked, ("int32", "int64"), 1, True),
    "fuse": (_fused, SIGNED, 2, False),
    "lazy": (_recorded, SIGNED, 2, False),
    "foreach": (_of_lists, SIGNED[1:], 2, False),
    "grad of two": (_of_two, FLOATS, 2, True),
    "grad of one": (_of_one, FLOATS, 1, True),
}
"""As in `differential`."""
