"""The layout of a Fourier transform for cuFFT, found from strides: pure integers, no library.

cuFFT reads element (i, j, k) of transform b at ``b * distance + ((i * n1 + j) * n2 + k) * step``, where n1 and n2 are
the sizes of the box of memory that a transform lies in. So each stride must be a multiple of the next one, and all
transforms of a call lie at one distance. Other axes are one call for each of their indices.

>>> found = placed("c2c", (8,), (1,), (1,), ((3, 8, 8), (5, 24, 24)))
>>> found.source, found.batch
(Box(sizes=(8,), step=1, distance=8), 15)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

Ints = tuple[int, ...]
Axis = tuple[int, int, int]
"""An axis along which nothing is transformed: its size, and the strides of the operand and of the result."""

MOST_AXES = 3
"""The axes of one transform."""
MOST_CALLS = 16
"""The calls of one transform; with more, a copy is cheaper."""


class Box(NamedTuple):
    """Where transforms lie in memory, in elements.

    Attributes
    ----------
    sizes : tuple of int
        The sizes of the box that a transform lies in; the first one has no influence.
    step : int
        The distance of neighbours along the last axis.
    distance : int
        The distance of transforms.
    """

    sizes: Ints
    step: int
    distance: int


class Placed(NamedTuple):
    """A transform: its sizes, where operand and result lie, the transforms of a call, and where each call begins."""

    sizes: Ints
    source: Box
    target: Box
    batch: int
    offsets: tuple[tuple[int, int], ...]


def halved(sizes: Ints) -> Ints:
    """Return the sizes of the complex half of a transform of real numbers."""
    return (*sizes[:-1], sizes[-1] // 2 + 1)


def box(sizes: Ints, strides: Ints) -> tuple[Ints, int] | None:
    """Return the sizes of the box of memory that elements lie in, and their step; None if cuFFT cannot read them.

    Strides along axes of size 1 have no influence.

    >>> box((4, 5), (10, 2)), box((4, 5), (10, 3)), box((4, 5), (1, 4)), box((1, 5), (0, 7))
    (((4, 5), 2), None, None, ((1, 5), 7))
    >>> box((4, 5), (3, 1)), box((4, 5), (5, 0)), box((4,), (-1,))  # overlapping, broadcast, reversed
    (None, None, None)
    """
    found: list[int] = []
    step, below = 0, 0
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if not found:
            step = below = stride if size > 1 else 1
        else:
            reached = below * found.pop()
            stride = stride if size > 1 else reached
            if below <= 0 or stride % below or stride < reached:
                return None
            found.append(stride // below)
            below = stride
        found.append(size)
    return (tuple(reversed(found)), step) if step > 0 else None


def placed(kind: str, sizes: Ints, source: Ints, target: Ints, others: Sequence[Axis]) -> Placed | None:
    """Return how cuFFT transforms elements as they lie; None if it cannot, or takes more than `MOST_CALLS` calls.

    Parameters
    ----------
    kind : str
        "c2c", or "r2c" and "c2r" if the result or the operand has the first half of the last axis.
    sizes : tuple of int
        Those of the transform, one to `MOST_AXES`.
    source, target : tuple of int
        The strides of the operand and of the result along its axes.
    others : sequence of (int, int, int)
        The other axes.
    """
    read = box(halved(sizes) if kind == "c2r" else sizes, source)
    written = box(halved(sizes) if kind == "r2c" else sizes, target)
    axes = _merged([axis for axis in others if axis[0] > 1])
    if read is None or written is None or any(first <= 0 or second <= 0 for _, first, second in axes):
        return None
    *rest, (count, distance_read, distance_written) = sorted(axes) or [(1, 0, 0)]
    if prod([size for size, _, _ in rest]) > MOST_CALLS:
        return None
    indices = itertools.product(*[range(size) for size, _, _ in rest])
    offsets = [
        (sum(i * axis[1] for i, axis in zip(index, rest)), sum(i * axis[2] for i, axis in zip(index, rest)))
        for index in indices
    ]
    if any((first % 2 and kind == "r2c") or (second % 2 and kind == "c2r") for first, second in offsets):
        return None  # the library reads and writes real numbers in pairs
    boxes = Box(*read, distance_read or prod(read[0])), Box(*written, distance_written or prod(written[0]))
    return Placed(sizes, *boxes, count, tuple(offsets))


def _merged(axes: list[Axis]) -> list[Axis]:
    """Merge axes that operand and result walk as one."""
    found: list[Axis] = []
    for size, first, second in sorted(axes, key=lambda axis: -axis[2]):
        if found and found[-1][1:] == (first * size, second * size):
            found[-1] = found[-1][0] * size, first, second
        else:
            found.append((size, first, second))
    return found
