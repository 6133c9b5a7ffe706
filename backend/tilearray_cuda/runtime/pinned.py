"""Pinned host memory for arrays of the host, and copies that nobody waits for.

The driver copies pinned memory directly and behind the call. Memory that is no longer used stays here for the next
array of its size, because to free it may wait for the GPU. The memory of a copy stays alive until its event has passed,
so an array may be deleted while it is copied.
"""

from __future__ import annotations

import ctypes
import functools
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from tilearray_cuda.errors import CudaError
from tilearray_cuda.locks import Lock
from tilearray_cuda.runtime.driver import (
    STREAMS,
    SUCCESS,
    AnyCapture,
    Current,
    api,
    c_function,
    call,
    check_fork,
    status_of,
)
from tilearray_cuda.runtime.gpu import event_passed
from tilearray_cuda.runtime.memory.buffers import block_size

PORTABLE = 1
"""The flag of memory that is pinned for all GPUs."""
HOST = 1
"""The driver's number for memory of the host."""


class _Memory:
    """Pinned memory in use; it goes back to its list when the last array is gone."""

    __slots__ = ("free", "pointer")

    def __init__(self, pointer: int, free: deque[int]) -> None:
        self.pointer = pointer
        self.free = free

    def __del__(self) -> None:
        self.free.append(self.pointer)


class Pinned:
    """The pinned arrays of one GPU, and the copies that are on their way."""

    def __init__(self, gpu: Any) -> None:
        self._gpu = gpu
        self._free: defaultdict[int, deque[int]] = defaultdict(deque)
        self._flying: deque[tuple[Any, Any]] = deque()
        self._lock = Lock()

    def empty(self, nbytes: int) -> np.ndarray:
        """Return uninitialised pinned bytes."""
        check_fork("cuMemHostAlloc")
        size = block_size(nbytes)
        free = self._free[size]
        try:
            pointer = free.popleft()
        except IndexError:
            with Current(self._gpu.context), AnyCapture():
                pointer = int(call(api.cuMemHostAlloc, size, PORTABLE))
        memory: Any = (ctypes.c_ubyte * nbytes).from_address(pointer)
        memory.owner = _Memory(pointer, free)
        return np.frombuffer(memory, np.uint8)

    def copy(self, device: int, host: np.ndarray, to_device: bool, stream: int) -> None:
        """Copy between an address of the GPU and pinned bytes, behind the work of a stream; do not wait."""
        check_fork("cuMemcpyHtoDAsync")
        with self._lock, Current(self._gpu.context):
            self._let_go()
            try:
                if to_device:
                    call(api.cuMemcpyHtoDAsync, device, host.ctypes.data, host.nbytes, STREAMS[stream])
                else:
                    call(api.cuMemcpyDtoHAsync, host.ctypes.data, device, host.nbytes, STREAMS[stream])
                self._flying.append((self._gpu.events.record_here(stream), host))
            except BaseException:  # as an interrupt: nothing keeps the memory of the host for the copy
                with suppress(CudaError):
                    call(api.cuStreamSynchronize, STREAMS[stream])
                raise

    def _let_go(self) -> None:
        """Forget the copies that are done, and the memory of the host that they used."""
        for _ in range(len(self._flying)):
            event, host = self._flying.popleft()
            if event_passed(event):
                self._gpu.events.give_back(event)
            else:
                self._flying.append((event, host))

    def release(self) -> None:
        """Free all pinned memory that is not in use."""
        check_fork("cuMemFreeHost")
        with self._lock, Current(self._gpu.context):
            self._let_go()
            for free in list(self._free.values()):
                with suppress(IndexError):  # another thread may take the last one
                    while True:
                        call(api.cuMemFreeHost, free.popleft())


def is_pinned(address: int) -> bool:
    """Return whether an address of the host lies in memory that the driver knows: pinned by any library."""
    kind = ctypes.c_int()
    attribute = int(api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
    return status_of(_ask()(ctypes.byref(kind), attribute, address)) is SUCCESS and kind.value == HOST


@functools.cache
def _ask() -> Callable[..., int]:
    return c_function("cuPointerGetAttribute", ctypes.POINTER(ctypes.c_int), ctypes.c_int, ctypes.c_uint64)
