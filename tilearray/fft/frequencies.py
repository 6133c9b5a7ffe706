"""The frequencies that the elements of a transform belong to, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from numbers import Real
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.dtypes import DTypeLike
from tilearray.engine.array_type import A
from tilearray.engine.context import STATE
from tilearray.engine.devices import Device, DeviceLike, as_device
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import HostData, dense_signature, from_result, new_array
from tilearray.errors import DTypeError, OperandError, ShapeError, type_name
from tilearray.functions.arguments import as_array
from tilearray.functions.conversion import astype
from tilearray.functions.joining import roll
from tilearray.geometry.shapes import as_int, normalize_axes
from tilearray.ops.arithmetic import choose, multiply, subtract
from tilearray.ops.reduction import call_row


def fftfreq(n: int, /, d: float = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Array:
    """Return the frequencies of the elements of `fft`: 0 and the positive ones, then the negative ones.

    Parameters
    ----------
    n : int
        The size of the transform, at least 1.
    d : float
        The distance of samples; the frequencies are in cycles for each unit of `d`.
    dtype : dtype or name, optional
        A float dtype; None is the default one of the active semantics. The values are computed in float64.
    device : Device or str, optional

    Raises
    ------
    ShapeError
        If `n` is not a positive integer.
    OperandError
        If `d` is not a real number other than 0.
    DTypeError
        If `dtype` is not a float dtype.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fft.fftfreq(4).tolist(), ta.fft.fftfreq(5, d=0.2).tolist()
    ([0.0, 0.25, -0.5, -0.25], [0.0, 1.0, 2.0, -2.0, -1.0])
    """
    size, step, dtype = _checked("fft.fftfreq", n, d, dtype)
    target = as_device(device, "fft.fftfreq")
    if not target.backend.on_host:
        return _on_device(size, (size + 1) // 2, size, step, dtype, target)
    places = np.arange(size)
    places[(size + 1) // 2 :] -= size
    return _rounded(places * (1.0 / (size * step)), dtype)


def rfftfreq(n: int, /, d: float = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Array:
    """Return the frequencies of the elements of `rfft`: 0 and the positive ones. Parameters are those of `fftfreq`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    size, step, dtype = _checked("fft.rfftfreq", n, d, dtype)
    target = as_device(device, "fft.rfftfreq")
    if not target.backend.on_host:
        return _on_device(size // 2 + 1, size, size, step, dtype, target)
    return _rounded(np.arange(size // 2 + 1) * (1.0 / (size * step)), dtype)


def _rounded(frequencies: np.ndarray, dtype: np.dtype) -> Array:
    return astype(from_result(frequencies, Array), dtype, copy=False)


def _on_device(count: int, positive: int, size: int, step: float, dtype: np.dtype, device: Device) -> Array:
    """Return `count` frequencies, the first `positive` of them not below 0, without a copy from the host."""
    out = new_array(Array, dense_signature((count,), dtype, device, "fft.fftfreq"))
    return run_fixed(_frequencies(dtype), [positive, size, 1.0 / (size * step)], out)


@cache
def _frequencies(dtype: np.dtype) -> FixedOperation:
    """Return the operation that multiplies places by a number; from one place on it subtracts a size first."""
    builder, integer, double = ExpressionBuilder(), dtypes.int64, dtypes.float64
    positive, size, factor = builder.number(integer), builder.number(integer), builder.number(double)
    place = builder.node("index")
    below = call_row(builder, subtract, place, size, dtype=integer)
    is_positive = builder.call("less", (place, positive), dtypes.bool_, "{x} < {y}")
    place = call_row(builder, choose, is_positive, place, below, dtype=integer)
    found = call_row(builder, multiply, builder.cast(place, integer, double), factor, dtype=double)
    return FixedOperation("fft.fftfreq", builder.build([builder.cast(found, double, dtype)], [dtype]))


def _checked(function: str, n: Any, d: Any, dtype: Any) -> tuple[int, float, np.dtype]:
    size = as_int(n, function, "n")
    if size < 1:
        raise ShapeError(f"{function}: expected n >= 1, got {size}; write n=1")
    if not isinstance(d, Real) or d == 0:
        given = "0" if isinstance(d, Real) else type_name(d)
        raise OperandError(f"{function}: expected d as a real number other than 0, got {given}; write d=1.0")
    chosen = STATE.get().semantics.defaults["float"] if dtype is None else dtypes.as_dtype(dtype, function)
    if dtypes.info(chosen).kind != "float":
        raise DTypeError(f"{function}: expected a float dtype, got {chosen.name}; write dtype='float64'")
    return size, float(d), chosen


def fftshift(x: A | HostData, /, axes: int | Sequence[int] | None = None) -> A:
    """Move the frequency 0 to the centre of axes. It works on any device.

    Parameters
    ----------
    x : Array
    axes : int or tuple of int, optional
        None is all axes.

    Raises
    ------
    ShapeError
        If `x` has no such axis.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fft.fftshift(ta.fft.fftfreq(5, d=0.2)).tolist()
    [-2.0, -1.0, 0.0, 1.0, 2.0]
    """
    return _shifted("fft.fftshift", x, axes, 1)


def ifftshift(x: A | HostData, /, axes: int | Sequence[int] | None = None) -> A:
    """Undo `fftshift`: move the frequency 0 from the centre of axes to their first elements.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fft.ifftshift(ta.asarray([-2, -1, 0, 1, 2])).tolist()
    [0, 1, 2, -2, -1]
    """
    return _shifted("fft.ifftshift", x, axes, -1)


def _shifted(function: str, x: A | HostData, axes: Any, sign: int) -> A:
    x = as_array(function, x)
    places = normalize_axes(tuple(range(x.ndim)) if axes is None else axes, x.ndim, function)
    return roll(x, tuple([sign * (x.shape[place] // 2) for place in places]), axis=places)
