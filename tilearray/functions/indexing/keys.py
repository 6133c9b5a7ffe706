"""Keys with integer arrays: the axes that they index, and the place of those axes in the result.

The rules are NumPy's. An integer array indexes one axis; a mask indexes one axis for each of its own. Beside an array
an int counts as an array. The arrays broadcast against each other, and their common shape replaces the indexed axes:
at the place of the first one if they are adjacent, else in front.

>>> import tilearray as ta
>>> x, rows = ta.zeros((4, 5, 6)), ta.asarray([0, 2, 2])
>>> x[rows].shape, x[:, 1, rows].shape, x[1, :, rows].shape
((3, 5, 6), (4, 3), (3, 5))
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.devices import Device
from tilearray.engine.signature import ArrayBase, from_host
from tilearray.errors import DeviceError, FusionError, IndexingError, OperandError, type_name
from tilearray.functions.conversion import to_device
from tilearray.functions.python_data import ndarray_of
from tilearray.geometry.layout import Layout, broadcast_shapes
from tilearray.interchange.numpy import from_host_object
from tilearray.promotion.scalars import needed

Ints = tuple[int, ...]

PLAIN = frozenset({int, slice, type(None), type(Ellipsis)})
"""The classes of parts that are not arrays, for speed."""


def has_arrays(key: Any) -> bool:
    """Whether a key selects by arrays, lists, tuples or ranges. A 0-d integer array is an int."""
    if not isinstance(key, tuple):
        return key.__class__ not in PLAIN and is_array(key)
    for part in parts_of(key):  # noqa: SIM110 - half the time of any(...)
        if part.__class__ not in PLAIN and is_array(part):
            return True
    return False


def parts_of(key: Any) -> tuple[Any, ...]:
    """The parts of a key; a key that is not a tuple has one."""
    return key if isinstance(key, tuple) else (key,)  # pyright: ignore[reportUnknownVariableType]


_ARRAYS: tuple[Any, ...] = (ArrayBase, np.ndarray)
_OF_NUMPY: tuple[Any, ...] = (np.ndarray, np.integer)
BOOLS: tuple[Any, ...] = (bool, np.bool_)
_LISTS: tuple[Any, ...] = (list, tuple, range, *BOOLS)


def is_array(part: Any) -> bool:
    """Whether a part of a key is an index array, a mask, a list, tuple or range, or a bool: a mask of no axes."""
    if issubclass(type(part), ArrayBase):
        signature = part._signature
        return signature.layout.ndim > 0 or signature.dtype.kind not in "iu"
    if issubclass(type(part), _ARRAYS):
        return not is_integer(part)
    return isinstance(part, _LISTS)


def is_index(part: Any) -> bool:
    """Whether a part of a key is an Array of integers or bools with axes."""
    return issubclass(type(part), ArrayBase) and part._signature.traits.indexes


def is_integer(part: Any) -> bool:
    """Whether a part of a key is an integer of NumPy or a 0-d integer array, which counts as an int."""
    if issubclass(type(part), ArrayBase):
        return part._signature.traits.is_0d and part._signature.dtype.kind in "iu"
    return isinstance(part, _OF_NUMPY) and not part.shape and part.dtype.kind in "iu"


def as_index(part: Any, device: Device) -> Any:
    """Return an array key as an Array on a device; lists, tuples, ranges and ndarrays are copied there.

    Raises
    ------
    IndexingError
        If its dtype is neither an integer nor bool.
    DeviceError
        If it is an Array on another device.
    FusionError
        If the device records operations of a fused function.
    """
    if device.functions is not None:
        device, part = device.functions.place, device.functions.below(part)
    if issubclass(type(part), ArrayBase):
        signature = part._signature
        if signature.device is device and (signature.traits.indexes or signature.dtype.kind in "iub"):
            return part
        if signature.device is not device:
            if device.recorder is not None:
                raise FusionError(
                    "fuse: elements at an index that is an array are not elementwise, and a fused function is; "
                    "write two fused functions, and index between them"
                )
            raise DeviceError(
                f"indexing: the array is on {device} and the index on {part._signature.device}; "
                f"write index.to_device({str(device)!r})"
            )
        found: Any = part
    else:
        found = to_device(from_host(host_index(part, "indexing"), ArrayBase._public), device)
    if found.dtype.kind not in "iub":
        raise IndexingError(
            f"indexing: expected arrays of integers or bools as indices, got {found.dtype.name}; "
            f"write index.astype('int64')"
        )
    return found


def host_index(part: Any, function: str) -> np.ndarray:
    """Return the ndarray of a list, a tuple or an ndarray of integers or bools, or of one integer or bool."""
    part = needed(part)
    if isinstance(part, np.ndarray):
        host = from_host_object(part, copy=None, function=function)  # pyright: ignore[reportUnknownArgumentType]
        assert host is not None  # an ndarray is a host object
        return host
    if not issubclass(type(part), (list, tuple, range, int, np.integer, np.bool_)):
        raise OperandError(f"{function}: expected integers or bools as indices, got {type_name(part)}; write a list")
    if isinstance(part, int | np.integer | np.bool_):
        return np.asarray(part)  # pyright: ignore[reportUnknownArgumentType]
    host = ndarray_of(part, None, function)
    return host if host.size else host.astype(dtypes.int64)  # a list without elements has no dtype


class Selection(NamedTuple):
    """The selection of a key with integer arrays."""

    view: Any
    """The view that the other parts select; the indexed axes are whole."""
    axes: Ints
    """The axes of the view that are indexed."""
    indices: tuple[Any, ...]
    """An integer Array for each of them."""
    shape: Ints
    """The common shape of the indices."""
    place: int
    """The number of the view's other axes before `shape` in the result."""
    inside: bool = False
    """Whether all indices are known to lie within their axes."""

    @property
    def result_shape(self) -> Ints:
        """The shape of the result."""
        rest = [size for axis, size in enumerate(self.view.shape) if axis not in self.axes]
        return (*rest[: self.place], *self.shape, *rest[self.place :])

    def over_rest(self, strides: Ints) -> Ints:
        """Strides of the view along the result's axes: 0 along the axes of the indices."""
        rest = [stride for axis, stride in enumerate(strides) if axis not in self.axes]
        return (*rest[: self.place], *(0,) * len(self.shape), *rest[self.place :])

    def over_indices(self, layout: Layout) -> Ints:
        """Strides of an index along the result's axes: 0 along the axes of the view."""
        strides = layout.broadcast_to(self.shape).strides
        rest = len(self.view.shape) - len(self.axes)
        return (*(0,) * self.place, *strides, *(0,) * (rest - self.place))


