"""Devices: where an Array's memory lives, and which backend works there.

A `Device` is interned, so identity means equality and a plan key hashes it in nanoseconds. Its backend is a package of
its own and is imported when the device is first used, never before: ``import tilearray`` loads no driver. A backend
offers the calls of `Backend`; everything that it receives is plain: integers, strings and tuples.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, cast

from tilearray.errors import DeviceError, DeviceUnavailableError

ENVIRONMENT_VARIABLE = "TILEARRAY_DEVICE"
BACKENDS = {"cpu": "tilearray_host", "cuda": "tilearray_cuda"}


class Buffer(Protocol):
    """Memory on one device: kept alive by every view of it."""

    @property
    def pointer(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def readonly(self) -> bool: ...


Launch = Callable[..., None]
Stream = Any
"""What orders the work of a device: for cuda the handle of a stream, an int; the host has none and ignores it."""


class Backend(Protocol):
    """What a device must be able to do. All of it is plain: integers, strings, tuples and the backend's own objects."""

    def allocate(self, nbytes: int, stream: Stream, /) -> Buffer:
        """Return uninitialised memory of `nbytes` bytes, aligned for every dtype."""
        ...

    def compile(self, body: Any, layout_class: Any, aligned: tuple[bool, ...], /) -> Any:
        """Turn an expression body into a kernel for every loop of one layout class."""
        ...

    def bind(self, kernel: Any, loop: Any, /) -> Launch:
        """Fix the loop of a kernel: the result is called with a stream, then a buffer or number and an offset each."""
        ...

    def to_numpy(
        self, buffer: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any, /
    ) -> Any:
        """Return a host ndarray of a strided view: the same memory where the device is the host, else a copy."""
        ...

    def from_numpy(self, array: Any, /, *, copy: bool, stream: Stream = None) -> tuple[Buffer, int]:
        """Return a buffer that holds `array`'s elements at its strides, and the byte offset of element 0."""
        ...

    def from_device(self, other: Any, buffer: Any, offset: int, nbytes: int, /, *, stream: Stream = None) -> Buffer:
        """Return a copy of bytes of another device of the same backend; a backend of one device has no such call."""
        ...


class Placed(Protocol):
    """What is on a device."""

    @property
    def device(self) -> Device: ...


class Device:
    """A place for arrays: ``cpu``, or ``cuda:0`` and its neighbours.

    Devices are obtained from `device` or from ``x.device``; equal devices are the same object, and a device also
    equals its name.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.zeros(3, device="cpu").device
    Device('cpu')
    """

    __slots__ = ("_backend", "index", "kinds", "name", "type", "wants_alignment")

    def __init__(self, type_: str, index: int) -> None:
        self.type = type_
        self.index = index
        self.name = type_ if type_ == "cpu" else f"{type_}:{index}"
        self.wants_alignment = type_ != "cpu"
        self.kinds: dict[Any, Any] = {}  # of the arrays on it: see `tilearray.engine.signature.Kind`
        self._backend: Backend | None = None

    @property
    def backend(self) -> Backend:
        """What works on this device; its package is imported at first use."""
        if self._backend is None:
            self._backend = cast(Backend, importlib.import_module(BACKENDS[self.type]).open_device(self.index))
        return self._backend

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and other == self.name)

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Device({self.name!r})"

    def __reduce__(self) -> tuple[Callable[[str], Device], tuple[str]]:
        return as_device, (self.name,)


CPU = Device("cpu", 0)
_DEVICES: dict[str, Device] = {"cpu": CPU, "cpu:0": CPU}


def as_device(spec: object, function: str = "device") -> Device:
    """Return the `Device` that a name, an index-carrying name, a Device or ``None`` (the default device) stands for."""
    if spec is None:
        return default_device()
    if isinstance(spec, Device):
        return _DEVICES.setdefault(spec.name, spec)  # one object a name, also where someone made another
    name = str(spec)
    known = _DEVICES.get(name)
    if known is not None:
        return known
    kind, colon, index = name.partition(":")
    if kind not in BACKENDS or kind == "cpu" or (colon and not (index.isascii() and index.isdecimal())):
        raise DeviceError(f"{function}: {name!r} is no device; write 'cpu', 'cuda' or 'cuda:N' with N = 0, 1, ...")
    device = Device(kind, int(index or 0))
    if device.name not in _DEVICES:
        _open(device, function)
    return _DEVICES.setdefault(device.name, device)


def _open(device: Device, function: str) -> None:
    """See that a device is there: an error about one that is not belongs where it was asked for."""
    missing = importlib.import_module(f"{BACKENDS[device.type]}.errors").UnavailableError
    try:
        device.backend  # noqa: B018
    except missing as error:
        raise DeviceUnavailableError(f"{function}: {error}") from error


def devices() -> tuple[Device, ...]:
    """Return the devices that arrays can be created on, the host last.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.devices()[-1]
    Device('cpu')
    """
    return (*[as_device(f"cuda:{index}", "devices") for index in range(_gpus())], CPU)


def _gpus() -> int:
    return importlib.import_module(BACKENDS["cuda"]).device_count()


_default: Device | None = None


def default_device() -> Device:
    """Return the device on which new arrays are created.

    As `set_default_device` says, else the environment variable ``TILEARRAY_DEVICE``, else ``cuda:0`` where there is a
    GPU, else the host.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.default_device() in ta.devices()
    True
    """
    global _default
    if _default is None:
        named = os.environ.get(ENVIRONMENT_VARIABLE)
        _default = as_device(named or ("cuda:0" if _gpus() else "cpu"), ENVIRONMENT_VARIABLE)
    return _default


def set_default_device(device: Device | str | None, /) -> None:
    """Set the device on which arrays are created where none is named; ``None`` returns to the start-up choice.

    Raises
    ------
    DeviceError
        If there is no such device; nothing changes then.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.set_default_device("cpu")
    """
    global _default
    _default = None if device is None else as_device(device, "set_default_device")


@contextmanager
def using_device(device: Device | None) -> Generator[None, None, None]:
    """Make new arrays on a device for the length of a ``with`` block; None changes nothing."""
    global _default
    before = _default
    _default = before if device is None else device
    try:
        yield
    finally:
        _default = before


def common_device(function: str, operands: Sequence[Placed]) -> Device:
    """Return the one device of all operands, or say which two differ."""
    first = operands[0].device
    for operand in operands:
        if operand.device is not first:
            raise DeviceError(
                f"{function}: the operands are on {first} and on {operand.device}; "
                f"move one with x.to_device({str(first)!r})"
            )
    return first
