"""The benchmark of everyday shapes: its rows are functions of tilearray, with NumPy's results."""

import numpy as np
import pytest

import tilearray as ta
from benchmarks import everyday

ROWS = [row for row in everyday.ROWS if "fft" not in row.text]


def operand(rng, shape, dtype, longest):
    """The array of a row, with the longest axis cut to 7."""
    if not shape:
        return None
    cut = tuple([min(extent, 7) if extent in (longest, 224, 512) else min(extent, 12) for extent in shape])
    return (rng.normal(size=cut) * (1 if dtype == "float32" else 5)).astype("float32" if dtype == "bfloat16" else dtype)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows_are_numpys(row):
    rng = np.random.default_rng(2)
    x, y = (operand(rng, shape, row.dtype, max(row.x)) for shape in (row.x, row.y))
    i = rng.integers(0, len(x), 5)
    host = {"lib": np, "x": x, "y": y, "i": i}
    ours = {name: ta.asarray(array) if isinstance(array, np.ndarray) else array for name, array in host.items()}
    wanted = eval(row.text, host)
    found = eval(row.text, {**ours, "lib": ta})
    np.testing.assert_allclose(ta.to_numpy(found), wanted, rtol=1e-4, atol=1e-4)
