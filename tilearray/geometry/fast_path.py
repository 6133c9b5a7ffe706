"""Patterns: loops over new arrays that differ in a few integers only, found without being planned.

A loop that is contiguous throughout, or goes over a small matrix and need not be turned around, sorted or merged, has
the shape and the strides that its operands have. Few facts of them decide its class and so its kernel: which strides
are 0 or 1, which of two is larger, whether rows follow one another without a gap or are narrow, and whether 16 or 4
divides what lies between two rows. The facts of a layout are one number, its pattern; those of all operands, in order,
are the pattern of the loop. The first loop of a pattern is planned like any other. For those that follow, nothing is
left to find but extents and strides.

Of other loops nothing is known, and each is planned: of large ones, whose blocks are chosen by the extents, of those
that are walked backwards, have a size 1 or 0 or more than two axes, or no operand of the shape of the result.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilearray.geometry.layout import Layout
from tilearray.geometry.loop import INT32_END, LARGE, NARROW

Ints = tuple[int, ...]
Pattern = tuple[int, Ints, tuple[Ints, ...], Layout | None]
"""The pattern; extents; strides of the result and then of each operand; the result's layout, if an operand has it."""

FLAT = 0
"""The pattern of operands that are all contiguous and of one shape."""
_NONE = -1
_BITS = 8
_ROW, _COLUMN, _SINGLE, _MATRIX = 1, 4, 7, 16  # where the patterns of layouts of these kinds begin


def pattern_of(layouts: Sequence[Layout]) -> Pattern | None:
    """Return the pattern of the loop over operands and a new array, which it takes to be in C order.

    Examples
    --------
    >>> x, row = Layout((70, 90), (128, 1)), Layout.of(90)
    >>> pattern, *integers = pattern_of([x, row])
    >>> integers
    [(70, 90), ((90, 1), (128, 1), (0, 1)), None]
    >>> pattern_of([Layout((30, 50), (64, 1)), Layout.of(50)])[0] == pattern, pattern_of([x, row.flip()[0]])
    (True, None)
    """
    first = layouts[0]
    shape = first.shape
    if first.canonical:
        for layout in layouts:
            if not layout.canonical or layout.shape != shape:
                break
        else:
            size = first.size
            return (FLAT, (size,), ((1,),) * (len(layouts) + 1), first) if 0 < size < INT32_END else None
    if len(shape) != 2 or 1 in shape:
        shape = layouts[-1].shape
        if len(shape) != 2:
            return None
    rows, columns = shape
    written = None
    strides: list[Ints] = [(columns, 1)]
    pattern = 0
    for layout in layouts:
        own = layout.shape
        if own == shape:
            strides.append(layout.strides)
            if layout.canonical:
                written = layout
        elif own == (columns,) or own == (1, columns):
            strides.append((0, layout.strides[-1]))
        elif own == (rows, 1):
            strides.append((layout.strides[0], 0))
        elif not own:
            strides.append((0, 0))
        else:
            return None
        facts = layout.pattern or _facts(layout)
        if facts == _NONE:
            return None
        pattern = pattern << _BITS | facts
    return pattern, shape, tuple(strides), written


def _facts(layout: Layout) -> int:
    """Work out, and remember, all of a layout that the kernel of a small loop over a matrix may depend on."""
    if not layout.ndim:
        found = _SINGLE
    elif layout.low or layout.high >= INT32_END or not 1 < layout.size < LARGE:
        found = _NONE
    elif layout.ndim == 1 or layout.shape[0] == 1:
        inner = layout.strides[-1]
        found = _ROW + (inner if inner < 2 else 2)
    else:
        columns, (outer, inner) = layout.shape[1], layout.strides
        if columns == 1:
            found = _COLUMN + (outer if outer < 2 else 2)
        else:
            pitch = outer if inner == 1 else inner if outer == 1 else 0
            pitches = columns | pitch if pitch > 1 else columns  # what lies between rows that are read in vectors
            found = (outer if outer < 2 else 2) * 3 + (inner if inner < 2 else 2)
            found = (found * 2 + (outer < inner)) * 2 + (outer == inner * columns)
            found = (found * 2 + (columns < NARROW)) * 3 + (0 if not pitches % 16 else 1 if not pitches % 4 else 2)
            found += _MATRIX
    layout.pattern = found
    return found
