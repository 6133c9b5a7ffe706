"""Running sums and products, and differences, against Python numbers."""

from __future__ import annotations

import itertools
import math
import operator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.oracles.axes import (
    INTEGER_NAMES,
    NAMES,
    REAL_NAMES,
    accumulator,
    check_sum,
    expand,
    flat,
    pairs,
    python,
    same,
    wrapped,
)
from support.oracles.formats import kind_of

import tilearray as ta
from tilearray.errors import AxisError, DTypeError, OperandError, ShapeError

FLOATS = st.sampled_from(["float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64"])


def place_of(data: st.DataObject, ndim: int) -> int:
    assume(ndim)
    return data.draw(st.integers(-ndim, ndim - 1))


@given(pairs(INTEGER_NAMES), st.data(), st.booleans())
def test_running_sums_and_products_of_integers_are_exact_and_wrap(pair, data, initial):
    axis = place_of(data, pair.theirs.ndim)
    for mine, fold, start in ((ta.cumulative_sum, operator.add, 0), (ta.cumulative_prod, operator.mul, 1)):
        found = mine(pair.mine, axis=axis, include_initial=initial)
        name = found.dtype.name
        assert name == ("u" if pair.mine.dtype.kind == "u" else "") + "int64"

        def scanned(row, fold=fold, start=start, name=name):
            every = itertools.accumulate(row, fold, initial=start)
            return [wrapped(value, name) for value in every][0 if initial else 1 :]

        want = expand(scanned, pair.theirs, axis)
        assert found.shape == tuple(
            size + (initial and place == axis % pair.theirs.ndim) for place, size in enumerate(pair.theirs.shape)
        )
        assert flat(found) == list(want.ravel())


@given(pairs(FLOATS), st.data())
def test_running_sums_of_floats_are_rounded_once_each(pair, data):
    axis = place_of(data, pair.theirs.ndim)
    rows = np.moveaxis(python(pair.theirs), axis, -1).reshape(-1, pair.theirs.shape[axis]) if pair.theirs.size else []
    assume(all(abs(value) < 1e300 or not math.isfinite(value) for row in rows for value in row))
    found = ta.cumulative_sum(pair.mine, axis=axis)
    assert (found.shape, found.dtype) == (pair.mine.shape, pair.mine.dtype)
    mine = np.moveaxis(python(ta.to_numpy(found)), axis, -1).reshape(-1, pair.theirs.shape[axis]) if len(rows) else []
    for got, row in zip(mine, rows, strict=True):
        for position, value in enumerate(got):
            part = list(row[: position + 1])
            check_sum(value, part, found.dtype.name, accumulator(found.dtype.name))


def halves(values: list[float]) -> list[float]:
    """A chunk, as tilearray/geometry/scan.py says: the upper half is combined with the last of the lower half."""
    if len(values) < 2:
        return values
    half = 1 << (len(values) - 1).bit_length() - 1
    low, high = halves(values[:half]), halves(values[half:])
    return [*low, *[low[-1] + value for value in high]]


def joined(parts: list[list[float]]) -> list[float]:
    """Each part is combined with the last element of those before it."""
    found: list[float] = []
    for part in parts:
        found += [found[-1] + value for value in part] if found else part
    return found


def cut(values: list[float], size: int) -> list[list[float]]:
    return [values[first : first + size] for first in range(0, len(values), size)]


def in_order(values: list[float], lanes: int, segment: int, members: int) -> list[float]:
    """A row: chunks of a segment, segments of a block, and blocks are joined in the same way."""
    sizes = [segment * members, segment, lanes]

    def scan(values: list[float], sizes: list[int]) -> list[float]:
        return joined([scan(part, sizes[1:]) for part in cut(values, sizes[0])]) if sizes else halves(values)

    return scan(values, sizes)


