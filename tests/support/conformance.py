"""Ask tilearray and another system the same question: which dtype has this call, or is it an error?

A question is an op and its operands: the name of a dtype for an array with dimensions, `Point` for a 0-d array, and
Python numbers. The answers are compared question by question. A test lists every difference with its reason, and
every question that a listed reason covers must be a difference.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

import tilearray as ta
from support.oracles.formats import dtype_of, kind_of, width_of
from support.oracles.rules import COMPARE

ERROR = "error"


class Point(NamedTuple):
    """A 0-d array of a dtype."""

    dtype: str


Operand = str | Point | bool | int | float | complex


class Question(NamedTuple):
    op: str
    operands: tuple[Operand, ...]

    @property
    def dtypes(self) -> list[str]:
        """The dtypes of the arrays, 0-d ones included."""
        return [o.dtype if isinstance(o, Point) else o for o in self.operands if isinstance(o, str | Point)]

    @property
    def numbers(self) -> list[Any]:
        return [o for o in self.operands if not isinstance(o, str | Point)]

    @property
    def kinds(self) -> set[str]:
        return {kind_of(name) for name in self.dtypes}


NUMERIC_OPS = ("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow", "minimum", "maximum")
BIT_OPS = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
BINARY = (*NUMERIC_OPS, *BIT_OPS, *COMPARISONS, "where")
UNARY = ("negative", "positive", "abs", "square", "bitwise_invert", "isnan", "sqrt", "exp", "floor")

_FLOAT32_MAX = float(np.finfo(np.float32).max)
INTEGERS = (
    *(0, 1, 3, -1, 127, 128, -128, -129, 255, 256, 32767, 32768, -32768, -32769, 65535, 65536),
    *(2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1),
    *(2**64 - 1, 2**64),
)
FLOATS = (0.0, 0.5, 1e300, _FLOAT32_MAX, math.nextafter(_FLOAT32_MAX, math.inf), 2.0**-126, 2.0**-127, math.inf)
SCALARS: tuple[Any, ...] = (True, False, *INTEGERS, *FLOATS, math.nan, 1j, 1e300j)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
    **COMPARE,
}
"""Python's own operators, by the names of the ops: what a system's arrays answer to."""


def fits(number: int, dtype: str) -> bool:
    """Whether an integer dtype holds a number."""
    bits, signed = width_of(dtype), dtype[0] != "u"
    return -(2 ** (bits - 1)) * signed <= number < 2 ** (bits - signed)


def number_of(question: Question) -> Any:
    """The Python number of a question, if it has one."""
    return question.numbers[0] if question.numbers else None


def integer(question: Question) -> bool:
    """Whether a question has a Python int, which a bool is not."""
    return type(number_of(question)) is int


def array_of(operand: Operand) -> Any:
    """Ones: true as a condition, and nothing to divide by zero."""
    if isinstance(operand, str):
        return ta.ones(2, dtype=operand, device="cpu")
    return ta.ones((), dtype=operand.dtype, device="cpu") if isinstance(operand, Point) else operand


def ours(semantics: str | ta.Semantics, question: Question) -> str:
    """The dtype of the result of a real call, or that it raises."""
    operands = [array_of(operand) for operand in question.operands]
    if question.op == "where":
        operands = [ta.asarray([True, False], device="cpu"), *operands]
    with ta.semantics(semantics):
        try:
            return getattr(ta, question.op)(*operands).dtype.name
        except (ta.TileArrayError, ValueError):
            return ERROR


def stored_by_us(semantics: str, result: str, target: str) -> bool:
    """Whether a result may be written in place; asked of the semantics, because not every op makes every dtype."""
    with ta.semantics(semantics):
        return ta.get_semantics().stores(dtype_of(result), dtype_of(target))


class Listed(NamedTuple):
    """A difference that is known: why it is there, and which questions it is about."""

    reason: str
    about: Callable[[Question], bool]


def check(
    semantics: str | ta.Semantics,
    theirs: Callable[[Question], str],
    questions: Iterable[Question],
    listed: Sequence[Listed] = (),
) -> None:
    """See that both sides answer alike, but for exactly the questions that are listed.

    Questions are gone through one by one and never compared: to Python, ``("bool", True)`` equals ``("bool", 1)``.
    """
    known = [0] * len(listed)
    wrong: list[tuple[object, ...]] = []
    for question in questions:
        mine, other = ours(semantics, question), theirs(question)
        reasons = [number for number, row in enumerate(listed) if row.about(question)]
        for number in reasons:
            known[number] += 1
        if (mine != other) != bool(reasons):
            wrong.append((*question, mine, other, listed[reasons[0]].reason if reasons else "not listed"))
    assert not wrong, f"{len(wrong)} questions are not answered as listed:\n" + "\n".join(map(str, wrong[:20]))
    unused = [row.reason for row, count in zip(listed, known, strict=True) if not count]
    assert not unused, f"reasons about nothing: {unused}"


def pairs(op: str, dtypes: Sequence[str]) -> list[Question]:
    return [Question(op, (a, b)) for a in dtypes for b in dtypes]


def with_numbers(op: str, dtypes: Sequence[str], numbers: Sequence[Any] = SCALARS) -> list[Question]:
    """Every dtype with every number, on either side."""
    return [Question(op, pair) for a in dtypes for number in numbers for pair in ((a, number), (number, a))]
