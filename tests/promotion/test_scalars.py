"""Classes of Python numbers, their range checks, and the one rounding of large integers."""

from __future__ import annotations

import enum
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilearray.dtypes import ALL, info
from tilearray.errors import DTypeError, ScalarOverflowError
from tilearray.promotion.scalars import ScalarClass, as_number, classify

FLOAT32_MAX = (2 - 2**-23) * 2.0**127


class Colour(enum.IntEnum):
    RED = 2**40


class Metres(float):
    pass


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, "BOOL"),
        (False, "BOOL"),
        (0, "INT32"),
        (2**31 - 1, "INT32"),
        (-(2**31), "INT32"),
        (2**31, "UINT32"),
        (2**32 - 1, "UINT32"),
        (2**32, "INT64"),
        (-(2**31) - 1, "INT64"),
        (2**63 - 1, "INT64"),
        (-(2**63), "INT64"),
        (2**63, "UINT64"),
        (2**64 - 1, "UINT64"),
        (2**64, "HUGE"),
        (-(2**63) - 1, "HUGE"),
        (0.0, "FLOAT32"),
        (-0.0, "FLOAT32"),
        (0.1, "FLOAT32"),
        (5e-324, "FLOAT32"),
        (FLOAT32_MAX, "FLOAT32"),
        (-FLOAT32_MAX, "FLOAT32"),
        (math.nextafter(FLOAT32_MAX, math.inf), "FLOAT64"),
        (-1e300, "FLOAT64"),
        (math.inf, "FLOAT32"),
        (-math.inf, "FLOAT32"),
        (math.nan, "FLOAT32"),
        (1j, "COMPLEX"),
        (1e300 + 0j, "COMPLEX"),
        (Colour.RED, "INT64"),
        (Metres(2.5), "FLOAT32"),
    ],
)
def test_classify(value: object, expected: str) -> None:
    assert classify(value) is ScalarClass[expected]


@pytest.mark.parametrize(
    "value",
    [
        np.float64(1),
        np.complex128(1),
        np.int64(1),
        np.bool_(True),
        ml_dtypes.bfloat16(1),
        np.array(1.0),
        "1",
        None,
        [1],
    ],
    ids=lambda value: type(value).__name__,
)
def test_everything_else_has_no_class(value: object) -> None:
    assert classify(value) is None


@given(st.integers(-(2**65), 2**65))
def test_the_rung_is_the_first_that_holds(value: int) -> None:
    rungs = ("int32", "uint32", "int64", "uint64")
    holding = [name for name in rungs if np.iinfo(name).min <= value <= np.iinfo(name).max]
    assert classify(value) is (ScalarClass[holding[0].upper()] if holding else ScalarClass.HUGE)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (True, "bool", True),
        (2, "bool", True),
        (0.0, "bool", False),
        (True, "int8", 1),
        (-128, "int8", -128),
        (255, "uint8", 255),
        (2**64 - 1, "uint64", 2**64 - 1),
        (Colour.RED, "int64", 2**40),
        (True, "float16", 1.0),
        (3, "float32", 3.0),
        (0.1, "float16", 0.1),
        (1e300, "float32", 1e300),
        (2**53 + 1, "float64", float(2**53)),
        (10**400, "float64", math.inf),
        (-(10**400), "float32", -math.inf),
        (2**1024 - 1, "float64", math.inf),
        (2**1024 - 2**970, "float32", float(2**1024 - 2**971)),
        (3, "complex64", 3 + 0j),
        (2.5, "complex128", 2.5 + 0j),
        (1 - 2j, "complex64", 1 - 2j),
        (10**400, "complex128", complex(math.inf)),
    ],
)
def test_as_number(value: bool | int | float | complex, dtype: str, expected: object) -> None:
    found = as_number(value, np.dtype(dtype))
    assert found == expected
    assert type(found) is type(expected)


def test_as_number_keeps_the_sign_of_zero() -> None:
    assert math.copysign(1, as_number(-0.0, np.dtype("float16"))) == -1
    assert math.copysign(1, as_number(complex(-0.0, -0.0), np.dtype("complex64")).imag) == -1


