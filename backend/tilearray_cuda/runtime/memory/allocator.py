"""Device memory: a free list per stream and block size over the driver's stream-ordered allocator.

A stream runs in order, so what is launched on it may use memory that everything launched before is done with: a dropped
block goes straight back to its stream's free list and the next array takes it, without the driver.

- **Sizes.** Blocks are rounded up to four sizes an octave, at least 512 bytes; above `LARGE` to whole `GRANULE`. Small
  blocks stay in their lists. Large ones are reused for the same size, and go back to the driver's own pool when another
  large size is asked for, which merges and splits them well.
- **A block comes back by `Buffer.__del__`**, which appends to a list and does nothing else: see `blocks`, also for what
  an interrupt does.
- **Several streams.** A marked buffer comes back behind events; see `stream`.
- **Out of memory.** Everything cached goes back to the driver, and the call is made once more.
- **Captures.** Memory asked for on a stream that is being captured into a CUDA graph comes from the graph, is reused
  within that capture only, and belongs to the graph ever after; it needs no giving back. The free lists stay out of it.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from tilearray_cuda.errors import CudaError, OutOfMemoryError
from tilearray_cuda.runtime.driver import (
    LEGACY_STREAM,
    STREAMS,
    Current,
    after_fork,
    api,
    call,
    check_capture,
    check_fork,
    is_capturing,
)
from tilearray_cuda.runtime.memory import allocators
from tilearray_cuda.runtime.memory.buffers import LARGE, Block, Buffer, FreeList, Nowhere, StreamPool, block_size
from tilearray_cuda.runtime.streams import SHARED, Shared, destroy_abandoned, device_of, event_passed, order

if TYPE_CHECKING:
    from tilearray_cuda.device import CudaDevice

KNOWN_SIZES = 4096
"""Sizes in bytes whose free list a stream remembers, before it starts again."""
COLLECT_AFTER = 32
"""Marked blocks that came back, after which the next mark looks whether their events have passed."""


class Statistics(NamedTuple):
    """Memory of one GPU, in bytes, and what was asked of the driver."""

    live: int
    """In arrays."""
    cached: int
    """Free, and kept for the next array."""
    held: int
    """Both: what was obtained and not given back."""
    peak: int
    """The most that was ever held."""
    device_free: int
    """What the driver says is free on the GPU; its pool may hold some more for us."""
    device_total: int
    """The GPU's memory."""
    allocations: int
    """Blocks obtained."""
    retries: int
    """Calls repeated after everything cached was given back."""


