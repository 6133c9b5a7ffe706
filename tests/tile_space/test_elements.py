"""gather and scatter of tile space against a loop over the indices."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.kernels import needs_triton
from support.processes import in_fresh_python
from tile_space.test_tiles import VALUES, drawn

import tilearray as ta

KINDS = ("int64", "int32", "int8", "uint8", "uint64")


def drawn_indices(rng, shape):
    """Index arrays of random shapes that broadcast to one, of which some elements lie outside; and a mask or None."""
    common = tuple(map(int, rng.integers(0, 5, rng.integers(0, 4))))
    if common and rng.random() < 0.8:
        common = tuple(max(1, size) for size in common)

    def some(make):
        axes = common[rng.integers(0, len(common) + 1) :]
        return make(tuple(1 if rng.random() < 0.2 else size for size in axes))

    def index(size):
        kind = rng.choice(KINDS)
        return some(lambda part: rng.integers(-2 if kind[0] == "i" else 0, size + 3, part).astype(kind))

    indices = [index(size) for size in shape]
    return tuple(np.asarray(index) for index in indices), some(lambda part: rng.random(part) < 0.7), common


def loop(turned, indices, mask):
    """For each place in C order: its position, and the element's index, or None if it is outside."""
    *indices, mask = np.broadcast_arrays(*indices, mask)
    for place in np.ndindex(mask.shape):
        index = tuple(int(each[place]) for each in indices)
        inside = all(0 <= at < size for at, size in zip(index, turned.shape, strict=True))
        yield place, index if inside and mask[place] else None


def turned_by(base, order):
    return base.transpose({"C": range(base.ndim), "F": range(base.ndim)[::-1]}.get(order, order))


def cases(count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        base, tile, step, order, padding = drawn(rng)
        turned = turned_by(base, order)
        indices, mask, _ = drawn_indices(rng, turned.shape)
        grid = ta.asarray(base, device="cpu").tiles(tile, order=order, padding=padding, step=step)
        yield rng, base, turned, grid, indices, mask, padding


def check_gather(count, seed):
    for rng, _, turned, grid, indices, mask, padding in cases(count, seed):
        given = None if rng.random() < 0.3 else mask
        shape = np.broadcast_shapes(*[index.shape for index in indices], () if given is None else given.shape)
        want = np.empty(shape, turned.dtype)
        for place, index in loop(turned, indices, np.True_ if given is None else given):
            want[place] = VALUES[padding] if index is None else turned[index]
        found = ta.to_numpy(grid.gather(indices, mask=given))
        assert (found.shape, found.dtype) == (want.shape, want.dtype)
        assert found.tobytes() == want.tobytes(), (indices, mask)


def check_scatter(count, seed):
    for rng, base, turned, grid, indices, mask, _ in cases(count, seed):
        if 0 in base.strides:
            continue
        shape = np.broadcast_shapes(*[index.shape for index in indices], mask.shape)
        value = rng.standard_normal(shape[rng.integers(0, len(shape) + 1) :]).astype(turned.dtype)
        given = float(value) if value.ndim == 0 and rng.random() < 0.5 else value
        want, values = turned.copy(), np.broadcast_to(value, shape)
        for place, index in loop(turned, indices, mask):
            if index is not None:
                want[index] = values[place]
        grid.scatter(indices, given, mask=mask)
        assert turned.tobytes() == want.tobytes(), (indices, mask)


def test_gather_is_a_loop_over_the_indices():
    check_gather(300, 3)


def test_scatter_is_a_loop_over_the_indices():
    check_scatter(300, 4)


@pytest.mark.slow
def test_ten_thousand_sets_of_indices():
    check_gather(5000, 5)
    check_scatter(5000, 6)


def test_undetermined_padding_takes_the_nearest_element():
    grid = ta.asarray([5, 6, 7], device="cpu").tiles(2, padding="undetermined")
    assert grid.gather(ta.asarray([-4, 0, 9], device="cpu")).tolist() == [5, 5, 7]


def test_padding_has_the_dtype_of_the_array():
    grid = ta.asarray([1, 2], dtype="int8", device="cpu").tiles(2, padding=-1)
    assert grid.gather([5]).dtype == ta.int8
    with pytest.raises(ta.DTypeError, match="int8 cannot hold nan"):
        ta.asarray([1, 2], dtype="int8", device="cpu").tiles(2, padding="nan").gather([5])


def test_a_gather_is_differentiated():
    indices = ta.asarray([0, 2, 2, 7], device="cpu")
    x = ta.asarray([1.0, 2.0, 3.0], device="cpu")
    gradient = ta.grad(lambda x: ta.sum(x.tiles(2).gather(indices) * ta.asarray([1.0, 10.0, 100.0, 1000.0])))(x)
    assert gradient.tolist() == [1.0, 0.0, 110.0]


@needs_triton
def test_a_gpu_gives_the_same_and_waits_for_no_check():
    code = """
import os
os.environ["TRITON_INTERPRET"] = "1"
import numpy as np
import tilearray as ta
from support.interpreter.emulated_gpu import Words, emulated_device
device = emulated_device()
base = np.arange(12, dtype="f4").reshape(3, 4)
rows, columns = np.array([[0], [2], [-1], [3]]), np.array([3, 4, 0])
taken = []
take = Words.take
Words.take = lambda self, count, stream: taken.append(count) or take(self, count, stream)
for where in ("cpu", device):
    x = ta.asarray(base.copy(), device=where)
    grid = x.T.tiles((2, 2), order="F", padding=-1)
    indices = tuple(ta.asarray(index, device=where) for index in (rows, columns))
    print(ta.to_numpy(grid.gather(indices)).tolist(), len(taken))
    grid.scatter(indices, ta.asarray([7.0, 8.0, 9.0], dtype="float32", device=where))
    print(ta.to_numpy(x).tolist())
"""
    host, written, *emulated = in_fresh_python(code).splitlines()
    assert host == str([[3.0, -1.0, 0.0], [11.0, -1.0, 8.0], [-1.0] * 3, [-1.0] * 3]) + " 0"
    assert written == "[[9.0, 1.0, 2.0, 7.0], [4.0, 5.0, 6.0, 7.0], [9.0, 9.0, 10.0, 7.0]]"
    assert emulated == [host, written]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda grid: grid.gather(1), ta.IndexingError, "gather: expected a tuple of 2 index arrays for shape (3, 4)"),
        (lambda grid: ta.tiles(2.0, ()).gather((0, 0)), ta.IndexingError, "expected a tuple of"),
        (lambda grid: grid.gather((1.5, 0)), ta.OperandError, "expected integers or bools as indices, got float"),
        (lambda grid: grid.gather((True, 0)), ta.IndexingError, "expected integers as indices, got bool"),
        (lambda grid: grid.gather((1, 0), mask=1), ta.IndexingError, "gather: expected a mask of bools, got int64"),
        (lambda grid: grid.gather(([1, 2], [1, 2, 3])), ta.BroadcastError, "gather: expected"),
        (lambda grid: grid.scatter(([1, 2], 0), [1, 2, 3]), ta.ShapeError, "broadcast"),
        (lambda grid: grid.scatter((1, 0), [1, 2]), ta.ShapeError, "scatter: expected a value that broadcasts to the"),
    ],
)
def test_errors_say_what_to_write(call, error, text):
    with pytest.raises(error, match=re.escape(text)):
        call(ta.zeros((3, 4), device="cpu").tiles((2, 2)))
