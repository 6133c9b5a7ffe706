"""Following: a function runs as always, and the operations that its arguments reach are recorded beside it.

A `Followed` array is an `Array` over the same memory as the array that it stands for, on a device of its own
(`FollowingDevice`). So all of the library above the plan runs as without it. `tilearray.engine.execute.run` hands each
operation to `record`, which runs it on the arrays below and adds a `Step`: which views it read and wrote, and how a
cotangent of the result goes back to the operands. Nothing is recorded, or kept, of a call that no vjp follows.

What an operation reads is kept only if its rule reads it again. A write to memory that is kept goes to a copy, so
functions may write to the arrays that they make.

Each `vjp` that runs is a level with devices of its own: an array of an inner level may stand for an array of an outer
one, or for one that `fuse` traces. An operation runs at the deepest level of its operands, and then below it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.arrays.fills import arange, full
from tilearray.arrays.fusion.tracing import Traced, TracingDevice, open_trace
from tilearray.engine.devices import Device
from tilearray.engine.execute import run
from tilearray.engine.operation import Operation
from tilearray.engine.plan import Key
from tilearray.engine.signature import ArrayBase, new_array, placed, signature_of
from tilearray.errors import GradientError, WriteError
from tilearray.functions.arguments import without_derivative
from tilearray.functions.conversion import to_device
from tilearray.functions.indexing.assign import set as assign
from tilearray.functions.indexing.gather import gather_selected
from tilearray.functions.indexing.keys import parts_of
from tilearray.functions.indexing.scatter import scatter_selected, without_leading_axes
from tilearray.functions.indexing.take import take
from tilearray.functions.indexing.views import get
from tilearray.functions.manipulation import broadcast_to, reshape
from tilearray.functions.products import matmul
from tilearray.functions.searching import argsort, where
from tilearray.functions.softmax import log_softmax, logsumexp, softmax
from tilearray.geometry.layout import Layout
from tilearray.gradients.pullbacks import Pullback, pullback_of
from tilearray.gradients.views import View
from tilearray.ops.arithmetic import add, maximum
from tilearray.ops.execute import copy_of, execute, fill
from tilearray.ops.moves import Storing
from tilearray.ops.row import Row
from tilearray.ops.softmax import RowFunction
from tilearray.promotion.semantics import Semantics

FLOATS = ("float", "complex")
"""The kinds of dtypes that have derivatives."""


class Step(NamedTuple):
    """A recorded call.

    Attributes
    ----------
    reads : tuple of (View or None)
        For each operand the view that it read; None if no argument reaches it.
    writes : tuple of View
        Its results.
    pull : Pullback or None
        From the cotangents of the results to those of the operands. None: nothing goes back, as from a constant.
    """

    reads: tuple[View | None, ...]
    writes: tuple[View, ...]
    pull: Pullback | None


class Record:
    """The steps of a function, in order.

    Attributes
    ----------
    level : int
        The number of vjps that are open, with this one.
    steps : list of Step
    """

    def __init__(self, level: int) -> None:
        self.level = level
        self.steps: list[Step] = []
        self.trace = open_trace()


_OPEN: ContextVar[tuple[Record, ...]] = ContextVar("tilearray.vjp", default=())


@contextmanager
def recording() -> Generator[Record, None, None]:
    """Record the operations of a block on the arrays that `Record` follows."""
    records = _OPEN.get()
    record = Record(len(records) + 1)
    token = _OPEN.set((*records, record))
    try:
        yield record
    finally:
        _OPEN.reset(token)


def current(device: FollowingDevice) -> Record:
    """Return the record of a level."""
    records = _OPEN.get()
    if len(records) < device.level:
        raise GradientError("vjp: an array of a differentiated function is used after it; return it from the function")
    record = records[device.level - 1]
    if record.trace is not open_trace():
        raise GradientError(
            "vjp: a fused function reads a differentiated array from outside of it; write it as an argument"
        )
    return record


# --- arrays ----------------------------------------------------------------------------------------------------------


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


for _name in ("__repr__", "__str__", "__format__", "__bool__", "__float__", "__int__", "__complex__", "__index__"):
    setattr(Followed, _name, _below(_name))
for _name in ("item", "tolist", "__contains__", "_repr_html_"):
    setattr(Followed, _name, _below(_name))


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


_WHAT = {
    "computes_places": "counts or combines at places; write it outside of the function, or of x.tolist()",
    "to_numpy": "reads the values of an array; write functions of ta, and ta.stack([x, y]) for a list",
    "from_device": "copies between devices; write it outside of the function",
}


class Calls:
    """Whole functions on a followed array that are more than operations."""

    follow_fused: Callable[..., Any]
    follow_matrices: Callable[..., Any]
    follow_fourier: Callable[..., Any]
    """`tilearray.gradients.parts`, which is above this module, puts them here."""

    def __init__(self, device: FollowingDevice) -> None:
        self._device = device

    def follows(self, other: Device) -> bool:
        """Whether an array of another device is a constant here."""
        return any(other is below for below in self._device.chain())

    @property
    def place(self) -> Device:
        """The device of the memory, below all levels: there are index arrays."""
        return list(self._device.chain())[-1]

    def below(self, x: Any) -> Any:
        """Return the array in memory below a followed one, where derivatives end; any other object as it is."""
        while is_followed(x):
            x = lowered(x)
        return x

    def matrices(self, function: str) -> Any:
        """Return what computes factors of followed matrices."""
        return self.follow_matrices(self._device, function)

    def fourier(self, below: Callable[[Any], Any]) -> Any:
        """Return what computes transforms of followed arrays, given what returns it for the arrays below."""
        return self.follow_fourier(self._device, below)

    def to_device(self, x: Any, target: Device, stream: Any) -> Any:
        """Return an array on a device; its cotangents go back to the device of `x`."""
        if target is self.place:
            return x
        found = to_device(lowered(x, self._device), target, stream=stream)

        def pull(cotangents: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
            del wanted
            return [to_device(cotangents[0], self.place)]

        return recorded(self._device, found, (x,), pull)

    def order_along(self, x: Any, axis: int, descending: bool) -> Any:
        """Return the indices that sort an array along an axis."""
        return argsort(without_derivative(x), axis, descending=descending)

    def gather(self, x: Any, key: Any) -> Any:
        """Return the elements at a key with index arrays."""
        plain = tuple([lowered(part, self._device) for part in parts_of(key)])
        plain = plain if isinstance(key, tuple) else plain[0]
        return self._gathered(x, lambda array: get(array, plain))

    def gather_selected(self, selection: Any) -> Any:
        """Return the elements of a selection."""
        indices = tuple([lowered(index, self._device) for index in selection.indices])
        at = selection._replace(indices=indices)
        return self._gathered(selection.view, lambda array: gather_selected(at._replace(view=array)))

    def _gathered(self, x: Any, read: Callable[[Any], Any]) -> Any:
        real, shape = lowered(x), x._signature.layout.shape
        size = x._signature.layout.size
        place = self.place

        def pull(cotangents: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
            del wanted
            places = read(reshape(arange(size, dtype=dtypes.int64, device=place), shape))
            return [reshape(spread(cotangents[0], places, size), shape)]

        return recorded(self._device, read(real), (x,), pull)

    def scatter(self, x: Any, key: Any, value: Any) -> None:
        """Assign a number or an array to the elements that a key with arrays selects; of several, the last stays."""
        plain = tuple([self.below(part) for part in parts_of(key)])
        plain = plain if isinstance(key, tuple) else plain[0]
        self._scattered(x, value, lambda array: get(array, plain), lambda array, found: assign(array, plain, found))

    def scatter_selected(self, selection: Any, value: Any) -> None:
        """Assign to the elements of a selection."""
        at = selection._replace(indices=tuple([self.below(index) for index in selection.indices]))

        def read(array: Any) -> Any:
            return gather_selected(at._replace(view=array))

        def write(array: Any, found: Any) -> None:
            scatter_selected(at._replace(view=array), found)

        self._scattered(selection.view, value, read, write)

    def _scattered(self, x: Any, value: Any, read: Callable[[Any], Any], write: Callable[[Any, Any], None]) -> None:
        """Assign the numbers of the elements to integers, which then say where each element of `x` comes from."""
        place, shape = self.place, x._signature.layout.shape
        source = full(shape, -1, dtype=dtypes.int64, device=place)
        selected = read(source)
        count = selected.size
        selected = reshape(arange(count, dtype=dtypes.int64, device=place), selected.shape)
        write(source, selected)
        if isinstance(value, ArrayBase):
            flat = reshape(broadcast_to(without_leading_axes(value, selected.ndim), selected.shape), (count,))
            value = reshape(take(flat, reshape(maximum(source, 0), (-1,)), axis=0), shape) if count else 0
        where(source < 0, x, value, out=x)

    def fused(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a fused function, as one step."""
        return self.follow_fused(self._device, function, args, kwargs)


