"""Assignment to a selection: by integers, slices, ``...`` and ``newaxis``, which is a view, or by arrays.

A value is an Array, a number, or data of any kind that `asarray` reads. Lists of numbers count as numbers: they take
the dtype of the target, and an integer must fit. Everything else is an array of its own dtype. Data on the host that
are assigned to an array on a GPU are copied there first; Arrays never move by themselves.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from tilearray.engine.context import RECORDINGS, STATE
from tilearray.engine.devices import CPU, common_device, using_device
from tilearray.engine.signature import ArrayBase, before_access, from_host, overlap
from tilearray.errors import DTypeError, ImplicitTransferError, OperandError, ShapeError, type_name
from tilearray.functions.conversion import to_device
from tilearray.functions.indexing.keys import BOOLS, PLAIN, has_arrays, is_index, is_mask_over
from tilearray.functions.indexing.scatter import scatter, scatter_selected, without_leading_axes
from tilearray.functions.indexing.views import get, switched
from tilearray.functions.python_data import assigned_data, is_sequence
from tilearray.interchange.numpy import from_host_object
from tilearray.ops.arithmetic import choose
from tilearray.ops.execute import check_target, copy_of, execute, fill, store, stored_as
from tilearray.ops.hooks import HOOKS
from tilearray.ops.moves import assign
from tilearray.ops.numbers import scalar_array
from tilearray.promotion.scalars import StandIn, as_number, classify

_NUMBERS = frozenset({bool, int, float, complex})


def set(x: ArrayBase, key: Any, value: Any, /) -> None:
    """Assign a value (broadcast, cast within its kind) to the selection of `key`.

    As in NumPy, leading axes of size 1 that the target does not have are dropped from the value. Where the active
    semantics are NumPy's, a value of a higher kind is truncated.
    """
    if value.__class__ not in _NUMBERS and not issubclass(type(value), ArrayBase):
        host = _host_data(x, value)
        if host is not None and key.__class__ in PLAIN and _copied(x, key, host):
            return
        value = taken(x, value if host is None else host)
    if key.__class__ in PLAIN or not (is_index(key) or has_arrays(key)):
        set_view(get(x, key), value)
    elif isinstance(key, BOOLS):
        set_view(switched(x, key), value)
    elif isinstance(key, ArrayBase) and key._signature.dtype.kind == "b" and not _one_by_one(x, key, value):
        _set_where(x, key, value)
    else:
        check_target("setitem", x)
        scatter(x, key, _apart(x, value))


def _host_data(x: ArrayBase, value: Any) -> np.ndarray | None:
    """Return the ndarray of an ndarray or of nested lists that are assigned to `x`; None for all else."""
    if value.__class__ is np.ndarray:
        return from_host_object(value, copy=None, function="setitem")
    try:
        return assigned_data(value, x._signature.dtype) if is_sequence(value) else None
    except ImplicitTransferError:  # of a list that holds an Array on a GPU
        return None


def _copied(x: ArrayBase, key: Any, host: np.ndarray) -> bool:
    """Assign an ndarray to an array on the host, if NumPy does it without a cast; return whether it is done."""
    signature = x._signature
    if signature.device is not CPU or host.dtype is not signature.dtype or signature.layout.overlaps_itself:
        return False
    if x._buffer.readonly:
        return False
    if RECORDINGS:
        before_access(x)
    try:
        CPU.backend.elements(x)[key] = host
    except (IndexError, ValueError):  # the general way has the words for it
        return False
    return True


def taken(x: ArrayBase, value: Any) -> Any:
    """Return data of another kind as an Array, on the device of `x` if they are on the host; numbers stay."""
    device = x._signature.device
    host = _host_data(x, value)
    if host is not None:
        return to_device(from_host(host, x.__class__), device)
    if issubclass(type(value), ArrayBase) or classify(value) is not None:
        return value
    if isinstance(value, np.generic):
        return scalar_array(value, device, "setitem")
    try:
        with using_device(device):
            return HOOKS.asarray(value)
    except OperandError as error:
        raise OperandError(
            f"setitem: expected an Array, a number, or data that asarray takes, got {type_name(value)}; "
            f"write x[...] = ta.asarray(value)"
        ) from error


def set_view(target: ArrayBase, value: Any) -> None:
    """Assign an Array or a number to all elements of a view."""
    if issubclass(type(value), ArrayBase):
        mine, theirs = target._signature, value._signature
        alike = theirs is mine and value.__class__ is target.__class__
        if alike and value._buffer is target._buffer and value._offset == target._offset:
            check_target("setitem", target)  # the last step of `x[key] += y`: the value is already there
        elif theirs.layout.ndim > mine.layout.ndim:
            store(target, without_leading_axes(value, mine.layout.ndim))
        else:
            store(target, value)
        return
    try:
        fill(target, value, "setitem")
    except DTypeError as error:
        fill(target, _truncated(value, error), "setitem")


def _truncated(value: Any, error: DTypeError) -> Any:
    """Return a float without its fraction, as NumPy's semantics assign it to integers; others raise the error."""
    number: Any = value.number if isinstance(cast(object, value), StandIn) else value
    if STATE.get().semantics.inplace != "numpy" or not isinstance(number, float) or not math.isfinite(number):
        raise error
    return math.trunc(value)


