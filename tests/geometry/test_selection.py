"""The loop of a selection: axes in order, and segments that cover all elements once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilearray.geometry.loop import LayoutCase
from tilearray.geometry.selection import LANES, SEGMENTS, make_selection


@given(st.integers(1, 2**44))
def test_segments_cover_all_elements(size):
    loop = make_selection((size,), [(0,)], [(1,)])
    each = loop.segments.chunks * LANES
    assert (loop.segments.total - 1) * each < size <= loop.segments.total * each
    assert loop.segments.total <= SEGMENTS
    assert loop.case is LayoutCase.SELECTION
    assert loop.index_bits == (64 if size >= 2**31 else 32)


@pytest.mark.parametrize(
    ("shape", "strides", "extents", "walked"),
    [
        ((2, 3, 4), [(12, 4, 1)], (24,), [(1,)]),
        ((2, 3, 4), [(12, 4, 1), (12, 4, 2)], (6, 4), [(4, 1), (4, 2)]),
        ((4, 3), [(1, 4)], (4, 3), [(1, 4)]),
        ((4, 3), [(-3, -1)], (12,), [(-1,)]),
        ((4, 3), [(3, 1), (0, 0)], (12,), [(1,), (0,)]),
        ((4, 3), [(0, 1)], (4, 3), [(0, 1)]),
        ((1, 5, 1), [(7, 2, 9)], (5,), [(2,)]),
        ((1, 1), [(3, 4)], (1,), [(0,)]),
    ],
)
def test_axes_keep_their_order(shape, strides, extents, walked):
    """They are neither sorted nor reversed: the result is in C order."""
    loop = make_selection(shape, [(0,) * len(shape)], strides)
    assert (loop.shape, loop.strides[1:]) == (extents, tuple(walked))
    assert set(loop.strides[0]) == {0}
    assert not any(loop.shifts)
    whole = make_selection(shape, [(0,) * len(shape)], strides, merges=False)
    assert (whole.shape, whole.strides[1:]) == (shape, tuple(strides))
    assert whole.segments == loop.segments
