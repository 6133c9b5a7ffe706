"""Indexing by integer arrays and masks, joining and repeating, as NumPy does it."""

from __future__ import annotations

from typing import Any

import numpy as np


def get(x: np.ndarray, key: Any, /) -> np.ndarray:
    """Return a copy of the elements that a key selects. Raise IndexError if an index is out of bounds.

    >>> get(np.arange(6).reshape(2, 3), (np.array([1, 0]), 2))
    array([5, 2])
    """
    return np.asarray(x[key])


join = np.concatenate


def repeat(x: np.ndarray, count: int, axis: int | None, /) -> np.ndarray:
    """Return an array with every element `count` times; along the only axis of the result if `axis` is None."""
    return x.repeat(count, axis)


def set(x: np.ndarray, key: Any, value: np.ndarray, /) -> None:
    """Assign to the elements that a key selects. If an element occurs several times, the last write counts."""
    x[key] = value
