"""Streams and events of one device, and what runs before what on several streams.

A buffer's memory is ordered by its home stream: what was launched there last wrote it. Three rules make every other use
safe, and the launch only has to compare two integers to know that none of them applies:

- **reading** on another stream makes that stream wait for an event of the home stream, and marks the buffer;
- **writing** on a stream makes it wait for the home stream and for all streams that read; it is the new home, and the
  marks are gone;
- **giving back** a marked buffer waits for events of all streams that read it: `Shared.append` is what the buffer calls
  instead of its free list, and the allocator moves the block on when the events have passed.

A marked buffer's `stream` is `SHARED`, which equals no stream, so that its next use comes here, too. Several streams
that only read never wait for each other.

While a stream is being captured into a CUDA graph it cannot wait for work outside of the graph. Whoever captures
sees to that himself (``torch.cuda.graph`` synchronizes before it begins), and keeps alive what the graph reads.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from tilearray_cuda.device import CudaDevice
    from tilearray_cuda.runtime.memory.buffers import Buffer

SHARED = -1
"""The `stream` of a buffer that several streams use."""


class Events:
    """Events of one device, used again and again: an event may be recorded anew as soon as a wait was issued for it."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._unused: list[Any] = []

    def record(self, stream: int) -> Any:
        """Return an event that passes when everything launched on `stream` so far is done. Give it back."""
        with Current(self._context):
            try:
                event = self._unused.pop()
            except IndexError:
                event = call(api.cuEventCreate, api.CUevent_flags.CU_EVENT_DISABLE_TIMING)
            call(api.cuEventRecord, event, STREAMS[stream])
        return event

    def give_back(self, event: Any) -> None:
        """Let an event be used again."""
        self._unused.append(event)

    def wait(self, stream: int, other: int) -> None:
        """Let `stream` wait for everything launched on `other` so far."""
        with Current(self._context):
            event = self.record(other)
            call(api.cuStreamWaitEvent, STREAMS[stream], event, 0)
        self.give_back(event)


def event_passed(event: Any) -> bool:
    """Whether an event has passed; one never recorded has."""
    status = api.cuEventQuery(event)[0]
    if status is not SUCCESS and status is not NOT_READY:
        raise failure("cuEventQuery", status)
    return status is SUCCESS


class Shared:
    """The marks of a buffer that streams other than its home use; stands where the buffer's free list stood."""

    __slots__ = ("free", "home", "readers", "sink")

    def __init__(self, free: Any, home: int, sink: list[tuple[Shared, int]]) -> None:
        self.free = free
        self.home = home
        self.readers: set[int] = set()
        self.sink = sink

    @property
    def device_index(self) -> int:
        """The index of the device whose memory it is."""
        return self.free.device_index

    def append(self, pointer: int) -> None:
        """Take the memory back; the allocator gives it to the free list behind the readers' events."""
        self.sink.append((self, pointer))


def home_of(buffer: Buffer) -> int:
    """Return the stream that orders a buffer's memory, whether or not others use it, too."""
    return buffer.free.home if buffer.stream == SHARED else buffer.stream


def order(device: CudaDevice, buffer: Buffer, stream: int, writes: bool) -> None:
    """Make `stream` wait until it may read or write a buffer, and mark the buffer. The allocator's lock is held."""
    home = home_of(buffer)
    if stream and is_capturing(stream) and not is_capturing(home):
        return
    marks: Shared | None = buffer.free if buffer.stream == SHARED else None
    if writes:
        for other in {home} if marks is None else {home, *marks.readers}:
            if other != stream:
                device.events.wait(stream, other)
        if stream != home or marks is not None:
            device.memory.move(buffer, stream)
        return
    if stream == home:
        return
    device.events.wait(stream, home)
    if marks is None:
        marks = Shared(buffer.free, home, device.memory.returned)
        buffer.send_to(marks)
        buffer.stream = SHARED
    marks.readers.add(stream)


_abandoned: list[tuple[Any, Any, Any]] = []
"""Streams and events that nobody holds any more: context, handle, and what destroys it. ``__del__`` calls no driver."""


def destroy_abandoned() -> None:
    """Destroy the streams and events that nobody holds any more; what was launched on the streams still runs."""
    while _abandoned:
        context, handle, destroy = _abandoned.pop()
        STREAMS.pop(int(handle), None)
        with Current(context):
            call(destroy, handle)


class Stream:
    """A stream of our own: work on it runs in order, and beside that of other streams."""

    __slots__ = ("__weakref__", "_handle", "device", "handle")

    def __init__(self, device: CudaDevice) -> None:
        check_fork("cuStreamCreate")
        destroy_abandoned()
        with Current(device.context):
            self._handle = call(api.cuStreamCreate, api.CUstream_flags.CU_STREAM_NON_BLOCKING)
        self.device = device
        self.handle = int(self._handle)

    def __del__(self, abandon: Any = _abandoned.append, destroy: Any = api.cuStreamDestroy) -> None:
        with suppress(AttributeError):  # where it was never created
            abandon((self.device.context, self._handle, destroy))


class Event:
    """A point in the work of a stream, which other streams and the host can wait for."""

    __slots__ = ("_handle", "device")

    def __init__(self, device: CudaDevice, timing: bool) -> None:
        check_fork("cuEventCreate")
        destroy_abandoned()
        flags = api.CUevent_flags.CU_EVENT_DEFAULT if timing else api.CUevent_flags.CU_EVENT_DISABLE_TIMING
        with Current(device.context):
            self._handle = call(api.cuEventCreate, flags)
        self.device = device

    def __del__(self, abandon: Any = _abandoned.append, destroy: Any = api.cuEventDestroy) -> None:
        with suppress(AttributeError):
            abandon((self.device.context, self._handle, destroy))

    def record(self, stream: int) -> None:
        """Mark the point behind everything launched on a stream so far."""
        with Current(self.device.context):
            call(api.cuEventRecord, self._handle, STREAMS[stream])

    def hold_back(self, stream: int) -> None:
        """Let what is launched on a stream from now on wait for the event."""
        with Current(self.device.context):
            call(api.cuStreamWaitEvent, STREAMS[stream], self._handle, 0)

    def passed(self) -> bool:
        """Whether the event has passed."""
        return event_passed(self._handle)

    def synchronize(self) -> None:
        """Wait on the host."""
        call(api.cuEventSynchronize, self._handle)

    def milliseconds_since(self, start: Event) -> float:
        """The time between two events that have passed and were made with timing."""
        return float(call(api.cuEventElapsedTime, start._handle, self._handle))


def synchronize(device: CudaDevice, stream: int) -> None:
    """Wait on the host for everything launched on a stream; a deferred check that failed is raised here."""
    with Current(device.context):
        call(api.cuStreamSynchronize, STREAMS[stream])
    device.index_errors.check()


def is_done(device: CudaDevice, stream: int) -> bool:
    """Whether everything launched on a stream is done."""
    with Current(device.context):
        status = api.cuStreamQuery(STREAMS[stream])[0]
    if status is not SUCCESS and status is not NOT_READY:
        raise failure("cuStreamQuery", status)
    return status is SUCCESS


def device_of(handle: int) -> int:
    """Return the index of the device that a stream other than the legacy one belongs to.

    A stream that is being captured may not be asked; who captures it has its device's context in force.
    """
    if is_capturing(handle):
        return int(call(api.cuCtxGetDevice))
    return int(call(api.cuStreamGetDevice, STREAMS[handle]))
