"""The collapsed loop: the fewest nested axes that visit the elements of every operand of an elementwise operation.

The planner does not care about an array's axes, only about how memory is walked. `make_loop` drops axes of size 1,
turns axes around that the output walks backwards (a shift of the origin makes up for it), sorts them by the output's
strides, outermost first, and merges neighbours that every operand walks as one. A backend executes the result
without knowing the shape, and `LayoutCase` names the few kinds of loop for which it has its own way of reading.

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
<LayoutCase.LOOKUP: 'lookup'>

Only the output's negative strides are turned: were `out` walked backwards too, the same loop would come out with the
row read forwards.

>>> make_loop((2, 3, 4), [(12, 4, -1), (12, 4, -1), (0, 0, -1)])[:3]
((6, 4), ((4, 1), (4, 1), (0, 1)), (-3, -3, -3))
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import gcd, prod
from typing import Any, NamedTuple

Ints = tuple[int, ...]

INT32_END = 2**31


class LayoutCase(Enum):
    """The kinds of collapsed loop, from the simplest; a loop has the first one that fits.

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
    LOOKUP = "lookup"
    """Two axes, a contiguous output; each operand lies like it or has rows of its own, or is a row, a column or one
    element that is repeated."""
    ROWS = "rows"
    """Two axes or more, and the last is the fastest for every operand (or repeats it)."""
    TILE = "tile"
    """The operands have two different fastest axes, as in ``a + b.T``."""
    MIXED = "mixed"
    """The operands have three different fastest axes or more."""

    __hash__ = object.__hash__  # Members are compared by identity; Enum's own hash is a slow Python function.


_FLAT, _LOOKUP, _ROWS, _TILE = LayoutCase.FLAT, LayoutCase.LOOKUP, LayoutCase.ROWS, LayoutCase.TILE  # for speed


