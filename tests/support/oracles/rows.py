"""Functions that go over rows several times: in one launch the same bits as in several, and close to float64."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilearray as ta
from support.oracles.reductions import compare, drawn_array, drawn_axis, drawn_shape, drawn_view, picks
from tilearray.engine.caches import PLANS

FUNCTIONS = ("softmax", "log_softmax", "logsumexp")
DTYPES = ("float16", "bfloat16", "float32", "float64")


def check_one_launch(device: Any, seed: int, count: int, elements: int, kinds: int = 0) -> int:
    """Compare the functions with those of a device that does not hold rows; return how many took one launch."""
    rng = np.random.default_rng(seed)
    held = 0
    for number, pick in picks(rng, seed, count, kinds):
        name, dtype = str(pick.choice(FUNCTIONS)), str(pick.choice(DTYPES))
        values = drawn_array(rng, dtype, drawn_shape(pick, elements))
        x = drawn_view(pick, ta.asarray(values, device=device))
        axis = drawn_axis(pick, x.ndim, single=False)
        told = f"#{number} {name} {dtype} {x.shape} {x.strides} axis={axis}"
        launches = getattr(device.backend, "launches", 0)
        found = getattr(ta, name)(x, axis=axis)
        held += getattr(device.backend, "launches", 0) == launches + 1
        expected = in_several(device, name, x, axis)
        assert found.strides == expected.strides, told
        compare(expected, found, told)
        check_close(name, ta.to_numpy(x), axis, ta.to_numpy(found), told)
    return held


def in_several(device: Any, name: str, x: Any, axis: Any) -> Any:
    """Return what a function gives if its device holds no rows."""
    before = device.backend.holds_rows
    PLANS.clear()
    device.backend.holds_rows = False
    try:
        return getattr(ta, name)(x, axis=axis)
    finally:
        device.backend.holds_rows = before
        PLANS.clear()


def check_close(name: str, x: np.ndarray, axis: Any, found: np.ndarray, told: str) -> None:
    """Compare with NumPy's float64, where the elements are finite."""
    given, bound = x.astype(np.float64), float(ta.finfo(x.dtype).eps)
    if not np.isfinite(given).all():
        return
    largest = given.max(axis=axis, keepdims=True)
    total = np.exp(given - largest).sum(axis=axis, keepdims=True)
    if name == "softmax":
        want = np.exp(given - largest) / total
    else:
        want = np.log(total) + largest
        want = given - want if name == "log_softmax" else want.squeeze(axis)
    size = 1 + np.abs(want) if name == "softmax" else 1 + np.abs(want) + np.abs(given).max()
    slack = 6 * max(bound, 2.0**-23 if x.dtype != np.float64 else 0)
    assert (np.abs(found.astype(np.float64) - want) <= slack * size).all(), told
