"""Handles of a CUDA library: one for each call that runs at the same time, with its stream and workspace set.

A handle may serve one thread at a time, so a call takes one from the stack of its stream and gives it back; as many are
made as calls ever ran at once. Its workspace is memory of our pool, ordered by the stream. In a call that is captured
into a CUDA graph, the workspace is memory of the graph, because replays may run beside later calls.

If more than `STREAMS_KEPT` streams have handles, those of the oldest stream serve others. A captured call takes an idle
handle of any stream, because a new one may not be made in a capture.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import modules
from typing import Any

from tilearray_cuda.errors import CudaError
from tilearray_cuda.libraries.bindings import failure
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
        self._idle: dict[int, list[Handle]] = {}
        self._spare: list[Handle] = []
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
        if int(api.cuCtxGetCurrent()[1]) != self._context:
            with Current(self._device.context):
                return self._run(stream, function, arguments)
        return self._run(stream, function, arguments)

    def _run(self, stream: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        try:
            idle = self._idle[stream]
            handle = idle.pop()
        except LookupError:
            handle = self._handle(stream)
            self._give(handle, stream)
            idle = self._idle.setdefault(stream, [])
        try:
            return function(handle.number, *arguments)
        except CudaError:
            raise
        except Exception as error:
            raise failure(_name_of(function), error) from error
        finally:
            idle.append(handle)

    def _run_captured(self, stream: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        with Current(self._device.context), AnyCapture():
            if not self._spare:
                self._spare += [idle.pop() for idle in list(self._idle.values())[:1] if idle]
            handle = self._handle(stream)
            self._give(handle, stream)
            try:
                return function(handle.number, *arguments)
            except CudaError:
                raise
            except Exception as error:
                raise failure(_name_of(function), error) from error
            finally:
                handle.workspace = None  # it belongs to the graph
                self._spare.append(handle)

    def _handle(self, stream: int) -> Handle:
        """Return a handle for a stream, without a workspace: one that no stream has, or a new one."""
        check_fork("the handle of a library")
        if not self._spare and len(self._idle) > STREAMS_KEPT:
            self._spare += self._idle.pop(next(iter(self._idle)))
        try:
            handle = self._spare.pop() if self._spare else Handle(self._create())
            self._set_stream(handle.number, stream)
        except Exception as error:
            raise failure("the handle of a library", error) from error
        return handle

    def _give(self, handle: Handle, stream: int) -> None:
        """Give a handle a workspace. Its earlier one, of another stream, returns to that stream's memory."""
        if self._set_workspace is not None:
            handle.workspace = self._device.allocate(self._nbytes, stream)
            self._set_workspace(handle.number, handle.workspace.pointer, self._nbytes)

    def _forget(self) -> None:
        """Forget all handles in a forked child, so that the next call says that it cannot use CUDA."""
        self._idle.clear()
        self._spare.clear()


def _name_of(function: Any) -> str:
    return getattr(function, "__name__", "the library")
