"""geometry_of: what it asks first finds what the general way finds, which is tested against NumPy in test_layout."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from support.layouts import layout_of, operands

from tilearray.errors import BroadcastError
from tilearray.geometry import loop
from tilearray.geometry.layout import Layout, result_layout
from tilearray.geometry.loop import make_loop
from tilearray.geometry.result import geometry_of


@given(operands())
@example([np.empty((70, 99), np.int8), np.empty(99, np.int8)])
@example([np.empty((70, 99), np.int8), np.empty((99, 70), np.int8).T])
@example([np.empty((70, 99), np.int8).T, np.empty((70, 99), np.int8).T])
@example([np.empty((1, 99), np.int8)[:, ::-1], np.empty((70, 1), np.int8)])
def test_the_fast_path_agrees_with_the_general_path(arrays):
    layouts = [layout_of(x) for x in arrays]
    shape = np.broadcast_shapes(*[x.shape for x in arrays])
    expanded = [layout.broadcast_to(shape) for layout in layouts]
    written, found = geometry_of("add", layouts, None)
    assert written == result_layout(shape, [layout.strides for layout in expanded])
    again = Layout(written.shape, written.strides)
    for name in Layout.__slots__[1:]:
        assert getattr(written, name) == getattr(again, name), name
    assert found == make_loop(shape, [written.strides, *[layout.strides for layout in expanded]])
    into, found = geometry_of("add", layouts, expanded[0])
    assert into is expanded[0]
    assert found == make_loop(shape, [into.strides, *[layout.strides for layout in expanded]])


@given(operands())
def test_canonical_strides_are_those_of_a_new_array(arrays):
    for layout in map(layout_of, arrays):
        assert layout.canonical == (layout == Layout.of(layout.shape))


def test_64_bits_are_asked_for_where_a_distance_needs_them():
    near, far = Layout((2, 3), (2**31 - 5, 1)), Layout((2, 3), (2**31, 1))
    assert [geometry_of("add", [x, x], None)[1].index_bits for x in (near, far)] == [32, 64]
    assert geometry_of("add", [Layout((2, 3), (0, 1)), far], None)[1].index_bits == 64
    assert geometry_of("negative", [Layout.of(loop.INT32_END)], None)[1].index_bits == 64
    assert geometry_of("negative", [Layout((loop.INT32_END,), (0,))], None)[1].index_bits == 64
    windows = Layout((2**16, 2**15), (1, 1))  # near each other, and as many as need 64 bits
    assert geometry_of("negative", [windows], None)[1].index_bits == 64
    assert [geometry_of("negative", [Layout.of((2, 3))], x)[1].index_bits for x in (near, far)] == [32, 64]


def test_shapes_that_do_not_fit():
    with pytest.raises(BroadcastError, match=r"add: expected equal sizes, or 1, along axis -1 .*, got 3 and 4"):
        geometry_of("add", [Layout.of((2, 3)), Layout.of(4)], None)
    with pytest.raises(BroadcastError, match=r"add: the operands broadcast to shape \(2, 3\), .* write a target of"):
        geometry_of("add", [Layout.of((2, 3))], Layout.of((1, 3)))
    with pytest.raises(BroadcastError, match="add: expected equal sizes"):
        geometry_of("add", [Layout.of((2, 3))], Layout.of((2, 4)))