@given(
    st.one_of(st.integers(1, 1100), st.integers(4000, 9000), st.integers(16_000, 70_000)),
    st.integers(1, 2),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["float32", "float64"]),
)
def test_elements_are_added_in_the_order_that_is_written_down(length, count, seed, name):
    x = np.random.default_rng(seed).normal(size=(length, count)).astype(name)
    rows, columns = ta.asarray(x.T.copy()), ta.asarray(x)
    most = {"float32": 128, "float64": 64}[name]
    for found, lanes in ((ta.cumulative_sum(rows, axis=1), most), (ta.cumulative_sum(columns, axis=0).mT, 1)):
        lanes = min(most if count == 1 else lanes, 1 << (length - 1).bit_length())
        segment, members = lanes * 16, 8
        if length <= 63 * lanes:
            segment = length
        if lanes == 1:  # there are few columns
            segment, members = math.ceil(length / max(1, length // 2048)), 1
        assert found.tolist() == [
            np.array(in_order(list(map(float, column)), lanes, segment, members)).astype(name).tolist()
            for column in x.T
        ]


@given(st.one_of(st.integers(1, 9000), st.just(300_000)), st.integers(0, 2**32 - 1))
def test_running_sums_of_numbers_that_are_not_negative_never_decrease(length, seed):
    rng = np.random.default_rng(seed)
    x = rng.random(length) ** 20 * 10.0 ** rng.integers(-10, 10, length)
    assert (np.diff(ta.to_numpy(ta.cumulative_sum(ta.asarray(x)))) >= 0).all()


@given(pairs(REAL_NAMES), st.data())
def test_running_extremes_are_those_of_python(pair, data):
    axis = place_of(data, pair.theirs.ndim)

    def running(row, better):
        def chosen(a, b):
            return a if a != a or (b == b and better(order(a), order(b))) else b

        return list(itertools.accumulate(row, chosen))

    for mine, better in ((ta.maximum, operator.gt), (ta.minimum, operator.lt)):
        found = mine.accumulate(pair.mine, axis)
        want = expand(lambda row, better=better: running(row, better), pair.theirs, axis)
        assert (found.shape, found.dtype) == (pair.mine.shape, pair.mine.dtype)
        assert repr(flat(found)) == repr(list(want.ravel()))


def order(value: float) -> tuple[float, float]:
    """Floats in the order of IEEE 754, in which -0.0 is below 0.0."""
    return value, math.copysign(1, value)


def test_scans_with_an_initial_value_and_a_dtype():
    x = ta.asarray([[1.5, 2], [3, 4]], dtype="bfloat16")
    assert ta.cumulative_prod(x, axis=1, include_initial=True).tolist() == [[1, 1.5, 3], [1, 3, 12]]
    assert ta.cumulative_sum(ta.asarray([True, True])).dtype == ta.int64
    assert ta.cumulative_sum(x, axis=0, dtype="float64").dtype == ta.float64
    assert ta.cumulative_sum(ta.asarray([100, 100], dtype="int8"), dtype="int8").tolist() == [100, 200 - 256]
    assert ta.cumulative_sum(ta.ones(1000, dtype="float16"))[-1].item() == 1000
    assert ta.cumulative_sum(ta.ones(300, dtype="bfloat16"))[-1].item() == 300
    assert ta.cumulative_sum(ta.zeros((2, 0)), axis=1, include_initial=True).tolist() == [[0], [0]]
    with ta.semantics("triton"):
        assert ta.cumulative_sum(ta.asarray([1], dtype="uint8")).dtype == ta.uint32


@given(pairs(NAMES), st.data(), st.integers(0, 3))
def test_differences_are_those_of_neighbours(pair, data, n):
    name = pair.theirs.dtype.name
    axis = place_of(data, pair.theirs.ndim)
    if name == "bool":
        assert ta.diff(pair.mine, axis=axis, n=n).tolist() == np.diff(pair.theirs, n=n, axis=axis).tolist()
        return
    want = pair.mine
    for _ in range(n):
        upper, lower = (np.moveaxis(ta.to_numpy(want), axis, 0)[s] for s in (slice(1, None), slice(-1)))
        want = ta.asarray(np.moveaxis(upper, 0, axis).copy()) - ta.asarray(np.moveaxis(lower, 0, axis).copy())
    found = ta.diff(pair.mine, axis=axis, n=n)
    assert (found.shape, found.dtype.name) == (want.shape, name)
    if kind_of(name) == "int":
        numbers = expand(lambda row: differences(row, n), pair.theirs, axis)
        assert flat(found) == [wrapped(value, name) for value in numbers.ravel()]
    assert all(map(same, flat(found), flat(want)))


def differences(row: list[int], n: int) -> list[int]:
    for _ in range(n):
        row = [b - a for a, b in itertools.pairwise(row)]
    return row


def test_diff_with_prepend_and_append():
    x = ta.asarray([[1, 4], [9, 16]])
    before, after = ta.zeros((2, 1), dtype="int64"), ta.asarray([[20, 30], [40, 50]])
    assert ta.diff(x, prepend=before).tolist() == [[1, 3], [9, 7]]
    assert ta.diff(x, prepend=before, n=0).tolist() == np.diff(ta.to_numpy(x), prepend=7, n=0).tolist() == x.tolist()
    assert ta.diff(x, append=after, n=2).tolist() == np.diff([[1, 4, 20, 30], [9, 16, 40, 50]], n=2).tolist()
    assert ta.diff(x, axis=0, prepend=x[:1], append=x[:1]).tolist() == [[0, 0], [8, 12], [-8, -12]]
    assert ta.diff(x, n=5).shape == (2, 0)


X = ta.asarray([[1.0, 2.0], [3.0, 4.0]])
ERRORS = [
    (lambda: ta.cumulative_sum({1}), OperandError, r"cumulative_sum: expected a tilearray Array, got set"),
    (lambda: ta.cumulative_sum(X), ShapeError, r"cumulative_sum: expected axis= for an array of 2 axes.*axis=-1"),
    (lambda: ta.cumulative_prod(ta.asarray(1)), ShapeError, r"cumulative_prod: expected axis= for an array of 0 axes"),
    (lambda: ta.cumulative_sum(X, axis=2), AxisError, r"cumulative_sum: expected -2 <= axis < 2, got axis 2"),
    (
        lambda: ta.cumulative_sum(X.astype("float8_e3m4"), axis=0),
        DTypeError,
        r"cumulative_sum: float8_e3m4 is",
    ),
    (lambda: ta.diff(X, n=-1), ShapeError, r"diff: expected n >= 0, got -1; write n=1"),
    (lambda: ta.diff(X, n=1.5), ShapeError, r"diff: expected n as an int, got float"),
    (lambda: ta.diff(X, axis=-3), AxisError, r"diff: expected -2 <= axis < 2, got axis -3"),
    (lambda: ta.diff(ta.asarray(1.0)), AxisError, r"diff: expected no axis"),
    (lambda: ta.diff(X, prepend=X[0]), ShapeError, r"diff: expected prepend .* but 1, got \(2,\)"),
    (lambda: ta.diff("abc"), OperandError, r"diff: expected a tilearray Array, got str"),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS, ids=[message for *_, message in ERRORS])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert type(caught.value) is error


@pytest.mark.parametrize(("shape", "axis"), [((100,), 0), ((1000,), 0), ((3, 129), 1), ((20, 70), 0), ((20, 70), 1)])
def test_a_short_scan_does_not_depend_on_calls_before_it(shape, axis):
    x, bad = ta.ones(shape), ta.full(shape, math.nan)
    want = np.cumsum(np.ones(shape, np.float32), axis=axis)
    for _ in range(3):
        assert ta.all(ta.isnan(ta.cumulative_sum(bad, axis=axis)))
        assert np.array_equal(ta.to_numpy(ta.cumulative_sum(x, axis=axis)), want)


def test_threads_scan_short_arrays_at_once():
    def scan(number: int) -> bool:
        x = ta.full((3, 129), float(number))
        want = np.broadcast_to(number * np.arange(1, 130), (3, 129))
        return all(np.array_equal(ta.to_numpy(ta.cumulative_sum(x, axis=1)), want) for _ in range(50))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(scan, range(8)))


@given(st.data())
def test_a_scan_in_the_words_of_an_earlier_one_is_that_of_its_own_array(data):
    """After calls with other axes, dtypes, options and semantics."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    hosts = [rng.integers(-3, 4, (3, 4)).astype(dtype) for dtype in ("int8", "float32", "int64")] * 2
    for _ in range(12):
        host, axis = data.draw(st.sampled_from(hosts)), data.draw(st.sampled_from([0, 1, -1]))
        name, initial = data.draw(st.sampled_from(["sum", "prod"])), data.draw(st.booleans())
        dtype, semantics = (
            data.draw(st.sampled_from([None, "float64"])),
            data.draw(st.sampled_from(["triton", "array-api"])),
        )
        with ta.semantics(semantics):
            found = getattr(ta, f"cumulative_{name}")(ta.asarray(host), axis=axis, include_initial=initial, dtype=dtype)
            whole = getattr(ta, name)(ta.asarray(host), dtype=dtype)
        want = getattr(np, f"cum{name}")(host.astype("float64"), axis=axis)
        if initial:
            want = np.insert(want, 0, name == "prod", axis=axis)
        assert found.dtype == whole.dtype
        assert ta.to_numpy(found).tolist() == want.tolist()
