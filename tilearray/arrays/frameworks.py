"""Arrays as arrays of other libraries, and functions that take and return the arrays of their caller.

A framework is imported only by the function that names it. Memory is shared through DLPack. A layout that a library
does not support (torch has no negative strides, JAX has no strides) is copied on its device, unless ``copy=False``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections import OrderedDict, defaultdict
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from typing import Any, NamedTuple, cast

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.engine.devices import CPU, default_device
from tilearray.engine.signature import ArrayBase, check_array
from tilearray.errors import DeviceError, DTypeError, LayoutError, OperandError
from tilearray.functions.conversion import is_dense, to_numpy
from tilearray.interchange.capsules import HOST_KINDS
from tilearray.ops.execute import copy_of


def to_torch(x: Array, /, *, copy: bool | None = None) -> Any:
    """Return the elements as a torch tensor on the same device: the same memory, if torch supports it.

    Parameters
    ----------
    x : Array
    copy : bool, optional
        True always copies, False raises if a copy is needed, None copies only then: for negative strides, and for
        read-only memory, since torch would write to it.

    Raises
    ------
    ImportError
        If torch is not installed.
    DTypeError
        If torch has no such dtype.
    LayoutError
        If ``copy=False`` and a copy is needed.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.asarray([[1, 2], [3, 4]])
    >>> ta.to_torch(x.T).tolist()  # doctest: +SKIP
    [[1, 3], [2, 4]]
    """
    torch = _framework("torch", "to_torch")
    check_array("to_torch", x)
    if not hasattr(torch, dtypes.info(x.dtype).name):
        raise DTypeError(f"to_torch: torch has no dtype {x.dtype.name} with one value a byte; write x.view('uint8')")
    why = "read-only memory needs" if x._buffer.readonly else ""
    if min(x._signature.layout.strides, default=0) < 0:
        why = "negative strides need"
    return torch.from_dlpack(_shared_or_copied(x, why, copy, "to_torch"))


def to_cupy(x: Array, /, *, copy: bool | None = None) -> Any:
    """Return the elements of an array on a GPU as a CuPy array: the same memory.

    Parameters
    ----------
    x : Array
        On a GPU.
    copy : bool, optional
        True copies. CuPy supports every layout, and ignores that memory is read-only.

    Raises
    ------
    ImportError
        If CuPy is not installed.
    DeviceError
        If the array is on the host.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.to_cupy(ta.ones(3, device="cuda"))  # doctest: +SKIP
    array([1., 1., 1.], dtype=float32)
    """
    cupy = _framework("cupy", "to_cupy")
    check_array("to_cupy", x)
    if x.device.backend.on_host:
        raise DeviceError("to_cupy: expected an array on a GPU, got one on the host; write x.to_device('cuda')")
    return cupy.from_dlpack(_shared_or_copied(x, "", copy, "to_cupy"))


def to_jax(x: Array, /, *, copy: bool | None = None) -> Any:
    """Return the elements as a JAX array on the same device: the same memory, if JAX supports it.

    JAX assumes that its arrays are constant: do not write to shared memory afterwards.

    Parameters
    ----------
    x : Array
    copy : bool, optional
        True always copies, False raises if a copy is needed, None copies only then: for memory with gaps, repeated
        elements or negative strides, and for read-only memory. JAX itself copies memory of the host at an address that
        is not a multiple of 64.

    Raises
    ------
    ImportError
        If JAX is not installed.
    DTypeError
        If JAX has the dtype switched off, and would narrow the values.
    LayoutError
        If ``copy=False`` and a copy is needed.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.to_jax(ta.asarray([1, 2], dtype="int32"))  # doctest: +SKIP
    Array([1, 2], dtype=int32)
    """
    jax = _framework("jax.dlpack", "to_jax")
    check_array("to_jax", x)
    if x.dtype.name in _WIDE and not jax.config.jax_enable_x64:
        raise DTypeError(
            f"to_jax: JAX would narrow {x.dtype.name}; write jax.config.update('jax_enable_x64', True) first, or "
            f"x.astype({_WIDE[x.dtype.name]!r})"
        )
    why = "read-only memory needs" if x._buffer.readonly else ""
    return jax.dlpack.from_dlpack(
        _shared_or_copied(x, why if is_dense(x._signature.layout) else "these strides need", copy, "to_jax")
    )


_WIDE = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


_PACKAGES = {"cupy": "cupy-cuda13x"}


def _framework(module: str, function: str) -> Any:
    """Import a framework; its name is the first part of the module's."""
    name = module.partition(".")[0]
    if sys.modules.get(module) is not None:
        return sys.modules[name]
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{function}: {name} is not installed; write pip install {_PACKAGES.get(name, name)}, or install the "
            f"build of {name} for your GPU"
        ) from error
    return sys.modules[name]


