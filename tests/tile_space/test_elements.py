"""gather and scatter of tile space against a loop over the indices."""

from __future__ import annotations

import re

import pytest
from support.kernels import needs_triton
from support.oracles.tiles import check_gather, check_scatter
from support.processes import in_fresh_python

import tilearray as ta


def test_gather_is_a_loop_over_the_indices():
    check_gather(200, 3, "cpu", wide=True)


def test_scatter_is_a_loop_over_the_indices():
    check_scatter(200, 4, "cpu", wide=True)


@pytest.mark.parametrize("name", ["array-api", "triton", "cutile", "torch", "numpy"])
def test_elements_are_the_same_under_all_semantics(name):
    with ta.semantics(name):
        x = ta.asarray([[1, 2], [3, 4]], dtype="int32", device="cpu")
        grid = x.tiles((2, 2), padding=-1)
        assert grid.gather(([0, 1, 2], [1, 1, 0]), mask=[True, False, True]).tolist() == [2, -1, -1]
        grid.scatter(([0, 5], [0, 0]), 9)
        assert x.tolist() == [[9, 2], [3, 4]]


def test_undetermined_padding_takes_the_nearest_element():
    grid = ta.asarray([5, 6, 7], device="cpu").tiles(2, padding="undetermined")
    assert grid.gather(ta.asarray([-4, 0, 9], device="cpu")).tolist() == [5, 5, 7]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint64"])
def test_narrow_and_wide_indices_reach_a_long_axis(dtype):
    grid = ta.arange(300, device="cpu").tiles(7, padding=-1)
    numbers = [0, 100, 2**63 + 5, 2**64 - 1] if dtype == "uint64" else [0, 100, 127]
    found = grid.gather(ta.asarray(numbers, dtype=dtype, device="cpu")).tolist()
    assert found == [number if number < 300 else -1 for number in numbers]


def test_a_gather_of_a_gpu_is_four_launches():
    """The indices, the elements, the padding, and the choice between both."""
    x, index = ta.zeros((30, 40), device="cpu"), ta.arange(5, device="cpu")
    found = ta.explain(lambda x, i: x.tiles((3, 3)).gather((i[:, None], i)), x, index, arch=90)
    assert [step.name for step in found.steps] == ["fused", "indexing", "setitem", "where"]
    assert len(found.launches) == 4


def test_padding_has_the_dtype_of_the_array():
    grid = ta.asarray([1, 2], dtype="int8", device="cpu").tiles(2, padding=-1)
    assert grid.gather([5]).dtype == ta.int8
    with pytest.raises(ta.DTypeError, match="int8 cannot hold nan"):
        ta.asarray([1, 2], dtype="int8", device="cpu").tiles(2, padding="nan").gather([5])


def test_a_gather_is_differentiated():
    indices = ta.asarray([0, 2, 2, 7], device="cpu")
    x, w = ta.asarray([1.0, 2.0, 3.0], device="cpu"), ta.asarray([1.0, 10.0, 100.0, 1000.0], device="cpu")
    gradient = ta.grad(lambda x: ta.sum(x.tiles(2).gather(indices) * w))(x)
    assert gradient.tolist() == [1.0, 0.0, 110.0]


@needs_triton
def test_an_emulated_gpu_agrees_with_the_oracle():
    code = """
import os
os.environ["TRITON_INTERPRET"] = "1"
from support.interpreter.emulated_gpu import emulated_device
from support.oracles.tiles import check_gather, check_scatter, check_tiles
device = emulated_device()
check_tiles(6, 7, device, wide=True)
check_gather(8, 8, device)
check_scatter(8, 9, device)
"""
    in_fresh_python(code)


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
Words.take = lambda self, count, *given: taken.append(count) or take(self, count, *given)
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
        (lambda grid: grid.scatter(([1, 2], 0), [1, 2, 3]), ta.ShapeError, "scatter: expected a value that broadcasts"),
        (lambda grid: grid.scatter((1, 0), [1, 2]), ta.ShapeError, "scatter: expected a value that broadcasts to the"),
    ],
)
def test_errors_say_what_to_write(call, error, text):
    with pytest.raises(error, match=re.escape(text)):
        call(ta.zeros((3, 4), device="cpu").tiles((2, 2)))
