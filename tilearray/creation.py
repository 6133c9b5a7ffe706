"""Creation: arrays from data of any library, from nothing, and from ranges.

`asarray` is the front door. Memory that is on the host and can be shared is shared; Python data takes the default
dtypes of the semantics in force, or wider ones where a value asks for it. Creation happens on the default device
unless ``device=`` names one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.array import Array
from tilearray.base import ArrayBase, Signature, check_alignment, empty_array, signature_of
from tilearray.context import STATE
from tilearray.conversion import to_device
from tilearray.devices import CPU, Device, as_device
from tilearray.elementwise import copy_of, fill
from tilearray.errors import DTypeError, OperandError, ShapeError
from tilearray.interchange import dlpack
from tilearray.interchange.numpy import from_host_object
from tilearray.layout import Layout, as_shape, result_layout
from tilearray.operands import class_of, host_number
from tilearray.scalars import as_number, classify


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
    """Return an Array of `obj`, sharing its memory where that is possible.

    Parameters
    ----------
    obj : Array, ndarray, buffer, DLPack producer, number, or nested lists of numbers
    dtype : dtype or name, optional
        As the data have it; for Python numbers the semantics' default of their kind, or the wider dtype that holds them.
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
    if classify(obj) is not None or isinstance(obj, (list, tuple, range)):
        if copy is False:
            raise ValueError("asarray: copy=False, but Python numbers have no memory to share; write copy=None")
        return to_device(_imported(_from_python(obj, wanted)), as_device(device))
    host = from_host_object(obj, copy=copy, function="asarray")
    if host is None and hasattr(obj, "__dlpack__"):
        host = dlpack.from_capsule_producer(obj, copy=copy)
    if host is None:
        raise OperandError(
            f"asarray: expected an array, a buffer, a number or nested lists of numbers, got {type(obj).__name__}"
        )
    return _converted(_imported(host), wanted, as_device(device), None if copy else copy)


