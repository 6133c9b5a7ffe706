"""Python data: a number, or nested lists of numbers, becomes one ndarray; every element is rounded once.

Lists of Python numbers take the default dtype of their highest kind, or the wider dtype that their extremes need. If an
element has a dtype (an array of any library, a NumPy scalar), all elements promote as operands do: by the active
semantics, Python numbers weakly. NumPy does not decide, because it reads ``[1, 2**63]`` as floats and
``[int32, float32]`` as float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, TypeGuard

import numpy as np

from tilearray import dtypes
from tilearray.engine.common_dtype import common_dtype_of
from tilearray.engine.context import STATE
from tilearray.engine.signature import ArrayBase
from tilearray.errors import DTypeError, OperandError, ScalarOverflowError, ShapeError, type_name
from tilearray.functions.conversion import as_ndarray
from tilearray.interchange import dlpack
from tilearray.interchange.numpy import from_host_object
from tilearray.ops.numbers import class_of, host_number
from tilearray.promotion.operands import RANK
from tilearray.promotion.scalars import Number, ScalarClass, StandIn, as_number, classify, needed

_DEPTH = 64  # NumPy's own limit of dimensions
_EXACT = 2**53  # every integer up to here is a float64
_CARRIERS = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}  # by rank
Kinds = set[type | np.dtype]


def is_python_data(obj: object) -> bool:
    """Whether `obj` is a Python number, or a sequence that may hold some."""
    return is_sequence(obj) or classify(obj) is not None


_SMALL = {ScalarClass.FLOAT32: "float", ScalarClass.INT32: "int"}
"""The classes of small numbers, which take the default dtype of their kind in every semantics."""
_PLAIN: dict[Any, frozenset[np.dtype]] = {
    float: frozenset({dtypes.float32, dtypes.float64}),
    int: frozenset({dtypes.int64, dtypes.float32, dtypes.float64}),
}
"""The dtypes for which NumPy converts small floats and ints as `ndarray_of` does."""


def plain_data(obj: Any, function: str) -> np.ndarray | None:
    """Return the ndarray of floats or of ints, if their default dtype surely holds all of them; None for all else.

    Most data are one number, or a flat list of numbers of one kind: NumPy makes their array in one step.

    Examples
    --------
    >>> plain_data([1.0, 2.5], "asarray"), plain_data(2, "asarray"), plain_data([1, 2.5], "asarray")
    (array([1. , 2.5], dtype=float32), array(2), None)
    """
    kind, is_flat = _kind_of(obj)
    if kind is not int and kind is not float:
        return None
    dtype = STATE.get().semantics.defaults[kind.__name__]
    return _host_casts().plain_numbers(obj, dtype, is_flat) if dtype in _PLAIN[kind] else None


def _kind_of(obj: Any) -> tuple[Any, bool]:
    """The class of a number, or of all elements of a flat list or tuple, and whether `obj` is one; None for several."""
    kind = type(obj)  # pyright: ignore[reportUnknownVariableType]
    if kind is not list and kind is not tuple:
        return kind, False  # pyright: ignore[reportUnknownVariableType]
    kinds = set(map(type, obj))
    return kinds.pop() if len(kinds) == 1 else None, True


def ndarray_of(obj: Any, dtype: np.dtype | None, function: str) -> np.ndarray:
    """Return the ndarray of a Python number, or of nested sequences of numbers and arrays.

    Parameters
    ----------
    obj : number, list, tuple or range
    dtype : numpy.dtype, optional
        A dtype of tilearray. An integer that it does not hold is an error; a float is truncated to an integer.
    function : str
        The name of the public function, for error messages.

    Raises
    ------
    ShapeError
        If nested sequences differ in length.
    OperandError
        If an element is not a number.
    ScalarOverflowError, PromotionError
        If no dtype holds the integers, or the elements have no common dtype.

    Examples
    --------
    >>> ndarray_of([1, 2.5], None, "asarray"), ndarray_of([1, np.int8(2)], None, "asarray")
    (array([1. , 2.5], dtype=float32), array([1, 2], dtype=int8))
    """
    if dtype is None:
        plain = plain_data(obj, function)
        if plain is not None:
            return plain
        if not is_sequence(obj):
            return host_number(obj, number_dtype(obj, obj, function), function)
    kinds: Kinds = set()
    _collect(obj, kinds, function, 0)
    return _made(obj, kinds, dtype, function)


def _made(obj: Any, kinds: Kinds, dtype: np.dtype | None, function: str) -> np.ndarray:
    """The ndarray of nested sequences whose elements have these types."""
    if dtype is not None and dtype in dtypes.PACKED:
        raise DTypeError(
            f"{function}: Python numbers do not become {dtypes.info(dtype).name}; write "
            f"ta.pack_float4(ta.asarray(...).astype('float4_e2m1fn'))"
        )
    if kinds <= _CARRIERS.keys():
        return _numbers(obj, kinds, dtype, function)
    return _joined(obj, dtype or common_dtype(obj, function), function)


def common_dtype(obj: Any, function: str) -> np.dtype:
    """Return the common dtype of the elements of nested sequences, some of which have dtypes.

    Examples
    --------
    >>> common_dtype([[1, 2], [np.int8(3), 4]], "asarray")
    dtype('int8')
    """
    operands = {classify(leaf) or _dtype(leaf, function) for leaf in _leaves(obj)}
    return STATE.get().semantics.result_type(operands, function)


def assigned_data(obj: Any, dtype: np.dtype) -> np.ndarray:
    """Return the ndarray of nested sequences that are assigned to an array of a dtype.

    Python numbers take the dtype of the array, unless their kind is above its kind. The semantics of NumPy truncate.

    Examples
    --------
    >>> assigned_data([1, 2], dtypes.int8), assigned_data([1, 2.5], dtypes.int8)
    (array([1, 2], dtype=int8), array([1. , 2.5], dtype=float32))
    """
    kind, is_flat = _kind_of(obj)
    if is_flat and dtype in _PLAIN.get(kind, ()):
        plain = _host_casts().plain_numbers(obj, dtype, is_flat)
        if plain is not None:
            return plain
    kinds: Kinds = set()
    _collect(obj, kinds, "setitem", 0)
    return _made(obj, kinds, _assigned_dtype(kinds, dtype), "setitem")


def _assigned_dtype(kinds: Kinds, dtype: np.dtype) -> np.dtype | None:
    """The dtype of elements of these types beside an array of a dtype; None for their own."""
    if not kinds <= _CARRIERS.keys():
        return None
    kind, order = dtypes.info(dtype).kind, list(_CARRIERS)
    rank = max([order.index(found) for found in kinds if isinstance(found, type)], default=0)
    truncates = STATE.get().semantics.inplace == "numpy" and complex not in kinds
    return dtype if kind == "bool" or truncates or rank <= RANK[kind] else None


def number_dtype(least: Number, most: Number, function: str) -> np.dtype:
    """Return the dtype of Python numbers between two: the default of their kind, or the wider one that holds both.

    Examples
    --------
    >>> number_dtype(1, 2**63, "asarray"), number_dtype(0.0, 1e300, "asarray")
    (dtype('uint64'), dtype('float64'))
    """
    found = classify(most)
    assert found is not None
    if least is most and found in _SMALL:
        return STATE.get().semantics.defaults[_SMALL[found]]
    given: Any = most
    if isinstance(given, StandIn):  # for real numbers of one class, which decides
        plain: Number = needed(given) if found is ScalarClass.COMPLEX else given.number
        least = most = plain
    if isinstance(most, complex):
        parts = [class_of(part) for number in (least, most) for part in (number.real, number.imag)]
        wide = ScalarClass.FLOAT64 in parts and common_dtype_of((ScalarClass.FLOAT64,), function) == dtypes.float64
        return dtypes.complex128 if wide else STATE.get().semantics.defaults["complex"]
    if isinstance(most, float):
        low = found if least is most else class_of(least)
        return common_dtype_of((found,) if low is found else (low, found), function)
    if least < 0:  # type: ignore[operator] - a negative number of the same size asks for the signed dtype
        found = class_of(min(least, -most - 1))  # type: ignore[operator]
    if found is ScalarClass.HUGE:
        what = least if least == most else f"everything from {least} to {most}"
        raise ScalarOverflowError(f"{function}: no integer dtype holds {what}; write dtype='float64'")
    return common_dtype_of((found,), function)


# ------------------------------------------------------------------ elements


def _collect(obj: Any, kinds: Kinds, function: str, depth: int) -> None:
    """Add the Python types of the numbers in `obj` to `kinds`, and the dtypes of everything else."""
    if depth > _DEPTH:
        raise ShapeError(f"{function}: expected lists nested up to {_DEPTH} times, got deeper lists; flatten them")
    if not is_sequence(obj):
        kinds.add(_carrier(obj) or _dtype(obj, function))
        return
    found: set[type] = {int} if isinstance(obj, range) else set(map(type, obj))
    if found <= _CARRIERS.keys():
        kinds |= found
    elif _is_uniform(found):
        kinds.add(_dtype(obj[0], function))
    else:
        for part in obj:
            _collect(part, kinds, function, depth + 1)


def _carrier(element: Any) -> type | None:
    """The one of Python's numeric types to which an element belongs; None for an element with a dtype."""
    number = element.number if isinstance(element, StandIn) else element
    return None if classify(number) is None else next(kind for kind in _CARRIERS if isinstance(number, kind))


