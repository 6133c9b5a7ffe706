"""Streams and events of one device, and the marks of buffers that several streams use.

The home stream of a buffer orders its memory: the last write was launched there. Three rules make every use on another
stream safe; `Allocator.join` applies them. A launch compares two integers to see that no rule applies:

- **Read** on another stream: that stream waits for an event of the home stream, and the buffer is marked.
- **Write** on a stream: the stream waits for the home stream and for all streams that read. It becomes the home stream,
  and the marks are removed.
- **Free** a marked buffer: its memory waits for events of all streams that read. The buffer calls `Shared.append`
  instead of its free list, and the allocator moves the block to the free list when the events have passed.

The `stream` of a marked buffer is `SHARED`, which equals no stream, so that the next use applies the rules again.
Streams that only read never wait for each other.

A stream that is being captured into a CUDA graph cannot wait for work outside of the graph. The caller that captures
must finish that work first (``torch.cuda.graph`` synchronizes before it starts), and must keep the memory that the
graph reads alive.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tilearray_cuda.runtime.driver import (
    NOT_READY,
    STREAMS,
    SUCCESS,
    Current,
    api,
    call,
    check_fork,
    failure,
    is_capturing,
)
from tilearray_cuda.runtime.gpu import Gpu, event_passed
from tilearray_cuda.runtime.memory.buffers import Buffer

SHARED = -1
"""The `stream` of a buffer that several streams use."""


class Shared:
    """The marks of a buffer that streams other than its home stream use; replaces the buffer's free list."""

    __slots__ = ("free", "home", "readers", "sink")

    def __init__(self, free: Any, home: int, sink: list[tuple[Shared, int]]) -> None:
        self.free = free
        self.home = home
        self.readers: set[int] = set()
        self.sink = sink

    @property
    def device_index(self) -> int:
        """The index of the memory's device."""
        return self.free.device_index

    def append(self, pointer: int) -> None:
        """Take the memory back; the allocator moves it to the free list after the readers' events."""
        self.sink.append((self, pointer))


def home_of(buffer: Buffer) -> int:
    """Return the stream that orders a buffer's memory, also if other streams use the buffer."""
    return buffer.free.home if buffer.stream == SHARED else buffer.stream


_abandoned: list[tuple[Any, Any, Any]] = []
"""Streams, events and graphs without an owner, since ``__del__`` does not call the driver: context, handle, and the
function that destroys the handle."""


def abandon(context: Any, handle: Any, destroy: Any) -> None:
    """Let the next call of `destroy_abandoned` destroy a handle."""
    _abandoned.append((context, handle, destroy))


def destroy_abandoned() -> None:
    """Destroy all handles without an owner; work that was launched on the streams still runs."""
    while True:
        try:
            context, handle, destroy = _abandoned.pop()
        except IndexError:  # another thread may have destroyed the last one
            return
        STREAMS.pop(int(handle), None)
        with Current(context):
            call(destroy, handle)


class Stream:
    """A stream of our own: its work runs in order, and concurrently with the work of other streams."""

    __slots__ = ("__weakref__", "_handle", "device", "handle")

    def __init__(self, device: Gpu) -> None:
        check_fork("cuStreamCreate")
        destroy_abandoned()
        with Current(device.context):
            self._handle = call(api.cuStreamCreate, api.CUstream_flags.CU_STREAM_NON_BLOCKING)
        self.device = device
        self.handle = int(self._handle)

    def __del__(self, abandon: Any = abandon, destroy: Any = api.cuStreamDestroy) -> None:
        with suppress(AttributeError):  # if it was never created
            abandon(self.device.context, self._handle, destroy)


class Event:
    """A point in the work of a stream. Other streams and the host can wait for it."""

    __slots__ = ("_handle", "device")

    def __init__(self, device: Gpu, timing: bool) -> None:
        check_fork("cuEventCreate")
        destroy_abandoned()
        flags = api.CUevent_flags.CU_EVENT_DEFAULT if timing else api.CUevent_flags.CU_EVENT_DISABLE_TIMING
        with Current(device.context):
            self._handle = call(api.cuEventCreate, flags)
        self.device = device

    def __del__(self, abandon: Any = abandon, destroy: Any = api.cuEventDestroy) -> None:
        with suppress(AttributeError):
            abandon(self.device.context, self._handle, destroy)

    def record(self, stream: int) -> None:
        """Mark the point after all work launched on a stream so far."""
        with Current(self.device.context):
            call(api.cuEventRecord, self._handle, STREAMS[stream])

    def hold_back(self, stream: int) -> None:
        """Make all later work on a stream wait for the event."""
        with Current(self.device.context):
            call(api.cuStreamWaitEvent, STREAMS[stream], self._handle, 0)

    def passed(self) -> bool:
        """Return whether the event has passed."""
        return event_passed(self._handle)

    def synchronize(self) -> None:
        """Make the host wait for the event."""
        call(api.cuEventSynchronize, self._handle)

    def milliseconds_since(self, start: Event) -> float:
        """Return the time between two events, made with timing, that have passed."""
        return float(call(api.cuEventElapsedTime, start._handle, self._handle))


def synchronize(device: Gpu, stream: int) -> None:
    """Make the host wait for all work on a stream; raise the error of a deferred check that failed."""
    with Current(device.context):
        call(api.cuStreamSynchronize, STREAMS[stream])
    device.index_errors.check()


def is_done(device: Gpu, stream: int) -> bool:
    """Return whether all work on a stream is done."""
    with Current(device.context):
        status = api.cuStreamQuery(STREAMS[stream])[0]
    if status is not SUCCESS and status is not NOT_READY:
        raise failure("cuStreamQuery", status)
    return status is SUCCESS


def device_of(handle: int) -> int:
    """Return the index of the device of a stream, which must not be the legacy stream.

    The driver gives no answer for a stream that is being captured. The thread that captures it has its device's context
    as the current one.
    """
    if is_capturing(handle):
        return int(call(api.cuCtxGetDevice))
    return int(call(api.cuStreamGetDevice, STREAMS[handle]))
