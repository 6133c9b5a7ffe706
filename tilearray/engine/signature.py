"""The state of an array: a buffer, an offset into it, and an interned signature. No operators, no conversions.

`ArrayBase` is what views, plans and launches need to know, so the layers below `tilearray.array` work on it and never
import the public class: a result is made with the class of its operands. A `Signature` joins geometry, dtype and
device. Signatures are interned in a bounded table, so a plan key hashes by identity in nanoseconds; two equal
signatures may exist after an eviction, which costs a plan miss and nothing else.
"""

from __future__ import annotations

from typing import Any, Self, TypeVar

import numpy as np

from tilearray.engine.caches import TwoGenerations
from tilearray.engine.devices import Buffer, Device, Stream
from tilearray.errors import LayoutError
from tilearray.geometry.layout import Layout


class Kind:
    """All of a signature but its layout, one object for all arrays of a kind; `is_0d` is whether there are no axes.

    Aligned means that the address of element 0 is a multiple of 16, so that a device may move whole vectors. The host
    does not care, and counts every array as aligned: only where it is `watched` it can change from view to view.
    """

    __slots__ = ("aligned", "device", "dtype", "is_0d", "itemsize", "watched")

    def __init__(self, dtype: np.dtype, device: Device, aligned: bool, is_0d: bool) -> None:
        self.dtype = dtype
        self.device = device
        self.aligned = aligned
        self.is_0d = is_0d
        self.itemsize: int = dtype.itemsize
        self.watched = device.wants_alignment


def kind_of(dtype: np.dtype, device: Device, aligned: bool, is_0d: bool) -> Kind:
    """Return the kind of arrays on a device."""
    key = (dtype, aligned, is_0d)
    return device.kinds.get(key) or device.kinds.setdefault(key, Kind(dtype, device, aligned, is_0d))


class Signature:
    """Everything about an array that a plan depends on: its layout, and its kind: most of what that says is here, too.

    `views`, `transposed` and `twin` are what `tilearray.functions.indexing.views` remembers of other signatures, while this one is
    `interned`.
    """

    __slots__ = (
        "aligned",
        "device",
        "dtype",
        "interned",
        "itemsize",
        "kind",
        "layout",
        "nbytes",
        "transposed",
        "twin",
        "views",
        "watched",
    )

    def __init__(self, layout: Layout, kind: Kind) -> None:
        self.layout = layout
        self.kind = kind
        self.dtype = kind.dtype
        self.device = kind.device
        self.aligned = kind.aligned
        self.watched = kind.watched
        self.itemsize = itemsize = kind.itemsize
        self.nbytes = layout.size * itemsize
        self.interned = True
        self.views: dict[Any, Signature] = {}
        self.transposed: Signature | None = None
        self.twin: Signature | None = None

    def forget(self) -> None:
        """Let go of other signatures: this one has left the table."""
        self.interned = False
        self.views = {}
        self.transposed = self.twin = None

    def __repr__(self) -> str:
        return f"{self.dtype.name}{list(self.layout.shape)} strides {list(self.layout.strides)} on {self.device}"


A = TypeVar("A", bound="ArrayBase")

SIGNATURES: TwoGenerations[Signature] = TwoGenerations(8192, Signature.forget)


def signature_of(layout: Layout, dtype: np.dtype, device: Device, aligned: bool = True) -> Signature:
    """Return the interned signature of a layout, dtype, device and alignment."""
    return interned(layout, kind_of(dtype, device, aligned, not layout.shape))


def interned(layout: Layout, kind: Kind) -> Signature:
    """Return the interned signature of a layout and a kind."""
    key = (layout.shape, layout.strides, kind)
    return SIGNATURES.get(key) or SIGNATURES.put(key, Signature(layout, kind))


class ArrayBase:
    """A strided view of a buffer; `tilearray.array.Array` adds the operators.

    `_export` is what its DLPack capsules are made from; there is none before the first of them.
    """

    __slots__ = ("__weakref__", "_buffer", "_export", "_offset", "_signature")

    _buffer: Buffer
    _export: Any
    _offset: int
    _signature: Signature

    @classmethod
    def _make(cls, buffer: Buffer, offset: int, signature: Signature) -> Self:
        """Return a view of `buffer` whose element 0 is `offset` bytes from its start."""
        new = object.__new__(cls)
        new._buffer = buffer
        new._offset = offset
        new._signature = signature
        return new

    def _view(self, layout: Layout, shift: int = 0, dtype: np.dtype | None = None) -> Self:
        """Return a view of the same buffer, its element 0 moved by `shift` elements."""
        old = self._signature
        offset = self._offset + shift * old.itemsize
        return self._make(self._buffer, offset, placed(self._buffer, offset, layout, dtype or old.dtype, old.device))

    @property
    def _address(self) -> int:
        """The address of element 0, in bytes."""
        return self._buffer.pointer + self._offset

    def _span(self) -> tuple[int, int]:
        """The byte addresses ``[first, last)`` that the elements lie in."""
        signature, origin = self._signature, self._address
        layout, itemsize = signature.layout, signature.itemsize
        if layout.size == 0:
            return origin, origin
        return origin + layout.low * itemsize, origin + (layout.high + 1) * itemsize


def placed(buffer: Buffer, offset: int, layout: Layout, dtype: np.dtype, device: Device) -> Signature:
    """Return the signature of a view whose element 0 is `offset` bytes into a buffer."""
    aligned = not device.wants_alignment or (buffer.pointer + offset) % 16 == 0
    return signature_of(layout, dtype, device, aligned)


def empty_array(cls: type[A], signature: Signature, stream: Stream) -> A:
    """Return uninitialised memory of a signature whose layout is dense."""
    return cls._make(signature.device.backend.allocate(signature.nbytes, stream), 0, signature)


def check_alignment(address: int, itemsize: int, function: str) -> None:
    """Raise LayoutError where a device would fault on an element that is not naturally aligned."""
    if itemsize and address % itemsize:
        raise LayoutError(
            f"{function}: the data starts at an address that is {address % itemsize} bytes past a multiple of the "
            f"itemsize {itemsize}; write x.copy() first"
        )
