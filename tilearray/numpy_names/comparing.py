"""Comparisons of whole arrays, and tests of numbers, by NumPy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.fills import zeros_like
from tilearray.engine.signature import ArrayBase, overlap
from tilearray.errors import BroadcastError
from tilearray.functions.arguments import all_arrays, as_array, without_derivative
from tilearray.functions.conversion import part
from tilearray.functions.manipulation import broadcast_to, reshape
from tilearray.functions.reductions import all
from tilearray.functions.sets import isin
from tilearray.geometry.layout import broadcast_shapes
from tilearray.ops.arithmetic import equal, greater, less, logical_and, logical_or
from tilearray.ops.composed import isclose
from tilearray.ops.number_parts import isinf, isnan


def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> bool:
    """Return whether all elements are close, as a Python bool. See `isclose`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.allclose(ta.asarray([1.0, 2.0]), [1.0, 2.00001])
    True
    """
    x1, x2 = all_arrays("allclose", [a, b])
    return bool(all(isclose(x1, x2, rtol, atol, equal_nan=equal_nan)))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Return whether two arrays have the same shape and equal elements, as a Python bool.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.array_equal(ta.asarray([1, 2]), [1, 2]), ta.array_equal(ta.asarray([1, 2]), [1])
    (True, False)
    """
    x1, x2 = all_arrays("array_equal", [a1, a2], "a{}")
    if x1.shape != x2.shape:
        return False
    same = equal(x1, x2)
    if equal_nan:
        same = logical_or(same, logical_and(isnan(x1), isnan(x2)))
    return bool(all(same))


def array_equiv(a1: Any, a2: Any) -> bool:
    """Return whether two arrays broadcast and have equal elements, as a Python bool.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.array_equiv(ta.asarray([1, 1]), 1)
    True
    """
    x1, x2 = all_arrays("array_equiv", [a1, a2], "a{}")
    try:
        shape = broadcast_shapes(x1.shape, x2.shape)
    except BroadcastError:
        return False
    return bool(all(equal(broadcast_to(x1, shape), x2)))


def in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Array:
    """Return, for each element of an array as one axis, whether it is in another array. `isin` keeps the shape.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.in1d([[1, 2], [3, 4]], [4, 1])
    Array([ True, False, False,  True], dtype=bool, device='cpu')
    """
    del assume_unique
    x1, x2 = all_arrays("in1d", [ar1, ar2], "ar{}")
    return isin(reshape(x1, -1), x2, invert=invert)


# --- numbers -------------------------------------------------------------------------------------------------------


def isscalar(element: Any) -> bool:
    """Return whether an object is a number, a string or bytes, and not an array.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.isscalar(3.1), ta.isscalar(ta.asarray(3.1))
    (True, False)
    """
    return not isinstance(element, Array) and np.isscalar(element)


def iscomplexobj(x: Any) -> bool:
    """Return whether an array or a number has a complex dtype, whatever its values.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.iscomplexobj(ta.zeros(2, dtype="complex64")), ta.iscomplexobj([1, 2])
    (True, False)
    """
    return dtypes.info(as_array("iscomplexobj", x).dtype).kind == "complex"


def isrealobj(x: Any) -> bool:
    """Return whether an array or a number has a dtype that is not complex.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.isrealobj([1, 2])
    True
    """
    return not iscomplexobj(x)


def iscomplex(x: Any) -> Array:
    """Return, for each element, whether its imaginary part is other than 0.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.iscomplex([1 + 1j, 2])
    Array([ True, False], dtype=bool, device='cpu')
    """
    array = as_array("iscomplex", x)
    return part(array, 1) != 0 if iscomplexobj(array) else zeros_like(array, dtypes.bool_)


def isreal(x: Any) -> Array:
    """Return, for each element, whether its imaginary part is 0.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.isreal([1 + 1j, 2])
    Array([False,  True], dtype=bool, device='cpu')
    """
    return ~iscomplex(x)


def isposinf(x: Any, /, out: Array | None = None) -> Array:
    """Return, for each element, whether it is positive infinity.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.isposinf([ta.inf, -ta.inf, 1.0])
    Array([ True, False, False], dtype=bool, device='cpu')
    """
    array = as_array("isposinf", x)
    return logical_and(isinf(array), greater(array, 0), out=out)


def isneginf(x: Any, /, out: Array | None = None) -> Array:
    """Return, for each element, whether it is negative infinity.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.isneginf([ta.inf, -ta.inf, 1.0])
    Array([False,  True, False], dtype=bool, device='cpu')
    """
    array = as_array("isneginf", x)
    return logical_and(isinf(array), less(array, 0), out=out)


def real_if_close(x: Any, tol: float = 100) -> Array:
    """Return the real part of a complex array if all imaginary parts are near 0, else the array.

    Parameters
    ----------
    x : Array
    tol : float
        How near: in units of the dtype's epsilon, or the distance itself if it is at most 1.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.real_if_close(ta.asarray([2.5 + 1e-9j]))
    Array([2.5], dtype=float32, device='cpu')
    """
    array = as_array("real_if_close", x)
    if not iscomplexobj(array):
        return array
    if tol > 1:
        tol = float(dtypes.finfo(array.dtype).eps) * tol
    return part(array, 0) if bool(all(abs(part(array, 1)) < tol)) else array


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Return whether a dtype is of a class of dtypes, such as `floating`, or is a dtype.

    bfloat16 and the 8-bit floats, which NumPy does not count, are of the class `floating`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.issubdtype("bfloat16", ta.floating), ta.issubdtype(ta.int8, ta.inexact)
    (True, False)
    """
    given: Any = arg1 if _is_class(arg1) else dtypes.as_dtype(arg1, "issubdtype")
    if not _is_class(arg2):
        return given == dtypes.as_dtype(arg2, "issubdtype")
    if given is not arg1 or isinstance(arg1, np.dtype):
        given = np.float64 if dtypes.info(given).kind == "float" else given
    return np.issubdtype(given, arg2)


def _is_class(given: Any) -> bool:
    """Whether one of NumPy's abstract classes of dtypes."""
    return isinstance(given, type) and issubclass(given, np.generic) and given in _CLASSES


_CLASSES = frozenset({
    np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact, np.floating,
    np.complexfloating, np.flexible, np.character,
})  # fmt: skip


def may_share_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Return whether the address ranges of two arrays overlap.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.zeros(4)
    >>> ta.may_share_memory(x[:2], x[1:]), ta.may_share_memory(x[:2], x[2:])
    (True, False)
    """
    del max_work
    x, y = as_array("may_share_memory", a), as_array("may_share_memory", b)
    return bool(x.size and y.size) and overlap(x, y)


def shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Return whether two arrays have an element in common. `may_share_memory` compares their address ranges.

    Addresses, shapes and strides decide: the memory of a GPU is not read.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.zeros(4)
    >>> ta.shares_memory(x[::2], x[::2]), ta.shares_memory(x[::2], x[1::2])
    (True, False)
    """
    x, y = [without_derivative(as_array("shares_memory", given)) for given in (a, b)]
    if not (x.size and y.size and overlap(x, y)):
        return False
    return np.shares_memory(np.asarray(_Placed(x)), np.asarray(_Placed(y)), max_work)


class _Placed:
    """The bytes of an array's elements, as NumPy asks for them: an ndarray of them must not be read."""

    def __init__(self, x: ArrayBase) -> None:
        strides = tuple([stride * x.itemsize for stride in x._signature.layout.strides])
        kind, data = f"|V{x.itemsize}", (x._address, True)
        self.__array_interface__ = {"version": 3, "shape": x.shape, "strides": strides, "typestr": kind, "data": data}
