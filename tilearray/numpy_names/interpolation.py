"""Piecewise linear interpolation: NumPy's function on the host, one launch on a GPU, operations in `grad` and `vjp`."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.engine.context import semantics
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.errors import ShapeError
from tilearray.functions.arguments import as_array, check_kind, number_of
from tilearray.functions.conversion import astype
from tilearray.functions.distinct import taken
from tilearray.functions.indexing.take import take
from tilearray.functions.joining import concat
from tilearray.functions.manipulation import dense, new_like
from tilearray.functions.searching import argsort, searchsorted
from tilearray.geometry.layout import Layout
from tilearray.numpy_names.on_device import there
from tilearray.numpy_names.through_numpy import by_numpy
from tilearray.ops.arithmetic import (
    add,
    choose,
    equal,
    greater,
    greater_equal,
    less,
    minimum,
    remainder,
    subtract,
)
from tilearray.ops.composed import clip
from tilearray.ops.promotion_methods import REAL_PART
from tilearray.ops.row import REAL


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Array:
    """Return a piecewise linear function of `x`, which is `fp` at the increasing places `xp`; computed in float64.

    Parameters
    ----------
    x : Array
    xp, fp : Array
        Of one axis and of one size, at least 1; `fp` may be complex. Whether `xp` increases is not checked.
    left, right : number, optional
        The values before the first place and after the last one; None are the first and the last value.
    period : number, optional
        The function repeats; `xp` need not increase then, and `left` and `right` do not count.

    Raises
    ------
    ShapeError
        If there are no places, or not as many values as places, or the period is 0.
    DTypeError
        If `x` or `xp` is complex.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.interp([0.5, 1.5], [0, 1, 2], [10.0, 20.0, 40.0])
    Array([15., 30.], dtype=float32, device='cpu')
    """
    left, right = (number_of("interp", one) if isinstance(one, Array) else one for one in (left, right))
    for each in (x, xp):
        check_kind("interp", as_array("interp", each).dtype, REAL)
    given = there("interp", (x, xp, fp))
    if given is None:
        return by_numpy("interp", (x, xp, fp), left, right, period)
    points, places, values = given.arrays
    if places.ndim != 1 or values.shape != places.shape or not places.size:
        raise ShapeError(
            f"interp: expected xp and fp of one axis, of one size and with elements, got shapes {places.shape} and "
            f"{values.shape}; write a value for each place"
        )
    with semantics("numpy"):
        if period is not None:
            points, places, values = _repeated(points, places, values, period)
            left = right = None
        if any(x.device.functions is not None for x in (points, places, values)):
            return given.finished(_composed(points, places, values, left, right))
        if dtypes.info(values.dtype).kind != "complex":
            return _interpolated(points, places, values, left, right, REAL_PART.get(given.target, given.target))
        found = new_like(points, points.shape, dtypes.complex128)
        sides = [None if one is None else complex(one) for one in (left, right)]
        for part, of_values, name in ((found.real, values.real, "real"), (found.imag, values.imag, "imag")):
            before, after = (None if one is None else getattr(one, name) for one in sides)
            part[...] = _interpolated(points, places, of_values, before, after, dtypes.float64)
        return given.finished(found)


def _repeated(x: Array, places: Array, values: Array, period: Any) -> tuple[Array, Array, Array]:
    """Points and places within one period; the places sorted, with the neighbours beyond its ends."""
    if period == 0:
        raise ShapeError("interp: expected a period other than 0, got 0; write period=None for a function without one")
    period = period if period > 0 else -period
    within = remainder(astype(places, dtypes.float64), period)
    order = argsort(within)
    within, values = taken(within, order), taken(values, order)
    beside = [subtract(within[-1:], period), within, add(within[:1], period)]
    joined = concat([values[-1:], values, values[:1]])
    return remainder(astype(x, dtypes.float64), period), concat(beside), joined


def _interpolated(x: Array, places: Array, values: Array, left: Any, right: Any, target: np.dtype) -> Array:
    """The function at points, computed in float64 and rounded to a dtype, in one launch."""
    found = new_like(x, x.shape, target)
    if not x.size:
        return found
    everywhere = Layout(x.shape, (0,) * x.ndim)
    memory = [dense(astype(one, dtypes.float64, copy=False))._view(everywhere) for one in (places, values)]
    sides = [float(one) for one in (left, right) if one is not None]
    operation = _interpolating(x.dtype, target, left is None, right is None)
    return run_fixed(operation, [*memory, places.size, *sides, x], found)


def _composed(x: Array, places: Array, values: Array, left: Any, right: Any) -> Array:
    """The function at points, of operations that have derivatives; in float64 or complex128."""
    points, places = (astype(one, dtypes.float64, copy=False) for one in (x, places))
    values = astype(values, np.result_type(values.dtype, np.float64), copy=False)
    after = searchsorted(places, points, "right")
    low = clip(after - 1, 0, max(places.size - 2, 0))
    high = minimum(low + 1, places.size - 1)
    (x0, x1), (y0, y1) = [[take(one, place) for place in (low, high)] for one in (places, values)]
    width = choose(equal(x0, x1), 1.0, x1 - x0)
    found = (y1 - y0) / width * (points - x0) + y0
    found = choose(greater_equal(points, places[-1]), values[-1], found)
    found = choose(less(points, places[0]), values[0] if left is None else left, found)
    return choose(greater(points, places[-1]), values[-1] if right is None else right, found)


@cache
def _interpolating(dtype: np.dtype, target: np.dtype, extends_left: bool, extends_right: bool) -> FixedOperation:
    """Return the operation of places, values, their number, the values beyond ends that do not extend, and points."""
    builder, double = ExpressionBuilder(), dtypes.float64
    places, values, count = builder.memory(double), builder.memory(double), builder.number(dtypes.int64)
    sides = [None if extends else builder.number(double) for extends in (extends_left, extends_right)]
    x = builder.cast(builder.array(dtype), dtype, double)
    after = builder.node("search", places, count, x, "right")

    def at(name: str, text: str, *given: int) -> int:
        return builder.call(name, given, dtypes.int64, text)

    def chosen(text: str, *given: int) -> int:
        return builder.call("chosen", given, double, text)

    low = at("low", "tl.minimum(tl.maximum({x} - 1, 0), tl.maximum({y} - 2, 0))", after, count)
    high = at("high", "tl.minimum({x} + 1, {y} - 1)", low, count)
    start, stop = at("start", "{x} * 0", after), at("stop", "{x} * 0 + ({y} - 1)", after, count)
    x0, x1, first, last = (builder.node("gather", places, place) for place in (low, high, start, stop))
    y0, y1, begin, end = (builder.node("gather", values, place) for place in (low, high, start, stop))
    before, beyond = (one if side is None else side for one, side in ((begin, sides[0]), (end, sides[1])))
    slope = chosen("({x} - {y}) / ({z} - {w})", y1, y0, x1, x0)
    found = chosen("{x} * ({y} - {z}) + {w}", slope, x, x0, y0)
    other = chosen("{x} * ({y} - {z}) + {w}", slope, x, x1, y1)
    found = chosen("tl.where({x} == {x}, {x}, {y})", found, other)
    found = chosen("tl.where(({x} != {x}) & ({y} == {z}), {y}, {x})", found, y0, y1)
    found = chosen("tl.where({y} == {z}, {w}, {x})", found, x, x0, y0)
    found = chosen("tl.where({y} == {z}, {w}, {x})", found, x, last, end)
    found = chosen("tl.where({y} < {z}, {w}, {x})", found, x, first, before)
    found = chosen("tl.where({y} > {z}, {w}, {x})", found, x, last, beyond)
    found = chosen("tl.where({y} == {y}, {x}, tl.where({w} == 1, {z}, {y}))", found, x, end, count)
    return FixedOperation("interp", builder.build([builder.cast(found, double, target)], [target]))
