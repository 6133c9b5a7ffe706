"""`Gpu`: the facts of one GPU that this folder shares, and `Events`, its pool of events.

The modules of this folder take a `Gpu`, or only its context. `tilearray_cuda.device.CudaDevice` is a `Gpu` with memory,
copies and kernels. So no module of this folder imports `tilearray_cuda.device`.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.runtime.driver import NOT_READY, STREAMS, SUCCESS, Current, api, call, failure
from tilearray_cuda.runtime.index_errors import IndexErrors, Numbers


class Events:
    """A pool of events of one GPU: an event can be recorded again as soon as a wait for it has been issued."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._unused: list[Any] = []

    def record(self, stream: int) -> Any:
        """Return an event that passes when all work launched on `stream` so far is done. The caller gives it back."""
        with Current(self._context):
            return self.record_here(stream)

    def record_here(self, stream: int) -> Any:
        """Do as `record`, for a caller that has made the context current."""
        try:
            event = self._unused.pop()
        except IndexError:
            event = call(api.cuEventCreate, api.CUevent_flags.CU_EVENT_DISABLE_TIMING)
        call(api.cuEventRecord, event, STREAMS[stream])
        return event

    def give_back(self, event: Any) -> None:
        """Return an event to the pool."""
        self._unused.append(event)

    def wait(self, stream: int, other: int) -> None:
        """Make `stream` wait for all work launched on `other` so far."""
        with Current(self._context):
            event = self.record_here(other)
            call(api.cuStreamWaitEvent, STREAMS[stream], event, 0)
        self.give_back(event)


def event_passed(event: Any) -> bool:
    """Return whether an event has passed; True for an event that was never recorded."""
    status = api.cuEventQuery(event)[0]
    if status is not SUCCESS and status is not NOT_READY:
        raise failure("cuEventQuery", status)
    return status is SUCCESS


LAUNCHES = 4
"""The launches whose programs wait for each other and that may run at once, on several streams."""

RESERVED = 8192
"""The bytes of shared memory that kernels which count may use beside their counters."""


class Gpu:
    """One GPU, with its primary context.

    Attributes
    ----------
    index : int
    name : str
        The GPU's own name, such as "NVIDIA H200".
    arch : int
        Its architecture: 90 for compute capability 9.0.
    shared_memory : int
        The largest shared memory of one block of a kernel, in bytes.
    most_bins : int
        The most integers of which a block may count each in 2 bytes of that memory, a power of two.
    most_members : int
        The most programs of a launch that may wait for each other. Each multiprocessor runs one of them at least, and
        LAUNCHES such launches may run at once.
    context : object
        The driver's handle of the primary context.
    events : Events
    index_errors : IndexErrors
    numbers : Numbers
    """

    def __init__(self, index: int) -> None:
        attribute = api.CUdevice_attribute
        self.index = index
        self._device = call(api.cuDeviceGet, index)
        self.name: str = call(api.cuDeviceGetName, 128, self._device).split(b"\0")[0].decode()
        self.arch = 10 * self._attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) + self._attribute(
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
        )
        self.shared_memory = self._attribute(attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        self.most_bins = 1 << (max(self.shared_memory - RESERVED, 2) // 2).bit_length() - 1
        self.most_members = self._attribute(attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) // LAUNCHES
        self.context = call(api.cuDevicePrimaryCtxRetain, self._device)
        self.events = Events(self.context)
        self.index_errors = IndexErrors(self.context)
        self.numbers = Numbers(self.index_errors)

    def _attribute(self, attribute: Any) -> int:
        return int(call(api.cuDeviceGetAttribute, attribute, self._device))
