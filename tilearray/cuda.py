"""Streams, events and memory of CUDA devices: the namespace ``ta.cuda``.

Work runs on the default stream of its device, or on ``s`` in a ``with ta.cuda.stream(s):`` block. The default stream is
the legacy one, so it is ordered with work of torch and CuPy on *their* default streams. You may use an array on any
stream. Before a stream reads or overwrites memory, it waits for the streams that wrote or read the memory. Memory is
not reused before every stream is done with it.

``with ta.cuda.graph() as g:`` captures operations, and ``g.replay()`` runs them again in one launch. A graph of another
library can be captured on its stream ``s`` within ``with ta.cuda.stream(s):``. New memory then comes from the graph and
belongs to it. Arrays made before the capture must be ready when it starts (``torch.cuda.graph`` synchronizes), and you
must keep them alive as long as the graph. Copies to or from the host cannot be captured.

The import of this module does not load the driver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tilearray.engine.context import STATE, Block
from tilearray.engine.devices import Device, as_device, default_device
from tilearray.engine.signature import ArrayBase, check_array, from_host
from tilearray.engine.streams import LEGACY_ALIAS, LEGACY_STREAM, PER_THREAD_STREAM
from tilearray.errors import DeviceError, DTypeError, LayoutError, OperandError, ShapeError, shown
from tilearray.missing_names import MissingNameError
from tilearray.ops.execute import check_target

if TYPE_CHECKING:
    from tilearray_cuda.device import CudaDevice
    from tilearray_cuda.runtime.memory.allocator import Statistics
    from tilearray_cuda.runtime.memory.hooks import MemoryEvent
    from tilearray_cuda.runtime.peers import TransferStatistics

__all__ = [
    "Event",
    "Stream",
    "copy_async",
    "current_stream",
    "device_count",
    "empty_cache",
    "graph",
    "memory_hook",
    "memory_statistics",
    "peer_access",
    "pinned_like",
    "set_allocator",
    "set_memory_limit",
    "stream",
    "synchronize",
    "transfer_statistics",
]


def device_count() -> int:
    """Return the number of GPUs; 0 without a GPU or a driver.

    Examples
    --------
    >>> from tilearray import cuda
    >>> cuda.device_count() >= 0
    True
    """
    import tilearray_cuda

    return tilearray_cuda.device_count()


def _backend(device: Device | str | None, function: str) -> CudaDevice:
    """Return the backend of a GPU; None stands for the default device if it is a GPU, else ``cuda:0``."""
    if device is None:
        device = default_device() if default_device().type == "cuda" else "cuda:0"
    found = as_device(device, function)
    if found.type != "cuda":
        raise DeviceError(f"{function}: expected a cuda device, got {str(found)!r}; write 'cuda:0'")
    backend: Any = found.backend
    return backend


class Stream:
    """A stream: its work runs in order, and concurrently with the work of other streams.

    Parameters
    ----------
    device : Device or str, optional
        The stream's device; the default device if omitted.

    Attributes
    ----------
    handle : int
        The driver's handle; 0 for the default stream.
    device : Device

    Examples
    --------
    >>> import tilearray as ta
    >>> from tilearray import cuda
    >>> if cuda.device_count():
    ...     with cuda.stream(cuda.Stream()):
    ...         x = ta.ones(3, device="cuda") + 1
    """

    __slots__ = ("__weakref__", "_backend", "_stream", "device", "handle")

    def __init__(self, device: Device | str | None = None) -> None:
        self._backend = _backend(device, "Stream")  # first: it says what is missing
        from tilearray_cuda.runtime.streams import Stream as DriverStream

        self._stream: object = DriverStream(self._backend)
        self.handle: int = self._stream.handle
        self.device = as_device(f"cuda:{self._backend.index}")

    @classmethod
    def _of(cls, handle: int, backend: CudaDevice, owner: object) -> Stream:
        new = object.__new__(cls)
        new._backend, new._stream, new.handle = backend, owner, handle
        new.device = as_device(f"cuda:{backend.index}")
        return new

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return the stream in the form of the CUDA stream protocol, for other libraries."""
        return 0, self.handle

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.handle, self.device) == (other.handle, other.device)

    def __hash__(self) -> int:
        return hash((self.handle, self.device))

    def __repr__(self) -> str:
        return f"<Stream {self.handle:#x} of {self.device}>"

    def synchronize(self) -> None:
        """Wait for all work launched on the stream."""
        from tilearray_cuda.runtime import streams

        streams.synchronize(self._backend, self.handle)

    def is_done(self) -> bool:
        """Return whether all work launched on the stream is done; does not wait."""
        from tilearray_cuda.runtime import streams

        return streams.is_done(self._backend, self.handle)

    def record(self, event: Event | None = None) -> Event:
        """Record an event, a new one by default, after all work launched so far; return the event."""
        event = Event(device=self.device) if event is None else _event("record", event)
        event._event.record(self.handle)
        return event

    def wait(self, other: Event | Stream) -> None:
        """Make later work wait for an event, or for all work launched on another stream so far."""
        event = other.record() if isinstance(other, Stream) else _event("wait", other)
        event._event.hold_back(self.handle)


