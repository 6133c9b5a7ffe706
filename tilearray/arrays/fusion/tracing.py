"""Tracing: a function runs once on arrays without memory, and each operation is recorded instead of run.

A `Traced` array is an `Array` with a signature, on a device of its own (`tracing_device`). So all of the library above
the plan runs as in a call with memory: promotion, broadcasting, the casts of Python numbers, views, copies of operands
that share the target's memory, and every error at its line. `tilearray.engine.execute.run` hands the operation to
`record`, which adds a value (`tilearray.arrays.fusion.values`).

Each buffer knows the values that were written to it. An in-place operation is a new value of the same array, and a read
finds the value that the array has now.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

import numpy as np

from tilearray.arrays.array import Array
from tilearray.arrays.fusion.numbers import TracedNumber
from tilearray.arrays.fusion.values import Constant, Given, Load, Use, Value, all_of, copied, joined, view_of
from tilearray.engine.context import STATE
from tilearray.engine.devices import Device, common_device
from tilearray.engine.operation import FixedOperation, Operation, Reduced, expression_of
from tilearray.engine.plan import Key, types_of
from tilearray.engine.signature import ArrayBase, Signature, overlap, signature_of
from tilearray.engine.splice import is_elementwise
from tilearray.errors import FusionError, ShapeError
from tilearray.functions.indexing import views
from tilearray.functions.indexing.keys import BOOLS, has_arrays
from tilearray.geometry.layout import Layout
from tilearray.geometry.result import geometry_of
from tilearray.geometry.shapes import reduced_shape
from tilearray.geometry.strides import are_apart, broadcast_strides, dense_strides
from tilearray.geometry.walk import Walk, elements_outside, walk_of_view
from tilearray.ops import number_parts
from tilearray.ops.promotion_methods import REAL_PART
from tilearray.promotion.semantics import Semantics
from tilearray.promotion.systems import ARRAY_API

if TYPE_CHECKING:
    from tilearray.engine.reducing import Reducing


MOST_PARTS = 64
"""The most values of parts that a write may split, or that a new array of the function keeps beside another one."""


class Write(NamedTuple):
    """The value that a view of a buffer has now."""

    target: ArrayBase
    value: Value


class Step(NamedTuple):
    """One recorded call."""

    operation: Operation
    semantics: Semantics
    keys: tuple[Key, ...]
    operands: tuple[Any, ...]
    out: ArrayBase | None


# --- arrays without memory -------------------------------------------------------------------------------------------


def _not_elementwise(what: str) -> FusionError:
    return FusionError(
        f"fuse: {what} is not elementwise, and not a reduction that fuses; write two fused functions, and call it "
        f"between them"
    )


class TracedBuffer:
    """Stands for memory. Different buffers have distant addresses, so views overlap as they do in memory.

    Attributes
    ----------
    pointer, nbytes, readonly
        As of every buffer.
    trace : Trace
        The trace to which it belongs.
    place : int
        Its place among the sources of the trace; -1 for an array that the function makes.
    writes : list of Write
        The values that were written to views of it. No two of the views overlap.
    joined : Value or None
        All of them as one array, if it was read since they were written.
    """

    __slots__ = ("joined", "nbytes", "place", "pointer", "readonly", "trace", "writes")

    _addresses = itertools.count(1)

    def __init__(self, trace: Trace, nbytes: int, place: int = -1, readonly: bool = False) -> None:
        self.pointer = next(self._addresses) << 64
        self.nbytes = nbytes
        self.readonly = readonly
        self.trace = trace
        self.place = place
        self.writes: list[Write] = []
        self.joined: Value | None = None


def buffer_of(x: ArrayBase) -> TracedBuffer:
    """Return the buffer of a traced array."""
    return cast(TracedBuffer, x._buffer)


def _needs_values(name: str, instead: str) -> Any:
    """Return a method that raises FusionError."""

    def method(self: Traced, *args: Any, **kwargs: Any) -> NoReturn:
        raise FusionError(
            f"fuse: {name} needs the values of an array, and an array has none while the function is traced; "
            f"write {instead}"
        )

    return method


class Traced(Array, public=False):
    """An array without memory, while a function is traced.

    `_how` says how it is made again for other shapes: ("source", place), ("step", place) or ("view", function, array,
    key). An array without it makes the trace valid for these shapes only, and so does reading a shape.
    """

    __slots__ = ("_how",)
    __hash__ = None  # type: ignore[assignment]

    _how: tuple[Any, ...]

    def __getitem__(self, key: Any, /) -> Any:
        if has_arrays(key) and not isinstance(key, BOOLS):
            raise _not_elementwise("an index that is an array")
        return viewed(views.get, self, key)

    def __setitem__(self, key: Any, value: Any, /) -> None:
        is_mask = isinstance(key, ArrayBase) and key.dtype.kind == "b"
        if has_arrays(key) and not isinstance(key, BOOLS) and not is_mask:
            raise _not_elementwise("an index that is an array")
        super().__setitem__(key, value)

    def __repr__(self) -> str:
        return f"Traced({self._signature.dtype.name}, shape={self._signature.layout.shape})"

    __str__ = __repr__
    __bool__ = _needs_values("`if`, `and`, `or` or bool(x)", "ta.where(condition, x, y), or (x) & (y)")
    __float__ = _needs_values("float(x)", "the expression with x, or float(...) of the result")
    __int__ = _needs_values("int(x)", "x.astype('int64'), or int(...) of the result")
    __complex__ = _needs_values("complex(x)", "x.astype('complex64'), or complex(...) of the result")
    __index__ = _needs_values("an index", "the index as an argument that is a number")
    __format__ = _needs_values("format", "the text outside of the function")
    __array__ = _needs_values("numpy.asarray(x)", "ta.add(x, y) and other functions of ta")
    __dlpack__ = _needs_values("DLPack", "the conversion outside of the function")
    __reduce__ = _needs_values("pickle", "the conversion outside of the function")
    __contains__ = _needs_values("`in`", "x == value")
    item = _needs_values("x.item()", "the expression with x, or .item() of the result")
    tolist = _needs_values("x.tolist()", "the expression with x, or .tolist() of the result")


def _shape_dependent(name: str) -> property:
    """Return a property whose value makes the trace valid for arrays of these shapes only."""
    inherited: Any = getattr(Array, name)

    def get(self: Traced) -> Any:
        buffer_of(self).trace.generic = False
        return inherited.fget(self)

    return property(get, doc=inherited.__doc__)


for _name in ("__array_interface__", "__array_struct__", "__cuda_array_interface__"):
    setattr(Traced, _name, property(_needs_values("numpy.asarray(x)", "ta.add(x, y) and other functions of ta")))
for _name in ("shape", "strides", "size", "nbytes", "offset"):
    setattr(Traced, _name, _shape_dependent(_name))
setattr(Traced, "T", property(lambda x: viewed(views.transposed, x), doc=Array.T.__doc__))  # noqa: B010 - not for checkers


def viewed(function: Callable[..., Any], x: Traced, *key: Any) -> Any:
    """Return a view, which can be made again for other shapes."""
    view = function(x, *key)
    if isinstance(view, Traced) and view._buffer is x._buffer:
        view._how = ("view", function, x, key)
    return view


# --- the device ------------------------------------------------------------------------------------------------------

_WHAT = {
    "sorting": "sorting, searching or a set",
    "index_errors": "an index that is an array",
    "linear_algebra": "a product of matrices",
    "products": "a product of matrices",
    "matrices": "linear algebra",
    "factors": "linear algebra",
    "fourier": "a Fourier transform",
    "transforms": "a Fourier transform",
    "to_numpy": "reading the values of an array",
    "collectives": "an exchange of data between devices",
    "computes_places": "a sum or a count at places",
}
"""The parts of a backend that a fused function cannot use, in words."""


class _TracingBackend:
    """Makes buffers without memory. All else that a device computes is an error: it is not elementwise."""

    call_writer = lists = indexing = None
    holds_rows = False  # softmax is recorded as its parts
    most_members = most_bins = 0

    def __init__(self, real: Device) -> None:
        self._real = real
        self.on_host = real.backend.on_host
        self.approximates = real.backend.approximates

    def own_stream(self, stream: Any) -> Any:
        return stream

    def allocate(self, nbytes: int, stream: Any) -> TracedBuffer:
        del stream
        return TracedBuffer(current_trace(), nbytes)

    def from_numpy(self, array: np.ndarray, /, *, copy: bool, stream: Any = None) -> tuple[TracedBuffer, int]:
        """Return a buffer that stands for memory with the element of a 0-d ndarray."""
        buffer, offset = self._real.backend.from_numpy(array, copy=copy, stream=stream)
        real = ArrayBase._public._make(buffer, offset, signature_of(Layout.of(()), array.dtype, self._real))
        return buffer_of(current_trace().lifted(real, "asarray")), 0

    @property
    def from_device(self) -> NoReturn:
        """Refuse copies from another device, and to it."""
        raise FusionError(
            f"fuse: expected a function of arrays on {self._real}, got a copy between devices in it; "
            f"write x.to_device(...) before or after the function"
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name not in _WHAT:
            raise AttributeError(name)
        raise _not_elementwise(_WHAT[name])


class TracingDevice(Device):
    """The device of traced arrays: it stands for a real one, and its operations are recorded."""

    __slots__ = ("real",)

    def __init__(self, real: Device) -> None:
        super().__init__(real.type, real.index)
        self.name = f"{real.name} (traced)"
        self.wants_alignment = False
        self.depth = 1
        self.real = real
        self.recorder = record
        self.positions = partial(ranges_of, real)
        self.of_constants = real
        self.backend = cast(Any, _TracingBackend(real))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and other in (self.name, self.real.name))

    __hash__ = Device.__hash__

    def __str__(self) -> str:
        return str(self.real)

    def follows(self, other: Device) -> bool:
        """An array from outside of the function is read at each call."""
        return other is self.real


def ranges_of(real: Device, shape: tuple[int, ...]) -> list[ArrayBase]:
    """Return arrays in memory of uint64, whose sum is the position of each element of a shape in C order.

    The trace is then right for this shape only.
    """
    current_trace().generic = False
    ranges = [np.zeros((), np.uint64)]
    for axis, stride in enumerate(dense_strides(shape)):
        if shape[axis] > 1:
            numbers = np.arange(shape[axis], dtype=np.uint64) * np.uint64(stride)
            ranges.append(numbers.reshape(-1, *[1] * (len(shape) - axis - 1)))
    found: list[ArrayBase] = []
    stream = real.backend.own_stream(STATE.get().stream)
    for numbers in ranges[1:] or ranges:
        buffer, offset = real.backend.from_numpy(numbers, copy=False, stream=stream)
        found.append(
            ArrayBase._public._make(buffer, offset, signature_of(Layout.of(numbers.shape), numbers.dtype, real))
        )
    return found


_TRACING: dict[Device, TracingDevice] = {}


def tracing_device(real: Device) -> TracingDevice:
    """Return the device on which functions of arrays on a real device are traced."""
    return _TRACING.get(real) or _TRACING.setdefault(real, TracingDevice(real))


def forget(real: Device) -> None:
    """Drop the device that stands for a device that is no longer used."""
    _TRACING.pop(real, None)


# --- traces ----------------------------------------------------------------------------------------------------------


class Trace:
    """All that a function computes from its arguments.

    Attributes
    ----------
    device : TracingDevice
    sources : list of (Traced, Array or None)
        The arrays in memory: arguments (None: each call brings them), and arrays from outside of the function.
    steps : list of Step
    generic : bool
        Whether the same steps are right for arrays of other shapes.
    needed : set of int
        The positions of arguments that are numbers whose values were needed.
    updated : set of int
        The sources that the function itself writes, and not only as a target of its results.
    elementwise : bool
        Whether reductions are errors now.
    """

    def __init__(self, device: TracingDevice) -> None:
        self.device = device
        self.sources: list[tuple[Traced, ArrayBase | None]] = []
        self.steps: list[Step] = []
        self.generic = True
        self.needed: set[int] = set()
        self.updated: set[int] = set()
        self.elementwise = False
        self._lifted: dict[int, Traced] = {}
        self._numbers: dict[Any, Given] = {}

    def source(self, like: ArrayBase, outside: bool = False) -> Traced:
        """Return a traced array that stands for an array in memory: an argument, or an array from outside."""
        signature = like._signature
        layout = signature.layout
        place = len(self.sources)
        extent = (layout.high - layout.low + 1) * signature.itemsize if layout.size else 0
        buffer = TracedBuffer(self, extent, place, outside or like._buffer.readonly)
        traced_signature = signature_of(layout, signature.dtype, self.device)
        made = Traced._make(buffer, -layout.low * signature.itemsize, traced_signature)
        made._how = ("source", place)
        self.sources.append((made, like if outside else None))
        return made

    def lifted(self, x: ArrayBase, function: str) -> ArrayBase:
        """Return an operand as an array of the trace: an array from outside is read at each call."""
        if x._signature.device is self.device:
            if buffer_of(x).trace is not self:
                raise FusionError(f"fuse: {function} got an array of another trace; return it instead of keeping it")
            return x
        found = self._lifted.get(id(x))
        if found is None:
            common_device(function, [x._signature, _Placed(self.device.real)])
            found = self._lifted[id(x)] = self.source(x, outside=True)
        return found

    def written(self) -> set[int]:
        """Return the sources that are written until now."""
        return {place for place, (source, _) in enumerate(self.sources) if buffer_of(source).writes}

    def number(self, operation: Operation, position: int, number: Any, dtype: np.dtype) -> Constant | Given:
        """Return a number as the operand of an operation. Raise an error if it does not fit."""
        if isinstance(number, TracedNumber):
            operation.number(position, number.number, dtype)
            checked_by = operation.name if isinstance(operation, FixedOperation) else operation
            key = (id(number), checked_by, position, dtype)
            return self._numbers.setdefault(key, Given(number, operation, position, dtype))
        return Constant(operation.number(position, number, dtype), dtype)

    def read(self, x: ArrayBase, function: str) -> Load | Use:
        """Return where the elements of an array are now."""
        buffer, signature = buffer_of(x), x._signature
        layout = signature.layout
        made_here = buffer.place < 0
        touched = [write for write in buffer.writes if _touch(x, write.target) or (made_here and not layout.size)]
        for target, value in touched:
            if _same_view(x, target):
                return all_of(value)
        found = None
        if len(touched) == 1 or (touched and not layout.size):
            target, value = touched[0]
            found = _part_of(value, target._signature.layout, target._offset, x, function)
        if touched:
            return found or self._read_joined(buffer, x, function)
        if made_here:
            raise FusionError(f"fuse: {function} reads an array before it is written; write ta.zeros_like(x)")
        start = self.sources[buffer.place][0]._offset
        return Load(buffer.place, x._offset - start, layout.shape, layout.strides, signature.dtype)

    def write(self, x: ArrayBase, value: Value, function: str) -> None:
        """Make `value` what an array has from now on."""
        buffer = buffer_of(x)
        made_here = buffer.place < 0
        is_whole = x._signature.nbytes == buffer.nbytes if made_here else _same_view(x, self.sources[buffer.place][0])
        kept: list[Write] = []
        for write in () if is_whole else buffer.writes:
            parts = [write] if not _touch(x, write.target) else _outside(write, x, len(self.steps))
            if parts is None or ((made_here or len(parts) > 1) and len(kept) > MOST_PARTS):
                raise FusionError(
                    f"fuse: {function} writes a part of an array of which the function computes another part; write "
                    f"ta.where, or write the parts in two fused functions"
                )
            kept += parts
        buffer.writes, buffer.joined = [*kept, Write(x, value)], None

    def _read_joined(self, buffer: TracedBuffer, x: ArrayBase, function: str) -> Use:
        """Return where the elements of several parts of an array are, or of one that is stored first."""
        writes, needed = buffer.writes, buffer.nbytes
        if buffer.place >= 0:
            source = self.sources[buffer.place][0]
            writes = [*self._unwritten(source, buffer), *writes]
            needed = source._signature.nbytes if _is_part(x, source) else needed  # else it may have elements between
        dtype = writes[0].value.dtype
        if sum(target._signature.nbytes for target, _ in writes) != needed or any(
            value.dtype != dtype for _, value in writes
        ):
            raise FusionError(
                f"fuse: {function} reads an array of which the function writes a part; write to ta.zeros_like(x), or "
                f"all parts in one dtype"
            )
        if buffer.joined is None:
            places = [
                (value, target._offset // dtype.itemsize, target._signature.layout.strides)
                for target, value in writes
                if value.layout.size
            ]
            buffer.joined = joined(places, buffer.nbytes // dtype.itemsize)
        found = _part_of(buffer.joined, buffer.joined.layout, 0, x, function)
        assert found is not None
        return found

    def _unwritten(self, source: Traced, buffer: TracedBuffer) -> list[Write]:
        """Return the parts of an argument that are as they were, as copies of memory."""
        layout, dtype = source._signature.layout, source._signature.dtype
        found = [Write(source, copied(Load(buffer.place, 0, layout.shape, layout.strides, dtype), 0))]
        for target, _ in buffer.writes:
            parts = [_outside(each, target, 1) if _touch(target, each.target) else [each] for each in found]
            found = [part for each in parts for part in each or ()]
        return found


class _Placed(NamedTuple):
    """Something on a device."""

    device: Device


def _same_view(x: ArrayBase, y: ArrayBase) -> bool:
    mine, other = x._signature, y._signature
    return x._offset == y._offset and mine.layout == other.layout and mine.dtype == other.dtype


def _is_part(x: ArrayBase, source: ArrayBase) -> bool:
    """Whether all elements of a view are those of another one."""
    (mine, other), itemsize = (x._signature.layout, source._signature.layout), source._signature.itemsize
    return walk_of_view(other, mine, (x._offset - source._offset) // itemsize) is not None


def _outside(write: Write, x: ArrayBase, order: int) -> list[Write] | None:
    """Return what is left of a write before `order` if a later one, to `x`, takes some of its elements. None if that
    is not some slices."""
    target, value = write
    itemsize, (mine, other) = x._signature.itemsize, (target._signature.layout, x._signature.layout)
    if target._signature.dtype != x._signature.dtype or target._offset % itemsize or x._offset % itemsize:
        return None
    first, begin = target._offset // itemsize, x._offset // itemsize
    if walk_of_view(other, mine, first - begin) is not None:  # it takes them all
        return []
    keys = elements_outside(mine, other, first, begin)
    if keys is None:
        return None
    found: list[Write] = []
    for key in keys:
        part: Any = views.get(target, key)
        starts, axes = tuple([each.start for each in key]), range(len(key))
        steps = tuple([tuple([each.step if axis == place else 0 for place in axes]) for axis, each in enumerate(key)])
        read = Use(value, part._signature.layout.shape, Walk(starts, steps))
        found.append(Write(part, copied(read, order - 0.75)))
    return found


def _touch(x: ArrayBase, y: ArrayBase) -> bool:
    """Whether two views of a buffer may have elements in common."""
    if not overlap(x, y):
        return False
    (mine, other), itemsize = (x._signature.layout, y._signature.layout), x._signature.itemsize
    if y._signature.itemsize != itemsize or x._offset % itemsize or y._offset % itemsize:
        return True
    starts = x._offset // itemsize + mine.low, y._offset // itemsize + other.low
    strides = tuple(map(abs, mine.strides)), tuple(map(abs, other.strides))
    return not are_apart((mine.shape, other.shape), strides, starts)


def _part_of(value: Value, base: Layout, offset: int, x: ArrayBase, function: str) -> Use | None:
    """Return the elements of a value that a view has. The value is written in a layout, from an offset in bytes on.

    The result is None if the view has other elements, or needs another order of them.
    """
    dtype, layout = x._signature.dtype, x._signature.layout
    shift, rest = divmod(x._offset - offset, max(value.dtype.itemsize, 1))
    if dtype == value.dtype:
        return view_of(value, base, layout, shift)
    if dtype == REAL_PART.get(value.dtype):
        halved = Layout(layout.shape, tuple([stride // 2 for stride in layout.strides]))
        return view_of(_complex_part(value, dtype, imaginary=rest > 0), base, halved, shift)
    raise FusionError(
        f"fuse: {function} reads the bytes of a computed array as {dtype.name}; write x.view({dtype.name!r}) outside "
        f"of the function"
    )


def _complex_part(value: Value, dtype: np.dtype, imaginary: bool) -> Value:
    """Return the real or imaginary part of a value. A view is the same in all semantics, so none may refuse it."""
    row = number_parts.imag if imaginary else number_parts.real
    expression = expression_of(row, ARRAY_API, (value.dtype,), None)
    return Value(expression, (all_of(value),), Layout.of(value.shape), dtype, len(current_trace().steps))


_CURRENT: ContextVar[Trace | None] = ContextVar("tilearray.fuse", default=None)


def open_trace() -> Trace | None:
    """Return the trace of the function that runs now, or None."""
    return _CURRENT.get()


def current_trace() -> Trace:
    """Return the trace of the function that runs now."""
    trace = _CURRENT.get()
    if trace is None:
        raise FusionError("fuse: an array of a trace is used after it; return it from the function instead")
    return trace


def traced(trace: Trace, run: Callable[[], Any]) -> Any:
    """Run a function whose operations are recorded in a trace."""
    before = _CURRENT.get()
    try:  # an interrupt may arrive behind each call: so the trace is set within
        _CURRENT.set(trace)
        return run()
    finally:
        _CURRENT.set(before)


# --- recording -------------------------------------------------------------------------------------------------------


def record(
    operation: Operation, semantics: Semantics, keys: Sequence[Key], operands: Sequence[Any], out: ArrayBase | None
) -> ArrayBase:
    """Add a call to the current trace, and return its result: `out`, or a new traced array."""
    trace, name = current_trace(), operation.name
    given = [trace.lifted(operand, name) if isinstance(operand, ArrayBase) else operand for operand in operands]
    keys = [operand._signature if isinstance(operand, ArrayBase) else key for operand, key in zip(given, keys)]
    if out is not None and out._signature.device is not trace.device:
        raise FusionError(
            f"fuse: {name} writes to an array that is not an argument; write it as an argument, or ta.zeros_like(x)"
        )
    value, layout = _value(trace, operation, semantics, keys, given, out)
    arrays = [operand for operand in (*given, out) if isinstance(operand, ArrayBase)]
    trace.generic = trace.generic and all(hasattr(array, "_how") for array in arrays)
    trace.steps.append(Step(operation, semantics, tuple(keys), tuple(given), out))
    made = _new(trace, value, layout) if out is None else out
    trace.write(made, value, name)
    return made


def _value(
    trace: Trace, operation: Operation, semantics: Semantics, keys: list[Key], given: list[Any], out: ArrayBase | None
) -> tuple[Value, Layout]:
    """Return what a call computes, and the layout of its result.

    Operands after the last one that the expression uses give only their shape.
    """
    name = operation.name
    if operation.scanned is not None or operation.selects or (operation.reduced and operation.reduced.multiplies):
        raise _not_elementwise(name)
    if operation.reduced is not None and trace.elementwise:
        raise FusionError(
            f"fuse: {name} is not elementwise, and a function of scalars is; write it in a function of ta.fuse"
        )
    target = None if out is None else out._signature
    types = types_of(tuple(keys), semantics)
    expression = expression_of(operation, semantics, types, None if target is None else target.dtype)
    reducing = None if operation.reduced is None else _reducing(name, operation.reduced, keys)
    if reducing is None and not is_elementwise(expression):
        raise _not_elementwise(name)
    operation.check_device(trace.device)
    if reducing is None:
        layouts = [key.layout for key in keys if isinstance(key, Signature)]
        layout, _ = geometry_of(name, layouts, None if target is None else target.layout)
    else:
        layout = Layout.of(reduced_shape(reducing.shape, reducing.axes.axes, reducing.axes.keepdims))
    reads = [
        trace.read(operand, name) if dtype is None else trace.number(operation, position, operand, dtype)
        for position, (operand, dtype) in enumerate(zip(given, expression.scalar_dtypes, strict=True))
    ]
    used = 1 + max([cast(int, node[1]) for node in expression.nodes if node[0] == "input"], default=-1)
    return Value(expression, tuple(reads[:used]), layout, expression.result, len(trace.steps), reducing), layout


def _reducing(name: str, axes: Reduced, keys: list[Key]) -> Reducing:
    """Return what a reduction combines. Raise ShapeError if what was recorded does not fit an empty array."""
    from tilearray.engine.reducing import Reducing  # here: few programs need it

    arrays = [key for key in keys if isinstance(key, Signature)]
    shape = arrays[0].layout.shape
    if not all(shape[axis] for axis in axes.axes):
        raise ShapeError(f"{name}: expected at least one element to combine, got shape {shape}; write it without fuse")
    strides = [broadcast_strides(array.layout.shape, array.layout.strides, shape) for array in arrays]
    return Reducing(axes, shape, tuple(strides), arrays[0].itemsize)


def _new(trace: Trace, value: Value, layout: Layout) -> Traced:
    """Return the array of the result of the last step."""
    signature = signature_of(layout, value.dtype, trace.device)
    made = Traced._make(TracedBuffer(trace, signature.nbytes), 0, signature)
    made._how = ("step", len(trace.steps) - 1)
    return made
