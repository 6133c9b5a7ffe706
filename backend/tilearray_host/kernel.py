"""Expressions and loops, executed by NumPy.

A kernel is an expression with resolved functions and dtypes. It does not depend on a shape. Binding a kernel to a loop
gives a call (`tilearray_host.calls`), or a launch: a closure whose arguments are a stream, which the host ignores, then
``buffer, byte offset`` for each array, outputs first, and ``number, 0`` for a scalar.

An expression of one call without casts runs as one NumPy call over whole views, and one cast in blocks of the size that
its method needs. Any other expression is written out as a Python function, one line a node, and runs block by block, so
its temporaries stay in the cache and take less memory than the arrays. What follows from operands that repeat along an
axis is computed for one of its elements: the square roots of a norm once for each row of a block. A large array of
narrow floats is looked up in a table (`tilearray_host.tabled`) if an expression reads no other one. For example,
``bfloat16 + bfloat16`` is::

    t1 = cast1(x0, float32, None)
    t3 = cast3(x1, float32, None)
    call4(t1, t3, out=t1)
    cast5(t1, bfloat16, out0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tilearray_host.calls import Slot, bind_call, bind_launch
from tilearray_host.casts import assigns, block_of, caster, dtype_named, never_warns, to_new_memory
from tilearray_host.functions import (
    FORWARDS,
    FORWARDS_OF_COMPLEX,
    NEVER_WARN,
    SLOW,
    TEMPORARIES,
    TO_NEW_MEMORY,
    forwards,
    function_named,
    identity,
)
from tilearray_host.rounded_casts import rounded_caster
from tilearray_host.tabled import array_to_look_up, looked_up
from tilearray_host.threads import are_several, in_threads

BLOCK = 2**17
"""Elements of a block: a few temporaries are in the caches of a processor, and each block costs some microseconds."""
ALONE = 32768
"""Elements from which an output is a temporary: to find out whether it is alone takes a microsecond."""

Function = Callable[..., Any]
Launch = Callable[..., None]
Repeats = tuple[bool, ...]
"""For each axis whether a value repeats along it; ``()`` if it repeats along none."""
Evaluate = Callable[..., None]
"""``evaluate(first, out, ..., x, ..., alone=False)``: `first` is the position of the block's first element in a dense
output, and `alone` says that the output shares no memory with an input."""
MANY = 4096
"""Elements of a loop from which values that repeat are computed once: their views cost some microseconds."""


class Kernel:
    """An expression with its functions looked up.

    Attributes
    ----------
    operands : list of (str, numpy.dtype)
        "array" or "scalar" and the dtype of each operand, outputs first.
    outputs : int
        The number of outputs.
    run, run_new : callable
        ``run(*inputs, out=out)`` computes an expression of one output over ndarrays of the loop's shape. `run_new` is
        for an `out` that shares no memory with an input.
    warns : bool
        Whether the computation may cause floating-point warnings.
    bears_overlap : bool
        Whether the result is right also if the output shares memory with an input.
    """

    def __init__(self, expression: Any) -> None:
        kinds = [("array", name) for name in expression.output_dtypes] + list(expression.inputs)
        self.operands = [(kind, dtype_named(name)) for kind, name in kinds]
        self.outputs = len(expression.outputs)
        direct = _single_call(expression)
        forwards = FORWARDS_OF_COMPLEX if any(dtype.kind == "c" for _, dtype in self.operands) else FORWARDS
        self.forwards = any(node[0] == "call" and node[1] in forwards for node in expression.nodes)
        self.warns = direct not in NEVER_WARN and not _is_quiet_cast(expression)
        found = None if direct is None else function_named(direct, self.operands[0][1])
        self.bears_overlap = direct == "identity" or isinstance(found, np.ufunc)
        casts = _single_cast(expression)
        self._evaluate: Evaluate | None = None
        wide = [node[1] for node in expression.nodes if node[0] == "call" and dtype_named(node[3]).itemsize >= 8]
        self._work = 1 + sum(name in SLOW for name in wide)
        if direct is not None and found is not None:
            self.run: Function = found
            self.run_new: Function = TO_NEW_MEMORY.get(direct, found)
        elif casts is not None:
            self.run, self.run_new = casts
        else:
            self._evaluate = written_out(expression)
            self.run = self.run_new = _blockwise(self._evaluate, self.outputs, self._work)
        self._expression = expression

    def bind(self, loop: Any) -> Launch:
        """Return the launch of this kernel over a loop: a function of the operands' memory."""
        slots = _slots(self, loop)
        run = self._run_over(slots, self.run, loop)
        return bind_launch(run, self.outputs, slots, loop.shape)

    def _run_over(self, slots: list[Slot], run: Function, loop: Any) -> Function:
        """Return `run` for a loop over arrays of these strides. Several outputs come before the inputs."""
        place, repeats = array_to_look_up(self._expression, loop), repeats_of(self._expression, loop)
        if place is not None and self._evaluate is not None:
            run = _blockwise(looked_up(self._evaluate, place), 1, 1)
        elif repeats:
            run = _blockwise(written_out(self._expression, repeats), self.outputs, self._work)
        if self.forwards and any(min(strides or (0,)) < 0 for _, _, strides in slots[self.outputs :]):
            outputs = 0 if self.outputs == 1 else self.outputs
            return lambda *arrays, **out: run(*arrays[:outputs], *map(forwards, arrays[outputs:]), **out)
        return run

    def bind_call(self, loop: Any, rule: Any, signature: Any, gaps: Sequence[Any]) -> Callable[..., Any]:
        """Return the call of this kernel over a loop; see `tilearray_host.calls.bind_call`."""
        slots = _slots(self, loop)
        run = self._run_over(slots, self.run if signature is None else self.run_new, loop)
        return bind_call(run, self.warns, self.bears_overlap, slots, loop.shape, rule, signature, gaps)


