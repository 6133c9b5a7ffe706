"""Both lattices and scalar rules, against the documents' sentences written out here.

Nothing here reads an edge. `pair_rule` and `scalar_rule` restate the documented rules on kind, width and signedness
(Triton's page on semantics: "Type Promotion"; the corrections of `array-api` are marked), and `STANDARD` is the array
API standard's promotion tables, typed from its page "Type promotion rules".
"""

from __future__ import annotations

import re
from itertools import combinations, permutations, product

import numpy as np
import pytest

from tilearray import dtypes
from tilearray.dtypes import ALL, ARITHMETIC, STORAGE_ONLY, as_dtype
from tilearray.errors import PromotionError, ScalarOverflowError, SemanticsError
from tilearray.promotion.scalars import ScalarClass
from tilearray.promotion.semantics import Semantics, as_semantics
from tilearray.promotion.storing import can_cast_same_kind
from tilearray.promotion.systems import ARRAY_API, CUTILE, NUMPY, SEMANTICS, TORCH, TRITON

ERROR = "error"
BOTH = pytest.mark.parametrize("semantics", [ARRAY_API, TRITON], ids=str)

# --- The rules, restated --------------------------------------------------------------------------------------------

KINDS = ("bool", "int", "float", "complex")


def kind(name: str) -> str:
    return next(known for known in KINDS if known in name)


def width(name: str) -> int:
    return int(re.search(r"\d+", name)[0]) if name != "bool" else 1


def pair_rule(semantics: Semantics, a: str, b: str) -> str:
    """Rules (1) to (4) for two tensors."""
    if a == b:
        return a
    if kind(a) == "int" == kind(b) and (a[0] == "u") != (b[0] == "u"):
        unsigned, signed = (a, b) if a[0] == "u" else (b, a)
        return mixed_signedness(semantics, unsigned, signed)
    if "complex" in (kind(a), kind(b)):  # complex joins on top, and float64 asks for the wider one
        return "complex128" if {a, b} & {"complex128", "float64"} else "complex64"
    if kind(a) != kind(b):  # (1) the higher kind wins
        return max(a, b, key=lambda name: KINDS.index(kind(name)))
    if width(a) != width(b):  # (2) the wider wins
        return max(a, b, key=width)
    return "float16" if width(a) == 8 else "float32"  # (3) the next larger: two fp8; float16 with bfloat16


def mixed_signedness(semantics: Semantics, unsigned: str, signed: str) -> str:
    if semantics is TRITON:  # (2), and (4) at equal width the unsigned one
        return signed if width(signed) > width(unsigned) else unsigned
    # Correction of array-api: the next wider signed integer that holds both.
    holding = max(2 * width(unsigned), width(signed))
    return ERROR if holding > 64 else f"int{holding}"


def many_rule(semantics: Semantics, names: tuple[str, ...]) -> str:
    """Many tensors: the highest kind first, then within it."""
    top = max((kind(name) for name in names), key=KINDS.index)
    if top == "complex":
        return "complex128" if {"complex128", "float64"} & set(names) else "complex64"
    among = {name for name in names if kind(name) == top}
    if top == "int":
        return integers_rule(semantics, among)
    widest = {name for name in among if width(name) == max(map(width, among))}
    return widest.pop() if len(widest) == 1 else pair_rule(semantics, *widest)


def integers_rule(semantics: Semantics, among: set[str]) -> str:
    unsigned = {name for name in among if name[0] == "u"}
    if unsigned in (set(), among):
        return max(among, key=width)
    return mixed_signedness(semantics, max(unsigned, key=width), max(among - unsigned, key=width))


LADDER = {
    "BOOL": "bool",
    "INT32": "int32",
    "UINT32": "uint32",
    "INT64": "int64",
    "UINT64": "uint64",
    "FLOAT32": "float32",
    "FLOAT64": "float64",
    "COMPLEX": "complex64",
}
SCALAR_KINDS = {
    "BOOL": "bool",
    **dict.fromkeys(("INT32", "UINT32", "INT64", "UINT64", "HUGE"), "int"),
    **dict.fromkeys(("FLOAT32", "FLOAT64"), "float"),
    "COMPLEX": "complex",
}


def scalar_rule(semantics: Semantics, name: str, scalar: str) -> str:
    """A tensor and a Python scalar."""
    if KINDS.index(SCALAR_KINDS[scalar]) <= KINDS.index(kind(name)):
        return name  # of lower or equal kind: it does not take part
    if scalar == "HUGE":
        return "overflow"
    return pair_rule(semantics, name, LADDER[scalar])


