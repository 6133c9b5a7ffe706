"""Semantics ``numpy`` against the installed NumPy: `numpy.result_type`, its casting rule, and its ufuncs.

NumPy is asked by the library too, so what is tested is that it is asked rightly: numbers by class in place of numbers
by value, one order of operands, and the rules of ops on top. NumPy's ufuncs know ml_dtypes' dtypes by registered loops
only: where a ufunc finds one though `result_type` finds no dtype, or another, `result_type` is kept to.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from support.conformance import (
    BINARY,
    COMPARISONS,
    ERROR,
    OPERATORS,
    SCALARS,
    UNARY,
    Listed,
    Question,
    check,
    fits,
    integer,
    number_of,
    ours,
    pairs,
    stored_by_us,
    with_numbers,
)
from support.oracles.formats import ARITHMETIC, STORAGE, dtype_of, kind_of

import tilearray as ta

MINIFLOATS = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
OWN = [name for name in ARITHMETIC if name not in MINIFLOATS]


def answer(ask: Callable[[], Any]) -> str:
    with np.errstate(all="ignore"):
        try:
            return np.dtype(ask()).name
        except (TypeError, OverflowError, ValueError):
            return ERROR


def our_result_type(*operands: Any) -> str:
    with ta.semantics("numpy"):
        try:
            return ta.result_type(*operands).name
        except (ta.PromotionError, ta.ScalarOverflowError):
            return ERROR


@pytest.mark.parametrize("first", [*ARITHMETIC, *STORAGE])
def test_result_type_of_every_pair_and_every_number(first: str) -> None:
    for second in (*ARITHMETIC, *STORAGE, *SCALARS):
        other = dtype_of(second) if isinstance(second, str) else second
        theirs = answer(lambda other=other: np.result_type(dtype_of(first), other))
        assert (second, our_result_type(first, second)) == (second, theirs)
        assert (second, our_result_type(second, first)) == (second, theirs)


def test_result_type_of_three_in_any_order() -> None:
    for names in product(OWN, repeat=3):
        theirs = np.result_type(*map(dtype_of, names)).name
        assert (names, our_result_type(*names)) == (names, theirs)
    for names in product(ARITHMETIC, repeat=3):
        assert len({our_result_type(*order) for order in permutations(names)}) == 1


def test_numbers_alone() -> None:
    for number in SCALARS:
        theirs = answer(lambda number=number: np.result_type(number))
        assert (number, our_result_type(number)) == (number, ERROR if theirs == "object" else theirs)


# --- the operations -------------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[..., Any]] = {
    **OPERATORS,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "where": lambda x, y: np.where([True, False], x, y),
    "negative": operator.neg,
    "positive": operator.pos,
    "abs": operator.abs,
    "square": np.square,
    "bitwise_invert": operator.invert,
    "isnan": np.isnan,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "floor": np.floor,
}


def theirs(question: Question) -> str:
    operands = [np.ones(2, dtype_of(o)) if isinstance(o, str) else o for o in question.operands]
    return answer(lambda: CALLS[question.op](*operands).dtype)


LISTED = [
    Listed(
        "complex numbers have no order here: not for < and the like, not for minimum and maximum",
        lambda q: (
            q.op in ("minimum", "maximum", "less", "less_equal", "greater", "greater_equal")
            and ("complex" in q.kinds or isinstance(number_of(q), complex))
        ),
    ),
    Listed(
        "comparisons of integers are exact and never an error here; NumPy's of bools know int64",
        lambda q: q.op in COMPARISONS and q.dtypes == ["bool"] and integer(q) and not fits(number_of(q), "int64"),
    ),
    Listed(
        "numpy.where wraps an integer that the array does not hold; here it is an OverflowError",
        lambda q: (
            q.op == "where"
            and q.kinds <= {"bool", "int"}
            and integer(q)
            and -(2**63) <= number_of(q) < 2**64
            and not fits(number_of(q), "int64" if q.dtypes == ["bool"] else q.dtypes[0])
        ),
    ),
]


def listed(questions: list[Question]) -> list[Listed]:
    return [row for row in LISTED if any(map(row.about, questions))]


@pytest.mark.parametrize("op", BINARY)
def test_every_pair_of_dtypes(op: str) -> None:
    questions = pairs(op, OWN)
    check("numpy", theirs, questions, listed(questions))


@pytest.mark.parametrize("op", BINARY)
def test_every_dtype_with_every_number(op: str) -> None:
    questions = with_numbers(op, OWN)
    check("numpy", theirs, questions, listed(questions))


@pytest.mark.parametrize("op", UNARY)
def test_every_dtype(op: str) -> None:
    questions = [Question(op, (dtype,)) for dtype in ARITHMETIC]
    check("numpy", theirs, questions, listed(questions))


def test_ufuncs_and_result_type_differ_on_dtypes_of_ml_dtypes() -> None:
    x, number = np.ones(2, dtype_of("bfloat16")), 0.5
    assert (x + number).dtype == np.float32
    assert np.result_type(x.dtype, number) == np.float64
    assert ours("numpy", Question("add", ("bfloat16", number))) == "float64"
    assert (x + np.ones(2, np.float16)).dtype == np.float32
    assert ours("numpy", Question("add", ("bfloat16", "float16"))) == ERROR


def test_storable_dtypes_agree_with_numpy() -> None:
    for result, target in product([*ARITHMETIC, *STORAGE], repeat=2):
        theirs = np.can_cast(dtype_of(result), dtype_of(target), "same_kind")
        if kind_of(result) == "complex" and kind_of(target) != "complex":
            theirs = False  # to NumPy, complex is of one kind with some dtypes of ml_dtypes; here nothing becomes real
        assert (result, target, stored_by_us("numpy", result, target)) == (result, target, theirs)