class _EveryProduct:
    """Products of matrices of every dtype and layout are one operation, whoever runs it below."""

    def takes(self, dtype: np.dtype) -> bool:
        del dtype
        return True

    def readable(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
        del shape, strides
        return True

    def is_small(self, dtype: np.dtype, work: int) -> bool:
        del dtype, work
        return False


class _FollowingBackend:
    """Memory of followed arrays is that of the arrays below."""

    products = _EveryProduct()

    call_writer = index_errors = indexing = linear_algebra = sorting = transforms = None
    holds_rows = True

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

    def __getattr__(self, name: str) -> NoReturn:
        if name not in _WHAT:
            raise AttributeError(name)
        raise GradientError(f"vjp: expected a function with derivatives, got one that {_WHAT[name]}")


class FollowingDevice(Device):
    """The device of followed arrays of one level, over the device of the arrays below."""

    __slots__ = ("level", "real")

    def __init__(self, real: Device, level: int) -> None:
        super().__init__(real.type, real.index)
        self.name = f"{real.name} (followed {level})"
        self.wants_alignment = False
        self.depth = level + 1
        self.real = real
        self.level = level
        self.recorder = record
        self.functions = Calls(self)
        self.backend = cast(Any, _FollowingBackend(real))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and (other == self.name or self.real == other))

    __hash__ = Device.__hash__

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


