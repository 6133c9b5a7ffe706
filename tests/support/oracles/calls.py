"""The expected outcome of every call, from the written rules alone: dtype, values, or the errors that may be raised.

Only the exception classes of tilearray are used here. Operands are cast as `rules` says, computed by its table, and
rounded by `formats`. NumPy computes the values that Python cannot, one precision wider: float64 for float32,
``longdouble`` for float64. `disagreements` compares: bit for bit, NaN payloads aside, or within a table of ulps.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from support.oracles.formats import (
    FORMATS,
    KINDS,
    PART,
    STORAGE,
    Number,
    Values,
    cast,
    kind_of,
    limits_of,
    rounded_fraction,
    step,
    width_of,
)
from support.oracles.promotion import (
    BOOLS_OF_NUMPY,
    INTEGER,
    NOT_COMPUTED,
    WIDE_NUMBERS,
    common,
    float_of,
    loop_of_numpy,
    stores,
)
from support.oracles.rules import COMPARISONS, INTEGERS_IN_NUMPY, RULES, TRUNCATING, Rule, floored_in_numpy, number_kind
from tilearray.errors import DTypeError, PromotionError, ScalarOverflowError

SAME_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
REFUSES_NEGATIVE_POWERS = True
"""Whether arrays with negative integer exponents are an error under NumPy's semantics: on the host, not on a GPU."""

# --- a call -------------------------------------------------------------------------------------------------------

# How far NumPy's and SciPy's functions may be from the rounded wider result, in units of its last place: what NumPy
# promises, and more where it is known. Narrower floats compute in float32: 1 is enough for them.
PROMISED = 4
ULPS: dict[tuple[str, str], int] = {
    **{(name, "float64"): 1 for name in ("exp", "log", "sin", "pow", "float_power")},
    ("erfc", "float64"): 8,
    ("ndtr", "float64"): 10,
    ("gamma", "float64"): 12,
}
# CUDA's bounds, from the appendix on mathematical functions of its programming guide: 2, and more for these.
CUDA_PROMISES = 2
CUDA_ULPS: dict[tuple[str, str], int] = {
    **{(name, "float32"): 3 for name in ("hypot", "sinh", "asinh", "atanh", "atan2")},
    **{(name, "float32"): 4 for name in ("tan", "acosh", "erfc", "pow")},
    **{(name, "float64"): 3 for name in ("asinh", "acosh")},
    ("erfc", "float64"): 5,
    ("erfinv", "float64"): 5,
    ("lgamma", "float32"): 6,
    ("lgamma", "float64"): 4,
    ("gamma", "float32"): 5,
    ("gamma", "float64"): 10,
    **{("expit", dtype): 4 for dtype in ("float32", "float64")},  # an exponential, a sum and a quotient
    **{("logit", dtype): 5 for dtype in ("float32", "float64")},  # twice the error of a quotient, and a logarithm
    **{("ndtr", dtype): 5 for dtype in ("float32", "float64")},
    **{("sinc", dtype): 4 for dtype in ("float32", "float64")},  # the sine of 2 bounds, a product and a quotient
    **{  # an exponential, a logarithm and a sum
        (name, dtype): 4 for name in ("logaddexp", "logaddexp2") for dtype in ("float32", "float64")
    },
}
# The same for complex, in the last place of the modulus: only operands of moderate size are held to it.
COMPLEX_PROMISED = 8
COMPLEX_ULPS = {"multiply": 2, "divide": 4, "reciprocal": 4, "square": 2, "abs": 4, "sqrt": 4, "exp": 4, "log": 4}
WIDER = {
    "float32": np.float64,
    "float64": np.longdouble,
    "complex64": np.complex128,
    "complex128": np.clongdouble,
}


class Operand(NamedTuple):
    """A typed operand, its elements in the order of the result; or a Python number, which has no dtype."""

    dtype: str | None
    values: Values
    number: Number | None = None
    point: bool = False  # a 0-d array

    @property
    def kind(self) -> str:
        return number_kind(self.number) if self.dtype is None else kind_of(self.dtype)  # type: ignore[arg-type]


class Outcome(NamedTuple):
    """One of the errors, if there are any; else a dtype, and values with the ulps that each may be off."""

    errors: frozenset[type[Exception]] = frozenset()
    dtype: str = ""
    values: Values = []  # noqa: RUF012
    ulps: list[float] = []  # noqa: RUF012
    place: str = ""  # the format whose last place the ulps are of
    free_zero: bool = False