class Event:
    """A point in the work of a stream, recorded by `Stream.record`.

    Parameters
    ----------
    timing : bool
        Whether the event records its time, for `milliseconds_since`.
    device : Device or str, optional
        The event's device; the default device if omitted.

    Examples
    --------
    >>> from tilearray import cuda
    >>> if cuda.device_count():
    ...     start, end = cuda.Event(timing=True), cuda.Event(timing=True)
    ...     _ = cuda.current_stream().record(start), cuda.current_stream().record(end)
    ...     end.synchronize()
    ...     assert end.milliseconds_since(start) >= 0
    """

    __slots__ = ("_event", "timing")

    def __init__(self, *, timing: bool = False, device: Device | str | None = None) -> None:
        backend = _backend(device, "Event")  # first: it says what is missing
        from tilearray_cuda.runtime.streams import Event as DriverEvent

        self._event = DriverEvent(backend, timing)
        self.timing = timing

    def synchronize(self) -> None:
        """Wait for the event."""
        self._event.synchronize()

    def is_done(self) -> bool:
        """Return whether the event has passed; does not wait."""
        return self._event.passed()

    def milliseconds_since(self, start: Event) -> float:
        """Return the time from another event to this one, in milliseconds. Both must have passed."""
        if not (self.timing and _event("milliseconds_since", start).timing):
            raise OperandError("milliseconds_since: expected events with times; write ta.cuda.Event(timing=True)")
        return self._event.milliseconds_since(start._event)


def _event(function: str, value: object) -> Event:
    """Return an event, or raise an error that says how to get one."""
    if not isinstance(value, Event):
        raise OperandError(
            f"{function}: expected an event of ta.cuda, got {shown(value)} of type {type(value).__name__}; write "
            f"ta.cuda.current_stream().record(), which returns one"
        )
    return value


A = TypeVar("A", bound=ArrayBase)


class stream(Block):  # noqa: N801 - called like a function
    """Run the work of a ``with`` block on a stream.

    Parameters
    ----------
    s : Stream, object with ``__cuda_stream__``, torch or CuPy stream, int or None
        A stream, the driver's handle of a stream, or None for the default stream. Blocks nest, also with blocks of
        `semantics`. A block applies to its own thread only. A stream object is kept alive while memory belongs to it,
        until `empty_cache`. If you pass a handle, you must keep its owner alive.

    Raises
    ------
    OperandError
        If `s` is not a stream, or is the per-thread default stream, which is a different stream in each thread.

    Examples
    --------
    >>> from tilearray import cuda
    >>> with cuda.stream(None):
    ...     cuda.stream(0)
    <stream block 0x0>
    """

    __slots__ = ("__weakref__", "_handle", "_owner")
    _field = "stream"

    def __init__(self, s: object, /) -> None:
        self._handle, self._owner = retained(s, "stream")

    def _value(self) -> int:
        return self._handle

    def __repr__(self) -> str:
        return f"<stream block {self._handle:#x}>"


