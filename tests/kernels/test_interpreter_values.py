"""The values that CUDA kernels compute, in Triton's interpreter: every operation, every cast, every device function.

The oracle is that of the host's tests: `rules` and `formats` of tests/support/oracles. NumPy's functions replace those
of libdevice, so these tests show that kernels call the right functions on the right operands. The accuracy of libdevice
is left to the tests on a GPU.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from support.drawing import NUMBERS, accepted, pool
from support.interpreter.run import Interpreter
from support.kernels import needs_triton, operands_of
from support.oracles.calls import Operand, disagreements, predict, predict_astype
from support.oracles.formats import ARITHMETIC, FORMATS, dtype_of, exact, kind_of, limits_of, width_of
from support.oracles.rules import COMPARISONS, RULES, TRUNCATING

import tilearray as ta
from tilearray.engine.expression import Expression
from tilearray.ops import PUBLIC

pytestmark = [needs_triton, pytest.mark.slow]


# --- operations -----------------------------------------------------------------------------------------------------


OPERATIONS = [
    (name, dtype, semantics)
    for name in RULES
    for dtype in accepted(name)
    for semantics in ("array-api", "triton")
    if semantics == "array-api" or (name in TRUNCATING and kind_of(dtype) == "int")
]  # fmt: skip


@cache
def hurtful(dtype: str, count: int) -> np.ndarray:
    """At most so many of the values that hurt, none twice."""
    found = pool(dtype)[:32768]
    _, first = np.unique(found.view(f"V{found.itemsize}"), return_index=True)
    found = found[np.sort(first)]
    return found if found.size <= count else found[np.random.default_rng(count).permutation(found.size)[:count]]


def columns_for(name: str, dtype: str) -> list[np.ndarray]:
    """Operands: the values that hurt in every combination, and values at random."""
    rule, rng = RULES[name], np.random.default_rng(3)
    dtypes = operands_of(name, dtype)[rule.masks :]
    arity = len(dtypes)
    columns = [hurtful(given, {1: 4096, 2: 100, 3: 16, 4: 8}[arity]) for given in dtypes]
    places = np.meshgrid(*[np.arange(column.size) for column in columns], indexing="ij")
    more = [pool(given)[32768 + rng.permutation(32768)[:1500]] for given in dtypes]
    columns = [
        np.concatenate([column[place.ravel()], extra])
        for column, place, extra in zip(columns, places, more, strict=True)
    ]
    return [np.arange(columns[0].size) % 3 == 0] * rule.masks + columns


@pytest.mark.parametrize(("name", "dtype", "semantics"), OPERATIONS)
def test_operation(name: str, dtype: str, semantics: str, interpreter: Interpreter) -> None:
    columns = columns_for(name, dtype)
    got = interpreter.call(name, *columns, semantics=semantics)
    outcome = predict(name, [Operand(column.dtype.name, exact(column)) for column in columns], semantics)
    assert got.dtype == dtype_of(outcome.dtype)
    assert disagreements(exact(got), outcome) == []


AS_NUMPY = [
    *(("floor_divide", dtype) for dtype in ("float16", "float32", "float64", "bool", "int8")),
    *(("reciprocal", dtype) for dtype in ("bool", "int8", "int64", "uint8", "float32")),
    *(
        (name, "bool")
        for name in ("abs", "floor", "ceil", "trunc", "round", "real", "imag", "conj", "square", "signbit")
    ),
    *((name, "bool") for name in ("remainder", "fmod", "bitwise_left_shift", "bitwise_right_shift", "pow", "clip")),
    *((name, "int8") for name in ("atan2", "heaviside", "copysign", "angle")),
]


@pytest.mark.parametrize(("name", "dtype"), AS_NUMPY)
def test_operation_in_the_semantics_of_numpy(name: str, dtype: str, interpreter: Interpreter) -> None:
    """The variants that only these semantics have; tests/conformance/test_numpy_values.py compares the host's."""
    column, arity = hurtful(dtype, 100), RULES[name].arity
    places = np.meshgrid(*[np.arange(column.size)] * arity, indexing="ij")
    columns = [column[place.ravel()] for place in places]
    if name in ("atan2", "heaviside", "copysign"):
        columns[1] = columns[1].view("uint8")
    got = interpreter.call(name, *columns, semantics="numpy")
    with ta.semantics("numpy"):
        expected = ta.to_numpy(PUBLIC[name](*[ta.asarray(column, device="cpu") for column in columns]))
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)
    assert got.dtype.kind != "f" or (np.signbit(got) == np.signbit(expected))[~np.isnan(got)].all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_finite_numbers_whose_modulus_overflows_may_be_close(dtype: str, interpreter: Interpreter) -> None:
    big = float(np.finfo(dtype).max) * 0.9
    x = np.array([complex(big, big), complex(math.inf, big), complex(big, math.inf), complex(math.nan, big)], dtype)
    y = np.array([complex(big * 0.999999, big)] * 4, dtype)
    got = interpreter.call("isclose", x, y, np.full_like(x, 1e-5), np.full_like(x, 1e-8))
    assert got.tolist() == [True, False, False, False]
    got = interpreter.call("isclose", y, x, np.full_like(x, 1e-5), np.full_like(x, 1e-8))
    assert got.tolist() == [True, False, False, False]


