"""The host functions on bool and integers, against Python's ints; and on any memory: aliased, strided, 0-d, empty."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.oracles.formats import kind_of
from support.oracles.rules import COMPARE, RULES, Rule

from tilearray_host.functions import FUNCTIONS

pytestmark = pytest.mark.filterwarnings("error")

SIGNED, UNSIGNED = ["int8", "int16", "int32", "int64"], ["uint8", "uint16", "uint32", "uint64"]
INTEGERS = [*SIGNED, *UNSIGNED]
COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]


def call(name: str, *operands: np.ndarray, dtype: Any = None, out: np.ndarray | None = None) -> np.ndarray:
    """Run a function as a kernel does: warnings off, the output given."""
    if out is None:
        shape = np.broadcast_shapes(*(operand.shape for operand in operands))
        out = np.empty(shape, dtype or operands[0].dtype)
    with np.errstate(all="ignore"):
        FUNCTIONS[name](*operands, out=out)
    return out


# --- integers -----------------------------------------------------------------------------------------------------


def c_divide(x: int, y: int) -> int:
    return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def int_power(x: int, y: int) -> int:
    if y >= 0:
        return pow(x, y, 1 << 64)
    return {1: 1, -1: 1 if y % 2 == 0 else -1}.get(x, 0)


def shifted(x: int, count: int, bits: int, left: bool) -> int:
    if not 0 <= count < bits:
        return -1 if x < 0 and not left else 0
    return x << count if left else x >> count


BINARY: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda x, y, bits: x + y,
    "subtract": lambda x, y, bits: x - y,
    "multiply": lambda x, y, bits: x * y,
    "floor_divide": lambda x, y, bits: x // y if y else 0,
    "remainder": lambda x, y, bits: x % y if y else 0,
    "floor_divide_trunc": lambda x, y, bits: c_divide(x, y),
    "remainder_trunc": lambda x, y, bits: x - y * c_divide(x, y) if y else 0,
    "floor_divide_numpy": lambda x, y, bits: x // y if y else 0,
    "pow": lambda x, y, bits: int_power(x, y),
    "minimum": lambda x, y, bits: min(x, y),
    "maximum": lambda x, y, bits: max(x, y),
    "bitwise_and": lambda x, y, bits: x & y,
    "bitwise_or": lambda x, y, bits: x | y,
    "bitwise_xor": lambda x, y, bits: x ^ y,
    "bitwise_left_shift": lambda x, y, bits: shifted(x, y, bits, left=True),
    "bitwise_right_shift": lambda x, y, bits: shifted(x, y, bits, left=False),
}
UNARY: dict[str, Callable[[int], int]] = {
    "identity": lambda x: x,
    "positive": lambda x: x,
    "negative": lambda x: -x,
    "abs": abs,
    "square": lambda x: x * x,
    "reciprocal": lambda x: x if abs(x) == 1 else 0,
    "floor": lambda x: x,
    "bitwise_invert": lambda x: ~x,
}


def wrap(value: int, dtype: str) -> int:
    info = np.iinfo(dtype)
    return (value - info.min) % (1 << info.bits) + info.min


def integers(dtype: str) -> list[int]:
    """Extremes, small numbers, powers of two and their neighbours, some at random."""
    info = np.iinfo(dtype)
    rng = random.Random(dtype)
    found = [info.min, info.min + 1, info.max, info.max - 1, *range(-10, 11), 31, 32, 33, 63, 64, 65]
    found += [sign * (1 << n) + d for n in (7, 8, 15, 31, 32, 52, 53, 62, 63) for d in (-1, 0, 1) for sign in (1, -1)]
    found += [rng.randint(info.min, info.max) for _ in range(20)]
    return sorted({value for value in found if info.min <= value <= info.max})


def pairs(xs: list[Any], ys: list[Any], x_dtype: str, y_dtype: str) -> tuple[np.ndarray, np.ndarray]:
    both = list(itertools.product(xs, ys))
    return np.array([x for x, _ in both], x_dtype), np.array([y for _, y in both], y_dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", BINARY)
def test_binary_on_integers(name: str, dtype: str) -> None:
    values = integers(dtype)
    x, y = pairs(values, values, dtype, dtype)
    bits = np.iinfo(dtype).bits
    expected = [wrap(BINARY[name](a, b, bits), dtype) for a, b in itertools.product(values, values)]
    assert call(name, x, y).tolist() == expected


@pytest.mark.parametrize("dtype", INTEGERS)
def test_powers_of_integers_as_in_numpy(dtype: str) -> None:
    values = integers(dtype)
    whole = [value for value in values if value >= 0]
    x, y = pairs(values, whole, dtype, dtype)
    assert call("pow_numpy", x, y).tolist() == [
        wrap(int_power(a, b), dtype) for a, b in itertools.product(values, whole)
    ]
    if dtype in SIGNED:
        with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed"):
            call("pow_numpy", x, np.where(np.arange(y.size) == y.size - 1, -1, y).astype(dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", UNARY)
def test_unary_on_integers(name: str, dtype: str) -> None:
    values = integers(dtype)
    assert call(name, np.array(values, dtype)).tolist() == [wrap(UNARY[name](value), dtype) for value in values]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_never_nan(dtype: str) -> None:
    assert not call("isnan", np.array(integers(dtype), dtype), dtype=bool).any()


MIXED = [*[(s, "uint64") for s in SIGNED], *[("uint64", s) for s in SIGNED]]


@pytest.mark.parametrize(("x_dtype", "y_dtype"), [*[(d, d) for d in INTEGERS], *MIXED])
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_of_integers_are_exact(name: str, x_dtype: str, y_dtype: str) -> None:
    xs, ys = integers(x_dtype), integers(y_dtype)
    result = call(name, *pairs(xs, ys, x_dtype, y_dtype), dtype=bool)
    assert result.tolist() == [COMPARE[name](a, b) for a, b in itertools.product(xs, ys)]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_clip_and_where_on_integers(dtype: str) -> None:
    values = integers(dtype)[::3]
    triples = list(itertools.product(values, repeat=3))
    x, low, high = (np.array(column, dtype) for column in zip(*triples, strict=True))
    assert call("clip", x, low, high).tolist() == [min(max(a, b), c) for a, b, c in triples]
    chosen = call("where", x > low, x, high, dtype=dtype)
    assert chosen.tolist() == [a if a > b else c for a, b, c in triples]


# --- bool ---------------------------------------------------------------------------------------------------------

BOOLEAN: dict[str, Callable[[bool, bool], bool]] = {
    "add": lambda x, y: x or y,
    "multiply": lambda x, y: x and y,
    "bitwise_and": lambda x, y: x and y,
    "bitwise_or": lambda x, y: x or y,
    "bitwise_xor": lambda x, y: x != y,
    "minimum": lambda x, y: x and y,
    "maximum": lambda x, y: x or y,
    **COMPARE,
}


@pytest.mark.parametrize("name", BOOLEAN)
def test_binary_on_bool(name: str) -> None:
    x, y = pairs([False, True], [False, True], "bool", "bool")
    assert call(name, x, y).tolist() == [BOOLEAN[name](a, b) for a, b in itertools.product([False, True], repeat=2)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *[("abs", [False, True]), ("floor", [False, True]), ("identity", [False, True]), ("positive", [False, True])],
        *[("isnan", [False, False]), ("bitwise_invert", [True, False])],
    ],
)
def test_unary_on_bool(name: str, expected: list[bool]) -> None:
    assert call(name, np.array([False, True])).tolist() == expected


# --- memory: aliasing, strides, scalars ---------------------------------------------------------------------------


def rule_of(name: str) -> Rule:
    return RULES[re.sub(r"(_trunc|_numpy|_r[zmp]|_number|_ftz)*$", "", name)]


def operands_of(name: str, dtype: str) -> list[np.ndarray]:
    """Operands of a function, with values of both signs, zero and (for shifts and powers) small ones."""
    rng = np.random.default_rng(2)
    rule = rule_of(name)
    found = [rng.integers(-9, 10, (6, 8)).astype(dtype) for _ in range(rule.arity)]
    if name == "pow_numpy":  # it refuses negative exponents of integers
        found[1] = np.abs(found[1])
    end = rule.arity - rule.exponents
    return [o > 0 for o in found[: rule.masks]] + found[rule.masks : end] + [o.astype(np.int64) for o in found[end:]]


def defined(name: str, dtype: str) -> bool:
    """Whether a function takes a dtype, and gives it back."""
    rule, kind = rule_of(name), kind_of(dtype)
    if re.search(r"_r[zmp]$|_ftz$", name):
        return dtype == "float32" or (dtype == "float64" and not name.endswith("_ftz"))
    if rule.result == "truth":
        return kind == "bool"
    if "bool" in rule.result or "int32" in rule.result or (rule.result, kind) == ("int", "bool"):
        return False
    computed = kind == "float" if "float" in rule.result or name == "divide" else kind in rule.kinds
    wide = rule.result != "float64" or dtype == "float64"
    return computed and wide and (kind == "int" or not name.endswith("trunc"))


SAME_DTYPE = list(FUNCTIONS)
ALIASED = [(n, d) for n in SAME_DTYPE for d in ("bool", "int64", "uint8", "float32", "float64") if defined(n, d)]


@pytest.mark.parametrize(("name", "dtype"), ALIASED)
def test_out_may_be_any_operand(name: str, dtype: str) -> None:
    expected = call(name, *operands_of(name, dtype), dtype=dtype)
    for position, operand in enumerate(operands_of(name, dtype)):
        if operand.dtype == np.dtype(dtype):
            operands = operands_of(name, dtype)
            call(name, *operands, out=operands[position])
            np.testing.assert_array_equal(operands[position], expected, strict=True)


@pytest.mark.parametrize(("name", "dtype"), ALIASED)
def test_strides_scalars_and_empty(name: str, dtype: str) -> None:
    operands = operands_of(name, dtype)
    expected = call(name, *operands, dtype=dtype)
    spread = [np.repeat(np.repeat(o, 2, 0), 3, 1)[::-2, ::3][::-1] for o in operands]
    gapped = np.zeros((8, 6, 2), dtype).T[1]
    np.testing.assert_array_equal(call(name, *spread, out=gapped), expected)
    assert call(name, *[o[:0] for o in operands], dtype=dtype).shape == (0, 8)
    last = operands[-1][2, 3]
    scalars = [*operands[:-1], np.array(last)] if len(operands) > 1 else [np.array(last)]
    full = [*operands[:-1], np.full((6, 8), last)]
    wide = np.zeros((6, 8), dtype)
    np.testing.assert_array_equal(call(name, *scalars, out=wide), call(name, *full, dtype=dtype))


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float8_e4m3fn", "float4_e2m1fn", "float8_e8m0fnu", "int16"])
def test_where_and_identity_move_any_dtype(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    x, y = (np.arange(k, k + 8).astype(np.uint8).repeat(dtype.itemsize).view(dtype) for k in (0, 8))
    condition = np.arange(8) % 3 == 0
    expected = [a.tobytes() if c else b.tobytes() for c, a, b in zip(condition, x, y, strict=True)]
    assert [v.tobytes() for v in call("where", condition, x, y, dtype=dtype)] == expected
    assert [v.tobytes() for v in call("where", condition, x, y, out=x)] == expected
    assert call("identity", y).tobytes() == y.tobytes()


def test_the_caller_owns_the_warnings() -> None:
    """The functions are bare: outside of a kernel's errstate NumPy warns as ever."""
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        FUNCTIONS["floor_divide"](np.array([1]), np.array([0]), out=np.empty(1, int))
