"""The one choke point of cuda-python: every driver call goes through `call`, every failure through `failure`.

A driver function returns its status first. `call` turns each status except success into a `CudaError` that states the
call, the error's name, its meaning and, if known, the remedy. Only the launch is called directly, because `call` would
add to its few hundred nanoseconds. A launch that fails comes here.

A forked child inherits the parent's handles but not its driver, so its calls fail or do harm. Every road to the driver
calls `check_fork` first, which raises `ForkedError`.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from tilearray_cuda.errors import CaptureError, CudaError, ForkedError, NoDeviceError, NoDriverError, OutOfMemoryError
from tilearray_cuda.locks import Lock

api: Any = importlib.import_module("cuda.bindings.driver")
"""cuda-python's driver functions and types. Modules that prepare calls take them from here."""

SUCCESS = api.CUresult.CUDA_SUCCESS
NOT_READY = api.CUresult.CUDA_ERROR_NOT_READY
OUT_OF_MEMORY = api.CUresult.CUDA_ERROR_OUT_OF_MEMORY
WRONG_CONTEXT = frozenset({api.CUresult.CUDA_ERROR_INVALID_CONTEXT, api.CUresult.CUDA_ERROR_INVALID_HANDLE})
"""The statuses of a call whose arguments belong to another context than the thread's current one."""

# The special handles of streams; `tilearray.engine.streams` has the same table for the library.
LEGACY_STREAM = 0
"""The legacy default stream, as the driver takes it and as buffers hold it."""
LEGACY_ALIAS = 1
"""The same stream, as the exchange protocols name it."""
PER_THREAD_STREAM = 2
"""The per-thread default stream, a different stream in each thread."""
NO_WAIT = -1
"""Not a stream: the consumer of an exchange protocol asks for no wait."""

_LOST = (
    "an earlier kernel or copy failed, and the context is lost: restart the process, and find the first error with "
    "CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer"
)
ADVICE = {
    "CUDA_ERROR_INVALID_HANDLE": "the stream or event may belong to another device, or may be destroyed",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED": "a call such as cudaDeviceReset reset the GPU: restart the process",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "the kernel is for another architecture: write tilearray cache clear",
    "CUDA_ERROR_INVALID_IMAGE": "the cached kernel is damaged: write tilearray cache clear",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "the driver is older than the compiler: update the driver",
    "CUDA_ERROR_ILLEGAL_ADDRESS": _LOST,
    "CUDA_ERROR_MISALIGNED_ADDRESS": _LOST,
    "CUDA_ERROR_LAUNCH_FAILED": _LOST,
    "CUDA_ERROR_LAUNCH_TIMEOUT": _LOST,
    "CUDA_ERROR_HARDWARE_STACK_ERROR": _LOST,
    "CUDA_ERROR_ECC_UNCORRECTABLE": _LOST,
    "CUDA_ERROR_STREAM_CAPTURE_ISOLATION": "a captured stream would depend on work outside of its graph",
    "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT": (
        "the default stream was used during a capture; write with ta.cuda.stream(s) for the captured stream s"
    ),
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": "the call cannot be captured; make it before the capture starts",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "the driver was updated while it was loaded: restart the machine",
    "CUDA_ERROR_STUB_LIBRARY": "libcuda.so.1 is the toolkit's stub: remove it from LD_LIBRARY_PATH",
}

_initialised = False
_forked = False
_lock = Lock()
after_fork: list[Callable[[], None]] = []
"""Functions that run in a forked child. They empty caches, so that each operation there calls the driver and fails."""


def call(function: Callable[..., tuple[Any, ...]], *arguments: Any) -> Any:
    """Call a driver function; return its results without the status: None, the value, or a tuple of values."""
    result = function(*arguments)
    if result[0] is not SUCCESS:
        raise failure(function.__name__, result[0])
    if len(result) == 2:
        return result[1]
    return result[1:] or None


def failure(function: str, status: Any) -> CudaError:
    """Return the error for a status; in a forked child, the error about the fork."""
    if _forked:
        return _fork_error(function)
    name, meaning = _describe(status)
    advice = ADVICE.get(name, "")
    kind: type[CudaError] = OutOfMemoryError if status == OUT_OF_MEMORY else CudaError
    if name.startswith("CUDA_ERROR_STREAM_CAPTURE"):
        kind = CaptureError
    return kind(f"{function}: {name}: {meaning}" + (f"; {advice}" if advice else ""), function, name)


def status_of(code: int) -> Any:
    """Return the status for a number from the driver's own function; the number itself if the bindings lack it."""
    try:
        return api.CUresult(code)
    except ValueError:
        return code


def _describe(status: Any) -> tuple[str, str]:
    """Return the driver's name and meaning of a status."""
    fallback = getattr(status, "name", f"CUDA_ERROR {status}")
    try:
        _, name = api.cuGetErrorName(status)
        _, meaning = api.cuGetErrorString(status)
    except Exception:
        return fallback, "the driver does not describe it"
    return (name.decode() if name else fallback), (meaning.decode() if meaning else "the driver does not describe it")


def _fork_error(function: str) -> ForkedError:
    return ForkedError(
        f"{function}: CUDA was in use when this process was forked, and a forked child cannot use it; start the child "
        f"with multiprocessing.get_context('spawn'), or use CUDA only after the fork",
        function,
    )


def check_fork(function: str) -> None:
    """Raise ForkedError in a process that was forked after CUDA was in use."""
    if _forked:
        raise _fork_error(function)


def _in_child() -> None:
    global _forked, _lock
    _lock = Lock()
    if _initialised:
        _forked = True
        for function in after_fork:
            function()


os.register_at_fork(after_in_child=_in_child)


