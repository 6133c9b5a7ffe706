"""Launches written out: the work that remains for an operation with a known plan, as one Python function.

A function that takes any operands would spend as much time on loops over them as the driver spends on the launch. So
the text of a launch is written for its operands, as `collections.namedtuple` does for its fields, and compiled once for
every combination of their kinds. There are four forms:

========  ============================================  ========================================================
form      called with                                   does
========  ============================================  ========================================================
launch    ``stream, buffer, offset, number, 0, ...``    launches, and returns the outputs that it makes; the caller has
                                                        checked that it may
new       ``stream, x, number, ...``                    allocates, launches, and returns the new array
into      ``stream, out, x, number, ...``               launches and returns `out`; calls `rule.whole` if `out` may
                                                        not be written or shares memory with an operand
steps     ``stream, x, number, ...``                    allocates, launches several times, and returns the new array
========  ============================================  ========================================================

An array has the attributes ``_buffer``, ``_offset`` (in bytes) and ``_signature``; a new one gets the class of the
first operand. In the text, ``x0`` is the first operand (the output, except in the form "new"), ``b0`` its buffer and
``p0`` its address.
"""

from __future__ import annotations

import functools
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tilearray_cuda.runtime.driver import TORCH, check_capture
from tilearray_cuda.runtime.launch import MOST_PROGRAMS, Arguments
from tilearray_cuda.runtime.memory.buffers import Buffer, block_size

Converter = Callable[[Any], tuple[Any, ...]]
"""A function that turns a number into the values that are packed for it."""

_TEXT = """\
def bind(arguments, converters, rule, fixed_by, unshifted):
    frames, pack, device = arguments.frames, arguments.pack, arguments.function.device
    function, cuLaunchKernelEx = arguments.function.reference, arguments.function.launch
    {kernel}

    def bind_loop(loop, signature=None, shifts=unshifted, gaps=()):
        {loop}

        def launch({parameters}, fixed=fixed_by(loop){kept}):
            if not stream and "torch" in modules and torch.may_capture(device.index):
                check_capture(stream)
            {before}
            try:
                frame = frames.pop()
            except IndexError:
                frame = arguments.frame()
            slab, start, configuration, addresses = frame
            try:
                pack(slab, start, {values}, fixed, stream)
                status = cuLaunchKernelEx(configuration, function, addresses, None)
                if status:
                    arguments.relaunch(status, frame, fixed, stream)
            {errors}finally:
                frames.append(frame)
            {after}

        return launch

    return bind_loop
"""

_ALLOCATE = """\
if stream:
    free, p{i} = take(signature{i}.nbytes, stream)
else:
    try:
        free = lists[size{i}]
        p{i} = free.pop()
    except LookupError:
        free, p{i} = take(signature{i}.nbytes, stream)
b{i} = Buffer()
b{i}.pointer = p{i}
b{i}.nbytes = signature{i}.nbytes
b{i}.stream = stream
b{i}.free = free"""

_RESULT = """\
result{i} = new({kind})
result{i}._buffer = b{i}
result{i}._offset = 0
result{i}._signature = signature{i}"""

_OUT_OF_RANGE = """\
except struct_error:
                {takes}
                raise
            """


def bind_operands(
    arguments: Arguments,
    fixed: bytes,
    shifts: Sequence[int | None],
    converters: Sequence[Converter | None],
    outputs: int = 1,
    made: Sequence[Any] = (),
    constants: Mapping[int, Any] = MappingProxyType({}),
    public: Any = None,
    numbers: Sequence[str] = (),
) -> Callable[..., Any]:
    """Return ``launch(stream, buffer, byte offset, ...)``, with ``number, 0`` where an operand is a number.

    It makes outputs that have a signature, and returns them: one array, or a tuple. Neither they nor constants are
    among its arguments.

    Parameters
    ----------
    arguments : Arguments
        The kernel's. The format of a buffer is "P"; a number has the formats of its converter's values.
    fixed : bytes
        The values that `Arguments.fix` packed for the loop.
    shifts : sequence of int or None
        Bytes from a buffer's offset to the start of the loop; None for a number.
    converters : sequence of callable or None
        The functions that turn numbers into packed values; None for a buffer.
    outputs : int
        The number of operands that are written; they come first.
    made : sequence of Signature or None
        For each output the signature of the array to make, or None if the output is given.
    constants : mapping
        Numbers that are the same in all launches, by the position of the operand.
    public : type
        The class of the arrays that are made.
    numbers : sequence of str
        For each operand how it is packed if it is a number, as `written_out` takes it; () if all are converted.
    """
    numbers = numbers or ["number"] * len(shifts)
    kinds = [kind if shift is None else "shifted" if shift else "array" for shift, kind in zip(shifts, numbers)]
    kinds = ["made" if place < len(made) and made[place] else kind for place, kind in enumerate(kinds)]
    given: list[Any] = list(converters)
    for place, number in constants.items():
        values = given[place](number)
        kinds[place], given[place] = ("constant", values[0]) if len(values) == 1 else ("constants", values)
    return written_out("launch", tuple(kinds), outputs)(arguments, given, public, lambda _: fixed, shifts)(None, made)


