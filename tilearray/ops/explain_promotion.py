"""`explain_promotion`: the rules that decide a result dtype, step by step, and the result under each semantics.

This module decides nothing. It prints the steps that `Semantics.decide` records, and then the steps of the op. The
answer is the same as in a call, because the same functions give it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilearray.dtypes import info
from tilearray.engine.context import STATE, operand_of
from tilearray.engine.operation import OperandType, typed_scalar
from tilearray.errors import OperandError, TileArrayError, shown
from tilearray.ops import PUBLIC
from tilearray.ops.numbers import INTEGER_LADDER
from tilearray.ops.promotion_methods import Promotion
from tilearray.ops.row import CallTyping, Row, plain_dtype
from tilearray.promotion.operands import SCALAR_KIND, Operand, ZeroDim
from tilearray.promotion.scalars import Number, ScalarClass, as_number
from tilearray.promotion.semantics import Semantics
from tilearray.promotion.systems import SEMANTICS

_FUNCTION = "explain_promotion"


@dataclass(frozen=True)
class PromotionExplanation:
    """The reasons for the result dtype of a call. It prints as a page of text.

    Attributes
    ----------
    op : str
        The function.
    operands : tuple of str
        Each operand: a dtype, the dtype of a 0-d array, or a number.
    semantics : str
        The active semantics.
    steps : tuple of str
        The steps of the decision, in words.
    compute : numpy.dtype or None
        The dtype of the computation, or None if the call is an error.
    result : numpy.dtype or None
        The dtype of the result, or None if the call is an error.
    error : str or None
        The message of the error, or None.
    answers : mapping of str to dtype or str
        For each semantics, the result dtype or the message of the error.
    """

    op: str
    operands: tuple[str, ...]
    semantics: str
    steps: tuple[str, ...]
    compute: np.dtype | None
    result: np.dtype | None
    error: str | None
    answers: Mapping[str, np.dtype | str]

    def __repr__(self) -> str:
        steps = "".join(f"\n  {number}. {step}" for number, step in enumerate(self.steps, 1))
        width = max(map(len, self.answers))
        said = "".join(f"\n  {name:<{width}}  {_said(answer)}" for name, answer in self.answers.items())
        answer = f"error: {self.error}" if self.result is None else self.result.name
        return (
            f"{self.op}({', '.join(self.operands)}) under {self.semantics}: {answer}{steps}\nunder each semantics{said}"
        )


def _said(answer: np.dtype | str) -> str:
    return answer.name if isinstance(answer, np.dtype) else f"error: {answer}"


def explain_promotion(*operands: Any, op: str | Row = "add") -> PromotionExplanation:
    """Explain the result dtype of a call, and list its result dtype under each semantics.

    Parameters
    ----------
    *operands : array, dtype or number
        The operands of the call. A dtype counts as an array with dimensions.
    op : str or op
        The function or its name.

    Returns
    -------
    PromotionExplanation
        The steps in words, the result, and the answers of all semantics. It prints as a page of text.

    Raises
    ------
    OperandError
        If the op does not exist, or takes a different number of operands.
    DTypeError
        If an operand is not an array, a dtype or a number.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.explain_promotion("int8", "uint8", 2.5, op="clip").result
    dtype('float32')
    >>> ta.explain_promotion("int32", "float32", op="divide")
    divide(int32, float32) under array-api: float32
      1. int32 and float32: float is the higher kind, so float32
    under each semantics
      array-api  float32
      triton     float32
      cutile     float32
      torch      float32
      numpy      float64
    """
    row = _row(op)
    if len(operands) != row.arity:
        names = ", ".join(map(repr, ("int8", "float32", "float32", "float32")[: row.arity]))
        raise OperandError(
            f"{_FUNCTION}: {row.name} takes {row.arity} operands, got {len(operands)}; write "
            f"{_FUNCTION}({names}, op={row.name!r})"
        )
    types = tuple(operand_of(operand, _FUNCTION) for operand in operands)
    rules = STATE.get().semantics
    steps: list[str] = []
    typing, error = _decided(row, rules, types, operands, steps)
    others = {**SEMANTICS, rules.name: rules}
    answers = {name: _answer(row, other, types, operands) for name, other in others.items()}
    shown = tuple(_shown(given, operand) for given, operand in zip(types, operands, strict=True))
    compute, result = (typing.casts[row.masks][-1], typing.result) if typing else (None, None)
    return PromotionExplanation(row.name, shown, rules.name, tuple(steps), compute, result, error, answers)


def _row(op: str | Row) -> Row:
    name = getattr(op, "__name__", op)
    found = op if isinstance(op, Row) else PUBLIC.get(name) if isinstance(name, str) else None
    if found is None:
        raise OperandError(f"{_FUNCTION}: {shown(op)} is not an elementwise op; write one of {', '.join(PUBLIC)}")
    return found


def _answer(op: Row, rules: Semantics, types: Sequence[Operand], operands: Sequence[Any]) -> np.dtype | str:
    typing, error = _decided(op, rules, types, operands, [])
    return typing.result if typing else str(error)


def _decided(
    op: Row, rules: Semantics, types: Sequence[Operand], operands: Sequence[Any], steps: list[str]
) -> tuple[CallTyping | None, str | None]:
    """Return the dtypes of a call, or the message of its error. Append the steps of the decision to `steps`."""
    compared = _compared_exactly(op, types)
    try:
        typing = op.typing(rules, [_key(given) if compared else given for given in types])
        if compared:
            steps.append("the values of integers are compared exactly: bool")
            return typing, None
        if op.promotion is Promotion.TRUTH:
            steps.append("each operand is true if it is not 0: bool")
            return typing, None
        taken = op.common_dtype(rules, types[op.masks :], steps)
        for position, (given, casts) in enumerate(zip(types, typing.casts, strict=True)):
            if isinstance(given, ScalarClass):
                _check_number(op, position, operands[position], casts[0])
    except (TileArrayError, ValueError) as error:
        return None, str(error)
    steps += _of_the_op(op, rules, taken, typing)
    return typing, None


def _compared_exactly(op: Row, types: Sequence[Operand]) -> bool:
    kinds = [SCALAR_KIND[t] if isinstance(t, ScalarClass) else info(plain_dtype(t)).kind for t in types]
    return op.promotion is Promotion.ALWAYS_BOOL and op.arity > 1 and set(kinds) <= {"bool", "int", "uint"}


def _key(given: Operand) -> OperandType:
    """Return the key of an operand in a comparison of integers. Beyond 64 bits, a Python integer acts as infinity."""
    if isinstance(given, ScalarClass) and given is not ScalarClass.BOOL:
        rung = INTEGER_LADDER[given]
        return ScalarClass.FLOAT32 if rung is None else typed_scalar(rung)
    return given


def _check_number(op: Row, position: int, number: Number, dtype: np.dtype) -> None:
    as_number(number, dtype, op.name)
    if op.refuse_scalar is not None:
        op.refuse_scalar(op, position, number, dtype)


def _shown(given: Operand, operand: object) -> str:
    if isinstance(given, ScalarClass):
        return repr(operand)
    return f"0-d {given.dtype.name}" if isinstance(given, ZeroDim) else given.name


def _of_the_op(op: Row, rules: Semantics, taken: np.dtype, typing: CallTyping) -> list[str]:
    """Return the steps that the rule of the op adds to the dtype to which operands are rounded."""
    found: list[str] = []
    compute = typing.casts[op.masks][-1]
    if compute != taken and op.name in rules.wide_numbers and any(len(casts) == 1 for casts in typing.casts):
        found.append(f"the number is converted to {compute.name} and not rounded to {taken.name}")
    if compute != taken:
        found.append(f"{taken.name} computes in {compute.name}, and the result is rounded once")
    if op.exponents:
        found.append("the exponent is int64 and takes no part")
    if typing.result != taken:
        found.append(f"the result of {op.name} is {typing.result.name}")
    return found
