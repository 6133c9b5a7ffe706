"""The arguments of a function: host data becomes Arrays, and the part of a backend that computes is taken.

Lists, tuples, ranges, ndarrays and NumPy scalars are host data. Beside an Array on the host they are typed operands:
an ndarray keeps its dtype and shares its memory, and a list has the dtype that NumPy gives it, so ``[0.1]`` is float64
and loses nothing beside float64. Beside an Array on a GPU they are an error that says what to write. A Python number
becomes a 0-d Array of the dtype that NumPy gives it, on any device. A call without any
array makes Arrays as `asarray` does: in the default dtypes, on the default device, or on the GPU of the Arrays in a
list. Arrays of all other libraries are errors.

Sorting and linear algebra are parts that a backend may lack. A chapter checks axes and dtypes, hands
ndarrays to the part, and wraps its result. Nothing moves between devices: if the backend of a device lacks the part,
the error says how to write the move.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import Any, Protocol, TypeVar

import numpy as np

from tilearray import dtypes
from tilearray.engine.array_type import A
from tilearray.engine.backend import Fourier, Matrices, Sorting
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE, semantics
from tilearray.engine.devices import Device, default_device
from tilearray.engine.signature import (
    ArrayBase,
    HostData,
    check_array,
    dense_signature,
    from_host,
    from_result,
    new_array,
)
from tilearray.errors import (
    DeviceError,
    DTypeError,
    GradientError,
    ImplicitTransferError,
    OperandError,
    type_name,
)
from tilearray.functions.conversion import to_device, to_numpy
from tilearray.functions.python_data import ndarray_of
from tilearray.interchange.numpy import from_host_object
from tilearray.ops.execute import fill
from tilearray.ops.hooks import HOOKS
from tilearray.promotion.scalars import classify

INDEX = dtypes.int64
"""The dtype of indices and counts, in every semantics."""

Part = TypeVar("Part")
_NDARRAY: Any = np.ndarray  # Any: else a type checker takes dtypes to be unknown

# --- host data -------------------------------------------------------------------------------------------------------


def as_array(function: str, x: A | HostData, name: str = "x") -> A:
    """Return an Array as it is, and an Array of host data or of a number.

    Raises
    ------
    OperandError
        For all other objects.

    Examples
    --------
    >>> import tilearray as ta
    >>> as_array("sum", [1, 2])
    Array([1, 2], dtype=int64, device='cpu')
    """
    if issubclass(type(x), ArrayBase):
        return x  # type: ignore[return-value]
    return _checked(function, as_arrays(function, (x,))[0], name)


def as_array_beside(function: str, x: Any, other: ArrayBase, name: str = "x") -> Any:
    """Return an Array as it is, and an Array of host data or of a number as it is beside another Array."""
    return x if issubclass(type(x), ArrayBase) else _checked(function, as_arrays(function, (x,), other)[0], name, other)


def all_arrays(function: str, values: Sequence[A | HostData], name: str = "x{1}") -> list[A]:
    """Return all values as Arrays, each read beside the others.

    In `name`, the name of a value, 0 and 1 stand for its position counted from 0 and from 1.
    """
    for value in values:
        if not issubclass(type(value), ArrayBase):
            break
    else:
        return list(values)  # type: ignore[arg-type]
    found: list[Any] = as_arrays(function, values)
    beside = next((value for value in found if issubclass(type(value), ArrayBase)), None)
    return [_checked(function, x, name.format(place, place + 1), beside) for place, x in enumerate(found)]


MOST_MEMBERS = 2**24
"""The most arrays of one argument."""


def listed(function: str, values: Any) -> list[Any]:
    """Return the members of a sequence or an iterator, which may be endless.

    Raises
    ------
    OperandError
        If it is neither, or has more than 2**24 members.
    """
    members: list[Any] | None = list(islice(values, MOST_MEMBERS + 1)) if issubclass(type(values), Iterable) else None
    if members is None or len(members) > MOST_MEMBERS:
        raise OperandError(
            f"{function}: expected a list or tuple of tilearray Arrays, got {type_name(values)}; "
            f"write {function}([x, y])"
        )
    return members


def is_host_data(value: object) -> bool:
    """Whether a value is a sequence or an ndarray, which functions take as an Array. Masked arrays are not."""
    kind = type(value)
    return issubclass(kind, (list, tuple, range)) or (
        issubclass(kind, _NDARRAY) and not issubclass(kind, np.ma.MaskedArray)
    )


def is_tensor(value: object) -> bool:
    """Whether a value is an array of a library that also has arrays on GPUs: it is never read without being named."""
    return type(value).__module__.partition(".")[0] in ("torch", "cupy", "jax", "jaxlib", "numba")


def as_arrays(function: str, values: Sequence[Any], beside: ArrayBase | None = None) -> list[Any]:
    """Return values with the sequences and ndarrays among them replaced by Arrays.

    Parameters
    ----------
    function : str
        The name of the function that was called.
    values : sequence of Array, host data or number
        Numbers and unknown objects are left as they are.
    beside : Array, optional
        Another Array of the call, such as its target.

    Raises
    ------
    OperandError
        If host data is beside an Array on a GPU.
    """
    known = next((value for value in (*values, beside) if issubclass(type(value), ArrayBase)), None)
    typed = known is not None or any(isinstance(value, (_NDARRAY, np.generic)) for value in values)
    device = None if known is None else known.device
    return [_array_of(function, value, device, typed) if is_host_data(value) else value for value in values]


HOOKS.as_arrays = as_arrays


def _array_of(function: str, value: Any, device: Device | None, typed: bool) -> ArrayBase:
    """Host data or a number as an Array on a device; Python numbers `typed` as NumPy does, or by the default dtypes."""
    elsewhere = None if device is None or device.backend.on_host else device
    if elsewhere is not None and classify(value) is None:
        raise OperandError(
            f"{function}: the operands are a tilearray Array on {device} and {type_name(value)}, which is on the host; "
            f"write ta.asarray(y, device={str(device)!r}) for the latter"
        )
    if isinstance(value, (_NDARRAY, np.generic)):
        host = from_host_object(value, copy=None, function=function)
        assert host is not None  # both are host objects
    elif typed:
        with semantics("numpy"):
            host = ndarray_of(value, None, function)
    else:
        try:
            host = ndarray_of(value, None, function)
        except ImplicitTransferError:  # of a list that holds an Array on a GPU
            return HOOKS.asarray(value)
    if elsewhere is not None:  # a number, which no copy brings there
        return fill(new_array(ArrayBase._public, dense_signature((), host.dtype, elsewhere)), host.item(), function)
    made = from_host(host, ArrayBase._public)
    target = device or default_device()
    return made if target.backend.on_host else to_device(made, target)


def _checked(function: str, x: Any, name: str, beside: ArrayBase | None = None) -> Any:
    """An Array, or the 0-d Array of a number; other objects are errors."""
    if issubclass(type(x), ArrayBase):
        return x
    if classify(x) is None and not isinstance(x, np.generic):
        made = "float" if isinstance(x, str) else "ta.asarray"
        raise OperandError(f"{function}: expected a tilearray Array, got {type_name(x)}; write {made}({name})")
    return _array_of(function, x, None if beside is None else beside.device, beside is not None)


# --- parts of a backend ----------------------------------------------------------------------------------------------


def sorting_of(function: str, x: ArrayBase) -> Sorting | None:
    """Return the backend's sorting, or None if the device of `x` sorts by expressions.

    Raises
    ------
    DeviceError
        If it does neither; the message says how to write the move.
    """
    check_array(function, x)
    sorting = x.device.backend.sorting
    if sorting is not None:
        return sorting
    return None if by_expressions(x) else _available(function, x, sorting)


def by_expressions(*arrays: ArrayBase) -> bool:
    """Whether functions of arrays are expressions: their device has no sorting of its own, or one is differentiated."""
    device = deepest(arrays).device
    return device.functions is not None or (device.backend.sorting is None and device.backend.computes_places)


def deepest(arrays: Sequence[A]) -> A:
    """Return the array beside which results of all are made: the first one, or one that is differentiated or traced."""
    return max(arrays, key=lambda x: x._signature.device.depth)


def is_differentiated(x: object) -> bool:
    """Whether an object is an Array in a function that is differentiated."""
    return issubclass(type(x), ArrayBase) and x._signature.device.functions is not None  # type: ignore[attr-defined]


def number_of(function: str, x: Any) -> Any:
    """Return the element of an array as a Python number, where derivatives would end.

    Raises
    ------
    GradientError
        If the array is differentiated.
    """
    if is_differentiated(x) and dtypes.info(x.dtype).kind in ("float", "complex"):
        raise GradientError(
            f"vjp: {function} takes the value of a differentiated array; write float(x) to end derivatives there, or "
            f"arithmetic with x"
        )
    return x.item()


def without_derivative(x: A) -> A:
    """Return an array of the values of a differentiated one, and any other array as it is.

    Functions whose results are places, such as `argsort`, run on these values: derivatives end there.
    """
    functions = x._signature.device.functions
    return x if functions is None else functions.below(x)


def matrices_of(function: str, x: ArrayBase) -> Matrices:
    """Return the backend's decompositions and norms, if `x` is an Array on a device that has them."""
    check_array(function, x)
    return _available(function, x, x.device.backend.matrices)