MIXED = [
    ("int8", "uint8"),
    ("uint64", "int64"),
    ("int16", "uint64"),
    ("uint64", "int8"),
    ("bool", "uint64"),
    ("uint32", "int32"),
]


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("dtypes", MIXED)
def test_integers_of_mixed_signedness_compare_as_numbers(
    name: str, dtypes: tuple[str, str], interpreter: Interpreter
) -> None:
    x, y = (hurtful(dtype, 80) for dtype in dtypes)
    columns = [np.repeat(x, y.size), np.tile(y, x.size)]
    got = interpreter.call(name, *columns)
    outcome = predict(name, [Operand(column.dtype.name, exact(column)) for column in columns], "array-api")
    assert disagreements(exact(got), outcome) == []


PROMOTED = [
    *(("float16", "bfloat16"), ("float16", "float32"), ("int32", "float16"), ("float8_e5m2", "float8_e4m3fn")),
    *(
        ("uint8", "int8"),
        ("bool", "float64"),
        ("float64", "complex64"),
        ("int64", "bfloat16"),
        ("int64", "float8_e5m2"),
    ),
]


@pytest.mark.parametrize("dtypes", PROMOTED)
@pytest.mark.parametrize("semantics", ["array-api", "triton"])
def test_operands_are_rounded_to_the_common_dtype_first(
    dtypes: tuple[str, str], semantics: str, interpreter: Interpreter
) -> None:
    columns = [np.repeat(hurtful(dtypes[0], 60), 60), np.tile(hurtful(dtypes[1], 60), 60)]
    columns[0], columns[1] = (column[: min(map(len, columns))] for column in columns)
    got = interpreter.call("add", *columns, semantics=semantics)
    outcome = predict("add", [Operand(column.dtype.name, exact(column)) for column in columns], semantics)
    assert got.dtype == dtype_of(outcome.dtype)
    assert disagreements(exact(got), outcome) == []


@pytest.mark.parametrize("dtype", ARITHMETIC)
def test_numbers(dtype: str, interpreter: Interpreter) -> None:
    """A Python number is an argument of the kernel, rounded once to the dtype that the semantics give it."""
    x = hurtful(dtype, 20)
    ran = 0
    for number in NUMBERS:
        operands = [Operand(dtype, exact(x)), Operand(None, [number] * x.size, number)]
        outcome = predict("add", operands, "array-api")
        if not outcome.errors:
            got = interpreter.call("add", x, number)
            assert got.dtype == dtype_of(outcome.dtype)
            assert disagreements(exact(got), outcome) == [], number
            ran += 1
    assert ran >= 20


# --- casts ----------------------------------------------------------------------------------------------------------


def near_midpoints(source: str, target: str) -> list[np.ndarray]:
    """Values of a float halfway between two of a narrower one, and beside it."""
    dtype, rng = dtype_of(target), np.random.default_rng(1)
    half = 2 ** (width_of(target) - 1)
    codes = (
        np.arange(half - 1) if half <= 128 else np.unique(np.concatenate([np.arange(99), rng.integers(0, half, 2000)]))
    )
    unsigned = np.dtype(f"u{dtype.itemsize}")
    with np.errstate(all="ignore"):
        below, above = (code.astype(unsigned).view(dtype).astype(np.float64) for code in (codes, codes + 1))
        middle = (below + above) / 2
        middle = np.concatenate([middle, -middle, below])[: 3 * codes.size]
        beside = [middle.astype(dtype_of(source))]
        if source in ("float32", "float64"):
            beside += [np.nextafter(beside[0], np.array(end, source)) for end in (math.inf, -math.inf)]
        if source == "float64":  # nearer to the middle than float32 can tell
            beside += [middle * (1 + tiny) for tiny in (2.0**-52, 2.0**-40, -(2.0**-30), 2.0**-26, -(2.0**-25))]
    return beside


