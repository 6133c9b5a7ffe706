"""The modes of `pad` that compute elements, on a device that runs expressions: one axis after the other, as NumPy does.

What lies before and after an axis is computed of the array that the axes before it made, in NumPy's dtypes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.fills import arange
from tilearray.engine.context import semantics
from tilearray.errors import OperandError, ShapeError, shown
from tilearray.functions.conversion import astype
from tilearray.functions.joining import concat
from tilearray.functions.manipulation import broadcast_to, flip, reshape
from tilearray.functions.reductions import max, mean, min
from tilearray.geometry.shapes import as_int
from tilearray.numpy_names.on_device import as_read
from tilearray.numpy_names.statistics import median
from tilearray.numpy_names.through_numpy import exact
from tilearray.ops.arithmetic import add, divide, multiply, subtract
from tilearray.ops.number_parts import floor, nearest

Sides = Callable[[Array, int, tuple[int, int], Any], tuple[Array, Array]]
"""Returns what lies before and after an array along an axis, of two widths and the options of the axis."""

_STATISTICS: dict[str, Any] = {"maximum": max, "minimum": min, "mean": mean, "median": median}
COMPUTED = frozenset({"linear_ramp", *_STATISTICS})
"""The modes beside "reflect" and "symmetric" of odd reflections."""


def padded(x: Array, widths: list[tuple[int, int]], mode: str, options: dict[str, Any]) -> Array:
    """Return a padded array, in the dtype of `x`.

    Parameters
    ----------
    x : Array
    widths : list of pairs of int
        How many elements before and after each axis.
    mode : str
        One of `COMPUTED`, or "reflect" or "symmetric" with ``reflect_type="odd"``.
    options : dict
        ``end_values``, ``stat_length`` or ``reflect_type``.

    Raises
    ------
    ShapeError
        If an axis without elements gets some, or an extreme is one of no elements.
    OperandError
        If an option is no number, or one of another mode.

    Examples
    --------
    >>> import tilearray as ta
    >>> padded(ta.asarray([4, 8]), [(2, 1)], "linear_ramp", {"end_values": 0}).tolist()
    [0, 2, 4, 8, 0]
    """
    for axis, (size, width) in enumerate(zip(x.shape, widths)):
        if not size and any(width):
            raise ShapeError(f"pad: can't extend empty axis {axis} by mode={mode!r}; write mode='constant'")
    sides, given = _sides(x, mode, dict(options))
    found = as_read("pad", x)
    with semantics("numpy"):
        for axis, (width, option) in enumerate(zip(widths, given)):
            if any(width):
                before, after = sides(found, axis, width, option)
                found = concat([astype(before, found.dtype), found, astype(after, found.dtype)], axis=axis)
    return astype(found, x.dtype, copy=found is x)


def _sides(x: Array, mode: str, options: dict[str, Any]) -> tuple[Sides, list[Any]]:
    """What computes both sides of an axis by a mode, and the options of each axis."""
    name = "end_values" if mode == "linear_ramp" else "stat_length" if mode in _STATISTICS else "reflect_type"
    given = options.pop(name, 0 if mode == "linear_ramp" else None)
    if options:
        raise OperandError(f"pad: expected no {', '.join(options)} for mode={mode!r}, got it; leave it out")
    if mode == "linear_ramp":
        return _ramps, _pairs(name, given, x.ndim)
    if mode in _STATISTICS:
        return _statistics(_STATISTICS[mode]), _pairs(name, given, x.ndim)
    return _odd_reflections(0 if mode == "symmetric" else 1), [size == 1 for size in x.shape]


def _pairs(name: str, given: Any, ndim: int) -> list[Any]:
    """A pair of numbers for each axis; of None, pairs of None."""
    try:
        pairs = np.broadcast_to(np.asarray(exact("pad", given), None if given is not None else object), (ndim, 2))
    except ValueError:
        raise ShapeError(
            f"pad: expected {name} as a number, a pair, or a pair for each of {ndim} axes, got {shown(given)}; "
            f"write [(before, after), ...]"
        ) from None
    if given is not None and pairs.dtype.kind not in "biufc":
        raise OperandError(f"pad: expected {name} as numbers, got {shown(given)}; write {name}=1")
    return pairs.tolist()


def _part(x: Array, axis: int, start: int | None, stop: int | None) -> Array:
    """A slice along an axis."""
    return x[(*(slice(None),) * axis, slice(start, stop))]


def _ramps(x: Array, axis: int, widths: tuple[int, int], ends: Any) -> tuple[Array, Array]:
    """Lines from the end values to the edges, in float64 or complex128; down to integers of integers."""
    kind = dtypes.info(x.dtype).kind
    wide = dtypes.complex128 if kind == "complex" else dtypes.float64
    lines: list[Array] = []
    for edge, width, end in zip((_part(x, axis, None, 1), _part(x, axis, -1, None)), widths, ends):
        place = arange(width, dtype=dtypes.float64, device=x.device)
        place = reshape(place, [width if other == axis else 1 for other in range(x.ndim)])
        step = divide(subtract(astype(edge, wide), end), width or 1)
        line = add(multiply(place, step), end)
        lines.append(floor(line) if kind in ("int", "uint") else line)
    return lines[0], flip(lines[1], axis=axis)


def _statistics(function: Any) -> Sides:
    def of_ends(x: Array, axis: int, widths: tuple[int, int], lengths: Any) -> tuple[Array, Array]:
        """A statistic of so many elements at each end, rounded to integers of integers."""
        size, found = x.shape[axis], list[Array]()
        for width, length, is_last in zip(widths, lengths, (False, True)):
            count = size if length is None else as_int(length, "pad", "stat_length")
            if count < 0 or (not count and function in (max, min)):
                raise ShapeError(f"pad: expected stat_length >= 1, got {count}; write stat_length=None for all")
            part = _part(x, axis, size - count if is_last and count < size else None, None if is_last else count)
            value: Array = function(part if count else _part(x, axis, 0, 0), axis=axis, keepdims=True)
            value = nearest(value) if dtypes.info(x.dtype).kind in ("int", "uint") else value
            found.append(broadcast_to(value, (*x.shape[:axis], width, *x.shape[axis + 1 :])))
        return found[0], found[1]

    return of_ends


def _odd_reflections(skipped: int) -> Sides:
    def reflected(x: Array, axis: int, widths: tuple[int, int], is_alone: bool) -> tuple[Array, Array]:
        """Elements mirrored at each end, and their values at the edge; again and again until there are enough.

        `skipped` is 1 if an edge is not mirrored. What is mirrored at once is a multiple of the first length.
        """
        size, (before, after) = x.shape[axis], widths
        if is_alone:
            shapes = [(*x.shape[:axis], width, *x.shape[axis + 1 :]) for width in widths]
            return broadcast_to(x, shapes[0]), broadcast_to(x, shapes[1])
        while before or after:
            length = x.shape[axis]
            most = (length - skipped) // (size - skipped) * (size - skipped)
            left, right = [width if width < most else most for width in (before, after)]
            first = flip(_part(x, axis, skipped, skipped + left), axis=axis)
            last = flip(_part(x, axis, length - skipped - right, length - skipped), axis=axis)
            first, last = (
                astype(subtract(multiply(edge, 2), mirrored), x.dtype)
                for edge, mirrored in ((_part(x, axis, None, 1), first), (_part(x, axis, -1, None), last))
            )
            x = concat([first, x, last], axis=axis)
            before, after = before - left, after - right
        return _part(x, axis, 0, widths[0]), _part(x, axis, widths[0] + size, None)

    return reflected
