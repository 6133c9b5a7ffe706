"""Sorts on the GPU, against NumPy's stable ones."""

from __future__ import annotations

import os

import numpy as np
import pytest
from support.oracles.sorting import (
    REAL,
    WIDE,
    check,
    check_complex_medians,
    check_integers_in_runs,
    check_lengths,
    check_names,
    check_near_integers,
    check_sets,
    check_sorts,
    check_tops,
    check_tops_of_rows,
    check_wide,
    drawn,
    order,
    view_of,
)

import tilearray as ta
from tilearray.functions import distinct, ordering

CASES = int(os.environ.get("TILEARRAY_EXAMPLES", "400"))


@pytest.mark.parametrize("elements", [60, 5000, 300_000])
@pytest.mark.parametrize("seed", range(4))
def test_sorts_are_numpys(seed, elements):
    """Many kernels are compiled, in several tests at once."""
    check_sorts("cuda:0", 10 * seed + elements, CASES // (6 if elements < 9000 else 40), elements)


@pytest.mark.parametrize("dtype", REAL)
def test_lengths(dtype):
    check_lengths(
        "cuda:0", (1, 2, 31, 32, 33, 127, 1024, 1025, 2047, 2049, 4096, 4097, 8191, 8192, 8193, 20000), (dtype,)
    )


@pytest.mark.parametrize("dtype", REAL)
def test_long_rows(dtype):
    for seed, shape in enumerate(((2_000_003,), (3, 700_001), (70, 20_000), (20_011, 61), (700_001, 2))):
        rng = np.random.default_rng(seed)
        host = drawn(rng, dtype, shape)
        x = view_of(rng, host, "cuda:0")
        check(host, x, int(seed % len(shape)), bool(seed % 2), f"{dtype} {shape}")


@pytest.mark.parametrize("dtype", ["uint8", "float16", "int32", "float32", "float64"])
def test_many_elements(dtype):
    """Random values, all equal ones, and sorted ones: of more blocks than programs run at once."""
    rng = np.random.default_rng(5)
    host = drawn(rng, dtype, (2**25,))
    x = ta.asarray(host, device="cuda:0")
    want = order(host, 0, False)
    np.testing.assert_array_equal(ta.to_numpy(ta.argsort(x)), want)
    found = ta.sort(x)
    np.testing.assert_array_equal(ta.to_numpy(found).view(f"u{host.itemsize}"), host[want].view(f"u{host.itemsize}"))
    np.testing.assert_array_equal(ta.to_numpy(ta.argsort(found)), np.arange(2**25))
    same = ta.full((2**25,), 3, dtype=dtype, device="cuda:0")
    np.testing.assert_array_equal(ta.to_numpy(ta.argsort(same, descending=True)), np.arange(2**25))


@pytest.mark.parametrize("kind", WIDE)
def test_wide_keys(kind, monkeypatch):
    monkeypatch.setattr(ordering, "MENDED", 1 << 20)
    monkeypatch.setattr(ordering, "NARROWED", 1 << 20)
    check_wide("cuda:0", kind, 2_000_003)
    check_wide("cuda:0", kind, 1 << 20)


def test_near_integers():
    check_near_integers("cuda:0", distinct.MARKED + 5)


@pytest.mark.parametrize("bits", [28, 32])
def test_integers_in_runs(bits):
    check_integers_in_runs("cuda:0", 2_000_003, bits)


def test_captured_sorts_of_wide_keys_wait_for_nothing():
    values = np.random.default_rng(3).integers(-500, 500, ordering.NARROWED)
    x = ta.asarray(values, device="cuda:0")
    ta.sort(x)
    ta.cuda.synchronize()
    with ta.cuda.graph() as graph:
        found = ta.sort(x)
    graph.replay()
    np.testing.assert_array_equal(ta.to_numpy(found), np.sort(values))


@pytest.mark.parametrize(("seed", "elements", "share"), [(11, 40, 3), (12, 5000, 4), (13, 300_000, 16)])
def test_sets_are_those_of_the_host(seed, elements, share):
    check_sets("cuda:0", seed, CASES // share, elements)


@pytest.mark.parametrize(("seed", "elements", "share"), [(21, 40, 8), (22, 20_000, 16)])
def test_names_are_those_of_the_host(seed, elements, share):
    check_names("cuda:0", seed, CASES // share, elements)


def test_medians_of_complex_numbers_are_numpys():
    check_complex_medians("cuda:0")


@pytest.mark.parametrize(("seed", "elements", "share"), [(31, 60, 4), (32, 9000, 8), (33, 300_000, 20)])
def test_first_elements_are_numpys(seed, elements, share):
    check_tops("cuda:0", seed, CASES // share, elements)


@pytest.mark.parametrize(("seed", "elements", "share"), [(41, 300, 8), (42, 50_000, 20)])
def test_first_elements_of_rows_are_numpys(seed, elements, share):
    check_tops_of_rows("cuda:0", seed, CASES // share, elements)


@pytest.mark.parametrize("k", [1, 100, 100_000, 2**22])
def test_first_elements_of_many(k):
    """Of random values, of few different ones, and of values of which the highest digits are equal."""
    rng = np.random.default_rng(k)
    for host in (rng.standard_normal(2**24, np.float32), rng.integers(0, 5, 2**24), rng.integers(0, 2**20, 2**24)):
        found = ta.top_k(ta.asarray(host, device="cuda:0"), k)
        want = order(host, 0, True)[:k]
        np.testing.assert_array_equal(ta.to_numpy(found.indices), want)
        np.testing.assert_array_equal(ta.to_numpy(found.values), host[want])


def test_many_distinct_elements():
    rng = np.random.default_rng(6)
    host = rng.integers(0, 2**22, 2**24, dtype=np.int32)
    found = ta.unique_all(ta.asarray(host, device="cuda:0"))
    wanted = np.unique(host, return_index=True, return_inverse=True, return_counts=True)
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ta.to_numpy(mine), theirs)


def test_choices_without_replacement_are_those_of_the_host():
    weights = np.arange(100_000) / np.arange(100_000).sum()
    chosen = [
        ta.random.default_rng(3, device=device).choice(100_000, 50_000, replace=False, p=weights).tolist()
        for device in ("cuda:0", "cpu")
    ]
    assert chosen[0] == chosen[1]


@pytest.mark.whole_gpu
def test_beyond_2_to_31_elements():
    n = 2**31 + 4099
    x = (ta.arange(n, dtype="int64", device="cuda:0") * 7919 % 251).astype("uint8")
    found = ta.sort(x)
    counts = [ta.sum(x == value).item() for value in (0, 100, 250)]
    assert [ta.sum(found == value).item() for value in (0, 100, 250)] == counts
    assert bool(ta.all(found[1:] >= found[:-1]))
    del found
    last = ta.argsort(x)[-5:].tolist()
    places = ta.nonzero(x == 250)[0][-5:].tolist()
    assert last == places


def test_other_streams():
    with ta.cuda.stream(ta.cuda.Stream("cuda:0")):
        x = (ta.arange(1_000_000, dtype="int64", device="cuda:0") * 7919 % 1_000_000).astype("int32")
        found = ta.sort(x)
    assert found[:3].tolist() == [0, 1, 2]
    assert bool(ta.all(found == ta.arange(1_000_000, dtype="int32", device="cuda:0")))


def test_a_sort_is_captured():
    """A graph sorts new values in the same memory."""
    x = ta.asarray(np.arange(10_000)[::-1].astype(np.float32), device="cuda:0")
    ta.sort(x)
    with ta.cuda.graph() as graph:
        found = ta.sort(x)
    x[...] = ta.asarray(np.arange(10_000, 20_000)[::-1].astype(np.float32), device="cuda:0")
    graph.replay()
    assert found[:3].tolist() == [10_000, 10_001, 10_002]