def integers_near_midpoints(source: str, target: str) -> np.ndarray:
    """Integers halfway between two values of a float, and one off."""
    low, high = limits_of(source)
    precision, rng = FORMATS[target].precision, random.Random(5)
    found = []
    for length in range(precision + 1, width_of(source) + 1):
        for _ in range(12):
            value = (rng.getrandbits(precision - 1) | 1 << (precision - 1)) << (length - precision)
            value += 1 << (length - precision - 1)
            found += [sign * (value + off) for off in (-1, 0, 1) for sign in (1, -1)]
    return np.array([value for value in found if low <= value <= high], source)


def near_limits(source: str, target: str) -> np.ndarray:
    """Floats at the ends of an integer's range, and at 0 and -1."""
    low, high = limits_of(target)
    ends = [float(Fraction(end) + Fraction(off, 2)) for end in (low, high, 0) for off in range(-4, 5)]
    with np.errstate(all="ignore"):
        found = np.array([*ends, math.inf, -math.inf, math.nan, -5e-324], np.float64).astype(dtype_of(source))
        if source not in ("float32", "float64"):
            return found
        return np.concatenate([found, *[np.nextafter(found, np.array(end, source)) for end in (math.inf, -math.inf)]])


def to_cast(source: str, target: str) -> np.ndarray:
    """Values that hurt, values at random, and those that this pair is most likely to get wrong."""
    parts = [hurtful(source, 6000), pool(source)[-4000:]]
    kinds = kind_of(source), kind_of(target)
    if kinds == ("float", "float") and width_of(target) < width_of(source):
        parts += near_midpoints(source, target)
    elif kinds == ("int", "float"):
        parts.append(integers_near_midpoints(source, target))
    elif kinds == ("float", "int"):
        parts.append(near_limits(source, target))
    return np.concatenate(parts)


@pytest.mark.parametrize("target", ARITHMETIC)
@pytest.mark.parametrize("source", ARITHMETIC)
def test_cast(source: str, target: str, interpreter: Interpreter) -> None:
    """Every cast rounds once; float to integer saturates; the same values as the rules give, and NaN for NaN."""
    x = to_cast(source, target)
    outcome = predict_astype(Operand(source, exact(x)), target)
    if outcome.errors:
        assert (kind_of(source), kind_of(target) in ("complex", "bool")) == ("complex", False)
        return
    assert disagreements(exact(interpreter.call("astype", x, out=target)), outcome) == []


