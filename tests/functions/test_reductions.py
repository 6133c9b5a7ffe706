"""Reductions against Python numbers: exact integers, `math.fsum` and fractions; any views, axes and dtypes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.oracles.axes import (
    INTEGER_NAMES,
    NAMES,
    REAL_NAMES,
    accumulated,
    accumulator,
    axes_of,
    check_close,
    check_sum,
    flat,
    groups,
    pairs,
    same,
    special,
    wrapped,
)
from support.oracles.formats import STORAGE, kind_of

import tilearray as ta
from tilearray.errors import AxisError, DTypeError, OperandError, ShapeError

FLOATS = st.sampled_from(["float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64"])
COMPLEX = st.sampled_from(["complex64", "complex128"])


def part_of(name: str) -> str:
    return {"complex64": "float32", "complex128": "float64"}.get(name, name)


def widened(name: str, semantics: str = "array-api") -> str:
    """The dtype of a sum, by the standard's words."""
    default = 64 if semantics == "array-api" else 32
    if name == "bool":
        return f"int{default}"
    if kind_of(name) != "int":
        return name
    sign, bits = name.rstrip("0123456789"), int(name.lstrip("uint"))
    return f"{sign}{max(bits, default)}"


@given(pairs(), st.data(), st.booleans(), st.sampled_from(["array-api", "triton"]))
def test_shapes_and_dtypes(pair, data, keepdims, semantics):
    axis = data.draw(axes_of(pair.theirs.ndim))
    shape, _ = groups(pair.theirs, axis, keepdims)
    name = pair.theirs.dtype.name
    of_floats = name if kind_of(name) in ("float", "complex") else "float32"
    with ta.semantics(semantics):
        found = {
            ta.sum: widened(name, semantics),
            ta.prod: widened(name, semantics),
            ta.mean: of_floats,
            ta.var: part_of(of_floats),
            ta.std: part_of(of_floats),
            ta.all: "bool",
            ta.any: "bool",
            ta.count_nonzero: "int64",
        }
        for function, dtype in found.items():
            result = function(pair.mine, axis=axis, keepdims=keepdims)
            assert (result.shape, result.dtype.name) == (shape, dtype), function.__name__


@given(pairs(st.one_of(INTEGER_NAMES, st.just("bool"))), st.data(), st.booleans())
def test_sums_and_products_of_integers_are_exact_and_wrap(pair, data, keepdims):
    axis = data.draw(axes_of(pair.theirs.ndim))
    _, parts = groups(pair.theirs, axis, keepdims)
    dtype = widened(pair.theirs.dtype.name)
    found = flat(ta.sum(pair.mine, axis=axis, keepdims=keepdims))
    assert found == [wrapped(sum(part), dtype) for part in parts]
    found = flat(ta.prod(pair.mine, axis=axis, keepdims=keepdims))
    assert found == [wrapped(math.prod(part), dtype) for part in parts]


@given(pairs(FLOATS), st.data())
def test_sums_of_floats_are_rounded_once(pair, data):
    axis = data.draw(axes_of(pair.theirs.ndim))
    _, parts = groups(pair.theirs, axis, False)
    assume(all(abs(value) < 1e300 or not math.isfinite(value) for part in parts for value in part))
    name = pair.theirs.dtype.name
    for got, part in zip(flat(ta.sum(pair.mine, axis=axis)), parts, strict=True):
        check_sum(got, part, name, accumulator(name))


@given(pairs(COMPLEX), st.data())
def test_sums_and_means_of_complex_numbers_are_those_of_their_parts(pair, data):
    axis = data.draw(axes_of(pair.theirs.ndim))
    _, parts = groups(pair.theirs, axis, False)
    assume(all(abs(one) < 1e300 or not math.isfinite(one) for part in parts for z in part for one in (z.real, z.imag)))
    name = part_of(pair.theirs.dtype.name)
    for got, mean, part in zip(flat(ta.sum(pair.mine, axis=axis)), flat(ta.mean(pair.mine, axis=axis)), parts):
        for take in (lambda z: z.real, lambda z: z.imag):
            values = [take(z) for z in part]
            known, count = special(values), len(values)
            slack = 0.0 if known is not None else count * 2.0**-52 * math.fsum(map(abs, values))
            total = math.fsum(values) if known is None else known
            check_close(take(got), total, name, slack)
            check_close(take(mean), total / count if count else math.nan, name, slack)


MODERATE = st.lists(st.floats(-4, 4, width=16).filter(lambda value: not value or abs(value) > 0.1), max_size=24)


