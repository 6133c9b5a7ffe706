"""Memory of other libraries, and ours in their hands: which GPU it is on, and which stream waits for which.

Streams here are those of the exchange protocols: 1 is the legacy default stream, 2 the per-thread default stream, -1
asks for nothing, and everything else is a driver's handle.
"""

from __future__ import annotations

import ctypes
from typing import Any

from tilearray_cuda.device import CudaDevice, open_device
from tilearray_cuda.runtime.driver import LEGACY_STREAM, SUCCESS, api, c_function, failure, is_capturing, status_of
from tilearray_cuda.runtime.memory.buffers import ForeignBuffer, ReadOnlyBuffer
from tilearray_cuda.runtime.streams import home_of

NO_WAIT = -1
LEGACY = 1
PER_THREAD = 2


def handle_of(stream: int) -> int:
    """Return the handle of the stream that orders memory which a protocol says to be ordered by `stream`.

    The per-thread default stream is another one in every thread. The legacy default stream waits for all of them, and
    they for it, so it stands in for them.
    """
    return LEGACY_STREAM if stream in (LEGACY, PER_THREAD) else stream


def device_of(pointer: int) -> int:
    """Return the index of the GPU that an address belongs to.

    The driver is asked itself: cuda-bindings 13.3 answers 0 for every address.

    Raises
    ------
    CudaError
        If it is in no GPU's memory.
    """
    open_device(0)  # the driver has to be in use before it can be asked
    index = ctypes.c_int()
    attribute = int(api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
    ask = c_function("cuPointerGetAttribute", ctypes.POINTER(ctypes.c_int), ctypes.c_int, ctypes.c_uint64)
    status = status_of(ask(ctypes.byref(index), attribute, pointer))
    if status is not SUCCESS:
        raise failure("cuPointerGetAttribute", status)
    return index.value


def borrow(index: int, pointer: int, nbytes: int, owner: object, readonly: bool, stream: int) -> ForeignBuffer:
    """Return a buffer over memory on a GPU that keeps its owner alive; nothing is copied or waited for.

    Raises
    ------
    NoDeviceError
        If there is no such GPU.
    """
    open_device(index)
    buffer = (ReadOnlyBuffer if readonly else ForeignBuffer)()
    buffer.device_index = index
    buffer.pointer = pointer
    buffer.nbytes = nbytes
    buffer.owner = owner
    buffer.stream = handle_of(stream)
    return buffer


def lend(device: CudaDevice, buffer: Any, stream: int) -> int:
    """Let a consumer use a buffer on its stream; return the stream that orders the memory for it.

    The consumer's stream waits for ours, and the memory is not reused before it is done. Nothing waits where the
    consumer asks for nothing, or where a wait would lead out of a capture: the answer is our stream then.
    """
    handle = handle_of(stream)
    if buffer.stream == handle:
        return stream
    home = home_of(buffer)
    if stream == NO_WAIT or (is_capturing(home) and not is_capturing(handle)):
        return home or LEGACY
    device.join(buffer, handle)
    if stream == PER_THREAD and home != handle:
        device.events.wait(PER_THREAD, home)
    return stream
