"""Facts of a compiled kernel, read from its ELF file: registers, stack, and the sizes of its memory accesses.

The driver tells the same, but only where there is a GPU. An ELF file of the CUDA compiler has the number of registers
and the size of the stack in sections called ``.nv.info``, and instructions of 16 bytes in ``.text.`` and the kernel's
name. The fields that are read here are the same from sm_80 to sm_121:

===========================  ========================================================
bits of an instruction       meaning
===========================  ========================================================
0-11                         the operation, see `_ACCESSES`
73-75                        the size of an access, see `_SIZES`
===========================  ========================================================

Registers that the compiler moves to memory (spills) are accesses of local memory.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

_ACCESSES = {0x981: "load", 0x986: "store", 0x983: "spill", 0x387: "spill"}
"""Loads and stores of global memory; loads and stores of local memory."""
_SIZES = (1, 1, 2, 2, 4, 8, 16)
"""Bytes of an access: u8, s8, u16, s16, 32, 64 and 128 bits."""
_INSTRUCTION = struct.Struct("<QQ")
_HEADER = struct.Struct("<40xQ10xHHH")  # place, size and number of section headers; number of that of names
_SECTION = struct.Struct("<I20xQQ24x")  # name, place, bytes
_ATTRIBUTE = struct.Struct("<BBH")  # format, attribute, bytes or value
_WITH_BYTES = 4
"""The format of an attribute whose last field is the number of its bytes, which follow."""
_REGISTERS, _FRAME = 0x2F, 0x11
_OF_FUNCTION = struct.Struct("<II")  # symbol, value


class MachineCode(NamedTuple):
    """The facts of a compiled kernel.

    Attributes
    ----------
    registers : int
        Registers of a thread.
    stack : int
        Bytes of stack of a thread.
    spills : int
        Instructions that access local memory: spilled registers, and arrays that are not in registers.
    loads, stores : tuple of (int, int)
        The instructions that read or write global memory: for each size in bytes their number, the largest size first.
    """

    registers: int
    stack: int
    spills: int
    loads: tuple[tuple[int, int], ...]
    stores: tuple[tuple[int, int], ...]


def read_machine_code(code: bytes) -> MachineCode:
    """Return the facts of a kernel's ELF file.

    Raises
    ------
    ValueError
        If the bytes are not an ELF file with one kernel.
    """
    try:
        sections = dict(_sections(code))
        registers = _largest(sections[".nv.info"], _REGISTERS)
        stack = _largest(sections[".nv.info"], _FRAME)
        (text,) = [data for name, data in sections.items() if name.startswith(".text.")]
        found = Counter(_accesses(text))
    except (struct.error, KeyError, ValueError) as error:
        raise ValueError(f"expected the ELF file of one kernel, got {len(code)} bytes that are not") from error
    spills = sum(count for (kind, _), count in found.items() if kind == "spill")
    return MachineCode(registers, stack, spills, _by_size(found, "load"), _by_size(found, "store"))


def _by_size(found: Counter[tuple[str, int]], kind: str) -> tuple[tuple[int, int], ...]:
    return tuple(sorted([(size, count) for (each, size), count in found.items() if each == kind], reverse=True))


def _sections(code: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the sections of an ELF file with their names."""
    if code[:5] != b"\x7fELF\x02":  # of 64 bits
        raise ValueError
    place, size, count, names = _HEADER.unpack_from(code)
    headers = [_SECTION.unpack_from(code, place + number * size) for number in range(count)]
    _, start, length = headers[names]
    texts = code[start : start + length]
    for name, start, length in headers:
        yield texts[name : texts.index(b"\0", name)].decode(), code[start : start + length]


def _largest(info: bytes, wanted: int) -> int:
    """Return the largest value of an attribute of functions; an attribute with bytes is a function and a value."""
    found: list[int] = []
    place = 0
    while place < len(info):
        form, attribute, last = _ATTRIBUTE.unpack_from(info, place)
        place += _ATTRIBUTE.size
        if form == _WITH_BYTES:
            if attribute == wanted:
                found.append(_OF_FUNCTION.unpack_from(info, place)[1])
            place += last
    return max(found)


def _accesses(text: bytes) -> Iterator[tuple[str, int]]:
    """Yield the kind and the size of each access of memory."""
    for low, high in _INSTRUCTION.iter_unpack(text):
        kind = _ACCESSES.get(low & 0xFFF)
        size = high >> 9 & 7
        if kind is not None and size < len(_SIZES):
            yield kind, _SIZES[size]