ALONE = {  # what Python scalars give without a tensor, in the order of ScalarClass
    "array-api": "bool int64 int64 int64 uint64 overflow float32 float64 complex64",
    "triton": "bool int32 uint32 int64 uint64 overflow float32 float64 complex64",
}

NAMES = [dtype.name for dtype in ARITHMETIC]


def outcome(semantics: Semantics, operands: tuple[str | ScalarClass, ...]) -> str:
    given = [operand if isinstance(operand, ScalarClass) else as_dtype(operand) for operand in operands]
    try:
        return semantics.result_type(given).name
    except PromotionError:
        return ERROR
    except ScalarOverflowError:
        return "overflow"


# --- Pairs ----------------------------------------------------------------------------------------------------------


def test_the_helpers_read_names_rightly() -> None:
    assert [kind(name) for name in ("bool", "uint8", "bfloat16", "float8_e5m2", "complex64")] == [
        "bool", "int", "float", "float", "complex",
    ]  # fmt: skip
    assert [width(name) for name in ("bool", "uint8", "bfloat16", "float8_e5m2", "complex64")] == [1, 8, 16, 8, 64]
    assert len(NAMES) == 17


@BOTH
@pytest.mark.parametrize("a", NAMES)
def test_every_pair_follows_the_rules(semantics: Semantics, a: str) -> None:
    for b in NAMES:
        expected = pair_rule(semantics, a, b)
        assert (b, outcome(semantics, (a, b))) == (b, expected)
        assert (b, outcome(semantics, (b, a))) == (b, expected)