def _shared_or_copied(x: Array, why: str, copy: bool | None, function: str) -> Array:
    """`x` itself, or a dense copy if `copy` is true or there is a reason."""
    if copy is False and why:
        raise LayoutError(f"{function}: copy=False, but {why} a copy; write copy=None")
    return copy_of(x) if copy or why else x


# ---------------------------------------------------------------------- arrays of the caller's library


class _Library(NamedTuple):
    """A library whose arrays are recognised once it is imported: its name, their class, and the way back."""

    name: str
    array: str
    back: Callable[[Any], Any]

    def holds(self, value: object) -> bool:
        """Whether a value is an array of this library."""
        found: Any = sys.modules.get(self.name)
        for part in self.array.split("."):
            found = getattr(found, part, None)
        return found is not None and isinstance(value, found)

    def on_host(self, value: Any) -> bool:
        """Whether an array lies in memory of the host, where a function of it runs as well."""
        if self.name == "torch":
            return value.device.type == "cpu"
        if self.name == "jax":
            place = getattr(value, "__dlpack_device__", None)  # which an array that JAX traces lacks
            return place is not None and place()[0] in HOST_KINDS
        return self.name == "numpy"

    def adopted(self, value: Any) -> Array:
        """Return an array as an Array, on its own device."""
        return asarray(value, device="cpu" if default_device() is not CPU and self.on_host(value) else None)


def _to_numba(x: Any) -> Any:
    return sys.modules["numba.cuda"].as_cuda_array(x)


_LIBRARIES = (
    _Library("numpy", "ndarray", to_numpy),
    _Library("torch", "Tensor", to_torch),
    _Library("cupy", "ndarray", to_cupy),
    _Library("jax", "Array", to_jax),
    _Library("numba.cuda", "devicearray.DeviceNDArray", _to_numba),
)


def array_agnostic(function: Callable[..., Any], /) -> Callable[..., Any]:
    """Let a function written for tilearray take and return arrays of its caller's library.

    Arrays of NumPy, torch, CuPy, JAX and numba among the arguments become Arrays over the same memory on the same
    device. If there are any, the Arrays in the result become arrays of that library, and share their memory if it
    can (see `to_torch` and `to_jax`). This applies to the value that a coroutine returns, and to the values that a
    generator yields and returns.

    Arrays within tuples, named tuples, lists, dicts, OrderedDicts and defaultdicts are changed as well. A container
    with arrays is replaced by a new one of its type, so that its owner does not see changes that the function makes.
    All other values pass unchanged: containers without arrays or of other types, and values that a generator is sent.

    Arrays on the host stay there, also where a GPU is the default device.

    Parameters
    ----------
    function : callable
        A function, or a coroutine, generator or asynchronous generator function.

    Raises
    ------
    OperandError
        At the call, if the arguments are of two libraries other than tilearray.

    Examples
    --------
    >>> import numpy as np
    >>> import tilearray as ta
    >>> @ta.array_agnostic
    ... def scaled(x, factor):
    ...     return x * factor
    >>> scaled(np.array([1.0, 2.0]), 3)
    array([3., 6.])
    >>> scaled(ta.asarray([1, 2]), 3)
    Array([3, 6], dtype=int64, device='cpu')
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return called(function, args, kwargs)

    if not inspect.iscoroutinefunction(function):
        return call

    @functools.wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        return await call(*args, **kwargs)

    return awaited


def called(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of Arrays with arrays of one other library, and return its results as arrays of that one."""
    libraries = [_library_of(value) for value in args]
    met = {library.name: library for library in libraries if library}

    def inwards(value: Any) -> Any:
        library = cast(_Library, _library_of(value))
        met[library.name] = library
        return library.adopted(value)

    arguments, options = args, kwargs
    others = [value.__class__ for library, value in zip(libraries, args) if not library]
    if not kwargs and _ALONE.issuperset(others):
        arguments = tuple([library.adopted(value) if library else value for library, value in zip(libraries, args)])
    else:  # there may be containers
        arguments, options = _changed(_library_of, inwards, (args, kwargs))
    if len(met) > 1:
        raise OperandError(
            f"{function.__name__}: expected arrays of one library, got arrays of {' and '.join(sorted(met))}; "
            f"write ta.asarray(x) for those of one of them"
        )
    result: Any = function(*arguments, **options)
    if not met:
        return result
    back = next(iter(met.values())).back
    return back(result) if isinstance(result, ArrayBase) else _outwards(back, result)


_NO_ARRAYS = frozenset((type(None), bool, int, float, complex, str, bytes))
_ALONE = _NO_ARRAYS | {Array}
"""The classes of values that hold no array of another library."""
_DICTS = frozenset((dict, OrderedDict, defaultdict))
_CONTAINERS = _DICTS | {tuple, list}


