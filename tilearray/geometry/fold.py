"""The loop of a fold: runs of equal places along the first axis, and all elements along the others.

An op that is applied at indices changes an element once for each occurrence of its index. Indices are sorted first, so
that those of one element are neighbours. Whoever has the first one of a run walks it, in order. So steps are taken in
the order of the indices, and each element is read and written once. The other axes are merged where every operand walks
them as one; the first axis stays by itself.

>>> loop = make_fold((1000, 4, 6), [(0, 6, 1), (24, 6, 1), (1, 0, 0)])
>>> loop.shape, loop.strides
((1000, 24), ((0, 1), (24, 1), (1, 0)))
"""

from __future__ import annotations

from collections.abc import Sequence

from tilearray.geometry.loop import LayoutCase, Loop, index_bits_of
from tilearray.geometry.reduction import merged

Ints = tuple[int, ...]


def make_fold(shape: Ints, operands: Sequence[Ints]) -> Loop:
    """Return the loop over a shape without empty axes.

    Parameters
    ----------
    shape : tuple of int
        The runs' axis first.
    operands : sequence of tuple of int
        The strides of the target, whose first one is 0, and of each input.
    """
    axes = [(*[strides[place] for strides in operands], extent) for place, extent in enumerate(shape)]
    first, others = axes[0], merged([axis for axis in axes[1:] if axis[-1] != 1])
    *strides, extents = zip(first, *others, strict=True)
    walked = tuple(strides)
    return Loop(extents, walked, (0,) * len(operands), LayoutCase.FOLD, index_bits_of(extents, walked))
