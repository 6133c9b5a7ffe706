"""Elements at integer indices: read (`gather`) and written (`scatter`).

On the host NumPy does it. On a GPU the indices of an element become one distance from its place in a view of which
the indexed axes have no stride, so that the planner sees an ordinary elementwise loop::

    result[i, j]  =  view.origin + j * view.stride[1] + rows[i] * view.stride[0]        x[rows] of a matrix

An index outside of its axis would read or write other memory, or fault the device. `set_index_check` says what happens
instead; the host always raises.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tilearray.engine.context import STATE
from tilearray.engine.devices import CPU
from tilearray.engine.expression import BodyMaker, Operand, run
from tilearray.engine.signature import A, ArrayBase, empty_array, signature_of
from tilearray.errors import BroadcastError, DeviceError, IndexingError
from tilearray.functions.indexing.keys import Selection, as_index, is_array, is_integer, parts_of, select
from tilearray.geometry.layout import Layout
from tilearray.ops.typing import Body
from tilearray.promotion.scalars import as_number

MODES = ("raise", "deferred", "clip")
_mode = "raise"
_LAST = 2**63 - 1
"""What stands for an index beyond int64: it is beyond every axis, too."""


def set_index_check(mode: str, /) -> None:
    """Choose what an index array with an element outside of its axis does on a GPU. The host always raises.

    Parameters
    ----------
    mode : str
        ``"raise"`` (at first): `IndexingError`, and nothing is written; the host waits for the check.
        ``"deferred"``: the nearest element is taken, and the next call that waits for the device raises.
        ``"clip"``: the nearest element is taken.

    Raises
    ------
    DeviceError
        If `mode` is none of them.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.set_index_check("raise")
    """
    global _mode
    if mode not in MODES:
        raise DeviceError(f"set_index_check: expected a mode, got {mode!r}; write 'raise', 'deferred' or 'clip'")
    _mode = mode


def gather(x: Any, key: Any) -> Any:
    """Return a new array of the elements that a key with arrays selects."""
    if x.device is CPU:
        return _imported(_on_host(x, _numpy_key(key)))
    return _gather(select(x, key))


def gather_selected(selection: Any) -> Any:
    """Return a new array of the elements of a selection that was made already; on the host it has a `key`."""
    if selection.view.device is CPU:
        return _imported(_on_host(selection.view, selection.key))
    return _gather(selection)


def scatter(x: Any, key: Any, value: Any) -> None:
    """Assign a number, or an array that broadcasts, to the elements that a key with arrays selects.

    An array has the dtype of `x` and shares no memory with it. Where an index occurs twice, the host keeps the value
    that comes last, and a GPU any of them.
    """
    if x.device is CPU:
        _set_on_host(x, key, value)
    else:
        _scatter(select(x, key), value)


def without_leading_axes(value: A, ndim: int) -> A:
    """Return what is assigned to `ndim` axes: leading axes of size 1 beyond them are dropped, as NumPy does."""
    layout = value._signature.layout
    spare = max(layout.ndim - ndim, 0)
    return value._view(layout.squeeze(range(spare))) if spare and layout.shape[:spare] == (1,) * spare else value


# --- the host -------------------------------------------------------------------------------------------------------


def _imported(found: np.ndarray) -> Any:
    from tilearray.interchange.asarray import asarray

    return asarray(found, device=CPU)


def _numpy_key(key: Any) -> tuple[Any, ...]:
    return tuple([_numpy_part(part) for part in parts_of(key)])


def _numpy_part(part: Any) -> Any:
    if is_array(part):
        return positions_of(as_index(part, CPU))
    return int(part) if is_integer(part) else part


def positions_of(index: Any) -> np.ndarray:
    """Return an index on the host as NumPy takes it, which would wrap a uint64 that int64 does not hold.

    >>> import tilearray as ta
    >>> positions_of(ta.asarray([1, 2**64 - 1], dtype="uint64"))
    array([                  1, 9223372036854775807])
    """
    found = np.asarray(index)
    return np.minimum(found, np.uint64(_LAST)).astype(np.int64) if found.dtype == np.uint64 else found


def _memory(x: Any) -> np.ndarray:
    """The host memory of a view, also where it is read-only."""
    layout = x._signature.layout
    return x.device.backend.to_numpy(x._buffer, x._offset, layout.shape, layout.strides, x.dtype)


def _on_host(x: Any, key: tuple[Any, ...]) -> np.ndarray:
    try:
        return np.asarray(_memory(x)[key])
    except IndexError as error:
        raise _told(error) from error


def _set_on_host(x: Any, key: Any, value: Any) -> None:
    if isinstance(value, ArrayBase):
        value = _memory(value)
    else:
        from tilearray_host.casts import scalar

        value = scalar(as_number(value, x.dtype, "setitem"), x.dtype)
    try:
        _memory(x)[_numpy_key(key)] = value
    except ValueError as error:
        raise BroadcastError(f"setitem: {error}; write a value that broadcasts to what is selected") from error
    except (IndexError, TypeError) as error:
        raise _told(error) from error


def _told(error: Exception) -> Exception:
    if isinstance(error, IndexingError):
        return error
    return IndexingError(f"indexing: {error}; write indices within each axis, and values that broadcast to them")


# --- a GPU ----------------------------------------------------------------------------------------------------------


def _place(maker: BodyMaker, dtypes: tuple[str, ...], checked: bool) -> int:
    """Add the distance that indices amount to. The inputs of each are as `_Check.operands` lists them."""
    total = None
    for dtype in dtypes:
        index = maker.array(dtype)
        if dtype == "uint64":  # beyond int64 is beyond every axis
            index = maker.call("minimum", (index, maker.number("uint64")), "uint64", "lesser({x}, {y})")
        index = maker.cast(index, dtype, "int64")
        size, stride = maker.number("int64"), maker.number("int64")
        wrapped = maker.call("wrapped", (index, size), "int64", "wrapped_index({x}, {y})")
        if checked:
            outside = maker.call("outside", (wrapped, size), "bool", "is_outside({x}, {y})")
            maker.node("report", outside, index, maker.memory("int64"))
        inside = maker.call("clamped", (wrapped, size), "int64", "clamped_index({x}, {y})")
        part = maker.call("multiply", (inside, stride), "int64", "{x} * {y}")
        total = part if total is None else maker.call("add", (total, part), "int64", "{x} + {y}")
    assert total is not None
    return total


@cache
def _gathering(dtype: str, indices: tuple[str, ...], checked: bool) -> Body:
    """What reads elements at indices."""
    maker = BodyMaker()
    source = maker.memory(dtype)
    return maker.body((maker.node("gather", source, _place(maker, indices, checked)),), (dtype,))


@cache
def _placing(indices: tuple[str, ...], checked: bool) -> Body:
    """What turns indices into distances."""
    maker = BodyMaker()
    return maker.body((_place(maker, indices, checked),), ("int64",))


@cache
def _scattering(dtype: str, is_number: bool) -> Body:
    """What writes elements at distances."""
    maker = BodyMaker()
    value = maker.number(dtype) if is_number else maker.array(dtype)
    return maker.body((value,), (dtype,), (maker.array("int64"),))


def _gather(selection: Selection) -> Any:
    view, stream = selection.view, STATE.get().stream
    shape = selection.result_shape
    out: ArrayBase = empty_array(view.__class__, signature_of(Layout.of(shape), view.dtype, view.device), stream)
    if 0 in shape and 0 not in selection.shape:  # there is nothing to read, and a wrong index is an error still
        _places(selection, stream)
        return out
    with _Check(selection, stream) as check:
        source = Operand.of(view, selection.over_rest(view.strides))
        body = _gathering(view.dtype.name, check.dtypes, check.reports is not None)
        strides = [selection.over_indices(index) for index in selection.indices]
        run(
            body,
            shape,
            [Operand.of(out, out._signature.layout.strides), source, *check.operands(strides)],
            view.device,
            stream,
        )
    return out


def _scatter(selection: Selection, value: Any) -> None:
    view, stream = selection.view, STATE.get().stream
    places = _places(selection, stream)
    shape = selection.result_shape
    is_number = not isinstance(value, ArrayBase)
    given: Any = value
    if is_number:
        given = as_number(value, view.dtype, "setitem")
    else:
        spread = without_leading_axes(value, len(shape))._signature.layout.broadcast_to(shape, "setitem")
        given = Operand.of(value, spread.strides)
    run(
        _scattering(view.dtype.name, is_number),
        shape,
        [
            Operand.of(view, selection.over_rest(view.strides)),
            given,
            Operand.of(places, selection.over_indices(places)),
        ],
        view.device,
        stream,
    )


def _places(selection: Selection, stream: Any) -> ArrayBase:
    """The distances that a selection's indices amount to, in their common shape; the indices are checked."""
    view, layout = selection.view, Layout.of(selection.shape)
    places: ArrayBase = empty_array(view.__class__, signature_of(layout, np.dtype("int64"), view.device), stream)
    with _Check(selection, stream) as check:
        strides = [index._signature.layout.broadcast_to(selection.shape).strides for index in selection.indices]
        body = _placing(check.dtypes, check.reports is not None)
        run(body, selection.shape, [Operand.of(places, layout.strides), *check.operands(strides)], view.device, stream)
    return places


