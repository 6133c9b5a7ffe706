"""Block sizes that were measured on this machine's GPU: used if this user wrote them, and never more than a speed."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import warnings
from collections import Counter
from pathlib import Path

import pytest
from support.cubins import empty_cache
from support.kernels import body_for, flat_kernel, kernel_for

from tilearray_cuda.kernels import schedules, tuned_tiles
from tilearray_cuda.kernels.disk_cache import CacheWarning
from tilearray_cuda.kernels.schedules import flat, tile
from tilearray_cuda.kernels.schedules.schedule import Tile, is_bounded

GPU = "NVIDIA H100 80GB HBM3"
ADDED = ("add", "float32", "float32")
BEFORE, AFTER = flat.SIZES[80]["flat"][4], (1, 512, 2)
STRANGER = 65534


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of kernels, on a machine with a GPU."""
    tmp_path.chmod(0o700)
    monkeypatch.setattr(tuned_tiles, "GPUS", {90: GPU})
    monkeypatch.setattr(tuned_tiles, "_read", {})
    return empty_cache(tmp_path / "cubins", monkeypatch)


def written(tiles: dict[tuned_tiles.Key, tuned_tiles.Sizes] | None = None) -> Path:
    return Path(tuned_tiles.write_tiles(GPU, 90, tiles or {("flat", 4): AFTER}, "Triton 3.6"))