@functools.cache
def written_out(form: str, kinds: tuple[str, ...], outputs: int = 1) -> Callable[..., Any]:
    """Return the function that binds a kernel, and then its loops, to operands of these kinds.

    Parameters
    ----------
    form : str
        "launch", "new" or "into", as above.
    kinds : tuple of str
        The kind of each operand, the output first: "array", "shifted" (an array whose loop does not begin at its first
        element), "integer" or "float" (a number that is packed as it is if it has that class), or "number". With a
        target, "array same" is an array that has the target's elements if both begin at one place. The form "launch"
        also has "made", an output that the launch makes, and "constant" or "constants", a number whose packed values
        stand in the place of its converter.
    outputs : int
        The number of operands that are written; they come first.

    Returns
    -------
    callable
        ``bind(arguments, converters, rule, fixed_by, unshifted)`` takes the kernel's `launch.Arguments`, the functions
        that turn numbers into packed values, the `tilearray.engine.call.Rule` of the expression, and the function that
        packs everything that a loop fixes. It returns ``bind_loop(loop, signature, shifts=unshifted, gaps=())``, which
        takes the signature of a new result, for each operand the bytes to the start of the loop, and the distances at
        which operands share memory.
    """
    arrays = [i for i, kind in enumerate(kinds) if kind.startswith(("array", "shifted"))]
    lines = _Lines([_unpacked("convert", "converters", len(kinds))], [], [], ["stream"], [], [], [])
    if any(kind.startswith("shifted") for kind in kinds):
        lines.loop.append(_unpacked("shift", "shifts", len(kinds)))
    if form == "launch":
        given = [i for i, kind in enumerate(kinds) if not kind.startswith(("made", "constant"))]
        lines.parameters.extend([f"x{i}, offset{i}" for i in given])
        _add_results(lines, {i: f"signature[{i}]" for i, kind in enumerate(kinds) if kind == "made"}, "rule")
        buffers = [(f"x{i}", i < outputs) for i in arrays]
    elif form == "new":
        _add_operands(lines, kinds, 1, arrays[1:])
        _add_results(lines, {0: "signature"}, f"x{arrays[1]}.__class__")
        buffers = [(f"b{i}", False) for i in arrays[1:]]
    else:
        _add_operands(lines, kinds, 0, arrays)
        _add_checks(lines, kinds, arrays)
        buffers = [(f"b{i}", i < outputs) for i in arrays]
    for name, writes in buffers:
        lines.before.extend([f"if {name}.stream != stream:", f"    device.join({name}, stream, {writes})"])
    text = _TEXT.format(
        kernel=_joined(lines.kernel, 4),
        loop=_joined(lines.loop, 8),
        kept="".join([f", {name}={name}" for name in lines.kept]),
        parameters=", ".join(lines.parameters),
        before=_joined(lines.before, 12),
        values=", ".join([_packed(form, i, kind) for i, kind in enumerate(kinds)]),
        errors=_OUT_OF_RANGE.format(takes=_joined(lines.takes, 16)) if lines.takes else "",
        after=_joined(lines.after, 12),
    )
    names = dict(_NAMES)
    exec(compile(text, f"<tilearray {form} {' '.join(kinds)}>", "exec"), names)
    return names["bind"]


_NAMES: dict[str, Any] = {
    "Buffer": Buffer,
    "block_size": block_size,
    "check_capture": check_capture,
    "modules": sys.modules,
    "new": object.__new__,
    "struct_error": struct.error,
    "torch": TORCH,
}
"""What the text of a launch names."""


