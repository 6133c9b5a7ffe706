"""Followed arrays: each is an `Array` over the same memory as the array that it stands for, on a device of its own.

So all of the library above the plan runs as without it. An array of an inner level may stand for an array of an outer
one, or for one that `fuse` traces.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NoReturn, cast

import numpy as np

from tilearray.arrays.array import Array
from tilearray.arrays.fusion.tracing import Traced, TracingDevice
from tilearray.engine.devices import Device
from tilearray.engine.signature import ArrayBase, placed, signature_of
from tilearray.errors import GradientError
from tilearray.gradients.steps import levels_below, note_numbers
from tilearray.gradients.views import View


class Memory:
    """The memory of followed arrays.

    Attributes
    ----------
    real : buffer
        The memory below, at this time.
    kept : bool
        Whether a step reads `real` again in the reverse pass.
    active : bool
        Whether an argument reaches it.
    readonly : bool
    token : object
        What views name, so that steps do not hold memory that no rule reads.
    """

    __slots__ = ("active", "kept", "readonly", "real", "token")

    def __init__(self, real: Any, *, active: bool = False, readonly: bool = False) -> None:
        self.real = real
        self.active = active
        self.kept = False
        self.readonly = readonly
        self.token = object()

    @property
    def pointer(self) -> int:
        """The address of the memory below."""
        return self.real.pointer

    @property
    def nbytes(self) -> int:
        """Its size."""
        return self.real.nbytes

    @property
    def stream(self) -> Any:
        """The stream of the memory below."""
        return getattr(self.real, "stream", None)


def memory_of(x: ArrayBase) -> Memory:
    """Return the memory of a followed array."""
    return cast(Memory, x._buffer)


class Followed(Array, public=False):
    """An array in a function that is differentiated. Its values are there: they can decide what the function does."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]


def _below(name: str) -> Any:
    def method(self: Followed, *args: Any) -> Any:
        return getattr(lowered(self), name)(*args)

    return method


for _name in ("__repr__", "__str__", "__format__", "__bool__", "__int__", "__index__", "__contains__", "_repr_html_"):
    setattr(Followed, _name, _below(_name))


def _numbers(name: str) -> Any:
    below = _below(name)

    def method(self: Followed, *args: Any) -> Any:
        if memory_of(self).active:
            note_numbers(level_of(self))
        return below(self, *args)

    return method


for _name in ("__float__", "__complex__", "item", "tolist"):
    setattr(Followed, _name, _numbers(_name))


def _needs_values(name: str) -> Any:
    def method(self: Followed, *args: Any, **kwargs: Any) -> NoReturn:
        raise GradientError(
            f"vjp: {name} needs the values of an array that is differentiated, and derivatives end there; write "
            f"functions of ta, or x.tolist() for the values"
        )

    return method


for _name in ("__array__", "__dlpack__", "__reduce__", "__buffer__", "__bytes__"):
    setattr(Followed, _name, _needs_values(_name))
for _name in ("__array_interface__", "__array_struct__", "__cuda_array_interface__"):
    setattr(Followed, _name, property(_needs_values(_name)))


# --- devices ---------------------------------------------------------------------------------------------------------


_WHAT = {
    "computes_places": "counts or combines at places; write it outside of the function, or of x.tolist()",
    "to_numpy": "reads the values of an array; write functions of ta, and ta.stack([x, y]) for a list",
    "collectives": "exchanges data between devices; write it outside of the function",
}


