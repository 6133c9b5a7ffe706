"""NumPy's names on the GPU: against NumPy on the host, and a table of calls."""

from __future__ import annotations

import os

import pytest
from support.oracles import numpy_names
from support.oracles.name_calls import LINES, check_line

CASES = int(os.environ.get("TILEARRAY_EXAMPLES", "40"))

ON_HOST = (
    "vectorize",
    *("quantile(x, 0.3, weights", "quantile(i, 0.4, 0, weights", "nanquantile(n, 0.3, weights"),
    *("percentile(x, [25, 50], 1, weights", "nanpercentile(q, [10, 90], 0, weights"),
    *("polyval([1, 2], i)", "r_[u, [u[0]], u]", "x[ix_", "ix_([]"),  # lists beside arrays on a GPU
)
"""Calls that are errors for arrays on a GPU."""


@pytest.mark.parametrize("name", numpy_names.DRAWN)
def test_results_are_those_of_the_host(name):
    numpy_names.check_drawn("cuda:0", name, 3, CASES)


@pytest.mark.parametrize(("seed", "largest"), [(1, 7), (2, 60)])
def test_repeats(seed, largest):
    numpy_names.check_repeats("cuda:0", seed, CASES, largest)


@pytest.mark.parametrize(("seed", "largest"), [(1, 7), (2, 30)])
def test_paddings(seed, largest):
    numpy_names.check_paddings("cuda:0", seed, CASES, largest)


def test_windowed_sums():
    numpy_names.check_windowed_sums("cuda:0", 2, 400)


@pytest.mark.parametrize(
    "name",
    ["check_deletions", "check_long_products", "check_windows", "check_options", "check_refusals", "check_python_data"],
)
def test_others(name):
    getattr(numpy_names, name)("cuda:0")


@pytest.mark.parametrize("line", LINES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")
def test_a_name_gives_numpys_result(line):
    check_line(line, "float32", "cuda:0", ON_HOST)