class graph:  # noqa: N801 - called like a function
    """Capture the operations of a ``with`` block as a CUDA graph, which `replay` runs again in one launch.

    Nothing runs in the block: it records launches, with the addresses of their arrays. New arrays belong to the graph,
    and each replay writes them again; they keep the graph alive. You must keep the block's other arrays alive.

    Parameters
    ----------
    device : Device or str, optional
        The GPU; the default device if omitted.

    Attributes
    ----------
    stream : Stream
        The graph's own stream, on which its work runs.

    Raises
    ------
    CaptureError
        Within the block, for copies between host and device (``to_numpy``, ``item``, ``print``, ``bool``), and for
        work on the default stream, of torch for example.

    Notes
    -----
    A call that checks index arrays waits for them, which a capture cannot: write ``ta.set_index_check("deferred")``
    before. An error within the block leaves the graph as it was. One thread at a time may use a graph.

    Examples
    --------
    >>> import tilearray as ta
    >>> from tilearray import cuda
    >>> if cuda.device_count():
    ...     x = ta.ones(3, device="cuda")
    ...     with cuda.graph() as g:
    ...         y = x * 2 + 1
    ...     g.replay()
    ...     assert y.tolist() == [3, 3, 3]
    ...     x += 1
    ...     g.replay()
    ...     assert y.tolist() == [5, 5, 5]
    """

    def __init__(self, device: Device | str | None = None) -> None:
        self._backend = _backend(device, "graph")  # first: it says what is missing
        from tilearray_cuda.runtime.graphs import Graph

        self._graph = Graph(self._backend)
        self.stream = Stream._of(self._graph.stream.handle, self._backend, self._graph.stream)
        self._block: stream | None = None

    def __enter__(self) -> graph:
        if self._block is not None:
            raise OperandError("graph: its block is active already; write ta.cuda.graph() for another one")
        self._graph.begin()
        self._block = stream(self.stream)
        self._block.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, at: object) -> None:
        block, self._block = self._block, None
        assert block is not None
        block.__exit__(None, None, None)
        self._graph.end(kind is None)

    def __repr__(self) -> str:
        return f"<graph of {self.stream.device}>"

    def replay(self) -> None:
        """Run the captured work after all work of the current stream; later work of that stream waits for it."""
        self._graph.launch(STATE.get().stream)

    def update(self) -> graph:
        """Return the graph, for a second block with the same operations on other arrays: later replays run on those.

        The block writes into existing arrays, with ``out=`` or in place: memory of a graph cannot be replaced.

        Examples
        --------
        >>> import tilearray as ta
        >>> from tilearray import cuda
        >>> if cuda.device_count():
        ...     x, y = ta.ones(3, device="cuda"), ta.zeros(3, device="cuda")
        ...     with cuda.graph() as g:
        ...         x += 1
        ...     with g.update():
        ...         y += 1
        ...     g.replay()
        ...     assert (x.tolist(), y.tolist()) == ([1, 1, 1], [1, 1, 1])
        """
        return self


def handle_of(s: object, function: str) -> int:
    """Return the driver's handle of a stream of any library."""
    if s is None:
        return LEGACY_STREAM
    handle: object
    protocol: Any = getattr(s, "__cuda_stream__", None)
    if protocol is not None:
        described: Any = protocol() if callable(protocol) else protocol
        handle = described[1]
    elif isinstance(s, int):
        handle = s
    else:
        handle = getattr(s, "cuda_stream", getattr(s, "ptr", None))  # torch's and CuPy's streams
    if not isinstance(handle, int) or isinstance(handle, bool) or handle < 0:
        raise OperandError(
            f"{function}: expected a stream, got {shown(s)} of type {type(s).__name__}; write ta.cuda.Stream(), "
            f"torch.cuda.current_stream(), an object with __cuda_stream__, or the handle of a stream"
        )
    if handle == PER_THREAD_STREAM:
        raise OperandError(
            f"{function}: expected one stream, got the per-thread default stream, which is a different stream in each "
            f"thread, so memory cannot belong to it; write ta.cuda.Stream()"
        )
    return LEGACY_STREAM if handle == LEGACY_ALIAS else int(handle)


class _Owner:
    """Keeps a stream alive. Weak references lead to it and not to the stream, because they break torch's streams."""

    __slots__ = ("__weakref__", "stream")

    def __init__(self, stream: object) -> None:
        self.stream = stream


def retained(s: object, function: str) -> tuple[int, object]:
    """Return the driver's handle of a stream, and its owner.

    The caller keeps the owner alive while it uses the stream; after that, memory that is cached for the stream does.
    """
    handle, owner = handle_of(s, function), _Owner(s)
    if handle and not isinstance(s, int):
        default = _backend(None, function)  # initializes the driver
        from tilearray_cuda.runtime.streams import device_of

        index = device_of(handle)
        backend = default if index == default.index else _backend(f"cuda:{index}", function)
        backend.memory.retain(handle, owner)
    return handle, owner


