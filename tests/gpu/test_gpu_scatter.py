"""Ops that are applied at indices and along segments, binary search and histograms on the GPU, against NumPy."""

from __future__ import annotations

import os

import numpy as np
import pytest
from support.oracles import histograms, scatter, segments

import tilearray as ta

CASES, SHARDS = 2 * int(os.environ.get("TILEARRAY_EXAMPLES", "400")), 8


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize(("seed", "elements", "share"), [(41, 60, 1), (42, 3000, 2), (43, 200_000, 8)])
def test_ops_at_indices_are_numpys(seed, elements, share, shard):
    scatter.check_at("cuda:0", seed + 100 * shard, max(1, CASES // share // SHARDS), elements)


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize(("seed", "elements", "share"), [(44, 60, 4), (45, 3000, 16)])
def test_ops_in_the_order_of_indices_are_numpys(seed, elements, share, shard):
    scatter.check_ordered("cuda:0", seed + 100 * shard, max(1, CASES // share // SHARDS), elements)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("check_wraps_and_kinds", ()),
        ("check_errors_of_at", ()),
        ("check_atomic", (300,)),
        ("check_atomic", (300_000,)),
        ("check_wide_rows_at", ()),
        ("check_order", ()),
        ("check_many_at_few", ()),
        ("check_long_runs", ()),
        ("check_known_calls", ()),
        ("check_atomic_weights", ()),
    ],
)
def test_at(name, arguments):
    getattr(scatter, name)("cuda:0", *arguments)


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize(("seed", "elements", "share"), [(46, 20, 2), (47, 2000, 16)])
def test_ops_along_segments_have_the_bits_of_folds(seed, elements, share, shard):
    segments.check_reduceat("cuda:0", seed + 100 * shard, max(1, CASES // share // SHARDS), elements)


@pytest.mark.parametrize("name", ["check_waits", "check_overlaps", "check_refusals"])
def test_segments(name):
    getattr(segments, name)("cuda:0")


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_segments_of_a_million_elements_have_the_bits_of_the_host(dtype):
    rng = np.random.default_rng(12)
    host = (rng.standard_normal(1_000_000) * 1000).astype(dtype)
    for indices in (np.unique(rng.integers(0, host.size, 10_000)), np.arange(0, host.size, 100), [0], [0, 999_999]):
        for name in ("add", "maximum", "multiply", "subtract"):
            found = getattr(ta, name).reduceat(ta.asarray(host, device="cuda"), indices)
            want = getattr(ta, name).reduceat(ta.asarray(host, device="cpu"), indices)
            assert segments.same(ta.to_numpy(found), ta.to_numpy(want)), (name, len(indices))


@pytest.mark.parametrize("bins", [1, 7, 1000, 1_000_000])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_many_programs_meet_at_few_places(bins, dtype):
    """Counts, largest and smallest elements of ten million, with NaN of both signs: nothing is lost."""
    rng = np.random.default_rng(bins)
    places = rng.integers(0, bins, 10_000_000)
    values = rng.integers(-(10**6), 10**6, places.size).astype(dtype)
    if dtype.startswith("float"):
        values[rng.integers(0, values.size, 3)] = np.copysign(np.nan, [1, -1, 1])
    there, given = ta.asarray(places, device="cuda"), ta.asarray(values, device="cuda")
    names = ("maximum", "minimum") if dtype.startswith("float") else ("add", "maximum", "minimum", "bitwise_xor")
    for name in names:
        host = np.zeros(bins, dtype)
        with np.errstate(all="ignore"):
            getattr(np, name).at(host, places, values)
        for _ in range(2):
            x = ta.zeros(bins, dtype=dtype, device="cuda")
            getattr(ta, name).at(x, there, given)
            np.testing.assert_array_equal(ta.to_numpy(x), host, err_msg=name)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("check_search", (51, CASES // 2, 60)),
        ("check_search", (52, CASES // 8, 30_000)),
        ("check_buckets", (53, CASES // 8, 30_000, 1000, 200_000)),
        ("check_buckets", (54, CASES // 100, 3_000_000, 1 << 20, 5_000_000)),
        ("check_last_bucket", ()),
        ("check_names", ()),
        ("check_counts", (53, CASES // 4, 200)),
        ("check_counts", (54, CASES // 16, 100_000)),
        ("check_refusals", ()),
        ("check_bins", ()),
        ("check_known_edges", ()),
        ("check_many_bins", (1,)),
        ("check_many_bins", (132,)),
        ("check_gradients", ()),
    ],
)
def test_searches_and_histograms(name, arguments):
    getattr(histograms, name)("cuda:0", *arguments)


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
@pytest.mark.parametrize("size", [1, 1000, 10_000_000])
def test_many_searches(dtype, size):
    rng = np.random.default_rng(size)
    host, values = (
        np.sort(rng.integers(0, size, size)).astype(dtype),
        rng.integers(-2, size + 2, 3_000_001).astype(dtype),
    )
    for side in ("left", "right"):
        found = ta.searchsorted(ta.asarray(host, device="cuda"), ta.asarray(values, device="cuda"), side=side)
        np.testing.assert_array_equal(ta.to_numpy(found), np.searchsorted(host, values, side))


@pytest.mark.parametrize("bins", [3, 1000, 3_000_000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_have_the_bits_of_the_host(bins, dtype):
    rng = np.random.default_rng(bins)
    places, values = rng.integers(0, bins, 1_000_000), rng.standard_normal(1_000_000).astype(dtype)
    host = np.zeros(bins, dtype)
    np.add.at(host, places, values)
    for _ in range(2):
        x = ta.zeros(bins, dtype=dtype, device="cuda")
        ta.add.at(x, ta.asarray(places, device="cuda"), ta.asarray(values, device="cuda"))
        assert ta.to_numpy(x).tobytes() == host.tobytes()
