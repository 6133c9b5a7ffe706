"""Evenly spaced values, each made from its position: what `arange` and `linspace` fill their arrays with.

Integers are computed modulo 2**64, so that nothing in between overflows, and floats in float64; then each value is
rounded once. The host and a GPU agree in every bit.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.context import STATE
from tilearray.engine.devices import CPU, Device
from tilearray.engine.expression import BodyMaker, Operand, run
from tilearray.engine.signature import empty_array, signature_of
from tilearray.geometry.layout import Layout
from tilearray.ops.typing import Body

if TYPE_CHECKING:
    from tilearray.array import Array


def integers(values: range, dtype: np.dtype, device: Device) -> Array:
    """Return the integers of a range, all of which int64 or uint64 holds.

    Examples
    --------
    >>> integers(range(5, 0, -2), dtypes.int8, CPU)
    Array([5, 3, 1], dtype=int8, device='cpu')
    """
    carrier = dtypes.uint64 if values and max(values[0], values[-1]) > dtypes.iinfo("int64").max else dtypes.int64
    start, step, count = values.start % 2**64, values.step % 2**64, len(values)
    if device is not CPU:
        return _filled(_stepping(carrier.name, dtype.name), count, [start, step], dtype, device)
    host = np.arange(count, dtype=np.uint64)
    host *= np.uint64(step)
    host += np.uint64(start)
    return _from_host(host.view(carrier), dtype, device)


def floats(start: float, step: float, count: int, dtype: np.dtype, device: Device) -> Array:
    """Return ``start + i * step``.

    Examples
    --------
    >>> floats(0.5, 0.25, 3, dtypes.float32, CPU)
    Array([0.5 , 0.75, 1.  ], dtype=float32, device='cpu')
    """
    if device is not CPU:
        return _filled(_stepping("float64", dtype.name), count, [start, step], dtype, device)
    host = np.arange(count, dtype=np.float64)
    host *= step
    host += start
    return _from_host(host, dtype, device)


def spaced(first: complex, last: complex, count: int, endpoint: bool, dtype: np.dtype, device: Device) -> Array:
    """Return `count` values from `first` to `last`, as ``np.linspace`` spaces them; integers are rounded down.

    Examples
    --------
    >>> spaced(0.0, 9.0, 4, True, dtypes.int64, CPU)
    Array([0, 3, 6, 9], dtype=int64, device='cpu')
    """
    gaps = count - 1 if endpoint else count
    step = (last - first) / gaps if gaps > 0 else last - first
    rounds_down = dtypes.info(dtype).kind in ("int", "uint")
    if device is not CPU and not isinstance(step, complex) and (step or first == last):
        is_closed = endpoint and count > 1
        numbers = [first, step, count - 1 if is_closed else -1, last]
        return _filled(_spacing(dtype.name, rounds_down), count, numbers, dtype, device)
    with np.errstate(all="ignore"):
        host = np.linspace(first, last, count, endpoint=endpoint)
    return _from_host(np.floor(host) if rounds_down and host.dtype.kind == "f" else host, dtype, device)


@cache
def _stepping(carrier: str, target: str) -> Body:
    """``start + position * step`` in uint64, read as `carrier`, or in float64."""
    maker = BodyMaker()
    computed = "float64" if carrier == "float64" else "uint64"
    start, step = maker.number(computed), maker.number(computed)
    position = maker.cast(maker.node("index"), "int64", computed)
    moved = maker.call("multiply", (position, step), computed, "{x} * {y}")
    value = maker.call("add", (moved, start), computed, "{x} + {y}")
    return maker.body((maker.cast(maker.cast(value, computed, carrier), carrier, target),), (target,))


@cache
def _spacing(target: str, rounds_down: bool) -> Body:
    """``start + position * step``, but for one position, which is the end itself."""
    maker = BodyMaker()
    start, step, last, end = (maker.number(dtype) for dtype in ("float64", "float64", "int64", "float64"))
    position = maker.node("index")
    moved = maker.call("multiply", (maker.cast(position, "int64", "float64"), step), "float64", "{x} * {y}")
    value = maker.call("add", (moved, start), "float64", "{x} + {y}")
    is_last = maker.call("equal", (position, last), "bool", "{x} == {y}")
    value = maker.call("where", (is_last, end, value), "float64", "tl.where({x}, {y}, {z})")
    if rounds_down:
        value = maker.call("floor", (value,), "float64", "tl.math.floor({x})")
    return maker.body((maker.cast(value, "float64", target),), (target,))


def _filled(body: Body, count: int, numbers: list[Any], dtype: np.dtype, device: Device) -> Array:
    from tilearray.array import Array

    stream = STATE.get().stream
    out = empty_array(Array, signature_of(Layout.of((count,)), dtype, device), stream)
    run(body, (count,), [Operand.of(out, (1,)), *numbers], device, stream)
    return out


def _from_host(host: np.ndarray, dtype: np.dtype, device: Device) -> Array:
    from tilearray.interchange.asarray import asarray

    return asarray(host, dtype=dtype, device=device)
