"""Elements at integer indices, read: ``x[indices]``. `scatter` writes them.

A backend may have an `indexing` of its own; the host's is NumPy's. On other backends it is an elementwise loop: an
expression computes one distance from the indices of an element, and adds it to the element's place in a view whose
indexed axes have stride 0::

    address of result[i, j]  =  view.origin + j * view.stride[1] + rows[i] * view.stride[0]        x[rows] of a matrix

An index outside its axis would read or write other memory, or fault the device. `set_index_check` chooses what happens
instead. The host always raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal

import numpy as np

from tilearray.engine.array_type import A
from tilearray.engine.backend import Call, Indexing
from tilearray.engine.caches import PLANS, TwoGenerations
from tilearray.engine.context import STATE
from tilearray.engine.devices import CPU, Device
from tilearray.engine.execute import FixedCall, is_recorded
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.remembered import Words, launch_making, remember
from tilearray.engine.signature import ArrayBase, Signature, empty_array, from_result, signature_of
from tilearray.errors import DeviceError, IndexingError, shown
from tilearray.functions.indexing.keys import (
    Ints,
    Selection,
    as_index,
    is_array,
    is_index,
    is_integer,
    parts_of,
    select,
)
from tilearray.geometry.layout import Layout

MODES = ("raise", "deferred", "clip")
_mode = "raise"
_BOOL, INT32, INT64, _UINT64 = (np.dtype(name) for name in ("bool", "int32", "int64", "uint64"))
LAST = 2**63 - 1
"""The index that replaces an index beyond int64: it is beyond every axis as well."""
WORD = 8
"""The bytes of words as which rows of smaller elements are gathered."""


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


def checks_indices() -> bool:
    """Whether a call on a GPU waits for indices that are out of bounds."""
    return _mode == "raise"


def gather(x: Any, key: Any) -> Any:
    """Return a new array of the elements that a key with arrays selects."""
    device: Device = x._signature.device
    if device.functions is not None:
        return device.functions.gather(x, key)
    indexing = device.backend.indexing
    if indexing is not None:
        return _get(indexing, x, numpy_key(key, device))
    if isinstance(key, ArrayBase):
        known = _GATHERS.get((x._signature, key._signature))
        if known is not None:
            return _gathered(known, x, (key,))
        if _is_whole_mask(x, key):
            return late_masks().compressed(x, key)
        selection = select(x, key)
        if selection.indices[0] is key and selection.view._signature is x._signature:
            return _gathered(_GATHERS.put((x._signature, key._signature), _Gather(selection)), x, (key,))
        return _gather(selection)
    return _gather(select(x, key))


@cache
def late_masks() -> Any:
    """Return a module that few programs need. An import statement takes 0.3 us at each call, and this 0.03."""
    from tilearray.functions.indexing import masks

    return masks


def _is_whole_mask(x: Any, key: Any) -> bool:
    """Whether an Array as a key is a mask over all axes of an array, on its device."""
    mine, other = x._signature, key._signature
    same = mine.layout.shape == other.layout.shape != () and mine.device is other.device
    return same and other.dtype.kind == "b"


def gather_selected(selection: Any) -> Any:
    """Return a new array of the elements of a selection that also has a `key`, the same selection for NumPy."""
    device: Device = selection.view.device
    if device.functions is not None:
        return device.functions.gather_selected(selection)
    indexing = device.backend.indexing
    return _gather(selection) if indexing is None else _get(indexing, selection.view, selection.key)


# --- a backend that indexes by itself -------------------------------------------------------------------------------


def numpy_key(key: Any, device: Device) -> Any:
    """Return a key for NumPy."""
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
        return np.minimum(found, np.uint64(LAST)).astype(np.int64)
    return found


def _get(indexing: Indexing, x: A, key: Any) -> A:
    try:
        return from_result(indexing.get(CPU.backend.elements(x), key), x.__class__)
    except IndexError as error:
        raise with_cure(error) from error


def with_cure(error: Exception) -> Exception:
    """Return NumPy's error as ours, with advice."""
    if isinstance(error, IndexingError):
        return error
    return IndexingError(f"indexing: {error}; write indices within each axis, and values that broadcast to them")


# --- indices in kernels -----------------------------------------------------------------------------------------------