def predict(name: str, operands: Sequence[Operand], semantics: str, target: str | None = None) -> Outcome:
    """What a call must give, stored in a target of some dtype if there is one."""
    rule = RULES[name]
    end = rule.arity - rule.exponents
    masks, rest, exponents = operands[: rule.masks], operands[rule.masks : end], operands[end:]
    errors: set[type[Exception]] = {error for operand in exponents for error in exponent_errors(operand)}
    integers = all(operand.kind in ("bool", "int") for operand in rest)
    if rule.result == "truth":
        typed, columns = "bool", [[value != 0 for value in operand.values] for operand in rest]
    elif name in COMPARISONS and integers and any(operand.dtype for operand in rest):
        typed, columns = "int64", [operand.values for operand in rest]  # exact, and never an error
    else:
        try:
            typed = typed_as(name, rule, rest, semantics)
            if semantics == "numpy" and name == "ldexp" and rest[0].dtype is None and exponents[0].dtype and not errors:
                typed = ldexp_of_number(rest[0].kind, exponents[0].dtype) or typed
        except (PromotionError, ScalarOverflowError) as error:
            return Outcome(frozenset(errors | {type(error)}))
        errors |= refusals(name, rule, rest, typed, semantics)
        columns = [] if errors else [rounded(name, operand, typed, semantics) for operand in rest]
    result = result_of(rule, typed)
    if target is not None and not stores(result, target, semantics):
        errors.add(DTypeError)
    if errors:
        return Outcome(frozenset(errors))
    values, ulps = compute(
        name,
        rule,
        [*([value != 0 for value in o.values] for o in masks), *columns, *(o.values for o in exponents)],
        typed,
        semantics,
    )
    place = PART.get(typed, typed) if kind_of(typed) in ("float", "complex") else ""
    stored = target or result
    return Outcome(frozenset(), stored, cast(values, result, stored), ulps, place, rule.free_zero)


def ldexp_of_number(kind: str, exponent: str) -> str | None:
    """NumPy's dtype of an integer with exponents: the first loop that takes them, float16, unless they are bools."""
    return "float16" if kind == "int" and exponent != "bool" else None


def exponent_errors(operand: Operand) -> set[type[Exception]]:
    """An exponent is an integer that int64 holds, or a bool."""
    if operand.kind not in ("bool", "int") or operand.dtype == "uint64":
        return {DTypeError}
    low, high = limits_of("int64")
    return set() if operand.number is None or low <= operand.number <= high else {ScalarOverflowError}  # type: ignore[operator]


def result_of(rule: Rule, typed: str) -> str:
    """The result dtype of operands of a dtype."""
    if "bool" in rule.result or rule.result == "truth":
        return "bool"
    if "int32" in rule.result:
        return "int32"
    return PART.get(typed, typed) if "real" in rule.result else typed


def predict_astype(operand: Operand, target: str) -> Outcome:
    """Any dtype becomes any other, but complex no real one."""
    if operand.kind == "complex" and kind_of(target) not in ("complex", "bool"):
        return Outcome(frozenset({DTypeError}))
    values = cast(operand.values, operand.dtype or "", target)
    return Outcome(frozenset(), target, values, [0.0] * len(values))


def predict_assignment(operand: Operand, target: str) -> Outcome:
    """An array is cast within its kind; a number is taken as the target's dtype, whose kind and range must hold it."""
    if operand.number is None:
        return predict("identity", [operand], "array-api", target)
    if kind_of(target) == "int" and operand.kind in ("bool", "int"):
        low, high = limits_of(target)
        if not low <= operand.number <= high:  # type: ignore[operator]
            return Outcome(frozenset({ScalarOverflowError}))
    elif kind_of(target) != "bool" and KINDS.index(operand.kind) > KINDS.index(kind_of(target)):
        return Outcome(frozenset({DTypeError}))
    values = cast(operand.values, number_dtype(operand.number), target)
    return Outcome(frozenset(), target, values, [0.0] * len(values))


def number_dtype(value: Number) -> str:
    """A dtype that a Python number's value can be said to have, for `cast`."""
    return {"bool": "bool", "int": "int64", "float": "float64", "complex": "complex128"}[number_kind(value)]


