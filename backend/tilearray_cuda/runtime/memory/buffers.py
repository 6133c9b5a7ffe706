"""Buffers and free lists: blocks of device memory, and how they come back without a lock or a driver call.

`Buffer.__del__` appends the block's address to whatever list-like object stands in `Buffer.free`: the free list of its
stream and size, `stream.Shared` where other streams use it, or `Nowhere` for memory that something else owns. The cycle
collector runs ``__del__`` while other finalizers can still reach the array; that shows in the reference count, and then
the buffer leaves its block to an heir, which dies when the buffer really does.

A KeyboardInterrupt may arrive between the taking of a block and its becoming a buffer's, or within ``Buffer.__del__``,
where Python reports it as ignored and swallows it. Neither loses the block: its address is a `Block`, which goes home
by itself when nothing refers to it any more. A hit pays nothing for that, since an address in use or in a free list is
never without reference. A second interrupt, within ``Block.__del__``, does lose the block; so does one that arrives
within the driver's own call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from sys import getrefcount
from typing import Any

SMALLEST = 512
LARGE = 32 << 20
GRANULE = 2 << 20


def block_size(nbytes: int) -> int:
    """Return the size of the block that holds `nbytes` bytes: four sizes an octave, or whole granules if large.

    Examples
    --------
    >>> [block_size(n) for n in (1, 512, 513, 1025, 4000, 5000)]
    [512, 512, 1024, 1536, 4096, 5120]
    """
    if nbytes <= SMALLEST:
        return SMALLEST
    if nbytes > LARGE:
        return -(-nbytes // GRANULE) * GRANULE
    step = SMALLEST if nbytes <= 8 * SMALLEST else 1 << ((nbytes - 1).bit_length() - 3)
    return -(-nbytes // step) * step


def _count_of_a_last_release() -> int:
    """The reference count that ``__del__`` sees when the last reference goes, on this Python."""

    class Probe:
        __slots__ = ()

        def __del__(self, count: Callable[[object], int] = getrefcount) -> None:
            seen.append(count(self))

    seen: list[int] = []
    Probe()
    return seen[0]


_LAST = _count_of_a_last_release()


_homes: dict[int, tuple[int, Any]] = {}
"""Where each block goes home to: address -> identity of its `Block`, and the list-like object that takes it."""


class Block(int):
    """The address of a block of ours, which puts itself into its free list if whoever held it lost it.

    Python runs a finalizer once for an object, so a new one goes into the list.
    """

    __slots__ = ()

    @classmethod
    def at(cls, address: int, home: Any) -> Block:
        """Return the block at an address, of which there was none, or none that will be used again."""
        block = cls(address)
        _homes[int(address)] = id(block), home
        return block

    def settle(self, home: Any) -> None:
        """Let it go home elsewhere."""
        _homes[int(self)] = id(self), home

    def leave(self) -> int:
        """Return the address, which goes nowhere any more."""
        address = int(self)
        del _homes[address]
        return address

    def __del__(
        self,
        homes: dict[int, tuple[int, Any]] = _homes,
        count: Callable[[object], int] = getrefcount,
        last: int = _LAST,
    ) -> None:
        if count(self) == last:  # else the collector runs us while a buffer still holds us
            identity, home = homes.get(int(self), (0, None))
            if identity == id(self):
                home.append(self.at(self, home))


class Buffer:
    """A run of bytes on a GPU, ours to reuse when the last view of it is gone.

    Attributes
    ----------
    pointer, nbytes : int
        The address of the first byte, and how many there are.
    stream : int
        The stream that orders the memory; `stream.SHARED` where several use it. Equal to the stream of a launch, there
        is nothing to do; else `CudaDevice.join` has to be called first.
    readonly : bool
        Whether writing is refused; never, for memory of our own.
    """

    __slots__ = ("__weakref__", "free", "heir", "nbytes", "pointer", "stream")
    readonly = False

    pointer: int
    nbytes: int
    stream: int
    free: Any
    heir: Buffer

    @property
    def device_index(self) -> int:
        """The index of the GPU."""
        return self.free.device_index

    def send_to(self, free: Any) -> None:
        """Let the memory go back elsewhere."""
        heir = getattr(self, "heir", self)
        if isinstance(heir.pointer, Block):
            heir.pointer.settle(free)
        self.free = heir.free = free

    def __del__(self, count: Callable[[object], int] = getrefcount, last: int = _LAST) -> None:
        try:
            if count(self) == last:
                self.free.append(self.pointer)
            else:  # the collector runs us while somebody still holds us
                self.heir = heir = _Heir()
                heir.pointer = self.pointer
                heir.free = self.free
                if isinstance(self.pointer, Block):  # its own finalizer has run, or is about to
                    heir.pointer = Block.at(self.pointer, self.free)
        except (AttributeError, TypeError):  # interrupted while it was made, or at exit
            pass


class _Heir(Buffer):
    """What gives a block back in place of a buffer whose ``__del__`` came too early."""

    __slots__ = ()


class ForeignBuffer:
    """Memory that something else owns, which stays alive as long as this buffer and the streams that use it need it.

    It has no ``__del__``, and what it needs for several streams is made when a second one comes: most imports are used
    on the stream of their producer, and an import is to be as cheap as three objects. Then a `Buffer` guards the marks.

    Attributes
    ----------
    owner : object
        What is kept alive.
    """

    __slots__ = ("__weakref__", "_free", "_guard", "device_index", "nbytes", "owner", "pointer", "stream")
    readonly = False

    device_index: int
    nbytes: int
    owner: object
    pointer: int
    stream: int
    _free: Any
    _guard: Buffer

    @property
    def free(self) -> Any:
        """What the marks of other streams' uses stand for: `Nowhere`, until `send_to` says otherwise."""
        try:
            return self._free
        except AttributeError:
            self._free = Nowhere(self.device_index, self.owner, self.stream)
            return self._free

    def send_to(self, free: Any) -> None:
        """Let the memory go back elsewhere."""
        self._free = free
        guard = getattr(self, "_guard", None)
        if guard is None:
            self._guard = guard = Buffer()
            guard.pointer = self.pointer
        guard.send_to(free)


