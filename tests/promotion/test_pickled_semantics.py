"""Semantics travel: a pickle or a copy has the same rules, and what came from one is gone when nobody holds it."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import pytest

import tilearray as ta
from tilearray.engine import caches
from tilearray.promotion.systems import SEMANTICS


def derived(**changes):
    return ta.Semantics.derive("torch", name="mine", edges={"uint8": ["int16"], "uint16": ["int32"]}, **changes)


@pytest.mark.parametrize("name", SEMANTICS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_of_known_semantics_is_their_name(name, protocol):
    known = SEMANTICS[name]
    assert pickle.loads(pickle.dumps(known, protocol)) is known
    assert len(pickle.dumps(known, protocol)) < 150


def test_a_pickle_of_derived_semantics_is_their_rules():
    mine = derived(integer_division="trunc", true_division="float64")
    again = pickle.loads(pickle.dumps(mine))
    assert again is not mine
    assert again == mine
    assert hash(again) == hash(mine)
    assert {mine: 1}[again] == 1
    assert again != derived()
    assert again != SEMANTICS["torch"]
    assert again != "mine"
    assert again.true_division is ta.float64
    with ta.semantics(again):
        assert ta.get_semantics() == mine
        found = ta.promote_types("uint16", "int8")
        assert found is ta.int32, "a dtype of the table itself"
        assert (ta.ones(3, dtype="int8", device="cpu") / 2).dtype == ta.float64
    with ta.semantics(mine):
        assert ta.promote_types("uint16", "int8") is found


def test_what_asks_numpy_is_compared_by_value():
    mine, other = (ta.Semantics.derive("numpy", name="mine", true_division="float32") for _ in range(2))
    assert mine == other == pickle.loads(pickle.dumps(mine))
    assert mine != ta.Semantics.derive("numpy", name="mine")


def test_copies_are_the_same():
    for rules in (*SEMANTICS.values(), derived()):
        assert copy.copy(rules) is rules
        assert copy.deepcopy({"rules": [rules]})["rules"][0] is rules


def test_semantics_that_came_from_a_pickle_are_gone_with_their_plans():
    def work(rules: ta.Semantics) -> None:
        with ta.semantics(rules):
            x = ta.ones(5, dtype="int8", device="cpu")
            assert (x + x).tolist() == [2] * 5

    first = derived()
    work(first)
    held = len(caches.PLANS)
    gone: list[weakref.ref[ta.Semantics]] = []
    for make in (lambda: pickle.loads(pickle.dumps(first)), derived):
        for _ in range(20):
            rules = make()
            gone.append(weakref.ref(rules))
            work(rules)
            assert len(caches.PLANS) > held
            del rules
            gc.collect()
            assert len(caches.PLANS) == held
    gc.unfreeze()
    assert [one() for one in gone] == [None] * 40


def test_plans_of_other_semantics_are_never_found():
    """Where semantics are gone, others may come to lie at the same place; the generations end all the time."""
    tree = caches.PlanTree(3)
    for number in range(2000):
        root: dict[str, int] = {}
        assert tree.find_old(root, ("a",)) is None
        tree.keep(root, ("a",), number)
        tree.keep(root, ("b",), number)
        assert tree.find_old(root, ("a",)) in (None, number)
        if number % 3:
            tree.forget(root)
        assert 0 <= len(tree) <= 3
