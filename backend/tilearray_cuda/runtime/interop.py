"""Memory of other libraries, and our memory in their hands: its GPU, and the waits between streams.

Stream numbers here are those of the exchange protocols: 1 is the legacy default stream, 2 the per-thread default
stream, and -1 asks for no wait. Every other number is a driver's handle. `tilearray_cuda.runtime.driver` has the table.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Protocol

from tilearray_cuda.runtime.driver import (
    LEGACY_ALIAS,
    LEGACY_STREAM,
    NO_WAIT,
    PER_THREAD_STREAM,
    SUCCESS,
    api,
    c_function,
    check_fork,
    failure,
    initialise,
    is_capturing,
    status_of,
)
from tilearray_cuda.runtime.gpu import Events
from tilearray_cuda.runtime.memory.buffers import ForeignBuffer, ReadOnlyBuffer
from tilearray_cuda.runtime.streams import home_of


class Lender(Protocol):
    """The GPU of a buffer that is lent; `tilearray_cuda.device.CudaDevice` is one."""

    events: Events
    join: Callable[..., None]


def handle_of(stream: int) -> int:
    """Return the handle of the stream that orders memory, from the protocol's number of the stream.

    The per-thread default stream is a different stream in each thread. The legacy default stream and the per-thread
    streams wait for each other, so the legacy stream replaces them.
    """
    return LEGACY_STREAM if stream in (LEGACY_ALIAS, PER_THREAD_STREAM) else stream


def device_of(pointer: int) -> int:
    """Return the index of the GPU that an address belongs to.

    This calls the driver's own function, because cuda-bindings 13.3 returns 0 for every address.

    Raises
    ------
    CudaError
        If the address is not in the memory of a GPU.
    """
    initialise()
    index = ctypes.c_int()
    attribute = int(api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
    ask = c_function("cuPointerGetAttribute", ctypes.POINTER(ctypes.c_int), ctypes.c_int, ctypes.c_uint64)
    status = status_of(ask(ctypes.byref(index), attribute, pointer))
    if status is not SUCCESS:
        raise failure("cuPointerGetAttribute", status)
    return index.value


def borrow(index: int, pointer: int, nbytes: int, owner: object, readonly: bool, stream: int) -> ForeignBuffer:
    """Return a buffer over memory on an open GPU. It keeps the memory's owner alive; it does not copy or wait."""
    check_fork("cuDeviceGet")
    buffer = (ReadOnlyBuffer if readonly else ForeignBuffer)()
    buffer.device_index = index
    buffer.pointer = pointer
    buffer.nbytes = nbytes
    buffer.owner = owner
    buffer.stream = handle_of(stream)
    return buffer


def lend(device: Lender, buffer: Any, stream: int) -> int:
    """Let a consumer use a buffer on its stream; return the stream that orders the memory for the consumer.

    The consumer's stream waits for ours, and the memory is not reused before the consumer's stream is done. If the
    consumer asks for no wait, or a wait would lead out of a capture, nothing waits and the result is our stream.
    """
    handle = handle_of(stream)
    if buffer.stream == handle:
        return stream
    home = home_of(buffer)
    if stream == NO_WAIT or (is_capturing(home) and not is_capturing(handle)):
        return home or LEGACY_ALIAS
    device.join(buffer, handle)
    if stream == PER_THREAD_STREAM and home != handle:
        device.events.wait(PER_THREAD_STREAM, home)
    return stream