def current_stream() -> Stream:
    """Return the stream of the innermost ``with ta.cuda.stream(s):`` block, or the default stream outside of blocks.

    Examples
    --------
    >>> from tilearray import cuda
    >>> if cuda.device_count():
    ...     assert cuda.current_stream().handle == 0
    """
    handle: int = STATE.get().stream
    device = None
    if handle:
        from tilearray_cuda.runtime.streams import device_of

        device = f"cuda:{device_of(handle)}"
    return Stream._of(handle, _backend(device, "current_stream"), None)


def synchronize(device: Device | str | None = None, /) -> None:
    """Wait for all work on a GPU, or on all GPUs in use. Raise the errors of earlier kernels.

    Examples
    --------
    >>> from tilearray import cuda
    >>> if cuda.device_count():
    ...     cuda.synchronize("cuda:0")
    """
    for backend in _chosen(device, "synchronize"):
        backend.synchronize()


def empty_cache(device: Device | str | None = None, /) -> None:
    """Free the memory that is cached for new arrays, on a GPU or on all GPUs in use. Wait for their work first.

    Examples
    --------
    >>> from tilearray import cuda
    >>> if cuda.device_count():
    ...     cuda.empty_cache()
    """
    for backend in _chosen(device, "empty_cache"):
        backend.empty_cache()


def _chosen(device: Device | str | None, function: str) -> list[CudaDevice]:
    if device is not None:
        return [_backend(device, function)]
    default = _backend(None, function)  # raises if there is no GPU
    from tilearray_cuda.device import opened

    return opened() or [default]


def memory_statistics(device: Device | str | None = None, /) -> Statistics:
    """Return the memory in use on a GPU, in bytes.

    Returns
    -------
    named tuple
        ``live`` in arrays, ``cached`` for new arrays, ``held`` (both), ``peak`` (the largest ``held``), ``device_free``
        and ``device_total`` from the driver, the number of ``allocations``, and of ``retries`` after out-of-memory, and
        the ``limit`` of `set_memory_limit`.

    Examples
    --------
    >>> from tilearray import cuda
    >>> if cuda.device_count():
    ...     statistics = cuda.memory_statistics("cuda:0")
    ...     assert statistics.held == statistics.live + statistics.cached
    """
    return _backend(device, "memory_statistics").statistics()


def peer_access(device: Device | str, other: Device | str, /) -> bool:
    """Return whether two GPUs read each other's memory directly, over NVLink or PCIe.

    If they do not, `to_device` between them copies through memory of the host, which is slower;
    `transfer_statistics` counts such bytes as ``through_host``.

    Examples
    --------
    >>> from tilearray import cuda
    >>> if cuda.device_count() > 1:
    ...     assert cuda.peer_access("cuda:0", "cuda:1") in (True, False)
    """
    first, second = _backend(device, "peer_access"), _backend(other, "peer_access")
    from tilearray_cuda.runtime import peers

    return peers.connect(first, second)


def transfer_statistics(device: Device | str | None = None, /) -> TransferStatistics:
    """Return the bytes that copies moved to and from a GPU, since the start of the process.

    Returns
    -------
    named tuple
        ``to_host`` and ``from_host``: copies between the GPU and the host; ``from_peers``: copies from other GPUs by
        peer access; ``through_host``: copies from other GPUs that went through the host, because `peer_access` is
        False.

    Examples
    --------
    >>> import tilearray as ta
    >>> from tilearray import cuda
    >>> if cuda.device_count():
    ...     before = cuda.transfer_statistics("cuda:0").to_host
    ...     _ = ta.to_numpy(ta.ones(10, dtype="float32", device="cuda:0"))
    ...     assert cuda.transfer_statistics("cuda:0").to_host == before + 40
    """
    return _backend(device, "transfer_statistics").transfers.statistics()


def pinned_like(x: A, /) -> A:
    """Return an uninitialised array of the host in pinned memory, with the shape and dtype of an array.

    `copy_async` copies such memory without a wait. Memory of deleted arrays is kept for new ones until `empty_cache`.

    Parameters
    ----------
    x : Array
        An array on any device.

    Returns
    -------
    Array
        On the device ``cpu``, in C order.

    Examples
    --------
    >>> import tilearray as ta
    >>> from tilearray import cuda
    >>> if cuda.device_count():
    ...     host = cuda.pinned_like(ta.zeros((2, 3), device="cuda"))
    ...     host[...] = 5
    """
    check_array("pinned_like", x)
    backend = _backend(x.device if x.device.type == "cuda" else None, "pinned_like")
    memory = backend.pinned.empty(x.nbytes)
    return from_host(np.ndarray(x.shape, x.dtype, memory), type(x))


