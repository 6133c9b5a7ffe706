"""The same view of the same values in NumPy and tilearray, and results as copies in C order."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

import tilearray as ta
from support.drawing import pool, shapes, views
from support.oracles.formats import ARITHMETIC, STORAGE

NAMES = st.sampled_from([*ARITHMETIC, *STORAGE])


class Pair(NamedTuple):
    """The same view of the same values, by both libraries."""

    mine: ta.Array
    theirs: np.ndarray


@st.composite
def pairs(draw: st.DrawFn, shape: tuple[int, ...] | None = None, name: str | None = None) -> Pair:
    view = draw(views(draw(shapes()) if shape is None else shape))
    flat = np.roll(pool(draw(NAMES) if name is None else name), -draw(st.integers(0, 65535)))
    return Pair(view.of_tilearray(ta.asarray(flat.copy())), view.of_numpy(flat))


def assert_same(mine: ta.Array, theirs: np.ndarray, *sources: ta.Array) -> None:
    """The same shape, dtype and bits, in C order, in memory of its own."""
    assert mine.shape == theirs.shape
    assert mine.dtype == theirs.dtype
    sizes = [max(size, 1) for size in mine.shape]
    assert mine.strides == tuple(math.prod(sizes[axis + 1 :]) for axis in range(mine.ndim))
    assert ta.to_numpy(mine).tobytes() == theirs.tobytes()
    assert all(mine._buffer is not source._buffer for source in sources)