def _leaves(obj: Any) -> Iterator[Any]:
    """The elements of nested sequences; of NumPy scalars of one type, the first."""
    if not is_sequence(obj):
        yield obj
    elif _is_uniform(set(map(type, obj))):
        yield obj[0]
    else:
        for part in obj:
            yield from _leaves(part)


def is_sequence(obj: object) -> TypeGuard[Sequence[Any]]:
    return issubclass(type(obj), (list, tuple, range))


def _is_uniform(found: set[type]) -> bool:
    """Whether all elements are NumPy scalars of one type."""
    return len(found) == 1 and issubclass(next(iter(found)), np.generic)


def _dtype(element: Any, function: str) -> np.dtype:
    host = element if isinstance(element, ArrayBase) else _host(element, function)
    return dtypes.as_dtype(host.dtype, function)


def _host(element: Any, function: str) -> np.ndarray:
    """The ndarray of an element that is not a Python number."""
    if isinstance(element, ArrayBase):
        return as_ndarray(element, None, None)  # type: ignore[arg-type]
    host = None if isinstance(element, bytes) else from_host_object(element, copy=None, function=function)
    if host is None and hasattr(element, "__dlpack__"):
        host = dlpack.from_capsule_producer(element, copy=None)
    if host is None:
        raise OperandError(
            f"{function}: expected numbers or arrays in nested lists, got {type_name(element)}; write float(x) for it"
        )
    return host


