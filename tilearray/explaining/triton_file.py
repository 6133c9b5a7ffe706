"""Kernels as one Python file that runs them on tensors of torch, without tilearray.

The file has three parts: the kernels with the functions that they call; ``run``, which launches them over the memory
of a call; and ``new_memory``, which makes that memory, random numbers in arrays that are read. Memory is a tensor of
bytes, and an operand is a part of it from its first element on, so every layout works, also with negative strides.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.errors import DeviceError
from tilearray.explaining.kernels import GpuKernel, Kernel, schedule_for, source_for
from tilearray.explaining.paper import Note
from tilearray.explaining.wording import operands_of
from tilearray.geometry.layout import Layout

_HEAD = '''"""{title}

The kernels of a call in tilearray, with launches for its shapes and strides. `run` takes tensors of bytes, which
`new_memory` makes. This file needs torch and triton, and a GPU; or TRITON_INTERPRET=1 in the environment.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


def at(memory, start, end, dtype):
    """The elements of a dtype between two bytes."""
    return memory[start:end].view(dtype)


'''
_POINTERS = {
    "*i8": "int8", "*i16": "int16", "*i32": "int32", "*i64": "int64",
    "*u8": "uint8", "*u16": "uint16", "*u32": "uint32", "*u64": "uint64",
    "*fp16": "float16", "*bf16": "bfloat16", "*fp32": "float32", "*fp64": "float64",
}  # fmt: skip
"""Triton's names of types in memory, and torch's dtypes."""


class _Part(NamedTuple):
    """The part of a buffer that an operand visits: the operand's first element, and the ends of all elements."""

    name: str
    dtype: np.dtype
    is_output: bool
    buffer: Any
    first: int
    start: int
    end: int


class _Launch(NamedTuple):
    """One launch: the name of its kernel in the file, all that it is made of, and its arrays."""

    function: str
    kernel: GpuKernel
    schedule: Any
    source: Any
    note: Note
    parts: list[_Part]


class _Memory:
    """A tensor of bytes in the file, which stands for one buffer of the call."""

    def __init__(self, name: str, parts: list[_Part]) -> None:
        self.name = name
        self.parts = parts
        self.base = min(part.start for part in parts) // 16 * 16  # so that alignment stays
        self.size = -(-(max(part.end for part in parts) - self.base) // 16) * 16

    def at(self, start: int, end: int, dtype: str) -> str:
        """Return the expression of the elements between two bytes of the buffer."""
        return f"at({self.name}, {start - self.base}, {end - self.base}, torch.{dtype})"

    def from_first(self, part: _Part, dtype: str) -> str:
        """Return the expression of all elements from an operand's first one on."""
        count = (self.base + self.size - part.first) // part.dtype.itemsize
        return self.at(part.first, part.first + count * part.dtype.itemsize, dtype)

    def made(self) -> list[str]:
        """Return the statements that make the tensor."""
        lines = [f"{self.name} = torch.zeros({self.size}, dtype=torch.uint8, device=device)"]
        part = self.parts[0]
        if not part.is_output:
            dtype, random = _random(part.dtype)
            lines.append(f"{self.at(part.start, part.end, dtype)}.{random}")
        return lines

    def shown(self) -> list[str]:
        """Return the statement that prints the first elements, if a launch writes them and no later one reads them."""
        part = self.parts[-1]
        dtype = "bool" if part.dtype.name == "bool" else _random(part.dtype)[0]
        return [f"print({self.name!r}, {self.at(part.start, part.end, dtype)}[:8])"] if part.is_output else []


def written_out(title: str, kernels: Sequence[tuple[Kernel, Note]]) -> str:
    """Return the file of launches. Raise DeviceError if one is of the host, or Triton cannot launch it."""
    definitions: dict[str, str] = {}
    launches = [_launch(kernel, note, number, definitions) for number, (kernel, note) in enumerate(kernels, 1)]
    parts: dict[int, list[_Part]] = {}
    for part in [part for launch in launches for part in launch.parts]:
        parts.setdefault(id(part.buffer), []).append(part)
    memories = {key: _Memory(f"m{place}", each) for place, (key, each) in enumerate(parts.items())}
    names = ", ".join([memory.name for memory in memories.values()])
    return "\n".join(
        [
            _HEAD.format(title=title) + "\n\n".join(definitions.values()),
            "",
            f"def run({names}):",
            *[f"    {line}" for launch in launches for line in _launched(launch, memories)],
            "",
            "",
            "def new_memory(device):",
            '    """Tensors of bytes: random numbers in arrays that are read, zeros in others."""',
            *[f"    {line}" for memory in memories.values() for line in memory.made()],
            f"    return [{names}]",
            "",
            "",
            'if __name__ == "__main__":',
            f'    {names}{"," * (len(memories) == 1)} = new_memory("cuda" if torch.cuda.is_available() else "cpu")',
            f"    run({names})",
            *[f"    {line}" for memory in memories.values() for line in memory.shown()],
            "",
        ]
    )


def _launch(kernel: Kernel, note: Note, number: int, definitions: dict[str, str]) -> _Launch:
    if not isinstance(kernel, GpuKernel):
        raise DeviceError("to_triton: expected kernels of a GPU, got those of the host; write explain(f, x, arch=90)")
    schedule = schedule_for(*note.request, kernel.arch)
    source = source_for(schedule)
    if source.memory:
        raise DeviceError(
            f"to_triton: expected kernels that Triton can launch, got {source.name}, for which a launch asks for "
            f"{source.memory} more bytes of shared memory; write print(explain(f, x)) to read it"
        )
    return _Launch(_defined(source, number, definitions), kernel, schedule, source, note, _parts(note))


# --- kernels ---------------------------------------------------------------------------------------------------------


def _defined(source: Any, number: int, definitions: dict[str, str]) -> str:
    """Add the functions of a kernel's source, and return the kernel's name. Equal functions are added once.

    A function gets another name if there is a different one of its name.
    """
    heading, *functions = source.text.rstrip().split("@triton.jit\n")
    found: dict[str, str] = {}
    for text in functions:
        name = text.removeprefix("def ").partition("(")[0]
        found[name] = f"@triton.jit\n{text.rstrip()}\n"
    found[source.name] = f"{heading.rstrip()}\n{_annotated(found[source.name], source)}"
    renamed = {name: f"{name}_{number}" for name, text in found.items() if definitions.get(name, text) != text}
    for name, text in found.items():
        for old, new in renamed.items():
            text = re.sub(rf"\b{old}\b", new, text)
        definitions[renamed.get(name, name)] = text
    return str(renamed.get(source.name, source.name))


def _annotated(text: str, source: Any) -> str:
    """Return a kernel with the types of its numbers, which Triton would else take from their values."""
    types = {argument.name: argument.type for argument in source.arguments if not argument.type.startswith("*")}
    head, end, body = text.partition("):\n")
    name, _, parameters = head.partition("(")
    given = [f'{each}: "{types[each]}"' if each in types else each for each in parameters.split(", ")]
    return f"{name}({', '.join(given)}{end}{body}"


# --- memory ----------------------------------------------------------------------------------------------------------


def _parts(note: Note) -> list[_Part]:
    """Return the arrays of a launch."""
    expression, loop = note.request.expression, note.loop
    geometry = iter(zip(loop.strides, loop.shifts))
    found: list[_Part] = []
    for (name, dtype, is_array), (buffer, offset) in zip(operands_of(expression), note.operands, strict=True):
        if is_array:
            strides, shift = next(geometry)
            kind, layout = dtypes.as_dtype(dtype), Layout(loop.shape, strides)
            first = offset + shift * kind.itemsize
            start, end = first + layout.low * kind.itemsize, first + (layout.high + 1) * kind.itemsize
            found.append(_Part(name, kind, name.startswith("out"), buffer, first, start, end))
    return found


def _random(dtype: np.dtype) -> tuple[str, str]:
    """Return torch's dtype for memory of a dtype, and the call of a method that fills it with random numbers."""
    row = dtypes.info(dtype)
    if row.kind == "complex":
        return ("float32" if dtype.itemsize == 8 else "float64"), "uniform_()"
    if row.kind == "float" and row.bits >= 16:
        return dtype.name, "uniform_()"
    if row.kind in ("float", "bool"):  # floats of 8 bits as bytes: in most formats these are between 0 and 2
        return "uint8", f"random_(0, {2 if row.kind == 'bool' else 64})"
    return dtype.name.removeprefix("u") if dtype.itemsize > 1 else dtype.name, "random_(0, 100)"


# --- launches --------------------------------------------------------------------------------------------------------


def _launched(launch: _Launch, memories: dict[int, _Memory]) -> list[str]:
    """Return the statement that launches a kernel."""
    function, kernel, schedule, source, note, parts = launch
    loop = note.loop
    types = {argument.name: argument.type for argument in source.arguments}
    arrays = iter(parts)
    lines: list[str] = []
    for operand, (number, _) in zip(schedule.spec.operands, note.operands, strict=True):
        if operand.strides is None:
            given = _number(operand.dtype, number)
        else:
            part = next(arrays)
            given = memories[id(part.buffer)].from_first(part, _POINTERS[types[operand.name]])
        lines.append(f"{given},  # {operand.name}")
    if schedule.has_scratch:
        size, _ = schedule.scratch(loop)
        device = f"{memories[id(parts[0].buffer)].name}.device"
        lines.append(f"torch.zeros({size}, dtype=torch.int8, device={device}),  # scratch")
    lines += [f"{extent},  # n{axis}" for axis, extent in enumerate(loop.shape)]
    lines += [f"{loop.strides[place][axis]},  # {name}" for name, place, axis in schedule.open_strides()]
    lines += [f"{attrgetter(attribute)(loop)},  # {name}" for name, attribute in schedule.loop_arguments()]
    compiling: Any = importlib.import_module("tilearray_cuda.kernels.compile")
    options = [*source.constants, *compiling.options_of(source, kernel.contract)]
    lines += [f"{name}={value}," for name, value in options]
    return [f"{function}[({kernel.programs},)](", *[f"    {line}" for line in lines], ")"]


def _number(dtype: str, number: Any) -> str:
    """Return a Python number as the arguments of a kernel."""
    kind = dtypes.info(dtypes.as_dtype(dtype)).kind
    if kind == "complex":
        return f"{_float(complex(number).real)}, {_float(complex(number).imag)}"
    return _float(number) if kind == "float" else str(int(number))


def _float(number: Any) -> str:
    found = float(number)
    return repr(found) if abs(found) < float("inf") else f'float("{found}")'
