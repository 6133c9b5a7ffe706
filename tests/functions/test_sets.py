"""Distinct elements and membership against Python's dictionaries; any views and dtypes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.oracles.axes import INTEGER_NAMES, NAMES, flat, pairs, python

import tilearray as ta
from tilearray.errors import DTypeError, OperandError


@given(pairs(NAMES))
def test_distinct_elements_are_those_of_a_dictionary(pair):
    elements = list(python(pair.theirs).ravel())
    places: dict[Any, list[int]] = {}
    for place, value in enumerate(elements):
        places.setdefault(value if value == value else ("nan", place), []).append(place)
    found = ta.unique_all(pair.mine)
    assert found._fields == ("values", "indices", "inverse_indices", "counts")
    assert (found.values.dtype, found.inverse_indices.shape) == (pair.mine.dtype, pair.mine.shape)
    assert {part.dtype for part in found[1:]} == {ta.int64}
    assert found.values.ndim == 1
    assert sorted(found.indices.tolist()) == sorted([one[0] for one in places.values()])
    named = {one[0]: one for one in places.values()}
    assert found.counts.tolist() == [len(named[place]) for place in found.indices.tolist()]
    values, inverse = flat(found.values), flat(found.inverse_indices)
    for value, place in zip(elements, inverse, strict=True):
        assert values[place] == value or (value != value and values[place] != values[place])
    for value, first in zip(values, found.indices.tolist(), strict=True):
        assert value == elements[first] or value != value
    counts, inverses = ta.unique_counts(pair.mine), ta.unique_inverse(pair.mine)
    assert (counts._fields, inverses._fields) == (("values", "counts"), ("values", "inverse_indices"))
    assert counts.counts.tolist() == found.counts.tolist()
    assert inverses.inverse_indices.tolist() == found.inverse_indices.tolist()
    for same in (counts.values, inverses.values, ta.unique_values(pair.mine)):
        assert same.dtype == pair.mine.dtype
        assert [value for value in flat(same) if value == value] == [value for value in values if value == value]


@given(pairs(NAMES), st.data(), st.booleans())
def test_membership_is_pythons(pair, data, invert):
    other = data.draw(pairs(st.just(pair.theirs.dtype.name)))
    members = set(python(other.theirs).ravel().tolist())
    want = [(value == value and value in members) != invert for value in python(pair.theirs).ravel()]
    found = ta.isin(pair.mine, other.mine, invert=invert)
    assert (found.shape, found.dtype) == (pair.mine.shape, ta.bool)
    assert flat(found) == want


@given(pairs(INTEGER_NAMES), pairs(INTEGER_NAMES))
def test_integers_of_any_dtypes_are_compared_exactly(one, other):
    members = set(python(other.theirs).ravel().tolist())
    assert flat(ta.isin(one.mine, other.mine)) == [value in members for value in python(one.theirs).ravel()]


def test_isin_takes_python_numbers():
    x = ta.asarray([[1, 2], [3, 200]], dtype="uint8")
    assert ta.isin(x, 2).tolist() == [[False, True], [False, False]]
    assert ta.isin(x, 300, invert=True).tolist() == [[True, True], [True, True]]
    for value, expected in ((3, True), (4, False), (-1, False), (2**70, False), (2.5, False), (200.0, True)):
        for invert in (False, True):
            found = ta.isin(value, x, invert=invert)
            assert (found.shape, found.dtype) == ((), ta.bool)
            assert found.item() is (expected != invert)
    large = 2**63 + 1
    x = ta.asarray([large], dtype="uint64")
    assert not ta.isin(x, ta.asarray([2**63 - 1, -1], dtype="int64")).item()
    assert ta.isin(ta.asarray([1, 2]), ta.asarray([2.0, 2.5])).tolist() == [False, True]
    assert ta.isin(ta.asarray(float("nan")), float("nan")).item() is False


ERRORS = [
    (lambda: ta.unique_values({1}), OperandError, r"unique_values: expected a tilearray Array, got set"),
    (lambda: ta.unique_all(ta.zeros(2).astype("float8_e3m4")), DTypeError, r"unique_all: float8_e3m4 is a storage"),
    (
        lambda: ta.isin(ta.ones(2), {1}),
        OperandError,
        r"isin: expected a tilearray Array, got set; write ta.asarray\(x2",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS, ids=[message for *_, message in ERRORS])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert type(caught.value) is error