def select(x: Any, key: Any) -> Selection:
    """Return the selection of a key with arrays. A mask becomes the indices of its true elements.

    Raises
    ------
    IndexingError
        If there are more indices than axes, a part is of another kind, or a mask does not have the sizes of its axes.
    """
    parts = parts_of(key)
    form = _form_of(x, parts)
    if form is None:
        return _select(x, parts)
    known = _KNOWN.get(form)
    if known is None:
        selection = _select(x, parts)
        _KNOWN.put(form, _Known(x, selection, parts))
        return selection
    return known.selection(x, parts)


def _select(x: Any, given: tuple[Any, ...]) -> Selection:
    """Read a key, part by part."""
    parts: list[Any] = [_as_array(part, x.device) if is_array(part) else part for part in given]
    masks = [part for part in parts if _is_mask(part)]
    inside = len(masks) == sum(map(is_array, given))
    if masks:
        x, parts = _without_masks(x, parts)
    whole = tuple([slice(None) if _indexes(part) else part for part in parts])
    layout, shift = x._signature.layout.index(whole)
    view = x._view(layout, shift)
    axes: list[int] = []
    indices: list[Any] = []
    advanced: list[int] = []
    axis = 0
    for position, part in enumerate(parts):
        if _indexes(part):
            axes.append(axis)
            indices.append(part)
        if _counts_as_array(part):
            advanced.append(position)
        axis += _axes_of(part, parts, x)
    together = advanced[-1] - advanced[0] == len(advanced) - 1
    shape = broadcast_shapes(*[index.shape for index in indices], function="indexing")
    return Selection(view, tuple(axes), tuple(indices), shape, axes[0] if together else 0, inside)