@given(MODERATE, FLOATS)
def test_products_of_floats_are_rounded_once(values, name):
    x = ta.asarray(values, dtype="float64").astype(name)
    exact = math.prod([Fraction(value) for value in x.tolist()])
    if name == "float8_e4m3fn" and abs(exact) > 448:
        assert math.isnan(ta.prod(x).item()) or abs(ta.prod(x).item()) == 448
    else:
        unit = 2 * float(ta.finfo(accumulator(name)).eps)
        check_close(ta.prod(x).item(), exact, name, float(abs(exact)) * len(values) * unit)


@given(pairs(REAL_NAMES), st.data())
def test_means_variances_and_deviations_are_those_of_fractions(pair, data):
    axis, correction = data.draw(axes_of(pair.theirs.ndim)), data.draw(st.sampled_from([0, 1, 0.5, -1, 2]))
    _, parts = groups(pair.theirs, axis, False)
    assume(all(abs(value) < 1e15 for part in parts for value in part))  # and no NaN
    name = pair.theirs.dtype.name if kind_of(pair.theirs.dtype.name) == "float" else "float32"
    means, variances = ta.mean(pair.mine, axis=axis), ta.var(pair.mine, axis=axis, correction=correction)
    deviations = ta.std(pair.mine, axis=axis, correction=correction)
    for mean, var, std, part in zip(flat(means), flat(variances), flat(deviations), parts, strict=True):
        exact = [Fraction(value) for value in part]
        of_sum = accumulated(part, accumulator(name))
        if not exact:
            assert math.isnan(mean)
            assert math.isnan(var) if correction >= 0 else var == 0  # the sum of no squares, divided by -correction
            continue
        middle = sum(exact) / len(exact)
        if of_sum is not None:
            check_close(mean, middle, name, of_sum / len(part) + abs(float(middle)) * 2.0**-52)
        if len(exact) - correction <= 0:
            assert math.isnan(var)
            assert math.isnan(std)
            continue
        spread = sum([(value - middle) ** 2 for value in exact]) / Fraction(len(exact) - correction)
        if float(spread) < ta.finfo(name).max and not math.isnan(var):
            square = float(max(map(abs, exact))) ** 2 * 2.0**-45 * len(exact)
            check_close(var, spread, name, square)
            check_close(std, math.sqrt(spread), name, math.sqrt(square))


@given(pairs(REAL_NAMES), st.data(), st.booleans())
def test_extremes_are_pythons_and_nan_wins(pair, data, keepdims):
    axis = data.draw(axes_of(pair.theirs.ndim))
    shape, parts = groups(pair.theirs, axis, keepdims)
    for mine, choose in ((ta.max, max), (ta.min, min)):
        if 0 in (pair.theirs.shape if axis is None else np.take(pair.theirs.shape, axis).reshape(-1)):
            with pytest.raises(ShapeError, match=f"{choose.__name__}: expected at least one element to choose from"):
                mine(pair.mine, axis=axis, keepdims=keepdims)
            continue
        found = mine(pair.mine, axis=axis, keepdims=keepdims)
        assert (found.shape, found.dtype) == (shape, pair.mine.dtype)
        for got, part in zip(flat(found), parts, strict=True):
            assert same(got, math.nan if any(value != value for value in part) else choose(part))


@given(pairs(st.one_of(NAMES, st.sampled_from(list(STORAGE)))), st.data(), st.booleans())
def test_truths_are_pythons(pair, data, keepdims):
    axis = data.draw(axes_of(pair.theirs.ndim))
    _, parts = groups(pair.theirs, axis, keepdims)
    assert flat(ta.all(pair.mine, axis=axis, keepdims=keepdims)) == [all(part) for part in parts]
    assert flat(ta.any(pair.mine, axis=axis, keepdims=keepdims)) == [any(part) for part in parts]
    counts = [sum([bool(value) for value in part]) for part in parts]
    assert flat(ta.count_nonzero(pair.mine, axis=axis, keepdims=keepdims)) == counts


def test_narrow_floats_are_accumulated_wide():
    ones = ta.ones(100_000, dtype="bfloat16")
    assert ta.sum(ones).item() == 99840  # the nearest bfloat16; added one by one it would stop at 256
    assert ta.mean(ones).item() == 1
    tenths = ta.full(1_000_000, 0.1, dtype="float32")
    exact = np.float32(math.fsum([float(np.float32(0.1))] * 1_000_000))
    assert ta.sum(tenths).item() == exact
    half = ta.asarray([60000.0, 60000.0, -60000.0], dtype="float16")
    assert ta.sum(half).item() == 60000
    assert ta.prod(ta.asarray([1e-30, 1e-30, 1e30, 1e30])).item() == pytest.approx(1, rel=1e-6)


