"""Elements at integer indices: read (`gather`) and written (`scatter`).

A backend may have an `indexing` of its own; the host's is NumPy's. On other backends it is an elementwise loop: an
expression computes one distance from the indices of an element, and adds it to the element's place in a view whose
indexed axes have stride 0::

    address of result[i, j]  =  view.origin + j * view.stride[1] + rows[i] * view.stride[0]        x[rows] of a matrix

An index outside its axis would read or write other memory, or fault the device. `set_index_check` chooses what happens
instead. The host always raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import numpy as np

from tilearray.engine.array_type import A
from tilearray.engine.backend import Indexing
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import RECORDINGS, STATE
from tilearray.engine.devices import CPU, Device
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import (
    ArrayBase,
    Signature,
    before_access,
    empty_array,
    from_result,
    placed,
    signature_of,
)
from tilearray.errors import BroadcastError, DeviceError, IndexingError, shown
from tilearray.functions.indexing.keys import Selection, as_index, is_array, is_index, is_integer, parts_of, select
from tilearray.functions.indexing.masks import compressed
from tilearray.geometry.layout import Layout
from tilearray.ops.numbers import rounded_number

MODES = ("raise", "deferred", "clip")
_mode = "raise"
_BOOL, _INT64, _UINT64 = np.dtype("bool"), np.dtype("int64"), np.dtype("uint64")
_LAST = 2**63 - 1
"""The index that replaces an index beyond int64: it is beyond every axis as well."""


def set_index_check(mode: Literal["raise", "deferred", "clip"], /) -> None:
    """Choose what happens on a GPU if an index array has an element outside its axis. The host always raises.

    The mode holds for the whole process.

    Parameters
    ----------
    mode : str
        ``"raise"`` (the default): `IndexingError`, and nothing is written; the host waits for the check.
        ``"deferred"``: the nearest element is taken, and the next call that waits for the device raises.
        ``"clip"``: the nearest element is taken.

    Raises
    ------
    DeviceError
        If `mode` is another word.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.set_index_check("raise")
    """
    global _mode
    known = isinstance(mode, str) and mode in MODES  # pyright: ignore[reportUnnecessaryIsInstance]
    if not known:
        raise DeviceError(f"set_index_check: expected a mode, got {shown(mode)}; write 'raise', 'deferred' or 'clip'")
    _mode = mode


def gather(x: Any, key: Any) -> Any:
    """Return a new array of the elements that a key with arrays selects."""
    device: Device = x._signature.device
    indexing = device.backend.indexing
    if indexing is not None:
        return _get(indexing, x, _numpy_key(key, device))
    if isinstance(key, ArrayBase):
        known = _GATHERS.get((x._signature, key._signature))
        if known is not None:
            return _gathered(known, x, (key,))
        if _is_whole_mask(x, key):
            return compressed(x, key)
        selection = select(x, key)
        if selection.indices[0] is key and selection.view._signature is x._signature:
            return _gathered(_GATHERS.put((x._signature, key._signature), _Gather(selection)), x, (key,))
        return _gather(selection)
    return _gather(select(x, key))


def _is_whole_mask(x: Any, key: Any) -> bool:
    """Whether an Array as a key is a mask over all axes of an array, on its device."""
    mine, other = x._signature, key._signature
    same = mine.layout.shape == other.layout.shape != () and mine.device is other.device
    return same and other.dtype.kind == "b"


def gather_selected(selection: Any) -> Any:
    """Return a new array of the elements of a selection that also has a `key`, the same selection for NumPy."""
    indexing = selection.view.device.backend.indexing
    return _gather(selection) if indexing is None else _get(indexing, selection.view, selection.key)


def scatter(x: Any, key: Any, value: Any) -> None:
    """Assign a number, or an array that broadcasts, to the elements that a key with arrays selects.

    A number is of the kind that `x` holds. An array has the dtype of `x` and shares no memory with it. If an index
    occurs twice, the host keeps the last value, and a GPU any of them.
    """
    device: Device = x._signature.device
    indexing = device.backend.indexing
    if indexing is None:
        _scatter(select(x, key), value)
    else:
        _set(indexing, x, _numpy_key(key, device), value)


def combine(how: str, x: Any, key: Any, value: Any, *, inside: bool = False) -> None:
    """Combine a number, or an array that broadcasts, with the elements that a key with arrays selects, by atomics.

    Each occurrence of an index counts. `how` is that of `Expression.combines`; a number is of the kind that `x` holds,
    and an array has the dtype of `x`, which has 32 bits or more, and shares no memory with it. Indices that are known
    to be `inside` are not checked.
    """
    selection = select(x, key)
    _scatter(selection._replace(inside=True) if inside else selection, value, how)


def without_leading_axes(value: A, ndim: int) -> A:
    """Return a value to assign to `ndim` axes: further leading axes of size 1 are dropped, as in NumPy."""
    layout = value._signature.layout
    spare = max(layout.ndim - ndim, 0)
    return value._view(layout.squeeze(range(spare))) if spare and layout.shape[:spare] == (1,) * spare else value


# --- a backend that indexes by itself -------------------------------------------------------------------------------


def _numpy_key(key: Any, device: Device) -> Any:
    if isinstance(key, ArrayBase) and key._signature.traits.indexes and key._signature.device is device:
        return positions_of(key)
    if isinstance(key, tuple):
        return tuple([_numpy_part(part, device) for part in parts_of(key)])
    return _numpy_part(key, device)


def _numpy_part(part: Any, device: Device) -> Any:
    if is_index(part) and part._signature.device is device:
        return positions_of(part)
    if is_array(part):
        return positions_of(as_index(part, device))
    return int(part) if is_integer(part) else part


def positions_of(index: Any) -> np.ndarray:
    """Return an index on the host as int64 for uint64, since NumPy would wrap a number beyond int64.

    >>> import tilearray as ta
    >>> positions_of(ta.asarray([1, 2**64 - 1], dtype="uint64"))
    array([                  1, 9223372036854775807])
    """
    found = CPU.backend.elements(index)
    if index._signature.dtype is _UINT64:
        return np.minimum(found, np.uint64(_LAST)).astype(np.int64)
    return found


def _get(indexing: Indexing, x: A, key: Any) -> A:
    try:
        return from_result(indexing.get(CPU.backend.elements(x), key), x.__class__)
    except IndexError as error:
        raise _with_cure(error) from error


def _set(indexing: Indexing, x: Any, key: Any, value: Any) -> None:
    value = CPU.backend.elements(value) if isinstance(value, ArrayBase) else rounded_number(value, x._signature.dtype)
    if RECORDINGS:
        before_access(x)
    try:
        indexing.set(CPU.backend.elements(x), key, value)
    except ValueError as error:
        raise BroadcastError(f"setitem: {error}; write a value that broadcasts to what is selected") from error
    except (IndexError, TypeError) as error:
        raise _with_cure(error) from error


def _with_cure(error: Exception) -> Exception:
    """NumPy's error as ours, with advice."""
    if isinstance(error, IndexingError):
        return error
    return IndexingError(f"indexing: {error}; write indices within each axis, and values that broadcast to them")


