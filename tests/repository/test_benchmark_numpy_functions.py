"""The benchmark of NumPy's functions: its rows are functions of tilearray, with NumPy's results."""

import warnings

import numpy as np
import pytest

import tilearray as ta
from benchmarks import numpy_functions as benchmark

ROWS = [row for row in benchmark.ROWS if ".fft." not in row.name]


@pytest.fixture(scope="module")
def arrays():
    """All arrays of the benchmark, as NumPy's."""
    rng = np.random.default_rng(2)
    return {name: make(rng, 10_000) for name, make in benchmark.ARRAYS.items()}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows_are_numpys(arrays, row):
    ours = {name: ta.asarray(array) for name, array in arrays.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of roots and logarithms of negative numbers
        found, wanted = (eval(row.name, {"lib": lib, **given}) for lib, given in ((ta, ours), (np, arrays)))
    mine, theirs = np.asarray(benchmark.first_of(found)), benchmark.first_of(wanted)
    np.testing.assert_allclose(mine, theirs, rtol=1e-2, atol=1e-3, equal_nan=True)


def test_no_row_stands_twice():
    assert len({row.name for row in benchmark.ROWS}) == len(benchmark.ROWS) > 250