def test_the_dtype_is_cast_to_before():
    x = ta.asarray([100, 100, 100], dtype="int8")
    assert ta.sum(x, dtype="int8").item() == 300 - 256
    assert ta.sum(x, dtype="float16").dtype == ta.float16
    assert ta.sum(ta.asarray([1.9, 1.9]), dtype="int32").item() == 2
    assert ta.sum(ta.asarray([True, True]), dtype="bool").item() is True
    assert ta.prod(x, dtype="uint64").item() == 1_000_000
    with ta.semantics("triton"):
        assert ta.sum(x).dtype == ta.int32
        assert ta.sum(x.astype("uint8")).dtype == ta.uint32


def test_a_nan_stays_in_its_part():
    x = ta.asarray([complex(1, math.nan), complex(3, 2)])
    found = ta.mean(x).item()
    assert found.real == 2
    assert math.isnan(found.imag)
    found = ta.mean(ta.zeros((0,), dtype="complex64")).item()
    assert math.isnan(found.real)
    assert math.isnan(found.imag)
    assert ta.mean(ta.reshape(ta.asarray([1 + 1j, 3 + 5j, 0, 0]), (2, 2)).T, axis=1, keepdims=True).shape == (2, 1)


@pytest.mark.parametrize("count", [1, 3, 5, 70_000])
def test_a_complex_sum_of_negative_zeros_is_negative_zero(count):
    found = ta.sum(ta.asarray(np.full(count, complex(-0.0, -0.0), np.complex64))).item()
    assert [math.copysign(1, part) for part in (found.real, found.imag)] == [-1, -1]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (1,), (2,), (3,), (2, 5), (70_001,)])
def test_a_sum_of_negative_zeros_is_negative_zero(name, shape):
    assert ta.signbit(ta.sum(ta.full(shape, -0.0, dtype=name)))


def test_a_complex_product_starts_with_one():
    found = ta.prod(ta.asarray([complex(math.inf, 1)])).item()  # times 1 + 0j: 0 * inf is NaN
    assert found.real == math.inf
    assert math.isnan(found.imag)


def test_the_variance_of_complex_numbers_is_real():
    x = ta.asarray([1 + 1j, 3 + 5j])
    assert (ta.var(x).dtype, ta.var(x).item()) == (ta.float32, 5)
    assert ta.std(x, correction=1).item() == pytest.approx(math.sqrt(10))


X = ta.asarray([[1.0, 2.0], [3.0, 4.0]])
ERRORS = [
    (lambda: ta.sum({1, 2}), OperandError, r"sum: expected a tilearray Array, got set; write ta.asarray\(x\)"),
    (lambda: ta.all("ab"), OperandError, r"all: expected a tilearray Array, got str; write float"),
    (lambda: ta.sum(X, axis=2), AxisError, r"sum: expected -2 <= axis < 2, got axis 2"),
    (lambda: ta.mean(X, axis=(0, -2)), ShapeError, r"mean: expected distinct axes, got \(0, -2\)"),
    (lambda: ta.any(ta.asarray(1), axis=0), AxisError, r"any: expected no axis \(the array is 0-d\), got axis 0"),
    (lambda: ta.max(X, axis=0.5), ShapeError, r"max: expected axis as an int"),
    (
        lambda: ta.max(ta.zeros((0,))),
        ShapeError,
        r"max: expected at least one element .*\(0,\); write ta.max\(x\) only",
    ),
    (lambda: ta.min(ta.zeros((2, 0)), axis=1), ShapeError, r"min: expected at least one element .*\(2, 0\)"),
    (lambda: ta.max(X.astype("complex64")), DTypeError, r"max: .* got complex64; write x.real, x.imag or ta.abs\(x\)"),
    (lambda: ta.sum(X, dtype="float8_e3m4"), DTypeError, r"sum: float8_e3m4 is a storage dtype, .*astype\('float32'\)"),
    (lambda: ta.mean(X.astype("float4_e2m1fn")), DTypeError, r"mean: float4_e2m1fn is a storage dtype"),
    (lambda: ta.sum(X.astype("complex64"), dtype="float32"), DTypeError, r"sum: complex64 does not become float32"),
    (
        lambda: ta.var(X, correction="a"),
        OperandError,
        r"var: expected correction as a real number, got str; write",
    ),
    (lambda: ta.std(X, correction=1j), OperandError, r"std: expected correction as a real number, got complex"),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS, ids=[message for *_, message in ERRORS])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert type(caught.value) is error


