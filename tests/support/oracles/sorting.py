"""Sorts and sets of drawn arrays on a device, against NumPy's stable sorts, and the host."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np

import tilearray as ta
from support.oracles.formats import dtype_of
from support.oracles.indexing import bits
from tilearray.engine.caches import PLANS
from tilearray.functions import distinct, ordering, sort_keys
from tilearray.functions import largest as tops
from tilearray.geometry import sorting as geometry

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")
REAL = ("bool", *INTEGERS, *FLOATS)
SPECIAL = (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0)


def drawn(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Values of all bits, or few different ones, and of floats also zeros, infinities and NaNs of both signs."""
    if dtype == "bool":
        return rng.random(shape) < rng.random()
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        low, high = (max(info.min, -3), 4) if rng.random() < 0.3 else (info.min, info.max)
        return rng.integers(low, high, shape, dtype=dtype, endpoint=True)
    wide = np.float64 if dtype == "float64" else np.float32
    found = rng.standard_normal(shape).astype(wide) * wide(2.0) ** rng.integers(-9, 9, shape).astype(wide)
    if rng.random() < 0.3:
        found = np.rint(found)
    special = rng.random(shape) < rng.choice((0, 0.1, 0.6))
    with np.errstate(all="ignore"):
        return np.where(special, rng.choice(SPECIAL, shape).astype(wide), found).astype(dtype_of(dtype))


def comparable(host: np.ndarray) -> np.ndarray:
    """The same values in a dtype that NumPy orders."""
    return host if host.dtype.isbuiltin == 1 else host.astype(np.float32)


