"""Expressions and loops, executed by NumPy.

A kernel is an expression with resolved functions and dtypes. It does not depend on a shape. Binding a kernel to a loop
gives a call (`tilearray_host.calls`), or a launch: a closure whose arguments are a stream, which the host ignores, then
``buffer, byte offset`` for each array, outputs first, and ``number, 0`` for a scalar.

An expression of one call without casts runs as one NumPy call over whole views, and one cast in blocks of the size that
its method needs. Any other expression is written out as a Python function, one line a node, and runs block by block, so
its temporaries stay in the cache and take less memory than the arrays. What follows from operands that repeat along an
axis is computed for one of its elements: the square roots of a norm once for each row of a block. A large array of
narrow floats is looked up in a table (`tilearray_host.tabled`) if an expression reads no other one. For example,
``bfloat16 + bfloat16`` is, with two temporaries of float32::

    cast1(x0, float32, t0)
    cast3(x1, float32, t1)
    call4(t0, t1, out=t0)
    cast5(t0, bfloat16, out0)

Where all outputs are new memory, they hold values on the way to the results, and no result is copied to its output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from tilearray_host.calls import Slot, bind_call, bind_launch, is_dense, statement_of
from tilearray_host.casts import assigns, block_of, caster, dtype_named, never_warns, to_new_memory
from tilearray_host.functions import (
    FORWARDS,
    FORWARDS_OF_COMPLEX,
    NEVER_WARN,
    OF_BITS,
    SLOW,
    TEMPORARIES,
    TO_NEW_MEMORY,
    forwards,
    function_named,
    identity,
)
from tilearray_host.rounded_casts import rounded_caster
from tilearray_host.scratch import give_back, layout_of, take
from tilearray_host.tabled import array_to_look_up, looked_up
from tilearray_host.threads import are_several, in_threads

BLOCK = 2**16
"""Elements of a block: a few temporaries are in the caches of a processor, and each block costs some microseconds."""
CACHE, BLOCKS_IN_CACHE = 2**23, 8
"""The bytes of operands and temporaries up to which a loop is one block, and the most blocks that it has instead. They
stay in the last cache, where smaller blocks gain less than they cost."""
MANY = 4096
"""Elements of a loop from which values that repeat are computed once: their views cost some microseconds."""
SMALL = 2**14
"""Elements of a loop up to which each call makes its own temporaries: they stay in the process."""
SIGNED_NARROW_FLOATS = frozenset({"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"})
"""The narrow floats whose first bit is the sign, that of zero and NaN too."""
Function = Callable[..., Any]
Launch = Callable[..., None]
Repeats = tuple[bool, ...]
"""For each axis whether a value repeats along it; ``()`` if it repeats along none."""
Evaluate = Callable[..., None]
"""``evaluate(out, ..., x, ..., temporaries=None, first=0)``: it makes the temporaries if none are given, and `first` is
the position of the block's first element in a dense output."""
Block = tuple[int, "slice | tuple[slice, ...]", int]
"""The position of a block's first element, its key, and which shape it has: 0, or 1 for a shorter one."""


