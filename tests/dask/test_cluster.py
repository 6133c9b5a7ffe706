"""Arrays on the workers of a LocalCluster: the bits of one process, other computations as the oracle, a dead worker."""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilearray as ta
from benchmarks.chunks import k_means, normalised_deviation, random_matrix, stencil

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
local_cluster = pytest.importorskip("tilearray.dask.workers").local_cluster

pytestmark = pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler")  # the oracle; dask of 2025
MEBI = 2**20


def cluster(workers: int) -> Any:
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit="2GiB"
    )


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with cluster(2) as started, distributed.Client(started) as found:
        yield found


def same_bits(ours: ta.Array, theirs: ta.Array) -> None:
    assert isinstance(ours, ta.Array)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    assert ta.to_numpy(ours).tobytes() == ta.to_numpy(theirs).tobytes()


def test_the_deviation_of_columns(client):
    x = random_matrix(4000, 30, 500)
    found = normalised_deviation(x).compute()
    same_bits(found, normalised_deviation(x).compute(scheduler="sync"))
    values = ta.to_numpy(x.compute(scheduler="sync")).astype("float64")
    np.testing.assert_allclose(ta.to_numpy(found), values.std(axis=0) / values.mean(axis=0), rtol=1e-12)


def test_a_stencil_has_the_bits_of_the_whole_array(client):
    x = random_matrix(60, 40, 20).rechunk((20, 10))
    found = stencil(x).compute()
    same_bits(found, stencil(x).compute(scheduler="sync"))
    whole = ta.to_numpy(x.compute(scheduler="sync"))
    for _ in range(2):
        shifted = [np.roll(whole, shift, axis) for axis in (0, 1) for shift in (1, -1)]
        whole = (whole + shifted[0] + shifted[1] + shifted[2] + shifted[3]) / whole.dtype.type(5)
    assert ta.to_numpy(found).tobytes() == whole.tobytes()


def test_k_means(client):
    points = random_matrix(3000, 4, 250)
    found = k_means(points, 5)
    same_bits(found, k_means(points, 5, scheduler="sync"))
    values = ta.to_numpy(points.compute(scheduler="sync")).astype("float64")
    centres = values[:5]
    for _ in range(5):
        nearest = np.argmin(((values[:, None] - centres) ** 2).sum(axis=-1), axis=1)
        centres = np.stack([values[nearest == each].mean(axis=0) for each in range(5)])
    np.testing.assert_allclose(ta.to_numpy(found), centres, rtol=1e-9)


def test_arrays_and_fused_functions_travel(client):
    x = ta.asarray(np.arange(24.0).reshape(4, 6)).astype("bfloat16").T
    fused = ta.fuse(lambda a: a * 2 + 1)
    fused(x)
    back = client.submit(fused, client.scatter(x, direct=False)).result()
    same_bits(back, x * 2 + 1)
    assert back.strides == x.strides


def test_all_chunks_of_a_worker_use_one_fused_function(client):
    """A function by value comes with each task, and is traced once in each process."""
    doubled = ta.fuse(lambda a: a * 2.0)

    def uses(chunk):
        doubled(chunk)
        doubled.uses = getattr(doubled, "uses", 0) + 1
        return ta.full((1, 1), 100 * doubled.traces + doubled.uses, dtype="int64")

    x = random_matrix(60, 4, 5)
    found = x.map_blocks(uses, dtype="int64", chunks=(1, 1)).compute().ravel().tolist()
    assert max(found) >= 100 + 12 // 2
    assert max(found) < 200


def test_workers_create_chunks_on_their_default_device(client):
    with importlib.import_module("dask").config.set({"array.backend": "tilearray"}):
        x = da.ones((8, 8), chunks=4)
    found = x.map_blocks(lambda c: ta.full((1, 1), len(str(c.device))), dtype="int64", chunks=(1, 1)).compute()
    assert found.tolist() == [[len("cpu")] * 2] * 2


def test_semantics_are_those_of_the_workers_process(client):
    """A context does not travel: a worker has the defaults of its process."""
    with ta.semantics("numpy"):
        future = client.submit(lambda: str((ta.asarray([1], dtype="int32") + ta.asarray([1.0], dtype="float32")).dtype))
        assert future.result() == "float32"


def slowly_doubled(x: ta.Array) -> ta.Array:
    for _ in range(20):
        x = ta.sin(x) + x
    return x


def test_a_killed_worker_loses_nothing():
    with cluster(2) as started, distributed.Client(started) as client:
        kill_one_in_the_middle(client, random_matrix(4000, 100, 250))


def kill_one_in_the_middle(client: Any, x: Any) -> None:
    """Kill a worker that holds a result while others are computed; compare with one process."""
    expected = x.map_blocks(slowly_doubled).sum(axis=0).compute(scheduler="sync")
    held = x.map_blocks(slowly_doubled).persist()
    first = distributed.futures_of(held)[0]
    distributed.wait(first)
    (holder,) = client.who_has([first])[first.key]
    os.kill(client.run(os.getpid)[holder], signal.SIGKILL)
    same_bits(held.sum(axis=0).compute(), expected)


# --- four processes, chunks of 64 MiB --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def four() -> Iterator[Any]:
    with local_cluster(["cpu"] * 4, memory_limit="1GiB") as started, distributed.Client(started) as found:
        found.wait_for_workers(4)
        yield found


def chunks_of_64_mebibytes(count: int) -> Any:
    x = random_matrix(count * 65536, 128, 65536)
    assert (x.nbytes, x.blocks[0].nbytes) == (64 * count * MEBI, 64 * MEBI)
    return x


@pytest.mark.slow  # three and a half gibibytes, of the four that the workers may hold
@pytest.mark.parametrize("count", [8, 56])
def test_four_processes_compute_a_deviation_of_half_a_gibibyte_and_of_more(four, count):
    assert len(four.run(os.getpid)) == 4
    x = chunks_of_64_mebibytes(count)
    found = normalised_deviation(x).compute()
    np.testing.assert_allclose(ta.to_numpy(found), 1 / np.sqrt(3), rtol=0.01)
    if count == 8:  # the larger one takes long in one process
        same_bits(found, normalised_deviation(x).compute(scheduler="threads"))


@pytest.mark.slow  # half a gibibyte, twice
def test_four_processes_compute_a_stencil(four):
    x = chunks_of_64_mebibytes(4)
    same_bits(stencil(x).sum().compute(), stencil(x).sum().compute(scheduler="threads"))


@pytest.mark.slow  # half a gibibyte, twice, and six readings of a part
def test_four_processes_compute_k_means(four):
    points = chunks_of_64_mebibytes(4)[:, :4]
    found = k_means(points.persist(), 8)
    same_bits(found, k_means(points.persist(scheduler="threads"), 8, scheduler="threads"))


@pytest.mark.slow  # four processes; the last test, as one of them dies
def test_one_of_four_processes_dies(four):
    kill_one_in_the_middle(four, random_matrix(8000, 100, 250))
