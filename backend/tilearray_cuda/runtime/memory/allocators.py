"""Where blocks of device memory come from: the driver's stream-ordered pool, or another library's allocator.

The pool is our own, with a release threshold, so that the driver does not give memory back to the system at every
synchronization. Another library's allocator is shared with it in earnest: our free lists then hold a block only until
the next allocation that it does not fit.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from tilearray_cuda.errors import CudaError, OutOfMemoryError
from tilearray_cuda.runtime.driver import STREAMS, api, call

if TYPE_CHECKING:
    from tilearray_cuda.device import CudaDevice


class Source(Protocol):
    """Something that hands out blocks. The device's context is current; a lack of memory is a MemoryError."""

    caches_small: bool

    def allocate(self, nbytes: int, stream: int) -> int: ...
    def release(self, pointer: int, nbytes: int, stream: int) -> None: ...
    def trim(self) -> None: ...


class DriverSource:
    """A pool of the driver's on one device."""

    caches_small = True

    def __init__(self, device: int) -> None:
        supported = api.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
        if not call(api.cuDeviceGetAttribute, supported, device):
            raise CudaError(
                f"cuda:{device}: the GPU or its driver has no stream-ordered memory pools; write "
                f"ta.cuda.set_allocator(...) with an allocator of your own"
            )
        properties = api.CUmemPoolProps()
        properties.allocType = api.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = api.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        properties.location.id = device
        self._pool = call(api.cuMemPoolCreate, properties)
        threshold = api.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        call(api.cuMemPoolSetAttribute, self._pool, threshold, api.cuuint64_t(2**64 - 1))

    def allocate(self, nbytes: int, stream: int) -> int:
        """Return the address of a block that `stream` may use from now on."""
        return int(call(api.cuMemAllocFromPoolAsync, nbytes, self._pool, STREAMS[stream]))

    def release(self, pointer: int, nbytes: int, stream: int) -> None:
        """Give a block back behind what was launched on `stream`."""
        call(api.cuMemFreeAsync, pointer, STREAMS[stream])

    def trim(self) -> None:
        """Give what is free back to the system."""
        call(api.cuMemPoolTrimTo, self._pool, 0)


class ExternalSource:
    """Another library's ``allocate(nbytes, stream) -> pointer`` and ``release(pointer, nbytes, stream)``."""

    caches_small = False

    def __init__(self, allocate: Callable[[int, int], Any], release: Callable[[int, int, int], object]) -> None:
        self._allocate = allocate
        self._release = release

    def allocate(self, nbytes: int, stream: int) -> int:
        """Return the address of a block, after checking that it is one."""
        try:
            pointer = int(self._allocate(nbytes, stream))
        except Exception as error:
            if isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__:
                raise OutOfMemoryError(f"the allocator that was set: {type(error).__name__}: {error}") from error
            raise
        if pointer <= 0 or pointer % 256:
            raise CudaError(
                f"set_allocator: allocate({nbytes}, {stream}) returned {pointer:#x}; expected an address that is a "
                f"multiple of 256"
            )
        return pointer

    def release(self, pointer: int, nbytes: int, stream: int) -> None:
        """Give a block back."""
        self._release(pointer, nbytes, stream)

    def trim(self) -> None:
        """Nothing: what the other library keeps is its own."""


_driver_sources: dict[int, DriverSource] = {}
_chosen: Any = None  # what set_allocator was given


def driver_source(device: CudaDevice) -> DriverSource:
    """Return the driver's pool on a device, created at first use."""
    found = _driver_sources.get(device.index)
    return found if found is not None else _driver_sources.setdefault(device.index, DriverSource(device.index))


def current(device: CudaDevice) -> Source:
    """Return the source that is set, for a device."""
    return driver_source(device) if _chosen is None else adapt(_chosen, device.index)


def choose(allocator: Any) -> None:
    """Set the source for the devices opened from now on; None for the driver's."""
    global _chosen
    if allocator is not None:
        adapt(allocator, 0)
    _chosen = allocator


def adapt(allocator: Any, device: int) -> Source:
    """Return a source over an allocator: two functions, an object with such methods, RMM's, CuPy's or torch's."""
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
            f"object that has them, RMM's, CuPy's or torch's allocator, or None; got {type(allocator).__name__}"
        )
    if type(allocator).__module__.partition(".")[0] == "rmm":
        return _of_rmm(allocator)
    return ExternalSource(getattr(allocator, "allocate"), release)  # noqa: B009 - pyright takes it for a tuple


def _of_torch(cuda: Any, device: int) -> ExternalSource:
    return ExternalSource(
        lambda nbytes, stream: cuda.caching_allocator_alloc(nbytes, device, stream),
        lambda pointer, nbytes, stream: cuda.caching_allocator_delete(pointer),
    )


class _Handle:
    """A stream's handle, as the CUDA stream protocol passes it on."""

    def __init__(self, stream: int) -> None:
        self.stream = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.stream


def _cupy_stream(cuda: Any, stream: int, device: int) -> Any:
    """CuPy's object for one of our streams; CuPy 14 has a new way to make it, and warns of the old one."""
    adopt = getattr(cuda.Stream, "from_external", None)
    return adopt(_Handle(stream)) if adopt is not None else cuda.ExternalStream(stream, device)


def _of_cupy(pool: Any, device: int) -> ExternalSource:
    """CuPy allocates on its current stream, and frees what nobody refers to."""
    cuda = sys.modules["cupy"].cuda
    blocks: dict[int, Any] = {}
    atexit.register(blocks.clear)  # while CuPy is still there to take them

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
    """RMM takes streams as objects of its own."""

    def of(stream: int) -> Any:
        return sys.modules["rmm"].pylibrmm.stream.Stream(_Handle(stream))

    return ExternalSource(
        lambda nbytes, stream: resource.allocate(nbytes, of(stream)),
        lambda pointer, nbytes, stream: resource.deallocate(pointer, nbytes, of(stream)),
    )
