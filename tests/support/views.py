"""The same memory and the same views of it in NumPy and in tilearray."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices

import tilearray as ta

SHAPES = array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def pair(shape: tuple[int, ...], dtype: str = "int16") -> tuple[np.ndarray, ta.Array]:
    """An ndarray, and an Array over the very same memory."""
    source = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    return source, ta.asarray(source, copy=False)


def assert_same_view(mine: ta.Array, theirs: np.ndarray) -> None:
    """Same shape, dtype, values; and where anything is shown, the same address and the same strides."""
    array = ta.to_numpy(mine)
    assert mine.shape == theirs.shape
    assert mine.dtype == theirs.dtype
    assert mine.tolist() == theirs.tolist()
    if theirs.size:
        assert array.ctypes.data == theirs.ctypes.data
        steps = zip(mine.shape, mine.strides, theirs.strides, strict=True)
        assert all(step * theirs.itemsize == wanted for size, step, wanted in steps if size > 1)


@st.composite
def views(draw: st.DrawFn) -> tuple[ta.Array, np.ndarray]:
    """The same chain of views, by both libraries."""
    theirs, mine = pair(draw(SHAPES))
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["index", "index", "permute", "flip", "broadcast"]))
        if kind == "index":
            key = draw(basic_indices(theirs.shape, max_dims=5, allow_newaxis=True, allow_ellipsis=True))
            mine, theirs = mine[key], part(theirs, key)
        elif kind == "permute":
            axes = draw(st.permutations(range(theirs.ndim)))
            mine, theirs = mine.permute_dims(axes), theirs.transpose(axes)
        elif kind == "flip":
            axes = tuple(draw(st.sets(st.integers(0, theirs.ndim - 1)))) if theirs.ndim else ()
            mine, theirs = ta.flip(mine, axis=axes), flipped(theirs, axes)
        else:
            shape = (draw(st.integers(0, 3)), *theirs.shape)
            mine, theirs = ta.broadcast_to(mine, shape), np.broadcast_to(theirs, shape)
    return mine, theirs


def part(array: np.ndarray, key: object) -> np.ndarray:
    """The view that a key selects, where NumPy would give a scalar as well."""
    found = array[key]
    return found if isinstance(found, np.ndarray) else array[(*(key if isinstance(key, tuple) else (key,)), ...)]


def flipped(array: np.ndarray, axes: tuple[int, ...] | None) -> np.ndarray:
    return np.flip(array, axes) if array.ndim else array
