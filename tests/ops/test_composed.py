"""Functions made of rows, special functions on the host, and fma: what the property test of the table does not see."""

from __future__ import annotations

import math
import random
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.oracles.exact import fused
from support.oracles.formats import dtype_of, nearest, rounded_fraction

import tilearray as ta
from tilearray.errors import DTypeError, ScalarOverflowError
from tilearray_host.exact_fma import fma_exactly
from tilearray_host.functions import FUNCTIONS

pytestmark = pytest.mark.filterwarnings("error")
SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]


# --- angle, isclose, nan_to_num -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int16"])
@pytest.mark.parametrize("equal_nan", [False, True])
def test_isclose_is_numpys(dtype: str, equal_nan: bool) -> None:
    rng = np.random.default_rng(4)
    values = np.array([*SPECIAL, *rng.uniform(-9, 9, 40)]) if dtype != "int16" else np.arange(-20, 20)
    x = np.repeat(values, values.size).astype(dtype)
    y = np.tile(values * (1 + rng.choice([0, 1e-6, 1e-4, 1e-3], values.size)), values.size).astype(dtype)
    if dtype.startswith("complex"):
        x.imag, y.imag = np.roll(x.real, 1), np.roll(y.real, 1)
    for rtol, atol in [(1e-5, 1e-8), (1e-3, 0.5), (0.0, 0.0)]:
        with np.errstate(all="ignore"):
            expected = np.isclose(x, y, rtol, atol, equal_nan)
        got = ta.isclose(ta.asarray(x), ta.asarray(y), rtol, atol, equal_nan=equal_nan)
        assert got.dtype == ta.bool
        np.testing.assert_array_equal(ta.to_numpy(got), expected)


def test_angle_takes_a_flag_and_a_target() -> None:
    out = ta.zeros(2)
    assert ta.angle(ta.asarray([1j, -1.0]), True, out=out) is out
    assert out.tolist() == [90, 180]
    with pytest.raises(ta.OperandError, match=r"^angle: expected True or False as deg, got 'yes'; write deg=True"):
        ta.angle(1j, "yes")  # type: ignore[arg-type]


def test_isclose_takes_a_flag() -> None:
    x = ta.asarray([math.nan])
    assert ta.isclose(x, x, equal_nan=np.True_).tolist() == [True]
    for flag in ("no", ta.asarray([True, False])):
        with pytest.raises(ta.OperandError, match=r"^isclose: expected True or False as equal_nan, got"):
            ta.isclose(x, x, equal_nan=flag)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_an_infinity_is_close_to_itself_alone_whatever_the_tolerance(dtype: str) -> None:
    largest = float(np.finfo(dtype).max)
    x = ta.asarray([math.inf, -math.inf, largest, math.inf], dtype=dtype)
    y = ta.asarray([largest, largest, math.inf, math.inf], dtype=dtype)
    for rtol, atol in [(4.0, 0.0), (math.inf, 0.0), (0.0, math.inf)]:
        assert ta.isclose(x, y, rtol, atol).tolist() == [False, False, False, True]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_finite_numbers_whose_modulus_overflows_may_be_close(dtype: str) -> None:
    big = float(np.finfo(dtype).max) * 0.8
    x = np.array([complex(big, big), complex(big, 0.76 * big), complex(math.nan, big), complex(math.inf, big)], dtype)
    y = np.array([complex(big * 0.99, big), complex(big, 0.74 * big), complex(big, big), complex(big, big)], dtype)
    with np.errstate(all="ignore"):
        assert np.isinf(np.abs(x)).tolist() == [True, True, False, True]
        expected = np.isclose(x[:3], y[:3], 0.1)  # of the infinity NumPy says something else
    assert expected.tolist() == [True, True, False]
    assert ta.isclose(ta.asarray(x), ta.asarray(y), 0.1).tolist() == [*expected, False]


def test_isclose_writes_into_out() -> None:
    out = ta.empty(2, dtype="bool")
    assert ta.isclose(ta.asarray([1.0, math.nan]), 1.0, rtol=0, equal_nan=True, out=out) is out
    assert out.tolist() == [True, False]
    with pytest.raises(TypeError, match="takes from 2 to 4 positional arguments"):
        ta.isclose(out, out, 0, 0, True)  # type: ignore[misc]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "float8_e4m3fn"])
def test_nan_to_num_takes_the_limits_of_the_dtype(dtype: str) -> None:
    x = ta.asarray(np.array(SPECIAL).astype(dtype_of(dtype)))
    limits = ta.finfo(dtype)
    found = ta.nan_to_num(x)
    assert found.dtype == x.dtype
    no_infinity = dtype == "float8_e4m3fn"  # NaN is all it has
    expected = [0.0, 0.0, 1.0, -1.0, *((0.0, 0.0) if no_infinity else (limits.max, limits.min)), 0.0]
    assert found.astype("complex128").real.tolist() == expected
    assert ta.nan_to_num(x, True, 1.0, 2.0, -2.0).astype("complex128").real.tolist()[4:] == (
        [1.0] * 3 if no_infinity else [2.0, -2.0, 1.0]
    )


