"""Devices: places for the memory of arrays, each with a backend.

A `Device` is interned: equal devices are the same object, and a plan key hashes it in nanoseconds. Its backend is a
separate package. The first use of the device imports it, so ``import tilearray`` loads no driver.

The default device is a setting of the whole process. A ``with using_device(...)`` block overrides it in one thread or
task.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from tilearray.engine.backend import Backend
from tilearray.errors import DeviceError, DeviceUnavailableError, TileArrayError, shown

ENVIRONMENT_VARIABLE = "TILEARRAY_DEVICE"
BACKENDS = {"cpu": "tilearray_host", "cuda": "tilearray_cuda"}


DeviceName = Literal[
    "cpu",
    "cuda",
    "cuda:0",
    "cuda:1",
    "cuda:2",
    "cuda:3",
    "cuda:4",
    "cuda:5",
    "cuda:6",
    "cuda:7",
    "cuda:8",
    "cuda:9",
    "cuda:10",
    "cuda:11",
    "cuda:12",
    "cuda:13",
    "cuda:14",
    "cuda:15",
]
"""The names of devices. A host with more GPUs writes ``ta.devices()[16]``."""


class DeviceObject(Protocol):
    """A device: `tilearray.Device`, or one of another library with the same names, such as ``torch.device``."""

    @property
    def type(self) -> str: ...
    @property
    def index(self) -> Any: ...


DeviceLike: TypeAlias = "DeviceName | DeviceObject"
"""A device or its name."""


class Placed(Protocol):
    """An object on a device."""

    @property
    def device(self) -> Device: ...


class Device:
    """A place for arrays: ``cpu``, ``cuda:0``, ``cuda:1``, ...

    `devices` and ``x.device`` return devices. Equal devices are the same object, and a device also equals its name.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.zeros(3, device="cpu").device
    Device('cpu')
    """

    __slots__ = (
        *("backend", "depth", "followers", "functions", "index", "name", "positions", "recorder", "traits", "type"),
        *("of_constants", "wants_alignment"),
    )

    backend: Backend
    """The backend of this device. The first use imports its package."""

    def __init__(self, type_: str, index: int) -> None:
        self.type = type_
        self.index = index
        self.name = type_ if type_ == "cpu" else f"{type_}:{index}"
        self.wants_alignment = type_ != "cpu"
        self.traits: dict[Any, Any] = {}  # of its arrays: see `tilearray.engine.signature.Traits`
        self.recorder: Callable[..., Any] | None = None  # runs operations instead of a plan: see `engine.execute.run`
        self.depth = 0  # of operands on several devices that record, the deepest one records
        self.positions: Callable[..., Any] | None = None  # for shapes: see `arrays.fusion.tracing.ranges_of`
        self.functions: Any = None  # runs whole functions that are more than operations: see `gradients.calls`
        self.followers: dict[int, Device] = {}  # by level: the devices of arrays that follow those of this one
        self.of_constants: Device = self  # of a range, which follows from numbers alone; of a traced array its memory's

    def follows(self, other: Device) -> bool:
        """Whether arrays of another device are constants beside those of this one, which follows or traces it."""
        return self.functions is not None and self.functions.follows(other)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Open the backend: only then Python does not find the attribute."""
            if name != "backend":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            self.backend = importlib.import_module(BACKENDS[self.type]).open_device(self.index)
            return self.backend

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
    """Return the `Device` of a name (``"cuda"``, ``"cuda:1"``), of a Device, or of ``None`` (the default device)."""
    if spec is None:
        return default_device()
    known = named_device(spec)
    if known is not None:
        return known
    own: Any = spec if issubclass(type(spec), Device) else None
    name = _name_of(spec) if own is None else own.name
    known = _DEVICES.get(name)
    if known is not None:
        return known  # one object for each name, also if a caller made another
    if own is not None and _is_open(own):  # by its maker
        return _DEVICES.setdefault(name, own)
    kind, colon, index = name.partition(":")
    if kind not in BACKENDS or kind == "cpu" or (colon and not (index.isascii() and index.isdecimal())):
        raise DeviceError(
            f"{function}: {shown(name)} is not a device; write 'cpu', 'cuda' or 'cuda:N' with N = 0, 1, ..."
        )
    device = Device(kind, int(index or 0))
    if device.name not in _DEVICES:
        _open(device, function)
    return _DEVICES.setdefault(device.name, device)


