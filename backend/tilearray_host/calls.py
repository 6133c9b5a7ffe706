"""Calls written out: all work of an operation with a known plan, as one Python function.

A small NumPy call takes 0.3 us. A function that takes any operands would spend several times that on loops over them.
So the text of a call is written for its operands, as `collections.namedtuple` does for its fields, and compiled once
for every combination of their kinds. There are two forms:

========  ==============================  ===============================================================
form      called with                     does
========  ==============================  ===============================================================
new       ``stream, x, number, ...``      makes the result, computes, and returns the new array
into      ``stream, out, x, number,       computes, and returns `out`; calls `rule.whole` if `out` may not be
          ...``                           written, or shares memory with an operand and `run` cannot bear it
========  ==============================  ===============================================================

An array has the attributes ``_buffer``, ``_offset`` (in bytes) and ``_signature``; a new one gets the class of the
first operand that is an array. In the text ``x0`` is the output, ``x1`` the first operand, ``b1`` its buffer, and
``v1`` its view as an ndarray over the collapsed loop: the buffer's own ndarray, if that has the same elements (see
`tilearray_host.memory.Buffer`). The stream is ignored, because the host has none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tilearray_host.casts import scalar
from tilearray_host.float_errors import QUIET, get_state, set_state
from tilearray_host.functions import identity
from tilearray_host.memory import BYTE, Buffer

Slot = tuple[np.dtype, int, tuple[int, ...] | None]
"""An operand's dtype, its byte shift from the call's offset, and its byte strides (None for a number)."""

_TEXT = """\
def bind(run, rule, numbers, slots, shapes, signature):
    {unpacked}

    def call({parameters}):
        {before}
        {computed}
        {after}

    return call
"""

_QUIET = """\
before = get_state()
        try:
            set_state(QUIET)
            {run}
        finally:
            set_state(before)"""

_RESULT = """\
buffer = new(Buffer)
buffer.memory = m{i}
buffer.readonly = False
buffer.flat_of = f{i}
r{i} = new({cls})
r{i}._buffer = buffer
r{i}._offset = 0
r{i}._signature = g{i}"""

_MEMORY = {
    "own": ["v{i} = m{i} = empty(h{i}, d{i})"],
    "strided": ["m{i} = empty(g{i}.nbytes, BYTE)", "v{i} = ndarray(h{i}, d{i}, m{i}, s{i}, t{i})"],
}
"""How the memory of a result is made: the result itself, or bytes of which the result is a view."""


def bind_call(
    run: Callable[..., Any],
    statement: str,
    warns: bool,
    bears_overlap: bool,
    slots: Sequence[Slot],
    shape: tuple[int, ...],
    rule: Any,
    signature: Any,
    gaps: Sequence[Any],
) -> Callable[..., Any]:
    """Return the call of a function over a loop.

    Parameters
    ----------
    run : callable
        It computes over ndarrays of the loop's shape; a number is a 0-d array.
    statement : str
        How it is called: a key of `_STATEMENTS`.
    warns : bool
        Whether the function may cause floating-point warnings.
    bears_overlap : bool
        Whether the function gives the right result if `out` shares memory with an input, as NumPy's ufuncs do.
    slots : sequence of Slot
        The operands, the output first.
    shape : tuple of int
        The extents of the loop.
    rule : Rule
        The rule of the expression; see `tilearray.engine.call`.
    signature : Signature or None
        The signature of the array to make; None if the first operand is written.
    gaps : sequence
        For the output and each operand None, or the distances at which an array shares memory with the target; the
        third says whether it is the same view if the distance is 0.
    """
    if signature is None:
        made = "into"
        same = () if bears_overlap else tuple([gap is not None and gap[2] for gap in gaps[1:]])
    else:
        made, same = _memory(slots[0], shape), ()
    operands = tuple(range(1, len(slots)))
    kinds = tuple([_kind(slot, shape) for slot in slots])
    write = written_out(made, kinds, operands, same, warns, statement)
    return write(run, rule, _numbers(slots, operands, rule), slots, [shape] * len(slots), signature)


def bind_reduction(
    run: Callable[..., Any],
    slots: Sequence[Slot],
    shapes: Sequence[tuple[int, ...]],
    reads: tuple[int, ...],
    rule: Any,
    signature: Any,
) -> Callable[..., Any]:
    """Return the call of a function of views with shapes of their own; it makes a new array.

    Parameters
    ----------
    run : callable
        ``run(*views, out=out)``; a number is a 0-d array.
    slots, shapes : sequence
        The views, that of the output first.
    reads : tuple of int
        For each view but that of the output the operand that it shows, from 1 on: the first view shows an array.
    rule, signature
        As in `bind_call`.
    """
    kinds = tuple(["number" if slot[2] is None else "array" for slot in slots])
    write = written_out(_memory(slots[0], shapes[0]), kinds, reads, (), True, "named")
    return write(run, rule, _numbers(slots, reads, rule), slots, shapes, signature)


def _kind(slot: Slot, shape: tuple[int, ...]) -> str:
    """Return "number", "array", or "flat" if a loop takes the elements of an array in the order of its memory."""
    dtype, shift, strides = slot
    if strides is None:
        return "number"
    return "flat" if strides == (dtype.itemsize,) and not shift and len(shape) == 1 else "array"


def statement_of(run: Callable[..., Any]) -> str:
    """Return how a function is called: a key of `_STATEMENTS`."""
    if isinstance(run, np.ufunc) and run not in _ONLY_NAMED:
        return "by position"
    return "copy" if run is identity else "named"


_ONLY_NAMED = frozenset({np.maximum, np.minimum})
"""The ufuncs of which NumPy deprecates a third operand by position."""


_STATEMENTS = {
    "copy": "v0[...] = {values}",
    "by position": "run({values}, v0)",
    "named": "run({values}, out=v0)",
    "outputs first": "run({outputs}, {values})",
}
"""How a function of values writes its outputs. NumPy reads a keyword in 0.04 us."""


def _numbers(slots: Sequence[Slot], reads: Sequence[int], rule: Any) -> list[Any]:
    """Return for each view the function that makes it of a number, or None."""
    return [None] + [
        number_of(rule.numbers[place], dtype, rule.raw) if strides is None else None
        for (dtype, _, strides), place in zip(slots[1:], reads, strict=True)
    ]


_LAUNCH = """\
def bind(run, slots, shape, numbers, made, public):
    {unpacked}

    def launch({parameters}):
        {before}
        {computed}
        {after}

    return launch
