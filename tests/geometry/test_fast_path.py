"""fast_path: loops of one pattern are planned alike, and have the shape and the strides that their operands have.

The oracle is the general way, `geometry_of` and the CUDA backend's `loop_class`, which test_result and test_loop_class
prove.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.layouts import layout_of, operands

from tilearray.errors import BroadcastError
from tilearray.geometry.fast_path import FLAT, pattern_of
from tilearray.geometry.layout import Layout
from tilearray.geometry.result import geometry_of
from tilearray_cuda.kernels.schedules.choose import facts_of_matrix, loop_class
from tilearray_cuda.kernels.schedules.extents import LARGE, NARROW

SIZES = (0, 1, 2, 3, 4, 16, 24, 48, NARROW - 1, NARROW, 1023, 1024)
HUGE = (2**31 - 1, 2**31, 2**31 + 16)


class Planned:
    """The plan of each pattern: whether the loop stands as it is, and if so its class."""

    def __init__(self, facts=facts_of_matrix, loop_class=loop_class):
        self.plans = {}
        self.as_they_stand = 0
        self.facts = facts
        self.loop_class = loop_class

    def check(self, layouts):
        """Plan the operands in the general way, and compare with what was planned of the same pattern."""
        found = pattern_of(layouts, self.facts)
        if found is None:
            return False
        pattern, shape, strides, written = found
        assert pattern == FLAT or strides[1:] == tuple(layout.broadcast_to(shape).strides for layout in layouts)
        layout, loop = geometry_of("add", layouts, None)
        stands = (loop.shape, loop.strides) == (shape, strides)
        if stands:
            assert layout.canonical
            assert pattern == FLAT or (layout.shape, layout.strides) == (shape, strides[0])
            assert written is None or (written.shape, written.strides) == (layout.shape, layout.strides)
            assert loop.index_bits == 32
            assert not any(loop.shifts)
        planned = self.loop_class(loop) if stands else None
        key = len(layouts), pattern
        assert self.plans.setdefault(key, planned) == planned, (layouts, loop)
        self.as_they_stand += stands
        return True


def matrices(rows, columns):
    """Layouts of a matrix: dense, with pitches that 16 or 4 or nothing divides, transposed, repeated, windows."""
    pitches = {columns, columns + 1, columns + 2, -(-columns // 4) * 4, -(-columns // 16) * 16, 1024 + 16}
    downs = {rows, rows + 1, rows + 2, -(-rows // 4) * 4, -(-rows // 16) * 16, 2}
    steps = [(pitch, 1) for pitch in pitches] + [(1, down) for down in downs]
    steps += [(2 * columns, 2), (2, 2 * rows), (0, 1), (1, 0), (0, 0), (1, 1), (0, 2), (2, 0), (2, 2), (3, 7), (7, 3)]
    steps += [(-columns, 1), (columns, -1), (-1, rows), (HUGE[0], 1), (HUGE[1], 1), (1, HUGE[2])]
    return [Layout((rows, columns), strides) for strides in steps]


def beside(rows, columns):
    """Layouts that broadcast to a matrix."""
    rows_of = [Layout((columns,), (step,)) for step in (1, 0, 2, 16, -1, HUGE[1])]
    rows_of += [Layout((1, columns), strides) for strides in ((columns, 1), (0, 1), (-3, 1), (5, 2), (1, -1))]
    columns_of = [Layout((rows, 1), strides) for strides in ((1, 1), (columns, 1), (0, 0), (1, -7), (-1, 1))]
    return [*rows_of, *columns_of, Layout((), ()), Layout((1,), (-1,)), Layout((1, 1), (-1, -1))]


def test_loops_of_one_pattern_have_equal_plans():
    """Every layout alone, with each that broadcasts to it, in both orders, and with each of its own shape."""
    planned, known = Planned(), 0
    for rows, columns in itertools.product(SIZES, SIZES):
        own = matrices(rows, columns)
        few = own[:: 1 if rows * columns % 7 == 0 else 5]
        pairs = [(x, y) for x in own for y in beside(rows, columns)]
        groups = [(x,) for x in own] + pairs + [pair[::-1] for pair in pairs] + list(itertools.product(few, own))
        known += sum(planned.check(list(group)) for group in groups)
    assert known > 20_000
    assert planned.as_they_stand > 10_000
    assert 100 < len(planned.plans) < known / 10


def no_facts(*matrix):
    """The facts of a backend that runs every loop by one kernel, as the host does."""
    return 0


def test_the_case_needs_no_backend():
    """It follows from geometry, also for large matrices."""
    planned = Planned(no_facts, lambda loop: loop.case)
    for rows, columns in itertools.product((2, 3, 16, 511, 512, 2048), repeat=2):
        own = matrices(rows, columns)
        pairs = [(x, y) for x in own for y in beside(rows, columns)]
        for group in [*pairs, *((y, x) for x, y in pairs), *itertools.product(own[::3], own)]:
            planned.check(list(group))
    assert planned.as_they_stand > 5000
    assert len({*planned.plans.values()} - {None}) == 4, "flat, broadcast, rows and tile"


def test_three_operands():
    planned = Planned()
    for rows, columns in ((3, 16), (5, 32), (2, 7), (9, 600)):
        choice = [*matrices(rows, columns)[::3], *beside(rows, columns)[::2]]
        for group in itertools.product(choice, repeat=3):
            try:
                planned.check(list(group))
            except BroadcastError:
                pytest.fail(f"a pattern of operands that do not fit: {group}")
    assert planned.as_they_stand > 1000


ALL = Planned()


@given(operands())
def test_patterns_of_views(arrays):
    """Any rank, and what `views` of test_geometry makes: permuted, reversed, strided, repeated, of size 0 and 1."""
    ALL.check([layout_of(x) for x in arrays])


@given(st.lists(st.integers(0, 2**17), min_size=1, max_size=3), st.integers(1, 3))
def test_contiguous_operands_of_one_shape(shape, count):
    layout = Layout.of(tuple(shape))
    found = pattern_of([layout, *[Layout.of(tuple(shape)) for _ in range(count - 1)]], facts_of_matrix)
    size = int(np.prod(shape, dtype=object))
    if size in range(1, 2**31):
        assert found == (FLAT, (size,), ((1,),) * (count + 1), layout)
        assert geometry_of("add", [layout] * count, None)[1][:2] == found[1:3]
    else:
        assert found is None


@pytest.mark.parametrize(
    "layouts",
    [
        pytest.param([Layout((LARGE // 64, 64), (65, 1))], id="large"),
        pytest.param([Layout((2, 3), (2**31, 1))], id="far"),
        pytest.param([Layout.of(2**31)], id="so many"),
        pytest.param([Layout((4, 5), (5, 1)), Layout((5,), (-1,))], id="backwards"),
        pytest.param([Layout((2, 3, 4), (24, 4, 1))], id="three axes"),
        pytest.param([Layout((4, 1), (1, 1)), Layout((5,), (1,))], id="outer"),
        pytest.param([Layout((4, 5), (6, 1)), Layout((4,), (1,))], id="no fit"),
        pytest.param([Layout((1,), (-1,))], id="one element"),
        pytest.param([Layout((0, 5), (5, 1))], id="nothing"),
    ],
)
def test_loops_without_a_pattern(layouts):
    assert pattern_of(layouts, facts_of_matrix) is None


@pytest.mark.parametrize("other", [(), (5,), (1, 5), (4, 1), (4, 5)])
def test_patterns_of_a_matrix_and_a_smaller_operand(other):
    matrix, small = Layout((4, 5), (7, 1)), Layout.of(other)
    pattern, *found = pattern_of([matrix, small], facts_of_matrix)
    assert found == [(4, 5), ((5, 1), (7, 1), small.broadcast_to((4, 5)).strides), small if other == (4, 5) else None]
    assert pattern_of([small, matrix], facts_of_matrix)[0] not in (pattern, FLAT)


def test_patterns_are_remembered():
    x, row = Layout((70, 90), (128, 1)), Layout.of(90)
    assert x.pattern == row.pattern == (None, 0)
    found = pattern_of([x, row], facts_of_matrix)
    assert x.pattern[0] is row.pattern[0] is facts_of_matrix
    assert x.pattern[1] > row.pattern[1] > 0
    assert pattern_of([x, row], facts_of_matrix) == found


def test_backends_do_not_share_their_facts():
    """A layout may be on two devices: what one backend found of it says nothing of the other's kernels."""
    alike, apart = (lambda *matrix: 0), (lambda size, columns, *strides: columns % 2)
    even, odd = Layout((70, 90), (128, 1)), Layout((70, 91), (128, 1))
    for _ in range(2):
        assert pattern_of([even], alike)[0] == pattern_of([odd], alike)[0]
        assert pattern_of([even], apart)[0] != pattern_of([odd], apart)[0]
        assert pattern_of([even], lambda *matrix: -1) is None


def test_a_matrix_that_32_bits_do_not_count_is_planned():
    """Whatever the backend says: the loop's case and index width must be found."""
    assert pattern_of([Layout((2**16, 2**15), (0, 1))], lambda *matrix: 0) is None
    assert pattern_of([Layout((2**16, 2**15 - 1), (0, 1))], lambda *matrix: 0) is not None
