"""Every cast against exact arithmetic.

The oracle knows a format only by its published parameters (IEEE 754; OCP OFP8 and MX; Graphcore's fnuz formats): it
decodes a bit pattern to a Fraction, and rounds a Fraction to a bit pattern by the definition of round to nearest
even. It shares no code with NumPy's or ml_dtypes' conversions, and every ordered pair of dtypes is held to it.
"""

from __future__ import annotations

import functools
import math
import random
from fractions import Fraction
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

from tilearray_host.casts import cast, caster, dtype_named, odd_float32, scalar

pytestmark = pytest.mark.filterwarnings("error")

Value = Fraction | float  # a Fraction, or one of the floats nan, inf, -inf, -0.0


class Format(NamedTuple):
    """A binary float: field widths, bias, and what its largest exponent is spent on."""

    exponent: int
    mantissa: int
    bias: int
    specials: str  # "ieee": inf, nan | "fn": nan | "fnuz": nan for -0 | "finite": neither | "scale": no sign, no zero

    @property
    def bits(self) -> int:
        return self.exponent + self.mantissa + (self.specials != "scale")


FORMATS = {
    "float16": Format(5, 10, 15, "ieee"),
    "bfloat16": Format(8, 7, 127, "ieee"),
    "float32": Format(8, 23, 127, "ieee"),
    "float64": Format(11, 52, 1023, "ieee"),
    "float8_e4m3fn": Format(4, 3, 7, "fn"),
    "float8_e5m2": Format(5, 2, 15, "ieee"),
    "float8_e3m4": Format(3, 4, 3, "ieee"),
    "float8_e4m3": Format(4, 3, 7, "ieee"),
    "float8_e4m3b11fnuz": Format(4, 3, 11, "fnuz"),
    "float8_e4m3fnuz": Format(4, 3, 8, "fnuz"),
    "float8_e5m2fnuz": Format(5, 2, 16, "fnuz"),
    "float8_e8m0fnu": Format(8, 0, 127, "scale"),
    "float4_e2m1fn": Format(2, 1, 1, "finite"),
}
INTEGERS = {f"{sign}int{bits}": (bits, sign == "") for sign in ("", "u") for bits in (8, 16, 32, 64)}
REAL = ["bool", *INTEGERS, *FORMATS]
COMPLEX = {"complex64": "float32", "complex128": "float64"}


