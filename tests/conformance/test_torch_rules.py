"""Semantics ``torch`` against the installed torch: its promotion functions, and its operations on the CPU.

torch is asked for `promote_types`, for `result_type` of arrays of all categories and numbers at every boundary, and by
making the calls. It has no CPU kernel for some dtypes that it promotes: each such gap is listed, and so are the few
places where this library has one rule in all semantics.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

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
    Point,
    Question,
    check,
    fits,
    integer,
    number_of,
    pairs,
    stored_by_us,
    with_numbers,
)
from support.oracles.formats import ARITHMETIC
from support.oracles.promotion import common

import tilearray as ta

torch: Any = pytest.importorskip("torch", reason="the extra `test` has torch on Python 3.11 only")

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental:UserWarning")

FP8 = ("float8_e4m3fn", "float8_e5m2")
BARE = ("uint16", "uint32", "uint64")
DTYPES = {name: getattr(torch, name) for name in ARITHMETIC}


def name_of(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def answer(ask: Callable[[], Any]) -> str:
    """What torch says; a dtype that is not here is as good as an error."""
    try:
        found = name_of(ask())
    except (RuntimeError, TypeError, OverflowError, ValueError):
        return ERROR
    return found if found in DTYPES else ERROR


def tensor_of(operand: Any) -> Any:
    if isinstance(operand, Point):
        return torch.ones(()).to(DTYPES[operand.dtype])
    return torch.ones(2).to(DTYPES[operand]) if isinstance(operand, str) else operand


# --- promote_types and result_type ----------------------------------------------------------------------------------


def our_result_type(*operands: Any) -> str:
    """`ta.result_type` of Arrays, 0-d or not, and numbers."""
    made = [ta.ones(() if isinstance(o, Point) else 2, dtype=o.dtype if isinstance(o, Point) else o, device="cpu")
            if isinstance(o, str | Point) else o for o in operands]  # fmt: skip
    with ta.semantics("torch"):
        try:
            return ta.result_type(*made).name
        except (ta.PromotionError, ta.ScalarOverflowError):
            return ERROR


def test_promote_types_of_every_pair() -> None:
    with ta.semantics("torch"):
        for a, b in product(ARITHMETIC, repeat=2):
            theirs = answer(lambda a=a, b=b: torch.promote_types(DTYPES[a], DTYPES[b]))
            try:
                ours = ta.promote_types(a, b).name
            except ta.PromotionError:
                ours = ERROR
            assert (a, b, ours) == (a, b, theirs)


OPERANDS = [*ARITHMETIC, *map(Point, ARITHMETIC)]


class Seen(NamedTuple):
    """An operand as the oracle of the property tests takes it."""

    dtype: str | None
    point: bool
    number: Any = None


def seen(operand: Any) -> Seen:
    if isinstance(operand, Point):
        return Seen(operand.dtype, True)
    return Seen(operand, False) if isinstance(operand, str) else Seen(None, False, operand)


def test_the_oracle_of_the_property_tests_knows_torch() -> None:
    for first, second in product(OPERANDS, (*OPERANDS, *SCALARS)):
        theirs = answer(lambda first=first, second=second: torch.result_type(tensor_of(first), tensor_of(second)))
        try:
            found = common([seen(first), seen(second)], "torch")
        except (ta.PromotionError, ta.ScalarOverflowError):
            found = ERROR
        assert (first, second, found) == (first, second, theirs)


@pytest.mark.parametrize("first", OPERANDS, ids=str)
def test_result_type_of_every_pair(first: Any) -> None:
    for second in OPERANDS:
        theirs = answer(lambda second=second: torch.result_type(tensor_of(first), tensor_of(second)))
        assert (second, our_result_type(first, second)) == (second, theirs)


@pytest.mark.parametrize("first", OPERANDS, ids=str)
def test_result_type_with_every_number(first: Any) -> None:
    for number in SCALARS:
        theirs = answer(lambda number=number: torch.result_type(tensor_of(first), number))
        assert (number, our_result_type(first, number)) == (number, theirs)
        assert (number, our_result_type(number, first)) == (number, theirs)


# --- the operations -------------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[..., Any]] = {
    **OPERATORS,
    "minimum": torch.minimum,
    "maximum": torch.maximum,
    "where": lambda x, y: torch.where(torch.tensor([True, False]), x, y),
    "negative": torch.neg,
    "positive": torch.positive,
    "abs": torch.abs,
    "square": torch.square,
    "bitwise_invert": torch.bitwise_not,
    "isnan": torch.isnan,
    "sqrt": torch.sqrt,
    "exp": torch.exp,
    "floor": torch.floor,
}


def theirs(question: Question) -> str:
    return answer(lambda: CALLS[question.op](*map(tensor_of, question.operands)).dtype)


# --- what is known to differ ----------------------------------------------------------------------------------------

GAPS = (
    *("add", "subtract", "floor_divide", "remainder", "pow", "minimum", "maximum"),
    *("bitwise_left_shift", "bitwise_right_shift", "negative", "abs", "square", "bitwise_invert"),
)
ORDERED = ("less", "less_equal", "greater", "greater_equal")
LIMIT = (-(2**63), 2**64)


def only(question: Question, kind: str) -> bool:
    """All operands are of integer kind and nothing else, bools included; or all arrays are of a kind."""
    return question.kinds <= {kind, "bool"} and not isinstance(number_of(question), float | complex)


def copied(question: Question) -> bool:
    return question.op == "pow" and question.operands[1] is True


def promoted(question: Question) -> bool:
    """The call has a common dtype, and is no error here for a number that the dtype does not hold."""
    return not (integer(question) and question.dtypes[0] in BARE and not fits(number_of(question), question.dtypes[0]))


LISTED = [
    Listed(
        "torch promotes uint16, uint32 and uint64, and has no CPU kernel for them in this op",
        lambda q: (
            q.op in GAPS
            and len(set(q.dtypes)) == 1
            and q.dtypes[0] in BARE
            and only(q, "int")
            and promoted(q)
            and not copied(q)
        ),
    ),
    Listed(
        "comparisons of integers are exact and never an error here; torch has no kernel, or no common dtype",
        lambda q: (
            q.op in COMPARISONS
            and only(q, "int")
            and (
                (integer(q) and not LIMIT[0] <= number_of(q) < LIMIT[1])
                or (integer(q) and number_of(q) >= 2**63 and q.dtypes == ["bool"])
                or (q.op in ORDERED and bool(set(q.dtypes) & set(BARE)))
                or (len(set(q.dtypes)) == 2 and bool(set(q.dtypes) & set(BARE)))
            )
        ),
    ),
    Listed(
        "an integer that the array does not hold wraps in torch; here it is an OverflowError",
        lambda q: (
            q.op not in (*COMPARISONS, "divide", "where")
            and q.kinds == {"int"}
            and integer(q)
            and LIMIT[0] <= number_of(q) < LIMIT[1]
            and not fits(number_of(q), q.dtypes[0])
            and not (q.op in GAPS and q.dtypes[0] in BARE)
        ),
    ),
    Listed(
        "2**63 / a bool array: torch makes the number a float before it promotes",
        lambda q: (
            q.op == "divide"
            and q.dtypes == ["bool"]
            and q.operands[0] == number_of(q)
            and integer(q)
            and 2**63 <= number_of(q) < 2**64
        ),
    ),
    Listed(
        "torch refuses - with a bool operand, whatever the other is",
        lambda q: (
            q.op == "subtract"
            and ("bool" in q.dtypes or isinstance(number_of(q), bool))
            and not set(q.dtypes) & {*FP8, *BARE}
            and (set(q.dtypes) != {"bool"} or (bool(q.numbers) and not isinstance(number_of(q), bool)))
            and not (integer(q) and number_of(q) >= 2**63)
        ),
    ),
    Listed(
        "torch compares, copies and negates float8 by its bits: ==, !=, isnan, abs, +x",
        lambda q: (
            q.op in ("equal", "not_equal", "isnan", "abs", "positive")
            and len(set(q.dtypes)) == 1
            and q.dtypes[0] in FP8
            and not isinstance(number_of(q), complex)
            and not (integer(q) and not LIMIT[0] <= number_of(q) < LIMIT[1])
        ),
    ),
    Listed(
        "torch's x ** True copies, even where it does not compute",
        lambda q: copied(q) and q.operands[0] in ("bool", *FP8),
    ),
    Listed(
        "torch multiplies float8, on the CPU",
        lambda q: q.op == "multiply" and len(q.dtypes) == 2 and len(set(q.dtypes)) == 1 and q.dtypes[0] in FP8,
    ),
    Listed(
        "torch compares in complex32, which is not here",
        lambda q: (
            q.op in ("equal", "not_equal")
            and q.operands[q.operands[0] != "float16"] == "float16"
            and (isinstance(number_of(q), complex) or Point("complex64") in q.operands)
        ),
    ),
]


def listed(questions: list[Question]) -> list[Listed]:
    return [row for row in LISTED if any(map(row.about, questions))]


@pytest.mark.parametrize("op", [op for op in BINARY if op in CALLS])
def test_every_pair_of_dtypes(op: str) -> None:
    questions = pairs(op, ARITHMETIC)
    check("torch", theirs, questions, listed(questions))


@pytest.mark.parametrize("op", UNARY)
def test_every_dtype(op: str) -> None:
    questions = [Question(op, (dtype,)) for dtype in ARITHMETIC]
    check("torch", theirs, questions, listed(questions))


POINTS = ("bool", "int8", "int64", "uint8", "float16", "bfloat16", "float64", "complex64")


@pytest.mark.parametrize("op", ["add", "multiply", "divide", "maximum", "bitwise_and", "equal", "where"])
def test_0d_arrays(op: str) -> None:
    questions = [Question(op, pair) for a in POINTS for b in POINTS for pair in ((a, Point(b)), (Point(b), Point(a)))]
    check("torch", theirs, questions, listed(questions))


@pytest.mark.parametrize("op", ["add", "multiply", "divide", "bitwise_and", "bitwise_left_shift", "less", "equal"])
def test_every_dtype_with_every_number(op: str) -> None:
    questions = with_numbers(op, ARITHMETIC)
    check("torch", theirs, questions, listed(questions))


@pytest.mark.parametrize("op", [op for op in BINARY if op not in ("minimum", "maximum")])
def test_every_dtype_with_a_number_of_each_kind(op: str) -> None:
    """The other ops check values as well, each in its own way: ``//`` zeros, ``where`` and ``**`` overflows."""
    questions = with_numbers(op, ARITHMETIC, (True, 3, 0.5, 1j))
    check("torch", theirs, questions, listed(questions))


