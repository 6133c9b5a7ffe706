"""Reductions, sorts and sets allocate about as much as NumPy does for the same dtype."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilearray as ta

SIZE = 2**21
SLACK = 2**21
"""Bytes: blocks, NumPy's buffers, and what other modules allocate meanwhile."""

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
}


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
    ours, theirs = FUNCTIONS[name]
    mine = ta.asarray(np.arange(SIZE) % 100).astype(dtype)
    same = ta.to_numpy(mine).astype("float32") if dtype == "bfloat16" else ta.to_numpy(mine)  # NumPy has no bfloat16
    with np.errstate(all="ignore"):
        allowed = 2 * peak(lambda: theirs(same)) + SLACK
    assert peak(lambda: ours(mine)) <= allowed
