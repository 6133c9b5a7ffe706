"""Arrays of recorded results: their shape, dtype and strides exist at once, their memory when something needs it.

A `Pending` array is an `Array` over a `Node` instead of a buffer. All code of the library reaches memory through
``x._buffer``. For a `Pending` array that is a property, which ends the recording: then the array is over real memory,
and its class is `Array` again. Views and comparisons of addresses do not need the memory, and end nothing.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import numpy as np

from tilearray.arrays.array import Array
from tilearray.engine.context import Recording
from tilearray.engine.signature import ArrayBase, Signature, signature_of, span_of
from tilearray.functions.indexing import assign, views
from tilearray.functions.indexing.keys import has_arrays, is_index
from tilearray.functions.indexing.scatter import without_leading_axes
from tilearray.geometry.layout import Layout
from tilearray.ops.execute import store

_slot: Any = ArrayBase.__dict__["_buffer"]


class Node:
    """The memory of a recorded result, which does not exist yet.

    Attributes
    ----------
    recording : Recording
        The recording. Its end makes the memory.
    place : int
        The number of the result in the recording.
    signature : Signature
        The signature of the result.
    address : int
        An address far from all others, so that views overlap as they will in memory.
    memory : Buffer or None
        The memory, after the end of the recording.
    """

    __slots__ = ("__weakref__", "_arrays", "address", "memory", "place", "recording", "signature")

    _addresses = itertools.count(1)

    def __init__(self, recording: Recording, place: int, signature: Signature) -> None:
        self.recording = recording
        self.place = place
        self.signature = signature
        self.address = -(next(self._addresses) << 64)
        self.memory: Any = None
        self._arrays: list[weakref.ref[Pending]] = []

    def array(self, offset: int, signature: Signature) -> Pending:
        """Return a view of the result with element 0 at an offset in bytes."""
        new = object.__new__(Pending)
        _slot.__set__(new, self)
        new._offset = offset
        new._signature = signature
        self._arrays.append(weakref.ref(new))
        return new

    def settle(self, memory: Any) -> None:
        """Put all arrays over memory that has the elements."""
        self.memory = memory
        for reference in self._arrays:
            array = reference()
            if array is not None:
                array._buffer = memory


def node_of(x: Any) -> Node | None:
    """Return the node of an array whose memory does not exist yet, or None for any other array."""
    if x.__class__ is not Pending:
        return None
    found = _slot.__get__(x)
    return found if found.__class__ is Node else None


def _same_view(x: ArrayBase, y: ArrayBase) -> bool:
    return node_of(x) is node_of(y) and x._offset == y._offset and x._signature is y._signature


class Pending(Array, public=False):
    """A recorded result, or a view of one. It becomes an `Array` when its memory is needed."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]
    _recorded = True

    def _memory(self) -> Any:
        node = _slot.__get__(self)
        if node.__class__ is Node:
            if node.memory is None:
                node.recording.end()
            assert node.memory is not None  # else a finalizer needs the result while the recording runs
            self._buffer = node.memory
        return _slot.__get__(self)

    def _use_memory(self, buffer: Any) -> None:
        _slot.__set__(self, buffer)
        self.__class__ = Array  # type: ignore[assignment]

    _buffer: Any = property(_memory, _use_memory)  # type: ignore[assignment]

    @classmethod
    def _make(cls, buffer: Any, offset: int, signature: Signature) -> Any:
        return Array._make(buffer, offset, signature)

    def _view(self, layout: Layout, shift: int = 0, dtype: np.dtype | None = None) -> Any:
        node, old = node_of(self), self._signature
        if node is None or dtype not in (None, old.dtype):
            return super()._view(layout, shift, dtype)
        offset = self._offset + shift * old.itemsize
        aligned = not old.watched or offset % 16 == 0  # new memory is
        return node.array(offset, signature_of(layout, old.dtype, old.device, aligned))

    def _span(self) -> tuple[int, int]:
        node = node_of(self)
        return super()._span() if node is None else span_of(self._signature, node.address + self._offset)

    def __getitem__(self, key: Any, /) -> Any:
        if is_index(key) or has_arrays(key):
            return views.get(self, key)
        return self._view(*self._signature.layout.index(key))

    def __setitem__(self, key: Any, value: Any, /) -> None:
        if is_index(key) or has_arrays(key):
            assign.set(self, key, value)
            return
        target, node = self[key], node_of(value)
        if node is None:
            assign.set_view(target, value if isinstance(value, ArrayBase) else assign.taken(self, value))
        elif not _same_view(target, value):  # the same view is the last step of `x[key] += y`
            spare = value.ndim > target.ndim
            store(target, without_leading_axes(value, target.ndim) if spare else value)

    @property
    def T(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The view with its axes reversed."""
        layout = self._signature.layout
        return self._view(layout.permute(range(layout.ndim)[::-1]))