class _EveryProduct:
    """Products of matrices of every dtype and layout are one operation, whoever runs it below."""

    def takes(self, dtype: np.dtype) -> bool:
        del dtype
        return True

    def readable(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
        del shape, strides
        return True

    def is_small(self, dtype: np.dtype, rows: int, depth: int, columns: int) -> bool:
        del dtype, rows, depth, columns
        return False


class _FollowingBackend:
    """Memory of followed arrays is that of the arrays below."""

    products = _EveryProduct()

    call_writer = index_errors = indexing = linear_algebra = sorting = transforms = None
    holds_rows = True
    most_members = most_bins = 0

    def __init__(self, real: Device) -> None:
        self._real = real.backend
        self.on_host = real.backend.on_host
        self.approximates = real.backend.approximates

    def own_stream(self, stream: Any) -> Any:
        return self._real.own_stream(stream)

    def allocate(self, nbytes: int, stream: Any) -> Memory:
        return Memory(self._real.allocate(nbytes, stream))

    def from_numpy(self, array: np.ndarray, /, *, copy: bool, stream: Any = None) -> tuple[Memory, int]:
        buffer, offset = self._real.from_numpy(array, copy=copy, stream=stream)
        return Memory(buffer), offset

    def from_device(self, other: Any, buffer: Any, offset: int, nbytes: int, /, *, stream: Any = None) -> Memory:
        return Memory(self._real.from_device(other, buffer, offset, nbytes, stream=stream))

    def __getattr__(self, name: str) -> NoReturn:
        if name not in _WHAT:
            raise AttributeError(name)
        raise GradientError(f"vjp: expected a function with derivatives, got one that {_WHAT[name]}")


class FollowingDevice(Device):
    """The device of followed arrays of one level, over the device of the arrays below.

    `tilearray.gradients.parts` says what records operations, and what runs whole functions: both lie above this module.
    """

    __slots__ = ("level", "real")

    follow_operation: Callable[..., Any]
    follow_functions: Callable[[FollowingDevice], Any]

    def __init__(self, real: Device, level: int) -> None:
        super().__init__(real.type, real.index)
        self.name = f"{real.name} (followed {level})"
        self.wants_alignment = False
        self.depth = level + 1
        self.real = real
        self.level = level
        self.recorder = self.follow_operation
        self.functions = FollowingDevice.follow_functions(self)
        self.of_constants = self if real.of_constants is real else real.of_constants
        self.backend = cast(Any, _FollowingBackend(real))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and (other == self.name or self.real == other))

    __hash__ = Device.__hash__

    def __str__(self) -> str:
        return str(self.real)

    def chain(self) -> Generator[Device, None, None]:
        """Yield the devices below."""
        below = self.real
        yield below
        while isinstance(below, FollowingDevice | TracingDevice):
            below = below.real
            yield below


def following(real: Device, level: int) -> FollowingDevice:
    """Return the device of a level over another device."""
    found = real.followers.get(level) or real.followers.setdefault(level, FollowingDevice(real, level))
    return cast(FollowingDevice, found)


def is_followed(x: object, device: FollowingDevice | None = None) -> bool:
    """Whether an object is a followed array, of the level of a device if one is given."""
    if not isinstance(x, ArrayBase):
        return False
    given = x._signature.device
    return isinstance(given, FollowingDevice) and (device is None or given.level == device.level)


def followed(real: Any, level: int, *, active: bool, readonly: bool = False) -> Followed:
    """Return a followed array that stands for another array.

    All arrays of a level stand for arrays of the level that is open around it, so that they have one device, and memory
    of which each part may depend on arguments of each level. An array that none of them follows is a constant there.
    """
    around = levels_below(level)
    if around and level_of(real) < around[-1]:
        real = followed(real, around[-1], active=False)
    signature = real._signature
    made = signature_of(signature.layout, signature.dtype, following(signature.device, level))
    memory: Any = Memory(real._buffer, active=active, readonly=readonly)
    return Followed._make(memory, real._offset, made)


def level_of(x: Any) -> int:
    """Return the level of a followed array; 0 for others."""
    device = x._signature.device
    return device.level if isinstance(device, FollowingDevice) else 0


def lowered(x: Any, device: FollowingDevice | None = None) -> Any:
    """Return the array below a followed one; any other object, or an array of another level, as it is."""
    if not is_followed(x, device):
        return x
    signature, real = x._signature, x._signature.device.real
    buffer, offset = memory_of(x).real, x._offset
    kind = Followed if isinstance(real, FollowingDevice) else Traced if isinstance(real, TracingDevice) else Array
    return kind._make(buffer, offset, placed(buffer, offset, signature.layout, signature.dtype, real))


def view_of(x: Any) -> View:
    """Return the view of a followed array."""
    return View(memory_of(x).token, x._offset, x._signature.layout, x._signature.dtype)


def place_of(x: Any) -> Device:
    """Return the device of the memory of an array: there are the constants beside it."""
    device = x._signature.device
    return device if device.functions is None else device.functions.place
