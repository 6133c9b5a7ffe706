"""Copies between host and device, by way of pinned memory.

The driver may copy ordinary host memory during the call or later, so its source could change or go too early. Pinned
chunks make copies to the device asynchronous and safe: the data is in the chunk when the call returns. A large array
takes two chunks in turn, one being filled while the other is on its way. To the host, small arrays are copied straight
and waited for; large ones come through two chunks as well.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tilearray_cuda.errors import CaptureError, NeedsDense
from tilearray_cuda.runtime.driver import STREAMS, Current, api, call, is_capturing, torch_captures
from tilearray_cuda.runtime.streams import event_passed

if TYPE_CHECKING:
    from tilearray_cuda.device import CudaDevice

SMALL = 64 << 10
CHUNK = 16 << 20
DIRECT = 1 << 20
"""To the host, up to this many bytes are copied without pinned memory."""
KEPT = {SMALL: 16, CHUNK: 2}
"""How many chunks of a size are kept when nothing uses them."""
WORTH = 4
"""A view with gaps is copied as it lies up to this many times its own bytes."""


def host_bytes(address: int, nbytes: int) -> np.ndarray:
    """Return the bytes at a host address as an ndarray, which does not keep them alive."""
    memory: Any = (ctypes.c_ubyte * nbytes).from_address(address)
    return np.frombuffer(memory, np.uint8)


class Chunk:
    """Pinned host memory, and the event of the last copy from it."""

    __slots__ = ("array", "busy", "event", "pointer")

    def __init__(self, nbytes: int) -> None:
        self.pointer = int(call(api.cuMemHostAlloc, nbytes, 0))
        self.array = host_bytes(self.pointer, nbytes)
        self.event = call(api.cuEventCreate, api.CUevent_flags.CU_EVENT_DISABLE_TIMING)
        self.busy = False

    def wait(self) -> None:
        """Wait until the last copy is done."""
        if self.busy:
            call(api.cuEventSynchronize, self.event)
            self.busy = False

    def free(self) -> None:
        """Give the memory back."""
        self.wait()
        call(api.cuEventDestroy, self.event)
        call(api.cuMemFreeHost, self.pointer)


class Staging:
    """The pinned chunks of one device. Chunks in use are in nobody else's hands, so that threads need no lock."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._chunks: dict[int, deque[Chunk]] = {SMALL: deque(), CHUNK: deque()}

    def upload(self, pointer: int, source: np.ndarray, stream: int) -> None:
        """Copy bytes to the device; they have been read when this returns."""
        self._check(stream, "from_numpy")
        size = SMALL if source.nbytes <= SMALL else CHUNK
        with Current(self._device.context):
            chunks = self._take(size, 1 if source.nbytes <= size else 2)
            try:
                for position, start, end in _pieces(source.nbytes, size, len(chunks)):
                    chunk = chunks[position]
                    chunk.wait()
                    np.copyto(chunk.array[: end - start], source[start:end])
                    call(api.cuMemcpyHtoDAsync, pointer + start, chunk.pointer, end - start, STREAMS[stream])
                    call(api.cuEventRecord, chunk.event, STREAMS[stream])
                    chunk.busy = True
            finally:
                self._give_back(size, chunks)

    def download(self, target: np.ndarray, pointer: int, stream: int) -> None:
        """Copy bytes from the device, and wait for them."""
        self._check(stream, "to_numpy")
        with Current(self._device.context):
            if target.nbytes <= DIRECT:
                call(api.cuMemcpyDtoHAsync, target.ctypes.data, pointer, target.nbytes, STREAMS[stream])
                call(api.cuStreamSynchronize, STREAMS[stream])
                return
            chunks = self._take(CHUNK, 1 if target.nbytes <= CHUNK else 2)
            try:
                self._download(target, pointer, stream, chunks)
            finally:
                self._give_back(CHUNK, chunks)

    def _download(self, target: np.ndarray, pointer: int, stream: int, chunks: list[Chunk]) -> None:
        arrived: list[tuple[Chunk, int, int]] = []
        for position, start, end in _pieces(target.nbytes, CHUNK, len(chunks)):
            chunk = chunks[position]
            if len(arrived) == len(chunks):
                _unload(target, *arrived.pop(0))
            chunk.wait()
            call(api.cuMemcpyDtoHAsync, chunk.pointer, pointer + start, end - start, STREAMS[stream])
            call(api.cuEventRecord, chunk.event, STREAMS[stream])
            chunk.busy = True
            arrived.append((chunk, start, end))
        for piece in arrived:
            _unload(target, *piece)

    def _check(self, stream: int, function: str) -> None:
        if is_capturing(stream) or torch_captures():  # a copy on another stream would spoil the capture
            raise CaptureError(
                f"{function}: stream {stream:#x} is being captured into a CUDA graph, which cannot hold copies between "
                f"host and device; make them before the capture or after it"
            )

    def _take(self, size: int, count: int) -> list[Chunk]:
        """Take chunks that are done with; make new ones where there are none, up to what is kept; else wait."""
        taken: list[Chunk] = []
        chunks = self._chunks[size]
        for _ in range(count):
            try:
                chunk = chunks.popleft()  # the one that was used longest ago
            except IndexError:
                taken.append(Chunk(size))
                continue
            if chunk.busy and len(chunks) + len(taken) + 1 < KEPT[size] and not event_passed(chunk.event):
                chunks.appendleft(chunk)
                chunk = Chunk(size)
            taken.append(chunk)
        return taken

    def _give_back(self, size: int, taken: list[Chunk]) -> None:
        for chunk in taken:
            if len(self._chunks[size]) < KEPT[size]:
                self._chunks[size].append(chunk)
            else:
                chunk.free()

    def empty(self) -> None:
        """Give all pinned memory back that is not in use."""
        with Current(self._device.context):
            for chunks in self._chunks.values():
                while chunks:
                    chunks.popleft().free()