@pytest.mark.parametrize("dtype", [dtype for dtype in ALL if info(dtype).kind in ("int", "uint")], ids=str)
def test_integers_are_checked_at_both_ends(dtype: np.dtype) -> None:
    limits = np.iinfo(dtype)
    for inside in (int(limits.min), int(limits.max)):
        assert as_number(inside, dtype) == inside
    for outside in (int(limits.min) - 1, int(limits.max) + 1):
        with pytest.raises(ScalarOverflowError):
            as_number(outside, dtype)


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        (300, "uint8", "add: 300 does not fit uint8 (0 to 255); write x.astype('int16') for the array"),
        (-1, "uint32", "add: -1 does not fit uint32 (0 to 4294967295); write x.astype('int64') for the array"),
        (2**63, "int8", f"add: {2**63} does not fit int8 (-128 to 127); write x.astype('uint64') for the array"),
        (-1, "uint64", f"add: -1 does not fit uint64 (0 to {2**64 - 1}); write x.astype('int64') for the array"),
        (
            2**64,
            "int8",
            f"add: {2**64} does not fit int8 (-128 to 127); no integer dtype holds it: write it as a float",
        ),
        (
            10**6000,
            "int8",
            "add: an integer of 19932 bits does not fit int8 (-128 to 127); "
            "no integer dtype holds it: write it as a float",
        ),
    ],
    ids=["uint8", "uint32", "int8", "uint64", "huge", "unprintable"],
)
def test_overflow_messages(value: int, dtype: str, message: str) -> None:
    with pytest.raises(ScalarOverflowError) as caught:
        as_number(value, np.dtype(dtype), "add")
    assert str(caught.value) == message


def test_an_overflow_of_a_new_array_names_its_dtype():
    with pytest.raises(ScalarOverflowError, match=r"^full: 300 does not fit uint8 \(0 to 255\); write dtype='int16'$"):
        as_number(300, np.dtype("uint8"), "full")


@pytest.mark.parametrize(
    ("value", "dtype", "instead"),
    [
        (2.5, "int8", "int(value) to drop the fraction"),
        (1j, "float32", "value.real to drop the imaginary part"),
        (1j, "int8", "value.real to drop the imaginary part"),
    ],
)
def test_numbers_of_a_higher_kind_are_refused(value: complex, dtype: str, instead: str) -> None:
    with pytest.raises(DTypeError) as caught:
        as_number(value, np.dtype(dtype), "full")
    assert str(caught.value) == f"full: {dtype} cannot hold {value!r}; write {instead}"


def round_once(value: Fraction, digits: int) -> Fraction:
    """Round to `digits` bits, to nearest and to even between two: the definition, over exact fractions."""
    if value == 0:
        return value
    exponent = 0
    while abs(value) >= Fraction(2) ** (exponent + 64):
        exponent += 64
    while abs(value) >= Fraction(2) ** exponent:
        exponent += 1
    unit = Fraction(2) ** (exponent - digits)
    return round(value / unit) * unit  # round() of a Fraction goes to even


@given(
    st.integers(0, 2**60), st.integers(0, 900), st.integers(-3, 3), st.sampled_from([2, 3, 4, 8, 11, 24]), st.booleans()
)
def test_large_integers_are_rounded_once(head: int, shift: int, tail: int, digits: int, negative: bool) -> None:
    value = abs((head << shift) + tail) * (-1 if negative else 1)
    number = as_number(value, np.dtype("float32"))
    assert round_once(Fraction(number), digits) == round_once(Fraction(value), digits)
    assert as_number(value, np.dtype("float64")) == float(value)
    assert as_number(value, np.dtype("complex64")) == number


def test_rounding_twice_would_differ() -> None:
    value = 2**70 + 2**46 + 1  # just above the middle of two float32, and float64 puts it on the middle
    assert np.float32(float(value)) == 2**70
    assert np.float32(as_number(value, np.dtype("float32"))) == 2**70 + 2**47