def is_followed(x: object, device: Device | None = None) -> bool:
    """Whether an object is a followed array, on this device if one is given."""
    if not isinstance(x, ArrayBase):
        return False
    given = x._signature.device
    return isinstance(given, FollowingDevice) if device is None else given is device


def followed(real: Any, level: int, *, active: bool, readonly: bool = False) -> Followed:
    """Return a followed array that stands for another array."""
    signature = real._signature
    made = signature_of(signature.layout, signature.dtype, following(signature.device, level))
    memory: Any = Memory(real._buffer, active=active, readonly=readonly)
    return Followed._make(memory, real._offset, made)


def lowered(x: Any, device: Device | None = None) -> Any:
    """Return the array below a followed one; any other object, or an array of another device, as it is."""
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


# --- recording -------------------------------------------------------------------------------------------------------


def record(
    operation: Operation, semantics: Semantics, keys: Sequence[Key], operands: Sequence[Any], out: ArrayBase | None
) -> Any:
    """Run a call on the arrays below, add it to the record of its level, and return its result."""
    device = _deepest(operands, out)
    level = current(device)
    active = [is_followed(each, device) and memory_of(each).active for each in operands]
    if out is not None:
        return _written(level, device, operation, semantics, keys, operands, out, active)
    given = [lowered(each, device) for each in operands]
    found = _run(operation, keys, given, None)
    if not any(active) or dtypes.info(found._signature.dtype).kind not in FLOATS:
        return found
    pull, kept, keeps_result = pullback_of(operation, given, found, active)
    _keep(operands, kept, device)
    made = followed(found, level.level, active=True)
    memory_of(made).kept = keeps_result
    level.steps.append(Step(_reads(operands, active), (view_of(made),), pull))
    return made


def recorded(device: FollowingDevice, found: Any, operands: Sequence[Any], pull: Pullback) -> Any:
    """Add a call that ran below, with all operands and the result kept, and return its followed result."""
    return recorded_all(device, (found,), operands, pull)[0]


def recorded_all(
    device: FollowingDevice, results: Sequence[Any], operands: Sequence[Any], pull: Pullback
) -> tuple[Any, ...]:
    """Add a call with several results. Only floats among them have cotangents."""
    active = [is_followed(each, device) and memory_of(each).active for each in operands]
    level = current(device)
    floats = [isinstance(each, ArrayBase) and dtypes.info(each.dtype).kind in FLOATS for each in results]
    if not any(active) or not any(floats):
        return tuple(results)
    _keep(operands, range(len(operands)), device)
    made = [
        followed(each, level.level, active=True) if flag else each for each, flag in zip(results, floats, strict=True)
    ]
    written = [each for each, flag in zip(made, floats, strict=True) if flag]
    for each in written:
        memory_of(each).kept = True
    level.steps.append(Step(_reads(operands, active), tuple([view_of(each) for each in written]), pull))
    return tuple(made)


def _reads(operands: Sequence[Any], active: Sequence[bool]) -> tuple[View | None, ...]:
    return tuple([view_of(each) if flag else None for each, flag in zip(operands, active, strict=True)])


def _keep(operands: Sequence[Any], places: Sequence[int], device: Device) -> None:
    for place in places:
        if is_followed(operands[place], device):
            memory_of(operands[place]).kept = True


def _deepest(operands: Sequence[Any], out: Any) -> FollowingDevice:
    arrays = [each._signature.device for each in (*operands, out) if isinstance(each, ArrayBase)]
    return cast(FollowingDevice, max(arrays, key=lambda device: device.depth))


