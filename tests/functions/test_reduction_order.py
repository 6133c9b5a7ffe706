"""The host adds floats in the order that `tilearray.geometry.reduction` lays down, element after element.

The oracle walks the loop with Python's floats: lanes, chunks, segments, and halves or neighbours of the lanes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import pytest

import tilearray as ta
from tilearray.geometry.reduction import ReductionLoop, make_reduction

SHAPES = (
    ((5000,), (0,)),
    ((1537,), (0,)),
    ((3, 700), (1,)),
    ((70, 37), (0,)),
    ((70, 37), (1,)),
    ((37, 50), (0, 1)),
    ((9, 11, 13), (0, 2)),
    ((13, 5, 17), (0, 1)),
    ((6, 25, 7), (1,)),
    ((2, 3, 5, 29), (1, 3)),
    ((300, 3), (1,)),
    ((3, 300), (0,)),
    ((40, 100), (1,)),
    ((20, 2500), (1,)),
)
VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "whole": lambda x: x,
    "rows cut": lambda x: np.concatenate([x, x], -1)[..., : x.shape[-1]],
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "steps of two": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "backwards": lambda x: x[..., ::-1],
}


def added(values: Sequence[float | None]) -> float | None:
    """Add from left to right; None has no influence."""
    found = [value for value in values if value is not None]
    return reduce(float.__add__, found) if found else None


def folded(lanes: list[float | None], neighbours: bool) -> float:
    """Combine neighbours among the lanes, or the lower half with the upper one, until one is left."""
    while len(lanes) > 1:
        half = len(lanes) // 2
        pairs = zip(lanes[::2], lanes[1::2]) if neighbours else zip(lanes[:half], lanes[half:])
        lanes = [added(pair) for pair in pairs]
    assert lanes[0] is not None
    return lanes[0]


def walked(loop: ReductionLoop, memory: np.ndarray, out: np.ndarray) -> None:
    """Reduce elements of a flat array by a loop with one output and one input."""
    kept, (written, strides), (_, shift) = loop.kept, loop.strides, loop.shifts
    *slow, fast, extent = loop.shape
    outer, inner, indices, chunks = loop.segments
    for index in itertools.product(*map(range, slow[:kept]), range(fast)):
        axes = [*range(kept), len(slow)]
        first = shift + sum(i * strides[axis] for i, axis in zip(index, axes))
        place = loop.shifts[0] + sum(i * written[axis] for i, axis in zip(index, axes))
        for o, i in itertools.product(range(outer), range(inner)):
            lanes: list[float | None] = [None] * loop.lanes
            ranges = [range(size) for size in slow[kept:]]
            if ranges:
                ranges[0] = range(o * indices, min((o + 1) * indices, slow[kept]))
            for slower in itertools.product(*ranges):
                start = first + sum(at * stride for at, stride in zip(slower, strides[kept:]))
                for element in range(i * chunks * loop.lanes, min((i + 1) * chunks * loop.lanes, extent)):
                    lane = element % loop.lanes
                    lanes[lane] = added((lanes[lane], float(memory[start + element * strides[-1]])))
            out[place + o * inner + i] = folded(lanes, loop.neighbours)


def expected(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return the sums of float64 by the written order: of the segments, then of what they give."""
    kept = tuple(size for axis, size in enumerate(x.shape) if axis not in axes)
    results = int(np.prod(kept, dtype=int))
    steps = [tuple(stride // 8 for stride in x.strides)]
    dense = [tuple(int(np.prod(kept[axis + 1 :], dtype=int)) for axis in range(len(kept)))]
    count = make_reduction(x.shape, axes, dense, steps, 8).segments.total
    apart = [tuple(count * stride for stride in dense[0])]
    memory, origin = memory_of(x)
    partial = np.empty(results * count)
    loop = make_reduction(x.shape, axes, apart if count > 1 else dense, steps, 8)
    walked(loop._replace(shifts=(loop.shifts[0], loop.shifts[1] + origin)), memory, partial)
    if count > 1:
        found = np.empty(results)
        second = make_reduction((*kept, count), (len(kept),), dense, [(*apart[0], 1)], 8, whole=True)
        walked(second, partial, found)
        partial = found
    return partial.reshape(kept)


def memory_of(x: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the elements in memory as one axis, and the place of the first one of the array among them."""
    base = x
    while isinstance(base.base, np.ndarray):
        base = base.base
    flat = base.ravel(order="K")
    assert np.shares_memory(flat, x)
    return flat, (x.ctypes.data - flat.ctypes.data) // 8


@pytest.mark.parametrize("view", VIEWS)
def test_sums_have_the_written_order(view):
    rng = np.random.default_rng(11)
    for shape, axes in SHAPES:
        x = VIEWS[view](rng.normal(size=shape) * 10.0 ** rng.integers(-8, 8, shape))
        found = ta.to_numpy(ta.sum(ta.asarray(x, device="cpu"), axis=axes))
        assert found.tobytes() == expected(x, axes).tobytes(), (shape, axes)


@pytest.mark.parametrize("shape", [(5, 1000), (4, 2306), (300, 300), (40, 4609)])
def test_sums_of_computed_values_have_the_written_order(shape):
    """Segments that are whole, one element long, and shorter, in one block and in several."""
    rng = np.random.default_rng(12)
    x = rng.normal(size=shape) * 10.0 ** rng.integers(-8, 8, shape)
    fused = ta.fuse(lambda x: (ta.sum(x * x, axis=1), ta.sum(x + 1, axis=1)))
    squares, others = (ta.to_numpy(found) for found in fused(ta.asarray(x, device="cpu")))
    assert squares.tobytes() == expected(x * x, (1,)).tobytes()
    assert others.tobytes() == expected(x + 1, (1,)).tobytes()


@pytest.mark.parametrize("shape", [(4, 5, 64), (2, 3, 1100), (7, 6, 64)])
def test_values_that_are_computed_and_repeated_are_combined_as_often(shape):
    rng = np.random.default_rng(13)
    once = rng.normal(size=shape).astype("float32")
    x = ta.asarray(once, device="cpu")
    for function in (ta.var, ta.std, ta.fuse(lambda x, axis: (ta.sum(x * x, axis=axis), ta.sum(x + 1, axis=axis))[0])):
        for axis in ((2, 3), (1, 3), 3):
            found = ta.to_numpy(function(ta.broadcast_to(x, (3, *shape)), axis=axis))
            assert {row.tobytes() for row in found} == {found[0].tobytes()}
            alone = tuple([each - 1 for each in axis]) if isinstance(axis, tuple) else axis - 1
            np.testing.assert_allclose(found[0], ta.to_numpy(function(x, axis=alone)), rtol=1e-5)
