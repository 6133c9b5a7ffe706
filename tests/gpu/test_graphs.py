"""CUDA graphs of our own on a GPU: replays compute on what the arrays hold then."""

from __future__ import annotations

import gc

import pytest

import tilearray as ta
from tilearray import cuda
from tilearray_cuda.errors import CaptureError


def ramp(dtype="float32"):
    return ta.arange(100_000, dtype=dtype, device="cuda:0")


def test_a_replay_computes_on_new_values():
    x = ramp()
    with cuda.graph() as g:
        y = x * 2 + 1
        total = ta.sum(y)
    for shift in range(4):
        g.replay()
        assert ta.all(y == x * 2 + 1)
        assert total.item() == ta.sum(x * 2 + 1).item()
        x += shift
    kept, g = y, None
    gc.collect()
    eager = [ramp() for _ in range(20)]  # memory that is not the graph's
    assert ta.all(kept == (x - 3) * 2 + 1)
    assert all(bool(ta.all(one == ramp())) for one in eager)


def test_a_kernel_is_compiled_in_the_block():
    x = ramp("float64")
    with cuda.graph() as g:
        y = ta.cumulative_sum(ta.exp(-x) * 3.25)
    g.replay()
    assert ta.all(y == ta.cumulative_sum(ta.exp(-x) * 3.25))


def test_a_replay_on_another_stream_is_ordered():
    x, side = ramp(), cuda.Stream()
    with cuda.graph() as g:
        y = x + 1
    with cuda.stream(side):
        for _ in range(5):
            x += 1
            g.replay()
            z = y * 2
    assert ta.all(z == (ramp() + 6) * 2)


def test_an_update_takes_other_arrays():
    x, y = ramp(), ramp()
    with cuda.graph() as g:
        x += 1
        x *= 2
    with g.update():
        y += 1
        y *= 2
    g.replay()
    assert ta.all(x == ramp())
    assert ta.all(y == (ramp() + 1) * 2)
    with pytest.raises(CaptureError, match="expected the operations that were captured first"):
        capture_three(g, y)


def capture_three(g, y):
    with g.update():
        ta.sin(y, out=y)
        ta.add(y, 1, out=y)
        ta.add(y, 1, out=y)


def test_a_copy_to_the_host_is_refused():
    x = ramp()
    with pytest.raises(CaptureError, match="make it before the capture starts"), cuda.graph():
        ta.to_numpy(x)
    assert ta.all(x == ramp())
