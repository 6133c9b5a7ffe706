"""The one choke point of cuda-python: every driver call goes through `call`, every failure through `failure`.

A driver function returns its status first. `call` turns a status other than success into a `CudaError` that has the
call, the error's name, its meaning and, where we know, what to do. The launch is the only call made directly, for its
few hundred nanoseconds, and comes here when it fails.

A forked child inherits the parent's handles but not its driver: its calls fail, or worse. The first one raises
`ForkedError` instead, because whatever fails asks `check_fork` first.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from tilearray_cuda.errors import CaptureError, CudaError, ForkedError, NoDeviceError, NoDriverError, OutOfMemoryError

api: Any = importlib.import_module("cuda.bindings.driver")
"""cuda-python's driver functions and types; the modules that prepare calls take them from here."""

SUCCESS = api.CUresult.CUDA_SUCCESS
NOT_READY = api.CUresult.CUDA_ERROR_NOT_READY
OUT_OF_MEMORY = api.CUresult.CUDA_ERROR_OUT_OF_MEMORY
WRONG_CONTEXT = frozenset({api.CUresult.CUDA_ERROR_INVALID_CONTEXT, api.CUresult.CUDA_ERROR_INVALID_HANDLE})
"""What a call returns when the thread's current context is not that of its arguments."""

LEGACY_STREAM = 0

_LOST = (
    "an earlier kernel or copy failed, and the context is lost: restart the process, and look for the first error with "
    "CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer"
)
ADVICE = {
    "CUDA_ERROR_INVALID_HANDLE": "a stream or event of another device, or one that was destroyed, may be in use",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED": "something reset the GPU, such as cudaDeviceReset: restart the process",
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
    "CUDA_ERROR_STUB_LIBRARY": "libcuda.so.1 is the toolkit's stub: take it off LD_LIBRARY_PATH",
}

_initialised = False
_forked = False
_lock = threading.Lock()
after_fork: list[Callable[[], None]] = []
"""What else is to be done in a forked child, so that nothing is served there without asking the driver."""


def call(function: Callable[..., tuple[Any, ...]], *arguments: Any) -> Any:
    """Call a driver function; return what it returns after the status: None, the value, or a tuple of values."""
    result = function(*arguments)
    if result[0] is not SUCCESS:
        raise failure(function.__name__, result[0])
    if len(result) == 2:
        return result[1]
    return result[1:] or None


def failure(function: str, status: Any) -> CudaError:
    """Return the error that a status stands for; a forked child's is about the fork."""
    if _forked:
        return _fork_error(function)
    name, meaning = _describe(status)
    advice = ADVICE.get(name, "")
    kind = OutOfMemoryError if status == OUT_OF_MEMORY else CudaError
    return kind(f"{function}: {name}: {meaning}" + (f"; {advice}" if advice else ""), function, name)


def status_of(code: int) -> Any:
    """Return the status that a function of the driver itself returned; the number, where the bindings know none."""
    try:
        return api.CUresult(code)
    except ValueError:
        return code


def _describe(status: Any) -> tuple[str, str]:
    """The driver's name and meaning of a status."""
    fallback = getattr(status, "name", f"CUDA_ERROR {status}")
    try:
        _, name = api.cuGetErrorName(status)
        _, meaning = api.cuGetErrorString(status)
    except Exception:
        return fallback, "the driver has no description"
    return (name.decode() if name else fallback), (meaning.decode() if meaning else "the driver has no description")


def _fork_error(function: str) -> ForkedError:
    return ForkedError(
        f"{function}: CUDA was in use when this process was forked, and a forked child cannot use it; start the child "
        f"with multiprocessing.get_context('spawn'), or use CUDA only after the fork",
        function,
    )


def check_fork(function: str) -> None:
    """Raise in a process that was forked after CUDA was used."""
    if _forked:
        raise _fork_error(function)


