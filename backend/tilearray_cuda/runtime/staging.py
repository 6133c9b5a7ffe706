"""Copies between host and device, through pinned memory.

The driver may copy ordinary host memory during the call or later, so its source could change or disappear too early.
Pinned chunks make copies to the device asynchronous and safe: the data is in the chunk when the call returns. A large
array uses two chunks in turn: we fill one while the driver copies the other. Large arrays go to the host through two
chunks as well. A copy to ordinary memory waits within the driver, which lets no other thread launch meanwhile: small
arrays go to the host through a chunk, and those of medium size after their stream is done.
"""

from __future__ import annotations

import ctypes
import math
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from tilearray_cuda.errors import CaptureError, CudaError, NeedsDense
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
        self.event = call(api.cuEventCreate, api.CUevent_flags.CU_EVENT_DISABLE_TIMING)
        try:
            self.pointer = int(call(api.cuMemHostAlloc, nbytes, 0))
        except BaseException:
            call(api.cuEventDestroy, self.event)
            raise
        self.array = host_bytes(self.pointer, nbytes)
        self.busy = False

    def copy(self, function: Any, target: int, source: int, nbytes: int, stream: int) -> None:
        """Begin a copy from or to the chunk, by a function of the driver."""
        try:
            call(function, target, source, nbytes, STREAMS[stream])
            call(api.cuEventRecord, self.event, STREAMS[stream])
            self.busy = True
        except BaseException:
            _let_finish(stream)
            raise

    def read(self, pointer: int, nbytes: int, stream: int) -> np.ndarray:
        """Return bytes of the device, for which the stream is done; no copy may use the chunk before."""
        try:
            call(api.cuMemcpyDtoHAsync, self.pointer, pointer, nbytes, STREAMS[stream])
            call(api.cuStreamSynchronize, STREAMS[stream])
        except BaseException:
            _let_finish(stream)
            raise
        return self.array[:nbytes].copy()

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


def _let_finish(stream: int) -> None:
    """Wait for a stream behind an error, as an interrupt: the chunk goes back, and no copy may use it any more."""
    with suppress(CudaError):
        call(api.cuStreamSynchronize, STREAMS[stream])


