"""make_loop: the collapsed loop touches the same elements as the plain one, is minimal, and has the right name."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tilearray.geometry.layout import Layout, result_layout
from tilearray.geometry.loop import LayoutCase, make_loop

CASES = {case.value: case for case in LayoutCase}


def touched(shape, operand_strides, origins):
    """Every tuple of element offsets (out, inputs...) that a loop visits, with its count."""
    return Counter(
        tuple(o + sum(i * s for i, s in zip(index, strides, strict=True))
              for o, strides in zip(origins, operand_strides, strict=True))
        for index in itertools.product(*map(range, shape))
    )  # fmt: skip


@st.composite
def problems(draw):
    """A shape with strides for 1 to 4 operands: dense in some order, broadcast, flipped, gapped or arbitrary."""
    shape = draw(st.lists(st.sampled_from([1, 2, 2, 3, 4]), max_size=4).map(tuple))
    if draw(st.integers(0, 19)) == 0:
        shape = (*shape, 0)

    def operand():
        if draw(st.integers(0, 3)) == 0:
            return tuple(draw(st.lists(st.integers(-9, 9), min_size=len(shape), max_size=len(shape))))
        strides, step = [0] * len(shape), draw(st.sampled_from([1, 1, 2]))
        orders = st.permutations(range(len(shape))) if draw(st.booleans()) else st.just(range(len(shape)))
        for axis in reversed(draw(orders)):
            factor = draw(st.sampled_from([1, 1, 1, 1, -1, 0]))
            strides[axis] = step * factor
            step *= shape[axis] if factor else 1
        return tuple(strides)

    return shape, [operand() for _ in range(draw(st.integers(1, 4)))]


@given(problems())
def test_loop_touches_the_same_offset_tuples(problem):
    shape, strides = problem
    loop = make_loop(shape, strides)
    assert touched(loop.shape, loop.strides, loop.shifts) == touched(shape, strides, [0] * len(strides))


@given(problems())
@example(((2, 2, 2, 2), [(0, -4, 2, -2), (0, 2, 4, 1), (2, 8, 1, 4)]))
def test_loop_is_minimal_and_ordered(problem):
    loop = make_loop(*problem)
    assert loop.shape
    if len(loop.shape) > 1:
        assert min(loop.shape) > 1
    for outer, inner in itertools.pairwise(range(len(loop.shape))):
        assert any(s[outer] != s[inner] * loop.shape[inner] for s in loop.strides), "mergeable neighbours"
    out = loop.strides[0]
    assert min(out) >= 0
    outer = out[:-2] if loop.case in (LayoutCase.TILE, LayoutCase.MIXED) else out[:-1]
    assert list(outer) == sorted(outer, reverse=True)
    assert out[-1] == min(out)


@given(problems())
def test_a_tile_spans_the_fastest_axes_of_the_operands(problem):
    """The last axis is the output's fastest; the one before it is the fastest of an operand that disagrees."""
    loop = make_loop(*problem)
    if loop.case is LayoutCase.TILE:
        last = len(loop.shape) - 1
        for strides in loop.strides:
            moving = [(abs(stride), last - axis) for axis, stride in enumerate(strides) if stride]
            if moving and strides[-1] != 0:
                assert last - min(moving)[1] in (last, last - 1)


@given(problems())
def test_still_outputs_walk_inputs_forwards(problem):
    """Where the output does not move, no axis is walked that every input walks backwards."""
    loop = make_loop(*problem)
    for steps in zip(*loop.strides, strict=True):
        assert any(s > 0 for s in steps) or not any(steps)


@given(problems())
@example(((2, 2, 2), [(1, 2, 0), (0, 0, 0), (0, 1, 2), (1, 1, 2)]))
def test_index_bits_and_case_from_their_definitions(problem):
    shape, strides = problem
    scale = 2**28  # All strides scaled up, so that the border is crossed often.
    for operand_strides in (strides, [tuple(s * scale for s in t) for t in strides]):
        loop = make_loop(shape, operand_strides)
        corners = list(itertools.product(*((0, n - 1) for n in loop.shape))) if math.prod(loop.shape) else []
        offsets = [abs(sum(i * s for i, s in zip(c, t, strict=True))) for c in corners for t in loop.strides]
        assert loop.index_bits == (64 if max(offsets, default=0) >= 2**31 else 32)
        assert loop.case is defined_case(loop.shape, loop.strides)


def defined_case(shape, operand_strides):
    """The case as `LayoutCase` words it, tried one by one."""
    if 0 in shape:
        return LayoutCase.EMPTY
    if len(shape) == 1:
        return LayoutCase.FLAT if {s for (s,) in operand_strides} <= {0, 1} else LayoutCase.STRIDED
    row_or_column = all(t == operand_strides[0] or 0 in (t[0], t[1]) for t in operand_strides)
    if len(shape) == 2 and operand_strides[0] == (shape[1], 1) and row_or_column:
        return LayoutCase.BROADCAST
    last = len(shape) - 1
    fastest = set()
    for strides in operand_strides:
        moving = [(abs(s), -axis) for axis, s in enumerate(strides) if s]
        fastest.add(-min(moving)[1] if moving and strides[last] else last)
    return {1: LayoutCase.ROWS, 2: LayoutCase.TILE}.get(len(fastest), LayoutCase.MIXED)


def of(shape, *layouts):
    """The loop of an elementwise expression of `shape` over layouts, as the planner makes it."""
    strides = [layout.broadcast_to(shape).strides for layout in layouts]
    return make_loop(shape, [result_layout(shape, strides).strides, *strides])


