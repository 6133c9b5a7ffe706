"""Walks: views of an array that has no memory, compared with NumPy's views of one that has."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.layouts import STEPS

from tilearray.geometry.layout import Layout
from tilearray.geometry.walk import Walk, elements_outside, walk_of_view, whole


def index_array(shape):
    """For each place of an array its index, as an array of one more axis."""
    return np.stack(np.indices(shape), -1) if shape else np.zeros((0,), int)


def visited(walk, loop):
    """The indices that a walk visits."""
    found = np.zeros((*loop, len(walk.start)), int) + np.array(walk.start, int)
    for position in np.ndindex(loop):
        for part, step in zip(position, walk.steps, strict=True):
            found[position] += part * np.array(step, int)
    return found


def layout_of(x):
    return Layout(x.shape, tuple([stride // x.itemsize for stride in x.strides]))


@st.composite
def arrays_and_views(draw):
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    order = draw(st.permutations(range(len(shape))))
    dense = np.arange(int(np.prod(shape))).reshape([shape[axis] for axis in order]).transpose(np.argsort(order))
    base = dense[(*[draw(STEPS) for _ in shape], ...)]
    view = base[(*[draw(STEPS) for _ in shape], ...)].transpose(draw(st.permutations(range(len(shape)))))
    if draw(st.booleans()):
        view = view[None]
    return base, view


def distance(base, view):
    return (view.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // base.itemsize


@given(arrays_and_views())
def test_a_walk_visits_the_indices_of_the_view(pair):
    base, view = pair
    walk = walk_of_view(layout_of(base), layout_of(view), distance(base, view))
    assert walk is not None
    if view.size:
        indices = visited(walk, view.shape)
        assert (np.array([base[tuple(index)] for index in indices.reshape(view.size, base.ndim)]) == view.ravel()).all()


@given(arrays_and_views(), st.data())
def test_walks_compose_and_give_strides(pair, data):
    base, view = pair
    inner = walk_of_view(layout_of(base), layout_of(view), distance(base, view))
    assert inner is not None
    again = view[(*[data.draw(STEPS) for _ in view.shape], ...)]
    outer = walk_of_view(layout_of(view), layout_of(again), distance(view, again))
    if outer is None or not again.size:  # the view repeats elements
        return
    shift, strides = outer.then(inner).strided(layout_of(base).strides)
    assert (shift, len(strides)) == (distance(base, again), again.ndim)
    moving = [axis for axis, size in enumerate(again.shape) if size > 1]
    assert [strides[axis] for axis in moving] == [layout_of(again).strides[axis] for axis in moving]


@given(arrays_and_views(), st.data())
def test_a_walk_over_an_operand_is_that_of_the_broadcast_operand(pair, data):
    base, view = pair
    walk = walk_of_view(layout_of(base), layout_of(view), distance(base, view))
    assert walk is not None
    own = tuple([data.draw(st.sampled_from([size, 1])) for size in base.shape])
    own = own[data.draw(st.integers(0, len(own))) :]
    operand = np.arange(int(np.prod(own))).reshape(own)
    shift, strides = walk.broadcast(base.shape, own).strided(layout_of(operand).strides)
    if view.size and operand.size:
        repeated = np.broadcast_to(operand, base.shape)
        indices = visited(walk, view.shape).reshape(view.size, base.ndim)
        expected = [repeated[tuple(index)] for index in indices]
        places = np.zeros(view.shape, int) + shift
        for axis, stride in enumerate(strides):
            places += (np.arange(view.shape[axis]) * stride).reshape([-1 if a == axis else 1 for a in range(view.ndim)])
        assert operand.ravel()[places.ravel()].tolist() == expected


def test_a_view_that_is_no_walk():
    dense = Layout.of((3, 4))
    assert walk_of_view(dense, Layout.of(12), 0) is None  # a reshape
    assert walk_of_view(dense, Layout((2, 4), (4, 1)), 2) is None  # over the end of the rows
    assert walk_of_view(Layout((3, 4), (0, 1)), Layout((3,), (1,)), 0) is None  # repeated rows
    assert walk_of_view(dense, Layout((3,), (5,)), 0) == Walk((0, 0), ((1, 1),))  # the diagonal
    assert walk_of_view(dense, Layout((0, 2), (1, 1)), 0) == Walk((0, 0), ((0, 0), (0, 0)))
    assert whole((3, 4)) is whole((3, 4))


def test_elements_outside_of_a_view_are_all_others():
    rng, found = np.random.default_rng(3), 0
    for shape in [(4, 6), (2, 3, 5), (9,), (1, 7)] * 100:
        base = np.arange(math.prod(shape)).reshape(shape)
        ends = [(*sorted(rng.integers(0, n + 1, 2)), rng.integers(1, 4)) for n in shape]
        view = base[tuple([slice(*each) for each in ends])]
        view = view[::-1] if rng.random() < 0.3 else view.T if rng.random() < 0.3 else view
        if view.size:
            layouts = [Layout(each.shape, tuple([step // 8 for step in each.strides])) for each in (base, view)]
            keys = elements_outside(*layouts, 0, int(view.reshape(-1)[0]))
            rest = np.concatenate([base[key].ravel() for key in keys]).tolist() if keys else []
            assert sorted([*rest, *view.ravel().tolist()]) == base.ravel().tolist()
            found += bool(keys)
    assert found > 200
    assert elements_outside(Layout.of((4, 6)), Layout((12,), (2,)), 0, 0) is None


def test_elements_outside_of_a_slice_of_the_same_array():
    """Slices of any steps; the part and the view may be turned, and all are found."""
    rng, partial = np.random.default_rng(4), 0
    for shape in [(4, 6), (3, 5, 4), (17,), (8, 7)] * 300:
        array = np.arange(math.prod(shape)).reshape(shape)
        pair = [
            array[tuple([slice(*sorted(rng.integers(0, n + 1, 2)), rng.integers(1, 4)) for n in shape])] for _ in "xy"
        ]
        base, view = [each[::-1] if rng.random() < 0.3 else each.T if rng.random() < 0.3 else each for each in pair]
        common = set(base.ravel().tolist()) & set(view.ravel().tolist())
        if not common:
            continue
        layouts = [Layout(each.shape, tuple([step // 8 for step in each.strides])) for each in (base, view)]
        keys = elements_outside(*layouts, int(base.flat[0]), int(view.flat[0]))
        rest = [number for key in keys for number in base[key].ravel().tolist()]
        assert sorted([*rest, *common]) == sorted(base.ravel().tolist())
        partial += bool(rest) and len(common) < view.size
    assert partial > 150


def test_elements_outside_of_a_view_that_takes_none_are_not_found():
    assert elements_outside(Layout((4,), (6,)), Layout((4, 2), (6, 1)), 0, 4) is None  # a column beside two others
    assert elements_outside(Layout.of(()), Layout.of((3,)), 0, 5) is None
    assert elements_outside(Layout((1, 3), (12, 1)), Layout.of((4,)), 6, 32) is None


def test_elements_outside_of_a_view_of_repeated_elements_are_not_found():
    assert elements_outside(Layout((2, 4), (0, 1)), Layout.of((2, 1)), 0, 0) is None