def place_of(builder: ExpressionBuilder, dtypes: tuple[np.dtype, ...], checked: bool) -> int:
    """Add the sum of the distances of all indices. `Indices.run` lists the inputs of each."""
    total = None
    for dtype in dtypes:
        index = builder.array(dtype)
        if dtype == _UINT64:  # an index beyond int64 is beyond every axis
            index = builder.call("minimum", (index, builder.number(_UINT64)), _UINT64, "lesser({x}, {y})")
        index = builder.cast(index, dtype, INT64)
        size, stride = builder.number(INT64), builder.number(INT64)
        wrapped = builder.call("wrapped", (index, size), INT64, "wrapped_index({x}, {y})")
        if checked:
            outside = builder.call("outside", (wrapped, size), _BOOL, "is_outside({x}, {y})")
            builder.node("report", outside, index, builder.memory(INT64))
        inside = builder.call("clamped", (wrapped, size), INT64, "clamped_index({x}, {y})")
        part = builder.call("multiply", (inside, stride), INT64, "{x} * {y}")
        total = part if total is None else builder.call("add", (total, part), INT64, "{x} + {y}")
    assert total is not None
    return total


@cache
def placing(dtype: np.dtype, indices: tuple[np.dtype, ...], checked: bool) -> FixedOperation:
    """Return the operation that turns indices into distances of a dtype."""
    builder = ExpressionBuilder()
    found = builder.cast(place_of(builder, indices, checked), INT64, dtype)
    return FixedOperation("indexing", builder.build([found], [dtype]))


def walked(given: Signature, shape: Ints, strides: Ints) -> Signature:
    """Return the signature of the same memory with the strides of a loop, 0 along axes that the array lacks."""
    layout = given.layout
    if strides == layout.strides and shape == layout.shape:
        return given
    return signature_of(Layout(shape, strides), given.dtype, given.device, given.aligned)


class Indices:
    """All facts of a selection's indices in a loop that follow from the signatures of the view and the indices.

    An index counts as many elements as the view's stride along its axis, or a step.

    Attributes
    ----------
    device : Device
    signatures : list of Signature
        The indices with the strides of the loop.
    dtypes : tuple of numpy.dtype
        Those of the indices.
    numbers : list of tuple
        For each index the numbers that `place_of` takes after it.
    axes, sizes : tuple of int
        The axes of the view that are indexed, and their sizes.
    report : Signature
        A word for reports, for each element.
    dense : Signature
        A distance for each element.
    inside : bool
        Whether all indices are known to lie within their axes.
    """

    __slots__ = ("_calls", "axes", "dense", "device", "dtypes", "inside", "numbers", "report", "signatures", "sizes")

    def __init__(
        self,
        selection: Selection,
        shape: Ints,
        strides: Sequence[Ints],
        steps: Ints | None = None,
        distance: np.dtype = INT64,
    ) -> None:
        view, given = selection.view, [index._signature for index in selection.indices]
        self.device: Device = view.device
        self.axes, self.inside = selection.axes, selection.inside
        self.sizes = tuple([view.shape[axis] for axis in selection.axes])
        _check_sizes(selection, self.sizes)
        self.dtypes = tuple([signature.dtype for signature in given])
        self.signatures = [walked(index, shape, along) for index, along in zip(given, strides, strict=True)]
        self.numbers = [
            _numbers(dtype, size, (steps or view.strides)[axis])
            for dtype, size, axis in zip(self.dtypes, self.sizes, self.axes, strict=True)
        ]
        self.report = signature_of(Layout(shape, (0,) * len(shape)), INT64, self.device)
        self.dense = signature_of(Layout.of(shape), distance, self.device)
        self._calls: dict[Any, FixedCall] = {}

    @property
    def mode(self) -> str:
        """What happens to an index outside its axis."""
        return "clip" if self.inside else _mode

    def run(
        self,
        operation: Callable[..., FixedOperation],
        about: tuple[Any, ...],
        operands: list[Any],
        indices: Sequence[ArrayBase],
        out: Any,
        mode: str,
        stream: Any,
    ) -> None:
        """Run ``operation(*about, dtypes of the indices, whether it reports)`` on operands and indices in a mode.

        All runs of an operation have the same `about`, and operands and targets of the same signatures.
        """
        make = out._make

        def act(reports: Any) -> None:
            for place, index in enumerate(indices):
                signature = self.signatures[place]
                same = index._signature is signature
                operands.append(index if same else make(index._buffer, index._offset, signature))
                operands.extend(self.numbers[place])
                if reports is not None:
                    operands.append(make(reports[place], 0, self.report))
            key = operation, reports is not None
            call = self._calls.get(key)
            if call is None:
                call = self._calls.setdefault(key, FixedCall(operation(*about, self.dtypes, reports is not None)))
            call.run(operands, out)

        self.checked(act, mode, stream)

    def checked(self, act: Callable[[Any], Any], mode: str, stream: Any) -> Any:
        """Call a function with words for the reports of its launch, or None; an index outside is an error in a mode."""
        reports = _reports(self.device, mode, len(self.dtypes), stream)
        try:
            found = act(reports)
        except BaseException:
            _finish(self.device, mode, reports, stream)
            raise
        if mode == "raise":
            outside = _finish(self.device, mode, reports, stream)
            if any(outside):  # index 0 is never outside
                raise _outside(self.axes, self.sizes, outside)
        return found


