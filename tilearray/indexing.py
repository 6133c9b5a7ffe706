"""Basic indexing: each selection by integers, slices, ``...`` and ``newaxis`` is a view; assignment goes through it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilearray.base import A, ArrayBase
from tilearray.elementwise import check_target, execute, fill
from tilearray.errors import IndexingError, OperandError, ShapeError
from tilearray.operands import scalar_array
from tilearray.scalars import classify


def get(x: A, key: Any) -> A:
    """Return the view that `key` selects."""
    _refuse_arrays(key)
    layout, shift = x._signature.layout.index(key)
    return x._view(layout, shift)


def set(x: ArrayBase, key: Any, value: Any) -> None:
    """Assign an Array (broadcast, cast within its kind) or a number to what `key` selects.

    A key that is a bool Array selects where it is true. As in NumPy, leading axes of size 1 that the target does not
    have are dropped from the value.
    """
    if isinstance(key, ArrayBase) and key._signature.dtype.kind == "b":
        _set_where(x, key, value)
        return
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


def _set_where(x: ArrayBase, mask: ArrayBase, value: Any) -> None:
    """Assign where a mask over the leading axes is true: a number, or what broadcasts over the other axes."""
    from tilearray.ops import where

    shape, masked = x._signature.layout.shape, mask._signature.layout
    if masked.shape != shape[: masked.ndim]:
        raise ShapeError(
            f"setitem: expected a mask over the leading axes of shape {shape}, got shape {masked.shape}; "
            f"write ta.broadcast_to(mask, {shape})"
        )
    rest = len(shape) - masked.ndim
    if isinstance(value, ArrayBase) and value._signature.layout.ndim > rest:
        raise IndexingError(
            "setitem: a value for each selected element is not in tilearray yet; "
            "write ta.where(mask, values, x), with values of the shape of x"
        )
    spread = mask._view(masked.expand_dims(range(masked.ndim, len(shape)))) if rest else mask
    execute(where, (spread, value, x), x)


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
