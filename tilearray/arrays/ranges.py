"""Evenly spaced values, each computed from its position, for `arange` and `linspace`.

Integers are computed modulo 2**64, so that intermediate results do not overflow; floats are computed in float64. Each
value is rounded once. The host and a GPU agree in every bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, cast

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.engine.context import STATE
from tilearray.engine.devices import Device
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import dense_signature, from_host, from_result, new_array
from tilearray.functions.conversion import astype, to_device

_EXACT = 2**52
"""NumPy counts the elements of a range in float64, which is exact up to here."""
_WHOLE = {dtypes.int32: 2**31, dtypes.int64: 2**31, dtypes.float32: 2**23, dtypes.float64: 2**52}
"""The whole numbers up to which NumPy's range of a dtype is exact; if no dtype is named, theirs is the default one."""

_IN_CACHE = 2**20
"""The most values that the host computes in passes over all of them; the operation takes more passes, over blocks."""


def of_small_numbers(start: Any, stop: Any, step: Any, dtype: np.dtype | None, device: Device) -> Array | None:
    """Return ``arange`` of Python numbers if NumPy's result is exact, on a GPU of ints; None for all other arguments.

    Examples
    --------
    >>> import tilearray as ta
    >>> cpu = ta.zeros(0, device="cpu").device
    >>> of_small_numbers(1, 8.5, 3, None, cpu), of_small_numbers(0, 1, 0.25, None, cpu)
    (Array([1., 4., 7.], dtype=float32, device='cpu'), None)
    """
    kind = start.__class__
    if kind is stop.__class__ is step.__class__ is int:
        first, kind_of_default = start, "int"
    elif kind in _REAL and stop.__class__ in _REAL and step.__class__ in _REAL and not (start % 1 or step % 1):
        first, kind_of_default = 0.0 * step + start, "float"  # -0.0 becomes 0.0, as in the kernel
    else:
        return None
    if dtype is None:
        dtype = STATE.get().semantics.defaults[kind_of_default]
    bound = _WHOLE.get(dtype, 0) if step and (device.backend.on_host or kind_of_default == "int") else 0
    if not (-bound < start < bound and abs(stop) + abs(step) < bound):
        return None
    if not device.backend.on_host:
        numbers = [start % 2**64, step % 2**64]
        return _filled(stepping(dtypes.int64, dtype), len(range(start, stop, step)), numbers, dtype, device)
    return from_result(cast(Any, np.arange)(first, stop, step, dtype), Array)


_REAL = frozenset({int, float})


