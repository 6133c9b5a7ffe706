"""dask.array with Arrays as chunks: creation, the tables by type, and what dask computes, beside NumPy's chunks."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.processes import in_fresh_python

import tilearray as ta
from tilearray.dask.chunks import numel, size_in_memory

da = pytest.importorskip("dask.array")
dask = importlib.import_module("dask")

OURS = {"array.backend": "tilearray"}
VALUES = np.cos(np.arange(48.0)).reshape(6, 8)


def chunked(values: Any = VALUES, chunks: Any = (3, 4)) -> Any:
    return da.from_array(ta.asarray(values), chunks=chunks)


def same(ours: Any, theirs: Any) -> None:
    """Both computed, ours an Array of the dtype and shape that dask announced."""
    found, expected = ours.compute(scheduler="sync"), theirs.compute(scheduler="sync")
    assert isinstance(found, ta.Array)
    assert (found.dtype, found.shape) == (ours.dtype, ours.shape)
    np.testing.assert_allclose(ta.to_numpy(found), expected, rtol=1e-12, atol=1e-12)
    assert found.dtype == expected.dtype


# --- registration -------------------------------


def test_importing_tilearray_does_not_import_dask():
    assert in_fresh_python("import sys, tilearray; print('dask' in sys.modules)").split() == ["False"]


@pytest.mark.parametrize("first", ["tilearray", "dask.array", "tilearray.dask.backend", "dask.array.random"])
def test_either_library_may_be_imported_first(first):
    code = f"""