class Kernel:
    """An expression with its functions looked up.

    Attributes
    ----------
    operands : list of (str, numpy.dtype)
        "array" or "scalar" and the dtype of each operand, outputs first.
    outputs : int
        The number of outputs.
    run, run_new : callable or None
        ``run(*inputs, out=out)`` computes an expression of one function over ndarrays of the loop's shape. `run_new` is
        for an `out` that shares no memory with an input. None for other expressions.
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
        pair = _single_cast(expression)
        self.warns = direct not in NEVER_WARN and not (pair and never_warns(*pair))
        self.run: Function | None = None
        self.run_new: Function | None = None
        if direct is not None:
            self.run = function_named(direct, self.operands[0][1])
            self.run_new = TO_NEW_MEMORY.get(direct, self.run)
        elif pair is not None:
            self.run, self.run_new = _cast_functions(*pair)
        elif of_bits := _of_bits(expression):
            self.run = self.run_new = of_bits
        self.bears_overlap = direct == "identity" or isinstance(self.run, np.ufunc)
        wide = [node[1] for node in expression.nodes if node[0] == "call" and dtype_named(node[3]).itemsize >= 8]
        self._work = 1 + sum(name in SLOW for name in wide)
        self._written: dict[tuple[bool, tuple[tuple[int, Repeats], ...]], Written] = {}
        self._expression = expression

    def bind(self, loop: Any) -> Launch:
        """Return the launch of this kernel over a loop: a function of the operands' memory."""
        return self.bind_fused(loop, [None] * self.outputs, {}, None)

    def bind_fused(self, loop: Any, made: Sequence[Any], constants: Mapping[int, Any], public: Any) -> Launch:
        """As `bind`; the launch makes the outputs that have a signature in `made`, and `constants` are no arguments."""
        slots = _slots(self, loop)
        run, statement = self._run_over(slots, loop, apart=None not in made)
        return bind_launch(run, statement, slots, loop.shape, made, constants, public)

    def bind_call(self, loop: Any, rule: Any, signature: Any, gaps: Sequence[Any]) -> Callable[..., Any]:
        """Return the call of this kernel over a loop; see `tilearray_host.calls.bind_call`."""
        slots = _slots(self, loop)
        run, statement = self._run_over(slots, loop, apart=signature is not None)
        return bind_call(run, statement, self.warns, self.bears_overlap, slots, loop.shape, rule, signature, gaps)

    def _run_over(self, slots: list[Slot], loop: Any, *, apart: bool) -> tuple[Function, str]:
        """Return the function for a loop over arrays of these strides, and how it is called.

        `apart` says that all outputs are new memory.
        """
        run = self.run_new if apart else self.run
        if run is not None:
            statement = statement_of(run)
        else:
            dense = apart and all(is_dense(slot, loop.shape) for slot in slots[: self.outputs])
            run, statement = self._evaluating(loop, dense), "outputs first"
        if self.forwards and any(min(strides or (0,)) < 0 for _, _, strides in slots[self.outputs :]):
            return _reading_forwards(run, statement, self.outputs)
        return run, statement

    def _evaluating(self, loop: Any, apart: bool) -> Function:
        """Return the function of outputs and inputs that evaluates the expression over a loop."""
        place = array_to_look_up(self._expression, loop)
        if place is None:
            written, work = self._written_out(repeats_of(self._expression, loop), apart), self._work
        else:
            evaluate = self._written_out({}, apart).evaluate
            written, work = Written(looked_up(evaluate, place), ()), 1
        elements = prod(loop.shape)
        if elements <= min(SMALL, BLOCK):
            return written.evaluate
        dtypes = [dtype for kind, dtype in self.operands if kind == "array"]
        dtypes += [dtype for dtype, _ in written.temporaries]
        fits = elements <= BLOCKS_IN_CACHE * BLOCK and elements * sum(each.itemsize for each in dtypes) <= CACHE
        if (fits or elements <= BLOCK or written.is_one_pass) and not are_several(work * elements):
            return _in_one(written, loop.shape)
        return _in_blocks(written, loop.shape, tuple([kind == "array" for kind, _ in self.operands]), work)

    def _written_out(self, repeats: dict[int, Repeats], apart: bool) -> Written:
        """Return the function of the expression, which is written once for each of these arguments."""
        key = apart, tuple(repeats.items())
        found = self._written.get(key)
        if found is None:
            found = self._written[key] = written_out(self._expression, repeats, apart)
        return found


def _reading_forwards(run: Function, statement: str, outputs: int) -> tuple[Function, str]:
    """Return a function of inputs without negative strides as one of any inputs, and how it is called."""
    if statement == "outputs first":
        return lambda *given: run(*given[:outputs], *map(forwards, given[outputs:])), statement
    return lambda *given, out: run(*map(forwards, given), out=out), "named"


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


def _of_bits(expression: Any) -> Function | None:
    """Return the function of the bits of a narrow float, without casts to float32 and back, if there is one."""
    match expression.nodes:
        case (("input", 0), ("cast", 0, "float32"), ("call", name, (1,), *_), ("cast", 2, target)):
            is_same = target in SIGNED_NARROW_FLOATS and expression.inputs == (("array", target),)
            return OF_BITS.get(name) if is_same and expression.outputs == (3,) else None
        case _:
            return None