def integers(values: range, dtype: np.dtype, device: Device) -> Array:
    """Return the integers of a range, all of which int64 or uint64 holds.

    Examples
    --------
    >>> import tilearray as ta
    >>> integers(range(5, 0, -2), dtypes.int8, ta.zeros(0, device="cpu").device)
    Array([5, 3, 1], dtype=int8, device='cpu')
    """
    first, end, step = values.start, values.stop, values.step
    if device.backend.on_host and -_EXACT < first < _EXACT and -_EXACT < end < _EXACT and -_EXACT < step < _EXACT:
        exact = from_result(np.arange(first, end, step, dtype=np.int64), Array)
        return exact if dtype is dtypes.int64 else astype(exact, dtype, copy=False)
    carrier = dtypes.uint64 if values and max(values[0], values[-1]) > dtypes.iinfo("int64").max else dtypes.int64
    start, step = values.start % 2**64, values.step % 2**64
    count = max(0, -((first - end) // values.step))  # `len` raises OverflowError from 2**63 on
    return _filled(stepping(carrier, dtype), count, [start, step], dtype, device)


def floats(start: float, step: float, count: int, dtype: np.dtype, device: Device) -> Array:
    """Return ``start + i * step``.

    Examples
    --------
    >>> import tilearray as ta
    >>> floats(0.5, 0.25, 3, dtypes.float32, ta.zeros(0, device="cpu").device)
    Array([0.5 , 0.75, 1.  ], dtype=float32, device='cpu')
    """
    if device.backend.on_host and count <= _IN_CACHE:
        return astype(from_result(_stepped(start, step, count), Array), dtype, copy=False)
    return _filled(stepping(dtypes.float64, dtype), count, [start, step], dtype, device)


def _stepped(start: Any, step: Any, count: int) -> np.ndarray:
    """Compute ``start + position * step`` in float64, as the operations do, with fewer passes."""
    values = np.arange(count, dtype=np.float64)
    with np.errstate(all="ignore"):
        values *= step
        values += start
    return values


def spaced(first: complex, last: complex, count: int, endpoint: bool, dtype: np.dtype, device: Device) -> Array:
    """Return `count` values from `first` to `last`, as ``np.linspace`` spaces them; integers are rounded down.

    Examples
    --------
    >>> import tilearray as ta
    >>> spaced(0.0, 9.0, 4, True, dtypes.int64, ta.zeros(0, device="cpu").device)
    Array([0, 3, 6, 9], dtype=int64, device='cpu')
    """
    gaps = count - 1 if endpoint else count
    step = (last - first) / gaps if gaps > 0 else last - first
    rounds_down = dtypes.info(dtype).kind in ("int", "uint")
    is_closed = endpoint and count > 1
    if isinstance(step, complex) or not (step or first == last):
        with np.errstate(all="ignore"):  # complex numbers, and steps that underflow: NumPy spaces them
            host = np.linspace(first, last, count, endpoint=endpoint)
    elif device.backend.on_host and count <= _IN_CACHE:
        host = _stepped(first, step, count)
        if is_closed:
            host[-1] = last
    else:
        numbers = [first, step, count - 1 if is_closed else -1, last]
        return _filled(spacing(dtype, rounds_down), count, numbers, dtype, device)
    values = np.floor(host) if rounds_down and host.dtype.kind == "f" else host
    return astype(to_device(from_host(values, Array), device), dtype, copy=False)


@cache
def stepping(carrier: np.dtype, target: np.dtype) -> FixedOperation:
    """Return ``start + position * step`` in uint64, read as `carrier`, or in float64."""
    builder = ExpressionBuilder()
    computed = dtypes.float64 if carrier == dtypes.float64 else dtypes.uint64
    start, step = builder.number(computed), builder.number(computed)
    position = builder.cast(builder.node("index"), dtypes.int64, computed)
    moved = builder.call("multiply", (position, step), computed, "{x} * {y}")
    value = builder.call("add", (moved, start), computed, "{x} + {y}")
    value = builder.cast(builder.cast(value, computed, carrier), carrier, target)
    return FixedOperation("arange", builder.build([value], [target]))


@cache
def spacing(target: np.dtype, rounds_down: bool) -> FixedOperation:
    """Return ``start + position * step``, except for one position, which is the end itself."""
    builder = ExpressionBuilder()
    double = dtypes.float64
    start, step, last, end = (builder.number(dtype) for dtype in (double, double, dtypes.int64, double))
    position = builder.node("index")
    moved = builder.call("multiply", (builder.cast(position, dtypes.int64, double), step), double, "{x} * {y}")
    value = builder.call("add", (moved, start), double, "{x} + {y}")
    is_last = builder.call("equal", (position, last), dtypes.bool_, "{x} == {y}")
    value = builder.call("where", (is_last, end, value), double, "tl.where({x}, {y}, {z})")
    if rounds_down:
        value = builder.call("floor", (value,), double, "tl.math.floor({x})")
    return FixedOperation("linspace", builder.build([builder.cast(value, double, target)], [target]))


def _filled(operation: FixedOperation, count: int, numbers: Sequence[Any], dtype: np.dtype, device: Device) -> Array:
    return run_fixed(operation, numbers, new_array(Array, dense_signature((count,), dtype, device, operation.name)))