def _unload(target: np.ndarray, chunk: Chunk, start: int, end: int) -> None:
    chunk.wait()
    np.copyto(target[start:end], chunk.array[: end - start])


def _pieces(nbytes: int, size: int, chunks: int) -> Iterator[tuple[int, int, int]]:
    """Cut bytes into pieces for chunks taken in turn: chunk, start, end."""
    for number, start in enumerate(range(0, nbytes, size)):
        yield number % chunks, start, min(start + size, nbytes)


def span_of(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """Return the lowest and highest element that a view reaches, from its element 0; size 0 is the caller's.

    Examples
    --------
    >>> span_of((3, 2), (-2, 1))
    (-4, 1)
    """
    low = high = 0
    for extent, stride in zip(shape, strides, strict=True):
        if stride < 0:
            low += (extent - 1) * stride
        else:
            high += (extent - 1) * stride
    return low, high


def upload_array(staging: Staging, array: np.ndarray, allocate: Any, stream: int) -> tuple[Any, int]:
    """Copy a host array as it lies, gaps included; return its buffer and the byte offset of element 0."""
    if array.size == 0:
        return allocate(0, stream), 0
    low, high = span_of(array.shape, array.strides)
    nbytes = high - low + array.itemsize
    buffer = allocate(nbytes, stream)
    staging.upload(buffer.pointer, host_bytes(array.ctypes.data + low, nbytes), stream)
    return buffer, -low


def download_array(
    staging: Staging, pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype, stream: int
) -> np.ndarray:
    """Copy a view whose element 0 is at a device address to the host; strides are in elements.

    A view that fills its memory is copied as it lies, whatever the order of its axes. Gaps are copied along with it
    where they are small. The result owns exactly its elements, or all of the memory that it lies in without gaps.
    """
    size = int(np.prod(shape, dtype=np.int64))
    if size == 0:
        return np.empty(shape, dtype)
    low, high = span_of(shape, strides)
    span = high - low + 1
    if span > WORTH * size:
        raise NeedsDense(f"to_numpy: {size} elements lie in {span}; make a dense copy on the device first")
    memory = np.empty(span * dtype.itemsize, np.uint8)
    staging.download(memory, pointer + low * dtype.itemsize, stream)
    byte_strides = [stride * dtype.itemsize for stride in strides]
    view = np.ndarray(shape, dtype, memory, -low * dtype.itemsize, byte_strides)
    return view if span == size and 0 not in strides else view.copy(order="K")
