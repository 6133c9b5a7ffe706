"""Algebra on plain shape and stride tuples, for `layout`: dense strides, reshaping, overlap, the order of axes.

Strides count elements. Every function takes and returns tuples and uses no classes. Each can be read alone, and tested
against NumPy alone.

An example of reshaping: shape (2, 3, 4) with strides (24, 4, 1) steps through memory in two runs: 2 steps of 24 and 12
steps of 1. (3 steps of 4 and 4 steps of 1 are one run, because 4 == 4 * 1.) A new shape is a view if and only if its
sizes divide each run. (2, 6, 2) is a view: 2 is the first run, and 6 * 2 = 12 the second. (6, 4) is not, because the 6
would straddle both runs.

>>> reshape_strides((2, 3, 4), (24, 4, 1), (2, 6, 2))
(24, 2, 1)
>>> reshape_strides((2, 3, 4), (24, 4, 1), (6, 4)) is None
True
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import gcd, prod

Ints = tuple[int, ...]
Ranges = tuple[range, range]

ENUMERATED = 65536  # `overlaps` is exact up to this number of elements.
MOST_STEPS = 16  # Of more strides `indices_of_slices` finds no array: each one may double the arrays that it tries.


def dense_strides(shape: Ints, order: Sequence[int] | None = None) -> Ints:
    """Return the strides of an array without gaps whose axes have the `order` in memory, outermost first.

    The default is C order. A size of 0 counts as 1, so that a stride of 0 always means a repeated axis.

    Examples
    --------
    >>> dense_strides((2, 3, 4))
    (12, 4, 1)
    >>> dense_strides((2, 3, 4), (2, 0, 1))
    (3, 1, 6)
    """
    if order is None and len(shape) == 2:  # the most common case
        return shape[1] or 1, 1
    strides = [1] * len(shape)
    step = 1
    for axis in range(len(shape) - 1, -1, -1) if order is None else reversed(order):
        strides[axis] = step
        step *= shape[axis] or 1
    return tuple(strides)


def extent(shape: Ints, strides: Ints) -> tuple[int, int, int, bool, bool]:
    """Return attributes of `layout.Layout`: size, low, high, contiguous and canonical.

    Examples
    --------
    >>> extent((2, 3), (3, 1)), extent((2, 3), (-4, 1)), extent((1, 3), (7, 1))
    ((6, 0, 5, True, True), (6, -4, 2, False, False), (3, 0, 2, True, False))
    """
    size, low, high, contiguous, canonical = 1, 0, 0, True, True
    for axis in range(len(shape) - 1, -1, -1):
        n, stride = shape[axis], strides[axis]
        if stride != size:
            canonical = False
        if n != 1:
            if stride != size:
                contiguous = False
            if stride > 0:
                high += (n - 1) * stride
            else:
                low += (n - 1) * stride
            size *= n
    if not size:
        return 0, 0, 0, True, strides == dense_strides(shape)
    return size, low, high, contiguous, canonical


def reshape_strides(shape: Ints, strides: Ints, new_shape: Ints) -> Ints | None:
    """Return the strides that give `new_shape` to the same elements, or None if no strides do.

    Both shapes have the same size, which is not 0. The module docstring has an example.

    Examples
    --------
    >>> reshape_strides((4, 6), (0, 2), (2, 2, 3, 2))
    (0, 0, 4, 2)
    """
    runs: list[tuple[int, int]] = []
    for n, stride in zip(shape, strides):
        if n == 1:
            continue
        if runs and runs[-1][1] == n * stride:
            runs[-1] = (runs[-1][0] * n, stride)
        else:
            runs.append((n, stride))
    result: list[int] = []
    left = step = 1
    for n in reversed(new_shape):
        if left == 1 and n != 1:
            left, step = runs.pop()
        if left % n:
            return None
        result.append(step)
        left //= n
        step *= n
    return tuple(reversed(result))


def overlaps(shape: Ints, strides: Ints) -> bool:
    """Return whether two different indices reach the same element.

    A layout does not overlap if the stride of every axis exceeds the extent of all faster axes together. All other
    layouts of up to 65536 elements are enumerated, so the answer is exact. For larger ones the answer is True. It is
    wrong in rare cases: strides (3, 2) with sizes (2, 40000), for example, interleave without overlap.

    Examples
    --------
    >>> overlaps((3, 4), (4, 1)), overlaps((3, 4), (0, 1)), overlaps((3, 4), (1, 1)), overlaps((2, 3), (3, 2))
    (False, True, True, False)
    """
    axes = sorted((abs(stride), n) for n, stride in zip(shape, strides) if n != 1)
    size, reach, clear = 1, 0, True
    for stride, n in axes:
        clear = clear and stride > reach
        reach += stride * (n - 1)
        size *= n
    if size == 0 or clear:
        return False
    if size > ENUMERATED:
        return True
    reached, size = {0}, 1
    for stride, n in axes:
        reached = {offset + i * stride for offset in reached for i in range(n)}
        size *= n
        if len(reached) < size:
            return True
    return False


def are_apart(shapes: tuple[Ints, Ints], strides: tuple[Ints, Ints], starts: tuple[int, int]) -> bool:
    """Whether it is plain that two views of one memory have no element in common, although their ranges overlap.

    Both are slices of an array: then they have no element in common if their indices along one axis have none.
    Otherwise the answer is False.

    Parameters
    ----------
    shapes, strides : pair of tuple of int
        Strides are not negative.
    starts : pair of int
        How many elements lie before the first one.

    Examples
    --------
    >>> are_apart(((4, 3), (4, 2)), ((5, 1), (5, 1)), (0, 3)), are_apart(((4, 3), (4, 3)), ((5, 1), (5, 1)), (0, 2))
    (True, False)
    >>> are_apart(((5,), (5,)), ((2,), (2,)), (0, 1))
    True
    """
    found = indices_of_slices(shapes, strides, starts)
    return found is not None and not all(common_range(one, other) for one, other in found.values())


def indices_of_slices(
    shapes: tuple[Ints, Ints], strides: tuple[Ints, Ints], starts: tuple[int, int]
) -> dict[int, Ranges] | None:
    """Return the indices that two views of one memory have in an array of which both are slices.

    They are given for the stride of each axis of the array, the largest first. The result is None if no such array is
    found. The arguments are those of `are_apart`.

    Examples
    --------
    >>> indices_of_slices(((4, 3), (4, 2)), ((5, 1), (5, 2)), (0, 6))
    {5: (range(0, 4), range(1, 5)), 1: (range(0, 3), range(1, 4, 2))}
    """
    views = [
        (start, sorted([(step, n) for n, step in zip(shape, each) if n > 1 and step]))
        for shape, each, start in zip(shapes, strides, starts)
    ]
    steps = {1, *[step for _, axes in views for step, _ in axes]}
    return _indices_along(tuple(sorted(steps, reverse=True)), views) if len(steps) <= MOST_STEPS else None


def _indices_along(steps: Ints, views: list[tuple[int, list[tuple[int, int]]]]) -> dict[int, Ranges] | None:
    """Return the same for an array whose axes have some of these strides, or common divisors of them.

    Strides of a slice are multiples of those of the array, so not every one is that of an axis.
    """
    for place, (above, step) in enumerate(pairwise(steps)):
        if above % step:
            before, after = steps[:place], steps[place + 2 :]
            divided = tuple(sorted({*before, *after, gcd(above, step)}, reverse=True))
            return _indices_along((*before, above, *after), views) or _indices_along(divided, views)
    found: list[list[range]] = []
    for start, axes in views:
        mine: list[range] = []
        for place, step in enumerate(steps):
            first, start = divmod(start, step)
            along = [(each // step, n) for each, n in axes if _is_along(steps, place, each)]
            if any(outer != inner * n for (inner, n), (outer, _) in pairwise(along)):
                return None
            stride = along[0][0] if along else 1
            mine.append(range(first, first + stride * (prod([n for _, n in along]) - 1) + 1, stride))
            if place and mine[-1].stop * step > steps[place - 1]:  # it runs over the end of the axis
                return _indices_along((*steps[: place - 1], *steps[place:]), views)
        found.append(mine)
    return dict(zip(steps, zip(*found)))


def _is_along(steps: Ints, place: int, stride: int) -> bool:
    """Whether a stride is a multiple of one of several, and of none before it."""
    return not stride % steps[place] and all(stride % each for each in steps[:place])


def common_range(one: range, other: range) -> range:
    """Return the numbers that two ascending ranges have in common.

    Examples
    --------
    >>> common_range(range(1, 20, 2), range(2, 20, 3))
    range(5, 20, 6)
    """
    divisor = gcd(one.step, other.step)
    times, rest = divmod(other.start - one.start, divisor)
    if rest:
        return range(0)
    period = other.step // divisor
    first = one.start + times * pow(one.step // divisor, -1, period) % period * one.step
    step = one.step * period
    first += max(0, -(-(other.start - first) // step)) * step
    return range(first, min(one.stop, other.stop), step)


def rows_along(shape: Ints, strides: Ints) -> Ints:
    """Return the strides of a dense array of which a view is probably a slice: those of the view, and 1.

    The result is (1,) if no dense array has them.

    Examples
    --------
    >>> rows_along((3, 2), (6, 2)), rows_along((3, 2), (6, 4))
    ((6, 2, 1), (1,))
    """
    steps = sorted({1, *[abs(step) for n, step in zip(shape, strides) if n > 1]}, reverse=True)
    fits = 0 not in steps and not any(step % inner for step, inner in pairwise(steps))
    return tuple(steps) if fits else (1,)


def broadcast_strides(shape: Ints, strides: Ints, target: Ints) -> Ints:
    """Return the strides after broadcasting to `target`, with stride 0 for repeated axes. `shape` must broadcast to it.

    Examples
    --------
    >>> broadcast_strides((4, 1), (1, 1), (2, 4, 3))
    (0, 1, 0)
    """
    if shape == target:
        return strides
    spare = len(target) - len(shape)
    if shape == target[spare:]:
        return (0,) * spare + strides
    return (0,) * spare + tuple([stride if n == m else 0 for stride, n, m in zip(strides, shape, target[spare:])])


def steps_down(strides: Ints) -> bool:
    """Return whether all strides are positive and none is larger than the previous one.

    Examples
    --------
    >>> steps_down((20, 4, 1)), steps_down((1, 4)), steps_down((4, 0)), steps_down(())
    (True, False, False, False)
    """
    if not strides or strides[-1] <= 0:
        return False
    before = strides[0]
    for stride in strides:
        if stride > before:
            return False
        before = stride
    return True


def result_strides(shape: Ints, operand_strides: Sequence[Ints]) -> Ints:
    """Return the dense strides of a result whose axes have the operands' order in memory; see `axis_order`.

    Examples
    --------
    >>> result_strides((2, 3), [(1, 2), (0, 1)])
    (1, 2)
    """
    if 1 in shape:
        operand_strides = [tuple([s if n != 1 else 0 for n, s in zip(shape, t)]) for t in operand_strides]
    return dense_strides(shape, axis_order(operand_strides))


def axis_order(operand_strides: Sequence[Ints]) -> list[int]:
    """Return the axes in the memory order of operands of one shape, outermost first.

    This is NumPy's rule for ``order='K'``: a stable sort of the axes by stride, from C order. An axis moves inside
    another axis only if its stride is smaller for every operand with nonzero strides along both. If operands disagree,
    the axes thus remain in C order. A stride of 0 has no influence, so axes of size 1 must have stride 0.

    Examples
    --------
    >>> axis_order([(1, 4), (0, 1)]), axis_order([(1, 4), (4, 1)])
    ([1, 0], [0, 1])
    """
    order: list[int] = []  # Fastest first. An insertion sort, as in NumPy, because the relation is not transitive.
    for axis in reversed(range(len(operand_strides[0]))):
        place = len(order)
        for position in reversed(range(len(order))):
            inside = _steps_inside(axis, order[position], operand_strides)
            if inside:
                place = position
            elif inside is False:
                break
        order.insert(place, axis)
    order.reverse()
    return order


def _steps_inside(axis: int, other: int, operand_strides: Sequence[Ints]) -> bool | None:
    """Whether `axis` has the smaller stride in every operand that moves along both; None without such operands."""
    verdict = None
    for strides in operand_strides:
        mine, its = abs(strides[axis]), abs(strides[other])
        if mine and its:
            if its <= mine:
                return False
            verdict = True
    return verdict
