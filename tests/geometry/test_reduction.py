"""The loop of a reduction: it visits each element once, and sums are added in the order that it describes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilearray as ta
from tilearray.engine.caches import PLANS
from tilearray.geometry import reduction
from tilearray.geometry.loop import LayoutCase
from tilearray.geometry.reduction import ReductionLoop, make_reduction, make_reduction_like, walking
from tilearray.geometry.strides import dense_strides
from tilearray_host import lanes


def drawn(rng: np.random.Generator) -> tuple[np.ndarray, tuple[int, ...]]:
    """A view of random float64, and axes to reduce."""
    ndim = int(rng.integers(1, 5))
    shape = tuple(int(size) for size in rng.choice([1, 2, 3, 5, 8, 17, 40], ndim))
    x = rng.normal(size=shape).transpose(rng.permutation(ndim))
    x = x[tuple(slice(None, None, int(step)) for step in rng.choice([1, 1, -1, 2], ndim))]
    count = int(rng.integers(1, ndim + 1))
    return x, tuple(sorted(int(axis) for axis in rng.permutation(ndim)[:count]))


def loop_of(x: np.ndarray, axes: tuple[int, ...], *, whole: bool = False) -> ReductionLoop:
    kept = tuple(size for axis, size in enumerate(x.shape) if axis not in axes)
    strides = tuple(step // x.itemsize for step in x.strides)
    return make_reduction(x.shape, axes, [dense_strides(kept)], [strides], x.itemsize, whole=whole)


def visited(loop: ReductionLoop, result: tuple[int, ...]) -> Iterator[list[list[int]]]:
    """For each segment of a result, by its kept indices: for each lane the offsets of its elements, in their order."""
    operand = loop.strides[1]
    outer = [range(size) for size in loop.shape[loop.kept : -2]]
    outer_total, inner_total, indices, chunks = loop.segments
    fixed = loop.shifts[1] + sum(i * s for i, s in zip(result, (*operand[: loop.kept], operand[-2]), strict=True))
    for part, run in itertools.product(range(outer_total), range(inner_total)):
        found: list[list[int]] = [[] for _ in range(loop.lanes)]
        first = outer[:1] and range(part * indices, min((part + 1) * indices, len(outer[0])))
        for index in itertools.product(*([first] if outer else []), *outer[1:]):
            place = fixed + sum(i * s for i, s in zip(index, operand[loop.kept : -2], strict=True))
            for chunk in range(run * chunks, (run + 1) * chunks):
                for lane in range(loop.lanes):
                    element = chunk * loop.lanes + lane
                    if element < loop.shape[-1]:
                        found[lane].append(place + element * operand[-1])
        yield found


def joined(loop: ReductionLoop, values: list[float]) -> float:
    """The sum of lanes: of neighbours along rows, of halves along columns."""
    while len(values) > 1:
        half = len(values) // 2
        if loop.case is LayoutCase.REDUCE_ROWS:
            pairs = zip(values[::2], values[1::2], strict=True)
        else:
            pairs = zip(values[:half], values[half:], strict=True)
        values = [x + y for x, y in pairs]
    return values[0]


def summed(values: list[float]) -> float:
    total = -0.0
    for value in values:
        total += value
    return total


def results(loop: ReductionLoop) -> Iterator[tuple[int, ...]]:
    return itertools.product(*[range(size) for size in (*loop.shape[: loop.kept], loop.shape[-2])])


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few lanes and many segments, so that small arrays have all kinds of them."""
    small = dict.fromkeys((1, 2, 4, 8, 16), 4)
    for name, value in {"LANES": small, "FEWEST": small, "COLUMN_LANES": small, "LEAST_CHUNKS": 1}.items():
        monkeypatch.setattr(reduction, name, value)
    monkeypatch.setattr(reduction, "ROW_PROGRAMS", dict.fromkeys(small, 5))
    monkeypatch.setattr(reduction, "COLUMN_PROGRAMS", dict.fromkeys(small, 5))