def _single_call(expression: Any) -> str | None:
    """Return the name of the function if the expression is a copy or one call on its inputs in their order."""
    *inputs, last = expression.nodes
    if len(expression.outputs) > 1:
        return None
    if last[0] == "input":
        return "identity"
    in_order = tuple(range(len(inputs)))
    plain = last[0] == "call" and last[2] == in_order and expression.outputs == (len(inputs),)
    if last[0] == "call" and last[1] in TEMPORARIES:
        return None
    return last[1] if plain and all(node[0] == "input" for node in inputs) else None


def _is_quiet_cast(expression: Any) -> bool:
    """Whether an expression is one cast, of a pair that never warns."""
    match expression.nodes:
        case (("input", _), ("cast", _, target)):
            return never_warns(dtype_named(expression.inputs[0][1]), dtype_named(target))
        case _:
            return False


def _single_cast(expression: Any) -> tuple[Function, Function] | None:
    """Return the functions, the second one for new memory, if the expression is one cast."""
    if len(expression.outputs) > 1:
        return None
    match expression.nodes:
        case (("input", _), ("cast", _, name)) if expression.inputs[0][0] == "array":
            target = dtype_named(name)
            convert = caster(dtype_named(expression.inputs[0][1]), target)
            if assigns(convert):
                return identity, identity
            return _casting(convert, target), _casting(to_new_memory(convert), target)
    return None


def _casting(convert: Any, target: np.dtype) -> Function:
    most = block_of(convert)

    def run(x: np.ndarray, *, out: np.ndarray) -> None:
        if out.size <= most:
            convert(x, target, out)
        else:
            in_threads(lambda block: convert(x[block], target, out[block]), _blocks(out.shape, int(most)), out.size)

    return run


# --- expressions as Python functions ------------------------------------------------------------------------------


def written_out(expression: Any, repeats: dict[int, Repeats] | None = None) -> Evaluate:
    """Return the function that evaluates an expression over whole blocks."""
    text, names = _text(expression, repeats or {})
    exec(compile(text, "<tilearray host expression>", "exec"), names)
    return names["evaluate"]


