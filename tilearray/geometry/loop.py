"""The collapsed loop: the fewest nested axes that visit the elements of every operand of an elementwise operation.

The planner needs to know how memory is walked, not which axes an array has. `make_loop` drops axes of size 1,
reverses axes that the output walks backwards (a shift of the origin makes up for it), sorts them by the output's
strides, outermost first, and merges neighbours that every operand walks as one. A backend executes the result
without knowing the shape, and `LayoutCase` names the few kinds of loop. Nothing here depends on a device: a backend
decides how it runs a loop, and on which facts of it the code depends (`tilearray.engine.devices.Backend.loop_class`).

Worked: ``out = a + b`` of shape (2, 3, 4), where `out` and `a` are contiguous and `b` is a row of 4, broadcast and
read backwards (strides count elements):

====  ==============  =========================================================
axis  extent          strides of out, a, b
====  ==============  =========================================================
0     2               12, 12, 0
1     3               4, 4, 0     12 == 4 * 3 and 0 == 0 * 3: merges with axis 0
2     4               1, 1, -1    4 == 1 * 4, but 0 != -1 * 4: stays
====  ==============  =========================================================

>>> loop = make_loop((2, 3, 4), [(12, 4, 1), (12, 4, 1), (0, 0, -1)])
>>> loop.shape, loop.strides
((6, 4), ((4, 1), (4, 1), (0, -1)))
>>> loop.case
<LayoutCase.BROADCAST: 'broadcast'>

Only the output's negative strides are reversed: if `out` is walked backwards as well, the result is the same loop with
the row read forwards.

>>> make_loop((2, 3, 4), [(12, 4, -1), (12, 4, -1), (0, 0, -1)])[:3]
((6, 4), ((4, 1), (4, 1), (0, 1)), (-3, -3, -3))
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import prod
from typing import NamedTuple

Ints = tuple[int, ...]

INT32_END = 2**31


class LayoutCase(StrEnum):
    """The kinds of collapsed loop, from the simplest; a loop has the first one that fits. Members are strings.

    Examples
    --------
    >>> make_loop((8, 8), [(8, 1), (1, 8)]).case
    <LayoutCase.TILE: 'tile'>
    """

    EMPTY = "empty"
    """No elements: nothing to do."""
    FLAT = "flat"
    """One axis, every stride 0 or 1: whole vectors, whatever the shape was."""
    STRIDED = "strided"
    """One axis, some other stride."""
    BROADCAST = "broadcast"
    """Two axes, a contiguous output; each operand lies like it, or is a repeated row, column or element."""
    ROWS = "rows"
    """Two axes or more, and the last is the fastest for every operand (or repeats it)."""
    TILE = "tile"
    """The operands have two different fastest axes, as in ``a + b.T``."""
    MIXED = "mixed"
    """The operands have three different fastest axes or more."""
    REDUCE_ROWS = "reduce_rows"
    """A reduction whose first input walks memory fastest along a reduced axis."""
    REDUCE_COLUMNS = "reduce_columns"
    """A reduction whose first input walks memory fastest along a kept axis."""
    SCAN_ROWS = "scan_rows"
    """A scan whose input walks memory fastest along the scanned axis."""
    SCAN_COLUMNS = "scan_columns"
    """A scan whose input walks memory fastest along a kept axis."""
    PRODUCT = "product"
    """The product of two matrices, or of stacks of them."""
    FOLD = "fold"
    """Runs of equal places along the first axis, of which each is walked from its first element on."""
    SORT = "sort"
    """Rows that are sorted, each by one program."""
    PARTITION = "partition"
    """Rows in blocks, of which digits are counted, or elements are stored in the order of a digit."""
    RUNS = "runs"
    """Runs of equal upper bits in one axis, of which the distinct elements are stored."""
    SELECTION = "selection"
    """All elements in C order, of which those are kept for which a condition holds."""

    __hash__ = str.__hash__  # Enum's own hash is a slow Python function.


_FLAT, _BROADCAST, _ROWS, _TILE = LayoutCase.FLAT, LayoutCase.BROADCAST, LayoutCase.ROWS, LayoutCase.TILE  # for speed


class Loop(NamedTuple):
    """A collapsed loop; operand 0 is the output, and strides and shifts count elements.

    Element ``index`` of operand ``k`` lies at ``origin[k] + shifts[k] + sum(index * strides[k])``.
    """

    shape: Ints
    """Extents, outermost first. Never (): one element is (1,), no elements (0,)."""
    strides: tuple[Ints, ...]
    """For each operand, its stride along each axis; 0 where it is broadcast."""
    shifts: Ints
    """For each operand, how far its origin moved when axes were reversed."""
    case: LayoutCase
    index_bits: int
    """32, or 64 if an offset from the shifted origin, or the number of elements, reaches 2**31."""


def make_loop(shape: Ints, operand_strides: Sequence[Ints], *, small: bool = False) -> Loop:
    """Collapse the loop over `shape` that all operands share.

    Parameters
    ----------
    shape : tuple of int
    operand_strides : sequence of tuple of int
        Strides of the output and then of each input, broadcast to `shape` (stride 0). An output whose stride is 0
        along an axis leaves the order and direction of that axis to the inputs.
    small : bool
        Whether it is known that the size and the distance between two elements of an operand stay below 2**31.

    Examples
    --------
    >>> make_loop((3, 1, 5), [(5, 5, 1), (5, 0, 1)])
    Loop(shape=(15,), strides=((1,), (1,)), shifts=(0, 0), case=<LayoutCase.FLAT: 'flat'>, index_bits=32)
    """
    count = len(operand_strides)
    shifts: Ints = (0,) * count
    if 0 in shape:
        return Loop((0,), ((1,),) * count, shifts, LayoutCase.EMPTY, 32)
    if len(shape) == 2:  # The most common loop, which often collapses no further.
        case = _case_as_it_stands(shape, operand_strides)
        if case is not None:
            bits = 32 if small else index_bits_of(shape, operand_strides)
            return Loop(shape, tuple(operand_strides), shifts, case, bits)
    # An axis is (stride of out, strides of inputs..., extent): sorting by it sorts by the output's stride first.
    axes = [axis for axis in zip(*operand_strides, shape) if axis[-1] != 1]
    if not axes:  # One element; strides of 1 let it share the kernels of contiguous vectors.
        return Loop((1,), ((1,),) * count, shifts, _FLAT, 32)
    key = None
    if min(map(min, axes)) < 0:
        axes, shifts = _reverse(axes, shifts)
        key = _magnitudes
    if len(axes) > 1:
        axes.sort(key=key, reverse=True)
        axes = _merge(axes)
    *strides, extents = zip(*axes)
    case, second = _case(extents, strides)
    if second != len(axes) - 2:  # a tile covers the last two axes
        tile = axes.pop(second), axes.pop()
        axes = [*_merge(axes), *tile] if axes else [*tile]  # the axes beside the gap may merge now
        *strides, extents = zip(*axes)
        case, _ = _case(extents, strides)  # the inner one of two equally fast axes counts, and it may have changed
    return Loop(extents, tuple(strides), shifts, case, 32 if small else index_bits_of(extents, strides))


def flat_loop(size: int, count: int) -> Loop:
    """Return the loop over `count` contiguous operands, at a tenth of the cost of `make_loop`.

    Examples
    --------
    >>> flat_loop(6, 2) == make_loop((2, 3), [(3, 1), (3, 1)])
    True
    """
    if not size:
        return Loop((0,), ((1,),) * count, (0,) * count, LayoutCase.EMPTY, 32)
    return Loop((size,), ((1,),) * count, (0,) * count, _FLAT, 64 if size >= INT32_END else 32)


def _case_as_it_stands(shape: Ints, operand_strides: Sequence[Ints]) -> LayoutCase | None:
    """Return the case of two axes, as `_case` does; None if they must be reversed, sorted or merged."""
    rows, columns = shape
    out = operand_strides[0]
    if rows == 1 or columns == 1 or out[0] <= out[1]:
        return None
    is_dense = out == (columns, 1)
    broadcast, as_one, transposed = is_dense, True, False
    for strides in operand_strides:
        outer, inner = strides
        if outer < 0 or inner < 0:
            return None
        if outer != inner * columns:
            as_one = False
        if outer and inner:
            if outer < inner:
                transposed = True
            if broadcast and strides != out:
                broadcast = False
    if as_one:
        return None
    if broadcast:
        return _BROADCAST
    return _TILE if transposed else _ROWS


def _reverse(axes: list[Ints], shifts: Ints) -> tuple[list[Ints], Ints]:
    """Reverse the axes that the output walks backwards, or that the output repeats and no input walks forwards."""
    reversed_axes: list[Ints] = []
    for axis in axes:
        *strides, extent = axis
        if strides[0] < 0 or (strides[0] == 0 and max(strides) <= 0):
            shifts = tuple([shift + (extent - 1) * stride for shift, stride in zip(shifts, strides)])
            axis = (*[-stride for stride in strides], extent)
        reversed_axes.append(axis)
    return reversed_axes, shifts


def _magnitudes(axis: Ints) -> Ints:
    """Return the sort key if strides are negative: the output's magnitude, then the first input's, and so on."""
    return tuple(map(abs, axis))


def _merge(axes: list[Ints]) -> list[Ints]:
    """Merge each axis into its outer neighbour if every operand walks the two as one."""
    merged = [axes[0]]
    for inner in axes[1:]:
        outer, extent = merged[-1], inner[-1]
        as_one = outer[-2] == inner[-2] * extent and outer[0] == inner[0] * extent  # fails for most axes
        if as_one and outer[:-1] == tuple([stride * extent for stride in inner[:-1]]):
            merged[-1] = (*inner[:-1], outer[-1] * extent)
        else:
            merged.append(inner)
    return merged


def _case(shape: Ints, operand_strides: Sequence[Ints]) -> tuple[LayoutCase, int]:
    """Return the case, and the axis that a tile spans beside the last one."""
    last = len(shape) - 1
    if last == 0:
        plain = all(-1 < strides[0] < 2 for strides in operand_strides)
        return (_FLAT if plain else LayoutCase.STRIDED), -1
    out = operand_strides[0]
    if out == (shape[-1], 1) and all([strides == out or 0 in strides for strides in operand_strides]):  # noqa: C419 - faster
        return _BROADCAST, 0
    others = [axis for strides in operand_strides if (axis := _fastest_axis(strides)) != last]
    if not others:
        return _ROWS, last - 1
    first = others[0]
    return (_TILE if others.count(first) == len(others) else LayoutCase.MIXED), first


def _fastest_axis(strides: Ints) -> int:
    """Return the axis of the smallest stride; the last one if it is as small, or repeats the operand."""
    last = len(strides) - 1
    best, fastest = abs(strides[last]), last
    if best < 2:
        return last
    for axis in range(last - 1, -1, -1):
        if 0 < abs(strides[axis]) < best:
            best, fastest = abs(strides[axis]), axis
    return fastest


def index_bits_of(shape: Ints, operand_strides: Sequence[Ints]) -> int:
    """Return 64 if a distance within an operand, or the number of elements, reaches 2**31; else 32."""
    furthest = prod(shape)
    for strides in operand_strides:
        forwards = backwards = 0
        for axis, stride in enumerate(strides):
            if stride > 0:
                forwards += (shape[axis] - 1) * stride
            else:
                backwards -= (shape[axis] - 1) * stride
        if forwards > furthest:
            furthest = forwards
        if backwards > furthest:
            furthest = backwards
    return 64 if furthest >= INT32_END else 32