def _form_of(x: ArrayBase, parts: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return all that the selection of a key depends on but the elements of its arrays; None if that is not known.

    It is known of ints, slices of ints, integer Arrays on the device, ``...`` and ``newaxis``.
    """
    form: list[Any] = [x._signature]
    device = x._signature.device
    for part in parts:
        kind = part.__class__
        if kind is slice:
            start, stop, step = part.start, part.stop, part.step
            if start.__class__ not in _ENDS or stop.__class__ not in _ENDS or step.__class__ not in _ENDS:
                return None
            form.append((start, stop, step))
        elif issubclass(type(part), ArrayBase):
            signature = part._signature
            if not signature.traits.indexes or signature.dtype.kind == "b" or signature.device is not device:
                return None
            form.append(signature)
        elif kind in PLAIN:
            form.append(part)
        else:
            return None
    return tuple(form)


_ENDS = frozenset({int, type(None)})


class _Known:
    """A selection without its memory.

    Attributes
    ----------
    signature : Signature
        That of the view.
    shift : int
        The bytes from the array's first element to that of the view.
    positions : tuple of int
        The parts of the key that are arrays.
    axes, others : tuple
        Fields of the selection: its axes; its shape and place.
    """

    __slots__ = ("axes", "others", "positions", "shift", "signature")

    def __init__(self, x: ArrayBase, selection: Selection, parts: tuple[Any, ...]) -> None:
        self.signature = selection.view._signature
        self.shift = selection.view._offset - x._offset
        self.positions = tuple([place for place, part in enumerate(parts) if issubclass(type(part), ArrayBase)])
        self.others = (selection.shape, selection.place)
        self.axes = selection.axes

    def selection(self, x: ArrayBase, parts: tuple[Any, ...]) -> Selection:
        """Return the selection of an array by a key of the same form."""
        indices = tuple([parts[place] for place in self.positions])
        view = x._make(x._buffer, x._offset + self.shift, self.signature)
        if self.shift % 16 and not x._signature.aligned:
            view = x._view(self.signature.layout, self.shift // x._signature.itemsize)
        return Selection(view, self.axes, indices, *self.others)


_KNOWN: TwoGenerations[_Known] = TwoGenerations(2048)


def _as_array(part: Any, device: Device) -> Any:
    """Return an array of a key on a device. A mask on the host stays an ndarray: its indices are copied, not itself."""
    if not issubclass(type(part), ArrayBase):
        host = host_index(part, "indexing")
        if host.dtype == np.bool_:
            return host
    return as_index(part, device)


def _is_mask(part: Any) -> bool:
    return isinstance(part, _ARRAYS) and part.dtype.kind == "b"


def _without_masks(x: Any, parts: list[Any]) -> tuple[Any, list[Any]]:
    """Return a view and a key in which the indices of the true elements stand for each mask.

    A mask without axes indexes a new axis of size 1.
    """
    taken = sum(_taken_by(part) for part in parts)
    before: list[Any] = []
    found: list[Any] = []
    axis = 0
    for part in parts:
        if _is_mask(part):
            _check_mask(part.shape, axis, x.shape)
            before += [slice(None)] * len(part.shape) or [None]
            found += _true_places(part, x)
        else:
            before += [Ellipsis] if part is Ellipsis else [slice(None)] * _taken_by(part)
            found.append(part)
        axis += len(x.shape) - taken if part is Ellipsis else _taken_by(part)
    layout, shift = x._signature.layout.index(tuple(before))
    return x._view(layout, shift), found


def _taken_by(part: Any) -> int:
    """The number of axes that a part of a key takes; 0 for an ellipsis."""
    if part is None or part is Ellipsis:
        return 0
    return len(part.shape) if _is_mask(part) else 1


def is_mask_over(mask: Ints, shape: Ints) -> bool:
    """Whether a mask of a shape selects from the leading axes of an array: its sizes are theirs.

    A size of 0 is as good and selects nothing, as in NumPy.
    """
    return len(mask) <= len(shape) and all(one in (size, 0) for one, size in zip(mask, shape))


def _check_mask(mask: Ints, axis: int, shape: Ints) -> None:
    if not is_mask_over(mask, shape[axis:]):
        raise IndexingError(
            f"indexing: expected a mask with the sizes of the axes of shape {shape} from axis {axis} on, got shape "
            f"{mask}; write ta.broadcast_to(mask, sizes)"
        )


def _true_places(mask: Any, x: Any) -> list[Any]:
    """The indices of a mask's true elements along each of its axes, as arrays on the device of `x`."""
    if issubclass(type(mask), ArrayBase):
        from tilearray.functions.indexing.masks import places_of  # here: few programs need it

        return list(places_of(mask if mask.shape else mask._view(mask._signature.layout.expand_dims((0,)))))
    places = np.nonzero(mask if mask.ndim else mask[None])
    return [to_device(from_host(place, ArrayBase._public), x.device) for place in places]


def _indexes(part: Any) -> bool:
    return issubclass(type(part), ArrayBase) and part._signature.layout.shape != ()


def _counts_as_array(part: Any) -> bool:
    return part is not None and part is not Ellipsis and not isinstance(part, slice)


def _axes_of(part: Any, parts: list[Any], x: Any) -> int:
    """The number of axes of the view that belong to a part."""
    if part is Ellipsis:
        taken = sum(other is not None and other is not Ellipsis for other in parts)
        return x.ndim - taken
    return 0 if _counts_as_array(part) and not _indexes(part) else 1
