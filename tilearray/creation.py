"""Creation: arrays from data of any library, from nothing, and from ranges.

`asarray` is the front door. Memory that is on the host and can be shared is shared; Python data takes the default
dtypes of the semantics in force, or wider ones where a value asks for it. Creation happens on the default device
unless ``device=`` names one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilearray import dtypes, ramps
from tilearray.array import Array
from tilearray.base import ArrayBase, Signature, check_alignment, placed, signature_of
from tilearray.context import STATE
from tilearray.conversion import to_device
from tilearray.devices import CPU, Device, as_device
from tilearray.elementwise import copy_of, fill, new_array
from tilearray.errors import LayoutError, OperandError, ShapeError
from tilearray.interchange import cuda_array_interface, dlpack
from tilearray.interchange.numpy import from_host_object
from tilearray.layout import Layout, as_shape, result_layout
from tilearray.nested import is_python_data, ndarray_of, number_dtype
from tilearray.operands import type_name
from tilearray.scalars import Number, as_number, classify


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
    """Return an Array of `obj`, sharing its memory where that is possible.

    Parameters
    ----------
    obj : Array, ndarray, buffer, DLPack producer, number, or nested lists of numbers
    dtype : dtype or name, optional
        As the data have it; for Python numbers the default of their kind, or the wider dtype that holds them.
    device : Device or str, optional
        Where the array is to be: where it is, or the default device for host data and Python numbers.
    copy : bool, optional
        True always copies, False raises where a copy is needed, None copies only then.

    Raises
    ------
    OperandError
        If `obj` is nothing that holds numbers.
    DTypeError
        If its dtype is none of tilearray's.
    ScalarOverflowError
        If `dtype` does not hold a Python integer.
    LayoutError
        If ``copy=False`` and the memory cannot be shared.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.asarray([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int64, device='cpu')
    """
    wanted = None if dtype is None else dtypes.as_dtype(dtype, "asarray")
    if isinstance(obj, ArrayBase):
        return _converted(obj, wanted, device, copy)  # type: ignore[arg-type]
    target = as_device(device, "asarray")
    if is_python_data(obj):
        if copy is False:
            raise LayoutError("asarray: copy=False, but Python numbers have no memory to share; write copy=None")
        return to_device(_imported(ndarray_of(obj, wanted, "asarray")), target)
    if hasattr(obj, "__cuda_array_interface__"):
        return _converted(_from_gpu(obj, "asarray"), wanted, device, copy)
    host = from_host_object(obj, copy=copy, function="asarray")
    if host is None and hasattr(obj, "__dlpack__"):
        host = dlpack.from_capsule_producer(obj, copy=copy)
    if host is None:
        raise OperandError(
            f"asarray: expected an array, a buffer, a number or nested lists of numbers, got {type(obj).__name__}"
        )
    return _converted(_imported(host), wanted, target, None if copy else copy)


def _converted(x: Array, dtype: np.dtype | None, device: Any, copy: bool | None) -> Array:
    """`x` with the dtype, on the device, copied as asked."""
    target = x.device if device is None else as_device(device, "asarray")
    moves = target is not x.device or (dtype is not None and dtype != x.dtype)
    if copy is False and moves:
        raise LayoutError(
            f"asarray: copy=False, but {x.dtype.name} on {x.device} becomes "
            f"{(dtype or x.dtype).name} on {target}; write copy=None"
        )
    if not moves:
        return copy_of(x) if copy else x
    moved = to_device(x, target)
    return moved if dtype is None else moved.astype(dtype, copy=False)


def _imported(host: np.ndarray) -> Array:
    """An Array over an ndarray's memory."""
    itemsize = host.dtype.itemsize
    buffer, offset = CPU.backend.from_numpy(host, copy=False)
    layout = Layout(host.shape, tuple(stride // itemsize for stride in host.strides))
    if host.size:
        check_alignment(buffer.pointer + offset, host.dtype.alignment, "asarray")
    return Array._make(buffer, offset, signature_of(layout, host.dtype, CPU))


def _from_gpu(obj: Any, function: str) -> Array:
    """An Array over another library's GPU memory."""
    found = cuda_array_interface.import_from(obj, function)
    device = as_device(f"cuda:{found.device_index}", function)
    return Array._make(
        found.buffer, found.offset, placed(found.buffer, found.offset, found.layout, found.dtype, device)
    )


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Return an Array over the memory of a DLPack producer; nothing moves unless `device` asks for it.

    Raises
    ------
    InterchangeError
        If the memory cannot be shared as asked.

    Examples
    --------
    >>> import numpy as np
    >>> import tilearray as ta
    >>> source = np.arange(3.0)
    >>> ta.from_dlpack(source)[0] = 7
    >>> source
    array([7., 1., 2.])
    """
    target = None if device is None else as_device(device, "from_dlpack")
    found = _imported(dlpack.from_capsule_producer(x, copy=copy))
    return found if target is None else _converted(found, None, target, copy)


def _new(shape: Any, dtype: np.dtype, device: Any, function: str) -> Array:
    target = as_device(device, function)
    return new_array(Array, signature_of(Layout.of(as_shape(shape, function)), dtype, target))


def _dtype_or_default(dtype: Any, function: str) -> np.dtype:
    return STATE.get().semantics.defaults["float"] if dtype is None else dtypes.as_dtype(dtype, function)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Return an uninitialised array in C order.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.empty((2, 3), dtype="int8").strides
    (3, 1)
    """
    return _new(shape, _dtype_or_default(dtype, "empty"), device, "empty")


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Return an array with one value everywhere.

    Parameters
    ----------
    shape : int or tuple of int
    fill_value : number or 0-d array
    dtype : dtype or name, optional
        As the value has it; for a Python number the default of its kind, or the wider dtype that holds it.
    device : Device or str, optional

    Raises
    ------
    ScalarOverflowError
        If the dtype cannot hold an integer value.
    DTypeError
        If it is an integer dtype and the value is not integer.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.full(2, 7, dtype="int8")
    Array([7, 7], dtype=int8, device='cpu')
    """
    value, typed = _number(fill_value, "full")
    if dtype is not None or typed is not None:
        chosen = dtypes.as_dtype(typed if dtype is None else dtype, "full")
    else:
        chosen = number_dtype(value, value, "full")
    return fill(_new(shape, chosen, device, "full"), value, "full")


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Return an array of zeros.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.zeros(2)
    Array([0., 0.], dtype=float32, device='cpu')
    """
    return fill(_new(shape, _dtype_or_default(dtype, "zeros"), device, "zeros"), 0, "zeros")


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Return an array of ones.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.ones(2, dtype="bool")
    Array([ True,  True], dtype=bool, device='cpu')
    """
    return fill(_new(shape, _dtype_or_default(dtype, "ones"), device, "ones"), 1, "ones")


def _like(x: Any, dtype: Any, device: Any, function: str) -> Array:
    """An uninitialised array of the shape and axis order of `x`."""
    if not isinstance(x, ArrayBase):
        raise OperandError(f"{function}: expected a tilearray Array, got {type(x).__name__}; write ta.asarray(x)")
    signature: Signature = x._signature
    target: Device = signature.device if device is None else as_device(device, function)
    layout = result_layout(signature.layout.shape, [signature.layout])
    chosen = signature.dtype if dtype is None else dtypes.as_dtype(dtype, function)
    return new_array(Array, signature_of(layout, chosen, target))


def empty_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Return an uninitialised array of the shape, axis order, dtype and device of `x`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.empty_like(ta.zeros((2, 3)).T).strides
    (1, 3)
    """
    return _like(x, dtype, device, "empty_like")


def zeros_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Return zeros of the shape, axis order, dtype and device of `x`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.zeros_like(ta.asarray([1, 2]))
    Array([0, 0], dtype=int64, device='cpu')
    """
    return fill(_like(x, dtype, device, "zeros_like"), 0, "zeros_like")


def ones_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Return ones of the shape, axis order, dtype and device of `x`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.ones_like(ta.asarray([1, 2]), dtype="float16")
    Array([1., 1.], dtype=float16, device='cpu')
    """
    return fill(_like(x, dtype, device, "ones_like"), 1, "ones_like")


def full_like(x: Array, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Return one value everywhere, in the shape, axis order, dtype and device of `x`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.full_like(ta.asarray([1, 2]), 9)
    Array([9, 9], dtype=int64, device='cpu')
    """
    value, _ = _number(fill_value, "full_like")
    return fill(_like(x, dtype, device, "full_like"), value, "full_like")


_TYPED: tuple[type[Any], ...] = (ArrayBase, np.ndarray, np.generic)


def _number(value: Any, function: str) -> tuple[Number, np.dtype | None]:
    """The Python number that a number, a NumPy scalar or a 0-d array stands for, and the dtype of the last two."""
    typed: np.dtype | None = None
    number = value
    if isinstance(value, _TYPED) and value.shape == ():
        typed, number = value.dtype, value.item()
    if classify(number) is None:
        raise OperandError(f"{function}: expected a number or a 0-d array, got {type_name(value)}")
    return number, typed


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Array:
    """Return evenly spaced values of the half-open interval ``[start, stop)``; ``[0, start)`` where `stop` is None.

    Integers are exact. Floats are ``start + i * step``, computed in float64 and rounded once.

    Parameters
    ----------
    start, stop, step : real number
    dtype : dtype or name, optional
        The default of the numbers' kind, or the wider dtype that holds the values.
    device : Device or str, optional

    Raises
    ------
    ShapeError
        If `step` is 0, or the interval is not finite.
    ScalarOverflowError
        If `dtype` does not hold an integer value.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.arange(5, 0, -2)
    Array([5, 3, 1], dtype=int64, device='cpu')
    """
    limits = (0, start) if stop is None else (start, stop)
    numbers = [_number(given, "arange")[0] for given in (*limits, step)]
    target = None if dtype is None else dtypes.as_dtype(dtype, "arange")
    where = as_device(device, "arange")
    if any(isinstance(number, complex) for number in numbers):
        raise OperandError(f"arange: expected real numbers as start, stop and step, got {tuple(numbers)}")
    if numbers[2] == 0:
        raise ShapeError("arange: expected a step other than 0, got 0; write one that leads from start to stop")
    if any(isinstance(number, float) for number in numbers):
        count = _count(*numbers)  # type: ignore[arg-type]
        first, last, stride = [float(number) for number in numbers]  # type: ignore[arg-type]
        return ramps.floats(first, stride, count, target or number_dtype(first, last, "arange"), where)
    values = range(*numbers)  # type: ignore[arg-type]
    natural = _integer_dtype(values, target)
    return ramps.integers(values, target or natural, where)


def _integer_dtype(values: range, dtype: np.dtype | None) -> np.dtype:
    """The dtype that holds the integers of a range; checked against `dtype` where that is an integer one."""
    least, most = sorted((values[0], values[-1])) if values else (0, 0)
    if dtype is None or dtypes.info(dtype).kind not in ("int", "uint"):
        dtype = number_dtype(least, most, "arange")
    for extreme in (least, most):
        as_number(extreme, dtype, "arange")
    return dtype


def _count(first: float, last: float, step: float) -> int:
    try:
        return max(0, math.ceil((last - first) / step))
    except (ValueError, OverflowError):
        raise ShapeError(
            f"arange: expected finite numbers, got {first} to {last} in steps of {step}; write limits that are finite"
        ) from None


def linspace(
    start: Any, stop: Any, /, num: Any, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Array:
    """Return `num` evenly spaced values from `start` to `stop`, computed in float64 and rounded once.

    Parameters
    ----------
    start, stop : number
    num : int
    dtype : dtype or name, optional
        The default of floats or complex numbers, or the wider dtype that holds the limits. Values of an integer dtype
        are rounded down, as NumPy does.
    device : Device or str, optional
    endpoint : bool
        False leaves `stop` out.

    Raises
    ------
    ShapeError
        If `num` is negative or no integer.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32, device='cpu')
    """
    count, _ = _number(num, "linspace")
    if not isinstance(count, int) or count < 0:
        raise ShapeError(f"linspace: expected num as an integer >= 0, got {num!r}; write int(num)")
    limits = [_number(given, "linspace")[0] for given in (start, stop)]
    carrier = dtypes.complex128 if any(isinstance(limit, complex) for limit in limits) else dtypes.float64
    first, last = [as_number(limit, carrier, "linspace") for limit in limits]
    wanted = number_dtype(first, last, "linspace") if dtype is None else dtypes.as_dtype(dtype, "linspace")
    return ramps.spaced(first, last, count, endpoint, wanted, as_device(device, "linspace"))
