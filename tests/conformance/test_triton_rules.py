"""Semantics ``triton`` against the installed Triton: its own semantic analyser, on the host, with nothing to build.

``triton`` follows the rules that Triton documents. The compiler departs from its document in places: each is listed
here with its reason, and holds for exactly the questions that the row is about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.conformance import (
    BINARY,
    COMPARISONS,
    ERROR,
    Listed,
    Question,
    check,
    fits,
    integer,
    number_of,
    pairs,
    with_numbers,
)

triton = pytest.importorskip("triton", reason="Triton is made for Linux only")
tl = pytest.importorskip("triton.language")

from triton.language.semantic import IncompatibleTypeErrorImpl, TritonSemantic  # noqa: E402

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
HALVES, FP8 = ("float16", "bfloat16"), ("float8_e4m3fn", "float8_e5m2")
TYPES = {
    "bool": tl.int1,
    **{name: getattr(tl, name) for name in (*INTEGERS, *HALVES, "float32", "float64")},
    "float8_e4m3fn": tl.float8e4nv,
    "float8_e5m2": tl.float8e5,
}
NAMES = {str(dtype): name for name, dtype in TYPES.items()}


class Nothing:
    """A builder that builds nothing: the analyser decides all dtypes before it asks for an instruction."""

    def __getattr__(self, name: str) -> Any:
        return Nothing()

    def __call__(self, *arguments: object, **keywords: object) -> Any:
        return Nothing()

    def __contains__(self, name: object) -> bool:
        return True  # this target has every float8


ANALYSER: Any = TritonSemantic(Nothing())
ALL = tl.PropagateNan.ALL


def block(dtype: Any) -> Any:
    return tl.tensor(Nothing(), tl.block_type(dtype, [4]))


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: ANALYSER.add(x, y, False),
    "subtract": lambda x, y: ANALYSER.sub(x, y, False),
    "multiply": lambda x, y: ANALYSER.mul(x, y, False),
    "divide": ANALYSER.truediv,
    "floor_divide": ANALYSER.floordiv,
    "remainder": ANALYSER.mod,
    "minimum": lambda x, y: ANALYSER.minimum(x, y, ALL),
    "maximum": lambda x, y: ANALYSER.maximum(x, y, ALL),
    "bitwise_and": ANALYSER.and_,
    "bitwise_or": ANALYSER.or_,
    "bitwise_xor": ANALYSER.xor_,
    "bitwise_left_shift": ANALYSER.shl,
    "bitwise_right_shift": ANALYSER.ashr,
    "equal": ANALYSER.equal,
    "not_equal": ANALYSER.not_equal,
    "less": ANALYSER.less_than,
    "less_equal": ANALYSER.less_equal,
    "greater": ANALYSER.greater_than,
    "greater_equal": ANALYSER.greater_equal,
    "where": lambda x, y: ANALYSER.where(block(tl.int1), x, y),
}


def theirs(question: Question) -> str:
    """The dtype that Triton's analyser gives the result, or that it refuses the operands."""
    operands = [block(TYPES[o]) if isinstance(o, str) else o for o in question.operands]
    try:
        return NAMES[str(CALLS[question.op](*operands).type.scalar)]
    except (TypeError, ValueError, IncompatibleTypeErrorImpl):
        return ERROR


# --- what is known to differ ----------------------------------------------------------------------------------------

DIVISIONS = ("divide", "floor_divide", "remainder")
BITS = tuple(op for op in BINARY if op.startswith("bitwise_"))