"""


def bind_launch(
    run: Callable[..., Any],
    statement: str,
    slots: Sequence[Slot],
    shape: tuple[int, ...],
    made: Sequence[Any],
    constants: Mapping[int, Any],
    public: Any,
) -> Callable[..., Any]:
    """Return a launch: a function of a stream, then ``buffer, byte offset`` or ``number, 0`` for each operand.

    Parameters
    ----------
    run, statement, shape
        As in `bind_call`.
    slots : sequence of Slot
        The operands, outputs first.
    made : sequence
        For each output the signature of the array that the launch makes and returns, or None. A launch of two new
        arrays returns a tuple. New arrays are not among its arguments.
    constants : mapping
        Numbers by the positions of the operands, which are not among its arguments.
    public : type
        The class of a new array.
    """
    numbers = [None if strides is not None else number_of(_same, dtype, True) for dtype, _, strides in slots]
    numbers = [make and make(constants[i]) if i in constants else make for i, make in enumerate(numbers)]
    kinds = ["constant" if i in constants else _kind(slot, shape) for i, slot in enumerate(slots)]
    memory = [None if each is None else _memory(slot, shape) for each, slot in zip(made, slots, strict=False)]
    return _launch_written_out(statement, tuple(kinds), tuple(memory))(run, slots, shape, numbers, made, public)


def _same(number: Any) -> Any:
    return number


@functools.cache
def _launch_written_out(statement: str, kinds: tuple[str, ...], memory: tuple[str | None, ...]) -> Callable[..., Any]:
    """Return ``bind(run, slots, shape, numbers, made, public)``, which returns a launch.

    Parameters
    ----------
    statement : str
        A key of `_STATEMENTS`.
    kinds : tuple of str
        For each operand "array", "number", "constant", or "flat".
    memory : tuple of (str or None)
        For each output how the launch makes its memory, a key of `_MEMORY`; None if it is given.
    """
    lines = _Lines([], ["stream"], [], [])
    for i, kind in enumerate(kinds):
        _add_operand(lines, i, kind, memory[i] if i < len(memory) else None)
    new = [f"r{i}" for i, made in enumerate(memory) if made is not None]
    if new:
        lines.after.append(f"return {', '.join(new)}")
    text = _LAUNCH.format(
        unpacked=_joined(lines.unpacked, 4),
        parameters=", ".join(lines.parameters),
        before=_joined(lines.before, 8),
        computed=_QUIET.format(run=_computed(statement, len(kinds), len(memory))),
        after=_joined(lines.after, 8),
    )
    return _bind_of(text, "<tilearray host launch>")


class _Lines(NamedTuple):
    """The parts of the text of a launch: what a loop fixes, the parameters, and the lines around the computation."""

    unpacked: list[str]
    parameters: list[str]
    before: list[str]
    after: list[str]


def _add_operand(lines: _Lines, i: int, kind: str, made: str | None) -> None:
    """Add the lines that make ``v{i}``, the view of operand i, to the text of a launch; `made` as in `memory`."""
    if kind == "constant":
        lines.unpacked.append(f"v{i} = numbers[{i}]")
        return
    if made is None:
        lines.parameters.append(f"x{i}, o{i}")
    if kind == "number":
        lines.unpacked.append(f"n{i} = numbers[{i}]")
        lines.before.append(f"v{i} = n{i}(x{i})")
        return
    lines.unpacked.extend([f"d{i}, s{i}, t{i} = slots[{i}]", f"h{i} = shape"])
    if made is not None:
        lines.unpacked.extend(_unpacked_result(i, f"made[{i}]", made == "own" and kind == "flat"))
        lines.before.extend([line.format(i=i) for line in _MEMORY[made]])
        lines.after.extend(_RESULT.format(i=i, cls="public").splitlines())
        return
    view = f"ndarray(h{i}, d{i}, x{i}.memory, o{i} + s{i}, t{i})"
    if kind == "flat":  # all elements of the memory, as most arrays have
        lines.before.append(f"v{i} = x{i}.memory")
        lines.before.append(f"if o{i} or v{i}.dtype is not d{i} or v{i}.shape != h{i}:")
        lines.before.append(f"    v{i} = {view}")
    else:
        lines.before.append(f"v{i} = {view}")


def _computed(statement: str, views: int, outputs: int) -> str:
    """Return the statement that computes views from others, outputs first."""
    listed = [f"v{i}" for i in range(views)]
    return _STATEMENTS[statement].format(outputs=", ".join(listed[:outputs]), values=", ".join(listed[outputs:]))


def _unpacked_result(i: int, signature: str, is_flat: bool) -> list[str]:
    """Return the lines that name the signature of a result, and its `Buffer.flat_of`."""
    return [f"g{i} = {signature}", f"f{i} = {f'g{i}' if is_flat else None}"]


_NAMES: dict[str, Any] = {
    "BYTE": BYTE,
    "Buffer": Buffer,
    "QUIET": QUIET,
    "empty": np.empty,
    "get_state": get_state,
    "may_share_memory": np.may_share_memory,
    "ndarray": np.ndarray,
    "new": object.__new__,
    "set_state": set_state,
}
"""What the text of a call and of a launch names."""


def _memory(slot: Slot, shape: tuple[int, ...]) -> str:
    """Return how the memory of a result is made."""
    dtype, shift, strides = slot
    stride = dtype.itemsize
    for extent, given in zip(reversed(shape), reversed(strides or ())):
        if (given != stride and extent > 1) or shift:
            return "strided"
        stride *= extent
    return "own"


def is_dense(slot: Slot, shape: tuple[int, ...]) -> bool:
    """Return whether a loop takes the elements of an output in C order."""
    return _memory(slot, shape) == "own"


@functools.cache
def written_out(
    made: str, kinds: tuple[str, ...], reads: tuple[int, ...], same: tuple[bool, ...], warns: bool, statement: str
) -> Callable[..., Any]:
    """Return ``bind(run, rule, numbers, slots, shapes, signature)``, which returns a call.

    Parameters
    ----------
    made : str
        "into", or how the memory of the result is made: a key of `_MEMORY`.
    kinds : tuple of str
        The kind of each view, that of the output first: "array", "number", or "flat" for all elements of an array in
        the order in which they lie in memory.
    reads : tuple of int
        The operand that each of these views shows, from 1 on.
    same : tuple of bool
        For each operand whether it has the target's elements if both begin at one place; () if operands need no check.
    warns : bool
        Whether the function may cause floating-point warnings.
    statement : str
        A key of `_STATEMENTS`.
    """
    views, operands = range(1, len(kinds)), range(1, max(reads) + 1)
    arrays = [i for i in views if kinds[i] != "number"]
    numbers = [i for i in views if kinds[i] == "number"]
    parameters = [f"x{i}" for i in operands]
    unpacked = [f"d{i}, s{i}, t{i} = slots[{i}]" for i in (0, *arrays)]
    unpacked += [f"h{i} = shapes[{i}]" for i in (0, *arrays)]
    unpacked += [f"n{i} = numbers[{i}]" for i in numbers]
    if made == "into":
        parameters = ["x0", *parameters]
        unpacked.append("whole = rule.whole")
        before = ["b0 = x0._buffer", "if b0.readonly:", f"    return whole({_tuple(operands)}, x0)"]
        before.append(_view(0, 0, kinds[0]))
        after = ["return x0"]
    else:
        unpacked += _unpacked_result(0, "signature", made == "own" and kinds[0] == "flat")
        before = [line.format(i=0) for line in _MEMORY[made]]
        after = [*_RESULT.format(i=0, cls=f"x{reads[arrays[0] - 1]}.__class__").splitlines(), "return r0"]
    for i in arrays:
        before += [f"b{i} = x{reads[i - 1]}._buffer", _view(i, reads[i - 1], kinds[i])]
    if same:
        before += [line for i in arrays for line in _check(i, same[i - 1], operands)]
    before += [f"v{i} = n{i}(x{reads[i - 1]})" for i in numbers]
    run = _computed(statement, len(kinds), 1)
    text = _TEXT.format(
        unpacked=_joined(unpacked, 4),
        parameters=", ".join(["stream", *parameters]),
        before=_joined(before, 8),
        computed=_QUIET.format(run=run) if warns else run,
        after=_joined(after, 8),
    )
    return _bind_of(text, f"<tilearray host {made} {' '.join(kinds)}>")


def _view(i: int, read: int, kind: str) -> str:
    """Return the line that makes a view of an operand."""
    if kind == "flat":
        made = f"ndarray(h{i}, d{i}, b{i}.memory, x{read}._offset, t{i})"
        return f"v{i} = b{i}.memory if b{i}.flat_of is x{read}._signature else {made}"
    return f"v{i} = ndarray(h{i}, d{i}, b{i}.memory, x{read}._offset + s{i}, t{i})"


def _check(i: int, same: bool, operands: Sequence[int]) -> list[str]:
    """Return lines that leave the call if an operand shares memory with the target and is not the same view."""
    shared = f"x{i} is not x0 and may_share_memory(v{i}, v0)"
    if same:
        shared += f" and x{i}._address != x0._address"
    return [f"if {shared}:", f"    return whole({_tuple(operands)}, x0)"]


def _tuple(operands: Sequence[int]) -> str:
    return f"({''.join(f'x{i}, ' for i in operands)})"


def _joined(lines: Sequence[str], indent: int) -> str:
    return f"\n{' ' * indent}".join(lines)


def _bind_of(text: str, file: str) -> Callable[..., Any]:
    """Return the function `bind` that a text defines."""
    exec(compile(text, file, "exec"), names := dict(_NAMES))
    return names["bind"]


def number_of(take: Callable[[Any], Any], dtype: np.dtype, raw: bool) -> Callable[[Any], np.ndarray]:
    """Return the function that makes a 0-d array of a Python number, and keeps the last one. Nobody writes to it.

    Parameters
    ----------
    take : callable
        Checks a number, and converts it to the kind of number that the dtype holds.
    dtype : numpy.dtype
    raw : bool
        Whether an int in an integer dtype and a float in a float dtype need no check but that they fit.

    Examples
    --------
    >>> number_of(float, np.dtype("float32"), True)(0.5)
    array(0.5, dtype=float32)
    """
    array, kept = np.array, (object(), np.empty(()))
    is_float, is_int = raw and dtype.char in "fd", raw and dtype.kind in "iu"

    def number(value: Any) -> np.ndarray:
        nonlocal kept
        last, found = kept
        if value is last:  # as a number in the text of a loop is
            return found
        kind = value.__class__
        if is_float and kind is float and (1e-30 < value < 1e30 or -1e30 < value < -1e-30 or value == 0):
            found = array(value, dtype)  # cannot warn
        elif is_float and kind is int and -(2**24) <= value <= 2**24:
            found = array(value, dtype)  # exact
        elif is_int and kind is int and low <= value <= high:
            found = array(value, dtype)
        else:
            found = scalar(take(value), dtype)
        kept = (value, found)
        return found

    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if is_int else (0, 0)
    return number
