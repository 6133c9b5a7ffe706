"""Expressions and loops, executed by NumPy.

A kernel is an expression with resolved functions and dtypes. It does not depend on a shape. Binding a kernel to a loop
gives the launch, a closure. Its arguments are a stream, which the host ignores, then ``buffer, byte offset`` for each
array, outputs first, and ``number, 0`` for a scalar.

An expression of one call without casts runs as one NumPy call over whole views. Any other expression runs block by
block, so its temporaries stay in the cache and do not need as much memory as the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import Context, ContextVar
from typing import Any

import numpy as np

from tilearray_host.casts import caster, dtype_named, scalar
from tilearray_host.functions import FUNCTIONS
from tilearray_host.memory import Buffer
from tilearray_host.rounded_casts import rounded_caster

BLOCK = 65536
"""Elements of a block. Three float64 temporaries take about 1.5 MB, the size of a second-level cache."""

Function = Callable[..., None]
Slot = tuple[np.dtype, int, tuple[int, ...] | None]
"""An operand's dtype, its byte shift from the launch's offset, and its byte strides (None for a number)."""

Launch = Callable[..., None]


Step = tuple[Callable[..., Any], np.dtype, tuple[int, ...]]
"""A node as a function, the dtype of its result, and the positions of the nodes that are its arguments."""


class Kernel:
    """An expression with its functions looked up."""

    def __init__(self, expression: Any) -> None:
        kinds = [("array", name) for name in expression.output_dtypes] + list(expression.inputs)
        self.operands = [(kind, dtype_named(name)) for kind, name in kinds]
        self.stores: tuple[int, ...] = expression.outputs
        self.steps = _steps(expression)
        self.direct = _single_call(expression)
        last = len(self.steps) - 1
        self.writes_in_place = self.stores == (last,) and not isinstance(self.steps[last], int)

    def bind(self, loop: Any) -> Launch:
        """Return the launch of this kernel over a loop: a function of the operands' memory."""
        shape: tuple[int, ...] = loop.shape
        slots = _slots(self, loop)
        if self.direct is None:
            return _bind_blocks(self, shape, slots)
        if len(slots) == 3 and slots[1][2] is not None and slots[2][2] is not None:
            return _bind_binary(self.direct, shape, *slots)
        return _bind_direct(self.direct, shape, slots)

    def evaluate(self, outs: list[np.ndarray], inputs: list[np.ndarray], first: int = 0) -> None:
        """Compute every node and store the outputs. If the last node is the only output, it writes in place.

        `first` is the position of the block's first element in a dense output.
        """
        values: list[np.ndarray] = []
        final = len(self.steps) - 1 if self.writes_in_place else -1
        for position, step in enumerate(self.steps):
            if isinstance(step, int):
                values.append(inputs[step])
                continue
            if step is None:
                values.append(np.arange(first, first + outs[0].size).reshape(outs[0].shape))
                continue
            function, dtype, arguments = step
            operands = [values[argument] for argument in arguments]
            shape = outs[0].shape if any(operand.ndim for operand in operands) else ()
            out = outs[0] if position == final else np.empty(shape, dtype)
            function(*operands, out=out)
            values.append(out)
        if not self.writes_in_place:
            for out, store in zip(outs, self.stores, strict=True):
                np.copyto(out, values[store])


def _steps(expression: Any) -> list[int | Step | None]:
    """Return the step of each node. An input becomes its position, and the index of an element becomes None."""
    steps: list[int | Step | None] = []
    dtypes: list[np.dtype] = []
    for node in expression.nodes:
        match node:
            case ("input", position):
                dtypes.append(dtype_named(expression.inputs[position][1]))
                steps.append(position)
            case ("index",):
                dtypes.append(np.dtype(np.int64))
                steps.append(None)
            case ("cast", argument, dtype, *rounding):
                target = dtype_named(dtype)
                steps.append((_cast(dtypes[argument], target, *rounding), target, (argument,)))
                dtypes.append(target)
            case ("call", name, arguments, dtype, _):
                dtypes.append(dtype_named(dtype))
                steps.append((FUNCTIONS[name], dtypes[-1], arguments))
            case _:
                raise NotImplementedError(f"{node[0]}: the host runs no such node; it indexes with NumPy")
    return steps


def _cast(source: np.dtype, target: np.dtype, *rounding: Any) -> Callable[..., Any]:
    convert = rounded_caster(source, target, *rounding) if rounding else caster(source, target)

    def function(x: np.ndarray, *, out: np.ndarray) -> None:
        convert(x, target, out)

    return function


