"""Semantics ``cutile`` against the installed cuTile: its promotion function, and its checks of operands, on the host.

A typed operand is a tile of a dtype, a number a loosely typed constant, as in a kernel. cuTile decides the dtypes of an
operation before it emits anything, so each is run up to the point where it would.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from support.conformance import (
    COMPARISONS,
    ERROR,
    SCALARS,
    Listed,
    Question,
    check,
    fits,
    integer,
    number_of,
    pairs,
    stored_by_us,
    with_numbers,
)

import tilearray as ta

pytest.importorskip("cuda.tile", reason="cuda-tile is made for Linux only: the extra `semantics` has it")

from cuda.tile import _datatype as datatype
from cuda.tile._ir import arithmetic_ops as arithmetic
from cuda.tile._ir import cast_ops
from cuda.tile._ir.ops_utils import promote_dtypes
from cuda.tile._ir.type import LooselyTypedScalar, TileTy
from support.cutile import DTYPES, FP8, Tile, answer, emit_nothing, tile_of

NUMBERS = [number for number in SCALARS if not isinstance(number, complex)]


def typed(operand: Any) -> Any:
    return DTYPES[operand] if isinstance(operand, str) else LooselyTypedScalar(operand)


# --- the promotion function -----------------------------------------------------------------------------------------


def ours(*operands: Any) -> str:
    """The common dtype, and whether it holds an integer constant."""
    with ta.semantics("cutile"):
        try:
            found = ta.result_type(*operands).name
        except (ta.PromotionError, ta.ScalarOverflowError):
            return ERROR
    constants = [x for x in operands if type(x) is int]
    return found if "int" not in found or all(fits(x, found) for x in constants) else ERROR


@pytest.mark.parametrize("first", DTYPES)
def test_every_pair_and_every_number(first: str) -> None:
    for second in (*DTYPES, *NUMBERS):
        theirs = answer(lambda second=second: promote_dtypes(typed(first), typed(second)))
        assert (second, ours(first, second)) == (second, theirs)
        assert (second, ours(second, first)) == (second, theirs)


def test_numbers_alone() -> None:
    for number in NUMBERS:
        theirs = answer(lambda number=number: datatype.promote_dtypes(*[_constant(number)] * 2))
        assert (number, ours(number)) == (number, theirs)


def _constant(number: Any) -> Any:
    from cuda.tile._ir.typing_support import dtype_of_constant_scalar

    return dtype_of_constant_scalar(number)


# --- the operations, up to where they emit --------------------------------------------------------------------------


def binary(function: str) -> Callable[[Any, Any], Any]:
    return lambda x, y: arithmetic.binary_arithmetic_tensorlike(function, x, y)


def bitwise(function: str) -> Callable[[Any, Any], Any]:
    return lambda x, y: arithmetic.binary_bitwise_tensorlike(function, x, y)


def shift(function: str) -> Callable[[Any, Any], Any]:
    return lambda x, y: arithmetic.bitwise_shift_tensorlike(function, x, y)


def comparison(function: str) -> Callable[[Any, Any], Any]:
    return lambda x, y: arithmetic.compare_tensorlike(function, x, y)


def remainder(x: Any, y: Any) -> Any:
    operands = [arithmetic.ensure_tensorlike(z, datatype.is_numeric) for z in (x, y)]
    return arithmetic.mod_tensorlike(*operands)


def unary(function: str, behavior: Any) -> Callable[[Any], Any]:
    return lambda x: arithmetic.unary(function, behavior, x)


UNARY: dict[str, Callable[[Any], Any]] = {
    "negative": unary("neg", arithmetic.UNARY_INT_FLOAT),
    "abs": unary("abs", arithmetic.UNARY_ANYTHING),
    "bitwise_invert": unary("bitwise_not", arithmetic.UNARY_BOOL_INT),
    "floor": unary("floor", arithmetic.UNARY_STRICT_FLOAT),
    "sqrt": unary("sqrt", arithmetic.UNARY_FLOAT),
    "exp": unary("exp", arithmetic.UNARY_FLOAT),
}
CALLS: dict[str, Callable[..., Any]] = {
    **UNARY,
    "add": binary("add"),
    "subtract": binary("sub"),
    "multiply": binary("mul"),
    "divide": binary("truediv"),
    "floor_divide": binary("floordiv"),
    "remainder": remainder,
    "pow": binary("pow"),
    "minimum": binary("min"),
    "maximum": binary("max"),
    "bitwise_and": bitwise("and_"),
    "bitwise_or": bitwise("or_"),
    "bitwise_xor": bitwise("xor"),
    "bitwise_left_shift": shift("lshift"),
    "bitwise_right_shift": shift("rshift"),
    "equal": comparison("eq"),
    "not_equal": comparison("ne"),
    "less": comparison("lt"),
    "less_equal": comparison("le"),
    "greater": comparison("gt"),
    "greater_equal": comparison("ge"),
    "where": lambda x, y: arithmetic.where(Tile(TileTy(datatype.bool_, (2,))), x, y),
}


@pytest.fixture(autouse=True)
def _nothing_is_emitted(monkeypatch: pytest.MonkeyPatch) -> None:
    emit_nothing(monkeypatch)


def theirs(question: Question) -> str:
    return answer(lambda: CALLS[question.op](*map(tile_of, question.operands)).get_type().tensor_dtype())


BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
SHIFTS = ("bitwise_left_shift", "bitwise_right_shift")


LISTED = [
    Listed(
        "comparisons of integers are exact and never an error here, whatever their signs and sizes",
        lambda q: (
            q.op in COMPARISONS
            and q.kinds <= {"bool", "int"}
            and (
                (len(q.dtypes) == 2 and "bool" not in q.dtypes and q.dtypes[0][0] != q.dtypes[1][0])
                or (q.dtypes != ["bool"] and integer(q) and not fits(number_of(q), q.dtypes[0]))
                or (q.dtypes == ["bool"] and integer(q) and not -(2**63) <= number_of(q) < 2**64)
            )
        ),
    ),
    Listed(
        "float8 passes the checks of comparisons, % and functions, and fails later: there is no instruction for it",
        lambda q: (
            q.op in (*COMPARISONS, "remainder", "negative", "abs", "floor", "sqrt", "exp")
            and len(set(q.dtypes)) == 1
            and q.dtypes[0] in FP8
            and not (integer(q) and not -(2**63) <= number_of(q) < 2**64)
        ),
    ),
    Listed(
        "an integer to a negative power is no integer: an error in all semantics",
        lambda q: (
            q.op == "pow"
            and integer(q)
            and q.kinds <= {"bool", "int"}
            and number_of(q) == q.operands[1]
            and -(2**63) <= number_of(q) < 0
            and (q.dtypes == ["bool"] or fits(number_of(q), q.dtypes[0]))
        ),
    ),
    Listed(
        "an int8 and True are refused by & | ^, and every other integer is not",
        lambda q: q.op in BITWISE and q.dtypes == ["int8"] and isinstance(number_of(q), bool),
    ),
    Listed("-x of bools is int32, and abs a bool", lambda q: q.op in ("negative", "abs") and q.dtypes == ["bool"]),
    Listed("floor takes floats only", lambda q: q.op == "floor" and q.kinds == {"int"}),
    Listed(
        "a shift refuses bools; here a bool beside an integer is promoted first, as everywhere",
        lambda q: (
            q.op in SHIFTS
            and q.kinds <= {"bool", "int"}
            and q.kinds | {"bool" if isinstance(n, bool) else "int" for n in q.numbers if not isinstance(n, float)}
            == {"bool", "int"}
            and not isinstance(number_of(q), float)
            and not (integer(q) and not -(2**63) <= number_of(q) < 2**64)
        ),
    ),
]


def listed(questions: list[Question]) -> list[Listed]:
    return [row for row in LISTED if any(map(row.about, questions))]


@pytest.mark.parametrize("op", [op for op in CALLS if op not in UNARY])
def test_operations_of_every_pair_of_dtypes(op: str) -> None:
    questions = pairs(op, list(DTYPES))
    check("cutile", theirs, questions, listed(questions))


@pytest.mark.parametrize("op", [op for op in CALLS if op not in UNARY])
def test_operations_of_every_dtype_with_every_number(op: str) -> None:
    questions = with_numbers(op, list(DTYPES), NUMBERS)
    check("cutile", theirs, questions, listed(questions))


@pytest.mark.parametrize("op", UNARY)
def test_operations_of_every_dtype(op: str) -> None:
    questions = [Question(op, (dtype,)) for dtype in DTYPES]
    check("cutile", theirs, questions, listed(questions))


def test_storable_dtypes_agree_with_numpy() -> None:
    for result, target in product(DTYPES, repeat=2):
        theirs = cast_ops._is_implicit_cast_ok(DTYPES[result], DTYPES[target])
        assert (result, target, stored_by_us("cutile", result, target)) == (result, target, theirs)
