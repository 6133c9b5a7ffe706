"""Views from a cache: one lookup and one new Array, in one Python frame.

The layout of a view depends on the extents and steps of a key, and not on its start: ``x[3:8]`` and ``x[4:9]`` have the
same layout. A signature therefore caches the signatures of its views by the extent and step of every slice, and by the
places of ints, ``None`` and ``...``; the start is computed for each view. The start may change the alignment; then the
signature's twin, equal but for the alignment, is taken. A transpose starts where its array does, and is an attribute of
the signature.

A key is read once: the lookup takes the ints out of it, and a view that is not cached is made from those ints. An
object with ``__index__`` may return another number when it is read again, and a 0-d array on a GPU is copied to the
host for it.

Each signature caches a bounded number of views, and drops them when it leaves the table of signatures. Otherwise a
chain of views, each cached by the one before it, would never be freed.
"""

from __future__ import annotations

from operator import index
from typing import Any

from tilearray.engine.array_type import A
from tilearray.engine.signature import ArrayBase, Signature, placed, signature_of
from tilearray.functions.indexing.gather import gather
from tilearray.functions.indexing.keys import BOOLS, PLAIN, has_arrays, is_index, is_integer
from tilearray.geometry.layout import Layout
from tilearray.ops.execute import copy_of

REMEMBERED = 256
"""The number of views that a signature caches."""

_new = object.__new__


def get(x: A, key: Any, /) -> A:
    """Return the selection of a key: a view, or a new array if the key has arrays."""
    signature = x._signature
    layout: Layout = signature.layout
    kind = key.__class__
    shift = 0
    try:
        if kind is slice:
            start, stop, step = key.indices(layout.shape[0])
            shift = start * layout.strides[0]
            try:
                found = signature.views[stop - start, step]
            except KeyError:
                return _made(x, _slice_of(start, stop, step), (stop - start, step))
        elif kind is int:
            size = layout.shape[0]
            shift = (key if key >= 0 else key + size) * layout.strides[0]
            try:
                found = signature.views[None] if -size <= key < size else None
            except KeyError:
                return _made(x, key, None)
        elif kind is tuple or key is None or key is Ellipsis:
            parts: Any = key if kind is tuple else (key,)
            selected, shift, read = _selected(layout, parts)
            try:
                found = signature.views[selected]
            except KeyError:
                key = _as_read(parts, read)
                if selected is not _OTHER:
                    return _made(x, key, selected)
                found = None
        else:
            found = None
    except (LookupError, TypeError, ValueError):
        found = None
    if found is None:
        return _taken(x, key)
    buffer = x._buffer
    offset = x._offset + shift * signature.itemsize
    if found.watched and ((buffer.pointer + offset) % 16 == 0) is not found.aligned:
        found = found.twin or twin_of(found)
    view = _new(x.__class__)
    view._buffer = buffer
    view._offset = offset
    view._signature = found
    return view


def transposed(x: A, /) -> A:
    """Return the view with its axes reversed."""
    found = x._signature.transposed or _transposed(x)
    view = _new(x.__class__)
    view._buffer = x._buffer
    view._offset = x._offset
    view._signature = found
    return view


def twin_of(signature: Signature) -> Signature:
    """Return the same signature with the other alignment."""
    twin = signature_of(signature.layout, signature.dtype, signature.device, not signature.aligned)
    if signature.interned:
        signature.twin = twin
    return twin


_OTHER = object()
"""A selection that is never cached."""
_NEW, _REST = "newaxis", "..."
"""What stands in the cache key of a selection for ``None`` and for ``...``."""
_FIXED = PLAIN - {slice}
"""The classes of parts that do not change when they are read again."""


def _selected(layout: Layout, key: tuple[Any, ...]) -> tuple[Any, int, list[Any]]:
    """The cache key of a selection, the shift of the origin, and what was read: slices as spans, and arrays as ints.

    A slice becomes its extent and step, an int becomes None. A tuple of one part has the cache key of the part alone.
    """
    selected: list[Any] = []
    read: list[Any] = []
    shape, strides = layout.shape, layout.strides
    axis = shift = 0
    for part in key:
        kind = part.__class__
        if kind is slice:
            try:
                span = part.indices(shape[axis])
            except (TypeError, ValueError):
                return _OTHER, 0, read
            start, stop, step = span
            selected.append(stop - start)
            selected.append(step)
            read.append(span)
            shift += start * strides[axis]
            axis += 1
            continue
        if part is None:
            selected.append(_NEW)
            continue
        if part is Ellipsis:
            if not PLAIN.issuperset(map(type, key)):  # a mask takes several axes
                return _OTHER, 0, read
            selected.append(_REST)
            axis += len(shape) - (len(key) - key.count(None) - key.count(Ellipsis))
            continue
        if kind is not int:
            if not is_integer(part):
                return _OTHER, 0, read
            part = index(part)
            read.append(part)
        size = shape[axis]
        if not -size <= part < size:
            return _OTHER, 0, read
        selected.append(None)
        shift += (part if part >= 0 else part + size) * strides[axis]
        axis += 1
    return selected[0] if len(selected) == 1 else tuple(selected), shift, read


