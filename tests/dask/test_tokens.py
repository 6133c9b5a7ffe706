"""The names of arrays in graphs: equal for equal arrays in every process, and different for others."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from support.processes import in_fresh_python

import tilearray as ta
from tilearray import dtypes
from tilearray.dask import tokens
from tilearray.dask.tokens import fingerprint, hash_on_device, hash_on_host

MASK = 2**64 - 1


def mixed(bits: int, place: int) -> tuple[int, int]:
    """The mixed value of an element, and that after one more round, in Python's integers."""
    value = bits ^ (place * 0x9E3779B97F4A7C15 & MASK)
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & MASK
    value ^= value >> 31
    again = (value ^ (value >> 29)) * 0xBF58476D1CE4E5B9 & MASK
    return value, again ^ (again >> 32)


@pytest.mark.parametrize("name", ["bool", "uint8", "int16", "bfloat16", "float8_e4m3", "float32", "complex128"])
@pytest.mark.parametrize("width", [5, 2**16])
def test_the_sums_of_a_gpu_are_those_of_pythons_integers(name, width, monkeypatch):
    monkeypatch.setattr(tokens, "WIDTH", width)
    x = ta.asarray(np.arange(12).reshape(3, 4) % 2).astype(name).T
    words = np.frombuffer(np.ascontiguousarray(ta.to_numpy(x)).tobytes(), f"u{min(x.dtype.itemsize, 8)}").tolist()
    both = [mixed(bits, place) for place, bits in enumerate(words)]
    first, second = (sum(column) & MASK for column in zip(*both, strict=True))
    assert hash_on_device(x) == f"{first:016x}{second:016x}"


@pytest.mark.parametrize("hashed", [hash_on_host, hash_on_device])
@pytest.mark.parametrize("dtype", sorted({"float32", "float64", "int8", "bfloat16"}))
def test_one_changed_bit_or_two_exchanged_elements_change_the_hash(hashed, dtype):
    x = ta.asarray(np.arange(40)).astype(dtype)
    seen = {hashed(x), hashed(x[::-1])}
    for place in range(40):
        changed = x.copy()
        changed[place] = -changed[place] if place else 1
        seen.add(hashed(changed))
    two_signs = x.copy()
    two_signs[3:5] *= -1  # the highest bits of two elements
    assert len(seen | {hashed(two_signs)}) == 43


@pytest.mark.parametrize("hashed", [hash_on_host, hash_on_device])
def test_layouts_and_semantics_do_not_count(hashed):
    values = np.arange(12.0).reshape(3, 4)
    with ta.semantics("torch"):
        found = {hashed(ta.asarray(values)), hashed(ta.asarray(values.T.copy()).T)}
    assert found == {hashed(ta.asarray(values)[::-1].copy()[::-1])}
    assert hashed(ta.zeros((0, 3))) == hashed(ta.zeros((2, 0)))


def test_dtype_shape_and_device_count(elsewhere):
    x = ta.asarray(np.arange(6, dtype="int32"))
    others = [x.reshape(2, 3), x.view("uint32"), x.to_device("cuda:7654321"), x[:5]]
    assert len({fingerprint(one) for one in (x, *others)}) == 5


def test_a_device_array_is_hashed_on_its_device(elsewhere, monkeypatch):
    monkeypatch.setattr(tokens, "hash_on_host", None)
    x = ta.asarray([1.0, 2.0], device="cuda:7654321")
    assert fingerprint(x) == fingerprint(x.copy())


def test_tokens_are_the_same_in_another_process():
    tokenize = pytest.importorskip("dask.base").tokenize
    code = "import tilearray as ta, dask; print(dask.base.tokenize(ta.asarray([1, 2, 3])))"
    assert in_fresh_python(code).split() == [tokenize(ta.asarray([1, 2, 3]))]


def test_dask_names_equal_arrays_equally():
    da = pytest.importorskip("dask.array")
    importlib.import_module("dask").config.set({"tokenize.ensure-deterministic": True})
    names = {da.from_array(ta.asarray([1.0, value]), asarray=False).name for value in (2.0, 2.0, 3.0)}
    assert len(names) == 2


@pytest.mark.parametrize("name", [dtype.name for dtype in dtypes.ALL])
def test_every_dtype_has_a_fingerprint(name):
    x = ta.zeros((2, 2), dtype=name)
    assert fingerprint(x) == fingerprint(x.T)
