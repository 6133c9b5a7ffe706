"""Buffers and free lists: blocks of device memory, freed without a lock or a driver call.

`Buffer.__del__` appends the block's address to the list-like object `Buffer.free`: the free list of its stream and
size, `streams.Shared` if other streams use the block, or `Nowhere` if another object owns the memory. The cycle
collector runs ``__del__`` while other finalizers can still reach the array. The reference count shows this, and the
buffer then leaves its block to an heir, which dies when the last reference to the buffer goes.

A KeyboardInterrupt may arrive after a block is taken and before a buffer holds it, or within ``Buffer.__del__``, where
Python reports and ignores it. Neither loses the block: its address is a `Block`, which returns to its free list when
the last reference goes. This costs a cache hit nothing, because an address in use or in a free list always has a
reference. A second interrupt, within ``Block.__del__``, loses the block. An interrupt within the driver's own call also
loses it.
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
    """Return the size of the block for `nbytes` bytes: one of four sizes per octave, or a multiple of `GRANULE`.

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
    """Return the reference count that ``__del__`` sees when the last reference goes, on this Python."""

    class Probe:
        __slots__ = ()

        def __del__(self, count: Callable[[object], int] = getrefcount) -> None:
            seen.append(count(self))

    seen: list[int] = []
    Probe()
    return seen[0]


_LAST = _count_of_a_last_release()


_homes: dict[int, tuple[int, Any]] = {}
"""The home of each block: address -> identity of its `Block`, and the list-like object that takes the block."""


class Block(int):
    """The address of a block of ours. It appends itself to its free list when the last reference goes.

    Python runs an object's finalizer once, so a new `Block` goes into the list.
    """

    __slots__ = ()

    @classmethod
    def at(cls, address: int, home: Any) -> Block:
        """Return a new block at an address; an earlier `Block` of the address must not be used again."""
        block = cls(address)
        _homes[int(address)] = id(block), home
        return block

    def settle(self, home: Any) -> None:
        """Change the home of the block."""
        _homes[int(self)] = id(self), home

    def leave(self) -> int:
        """Return the address, which has no home from now on."""
        address = int(self)
        del _homes[address]
        return address

    def __del__(
        self,
        homes: dict[int, tuple[int, Any]] = _homes,
        count: Callable[[object], int] = getrefcount,
        last: int = _LAST,
    ) -> None:
        if count(self) == last:  # else the collector runs this while a buffer still holds the block
            identity, home = homes.get(int(self), (0, None))
            if identity == id(self):
                home.append(self.at(self, home))


class Buffer:
    """A run of bytes on a GPU, which we reuse when its last view is gone.

    Attributes
    ----------
    pointer, nbytes : int
        The address of the first byte, and the number of bytes.
    stream : int
        The stream that orders the memory, or `streams.SHARED` if several streams use it. Before a launch on any other
        stream, `CudaDevice.join` must be called.
    readonly : bool
        Whether writes are refused; always False for our own memory.
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
        """Change the free list that takes the memory back."""
        heir = getattr(self, "heir", self)
        if isinstance(heir.pointer, Block):
            heir.pointer.settle(free)
        self.free = heir.free = free

    def __del__(self, count: Callable[[object], int] = getrefcount, last: int = _LAST) -> None:
        try:
            if count(self) == last:
                self.free.append(self.pointer)
            else:  # the collector runs this while a reference still exists
                self.heir = heir = _Heir()
                heir.pointer = self.pointer
                heir.free = self.free
                if isinstance(self.pointer, Block):  # the finalizer of the old `Block` has run, or runs soon
                    heir.pointer = Block.at(self.pointer, self.free)
        except (AttributeError, TypeError):  # the constructor was interrupted, or Python exits
            pass


class _Heir(Buffer):
    """The heir of a buffer whose ``__del__`` ran too early; it frees the block."""

    __slots__ = ()


class ForeignBuffer:
    """Memory of another owner, which stays alive while this buffer and the streams that use it need it.

    It has no ``__del__``, and gets the objects for several streams only when a second stream uses it. A `Buffer` then
    guards the marks. Most imports are used on their producer's stream only, and should cost no more than three objects.

    Attributes
    ----------
    owner : object
        The object that is kept alive.
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
        """The list-like object that takes the memory back: `Nowhere`, until `send_to` changes it."""
        try:
            return self._free
        except AttributeError:
            self._free = Nowhere(self.device_index, self.owner, self.stream)
            return self._free

    def send_to(self, free: Any) -> None:
        """Change the free list that takes the memory back."""
        self._free = free
        guard = getattr(self, "_guard", None)
        if guard is None:
            self._guard = guard = Buffer()
            guard.pointer = self.pointer
        guard.send_to(free)


class ReadOnlyBuffer(ForeignBuffer):
    """Memory of another owner that must not be written."""

    __slots__ = ()
    readonly = True


class Nowhere:
    """The free list of memory that we must not reuse; keeps its owner alive."""

    __slots__ = ("device_index", "owner", "stream")

    def __init__(self, device_index: int, owner: object, stream: int) -> None:
        self.device_index = device_index
        self.owner = owner
        self.stream = stream

    def append(self, pointer: int) -> None:
        """Forget the memory."""


class FreeList(deque[int]):
    """Addresses of free blocks of one size on one stream. A deque keeps its memory when the last block is taken."""

    __slots__ = ("blocks", "pool", "size")

    def __init__(self, pool: StreamPool, size: int) -> None:
        super().__init__()
        self.pool = pool
        self.size = size
        self.blocks = 0  # blocks of this size, free or in use

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
    def is_empty(self) -> bool:
        """Whether it has no blocks, neither free nor in use; arrays that give blocks back do not change it."""
        return not any(free.blocks for free in list(self.lists.values()))
