"""Algebra on plain shape and stride tuples, for `layout`: dense strides, reshaping, overlap, the order of axes.

Strides count elements. Every function takes and returns tuples and knows no classes, so each can be read, and tested
against NumPy, on its own.

Reshaping, worked: shape (2, 3, 4) with strides (24, 4, 1) steps through memory in two runs, 2 steps of 24 and 12
steps of 1 (3 of 4 and 4 of 1 are one run, as 4 == 4 * 1). A new shape is a view exactly if its sizes split each
run: (2, 6, 2) does, 2 | 12 = 6 * 2; (6, 4) does not, as the 6 would straddle both runs.

>>> reshape_strides((2, 3, 4), (24, 4, 1), (2, 6, 2))
(24, 2, 1)
>>> reshape_strides((2, 3, 4), (24, 4, 1), (6, 4)) is None
True
"""

from __future__ import annotations

from collections.abc import Sequence

Ints = tuple[int, ...]

ENUMERATED = 65536  # Up to this many elements `overlaps` is exact.


def dense_strides(shape: Ints, order: Sequence[int] | None = None) -> Ints:
    """Return the strides of a gapless array whose axes lie in memory in `order`, outermost first (default: C order).

    A size of 0 counts as 1, so that a stride of 0 always means a repeated axis.

    Examples
    --------
    >>> dense_strides((2, 3, 4))
    (12, 4, 1)
    >>> dense_strides((2, 3, 4), (2, 0, 1))
    (3, 1, 6)
    """
    if order is None and len(shape) == 2:  # the commonest
        return shape[1] or 1, 1
    strides = [1] * len(shape)
    step = 1
    for axis in range(len(shape) - 1, -1, -1) if order is None else reversed(order):
        strides[axis] = step
        step *= shape[axis] or 1
    return tuple(strides)


def extent(shape: Ints, strides: Ints) -> tuple[int, int, int, bool, bool]:
    """Return what `layout.Layout` knows of a view: size, low, high, contiguous and canonical.

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
    """Return the strides that show the same elements as `new_shape`, or None if no strides do.

    Both shapes have the same size, which is not 0. The module's docstring works an example.

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

    There is no overlap if every axis steps clear of all faster ones together. Up to 65536 elements every other layout
    is enumerated, so the answer is exact. Beyond, it is yes, though in rare cases there is none: strides (3, 2) with
    sizes (2, 40000), say, interleave.

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


def broadcast_strides(shape: Ints, strides: Ints, target: Ints) -> Ints:
    """Return the strides repeated, with stride 0, to a shape that `shape` is known to broadcast to.

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
    """Return whether no stride is larger than the one before, and none is 0 or negative.

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
    """Return the dense strides of a result whose axes lie in memory as those of the operands; see `axis_order`.

    Examples
    --------
    >>> result_strides((2, 3), [(1, 2), (0, 1)])
    (1, 2)
    """
    if 1 in shape:
        operand_strides = [tuple([s if n != 1 else 0 for n, s in zip(shape, t)]) for t in operand_strides]
    return dense_strides(shape, axis_order(operand_strides))


def axis_order(operand_strides: Sequence[Ints]) -> list[int]:
    """Return the axes, outermost first, in the order in which operands of one shape lie in memory.

    NumPy's rule for ``order='K'``: sort the axes by stride, stably from C order, where an axis moves inside
    another only if every operand that strides along both has the smaller stride there. Operands that disagree thus
    leave C order. A stride of 0 says nothing, so axes of size 1 must come with stride 0.

    Examples
    --------
    >>> axis_order([(1, 4), (0, 1)]), axis_order([(1, 4), (4, 1)])
    ([1, 0], [0, 1])
    """
    order: list[int] = []  # Fastest first: an insertion sort, like NumPy's, since the relation is not transitive.
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
    """Whether `axis` steps inside `other` for every operand that moves along both; None if there is none."""
    verdict = None
    for strides in operand_strides:
        mine, its = abs(strides[axis]), abs(strides[other])
        if mine and its:
            if its <= mine:
                return False
            verdict = True
    return verdict
