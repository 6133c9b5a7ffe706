"""Device memory: a free list per stream and block size over the driver's stream-ordered allocator.

A stream runs in order. Work on it may use memory whose earlier work is done when the new work starts. So a free block
goes directly to its stream's free list, and the next array takes it, without a driver call.

- **Sizes.** Block sizes are rounded up to four sizes per octave, and to at least 512 bytes; above `LARGE` to multiples
  of `GRANULE`. A request for a large size also takes a free block that is up to an eighth larger. If there is none,
  free blocks of other large sizes stay in their lists while they are at most `SPARE` times what is in use, and all
  blocks at most `MOST_HELD` of the GPU. Else they go back to the driver's pool. The pool merges and splits blocks, but
  maps memory to other addresses for that: on an H100, a block of 382 MiB after one of 374 MiB went back took 0.7 ms.
- **`Buffer.__del__` frees a block.** It appends the block to a list and does nothing else. `buffers` explains this, and
  the effect of an interrupt.
- **Several streams.** The block of a marked buffer is free after events; see `streams`.
- **Out of memory.** All cached blocks go back to the driver, and the call is repeated once. A limit that the user sets
  counts as the GPU's memory: blocks above it are not asked for.
- **Hooks.** While a function listens, every allocation comes to `_obtain`, which tells it; see `hooks`.
- **Captures.** Memory for a stream that is being captured into a CUDA graph comes from the graph. It is reused within
  that capture only, and belongs to the graph from then on, so nothing frees it. The free lists do not hold it.
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections import deque
from typing import Any, NamedTuple

from tilearray_cuda.errors import CudaError, OutOfMemoryError
from tilearray_cuda.locks import Lock
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
from tilearray_cuda.runtime.gpu import Gpu, event_passed
from tilearray_cuda.runtime.memory import allocators, hooks
from tilearray_cuda.runtime.memory.buffers import LARGE, Block, Buffer, FreeList, Nowhere, StreamPool, block_size
from tilearray_cuda.runtime.streams import SHARED, Shared, destroy_abandoned, device_of, home_of

KNOWN_SIZES = 4096
"""The number of sizes in bytes whose free list a stream remembers; then it forgets all of them."""
SPARE, MOST_HELD = 4, 1 / 4
"""The bounds of free large blocks that stay: times what is in use, and the part of the GPU that all blocks are."""
COLLECT_AFTER = 32
"""The number of free marked blocks above which the next mark checks whether their events have passed."""


class Statistics(NamedTuple):
    """The memory of one GPU, in bytes, and the calls of the driver."""

    live: int
    """Memory of arrays."""
    cached: int
    """Free memory, kept for new arrays."""
    held: int
    """Both: memory obtained and not freed."""
    peak: int
    """The largest value of `held` so far."""
    device_free: int
    """Free memory of the GPU, as the driver counts it; its pool may hold more for us."""
    device_total: int
    """The GPU's memory."""
    allocations: int
    """The number of blocks obtained."""
    retries: int
    """The number of calls repeated after all cached blocks were freed."""
    limit: int | None
    """The largest value that `held` may have; None without a limit."""