class Staging:
    """The pinned chunks of one GPU. A chunk in use belongs to one caller only, so threads need no lock."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._chunks: dict[int, deque[Chunk]] = {SMALL: deque(), CHUNK: deque()}

    def upload(self, pointer: int, source: np.ndarray, stream: int) -> None:
        """Copy bytes to the device. The source may change when this returns."""
        self.check(stream, "from_numpy")
        with Current(self._context):
            chunks = self._take(source.nbytes)
            try:
                for chunk, start, end in _pieces(source.nbytes, chunks):
                    chunk.wait()
                    chunk.array[: end - start] = source[start:end]
                    chunk.copy(api.cuMemcpyHtoDAsync, pointer + start, chunk.pointer, end - start, stream)
            finally:
                self._give_back(chunks)

    def download(self, target: np.ndarray, pointer: int, stream: int) -> None:
        """Copy more than `SMALL` bytes from the device; wait for the copy."""
        self.check(stream, "to_numpy")
        with Current(self._context):
            if target.nbytes <= DIRECT:
                call(api.cuStreamSynchronize, STREAMS[stream])
                call(api.cuMemcpyDtoHAsync, target.ctypes.data, pointer, target.nbytes, STREAMS[stream])
                call(api.cuStreamSynchronize, STREAMS[stream])
                return
            chunks = self._take(target.nbytes)
            try:
                _download(target, pointer, stream, chunks)
            finally:
                self._give_back(chunks)

    def few(self, pointer: int, nbytes: int, stream: int) -> np.ndarray:
        """Return at most `SMALL` bytes from the device; wait for the stream of the copy."""
        self.check(stream, "to_numpy")
        with Current(self._context):
            chunk = self._chunk(SMALL, 0)
            try:
                chunk.wait()
                return chunk.read(pointer, nbytes, stream)
            finally:
                self._give_back((chunk,))

    def fetch(self, pointer: int, nbytes: int, stream: int) -> Callable[[], np.ndarray]:
        """Begin to copy bytes from the device; the result waits for the copy alone, and returns them.

        More than `SMALL` bytes are copied when they are asked for.
        """
        if nbytes <= SMALL:
            return Fetched(self, pointer, nbytes, stream).bytes

        def late() -> np.ndarray:
            target = np.empty(nbytes, np.uint8)
            self.download(target, pointer, stream)
            return target

        return late

    def check(self, stream: int, function: str) -> None:
        """Raise CaptureError if a CUDA graph is being captured."""
        if (stream and is_capturing(stream)) or torch_captures():  # a copy on another stream would break the capture
            raise CaptureError(
                f"{function}: a CUDA graph captures stream {stream:#x}, and a graph cannot hold copies between host "
                f"and device; make the copy before or after the capture"
            )

    def _take(self, nbytes: int) -> list[Chunk]:
        """Take a chunk for some bytes, or two that are used in turn if the bytes do not fit in one."""
        size = SMALL if nbytes <= SMALL else CHUNK
        taken: list[Chunk] = []
        try:
            for _ in range(1 if nbytes <= size else 2):
                taken.append(self._chunk(size, len(taken)))
        except BaseException:
            self._give_back(taken)
            raise
        return taken

    def _chunk(self, size: int, taken: int) -> Chunk:
        """Return a chunk whose copy is done, or a new one up to the number that we keep, or a busy one."""
        chunks = self._chunks[size]
        try:
            chunk = chunks.popleft()  # the least recently used chunk
        except IndexError:
            return Chunk(size)
        if chunk.busy and len(chunks) + taken + 1 < KEPT[size]:
            if not event_passed(chunk.event):
                chunks.appendleft(chunk)
                return Chunk(size)
            chunk.busy = False
        return chunk

    def _give_back(self, taken: Sequence[Chunk]) -> None:
        for chunk in taken:
            size = chunk.array.nbytes
            if len(self._chunks[size]) < KEPT[size]:
                self._chunks[size].append(chunk)
            else:
                chunk.free()

    def empty(self) -> None:
        """Free all pinned memory that is not in use."""
        with Current(self._context):
            for chunks in self._chunks.values():
                with suppress(IndexError):  # another thread may take the last one
                    while True:
                        chunks.popleft().free()


class Fetched:
    """A copy of a few bytes to the host that has begun. Its chunk goes back with it, and may be busy then."""

    __slots__ = ("_chunks", "_nbytes", "_staging")

    def __init__(self, staging: Staging, pointer: int, nbytes: int, stream: int) -> None:
        staging.check(stream, "to_numpy")
        self._staging, self._nbytes = staging, nbytes
        with Current(staging._context):
            self._chunks = staging._take(nbytes)
            _fetch(pointer, stream, self._chunks[0], 0, nbytes)

    def __del__(self) -> None:
        with suppress(AttributeError), Current(self._staging._context):  # if none was taken
            self._staging._give_back(self._chunks)

    def bytes(self) -> np.ndarray:
        """Wait for the copy, and return the bytes."""
        target = np.empty(self._nbytes, np.uint8)
        _unload(target, self._chunks[0], 0, self._nbytes)
        return target


def _download(target: np.ndarray, pointer: int, stream: int, chunks: list[Chunk]) -> None:
    """Copy bytes from the device to chunks in turn, and from each chunk to the host before its next piece arrives."""
    pieces = _pieces(target.nbytes, chunks)
    for number, piece in enumerate(pieces):
        if number >= len(chunks):
            _unload(target, *pieces[number - len(chunks)])
        _fetch(pointer, stream, *piece)
    for piece in pieces[-len(chunks) :]:
        _unload(target, *piece)


def _fetch(pointer: int, stream: int, chunk: Chunk, start: int, end: int) -> None:
    """Begin the copy of a piece of the bytes from the device to a chunk."""
    chunk.wait()
    chunk.copy(api.cuMemcpyDtoHAsync, chunk.pointer, pointer + start, end - start, stream)


def _unload(target: np.ndarray, chunk: Chunk, start: int, end: int) -> None:
    """Wait for a piece of the bytes, and copy it to the host."""
    chunk.wait()
    np.copyto(target[start:end], chunk.array[: end - start])


def _pieces(nbytes: int, chunks: list[Chunk]) -> list[tuple[Chunk, int, int]]:
    """Return pieces of the bytes: the chunk, from one chunk to the next in turn, the start and the end."""
    if len(chunks) == 1:
        return [(chunks[0], 0, nbytes)]
    size = chunks[0].array.nbytes
    return [
        (chunks[number % len(chunks)], start, min(start + size, nbytes))
        for number, start in enumerate(range(0, nbytes, size))
    ]


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
    if array.flags.c_contiguous:
        low, memory = 0, array.reshape(-1).view(np.uint8)
    else:
        low, high = span_of(array.shape, array.strides)
        memory = host_bytes(array.ctypes.data + low, high - low + array.itemsize)
    buffer = allocate(memory.nbytes, stream)
    staging.upload(buffer.pointer, memory, stream)
    return buffer, -low


def download_array(
    staging: Staging, pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype, stream: int
) -> np.ndarray:
    """Copy a view to the host; its element 0 is at a device address, and its strides are in elements.

    The result keeps the order of the axes in memory. The copy includes small gaps, and a second copy on the host
    removes them.
    """
    if not shape:
        return np.ndarray((), dtype, staging.few(pointer, dtype.itemsize, stream))
    size = math.prod(shape)
    if size == 0:
        return np.empty(shape, dtype)
    low, high = span_of(shape, strides)
    span = high - low + 1
    if span > WORTH * size:
        raise NeedsDense(
            f"to_numpy: expected a span of at most {WORTH} times the {size} elements of the view, got {span}; make a "
            f"dense copy on the device first"
        )
    start, nbytes = pointer + low * dtype.itemsize, span * dtype.itemsize
    if nbytes <= SMALL:
        memory = staging.few(start, nbytes, stream)
    else:
        memory = np.empty(nbytes, np.uint8)
        staging.download(memory, start, stream)
    byte_strides = [stride * dtype.itemsize for stride in strides]
    view = np.ndarray(shape, dtype, memory, -low * dtype.itemsize, byte_strides)
    return view if span == size and 0 not in strides else view.copy(order="K")