def _single_cast(expression: Any) -> tuple[np.dtype, np.dtype] | None:
    """Return the dtypes from and to which an expression casts, if it is one cast of an array."""
    match expression.nodes:
        case (("input", _), ("cast", _, name)) if len(expression.outputs) == 1:
            kind, source = expression.inputs[0]
            return (dtype_named(source), dtype_named(name)) if kind == "array" else None
        case _:
            return None


def _cast_functions(source: np.dtype, target: np.dtype) -> tuple[Function, Function]:
    """Return the functions of a cast, the second one for new memory."""
    convert = caster(source, target)
    if assigns(convert):
        return identity, identity
    return _casting(convert, target), _casting(to_new_memory(convert), target)


def _casting(convert: Any, target: np.dtype) -> Function:
    """Return the function that casts in blocks of the size that its method needs."""
    most = block_of(convert)

    def run(x: np.ndarray, *, out: np.ndarray) -> None:
        if out.size <= most:
            convert(x, target, out)
        else:
            blocks = [key for _, key, _ in _blocks(out.shape, int(most))]
            in_threads(lambda block: convert(x[block], target, out[block]), blocks, out.size)

    return run


# --- expressions as Python functions ------------------------------------------------------------------------------


class Written(NamedTuple):
    """The function of an expression.

    Attributes
    ----------
    evaluate : Evaluate
    temporaries : sequence of (numpy.dtype, Repeats)
        Those that it uses.
    is_one_pass : bool
        Whether only the last node is computed for all elements, by a ufunc: it gains nothing from blocks.
    """

    evaluate: Evaluate
    temporaries: Sequence[tuple[np.dtype, Repeats]]
    is_one_pass: bool = False


def written_out(expression: Any, repeats: dict[int, Repeats], apart: bool) -> Written:
    """Return the function that evaluates an expression over whole blocks. `apart`: its outputs are no inputs."""
    text, names, writer = _text(expression, repeats, apart)
    exec(compile(text, "<tilearray host expression>", "exec"), names)
    return Written(names["evaluate"], writer.temporaries, writer.is_one_pass)


def source_of(expression: Any, loop: Any) -> str:
    """Return how NumPy computes an expression over a loop: one call over whole views, or the function of a block."""
    direct = _single_call(expression)
    if direct is not None:
        inputs = "".join(f"x{position}, " for position in range(len(expression.inputs)))
        return f"{direct}({inputs}out=out0)\n"
    if _single_cast(expression) is not None:
        return f"cast(x0, {expression.output_dtypes[0]}, out=out0)\n"
    text, names, _ = _text(expression, repeats_of(expression, loop), True)

    def shown(name: re.Match[str]) -> str:
        kind, place = name.groups()
        if kind == "call":
            return expression.nodes[int(place)][1]
        return "cast" if kind == "cast" else names[name[0]].name

    return re.sub(r"\b(call|cast|d|e)(\d+)\b", shown, text)


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
    return found if any(found.values()) and _nodes_written(expression, found).narrowed else {}


def _known(repeats: Sequence[bool]) -> Repeats:
    return tuple(repeats) if any(repeats) else ()


def _nodes_written(expression: Any, repeats: dict[int, Repeats], apart: bool = False) -> _Writer:
    """Return the lines of the nodes of an expression."""
    writer = _Writer(expression, repeats, apart)
    for position, node in enumerate(expression.nodes):
        writer.add(position, node)
    return writer


