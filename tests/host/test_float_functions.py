"""The host functions on floats and complex: exact operations bit for bit, the others within a table of ulps.

Oracles are Fractions and Python's own float64 for what IEEE 754 defines, mpmath for the rest, complex128 for complex64.
"""

from __future__ import annotations

import itertools
import math
import operator
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.oracles.rules import COMPARE

import tilearray as ta
from tilearray_host.functions import FUNCTIONS, clip

mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed: the extra `test` has it")

pytestmark = pytest.mark.filterwarnings("error")

FLOATS = ["float32", "float64"]


def call(name: str, *operands: np.ndarray, dtype: Any = None) -> np.ndarray:
    """Run a function as a kernel does: warnings off, the output given."""
    out = np.empty(np.broadcast_shapes(*(operand.shape for operand in operands)), dtype or operands[0].dtype)
    with np.errstate(all="ignore"):
        FUNCTIONS[name](*operands, out=out)
    return out


def pairs(values: list[float], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    both = list(itertools.product(values, values))
    return np.array([x for x, _ in both], dtype), np.array([y for _, y in both], dtype)


# --- floats: exact operations -------------------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.0, -7.0, 0.1, 1e-30, -1e30, math.inf, -math.inf, math.nan]
EXTREME = {"float32": [2.0**-149, -(2.0**-126), 3.4028234663852886e38], "float64": [5e-324, -2.2e-308, 1.7e308]}


def floats(dtype: str) -> list[float]:
    rng = random.Random(dtype)
    found = [*SPECIAL, *EXTREME[dtype], *[rng.uniform(-1, 1) * 2.0 ** rng.randrange(-40, 40) for _ in range(40)]]
    return np.array(found, dtype).tolist()


def rounded(exact: Fraction, dtype: str) -> float:
    """The float nearest to a Fraction, ties to even; the nearest float64's neighbours decide for float32."""
    try:
        near = float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact.numerator > 0 or -1)
    if dtype == "float64":
        return near
    with np.errstate(all="ignore"):
        middle = np.float32(near)
        around = [np.nextafter(middle, np.float32(-math.inf)), middle, np.nextafter(middle, np.float32(math.inf))]
    if not np.isfinite(middle):
        return float(middle)
    finite = [v for v in around if np.isfinite(v)]
    return float(min(finite, key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(np.uint32)) & 1)))


def divided(x: float, y: float) -> float:
    """IEEE division, where Python raises."""
    if y == 0:
        return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1, y)
    return x / y


def arithmetic(name: str, x: float, y: float, dtype: str) -> float:
    """The exact result rounded once; Python's own float64 rules where it is not finite or is a zero."""
    python = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": divided}[name]
    if not (math.isfinite(x) and math.isfinite(y)) or (name == "divide" and y == 0):
        return python(x, y)
    fraction = {"divide": operator.truediv}.get(name, python)(Fraction(x), Fraction(y))
    return rounded(fraction, dtype) if fraction else python(x, y)


def floored(name: str, x: float, y: float, dtype: str) -> float:
    """Python's ``//`` and ``%``; IEEE where Python raises. For float32, the exact value rounded once."""
    if math.isnan(x) or math.isnan(y) or (name == "remainder" and (math.isinf(x) or y == 0)):
        return math.nan
    if name == "floor_divide" and (y == 0 or math.isinf(x) or math.isinf(y)):  # the standard's, not Python's
        return divided(x, y)
    if math.isinf(y) or x == 0 or dtype == "float64":
        return x // y if name == "floor_divide" else x % y
    quotient = Fraction(x) // Fraction(y)
    exact = Fraction(quotient) if name == "floor_divide" else Fraction(x) - quotient * Fraction(y)
    zero = divided(x, y) if name == "floor_divide" else y
    return rounded(exact, dtype) if exact else math.copysign(0.0, zero)


