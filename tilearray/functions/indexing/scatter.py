"""Elements at integer indices, written: ``x[indices] = value``, and `op.at` by atomics.

Where an index outside its axis raises, nothing may be written before all indices are checked: one launch checks them
and stores their distances in memory, and a second one writes. In other modes, and for masks, one launch does all.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tilearray.engine.array_type import A
from tilearray.engine.backend import Indexing
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import RECORDINGS, STATE
from tilearray.engine.devices import CPU, Device
from tilearray.engine.execute import FixedCall
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import ArrayBase, before_access, overlap
from tilearray.errors import BroadcastError
from tilearray.functions.indexing.gather import (
    INT64,
    Indices,
    alone,
    distance_in,
    distances,
    numpy_key,
    place_of,
    walked,
    with_cure,
)
from tilearray.functions.indexing.keys import Selection, select
from tilearray.ops.numbers import rounded_number


def scatter(x: Any, key: Any, value: Any) -> None:
    """Assign a number, or an array that broadcasts, to the elements that a key with arrays selects.

    A number is of the kind that `x` holds. An array has the dtype of `x` and shares no memory with it. If an index
    occurs twice, the host keeps the last value, and a GPU any of them.
    """
    device: Device = x._signature.device
    indexing = device.backend.indexing
    if isinstance(value, ArrayBase) and value._signature.device.functions is not None:
        device = value._signature.device
    if device.functions is not None:
        device.functions.scatter(x, key, value)
    elif indexing is None:
        _scatter(x, key, value)
    else:
        _set(indexing, x, numpy_key(key, device), value)


def scatter_selected(selection: Any, value: Any) -> None:
    """Assign to the elements of a selection that also has a `key`, the same selection for NumPy."""
    device = selection.view.device
    indexing = device.backend.indexing
    if device.functions is not None:
        device.functions.scatter_selected(selection, value)
    elif indexing is None:
        _written(_known(selection, value, ""), selection.view, selection.indices, value)
    else:
        _set(indexing, selection.view, selection.key, value)


def combine(how: str, x: Any, key: Any, value: Any, *, inside: bool = False) -> None:
    """Combine a number, or an array that broadcasts, with the elements that a key with arrays selects, by atomics.

    Each occurrence of an index counts. `how` is that of `Expression.combines`; a number is of the kind that `x` holds,
    and an array has the dtype of `x`, which has 32 bits or more, and shares no memory with it. Indices that are known
    to be `inside` are not checked.
    """
    if inside:
        selection = select(x, key)._replace(inside=True)
        _written(_known(selection, value, how), selection.view, selection.indices, value)
    else:
        _scatter(x, key, value, how)


def without_leading_axes(value: A, ndim: int) -> A:
    """Return a value to assign to `ndim` axes: further leading axes of size 1 are dropped, as in NumPy."""
    layout = value._signature.layout
    spare = max(layout.ndim - ndim, 0)
    return value._view(layout.squeeze(range(spare))) if spare and layout.shape[:spare] == (1,) * spare else value


def _set(indexing: Indexing, x: Any, key: Any, value: Any) -> None:
    """Assign on a backend that indexes by itself."""
    value = CPU.backend.elements(value) if isinstance(value, ArrayBase) else rounded_number(value, x._signature.dtype)
    if RECORDINGS:
        before_access(x)
    try:
        indexing.set(CPU.backend.elements(x), key, value)
    except ValueError as error:
        raise BroadcastError(f"setitem: {error}; write a value that broadcasts to what is selected") from error
    except (IndexError, TypeError) as error:
        raise with_cure(error) from error


# --- kernels --------------------------------------------------------------------------------------------------------


@cache
def scattering(
    dtype: np.dtype,
    is_number: bool,
    how: str = "",
    distance: np.dtype = INT64,
    indices: tuple[np.dtype, ...] = (),
    checked: bool = False,
) -> FixedOperation:
    """Return the operation that writes elements, or combines them with what is there: at distances, or at indices."""
    builder = ExpressionBuilder()
    value = builder.number(dtype) if is_number else builder.array(dtype)
    place = place_of(builder, indices, checked) if indices else builder.cast(builder.array(distance), distance, INT64)
    return FixedOperation("setitem", builder.build([value], [dtype], (place,), combines=how))


class _Scatter:
    """All parts of an assignment that follow from how it combines and the signatures of view, indices and value.

    Attributes
    ----------
    target, value : Signature
        The memory of the view, and of a value that is an array, with the strides of the loop.
    at : Signature
        Distances with the strides of the loop.
    alone, within : Indices
        The indices in the loop over their common shape, and in that of the assignment.
    at_once : bool
        Whether the indices may be read where elements are written. Without elements nothing would be checked.
    about : tuple
        The arguments of `scattering` before the indices.
    write : FixedCall
        Writes at distances.
    """

    __slots__ = ("about", "alone", "at", "at_once", "target", "value", "within", "write")

    def __init__(self, selection: Selection, value: Any, how: str) -> None:
        view, shape = selection.view, selection.result_shape
        self.target = walked(view._signature, shape, selection.over_rest(view.strides))
        self.value: Any = None
        if isinstance(value, ArrayBase):
            given = without_leading_axes(value, len(shape))._signature
            self.value = walked(given, shape, given.layout.broadcast_to(shape, "setitem").strides)
        distance = distance_in(selection)
        self.alone = alone(selection, distance=distance)
        self.at = walked(self.alone.dense, shape, selection.over_indices(self.alone.dense.layout))
        layouts = [index._signature.layout for index in selection.indices]
        self.within = Indices(selection, shape, [selection.over_indices(layout) for layout in layouts])
        self.at_once = 0 not in shape
        self.about = (view.dtype, self.value is None, how, distance)
        self.write = FixedCall(scattering(*self.about))


_SCATTERS: TwoGenerations[_Scatter] = TwoGenerations(2048)


def _scatter(x: Any, key: Any, value: Any, how: str = "") -> None:
    if not isinstance(key, ArrayBase):
        selection = select(x, key)
        _written(_known(selection, value, how), selection.view, selection.indices, value)
        return
    place = (x._signature, key._signature, _kind_of(value), how)
    known = _SCATTERS.get(place)
    if known is None:
        selection = select(x, key)
        if selection.indices[0] is not key or selection.view._signature is not x._signature:
            _written(_known(selection, value, how), selection.view, selection.indices, value)
            return
        known = _SCATTERS.put(place, _Scatter(selection, value, how))
    _written(known, x, (key,), value)


def _kind_of(value: Any) -> Any:
    """The signature of an array, None for a number."""
    return value._signature if isinstance(value, ArrayBase) else None


def _known(selection: Selection, value: Any, how: str) -> _Scatter:
    """Return the parts of an assignment, made at most once."""
    view, axes, indices, _, place, inside = selection
    signatures = tuple([index._signature for index in indices])
    key = (selection.__class__, view._signature, axes, place, inside, _kind_of(value), how, *signatures)
    return _SCATTERS.get(key) or _SCATTERS.put(key, _Scatter(selection, value, how))


def _overlap(view: ArrayBase, indices: tuple[Any, ...]) -> bool:
    """Whether writes to a view may change an index."""
    return any(overlap(view, index) for index in indices)


def _written(known: _Scatter, view: Any, indices: tuple[Any, ...], value: Any) -> None:
    """Write a value to the elements of a view at indices, all of known signatures."""
    stream, make, mode = STATE.get().stream, view._make, known.within.mode
    target = make(view._buffer, view._offset, known.target)
    given = value if known.value is None else make(value._buffer, value._offset, known.value)
    if mode != "raise" and known.at_once and not _overlap(view, indices):
        known.within.run(scattering, known.about, [given], indices, target, mode, stream)
        return
    places = distances(known.alone, indices, mode, stream)
    known.write.run([given, make(places._buffer, 0, known.at)], target)
