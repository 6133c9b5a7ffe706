"""Patterns: loops that differ in a few integers only share one plan.

A loop over contiguous operands, or over a small matrix whose axes are not reversed, sorted or merged, has the shape and
the strides of its operands. Few facts of them decide its case and its class, and so its kernel. The facts of one
layout are one number; the numbers of all operands, in order, are the pattern of the loop. The first loop of a pattern
is planned like any other. The following ones need only extents and strides.

Geometry knows the facts that decide the case: which strides are 0 or 1, which of two is larger, and whether rows follow
one another without a gap. The backend knows the rest (`facts_of_matrix`, beside its `loop_class`). A layout keeps its
number, together with the function that gave the backend's part of it.

Other loops are always planned: loops whose class the backend decides by extents, loops with negative strides, sizes of
0 or 1 or more than two axes, and loops in which no operand has the shape of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilearray.geometry.layout import Layout
from tilearray.geometry.loop import INT32_END

Ints = tuple[int, ...]
Pattern = tuple[int, Ints, tuple[Ints, ...], Layout | None]
"""The pattern; extents; strides of the result and then of each operand; the result's layout, if an operand has it."""
FactsOfMatrix = Callable[[int, int, int, int], int]
"""The backend's facts of a matrix by its size, columns and strides: 0 to 63, or -1 if loops over it must be planned."""

FLAT = 0
"""The pattern of operands that are all contiguous and of one shape."""
_BITS = 12
_ROW, _COLUMN, _SINGLE, _MATRIX = 1, 4, 7, 64  # the first pattern of each kind of layout


def pattern_of(layouts: Sequence[Layout], facts_of_matrix: FactsOfMatrix) -> Pattern | None:
    """Return the pattern of the loop over operands and a new array in C order, or None if the loop must be planned.

    Parameters
    ----------
    layouts : sequence of Layout
    facts_of_matrix : callable
        The backend's, always the same object.

    Examples
    --------
    >>> def narrow(size, columns, outer, inner):
    ...     return int(columns < 512)
    >>> x, row = Layout((70, 90), (128, 1)), Layout.of(90)
    >>> pattern, *integers = pattern_of([x, row], narrow)
    >>> integers
    [(70, 90), ((90, 1), (128, 1), (0, 1)), None]
    >>> pattern_of([Layout((30, 50), (64, 1)), Layout.of(50)], narrow)[0] == pattern
    True
    >>> pattern_of([Layout((30, 600), (640, 1)), Layout.of(600)], narrow)[0] == pattern
    False
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
        known, facts = layout.pattern
        if known is not facts_of_matrix:
            facts = _facts(layout, facts_of_matrix)
        if facts < 0:
            return None
        pattern = pattern << _BITS | facts
    return pattern, shape, tuple(strides), written


def _facts(layout: Layout, facts_of_matrix: FactsOfMatrix) -> int:
    """Return, and keep, the facts of a layout that the kernel of a loop over a matrix may depend on."""
    strides = layout.strides
    size = layout.size
    if not strides:
        found = _SINGLE
    elif layout.low or layout.high >= INT32_END or not 1 < size < INT32_END:
        found = -1
    elif len(strides) == 2 and layout.shape[0] != 1:
        columns = layout.shape[1]
        outer, inner = strides
        if columns == 1:
            found = _COLUMN + (outer if outer < 2 else 2)
        else:
            found = facts_of_matrix(size, columns, outer, inner)
            if found >= 0:
                order = (outer if outer < 2 else 2) * 12 + (inner if inner < 2 else 2) * 4
                found += _MATRIX * (1 + order + 2 * (outer < inner) + (outer == inner * columns))
    else:
        inner = strides[-1]
        found = _ROW + (inner if inner < 2 else 2)
    layout.pattern = facts_of_matrix, found  # at once: another thread may use it on another device
    return found