def dtype_of(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


# --- the oracle: decode, and round by definition ------------------------------------------------------------------


def decode(fmt: Format, bits: int) -> Value:
    """The exact value of a bit pattern."""
    sign = -1 if fmt.specials != "scale" and bits >> (fmt.exponent + fmt.mantissa) else 1
    top = (1 << fmt.exponent) - 1
    exponent, fraction = (bits >> fmt.mantissa) & top, bits & ((1 << fmt.mantissa) - 1)
    if fmt.specials == "scale":
        return math.nan if exponent == top else Fraction(2) ** (exponent - fmt.bias)
    if fmt.specials == "ieee" and exponent == top:
        return math.nan if fraction else sign * math.inf
    if fmt.specials == "fn" and exponent == top and fraction == (1 << fmt.mantissa) - 1:
        return math.nan
    if exponent == fraction == 0 and sign < 0:
        return math.nan if fmt.specials == "fnuz" else -0.0
    scale = Fraction(2) ** (max(exponent, 1) - fmt.bias - fmt.mantissa)
    return sign * scale * (fraction + ((exponent > 0) << fmt.mantissa))


@functools.cache
def largest(fmt: Format) -> int:
    """The bit pattern of the largest finite value."""
    lost = {"ieee": (1 << fmt.mantissa) + 1, "fn": 2, "fnuz": 1, "finite": 1, "scale": 2}[fmt.specials]
    return (1 << (fmt.exponent + fmt.mantissa)) - lost


def overflowed(fmt: Format, negative: bool) -> int | None:
    """What a magnitude past the largest becomes; None is NaN."""
    sign = negative << (fmt.exponent + fmt.mantissa)
    if fmt.specials == "ieee":
        return sign | (largest(fmt) + 1)
    return sign | largest(fmt) if fmt.specials == "finite" else None


def floor_log2(value: Fraction) -> int:
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent - (value < Fraction(2) ** exponent)


def round_to(fmt: Format, value: Value) -> int | None:
    """The bit pattern nearest to the value, ties to the even one; None for NaN."""
    negative = math.copysign(1, value) < 0 if isinstance(value, float) else value < 0
    if value != value or (fmt.specials == "scale" and (negative or value == 0)):
        return None
    if isinstance(value, float) and math.isinf(value):
        return overflowed(fmt, negative)
    if fmt.specials == "scale":
        pattern = scale_pattern(fmt, Fraction(value))
    else:
        exact = abs(Fraction(value))
        exponent = max(floor_log2(exact), 1 - fmt.bias) if exact else 1 - fmt.bias
        count = round(exact / Fraction(2) ** (exponent - fmt.mantissa))  # Python rounds half to even
        pattern = count + ((exponent + fmt.bias - 1) << fmt.mantissa)  # a carry moves into the exponent by itself
    if pattern > largest(fmt):
        return overflowed(fmt, negative)
    return 0 if fmt.specials == "fnuz" and pattern == 0 else negative << (fmt.exponent + fmt.mantissa) | pattern


def scale_pattern(fmt: Format, value: Fraction) -> int:
    """float8_e8m0fnu as ml_dtypes rounds it: the nearest power of two, ties up, and nothing below the smallest."""
    if value < Fraction(2) ** -fmt.bias:
        return 0
    exponent = floor_log2(value)
    return exponent + (value >= Fraction(3, 2) * Fraction(2) ** exponent) + fmt.bias


def limits(name: str) -> tuple[int, int]:
    bits, signed = INTEGERS[name]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def expected_bits(value: Value, target: str) -> int | None:
    """The bit pattern that a cast must give; None for any NaN."""
    if target == "bool":
        return int(value != 0)
    if target in FORMATS:
        return round_to(FORMATS[target], value)
    low, high = limits(target)
    if isinstance(value, int):
        whole = value  # wraps
    elif isinstance(value, float):
        whole = {math.inf: high, -math.inf: low}.get(value, 0)
    else:
        whole = min(max(math.trunc(value), low), high)
    return whole & ((1 << INTEGERS[target][0]) - 1)


# --- values that hurt ---------------------------------------------------------------------------------------------


def bits_of(name: str) -> int:
    return 8 if name == "bool" else INTEGERS[name][0] if name in INTEGERS else FORMATS[name].bits


def array_of(name: str, patterns: list[int]) -> np.ndarray:
    storage = np.dtype(f"u{dtype_of(name).itemsize}")
    return np.array(patterns, storage).view(dtype_of(name))


def patterns_of(x: np.ndarray) -> list[int]:
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}").reshape(x.shape).tolist()


def value_of(name: str, pattern: int) -> Value:
    if name in FORMATS:
        return decode(FORMATS[name], pattern)
    low, _ = limits(name) if name in INTEGERS else (0, 1)
    return pattern - (1 << bits_of(name)) if low < 0 and pattern >> (bits_of(name) - 1) else pattern


def anchors(source: str, target: str, rng: random.Random) -> list[Fraction]:
    """Positive values around which a cast from source to target may go wrong: midpoints, limits, powers of two."""
    found = [Fraction(2) ** k for k in (0, 7, 8, 15, 16, 24, 31, 32, 53, 63, 64)] + [Fraction(1, 2), Fraction(5, 2)]
    if target not in FORMATS:
        return found + [Fraction(2 * rng.getrandbits(rng.randrange(1, 65)) + 1, 2) for _ in range(20)]
    fmt, top = FORMATS[target], largest(FORMATS[target])
    lower = [0, 1, 2, top - 1] + [rng.randrange(top) for _ in range(20)]
    if source in INTEGERS:
        lower += [round_to(fmt, Fraction(rng.getrandbits(k) | 1 << k)) or 0 for k in range(INTEGERS[source][0])]
    steps = [(decode(fmt, p), decode(fmt, p + 1)) for p in lower if p < top]
    below, last = Fraction(decode(fmt, top - 1)), Fraction(decode(fmt, top))
    return found + [(Fraction(a) + Fraction(b)) / 2 for a, b in steps] + [last + (last - below) / 2]


