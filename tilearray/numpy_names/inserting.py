"""`delete` and `insert`: arrays without some slices along an axis, or with more of them.

On a device that runs kernels the slices that stay are copied in a few runs, or are gathered by places that the device
computes. The host sends it only the places that are deleted or inserted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.arrays.fills import arange, full
from tilearray.engine.devices import common_device
from tilearray.engine.signature import from_host
from tilearray.errors import IndexingError, ShapeError
from tilearray.functions.arguments import as_array, as_array_beside, by_expressions, deepest
from tilearray.functions.conversion import to_numpy
from tilearray.functions.indexing.take import integers_of, take
from tilearray.functions.joining import concat
from tilearray.functions.manipulation import moveaxis, new_like, reshape
from tilearray.functions.searching import nonzero, searchsorted
from tilearray.geometry.shapes import normalize_axis
from tilearray.numpy_names.on_device import number_beside
from tilearray.numpy_names.through_numpy import by_numpy, exact
from tilearray.ops.arithmetic import add, bitwise_invert, subtract
from tilearray.promotion.scalars import as_number, classify

MOST_RUNS = 8
"""The most runs of slices that stay and are copied run by run. Of more runs, each slice is gathered."""


def delete(arr: Any, obj: Any, axis: int | None = None) -> Array:
    """Return an array without some slices along an axis; without an axis, without some elements.

    Parameters
    ----------
    arr : Array
    obj : int, slice, bool Array or sequence of int
        Which ones go: on the host, or an Array of one axis on the device of `arr`, which waits for their number.
    axis : int, optional

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.delete([1, 2, 3, 4], [0, 2])
    Array([2, 4], dtype=int64, device='cpu')
    """
    x = as_array("delete", arr)
    x, place = (reshape(x, -1), 0) if axis is None else (x, normalize_axis(axis, x.ndim, "delete"))
    if isinstance(obj, Array) and by_expressions(obj):
        return take(x, _kept(obj, x, place), place)
    try:
        given = exact("delete", obj)
        if not by_expressions(x):
            return from_host(np.ascontiguousarray(np.delete(to_numpy(x), given, place)), Array)
        deleted = _deleted(given, x.shape[place])
    except (IndexError, ValueError) as error:
        raise ShapeError(f"delete: {error}; write an index of the axis") from None
    return _without(x, deleted, place)


def _deleted(given: Any, extent: int) -> np.ndarray:
    """The places along an axis that are deleted, on the host: each one once, in order. Errors are NumPy's."""
    if isinstance(given, slice):
        return np.sort(np.arange(extent)[given])
    places = np.asarray(given)
    if places.dtype.kind not in "iu":  # a mask, or what is no index
        return np.delete(np.arange(extent), np.delete(np.arange(extent), given))
    if ((places < -extent) | (places >= extent)).any():
        np.delete(np.arange(extent), given)  # an error
    return np.unique(np.where(places < 0, places + extent, places).astype(np.int64))


def _without(x: Array, deleted: np.ndarray, axis: int) -> Array:
    """An array without the slices at places that are in order, in memory of its own."""
    extent, front = x.shape[axis], (slice(None),) * axis
    starts, ends = np.append(-1, deleted) + 1, np.append(deleted, extent)
    runs = np.flatnonzero(starts < ends)
    if len(runs) <= MOST_RUNS:
        kept = [x[(*front, slice(int(starts[run]), int(ends[run])))] for run in runs]
        return concat(kept, axis=axis) if len(kept) > 1 else (kept or [x[(*front, slice(0))]])[0].copy()
    before = asarray(deleted - np.arange(deleted.size), device=x.device)  # the slices that stay before each
    places = arange(extent - deleted.size, dtype=dtypes.int64, device=x.device)
    return take(x, add(places, searchsorted(before, places, side="right")), axis, mode="clip")


