"""The state of an array: a buffer, an offset into it, and an interned signature. No operators, no conversions.

`ArrayBase` is what views, plans and launches need to know, so the layers below `tilearray.array` work on it and never
import the public class: a result is made with the class of its operands. A `Signature` joins geometry, dtype and
device. Signatures are interned in a bounded table, so a plan key hashes by identity in nanoseconds; two equal
signatures may exist after an eviction, which costs a plan miss and nothing else.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from tilearray.engine.backend import Buffer, Stream
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE
from tilearray.engine.devices import CPU, Device
from tilearray.errors import LayoutError, OperandError, type_name
from tilearray.geometry.layout import Layout


class Traits:
    """All of a signature except its layout; equal traits are the same object.

    Attributes
    ----------
    aligned : bool
        Whether the address of element 0 is a multiple of 16, so that a device may move whole vectors. On the host every
        array counts as aligned.
    is_0d : bool
        Whether the array has no axes.
    watched : bool
        Whether a view may have another alignment than its array.
    """

    __slots__ = ("aligned", "device", "dtype", "is_0d", "itemsize", "watched")

    def __init__(self, dtype: np.dtype, device: Device, aligned: bool, is_0d: bool) -> None:
        self.dtype = dtype
        self.device = device
        self.aligned = aligned
        self.is_0d = is_0d
        self.itemsize: int = dtype.itemsize
        self.watched = device.wants_alignment


def traits_of(dtype: np.dtype, device: Device, aligned: bool, is_0d: bool) -> Traits:
    """Return the interned traits of arrays on a device."""
    key = (dtype, aligned, is_0d)
    return device.traits.get(key) or device.traits.setdefault(key, Traits(dtype, device, aligned, is_0d))


class Signature:
    """Everything about an array that a plan depends on: its layout and its traits, whose fields are repeated here.

    While the signature is `interned`, `views`, `transposed` and `twin` cache other signatures for
    `tilearray.functions.indexing.views`.
    """

    __slots__ = (
        "aligned",
        "device",
        "dtype",
        "interned",
        "itemsize",
        "layout",
        "nbytes",
        "traits",
        "transposed",
        "twin",
        "views",
        "watched",
    )

    def __init__(self, layout: Layout, traits: Traits) -> None:
        self.layout = layout
        self.traits = traits
        self.dtype = traits.dtype
        self.device = traits.device
        self.aligned = traits.aligned
        self.watched = traits.watched
        self.itemsize = itemsize = traits.itemsize
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
    return interned(layout, traits_of(dtype, device, aligned, not layout.shape))


def interned(layout: Layout, traits: Traits) -> Signature:
    """Return the interned signature of a layout and traits."""
    key = (layout.shape, layout.strides, traits)
    return SIGNATURES.get(key) or SIGNATURES.put(key, Signature(layout, traits))


class ArrayBase:
    """A strided view of a buffer; `tilearray.array.Array` adds the operators.

    The attributes with an underscore are the package's internal interface; `Array` shows none of them. `_export` holds
    the array's DLPack export once there is one.
    """

    __slots__ = ("__weakref__", "_buffer", "_export", "_offset", "_signature")

    public: ClassVar[type[ArrayBase]]
    """The class of arrays that are made from no array: the last subclass that was defined."""

    _buffer: Buffer
    _export: Any
    _offset: int
    _signature: Signature

    def __init_subclass__(cls) -> None:
        ArrayBase.public = cls

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
    def shape(self) -> tuple[int, ...]:
        """The extent of every axis."""
        return self._signature.layout.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """The distance between neighbours along every axis, in elements."""
        return self._signature.layout.strides

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._signature.layout.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._signature.layout.size

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements."""
        return self._signature.dtype

    @property
    def device(self) -> Device:
        """The device that holds the memory."""
        return self._signature.device

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self._signature.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements: size times itemsize."""
        return self._signature.nbytes

    @property
    def offset(self) -> int:
        """The position of element ``[0, ..., 0]`` in the buffer, in elements."""
        return self._offset // max(self._signature.itemsize, 1)

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


def new_array(cls: type[A], signature: Signature) -> A:
    """Return uninitialised memory of a signature whose layout is dense, ordered by the stream in force."""
    return empty_array(cls, signature, STATE.get().stream)


def from_host(array: np.ndarray, cls: type[A]) -> A:
    """Return an array over an ndarray's memory.

    Raises
    ------
    LayoutError
        If the memory is not aligned for its dtype.
    """
    itemsize = array.dtype.itemsize
    buffer, offset = CPU.backend.from_numpy(array, copy=False)
    layout = Layout(array.shape, tuple([stride // itemsize for stride in array.strides]))
    if array.size:
        check_alignment(buffer.pointer + offset, array.dtype.alignment, "asarray")
    return cls._make(buffer, offset, signature_of(layout, array.dtype, CPU))


def check_array(function: str, x: object, name: str = "x") -> None:
    """Raise OperandError unless `x` is an Array."""
    if not isinstance(x, ArrayBase):
        raise OperandError(f"{function}: expected a tilearray Array, got {type_name(x)}; write ta.asarray({name})")


def overlap(x: ArrayBase, y: ArrayBase) -> bool:
    """Return whether the bytes that two arrays span overlap."""
    if x._signature.device is not y._signature.device:
        return False
    first, last = x._span()
    start, end = y._span()
    return start < last and first < end


def check_alignment(address: int, itemsize: int, function: str) -> None:
    """Raise LayoutError where a device would fault on an element that is not naturally aligned."""
    if itemsize and address % itemsize:
        raise LayoutError(
            f"{function}: the data starts at an address that is {address % itemsize} bytes past a multiple of the "
            f"itemsize {itemsize}; write x.copy() first"
        )