def typed_as(name: str, rule: Rule, operands: Sequence[Operand], semantics: str) -> str:
    """The dtype that operands are rounded to."""
    typed = common(operands, semantics)
    if rule.result == "float64" and typed not in STORAGE:
        return "complex128" if kind_of(typed) == "complex" else "float64"
    if semantics == "numpy" and kind_of(typed) in ("bool", "int"):
        loop = loop_of_numpy(name, operands, typed)
        if loop is not None and ("float" in rule.result or kind_of(loop) == "int" or name == "round"):
            return loop
    if "float" in rule.result and kind_of(typed) in ("bool", "int"):
        return float_of(name, typed, semantics)
    if rule.result == "int" and typed == "bool":
        return INTEGER[semantics]
    return typed


def rounded(name: str, operand: Operand, typed: str, semantics: str) -> Values:
    """An operand in the dtype that all are rounded to; torch keeps some numbers in the one that is computed in."""
    wide = operand.dtype is None and name in WIDE_NUMBERS.get(semantics, ())
    narrow = kind_of(typed) == "float" and width_of(typed) < 32
    return cast(operand.values, operand.dtype or number_dtype(operand.number), "float32" if wide and narrow else typed)


def refusals(name: str, rule: Rule, operands: Sequence[Operand], typed: str, semantics: str) -> set[type[Exception]]:
    """The errors of a call whose operands have a common dtype."""
    errors: set[type[Exception]] = set()
    kept = semantics == "numpy" and typed == "bool" and name in BOOLS_OF_NUMPY
    if (kind_of(typed) not in rule.kinds and not kept) or (typed in STORAGE and not rule.moves):
        errors.add(DTypeError)
    bools_compared = typed == "bool" and rule.result == "bool"
    if typed in NOT_COMPUTED.get(semantics, ()) and not rule.moves and not bools_compared:
        errors.add(DTypeError)
    if semantics == "cutile" and name in SAME_BITS and len({o.dtype for o in operands if o.dtype}) > 1:
        errors.add(DTypeError)
    if semantics == "numpy" and name == "pow" and kind_of(typed) == "int" and REFUSES_NEGATIVE_POWERS:
        errors |= {ValueError for exponent in operands[1].values if exponent < 0}  # type: ignore[operator]
    for position, operand in enumerate(operands):
        if operand.dtype is None and kind_of(typed) == "int":
            low, high = limits_of(typed)
            if not low <= operand.number <= high:  # type: ignore[operator]
                errors.add(ScalarOverflowError)
            if name == "pow" and position == 1 and operand.number < 0:  # type: ignore[operator]
                errors.add(ValueError)
    return errors


def compute(name: str, rule: Rule, columns: list[Values], typed: str, semantics: str) -> tuple[Values, list[float]]:
    """The values in the result dtype, and the ulps that each may be off."""
    kind, rows = kind_of(typed), list(zip(*columns, strict=True))
    if kind in ("bool", "int"):
        function = {"triton": TRUNCATING, "numpy": INTEGERS_IN_NUMPY}.get(semantics, {}).get(name, rule.integers)
        width = width_of(typed)
        found = [function(*row, width) for row in rows]  # type: ignore[misc]
        return cast(found, "", result_of(rule, typed)), [0.0] * len(rows)
    function = rule.floats if kind == "float" else rule.complexes
    if semantics == "numpy" and name == "floor_divide":
        function = floored_in_numpy
    computed = typed if kind == "complex" or width_of(typed) >= 32 or rule.moves or rule.narrow else "float32"
    if function is None:
        found, ulps = widely(name, rule, columns, computed)
    else:
        found = [function(*row, *[computed] * rule.narrow) for row in rows]
        # Python's floor division floors a rounded quotient: where that has a bit or less for the fraction, 1 is lost.
        huge = {"float64": 2.0**51}.get(typed, 2.0**22)
        ulps = [2.0 * (name == "floor_divide" and abs(value) >= huge) for value in found]
    if rule.open is not None:
        ulps = [math.inf if rule.open(*row) else allowed for row, allowed in zip(rows, ulps, strict=True)]
    result = result_of(rule, typed)
    if kind_of(result) in ("bool", "int"):
        return found, ulps
    if "real" in rule.result:
        computed, typed = PART.get(computed, computed), result
    found = [rounded_fraction(value, computed) if isinstance(value, Fraction) else value for value in found]
    rounded = cast(found, "complex128" if kind_of(computed) == "complex" else "float64", computed)
    return cast(rounded, computed, typed), [min(u, 1.0) if u < math.inf else u for u in ulps] if (
        typed != computed
    ) else ulps


