"""Reductions, sorts and sets allocate about as much as NumPy does for the same dtype."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilearray as ta
from tilearray_host.threads import most_threads

SIZE = 2**21
SLACK = 2**20 * (1 + most_threads())
"""Bytes: the blocks of each thread, NumPy's buffers, and what other modules allocate meanwhile."""

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sum": (ta.sum, lambda x: np.sum(x, dtype=x.dtype)),
    "prod": (ta.prod, lambda x: np.prod(x, dtype=x.dtype)),
    "mean": (ta.mean, np.mean),
    "max": (ta.max, np.max),
    "min": (lambda x: ta.min(x, axis=0), lambda x: np.min(x, axis=0)),
    "all": (ta.all, np.all),
    "any": (lambda x: ta.any(x, axis=0), lambda x: np.any(x, axis=0)),
    "count_nonzero": (ta.count_nonzero, np.count_nonzero),
    "var": (ta.var, np.var),
    "std": (lambda x: ta.std(x, axis=0), lambda x: np.std(x, axis=0)),
    "argmax": (ta.argmax, np.argmax),
    "argmin": (lambda x: ta.argmin(x, axis=0), lambda x: np.argmin(x, axis=0)),
    "sort": (ta.sort, np.sort),
    "sort down": (lambda x: ta.sort(x, descending=True), np.sort),
    "argsort": (ta.argsort, lambda x: np.argsort(x, kind="stable")),
    "argsort down": (lambda x: ta.argsort(x, descending=True), lambda x: np.argsort(x, kind="stable")),
    "unique_values": (ta.unique_values, lambda x: np.unique(x, equal_nan=False)),
    "unique_inverse": (ta.unique_inverse, lambda x: np.unique(x, return_inverse=True, equal_nan=False)),
    "unique_counts": (ta.unique_counts, lambda x: np.unique(x, return_counts=True, equal_nan=False)),
    "nonzero": (ta.nonzero, np.nonzero),
    "isin": (lambda x: ta.isin(x, x[:999]), lambda x: np.isin(x, x[:999])),
    "cumulative_sum": (ta.cumulative_sum, np.cumsum),
    "cumulative_prod": (ta.cumulative_prod, np.cumprod),
    "nansum": (ta.nansum, lambda x: np.nansum(x, dtype=x.dtype)),
    "nanmean": (ta.nanmean, np.nanmean),
    "nanvar": (ta.nanvar, np.nanvar),
    "nanstd": (lambda x: ta.nanstd(x, axis=0), lambda x: np.nanstd(x, axis=0)),
    "nanmax": (ta.nanmax, np.nanmax),
    "nanmin": (lambda x: ta.nanmin(x, axis=0), lambda x: np.nanmin(x, axis=0)),
    "nanargmax": (ta.nanargmax, np.nanargmax),
    "nancumsum": (ta.nancumsum, np.nancumsum),
    "ptp": (ta.ptp, np.ptp),
    "trapezoid": (ta.trapezoid, np.trapezoid),
    "lexsort": (lambda x: ta.lexsort((x, x)), lambda x: np.lexsort((x, x))),
}
OF_NUMPYS_DTYPES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "average": (lambda x: ta.average(x, weights=x), lambda x: np.average(x, weights=x)),
    "median": (ta.median, np.median),
    "quantile": (lambda x: ta.quantile(x, [0.2, 0.7]), lambda x: np.quantile(x, [0.2, 0.7])),
    "percentile": (lambda x: ta.percentile(x, 30), lambda x: np.percentile(x, 30)),
    "nanmedian": (ta.nanmedian, np.nanmedian),
    "histogram": (ta.histogram, np.histogram),
    "unique": (ta.unique, np.unique),
    "union1d": (lambda x: ta.union1d(x, x), lambda x: np.union1d(x, x)),
    "intersect1d": (lambda x: ta.intersect1d(x, x), lambda x: np.intersect1d(x, x)),
    "setdiff1d": (lambda x: ta.setdiff1d(x, x[:99]), lambda x: np.setdiff1d(x, x[:99])),
    "setxor1d": (lambda x: ta.setxor1d(x, x), lambda x: np.setxor1d(x, x)),
}
"""NumPy computes these; of bfloat16, which it does not know, in a copy in float32."""


def peak(call: Callable[[], Any]) -> int:
    """The most memory that a call has at a time."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_at_most_twice_the_memory_of_numpy(name, dtype):
    check(*FUNCTIONS[name], dtype)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("name", OF_NUMPYS_DTYPES)
def test_what_numpy_computes_takes_at_most_twice_its_memory(name, dtype):
    check(*OF_NUMPYS_DTYPES[name], dtype)


def check(ours: Callable[[Any], Any], theirs: Callable[[Any], Any], dtype: str) -> None:
    """Compare the memory of a call with that of NumPy's."""
    mine = ta.asarray(np.arange(SIZE) % 100).astype(dtype)
    same = ta.to_numpy(mine).astype("float32") if dtype == "bfloat16" else ta.to_numpy(mine)  # NumPy has no bfloat16
    with np.errstate(all="ignore"):
        allowed = 2 * peak(lambda: theirs(same)) + SLACK
    assert peak(lambda: ours(mine)) <= allowed
