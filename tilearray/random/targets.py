"""Where a draw goes: the shape, dtype and device of new arrays, and targets that a caller gives.

A draw writes aligned arrays in C order. Another target gets a copy of them, so that its numbers are those of its
logical indices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.engine.context import STATE
from tilearray.engine.devices import Device, as_device
from tilearray.engine.signature import dense_signature, new_array
from tilearray.errors import DeviceError, DTypeError, ShapeError
from tilearray.functions.conversion import astype
from tilearray.geometry.shapes import as_shape, broadcast_shapes, check_extent
from tilearray.ops.execute import check_target
from tilearray.random.draws import UNIT, computed_in

FLOATS = frozenset(UNIT)


class Target(NamedTuple):
    """The shape, the dtype and the device of a draw, and the array that a caller gave for it, or None."""

    function: str
    shape: tuple[int, ...]
    dtype: np.dtype
    device: Device
    out: Array | None

    @property
    def size(self) -> int:
        """The number of elements."""
        found = 1
        for extent in self.shape:
            found *= extent
        return found

    def as_computed(self) -> Target:
        """Return new memory of the shape, in the dtype of the computation."""
        return Target(self.function, self.shape, computed_in(self.dtype), self.device, None)

    def holding(self, values: Array) -> Array:
        """Return values of the shape in the dtype: in the caller's array, or alone."""
        found = astype(values, self.dtype, copy=False)
        return found if self.out is None else stored(found, self.out)

    def filled(self, draw: Callable[[Array], Any]) -> Array:
        """Return an array that `draw` fills in C order: the caller's, or a new one."""
        out = self.out
        if out is not None and out._signature.layout.contiguous and out._signature.aligned:
            draw(out)
            return out
        new = new_array(Array, dense_signature(self.shape, self.dtype, self.device, self.function))
        draw(new)
        return new if out is None else stored(new, out)


def stored(values: Array, out: Array) -> Array:
    """Store values in a target of their shape and dtype, and return the target."""
    out[...] = values
    return out


def target_of(
    function: str,
    size: Any,
    dtype: Any,
    device: Any,
    out: Any = None,
    kinds: Collection[np.dtype] = FLOATS,
    default: np.dtype | None = None,
    parameters: tuple[int, ...] | None = None,
) -> Target:
    """Return the target of a draw.

    `default` is the dtype that None stands for, if it is not the default float. `parameters` is the common shape of
    the parameters: the shape of the draw if there is no size, and broadcast to it if there is one.

    Raises
    ------
    ShapeError
        If the size is not a shape, or not the shape of `out`, or the parameters do not broadcast to it.
    DTypeError
        If the distribution has no numbers of the dtype, or it is not that of `out`.
    """
    if out is not None:
        check_target(function, out)
    given: Array | None = out
    shape = _shape(function, size, given, parameters)
    if given is None:
        target = as_device(device, function)
        wanted = default or STATE.get().semantics.defaults["float"]
        chosen = wanted if dtype is None else dtypes.as_dtype(dtype, function)
    else:
        target, chosen = given.device, given.dtype
        if device is not None and as_device(device, function) is not target:
            raise DeviceError(f"{function}: out is on {target}, and device is {device}; write one of them")
        if dtype is not None and dtypes.as_dtype(dtype, function) != chosen:
            named = dtypes.as_dtype(dtype, function).name
            raise DTypeError(f"{function}: out has dtype {chosen.name}, and dtype is {named}; write one of them")
    if chosen not in kinds:
        names = ", ".join(sorted(kind.name for kind in kinds))
        raise DTypeError(
            f"{function}: expected one of {names}, got {chosen.name}; write .astype({chosen.name!r}) after it"
        )
    check_extent(shape, chosen.itemsize, function)
    return Target(function, shape, chosen, target, given)


def _shape(function: str, size: Any, out: Array | None, parameters: tuple[int, ...] | None) -> tuple[int, ...]:
    natural = (parameters or ()) if out is None else out.shape
    shape = natural if size is None else as_shape(size, function)
    if out is not None and shape != out.shape:
        raise ShapeError(f"{function}: out has shape {out.shape}, and size is {shape}; write size=None, or one shape")
    if parameters and broadcast_shapes(parameters, shape, function=function) != shape:
        raise ShapeError(
            f"{function}: expected parameters that broadcast to {shape}, got the shape {parameters}; "
            "write size=None for the shape of the parameters"
        )
    return shape
