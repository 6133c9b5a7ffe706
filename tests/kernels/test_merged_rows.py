"""Tiles whose rows are two axes as one, in Triton's interpreter and compiled."""

from __future__ import annotations

import numpy as np
import pytest
from support.interpreter.run import Interpreter, planned
from support.kernels import needs_triton
from support.oracles.formats import dtype_of

import tilearray as ta
from tilearray_cuda.kernels.schedules import extents
from tilearray_cuda.kernels.schedules.merged_rows import MergedRows

pytestmark = [needs_triton, pytest.mark.slow]

# the shape of an array in C order, and its axes in the order of the result
PERMUTED: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "five axes reversed": ((4, 6, 3, 7, 40), (4, 3, 2, 1, 0)),
    "five axes": ((8, 3, 4, 16, 20), (3, 1, 4, 0, 2)),
    "four axes reversed": ((8, 5, 16, 12), (3, 2, 1, 0)),
    "edges": ((4, 6, 3, 8, 36), (4, 3, 2, 1, 0)),
    "columns that fill blocks": ((128, 20, 20), (2, 1, 0)),
    "axes of odd pitches merged": ((9, 4, 6, 20), (3, 2, 1, 0)),
    "rows of odd pitches merged": ((10, 16, 6, 42), (3, 2, 1, 0)),
}


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """Small loops count as large ones, whose extents decide."""
    monkeypatch.setattr(extents, "LARGE", 1)


def array(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    return (np.random.default_rng(seed).integers(-40, 40, shape) / 4).astype(dtype_of(dtype))


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("name", PERMUTED)
def test_copies(name: str, dtype: str, interpreter: Interpreter) -> None:
    shape, axes = PERMUTED[name]
    x = array(dtype, shape, 1).transpose(axes)
    call = planned("identity", x, out=np.empty(x.shape, x.dtype), index_bits=64 if dtype == "float64" else 32)
    assert isinstance(call.kernel.schedule, MergedRows)
    assert interpreter.run(call, None).tobytes() == x.tobytes()
    schedule, strides = call.kernel.schedule, call.kernel.loop.strides
    for _, place, axis in schedule.open_strides():
        assert strides[place][axis] % schedule.stride_divisor(schedule.spec.arrays[place]) == 0


@pytest.mark.parametrize("shape", [(90, 200, 36, 40), (90, 200, 36, 44), (90, 180, 30, 50), (18, 30, 26, 44, 42)])
def test_pitches_of_axes_that_are_merged_need_not_be_even(shape):
    x = ta.empty(shape, dtype="float32", device="cpu")
    axes = tuple(reversed(range(len(shape))))
    (launch,) = ta.explain(lambda x: ta.ascontiguousarray(ta.permute_dims(x, axes)), x, arch=90).launches
    assert launch.kernel.schedule == "merged_rows"
    assert launch.kernel.code.loads[0][0] == launch.kernel.code.stores[0][0] == 16


@pytest.mark.parametrize("form", ["dense", "a row", "a column", "one slice", "transposed alike"])
def test_sums_with_other_layouts(form: str, interpreter: Interpreter) -> None:
    """Arrays that repeat elements along the axes of the rows, and others."""
    x = array("float32", (4, 6, 3, 7, 40), 1).transpose(4, 3, 2, 1, 0)
    y = array("float32", x.shape, 2)
    y = {
        "dense": y,
        "a row": np.broadcast_to(y[:1, :1, :1], x.shape),
        "a column": np.broadcast_to(y[..., :1, :1], x.shape),
        "one slice": np.broadcast_to(y[:, :1], x.shape),
        "transposed alike": array("float32", x.shape[::-1], 2).transpose(4, 3, 2, 1, 0),
    }[form]
    call = planned("add", x, y, out=np.empty(x.shape, np.float32))
    assert isinstance(call.kernel.schedule, MergedRows)
    assert interpreter.run(call, None).tobytes() == (x + y).tobytes()


@pytest.mark.parametrize(
    ("dtype", "shape", "axes"),
    [
        ("uint8", (4, 6, 3, 7, 40), (4, 3, 2, 1, 0)),  # bytes are transposed by fours
        ("complex128", (4, 6, 3, 7, 40), (4, 3, 2, 1, 0)),
        ("float32", (3, 5, 7, 19, 13), (4, 3, 2, 1, 0)),  # odd pitches
        ("float32", (4, 6, 3, 7, 64), (4, 3, 2, 1, 0)),  # rows that fill tiles
        ("float32", (16, 32, 40), (2, 1, 0)),  # rows that go on in the columns alone
    ],
)
def test_other_loops_have_other_schedules(dtype: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = array(dtype, shape, 1).transpose(axes)
    call = planned("identity", x, out=np.empty(x.shape, x.dtype))
    assert not isinstance(call.kernel.schedule, MergedRows)


@pytest.mark.parametrize(("dtype", "vector"), [("bfloat16", 8), ("float32", 16), ("float64", 16), ("complex64", 16)])
@pytest.mark.parametrize("axes", [(4, 3, 2, 1, 0), (3, 1, 4, 0, 2)])
def test_they_are_read_and_stored_in_vectors(dtype, vector, axes):
    x = ta.empty((16, 32, 24, 48, 40), dtype=dtype, device="cpu")
    (launch,) = ta.explain(lambda x: ta.ascontiguousarray(ta.permute_dims(x, axes)), x, arch=90).launches
    assert launch.kernel.schedule == "merged_rows"
    assert [[size for size, _ in sizes] for sizes in (launch.kernel.code.loads, launch.kernel.code.stores)] == [
        [vector],
        [vector],
    ]
    assert launch.kernel.code.spills == 0