class _Lines(NamedTuple):
    """The parts of the text of a launch.

    Attributes
    ----------
    kernel, loop : list of str
        Lines that name what a kernel and a loop have.
    kept : list of str
        What a launch has as defaults of parameters, which are read faster than names of the function around it.
    parameters : list of str
    before, after : list of str
        The lines around the launch itself.
    takes : list of str
        Lines that check numbers, after `struct` has refused one.
    """

    kernel: list[str]
    loop: list[str]
    kept: list[str]
    parameters: list[str]
    before: list[str]
    takes: list[str]
    after: list[str]


def _add_operands(lines: _Lines, kinds: tuple[str, ...], first: int, arrays: Sequence[int]) -> None:
    """Add the operands of a call, from the first that is a parameter on, with the buffers of those that are arrays."""
    lines.parameters.extend([f"x{i}" for i in range(first, len(kinds))])
    lines.takes.extend([f"take{i}(x{i})" for i, kind in enumerate(kinds) if kind == "integer"])
    if lines.takes:
        lines.kernel.append(_unpacked("take", "rule.numbers", len(kinds)))
    lines.before.extend([f"b{i} = x{i}._buffer" for i in arrays])


def _add_results(lines: _Lines, signatures: Mapping[int, str], kind: str) -> None:
    """Add the arrays that a launch makes of a class and returns, by the positions and the text of their signatures."""
    if not signatures:
        return
    lines.kernel.append("take, lists = device.memory.take, device.memory.legacy")
    for i, signature in signatures.items():
        lines.loop.extend([f"signature{i} = {signature}", f"size{i} = block_size(signature{i}.nbytes)"])
        lines.kept.extend([f"signature{i}", f"size{i}"])
        lines.before.extend(_ALLOCATE.format(i=i).splitlines())
        lines.after.extend(_RESULT.format(i=i, kind=kind).splitlines())
    lines.after.append(f"return {', '.join([f'result{i}' for i in signatures])}")


def _add_checks(lines: _Lines, kinds: tuple[str, ...], arrays: list[int]) -> None:
    """Add lines that find the addresses, and check that `out` may be written and shares no operand's memory.

    The distance between two arrays that share memory lies between bounds. It is 0 if they are the same view.
    """
    lines.kernel.append("whole = rule.whole")
    lines.loop.extend([f"near{i}, far{i}, _ = gaps[{i}]" for i in arrays[1:]])
    lines.before.extend([f"p{i} = b{i}.pointer + x{i}._offset" for i in arrays])
    shared = ["b0.readonly"]
    for i in arrays[1:]:
        same = kinds[i].endswith("same")
        shared.append(f"near{i} < p{i} - p0 < far{i}" + (f" and p{i} != p0" if same else ""))
    operands = ", ".join(f"x{i}" for i in range(1, len(kinds)))
    lines.before.extend([f"if {' or '.join(shared)}:", f"    return whole(({operands},), x0)"])
    lines.after.append("return x0")


_STEPS = """\
def bind(launches, numbers, device, memory, offsets):
    take, lists = device.memory.take, device.memory.legacy
    {names}

    def call({parameters}{kept}):
        {body}
        return resultm0

    return call
"""


@functools.cache
def steps_written_out(
    kinds: tuple[str, ...], steps: tuple[tuple[tuple[int, bool], ...], ...], count: int
) -> Callable[..., Callable[..., Any]]:
    """Return the function that binds launches to a call, which runs them one after the other.

    Parameters
    ----------
    kinds : tuple of str
        For each operand of the call "array", "float" (a number that is checked only if it is no float) or "number".
    steps : tuple of tuple of (int, bool)
        For each launch what it takes: an operand of the call by its position, or memory that the call allocates by
        -1, -2, ..., and whether it begins at an offset in this memory.
    count : int
        The number of arrays that the call allocates, each before the first launch that takes it. The first one is
        the result.

    Returns
    -------
    callable
        ``bind(launches, numbers, device, memory, offsets)`` takes the launches, the functions that check numbers, the
        signatures of the arrays that the call allocates, and the offsets in bytes, in the order of the steps. It
        returns the call.
    """
    made = [f"m{number}" for number in range(count)]
    places = [place for step in steps for place in step]
    numbered = iter(range(len(places)))
    values = [f"b{i}, o{i}" if kind == "array" else f"n{i}, 0" for i, kind in enumerate(kinds)]
    body, allocated = [_taken(i, kind) for i, kind in enumerate(kinds)], set[int]()
    for turn, step in enumerate(steps):
        given = ["stream"]
        for index, is_shifted in step:
            if index < 0 and index not in allocated:
                allocated.add(index)
                body += _ALLOCATE.format(i=made[~index]).splitlines()
            offset = f"offset{next(numbered)}" if is_shifted else "0"
            given.append(values[index] if index >= 0 else f"b{made[~index]}, {offset}")
        body.append(f"launch{turn}({', '.join(given)})")
    body += _RESULT.format(i=made[0], kind=f"x{kinds.index('array')}.__class__").splitlines()
    names = [_unpacked("launch", "launches", len(steps)), _unpacked("take", "numbers", len(kinds))]
    names += [_unpacked("signaturem", "memory", count), *[f"size{i} = block_size(signature{i}.nbytes)" for i in made]]
    names.append(_unpacked("offset", "offsets", sum(is_shifted for _, is_shifted in places)))
    text = _STEPS.format(
        names=_joined(names, 4),
        parameters=", ".join(["stream", *[f"x{i}" for i in range(len(kinds))]]),
        kept="".join([f", {name}{i}={name}{i}" for i in made for name in ("signature", "size")]),
        body=_joined(body, 8),
    )
    found = dict(_NAMES)
    exec(compile(text, f"<tilearray steps {' '.join(kinds)}>", "exec"), found)
    return found["bind"]