def assert_same_floats(result: np.ndarray, expected: list[float], operands: list[Any], slack: float = 0.0) -> None:
    """Equal bit for bit, NaN payloads aside; or within ``slack``, relative, where that is given."""
    for got, want, operand in zip(result.tolist(), expected, operands, strict=True):
        same = got == want and math.copysign(1, got) == math.copysign(1, want)
        near = math.isfinite(want) and abs(got - want) <= slack * abs(want)
        assert same or near or (got != got and want != want), f"{operand}: got {got!r}, expected {want!r}"


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_float_arithmetic_rounds_once(name: str, dtype: str) -> None:
    values = floats(dtype)
    both = list(itertools.product(values, values))
    expected = [arithmetic(name, x, y, dtype) for x, y in both]
    assert_same_floats(call(name, *pairs(values, dtype)), expected, both)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_float_floor_division_follows_python(name: str, dtype: str) -> None:
    """Python rounds ``x - x % y`` before it divides, which can move quotients near 2**24 in float32: one ulp there."""
    values = floats(dtype)
    both = list(itertools.product(values, values))
    result = call(name, *pairs(values, dtype))
    expected = [floored(name, x, y, dtype) for x, y in both]
    huge = (abs(result) >= 2**22) & (name == "floor_divide") & (dtype == "float32")
    for part, slack in ((huge, 2.0**-22), (~huge, 0.0)):
        at = np.flatnonzero(part)
        assert_same_floats(result[at], [expected[i] for i in at], [both[i] for i in at], slack)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", COMPARE)
def test_float_comparisons(name: str, dtype: str) -> None:
    values = floats(dtype)
    result = call(name, *pairs(values, dtype), dtype=bool)
    assert result.tolist() == [COMPARE[name](x, y) for x, y in itertools.product(values, values)]