def _run(operation: Operation, keys: Sequence[Key], operands: list[Any], out: Any) -> Any:
    """Run a call on arrays of the level below."""
    if operation.reduced is not None and out is None:
        if operation.reduced.multiplies:
            return matmul(*operands)
        if isinstance(operation, RowFunction):
            axes, keepdims = operation.reduced.axes, operation.reduced.keepdims
            if operation.name == "logsumexp":
                return logsumexp(operands[0], axes, keepdims)
            return (softmax if operation.name == "softmax" else log_softmax)(operands[0], axes)
    mine: list[Key] = [
        each._signature if isinstance(each, ArrayBase) else key for each, key in zip(operands, keys, strict=True)
    ]
    careful = execute if isinstance(operation, Row | Storing) else _refuse
    return run(operation, mine, operands, out, careful)


def _refuse(operation: Operation, operands: Any, out: ArrayBase) -> Any:
    del operands, out
    raise WriteError(f"{operation.name}: the target shares memory with an operand; write to x.copy()")


# --- writing ---------------------------------------------------------------------------------------------------------


def _written(
    level: Record,
    device: FollowingDevice,
    operation: Operation,
    semantics: Semantics,
    keys: Sequence[Key],
    operands: Sequence[Any],
    out: ArrayBase,
    active: list[bool],
) -> Any:
    """Run a call that writes to an array."""
    del semantics
    if not is_followed(out, device):
        if any(active):
            raise GradientError(
                f"vjp: {operation.name} writes a differentiated value to an array from outside of the function; write "
                f"to ta.zeros_like(x) of an argument x"
            )
        return _run(operation, keys, [lowered(each, device) for each in operands], out)
    memory = memory_of(out)
    given = [lowered(each, device) for each in operands]
    pull: Pullback | None = None
    keeps_result = False
    if any(active):
        like = lowered(out)
        pull, kept, keeps_result = pullback_of(operation, given, like, active)
        _keep(operands, kept, device)
    whole = _is_whole(out, memory)
    if memory.kept:
        _renew(out, memory, whole)
    target = lowered(out)
    if keeps_result:  # the rule reads the array that is written now
        pull, _, _ = pullback_of(operation, given, target, active)
    _run(operation, keys, given, target)
    was_active = memory.active
    memory.active = any(active) or (was_active and not whole)
    memory.kept = keeps_result
    if any(active) or was_active:
        level.steps.append(Step(_reads(operands, active), (view_of(out),), pull))
    return out


def _is_whole(x: ArrayBase, memory: Memory) -> bool:
    signature = x._signature
    layout = signature.layout
    dense = layout.size == layout.high - layout.low + 1 and not layout.overlaps_itself
    return dense and signature.nbytes >= memory.nbytes


def _renew(out: Any, memory: Memory, whole: bool) -> None:
    """Give memory that is read again later to the steps that read it, and go on in other memory."""
    below = lowered(out)
    device = below._signature.device
    if whole:
        memory.real = _allocated(below, memory.nbytes)
        return
    itemsize = below._signature.itemsize
    count = memory.nbytes // itemsize
    flat = below._make(memory.real, 0, placed(memory.real, 0, Layout.of((count,)), below._signature.dtype, device))
    memory.real = copy_of(flat)._buffer


def _allocated(like: Any, nbytes: int) -> Any:
    itemsize = like._signature.itemsize
    layout = Layout.of((nbytes // itemsize,))
    return new_array(like.__class__, signature_of(layout, like._signature.dtype, like._signature.device))._buffer


# --- the adjoint of reading at positions ----------------------------------------------------------------------------


def spread(values: Any, positions: Any, size: int) -> Any:
    """Return an array of one axis with values added up at positions, in their order.

    Parameters
    ----------
    values : Array
    positions : Array or ndarray
        Integers of the shape of `values`.
    size : int

    Examples
    --------
    >>> import tilearray as ta
    >>> spread(ta.asarray([1.0, 2.0, 4.0]), ta.asarray([0, 2, 0]), 3)
    Array([5., 0., 2.], dtype=float32, device='cpu')
    """
    if is_followed(values):
        device = values._signature.device
        below = spread(lowered(values), positions, size)
        shape = values._signature.layout.shape

        def pull(cotangents: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
            del wanted
            return [reshape(take(cotangents[0], reshape(positions, -1), axis=0), shape)]

        return recorded(device, below, (values,), pull)
    signature = values._signature
    if isinstance(positions, np.ndarray):
        positions = asarray(positions, device=signature.device)
    zeros = fill(_flat(values, size), 0, "vjp")
    add.at(zeros, reshape(positions, -1), reshape(values, -1))
    return zeros


def _flat(like: Any, size: int) -> Any:
    signature = like._signature
    return new_array(like.__class__, signature_of(Layout.of((size,)), signature.dtype, signature.device))