class ReadOnlyBuffer(ForeignBuffer):
    """Memory of something else that may not be written."""

    __slots__ = ()
    readonly = True


class Nowhere:
    """The free list of memory that is not ours to reuse; keeps its owner alive."""

    __slots__ = ("device_index", "owner", "stream")

    def __init__(self, device_index: int, owner: object, stream: int) -> None:
        self.device_index = device_index
        self.owner = owner
        self.stream = stream

    def append(self, pointer: int) -> None:
        """Take the memory back, which means to forget it."""


class FreeList(deque[int]):
    """Addresses of free blocks of one size on one stream; a deque keeps its memory when the last block is taken."""

    __slots__ = ("blocks", "pool", "size")

    def __init__(self, pool: StreamPool, size: int) -> None:
        super().__init__()
        self.pool = pool
        self.size = size
        self.blocks = 0  # of this size that there are, free or in use

    @property
    def device_index(self) -> int:
        """The index of the GPU."""
        return self.pool.device_index

    @property
    def stream(self) -> int:
        """The stream that orders the blocks."""
        return self.pool.stream


class StreamPool:
    """The free lists of one stream, by block size; keeps the stream alive."""

    __slots__ = ("capture", "device_index", "lists", "owner", "source", "stream")

    def __init__(self, device_index: int, stream: int, source: Any, capture: int = 0) -> None:
        self.device_index = device_index
        self.stream = stream
        self.source = source
        self.capture = capture
        self.lists: dict[int, FreeList] = {}
        self.owner: object = None

    def list_of(self, size: int) -> FreeList:
        """Return the free list of a block size."""
        found = self.lists.get(size)
        return found if found is not None else self.lists.setdefault(size, FreeList(self, size))

    @property
    def cached(self) -> int:
        """Bytes in the free lists."""
        return sum(len(free) * free.size for free in list(self.lists.values()))

    @property
    def idle(self) -> bool:
        """Whether no block of it is in use."""
        return all(len(free) == free.blocks for free in list(self.lists.values()))
