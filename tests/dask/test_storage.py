"""Zarr and .npy files: what chunks store is what NumPy reads, and what NumPy stores is what chunks load."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilearray as ta

da = pytest.importorskip("dask.array")

VALUES = np.sin(np.arange(48.0)).reshape(6, 8)


@pytest.fixture
def x() -> Any:
    return da.from_array(ta.asarray(VALUES), chunks=(3, 4), asarray=False)


def loaded(of_numpy: Any) -> Any:
    found = of_numpy.to_backend("tilearray").compute(scheduler="sync")
    assert isinstance(found, ta.Array)
    return ta.to_numpy(found)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "complex64", "bool"])
def test_zarr_there_and_back(x, dtype, tmp_path):
    zarr = pytest.importorskip("zarr")
    path = str(tmp_path / "x.zarr")
    (x * 9).astype(dtype).to_backend("numpy").to_zarr(path)
    expected = (VALUES * 9).astype(dtype)
    assert zarr.open_array(path)[:].tolist() == expected.tolist()
    back = da.from_zarr(path)
    assert back.chunks == x.chunks
    assert loaded(back).tolist() == expected.tolist()


def test_bfloat16_is_stored_as_its_bits(x, tmp_path):
    pytest.importorskip("zarr")
    path = str(tmp_path / "x.zarr")
    bits = x.astype("bfloat16").map_blocks(lambda c: c.view("uint16"), dtype="uint16")
    bits.to_backend("numpy").to_zarr(path)
    back = da.from_zarr(path).to_backend("tilearray").map_blocks(lambda c: c.view("bfloat16"), dtype="bfloat16")
    assert back.compute(scheduler="sync").tolist() == ta.asarray(VALUES).astype("bfloat16").tolist()


def test_a_stack_of_npy_files_there_and_back(x, tmp_path):
    da.to_npy_stack(str(tmp_path / "stack"), x.to_backend("numpy"), axis=0)
    assert np.load(tmp_path / "stack" / "1.npy").tolist() == VALUES[3:].tolist()
    assert loaded(da.from_npy_stack(str(tmp_path / "stack"))).tolist() == VALUES.tolist()


def test_npy_files_in_memory_maps(x, tmp_path):
    target = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype="float64", shape=VALUES.shape)
    da.store(x.to_backend("numpy") * 2, target, scheduler="sync")
    target.flush()
    assert np.load(tmp_path / "x.npy").tolist() == (VALUES * 2).tolist()
    mapped = da.from_array(np.load(tmp_path / "x.npy", mmap_mode="r"), chunks=(2, 8))
    assert loaded(mapped).tolist() == (VALUES * 2).tolist()


def test_chunks_are_stored_in_an_array(x):
    target = ta.zeros(VALUES.shape, dtype="float64")
    da.store(x, target, scheduler="sync")
    assert target.tolist() == VALUES.tolist()


@pytest.mark.parametrize("backend", ["tilearray", "numpy"])
def test_chunks_of_a_gpu_are_stored(elsewhere, tmp_path, backend):
    """dask calls ``np.save`` for each chunk, which writes it from any device."""
    x = da.from_array(ta.asarray(VALUES, device=elsewhere), chunks=(3, 8), asarray=False)
    da.to_npy_stack(str(tmp_path / "stack"), x.to_backend(backend) if backend == "numpy" else x, axis=0)
    assert np.load(tmp_path / "stack" / "0.npy").tolist() == VALUES[:3].tolist()