def _in_child() -> None:
    global _forked, _lock
    _lock = threading.Lock()
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
        If it does not work, or there is no GPU at all.
    """
    global _initialised
    check_fork("cuInit")
    if _initialised:
        return
    with _lock:
        try:
            status = api.cuInit(0)[0]
        except Exception as error:  # cuda-bindings, when it does not find or cannot load the library
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
    """Return the number of GPUs; raises where there is no working driver."""
    initialise()
    return int(call(api.cuDeviceGetCount))


class Current:
    """Make a context current within a ``with`` block.

    A thread that has no context keeps ours; one that has another library's gets it back. Used around every call that
    depends on the current context, as those on the legacy stream do, except the launch, which tries first.
    """

    __slots__ = ("_context", "_pushed")

    def __init__(self, context: Any) -> None:
        self._context = context
        self._pushed = False

    def __enter__(self) -> None:
        found = int(call(api.cuCtxGetCurrent))
        if not found:
            call(api.cuCtxSetCurrent, self._context)
        elif found != int(self._context):
            call(api.cuCtxPushCurrent, self._context)
            self._pushed = True

    def __exit__(self, kind: object, error: object, at: object) -> None:
        if self._pushed:
            call(api.cuCtxPopCurrent)


class AnyCapture:
    """Allow calls that allocate, but launch nothing, within a ``with`` block while the thread captures a CUDA graph."""

    __slots__ = ("_mode",)

    def __enter__(self) -> None:
        relaxed = api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._mode = call(api.cuThreadExchangeStreamCaptureMode, relaxed)

    def __exit__(self, kind: object, error: object, at: object) -> None:
        call(api.cuThreadExchangeStreamCaptureMode, self._mode)


class _Streams(dict[int, Any]):
    """Stream handles as cuda-bindings takes them fastest: objects, made once; None for the legacy stream."""

    def __missing__(self, handle: int) -> Any:
        stream = self[handle] = api.CUstream(handle)
        return stream


STREAMS = _Streams({LEGACY_STREAM: None})
_NO_CAPTURE = api.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE


def is_capturing(stream: int) -> bool:
    """Whether work on a stream is being captured into a CUDA graph; the legacy stream never is."""
    if not stream:
        return False
    status, mode = api.cuStreamIsCapturing(STREAMS[stream])
    if status is not SUCCESS:
        raise failure("cuStreamIsCapturing", status)
    return mode is not _NO_CAPTURE


_CUDA_12 = 12000


@functools.cache
def c_function(name: str, *types: Any) -> Callable[..., int]:
    """Return a function of the driver itself, as CUDA 12.0 has it, where the bindings' own is at fault or slow."""
    address = call(api.cuGetProcAddress, name.encode(), _CUDA_12, 0)[0]
    return ctypes.CFUNCTYPE(ctypes.c_int, *types)(int(address))


class _Torch:
    """What is asked of torch before every launch on the default stream, where torch is in use.

    Once torch has initialised CUDA, its own functions are asked, without the Python around them.

    Attributes
    ----------
    captures : callable
        ``captures()``: whether torch is capturing its current stream of this thread into a CUDA graph.
    may_capture : callable
        ``may_capture(device index)``: the same in a fifth of the time, but true of every stream that is not the default
        one, which cannot be captured.
    """

    __slots__ = ("captures", "may_capture")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Look at torch anew."""
        self.captures: Callable[[], bool] = lambda: self._look() and self.captures()
        self.may_capture: Callable[[int], object] = lambda index: self._look() and self.may_capture(index)

    def _look(self) -> bool:
        """Whether torch may capture at all; it is asked directly from then on."""
        torch: Any = sys.modules.get("torch")  # only looked at; another thread may be importing it
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
    """Whether torch, where it is in use, is capturing its current stream of this thread into a CUDA graph."""
    return TORCH.captures()


def check_capture(stream: int) -> None:
    """Raise where work on the default stream would escape from a capture of torch's, or spoil it."""
    if not stream and torch_captures():
        raise CaptureError(
            "torch is capturing a CUDA graph, and this would run on the default stream, outside of it; write "
            "with ta.cuda.stream(torch.cuda.current_stream()): around it"
        )