@pytest.mark.parametrize("dtype", FLOATS)
def test_minimum_maximum_clip_propagate_nan(dtype: str) -> None:
    values = floats(dtype)
    x, y = pairs(values, dtype)
    for name, choose in (("minimum", min), ("maximum", max)):
        expected = [math.nan if a != a or b != b else choose(a, b) for a, b in itertools.product(values, values)]
        np.testing.assert_array_equal(call(name, x, y), np.array(expected, dtype))
    some = [math.nan, -math.inf, -1.0, 0.0, 2.0, math.inf]
    triples = list(itertools.product(some, repeat=3))
    expected = [math.nan if any(v != v for v in t) else min(max(t[0], t[1]), t[2]) for t in triples]
    x, low, high = (np.array(column, dtype) for column in zip(*triples, strict=True))
    np.testing.assert_array_equal(call("clip", x, low, high), np.array(expected, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_unary(dtype: str) -> None:
    values = floats(dtype)
    x = np.array(values, dtype)
    for name, oracle in {
        "negative": operator.neg,
        "positive": operator.pos,
        "identity": operator.pos,
        "abs": abs,
        "floor": lambda v: math.copysign(math.floor(v), v) if math.isfinite(v) else v,
        "square": lambda v: arithmetic("multiply", v, v, dtype),
    }.items():
        assert_same_floats(call(name, x), [oracle(value) for value in values], values)
    assert call("isnan", x, dtype=bool).tolist() == [value != value for value in values]


# --- functions: accuracy ------------------------------------------------------------------------------------------

# Worst error in ulp (units in the last place of the exact result), as measured with NumPy 2.4.6 on x86-64 with AVX-512.
# float32: all 2**32 arguments (pow: 100,000) against NumPy's float64 functions; float64: 4,000 against mpmath.
# The bound leaves room for other processors, for which NumPy has other code.
MEASURED = {
    ("sqrt", "float32"): (0.50, 0.5),
    ("exp", "float32"): (2.55, 4),
    ("log", "float32"): (3.84, 4),
    ("sin", "float32"): (1.49, 4),
    ("tanh", "float32"): (1.38, 4),
    ("pow", "float32"): (1.00, 4),
    ("sqrt", "float64"): (0.50, 0.5),
    ("exp", "float64"): (0.66, 1),
    ("log", "float64"): (0.50, 1),
    ("sin", "float64"): (0.51, 1),
    ("tanh", "float64"): (0.85, 4),
    ("pow", "float64"): (0.63, 1),
}


def error_in_ulp(got: float, exact: mpmath.mpf, dtype: str) -> float:
    """Distance in units of the last place that the exact result has in the dtype; 0 where both overflow."""
    digits, smallest, top = (24, -149, 128) if dtype == "float32" else (53, -1074, 1024)
    exponent = max(int(mpmath.frexp(abs(exact))[1]) - digits, smallest)
    if not math.isfinite(got):
        return 0.0 if abs(exact) >= mpmath.mpf(2) ** top * (1 - mpmath.mpf(2) ** -digits) else math.inf
    return float(abs(got - exact) / mpmath.mpf(2) ** exponent)


def arguments(name: str, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    spread = 2.0 ** rng.uniform(-60, 60, 500) * rng.choice([-1, 1], 500)
    parts = [spread, rng.uniform(-88, 88, 500), 2.0 ** rng.uniform(-4, 1, 500), EXTREME[dtype]]
    x = np.concatenate(parts).astype(dtype)
    if name == "pow":
        return [abs(x), rng.uniform(-3, 3, x.size).astype(dtype)]
    return [abs(x)] if name in ("sqrt", "log") else [x]


@pytest.mark.parametrize(("name", "dtype"), MEASURED)
def test_functions_stay_within_the_table(name: str, dtype: str) -> None:
    measured, bound = MEASURED[name, dtype]
    assert measured <= bound
    operands = arguments(name, dtype)
    oracle = mpmath.power if name == "pow" else getattr(mpmath, name)
    with mpmath.workprec(200):
        exact = [oracle(*map(mpmath.mpf, values)) for values in zip(*[o.tolist() for o in operands], strict=True)]
        got = call(name, *operands).tolist()
        assert max(error_in_ulp(g, e, dtype) for g, e in zip(got, exact, strict=True)) <= bound


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_at_the_edges(dtype: str) -> None:
    inf, nan = math.inf, math.nan
    x = [0.0, -0.0, 1.0, -1.0, inf, -inf, nan]
    for name, expected in {
        "sqrt": [0.0, -0.0, 1.0, nan, inf, nan, nan],
        "exp": [1.0, 1.0, None, None, inf, 0.0, nan],
        "log": [-inf, -inf, 0.0, nan, inf, nan, nan],
        "sin": [0.0, -0.0, None, None, nan, nan, nan],
        "tanh": [0.0, -0.0, None, None, 1.0, -1.0, nan],
    }.items():
        known = [(v, e) for v, e in zip(x, expected, strict=True) if e is not None]
        result = call(name, np.array([v for v, _ in known], dtype))
        assert_same_floats(result, [e for _, e in known], [(name, v) for v, _ in known])


# --- complex ------------------------------------------------------------------------------------------------------

# Worst error of complex64 against complex128, in ulp of the modulus, for 200,000 arguments: (measured, bound).
# A power multiplies the error of the logarithm by the exponent's size: NumPy computes it in float32 throughout.
COMPLEX = {
    "add": (0.71, 1),
    "subtract": (0.71, 1),
    "multiply": (1.34, 2),
    "divide": (2.47, 4),
    "square": (1.05, 2),
    "abs": (1.93, 4),
    "sqrt": (1.67, 4),
    "exp": (1.67, 4),
    "log": (2.00, 4),
    "sin": (2.06, 4),
    "tanh": (5.08, 8),
    "pow": (26.6, 40),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex64_against_complex128(name: str) -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.uniform(-30, 30, 4000) + 1j * rng.uniform(-30, 30, 4000) for _ in range(2))
    y = y / abs(y) * 3 if name == "pow" else y
    binary = name in ("add", "subtract", "multiply", "divide", "pow")
    operands = [v.astype(np.complex64) for v in (x, y)][: 1 + binary]
    real = name == "abs"
    got = call(name, *operands, dtype=np.float32 if real else np.complex64)
    exact = call(name, *[v.astype(np.complex128) for v in operands], dtype=np.float64 if real else np.complex128)
    normal = (abs(exact) < 1e38) & (abs(exact) > 1e-37)
    ulp = np.ldexp(1.0, np.frexp(abs(exact))[1] - 24)
    assert np.max((abs(got - exact) / ulp)[normal]) <= COMPLEX[name][1]
    assert normal.mean() > 0.9


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_exactly(dtype: str) -> None:
    x = np.array([3 + 4j, -1j, complex(math.nan, 0), complex(0, math.inf)], dtype)
    assert call("negative", x)[:2].tolist() == [-3 - 4j, 1j]
    assert call("positive", x)[:2].tolist() == call("identity", x)[:2].tolist() == [3 + 4j, -1j]
    assert call("isnan", x, dtype=bool).tolist() == [False, False, True, False]
    assert call("equal", x, x, dtype=bool).tolist() == [True, True, False, True]
    assert call("not_equal", x, x, dtype=bool).tolist() == [False, False, True, False]
    assert call("abs", x, dtype=f"float{np.dtype(dtype).itemsize * 4}")[[0, 1, 3]].tolist() == [5.0, 1.0, math.inf]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_power_of_one_half_is_the_root_but_for_negative_zero_and_infinity(dtype):
    values = [-0.0, 0.0, -np.inf, np.inf, np.nan, 2.0, -1.0, 1e-7]
    for turns in (1, 1000):
        x = ta.asarray(np.array(values * turns, dtype), device="cpu")
        found = np.asarray(x**0.5)[-8:].astype(float)
        with np.errstate(invalid="ignore"):
            expected = np.sqrt(np.array(values, dtype)).astype(float)
        expected[[0, 2]] = 0.0, np.inf
        assert np.array_equal(found, expected, equal_nan=True)
        assert not np.signbit(found[0])
    x **= 0.5
    assert np.array_equal(np.asarray(x)[-8:].astype(float), expected, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_clipped_zeros_take_the_sign_of_the_bound(dtype: str) -> None:
    values = np.array([0.0, -0.0, 1.0, -1.0, 9.0, -9.0, np.inf, -np.inf, np.nan] * 9, dtype)
    bounds = np.array([0.0, -0.0, 5.0, -5.0, np.nan], dtype)
    for low, high, step in itertools.product(bounds, bounds, (1, -1, 3)):
        x = values[::step]
        expected = np.minimum(np.maximum(x, low), high)
        for out in (np.empty_like(x), x.copy(), np.empty(2 * x.size, dtype)[::2]):
            clip(x, np.array(low), np.array(high), out=out)
            assert out.tobytes() == expected.tobytes()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_where_takes_masks_of_any_density(share: float) -> None:
    rng = np.random.default_rng(3)
    mask, x, y = rng.random((80, 70)) < share, rng.random((80, 70)), rng.random((80, 70))
    for each in (mask, mask.T.copy().T, mask[::2].repeat(2, 0), np.broadcast_to(mask[:1], mask.shape)):
        assert np.array_equal(call("where", each, x, y, dtype=x.dtype), np.where(each, x, y))
        assert np.array_equal(ta.to_numpy(ta.where(ta.asarray(each), ta.asarray(x), 0.5)), np.where(each, x, 0.5))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extreme_numbers_tell_zeros_apart_and_pass_over_nan(dtype: str) -> None:
    signalling = (
        np.array([0x7FA00001], "u4").view("f4") if dtype == "float32" else np.array([0x7FF4 << 48 | 1]).view("f8")
    )
    values = np.concatenate([np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], dtype), signalling])
    x, y = np.repeat(values, values.size), np.tile(values, values.size)
    for name, takes_first in (
        ("maximum_number", (x > y) | (y != y) | ((x == y) & np.signbit(y))),
        ("minimum_number", (x < y) | (y != y) | ((x == y) & np.signbit(x))),
    ):
        expected = np.where(takes_first, x, y)
        assert call(name, x, y).tobytes() == expected.tobytes()
        assert all(
            call(name, *pair).tobytes() == one.tobytes()
            for *pair, one in zip(x.reshape(-1, 1), y.reshape(-1, 1), expected.reshape(-1, 1), strict=True)
        )


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("share", [0.01, 0.99])
def test_where_takes_the_memory_of_an_operand(place: int, share: float) -> None:
    rng = np.random.default_rng(3)
    operands = [rng.random(9000) < share, rng.random(9000) < 0.5, rng.random(9000) < 0.5]
    expected = np.where(*operands)
    ta.where(*map(ta.from_dlpack, operands), out=ta.from_dlpack(operands[place]))
    assert np.array_equal(operands[place], expected)
