"""Peer access between the GPUs of a host: one reads the memory of another, without the host between them.

The driver forbids it until it is asked, and then copies through memory of the host, at a tenth of the rate. A context
has to allow it for memory that other libraries allocated, and each stream-ordered pool for its own memory; both in each
direction. `connect` does so at the first copy between two GPUs, because a context of a GPU that nobody uses costs
memory. Without the hardware for it, or if a GPU has as many peers as it can, the driver copies through the host.
`Transfers` counts both.
"""

from __future__ import annotations

from typing import NamedTuple

from tilearray_cuda.locks import Lock
from tilearray_cuda.runtime.driver import SUCCESS, Current, after_fork, api, call, failure
from tilearray_cuda.runtime.gpu import Gpu
from tilearray_cuda.runtime.memory import allocators

_ENABLED = frozenset({SUCCESS, api.CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED})
"""The statuses of contexts with access: torch or CuPy may have asked before us."""
_REFUSED = frozenset({api.CUresult.CUDA_ERROR_TOO_MANY_PEERS, api.CUresult.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED})

_connected: dict[frozenset[int], bool] = {}
_lock = Lock()


def _in_child() -> None:
    global _lock
    _lock = Lock()


after_fork.append(_in_child)


class TransferStatistics(NamedTuple):
    """The bytes that copies moved to and from one GPU, since the start of the process."""

    to_host: int
    """From the GPU to the host."""
    from_host: int
    """From the host to the GPU."""
    from_peers: int
    """From other GPUs to this one, by peer access."""
    through_host: int
    """From other GPUs to this one, through memory of the host, because the hardware has no peer access."""


class Transfers:
    """The counts of `TransferStatistics` of one GPU."""

    __slots__ = ("_counts", "_lock")

    def __init__(self) -> None:
        self._counts = dict.fromkeys(TransferStatistics._fields, 0)
        self._lock = Lock()
        after_fork.append(self._renew)

    def add(self, field: str, nbytes: int) -> None:
        """Count a copy."""
        with self._lock:
            self._counts[field] += nbytes

    def statistics(self) -> TransferStatistics:
        """Return the bytes so far."""
        with self._lock:
            return TransferStatistics(**self._counts)

    def _renew(self) -> None:
        self._lock = Lock()


def _can_access(device: int, other: int) -> bool:
    """Return whether the hardware lets two GPUs access each other's memory."""
    first, second = call(api.cuDeviceGet, device), call(api.cuDeviceGet, other)
    return bool(call(api.cuDeviceCanAccessPeer, first, second) and call(api.cuDeviceCanAccessPeer, second, first))


def connect(device: Gpu, other: Gpu) -> bool:
    """Let two GPUs access each other's memory, once for each pair; return whether they do."""
    pair = frozenset({device.index, other.index})
    if len(pair) == 1:
        return True
    found = _connected.get(pair)
    if found is not None:
        return found
    with _lock:
        if pair not in _connected:
            _connected[pair] = _can_access(device.index, other.index) and _enable(device, other)
        return _connected[pair]


def _enable(device: Gpu, other: Gpu) -> bool:
    """Enable access in both directions, and to the pools; return False if a GPU has too many peers."""
    for one, peer in ((device, other), (other, device)):
        with Current(one.context):
            status = api.cuCtxEnablePeerAccess(peer.context, 0)[0]
        if status in _REFUSED:
            return False
        if status not in _ENABLED:
            raise failure("cuCtxEnablePeerAccess", status)
    allocators.share(device.index, other.index)
    return True