def _text(expression: Any, repeats: dict[int, Repeats], apart: bool) -> tuple[str, dict[str, Any], _Writer]:
    """Return the text of the function that evaluates an expression, the objects that it names, and its writer."""
    writer = _nodes_written(expression, repeats, apart)
    if not apart and len(expression.outputs) > 1:
        writer.keep_inputs(expression.outputs)
    for number, store in enumerate(expression.outputs):
        if writer.values[store] != f"out{number}":
            writer.lines.append(f"out{number}[...] = {writer.values[store]}")
    names = {"arange": np.arange, "broadcast_to": np.broadcast_to, "empty": np.empty, **writer.names}
    lines, temporaries = writer.lines, writer.temporaries
    if temporaries:
        made = [f"empty({_shape(repeats)}, e{place})" for place, (_, repeats) in enumerate(temporaries)]
        names |= {f"e{place}": dtype for place, (dtype, _) in enumerate(temporaries)}
        listed = "".join([f"t{place}, " for place, _ in enumerate(temporaries)])
        lines = [f"{listed}= temporaries or ({', '.join(made)},)", *lines]
    if any("shape" in line for line in lines):
        lines = ["shape = out0.shape", *lines]
    parameters = [f"out{number}" for number in range(len(expression.outputs))]
    parameters += [f"x{position}" for position in range(len(expression.inputs))]
    body = "\n    ".join(lines)
    return f"def evaluate({', '.join(parameters)}, temporaries=None, first=0):\n    {body}\n", names, writer