def _single_call(expression: Any) -> Callable[..., Any] | None:
    """Return the function if the expression is a copy or one call on its inputs in their order; else None."""
    *inputs, last = expression.nodes
    if last[0] == "input":
        return FUNCTIONS["identity"]
    in_order = tuple(range(len(inputs)))
    plain = last[0] == "call" and last[2] == in_order and expression.outputs == (len(inputs),)
    return FUNCTIONS[last[1]] if plain and all(node[0] == "input" for node in inputs) else None


def _slots(kernel: Kernel, loop: Any) -> list[Slot]:
    """Return one slot for each operand, outputs first. The loop has no strides for numbers."""
    arrays = iter(zip(loop.strides, loop.shifts))
    slots: list[Slot] = []
    for kind, dtype in kernel.operands:
        if kind == "scalar":
            slots.append((dtype, 0, None))
        else:
            strides, shift = next(arrays)
            size = dtype.itemsize
            slots.append((dtype, shift * size, tuple([stride * size for stride in strides])))
    return slots


def _bind_binary(function: Function, shape: tuple[int, ...], slot_out: Slot, slot_x: Slot, slot_y: Slot) -> Launch:
    """Return the most common launch, unrolled: two strided operands."""
    dtype_out, shift_out, strides_out = slot_out
    dtype_x, shift_x, strides_x = slot_x
    dtype_y, shift_y, strides_y = slot_y
    ndarray = np.ndarray

    def launch(stream: Any, out: Buffer, out_offset: int, x: Buffer, x_offset: int, y: Buffer, y_offset: int) -> None:
        _quietly(
            function,
            ndarray(shape, dtype_x, x.memory, x_offset + shift_x, strides_x),
            ndarray(shape, dtype_y, y.memory, y_offset + shift_y, strides_y),
            out=ndarray(shape, dtype_out, out.memory, out_offset + shift_out, strides_out),
        )

    return launch


def _bind_direct(function: Function, shape: tuple[int, ...], slots: list[Slot]) -> Launch:
    def launch(stream: Any, *operands: Any) -> None:
        out, *inputs = _arrays(shape, slots, operands)
        _quietly(function, *inputs, out=out)

    return launch


def _bind_blocks(kernel: Kernel, shape: tuple[int, ...], slots: list[Slot]) -> Launch:
    outputs = len(kernel.stores)

    def launch(stream: Any, *operands: Any) -> None:
        arrays = _arrays(shape, slots, operands)
        first = 0
        for block in _blocks(shape):
            parts = [array if array.ndim == 0 else array[block] for array in arrays] if block else arrays
            _quietly(kernel.evaluate, parts[:outputs], parts[outputs:], first)
            first += parts[0].size

    return launch


def _arrays(shape: tuple[int, ...], slots: list[Slot], operands: tuple[Any, ...]) -> list[np.ndarray]:
    """Return a NumPy array for each operand: a strided view, or a 0-d array for a number."""
    arrays: list[np.ndarray] = []
    pairs = iter(operands)
    for dtype, shift, strides in slots:
        memory, offset = next(pairs), next(pairs)
        if strides is None:
            arrays.append(scalar(memory, dtype))
        else:
            arrays.append(np.ndarray(shape, dtype, memory.memory, offset + shift, strides))
    return arrays


def _error_state() -> tuple[ContextVar[Any], Any]:
    """Return the context variable that ``np.errstate`` sets, and what stands in it where nothing warns."""
    empty = Context()
    empty.run(np.seterr, all="ignore")
    ((variable, quiet),) = empty.items()
    return variable, quiet


_ERROR_STATE, _QUIET = _error_state()


def _quietly(function: Function, /, *args: Any, **kwargs: Any) -> None:
    """Call a function while NumPy neither warns nor raises on floating-point exceptions.

    ``np.errstate`` takes 1 us, because it makes a new value for its context variable. To set an existing value takes
    0.1 us. The function runs in the caller's own context, because signal handlers and finalizers expect it. Python
    cannot handle a signal between a change and the ``finally`` block: no bytecode boundary for it lies between.
    """
    before = _ERROR_STATE.get()
    try:
        _ERROR_STATE.set(_QUIET)
        function(*args, **kwargs)
    finally:
        _ERROR_STATE.set(before)


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[Any, ...]]:
    """Split a loop into blocks of about BLOCK elements, whole inner dimensions first. ``()`` is the whole loop."""
    inner, axis = 1, len(shape) - 1
    while axis > 0 and inner * shape[axis] <= BLOCK:
        inner *= shape[axis]
        axis -= 1
    if axis <= 0 and (not shape or inner * shape[0] <= BLOCK):
        yield ()
        return
    step = max(1, BLOCK // inner)
    for outer in np.ndindex(shape[:axis]):
        for low in range(0, shape[axis], step):
            yield (*outer, slice(low, low + step))