# --- kernels --------------------------------------------------------------------------------------------------------


def _place(builder: ExpressionBuilder, dtypes: tuple[np.dtype, ...], checked: bool) -> int:
    """Add the sum of the distances of all indices. `_Check.operands` lists the inputs of each."""
    total = None
    for dtype in dtypes:
        index = builder.array(dtype)
        if dtype == _UINT64:  # an index beyond int64 is beyond every axis
            index = builder.call("minimum", (index, builder.number(_UINT64)), _UINT64, "lesser({x}, {y})")
        index = builder.cast(index, dtype, _INT64)
        size, stride = builder.number(_INT64), builder.number(_INT64)
        wrapped = builder.call("wrapped", (index, size), _INT64, "wrapped_index({x}, {y})")
        if checked:
            outside = builder.call("outside", (wrapped, size), _BOOL, "is_outside({x}, {y})")
            builder.node("report", outside, index, builder.memory(_INT64))
        inside = builder.call("clamped", (wrapped, size), _INT64, "clamped_index({x}, {y})")
        part = builder.call("multiply", (inside, stride), _INT64, "{x} * {y}")
        total = part if total is None else builder.call("add", (total, part), _INT64, "{x} + {y}")
    assert total is not None
    return total


@cache
def gathering(dtype: np.dtype, indices: tuple[np.dtype, ...], checked: bool) -> FixedOperation:
    """Return the operation that reads elements at indices."""
    builder = ExpressionBuilder()
    source = builder.memory(dtype)
    element = builder.node("gather", source, _place(builder, indices, checked))
    return FixedOperation("indexing", builder.build([element], [dtype]))


