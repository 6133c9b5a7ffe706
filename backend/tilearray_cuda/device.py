"""`CudaDevice`: one GPU, with everything that tilearray expects of a backend.

We retain the primary context. So we share it with torch, CuPy and JAX, and it lives as long as the process. We free
nothing at exit, because other libraries may already be unloaded then. Streams are integers, the driver's handles; 0 is
the legacy default stream.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tilearray_cuda.errors import NoDeviceError
from tilearray_cuda.kernels import tuned_tiles
from tilearray_cuda.kernels.schedules import choose
from tilearray_cuda.libraries.cublas import Products
from tilearray_cuda.libraries.cufft import Transforms
from tilearray_cuda.libraries.cusolver import Factors
from tilearray_cuda.libraries.nccl import COLLECTIVES
from tilearray_cuda.locks import Lock
from tilearray_cuda.runtime.driver import (
    STREAMS,
    Current,
    after_fork,
    api,
    call,
    check_fork,
    device_count,
    is_capturing,
    torch_captures,
)
from tilearray_cuda.runtime.gpu import Gpu
from tilearray_cuda.runtime.memory import allocators, hooks
from tilearray_cuda.runtime.memory.allocator import Allocator, Statistics
from tilearray_cuda.runtime.memory.buffers import Buffer
from tilearray_cuda.runtime.peers import Transfers, connect
from tilearray_cuda.runtime.pinned import Pinned, is_pinned
from tilearray_cuda.runtime.staging import Staging, download_array, upload_array
from tilearray_cuda.runtime.streams import device_of, home_of


class CudaDevice(Gpu):
    """One GPU, with the attributes of `Gpu` and these.

    Attributes
    ----------
    memory : Allocator
    staging : Staging
    pinned : Pinned
    transfers : Transfers
    allocate : callable
        ``allocate(nbytes, stream) -> Buffer``: uninitialised memory ordered by a stream.
    join : callable
        ``join(buffer, stream, writes=False)``: make a stream wait until it may read or write a buffer. Required if
        ``buffer.stream != stream``, and before another library gets the memory.
    loop_class, facts_of_matrix : callable
        The facts of a loop that code depends on, and the facts of one array in a small loop; see `choose`.
    """

    indexing = sorting = linear_algebra = matrices = fourier = None
    on_host = scans_whole = False
    approximates = holds_rows = computes_places = True

    def __init__(self, index: int) -> None:
        super().__init__(index)
        tuned_tiles.GPUS.setdefault(self.arch, self.name)
        self.memory = Allocator(self)
        self.staging = Staging(self.context)
        self.pinned = Pinned(self)
        self.transfers = Transfers()
        self.call_writer = self
        self.allocate = self.memory.allocate
        self.join = self.memory.join
        self.products = Products(self)
        self.factors = Factors(self)
        self.transforms = Transforms(self)
        self.collectives = COLLECTIVES

    def __repr__(self) -> str:
        return f"<cuda:{self.index} {self.name}>"

    # ------------------------------------------------------------------ kernels

    loop_class = staticmethod(choose.loop_class)
    facts_of_matrix = staticmethod(choose.facts_of_matrix)

    def cuts(self, expression: Any, /) -> bool:
        """Cut every long reduction: a GPU needs many programs."""
        del expression
        return True

    def compile(self, expression: Any, loop_class: Any, aligned: tuple[bool, ...], /) -> Any:
        """Return the kernel of an expression for every loop of one class."""
        from tilearray_cuda import kernel

        return kernel.compile_kernel(self, expression, loop_class, aligned)

    def bind(self, compiled: Any, loop: Any, /) -> Any:
        """Bind a kernel to a loop: the result takes a stream, and a buffer (or number) and an offset per operand."""
        return compiled.bind(loop)

    def bind_call(self, compiled: Any, loop: Any, rule: Any, signature: Any, gaps: Any, /) -> Any:
        """Bind a kernel to a loop and a call: the result takes a stream and the operands; see `call_source`."""
        return compiled.bind_call(loop, rule, signature, gaps)

    def bind_fused(self, compiled: Any, loop: Any, made: Any, constants: Any, public: Any, /) -> Any:
        """Bind a kernel to a loop: as `bind`, but the launch makes some outputs, and has the constants."""
        bind = getattr(compiled, "bind_fused", None)  # calls of libraries have none
        return None if bind is None else bind(loop, made, constants, public)

    def bind_steps(self, steps: Any, takes: Any, raw: bool, memory: Any, /) -> Any:
        """Bind several kernels to loops and a call; see `call_source.steps_written_out`."""
        from tilearray_cuda import kernel

        return kernel.bind_steps(self, steps, takes, raw, memory)

    def bind_new(self, compiled: Any, rule: Any, /) -> Any:
        """Return the function that makes a call from a loop, which starts at its operands, and a new signature."""
        return compiled.written_out(rule)

    @functools.cached_property
    def lists(self) -> Any:
        """Launches over lists of arrays."""
        from tilearray_cuda.lists import Lists

        return Lists(self)

    # ------------------------------------------------------------------ copies

    def own_stream(self, stream: int, /) -> int:
        """Return a stream's handle if the stream belongs to this GPU, else the default stream."""
        return stream if stream and device_of(stream) == self.index else 0

    def is_captured(self, stream: int, /) -> bool:
        """Whether a CUDA graph captures a stream, or torch captures one, so that no call may wait."""
        return is_capturing(self.own_stream(stream)) or torch_captures()

    def to_numpy(
        self,
        buffer: Buffer,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: np.dtype,
        /,
        *,
        stream: int | None = None,
    ) -> np.ndarray:
        """Wait for the work that writes a strided view; return a copy of the view on the host.

        Raises
        ------
        NeedsDense
            If the view spans more than four times its own bytes; copy it on the device first.
        CaptureError
            If the stream is being captured.
        """
        check_fork("cuMemcpyDtoHAsync")
        stream = home_of(buffer) if stream is None else stream
        self.join(buffer, stream)
        found = download_array(self.staging, buffer.pointer + offset, shape, strides, dtype, stream)
        self.transfers.add("to_host", found.nbytes)
        self.index_errors.check()
        return found

    def from_numpy(self, array: np.ndarray, /, *, copy: bool = True, stream: int = 0) -> tuple[Buffer, int]:
        """Return a buffer with an array's elements at the array's own strides, and the byte offset of element 0.

        The buffer is a copy for each value of `copy`, and includes gaps. The array may change as soon as this returns.
        """
        check_fork("cuMemcpyHtoDAsync")
        self.transfers.add("from_host", array.nbytes)
        return upload_array(self.staging, array, self.allocate, stream)

    def copy_async(self, buffer: Buffer, offset: int, host: np.ndarray, to_device: bool, stream: int, /) -> None:
        """Copy between a buffer and pinned bytes of the host on a stream, without a wait.

        Raises
        ------
        CaptureError
            If the stream is being captured.
        ValueError
            If the bytes are not pinned.
        """
        self.staging.check(stream, "copy_async")
        if host.nbytes and not is_pinned(host.ctypes.data):
            raise ValueError("the memory of the host is not pinned")
        self.join(buffer, stream, to_device)
        if host.nbytes:
            self.transfers.add("from_host" if to_device else "to_host", host.nbytes)
            self.pinned.copy(buffer.pointer + offset, host, to_device, stream)

    def from_device(
        self, other: CudaDevice, buffer: Buffer, offset: int = 0, nbytes: int | None = None, /, *, stream: int = 0
    ) -> Buffer:
        """Return a copy of bytes of another GPU's buffer on this GPU; `stream` is a stream of this GPU.

        The GPUs get access to each other's memory first, if the hardware has it; see `tilearray_cuda.runtime.peers`.
        """
        count = buffer.nbytes - offset if nbytes is None else nbytes
        target = self.allocate(count, stream)
        if not count:
            return target
        self.transfers.add("from_peers" if connect(self, other) else "through_host", count)
        source = home_of(buffer)
        with Current(other.context):
            ready = other.events.record_here(source)
            with Current(self.context):
                call(api.cuStreamWaitEvent, STREAMS[stream], ready, 0)
                call(
                    api.cuMemcpyPeerAsync,
                    *(target.pointer, self.context, buffer.pointer + offset, other.context, count, STREAMS[stream]),
                )
                done = self.events.record_here(stream)
            # nothing overwrites or frees the source before the copy is done
            call(api.cuStreamWaitEvent, STREAMS[source], done, 0)
        other.events.give_back(ready)
        self.events.give_back(done)
        return target

    # ------------------------------------------------------------------ waiting, memory

    def synchronize(self) -> None:
        """Wait for all work launched on this GPU; raise the errors of earlier kernels."""
        check_fork("cuCtxSynchronize")
        with Current(self.context):
            call(api.cuCtxSynchronize)
        self.index_errors.check()

    def statistics(self) -> Statistics:
        """Return the memory in use, in bytes."""
        return self.memory.statistics()

    def empty_cache(self) -> None:
        """Free cached device memory and pinned host memory."""
        self.memory.empty()
        self.staging.empty()
        self.pinned.release()


