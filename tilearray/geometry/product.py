"""The loop of a matrix product: stacks of matrices, the rows and columns of the result, and the axis that is summed.

It is a plain `Loop` over all these axes. An array has the stride 0 along an axis that it lacks.

>>> loop = make_product((8,), (30, 40, 50), [(1200, 40, 1), (1500, 50, 1), (0, 40, 1)])
>>> loop.shape, loop.strides
((8, 30, 40, 50), ((1200, 40, 1, 0), (1500, 50, 0, 1), (0, 0, 1, 40)))
"""

from __future__ import annotations

from collections.abc import Sequence

from tilearray.geometry.layout import Layout
from tilearray.geometry.loop import INT32_END, LayoutCase, Loop, index_bits_of
from tilearray.geometry.reduction import merged

Ints = tuple[int, ...]

BEYOND = 1 << 10
"""How far a device's blocks and steps along an axis may reach beyond it: so far, indices have 32 bits as well."""


def make_product(stacks: Ints, sizes: tuple[int, int, int], strides: Sequence[Ints]) -> Loop:
    """Return the loop of a product without empty axes.

    Parameters
    ----------
    stacks : tuple of int
        The axes before the matrices, to which both operands are broadcast.
    sizes : tuple of int
        Rows and columns of the result, and the size of the summed axis.
    strides : sequence of tuple of int
        Those of the result, and of both operands: along the stacks, then along the matrix's two axes.
    """
    axes = [(*each, extent) for *each, extent in zip(*[one[:-2] for one in strides], stacks, strict=True)]
    stacked = merged([axis for axis in axes if axis[-1] != 1])
    out, x1, x2 = (one[-2:] for one in strides)
    matrices = [
        (out[0], x1[0], 0, sizes[0]),
        (out[1], 0, x2[1], sizes[1]),
        (0, x1[1], x2[0], sizes[2]),
    ]
    *steps, shape = zip(*stacked, *matrices, strict=True)
    parts = ((steps[0], -1), (steps[1], -2), (steps[2], -3))  # each array lacks one axis of the matrices
    bits = max(index_bits_of(_without(shape, axis), [_without(one, axis)]) for one, axis in parts)
    bits = 64 if max(shape) > INT32_END - BEYOND else bits
    return Loop(shape, tuple(steps), (0, 0, 0), LayoutCase.PRODUCT, bits)


def one_row(layout: Layout) -> Layout:
    """Return a vector as a matrix of one row; matrices as they are.

    >>> one_row(Layout((3,), (2,))).shape, one_column(Layout((3,), (2,))).strides
    ((1, 3), (2, 0))
    """
    return layout if len(layout.shape) > 1 else Layout((1, *layout.shape), (0, *layout.strides))


def one_column(layout: Layout) -> Layout:
    """Return a vector as a matrix of one column; matrices as they are."""
    return layout if len(layout.shape) > 1 else Layout((*layout.shape, 1), (*layout.strides, 0))


def _without(values: Ints, axis: int) -> Ints:
    return (*values[:axis], *values[axis:][1:])