@cache
def placing(indices: tuple[np.dtype, ...], checked: bool) -> FixedOperation:
    """Return the operation that turns indices into distances."""
    builder = ExpressionBuilder()
    return FixedOperation("indexing", builder.build([_place(builder, indices, checked)], [_INT64]))


@cache
def scattering(dtype: np.dtype, is_number: bool, how: str = "") -> FixedOperation:
    """Return the operation that writes elements at distances, or combines them with what is there."""
    builder = ExpressionBuilder()
    value = builder.number(dtype) if is_number else builder.array(dtype)
    return FixedOperation("setitem", builder.build([value], [dtype], (builder.array(_INT64),), combines=how))


def _strided(x: A, shape: tuple[int, ...], strides: tuple[int, ...]) -> A:
    """The memory of an array with the strides of the loop, 0 along axes that the array lacks."""
    return x._view(Layout(shape, strides))


def _gather(selection: Selection) -> Any:
    shape = selection.result_shape
    view = selection.view
    if 0 in shape and 0 not in selection.shape:  # nothing is read, but a wrong index is still an error
        stream = STATE.get().stream
        placed_at(selection, view.strides)
        return empty_array(view.__class__, signature_of(Layout.of(shape), view.dtype, view.device), stream)
    signatures = tuple([index._signature for index in selection.indices])
    place = (selection.__class__, view._signature, selection.axes, selection.place, selection.inside, *signatures)
    known = _GATHERS.get(place)
    if known is None:
        known = _GATHERS.put(place, _Gather(selection))
    return _gathered(known, view, selection.indices)


class _Gather:
    """All parts of a gather that follow from the signatures of the view and the indices.

    Attributes
    ----------
    out, source : Signature
        The result, and the memory of the view with the strides of the loop.
    indices : list of Signature
        The indices with the strides of the loop.
    dtypes : tuple of numpy.dtype
        Those of the indices.
    numbers : list of tuple
        For each index the numbers that `_place` takes after it.
    axes, sizes : tuple of int
        The axes of the view that are indexed, and their sizes.
    report : Signature
        A word for reports, for each element.
    inside : bool
        Whether all indices are known to lie within their axes.
    """

    __slots__ = ("axes", "dtypes", "indices", "inside", "numbers", "out", "report", "sizes", "source")

    def __init__(self, selection: Selection) -> None:
        view, shape, indices = selection.view, selection.result_shape, selection.indices
        signature: Signature = view._signature
        dtype, device = signature.dtype, signature.device
        self.axes, self.inside = selection.axes, selection.inside
        self.sizes = tuple([view.shape[axis] for axis in selection.axes])
        _check_sizes(selection, self.sizes)
        self.dtypes = tuple([index.dtype for index in indices])
        self.out = signature_of(Layout.of(shape), dtype, device)
        self.source = signature_of(Layout(shape, selection.over_rest(view.strides)), dtype, device, signature.aligned)
        self.indices = [_walked(index, shape, selection.over_indices(index)) for index in indices]
        self.numbers = [
            _numbers(index.dtype, size, view.strides[axis])
            for index, size, axis in zip(indices, self.sizes, self.axes, strict=True)
        ]
        self.report = signature_of(Layout(shape, (0,) * len(shape)), _INT64, device)


_GATHERS: TwoGenerations[_Gather] = TwoGenerations(2048)


def _walked(index: ArrayBase, shape: tuple[int, ...], strides: tuple[int, ...]) -> Signature:
    given = index._signature
    return signature_of(Layout(shape, strides), given.dtype, given.device, given.aligned)


def _gathered(known: _Gather, view: A, indices: tuple[Any, ...]) -> A:
    """Return a new array of the elements of a view at indices, all of known signatures."""
    stream, device = STATE.get().stream, known.out.device
    mode = "clip" if known.inside else _mode
    out = empty_array(view.__class__, known.out, stream)
    reports = _reports(device, mode, len(indices), stream)
    operands: list[Any] = [view._make(view._buffer, view._offset, known.source)]
    for place, (index, signature) in enumerate(zip(indices, known.indices, strict=True)):
        operands.append(view._make(index._buffer, index._offset, signature))
        operands += known.numbers[place]
        if reports is not None:
            operands.append(view._make(reports[place], 0, known.report))
    try:
        run_fixed(gathering(known.source.dtype, known.dtypes, reports is not None), operands, out)
    except BaseException:
        _finish(device, mode, reports, stream)
        raise
    _raise_outside(known.axes, known.sizes, _finish(device, mode, reports, stream))
    return out


