"""`arange` and `linspace`: NumPy's values, dtypes from the values, and integers that never wrap."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import tilearray as ta
from tilearray.arrays import ranges
from tilearray.errors import OperandError, ScalarOverflowError, ShapeError

INTS = st.integers(-30, 30)
FLOATS = st.floats(-20, 20, allow_nan=False, allow_subnormal=False)


@given(INTS, INTS, INTS.filter(bool), st.sampled_from([None, "int8", "float16", "bfloat16", "complex64"]))
def test_integer_ranges_are_numpys(start, stop, step, dtype):
    x = ta.arange(start, stop, step, dtype=dtype)
    assert x.dtype == (dtype or "int64")
    assert x.tolist() == list(range(start, stop, step))
    assert ta.arange(stop).tolist() == list(range(stop))
    assert ta.arange(start, stop).tolist() == list(range(start, stop))


@pytest.mark.parametrize("dtype", [None, "int32", "float32", "float64", "int8"])
def test_integer_ranges_of_a_gpu_are_those_of_the_host(elsewhere, dtype):
    for start, stop, step in ((0, 9, 1), (9, -3, -4), (5, 5, 1), (-100, 101, 50), (2**31 - 4, 2**31 - 1, 1), (3, 0, 2)):
        if dtype != "int8" or abs(start) < 128:
            mine, host = (ta.arange(start, stop, step, dtype=dtype, device=device) for device in (elsewhere, "cpu"))
            assert (mine.dtype, mine.shape, mine.device) == (host.dtype, host.shape, elsewhere)
            assert mine.tolist() == host.tolist()
    with pytest.raises(ScalarOverflowError):
        ta.arange(300, dtype="int8", device=elsewhere)


@given(FLOATS, FLOATS, st.floats(0.05, 5) | st.floats(-5, -0.05))
def test_float_ranges_are_numpys(start, stop, step):
    """NumPy steps by ``(start + step) - start``, which is less exact: its rounding is what may differ."""
    wanted = np.arange(start, stop, step)
    x = ta.arange(start, stop, step, dtype="float64")
    assert x.shape == wanted.shape
    assert np.allclose(ta.to_numpy(x), wanted, rtol=1e-12, atol=1e-12)
    assert x.tolist() == [start + position * step for position in range(x.size)]
    default = ta.arange(start, stop, step)
    assert default.dtype == ta.float32
    assert default.tolist() == [float(np.float32(value)) for value in x.tolist()]


WHOLE = st.integers(-40, 40) | st.sampled_from([2**23 - 2, -(2**23), 2**24, 2**52 - 3, -(2**53), 2**60])


@example(0, 1, 3, True, "f4")
@example(2**24, 1, 3, False, "f4")
@given(WHOLE, st.integers(-9, 9).filter(bool), st.integers(0, 9), st.booleans(), st.sampled_from(["f4", "f8", "f2"]))
def test_ranges_of_whole_floats_have_the_bits_of_the_formula(start, step, count, negative_zero, dtype):
    first = -0.0 if negative_zero and not start else float(start)
    x = ta.arange(first, first + count * step, float(step), dtype=dtype)
    with np.errstate(over="ignore"):
        wanted = np.array([position * float(step) + first for position in range(x.size)], np.float64).astype(dtype)
    assert np.asarray(x).tobytes() == wanted.tobytes()
    assert x.size == count or abs(start) > 2**50


LIMITS = [0.0, -0.0, 0.1, -7.5, 300.0, 1e300, -1e300, math.inf, math.nan]


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "int8", "uint64"])
def test_few_values_have_the_bits_of_many(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [(first, last, count, end) for first in LIMITS for last in LIMITS for count in (0, 1, 7) for end in (0, 1)]
    steps = [(first, first + 5 * step, step) for first in LIMITS[:-2] for step in (0.1, -0.25, 1e299)]

    def found() -> list[bytes]:
        arrays = [ta.linspace(*line[:3], endpoint=bool(line[3]), dtype=dtype) for line in lines]
        arrays += [ta.arange(*each, dtype=dtype) for each in steps if each[0] != each[1]]
        return [np.asarray(x).tobytes() for x in arrays]

    few = found()
    monkeypatch.setattr(ranges, "_IN_CACHE", -1)
    assert found() == few


EXTREMES = [
    ((2**63 - 2, 2**63), "int64"),
    ((2**63, 2**63 + 3), "uint64"),
    ((2**63 - 1, 2**63 + 2), "uint64"),
    ((2**64 - 1, 2**64 - 4, -1), "uint64"),
    ((-(2**63), -(2**63) + 2), "int64"),
    ((2**62, -(2**63), -(2**62)), "int64"),
    ((0, 2**64, 2**63 - 1), "uint64"),
    ((2**70, 5), "int64"),
    ((2**31 - 3, 2**31 + 3), "int64"),
    ((-(2**31) - 1, 2 - 2**31), "int64"),
    ((3, 2**31 - 1, 2**30), "int64"),
    ((5, -(2**70)), "int64"),
]


@pytest.mark.parametrize(("limits", "name"), EXTREMES, ids=str)
def test_the_ends_of_the_integers(limits, name):
    x = ta.arange(*limits)
    assert x.tolist() == list(range(*limits))
    assert x.dtype == name


def test_the_dtype_follows_the_values():
    assert ta.arange(1e300, 3e300, 1e300).dtype == ta.float64
    assert ta.arange(0, 1, 0.1).dtype == ta.float32
    assert ta.arange(3, dtype="bool").tolist() == [False, True, True]
    with ta.semantics("triton"):
        assert ta.arange(3).dtype == ta.int32
        assert ta.arange(2**31 - 1, 2**31).dtype == ta.int32
        assert ta.arange(2**31, 2**31 + 1).dtype == ta.uint32
        assert ta.arange(-1, 2**31 + 1, 2**31).dtype == ta.int32
        assert ta.arange(-1, 2**32, 2**31).dtype == ta.int64
    assert [ta.arange(n).tolist() for n in (np.int8(3), ta.asarray(3), np.array(3))] == [[0, 1, 2]] * 3
    assert ta.arange(stop=3, step=2, *[0]).tolist() == [0, 2]  # noqa: B026


REFUSED = [
    (lambda: ta.arange(300, dtype="int8"), ScalarOverflowError, r"arange: 299 does not fit int8 \(-128 to 127\)"),
    (lambda: ta.arange(3, -2, -1, dtype="uint8"), ScalarOverflowError, r"arange: -1 does not fit uint8"),
    (lambda: ta.arange(2**64, 2**64 + 1), ScalarOverflowError, r"arange: no integer dtype holds 18446744073709551616"),
    (lambda: ta.arange(-1, 2**64, 2**63 + 1), ScalarOverflowError, r"everything from -1 to 9223372036854775808; write"),
    (lambda: ta.arange(0, 5, 0), ShapeError, r"arange: expected a step other than 0, got 0"),
    (lambda: ta.arange(0, 5, 0.0), ShapeError, r"arange: expected a step other than 0"),
    (lambda: ta.arange(math.nan), ShapeError, r"arange: expected finite numbers, got 0 to nan in steps of 1"),
    (lambda: ta.arange(0, math.inf), ShapeError, r"arange: expected finite numbers, got 0 to inf"),
    (
        lambda: ta.arange(1j),
        OperandError,
        r"arange: expected real numbers as start, stop and step, got \(0, 1j, 1\); write x.real",
    ),
    (lambda: ta.arange("3"), OperandError, r"arange: expected a number or a 0-d array, got str"),
    (lambda: ta.arange(0, ta.ones(2)), OperandError, r"arange: expected a number or a 0-d array, got tilearray.*Array"),
    (lambda: ta.linspace(0, 1, -1), ShapeError, r"linspace: expected num as an integer >= 0, got -1; write int\(num\)"),
    (lambda: ta.linspace(0, 1, 2.0), ShapeError, r"linspace: expected num as an integer >= 0, got 2.0"),
    (lambda: ta.linspace("0", 1, 2), OperandError, r"linspace: expected a number or a 0-d array, got str"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED, ids=[message for *_, message in REFUSED])
def test_bad_limits_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@given(FLOATS, FLOATS, st.integers(0, 20), st.booleans())
def test_linspace_is_numpys(start, stop, num, endpoint):
    wanted = np.linspace(start, stop, num, endpoint=endpoint)
    assert ta.linspace(start, stop, num, endpoint=endpoint, dtype="float64").tolist() == wanted.tolist()
    default = ta.linspace(start, stop, num, endpoint=endpoint)
    assert (default.dtype, default.tolist()) == (ta.float32, wanted.astype("float32").tolist())
    assume(abs(start) + abs(stop) > 0)
    integers = ta.linspace(start, stop, num, endpoint=endpoint, dtype="int32")
    assert integers.tolist() == np.linspace(start, stop, num, endpoint=endpoint, dtype="int32").tolist()


def test_linspace_of_all_kinds_of_limits():
    assert ta.linspace(0, 1j, 3).tolist() == [0, 0.5j, 1j]
    assert ta.linspace(0, 1e300, 3).dtype == ta.float64
    assert ta.linspace(1e300j, 1, 3).dtype == ta.complex128
    assert ta.linspace(2**70, 0, 2, dtype="float64").tolist() == [2.0**70, 0]
    assert ta.linspace(np.float32(0), ta.asarray(1), 2).tolist() == [0, 1]
    assert ta.linspace(0, math.inf, 2).tolist()[1] == math.inf
    assert ta.linspace(0, 1, 3, dtype="bfloat16").tolist() == [0, 0.5, 1]


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("other", [0, 2.5, 1j, np.float64(2.5), np.int8(2), [2.5], "array"], ids=str)
def test_limits_with_a_dtype_give_the_common_one_under_numpy(dtype, other):
    host = np.array([1, 2], dtype)
    for limit in (host, host[0]):
        beside = np.ones((), "float32") if isinstance(other, str) else other
        for first, last in ((limit, beside), (beside, limit)):
            with ta.semantics("numpy"):
                ours = [ta.asarray(x) if isinstance(x, np.ndarray | np.generic) else x for x in (first, last)]
                assert ta.linspace(*ours, 3).dtype == np.linspace(first, last, 3).dtype


def test_ranges_keep_float64_and_python_numbers_are_weak_beside_limits_with_a_dtype():
    wide, low = ta.asarray([0.1, 0.7], dtype="float64"), ta.asarray([0.0, 1], dtype="bfloat16")
    assert ta.linspace(wide[0], wide[1], 3)[-1] == ta.arange(wide[1], 1)[0] == wide[1]
    assert ta.linspace(0.0, wide[1], 3).dtype == ta.linspace(np.float64(0), 1, 3).dtype == ta.float64
    assert ta.linspace(1.5, low, 3).dtype == ta.linspace(0.1, low[1], 3).dtype == ta.bfloat16
    assert ta.linspace(ta.asarray(0), 1, 3).dtype == ta.arange(low[0], 2).dtype == ta.float32
    with ta.semantics("numpy"):
        assert ta.arange(np.float32(0), 2).dtype == np.arange(np.float32(0), 2).dtype == ta.float64


@pytest.mark.parametrize("ends", [(-(2**62), 2**63 - 1), (0, 2**64 - 1)])
def test_a_range_longer_than_an_axis_says_so(ends):
    with pytest.raises(ShapeError, match=r"arange: expected at most 2\*\*63 - 1 bytes, got shape"):
        ta.arange(*ends)