def order(host: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """The stable order of values along an axis: of those turned round, from the end, if they descend."""
    if not descending:
        return np.argsort(comparable(host), axis, kind="stable")
    turned = np.argsort(comparable(np.flip(host, axis)), axis, kind="stable")
    return host.shape[axis] - 1 - np.flip(turned, axis)


def view_of(rng: np.random.Generator, host: np.ndarray, device: Any) -> Any:
    """Values on a device, with permuted axes, gaps or reversed."""
    axes = tuple(int(axis) for axis in rng.permutation(host.ndim))
    step = int(rng.choice((1, 1, 2, -1)))
    back = tuple(np.argsort(axes).tolist())
    wide = np.zeros([size * abs(step) for size in host.transpose(axes).shape], host.dtype)
    wide[(slice(None, None, step),) * host.ndim] = host.transpose(axes)
    return ta.permute_dims(ta.asarray(wide, device=device)[(slice(None, None, step),) * host.ndim], back)


def check(host: np.ndarray, x: Any, axis: int | None, descending: bool, told: str = "") -> None:
    """Compare a sort along an axis, and its order, with NumPy's; bit by bit, whatever the bits of a NaN are."""
    flat, place = (host.reshape(-1), 0) if axis is None else (host, axis)
    want = order(flat, place, descending)
    found = ta.argsort(x, axis=axis, descending=descending)
    assert (found.dtype, found.shape, str(found.device)) == (ta.int64, flat.shape, str(x.device)), told
    np.testing.assert_array_equal(ta.to_numpy(found), want, told)
    found = ta.sort(x, axis=axis, descending=descending)
    assert (found.dtype, found.shape, found._signature.layout.contiguous) == (x.dtype, flat.shape, True), told
    assert bits(ta.to_numpy(found)) == bits(np.take_along_axis(flat, want, place)), told


def check_sorts(device: Any, seed: int, cases: int, elements: int) -> None:
    """Sort drawn views of all dtypes along drawn axes."""
    rng = np.random.default_rng(seed)
    for number in range(cases):
        dtype, axes = str(rng.choice(REAL)), int(rng.integers(1, 4))
        shape = tuple(int(rng.integers(0, max(2, round(elements ** (1 / axes)) + 1))) for _ in range(axes))
        host = drawn(rng, dtype, shape)
        axis = None if rng.random() < 0.1 else int(rng.integers(-axes, axes))
        descending = bool(rng.random() < 0.4)
        check(host, view_of(rng, host, device), axis, descending, f"#{number} {dtype} {shape} {axis} {descending}")


def check_lengths(device: Any, sizes: tuple[int, ...], dtypes: tuple[str, ...] = REAL) -> None:
    """Sort rows of sizes at which programs, blocks and words change, of all dtypes."""
    for number, size in enumerate(sizes):
        for dtype in dtypes:
            rng = np.random.default_rng((size, REAL.index(dtype)))
            shape = ((size,), (2, size), (size, 1))[number % 3]
            host = drawn(rng, dtype, shape)
            axis = 0 if shape[-1] == 1 else -1
            check(host, ta.asarray(host, device=device), axis, bool(number % 2), f"{dtype} {shape}")


def check_sorts_again(device: Any, shape: tuple[int, ...], dtypes: tuple[str, ...]) -> None:
    """Sort arrays of one signature, which begin at several places: only the first sort finds out what it launches."""
    for dtype in dtypes:
        hosts = drawn(np.random.default_rng((*shape, REAL.index(dtype))), dtype, (3, *shape))
        arrays, found = ta.asarray(hosts, device=device), []
        PLANS.clear()
        for number, host in enumerate(hosts):
            with mock.patch.object(ordering, "_rows_of", wraps=ordering._rows_of) as rows:
                before = device.backend.launches
                check(host, arrays[number], -1, False, f"{dtype} {shape} #{number}")
                check(host, arrays[number], len(shape) - 1, True, f"{dtype} {shape} #{number} descending")
                found.append((rows.call_count, device.backend.launches - before))
        launches = found[0][1]
        assert found == [(4, launches), (0, launches), (0, launches)]


def check_tops(device: Any, seed: int, cases: int, elements: int) -> None:
    """The first elements of drawn views of all dtypes, against the beginning of NumPy's stable order."""
    rng = np.random.default_rng(seed)
    for number in range(cases):
        dtype, axes = str(rng.choice(REAL)), int(rng.integers(1, 3))
        shape = [int(rng.integers(1, max(2, round(elements ** (1 / axes)) + 1))) for _ in range(axes)]
        if rng.random() < 0.5:
            shape[int(rng.integers(0, axes))], axes = elements, 1
            shape = [elements] if rng.random() < 0.5 else [1, elements, 1]
        host, axis, largest = drawn(rng, dtype, tuple(shape)), int(np.argmax(shape)), bool(rng.random() < 0.5)
        k = min(shape[axis], int(2 ** rng.uniform(0, np.log2(elements))))
        told = f"#{number} {dtype} {shape} {k} of axis {axis}, largest {largest}"
        want = order(host, axis, largest).take(np.arange(k), axis)
        found = ta.top_k(view_of(rng, host, device), k, axis, largest=largest)
        assert (found.indices.dtype, str(found.indices.device)) == (ta.int64, str(device)), told
        np.testing.assert_array_equal(ta.to_numpy(found.indices), want, told)
        assert bits(ta.to_numpy(found.values)) == bits(np.take_along_axis(host, want, axis)), told


def check_tops_of_rows(device: Any, seed: int, cases: int, elements: int) -> None:
    """The first elements of several rows, by groups of neighbours, of which many have equal elements or NaN alone."""
    rng = np.random.default_rng(seed)
    for number in range(cases):
        dtype, extent = str(rng.choice(REAL)), int(rng.integers(elements // 2, elements))
        rows = tuple(int(size) for size in rng.integers(1, 4, int(rng.integers(1, 3))))
        host = drawn(rng, dtype, (2, *rows, extent))
        if dtype not in INTEGERS and dtype != "bool" and rng.random() < 0.3:
            host[rng.random(host.shape) < 0.98] = np.nan
        largest, k = bool(rng.random() < 0.5), int(rng.integers(1, 2 + extent // 100))
        want = order(host, -1, largest)[..., :k]
        with mock.patch.object(tops, "MANY", 0), mock.patch.object(tops, "_of_groups", wraps=tops._of_groups) as groups:
            found = ta.top_k(view_of(rng, host, device), k, largest=largest)
        told = f"#{number} {dtype} {host.shape} {k}, largest {largest}"
        assert groups.call_count == tops._is_grouped(extent, k), told
        np.testing.assert_array_equal(ta.to_numpy(found.indices), want, told)
        assert bits(ta.to_numpy(found.values)) == bits(np.take_along_axis(host, want, -1)), told


def check_tops_are_not_waited_for(device: Any) -> None:
    """The first elements of short rows, which are taken at indices of which none is reported to be outside."""
    host = drawn(np.random.default_rng(1), "float32", (3, 50))
    with mock.patch.object(device.backend.index_errors, "take", side_effect=AssertionError):
        found = ta.top_k(ta.asarray(host, device=device), 4)
    want = order(host, 1, True)[:, :4]
    np.testing.assert_array_equal(ta.to_numpy(found.indices), want)
    assert bits(ta.to_numpy(found.values)) == bits(np.take_along_axis(host, want, 1))


# --- sets -------------------------------------------------------------------------------------------------------------

UNIQUE = ("unique_values", "unique_counts", "unique_inverse", "unique_all")


def any_drawn(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Values of any dtype that sets take; many are equal."""
    if dtype.startswith("complex"):
        real, imaginary = (drawn(rng, "float16", shape).astype(dtype).real for _ in range(2))
        found = np.empty(shape, dtype)
        found.real, found.imag = real, imaginary
        return np.where(rng.random(shape) < 0.5, found, np.roll(found, 1))
    return np.where(rng.random(shape) < 0.5, drawn(rng, dtype, shape), np.roll(drawn(rng, dtype, shape), 1))


def check_scanned_lengths(device: Any, lengths: tuple[int, ...], dtypes: tuple[str, ...]) -> None:
    """Sort rows of many blocks, in one sweep or with a scan of counts. No other test sorts rows of these lengths."""
    with mock.patch.object(geometry, "FEW_BLOCKS", 0):
        for most in (0, geometry.MOST_SWEPT):
            with mock.patch.object(geometry, "MOST_SWEPT", most):
                check_lengths(device, lengths, dtypes)


def check_sweeps(device: Any, size: int) -> None:
    """Sort rows of equal, sorted and few different elements in one sweep. No other test sorts rows of this length.

    Few programs count all digits, so that each counts those of several blocks.
    """
    from tilearray_cuda.kernels.schedules import partition  # here: other checks need no backend

    rng = np.random.default_rng(size)
    rows = np.full(size, 7), np.arange(size), np.arange(size)[::-1], rng.choice([3, 2**20, -1], size)
    with mock.patch.object(geometry, "FEW_BLOCKS", 0), mock.patch.object(partition, "COUNTING", 2):
        assert geometry.is_swept(1, size, 4)
        for number, host in enumerate(rows):
            host = host.astype("int32")
            check(host, ta.asarray(host, device=device), -1, bool(number % 2), f"row {number}")


def check_sets(device: Any, seed: int, cases: int, elements: int) -> None:
    """Distinct elements, and members, of drawn views of all dtypes."""
    rng = np.random.default_rng(seed)
    for number in range(cases):
        dtype, axes = str(rng.choice((*REAL, "complex64", "complex128"))), int(rng.integers(1, 3))
        shape = tuple(int(rng.integers(0, max(2, round(elements ** (1 / axes)) + 1))) for _ in range(axes))
        host = any_drawn(rng, dtype, shape)
        mine, theirs, told = view_of(rng, host, device), ta.asarray(host, device="cpu"), f"#{number} {dtype} {shape}"
        name = str(rng.choice(UNIQUE))
        _alike(getattr(ta, name)(mine), getattr(ta, name)(theirs), f"{told} {name}")
        others = any_drawn(rng, dtype, (int(rng.integers(0, 9)),))
        others = np.concatenate([host.reshape(-1)[::3], others]) if rng.random() < 0.8 else others
        if dtype in INTEGERS:
            others = others.astype(rng.choice(INTEGERS))
        invert = bool(rng.random() < 0.3)
        found = [ta.isin(x, ta.asarray(others, device=x.device), invert=invert) for x in (mine, theirs)]
        _alike(found[0], found[1], f"{told} isin {others.dtype}")


def check_sets_again(device: Any, shape: tuple[int, ...], dtypes: tuple[str, ...]) -> None:
    """Distinct elements of arrays of one signature: only the first call of each function sorts by `sorted_along`."""
    for dtype in dtypes:
        hosts = any_drawn(np.random.default_rng((*shape, 3)), dtype, (3, *shape))
        hosts[1] = hosts[1, ..., :1]  # few elements differ
        there, here = ta.asarray(hosts, device=device), ta.asarray(hosts, device="cpu")
        PLANS.clear()
        for number in range(3):
            with mock.patch.object(distinct, "sorted_along", wraps=distinct.sorted_along) as sorting:
                for name in ("unique_values", "unique"):  # NaNs differ, or are equal
                    found, wanted = (getattr(ta, name)(x[number]) for x in (there, here))
                    _alike(found, wanted, f"{dtype} {shape} #{number} {name}")
            assert sorting.call_count == (0 if number else 2)


def _alike(found: Any, wanted: Any, told: str, signs: bool = True) -> None:
    """Compare the parts of results bit by bit, but for those of NaNs, and for signs of zeros if they do not count."""
    pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
    for mine, theirs in pairs:
        here, there = comparable(ta.to_numpy(mine)), comparable(ta.to_numpy(theirs))
        assert (mine.dtype, here.shape) == (theirs.dtype, there.shape), told
        np.testing.assert_array_equal(here, there, told)
        if here.dtype.kind == "f" and signs:
            np.testing.assert_array_equal(np.signbit(here[here == 0]), np.signbit(there[there == 0]), told)


def check_near_integers(device: Any, size: int) -> None:
    """Distinct integers that are marked, since they are near each other, at both ends of a dtype; and all others."""
    rng = np.random.default_rng(size)
    for dtype in INTEGERS:
        info = np.iinfo(dtype)
        for low, high in (
            (info.min, info.max),
            (info.min, info.min + 50),
            (info.max - 50, info.max),
            (max(info.min, -40), 40),
            (3, 3),
        ):
            host = rng.integers(low, high, size, dtype=dtype, endpoint=True)
            found = ta.unique_values(ta.asarray(host, device=device))
            assert found.dtype == host.dtype
            np.testing.assert_array_equal(ta.to_numpy(found), np.unique(host), f"{dtype} {low} {high}")


def check_few_near_integers(device: Any) -> None:
    """The same of few elements: those of 8 bits, and those of 32 and 64 bits that are near, are marked as many are."""
    with (
        mock.patch.object(distinct, "MARKED", 1),
        mock.patch.object(sort_keys, "SAMPLE", 40),
        mock.patch.object(distinct, "compressed", wraps=distinct.compressed) as chosen,
    ):
        check_near_integers(device, 300)
    assert chosen.call_count == 5 * 2 + 4 * 4


def check_far_integers(device: Any, size: int) -> None:
    """Distinct integers of 64 bits that are far apart: the sample that tells so is the one that the sort needs."""
    rng = np.random.default_rng(size)
    host = rng.choice(rng.integers(-(2**62), 2**62, size // 2), size)
    for mended in (size, size + 1):
        with (
            mock.patch.object(distinct, "MARKED", 1),
            mock.patch.multiple(ordering, NARROWED=size, MENDED=mended, SAMPLES=2),
            mock.patch.object(sort_keys, "SAMPLE", 128),
            mock.patch.object(sort_keys, "_turning", wraps=sort_keys._turning) as sampling,
        ):
            found = ta.unique_values(ta.asarray(host, device=device))
        np.testing.assert_array_equal(ta.to_numpy(found), np.unique(host))
        assert sampling.call_count == 1


def check_integers_in_runs(device: Any, size: int, bits: int) -> None:
    """Distinct integers that are sorted but for their lowest bits, at both ends of a dtype: all, or some repeated."""
    rng = np.random.default_rng(size)
    for dtype in ("int64", "uint64") if bits < 32 else ("int32", "uint32", "int64", "uint64"):
        info = np.iinfo(dtype)
        wide = bits if info.bits == bits else min(bits, 31)  # a range of 64-bit integers is known from a sample
        for low in {info.min, info.max - 2**wide + 1, max(info.min, -(2 ** (wide - 1)) - 3)}:
            host = rng.integers(low, low + 2**wide - 1, size, dtype=dtype, endpoint=True)
            _check_in_runs(device, host, False)
            _check_in_runs(device, np.concatenate([host[: size // 4], rng.choice(host[: size // 9], size)]), False)
    host[size // 5 : size // 2] = host[0]
    _check_in_runs(device, host, True)


def _check_in_runs(device: Any, host: np.ndarray, has_long_run: bool) -> None:
    """The distinct ones of many integers; those of a long run that a sample does not see are sorted at last."""
    with (
        mock.patch.multiple(distinct, MARKED=1, MOST_MARKS=1, IN_RUNS=1),
        mock.patch.multiple(sort_keys, SAMPLE=128, LONGEST=host.size // 4 if has_long_run else host.size),
        mock.patch.object(distinct, "_has_long_run", return_value=False),
        mock.patch.object(distinct, "_integers_in_runs", wraps=distinct._integers_in_runs) as in_runs,
        mock.patch.object(distinct, "sorted_along", wraps=distinct.sorted_along) as in_order,
    ):
        sort_keys.counting_distinct.cache_clear()  # the longest run is part of its kernel
        found = ta.unique_values(ta.asarray(host, device=device))
    sort_keys.counting_distinct.cache_clear()
    assert (found.dtype, in_runs.call_count, in_order.call_count) == (host.dtype, 1, has_long_run)
    np.testing.assert_array_equal(ta.to_numpy(found), np.unique(host), f"{host.dtype} {host.min()} {host.max()}")


# --- wide keys --------------------------------------------------------------------------------------------------------

WIDE = (
    "few",
    "full",
    "unsigned",
    "normal",
    "special",
    "same",
    "clusters",
    "repeats",
    "hidden",
    "linear",
    "hidden linear",
)


def check_wide(device: Any, kind: str, size: int) -> None:
    """Rows of 64 bits: keys are narrowed, few digits are sorted by, or runs are too long for that."""
    rng = np.random.default_rng(size)
    host = wide_drawn(rng, kind, size)
    x = ta.asarray(host, device=device)
    for descending in (False, True):
        wanted, told = order(host, 0, descending), f"{kind} {size} {descending}"
        found = ta.to_numpy(ta.sort(x, descending=descending))
        np.testing.assert_array_equal(found.view("u8"), host[wanted].view("u8"), told)
        np.testing.assert_array_equal(ta.to_numpy(ta.argsort(x, descending=descending)), wanted, told)


def check_wide_short(device: Any, kind: str) -> None:
    """The same of a short row: it is looked at as a long one is, and of most kinds short runs are sorted at last."""
    with (
        mock.patch.multiple(ordering, NARROWED=4100, MENDED=4100, SAMPLES=2, LINEAR=0 if "linear" in kind else 4),
        mock.patch.multiple(sort_keys, SAMPLE=128, SAMPLES=2),
        mock.patch.object(ordering, "_unless_cut", wraps=ordering._unless_cut) as mend,
    ):
        check_wide(device, kind, 4500)
    assert mend.call_count == {"few": 0, "same": 0, "repeats": 0, "clusters": 2}.get(kind, 4)  # words hold few bits


def check_linear(device: Any) -> None:
    """Keys of floats are made linear if the range is not too wide for the distances, and all of it can be scaled."""
    rng = np.random.default_rng(8)
    near, few = rng.uniform(-3, 5, 5000), (np.arange(5000) == 4321)
    turned = sort_keys.turned_by(ta.float64, False)
    refused = [np.where(few, odd, near) for odd in (np.inf, -np.inf, np.nan, 1e12)]
    refused += [near * 1e-300, near * 1e308, rng.standard_cauchy(5000) ** 5]
    with mock.patch.multiple(sort_keys, SAMPLE=128, SAMPLES=2):
        for number, host in enumerate((near, 1e200 * near, rng.standard_normal(5000), *refused)):
            x = ta.asarray(host, device=device)
            keys = ta.to_numpy(sort_keys.sampled(ta.reshape(x, (1, -1)), 2)[0])
            with np.errstate(all="ignore"):
                found = sort_keys.linear(x, turned._replace(base=number, bits=60), keys)  # as keys may be narrowed
            assert (found is None) == (number > 2), number
            if found is not None:
                assert (found.form, found.bits, found.exact()) == ("linear", 32, turned)
                assert np.abs((host - found.center) * found.scale).max() < 2**31


def wide_drawn(rng: np.random.Generator, kind: str, size: int) -> np.ndarray:
    """Values of a kind; the `hidden` ones are long runs between those elements that are looked at."""
    info = np.iinfo("int64")
    full = rng.integers(info.min, info.max, size)
    step = (size // (sort_keys.SAMPLES * sort_keys.SAMPLE) - 1) | 1
    is_hidden = np.arange(size) % step > 0
    match kind:
        case "few":
            return rng.integers(-500, 500, size)
        case "unsigned":
            return full.view("uint64")
        case "normal":
            return rng.standard_normal(size)
        case "special":
            found = rng.standard_normal(size)
            found[rng.choice(np.flatnonzero(is_hidden), 4 * len(SPECIAL))] = np.tile(SPECIAL, 4)
            return found
        case "same":
            return np.full(size, -7)
        case "clusters":
            return rng.integers(0, 40, size) * 2**55 + rng.integers(0, 2**30, size)
        case "repeats":
            return rng.choice(full[: size // 30], size)
        case "linear":
            found = rng.uniform(-1, 1, size)
            near = rng.choice(np.flatnonzero(is_hidden)[1:], 300, replace=False)
            found[near] = np.nextafter(found[near - 1], rng.choice([-9, 9], near.size))
            found[near[:12]] = np.tile([0.0, -0.0, 5e-324, -5e-324], 3)
            return found
        case "hidden linear":
            return np.where(is_hidden, 1e-12 * rng.standard_normal(size), rng.uniform(3, 4, size) - 3.5)
        case "hidden":
            return np.where(is_hidden, (full >> 56 << 56) + rng.integers(0, 2**30, size), full)
        case _:
            return full


# --- NumPy's names ----------------------------------------------------------------------------------------------------

SETS = ("union1d", "intersect1d", "setdiff1d", "setxor1d")
QUANTILES = ("median", "nanmedian", "quantile", "nanquantile", "percentile", "nanpercentile")


def check_names(device: Any, seed: int, cases: int, elements: int) -> None:
    """NumPy's sets, orders by several keys, and quantiles."""
    rng = np.random.default_rng(seed)
    for number in range(cases):
        dtype = str(rng.choice((*REAL, "float32", "float64")))
        shape = tuple(int(rng.integers(1, max(2, round(elements**0.5) + 1))) for _ in range(2))
        hosts = [any_drawn(rng, dtype, shape) for _ in range(2)]
        places = [[ta.asarray(host, device=where) for host in hosts] for where in (device, "cpu")]
        name, told = str(rng.choice(SETS)), f"#{number} {dtype} {shape}"
        _alike(*[getattr(ta, name)(*given) for given in places], f"{told} {name}", False)
        flags = (rng.random(3) < 0.5).tolist()
        equal_nan = bool(rng.random() < 0.5) or not flags[0]  # without places, NumPy's sort is not stable
        _alike(*[ta.unique(given[0], *flags, equal_nan=equal_nan) for given in places], f"{told} unique {flags}", False)
        axis = int(rng.integers(0, 2))
        _alike(*[ta.lexsort(given, axis=axis) for given in places], f"{told} lexsort")
        _check_quantile(rng, places, told)


def _check_quantile(rng: np.random.Generator, places: Any, told: str) -> None:
    """Compare a quantile with the host's, which NumPy computes in other steps."""
    name, axis = str(rng.choice(QUANTILES)), [None, 0, 1, (0, 1)][int(rng.integers(0, 4))]
    keepdims = bool(rng.random() < 0.5)
    scale = 100 if name.endswith("percentile") else 1
    q = (
        []
        if name.endswith("median")
        else [[0.25 * scale, 0.3 * scale, [0.0, 0.9 * scale, scale]][int(rng.integers(0, 3))]]
    )
    integers = places[0][0].dtype.kind in "iu"  # NumPy subtracts integers in their dtype, which may overflow
    given = [x[0] >> 2 if integers else x[0] for x in places]
    if given[0].dtype == ta.bool:  # of which NumPy has no quantiles between elements
        given = [x.astype("float32") for x in given]
    mine, theirs = [getattr(ta, name)(x, *q, axis=axis, keepdims=keepdims) for x in given]
    told = f"{told} {name} {q} {axis} {keepdims}"
    assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), told
    here, there = (ta.to_numpy(x).astype(np.float64) for x in (mine, theirs))
    unit = {1: 0.13, 2: 0.008, 4: 2e-6, 8: 1e-14}[mine.dtype.itemsize]
    np.testing.assert_allclose(here, there, unit, unit * (1 if mine.dtype.itemsize < 8 else 1e-2), err_msg=told)


def check_complex_medians(device: Any) -> None:
    """Medians of complex numbers in NumPy's order, in which a part that is NaN counts most."""
    rng = np.random.default_rng(6)
    odd = np.array([np.nan, complex(1, np.nan), complex(np.nan, 2), complex(np.nan, np.nan)])
    for shape, axis, has_nan in (((7,), None, False), ((4, 6), 1, True), ((3, 4, 5), (0, 2), True), ((0, 2), 0, False)):
        for dtype in ("complex64", "complex128"):
            host = (rng.integers(-3, 3, shape) + 1j * rng.integers(-3, 3, shape)).astype(dtype)
            if has_nan:
                host[..., 0] = rng.choice(odd, shape[:-1])
            mine, theirs = (ta.asarray(host, device=place) for place in (device, "cpu"))
            for name in ("median", "nanmedian"):
                found = [getattr(ta, name)(x, axis=axis, keepdims=True) for x in (mine, theirs)]
                _alike(found[0], found[1], f"{name} {dtype} {shape}")
