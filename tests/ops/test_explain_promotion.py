"""explain_promotion: it says what calls do, under every semantics, and why in words that are tested."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilearray as ta
from tilearray.errors import DTypeError, OperandError
from tilearray.ops import PUBLIC
from tilearray.promotion.systems import SEMANTICS

OPERANDS = ["bool", "int8", "uint8", "uint64", "float16", "bfloat16", "float8_e5m2", "complex64"]
NUMBERS = [3, 300, 0.5, 2**64, 1j]
OPS = ["add", "subtract", "divide", "pow", "bitwise_and", "bitwise_left_shift", "less", "equal", "maximum"]
OPS += ["hypot", "copysign", "fmod", "float_power", "ldexp", "logical_and"]


def called(op: str, *operands: Any) -> str:
    try:
        return getattr(ta, op)(*operands).dtype.name
    except (ta.TileArrayError, ValueError) as error:
        return str(error)


def said(answer: object) -> str:
    return answer.name if isinstance(answer, np.dtype) else str(answer)


@pytest.mark.parametrize("op", OPS)
def test_every_answer_agrees_with_a_call(op: str) -> None:
    arrays = [ta.ones(2, dtype=dtype, device="cpu") for dtype in OPERANDS]
    points = [ta.ones((), dtype=o, device="cpu") for o in ("int64", "float64", "complex128")]
    for x in arrays:
        for y in (*arrays, *points, *NUMBERS):
            explained = ta.explain_promotion(x, y, op=op)
            for name, answer in explained.answers.items():
                with ta.semantics(name):
                    assert (x.dtype, y, name, said(answer)) == (x.dtype, y, name, called(op, x, y))
            assert said(explained.result or explained.error) == said(explained.answers["array-api"])


@pytest.mark.parametrize("op", [name for name, row in PUBLIC.items() if row.arity == 1])
def test_every_answer_of_a_function_of_one_operand(op: str) -> None:
    for dtype in OPERANDS:
        x = ta.ones(2, dtype=dtype, device="cpu")
        for name, answer in ta.explain_promotion(x, op=op).answers.items():
            with ta.semantics(name):
                try:
                    found = PUBLIC[op](x).dtype.name
                except ta.TileArrayError as error:
                    found = str(error)
            assert (dtype, name, said(answer)) == (dtype, name, found)


def steps(*operands: Any, op: str = "add", semantics: str = "array-api") -> list[str]:
    with ta.semantics(semantics):
        return list(ta.explain_promotion(*operands, op=op).steps)


POINT = ta.ones((), dtype="float64", device="cpu")
NO_PART = "the {} number is not of a higher kind than the arrays: it does not take part"
TAKES_PART = "the {} number is of a higher kind than the arrays: it takes part as {}"
HALF = "float16 computes in float32, and the result is rounded once"
HIGHER = "{}: float is the higher kind, so {}"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (steps("int8", "float16"), [HIGHER.format("int8 and float16", "float16"), HALF]),
        (steps("int8", "int32"), ["int8 and int32: the wider one, int32"]),
        (steps("int8", "uint8"), ["int8 and uint8: the next wider signed integer, which holds both ranges, int16"]),
        (steps("int8", "uint8", semantics="triton"), ["int8 and uint8: of equal width, the unsigned one: uint8"]),
        (steps("float16", "bfloat16"), ["float16 and bfloat16: the next larger float, which holds both, float32"]),
        (
            steps("float64", "complex64"),
            ["float64 and complex64: the complex dtype of the widest part, complex128"],
        ),
        (
            steps("int8", 2.5),
            [TAKES_PART.format("float", "float32"), HIGHER.format("int8 and float32", "float32")],
        ),
        (steps("float16", 3), [NO_PART.format("integer"), HALF]),
        (
            steps("float16", 3, semantics="torch"),
            [NO_PART.format("integer"), "the number is converted to float32 and not rounded to float16", HALF],
        ),
        (steps(3, 0.5), ["without arrays, a number of this kind and size is float32"]),
        (
            steps("float32", POINT, semantics="torch"),
            ["float64 (0-d) is not of a higher kind than float32 (dimensioned): it does not take part"],
        ),
        (steps("int8", POINT, semantics="torch"), [HIGHER.format("int8 and float64", "float64")]),
        (
            steps("bfloat16", 1j, semantics="torch"),
            [
                TAKES_PART.format("complex", "complex64"),
                "complex64 (number) makes bfloat16 (dimensioned) complex: complex64",
            ],
        ),
        (
            steps("uint16", 1j, semantics="torch"),
            [TAKES_PART.format("complex", "complex64"), "complex64 (number) is of the higher kind"],
        ),
        (steps("int32", "float32", semantics="numpy"), ["numpy.result_type(int32, float32) is float64"]),
        (steps("int8", "float32", 1, op="fma", semantics="numpy"), ["numpy.result_type(int8, float32, 1) is float32"]),
        (
            steps("uint8", "int8", op="atan2", semantics="numpy"),
            ["numpy.result_type(uint8, int8) is int16", "numpy.arctan2 computes these operands in float16", HALF],
        ),
        (steps("int8", 2, op="divide"), [NO_PART.format("integer"), "divide converts int8 to float32"]),
        (
            steps("int8", op="sqrt", semantics="numpy"),
            ["numpy.result_type(int8) is int8", "numpy.sqrt computes these operands in float16", HALF],
        ),
        (steps("uint8", 300, op="less"), ["the values of integers are compared exactly: bool"]),
        (steps("float32", 1, op="less"), [NO_PART.format("integer"), "the result of less is bool"]),
        (steps("complex64", op="abs"), ["the result of abs is float32"]),
        (steps("int8", "float32", op="logical_and"), ["each operand is true if it is not 0: bool"]),
        (
            steps("int8", "int16", op="ldexp"),
            ["ldexp converts int8 to float32", "the exponent is int64 and takes no part"],
        ),
        (
            steps("int8", op="frexp_exponent"),
            ["frexp_exponent converts int8 to float32", "the result of frexp_exponent is int32"],
        ),
    ],
)
def test_the_steps_in_words(found: list[str], expected: list[str]) -> None:
    assert found == expected


def test_it_is_data_and_prints() -> None:
    explained = ta.explain_promotion("uint8", ta.asarray([1], dtype="int8", device="cpu"))
    assert (explained.op, explained.operands, explained.semantics) == ("add", ("uint8", "int8"), "array-api")
    assert (explained.compute, explained.result, explained.error) == (np.dtype("i2"), np.dtype("i2"), None)
    assert list(explained.answers) == list(SEMANTICS)
    lines = str(explained).splitlines()
    assert lines[0] == "add(uint8, int8) under array-api: int16"
    assert lines[3:5] == ["  array-api  int16", "  triton     uint8"]
    failed = ta.explain_promotion("int8", np.uint64(1), op=ta.add)
    assert (failed.operands, failed.compute, failed.result) == (("int8", "0-d uint64"), None, None)
    assert str(failed).startswith("add(int8, 0-d uint64) under array-api: error: add: int8 and uint64 have no common")


def test_questions_that_explain_promotion_refuses() -> None:
    with pytest.raises(OperandError, match="explain_promotion: 'plus' is not an elementwise op; write one of"):
        ta.explain_promotion("int8", op="plus")
    with pytest.raises(
        OperandError,
        match=r"explain_promotion: add takes 2 operands, got 1; write explain_promotion\('int8', 'float32', op='add'\)",
    ):
        ta.explain_promotion("int8")
    with pytest.raises(DTypeError, match="explain_promotion: expected a dtype, got"):
        ta.explain_promotion([1], 2)