def test_every_element_is_visited_once(short):
    rng = np.random.default_rng(1)
    cut = 0
    for _ in range(300):
        x, axes = drawn(rng)
        loop = loop_of(x, axes)
        cut += loop.segments.total > 1
        found = [
            offset for result in results(loop) for every in visited(loop, result) for lane in every for offset in lane
        ]
        strides = [step // 8 for step in x.strides]
        expected = [sum(i * s for i, s in zip(index, strides, strict=True)) for index in np.ndindex(x.shape)]
        assert sorted(found) == sorted(expected), (x.shape, strides, axes, loop)
    assert cut > 50


def test_a_sum_has_the_bits_of_the_order_that_is_described():
    rng = np.random.default_rng(2)
    for _ in range(60):
        x, axes = drawn(rng)
        check_sum(x, axes)
    for shape, axes in (
        ((40_000,), (0,)),
        ((3, 20_011), (1,)),
        ((70, 1_031), (1,)),
        ((9_001, 5), (0,)),
        ((5, 3, 3_001), (0, 2)),
    ):
        check_sum(rng.normal(size=shape) * 10.0 ** rng.integers(-6, 6, shape), axes)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Parts, blocks and runs of steps of a few elements on the host, so that small arrays have many."""
    for name, value in {"LANES": 64, "BLOCK": 32, "STEPS": 2}.items():
        monkeypatch.setattr(lanes, name, value)
    PLANS.clear()
    yield
    PLANS.clear()


def test_values_in_blocks_are_added_in_the_same_order(small_blocks):
    rng = np.random.default_rng(3)
    for _ in range(60):
        x, axes = drawn(rng)
        x = np.abs(x, out=x)
        check_sum(x, axes)
        mine = ta.asarray(x, device="cpu")
        sizes = ta.linalg.vector_norm(mine, ord=1, axis=axes)  # the sum of absolute values, which a block computes
        assert sizes.tolist() == ta.sum(mine, axis=axes).tolist(), (x.shape, x.strides, axes)
        found, whole = ta.to_numpy(ta.var(mine, axis=axes)), np.var(x, axis=axes)
        np.testing.assert_allclose(found, whole, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("lines", [1, 8])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_computed_values_are_added_like_those_of_an_array(short, small_blocks, lines, dtype, monkeypatch):
    """Blocks of rows, of segments of a row, and of steps of a segment."""
    monkeypatch.setattr(lanes, "LINES", lines)
    rng = np.random.default_rng(4)
    squares, two = ta.fuse(lambda x, axes: ta.sum(x * x, axis=axes)), ta.fuse(_of_two)
    for _ in range(60):
        x, axes = drawn(rng)
        mine = ta.asarray(x.astype(dtype), device="cpu")
        assert squares(mine, axes).tolist() == ta.sum(mine * mine, axis=axes).tolist(), (x.shape, x.strides, axes)
        rows = rng.normal(size=(rng.integers(1, 5), rng.integers(1, 90))) * 10.0 ** rng.integers(-6, 6)
        mine = ta.asarray(rows.astype(dtype), device="cpu")
        for found, expected in zip(two(mine, mine[:1]), _of_two(mine, mine[:1]), strict=True):
            assert found.tolist() == expected.tolist(), rows.shape


def _of_two(x: ta.Array, first: ta.Array) -> tuple[ta.Array, ta.Array]:
    return ta.sum(x * first, axis=1), ta.mean(x + 1, axis=1)


def address(x: np.ndarray) -> int:
    return x.__array_interface__["data"][0]


def check_sum(x: np.ndarray, axes: tuple[int, ...]) -> None:
    """Compare a sum with Python's floats, added as the loops say."""
    loop = loop_of(x, axes)
    base: Any = x
    while base.base is not None:
        base = base.base
    flat, start = base.reshape(-1), (address(x) - address(base)) // 8
    kept = tuple(size for axis, size in enumerate(x.shape) if axis not in axes)
    expected = np.empty(math.prod(kept))
    for result in results(loop):
        segments = [
            joined(loop, [summed([float(flat[start + offset]) for offset in lane]) for lane in every])
            for every in visited(loop, result)
        ]
        if len(segments) > 1:
            again = make_reduction((len(segments),), (0,), [()], [(1,)], 8, whole=True)
            ((*every,),) = visited(again, (0,))
            segments = [joined(again, [summed([segments[offset] for offset in lane]) for lane in every])]
        place = sum(i * s for i, s in zip(result, (*loop.strides[0][: loop.kept], loop.strides[0][-2]), strict=True))
        expected[place + loop.shifts[0]] = segments[0]
    found = np.ravel(ta.to_numpy(ta.sum(ta.asarray(x, device="cpu"), axis=axes)))
    assert found.view(np.uint64).tolist() == expected.view(np.uint64).tolist(), (x.shape, x.strides, axes, loop)


def test_a_loop_like_another_one_visits_other_inputs_in_the_same_order():
    rng = np.random.default_rng(7)
    found = 0
    for _ in range(400):
        x, axes = drawn(rng)
        y = np.empty(x.shape[::-1]).transpose()[
            tuple(slice(None, None, int(step)) for step in rng.choice([1, -1], x.ndim))
        ]
        kept = tuple(size for axis, size in enumerate(x.shape) if axis not in axes)
        strides, others = [tuple(step // 8 for step in each.strides) for each in (x, y)]
        loop = make_reduction_like([strides], x.shape, axes, [dense_strides(kept)], [others], itemsize=8)
        model = make_reduction(x.shape, axes, [dense_strides(kept)], [strides], 8)
        if loop is None:
            continue
        found += 1
        assert (loop.lanes, loop.segments, loop.case) == (model.lanes, model.segments, model.case)
        both = make_reduction(x.shape, axes, [dense_strides(kept)], [strides, others], 8)
        ours = loop._replace(strides=(loop.strides[0], both.strides[1]), shifts=(loop.shifts[0], both.shifts[1]))
        if model.shape == loop.shape:  # kept axes are merged alike: each result has the same elements in its lanes
            nothing = (0,) * (loop.kept + 1)
            assert list(visited(ours, nothing)) == list(visited(model, nothing))
    assert found > 150


def test_a_loop_that_stores_elements_of_any_layout_has_the_order_of_a_new_array_of_results():
    rng = np.random.default_rng(7)
    found = 0
    for _ in range(400):
        x, axes = drawn(rng)
        kept = tuple(size for axis, size in enumerate(x.shape) if axis not in axes)
        strides, stored = [tuple(step // 8 for step in each.strides) for each in (x, np.empty(x.shape[::-1]).T)]
        loop = make_reduction_like([strides], x.shape, axes, [stored], [strides], itemsize=8, spread=True)
        model = make_reduction(x.shape, axes, [dense_strides(kept)], [strides], 8)
        if loop is not None:
            found += 1
            orders = [(each.lanes, each.segments, each.case, each.shape[each.kept : -2], each.shape[-1])
                      for each in (loop, model)]  # fmt: skip
            assert orders[0] == orders[1]
    assert found > 150


PLAIN, UPWARDS, BACKWARDS = (4096, 1), (-4096, 1), (4096, -1)


@pytest.mark.parametrize(
    ("of_rows", "of_columns", "is_walked"),
    [
        ((PLAIN, PLAIN), (PLAIN, PLAIN), True),
        ((PLAIN, UPWARDS), (PLAIN, UPWARDS), True),
        ((UPWARDS, BACKWARDS), (UPWARDS, BACKWARDS), True),
        ((PLAIN, UPWARDS), (PLAIN, PLAIN), False),  # other elements
        ((UPWARDS, PLAIN), (PLAIN, UPWARDS), False),  # the same ones, from the last row to the first
        ((BACKWARDS, PLAIN), (PLAIN, BACKWARDS), False),
    ],
)
def test_rows_are_walked_only_in_the_direction_of_columns(of_rows, of_columns, is_walked):
    rows, columns = (
        make_reduction((16384, 4096), (axis,), [(1,)], inputs, 4) for axis, inputs in ((1, of_rows), (0, of_columns))
    )
    assert (walking(rows, columns, [4, 4], [8]) is not None) == is_walked