def copy_async(x: ArrayBase, /, out: ArrayBase) -> Event:
    """Copy an array between a GPU and pinned memory of the host, behind the work of the current stream; do not wait.

    Use `out` on the host, or change `x` on the host, only after the event: ``event.synchronize()``. On a GPU the order
    of the work is kept as always.

    Parameters
    ----------
    x : Array
        On a GPU, or on the host in pinned memory: of `pinned_like`, or pinned by another library.
    out : Array
        On the host in pinned memory, or on a GPU, with the same shape and dtype. Both are in C order.

    Returns
    -------
    Event
        It passes when the copy is done.

    Raises
    ------
    DeviceError
        If not exactly one of the arrays is on the host.
    LayoutError
        If one of them is not in C order without gaps, or its memory is not pinned.
    ShapeError, DTypeError
        If their shapes or dtypes differ.
    WriteError
        If `out` is read-only.

    Examples
    --------
    >>> import tilearray as ta
    >>> from tilearray import cuda
    >>> if cuda.device_count():
    ...     x = ta.arange(4, device="cuda")
    ...     host = cuda.pinned_like(x)
    ...     event = cuda.copy_async(x * 2, host)
    ...     event.synchronize()
    ...     assert host.tolist() == [0, 2, 4, 6]
    """
    check_array("copy_async", x)
    check_target("copy_async", out)
    if {x.device.type, out.device.type} != {"cpu", "cuda"} or x._recorded or out._recorded:
        raise DeviceError(
            f"copy_async: expected one array on a GPU and one on the host, got {x.device} and {out.device}; write "
            f"out[...] = x, or ta.cuda.pinned_like(x) for an array on the host"
        )
    if x.shape != out.shape:
        raise ShapeError(f"copy_async: expected out of shape {x.shape}, got {out.shape}; write ta.cuda.pinned_like(x)")
    if x.dtype != out.dtype:
        raise DTypeError(f"copy_async: expected out of dtype {x.dtype}, got {out.dtype}; write x.astype({out.dtype!r})")
    for each in (x, out):
        if not each._signature.layout.contiguous:
            raise LayoutError(
                f"copy_async: expected arrays in C order without gaps, got strides {each.strides} for shape "
                f"{each.shape}; write x.copy(), or copy into a part that is contiguous"
            )
    host, there = (x, out) if x.device.type == "cpu" else (out, x)
    backend, stream = _backend(there.device, "copy_async"), STATE.get().stream
    buffer: Any = host._buffer
    device_buffer: Any = there._buffer
    memory = buffer.memory.view(np.uint8)[host._offset : host._offset + host.nbytes]
    try:
        backend.copy_async(device_buffer, there._offset, memory, there is out, stream)
    except ValueError as error:
        raise LayoutError(
            f"copy_async: {error}; write ta.cuda.pinned_like(x) for an array to copy to or from"
        ) from None
    event = Event(device=there.device)
    event._event.record(stream)
    return event


def set_memory_limit(nbytes: int | None, /, device: Device | str | None = None) -> None:
    """Limit the memory that arrays and the cache hold on a GPU; None for no limit.

    An allocation above the limit first frees the cache, and then raises `OutOfMemoryError`. A lower limit than the live
    arrays have is allowed: they keep their memory. Blocks are a little larger than arrays, see `memory_statistics`.
    Memory of CUDA graphs, of other libraries and of kernels does not count.

    Parameters
    ----------
    nbytes : int or None
    device : Device or str, optional
        The GPU; the default device if omitted.

    Raises
    ------
    OperandError
        If `nbytes` is not a number of bytes.

    Examples
    --------
    >>> import tilearray as ta
    >>> from tilearray import cuda
    >>> if cuda.device_count():
    ...     cuda.set_memory_limit(cuda.memory_statistics().live + 2**20)
    ...     try:
    ...         ta.zeros(2**24, device="cuda")
    ...     except MemoryError:
    ...         print("too large")
    ...     cuda.set_memory_limit(None)
    ... else:
    ...     print("too large")
    too large
    """
    given: Any = nbytes
    if given is not None and (not isinstance(given, int) or isinstance(given, bool) or given < 0):
        raise OperandError(
            f"set_memory_limit: expected a number of bytes or None, got {shown(nbytes)} of type "
            f"{type(nbytes).__name__}; write 8 * 2**30 for 8 GiB"
        )
    _backend(device, "set_memory_limit").memory.set_limit(nbytes)