STANDARD = {  # the standard's tables: signed, unsigned, mixed signedness, floating-point
    ("int8", "int16", "int32", "int64"): """
        int8    int16   int32   int64
        int16   int16   int32   int64
        int32   int32   int32   int64
        int64   int64   int64   int64""",
    ("uint8", "uint16", "uint32", "uint64"): """
        uint8   uint16  uint32  uint64
        uint16  uint16  uint32  uint64
        uint32  uint32  uint32  uint64
        uint64  uint64  uint64  uint64""",
    ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"): """
        int8    int16   int32   int64   int16   int32   int64
        int16   int16   int32   int64   int16   int32   int64
        int32   int32   int32   int64   int32   int32   int64
        int64   int64   int64   int64   int64   int64   int64
        int16   int16   int32   int64   uint8   uint16  uint32
        int32   int32   int32   int64   uint16  uint16  uint32
        int64   int64   int64   int64   uint32  uint32  uint32""",
    ("float32", "float64", "complex64", "complex128"): """
        float32     float64     complex64   complex128
        float64     float64     complex128  complex128
        complex64   complex128  complex64   complex128
        complex128  complex128  complex128  complex128""",
}


@pytest.mark.parametrize("names", STANDARD, ids=lambda names: names[0] + "...")
def test_array_api_has_the_standards_tables(names: tuple[str, ...]) -> None:
    table = [line.split() for line in STANDARD[names].strip().splitlines()]
    assert len(table) == len(names)
    for a, row in zip(names, table, strict=True):
        assert [outcome(ARRAY_API, (a, b)) for b in names] == row


def test_array_api_agrees_with_numpy_on_integers() -> None:
    integers = [name for name in NAMES if kind(name) in ("bool", "int")]
    for a, b in product(integers, repeat=2):
        numpy = np.promote_types(a, b).name
        assert outcome(ARRAY_API, (a, b)) == (ERROR if numpy == "float64" else numpy)


@BOTH
def test_storage_only_dtypes_join_with_themselves_alone(semantics: Semantics) -> None:
    for a, b in product(STORAGE_ONLY, ALL):
        assert outcome(semantics, (a.name, b.name)) == (a.name if a == b else ERROR)
        assert outcome(semantics, (b.name, a.name)) == (a.name if a == b else ERROR)


# --- Many -----------------------------------------------------------------------------------------------------------

INEXACT = ["float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


@BOTH
def test_triples_follow_the_rules_in_any_order(semantics: Semantics) -> None:
    for names in product(NAMES, repeat=3):
        assert (names, outcome(semantics, names)) == (names, many_rule(semantics, names))


@BOTH
def test_the_order_of_four_does_not_matter(semantics: Semantics) -> None:
    interesting = ["bool", "int8", "uint8", "uint64", *INEXACT[:4], "complex64"]
    for names in combinations(interesting, 4):
        orders = {outcome(semantics, order) for order in permutations((*names, names[0]))}
        assert orders == {many_rule(semantics, names)}


FLOATS = ["float16", "bfloat16", "float32", "float64"]
SIGNED, UNSIGNED = (["int8", "int16", "int32", "int64"], ["uint8", "uint16", "uint32", "uint64"])
BARE = UNSIGNED[1:]


def sets(*groups: list[str]) -> set[frozenset[str]]:
    """All triples of one name from each group."""
    return {frozenset(names) for names in product(*groups)}


# Three where the order of joining by pairs matters. In `result_type` of many it never does.
NOT_ASSOCIATIVE = {
    # Two that are refused, or join in another way than through the third, which both can reach.
    "cutile": sets(SIGNED, UNSIGNED, FLOATS) | sets(["float16"], ["bfloat16"], ["float32", "float64"]),
    "torch": sets(BARE, ["bool", "uint8", *SIGNED], FLOATS)
    | {names for names in sets(BARE, BARE, FLOATS) if len(names) == 3}
    | sets(BARE, FLOATS, ["complex64", "complex128"]),
    "triton": {frozenset({"float8_e4m3fn", "float8_e5m2", "bfloat16"})},  # float16 first, then float32; else bfloat16
    "array-api": {frozenset({"float8_e4m3fn", "float8_e5m2", "bfloat16"})}
    # The integers alone are an error, with a higher kind they are not.
    | {frozenset({"uint64", signed, other}) for signed in ("int8", "int16", "int32", "int64") for other in INEXACT},
}


ALL_FIVE = pytest.mark.parametrize("semantics", SEMANTICS.values(), ids=str)


@ALL_FIVE
def test_no_order_matters_for_any_three(semantics: Semantics) -> None:
    for names in combinations(NAMES, 3):
        assert len({outcome(semantics, order) for order in permutations(names)}) == 1
    for names in combinations(NAMES, 2):
        for scalar in (ScalarClass.INT32, ScalarClass.UINT64, ScalarClass.FLOAT32, ScalarClass.COMPLEX):
            assert len({outcome(semantics, order) for order in permutations((*names, scalar))}) == 1


@pytest.mark.parametrize("semantics", [ARRAY_API, TRITON, CUTILE, TORCH], ids=str)
def test_associativity_except_for_listed_triples(semantics: Semantics) -> None:
    broken: set[frozenset[str]] = set()
    for a, b, c in product(NAMES, repeat=3):
        left, right = outcome(semantics, (a, b)), outcome(semantics, (b, c))
        left = ERROR if left == ERROR else outcome(semantics, (left, c))
        right = ERROR if right == ERROR else outcome(semantics, (a, right))
        if left != right:
            broken.add(frozenset((a, b, c)))
    assert broken == NOT_ASSOCIATIVE[semantics.name]


# --- Scalars --------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("scalar", SCALAR_KINDS)
def test_every_dtype_with_every_scalar(semantics: Semantics, scalar: str) -> None:
    for name in NAMES:
        expected = scalar_rule(semantics, name, scalar)
        assert (name, outcome(semantics, (name, ScalarClass[scalar]))) == (name, expected)
        assert (name, outcome(semantics, (ScalarClass[scalar], name))) == (name, expected)


@BOTH
def test_scalars_alone(semantics: Semantics) -> None:
    assert [outcome(semantics, (scalar,)) for scalar in ScalarClass] == ALONE[semantics.name].split()
    for a, b in product(ScalarClass, repeat=2):  # of two kinds, the higher alone counts
        if SCALAR_KINDS[a.name] != SCALAR_KINDS[b.name]:
            higher = max(a, b, key=lambda scalar: KINDS.index(SCALAR_KINDS[scalar.name]))
            assert outcome(semantics, (a, b)) == outcome(semantics, (higher,))


@pytest.mark.parametrize(
    ("operands", "array_api", "triton"),
    [
        (("INT32", "UINT32"), "int64", "uint32"),
        (("INT64", "UINT64"), "uint64", "uint64"),
        (("FLOAT32", "FLOAT64"), "float64", "float64"),
        (("bool", "INT32", "UINT32"), "int64", "uint32"),
        (("bool", "HUGE", "FLOAT32"), "float32", "float32"),
        (("int8", "uint8", "FLOAT64"), "float64", "float64"),
        (("int8", "uint64", "FLOAT32"), "float32", "float32"),
        (("int8", "uint64", "INT32"), ERROR, "uint64"),
        (("float64", "int8", "COMPLEX"), "complex128", "complex128"),
        (("bfloat16", "float8_e5m2", "HUGE"), "bfloat16", "bfloat16"),
    ],
)
def test_several_operands_in_any_order(operands: tuple[str, ...], array_api: str, triton: str) -> None:
    mixed = [ScalarClass[name] if name.isupper() else name for name in operands]
    for order in permutations(mixed):
        assert (outcome(ARRAY_API, order), outcome(TRITON, order)) == (array_api, triton)


def test_defaults_and_divisions() -> None:
    def facts(semantics: Semantics) -> list[str]:
        return [semantics.defaults[k].name for k in ("bool", "int", "float", "complex")] + [
            semantics.true_division.name, semantics.integer_division,
        ]  # fmt: skip

    assert facts(ARRAY_API) == ["bool", "int64", "float32", "complex64", "float32", "floor"]
    assert facts(TRITON) == ["bool", "int32", "float32", "complex64", "float32", "trunc"]


def test_numpys_own_dtypes_are_not_associative_either() -> None:
    """Integers that widen each other first give a wider float than those that meet the float one by one."""
    own = [name for name in NAMES if name not in ("bfloat16", "float8_e4m3fn", "float8_e5m2")]
    broken = {
        frozenset((a, b, c))
        for a, b, c in product(own, repeat=3)
        if outcome(NUMPY, (outcome(NUMPY, (a, b)), c)) != outcome(NUMPY, (a, outcome(NUMPY, (b, c))))
    }
    assert broken == (
        sets(["int8"], ["uint8"], ["float16"])
        | sets(["int8", "int16"], ["uint16"], ["float16", "float32", "complex64"])
    )


def test_decisions_of_the_other_systems() -> None:
    def facts(semantics: Semantics) -> list[str]:
        return [
            *(semantics.defaults[kind].name for kind in ("int", "float")),
            semantics.true_division.name, semantics.integer_division, semantics.inplace,
        ]  # fmt: skip

    assert facts(CUTILE) == ["int32", "float32", "float32", "floor", "promotion"]
    assert facts(TORCH) == ["int64", "float32", "float32", "floor", "kind"]
    assert facts(NUMPY) == ["int64", "float64", "float64", "floor", "numpy"]


def test_same_kind_casts() -> None:
    allowed = {
        "bool": {"bool", "int", "uint", "float", "complex"},
        "uint": {"uint", "int", "float", "complex"},
        "int": {"int", "float", "complex"},
        "float": {"float", "complex"},
        "complex": {"complex"},
    }
    for a, b in product(ALL, repeat=2):
        assert can_cast_same_kind(a, b) is (dtypes.info(b).kind in allowed[dtypes.info(a).kind])


# --- Messages -------------------------------------------------------------------------------------------------------


def message(error: type[Exception], *operands: object, semantics: Semantics = ARRAY_API) -> str:
    with pytest.raises(error) as caught:
        semantics.result_type(operands, "add")
    return str(caught.value)


def test_messages_say_which_cast_to_write() -> None:
    assert message(PromotionError, dtypes.int8, dtypes.uint64) == (
        "add: int8 and uint64 have no common dtype: no integer dtype holds both ranges; write x.astype('int64') for "
        "the uint64 operand, or x.astype('uint64') for the int8 one"
    )
    assert message(PromotionError, dtypes.float8_e8m0fnu, dtypes.int8) == (
        "add: float8_e8m0fnu is for storage only and has no common dtype with int8; "
        "write x.astype('float32'), which holds all of its values"
    )
    assert message(ScalarOverflowError, dtypes.bool_, ScalarClass.HUGE) == (
        "add: no integer dtype holds an integer beyond 64 bits; write it as a float"
    )


def test_the_same_error_in_any_order() -> None:
    operands = (dtypes.float4_e2m1fn, dtypes.float8_e3m4, dtypes.int8, dtypes.uint64)
    assert len({message(PromotionError, *order) for order in permutations(operands)}) == 1


@pytest.mark.parametrize("dtype", STORAGE_ONLY, ids=str)
def test_float32_holds_all_values_as_the_message_claims(dtype: np.dtype) -> None:
    patterns = np.arange(2 ** dtypes.info(dtype).bits, dtype=np.uint8).view(dtype)
    there_and_back = patterns.astype(np.float32).astype(dtype)
    number = ~np.isnan(patterns.astype(np.float32))
    np.testing.assert_array_equal(there_and_back.view(np.uint8)[number], patterns.view(np.uint8)[number])


def test_as_semantics() -> None:
    names = ["array-api", "triton", "cutile", "torch", "numpy"]
    assert {name: as_semantics(name) for name in names} == dict(SEMANTICS)
    assert list(SEMANTICS) == names
    assert as_semantics(TRITON) is TRITON
    assert str(TRITON) == "triton"
    with pytest.raises(SemanticsError, match=r"semantics: unknown semantics 'torhc'; write 'array-api' or 'triton'"):
        as_semantics("torhc")
