"""Layouts of operands -> the layout of the result, and the loop over all of them. No dtype enters.

Every shape that was never seen comes here, so what most calls are is asked first: are all operands contiguous, do the
strides of one step down? What is general stands in `shapes`, `strides` and `loop`, and finds the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilearray.errors import BroadcastError
from tilearray.layout import Layout
from tilearray.loop import INT32_END, Loop, flat_loop, make_loop
from tilearray.shapes import broadcast_shapes
from tilearray.strides import broadcast_strides, dense_strides, result_strides

Ints = tuple[int, ...]


def geometry_of(function: str, layouts: Sequence[Layout], target: Layout | None) -> tuple[Layout, Loop]:
    """Return the layout that is written, of a new result or the target's, and the loop over it and the operands.

    Parameters
    ----------
    function : str
        The function that an error names.
    layouts : sequence of Layout
        Of the operands that are arrays.
    target : Layout or None
        Of the target, if there is one. Without operands there is.

    Raises
    ------
    BroadcastError
        If the operands' shapes do not broadcast, or not to the target's.

    Examples
    --------
    >>> geometry_of("add", [Layout.of((2, 3)), Layout.of(3)], None)[0]
    Layout(shape=(2, 3), strides=(3, 1))
    """
    first = layouts[0] if target is None else target
    if _all_alike(first, layouts):
        return first, flat_loop(first.size, len(layouts) + 1)
    shape = _shape(function, layouts, target)
    strides = [broadcast_strides(layout.shape, layout.strides, shape) for layout in layouts]
    written = _result(shape, layouts, strides) if target is None else target
    return written, make_loop(shape, [written.strides, *strides], small=_small(written, layouts))


def _all_alike(first: Layout, layouts: Sequence[Layout]) -> bool:
    """Whether all have one shape and its dense strides."""
    if not first.canonical:
        return False
    shape = first.shape
    for layout in layouts:  # noqa: SIM110 - half the time of all(...)
        if not layout.canonical or layout.shape != shape:
            return False
    return True


def _shape(function: str, layouts: Sequence[Layout], target: Layout | None) -> Ints:
    """The shape that the operands broadcast to, and which a target must have or be broadcast to from."""
    shape = layouts[0].shape if layouts else ()
    for layout in layouts:
        if layout.shape != shape:
            shape = broadcast_shapes(*[each.shape for each in layouts], function=function)
            break
    if target is None or target.shape == shape:
        return shape
    if broadcast_shapes(shape, target.shape, function=function) != target.shape:
        raise BroadcastError(
            f"{function}: the operands broadcast to shape {shape}, which does not fit the target's {target.shape}; "
            f"write a target of shape {shape}"
        )
    return target.shape


def _result(shape: Ints, layouts: Sequence[Layout], strides: Sequence[Ints]) -> Layout:
    """What `layout.result_layout` returns, given the operands' strides in `shape`: mostly an operand's."""
    for layout in layouts:
        if layout.canonical and layout.shape == shape:
            return layout
    for steps in strides:
        # One such operand settles it: axes keep C order unless all that stride agree on another.
        if _steps_down(steps):
            return Layout(shape, dense_strides(shape), prod(shape))
    return Layout(shape, dense_strides(shape) if 0 in shape else result_strides(shape, strides))


def _steps_down(strides: Ints) -> bool:
    """Whether no stride is larger than the one before, and none is 0 or negative.

    >>> _steps_down((20, 4, 1)), _steps_down((1, 4)), _steps_down((4, 0)), _steps_down(())
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


def _small(written: Layout, operands: Sequence[Layout]) -> bool:
    """Whether no offset within the result or an operand needs 64 bits."""
    if written.size >= INT32_END or written.high - written.low >= INT32_END:
        return False
    for layout in operands:  # noqa: SIM110 - half the time of all(...)
        if layout.high - layout.low >= INT32_END:
            return False
    return True
