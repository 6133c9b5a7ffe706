"""The programs of `benchmarks.two_gpus` on the host: NumPy's results, whatever the chunks; and its tables."""

from __future__ import annotations

import numpy as np
import pytest

import tilearray as ta

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
two_gpus = pytest.importorskip("benchmarks.two_gpus")
workers = pytest.importorskip("tilearray.dask.workers")


def test_the_deviation_of_columns_joins_the_moments_of_chunks():
    with two_gpus.backend():
        x = da.random.default_rng(7).normal(10.0, 1.0, size=(40 * 9, 128), chunks=(9, 128), dtype="float64")
    values = ta.to_numpy(x.compute())
    found = two_gpus.deviation(40, 9 * 128 * 8)  # three levels of 16
    assert (found.dtype.name, found.device.type) == ("float64", "cpu")
    np.testing.assert_allclose(ta.to_numpy(found), values.std(axis=0) / values.mean(axis=0), rtol=1e-13)


def test_moments_of_unequal_chunks():
    values = np.random.default_rng(5).normal(1e6, 1.0, (60, 3))
    parts = ta.concat([two_gpus.moments(ta.asarray(part)) for part in np.split(values, [7, 8, 30])])
    found = two_gpus.deviation_over_mean(ta.concat([two_gpus.joined(parts[:3]), parts[3:]]))
    np.testing.assert_allclose(ta.to_numpy(found), values.std(axis=0) / values.mean(axis=0), rtol=1e-9)


@pytest.mark.parametrize(
    ("intervals", "seconds"),
    [([], 0), ([(1, 2), (4, 6)], 3), ([(4, 6), (1, 5), (2, 3)], 5), ([(1, 3), (2, 3), (3, 4)], 3)],
)
def test_intervals_that_overlap_count_once(intervals, seconds):
    assert two_gpus.covered(intervals) == seconds


def test_totals_are_those_of_the_nearest_centres():
    generator = np.random.default_rng(5)
    points, centres = generator.integers(0, 50, (4, 1000)).astype("float32"), generator.integers(0, 50, (16, 4))
    nearest = ((points[None] - centres[:, :, None]) ** 2).sum(axis=1).argmin(axis=0)
    expected = [[*points[:, nearest == each].sum(axis=1), (nearest == each).sum()] for each in range(16)]
    found = two_gpus.totals(ta.asarray(points), centres.astype("float32"))
    assert found.shape == (16, 1, 5)
    assert ta.to_numpy(found)[:, 0].tolist() == expected  # integers below 2**24: any order gives them


def test_k_means_finds_centres_within_the_points(monkeypatch):
    monkeypatch.setattr(two_gpus, "CENTRES", 3)
    monkeypatch.setattr(distributed, "wait", lambda points: points)  # there is no cluster
    found = ta.to_numpy(two_gpus.k_means(2, 16 * 500))
    assert found.shape == (3, 4)
    assert (found > 0).all()
    assert (found < 1).all()


def test_steps_of_a_stencil_need_the_rows_of_their_neighbours_only():
    whole = np.random.default_rng(2).random((60, 16)).astype("float32")
    x = da.from_array(ta.asarray(whole), chunks=(20, 16))
    depth, boundary = {0: 5, 1: 0}, {0: "periodic", 1: "none"}
    found = x.map_overlap(two_gpus.steps_of_a_stencil, depth=depth, boundary=boundary, meta=x._meta, steps=5).compute()
    for _ in range(5):
        wide = np.concatenate([whole[-1:], whole, whole[:1]])
        five = wide[1:-1, 1:-1] + wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
        whole = np.concatenate([whole[:, :1], five / np.float32(5), whole[:, -1:]], axis=1)
    assert ta.to_numpy(found).tobytes() == whole.tobytes()


def test_a_cluster_without_gpus_is_refused(monkeypatch):
    monkeypatch.setattr(ta.cuda, "device_count", lambda: 0)
    with pytest.raises(ta.DeviceError, match=r"local_cluster: expected GPUs, got a machine without; write local_cl"):
        workers.local_cluster()


def test_the_tables_hold_every_row():
    both = {"ours": 2e-3, "theirs": 1e-3}
    rows = [
        {"part": "copies", "name": "cuda:0 to cuda:1", "bytes": 2**30, **both},
        {"part": "copies", "name": "cuda:1 to cuda:0", "bytes": 1024, **both},
        {"part": "copies counted", "peers": True, "from_peers": 2**40, "through_host": 0},
        {"part": "collectives", "name": "all_reduce", "bytes": 2**20, **both},
        {"part": "programs", "name": "a program", "chunks": 4, "bytes": 2**32, "one": 3.0, "all": 1.5, "to_host": 512,
         "same": False, "accounts of one": [{"tasks": 9, "busy": 2.5, "sent": 0}, {"tasks": 0, "busy": 0.0, "sent": 0}],
         "accounts of all": [{"tasks": 4, "busy": 1.25, "sent": 2048}, {"tasks": 5, "busy": 1.5, "sent": 0}]},
        {"part": "ucx", "name": "tcp", "bytes": 2**29, "seconds": 0.25, "to_host": 2**29},
    ]  # fmt: skip
    text = two_gpus.markdown(rows)
    for line in (
        "| cuda:0 to cuda:1 | 1 GiB | 536.9 GB/s | 1073.7 GB/s | 0.50 |",
        "| cuda:1 to cuda:0 | 1 KiB | 2000.0 us | 1000.0 us | 0.50 |",
        "Peer access: True; 1 TiB between peers, 0 bytes through the host.",
        "| all_reduce | 1 MiB | 0.5 GB/s | 1.0 GB/s | 0.50 |",
        "| a program | 4 of 4 GiB | 16 GiB | 3.00 | 1.50 | 2.00 | 512 bytes | NO |",
        "| a program | 1 | 9 | 2.50 | 0 bytes |",
        "| a program | 2 | 4, 5 | 1.25, 1.50 | 2 KiB, 0 bytes |",
        "| tcp | 512 MiB | 0.2500 | 2.1 | 512 MiB |",
    ):
        assert line in text
