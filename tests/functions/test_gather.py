"""Integer-array and mask indexing on the host, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from support.oracles.indexing import (
    PROPERTIES,
    check_errors,
    check_property,
    check_puts,
    check_repeated_and_overlapping,
    check_wide_rows,
)

import tilearray as ta
from tilearray.functions.indexing.gather import distance_in
from tilearray.functions.indexing.keys import select


@pytest.mark.parametrize("name", PROPERTIES)
def test_indexing_is_numpys(name):
    check_property(name, "cpu", settings(max_examples=300, deadline=None))


def test_overlap():
    check_repeated_and_overlapping("cpu")


def test_wide_rows():
    check_wide_rows("cpu")


def test_puts():
    check_puts("cpu")


def test_errors():
    check_errors("cpu")


@pytest.mark.parametrize(
    "key",
    [
        *([0, 2], [True, False, True, False], (slice(None), [1, 1]), ([0, 1], [1, 2]), np.array([3]), np.array(True)),
        *(
            [],
            [[]],
            range(1, 3),
            (range(3), (2, 0, 2)),
            (slice(None), (0, 2)),
            ((), range(0)),
            ((True, False, True, True),),
        ),
    ],
    ids=str,
)
def test_sequences_and_ndarrays_are_keys(key):
    host = np.arange(12).reshape(4, 3)
    x = ta.asarray(host, copy=True)
    assert x[key].tolist() == host[key].tolist()
    x[key] = -1
    host[key] = -1
    assert x.tolist() == host.tolist()


def test_masks_select_and_assign():
    host = np.arange(12).reshape(4, 3)
    x = ta.asarray(host.copy())
    assert x[x % 2 == 0].tolist() == host[host % 2 == 0].tolist()
    rows = np.array([True, False, True, False])
    assert x[ta.asarray(rows), 1:].tolist() == host[rows, 1:].tolist()
    x[x % 2 == 0] = ta.asarray([-1, -2, -3, -4, -5, -6])
    host[host % 2 == 0] = [-1, -2, -3, -4, -5, -6]
    assert x.tolist() == host.tolist()


def test_a_selection_is_a_copy():
    x = ta.arange(4)
    x[[0, 1]][0] = 9
    assert x.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: ta.take(x, [0], mode="up"), ta.IndexingError, r"take: expected mode as 'raise', 'wrap' or 'clip'"),
        (
            lambda x: ta.take(x[:0], [0], 0, mode="wrap"),
            ta.IndexingError,
            r"take: expected an axis with elements",
        ),
        (lambda x: ta.take(x, [True], axis=0), ta.IndexingError, r"take: expected integers as indices, got bool"),
        (lambda x: ta.take(x, [0], axis=2), ta.ShapeError, "take: .*2"),
        (lambda x: ta.take({1}, [0]), ta.OperandError, r"take: expected a tilearray Array, got set"),
        (lambda x: ta.take_along_axis(x, [0]), ta.ShapeError, r"take_along_axis: expected indices of 2 axes"),
        (lambda x: ta.set_index_check("never"), ta.DeviceError, "expected a mode, got 'never'"),
        (lambda x: x[np.array(["a"])], ta.TileArrayError, "str|<U1"),
    ],
)
def test_bad_calls_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call(ta.arange(6).reshape(2, 3))


def test_take_along_no_axis_takes_all_elements():
    x = np.arange(6).reshape(2, 3)[:, ::-1]
    order = np.argsort(x, None)
    found = ta.take_along_axis(ta.asarray(x), ta.asarray(order), None)
    assert found.tolist() == np.take_along_axis(x, order, None).tolist()
    with pytest.raises(ta.ShapeError, match=r"take_along_axis: expected indices of 1 axes for shape \(6,\)"):
        ta.take_along_axis(ta.asarray(x), [[0]], None)


def test_take_of_one():
    x = ta.arange(6).reshape(2, 3)
    assert ta.take(x, ta.asarray(1), axis=1).tolist() == [1, 4]
    assert ta.take(ta.arange(4), [3, -1]).tolist() == [3, 3]


@pytest.mark.parametrize(("size", "name"), [(2**31, "int32"), (2**31 + 1, "int64"), (1, "int32")])
def test_distances_have_as_many_bits_as_the_farthest_element_needs(size, name):
    index = ta.asarray([0])
    memory = ta.empty(size, dtype="uint8", device="cpu")  # none of it is touched
    assert distance_in(select(memory, index)).name == name
    assert distance_in(select(memory[::-1], index)).name == name
    if size > 1:
        rows = memory[: size // 2 * 2].reshape(2, size // 2)
        assert distance_in(select(rows, (index, index))).name == "int32"
