"""Expressions and loops -> kernels and launches on one device: where code generation, compiler and launcher meet.

A kernel is found or compiled once for an expression, the class of a loop and the operands' alignment. Binding it to a
loop computes the grid and the constant arguments; a launch adds addresses and numbers.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilearray_cuda.kernels.compile import cubin_of
from tilearray_cuda.kernels.schedules.choose import schedule_of
from tilearray_cuda.kernels.schedules.schedule import Schedule
from tilearray_cuda.kernels.source import Source, source_of
from tilearray_cuda.kernels.spec import make_spec
from tilearray_cuda.kernels.storage import ITEMSIZE, STORAGE
from tilearray_cuda.runtime import call_source, launch

Launch = Callable[..., None]

_WALKED = ("reduce", "scan", "total", "count", "starts", "slot", "bins", "marks", "digits", "histograms", "rank")
"""The nodes of kernels whose loops have more than extents."""


class Kernel:
    """A kernel, loaded on one device, with everything that is the same for all its loops.

    Attributes
    ----------
    schedule, source, function
        How it runs a loop, its text, and the function that the driver launches.
    arguments : launch.Arguments
        How its arguments are packed: operands first, then extents and strides as constants.
    fixed : callable
        ``fixed(loop) -> bytes``: packs extents, strides and the number of programs, which a loop fixes.
    converters : tuple of callable or None
        For each operand, the function that turns a number into the values that are packed.
    kinds : tuple of str
        The kind of each operand, as `call_source.written_out` takes them.
    itemsizes, unshifted : tuple of int or None
        For each operand, bytes of an element, and 0; None for a number.
    written : dict
        The functions that bind loops of the kernel to calls, by the differences of the loops.
    """

    __slots__ = (
        "arguments",
        "converters",
        "fixed",
        "function",
        "itemsizes",
        "kinds",
        "schedule",
        "source",
        "unshifted",
        "written",
    )

    def __init__(self, schedule: Schedule, source: Source, function: Any) -> None:
        spec = schedule.spec
        self.schedule = schedule
        self.source = source
        self.function = function
        operands = [packed_as(operand.dtype, operand.strides is None) for operand in spec.operands]
        formats = [part for format, _ in operands for part in format] + ["P"] * schedule.has_scratch
        integer = "i4x" if spec.index_bits == 32 else "q"
        constants = spec.rank + len(schedule.open_strides()) + len(schedule.loop_arguments())
        self.arguments = launch.Arguments(function, formats, [integer] * constants)
        self.fixed = fixed_by_loop(schedule, self.arguments)
        self.converters = tuple([convert for _, convert in operands])
        self.kinds = tuple([_kind(operand.dtype, operand.strides is None) for operand in spec.operands])
        self.written: dict[Any, Callable[..., Launch]] = {}
        self.itemsizes = tuple([None if o.strides is None else ITEMSIZE[o.dtype] for o in spec.operands])
        self.unshifted = tuple([None if itemsize is None else 0 for itemsize in self.itemsizes])

    def shifts(self, loop: Any) -> tuple[int | None, ...]:
        """For each operand the bytes from its first element to where the loop begins; None for a number."""
        if not any(loop.shifts):
            return self.unshifted
        shifts = iter(loop.shifts)
        return tuple([None if itemsize is None else itemsize * next(shifts) for itemsize in self.itemsizes])

    def bind(self, loop: Any) -> Launch:
        """Fix the loop: the result is called with a stream and ``buffer, byte offset`` or ``number, 0`` an operand."""
        return self.bind_fused(loop, (), {}, None)

    def bind_fused(self, loop: Any, made: Sequence[Any], constants: Mapping[int, Any], public: Any) -> Launch:
        """As `bind`; the launch makes the outputs that have a signature in `made`, and `constants` are no arguments."""
        outputs, shifts = self.schedule.spec.outputs, self.shifts(loop)
        return call_source.bind_operands(
            self.arguments, self.fixed(loop), shifts, self.converters, outputs, made, constants, public, self.kinds
        )

    def bind_call(self, loop: Any, rule: Any, signature: Any, gaps: tuple[Any, ...]) -> Launch:
        """Fix the loop and the call: the result is called with a stream and the operands.

        Parameters
        ----------
        loop : Loop
        rule : Rule
            The rule of the kernel's expression, the same for all calls; see `tilearray.engine.call`.
        signature : Signature or None
            The signature of the array to make; None if the first operand is written.
        gaps : tuple
            For the output and each operand None, or the distances at which an array shares memory with the target; ()
            without a target.
        """
        shifts = self.shifts(loop)
        shifted = () if shifts is self.unshifted else tuple(map(bool, shifts))
        same = gaps and tuple([gap is not None and gap[2] for gap in gaps])
        return self.written_out(rule, shifted, same)(loop, signature, shifts, gaps)

    def written_out(
        self, rule: Any, shifted: tuple[bool, ...] = (), same: tuple[bool, ...] = ()
    ) -> Callable[..., Launch]:
        """Return the function that makes calls of loops: ``bind_loop(loop, signature)`` if they make arrays unshifted.

        Parameters
        ----------
        rule : Rule
        shifted : tuple of bool
            For each operand whether the loop begins elsewhere than at its first element; () if no loop does.
        same : tuple of bool
            For each operand whether it has the target's elements if both begin at one place; () without a target.
        """
        found = self.written.get((shifted, same))
        if found is not None:
            return found
        kinds, converters = list(self.kinds), list(self.converters)
        for i, take in enumerate(rule.numbers):
            if shifted and shifted[i]:
                kinds[i] = "shifted"
            if same and same[i]:
                kinds[i] += " same"
            convert = converters[i]
            if take is not None and convert is not None:
                converters[i] = _composed(convert, take)
                kinds[i] = kinds[i] if rule.raw else "number"
        bind = call_source.written_out("into" if same else "new", tuple(kinds))
        bind_loop = bind(self.arguments, converters, rule, self.fixed, self.unshifted)
        return self.written.setdefault((shifted, same), bind_loop)


class ScratchKernel(Kernel):
    """A kernel whose launches need memory beside their operands. It is allocated, and zeroed in part, by each launch.

    The memory is one more array that a launch takes, after the operands.
    """

    __slots__ = ()

    def bind(self, loop: Any) -> Launch:
        """Fix the loop, as `Kernel.bind`."""
        return self._with_memory(loop, self._bound(loop))

    def bind_fused(self, loop: Any, made: Sequence[Any], constants: Mapping[int, Any], public: Any) -> Launch:
        """As `Kernel.bind_fused`."""
        return self._with_memory(loop, self._bound(loop, made, constants, public))

    def bind_call(self, loop: Any, rule: Any, signature: Any, gaps: tuple[Any, ...]) -> Launch:
        """Fix the loop and the call, as `Kernel.bind_call`, of functions that make an array of arrays."""
        assert signature is not None
        assert not gaps
        assert not any(rule.numbers)
        bound, (size, zeroed) = self._bound(loop), self.schedule.scratch(loop)
        device, nbytes = self.function.device, signature.nbytes
        allocate = device.allocate

        def call(stream: int, x: Any, *others: Any) -> Any:
            memory, buffer = allocate(size, stream), allocate(nbytes, stream)
            launch.zero(device, memory.pointer, zeroed, stream)
            rest = [part for y in others for part in (y._buffer, y._offset)] if others else ()
            bound(stream, buffer, 0, x._buffer, x._offset, *rest, memory, 0)
            return x.__class__._make(buffer, 0, signature)

        return call

    def _bound(self, loop: Any, *made: Any) -> Launch:
        outputs = self.schedule.spec.outputs
        shifts, converters = (*self.shifts(loop), 0), (*self.converters, None)
        return call_source.bind_operands(self.arguments, self.fixed(loop), shifts, converters, outputs, *made)

    def _with_memory(self, loop: Any, bound: Launch) -> Launch:
        size, zeroed = self.schedule.scratch(loop)
        device = self.function.device

        def run(stream: int, *operands: Any) -> Any:
            memory = device.allocate(size, stream)
            launch.zero(device, memory.pointer, zeroed, stream)
            return bound(stream, *operands, memory, 0)

        return run


def compile_kernel(device: Any, expression: Any, loop_class: Any, aligned: tuple[bool, ...]) -> Kernel:
    """Return the kernel of an expression for a class of loops, loaded on a device."""
    schedule = schedule_of(make_spec(expression, loop_class, aligned), device.arch)
    source = source_of(schedule)
    made = ScratchKernel if schedule.has_scratch else Kernel
    return made(schedule, source, launch.load_function(device, cubin_of(source, device.arch, schedule.spec.contract)))


def bind_steps(device: Any, steps: Sequence[Any], takes: Sequence[Any], raw: bool, memory: Sequence[Any]) -> Launch:
    """Return the call of several launches; see `tilearray.engine.call.steps_call`."""
    kinds = ["array" if take is None else "number" for take in takes]
    launches: list[Launch] = []
    used: list[tuple[tuple[int, bool], ...]] = []
    offsets: list[int] = []
    for step in steps:
        constants: dict[int, Any] = {}
        places: list[tuple[int, bool]] = []
        for position, operand in enumerate(step.operands):
            if not isinstance(operand, tuple):
                constants[position] = operand
                continue
            index, offset = operand
            places.append((index, offset != 0))
            offsets += [offset] if offset else []
            if index >= 0 and raw and step.kernel.kinds[position] == "float":
                kinds[index] = "float"
        launches.append(step.kernel.bind_fused(step.loop, (), constants, None))
        used.append(tuple(places))
    bind = call_source.steps_written_out(tuple(kinds), tuple(used), len(memory))
    return bind(launches, takes, device, memory, offsets)


def fixed_by_loop(schedule: Schedule, arguments: Any) -> Callable[[Any], bytes]:
    """Return the function of a loop that packs extents, strides and the number of programs."""
    strides = tuple([(position, axis) for _, position, axis in schedule.open_strides()])
    walks = schedule.spec.has_node(*_WALKED)
    others = tuple([attribute for _, attribute in schedule.loop_arguments()]) if walks else None
    bind = call_source.fixed_written_out(schedule.spec.rank, strides, schedule.programs(), others)
    return bind(arguments.pack_fixed, arguments.block, arguments.fix)


def _composed(convert: call_source.Converter, take: Callable[[Any], Any]) -> call_source.Converter:
    """Return a function that checks a number, and then turns it into the values that are packed."""
    return lambda number: convert(take(number))


def _kind(dtype: str, is_number: bool) -> str:
    """Return how an operand is packed: as an address, as an int or a float as it is, or as converted values."""
    if not is_number:
        return "array"
    if dtype in ("float32", "float64"):  # struct rounds once, as C does
        return "float"
    return "integer" if STORAGE[dtype].kind in ("int", "uint") else "number"


@functools.cache
def packed_as(dtype: str, is_number: bool) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]] | None]:
    """Return the `struct` formats of an operand in slots of 8 bytes, and the converter of a number."""
    if not is_number:
        return ("P",), None
    storage = STORAGE[dtype]
    letter = storage.argument[1]
    gap = 8 - struct.calcsize(letter)
    slot = f"{letter}{gap}x" if gap else letter
    if storage.kind == "complex":
        return (slot, slot), _parts(dtype)
    return (slot,), _rounded(dtype)


def _rounded(dtype: str) -> Callable[[Any], tuple[Any, ...]]:
    """Return the converter of a number: to itself, or to the value or the bits of the narrow float nearest to it."""
    storage = STORAGE[dtype]
    if storage.kind in ("bool", "int", "uint") or dtype in ("float32", "float64"):  # `struct` rounds as C does
        return lambda number: (number,)
    from tilearray_host.casts import dtype_named, scalar

    rounded_to = dtype_named(dtype)
    if storage.kind == "bits":
        return lambda number: (scalar(number, rounded_to).view("u1").item(),)
    return lambda number: (float(scalar(number, rounded_to)),)


def _parts(dtype: str) -> Callable[[Any], tuple[Any, ...]]:
    """Return the converter of a number to the parts of the complex number nearest to it."""
    from tilearray_host.casts import dtype_named, scalar

    rounded_to = dtype_named(dtype)

    def parts(number: Any) -> tuple[float, float]:
        rounded = complex(scalar(number, rounded_to))
        return rounded.real, rounded.imag

    return parts