def candidates(source: str, target: str) -> list[int]:
    """Bit patterns of the source: all if there are few, else what hurts: next to anchors, specials, some at random."""
    bits = bits_of(source)
    if bits <= 8:
        return [0, 1] if source == "bool" else list(range(1 << bits))
    rng = random.Random(f"{source}->{target}")
    full = 1 << bits
    patterns = [0, 1, 2, full - 1, full // 2, full // 2 - 1, full // 2 + 1] + [rng.getrandbits(bits) for _ in range(40)]
    for anchor in anchors(source, target, rng):
        near = [anchor, anchor * (1 + Fraction(1, 2**40)), anchor * (1 - Fraction(1, 2**40))]
        if source in FORMATS:
            found = [round_to(FORMATS[source], value) or 0 for value in near]
            patterns += [(p + d) % full ^ s for p in found for d in (-1, 0, 1) for s in (0, full // 2)]
        else:
            patterns += [(s * int(value) + d) % full for value in near for d in (-1, 0, 1) for s in (1, -1)]
    if source in FORMATS:
        infinity = largest(FORMATS[source]) + 1
        patterns += [p | s for p in (infinity - 1, infinity, infinity + 1, full // 2 - 1) for s in (0, full // 2)]
    return list(dict.fromkeys(patterns))


def stands_for_nan(name: str, pattern: int) -> bool:
    """Whether this is what NaN becomes: a NaN; in float4_e2m1fn, which has none, a zero of either sign."""
    return math.isnan(decode(FORMATS[name], pattern)) or (name == "float4_e2m1fn" and pattern in (0, 8))


def mismatches(source: str, target: str, patterns: list[int], result: np.ndarray) -> list[str]:
    """Where the result is not what the oracle says."""
    wrong = []
    for pattern, got in zip(patterns, patterns_of(result), strict=True):
        want = expected_bits(value_of(source, pattern), target)
        if got != want if want is not None else not stands_for_nan(target, got):
            wrong.append(f"{source} {pattern:#x} -> {target}: got {got:#x}, expected {want}")
    return wrong


# --- every value, every pair --------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", REAL)
@pytest.mark.parametrize("source", REAL)
def test_every_pair_rounds_once(source: str, target: str) -> None:
    patterns = candidates(source, target)
    result = cast(array_of(source, patterns), dtype_of(target))
    assert result.dtype == dtype_of(target)
    assert mismatches(source, target, patterns, result) == []


@functools.cache
def all_values(name: str) -> np.ndarray:
    """The values of all bit patterns, exact in float64 for the formats of up to 16 bits."""
    return np.array([float(value_of(name, pattern)) for pattern in range(1 << bits_of(name))])


@pytest.mark.slow
@pytest.mark.parametrize("target", [name for name in FORMATS if FORMATS[name].bits <= 16])
@pytest.mark.parametrize("source", ["float16", "bfloat16", "int16", "uint16"])
def test_all_patterns_of_16_bits(source: str, target: str) -> None:
    """A second oracle: the nearest of the target's values, found by comparing with all their midpoints."""
    fmt, value = FORMATS[target], all_values(source)
    magnitudes = all_values(target)[: largest(fmt) + 1]
    step = magnitudes[-1] * 2 if fmt.specials == "scale" else 2 * magnitudes[-1] - magnitudes[-2]
    midpoints = (magnitudes + np.append(magnitudes[1:], step)) / 2
    below, to_even = np.searchsorted(midpoints, abs(value)), np.searchsorted(midpoints, abs(value), "right")
    pattern = np.where((below % 2 == 0) & (fmt.specials != "scale"), below, to_even)
    result = cast(np.arange(1 << 16, dtype=np.uint16).view(dtype_of(source)), dtype_of(target))
    got = all_values(target)[result.view(f"u{result.dtype.itemsize}")]
    none = np.isnan(value) | ((value <= 0) & (fmt.specials == "scale"))
    fits = (pattern <= largest(fmt)) & ~none
    np.testing.assert_array_equal(abs(got[fits]), magnitudes[pattern[fits]])
    if fmt.specials != "fnuz":
        np.testing.assert_array_equal(np.signbit(got[fits]), np.signbit(value[fits]))
    beyond = overflowed(fmt, False)
    np.testing.assert_array_equal(abs(got[~fits & ~none]), math.nan if beyond is None else all_values(target)[beyond])
    assert all(stands_for_nan(target, bits) for bits in patterns_of(result[none]))


NARROWED = [("float64", t) for t in FORMATS if FORMATS[t].bits <= 16]
NARROWED += [(s, "bfloat16") for s in ("int32", "uint32", "int64", "uint64")]


@pytest.mark.parametrize(("source", "target"), NARROWED)
def test_the_values_tell_double_rounding(source: str, target: str) -> None:
    """Rounding to float32 first, as ml_dtypes does, must be caught; else the test above would prove nothing."""
    patterns = candidates(source, target)
    with np.errstate(all="ignore"):
        twice = array_of(source, patterns).astype(np.float32).astype(dtype_of(target))
    assert mismatches(source, target, patterns, twice)


# --- complex ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", COMPLEX)
@pytest.mark.parametrize("source", REAL)
def test_real_to_complex_rounds_as_its_part_does(source: str, target: str) -> None:
    patterns = candidates(source, COMPLEX[target])
    result = cast(array_of(source, patterns), dtype_of(target))
    assert result.dtype == dtype_of(target)
    assert mismatches(source, COMPLEX[target], patterns, result.real.copy()) == []
    assert patterns_of(result.imag.copy()) == [0] * len(patterns)


@pytest.mark.parametrize("target", [*COMPLEX, "bool"])
@pytest.mark.parametrize("source", COMPLEX)
def test_complex_to_complex_and_bool(source: str, target: str) -> None:
    real = candidates(COMPLEX[source], COMPLEX.get(target, "bool"))
    imag = real[1:] + real[:1]
    x = np.empty(len(real), dtype_of(source))
    x.real, x.imag = array_of(COMPLEX[source], real), array_of(COMPLEX[source], imag)
    result = cast(x, dtype_of(target))
    if target == "bool":
        zero = [all(value_of(COMPLEX[source], p) == 0 for p in pair) for pair in zip(real, imag, strict=True)]
        assert result.tolist() == [not z for z in zero]
    else:
        assert mismatches(COMPLEX[source], COMPLEX[target], real, result.real.copy()) == []
        assert mismatches(COMPLEX[source], COMPLEX[target], imag, result.imag.copy()) == []


@pytest.mark.parametrize("target", [name for name in REAL if name != "bool"])
@pytest.mark.parametrize("source", COMPLEX)
def test_complex_to_real_is_refused(source: str, target: str) -> None:
    expected = f"cast: expected a real array for {target}, got {source}; write x.real to drop"
    with pytest.raises(TypeError, match=expected):
        cast(np.ones(3, source), dtype_of(target))


# --- layouts, outputs ---------------------------------------------------------------------------------------------

LAYOUTS = {
    "0-d": lambda x: x.reshape(-1)[1:2].reshape(()),
    "empty": lambda x: x[:, :0],
    "reversed": lambda x: x[::-1, ::-2],
    "transposed": lambda x: x.T,
    "broadcast": lambda x: np.broadcast_to(x[:, :1], x.shape),
}


WAYS = [
    *[("float64", "bfloat16"), ("int64", "bfloat16"), ("uint64", "float8_e8m0fnu"), ("float8_e8m0fnu", "float16")],
    *[("float32", "int8"), ("float16", "int64"), ("float8_e8m0fnu", "float8_e5m2"), ("bfloat16", "bool")],
    *[("float32", "float32"), ("float64", "float32"), ("uint8", "float16"), ("float32", "complex64")],
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("source", "target"), WAYS)
def test_layouts_and_out(source: str, target: str, layout: str) -> None:
    patterns = random.Random(0).choices(candidates(source, target), k=24)
    x = LAYOUTS[layout](array_of(source, patterns).reshape(4, 6))
    expected = cast(np.ascontiguousarray(x).reshape(-1), dtype_of(target)).reshape(x.shape)
    result = cast(x, dtype_of(target))
    assert (type(result), result.dtype, result.shape) == (np.ndarray, dtype_of(target), x.shape)
    assert not np.may_share_memory(result, x)
    assert result.tobytes() == expected.tobytes()
    gapped = np.zeros((*x.shape, 2), dtype_of(target))[..., 1]
    assert cast(x, dtype_of(target), gapped) is gapped
    assert gapped.tobytes() == expected.tobytes()


@pytest.mark.parametrize(("source", "target"), WAYS)
def test_out_may_be_larger_than_a_0d_operand(source: str, target: str) -> None:
    x, out = np.ones((), dtype_of(source)), np.zeros((2, 3), dtype_of(target))
    cast(x, dtype_of(target), out)
    assert out.tobytes() == np.broadcast_to(cast(x, dtype_of(target)), (2, 3)).tobytes()


def test_caster_is_the_same_cast_and_leaves_warnings_to_its_caller() -> None:
    f = caster(np.dtype(np.float64), np.dtype(np.float32))
    with pytest.warns(RuntimeWarning, match="overflow"):
        f(np.array([1e300]), np.dtype(np.float32), None)
    assert f is caster(np.dtype("f8"), np.dtype("f4"))


def test_dtype_named() -> None:
    assert [dtype_named(name).name for name in [*REAL, *COMPLEX]] == [*REAL, *COMPLEX]


# --- Python numbers -----------------------------------------------------------------------------------------------


def hurtful_ints() -> list[int]:
    rng = random.Random(1)
    sizes = [*range(1, 70), 127, 128, 129, 1023, 1024, 1025, 5000]
    edges = [(1 << n) + d for n in sizes for d in (-1, 0, 1)]
    ties = [(2 * rng.randrange(1 << p, 2 << p) + 1) << n for p in (7, 10, 23, 52) for n in (3, 40, 80)]
    around = [tie + d for tie in ties for d in (-1, 0, 1)]
    return [sign * value for value in [0, *edges, *around] for sign in (1, -1)]


@pytest.mark.parametrize("target", [*FORMATS, *COMPLEX])
def test_python_ints_of_any_size_round_once(target: str) -> None:
    part = COMPLEX.get(target, target)
    for value in hurtful_ints():
        result = scalar(value, dtype_of(target))
        assert (type(result), result.shape, result.dtype) == (np.ndarray, (), dtype_of(target))
        (got,) = patterns_of(result.real.reshape(1).copy() if target in COMPLEX else result.reshape(1))
        want = round_to(FORMATS[part], Fraction(value))
        assert got == want if want is not None else stands_for_nan(part, got), (value, target)


def test_python_numbers() -> None:
    assert scalar(True, np.dtype(np.float32)) == 1.0
    assert scalar(2**64 - 1, np.dtype(np.uint64)) == np.uint64(2**64 - 1)
    assert scalar(10**400, np.dtype(bool)) == np.True_
    assert math.copysign(1, float(scalar(-0.0, np.dtype(np.float16)))) == -1
    assert scalar(1 + 2**-8 + 2**-40, dtype_of("bfloat16")).astype(float) == 1 + 2**-7
    assert scalar(1.5 - 2j, np.dtype(np.complex64)) == np.complex64(1.5 - 2j)
    with pytest.raises(OverflowError):
        scalar(256, np.dtype(np.uint8))
    with pytest.raises(TypeError, match=r"cast: expected a real array for float32, got complex128"):
        scalar(1j, np.dtype(np.float32))


# --- the fast methods: each is compared with the method that it replaces, which the tests above compare with the oracle


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
def test_a_float_alone_becomes_the_same_integer_as_among_others(source: str, target: str) -> None:
    """Alone it may be in range, and then NumPy casts it; among others, one is out of range, and all are clipped.

    Beside numbers of both signs, in lines, in rows with gaps between them, and with gaps between elements.
    """
    bits, signed = INTEGERS[target]
    low, high = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if signed else (0.0, 2.0**bits)
    near = [edge + step for edge in (low, high) for step in (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0)]
    with np.errstate(all="ignore"):
        x = np.array([0.0, -0.0, 0.5, -0.5, 1.0, *near]).astype(dtype_of(source))
        x = np.concatenate([x, [np.nan, np.inf, -np.inf], np.nextafter(x.astype(np.float32), 0)]).astype(x.dtype)
    together = cast(x, dtype_of(target))
    for place in range(len(x)):
        for beside in (1.0, *([-1.0] if signed else [])):
            many = np.full(80, beside, x.dtype)
            many[::7] = x[place]
            for alone in (many[:1], many[:40], many.reshape(8, 10), many.reshape(8, 10)[:, :5], many[::2]):
                want = np.where(alone == beside, dtype_of(target).type(beside), together[place])
                assert np.array_equal(cast(alone, dtype_of(target)), want), x[place]
    assert cast(x[:0], dtype_of(target)).shape == (0,)


@pytest.mark.parametrize("target", ["float32", *[name for name in FORMATS if dtype_of(name).itemsize == 1]])
@pytest.mark.parametrize("source", ["float16", "bfloat16"])
def test_a_table_has_the_bits_of_the_method_that_fills_it(source: str, target: str) -> None:
    every = np.arange(65536).astype(np.uint16).view(dtype_of(source))
    bits = np.dtype(f"u{dtype_of(target).itemsize}")
    parts = [cast(every[low : low + 64], dtype_of(target)) for low in range(0, 65536, 64)]
    want = np.concatenate(parts).view(bits)
    assert np.array_equal(cast(every, dtype_of(target)).view(bits), want)
    matrix = every.reshape(256, 256)
    assert np.array_equal(cast(matrix.T[::-1], dtype_of(target)).view(bits), want.reshape(256, 256).T[::-1])
    out = np.zeros((2, 256, 512), bits)
    cast(matrix, dtype_of(target), out.view(dtype_of(target))[:, :, ::2])
    assert np.array_equal(out[1, :, ::2], want.reshape(256, 256))
    assert not out[:, :, 1::2].any()
    cast(matrix, dtype_of(target), out.view(dtype_of(target))[0, :, :256])
    assert np.array_equal(out[0, :, :256], want.reshape(256, 256))


@pytest.mark.parametrize("target", INTEGERS)
def test_a_table_has_the_integers_of_float16(target: str) -> None:
    every = np.arange(65536).astype(np.uint16).view(np.float16)
    want = np.concatenate([cast(every[low : low + 64], dtype_of(target)) for low in range(0, 65536, 64)])
    assert np.array_equal(cast(every, dtype_of(target)), want)


@pytest.mark.parametrize("every", [1, 200])
@pytest.mark.parametrize("source", ["int32", "uint32", "int64", "uint64", "float64"])
def test_few_and_many_values_beside_a_tie_of_bfloat16_round_once(source: str, every: int) -> None:
    bits = 31 if source in ("int32", "uint32") else 53 if source == "float64" else 62
    exponents = np.arange(9, bits)
    ties = (2.0**exponents * (1 + 2.0**-8 + 2.0**-7 * (exponents % 3))).astype(source)
    beside = np.concatenate([ties + ties.dtype.type(step) for step in range(3)] + [ties - ties.dtype.type(1)])
    x = np.full(len(beside) * every, 3, source)
    x[::every] = beside
    signs = (1, -1) if x.dtype.kind != "u" else (1,)
    for values in (x, x.reshape(2, -1).T, *(x[at] for at in range(0, len(x), every))):
        for sign in signs:
            some = values * values.dtype.type(sign)
            want = odd_float32(some).astype(ml_dtypes.bfloat16)
            assert np.array_equal(cast(np.asarray(some), dtype_of("bfloat16")).view(np.uint16), want.view(np.uint16))


@pytest.mark.parametrize(("source", "target"), [("float32", "int32"), ("float64", "int64"), ("float64", "uint64")])
def test_a_cast_onto_its_own_memory(source: str, target: str) -> None:
    x = np.array([1.5, -2.5, np.nan, 1e30, -1e30, 7.0], source)
    want = cast(x.copy(), dtype_of(target))
    assert np.array_equal(cast(x, dtype_of(target), x.view(target)), want)


@pytest.mark.parametrize(
    "start", [0, 1, 0x38800000 - 2**20, 0x33000000 - 2**20, 0x47800000 - 2**20, 0x7F800000 - 2**20]
)
def test_float32_to_float16_has_numpys_bits(start):
    """All around the limits of float16, and 4 million numbers of all sizes, of both signs."""
    step = 1021 if start < 2 else 1
    bits = (np.arange(2**21, dtype=np.uint64) * step + start).astype(np.uint32)
    for sign in (0, 0x80000000):
        x = (bits | sign).astype(np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            expected = x.astype(np.float16)
        for found in (cast(x, np.dtype(np.float16)), cast(x[::-1], np.dtype(np.float16))[::-1]):
            nan = np.isnan(found) & np.isnan(expected)
            assert (nan | (found.view(np.uint16) == expected.view(np.uint16))).all()


def test_float32_to_float16_broadcasts_and_keeps_the_order_of_strides():
    x = np.linspace(-7e4, 7e4, 9000, dtype=np.float32).reshape(90, 100)
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    assert cast(x.T, np.dtype(np.float16)).strides == (2, 200)
    out = np.empty((3, 90, 200), np.float16)[..., ::2]
    assert np.array_equal(cast(x, np.dtype(np.float16), out), np.broadcast_to(expected, out.shape))
