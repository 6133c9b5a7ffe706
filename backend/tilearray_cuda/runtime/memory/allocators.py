"""Sources of device memory: the driver's stream-ordered pool, or another library's allocator.

The pool is our own, with a release threshold, so that the driver does not return memory to the system at every
synchronization. With another library's allocator, our free lists hold a block only until the next allocation that the
block does not fit, so that the other library can use the memory.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from tilearray_cuda.errors import CudaError, OutOfMemoryError
from tilearray_cuda.runtime.driver import STREAMS, api, call


class Source(Protocol):
    """A source of blocks. The caller makes the device's context current. Too little memory raises MemoryError."""

    caches_small: bool

    def allocate(self, nbytes: int, stream: int) -> int: ...
    def release(self, pointer: int, nbytes: int, stream: int) -> None: ...
    def trim(self) -> None: ...


class DriverSource:
    """A pool of the driver on one device."""

    caches_small = True

    def __init__(self, device: int) -> None:
        supported = api.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
        if not call(api.cuDeviceGetAttribute, supported, device):
            raise CudaError(
                f"cuda:{device}: the GPU or its driver does not support stream-ordered memory pools; write "
                f"ta.cuda.set_allocator(...) with your own allocator"
            )
        properties = api.CUmemPoolProps()
        properties.allocType = api.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = api.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        properties.location.id = device
        self._pool = call(api.cuMemPoolCreate, properties)
        threshold = api.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        call(api.cuMemPoolSetAttribute, self._pool, threshold, api.cuuint64_t(2**64 - 1))

    def share(self, devices: Iterable[int]) -> None:
        """Let other GPUs read and write the blocks, those of now and later ones."""
        rights = [_access_of(device) for device in devices]
        if rights:
            call(api.cuMemPoolSetAccess, self._pool, rights, len(rights))

    def allocate(self, nbytes: int, stream: int) -> int:
        """Return the address of a block for later work on `stream`."""
        return int(call(api.cuMemAllocFromPoolAsync, nbytes, self._pool, STREAMS[stream]))

    def release(self, pointer: int, nbytes: int, stream: int) -> None:
        """Free a block after the work launched on `stream` so far."""
        call(api.cuMemFreeAsync, pointer, STREAMS[stream])

    def trim(self) -> None:
        """Return free memory to the system."""
        call(api.cuMemPoolTrimTo, self._pool, 0)


def _access_of(device: int) -> Any:
    access = api.CUmemAccessDesc()
    access.location.type = api.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.location.id = device
    access.flags = api.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    return access


class ExternalSource:
    """Another library's ``allocate(nbytes, stream) -> pointer`` and ``release(pointer, nbytes, stream)``."""

    caches_small = False

    def __init__(self, allocate: Callable[[int, int], Any], release: Callable[[int, int, int], object]) -> None:
        self._allocate = allocate
        self._release = release

    def allocate(self, nbytes: int, stream: int) -> int:
        """Return the address of a block, after a check of the address."""
        try:
            pointer = int(self._allocate(nbytes, stream))
        except Exception as error:
            if isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__:
                raise OutOfMemoryError(f"set_allocator: allocate raised {type(error).__name__}: {error}") from error
            raise
        if pointer <= 0 or pointer % 256:
            raise CudaError(
                f"set_allocator: allocate({nbytes}, {stream}) returned {pointer:#x}; expected an address that is a "
                f"multiple of 256"
            )
        return pointer

    def release(self, pointer: int, nbytes: int, stream: int) -> None:
        """Free a block."""
        self._release(pointer, nbytes, stream)

    def trim(self) -> None:
        """Do nothing: the other library manages its own cache."""


_driver_sources: dict[int, DriverSource] = {}
_peers: dict[int, set[int]] = {}
"""The GPUs that may access the memory of each GPU."""
_chosen: Any = None  # the argument of set_allocator


def driver_source(device: int) -> DriverSource:
    """Return the driver's pool on a device, created at first use."""
    found = _driver_sources.get(device)
    if found is None:
        found = _driver_sources.setdefault(device, DriverSource(device))
        found.share(_peers.get(device, ()))
    return found


