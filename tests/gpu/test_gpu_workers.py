"""dask's workers with a GPU each: where their arrays are, what spills, what a dead worker takes along."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilearray as ta
from benchmarks.chunks import normalised_deviation
from benchmarks.two_gpus import backend, moved, steps_of_a_stencil
from tilearray import cuda

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pytest.importorskip("tilearray_cuda.runtime.driver", reason="cuda-python is not installed")
workers = pytest.importorskip("tilearray.dask.workers")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("cuda.device_count() < 2", reason="needs two GPUs"),
    pytest.mark.filterwarnings("ignore"),  # distributed's own, of ports and slow event loops
]


STAYING = {"distributed.scheduler.work-stealing": False}
"""The configuration of a scheduler that moves no chunk to an idle worker, so that bytes can be counted."""


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with dask.config.set(STAYING), workers.local_cluster() as cluster, distributed.Client(cluster) as found:
        found.wait_for_workers(cuda.device_count())
        yield found


@contextlib.contextmanager
def default_device(name: str) -> Iterator[None]:
    """Create arrays of this process on a device; the tests' own default comes back."""
    previous = ta.default_device()
    ta.set_default_device(name)
    try:
        yield
    finally:
        ta.set_default_device(previous)


def alone(array: Any, device: str) -> np.ndarray:
    """Return what this process computes on one device."""
    with default_device(device):
        return ta.to_numpy(array.compute(scheduler="sync"))


def to_host(client: Any) -> int:
    """Return the bytes that all workers have copied from their GPUs to the host."""
    return sum(each[0] for each in client.run(moved).values())


def visible() -> list[str]:
    """Return the names of the GPUs that this process sees."""
    named = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return named or [str(index) for index in range(cuda.device_count())]


def drawn(rows: int, columns: int, rows_in_chunk: int) -> Any:
    with backend():
        return (
            pytest.importorskip("dask.array")
            .random.default_rng(3)
            .random((rows, columns), chunks=(rows_in_chunk, columns), dtype="float64")
        )


def test_each_worker_creates_arrays_on_its_own_gpu(client):
    found = client.run(lambda: (str(ta.zeros(3).device), os.environ["CUDA_VISIBLE_DEVICES"].partition(",")[0]))
    assert sorted(found.values()) == sorted(("cuda:0", name) for name in visible())
    limits = client.run(lambda dask_worker: dask_worker.memory_manager.memory_limit).values()
    totals = [cuda.memory_statistics(f"cuda:{index}").device_total for index in range(cuda.device_count())]
    assert sorted(limits) == sorted(min(total, distributed.system.MEMORY_LIMIT) for total in totals)


def test_two_gpus_have_the_bits_of_one_and_of_the_host(client):
    x = drawn(1 << 16, 64, 1 << 12)
    before = to_host(client)
    found = ta.to_numpy(normalised_deviation(x).compute())
    assert to_host(client) - before < x.nbytes // x.numblocks[0]  # no chunk, only partial sums
    for device in ("cuda:0", "cpu"):
        assert found.tobytes() == alone(normalised_deviation(x), device).tobytes()


def test_a_stencil_exchanges_rows_only(client):
    x = drawn(1 << 12, 256, 1 << 9)
    depth, boundary = {0: 32, 1: 0}, {0: "periodic", 1: "none"}
    y = x.map_overlap(steps_of_a_stencil, depth=depth, boundary=boundary, meta=x._meta, steps=32)
    total = y.sum(axis=0)
    before = to_host(client)
    found = ta.to_numpy(total.compute())
    # dask may compute a chunk where its neighbour is, if it expects the end earlier there: a task that it has not timed
    # counts as half a second, and the way of a mebibyte as a hundredth. So some chunks may move, and never all of them.
    assert to_host(client) - before < x.nbytes
    assert found.tobytes() == alone(total, "cuda:0").tobytes()


def test_arrays_beyond_the_limit_go_to_disk_and_come_back():
    unlimited = {"distributed.worker.memory.terminate": False}  # the process itself is larger
    with (
        dask.config.set(unlimited),
        workers.local_cluster(["cuda:0"], memory_limit=64 << 20) as cluster,
        distributed.Client(cluster) as client,
    ):
        held = [client.submit(ta.full, 1 << 20, each, dtype="float32", pure=False) for each in range(20)]
        distributed.wait(held)
        assert all(client.run(lambda dask_worker: len(dask_worker.data.slow) > 0).values())
        sums = client.gather([client.submit(lambda x: (str(x.device), x.sum().item()), each) for each in held])
        assert sums == [("cuda:0", each * 2.0**20) for each in range(20)]


def test_a_killed_worker_loses_nothing(client):
    x = drawn(1 << 16, 64, 1 << 12).map_blocks(steps_of_a_stencil)
    expected = alone(x.sum(axis=0), "cuda:0")
    held = x.persist()
    first = distributed.futures_of(held)[0]
    distributed.wait(first)
    (holder,) = client.who_has([first])[first.key]
    os.kill(client.run(os.getpid)[holder], signal.SIGKILL)
    np.testing.assert_array_equal(ta.to_numpy(held.sum(axis=0).compute()), expected)


def test_dask_cudas_cluster_gives_each_worker_its_gpu(monkeypatch):
    monkeypatch.delenv("TILEARRAY_DEVICE", raising=False)  # the tests' own, which workers would inherit
    dask_cuda = pytest.importorskip("dask_cuda", exc_type=ImportError)
    with dask_cuda.LocalCUDACluster(dashboard_address=None) as cluster, distributed.Client(cluster) as client:
        found = client.run(lambda: (str(ta.zeros(3).device), os.environ["CUDA_VISIBLE_DEVICES"].partition(",")[0]))
        assert sorted(found.values()) == sorted(("cuda:0", name) for name in visible())
        x = drawn(1 << 14, 64, 1 << 12)
        expected = alone(normalised_deviation(x), "cuda:0")
        np.testing.assert_array_equal(ta.to_numpy(normalised_deviation(x).compute()), expected)