class Allocator:
    """The memory of one device."""

    def __init__(self, device: Gpu) -> None:
        self.device = device
        self.source: Any = allocators.current(device.index)
        self.returned: list[tuple[Shared, int]] = []  # marked blocks, from Buffer.__del__
        self.lock = Lock()  # reentrant: the collector may run finalizers that come here
        self.legacy: dict[int, FreeList] = {}  # block size -> free list of the default stream; a cache hit reads it
        self._by_nbytes: dict[int, dict[int, FreeList]] = {}  # stream -> bytes -> free list, for all streams
        self._pools: dict[int, StreamPool] = {}
        self._captures: dict[int, StreamPool] = {}
        self._owners: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()  # the owners of streams
        self._retired: list[StreamPool] = []  # pools of replaced sources, while their blocks are in use
        self._waiting: deque[tuple[list[Any], Shared, int]] = deque()
        self._held = self._peak = self._allocations = self._retries = 0
        self.limit: int | None = None
        after_fork.append(self._forget)

    # ------------------------------------------------------------------ memory of an array

    def allocate(self, nbytes: int, stream: int, /) -> Buffer:
        """Return uninitialised memory ordered by a stream, at a multiple of 256."""
        free, pointer = self.take(nbytes, stream)
        buffer = Buffer()
        buffer.pointer = pointer
        buffer.nbytes = nbytes
        buffer.stream = stream
        buffer.free = free
        return buffer

    def take(self, nbytes: int, stream: int) -> tuple[FreeList, int]:
        """Return the free list of a size, and a block; a written call of `call_source` makes the buffer itself."""
        try:
            if stream and is_capturing(stream):
                free = self._captured(stream).list_of(block_size(nbytes))
            else:
                free = self._by_nbytes[stream][nbytes]
            return free, free.pop()
        except LookupError:
            return self._obtain(nbytes, stream)

    def join(self, buffer: Buffer, stream: int, writes: bool = False) -> None:
        """Make a stream wait until it may read or write a buffer; `tilearray_cuda.runtime.streams` has the rules."""
        if buffer.stream == stream:
            return
        marks = buffer.free
        if not writes and marks.__class__ is Shared and (stream == marks.home or stream in marks.readers):
            return  # it waited at its first read, and no write followed
        check_fork("cuStreamWaitEvent")
        with self.lock:
            self._order(buffer, stream, writes)
            if len(self.returned) + len(self._waiting) > COLLECT_AFTER and not is_capturing(stream):
                self.collect()  # a capture by this thread forbids event queries

    def _order(self, buffer: Buffer, stream: int, writes: bool) -> None:
        """Make `stream` wait until it may read or write a buffer, and mark the buffer. The caller holds the lock."""
        home = home_of(buffer)
        if stream and is_capturing(stream) and not is_capturing(home):
            return
        marks: Shared | None = buffer.free if buffer.stream == SHARED else None
        events = self.device.events
        if writes:
            for other in {home} if marks is None else {home, *marks.readers}:
                if other != stream:
                    events.wait(stream, other)
            if stream != home or marks is not None:
                self.move(buffer, stream)
            return
        if stream == home:
            return
        events.wait(stream, home)
        if marks is None:
            marks = Shared(buffer.free, home, self.returned)
            buffer.send_to(marks)
            buffer.stream = SHARED
        marks.readers.add(stream)

    def move(self, buffer: Buffer, stream: int) -> None:
        """Make a stream the home of a buffer. The stream waits for the other uses of the buffer already."""
        free: FreeList | Nowhere = buffer.free.free if buffer.stream == SHARED else buffer.free
        if stream != free.stream and not (isinstance(free, FreeList) and free.pool.capture):
            if isinstance(free, Nowhere) or free.pool.source is not self.source:  # it goes back to its source
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
        """Keep a stream's owner alive while the stream orders memory; before that, the caller keeps it alive.

        The owner is an object of ours, not the stream itself, because weak references break torch's streams.
        """
        with self.lock:
            self._owners[stream] = owner
            if stream in self._pools:
                self._pools[stream].owner = owner

    # ------------------------------------------------------------------ blocks from and to the driver

    def _obtain(self, nbytes: int, stream: int) -> tuple[FreeList, int]:
        """Return a free list and a block of its size, from the list if it has one now, else from the driver."""
        check_fork("cuMemAllocAsync")
        check_capture(stream)
        size = block_size(nbytes)
        with self.lock:
            capturing = is_capturing(stream)
            pool = self._captured(stream) if capturing else self._pool(stream)
            free = pool.list_of(size)
            if not capturing:
                self.collect()
                if size > LARGE or not self.source.caches_small:
                    free = self._fitting(pool, free)
                self._remember(nbytes, stream, free)
            block = self._block(pool, free, stream, nbytes)
            hooks.tell("take", nbytes, int(block), stream, self.device.index)
            return free, block

    def _fitting(self, pool: StreamPool, free: FreeList) -> FreeList:
        """Return a free list of a size or a little larger that has blocks, or the list of the size.

        If blocks of other sizes are too many, they go back to their source.
        """
        if not self.source.caches_small:
            self._release(free.size)
            return free
        if free:
            return free
        most = free.size + free.size // 8
        others = [other for other in list(pool.lists.values()) if other and free.size < other.size <= most]
        if others:
            return min(others, key=lambda other: other.size)
        held, cached = self._held + free.size, sum(each.cached for each in self._pools.values())
        is_much = cached > SPARE * (held - cached) or held > MOST_HELD * min(self.limit or self._total, self._total)
        if is_much or self._retired:
            self._release(free.size)
        return free

    @functools.cached_property
    def _total(self) -> int:
        """The GPU's memory."""
        with Current(self.device.context):
            return call(api.cuMemGetInfo)[1]

    def _block(self, pool: StreamPool, free: FreeList, stream: int, nbytes: int) -> int:
        """Return a block of a free list, or a new one of its size."""
        try:
            return free.pop()
        except IndexError:
            pointer = self._from_source(pool.source, free.size, stream, nbytes)
        free.blocks += 1
        if pool.capture:
            return pointer
        self._held += free.size
        block = Block.at(pointer, free)
        self._peak = max(self._peak, self._held)
        hooks.tell("obtain", free.size, pointer, stream, self.device.index)
        return block

    def _from_source(self, source: Any, size: int, stream: int, nbytes: int) -> int:
        self._allocations += 1
        try:
            return self._ask(source, size, stream)
        except MemoryError as error:
            if is_capturing(stream):
                raise self._out_of_memory(nbytes, stream, 0, error) from None
        self._retries += 1
        gc.collect()
        before = self._held
        self.empty(stream)
        try:
            return self._ask(source, size, stream)
        except MemoryError as error:
            raise self._out_of_memory(nbytes, stream, before - self._held, error) from None

    def _ask(self, source: Any, size: int, stream: int) -> int:
        """Ask a source for a block, if the limit allows it."""
        limit = self.limit
        if limit is not None and self._held + size > limit and not is_capturing(stream):
            raise _LimitError(f"the limit is {_size(limit)}; write ta.cuda.set_memory_limit(None) for none")
        with Current(self.device.context):
            return source.allocate(size, stream)

    def _out_of_memory(self, nbytes: int, stream: int, cached: int, error: MemoryError) -> OutOfMemoryError:
        hooks.tell("refuse", nbytes, 0, stream, self.device.index)
        found = self.statistics()
        origin = "" if isinstance(error, _LimitError) else "the driver reports: "
        return OutOfMemoryError(
            f"allocate: cuda:{self.device.index} ({self.device.name}) cannot allocate {_size(nbytes)}: "
            f"{_size(found.device_free)} of {_size(found.device_total)} are free, arrays of this process hold "
            f"{_size(found.live)}, and {_size(cached)} of cache were freed for this call; delete arrays, work in "
            f"pieces, or empty the caches of other libraries (torch.cuda.empty_cache()); {origin}{error}",
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
                    f"stream {stream:#x} belongs to cuda:{index} and cannot order memory of cuda:{self.device.index}; "
                    f"write with ta.cuda.stream(s) for a stream s of cuda:{self.device.index}"
                )
        pool = self._pools.setdefault(stream, StreamPool(self.device.index, stream, self.source))
        pool.owner = self._owners.get(stream)
        return pool

    def _captured(self, stream: int) -> StreamPool:
        """Return the pool of a stream's active capture."""
        with Current(self.device.context):
            capture = int(call(api.cuStreamGetCaptureInfo, STREAMS[stream])[1])
        pool = self._captures.get(stream)
        if pool is None or pool.capture != capture:
            source = allocators.driver_source(self.device.index)
            pool = self._captures[stream] = StreamPool(self.device.index, stream, source, capture)
        return pool

    def end_capture(self, stream: int) -> StreamPool | None:
        """Return the pool of a stream's active capture, which has no more memory; None if it has made none."""
        with self.lock:
            pool = self._captures.pop(stream, None)
            if pool is None:
                return None
            with Current(self.device.context):
                capture = int(call(api.cuStreamGetCaptureInfo, STREAMS[stream])[1])
            return pool if pool.capture == capture else None

    def _remember(self, nbytes: int, stream: int, free: FreeList) -> None:
        if hooks.active:
            return
        known = self._by_nbytes.setdefault(stream, {})
        if len(known) >= KNOWN_SIZES:
            known.clear()
        known[nbytes] = free
        if stream == LEGACY_STREAM:
            self.legacy[free.size] = free

    def collect(self) -> None:
        """Move free marked blocks to their free lists if the readers' events have passed."""
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

        If one of the streams no longer exists, wait for the whole device and return no events.
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
        """Return free blocks to their sources: large blocks of other sizes than `but`, or all blocks of these sizes.

        All blocks of retired pools go back.
        """
        whole = everything or not self.source.caches_small
        with Current(self.device.context):
            for pool in self._pools.values():
                for size, free in list(pool.lists.items()):
                    if size != but and (size > LARGE or whole):
                        self._release_list(pool, free)
            for pool in self._retired:
                for free in list(pool.lists.values()):
                    self._release_list(pool, free)
        self._retired = [pool for pool in self._retired if not pool.is_empty]

    def _release_list(self, pool: StreamPool, free: FreeList) -> None:
        while free:
            try:
                pointer = free.pop()
            except IndexError:  # another thread took the last block
                return
            address = pointer.leave() if isinstance(pointer, Block) else pointer
            free.blocks -= 1
            self._held -= free.size
            pool.source.release(address, free.size, pool.stream)
            hooks.tell("release", free.size, address, pool.stream, self.device.index)

    # ------------------------------------------------------------------ for the user

    def empty(self, but: int = LEGACY_STREAM) -> None:
        """Wait for the work that uses cached memory, then return the memory to the driver.

        Forget the streams that no longer order memory, except the legacy stream and `but`.
        """
        check_fork("cuMemPoolTrimTo")
        with self.lock:
            with Current(self.device.context):
                self.collect()
                call(api.cuCtxSynchronize)
            self.collect()
            self._release(everything=True)
            unused = [stream for stream, pool in self._pools.items() if pool.is_empty]
            for stream in set(unused) - {LEGACY_STREAM, but}:
                self._pools.pop(stream).owner = None  # the stream may be destroyed now
                self._by_nbytes.pop(stream, None)
            self._captures.clear()
            with Current(self.device.context):
                call(api.cuCtxSynchronize)  # the driver frees the memory only when its work is done
            for source in {
                self.source,
                *[pool.source for pool in self._retired],
                allocators.driver_source(self.device.index),
            }:
                source.trim()
            destroy_abandoned()

    def use(self, source: Any) -> None:
        """Take memory from another source from now on; existing blocks go back to their own sources."""
        with self.lock:
            self.empty()
            self._retired += self._pools.values()
            self._pools = {}
            self._by_nbytes = {}
            self.legacy.clear()
            self.source = source

    def statistics(self) -> Statistics:
        """Return the memory in use, and the memory of the GPU."""
        check_fork("cuMemGetInfo")
        with self.lock, Current(self.device.context):
            self.collect()
            free, total = call(api.cuMemGetInfo)
            cached = sum(pool.cached for pool in [*self._pools.values(), *self._retired])
            held = self._held
            counts = (self._peak, free, total, self._allocations, self._retries, self.limit)
            return Statistics(held - cached, cached, held, *counts)

    def set_limit(self, limit: int | None) -> None:
        """Set the largest number of bytes to hold; free cached blocks if they are above it."""
        with self.lock:
            self.limit = limit
            if limit is not None and self._held > limit:
                self.empty()

    def watch(self) -> None:
        """Forget which free list serves a size, so that hooks hear of the next allocation."""
        with self.lock:
            self._by_nbytes = {}
            self.legacy.clear()

    def _forget(self) -> None:
        """Empty the free lists in a forked child, so that the next call asks the driver and gets a clear error."""
        self.lock = Lock()
        self._by_nbytes = {}
        self.legacy.clear()


class _LimitError(MemoryError):
    """A block that the user's limit does not allow."""


def _size(nbytes: int) -> str:
    """Return a number of bytes as text: 1536 is "1.5 KiB"."""
    amount, unit = float(nbytes), "bytes"
    for larger in ("KiB", "MiB", "GiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{nbytes} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
