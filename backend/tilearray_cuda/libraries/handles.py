"""Handles of a CUDA library: one for each call that runs at the same time, with its stream and workspace set.

A handle may serve one thread at a time, so a call takes one from the stack of its stream and gives it back; as many are
made as calls ever ran at once. Its workspace is memory of our pool, ordered by the stream. In a call that is captured
into a CUDA graph, the workspace is memory of the graph, because replays may run beside later calls.

If more than `STREAMS_KEPT` streams have handles, those of the oldest stream serve others. A captured call takes an idle
handle of any stream, because a new one may not be made in a capture.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from sys import modules
from typing import Any, NoReturn

from tilearray_cuda.errors import CudaError
from tilearray_cuda.libraries.bindings import failure
from tilearray_cuda.locks import Lock
from tilearray_cuda.runtime.driver import (
    TORCH,
    AnyCapture,
    Current,
    after_fork,
    api,
    check_capture,
    check_fork,
    is_capturing,
)

STREAMS_KEPT = 16
_HANDLE = "the handle of a library"
"""What errors name instead of the functions that prepare a handle."""


class Handle:
    """A handle of a library.

    Attributes
    ----------
    number : int
        The library's own handle.
    workspace : Buffer or None
        The memory that the library may use.
    """

    __slots__ = ("number", "workspace")

    def __init__(self, number: int) -> None:
        self.number = number
        self.workspace: Any = None


class Handles:
    """The handles of one library on one device.

    Parameters
    ----------
    device : CudaDevice
    create : callable
        ``create()`` makes a handle in the current context.
    set_stream : callable
        ``set_stream(handle, stream)``
    set_workspace : callable, optional
        ``set_workspace(handle, address, nbytes)``, for a library whose handles have workspaces.
    nbytes : int
        The bytes of a workspace.
    """

    def __init__(
        self,
        device: Any,
        create: Callable[[], int],
        set_stream: Callable[[int, int], Any],
        set_workspace: Callable[[int, int, int], Any] | None = None,
        nbytes: int = 0,
    ) -> None:
        self._device = device
        self._create = create
        self._set_stream = set_stream
        self._set_workspace = set_workspace
        self._nbytes = nbytes
        self._context = int(device.context)
        self._idle: defaultdict[int, list[Handle]] = defaultdict(list)
        self._spare: list[Handle] = []
        self._lock = Lock()
        after_fork.append(self._forget)

    def run(self, stream: int, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call ``function(handle, *arguments)`` in the device's context, with a handle for a stream.

        Raises
        ------
        CudaError
            If the library reports an error.
        """
        if not stream:
            if "torch" in modules and TORCH.may_capture(self._device.index):
                check_capture(stream)
        elif is_capturing(stream):
            return self._run_captured(stream, function, arguments)
        _, context = api.cuCtxGetCurrent()
        if context is None or int(context) != self._context:  # None: in a forked child, where `Current` says so
            with Current(self._device.context):
                return self._run(stream, function, arguments)
        return self._run(stream, function, arguments)

    def _run(self, stream: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        try:
            handle = self._idle[stream].pop()
        except IndexError:
            handle = self._handle(stream)
        try:  # not `_called`, which would add 50 ns to each call
            return function(handle.number, *arguments)
        except Exception as error:
            _raise_ours(error, function)
        finally:
            self._idle[stream].append(handle)

    def _run_captured(self, stream: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        with Current(self._device.context), AnyCapture():
            handle = self._handle(stream, captured=True)
            try:
                return _called(function, handle.number, *arguments)
            finally:
                handle.workspace = None  # it belongs to the graph
                self._spare.append(handle)

    def _handle(self, stream: int, captured: bool = False) -> Handle:
        """Return a handle with a stream and a workspace: one that is not in use, or a new one.

        Its earlier workspace, of another stream, returns to that stream's memory.
        """
        check_fork(_HANDLE)
        handle = self._unused(captured) or Handle(_called(self._create, name=_HANDLE))
        try:
            _called(self._set_stream, handle.number, stream, name=_HANDLE)
            if self._set_workspace is not None:
                handle.workspace = self._device.allocate(self._nbytes, stream)
                _called(self._set_workspace, handle.number, handle.workspace.pointer, self._nbytes, name=_HANDLE)
        except BaseException:
            self._spare.append(handle)
            raise
        return handle

    def _unused(self, captured: bool) -> Handle | None:
        """Return a handle that is not in use, which no stream has any more; None if there is none.

        Calls of other threads take and return handles meanwhile.
        """
        with self._lock:
            if self._spare:
                return self._spare.pop()
            if captured:
                return next(filter(None, map(_popped, list(self._idle.values()))), None)
            while not self._spare and len(self._idle) > STREAMS_KEPT:
                oldest, *_ = self._idle  # at once: other threads add streams
                idle = self._idle.pop(oldest)
                self._spare.extend(iter(partial(_popped, idle), None))
            return _popped(self._spare)

    def _forget(self) -> None:
        """Forget all handles in a forked child, so that the next call says that it cannot use CUDA."""
        self._lock = Lock()
        self._idle.clear()
        self._spare.clear()


def _popped(handles: list[Handle]) -> Handle | None:
    """Remove and return the last handle; None if there is none, as another thread may have taken it."""
    try:
        return handles.pop()
    except IndexError:
        return None


def _called(function: Callable[..., Any], *arguments: Any, name: str = "") -> Any:
    """Call a function of a library; its errors have the name of the function, or the given one."""
    try:
        return function(*arguments)
    except Exception as error:
        _raise_ours(error, function, name)


def _raise_ours(error: Exception, function: Any, name: str = "") -> NoReturn:
    """Raise an error of a library as one of ours."""
    if isinstance(error, CudaError):
        raise error
    raise failure(name or getattr(function, "__name__", "the library"), error) from error