# ------------------------------------------------------------------ building


def _joined(obj: Any, dtype: np.dtype, function: str) -> np.ndarray:
    """The ndarray of nested sequences in which some elements have dtypes."""
    carrier = _carrier(obj)
    if carrier is not None:
        return _numbers(obj, {carrier}, dtype, function)
    if not is_sequence(obj):
        return _converted(_host(obj, function), dtype, function)
    if _is_uniform(set(map(type, obj))):
        return _converted(np.array(obj), dtype, function)
    rows = [_joined(part, dtype, function) for part in obj]
    check_rectangular([row.shape for row in rows], function)
    return np.stack(rows) if rows else np.empty(0, dtype)


def check_rectangular(shapes: Sequence[tuple[int, ...]], function: str) -> None:
    """Refuse the elements of a list if their shapes differ.

    Examples
    --------
    >>> check_rectangular([(3,), (3,)], "asarray")
    """
    if len(set(shapes)) > 1:
        raise _ragged(function, f"elements of shapes {' and '.join(map(str, sorted(set(shapes))))}")


def _numbers(obj: Any, kinds: Kinds, dtype: np.dtype | None, function: str) -> np.ndarray:
    """The ndarray of nested Python numbers of these types."""
    top = complex if complex in kinds else float if float in kinds or not kinds else int if int in kinds else bool
    try:
        found = np.array(obj, _CARRIERS[top])
        beyond = int in kinds and top is not int and bool((np.abs(found) >= _EXACT).any())
    except OverflowError:
        found, beyond = np.array(obj, object), True
        if top is not int:
            found = _one_by_one(found, _CARRIERS[top], function)
    except ValueError as error:
        raise _ragged(function, str(error)) from None
    if dtype is None:
        dtype = _default(found, top, function)
    return _one_by_one(np.array(obj, object), dtype, function) if beyond else _converted(found, dtype, function)


def _one_by_one(numbers: np.ndarray, dtype: np.dtype, function: str) -> np.ndarray:
    """The ndarray of Python numbers that no single dtype holds exactly."""
    done = [
        _converted(np.array(number), dtype, function)
        if isinstance(number, (float, complex))
        else host_number(number, dtype, function)
        for number in numbers.flat
    ]
    return np.stack(done).reshape(numbers.shape)


def _default(found: np.ndarray, top: type, function: str) -> np.dtype:
    """The dtype of Python numbers if none is given."""
    if found.size == 0 or top is bool:
        return number_dtype(top(), top(), function)
    if top is int:
        least, most = np.minimum.reduce(found, axis=None), np.maximum.reduce(found, axis=None)
        return number_dtype(int(least), int(most), function)
    parts = np.abs(found if top is float else np.stack([np.real(found), np.imag(found)]))
    largest = float(np.maximum.reduce(parts, axis=None))
    if not math.isfinite(largest):
        largest = float(parts.max(initial=0.0, where=np.isfinite(parts)))
    return number_dtype(largest, top(largest), function)


def _converted(found: np.ndarray, dtype: np.dtype, function: str) -> np.ndarray:
    """`found` in a dtype, each element rounded once; integers must fit."""
    if found.dtype == dtype:
        return found
    kind = dtypes.info(dtype).kind
    if found.dtype.kind == "c" and kind not in ("complex", "bool"):
        raise DTypeError(f"{function}: complex numbers do not become {dtype.name}; write their real parts")
    if found.size and found.dtype.kind in "iu" and kind in ("int", "uint"):
        for extreme in (int(found.min()), int(found.max())):
            as_number(extreme, dtype, function)
    return _host_casts().cast(found, dtype)


@cache
def _host_casts() -> Any:
    """The host's casts; an import statement in a function takes as long as a small cast."""
    from tilearray_host import casts

    return casts


def _ragged(function: str, what: str) -> ShapeError:
    return ShapeError(f"{function}: nested lists must be rectangular, got {what}; write lists of equal length")