def two(question: Question, ones: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Whether the operands are two arrays, one of each group."""
    a, b = question.dtypes if len(question.dtypes) == 2 else ("", "")
    return (a in ones and b in others) or (a in others and b in ones)


def computes(question: Question) -> bool:
    """An op whose result dtype is the common one, divisions apart."""
    return question.op not in (*DIVISIONS, *BITS, *COMPARISONS)


EXACT = ("bool", *INTEGERS)
NEWER = tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 9)


def unsigned(name: str) -> bool:
    """A bool is an unsigned integer of one bit to Triton."""
    return name[0] in "ub"


LISTED = [
    Listed(
        "bfloat16 with a bool, an integer or a float8 is float32, not bfloat16",
        lambda q: computes(q) and two(q, ("bfloat16",), (*EXACT, *FP8)),
    ),
    Listed("float16 with bfloat16 is float16, not float32", lambda q: computes(q) and two(q, *((x,) for x in HALVES))),
    Listed(
        "a float8 array does not meet bools and integers",
        lambda q: q.op not in BITS and two(q, FP8, EXACT),
    ),
    Listed(
        "/ and % of 16-bit floats are float32",
        lambda q: (
            q.op in ("divide", "remainder")
            and bool(set(q.dtypes) & set(HALVES))
            and not set(q.dtypes) & {"float32", "float64"}
            and not two(q, *((x,) for x in HALVES))
        ),
    ),
    Listed(
        "/ // % of integers of different signedness are refused",
        lambda q: (
            q.op in DIVISIONS
            and len(q.dtypes) == 2
            and q.kinds <= {"bool", "int"}
            and unsigned(q.dtypes[0]) != unsigned(q.dtypes[1])
        ),
    ),
    Listed(
        "/ and % of float8 are float32, from Triton 3.9 on",
        lambda q: NEWER and q.op in ("divide", "remainder") and bool(q.dtypes) and not set(q.dtypes) - set(FP8),
    ),
    Listed(
        "a bool counts as unsigned there too, and an integer beside it by its sign",
        lambda q: q.op in DIVISIONS and q.kinds == {"bool"} and integer(q) and to_triton(number_of(q)) == "signed",
    ),
    Listed(
        "// of floats is refused",
        lambda q: q.op == "floor_divide" and ("float" in q.kinds or isinstance(number_of(q), float)),
    ),
    Listed(
        "- // % << >> of bools are computed",
        lambda q: (
            q.op in ("subtract", "floor_divide", "remainder", "bitwise_left_shift", "bitwise_right_shift")
            and q.kinds == {"bool"}
            and all(isinstance(x, bool) for x in q.numbers)
        ),
    ),
    Listed(
        "a float number below the normal range of float32 is float64",
        lambda q: (
            q.op not in (*COMPARISONS, *BITS, "floor_divide")
            and q.kinds <= {"bool", "int"}
            and isinstance(number_of(q), float)
            and 0 < abs(number_of(q)) < 2.0**-126
        ),
    ),
    Listed(
        "an integer beyond 64 bits is refused, whatever it stands beside",
        lambda q: (
            integer(q)
            and to_triton(number_of(q)) == "none"
            and (q.op in COMPARISONS or (q.kinds == {"float"} and q.op not in BITS))
        ),
    ),
    Listed(
        "an integer that the array does not hold is refused, in comparisons and / too",
        lambda q: (
            q.op in (*COMPARISONS, "divide")
            and q.kinds == {"int"}
            and integer(q)
            and not fits(number_of(q), q.dtypes[0])
        ),
    ),
]


def to_triton(value: int) -> str:
    """What Triton takes an integer for: the first of int32, uint32, int64 and uint64 that holds it."""
    if -(2**31) <= value < 2**31 or (-(2**63) <= value < 2**63 and not 0 <= value < 2**32):
        return "signed"
    return "unsigned" if 0 <= value < 2**64 else "none"


@pytest.mark.parametrize("op", list(CALLS))
def test_every_pair_of_dtypes(op: str) -> None:
    questions = pairs(op, list(TYPES))
    check("triton", theirs, questions, [row for row in LISTED if any(map(row.about, questions))])


@pytest.mark.parametrize("op", list(CALLS))
def test_every_dtype_with_every_number(op: str) -> None:
    questions = [q for q in with_numbers(op, list(TYPES)) if not isinstance(number_of(q), complex)]
    check("triton", theirs, questions, [row for row in LISTED if any(map(row.about, questions))])


def test_every_listed_difference_is_one() -> None:
    """No row is about nothing: each has questions, which the tests above found to differ."""
    questions = [q for op in CALLS for q in pairs(op, list(TYPES)) + with_numbers(op, list(TYPES))]
    unused = [row.reason for row in LISTED if not any(map(row.about, questions))]
    assert unused == ([] if NEWER else ["/ and % of float8 are float32, from Triton 3.9 on"])
