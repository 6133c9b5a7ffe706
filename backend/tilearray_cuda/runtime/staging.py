"""Copies between host and device, through pinned memory.

The driver may copy ordinary host memory during the call or later, so its source could change or disappear too early.
Pinned chunks make copies to the device asynchronous and safe: the data is in the chunk when the call returns. A large
array uses two chunks in turn: we fill one while the driver copies the other. Large arrays go to the host through two
chunks as well. A copy to ordinary memory waits within the driver, which lets no other thread launch meanwhile: small
arrays go to the host through a chunk, and those of medium size after their stream is done.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from tilearray_cuda.errors import CaptureError, NeedsDense
from tilearray_cuda.runtime.driver import STREAMS, Current, api, call, is_capturing, torch_captures
from tilearray_cuda.runtime.gpu import event_passed

SMALL = 64 << 10
CHUNK = 16 << 20
DIRECT = 1 << 20
"""The largest copy to the host, in bytes, that does not use a chunk of `CHUNK` bytes."""
KEPT = {SMALL: 16, CHUNK: 2}
"""The number of unused chunks that we keep, by size."""
WORTH = 4
"""A view with gaps is copied together with its gaps if they span at most this multiple of its own bytes."""


def host_bytes(address: int, nbytes: int) -> np.ndarray:
    """Return the bytes at a host address as an ndarray, which does not keep the bytes alive."""
    memory: Any = (ctypes.c_ubyte * nbytes).from_address(address)
    return np.frombuffer(memory, np.uint8)


class Chunk:
    """Pinned host memory, and the event of its last copy."""

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
        """Free the memory."""
        self.wait()
        call(api.cuEventDestroy, self.event)
        call(api.cuMemFreeHost, self.pointer)


class Staging:
    """The pinned chunks of one GPU. A chunk in use belongs to one caller only, so threads need no lock."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._chunks: dict[int, deque[Chunk]] = {SMALL: deque(), CHUNK: deque()}

    def upload(self, pointer: int, source: np.ndarray, stream: int) -> None:
        """Copy bytes to the device. The source may change when this returns."""
        self.check(stream, "from_numpy")
        size = SMALL if source.nbytes <= SMALL else CHUNK
        with Current(self._context):
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
        """Copy bytes from the device; wait for the copy."""
        self.check(stream, "to_numpy")
        with Current(self._context):
            if SMALL < target.nbytes <= DIRECT:
                call(api.cuStreamSynchronize, STREAMS[stream])
                call(api.cuMemcpyDtoHAsync, target.ctypes.data, pointer, target.nbytes, STREAMS[stream])
                call(api.cuStreamSynchronize, STREAMS[stream])
                return
            size = SMALL if target.nbytes <= SMALL else CHUNK
            chunks = self._take(size, 1 if target.nbytes <= size else 2)
            try:
                if target.nbytes <= size:
                    _fetch(chunks[0], pointer, target.nbytes, stream)
                    _unload(target, chunks[0], 0, target.nbytes)
                else:
                    self._download(target, pointer, stream, chunks)
            finally:
                self._give_back(size, chunks)

    def _download(self, target: np.ndarray, pointer: int, stream: int, chunks: list[Chunk]) -> None:
        arrived: list[tuple[Chunk, int, int]] = []
        for position, start, end in _pieces(target.nbytes, CHUNK, len(chunks)):
            chunk = chunks[position]
            if len(arrived) == len(chunks):
                _unload(target, *arrived.pop(0))
            _fetch(chunk, pointer + start, end - start, stream)
            arrived.append((chunk, start, end))
        for piece in arrived:
            _unload(target, *piece)

    def check(self, stream: int, function: str) -> None:
        """Raise CaptureError if a CUDA graph is being captured."""
        if is_capturing(stream) or torch_captures():  # a copy on another stream would break the capture
            raise CaptureError(
                f"{function}: a CUDA graph captures stream {stream:#x}, and a graph cannot hold copies between host "
                f"and device; make the copy before or after the capture"
            )

    def _take(self, size: int, count: int) -> list[Chunk]:
        """Take chunks whose copies are done, or new chunks up to the number that we keep, or busy chunks."""
        taken: list[Chunk] = []
        chunks = self._chunks[size]
        for _ in range(count):
            try:
                chunk = chunks.popleft()  # the least recently used chunk
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
        """Free all pinned memory that is not in use."""
        with Current(self._context):
            for chunks in self._chunks.values():
                while chunks:
                    chunks.popleft().free()


def _fetch(chunk: Chunk, pointer: int, nbytes: int, stream: int) -> None:
    chunk.wait()
    try:
        call(api.cuMemcpyDtoHAsync, chunk.pointer, pointer, nbytes, STREAMS[stream])
        call(api.cuEventRecord, chunk.event, STREAMS[stream])
        chunk.busy = True
    except BaseException:  # an interrupt: the chunk goes back, and nothing may be copied into it any more
        call(api.cuStreamSynchronize, STREAMS[stream])
        raise


def _unload(target: np.ndarray, chunk: Chunk, start: int, end: int) -> None:
    chunk.wait()
    np.copyto(target[start:end], chunk.array[: end - start])


def _pieces(nbytes: int, size: int, chunks: int) -> Iterator[tuple[int, int, int]]:
    """Yield pieces of the bytes for chunks in turn: chunk, start, end."""
    for number, start in enumerate(range(0, nbytes, size)):
        yield number % chunks, start, min(start + size, nbytes)


def span_of(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """Return the lowest and highest offset of a view from its element 0, in elements or in bytes as its strides are.

    No size may be 0. `tilearray.geometry.strides.extent` has the same rule; this is a copy, because a backend imports
    nothing of the library.

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
    """Copy a host array together with its gaps; return its buffer and the byte offset of element 0."""
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
    """Copy a view to the host; its element 0 is at a device address, and its strides are in elements.

    The result keeps the order of the axes in memory. The copy includes small gaps, and a second copy on the host
    removes them.
    """
    size = int(np.prod(shape, dtype=np.int64))
    if size == 0:
        return np.empty(shape, dtype)
    low, high = span_of(shape, strides)
    span = high - low + 1
    if span > WORTH * size:
        raise NeedsDense(
            f"to_numpy: expected a span of at most {WORTH} times the {size} elements of the view, got {span}; make a "
            f"dense copy on the device first"
        )
    memory = np.empty(span * dtype.itemsize, np.uint8)
    staging.download(memory, pointer + low * dtype.itemsize, stream)
    byte_strides = [stride * dtype.itemsize for stride in strides]
    view = np.ndarray(shape, dtype, memory, -low * dtype.itemsize, byte_strides)
    return view if span == size and 0 not in strides else view.copy(order="K")
