"""Pointwise functions written for Triton on an emulated GPU, against NumPy."""

from __future__ import annotations

import pytest
from support.kernels import needs_triton

import tilearray as ta

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize("name", ["_cases", "_within_others"])
def test_on_the_device(process, name):
    process.pool.submit(globals()[name]).result()


def _cases():
    from support.interpreter.emulated_gpu import emulated_device

    (ta.ones(3, device=emulated_device()) + 1).tolist()  # the first launch puts other functions into libdevice
    from support.jit_functions import check

    check(emulated_device())


def _within_others():
    """In a fused function, over a list of arrays, in place, and of bfloat16."""
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.jit_functions import chosen, step

    device = emulated_device()
    x = [ta.asarray(np.arange(size, dtype=np.float32), device=device) for size in (3, 700, 2000)]
    before = device.backend.launches
    found = ta.foreach(lambda x: step(x * 2, x, 0.5)[0] + 1, x)
    assert device.backend.launches == before + 1
    for each, given in zip(found, x, strict=True):
        assert np.array_equal(ta.to_numpy(each), ta.to_numpy(given) * np.float32(1.5) + 1)
    step(x[0], x[0][::-1], 0.25, out0=x[0])
    assert ta.to_numpy(x[0]).tolist() == [-0.5, 0.75, 2.0]
    narrow = ta.asarray(np.array([1.5, -2.0, 3.0], dtype=np.float32), device=device).astype("bfloat16")
    found, moved = chosen(narrow > 0, narrow, -narrow, 2)
    assert ta.to_numpy(found).tolist() == [1.5, 2.0, 3.0]
    assert ta.to_numpy(moved).tolist() == [3.0, 0.0, 5.0]