@pytest.mark.parametrize("target", ["float8_e4m3fn", "float8_e5m2"])
def test_every_float16_and_many_float32_to_8_bits(target: str, interpreter: Interpreter) -> None:
    """All 65536 float16, and float32 of every exponent with random significands."""
    halves = np.arange(65536).astype(np.uint16).view(np.float16)
    words = np.random.default_rng(8).integers(0, 2**32, 200_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    narrow = np.random.default_rng(9).uniform(-20, 17, 100_000)
    for x in (halves, words, np.exp2(narrow).astype(np.float32)):
        outcome = predict_astype(Operand(x.dtype.name, exact(x)), target)
        assert disagreements(exact(interpreter.call("astype", x, out=target)), outcome) == []


# --- device functions, called directly ------------------------------------------------------------------------------


def calling(template: str, inputs: list[str], returns: str) -> Expression:
    """A body that calls an expression on its inputs."""
    nodes = [("input", position) for position in range(len(inputs))]
    call = ("call", "probe", tuple(range(len(inputs))), returns, template)
    kinds = tuple(("array", name) for name in inputs)
    return Expression(kinds, (*nodes, call), (len(inputs),), (returns,), (None,) * len(inputs), dtype_of(returns))


def rounded_to_odd(value: Fraction, precision: int, lowest: int, largest: float) -> float:
    """The float toward zero, its last bit set if anything was lost; in exact arithmetic."""
    magnitude = abs(value)
    if not magnitude:
        return 0.0
    exponent = max(math.frexp(float(magnitude))[1] - precision, lowest)
    while magnitude >= Fraction(2) ** (exponent + precision):  # float() had rounded up
        exponent += 1
    while exponent > lowest and magnitude < Fraction(2) ** (exponent + precision - 1):
        exponent -= 1
    steps = magnitude / Fraction(2) ** exponent
    odd = steps.numerator // steps.denominator | (steps.denominator != 1)
    return math.copysign(min(float(odd * Fraction(2) ** exponent), largest), value)


def test_float64_rounded_to_odd_as_float32(interpreter: Interpreter) -> None:
    x = np.concatenate([hurtful("float64", 6000), pool("float64")[-9000:], *near_midpoints("float64", "bfloat16")])
    got = interpreter.call(calling("odd_float32({x})", ["float64"], "float32"), x).astype(np.float64)
    finite = np.isfinite(x)
    expected = [rounded_to_odd(Fraction(value), 24, -149, FORMATS["float32"].largest) for value in x[finite].tolist()]
    assert got[finite].tolist() == expected
    np.testing.assert_array_equal(got[~finite], x[~finite])
    assert (np.signbit(got) == np.signbit(x))[~np.isnan(x)].all()


@pytest.mark.parametrize("source", ["int64", "uint64"])
def test_integers_rounded_to_odd_as_float64(source: str, interpreter: Interpreter) -> None:
    """Beyond 2**53 the last 11 bits become one that says whether any was set, which is all a float32 has to know."""
    low, high = limits_of(source)
    edges = [
        sign * 2**power + off for power in range(64) for off in (-2049, -1, 0, 1, 1023, 2047, 2048) for sign in (1, -1)
    ]
    x = np.concatenate([np.array([edge for edge in edges if low <= edge <= high], source), pool(source)[-9000:]])
    kind = "int" if source == "int64" else "uint"
    got = interpreter.call(calling(f"odd_float64_{kind}({{x}})", [source], "float64"), x).tolist()
    for value, found in zip(x.tolist(), got, strict=True):
        expected = value if abs(value) < 2**53 else (value // 2048 | (value % 2048 != 0)) * 2048
        assert Fraction(found) == expected


@pytest.mark.parametrize(("dtype", "mantissa", "bias", "largest", "infinity"),
                         [("float8_e4m3fn", 3, 7, "0x7E", "0xFF"), ("float8_e5m2", 2, 15, "0x7B", "0x7C")])  # fmt: skip
def test_all_codes_of_8_bits_are_read(
    dtype: str, mantissa: int, bias: int, largest: str, infinity: str, interpreter: Interpreter
) -> None:
    """The function of the device, on bytes; its value is what ml_dtypes says of the code."""
    codes = np.arange(256).astype(np.uint8)
    template = f"bits8_to_float32({{x}}, {mantissa}, {bias}, {largest}, {infinity})"
    got = interpreter.call(calling(template, ["uint8"], "float32"), codes)
    expected = codes.view(dtype_of(dtype)).astype(np.float32)
    np.testing.assert_array_equal(got, expected)
    assert (np.signbit(got) == np.signbit(expected)).all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_products_round_each_operation(dtype: str, interpreter: Interpreter) -> None:
    """Two products and a sum, each rounded: nothing is contracted, and infinities and NaN are what that gives."""
    values = hurtful(dtype, 120)
    x, y = np.repeat(values, values.size), np.tile(values, values.size)
    with np.errstate(all="ignore"):
        real = x.real * y.real - x.imag * y.imag
        imag = x.real * y.imag + x.imag * y.real
        square = (x.real - x.imag) * (x.real + x.imag)
    got = interpreter.call("multiply", x, y)
    np.testing.assert_array_equal(got.real, real)
    np.testing.assert_array_equal(got.imag, imag)
    np.testing.assert_array_equal(interpreter.call("square", x).real, square)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_quotients(dtype: str, interpreter: Interpreter) -> None:
    """Within 4 eps of the modulus where nothing overflows; by zero as NumPy divides."""
    part = np.float32 if dtype == "complex64" else np.float64
    rng, eps = np.random.default_rng(0), np.finfo(part).eps
    size = rng.choice([1e-6, 1.0, 1e6], (4, 20_000)) * rng.uniform(-1, 1, (4, 20_000))
    x, y = ((size[k] + 1j * size[k + 1]).astype(dtype) for k in (0, 2))
    got = interpreter.call("divide", x, y)
    wide = np.clongdouble(x) / np.clongdouble(y)
    assert (abs(got - wide) <= 4 * eps * abs(wide)).all()
    x = np.array([1 + 2j, -1 + 0j, 0j, complex(math.inf, 1), complex(math.nan, 0)] * 4, dtype)
    y = np.repeat(np.array([complex(re, im) for re in (0.0, -0.0) for im in (0.0, -0.0)], dtype), 5)
    with np.errstate(all="ignore"):
        expected = x / y
    np.testing.assert_array_equal(interpreter.call("divide", x, y), expected)
