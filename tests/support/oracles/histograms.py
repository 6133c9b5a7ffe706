"""Binary search and histograms on drawn arrays, against NumPy."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

import tilearray as ta
from support.oracles.formats import dtype_of
from support.oracles.indexing import bits
from support.oracles.reductions import drawn_view
from support.oracles.sorting import drawn as drawn_of_all
from tilearray.engine import caches
from tilearray.engine.execute import run_fixed
from tilearray.functions import binary_search
from tilearray.geometry import selection
from tilearray.geometry.layout import Layout
from tilearray.numpy_names import counting, histograms

DTYPES = (
    "bool", "int8", "uint8", "int16", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64",
    "float8_e5m2",
)  # fmt: skip


def _drawn(rng: np.random.Generator, dtype: str, shape: Any) -> np.ndarray:
    """Few values, so that many are equal; NaN, infinities and zeros of both signs among floats."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if not dtype.startswith(("float", "bfloat")):
        low = 0 if dtype.startswith("u") else -20
        return rng.integers(low, 40, shape).astype(dtype)
    found = rng.integers(-20, 20, shape) / 2
    found = np.where(rng.random(shape) < 0.1, rng.choice([np.nan, np.inf, -np.inf, -0.0], shape), found)
    return found.astype(np.float32).astype(dtype_of(dtype))


def _in_numpy(array: np.ndarray) -> np.ndarray:
    """The same values in a dtype that NumPy orders."""
    narrow = array.dtype.kind == "V" or (array.dtype.kind == "f" and array.dtype.itemsize == 1)
    return array.astype(np.float32) if narrow else array


