"""dask's workers with a GPU each: where their arrays are, what spills, what a dead worker takes along."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilearray as ta
from benchmarks.chunks import normalised_deviation
from benchmarks.two_gpus import HALO, backend, moved, steps_of_a_stencil
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


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with workers.local_cluster() as cluster, distributed.Client(cluster) as found:
        found.wait_for_workers(cuda.device_count())
        yield found


def drawn(rows: int, columns: int, rows_in_chunk: int) -> Any:
    with backend():
        return (
            pytest.importorskip("dask.array")
            .random.default_rng(3)
            .random((rows, columns), chunks=(rows_in_chunk, columns), dtype="float64")
        )


def test_each_worker_creates_arrays_on_its_own_gpu(client):
    found = client.run(lambda: (str(ta.zeros(3).device), os.environ["CUDA_VISIBLE_DEVICES"].partition(",")[0]))
    assert sorted(found.values()) == [("cuda:0", str(index)) for index in range(cuda.device_count())]
    limits = [each["memory_limit"] for each in client.scheduler_info()["workers"].values()]
    assert limits == [cuda.memory_statistics(f"cuda:{index}").device_total for index in range(cuda.device_count())]


def test_two_gpus_have_the_bits_of_the_host(client):
    before = client.run(moved)
    x = drawn(1 << 16, 64, 1 << 12)
    found = ta.to_numpy(normalised_deviation(x).compute())
    copied = sum(after[0] - before[worker][0] for worker, after in client.run(moved).items())
    assert copied < x.nbytes // x.numblocks[0]  # no chunk goes through the host, only partial sums
    host = ta.to_numpy(normalised_deviation(x).compute(scheduler="sync").to_device("cpu"))
    assert found.tobytes() == host.tobytes()
    ta.set_default_device("cpu")
    try:
        alone = ta.to_numpy(normalised_deviation(drawn(1 << 16, 64, 1 << 12)).compute(scheduler="sync"))
    finally:
        ta.set_default_device("cuda:0")
    assert found.tobytes() == alone.tobytes()


def test_a_stencil_exchanges_rows_only(client):
    x = drawn(1 << 12, 256, 1 << 9)
    before = client.run(moved)
    y = x.map_overlap(steps_of_a_stencil, depth={0: HALO, 1: 0}, boundary={0: "periodic", 1: "none"}, meta=x._meta)
    total = y.sum(axis=0)
    found = ta.to_numpy(total.compute())
    copied = sum(after[0] - before[worker][0] for worker, after in client.run(moved).items())
    assert copied < x.nbytes  # dask may move a chunk of a mebibyte to an idle worker
    assert found.tobytes() == ta.to_numpy(total.compute(scheduler="sync").to_device("cpu")).tobytes()


def test_arrays_beyond_the_limit_go_to_disk_and_come_back():
    unlimited = {"distributed.worker.memory.terminate": False}  # the process itself is larger
    with (
        dask.config.set(unlimited),
        workers.local_cluster(["cuda:0"], memory_limit=64 << 20) as cluster,
        distributed.Client(cluster) as client,
    ):
        held = [client.submit(ta.full, 1 << 20, each, dtype="float32", pure=False) for each in range(20)]
        distributed.wait(held)
        assert client.run(lambda dask_worker: len(dask_worker.data.slow) > 0)
        sums = client.gather([client.submit(lambda x: (str(x.device), x.sum().item()), each) for each in held])
        assert sums == [("cuda:0", each * 2.0**20) for each in range(20)]


def test_a_killed_worker_loses_nothing(client):
    x = drawn(1 << 16, 64, 1 << 12).map_blocks(steps_of_a_stencil)
    expected = ta.to_numpy(x.sum(axis=0).compute(scheduler="sync").to_device("cpu"))
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
        assert sorted(found.values()) == [("cuda:0", str(index)) for index in range(cuda.device_count())]
        x = drawn(1 << 14, 64, 1 << 12)
        expected = ta.to_numpy(normalised_deviation(x).compute(scheduler="sync").to_device("cpu"))
        np.testing.assert_array_equal(ta.to_numpy(normalised_deviation(x).compute()), expected)
