"""Which reductions a launch that goes over rows may have, and the loop that it has."""

from __future__ import annotations

import numpy as np
import pytest

import tilearray as ta
from tilearray.engine.operation import Reduced
from tilearray.engine.reducing import Reducing, held_loop
from tilearray.ops.reduction import reduction_of

SINGLE = np.dtype("float32")


def reduction(name, rows, columns, *, strides=None, axes=(1,), count=1):
    expression = reduction_of(name, SINGLE, axes, False).expression(None, (SINGLE,) * count, None)
    strides = (strides or (columns, 1),) * count
    return expression, Reducing(Reduced(axes, False), (rows, columns), strides, 4)


def loop_of(*reductions, members=0):
    _, columns = reductions[0][1].shape
    return held_loop(reductions, [(columns, 1)], [(columns, 1)], members)


def test_the_order_is_that_of_the_reductions():
    loop = loop_of(reduction("sum", 5000, 1000), reduction("max", 5000, 1000), reduction("mean", 5000, 1000))
    assert (loop.lanes, loop.segments.total, loop.held, loop.family) == (128, 1, True, True)
    assert loop.strides == ((1000, 1), (1000, 1))
    few = loop_of(reduction("sum", 100, 4096))
    assert (few.lanes, few.segments.total) == (128, 4)  # each segment is reduced alone


def test_extremes_have_no_order():
    loop = loop_of(reduction("max", 100, 4096))
    assert loop.segments.total == 1
    assert loop_of(reduction("max", 100, 4096), reduction("sum", 100, 4096)).segments.total == 4


@pytest.mark.parametrize(
    "reductions",
    [
        [reduction("sum", 3, 4000), reduction("var", 3, 4000, count=2)],  # two values take fewer lanes
        [reduction("sum", 5, 1_000_000)],  # too few rows for a program each
        [reduction("sum", 5000, 1000, strides=(1, 5000))],  # the rows are columns in memory
        [reduction("sum", 50, 100, axes=(0,))],
    ],
)
def test_what_is_not_held(reductions):
    assert loop_of(*reductions) is None


def test_programs_share_a_column_if_they_run_at_once():
    columns = reduction("sum", 4096, 1000, axes=(0,))
    loop = loop_of(columns, members=66)
    assert loop is not None
    assert 1 < loop.segments.total <= 66
    assert loop_of(columns, members=loop.segments.total) == loop
    assert loop_of(columns, members=loop.segments.total - 1) is None


def blocks(name, rows=4, columns=32, *, inputs=None):
    """The loop over blocks of (8 * rows, 16 * columns) elements, reduced along their rows and columns."""
    shape, dense = (8, rows, 16, columns), (16 * columns * rows, 16 * columns, columns, 1)
    expression = reduction_of(name, SINGLE, (1, 3), False).expression(None, (SINGLE,), None)
    reducing = Reducing(Reduced((1, 3), False), shape, (dense,), 4)
    return held_loop([(expression, reducing)], [dense, (16, 0, 1, 0)], [dense] if inputs is None else inputs, 0)


def test_blocks_are_held_as_rows_if_the_order_has_no_influence():
    loop = blocks("max", 64, 128)
    assert (loop.shape, loop.blocks, loop.family, loop.lanes) == ((8, 64, 16, 128), True, True, 1024)
    assert loop.segments == (1, 1, 1, 8)
    assert blocks("sum") is None


@pytest.mark.parametrize(("rows", "columns"), [(3, 32), (4, 24), (256, 128)])
def test_blocks_that_are_not_held(rows, columns):
    """A lane would be empty, or there are too many elements."""
    assert blocks("min", rows, columns) is None


def test_an_operand_of_rows_of_a_block_is_not_one_of_the_whole_block():
    dense = (16 * 32 * 4, 16 * 32, 32, 1)
    assert blocks("max", inputs=[dense, (4, 1, 0, 0)]) is None
    assert blocks("max", inputs=[dense, (0, 0, 32, 1)]).strides[-1] == (0, 0, 32, 1)
    assert blocks("max", inputs=[dense, (16, 0, 1, 0)]) is not None


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2)])
@pytest.mark.parametrize("shape", [(4, 5, 4), (40, 50, 4), (300, 70, 4)])
def test_a_reduction_in_segments_reads_each_operand_by_its_own_strides(shape, axis):
    """The launch over segments reads a mask before the array: each had the strides of the other."""
    rng = np.random.default_rng(len(shape))
    values, mask = rng.normal(size=shape), rng.random((*shape[:-1], 2)) < 0.6
    found = ta.var(ta.asarray(values)[..., ::2], axis=axis, where=ta.asarray(mask))
    np.testing.assert_allclose(ta.to_numpy(found), np.var(values[..., ::2], axis=axis, where=mask), rtol=1e-12)