def check_search(device: Any, seed: int, count: int, elements: int) -> None:
    """Compare `searchsorted` with NumPy's: dtypes, sides, sorters, layouts, numbers, and arrays without elements."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        dtype = str(rng.choice(DTYPES))
        other = str(rng.choice([dtype, dtype, dtype, "float32"]))
        host = _drawn(rng, dtype, int(rng.integers(0, elements)))
        shape = tuple(int(size) for size in rng.integers(0 if rng.random() < 0.1 else 1, 20, int(rng.integers(0, 3))))
        wanted, side = _drawn(rng, other, shape), str(rng.choice(["left", "right"]))
        plain = _in_numpy(host)
        order = np.argsort(plain, kind="stable")
        options: dict[str, Any] = {}
        if rng.random() < 0.4:
            ours = ta.asarray(host, device=device)
            options = {"sorter": ta.asarray(order.astype(str(rng.choice(["int64", "uint16"]))), device=device)}
        else:
            step = int(rng.choice([1, 2]))
            wide = np.repeat(host[order], step)
            ours = ta.asarray(wide, device=device)[::step]
        values = ta.asarray(wanted, device=device)
        state = rng.bit_generator.state
        values = drawn_view(rng, values)
        rng.bit_generator.state = state
        there = ta.to_numpy(drawn_view(rng, ta.asarray(wanted, device="cpu")))
        found = ta.searchsorted(ours, values, side=side, **options)
        assert found.device == ours.device
        expected = np.searchsorted(plain[order].astype(np.float64), _in_numpy(there).astype(np.float64), side)
        told = f"#{number} {dtype} {other} {host.size} {values.shape} {values.strides} {side}"
        assert bits(ta.to_numpy(found)) == bits(np.asarray(expected)), told


def check_buckets(device: Any, seed: int, count: int, elements: int, buckets: int, few: int) -> None:
    """Compare `searchsorted` and `isin` of many values with NumPy's: spread evenly or not, near, equal, and specials.

    From `few` values on, they are searched in `buckets` buckets.
    """
    rng = np.random.default_rng(seed)
    limits = {"BUCKETS": buckets, "MOST_BUCKETS": buckets, "FEW_VALUES": few, "FEW_SORTED": 1}
    with mock.patch.multiple(binary_search, **limits):
        for number in range(count):
            dtype = str(rng.choice(DTYPES))
            drawn = (_drawn, _spread, _even)[int(rng.integers(3))]
            host, wanted = drawn(rng, dtype, int(rng.integers(1, elements))), drawn(rng, dtype, (max(few, 99),))
            plain, values = np.sort(_in_numpy(host)), _in_numpy(wanted)
            ours, theirs = ta.asarray(plain.astype(host.dtype), device=device), ta.asarray(wanted, device=device)
            told = f"#{number} {dtype} {host.size} {drawn.__name__}"
            for side in ("left", "right"):
                found = ta.to_numpy(ta.searchsorted(ours, theirs, side=side))
                np.testing.assert_array_equal(found, np.searchsorted(plain, values, side), told)
            found = ta.to_numpy(ta.isin(theirs, ta.asarray(host, device=device)))
            np.testing.assert_array_equal(found, np.isin(values, _in_numpy(host)), told)


def _spread(rng: np.random.Generator, dtype: str, shape: Any) -> np.ndarray:
    """Values of all bits and of all magnitudes, with the least and the largest ones."""
    if dtype == "bool":
        return _drawn(rng, dtype, shape)
    if dtype.startswith(("float", "bfloat")):
        return drawn_of_all(rng, dtype, shape)
    limits = np.iinfo(dtype)
    shift = np.array(rng.integers(0, limits.bits), dtype)
    found = rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True) >> shift
    extremes = rng.choice(np.array([limits.min, limits.max], dtype), shape)
    return np.where(rng.random(shape) < 0.01, extremes, found)


def _even(rng: np.random.Generator, dtype: str, shape: Any) -> np.ndarray:
    """Floats that are spread evenly, a few of them without a bound, or else integers."""
    if not dtype.startswith(("float", "bfloat")):
        return _spread(rng, dtype, shape)
    found = rng.uniform(-rng.random(), 1, shape) * 10.0 ** rng.integers(-4, 4)
    return np.where(rng.random(shape) < rng.choice([0, 0.01]), np.inf, found).astype(dtype_of(dtype))


def check_division(device: Any) -> None:
    """Floats that are spread evenly are in buckets of equal width; others are by the upper bits of their keys."""
    rng = np.random.default_rng(7)
    some = rng.random(1000)
    evenly = some, some - 0.5, rng.integers(0, 9, 1000) * 1e30, some * 2.0**-1000
    otherwise = (
        np.exp(50 * some),
        np.append(some, np.inf),
        np.append(some, np.nan),
        np.zeros(9),
        (2 * some - 1) * 1.7e308,
    )
    for hosts, is_even in ((evenly, True), (otherwise, False)):
        for host in hosts:
            ordered = ta.sort(ta.asarray(host, device=device))
            with mock.patch.multiple(binary_search, BUCKETS=64, MOST_BUCKETS=64, FEW_VALUES=1, FEW_SORTED=1):
                found = binary_search._buckets_for(ordered, ta.broadcast_to(ordered[:1], (64,)))
            assert found is not None
            assert (found.rule[0].item() > 0) == is_even, host


def check_last_bucket(device: Any) -> None:
    """The largest key is in the last of the most buckets at most, where float32 has neighbours that are 1 apart."""
    rng, most = np.random.default_rng(8), binary_search.MOST_BUCKETS
    for dtype in ("float32", "float64"):
        for width in rng.uniform(0.5, 2, 50):
            host = np.linspace(0, width, 9).astype(dtype)
            keys = run_fixed(binary_search._keying(host.dtype), [ta.asarray(host, device=device)], None)
            memory = keys._view(Layout((1,), (0,)))
            rule = run_fixed(binary_search._dividing(host.dtype), [memory, host.size, most], None).item()
            assert most - 4 < int(host[-1] * host.dtype.type(rule)) < most, (dtype, width)


def check_names(device: Any) -> None:
    """Numbers, large integers, methods, and errors."""
    x = ta.asarray([10, 20, 20, 30], device=device)
    assert ta.searchsorted(x, 20).tolist() == 1
    assert x.searchsorted(20, side="right").tolist() == 3
    assert ta.searchsorted(x, ta.asarray([2.5, 20.5], device=device)).tolist() == [0, 3]
    large = ta.asarray([2**63, 2**64 - 1], dtype="uint64", device=device)
    assert ta.searchsorted(large, 2**64 - 1).tolist() == 1
    with pytest.raises(ta.DeviceError, match="searchsorted"):
        ta.searchsorted(x, ta.asarray([1], device="cpu"))
    with pytest.raises(ta.IndexingError, match=r"searchsorted: expected indices from 0 to 3 in sorter, got 0 to 4"):
        ta.searchsorted(x, 20, sorter=ta.asarray([0, 1, 2, 4], device=device))
    assert ta.digitize(ta.asarray([0.2, 6.4, 3.0], device=device), [0.0, 1.0, 2.5, 4.0]).tolist() == [1, 4, 3]
    for edges in ([0.0, 1.0, 2.5], [3.0, 2.0, 2.0, -1.0], [1], []):
        for right in (False, True):
            values = np.array([[-1.0, 0.0], [2.0, np.nan]], np.float32)
            theirs = np.array(edges, np.float64)
            for given in (theirs, *[ta.asarray(theirs, device=device)] * 2):  # edges there are traced the second time
                found = ta.digitize(ta.asarray(values, device=device), given, right)
                assert bits(ta.to_numpy(found)) == bits(np.digitize(values, theirs, right)), edges
    with pytest.raises(ta.OperandError, match="bincount: expected a mode, got 'any'; write mode='ordered'"):
        ta.bincount(x, mode="any")  # type: ignore[arg-type]
    for given in ([1, 3, 2], *[ta.asarray([1, 3, 2], device=device)] * 2):
        with pytest.raises(ta.ShapeError, match="digitize: expected bins that increase or decrease"):
            ta.digitize(x, given)


def check_counts(device: Any, seed: int, count: int, elements: int) -> None:
    """Compare `bincount` and `histogram` with NumPy's: counts, weights of integers, edges, ranges and densities."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        dtype = str(rng.choice(["int8", "uint8", "int16", "int32", "uint64", "float16", "float32", "float64", "bool"]))
        size = int(rng.integers(0, elements)) if rng.random() < 0.9 else 0
        host = np.nan_to_num(_drawn(rng, dtype, size).astype(np.float64), nan=3.0, posinf=9.0, neginf=-9.0)
        host = (host + (rng.random(size) if dtype.startswith("f") else 0)).astype(dtype)
        ours = ta.asarray(host, device=device)
        told = f"#{number} {dtype} {size}"
        if dtype in ("uint8", "uint64", "bool"):
            least = int(rng.integers(0, 60))
            whole = host.astype(np.int64)
            assert bits(ta.to_numpy(ta.bincount(ours, minlength=least))) == bits(np.bincount(whole, minlength=least))
            weights = rng.integers(-9, 9, size) if number % 2 else rng.standard_normal(size)
            found = ta.bincount(ours, ta.asarray(weights, device=device), least)
            np.testing.assert_array_equal(ta.to_numpy(found), np.bincount(whole, weights, least), err_msg=told)
            found = ta.bincount(ours, ta.asarray(weights, device=device), least, mode="atomic")
            np.testing.assert_allclose(ta.to_numpy(found), np.bincount(whole, weights, least), 1e-9, 1e-9, err_msg=told)
        options: dict[str, Any] = {}
        if rng.random() < 0.3:
            low = float(rng.integers(-9, 9))
            options["range"] = (low, low + float(rng.integers(0, 9)))
        bins: Any = 3000 if rng.random() < 0.2 else int(rng.integers(1, 30))
        if rng.random() < 0.3:
            bins = np.sort(rng.integers(-9, 20, int(rng.integers(2, 9)))).astype(str(rng.choice(["int64", "float32"])))
            options = {}
        plain = host.astype(np.uint8) if dtype == "bool" else host.astype(np.float32) if dtype == "float16" else host
        if size and rng.random() < 0.5:
            options["density"] = True
        given = bins
        if isinstance(bins, np.ndarray) and rng.random() < 0.5:
            given = ta.asarray(bins, device=device)
        with np.errstate(all="ignore"):
            expected, edges = np.histogram(plain, bins, **options)
        told = f"{told} {bins} {options}"
        counts, ours_edges = ta.histogram(ours.reshape(-1, 1) if size else ours, given, **options)
        kind = "float16" if dtype == "float16" else dtype if dtype.startswith("float") else "float32"
        wide = "float32" if kind == "float16" else kind
        assert bits(ta.to_numpy(counts)) == bits(expected.astype(wide) if "density" in options else expected), told
        edges = edges if isinstance(bins, np.ndarray) else edges.astype(kind)
        assert bits(ta.to_numpy(ours_edges)) == bits(edges), told
        weights = rng.integers(-5, 5, size).astype("int32")
        if not options.get("density"):
            found, _ = ta.histogram(ours, given, weights=ta.asarray(weights, device=device), **options)
            assert bits(ta.to_numpy(found)) == bits(np.histogram(plain, bins, weights=weights, **options)[0]), told


