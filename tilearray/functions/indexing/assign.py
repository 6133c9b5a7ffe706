"""Assignment to a selection: by integers, slices, ``...`` and ``newaxis``, which is a view, or by arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilearray.engine.devices import common_device
from tilearray.engine.signature import ArrayBase, overlap
from tilearray.errors import OperandError, ShapeError
from tilearray.functions.indexing.gather import scatter, without_leading_axes
from tilearray.functions.indexing.keys import has_arrays
from tilearray.functions.indexing.views import get
from tilearray.ops.arithmetic import where
from tilearray.ops.execute import check_target, copy_of, execute, fill, stored_as
from tilearray.ops.moves import assign
from tilearray.ops.numbers import scalar_array
from tilearray.promotion.scalars import as_number, classify


def set(x: ArrayBase, key: Any, value: Any) -> None:
    """Assign an Array (broadcast, cast within its kind) or a number to the selection of `key`.

    As in NumPy, leading axes of size 1 that the target does not have are dropped from the value.
    """
    if isinstance(value, np.generic):
        value = scalar_array(value, x._signature.device, "setitem")
    if classify(value) is None and not isinstance(value, ArrayBase):
        raise OperandError(
            f"setitem: expected a tilearray Array or a number, got {type(value).__name__}; write ta.asarray(value)"
        )
    if isinstance(key, ArrayBase) and key._signature.dtype.kind == "b" and not _one_by_one(x, key, value):
        _set_where(x, key, value)
    elif has_arrays(key):
        _set_at(x, key, value)
    else:
        _set_view(get(x, key), value)


def _set_view(target: ArrayBase, value: Any) -> None:
    if not isinstance(value, ArrayBase):
        fill(target, value, "setitem")
        return
    check_target("setitem", target)
    if value._buffer is target._buffer and value._offset == target._offset and value._signature is target._signature:
        return  # the last step of `x[key] += y`: the value is already there
    execute(assign, (without_leading_axes(value, target._signature.layout.ndim),), target)


def _one_by_one(x: ArrayBase, mask: ArrayBase, value: Any) -> bool:
    """Whether the first axis of a value has one element for each element that a mask selects."""
    rest = x._signature.layout.ndim - mask._signature.layout.ndim
    return isinstance(value, ArrayBase) and value._signature.layout.ndim > rest >= 0


def _set_at(x: ArrayBase, key: Any, value: Any) -> None:
    """Assign a number, or an array in the dtype of `x` and in memory of its own, at the indices of arrays."""
    check_target("setitem", x)
    if isinstance(value, ArrayBase):
        found = _in_dtype_of(x, value)
        value = copy_of(value) if found is value and overlap(x, value) else found
    scatter(x, key, value)


def _in_dtype_of(x: ArrayBase, value: ArrayBase) -> ArrayBase:
    """The value in the dtype of the target, cast as any assignment casts it."""
    common_device("setitem", [x._signature, value._signature])
    dtype = x._signature.dtype
    return value if value._signature.dtype == dtype else stored_as(assign, value, dtype)


def _set_where(x: ArrayBase, mask: ArrayBase, value: Any) -> None:
    """Assign a number, or an array that broadcasts over the other axes, where a mask over the leading axes is true."""
    shape, masked = x._signature.layout.shape, mask._signature.layout
    if masked.shape != shape[: masked.ndim]:
        raise ShapeError(
            f"setitem: expected a mask over the leading axes of shape {shape}, got shape {masked.shape}; "
            f"write ta.broadcast_to(mask, {shape})"
        )
    check_target("setitem", x)
    is_array, dtype = isinstance(value, ArrayBase), x._signature.dtype
    value = _in_dtype_of(x, value) if is_array else as_number(value, dtype, "setitem")
    rest = len(shape) - masked.ndim
    spread = mask._view(masked.expand_dims(range(masked.ndim, len(shape)))) if rest else mask
    execute(where, (spread, value, x), x)