def _one_by_one(x: ArrayBase, mask: ArrayBase, value: Any) -> bool:
    """Whether the first axis of a value has one element for each element that a mask selects."""
    rest = x._signature.layout.ndim - mask._signature.layout.ndim
    return issubclass(type(value), ArrayBase) and value._signature.layout.ndim > rest >= 0


def set_selected(selection: Any, value: Any) -> None:
    """Assign a value to the elements of a selection that also has a `key`, the same selection for NumPy."""
    check_target("setitem", selection.view)
    scatter_selected(selection, _apart(selection.view, taken(selection.view, value)))


def _apart(x: ArrayBase, value: Any) -> Any:
    """The number that the target holds, or an array of its dtype in memory of its own."""
    if not issubclass(type(value), ArrayBase):
        return _number_for(x, value)
    found = _in_dtype_of(x, value)
    return copy_of(value) if found is value and overlap(x, value) else found


def _number_for(x: ArrayBase, value: Any) -> Any:
    """Return a number as the kind of number that the target holds."""
    dtype = x._signature.dtype
    try:
        return as_number(value, dtype, "setitem")
    except DTypeError as error:
        return as_number(_truncated(value, error), dtype, "setitem")


def _in_dtype_of(x: ArrayBase, value: ArrayBase) -> ArrayBase:
    """The value in the dtype of the target, cast as any assignment casts it."""
    mine, theirs = x._signature, value._signature
    if theirs.device is not mine.device:
        common_device("setitem", [mine, theirs])
    return value if theirs.dtype is mine.dtype else stored_as(assign, value, mine.dtype)


def _set_where(x: ArrayBase, mask: ArrayBase, value: Any) -> None:
    """Assign a number, or an array that broadcasts over the other axes, where a mask over the leading axes is true."""
    shape, masked = x._signature.layout.shape, mask._signature.layout
    if not is_mask_over(masked.shape, shape):
        raise ShapeError(
            f"setitem: expected a mask over the leading axes of shape {shape}, got shape {masked.shape}; "
            f"write ta.broadcast_to(mask, {shape})"
        )
    if x._signature.device.backend.indexing is not None:
        check_target("setitem", x)
        scatter(x, mask, _apart(x, value))
        return
    check_target("setitem", x)
    if 0 in masked.shape:
        set_view(get(x, slice(0)), value)  # nothing, but a value that does not fit is an error
        return
    value = _in_dtype_of(x, value) if issubclass(type(value), ArrayBase) else _number_for(x, value)
    rest = len(shape) - masked.ndim
    spread = mask._view(masked.expand_dims(range(masked.ndim, len(shape)))) if rest else mask
    execute(choose, (spread, value, x), x)
