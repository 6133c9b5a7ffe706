"""The gradients of views: of what a part of memory adds to a loss, and which elements of it another view sees.

The reverse pass goes over steps that read and write views of memory. It keeps for each memory a list of pieces: a view,
and the cotangent of its elements. Reading a view adds a piece. Before a step that wrote a view, the pass takes the
cotangents of that view out: they belong to the step, and what was in the memory before has none.

Mostly one piece is a view of another one, so the same strides over the piece's array give the cotangents: transposes,
flips, broadcasts and whole arrays need no memory. Pieces that only cover parts of a view are added up in zeros, or in a
fused function block by block. Windows are as many pieces as one of them has elements.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.arrays.fusion.tracing import open_trace
from tilearray.engine.signature import ArrayBase, placed
from tilearray.functions.conversion import astype
from tilearray.functions.indexing.views import get
from tilearray.functions.manipulation import new_like, reshape
from tilearray.functions.reduce import reduce
from tilearray.functions.sum_to_shape import unbroadcast_axes
from tilearray.geometry.layout import Layout
from tilearray.geometry.strides import rows_along
from tilearray.geometry.walk import Walk, walk_of_view
from tilearray.ops.arithmetic import add
from tilearray.ops.execute import copy_of, execute, fill
from tilearray.ops.moves import assign
from tilearray.ops.number_parts import real

Spread = Callable[[Any, np.ndarray, int], Any]
"""``spread(values, positions, size)`` adds values up at positions of an array of one axis."""


class View(NamedTuple):
    """A part of memory.

    Attributes
    ----------
    memory : object
        Compared by identity.
    offset : int
        That of its first element, in bytes.
    layout : Layout
    dtype : numpy.dtype
    """

    memory: Any
    offset: int
    layout: Layout
    dtype: np.dtype

    @property
    def span(self) -> tuple[int, int]:
        """The range ``[first, last)`` of the bytes of all elements."""
        size, layout = self.dtype.itemsize, self.layout
        if not layout.size:
            return self.offset, self.offset
        return self.offset + layout.low * size, self.offset + (layout.high + 1) * size

    def meets(self, other: View) -> bool:
        """Whether the ranges of two views overlap."""
        (first, last), (start, end) = self.span, other.span
        return first < end and start < last

    def is_same(self, other: View) -> bool:
        """Whether two views of one memory have the same elements in the same order."""
        return (self.offset, self.layout, self.dtype) == (other.offset, other.layout, other.dtype)


FEW = 64
"""The most elements of a window whose cotangents are added up as slices. Of more they are added up at their places."""


class Piece(NamedTuple):
    """The cotangents of the elements of a view, without those of views that were taken out."""

    view: View
    value: Any
    holes: tuple[View, ...] = ()


class Cotangents:
    """The cotangents of all memories in a reverse pass."""

    def __init__(self, spread: Spread) -> None:
        self._spread = spread
        self._pieces: dict[int, list[Piece]] = {}

    def add(self, view: View, value: Any) -> None:
        """Add the cotangents of the elements of a view, an array of its shape and dtype."""
        if not view.layout.size:
            return
        view, value = _without_repeats(view, value)
        axes = _overlapping_axes(view.layout)
        if axes and prod([view.layout.shape[axis] for axis in axes]) <= FEW:
            for place in itertools.product(
                *[range(n) if axis in axes else [slice(None)] for axis, n in enumerate(view.layout.shape)]
            ):
                self.add(_at(view, place), get(value, place))
            return
        if axes:
            view, value = _gathered(view, value, self._spread)
        pieces = self._pieces.setdefault(id(view.memory), [])
        for place, piece in enumerate(pieces):
            if piece.view.is_same(view) and not piece.holes:
                pieces[place] = Piece(piece.view, add(piece.value, value))
                return
        pieces.append(Piece(view, value))

    def take(self, view: View) -> Any:
        """Take the cotangents of a view out, and return them; None if there are none."""
        pieces = self._pieces.get(id(view.memory), [])
        near = [piece for piece in pieces if piece.view.meets(view)]
        if not near:
            return None
        found: list[Any] = [None if piece.holes else moved(piece, view) for piece in near]
        if all(value is not None for value in found):
            total = found[0]
            for value in found[1:]:
                total = add(total, value)
            kept = [_without(piece, view) for piece in near]
        else:
            whole = _summed(near, view)
            total, kept = _part(whole, view), [_without(whole, view)]
        others = [piece for piece in pieces if not piece.view.meets(view)]
        self._pieces[id(view.memory)] = [*others, *[piece for piece in kept if piece is not None]]
        return total


def _without(piece: Piece, view: View) -> Piece | None:
    """Return a piece without a view; None if nothing is left."""
    if view.layout.size >= piece.view.layout.size and view.dtype == piece.view.dtype:
        return None
    return Piece(piece.view, piece.value, (*piece.holes, view))


def moved(piece: Piece, view: View) -> Any:
    """Return the cotangents of a view from a piece that has all of them as a view of its array, else None."""
    base = piece.view
    if base.is_same(view):
        return piece.value
    if base.dtype != view.dtype:
        return None
    shift, rest = divmod(view.offset - base.offset, base.dtype.itemsize)
    walk = None if rest else walk_of_view(base.layout, view.layout, shift)
    if walk is not None:
        start, strides = walk.strided(piece.value._signature.layout.strides)
        return piece.value._view(Layout(view.layout.shape, strides), start)
    same = base.layout.contiguous and view.layout.canonical and not shift and base.layout.size == view.layout.size
    return reshape(piece.value, view.layout.shape) if same else None


# --- pieces with several elements in one place ---------------------------------------------------------------------


def _without_repeats(view: View, value: Any) -> tuple[View, Any]:
    """Return a view without axes along which it repeats elements, and the sums of their cotangents."""
    layout = view.layout
    axes = tuple([axis for axis, (n, stride) in enumerate(zip(layout.shape, layout.strides)) if n > 1 and not stride])
    if not axes:
        return view, value
    value = reduce("sum", value, axes, value.dtype, True)
    return view._replace(layout=Layout(value._signature.layout.shape, layout.strides)), value


def _overlapping_axes(layout: Layout) -> list[int]:
    """Return the shortest axes, as those of windows, at whose places the elements of a layout are all different."""
    found: list[int] = []
    for axis in sorted(range(layout.ndim), key=lambda axis: layout.shape[axis]):
        rest = [1 if each in found else n for each, n in enumerate(layout.shape)]
        if not Layout(tuple(rest), layout.strides).overlaps_itself:
            break
        if layout.shape[axis] > 1:
            found.append(axis)
    return found


def _at(view: View, key: tuple[Any, ...]) -> View:
    layout, shift = view.layout.index(key)
    return view._replace(offset=view.offset + shift * view.dtype.itemsize, layout=layout)


def _gathered(view: View, value: Any, spread: Spread) -> tuple[View, Any]:
    """Return a view that has each element once, and the sums of its cotangents."""
    layout = view.layout
    extent = layout.high - layout.low + 1
    grid = np.zeros(layout.shape, np.int64)
    for axis, stride in enumerate(layout.strides):
        grid += (np.arange(layout.shape[axis]) * stride).reshape((-1,) + (1,) * (layout.ndim - axis - 1))
    offset = view.offset + layout.low * view.dtype.itemsize
    return View(view.memory, offset, Layout.of((extent,)), view.dtype), spread(value, grid - layout.low, extent)


# --- pieces that cover a part -----------------------------------------------------------------------------------------


def _summed(pieces: Sequence[Piece], view: View) -> Piece:
    """Return one dense piece with the sums of pieces, which covers a view, too."""
    views = [view, *[each for piece in pieces for each in (piece.view, *piece.holes)]]
    widest = max(views, key=lambda each: each.dtype.itemsize)
    dtype = widest.dtype
    first = min(each.span[0] for each in views)
    first -= (first - widest.offset) % dtype.itemsize
    last = max(each.span[1] for each in views)
    extent = -(-(last - first) // dtype.itemsize)
    deepest = max((piece.value for piece in pieces), key=lambda value: value.device.depth)
    root = View(view.memory, first, Layout.of((extent,)), dtype)
    if open_trace() is not None:
        root = _in_rows(root, views)
        cells = _cells(root, views)
        if cells is not None:
            return Piece(root, _summed_in_cells(pieces, root, cells, deepest))
    found: Any = None
    for piece in sorted(pieces, key=lambda piece: not piece.holes):
        if found is not None and not piece.holes:
            target = _seen(found, root, piece.view)
            add(target, piece.value, out=target)
            continue
        zeros = _zeros(deepest, root)
        _add_into(zeros, root, piece)
        for hole in piece.holes:
            fill(_seen(zeros, root, hole), 0, "vjp")
        found = zeros if found is None else add(found, zeros)
    return Piece(root, found)


def _in_rows(root: View, views: Sequence[View]) -> View:
    """Return a dense array of the same elements, or of some more at both ends, of which most views are slices."""
    size, found, most = root.dtype.itemsize, root, 0
    start, end = root.offset // size, root.offset // size + root.layout.size
    for steps in dict.fromkeys([rows_along(each.layout.shape, each.layout.strides) for each in views]):
        first, last = start // steps[0], -(-end // steps[0])
        inner = [step // smaller for step, smaller in itertools.pairwise(steps)]
        offset = first * steps[0] * size + root.offset % size
        rows = root._replace(offset=offset, layout=Layout.of((last - first, *inner)))
        count = sum(_steps_in(rows, other) is not None for other in views)
        if count > most:
            found, most = rows, count
    return found


def _steps_in(root: View, view: View) -> Walk | None:
    """Return the walk over a dense array of a slice of it; None if two of its axes are along the same one."""
    shift, rest = divmod(view.offset - root.offset, root.dtype.itemsize)
    walk = None if rest or view.dtype != root.dtype else walk_of_view(root.layout, view.layout, shift)
    moved = [axis for step in walk.steps for axis, move in enumerate(step) if move] if walk else []
    return walk if len(set(moved)) == len(moved) else None


def _cells(root: View, views: Sequence[View]) -> list[View] | None:
    """Return blocks of a dense array, of each of which every view has all elements or none; None if they are many.

    A fused function computes each block in one kernel, and blocks of one shape in the same one.
    """
    shape, strides = root.layout.shape, root.layout.strides
    cuts = [{0, n} for n in shape]
    for each in views:
        walk = _steps_in(root, each)
        if walk is None:
            return None
        sizes: list[int] = []
        for axis, (first, taken) in enumerate(zip(walk.start, cuts)):
            moves = [step[axis] * (n - 1) for step, n in zip(walk.steps, each.layout.shape)]
            low, high = first + sum(min(move, 0) for move in moves), first + sum(max(move, 0) for move in moves)
            taken.update((low, high + 1))
            sizes.append(high + 1 - low)
        if prod(sizes) != each.layout.size:
            return None
    if prod([len(each) - 1 for each in cuts]) > FEW:
        return None
    found: list[View] = []
    for block in itertools.product(*[itertools.pairwise(sorted(each)) for each in cuts]):
        shift = sum(low * stride for (low, _), stride in zip(block, strides))
        layout = Layout(tuple([high - low for low, high in block]), strides)
        found.append(View(root.memory, root.offset + shift * root.dtype.itemsize, layout, root.dtype))
    return found


def _summed_in_cells(pieces: Sequence[Piece], root: View, cells: Sequence[View], like: Any) -> Any:
    """Return a dense array with the sums of pieces, each cell of which is written once."""
    found = new_like(like, root.layout.shape, root.dtype)
    for cell in cells:
        target, total = _seen(found, root, cell), None
        for piece in pieces:
            value = None if any(_has(hole, cell) for hole in piece.holes) else moved(piece, cell)
            if value is not None:
                total = value if total is None else add(total, value)
        if total is None:
            fill(target, 0, "vjp")
        else:
            execute(assign, (total,), target)
    return found


def _has(view: View, cell: View) -> bool:
    """Whether all elements of a cell are in a view."""
    shift = (cell.offset - view.offset) // view.dtype.itemsize
    return walk_of_view(view.layout, cell.layout, shift) is not None


def _zeros(like: Any, root: View) -> Any:
    return fill(new_like(like, root.layout.shape, root.dtype), 0, "vjp")


def _seen(dense: Any, root: View, view: View) -> Any:
    """Return the elements of a view in the array of a dense piece."""
    offset = dense._offset + view.offset - root.offset
    return dense._make(dense._buffer, offset, placed(dense._buffer, offset, view.layout, view.dtype, dense.device))


def _add_into(zeros: Any, root: View, piece: Piece) -> None:
    execute(assign, (piece.value,), _seen(zeros, root, piece.view))


def _part(whole: Piece, view: View) -> Any:
    found = _seen(whole.value, whole.view, view)
    return found if view.layout.size == whole.view.layout.size else copy_of(found)


# --- from the result of a rule to the cotangent of an operand -------------------------------------------------------


def fitted(value: Any, view: View) -> Any:
    """Return what a rule gives for an operand as its cotangent: of its shape and dtype; None for the number 0."""
    if not isinstance(value, ArrayBase):
        return None
    shape, dtype = view.layout.shape, view.dtype
    if dtypes.info(value.dtype).kind == "complex" and dtypes.info(dtype).kind != "complex":
        value = real(value)
    axes = unbroadcast_axes(shape, value.shape)
    if axes:
        value = reshape(reduce("sum", value, axes, value.dtype, False), shape)
    return value if value.dtype == dtype else in_dtype(value, dtype)


def in_dtype(value: Any, dtype: np.dtype) -> Any:
    """Return an array cast to a dtype."""
    return astype(value, dtype)