class _Check:
    """The check of a selection's indices, in the mode that is set; raises on leaving."""

    def __init__(self, selection: Selection, stream: int) -> None:
        self.selection = selection
        self.stream = stream
        self.dtypes = tuple(index.dtype.name for index in selection.indices)
        self.sizes = [selection.view.shape[axis] for axis in selection.axes]
        self.device: Any = selection.view.device.backend
        self.mode = _mode
        self.reports: Any = None
        if 0 not in selection.shape and 0 in self.sizes:
            raise IndexingError(
                f"indexing: expected no index for an axis of size 0, got indices of shape {selection.shape} "
                f"for shape {selection.view.shape}; write an index array of size 0"
            )

    def operands(self, strides: list[tuple[int, ...]]) -> list[Any]:
        """The operands of `_place`: each index with strides along the loop, and what belongs to it."""
        found: list[Any] = []
        view = self.selection.view
        for position, (axis, index) in enumerate(zip(self.selection.axes, self.selection.indices, strict=True)):
            found.append(Operand.of(index, strides[position]))
            if self.dtypes[position] == "uint64":
                found.append(_LAST)
            found += [self.sizes[position], view.strides[axis]]
            if self.reports is not None:
                found.append(Operand(self.reports[position], 0, (0,) * len(strides[position]), 8))
        return found

    def __enter__(self) -> _Check:
        if self.mode == "raise":
            self.reports = self.device.reports.take(len(self.sizes), self.stream)
        elif self.mode == "deferred":
            self.reports = self.device.reports.deferred(len(self.sizes), self.stream)
        return self

    def __exit__(self, kind: Any, *error: object) -> None:
        if self.mode != "raise":
            return
        outside = self.device.reports.read(self.reports, self.stream)
        if kind is not None:
            return
        for axis, size, index in zip(self.selection.axes, self.sizes, outside, strict=True):
            if index is not None:
                raise IndexingError(
                    f"indexing: expected {-size} <= index < {size} for axis {axis} of the selected view, got {index} "
                    "in an index array; write indices within the axis, or ta.set_index_check('clip')"
                )