def initialise() -> None:
    """Load and initialise the driver, once.

    Raises
    ------
    NoDriverError, NoDeviceError
        If the driver does not work, or the machine has no GPU.
    """
    global _initialised
    check_fork("cuInit")
    if _initialised:
        return
    with _lock:
        try:
            status = api.cuInit(0)[0]
        except Exception as error:  # from cuda-bindings, if it cannot find or load the library
            raise NoDriverError(
                f"the NVIDIA driver cannot be loaded: {error}; install it, or write device='cpu'"
            ) from error
        if status is not SUCCESS:
            raise _unusable(status)
        _initialised = True


def _unusable(status: Any) -> CudaError:
    name, meaning = _describe(status)
    if name == "CUDA_ERROR_NO_DEVICE":
        return NoDeviceError(
            "the NVIDIA driver is installed but offers no GPU; see nvidia-smi and CUDA_VISIBLE_DEVICES, or write "
            "device='cpu'",
            "cuInit",
            name,
        )
    advice = ADVICE.get(name, "see nvidia-smi, or write device='cpu'")
    return NoDriverError(f"the NVIDIA driver does not work: cuInit: {name}: {meaning}; {advice}", "cuInit", name)


def device_count() -> int:
    """Return the number of GPUs; raise if the driver does not work."""
    initialise()
    return int(call(api.cuDeviceGetCount))


class Current:
    """Make a context current within a ``with`` block.

    A thread without a context keeps ours; a thread with another library's context gets it back. Every call that depends
    on the current context, such as a call on the legacy stream, needs this block. The launch does not: it tries first.
    """

    __slots__ = ("_context", "_pushed")

    def __init__(self, context: Any) -> None:
        self._context = context
        self._pushed = False

    def __enter__(self) -> None:
        status, found = api.cuCtxGetCurrent()  # not `call`, which would take as long as the question
        if status is not SUCCESS:
            raise failure("cuCtxGetCurrent", status)
        if found != self._context:
            self._pushed = int(found) != 0
            call(api.cuCtxPushCurrent if self._pushed else api.cuCtxSetCurrent, self._context)

    def __exit__(self, kind: object, error: object, at: object) -> None:
        if self._pushed:
            call(api.cuCtxPopCurrent)


class AnyCapture:
    """Allow calls that allocate but do not launch, within a ``with`` block, while the thread captures a CUDA graph."""

    __slots__ = ("_mode",)

    def __enter__(self) -> None:
        relaxed = api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._mode = call(api.cuThreadExchangeStreamCaptureMode, relaxed)

    def __exit__(self, kind: object, error: object, at: object) -> None:
        call(api.cuThreadExchangeStreamCaptureMode, self._mode)


class _Streams(dict[int, Any]):
    """Stream handles as objects, made once, which cuda-bindings takes fastest; None for the legacy stream."""

    def __missing__(self, handle: int) -> Any:
        stream = self[handle] = api.CUstream(handle)
        return stream


STREAMS = _Streams({LEGACY_STREAM: None})
_NO_CAPTURE = api.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE


def is_capturing(stream: int) -> bool:
    """Return whether a CUDA graph captures a stream; always False for the legacy stream."""
    if not stream:
        return False
    status, mode = api.cuStreamIsCapturing(STREAMS[stream])
    if status is not SUCCESS:
        raise failure("cuStreamIsCapturing", status)
    return mode is not _NO_CAPTURE


_CUDA_12 = 12000


@functools.cache
def c_function(name: str, *types: Any) -> Callable[..., int]:
    """Return the driver's own function, of CUDA 12.0, for use where the bindings' function is wrong or slow."""
    address = call(api.cuGetProcAddress, name.encode(), _CUDA_12, 0)[0]
    return ctypes.CFUNCTYPE(ctypes.c_int, *types)(int(address))


class _Torch:
    """Two questions to torch, if torch is in use, before every launch on the default stream.

    After torch has initialised CUDA, its C functions answer, without the Python code around them.

    Attributes
    ----------
    captures : callable
        ``captures()``: whether torch captures its current stream of this thread into a CUDA graph.
    may_capture : callable
        ``may_capture(device index)``: False if torch's current stream is the default stream, which cannot be captured.
        True for every other stream. It takes a fifth of the time.
    """

    __slots__ = ("captures", "may_capture")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Check again whether torch is in use."""
        self.captures: Callable[[], bool] = lambda: self._look() and self.captures()
        self.may_capture: Callable[[int], object] = lambda index: self._look() and self.may_capture(index)

    def _look(self) -> bool:
        """Return whether torch has initialised CUDA; if it has, its C functions answer from now on."""
        torch: Any = sys.modules.get("torch")  # not imported here; another thread may be importing it
        is_initialized = getattr(getattr(torch, "cuda", None), "is_initialized", None)
        if is_initialized is None or not is_initialized():
            return False
        native = getattr(torch, "_C", None)
        captures = getattr(native, "_cuda_isCurrentStreamCapturing", torch.cuda.is_current_stream_capturing)
        current_stream = getattr(native, "_cuda_getCurrentRawStream", None)
        if current_stream is None or torch.cuda.device_count() > 1:  # the current stream may be another device's
            self.may_capture = lambda index: captures()
        else:
            self.may_capture = current_stream
        self.captures = captures
        return True


TORCH = _Torch()


def torch_captures() -> bool:
    """Return whether torch, if it is in use, captures its current stream of this thread into a CUDA graph."""
    return "torch" in sys.modules and TORCH.captures()


def check_capture(stream: int) -> None:
    """Raise CaptureError if work on the default stream would escape torch's active capture, or break it."""
    if not stream and torch_captures():
        raise CaptureError(
            "torch is capturing a CUDA graph, and this would run on the default stream, outside of the graph; write "
            "with ta.cuda.stream(torch.cuda.current_stream()): around it"
        )