def check_bins(device: Any) -> None:
    """Counts of few and of many bins, of sizes around those of blocks and programs, of every dtype and layout."""
    weights = ta.asarray([np.inf, 2.5, -np.inf, 3.0], device=device)
    found, _ = ta.histogram(ta.asarray([0.0, 1.0, 2.0, 1.5], device=device), [-1, 0.5, 1.75, 4], weights=weights)
    assert found.tolist() == [np.inf, 5.5, -np.inf]  # NumPy subtracts running sums, which are NaN
    rng = np.random.default_rng(7)
    for dtype in ("bool", "uint8", "int16", "int32", "uint64"):
        for bins in (1, 2, 33, 256, 2047, 2049):
            if (bins > 2 and dtype == "bool") or (bins > 256 and dtype == "uint8"):
                continue
            for size in (1, 4095, 4097, 9000):
                host = rng.integers(0, bins, size).astype(dtype)
                wide = ta.asarray(np.repeat(host, 2), device=device)
                for ours in (ta.asarray(host, device=device), wide[::-2]):
                    expected = np.bincount(host, minlength=bins + 3)
                    assert bits(ta.to_numpy(ta.bincount(ours, minlength=bins + 3))) == bits(expected), (
                        dtype,
                        bins,
                        size,
                    )


def check_many_bins(device: Any, segments: int) -> None:
    """Counters of 16 bits, some of which are emptied: of one place and of both of a word, and elements beyond all."""
    rng = np.random.default_rng(8)
    patched = mock.patch.object(counting, "MANY", 1), mock.patch.object(selection, "PAIRED_SEGMENTS", segments)
    caches.PLANS.clear()
    with patched[0], patched[1]:
        for dtype, bins, size, few in (
            ("int64", 65_536, 90_001, (65_535,)),
            ("uint16", 65_536, 90_001, (0, 1, 40_000)),
            ("uint64", 20_000, 40_000, (19_999,)),
            ("int32", 8193, 16_384, range(8193)),
            ("uint8", 9000, 8193, range(256)),
            ("int64", 9000, 1, (8999,)),
        ):
            host = rng.choice(np.array(few), size).astype(dtype)
            host[rng.integers(0, size, size // 20)] = rng.choice(np.array(few))
            for given in (host, host[::-3]):
                for least in (0, 8193, bins):
                    found = ta.bincount(ta.asarray(given, device=device), minlength=least)
                    wanted = np.bincount(given.astype(np.int64), minlength=least)
                    assert bits(ta.to_numpy(found)) == bits(wanted), (dtype, bins, size, least)
        with pytest.raises(ta.ShapeError, match="no negative integers, got -2"):
            ta.bincount(ta.asarray([1, -2], device=device), minlength=65_536)
        host = rng.random(20_000)
        host[::2] = 0.5
        ours, edges = ta.asarray(host, device=device), np.sort(rng.random(10_001))
        for given, span in ((65_536, (0.25, 1)), (8192, (0, 1)), (8193, None), (edges, None)):
            found = ta.to_numpy(ta.histogram(ours, given, span)[0])
            np.testing.assert_array_equal(found, np.histogram(host, given, span)[0])
        found = ta.to_numpy(ta.histogram2d(ours, ours[::-1], (130, 70))[0])
        np.testing.assert_array_equal(found, np.histogram2d(host, host[::-1], (130, 70))[0])
    caches.PLANS.clear()


def check_known_edges(device: Any) -> None:
    """Edges that were found before serve other elements, also of more bins than are found without a guess."""
    rng = np.random.default_rng(12)
    for bins in (7, histograms.COMPARED_BINS + 1, histograms.MOST_EDGES + 1):
        for _ in range(2):
            host = rng.normal(size=500).astype("float32")
            found, edges = ta.histogram(ta.asarray(host, device=device), bins, (-1.0, 1.5))
            wanted, limits = np.histogram(host, bins, (-1.0, 1.5))
            np.testing.assert_array_equal(ta.to_numpy(found), wanted)
            np.testing.assert_array_equal(ta.to_numpy(edges), limits.astype("float32"))


def check_refusals(device: Any) -> None:
    """Errors name what was expected, and what to write."""
    x = ta.asarray([3.0, float("nan")], device=device)
    for act, error, message in (
        (lambda: ta.histogram(x), ta.ShapeError, r"histogram: autodetected range of \[nan, nan\] is not finite"),
        (lambda: ta.histogram(x[:1], "any"), ta.ShapeError, "histogram: 'any' is not a valid estimator for `bins`"),
        (lambda: ta.histogram(x, "fd", weights=x), ta.OperandError, "histogram: expected no weights for bins='fd'"),
        (lambda: ta.histogram(x, 0), ta.ShapeError, "histogram: `bins` must be positive"),
        (lambda: ta.histogram(x, [2, 1]), ta.ShapeError, "histogram: `bins` must increase monotonically"),
        (lambda: ta.bincount(x), ta.DTypeError, "bincount: expected integers, got float32; write x.astype"),
        (lambda: ta.bincount(ta.asarray([1, -2], device=device)), ta.ShapeError, r"no negative integers, got -2"),
        (lambda: ta.bincount(ta.asarray([1], device=device), minlength=-1), ta.ShapeError, "expected minlength >= 0"),
        (
            lambda: ta.bincount(ta.asarray([1, 2], device=device), x * 1j),
            ta.DTypeError,
            "bincount: expected real weights, got complex64; write weights=w.real",
        ),
        (
            lambda: ta.histogram2d(x[:1], x[:1], weights=x[:1] * 1j),
            ta.DTypeError,
            "histogram2d: expected real weights, got complex64",
        ),
    ):
        with pytest.raises(error, match=message):
            act()
    edges = ta.asarray([2.0, 1.0], device=device)
    with pytest.raises(ta.ShapeError, match="histogram: expected at least two edges of one axis that do not decrease"):
        ta.histogram(x, edges)
    assert ta.histogram_bin_edges(ta.asarray([1.0, 2.0, 2.5], device=device), bins=2).tolist() == [1.0, 1.75, 2.5]


def check_gradients(device: Any) -> None:
    """Sums of weights that are differentiated, and their gradients, are those of the host."""
    rng = np.random.default_rng(3)
    points, weights = rng.standard_normal((40, 2)), rng.standard_normal(40)
    functions: list[Any] = [
        lambda x, w: ta.histogram(x[:, 0], 5, weights=w)[0],
        lambda x, w: ta.histogram(x[:, 0], [-1.0, 0.0, 0.3, 2.0], density=True, weights=w)[0],
        lambda x, w: ta.histogram2d(x[:, 0], x[:, 1], 3, weights=w)[0],
        lambda x, w: ta.histogramdd(x, [2, 3], ((-1, 1), (-2, 2)), weights=w)[0],
        lambda x, w: ta.bincount(ta.astype(x[:, 0] > 0, "int64"), w),
    ]
    for function in functions:
        results: list[np.ndarray] = []
        for place in ("cpu", device):
            x, w = (ta.asarray(each, device=place) for each in (points, weights))
            found, pull = ta.vjp(lambda w, x=x, function=function: function(x, w), w)
            (gradient,) = pull(ta.astype(ta.reshape(ta.arange(found.size, device=place), found.shape), found.dtype))
            results += [ta.to_numpy(each.to_device("cpu")) for each in (found, gradient)]
        np.testing.assert_allclose(results[2], results[0], rtol=1e-12)
        np.testing.assert_allclose(results[3], results[1], rtol=1e-12, atol=1e-14)


def check_one_search(device: Any) -> None:
    """A histogram by weights that are differentiated finds the bins of its elements once, and no plain one runs."""
    points, weights = (ta.asarray(np.linspace(0, 1, 20, dtype="float32"), device=device) for _ in range(2))
    with mock.patch.object(histograms, "_bins", side_effect=histograms._bins) as search:
        found, _ = ta.vjp(lambda w: ta.histogram(points, 4, (0.0, 1.0), True, w)[0], weights)
        assert search.call_count == 1
        ta.vjp(lambda w: ta.histogram2d(points, points, 4, ((0.0, 1.0),) * 2, True, w)[0], weights)
        assert search.call_count == 3
    np.testing.assert_array_equal(
        ta.to_numpy(found), ta.to_numpy(ta.histogram(points, 4, (0.0, 1.0), True, weights)[0])
    )


def check_known_calls(device: Any) -> None:
    """A call that is known follows its elements, its words and the semantics."""
    rng = np.random.default_rng(12)
    for dtype in ("float32", "int64", "float16", "bool"):
        for _ in range(3):
            x, v = (np.sort(rng.integers(-9, 9, 50).astype(dtype)), rng.integers(-9, 9, (3, 7)).astype(dtype))
            ours, values = (ta.asarray(each, device=device) for each in (x, v))
            for side in ("left", "right"):
                assert ta.searchsorted(ours, values, side).tolist() == np.searchsorted(x, v, side).tolist()
                backwards = ta.asarray(x[::-1].copy(), device=device)[::-1]
                assert ta.searchsorted(backwards, values, side).tolist() == np.searchsorted(x, v, side).tolist()
            with pytest.raises(ta.ShapeError, match="expected side as 'left' or 'right', got 'up'"):
                ta.searchsorted(ours, values, "up")
            with pytest.raises(ta.ShapeError, match="expected a 1-d array"):
                ta.searchsorted(values, values)
            for bins, span in ((4, (0, 8)), (4, (0.0, 8.0)), (4, (-8.0, -0.0)), (4, (-8.0, 0.0)), (5, (0, 8))):
                counts, edges = ta.histogram(values, bins, span)
                wanted = np.histogram(v.astype(np.float32) if dtype == "float16" else v * 1, bins, span)
                assert counts.tolist() == wanted[0].tolist(), (dtype, bins, span)
                assert np.array_equal(np.signbit(ta.to_numpy(edges)), np.signbit(wanted[1])), span
                np.testing.assert_allclose(ta.to_numpy(edges), wanted[1], rtol=1e-3)
                edges[...] = 0  # its own memory
        for given in ([1.0], [1.0, 1.0], [-3.0, 0.0, 0.0, 5.0], [-3.0, np.inf]):
            wanted = np.histogram(v.astype(np.float32), given)
            assert ta.histogram(values, given)[0].tolist() == wanted[0].tolist(), (dtype, given)
        with pytest.raises(ta.ShapeError, match="max must be larger than min"):
            ta.histogram(values, 4, (8, 0))
    mixed = ta.asarray([1, 2], dtype="int32", device=device), ta.asarray([1, 2], dtype="uint32", device=device)
    for _ in range(2):
        assert ta.searchsorted(*mixed).tolist() == [0, 1]
        with ta.semantics("torch"), pytest.raises(ta.PromotionError, match="searchsorted"):
            ta.searchsorted(*mixed)