def _library_of(value: object) -> _Library | None:
    """The library whose array a value is."""
    kind = value.__class__
    found = _OF_CLASS.get(kind)
    if found is not None or kind in _NO_ARRAYS or kind in _CONTAINERS:
        return found
    found = next((known for known in _LIBRARIES if known.holds(value)), None)
    if found is not None and kind.__module__.partition(".")[0] == found.name:
        _OF_CLASS[kind] = found
    return found


_OF_CLASS: dict[type, _Library] = {}
"""The library of each of its own classes that was met: `numpy.ndarray`, `torch.nn.Parameter`."""


def _outwards(back: Callable[[Any], Any], result: Any) -> Any:
    """A result with `back` applied to its Arrays, or to those that it will yield and return."""
    if inspect.iscoroutine(result):
        return _awaited(back, result)
    if inspect.isgenerator(result):
        return _Generated(back, result)
    if inspect.isasyncgen(result):
        return _GeneratedAsynchronously(back, result)
    return _changed(lambda value: isinstance(value, ArrayBase), back, result)


async def _awaited(back: Callable[[Any], Any], inner: Any) -> Any:
    """The value that a coroutine returns, outwards."""
    return _outwards(back, await inner)


class _Generated(Generator[Any, Any, Any]):
    """A generator whose yielded and returned values go outwards."""

    def __init__(self, back: Callable[[Any], Any], inner: Any) -> None:
        self._back = back
        self._inner = inner

    def send(self, value: Any, /) -> Any:
        return self._step(self._inner.send, value)

    def throw(self, kind: Any, value: Any = None, traceback: Any = None, /) -> Any:
        return self._step(self._inner.throw, kind if value is None else value)

    def _step(self, step: Callable[[Any], Any], given: Any) -> Any:
        try:
            found = step(given)
        except StopIteration as end:
            raise StopIteration(_outwards(self._back, end.value)) from None
        return _outwards(self._back, found)


class _GeneratedAsynchronously(AsyncGenerator[Any, Any]):
    """An asynchronous generator whose yielded values go outwards."""

    def __init__(self, back: Callable[[Any], Any], inner: Any) -> None:
        self._back = back
        self._inner = inner

    async def asend(self, value: Any, /) -> Any:
        return _outwards(self._back, await self._inner.asend(value))

    async def athrow(self, kind: Any, value: Any = None, traceback: Any = None, /) -> Any:
        return _outwards(self._back, await self._inner.athrow(kind if value is None else value))


# --- members of containers


def _members(value: Any) -> Iterable[Any]:
    """The members of a container whose exact type is known; nothing for other values."""
    kind = cast("type[Any]", type(value))
    if kind in _DICTS:
        return value.values()
    return value if kind in _CONTAINERS or _is_named_tuple(kind) else ()


def _is_named_tuple(kind: Any) -> bool:
    return issubclass(kind, tuple) and hasattr(cast(object, kind), "_fields") and hasattr(cast(object, kind), "_make")


def is_foreign(value: object) -> bool:
    """Whether a value is an array of another library."""
    return _library_of(value) is not None


def _changed(wanted: Callable[[Any], Any], change: Callable[[Any], Any], value: Any) -> Any:
    """`value` with everything wanted in it changed: in new containers if there is any, else the same object."""
    return _rebuilt(wanted, change, value, _holders(wanted, value), {})


def _holders(wanted: Callable[[Any], Any], value: Any) -> set[int]:
    """The `id` of every container in `value`, or `value` itself, that holds something wanted at any depth."""
    owners: dict[int, list[int]] = {id(value): []}
    direct: list[int] = []
    left = [value]
    while left:
        container = left.pop()
        for item in _members(container):
            if type(item) in _NO_ARRAYS:
                continue
            if wanted(item):
                direct.append(id(container))
            elif id(item) in owners:
                owners[id(item)].append(id(container))
            else:
                owners[id(item)] = [id(container)]
                left.append(item)
    found: set[int] = set()
    while direct:
        holder = direct.pop()
        if holder not in found:
            found.add(holder)
            direct += owners[holder]
    return found


def _rebuilt(
    wanted: Callable[[Any], Any], change: Callable[[Any], Any], value: Any, holders: set[int], done: dict[int, Any]
) -> Any:
    """`value` with everything wanted changed. `done` has the new containers by the `id` of the old ones.

    A container that holds itself does so through a list or a dict, which enters `done` before its members.
    """
    if wanted(value):
        return change(value)
    place = id(value)
    if place in done or place not in holders:
        return done.get(place, value)
    members = _members(value)
    if isinstance(value, tuple):
        items = [_rebuilt(wanted, change, item, holders, done) for item in members]
        kind: Any = cast("type[Any]", type(value))  # pyright: ignore[reportUnknownArgumentType]
        return done.setdefault(place, tuple(items) if kind is tuple else kind._make(items))
    found = done[place] = value.copy()
    keys: Any = value if type(value) in _DICTS else range(len(value))
    for key, item in zip(keys, members):
        found[key] = _rebuilt(wanted, change, item, holders, done)
    return found