class memory_hook:  # noqa: N801 - called like a function
    """Call a function for each piece of device memory that is taken or freed in a ``with`` block, by any thread.

    Parameters
    ----------
    function : callable
        ``function(event)``; `event` is a named tuple of ``kind``, ``nbytes``, ``pointer``, ``stream`` and ``device``.
        The kind is "take" when an array takes memory, "obtain" and "release" when a block comes from the driver or
        another allocator and goes back, "refuse" when there is too little memory. What the function allocates itself is
        not reported; an error that it raises ends the call that needed memory.

    Notes
    -----
    Memory of deleted arrays goes to the cache without a call. Allocations are slower in the block.

    Examples
    --------
    >>> import tilearray as ta
    >>> from tilearray import cuda
    >>> taken = []
    >>> if cuda.device_count():
    ...     with cuda.memory_hook(lambda event: taken.append(event) if event.kind == "take" else None):
    ...         x = ta.zeros(1000, dtype="float32", device="cuda")
    ...     assert sum(event.nbytes for event in taken) == 4000
    """

    def __init__(self, function: Callable[[MemoryEvent], object], /) -> None:
        if not callable(function):
            raise OperandError(
                f"memory_hook: expected a function of one event, got {shown(function)} of type "
                f"{type(function).__name__}; write memory_hook(print)"
            )
        self._function = function

    def __enter__(self) -> None:
        _backend(None, "memory_hook")  # raises if there is no GPU
        from tilearray_cuda import device

        device.add_hook(self._function)

    def __exit__(self, kind: type[BaseException] | None, error: object, at: object) -> None:
        from tilearray_cuda import device

        device.remove_hook(self._function)


def set_allocator(allocator: Any, release: Callable[[int, int, int], object] | None = None, /) -> None:
    """Take device memory from another library's allocator, on all GPUs.

    Parameters
    ----------
    allocator : callable, object, module or None
        ``allocate(nbytes, stream) -> pointer``, together with `release`; an object with methods ``allocate`` and
        ``release`` or ``deallocate``; RMM's memory resource; CuPy's memory pool; the module ``torch``; or None for the
        driver's pool. `stream` is the handle of a stream, an int.
    release : callable, optional
        ``release(pointer, nbytes, stream)``: free memory after the work launched on the stream so far.

    Raises
    ------
    OperandError
        If `allocator` is not one of these.

    Notes
    -----
    Existing arrays keep their memory, which goes back to its own allocator. A free block is kept for an array of its
    size until the next allocation or `empty_cache`.

    Examples
    --------
    >>> from tilearray import cuda
    >>> if cuda.device_count():
    ...     cuda.set_allocator(None)
    """
    _backend(None, "set_allocator")
    from tilearray_cuda import device

    try:
        device.set_allocator(allocator if release is None else (allocator, release))
    except TypeError as error:
        raise OperandError(str(error)) from error


_INSTEAD = {
    "is_available": "write ta.cuda.device_count() > 0",
    "set_device": "write ta.set_default_device('cuda:1')",
    "current_device": "write ta.default_device()",
    "memory_allocated": "write ta.cuda.memory_statistics().live",
    "max_memory_allocated": "write ta.cuda.memory_statistics().peak",
    "memory_reserved": "write ta.cuda.memory_statistics().held",
    "mem_get_info": "write ta.cuda.memory_statistics()",
    "manual_seed": "write ta.random.default_rng(seed)",
    "CUDAGraph": "write ta.cuda.graph()",
    "get_current_stream": "write ta.cuda.current_stream()",
    "ExternalStream": "write with ta.cuda.stream(handle):",
    "Device": "write ta.Device",
}
"""What to write for names of ``torch.cuda`` and ``cupy.cuda``."""

if not TYPE_CHECKING:  # a checker knows all names, and would let each misspelled one pass

    def __getattr__(name):
        """Say what to write for a name that is missing."""
        raise MissingNameError(name, __all__, "cuda", _INSTEAD.get(name, ""))


def __dir__() -> list[str]:
    return sorted(__all__)
