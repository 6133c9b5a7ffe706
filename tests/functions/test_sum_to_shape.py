"""`sum_to_shape` beside sums of Python numbers, in any broadcast."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.oracles.axes import INTEGER_NAMES, groups, pairs, wrapped

import tilearray as ta
from tilearray.errors import OperandError, ShapeError


@given(pairs(INTEGER_NAMES), st.data())
def test_axes_that_a_broadcast_adds_or_repeats_are_summed(pair, data):
    given_shape = pair.theirs.shape
    added = data.draw(st.integers(0, len(given_shape)))
    shape = tuple([data.draw(st.sampled_from([1, size])) for size in given_shape[added:]])
    found = ta.sum_to_shape(pair.mine, shape)
    assert (found.shape, found.dtype) == (shape, pair.mine.dtype)
    axes = (*range(added), *[added + place for place, size in enumerate(shape) if size != given_shape[added + place]])
    _, lists = groups(pair.theirs, axes, False)
    assert ta.to_numpy(found).ravel().tolist() == [wrapped(sum(values), found.dtype.name) for values in lists]
    assert np.broadcast_to(np.zeros(shape), given_shape).shape == given_shape
    if not axes:
        assert found is pair.mine


def test_the_gradient_of_a_broadcast_sum():
    x, y = ta.ones((3, 1)), ta.ones((4,))
    gradient = ta.ones((x + y).shape)
    assert ta.sum_to_shape(gradient, x.shape).tolist() == [[4]] * 3
    assert ta.sum_to_shape(gradient, y.shape).tolist() == [3] * 4
    assert ta.sum_to_shape(gradient, ()).item() == 12
    assert ta.sum_to_shape(ta.ones((0, 3)), (1, 3)).tolist() == [[0, 0, 0]]
    assert ta.sum_to_shape(ta.ones(3), 1).tolist() == [3]


ERRORS = [
    (lambda: ta.sum_to_shape(ta.ones((2, 3)), (2,)), ShapeError, r"sum_to_shape: expected a shape that broadcasts to "),
    (lambda: ta.sum_to_shape(ta.ones(3), (1, 3)), ShapeError, r"got \(1, 3\); write sizes of x or 1"),
    (lambda: ta.sum_to_shape(ta.ones(3), (0,)), ShapeError, r"broadcasts to \(3,\), got \(0,\)"),
    (lambda: ta.sum_to_shape({1}, (1,)), OperandError, r"sum_to_shape: expected a tilearray Array, got set"),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS, ids=[message for *_, message in ERRORS])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