def source_of(expression: Any, loop: Any) -> str:
    """Return how NumPy computes an expression over a loop: one call over whole views, or the function of a block."""
    direct = _single_call(expression)
    if direct is not None:
        inputs = "".join(f"x{position}, " for position in range(len(expression.inputs)))
        return f"{direct}({inputs}out=out0)\n"
    if _single_cast(expression) is not None:
        return f"cast(x0, {expression.output_dtypes[0]}, out=out0)\n"
    text, names = _text(expression, repeats_of(expression, loop))
    for place, node in enumerate(expression.nodes):
        text = text.replace(f"call{place}(", f"{node[1]}(").replace(f"cast{place}(", "cast(")
        text = text.replace(f", d{place}", f", {names[f'd{place}'].name}") if f"d{place}" in names else text
    return text


def repeats_of(expression: Any, loop: Any) -> dict[int, Repeats]:
    """Return along which axes of a loop each input repeats, if results that others read do so too; else nothing."""
    rank = len(loop.shape)
    if len(expression.nodes) - len(expression.inputs) < 2 or not rank or prod(loop.shape) < MANY:
        return {}
    strides = iter(loop.strides[len(expression.outputs) :])
    found: dict[int, Repeats] = {}
    for number, (kind, _) in enumerate(expression.inputs):
        if kind == "array":
            found[number] = _known([not stride for stride in next(strides)])
    return found if any(found.values()) and _written(expression, found).narrowed else {}


def _known(repeats: Sequence[bool]) -> Repeats:
    return tuple(repeats) if any(repeats) else ()


def _written(expression: Any, repeats: dict[int, Repeats]) -> _Writer:
    """Return the lines of the nodes of an expression."""
    writer = _Writer(expression, repeats)
    for position, node in enumerate(expression.nodes):
        writer.add(position, node)
    return writer


def _text(expression: Any, repeats: dict[int, Repeats]) -> tuple[str, dict[str, Any]]:
    """Return the text of the function that evaluates an expression, and the objects that it names.

    A node that reads a temporary for the last time writes its result there if the dtype is the same. If the last node
    is the only output, it writes to the output itself; before, the output is one of the temporaries, if it is `alone`:
    if no input shares its memory.
    """
    writer = _written(expression, repeats)
    if len(expression.outputs) > 1:
        writer.keep_inputs(expression.outputs)
    for number, store in enumerate(expression.outputs):
        if writer.values[store] != f"out{number}":
            writer.lines.append(f"out{number}[...] = {writer.values[store]}")
    names = {"arange": np.arange, "broadcast_to": np.broadcast_to, "empty": np.empty, **writer.names}
    parameters = [f"out{number}" for number in range(len(expression.outputs))]
    parameters += [f"x{position}" for position in range(len(expression.inputs))]
    parameters.append("alone=False")
    body = "\n    ".join(writer.lines)
    text = f"def evaluate(first, {', '.join(parameters)}):\n    shape = out0.shape\n    {body}\n"
    return text, names


