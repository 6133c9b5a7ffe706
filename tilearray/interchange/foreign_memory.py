"""Memory of other libraries on a GPU, for all protocols: its first and last byte, and its owner."""

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
    """Imported memory: its device and buffer, the offset of element 0 in bytes, its layout and dtype."""

    device: Device
    buffer: Buffer
    offset: int
    layout: Layout
    dtype: np.dtype


def foreign() -> Any:
    """Return the CUDA backend's module for other libraries' memory; imported at the first use of a GPU."""
    return importlib.import_module("tilearray_cuda.runtime.interop")


def imported(
    index: int, address: int, layout: Layout, dtype: np.dtype, *, owner: object, readonly: bool, stream: int, what: str
) -> Imported:
    """Return memory on the GPU of an index. Element 0 is at `address`, and `stream` orders the memory. No byte is read.

    Raises
    ------
    LayoutError
        If the address is not a multiple of the itemsize; `what` names function and object.
    DeviceUnavailableError
        If the machine does not have this GPU.
    """
    size = dtype.itemsize
    if layout.size and (not address or address % size):
        raise LayoutError(
            f"{what}: expected an address that is a multiple of the itemsize {size}, got {address:#x}; copy the array "
            f"in its own library first"
        )
    device = as_device(f"cuda:{index}", what.partition(":")[0])
    nbytes = (layout.high - layout.low + 1) * size if layout.size else 0
    buffer = foreign().borrow(index, address + layout.low * size, nbytes, owner, readonly, stream)
    return Imported(device, buffer, -layout.low * size, layout, dtype)
