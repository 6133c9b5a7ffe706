"""Memory of other libraries on a GPU, whatever the protocol: where it begins and ends, and who keeps it alive."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilearray.engine.devices import Device, as_device
from tilearray.errors import LayoutError
from tilearray.geometry.layout import Layout

if TYPE_CHECKING:
    from tilearray.engine.backend import Buffer


class Imported(NamedTuple):
    """The device of some memory, its buffer, where element 0 is in it in bytes, and how it is laid out."""

    device: Device
    buffer: Buffer
    offset: int
    layout: Layout
    dtype: np.dtype


def foreign() -> Any:
    """The part of the CUDA backend that deals with other libraries; imported when a GPU comes into play."""
    return importlib.import_module("tilearray_cuda.runtime.interop")


def imported(
    index: int, address: int, layout: Layout, dtype: np.dtype, *, owner: object, readonly: bool, stream: int, what: str
) -> Imported:
    """Return memory on the GPU of an index, its element 0 at an address and ordered by a stream; it is not touched.

    Raises
    ------
    LayoutError
        If the address is no multiple of the itemsize; `what` names function and object.
    DeviceUnavailableError
        If there is no such GPU.
    """
    size = dtype.itemsize
    if layout.size and (not address or address % size):
        raise LayoutError(
            f"{what} is at {address:#x}, not at a multiple of the itemsize {size}; write a copy in its own library"
        )
    device = as_device(f"cuda:{index}", what.partition(":")[0])
    nbytes = (layout.high - layout.low + 1) * size if layout.size else 0
    buffer = foreign().borrow(index, address + layout.low * size, nbytes, owner, readonly, stream)
    return Imported(device, buffer, -layout.low * size, layout, dtype)