# --- in place, numbers in half precision, and what torch's text says ------------------------------------------------


def test_storable_dtypes_of_in_place_operations() -> None:
    for result, target in product(ARITHMETIC, repeat=2):
        theirs = torch.can_cast(DTYPES[result], DTYPES[target])
        assert (result, target, stored_by_us("torch", result, target)) == (result, target, theirs)


def test_a_signed_result_is_stored_as_unsigned() -> None:
    with ta.semantics("torch"):
        x = ta.asarray([1, 2], dtype="uint8", device="cpu")
        x -= ta.asarray([2, 2], dtype="int8", device="cpu")
    tensor = torch.tensor([1, 2], dtype=torch.uint8)
    tensor -= torch.tensor([2, 2], dtype=torch.int8)
    assert x.tolist() == tensor.tolist() == [255, 0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", ["multiply", "divide"])
@pytest.mark.parametrize("number", [0.1, 1 / 3, 3, 2**24 + 1])
def test_numbers_stay_in_the_compute_dtype(op: str, dtype: str, number: float) -> None:
    """Bit for bit on values of all sizes; rounding the number to `dtype` first gives something else."""
    values = np.geomspace(1e-4, 100, 2001).astype(np.float32)
    tensor = torch.from_numpy(values).to(DTYPES[dtype])
    x = ta.asarray(values, device="cpu").astype(dtype)
    with ta.semantics("torch"):
        ours = ta.to_numpy(getattr(ta, op)(x, number).astype("float32"))
    theirs = CALLS[op](tensor, number).float().numpy()
    np.testing.assert_array_equal(ours, theirs)
    if number in (0.1, 1 / 3):
        assert (ta.to_numpy(getattr(ta, op)(x, number).astype("float32")) != theirs).any()


def test_the_cpu_rounds_the_number_of_a_sum() -> None:
    """What torch does on GPUs, and for * and / everywhere, its CPU kernels of + and - do not."""
    x = torch.linspace(-4, 4, 1001).to(torch.float16)
    assert torch.equal(x + 0.1, x + torch.tensor(0.1).half())
    with ta.semantics("torch"):
        ours = ta.asarray(x) + 0.1
    assert torch.equal(torch.from_numpy(ta.to_numpy(ours)), (x.float() + 0.1).half())


def test_where_torchs_text_is_wrong_about_torch() -> None:
    """Its page on tensor attributes, "type promotion", and what follows it."""
    with pytest.raises(TypeError):  # an example of three operands: result_type takes two
        torch.result_type(torch.ones(2, dtype=torch.int32), torch.ones((), dtype=torch.float32), 4.0)
    int32, complex128 = torch.ones(2, dtype=torch.int32), torch.ones((), dtype=torch.complex128)
    # "a type with sufficient size to hold all scalar operands of that category": float32 does not hold 1e300,
    assert torch.result_type(int32, 1e300) is torch.float32
    # nor complex64 "all zero-dim tensor operands of that category", where it is made of the dimensioned float32.
    assert torch.result_type(torch.ones(2, dtype=torch.float32), complex128) is torch.complex64
    assert torch.result_type(int32, complex128) is torch.complex128
    # 0-d operands do promote among themselves: "zero-dim" is no word for "does not take part".
    assert torch.result_type(torch.ones((), dtype=torch.int8), torch.ones((), dtype=torch.int64)) is torch.int64
