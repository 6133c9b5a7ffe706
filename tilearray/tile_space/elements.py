"""Elements of an array at indices of which some lie outside: cuTile's `gather` and `scatter`.

An index counts from the start of its axis, so a negative one is outside. Outside elements are padding when they are
read, and are not stored when they are written. All indices are moved inside before an element is accessed, so no check
of indices runs, and the host does not wait for one.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple, cast

from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.arrays.fills import full
from tilearray.arrays.fusion.fuse import fuse
from tilearray.dtypes import int64
from tilearray.errors import IndexingError, ShapeError
from tilearray.functions.indexing.gather import gather, gather_selected
from tilearray.functions.indexing.keys import as_index, select
from tilearray.functions.indexing.take import integers_of
from tilearray.functions.manipulation import broadcast_to, reshape
from tilearray.functions.searching import where
from tilearray.geometry.layout import broadcast_shapes
from tilearray.ops.arithmetic import bitwise_and
from tilearray.ops.composed import clip


class Places(NamedTuple):
    """Indices of one shape for each axis of an array, all inside; and which of them were inside before."""

    indices: tuple[Array, ...]
    inside: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """The common shape of the indices."""
        return self.inside.shape


def places_of(function: str, view: Array, indices: Any, mask: Any) -> Places:
    """Return the places that indices name in an array that has elements, where a mask is true."""
    given = cast("tuple[Any, ...]", indices) if isinstance(indices, tuple) else (indices,)
    if len(given) != view.ndim:
        raise IndexingError(
            f"{function}: expected a tuple of {view.ndim} index arrays for shape {view.shape}, got {len(given)}; write "
            f"an array or an int for each axis"
        )
    arrays: list[Any] = [integers_of(index, view, function) for index in given]
    masks: list[Any] = [] if mask is None else [as_index(mask, view.device)]
    if masks and masks[0].dtype.kind != "b":
        raise IndexingError(f"{function}: expected a mask of bools, got {masks[0].dtype.name}; write mask != 0")
    shape = broadcast_shapes(*[array.shape for array in (*arrays, *masks)], function=function)
    together = [[broadcast_to(each, shape) for each in some] for some in (arrays, masks)]
    inside, near = _moved_inside(together[0], together[1], view.shape)
    return Places(tuple(near), inside)


@fuse
def _moved_inside(indices: list[Array], masks: list[Array], sizes: tuple[int, ...]) -> tuple[Array, list[Array]]:
    """Return where all indices are inside and masks are true, and the nearest indices that are inside."""
    wide = [index.astype(int64) for index in indices]  # a number beyond int64 becomes a negative one
    holds = [(index >= 0) & (index < size) for index, size in zip(wide, sizes, strict=True)]
    near = [clip(index, 0, size - 1) for index, size in zip(wide, sizes, strict=True)]
    return reduce(bitwise_and, [*masks, *holds]), near


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to another one without a change of that.

    Examples
    --------
    >>> broadcasts_to((3, 1), (2, 3, 4)), broadcasts_to((3,), (1,)), broadcasts_to((1, 3), (3,))
    (True, False, False)
    """
    pairs = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(size in (1, wanted) for size, wanted in pairs)


def with_axis(view: Array, indices: Any) -> tuple[Array, Any]:
    """Return an array of one element with an axis, and the index for it if there were none."""
    return reshape(view, 1, copy=False), (0,) if indices == () else indices


def gathered(view: Array, indices: Any, mask: Any, padding: Any) -> Array:
    """Return the elements at indices; `padding` outside, or the nearest element if it is None."""
    if 0 in view.shape:  # all indices are outside, and the nearest element is that of a padded array
        view = full((1,) * view.ndim, 0 if padding is None else padding, dtype=view.dtype, device=view.device)
    if not view.ndim:
        view, indices = with_axis(view, indices)
    places = places_of("gather", view, indices, mask)
    elements = _elements(view, places)
    if padding is None:
        return elements
    return where(places.inside, elements, full((), padding, dtype=view.dtype, device=view.device))


def _elements(view: Array, places: Places) -> Array:
    """Return the elements at places, all of which are inside."""
    if not places.shape:
        return _elements(view, Places(_flat(places.indices), reshape(places.inside, -1))).squeeze(0)
    device = view._signature.device
    if device.functions is not None or device.backend.indexing is not None:
        return gather(view, places.indices)
    return gather_selected(select(view, places.indices)._replace(inside=True))


def _flat(arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple([reshape(array, -1) for array in arrays])


def scattered(view: Array, indices: Any, value: Any, mask: Any) -> None:
    """Write values to the elements at indices; those outside are not stored."""
    if 0 in view.shape:
        return
    if not view.ndim:
        view, indices = with_axis(view, indices)
    places = places_of("scatter", view, indices, mask)
    inside, *kept = _flat((places.inside, *places.indices))
    key: Any = tuple([index[inside] for index in kept])
    if isinstance(value, int | float | complex):
        view[key] = value
        return
    given = value if isinstance(value, Array) else asarray(value, device=view.device)
    if not broadcasts_to(given.shape, places.shape):
        raise ShapeError(
            f"scatter: expected a value that broadcasts to the indices' shape {places.shape}, got shape "
            f"{given.shape}; write a value of that shape"
        )
    view[key] = reshape(broadcast_to(given, places.shape), -1)[inside]