def fourier_of(function: str, x: ArrayBase) -> Fourier:
    """Return the backend's Fourier transforms, if `x` is an Array on a device that has them."""
    check_array(function, x)
    return _available(function, x, x.device.backend.fourier)


def _available(function: str, x: ArrayBase, part: Part | None) -> Part:
    if part is None:
        raise DeviceError(
            f"{function}: expected an array on the host, got one on {x.device}, where tilearray has no {function} yet; "
            f"write ta.{function}(x.to_device('cpu'))"
        )
    return part


def result(host: np.ndarray, like: A) -> A:
    """Return the ndarray that a backend computed as an array of the class of `like`, in C order.

    Examples
    --------
    >>> import tilearray as ta
    >>> result(np.array([1, 2]), ta.zeros(3))
    Array([1, 2], dtype=int64, device='cpu')
    """
    return from_result(np.asarray(host), like.__class__)


class OnHost:
    """The functions of a part of the host's backend, for Arrays on the host."""

    def __init__(self, part: Matrices | Fourier) -> None:
        self._part = part

    def run(self, method: str, *arguments: Any) -> Any:
        """Return the result of a method as Arrays of the class of the first Array, in C order.

        The first argument is an Array, or a list of them.
        """
        if method == "once":
            return self._once(*arguments)
        like = arguments[0]
        found: Any = getattr(self._part, method)(*[_on_host(one) for one in arguments])
        return _arrays(found, like[0] if like.__class__ is list else like)

    def _once(self, method: str, x: ArrayBase, *rest: Any) -> Callable[[Any], Any]:
        """Return what computes a method, with the same further arguments, for Arrays of the signature of `x`."""
        part: Any = self._part
        compute = part.once(method, x.shape, x.dtype, *rest)
        elements = x._signature.device.backend.elements  # a transform keeps no operand
        return lambda x: from_result(compute(elements(x)), x.__class__)