import {first}, tilearray, dask.array, dask.sizeof
from dask.array.dispatch import percentile_lookup
print(percentile_lookup.dispatch(tilearray.Array).__name__, dask.sizeof.sizeof(tilearray.zeros((5, 2), dtype="int8")))
"""
    assert in_fresh_python(code).split() == ["percentile", "10"]


def test_waiting_extends_only_the_modules_that_it_waits_for(tmp_path, monkeypatch):
    for name in ("awaited_by_us", "not_awaited"):
        (tmp_path / f"{name}.py").write_text("calls = []\n")
    (tmp_path / "called_after.py").write_text("def call(module):\n    module.calls.append(module.__name__)\n")
    monkeypatch.syspath_prepend(tmp_path)
    from tilearray.interchange.waiting import Waiting

    finder = Waiting({"awaited_by_us": "called_after:call"})
    monkeypatch.setattr("sys.meta_path", [*importlib.import_module("sys").meta_path])
    finder.start()
    awaited, other = (importlib.import_module(name) for name in ("awaited_by_us", "not_awaited"))
    assert (awaited.calls, other.calls) == (["awaited_by_us"], [])
    assert importlib.reload(awaited).calls == []  # a second run of the module is not a second registration


def test_entry_points_name_the_backend():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, _, name = project["entry-points"]["dask.array.backends"]["tilearray"].partition(":")
    backend = getattr(importlib.import_module(module), name)
    assert isinstance(backend(), importlib.import_module("dask.array.backends").ArrayBackendEntrypoint)


# --- creation -------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "options"),
    [
        ("ones", ((4, 6),), {"chunks": (2, 4)}),
        ("ones", ((3,),), {"chunks": 2, "dtype": "float32"}),
        ("zeros", ((4, 6),), {"chunks": 3, "dtype": "int16"}),
        ("zeros", (5,), {}),
        ("full", ((4, 2), 7), {"chunks": 2}),
        ("full", ((4, 2), 7), {"chunks": 2, "dtype": "complex64", "name": "seven"}),
        ("ones", ((2, 0),), {}),
        ("ones", ((),), {}),
        ("arange", (7,), {"chunks": 3}),
        ("arange", (2, 9, 0.5), {"chunks": 4}),
        ("arange", (7,), {"chunks": 3, "dtype": "float32"}),
    ],
)
def test_creation_gives_the_values_and_dtypes_of_dask(name, arguments, options):
    with dask.config.set(OURS):
        ours = getattr(da, name)(*arguments, **options)
    theirs = getattr(da, name)(*arguments, **options)
    assert isinstance(ours._meta, ta.Array)
    assert ours.chunks == theirs.chunks
    same(ours, theirs)


def test_a_chunk_of_one_value_occupies_one_element():
    with dask.config.set(OURS):
        chunk = da.empty((1000, 1000), chunks=1000).to_delayed()[0, 0].compute(scheduler="sync")
    assert chunk.shape == (1000, 1000)
    assert size_in_memory(chunk) == 8


@pytest.mark.parametrize("name", ["ones_like", "zeros_like", "empty_like"])
def test_like_functions_keep_the_library_of_the_chunks(name):
    with dask.config.set(OURS):
        of_ours = getattr(da, name)(chunked())
        of_numpys = getattr(da, name)(da.from_array(VALUES, chunks=3))
    assert isinstance(of_ours.compute(scheduler="sync"), ta.Array)
    assert type(of_numpys.compute(scheduler="sync")) is np.ndarray
    assert type(da.full_like(chunked(), 3).compute(scheduler="sync")) is ta.Array


def test_random_chunks_are_arrays_and_follow_from_the_seed():
    with dask.config.set(OURS):
        made = [da.random.default_rng(5).normal(size=(40, 50), chunks=20) for _ in range(2)]
        older = [da.random.RandomState(3).random_sample((40, 50), chunks=20) for _ in range(2)]
        integers = da.random.RandomState(3).randint(0, 5, size=100, chunks=40)
    for first, second in (made, older):
        values = first.compute(scheduler="sync")
        assert isinstance(values, ta.Array)
        assert values.tolist() == second.compute(scheduler="sync").tolist()
        assert len(set(values.ravel().tolist())) > 1900  # chunks have different streams
    assert set(integers.compute(scheduler="sync").tolist()) == set(range(5))


def test_a_generator_of_ours_draws_chunks():
    x = da.random.default_rng(ta.random.default_rng(5)).random((4, 4), chunks=2)
    assert isinstance(x.compute(scheduler="sync"), ta.Array)


def test_positions_of_extremes_are_arrays():
    for call in (lambda x: x.argmax(axis=0), lambda x: x.argmin(axis=1), lambda x: da.nanargmax(x, axis=0)):
        same(call(chunked()), call(da.from_array(VALUES, chunks=(3, 4))))


@pytest.mark.parametrize("dtype", [[("value", "f4"), ("place", "i8")], np.dtype("f4,i8")])
def test_structured_likes_are_type_errors(dtype):
    """dask asks in this way whether a chunk can have fields; an ndarray would take the place of the Array."""
    with pytest.raises(TypeError, match=r"empty_like: (expected a dtype|.*structured)"):
        np.empty_like(ta.zeros(3), dtype=dtype, shape=(2,))


def test_chunks_move_between_the_backends():
    theirs = da.from_array(VALUES, chunks=(3, 4))
    ours = theirs.to_backend("tilearray")
    same(ours, theirs)
    assert ours.to_backend("tilearray") is ours
    back = ours.to_backend("numpy").compute(scheduler="sync")
    assert type(back) is np.ndarray
    assert back.tolist() == VALUES.tolist()


# --- the tables by type -------------------------------


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_numel_counts_the_elements_of_each_result(axis, keepdims):
    found = numel(ta.asarray(VALUES), axis=axis, keepdims=keepdims, dtype="int64")
    expected = np.ones_like(VALUES, dtype="int64").sum(axis=axis, keepdims=keepdims)
    assert isinstance(found, ta.Array)
    assert (found.shape, found.tolist()) == (expected.shape, expected.tolist())


def test_sizes_count_elements_in_memory():
    sizeof = importlib.import_module("dask.sizeof").sizeof
    x = ta.zeros((4, 5), dtype="float64")
    assert sizeof(x) == 160
    assert sizeof(x[:, ::2]) == 96
    assert sizeof(ta.broadcast_to(x[0], (1000, 5))) == 40
    assert sizeof(ta.zeros((0, 3))) == 0


@pytest.mark.parametrize("q", [[50], [25, 50, 75]])
def test_percentiles(q):
    line = np.sin(np.arange(50.0))
    found = da.percentile(chunked(line, 20), q).compute(scheduler="sync")
    expected = da.percentile(da.from_array(line, chunks=20), q).compute(scheduler="sync")
    assert np.asarray(found).tolist() == expected.tolist()


# --- computations -------------------------------

fused = ta.fuse(lambda x: ta.exp(-x) * 2.0 + x)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.map_blocks(lambda c: np.exp(-c) * 2.0 + c),
        lambda x: da.blockwise(np.multiply, "ij", x, "ij", x[0], "j", dtype="float64"),
        lambda x: x.sum(axis=0, split_every=2),
        lambda x: x.rechunk((1, 8)).std(axis=1, split_every=2),
        lambda x: (x - x.mean(axis=0)) / x.std(axis=0, ddof=1),
        lambda x: x.rechunk((4, 3))[1:5, ::-2].T,
        lambda x: x[:, [0, 5, 5, 2]],
        lambda x: da.tensordot(x, x.T, axes=1),
        lambda x: da.einsum("ij,ij->i", x, x, dtype="float64"),
        lambda x: x.map_overlap(lambda c: c[1:-1] - c[:-2], depth={0: 1}, boundary="reflect", trim=False),
        lambda x: da.concatenate([x, x[:2]], axis=0).cumsum(axis=0),
        lambda x: da.nanmean(da.where(x > 0, x, np.nan), axis=1),
    ],
)
def test_results_are_those_of_numpys_chunks(call):
    same(call(chunked()), call(da.from_array(VALUES, chunks=(3, 4))))


@pytest.mark.parametrize(
    "call",
    [
        lambda line, x: line + x,
        lambda line, x: x - line,
        lambda line, x: np.hypot(line, x),
        lambda line, x: np.where(x > 0, line, x),
    ],
)
def test_an_array_is_an_operand_beside_a_dask_array(call):
    same(call(ta.asarray(VALUES[0]), chunked()), call(VALUES[0], da.from_array(VALUES, chunks=(3, 4))))


def test_a_fused_function_runs_on_each_chunk():
    same(chunked().map_blocks(fused), da.from_array(VALUES, chunks=(3, 4)).map_blocks(lambda c: np.exp(-c) * 2.0 + c))