def alone(selection: Selection, steps: Ints | None = None, distance: np.dtype = INT64) -> Indices:
    """Return the facts of a selection's indices in the loop over their common shape; steps replace the strides."""
    shape = selection.shape
    strides = [index._signature.layout.broadcast_to(shape).strides for index in selection.indices]
    return Indices(selection, shape, strides, steps, distance)


def distance_in(selection: Selection) -> np.dtype:
    """Return the integer that holds the distances of a selection's indices in its view: the memory bounds their rate.

    >>> import tilearray as ta
    >>> distance_in(select(ta.zeros((3, 4)), (ta.asarray([2, 0]),))).name
    'int32'
    """
    layout = selection.view._signature.layout
    reach = sum([(layout.shape[axis] - 1) * abs(layout.strides[axis]) for axis in selection.axes])
    return INT32 if reach < 2**31 else INT64


def distances(known: Indices, indices: Sequence[A], mode: str, stream: Any) -> A:
    """Return the distances of indices in their common shape; the indices are checked in a mode."""
    found = empty_array(indices[0].__class__, known.dense, stream)
    known.run(placing, (known.dense.dtype,), [], indices, found, mode, stream)
    return found


def placed_at(selection: Selection, steps: Ints) -> Any:
    """Return the distances of checked indices in their common shape, for other strides of a selection's view."""
    known = alone(selection, steps)
    return distances(known, selection.indices, known.mode, STATE.get().stream)


def _numbers(dtype: np.dtype, size: int, stride: int) -> tuple[int, ...]:
    """The numbers that `place_of` takes after an index of a dtype."""
    return (LAST, size, stride) if dtype == _UINT64 else (size, stride)


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


def _outside(axes: Sequence[int], sizes: Sequence[int], outside: Sequence[int | None]) -> IndexingError:
    """The error of the first axis with an index outside of it."""
    axis, size, index = next(found for found in zip(axes, sizes, outside, strict=True) if found[2])
    return IndexingError(
        f"indexing: expected {-size} <= index < {size} for axis {axis} of the selected view, got {index} "
        "in an index array, which is out of bounds; write indices within the axis, or "
        "ta.set_index_check('clip')"
    )


# --- reading ----------------------------------------------------------------------------------------------------------


@cache
def gathering(dtype: np.dtype, indices: tuple[np.dtype, ...], checked: bool) -> FixedOperation:
    """Return the operation that reads elements at indices."""
    builder = ExpressionBuilder()
    source = builder.memory(dtype)
    element = builder.node("gather", source, place_of(builder, indices, checked))
    return FixedOperation("indexing", builder.build([element], [dtype]))


def _gather(selection: Selection) -> Any:
    return _gathered(_known(selection), selection.view, selection.indices)


def _known(selection: Selection) -> _Gather:
    view, axes, indices, _, before, inside = selection
    signatures = tuple([index._signature for index in indices])
    place = (selection.__class__, view._signature, axes, before, inside, *signatures)
    return _GATHERS.get(place) or _GATHERS.put(place, _Gather(selection))


def remember_gather(words: Words, x: ArrayBase, index: ArrayBase, key: Any) -> None:
    """Keep the gather of an array by a key, of one index array and all of each other axis, as a call of both arrays."""
    device = x._signature.device
    if device.backend.indexing is not None or index._signature.device is not device or is_recorded(device):
        return
    selection = select(x, key)
    view = selection.view
    if selection.indices[0] is index and view._signature is x._signature and view._offset == x._offset:
        known = _known(selection)

        def call(stream: Any, x: Any, index: Any) -> Any:
            return _gathered(known, x, (index,))

        remember(words, (x, index), call)