def _converted(x: Array, dtype: np.dtype | None, device: Any, copy: bool | None) -> Array:
    """`x` with the dtype, on the device, copied as asked."""
    target = x.device if device is None else as_device(device, "asarray")
    moves = target is not x.device or (dtype is not None and dtype != x.dtype)
    if copy is False and moves:
        raise ValueError(
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


def _from_python(obj: Any, dtype: np.dtype | None) -> np.ndarray:
    """An ndarray of Python data, each number rounded once."""
    if classify(obj) is not None:
        wanted = dtype or STATE.get().semantics.result_type([class_of(obj)])
        return host_number(obj, wanted, "asarray")
    try:
        found = np.array(obj)
    except ValueError as error:
        raise ShapeError(f"asarray: nested lists must be rectangular: {error}") from None
    if found.dtype.kind not in "biufcV" or found.dtype.hasobject:
        found = _beyond_int64(obj, found)
    if dtype is None:
        dtype = found.dtype if _typed(obj) else _default_of(found)
    from tilearray_host.casts import cast

    if found.dtype == dtype:
        return found
    _check_range(found, dtypes.as_dtype(dtype, "asarray"))
    return cast(found, dtype)


def _beyond_int64(obj: Any, found: np.ndarray) -> np.ndarray:
    if found.dtype.hasobject:
        flat = found.ravel()
        if all(isinstance(value, (bool, int)) for value in flat):
            least, most = min(flat), max(flat)
            raise DTypeError(
                f"asarray: no integer dtype holds everything from {least} to {most}; write dtype='float64'"
            )
    raise OperandError(f"asarray: expected numbers, got data that NumPy reads as {found.dtype}")


def _typed(obj: Any) -> bool:
    """Whether nested lists hold typed elements (arrays or NumPy scalars), whose dtype then counts."""
    while isinstance(obj, (list, tuple)) and obj:
        obj = obj[0]
    return isinstance(obj, (ArrayBase, np.ndarray, np.generic))


def _default_of(found: np.ndarray) -> np.dtype:
    """The dtype of Python data: the default of its kind, or the wider one that its extremes need."""
    kind = found.dtype.kind
    if found.size == 0 or kind in "bc":
        sample: Any = {"b": False, "c": 0j}.get(kind, 0.0)
        return STATE.get().semantics.result_type([class_of(sample)])
    if kind == "f":
        finite = np.abs(found[np.isfinite(found)])
        return STATE.get().semantics.result_type([class_of(float(finite.max()) if finite.size else 0.0)])
    return STATE.get().semantics.result_type([class_of(int(found.min())), class_of(int(found.max()))])


def _check_range(found: np.ndarray, dtype: np.dtype) -> None:
    """Integers of Python data must fit an integer dtype that was asked for."""
    if found.size and found.dtype.kind in "iu" and dtypes.info(dtype).kind in ("int", "uint"):
        for extreme in (int(found.min()), int(found.max())):
            as_number(extreme, dtype, "asarray")


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
    found = _imported(dlpack.from_capsule_producer(x, copy=copy))
    return found if device is None else _converted(found, None, device, copy)


def _new(shape: Any, dtype: np.dtype, device: Any, function: str) -> Array:
    target = as_device(device, function)
    return empty_array(Array, signature_of(Layout.of(as_shape(shape, function)), dtype, target))


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

    Raises
    ------
    ScalarOverflowError
        If the dtype cannot hold an integer value.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.full(2, 7, dtype="int8")
    Array([7, 7], dtype=int8, device='cpu')
    """
    value = fill_value.item() if isinstance(fill_value, (ArrayBase, np.generic)) else fill_value
    typed = getattr(fill_value, "dtype", None)
    if classify(value) is None:
        raise OperandError(f"full: expected a number as fill_value, got {type(fill_value).__name__}")
    if dtype is not None or typed is not None:
        chosen = dtypes.as_dtype(typed if dtype is None else dtype, "full")
    else:
        chosen = STATE.get().semantics.result_type([class_of(value)])
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
    return empty_array(Array, signature_of(layout, chosen, target))


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
    value = fill_value.item() if isinstance(fill_value, (ArrayBase, np.generic)) else fill_value
    return fill(_like(x, dtype, device, "full_like"), value, "full_like")


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Array:
    """Return evenly spaced values of the half-open interval ``[start, stop)``; ``[0, start)`` where `stop` is None.

    Raises
    ------
    ValueError
        If `step` is 0.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.arange(5, 0, -2)
    Array([5, 3, 1], dtype=int64, device='cpu')
    """
    first, last = (0, start) if stop is None else (start, stop)
    numbers = (first, last, step)
    if any(classify(number) is None or isinstance(number, complex) for number in numbers):
        raise OperandError(f"arange: expected real numbers as start, stop and step, got {numbers}")
    if step == 0:
        raise ValueError("arange: step is 0; write a step that leads from start to stop")
    count = max(0, math.ceil((last - first) / step)) if any(isinstance(n, float) for n in numbers) else None
    values = range(first, last, step) if count is None else first + np.arange(count) * np.float64(step)
    if count is None:
        host = np.arange(first, last, step, dtype=np.int64)
    else:
        host = np.asarray(values, np.float64)
    chosen = STATE.get().semantics.result_type([class_of(n) for n in numbers], "arange") if dtype is None else dtype
    return to_device(_imported(host), as_device(device)).astype(chosen, copy=False)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Array:
    """Return `num` evenly spaced values from `start` to `stop`, computed in float64 and rounded once.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32, device='cpu')
    """
    if num < 0:
        raise ValueError(f"linspace: expected num >= 0, got {num}")
    host = np.linspace(start, stop, num, endpoint=endpoint)
    kind = "complex" if host.dtype.kind == "c" else "float"
    chosen = STATE.get().semantics.defaults[kind] if dtype is None else dtype
    return to_device(_imported(host), as_device(device)).astype(chosen, copy=False)