def test_nan_to_num_copies_finite_dtypes() -> None:
    for x in (ta.asarray([1, 2]), ta.asarray([True, False])):
        found = ta.nan_to_num(x, nan=0.5)
        assert (found.dtype, found.tolist()) == (x.dtype, x.tolist())
        assert found._address != x._address
    parts = ta.nan_to_num(ta.asarray([complex(math.nan, math.inf)]), posinf=3.0).item()
    assert parts == complex(0, 3)
    assert ta.nan_to_num(math.inf, posinf=4).item() == 4.0


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int8"])
def test_nan_to_num_writes_its_operand_where_it_makes_no_copy(dtype: str) -> None:
    host = np.array([1, 2]).astype(dtype) if dtype == "int8" else np.array([math.nan, -math.inf, 2.0], dtype)
    x = ta.asarray(host)
    assert ta.nan_to_num(x, False, 5.0) is x
    expected = host.copy()
    assert np.nan_to_num(expected, False, 5.0) is expected
    np.testing.assert_array_equal(ta.to_numpy(x), expected)
    assert ta.nan_to_num([math.nan], copy=False).tolist() == [0.0]
    with pytest.raises(ta.OperandError, match=r"^nan_to_num: expected one target, got copy=False and out; leave one"):
        ta.nan_to_num(x, copy=False, out=x)
    with pytest.raises(ta.OperandError, match=r"^nan_to_num: expected True or False as copy, got 0.5; write copy=True"):
        ta.nan_to_num(x, 0.5)  # type: ignore[arg-type]


def test_nan_to_num_writes_over_its_operands() -> None:
    for place in range(4):
        operands = [
            ta.asarray(each) for each in ([math.nan, math.inf, -math.inf, 1.0], [5.0] * 4, [6.0] * 4, [7.0] * 4)
        ]
        x, nan, posinf, neginf = operands
        ta.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf, out=operands[place])
        assert operands[place].tolist() == [5.0, 6.0, 7.0, 1.0]


# --- divmod, frexp, aliases ---------------------------------------------------------------------------------------


def test_divmod_as_a_function_and_as_an_operator() -> None:
    x, y = ta.asarray([7, -7, 7]), ta.asarray([2, 2, -2])
    expected = [list(pair) for pair in zip(*map(divmod, x.tolist(), y.tolist()), strict=True)]
    for pair in (ta.divmod(x, y), divmod(x, y), np.divmod(x, y)):
        assert [part.tolist() for part in pair] == expected
    assert [part.tolist() for part in divmod(7, y)] == [[3, 3, -4], [1, 1, -1]]
    assert [part.tolist() for part in divmod(x, 2)] == [[3, -4, 3], [1, 1, 1]]
    with pytest.raises(TypeError, match="unsupported operand"):
        divmod(x, "a")
    with ta.semantics("triton"):
        assert [part.tolist() for part in divmod(x, y)] == [[3, -3, -3], [1, -1, 1]]


def test_an_unknown_type_may_answer_divmod_itself() -> None:
    class Foreign:
        def __rdivmod__(self, other: object) -> str:
            return "its own"

    assert divmod(ta.asarray([1]), Foreign()) == "its own"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "float8_e5m2"])
def test_frexp_and_ldexp_are_inverse(dtype: str) -> None:
    codes = np.random.default_rng(2).integers(0, 256, 4000 * dtype_of(dtype).itemsize).astype(np.uint8)
    x = codes.view(dtype_of(dtype))
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
    mantissa, exponent = ta.frexp(ta.asarray(x))
    assert (mantissa.dtype, exponent.dtype) == (x.dtype, ta.int32)
    expected = [math.frexp(value) if math.isfinite(value) else (value, 0) for value in wide.tolist()]
    np.testing.assert_array_equal(ta.to_numpy(mantissa.astype("float64")), [m for m, _ in expected])
    assert exponent.tolist() == [e for _, e in expected]
    np.testing.assert_array_equal(ta.to_numpy(ta.ldexp(mantissa, exponent).astype("float64")), wide)


def test_the_exponent_takes_no_part_in_promotion() -> None:
    x = ta.asarray([0.75], dtype="float16")
    for exponent in (4, True, np.int64(4), ta.asarray([4]), ta.asarray([4], dtype="uint32")):
        assert ta.ldexp(x, exponent).dtype == ta.float16
    assert ta.ldexp(3, ta.asarray([1, -1])).tolist() == [6.0, 1.5]
    assert ta.ldexp(ta.asarray([1.0]), 2**62).tolist() == [math.inf]
    for wrong in (1.0, ta.asarray([1.0]), ta.asarray([1], dtype="uint64")):
        with pytest.raises(DTypeError, match=r"^ldexp: the exponent must be an int64 integer, got .*n\.astype"):
            ta.ldexp(x, wrong)
    with pytest.raises(ScalarOverflowError, match=r"^ldexp: "):
        ta.ldexp(x, 2**63)


def test_other_names() -> None:
    assert (ta.left_shift, ta.right_shift) == (ta.bitwise_left_shift, ta.bitwise_right_shift)
    assert (ta.power, ta.mod, ta.true_divide) == (ta.pow, ta.remainder, ta.divide)