A = Layout.of((6, 8))
S = Layout.of((8, 8))
B = Layout.of((2, 3, 4))
BT = Layout.of((2, 4, 3)).permute((0, 2, 1))
BR = Layout.of((4, 3, 2)).permute((2, 1, 0))


@pytest.mark.parametrize(
    ("case", "loop", "shape"),
    [
        pytest.param("empty", of((0, 8), A.index(slice(0, 0))[0]), (0,), id="nothing"),
        pytest.param("flat", of((6, 8), A, A), (48,), id="a + b"),
        pytest.param("flat", of((8, 6), A.permute((1, 0)), A.permute((1, 0))), (48,), id="a.T + b.T"),
        pytest.param("flat", of((6, 8), A, Layout.of(())), (48,), id="a + 0-d"),
        pytest.param("flat", of((1, 1), Layout.of((1, 1)), Layout.of(())), (1,), id="one element"),
        pytest.param("flat", of((), Layout.of(()), Layout.of(())), (1,), id="0-d + 0-d"),
        pytest.param("strided", of((6, 8), A.flip()[0]), (48,), id="a[::-1, ::-1]"),
        pytest.param("strided", of((24,), Layout.of(48).index(slice(None, None, 2))[0]), (24,), id="a[::2]"),
        pytest.param("strided", of((48,), Layout.of(48), Layout.of(48).flip()[0]), (48,), id="a + b[::-1]"),
        pytest.param("strided", of((6, 4), A.index((..., slice(None, None, 2)))[0]), (24,), id="a[:, ::2]"),
        pytest.param("broadcast", of((6, 8), A, Layout.of(8)), (6, 8), id="a + row"),
        pytest.param("broadcast", of((6, 8), A, Layout.of((6, 1))), (6, 8), id="a + column"),
        pytest.param("broadcast", of((6, 8), Layout.of(8), Layout.of((6, 1))), (6, 8), id="row + column"),
        pytest.param("broadcast", of((2, 3, 4), B, Layout.of(4)), (6, 4), id="3-D + row"),
        pytest.param("broadcast", of((6, 8), A, Layout.of(8).flip()[0]), (6, 8), id="a + row[::-1]"),
        pytest.param("rows", of((6, 7), A.index((..., slice(1, None)))[0]), (6, 7), id="a[:, 1:]"),
        pytest.param("rows", of((6, 8), A, A.flip(0)[0]), (6, 8), id="a + b[::-1]"),
        pytest.param("rows", of((2, 3, 4), B, Layout.of((3, 1))), (2, 3, 4), id="3-D + middle"),
        pytest.param("tile", of((8, 8), S, S.permute((1, 0))), (8, 8), id="a + b.T"),
        pytest.param("tile", of((2, 3, 4), B, BT), (2, 3, 4), id="batched a + b.mT"),
        pytest.param("mixed", of((2, 3, 4), B, BT, BR), (2, 3, 4), id="three orders"),
    ],
)  # fmt: skip
def test_every_case_worked(case, loop, shape):
    assert loop.case is CASES[case]
    assert loop.shape == shape


def test_shifts_compensate_for_reversed_axes():
    loop = make_loop((6, 8), [(8, -1), (8, 1), (0, -1)])
    assert (loop.shape, loop.strides, loop.shifts) == ((6, 8), ((8, 1), (8, -1), (0, 1)), (-7, 7, -7))
    still = make_loop((6, 8), [(0, 0), (-8, -1)])  # A reduction: the output decides nothing.
    assert (still.shape, still.strides, still.shifts) == ((48,), ((0,), (1,)), (0, -47))
    against = make_loop((3, 2), [(0, 0), (-1, -3), (1, 3)])  # Inputs that disagree on the direction, not on the order.
    assert (against.shape, against.strides, against.shifts) == ((6,), ((0,), (-1,), (1,)), (0, 0, 0))


@pytest.mark.parametrize(
    ("shape", "strides", "bits"),
    [
        ((2**31 - 1,), [(1,), (1,)], 32),
        ((2**31,), [(1,), (1,)], 64),
        ((2**31,), [(1,), (0,)], 64),
        ((2**16, 2**15), [(2**15, 1), (0, 1)], 64),
        ((2**16 - 1, 2**15), [(2**15, 1), (0, 1)], 32),
        ((2,), [(1,), (2**31 - 1,)], 32),
        ((2,), [(1,), (2**31,)], 64),
        ((2,), [(1,), (-(2**31) + 1,)], 32),
        ((2,), [(1,), (-(2**31),)], 64),
        ((2, 2), [(2, 1), (2**30, 2**30)], 64),
        ((2, 2), [(2, 1), (2**30, -(2**30))], 32),
        ((2, 2), [(2, 1), (2**30, 2**30 - 1)], 32),
        ((2,), [(-(2**31),), (1,)], 64),
        ((0, 2**40), [(1, 1)], 32),
    ],
)
def test_index_bits_at_the_border(shape, strides, bits):
    assert make_loop(shape, strides).index_bits == bits


def test_fields_in_order():
    """Backends unpack a Loop, and cache it by value."""
    loop = make_loop((3,), [(1,), (2,)])
    assert loop == ((3,), ((1,), (2,)), (0, 0), LayoutCase.STRIDED, 32)
    assert hash(loop) == hash(make_loop((3, 1), [(1, 7), (2, 9)]))
