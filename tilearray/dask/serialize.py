"""Arrays in messages of dask.distributed, without a copy where memory is dense in any order of the axes.

- The family "dask", over TCP and to disk: one frame of host memory. An array of a GPU is copied to the host, and from
  there to the default device of the receiving process, if that is a GPU: each worker has its own.
- The family "cuda", over UCX: one frame of GPU memory.

A broadcast axis travels as one element. A host array that arrives in memory that is read-only or unaligned is copied.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.dtypes import as_dtype
from tilearray.engine.devices import default_device
from tilearray.engine.signature import from_host
from tilearray.functions.conversion import to_device
from tilearray.functions.manipulation import broadcast_to, permute_dims, reshape, view
from tilearray.functions.pickling import carried
from tilearray.interchange.numpy import share_or_copy

Header = dict[str, Any]


def register(module: Any) -> None:
    """Enter the Array into both families; `module` is ``distributed.protocol.cuda``."""
    host: Any = importlib.import_module("distributed.protocol.serialize")
    host.dask_serialize.register(Array, to_host_frame)
    host.dask_deserialize.register(Array, from_host_frame)
    module.cuda_serialize.register(Array, to_device_frame)
    module.cuda_deserialize.register(Array, from_device_frame)


def to_host_frame(x: Array) -> tuple[Header, list[memoryview]]:
    """Return a header, and the elements as bytes."""
    header, dense = packed(x)
    return header, [carried(dense).reshape(-1).view(np.uint8).data]


def from_host_frame(header: Header, frames: list[Any]) -> Array:
    """Return the array of a header and of bytes."""
    (frame,) = frames
    flat = np.frombuffer(frame, np.uint8)
    if not flat.flags.writeable and header["writable"]:
        flat = flat.copy()
    dense = from_host(share_or_copy(flat.view(as_dtype(header["dtype"])), None, "dask_deserialize"), Array)
    if header["on_gpu"] and not default_device().backend.on_host:
        dense = to_device(dense, default_device())
    return unpacked(header, dense)


def to_device_frame(x: Array) -> tuple[Header, list[Array]]:
    """Return a header, and the elements as an array of bytes on the same GPU."""
    if x.device.backend.on_host:
        raise NotImplementedError("cuda_serialize: the array is on the host")  # dask then asks the family "dask"
    header, dense = packed(x)
    return header, [view(reshape(dense, -1), np.dtype("u1"))]


def from_device_frame(header: Header, frames: list[Any]) -> Array:
    """Return the array of a header and of an object with the CUDA Array Interface, whose memory it shares."""
    (frame,) = frames
    return unpacked(header, view(asarray(frame), as_dtype(header["dtype"])))


def packed(x: Array) -> tuple[Header, Array]:
    """Return a header, and the elements without gaps in C order: a view, or a copy of elements with gaps."""
    strides = [0 if n == 1 else stride for n, stride in zip(x.shape, x.strides)]
    once = x[tuple([slice(None) if stride or n < 2 else slice(1) for n, stride in zip(x.shape, strides)])]
    order = sorted(range(x.ndim), key=lambda axis: -abs(strides[axis]))
    dense = permute_dims(once, order)
    if not dense._signature.layout.contiguous:
        dense = dense.copy("C")
    header = {
        "dtype": x.dtype.name,
        "shape": dense.shape,
        "order": tuple(order),
        "broadcast": x.shape,
        "on_gpu": not x.device.backend.on_host,
        "writable": not x._buffer.readonly,
    }
    return header, dense


def unpacked(header: Header, dense: Array) -> Array:
    """Return the array of a header and of its elements in one row."""
    order = list(header["order"])
    once = permute_dims(reshape(dense, tuple(header["shape"])), [order.index(axis) for axis in range(len(order))])
    shape = tuple(header["broadcast"])
    return once if once.shape == shape else broadcast_to(once, shape)
