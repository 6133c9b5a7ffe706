"""Index keys with integer arrays and masks, drawn for a shape, and the elements that NumPy selects with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

INDEX_DTYPES = ["int64", "int32", "uint8", "int8", "uint64", "int16", "uint32", "uint16"]


@st.composite
def index_arrays(draw: Any, size: int, shape: tuple[int, ...]) -> np.ndarray:
    """An array that broadcasts to a shape, of indices of an axis: negative ones, too; sometimes strided."""
    given = tuple(1 if extent and draw(st.integers(0, 3)) == 0 else extent for extent in shape)
    given = given[draw(st.integers(0, len(given) - 1)) :] if 0 not in given and draw(st.booleans()) else given
    dtype = np.dtype(draw(st.sampled_from(INDEX_DTYPES)))
    least = -size if dtype.kind == "i" else 0
    seed = draw(st.integers(0, 2**16))
    wide = (*given[:-1], 2 * given[-1])
    drawn = np.random.default_rng(seed).integers(least, max(size, 1), wide).astype(dtype)
    return (
        drawn[..., ::2] if draw(st.booleans()) else drawn[..., ::-2] if draw(st.booleans()) else drawn[..., : given[-1]]
    )


@st.composite
def keys(draw: Any, shape: tuple[int, ...], *, masks: bool = False) -> tuple[Any, ...]:
    """A key with at least one array for a shape of at least one axis."""
    common = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=2)))
    if 0 in shape:
        common = (*common[:-1], 0)
    parts: list[Any] = []
    arrays = draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    for axis, size in enumerate(shape):
        kind = draw(st.sampled_from(["slice", "slice", "int"]))
        if axis in arrays:
            part: Any = draw(index_arrays(size, common))
            if masks and draw(st.integers(0, 3)) == 0 and len(arrays) == 1:
                part = np.random.default_rng(draw(st.integers(0, 99))).random(size) < 0.5
        elif kind == "int" and size:
            part = draw(st.integers(-size, size - 1))
        else:
            part = draw(st.sampled_from([slice(None), slice(None, None, -1), slice(1, None, 2), slice(0, 2)]))
        parts.append(part)
    cut = draw(st.integers(max(arrays) + 1, len(shape))) if draw(st.booleans()) else len(shape)
    parts = parts[:cut]
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, cut)) if cut == len(shape) else cut, Ellipsis)
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), None)
    return tuple(parts)


def as_ours(key: tuple[Any, ...], device: Any) -> tuple[Any, ...]:
    """The key with its arrays on a device."""
    import tilearray as ta

    return tuple(ta.asarray(part, device=device) if isinstance(part, np.ndarray) else part for part in key)
