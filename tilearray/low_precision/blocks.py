"""Which elements share a scale: the block sizes along each axis, and views of an array that separate its blocks.

For a shape (16, 96) and blocks of 32 along the last axis the sizes are (1, 32): the scales have the shape (16, 3). The
view has an axis for each place in a block: (16, 3, 32). The last axis is reduced. An axis that is one block, or whose
blocks have one element, is not split.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, NamedTuple, cast

from tilearray.errors import OperandError, ShapeError, shown
from tilearray.geometry.shapes import as_int, normalize_axis

Ints = tuple[int, ...]


class Split(NamedTuple):
    """A view with blocks as axes: its shape, the axes that a block has, and the shape of scales for it."""

    shape: Ints
    axes: Ints
    scales: Ints


def block_sizes(shape: Ints, axis: Any, block: Any, function: str) -> Ints:
    """Return the size of a block along each axis of a shape.

    Raises
    ------
    OperandError, ShapeError, AxisError
        If a block is not an int above 0 or None, an axis occurs twice or does not exist, or there are more blocks than
        axes.

    Examples
    --------
    >>> block_sizes((16, 96), None, 32, "quantize"), block_sizes((16, 96), 0, None, "quantize")
    ((1, 32), (16, 1))
    """
    if axis is None and block is None:
        return tuple([max(extent, 1) for extent in shape])
    sizes = _sequence(block)
    places = _sequence(axis) if axis is not None else list(range(-len(sizes), 0))
    if block is None:
        sizes = [None] * len(places)
    if len(places) != len(sizes):
        raise ShapeError(
            f"{function}: expected as many blocks as axes, got block={shown(block)} and axis={shown(axis)}; write one "
            f"size for each axis, or None for all of it"
        )
    found = [1] * len(shape)
    taken = [normalize_axis(place, len(shape), function) for place in places]
    if len(set(taken)) < len(taken):
        raise ShapeError(f"{function}: expected each axis once, got axis={shown(axis)}; write different axes")
    for place, size in zip(taken, sizes, strict=True):
        found[place] = max(shape[place], 1) if size is None else _size(size, function)
    return tuple(found)


def _sequence(value: Any) -> list[Any]:
    return list(cast("Sequence[Any]", value)) if isinstance(value, list | tuple) else [value]


def _size(size: Any, function: str) -> int:
    found = as_int(size, function, "block")
    if found < 1:
        raise OperandError(f"{function}: expected a block of 1 or more elements, got {found}; write block=32")
    return found


def sizes_of_scales(shape: Ints, scales: Ints, function: str) -> Ints:
    """Return the sizes of blocks that give scales of a shape.

    Raises
    ------
    ShapeError
        If no extent of the scales divides that of the values.

    Examples
    --------
    >>> sizes_of_scales((16, 96), (16, 3), "dequantize")
    (1, 32)
    """
    if len(shape) != len(scales) or any(many % max(few, 1) for many, few in zip(shape, scales, strict=False)):
        raise ShapeError(
            f"{function}: expected scales whose extents divide those of values of shape {shape}, got shape {scales}; "
            f"write block=, and axis= if there are several"
        )
    return tuple([max(many // max(few, 1), 1) for many, few in zip(shape, scales, strict=True)])


def scales_shape(shape: Ints, sizes: Ints) -> Ints:
    """Return the shape of the scales; the last block along an axis may be smaller.

    Examples
    --------
    >>> scales_shape((16, 100), (1, 32))
    (16, 4)
    """
    return tuple([-(-extent // size) for extent, size in zip(shape, sizes, strict=True)])


def split(shape: Ints, sizes: Ints) -> Split:
    """Return how an array of a shape is viewed as blocks, which must divide it.

    Examples
    --------
    >>> split((16, 96), (1, 32))
    Split(shape=(16, 3, 32), axes=(2,), scales=(16, 3, 1))
    """
    parts: list[int] = []
    scales: list[int] = []
    axes: list[int] = []
    for extent, size in zip(shape, sizes, strict=True):
        if 1 < size < extent:
            parts.append(extent // size)
            scales.append(extent // size)
        if size > 1:
            axes.append(len(parts))
        parts.append(min(size, extent) if size > 1 else extent)
        scales.append(1 if size > 1 else extent)
    return Split(tuple(parts), tuple(axes), tuple(scales))


def regions(shape: Ints, sizes: Ints) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Yield the parts of an array that blocks of one size divide, and the parts of the scales: one, if all do.

    Examples
    --------
    >>> [values[1] for values, _ in regions((16, 100), (1, 32))]
    [slice(0, 96, None), slice(96, 100, None)]
    """
    choices: list[list[tuple[slice, slice]]] = []
    for extent, size in zip(shape, sizes, strict=True):
        whole = extent // size
        both = [(slice(0, whole * size), slice(0, whole)), (slice(whole * size, extent), slice(whole, whole + 1))]
        choices.append([pair for pair in both if pair[0].start < pair[0].stop])
    count = prod(len(choice) for choice in choices)
    for number in range(count):
        chosen: list[tuple[slice, slice]] = []
        for choice in reversed(choices):
            number, place = divmod(number, len(choice))
            chosen.insert(0, choice[place])
        yield tuple([pair[0] for pair in chosen]), tuple([pair[1] for pair in chosen])


def sizes_within(shape: Sequence[int], sizes: Ints) -> Ints:
    """Return the sizes of the blocks of a region: no block exceeds it."""
    return tuple([min(size, max(extent, 1)) for extent, size in zip(shape, sizes, strict=True)])
