"""Views and shapes by NumPy's other names."""

from __future__ import annotations

import math
from typing import Any

from tilearray.arrays.array import Array
from tilearray.errors import OperandError, ShapeError, shown
from tilearray.functions.arguments import as_array
from tilearray.functions.manipulation import derived, flip, moveaxis, reshape
from tilearray.functions.orders import Order
from tilearray.functions.searching import nonzero
from tilearray.geometry.layout import Layout
from tilearray.geometry.shapes import as_int, normalize_axes, normalize_axis


def ravel(x: Any, order: Order = "C") -> Array:
    """Return the elements as one axis: a view if the strides allow it, else a copy.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.ravel(ta.asarray([[1, 2], [3, 4]]), "F")
    Array([1, 3, 2, 4], dtype=int64, device='cpu')
    """
    array: Array = as_array("ravel", x)
    return array.ravel("K") if order == "K" else reshape(array, -1, order)


def shape(x: Any) -> tuple[int, ...]:
    """Return the shape of an array, or of Python data.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.shape([[1, 2, 3]])
    (1, 3)
    """
    return as_array("shape", x).shape


def ndim(x: Any) -> int:
    """Return the number of axes of an array, or of Python data.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.ndim([[1, 2, 3]])
    2
    """
    return as_array("ndim", x).ndim


def size(x: Any, axis: Any = None) -> int:
    """Return the number of elements, of all axes or of some.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.size([[1, 2, 3]]), ta.size([[1, 2, 3]], 1)
    (3, 3)
    """
    array = as_array("size", x)
    if axis is None:
        return array.size
    return math.prod([array.shape[place] for place in normalize_axes(axis, array.ndim, "size")])


def swapaxes(x: Any, axis1: int, axis2: int) -> Array:
    """Return the view with two axes exchanged.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.swapaxes(ta.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    return derived("swapaxes", x, _exchanged, axis1, axis2)


def _exchanged(layout: Layout, axis1: Any, axis2: Any) -> Layout:
    axes = list(range(layout.ndim))
    first, second = [normalize_axis(axis, layout.ndim, "swapaxes") for axis in (axis1, axis2)]
    axes[first], axes[second] = second, first
    return layout.permute(axes)


def rollaxis(x: Any, axis: int, start: int = 0) -> Array:
    """Return the view with an axis moved before another one; `moveaxis` is the clearer name.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.rollaxis(ta.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    array = as_array("rollaxis", x)
    place = normalize_axis(axis, array.ndim, "rollaxis")
    target = array.ndim if start == array.ndim else normalize_axis(start, array.ndim, "rollaxis")
    return moveaxis(array, place, target - 1 if place < target else target)


def fliplr(x: Any) -> Array:
    """Return the view with the second axis reversed.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fliplr(ta.asarray([[1, 2], [3, 4]])).tolist()
    [[2, 1], [4, 3]]
    """
    return flip(_matrix("fliplr", x, 2), 1)


def flipud(x: Any) -> Array:
    """Return the view with the first axis reversed.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.flipud(ta.asarray([[1, 2], [3, 4]])).tolist()
    [[3, 4], [1, 2]]
    """
    return flip(_matrix("flipud", x, 1), 0)


def _matrix(function: str, x: Any, least: int) -> Array:
    array = as_array(function, x)
    if array.ndim < least:
        raise ShapeError(f"{function}: expected at least {least} axes, got shape {array.shape}; write ta.flip(x, axis)")
    return array


def rot90(x: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Return the view rotated by 90 degrees, `k` times, from the first of two axes towards the second.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.rot90(ta.asarray([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    array, turns = as_array("rot90", x), as_int(k, "rot90", "k") % 4
    first, second = normalize_axes(axes, array.ndim, "rot90")
    if turns == 0:
        return array
    if turns == 2:
        return flip(array, (first, second))
    if turns == 1:
        return swapaxes(flip(array, second), first, second)
    return flip(swapaxes(array, first, second), second)


def trim_zeros(x: Any, trim: str = "fb") -> Array:
    """Return the view of a 1-d array without zeros at its ends; "f" trims the front, "b" the back.

    Where the zeros end is read on the host.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.trim_zeros(ta.asarray([0, 1, 0, 2, 0]))
    Array([1, 0, 2], dtype=int64, device='cpu')
    """
    array = as_array("trim_zeros", x)
    if type(trim) is not str or set(trim.lower()) - {"f", "b"}:
        raise OperandError(f"trim_zeros: expected trim of 'f' and 'b', got {shown(trim)}; write trim='fb'")
    if array.ndim != 1:
        raise ShapeError(f"trim_zeros: expected a 1-d array, got shape {array.shape}; write ta.reshape(x, -1)")
    places = nonzero(array)[0]
    if not places.size:
        return array[:0]
    words = trim.lower()
    start = places[0].item() if "f" in words else 0
    return array[start : places[-1].item() + 1 if "b" in words else None]
