"""`local_cluster`: a worker process for each GPU of this host.

A worker sees its own GPU as ``cuda:0``, and creates arrays there. The other GPUs follow in ``CUDA_VISIBLE_DEVICES``, so
that a transport between GPUs reaches them. A worker may hold as many bytes of arrays as its GPU has; beyond 60% of them
(``distributed.worker.memory.target``) dask moves the least recently used arrays to disk.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Sequence
from typing import Any

from tilearray import cuda
from tilearray.engine.devices import Device, DeviceLike, as_device
from tilearray.errors import DeviceError

ON_GPUS = {
    "distributed.worker.memory.spill": False,  # these two compare the limit with the memory of the process, on the host
    "distributed.worker.memory.pause": False,
    "distributed-ucxx.create-cuda-context": True,  # UCX finds the links between GPUs only with a context
}
"""The configuration of a worker with a GPU, beside dask's own."""


def local_cluster(
    devices: Sequence[DeviceLike] | None = None,
    *,
    threads_per_worker: int = 1,
    memory_limit: Any = None,
    host: str = "127.0.0.1",
    protocol: str | None = None,
    dashboard_address: str | None = "127.0.0.1:0",
    **options: Any,
) -> Any:
    """Start a scheduler, and a worker process for each device of this host.

    Parameters
    ----------
    devices : sequence of Device or str, optional
        All GPUs if omitted. ``["cpu"] * 4`` are four workers on the host.
    threads_per_worker : int
        One thread keeps a GPU busy: launches return before the work is done.
    memory_limit : int or str, optional
        The bytes of arrays of a worker by which dask spills to disk; the memory of its GPU if omitted, and dask's own
        limit on the host. dask takes no more than the memory of the host.
    host, protocol, dashboard_address, **options
        As for ``distributed.LocalCluster`` and ``distributed.Nanny``. ``protocol="ucx"`` sends arrays between GPUs
        without the host, if `distributed-ucxx` is installed. ``local_directory="/dev/shm"`` spills to host memory.

    Returns
    -------
    distributed.SpecCluster

    Raises
    ------
    DeviceError
        If there are no GPUs.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> from tilearray.dask.workers import local_cluster
    >>> def main():  # beneath `if __name__ == "__main__":`, as for every cluster of processes
    ...     with local_cluster() as cluster, Client(cluster) as client:
    ...         ...
    """
    distributed: Any = importlib.import_module("distributed")
    chosen = [as_device(each, "local_cluster") for each in (_all_gpus() if devices is None else devices)]
    if not chosen:
        raise DeviceError("local_cluster: expected GPUs, got a machine without; write local_cluster(['cpu'] * 4)")
    workers = {
        place: {
            "cls": distributed.Nanny,
            "options": {
                "nthreads": threads_per_worker,
                "host": host,
                "protocol": protocol,
                "memory_limit": _limit_of(device, memory_limit, len(chosen)),
                "env": environment_of(device),
                "silence_logs": logging.WARNING,
                "config": ON_GPUS if device.type == "cuda" else {},
                **options,
            },
        }
        for place, device in enumerate(chosen)
    }
    scheduler = {
        "cls": distributed.Scheduler,
        "options": {"host": host, "port": 0, "protocol": protocol, "dashboard_address": dashboard_address},
    }
    return distributed.SpecCluster(workers=workers, scheduler=scheduler, name="tilearray", silence_logs=logging.WARNING)


def environment_of(device: Device) -> dict[str, str]:
    """Return the variables by which a process has a device as its default: a GPU is the first of those that it sees.

    Examples
    --------
    >>> from tilearray.engine.devices import as_device
    >>> environment_of(as_device("cpu"))
    {'TILEARRAY_DEVICE': 'cpu'}
    """
    if device.type != "cuda":
        return {"TILEARRAY_DEVICE": device.name}
    named = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    names = named or [str(index) for index in range(cuda.device_count())]
    rotated = names[device.index :] + names[: device.index]
    return {"TILEARRAY_DEVICE": "cuda:0", "CUDA_VISIBLE_DEVICES": ",".join(rotated)}


def _all_gpus() -> list[str]:
    return [f"cuda:{index}" for index in range(cuda.device_count())]


def _limit_of(device: Device, given: Any, count: int) -> Any:
    """Return the bytes of arrays that a worker of a device holds."""
    if given is not None:
        return given
    if device.type == "cuda":
        return importlib.import_module("tilearray_cuda").total_memory(device.index)
    system: Any = importlib.import_module("distributed.system")
    return system.MEMORY_LIMIT // count