def _scatter(selection: Selection, value: Any, how: str = "") -> None:
    view = selection.view
    places = placed_at(selection, view.strides)
    shape = selection.result_shape
    is_number = not isinstance(value, ArrayBase)
    if is_number:
        given: Any = value
    else:
        given = without_leading_axes(value, len(shape))
        given = given._view(given._signature.layout.broadcast_to(shape, "setitem"))
    target = _strided(view, shape, selection.over_rest(view.strides))
    at = _strided(places, shape, selection.over_indices(places))
    run_fixed(scattering(view.dtype, is_number, how), [given, at], target)


def placed_at(selection: Selection, steps: Sequence[int]) -> ArrayBase:
    """The distances of a selection's indices, in their common shape, for strides of its view; indices are checked."""
    view, layout, stream = selection.view, Layout.of(selection.shape), STATE.get().stream
    places: ArrayBase = empty_array(view.__class__, signature_of(layout, _INT64, view.device), stream)
    with _Check(selection, stream) as check:
        strides = [index._signature.layout.broadcast_to(selection.shape).strides for index in selection.indices]
        operation = placing(check.dtypes, check.reports is not None)
        run_fixed(operation, check.operands(selection.shape, strides, steps), places)
    return places


class _Check:
    """The check of a selection's indices, in the active mode; leaving the block raises."""

    def __init__(self, selection: Selection, stream: int) -> None:
        self.selection = selection
        self.stream = stream
        self.dtypes = tuple([index.dtype for index in selection.indices])
        self.sizes = [selection.view.shape[axis] for axis in selection.axes]
        self.device: Device = selection.view.device
        self.mode = "clip" if selection.inside else _mode
        self.reports: Any = None
        _check_sizes(selection, self.sizes)

    def operands(self, shape: tuple[int, ...], strides: list[tuple[int, ...]], steps: Sequence[int]) -> list[Any]:
        """The operands of `_place`: each index with strides along the loop, its size and its step."""
        found: list[Any] = []
        view = self.selection.view
        for position, (axis, index) in enumerate(zip(self.selection.axes, self.selection.indices, strict=True)):
            found.append(_strided(index, shape, strides[position]))
            found += _numbers(self.dtypes[position], self.sizes[position], steps[axis])
            if self.reports is not None:
                word, layout = self.reports[position], Layout(shape, (0,) * len(shape))
                found.append(view._make(word, 0, placed(word, 0, layout, _INT64, view.device)))
        return found

    def __enter__(self) -> _Check:
        self.reports = _reports(self.device, self.mode, len(self.sizes), self.stream)
        return self

    def __exit__(self, kind: Any, *error: object) -> None:
        outside = _finish(self.device, self.mode, self.reports, self.stream)
        if kind is None:
            _raise_outside(self.selection.axes, self.sizes, outside)


def _numbers(dtype: np.dtype, size: int, stride: int) -> tuple[int, ...]:
    """The numbers that `_place` takes after an index of a dtype."""
    return (_LAST, size, stride) if dtype == _UINT64 else (size, stride)


def _check_sizes(selection: Selection, sizes: Sequence[int]) -> None:
    if 0 not in selection.shape and 0 in sizes:
        raise IndexingError(
            f"indexing: expected no index for an axis of size 0, got indices of shape {selection.shape} "
            f"for shape {selection.view.shape}; write an index array of size 0"
        )


def _reports(device: Device, mode: str, count: int, stream: Any) -> Any:
    """Words in which kernels report indices outside, or None if nothing is reported."""
    errors: Any = device.backend.index_errors
    if mode == "raise":
        return errors.take(count, stream)
    return errors.deferred(count, stream) if mode == "deferred" else None


def _finish(device: Device, mode: str, reports: Any, stream: Any) -> Sequence[int | None]:
    """Wait for the reports of a call, and give their words back, if its mode raises."""
    errors: Any = device.backend.index_errors
    return errors.read(reports, stream) if mode == "raise" else ()


def _raise_outside(axes: Sequence[int], sizes: Sequence[int], outside: Sequence[int | None]) -> None:
    for axis, size, index in zip(axes, sizes, outside, strict=False):
        if index is not None:
            raise IndexingError(
                f"indexing: expected {-size} <= index < {size} for axis {axis} of the selected view, got {index} "
                "in an index array, which is out of bounds; write indices within the axis, or "
                "ta.set_index_check('clip')"
            )