class Loop(NamedTuple):
    """A collapsed loop; operand 0 is the output, and strides and shifts count elements.

    Element ``index`` of operand ``k`` lies at ``origin[k] + shifts[k] + sum(index * strides[k])``.
    """

    shape: Ints
    """Extents, outermost first. Never (): one element is (1,), no elements (0,)."""
    strides: tuple[Ints, ...]
    """For each operand, its stride along each axis; 0 where it is broadcast."""
    shifts: Ints
    """For each operand, how far its origin moved when axes were turned around."""
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
        Whether it is known that neither the size nor the distance of two elements of an operand reaches 2**31.

    Examples
    --------
    >>> make_loop((3, 1, 5), [(5, 5, 1), (5, 0, 1)])
    Loop(shape=(15,), strides=((1,), (1,)), shifts=(0, 0), case=<LayoutCase.FLAT: 'flat'>, index_bits=32)
    """
    count = len(operand_strides)
    shifts: Ints = (0,) * count
    if 0 in shape:
        return Loop((0,), ((1,),) * count, shifts, LayoutCase.EMPTY, 32)
    if len(shape) == 2:  # The commonest, where there is nothing to collapse.
        case = _case_as_it_stands(shape, operand_strides)
        if case is not None:
            bits = 32 if small else _index_bits(shape, operand_strides)
            return Loop(shape, tuple(operand_strides), shifts, case, bits)
    # An axis is (stride of out, strides of inputs..., extent): sorting by it sorts by the output's stride first.
    axes = [axis for axis in zip(*operand_strides, shape) if axis[-1] != 1]
    if not axes:  # One element; strides of 1 let it share the kernels of contiguous vectors.
        return Loop((1,), ((1,),) * count, shifts, _FLAT, 32)
    key = None
    if min(map(min, axes)) < 0:
        axes, shifts = _turn_around(axes, shifts)
        key = _magnitudes
    if len(axes) > 1:
        axes.sort(key=key, reverse=True)
        axes = _merge(axes)
    *strides, extents = zip(*axes)
    case, second = _case(extents, strides)
    if second != len(axes) - 2:  # a tile lies over the last two axes
        tile = axes.pop(second), axes.pop()
        axes = [*_merge(axes), *tile] if axes else [*tile]  # those beside the gap may be one now
        *strides, extents = zip(*axes)
        case, _ = _case(extents, strides)  # of two axes that are as fast, the nearer one counts: it may be another now
    return Loop(extents, tuple(strides), shifts, case, 32 if small else _index_bits(extents, strides))


def flat_loop(size: int, count: int) -> Loop:
    """Return the loop over so many operands that are all contiguous, at a tenth of the cost of `make_loop`.

    Examples
    --------
    >>> flat_loop(6, 2) == make_loop((2, 3), [(3, 1), (3, 1)])
    True
    """
    if not size:
        return Loop((0,), ((1,),) * count, (0,) * count, LayoutCase.EMPTY, 32)
    return Loop((size,), ((1,),) * count, (0,) * count, _FLAT, 64 if size >= INT32_END else 32)


class LayoutClass(NamedTuple):
    """What code for a loop may depend on. There are finitely many of a rank; all else is an argument of the kernel."""

    case: LayoutCase
    rank: int
    strides: tuple[tuple[int | str, ...], ...]
    """Of each operand along the last two axes (or the only one): 0, 1, -1 or "other"; "extent" where a looked-up
    operand has the rows of a dense output."""
    index_bits: int
    divisible: int
    """16, 4 or 1: what divides the strides that are arguments, of operands with a stride of 1 beside them."""
    fits: Ints
    """Block sizes that the last two axes, or the last one, fill well; () where one axis is all there is."""
    merges: bool
    """Whether the columns of tiles are the last axis and the last but two, as one; the last alone fills them badly."""
    fours: bool
    """Whether tiles reach beyond the last two axes, in whole vectors of 4: both extents are multiples of it."""
    huge: bool
    """Whether one operand is turned into another, and no cache has room for either."""
    steady: Ints
    """In a loop as large over one operand alone that is turned: 16, 32 or 64 elements, which divide its pitch along the
    columns but not all further out; what divides these, 32, 16 or 1; rows of a block if they may begin too early."""


NARROW = 512
"""Rows below this many elements are narrow: a block reaches over several of them."""

LARGE = 1 << 20
"""From this many elements on, blocks are chosen by the extents; in smaller loops there is nothing to win."""

LONG = 512
"""Rows of so many elements may be read from a little before them."""

HUGE = 1 << 26
"""From this many elements on, an array of the smallest ones fills the L2 cache of a large GPU, which has 50 MB."""


def layout_class(loop: Loop) -> LayoutClass:
    """Return the class of a loop, by which its kernel is found.

    Examples
    --------
    >>> layout_class(make_loop((80, 300), [(300, 1), (1, 80)]))[2:6]
    ((('other', 1), (1, 'other')), 32, 4, (64, 64))
    """
    return LayoutClass(*class_key(loop))


def class_key(loop: Loop) -> tuple[Any, ...]:
    """Return a plain tuple that equals the class of a loop, and costs less: only a new kernel needs the class."""
    shape, operands, _, case, index_bits = loop
    if len(shape) == 1:
        if operands.count((1,)) == len(operands):
            return case, 1, operands, index_bits, 1, (), False, False, False, ()
        steps = tuple([(stride if -1 <= (stride := strides[0]) <= 1 else "other",) for strides in operands])
        return case, 1, steps, index_bits, 1, (), False, False, False, ()
    classes: list[tuple[int | str, int | str]] = []
    pitches = 0  # the bits of all: what divides their lowest one divides them all
    for strides in operands:
        outer, inner = strides[-2:]
        classes.append((outer if -1 <= outer <= 1 else "other", inner if -1 <= inner <= 1 else "other"))
        if inner == 1 or outer == 1:  # read in vectors, which a pitch may misalign
            pitch = outer if inner == 1 else inner
            if pitch > 1 or pitch < -1:  # 0, 1 and -1 are part of the class
                pitches |= pitch
            for stride in strides[:-2]:  # further out they are arguments as well
                pitches |= stride
    if case is _LOOKUP:
        dense = (shape[-1], 1)
        classes = [("extent", 1) if strides == dense else known for strides, known in zip(operands, classes)]
    size = prod(shape)
    large = size >= LARGE
    fits = _fits(case, shape) if large else _SMALL[case][shape[-1] >= NARROW]
    merges = large and len(shape) > 2 and len(fits) == 2 and _merges(shape[-1], operands)
    fours = large and len(fits) == 2 and _ends_in_fours(shape[-2:], fits)
    turns = size >= HUGE and case is _TILE
    huge = turns and len(operands) == 2
    steady = _steady(shape, operands) if turns else ()
    divisible = 16 if not pitches % 16 else 1 if pitches % 4 else 4
    return case, len(shape), tuple(classes), index_bits, divisible, fits, merges, fours, huge, steady


_SMALL = {
    _LOOKUP: ((1,), (NARROW,)),
    _ROWS: ((32,), (NARROW,)),
    _TILE: ((64, 64), (64, 64)),
    LayoutCase.MIXED: ((64, 64), (64, 64)),
}


def _fits(case: LayoutCase, shape: Ints) -> Ints:
    """Blocks that reach beyond the last axes by an eighth of them at most, tiles a seventh; lookups' are within a row.

    >>> _fits(LayoutCase.LOOKUP, (9, 1500)), _fits(LayoutCase.ROWS, (9, 640)), _fits(LayoutCase.TILE, (800, 900))
    ((1024,), (128,), (128, 256))
    """
    last = shape[-1]
    if case is _LOOKUP:
        return (min(1 << (last.bit_length() - 1), 8192),) if last >= NARROW else (1,)
    if case is _ROWS:
        return (_filled(last, 2048, 8),)
    return 256 if -shape[-2] % 256 * 32 <= shape[-2] else _filled(shape[-2], 128, 7), _filled(last, 256, 7)


def _filled(extent: int, block: int, parts: int) -> int:
    """The block, halved until it reaches beyond the extent by no more than one of so many parts of it, or is of 16."""
    while block > 16 and -extent % block * parts > extent:
        block >>= 1
    return block


def _ends_in_fours(extents: Ints, blocks: Ints) -> bool:
    """Whether blocks reach beyond extents that are all multiples of 4.

    >>> _ends_in_fours((800, 900), (128, 256)), _ends_in_fours((800, 901), (128, 256)), _ends_in_fours((64,), (32,))
    (True, False, False)
    """
    return not any([n % 4 for n in extents]) and any([n % block for n, block in zip(extents, blocks)])  # noqa: C419


def _merges(columns: int, operands: tuple[Ints, ...]) -> bool:
    """Whether so few columns are in no whole blocks of 64, and the result's go on in the last axis but two.

    So must those of each operand that is dense in them; of other operands, tiles look both indices up.

    >>> _merges(900, ((900, 360000, 1), (800, 1, 320000)))
    True
    """
    if columns % 64 == 0 or columns >= 1024 or operands[0][-1] != 1:
        return False
    return all(strides[-3] == columns for strides in operands if strides[-1] == 1)


def _steady(shape: Ints, operands: tuple[Ints, ...]) -> Ints:
    """See `LayoutClass.steady`; () where other operands have pitches that are no multiples of 16, or rows are short.

    >>> [_steady((400, n, 800), ((800, 320000, 1), (n, 1, 400 * n))) for n in (900, 901, 928, 960, 500)]
    [(64, 1, 256), (16, 1, 256), (64, 32, 256), (), ()]
    """
    uneven = [strides for strides in operands if strides[-1] != 1 or any([pitch % 16 for pitch in strides[:-1]])]  # noqa: C419
    if len(uneven) != 1 or operands[0] in uneven or shape[-2] < LONG:
        return ()
    *outer, along_rows, pitch = uneven[0]
    unit, further = min(pitch & -pitch, 64), gcd(64, *outer)
    if along_rows != 1 or unit < 16 or further >= unit:
        return ()
    return unit, further if further >= 16 else 1, _filled(shape[-2] + unit - 1, 256, 7)


def _case_as_it_stands(shape: Ints, operand_strides: Sequence[Ints]) -> LayoutCase | None:
    """The case of two axes that need not be turned around, sorted or merged: what `_case` says; None for others."""
    rows, columns = shape
    out = operand_strides[0]
    if rows == 1 or columns == 1 or out[0] <= out[1]:
        return None
    is_dense = out == (columns, 1)
    looked_up, as_one, turned = is_dense, True, False
    for strides in operand_strides:
        outer, inner = strides
        if outer < 0 or inner < 0:
            return None
        if outer != inner * columns:
            as_one = False
        if outer and inner:
            if outer < inner:
                turned = True
            if looked_up and strides != out:
                looked_up = False
    if as_one:
        return None
    if looked_up or (is_dense and not turned and columns >= NARROW):
        return _LOOKUP
    return _TILE if turned else _ROWS


def _turn_around(axes: list[Ints], shifts: Ints) -> tuple[list[Ints], Ints]:
    """Reverse the axes that the output walks backwards, or, where it stands still, that no input walks forwards."""
    turned: list[Ints] = []
    for axis in axes:
        *strides, extent = axis
        if strides[0] < 0 or (strides[0] == 0 and max(strides) <= 0):
            shifts = tuple([shift + (extent - 1) * stride for shift, stride in zip(shifts, strides)])
            axis = (*[-stride for stride in strides], extent)
        turned.append(axis)
    return turned, shifts


def _magnitudes(axis: Ints) -> Ints:
    """The sort key where strides are negative: by the output's, ties by the first input's, and so on."""
    return tuple(map(abs, axis))


def _merge(axes: list[Ints]) -> list[Ints]:
    """Merge each axis into the next one out, where every operand walks the two as one."""
    merged = [axes[0]]
    for inner in axes[1:]:
        outer, extent = merged[-1], inner[-1]
        as_one = outer[-2] == inner[-2] * extent and outer[0] == inner[0] * extent  # mostly no, and an input says so
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
    is_dense = out == (shape[-1], 1)
    if is_dense and all([strides == out or 0 in strides for strides in operand_strides]):  # noqa: C419 - faster
        return _LOOKUP, 0
    others = [axis for strides in operand_strides if (axis := _fastest_axis(strides)) != last]
    if not others:
        return (_LOOKUP if is_dense and shape[-1] >= NARROW else _ROWS), last - 1
    first = others[0]
    return (_TILE if others.count(first) == len(others) else LayoutCase.MIXED), first


def _fastest_axis(strides: Ints) -> int:
    """The axis of the smallest stride, unless the last one is as small, or repeats the operand."""
    last = len(strides) - 1
    best, fastest = abs(strides[last]), last
    if best < 2:
        return last
    for axis in range(last - 1, -1, -1):
        if 0 < abs(strides[axis]) < best:
            best, fastest = abs(strides[axis]), axis
    return fastest


def _index_bits(shape: Ints, operand_strides: Sequence[Ints]) -> int:
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