_devices: dict[int, CudaDevice] = {}
_lock = Lock()


def _in_child() -> None:
    global _lock
    _lock = Lock()


after_fork.append(_in_child)


def open_device(index: int) -> CudaDevice:
    """Return the GPU of an index. The first call opens it; later calls return the same object."""
    check_fork("cuDeviceGet")
    found = _devices.get(index)
    if found is not None:
        return found
    count = device_count()
    if not 0 <= index < count:
        raise NoDeviceError(
            f"cuda:{index}: the NVIDIA driver offers {count} GPU{'s' if count > 1 else ''}, cuda:0 to "
            f"cuda:{count - 1}; see nvidia-smi and CUDA_VISIBLE_DEVICES"
        )
    with _lock:
        if index not in _devices:
            _devices[index] = CudaDevice(index)
        return _devices[index]


def opened() -> list[CudaDevice]:
    """Return the open GPUs."""
    return list(_devices.values())


def set_allocator(allocator: Any) -> None:
    """Set the allocator of all GPUs; None for the driver's pool. See `allocators.adapt`."""
    allocators.choose(allocator)
    for device in opened():
        device.memory.use(allocators.current(device.index))


def add_hook(hook: hooks.Hook) -> None:
    """Tell a function of the memory of all GPUs, until `remove_hook`. See `hooks`."""
    hooks.add(hook)
    for device in opened():
        device.memory.watch()


remove_hook = hooks.remove