def named_device(name: object) -> Device | None:
    """Return the device of a name that was used before, else None."""
    return _DEVICES.get(name) if name.__class__ is str else None  # type: ignore[call-overload]


def forget(*given: Device) -> None:
    """Drop the names of devices that are no longer used."""
    for device in given:
        _DEVICES.pop(device.name, None)


def _name_of(spec: object) -> str:
    """Return the name of a device that is a string, or another library's device; other objects have no such name."""
    return str(spec) if isinstance(spec, str) or hasattr(spec, "type") else shown(spec)


def _is_open(device: Device) -> bool:
    try:
        object.__getattribute__(device, "backend")
    except AttributeError:
        return False
    return True


def _open(device: Device, function: str) -> None:
    """Open a device. If it does not exist, raise the error in the function that asked for it.

    From now on ``except TileArrayError`` catches the errors of the backend, which imports nothing of the library.
    """
    errors = importlib.import_module(f"{BACKENDS[device.type]}.errors")
    errors.derive_from(TileArrayError)
    try:
        device.backend  # noqa: B018
    except errors.UnavailableError as error:
        raise DeviceUnavailableError(f"{function}: {error}") from error


def devices() -> tuple[Device, ...]:
    """Return the devices on which arrays can be created. The host is the last.

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
_BLOCK: Final[ContextVar[Device | None]] = ContextVar("tilearray.device", default=None)
"""The device of the innermost `using_device` block in the current thread or task."""


def default_device() -> Device:
    """Return the device on which new arrays are created.

    This is the device of `set_default_device`. Without it, the environment variable ``TILEARRAY_DEVICE`` decides.
    Without both, it is ``cuda:0`` if there is a GPU, else the host.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.default_device() in ta.devices()
    True
    """
    global _default
    device = _BLOCK.get()
    if device is not None:
        return device
    if _default is None:
        named = os.environ.get(ENVIRONMENT_VARIABLE)
        _default = as_device(named or ("cuda:0" if _gpus() else "cpu"), ENVIRONMENT_VARIABLE)
    return _default


def set_default_device(device: DeviceLike | None, /) -> None:
    """Set the device of new arrays without ``device=``, for the whole process. ``None`` restores the start-up choice.

    Raises
    ------
    DeviceError
        If the device does not exist. Nothing changes then.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.set_default_device("cpu")
    """
    global _default
    _default = None if device is None else as_device(device, "set_default_device")


@contextmanager
def using_device(device: Device | None) -> Generator[None, None, None]:
    """Create new arrays on a device within a ``with`` block, in the current thread or task. None changes nothing."""
    before = _BLOCK.get()
    try:  # an interrupt may arrive behind each call: so the device is set within
        _BLOCK.set(before if device is None else device)
        yield
    finally:
        _BLOCK.set(before)


def are_one(first: Device, second: Device) -> bool:
    """Whether arrays on one device count as on the other: if it is the same, or one of them follows the other."""
    return first is second or (first.depth != second.depth and (first.follows(second) or second.follows(first)))


def common_device(function: str, operands: Sequence[Placed]) -> Device:
    """Return the common device of all operands. If two differ, raise an error that names them.

    A device that follows another one goes with it, and the deepest is the common one.
    """
    first = operands[0].device
    for operand in operands:
        if operand.device is not first:
            if not are_one(first, operand.device):
                raise _different(function, first, operand.device)
            first = first if first.depth > operand.device.depth else operand.device
    return first


def _different(function: str, first: Device, second: Device) -> DeviceError:
    return DeviceError(
        f"{function}: the operands are on {first.name} and on {second.name}; move one with x.to_device({str(first)!r})"
    )