def widely(name: str, rule: Rule, columns: list[Values], dtype: str) -> tuple[Values, list[float]]:
    """A function one precision wider, and the ulps that NumPy's own may be off."""
    wider = WIDER[dtype]
    with np.errstate(all="ignore"):
        operands = [np.array(column, wider) for column in columns]
        found = rule.wide(*operands)  # type: ignore[misc]
        if kind_of(dtype) == "float":
            values = found.astype(np.float64).tolist()
            return values, float_ulps(name, rule, values, list(zip(*columns, strict=True)), dtype)
        allowed = [complex_ulps(name, row, dtype) for row in zip(*columns, (found + 0j).tolist(), strict=True)]
        return found.astype(np.float64 if "real" in rule.result else np.complex128).tolist(), allowed


def float_ulps(name: str, rule: Rule, found: Values, rows: list[Any], dtype: str) -> list[float]:
    """What is allowed, in the last place of the result or, if that is coarser, of the number that errors come from."""
    allowed = float(ULPS.get((name, dtype), PROMISED))
    if rule.scale is None:
        return [allowed] * len(found)
    coarser = [np.float64(max(abs(value), rule.scale(*row))) for value, row in zip(found, rows, strict=True)]
    return [
        allowed * 2.0 ** min(int(step(wide, dtype) - step(np.float64(value), dtype)), 999)
        if math.isfinite(value)
        else allowed
        for value, wide in zip(found, coarser, strict=True)
    ]


def complex_ulps(name: str, row: tuple[complex, ...], dtype: str) -> float:
    """Infinite where an operand or the result is beyond moderate: intermediate results may overflow or vanish."""
    parts = [abs(part) for value in row for part in (value.real, value.imag)]
    largest = 20 if RULES[name].steep else 1e5
    if not all(part == 0 or 1e-5 < part < largest for part in parts) or row[-1] == 0:
        return math.inf
    if name in ("pow", "float_power"):  # NumPy multiplies the logarithm's error by the exponent
        return 8 + 8 * abs(row[1]) * (1 + abs(np.log(row[0]))) if row[0] else math.inf
    near_one = name in ("log", "log2", "log10") and abs(abs(row[0]) - 1) < 0.1  # the real part of the logarithm cancels
    return math.inf if near_one else float(COMPLEX_ULPS.get(name, COMPLEX_PROMISED))


# --- agreement ----------------------------------------------------------------------------------------------------


def disagreements(got: Values, outcome: Outcome) -> list[str]:
    """Where values are not what they must be: bit for bit, NaN payloads aside, or within the ulps allowed."""
    triples = zip(got, outcome.values, outcome.ulps, strict=True)
    return [
        f"element {position}: got {mine!r}, expected {want!r} within {ulps} ulp"
        for position, (mine, want, ulps) in enumerate(triples)
        if not agree(mine, want, ulps, outcome)
    ]


def agree(got: Any, want: Any, ulps: float, outcome: Outcome) -> bool:
    if ulps == math.inf:
        return True
    if isinstance(want, complex):
        if agree(got.real, want.real, ulps, outcome) and agree(got.imag, want.imag, ulps, outcome):
            return True
        return ulps > 0 and cmath.isfinite(want) and abs(got - want) <= ulps * last_place(abs(want), outcome)
    if not isinstance(want, float):
        return got == want
    if want != want and outcome.dtype == "float4_e2m1fn":
        return got == 0  # it has no NaN: a zero of either sign
    if got != got or want != want:
        return (got != got and want != want) or at_the_edge(got, want, ulps, outcome)
    if got == want:
        return outcome.free_zero or math.copysign(1, got) == math.copysign(1, want)
    if math.isinf(got) or math.isinf(want):
        return at_the_edge(got, want, ulps, outcome)
    return abs(got - want) <= ulps * last_place(want, outcome)


def last_place(value: float, outcome: Outcome) -> float:
    """The coarser of the last places that the result and the target have."""
    stored = PART.get(outcome.dtype, outcome.dtype)
    if stored == "float8_e8m0fnu":
        return abs(value)
    return max(2.0 ** int(step(np.float64(value), name)) for name in {stored, outcome.place} if name in FORMATS)


def at_the_edge(got: float, want: float, ulps: float, outcome: Outcome) -> bool:
    """One overflows, and the other is the largest value."""
    finite = [abs(value) for value in (got, want) if math.isfinite(value)]
    tops = [FORMATS[name].largest for name in {outcome.dtype, outcome.place} if name in FORMATS]
    near = any(0 <= top - finite[0] <= ulps * last_place(top, outcome) for top in tops if finite)
    return near and ulps > 0 and len(finite) == 1