def _kept(places: Array, x: Array, axis: int) -> Array:
    """The places along an axis that are not deleted, on a device."""
    common_device("delete", [x._signature, places._signature])
    if dtypes.info(places.dtype).kind == "bool" and places.shape == (x.shape[axis],):
        return nonzero(bitwise_invert(places))[0]
    stays: Array = full(x.shape[axis], True, device=x.device)
    stays[integers_of(places, x, "delete")] = False
    return nonzero(stays)[0]


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """Return an array with values inserted before some places of an axis; NumPy's rules of shapes.

    Parameters
    ----------
    arr : Array
    obj : int, slice, bool Array or sequence of int
        The places; read on the host.
    values : number or Array
        Cast to the dtype of `arr`. For one place they may be several slices, for more they broadcast to a slice each.
    axis : int, optional
        None inserts among all elements, as one axis.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.insert([1, 2, 3], 1, 9)
    Array([1, 9, 2, 3], dtype=int64, device='cpu')
    """
    x = as_array("insert", arr)
    if isinstance(values, int) and x.dtype.kind in "iu":
        as_number(values, x.dtype, "insert")  # an error if it does not fit, which a cast would wrap
    given: Array = number_beside(values, x) if classify(values) is not None else as_array_beside("insert", values, x)
    if not by_expressions(x, given):
        return by_numpy("insert", (x,), exact("insert", obj), exact("insert", given.astype(x.dtype)), axis)
    common_device("insert", [x._signature, given._signature])
    x, place = (reshape(x, -1), 0) if axis is None else (x, normalize_axis(axis, x.ndim, "insert"))
    shape = (1,) * (x.ndim - given.ndim) + given.shape
    return _inserted(x, obj, reshape(given.astype(x.dtype), shape), place)


def _inserted(x: Array, obj: Any, values: Array, axis: int) -> Array:
    """An array with values of as many axes inserted along one."""
    extent = x.shape[axis]
    given: Any = range(extent)[obj] if isinstance(obj, slice) else exact("insert", obj)
    places = _insertion_places(given, extent)
    count = places.size
    if count == 1:
        values = values if places.ndim else moveaxis(values, 0, axis)
        count = values.shape[axis]
    before = np.sort(places.reshape(-1)) if places.size == count else np.full(count, places)
    found = _with_gaps(x, before, axis, values)
    order = np.argsort(np.argsort(places.reshape(-1), kind="stable"))
    new = before + np.arange(count)
    found[(*(slice(None),) * axis, _as_key(new if places.size == 1 else new[order]))] = values
    return found


def _insertion_places(given: Any, extent: int) -> np.ndarray:
    """The places before which slices are inserted, on the host, from 0 to the extent of the axis."""
    places = np.asarray(given, None if np.size(given) else np.int64)
    try:
        is_mask = places.dtype.kind not in "iu"
        if is_mask or places.ndim > 1 or ((places < -extent) | (places > extent)).any():
            np.insert(np.arange(extent), places, -1)  # an error, but for masks
    except (IndexError, ValueError, TypeError) as error:
        kind = IndexingError if isinstance(error, IndexError) else ShapeError
        raise kind(f"insert: {error}; write places along the axis") from None
    places = np.flatnonzero(places) if is_mask else places
    return np.where(places < 0, places + extent, places).astype(np.int64)


def _as_key(places: np.ndarray) -> slice | np.ndarray:
    """Places as a slice, if they are neighbours."""
    if places.size and (np.diff(places) == 1).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def _with_gaps(x: Array, before: np.ndarray, axis: int, values: Array) -> Array:
    """An array with room for a slice before each of some places, which are in order. What is there has no meaning."""
    extent, count, front = x.shape[axis], before.size, (slice(None),) * axis
    starts, ends = np.append(0, before), np.append(before, extent)
    runs = np.flatnonzero(starts < ends)
    if len(runs) > MOST_RUNS:
        new = asarray(before + np.arange(count), device=x.device)
        places = arange(extent + count, dtype=dtypes.int64, device=x.device)
        return take(x, subtract(places, searchsorted(new, places, side="right")), axis, mode="clip")
    found = new_like(deepest([x, values]), (*x.shape[:axis], extent + count, *x.shape[axis + 1 :]))
    for run in runs:
        start, end = int(starts[run]), int(ends[run])
        found[(*front, slice(start + int(run), end + int(run)))] = x[(*front, slice(start, end))]
    return found
