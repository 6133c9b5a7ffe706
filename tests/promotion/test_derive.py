"""Semantics of one's own: what changes, what stays, and what is refused when they are made."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import tilearray as ta
from tilearray.dtypes import ARITHMETIC
from tilearray.errors import PromotionError, SemanticsError
from tilearray.promotion.semantics import Semantics
from tilearray.promotion.systems import TORCH

UNSIGNED_WINS = {
    "int8": ["int16", "uint8"],
    "int16": ["int32", "uint16"],
    "int32": ["int64", "uint32"],
    "int64": ["uint64"],
    "uint8": ["uint16"],
    "uint16": ["uint32"],
    "uint32": ["uint64"],
    "uint64": ["float16", "bfloat16"],
}


@pytest.fixture(scope="module")
def mlx() -> Semantics:
    return ta.Semantics.derive("torch", name="mlx", edges=UNSIGNED_WINS, integer_division="floor")


def outcome(semantics: Semantics, *dtypes: np.dtype) -> str:
    try:
        return semantics.promote(dtypes).name
    except PromotionError:
        return "error"


def test_the_rule_proposed_for_mlx(mlx: Semantics) -> None:
    """Unsigned with signed gives the larger of both widths, unsigned; all else is as in torch."""
    for a, b in product(ARITHMETIC, repeat=2):
        if {a.kind, b.kind} == {"i", "u"}:
            expected = f"uint{8 * max(a.itemsize, b.itemsize)}"
        elif {a.kind, b.kind} <= {"u", "b"}:
            expected = max(a, b, key=lambda dtype: (dtype.kind == "u", dtype.itemsize)).name
        elif "u" in (a.kind, b.kind) and "c" in (a.kind, b.kind):
            expected = (a if a.kind == "c" else b).name
        else:
            expected = outcome(TORCH, a, b)
        assert (a, b, outcome(mlx, a, b)) == (a, b, expected)


def test_it_is_in_force_like_any_other(mlx: Semantics) -> None:
    x, y = ta.asarray([200], dtype="uint8", device="cpu"), ta.asarray([-1], dtype="int32", device="cpu")
    with ta.semantics(mlx):
        assert (x + y).dtype == "uint32"
        assert (x + y).tolist() == [199]
        assert (y // 2).tolist() == [-1]
        assert ta.get_semantics() is mlx
        assert (ta.ones(2, dtype="float32") + ta.ones((), dtype="float64")).dtype == "float32"  # torch's 0-d rule
        assert ta.explain_promotion(x, y).answers["mlx"] == np.dtype("uint32")
    assert (x + y).dtype == "int32"


def test_other_attributes() -> None:
    c_like = ta.Semantics.derive("array-api", integer_division="trunc", defaults={"float": "f8"}, true_division="f8")
    assert (c_like.name, c_like.lattice) == ("array-api-derived", ta.get_semantics().lattice)
    with ta.semantics(c_like):
        x = ta.asarray([-7], device="cpu")
        assert ((x // 2).tolist(), (x / 2).dtype, ta.zeros(1).dtype) == ([-3], np.dtype("f8"), np.dtype("f8"))
        assert ta.asarray(3).dtype == "int64"


def test_exceptions_are_declared_and_forbidden() -> None:
    strict = ta.Semantics.derive(
        "array-api", exceptions={("float16", "bfloat16"): "they round differently; write x.astype('float32')"}
    )
    with pytest.raises(PromotionError, match="float16 and bfloat16 have no common dtype: they round differently"):
        strict.promote([ta.float16, ta.bfloat16])
    assert strict.promote([ta.float16, ta.bfloat16, ta.float32]) == "float32"
    wide = ta.Semantics.derive("array-api", exceptions={("uint64", "int8"): "float16"})
    assert wide.promote([ta.uint64, ta.int8]) == "float16"
    with pytest.raises(PromotionError):  # the others stay
        wide.promote([ta.uint64, ta.int16])


@pytest.mark.parametrize(
    ("base", "changes", "complaint"),
    [
        ("torhc", {}, "Semantics.derive: unknown semantics 'torhc'; write 'array-api' or"),
        ("numpy", {"edges": {"int8": []}}, "Semantics.derive: semantics 'numpy' has no edges to change"),
        (
            "triton",
            {"edges": {"uint64": ["int8"]}},
            "Semantics.derive: the edges have a cycle: int8 -> uint8 -> int16 -> uint16",
        ),
        (
            "torch",
            {"edges": {"float16": []}},
            "Semantics.derive: float16 and complex128 have no unique least upper bound",
        ),
        (
            "triton",
            {"exceptions": {("int8", "uint8"): "int16"}},
            "Semantics.derive: the exception int8 and uint8 is not needed",
        ),
        (
            "triton",
            {"rounding": "rz"},
            "Semantics.derive: cannot change 'rounding'; write edges",
        ),
        (
            "triton",
            {"integer_division": "up"},
            "Semantics.derive: integer_division is 'up'; write one of 'floor'",
        ),
        (
            "triton",
            {"inplace": "anything"},
            "Semantics.derive: inplace is 'anything'; write one of 'same_kind'",
        ),
        (
            "triton",
            {"defaults": {"fp": "f4"}},
            "Semantics.derive: kind 'fp' has no default; write one of",
        ),
    ],
)
def test_invalid_changes_are_errors(base: str, changes: dict, complaint: str) -> None:
    with pytest.raises(SemanticsError) as caught:
        ta.Semantics.derive(base, **changes)
    assert str(caught.value).startswith(complaint)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"inplace": None}, "inplace is None; write one of 'same_kind'"),
    ({"inplace": ["kind"]}, r"inplace is \['kind'\]; write one of 'same_kind'"),
    ({"integer_division": ["floor"]}, r"integer_division is \['floor'\]; write one of 'floor', 'trunc'"),
    ({"wide_numbers": 5}, "wide_numbers is 5; write a list of names"),
    ({"wide_numbers": "add"}, "wide_numbers is 'add'; write a list of names"),
    ({"wide_numbers": [5]}, r"wide_numbers is \[5\]; write a list of names"),
    ({"true_division": "int8"}, "true_division is 'int8'; write 'float16' or"),
    ({"true_division": "complex64"}, "true_division is 'complex64'; write 'float16' or"),
    ({"true_division": None}, "true_division is None; write 'float16' or"),
    ({"name": 5}, "name is 5; write a string"),
    ({"name": ""}, "name is ''; write a string"),
    ({"defaults": {"float": "int8"}}, "float is 'int8'; write 'float16' or"),
    ({"defaults": {"bool": "int8"}}, "the default of 'bool' is 'int8'; write 'bool'"),
    ({"defaults": {(): "int8"}}, r"kind \(\) has no default; write one of bool"),
    ({"defaults": 5}, "defaults is 5; write"),
    ({"defaults": None}, "defaults is None; write"),
    ({"edges": 5}, "edges is 5; write edges="),
    ({"edges": {"int8": 5}}, "an entry of edges is 5; write a list of dtypes"),
    ({"edges": {"int8": "int16"}}, "an entry of edges is 'int16'; write a list of dtypes"),
    ({"exceptions": []}, r"exceptions is \[\]; write exceptions="),
    ({"exceptions": {"int8": "int16"}}, "a pair of exceptions is 'int8'; write"),
    ({"exceptions": {("int8",): "int16"}}, r"a pair of exceptions is \('int8',\); write two dtypes"),
    ({"huge": "x"}, "huge is 'x'; write True or False"),
    ({"huge": 5}, "huge is 5; write True or False"),
    ({"same_bits": []}, r"same_bits is \[\]; write True or False"),
    ({"arithmetic": 5}, "arithmetic is 5; write a list of dtypes"),
    ({"arithmetic": "float32"}, "arithmetic is 'float32'; write a list of dtypes"),
    ({"arithmetic": []}, r"arithmetic is \[\]; write a list of dtypes among"),
    ({"arithmetic": ["float4_e2m1fn"]}, "arithmetic is .*; write a list of dtypes among"),
    ({"float": []}, r"float is \[\]; write 'float16'"),
]


@pytest.mark.parametrize(("changes", "complaint"), WRONG, ids=[f"{changes}" for changes, _ in WRONG])
def test_every_argument_is_checked_when_semantics_are_made(changes, complaint):
    with pytest.raises(SemanticsError, match=f"^Semantics.derive: {complaint}"):
        ta.Semantics.derive("array-api", **changes)


@pytest.mark.parametrize("base", [[], {}, None, 3])
def test_the_base_is_semantics(base):
    with pytest.raises(SemanticsError, match=r"^Semantics.derive: unknown semantics .*; write 'array-api'"):
        ta.Semantics.derive(base)


def test_every_rule_of_named_semantics_is_accepted_again():
    """What an attribute says can be written as an argument."""
    for name in ("array-api", "triton", "torch"):
        rules = ta.Semantics.derive(name).rules()
        given = {key: rules[key] for key in rules if key not in ("lattice", "ladder", "rule", "integer_functions")}
        assert ta.Semantics.derive(name, **given).rules() == rules
