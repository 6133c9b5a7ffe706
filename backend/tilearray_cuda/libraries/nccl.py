"""Collective operations over several GPUs of this process, through NCCL.

A communicator belongs to a list of GPUs; it is made at the first call and lives as long as the process. The calls for
all GPUs are one group, so that NCCL launches them together. Each runs on a stream of its GPU, after the work that its
memory waits for; later work on the memory waits for it. One group at a time is launched, because all GPUs must run
groups in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilearray_cuda.errors import CaptureError
from tilearray_cuda.libraries.bindings import bindings, failure
from tilearray_cuda.locks import Lock
from tilearray_cuda.runtime.driver import Current, after_fork, check_capture, check_fork, is_capturing

DTYPES = {
    "int8": 0,
    "uint8": 1,
    "int32": 2,
    "uint32": 3,
    "int64": 4,
    "uint64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
}
"""``ncclDataType_t`` by the name of a dtype."""
OPERATIONS = {"sum": 0, "prod": 1, "max": 2, "min": 3, "mean": 4}
"""``ncclRedOp_t``"""


Member = tuple[Any, int, tuple[Any, int], tuple[Any, int]]
"""The part of one GPU: the device, a stream of it, and the memory that is read and written, each as a buffer and the
bytes from its start to the first element."""


class Collectives:
    """The collective operations of GPUs; one object serves all of them."""

    operations = OPERATIONS.keys()
    dtypes = DTYPES.keys()

    def __init__(self) -> None:
        self._communicators: dict[tuple[int, ...], list[Any]] = {}
        self._lock = Lock()
        after_fork.append(self._forget)

    def all_reduce(self, members: Sequence[Member], count: int, dtype: str, operation: str) -> None:
        """Write the sums, products, maxima, minima or means of `count` elements of all GPUs to each."""
        self._run("all_reduce", members, count, DTYPES[dtype], OPERATIONS[operation])

    def reduce_scatter(self, members: Sequence[Member], count: int, dtype: str, operation: str) -> None:
        """Write a part of `count` reduced elements to each GPU, in the order of the GPUs."""
        self._run("reduce_scatter", members, count, DTYPES[dtype], OPERATIONS[operation])

    def all_gather(self, members: Sequence[Member], nbytes: int) -> None:
        """Write the bytes of all GPUs, one after the other, to each."""
        self._run("all_gather", members, nbytes, DTYPES["uint8"])

    def broadcast(self, members: Sequence[Member], nbytes: int, root: int) -> None:
        """Write the bytes of one GPU, that of the member `root`, to each."""
        self._run("broadcast", members, nbytes, DTYPES["uint8"], root)

    def _run(self, name: str, members: Sequence[Member], *arguments: int) -> None:
        """Call a function of the library for each GPU, as one group.

        Raises
        ------
        CaptureError
            If a stream is being captured.
        CudaError
            If the library reports an error.
        """
        check_fork(name)
        for device, stream, _, _ in members:
            check_capture(stream)
            if is_capturing(stream):
                raise CaptureError(
                    f"{name}: a CUDA graph of cuda:{device.index} captures stream {stream:#x}, and a graph holds the "
                    f"work of one GPU; write it before or after the capture"
                )
        library = bindings("nccl")
        with self._lock:
            communicators = self._made(library, tuple([device.index for device, *_ in members]))
            for device, stream, (source, _), (target, _) in members:
                device.join(source, stream)
                device.join(target, stream, True)
            try:
                self._group(library, getattr(library, name), members, communicators, arguments)
            except Exception as error:
                raise failure(name, error) from error

    def _group(
        self, library: Any, function: Any, members: Sequence[Member], communicators: list[Any], arguments: Any
    ) -> None:
        library.group_start()
        try:
            for (device, stream, (source, start), (target, place)), communicator in zip(members, communicators):
                with Current(device.context):
                    function(source.pointer + start, target.pointer + place, *arguments, communicator, stream)
        finally:
            library.group_end()

    def _made(self, library: Any, devices: tuple[int, ...]) -> list[Any]:
        """Return the communicators of GPUs; the caller holds the lock."""
        found = self._communicators.get(devices)
        if found is None:
            try:
                found = self._communicators[devices] = list(library.comm_init_all(len(devices), list(devices)))
            except Exception as error:
                raise failure("comm_init_all", error) from error
        return found

    def _forget(self) -> None:
        """Forget all communicators in a forked child, which cannot use CUDA."""
        self._lock = Lock()
        self._communicators = {}


COLLECTIVES = Collectives()
