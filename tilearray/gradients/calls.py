"""Whole functions on followed arrays that are more than operations: reading and writing by index, sorting, copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.asarray import asarray
from tilearray.arrays.fills import arange, full
from tilearray.engine.devices import Device
from tilearray.engine.signature import ArrayBase
from tilearray.errors import GradientError
from tilearray.functions.arguments import deepest, without_derivative
from tilearray.functions.conversion import astype, to_device
from tilearray.functions.indexing.assign import set as assign
from tilearray.functions.indexing.assign import set_view
from tilearray.functions.indexing.gather import gather_selected
from tilearray.functions.indexing.keys import parts_of
from tilearray.functions.indexing.scatter import scatter_selected, without_leading_axes
from tilearray.functions.indexing.take import take
from tilearray.functions.indexing.views import get
from tilearray.functions.manipulation import broadcast_to, new_like, reshape
from tilearray.functions.searching import argsort, where
from tilearray.functions.ufunc_at import Mode
from tilearray.gradients.followed import FollowingDevice, is_followed, lowered
from tilearray.gradients.following import recorded
from tilearray.ops.arithmetic import add, maximum
from tilearray.ops.execute import copy_of, fill
from tilearray.ops.op import Op


class Calls:
    """Whole functions on a followed array that are more than operations."""

    def __init__(self, device: FollowingDevice) -> None:
        self._device = device

    def follows(self, other: Device) -> bool:
        """Whether an array of another device is a constant here."""
        return any(other is below for below in self._device.chain())

    @property
    def place(self) -> Device:
        """The device of the memory, below all levels: there are index arrays."""
        return list(self._device.chain())[-1]

    def below(self, x: Any) -> Any:
        """Return the array in memory below a followed one, where derivatives end; any other object as it is."""
        while is_followed(x):
            x = lowered(x)
        return x

    def to_device(self, x: Any, target: Device, stream: Any) -> Any:
        """Return an array on a device; its cotangents go back to the device of `x`."""
        found = to_device(lowered(x, self._device), target, stream=stream)

        def pull(cotangents: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
            del wanted
            return [to_device(cotangents[0], self.place)]

        return recorded(self._device, found, (x,), pull)

    def order_along(self, x: Any, axis: int, descending: bool) -> Any:
        """Return the indices that sort an array along an axis."""
        return argsort(without_derivative(x), axis, descending=descending)

    def counted(self, places: Any, weights: Any, count: int) -> Any:
        """Return the sums of weights of equal places below `count`."""
        return spread(weights, self.below(places), count)

    def gather(self, x: Any, key: Any) -> Any:
        """Return the elements at a key with index arrays."""
        plain = tuple([lowered(part, self._device) for part in parts_of(key)])
        plain = plain if isinstance(key, tuple) else plain[0]
        return self._gathered(x, lambda array: get(array, plain))

    def gather_selected(self, selection: Any) -> Any:
        """Return the elements of a selection."""
        indices = tuple([lowered(index, self._device) for index in selection.indices])
        at = selection._replace(indices=indices)
        return self._gathered(selection.view, lambda array: gather_selected(at._replace(view=array)))

    def _gathered(self, x: Any, read: Callable[[Any], Any]) -> Any:
        real, shape = lowered(x), x._signature.layout.shape
        size = x._signature.layout.size
        place = self.place

        def pull(cotangents: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
            del wanted
            places = read(reshape(arange(size, dtype=dtypes.int64, device=place), shape))
            return [reshape(spread(cotangents[0], places, size), shape)]

        return recorded(self._device, read(real), (x,), pull)

    def scatter(self, x: Any, key: Any, value: Any) -> None:
        """Assign a number or an array to the elements that a key with arrays selects; of several, the last stays."""
        plain = tuple([self.below(part) for part in parts_of(key)])
        plain = plain if isinstance(key, tuple) else plain[0]
        self._scattered(x, value, lambda array: get(array, plain), lambda array, found: assign(array, plain, found))

    def scatter_selected(self, selection: Any, value: Any) -> None:
        """Assign to the elements of a selection."""
        at = selection._replace(indices=tuple([self.below(index) for index in selection.indices]))

        def read(array: Any) -> Any:
            return gather_selected(at._replace(view=array))

        def write(array: Any, found: Any) -> None:
            scatter_selected(at._replace(view=array), found)

        self._scattered(selection.view, value, read, write)

    def _scattered(self, x: Any, value: Any, read: Callable[[Any], Any], write: Callable[[Any, Any], None]) -> None:
        """Assign the numbers of the elements to integers, which then say where each element of `x` comes from."""
        place, shape = self.place, x._signature.layout.shape
        source = full(shape, -1, dtype=dtypes.int64, device=place)
        selected = read(source)
        count = selected.size
        selected = reshape(arange(count, dtype=dtypes.int64, device=place), selected.shape)
        write(source, selected)
        if isinstance(value, ArrayBase):
            flat = reshape(broadcast_to(without_leading_axes(value, selected.ndim), selected.shape), (count,))
            value = reshape(take(flat, reshape(maximum(source, 0), (-1,)), axis=0), shape) if count else 0
        where(source < 0, x, value, out=x)

    def at(self, op: Op, x: Any, key: Any, values: Any, mode: Mode) -> None:
        """Add values in place at a key, or subtract them, once more for every repetition of an index."""
        if op.name not in _SIGNS:
            operands = "x[i]" if values is None else "x[i], y"
            raise GradientError(
                f"vjp: {op.name}.at has no derivative; write x[i] = ta.{op.name}({operands}) for indices that differ, "
                f"or ta.add.at"
            )
        plain = tuple([self.below(part) for part in parts_of(key)])
        plain = plain if isinstance(key, tuple) else plain[0]
        if isinstance(values, ArrayBase):
            values = broadcast_to(values, get(self.below(x), plain).shape)
        set_view(x, _added_at(op, x, plain, values, mode))


# --- the adjoint of reading at positions ----------------------------------------------------------------------------


def spread(values: Any, positions: Any, size: int) -> Any:
    """Return an array of one axis with values added up at positions, in their order.

    Parameters
    ----------
    values : Array
    positions : Array or ndarray
        Integers of the shape of `values`.
    size : int

    Examples
    --------
    >>> import tilearray as ta
    >>> spread(ta.asarray([1.0, 2.0, 4.0]), ta.asarray([0, 2, 0]), 3)
    Array([5., 0., 2.], dtype=float32, device='cpu')
    """
    if is_followed(values):
        device = values._signature.device
        below = spread(lowered(values), positions, size)
        shape = values._signature.layout.shape

        def pull(cotangents: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
            del wanted
            return [reshape(take(cotangents[0], reshape(positions, -1), axis=0), shape)]

        return recorded(device, below, (values,), pull)
    signature = values._signature
    if isinstance(positions, np.ndarray):
        positions = asarray(positions, device=signature.device)
    zeros = fill(new_like(values, (size,)), 0, "vjp")
    add.at(zeros, reshape(positions, -1), reshape(values, -1))
    return zeros


_SIGNS = {"add": 1, "subtract": -1}


def _added_at(op: Op, x: Any, key: Any, values: Any, mode: Mode) -> Any:
    """Return a copy of an array with a number, or an array of the shape of ``x[key]``, added or subtracted at a key."""
    arrays = [each for each in (x, values) if isinstance(each, ArrayBase)]
    device = deepest(arrays)._signature.device
    if not isinstance(device, FollowingDevice):
        found = copy_of(x)
        op.at(found, key, values, mode=mode)
        return found

    def pull(cotangents: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
        (given,) = cotangents
        return [given, _as_operand(get(given, key) * _SIGNS[op.name], values) if wanted[1] else None]

    below = _added_at(op, lowered(x, device), key, lowered(values, device), mode)
    return recorded(device, below, (x, values), pull)


def _as_operand(cotangent: Any, operand: Any) -> Any:
    """Return the cotangent of an operand that was cast to a target: of a real one, the real part."""
    is_real = dtypes.info(operand.dtype).kind == "float" and dtypes.info(cotangent.dtype).kind == "complex"
    return astype(cotangent.real if is_real else cotangent, operand.dtype, copy=False)