class _Writer:
    """The lines of an expression, with the name, the dtype and the rank of the value of each node.

    A value that repeats along some axes is computed for one element of each. Beside others it is read through a view.

    Attributes
    ----------
    narrowed : int
        How many results are computed so.
    """

    def __init__(self, expression: Any, repeats: dict[int, Repeats]) -> None:
        self.inputs: Sequence[tuple[str, str]] = expression.inputs
        self.given, self.narrowed = repeats, 0
        self.repeats: list[Repeats] = []
        self.views: dict[tuple[int, Repeats], str] = {}
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.values: list[str] = []
        self.dtypes: list[np.dtype] = []
        self.is_array: list[bool] = []
        self.last_use = {
            argument: position for position, node in enumerate(expression.nodes) for argument in _arguments(node)
        } | dict.fromkeys(expression.outputs, len(expression.nodes))
        final = len(expression.nodes) - 1
        self.final = final if expression.outputs == (final,) else -1
        self.spare = dtype_named(expression.output_dtypes[0]) if self.final >= 0 else None

    def add(self, position: int, node: tuple[Any, ...]) -> None:
        match node:
            case ("input", number):
                kind, name = self.inputs[number]
                self._value(f"x{number}", dtype_named(name), kind == "array", self.given.get(number, ()))
            case ("index",):
                self.lines.append(f"t{position} = arange(first, first + out0.size).reshape(shape)")
                self._value(f"t{position}", np.dtype(np.int64), True)
            case ("constant", number, name):
                self.names[f"c{position}"] = np.array(number, dtype_named(name))
                self._value(f"c{position}", dtype_named(name), False)
            case ("cast", argument, name, *rounding):
                source, target = self.dtypes[argument], dtype_named(name)
                convert = rounded_caster(source, target, *rounding) if rounding else caster(source, target)
                self.names |= {f"cast{position}": convert, f"d{position}": target}
                repeats = self._repeats(position, [argument])
                call = f"cast{position}({self._read(argument, repeats)}, d{position}"
                if position == self.final:
                    self.lines.append(f"{call}, out0)")
                    self._value("out0", target, True)
                else:
                    self.lines.append(f"t{position} = {call}, None)")
                    self._value(f"t{position}", target, self.is_array[argument], repeats)
            case ("call", function, arguments, name, _):
                self._call(position, function, arguments, dtype_named(name))
            case _:
                raise NotImplementedError(f"{node[0]}: the host runs no such node; it indexes with NumPy")

    def keep_inputs(self, stores: Sequence[int]) -> None:
        """Copy inputs that are stored as they are: an output that is written before them may be their memory."""
        for store in stores:
            if self.values[store].startswith("x") and self.is_array[store]:
                self.lines.append(f"t{store} = {self.values[store]}.copy()")
                self.values[store] = f"t{store}"

    def _call(self, position: int, function: str, arguments: Sequence[int], dtype: np.dtype) -> None:
        is_array = any(self.is_array[argument] for argument in arguments)
        repeats = self._repeats(position, arguments)
        found = function_named(function, dtype)
        broadcasts = isinstance(found, np.ufunc)
        given = "".join([f"{self._read(argument, repeats, broadcasts)}, " for argument in arguments])
        out = "out0" if position == self.final else self._free(position, arguments, dtype, is_array, repeats)
        if out is None:
            out = f"t{position}"
            self.names[f"d{position}"] = dtype
            made = f"empty({_shape(repeats) if is_array else '()'}, d{position})"
            if self.spare is not None and dtype == self.spare and is_array and not repeats:
                made, self.spare = f"out0 if alone else {made}", None
            self.lines.append(f"{out} = {made}")
        self.names[f"call{position}"] = found
        self.lines.append(f"call{position}({given}out={out})")
        self._value(out, dtype, is_array, repeats)

    def _repeats(self, position: int, arguments: Sequence[int]) -> Repeats:
        """Return along which axes the result of a node is computed for one element."""
        of_arrays = [self.repeats[argument] for argument in arguments if self.is_array[argument]]
        if position == self.final or not of_arrays or not all(of_arrays):
            return ()
        found = _known([all(axis) for axis in zip(*of_arrays, strict=True)])
        self.narrowed += any(found)
        return found

    def _read(self, argument: int, repeats: Repeats, broadcasts: bool = False) -> str:
        """Return the name of a value as another node reads it, which is computed for one element along some axes.

        A reader that broadcasts, as ufuncs do, repeats elements itself: it needs no view of the whole shape.
        """
        value = self.values[argument]
        is_input = value.startswith("x")  # a view of the whole shape
        as_it_is = not repeats if is_input else broadcasts or repeats == self.repeats[argument]
        if not self.is_array[argument] or as_it_is:
            return value
        if (argument, repeats) not in self.views:
            name = self.views[argument, repeats] = f"v{len(self.views)}"
            one = ", ".join([":1" if each else ":" for each in repeats])
            self.lines.append(
                f"{name} = " + (f"{value}[{one}]" if is_input else f"broadcast_to({value}, {_shape(repeats)})")
            )
        return self.views[argument, repeats]

    def _free(
        self, position: int, arguments: Sequence[int], dtype: np.dtype, is_array: bool, repeats: Repeats
    ) -> str | None:
        """Return a temporary that is an argument, is not read again, and has the dtype and the shape of the result."""
        for argument in arguments:
            value = self.values[argument]
            fits = self.dtypes[argument] == dtype and self.is_array[argument] == is_array
            fits = fits and self.repeats[argument] == repeats
            if value.startswith("t") and fits and self.last_use[argument] == position:
                return value
        return None

    def _value(self, name: str, dtype: np.dtype, is_array: bool, repeats: Repeats = ()) -> None:
        self.repeats.append(repeats)
        self.values.append(name)
        self.dtypes.append(dtype)
        self.is_array.append(is_array)


