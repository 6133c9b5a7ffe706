"""Walks: how a loop visits the elements of an array that was never stored, as indices instead of addresses.

An array in memory is visited by strides. A computed array that is not in memory has only indices. A walk says at which
index a loop starts, and by which step of the index each axis of the loop moves. A view of a computed array is a walk
(`walk_of_view`), and walks compose, so a view of a view of a computed array ends as strides of the arrays in memory
from which it is computed.

For example, ``t = a + b`` of shape (4, 6) is not stored, and ``t[1:, ::-2]`` starts at index (1, 5) and moves by (1, 0)
and (0, -2). An operand `b` of shape (6,) is then visited from element 5 by strides 0 and -2:

>>> t = Layout.of((4, 6))
>>> walk = walk_of_view(t, *t.index((slice(1, None), slice(None, None, -2))))
>>> walk
Walk(start=(1, 5), steps=((1, 0), (0, -2)))
>>> walk.broadcast((4, 6), (6,)).strided((1,))
(5, (0, -2))
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from tilearray.geometry.layout import Layout
from tilearray.geometry.strides import common_range, indices_of_slices

Ints = tuple[int, ...]


class Walk(NamedTuple):
    """A walk of a loop over the indices of an array.

    Attributes
    ----------
    start : tuple of int
        The index at which it starts.
    steps : tuple of tuple of int
        For each axis of the loop, the step of the index.
    """

    start: Ints
    steps: tuple[Ints, ...]

    def broadcast(self, shape: Ints, own: Ints) -> Walk:
        """Return the walk over an operand of shape `own` of a walk over the result of shape `shape`."""
        skipped = len(shape) - len(own)
        moves = [1 if size == shape[axis + skipped] else 0 for axis, size in enumerate(own)]

        def kept(index: Ints) -> Ints:
            return tuple([part * move for part, move in zip(index[skipped:], moves, strict=True)])

        return Walk(kept(self.start), tuple([kept(step) for step in self.steps]))

    def then(self, inner: Walk) -> Walk:
        """Return the walk over an array, if `inner` is the walk of a view of it and this one a walk over the view."""
        start = tuple([first + move for first, move in zip(inner.start, _moved(self.start, inner.steps, inner.start))])
        return Walk(start, tuple([_moved(step, inner.steps, inner.start) for step in self.steps]))

    def strided(self, strides: Ints) -> tuple[int, Ints]:
        """Return the shift and the strides with which the walk visits an array of these strides."""
        return _dot(self.start, strides), tuple([_dot(step, strides) for step in self.steps])


@functools.lru_cache(1024)
def whole(shape: Ints) -> Walk:
    """Return the walk of a loop of the array's own shape. Equal shapes give the same object.

    Examples
    --------
    >>> whole((2, 3))
    Walk(start=(0, 0), steps=((1, 0), (0, 1)))
    """
    rank = len(shape)
    units = [tuple([int(axis == other) for other in range(rank)]) for axis in range(rank)]
    return Walk((0,) * rank, tuple(units))


def walk_of_view(base: Layout, view: Layout, shift: int) -> Walk | None:
    """Return the walk over an array with the layout `base` of a view that starts `shift` elements after it.

    The result is None if an axis of the view runs over the end of an axis of the array, as after a reshape, or if the
    array has several elements in one place.

    Examples
    --------
    >>> walk_of_view(Layout.of((4, 6)), Layout.of(24), 0) is None
    True
    """
    if not view.size:
        return Walk((0,) * base.ndim, ((0,) * base.ndim,) * view.ndim)
    start = _index_at(base, shift)
    if start is None:
        return None
    steps: list[Ints] = []
    for size, stride in zip(view.shape, view.strides):
        if size == 1 or stride == 0:
            steps.append((0,) * base.ndim)
            continue
        found = _index_at(base, shift + stride)
        if found is None:
            return None
        steps.append(tuple([there - here for there, here in zip(found, start)]))
    return Walk(start, tuple(steps)) if _stays_inside(base.shape, view.shape, start, steps) else None


def elements_outside(base: Layout, view: Layout, first: int, other: int) -> list[tuple[slice, ...]] | None:
    """Return keys of disjoint parts of an array that together have its elements which a view of its memory has not.

    The result is None if both have no elements in common, or if those are not a slice of the array along each axis.
    `first` and `other` count the elements of the memory before those of the array and of the view.

    Examples
    --------
    >>> elements_outside(Layout.of((4,)), Layout((2,), (2,)), 0, 0)
    [(slice(3, 4, 1),), (slice(1, 2, 2),)]
    >>> elements_outside(Layout.of((4, 6)), Layout((4, 2), (6, 1)), 0, 4)
    [(slice(0, 4, 1), slice(0, 4, 1))]
    """
    taken = _common_slices(base, view, first, other)
    if taken is None:
        return None
    found: list[tuple[slice, ...]] = []
    before: list[slice] = []
    for axis, (start, step, count) in enumerate(taken):
        last, size = start + (count - 1) * step, base.shape[axis]
        rest = [slice(0, start, 1), slice(last + 1, size, 1), *[slice(start + k, last, step) for k in range(1, step)]]
        after = [slice(0, each, 1) for each in base.shape[axis + 1 :]]
        found += [(*before, each, *after) for each in rest if each.start < each.stop]
        before.append(slice(start, last + 1, step))
    return found


def _common_slices(base: Layout, view: Layout, first: int, other: int) -> list[tuple[int, int, int]] | None:
    """Return for each axis of an array the first index, the step and the number of those that a view has as well."""
    strides = tuple(map(abs, base.strides)), tuple(map(abs, view.strides))
    starts = first + base.low, other + view.low
    if base.overlaps_itself:
        return None
    indices = indices_of_slices((base.shape, view.shape), strides, starts)
    if indices is None or not all(common_range(*both) for both in indices.values()):
        return None
    taken: list[tuple[int, int, int]] = []
    for size, stride in zip(base.shape, base.strides):
        if size == 1:
            taken.append((0, 1, 1))
            continue
        mine, theirs = next(both for step, both in indices.items() if not stride % step)
        if len(mine) != size:
            return None  # two axes are one in that array
        both = common_range(mine, theirs)
        start, last = mine.index(both[0]), mine.index(both[-1])
        step = both.step // mine.step if len(both) > 1 else 1
        taken.append((start if stride > 0 else size - 1 - last, step, len(both)))
    return taken


def _index_at(base: Layout, distance: int) -> Ints | None:
    """Return the index of the element at a distance from the first one, or None if there is none."""
    left = distance - base.low
    index = [0] * base.ndim
    for axis in sorted(range(base.ndim), key=lambda axis: -abs(base.strides[axis])):
        size, stride = base.shape[axis], base.strides[axis]
        if size == 1:
            continue
        if stride == 0 or left < 0:
            return None
        digit, left = divmod(left, abs(stride))
        if digit >= size:
            return None
        index[axis] = digit if stride > 0 else size - 1 - digit
    return None if left else tuple(index)


def _stays_inside(shape: Ints, loop: Ints, start: Ints, steps: list[Ints]) -> bool:
    """Whether a loop reaches only indices of an array of this shape."""
    for axis, size in enumerate(shape):
        moves = [(extent - 1) * step[axis] for extent, step in zip(loop, steps)]
        low = start[axis] + sum(min(move, 0) for move in moves)
        high = start[axis] + sum(max(move, 0) for move in moves)
        if low < 0 or high >= size:
            return False
    return True


def _moved(index: Ints, steps: tuple[Ints, ...], like: Ints) -> Ints:
    """Return the sum of steps, each as many times as its axis of the index says."""
    return tuple([sum([part * step[axis] for part, step in zip(index, steps)]) for axis in range(len(like))])


def _dot(index: Ints, strides: Ints) -> int:
    return sum([part * stride for part, stride in zip(index, strides)])
