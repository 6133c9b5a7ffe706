"""Layouts of operands -> the layout of the result, and the loop over all of them. Dtypes have no influence.

Every new combination of shapes comes here, unless `fast_path` knows its pattern. So the common case is checked first:
all operands are contiguous. The general code is in `shapes`, `strides` and `loop`, and gives the same result.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilearray.errors import BroadcastError
from tilearray.geometry.layout import Layout, result_layout
from tilearray.geometry.loop import INT32_END, Loop, flat_loop, make_loop
from tilearray.geometry.shapes import broadcast_shapes, reduced_shape
from tilearray.geometry.strides import broadcast_strides

Ints = tuple[int, ...]


def geometry_of(function: str, layouts: Sequence[Layout], target: Layout | None) -> tuple[Layout, Loop]:
    """Return the layout of the output (a new result or the target), and the loop over it and the operands.

    Parameters
    ----------
    function : str
        The function that an error names.
    layouts : sequence of Layout
        The layouts of the operands that are arrays.
    target : Layout or None
        The target's layout, or None. Required if there are no operands.

    Raises
    ------
    BroadcastError
        If the operands' shapes do not broadcast to a common shape, or not to the target's shape.

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
    written = target or _operand_in_c_order(shape, layouts) or result_layout(shape, strides)
    return written, make_loop(shape, [written.strides, *strides], small=_small(written, layouts))


def row_result_layout(layout: Layout, axes: Sequence[int]) -> Layout:
    """Return the layout of a function of an array and of two reductions of it along axes, which broadcast.

    Examples
    --------
    >>> row_result_layout(Layout((3, 2), (1, 3)), (1,))
    Layout(shape=(3, 2), strides=(1, 3))
    """
    rows = Layout.of(reduced_shape(layout.shape, tuple(axes), True))
    return geometry_of("", [layout, rows, rows], None)[0]


def _all_alike(first: Layout, layouts: Sequence[Layout]) -> bool:
    """Whether all layouts have the same shape and its dense strides."""
    if not first.canonical:
        return False
    shape = first.shape
    for layout in layouts:  # noqa: SIM110 - half the time of all(...)
        if not layout.canonical or layout.shape != shape:
            return False
    return True


def _shape(function: str, layouts: Sequence[Layout], target: Layout | None) -> Ints:
    """Return the shape of the loop: the operands' common shape, or the target's, to which it must broadcast."""
    shape = layouts[0].shape if layouts else ()
    for layout in layouts:
        if layout.shape != shape:
            shape = broadcast_shapes(*[each.shape for each in layouts], function=function)
            break
    if target is None or target.shape == shape:
        return shape
    if broadcast_shapes(shape, target.shape, function=function) != target.shape:
        raise BroadcastError(
            f"{function}: the operands broadcast to shape {shape}, which does not fit the target's {target.shape} "
            f"and could not be broadcast to it; write a target of shape {shape}"
        )
    return target.shape


def _operand_in_c_order(shape: Ints, layouts: Sequence[Layout]) -> Layout | None:
    """Return the layout of an operand with the shape and strides of a new C-order array, or None."""
    for layout in layouts:
        if layout.canonical and layout.shape == shape:
            return layout
    return None


def _small(written: Layout, operands: Sequence[Layout]) -> bool:
    """Whether 32 bits hold every offset within the result and the operands."""
    if written.size >= INT32_END or written.high - written.low >= INT32_END:
        return False
    for layout in operands:  # noqa: SIM110 - half the time of all(...)
        if layout.high - layout.low >= INT32_END:
            return False
    return True
