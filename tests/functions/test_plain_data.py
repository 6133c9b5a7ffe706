"""A number and a flat list of numbers of one kind, which take a shorter way, become what nested lists become."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tilearray as ta
from tilearray.functions.python_data import plain_data

LARGEST = float(np.finfo(np.float32).max)
EDGES = [
    LARGEST,
    -LARGEST,
    math.nextafter(LARGEST, math.inf),
    1e38,
    2e38,
    1e-46,
    5e-324,
    -0.0,
    1.7e308,
    math.inf,
    math.nan,
]
FLOATS = st.floats() | st.sampled_from(EDGES)
INTS = (
    st.integers(-(2**64), 2**65)
    | st.sampled_from([2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, -(2**63)])
    | st.integers(-9, 9)
)
LISTS = st.lists(FLOATS, max_size=5) | st.lists(INTS, max_size=5)
SEMANTICS = ["array-api", "triton", "torch", "numpy", "array-api,float=float64", "array-api,float=bfloat16,int=int32"]


def made(data: object) -> tuple[object, ...]:
    """The dtype, shape and bytes of an Array of data, or the class of the error."""
    try:
        x = ta.to_numpy(ta.asarray(data))
    except ta.TileArrayError as error:
        return (type(error),)
    return x.dtype, x.shape, x.tobytes()


@example([math.nextafter(LARGEST, math.inf)], "array-api", list)
@example([2**63], "array-api", list)
@given(LISTS, st.sampled_from(SEMANTICS), st.sampled_from([list, tuple]))
def test_a_flat_list_becomes_a_row_of_a_nested_list(numbers, name, sequence):
    base, _, defaults = name.partition(",")
    moved = dict(pair.split("=") for pair in defaults.split(",") if pair)
    with ta.semantics(base, **moved), warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        flat, nested = made(sequence(numbers)), made([numbers])
        assert flat == nested if len(nested) == 1 else flat == (nested[0], (len(numbers),), nested[2])
        for number in numbers:
            single, row = made(number), made([[number]])
            assert single == row if len(row) == 1 else single == (row[0], (), row[2])


@pytest.mark.parametrize(
    "data", [[], [1, 2.5], [True], True, 1j, [np.float32(1)], [[1.0]], [1e300], 1e300, math.nan, 2**63, "x", range(3)]
)
def test_all_else_takes_the_general_way(data):
    assert plain_data(data, "asarray") is None


def test_the_array_owns_its_memory():
    for data in ([1.0, 2.0], (3, 4), 5.0):
        x, y = ta.asarray(data), ta.asarray(data)
        x[...] = 7
        assert np.array_equal(ta.to_numpy(y), np.asarray(data))
    with pytest.raises(ta.LayoutError, match="copy=False, but Python numbers have no memory to share"):
        ta.asarray([1.0], copy=False)