class _Writer:
    """The lines of an expression, with the name, the dtype and the rank of the value of each node.

    A value that repeats along some axes is computed for one element of each. Beside others it is read through a view.

    A stored value is written to its output. Any other value is written to the memory of a temporary, or of an output
    that is written later, which nobody reads again. Outputs may be inputs if they are not `apart`: then only the last
    node writes to one.

    Attributes
    ----------
    narrowed : int
        How many results are computed so.
    is_one_pass : bool
        Whether all are but the last one, which is that of a ufunc.
    temporaries : list of (numpy.dtype, Repeats)
        The temporaries, which are ``t0, t1, ...`` in the text.
    """

    def __init__(self, expression: Any, repeats: dict[int, Repeats], apart: bool) -> None:
        self.inputs: Sequence[tuple[str, str]] = expression.inputs
        self.given, self.narrowed, self.is_one_pass = repeats, 0, True
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
        self.temporaries: list[tuple[np.dtype, Repeats]] = []
        self._holds: dict[str, int] = {}
        """The last node whose value a temporary or an output holds."""
        dtypes = [dtype_named(name) for name in expression.output_dtypes]
        self._stores: dict[int, tuple[str, np.dtype]] = {}
        """The outputs that nodes write to themselves."""
        for number, store in enumerate(expression.outputs if apart or self.final >= 0 else ()):
            self._stores.setdefault(store, (f"out{number}", dtypes[number]))
        self._spare = {name: (store, dtype) for store, (name, dtype) in self._stores.items()} if apart else {}
        """The outputs that may hold other values before: the node that writes to each, and its dtype."""
        self._calls = {position for position, node in enumerate(expression.nodes) if node[0] == "call"}

    def add(self, position: int, node: tuple[Any, ...]) -> None:
        match node:
            case ("input", number):
                kind, name = self.inputs[number]
                self._value(f"x{number}", dtype_named(name), kind == "array", self.given.get(number, ()))
            case ("index",):
                self.lines.append(f"i{position} = arange(first, first + out0.size).reshape(shape)")
                self.is_one_pass = False
                self._value(f"i{position}", np.dtype(np.int64), True)
            case ("constant", number, name):
                self.names[f"c{position}"] = np.array(number, dtype_named(name))
                self._value(f"c{position}", dtype_named(name), False)
            case ("cast", argument, name, *rounding):
                self._cast(position, argument, dtype_named(name), rounding)
            case ("call", function, arguments, name, _):
                self._call(position, function, arguments, dtype_named(name))
            case _:
                raise NotImplementedError(f"{node[0]}: the host runs no such node; it indexes with NumPy")

    def keep_inputs(self, stores: Sequence[int]) -> None:
        """Copy inputs that are stored as they are: an output that is written before them may be their memory."""
        for store in stores:
            if self.values[store].startswith("x") and self.is_array[store]:
                self.lines.append(f"kept{store} = {self.values[store]}.copy()")
                self.values[store] = f"kept{store}"

    def _cast(self, position: int, argument: int, target: np.dtype, rounding: list[Any]) -> None:
        source, is_array = self.dtypes[argument], self.is_array[argument]
        convert = rounded_caster(source, target, *rounding) if rounding else caster(source, target)
        repeats = self._repeats(position, [argument])
        call = f"cast{position}({self._read(argument, repeats)}, d{position}"
        if is_array:
            out = self._memory(position, (), target, repeats)
            if self._is_apart(out) and not rounding:
                convert = to_new_memory(convert)
            self.lines.append(f"{call}, {out})")
        else:
            out = f"n{position}"
            self.lines.append(f"{out} = {call}, None)")
        self.names |= {f"cast{position}": convert, f"d{position}": target}
        self.is_one_pass = self.is_one_pass and (bool(repeats) or not is_array)
        self._value(out, target, is_array, repeats)

    def _call(self, position: int, function: str, arguments: Sequence[int], dtype: np.dtype) -> None:
        is_array = any(self.is_array[argument] for argument in arguments)
        repeats = self._repeats(position, arguments)
        found = function_named(function, dtype)
        broadcasts = isinstance(found, np.ufunc)
        given = "".join([f"{self._read(argument, repeats, broadcasts)}, " for argument in arguments])
        if is_array:
            out = self._memory(position, arguments, dtype, repeats)
        else:
            out = f"n{position}"
            self.names[f"d{position}"] = dtype
            self.lines.append(f"{out} = empty((), d{position})")
        if self._is_apart(out) and all(self.values[argument] != out for argument in arguments):
            found = TO_NEW_MEMORY.get(function, found)
        self.names[f"call{position}"] = found
        self.lines.append(f"call{position}({given}out={out})")
        is_last = broadcasts and position == self.final
        self.is_one_pass = self.is_one_pass and (is_last or bool(repeats) or not is_array)
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

    def _memory(self, position: int, arguments: Sequence[int], dtype: np.dtype, repeats: Repeats) -> str:
        """Return the output or the temporary to which a node writes: perhaps that of an argument, element by element.

        An output that is the result of a later node may hold values that nobody reads after this node.
        """
        name, stored = self._stores.get(position, ("", dtype))
        if name and stored == dtype and not repeats:
            self._holds[name] = position
            return name
        names = [self.values[argument] for argument in arguments if self.last_use[argument] == position]
        names += [f"t{place}" for place in range(len(self.temporaries))]
        for name in [*names, *self._spare]:
            if self._fits(name, position, arguments, dtype, repeats):
                break
        else:
            name = f"t{len(self.temporaries)}"
            self.temporaries.append((dtype, repeats))
        self._holds[name] = position
        return name

    def _is_apart(self, name: str) -> bool:
        """Whether the memory of a result is not that of an input."""
        return name.startswith("t") or bool(self._spare)

    def _fits(self, name: str, position: int, arguments: Sequence[int], dtype: np.dtype, repeats: Repeats) -> bool:
        """Whether a node may write to some memory: that of an argument, or that of a value which nobody reads now."""
        held = self._holds.get(name, -1)
        last_read = self.last_use.get(held, held)
        if last_read >= position and not (last_read == position and held in arguments):
            return False
        if name.startswith("t"):
            return self.temporaries[int(name[1:])] == (dtype, repeats)
        if name not in self._spare:
            return False
        store, stored = self._spare[name]
        last = self.last_use.get(position, position)
        in_time = last < store or (last == store and store in self._calls)  # a cast does not run in place
        return in_time and stored == dtype and not repeats

    def _value(self, name: str, dtype: np.dtype, is_array: bool, repeats: Repeats = ()) -> None:
        self.repeats.append(repeats)
        self.values.append(name)
        self.dtypes.append(dtype)
        self.is_array.append(is_array)


def _shape(repeats: Repeats) -> str:
    """Return the shape of a value in the text of a function."""
    if not repeats:
        return "shape"
    extents = ["1, " if repeat else f"shape[{axis}], " for axis, repeat in enumerate(repeats)]
    return f"({''.join(extents)})"


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


def _in_one(written: Written, shape: tuple[int, ...]) -> Function:
    """Return a function of outputs and inputs that evaluates a whole loop at once."""
    evaluate, temporaries = written.evaluate, written.temporaries
    if not temporaries:
        return evaluate
    nbytes, views = layout_of(temporaries, shape)

    def run(*arrays: np.ndarray) -> None:
        piece = take(nbytes)
        evaluate(*arrays, temporaries=[ndarray(own, dtype, piece, offset) for own, dtype, offset in views])
        give_back(piece)

    return run


