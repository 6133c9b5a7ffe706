"""The common dtype of a call under all five semantics, written a second time as the oracle of the property tests.

``array-api`` and ``triton`` are the sentences of `rules`; ``cutile`` and ``torch`` are written out here from what the
systems do, which tests/conformance asks them for; and ``numpy`` is NumPy's, asked with the very numbers of the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from support.oracles import rules
from support.oracles.formats import ARITHMETIC, KINDS, STORAGE, Number, dtype_of, kind_of, width_of
from support.oracles.rules import number_kind
from tilearray.errors import PromotionError, ScalarOverflowError

SEMANTICS = ("array-api", "triton", "cutile", "torch", "numpy")
FP8 = {"float8_e4m3fn", "float8_e5m2"}
COMPLEX = {"complex64", "complex128"}
BARE = {"uint16", "uint32", "uint64"}

# NumPy's answer for three dtypes depends on their order where some are of ml_dtypes: the table's order is asked for.
ORDER = (*ARITHMETIC[:9], *ARITHMETIC[15:], *ARITHMETIC[9:15], *STORAGE)

RUNGS = ("bool", "int32", "uint32", "int64", "uint64", "huge", "float32", "float64", "complex64")

INTEGER = {"array-api": "int64", "triton": "int32", "cutile": "int32", "torch": "int64", "numpy": "int64"}
NOT_COMPUTED = {"cutile": {"bool"} | FP8 | COMPLEX, "torch": FP8}
QUOTIENTS = ("divide", "reciprocal", "sinc", "isclose")  # whose integers are those of ``/``
WIDE_NUMBERS = {"torch": ("add", "subtract", "multiply", "divide", "floor_divide")}


class Operand(Protocol):
    """What decides of an operand: a dtype, and whether it is that of a 0-d array; or a number."""

    @property
    def dtype(self) -> str | None: ...
    @property
    def point(self) -> bool: ...
    @property
    def number(self) -> Number | None: ...


def common(operands: Sequence[Operand], semantics: str) -> str:
    """The common dtype, or one of the errors that the library has for there being none."""
    arrays = {o.dtype for o in operands if o.dtype is not None and not o.point}
    points = {o.dtype for o in operands if o.dtype is not None and o.point}
    numbers: list[Any] = [o.number for o in operands if o.dtype is None]
    if semantics == "numpy":
        return ask_numpy(arrays | points, numbers)
    if semantics in ("array-api", "triton"):
        return rules.common(arrays | points, numbers, semantics)
    if any(isinstance(value, int) and not -(2**63) <= value < 2**64 for value in numbers):
        raise ScalarOverflowError("beyond 64 bits")
    taking = taking_part(arrays | points, numbers)
    found = {rung(value, semantics) for value in taking}
    if semantics == "cutile":
        return cutile_join(arrays | points | (found if arrays | points else {widest(found)}))
    categories = [torch_join(names) for names in (arrays, points, found) if names]
    while len(categories) > 1:
        lower = categories.pop()
        categories[-1] = torch_combined(categories[-1], lower)
    return categories[0]


def ask_numpy(names: set[str], numbers: list[Any]) -> str:
    beyond = any(isinstance(value, int) and not -(2**63) <= value < 2**64 for value in numbers)
    if beyond and not names:
        raise ScalarOverflowError("beyond 64 bits")
    one_of_each = {rung_of_numpy(n): n for n in numbers}
    stand_ins = [2**64 if name == "huge" else one_of_each[name] for name in RUNGS if name in one_of_each]
    try:
        return np.result_type(*map(dtype_of, sorted(names, key=ORDER.index)), *stand_ins).name
    except TypeError as error:
        raise PromotionError("NumPy has none") from error


def rung_of_numpy(value: Number) -> str:
    """Which numbers are asked for once: NumPy's answer depends on how many there are where ml_dtypes' dtypes are."""
    try:
        return rules.rung(value)
    except ScalarOverflowError:
        return "huge"


def taking_part(names: set[str], numbers: list[Any]) -> list[Any]:
    """The numbers of the highest kind, if that is above the kinds of all arrays."""
    highest = max((KINDS.index(kind_of(name)) for name in names), default=-1)
    top = max((KINDS.index(number_kind(value)) for value in numbers), default=-1)
    return [value for value in numbers if KINDS.index(number_kind(value)) == top] if top > highest else []


def rung(value: Number, semantics: str) -> str:
    """cuTile: the first of int32, int64, uint64; torch: int64 and no other. All floats are float32."""
    kind = number_kind(value)
    if kind == "bool":
        return "bool"
    if kind == "float":
        return "float32"
    if kind == "complex":
        if semantics == "cutile":
            raise PromotionError("cuTile has no complex numbers")
        return "complex64"
    if semantics == "cutile" and -(2**31) <= value < 2**31:  # type: ignore[operator]
        return "int32"
    if -(2**63) <= value < 2**63:  # type: ignore[operator]
        return "int64"
    if semantics == "torch":
        raise ScalarOverflowError("torch has no unsigned number")
    return "uint64"


def widest(names: set[str]) -> str:
    """Of numbers alone, what the one that needs most is."""
    return max(names, key=lambda name: (width_of(name), name))


def signed(name: str) -> bool:
    return name.startswith("int")


def cutile_join(names: set[str]) -> str:
    """Within a kind the wider; no two signednesses, no two 16-bit floats, and nothing that is not arithmetic."""
    if len(names) == 1:
        return next(iter(names))
    if names & (FP8 | COMPLEX | {*STORAGE}):
        raise PromotionError("not arithmetic")
    floats = {name for name in names if kind_of(name) == "float"}
    integers = {name for name in names if kind_of(name) == "int"}
    if {"float16", "bfloat16"} == floats or (not floats and len(set(map(signed, integers))) == 2):
        raise PromotionError("neither holds the other")
    return max(floats or integers, key=width_of)


def torch_join(names: set[str]) -> str:
    """The rules of array-api but for fp8, which join nothing, and wide unsigned integers, which join floats only."""
    if len(names) == 1:
        return next(iter(names))
    if names & (FP8 | {*STORAGE}):
        raise PromotionError("fp8 joins nothing")
    floats = {name for name in names if kind_of(name) == "float"}
    if names & BARE and not floats:
        raise PromotionError("wide unsigned integers join floats only")
    return rules.join(names - BARE, "array-api")


def torch_combined(higher: str, lower: str) -> str:
    """A dtype of a higher category with one of a lower: the higher, unless its kind is the lower one."""
    kind, other = KINDS.index(kind_of(higher)), KINDS.index(kind_of(lower))
    if kind_of(higher) == "float" and kind_of(lower) == "complex":
        found = {"bfloat16": "complex64", "float32": "complex64", "float64": "complex128"}.get(higher)
        if found is None:
            raise PromotionError("there is no complex32")
        return found
    if kind >= max(other, 1):
        return higher
    if kind_of(higher) == "int" and kind_of(lower) == "complex":
        return lower
    return torch_join({higher, lower})


INT8_OF_BOOLS = (
    *("floor_divide", "remainder", "pow", "fmod", "bitwise_left_shift", "bitwise_right_shift"),
    *("square", "conj", "reciprocal"),
)
BOOLS_OF_NUMPY = ("abs", "floor", "ceil", "trunc", "real", "imag", "clip", "signbit")
"""The functions that keep bools or take them as they are under ``numpy``, and refuse them otherwise."""


def loop_of_numpy(op: str, operands: Sequence[Operand], typed: str) -> str | None:
    """The dtype in which NumPy computes integers and bools, if that is neither their common dtype nor `float_of` it.

    Each integer is held by a float: the widest of these is taken, which for int8 and uint8 is float16.
    """
    arrays = [o.dtype for o in operands if o.dtype is not None]
    if typed == "bool" and op in INT8_OF_BOOLS:
        return "int8"
    if op in ("reciprocal", "round") and kind_of(typed) == "int":
        return typed
    if op == "round":
        return "float16"
    if op == "angle":
        return "float64" if typed == "bool" else None
    if len(operands) == 2 and arrays and op not in QUOTIENTS:
        names = ["int64"] if typed != "bool" and {*arrays} == {"bool"} else arrays  # of a number beside bools
        return max((float_of(op, name, "numpy") for name in names), key=width_of)
    return None


def float_of(op: str, integer: str, semantics: str) -> str:
    """The float that an op which has no integers takes an integer or bool dtype for."""
    if semantics != "numpy":
        return "float32"
    if op in QUOTIENTS:
        return "float64"
    return {1: "float16", 8: "float16", 16: "float32"}.get(width_of(integer), "float64")


def stores(result: str, target: str, semantics: str) -> bool:
    """What an in-place operator or ``out=`` may store."""
    if KINDS.index(kind_of(result)) > KINDS.index(kind_of(target)):
        return False
    if semantics == "numpy":
        return np.can_cast(dtype_of(result), dtype_of(target), "same_kind")
    if semantics == "cutile":
        try:
            return cutile_join({result, target}) == target
        except PromotionError:
            return False
    return semantics == "torch" or rules.same_kind(result, target)
