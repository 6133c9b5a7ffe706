"""`take` and `take_along_axis`: elements at integer indices along one axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.array_type import A
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.remembered import INT_OR_NONE, again_of_arrays
from tilearray.engine.signature import ArrayBase, HostData, Signature, signature_of
from tilearray.errors import IndexingError, ShapeError, shown
from tilearray.functions.arguments import as_array
from tilearray.functions.indexing.gather import gather, gather_selected, positions_of, remember_gather
from tilearray.functions.indexing.keys import Ints, Selection, as_index
from tilearray.functions.manipulation import reshape
from tilearray.functions.reduction_options import finished
from tilearray.geometry.layout import Layout, broadcast_shapes
from tilearray.geometry.shapes import normalize_axis
from tilearray.ops.arithmetic import remainder
from tilearray.ops.composed import clip
from tilearray.ops.execute import stored_as
from tilearray.ops.moves import convert


def take(x: A | HostData, /, indices: Any, axis: int | None = None, out: A | None = None, mode: str = "raise") -> A:
    """Return the elements at indices along an axis, as ``x[:, indices]`` does for axis 1.

    Parameters
    ----------
    x : Array
    indices : Array, ndarray or list of integers
        Of any shape, which replaces the axis; negative ones count from the end.
    axis : int, optional
        None takes from all elements in C order.
    out : Array, optional
        Takes the result, which it must have the shape of; it is returned.
    mode : {"raise", "wrap", "clip"}
        Indices outside the axis are errors, count modulo its size, or become the nearest index.

    Returns
    -------
    Array
        Of the dtype of `x`.

    Raises
    ------
    IndexingError
        If an index is outside the axis (on a GPU as `set_index_check` says), or is not an integer.
    ShapeError
        If `x` has no such axis.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.take(ta.asarray([[1, 2, 3], [4, 5, 6]]), [2, 0], axis=1)
    Array([[3, 1],
           [6, 4]], dtype=int64, device='cpu')
    """
    is_usual = out is None and axis.__class__ in INT_OR_NONE and mode.__class__ is str and mode == "raise"
    words = ("take", axis) if is_usual else None
    known = again_of_arrays(words, x, indices)
    if known is not None:
        return known
    x = as_array("take", x)
    if axis is None and x.ndim != 1:
        x, words = reshape(x, -1), None
    found: Any = integers_of(indices, x, "take")
    place = normalize_axis(0 if axis is None else axis, x.ndim, "take")
    if mode != "raise":
        found = _within(found, x.shape[place], mode)
    index = found if found.shape else found[None]
    key = (*(slice(None),) * place, index) if place else index
    taken = gather(x, key)
    if words is not None and index is indices:
        remember_gather(words, x, index, key)
    return finished("take", taken if found.shape else taken.squeeze(place), out)


def _within(indices: ArrayBase, size: int, mode: Any) -> ArrayBase:
    """Indices that are all inside an axis."""
    if mode not in ("wrap", "clip"):
        raise IndexingError(f"take: expected mode as 'raise', 'wrap' or 'clip', got {shown(mode)}; write one of them")
    if not size:
        raise IndexingError("take: expected an axis with elements, got size 0; write mode='raise' for no indices")
    wide = stored_as(convert, indices, dtypes.int64)
    return remainder(wide, size) if mode == "wrap" else clip(wide, 0, size - 1)


def take_along_axis(x: A | HostData, /, indices: Any, axis: int | None = -1) -> A:
    """Return for each place of `indices` the element of `x` at that place, with the index as the position on the axis.

    The results of ``argsort`` and ``argmax`` are used with this function.

    Parameters
    ----------
    x : Array
    indices : Array, ndarray or list of integers
        With as many axes as `x`; the other axes broadcast.
    axis : int, optional
        None takes `x` as one axis, in C order.

    Returns
    -------
    Array
        A new array of the dtype of `x` and the broadcast shape of `indices`.

    Raises
    ------
    IndexingError
        If an index is outside the axis (on a GPU as `set_index_check` says), or is not an integer.
    ShapeError
        If the number of axes differs, or the shapes do not broadcast.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.asarray([[30, 10, 20], [4, 6, 5]])
    >>> ta.take_along_axis(x, [[1, 2], [0, 2]])
    Array([[10, 20],
           [ 4,  5]], dtype=int64, device='cpu')
    """
    x = as_array("take_along_axis", x)
    x, axis = (reshape(x, -1), 0) if axis is None else (x, axis)
    return along_axis(x, integers_of(indices, x, "take_along_axis"), axis)


def along_axis(x: A, found: Any, axis: Any, inside: bool = False) -> A:
    """Return what `take_along_axis` does of an Array of indices, which may be known to lie inside the axis."""
    mine, other = x._signature, found._signature
    known = _ALONG.get((mine, other, axis)) if axis.__class__ is int else None  # True equals 1, and is an error
    if known is None:
        known = _along(mine, other, axis)
        if axis.__class__ is int:
            _ALONG.put((mine, other, axis), known)
    whole, place, common = known
    view = x._make(x._buffer, x._offset, whole)
    return gather_selected(AlongAxis(view, (place,), (found,), common, 0, inside))


def _along(x: Signature, indices: Signature, axis: Any) -> tuple[Signature, int, Ints]:
    """The view that is indexed, its indexed axis, and the shape of the result, of `take_along_axis`."""
    shape, other = x.layout.shape, indices.layout.shape
    if len(other) != len(shape) or not shape:
        raise ShapeError(
            f"take_along_axis: expected indices of {max(len(shape), 1)} axes for shape {shape}, got shape "
            f"{other}; write ta.expand_dims(indices, axis), or ta.take"
        )
    place = normalize_axis(axis, len(shape), "take_along_axis")
    others = [(*sizes[:place], 1, *sizes[place + 1 :]) for sizes in (shape, other)]
    common = list(broadcast_shapes(*others, function="take_along_axis"))
    whole, common[place] = (*common[:place], shape[place], *common[place + 1 :]), other[place]
    view = signature_of(x.layout.broadcast_to(whole), x.dtype, x.device, x.aligned)
    return view, place, tuple(common)


_ALONG: TwoGenerations[tuple[Signature, int, Ints]] = TwoGenerations(512)


class AlongAxis(Selection):
    """The selection of `take_along_axis`: the index has all axes of the view."""

    __slots__ = ()

    @property
    def result_shape(self) -> Ints:
        """The common shape of view and indices."""
        return self.shape

    @property
    def key(self) -> tuple[np.ndarray, ...]:
        """The selection as a key for NumPy: positions along every axis."""
        positions: list[np.ndarray] = list(np.ix_(*[np.arange(size) for size in self.shape]))
        positions[self.axes[0]] = np.broadcast_to(positions_of(self.indices[0]), self.shape)
        return tuple(positions)

    def over_rest(self, strides: Ints) -> Ints:
        """Strides of the view: 0 along the indexed axis."""
        axis = self.axes[0]
        return (*strides[:axis], 0, *strides[axis + 1 :])

    def over_indices(self, layout: Layout) -> Ints:
        """Strides of the indices along all axes."""
        return layout.broadcast_to(self.shape).strides


def integers_of(indices: Any, x: ArrayBase, function: str) -> Any:
    """Return indices as an integer Array on the device of `x`."""
    found = as_index(indices, x.device)
    if found.dtype.kind == "b":
        raise IndexingError(f"{function}: expected integers as indices, got bool; write x[mask]")
    return found