def _in_blocks(written: Written, shape: tuple[int, ...], are_arrays: tuple[bool, ...], work: int) -> Function:
    """Return a function of outputs and inputs that evaluates block after block of a loop.

    Its work is that of a loop `work` times as large. Each thread has one piece of memory for temporaries.
    """
    evaluate, work = _bind_of_blocks(are_arrays)(written.evaluate), work * prod(shape)
    several = are_several(work)
    most = BLOCK // 2 if several and work > prod(shape) else BLOCK
    layouts = [layout_of(written.temporaries, each) for each in _block_shapes(shape, most)]
    nbytes = max(nbytes for nbytes, _ in layouts)

    def scratch(piece: ndarray) -> list[list[ndarray]]:
        return [[ndarray(own, dtype, piece, at) for own, dtype, at in views] for _, views in layouts]

    def run(*arrays: np.ndarray) -> None:
        piece = take(nbytes)
        evaluate(_blocks(shape, most), scratch(piece), *arrays)
        give_back(piece)

    def run_in_threads(*arrays: np.ndarray) -> None:
        spare: list[tuple[ndarray, list[list[ndarray]]]] = []

        def evaluated(block: Block) -> None:
            try:
                piece, temporaries = spare.pop()
            except IndexError:
                piece = take(nbytes)
                temporaries = scratch(piece)
            evaluate((block,), temporaries, *arrays)
            spare.append((piece, temporaries))

        in_threads(evaluated, _blocks(shape, most), work)
        for piece, _ in spare:
            give_back(piece)

    return run_in_threads if several else run


@cache
def _bind_of_blocks(are_arrays: tuple[bool, ...]) -> Callable[[Evaluate], Function]:
    """Return what makes ``run(blocks, temporaries, out, ..., x, ...)`` of an `evaluate`; numbers have no blocks."""
    names = [f"x{place}" for place, _ in enumerate(are_arrays)]
    parts = ", ".join([f"{name}[key]" if is_array else name for name, is_array in zip(names, are_arrays, strict=True)])
    text = f"""\
def bind(evaluate):
    def run(blocks, temporaries, {", ".join(names)}):
        for first, key, which in blocks:
            evaluate({parts}, temporaries=temporaries[which], first=first)
    return run
"""
    found: dict[str, Any] = {}
    exec(compile(text, "<tilearray host blocks>", "exec"), found)
    return found["bind"]


def _geometry(shape: tuple[int, ...], elements: int) -> tuple[int, int]:
    """Return the axis along which a loop is cut into blocks of about some elements, and its extent in a block.

    A block has one index of the slower axes, and all of the faster ones.
    """
    inner, axis = 1, len(shape) - 1
    while axis > 0 and inner * shape[axis] <= elements:
        inner *= shape[axis]
        axis -= 1
    return axis, max(1, elements // inner)


def _block_shapes(shape: tuple[int, ...], elements: int) -> list[tuple[int, ...]]:
    """Return the shapes of the blocks of a loop: that of most, and that of the last ones if they are shorter."""
    axis, step = _geometry(shape, elements)
    extents = [min(step, shape[axis])] + ([shape[axis] % step] if shape[axis] % step else [])
    return [(*[1] * axis, extent, *shape[axis + 1 :]) for extent in extents]


def _blocks(shape: tuple[int, ...], elements: int) -> Iterator[Block]:
    """Split a loop into blocks of about some elements, whole inner dimensions first.

    Examples
    --------
    >>> list(_blocks((5, 3), 6))
    [(0, slice(0, 2, None), 0), (6, slice(2, 4, None), 0), (12, slice(4, 6, None), 1)]
    """
    axis, step = _geometry(shape, elements)
    inner, extent, first = prod(shape[axis + 1 :]), shape[axis], 0
    for outer in product(*map(range, shape[:axis])):
        before = tuple([slice(i, i + 1) for i in outer])
        for low in range(0, extent, step):
            along = slice(low, low + step)
            yield first, (*before, along) if before else along, 0 if low + step <= extent or low == 0 else 1
            first += inner * min(step, extent - low)