def share(device: int, other: int) -> None:
    """Let two GPUs access the memory of each other's pools, which exist now or are made later."""
    for one, peer in ((device, other), (other, device)):
        _peers.setdefault(one, set()).add(peer)
        if one in _driver_sources:
            _driver_sources[one].share([peer])


def current(device: int) -> Source:
    """Return the chosen source for a device."""
    return driver_source(device) if _chosen is None else adapt(_chosen, device)


def choose(allocator: Any) -> None:
    """Choose the allocator for devices that are opened later; None for the driver's pool."""
    global _chosen
    if allocator is not None:
        adapt(allocator, 0)
    _chosen = allocator


def adapt(allocator: Any, device: int) -> Source:
    """Return a source for an allocator: two functions, an object with such methods, RMM's, CuPy's or torch's."""
    if isinstance(allocator, tuple) and len(allocator) == 2 and all(map(callable, allocator)):
        return ExternalSource(*allocator)
    for cuda in (allocator, getattr(allocator, "cuda", None)):
        if hasattr(cuda, "caching_allocator_alloc"):
            return _of_torch(cuda, device)
    if type(allocator).__module__.partition(".")[0] == "cupy" and hasattr(allocator, "malloc"):
        return _of_cupy(allocator, device)
    release = getattr(allocator, "release", None) or getattr(allocator, "deallocate", None)
    if not callable(getattr(allocator, "allocate", None)) or not callable(release):
        raise TypeError(
            f"set_allocator: expected functions allocate(nbytes, stream) and release(pointer, nbytes, stream), an "
            f"object with these methods, RMM's, CuPy's or torch's allocator, or None; got {type(allocator).__name__}"
        )
    if type(allocator).__module__.partition(".")[0] == "rmm":
        return _of_rmm(allocator)
    return ExternalSource(getattr(allocator, "allocate"), release)  # noqa: B009 - pyright infers a tuple


def _of_torch(cuda: Any, device: int) -> ExternalSource:
    return ExternalSource(
        lambda nbytes, stream: cuda.caching_allocator_alloc(nbytes, device, stream),
        lambda pointer, nbytes, stream: cuda.caching_allocator_delete(pointer),
    )


class _Handle:
    """A stream's handle, in the form of the CUDA stream protocol."""

    def __init__(self, stream: int) -> None:
        self.stream = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.stream


def _cupy_stream(cuda: Any, stream: int, device: int) -> Any:
    """Return CuPy's object for one of our streams. CuPy 14 has a new constructor, and warns about the old one."""
    adopt = getattr(cuda.Stream, "from_external", None)
    return adopt(_Handle(stream)) if adopt is not None else cuda.ExternalStream(stream, device)


def _of_cupy(pool: Any, device: int) -> ExternalSource:
    """Return a source for CuPy, which allocates on its current stream and frees unreferenced blocks."""
    cuda = sys.modules["cupy"].cuda
    blocks: dict[int, Any] = {}
    atexit.register(blocks.clear)  # while CuPy is still loaded

    def allocate(nbytes: int, stream: int) -> int:
        with _cupy_stream(cuda, stream, device):
            block = pool.malloc(nbytes)
        blocks[block.ptr] = block
        return block.ptr

    def release(pointer: int, nbytes: int, stream: int) -> None:
        with _cupy_stream(cuda, stream, device):
            blocks.pop(pointer, None)

    return ExternalSource(allocate, release)


def _of_rmm(resource: Any) -> ExternalSource:
    """Return a source for RMM, which takes streams as its own objects."""

    def of(stream: int) -> Any:
        return sys.modules["rmm"].pylibrmm.stream.Stream(_Handle(stream))

    return ExternalSource(
        lambda nbytes, stream: resource.allocate(nbytes, of(stream)),
        lambda pointer, nbytes, stream: resource.deallocate(pointer, nbytes, of(stream)),
    )
