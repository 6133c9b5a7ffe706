"""Semantics ``numpy`` and ``torch`` on the functions of numbers: what NumPy and torch make of every dtype.

The operators are in the tests of each system; here are the functions that both or one of them has, by name. Functions
that a system does not have have no rule there: they take integers as its ``sqrt`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support.conformance import ERROR, Listed, Question, check, pairs, with_numbers
from support.oracles.formats import ARITHMETIC, dtype_of, kind_of

torch: Any = pytest.importorskip("torch", reason="the extra `test` has torch on Python 3.11 only")

FP8 = ("float8_e4m3fn", "float8_e5m2")
BARE = ("uint16", "uint32", "uint64")
OWN = [name for name in ARITHMETIC if name not in ("bfloat16", *FP8)]  # NumPy's
OF_FLOATS = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("sinc", "deg2rad", "rad2deg", "erf", "erfc", "erfinv", "lgamma", "angle", "reciprocal"),
)
OF_PARTS = (
    *("floor", "ceil", "trunc", "round", "sign", "signbit", "isnan", "isinf", "isfinite"),
    *("real", "imag", "conj", "square", "logical_not"),
)
UNARY = (*OF_FLOATS, *OF_PARTS)
OF_TWO_FLOATS = ("hypot", "logaddexp", "atan2", "copysign", "nextafter", "heaviside")
BINARY = (*OF_TWO_FLOATS, "ldexp", "float_power", "fmod", "logical_and", "logical_or", "logical_xor", "isclose")
NUMBERS = (True, 3, 300, 0.5, 1e300)


def dtype_said(ask: Callable[[], Any]) -> str:
    with np.errstate(all="ignore"):
        try:
            found = str(ask()).removeprefix("torch.")
        except (RuntimeError, TypeError, OverflowError, ValueError):
            return ERROR
    return found if found in ARITHMETIC else ERROR


def numpy_says(question: Question) -> str:
    operands = [np.ones(2, dtype_of(o)) if isinstance(o, str) else o for o in question.operands]
    return dtype_said(lambda: getattr(np, question.op)(*operands).dtype)


def torch_says(question: Question) -> str:
    operands = [torch.ones(2).to(getattr(torch, o)) if isinstance(o, str) else o for o in question.operands]
    return dtype_said(lambda: getattr(torch, question.op)(*operands).dtype)


def about(rows: Sequence[Listed], questions: list[Question]) -> list[Listed]:
    return [row for row in rows if any(map(row.about, questions))]


def only(question: Question, *kinds: str) -> bool:
    return question.kinds <= set(kinds) and all(isinstance(value, bool) for value in question.numbers)


WHOLE = ("floor", "ceil", "trunc", "round", "sign", "signbit", "real", "imag", "conj", "fmod")
NUMPY = [
    Listed("sinc takes no complex numbers here", lambda q: q.op == "sinc" and "complex" in q.kinds),
]


@pytest.mark.parametrize("op", [op for op in UNARY if hasattr(np, op)])
def test_numpy_on_every_dtype(op: str) -> None:
    questions = [Question(op, (dtype,)) for dtype in OWN]
    check("numpy", numpy_says, questions, about(NUMPY, questions))


@pytest.mark.parametrize("op", [op for op in BINARY if hasattr(np, op)])
def test_numpy_on_every_pair_and_number(op: str) -> None:
    questions = pairs(op, OWN) + [q for q in with_numbers(op, OWN, NUMBERS) if op != "ldexp"]
    check("numpy", numpy_says, questions, about(NUMPY, questions))


# torch has kernels on the CPU for some dtypes only: what is an error there is not asked.
TORCH = [
    Listed("bool is no number here", lambda q: q.op in WHOLE and only(q, "bool")),
    Listed(
        "torch looks at and copies float8 by its bits",
        lambda q: q.op in ("real", "conj", "isnan", "isinf", "isfinite") and q.dtypes[0] in FP8,
    ),
    Listed(
        "sinc, rsqrt and logaddexp take no complex numbers here",
        lambda q: q.op in ("sinc", "rsqrt", "logaddexp") and "complex" in q.kinds,
    ),
    Listed(
        "heaviside of integers is a float here; torch has it for operands of one dtype, and keeps that",
        lambda q: q.op == "heaviside" and only(q, "bool", "int"),
    ),
    Listed(
        "torch's ldexp multiplies by a power, of floats too; here the exponent is an integer of int64",
        lambda q: (
            q.op == "ldexp"
            and (kind_of(q.dtypes[1]) not in ("bool", "int") or q.dtypes[1] == "uint64" or "complex" in q.kinds)
        ),
    ),
    Listed(
        "torch's float_power casts each operand to float64, and asks for no common dtype",
        lambda q: q.op == "float_power" and not promoted(*q.dtypes),
    ),
]


def promoted(a: str, b: str) -> bool:
    try:
        torch.promote_types(getattr(torch, a), getattr(torch, b))
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("op", [op for op in UNARY if hasattr(torch, op)])
def test_torch_on_every_dtype(op: str) -> None:
    questions = [q for q in (Question(op, (dtype,)) for dtype in ARITHMETIC) if torch_says(q) != ERROR]
    check("torch", torch_says, questions, about(TORCH, questions))


@pytest.mark.parametrize("op", [op for op in BINARY if hasattr(torch, op)])
def test_torch_on_every_pair(op: str) -> None:
    questions = [q for q in pairs(op, ARITHMETIC) if torch_says(q) != ERROR]
    check("torch", torch_says, questions, about(TORCH, questions))
