"""The benchmark of sorts: its calls run on the host, and agree with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tilearray as ta
from benchmarks import sorting


@pytest.mark.parametrize("row", sorting.ROWS, ids=lambda row: row.name)
def test_calls_are_numpys(row):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 100, tuple(min(extent, 30) for extent in row.shape)).astype(row.dtype)
    found = eval(row.tilearray, {"lib": ta, "x": ta.asarray(x, device="cpu")})
    assert row.cupy is not None
    np.testing.assert_array_equal(ta.to_numpy(found), eval(row.cupy, {"lib": np, "x": x}))