def _as_read(key: tuple[Any, ...], read: list[Any]) -> tuple[Any, ...]:
    """The key with its first slices and arrays as they were read."""
    if not read:
        return key
    values = iter([_slice_of(*each) if each.__class__ is tuple else each for each in read])
    return tuple([part if part.__class__ in _FIXED else next(values, part) for part in key])


def _slice_of(start: int, stop: int, step: int) -> slice[Any, Any, Any]:
    """The slice of the ints that `slice.indices` returned, where a stop of -1 lies before the first element."""
    return slice(start, None if stop < 0 else stop, step) if start >= 0 else slice(0, 0, step)


def _made(x: A, key: Any, selected: Any) -> A:
    """A view that is not cached, of ints and of slices of ints. `selected` is its cache key."""
    signature = _interned(x)
    layout, shift = signature.layout.index(key)
    view = x._view(layout, shift)
    if layout.size:  # an empty selection keeps the origin, and is not cached
        _keep(signature, selected, view._signature)
    return view


def _taken(x: A, key: Any) -> A:
    """A view by any other key that is not cached, or a new array."""
    if is_index(key):
        return gather(x, key)
    if is_integer(key):
        return get(x, index(key))
    if has_arrays(key):
        return copy_of(switched(x, key)) if isinstance(key, BOOLS) else gather(x, key)
    layout, shift = x._signature.layout.index(key)
    return x._view(layout, shift)


def switched(x: A, key: Any) -> A:
    """Return the view that a bool selects: all elements along a new first axis of size 1, or of size 0 for False."""
    return get(get(x, None), slice(0, int(key)))


def reshaped(x: A, shape: tuple[int, ...]) -> A | None:
    """Return the view of another shape with as many elements, or None if the strides allow no view."""
    key = ("reshape", shape)
    found = view_again(key, x)
    if found is not None:
        return found
    signature = _interned(x)
    layout = signature.layout.reshape(shape)
    if layout is None:
        return None
    view = x._make(x._buffer, x._offset, placed(x._buffer, x._offset, layout, signature.dtype, signature.device))
    keep_view(key, x, view)
    return view


def view_again(words: Any, x: Any) -> Any:
    """Return the view of an array that `keep_view` keeps under words, for its signature; None if there is none."""
    try:
        found, shift = x._signature.views[words]
    except (KeyError, AttributeError, TypeError):  # not kept, not an Array, or a word is not hashable
        return None
    buffer, offset = x._buffer, x._offset + shift  # as in `get`, whose known calls enter no other function
    if found.watched and ((buffer.pointer + offset) % 16 == 0) is not found.aligned:
        found = found.twin or twin_of(found)
    view = _new(x.__class__)
    view._buffer = buffer
    view._offset = offset
    view._signature = found
    return view


def keep_view(words: Any, x: ArrayBase, view: ArrayBase) -> None:
    """Cache the signature of a view, and where it begins, under the function that made it and its arguments."""
    _keep(_interned(x), words, (view._signature, view._offset - x._offset))


def _keep(signature: Signature, key: Any, view: Any) -> None:
    """Cache a view: its signature, or also the bytes from the first element of its array."""
    if len(signature.views) >= REMEMBERED:
        signature.views.clear()
    signature.views[key] = view


def _transposed(x: ArrayBase) -> Signature:
    signature = _interned(x)
    layout = signature.layout.permute(range(signature.layout.ndim)[::-1])
    signature.transposed = found = placed(x._buffer, x._offset, layout, signature.dtype, signature.device)
    return found


def _interned(x: ArrayBase) -> Signature:
    """The array's signature, interned again if it has left the table: only interned signatures cache views."""
    if not x._signature.interned:
        x._signature = placed(x._buffer, x._offset, x._signature.layout, x._signature.dtype, x._signature.device)
    return x._signature