def _shape(repeats: Repeats) -> str:
    """Return the shape of a value in the text of a function."""
    return (
        f"({''.join(['1, ' if each else f'shape[{axis}], ' for axis, each in enumerate(repeats)])})"
        if repeats
        else "shape"
    )


def _arguments(node: tuple[Any, ...]) -> Sequence[int]:
    """Return the nodes that a node reads."""
    return (node[1],) if node[0] == "cast" else node[2] if node[0] == "call" else ()


# --- loops ----------------------------------------------------------------------------------------------------------


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


def _blockwise(evaluate: Evaluate, outputs: int, work: int) -> Function:
    """Return a function that evaluates block after block; several outputs come before the inputs.

    Its work is that of an array `work` times as large.
    """

    def run(*inputs: np.ndarray, out: np.ndarray) -> None:
        if out.size < min(ALONE, BLOCK):
            evaluate(0, out, *inputs)
        else:
            _in_blocks(evaluate, [out, *inputs], work)

    return run if outputs == 1 else lambda *arrays: _in_blocks(evaluate, list(arrays), work)


def _in_blocks(evaluate: Evaluate, arrays: list[np.ndarray], work: int) -> None:
    """Evaluate an expression block by block over its outputs and inputs."""
    out = arrays[0]
    alone = out.flags.c_contiguous and not any(np.may_share_memory(out, x) for x in arrays[1:])
    elements = BLOCK // 4 if work > 1 and are_several(work * out.size) else BLOCK

    def evaluated(given: tuple[int, list[np.ndarray]]) -> None:
        first, parts = given
        evaluate(first, *parts, alone=alone)

    if out.size <= elements:
        evaluated((0, arrays))
    else:
        in_threads(evaluated, _parts(arrays, elements), work * out.size)


def _parts(arrays: list[np.ndarray], elements: int) -> Iterator[tuple[int, list[np.ndarray]]]:
    """Yield the arrays of each block, and the position of its first element in a dense output."""
    first = 0
    for block in _blocks(arrays[0].shape, elements):
        parts = [array if array.ndim == 0 else array[block] for array in arrays] if block else arrays
        yield first, parts
        first += parts[0].size


def _blocks(shape: tuple[int, ...], elements: int) -> Iterator[tuple[Any, ...]]:
    """Split a loop into blocks of about some elements, whole inner dimensions first. ``()`` is the whole loop."""
    inner, axis = 1, len(shape) - 1
    while axis > 0 and inner * shape[axis] <= elements:
        inner *= shape[axis]
        axis -= 1
    if axis <= 0 and (not shape or inner * shape[0] <= elements):
        yield ()
        return
    step = max(1, elements // inner)
    for outer in product(*map(range, shape[:axis])):
        for low in range(0, shape[axis], step):
            yield (*[slice(i, i + 1) for i in outer], slice(low, low + step))