def test_an_empty_result_needs_no_elements_to_search():
    assert ta.max(ta.zeros((0, 3)), axis=1).shape == (0,)
    assert ta.min(ta.zeros((0, 3)), axis=-1, keepdims=True).shape == (0, 1)


@pytest.mark.parametrize("function", [ta.sum, ta.prod, ta.max, ta.min, ta.mean, ta.all, ta.any])
def test_an_empty_tuple_of_axes_copies(function):
    x = ta.asarray([True, True]) if function in (ta.all, ta.any) else ta.asarray([1.0, 2.0], dtype="float64")
    before = x.tolist()
    found = function(x, axis=())
    assert found.tolist() == before
    found[0] = 0
    assert x.tolist() == before


def test_an_axis_error_is_also_an_index_error():
    with pytest.raises(IndexError):
        ta.sum(X, axis=5)


def test_numpy_numbers_are_corrections():
    x = ta.asarray([1.0, 2.0, 6.0], dtype="float64")
    for one in (np.int64(1), np.float32(1), True):
        assert ta.var(x, ddof=one).item() == 7.0
        assert ta.std(x, correction=one).item() == math.sqrt(7.0)


@given(st.data())
def test_a_call_in_the_words_of_an_earlier_one_has_the_results_of_the_first(data):
    """Of arrays of one layout with other elements, elsewhere in memory, after calls with other words."""
    shape = data.draw(st.tuples(*[st.integers(1, 4)] * 3))
    dtype = data.draw(st.sampled_from(["int8", "int64", "float32", "float64"]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    made = (100 * rng.standard_normal((4, *shape))).astype(dtype)
    flips = tuple([slice(None, None, data.draw(st.sampled_from([1, -1]))) for _ in shape])
    axes = [None, 0, -1, (0, 1), (1, 0), (0, 2), (-1,), (), (0, 1, 2)]
    names, orders = ["sum", "mean", "var", "std", "max", "any"], ["fixed", "any"]
    for _ in range(12):
        name, axis, place = (
            data.draw(st.sampled_from(names)),
            data.draw(st.sampled_from(axes)),
            data.draw(st.integers(0, 3)),
        )
        options = {"order": data.draw(st.sampled_from(orders))} if name in names[:4] else {}
        keepdims = data.draw(st.booleans())
        theirs = made[place][flips]
        found = getattr(ta, name)(ta.asarray(made)[place][flips], axis=axis, keepdims=keepdims, **options)
        want = getattr(np, name)(theirs.astype("float64"), axis=axis, keepdims=keepdims)
        assert found.shape == want.shape
        np.testing.assert_allclose(ta.to_numpy(found), want, rtol=1e-5, atol=1e-4)
        if name in ("var", "std"):  # a correction is no word: the call is new each time
            new = getattr(ta, name)(
                ta.asarray(made)[place][flips], axis=axis, keepdims=keepdims, correction=0, **options
            )
            assert ta.to_numpy(found).tobytes() == ta.to_numpy(new).tobytes()


def test_words_that_equal_known_ones_are_read_as_they_are():
    x = ta.asarray([[1.0, 2.0], [3.0, 6.0]])
    for name in ("sum", "mean", "var", "max"):
        function = getattr(ta, name)
        assert function(x, axis=(0, 1)).ndim == function(x, axis=(0,)).ndim - 1 == 0
        for axis in ((0.0, 1), (0, 1.0), (0, True), (False,)):
            with pytest.raises(ta.errors.TileArrayError):
                function(x, axis=axis)


@given(st.data(), st.sampled_from(["float16", "bfloat16", "float8_e5m2", "float32", "float64"]))
def test_the_largest_zero_is_positive_and_the_smallest_is_negative(data, name):
    drawn = data.draw(st.lists(st.lists(st.sampled_from([0.0, -0.0, 1.0, -1.0]), min_size=3, max_size=3), min_size=1))
    x = ta.asarray(drawn, dtype=name)
    start = data.draw(st.sampled_from([None, 0.0, -0.0]))
    for axis in (None, 0, 1):
        lists = {
            None: [[value for row in drawn for value in row]],
            0: [list(column) for column in zip(*drawn)],
            1: drawn,
        }[axis]
        lists = [values + [start] * (start is not None) for values in lists]
        for function, place in ((ta.max, -1), (ta.min, 0)):
            want = [sorted(values, key=lambda value: (value, math.copysign(1, value)))[place] for values in lists]
            found = ta.to_numpy(function(x, axis=axis, initial=start).astype("float64")).ravel().tolist()
            assert repr(found) == repr(want)