_FIXED = """\
def bind(pack, block, fix):
    def fixed(loop):
        ({extents},), strides, _, _, _ = loop{fields}
        programs = {programs}
        if programs > {most}:
            return fix(programs, ({constants},))
        return pack({constants}, programs, block)

    return fixed
"""


@functools.cache
def fixed_written_out(
    rank: int, strides: tuple[tuple[int, int], ...], programs: str, others: tuple[str, ...] | None = None
) -> Callable[..., Callable[[Any], bytes]]:
    """Return the function that binds a kernel to a packer of a loop's extents, strides and number of programs.

    Parameters
    ----------
    rank : int
        The number of extents.
    strides : tuple of (int, int)
        The strides that are arguments, as positions in ``loop.strides``.
    programs : str
        The number of programs, as an expression of the extents ``n0, n1, ...``, and of attributes of the loop.
    others : tuple of str
        Attributes of the loop of a reduction that are arguments as well; None for an elementwise loop.

    Returns
    -------
    callable
        ``bind(pack, block, fix)`` takes those of `launch.Arguments`.
    """
    extents = [f"n{axis}" for axis in range(rank)]
    constants = [*extents, *[f"strides[{position}][{axis}]" for position, axis in strides]]
    constants += [f"loop.{attribute}" for attribute in others or ()]
    text = _FIXED.format(
        extents=", ".join(extents),
        fields="" if others is None else "[:5]",
        programs=programs,
        most=MOST_PROGRAMS,
        constants=", ".join(constants),
    )
    names: dict[str, Any] = {}
    exec(compile(text, f"<tilearray loops of {rank} axes>", "exec"), names)
    return names["bind"]


def _packed(form: str, i: int, kind: str) -> str:
    """Return the text of an operand's values in its launch's frame."""
    if kind == "integer":
        return f"x{i} if x{i}.__class__ is int else convert{i}(x{i})[0]"
    if kind == "float":  # an int that float64 holds is rounded once
        exact = f"x{i}.__class__ is float or (x{i}.__class__ is int and -(2**53) <= x{i} <= 2**53)"
        return f"x{i} if {exact} else convert{i}(x{i})[0]"
    if kind == "number":
        return f"*convert{i}(x{i})"
    if kind.startswith("constant"):
        return f"convert{i}" if kind == "constant" else f"*convert{i}"
    if form == "launch" and kind != "made":
        address = f"x{i}.pointer + offset{i}"
    elif form in ("launch", "into") or not i:
        address = f"p{i}"
    else:
        address = f"b{i}.pointer + x{i}._offset"
    return f"{address} + shift{i}" if kind.startswith("shifted") else address


def _taken(i: int, kind: str) -> str:
    """Return the line that names what a launch takes of an operand: its buffer and offset, or a checked number."""
    if kind == "array":
        return f"b{i}, o{i} = x{i}._buffer, x{i}._offset"
    checked = f"take{i}(x{i})"
    return f"n{i} = " + (f"x{i} if x{i}.__class__ is float else {checked}" if kind == "float" else checked)


def _unpacked(name: str, values: str, count: int) -> str:
    return f"({' '.join(f'{name}{i},' for i in range(count))}) = {values}"


def _joined(lines: Sequence[str], indent: int) -> str:
    return f"\n{' ' * indent}".join(lines)
