"""Arrays of torch and CuPy, read from their attributes: the import with the lowest cost.

The first instance of a class creates the reader of the class. No framework is imported: a tensor exists only if torch
is imported. A reader looks the signature up by shape, strides, dtype, device and alignment, so an import is a few
attributes, a lookup, and two new objects. Tensors that are more than their memory are left to the protocols, whose
errors give the reason. torch itself gives the memory of a tensor on the host to NumPy, in a tenth of DLPack's time.

Only exact classes are read this way, because a subclass may change the meaning of its attributes. The library's current
stream orders the memory, as in its own exports. The Array keeps torch's storage alive, since a tensor may get another
storage, and CuPy's memory pointer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.engine.devices import as_device, default_device
from tilearray.engine.signature import from_host, signature_of
from tilearray.engine.streams import LEGACY_STREAM, PER_THREAD_STREAM
from tilearray.errors import DTypeError
from tilearray.geometry.layout import Layout
from tilearray.interchange.foreign_memory import foreign

Reader = Callable[[Any], Array | None]
READERS: dict[type, Reader] = {}
"""The readers of exact classes."""

_DTYPES = frozenset((*dtypes.ALL, *dtypes.PACKED))

KNOWN_LAYOUTS = 4096
"""The number of layouts that a reader caches before it clears the cache."""


class Known(NamedTuple):
    """The signature and the extent of the memory, for a shape, strides, dtype, device and alignment."""

    signature: Any
    offset: int
    nbytes: int
    gpu: int
    is_complex: bool


def from_framework(obj: object) -> Array | None:
    """Return an Array over the memory of an array of torch's or CuPy's exact class; None for everything else.

    If the default device is a GPU, tensors on the host are left to `host_tensor`.
    """
    cls: type[object] = type(obj)
    reader = READERS.get(cls)
    if reader is None:
        for module, name, make in (("torch", "Tensor", torch_reader), ("cupy", "ndarray", cupy_reader)):
            framework = sys.modules.get(module)
            if framework is not None and getattr(framework, name, None) is cls:
                reader = READERS[cls] = make(framework)
    return None if reader is None else reader(obj)


def host_tensor(obj: Any) -> np.ndarray | None:
    """Return the memory of a torch tensor of the exact class on the host as an ndarray, if torch and NumPy share it.

    None for everything else: tensors of other dtypes, and tensors that are more than their memory, are left to the
    protocols, whose errors give the reason.
    """
    torch = sys.modules.get("torch")
    if torch is None or obj.__class__ is not getattr(torch, "Tensor", None):
        return None
    return _host_memory(obj)


def _host_memory(tensor: Any) -> np.ndarray | None:
    try:
        host = tensor.numpy()
    except (RuntimeError, TypeError):  # it requires grad; another device or dtype; a build without NumPy
        return None
    return host if host.dtype in _DTYPES and host.flags.aligned else None


def _from_host_tensor(tensor: Any) -> Array | None:
    """Return an Array over a host tensor's memory, if data on the host become arrays on the host."""
    host = _host_memory(tensor) if default_device().backend.on_host else None
    return None if host is None else from_host(host, Array)


def _learn(
    known: dict[Any, Known], key: Any, index: int, shape: Any, strides: tuple[int, ...], dtype: Any, residue: int
) -> Known | None:
    """Cache a layout; None if the protocols must say the error."""
    try:
        ours = dtypes.as_dtype(dtype, "asarray")
    except DTypeError:
        return None
    layout = Layout(tuple(shape), strides)
    if residue % ours.itemsize and layout.size:
        return None
    signature = signature_of(layout, ours, as_device(f"cuda:{index}", "asarray"), residue == 0)
    nbytes = (layout.high - layout.low + 1) * ours.itemsize if layout.size else 0
    if len(known) >= KNOWN_LAYOUTS:
        known.clear()
    return known.setdefault(
        key, Known(signature, -layout.low * ours.itemsize, nbytes, index, dtypes.info(ours).kind == "complex")
    )


def torch_reader(torch: Any) -> Reader:
    """Return the reader of ``torch.Tensor``."""
    known: dict[Any, Known] = {}
    buffer_class: Any = None
    current_stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (
        lambda index: torch.cuda.current_stream(index).cuda_stream
    )
    new = object.__new__

    def learn(tensor: Any, key: Any) -> Known | None:
        nonlocal buffer_class
        if not tensor.is_cuda:  # on a device of another kind
            return None
        buffer_class = foreign().ForeignBuffer
        _, shape, strides, index, residue = key
        return _learn(known, key, index, shape, strides, tensor.dtype, residue)

    def read(tensor: Any) -> Array | None:
        try:
            device = tensor.get_device()
            if device < 0:
                return _from_host_tensor(tensor)
            pointer = tensor.data_ptr()
            key = tensor.dtype, tensor.shape, tensor.stride(), device, pointer & 15
            found = known.get(key) or learn(tensor, key)
            if found is None or tensor.requires_grad or tensor.is_neg() or (found.is_complex and tensor.is_conj()):
                return None
            owner = tensor.untyped_storage()
        except (RuntimeError, NotImplementedError):  # sparse, nested, or without one block of memory
            return None
        signature, offset, nbytes, index, _ = found
        buffer: Any = new(buffer_class)
        buffer.device_index = index
        buffer.pointer = pointer - offset
        buffer.nbytes = nbytes
        buffer.owner = owner
        stream = current_stream(index)
        buffer.stream = stream if stream > PER_THREAD_STREAM else LEGACY_STREAM
        array = new(Array)
        array._buffer, array._offset, array._signature = buffer, offset, signature
        return array

    return read


def cupy_reader(cupy: Any) -> Reader:
    """Return the reader of ``cupy.ndarray``."""
    known: dict[Any, Known] = {}
    buffer_class: Any = None
    current_stream = cupy.cuda.get_current_stream
    new = object.__new__

    def learn(array: Any, key: Any) -> Known | None:
        nonlocal buffer_class
        buffer_class = foreign().ForeignBuffer
        dtype, shape, byte_strides, index, residue = key
        if any(stride % dtype.itemsize for stride in byte_strides):
            return None
        strides = tuple([stride // dtype.itemsize for stride in byte_strides])
        return _learn(known, key, index, shape, strides, np.dtype(dtype), residue)

    def read(array: Any) -> Array | None:
        memory = array.data
        pointer, index = memory.ptr, memory.device_id
        key = array.dtype, array.shape, array.strides, index, pointer & 15
        found = known.get(key) or learn(array, key)
        if found is None:
            return None
        buffer: Any = new(buffer_class)
        buffer.device_index = index
        buffer.pointer = pointer - found.offset
        buffer.nbytes = found.nbytes
        buffer.owner = memory
        stream = current_stream(index).ptr
        buffer.stream = stream if stream > PER_THREAD_STREAM else LEGACY_STREAM
        return Array._make(buffer, found.offset, found.signature)

    return read
