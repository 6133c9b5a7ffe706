"""Lets NumPy copy our arrays from a GPU while a test compares, and at no other time.

Everywhere else `np.asarray` of an array on a GPU is an error, as it is of CuPy's arrays and torch's: a client's
function that would compute on the host fails, and tests that know such libraries take the way that they take for them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import tilearray as ta

_COMPARISONS = (
    *("assert_allclose", "assert_almost_equal", "assert_approx_equal", "assert_array_almost_equal"),
    *("assert_array_almost_equal_nulp", "assert_array_compare", "assert_array_equal", "assert_array_less"),
    *("assert_array_max_ulp", "assert_equal"),
)


def comparisons_copy() -> None:
    """Replace NumPy's functions that compare, before a test imports them."""
    for name in _COMPARISONS:
        setattr(np.testing, name, _allowed(getattr(np.testing, name)))


def copied_by_name(module: Any, name: str) -> None:
    """Replace a function of a client's tests that copies arrays to NumPy and has a way for each library it knows."""
    theirs = getattr(module, name)

    def copied(x: Any, *args: Any, **kwargs: Any) -> np.ndarray[Any, Any]:
        return np.array(ta.to_numpy(x)) if isinstance(x, ta.Array) else theirs(x, *args, **kwargs)

    setattr(module, name, copied)


def _allowed(compare: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(compare)
    def comparing(*args: Any, **kwargs: Any) -> Any:
        ta.set_transfer_guard("allow")
        try:
            return compare(*args, **kwargs)
        finally:
            ta.set_transfer_guard("error")

    return comparing
