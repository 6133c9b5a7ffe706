"""Basic indexing: the shape and strides of the selection that an index key makes from a shape with strides.

A key is an int, a slice, ``...``, ``None`` or a tuple of these. One pass handles the entries in their order: an int
moves the origin and drops the axis, a slice moves the origin and multiplies the stride, and ``None`` adds an axis of
size 1 and stride 0. This module does not handle array keys. It rejects bools: `True` as a key is a mask, not a 1.

Python's own rules apply: slices are clipped, and negative indices count from the end. If the selection is empty, the
offset has no meaning and can be outside of the array. Every entry is read once, because an ``__index__`` can return
another value the next time.

>>> select((4, 6), (6, 1), (slice(None, None, -2), 3))
((2,), (-12,), 21)
"""

from __future__ import annotations

from operator import index
from typing import Any, NoReturn

from tilearray.errors import IndexingError, shown

Ints = tuple[int, ...]


def select(shape: Ints, strides: Ints, key: Any) -> tuple[Ints, Ints, int]:
    """Return shape, strides and element offset of the selection that `key` makes.

    Raises
    ------
    IndexingError
        If an index is out of bounds, the key has more indices than axes, or an entry is of another kind.

    Examples
    --------
    >>> select((4, 6), (6, 1), (..., None, -1))
    ((4, 1), (6, 0), 5)
    """
    keys: tuple[Any, ...] = key if isinstance(key, tuple) else (key,)  # pyright: ignore[reportUnknownVariableType]
    ndim = len(shape)
    sizes: list[int] = []
    steps: list[int] = []
    axis = offset = 0
    for entry in keys:
        if entry is None:
            sizes.append(1)
            steps.append(0)
        elif entry is Ellipsis:
            end = _axis_after_ellipsis(keys, axis, shape)
            sizes.extend(shape[axis:end])
            steps.extend(strides[axis:end])
            axis = end
        elif axis == ndim:
            _raise_too_many(keys, shape)
        else:
            stride = strides[axis]
            if type(entry) is slice:
                start, size, step = _span(entry, shape[axis], axis)
                sizes.append(size)
                steps.append(step * stride if size > 1 else stride)  # an unused step can exceed every integer type
            else:
                start = _position(entry, shape[axis], axis)
            offset += start * stride
            axis += 1
    return tuple(sizes) + shape[axis:], tuple(steps) + strides[axis:], offset


def _span(entry: slice[Any, Any, Any], size: int, axis: int) -> tuple[int, int, int]:
    """Return (start, count, step) of a slice over an axis of `size`."""
    try:
        start, stop, step = entry.indices(size)
    except (TypeError, ValueError):
        raise IndexingError(
            f"indexing: expected a slice of integers with a step other than 0 for axis {axis}, got {entry}; "
            "write int(n) for its parts, and omit the step to take every element"
        ) from None
    return start, len(range(start, stop, step)), step


def _position(entry: Any, size: int, axis: int) -> int:
    """Return an integer index counted from the front of an axis of `size`."""
    position = entry
    if type(entry) is not int:
        try:
            position = index(entry)
        except TypeError:
            _raise_kind(entry, axis)
        if isinstance(entry, bool):
            _raise_kind(entry, axis)
    if not -size <= position < size:
        expected = f"{-size} <= index < {size}" if size else "no index at all"
        raise IndexingError(
            f"indexing: expected {expected} for axis {axis} of size {size}, got {position}: index {position} is out of "
            f"bounds for axis {axis} with size {size}; write a slice if an index can be out of bounds: slices clip"
        )
    return position + size if position < 0 else position


def _axis_after_ellipsis(keys: tuple[object, ...], axis: int, shape: Ints) -> int:
    """Return the first axis after the axes that ... replaces. They start at `axis`."""
    indices = [entry for entry in keys if entry is not None]
    places = [place for place, entry in enumerate(indices) if entry is Ellipsis]
    if len(places) > 1:
        raise IndexingError(
            f"indexing: expected at most one ... in an index, got {len(places)}; write : for each further axis"
        )
    end = len(shape) - (len(indices) - 1 - places[0])
    if end < axis:
        _raise_too_many(keys, shape)
    return end


def _raise_too_many(keys: tuple[object, ...], shape: Ints) -> NoReturn:
    count = sum(entry is not None and entry is not Ellipsis for entry in keys)
    raise IndexingError(
        f"indexing: expected at most {len(shape)} indices for shape {shape}, got {count}: too many indices for "
        "array; write None for each new axis of size 1"
    )


def _raise_kind(entry: object, axis: int) -> NoReturn:
    if isinstance(entry, float):
        advice = f"write int({entry}) if this is the index"
    elif isinstance(entry, bool):
        advice = f"write {int(entry)} for the index, or an array of dtype bool for a mask"
    else:
        advice = "write an integer array to select several elements"
    raise IndexingError(
        f"indexing: expected an int, a slice, ... or None for axis {axis}, got {shown(entry)} "
        f"({type(entry).__name__}); {advice}"
    )