def _on_host(argument: Any) -> Any:
    """An Array, or each Array of a list, as an ndarray; all other arguments as they are."""
    if argument.__class__ is list:
        return [to_numpy(x) for x in argument]
    return to_numpy(argument) if issubclass(argument.__class__, ArrayBase) else argument


def _arrays(found: Any, like: Any) -> Any:
    """The ndarrays that a method returned as Arrays, in a tuple if there are several."""
    if found.__class__ is tuple or found.__class__ is list:
        return tuple([_array(one, like) for one in found])
    return _array(found, like)


def _array(found: Any, like: Any) -> Any:
    """Return an ndarray or a NumPy scalar as an Array, and a Python number as it is."""
    return result(found, like) if hasattr(found, "dtype") else found


class Runs(Protocol):
    """What runs the functions of a part such as `tilearray.engine.backend.Matrices` on a device, for Arrays."""

    def run(self, method: str, *arguments: Any) -> Any: ...


def ran(function: str, part: Runs, method: str, *arguments: Any) -> Any:
    """Return the result of a method of a part; an ImportError of the device names the function."""
    return naming(function, part.run, method, *arguments)


def naming(function: str, call: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a call on a device, whose ImportError names the function."""
    try:
        return call(*arguments)
    except ImportError as error:
        raise error.__class__(f"{function}: {error}") from error


# --- dtypes ----------------------------------------------------------------------------------------------------------

_INSTEAD = {"bool": "x.astype('int8')", "complex": "x.real, x.imag or ta.abs(x)"}


def check_kind(function: str, dtype: np.dtype, kinds: Collection[str]) -> None:
    """Raise DTypeError unless a function takes a dtype: of one of `kinds`, and not for storage only."""
    dtypes.check_arithmetic(function, dtype)
    kind = dtypes.info(dtype).kind
    if kind not in kinds:
        raise DTypeError(
            f"{function}: expected dtypes of kind {dtypes.kinds_in_words(kinds)}, got {dtype.name}; "
            f"write {_INSTEAD[kind]} first"
        )


_COMMON: TwoGenerations[np.dtype] = TwoGenerations(1024)
"""Decisions of `common_dtype`: without the function, which only an error names."""


def common_dtype(function: str, given: Sequence[Any], kinds: Collection[str]) -> np.dtype:
    """Return the common dtype of dtypes and value classes of numbers, if the function takes it."""
    rules = STATE.get().semantics
    key = (rules.key, kinds, *given)
    found = _COMMON.get(key)
    if found is None:
        found = rules.result_type(given, function)
        check_kind(function, found, kinds)
        _COMMON.put(key, found)
    return found