class _Gather:
    """All parts of a gather that follow from the signatures of the view and the indices.

    Rows of small elements are gathered as rows of words, if they lie in whole words: a program reads a row at most, and
    starts in the time of 2 KiB of memory. On an H200, of 25 million elements, rows of 64 bfloat16 are gathered in 26 us
    as words, and in 47 as elements; of 768 uint8 in 11 and 35.

    Attributes
    ----------
    out : Signature
        The result.
    made, source : Signature
        The memory of the result as it is written, and that of the view with the strides of the loop.
    indices : Indices
        The indices in the loop; alone if nothing is read, as a wrong index is still an error.
    reads : bool
        Whether anything is read.
    launches : dict
        For each mode the epoch of the plans, and the launch that makes the result, or None if there is none.
    """

    __slots__ = ("indices", "launches", "made", "out", "reads", "source")

    def __init__(self, selection: Selection) -> None:
        view, shape = selection.view, selection.result_shape
        self.out = self.made = signature_of(Layout.of(shape), view.dtype, view.device)
        self.source = walked(view._signature, shape, selection.over_rest(view.strides))
        self.reads = 0 not in shape or 0 in selection.shape
        self.launches: dict[str, tuple[int, Call | None]] = {}
        if not self.reads:
            self.indices = alone(selection)
            return
        steps, words = None, _elements_of_words(selection)
        if words > 1:
            steps = (*[stride // words for stride in view.strides[:-1]], 1)
            shape = (*shape[:-1], shape[-1] // words)
            self.made = signature_of(Layout.of(shape), _UINT64, view.device)
            self.source = signature_of(Layout(shape, selection.over_rest(steps)), _UINT64, view.device, True)
        layouts = [index._signature.layout for index in selection.indices]
        self.indices = Indices(selection, shape, [selection.over_indices(layout) for layout in layouts], steps)


def _elements_of_words(selection: Selection) -> int:
    """Return how many elements a word has, if all rows of the selection are whole words, else 1."""
    signature = selection.view._signature
    shape, strides = signature.layout.shape, signature.layout.strides
    words = WORD // signature.itemsize
    is_last = selection.__class__ is Selection and selection.place < len(shape) - len(selection.axes)
    stays = is_last and len(shape) - 1 not in selection.axes  # the last axis is that of the result
    if words <= 1 or not (stays and signature.aligned and strides[-1] == 1):
        return 1
    steps = [stride for size, stride in zip(shape[:-1], strides) if size > 1]
    return 1 if any(extent % words for extent in (shape[-1], *steps)) else words


_GATHERS: TwoGenerations[_Gather] = TwoGenerations(2048)


def _gathered(known: _Gather, view: A, indices: tuple[Any, ...]) -> A:
    """Return a new array of the elements of a view at indices, all of known signatures."""
    state, parts = STATE.get(), known.indices
    stream, mode = state.stream, parts.mode
    epoch, launch = known.launches.get(mode, (-1, None))
    if launch is not None and epoch == PLANS.epoch and state.recording is None:
        return _launched(launch, parts, view, indices, mode, stream)
    out = empty_array(view.__class__, known.made, stream)
    if not known.reads:
        distances(parts, indices, mode, stream)
        return out
    epoch, dtype = PLANS.epoch, known.made.dtype
    operands: list[Any] = [view._make(view._buffer, view._offset, known.source)]
    parts.run(gathering, (dtype,), operands, indices, out, mode, stream)
    found = out if known.made is known.out else out._make(out._buffer, out._offset, known.out)
    if mode not in known.launches or known.launches[mode][0] != epoch:
        given = [place for place, operand in enumerate(operands) if isinstance(operand, ArrayBase)]
        operation = gathering(dtype, parts.dtypes, mode != "clip")
        known.launches[mode] = epoch, launch_making(operation, operands, found, out, given)
    return found


def _launched(launch: Call, parts: Indices, view: ArrayBase, indices: Sequence[Any], mode: str, stream: Any) -> Any:
    """Return the result of a launch that takes the memory of a view, and of each index and its report."""

    def act(reports: Any) -> Any:
        given = [view._buffer, view._offset]
        for place, index in enumerate(indices):
            given += (index._buffer, index._offset)
            if reports is not None:
                given += (reports[place], 0)
        return launch(stream, *given)

    return parts.checked(act, mode, stream)