class Allocator:
    """The memory of one device."""

    def __init__(self, device: CudaDevice) -> None:
        self.device = device
        self.source: Any = allocators.current(device)
        self.returned: list[tuple[Shared, int]] = []  # marked blocks, from Buffer.__del__
        self.lock = threading.RLock()  # the collector may run finalizers that come here again
        self.legacy: dict[int, FreeList] = {}  # block size -> free list of the default stream: what a hit looks up
        self._by_nbytes: dict[int, dict[int, FreeList]] = {}  # stream -> bytes -> free list: the same for any stream
        self._pools: dict[int, StreamPool] = {}
        self._captures: dict[int, StreamPool] = {}
        self._owners: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()  # of streams
        self._retired: list[StreamPool] = []  # of sources that were replaced, or emptied while blocks were in use
        self._waiting: deque[tuple[list[Any], Shared, int]] = deque()
        self._held = self._peak = self._allocations = self._retries = 0
        after_fork.append(self._forget)

    # ------------------------------------------------------------------ the way of an array

    def allocate(self, nbytes: int, stream: int, /) -> Buffer:
        """Return uninitialised memory ordered by a stream, its address a multiple of 256."""
        free, pointer = self.take(nbytes, stream)
        buffer = Buffer()
        buffer.pointer = pointer
        buffer.nbytes = nbytes
        buffer.stream = stream
        buffer.free = free
        return buffer

    def take(self, nbytes: int, stream: int) -> tuple[FreeList, int]:
        """Return the free list of a size, and a block; what is written out in `calls` makes the buffer itself."""
        try:
            if stream and is_capturing(stream):
                free = self._captured(stream).list_of(block_size(nbytes))
            else:
                free = self._by_nbytes[stream][nbytes]
            return free, free.pop()
        except LookupError:
            return self._obtain(nbytes, stream)

    def join(self, buffer: Buffer, stream: int, writes: bool = False) -> None:
        """Make a stream wait until it may read or write a buffer; see `tilearray_cuda.runtime.streams`."""
        if buffer.stream == stream:
            return
        marks = buffer.free
        if not writes and marks.__class__ is Shared and (stream == marks.home or stream in marks.readers):
            return  # it waited when it read first, and nothing was written since
        check_fork("cuStreamWaitEvent")
        with self.lock:
            order(self.device, buffer, stream, writes)
            if len(self.returned) + len(self._waiting) > COLLECT_AFTER and not is_capturing(stream):
                self.collect()  # asks for events, which a capture of the thread forbids

    def move(self, buffer: Buffer, stream: int) -> None:
        """Make a stream the home of a buffer whose other uses it waits for."""
        free: FreeList | Nowhere = buffer.free.free if buffer.stream == SHARED else buffer.free
        if stream != free.stream and not (isinstance(free, FreeList) and free.pool.capture):
            if isinstance(free, Nowhere) or free.pool.source is not self.source:  # goes back to where it came from
                marks = Shared(free, stream, self.returned)
                marks.readers.add(stream)
                buffer.send_to(marks)
                buffer.stream = SHARED
                return
            target = self._pool(stream).list_of(free.size)
            buffer.send_to(target)
            free.blocks -= 1
            target.blocks += 1
        else:
            buffer.send_to(free)
        buffer.stream = stream

    def retain(self, stream: int, owner: object) -> None:
        """Keep a stream's owner as long as memory is ordered by it, and until then as long as the caller does.

        The owner is an object of ours, not the stream itself: torch's streams break where weak references lead to them.
        """
        with self.lock:
            self._owners[stream] = owner
            if stream in self._pools:
                self._pools[stream].owner = owner

    # ------------------------------------------------------------------ blocks from and to the driver

    def _obtain(self, nbytes: int, stream: int) -> tuple[FreeList, int]:
        """Return a free list and a block of its size, from the list after all, or from the driver."""
        check_fork("cuMemAllocAsync")
        check_capture(stream)
        size = block_size(nbytes)
        with self.lock:
            capturing = is_capturing(stream)
            pool = self._captured(stream) if capturing else self._pool(stream)
            free = pool.list_of(size)
            if not capturing:
                self._remember(nbytes, stream, free)
                self.collect()
                if size > LARGE or not self.source.caches_small:
                    self._release(size)
            try:
                return free, free.pop()
            except IndexError:
                pointer = self._from_source(pool.source, size, stream, nbytes)
            free.blocks += 1
            if capturing:
                return free, pointer
            self._held += size
            block = Block.at(pointer, free)
            self._peak = max(self._peak, self._held)
            return free, block

    def _from_source(self, source: Any, size: int, stream: int, nbytes: int) -> int:
        self._allocations += 1
        try:
            with Current(self.device.context):
                return source.allocate(size, stream)
        except MemoryError as error:
            if is_capturing(stream):
                raise self._out_of_memory(nbytes, stream, 0, error) from None
        self._retries += 1
        gc.collect()
        before = self._held
        self.empty(stream)
        try:
            with Current(self.device.context):
                return source.allocate(size, stream)
        except MemoryError as error:
            raise self._out_of_memory(nbytes, stream, before - self._held, error) from None

    def _out_of_memory(self, nbytes: int, stream: int, cached: int, error: MemoryError) -> OutOfMemoryError:
        live, _, _, _, free, total, _, _ = self.statistics()
        return OutOfMemoryError(
            f"allocate: cuda:{self.device.index} ({self.device.name}) has no {_size(nbytes)} left: {_size(free)} of "
            f"{_size(total)} are free, arrays of this process hold {_size(live)}, and {_size(cached)} that were cached "
            f"have been given back; delete arrays, work in pieces, or empty the caches of other libraries "
            f"(torch.cuda.empty_cache()); the driver says: {error}",
            getattr(error, "call", ""),
            getattr(error, "name", ""),
        )

    def _pool(self, stream: int) -> StreamPool:
        pool = self._pools.get(stream)
        if pool is not None:
            return pool
        if stream != LEGACY_STREAM:
            with Current(self.device.context):
                index = device_of(stream)
            if index != self.device.index:
                raise CudaError(
                    f"stream {stream:#x} is a stream of cuda:{index}, and cannot order memory of "
                    f"cuda:{self.device.index}; write with ta.cuda.stream(s) for a stream s of that device"
                )
        pool = self._pools.setdefault(stream, StreamPool(self.device.index, stream, self.source))
        pool.owner = self._owners.get(stream)
        return pool

    def _captured(self, stream: int) -> StreamPool:
        """The pool of the capture that is under way on a stream."""
        with Current(self.device.context):
            capture = int(call(api.cuStreamGetCaptureInfo, STREAMS[stream])[1])
        pool = self._captures.get(stream)
        if pool is None or pool.capture != capture:
            source = allocators.driver_source(self.device)
            pool = self._captures[stream] = StreamPool(self.device.index, stream, source, capture)
        return pool

    def _remember(self, nbytes: int, stream: int, free: FreeList) -> None:
        known = self._by_nbytes.setdefault(stream, {})
        if len(known) >= KNOWN_SIZES:
            known.clear()
        known[nbytes] = free
        if stream == LEGACY_STREAM:
            self.legacy[free.size] = free

    def collect(self) -> None:
        """Move marked blocks that came back to their free lists, as far as the readers' events have passed."""
        captured: list[tuple[Shared, int]] = []
        while self.returned:
            marks, pointer = self.returned.pop()
            passing = self._events_behind(marks)
            if passing is None:
                captured.append((marks, pointer))
            else:
                self._waiting.append((passing, marks, pointer))
        self.returned.extend(captured)
        events = self.device.events
        for _ in range(len(self._waiting)):
            passing, marks, pointer = self._waiting.popleft()
            while passing and event_passed(passing[-1]):
                events.give_back(passing.pop())
            if passing:
                self._waiting.append((passing, marks, pointer))
            else:
                if isinstance(pointer, Block):
                    pointer.settle(marks.free)
                marks.free.append(pointer)

    def _events_behind(self, marks: Shared) -> list[Any] | None:
        """Return events of all streams that read; None while one of them is being captured.

        If one of them is gone, everything is waited for, and there is no event to wait for.
        """
        try:
            if any(is_capturing(stream) for stream in marks.readers):
                return None
            return [self.device.events.record(stream) for stream in marks.readers]
        except CudaError:
            with Current(self.device.context):
                call(api.cuCtxSynchronize)
            return []

    def _release(self, but: int = 0, everything: bool = False) -> None:
        """Give blocks back to where they came from: large ones of other sizes than `but`, or all."""
        with Current(self.device.context):
            for pool in [*self._pools.values(), *self._retired]:
                whole = everything or not pool.source.caches_small or pool.source is not self.source
                for size, free in list(pool.lists.items()):
                    if size != but and (size > LARGE or whole):
                        self._release_list(pool, free)
        self._retired = [pool for pool in self._retired if not pool.idle]

    def _release_list(self, pool: StreamPool, free: FreeList) -> None:
        while free:
            try:
                pointer = free.pop()
            except IndexError:  # another thread took the last one
                return
            address = pointer.leave() if isinstance(pointer, Block) else pointer
            free.blocks -= 1
            self._held -= free.size
            pool.source.release(address, free.size, pool.stream)

    # ------------------------------------------------------------------ for the user

    def empty(self, but: int = LEGACY_STREAM) -> None:
        """Give everything that is cached back to the driver, after waiting for the work that uses it.

        Streams that order no memory any more are forgotten, except the legacy one and `but`.
        """
        check_fork("cuMemPoolTrimTo")
        with self.lock:
            with Current(self.device.context):
                self.collect()
                call(api.cuCtxSynchronize)
            self.collect()
            self._release(everything=True)
            idle = [stream for stream, pool in self._pools.items() if pool.idle]
            for stream in set(idle) - {LEGACY_STREAM, but}:
                self._pools.pop(stream).owner = None  # the stream may be destroyed now
                self._by_nbytes.pop(stream, None)
            self._captures.clear()
            with Current(self.device.context):
                call(api.cuCtxSynchronize)  # what was freed just now is given back only once that is done
            for source in {
                self.source,
                *[pool.source for pool in self._retired],
                allocators.driver_source(self.device),
            }:
                source.trim()
            destroy_abandoned()

    def use(self, source: Any) -> None:
        """Take memory from another source from now on; blocks go back to where they came from."""
        with self.lock:
            self.empty()
            self._retired += self._pools.values()
            self._pools = {}
            self._by_nbytes = {}
            self.legacy.clear()
            self.source = source

    def statistics(self) -> Statistics:
        """Return what is held, and what the GPU has."""
        check_fork("cuMemGetInfo")
        with self.lock, Current(self.device.context):
            self.collect()
            free, total = call(api.cuMemGetInfo)
            cached = sum(pool.cached for pool in [*self._pools.values(), *self._retired])
            held = self._held
            return Statistics(held - cached, cached, held, self._peak, free, total, self._allocations, self._retries)

    def _forget(self) -> None:
        """In a forked child: serve nothing, so that the next call asks the driver and fails clearly."""
        self.lock = threading.RLock()
        self._by_nbytes = {}
        self.legacy.clear()


def _size(nbytes: int) -> str:
    """Return a number of bytes for people: 1536 is "1.5 KiB"."""
    amount, unit = float(nbytes), "bytes"
    for larger in ("KiB", "MiB", "GiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{nbytes} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