# --- fma ----------------------------------------------------------------------------------------------------------


def triples(dtype: str) -> list[tuple[float, float, float]]:
    """Operands whose product and sum nearly cancel, have ties, vanish or overflow; and the special values."""
    rng, digits = random.Random(dtype), 24 if dtype == "float32" else 53
    reach = 120 if dtype == "float32" else 1000
    found = []
    for _ in range(6000):
        x, y = (
            rng.choice([-1, 1]) * rng.getrandbits(digits) * 2.0 ** (rng.randint(-reach, reach) - digits) for _ in "xy"
        )
        if rng.random() < 0.5:
            y = y * 2.0 ** -rng.randint(0, reach)
        product = Fraction(x) * Fraction(y)
        near = -float(product) if abs(product) < 2**1000 else 1.0
        z = rng.choice([near, near * 2.0 ** rng.randint(-60, 60), rng.uniform(-1, 1), near * (1 + 2.0**-20), 0.0])
        found.append((x, y, z))
    while len(found) < 8000:  # products halfway between two floats, and a third operand that decides
        x, y = (rng.getrandbits(digits // 2 + 1) | 1 for _ in "xy")
        if (x * y).bit_length() == digits + 1:
            found.append((float(x), float(y), rng.choice([-1, 1]) * 2.0 ** -rng.randint(10, reach)))
    found += [(a, b, c) for a in [*SPECIAL, 1e38] for b in [*SPECIAL, 1e38] for c in [*SPECIAL, -1e38]]
    with np.errstate(all="ignore"):
        return [tuple(np.array(row).astype(dtype).tolist()) for row in found]  # type: ignore[misc]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fma_rounds_once(dtype: str) -> None:
    rows = triples(dtype)
    out = np.empty(len(rows), dtype)
    with np.errstate(all="ignore"):
        FUNCTIONS["fma"](*(np.array(column, dtype) for column in zip(*rows, strict=True)), out=out)
    for row, got in zip(rows, out.tolist(), strict=True):
        exact = fused(*row)
        exact = rounded_fraction(exact, dtype) if isinstance(exact, Fraction) else exact
        want = nearest([exact], dtype)[0]
        assert got == want or (got != got and want != want), (row, got, want)
        assert got != got or math.copysign(1, got) == math.copysign(1, want), (row, got, want)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="math.fma came with Python 3.13")
def test_fma_is_pythons() -> None:
    for row in triples("float64")[:6000]:
        assert fma_exactly(*row)[0] == math.fma(*row)  # type: ignore[attr-defined]


# --- special functions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["erf", "erfc", "erfinv", "lgamma", "gamma", "ndtr"])
def test_without_scipy_the_error_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(ImportError, match=rf"^{name}: .*write pip install scipy,"):
        getattr(ta, name)(ta.asarray([0.5]))


# --- special values -----------------------------------------------------------------------------------------------

inf, nan = math.inf, math.nan
COMPLEX: list[tuple[str, complex, complex]] = [
    *(("expm1", complex(inf, 0), complex(inf, 0)), ("expm1", complex(-inf, inf), complex(-1, 0))),
    *(("expm1", complex(-0.0, 0), complex(0, 0)), ("expm1", complex(800, 0), complex(inf, 0))),
    *(("expm1", complex(nan, 0), complex(nan, 0)), ("tanh", complex(inf, 2), complex(1, 0))),
    *(("tanh", complex(-inf, -2), complex(-1, -0.0)), ("tan", complex(2, inf), complex(0, 1))),
    *(("sign", complex(inf, nan), complex(nan, nan)), ("sign", complex(-0.0, 0), complex(0, 0))),
    *(("round", complex(0.5, 1.5), complex(0, 2)), ("conj", complex(1, -0.0), complex(1, 0))),
    *(("log1p", complex(-1, 0), complex(-inf, 0)), ("log1p", complex(1e-20, -1e-20), complex(1e-20, -1e-20))),
]


@pytest.mark.parametrize(("name", "x", "expected"), COMPLEX)
def test_special_values_of_complex_functions(name: str, x: complex, expected: complex) -> None:
    """Of the array API standard's list, those that NumPy has otherwise; signs of zeros included."""
    got: Any = getattr(ta, name)(ta.asarray([x], dtype="complex128")).item()
    assert repr(got) == repr(expected)


def test_floor_division_by_and_of_infinity_is_the_standards() -> None:
    x, y = ta.asarray([inf, -inf, 3.0, -3.0, inf]), ta.asarray([2.0, 2.0, -inf, inf, inf])
    assert repr((x // y).tolist()) == "[inf, -inf, -0.0, -0.0, nan]"


def test_the_sign_of_nan_is_kept() -> None:
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        x = ta.asarray(np.array([nan, -nan, 1.0]).astype(dtype_of(dtype)))
        assert ta.signbit(x).tolist() == [False, True, False]
        assert ta.signbit(ta.copysign(ta.asarray([2.0] * 3, dtype=dtype), x)).tolist() == [False, True, False]
