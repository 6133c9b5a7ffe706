"""The state of an array: a buffer, an offset into it, and an interned signature. No operators, no conversions.

Views, plans and launches need only `ArrayBase`. Therefore the folders below `tilearray.arrays.array` work on it and
never import the public class: a result has the class of its operands. A `Signature` joins layout, dtype and device. A
bounded table interns signatures, so a plan key hashes by identity in nanoseconds. After an eviction two equal
signatures may exist; the only cost is a plan miss.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np

from tilearray.dtypes import info
from tilearray.engine.backend import Buffer, Stream
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE
from tilearray.engine.devices import CPU, Device
from tilearray.errors import LayoutError, OperandError, type_name
from tilearray.geometry.layout import Layout
from tilearray.geometry.shapes import LARGEST, MOST_AXES, check_extent

B = TypeVar("B", bound="ArrayBase")
_new: Any = object.__new__

HostData: TypeAlias = (
    "complex | np.generic | np.ndarray[Any, Any] | list[Any] | tuple[Any, ...]"  # complex: all numbers
)
"""A number, an ndarray or a list: operands that are not Arrays. Beside an Array on a GPU, only numbers are."""

Operand: TypeAlias = "ArrayBase | HostData"
"""An operand of a function or an operator."""


class Traits:
    """A signature without its layout. Equal traits are the same object.

    Attributes
    ----------
    aligned : bool
        Whether element 0 is 16-byte aligned, so that a device may load and store vectors. Arrays on the host always
        count as aligned.
    is_0d : bool
        Whether the array has no axes.
    indexes : bool
        Whether the array is an index array or a mask: of integers or bools, and with axes.
    watched : bool
        Whether a view may have a different alignment from its array.
    """

    __slots__ = ("aligned", "device", "dtype", "indexes", "is_0d", "itemsize", "watched")

    def __init__(self, dtype: np.dtype, device: Device, aligned: bool, is_0d: bool) -> None:
        self.dtype = dtype
        self.device = device
        self.aligned = aligned
        self.indexes = not is_0d and dtype.kind in "iub"
        self.is_0d = is_0d
        self.itemsize: int = dtype.itemsize
        self.watched = device.wants_alignment


def traits_of(dtype: np.dtype, device: Device, aligned: bool, is_0d: bool) -> Traits:
    """Return the interned traits of arrays on a device."""
    key = (dtype, aligned, is_0d)
    return device.traits.get(key) or device.traits.setdefault(key, Traits(dtype, device, aligned, is_0d))


class Signature:
    """The facts of an array that a plan depends on: its layout and its traits (whose fields are repeated here).

    `byte_strides` are the strides of the layout in bytes, as NumPy counts them.

    While the signature is `interned`, its attributes `views`, `transposed` and `twin` cache other signatures for
    `tilearray.functions.indexing.views`.
    """

    __slots__ = (
        "aligned",
        "byte_strides",
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
        self.byte_strides = tuple([stride * itemsize for stride in layout.strides])
        if layout.ndim > MOST_AXES or not 0 < self.nbytes <= LARGEST:
            check_extent(layout.shape, itemsize)
        self.interned = True
        self.views: dict[Any, Any] = {}
        self.transposed: Signature | None = None
        self.twin: Signature | None = None

    def forget(self) -> None:
        """Drop the cached signatures after an eviction from the table."""
        self.interned = False
        self.views = {}
        self.transposed = self.twin = None

    def __repr__(self) -> str:
        return f"{info(self.dtype).name}{list(self.layout.shape)} strides {list(self.layout.strides)} on {self.device}"


SIGNATURES: TwoGenerations[Signature] = TwoGenerations(8192, Signature.forget)


def signature_of(layout: Layout, dtype: np.dtype, device: Device, aligned: bool = True) -> Signature:
    """Return the interned signature of a layout, dtype, device and alignment."""
    return interned(layout, traits_of(dtype, device, aligned, not layout.shape))


def interned(layout: Layout, traits: Traits) -> Signature:
    """Return the interned signature of a layout and traits."""
    key = (layout.shape, layout.strides, traits)
    return SIGNATURES.get(key) or SIGNATURES.put(key, Signature(layout, traits))


class ArrayBase:
    """A strided view of a buffer. `tilearray.arrays.array.Array` adds the operators.

    The attributes with an underscore are the internal interface of the package. After a DLPack export, `_export` holds
    it.
    """

    __slots__ = ("__weakref__", "_buffer", "_export", "_offset", "_signature")

    _public: ClassVar[type[ArrayBase]]
    """The class of a new array that has no array as operand: the last subclass of `ArrayBase` that is `public`."""

    _recorded: ClassVar[bool] = False
    """Whether arrays of the class may have no memory yet. It is writable when it exists."""

    _buffer: Buffer
    _export: Any
    _offset: int
    _signature: Signature

    def __init_subclass__(cls, public: bool = True) -> None:
        if public:
            ArrayBase._public = cls

    @classmethod
    def _make(cls, buffer: Buffer, offset: int, signature: Signature) -> Self:
        """Return a view of `buffer` with element 0 at `offset` bytes."""
        new = object.__new__(cls)
        new._buffer = buffer
        new._offset = offset
        new._signature = signature
        return new

    def _view(self, layout: Layout, shift: int = 0, dtype: np.dtype | None = None) -> Self:
        """Return a view of the same buffer, with element 0 moved by `shift` elements."""
        old = self._signature
        offset = self._offset + shift * old.itemsize
        return self._make(self._buffer, offset, placed(self._buffer, offset, layout, dtype or old.dtype, old.device))

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
        return self._signature.layout.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """The distance between neighbours along each axis, in elements."""
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
        """The number of bytes of one element."""
        return self._signature.itemsize

    @property
    def nbytes(self) -> int:
        """The number of bytes of all elements: size times itemsize."""
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
        """Return the range ``[first, last)`` of byte addresses that contains all elements."""
        return span_of(self._signature, self._buffer.pointer + self._offset)


def span_of(signature: Signature, origin: int) -> tuple[int, int]:
    """Return the range ``[first, last)`` of byte addresses of all elements, if element 0 is at `origin`."""
    layout, itemsize = signature.layout, signature.itemsize
    if layout.size == 0:
        return origin, origin
    return origin + layout.low * itemsize, origin + (layout.high + 1) * itemsize


def placed(buffer: Buffer, offset: int, layout: Layout, dtype: np.dtype, device: Device) -> Signature:
    """Return the signature of a view with element 0 at `offset` bytes of a buffer."""
    aligned = not device.wants_alignment or (buffer.pointer + offset) % 16 == 0
    return signature_of(layout, dtype, device, aligned)


def empty_array(cls: type[B], signature: Signature, stream: Stream) -> B:
    """Return an uninitialised array of a signature with a dense layout."""
    if signature.device is CPU:
        return over(np.empty(signature.layout.size, signature.dtype), signature, cls)
    return cls._make(signature.device.backend.allocate(signature.nbytes, stream), 0, signature)


def new_array(cls: type[B], signature: Signature) -> B:
    """Return an uninitialised array of a signature with a dense layout, allocated on the active stream."""
    return empty_array(cls, signature, STATE.get().stream)


def from_host(array: np.ndarray, cls: type[B]) -> B:
    """Return an array that shares the memory of an ndarray.

    Raises
    ------
    LayoutError
        If the memory is not aligned for its dtype.
    """
    new = _new(cls)
    base: Any = array.base
    if base is not None and (base.base is not None if base.__class__ is np.ndarray else isinstance(base, _LEADING)):
        array = _without_lender(array)
    flags = array.flags
    if not flags.aligned and array.size:
        check_alignment(array.ctypes.data, array.dtype.alignment, "asarray")
    key = (array.shape, array.strides, array.dtype)
    signature = _KNOWN.get(key)
    if signature is None or not signature.interned:
        shape, strides, dtype = key
        layout = Layout(shape, tuple([stride // dtype.itemsize for stride in strides]))
        signature = _known(key, signature_of(layout, dtype, CPU))
    if signature.layout.contiguous:
        new._buffer, new._offset = CPU.backend.adopt(array.ravel(), not flags.writeable, signature), 0
    else:
        new._buffer, new._offset = CPU.backend.from_numpy(array, copy=False)
    new._signature = signature
    return new


def _without_lender(array: np.ndarray) -> np.ndarray:
    """Return the ndarray over an Array's memory if the Array lent it: then chains of round trips do not grow.

    A dense array keeps its first lender, because NumPy takes a microsecond to tell an address.
    """
    owner = _lender(array)
    if owner is None or not array.size or (array.flags.c_contiguous and _lender(owner._buffer.memory) is None):
        return array
    if owner._buffer.readonly is array.flags.writeable:
        return array
    strides = tuple([stride // array.itemsize for stride in array.strides])
    offset = array.ctypes.data - owner._buffer.pointer
    return CPU.backend.to_numpy(owner._buffer, offset, array.shape, strides, array.dtype)


def _lender(array: np.ndarray) -> Any:
    """Return the Array that lent its memory to an ndarray, or None."""
    owner: Any = array.base
    while isinstance(owner, _HOLDERS):
        owner = owner.obj if isinstance(owner, memoryview) else owner.base
    return owner if isinstance(owner, ArrayBase) else None


_HOLDERS: tuple[type[Any], ...] = (np.ndarray, memoryview)
"""The classes of objects that hold the memory of another object, and lead to it."""
_LEADING = (*_HOLDERS, ArrayBase)
"""The classes of the bases that an Array may have lent its memory to, or that are one."""

_KNOWN: dict[Any, Signature] = {}
"""Signatures by the facts of an ndarray, or of a new array in C order: one lookup instead of a layout and another."""

KNOWN = 4096
"""The number of such signatures."""


def _known(key: Any, signature: Signature) -> Signature:
    if len(_KNOWN) >= KNOWN:
        _KNOWN.clear()
    _KNOWN[key] = signature
    return signature


def dense_signature(shape: tuple[int, ...], dtype: np.dtype, device: Device, function: str = "array") -> Signature:
    """Return the signature of a new array in C order; the sizes are checked. `function` is for the error message.

    Examples
    --------
    >>> dense_signature((2, 3), np.dtype("int8"), CPU)
    int8[2, 3] strides [3, 1] on cpu
    """
    key = (shape, dtype, device.name)
    found = _KNOWN.get(key)
    if found is None or not found.interned:
        check_extent(shape, dtype.itemsize, function)
        found = _known(key, signature_of(Layout.of(shape), dtype, device))
    return found


def from_result(array: np.ndarray, cls: type[B]) -> B:
    """Return an array in C order with the elements of an ndarray that nobody else holds: over its memory if it fits.

    Examples
    --------
    >>> import tilearray as ta
    >>> from_result(np.array([1, 2]), ta.Array)
    Array([1, 2], dtype=int64, device='cpu')
    """
    if not array.flags.carray:  # in C order, writable and aligned
        array = np.array(array, order="C")
    shape = array.shape
    signature = _KNOWN.get((shape, array.dtype, "cpu"))
    if signature is None or not signature.interned:
        signature = dense_signature(shape, array.dtype, CPU)
    return over(array if len(shape) == 1 else array.ravel(), signature, cls)


def over(memory: np.ndarray, signature: Signature, cls: type[B]) -> B:
    """Return an array over an ndarray of one axis that nobody else holds and that has all its elements without gaps."""
    new = _new(cls)
    new._buffer = CPU.backend.adopt(memory, False, signature)
    new._offset = 0
    new._signature = signature
    return new


def check_array(function: str, x: object, name: str = "x") -> None:
    """Raise OperandError if the type of `x` is not an Array: ``isinstance`` believes what `x` says of its class."""
    if not issubclass(type(x), ArrayBase):
        raise OperandError(f"{function}: expected a tilearray Array, got {type_name(x)}; write ta.asarray({name})")


def overlap(x: ArrayBase, y: ArrayBase) -> bool:
    """Return whether the address ranges of two arrays overlap."""
    device = x._signature.device
    if device is not y._signature.device:
        return False
    if device is CPU and not (x._recorded or y._recorded):  # NumPy finds addresses faster
        mine: Any = x._buffer
        other: Any = y._buffer
        if not np.may_share_memory(mine.memory, other.memory):  # so no views of them do either
            return False
        return np.may_share_memory(CPU.backend.elements(x), CPU.backend.elements(y))
    first, last = x._span()
    start, end = y._span()
    return start < last and first < end


def before_access(x: ArrayBase) -> None:
    """End a recording that reads the memory of `x`, before code that it does not see may write to the memory.

    A caller asks for `RECORDINGS` first, which is faster than a call.
    """
    recording = STATE.get().recording
    if recording is not None:
        recording.end_for(x)


def check_alignment(address: int, itemsize: int, function: str) -> None:
    """Raise LayoutError if the address is not a multiple of the itemsize, because a device would fault."""
    if itemsize and address % itemsize:
        raise LayoutError(
            f"{function}: the data starts at an address that is {address % itemsize} bytes past a multiple of the "
            f"itemsize {itemsize}; write x.copy() first"
        )
