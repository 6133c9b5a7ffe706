"""Views that were taken before: a lookup and a new Array, in one Python frame.

What a view looks like depends on what is selected and not on where: ``x[3:8]`` and ``x[4:9]`` have the same layout. So
a signature remembers the signatures of its views by the extent and step of every slice; where the view begins is
computed beside it. That can make another alignment of it, and then its twin is meant. A transpose begins where the
array does, and is one attribute away.

The memory is bounded in each signature, and cleared when the signature leaves the table of signatures: else a chain of
views, each remembered by the one before it, would stay for good.
"""

from __future__ import annotations

from typing import Any

from tilearray.engine.signature import ArrayBase, Signature, placed, signature_of
from tilearray.functions.indexing.gather import gather
from tilearray.functions.indexing.keys import has_arrays
from tilearray.geometry.layout import Layout

REMEMBERED = 256
"""Views that a signature remembers."""

_new = object.__new__


def get(x: Any, key: Any, /) -> Any:
    """Return what `key` selects: a view, or, where arrays are in it, a new array."""
    signature = x._signature
    layout: Layout = signature.layout
    kind = key.__class__
    shift = 0
    try:
        if kind is slice:
            start, stop, step = key.indices(layout.shape[0])
            found = signature.views[stop - start, step]
            shift = start * layout.strides[0]
        elif kind is int:
            size = layout.shape[0]
            found = signature.views[None] if -size <= key < size else None
            shift = (key if key >= 0 else key + size) * layout.strides[0]
        else:
            selected, shift = _selected(layout, key)
            found = signature.views[selected]
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


def transposed(x: Any, /) -> Any:
    """Return the view with its axes reversed."""
    found = x._signature.transposed or _transposed(x)
    view = _new(x.__class__)
    view._buffer = x._buffer
    view._offset = x._offset
    view._signature = found
    return view


def twin_of(signature: Signature) -> Signature:
    """Return the same signature but for the alignment."""
    twin = signature_of(signature.layout, signature.dtype, signature.device, not signature.aligned)
    if signature.interned:
        signature.twin = twin
    return twin


def _selected(layout: Layout, key: Any) -> tuple[Any, int]:
    """What a key selects, as it is remembered, and the shift of the origin; TypeError if it is no basic key.

    A slice leaves its extent and step, an int None. A key with one part is remembered as that part alone would be.
    """
    if key.__class__ is not tuple or len(key) > layout.ndim:
        raise TypeError
    selected: list[int | None] = []
    shift = 0
    for part, size, stride in zip(key, layout.shape, layout.strides):
        if part.__class__ is slice:
            start, stop, step = part.indices(size)
            selected += (stop - start, step)
        elif part.__class__ is int and -size <= part < size:
            start = part if part >= 0 else part + size
            selected.append(None)
        else:
            raise TypeError
        shift += start * stride
    return tuple(selected) if selected != [None] else None, shift


def _taken(x: Any, key: Any) -> Any:
    """A view that is not remembered yet, or a new array."""
    if has_arrays(key):
        return gather(x, key)
    signature = _interned(x)
    layout, shift = signature.layout.index(key)
    view = x._view(layout, shift)
    if layout.size:  # where nothing is selected the origin stays, which is another rule
        try:
            selected = _selected(signature.layout, key if isinstance(key, tuple) else (key,))[0]  # pyright: ignore[reportUnknownVariableType]
        except TypeError:
            return view
        if len(signature.views) >= REMEMBERED:
            signature.views.clear()
        signature.views[selected] = view._signature
    return view


def _transposed(x: ArrayBase) -> Signature:
    signature = _interned(x)
    layout = signature.layout.permute(range(signature.layout.ndim)[::-1])
    signature.transposed = found = placed(x._buffer, x._offset, layout, signature.dtype, signature.device)
    return found


def _interned(x: ArrayBase) -> Signature:
    """The array's signature, put into the table again where it had left it: only those there remember views."""
    if not x._signature.interned:
        x._signature = placed(x._buffer, x._offset, x._signature.layout, x._signature.dtype, x._signature.device)
    return x._signature
