"""The oracle of roundings against its definition, against NumPy, and against the neighbours of a value."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from support import hard_to_round as hard
from support.oracles import rounding as exact
from support.oracles.formats import FORMATS, dtype_of, kind_of, limits_of

pytestmark = pytest.mark.slow

COMPUTED = ("float16", "bfloat16", "float32", "float64")
NARROW = [name for name in FORMATS if dtype_of(name).itemsize == 1] + ["float16", "bfloat16"]
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


# --- one value: the definition, and the values of a format in order -------------------------------------------------


def finite_values(name: str) -> list[Fraction]:
    """All magnitudes of a format, in order."""
    dtype = dtype_of(name)
    with np.errstate(all="ignore"):
        found = np.arange(2 ** (8 * dtype.itemsize)).astype(f"u{dtype.itemsize}").view(dtype).astype(np.float64)
    return [Fraction(value) for value in np.unique(found[np.isfinite(found) & (found >= 0)]).tolist()]


@pytest.mark.parametrize("name", NARROW)
def test_a_value_lies_between_what_it_is_rounded_down_and_up_to(name: str) -> None:
    values = finite_values(name)
    rng = np.random.default_rng(1)
    for position in rng.integers(0, len(values) - 1, 300).tolist():
        below, above = values[position], values[position + 1]
        half = (below + above) / 2
        for value in (below, half, half - (above - below) / 1000, half + (above - below) / 1000):
            nearest = below if value < half or (value == half and position % 2 == 0) else above
            away = below if value < half else above
            want = {"rz": below, "rm": below, "rp": below if value == below else above, "rn": nearest, "ra": away}
            for mode, expected in want.items():
                opposite = {"rm": "rp", "rp": "rm"}.get(mode, mode)
                assert Fraction(exact.rounded(value, name, mode)) == expected
                assert Fraction(exact.rounded(-value, name, opposite)) == -expected


@pytest.mark.parametrize("name", FORMATS)
def test_values_beyond_the_largest_value(name: str) -> None:
    """The infinity of the format, or the largest value, by the mode; saturated it is the largest in all of them."""
    fmt = FORMATS[name]
    largest = Fraction(fmt.largest)
    end = Fraction(2) ** (math.frexp(fmt.largest)[1] - fmt.precision)  # the last step
    beyond = fmt.largest if fmt.beyond is None else fmt.beyond
    far = {"rn": (beyond, beyond), "ra": (beyond, beyond), "rz": (fmt.largest, fmt.largest)}
    far |= {"rm": (fmt.largest, beyond), "rp": (beyond, fmt.largest)}
    for mode, (up, down) in far.items():
        np.testing.assert_equal(exact.rounded(largest + 2 * end, name, mode), up)
        np.testing.assert_equal(exact.rounded(-largest - 2 * end, name, mode), math.copysign(down, -1))
        np.testing.assert_equal(exact.rounded(math.inf, name, mode), beyond)
        assert exact.rounded(-largest - 2 * end, name, mode, saturate=True) == -fmt.largest
        assert exact.rounded(math.inf, name, mode, saturate=True) == fmt.largest
        assert exact.rounded(largest + end / 4, name, mode) == fmt.largest or mode == "rp"
        nan = exact.rounded(math.nan, name, mode, saturate=True)
        assert nan != nan or fmt.beyond is None


def test_scales() -> None:
    """float8_e8m0fnu: ties up, nothing below the smallest, and NaN for what has no logarithm."""
    name = "float8_e8m0fnu"
    for mode, at_tie, low, high in [
        ("rn", 2, 1, 2),
        ("ra", 2, 1, 2),
        ("rz", 1, 1, 1),
        ("rm", 1, 1, 1),
        ("rp", 2, 2, 2),
    ]:
        assert exact.rounded(Fraction(3, 2), name, mode) == at_tie
        assert exact.rounded(Fraction(3, 2) - Fraction(1, 99), name, mode) == low
        assert exact.rounded(Fraction(3, 2) + Fraction(1, 99), name, mode) == high
        assert exact.rounded(Fraction(1, 2**200), name, mode) == 2.0**-127
        for value in (math.nan, -1.0, 0.0, Fraction(-1, 3)):
            assert math.isnan(exact.rounded(value, name, mode, saturate=True))
        past = exact.rounded(Fraction(2**128), name, mode)
        assert past == 2.0**127 if mode in ("rz", "rm") else math.isnan(past)
        assert exact.rounded(Fraction(2**128), name, mode, saturate=True) == 2.0**127


# --- arrays -------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not exact.WIDE, reason="longdouble is no wider than float64: there is one way only")
@pytest.mark.parametrize("name", COMPUTED)
@pytest.mark.parametrize("op", hard.ARITY)
def test_arrays_agree_with_fractions(op: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    operands = hard.operands(op, name, 1500, seed=1)
    wide = [getattr(exact, op)(*operands, mode) for mode in exact.MODES]
    monkeypatch.setattr(exact, "WIDE", False)
    for mode, got in zip(exact.MODES, wide, strict=True):
        assert exact.differences(got, getattr(exact, op)(*operands, mode)).size == 0


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "divide", "sqrt"])
def test_nearest_is_numpy(op: str, name: str) -> None:
    operands = hard.operands(op, name, 50_000, seed=2)
    with np.errstate(all="ignore"):
        want = getattr(np, op)(*operands)
    assert exact.differences(getattr(exact, op)(*operands), want).size == 0


@pytest.mark.parametrize("name", COMPUTED)
def test_products_and_sums_are_fused(name: str) -> None:
    """A fused operation of which one operand is one, or zero, is a product, or a sum."""
    x, y = hard.operands("multiply", name, 5000)
    one, nothing = np.ones_like(x), exact.negated(np.zeros_like(x))
    for mode in exact.MODES:
        signed = np.where(np.signbit(x) == np.signbit(y), np.zeros_like(x), nothing)  # adds nothing, and keeps the sign
        assert exact.differences(exact.fma(x, y, signed, mode), exact.multiply(x, y, mode)).size == 0
        assert exact.differences(exact.fma(x, one, y, mode), exact.add(x, y, mode)).size == 0


def test_zeros_have_the_sign_that_ieee_754_gives_them() -> None:
    zero, minus, one = (np.array([value], np.float32) for value in (0.0, -0.0, 1.0))
    for mode in exact.MODES:
        cancelled = mode == "rm"
        assert np.signbit(exact.subtract(one, one, mode))[0] == cancelled
        assert np.signbit(exact.add(zero, minus, mode))[0] == cancelled
        assert np.signbit(exact.fma(one, one, -one, mode))[0] == cancelled
        assert not np.signbit(exact.add(zero, zero, mode))[0]
        assert np.signbit(exact.add(minus, minus, mode))[0]
        assert np.signbit(exact.sqrt(minus, mode))[0]
        assert np.signbit(exact.multiply(minus, one, mode))[0]


def test_flushing() -> None:
    """Denormal operands and denormal results are zeros of their sign, after the rounding that makes them."""
    tiny, normal = np.float32(2.0**-140), np.float32(2.0**-126)
    x = np.array([tiny, -tiny, normal, -normal, np.nan, -0.0], np.float32)
    np.testing.assert_array_equal(exact.flushed(x), np.array([0, -0.0, normal, -normal, np.nan, -0.0], np.float32))
    assert np.signbit(exact.flushed(x)).tolist() == np.signbit(x).tolist()
    half = np.full(6, 0.5, np.float32)
    assert exact.multiply(x, half, "rp", True)[:4].tolist() == [0.0] * 4
    assert exact.multiply(x, half, "rn", True).view(np.uint32)[3] == 1 << 31
    below = np.nextafter(np.array([1], np.float32), np.float32(0))
    assert exact.multiply(x[2:3], below, "rp", True)[0] == normal  # rounded up to a normal number, and so not flushed
    assert exact.multiply(x[2:3], below, "rz", True)[0] == 0
    with pytest.raises(TypeError, match="float32 is flushed"):
        exact.add(x.astype(np.float64), x.astype(np.float64), "rn", True)


# --- casts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [*FORMATS, exact.SCALE])
@pytest.mark.parametrize("source", [*FORMATS, exact.SCALE, *INTEGERS])
def test_casts_agree_with_fractions(source: str, target: str) -> None:
    x = (
        hard.sources(source, target, 200)
        if source != exact.SCALE
        else np.arange(256, dtype=np.uint8).view(dtype_of(source))
    )
    if source == target:
        return
    with np.errstate(all="ignore"):  # signalling NaNs
        values = x.tolist() if kind_of(source) == "int" else x.astype(np.float64).tolist()
    for mode in exact.MODES:
        for saturate in (False, True):
            got = exact.cast(x, target, mode, saturate)
            want = [exact.rounded(Fraction(v) if isinstance(v, int) else v, target, mode, saturate) for v in values]
            with np.errstate(all="ignore"):
                assert exact.differences(got, np.array(want).astype(dtype_of(target))).size == 0


@pytest.mark.parametrize(("source", "target"), [("float64", "float32"), ("float32", "float16"), ("int64", "float64")])
def test_nearest_casts_are_numpy(source: str, target: str) -> None:
    x = hard.sources(source, target, 20_000)
    with np.errstate(all="ignore"):
        assert exact.differences(exact.cast(x, target), x.astype(target)).size == 0


@pytest.mark.parametrize("target", INTEGERS)
def test_integers_saturate_or_wrap(target: str) -> None:
    low, high = limits_of(target)
    floats = np.array([np.nan, np.inf, -np.inf, 2.0**70, -(2.0**70), 1.9, -0.9, float(high)])
    assert exact.cast(floats, target).tolist() == [0, high, low, high, low, 1, 0, high]
    for source in INTEGERS:
        x = np.array([*limits_of(source), 1, 100], dtype_of(source))
        clamped = [min(max(int(value), low), high) for value in x.tolist()]
        assert exact.cast(x, target, saturate=True).tolist() == clamped
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(exact.cast(x, target), x.astype(target))


# --- operands -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("op", hard.ARITY)
def test_operands_reach_every_hard_case(op: str, name: str) -> None:
    operands = hard.operands(op, name, 20_000)
    assert {x.size for x in operands} == {20_000}
    results = {mode: getattr(exact, op)(*operands, mode) for mode in exact.MODES}
    differ = {mode: exact.differences(result, results["rn"]).size for mode, result in results.items()}
    assert min(differ[mode] for mode in ("rz", "rm", "rp")) > 2000
    if op != "sqrt":
        assert differ["ra"] > 10  # ties
        low = np.finfo(name).tiny
        least = np.abs(results["rz"].astype(np.float64))
        assert ((least > 0) & (least < low)).sum() > 100
        assert (np.isinf(results["rn"]) & np.isfinite(results["rz"])).sum() > 20
        zeros = results["rn"] == 0
        other_sign = (np.signbit(results["rm"]) != np.signbit(results["rn"]))[zeros]
        assert other_sign.any() == (op in ("add", "subtract", "fma"))


@pytest.mark.parametrize(
    ("source", "target"), [("float64", "bfloat16"), ("float32", "float8_e4m3fn"), ("int64", "float32")]
)
def test_sources_have_ties_and_what_lies_next_to_them(source: str, target: str) -> None:
    x = hard.sources(source, target, 20_000)
    results = {mode: exact.cast(x, target, mode) for mode in exact.MODES}
    assert exact.differences(results["ra"], results["rn"]).size > 100
    assert exact.differences(results["rz"], results["rn"]).size > 1000
