"""The check of a lattice at its making: sound ones pass, broken ones are refused with what is wrong."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tilearray import dtypes
from tilearray.dtypes import ARITHMETIC
from tilearray.errors import PromotionError, SemanticsError
from tilearray.promotion.lattice import Joins, Lattice
from tilearray.promotion.semantics import Semantics
from tilearray.promotion.systems import ARRAY_API, CUTILE, TORCH, TRITON

A, B, C, D, E = dtypes.bool_, dtypes.uint8, dtypes.int8, dtypes.uint16, dtypes.int16
DIAMOND = {A: (B, C), B: (D,), C: (D,), D: ()}


def pair(one: np.dtype, other: np.dtype) -> frozenset[np.dtype]:
    return frozenset((one, other))


def test_a_sound_lattice_is_accepted() -> None:
    assert Lattice(DIAMOND, {}).join([B, C]) == D
    assert Lattice({A: (B, C), B: (), C: ()}, {pair(B, C): "they are apart"}).join([A, B]) == B


def test_a_join_of_three_incomparable_dtypes() -> None:
    fan = {A: (B, C, D), B: (E,), C: (E,), D: (E,), E: ()}
    assert Lattice(fan, {}).join([A, B, C, D]) == E
    split = Lattice({A: (B, C, D), B: (E,), C: (E,), D: (), E: ()}, {pair(D, x): "D is apart" for x in (B, C, E)})
    assert split.join([A, B, C]) == E
    with pytest.raises(PromotionError, match="f: int8 and uint16 have no common dtype: D is apart"):
        split.join([B, C, D], "f")


@pytest.mark.parametrize(
    ("edges", "exceptions", "complaint"),
    [
        (
            {A: (B, C), B: (D, E), C: (D, E), D: (), E: ()},
            {pair(D, E): "no top"},
            "int8 and uint8 have no unique least upper bound (candidates: int16 and uint16): add an edge or list",
        ),
        (
            {A: (B, C), B: (), C: (D,), D: ()},
            {pair(B, D): "missing too"},
            "int8 and uint8 have no unique least upper bound (candidates: none): add an edge or list the pair",
        ),
        ({A: (B,), B: (C,), C: (A,)}, {}, "the edges have a cycle: bool -> uint8 -> int8 -> bool"),
        ({A: (A,)}, {}, "the edges have a cycle: bool -> bool"),
        (DIAMOND, {pair(B, C): D}, "the exception int8 and uint8 is not needed: the edges give uint16"),
        (DIAMOND, {pair(A, D): "apart"}, "the exception bool and uint16 is not needed: the edges give uint16"),
        (
            {A: (B, C), B: (), C: ()},
            {pair(B, C): A},
            "the exception int8 and uint8 gives bool, which is not above both",
        ),
        (DIAMOND, {pair(B, E): "who?"}, "the exception int16 and uint8 is not a pair of dtypes of the lattice"),
        (DIAMOND, {frozenset((B,)): B}, "the exception uint8 is not a pair of dtypes of the lattice"),
    ],
    ids=["two bounds", "missing edge", "cycle", "loop", "needless dtype", "needless error", "low", "foreign", "single"],
)
def test_a_broken_lattice_is_refused(edges: dict, exceptions: dict, complaint: str) -> None:
    with pytest.raises(SemanticsError) as caught:
        Lattice(edges, exceptions)
    assert str(caught.value).startswith(complaint)


@pytest.mark.parametrize("semantics", [ARRAY_API, TRITON, CUTILE, TORCH], ids=str)
def test_taking_anything_from_the_real_lattices_is_noticed_or_changes_a_join(semantics: Semantics) -> None:
    """No edge and no exception stands there without need."""
    lattice = semantics.lattice
    assert isinstance(lattice, Lattice)
    edges, exceptions, forbidden = lattice.edges, lattice.exceptions, lattice.forbidden
    for key in exceptions:
        with pytest.raises(SemanticsError, match="no unique least upper bound"):
            Lattice(edges, {other: exceptions[other] for other in exceptions if other != key}, forbidden)
    for key in forbidden:
        rest = {other: forbidden[other] for other in forbidden if other != key}
        assert not _joins_alike(semantics, edges, exceptions, rest)
    for dtype, above in edges.items():
        for step in above:
            less = {**edges, dtype: tuple(s for s in above if s != step)}
            assert not _joins_alike(semantics, less, exceptions, forbidden)


def _joins_alike(semantics: Semantics, edges: dict, exceptions: dict, forbidden: dict) -> bool:
    try:
        lattice = Lattice(edges, exceptions, forbidden)
    except SemanticsError:
        return False
    return all(outcome(lattice, p) == outcome(semantics.lattice, p) for p in combinations(ARITHMETIC, 2))


def outcome(lattice: Joins, operands: tuple[np.dtype, ...]) -> str:
    try:
        return lattice.join(operands).name
    except PromotionError:
        return "error"
