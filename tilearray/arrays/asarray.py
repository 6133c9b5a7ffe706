"""Importing: arrays from data of any library.

`asarray` shares memory if it can, on any device. It recognises an object by its protocols, in this order: tilearray's
own arrays, exact arrays of torch and CuPy (`tilearray.arrays.torch_cupy`), Python numbers and sequences, ndarrays and
objects that NumPy reads, DLPack, the CUDA Array Interface. No framework is imported.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays import torch_cupy
from tilearray.arrays.array import Array
from tilearray.dtypes import DTypeLike
from tilearray.engine.context import STATE
from tilearray.engine.devices import Device, DeviceLike, are_one, as_device
from tilearray.engine.signature import from_host, from_result, placed
from tilearray.errors import ImplicitTransferError, LayoutError, OperandError
from tilearray.functions.conversion import to_device
from tilearray.functions.joining import stack
from tilearray.functions.orders import Order, in_order
from tilearray.functions.python_data import (
    check_rectangular,
    common_dtype,
    is_python_data,
    is_sequence,
    ndarray_of,
    plain_data,
)
from tilearray.geometry.layout import Layout
from tilearray.interchange import cuda_array_interface, dlpack
from tilearray.interchange import foreign_memory as gpu_memory
from tilearray.interchange.numpy import from_host_object
from tilearray.ops.execute import copy_of
from tilearray.ops.hooks import HOOKS

_READERS = torch_cupy.READERS


def asarray(
    obj: Any,
    /,
    dtype: DTypeLike | None = None,
    order: Order | None = None,
    *,
    device: DeviceLike | None = None,
    copy: bool | None = None,
) -> Array:
    """Return an Array of `obj`, which shares its memory if possible.

    Parameters
    ----------
    obj : array of any library, buffer, number, or nested lists of numbers and arrays
        An Array; an ndarray; a tensor of torch, an array of CuPy or JAX; an object with ``__dlpack__``,
        ``__cuda_array_interface__``, ``__array_interface__``, ``__array__`` or a buffer; Python data. Lists that hold
        Arrays on a GPU are put together there.
    dtype : dtype or name, optional
        The dtype of the data if None; for Python numbers the default of their kind, or the wider dtype that holds them.
    order : {"C", "F", "A", "K"}, optional
        "C" and "F" copy an array that is not in that order. None and "K" keep the order.
    device : Device or str, optional
        The device of the result; None keeps GPU data in place, and puts host data and Python numbers on the default
        device.
    copy : bool, optional
        True always copies, False raises if a copy is needed, None copies only then.

    Raises
    ------
    OperandError
        If `obj` does not hold numbers.
    DTypeError
        If tilearray does not have its dtype.
    ScalarOverflowError
        If `dtype` does not hold a Python integer.
    LayoutError
        If ``copy=False`` and the memory cannot be shared.
    InterchangeError
        If its library cannot share it, such as a tensor that requires grad; the message says what to write.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.asarray([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int64, device='cpu')
    """
    reader = _READERS.get(obj.__class__)
    if reader is not None and dtype is None and order is None and device is None and not copy:
        known = reader(obj)
        if known is not None:
            return known
    found = _asarray(obj, None if dtype is None else dtypes.as_dtype(dtype, "asarray"), device, copy)
    return found if order is None else _ordered(found, order, copy)


def _ordered(x: Array, order: Any, copy: bool | None) -> Array:
    """`x` in an order, copied if it is not in it and `copy` allows that."""
    found = in_order("asarray", x, order)
    if copy is False and found is not x:
        raise LayoutError(
            f"asarray: copy=False, but strides {x.strides} of shape {x.shape} are not in order {order!r}; "
            f"write copy=None"
        )
    return found


HOOKS.asarray = asarray


def _asarray(obj: Any, dtype: np.dtype | None, device: Any, copy: bool | None) -> Array:
    if issubclass(type(obj), Array):
        return converted(obj, dtype, device, copy)  # type: ignore[arg-type]
    if obj.__class__ is np.ndarray:
        return _from_host(from_host_object(obj, copy=copy, function="asarray"), dtype, device, copy)
    plain = plain_data(obj, "asarray") if dtype is None and copy is not False else None
    if plain is not None:
        return to_device(from_result(plain, Array), as_device(device, "asarray"))
    if is_python_data(obj):
        if copy is False:
            raise LayoutError("asarray: copy=False, but Python numbers have no memory to share; write copy=None")
        return _of_python_data(obj, dtype, device)
    known = torch_cupy.from_framework(obj)
    if known is not None:
        return converted(known, dtype, device, copy)
    host = torch_cupy.host_tensor(obj)
    if host is None:
        host = from_host_object(obj, copy=copy, function="asarray")
    elif copy:
        host = host.copy(order="K")
    if host is None and hasattr(obj, "__dlpack__"):
        host = _from_producer(obj, copy, "asarray")
        if isinstance(host, Array):
            return converted(host, dtype, device, copy)
    if host is None and hasattr(obj, "__cuda_array_interface__"):
        found = cuda_array_interface.import_from(obj, "asarray", STATE.get().stream)
        return converted(_on_gpu(found), dtype, device, copy)
    if host is None:
        raise OperandError(
            f"asarray: expected an array, a buffer, a number or nested lists of numbers, got {type(obj).__name__}; "
            f"write ta.asarray(list(x)) for an iterable x of numbers, or float(x) for another kind of number"
        )
    return _from_host(host, dtype, device, copy)


def _of_python_data(obj: Any, dtype: np.dtype | None, device: Any) -> Array:
    """An Array of numbers or nested sequences, which is made on a GPU if Arrays in them are there."""
    try:
        made = from_result(ndarray_of(obj, dtype, "asarray"), Array)
    except ImplicitTransferError:
        return converted(_stacked(obj, dtype or common_dtype(obj, "asarray"), _gpu_in(obj)), None, device, None)
    return to_device(made, as_device(device, "asarray"))


def _gpu_in(obj: Any) -> Device | None:
    """The GPU of the first Array in nested sequences that is on one."""
    if isinstance(obj, Array):
        return None if obj.device.backend.on_host else obj.device
    return next(filter(None, map(_gpu_in, obj)), None) if is_sequence(obj) else None


def _stacked(obj: Any, dtype: np.dtype, gpu: Device | None) -> Array:
    """Nested sequences as an Array on a GPU. Numbers go there; Arrays on another device are an error."""
    if is_sequence(obj) and len(obj):
        parts = [_stacked(part, dtype, gpu) for part in obj]
        check_rectangular([part.shape for part in parts], "asarray")
        return stack(parts)
    return _asarray(obj, dtype, None if isinstance(obj, Array) else gpu, None)


def _from_host(host: np.ndarray | None, dtype: np.dtype | None, device: Any, copy: bool | None) -> Array:
    """An Array over an ndarray, which is already copied if `copy` is true; in a dtype and on a device."""
    assert host is not None
    made, target = from_host(host, Array), as_device(device, "asarray")
    if dtype is None and copy is not False:
        return to_device(made, target)
    return converted(made, dtype, target, None if copy else copy)


def converted(x: Array, dtype: np.dtype | None, device: Any, copy: bool | None) -> Array:
    """Return `x` in a dtype and on a device, copied if `copy` says so."""
    target = x.device if device is None else as_device(device, "asarray")
    moves = (x.device is not target and not are_one(x.device, target)) or (dtype is not None and dtype != x.dtype)
    if copy is False and moves:
        raise LayoutError(
            f"asarray: copy=False, but {x.dtype.name} on {x.device} becomes "
            f"{(dtype or x.dtype).name} on {target}; write copy=None"
        )
    if not moves:
        return copy_of(x) if copy else x
    moved = to_device(x, target)
    return moved if dtype is None else moved.astype(dtype, copy=False)


def _on_gpu(found: gpu_memory.Imported) -> Array:
    """An Array over another library's GPU memory."""
    device, buffer, offset, layout, dtype = found
    return Array._make(buffer, offset, placed(buffer, offset, layout, dtype, device))


def _from_producer(producer: Any, copy: bool | None, function: str) -> np.ndarray | Array:
    """The memory of a DLPack producer: an ndarray of host memory, or an Array over GPU memory."""
    taken = dlpack.take(producer, copy=copy, stream=STATE.get().stream)
    array = taken.array
    if taken.on_host:
        return dlpack.host_array(taken, copy)
    itemsize = array.dtype.itemsize
    found = gpu_memory.imported(
        taken.device[1],
        array.__array_interface__["data"][0],
        Layout(array.shape, tuple([stride // itemsize for stride in array.strides])),
        array.dtype,
        owner=array,
        readonly=not array.flags.writeable,
        stream=taken.stream,
        what=f"{function}: the data of {type(producer).__name__}",
    )
    return _on_gpu(found)


def from_dlpack(x: Any, /, *, device: DeviceLike | None = None, copy: bool | None = None) -> Array:
    """Return an Array over the memory of a DLPack producer; nothing moves unless `device` names another device.

    Parameters
    ----------
    x : object
        With ``__dlpack__`` and ``__dlpack_device__``.
    device : Device or str, optional
        The device of the result; None keeps the memory in place.
    copy : bool, optional
        True always copies, False raises if a copy is needed, None copies only then.

    Raises
    ------
    InterchangeError
        If the memory cannot be shared as asked.
    DTypeError
        If tilearray does not have its dtype.
    LayoutError
        If ``copy=False`` and a copy is needed.

    Examples
    --------
    >>> import numpy as np
    >>> import tilearray as ta
    >>> source = np.arange(3.0)
    >>> ta.from_dlpack(source)[0] = 7
    >>> source
    array([7., 1., 2.])
    """
    found: Any = (
        x._make(x._buffer, x._offset, x._signature) if issubclass(type(x), Array) else torch_cupy.from_framework(x)
    )
    if found is None and not issubclass(type(x), np.ndarray):
        found = _from_producer(x, copy, "from_dlpack")
    if not isinstance(found, Array):  # host memory, already copied if `copy` is true
        host = dlpack.from_capsule_producer(x, copy=copy) if found is None else found
        found, copy = from_host(host, Array), None if copy else copy
    return converted(found, None, device, copy)
