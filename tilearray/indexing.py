"""Basic indexing: each selection by integers, slices, ``...`` and ``newaxis`` is a view; assignment goes through it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilearray.base import A, ArrayBase
from tilearray.elementwise import check_target, execute, fill
from tilearray.errors import IndexingError, OperandError
from tilearray.operands import scalar_array
from tilearray.scalars import classify


def get(x: A, key: Any) -> A:
    """Return the view that `key` selects."""
    _refuse_arrays(key)
    layout, shift = x._signature.layout.index(key)
    return x._view(layout, shift)


def set(x: ArrayBase, key: Any, value: Any) -> None:
    """Assign an Array (broadcast, cast within its kind) or a number to what `key` selects.

    As in NumPy, leading axes of size 1 that the target does not have are dropped from the value.
    """
    target = get(x, key)
    if classify(value) is not None:
        fill(target, value, "setitem")
        return
    if isinstance(value, np.generic):
        value = scalar_array(value, x._signature.device, "setitem")
    if not isinstance(value, ArrayBase):
        raise OperandError(
            f"setitem: expected a tilearray Array or a number, got {type(value).__name__}; write ta.asarray(value)"
        )
    check_target("setitem", target)
    if value._buffer is target._buffer and value._offset == target._offset and value._signature is target._signature:
        return  # what `x[key] += y` comes to in the end: it is there already
    from tilearray.ops import assign

    execute(assign, (_without_leading_axes(value, target._signature.layout.ndim),), target)


def _without_leading_axes(value: A, ndim: int) -> A:
    layout = value._signature.layout
    spare = max(layout.ndim - ndim, 0)
    return value._view(layout.squeeze(range(spare))) if spare and layout.shape[:spare] == (1,) * spare else value


def _refuse_arrays(key: Any) -> None:
    for part in key if isinstance(key, tuple) else (key,):  # pyright: ignore[reportUnknownVariableType]
        if isinstance(part, (ArrayBase, np.ndarray, list)) and not _is_integer(part):
            raise IndexingError(
                "getitem: indexing with arrays, masks and lists is not in tilearray yet; "
                "write integers, slices, ... or None"
            )


def _is_integer(part: Any) -> bool:
    return isinstance(part, (ArrayBase, np.ndarray)) and part.shape == () and part.dtype.kind in "iu"  # type: ignore[attr-defined]
