"""CUDA graphs: work that is captured once on a stream of its own, and launched as a whole.

Memory that is allocated during a capture belongs to the graph: it has the same addresses at every launch, and the
arrays in it keep the graph alive.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tilearray_cuda.errors import CaptureError, CudaError
from tilearray_cuda.runtime.driver import STREAMS, SUCCESS, Current, api, call, failure
from tilearray_cuda.runtime.streams import Stream, abandon

_MODE = api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
_AUTO_FREE = api.CUgraphInstantiate_flags.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH


class Graph:
    """A graph of a device, empty until its first capture."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.stream = Stream(device)
        self._executable: Any = None

    def begin(self) -> None:
        """Begin to capture the work of the stream."""
        with Current(self.device.context):
            call(api.cuStreamBeginCapture, STREAMS[self.stream.handle], _MODE)

    def end(self, keep: bool) -> None:
        """End the capture, and make it what later launches run, if it is to be kept.

        A second capture replaces the first one: it must be of the same operations. The driver has no graph of a capture
        that an error made invalid.
        """
        pool = self.device.memory.end_capture(self.stream.handle)
        with Current(self.device.context):
            status, graph = api.cuStreamEndCapture(STREAMS[self.stream.handle])
            if status is not SUCCESS:
                if keep:
                    raise failure("cuStreamEndCapture", status)
                return
            try:
                if keep and self._executable is None:
                    self._executable = call(api.cuGraphInstantiate, graph, int(_AUTO_FREE))
                elif keep:
                    self._replace(graph, pool)
            finally:
                call(api.cuGraphDestroy, graph)
        if pool is not None:
            pool.owner = self

    def _replace(self, graph: Any, pool: Any) -> None:
        if pool is not None:
            raise CaptureError(
                "update: the block made new arrays, and memory of a graph cannot be replaced; write out="
            )
        try:
            call(api.cuGraphExecUpdate, self._executable, graph)
        except CudaError as error:
            raise CaptureError(
                f"update: expected the operations that were captured first, on other arrays ({error}); capture a new "
                f"graph"
            ) from error

    def launch(self, stream: int) -> None:
        """Launch the graph after all work of a stream so far; later work of the stream waits for it."""
        if self._executable is None:
            raise CaptureError("replay: nothing was captured; write with ta.cuda.graph() as g: around the operations")
        events, own = self.device.events, self.stream.handle
        events.wait(own, stream)
        with Current(self.device.context):
            call(api.cuGraphLaunch, self._executable, STREAMS[own])
        events.wait(stream, own)

    def __del__(self, abandon: Any = abandon, destroy: Any = api.cuGraphExecDestroy) -> None:
        with suppress(AttributeError):  # if it was never made
            if self._executable is not None:
                abandon(self.device.context, self._executable, destroy)
