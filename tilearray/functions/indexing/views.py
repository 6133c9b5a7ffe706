"""Views that were taken before: a lookup and a new Array, in one Python frame.

What a view looks like depends on what is selected and not on where: ``x[3:8]`` and ``x[4:9]`` have the same layout. So
a signature remembers the signatures of its views by the extent and step of every slice; where the view begins is
computed beside it. That can make another alignment of it, and then its twin is meant. A transpose begins where the
array does, and is one attribute away.

An index is read once: its ints are taken out of it when it is looked up, and a view that is not remembered yet is made
from those, never from a second look at objects that may say something else by then.

The memory is bounded in each signature, and cleared when the signature leaves the table of signatures: else a chain of
views, each remembered by the one before it, would stay for good.
"""

from __future__ import annotations

from typing import Any

from tilearray.engine.signature import ArrayBase, Signature, placed, signature_of
from tilearray.functions.indexing.gather import gather
from tilearray.functions.indexing.keys import has_arrays, parts_of
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
            shift = start * layout.strides[0]
            try:
                found = signature.views[stop - start, step]
            except KeyError:
                found, key = None, _slice_of(start, stop, step)
        elif kind is int:
            size = layout.shape[0]
            found = signature.views[None] if -size <= key < size else None
            shift = (key if key >= 0 else key + size) * layout.strides[0]
        elif kind is tuple and len(key) <= layout.ndim:
            selected, shift, spans = _selected(layout, key)
            try:
                found = signature.views[selected]
            except KeyError:
                found, key = None, _as_read(key, spans)
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


_OTHER = object()
"""Stands for a selection that is never remembered."""


def _selected(layout: Layout, key: tuple[Any, ...]) -> tuple[Any, int, list[tuple[int, int, int]]]:
    """What a key selects, as it is remembered, the shift of the origin, and what its slices said that were read.

    A slice leaves its extent and step, an int None. A key of one int is remembered as that int alone would be.
    """
    selected: list[int | None] = []
    spans: list[tuple[int, int, int]] = []
    shift = 0
    for part, size, stride in zip(key, layout.shape, layout.strides):
        if part.__class__ is slice:
            try:
                span = part.indices(size)
            except (TypeError, ValueError):
                return _OTHER, 0, spans
            start, stop, step = span
            selected.append(stop - start)
            selected.append(step)
            spans.append(span)
        elif part.__class__ is int and -size <= part < size:
            start = part if part >= 0 else part + size
            selected.append(None)
        else:
            return _OTHER, 0, spans
        shift += start * stride
    return None if len(selected) == 1 else tuple(selected), shift, spans


def _as_read(key: tuple[Any, ...], spans: list[tuple[int, int, int]]) -> tuple[Any, ...]:
    """The key with its first slices as they were read."""
    left = iter(spans)
    found = [next(left, None) if type(part) is slice else None for part in key]
    return tuple([part if span is None else _slice_of(*span) for part, span in zip(key, found)])


def _slice_of(start: int, stop: int, step: int) -> slice[Any, Any, Any]:
    """The slice that says of an axis what these say, which `slice.indices` found: there -1 is before the first."""
    return slice(start, None if stop < 0 else stop, step) if start >= 0 else slice(0, 0, step)


def _is_plain(part: Any) -> bool:
    """Whether a part of a key is an int, or a slice of ints, and so the same whenever it is read."""
    if part.__class__ is slice:
        return all(end is None or type(end) is int for end in (part.start, part.stop, part.step))
    return type(part) is int


def _taken(x: Any, key: Any) -> Any:
    """A view that is not remembered yet, or a new array."""
    if has_arrays(key):
        return gather(x, key)
    signature = _interned(x)
    layout, shift = signature.layout.index(key)
    view = x._view(layout, shift)
    parts = parts_of(key)
    if layout.size and all(map(_is_plain, parts)):  # where nothing is selected the origin stays, which is another rule
        if len(signature.views) >= REMEMBERED:
            signature.views.clear()
        signature.views[_selected(signature.layout, parts)[0]] = view._signature
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
