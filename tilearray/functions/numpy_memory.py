"""NumPy's own functions over the memory of Arrays, for functions of NumPy that tilearray does not have.

On the host an Array and an ndarray can share memory, so NumPy computes without a copy. Its results come back as Arrays:
every ndarray, and every NumPy scalar as a 0-d Array, also in tuples and lists. A result that is one of the arguments
(``np.atleast_1d(x)``, ``out=x``) comes back as that argument. Results in dtypes that tilearray does not have (text,
objects, dates) stay NumPy's, and so do Python's own numbers and bools.

On a GPU the call is an error that names the transfer. Under ``ta.set_transfer_guard("allow")`` NumPy computes over
copies, the result is an Array on the host, and a function that writes to its argument is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.signature import ArrayBase, from_host
from tilearray.errors import ImplicitTransferError
from tilearray.functions.conversion import as_ndarray
from tilearray.interchange.numpy import from_host_object

_NESTED: tuple[Any, ...] = (list, tuple, dict)
_NUMPY: tuple[Any, ...] = (np.ndarray, np.generic)
_DICT: Any = dict  # Any: else a type checker takes the parts of a value to be of unknown types
_NDARRAY: Any = np.ndarray


def run_with_numpy(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Call a function of NumPy with ndarrays over the memory of the Arrays in its arguments.

    Raises
    ------
    ImplicitTransferError
        If an Array is on a GPU, unless `set_transfer_guard` allows the copy.

    Examples
    --------
    >>> import tilearray as ta
    >>> run_with_numpy("np.median", np.median, (ta.asarray([1.0, 5.0, 2.0]),), {})
    Array(2., dtype=float32, device='cpu')
    """
    given: dict[int, tuple[ArrayBase, np.ndarray]] = {}
    host_args, host_kwargs = _with_ndarrays(args, given, name), _with_ndarrays(dict(kwargs), given, name)
    found = function(*host_args, **host_kwargs)
    return _with_arrays(found, {id(host): array for array, host in given.values()})


def found_in(value: Any, kind: Any) -> list[Any]:
    """Return the objects of a class in nested lists, tuples and dicts.

    Examples
    --------
    >>> import tilearray as ta
    >>> len(found_in([ta.zeros(1), (ta.ones(2), 3)], ta.Array))
    2
    """
    if isinstance(value, _NESTED):
        return [x for part in _parts(value) for x in found_in(part, kind)]
    return [value] if isinstance(value, kind) else []


def _parts(value: Any) -> list[Any]:
    """The parts of a list, a tuple or a dict; other objects have none."""
    return list(value.values() if isinstance(value, _DICT) else value) if isinstance(value, _NESTED) else []


def _with_ndarrays(value: Any, given: dict[int, tuple[ArrayBase, np.ndarray]], name: str) -> Any:
    """Replace the Arrays in nested lists, tuples and dicts by ndarrays, the same Array always by the same ndarray."""
    if isinstance(value, ArrayBase):
        if id(value) not in given:
            given[id(value)] = value, _memory(value, name)
        return given[id(value)][1]
    if not found_in(value, ArrayBase):
        return value
    parts = [_with_ndarrays(part, given, name) for part in _parts(value)]
    return dict(zip(value, parts)) if isinstance(value, _DICT) else _rebuilt(value, parts)


def _memory(x: ArrayBase, name: str) -> np.ndarray:
    """The memory of an Array on the host, or a read-only copy: a write to it would be lost."""
    try:
        array = as_ndarray(x, None, None)
    except ImplicitTransferError:
        raise ImplicitTransferError(
            f"{name}: tilearray has no such function on {x.device}, and NumPy would copy the array to the host; "
            f"write {name}(ta.to_numpy(x)), or allow the copy with ta.set_transfer_guard('allow')"
        ) from None
    if not x.device.backend.on_host:
        array.flags.writeable = False
    return array


def _with_arrays(found: Any, given: Mapping[int, ArrayBase]) -> Any:
    """Replace the ndarrays and NumPy scalars of a result by Arrays."""
    if id(found) in given:
        return given[id(found)]
    if isinstance(found, _NUMPY):
        return _as_array(found)
    return (
        found
        if isinstance(found, _DICT) or not _parts(found)
        else _rebuilt(found, [_with_arrays(part, given) for part in _parts(found)])
    )


def _as_array(found: Any) -> Any:
    """An ndarray or a NumPy scalar as an Array over its memory, if tilearray has its class and dtype."""
    subclass = isinstance(found, _NDARRAY) and type(found) not in (np.ndarray, np.memmap)
    if subclass or found.dtype not in dtypes.ALL:
        return found
    host = from_host_object(found, copy=None, function="asarray")
    assert host is not None  # both are host objects
    return from_host(host, ArrayBase._public)


def _rebuilt(old: Any, parts: list[Any]) -> Any:
    """A list or tuple of the class of `old` with other parts; named tuples keep their names."""
    return type(old)(*parts) if hasattr(old, "_fields") else type(old)(parts)