def refusal() -> str:
    """The only warning of two kernels, which have the tiles of the tables."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [flat_kernel(*ADDED).schedule.tile for _ in range(2)] == [BEFORE, BEFORE]
    (warning,) = caught
    assert warning.category is CacheWarning
    return str(warning.message)


def test_measured_tiles_are_used_from_the_next_process_on(directory: Path):
    assert flat_kernel(*ADDED).schedule.tile == BEFORE
    path = written()
    assert (path.parent, path.name) == (directory, "tiles-nvidia-h100-80gb-hbm3.json")
    assert flat_kernel(*ADDED).schedule.tile == (*AFTER, 0, 0)
    assert flat_kernel("add", "float64", "float64").schedule.tile == flat.SIZES[80]["flat"][8]
    assert flat_kernel("astype", "float32", out="int32").schedule.tile == flat.SIZES[80]["flat copied"][4]
    assert "BLOCK = 512, 2 warps" in flat_kernel(*ADDED).source.text


def test_a_tile_is_cut_as_that_of_a_table():
    written({("tile", 4): (64, 64, 8)})
    strides = [(1000, 1), (1000, 1), (1, 40)]
    assert kernel_for(body_for(*ADDED[:1], ADDED[1:]), (40, 1000), strides).schedule.tile[:3] == (64, 64, 8)
    written({("rows", 4): (1, 512, 4)})
    strides = [(20, 1), (40, 1), (40, 1)]
    assert kernel_for(body_for(*ADDED[:1], ADDED[1:]), (90, 20), strides).schedule.tile[:3] == (16, 32, 4)


def test_tiles_of_another_gpu_are_not_used(monkeypatch: pytest.MonkeyPatch):
    written()
    assert flat_kernel(*ADDED, arch=100).schedule.tile == BEFORE
    for gpus in ({}, {90: "NVIDIA H200"}):
        monkeypatch.setattr(tuned_tiles, "GPUS", gpus)
        assert flat_kernel(*ADDED).schedule.tile == BEFORE


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners on this system")
def test_a_file_that_others_can_write_is_refused(directory: Path):
    path = written()
    path.chmod(0o606)
    told = refusal()
    assert f"expected a file of block sizes that only you can write, got {str(path)!r}" in told
    assert "mode 606 lets others write; run: chmod go-w" in told


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners on this system")
def test_a_directory_that_others_can_write_is_refused(directory: Path):
    written()
    directory.chmod(0o777)
    assert "mode 777 lets others write" in refusal()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files to others")
def test_a_file_of_another_user_is_refused():
    os.chown(written(), STRANGER, STRANGER)
    assert f"belongs to user {STRANGER}" in refusal()


def test_no_tiles_are_written_where_others_can_write(directory: Path):
    directory.mkdir(mode=0o700)
    directory.chmod(0o777)
    with pytest.raises(PermissionError, match="mode 777 lets others write"):
        written()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[" * 100_000,
        b"[]",
        b"{}",
        b'{"schema": 2, "tiles": {}}',
        b'{"schema": 1, "tiles": []}',
        b'{"schema": 1, "tiles": {"flat": {"4": [1, 512]}}}',
        b'{"schema": 1, "tiles": {"flat": {"4": [1, 500, 4]}}}',
        b'{"schema": 1, "tiles": {"flat": {"4": [1, 512, 64]}}}',
        b'{"schema": 1, "tiles": {"flat": {"4": [1, 16, 4]}}}',
        b'{"schema": 1, "tiles": {"flat": {"4": [1, -512, -4]}}}',
        b'{"schema": 1, "tiles": {"flat": {"4": [1, 512.0, 4]}}}',
        b'{"schema": 1, "tiles": {"flat": {"4": [true, 512, 4]}}}',
        b'{"schema": 1, "tiles": {"flat": {"four": [1, 512, 4]}}}',
    ],
)
def test_a_damaged_file_is_refused(content: bytes):
    written().write_bytes(content)
    assert "expected block sizes of a GPU in" in refusal()


def test_something_else_in_the_place_of_the_file_is_refused():
    path = written()
    path.unlink()
    path.symlink_to(os.devnull)
    assert "Too many levels of symbolic links" in refusal()


def test_warnings_that_are_errors_come_once():
    written().write_bytes(b"")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CacheWarning):
            flat_kernel(*ADDED)
        assert flat_kernel(*ADDED).schedule.tile == BEFORE


@pytest.mark.parametrize("sizes", [(1, 8192, 8), (1, 2048, 1), (2, 512, 4), (1, 128, 4)])
def test_a_tile_beyond_those_of_the_tables_is_not_used(sizes: tuned_tiles.Sizes):
    written({("flat", 4): sizes, ("another version's", 4): (1, 512, 4)})
    assert flat_kernel(*ADDED).schedule.tile == BEFORE


def test_every_tile_of_a_table_is_within_its_bounds():
    for kind, sizes in tile.SIZES[80].items():
        assert all(is_bounded(each, tile.SIZES, kind, itemsize) for itemsize, each in sizes.items())
    assert not is_bounded(Tile(1, 4096, 16), tile.SIZES, "tile", 4)
    assert not is_bounded(Tile(64, 64, 8), tile.SIZES, "tile", 3)


def test_no_two_schedules_have_a_kind_of_the_same_name():
    modules = [
        importlib.import_module(f"{schedules.__name__}.{each.name}")
        for each in pkgutil.iter_modules(schedules.__path__)
    ]
    tables = [table for module in modules for table in getattr(module, "SIZES", {80: {}}).values()]
    kinds = Counter(kind for table in tables for kind in table)
    assert len(kinds) > 15
    assert set(kinds.values()) == {1}


def test_the_file_says_what_was_measured():
    data = json.loads(written({("flat", 4): AFTER, ("flat", 8): (1, 512, 4), ("tile", 4): (64, 64, 8)}).read_bytes())
    assert data == {
        "schema": 1,
        "gpu": GPU,
        "arch": 90,
        "measured with": "Triton 3.6",
        "tiles": {"flat": {"4": [1, 512, 2], "8": [1, 512, 4]}, "tile": {"4": [64, 64, 8]}},
    }


def _results() -> None:
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta
    from tilearray.engine import caches
    from tilearray_cuda.kernels import tuned_tiles

    device = emulated_device()
    values = np.random.default_rng(1).normal(size=(72, 96)).astype("float32")
    x, y = ta.asarray(values, device=device), ta.asarray(values.T.copy(), device=device)

    def results() -> list[bytes]:
        for cache in (caches.KERNELS, caches.PLANS, caches.RECIPES):
            cache.clear()
        return [ta.to_numpy(each).tobytes() for each in (x * 3 + x, x + y.T, x[:, 1:] - 1, x.reshape(-1) * 2)]

    before = results()
    sizes = {("flat", 4): (1, 512, 2), ("tile", 4): (32, 64, 4), ("odd", 4): (64, 64, 8), ("rows", 4): (1, 512, 2)}
    with tuned_tiles.trying(sizes) as asked:
        assert results() == before
    assert {key[0] for key in asked} >= {"flat", "tile", "rows"}


def test_results_have_the_same_bits(process):
    process.pool.submit(_results).result()
