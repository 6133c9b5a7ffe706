"""The parameters of distributions: numbers, which become part of one kernel's arguments, or arrays that broadcast."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.engine.devices import Device, as_device, using_device
from tilearray.errors import DTypeError, OperandError, ParameterError, shown
from tilearray.functions.arguments import as_arrays, is_host_data
from tilearray.functions.conversion import astype
from tilearray.functions.manipulation import broadcast_to
from tilearray.functions.reductions import all as all_true
from tilearray.geometry.shapes import Shape, broadcast_shapes
from tilearray.promotion.scalars import ScalarClass, as_number, classify
from tilearray.random.targets import Target

_MODERATE = 1e38
"""A number that float32 holds."""
_NUMPY: Any = np.generic  # Any: else a type checker takes the numbers to be unknown


class Parameters(NamedTuple):
    """The parameters of a call.

    Attributes
    ----------
    values : list
        Python numbers and Arrays.
    arrays : bool
        Whether there is an Array.
    shape : tuple of int
        The common shape of the Arrays.
    device : Device or str or None
        Their device; without Arrays the device that the caller named.
    """

    values: list[Any]
    arrays: bool
    shape: Shape
    device: Any


def parameters_of(function: str, given: Mapping[str, Any], device: Any, out: Array | None) -> Parameters:
    """Return parameters by their names.

    Raises
    ------
    OperandError
        If one is neither a real number nor an array.
    DTypeError
        If an array is complex.
    BroadcastError
        If the shapes of arrays do not broadcast.
    """
    values: list[Any] = []
    for name, value in given.items():
        number: Any = value.item() if isinstance(value, _NUMPY) else value
        is_number = classify(number) not in (None, ScalarClass.COMPLEX)
        if not (is_number or isinstance(number, Array) or is_host_data(number)):
            raise OperandError(
                f"{function}: expected {name} as a real number or an array, got {shown(value)}; "
                f"write ta.asarray({name})"
            )
        values.append(number)
    if all(classify(value) is not None for value in values):
        return Parameters(values, False, (), device)
    place = nullcontext() if device is None or out is not None else using_device(as_device(device, function))
    with place:
        values = as_arrays(function, values, out)
    arrays = [value for value in values if isinstance(value, Array)]
    for array in arrays:
        if dtypes.info(array.dtype).kind == "complex":
            raise DTypeError(f"{function}: expected real parameters, got {array.dtype.name}; write x.real")
    shape = broadcast_shapes(*[array.shape for array in arrays], function=function)
    return Parameters(values, True, shape, arrays[0].device)


def dense(value: Any, dtype: np.dtype, shape: Shape, device: Device) -> Array:
    """Return a parameter as an array of a dtype and a shape in C order."""
    from tilearray.arrays.fills import full

    if not isinstance(value, Array):
        return full(shape, value, dtype, device=device)
    cast = astype(value, dtype, copy=False)
    if cast.shape == shape and cast._signature.layout.contiguous:
        return cast
    return broadcast_to(cast, shape).copy(order="C")


def check_at_least(function: str, name: str, value: Any, least: float) -> None:
    """Raise ParameterError if a parameter is a number below `least`, or NaN. Arrays are not checked."""
    if not isinstance(value, Array) and not value >= least:
        raise ParameterError(f"{function}: expected {name} >= {least}, got {shown(value)}; write max({name}, {least})")


def check_everywhere(function: str, holds: Any, expected: str, given: Any, instead: str) -> None:
    """Raise ParameterError unless a condition holds; if it is an array, for all elements: a call on a GPU waits."""
    if not (bool(all_true(holds)) if isinstance(holds, Array) else holds):
        raise ParameterError(f"{function}: expected {expected}, got {shown(given)}; write {instead}")


def check_integers(function: str, name: str, value: Any) -> None:
    """Raise DTypeError if a parameter is a float, or an array of floats."""
    kind = dtypes.info(value.dtype).kind if isinstance(value, Array) else np.asarray(value).dtype.kind
    if kind in ("float", "f"):
        raise DTypeError(
            f"{function}: expected {name} as integers, got {shown(value)}; write int({name}) or {name}.astype('int64')"
        )


def affine(draw: Array, low: Any, span: Any, target: Target) -> Array:
    """Return ``draw * span + low``, computed in the dtype of `draw`, in a target. None adds nothing."""
    found = draw * in_dtype(draw.dtype, span)
    found = found if low is None else found + in_dtype(draw.dtype, low)
    return target.holding(found)


def in_dtype(dtype: np.dtype, value: Any) -> Any:
    """Return a parameter rounded to a float dtype: an array of it, or a Python number."""
    return astype(value, dtype, copy=False) if isinstance(value, Array) else rounded(value, dtype)


def rounded(value: Any, dtype: np.dtype) -> float:
    """Return a number as a float dtype has it: infinity if it is too large."""
    if value.__class__ is float and -_MODERATE < value < _MODERATE and dtype.itemsize >= 4:
        return float(dtype.type(value))
    with np.errstate(over="ignore"):
        return float(dtype.type(as_number(value, dtypes.float64)))
