"""Layout against NumPy: real ndarray views over a buffer whose every element holds its own position.

If the value at each index of a NumPy view is the position that a layout computes for it, then shape, strides and
offset are right wherever they mean anything. They mean nothing along axes of size 1 and in arrays of size 0, where
NumPy's own strides depend on how the array came about: there only the shape is compared.
"""

from __future__ import annotations

import copy
import math
import pickle
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from tilearray.errors import LayoutError
from tilearray.geometry.layout import Layout, result_layout
from tilearray.geometry.strides import are_apart

BUFFER = np.arange(8**5)  # `sliced` steps by up to 2 along up to 5 axes of up to 4.
ORIGIN = BUFFER.size // 2
BUFFER.flags.writeable = False

sizes = st.sampled_from([0, 1, 1, 2, 2, 2, 3, 3, 3, 4])
shapes = st.lists(sizes, max_size=5).map(tuple)


def numpy_view(shape, strides, origin=ORIGIN):
    return as_strided(BUFFER[origin:], shape, [8 * s for s in strides], writeable=False)


def layout_of(x):
    return Layout(x.shape, tuple(s // x.itemsize for s in x.strides))


def origin_of(x):
    return (x.__array_interface__["data"][0] - BUFFER.__array_interface__["data"][0]) // 8


def positions(layout, origin):
    total = np.full(layout.shape, origin)
    for axis, (n, stride) in enumerate(zip(layout.shape, layout.strides, strict=True)):
        total += (np.arange(n) * stride).reshape([-1 if other == axis else 1 for other in range(layout.ndim)])
    return total


def assert_same(layout, offset, x, expected):
    """`layout`, `offset` elements from the origin of `x`, is the NumPy view `expected`."""
    assert layout.shape == expected.shape
    assert len(layout.strides) == expected.ndim
    np.testing.assert_array_equal(positions(layout, origin_of(x) + offset), expected)
    assert offset == 0 or expected.size, "an empty view does not move the origin"


@st.composite
def arbitrary(draw, shapes=shapes):
    """A view with any strides: overlapping, zero, gapped, negative."""
    shape = draw(shapes)
    return numpy_view(shape, draw(st.lists(st.integers(-40, 40), min_size=len(shape), max_size=len(shape))))


@st.composite
def sliced(draw, shapes=shapes):
    """A dense array, permuted, sliced, flipped and broadcast: the views that programs make."""
    shape = draw(shapes)
    steps = draw(st.lists(st.sampled_from([1, 1, 1, -1, 2, 0]), min_size=len(shape), max_size=len(shape)))
    full = [n * abs(step) if step else min(n, 1) for n, step in zip(shape, steps, strict=True)]
    order = draw(st.permutations(range(len(shape))))
    x = BUFFER[: math.prod(full)].reshape([full[axis] for axis in order]).transpose(np.argsort(order).astype(int))
    x = x[(..., *[slice(None, None, step or 1) for step in steps])]
    return x if x.shape == shape else np.broadcast_to(x, shape)


views = sliced() | arbitrary()


@st.composite
def keys(draw, shape):
    """Any valid basic key, slices far out of range included."""

    def entry(n):
        bound = st.none() | st.integers(-3 * n - 2, 3 * n + 2)
        span = st.builds(slice, bound, bound, st.none() | st.integers(-3, 3).filter(bool))
        place = st.integers(-n, n - 1) if n else st.nothing()
        return draw(span | place | place.map(np.int8))

    front = draw(st.integers(0, len(shape)))
    entries = [entry(n) for n in shape[:front]]
    if draw(st.booleans()):
        back = draw(st.integers(front, len(shape)))
        entries += [..., *[entry(n) for n in shape[back:]]]
    for _ in range(draw(st.integers(0, 2))):
        entries.insert(draw(st.integers(0, len(entries))), None)
    return entries[0] if len(entries) == 1 and draw(st.booleans()) else tuple(entries)


@given(views)
def test_attributes(x):
    layout = layout_of(x)
    assert (layout.shape, layout.ndim, layout.size) == (x.shape, x.ndim, x.size)
    assert layout.contiguous == x.flags.c_contiguous
    reached = positions(layout, 0)
    assert (layout.low, layout.high) == ((reached.min(), reached.max()) if x.size else (0, 0))
    assert layout.overlaps_itself == (len(np.unique(reached)) < x.size)


@given(shapes)
def test_of_is_numpys_new_array(shape):
    layout = Layout.of(shape)
    if layout.size:  # The strides of a new array without elements are NumPy's own affair: 0 since NumPy 2.
        assert layout.strides == layout_of(np.empty(shape)).strides
    assert layout.contiguous
    assert not layout.overlaps_itself


@given(st.data(), views)
def test_index(data, x):
    key = data.draw(keys(x.shape))
    layout, offset = layout_of(x).index(key)
    assert_same(layout, offset, x, x[key])


@given(st.data(), views)
def test_permute_and_moveaxis(data, x):
    order = data.draw(st.permutations(range(-x.ndim, 0)))
    assert_same(layout_of(x).permute(order), 0, x, x.transpose(order))
    count = data.draw(st.integers(0, x.ndim))
    source, destination = order[:count], data.draw(st.permutations(range(x.ndim)))[:count]
    assert_same(layout_of(x).moveaxis(source, destination), 0, x, np.moveaxis(x, source, destination))


@given(st.data(), sliced(st.lists(sizes, max_size=3).map(tuple)))
def test_expand_dims_and_squeeze(data, x):
    ndim = x.ndim + data.draw(st.integers(0, 2))
    axes = tuple(data.draw(st.permutations(range(-ndim, 0)))[: ndim - x.ndim])
    expanded = layout_of(x).expand_dims(axes)
    assert_same(expanded, 0, x, np.expand_dims(x, axes))
    assert_same(expanded.squeeze(axes), 0, x, x)
    assert_same(expanded.squeeze(), 0, x, x.squeeze())


@given(st.data(), views)
def test_broadcast_to(data, x):
    grown = [data.draw(st.integers(0, 3)) if n == 1 else n for n in x.shape]
    shape = (*data.draw(st.lists(st.integers(0, 3), max_size=2)), *grown)
    assert_same(layout_of(x).broadcast_to(shape), 0, x, np.broadcast_to(x, shape))


@st.composite
def factorizations(draw, size):
    if size == 0:
        return tuple(draw(st.permutations([0, *draw(st.lists(st.integers(0, 4), max_size=3))])))
    shape = [1] * draw(st.integers(1, 5))
    for prime in (2, 3):
        while size % prime == 0:
            size //= prime
            shape[draw(st.integers(0, len(shape) - 1))] *= prime
    assert size == 1
    return tuple(shape) if math.prod(shape) > 1 else tuple(shape[: draw(st.integers(0, 5))])


@given(st.data(), views)
def test_reshape_is_a_view_exactly_where_numpy_makes_one(data, x):
    shape = data.draw(factorizations(x.size))
    expected = x.reshape(shape)
    layout = layout_of(x).reshape(shape)
    if expected.size and not np.shares_memory(x, expected):
        assert layout is None
    else:
        assert_same(layout, 0, x, expected)


@given(st.data(), views)
def test_flip(data, x):
    axes = data.draw(st.none() | st.permutations(range(-x.ndim, 0)).map(lambda order: tuple(order[:2])))
    layout, offset = layout_of(x).flip(axes)
    assert_same(layout, offset, x, np.flip(x, axes))


@given(st.data(), views.filter(lambda x: x.ndim >= 2), st.integers(-5, 5))
def test_diagonal(data, x, k):
    axis1, axis2 = data.draw(st.permutations(range(-x.ndim, 0)))[:2]
    layout, offset = layout_of(x).diagonal(k, axis1, axis2)
    assert_same(layout, offset, x, x.diagonal(k, axis1, axis2))


@given(st.data(), views)
def test_sliding_window(data, x):
    axes = tuple(data.draw(st.permutations(range(x.ndim)))[: data.draw(st.integers(0, x.ndim))])
    window = tuple(data.draw(st.integers(0, x.shape[axis])) for axis in axes)
    assert_same(layout_of(x).sliding_window(window, axes), 0, x, sliding_window_view(x, window, axes))
    if axes == tuple(range(x.ndim)):
        assert layout_of(x).sliding_window(window) == layout_of(x).sliding_window(window, axes)


@given(shapes, st.data(), st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_as_strided_accepts_exactly_the_layouts_inside_the_memory(shape, data, low, length, offset):
    strides = data.draw(st.lists(st.integers(-4, 4), min_size=len(shape), max_size=len(shape)))
    high = low + length - 1
    reached = positions(Layout(shape, tuple(strides)), offset)
    first, last = (reached.min(), reached.max()) if reached.size else (offset, offset - 1)
    inside = low <= first and last <= high
    if inside:
        assert Layout.as_strided(shape, strides, offset, low, high) == Layout(shape, tuple(strides))
    else:
        with pytest.raises(LayoutError, match=f"^as_strided: expected elements {low} to {high}, got"):
            Layout.as_strided(shape, strides, offset, low, high)


def test_overlap_beyond_enumeration():
    big = 1 << 20
    assert not Layout.of((big, big)).overlaps_itself
    assert not Layout((big, 2), (-1, big)).overlaps_itself
    assert Layout((big, 2), (1, big - 1)).overlaps_itself
    assert Layout((2, big), (0, 1)).overlaps_itself
    assert Layout((32, 2048), (2049, 66)).overlaps_itself is (
        len({2049 * i + 66 * j for i in range(32) for j in range(2048)}) < 65536
    )
    assert Layout((2, 40000), (3, 2)).overlaps_itself  # It does not: the documented conservative answer.
    assert not Layout((2, 0, big), (0, 0, 0)).overlaps_itself


def test_a_layout_is_a_value():
    a, b = Layout((2, 3), (3, 1)), Layout.of((2, 3))
    assert a == b
    assert hash(a) == hash(b)
    assert a != Layout((2, 3), (1, 2))
    assert a != (2, 3)
    assert pickle.loads(pickle.dumps(a)) == copy.deepcopy(a) == a
    assert repr(a) == "Layout(shape=(2, 3), strides=(3, 1))"


@given(st.data(), st.lists(st.integers(1, 3), max_size=5).map(tuple), st.integers(1, 3))
def test_result_layout_is_numpys_up_to_sign(data, shape, count):
    """Strides of what a ufunc of 1, 2 or 3 operands returns; along axes of size 1 they mean nothing."""
    ufunc = (np.negative, np.add, np.clip)[count - 1]
    operands = []
    for _ in range(count):
        own = st.just(tuple(data.draw(st.sampled_from([n, n, n, 1])) for n in shape))
        x = data.draw(sliced(own) | arbitrary(own))
        operands.append(x if x.shape == shape else np.broadcast_to(x, shape))
    layout = result_layout(shape, [layout_of(x).strides for x in operands])
    result = ufunc(*operands)
    meaningful = [axis for axis, n in enumerate(shape) if n > 1]
    assert [layout.strides[axis] for axis in meaningful] == [abs(result.strides[axis]) // 8 for axis in meaningful]
    assert layout.shape == shape
    assert layout.high == layout.size - 1
    assert layout.low == 0


def test_result_layout_ignores_strides_of_size_1():
    a, b = numpy_view((2, 1, 3), (1, 1, 2)), numpy_view((2, 1, 3), (1, 9, 2))
    assert (a + b).strides[::2] == (8, 16)
    assert result_layout((2, 1, 3), [layout_of(a).strides, layout_of(b).strides]).strides[::2] == (1, 2)


@given(shapes.filter(lambda shape: 0 in shape), st.data())
def test_result_layout_of_nothing(shape, data):
    operands = [layout_of(data.draw(arbitrary(st.just(shape)))) for _ in range(2)]
    assert result_layout(shape, [layout.strides for layout in operands]).shape == shape


def test_views_of_many_strides_are_soon_not_apart():
    """Without a bound, each stride that divides no other one may double the arrays that are tried."""
    steps = tuple([n for n in range(2, 120) if all(n % k for k in range(2, n))])
    began = time.process_time()
    assert not are_apart(((2,) * 14, (2,) * 14), (steps[:14], steps[14:28]), (0, 1))
    assert time.process_time() - began < 1


def test_views_that_are_apart_have_no_element_in_common():
    rng = np.random.default_rng(5)
    apart = 0
    for base in (np.arange(60).reshape(shape) for shape in [(10, 6), (5, 2, 6), (60,), (4, 15)] * 200):
        keys = [
            tuple([slice(*sorted(rng.integers(0, n + 1, 2)), rng.integers(1, 3)) for n in base.shape]) for _ in "xy"
        ]
        x, y = (base[key].T if rng.random() < 0.3 else base[key] for key in keys)
        if x.size and y.size:
            strides = tuple([tuple([step // base.itemsize for step in each.strides]) for each in (x, y)])
            found = are_apart((x.shape, y.shape), strides, (int(x.min()), int(y.min())))
            assert not found or not set(x.ravel().tolist()) & set(y.ravel().tolist())
            apart += found
    assert apart > 100
    assert not are_apart(((), (4, 3)), ((), (2, 2)), (6, 0))  # two axes of one stride
    assert are_apart(((9,), (3,)), ((0,), (1,)), (3, 0))  # one element, nine times
